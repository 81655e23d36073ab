//! Drives the replicas of all shards of one process; gateway, pump, outbox.

#![forbid(unsafe_code)]
