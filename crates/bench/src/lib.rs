//! Load generation and benchmarks.

#![forbid(unsafe_code)]

pub mod cluster;
pub mod generate;
pub mod measure;
pub mod program;
pub mod rehearsal;
