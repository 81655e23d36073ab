//! A node's disk: what is durable, what is only written, and what a power cut leaves of it.
//!
//! Power can go at any of a node's operations: from then on nothing reaches the disk, though the node does not notice
//! before it dies. What was written and not synced may survive or not, a write under way too.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use clearspan_node::engine::disk::{Disk, NodesStore, Packages, SnapshotStore, Verdicts};
use clearspan_replica::{
    Append, Entry, LogError, LogPosition, LogStore, MemoryLog, ShardId, ShardLog, SnapshotMark,
};
use clearspan_storage::{DataDirError, Package, PackageError, SnapshotError, SnapshotFile};

use crate::rng::Rng;

type PackageMap = BTreeMap<(u16, u64), Bytes>;

#[derive(Debug)]
enum PackageChange {
    Put(u16, u64, Bytes),
    Remove(u16, u64),
}

fn change(packages: &mut PackageMap, what: &PackageChange) {
    match what {
        PackageChange::Put(shard, number, data) => {
            packages.insert((*shard, *number), data.clone());
        }
        PackageChange::Remove(shard, through) => {
            packages.retain(|&(of, number), _| of != *shard || number > *through);
        }
    }
}

#[derive(Debug)]
struct StoredSnapshot {
    mark: SnapshotMark,
    body: Bytes,
    damaged: bool,
}

#[derive(Debug, Default)]
pub(crate) struct DiskState {
    pub(crate) log: MemoryLog,
    written: PackageMap,
    durable: PackageMap,
    unsynced: Vec<PackageChange>,
    snapshots: BTreeMap<ShardId, Vec<StoredSnapshot>>,
    /// Shards whose stored entries are damaged.
    damaged_logs: BTreeSet<ShardId>,
    diverged: Option<String>,
    disputed: BTreeMap<ShardId, String>,
    /// What the node knows of the cluster's nodes.
    nodes: Option<Bytes>,
    /// Operations that change something, so far.
    operations: u64,
    /// Power goes at this operation.
    cut_at: Option<u64>,
    /// Power has gone.
    pub(crate) off: bool,
    pub(crate) full: bool,
    /// The next sync fails.
    fail_sync: bool,
    /// A sync has failed: whoever goes on has lied.
    pub(crate) sync_failed: bool,
}

/// Shared by a node's ports and the world, which keeps it while the node is down.
#[derive(Clone, Debug, Default)]
pub(crate) struct SimDisk(Arc<Mutex<DiskState>>);

impl SimDisk {
    pub(crate) fn state(&self) -> MutexGuard<'_, DiskState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ports that a node is given.
    pub(crate) fn ports(&self) -> Disk {
        Disk {
            log: Box::new(LogPort(self.clone())),
            packages: Box::new(PackagePort(self.clone())),
            snapshots: Box::new(SnapshotPort(self.clone())),
            verdicts: Box::new(VerdictPort(self.clone())),
            nodes: Box::new(NodesPort(self.clone())),
            cluster: 7,
            lock: Box::new(()),
        }
    }

    /// Power will go at one of the next operations.
    pub(crate) fn cut_after(&self, operations: u64) {
        let mut state = self.state();
        state.cut_at = Some(state.operations + operations);
    }

    /// The process has ended; with `power` lost, only what was synced is sure to be there.
    pub(crate) fn restart(&self, power_lost: bool, rng: &mut Rng) {
        let mut state = self.state();
        state.off = false;
        state.cut_at = None;
        state.fail_sync = false;
        state.sync_failed = false;
        if !power_lost {
            return;
        }
        if rng.per_mille(500) {
            state.log.crash();
        }
        // Batches reach the disk in order.
        let kept = rng.index(state.unsynced.len() + 1);
        let changes = std::mem::take(&mut state.unsynced);
        for what in changes.iter().take(kept) {
            change(&mut state.durable, what);
        }
        state.written = state.durable.clone();
    }

    pub(crate) fn set_full(&self, full: bool) {
        let mut state = self.state();
        state.full = full;
        state.log.set_free_bytes(full.then_some(0));
    }

    /// Damages the newest snapshot of a shard; false when there is none.
    pub(crate) fn damage_snapshot(&self, shard: ShardId) -> bool {
        let mut state = self.state();
        let newest = state
            .snapshots
            .get_mut(&shard)
            .and_then(|files| files.first_mut());
        newest.map(|file| file.damaged = true).is_some()
    }

    /// The next sync of the log fails, and what it was to make durable is in nobody's hands.
    pub(crate) fn fail_next_sync(&self) {
        self.state().fail_sync = true;
    }

    /// Whether the log of a shard begins behind every snapshot that can be read.
    pub(crate) fn is_cut_off(&self, shard: ShardId) -> bool {
        let state = self.state();
        let base = state.log.shard(shard).map_or(0, |log| log.base.index);
        let files = state.snapshots.get(&shard).map_or(&[][..], Vec::as_slice);
        let whole = files.iter().filter(|file| !file.damaged);
        base > whole
            .map(|file| file.mark.position.index)
            .max()
            .unwrap_or(0)
    }

    /// Damages entries of a shard's log.
    pub(crate) fn damage_log(&self, shard: ShardId) {
        self.state().damaged_logs.insert(shard);
    }

    /// Whether an entry of this term is durable here, or was compacted away.
    pub(crate) fn holds(&self, shard: ShardId, position: LogPosition) -> bool {
        let state = self.state();
        let Ok(log) = state.log.shard(shard) else {
            return false;
        };
        if position.index <= log.base.index {
            return true;
        }
        let (low, high) = (position.index, position.index + 1);
        state
            .log
            .entries(shard, low, high, u64::MAX)
            .is_ok_and(|found| found.iter().all(|entry| entry.term == position.term))
    }

    /// How many snapshots and packages there are.
    pub(crate) fn snapshot_count(&self, shard: ShardId) -> usize {
        self.state().snapshots.get(&shard).map_or(0, Vec::len)
    }
}

impl DiskState {
    /// Power stays.
    pub(crate) fn cancel_cut(&mut self) {
        self.cut_at = None;
    }

    /// Whether a change still reaches the disk.
    fn reaches(&mut self) -> bool {
        self.operations += 1;
        if self.cut_at.is_some_and(|at| self.operations >= at) {
            self.off = true;
        }
        !self.off
    }
}

#[derive(Debug)]
struct LogPort(SimDisk);

impl LogPort {
    fn check(&self, shard: ShardId) -> Result<(), LogError> {
        if self.0.state().damaged_logs.contains(&shard) {
            return Err(LogError::Corrupt {
                shard,
                index: 0,
                place: "simulated".to_owned(),
                reason: "its checksum differs".to_owned(),
            });
        }
        Ok(())
    }
}

impl LogStore for LogPort {
    fn append(&mut self, batch: &[Append]) -> Result<(), LogError> {
        let mut state = self.0.state();
        if !state.reaches() {
            return Ok(());
        }
        if std::mem::take(&mut state.fail_sync) {
            state.sync_failed = true;
            return Err(LogError::Fatal {
                step: "sync the log".to_owned(),
                source: Box::new(io::Error::other("the device did not take it")),
            });
        }
        state.log.append(batch)
    }

    fn shards(&self) -> Vec<ShardId> {
        self.0.state().log.shards()
    }

    fn shard(&self, shard: ShardId) -> Result<ShardLog, LogError> {
        self.check(shard)?;
        self.0.state().log.shard(shard)
    }

    fn entries(
        &self,
        shard: ShardId,
        low: u64,
        high: u64,
        max_bytes: u64,
    ) -> Result<Vec<Entry>, LogError> {
        self.check(shard)?;
        self.0.state().log.entries(shard, low, high, max_bytes)
    }

    fn compact(&mut self, shard: ShardId, to: LogPosition) -> Result<(), LogError> {
        let mut state = self.0.state();
        if !state.reaches() {
            return Ok(());
        }
        state.log.compact(shard, to)
    }

    fn purge(&mut self) -> Result<Vec<ShardId>, LogError> {
        Ok(Vec::new())
    }
}

#[derive(Debug)]
struct PackagePort(SimDisk);

impl Packages for PackagePort {
    fn put(&self, batch: &[Package]) -> Result<(), PackageError> {
        let mut state = self.0.state();
        if state.full {
            return Err(PackageError::DiskFull {
                free_bytes: 0,
                needed_bytes: 1,
            });
        }
        if !state.reaches() {
            return Ok(());
        }
        for package in batch {
            let what =
                PackageChange::Put(package.shard.get(), package.number, package.data.clone());
            change(&mut state.written, &what);
            state.unsynced.push(what);
        }
        Ok(())
    }

    fn persist(&self) -> Result<(), PackageError> {
        let mut state = self.0.state();
        if !state.reaches() {
            return Ok(());
        }
        for what in std::mem::take(&mut state.unsynced) {
            change(&mut state.durable, &what);
        }
        Ok(())
    }

    fn get(&self, shard: ShardId, number: u64) -> Result<Option<Bytes>, PackageError> {
        Ok(self.0.state().written.get(&(shard.get(), number)).cloned())
    }

    fn span(&self, shard: ShardId) -> Result<Option<(u64, u64)>, PackageError> {
        let state = self.0.state();
        let mut numbers = state
            .written
            .range((shard.get(), 0)..=(shard.get(), u64::MAX))
            .map(|((_, number), _)| *number);
        let first = numbers.next();
        let last = numbers.next_back().or(first);
        Ok(first.zip(last))
    }

    fn remove_through(&self, shard: ShardId, number: u64) -> Result<u64, PackageError> {
        let mut state = self.0.state();
        if !state.reaches() {
            return Ok(0);
        }
        let before = state.written.len();
        let what = PackageChange::Remove(shard.get(), number);
        change(&mut state.written, &what);
        state.unsynced.push(what);
        Ok((before - state.written.len()) as u64)
    }
}

#[derive(Debug)]
struct SnapshotPort(SimDisk);

/// The newest, and one more in case it turns out damaged.
const KEPT_COUNT: usize = 2;

fn place(shard: ShardId, position: LogPosition) -> PathBuf {
    PathBuf::from(format!("{shard}/{}-{}", position.index, position.term))
}

fn damaged(shard: ShardId, position: LogPosition) -> SnapshotError {
    SnapshotError::Damaged {
        path: place(shard, position),
        reason: "its body's checksum differs",
    }
}

impl SnapshotStore for SnapshotPort {
    fn write(&self, shard: ShardId, mark: &SnapshotMark, body: &[u8]) -> Result<(), SnapshotError> {
        let mut state = self.0.state();
        if state.full {
            return Err(SnapshotError::Io {
                step: "write",
                path: place(shard, mark.position),
                source: std::io::Error::from(std::io::ErrorKind::StorageFull),
            });
        }
        // It appears under its name only once it is whole.
        if !state.reaches() {
            return Ok(());
        }
        let files = state.snapshots.entry(shard).or_default();
        files.retain(|file| file.mark.position != mark.position);
        files.push(StoredSnapshot {
            mark: mark.clone(),
            body: Bytes::copy_from_slice(body),
            damaged: false,
        });
        files.sort_by_key(|file| {
            std::cmp::Reverse((file.mark.position.index, file.mark.position.term))
        });
        files.truncate(KEPT_COUNT);
        Ok(())
    }

    fn list(&self, shard: ShardId) -> Result<Vec<SnapshotFile>, SnapshotError> {
        let state = self.0.state();
        let files = state.snapshots.get(&shard).map_or(&[][..], Vec::as_slice);
        let found = files.iter().map(|file| {
            let position = file.mark.position;
            SnapshotFile {
                path: place(shard, position),
                position,
                length_bytes: file.body.len() as u64,
                checked: if file.damaged {
                    Err(damaged(shard, position))
                } else {
                    Ok(file.mark.clone())
                },
            }
        });
        Ok(found.collect())
    }

    fn body(&self, shard: ShardId, position: LogPosition) -> Result<Bytes, SnapshotError> {
        let state = self.0.state();
        let files = state.snapshots.get(&shard).map_or(&[][..], Vec::as_slice);
        match files.iter().find(|file| file.mark.position == position) {
            Some(file) if file.damaged => Err(damaged(shard, position)),
            Some(file) => Ok(file.body.clone()),
            None => Err(SnapshotError::Io {
                step: "open",
                path: place(shard, position),
                source: std::io::Error::from(std::io::ErrorKind::NotFound),
            }),
        }
    }
}

#[derive(Debug)]
struct VerdictPort(SimDisk);

impl Verdicts for VerdictPort {
    fn diverged_file(&self) -> PathBuf {
        PathBuf::from("DIVERGED")
    }

    fn disputed_file(&self, shard: ShardId) -> PathBuf {
        PathBuf::from(format!("DISPUTED-{shard}"))
    }

    fn diverged(&self, why: &str) -> io::Result<()> {
        self.0.state().diverged = Some(why.to_owned());
        Ok(())
    }

    fn disputed(&self, shard: ShardId, why: &str) -> io::Result<()> {
        self.0.state().disputed.insert(shard, why.to_owned());
        Ok(())
    }

    fn read_diverged(&self) -> io::Result<Option<String>> {
        Ok(self.0.state().diverged.clone())
    }

    fn read_disputed(&self, _shards: u16) -> io::Result<BTreeMap<ShardId, String>> {
        Ok(self.0.state().disputed.clone())
    }
}

#[derive(Debug)]
struct NodesPort(SimDisk);

impl NodesStore for NodesPort {
    fn read(&self) -> Result<Option<Bytes>, DataDirError> {
        Ok(self.0.state().nodes.clone())
    }

    fn replace(&self, bytes: &[u8]) -> Result<(), DataDirError> {
        let mut state = self.0.state();
        if state.reaches() {
            state.nodes = Some(Bytes::copy_from_slice(bytes));
        }
        Ok(())
    }
}
