//! What the meters promise, in virtual time.

use clearspan_ledger::{Bic, Timestamp};

use super::{Limit, Rate, RateLimits, Rates};
use crate::engine::Lane;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

fn bic(number: u8) -> Bic {
    let code = [
        b'B',
        b'A',
        b'N',
        b'K',
        b'A' + number,
        b'A',
        b'D',
        b'E',
        b'X',
        b'X',
        b'X',
    ];
    Bic::parse(&code).unwrap()
}

fn at(ns: u64) -> Timestamp {
    Timestamp::from_ns(1_000 * SECOND + ns)
}

fn each(payments_per_s: u64) -> RateLimits {
    RateLimits {
        each: Rate {
            payments_per_s,
            bytes_per_s: 0,
        },
        burst_ns: SECOND,
        ..RateLimits::default()
    }
}

fn node(node_payments_per_s: u64) -> RateLimits {
    RateLimits {
        node_payments_per_s,
        ..each(0)
    }
}

/// A deterministic stream of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

#[test]
fn without_limits_everything_passes_and_nothing_is_kept() {
    let rates = Rates::new(RateLimits::default());
    for _ in 0..1_000 {
        assert_eq!(
            rates.take_payments(bic(0), Lane::Bulk, u64::MAX, at(0)),
            Ok(())
        );
        assert_eq!(rates.take_bytes(bic(0), u64::MAX, at(0)), Ok(()));
    }
    assert!(rates.levels(at(0)).is_empty());
    assert_eq!(rates.node_level(at(0)), None);
}

#[test]
fn a_rate_is_what_passes_in_the_long_run_and_the_wait_that_is_told_is_exact() {
    let rates = Rates::new(each(100));
    let (mut now, mut passed) = (0, 0);
    while now < 60 * SECOND {
        match rates.take_payments(bic(0), Lane::Bulk, 7, at(now)) {
            Ok(()) => passed += 7,
            Err(told) => {
                assert_eq!(told.limit, Limit::Payments(100));
                // A nanosecond before it, it would be refused still.
                let early = at(now + told.wait_ns - 1);
                assert!(rates.take_payments(bic(0), Lane::Bulk, 7, early).is_err());
                now += told.wait_ns;
            }
        }
    }
    // A minute's worth and what was saved up at the beginning.
    assert!((6_093..=6_107).contains(&passed), "{passed}");
    let [(_, level)] = rates.levels(at(now))[..] else {
        panic!("one has asked");
    };
    assert!(level.refused_bulk > 0);
    assert_eq!((level.refused_urgent, level.refused_bytes), (0, 0));
    assert_eq!((level.urgent, level.bytes), (Some(100), None));
}

#[test]
fn what_is_larger_than_the_bucket_passes_when_it_is_full_and_is_paid_off() {
    let rates = Rates::new(each(100));
    assert_eq!(
        rates.take_payments(bic(0), Lane::Bulk, 5_000, at(0)),
        Ok(())
    );
    let told = rates
        .take_payments(bic(0), Lane::Bulk, 1, at(0))
        .unwrap_err();
    assert_eq!(told.wait_ns, 49 * SECOND + 10 * MS);
    assert_eq!(
        rates.take_payments(bic(0), Lane::Bulk, 1, at(told.wait_ns)),
        Ok(())
    );
}

#[test]
fn the_named_have_their_own_rate_and_one_is_nothing_to_another() {
    let mut limits = each(10);
    let many = Rate {
        payments_per_s: 1_000,
        bytes_per_s: 0,
    };
    limits.named.insert(bic(1), many);
    let rates = Rates::new(limits);
    let passed = |who| {
        (0..2_000)
            .filter(|_| rates.take_payments(who, Lane::Bulk, 1, at(0)).is_ok())
            .count()
    };
    assert_eq!(
        [passed(bic(0)), passed(bic(1)), passed(bic(2))],
        [10, 1_000, 10]
    );
}

#[test]
fn bytes_leave_room_for_what_may_be_urgent() {
    let mut limits = each(0);
    limits.each.bytes_per_s = 1 << 20;
    let rates = Rates::new(limits);
    while rates.take_bytes(bic(0), 100 << 10, at(0)).is_ok() {}
    let told = rates.take_bytes(bic(0), 100 << 10, at(0)).unwrap_err();
    assert_eq!(told.limit, Limit::Bytes(1 << 20));
    let small = (0..1_000).filter(|_| rates.take_bytes(bic(0), 4 << 10, at(0)).is_ok());
    assert!(small.count() >= 25, "a tenth was left");
}

/// Whether each urgent message passes, with or without floods of bulk around it.
fn urgent_decisions(limits: RateLimits, flood: bool) -> Vec<bool> {
    let rates = Rates::new(limits);
    let mut numbers = Numbers(7);
    let mut decisions = Vec::new();
    for step in 0..20_000 {
        let now = at(step * MS);
        let (who, payments) = (numbers.below(4), 1 + numbers.below(8));
        let asks = numbers.below(10) < 3;
        if flood {
            for who in 0..8 {
                let _ = rates.take_payments(bic(who), Lane::Bulk, 500, now);
            }
        }
        if asks {
            let who = bic(u8::try_from(who).unwrap());
            let taken = rates.take_payments(who, Lane::Urgent, payments, now);
            decisions.push(taken.is_ok());
        }
    }
    decisions
}

#[test]
fn no_flood_of_bulk_changes_what_becomes_of_an_urgent_message() {
    for node_payments_per_s in [0, 200, 1_000, 2_000] {
        for payments_per_s in [0, 100, 500] {
            let limits = RateLimits {
                node_payments_per_s,
                ..each(payments_per_s)
            };
            let alone = urgent_decisions(limits.clone(), false);
            assert_eq!(alone, urgent_decisions(limits, true));
            // The tight ones refuse, the wide ones do not: both sides of the comparison are seen.
            let refused = alone.iter().filter(|passed| !**passed).count();
            let is_tight = matches!(node_payments_per_s, 1..=1_000) || payments_per_s == 100;
            assert_eq!(
                refused > 0,
                is_tight,
                "{node_payments_per_s} {payments_per_s}: {refused}"
            );
        }
    }
}

#[test]
fn bulk_leaves_the_reserved_part_and_gets_what_urgent_messages_leave() {
    let rates = Rates::new(node(1_000));
    let passed = (0..2_000).filter(|_| rates.take_payments(bic(0), Lane::Bulk, 1, at(0)).is_ok());
    assert_eq!(passed.count(), 900);
    // 600 urgent ones each second leave 400 to bulk.
    let (mut urgent, mut bulk) = (0, 0);
    for ms in 0..20_000 {
        let now = at(ms * MS);
        if ms % 5 != 4 {
            let one = rates.take_payments(bic(1), Lane::Urgent, 1, now).is_ok();
            urgent += u64::from(one);
        }
        while rates.take_payments(bic(0), Lane::Bulk, 1, now).is_ok() {
            bulk += 1;
        }
    }
    assert_eq!(urgent, 16_000);
    assert!((3_900..=4_001).contains(&bulk), "{bulk}");
}

#[test]
fn who_keeps_to_its_fair_part_is_not_refused_for_those_who_do_not() {
    for lane in [Lane::Bulk, Lane::Urgent] {
        let rates = Rates::new(node(1_000));
        let (mut refused, mut others) = (0, 0);
        for ms in 0..30_000 {
            let now = at(ms * MS);
            // Three flood.
            for who in 1..4 {
                for _ in 0..5 {
                    others += u64::from(rates.take_payments(bic(who), lane, 1, now).is_ok());
                }
            }
            // One asks for 200 each second, less than a fourth.
            if ms % 5 == 0 {
                refused += u64::from(rates.take_payments(bic(0), lane, 1, now).is_err());
            }
        }
        assert_eq!(refused, 0, "{lane:?}");
        assert!((23_500..=25_000).contains(&others), "{lane:?}: {others}");
    }
}

#[test]
fn what_all_ask_for_is_divided_evenly_and_one_alone_gets_all() {
    let rates = Rates::new(node(1_000));
    let mut alone = 0;
    for ms in 0..20_000 {
        while rates
            .take_payments(bic(0), Lane::Bulk, 1, at(ms * MS))
            .is_ok()
        {
            alone += 1;
        }
    }
    assert!((20_000..=21_000).contains(&alone), "{alone}");
    let rates = Rates::new(node(1_000));
    let mut passed = [0_u64; 4];
    for ms in 0..60_000 {
        // The first asks ten times as often as the last.
        for (who, passed) in (0..).zip(&mut passed) {
            for _ in 0..10 / (1 + 3 * u64::from(who)) {
                *passed += u64::from(
                    rates
                        .take_payments(bic(who), Lane::Bulk, 1, at(ms * MS))
                        .is_ok(),
                );
            }
        }
    }
    let [least, most] = [passed.iter().min().unwrap(), passed.iter().max().unwrap()];
    assert!(passed.iter().sum::<u64>() >= 59_000, "{passed:?}");
    assert!(least * 10 >= most * 7, "{passed:?}");
}

#[test]
fn a_clock_that_stands_or_steps_back_gives_nothing() {
    let rates = Rates::new(each(10));
    while rates
        .take_payments(bic(0), Lane::Bulk, 1, at(SECOND))
        .is_ok()
    {}
    for ns in [0, SECOND / 2, SECOND] {
        assert!(rates.take_payments(bic(0), Lane::Bulk, 1, at(ns)).is_err());
    }
}
