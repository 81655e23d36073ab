//! Log, package store, snapshots, checksums; the only crate that names the log and key-value engines.

#![forbid(unsafe_code)]
