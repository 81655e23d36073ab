//! Load generation and benchmarks.

#![forbid(unsafe_code)]
