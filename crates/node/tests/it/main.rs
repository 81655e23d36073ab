//! What a node promises to those who use it as a library.

#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, in its helpers too"
)]

mod concurrency;
