//! The writing side: outcomes, receipts and reports as ISO 20022 documents.
//!
//! Every function appends one XML document to a byte buffer and nothing else: no tree, no allocation per payment, no
//! white space that means nothing (line ends and blank-only text break some receivers, domain 4), UTF-8, escaped.
//!
//! A document is a function of its inputs alone (rule R24): no clock, no counter. A replay of the same output number is
//! byte-identical, but for `PssblDplct`, which stands in the business header only; so with [`Framing::Bare`] a
//! replay is byte-identical as a whole. Message identifiers are the caller's; [`output_message_id`] builds one from the
//! output stream's number.
//!
//! # Framing
//! [`Framing::Envelope`] carries header and document in one neutral envelope of our own:
//!
//! ```text
//! <BusinessMessage xmlns="urn:clearspan:envelope:1"><AppHdr xmlns="…:head.001.001.02">…</AppHdr><Document xmlns="…">…</Document></BusinessMessage>
//! ```
//!
//! [`Framing::Bare`] leaves envelope and header out: the `Document` is the root.
//!
//! # Lengths
//! Identifiers are written as they are, never cut: the caller holds them to the 35 characters of ISO 20022 (an empty
//! one is left out where it is optional, else written as `NOTPROVIDED`). Free texts are cut at the length of their type.
//! Sums that do not fit the 18 digits of an ISO 20022 amount are left out where they are optional.

mod acknowledgement;
mod cancellation;
mod cash;
mod document;
mod forward;
mod netting;
mod notification;
mod statement;
mod status;
mod version;
pub(crate) mod xml;

pub use acknowledgement::{Acknowledgement, Handled, acknowledgement};
pub use cancellation::{
    CancellationAnswer, CancellationStatus, Case, Confirmation, PaymentCancellation,
    cancellation_answer,
};
pub use cash::{Account, BankCode, Direction, Entry, EntryDetail, Page, Totals};
pub use document::{ENVELOPE_NAMESPACE, Framing, HEADER_NAMESPACE, Head, output_message_id};
pub use forward::{ForwardGroup, forward, forward_recall};
pub use netting::{NetMovement, NettingResult, netting_result};
pub use notification::{Notification, notification};
pub use statement::{Balance, BalanceKind, Statement, intraday_report, statement};
pub use status::{
    EffectiveDate, Finality, OriginalMessage, PaymentStatus, Status, StatusCount, StatusReason,
    StatusReport, Sum, status_report,
};
pub use version::{
    CancellationVersion, CashVersion, Definition, StatusVersion, cancellation_answer_version,
    status_report_version,
};
