//! What the ledger's public door promises.

#![forbid(unsafe_code)]

mod bytes;
mod cluster;
mod golden;
mod gross;
mod netting;
mod receipts;
mod reception;
mod rng;
mod script;
