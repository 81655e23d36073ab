//! Some ledgers in memory and the channels between them: the node's work without log, disk and threads.

use std::time::Duration;

use clearspan_ledger::entry::{ChannelMessage, Command, Entry};
use clearspan_ledger::message::Submission;
use clearspan_ledger::{AmountMinor, Ledger, Reply, ShardId, Timestamp};

use super::workload::Workload;
use super::{MeasureError, cpu};

/// Messages between shards per entry, as in a node.
const DELIVER_MAX_MESSAGES: usize = 512;
const START_NS: u64 = 1_796_000_000_000_000_000;

#[derive(Clone, Debug)]
pub(super) struct Cluster {
    pub(super) ledgers: Vec<Ledger>,
    /// Log time of the next entry; a microsecond passes between two.
    now_ns: u64,
}

/// What delivering all messages cost, in CPU time.
#[derive(Clone, Debug, Default)]
pub(super) struct Spent {
    /// Applying the entries.
    pub(super) apply: Duration,
    /// Taking messages out of one state, encoding and decoding the entries.
    pub(super) carry: Duration,
    pub(super) longest: Duration,
    /// What the longest entry delivered.
    pub(super) longest_is: &'static str,
    pub(super) entries: u64,
}

impl Spent {
    fn add(&mut self, apply: Duration, carry: Duration, is: &'static str) {
        self.apply += apply;
        self.carry += carry;
        self.entries += 1;
        if apply > self.longest {
            (self.longest, self.longest_is) = (apply, is);
        }
    }
}

impl Cluster {
    pub(super) fn found(
        workload: &Workload,
        credit_line: AmountMinor,
    ) -> Result<Self, MeasureError> {
        let mut cluster = Self {
            ledgers: vec![Ledger::new(); usize::from(workload.shards)],
            now_ns: START_NS,
        };
        for shard in (0..workload.shards).map(ShardId::new) {
            cluster.expect_done(shard, workload.genesis(shard))?;
        }
        cluster.admin(workload.founding(credit_line))?;
        Ok(cluster)
    }

    /// Operators' acts at the coordinator, and all that follows from them.
    pub(super) fn admin(&mut self, commands: Vec<Command>) -> Result<(), MeasureError> {
        for command in commands {
            self.expect_done(ShardId::new(0), command)?;
        }
        self.pump();
        Ok(())
    }

    fn expect_done(&mut self, shard: ShardId, command: Command) -> Result<(), MeasureError> {
        match self.apply(shard, command).0 {
            Reply::Done => Ok(()),
            reply => Err(MeasureError::Unexpected(format!(
                "the ledger answered {reply:?}"
            ))),
        }
    }

    /// The next entry of a shard.
    pub(super) fn entry(&mut self, shard: ShardId, command: Command) -> Entry {
        self.now_ns += 1000;
        Entry {
            index: self.ledgers[shard.index()].position().0.next(),
            time: Timestamp::from_ns(self.now_ns),
            command,
        }
    }

    pub(super) fn apply(&mut self, shard: ShardId, command: Command) -> (Reply, Duration) {
        let entry = self.entry(shard, command);
        let begun = cpu();
        let outcome = self.ledgers[shard.index()].apply(&entry);
        (outcome.reply, cpu() - begun)
    }

    /// Takes a message in of which every payment must be accepted.
    pub(super) fn submit(
        &mut self,
        shard: ShardId,
        submission: Submission,
    ) -> Result<Duration, MeasureError> {
        let (reply, spent) = self.apply(shard, Command::Submit(submission));
        expect_accepted(&reply)?;
        Ok(spent)
    }

    /// Delivers and confirms everything until all is quiet, through encoded entries as a node does.
    pub(super) fn pump(&mut self) -> Spent {
        let mut spent = Spent::default();
        let shards = u16::try_from(self.ledgers.len()).unwrap_or(u16::MAX);
        loop {
            let mut quiet = true;
            for from in (0..shards).map(ShardId::new) {
                for to in (0..shards).map(ShardId::new) {
                    let next = self.ledgers[to.index()].inbound_next(from);
                    if self.ledgers[from.index()].outbound_range(to).1 <= next {
                        continue;
                    }
                    quiet = false;
                    let begun = cpu();
                    let (first, messages) =
                        self.ledgers[from.index()].outbound(to, next, DELIVER_MAX_MESSAGES);
                    let is = messages.first().map_or("nothing", name);
                    let command = Command::Deliver {
                        from,
                        first,
                        messages,
                    };
                    self.carried(to, command, begun, is, &mut spent);
                    let through = self.ledgers[to.index()].inbound_next(from) - 1;
                    let command = Command::Delivered { to, through };
                    self.carried(from, command, cpu(), "a confirmation", &mut spent);
                }
            }
            if quiet {
                return spent;
            }
        }
    }

    fn carried(
        &mut self,
        shard: ShardId,
        command: Command,
        begun: Duration,
        is: &'static str,
        spent: &mut Spent,
    ) {
        let data = clearspan_codec::entry::encode(Timestamp::from_ns(self.now_ns), &command);
        drop(command);
        let (_, command) =
            clearspan_codec::entry::decode(data).expect("what was just encoded can be decoded");
        let carry = cpu() - begun;
        let (_, apply) = self.apply(shard, command);
        spent.add(apply, carry, is);
    }
}

pub(super) fn expect_accepted(reply: &Reply) -> Result<(), MeasureError> {
    match reply {
        Reply::Taken { refused: 0, .. } => Ok(()),
        other => Err(MeasureError::Unexpected(format!(
            "a good message was answered {other:?}"
        ))),
    }
}

const fn name(message: &ChannelMessage) -> &'static str {
    match message {
        ChannelMessage::Cut { .. } => "the cut",
        ChannelMessage::CutSums { .. } => "sums of a cut",
        ChannelMessage::Reserve { .. } => "the reservation",
        ChannelMessage::Reserved { .. } => "what was reserved",
        ChannelMessage::Decide { .. } => "the posting",
        ChannelMessage::Posted { .. } => "what was posted",
        ChannelMessage::CycleCredits { .. } => "credits for receipts",
        ChannelMessage::End { .. } => "the end",
        _ => "something else",
    }
}
