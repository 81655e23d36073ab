//! A node: it drives the replicas and ledgers of all its shards, takes messages in, and puts documents out.

#![forbid(unsafe_code)]

pub mod certificates;
pub mod clock;
pub mod documents;
pub mod engine;
