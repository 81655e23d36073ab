//! Takes messages in: reads them, finds the sender's home shard, proposes. It holds no state that matters.

use bytes::Bytes;
use clearspan_iso20022::read::{self, Context, Fault, Incoming, Limits, Submitted};
use clearspan_ledger::entry::Command;
use clearspan_ledger::message::{MessageKind, Settlement, Submission};
use clearspan_ledger::{AmountMinor, Bic, ShardId};

use crate::engine::{Engine, Lane, Pending, ProposeError, Replier};

mod package;

/// A node's door for participants' messages.
#[derive(Debug)]
pub struct Gateway<'a> {
    engine: &'a Engine,
    limits: Limits,
    amount_max: AmountMinor,
}

impl<'a> Gateway<'a> {
    /// A gateway in front of an engine.
    #[must_use]
    pub fn new(engine: &'a Engine, amount_max: AmountMinor) -> Self {
        Self {
            engine,
            limits: Limits::default(),
            amount_max,
        }
    }

    /// The most bytes of one message.
    #[must_use]
    pub const fn body_max_bytes(&self) -> usize {
        self.limits.body_max_bytes
    }

    /// Reads one message and packs what it carries; `sender` is whom the connection proved, where it proved somebody.
    /// Needs no lock but for one look at the directory, so many threads may do it at once.
    ///
    /// # Errors
    /// The fault, with its place, when it cannot be read or attributed.
    pub fn read(&self, bytes: &[u8], sender: Option<Bic>) -> Result<Incoming, Box<Fault>> {
        let numbers_messages = |bic| self.numbers_messages(bic);
        let context = Context {
            sender,
            amount_max: self.amount_max,
            numbers_messages: &numbers_messages,
        };
        let mut incoming = read::read(bytes, &self.limits, &context)?;
        if let Incoming::Submission(submitted) = &mut incoming {
            submitted.submission.heap = clearspan_codec::heap::pack(&submitted.submission.heap);
        }
        Ok(incoming)
    }

    /// Reads a compact package, as [`Gateway::read`] reads XML: same checks, same reasons. Its heap came packed.
    ///
    /// # Errors
    /// The fault when it cannot be read.
    pub fn read_package(&self, bytes: Bytes, sender: Bic) -> Result<Submission, Box<Fault>> {
        let context = Context {
            sender: Some(sender),
            amount_max: self.amount_max,
            numbers_messages: &|bic| self.numbers_messages(bic),
        };
        package::read(bytes, &self.limits, &context)
    }

    fn numbers_messages(&self, bic: Bic) -> bool {
        self.engine.with_ledger(ShardId::new(0), |ledger| {
            let directory = ledger.directory();
            directory
                .find(bic)
                .and_then(|number| directory.get(number))
                .is_some_and(|terms| terms.numbers_messages)
        })
    }

    /// Proposes a message to its sender's home shard. A sender that is nobody's is told so by the coordinator's shard.
    ///
    /// # Errors
    /// As [`Engine::propose`].
    pub fn submit(&self, submitted: Submitted) -> Result<Pending, ProposeError> {
        let (shard, lane) = self.way_of(&submitted.submission);
        self.engine
            .propose(shard, &Command::Submit(submitted.submission), lane)
    }

    /// As [`Gateway::submit`], but has the outcome told to `reply`.
    ///
    /// # Errors
    /// As [`Engine::propose_with`].
    pub fn submit_with(&self, submission: Submission, reply: Replier) -> Result<(), ProposeError> {
        let (shard, lane) = self.way_of(&submission);
        self.engine
            .propose_with(shard, &Command::Submit(submission), lane, reply)
    }

    /// As [`Gateway::submit`], but waits while the disk is full.
    ///
    /// # Errors
    /// As [`Engine::propose_when_room`].
    pub fn submit_when_room(&self, submitted: Submitted) -> Result<Pending, ProposeError> {
        let (shard, lane) = self.way_of(&submitted.submission);
        self.engine
            .propose_when_room(shard, &Command::Submit(submitted.submission), lane)
    }

    fn way_of(&self, submission: &Submission) -> (ShardId, Lane) {
        (self.home_of(submission.sender), lane_of(submission))
    }

    /// A participant's home shard; the coordinator's for a code that is nobody's.
    #[must_use]
    pub fn home_of(&self, bic: Bic) -> ShardId {
        self.engine.with_ledger(ShardId::new(0), |ledger| {
            let directory = ledger.directory();
            directory
                .find(bic)
                .and_then(|number| directory.get(number))
                .map_or(ShardId::new(0), |terms| terms.home)
        })
    }
}

/// Urgent payments, returns and cancellations go before bulk.
#[must_use]
pub fn lane_of(submission: &Submission) -> Lane {
    let urgent = matches!(submission.settlement, Settlement::Gross { .. })
        || matches!(
            submission.kind,
            MessageKind::Return | MessageKind::Cancellation
        );
    if urgent { Lane::Urgent } else { Lane::Bulk }
}
