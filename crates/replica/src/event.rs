//! What goes into a replica and what comes out.

use bytes::Bytes;

use crate::entry::{Correlation, LogPosition, MemberId, Membership};
use crate::log_store::Append;
use crate::message::PeerMessage;

/// A command on its way into the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The command's bytes; empty is refused, since an empty entry is the leader's own blank one.
    pub data: Bytes,
    /// Comes back with the outcome.
    pub correlation: Correlation,
}

/// One step of a membership change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Make it a voter, whether new or a learner.
    AddVoter(MemberId),
    /// Make it a learner, whether new or a voter.
    AddLearner(MemberId),
    /// Take it out of the group.
    Remove(MemberId),
}

/// Something that happened to a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The process has started and recovered: a group of one elects itself now, others wait for their ticks.
    Start,
    /// One beat of the election clock; the caller decides how long a beat is (50-100 ms over regions).
    Tick,
    /// Commands to replicate, in this order. Only a leader takes them; others drop them with a reason.
    Propose {
        /// The commands.
        entries: Vec<Proposal>,
    },
    /// A linearizable read wants to know the index it must wait for.
    ReadIndex {
        /// Comes back in [`Action::ReadReady`] or [`Action::Dropped`].
        correlation: Correlation,
    },
    /// All writes up to this [`Persist`] are durable. One event may stand for several in order.
    Persisted {
        /// The newest durable one.
        ready_number: u64,
    },
    /// The ledger has applied everything up to here.
    Applied {
        /// Highest applied index.
        index: u64,
    },
    /// From a peer, in the order it sent them.
    Message(PeerMessage),
    /// A connection to a peer broke: what was in flight to it may be lost.
    Unreachable {
        /// The peer.
        peer: MemberId,
    },
    /// Signs are that this leader's process is gone: a follower stops holding to it and stands for election once its turn
    /// comes, unless the leader is heard before. Only waiting is shortened; votes and logs decide as ever.
    LeaderLost {
        /// The leader.
        leader: MemberId,
    },
    /// A snapshot of the applied state is durable: it may be sent to peers, and the log before it may go.
    SnapshotTaken(SnapshotMark),
    /// The transfer of a snapshot to a peer ended. Without this the peer would stay paused.
    SnapshotSent {
        /// The peer.
        peer: MemberId,
        /// Whether it arrived.
        delivered: bool,
    },
    /// The log up to here is no longer needed. Bounded by the newest snapshot and by what is applied.
    Compact {
        /// The last index to go.
        to_index: u64,
    },
    /// Change the group by joint consensus. An empty list leaves an explicit joint change.
    ChangeMembership {
        /// The steps, taken together.
        changes: Vec<Change>,
        /// Comes back with the outcome.
        correlation: Correlation,
    },
    /// Stand for election from now on after so many ticks without a leader, as [`crate::ReplicaConfig::campaign_ticks`].
    CampaignTicks {
        /// How many; [`crate::ReplicaConfig::election_ticks`] at least.
        ticks: usize,
    },
    /// Hand leadership to a voter; it moves once that voter has everything. Until then proposals are dropped.
    TransferLeadership {
        /// The voter.
        to: MemberId,
    },
}

/// A snapshot without its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotMark {
    /// The last entry it contains.
    pub position: LogPosition,
    /// The group as of that entry.
    pub membership: Membership,
}

/// A write the node's log must make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persist {
    /// Answer with [`Event::Persisted`] of this number once it is durable. Numbers rise; gaps are normal.
    pub ready_number: u64,
    /// What to write. May be empty: then there is nothing to write, but the answer is still due, in order.
    pub append: Append,
}

/// What a committed entry holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommittedBody {
    /// A command for the ledger.
    Command {
        /// Its bytes.
        data: Bytes,
        /// Set when it was proposed through this replica in this life.
        correlation: Option<Correlation>,
    },
    /// The leader's empty entry at the start of its term: nothing to apply but the index.
    Blank,
    /// The group changed; already in force here.
    Membership {
        /// The group from this index on; belongs into a snapshot taken at or after it.
        membership: Membership,
        /// Set when it was proposed through this replica in this life.
        correlation: Option<Correlation>,
    },
}

/// A committed entry, durable on a quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Where it lies.
    pub position: LogPosition,
    /// What it holds.
    pub body: CommittedBody,
}

/// Why a proposal or a read did not get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// This replica does not lead; `leader` is the one to ask, when known. Nothing was written.
    NotLeader {
        /// The leader, when known.
        leader: Option<MemberId>,
    },
    /// Leadership is being handed over. Nothing was written.
    Transferring,
    /// Too many bytes are waiting to be committed. Nothing was written; ask again later.
    Overloaded,
    /// It is empty, too large, or a membership change that cannot be. Nothing was written.
    Invalid,
    /// Another leader's entry took its place: it is certain that it was never committed.
    Replaced,
    /// A snapshot jumped over its place: whether it was committed must be asked by its key.
    Unknown,
    /// A read found no quorum in time, or the leader has not committed in its term yet. Ask again.
    Unconfirmed,
}

/// Why a replica must not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The leader counts on entries that this replica does not hold: its disk lost or rolled back what it had promised.
    /// It may come back as a learner, never as the voter it was.
    LogBehindPromise {
        /// What the leader counts on.
        promised: u64,
        /// What is here.
        last: u64,
    },
    /// A committed membership change cannot be read or applied.
    BadMembershipChange {
        /// Where it lies.
        index: u64,
    },
}

/// Something the caller must do, in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Give these to the transport, per peer in this order. They may leave before the [`Persist`] that follows: what
    /// must wait for a write is held back by the replica until [`Event::Persisted`].
    Send(Vec<PeerMessage>),
    /// Give this to the log writer; writes stay in order.
    Persist(Persist),
    /// Give these to the ledger and answer with [`Event::Applied`].
    Apply(Vec<Committed>),
    /// Replace the ledger's state by this snapshot, whose bytes the node has fetched; the matching log write is in the
    /// [`Persist`] just before. Answer with [`Event::Applied`] of its index.
    InstallSnapshot(SnapshotMark),
    /// This replica leads from now on.
    BecameLeader {
        /// In this term.
        term: u64,
    },
    /// This replica led until now. Its open proposals are in doubt until their index is applied.
    LostLeadership {
        /// The term now.
        term: u64,
    },
    /// Another leader is known, or none.
    LeaderChanged {
        /// The leader.
        leader: Option<MemberId>,
    },
    /// A proposal or read ended without success.
    Dropped {
        /// Whose.
        correlation: Correlation,
        /// Why.
        reason: DropReason,
    },
    /// A read may be served once the ledger has applied this index.
    ReadReady {
        /// Whose.
        correlation: Correlation,
        /// The index.
        index: u64,
    },
    /// Drop the stored log up to here.
    CompactLog {
        /// The last entry to go.
        to: LogPosition,
    },
    /// Stop this replica: it can no longer keep its promises.
    Stop(StopReason),
}
