//! Judges of histories.
//!
//! Whoever wrote a rule down once in code has one chance to see that it is wrong; who writes it down twice, and compares, has
//! two. This crate depends on no other of the workspace and shares no code with the ledger (ADR 0032):
//!
//! - [`model`] is a second clearing house, slow and plain, written from the rules. [`replay`] runs committed logs through it and
//!   names the first reply that differs.
//! - [`greatest`] says what the greatest set of a netting cycle is, by trying all.
//! - [`realtime`] holds log positions against the clock on the wall.
//! - [`append`] and [`linear`] are second opinions that ask for no log position: one finds cycles of dependencies in histories
//!   of lists, the other looks for an order in which a register could have answered as it did.

#![forbid(unsafe_code)]

pub mod append;
pub mod greatest;
pub mod linear;
pub mod model;
pub mod plain;
pub mod realtime;
pub mod replay;
