//! A day written down by hand passes; one word changed in it is found, where it was changed.

use super::{Difference, Logged, Replay, compare};
use crate::plain::{
    Act, Advice, Answer, Asked, Class, Entry, Holder, Kind, Letter, Message, Op, Picture, Reply,
    Rules, Terms, Times,
};

const SHARDS: usize = 2;

fn rules(shard: usize) -> Rules {
    Rules {
        shard,
        shards: SHARDS,
        retention_days: 3,
        amount_max: 1000,
        page_len: 3,
        gap_timeout_ns: 1000,
    }
}

fn euro(bank: &str) -> Holder {
    Holder::new(bank, "EUR")
}

fn bank(name: &str, home: usize) -> [Act; 3] {
    [
        Act::AddBank(Terms {
            bank: name.to_owned(),
            home,
            numbered: false,
            whole: false,
            by_package: false,
            name_len: name.len(),
        }),
        Act::OpenAccount {
            holder: euro(name),
            line: 0,
            listed: true,
        },
        Act::Fund {
            reference: format!("F{name}"),
            holder: euro(name),
            minor: 100,
        },
    ]
}

fn pay(id: &str, from: &str, to: &str, minor: u64) -> Op {
    Op::Submit(Message {
        kind: Kind::CustomerTransfer,
        bank: from.to_owned(),
        id: id.to_owned(),
        digest: 7,
        sequence: None,
        gross: Some((Class::Normal, false)),
        faults: Default::default(),
        payments: vec![Asked {
            key: id.to_owned(),
            content: 1,
            minor,
            currency: "EUR".to_owned(),
            listed: true,
            to: Some(to.to_owned()),
            date: Some(1),
            faults: Default::default(),
            times: Times::default(),
            original: None,
        }],
        bytes: 96,
    })
}

fn log(ops: Vec<Op>) -> Vec<Logged> {
    (1..)
        .zip(ops)
        .map(|(index, op)| Logged {
            entry: Entry {
                index,
                time_ns: index,
                op,
            },
            applied: None,
            told: Vec::new(),
        })
        .collect()
}

/// A in shard 0 pays B in shard 1, which pays it on to A.
fn day() -> [Vec<Logged>; SHARDS] {
    let acts: Vec<Act> = [bank("A", 0), bank("B", 1)]
        .into_iter()
        .flatten()
        .chain([Act::OpenDay(1)])
        .collect();
    let credit = |shard, from: &str, to: &str, minor| {
        Letter::Credit(Advice {
            payment: (shard, 0),
            message: 0,
            sender: from.to_owned(),
            to: euro(to),
            minor,
        })
    };
    let mut zero = vec![Op::Found(rules(0))];
    zero.extend(acts.iter().cloned().map(Op::Operate));
    zero.push(pay("M1", "A", "B", 60));
    zero.push(Op::Deliver {
        from: 1,
        first: 1,
        letters: vec![credit(1, "B", "A", 130)],
    });
    let mut letters: Vec<Letter> = acts.into_iter().map(Letter::Act).collect();
    letters.push(credit(0, "A", "B", 60));
    let one = vec![
        Op::Found(rules(1)),
        Op::Deliver {
            from: 0,
            first: 1,
            letters: letters[..7].to_vec(),
        },
        pay("M1", "B", "A", 130),
        Op::Deliver {
            from: 0,
            first: 7,
            letters: letters[6..].to_vec(),
        },
    ];
    let mut logs = [log(zero), log(one)];
    // Nobody has 130 at first: it waits, and what came in pays for it.
    logs[1][2].told.push(Reply::Taken {
        message: 0,
        answer: 2,
        accepted: 1,
        refused: 0,
    });
    logs[1][3].applied = Some(Answer {
        reply: Reply::Done,
        released: Vec::new(),
    });
    logs
}

fn pictures(replay: &Replay) -> Vec<Picture> {
    (0..SHARDS)
        .map(|shard| replay.shard(shard).picture())
        .collect()
}

fn found(logs: &[Vec<Logged>]) -> Difference {
    Replay::whole(logs).expect_err("something was changed")
}

#[test]
fn a_day_passes() {
    let replay = Replay::whole(&day()).expect("nothing is wrong");
    let balance = |shard: usize, bank: &str| pictures(&replay)[shard].accounts[&euro(bank)].0;
    assert_eq!((balance(0, "A"), balance(1, "B")), (170, 30));
    let seen = pictures(&replay);
    for (shard, picture) in seen.iter().enumerate() {
        assert_eq!(compare(shard, picture, picture), Ok(()));
    }
}

#[test]
fn another_answer_is_found() {
    let mut logs = day();
    logs[1][2].told[0] = Reply::Repeat {
        message: 0,
        answer: 2,
    };
    assert!(found(&logs).place.starts_with("shard 1, index 3: answer"));
    let mut logs = day();
    logs[1][3].applied = Some(Answer {
        reply: Reply::Done,
        released: vec![(1, "M9".to_owned())],
    });
    assert!(found(&logs).place.starts_with("shard 1, index 4: outcome"));
}

#[test]
fn another_letter_is_found() {
    let mut logs = day();
    if let Op::Deliver { letters, .. } = &mut logs[0][9].entry.op
        && let Letter::Credit(advice) = &mut letters[0]
    {
        advice.minor += 1;
    }
    assert_eq!(found(&logs).place, "shard 0, index 10: letter 1 of shard 1");
}

#[test]
fn a_letter_that_nobody_sent_is_found() {
    let mut logs = day();
    if let Op::Deliver { first, .. } = &mut logs[0][9].entry.op {
        *first = 2;
    }
    let difference = found(&logs);
    assert_eq!(difference.place, "shard 0, index 10: letters from shard 1");
    assert_eq!(difference.expected, "that 1 were sent");
}

#[test]
fn another_state_is_found_by_what_differs() {
    let replay = Replay::whole(&day()).expect("nothing is wrong");
    let seen = pictures(&replay).remove(1);
    let place = |changed: &dyn Fn(&mut Picture)| {
        let mut other = seen.clone();
        changed(&mut other);
        compare(1, &seen, &other).expect_err("changed").place
    };
    let balance = place(&|picture| {
        picture
            .accounts
            .values_mut()
            .for_each(|account| account.0 += 1)
    });
    assert!(balance.starts_with("shard 1: account"), "{balance}");
    let payment = place(&|picture| picture.payments.clear());
    assert!(payment.starts_with("shard 1: payment 0"), "{payment}");
    let lost = place(&|picture| {
        picture.outputs.values_mut().for_each(|output| {
            output.items.pop();
        });
    });
    assert!(lost.starts_with("shard 1: kept items"), "{lost}");
    let other = place(&|picture| {
        picture
            .outputs
            .values_mut()
            .for_each(|output| output.items[0].number += 1);
    });
    assert!(other.starts_with("shard 1: output 1 of B"), "{other}");
}
