//! Bodies of all kinds but the Raft message.

use bytes::Bytes;
use clearspan_ledger::ShardId;
use clearspan_ledger::layout::{Layout, Sink, Source};
use clearspan_replica::{DropReason, LogPosition, MemberId, Membership, SnapshotMark};

use super::{
    Frame, Hello, Kind, Lane, NotAdmitted, PACKAGES_MAX_COUNT, PEER_MEMBERS_MAX, Refusal, message,
};
use crate::DecodeError;
use crate::bytes_io::{Reader, Writer};

const NO_SHARD: ShardId = ShardId::new(0);

pub(super) fn kind_and_shard(frame: &Frame) -> (Kind, ShardId) {
    match frame {
        Frame::Hello(_) => (Kind::Hello, NO_SHARD),
        Frame::Ping { .. } => (Kind::Ping, NO_SHARD),
        Frame::Pong { .. } => (Kind::Pong, NO_SHARD),
        Frame::Raft { shard, .. } => (Kind::Raft, *shard),
        Frame::Propose { shard, .. } => (Kind::Propose, *shard),
        Frame::Answer { .. } => (Kind::Answer, NO_SHARD),
        Frame::ReadIndex { shard, .. } => (Kind::ReadIndex, *shard),
        Frame::ReadAnswer { .. } => (Kind::ReadAnswer, NO_SHARD),
        Frame::Nodes { .. } => (Kind::Nodes, NO_SHARD),
        Frame::Life { .. } => (Kind::Life, NO_SHARD),
        Frame::NotAdmitted(_) => (Kind::NotAdmitted, NO_SHARD),
        Frame::WantSnapshot { shard, .. } => (Kind::WantSnapshot, *shard),
        Frame::SnapshotPiece { shard, .. } => (Kind::SnapshotPiece, *shard),
        Frame::SnapshotEnd { shard, .. } => (Kind::SnapshotEnd, *shard),
        Frame::Held { shard, .. } => (Kind::Held, *shard),
        Frame::Digest { shard, .. } => (Kind::Digest, *shard),
        Frame::WantPackages { shard, .. } => (Kind::WantPackages, *shard),
        Frame::Packages { shard, .. } => (Kind::Packages, *shard),
    }
}

pub(super) fn put(frame: &Frame, writer: &mut Writer) {
    match frame {
        Frame::Hello(hello) => {
            writer.raw(&hello.node);
            hello.member.get().put(writer);
            hello.incarnation.put(writer);
            hello.version.put(writer);
            match hello.lane {
                Lane::Urgent => 0_u8,
                Lane::Bulk => 1,
            }
            .put(writer);
        }
        Frame::Ping { number } | Frame::Pong { number } | Frame::ReadIndex { number, .. } => {
            number.put(writer);
        }
        Frame::Raft { message, .. } => message::put(message, writer),
        Frame::Propose { number, data, .. } => {
            number.put(writer);
            writer.raw(data);
        }
        Frame::Answer { number, result } => {
            number.put(writer);
            result.is_ok().put(writer);
            match result {
                Ok(outcome) => outcome.put(writer),
                Err(refusal) => put_refusal(*refusal, writer),
            }
        }
        Frame::ReadAnswer { number, result } => {
            number.put(writer);
            result.is_ok().put(writer);
            match result {
                Ok(index) => index.put(writer),
                Err(refusal) => put_refusal(*refusal, writer),
            }
        }
        Frame::WantSnapshot {
            mark, offset_bytes, ..
        } => {
            put_mark(mark, writer);
            offset_bytes.put(writer);
        }
        Frame::SnapshotPiece {
            mark,
            offset_bytes,
            body_bytes,
            data,
            ..
        } => {
            put_mark(mark, writer);
            offset_bytes.put(writer);
            body_bytes.put(writer);
            writer.raw(data);
        }
        Frame::SnapshotEnd { delivered, .. } => delivered.put(writer),
        Frame::Held { index, .. } => index.put(writer),
        Frame::Digest { index, digest, .. } => {
            index.put(writer);
            digest.put(writer);
        }
        Frame::WantPackages { from, below, .. } => {
            from.put(writer);
            below.put(writer);
        }
        Frame::Packages {
            packages, through, ..
        } => {
            through.put(writer);
            packages.put(writer);
        }
        Frame::Nodes { directory, lives } => {
            directory.put(writer);
            put_lives(lives.iter().copied(), writer);
        }
        Frame::Life { previous } => previous.put(writer),
        Frame::NotAdmitted(why) => {
            let byte: u8 = match why {
                NotAdmitted::Removed => 0,
                NotAdmitted::RolledBack => 1,
            };
            byte.put(writer);
        }
    }
}

pub(super) fn take(kind: Kind, shard: ShardId, reader: &mut Reader) -> Result<Frame, DecodeError> {
    Ok(match kind {
        Kind::Hello => Frame::Hello(Hello {
            node: reader.raw()?,
            member: take_member(reader)?,
            incarnation: u64::take(reader)?,
            version: u8::take(reader)?,
            lane: match u8::take(reader)? {
                0 => Lane::Urgent,
                1 => Lane::Bulk,
                _ => return Err(reader.invalid("no such lane")),
            },
        }),
        Kind::Ping => Frame::Ping {
            number: u64::take(reader)?,
        },
        Kind::Pong => Frame::Pong {
            number: u64::take(reader)?,
        },
        Kind::Raft => Frame::Raft {
            shard,
            message: message::take(reader)?,
        },
        Kind::Propose => Frame::Propose {
            shard,
            number: u64::take(reader)?,
            data: take_rest(reader)?,
        },
        Kind::Answer => Frame::Answer {
            number: u64::take(reader)?,
            result: if bool::take(reader)? {
                Ok(Layout::take(reader)?)
            } else {
                Err(take_refusal(reader)?)
            },
        },
        Kind::ReadIndex => Frame::ReadIndex {
            shard,
            number: u64::take(reader)?,
        },
        Kind::ReadAnswer => Frame::ReadAnswer {
            number: u64::take(reader)?,
            result: if bool::take(reader)? {
                Ok(u64::take(reader)?)
            } else {
                Err(take_refusal(reader)?)
            },
        },
        Kind::WantSnapshot => Frame::WantSnapshot {
            shard,
            mark: take_mark(reader)?,
            offset_bytes: u64::take(reader)?,
        },
        Kind::SnapshotPiece => Frame::SnapshotPiece {
            shard,
            mark: take_mark(reader)?,
            offset_bytes: u64::take(reader)?,
            body_bytes: u64::take(reader)?,
            data: take_rest(reader)?,
        },
        Kind::SnapshotEnd => Frame::SnapshotEnd {
            shard,
            delivered: bool::take(reader)?,
        },
        Kind::Held => Frame::Held {
            shard,
            index: u64::take(reader)?,
        },
        Kind::Digest => Frame::Digest {
            shard,
            index: u64::take(reader)?,
            digest: u128::take(reader)?,
        },
        Kind::WantPackages => Frame::WantPackages {
            shard,
            from: u64::take(reader)?,
            below: u64::take(reader)?,
        },
        Kind::Packages => {
            let through = u64::take(reader)?;
            let packages = Vec::take(reader)?;
            if packages.len() > PACKAGES_MAX_COUNT {
                return Err(reader.invalid("too many packages"));
            }
            Frame::Packages {
                shard,
                packages,
                through,
            }
        }
        Kind::Nodes => {
            let directory = Layout::take(reader)?;
            let lives = take_lives(reader)?;
            Frame::Nodes { directory, lives }
        }
        Kind::Life => Frame::Life {
            previous: u64::take(reader)?,
        },
        Kind::NotAdmitted => Frame::NotAdmitted(match u8::take(reader)? {
            0 => NotAdmitted::Removed,
            1 => NotAdmitted::RolledBack,
            _ => return Err(reader.invalid("no such refusal")),
        }),
    })
}

/// The newest lives of members.
pub(crate) fn put_lives(lives: impl Iterator<Item = (MemberId, u64)>, writer: &mut Writer) {
    let lives: Vec<(u64, u64)> = lives.map(|(of, life)| (of.get(), life)).collect();
    lives.put(writer);
}

pub(crate) fn take_lives(reader: &mut Reader) -> Result<Vec<(MemberId, u64)>, DecodeError> {
    let lives: Vec<(u64, u64)> = Vec::take(reader)?;
    let known = lives.into_iter().map(|(of, life)| {
        MemberId::new(of)
            .map(|of| (of, life))
            .ok_or_else(|| reader.invalid("0 is no member"))
    });
    known.collect()
}

fn take_rest(reader: &mut Reader) -> Result<Bytes, DecodeError> {
    let left = reader.left();
    reader.slice(left)
}

pub(super) fn take_member(reader: &mut Reader) -> Result<MemberId, DecodeError> {
    let number = u64::take(reader)?;
    MemberId::new(number).ok_or_else(|| reader.invalid("0 is no member"))
}

pub(super) fn put_position(position: LogPosition, writer: &mut Writer) {
    position.term.put(writer);
    position.index.put(writer);
}

pub(super) fn take_position(reader: &mut Reader) -> Result<LogPosition, DecodeError> {
    Ok(LogPosition {
        term: u64::take(reader)?,
        index: u64::take(reader)?,
    })
}

/// A snapshot's mark: its place and its group.
pub(super) fn put_mark(mark: &SnapshotMark, writer: &mut Writer) {
    put_position(mark.position, writer);
    let group = &mark.membership;
    for list in [
        &group.voters,
        &group.learners,
        &group.voters_outgoing,
        &group.learners_next,
    ] {
        // No group comes near 2^16 members; a longer list would not be read, and the frame is too long before.
        u16::try_from(list.len()).unwrap_or(u16::MAX).put(writer);
        for member in list {
            member.get().put(writer);
        }
    }
    group.auto_leave.put(writer);
}

pub(super) fn take_mark(reader: &mut Reader) -> Result<SnapshotMark, DecodeError> {
    let position = take_position(reader)?;
    let mut lists: [Vec<MemberId>; 4] = Default::default();
    for list in &mut lists {
        let len = usize::from(u16::take(reader)?);
        if len > PEER_MEMBERS_MAX {
            return Err(reader.invalid("a group of too many members"));
        }
        for _ in 0..len {
            list.push(take_member(reader)?);
        }
    }
    let [voters, learners, voters_outgoing, learners_next] = lists;
    Ok(SnapshotMark {
        position,
        membership: Membership {
            voters,
            learners,
            voters_outgoing,
            learners_next,
            auto_leave: bool::take(reader)?,
        },
    })
}

fn put_refusal(refusal: Refusal, writer: &mut Writer) {
    match refusal {
        Refusal::DiskFull {
            free_bytes,
            needed_bytes,
        } => {
            0_u8.put(writer);
            free_bytes.put(writer);
            needed_bytes.put(writer);
        }
        Refusal::Dropped(reason) => {
            1_u8.put(writer);
            put_drop_reason(reason, writer);
        }
        Refusal::TooLarge {
            len_bytes,
            max_bytes,
        } => {
            2_u8.put(writer);
            len_bytes.put(writer);
            max_bytes.put(writer);
        }
        Refusal::NoShard(shard) => {
            3_u8.put(writer);
            shard.put(writer);
        }
        Refusal::NoLeader => 4_u8.put(writer),
        Refusal::Unknown => 5_u8.put(writer),
        Refusal::Stopped => 6_u8.put(writer),
        Refusal::Diverged => 7_u8.put(writer),
    }
}

fn take_refusal(reader: &mut Reader) -> Result<Refusal, DecodeError> {
    Ok(match u8::take(reader)? {
        0 => Refusal::DiskFull {
            free_bytes: u64::take(reader)?,
            needed_bytes: u64::take(reader)?,
        },
        1 => Refusal::Dropped(take_drop_reason(reader)?),
        2 => Refusal::TooLarge {
            len_bytes: u64::take(reader)?,
            max_bytes: u64::take(reader)?,
        },
        3 => Refusal::NoShard(u16::take(reader)?),
        4 => Refusal::NoLeader,
        5 => Refusal::Unknown,
        6 => Refusal::Stopped,
        7 => Refusal::Diverged,
        _ => return Err(reader.invalid("no such refusal")),
    })
}

fn put_drop_reason(reason: DropReason, writer: &mut Writer) {
    match reason {
        DropReason::NotLeader { leader } => {
            0_u8.put(writer);
            leader.map_or(0, MemberId::get).put(writer);
        }
        DropReason::Transferring => 1_u8.put(writer),
        DropReason::Overloaded => 2_u8.put(writer),
        DropReason::Invalid => 3_u8.put(writer),
        DropReason::Replaced => 4_u8.put(writer),
        DropReason::Unknown => 5_u8.put(writer),
        DropReason::Unconfirmed => 6_u8.put(writer),
    }
}

fn take_drop_reason(reader: &mut Reader) -> Result<DropReason, DecodeError> {
    Ok(match u8::take(reader)? {
        0 => DropReason::NotLeader {
            leader: MemberId::new(u64::take(reader)?),
        },
        1 => DropReason::Transferring,
        2 => DropReason::Overloaded,
        3 => DropReason::Invalid,
        4 => DropReason::Replaced,
        5 => DropReason::Unknown,
        6 => DropReason::Unconfirmed,
        _ => return Err(reader.invalid("no such reason")),
    })
}
