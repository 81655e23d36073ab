//! The rehearsal: the full load over distance, in phases, measured on real processes.
//!
//! Packages are *received*, *netted* at one cut-off, and everybody reads its *receipts*, while urgent payments settle all
//! the time. `docs/rehearsal.md` says what a row is and what each figure means.

pub mod report;
