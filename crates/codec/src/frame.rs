//! What nodes say to each other: a fixed header, then a body of the header's kind.
//!
//! A frame is read in two steps, so that nothing is allocated or parsed on a stranger's word: [`Header::decode`] refuses
//! another cluster, an unknown kind and a length above the kind's cap; [`decode`] checks the checksum and reads the body.
//! There is one spelling of every frame. `docs/format/frames.md` draws it.

mod body;
mod message;

pub(crate) use body::{put_lives, take_lives};
use bytes::Bytes;
use clearspan_ledger::nodes::{NODE_TEXT_MAX_BYTES, NODES_EVER_MAX, NodeDirectory};
use clearspan_ledger::{Outcome, ShardId};
use clearspan_replica::{
    DropReason, MemberId, PEER_ENTRIES_MAX, PEER_ENTRY_BYTES_MAX, PEER_MEMBERS_MAX,
    PEER_MESSAGE_BYTES_MAX, PeerMessage, PeerMessageError, SnapshotMark,
};

use crate::DecodeError;
use crate::bytes_io::{Reader, Writer};

/// Length of a frame's header.
pub const HEADER_BYTES: usize = 32;
/// The layout's version; also what [`Hello`] speaks.
pub const VERSION: u8 = 1;
/// Most packages in one frame: as many as a message has entries, so that bytes are the bound in practice.
pub const PACKAGES_MAX_COUNT: usize = PEER_ENTRIES_MAX;
/// The longest body of all: a message of entries with its fields, and a frame of packages, fit.
pub const BODY_MAX_BYTES: usize = 12 << 20;

/// "CSPF".
const MAGIC: [u8; 4] = *b"CSPF";
/// Bodies without entries, packages or pieces: the largest names a group's members.
const SMALL_BODY_MAX_BYTES: usize = 4096;
/// The directory of all nodes that there ever were, each with five texts and its life.
const NODES_BODY_MAX_BYTES: usize = NODES_EVER_MAX * (5 * (NODE_TEXT_MAX_BYTES + 4) + 128) + 4096;
/// A greeting has this length exactly: it is all that is read from a stranger.
const HELLO_BODY_BYTES: usize = 16 + 8 + 8 + 1 + 1;
/// Fields of a Raft message besides its entries' data.
const MESSAGE_FIELDS_MAX_BYTES: usize = 4096 + PEER_ENTRIES_MAX * message::ENTRY_FIELDS_BYTES;

const _: () = assert!(PEER_MESSAGE_BYTES_MAX + MESSAGE_FIELDS_MAX_BYTES <= BODY_MAX_BYTES);
const _: () = assert!(PEER_MEMBERS_MAX * 8 * 4 + 64 < SMALL_BODY_MAX_BYTES);

/// Which of a peer's connections a frame takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// For what must not queue behind megabytes.
    Urgent,
    /// For data.
    Bulk,
}

/// Who opens or accepts a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The node's random identity.
    pub node: [u8; 16],
    /// Its number in the groups.
    pub member: MemberId,
    /// Rises with every start of the process.
    pub incarnation: u64,
    /// The newest version of frames that it speaks.
    pub version: u8,
    /// What the connection is for.
    pub lane: Lane,
}

/// Why a node is not admitted: it must not go on as the member that it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAdmitted {
    /// It was taken out of the cluster.
    Removed,
    /// Its data is from before a life in which it made promises: it was rolled back, or wiped and set up again.
    RolledBack,
}

/// Why a forwarded command has no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The volume is nearly full.
    DiskFull {
        /// Free.
        free_bytes: u64,
        /// Needed.
        needed_bytes: u64,
    },
    /// The replica did not take it.
    Dropped(DropReason),
    /// It is larger than an entry may be.
    TooLarge {
        /// Its length.
        len_bytes: u64,
        /// The most.
        max_bytes: u64,
    },
    /// There is no such shard.
    NoShard(u16),
    /// No leader was found in time.
    NoLeader,
    /// It is not known whether it was stored.
    Unknown,
    /// The node is stopping.
    Stopped,
    /// The shard's replicas differ without a majority.
    Diverged,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Opens a connection, in both directions.
    Hello(Hello),
    /// Are you there?
    Ping {
        /// Comes back.
        number: u64,
    },
    /// Yes.
    Pong {
        /// The ping's.
        number: u64,
    },
    /// Between the members of a shard's group.
    Raft {
        /// The shard.
        shard: ShardId,
        /// The message; passed [`PeerMessage::check`].
        message: PeerMessage,
    },
    /// A command for a shard that the receiver leads.
    Propose {
        /// The shard.
        shard: ShardId,
        /// Comes back with the answer.
        number: u64,
        /// The entry's bytes.
        data: Bytes,
    },
    /// The answer to a command. What an outcome released stays with those who applied it.
    Answer {
        /// The command's number.
        number: u64,
        /// Its outcome.
        result: Result<Outcome, Refusal>,
    },
    /// How far must a read have applied?
    ReadIndex {
        /// The shard.
        shard: ShardId,
        /// Comes back with the answer.
        number: u64,
    },
    /// The answer to a read.
    ReadAnswer {
        /// The read's number.
        number: u64,
        /// The index.
        result: Result<u64, Refusal>,
    },
    /// Send me a piece of a snapshot.
    WantSnapshot {
        /// The shard.
        shard: ShardId,
        /// Which snapshot.
        mark: SnapshotMark,
        /// From which byte of its body on.
        offset_bytes: u64,
    },
    /// A piece of a snapshot's body.
    SnapshotPiece {
        /// The shard.
        shard: ShardId,
        /// Which snapshot.
        mark: SnapshotMark,
        /// Where the piece begins.
        offset_bytes: u64,
        /// The whole body's length.
        body_bytes: u64,
        /// The piece.
        data: Bytes,
    },
    /// A snapshot was installed, or could not be.
    SnapshotEnd {
        /// The shard.
        shard: ShardId,
        /// Whether it stands.
        delivered: bool,
    },
    /// Every data member holds a shard's log up to an index.
    Held {
        /// The shard.
        shard: ShardId,
        /// The index.
        index: u64,
    },
    /// A data member's state digest at an index.
    Digest {
        /// The shard.
        shard: ShardId,
        /// The last entry that the state holds.
        index: u64,
        /// The ledger's running digest.
        digest: u128,
    },
    /// Send me packages.
    WantPackages {
        /// The shard.
        shard: ShardId,
        /// From this message number on.
        from: u64,
        /// Below this one.
        below: u64,
    },
    /// Packages.
    Packages {
        /// The shard.
        shard: ShardId,
        /// Message numbers and bytes.
        packages: Vec<(u64, Bytes)>,
        /// Everything below this number is in here, or is not kept any more.
        through: u64,
    },
    /// The cluster's nodes, as far as the sender knows.
    Nodes {
        /// The nodes.
        directory: NodeDirectory,
        /// The newest life of members that the sender has met or heard of, by number.
        lives: Vec<(MemberId, u64)>,
    },
    /// Follows the greeting of who opens a connection: the life before this one, as its data says; zero for none.
    Life {
        /// That life.
        previous: u64,
    },
    /// Takes the place of the greeting's answer.
    NotAdmitted(NotAdmitted),
}

/// Why a frame was not read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// It does not begin as frames do.
    #[error("these are not frames of a node")]
    Magic,
    /// A version that this build does not know.
    #[error("frames of version {0}, this build speaks {VERSION}")]
    Version(u8),
    /// It belongs to another cluster.
    #[error("a frame of another cluster")]
    Cluster,
    /// A kind that this build does not know.
    #[error("frames have no kind {0}")]
    Kind(u8),
    /// A shard in a frame that is about none.
    #[error("a {0:?} frame is about no shard")]
    Shard(Kind),
    /// The body is longer than its kind allows.
    #[error("a {kind:?} frame of {found_bytes} bytes, at most {max_bytes} are allowed")]
    TooLong {
        /// Its kind.
        kind: Kind,
        /// What came, or was to go.
        found_bytes: u64,
        /// The cap.
        max_bytes: usize,
    },
    /// It holds more packages than are read.
    #[error("a frame of {0} packages, at most {PACKAGES_MAX_COUNT} are allowed")]
    TooMany(usize),
    /// The bytes are not those that were sent.
    #[error("a frame's checksum does not fit its bytes")]
    Checksum,
    /// The body is not one of its kind.
    #[error("a {kind:?} frame's body")]
    Body {
        /// Its kind.
        kind: Kind,
        /// What is wrong.
        source: DecodeError,
    },
    /// A Raft message that no member sends.
    #[error("a Raft message that no member sends")]
    Message(#[from] PeerMessageError),
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $byte:literal $name:ident: $max:expr, $shard:literal;)+) => {
        /// What a frame is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[$doc])* $name,)+
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            const fn to_byte(self) -> u8 {
                match self {
                    $(Self::$name => $byte,)+
                }
            }

            const fn from_byte(byte: u8) -> Option<Self> {
                match byte {
                    $($byte => Some(Self::$name),)+
                    _ => None,
                }
            }

            /// The longest body.
            #[must_use]
            pub const fn body_max_bytes(self) -> usize {
                match self {
                    $(Self::$name => $max,)+
                }
            }

            const fn has_shard(self) -> bool {
                match self {
                    $(Self::$name => $shard,)+
                }
            }
        }
    };
}

kinds! {
    /// A greeting.
    1 Hello: HELLO_BODY_BYTES, false;
    /// A question for life.
    2 Ping: 8, false;
    /// Its answer.
    3 Pong: 8, false;
    /// A message of a shard's group.
    4 Raft: PEER_MESSAGE_BYTES_MAX + MESSAGE_FIELDS_MAX_BYTES, true;
    /// A forwarded command.
    5 Propose: PEER_ENTRY_BYTES_MAX + 8, true;
    /// Its answer.
    6 Answer: SMALL_BODY_MAX_BYTES, false;
    /// A wish for a piece of a snapshot.
    7 WantSnapshot: SMALL_BODY_MAX_BYTES, true;
    /// A piece.
    8 SnapshotPiece: BODY_MAX_BYTES, true;
    /// A snapshot's end.
    9 SnapshotEnd: 1, true;
    /// A wish for packages.
    10 WantPackages: 16, true;
    /// Packages.
    11 Packages: BODY_MAX_BYTES, true;
    /// How far all data members' logs reach.
    12 Held: 8, true;
    /// A read's question.
    13 ReadIndex: 8, true;
    /// Its answer.
    14 ReadAnswer: SMALL_BODY_MAX_BYTES, false;
    /// A state digest.
    15 Digest: 24, true;
    /// The cluster's nodes.
    20 Nodes: NODES_BODY_MAX_BYTES, false;
    /// The life before this one.
    21 Life: 8, false;
    /// A refusal to talk.
    22 NotAdmitted: 1, false;
}

/// A frame's header, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    kind: Kind,
    shard: ShardId,
    body_bytes: usize,
    checksum: u32,
    /// Of the header's bytes before the checksum.
    running: u32,
}

impl Header {
    /// Reads a header; everything but the body's bytes is checked.
    ///
    /// # Errors
    /// [`FrameError`] says what is wrong. The connection it came from has no next frame that could be found.
    pub fn decode(bytes: &[u8; HEADER_BYTES], cluster: [u8; 16]) -> Result<Self, FrameError> {
        let [m0, m1, m2, m3, version, kind, s0, s1, rest @ ..] = *bytes;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(FrameError::Magic);
        }
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
        let [of_cluster @ .., l0, l1, l2, l3, c0, c1, c2, c3] = rest;
        if of_cluster != cluster {
            return Err(FrameError::Cluster);
        }
        let kind = Kind::from_byte(kind).ok_or(FrameError::Kind(kind))?;
        let shard = u16::from_le_bytes([s0, s1]);
        if shard != 0 && !kind.has_shard() {
            return Err(FrameError::Shard(kind));
        }
        let body_bytes = u32::from_le_bytes([l0, l1, l2, l3]);
        let max_bytes = kind.body_max_bytes();
        let body_bytes = usize::try_from(body_bytes)
            .ok()
            .filter(|&found| found <= max_bytes)
            .ok_or(FrameError::TooLong {
                kind,
                found_bytes: u64::from(body_bytes),
                max_bytes,
            })?;
        let (before, _) = bytes.split_at(HEADER_BYTES - 4);
        Ok(Self {
            kind,
            shard: ShardId::new(shard),
            body_bytes,
            checksum: u32::from_le_bytes([c0, c1, c2, c3]),
            running: crc32c::crc32c(before),
        })
    }

    /// What the frame is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// How many bytes follow, at most [`Kind::body_max_bytes`].
    #[must_use]
    pub const fn body_bytes(&self) -> usize {
        self.body_bytes
    }
}

/// Reads the body that followed a header. Data in it shares the body's memory.
///
/// # Errors
/// [`FrameError`] says what is wrong.
pub fn decode(header: &Header, body: Bytes) -> Result<Frame, FrameError> {
    if body.len() != header.body_bytes
        || crc32c::crc32c_append(header.running, &body) != header.checksum
    {
        return Err(FrameError::Checksum);
    }
    let kind = header.kind;
    let mut reader = Reader::new(body);
    let frame = body::take(kind, header.shard, &mut reader)
        .and_then(|frame| reader.end().map(|()| frame))
        .map_err(|source| FrameError::Body { kind, source })?;
    if let Frame::Raft { message, .. } = &frame {
        message.check()?;
    }
    Ok(frame)
}

/// Appends a frame's bytes.
///
/// # Errors
/// [`FrameError::TooLong`], [`FrameError::TooMany`] or [`FrameError::Message`] when its reader would refuse it; then
/// `into` is as it was.
pub fn encode(cluster: [u8; 16], frame: &Frame, into: &mut Vec<u8>) -> Result<(), FrameError> {
    match frame {
        Frame::Raft { message, .. } => message.check()?,
        Frame::Packages { packages, .. } if packages.len() > PACKAGES_MAX_COUNT => {
            return Err(FrameError::TooMany(packages.len()));
        }
        _ => {}
    }
    let (kind, shard) = body::kind_and_shard(frame);
    let start = into.len();
    into.extend(MAGIC);
    into.extend([VERSION, kind.to_byte()]);
    into.extend(shard.get().to_le_bytes());
    into.extend(cluster);
    into.extend([0; 8]);
    let mut writer = Writer(std::mem::take(into));
    body::put(frame, &mut writer);
    *into = writer.0;
    let body_start = start + HEADER_BYTES;
    let found = into.len() - body_start;
    let max_bytes = kind.body_max_bytes();
    let Some(found) = u32::try_from(found).ok().filter(|_| found <= max_bytes) else {
        into.truncate(start);
        return Err(FrameError::TooLong {
            kind,
            found_bytes: found as u64,
            max_bytes,
        });
    };
    let length_at = body_start - 8;
    let checksum_at = body_start - 4;
    into[length_at..checksum_at].copy_from_slice(&found.to_le_bytes());
    let running = crc32c::crc32c(&into[start..checksum_at]);
    let checksum = crc32c::crc32c_append(running, &into[body_start..]);
    into[checksum_at..body_start].copy_from_slice(&checksum.to_le_bytes());
    Ok(())
}
