//! What the ledger's public door promises.

#![forbid(unsafe_code)]

mod bytes;
mod channels;
mod chaos;
mod cluster;
mod golden;
mod greatest;
mod gross;
mod layouts;
mod limits;
mod make;
mod netting;
mod receipts;
mod reception;
mod rng;
mod script;
