//! A node: it drives the replicas and ledgers of all its shards, takes messages in, and puts documents out.

#![forbid(unsafe_code)]

pub mod acknowledgements;
pub mod api;
pub mod certificates;
pub mod client;
pub mod clock;
pub mod cluster;
pub mod crash_points;
pub mod day;
pub mod documents;
pub mod engine;
pub mod events;
pub mod founding;
pub mod gateway;
pub mod history;
pub mod inbox;
pub mod links;
pub mod outbox;
pub mod overview;
pub mod rate;
pub mod serve;
pub mod settings;
pub mod summary;
mod toml_fault;
