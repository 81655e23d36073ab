//! The owner of the log: everything at hand becomes durable with one fsync.

use std::sync::Arc;

use clearspan_replica::{Append, LogError, LogPosition, LogStore, Persist, ShardId};
use clearspan_storage::stop;
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

pub(crate) struct LogWriter {
    log: Box<dyn LogStore + Send>,
    shared: Arc<Shared>,
    since_purge_bytes: u64,
    /// Taken from the queue while gathering, to be done next.
    next: Option<LogTask>,
}

impl LogWriter {
    pub(crate) fn new(log: Box<dyn LogStore + Send>, shared: Arc<Shared>) -> Self {
        Self {
            log,
            shared,
            since_purge_bytes: 0,
            next: None,
        }
    }

    /// Works until nobody asks any more.
    pub(crate) fn run(mut self, tasks: &Receiver<LogTask>, core: &Sender<CoreEvent>) {
        while let Some(task) = self.next.take().or_else(|| tasks.recv().ok()) {
            let work = self.gather(task, tasks);
            while !self.perform(&work) {
                std::thread::sleep(DISK_FULL_WAIT);
            }
            if let LogWork::Write(gathered) = work
                && core.send(CoreEvent::Persisted(gathered.numbers)).is_err()
            {
                return;
            }
        }
    }

    /// The next piece of work without waiting; `None` when there is none.
    pub(crate) fn next(&mut self, tasks: &Receiver<LogTask>) -> Option<LogWork> {
        let task = self.next.take().or_else(|| tasks.try_recv().ok())?;
        Some(self.gather(task, tasks))
    }

    /// A task and the writes at hand that one fsync can do with it.
    fn gather(&mut self, task: LogTask, tasks: &Receiver<LogTask>) -> LogWork {
        let persists = match task {
            LogTask::Compact(shard, to) => return LogWork::Compact(shard, to),
            LogTask::Write(persists) => persists,
        };
        let mut gathered = Gathered::default();
        gathered.add(persists);
        while gathered.bytes < WRITE_MAX_BYTES {
            match tasks.try_recv() {
                Ok(LogTask::Write(persists)) => gathered.add(persists),
                Ok(other) => {
                    self.next = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        LogWork::Write(gathered)
    }

    /// Does a piece of work; false when the disk is full: what the core has promised nothing about may take its time, new
    /// intake is refused meanwhile. Any other failure ends the process.
    pub(crate) fn perform(&mut self, work: &LogWork) -> bool {
        match work {
            LogWork::Compact(shard, to) => {
                if let Err(error) = self.log.compact(*shard, *to) {
                    stop(&error);
                }
                clearspan_storage::crash_point("after-compact-request");
            }
            LogWork::Write(gathered) => {
                if !self.write(gathered) {
                    return false;
                }
                self.since_purge_bytes += gathered.bytes;
            }
        }
        if self.since_purge_bytes >= PURGE_INTERVAL_BYTES {
            self.since_purge_bytes = 0;
            if let Err(error) = self.log.purge() {
                stop(&error);
            }
        }
        true
    }

    fn write(&mut self, gathered: &Gathered) -> bool {
        if gathered.appends.is_empty() {
            return true;
        }
        match self.log.append(&gathered.appends) {
            Ok(()) => {}
            Err(LogError::DiskFull {
                free_bytes,
                needed_bytes,
            }) => {
                self.shared.log_volume().refused(free_bytes, needed_bytes);
                return false;
            }
            Err(error) => stop(&error),
        }
        self.shared.log_volume().has_room();
        self.shared.count_log(gathered.bytes, gathered.entries);
        true
    }
}

/// What is done at once.
pub(crate) enum LogWork {
    Write(Gathered),
    Compact(ShardId, LogPosition),
}

impl LogWork {
    /// Bytes of entries that it writes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Write(gathered) => gathered.bytes,
            Self::Compact(..) => 0,
        }
    }
}

/// Writes that share an fsync.
#[derive(Default)]
pub(crate) struct Gathered {
    appends: Vec<Append>,
    pub(crate) numbers: Vec<(ShardId, u64)>,
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
