//! One shard's replica: events in, actions out; the only crate that names the Raft engine.
//!
//! [`Replica::step`] is the only door. It holds no file, socket, thread, clock or randomness: the caller brings events
//! (a tick, a proposal, a peer's message, "this write is durable") and performs the actions it gets back, in order. A
//! group of one voter and a group of five run the same code; with one voter there is simply nobody to send to.
//!
//! [`LogStore`] is the port to the log that all shards of a node share. `clearspan-storage` provides the real one,
//! [`MemoryLog`] the one for tests and simulation, with a crash that forgets what was not synced; `conformance` is
//! the suite both pass.
//!
//! What is left to others: encoding of messages (the node's frames), performing reads and writes, and the meaning of an
//! entry's bytes.

#![forbid(unsafe_code)]

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod entry;
mod event;
mod log_store;
mod memory_log;
mod message;
mod replica;
mod tail;

pub use entry::{
    Correlation, Entry, EntryKind, HardState, LogPosition, MemberId, Membership, ShardId, Timestamp,
};
pub use event::{
    Action, Change, Committed, CommittedBody, DropReason, Event, Persist, Proposal, SnapshotMark,
    StopReason,
};
pub use log_store::{Append, LogError, LogStore, ShardLog};
pub use memory_log::MemoryLog;
pub use message::{
    MessageKind, PEER_ENTRIES_MAX, PEER_ENTRY_BYTES_MAX, PEER_MEMBERS_MAX, PEER_MESSAGE_BYTES_MAX,
    PeerMessage, PeerMessageError,
};
pub use replica::{
    LAG_COUNTED_MAX_ENTRIES, OpenError, Progress, Recovered, Replica, ReplicaConfig, Role, Sending,
    Status,
};
