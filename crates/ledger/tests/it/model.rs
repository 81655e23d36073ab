//! A slow model of the whole, written from the rules alone: lists, loops, no channels. Random histories go through it and
//! through a cluster, and every reply, every payment's state, every balance and the length of every output must agree.
//!
//! The cluster is quiet between two commands. What depends on when a credit arrives from another shard within one command
//! (several gross payments at once, several requests at once, timers, held messages) is drawn on one shard only.

use std::collections::{BTreeMap, BTreeSet};

use clearspan_ledger::day::PaymentStatus as Status;
use clearspan_ledger::directory::{AccountTerms, NetUnit, ParticipantTerms};
use clearspan_ledger::entry::{AdminCommand, Command, CycleCommand, Genesis};
use clearspan_ledger::message::{
    Class, MessageKind, OriginalPayment, PaymentRecord, Settlement, SettlementTimes, Submission,
};
use clearspan_ledger::{
    AmountMinor, Bic, Currency, MessageNo, PaymentId, PaymentNo, Reason, ReasonSet, Reply, ShardId,
    Text, Timestamp,
};

use crate::cluster::{Cluster, START_NS, genesis};
use crate::make::{NAMES, cancellation, date, message};
use crate::rng::Rng;
use crate::script::{amount, bic, currency};

const AMOUNT_MAX: u64 = 40;
const PAGE: u64 = 2;

#[derive(Clone, Debug)]
struct Bank {
    bic: Bic,
    home: ShardId,
    numbered: bool,
    whole: bool,
    unit: NetUnit,
    /// Balance and credit line.
    accounts: BTreeMap<Currency, (i128, i128)>,
    /// Numbers put out so far.
    output: u64,
    next_sequence: u64,
    held: BTreeMap<u64, Submission>,
}

#[derive(Clone, Debug)]
struct Message {
    sender: usize,
    id: Text,
    digest: u128,
    day: u32,
    number: u64,
    answer: u64,
}

#[derive(Clone, Debug)]
struct Payment {
    number: u64,
    message: usize,
    day: u32,
    sender: usize,
    receiver: Option<usize>,
    currency: Currency,
    minor: i128,
    id: PaymentId,
    content: u64,
    class: Class,
    or_refuse: bool,
    times: SettlementTimes,
    /// Stands in the queue, rather than waiting for its time.
    eligible: bool,
    status: Status,
    reason: Option<Reason>,
    /// Was in the set of a settled cycle.
    was_in_cycle: bool,
    /// The original that a return has claimed.
    claimed: Option<usize>,
    returned: i128,
}

struct Model {
    banks: Vec<Bank>,
    messages: Vec<Message>,
    payments: Vec<Payment>,
    next_message: Vec<u64>,
    next_payment: Vec<u64>,
    day: u32,
    open: bool,
    cut_off: BTreeSet<MessageKind>,
    now: Timestamp,
    /// Returns that wait for their verdict, which comes after the entry, and the originals that they name.
    claims: Vec<(usize, PaymentId)>,
}

impl Model {
    fn bank(&self, bic: Bic) -> Option<usize> {
        self.banks.iter().position(|bank| bank.bic == bic)
    }

    fn emit(&mut self, bank: usize, pages: u64) -> u64 {
        let number = self.banks[bank].output + 1;
        self.banks[bank].output += pages;
        number
    }

    fn available(&self, bank: usize, currency: Currency) -> i128 {
        let (balance, line) = self.banks[bank].accounts[&currency];
        balance + line
    }

    fn add(&mut self, bank: usize, currency: Currency, minor: i128) {
        let account = self.banks[bank].accounts.get_mut(&currency);
        account.expect("an account").0 += minor;
    }

    // ---- reception ----

    fn submit(&mut self, submission: &Submission) -> Reply {
        let Some(sender) = self.bank(submission.sender) else {
            return Reply::NotTaken {
                reason: Reason::SenderUnknown,
            };
        };
        let same = self.messages.iter().rev().find(|message| {
            message.sender == sender
                && message.id == submission.message_id
                && message.digest == submission.digest
        });
        if let Some(message) = same {
            return Reply::Repeat {
                message: MessageNo::new(message.number),
                answer: message.answer,
            };
        }
        let bank = &self.banks[sender];
        let next = bank.next_sequence;
        let first_held = bank.held.keys().next().copied();
        let waits = submission
            .sequence
            .and_then(|number| bank.held.get(&number))
            .is_some_and(|held| {
                held.message_id == submission.message_id && held.digest == submission.digest
            });
        if waits {
            return Reply::Held {
                answer: 0,
                missing_from: next,
                missing_through: first_held.map_or(0, |first| first - 1),
            };
        }
        if !self.open {
            return Reply::NotTaken {
                reason: Reason::DayClosed,
            };
        }
        if !bank.numbered {
            return self.take_in(sender, submission, None);
        }
        match submission.sequence {
            None => self.take_in(sender, submission, Some(Reason::SequenceMissing)),
            Some(number) if number < next || bank.held.contains_key(&number) => {
                self.take_in(sender, submission, Some(Reason::SequenceUsed))
            }
            Some(number) if number > next => {
                let held = &mut self.banks[sender].held;
                held.insert(number, submission.clone());
                let first = held.keys().next().copied().unwrap_or(number);
                Reply::Held {
                    answer: self.emit(sender, 1),
                    missing_from: next,
                    missing_through: first - 1,
                }
            }
            Some(_) => {
                self.banks[sender].next_sequence += 1;
                let reply = self.take_in(sender, submission, None);
                self.take_held(sender);
                reply
            }
        }
    }

    fn take_held(&mut self, sender: usize) {
        loop {
            let next = self.banks[sender].next_sequence;
            let Some(submission) = self.banks[sender].held.remove(&next) else {
                return;
            };
            self.banks[sender].next_sequence += 1;
            self.take_in(sender, &submission, None);
        }
    }

    fn take_in(&mut self, sender: usize, submission: &Submission, fault: Option<Reason>) -> Reply {
        let used = self.messages.iter().any(|message| {
            message.sender == sender
                && message.id == submission.message_id
                && message.day == self.day
        });
        let mut refused = fault.or(used.then_some(Reason::MessageDuplicate));
        let records = &submission.payments;
        if refused.is_none()
            && self.banks[sender].whole
            && submission.kind != MessageKind::Cancellation
        {
            let mut faults: Vec<Reason> = Vec::new();
            for (at, record) in records.iter().enumerate() {
                faults.extend(self.faults(sender, submission.kind, record));
                if records[..at].iter().any(|earlier| earlier.id == record.id) {
                    faults.push(Reason::DuplicateInMessage);
                }
            }
            refused = faults.into_iter().min();
        }
        let home = self.banks[sender].home.index();
        let number = self.next_message[home];
        self.next_message[home] += 1;
        let at = self.messages.len();
        self.messages.push(Message {
            sender,
            id: submission.message_id,
            digest: submission.digest,
            day: self.day,
            number,
            answer: 0,
        });
        let count = u32::try_from(records.len()).expect("few");
        let (answer, refused) = if refused.is_some() {
            (self.emit(sender, 1), count)
        } else if submission.kind == MessageKind::Cancellation {
            let refused = (0..records.len())
                .filter(|&position| !self.cancel(sender, &records[position]))
                .count();
            (self.emit(sender, 1), u32::try_from(refused).expect("few"))
        } else {
            self.take_payments(sender, at, submission)
        };
        self.messages[at].answer = answer;
        Reply::Taken {
            message: MessageNo::new(number),
            answer,
            accepted: count - refused,
            refused,
        }
    }

    /// All that is wrong with a payment, message-internal repetition aside.
    fn faults(&self, sender: usize, kind: MessageKind, record: &PaymentRecord) -> Vec<Reason> {
        let mut faults = Vec::new();
        let anywhere = self
            .banks
            .iter()
            .any(|bank| bank.accounts.contains_key(&record.currency));
        if !record.currency.is_listed() {
            faults.push(Reason::CurrencyInvalid);
        } else if !anywhere {
            faults.push(Reason::CurrencyNotServed);
        } else if !self.banks[sender].accounts.contains_key(&record.currency) {
            faults.push(Reason::SenderAccountMissing);
        }
        if record.amount.minor() == 0 {
            faults.push(Reason::AmountZero);
        }
        if record.amount.minor() > AMOUNT_MAX {
            faults.push(Reason::AmountTooLarge);
        }
        match record.receiver.and_then(|bic| self.bank(bic)) {
            None => faults.push(Reason::ReceiverInvalid),
            Some(receiver) if receiver == sender => faults.push(Reason::SameParticipant),
            Some(receiver) => {
                if anywhere && !self.banks[receiver].accounts.contains_key(&record.currency) {
                    faults.push(Reason::ReceiverAccountMissing);
                }
            }
        }
        match record.date {
            Some(day) if day > date(self.day) => faults.push(Reason::DateFuture),
            Some(day) if day == date(self.day) => {}
            _ => faults.push(Reason::DateInvalid),
        }
        if self.cut_off.contains(&kind) {
            faults.push(Reason::CutOffPassed);
        }
        let earlier = self.payments.iter().find(|payment| {
            payment.sender == sender
                && payment.day == self.day
                && payment.id == record.id
                && payment.status != Status::Refused
        });
        if let Some(earlier) = earlier {
            faults.push(if earlier.content == record.content_digest {
                Reason::PaymentDuplicate
            } else {
                Reason::PaymentKeyReused
            });
        }
        faults
    }

    fn take_payments(
        &mut self,
        sender: usize,
        message: usize,
        submission: &Submission,
    ) -> (u64, u32) {
        let home = self.banks[sender].home.index();
        let (class, or_refuse) = match submission.settlement {
            Settlement::Gross {
                class,
                settle_or_refuse,
            } => (class, settle_or_refuse),
            Settlement::Net => (Class::Normal, false),
        };
        let returns = submission.kind == MessageKind::Return;
        let gross = returns || submission.settlement != Settlement::Net;
        let first = self.payments.len();
        let mut refused = 0;
        for (at, record) in (0..).zip(&submission.payments) {
            let mut faults = self.faults(sender, submission.kind, record);
            let repeated = self.payments[first..]
                .iter()
                .any(|payment| payment.id == record.id && payment.status != Status::Refused);
            if repeated {
                // It is its own message's payment that stands in the way, not one of before.
                faults.retain(|&reason| {
                    reason != Reason::PaymentDuplicate && reason != Reason::PaymentKeyReused
                });
                faults.push(Reason::DuplicateInMessage);
            }
            let reason = faults.into_iter().min();
            refused += u32::from(reason.is_some());
            let times = submission.times.iter().find(|(place, _)| *place == at);
            let number = self.next_payment[home];
            self.next_payment[home] += 1;
            self.payments.push(Payment {
                number,
                message,
                day: self.day,
                sender,
                receiver: record.receiver.and_then(|bic| self.bank(bic)),
                currency: record.currency,
                minor: record.amount.signed(),
                id: record.id,
                content: record.content_digest,
                class,
                or_refuse,
                times: times.map_or_else(SettlementTimes::default, |(_, times)| *times),
                eligible: false,
                status: match (reason, gross) {
                    (Some(_), _) => Status::Refused,
                    (None, true) => Status::Claiming,
                    (None, false) => Status::Netting,
                },
                reason,
                was_in_cycle: false,
                claimed: None,
                returned: 0,
            });
        }
        let single = gross && !returns && submission.payments.len() == 1 && refused == 0;
        let mut answer = if single { 0 } else { self.emit(sender, 1) };
        if gross {
            for at in first..self.payments.len() {
                if self.payments[at].status == Status::Refused {
                    continue;
                }
                if returns {
                    let position = u32::try_from(at - first).expect("few");
                    let original = submission
                        .originals
                        .iter()
                        .find(|(place, _)| *place == position)
                        .map(|(_, original)| original.id);
                    match original {
                        Some(id) => self.claims.push((at, id)),
                        None => {
                            self.end(at, Reason::OriginalUnknown);
                        }
                    }
                } else {
                    let told = self.enter(at);
                    if single {
                        answer = told;
                    }
                }
            }
        }
        (answer, refused)
    }

    // ---- gross settlement ----

    fn enter(&mut self, at: usize) -> u64 {
        let sender = self.payments[at].sender;
        let times = self.payments[at].times;
        if times.reject.is_some_and(|reject| reject <= self.now) {
            return self.end(at, Reason::RejectTimePassed);
        }
        self.payments[at].status = Status::Queued;
        if times.latest.is_some_and(|latest| latest <= self.now) {
            // Nobody is warned of what was over when the payment came.
            self.payments[at].times.latest = None;
        }
        if times.earliest.is_some_and(|earliest| earliest <= self.now) {
            self.payments[at].times.earliest = None;
        }
        if times.earliest.is_some_and(|earliest| earliest > self.now) {
            return self.emit(sender, 1);
        }
        match self.obstacle(at) {
            None => {
                let told = self.settle(at);
                self.release();
                told
            }
            Some(reason) if self.payments[at].or_refuse => self.end(at, reason),
            Some(_) => {
                self.payments[at].eligible = true;
                self.emit(sender, 1)
            }
        }
    }

    fn obstacle(&self, at: usize) -> Option<Reason> {
        let mine = &self.payments[at];
        let before = self.payments.iter().enumerate().any(|(other, payment)| {
            other != at
                && payment.sender == mine.sender
                && payment.currency == mine.currency
                && payment.status == Status::Queued
                && payment.eligible
                && (payment.class, other) < (mine.class, at)
        });
        if before {
            Some(Reason::QueuedBehind)
        } else if self.available(mine.sender, mine.currency) < mine.minor {
            Some(Reason::InsufficientFunds)
        } else {
            None
        }
    }

    fn settle(&mut self, at: usize) -> u64 {
        let payment = &mut self.payments[at];
        payment.status = Status::Settled;
        payment.eligible = false;
        let (sender, currency, minor) = (payment.sender, payment.currency, payment.minor);
        let receiver = payment.receiver.expect("accepted");
        self.add(sender, currency, -minor);
        self.add(receiver, currency, minor);
        let told = self.emit(sender, 1);
        self.emit(receiver, 1);
        told
    }

    fn release(&mut self) {
        while let Some(at) = (0..self.payments.len()).find(|&at| {
            self.payments[at].status == Status::Queued
                && self.payments[at].eligible
                && self.obstacle(at).is_none()
        }) {
            self.settle(at);
        }
    }

    fn end(&mut self, at: usize, reason: Reason) -> u64 {
        self.payments[at].status = Status::Ended;
        self.payments[at].reason = Some(reason);
        self.payments[at].eligible = false;
        self.give_back(at);
        self.emit(self.payments[at].sender, 1)
    }

    fn give_back(&mut self, at: usize) {
        let minor = self.payments[at].minor;
        if let Some(original) = self.payments[at].claimed.take() {
            self.payments[original].returned -= minor;
        }
    }

    fn advance(&mut self, now: Timestamp) {
        self.now = now;
        loop {
            // The earliest of all times that have come, each used once.
            let mut due: Vec<(Timestamp, u8, usize)> = Vec::new();
            for (at, payment) in self.payments.iter().enumerate() {
                if payment.status != Status::Queued {
                    continue;
                }
                let times = payment.times;
                let all = [(0, times.earliest), (1, times.latest), (2, times.reject)];
                for (kind, time) in all {
                    if let Some(time) = time.filter(|&time| time <= now) {
                        due.push((time, kind, at));
                    }
                }
            }
            let Some((_, kind, at)) = due.into_iter().min() else {
                return;
            };
            let sender = self.payments[at].sender;
            match kind {
                0 => {
                    self.payments[at].times.earliest = None;
                    match self.obstacle(at) {
                        Some(reason) if self.payments[at].or_refuse => {
                            self.end(at, reason);
                        }
                        obstacle => {
                            self.payments[at].eligible = true;
                            if obstacle.is_some() {
                                self.emit(sender, 1);
                            }
                            self.release();
                        }
                    }
                }
                1 => {
                    self.payments[at].times.latest = None;
                    self.emit(sender, 1);
                }
                _ => {
                    let reason = if self.payments[at].eligible {
                        Reason::InsufficientFunds
                    } else {
                        Reason::RejectTimePassed
                    };
                    self.end(at, reason);
                    self.release();
                }
            }
        }
    }

    // ---- cancellation and returns ----

    fn find(&self, sender: usize, id: PaymentId) -> Option<usize> {
        let of = |accepted: bool, day: u32| {
            (0..self.payments.len()).rfind(|&at| {
                let payment = &self.payments[at];
                payment.sender == sender
                    && payment.id == id
                    && payment.day == day
                    && (payment.status != Status::Refused) == accepted
            })
        };
        // An accepted payment of any day before a refused one of any day.
        let newest = |accepted: bool| (0..=self.day).rev().find_map(|day| of(accepted, day));
        newest(true).or_else(|| newest(false))
    }

    /// Whether a request to cancel does anything.
    fn cancel(&mut self, sender: usize, record: &PaymentRecord) -> bool {
        if self.cut_off.contains(&MessageKind::Cancellation) {
            return false;
        }
        let Some(at) = self.find(sender, record.id) else {
            return false;
        };
        match self.payments[at].status {
            Status::Queued => {
                self.payments[at].status = Status::Cancelled;
                self.payments[at].eligible = false;
                self.give_back(at);
                self.emit(sender, 1);
                self.release();
                true
            }
            Status::Netting => {
                self.payments[at].status = Status::Cancelled;
                true
            }
            Status::Settled => {
                let receiver = self.payments[at].receiver.expect("accepted");
                self.emit(receiver, 1);
                true
            }
            _ => false,
        }
    }

    /// Everything in transit arrives.
    fn pump(&mut self) {
        for (at, original) in std::mem::take(&mut self.claims) {
            self.claim(at, original);
        }
    }

    fn claim(&mut self, at: usize, original: PaymentId) {
        let mine = self.payments[at].clone();
        let payer = mine.receiver.expect("accepted");
        let found = self.find(payer, original);
        let judged = match found.map(|found| (found, &self.payments[found])) {
            Some((found, original))
                if original.status == Status::Settled && original.receiver == Some(mine.sender) =>
            {
                if original.currency != mine.currency {
                    Err(Reason::ReturnCurrency)
                } else if original.returned == original.minor {
                    Err(Reason::AlreadyEnded)
                } else if original.returned + mine.minor > original.minor {
                    Err(Reason::ReturnExceeds)
                } else {
                    Ok(found)
                }
            }
            _ => Err(Reason::OriginalUnknown),
        };
        match judged {
            Ok(found) => {
                self.payments[found].returned += mine.minor;
                self.payments[at].claimed = Some(found);
                self.payments[at].or_refuse = false;
                self.payments[at].times = SettlementTimes::default();
                self.enter(at);
            }
            Err(reason) => {
                self.end(at, reason);
            }
        }
    }

    // ---- netting ----

    fn cycle(&mut self) {
        let set: Vec<usize> = (0..self.payments.len())
            .filter(|&at| self.payments[at].status == Status::Netting)
            .collect();
        let mut taken: BTreeSet<usize> = set.iter().copied().collect();
        // One payer after the other gives up its last unit until all can pay.
        'dropping: loop {
            for bank in 0..self.banks.len() {
                let accounts: Vec<Currency> = self.banks[bank].accounts.keys().copied().collect();
                for currency in accounts {
                    let mut left = self.available(bank, currency);
                    let mut last = None;
                    for &at in &taken {
                        let payment = &self.payments[at];
                        if payment.currency != currency {
                            continue;
                        }
                        if payment.sender == bank {
                            left -= payment.minor;
                            last = Some(at);
                        } else if payment.receiver == Some(bank) {
                            left += payment.minor;
                        }
                    }
                    let Some(last) = last.filter(|_| left < 0) else {
                        continue;
                    };
                    taken.remove(&last);
                    if self.banks[bank].unit == NetUnit::Package {
                        let package = self.payments[last].message;
                        taken.retain(|&at| {
                            let payment = &self.payments[at];
                            payment.message != package || payment.currency != currency
                        });
                    }
                    continue 'dropping;
                }
            }
            break;
        }
        let mut told: BTreeSet<usize> = BTreeSet::new();
        let mut listed: BTreeSet<usize> = BTreeSet::new();
        let mut credits: BTreeMap<(usize, Currency, ShardId), u64> = BTreeMap::new();
        for at in set {
            let payment = self.payments[at].clone();
            let receiver = payment.receiver.expect("accepted");
            self.payments[at].was_in_cycle = true;
            if told.insert(payment.message) {
                self.emit(payment.sender, 1);
            }
            listed.extend([payment.sender, receiver]);
            if taken.contains(&at) {
                self.payments[at].status = Status::Settled;
                self.add(payment.sender, payment.currency, -payment.minor);
                self.add(receiver, payment.currency, payment.minor);
                let from = self.banks[payment.sender].home;
                *credits
                    .entry((receiver, payment.currency, from))
                    .or_default() += 1;
            }
        }
        for bank in listed {
            self.emit(bank, 1);
        }
        for ((bank, ..), count) in credits {
            self.emit(bank, count.div_ceil(PAGE));
        }
        self.release();
    }

    // ---- the day ----

    fn close(&mut self) {
        for bank in 0..self.banks.len() {
            for submission in std::mem::take(&mut self.banks[bank].held).into_values() {
                self.take_in(bank, &submission, Some(Reason::SequenceGap));
            }
            self.banks[bank].next_sequence = 1;
        }
        let mut ended: BTreeSet<usize> = BTreeSet::new();
        for at in 0..self.payments.len() {
            let payment = &mut self.payments[at];
            match payment.status {
                Status::Queued => {
                    let reason = if payment.eligible {
                        Reason::InsufficientFunds
                    } else {
                        Reason::SettlementBroken
                    };
                    self.end(at, reason);
                }
                Status::Netting => {
                    payment.status = Status::Ended;
                    payment.reason = Some(if payment.was_in_cycle {
                        Reason::InsufficientFunds
                    } else {
                        Reason::SettlementBroken
                    });
                    if ended.insert(payment.message) {
                        self.emit(self.payments[at].sender, 1);
                    }
                }
                _ => {}
            }
        }
        for bank in 0..self.banks.len() {
            let statements = u64::try_from(self.banks[bank].accounts.len()).expect("few");
            self.emit(bank, statements);
        }
        self.open = false;
    }

    /// The reason that is shown for a payment.
    fn shown_reason(&self, at: usize) -> Option<Reason> {
        let payment = &self.payments[at];
        if payment.status != Status::Queued {
            return payment.reason;
        }
        if !payment.eligible {
            return Some(Reason::EarliestTime);
        }
        self.obstacle(at)
    }
}

/// A cluster and its model, and random commands for both.
struct Pair {
    rng: Rng,
    cluster: Cluster,
    model: Model,
    sent: Vec<Submission>,
    funds: u32,
    log: Vec<String>,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let shards = [1, 1, 2, 3][rng.index(4)];
        let mut cluster = Cluster::new(&Genesis {
            amount_max: amount(AMOUNT_MAX),
            page_len_payments: u32::try_from(PAGE).expect("small"),
            gap_timeout_ns: u64::MAX,
            retention_days: 10,
            ..genesis(shards)
        });
        let count = 2 + rng.index(4);
        let mut banks = Vec::new();
        for (place, name) in (0_u16..).zip(&NAMES[..count]) {
            let bank = Bank {
                bic: bic(name),
                home: ShardId::new(place % shards),
                numbered: shards == 1 && rng.one_in(4),
                whole: rng.one_in(5),
                unit: if rng.one_in(3) {
                    NetUnit::Package
                } else {
                    NetUnit::Payment
                },
                accounts: BTreeMap::new(),
                output: 0,
                next_sequence: 1,
                held: BTreeMap::new(),
            };
            cluster.expect_done(AdminCommand::AddParticipant(ParticipantTerms {
                bic: bank.bic,
                name: (*name).to_owned(),
                home: bank.home,
                numbers_messages: bank.numbered,
                refuse_whole: bank.whole,
                net_unit: bank.unit,
            }));
            banks.push(bank);
        }
        for bank in &mut banks {
            for code in ["EUR", "JPY"] {
                if code == "JPY" && rng.one_in(2) {
                    continue;
                }
                let line = if rng.one_in(3) { rng.below(20) } else { 0 };
                cluster.expect_done(AdminCommand::OpenAccount(AccountTerms {
                    bic: bank.bic,
                    currency: currency(code),
                    credit_line: amount(line),
                }));
                bank.accounts.insert(currency(code), (0, i128::from(line)));
            }
        }
        cluster.expect_done(AdminCommand::OpenDay { date: date(0) });
        cluster.pump();
        let model = Model {
            banks,
            messages: Vec::new(),
            payments: Vec::new(),
            next_message: vec![0; usize::from(shards)],
            next_payment: vec![0; usize::from(shards)],
            day: 0,
            open: true,
            cut_off: BTreeSet::new(),
            now: Timestamp::from_ns(START_NS),
            claims: Vec::new(),
        };
        Self {
            rng,
            cluster,
            model,
            sent: Vec::new(),
            funds: 0,
            log: Vec::new(),
        }
    }

    fn one_shard(&self) -> bool {
        self.cluster.ledgers.len() == 1
    }

    fn id(&mut self) -> PaymentId {
        PaymentId::of_transaction(&self.rng.below(60).to_string())
    }

    fn time(&mut self) -> Option<Timestamp> {
        self.rng
            .one_in(3)
            .then(|| Timestamp::from_ns(self.cluster.now_ns + self.rng.below(40)))
    }

    fn submission(&mut self) -> Submission {
        let sender = self.rng.pick(&NAMES[..self.model.banks.len()]);
        let id = format!("M{}", self.rng.below(80));
        let many = if self.one_shard() {
            self.rng.index(4)
        } else {
            1
        };
        let kind = match self.rng.below(10) {
            0 => MessageKind::Cancellation,
            1 => MessageKind::Return,
            2 => MessageKind::BankTransfer,
            _ => MessageKind::CustomerTransfer,
        };
        let sequence = (!self.rng.one_in(8)).then(|| {
            let bank = self.model.bank(bic(sender)).expect("a bank");
            self.model.banks[bank].next_sequence + self.rng.below(3)
        });
        if kind == MessageKind::Cancellation {
            let keys: Vec<PaymentId> = (0..many.max(1)).map(|_| self.id()).collect();
            return Submission {
                sequence,
                ..cancellation(sender, &id, &keys)
            };
        }
        let gross = kind == MessageKind::Return || self.rng.one_in(2);
        let len = match (kind, gross) {
            (MessageKind::Return, _) => 1,
            (_, true) => many,
            (_, false) => self.rng.index(5),
        };
        let mut submission = Submission {
            sequence,
            ..message(
                kind,
                sender,
                &id,
                if gross {
                    Settlement::Gross {
                        class: self.rng.pick(&[Class::Urgent, Class::High, Class::Normal]),
                        settle_or_refuse: self.rng.one_in(5),
                    }
                } else {
                    Settlement::Net
                },
                Vec::new(),
            )
        };
        for at in 0..len {
            let at = u32::try_from(at).expect("few");
            let to = self.rng.pick(&NAMES[..self.model.banks.len()]);
            let mut record = PaymentRecord {
                id: self.id(),
                content_digest: self.rng.below(3),
                amount: amount(1 + self.rng.below(20)),
                currency: currency(self.rng.pick(&["EUR", "EUR", "JPY"])),
                receiver: Some(bic(to)),
                date: Some(date(self.model.day)),
                faults: ReasonSet::EMPTY,
                body_offset: 0,
                body_len: 0,
            };
            if self.rng.one_in(6) {
                match self.rng.below(7) {
                    0 => record.amount = AmountMinor::ZERO,
                    1 => record.amount = amount(AMOUNT_MAX + 1),
                    2 => record.receiver = Some(bic("Z")),
                    3 => record.receiver = None,
                    4 => record.date = Some(date(self.model.day + 1)),
                    5 => record.date = None,
                    _ => record.currency = currency(self.rng.pick(&["ZZZ", "USD"])),
                }
            }
            // A return usually goes for something that was really received.
            if kind == MessageKind::Return {
                let mine = self.model.bank(bic(sender));
                let received: Vec<(usize, PaymentId, Currency, i128)> = self
                    .model
                    .payments
                    .iter()
                    .filter(|payment| payment.receiver == mine)
                    .map(|payment| (payment.sender, payment.id, payment.currency, payment.minor))
                    .collect();
                if !received.is_empty() && !self.rng.one_in(5) {
                    let (payer, id, currency, minor) = self.rng.pick(&received);
                    record.receiver = Some(self.model.banks[payer].bic);
                    record.amount = if self.rng.one_in(2) {
                        amount(u64::try_from(minor).expect("small"))
                    } else {
                        amount(1 + self.rng.below(8))
                    };
                    if !self.rng.one_in(6) {
                        record.currency = currency;
                    }
                    submission.originals.push((
                        at,
                        OriginalPayment {
                            id,
                            reason: *b"AC04",
                        },
                    ));
                } else if self.rng.one_in(2) {
                    let id = self.id();
                    submission.originals.push((
                        at,
                        OriginalPayment {
                            id,
                            reason: *b"AC04",
                        },
                    ));
                }
            }
            if gross && self.one_shard() {
                let times = SettlementTimes {
                    earliest: self.time(),
                    latest: self.time(),
                    reject: self.time(),
                };
                submission.times.push((at, times));
            }
            submission.payments.push(record);
        }
        submission.digest = u128::from(self.rng.next());
        submission
    }

    fn step(&mut self) {
        match self.rng.below(24) {
            0 => {
                self.funds += 1;
                let bank = self.rng.index(self.model.banks.len());
                let minor = 1 + self.rng.below(60);
                let eur = currency("EUR");
                self.log.push(format!("fund {bank} {minor}"));
                self.cluster.expect_done(AdminCommand::Fund {
                    reference: Text::new(&format!("F{}", self.funds)).expect("short"),
                    bic: self.model.banks[bank].bic,
                    currency: eur,
                    amount: amount(minor),
                });
                self.model.add(bank, eur, i128::from(minor));
                self.model.emit(bank, 1);
                self.model.release();
            }
            1 => {
                self.log.push("cycle".to_owned());
                let reply = self.cluster.cycle(CycleCommand::Open);
                assert_eq!(reply == Reply::Done, self.model.open);
                self.cluster.pump();
                if self.model.open {
                    self.model.cycle();
                }
            }
            2 if self.one_shard() => {
                self.cluster.now_ns += self.rng.below(30);
                self.log.push(format!("at {}", self.cluster.now_ns));
                self.cluster.tick();
                let now = Timestamp::from_ns(self.cluster.now_ns);
                self.model.advance(now);
            }
            3 if self.rng.one_in(5) => {
                self.log.push("close or open".to_owned());
                if self.model.open {
                    self.cluster.expect_done(AdminCommand::CloseDay);
                    self.model.close();
                } else {
                    self.model.day += 1;
                    self.model.open = true;
                    self.model.cut_off.clear();
                    let date = date(self.model.day);
                    self.cluster.expect_done(AdminCommand::OpenDay { date });
                }
            }
            4 if self.rng.one_in(10) => {
                let kind = self.rng.pick(&MessageKind::ALL);
                self.log.push(format!("cut-off {kind:?}"));
                let reply = self.cluster.admin(AdminCommand::CutOff { kind });
                assert_eq!(reply == Reply::Done, self.model.open);
                if self.model.open {
                    self.model.cut_off.insert(kind);
                }
            }
            5 => {
                let bank = self.rng.index(self.model.banks.len());
                let next = self.rng.below(8);
                let bic = self.model.banks[bank].bic;
                self.log.push(format!("skip {bank} {next}"));
                let home = self.model.banks[bank].home;
                let reply = self
                    .cluster
                    .apply(home, Command::SkipSequence { bic, next });
                let state = &mut self.model.banks[bank];
                let first_held = state.held.keys().next().copied().unwrap_or(u64::MAX);
                let fits = state.numbered
                    && self.model.open
                    && next > state.next_sequence
                    && next <= first_held;
                assert_eq!(reply == Reply::Done, fits);
                if fits {
                    state.next_sequence = next;
                    self.model.take_held(bank);
                }
            }
            6 | 7 if !self.sent.is_empty() => {
                let at = self.rng.index(self.sent.len());
                let submission = self.sent[at].clone();
                self.submit(&submission);
            }
            _ => {
                let submission = self.submission();
                self.submit(&submission);
                self.sent.push(submission);
            }
        }
        self.cluster.pump();
        self.model.pump();
    }

    fn submit(&mut self, submission: &Submission) {
        self.log.push(format!("{submission:?}"));
        let home = self.cluster.home(submission.sender);
        let reply = self
            .cluster
            .apply(home, Command::Submit(submission.clone()));
        let expected = self.model.submit(submission);
        match (&reply, expected) {
            // A request's answer goes out behind what it brought about, which in part comes from other shards.
            (
                Reply::Taken {
                    message, answer, ..
                },
                Reply::Taken {
                    message: number,
                    accepted,
                    refused,
                    ..
                },
            ) if submission.kind == MessageKind::Cancellation => {
                let expected = Reply::Taken {
                    message: number,
                    answer: *answer,
                    accepted,
                    refused,
                };
                assert_eq!(reply, expected);
                let taken = self.model.messages.iter_mut().rev().find(|taken| {
                    taken.number == message.get()
                        && self.model.banks[taken.sender].bic == submission.sender
                });
                taken.expect("just taken in").answer = *answer;
            }
            (_, expected) => assert_eq!(reply, expected),
        }
    }

    fn compare(&self) {
        for bank in &self.model.banks {
            let ledger = self.cluster.ledger(bank.home);
            let participant = ledger.directory().find(bank.bic).expect("a bank");
            let next = ledger
                .stream(participant)
                .map_or(1, clearspan_ledger::stream::Stream::next_number);
            assert_eq!(next, bank.output + 1, "output of {}", bank.bic);
            for (&currency, &(balance, _)) in &bank.accounts {
                assert_eq!(self.cluster.balance(bank.bic, currency), balance);
            }
        }
        for (at, payment) in self.model.payments.iter().enumerate() {
            let ledger = self.cluster.ledger(self.model.banks[payment.sender].home);
            let view = ledger
                .payment(PaymentNo::new(payment.number))
                .expect("taken in");
            assert_eq!(
                (view.status, view.reason, view.returned.signed()),
                (
                    payment.status,
                    self.model.shown_reason(at),
                    payment.returned
                ),
                "{payment:?}"
            );
            assert_eq!(view.id, payment.id);
        }
    }
}

#[test]
fn histories_agree_with_the_slow_model() {
    let mut met: BTreeSet<Reason> = BTreeSet::new();
    for seed in 0..1500 {
        let mut pair = Pair::new(seed);
        for _ in 0..90 {
            let stepped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                pair.step();
                pair.compare();
            }));
            if let Err(panic) = stepped {
                let last = pair.log.len().saturating_sub(6);
                eprintln!("seed {seed}, after {:#?}", &pair.log[last..]);
                std::panic::resume_unwind(panic);
            }
        }
        let model = &pair.model;
        met.extend((0..model.payments.len()).filter_map(|at| model.shown_reason(at)));
    }
    let message_level = [
        Reason::SenderUnknown,
        Reason::SequenceMissing,
        Reason::SequenceUsed,
        Reason::SequenceGap,
        Reason::DayClosed,
        Reason::MessageDuplicate,
    ];
    // What only a gateway finds aside, every reason for a payment was met.
    let rare: Vec<Reason> = Reason::ALL
        .iter()
        .copied()
        .filter(|reason| {
            !met.contains(reason) && !message_level.contains(reason) && !found_by_gateways(*reason)
        })
        .collect();
    assert_eq!(rare, []);
}

/// Faults that a ledger is told of and cannot find itself; and one that only a request is answered with.
fn found_by_gateways(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Syntax
            | Reason::HeaderMismatch
            | Reason::MessageIdInvalid
            | Reason::MessageNotSupported
            | Reason::ClassConflict
            | Reason::CountMismatch
            | Reason::ControlSumMismatch
            | Reason::TotalMismatch
            | Reason::IdMissing
            | Reason::IdInvalid
            | Reason::FieldInvalid
            | Reason::AmountInvalid
            | Reason::DecimalsExceeded
            | Reason::TimesInvalid
            | Reason::InSettlement
    )
}
