//! What the core shares with readers: states, packages, and what the disk said.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use clearspan_ledger::nodes::NodeDirectory;
use clearspan_ledger::{Ledger, MessageNo, ShardId};
use clearspan_replica::SnapshotMark;
use clearspan_storage::PackageError;

use super::LogCounts;
use super::disk::Packages;
use crate::clock::Clock;

/// A shard's state and the position it stands at.
#[derive(Debug, Default)]
pub(crate) struct ShardState {
    pub(crate) ledger: Ledger,
    pub(crate) mark: SnapshotMark,
}

/// Whether a volume is too full for what waits to be written there. Log and packages may lie on volumes of their own, so
/// each has its own answer: only the writer that met a full disk knows when it has room again.
#[derive(Debug)]
pub(crate) struct VolumeFull {
    holds: &'static str,
    free: AtomicU64,
    /// Zero while there is room.
    needed: AtomicU64,
}

impl VolumeFull {
    const fn new(holds: &'static str) -> Self {
        Self {
            holds,
            free: AtomicU64::new(0),
            needed: AtomicU64::new(0),
        }
    }

    /// Notes that a write was refused; the operator is told once.
    pub(crate) fn refused(&self, free_bytes: u64, needed_bytes: u64) {
        self.free.store(free_bytes, Ordering::Relaxed);
        if self.needed.swap(needed_bytes, Ordering::Relaxed) == 0 {
            eprintln!(
                "the disk of the {} is full ({free_bytes} bytes free, {needed_bytes} needed): \
                 nothing more is taken in until there is room",
                self.holds
            );
        }
    }

    /// Notes that the write went through.
    pub(crate) fn has_room(&self) {
        if self.needed.swap(0, Ordering::Relaxed) > 0 {
            eprintln!("the disk of the {} has room again", self.holds);
        }
    }

    fn get(&self) -> Option<(u64, u64)> {
        let needed = self.needed.load(Ordering::Relaxed);
        (needed > 0).then(|| (self.free.load(Ordering::Relaxed), needed))
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) cluster: u128,
    pub(crate) clock: Clock,
    pub(crate) shards: Vec<RwLock<ShardState>>,
    pub(crate) packages: Box<dyn Packages>,
    /// Packages on their way into the store.
    pending: Mutex<BTreeMap<(ShardId, MessageNo), Bytes>>,
    /// Shards whose replicas differ without a majority, and how.
    disputed: Mutex<BTreeMap<ShardId, String>>,
    /// By shard: nobody has led it, as far as this node hears, for longer than an election takes.
    leaderless: Vec<AtomicBool>,
    nodes: RwLock<std::sync::Arc<NodeDirectory>>,
    log_volume: VolumeFull,
    package_volume: VolumeFull,
    log_bytes: AtomicU64,
    log_entries: AtomicU64,
    log_writes: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        cluster: u128,
        clock: Clock,
        shards: Vec<ShardState>,
        packages: Box<dyn Packages>,
    ) -> Self {
        Self {
            cluster,
            clock,
            leaderless: shards.iter().map(|_| AtomicBool::new(false)).collect(),
            shards: shards.into_iter().map(RwLock::new).collect(),
            packages,
            pending: Mutex::default(),
            disputed: Mutex::default(),
            nodes: RwLock::default(),
            log_volume: VolumeFull::new("log"),
            package_volume: VolumeFull::new("packages"),
            log_bytes: AtomicU64::new(0),
            log_entries: AtomicU64::new(0),
            log_writes: AtomicU64::new(0),
        }
    }

    /// A ledger that panicked while it was written to stops the process, so a poisoned lock is never seen alive.
    pub(crate) fn shard(&self, shard: ShardId) -> RwLockReadGuard<'_, ShardState> {
        self.shards[shard.index()]
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn shard_mut(&self, shard: ShardId) -> RwLockWriteGuard<'_, ShardState> {
        self.shards[shard.index()]
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody has led a shard, as far as this node hears, for longer than an election takes.
    pub(crate) fn is_leaderless(&self, shard: ShardId) -> bool {
        let leaderless = self.leaderless.get(shard.index());
        leaderless.is_some_and(|is| is.load(Ordering::Relaxed))
    }

    pub(crate) fn set_leaderless(&self, shard: ShardId, is: bool) {
        if let Some(leaderless) = self.leaderless.get(shard.index()) {
            leaderless.store(is, Ordering::Relaxed);
        }
    }

    /// The cluster's nodes, as far as this one knows.
    pub(crate) fn nodes(&self) -> std::sync::Arc<NodeDirectory> {
        self.nodes
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn set_nodes(&self, nodes: NodeDirectory) {
        *self.nodes.write().unwrap_or_else(PoisonError::into_inner) = nodes.into();
    }

    fn pending(&self) -> MutexGuard<'_, BTreeMap<(ShardId, MessageNo), Bytes>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all_disputed(&self) -> MutexGuard<'_, BTreeMap<ShardId, String>> {
        self.disputed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How a shard's replicas differ, while nobody knows which is right.
    pub(crate) fn disputed(&self, shard: ShardId) -> Option<String> {
        self.all_disputed().get(&shard).cloned()
    }

    pub(crate) fn is_disputed(&self, shard: ShardId) -> bool {
        self.all_disputed().contains_key(&shard)
    }

    pub(crate) fn set_disputed(&self, shard: ShardId, how: String) {
        self.all_disputed().insert(shard, how);
    }

    pub(crate) fn package_comes(&self, shard: ShardId, message: MessageNo, data: Bytes) {
        self.pending().insert((shard, message), data);
    }

    pub(crate) fn packages_stored(&self, keys: impl Iterator<Item = (ShardId, MessageNo)>) {
        let mut pending = self.pending();
        for key in keys {
            pending.remove(&key);
        }
    }

    pub(crate) fn package(
        &self,
        shard: ShardId,
        message: MessageNo,
    ) -> Result<Option<Bytes>, PackageError> {
        let found = self.pending().get(&(shard, message)).cloned();
        match found {
            Some(data) => Ok(Some(data)),
            None => self
                .packages
                .get(clearspan_replica::ShardId::new(shard.get()), message.get()),
        }
    }

    pub(crate) fn disk_full(&self) -> Option<(u64, u64)> {
        self.log_volume.get().or_else(|| self.package_volume.get())
    }

    /// The volume of the log.
    pub(crate) fn log_volume(&self) -> &VolumeFull {
        &self.log_volume
    }

    /// The volume of the packages.
    pub(crate) fn package_volume(&self) -> &VolumeFull {
        &self.package_volume
    }

    pub(crate) fn count_log(&self, bytes: u64, entries: u64) {
        self.log_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.log_entries.fetch_add(entries, Ordering::Relaxed);
        self.log_writes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn log_counts(&self) -> LogCounts {
        LogCounts {
            bytes: self.log_bytes.load(Ordering::Relaxed),
            entries: self.log_entries.load(Ordering::Relaxed),
            writes: self.log_writes.load(Ordering::Relaxed),
        }
    }
}

/// All shards' states at one moment; nothing is applied while it is held.
#[derive(Debug)]
pub struct Reading<'a> {
    shared: &'a Shared,
    shards: Vec<RwLockReadGuard<'a, ShardState>>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        let count = u16::try_from(shared.shards.len()).unwrap_or(u16::MAX);
        Self {
            shared,
            shards: (0..count)
                .map(|shard| shared.shard(ShardId::new(shard)))
                .collect(),
        }
    }

    /// How many shards there are.
    #[must_use]
    pub fn shards(&self) -> u16 {
        u16::try_from(self.shards.len()).unwrap_or(u16::MAX)
    }

    /// A shard's state.
    ///
    /// # Panics
    /// When there is no such shard.
    #[must_use]
    pub fn ledger(&self, shard: ShardId) -> &Ledger {
        &self.shards[shard.index()].ledger
    }

    /// All shards' states, in order.
    pub fn ledgers(&self) -> impl Iterator<Item = (ShardId, &Ledger)> {
        (0..)
            .map(ShardId::new)
            .zip(self.shards.iter().map(|shard| &shard.ledger))
    }

    /// The journal entry that took a message in.
    ///
    /// # Errors
    /// When the stored bytes are damaged.
    pub fn package(
        &self,
        shard: ShardId,
        message: MessageNo,
    ) -> Result<Option<Bytes>, PackageError> {
        self.shared.package(shard, message)
    }
}
