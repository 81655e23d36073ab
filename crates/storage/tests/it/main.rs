//! What the storage crate's public door promises, on real files.

mod crash;
mod faults;
mod log;
mod packages;
mod snapshots;
mod support;
