//! What must hold after every step and at the end (the numbers of the invariants: `docs/reliability.md`).

use std::collections::{BTreeMap, BTreeSet};

use clearspan_ledger::entry::{Command, Entry};
use clearspan_ledger::{Ledger, LogIndex, Outcome, Reply, ShardId, Timestamp};
use clearspan_node::engine::peers::PeerFrame;
use clearspan_replica::{EntryKind, LogPosition, LogStore as _, MessageKind, Role};

use crate::atlas::number;
use crate::history::Logged;
use crate::node::Seen;
use crate::reach::reach;
use crate::work::brief;
use crate::world::World;

#[derive(Debug)]
pub(crate) struct Oracle {
    digests: BTreeMap<(ShardId, u64), u128>,
    leaders: BTreeMap<(ShardId, u64), usize>,
    acknowledged: BTreeMap<ShardId, u64>,
    pub(crate) power_lost_ns: u64,
}

impl Oracle {
    pub(crate) fn new() -> Self {
        Self {
            digests: BTreeMap::new(),
            leaders: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            power_lost_ns: 0,
        }
    }

    /// The highest index that anybody was told of.
    pub(crate) fn acknowledged(&self, shard: ShardId) -> u64 {
        self.acknowledged.get(&shard).copied().unwrap_or(0)
    }

    pub(crate) fn note_acknowledged(&mut self, shard: ShardId, index: u64) {
        let known = self.acknowledged.entry(shard).or_default();
        *known = index.max(*known);
    }

    pub(crate) fn leaders_of(&self, shard: ShardId) -> usize {
        self.leaders.range((shard, 0)..=(shard, u64::MAX)).count()
    }
}

impl World {
    /// Who leads a shard, by the highest term of a living node.
    pub(crate) fn leader(&self, shard: ShardId) -> Option<usize> {
        let mut found: Option<(u64, usize)> = None;
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(life) = &node.life {
                let seen = life.seen[shard.index()];
                if seen.led && found.is_none_or(|(term, _)| seen.term > term) {
                    found = Some((seen.term, at));
                }
            }
        }
        found.map(|(_, at)| at)
    }

    /// After every step of a node.
    pub(crate) fn observe(&mut self, node: usize) {
        let Some(life) = &self.nodes[node].life else {
            return;
        };
        for status in life.stepped.status() {
            let shard = status.shard;
            let replica = status.replica;
            let now = Seen {
                term: replica.term,
                committed: replica.committed_index,
                applied: replica.applied_index,
                led: replica.role == Role::Leader,
                base: replica.base.index,
                last: replica.last.index,
            };
            let before = self.nodes[node]
                .life
                .as_ref()
                .map_or_else(Seen::default, |life| life.seen[shard.index()]);
            if now.term < before.term
                || now.committed < before.committed
                || now.applied < before.applied
                || now.base < before.base
            {
                self.fail(format!(
                    "I15: node {node} went back in shard {shard}: {before:?} to {now:?}"
                ));
            }
            if now.applied > now.committed || now.committed > now.last || now.base > now.applied {
                self.fail(format!(
                    "I15: node {node} is out of order in shard {shard}: {now:?}"
                ));
            }
            if now.base > before.base && before.last > 0 {
                reach("a log was cut");
                if self.nodes[node].witness {
                    reach("a witness cut its log");
                }
            }
            if now.last < before.last {
                reach("a follower's tail was replaced");
            }
            if replica.role == Role::Candidate && !before.led {
                reach("a candidate stood and did not win");
            }
            self.observe_lead(node, shard, before, now);
            let durable = now.committed.min(replica.persisted_index);
            self.compare_history(node, shard, durable);
            if !self.nodes[node].witness && now.applied != before.applied {
                self.compare_digest(node, shard);
            }
            if let Some(life) = &mut self.nodes[node].life {
                life.seen[shard.index()] = now;
            }
        }
    }

    fn observe_lead(&mut self, node: usize, shard: ShardId, before: Seen, now: Seen) {
        if now.led && (!before.led || now.term != before.term) {
            reach("a leader was elected");
            self.say(|| format!("n{node} leads shard {shard} in term {}", now.term));
            if self.oracle.leaders_of(shard) > 0 {
                reach("a second leader was elected in one shard");
            }
            if self.nodes[node].witness {
                reach("a witness led");
            }
            let cycle_runs = self.newest(ShardId::new(0)).is_some_and(|at| {
                self.nodes[at].life.as_ref().is_some_and(|life| {
                    life.stepped
                        .with_ledger(ShardId::new(0), |ledger| ledger.cycle_running().is_some())
                })
            });
            if cycle_runs {
                reach("a leader changed while a cycle ran");
                if shard.get() == 0 {
                    reach("a coordinator changed while a cycle ran");
                }
            }
            let first = *self.oracle.leaders.entry((shard, now.term)).or_insert(node);
            if first != node {
                self.fail(format!(
                    "I15: nodes {first} and {node} both lead shard {shard} in term {}",
                    now.term
                ));
            }
            let others = (0..self.nodes.len()).filter(|&at| at != node).any(|at| {
                let life = self.nodes[at].life.as_ref();
                life.is_some_and(|life| life.seen[shard.index()].led)
            });
            if others {
                reach("two nodes thought that they lead one shard");
            }
        }
        if before.led && !now.led {
            reach("a leader lost its lead and kept living");
            if self.nodes[node].witness {
                reach("a witness handed over");
            }
        }
    }

    /// What this node calls committed is what anybody else does, and a quorum holds it.
    fn compare_history(&mut self, node: usize, shard: ShardId, durable: u64) {
        let Some(life) = &mut self.nodes[node].life else {
            return;
        };
        let from = life.compared[shard.index()] + 1;
        if durable < from {
            return;
        }
        life.compared[shard.index()] = durable;
        let entries = {
            let state = self.nodes[node].disk.state();
            let base = state
                .log
                .shard(number(shard))
                .map_or(0, |log| log.base.index);
            let from = from.max(base + 1);
            state
                .log
                .entries(number(shard), from, durable + 1, u64::MAX)
        };
        // What was cut meanwhile was compared by others.
        let Ok(entries) = entries else { return };
        for entry in entries {
            let at = usize::try_from(entry.index).unwrap_or(usize::MAX) - 1;
            let history = &self.history.logs[shard.index()];
            match history.get(at) {
                Some(known) if known.term != entry.term || known.data != entry.data => {
                    let (index, old) = (entry.index, known.term);
                    self.fail(format!(
                        "I8: entry {index} of shard {shard} was committed in term {old}, node {node} holds another of term {}",
                        entry.term
                    ));
                    return;
                }
                None if at == history.len() => {
                    self.history.logs[shard.index()].push(Logged {
                        term: entry.term,
                        kind: entry.kind,
                        data: entry.data,
                    });
                    let position = LogPosition {
                        term: entry.term,
                        index: entry.index,
                    };
                    let holders = self
                        .nodes
                        .iter()
                        .filter(|other| other.disk.holds(number(shard), position))
                        .count();
                    if holders * 2 <= self.plan.founders {
                        self.fail(format!(
                            "I15: node {node} calls entry {} of shard {shard} committed, {holders} of {} hold it",
                            entry.index,
                            self.plan.founders
                        ));
                    }
                }
                Some(_) | None => {}
            }
        }
    }

    /// Equal index, equal state.
    fn compare_digest(&mut self, node: usize, shard: ShardId) {
        let Some(life) = &self.nodes[node].life else {
            return;
        };
        let (index, digest) = life
            .stepped
            .with_ledger(shard, |ledger| (ledger.position().0.get(), ledger.digest()));
        let known = *self.oracle.digests.entry((shard, index)).or_insert(digest);
        if known != digest {
            self.fail(format!(
                "I10: node {node} has another state of shard {shard} at index {index}"
            ));
        }
    }

    pub(crate) fn mark_frame(&mut self, frame: &PeerFrame) {
        match frame {
            PeerFrame::Raft(_, message) if message.kind == MessageKind::Snapshot => {
                reach("a snapshot was sent");
            }
            PeerFrame::Propose { .. } => reach("a command was forwarded"),
            PeerFrame::SnapshotEnd {
                delivered: true, ..
            } => reach("a snapshot was installed"),
            PeerFrame::Packages { .. } => reach("packages were sent to a peer"),
            PeerFrame::Held { .. } => reach("a witness was told what all hold"),
            _ => {}
        }
    }

    /// What is not done yet, after the last fault; `None` when everything is.
    pub(crate) fn what_is_open(&self) -> Option<String> {
        if let Some(at) = self
            .history
            .commands
            .iter()
            .position(|issued| !issued.ended)
        {
            let issued = &self.history.commands[at];
            return Some(format!(
                "command {at} ({}) has no answer after {} attempts, the last: {:?}",
                brief(&issued.command),
                issued.attempts.len(),
                issued.attempts.last()
            ));
        }
        for shard in self.shards() {
            let Some(leader) = self.leader(shard) else {
                return Some(format!("shard {shard} has no leader"));
            };
            let last = self.nodes[leader]
                .life
                .as_ref()
                .map_or(0, |life| life.seen[shard.index()].last);
            for (at, node) in self.nodes.iter().enumerate() {
                if node.lost || !node.joined {
                    continue;
                }
                let Some(life) = &node.life else {
                    return Some(format!("node {at} is down"));
                };
                let seen = life.seen[shard.index()];
                if seen.applied != last {
                    return Some(format!(
                        "node {at} has applied {} of shard {shard}, its leader {leader} holds {last}",
                        seen.applied
                    ));
                }
                if !node.witness {
                    for to in self.shards() {
                        let (first, end) = life
                            .stepped
                            .with_ledger(shard, |ledger| ledger.outbound_range(to));
                        if first < end {
                            return Some(format!(
                                "messages {first} to {} from shard {shard} to shard {to} are not confirmed at node {at}",
                                end - 1
                            ));
                        }
                    }
                }
            }
        }
        self.open_change()
    }

    /// The end: everything is replayed.
    pub(crate) fn finish(&mut self) {
        let mut ledgers = Vec::new();
        let mut replies: Vec<BTreeMap<u64, Outcome>> = Vec::new();
        for shard in self.shards() {
            let (ledger, outcomes) = self.replay(shard);
            ledgers.push(ledger);
            replies.push(outcomes);
        }
        if self.failure.is_some() {
            return;
        }
        self.check_states(&ledgers);
        self.check_answers(&replies);
        self.check_refusals();
        self.check_once(&replies);
        self.check_order();
        self.check_money(&ledgers);
        let outputs = crate::outputs::order(&ledgers)
            .and_then(|()| crate::outputs::receipts(&ledgers, &self.history.reads))
            .and_then(|()| crate::outputs::cycles(&ledgers));
        if let Err(what) = outputs {
            self.fail(what);
        }
        self.mark_states(&ledgers);
    }

    pub(crate) fn replay(&mut self, shard: ShardId) -> (Ledger, BTreeMap<u64, Outcome>) {
        let mut ledger = Ledger::new();
        let mut outcomes = BTreeMap::new();
        let history = self.history.logs[shard.index()].clone();
        for (index, known) in (1..).zip(&history) {
            let (time, command) = if known.kind == EntryKind::Command && !known.data.is_empty() {
                match clearspan_codec::entry::decode(known.data.clone()) {
                    Ok(found) => found,
                    Err(error) => {
                        self.fail(format!("entry {index} of shard {shard}: {error}"));
                        break;
                    }
                }
            } else {
                (Timestamp::ZERO, Command::Tick)
            };
            if self.trace.is_some() {
                self.say(|| {
                    format!(
                        "log {shard}/{index} term {}: {}",
                        known.term,
                        brief(&command)
                    )
                });
            }
            let outcome = ledger.apply(&Entry {
                index: LogIndex::new(index),
                time,
                command,
            });
            if !outcome.released.is_empty() {
                reach("a held message was released");
            }
            outcomes.insert(index, outcome);
        }
        (ledger, outcomes)
    }

    /// I10: snapshots, restarts and the plain replay of the log come to the same state.
    fn check_states(&mut self, ledgers: &[Ledger]) {
        for shard in self.shards() {
            let replayed = &ledgers[shard.index()];
            let body = clearspan_codec::snapshot::encode(replayed);
            for at in 0..self.nodes.len() {
                let node = &self.nodes[at];
                if node.witness || node.lost {
                    continue;
                }
                let Some(life) = &node.life else { continue };
                let (index, digest, same) = life.stepped.with_ledger(shard, |ledger| {
                    (
                        ledger.position().0,
                        ledger.digest(),
                        clearspan_codec::snapshot::encode(ledger) == body,
                    )
                });
                if index != replayed.position().0 || digest != replayed.digest() || !same {
                    self.fail(format!(
                        "I10: node {at} ends shard {shard} at {} with another state than a replay of the log, at {}",
                        index.get(),
                        replayed.position().0.get()
                    ));
                }
                let kept = replayed.retained_from().get()..replayed.next_message().get();
                for message in kept.map(clearspan_ledger::MessageNo::new) {
                    if !self.package_is_there(at, shard, message, replayed) {
                        self.fail(format!(
                            "I2: node {at} does not hold package {} of shard {shard}",
                            message.get()
                        ));
                        return;
                    }
                }
            }
        }
    }

    fn package_is_there(
        &self,
        node: usize,
        shard: ShardId,
        message: clearspan_ledger::MessageNo,
        replayed: &Ledger,
    ) -> bool {
        replayed.message(message).is_none()
            || self.nodes[node].life.as_ref().is_none_or(|life| {
                life.stepped
                    .package(shard, message)
                    .is_ok_and(|found| found.is_some())
            })
    }

    /// I2, I16: every answer stands in the log, at its index, word for word.
    fn check_answers(&mut self, replies: &[BTreeMap<u64, Outcome>]) {
        let answers: Vec<(usize, Outcome)> = (0..)
            .zip(&self.history.commands)
            .flat_map(|(at, issued)| issued.answers().map(move |answer| (at, answer.clone())))
            .collect();
        for (at, outcome) in answers {
            let issued = &self.history.commands[at];
            let shard = issued.shard;
            let index = outcome.index.get();
            let found = replies[shard.index()].get(&index);
            let command = usize::try_from(index)
                .ok()
                .and_then(|index| self.history.logs[shard.index()].get(index.checked_sub(1)?))
                .and_then(|known| clearspan_codec::entry::decode(known.data.clone()).ok())
                .map(|(_, command)| command);
            let same = found.is_some_and(|found| found.reply == outcome.reply);
            if command.as_ref() != Some(&issued.command) || !same {
                let text = format!(
                    "I2: command {at} ({}) was answered with {:?} at index {index} of shard {shard}; the log has {} there, answered with {:?}",
                    brief(&issued.command),
                    outcome.reply,
                    command.as_ref().map_or("nothing".to_owned(), brief),
                    found.map(|found| &found.reply)
                );
                self.fail(text);
                return;
            }
            if issued.answered_ns < self.oracle.power_lost_ns {
                reach("an acknowledged command survived the loss of all power");
            }
        }
    }

    /// I16: what was refused everywhere is nowhere.
    fn check_refusals(&mut self) {
        let mut there = BTreeSet::new();
        for history in &self.history.logs {
            for known in history {
                if let Ok((_, Command::Submit(submission))) =
                    clearspan_codec::entry::decode(known.data.clone())
                {
                    there.insert((submission.message_id.to_string(), submission.digest));
                }
            }
        }
        let repeated: BTreeSet<usize> = self
            .history
            .commands
            .iter()
            .filter_map(|i| i.repeats)
            .collect();
        for at in 0..self.history.commands.len() {
            let issued = &self.history.commands[at];
            let Command::Submit(submission) = &issued.command else {
                continue;
            };
            if issued.answer.is_some() || issued.repeats.is_some() || repeated.contains(&at) {
                continue;
            }
            let doubt = issued.is_in_doubt();
            let found = there.contains(&(submission.message_id.to_string(), submission.digest));
            match (doubt, found) {
                (false, true) => {
                    let text = format!(
                        "I16: command {at} ({}) was refused ({:?}), but it stands in the log",
                        brief(&issued.command),
                        issued.attempts
                    );
                    self.fail(text);
                    return;
                }
                (true, true) => reach("a command's outcome stayed unknown and it was there"),
                (true, false) => reach("a command's outcome stayed unknown and it was not there"),
                (false, false) => {}
            }
        }
    }

    /// I3: one message is taken in once.
    fn check_once(&mut self, replies: &[BTreeMap<u64, Outcome>]) {
        let mut taken = BTreeMap::new();
        for shard in self.shards() {
            for (index, outcome) in &replies[shard.index()] {
                let at = usize::try_from(*index).unwrap_or(0) - 1;
                let known = &self.history.logs[shard.index()][at];
                let Ok((_, Command::Submit(submission))) =
                    clearspan_codec::entry::decode(known.data.clone())
                else {
                    continue;
                };
                if let Reply::Taken { message, .. } = outcome.reply {
                    let key = (
                        submission.sender,
                        submission.message_id.to_string(),
                        submission.digest,
                    );
                    if let Some(first) = taken.insert(key, message) {
                        self.fail(format!(
                            "I3: {} was taken in twice, as {} and {}",
                            brief(&Command::Submit(submission)),
                            first.get(),
                            message.get()
                        ));
                        return;
                    }
                }
            }
        }
    }

    /// I5: what was answered before another command began stands before it in the log.
    fn check_order(&mut self) {
        let mut points = Vec::new();
        for issued in &self.history.commands {
            if let Some(answer) = &issued.answer {
                points.push((issued.began_ns, 1_u8, issued.shard, answer.index.get()));
                points.push((issued.answered_ns, 0, issued.shard, answer.index.get()));
            }
        }
        points.sort_unstable();
        let mut highest: BTreeMap<ShardId, u64> = BTreeMap::new();
        for (_, begins, shard, index) in points {
            let before = highest.entry(shard).or_default();
            if begins == 0 {
                *before = index.max(*before);
            } else if index <= *before {
                let before = *before;
                self.fail(format!(
                    "I5: index {index} of shard {shard} began after {before} was answered"
                ));
                return;
            }
        }
    }

    /// I1: what all accounts hold is what the central bank put in.
    fn check_money(&mut self, ledgers: &[Ledger]) {
        let mut held = BTreeMap::new();
        for ledger in ledgers {
            for account in ledger.accounts() {
                *held.entry(account.currency()).or_insert(0) += account.balance_minor();
                if account.balance_minor() < -account.credit_line().signed() {
                    self.fail(format!("I13: an account is below its line: {account:?}"));
                }
            }
        }
        held.retain(|_, minor| *minor != 0);
        if held != self.work.issued_minor {
            let text = format!(
                "I1: the accounts hold {held:?}, put in was {:?}",
                self.work.issued_minor
            );
            self.fail(text);
        }
    }

    fn mark_states(&mut self, ledgers: &[Ledger]) {
        use clearspan_ledger::day::PaymentStatus as Status;
        for ledger in ledgers {
            for date in ledger.dates() {
                for (message, _) in ledger.messages(date) {
                    for payment in ledger.payments_of(message) {
                        match (payment.status, payment.reason) {
                            (Status::Settled, _) => reach("a payment settled at once"),
                            (Status::Queued, _) => reach("a payment waited for funds"),
                            (_, Some(clearspan_ledger::Reason::InsufficientFunds)) => {
                                reach("a payment was refused for want of funds");
                            }
                            (Status::Cancelled, _) => reach("a payment was cancelled"),
                            _ => {}
                        }
                    }
                    for answer in ledger.cancellation_answers(message).unwrap_or_default() {
                        if matches!(
                            answer.outcome,
                            clearspan_ledger::CancelOutcome::Refused { .. }
                        ) {
                            reach("a cancellation came too late");
                        }
                    }
                }
            }
            for (_, totals) in ledger.totals() {
                if totals.received_minor != 0 {
                    reach("a credit crossed shards");
                }
            }
            for summary in ledger.cycle_summaries() {
                reach(if summary.abandoned {
                    "a cycle was abandoned"
                } else {
                    "a cycle settled"
                });
                if !summary.drops.is_empty() {
                    reach("a cycle dropped payments");
                }
            }
        }
    }
}
