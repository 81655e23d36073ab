//! Several nodes in one process, joined by channels instead of sockets: what replicas, forwarding and the pump between
//! shards promise when nodes and links come and go.

#![expect(clippy::unwrap_used, reason = "a test that finds nothing fails")]

mod differ;
mod fetch;
mod hub;
mod membership;
mod nodes;
mod planned;
mod promises;
