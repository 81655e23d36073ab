//! Reason codes and the one order in which they are checked.
//!
//! The codes are ISO 20022 external status reason codes. A payment with two faults gets the reason that stands first
//! here, wherever each fault was found (gateway or shard), so the answer is predictable. `docs/reference/reasons.md` is
//! generated from this table.

use std::fmt;

macro_rules! reasons {
    ($( $(#[$section:meta])* $variant:ident $code:literal $level:ident $text:literal; )+) => {
        /// Why a message, payment or request was refused, or why a payment waits. The order of the variants is the order
        /// of precedence.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Reason {
            $( #[doc = $text] $variant, )+
        }

        impl Reason {
            /// All reasons, in order of precedence.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )+ ];

            /// The ISO 20022 external code.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $( Self::$variant => $code, )+ }
            }

            /// What it means, as one sentence for people.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $( Self::$variant => $text, )+ }
            }

            /// The variant's name, for machines that want more than the code.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => stringify!($variant), )+ }
            }

            /// What the check looks at.
            #[must_use]
            pub const fn level(self) -> Level {
                match self { $( Self::$variant => Level::$level, )+ }
            }
        }
    };
}

/// What a check looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The message as a whole: a fault refuses all of it.
    Message,
    /// One payment: a fault refuses that payment alone, unless the participant asked for whole packages only.
    Payment,
    /// Settlement of an accepted payment.
    Settlement,
    /// A request about an earlier payment: cancellation, return.
    Request,
}

reasons! {
    Syntax "FF01" Message "The message is not well-formed, or not of the structure its namespace names.";
    HeaderMismatch "CH16" Message "The business header does not agree with the message: type, sender or identifier.";
    MessageIdInvalid "CH21" Message "The message identifier is missing or longer than 35 characters.";
    MessageNotSupported "AG03" Message "This message type, version or settlement method is not served here.";
    SenderUnknown "AG01" Message "The sender is not a participant, or is not the one that delivered the message.";
    ClassConflict "CH17" Message "Clearing channel and settlement priority contradict each other.";
    CountMismatch "AM18" Message "The number of payments differs from the number stated.";
    ControlSumMismatch "AM10" Message "The sum of all amounts differs from the control sum stated.";
    TotalMismatch "AM16" Message "The sum of all amounts differs from the total interbank settlement amount stated.";
    SequenceMissing "CH21" Message "This participant numbers its messages, and this one carries no number.";
    SequenceUsed "DU01" Message "This sequence number has been used by another message or was skipped by the operator.";
    DayClosed "TM01" Message "No business day is open.";
    MessageDuplicate "DU01" Message "The message identifier was used today for other content.";
    IdMissing "CH21" Payment "The payment has neither a UETR nor a transaction identifier.";
    IdInvalid "CH16" Payment "The UETR is not a lower-case UUID of version 4, or an identifier is too long.";
    DuplicateInMessage "RF01" Payment "The same payment identifier stands twice in this message.";
    FieldInvalid "CH16" Payment "An element that decides something has a value that its type does not allow.";
    CurrencyInvalid "AM11" Payment "The currency is missing or not an ISO 4217 code.";
    CurrencyNotServed "AM03" Payment "No account is kept here in this currency.";
    AmountInvalid "AM12" Payment "The amount is missing or not a number.";
    DecimalsExceeded "CH20" Payment "The amount has more decimals than its currency.";
    AmountZero "AM01" Payment "The amount is zero.";
    AmountTooLarge "AM02" Payment "The amount is above the largest that one payment may have.";
    ReceiverInvalid "RC04" Payment "The receiving agent is missing, malformed, or not a participant.";
    SameParticipant "AG03" Payment "Sender and receiver are the same participant.";
    SenderAccountMissing "AC02" Payment "The sender keeps no account in this currency.";
    ReceiverAccountMissing "AC03" Payment "The receiver keeps no account in this currency.";
    DateInvalid "DT01" Payment "The settlement date is missing, malformed or past.";
    DateFuture "DT04" Payment "The settlement date is later than the open business day.";
    TimesInvalid "CH16" Payment "The requested settlement times contradict each other.";
    CutOffPassed "TM01" Payment "The cut-off for this kind of message has passed.";
    RejectTimePassed "TM01" Payment "The time after which the sender wanted it refused has passed.";
    PaymentKeyReused "DU03" Payment "The payment identifier was used today for other content.";
    PaymentDuplicate "AM05" Payment "The same payment was taken in before; it is not taken twice.";
    InsufficientFunds "AM04" Settlement "The account had not enough funds.";
    EarliestTime "DT05" Settlement "The payment waits for the earliest time that the sender set.";
    QueuedBehind "ED05" Settlement "The payment waits behind an earlier or more urgent one of the same account.";
    SettlementBroken "ED05" Settlement "The business day ended before the payment could settle.";
    OriginalUnknown "NOOR" Request "No such payment was received from or by this participant.";
    InSettlement "BIAS" Request "The payment is part of a running netting cycle or already settled in a batch.";
    AlreadyEnded "RCPR" Request "The payment was refused, cancelled or returned in full before.";
    ReturnExceeds "AM09" Request "The sum of returns would exceed the original amount.";
    ReturnCurrency "CURR" Request "The return is in another currency than the original payment.";
    SequenceGap "TM01" Message "A message with a lower number was still missing when the business day ended.";
}

impl Reason {
    /// The reason at a place of the order, if there is one: the inverse of `as u8`.
    #[must_use]
    pub fn from_rank(rank: u8) -> Option<Self> {
        Self::ALL.get(usize::from(rank)).copied()
    }

    /// Its place in the order of precedence, from 0.
    #[must_use]
    pub const fn rank(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// All the faults found in one message or payment; the first in order of precedence is the one that is answered.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ReasonSet(u64);

// One bit per reason.
const _: () = assert!(Reason::ALL.len() <= 64);

impl ReasonSet {
    /// No fault.
    pub const EMPTY: Self = Self(0);

    /// Adds a fault.
    pub const fn insert(&mut self, reason: Reason) {
        self.0 |= 1 << (reason as u8);
    }

    /// Both sets' faults.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The fault that is answered.
    #[must_use]
    pub fn first(self) -> Option<Reason> {
        u8::try_from(self.0.trailing_zeros())
            .ok()
            .and_then(Reason::from_rank)
    }

    /// All faults, in order of precedence.
    pub fn iter(self) -> impl Iterator<Item = Reason> {
        Reason::ALL
            .iter()
            .copied()
            .filter(move |&reason| self.0 & (1 << (reason as u8)) != 0)
    }

    /// One bit per reason, the first reason lowest.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// From bits; `None` when a bit stands for no reason.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Option<Self> {
        if bits >> Reason::ALL.len() == 0 {
            Some(Self(bits))
        } else {
            None
        }
    }
}

impl From<Reason> for ReasonSet {
    fn from(reason: Reason) -> Self {
        let mut set = Self::EMPTY;
        set.insert(reason);
        set
    }
}

impl fmt::Debug for ReasonSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{Reason, ReasonSet};

    #[test]
    fn the_first_in_order_is_answered() {
        let mut set = ReasonSet::from(Reason::AmountZero);
        set.insert(Reason::CurrencyInvalid);
        assert_eq!(set.first(), Some(Reason::CurrencyInvalid));
        assert_eq!(
            set.iter().collect::<Vec<_>>(),
            [Reason::CurrencyInvalid, Reason::AmountZero]
        );
        assert_eq!(ReasonSet::from_bits(set.bits()), Some(set));
        assert_eq!(ReasonSet::from_bits(1 << 63), None);
        assert_eq!(ReasonSet::EMPTY.first(), None);
    }

    #[test]
    fn ranks_are_the_order() {
        for (rank, &reason) in (0_u8..).zip(Reason::ALL) {
            assert_eq!(reason.rank(), rank);
            assert_eq!(Reason::from_rank(rank), Some(reason));
        }
        assert_eq!(Reason::from_rank(200), None);
    }
}
