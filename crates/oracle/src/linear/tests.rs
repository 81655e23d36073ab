//! Anomalies planted, and small histories held against trying every order.

use proptest::prelude::*;

use super::{Account, Act, Fault, Operation, apply, check};

const STATES: usize = 100_000;

fn op(invoked_ns: u64, returned_ns: u64, act: Act) -> Operation {
    Operation {
        act,
        invoked_ns,
        returned_ns: Some(returned_ns),
    }
}

fn unknown(invoked_ns: u64, act: Act) -> Operation {
    Operation {
        act,
        invoked_ns,
        returned_ns: None,
    }
}

fn judge(operations: &[Operation]) -> Result<(), Fault> {
    let account = Account {
        opening: 100,
        floor: 0,
        operations: operations.to_vec(),
    };
    check(&account, STATES)
}

fn no_order(operation: usize) -> Result<(), Fault> {
    Err(Fault::NoOrder { operation })
}

#[test]
fn what_follows_from_an_order_is_linearizable() {
    let fine = [
        op(0, 1, Act::Moved(-40)),
        op(2, 9, Act::Moved(-10)),
        op(3, 4, Act::Read(60)),
        op(5, 6, Act::Read(50)),
        op(10, 11, Act::Short(51)),
    ];
    assert_eq!(judge(&fine), Ok(()));
}

#[test]
fn a_stale_read() {
    assert_eq!(
        judge(&[op(0, 1, Act::Moved(-40)), op(2, 3, Act::Read(100))]),
        no_order(1)
    );
}

#[test]
fn a_read_that_goes_back() {
    let history = [
        op(0, 9, Act::Moved(-40)),
        op(1, 2, Act::Read(60)),
        op(3, 4, Act::Read(100)),
    ];
    assert_eq!(judge(&history), no_order(2));
}

#[test]
fn a_read_from_the_future() {
    assert_eq!(
        judge(&[op(0, 1, Act::Read(60)), op(2, 3, Act::Moved(-40))]),
        no_order(0)
    );
}

#[test]
fn a_lost_update() {
    let history = [
        op(0, 5, Act::Moved(-40)),
        op(0, 5, Act::Moved(-30)),
        op(6, 7, Act::Read(60)),
    ];
    assert_eq!(judge(&history), no_order(2));
}

#[test]
fn money_that_moved_twice() {
    assert_eq!(
        judge(&[op(0, 1, Act::Moved(-40)), op(2, 3, Act::Read(20))]),
        no_order(1)
    );
}

#[test]
fn an_overdraft() {
    assert_eq!(
        judge(&[op(0, 5, Act::Moved(-60)), op(0, 6, Act::Moved(-60))]),
        no_order(1)
    );
}

#[test]
fn a_refusal_without_reason() {
    assert_eq!(judge(&[op(0, 1, Act::Short(100))]), no_order(0));
    let reason = [op(0, 9, Act::Moved(-1)), op(1, 2, Act::Short(100))];
    assert_eq!(judge(&reason), Ok(()));
}

#[test]
fn what_nobody_knows_may_have_happened_or_not() {
    let lost = unknown(0, Act::Moved(-40));
    assert_eq!(judge(&[lost, op(5, 6, Act::Read(100))]), Ok(()));
    assert_eq!(judge(&[lost, op(5, 6, Act::Read(60))]), Ok(()));
    assert_eq!(
        judge(&[lost, op(5, 6, Act::Read(100)), op(7, 8, Act::Read(60))]),
        Ok(())
    );
    let back = [lost, op(5, 6, Act::Read(60)), op(7, 8, Act::Read(100))];
    assert_eq!(judge(&back), no_order(2));
    assert_eq!(
        judge(&[unknown(7, Act::Moved(-40)), op(5, 6, Act::Read(60))]),
        no_order(1)
    );
    assert_eq!(
        judge(&[unknown(0, Act::Read(7)), unknown(0, Act::Short(1))]),
        Ok(())
    );
}

#[test]
fn it_says_so_when_there_is_too_much_to_follow() {
    let mut crowd: Vec<Operation> = (0..16).map(|at| op(0, 100, Act::Moved(1 << at))).collect();
    crowd.push(op(1, 2, Act::Read(-1)));
    let account = Account {
        opening: 100,
        floor: 0,
        operations: crowd,
    };
    assert_eq!(check(&account, 1000), Err(Fault::TooMany { operation: 16 }));
}

/// By the definition: some order of some of the operations, all answered ones among them, explains everything.
fn some_order(account: &Account, balance: i128, done: &mut Vec<usize>) -> bool {
    let all = 0..account.operations.len();
    if all
        .clone()
        .all(|at| done.contains(&at) || account.operations[at].returned_ns.is_none())
    {
        return true;
    }
    for at in all {
        let operation = &account.operations[at];
        let must_wait = (0..account.operations.len()).any(|other| {
            !done.contains(&other)
                && account.operations[other]
                    .returned_ns
                    .is_some_and(|returned| returned < operation.invoked_ns)
        });
        if done.contains(&at) || must_wait {
            continue;
        }
        if let Some(balance) = apply(account, balance, operation.act) {
            done.push(at);
            if some_order(account, balance, done) {
                return true;
            }
            done.pop();
        }
    }
    false
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (-3..4_i128).prop_map(Act::Moved),
        (0..5_i128).prop_map(Act::Short),
        (0..6_i128).prop_map(Act::Read),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn the_search_is_the_definition(
        opening in 0..4_i128,
        list in prop::collection::vec((act(), 0..12_u64, prop::option::weighted(0.8, 0..8_u64)), 0..7),
    ) {
        let operations: Vec<Operation> = list
            .into_iter()
            .map(|(act, invoked_ns, length)| Operation {
                act,
                invoked_ns,
                returned_ns: length.map(|length| invoked_ns + length),
            })
            .collect();
        let account = Account { opening, floor: 0, operations };
        prop_assert_eq!(check(&account, STATES).is_ok(), some_order(&account, opening, &mut Vec::new()));
    }

    /// A true account: each operation happens at its moment, and is asked before and answered after it.
    #[test]
    fn a_true_account_is_linearizable(
        list in prop::collection::vec((0..3_u8, 0..60_i128, 0..40_u64, 0..40_u64, 0..8_u8), 0..200),
    ) {
        let mut balance = 100;
        let mut operations = Vec::new();
        for (moment, (kind, minor, before, after, fate)) in (100..).step_by(10).zip(list) {
            let act = match kind {
                0 => Act::Read(balance),
                1 => Act::Moved(minor),
                _ if balance >= minor => Act::Moved(-minor),
                _ => Act::Short(minor),
            };
            let lost = fate == 0 && operations.len() < 20;
            // Of those that nobody knows of, every other one did not happen.
            if let Act::Moved(minor) = act && (!lost || moment % 20 == 0) {
                balance += minor;
            }
            operations.push(Operation { act, invoked_ns: moment - before, returned_ns: (!lost).then_some(moment + after) });
        }
        let account = Account { opening: 100, floor: 0, operations };
        let wrong = matches!(check(&account, 3000), Err(Fault::NoOrder { .. }));
        prop_assert!(!wrong);
    }
}
