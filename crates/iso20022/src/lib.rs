//! ISO 20022 messages to commands; outcomes and receipts to messages.

#![forbid(unsafe_code)]

pub mod fields;
pub mod json;
pub mod read;
pub mod write;
