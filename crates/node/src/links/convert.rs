//! What the core says, as frames, and back.

use bytes::Bytes;
use clearspan_codec::frame::{self, Frame, Refusal};

use crate::engine::ProposeError;
use crate::engine::peers::PeerFrame;

/// What a frame takes besides its data, at least: queues count it, so that many small frames are not free.
const FRAME_FIELDS_BYTES: usize = 160;
/// What an entry or package takes besides its data.
const ITEM_FIELDS_BYTES: usize = 16;
/// What a node takes in the directory, or more.
const NODE_BYTES: usize = 1500;

/// What a frame takes in a queue, in bytes: never less than on the wire but for a snapshot's list of members.
#[must_use]
pub fn weight_bytes(frame: &PeerFrame) -> usize {
    FRAME_FIELDS_BYTES
        + match frame {
            PeerFrame::Raft(_, message) => message
                .entries
                .iter()
                .map(|entry| ITEM_FIELDS_BYTES + entry.data.len())
                .sum(),
            PeerFrame::Propose { data, .. } | PeerFrame::SnapshotPiece { data, .. } => data.len(),
            PeerFrame::Packages { packages, .. } => packages
                .iter()
                .map(|(_, data)| ITEM_FIELDS_BYTES + data.len())
                .sum(),
            PeerFrame::Answer { .. }
            | PeerFrame::WantSnapshot { .. }
            | PeerFrame::SnapshotEnd { .. }
            | PeerFrame::ReadIndex { .. }
            | PeerFrame::ReadAnswer { .. }
            | PeerFrame::Held { .. }
            | PeerFrame::Digest { .. }
            | PeerFrame::WantPackages { .. } => 0,
            PeerFrame::Nodes { directory, lives } => {
                directory.all().count() * NODE_BYTES + lives.len() * ITEM_FIELDS_BYTES
            }
        }
}

/// The frame as the other side reads it; `None` when it cannot.
#[must_use]
pub fn recoded(frame: PeerFrame) -> Option<PeerFrame> {
    let cluster = [7; 16];
    let mut bytes = Vec::new();
    frame::encode(cluster, &to_wire(frame), &mut bytes).ok()?;
    let (head, _) = bytes.split_first_chunk()?;
    let header = frame::Header::decode(head, cluster).ok()?;
    let body = Bytes::from(bytes).slice(frame::HEADER_BYTES..);
    from_wire(frame::decode(&header, body).ok()?)
}

pub(super) fn to_wire(frame: PeerFrame) -> Frame {
    match frame {
        PeerFrame::Raft(shard, message) => Frame::Raft { shard, message },
        PeerFrame::Propose {
            number,
            shard,
            data,
        } => Frame::Propose {
            shard,
            number,
            data,
        },
        PeerFrame::Answer { number, result } => Frame::Answer {
            number,
            result: result.map_err(refusal_to_wire),
        },
        PeerFrame::WantSnapshot {
            shard,
            mark,
            offset_bytes,
        } => Frame::WantSnapshot {
            shard,
            mark,
            offset_bytes,
        },
        PeerFrame::SnapshotPiece {
            shard,
            mark,
            offset_bytes,
            body_bytes,
            data,
        } => Frame::SnapshotPiece {
            shard,
            mark,
            offset_bytes,
            body_bytes,
            data,
        },
        PeerFrame::SnapshotEnd { shard, delivered } => Frame::SnapshotEnd { shard, delivered },
        PeerFrame::Nodes { directory, lives } => Frame::Nodes { directory, lives },
        PeerFrame::Held { shard, index } => Frame::Held { shard, index },
        PeerFrame::Digest {
            shard,
            index,
            digest,
        } => Frame::Digest {
            shard,
            index,
            digest,
        },
        PeerFrame::ReadIndex { number, shard } => Frame::ReadIndex { shard, number },
        PeerFrame::ReadAnswer { number, result } => Frame::ReadAnswer {
            number,
            result: result.map_err(refusal_to_wire),
        },
        PeerFrame::WantPackages { shard, from, below } => {
            Frame::WantPackages { shard, from, below }
        }
        PeerFrame::Packages {
            shard,
            packages,
            through,
        } => Frame::Packages {
            shard,
            packages,
            through,
        },
    }
}

/// `None` for the frames of a connection itself, which the core never sees.
pub(super) fn from_wire(frame: Frame) -> Option<PeerFrame> {
    Some(match frame {
        Frame::Hello(_)
        | Frame::Ping { .. }
        | Frame::Pong { .. }
        | Frame::Life { .. }
        | Frame::NotAdmitted(_) => return None,
        Frame::Nodes { directory, lives } => PeerFrame::Nodes { directory, lives },
        Frame::Raft { shard, message } => PeerFrame::Raft(shard, message),
        Frame::Propose {
            shard,
            number,
            data,
        } => PeerFrame::Propose {
            number,
            shard,
            data,
        },
        Frame::Answer { number, result } => PeerFrame::Answer {
            number,
            result: result.map_err(refusal_from_wire),
        },
        Frame::WantSnapshot {
            shard,
            mark,
            offset_bytes,
        } => PeerFrame::WantSnapshot {
            shard,
            mark,
            offset_bytes,
        },
        Frame::SnapshotPiece {
            shard,
            mark,
            offset_bytes,
            body_bytes,
            data,
        } => PeerFrame::SnapshotPiece {
            shard,
            mark,
            offset_bytes,
            body_bytes,
            data,
        },
        Frame::SnapshotEnd { shard, delivered } => PeerFrame::SnapshotEnd { shard, delivered },
        Frame::Held { shard, index } => PeerFrame::Held { shard, index },
        Frame::Digest {
            shard,
            index,
            digest,
        } => PeerFrame::Digest {
            shard,
            index,
            digest,
        },
        Frame::ReadIndex { shard, number } => PeerFrame::ReadIndex { number, shard },
        Frame::ReadAnswer { number, result } => PeerFrame::ReadAnswer {
            number,
            result: result.map_err(refusal_from_wire),
        },
        Frame::WantPackages { shard, from, below } => {
            PeerFrame::WantPackages { shard, from, below }
        }
        Frame::Packages {
            shard,
            packages,
            through,
        } => PeerFrame::Packages {
            shard,
            packages,
            through,
        },
    })
}

fn refusal_to_wire(error: ProposeError) -> Refusal {
    match error {
        ProposeError::DiskFull {
            free_bytes,
            needed_bytes,
        } => Refusal::DiskFull {
            free_bytes,
            needed_bytes,
        },
        ProposeError::Dropped(reason) => Refusal::Dropped(reason),
        ProposeError::TooLarge {
            len_bytes,
            max_bytes,
        } => Refusal::TooLarge {
            len_bytes: len_bytes as u64,
            max_bytes: max_bytes as u64,
        },
        ProposeError::NoShard(shard) => Refusal::NoShard(shard),
        ProposeError::NoLeader => Refusal::NoLeader,
        ProposeError::Diverged => Refusal::Diverged,
        ProposeError::Unknown => Refusal::Unknown,
        ProposeError::Stopped => Refusal::Stopped,
    }
}

fn refusal_from_wire(refusal: Refusal) -> ProposeError {
    // A length that this machine cannot count is as good as the largest that it can: it is for people.
    let length = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    match refusal {
        Refusal::DiskFull {
            free_bytes,
            needed_bytes,
        } => ProposeError::DiskFull {
            free_bytes,
            needed_bytes,
        },
        Refusal::Dropped(reason) => ProposeError::Dropped(reason),
        Refusal::TooLarge {
            len_bytes,
            max_bytes,
        } => ProposeError::TooLarge {
            len_bytes: length(len_bytes),
            max_bytes: length(max_bytes),
        },
        Refusal::NoShard(shard) => ProposeError::NoShard(shard),
        Refusal::NoLeader => ProposeError::NoLeader,
        Refusal::Diverged => ProposeError::Diverged,
        Refusal::Unknown => ProposeError::Unknown,
        Refusal::Stopped => ProposeError::Stopped,
    }
}
