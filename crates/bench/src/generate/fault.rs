//! What can be wrong with a payment or a message, and the answer it must get (ISO 20022 external codes).

/// A fault of one payment. The rest of its message is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PaymentFault {
    UpperCaseUetr,
    MissingKeys,
    TwiceInMessage,
    UnservedCurrency,
    UnknownCurrency,
    MissingCurrency,
    TooManyDecimals,
    ZeroAmount,
    EmptyAmount,
    UnknownReceiver,
    OwnReceiver,
    PastDate,
    FutureDate,
    ChangedRepeat,
    Repeat,
}

impl PaymentFault {
    pub(crate) const ALL: [Self; 15] = [
        Self::UpperCaseUetr,
        Self::MissingKeys,
        Self::TwiceInMessage,
        Self::UnservedCurrency,
        Self::UnknownCurrency,
        Self::MissingCurrency,
        Self::TooManyDecimals,
        Self::ZeroAmount,
        Self::EmptyAmount,
        Self::UnknownReceiver,
        Self::OwnReceiver,
        Self::PastDate,
        Self::FutureDate,
        Self::ChangedRepeat,
        Self::Repeat,
    ];

    /// The reason of the refusal.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::UpperCaseUetr => "CH16",
            Self::MissingKeys => "CH21",
            Self::TwiceInMessage => "RF01",
            Self::UnservedCurrency => "AM03",
            Self::UnknownCurrency | Self::MissingCurrency => "AM11",
            Self::TooManyDecimals => "CH20",
            Self::ZeroAmount => "AM01",
            Self::EmptyAmount => "AM12",
            Self::UnknownReceiver => "RC04",
            Self::OwnReceiver => "AG03",
            Self::PastDate => "DT01",
            Self::FutureDate => "DT04",
            Self::ChangedRepeat => "DU03",
            Self::Repeat => "AM05",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::UpperCaseUetr => "upper_case_uetr",
            Self::MissingKeys => "missing_keys",
            Self::TwiceInMessage => "twice_in_message",
            Self::UnservedCurrency => "unserved_currency",
            Self::UnknownCurrency => "unknown_currency",
            Self::MissingCurrency => "missing_currency",
            Self::TooManyDecimals => "too_many_decimals",
            Self::ZeroAmount => "zero_amount",
            Self::EmptyAmount => "empty_amount",
            Self::UnknownReceiver => "unknown_receiver",
            Self::OwnReceiver => "own_receiver",
            Self::PastDate => "past_date",
            Self::FutureDate => "future_date",
            Self::ChangedRepeat => "changed_repeat",
            Self::Repeat => "repeat",
        }
    }
}

/// A fault of a whole message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageFault {
    Malformed,
    DocumentType,
    MissingElement,
    LongMessageId,
    ClassConflict,
    Count,
    ControlSum,
    Total,
    ChangedRepeat,
    Repeat,
}

impl MessageFault {
    pub(crate) const ALL: [Self; 10] = [
        Self::Malformed,
        Self::DocumentType,
        Self::MissingElement,
        Self::LongMessageId,
        Self::ClassConflict,
        Self::Count,
        Self::ControlSum,
        Self::Total,
        Self::ChangedRepeat,
        Self::Repeat,
    ];

    /// The reason of the refusal; none when the message gets the stored answer of the first one.
    pub(crate) fn reason(self) -> Option<&'static str> {
        match self {
            Self::Malformed | Self::DocumentType | Self::MissingElement => Some("FF01"),
            Self::LongMessageId => Some("CH21"),
            Self::ClassConflict => Some("CH17"),
            Self::Count => Some("AM18"),
            Self::ControlSum => Some("AM10"),
            Self::Total => Some("AM16"),
            Self::ChangedRepeat => Some("DU01"),
            Self::Repeat => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::DocumentType => "document_type",
            Self::MissingElement => "missing_element",
            Self::LongMessageId => "long_message_id",
            Self::ClassConflict => "class_conflict",
            Self::Count => "count",
            Self::ControlSum => "control_sum",
            Self::Total => "total",
            Self::ChangedRepeat => "changed_repeat",
            Self::Repeat => "repeat",
        }
    }

    /// Whether the message is not taken in at all, so that it has no place in its sender's numbering.
    pub(crate) fn is_unreadable(self) -> bool {
        matches!(
            self,
            Self::Malformed | Self::DocumentType | Self::MissingElement | Self::LongMessageId
        )
    }
}
