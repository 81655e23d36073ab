//! Directories and options for tests.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clearspan_replica::{Entry, LogError, LogStore, ShardId};
use clearspan_storage::{
    ClusterId, DataDir, FreeSpace, Identity, Layout, Log, LogOptions, NodeId, PackageOptions,
    PackageStore,
};
use tempfile::TempDir;

pub(crate) const ONE: ShardId = ShardId::new(0);
pub(crate) const TWO: ShardId = ShardId::new(7);

/// The same in every test and process, so that a child can open its parent's directory.
pub(crate) fn identity() -> Identity {
    Identity {
        cluster: ClusterId::from_bytes([0xc1; 16]),
        node: NodeId::from_bytes([0x0e; 16]),
    }
}

pub(crate) fn new_dir() -> (TempDir, Layout) {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::under(dir.path().join("data"));
    drop(DataDir::create(layout.clone(), identity()).unwrap());
    (dir, layout)
}

/// Small files, no filling, no reserve: quick, and rotation is reached.
pub(crate) fn small() -> LogOptions {
    LogOptions {
        segment_bytes: 64 << 10,
        purge_above_bytes: 128 << 10,
        prefill_bytes: 0,
        reserve_bytes: 0,
        ..LogOptions::default()
    }
}

/// A log with its directory held.
pub(crate) struct Open {
    pub(crate) log: Log,
    _data: DataDir,
}

pub(crate) fn open(layout: &Layout, options: LogOptions) -> Result<Open, LogError> {
    let data = data_dir(layout);
    Ok(Open {
        log: open_log(&data, options)?,
        _data: data,
    })
}

pub(crate) fn data_dir(layout: &Layout) -> DataDir {
    DataDir::open(layout.clone()).unwrap()
}

pub(crate) fn open_log(data: &DataDir, options: LogOptions) -> Result<Log, LogError> {
    Log::open(data, options)
}

pub(crate) fn open_packages(data: &DataDir, options: PackageOptions) -> PackageStore {
    PackageStore::open(data, options).unwrap()
}

pub(crate) fn run(command: &mut Command) -> Output {
    command.output().unwrap()
}

pub(crate) fn read(log: &Log, shard: ShardId) -> Vec<Entry> {
    let found = log.shard(shard).unwrap();
    log.entries(shard, found.first_index(), found.last_index + 1, u64::MAX)
        .unwrap()
}

pub(crate) fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        let target = to.join(file.file_name());
        if file.file_type().unwrap().is_dir() {
            copy_dir(&file.path(), &target);
        } else {
            fs::copy(file.path(), target).unwrap();
        }
    }
}

/// The state of every file under `dir`: name and bytes.
pub(crate) fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|file| file.unwrap().path())
        .map(|path| {
            let bytes = fs::read(&path).unwrap();
            (path, bytes)
        })
        .collect();
    found.sort();
    found
}

pub(crate) fn log_files(layout: &Layout) -> Vec<PathBuf> {
    let is_log = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "raftlog");
    let mut found: Vec<PathBuf> = fs::read_dir(&layout.log)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(is_log)
        .collect();
    found.retain(|path| {
        !path
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .contains("reserved")
    });
    found.sort();
    found
}

/// A volume whose free bytes a test sets.
#[derive(Debug, Default)]
pub(crate) struct Volume(pub(crate) AtomicU64);

impl Volume {
    pub(crate) fn new(free_bytes: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(free_bytes)))
    }
}

impl FreeSpace for Volume {
    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        Ok(self.0.load(Ordering::Relaxed))
    }
}
