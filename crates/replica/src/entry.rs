//! What a replicated log is made of: positions, entries, votes and members.

use std::fmt;

use bytes::Bytes;

/// A subset of the participants with its own Raft group, log and ledger; counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(u16);

impl ShardId {
    /// From its number.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// An instant of the caller's monotonic clock, in nanoseconds from an origin of its choice. Never compared between nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(u64);

impl Timestamp {
    /// From nanoseconds.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds.
    #[must_use]
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// `ns` later; saturates.
    #[must_use]
    pub const fn plus_ns(self, ns: u64) -> Self {
        Self(self.0.saturating_add(ns))
    }
}

/// A voter or learner inside Raft. Raft reserves 0 for nobody, so it is not a member.
///
/// The node's identity is a random 128-bit value; this is the 64-bit name it goes by inside its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberId(u64);

impl MemberId {
    /// From its number; `None` for 0, which Raft reserves.
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        if number == 0 {
            None
        } else {
            Some(Self(number))
        }
    }

    /// Its number, never 0.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What the proposer wants to hear again with the outcome of its proposal; opaque here, never replicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Correlation(pub u64);

/// A place in one shard's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    /// Term of the entry there; 0 only at index 0.
    pub term: u64,
    /// Index, from 1; 0 is the place before the first entry.
    pub index: u64,
}

/// What an entry's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A command for the ledger; empty data is the blank entry a new leader writes to commit in its own term.
    Command,
    /// A membership change in Raft's own encoding, version 1.
    Change,
    /// A membership change in Raft's own encoding, version 2: joint consensus.
    ChangeV2,
}

impl EntryKind {
    /// Its number in stored and sent entries.
    #[must_use]
    pub const fn to_byte(self) -> u8 {
        match self {
            Self::Command => 0,
            Self::Change => 1,
            Self::ChangeV2 => 2,
        }
    }

    /// From its number.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Command),
            1 => Some(Self::Change),
            2 => Some(Self::ChangeV2),
            _ => None,
        }
    }
}

/// One entry of one shard's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Position in the shard's log, from 1.
    pub index: u64,
    /// Term of the leader that proposed it.
    pub term: u64,
    /// What `data` is.
    pub kind: EntryKind,
    /// The command's bytes; cheap to clone.
    pub data: Bytes,
}

impl Entry {
    /// Where it lies.
    #[must_use]
    pub const fn position(&self) -> LogPosition {
        LogPosition {
            term: self.term,
            index: self.index,
        }
    }
}

/// What a voter must remember across a restart besides its entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HardState {
    /// Newest term seen.
    pub term: u64,
    /// Who got this member's vote in that term.
    pub vote: Option<MemberId>,
    /// Highest index known to be committed; may lag behind the truth, never ahead of it.
    pub commit: u64,
}

/// Who belongs to a shard's group. Outside a joint change only `voters` and `learners` are filled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// Members that vote.
    pub voters: Vec<MemberId>,
    /// Members that follow without a vote.
    pub learners: Vec<MemberId>,
    /// The leaving half of a joint change.
    pub voters_outgoing: Vec<MemberId>,
    /// Voters that become learners when the joint change ends.
    pub learners_next: Vec<MemberId>,
    /// Whether the leader ends the joint change by itself.
    pub auto_leave: bool,
}

impl Membership {
    /// A group of these voters and nobody else.
    #[must_use]
    pub fn of_voters(voters: Vec<MemberId>) -> Self {
        Self {
            voters,
            ..Self::default()
        }
    }

    /// Whether `member` is the only voter, so that its own write is a quorum.
    #[must_use]
    pub fn is_alone(&self, member: MemberId) -> bool {
        self.voters == [member] && self.voters_outgoing.is_empty()
    }
}
