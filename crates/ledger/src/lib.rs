//! One shard's state machine: accounts, gross settlement, cycles and netting, receipts.
//!
//! Pure: no files, sockets, threads, wall clock, randomness or environment, no floats, no hash-ordered iteration. Time
//! arrives inside the entry. The same entries in the same order give the same state, byte for byte, on every replica.
//! The one door is [`Ledger::apply`]; it cannot fail, a committed entry always has an outcome.
//!
//! What it leaves to others: layouts (`codec`), XML (`iso20022`), who proposes an entry and when (`node`).

#![forbid(unsafe_code)]

pub mod account;
mod apply;
pub mod approvals;
mod basics;
pub mod bic;
mod business_day;
mod cancel;
mod coordinator;
pub mod currency;
pub mod day;
mod digest;
pub mod directory;
pub mod entry;
mod gross;
pub mod ids;
pub mod layout;
mod member;
pub mod message;
pub mod money;
pub mod nodes;
pub mod query;
pub mod reason;
mod state;
pub mod stream;
mod submit;
mod table;
pub mod text;
pub mod time;

pub use apply::{AdminRefusal, Outcome, Reply};
pub use bic::Bic;
pub use coordinator::{CyclePhase, CycleSummary};
pub use currency::Currency;
pub use gross::Finality;
pub use ids::{
    CycleNumber, LogIndex, MessageNo, ParticipantId, PaymentId, PaymentNo, PaymentRef, ShardId,
};
pub use member::CycleRecord;
pub use money::AmountMinor;
pub use reason::{Reason, ReasonSet};
pub use state::{
    CancelAnswer, CancelOutcome, DayState, HELD_MAX_BYTES, HELD_MAX_MESSAGES, Ledger, Totals,
};
pub use text::Text;
pub use time::{BusinessDate, Timestamp};
