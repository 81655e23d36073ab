//! ISO 20022 messages to commands; outcomes and receipts to messages.

#![forbid(unsafe_code)]

pub mod fields;
pub mod read;
pub mod write;
