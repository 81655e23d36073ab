//! The full record of a run: every message with its hash, every request with its times and its node, every answer or the
//! lack of one, and when which nodes were without a quorum. Checks look at nothing else.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::Mutex;

use clearspan_lab::clock::now_ns;
use serde::Serialize;

use crate::messages::Message;
use crate::world::Bank;

/// A position in a shard's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Position {
    pub(crate) shard: u16,
    pub(crate) index: u64,
}

/// An account as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Account {
    pub(crate) bank: Bank,
    pub(crate) currency: String,
    pub(crate) minor: i128,
    pub(crate) at: Position,
}

/// A document of a participant's output, as far as checks need it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Document {
    pub(crate) name: String,
    /// Of the bytes.
    pub(crate) hash: u64,
    /// The message that it answers.
    pub(crate) answers: Option<String>,
    /// Payments that it forwards.
    pub(crate) forwards: Vec<String>,
}

/// One number of a participant's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Receipt {
    pub(crate) number: u64,
    pub(crate) documents: Vec<Document>,
}

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Asked {
    /// To take a message, by its place in the record.
    Submit(usize),
    /// For one bank's accounts, or everybody's.
    Accounts { bank: Option<Bank>, stale: bool },
    /// What has become of a payment.
    Payment { id: String },
    /// For output from a number on.
    Receipts { bank: Bank, from: u64 },
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Told {
    /// Taken, now or before.
    Taken(Taken),
    Accounts(Vec<Account>),
    /// Its status, and where it settled.
    Payment(String, Option<Position>),
    Receipts(Vec<Receipt>),
    /// A refusal that says that nothing was done.
    Refused(String),
    /// No answer, or one that leaves it open.
    Unknown(String),
    /// Something that should never be answered here.
    Unexpected(String),
}

/// The answer to a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Taken {
    /// It had been taken before.
    pub(crate) repeat: bool,
    pub(crate) message_no: u64,
    pub(crate) answer_no: u64,
    /// Payments refused; a repeated answer does not say.
    pub(crate) refused: u32,
    /// Of the answer's documents.
    pub(crate) hash: u64,
    /// Where it settled, for an urgent payment.
    pub(crate) settled: Option<Position>,
    /// A cancellation that came in time.
    pub(crate) cancelled: bool,
}

/// A request and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Op {
    pub(crate) client: String,
    pub(crate) node: String,
    pub(crate) asked: Asked,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) told: Told,
}

/// From when to when certain nodes surely had no quorum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Dark {
    pub(crate) nodes: Vec<String>,
    pub(crate) from_ns: u64,
    /// Just before it was healed; still going on: none.
    pub(crate) to_ns: Option<u64>,
}

/// A state that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Look {
    pub(crate) node: String,
    pub(crate) at: Position,
    pub(crate) digest: String,
}

/// Everything that was seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) messages: Vec<Message>,
    pub(crate) ops: Vec<Op>,
    pub(crate) dark: Vec<Dark>,
    pub(crate) looks: Vec<Look>,
    /// What was done to the cluster, for whoever looks at a failure.
    pub(crate) acts: Vec<(u64, String)>,
}

/// What several threads write together.
#[derive(Debug, Default)]
pub(crate) struct Record(Mutex<History>);

impl Record {
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut History) -> T) -> T {
        work(&mut self.0.lock().expect("no thread panics while it writes"))
    }

    /// Notes a message; gives its place.
    pub(crate) fn message(&self, message: Message) -> usize {
        self.with(|history| {
            history.messages.push(message);
            history.messages.len() - 1
        })
    }

    pub(crate) fn act(&self, what: impl Into<String>) {
        let what = what.into();
        println!("{:>9} ms  {what}", now_ns() / 1_000_000 % 1_000_000_000);
        self.with(|history| history.acts.push((now_ns(), what)));
    }

    /// Acknowledged messages so far, through one of these nodes.
    pub(crate) fn acknowledged(&self, nodes: &[String]) -> usize {
        self.with(|history| {
            let ops = history.ops.iter();
            ops.filter(|op| matches!(op.told, Told::Taken(_)) && nodes.contains(&op.node))
                .count()
        })
    }

    /// Requests that were refused so far by one of these nodes.
    pub(crate) fn refused(&self, nodes: &[String]) -> usize {
        self.with(|history| {
            let ops = history.ops.iter();
            ops.filter(|op| matches!(op.told, Told::Refused(_)) && nodes.contains(&op.node))
                .count()
        })
    }

    /// Acknowledged messages of one bank.
    pub(crate) fn acknowledged_of(&self, bank: Bank) -> usize {
        let client = bank.bic();
        self.with(|history| {
            let ops = history.ops.iter();
            ops.filter(|op| matches!(op.told, Told::Taken(_)) && op.client == client)
                .count()
        })
    }

    /// The nodes through which messages of a shard's banks were acknowledged that were sent after this time.
    pub(crate) fn served_by(&self, home: u16, from_ns: u64) -> BTreeSet<String> {
        self.with(|history| {
            let ops = history.ops.iter().filter(|op| op.from_ns >= from_ns);
            ops.filter(|op| matches!(op.told, Told::Taken(_)))
                .filter(|op| {
                    let Asked::Submit(message) = op.asked else {
                        return false;
                    };
                    let message = history.messages.get(message);
                    message.is_some_and(|message| message.sender.home == home)
                })
                .map(|op| op.node.clone())
                .collect()
        })
    }

    /// Answers with output so far.
    pub(crate) fn receipts_read(&self) -> usize {
        self.with(|history| {
            let ops = history.ops.iter();
            ops.filter(|op| matches!(op.told, Told::Receipts(_)))
                .count()
        })
    }

    /// These nodes have no quorum from now on.
    pub(crate) fn darkens(&self, nodes: &[String]) {
        self.with(|history| {
            history.dark.push(Dark {
                nodes: nodes.to_vec(),
                from_ns: now_ns(),
                to_ns: None,
            });
        });
    }

    /// It is about to become light again.
    pub(crate) fn dawns(&self) {
        self.with(|history| {
            let now = now_ns();
            for dark in &mut history.dark {
                dark.to_ns.get_or_insert(now);
            }
        });
    }
}

impl History {
    /// Writes everything down, a line of JSON each.
    pub(crate) fn write(&self, path: &Path) -> std::io::Result<()> {
        fn lines<T: Serialize>(
            out: &mut BufWriter<File>,
            kind: &str,
            all: &[T],
        ) -> std::io::Result<()> {
            for one in all {
                let line = serde_json::json!({ kind: one });
                writeln!(out, "{line}")?;
            }
            Ok(())
        }
        let mut out = BufWriter::new(File::create(path)?);
        lines(&mut out, "act", &self.acts)?;
        lines(&mut out, "dark", &self.dark)?;
        lines(&mut out, "message", &self.messages)?;
        lines(&mut out, "op", &self.ops)?;
        lines(&mut out, "look", &self.looks)?;
        out.flush()
    }
}
