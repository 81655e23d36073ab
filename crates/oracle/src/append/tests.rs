//! Anomalies of every class, planted; and histories of a store that makes none.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Class, Dependency, Op, Outcome, Transaction, check};

fn append(list: &str, value: u64) -> Op {
    Op::Append {
        list: list.to_owned(),
        value,
    }
}

fn read(list: &str, seen: &[u64]) -> Op {
    Op::Read {
        list: list.to_owned(),
        seen: seen.to_vec(),
    }
}

/// At the same time as all others.
fn done(ops: &[Op]) -> Transaction {
    at(0, 100, ops)
}

fn at(invoked_ns: u64, returned_ns: u64, ops: &[Op]) -> Transaction {
    Transaction {
        invoked_ns,
        returned_ns,
        outcome: Outcome::Done,
        ops: ops.to_vec(),
    }
}

fn with(outcome: Outcome, ops: &[Op]) -> Transaction {
    Transaction {
        outcome,
        ..done(ops)
    }
}

fn classes(history: &[Transaction]) -> Vec<Class> {
    check(history).iter().map(|anomaly| anomaly.class).collect()
}

fn worst(history: &[Transaction]) -> Option<Class> {
    classes(history).first().copied()
}

#[test]
fn a_quiet_history_is_clean() {
    let history = [
        at(0, 1, &[append("a", 1), append("b", 1)]),
        at(2, 3, &[read("a", &[1]), append("a", 2), read("a", &[1, 2])]),
        at(4, 5, &[read("a", &[1, 2]), read("b", &[1]), read("c", &[])]),
    ];
    assert_eq!(check(&history), []);
}

#[test]
fn a_history_in_which_a_value_was_appended_twice_is_malformed() {
    let history = [done(&[append("a", 1)]), done(&[append("a", 1)])];
    assert_eq!(worst(&history), Some(Class::Malformed));
}

#[test]
fn garbage() {
    assert_eq!(worst(&[done(&[read("a", &[7])])]), Some(Class::Garbage));
    let twice = [done(&[append("a", 1)]), done(&[read("a", &[1, 1])])];
    assert_eq!(worst(&twice), Some(Class::Garbage));
}

#[test]
fn a_transaction_sees_itself() {
    let blind = [done(&[append("a", 1), read("a", &[])])];
    assert_eq!(worst(&blind), Some(Class::Internal));
    let fickle = [
        done(&[append("a", 1)]),
        done(&[read("a", &[]), read("a", &[1])]),
    ];
    assert_eq!(worst(&fickle), Some(Class::Internal));
}

#[test]
fn reads_that_fork() {
    let history = [
        done(&[append("a", 1)]),
        done(&[append("a", 2)]),
        done(&[read("a", &[1, 2])]),
        done(&[read("a", &[2])]),
    ];
    assert_eq!(worst(&history), Some(Class::IncompatibleOrder));
}

#[test]
fn g1a_aborted_read() {
    let history = [
        with(Outcome::Refused, &[append("a", 1)]),
        done(&[read("a", &[1])]),
    ];
    assert_eq!(worst(&history), Some(Class::AbortedRead));
}

#[test]
fn g1b_intermediate_read() {
    let history = [
        done(&[append("a", 1), append("a", 2)]),
        done(&[read("a", &[1])]),
    ];
    assert_eq!(worst(&history), Some(Class::IntermediateRead));
}

#[test]
fn g0_write_cycle() {
    let history = [
        done(&[append("a", 1), append("b", 1)]),
        done(&[append("a", 2), append("b", 2)]),
        done(&[read("a", &[1, 2])]),
        done(&[read("b", &[2, 1])]),
    ];
    let found = check(&history);
    assert_eq!(found[0].class, Class::WriteCycle);
    assert_eq!(found[0].cycle.len(), 2);
    assert!(
        found[0]
            .cycle
            .iter()
            .all(|(_, by)| *by == Some(Dependency::Overwrites))
    );
}

#[test]
fn g1c_circular_information() {
    let history = [
        done(&[append("a", 1), read("b", &[1])]),
        done(&[append("b", 1), read("a", &[1])]),
    ];
    assert_eq!(worst(&history), Some(Class::CircularInformation));
}

#[test]
fn lost_update() {
    let history = [
        done(&[append("a", 1)]),
        done(&[read("a", &[1]), append("a", 2)]),
        done(&[read("a", &[1]), append("a", 3)]),
        done(&[read("a", &[1, 2, 3])]),
    ];
    assert_eq!(worst(&history), Some(Class::LostUpdate));
    // Also when nobody read what became of it.
    assert_eq!(worst(&history[..3]), Some(Class::LostUpdate));
}

#[test]
fn g_single_a_fractured_read() {
    let history = [
        done(&[append("a", 1), append("b", 1)]),
        done(&[read("a", &[1]), read("b", &[])]),
        done(&[read("b", &[1])]),
    ];
    assert_eq!(worst(&history), Some(Class::SingleAntiDependency));
}

#[test]
fn g2_write_skew() {
    let history = [
        done(&[read("a", &[]), append("b", 1)]),
        done(&[read("b", &[]), append("a", 1)]),
        done(&[read("a", &[1]), read("b", &[1])]),
    ];
    assert_eq!(worst(&history), Some(Class::AntiDependencyCycle));
}

#[test]
fn a_stale_read() {
    let history = [
        at(0, 1, &[append("a", 1)]),
        at(2, 3, &[read("a", &[])]),
        at(4, 5, &[read("a", &[1])]),
    ];
    assert_eq!(worst(&history), Some(Class::StaleRead));
    // Nothing is wrong with it when both were under way together, or nobody was told of the append.
    let mut together = history.clone();
    together[0].returned_ns = 2;
    assert_eq!(check(&together), []);
    let mut unknown = history;
    unknown[0].outcome = Outcome::Unknown;
    assert_eq!(check(&unknown), []);
}

#[test]
fn an_order_that_the_clock_denies() {
    let history = [
        at(0, 1, &[append("a", 1)]),
        at(2, 3, &[append("a", 2)]),
        at(4, 5, &[read("a", &[2, 1])]),
    ];
    assert_eq!(worst(&history), Some(Class::RealTimeCycle));
}

#[test]
fn what_nobody_knows_counts_when_it_was_seen() {
    let history = [
        with(Outcome::Unknown, &[append("a", 1)]),
        with(Outcome::Unknown, &[append("a", 2)]),
        done(&[read("a", &[2])]),
    ];
    assert_eq!(check(&history), []);
}

/// What a random client does in one transaction.
#[derive(Clone, Debug)]
struct Wish {
    reads: Vec<u8>,
    appends: Vec<u8>,
    /// How long before and after the moment at which it takes effect.
    before: u64,
    after: u64,
    fate: u8,
}

fn wish() -> impl Strategy<Value = Wish> {
    (
        prop::collection::vec(0..4_u8, 0..3),
        prop::collection::vec(0..4_u8, 0..3),
        0..60_u64,
        0..60_u64,
        0..10_u8,
    )
        .prop_map(|(reads, appends, before, after, fate)| Wish {
            reads,
            appends,
            before,
            after,
            fate,
        })
}

/// A store that takes one transaction after the other.
fn serial(wishes: &[Wish]) -> Vec<Transaction> {
    let mut lists: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut value = 0;
    let mut history = Vec::new();
    for (moment, wish) in (100..).step_by(10).zip(wishes) {
        let outcome = match wish.fate {
            0 => Outcome::Refused,
            1 | 2 => Outcome::Unknown,
            _ => Outcome::Done,
        };
        let takes_effect = wish.fate > 1;
        let mut ops = Vec::new();
        for list in &wish.reads {
            let list = list.to_string();
            let seen = lists.get(&list).cloned().unwrap_or_default();
            ops.push(read(&list, &seen));
        }
        for list in &wish.appends {
            value += 1;
            let list = list.to_string();
            ops.push(append(&list, value));
            if takes_effect {
                lists.entry(list).or_default().push(value);
            }
        }
        history.push(Transaction {
            invoked_ns: moment - wish.before,
            returned_ns: moment + wish.after,
            outcome,
            ops,
        });
    }
    history
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_serial_store_makes_no_anomaly(wishes in prop::collection::vec(wish(), 0..40)) {
        let history = serial(&wishes);
        prop_assert_eq!(check(&history), []);
    }

    /// A read that lost its last value: whoever appended it was answered before, so somebody must notice.
    #[test]
    fn a_shortened_read_is_noticed(wishes in prop::collection::vec(wish(), 1..30), who in any::<prop::sample::Index>()) {
        // Nothing overlaps, and everybody was answered.
        let quiet: Vec<Wish> = wishes.iter().map(|wish| Wish { before: 0, after: 0, fate: 9, ..wish.clone() }).collect();
        let mut history = serial(&quiet);
        let reads: Vec<(usize, usize)> = history.iter().enumerate().flat_map(|(at, transaction)| {
            let shows = |op: &Op| matches!(op, Op::Read { seen, .. } if !seen.is_empty());
            (0..transaction.ops.len()).filter(move |&op| shows(&transaction.ops[op])).map(move |op| (at, op))
        }).collect();
        prop_assume!(!reads.is_empty());
        let (at, op) = reads[who.index(reads.len())];
        if let Op::Read { seen, .. } = &mut history[at].ops[op] {
            seen.pop();
        }
        prop_assert_ne!(check(&history), []);
    }
}
