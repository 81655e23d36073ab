//! The replica itself: the Raft engine behind one door.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use protobuf::Message as _;
use raft::eraftpb::{
    self, ConfChangeSingle, ConfChangeTransition, ConfChangeType, ConfChangeV2, EntryType,
};
use raft::{Config, ProgressState, RawNode, ReadOnlyOption, SnapshotStatus, StateRole};
use slog::{Discard, Logger, o};

use crate::entry::{
    Correlation, Entry, HardState, LogPosition, MemberId, Membership, ShardId, Timestamp,
};
use crate::event::{
    Action, Change, Committed, CommittedBody, DropReason, Event, Persist, Proposal, SnapshotMark,
    StopReason,
};
use crate::log_store::{Append, LogError, LogStore, ShardLog};
use crate::message::{
    MessageKind, PEER_ENTRY_BYTES_MAX, PEER_MEMBERS_MAX, PeerMessage, entry_from_engine,
    entry_to_engine, from_engine, membership_from_engine, membership_to_engine,
    snapshot_from_engine, to_engine,
};
use crate::tail::Tail;

/// How one replica behaves. Fixed for its life.
#[derive(Clone, Debug)]
pub struct ReplicaConfig {
    /// Whose log.
    pub shard: ShardId,
    /// Who this is.
    pub member: MemberId,
    /// Ticks between heartbeats.
    pub heartbeat_ticks: usize,
    /// For so many ticks after a leader was last heard no other gets this member's vote, and a leader that hears no
    /// quorum steps down. Must be the same for all members of a group: where one still holds to a lost leader when
    /// another asks for its vote, that other waits for its whole turn once more.
    pub election_ticks: usize,
    /// Ticks without a leader before this member stands for election: `election_ticks` at least. Must differ between the
    /// members of a group: it takes the place of a random number, so that a run can be repeated exactly.
    /// [`Event::CampaignTicks`] changes it.
    pub campaign_ticks: usize,
    /// Below 0 for a witness, which must not lead while a data node can.
    pub priority: i64,
    /// Most bytes of entries in one write and in one message. Without it single writes grew to 128 MiB and the pipeline
    /// fell into lock step (a third of the throughput).
    pub ready_max_bytes: u64,
    /// Most unanswered appends per peer. Must never bind before `uncommitted_max_bytes` does, since each freed slot
    /// makes the engine read the tail again.
    pub in_flight_max_messages: usize,
    /// Most bytes proposed and not yet committed; more is refused with [`DropReason::Overloaded`]. At least bandwidth
    /// times round trip: 25 MB for 160 MB/s at 156 ms.
    pub uncommitted_max_bytes: u64,
    /// Most bytes handed to the ledger at once.
    pub apply_max_bytes: u64,
    /// How long a read waits for its quorum.
    pub read_timeout_ns: u64,
}

impl ReplicaConfig {
    /// The usual values; what each is for is said at its field.
    #[must_use]
    pub const fn new(shard: ShardId, member: MemberId) -> Self {
        Self {
            shard,
            member,
            heartbeat_ticks: 2,
            election_ticks: 20,
            campaign_ticks: 20,
            priority: 0,
            ready_max_bytes: 1 << 20,
            in_flight_max_messages: 4096,
            uncommitted_max_bytes: 64 << 20,
            apply_max_bytes: 8 << 20,
            read_timeout_ns: 2_000_000_000,
        }
    }
}

/// The most ticks after which a member may stand, above those for which a leader is held to: several for each of the
/// most members.
const CAMPAIGN_TICKS_RANGE: usize = 16 * PEER_MEMBERS_MAX;

/// What was found in the log and the snapshots when the process started.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// The stored hard state.
    pub hard_state: HardState,
    /// The entry just before `entries`.
    pub base: LogPosition,
    /// Every stored entry after the base.
    pub entries: Vec<Entry>,
    /// The snapshot the ledger was restored from; its index is what is applied. Without one the ledger is empty and the
    /// group is `founders`.
    pub snapshot: Option<SnapshotMark>,
    /// The group before its first entry: the same on every member.
    pub founders: Membership,
}

impl Recovered {
    /// Reads a shard's log back for [`Replica::new`]. `snapshot` is the one the ledger was restored from.
    ///
    /// A snapshot that a leader sent can be durable while the log that it replaces is not replaced yet; that write is
    /// then made here. Such a log ends before the snapshot, or holds an entry there that was never committed. A log that
    /// merely lost its end does not come this far: the log reports it when opened.
    pub fn read(
        log: &mut (impl LogStore + ?Sized),
        shard: ShardId,
        snapshot: Option<SnapshotMark>,
        founders: Membership,
    ) -> Result<Self, LogError> {
        let found = log.shard(shard)?;
        if let Some(mark) = &snapshot
            && is_replaced(log, shard, &found, mark.position)?
        {
            // Whoever holds an entry has been in its term; in one that it is first in by this, it has not voted.
            let newer = mark.position.term > found.hard_state.term;
            let hard_state = newer.then_some(HardState {
                term: mark.position.term,
                vote: None,
                commit: mark.position.index,
            });
            log.append(&[Append {
                shard,
                install: Some(mark.position),
                hard_state,
                must_sync: true,
                ..Append::default()
            }])?;
        }
        let found = log.shard(shard)?;
        let entries = log.entries(shard, found.first_index(), found.last_index + 1, u64::MAX)?;
        Ok(Self {
            hard_state: found.hard_state,
            base: found.base,
            entries,
            snapshot,
            founders,
        })
    }
}

/// Whether a snapshot takes the place of a log that was found beside it.
fn is_replaced(
    log: &(impl LogStore + ?Sized),
    shard: ShardId,
    found: &ShardLog,
    snapshot: LogPosition,
) -> Result<bool, LogError> {
    let index = snapshot.index;
    if index > found.last_index {
        return Ok(true);
    }
    // What is committed agrees with every snapshot, or the two are not of one history.
    if index <= found.base.index || index <= found.hard_state.commit {
        return Ok(false);
    }
    let entries = log.entries(shard, index, index + 1, u64::MAX)?;
    Ok(entries.iter().any(|entry| entry.term != snapshot.term))
}

/// Why a replica cannot start from what was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The log starts after the entry that the snapshot needs next.
    #[error("shard {shard}: the log starts after entry {base}, but the snapshot ends at {applied}")]
    Gap {
        /// Whose log.
        shard: ShardId,
        /// The entry before the first one stored.
        base: u64,
        /// What the snapshot holds.
        applied: u64,
    },
    /// The log ends before the snapshot, or before what is known to be committed.
    #[error(
        "shard {shard}: the log ends at entry {last}, but entry {needed} is known to be committed"
    )]
    Short {
        /// Whose log.
        shard: ShardId,
        /// Last stored entry.
        last: u64,
        /// What was committed.
        needed: u64,
    },
    /// Entries are not contiguous.
    #[error("shard {shard}: entry {found} was found where {expected} was due")]
    NotContiguous {
        /// Whose log.
        shard: ShardId,
        /// What was due.
        expected: u64,
        /// What was found.
        found: u64,
    },
    /// The log and the snapshot disagree about a term: they are not of one history.
    #[error(
        "shard {shard}: entry {index} has term {log_term} in the log and {snapshot_term} in the snapshot"
    )]
    Diverged {
        /// Whose log.
        shard: ShardId,
        /// Which entry.
        index: u64,
        /// Its term in the log.
        log_term: u64,
        /// Its term in the snapshot.
        snapshot_term: u64,
    },
    /// A setting that the Raft engine refuses.
    #[error("shard {shard}: {reason}")]
    Config {
        /// Whose replica.
        shard: ShardId,
        /// What it said.
        reason: String,
    },
}

/// What a replica is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Follows a leader, or waits for one; learners too.
    Follower,
    /// Asks for votes, or whether it would get them.
    Candidate,
    /// Leads.
    Leader,
}

/// Numbers for metrics and health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// What it is.
    pub role: Role,
    /// Its term.
    pub term: u64,
    /// Who leads, when known.
    pub leader: Option<MemberId>,
    /// The entry before the first one held.
    pub base: LogPosition,
    /// The last entry held, durable or not.
    pub last: LogPosition,
    /// Highest index durable here.
    pub persisted_index: u64,
    /// Highest index known to be committed.
    pub committed_index: u64,
    /// Highest index the ledger has applied.
    pub applied_index: u64,
    /// Proposals without an outcome yet.
    pub waiting_count: usize,
}

/// How a leader sends its log to another member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// It looks for the entry where both logs agree, one message at a time.
    Probe,
    /// It sends ahead of the answers.
    Replicate,
    /// The member lacks what was cut off the log, so a snapshot is under way.
    Snapshot,
}

/// How far another member is, as its leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Who.
    pub member: MemberId,
    /// How entries are sent to it.
    pub sending: Sending,
    /// It is known to have every entry up to this one durable.
    pub matched_index: u64,
    /// The next entry to be sent to it: what lies between is in flight.
    pub next_index: u64,
    /// Bytes of the entries that it is not known to have; of the first [`LAG_COUNTED_MAX_ENTRIES`] at most.
    pub lag_bytes: u64,
    /// The data of the oldest entry that it is not known to have and that holds a command.
    pub oldest_missing: Option<Bytes>,
}

/// Entries that are looked at to say how many bytes a member lacks: a look at a leader must not cost more the longer a
/// member is away.
pub const LAG_COUNTED_MAX_ENTRIES: usize = 16_384;

#[derive(Debug)]
struct Waiting {
    term: u64,
    correlation: Correlation,
}

#[derive(Debug)]
struct PendingRead {
    correlation: Correlation,
    deadline: Timestamp,
}

/// One shard's replica.
///
/// ```
/// use bytes::Bytes;
/// use clearspan_replica::{
///     Action, CommittedBody, Correlation, Event, LogStore, MemberId, Membership, MemoryLog, Proposal, Recovered, Replica,
///     ReplicaConfig, ShardId, Timestamp,
/// };
///
/// let (shard, member, now) = (ShardId::new(0), MemberId::new(1).expect("not 0"), Timestamp::from_ns(0));
/// let mut log = MemoryLog::new();
/// let founders = Membership::of_voters(vec![member]);
/// let recovered = Recovered::read(&mut log, shard, None, founders)?;
/// let mut replica = Replica::new(ReplicaConfig::new(shard, member), recovered)?;
///
/// let proposal = Proposal { data: Bytes::from_static(b"a command"), correlation: Correlation(7) };
/// let mut events = vec![Event::Start, Event::Propose { entries: vec![proposal] }];
/// let mut settled = Vec::new();
/// while !events.is_empty() {
///     for action in replica.step(events.remove(0), now) {
///         match action {
///             Action::Persist(write) => {
///                 log.append(&[write.append])?;
///                 events.push(Event::Persisted { ready_number: write.ready_number });
///             }
///             Action::Apply(entries) => {
///                 for entry in entries {
///                     if let CommittedBody::Command { correlation, .. } = entry.body {
///                         settled.push((entry.position.index, correlation));
///                     }
///                     events.push(Event::Applied { index: entry.position.index });
///                 }
///             }
///             _ => {}
///         }
///     }
/// }
/// assert_eq!(settled, [(2, Some(Correlation(7)))]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Replica {
    config: ReplicaConfig,
    node: RawNode<Tail>,
    role: Role,
    leader: Option<MemberId>,
    membership: Membership,
    // By index: proposals of this life without an outcome.
    waiting: BTreeMap<u64, Waiting>,
    // By ready number: messages that promise what that write makes durable.
    held: VecDeque<(u64, Vec<PeerMessage>)>,
    // By our own number, which rises: so the first has the earliest deadline.
    reads: BTreeMap<u64, PendingRead>,
    next_read: u64,
    persisted_ready: u64,
    newest_ready: u64,
    // Highest index handed to the ledger, and highest it has applied.
    delivered_index: u64,
    applied_index: u64,
    campaign_ticks: usize,
    stopped: bool,
}

impl std::fmt::Debug for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replica")
            .field("shard", &self.config.shard)
            .field("status", &self.status())
            .finish()
    }
}

impl Replica {
    /// Starts from what was found. The first event is [`Event::Start`].
    pub fn new(config: ReplicaConfig, recovered: Recovered) -> Result<Self, OpenError> {
        let shard = config.shard;
        check_recovered(shard, &recovered)?;
        let applied = recovered
            .snapshot
            .as_ref()
            .map_or(0, |mark| mark.position.index);
        let membership = recovered
            .snapshot
            .as_ref()
            .map_or(&recovered.founders, |mark| &mark.membership)
            .clone();
        // A log that was never cut starts at 0; after a snapshot jumped ahead of it, it starts there.
        let hard_state = eraftpb::HardState {
            term: recovered.hard_state.term,
            vote: recovered.hard_state.vote.map_or(0, MemberId::get),
            commit: recovered.hard_state.commit.max(applied),
            ..Default::default()
        };
        let entries = recovered.entries.into_iter().map(entry_to_engine).collect();
        let conf_state = membership_to_engine(&membership);
        let tail = Tail::new(
            hard_state,
            conf_state,
            recovered.base,
            entries,
            recovered.snapshot,
        );
        let engine_config = Config {
            id: config.member.get(),
            applied,
            heartbeat_tick: config.heartbeat_ticks,
            election_tick: config.election_ticks,
            // The engine draws a number between these; it never counts, ours takes its place after each step.
            min_election_tick: config.election_ticks,
            max_election_tick: config.election_ticks + CAMPAIGN_TICKS_RANGE,
            max_size_per_msg: config.ready_max_bytes,
            max_inflight_msgs: config.in_flight_max_messages,
            check_quorum: true,
            pre_vote: true,
            read_only_option: ReadOnlyOption::Safe,
            priority: config.priority,
            max_uncommitted_size: config.uncommitted_max_bytes,
            max_committed_size_per_ready: config.apply_max_bytes,
            ..Config::default()
        };
        let refuse = |error: raft::Error| OpenError::Config {
            shard,
            reason: error.to_string(),
        };
        engine_config.validate().map_err(refuse)?;
        let node =
            RawNode::new(&engine_config, tail, &Logger::root(Discard, o!())).map_err(refuse)?;
        let mut new = Self {
            campaign_ticks: config.campaign_ticks,
            config,
            node,
            role: Role::Follower,
            leader: None,
            membership,
            waiting: BTreeMap::new(),
            held: VecDeque::new(),
            reads: BTreeMap::new(),
            next_read: 1,
            persisted_ready: 0,
            newest_ready: 0,
            delivered_index: applied,
            applied_index: applied,
            stopped: false,
        };
        new.set_campaign_ticks();
        Ok(new)
    }

    /// The only way in. Perform what comes back, in order. After [`Action::Stop`] nothing comes back any more.
    ///
    /// # Panics
    ///
    /// When the caller breaks the order of its own answers (persisted what was never given, applied ahead of what was
    /// handed out), or Raft's own invariants fail: a replica that might be wrong stops.
    pub fn step(&mut self, event: Event, now: Timestamp) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.stopped {
            return actions;
        }
        match event {
            Event::Start => self.start(),
            Event::Tick => {
                self.node.tick();
            }
            Event::Propose { entries } => self.propose(entries, &mut actions),
            Event::ReadIndex { correlation } => self.read_index(correlation, now, &mut actions),
            Event::Persisted { ready_number } => self.persisted(ready_number, &mut actions),
            Event::Applied { index } => self.applied(index),
            Event::Message(message) => self.message(message, &mut actions),
            Event::Unreachable { peer } => self.node.report_unreachable(peer.get()),
            Event::LeaderLost { leader } => self.leader_lost(leader),
            Event::SnapshotTaken(mark) => {
                assert!(
                    mark.position.index <= self.delivered_index,
                    "a snapshot of what was not handed out"
                );
                self.node.mut_store().set_snapshot(mark);
            }
            Event::SnapshotSent { peer, delivered } => {
                let status = if delivered {
                    SnapshotStatus::Finish
                } else {
                    SnapshotStatus::Failure
                };
                self.node.report_snapshot(peer.get(), status);
            }
            Event::Compact { to_index } => self.compact(to_index, &mut actions),
            Event::ChangeMembership {
                changes,
                correlation,
            } => {
                self.change_membership(&changes, correlation, &mut actions);
            }
            Event::CampaignTicks { ticks } => self.campaign_ticks = ticks,
            Event::TransferLeadership { to } => self.node.transfer_leader(to.get()),
        }
        self.set_campaign_ticks();
        self.drain(&mut actions);
        self.expire_reads(now, &mut actions);
        actions
    }

    /// Who belongs to the group, as of the last entry handed out.
    #[must_use]
    pub const fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Whose log this is.
    #[must_use]
    pub const fn shard(&self) -> ShardId {
        self.config.shard
    }

    /// Numbers for metrics and health.
    #[must_use]
    pub fn status(&self) -> Status {
        let log = &self.node.raft.raft_log;
        Status {
            role: self.role,
            term: self.node.raft.term,
            leader: self.leader,
            base: self.node.store().base(),
            last: self.node.store().last(),
            persisted_index: log.persisted,
            committed_index: log.committed,
            applied_index: self.applied_index,
            waiting_count: self.waiting.len(),
        }
    }

    /// How far a member's log is known to agree with this leader's; `None` when this one does not lead, or the member is
    /// not in the group.
    #[must_use]
    pub fn matched_index(&self, member: MemberId) -> Option<u64> {
        if self.role != Role::Leader {
            return None;
        }
        let progress = self.node.raft.prs().get(member.get())?;
        Some(progress.matched)
    }

    /// How far every other member is; empty when this replica does not lead.
    #[must_use]
    pub fn progress(&self) -> Vec<Progress> {
        if self.role != Role::Leader {
            return Vec::new();
        }
        let others = self.node.raft.prs().iter();
        let mut all: Vec<Progress> = others
            .filter_map(|(&id, progress)| {
                let member = MemberId::new(id).filter(|&id| id != self.config.member)?;
                let missing = self.node.store().after(progress.matched);
                Some(Progress {
                    member,
                    sending: match progress.state {
                        ProgressState::Probe => Sending::Probe,
                        ProgressState::Replicate => Sending::Replicate,
                        ProgressState::Snapshot => Sending::Snapshot,
                    },
                    matched_index: progress.matched,
                    next_index: progress.next_idx,
                    lag_bytes: missing
                        .clone()
                        .take(LAG_COUNTED_MAX_ENTRIES)
                        .map(|entry| entry.data.len() as u64)
                        .sum(),
                    oldest_missing: missing
                        .take(LAG_COUNTED_MAX_ENTRIES)
                        .find(|entry| {
                            entry.entry_type == EntryType::EntryNormal && !entry.data.is_empty()
                        })
                        .map(|entry| entry.data.clone()),
                })
            })
            .collect();
        // The engine keeps them in a map without an order.
        all.sort_unstable_by_key(|progress| progress.member);
        all
    }

    /// In place of the number that the engine draws whenever its role or term changes.
    fn set_campaign_ticks(&mut self) {
        let min = self.node.raft.election_timeout();
        let ticks = self
            .campaign_ticks
            .clamp(min, min + CAMPAIGN_TICKS_RANGE - 1);
        self.node.raft.set_randomized_election_timeout(ticks);
    }

    fn start(&mut self) {
        if self.membership.is_alone(self.config.member) && self.role == Role::Follower {
            // Nobody else can hold a vote: waiting for an election timeout would only cost time.
            self.node
                .campaign()
                .expect("a group of one may always elect itself");
        }
    }

    /// Not heard for as long as it may be silent: what is left is this member's turn to stand, and the leader's next word
    /// undoes it.
    fn leader_lost(&mut self, leader: MemberId) {
        if self.role == Role::Follower && self.leader == Some(leader) {
            let silent = &mut self.node.raft.election_elapsed;
            *silent = (*silent).max(self.config.election_ticks);
        }
    }

    fn propose(&mut self, proposals: Vec<Proposal>, actions: &mut Vec<Action>) {
        let mut chunk = Vec::new();
        let mut chunk_bytes = 0_u64;
        for proposal in proposals {
            let bytes = proposal.data.len();
            if bytes == 0 || bytes > PEER_ENTRY_BYTES_MAX {
                actions.push(Action::Dropped {
                    correlation: proposal.correlation,
                    reason: DropReason::Invalid,
                });
                continue;
            }
            let bytes = bytes as u64;
            if !chunk.is_empty() && chunk_bytes + bytes > self.config.ready_max_bytes {
                self.propose_chunk(std::mem::take(&mut chunk), actions);
                chunk_bytes = 0;
                // Each chunk becomes a write and a message of its own.
                self.drain(actions);
            }
            chunk_bytes += bytes;
            chunk.push(proposal);
        }
        if !chunk.is_empty() {
            self.propose_chunk(chunk, actions);
        }
    }

    fn propose_chunk(&mut self, proposals: Vec<Proposal>, actions: &mut Vec<Action>) {
        let mut correlations = Vec::with_capacity(proposals.len());
        let mut entries = Vec::with_capacity(proposals.len());
        for proposal in proposals {
            correlations.push(proposal.correlation);
            entries.push(eraftpb::Entry {
                data: proposal.data,
                ..Default::default()
            });
        }
        self.propose_entries(entries, &correlations, actions);
    }

    fn propose_entries(
        &mut self,
        entries: Vec<eraftpb::Entry>,
        correlations: &[Correlation],
        actions: &mut Vec<Action>,
    ) {
        let mut refuse = |reason| {
            actions.extend(correlations.iter().map(|&correlation| Action::Dropped {
                correlation,
                reason,
            }));
        };
        // The engine would forward a follower's proposal; a retry would then arrive twice.
        if self.node.raft.state != StateRole::Leader {
            return refuse(DropReason::NotLeader {
                leader: self.leader,
            });
        }
        if self.node.raft.lead_transferee.is_some() {
            return refuse(DropReason::Transferring);
        }
        let mut message = eraftpb::Message::default();
        message.set_msg_type(eraftpb::MessageType::MsgPropose);
        message.from = self.config.member.get();
        message.entries = entries.into();
        let first = self.node.raft.raft_log.last_index() + 1;
        if self.node.raft.step(message).is_err() {
            let removed = self.node.raft.prs().get(self.config.member.get()).is_none();
            return refuse(if removed {
                DropReason::NotLeader { leader: None }
            } else {
                DropReason::Overloaded
            });
        }
        let term = self.node.raft.term;
        for (index, &correlation) in (first..).zip(correlations) {
            self.waiting.insert(index, Waiting { term, correlation });
        }
    }

    fn change_membership(
        &mut self,
        changes: &[Change],
        correlation: Correlation,
        actions: &mut Vec<Action>,
    ) {
        if changes.len() > PEER_MEMBERS_MAX {
            actions.push(Action::Dropped {
                correlation,
                reason: DropReason::Invalid,
            });
            return;
        }
        let single = |change: &Change| {
            let (kind, member) = match *change {
                Change::AddVoter(member) => (ConfChangeType::AddNode, member),
                Change::AddLearner(member) => (ConfChangeType::AddLearnerNode, member),
                Change::Remove(member) => (ConfChangeType::RemoveNode, member),
            };
            ConfChangeSingle {
                change_type: kind,
                node_id: member.get(),
                ..Default::default()
            }
        };
        let change = ConfChangeV2 {
            // Joint where needed, left by the leader itself.
            transition: ConfChangeTransition::Auto,
            changes: changes.iter().map(single).collect(),
            ..Default::default()
        };
        let data = change
            .write_to_bytes()
            .expect("a message in memory is written");
        let entry = eraftpb::Entry {
            entry_type: EntryType::EntryConfChangeV2,
            data: data.into(),
            ..Default::default()
        };
        self.propose_entries(vec![entry], &[correlation], actions);
    }

    fn read_index(&mut self, correlation: Correlation, now: Timestamp, actions: &mut Vec<Action>) {
        if self.node.raft.state != StateRole::Leader {
            let reason = DropReason::NotLeader {
                leader: self.leader,
            };
            actions.push(Action::Dropped {
                correlation,
                reason,
            });
        } else if !self.node.raft.commit_to_current_term() {
            // The engine would drop it without a word.
            actions.push(Action::Dropped {
                correlation,
                reason: DropReason::Unconfirmed,
            });
        } else {
            let deadline = now.plus_ns(self.config.read_timeout_ns);
            self.reads.insert(
                self.next_read,
                PendingRead {
                    correlation,
                    deadline,
                },
            );
            self.node.read_index(self.next_read.to_le_bytes().to_vec());
            self.next_read += 1;
        }
    }

    fn expire_reads(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        while let Some(first) = self.reads.first_entry() {
            if first.get().deadline > now {
                break;
            }
            let correlation = first.remove().correlation;
            actions.push(Action::Dropped {
                correlation,
                reason: DropReason::Unconfirmed,
            });
        }
    }

    fn persisted(&mut self, ready_number: u64, actions: &mut Vec<Action>) {
        assert!(
            ready_number <= self.newest_ready,
            "write {ready_number} was never given"
        );
        if ready_number <= self.persisted_ready {
            return;
        }
        self.persisted_ready = ready_number;
        let mut messages = Vec::new();
        while self
            .held
            .front()
            .is_some_and(|(number, _)| *number <= ready_number)
        {
            if let Some((_, held)) = self.held.pop_front() {
                messages.extend(held);
            }
        }
        if !messages.is_empty() {
            actions.push(Action::Send(messages));
        }
        self.node.on_persist_ready(ready_number);
        self.advance_apply();
    }

    fn applied(&mut self, index: u64) {
        assert!(
            index <= self.delivered_index,
            "entry {index} was never handed out"
        );
        self.applied_index = self.applied_index.max(index);
        self.advance_apply();
    }

    /// A snapshot may be applied before the write that installs it has ended; the engine hears of it after.
    fn advance_apply(&mut self) {
        let index = self.applied_index.min(self.node.raft.raft_log.persisted);
        if index > self.node.raft.raft_log.applied {
            self.node.advance_apply_to(index);
        }
    }

    fn message(&mut self, message: PeerMessage, actions: &mut Vec<Action>) {
        // A message that fails its check, or is not for us, is dropped: the sender repeats what matters.
        if message.check().is_err()
            || message.to != self.config.member
            || message.from == message.to
        {
            return;
        }
        let last = self.node.raft.raft_log.last_index();
        if message.kind == MessageKind::Heartbeat
            && message.term >= self.node.raft.term
            && message.commit.index > last
        {
            // A leader tells each follower only what that follower acknowledged as durable.
            return self.stop(
                StopReason::LogBehindPromise {
                    promised: message.commit.index,
                    last,
                },
                actions,
            );
        }
        if self.node.raft.term == 0 && message.kind == MessageKind::PreVote {
            // raft 0.7 panics where it refuses a pre-vote at term 0, and a later term is always safe to be in: nobody has
            // voted in this one.
            self.node.raft.become_follower(1, raft::INVALID_ID);
        }
        // Errors here mean a stranger, a local kind, or a proposal: none is ours to handle.
        let _ = self.node.step(to_engine(message));
    }

    fn compact(&mut self, to_index: u64, actions: &mut Vec<Action>) {
        let snapshot = self
            .node
            .store()
            .snapshot_mark()
            .map_or(0, |mark| mark.position.index);
        let bound = to_index.min(snapshot).min(self.node.raft.raft_log.applied);
        if let Some(to) = self.node.mut_store().compact(bound) {
            actions.push(Action::CompactLog { to });
        }
    }

    fn stop(&mut self, reason: StopReason, actions: &mut Vec<Action>) {
        self.stopped = true;
        actions.push(Action::Stop(reason));
    }

    /// Takes everything the engine has ready. Every Ready goes through the writer, even one with nothing to write:
    /// each leaves a record in the engine that only `on_persist_ready` clears.
    fn drain(&mut self, actions: &mut Vec<Action>) {
        while !self.stopped && self.node.has_ready() {
            let mut ready = self.node.ready();
            self.newest_ready = ready.number();
            if let Some(soft) = ready.ss() {
                let (leader, state) = (MemberId::new(soft.leader_id), soft.raft_state);
                self.soft_state(leader, state, actions);
            }
            // A leader's appends leave before its own write ends; a follower's answers wait for theirs.
            let now = messages(ready.take_messages());
            if !now.is_empty() {
                actions.push(Action::Send(now));
            }
            let held = messages(ready.take_persisted_messages());
            if !held.is_empty() {
                self.held.push_back((ready.number(), held));
            }
            for state in ready.take_read_states() {
                let number = <[u8; 8]>::try_from(&state.request_ctx[..]).map(u64::from_le_bytes);
                if let Some(read) = number.ok().and_then(|number| self.reads.remove(&number)) {
                    actions.push(Action::ReadReady {
                        correlation: read.correlation,
                        index: state.index,
                    });
                }
            }
            let mut append = Append {
                shard: self.config.shard,
                must_sync: ready.must_sync(),
                ..Append::default()
            };
            let mut install = None;
            if !ready.snapshot().is_empty() {
                let mark = snapshot_from_engine(ready.snapshot());
                append.install = Some(mark.position);
                self.node.mut_store().install(mark.clone());
                install = Some(mark);
            }
            let entries = ready.take_entries();
            append.entries = entries.iter().map(entry_from_engine).collect();
            self.node.mut_store().append(&entries);
            if let Some(state) = ready.hs().cloned() {
                append.hard_state = Some(HardState {
                    term: state.term,
                    vote: MemberId::new(state.vote),
                    commit: state.commit,
                });
                self.node.mut_store().set_hard_state(state);
            }
            let committed = ready.take_committed_entries();
            actions.push(Action::Persist(Persist {
                ready_number: ready.number(),
                append,
            }));
            self.node.advance_append_async(ready);
            if let Some(mark) = install {
                self.install(mark, actions);
            }
            self.deliver(committed, actions);
        }
    }

    fn soft_state(
        &mut self,
        leader: Option<MemberId>,
        state: StateRole,
        actions: &mut Vec<Action>,
    ) {
        let role = match state {
            StateRole::Follower => Role::Follower,
            StateRole::Candidate | StateRole::PreCandidate => Role::Candidate,
            StateRole::Leader => Role::Leader,
        };
        let led = self.role == Role::Leader;
        self.role = role;
        let term = self.node.raft.term;
        if leader != self.leader {
            self.leader = leader;
            actions.push(Action::LeaderChanged { leader });
        }
        if led && role != Role::Leader {
            actions.push(Action::LostLeadership { term });
            for (_, read) in std::mem::take(&mut self.reads) {
                let reason = DropReason::NotLeader { leader };
                actions.push(Action::Dropped {
                    correlation: read.correlation,
                    reason,
                });
            }
        } else if !led && role == Role::Leader {
            actions.push(Action::BecameLeader { term });
        }
    }

    fn install(&mut self, mark: SnapshotMark, actions: &mut Vec<Action>) {
        let index = mark.position.index;
        let rest = self.waiting.split_off(&(index + 1));
        for (_, waiting) in std::mem::replace(&mut self.waiting, rest) {
            actions.push(Action::Dropped {
                correlation: waiting.correlation,
                reason: DropReason::Unknown,
            });
        }
        self.delivered_index = index;
        self.membership = mark.membership.clone();
        actions.push(Action::InstallSnapshot(mark));
    }

    fn deliver(&mut self, entries: Vec<eraftpb::Entry>, actions: &mut Vec<Action>) {
        let mut committed = Vec::with_capacity(entries.len());
        for entry in entries {
            assert_eq!(
                entry.index,
                self.delivered_index + 1,
                "committed entries come without gaps"
            );
            self.delivered_index = entry.index;
            let waiting = self.waiting.remove(&entry.index);
            let correlation = waiting
                .as_ref()
                .filter(|waiting| waiting.term == entry.term)
                .map(|w| w.correlation);
            if let Some(waiting) = waiting.filter(|waiting| waiting.term != entry.term) {
                let reason = DropReason::Replaced;
                actions.push(Action::Dropped {
                    correlation: waiting.correlation,
                    reason,
                });
            }
            let position = LogPosition {
                term: entry.term,
                index: entry.index,
            };
            let body = match entry.entry_type {
                EntryType::EntryNormal if entry.data.is_empty() => {
                    // The engine turns a membership change that cannot be made now into an empty entry.
                    if let Some(correlation) = correlation {
                        actions.push(Action::Dropped {
                            correlation,
                            reason: DropReason::Invalid,
                        });
                    }
                    CommittedBody::Blank
                }
                EntryType::EntryNormal => CommittedBody::Command {
                    data: entry.data,
                    correlation,
                },
                EntryType::EntryConfChange | EntryType::EntryConfChangeV2 => {
                    match self.change(&entry) {
                        Some(membership) => {
                            self.membership = membership.clone();
                            CommittedBody::Membership {
                                membership,
                                correlation,
                            }
                        }
                        None => {
                            let reason = StopReason::BadMembershipChange { index: entry.index };
                            return self.stop(reason, actions);
                        }
                    }
                }
            };
            committed.push(Committed { position, body });
        }
        if !committed.is_empty() {
            actions.push(Action::Apply(committed));
        }
    }

    fn change(&mut self, entry: &eraftpb::Entry) -> Option<Membership> {
        let state = if entry.entry_type == EntryType::EntryConfChange {
            let mut change = eraftpb::ConfChange::default();
            change.merge_from_bytes(&entry.data).ok()?;
            self.node.apply_conf_change(&change).ok()?
        } else {
            let mut change = ConfChangeV2::default();
            change.merge_from_bytes(&entry.data).ok()?;
            self.node.apply_conf_change(&change).ok()?
        };
        Some(membership_from_engine(&state))
    }
}

fn messages(engine: Vec<eraftpb::Message>) -> Vec<PeerMessage> {
    engine.into_iter().filter_map(from_engine).collect()
}

fn check_recovered(shard: ShardId, recovered: &Recovered) -> Result<(), OpenError> {
    let base = recovered.base;
    let mut expected = base.index + 1;
    for entry in &recovered.entries {
        if entry.index != expected {
            return Err(OpenError::NotContiguous {
                shard,
                expected,
                found: entry.index,
            });
        }
        expected += 1;
    }
    let last = expected - 1;
    let snapshot = recovered
        .snapshot
        .as_ref()
        .map_or(LogPosition::default(), |mark| mark.position);
    if base.index > snapshot.index {
        return Err(OpenError::Gap {
            shard,
            base: base.index,
            applied: snapshot.index,
        });
    }
    let needed = recovered.hard_state.commit.max(snapshot.index);
    if last < needed {
        return Err(OpenError::Short {
            shard,
            last,
            needed,
        });
    }
    let log_term = recovered
        .entries
        .iter()
        .find(|entry| entry.index == snapshot.index)
        .map_or(base.term, |entry| entry.term);
    if log_term != snapshot.term {
        return Err(OpenError::Diverged {
            shard,
            index: snapshot.index,
            log_term,
            snapshot_term: snapshot.term,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
