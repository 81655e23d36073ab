//! What the writing side promises: bytes, structure, schema, replay.

#![expect(
    clippy::unwrap_used,
    reason = "an input that cannot be built is a failed test"
)]

mod forwards;
mod golden;
mod samples;
mod schema;
mod structure;
