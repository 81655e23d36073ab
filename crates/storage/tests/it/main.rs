//! What the storage crate's public door promises, on real files.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its case has failed"
)]

mod crash;
mod faults;
mod log;
mod model;
mod packages;
mod replica;
mod snapshots;
mod support;
