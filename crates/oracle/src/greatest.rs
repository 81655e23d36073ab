//! The greatest set of a netting cycle (promise P7), said twice: by trying all, and by shortening until it holds.
//!
//! Whoever pays gives a queue of units; a prefix of it is taken. A choice of prefixes is feasible when nobody pays more than it
//! has and receives. Feasible choices are closed under taking the longer prefix of each (`longer` prefixes of others only add
//! to what one receives), so there is one greatest.

/// Somebody with funds and a queue of units, each one or more payments that go together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payer {
    /// What it may spend: balance and credit line, less what is set aside.
    pub funds: i128,
    /// Its queue.
    pub units: Vec<Vec<Pay>>,
}

/// One payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pay {
    /// The place of the payer who is paid.
    pub to: usize,
    /// How much.
    pub minor: i128,
}

/// What each has left when the first `taken` units of each are settled.
#[must_use]
pub fn left(payers: &[Payer], taken: &[usize]) -> Vec<i128> {
    let mut left: Vec<i128> = payers.iter().map(|payer| payer.funds).collect();
    for (from, (payer, &count)) in payers.iter().zip(taken).enumerate() {
        for pay in payer.units.iter().take(count).flatten() {
            left[from] -= pay.minor;
            left[pay.to] += pay.minor;
        }
    }
    left
}

/// Whether nobody who pays is below zero. Who pays nothing breaks no rule, however little it has.
#[must_use]
pub fn feasible(payers: &[Payer], taken: &[usize]) -> bool {
    left(payers, taken)
        .iter()
        .zip(taken)
        .all(|(&left, &count)| left >= 0 || count == 0)
}

/// The greatest feasible choice: whoever fails gives up its last unit, until nobody fails.
#[must_use]
pub fn greatest(payers: &[Payer]) -> Vec<usize> {
    let mut taken: Vec<usize> = payers.iter().map(|payer| payer.units.len()).collect();
    loop {
        let left = left(payers, &taken);
        let failing = (0..payers.len()).find(|&at| left[at] < 0 && taken[at] > 0);
        match failing {
            Some(at) => taken[at] -= 1,
            None => return taken,
        }
    }
}

/// The greatest feasible choice by looking at every choice there is; `None` when there are more than `choices_max`.
///
/// # Panics
/// When two feasible choices have no feasible one above both: then there is no greatest, and the rules contradict themselves.
#[must_use]
pub fn by_trying_all(payers: &[Payer], choices_max: usize) -> Option<Vec<usize>> {
    let mut choices = 1_usize;
    for payer in payers {
        choices = choices.checked_mul(payer.units.len() + 1)?;
    }
    if choices > choices_max {
        return None;
    }
    let mut best = vec![0; payers.len()];
    let mut taken = vec![0; payers.len()];
    for _ in 0..choices {
        if feasible(payers, &taken) {
            for (best, &taken) in best.iter_mut().zip(&taken) {
                *best = taken.max(*best);
            }
        }
        for (count, payer) in taken.iter_mut().zip(payers) {
            *count += 1;
            if *count <= payer.units.len() {
                break;
            }
            *count = 0;
        }
    }
    assert!(feasible(payers, &best), "no greatest choice: {payers:?}");
    Some(best)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Pay, Payer, by_trying_all, greatest, left};

    fn payers(funds: &[i128], queues: &[&[(usize, i128)]]) -> Vec<Payer> {
        let unit = |&(to, minor): &(usize, i128)| vec![Pay { to, minor }];
        funds
            .iter()
            .zip(queues)
            .map(|(&funds, queue)| Payer {
                funds,
                units: queue.iter().map(unit).collect(),
            })
            .collect()
    }

    fn check(funds: &[i128], queues: &[&[(usize, i128)]], taken: &[usize], closing: &[i128]) {
        let payers = payers(funds, queues);
        assert_eq!(greatest(&payers), taken);
        assert_eq!(by_trying_all(&payers, 10_000).expect("small"), taken);
        assert_eq!(left(&payers, taken), closing);
    }

    #[test]
    fn known_cases() {
        // A ring without money.
        check(
            &[0, 0, 0],
            &[&[(1, 10)], &[(2, 10)], &[(0, 10)]],
            &[1, 1, 1],
            &[0, 0, 0],
        );
        // Strict order costs: with the small one first nothing settles, the other way round two do.
        check(&[2, 0], &[&[(1, 5), (1, 10)], &[(0, 8)]], &[0, 0], &[2, 0]);
        check(&[2, 0], &[&[(1, 10), (1, 5)], &[(0, 8)]], &[1, 1], &[0, 2]);
        // Four banks.
        check(
            &[5, 3, 2, 10],
            &[
                &[(1, 30), (2, 20)],
                &[(2, 25), (0, 9)],
                &[(3, 20), (0, 10)],
                &[(0, 28), (1, 15)],
            ],
            &[1, 1, 1, 1],
            &[3, 8, 7, 2],
        );
        // A true deadlock.
        check(&[2, 0], &[&[(1, 10)], &[(0, 7)]], &[0, 0], &[2, 0]);
    }

    prop_compose! {
        fn some_payers()(count in 2..5_usize)(
            funds in prop::collection::vec(0..20_i128, count),
            queues in prop::collection::vec(
                prop::collection::vec(
                    prop::collection::vec((0..count, 1..25_i128), 1..3), 0..4), count),
        ) -> Vec<Payer> {
            let unit = |unit: &Vec<(usize, i128)>| unit.iter().map(|&(to, minor)| Pay { to, minor }).collect();
            funds.iter().zip(&queues).map(|(&funds, queue)| Payer { funds, units: queue.iter().map(unit).collect() }).collect()
        }
    }

    proptest! {
        #[test]
        fn shortening_finds_what_trying_all_finds(payers in some_payers()) {
            let all = by_trying_all(&payers, 100_000).expect("small");
            prop_assert_eq!(greatest(&payers), all);
        }

        #[test]
        fn more_money_never_settles_less(payers in some_payers(), who in 0..4_usize, more in 0..20_i128) {
            let mut richer = payers.clone();
            let who = who % payers.len();
            richer[who].funds += more;
            let (before, after) = (greatest(&payers), greatest(&richer));
            prop_assert!(before.iter().zip(&after).all(|(before, after)| before <= after));
        }
    }
}
