//! What a participant sent, as the gateway hands it to the sender's home shard.
//!
//! The gateway has parsed the message and made every check that needs no state; what it found stands in `faults`. The
//! shard adds the checks that need state and answers the first fault in the order of [`Reason`](crate::Reason).

use bytes::Bytes;

use crate::{AmountMinor, Bic, BusinessDate, Currency, PaymentId, ReasonSet, Text, Timestamp};

/// The kind of an incoming ISO 20022 message that moves money or asks about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageKind {
    /// pacs.008, a customer credit transfer.
    CustomerTransfer,
    /// pacs.009, a transfer between institutions, core.
    BankTransfer,
    /// pacs.009 with an underlying customer transfer, COV.
    CoverTransfer,
    /// pacs.004, a return of settled payments.
    Return,
    /// camt.056, a request to cancel.
    Cancellation,
}

impl MessageKind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Self; 5] = [
        Self::CustomerTransfer,
        Self::BankTransfer,
        Self::CoverTransfer,
        Self::Return,
        Self::Cancellation,
    ];

    /// The message's name without variant and version, `pacs.008`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CustomerTransfer => "pacs.008",
            Self::BankTransfer | Self::CoverTransfer => "pacs.009",
            Self::Return => "pacs.004",
            Self::Cancellation => "camt.056",
        }
    }
}

/// Urgency inside one account's queue: overtaking is between classes only (domain rule R9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// `URGT`
    Urgent,
    /// `HIGH`
    High,
    /// `NORM`
    Normal,
}

/// How a message's payments settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// Received now, netted in the next cycle.
    Net,
    /// Each payment alone, in full, at once or as soon as funds allow.
    Gross {
        /// The queue it waits in when it must.
        class: Class,
        /// Refuse at once what cannot settle at once, rather than queue it.
        settle_or_refuse: bool,
    },
}

/// One message of the sender, compact: a header, fixed-size payment records, and one heap of what is carried unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Kind of the message.
    pub kind: MessageKind,
    /// Version of the message definition, 8 for `pacs.008.001.08`; answers are in the sender's version.
    pub version: u8,
    /// Who sent it, as the connection or the header proved.
    pub sender: Bic,
    /// `GrpHdr/MsgId`, or the assignment's identifier of a camt.056.
    pub message_id: Text,
    /// Hash over the canonical form (no prefixes, white space, copy or possible-duplicate flags), for rule R3.
    pub digest: u128,
    /// The number the sender gave this message today, where the participant numbers its messages (rule R5); from 1.
    pub sequence: Option<u64>,
    /// How the payments settle. Of no meaning for a cancellation; returns settle gross.
    pub settlement: Settlement,
    /// What is wrong with the message as a whole, as far as that needs no state.
    pub faults: ReasonSet,
    /// The payments, in the order of the message. For a cancellation: the payments to cancel.
    pub payments: Vec<PaymentRecord>,
    /// Settlement times asked for, ascending by payment; most payments have none.
    pub times: Vec<(u32, SettlementTimes)>,
    /// What a return or cancellation refers to, ascending by payment; one for each payment of such a message.
    pub originals: Vec<(u32, OriginalPayment)>,
    /// Namespace declarations and the transactions' own bytes, for the receiver; opaque here (layout: `codec`).
    pub heap: Bytes,
}

/// One payment of a message: what the shard needs to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaymentRecord {
    /// Its key for its sender and date. Of no meaning where the faults hold [`Reason::IdMissing`](crate::Reason::IdMissing).
    pub id: PaymentId,
    /// Hash over the canonical content without the identifiers, for rule R3 (same content under a new key).
    pub content_digest: u64,
    /// Interbank settlement amount; zero where it could not be read.
    pub amount: AmountMinor,
    /// Its currency; [`Currency::NONE`] where it could not be read.
    pub currency: Currency,
    /// The participant to be credited (instructed agent); `None` where it could not be read.
    pub receiver: Option<Bic>,
    /// Interbank settlement date; `None` where it could not be read.
    pub date: Option<BusinessDate>,
    /// What is wrong with it, as far as that needs no state.
    pub faults: ReasonSet,
    /// Where the transaction's own bytes begin in the (uncompressed) heap.
    pub body_offset: u32,
    /// How many bytes they are.
    pub body_len: u32,
}

/// When a sender wants a payment settled (`SttlmTmReq`, rule R10), in log time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SettlementTimes {
    /// `FrTm`: not before.
    pub earliest: Option<Timestamp>,
    /// `TillTm`: the sender is warned when it still waits then.
    pub latest: Option<Timestamp>,
    /// `RjctTm`: refused when it still waits then.
    pub reject: Option<Timestamp>,
}

/// The settled or queued payment that a return or a cancellation refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginalPayment {
    /// `OrgnlUETR`, else the key of `OrgnlTxId`.
    pub id: PaymentId,
    /// For a cancellation, the request's reason code (`DUPL`, `TECH`, `CUST`, …); for a return, the return's.
    pub reason: [u8; 4],
}
