//! Random cases: whatever a plain netting makes passes, its result is the greatest set found by trying all, and no
//! figure can be changed unseen.

use crate::netting::{Bank, Case, Made, NAMES, Payment, net};
use clearspan_audit::{NetsBy, Outcome, verify_cycle};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;
use std::fs;

/// Up to four banks and twelve payments; `urgent_max` changes of funds between rounds.
fn cases(urgent_max: usize) -> impl Strategy<Value = Case> {
    (2..5_usize).prop_flat_map(move |count| {
        let bank = (0..30_i128, 0..6_i128, 0..2_u32, any::<bool>());
        let payment = (0..count, 1..count, 1..20_u64, any::<bool>());
        let urgent = (2..5_usize, 0..count, -20..20_i128);
        (
            vec(bank, count),
            vec(payment, 0..13),
            vec(urgent, 0..=urgent_max),
        )
            .prop_map(|(banks, payments, urgent)| build(&banks, &payments, urgent))
    })
}

fn build(
    banks: &[(i128, i128, u32, bool)],
    payments: &[(usize, usize, u64, bool)],
    urgent: Vec<(usize, usize, i128)>,
) -> Case {
    let named =
        banks
            .iter()
            .zip(NAMES)
            .map(|(&(balance, credit_line, shard, by_package), name)| {
                let nets_by = if by_package {
                    NetsBy::Package
                } else {
                    NetsBy::Payment
                };
                Bank {
                    name,
                    shard,
                    nets_by,
                    balance,
                    credit_line,
                }
            });
    let mut unit = vec![1; banks.len()];
    let queued = payments.iter().map(|&(from, step, amount, new_unit)| {
        unit[from] += u64::from(new_unit);
        Payment {
            from,
            to: (from + step) % banks.len(),
            amount,
            unit: unit[from],
        }
    });
    let payments = queued.collect();
    Case {
        banks: named.collect(),
        payments,
        urgent,
    }
}

/// The greatest feasible prefix vector by trying every one of them.
fn greatest_of_all(case: &Case) -> Vec<usize> {
    let banks = case.banks.len();
    let queue = |bank: usize| {
        case.payments
            .iter()
            .filter(move |payment| payment.from == bank)
    };
    let stops: Vec<Vec<usize>> = (0..banks)
        .map(|bank| {
            let units: Vec<u64> = queue(bank).map(|payment| payment.unit).collect();
            let whole = |&at: &usize| at == 0 || at == units.len() || units[at] != units[at - 1];
            let by_package = case.banks[bank].nets_by == NetsBy::Package;
            (0..=units.len())
                .filter(|at| !by_package || whole(at))
                .collect()
        })
        .collect();
    let mut best = vec![0; banks];
    let mut place = vec![0; banks];
    loop {
        let vector: Vec<usize> = place
            .iter()
            .zip(&stops)
            .map(|(&at, stops)| stops[at])
            .collect();
        let mut funds: Vec<i128> = case
            .banks
            .iter()
            .map(|bank| bank.balance + bank.credit_line)
            .collect();
        for (bank, &taken) in vector.iter().enumerate() {
            for payment in queue(bank).take(taken) {
                funds[payment.from] -= i128::from(payment.amount);
                funds[payment.to] += i128::from(payment.amount);
            }
        }
        if funds.iter().all(|&funds| funds >= 0) {
            best = best
                .iter()
                .zip(&vector)
                .map(|(&best, &here)| best.max(here))
                .collect();
        }
        let Some(next) = (0..banks).find(|&bank| place[bank] + 1 < stops[bank].len()) else {
            return best;
        };
        place[next] += 1;
        place[..next].fill(0);
    }
}

/// Every number of a JSON text that the certificate's own rules pin down, by its path.
fn pinned(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(name, value)| pinned(value, &format!("{path}/{name}"), found)),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(at, value)| pinned(value, &format!("{path}/{at}"), found));
        }
        _ => {
            // What funds there were, and when, is the journal's to say; a drop's availability is bound by its shortfall.
            let claimed = path.contains("/accounts/") && path.ends_with("available_minor")
                || path.ends_with("credit_line_minor");
            let figure =
                path.ends_with("_minor") || path.ends_with("count") || path.ends_with("/round");
            if figure && !claimed {
                found.push(path.to_owned());
            }
        }
    }
}

fn change(value: &mut Value, by: i64) {
    *value = match &*value {
        Value::String(minor) => {
            Value::String((minor.parse::<i128>().expect("an amount") + i128::from(by)).to_string())
        }
        number => Value::from(number.as_u64().expect("a count").wrapping_add_signed(by)),
    };
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_the_rules_make_passes_and_is_the_greatest(case in cases(0)) {
        let made = net(&case);
        let settled: Vec<usize> = made.settled().iter().map(|&count| usize::try_from(count).expect("small")).collect();
        prop_assert_eq!(settled, greatest_of_all(&case));
        prop_assert_eq!(made.verify().map(|verdict| verdict.availability_moved), Ok(Vec::new()));
    }

    #[test]
    fn urgent_payments_between_rounds_are_no_fault(case in cases(4)) {
        prop_assert!(net(&case).verify().is_ok());
    }

    #[test]
    fn no_pinned_figure_can_be_changed(case in cases(0), pick in any::<prop::sample::Index>(), by in 1..50_i64, up: bool) {
        let mut made = net(&case);
        let mut value = serde_json::to_value(&made.certificate).expect("JSON");
        let mut paths = Vec::new();
        pinned(&value, "", &mut paths);
        let path = pick.get(&paths);
        change(value.pointer_mut(path).expect("a path of this value"), if up { by } else { -by });
        made.certificate = serde_json::from_value(value).expect("a certificate");
        prop_assert!(made.verify().is_err(), "{}", path);
    }

    #[test]
    fn no_line_can_be_flipped_moved_or_doubled(case in cases(0), pick in any::<prop::sample::Index>(), how in 0..3_u8) {
        prop_assume!(!case.payments.is_empty());
        let mut made = net(&case);
        let at = pick.index(made.lines.len());
        tamper(&mut made, at, how);
        made.sum_again();
        prop_assert!(made.verify().is_err());
    }

    #[test]
    fn mangled_files_are_refused_and_never_break_the_verifier(
        case in cases(0), inputs: bool, at in any::<prop::sample::Index>(), bytes in vec(any::<u8>(), 0..6), cut in 0..6_usize,
    ) {
        let root = tempfile::tempdir().expect("a directory");
        let dir = root.path().join("cycle-0001");
        net(&case).write(&dir);
        let file = dir.join(if inputs { "inputs.csv" } else { "certificate.json" });
        let sound = fs::read(&file).expect("read");
        let start = at.index(sound.len());
        let mut mangled = sound.clone();
        mangled.splice(start..sound.len().min(start + cut), bytes);
        fs::write(&file, &mangled).expect("write");
        prop_assert_eq!(verify_cycle(&dir, None).is_ok(), mangled == sound);
    }
}

/// Another amount or receiver can make another sound cycle; everything else is refused by meaning.
fn tamper(made: &mut Made, at: usize, how: u8) {
    let line = &mut made.lines[at];
    match how {
        0 => {
            line.outcome = if line.outcome == Outcome::Settled {
                Outcome::Dropped
            } else {
                Outcome::Settled
            };
        }
        1 => line.position += 1,
        _ => {
            let again = line.clone();
            made.lines.insert(at, again);
        }
    }
}
