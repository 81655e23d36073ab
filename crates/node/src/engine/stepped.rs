//! A node driven by hand: the same core, writers and snapshotter as in service, without a thread, a socket or a clock of
//! its own. Whoever holds it decides when the core takes a turn, when a write reaches the disk and when a frame arrives; a
//! node that is dropped between two calls is a node that lost power there.

use bytes::Bytes;
use clearspan_ledger::entry::Command;
use clearspan_ledger::{Ledger, LogIndex, MessageNo, ShardId};
use clearspan_replica::SnapshotMark;
use clearspan_storage::PackageError;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::core::{CoreEvent, Parts, ShardStatus};
use super::disk::Disk;
use super::group::Seat;
use super::log_writer::LogWork;
use super::package_writer::PackageWork;
use super::peers::Peers;
use super::snapshotter::{Begun, Writing};
use super::{
    EngineError, EngineOptions, Inlet, Lane, ProposeError, Replier, Request, core, encode, recover,
};

/// A node whose parts move only when they are told to.
pub struct Stepped {
    parts: Parts,
    urgent: Sender<Request>,
    bulk: Sender<Request>,
    log_work: Option<LogWork>,
    package_work: Option<PackageWork>,
    writing: Option<Writing>,
}

impl Stepped {
    /// Restores a node from its disk, and begins. Of the options only the clock and the size of snapshots count.
    ///
    /// # Errors
    /// As [`super::Engine::open_member`].
    pub fn open(
        disk: Disk,
        shards: u16,
        options: EngineOptions,
        seat: Seat,
        connect: impl FnOnce(Inlet) -> Box<dyn Peers>,
    ) -> Result<Self, EngineError> {
        let recovered = recover::restore(disk, shards, &seat)?;
        let (urgent, urgent_waiting) = unbounded();
        let (bulk, bulk_waiting) = unbounded();
        let mut parts = core::assemble(
            recovered,
            options,
            urgent_waiting,
            bulk_waiting,
            seat,
            None,
            connect,
        );
        parts.core.begin();
        Ok(Self {
            parts,
            urgent,
            bulk,
            log_work: None,
            package_work: None,
            writing: None,
        })
    }

    /// Proposes a command; `reply` is called in a later turn.
    ///
    /// # Errors
    /// As [`super::Engine::propose`].
    pub fn propose(
        &self,
        shard: ShardId,
        command: &Command,
        lane: Lane,
        reply: Replier,
    ) -> Result<(), ProposeError> {
        let (data, repeatable) = encode(&self.parts.shared, shard, command)?;
        if let Some((free_bytes, needed_bytes)) = self.parts.shared.disk_full() {
            return Err(ProposeError::DiskFull {
                free_bytes,
                needed_bytes,
            });
        }
        let request = Request {
            shard,
            data,
            repeatable,
            reply,
        };
        let queue = match lane {
            Lane::Urgent => &self.urgent,
            Lane::Bulk => &self.bulk,
        };
        queue.send(request).map_err(|_| ProposeError::Stopped)
    }

    /// Asks how far this node must have applied before it may answer a read; the answer comes in a later turn.
    #[must_use]
    pub fn read_index(&self, shard: ShardId) -> Receiver<Result<u64, ProposeError>> {
        let (reply, index) = bounded(1);
        // The core lives as long as this does.
        let _ = self.parts.events.send(CoreEvent::ReadIndex(shard, reply));
        index
    }

    /// One turn of the core; false when it wants to end.
    pub fn turn(&mut self) -> bool {
        self.parts.core.turn(&self.parts.queues)
    }

    /// Begins the log's next piece of work when none is under way: its bytes, or `None` when there is nothing to do.
    pub fn begin_log(&mut self) -> Option<u64> {
        if self.log_work.is_some() {
            return None;
        }
        self.log_work = self.parts.log.next(&self.parts.log_tasks);
        self.log_work.as_ref().map(LogWork::bytes)
    }

    /// Ends it: what it wrote is durable, and the core is told. False when the disk is full: then it is to be ended again.
    pub fn end_log(&mut self) -> bool {
        let Some(work) = self.log_work.take() else {
            return true;
        };
        if !self.parts.log.perform(&work) {
            self.log_work = Some(work);
            return false;
        }
        if let LogWork::Write(gathered) = work {
            let _ = self
                .parts
                .events
                .send(CoreEvent::Persisted(gathered.numbers));
        }
        true
    }

    /// Does the package store's next piece of work; false when there is none, or the disk is full.
    pub fn step_packages(&mut self) -> bool {
        let work = self
            .package_work
            .take()
            .or_else(|| self.parts.packages.next(&self.parts.package_tasks));
        let Some(work) = work else { return false };
        let done = self.parts.packages.perform(&work);
        if !done {
            self.package_work = Some(work);
        }
        done
    }

    /// Whether the package store has something to do.
    #[must_use]
    pub fn has_package_work(&self) -> bool {
        self.package_work.is_some()
            || self.parts.packages.has_next()
            || !self.parts.package_tasks.is_empty()
    }

    /// Begins the snapshotter's next task; false when there is none, or one is under way.
    pub fn begin_snapshot(&mut self) -> bool {
        if self.writing.is_some() {
            return false;
        }
        let Ok(task) = self.parts.snapshot_tasks.try_recv() else {
            return false;
        };
        match self.parts.snapshots.begin(task) {
            Begun::Nothing => {}
            Begun::Done(event) => {
                let _ = self.parts.events.send(event);
            }
            Begun::Write(writing) => self.writing = Some(writing),
        }
        true
    }

    /// Whether a snapshot is on its way to the disk.
    #[must_use]
    pub fn is_writing_snapshot(&self) -> bool {
        self.writing.is_some()
    }

    /// Ends it, once the packages that it stands on are durable; false when they cannot be yet.
    ///
    /// # Errors
    /// When the package store fails.
    pub fn end_snapshot(&mut self) -> Result<bool, PackageError> {
        while self.step_packages() {}
        if self.package_work.is_some() {
            return Ok(false);
        }
        self.parts.shared.packages.persist()?;
        if let Some(writing) = self.writing.take() {
            let event = self.parts.snapshots.finish(writing);
            let _ = self.parts.events.send(event);
        }
        Ok(true)
    }

    /// Whether anything waits for a turn of the core.
    #[must_use]
    pub fn has_input(&self) -> bool {
        let queues = &self.parts.queues;
        !queues.events.is_empty()
            || !queues.urgent.is_empty()
            || (!queues.bulk.is_empty() && self.parts.core.takes_bulk())
    }

    /// How every shard stands.
    #[must_use]
    pub fn status(&self) -> Vec<ShardStatus> {
        self.parts.core.status().0
    }

    /// One shard's state.
    pub fn with_ledger<R>(&self, shard: ShardId, look: impl FnOnce(&Ledger) -> R) -> R {
        look(&self.parts.shared.shard(shard).ledger)
    }

    /// Up to where a shard is applied, and its group there. A witness, too, counts what it would have applied.
    #[must_use]
    pub fn mark(&self, shard: ShardId) -> SnapshotMark {
        self.parts.shared.shard(shard).mark.clone()
    }

    /// Whether a shard has applied an index: then a read that was told of it may be answered.
    #[must_use]
    pub fn has_applied(&self, shard: ShardId, index: LogIndex) -> bool {
        self.with_ledger(shard, |ledger| ledger.position().0 >= index)
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
        self.parts.shared.package(shard, message)
    }
}
