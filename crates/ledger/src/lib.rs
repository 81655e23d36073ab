//! One shard's state machine: accounts, gross settlement, cycles and netting, receipts.
//!
//! Pure: no files, sockets, threads, wall clock, randomness or environment, no floats, no hash-ordered iteration. Time
//! arrives inside the entry. The same entries in the same order give the same state, byte for byte, on every replica.
//! The one door is [`Ledger::apply`]; it cannot fail, a committed entry always has an outcome.
//!
//! What it leaves to others: layouts (`codec`), XML (`iso20022`), who proposes an entry and when (`node`).

#![forbid(unsafe_code)]

pub mod bic;
pub mod currency;
pub mod ids;
pub mod message;
pub mod money;
pub mod reason;
pub mod text;
pub mod time;

pub use bic::Bic;
pub use currency::Currency;
pub use ids::{CycleNumber, LogIndex, MessageNo, PackageNo, ParticipantId, PaymentId, PaymentNo, PaymentRef, ShardId};
pub use money::AmountMinor;
pub use reason::{Reason, ReasonSet};
pub use text::Text;
pub use time::{BusinessDate, Timestamp};
