//! The thread that owns the log: everything at hand becomes durable with one fsync.

use std::sync::Arc;

use clearspan_replica::{Append, LogError, LogPosition, LogStore, Persist, ShardId};
use clearspan_storage::{Log, stop};
use crossbeam_channel::{Receiver, Sender};

use super::DISK_FULL_WAIT;
use super::core::CoreEvent;
use super::shared::Shared;

/// What the core asks of the log.
#[derive(Debug)]
pub(crate) enum LogTask {
    Write(Vec<(ShardId, Persist)>),
    Compact(ShardId, LogPosition),
}

/// The most bytes that one fsync waits for: the next write gathers while this one is under way. Larger ones cost more per
/// byte, since their memory is new each time and no cache holds it, and hold urgent entries up for longer.
const WRITE_MAX_BYTES: u64 = 2 << 20;
/// Purge after this many written bytes.
const PURGE_INTERVAL_BYTES: u64 = 64 << 20;

pub(crate) fn run(
    mut log: Log,
    shared: &Arc<Shared>,
    tasks: &Receiver<LogTask>,
    core: &Sender<CoreEvent>,
) {
    let mut since_purge = 0;
    let mut next = None;
    while let Some(task) = next.take().or_else(|| tasks.recv().ok()) {
        match task {
            LogTask::Compact(shard, to) => {
                if let Err(error) = log.compact(shard, to) {
                    stop(&error);
                }
                clearspan_storage::crash_point("after-compact-request");
            }
            LogTask::Write(persists) => {
                let mut gathered = Gathered::default();
                gathered.add(persists);
                while gathered.bytes < WRITE_MAX_BYTES {
                    match tasks.try_recv() {
                        Ok(LogTask::Write(persists)) => gathered.add(persists),
                        Ok(other) => {
                            next = Some(other);
                            break;
                        }
                        Err(_) => break,
                    }
                }
                write(&mut log, shared, &gathered);
                since_purge += gathered.bytes;
                if core.send(CoreEvent::Persisted(gathered.numbers)).is_err() {
                    return;
                }
            }
        }
        if since_purge >= PURGE_INTERVAL_BYTES {
            since_purge = 0;
            if let Err(error) = log.purge() {
                stop(&error);
            }
        }
    }
}

#[derive(Default)]
struct Gathered {
    appends: Vec<Append>,
    numbers: Vec<(ShardId, u64)>,
    bytes: u64,
    entries: u64,
}

impl Gathered {
    fn add(&mut self, persists: Vec<(ShardId, Persist)>) {
        for (shard, persist) in persists {
            self.bytes += persist.append.data_bytes();
            self.entries += persist.append.entries.len() as u64;
            self.numbers.push((shard, persist.ready_number));
            if !persist.append.is_empty() {
                self.appends.push(persist.append);
            }
        }
    }
}

/// Writes, and waits out a full disk: what the core has promised nothing about may take its time, new intake is refused
/// meanwhile. Any other failure ends the process.
fn write(log: &mut Log, shared: &Arc<Shared>, gathered: &Gathered) {
    if gathered.appends.is_empty() {
        return;
    }
    loop {
        match log.append(&gathered.appends) {
            Ok(()) => break,
            Err(LogError::DiskFull {
                free_bytes,
                needed_bytes,
            }) => {
                shared.log_volume().refused(free_bytes, needed_bytes);
                std::thread::sleep(DISK_FULL_WAIT);
            }
            Err(error) => stop(&error),
        }
    }
    shared.log_volume().has_room();
    shared.count_log(gathered.bytes, gathered.entries);
}
