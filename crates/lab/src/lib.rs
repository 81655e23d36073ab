//! A cluster of real processes on one machine, with distance between its sites.
//!
//! Connections between sites run through a [`relay`], which gives them delay, jitter and bandwidth and can cut them;
//! connections inside a site are direct. [`lab::Lab`] sets the cluster up, kills, pauses and restarts its nodes and leaves
//! nothing behind; [`control`] does that from other processes. No root is needed, nor any setting of the machine.
//!
//! What is left to others: what the nodes do, and what load they get.

#![forbid(unsafe_code)]

pub mod clock;
pub mod control;
pub mod failover;
pub mod lab;
pub mod measure;
pub mod ports;
pub mod process;
pub mod relay;
pub mod topology;
