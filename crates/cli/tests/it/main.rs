//! What the binary promises, asked of the binary: files in, accounts and documents out, exit codes, words on stderr.

#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, in its helpers too"
)]

mod compare;
mod documents;
mod example_day;
mod generated_days;
mod help;
mod input;
mod interrupted;
mod late;
mod plan;
mod queries;
mod rehearsal;
mod reports;
mod settings;
mod support;
mod verify;
mod xml;
