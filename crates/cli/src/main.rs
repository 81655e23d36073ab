//! `clearspan`: node, operator's tool and test bench in one binary.

#![forbid(unsafe_code)]

fn main() {}
