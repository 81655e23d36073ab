//! What participants and the operator did and saw, and what the shards' logs hold: all that a judge of a run needs, in the
//! order in which it began. Nothing in here is known to the nodes.

use bytes::Bytes;
use clearspan_ledger::entry::Command;
use clearspan_ledger::stream::Item;
use clearspan_ledger::{Bic, Currency, Outcome, ShardId};
use clearspan_node::engine::{Lane, ProposeError};
use clearspan_replica::EntryKind;

/// A run's record.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Commands, in the order in which they were issued.
    pub commands: Vec<Issued>,
    /// Reads that were answered, in the order of their answers.
    pub reads: Vec<Read>,
    /// By shard: all committed entries, from index 1 on.
    pub logs: Vec<Vec<Logged>>,
}

/// A command from its client's point of view.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The shard that it is for.
    pub shard: ShardId,
    /// What is asked.
    pub command: Command,
    /// The bank that asks, by its place; `None`: the operator.
    pub bank: Option<usize>,
    /// When it was first sent, in simulated nanoseconds.
    pub began_ns: u64,
    /// Its tries, one after another.
    pub attempts: Vec<Attempt>,
    /// The first answer.
    pub answer: Option<Outcome>,
    /// When that came; of no meaning without one.
    pub answered_ns: u64,
    /// Answers to earlier tries that came after the first answer.
    pub later_answers: Vec<Outcome>,
    /// Its queue.
    pub lane: Lane,
    /// Sent once and never again.
    pub once: bool,
    /// Nobody waits for it any more.
    pub ended: bool,
    /// The command that it repeats, bit for bit.
    pub repeats: Option<usize>,
}

impl Issued {
    /// Every answer that its client was given.
    pub fn answers(&self) -> impl Iterator<Item = &Outcome> {
        self.answer.iter().chain(&self.later_answers)
    }

    /// Whether its client cannot know whether it was done: there is no answer, and a try may have come through.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        self.answer.is_none() && self.attempts.iter().any(Attempt::is_in_doubt)
    }
}

/// One try of a command at one node.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The node, by its place.
    pub node: usize,
    /// When, in simulated nanoseconds.
    pub began_ns: u64,
    /// `None` while it is open, and for good when it was answered.
    pub refused: Option<ProposeError>,
}

impl Attempt {
    /// Whether it may have been done, for all that its client was told.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        matches!(
            self.refused,
            None | Some(
                ProposeError::Unknown
                    | ProposeError::Stopped
                    | ProposeError::Dropped(clearspan_replica::DropReason::Unknown)
            )
        )
    }
}

/// A fresh read of a bank's accounts and output.
#[derive(Clone, Debug)]
pub struct Read {
    /// The bank, by its place.
    pub bank: usize,
    /// Its home shard.
    pub shard: ShardId,
    /// The node that answered.
    pub node: usize,
    /// When it was asked, in simulated nanoseconds.
    pub began_ns: u64,
    /// When it was answered.
    pub answered_ns: u64,
    /// The log index that the answer shows.
    pub index: u64,
    /// Balances in minor units of all accounts of the shard.
    pub balances: Vec<(Bic, Currency, i128)>,
    /// The bank's output within retention.
    pub items: Vec<Item>,
}

/// A committed entry as it stands in the log.
#[derive(Clone, Debug)]
pub struct Logged {
    /// The leader's term.
    pub term: u64,
    /// What it is.
    pub kind: EntryKind,
    /// A command's bytes.
    pub data: Bytes,
}
