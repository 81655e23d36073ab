//! Puts packages into the store, behind apply: the log holds them until a snapshot says otherwise.

use std::sync::Arc;

use bytes::Bytes;
use clearspan_ledger::{MessageNo, ShardId};
use clearspan_storage::{Package, PackageError, stop};
use crossbeam_channel::{Receiver, Sender};

use super::DISK_FULL_WAIT;
use super::shared::Shared;

/// What is asked of the package store.
#[derive(Debug)]
pub(crate) enum PackageTask {
    /// Put it.
    Put(ShardId, MessageNo, Bytes),
    /// Everything put before this is durable when the answer comes.
    Persist(Sender<()>),
    /// Packages below this number are beyond retention.
    Remove(ShardId, MessageNo),
}

/// Packages per batch.
const BATCH_MAX_COUNT: usize = 256;

pub(crate) struct PackageWriter {
    shared: Arc<Shared>,
    /// Taken from the queue while gathering, to be done next.
    next: Option<PackageTask>,
}

/// What is done at once.
pub(crate) enum PackageWork {
    Put(Vec<Package>),
    Persist(Sender<()>),
    Remove(ShardId, MessageNo),
}

impl PackageWriter {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, next: None }
    }

    /// Works until nobody asks any more.
    pub(crate) fn run(mut self, tasks: &Receiver<PackageTask>) {
        while let Some(task) = self.next.take().or_else(|| tasks.recv().ok()) {
            let work = self.gather(task, tasks);
            while !self.perform(&work) {
                std::thread::sleep(DISK_FULL_WAIT);
            }
        }
    }

    /// The next piece of work without waiting; `None` when there is none.
    pub(crate) fn next(&mut self, tasks: &Receiver<PackageTask>) -> Option<PackageWork> {
        let task = self.next.take().or_else(|| tasks.try_recv().ok())?;
        Some(self.gather(task, tasks))
    }

    /// Whether a task was taken from the queue and not begun.
    pub(crate) fn has_next(&self) -> bool {
        self.next.is_some()
    }

    /// A task and the puts at hand that go with it.
    fn gather(&mut self, task: PackageTask, tasks: &Receiver<PackageTask>) -> PackageWork {
        let first = match task {
            PackageTask::Put(shard, message, data) => package(shard, message, data),
            PackageTask::Persist(done) => return PackageWork::Persist(done),
            PackageTask::Remove(shard, before) => return PackageWork::Remove(shard, before),
        };
        let mut batch = vec![first];
        while batch.len() < BATCH_MAX_COUNT {
            match tasks.try_recv() {
                Ok(PackageTask::Put(shard, message, data)) => {
                    batch.push(package(shard, message, data))
                }
                Ok(other) => {
                    self.next = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        PackageWork::Put(batch)
    }

    /// Does a piece of work; false when the disk is full. Any other failure ends the process.
    pub(crate) fn perform(&mut self, work: &PackageWork) -> bool {
        match work {
            PackageWork::Put(batch) => {
                match self.shared.packages.put(batch) {
                    Ok(()) => self.shared.package_volume().has_room(),
                    Err(PackageError::DiskFull {
                        free_bytes,
                        needed_bytes,
                    }) => {
                        self.shared
                            .package_volume()
                            .refused(free_bytes, needed_bytes);
                        return false;
                    }
                    Err(error) => stop(&error),
                }
                let keys = batch
                    .iter()
                    .map(|p| (ShardId::new(p.shard.get()), MessageNo::new(p.number)));
                self.shared.packages_stored(keys);
            }
            PackageWork::Persist(done) => {
                if let Err(error) = self.shared.packages.persist() {
                    stop(&error);
                }
                let _ = done.send(());
            }
            PackageWork::Remove(shard, before) => {
                let removed = before.get().checked_sub(1).map(|last| {
                    self.shared
                        .packages
                        .remove_through(clearspan_replica::ShardId::new(shard.get()), last)
                });
                if let Some(Err(error)) = removed {
                    stop(&error);
                }
            }
        }
        true
    }
}

fn package(shard: ShardId, message: MessageNo, data: Bytes) -> Package {
    Package {
        shard: clearspan_replica::ShardId::new(shard.get()),
        number: message.get(),
        data,
    }
}
