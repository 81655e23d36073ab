//! Every byte layout that outlives a process: entries, packages, snapshots.

#![forbid(unsafe_code)]
