//! What goes in and what comes out, in plain values: codes are texts, amounts are minor units, times are nanoseconds.

use std::collections::{BTreeMap, BTreeSet};

macro_rules! reasons {
    ($($name:ident)+) => {
        /// Why something was refused, or waits, by the names and in the order of `docs/reference/reasons.md`: of several
        /// that apply, the first is answered.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "docs/reference/reasons.md says what each means")]
        pub enum Reason { $($name,)+ }

        impl Reason {
            /// All, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// By its documented name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                match name { $(stringify!($name) => Some(Self::$name),)+ _ => None }
            }
        }
    };
}

reasons! {
    Syntax HeaderMismatch MessageIdInvalid MessageNotSupported SenderUnknown ClassConflict CountMismatch ControlSumMismatch
    TotalMismatch SequenceMissing SequenceUsed DayClosed MessageDuplicate IdMissing IdInvalid DuplicateInMessage FieldInvalid
    CurrencyInvalid CurrencyNotServed AmountInvalid DecimalsExceeded AmountZero AmountTooLarge ReceiverInvalid
    SameParticipant SenderAccountMissing ReceiverAccountMissing DateInvalid DateFuture TimesInvalid CutOffPassed
    RejectTimePassed PaymentKeyReused PaymentDuplicate InsufficientFunds EarliestTime QueuedBehind SettlementBroken
    OriginalUnknown InSettlement AlreadyEnded ReturnExceeds ReturnCurrency SequenceGap
}

/// A bank's account: one per currency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// The bank's code.
    pub bank: String,
    /// The currency's code.
    pub currency: String,
}

impl Holder {
    /// The account of a bank in a currency.
    #[must_use]
    pub fn new(bank: &str, currency: &str) -> Self {
        Self {
            bank: bank.to_owned(),
            currency: currency.to_owned(),
        }
    }
}

/// What a cluster agreed on for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The shard that this log belongs to.
    pub shard: usize,
    /// How many shards there are.
    pub shards: usize,
    /// For how many business days things stay known; fewer than two count as two.
    pub retention_days: usize,
    /// The largest amount of one payment.
    pub amount_max: u64,
    /// Credits of one cycle per document.
    pub page_len: u32,
    /// After how long a hole in a numbering is reported again.
    pub gap_timeout_ns: u64,
}

/// What can stand in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// The first entry.
    Found(Rules),
    /// An operator's act.
    Operate(Act),
    /// A cut-off of netting.
    OpenCycle,
    /// The running cycle is given up.
    AbandonCycle,
    /// A bank's message.
    Submit(Message),
    /// The operator gives up on missing numbers.
    Skip {
        /// Whose.
        bank: String,
        /// The number to go on with.
        next: u64,
    },
    /// A bank has stored its output up to a number.
    Acknowledge {
        /// Which.
        bank: String,
        /// The number.
        through: u64,
    },
    /// Letters of another shard.
    Deliver {
        /// The sending shard.
        from: usize,
        /// The number of the first.
        first: u64,
        /// The letters.
        letters: Vec<Letter>,
    },
    /// Another shard has letters up to a number.
    Delivered,
    /// Time passes.
    Tick,
    /// Something that moves no money and is judged elsewhere.
    Foreign,
}

/// An entry of a shard's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its position, from 1.
    pub index: u64,
    /// The proposing clock, in nanoseconds.
    pub time_ns: u64,
    /// What it says.
    pub op: Op,
}

/// An operator's act for the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Takes up a bank.
    AddBank(Terms),
    /// Opens an account.
    OpenAccount {
        /// Whose, in what.
        holder: Holder,
        /// How far below zero it may fall.
        line: u64,
        /// Whether ISO 4217 lists the currency.
        listed: bool,
    },
    /// Central-bank money.
    Fund {
        /// Names the movement.
        reference: String,
        /// The account.
        holder: Holder,
        /// How much.
        minor: u64,
    },
    /// Opens a business day, by its number of days since some first one.
    OpenDay(u32),
    /// No more of this kind today.
    CutOff(Kind),
    /// Ends the business day.
    CloseDay,
    /// An act that moves no money and is judged elsewhere; a text by which two are told apart.
    Foreign(String),
}

/// A bank as the operator takes it up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Its code.
    pub bank: String,
    /// Its home shard.
    pub home: usize,
    /// Whether its messages are numbered.
    pub numbered: bool,
    /// Whether one bad payment refuses its whole message.
    pub whole: bool,
    /// Whether netting drops its packages whole.
    pub by_package: bool,
    /// The length of its name in bytes.
    pub name_len: usize,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// pacs.008
    CustomerTransfer,
    /// pacs.009
    BankTransfer,
    /// pacs.009 COV
    CoverTransfer,
    /// pacs.004
    Return,
    /// camt.056
    Cancellation,
}

/// The class of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// First.
    Urgent,
    /// Second.
    High,
    /// Last.
    Normal,
}

/// A bank's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its kind.
    pub kind: Kind,
    /// Who sent it.
    pub bank: String,
    /// Its identifier.
    pub id: String,
    /// Hash of its content.
    pub digest: u128,
    /// Its number, where its sender numbers.
    pub sequence: Option<u64>,
    /// Class and settle-or-refuse when it settles gross.
    pub gross: Option<(Class, bool)>,
    /// What a gateway found.
    pub faults: BTreeSet<Reason>,
    /// The payments, or requests.
    pub payments: Vec<Asked>,
    /// What it weighs while it is held.
    pub bytes: u64,
}

/// One payment or request of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its key.
    pub key: String,
    /// Hash of its content.
    pub content: u64,
    /// Amount.
    pub minor: u64,
    /// Currency.
    pub currency: String,
    /// Whether ISO 4217 lists it.
    pub listed: bool,
    /// Who is paid.
    pub to: Option<String>,
    /// The business date asked for.
    pub date: Option<u32>,
    /// What a gateway found.
    pub faults: BTreeSet<Reason>,
    /// When it may, should and must settle.
    pub times: Times,
    /// The key of the original that a return names.
    pub original: Option<String>,
}

/// When a payment may, should and must settle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Not before.
    pub earliest: Option<u64>,
    /// A warning then.
    pub latest: Option<u64>,
    /// Refused then.
    pub reject: Option<u64>,
}

/// What an entry is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Done.
    Done,
    /// Taken in.
    Taken {
        /// Message number.
        message: u64,
        /// Output number of the answer.
        answer: u64,
        /// Payments accepted.
        accepted: u64,
        /// Payments refused.
        refused: u64,
    },
    /// Taken in before.
    Repeat {
        /// Message number.
        message: u64,
        /// Output number of the answer.
        answer: u64,
    },
    /// Waits for missing numbers.
    Held {
        /// Output number of the notice; zero when it waited before.
        answer: u64,
        /// First missing.
        missing_from: u64,
        /// Last missing.
        missing_through: u64,
    },
    /// Nothing stored.
    NotTaken(Reason),
    /// Nothing stored: too many wait.
    HeldFull {
        /// First missing.
        missing_from: u64,
    },
    /// Nothing stored: another shard's bank.
    NotHome(usize),
    /// An act was refused; the refusal's name.
    Refused(String),
    /// Judged elsewhere.
    Foreign,
}

/// Everything that an entry's proposer is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The reply.
    pub reply: Reply,
    /// Numbers and identifiers of messages that waited and were taken in.
    pub released: Vec<(u64, String)>,
}

/// Amount and count.
pub type Sum = (u128, u64);

/// What a bank pays and receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Pays.
    pub out: Sum,
    /// Receives.
    pub into: Sum,
}

/// A message between shards. Lists of accounts are maps: their order says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Letter {
    /// An operator's act.
    Act(Act),
    /// The credit half of a payment.
    Credit(Advice),
    /// Fix the set.
    Cut {
        /// The cycle.
        cycle: u32,
    },
    /// The set's sums.
    CutSums {
        /// The cycle.
        cycle: u32,
        /// Where the cut stands.
        cut: u64,
        /// Who pays and receives what.
        sums: BTreeMap<Holder, Flow>,
    },
    /// Reserve.
    Reserve {
        /// The cycle.
        cycle: u32,
        /// The round.
        round: u32,
        /// What accounts of the shard would receive.
        incoming: BTreeMap<Holder, Sum>,
    },
    /// Reserved.
    Reserved {
        /// The cycle.
        cycle: u32,
        /// The round.
        round: u32,
        /// What was there.
        available: BTreeMap<Holder, i128>,
        /// What was dropped.
        drops: BTreeMap<Holder, Dropped>,
        /// By how much others receive less.
        reductions: BTreeMap<Holder, Sum>,
    },
    /// Decided.
    Decide {
        /// The cycle.
        cycle: u32,
        /// Where.
        decided: u64,
    },
    /// Posted.
    Posted {
        /// The cycle.
        cycle: u32,
        /// Where.
        posted: u64,
        /// Each account's part.
        results: BTreeMap<Holder, NetResult>,
    },
    /// Ended.
    End {
        /// The cycle.
        cycle: u32,
        /// Whether it was given up.
        abandoned: bool,
    },
    /// What settled payments bring to accounts of the receiving shard.
    CycleCredits {
        /// The cycle.
        cycle: u32,
        /// By account.
        credits: BTreeMap<Holder, Sum>,
    },
    /// A return's claim.
    Claim {
        /// The return.
        claim: u64,
        /// Who returns.
        returner: String,
        /// The original's sender.
        payer: String,
        /// The original's key.
        original: String,
        /// How much.
        minor: u64,
        /// In what.
        currency: String,
    },
    /// A claim's answer: the original, or why not.
    Verdict {
        /// The return.
        claim: u64,
        /// Shard and payment of the original.
        verdict: Result<(usize, u64), Reason>,
    },
    /// A claim is given back.
    Released {
        /// Shard and payment of the original.
        original: (usize, u64),
        /// How much.
        minor: u64,
    },
    /// A recall.
    Recall(Recall),
    /// The day ended there.
    DayEnd(u32),
    /// Statements are formed there.
    DayClosed(u32),
}

/// The credit half of a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// Shard and payment.
    pub payment: (usize, u64),
    /// Its message, in that shard.
    pub message: u64,
    /// Who pays.
    pub sender: String,
    /// The account credited.
    pub to: Holder,
    /// How much.
    pub minor: u64,
}

/// A recall on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recall {
    /// Shard and payment.
    pub original: (usize, u64),
    /// Who asks.
    pub sender: String,
    /// Who is asked.
    pub receiver: String,
    /// The request's message.
    pub request: u64,
    /// Its place in it.
    pub position: u32,
}

/// What an account gave up for want of funds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The round.
    pub round: u32,
    /// What was available.
    pub available: i128,
    /// What it would have paid.
    pub out: u128,
    /// What it would have received.
    pub into: u128,
    /// What it gave up.
    pub gone: Sum,
}

/// One account's result of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetResult {
    /// Before.
    pub opening: i128,
    /// Paid and received.
    pub flow: Flow,
    /// After.
    pub closing: i128,
    /// The credit line.
    pub line: u64,
    /// In the set and not settled.
    pub dropped: Sum,
}

/// One position of a bank's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// First number.
    pub number: u64,
    /// How many numbers.
    pub pages: u64,
    /// Log position.
    pub index: u64,
    /// Log time.
    pub time_ns: u64,
    /// What it says.
    pub body: Body,
}

/// What an item says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "docs/adr/0015 and docs/operate.md say what a participant is told"
)]
pub enum Body {
    Reception {
        message: u64,
    },
    Gap {
        message_id: String,
        missing_from: u64,
        missing_through: u64,
    },
    Gross {
        payment: u64,
        event: Event,
    },
    GrossCredit(Advice),
    Funded {
        reference: String,
        currency: String,
        minor: u64,
    },
    Netted {
        cycle: u32,
        message: u64,
        settled: u64,
        dropped: u64,
    },
    NetResult {
        cycle: u32,
    },
    NetCredits {
        cycle: u32,
        from: usize,
        currency: String,
        sum: Sum,
    },
    CancellationAnswer {
        message: u64,
    },
    RecallRequest {
        from: usize,
        recall: Recall,
    },
    Ended {
        message: u64,
    },
    Statement(Statement),
}

/// What became of a gross payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Settled.
    Settled,
    /// Waits, for this.
    Queued(Reason),
    /// Still waits.
    Warned,
    /// Refused, for this.
    Refused(Reason),
    /// Cancelled.
    Cancelled,
}

/// One account over one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// From 1 per account.
    pub sequence: u64,
    /// The business date.
    pub date: u32,
    /// Currency.
    pub currency: String,
    /// Before the day.
    pub opening: i128,
    /// Paid.
    pub debits: u128,
    /// Received.
    pub credits: u128,
    /// After the day.
    pub closing: i128,
    /// First output number of the day.
    pub first_number: u64,
    /// The number after the last before the statements.
    pub end_number: u64,
}

/// Where a payment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// When it was taken in.
    Refused,
    /// Waits for a cycle.
    Netting,
    /// Final.
    Settled,
    /// Waits for funds, its turn or its time.
    Queued,
    /// Refused later.
    Ended,
    /// By its sender.
    Cancelled,
    /// A return that waits to be granted.
    Claiming,
}

/// What a request to cancel came to, and which payment it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// The payment found.
    pub payment: Option<u64>,
    /// What became of the request.
    pub outcome: CancelOutcome,
}

/// What became of a request to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelOutcome {
    /// It waited and is cancelled.
    Cancelled,
    /// It was final; its receiver is asked.
    Recalled,
    /// No.
    Refused(Reason),
}

/// A payment as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its key.
    pub key: String,
    /// Its message.
    pub message: u64,
    /// Where it stands.
    pub status: Status,
    /// Why.
    pub reason: Option<Reason>,
    /// How much of it came back.
    pub returned: u64,
}

/// A shard's state, as far as it is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// Balances, and what is set aside.
    pub accounts: BTreeMap<Holder, (i128, i128)>,
    /// Payments within retention, by number.
    pub payments: BTreeMap<u64, Shown>,
    /// Answers to requests to cancel, by message, within retention.
    pub cancels: BTreeMap<u64, Vec<Cancel>>,
    /// Output of the shard's banks.
    pub outputs: BTreeMap<String, Output>,
}

/// A bank's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The number that comes next.
    pub next: u64,
    /// The highest number that the bank says it has.
    pub acknowledged: u64,
    /// What is kept.
    pub items: Vec<Item>,
}
