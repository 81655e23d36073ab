//! Messages between the members of a shard's group, in a shape of our own. The node frames them; protobuf never sees
//! bytes from the network, except a membership change's small payload.

use bytes::Bytes;
use raft::eraftpb;

use crate::entry::{Entry, EntryKind, LogPosition, MemberId, Membership};
use crate::event::SnapshotMark;

/// Most entries in one message: one package is one entry, so this many small ones still fit a message.
pub const PEER_ENTRIES_MAX: usize = 65_536;
/// Largest entry: a package of 5,000 payments with room to spare.
pub const PEER_ENTRY_BYTES_MAX: usize = 8 << 20;
/// Most bytes of entry data in one message: the leader stops at 1 MiB or one entry, whichever is more.
pub const PEER_MESSAGE_BYTES_MAX: usize = PEER_ENTRY_BYTES_MAX + (1 << 20);
/// Most members of a group, in each of its lists.
pub const PEER_MEMBERS_MAX: usize = 64;
/// Largest membership change: the Raft engine parses it as protobuf, whose depth this bounds.
pub(crate) const CHANGE_BYTES_MAX: usize = 1024;
/// Longest read context: our own number.
const CONTEXT_BYTES_MAX: usize = 16;

const _: () = assert!(PEER_ENTRY_BYTES_MAX < PEER_MESSAGE_BYTES_MAX);

/// What a message is. Raft's purely local kinds, and forwarded proposals, cannot be said at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageKind {
    /// Entries from the leader.
    Append,
    /// The answer to them.
    AppendResponse,
    /// A candidate asks for a vote.
    Vote,
    /// The answer to it.
    VoteResponse,
    /// The leader's snapshot: its mark here, its bytes apart.
    Snapshot,
    /// The leader lives.
    Heartbeat,
    /// The answer to it.
    HeartbeatResponse,
    /// A follower passes on a wish to move leadership.
    TransferLeader,
    /// The leader tells its successor to start an election at once.
    TimeoutNow,
    /// A follower asks the leader for a read index.
    ReadIndex,
    /// The answer to it.
    ReadIndexResponse,
    /// Would you vote for me?
    PreVote,
    /// The answer to it.
    PreVoteResponse,
}

const KINDS: [(MessageKind, eraftpb::MessageType); 13] = [
    (MessageKind::Append, eraftpb::MessageType::MsgAppend),
    (
        MessageKind::AppendResponse,
        eraftpb::MessageType::MsgAppendResponse,
    ),
    (MessageKind::Vote, eraftpb::MessageType::MsgRequestVote),
    (
        MessageKind::VoteResponse,
        eraftpb::MessageType::MsgRequestVoteResponse,
    ),
    (MessageKind::Snapshot, eraftpb::MessageType::MsgSnapshot),
    (MessageKind::Heartbeat, eraftpb::MessageType::MsgHeartbeat),
    (
        MessageKind::HeartbeatResponse,
        eraftpb::MessageType::MsgHeartbeatResponse,
    ),
    (
        MessageKind::TransferLeader,
        eraftpb::MessageType::MsgTransferLeader,
    ),
    (MessageKind::TimeoutNow, eraftpb::MessageType::MsgTimeoutNow),
    (MessageKind::ReadIndex, eraftpb::MessageType::MsgReadIndex),
    (
        MessageKind::ReadIndexResponse,
        eraftpb::MessageType::MsgReadIndexResp,
    ),
    (
        MessageKind::PreVote,
        eraftpb::MessageType::MsgRequestPreVote,
    ),
    (
        MessageKind::PreVoteResponse,
        eraftpb::MessageType::MsgRequestPreVoteResponse,
    ),
];

impl MessageKind {
    /// Whether it carries log data, and so belongs on the bulk connection; the rest must not queue behind it.
    #[must_use]
    pub const fn is_bulk(self) -> bool {
        matches!(self, Self::Append | Self::AppendResponse | Self::Snapshot)
    }

    /// Its number on the wire, from 1.
    #[must_use]
    pub fn to_byte(self) -> u8 {
        // The table has 13 rows, so the fallback is never taken.
        KINDS
            .iter()
            .position(|(kind, _)| *kind == self)
            .and_then(|at| u8::try_from(at + 1).ok())
            .unwrap_or(0)
    }

    /// From its number on the wire.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        KINDS
            .get(usize::from(byte).checked_sub(1)?)
            .map(|(kind, _)| *kind)
    }
}

/// One message between two members of a group. What each field means depends on the kind, as in Raft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerMessage {
    /// What it is.
    pub kind: MessageKind,
    /// Who shall get it.
    pub to: MemberId,
    /// Who sent it; the node checks that it came over that member's connection.
    pub from: MemberId,
    /// The sender's term; 0 where the kind carries none.
    pub term: u64,
    /// The place just before `entries`, or the sender's last place, or the one acknowledged.
    pub at: LogPosition,
    /// Entries, contiguous.
    pub entries: Vec<Entry>,
    /// The sender's commit index and its term.
    pub commit: LogPosition,
    /// The snapshot offered.
    pub snapshot: Option<SnapshotMark>,
    /// The follower asks for a snapshot at or after this index; 0 for none.
    pub request_snapshot: u64,
    /// The answer is no.
    pub reject: bool,
    /// Where the follower's log may still agree.
    pub reject_hint: u64,
    /// A read's own number.
    pub context: Bytes,
    /// The candidate's priority.
    pub priority: i64,
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerMessageError {
    /// A cap is exceeded.
    #[error("{what}: {found} exceeds {max}")]
    TooLarge {
        /// Which.
        what: &'static str,
        /// What came.
        found: usize,
        /// The cap.
        max: usize,
    },
    /// Entries are not contiguous from the place they claim.
    #[error("entry {found} came where {expected} was due")]
    NotContiguous {
        /// What was due.
        expected: u64,
        /// What came.
        found: u64,
    },
    /// A snapshot message without a snapshot, or entries in a message that carries none.
    #[error("the message's fields do not fit its kind")]
    Shape,
    /// It is addressed to, or comes from, the wrong member.
    #[error("the message is for member {to}")]
    Misaddressed {
        /// Whom it names.
        to: MemberId,
    },
}

impl PeerMessage {
    /// Checks caps and shape; a message from outside passes this before the Raft engine sees it.
    pub fn check(&self) -> Result<(), PeerMessageError> {
        let cap = |what, found: usize, max: usize| {
            if found > max {
                Err(PeerMessageError::TooLarge { what, found, max })
            } else {
                Ok(())
            }
        };
        cap("entries", self.entries.len(), PEER_ENTRIES_MAX)?;
        cap("context", self.context.len(), CONTEXT_BYTES_MAX)?;
        // The engine takes a read's number without looking, so it must be there.
        if matches!(
            self.kind,
            MessageKind::ReadIndex | MessageKind::ReadIndexResponse
        ) && self.context.is_empty()
        {
            return Err(PeerMessageError::Shape);
        }
        if !self.entries.is_empty() && self.kind != MessageKind::Append {
            return Err(PeerMessageError::Shape);
        }
        if self.snapshot.is_some() != (self.kind == MessageKind::Snapshot) {
            return Err(PeerMessageError::Shape);
        }
        let mut bytes = 0;
        let mut expected = self
            .at
            .index
            .checked_add(1)
            .ok_or(PeerMessageError::Shape)?;
        for entry in &self.entries {
            let max = if entry.kind == EntryKind::Command {
                PEER_ENTRY_BYTES_MAX
            } else {
                CHANGE_BYTES_MAX
            };
            cap("entry bytes", entry.data.len(), max)?;
            bytes += entry.data.len();
            if entry.index != expected {
                return Err(PeerMessageError::NotContiguous {
                    expected,
                    found: entry.index,
                });
            }
            expected = expected.checked_add(1).ok_or(PeerMessageError::Shape)?;
        }
        cap("message bytes", bytes, PEER_MESSAGE_BYTES_MAX)?;
        if let Some(mark) = &self.snapshot {
            let group = &mark.membership;
            for list in [
                &group.voters,
                &group.learners,
                &group.voters_outgoing,
                &group.learners_next,
            ] {
                cap("members", list.len(), PEER_MEMBERS_MAX)?;
            }
            if mark.position.index == 0 || group.voters.is_empty() {
                return Err(PeerMessageError::Shape);
            }
        }
        Ok(())
    }
}

pub(crate) fn to_engine(message: PeerMessage) -> eraftpb::Message {
    let mut out = eraftpb::Message::default();
    if let Some((_, kind)) = KINDS.iter().find(|(kind, _)| *kind == message.kind) {
        out.msg_type = *kind;
    }
    out.to = message.to.get();
    out.from = message.from.get();
    out.term = message.term;
    out.log_term = message.at.term;
    out.index = message.at.index;
    out.commit = message.commit.index;
    out.commit_term = message.commit.term;
    out.request_snapshot = message.request_snapshot;
    out.reject = message.reject;
    out.reject_hint = message.reject_hint;
    out.priority = message.priority;
    out.entries = message.entries.into_iter().map(entry_to_engine).collect();
    if let Some(mark) = message.snapshot {
        out.set_snapshot(snapshot_to_engine(&mark));
    }
    if matches!(
        message.kind,
        MessageKind::ReadIndex | MessageKind::ReadIndexResponse
    ) {
        // The engine carries a read's number as the data of a lone entry.
        let entry = eraftpb::Entry {
            data: message.context,
            ..Default::default()
        };
        out.entries = vec![entry].into();
    } else {
        out.context = message.context;
    }
    out
}

/// `None` for a message that is nobody's or of a kind we never send.
pub(crate) fn from_engine(mut message: eraftpb::Message) -> Option<PeerMessage> {
    let (kind, _) = KINDS.iter().find(|(_, kind)| *kind == message.msg_type)?;
    let mut context = std::mem::take(&mut message.context);
    let mut entries = Vec::new();
    if matches!(
        kind,
        MessageKind::ReadIndex | MessageKind::ReadIndexResponse
    ) {
        context = message
            .entries
            .first()
            .map(|entry| entry.data.clone())
            .unwrap_or_default();
    } else {
        entries = message.entries.iter().map(entry_from_engine).collect();
    }
    let snapshot = message
        .snapshot
        .as_ref()
        .filter(|snapshot| snapshot.get_metadata().index > 0);
    Some(PeerMessage {
        kind: *kind,
        to: MemberId::new(message.to)?,
        from: MemberId::new(message.from)?,
        term: message.term,
        at: LogPosition {
            term: message.log_term,
            index: message.index,
        },
        entries,
        commit: LogPosition {
            term: message.commit_term,
            index: message.commit,
        },
        snapshot: snapshot.map(snapshot_from_engine),
        request_snapshot: message.request_snapshot,
        reject: message.reject,
        reject_hint: message.reject_hint,
        context,
        priority: message.priority,
    })
}

pub(crate) fn entry_to_engine(entry: Entry) -> eraftpb::Entry {
    let entry_type = match entry.kind {
        EntryKind::Command => eraftpb::EntryType::EntryNormal,
        EntryKind::Change => eraftpb::EntryType::EntryConfChange,
        EntryKind::ChangeV2 => eraftpb::EntryType::EntryConfChangeV2,
    };
    eraftpb::Entry {
        entry_type,
        term: entry.term,
        index: entry.index,
        data: entry.data,
        ..Default::default()
    }
}

pub(crate) fn entry_from_engine(entry: &eraftpb::Entry) -> Entry {
    let kind = match entry.entry_type {
        eraftpb::EntryType::EntryNormal => EntryKind::Command,
        eraftpb::EntryType::EntryConfChange => EntryKind::Change,
        eraftpb::EntryType::EntryConfChangeV2 => EntryKind::ChangeV2,
    };
    Entry {
        index: entry.index,
        term: entry.term,
        kind,
        data: entry.data.clone(),
    }
}

pub(crate) fn membership_to_engine(group: &Membership) -> eraftpb::ConfState {
    let numbers = |list: &[MemberId]| list.iter().map(|member| member.get()).collect();
    eraftpb::ConfState {
        voters: numbers(&group.voters),
        learners: numbers(&group.learners),
        voters_outgoing: numbers(&group.voters_outgoing),
        learners_next: numbers(&group.learners_next),
        auto_leave: group.auto_leave,
        ..Default::default()
    }
}

pub(crate) fn membership_from_engine(state: &eraftpb::ConfState) -> Membership {
    // The engine keeps members in a hash set: sort, so that equal groups are equal bytes.
    let members = |list: &[u64]| {
        let mut members: Vec<MemberId> = list
            .iter()
            .filter_map(|&number| MemberId::new(number))
            .collect();
        members.sort_unstable();
        members
    };
    Membership {
        voters: members(&state.voters),
        learners: members(&state.learners),
        voters_outgoing: members(&state.voters_outgoing),
        learners_next: members(&state.learners_next),
        auto_leave: state.auto_leave,
    }
}

pub(crate) fn snapshot_to_engine(mark: &SnapshotMark) -> eraftpb::Snapshot {
    let mut snapshot = eraftpb::Snapshot::default();
    let metadata = snapshot.mut_metadata();
    metadata.index = mark.position.index;
    metadata.term = mark.position.term;
    metadata.set_conf_state(membership_to_engine(&mark.membership));
    snapshot
}

pub(crate) fn snapshot_from_engine(snapshot: &eraftpb::Snapshot) -> SnapshotMark {
    let metadata = snapshot.get_metadata();
    SnapshotMark {
        position: LogPosition {
            term: metadata.term,
            index: metadata.index,
        },
        membership: membership_from_engine(metadata.get_conf_state()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: MessageKind) -> PeerMessage {
        let member = |number| MemberId::new(number).unwrap();
        PeerMessage {
            kind,
            to: member(2),
            from: member(1),
            term: 3,
            at: LogPosition { term: 2, index: 10 },
            entries: Vec::new(),
            commit: LogPosition { term: 2, index: 9 },
            snapshot: None,
            request_snapshot: 0,
            reject: false,
            reject_hint: 0,
            context: Bytes::new(),
            priority: -1,
        }
    }

    fn entry(index: u64, kind: EntryKind, bytes: usize) -> Entry {
        Entry {
            index,
            term: 3,
            kind,
            data: Bytes::from(vec![7; bytes]),
        }
    }

    #[test]
    fn every_kind_has_its_own_number() {
        for (at, (kind, _)) in KINDS.iter().enumerate() {
            assert_eq!(usize::from(kind.to_byte()), at + 1);
            assert_eq!(MessageKind::from_byte(kind.to_byte()), Some(*kind));
        }
        assert_eq!(MessageKind::from_byte(0), None);
        assert_eq!(MessageKind::from_byte(14), None);
    }

    #[test]
    fn survives_the_engine() {
        for (kind, _) in KINDS {
            let mut sent = message(kind);
            match kind {
                MessageKind::Append => {
                    sent.entries = vec![
                        entry(11, EntryKind::Command, 5),
                        entry(12, EntryKind::ChangeV2, 0),
                    ];
                }
                MessageKind::Snapshot => {
                    let voters = vec![MemberId::new(1).unwrap(), MemberId::new(2).unwrap()];
                    let position = LogPosition { term: 2, index: 8 };
                    sent.snapshot = Some(SnapshotMark {
                        position,
                        membership: Membership::of_voters(voters),
                    });
                }
                MessageKind::ReadIndex | MessageKind::ReadIndexResponse => {
                    sent.context = Bytes::from_static(b"12345678")
                }
                _ => {}
            }
            sent.check().unwrap();
            assert_eq!(from_engine(to_engine(sent.clone())), Some(sent));
        }
    }

    #[test]
    fn caps_and_shape_hold() {
        let mut gap = message(MessageKind::Append);
        gap.entries = vec![entry(12, EntryKind::Command, 1)];
        assert_eq!(
            gap.check(),
            Err(PeerMessageError::NotContiguous {
                expected: 11,
                found: 12
            })
        );
        let mut large = message(MessageKind::Append);
        large.entries = vec![entry(11, EntryKind::Command, PEER_ENTRY_BYTES_MAX + 1)];
        assert!(matches!(
            large.check(),
            Err(PeerMessageError::TooLarge {
                what: "entry bytes",
                ..
            })
        ));
        let mut change = message(MessageKind::Append);
        change.entries = vec![entry(11, EntryKind::Change, CHANGE_BYTES_MAX + 1)];
        assert!(matches!(
            change.check(),
            Err(PeerMessageError::TooLarge { .. })
        ));
        let mut heavy = message(MessageKind::Append);
        heavy.entries = (11..=12)
            .map(|index| entry(index, EntryKind::Command, PEER_ENTRY_BYTES_MAX))
            .collect();
        assert!(matches!(
            heavy.check(),
            Err(PeerMessageError::TooLarge {
                what: "message bytes",
                ..
            })
        ));
        let mut end = message(MessageKind::Append);
        end.at.index = u64::MAX;
        assert_eq!(end.check(), Err(PeerMessageError::Shape));
        let mut stray = message(MessageKind::Heartbeat);
        stray.entries = vec![entry(11, EntryKind::Command, 1)];
        assert_eq!(stray.check(), Err(PeerMessageError::Shape));
        assert_eq!(
            message(MessageKind::Snapshot).check(),
            Err(PeerMessageError::Shape)
        );
        assert_eq!(
            message(MessageKind::ReadIndex).check(),
            Err(PeerMessageError::Shape)
        );
    }
}
