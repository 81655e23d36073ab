//! Incoming messages: bytes to commands.
//!
//! One pass over the bytes does everything that needs no state: well-formedness, structure of the parts that are read,
//! values, sums, canonical hashes, and the payments' own bytes for the receiver. What can be told apart payment by payment
//! is data ([`Submission::faults`], [`PaymentRecord::faults`](clearspan_ledger::message::PaymentRecord)); only what cannot
//! be read or attributed is a [`Fault`].
//!
//! # The canonical form
//! Hashes are over expanded names (namespace and local name, no prefixes) with attributes in one order and text with
//! references, CDATA and line ends resolved; white space between elements, comments, processing instructions, schema
//! location hints and creation times (`CreDtTm`: a resend is created anew) are left out. Only the `Document` counts, so
//! copy and possible-duplicate flags of the business header never change a hash. A namespace other than the message's is
//! written as its own hash. Prefixes inside values (`xsi:type="p:x"`) are text and do change it.
//!
//! [`Submission::digest`] is XXH3-128 over all of it, the identifiers of a payment (`InstrId`, `TxId`, `UETR`, `ClrSysRef`,
//! `RtrId`, `CxlId`) before its content; `content_digest` is XXH3-64 over one payment's content without them.
//!
//! # Decided where the standard leaves it open
//! - A settlement time without zone is refused (`FieldInvalid`): its meaning would depend on who reads it.
//! - Text between elements is refused in the message's own namespace, a no-break space included; it is carried in foreign
//!   supplementary data.
//! - `BizMsgIdr` may differ from `MsgId`; type and sender of the header may not differ from the message.
//! - A control sum is not compared when one of the amounts is not a number: that payment is refused, the others are not.
//! - An `InstgAgt` without BIC says nothing about the sender; one with another BIC, or none at all, does.

use std::borrow::Cow;

use clearspan_ledger::message::Submission;
use clearspan_ledger::{AmountMinor, Bic, BusinessDate, Currency, PaymentId, Reason, Text};

mod gather;
pub mod heap;
mod names;
mod scan;
mod shape;
mod values;
mod walk;

#[cfg(test)]
mod tests;

pub use values::sequence_of;

/// The most of everything that one message may have. Each is checked before memory is taken for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a message. 10,000 payments of 6 KiB fit; offsets of 32 bits hold it.
    pub body_max_bytes: usize,
    /// Elements inside one another, envelope included. The deepest published path of pacs.008 has about 15.
    pub depth_max: usize,
    /// Attributes of one element; they are compared pair by pair.
    pub attributes_max: usize,
    /// Namespace declarations in scope, and different namespaces; look-up is linear. A namespace has at most 1,024 bytes.
    pub namespaces_max: usize,
    /// Bytes of one element's text, references resolved. The longest published text of a payment has 2,048 characters; only
    /// signatures of mandates and payments may be longer, and where those travel this is to be raised.
    pub text_max_bytes: usize,
    /// Payments, requests or reports of one message: the largest package is 5,000.
    pub payments_max: usize,
    /// Notes kept for the log, at least one; faults beyond it count, but are not described.
    pub notes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_max_bytes: 64 << 20,
            depth_max: 32,
            attributes_max: 64,
            namespaces_max: 256,
            text_max_bytes: 4 << 10,
            payments_max: 10_000,
            notes_max: 1000,
        }
    }
}

/// What the gateway knows that the message does not say.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The participant that the connection proved, where it proved one.
    pub sender: Option<Bic>,
    /// The largest amount of one payment.
    pub amount_max: AmountMinor,
    /// Whether a participant numbers its messages (rule R5).
    pub numbers_messages: &'a dyn Fn(Bic) -> bool,
}

/// A message that was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// pacs.008, pacs.009, pacs.004 or camt.056: goes to the sender's home shard.
    Submission(Submitted),
    /// pacs.028
    StatusRequest(StatusRequest),
    /// camt.060
    ReportRequest(ReportRequest),
}

/// A submission and what was found beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Submitted {
    /// For the shard.
    pub submission: Submission,
    /// The business header, where the message came with one.
    pub header: Option<Header>,
    /// Every fault with its place, in the order of the message, at most [`Limits::notes_max`].
    pub notes: Vec<Note>,
}

/// What a business application header (head.001) said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Version of head.001.
    pub version: u8,
    /// `Fr`, where it holds a BIC.
    pub from: Option<Bic>,
    /// `To`, where it holds a BIC.
    pub to: Option<Bic>,
    /// `BizMsgIdr`
    pub message_id: String,
    /// `MsgDefIdr`
    pub definition: String,
    /// `BizSvc`
    pub service: Option<String>,
    /// `CpyDplct`
    pub copy: Option<String>,
    /// `PssblDplct`
    pub possible_duplicate: bool,
}

/// One fault that refuses a message or a payment, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Place of the payment in the message, from 0; `None` for the message as a whole.
    pub payment: Option<u32>,
    /// Why.
    pub reason: Reason,
    /// Line, from 1.
    pub line: u64,
    /// Place in the structure, as in [`Fault::path`].
    pub path: String,
    /// For people.
    pub detail: Cow<'static, str>,
}

/// Why a message could not be read or attributed, with as much as is needed to name and address the refusal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} in line {line}, column {column} at {path}: {detail}")]
pub struct Fault {
    /// The reason that is answered.
    pub reason: Reason,
    /// Line, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
    /// Place in the structure, `/Document/FIToFICstmrCdtTrf/CdtTrfTxInf[3]/IntrBkSttlmAmt`; payments count from 1.
    pub path: String,
    /// For people.
    pub detail: Cow<'static, str>,
    /// The sender, as far as it was read or known.
    pub sender: Option<Bic>,
    /// The message's identifier, as far as it was read; of any length.
    pub message_id: Option<String>,
    /// `pacs.008.001.08`, where the namespace named it.
    pub message_name: Option<String>,
}

/// pacs.028: what became of these payments?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusRequest {
    /// Version of the message definition.
    pub version: u8,
    /// Who asks.
    pub sender: Bic,
    /// `GrpHdr/MsgId`
    pub message_id: Text,
    /// `OrgnlGrpInf`: the messages asked about.
    pub originals: Vec<OriginalMessage>,
    /// `TxInf`: the payments asked about; empty when whole messages are asked about.
    pub payments: Vec<RequestedPayment>,
    /// The business header, where the message came with one.
    pub header: Option<Header>,
}

/// A message that a request refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginalMessage {
    /// `OrgnlMsgId`
    pub message_id: String,
    /// `OrgnlMsgNmId`, such as `pacs.008.001.08`
    pub message_name: String,
}

/// A payment that a request refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedPayment {
    /// `StsReqId`
    pub request_id: Option<String>,
    /// The payment's key: `OrgnlUETR`, else that of `OrgnlTxId`; `None` where neither is there or readable.
    pub id: Option<PaymentId>,
    /// The message it was part of, where the request names it for this payment alone.
    pub original: Option<OriginalMessage>,
    /// `OrgnlInstrId`
    pub instruction: Option<String>,
    /// `OrgnlEndToEndId`
    pub end_to_end: Option<String>,
    /// `OrgnlTxId`
    pub transaction: Option<String>,
    /// `OrgnlUETR`
    pub uetr: Option<String>,
}

/// camt.060: reports asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportRequest {
    /// Version of the message definition.
    pub version: u8,
    /// Who asks.
    pub sender: Bic,
    /// `GrpHdr/MsgId`
    pub message_id: Text,
    /// `RptgReq`, in the order of the message; at least one.
    pub reports: Vec<RequestedReport>,
    /// The business header, where the message came with one.
    pub header: Option<Header>,
}

/// One report asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestedReport {
    /// `Id`
    pub id: Option<String>,
    /// `ReqdMsgNmId`: `camt.052`, `camt.053.001.08`, …
    pub message_name: String,
    /// `Acct/Ccy`
    pub currency: Option<Currency>,
    /// `RptgPrd/FrToDt/FrDt`
    pub from_date: Option<BusinessDate>,
    /// `RptgPrd/FrToDt/ToDt`
    pub to_date: Option<BusinessDate>,
    /// Ranges of `RptgSeq`, both ends included; open ends are `None`. Empty where no sequence was given.
    pub sequences: Vec<(Option<u64>, Option<u64>)>,
}

/// Reads one message.
///
/// ```
/// use clearspan_iso20022::read::{Context, Limits, read};
/// use clearspan_ledger::{AmountMinor, Reason};
///
/// let context = Context { sender: None, amount_max: AmountMinor::MAX, numbers_messages: &|_| false };
/// let fault = read(b"<!DOCTYPE x><x/>", &Limits::default(), &context).unwrap_err();
/// assert_eq!(fault.reason, Reason::Syntax);
/// ```
///
/// # Errors
/// A [`Fault`] when the message is not well-formed, not of the structure its namespace names, of a kind that is not served,
/// without a readable identifier, from nobody, or above a limit.
pub fn read(bytes: &[u8], limits: &Limits, context: &Context<'_>) -> Result<Incoming, Box<Fault>> {
    walk::read(bytes, limits, context)
}
