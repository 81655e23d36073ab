//! What the read elements say, put together: values checked, sums made, records built.

use std::borrow::Cow;

use bytes::Bytes;
use clearspan_ledger::message::{
    Class, MessageKind, OriginalPayment, PaymentRecord, Settlement, SettlementTimes, Submission,
};
use clearspan_ledger::money::{AmountFault, parse_amount};
use clearspan_ledger::{
    AmountMinor, Bic, BusinessDate, Currency, PaymentId, Reason, ReasonSet, Text, Timestamp,
};

use super::shape::{Definition, Field};
use super::{
    Context, Header, Incoming, Limits, OriginalMessage, ReportRequest, RequestedPayment,
    RequestedReport, StatusRequest, Submitted, values,
};
use crate::read::Note;

/// Why reading stopped.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) at: usize,
    pub(crate) reason: Reason,
    pub(crate) detail: Cow<'static, str>,
    /// Where the place is not the element that was open last.
    pub(crate) path: Option<String>,
}

impl From<super::scan::Bad> for Stop {
    fn from(bad: super::scan::Bad) -> Self {
        Self::new(bad.at, Reason::Syntax, bad.detail)
    }
}

impl Stop {
    pub(crate) fn new(at: usize, reason: Reason, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            at,
            reason,
            detail: detail.into(),
            path: None,
        }
    }
}

/// A note whose line is not counted yet.
pub(crate) struct Mark {
    pub(crate) payment: Option<u32>,
    pub(crate) reason: Reason,
    pub(crate) at: usize,
    pub(crate) path: String,
    pub(crate) detail: Cow<'static, str>,
}

/// Where an element stands.
pub(crate) trait Place {
    /// Byte offset.
    fn at(&self) -> usize;
    /// `/Document/…`
    fn path(&self) -> String;
}

/// Whom an agent element names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Agent {
    #[default]
    Absent,
    /// There, but without a BIC.
    Unnamed,
    Invalid,
    Named(Bic),
}

impl Agent {
    fn bic(self) -> Option<Bic> {
        match self {
            Self::Named(bic) => Some(bic),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
enum Role {
    #[default]
    None,
    From,
    To,
    Claim,
    Instructed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Channel {
    Gross,
    Net,
    Book,
}

/// What stands in the group header or in a transaction.
#[derive(Clone, Copy, Debug, Default)]
struct Common {
    // Outer: there; inner: readable.
    date: Option<Option<BusinessDate>>,
    channel: Option<Channel>,
    settle_or_refuse: bool,
    instructed: Agent,
}

/// One transaction while it is read.
#[derive(Debug, Default)]
struct Transaction {
    common: Common,
    faults: ReasonSet,
    uetr: Option<PaymentId>,
    transaction: Option<PaymentId>,
    original_uetr: Option<PaymentId>,
    original_transaction: Option<PaymentId>,
    amount: Option<AmountMinor>,
    amount_seen: bool,
    currency: Option<Currency>,
    priority: Option<Class>,
    times: [Option<i64>; 3],
    reason: Option<[u8; 4]>,
}

/// Gathers one message.
pub(crate) struct Gather<'c> {
    limits: &'c Limits,
    context: &'c Context<'c>,
    pub(crate) definition: Option<(Definition, u8)>,
    pub(crate) header: Option<Header>,
    pub(crate) message_id: Option<String>,
    fatal: Option<Stop>,
    role: Role,
    claim: Option<Bic>,
    claims_differ: bool,
    in_transaction: bool,
    group: Common,
    group_faults: ReasonSet,
    transaction: Transaction,
    cover: bool,
    count: Option<Option<u64>>,
    control_sum: Option<Option<i128>>,
    total: Option<(Option<Currency>, Option<i128>)>,
    sum: Option<i128>,
    currency: Option<Option<Currency>>,
    settlement: Option<Settlement>,
    class_conflict: bool,
    faults: ReasonSet,
    payments: Vec<PaymentRecord>,
    times: Vec<(u32, SettlementTimes)>,
    originals: Vec<(u32, OriginalPayment)>,
    pub(crate) marks: Vec<Mark>,
    // Requests.
    original: OriginalMessage,
    original_messages: Vec<OriginalMessage>,
    requested: RequestedPayment,
    requests: Vec<RequestedPayment>,
    report: RequestedReport,
    reports: Vec<RequestedReport>,
}

const NO_REQUEST: RequestedPayment = RequestedPayment {
    request_id: None,
    id: None,
    original: None,
    instruction: None,
    end_to_end: None,
    transaction: None,
    uetr: None,
};

impl<'c> Gather<'c> {
    pub(crate) fn new(limits: &'c Limits, context: &'c Context<'c>) -> Self {
        Self {
            limits,
            context,
            definition: None,
            header: None,
            message_id: None,
            fatal: None,
            role: Role::None,
            claim: None,
            claims_differ: false,
            in_transaction: false,
            group: Common::default(),
            group_faults: ReasonSet::EMPTY,
            transaction: Transaction::default(),
            cover: false,
            count: None,
            control_sum: None,
            total: None,
            sum: Some(0),
            currency: None,
            settlement: None,
            class_conflict: false,
            faults: ReasonSet::EMPTY,
            payments: Vec::new(),
            times: Vec::new(),
            originals: Vec::new(),
            marks: Vec::new(),
            original: OriginalMessage::default(),
            original_messages: Vec::new(),
            requested: NO_REQUEST,
            requests: Vec::new(),
            report: RequestedReport::default(),
            reports: Vec::new(),
        }
    }

    /// The sender as far as it is known.
    pub(crate) fn sender(&self) -> Option<Bic> {
        self.context
            .sender
            .or_else(|| self.header.as_ref()?.from)
            .or(self.claim)
    }

    /// How many transactions, requests or reports were read to their ends.
    pub(crate) fn count_read(&self) -> usize {
        self.payments.len() + self.requests.len() + self.reports.len()
    }

    fn is_request(&self) -> bool {
        matches!(
            self.definition,
            Some((Definition::Status | Definition::Report, _))
        )
    }

    fn is(&self, definition: Definition) -> bool {
        self.definition.is_some_and(|(this, _)| this == definition)
    }

    /// Counts a fault for the message, the transaction being read, or (from the group header) every transaction.
    pub(crate) fn fault(
        &mut self,
        place: &dyn Place,
        reason: Reason,
        detail: impl Into<Cow<'static, str>>,
    ) {
        let level = reason.level();
        let payment = (self.in_transaction && level != clearspan_ledger::reason::Level::Message)
            .then(|| u32::try_from(self.payments.len()).unwrap_or(u32::MAX));
        let set = if level == clearspan_ledger::reason::Level::Message {
            &mut self.faults
        } else if self.in_transaction {
            &mut self.transaction.faults
        } else {
            &mut self.group_faults
        };
        set.insert(reason);
        self.mark(place, payment, reason, detail);
    }

    fn mark(
        &mut self,
        place: &dyn Place,
        payment: Option<u32>,
        reason: Reason,
        detail: impl Into<Cow<'static, str>>,
    ) {
        if self.marks.len() < self.limits.notes_max {
            self.marks.push(Mark {
                payment,
                reason,
                at: place.at(),
                path: place.path(),
                detail: detail.into(),
            });
        }
    }

    /// The business header begins.
    pub(crate) fn open_header(&mut self, version: u8) {
        self.header = Some(Header {
            version,
            ..Header::default()
        });
    }

    /// An element that means something begins.
    pub(crate) fn open(&mut self, field: Field, place: &dyn Place) -> Result<(), Stop> {
        match field {
            Field::HeaderFrom => self.role = Role::From,
            Field::HeaderTo => self.role = Role::To,
            Field::Assigner | Field::Instructing => self.role = Role::Claim,
            Field::Instructed => {
                self.role = Role::Instructed;
                self.common().instructed = Agent::Unnamed;
            }
            Field::Transaction | Field::Report => {
                if self.count_read() >= self.limits.payments_max {
                    return Err(Stop::new(
                        place.at(),
                        Reason::Syntax,
                        "more payments than one message may have",
                    ));
                }
                self.in_transaction = true;
                self.transaction = Transaction {
                    faults: self.group_faults,
                    ..Transaction::default()
                };
            }
            Field::Cover => self.cover = true,
            Field::GroupCancellation => {
                self.fault(
                    place,
                    Reason::MessageNotSupported,
                    "payments are cancelled one by one, not as a group",
                );
            }
            _ => {}
        }
        Ok(())
    }

    fn common(&mut self) -> &mut Common {
        if self.in_transaction {
            &mut self.transaction.common
        } else {
            &mut self.group
        }
    }

    /// The `Ccy` attribute of the amount that is being read.
    pub(crate) fn amount_currency(&mut self, code: Option<&[u8]>) {
        self.currency = Some(
            code.and_then(Currency::parse)
                .filter(|currency| currency.is_listed()),
        );
    }

    /// An element that means something ends; `text` is what it holds, where it holds text.
    pub(crate) fn close(&mut self, field: Field, text: &[u8], place: &dyn Place) {
        match field {
            Field::MessageId => self.message_id(text, place),
            Field::Count => {
                let count = std::str::from_utf8(text)
                    .ok()
                    .filter(|text| text.len() <= 15 && is_digits(text));
                self.count = Some(count.and_then(|text| text.parse().ok()));
                if self.count == Some(None) {
                    self.fault(place, Reason::CountMismatch, "not a number of payments");
                }
            }
            Field::ControlSum => {
                self.control_sum = Some(values::decimal5(text));
                if self.control_sum == Some(None) {
                    self.fault(place, Reason::ControlSumMismatch, "not a sum");
                }
            }
            Field::Total => {
                let currency = self.currency.take().flatten();
                let total = values::decimal5(text);
                self.total = Some((currency, total));
                if currency.is_none() || total.is_none() {
                    self.fault(
                        place,
                        Reason::TotalMismatch,
                        "not an amount of a listed currency",
                    );
                }
            }
            Field::Method => {
                if text != b"CLRG" {
                    self.fault(
                        place,
                        Reason::MessageNotSupported,
                        "only settlement by the clearing system (CLRG) is served",
                    );
                }
            }
            Field::GroupReturn => {
                if !matches!(text, b"false" | b"0") {
                    self.fault(
                        place,
                        Reason::MessageNotSupported,
                        "payments are returned one by one, not as a group",
                    );
                }
            }
            Field::Date => {
                let date = BusinessDate::parse(text);
                self.common().date = Some(date);
                if date.is_none() {
                    self.fault(place, Reason::DateInvalid, "not a date");
                }
            }
            Field::OriginalDate => {
                let date = BusinessDate::parse(text);
                self.transaction.common.date = Some(date);
                if date.is_none() {
                    self.fault(place, Reason::DateInvalid, "not a date");
                }
            }
            Field::InstructionPriority => self.code(text, &[b"HIGH", b"NORM"], place),
            Field::ChargeBearer => self.code(text, &[b"DEBT", b"CRED", b"SHAR", b"SLEV"], place),
            Field::Channel => {
                let channel = match text {
                    b"RTGS" => Some(Channel::Gross),
                    b"RTNS" | b"MPNS" => Some(Channel::Net),
                    b"BOOK" => Some(Channel::Book),
                    _ => None,
                };
                self.common().channel = channel;
                match channel {
                    None => self.fault(place, Reason::FieldInvalid, "not a clearing channel"),
                    Some(Channel::Book) => {
                        self.fault(
                            place,
                            Reason::MessageNotSupported,
                            "book transfers are not served",
                        );
                    }
                    Some(_) => {}
                }
            }
            Field::LocalInstrument => {
                if text == b"SOR" {
                    self.common().settle_or_refuse = true;
                }
            }
            Field::SettlementPriority => {
                self.transaction.priority = match text {
                    b"URGT" => Some(Class::Urgent),
                    b"HIGH" => Some(Class::High),
                    b"NORM" => Some(Class::Normal),
                    _ => None,
                };
                if self.transaction.priority.is_none() {
                    self.fault(place, Reason::FieldInvalid, "not a settlement priority");
                }
            }
            Field::ClsTime | Field::From | Field::Till | Field::Reject => {
                let time = values::time_of_day(text);
                if time.is_none() {
                    self.fault(place, Reason::FieldInvalid, "not a time with zone");
                }
                match field {
                    Field::From => self.transaction.times[0] = time,
                    Field::Till => self.transaction.times[1] = time,
                    Field::Reject => self.transaction.times[2] = time,
                    _ => {}
                }
            }
            Field::AgentBic => self.agent(Bic::parse(text), place),
            Field::HeaderFrom
            | Field::HeaderTo
            | Field::Assigner
            | Field::Instructing
            | Field::Instructed => {
                self.role = Role::None;
            }
            Field::InstructionId
            | Field::EndToEndId
            | Field::OriginalInstructionId
            | Field::OriginalEndToEndId => {
                self.id_len(text, place);
                self.request_text(field, text);
            }
            Field::TransactionId => {
                self.id_len(text, place);
                self.transaction.transaction = transaction_id(text);
            }
            Field::Uetr => self.transaction.uetr = self.uetr(text, place),
            Field::OriginalTransactionId => {
                self.id_len(text, place);
                self.transaction.original_transaction = transaction_id(text);
                self.request_text(field, text);
            }
            Field::OriginalUetr => {
                self.transaction.original_uetr = self.uetr(text, place);
                self.request_text(field, text);
            }
            Field::Amount | Field::OriginalAmount => self.amount(text, place),
            Field::ReasonCode => match values::code4(text) {
                Some(code) => {
                    self.transaction.reason.get_or_insert(code);
                }
                None => self.fault(place, Reason::FieldInvalid, "not a reason code"),
            },
            _ => self.close_other(field, text, place),
        }
    }

    // Business header and requests.
    fn close_other(&mut self, field: Field, text: &[u8], place: &dyn Place) {
        let owned = || String::from_utf8_lossy(text).into_owned();
        match field {
            Field::OriginalMessageId => self.original.message_id = owned(),
            Field::OriginalMessageName => self.original.message_name = owned(),
            Field::OriginalGroup => {
                let original = std::mem::take(&mut self.original);
                if self.in_transaction {
                    self.requested.original = Some(original);
                } else {
                    self.original_messages.push(original);
                }
            }
            Field::ReportName => self.report.message_name = owned(),
            Field::ReportCurrency => {
                self.report.currency =
                    Currency::parse(text).filter(|currency| currency.is_listed());
                if self.report.currency.is_none() {
                    self.fault(place, Reason::CurrencyInvalid, "not a listed currency");
                }
            }
            Field::ReportFromDate | Field::ReportToDate => {
                let date = BusinessDate::parse(text);
                if date.is_none() {
                    self.fault(place, Reason::FieldInvalid, "not a date");
                }
                if field == Field::ReportFromDate {
                    self.report.from_date = date;
                } else {
                    self.report.to_date = date;
                }
            }
            Field::ReportFromSequence | Field::ReportToSequence | Field::ReportEqual => {
                let number = std::str::from_utf8(text)
                    .ok()
                    .filter(|text| is_digits(text))
                    .and_then(|text| text.parse().ok());
                if number.is_none() {
                    self.fault(place, Reason::FieldInvalid, "not a sequence number");
                }
                match (field, self.report.sequences.last_mut()) {
                    // The second half of a range.
                    (Field::ReportToSequence, Some(range)) if range.1.is_none() => range.1 = number,
                    (Field::ReportToSequence, _) => self.report.sequences.push((None, number)),
                    (Field::ReportFromSequence, _) => self.report.sequences.push((number, None)),
                    _ => self.report.sequences.push((number, number)),
                }
            }
            _ => {
                let Some(header) = self.header.as_mut() else {
                    return;
                };
                match field {
                    Field::HeaderId => header.message_id = owned(),
                    Field::HeaderDefinition => header.definition = owned(),
                    Field::HeaderService => header.service = Some(owned()),
                    Field::HeaderCopy => header.copy = Some(owned()),
                    Field::HeaderPossibleDuplicate => {
                        header.possible_duplicate = matches!(text, b"true" | b"1")
                    }
                    _ => {}
                }
            }
        }
    }

    fn request_text(&mut self, field: Field, text: &[u8]) {
        if !self.is_request() {
            return;
        }
        let text = Some(String::from_utf8_lossy(text).into_owned());
        match field {
            Field::InstructionId if self.is(Definition::Report) => self.report.id = text,
            Field::InstructionId => self.requested.request_id = text,
            Field::OriginalInstructionId => self.requested.instruction = text,
            Field::OriginalEndToEndId => self.requested.end_to_end = text,
            Field::OriginalTransactionId => self.requested.transaction = text,
            Field::OriginalUetr => self.requested.uetr = text,
            _ => {}
        }
    }

    fn message_id(&mut self, text: &[u8], place: &dyn Place) {
        let text = String::from_utf8_lossy(text).into_owned();
        if text.is_empty() || Text::new(&text).is_none() {
            let mut stop = Stop::new(
                place.at(),
                Reason::MessageIdInvalid,
                "empty, or longer than 35 bytes",
            );
            stop.path = Some(place.path());
            self.fatal.get_or_insert(stop);
        }
        self.message_id = Some(text);
    }

    fn code(&mut self, text: &[u8], codes: &[&[u8]], place: &dyn Place) {
        if !codes.contains(&text) {
            self.fault(place, Reason::FieldInvalid, "not a code of this element");
        }
    }

    fn id_len(&mut self, text: &[u8], place: &dyn Place) {
        // Characters, not bytes: continuation bytes do not count.
        let characters = || text.iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
        if text.is_empty() || (text.len() > 35 && characters() > 35) {
            self.fault(
                place,
                Reason::IdInvalid,
                "empty, or longer than 35 characters",
            );
        }
    }

    fn uetr(&mut self, text: &[u8], place: &dyn Place) -> Option<PaymentId> {
        let uetr = PaymentId::parse_uetr(text);
        if uetr.is_none() {
            self.fault(
                place,
                Reason::IdInvalid,
                "not a lower-case UUID of version 4",
            );
            // It still tells the payment apart from the others.
            return transaction_id(text);
        }
        uetr
    }

    /// A legal entity identifier, wherever in the message it stands.
    pub(crate) fn entity(&mut self, text: &[u8], place: &dyn Place) {
        if !values::is_lei(text) {
            self.fault(
                place,
                Reason::FieldInvalid,
                "not a legal entity identifier with right check digits",
            );
        }
    }

    fn agent(&mut self, bic: Option<Bic>, place: &dyn Place) {
        match self.role {
            Role::From => {
                if let Some(header) = self.header.as_mut() {
                    header.from = bic;
                }
                match (bic, self.context.sender) {
                    (None, _) => self.fault(place, Reason::HeaderMismatch, "not a BIC"),
                    (Some(from), Some(sender)) if from != sender => {
                        self.fault(
                            place,
                            Reason::HeaderMismatch,
                            "not the participant that delivered the message",
                        );
                    }
                    _ => {}
                }
            }
            Role::To => {
                if let Some(header) = self.header.as_mut() {
                    header.to = bic;
                }
            }
            Role::Claim => match (bic, self.claim) {
                (None, _) => self.fault(place, Reason::SenderUnknown, "not a BIC"),
                (Some(bic), None) => {
                    self.claim = Some(bic);
                    let known = self.context.sender.or_else(|| self.header.as_ref()?.from);
                    if known.is_some_and(|known| known != bic) {
                        self.fault(
                            place,
                            Reason::SenderUnknown,
                            "not the sender of the message",
                        );
                    }
                }
                (Some(bic), Some(claim)) if bic != claim && !self.claims_differ => {
                    self.claims_differ = true;
                    self.fault(
                        place,
                        Reason::SenderUnknown,
                        "not the sender of the message",
                    );
                }
                _ => {}
            },
            Role::Instructed => {
                self.common().instructed = bic.map_or(Agent::Invalid, Agent::Named);
                if bic.is_none() {
                    self.fault(place, Reason::ReceiverInvalid, "not a BIC");
                }
            }
            Role::None => {}
        }
    }

    fn amount(&mut self, text: &[u8], place: &dyn Place) {
        let currency = self.currency.take().flatten();
        self.transaction.amount_seen = true;
        self.transaction.currency = currency;
        if currency.is_none() {
            self.fault(
                place,
                Reason::CurrencyInvalid,
                "no currency, or none that ISO 4217 lists",
            );
        }
        self.sum = match (self.sum, values::decimal5(text)) {
            (Some(sum), Some(amount)) => sum.checked_add(amount),
            _ => None,
        };
        // Without a currency only the spelling can be checked: five decimals are what the type allows.
        match parse_amount(text, currency.map_or(5, Currency::exponent)) {
            Ok(amount) if currency.is_none() => {
                if amount == AmountMinor::ZERO {
                    self.fault(place, Reason::AmountZero, "zero");
                }
            }
            Ok(amount) => {
                self.transaction.amount = Some(amount);
                if amount == AmountMinor::ZERO {
                    self.fault(place, Reason::AmountZero, "zero");
                } else if amount > self.context.amount_max {
                    self.fault(
                        place,
                        Reason::AmountTooLarge,
                        "above the largest amount of one payment",
                    );
                }
            }
            Err(AmountFault::Empty) => self.fault(place, Reason::AmountInvalid, "empty"),
            Err(AmountFault::NotANumber) => {
                self.fault(place, Reason::AmountInvalid, "not a number")
            }
            Err(AmountFault::TooManyDecimals) => {
                self.fault(
                    place,
                    Reason::DecimalsExceeded,
                    "more decimals than the currency has",
                );
            }
            Err(AmountFault::TooLarge) => {
                self.fault(place, Reason::AmountTooLarge, "more than 18 digits")
            }
        }
    }

    /// A transaction, request or report ends. `body` is where its bytes lie in the heap.
    pub(crate) fn close_transaction(
        &mut self,
        content_digest: u64,
        body: (u32, u32),
        place: &dyn Place,
    ) {
        match self.definition {
            Some((Definition::Status, _)) => {
                let transaction = &self.transaction;
                self.requested.id = transaction
                    .original_uetr
                    .or(transaction.original_transaction);
                self.requests
                    .push(std::mem::replace(&mut self.requested, NO_REQUEST));
            }
            Some((Definition::Report, _)) => self.reports.push(std::mem::take(&mut self.report)),
            Some((Definition::Cancellation, _)) => {
                self.close_cancellation(content_digest, body, place)
            }
            _ => self.close_payment(content_digest, body, place),
        }
        self.in_transaction = false;
    }

    fn place_in_message(&self) -> u32 {
        // Bounded by the limit on payments.
        u32::try_from(self.payments.len()).unwrap_or(u32::MAX)
    }

    fn close_cancellation(
        &mut self,
        content_digest: u64,
        (body_offset, body_len): (u32, u32),
        place: &dyn Place,
    ) {
        let id = self
            .transaction
            .original_uetr
            .or(self.transaction.original_transaction);
        let id = self.checked_id(id, place);
        if !self.transaction.amount_seen {
            self.sum = None;
        }
        let transaction = &self.transaction;
        self.originals.push((
            self.place_in_message(),
            OriginalPayment {
                id,
                reason: transaction.reason.unwrap_or(*b"    "),
            },
        ));
        self.payments.push(PaymentRecord {
            id,
            content_digest,
            amount: transaction.amount.unwrap_or(AmountMinor::ZERO),
            currency: transaction.currency.unwrap_or(Currency::NONE),
            receiver: None,
            date: transaction.common.date.flatten(),
            faults: transaction.faults,
            body_offset,
            body_len,
        });
    }

    fn checked_id(&mut self, id: Option<PaymentId>, place: &dyn Place) -> PaymentId {
        if id.is_none() {
            self.fault(
                place,
                Reason::IdMissing,
                "neither a UETR nor a transaction identifier",
            );
        }
        id.unwrap_or(PaymentId::Transaction(0))
    }

    fn close_payment(
        &mut self,
        content_digest: u64,
        (body_offset, body_len): (u32, u32),
        place: &dyn Place,
    ) {
        let number = self.place_in_message();
        let id = self.transaction.uetr.or(self.transaction.transaction);
        let id = self.checked_id(id, place);
        if self.is(Definition::Return) {
            let original = self
                .transaction
                .original_uetr
                .or(self.transaction.original_transaction);
            let original = self.checked_id(original, place);
            let reason = self.transaction.reason.unwrap_or(*b"    ");
            self.originals.push((
                number,
                OriginalPayment {
                    id: original,
                    reason,
                },
            ));
        }
        if !self.transaction.amount_seen {
            self.sum = None;
            self.fault(place, Reason::AmountInvalid, "no amount");
            self.fault(place, Reason::CurrencyInvalid, "no amount, so no currency");
        }
        let receiver = match self.transaction.common.instructed {
            Agent::Absent => self.group.instructed,
            agent => agent,
        };
        if matches!(receiver, Agent::Absent | Agent::Unnamed) {
            self.fault(
                place,
                Reason::ReceiverInvalid,
                "no instructed agent with a BIC",
            );
        }
        let date = self.date(place);
        self.settlement_of(place);
        self.settlement_times(number, date, place);
        let transaction = &self.transaction;
        self.payments.push(PaymentRecord {
            id,
            content_digest,
            amount: transaction.amount.unwrap_or(AmountMinor::ZERO),
            currency: transaction.currency.unwrap_or(Currency::NONE),
            receiver: receiver.bic(),
            date,
            faults: transaction.faults,
            body_offset,
            body_len,
        });
    }

    fn date(&mut self, place: &dyn Place) -> Option<BusinessDate> {
        match (self.group.date, self.transaction.common.date) {
            (None, None) => {
                self.fault(place, Reason::DateInvalid, "no settlement date");
                None
            }
            (Some(date), None) | (None, Some(date)) => date,
            (Some(group), Some(own)) => {
                if group != own {
                    self.fault(
                        place,
                        Reason::DateInvalid,
                        "another settlement date than the group header's",
                    );
                }
                own
            }
        }
    }

    // The decided mapping of channel and priority to how a payment settles; all of a message settle alike.
    fn settlement_of(&mut self, place: &dyn Place) {
        let own = self.transaction.common;
        let channel = own.channel.or(self.group.channel);
        let contradicts = own.channel.is_some()
            && self.group.channel.is_some()
            && own.channel != self.group.channel;
        let priority = self.transaction.priority;
        let pressing = matches!(priority, Some(Class::Urgent | Class::High));
        let gross = Settlement::Gross {
            class: priority.unwrap_or(Class::Normal),
            settle_or_refuse: own.settle_or_refuse || self.group.settle_or_refuse,
        };
        let settlement = match channel {
            _ if self.is(Definition::Return) => gross,
            Some(Channel::Gross) => gross,
            None if pressing => gross,
            _ => Settlement::Net,
        };
        let first = *self.settlement.get_or_insert(settlement);
        let conflict = if contradicts {
            "another clearing channel than the group header's"
        } else if channel == Some(Channel::Net) && pressing && settlement == Settlement::Net {
            "an urgent payment cannot be netted"
        } else if first != settlement {
            "payments of one message settle alike"
        } else {
            return;
        };
        if !self.class_conflict {
            self.class_conflict = true;
            self.fault(place, Reason::ClassConflict, conflict);
        }
    }

    fn settlement_times(&mut self, number: u32, date: Option<BusinessDate>, place: &dyn Place) {
        let times = self.transaction.times;
        if times == [None; 3] {
            return;
        }
        let [from, till, reject] = times;
        let after = |early: Option<i64>, late: Option<i64>| {
            early.zip(late).is_some_and(|(early, late)| early > late)
        };
        if after(from, till) || after(from, reject) || after(till, reject) {
            self.fault(place, Reason::TimesInvalid, "settlement times out of order");
        }
        let Some(date) = date else { return };
        let at = |time: Option<i64>| {
            let midnight = i128::from(date.days()) * 86_400_000_000_000;
            // Years after 2554 do not fit; such a date is refused as a future one.
            time.and_then(|time| u64::try_from(midnight + i128::from(time)).ok())
                .map(Timestamp::from_ns)
        };
        self.times.push((
            number,
            SettlementTimes {
                earliest: at(from),
                latest: at(till),
                reject: at(reject),
            },
        ));
    }

    /// The message is read: compares counts and sums, and hands everything over.
    pub(crate) fn finish(
        mut self,
        digest: u128,
        heap: Vec<u8>,
        end: &dyn Place,
    ) -> Result<(Incoming, Vec<Mark>), (Stop, Self)> {
        if self.message_id.is_none() {
            let stop = Stop::new(end.at(), Reason::MessageIdInvalid, "no message identifier");
            self.fatal.get_or_insert(stop);
        }
        let Some((definition, version)) = self.definition else {
            return Err((Stop::new(end.at(), Reason::Syntax, "no Document"), self));
        };
        if self
            .header
            .as_ref()
            .is_some_and(|header| header.from.is_none())
        {
            self.fault(
                end,
                Reason::HeaderMismatch,
                "the business header names no sender by BIC",
            );
        }
        if let Some(stop) = self.fatal.take() {
            return Err((stop, self));
        }
        let Some(sender) = self.sender() else {
            return Err((
                Stop::new(
                    end.at(),
                    Reason::SenderUnknown,
                    "nothing names the sender by BIC",
                ),
                self,
            ));
        };
        // The header may have come behind the document.
        let told = self.faults.bits() >> Reason::SenderUnknown.rank() & 1 != 0;
        if !told && self.claim.is_some_and(|claim| claim != sender) {
            self.fault(
                end,
                Reason::SenderUnknown,
                "the instructing agent is not the sender of the message",
            );
        }
        let message_id = self
            .message_id
            .as_deref()
            .and_then(Text::new)
            .unwrap_or(Text::EMPTY);
        if self.is_request() {
            // Of a request nothing is taken in, so its first fault refuses it.
            let faults = self
                .faults
                .union(self.group_faults)
                .union(self.transaction.faults);
            if let Some(reason) = self
                .marks
                .iter()
                .map(|mark| mark.reason)
                .min()
                .or_else(|| faults.first())
            {
                let at = self.marks.iter().position(|mark| mark.reason == reason);
                let mut stop = Stop::new(end.at(), reason, "refused");
                if let Some(mark) = at.map(|at| self.marks.swap_remove(at)) {
                    stop = Stop {
                        at: mark.at,
                        reason,
                        detail: mark.detail,
                        path: Some(mark.path),
                    };
                }
                return Err((stop, self));
            }
            let header = self.header;
            return Ok((
                if definition == Definition::Status {
                    Incoming::StatusRequest(StatusRequest {
                        version,
                        sender,
                        message_id,
                        originals: self.original_messages,
                        payments: self.requests,
                        header,
                    })
                } else {
                    Incoming::ReportRequest(ReportRequest {
                        version,
                        sender,
                        message_id,
                        reports: self.reports,
                        header,
                    })
                },
                self.marks,
            ));
        }
        self.compare_sums(end);
        self.find_duplicates(end);
        if self.payments.is_empty() && self.faults.is_empty() {
            self.fault(end, Reason::MessageNotSupported, "no payment in it");
        }
        let mut sequence = None;
        if (self.context.numbers_messages)(sender) {
            sequence = values::sequence_of(message_id.as_str());
            if sequence.is_none() {
                self.fault(
                    end,
                    Reason::SequenceMissing,
                    "no number behind the last - or / of the message identifier",
                );
            }
        }
        let kind = match definition {
            Definition::Customer => MessageKind::CustomerTransfer,
            Definition::Bank if self.cover => MessageKind::CoverTransfer,
            Definition::Bank => MessageKind::BankTransfer,
            Definition::Return => MessageKind::Return,
            _ => MessageKind::Cancellation,
        };
        let submission = Submission {
            kind,
            version,
            sender,
            message_id,
            digest,
            sequence,
            settlement: self.settlement.unwrap_or(Settlement::Net),
            faults: self.faults,
            payments: self.payments,
            times: self.times,
            originals: self.originals,
            heap: Bytes::from(heap),
        };
        let notes: Vec<Note> = Vec::new();
        Ok((
            Incoming::Submission(Submitted {
                submission,
                header: self.header,
                notes,
            }),
            self.marks,
        ))
    }

    fn compare_sums(&mut self, end: &dyn Place) {
        if let Some(Some(stated)) = self.count
            && u64::try_from(self.payments.len()) != Ok(stated)
        {
            self.fault(
                end,
                Reason::CountMismatch,
                format!("{stated} stated, {} found", self.payments.len()),
            );
        }
        // A sum that cannot be made is not compared: the payment without a readable amount is refused alone.
        let Some(sum) = self.sum else { return };
        if let Some(Some(stated)) = self.control_sum
            && stated != sum
        {
            self.fault(
                end,
                Reason::ControlSumMismatch,
                "the amounts sum to another number",
            );
        }
        if let Some((Some(currency), Some(stated))) = self.total {
            let other = self
                .payments
                .iter()
                .any(|payment| payment.currency != currency && payment.currency != Currency::NONE);
            if other || stated != sum {
                self.fault(
                    end,
                    Reason::TotalMismatch,
                    "the amounts sum to another number, or are of other currencies",
                );
            }
        }
    }

    fn find_duplicates(&mut self, end: &dyn Place) {
        let mut keys: Vec<(PaymentId, usize)> = Vec::with_capacity(self.payments.len());
        keys.extend(
            self.payments
                .iter()
                .enumerate()
                .map(|(at, payment)| (payment.id, at)),
        );
        keys.retain(|(id, _)| *id != PaymentId::Transaction(0));
        keys.sort_unstable();
        let receivers = !self.is(Definition::Cancellation);
        for pair in keys.windows(2) {
            let [(first, _), (second, at)] = *pair else {
                continue;
            };
            if first == second {
                self.payment_fault(
                    end,
                    at,
                    Reason::DuplicateInMessage,
                    "the identifier stands above already",
                );
            }
        }
        if let Some(sender) = self.sender().filter(|_| receivers) {
            for at in 0..self.payments.len() {
                if self.payments[at].receiver == Some(sender) {
                    self.payment_fault(
                        end,
                        at,
                        Reason::SameParticipant,
                        "the sender is the receiver",
                    );
                }
            }
        }
    }

    fn payment_fault(&mut self, end: &dyn Place, at: usize, reason: Reason, detail: &'static str) {
        if let Some(payment) = self.payments.get_mut(at) {
            payment.faults.insert(reason);
        }
        self.mark(end, u32::try_from(at).ok(), reason, detail);
    }

    /// After the header and the document: do they agree?
    pub(crate) fn compare_header(&mut self, message_name: &str, end: &dyn Place) {
        let differs = self
            .header
            .as_ref()
            .is_some_and(|header| header.definition != message_name);
        if differs {
            self.fault(
                end,
                Reason::HeaderMismatch,
                "MsgDefIdr is not the message that follows",
            );
        }
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn transaction_id(text: &[u8]) -> Option<PaymentId> {
    std::str::from_utf8(text)
        .ok()
        .map(PaymentId::of_transaction)
}
