//! The log of all shards of a node, on the `raft-engine` log engine.
//!
//! The engine appends and syncs; what it does not promise is added here. Every record carries its own identity and
//! checksum ([`record`]). A mark kept apart says how far each shard was synced ([`marker`]). An open is rehearsed without
//! touching the files, because the engine cuts a log off at the first batch it cannot read: only when the mark proves
//! that nothing synced lies behind the cut is the log opened in earnest. The engine answers a failed fsync with a panic,
//! which is caught at every call; after it the log takes nothing more.
//!
//! `Engine::sync` of this engine version does nothing, so durability comes from `write(batch, true)` alone.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use clearspan_replica::{
    Append, Entry, HardState, LogError, LogPosition, LogStore, ShardId, ShardLog,
};
use protobuf::well_known_types::BytesValue;
use raft_engine::{Command, Config, Engine, LogBatch, MessageExt, ReadableSize, RecoveryMode};

use crate::crash_point::crash_point;
use crate::data_dir::{DataDir, NodeId, patiently};
use crate::engine_call::engine_call;
use crate::free_space::{FreeSpace, VolumeSpace};

mod file_system;
mod marker;
mod record;

use file_system::LogFiles;
pub use file_system::{FileFaults, WriteFault};
use marker::{Mark, Marker, MarkerError};
use record::{ENTRY_HEADER_BYTES, StoredState};

/// The key of a shard's state in the engine.
const STATE_KEY: &[u8] = b"state";
/// The engine's bytes around one record and one batch, rounded up, for the free-space check.
const RECORD_OVERHEAD_BYTES: u64 = 64 + ENTRY_HEADER_BYTES as u64;
/// How the engine says that its lock is held; it has no kind of error of its own for that.
const ENGINE_LOCK_HELD: &str = "Failed to lock file";
/// How the names of the engine's files end.
const ENGINE_FILE_ENDINGS: [&str; 2] = ["raftlog", "rewrite"];

/// Tells the engine where a record's index is: our own framing travels as one bytes field.
struct Records;

impl MessageExt for Records {
    type Entry = BytesValue;

    fn index(record: &BytesValue) -> u64 {
        record::claimed_index(record.get_value())
    }
}

/// How the log uses its volume.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Length of one log file.
    pub segment_bytes: u64,
    /// Above this the log gives space back: cut entries' files are reused, and shards that hold them back are named.
    pub purge_above_bytes: u64,
    /// Zeros written at the first start, so that early fsyncs need not convert unwritten blocks; 0 for none. The engine's
    /// own default would write 15 GB before the first entry.
    pub prefill_bytes: u64,
    /// Kept free on the volume: an append that would dip into it is refused as [`LogError::DiskFull`]. Large enough for
    /// one more segment and a snapshot's start, so that the engine itself never meets a full disk.
    pub reserve_bytes: u64,
    /// Who is asked for free space.
    pub free_space: Arc<dyn FreeSpace>,
    /// Breaks files on purpose; `None` in service.
    pub faults: Option<Arc<dyn FileFaults>>,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            purge_above_bytes: 1 << 30,
            prefill_bytes: 128 << 20,
            reserve_bytes: 256 << 20,
            free_space: Arc::new(VolumeSpace),
            faults: None,
        }
    }
}

impl StoredState {
    fn mark(&self) -> Mark {
        let HardState { term, vote, .. } = self.hard_state;
        Mark {
            last: self.last,
            term,
            vote,
        }
    }
}

/// The log of all shards of a node. One thread owns it; see [`LogStore`] for what it does.
///
/// ```
/// use bytes::Bytes;
/// use clearspan_replica::{Append, Entry, EntryKind, LogStore, ShardId};
/// use clearspan_storage::{ClusterId, DataDir, Identity, Layout, Log, LogOptions, NodeId};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("data");
/// let identity = Identity { cluster: ClusterId::random()?, node: NodeId::random()? };
/// let data = DataDir::create(Layout::under(path), identity)?;
/// let options = LogOptions { prefill_bytes: 0, reserve_bytes: 1 << 20, ..LogOptions::default() };
/// let mut log = Log::open(&data, options)?;
/// let entry = Entry { index: 1, term: 1, kind: EntryKind::Command, data: Bytes::from_static(b"a command") };
/// let (shard, entries) = (ShardId::new(0), vec![entry]);
/// log.append(&[Append { shard, entries: entries.clone(), must_sync: true, ..Append::default() }])?;
/// assert_eq!(log.entries(shard, 1, 2, u64::MAX)?, entries);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Log {
    // None once the log has stopped: the engine's destructor would write and sync again.
    engine: Option<Engine<LogFiles>>,
    files: LogFiles,
    dir: PathBuf,
    node: NodeId,
    marker: Marker,
    shards: BTreeMap<ShardId, StoredState>,
    reserve_bytes: u64,
    free_space: Arc<dyn FreeSpace>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("dir", &self.dir)
            .field("shards", &self.shards)
            .finish_non_exhaustive()
    }
}

impl Log {
    /// Opens the directory's log, or starts an empty one in a directory that never had any.
    ///
    /// # Errors
    ///
    /// [`LogError::TailLost`] and [`LogError::VoteLost`] when a shard's log ends before what was once synced,
    /// [`LogError::Corrupt`] and [`LogError::Unreadable`] for damage; then nothing on disk was changed. The caller must not go on as the voter it
    /// was.
    pub fn open(data: &DataDir, options: LogOptions) -> Result<Self, LogError> {
        let dir = data.layout().log.clone();
        let node = data.identity().node;
        let synced = data.layout().synced_file();
        let has_log = has_log_files(&dir)
            .map_err(|source| fatal(format!("list {}", dir.display()), source))?;
        let marker = match Marker::open(&synced, node) {
            Ok(marker) => marker,
            // Setting up was interrupted before the first entry, or has not begun.
            Err(MarkerError::Io { source, .. })
                if source.kind() == io::ErrorKind::NotFound && !has_log =>
            {
                Marker::create(&synced, node).map_err(|error| marker_error(error, &synced))?
            }
            Err(error) => return Err(marker_error(error, &synced)),
        };
        if has_log {
            let files = LogFiles::rehearsal();
            let engine = open_engine(&dir, &options, &files, true)?;
            let shards = recover(&engine, &files, &dir, node)?;
            check_marks(&marker, &shards)?;
        } else {
            check_marks(&marker, &BTreeMap::new())?;
        }
        let files = LogFiles::new(options.faults.clone());
        let engine = open_engine(&dir, &options, &files, false)?;
        let shards = recover(&engine, &files, &dir, node)?;
        check_marks(&marker, &shards)?;
        engine_call(|| drop_revenants(&engine, &shards))
            .unwrap_or_else(|panic| Err(raft_engine::Error::Other(panic.into())))
            .map_err(|source| fatal(format!("open the log in {}", dir.display()), source))?;
        let LogOptions {
            reserve_bytes,
            free_space,
            ..
        } = options;
        Ok(Self {
            engine: Some(engine),
            files,
            dir,
            node,
            marker,
            shards,
            reserve_bytes,
            free_space,
        })
    }

    fn engine(&self) -> Result<&Engine<LogFiles>, LogError> {
        self.engine.as_ref().ok_or(LogError::Stopped)
    }

    /// Runs one engine call. A panic means a failed fsync or broken memory: the log stops for good.
    fn run<T>(
        &mut self,
        step: &str,
        call: impl FnOnce(&Engine<LogFiles>) -> raft_engine::Result<T>,
    ) -> Result<T, LogError> {
        let engine = self.engine()?;
        match engine_call(|| call(engine)) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) if is_full(&error) => {
                let free_bytes = self.free_space.free_bytes(&self.dir).unwrap_or(0);
                Err(LogError::DiskFull {
                    free_bytes,
                    needed_bytes: self.reserve_bytes,
                })
            }
            Ok(Err(error)) => Err(self.stop(step, error.into())),
            Err(panic) => {
                let cause = self
                    .files
                    .take_sync_error()
                    .map_or_else(|| panic.into(), Into::into);
                Err(self.stop(step, cause))
            }
        }
    }

    fn stop(&mut self, step: &str, source: Box<dyn std::error::Error + Send + Sync>) -> LogError {
        // Leaked, not dropped: dropping cuts and syncs the current file, and a second fsync may claim what is not so.
        std::mem::forget(self.engine.take());
        LogError::Fatal {
            step: format!("{step} in {}", self.dir.display()),
            source,
        }
    }

    fn check_space(&self, bytes: u64) -> Result<(), LogError> {
        let free_bytes = self.free_space.free_bytes(&self.dir).map_err(|source| {
            fatal(
                format!("ask for free space of {}", self.dir.display()),
                source,
            )
        })?;
        let needed_bytes = self.reserve_bytes.saturating_add(bytes);
        if free_bytes < needed_bytes {
            Err(LogError::DiskFull {
                free_bytes,
                needed_bytes,
            })
        } else {
            Ok(())
        }
    }

    fn state(&self, shard: ShardId) -> StoredState {
        self.shards.get(&shard).copied().unwrap_or_default()
    }

    /// Adds one part to the engine's batch and to the states as they will be.
    fn stage(
        &self,
        part: &Append,
        staged: &mut BTreeMap<ShardId, StoredState>,
        batch: &mut LogBatch,
    ) -> Result<u64, LogError> {
        let shard = part.shard;
        let mut state = staged
            .get(&shard)
            .copied()
            .unwrap_or_else(|| self.state(shard));
        let mut bytes = 0;
        if let Some(base) = part.install {
            // Everything stored goes, also what lies past the snapshot.
            let index = state.last.index.max(base.index) + 1;
            batch.add_command(group(shard), Command::Compact { index });
            state.base = base;
            state.last = base;
        }
        if let Some(first) = part.entries.first() {
            let refuse = |expected, found| {
                Err(LogError::NotContiguous {
                    shard,
                    expected,
                    found,
                })
            };
            if first.index <= state.base.index || first.index > state.last.index + 1 {
                return refuse(state.last.index + 1, first.index);
            }
            let mut records = Vec::with_capacity(part.entries.len());
            for (expected, entry) in (first.index..).zip(&part.entries) {
                if entry.index != expected {
                    return refuse(expected, entry.index);
                }
                let framed = record::encode_entry(self.node, shard, entry).ok_or_else(|| {
                    LogError::Fatal {
                        step: format!("frame entry {} of shard {shard}", entry.index),
                        source: "its data is over 4 GiB".into(),
                    }
                })?;
                bytes += framed.len() as u64 + RECORD_OVERHEAD_BYTES;
                records.push(BytesValue {
                    value: framed,
                    ..BytesValue::default()
                });
                state.last = entry.position();
            }
            batch
                .add_entries::<Records>(group(shard), &records)
                .map_err(|source| fatal(format!("batch entries of shard {shard}"), source))?;
        }
        if let Some(hard_state) = part.hard_state {
            state.hard_state = hard_state;
        }
        // With every write, because the engine forgets where a log ended: see `recover`.
        bytes += RECORD_OVERHEAD_BYTES;
        self.put_state(shard, &state, batch)?;
        staged.insert(shard, state);
        Ok(bytes)
    }

    fn put_state(
        &self,
        shard: ShardId,
        stored: &StoredState,
        batch: &mut LogBatch,
    ) -> Result<(), LogError> {
        let value = record::encode_state(self.node, shard, stored);
        batch
            .put(group(shard), STATE_KEY.to_vec(), value)
            .map_err(|source| fatal(format!("batch the state of shard {shard}"), source))
    }

    /// Lowers the mark of every shard whose log is about to end before it.
    fn lower_marks(&mut self, staged: &BTreeMap<ShardId, StoredState>) -> Result<(), LogError> {
        let marks = self.marker.marks();
        let lowered: Vec<(ShardId, u64)> = staged
            .iter()
            .filter(|(shard, state)| {
                marks
                    .get(shard)
                    .is_some_and(|mark| mark.last.index > state.last.index)
            })
            .map(|(shard, state)| (*shard, state.last.index))
            .collect();
        if let Err(source) = self.marker.lower(&lowered) {
            let step = format!("lower the synced mark in {}", self.marker.path().display());
            return Err(self.stop(&step, source.into()));
        }
        Ok(())
    }
}

impl LogStore for Log {
    fn append(&mut self, batch: &[Append]) -> Result<(), LogError> {
        self.engine()?;
        let mut staged = BTreeMap::new();
        let mut writes = LogBatch::default();
        let mut bytes = 0;
        let mut sync = false;
        for part in batch.iter().filter(|part| !part.is_empty()) {
            if !self.marker.has_room_for(part.shard) {
                return Err(fatal(
                    "add a shard".to_owned(),
                    io::Error::other("the synced marker is full of shards"),
                ));
            }
            bytes += self.stage(part, &mut staged, &mut writes)?;
            sync |= part.must_sync || !part.entries.is_empty() || part.install.is_some();
        }
        if writes.is_empty() {
            return Ok(());
        }
        self.check_space(bytes)?;
        self.lower_marks(&staged)?;
        crash_point("before-log-append");
        self.run("append to the log", |engine| {
            engine.write(&mut writes, sync)
        })?;
        let marks: Vec<_> = staged
            .iter()
            .map(|(shard, state)| (*shard, state.mark()))
            .collect();
        self.shards.append(&mut staged);
        if sync {
            crash_point("after-log-sync");
            if let Err(source) = self.marker.raise(marks) {
                let step = format!("raise the synced mark in {}", self.marker.path().display());
                return Err(self.stop(&step, source.into()));
            }
            crash_point("after-marker-write");
        }
        Ok(())
    }

    fn shards(&self) -> Vec<ShardId> {
        self.shards.keys().copied().collect()
    }

    fn shard(&self, shard: ShardId) -> Result<ShardLog, LogError> {
        self.engine()?;
        let state = self.state(shard);
        let StoredState {
            hard_state, base, ..
        } = state;
        Ok(ShardLog {
            shard,
            hard_state,
            base,
            last_index: state.last.index,
        })
    }

    fn entries(
        &self,
        shard: ShardId,
        low: u64,
        high: u64,
        max_bytes: u64,
    ) -> Result<Vec<Entry>, LogError> {
        let engine = self.engine()?;
        let log = self.shard(shard)?;
        if low >= high {
            return Ok(Vec::new());
        }
        log.expect_stored(low)?;
        log.expect_stored(high - 1)?;
        let mut bytes = 0;
        let mut found = Vec::new();
        for index in low..high {
            let entry = read_entry(engine, &self.files, &self.dir, self.node, shard, index)?;
            bytes += entry.data.len() as u64;
            if !found.is_empty() && bytes > max_bytes {
                break;
            }
            found.push(entry);
        }
        Ok(found)
    }

    fn compact(&mut self, shard: ShardId, to: LogPosition) -> Result<(), LogError> {
        self.engine()?;
        let mut state = self.state(shard);
        if to.index <= state.base.index {
            return Ok(());
        }
        self.shard(shard)?.expect_stored(to.index)?;
        state.base = to;
        let mut batch = LogBatch::default();
        self.put_state(shard, &state, &mut batch)?;
        batch.add_command(
            group(shard),
            Command::Compact {
                index: to.index + 1,
            },
        );
        // Not synced: a cut that is lost leaves the log longer, which is no fault.
        self.run("cut the log", |engine| engine.write(&mut batch, false))?;
        self.shards.insert(shard, state);
        crash_point("after-compact");
        Ok(())
    }

    fn purge(&mut self) -> Result<Vec<ShardId>, LogError> {
        let groups = self.run("purge the log", Engine::purge_expired_files)?;
        Ok(groups.into_iter().filter_map(shard_of).collect())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.take() {
            // Everything promised was synced when it was written. What a failure here can lose is a commit index or a cut,
            // and how sharp the mark is; so it is no reason to bring the process down on its way out.
            let _ = engine_call(|| drop(engine));
            let _ = self.marker.sync();
        }
    }
}

/// The engine's group of a shard; the engine keeps 0 for itself in places.
fn group(shard: ShardId) -> u64 {
    u64::from(shard.get()) + 1
}

fn shard_of(group: u64) -> Option<ShardId> {
    group
        .checked_sub(1)
        .and_then(|number| u16::try_from(number).ok())
        .map(ShardId::new)
}

fn fatal(step: String, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> LogError {
    LogError::Fatal {
        step,
        source: source.into(),
    }
}

fn is_full(error: &raft_engine::Error) -> bool {
    matches!(error, raft_engine::Error::Io(error) if error.kind() == io::ErrorKind::StorageFull)
}

fn marker_error(error: MarkerError, path: &std::path::Path) -> LogError {
    let place = path.display().to_string();
    match error {
        MarkerError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            LogError::Unreadable {
                place,
                reason: "it is gone, so what was synced is not known".to_owned(),
            }
        }
        MarkerError::Io { step, source } => fatal(format!("{step} {place}"), source),
        MarkerError::Damaged => LogError::Unreadable {
            place,
            reason: "neither of its slots is whole and this node's".to_owned(),
        },
    }
}

fn has_log_files(dir: &std::path::Path) -> io::Result<bool> {
    for file in std::fs::read_dir(dir)? {
        let path = file?.path();
        if path
            .extension()
            .is_some_and(|ending| ENGINE_FILE_ENDINGS.iter().any(|known| ending == *known))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn open_engine(
    dir: &std::path::Path,
    options: &LogOptions,
    files: &LogFiles,
    rehearsal: bool,
) -> Result<Engine<LogFiles>, LogError> {
    let prefill = !rehearsal && options.prefill_bytes >= options.segment_bytes;
    let config = Config {
        dir: dir.to_string_lossy().into_owned(),
        // What an interrupted write left is cut off; the mark, checked in the rehearsal, says that it was no more.
        recovery_mode: RecoveryMode::TolerateTailCorruption,
        // One at a time, so that the file of an error is known.
        recovery_threads: 1,
        // Packages are compact already.
        batch_compression_threshold: ReadableSize(0),
        target_file_size: ReadableSize(options.segment_bytes),
        purge_threshold: ReadableSize(options.purge_above_bytes.max(options.segment_bytes)),
        prefill_for_recycle: prefill,
        // The engine fills half as much again.
        prefill_limit: prefill.then_some(ReadableSize(
            (options.prefill_bytes * 2 / 3).max(options.segment_bytes),
        )),
        ..Config::default()
    };
    let unreadable = |reason: String| {
        let place = files.last_read().unwrap_or_else(|| dir.to_path_buf());
        LogError::Unreadable {
            place: place.display().to_string(),
            reason,
        }
    };
    // Damaged input can trip the engine's own assertions: that is a refusal, not a crash.
    let opened = patiently(
        || {
            let (config, files) = (config.clone(), Arc::new(files.clone()));
            engine_call(|| Engine::open_with_file_system(config, files))
        },
        // The data directory is ours, so this is no second node.
        |opened| matches!(opened, Ok(Err(error)) if error.to_string().contains(ENGINE_LOCK_HELD)),
    );
    match opened {
        Ok(Ok(engine)) => {
            if prefill {
                sync_prefilled(dir).map_err(|source| {
                    fatal(format!("sync the log in {}", dir.display()), source)
                })?;
            }
            Ok(engine)
        }
        Ok(Err(raft_engine::Error::Io(source))) => {
            Err(fatal(format!("open the log in {}", dir.display()), source))
        }
        Ok(Err(error)) => Err(unreadable(error.to_string())),
        Err(panic) => Err(match files.take_sync_error() {
            Some(source) => fatal(format!("open the log in {}", dir.display()), source),
            None => unreadable(panic),
        }),
    }
}

/// Files prefilled for later wait for their first sync with all their bytes dirty: then it is a rotation, with payments
/// waiting, that writes 64 MiB of zeros. A file that is clean costs nothing here.
fn sync_prefilled(dir: &std::path::Path) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "reserved") {
            File::open(path)?.sync_all()?;
        }
    }
    Ok(())
}

fn read_entry(
    engine: &Engine<LogFiles>,
    files: &LogFiles,
    dir: &std::path::Path,
    node: NodeId,
    shard: ShardId,
    index: u64,
) -> Result<Entry, LogError> {
    let corrupt = |reason: String| {
        let place = files
            .last_read()
            .unwrap_or_else(|| dir.to_path_buf())
            .display()
            .to_string();
        LogError::Corrupt {
            shard,
            index,
            place,
            reason,
        }
    };
    let found = engine_call(|| engine.get_entry::<Records>(group(shard), index));
    let record = match found {
        Ok(Ok(Some(record))) => record,
        Ok(Ok(None)) => return Err(corrupt("it is missing".to_owned())),
        Ok(Err(error)) => return Err(corrupt(error.to_string())),
        Err(panic) => return Err(corrupt(panic)),
    };
    let entry = record::decode_entry(node, shard, index, Bytes::from(record.value));
    entry.map_err(|reason| corrupt(reason.to_owned()))
}

/// Each shard's state as stored, with the ends of its log read and checked.
fn recover(
    engine: &Engine<LogFiles>,
    files: &LogFiles,
    dir: &std::path::Path,
    node: NodeId,
) -> Result<BTreeMap<ShardId, StoredState>, LogError> {
    let mut shards = BTreeMap::new();
    for group_id in engine.raft_groups() {
        let place = dir.display().to_string();
        let Some(shard) = shard_of(group_id) else {
            let reason = format!("it holds the unknown group {group_id}");
            return Err(LogError::Unreadable { place, reason });
        };
        let corrupt = |index, reason: &str| LogError::Corrupt {
            shard,
            index,
            place: place.clone(),
            reason: reason.to_owned(),
        };
        let Some(state) = engine.get(group_id, STATE_KEY) else {
            if engine.last_index(group_id).is_none() {
                continue;
            }
            return Err(corrupt(0, "its state is missing"));
        };
        let state =
            record::decode_state(node, shard, &state).map_err(|reason| corrupt(0, reason))?;
        let StoredState { base, last, .. } = state;
        if last.index > base.index {
            // A whole file that is missing takes the front of the log with it.
            let first = engine.first_index(group_id);
            if first.is_none_or(|first| first > base.index + 1) {
                return Err(corrupt(base.index + 1, "it is missing"));
            }
            if read_entry(engine, files, dir, node, shard, last.index)?.term != last.term {
                return Err(corrupt(last.index, "its term differs"));
            }
        }
        shards.insert(shard, state);
    }
    Ok(shards)
}

/// Drops entries that the engine brought back. It moves old entries to files of their own and may then forget that they
/// were cut, so at an open it can hold some at or below a base, or past the end that a snapshot left. They are
/// never read; but what the engine holds must join what is appended next, or it panics.
fn drop_revenants(
    engine: &Engine<LogFiles>,
    shards: &BTreeMap<ShardId, StoredState>,
) -> raft_engine::Result<()> {
    let mut batch = LogBatch::default();
    for (&shard, state) in shards {
        if let Some(end) = engine.last_index(group(shard))
            && state.last.index == state.base.index
        {
            batch.add_command(group(shard), Command::Compact { index: end + 1 });
        }
    }
    engine.write(&mut batch, false).map(|_| ())
}

fn check_marks(marker: &Marker, shards: &BTreeMap<ShardId, StoredState>) -> Result<(), LogError> {
    for (&shard, mark) in marker.marks() {
        let found = shards.get(&shard).copied().unwrap_or_default();
        let (last, synced) = (found.last, mark.last);
        // A log that ends at the mark in an older term is an old copy, whose end was later replaced.
        if last.index < synced.index || (last.index == synced.index && last.term < synced.term) {
            return Err(LogError::TailLost {
                shard,
                synced: synced.index,
                found: last.index,
            });
        }
        let HardState { term, vote, .. } = found.hard_state;
        if term < mark.term || (term == mark.term && mark.vote.is_some() && vote != mark.vote) {
            return Err(LogError::VoteLost {
                shard,
                synced_term: mark.term,
                found_term: term,
            });
        }
    }
    Ok(())
}
