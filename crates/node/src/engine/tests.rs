//! A node through restarts and full disks.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use clearspan_ledger::entry::Command;
use clearspan_ledger::{MessageNo, ShardId};
use clearspan_replica::LogStore as _;
use clearspan_storage::{
    ClusterId, DataDir, FreeSpace, Identity, Layout, Log, LogOptions, NodeId, PackageOptions,
    PackageStore,
};
use crossbeam_channel::{bounded, unbounded};

use super::group::Seat;
use super::package_writer::{PackageTask, PackageWriter};
use super::peers::NoPeers;
use super::shared::{ShardState, Shared};
use super::stepped::Stepped;
use super::{Engine, EngineOptions, Lane, ProposeError, recover};
use crate::clock::Clock;

const ONE: ShardId = ShardId::new(0);

/// A volume with as much room as a test says.
#[derive(Debug)]
struct Room(AtomicU64);

impl Room {
    fn of(bytes: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(bytes)))
    }

    fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }
}

impl FreeSpace for Room {
    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        Ok(self.0.load(Ordering::Relaxed))
    }
}

/// Waits for something another thread does.
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..30_000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("in vain waited until {what}");
}

fn options(log_room: Option<Arc<Room>>) -> EngineOptions {
    let mut options = EngineOptions::usual();
    options.log.prefill_bytes = 0;
    options.log.segment_bytes = 1 << 20;
    options.log.reserve_bytes = 1 << 20;
    options.packages.reserve_bytes = 1 << 20;
    if let Some(room) = log_room {
        options.log.free_space = room;
    }
    options
}

#[test]
fn a_full_volume_of_packages_is_told_and_forgotten_once_it_has_room() {
    let dir = tempfile::tempdir().unwrap();
    let identity = Identity {
        cluster: ClusterId::from_bytes([1; 16]),
        node: NodeId::from_bytes([2; 16]),
    };
    let data = DataDir::create(Layout::under(dir.path().join("data")), identity).unwrap();
    let room = Room::of(0);
    let packages = PackageOptions {
        reserve_bytes: 1 << 20,
        free_space: room.clone(),
        ..PackageOptions::default()
    };
    let store = PackageStore::open(&data, packages).unwrap();
    let shared = Arc::new(Shared::new(
        0,
        Clock::System,
        vec![ShardState::default()],
        Box::new(store),
    ));
    let (tasks, waiting) = unbounded();
    let writer = {
        let shared = shared.clone();
        std::thread::spawn(move || PackageWriter::new(shared).run(&waiting))
    };
    let message = MessageNo::new(7);
    let package = Bytes::from_static(b"a package");
    shared.package_comes(ONE, message, package.clone());
    tasks
        .send(PackageTask::Put(ONE, message, package.clone()))
        .unwrap();
    until("the full disk is noticed", || shared.disk_full().is_some());
    // It is served all the while.
    assert_eq!(shared.package(ONE, message).unwrap(), Some(package.clone()));
    room.set(1 << 30);
    // Nothing else is written: intake is refused, so nobody but this writer could find out.
    until("the room is noticed", || shared.disk_full().is_none());
    let (done, persisted) = bounded(1);
    tasks.send(PackageTask::Persist(done)).unwrap();
    persisted.recv().unwrap();
    assert_eq!(
        shared
            .packages
            .get(clearspan_replica::ShardId::new(0), 7)
            .unwrap(),
        Some(package)
    );
    drop(tasks);
    writer.join().unwrap();
}

#[test]
fn a_full_log_refuses_intake_answers_reads_and_goes_on_with_room() {
    let dir = tempfile::tempdir().unwrap();
    let room = Room::of(1 << 30);
    let root = dir.path().join("data");
    let engine = Engine::open(&root, 1, options(Some(room.clone()))).unwrap();
    let applied = || engine.with_ledger(ONE, |ledger| ledger.position().0.get());
    let before = applied();
    room.set(1000);
    // The write that meets the full disk waits for room; it has been promised nothing.
    let pending = engine.propose(ONE, &Command::Tick, Lane::Urgent).unwrap();
    until("the full disk is noticed", || engine.disk_full().is_some());
    for lane in [Lane::Urgent, Lane::Bulk] {
        let refused = engine.propose(ONE, &Command::Tick, lane).unwrap_err();
        let ProposeError::DiskFull { free_bytes, .. } = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(free_bytes, 1000);
        let text = refused.to_string();
        assert!(
            text.starts_with("the disk is full (1000 bytes free"),
            "{text}"
        );
    }
    assert_eq!(applied(), before);
    assert_eq!(engine.read().shards(), 1);
    room.set(1 << 30);
    pending.wait().unwrap();
    until("the room is noticed", || engine.disk_full().is_none());
    engine.execute(ONE, &Command::Tick, Lane::Bulk).unwrap();
    assert_eq!(applied(), before + 2);
    engine.close();
}

#[test]
fn a_node_driven_by_hand_answers_once_its_write_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let now = Arc::new(AtomicU64::new(1_000_000_000));
    let mut options = options(None);
    options.clock = Clock::Stepped {
        shown: now.clone(),
        steady: now.clone(),
    };
    let layout = Layout::under(dir.path().join("data"));
    let seat = Seat::alone();
    let disk = recover::open_disk(layout, &options, &seat).unwrap();
    let mut node = Stepped::open(disk, 1, options, seat, |_| Box::new(NoPeers)).unwrap();
    let write = |node: &mut Stepped| {
        while node.begin_log().is_some() {
            assert!(node.end_log());
        }
        node.turn();
    };
    // The first vote, then the first leader's own entry.
    for _ in 0..3 {
        write(&mut node);
    }
    let (reply, outcome) = bounded(1);
    let reply = Box::new(move |result| reply.send(result).unwrap());
    node.propose(ONE, &Command::Tick, Lane::Urgent, reply)
        .unwrap();
    node.turn();
    assert!(node.begin_log().is_some());
    node.turn();
    assert!(outcome.is_empty(), "nothing is durable yet");
    assert!(node.end_log());
    node.turn();
    assert_eq!(outcome.try_recv().unwrap().unwrap().index.get(), 2);
    let shown = now.load(Ordering::Relaxed);
    assert_eq!(
        node.with_ledger(ONE, |ledger| ledger.position().1.ns()),
        shown
    );
}

#[test]
fn the_log_is_cut_though_no_run_takes_two_snapshots() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("data");
    for _ in 0..3 {
        let engine = Engine::open(&root, 1, options(None)).unwrap();
        for _ in 0..10 {
            engine.execute(ONE, &Command::Tick, Lane::Bulk).unwrap();
        }
        engine.close();
    }
    let data = DataDir::open(Layout::under(&root)).unwrap();
    let log = Log::open(
        &data,
        LogOptions {
            prefill_bytes: 0,
            ..LogOptions::default()
        },
    )
    .unwrap();
    let stored = log.shard(clearspan_replica::ShardId::new(0)).unwrap();
    // Ten entries and the leader's blank one per run: cut at the snapshot before the newest.
    assert_eq!(stored.last_index, 33);
    assert_eq!(stored.base.index, 22);
}
