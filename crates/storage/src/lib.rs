//! Log, package store, snapshots, checksums; the only crate that names the log and key-value engines.
//!
//! One [`DataDir`] per node: locked against a second process, with the identity it belongs to. In it lie the [`Log`] of
//! all shards, the [`PackageStore`] and the [`Snapshots`]. Layouts: `docs/format/storage.md`.
//!
//! Three rules hold throughout. What is damaged is named and never served or skipped. A failed write or fsync of the log
//! is fatal: the caller hands it to [`stop`], nothing is retried. Nothing on disk is cut or replaced to get past damage.
//!
//! What is left to others: when to write, what entries mean, and what to do about lost or damaged data.

#![forbid(unsafe_code)]

mod crash_point;
mod data_dir;
mod engine_call;
mod file;
mod free_space;
mod log;
mod packages;
mod records;
mod snapshots;
mod verdict;

pub use crash_point::{CRASH_AT, CRASH_FILE, CRASH_POINTS, crash_point};
pub use data_dir::{ClusterId, DataDir, DataDirError, Identity, Layout, NodeId};
pub use free_space::{FreeSpace, VolumeSpace};
pub use log::{FileFaults, Log, LogOptions, WriteFault};
pub use packages::{Package, PackageError, PackageOptions, PackageStore};
pub use records::{Life, NodesFile};
pub use snapshots::{SnapshotError, SnapshotFile, SnapshotReader, Snapshots};
pub use verdict::Verdicts;

/// Stops the process at once after a fatal storage failure, saying why on stderr. A destructor could write, so none runs.
pub fn stop(error: &dyn std::error::Error) -> ! {
    let mut text = format!("stopping: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    if let Some(instead) = INSTEAD_OF_STOPPING.get() {
        match instead(text) {}
    }
    eprintln!("{text}");
    std::process::abort()
}

static INSTEAD_OF_STOPPING: std::sync::OnceLock<fn(String) -> std::convert::Infallible> =
    std::sync::OnceLock::new();

/// What [`stop`] does from now on in this process, with its text: a simulation ends one of its nodes and goes on. It must
/// not return.
pub fn instead_of_stopping(handler: fn(String) -> std::convert::Infallible) {
    let _ = INSTEAD_OF_STOPPING.set(handler);
}
