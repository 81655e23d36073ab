//! Frames: what is sent is what comes, in one spelling; whatever else comes is refused without a panic.

use bytes::Bytes;
use clearspan_codec::frame::{
    BODY_MAX_BYTES, Frame, FrameError, HEADER_BYTES, Header, Hello, Kind, Lane, NotAdmitted,
    PACKAGES_MAX_COUNT, Refusal, VERSION, decode, encode,
};
use clearspan_ledger::nodes::NodeDirectory;
use clearspan_ledger::{AdminRefusal, LogIndex, MessageNo, Outcome, Reason, Reply, ShardId};
use clearspan_replica::{
    DropReason, Entry, EntryKind, LogPosition, MemberId, Membership, MessageKind, PeerMessage,
    SnapshotMark,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

use crate::golden::{check_text, to_hex};
use crate::samples::node;

const CLUSTER: [u8; 16] = [0xC1; 16];

fn member(number: u64) -> MemberId {
    MemberId::new(number).expect("not zero")
}

fn mark() -> SnapshotMark {
    SnapshotMark {
        position: LogPosition { term: 3, index: 99 },
        membership: Membership {
            voters: vec![member(1), member(2), member(3)],
            learners: vec![member(4)],
            voters_outgoing: vec![member(1)],
            learners_next: vec![],
            auto_leave: true,
        },
    }
}

fn message(kind: MessageKind) -> PeerMessage {
    PeerMessage {
        kind,
        to: member(2),
        from: member(0x0102_0304_0506_0708),
        term: 7,
        at: LogPosition { term: 6, index: 40 },
        entries: Vec::new(),
        commit: LogPosition { term: 6, index: 39 },
        snapshot: None,
        request_snapshot: 0,
        reject: false,
        reject_hint: 0,
        context: Bytes::new(),
        priority: -1,
    }
}

fn append() -> PeerMessage {
    let entry = |index, kind, data: &'static [u8]| Entry {
        index,
        term: 7,
        kind,
        data: Bytes::from_static(data),
    };
    let mut message = message(MessageKind::Append);
    message.entries = vec![
        entry(41, EntryKind::Command, b"a command"),
        entry(42, EntryKind::ChangeV2, b""),
        entry(43, EntryKind::Command, b""),
    ];
    message
}

/// One frame of every shape.
fn frames() -> Vec<(String, Frame)> {
    let shard = ShardId::new(5);
    let mut all = Vec::new();
    let mut add = |name: &str, frame| all.push((name.to_owned(), frame));
    for (name, lane) in [("hello-urgent", Lane::Urgent), ("hello-bulk", Lane::Bulk)] {
        let hello = Hello {
            node: [0xA0; 16],
            member: member(3),
            incarnation: 12,
            version: VERSION,
            lane,
        };
        add(name, Frame::Hello(hello));
    }
    add("ping", Frame::Ping { number: 1 });
    add("life", Frame::Life { previous: 11 });
    for (name, why) in [
        ("removed", NotAdmitted::Removed),
        ("rolled-back", NotAdmitted::RolledBack),
    ] {
        add(&format!("not-admitted-{name}"), Frame::NotAdmitted(why));
    }
    add(
        "nodes",
        Frame::Nodes {
            directory: NodeDirectory::founding(vec![node(1), node(2)]),
            lives: vec![(member(1), 12), (member(2), 13)],
        },
    );
    add("pong", Frame::Pong { number: u64::MAX });
    add(
        "raft-append",
        Frame::Raft {
            shard,
            message: append(),
        },
    );
    let mut rejected = message(MessageKind::AppendResponse);
    (
        rejected.reject,
        rejected.reject_hint,
        rejected.request_snapshot,
    ) = (true, 30, 31);
    add(
        "raft-append-response",
        Frame::Raft {
            shard,
            message: rejected,
        },
    );
    let mut snapshot = message(MessageKind::Snapshot);
    snapshot.snapshot = Some(mark());
    add(
        "raft-snapshot",
        Frame::Raft {
            shard,
            message: snapshot,
        },
    );
    let mut read = message(MessageKind::ReadIndex);
    read.context = Bytes::from_static(b"12345678");
    add(
        "raft-read-index",
        Frame::Raft {
            shard,
            message: read,
        },
    );
    for kind in [
        MessageKind::Vote,
        MessageKind::VoteResponse,
        MessageKind::Heartbeat,
        MessageKind::HeartbeatResponse,
        MessageKind::TransferLeader,
        MessageKind::TimeoutNow,
        MessageKind::PreVote,
        MessageKind::PreVoteResponse,
    ] {
        add(
            &format!("raft-{kind:?}").to_lowercase(),
            Frame::Raft {
                shard,
                message: message(kind),
            },
        );
    }
    add(
        "propose",
        Frame::Propose {
            shard,
            number: 8,
            data: Bytes::from_static(b"an entry"),
        },
    );
    let message = MessageNo::new(4);
    for (name, reply) in [
        ("done", Reply::Done),
        (
            "taken",
            Reply::Taken {
                message,
                answer: 5,
                accepted: 6,
                refused: 7,
            },
        ),
        ("repeat", Reply::Repeat { message, answer: 5 }),
        (
            "held",
            Reply::Held {
                answer: 5,
                missing_from: 6,
                missing_through: 7,
            },
        ),
        (
            "not-taken",
            Reply::NotTaken {
                reason: Reason::InsufficientFunds,
            },
        ),
        ("held-full", Reply::HeldFull { missing_from: 6 }),
        (
            "not-home",
            Reply::NotHome {
                home: ShardId::new(2),
            },
        ),
        ("refused", Reply::Refused(AdminRefusal::DayOpen)),
        ("asked", Reply::Asked { request: 812 }),
    ] {
        let outcome = Outcome {
            index: LogIndex::new(77),
            reply,
            released: Vec::new(),
        };
        add(
            &format!("answer-{name}"),
            Frame::Answer {
                number: 9,
                result: Ok(outcome),
            },
        );
    }
    for (name, refusal) in [
        (
            "disk-full",
            Refusal::DiskFull {
                free_bytes: 1,
                needed_bytes: 2,
            },
        ),
        (
            "not-leader",
            Refusal::Dropped(DropReason::NotLeader {
                leader: Some(member(6)),
            }),
        ),
        (
            "no-leader-known",
            Refusal::Dropped(DropReason::NotLeader { leader: None }),
        ),
        ("transferring", Refusal::Dropped(DropReason::Transferring)),
        ("overloaded", Refusal::Dropped(DropReason::Overloaded)),
        ("invalid", Refusal::Dropped(DropReason::Invalid)),
        ("replaced", Refusal::Dropped(DropReason::Replaced)),
        ("dropped-unknown", Refusal::Dropped(DropReason::Unknown)),
        ("unconfirmed", Refusal::Dropped(DropReason::Unconfirmed)),
        (
            "too-large",
            Refusal::TooLarge {
                len_bytes: 3,
                max_bytes: 2,
            },
        ),
        ("no-shard", Refusal::NoShard(9)),
        ("no-leader", Refusal::NoLeader),
        ("unknown", Refusal::Unknown),
        ("stopped", Refusal::Stopped),
        ("diverged", Refusal::Diverged),
    ] {
        add(
            &format!("answer-{name}"),
            Frame::Answer {
                number: 9,
                result: Err(refusal),
            },
        );
    }
    add(
        "want-snapshot",
        Frame::WantSnapshot {
            shard,
            mark: mark(),
            offset_bytes: 1 << 40,
        },
    );
    let data = Bytes::from_static(b"a piece");
    add(
        "snapshot-piece",
        Frame::SnapshotPiece {
            shard,
            mark: mark(),
            offset_bytes: 16,
            body_bytes: 23,
            data,
        },
    );
    add(
        "snapshot-end",
        Frame::SnapshotEnd {
            shard,
            delivered: true,
        },
    );
    add("held", Frame::Held { shard, index: 1234 });
    let digest = 0x0102_0304_0506_0708_090A_0B0C_0D0E_0F10;
    add(
        "digest",
        Frame::Digest {
            shard,
            index: 512,
            digest,
        },
    );
    add("read-index", Frame::ReadIndex { shard, number: 8 });
    add(
        "read-answer",
        Frame::ReadAnswer {
            number: 8,
            result: Ok(1234),
        },
    );
    add(
        "read-answer-no-leader",
        Frame::ReadAnswer {
            number: 8,
            result: Err(Refusal::NoLeader),
        },
    );
    add(
        "want-packages",
        Frame::WantPackages {
            shard,
            from: 10,
            below: 20,
        },
    );
    let packages = vec![(10, Bytes::from_static(b"ten")), (12, Bytes::new())];
    add(
        "packages",
        Frame::Packages {
            shard,
            packages,
            through: 13,
        },
    );
    all
}

fn to_bytes(frame: &Frame) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(CLUSTER, frame, &mut bytes).expect("a frame that may be sent");
    bytes
}

/// What a connection does.
fn from_bytes(bytes: &[u8]) -> Option<Result<Frame, FrameError>> {
    let (header, body) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    Some(Header::decode(header, CLUSTER).and_then(|header| {
        let body = body.get(..header.body_bytes()).unwrap_or(body);
        decode(&header, Bytes::copy_from_slice(body))
    }))
}

/// Makes the checksum fit, so that what is wrong with the rest is found.
fn seal(bytes: &mut [u8]) {
    let Some((header, body)) = bytes.split_first_chunk_mut::<HEADER_BYTES>() else {
        return;
    };
    let len = u32::try_from(body.len()).expect("short");
    header[24..28].copy_from_slice(&len.to_le_bytes());
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&header[..28]), body);
    header[28..].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn golden_frames() {
    let mut kinds = Vec::new();
    for (name, frame) in frames() {
        let bytes = to_bytes(&frame);
        check_text("frame", VERSION, &format!("{name}.hex"), &to_hex(&bytes));
        assert_eq!(from_bytes(&bytes), Some(Ok(frame)), "{name}");
        let (header, _) = bytes.split_first_chunk::<HEADER_BYTES>().expect("a header");
        kinds.push(Header::decode(header, CLUSTER).expect("a header").kind());
    }
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, Kind::ALL, "a golden frame of every kind");
}

#[test]
fn headers_are_checked_before_anything_else() {
    let good = to_bytes(&Frame::Ping { number: 1 });
    let changed = |at: usize, bytes: &[u8]| {
        let mut frame = good.clone();
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        from_bytes(&frame)
            .expect("a header")
            .expect_err("it is changed")
    };
    assert_eq!(changed(0, b"HTTP"), FrameError::Magic);
    assert_eq!(changed(4, &[0]), FrameError::Version(0));
    assert_eq!(changed(5, &[0]), FrameError::Kind(0));
    assert_eq!(changed(5, &[200]), FrameError::Kind(200));
    assert_eq!(changed(6, &[1]), FrameError::Shard(Kind::Ping));
    assert_eq!(changed(8, &[0]), FrameError::Cluster);
    let max_bytes = Kind::Ping.body_max_bytes();
    assert_eq!(
        changed(24, &u32::MAX.to_le_bytes()),
        FrameError::TooLong {
            kind: Kind::Ping,
            found_bytes: u64::from(u32::MAX),
            max_bytes
        }
    );
    assert_eq!(changed(28, &[0, 0, 0, 0]), FrameError::Checksum);
    assert_eq!(changed(HEADER_BYTES, &[9]), FrameError::Checksum);
}

#[test]
fn what_would_be_refused_is_not_sent() {
    let mut into = vec![1, 2, 3];
    let large = Frame::SnapshotPiece {
        shard: ShardId::new(0),
        mark: mark(),
        offset_bytes: 0,
        body_bytes: 0,
        data: Bytes::from(vec![0; BODY_MAX_BYTES]),
    };
    assert!(matches!(
        encode(CLUSTER, &large, &mut into),
        Err(FrameError::TooLong { .. })
    ));
    let mut gap = append();
    gap.entries.remove(0);
    let gap = Frame::Raft {
        shard: ShardId::new(0),
        message: gap,
    };
    assert!(matches!(
        encode(CLUSTER, &gap, &mut into),
        Err(FrameError::Message(_))
    ));
    let many = Frame::Packages {
        shard: ShardId::new(0),
        packages: vec![(0, Bytes::new()); PACKAGES_MAX_COUNT + 1],
        through: 0,
    };
    assert_eq!(
        encode(CLUSTER, &many, &mut into),
        Err(FrameError::TooMany(PACKAGES_MAX_COUNT + 1))
    );
    assert_eq!(into, [1, 2, 3]);
}

#[test]
fn no_part_is_a_whole() {
    for (name, frame) in frames() {
        let bytes = to_bytes(&frame);
        for len in HEADER_BYTES..bytes.len() {
            let mut part = bytes[..len].to_vec();
            assert_eq!(
                from_bytes(&part),
                Some(Err(FrameError::Checksum)),
                "{name}: {len}"
            );
            seal(&mut part);
            // What ends with raw data has shorter neighbours; nothing is ever read as the same frame.
            assert_ne!(from_bytes(&part), Some(Ok(frame.clone())), "{name}: {len}");
        }
    }
}

/// Reads it; what is read is written as the same bytes.
fn read(bytes: &[u8]) {
    if let Some(Ok(frame)) = from_bytes(bytes) {
        let again = to_bytes(&frame);
        assert_eq!(bytes.get(..again.len()), Some(&again[..]));
    }
}

fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let all: Vec<Vec<u8>> = frames().iter().map(|(_, frame)| to_bytes(frame)).collect();
    prop::sample::select(all)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1_131),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_body(kind in 0_u8..14, shard in 0_u16..3, body in vec(any::<u8>(), 0..300)) {
        let mut bytes = b"CSPF".to_vec();
        bytes.extend([VERSION, kind]);
        bytes.extend(shard.to_le_bytes());
        bytes.extend(CLUSTER);
        bytes.extend([0; 8]);
        bytes.extend(body);
        read(&bytes);
        seal(&mut bytes);
        read(&bytes);
    }

    #[test]
    fn changed_frames(mut bytes in any_frame(), changes in vec((any::<Index>(), any::<u8>()), 1..8)) {
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        read(&bytes);
        seal(&mut bytes);
        read(&bytes);
    }

    #[test]
    fn huge_lengths(mut bytes in any_frame(), at in any::<Index>(), low in any::<u8>()) {
        let at = at.index(bytes.len());
        for (offset, value) in [low, 0xFF, 0xFF, 0xFF].into_iter().enumerate() {
            if let Some(byte) = bytes.get_mut(at + offset) {
                *byte = value;
            }
        }
        seal(&mut bytes);
        read(&bytes);
    }

    #[test]
    fn messages_come_back(
        data in vec(vec(any::<u8>(), 0..50), 0..20),
        numbers in any::<[u64; 6]>(),
        flags in any::<[bool; 2]>(),
        priority in any::<i64>(),
    ) {
        let [term, at_term, index, commit_term, commit, hint] = numbers;
        let index = index / 2;
        let mut message = message(MessageKind::Append);
        (message.term, message.priority, message.reject) = (term, priority, flags[0]);
        message.at = LogPosition { term: at_term, index };
        message.commit = LogPosition { term: commit_term, index: commit };
        message.reject_hint = hint;
        message.entries = (1..).zip(data).map(|(place, data)| Entry {
            index: index + place,
            term: term.wrapping_add(place),
            kind: EntryKind::Command,
            data: Bytes::from(data),
        }).collect();
        let frame = Frame::Raft { shard: ShardId::new(1), message };
        prop_assert_eq!(from_bytes(&to_bytes(&frame)), Some(Ok(frame)));
    }
}
