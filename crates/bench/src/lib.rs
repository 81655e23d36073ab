//! Load generation and benchmarks.

#![forbid(unsafe_code)]

pub mod generate;
pub mod measure;
