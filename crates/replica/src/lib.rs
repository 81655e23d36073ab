//! One shard's replica: events in, actions out; the only crate that names the Raft engine.

#![forbid(unsafe_code)]
