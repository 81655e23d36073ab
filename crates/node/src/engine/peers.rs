//! The port to the other nodes: what the core sends and gets, whatever carries it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use clearspan_ledger::nodes::NodeDirectory;
use clearspan_ledger::{Outcome, ShardId};
use clearspan_replica::{MemberId, PeerMessage, SnapshotMark};

use super::ProposeError;

/// What one node says to another.
#[derive(Clone, Debug)]
pub enum PeerFrame {
    /// Between the members of a shard's group.
    Raft(ShardId, PeerMessage),
    /// A command for a shard that the receiver leads.
    Propose {
        /// Comes back with the answer.
        number: u64,
        /// The shard.
        shard: ShardId,
        /// The entry's bytes.
        data: Bytes,
    },
    /// The answer to a command.
    Answer {
        /// The command's number.
        number: u64,
        /// Its outcome, once committed and applied at its shard's leader.
        result: Result<Outcome, ProposeError>,
    },
    /// How far must a read of a shard that the receiver leads have applied?
    ReadIndex {
        /// Comes back with the answer.
        number: u64,
        /// The shard.
        shard: ShardId,
    },
    /// The answer to a read.
    ReadAnswer {
        /// The read's number.
        number: u64,
        /// The index.
        result: Result<u64, ProposeError>,
    },
    /// Send me a piece of your snapshot of a shard.
    WantSnapshot {
        /// The shard.
        shard: ShardId,
        /// The snapshot, as the leader offered it.
        mark: SnapshotMark,
        /// From which byte of its body on.
        offset_bytes: u64,
    },
    /// A piece of a snapshot's body.
    SnapshotPiece {
        /// The shard.
        shard: ShardId,
        /// The snapshot; another than was wanted when that one is gone.
        mark: SnapshotMark,
        /// Where the piece begins.
        offset_bytes: u64,
        /// The whole body's length.
        body_bytes: u64,
        /// The piece; empty when the snapshot is not there.
        data: Bytes,
    },
    /// A snapshot was installed, or could not be.
    SnapshotEnd {
        /// The shard.
        shard: ShardId,
        /// Whether it stands.
        delivered: bool,
    },
    /// Every data member holds a shard's log up to an index: a witness may let it go.
    Held {
        /// The shard.
        shard: ShardId,
        /// The index.
        index: u64,
    },
    /// A data member's state digest of a shard at an index.
    Digest {
        /// The shard.
        shard: ShardId,
        /// The last entry that it holds.
        index: u64,
        /// The ledger's running digest.
        digest: u128,
    },
    /// Send me packages of a shard.
    WantPackages {
        /// The shard.
        shard: ShardId,
        /// From this message number on.
        from: u64,
        /// Below this one.
        below: u64,
    },
    /// Packages of a shard, in order, as many as fit a frame.
    Packages {
        /// The shard.
        shard: ShardId,
        /// Message numbers and bytes.
        packages: Vec<(u64, Bytes)>,
        /// Everything below this number is in here, or is not kept any more.
        through: u64,
    },
    /// What the sender knows of the cluster's nodes.
    Nodes {
        /// Who there is.
        directory: NodeDirectory,
        /// The newest life of members that it has met or heard of.
        lives: Vec<(MemberId, u64)>,
    },
}

impl PeerFrame {
    /// Whether it must not queue behind megabytes: everything that carries no data.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        match self {
            Self::Raft(_, message) => !message.kind.is_bulk(),
            Self::Propose { data, .. } => data.len() <= URGENT_MAX_BYTES,
            Self::Answer { .. }
            | Self::ReadIndex { .. }
            | Self::ReadAnswer { .. }
            | Self::SnapshotEnd { .. }
            | Self::Digest { .. }
            | Self::Held { .. }
            | Self::Nodes { .. } => true,
            Self::WantSnapshot { .. }
            | Self::SnapshotPiece { .. }
            | Self::WantPackages { .. }
            | Self::Packages { .. } => false,
        }
    }
}

/// A forwarded command of at most this length goes with the urgent ones: a single payment is far below, a package above.
const URGENT_MAX_BYTES: usize = 16 << 10;

/// Carries frames to other nodes. Never waits: a peer that does not drain its queue is cut off.
pub trait Peers: Send {
    /// Queues a frame for a member, in order with others of its kind. Whether there was room.
    fn send(&mut self, to: MemberId, frame: PeerFrame) -> bool;

    /// From now on these are linked, by the directory's addresses: all that were not removed, and who still has to leave a
    /// group. Who was removed and is not among them is refused.
    fn set_nodes(&mut self, directory: &NodeDirectory, linked: &BTreeSet<MemberId>);

    /// Members whose data does not know of these lives are refused: they have forgotten what they promised.
    fn set_lives(&mut self, lives: &BTreeMap<MemberId, u64>);
}

/// For a node that has none.
pub(crate) struct NoPeers;

impl Peers for NoPeers {
    fn send(&mut self, _: MemberId, _: PeerFrame) -> bool {
        false
    }

    fn set_nodes(&mut self, _: &NodeDirectory, _: &BTreeSet<MemberId>) {}

    fn set_lives(&mut self, _: &BTreeMap<MemberId, u64>) {}
}
