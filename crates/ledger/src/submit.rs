//! Taking a participant's message in: checks in the order of rule R2, duplicates by rule R3, numbering by rule R5.

use std::collections::BTreeSet;

use crate::account::Run;
use crate::apply::{AdminRefusal, Reply};
use crate::day::{DayBook, GrossRecord, MessageRecord, PaymentStatus, Slot};
use crate::directory::AccountPlace;
use crate::entry::{ChannelMessage, ReturnClaim};
use crate::message::{Class, MessageKind, PaymentRecord, Settlement, SettlementTimes, Submission};
use crate::state::{DayState, HELD_MAX_BYTES, HELD_MAX_MESSAGES, Ledger};
use crate::stream::ItemBody;
use crate::{
    Bic, Currency, CycleNumber, MessageNo, ParticipantId, PaymentNo, Reason, ReasonSet, Text,
    Timestamp,
};

/// Payments whose index lines are loaded ahead of their checks: enough for the loads to overlap, few enough to stay in
/// the first-level cache.
const TOUCH_AHEAD: usize = 32;

/// What the checks of one payment found out, for the pass that stores it.
struct Checked {
    faults: ReasonSet,
    receiver: ParticipantId,
    currency_place: u8,
    account: u32,
    id_hash: u64,
    content_hash: u64,
}

/// Look-ups that most payments of a package share.
struct Checker<'a> {
    ledger: &'a Ledger,
    book: &'a DayBook,
    sender: ParticipantId,
    cut_off: bool,
    /// A return's credit goes to the original's sender; nothing else differs.
    currency: Option<(Currency, Option<u8>, AccountPlace)>,
    receiver: Option<(Bic, Option<ParticipantId>)>,
}

impl<'a> Checker<'a> {
    fn check(&mut self, record: &PaymentRecord) -> Checked {
        let mut faults = record.faults;
        let (currency_place, own) = self.currency(record.currency);
        match (currency_place, own) {
            (None, _) => {
                let reason = if record.currency.is_listed() {
                    Reason::CurrencyNotServed
                } else {
                    Reason::CurrencyInvalid
                };
                faults.insert(reason);
            }
            (Some(_), AccountPlace::Home(_)) => {}
            (Some(_), _) => faults.insert(Reason::SenderAccountMissing),
        }
        if record.amount.minor() == 0 && record.faults.is_empty() {
            faults.insert(Reason::AmountZero);
        }
        if record.amount
            > self
                .ledger
                .genesis
                .as_ref()
                .map_or(crate::AmountMinor::MAX, |genesis| genesis.amount_max)
        {
            faults.insert(Reason::AmountTooLarge);
        }
        let receiver = record.receiver.and_then(|bic| self.receiver(bic));
        match receiver {
            None => faults.insert(Reason::ReceiverInvalid),
            Some(receiver) if receiver == self.sender => faults.insert(Reason::SameParticipant),
            Some(receiver) => {
                let place = currency_place.map(|at| self.ledger.directory.account(receiver, at));
                if matches!(place, Some(AccountPlace::None)) {
                    faults.insert(Reason::ReceiverAccountMissing);
                }
            }
        }
        match record.date {
            Some(date) if date == self.book.date => {}
            Some(date) if date > self.book.date => faults.insert(Reason::DateFuture),
            _ => faults.insert(Reason::DateInvalid),
        }
        if self.cut_off {
            faults.insert(Reason::CutOffPassed);
        }
        let account = if let AccountPlace::Home(account) = own {
            account
        } else {
            u32::MAX
        };
        Checked {
            faults,
            receiver: receiver.unwrap_or_default(),
            currency_place: currency_place.unwrap_or(u8::MAX),
            account,
            id_hash: self.book.id_hash(record.id),
            content_hash: self.book.content_hash(record.content_digest),
        }
    }

    fn currency(&mut self, currency: Currency) -> (Option<u8>, AccountPlace) {
        match self.currency {
            Some((known, place, account)) if known == currency => (place, account),
            _ => {
                let place = self.ledger.directory.currency_place(currency);
                let account = place.map_or(AccountPlace::None, |at| {
                    self.ledger.directory.account(self.sender, at)
                });
                self.currency = Some((currency, place, account));
                (place, account)
            }
        }
    }

    fn receiver(&mut self, bic: Bic) -> Option<ParticipantId> {
        match self.receiver {
            Some((known, participant)) if known == bic => participant,
            _ => {
                let participant = self.ledger.directory.find(bic);
                self.receiver = Some((bic, participant));
                participant
            }
        }
    }
}

/// The payment-level part of rule R3: the same key was used today by this sender for a payment that was not refused.
fn duplicate(
    book: &DayBook,
    sender: ParticipantId,
    record: &PaymentRecord,
    id_hash: u64,
) -> Option<Reason> {
    book.payments_with_id(id_hash, record.id)
        .find_map(|payment| {
            let slot = book.slot(payment)?;
            // A refused payment was not taken in, so it may be sent again, corrected, under its key.
            if slot.status == PaymentStatus::Refused || book.message_of(payment)?.1.sender != sender
            {
                return None;
            }
            Some(if book.content(payment) == Some(record.content_digest) {
                Reason::PaymentDuplicate
            } else {
                Reason::PaymentKeyReused
            })
        })
}

impl Ledger {
    pub(crate) fn submit(&mut self, submission: &Submission) -> Reply {
        let Some(sender) = self.directory.find(submission.sender) else {
            return Reply::NotTaken {
                reason: Reason::SenderUnknown,
            };
        };
        let home = self.home_of(sender);
        if home != self.shard() {
            return Reply::NotHome { home };
        }
        if let Some(reply) = self.repeat(sender, submission) {
            return reply;
        }
        if !matches!(self.day, DayState::Open { .. }) {
            return Reply::NotTaken {
                reason: Reason::DayClosed,
            };
        }
        if !self
            .directory
            .get(sender)
            .is_some_and(|terms| terms.numbers_messages)
        {
            return self.take_in(sender, submission, ReasonSet::EMPTY);
        }
        let next = self
            .members
            .get(&sender)
            .map_or(1, |member| member.next_sequence.max(1));
        // The last number has none after it, so nobody may take it.
        match submission.sequence.filter(|&number| number < u64::MAX) {
            None => self.take_in(sender, submission, Reason::SequenceMissing.into()),
            Some(number) if number < next => {
                self.take_in(sender, submission, Reason::SequenceUsed.into())
            }
            Some(number) if number > next => self.hold(sender, number, next, submission),
            Some(number) => {
                self.members.entry(sender).or_default().next_sequence = number + 1;
                let reply = self.take_in(sender, submission, ReasonSet::EMPTY);
                self.take_held(sender);
                reply
            }
        }
    }

    /// The same message again: the same stored answer, and nothing changes (rule R3).
    fn repeat(&self, sender: ParticipantId, submission: &Submission) -> Option<Reply> {
        let known =
            self.days.iter().rev().find_map(|book| {
                book.same_message(sender, &submission.message_id, submission.digest)
            });
        if let Some((message, record)) = known {
            return Some(Reply::Repeat {
                message,
                answer: record.answer,
            });
        }
        let member = self.members.get(&sender)?;
        let held = member.held.get(&submission.sequence?)?;
        (held.message_id == submission.message_id && held.digest == submission.digest).then(|| {
            Reply::Held {
                answer: 0,
                missing_from: member.next_sequence.max(1),
                missing_through: member.held.keys().next().map_or(0, |first| first - 1),
            }
        })
    }

    fn hold(
        &mut self,
        sender: ParticipantId,
        number: u64,
        next: u64,
        submission: &Submission,
    ) -> Reply {
        let bytes = submission.heap.len() as u64 + submission.payments.len() as u64 * 96;
        let member = self.members.entry(sender).or_default();
        if member.held.contains_key(&number) {
            return self.take_in(sender, submission, Reason::SequenceUsed.into());
        }
        if member.held.len() >= HELD_MAX_MESSAGES || member.held_bytes + bytes > HELD_MAX_BYTES {
            return Reply::HeldFull { missing_from: next };
        }
        let was_empty = member.held.is_empty();
        member.next_sequence = next;
        member.held.insert(number, submission.clone());
        member.held_bytes += bytes;
        let missing_through = member.held.keys().next().map_or(number, |first| first - 1);
        if was_empty {
            self.arm_gap_timer(sender);
        }
        self.digest.fold(number ^ u64::from(sender.get()) << 48);
        let body = ItemBody::Gap {
            message_id: submission.message_id,
            missing_from: next,
            missing_through,
        };
        let answer = self.emit(sender, 1, body);
        Reply::Held {
            answer,
            missing_from: next,
            missing_through,
        }
    }

    /// Takes in the held messages whose turn has come.
    pub(crate) fn take_held(&mut self, sender: ParticipantId) {
        loop {
            let Some(member) = self.members.get_mut(&sender) else {
                return;
            };
            let next = member.next_sequence;
            let Some(submission) = member.held.remove(&next) else {
                break;
            };
            member.held_bytes = member.held_bytes.saturating_sub(
                submission.heap.len() as u64 + submission.payments.len() as u64 * 96,
            );
            member.next_sequence = next + 1;
            self.take_released(sender, submission, ReasonSet::EMPTY);
        }
        self.disarm_gap_timers(sender);
        if self
            .members
            .get(&sender)
            .is_some_and(|member| !member.held.is_empty())
        {
            self.arm_gap_timer(sender);
        }
    }

    /// Takes in a message that waited, and tells the outcome so that its package is stored.
    fn take_released(&mut self, sender: ParticipantId, submission: Submission, more: ReasonSet) {
        if let Reply::Taken { message, .. } = self.take_in(sender, &submission, more) {
            self.released.push((message, submission));
        }
    }

    fn arm_gap_timer(&mut self, sender: ParticipantId) {
        let timeout_ns = self
            .genesis
            .as_ref()
            .map_or(u64::MAX, |genesis| genesis.gap_timeout_ns);
        self.gap_timers
            .insert((self.now.plus_ns(timeout_ns), sender));
    }

    fn disarm_gap_timers(&mut self, sender: ParticipantId) {
        self.gap_timers
            .retain(|(_, participant)| *participant != sender);
    }

    /// A hole that persists is reported again; only the operator skips it (rule R5).
    pub(crate) fn run_gap_timers(&mut self) {
        // Each once per entry: armed again it may be due at once, without a timeout or at the end of time.
        let due: Vec<(Timestamp, ParticipantId)> = self
            .gap_timers
            .iter()
            .copied()
            .take_while(|(time, _)| *time <= self.now)
            .collect();
        for (time, sender) in due {
            self.gap_timers.remove(&(time, sender));
            let Some(member) = self.members.get(&sender) else {
                continue;
            };
            let Some(first) = member.held.keys().next() else {
                continue;
            };
            let (missing_from, missing_through) = (member.next_sequence, first - 1);
            self.emit(
                sender,
                1,
                ItemBody::Gap {
                    message_id: Text::EMPTY,
                    missing_from,
                    missing_through,
                },
            );
            self.arm_gap_timer(sender);
        }
    }

    pub(crate) fn skip_sequence(&mut self, bic: Bic, next: u64) -> Reply {
        let Some(participant) = self.directory.find(bic) else {
            return Reply::Refused(AdminRefusal::ParticipantUnknown);
        };
        let home = self.home_of(participant);
        if home != self.shard() {
            return Reply::NotHome { home };
        }
        let numbers = self
            .directory
            .get(participant)
            .is_some_and(|terms| terms.numbers_messages);
        let member = self.members.entry(participant).or_default();
        let first_held = member.held.keys().next().copied().unwrap_or(u64::MAX);
        // A skip goes ahead, and never over a message that waits.
        if !numbers
            || next <= member.next_sequence.max(1)
            || next > first_held
            || !matches!(self.day, DayState::Open { .. })
        {
            return Reply::Refused(AdminRefusal::SequenceNotAhead);
        }
        member.next_sequence = next;
        self.digest.fold(next ^ u64::from(participant.get()) << 48);
        self.take_held(participant);
        Reply::Done
    }

    /// At the day's end: what still waits for a missing number is taken in as too late, so that it has an answer.
    pub(crate) fn refuse_held(&mut self) {
        let senders: Vec<ParticipantId> = self
            .members
            .iter()
            .filter(|(_, member)| !member.held.is_empty())
            .map(|(&sender, _)| sender)
            .collect();
        for sender in senders {
            let held = self
                .members
                .get_mut(&sender)
                .map(|member| std::mem::take(&mut member.held))
                .unwrap_or_default();
            for submission in held.into_values() {
                self.take_released(sender, submission, Reason::SequenceGap.into());
            }
            self.disarm_gap_timers(sender);
        }
        for member in self.members.values_mut() {
            member.next_sequence = 0;
            member.held_bytes = 0;
        }
    }

    fn take_in(
        &mut self,
        sender: ParticipantId,
        submission: &Submission,
        more: ReasonSet,
    ) -> Reply {
        let mut faults = submission.faults.union(more);
        let book = self.days.back().expect("a business day is open");
        if book
            .message_with_id(sender, &submission.message_id)
            .is_some()
        {
            faults.insert(Reason::MessageDuplicate);
        }
        let message = self.next_message;
        self.next_message = message.next();
        let mut record = MessageRecord {
            kind: submission.kind,
            version: submission.version,
            sender,
            message_id: submission.message_id,
            digest: submission.digest,
            sequence: submission.sequence,
            settlement: submission.settlement,
            refused: faults.first(),
            index: self.index,
            time: self.now,
            first_payment: self.next_payment,
            count: u32::try_from(submission.payments.len()).unwrap_or(u32::MAX),
            refused_count: 0,
            answer: 0,
        };
        self.digest
            .fold(message.get() ^ u64::from(sender.get()) << 48);
        self.digest.fold((submission.digest >> 64) as u64);
        self.digest.fold_low(submission.digest);
        if record.refused.is_none()
            && self
                .directory
                .get(sender)
                .is_some_and(|terms| terms.refuse_whole)
        {
            record.refused = self.first_fault_of_any(sender, submission);
        }
        if record.refused.is_some() {
            record.refused_count = record.count;
            return self.answer_reception(sender, message, record);
        }
        match submission.kind {
            MessageKind::Cancellation => {
                self.take_cancellation(sender, message, record, submission)
            }
            _ => self.take_payments(sender, message, record, submission),
        }
    }

    /// For participants that want a package whole or not at all (rule R1).
    fn first_fault_of_any(&self, sender: ParticipantId, submission: &Submission) -> Option<Reason> {
        if submission.kind == MessageKind::Cancellation {
            return None;
        }
        let mut checker = self.checker(sender, submission.kind)?;
        let mut faults = ReasonSet::EMPTY;
        let mut ids = BTreeSet::new();
        for record in &submission.payments {
            let checked = checker.check(record);
            faults = faults.union(checked.faults);
            if !ids.insert(record.id) {
                faults.insert(Reason::DuplicateInMessage);
            }
            if let Some(reason) = duplicate(checker.book, sender, record, checked.id_hash) {
                faults.insert(reason);
            }
        }
        faults.first()
    }

    /// Whether a kind of message comes too late for the business day.
    pub(crate) fn cut_off_passed(&self, kind: MessageKind) -> bool {
        !matches!(&self.day, DayState::Open { cut_off } if !cut_off.contains(&kind))
    }

    fn checker(&self, sender: ParticipantId, kind: MessageKind) -> Option<Checker<'_>> {
        Some(Checker {
            ledger: self,
            book: self.days.back()?,
            sender,
            cut_off: self.cut_off_passed(kind),
            currency: None,
            receiver: None,
        })
    }

    fn answer_reception(
        &mut self,
        sender: ParticipantId,
        message: MessageNo,
        mut record: MessageRecord,
    ) -> Reply {
        record.answer = self.emit(sender, 1, ItemBody::Reception { message });
        let reply = Reply::Taken {
            message,
            answer: record.answer,
            accepted: record.count - record.refused_count,
            refused: record.refused_count,
        };
        self.push_message(record);
        reply
    }

    fn push_message(&mut self, record: MessageRecord) {
        self.days
            .back_mut()
            .expect("a business day is open")
            .push_message(record);
    }

    fn take_payments(
        &mut self,
        sender: ParticipantId,
        message: MessageNo,
        mut record: MessageRecord,
        submission: &Submission,
    ) -> Reply {
        let waiting_status = match (submission.kind, submission.settlement) {
            (MessageKind::Return, _) => PaymentStatus::Claiming,
            (_, Settlement::Net) => PaymentStatus::Netting,
            (_, Settlement::Gross { .. }) => PaymentStatus::Queued,
        };
        let first = self.next_payment;
        let end = PaymentNo::new(first.get() + submission.payments.len() as u64);
        let mut runs: Vec<(u32, u32, u128)> = Vec::new();
        let mut fold = 0_u64;
        // The book leaves the ledger for the pass, so that checks read the one while it is filled.
        let mut book = self.days.pop_back().expect("a business day is open");
        for package in submission.payments.chunks(TOUCH_AHEAD) {
            let mut checker = Checker {
                ledger: self,
                book: &book,
                sender,
                cut_off: self.cut_off_passed(submission.kind),
                currency: None,
                receiver: None,
            };
            let mut checked: [Option<Checked>; TOUCH_AHEAD] = [const { None }; TOUCH_AHEAD];
            for (payment, slot) in package.iter().zip(&mut checked) {
                *slot = Some(checker.check(payment));
            }
            // A loop of its own: between longer checks fewer loads would be under way at once.
            let touched = checked.iter().flatten().fold(0, |lines, found| {
                lines ^ book.touch(found.id_hash, found.content_hash)
            });
            std::hint::black_box(touched);
            for (payment, found) in package.iter().zip(checked.iter_mut().flatten()) {
                if let Some(reason) = duplicate_in_day(&book, sender, first, payment, found.id_hash)
                {
                    found.faults.insert(reason);
                }
                let refused = found.faults.first();
                let status = if refused.is_some() {
                    PaymentStatus::Refused
                } else {
                    waiting_status
                };
                let mut slot =
                    Slot::new(payment.amount, found.receiver, found.currency_place, status);
                if let Some(reason) = refused {
                    slot.become_(status, CycleNumber::default(), Some(reason));
                    record.refused_count += 1;
                } else if status == PaymentStatus::Netting {
                    match runs.last_mut() {
                        Some((account, count, sum)) if *account == found.account => {
                            *count += 1;
                            *sum += u128::from(payment.amount.minor());
                        }
                        _ => match runs
                            .iter_mut()
                            .find(|(account, ..)| *account == found.account)
                        {
                            Some((_, count, sum)) => {
                                *count += 1;
                                *sum += u128::from(payment.amount.minor());
                            }
                            None => {
                                runs.push((found.account, 1, u128::from(payment.amount.minor())))
                            }
                        },
                    }
                }
                fold = (fold
                    ^ payment.amount.minor()
                    ^ u64::from(found.receiver.get()) << 48
                    ^ found.id_hash)
                    .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                    .rotate_left(31)
                    ^ refused.map_or(0, |reason| u64::from(reason.rank()) + 1);
                book.push_payment(
                    sender,
                    slot,
                    payment.id,
                    payment.content_digest,
                    found.id_hash,
                    found.content_hash,
                );
            }
        }
        self.days.push_back(book);
        self.next_payment = end;
        self.digest.fold(fold);
        for (account, count, sum) in runs {
            let account = &mut self.accounts[account as usize];
            account.net.push_back(Run {
                first,
                len: record.count,
                message,
            });
            self.digest.fold_low(u128::from(count) << 32 ^ sum);
        }
        let gross = matches!(submission.settlement, Settlement::Gross { .. })
            || submission.kind == MessageKind::Return;
        // One urgent payment has one answer: what became of it. Otherwise the message's own answer goes first.
        let single = gross
            && submission.kind != MessageKind::Return
            && record.count == 1
            && record.refused_count == 0;
        let (accepted, refused) = (record.count - record.refused_count, record.refused_count);
        if !single {
            record.answer = self.emit(sender, 1, ItemBody::Reception { message });
        }
        let answer = record.answer;
        self.push_message(record);
        let mut first_event = 0;
        if gross {
            first_event = self.take_gross(sender, first, submission);
        }
        let answer = if single { first_event } else { answer };
        if single
            && let Some(record) = self
                .days
                .back_mut()
                .and_then(|book| book.message_mut(message))
        {
            record.answer = answer;
        }
        Reply::Taken {
            message,
            answer,
            accepted,
            refused,
        }
    }

    /// Gross payments of a message, each on its own, in their order. Returns the first output number.
    fn take_gross(
        &mut self,
        sender: ParticipantId,
        first: PaymentNo,
        submission: &Submission,
    ) -> u64 {
        let (class, settle_or_refuse) = match submission.settlement {
            Settlement::Gross {
                class,
                settle_or_refuse,
            } => (class, settle_or_refuse),
            Settlement::Net => (Class::Normal, false),
        };
        let mut first_event = 0;
        let mut times = submission.times.iter().peekable();
        let mut originals = submission.originals.iter().peekable();
        for (position, record) in (0_u32..).zip(&submission.payments) {
            let asked = times
                .next_if(|(at, _)| *at == position)
                .map_or_else(SettlementTimes::default, |(_, times)| *times);
            let original = originals
                .next_if(|(at, _)| *at == position)
                .map(|(_, original)| *original);
            let payment = PaymentNo::new(first.get() + u64::from(position));
            let slot = *self.known_slot(payment);
            if slot.status == PaymentStatus::Refused {
                continue;
            }
            let AccountPlace::Home(account) = self.place(sender, record.currency) else {
                continue;
            };
            if let Some(book) = self.days.back_mut() {
                let (settled, settled_time) = (crate::LogIndex::default(), Timestamp::ZERO);
                book.push_gross(GrossRecord {
                    payment,
                    class,
                    settled,
                    settled_time,
                });
            }
            if slot.status == PaymentStatus::Claiming {
                let Some(original) = original else {
                    self.end_gross(payment, account, Reason::OriginalUnknown);
                    continue;
                };
                self.send(
                    self.home_of(slot.receiver),
                    ChannelMessage::ReturnClaim(ReturnClaim {
                        claim: payment,
                        returner: sender,
                        original_sender: slot.receiver,
                        original: original.id,
                        amount: record.amount,
                        currency: record.currency,
                    }),
                );
                continue;
            }
            let event = self.enter_gross(payment, account, class, settle_or_refuse, asked);
            if first_event == 0 {
                first_event = event;
            }
        }
        first_event
    }

    fn take_cancellation(
        &mut self,
        sender: ParticipantId,
        message: MessageNo,
        mut record: MessageRecord,
        submission: &Submission,
    ) -> Reply {
        let mut answers = Vec::with_capacity(submission.payments.len());
        for position in 0..record.count {
            let answer = self.cancel(sender, message, position, submission);
            if matches!(answer.outcome, crate::state::CancelOutcome::Refused { .. }) {
                record.refused_count += 1;
            }
            answers.push(answer);
        }
        self.cancellations.insert(message, answers);
        record.answer = self.emit(sender, 1, ItemBody::CancellationAnswer { message });
        let (answer, refused) = (record.answer, record.refused_count);
        let accepted = record.count - refused;
        self.push_message(record);
        Reply::Taken {
            message,
            answer,
            accepted,
            refused,
        }
    }
}

/// As [`duplicate`], also against payments of the message that is being taken in, whose record is not there yet.
fn duplicate_in_day(
    book: &DayBook,
    sender: ParticipantId,
    first_of_message: PaymentNo,
    record: &PaymentRecord,
    id_hash: u64,
) -> Option<Reason> {
    // Nearly every key is new, and one look says so.
    book.payments_with_id(id_hash, record.id).next()?;
    let within = book.payments_with_id(id_hash, record.id).any(|payment| {
        payment >= first_of_message
            && book
                .slot(payment)
                .is_some_and(|slot| slot.status != PaymentStatus::Refused)
    });
    if within {
        Some(Reason::DuplicateInMessage)
    } else {
        duplicate(book, sender, record, id_hash)
    }
}
