//! A small history in which everything holds, for checks to be tried on.

use std::collections::BTreeMap;

use crate::ending::{Cycle, Ending, Net, View};
use crate::messages::{Content, Message, Payment};
use crate::record::{Account, Asked, Document, History, Look, Op, Position, Receipt, Taken, Told};
use crate::world::{Bank, CURRENCIES, OPENING_MINOR, Role};

const TELLER: Bank = Bank::new(Role::Teller, 0);
const PARTNER: Bank = Bank::new(Role::Partner, 0);
const NETTER: Bank = Bank::new(Role::Netter, 0);
const RECEIVER: Bank = Bank::new(Role::Netter, 1);

fn payment(id: &str, to: Bank, minor: u64) -> Payment {
    Payment {
        id: id.to_owned(),
        to,
        currency: "EUR",
        minor,
        note: String::new(),
    }
}

fn receipt(number: u64, name: &str, answers: Option<&str>, forwards: &[&str]) -> Receipt {
    Receipt {
        number,
        documents: vec![Document {
            name: name.to_owned(),
            hash: number,
            answers: answers.map(str::to_owned),
            forwards: forwards.iter().map(|id| (*id).to_owned()).collect(),
        }],
    }
}

/// Adds a forwarded payment to a bank's output.
pub(super) fn forward(view: &mut View, to: Bank, id: &str) {
    let stream = view.streams.entry(to).or_default();
    let number = stream.len() as u64 + 1;
    stream.push(receipt(number, "pacs.008.001.08", None, &[id]));
}

fn balance(bank: Bank) -> i128 {
    let change = match bank {
        TELLER => -150,
        PARTNER => 150,
        NETTER => -10,
        RECEIVER => 10,
        _ => 0,
    };
    OPENING_MINOR + change
}

fn view(node: &str) -> View {
    let net = |bank, paid, received| Net {
        bank,
        currency: "EUR".to_owned(),
        opening: OPENING_MINOR,
        paid,
        received,
        closing: OPENING_MINOR - paid + received,
    };
    let mut streams: BTreeMap<Bank, Vec<Receipt>> =
        Bank::all().map(|bank| (bank, Vec::new())).collect();
    let answers = |ids: [&str; 2]| {
        let ids = ids.iter().zip(1..);
        ids.map(|(id, number)| receipt(number, "pacs.002.001.10", Some(id), &[]))
            .collect()
    };
    streams.insert(TELLER, answers(["M1", "M2"]));
    streams.insert(NETTER, answers(["N3", "N3"]));
    let mut view = View {
        node: node.to_owned(),
        accounts: Bank::all()
            .flat_map(|bank| {
                CURRENCIES.map(|(currency, _)| Account {
                    bank,
                    currency: currency.to_owned(),
                    minor: if currency == "EUR" {
                        balance(bank)
                    } else {
                        OPENING_MINOR
                    },
                    at: Position {
                        shard: bank.home,
                        index: 9,
                    },
                })
            })
            .collect(),
        cycles: vec![Cycle {
            number: 1,
            state: "settled".to_owned(),
            results: vec![net(NETTER, 10, 0), net(RECEIVER, 0, 10)],
        }],
        streams,
    };
    forward(&mut view, PARTNER, "P1");
    forward(&mut view, PARTNER, "P2");
    forward(&mut view, RECEIVER, "Q3.0");
    view
}

/// Two urgent payments, one of them sent twice, a package of which one payment is cancelled, one refused message, a few
/// reads.
pub(super) fn healthy() -> (History, Ending) {
    let kept = payment("Q3.0", RECEIVER, 10);
    let cancelled = payment("Q3.1", Bank::new(Role::Crosser, 1), 20);
    let urgent = |id: &str, payment| Message::new(id.to_owned(), TELLER, Content::Urgent(payment));
    let messages = vec![
        urgent("M1", payment("P1", PARTNER, 100)),
        urgent("M2", payment("P2", PARTNER, 50)),
        Message::new(
            "N3".to_owned(),
            NETTER,
            Content::Package(vec![kept, cancelled.clone()]),
        ),
        Message::new(
            "C4".to_owned(),
            NETTER,
            Content::Cancel {
                package: "N3".to_owned(),
                payment: cancelled,
            },
        ),
        urgent("M5", payment("P5", PARTNER, 7)),
    ];
    let op = |node: &str, (from_ns, to_ns), asked, told| Op {
        client: "test".to_owned(),
        node: node.to_owned(),
        asked,
        from_ns,
        to_ns,
        told,
    };
    let taken = |message_no, answer_no, settled: Option<u64>| Taken {
        repeat: false,
        message_no,
        answer_no,
        refused: 0,
        hash: message_no,
        settled: settled.map(|index| Position { shard: 0, index }),
        cancelled: false,
    };
    let first = taken(0, 1, Some(5));
    let read = |minor, index| Account {
        bank: TELLER,
        currency: "EUR".to_owned(),
        minor,
        at: Position { shard: 0, index },
    };
    let all = view("A1").accounts;
    let ops = vec![
        op("A1", (10, 20), Asked::Submit(0), Told::Taken(first.clone())),
        op(
            "B1",
            (21, 25),
            Asked::Accounts {
                bank: Some(TELLER),
                stale: false,
            },
            Told::Accounts(vec![read(OPENING_MINOR - 100, 5)]),
        ),
        op(
            "B1",
            (30, 40),
            Asked::Submit(1),
            Told::Taken(taken(1, 2, Some(7))),
        ),
        op(
            "B1",
            (41, 45),
            Asked::Submit(0),
            Told::Taken(Taken {
                repeat: true,
                ..first
            }),
        ),
        op(
            "A1",
            (10, 20),
            Asked::Submit(2),
            Told::Taken(taken(2, 1, None)),
        ),
        op(
            "A1",
            (30, 40),
            Asked::Submit(3),
            Told::Taken(Taken {
                cancelled: true,
                ..taken(3, 2, None)
            }),
        ),
        op(
            "A1",
            (46, 47),
            Asked::Submit(4),
            Told::Refused("NO_QUORUM".to_owned()),
        ),
        op(
            "A1",
            (50, 55),
            Asked::Payment {
                id: "P2".to_owned(),
            },
            Told::Payment("settled".to_owned(), Some(Position { shard: 0, index: 7 })),
        ),
        op(
            "B1",
            (50, 55),
            Asked::Accounts {
                bank: None,
                stale: true,
            },
            Told::Accounts(all),
        ),
        op(
            "A1",
            (60, 65),
            Asked::Receipts {
                bank: PARTNER,
                from: 1,
            },
            Told::Receipts(view("A1").streams[&PARTNER][..1].to_vec()),
        ),
    ];
    let look = |node: &str| Look {
        node: node.to_owned(),
        at: Position { shard: 0, index: 9 },
        digest: "same".to_owned(),
    };
    let history = History {
        messages,
        ops,
        looks: vec![look("A1"), look("B1")],
        ..History::default()
    };
    let ending = Ending {
        views: vec![view("A1"), view("B1")],
    };
    (history, ending)
}
