//! What the read elements say, put together: values checked, sums made, records built.

use std::borrow::Cow;

use clearspan_ledger::message::{
    Class, OriginalPayment, PaymentRecord, Settlement, SettlementTimes,
};
use clearspan_ledger::reason::Level;
use clearspan_ledger::{AmountMinor, Bic, BusinessDate, Currency, PaymentId, Reason, ReasonSet};

use super::shape::{Definition, Field};
use super::{
    Context, Header, Incoming, Limits, OriginalMessage, ReportRequest, RequestedPayment,
    RequestedReport, StatusRequest, Submitted, values,
};

mod finish;
mod payment;
mod request;
mod value;

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

/// A place that is kept.
#[derive(Clone, Debug)]
struct Spot {
    at: usize,
    path: String,
}

impl Spot {
    fn new(place: &dyn Place) -> Self {
        Self {
            at: place.at(),
            path: place.path(),
        }
    }
}

impl Place for Spot {
    fn at(&self) -> usize {
        self.at
    }

    fn path(&self) -> String {
        self.path.clone()
    }
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
    // Where the elements stood that are compared at the end.
    spots: Vec<(Field, Spot)>,
    // Where the payments begin, and the path of all of them.
    starts: Vec<usize>,
    transactions_path: String,
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
            spots: Vec::new(),
            starts: Vec::new(),
            transactions_path: String::new(),
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
        let payment = (self.in_transaction && level != Level::Message)
            .then(|| u32::try_from(self.payments.len()).unwrap_or(u32::MAX));
        let set = if level == Level::Message {
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
        // One is kept whatever the limit: it is what refuses a request.
        if self.marks.len() < self.limits.notes_max.max(1) {
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
        if matches!(
            field,
            Field::Count | Field::ControlSum | Field::Total | Field::HeaderDefinition
        ) {
            self.spots.push((field, Spot::new(place)));
        }
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
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn transaction_id(text: &[u8]) -> Option<PaymentId> {
    std::str::from_utf8(text)
        .ok()
        .map(PaymentId::of_transaction)
}
