//! The thread that puts packages into the store, behind apply: the log holds them until a snapshot says otherwise.

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

pub(crate) fn run(shared: &Arc<Shared>, tasks: &Receiver<PackageTask>) {
    let mut batch = Vec::new();
    let mut next = None;
    while let Some(task) = next.take().or_else(|| tasks.recv().ok()) {
        match task {
            PackageTask::Put(shard, message, data) => {
                batch.push(package(shard, message, data));
                while batch.len() < BATCH_MAX_COUNT {
                    match tasks.try_recv() {
                        Ok(PackageTask::Put(shard, message, data)) => {
                            batch.push(package(shard, message, data))
                        }
                        Ok(other) => {
                            next = Some(other);
                            break;
                        }
                        Err(_) => break,
                    }
                }
                put(shared, &batch);
                shared.packages_stored(
                    batch
                        .drain(..)
                        .map(|p| (ShardId::new(p.shard.get()), MessageNo::new(p.number))),
                );
            }
            PackageTask::Persist(done) => {
                if let Err(error) = shared.packages.persist() {
                    stop(&error);
                }
                let _ = done.send(());
            }
            PackageTask::Remove(shard, before) => {
                let removed = before.get().checked_sub(1).map(|last| {
                    shared
                        .packages
                        .remove_through(clearspan_replica::ShardId::new(shard.get()), last)
                });
                if let Some(Err(error)) = removed {
                    stop(&error);
                }
            }
        }
    }
}

fn package(shard: ShardId, message: MessageNo, data: Bytes) -> Package {
    Package {
        shard: clearspan_replica::ShardId::new(shard.get()),
        number: message.get(),
        data,
    }
}

fn put(shared: &Arc<Shared>, batch: &[Package]) {
    loop {
        match shared.packages.put(batch) {
            Ok(()) => return shared.package_volume().has_room(),
            Err(PackageError::DiskFull {
                free_bytes,
                needed_bytes,
            }) => {
                shared.package_volume().refused(free_bytes, needed_bytes);
                std::thread::sleep(DISK_FULL_WAIT);
            }
            Err(error) => stop(&error),
        }
    }
}
