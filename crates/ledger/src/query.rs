//! What can be asked of a shard. Every answer holds at one journal position, [`Ledger::position`] (rule R36).

use crate::account::Account;
use crate::day::{DayBook, MessageRecord, PaymentStatus, Slot};
use crate::directory::{AccountPlace, Directory};
use crate::entry::{ChannelMessage, Genesis};
use crate::gross::Finality;
use crate::member::{CycleRecord, waiting_net};
use crate::message::{Class, MessageKind, Settlement, SettlementTimes};
use crate::state::{CancelAnswer, Ledger, Totals};
use crate::stream::Stream;
use crate::{
    AmountMinor, BusinessDate, Currency, CycleNumber, LogIndex, MessageNo, ParticipantId,
    PaymentId, PaymentNo, Reason, ShardId, Timestamp,
};

/// One payment as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaymentView {
    /// Its number in its sender's home shard.
    pub payment: PaymentNo,
    /// Its key.
    pub id: PaymentId,
    /// The message it came with.
    pub message: MessageNo,
    /// Its place in that message, from 0.
    pub position: u32,
    /// Who pays.
    pub sender: ParticipantId,
    /// Who is paid; of no meaning when it was refused for lack of one.
    pub receiver: ParticipantId,
    /// Currency; [`Currency::NONE`] when it was refused for lack of one.
    pub currency: Currency,
    /// Amount.
    pub amount: AmountMinor,
    /// What became of it.
    pub status: PaymentStatus,
    /// Why, where there is a reason.
    pub reason: Option<Reason>,
    /// The cycle that settled it.
    pub cycle: Option<CycleNumber>,
    /// Its class when it settles gross.
    pub class: Option<Class>,
    /// Business date.
    pub date: BusinessDate,
    /// Moment of entry.
    pub entered: Finality,
    /// Moment from which the sender could not take it back: the cut-off, or settlement.
    pub irrevocable: Option<Finality>,
    /// Moment of finality.
    pub settled: Option<Finality>,
    /// Sum of returns, granted or settled.
    pub returned: AmountMinor,
    /// The times its sender asked for, while it waits.
    pub times: Option<SettlementTimes>,
    /// An earlier payment of the same sender and day with the same content under another key (rule R3: flagged).
    pub same_content_as: Option<PaymentNo>,
}

/// One payment of a cycle's set: what receipts and certificates say of it, without the look-ups of a [`PaymentView`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CyclePayment {
    /// Its number in its sender's home shard.
    pub payment: PaymentNo,
    /// Its key.
    pub id: PaymentId,
    /// The message it came with.
    pub message: MessageNo,
    /// Its place in that message, from 0.
    pub position: u32,
    /// Who pays.
    pub sender: ParticipantId,
    /// Who is paid.
    pub receiver: ParticipantId,
    /// Place of its currency in the directory's list.
    pub currency_place: u8,
    /// Amount.
    pub amount: AmountMinor,
    /// Whether the cycle settled it; else it stayed in line.
    pub settled: bool,
}

/// Where an unsettled payment that is to be netted stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NettingState {
    /// It waits for its first cycle.
    Waiting,
    /// It is in the set of the running cycle.
    Running,
    /// A cycle has left it in line for lack of funds; it waits for the next.
    Dropped,
}

impl Ledger {
    /// The last entry applied and its log time.
    #[must_use]
    pub const fn position(&self) -> (LogIndex, Timestamp) {
        (self.index, self.now)
    }

    /// The running digest: equal entries give equal digests on every replica.
    #[must_use]
    pub const fn digest(&self) -> u128 {
        self.digest.bits()
    }

    /// What the cluster agreed on, once it did.
    #[must_use]
    pub const fn genesis(&self) -> Option<&Genesis> {
        self.genesis.as_ref()
    }

    /// Participants and where their accounts are.
    #[must_use]
    pub const fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Accounts of this shard's participants, in the order of their opening.
    #[must_use]
    pub fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// One account, when it is in this shard.
    #[must_use]
    pub fn account(&self, participant: ParticipantId, currency: Currency) -> Option<&Account> {
        match self.place(participant, currency) {
            AccountPlace::Home(account) => self.accounts.get(account as usize),
            AccountPlace::Remote | AccountPlace::None => None,
        }
    }

    /// Each currency's money in this shard.
    pub fn totals(&self) -> impl Iterator<Item = (Currency, &Totals)> {
        self.directory
            .currencies()
            .iter()
            .copied()
            .zip(&self.totals)
    }

    /// A home participant's output.
    #[must_use]
    pub fn stream(&self, participant: ParticipantId) -> Option<&Stream> {
        self.members.get(&participant).map(|member| &member.stream)
    }

    /// A home participant's sequence: the next number expected, and the numbers that wait for missing ones.
    #[must_use]
    pub fn sequence(&self, participant: ParticipantId) -> Option<(u64, Vec<u64>)> {
        let member = self.members.get(&participant)?;
        Some((
            member.next_sequence.max(1),
            member.held.keys().copied().collect(),
        ))
    }

    /// Holes in a participant's sequence, as inclusive ranges of missing numbers (rule R5).
    #[must_use]
    pub fn gaps(&self, participant: ParticipantId) -> Vec<(u64, u64)> {
        let Some((mut next, held)) = self.sequence(participant) else {
            return Vec::new();
        };
        let mut gaps = Vec::new();
        for number in held {
            if number > next {
                gaps.push((next, number - 1));
            }
            next = number + 1;
        }
        gaps
    }

    /// A message within retention.
    #[must_use]
    pub fn message(&self, message: MessageNo) -> Option<&MessageRecord> {
        self.message_record(message)
    }

    /// Messages of a business day, in order.
    pub fn messages(
        &self,
        date: BusinessDate,
    ) -> impl Iterator<Item = (MessageNo, &MessageRecord)> {
        self.days
            .iter()
            .filter(move |book| book.date == date)
            .flat_map(DayBook::messages)
    }

    /// The message of a sender with an identifier, newest day first; of a day the first, as later ones were refused for
    /// using it again.
    #[must_use]
    pub fn find_message(
        &self,
        sender: ParticipantId,
        id: &crate::Text,
    ) -> Option<(MessageNo, &MessageRecord)> {
        self.days
            .iter()
            .rev()
            .find_map(|book| book.message_with_id(sender, id))
    }

    /// Business days within retention, oldest first.
    pub fn dates(&self) -> impl Iterator<Item = BusinessDate> {
        self.days.iter().map(|book| book.date)
    }

    /// The oldest message within retention: packages below it may be deleted.
    #[must_use]
    pub fn retained_from(&self) -> MessageNo {
        self.days
            .front()
            .map_or(self.next_message, |book| book.first_message)
    }

    /// The number that the next message will have: every package below it and within retention is stored.
    #[must_use]
    pub const fn next_message(&self) -> MessageNo {
        self.next_message
    }

    /// A payment within retention.
    #[must_use]
    pub fn payment(&self, payment: PaymentNo) -> Option<PaymentView> {
        let book = self.book_of(payment)?;
        let (message, record) = book.message_of(payment)?;
        Some(self.view(book, message, record, payment, book.slot(payment)?))
    }

    /// A message's payments, in order; none when it was refused as a whole.
    pub fn payments_of(&self, message: MessageNo) -> impl Iterator<Item = PaymentView> {
        self.days
            .iter()
            .rev()
            .find_map(|book| book.message(message).map(|record| (book, record)))
            .into_iter()
            .flat_map(move |(book, record)| {
                (0..u64::from(record.numbered())).filter_map(move |at| {
                    let payment = PaymentNo::new(record.first_payment.get() + at);
                    Some(self.view(book, message, record, payment, book.slot(payment)?))
                })
            })
    }

    /// All payments under a key, of any sender in this shard, oldest first.
    #[must_use]
    pub fn payments_with_id(&self, id: PaymentId) -> Vec<PaymentView> {
        self.days
            .iter()
            .flat_map(|book| book.all_with_id(id))
            .filter_map(|payment| self.payment(payment))
            .collect()
    }

    fn view(
        &self,
        book: &DayBook,
        message: MessageNo,
        record: &MessageRecord,
        payment: PaymentNo,
        slot: &Slot,
    ) -> PaymentView {
        let gross = book.gross(payment);
        let settled_in =
            (slot.status == PaymentStatus::Settled && gross.is_none()).then(|| slot.cycle());
        let cycle = settled_in.and_then(|cycle| self.cycles.get(&cycle));
        let settled = match (slot.status, gross, cycle) {
            (PaymentStatus::Settled, Some(gross), _) => Some(Finality {
                index: gross.settled,
                time: gross.settled_time,
            }),
            (PaymentStatus::Settled, None, Some(cycle)) => Some(Finality {
                index: cycle.posted,
                time: cycle.posted_time,
            }),
            _ => None,
        };
        let irrevocable = cycle
            .map(|cycle| Finality {
                index: cycle.cut,
                time: cycle.cut_time,
            })
            .or(settled);
        PaymentView {
            payment,
            id: book.id(payment).unwrap_or(PaymentId::Transaction(0)),
            message,
            position: u32::try_from(payment.get() - record.first_payment.get()).unwrap_or(u32::MAX),
            sender: record.sender,
            receiver: slot.receiver,
            currency: self
                .directory
                .currencies()
                .get(usize::from(slot.currency_place))
                .copied()
                .unwrap_or(Currency::NONE),
            amount: slot.amount,
            status: slot.status,
            reason: slot.reason().or_else(|| self.waiting_reason(payment, slot)),
            cycle: settled_in,
            class: gross.map(|gross| gross.class),
            date: book.date,
            entered: Finality {
                index: record.index,
                time: record.time,
            },
            irrevocable,
            settled,
            returned: self.returned.get(&payment).copied().unwrap_or_default(),
            times: self.waiting.get(&payment).map(|waiting| waiting.times),
            same_content_as: self.same_content(book, record.sender, payment),
        }
    }

    /// Why a queued payment waits, as things stand now.
    fn waiting_reason(&self, payment: PaymentNo, slot: &Slot) -> Option<Reason> {
        if slot.status != PaymentStatus::Queued {
            return None;
        }
        let waiting = self.waiting.get(&payment)?;
        let account = self.accounts.get(waiting.account as usize)?;
        Some(if !waiting.queued {
            Reason::EarliestTime
        } else if account.head() == Some(payment) {
            Reason::InsufficientFunds
        } else {
            Reason::QueuedBehind
        })
    }

    fn same_content(
        &self,
        book: &DayBook,
        sender: ParticipantId,
        payment: PaymentNo,
    ) -> Option<PaymentNo> {
        let content = book.content(payment)?;
        book.payments_with_content(book.content_hash(content), content)
            .find(|&other| {
                other < payment
                    && book
                        .message_of(other)
                        .is_some_and(|(_, record)| record.sender == sender)
            })
    }

    /// A participant's gross payments that wait, most urgent first, then in order; then its payments that wait for
    /// netting.
    #[must_use]
    pub fn queue(&self, participant: ParticipantId) -> Vec<PaymentView> {
        let mut payments: Vec<PaymentNo> = Vec::new();
        for account in self
            .accounts
            .iter()
            .filter(|account| account.participant == participant)
        {
            payments.extend(account.queued().map(|(_, payment)| payment));
        }
        for (&payment, waiting) in &self.waiting {
            if !waiting.queued && self.accounts[waiting.account as usize].participant == participant
            {
                payments.push(payment);
            }
        }
        if let Some(book) = self.days.back() {
            for account in self
                .accounts
                .iter()
                .filter(|account| account.participant == participant)
            {
                payments.extend(waiting_net(book, account).map(|(payment, ..)| payment));
            }
        }
        payments
            .into_iter()
            .filter_map(|payment| self.payment(payment))
            .collect()
    }

    /// Payments of this shard's senders that wait and would credit a participant (of any shard), in order of arrival.
    #[must_use]
    pub fn expected_incoming(&self, receiver: ParticipantId) -> Vec<PaymentView> {
        let mut payments: Vec<PaymentNo> = self
            .waiting
            .keys()
            .copied()
            .filter(|&payment| self.known_slot(payment).receiver == receiver)
            .collect();
        if let Some(book) = self.days.back() {
            for account in &self.accounts {
                payments.extend(
                    waiting_net(book, account)
                        .filter(|&(.., to)| to == receiver)
                        .map(|(payment, ..)| payment),
                );
            }
        }
        payments.sort_unstable();
        payments
            .into_iter()
            .filter_map(|payment| self.payment(payment))
            .collect()
    }

    /// How many gross payments wait in this shard, and how many wait for netting.
    #[must_use]
    pub fn waiting_counts(&self) -> (usize, usize) {
        let netting = self.days.back().map_or(0, |book| {
            self.accounts
                .iter()
                .map(|account| waiting_net(book, account).count())
                .sum()
        });
        (self.waiting.len(), netting)
    }

    /// What has become of the payments of the open (or last) business day in this shard. It passes over every one of them,
    /// 16 bytes each: for questions that are asked once a second, not for entries.
    #[must_use]
    pub fn payment_counts(&self) -> PaymentCounts {
        let mut counts = PaymentCounts::default();
        let Some(book) = self.days.back() else {
            return counts;
        };
        for slot in book.slots(book.first_payment, book.end_payment()).flatten() {
            let count = match slot.status {
                PaymentStatus::Refused => &mut counts.refused,
                PaymentStatus::Netting => &mut counts.netting,
                PaymentStatus::Settled => &mut counts.settled,
                PaymentStatus::Queued | PaymentStatus::Claiming => &mut counts.queued,
                PaymentStatus::Ended => &mut counts.ended,
                PaymentStatus::Cancelled => &mut counts.cancelled,
            };
            *count += 1;
        }
        counts
    }

    /// A settled cycle as this shard posted it.
    #[must_use]
    pub fn cycle(&self, cycle: CycleNumber) -> Option<&CycleRecord> {
        self.cycles.get(&cycle)
    }

    /// The payments that were in a settled cycle's set here, in order of arrival, and whether each settled in it.
    pub fn cycle_set(&self, cycle: CycleNumber) -> impl Iterator<Item = (PaymentView, bool)> {
        let record = self.cycles.get(&cycle);
        let book = record.and_then(|record| self.days.iter().find(|book| book.date == record.date));
        book.zip(record)
            .into_iter()
            .flat_map(move |(book, record)| {
                book.messages()
                    .take_while(move |(_, message)| message.first_payment < record.cut_below)
                    .flat_map(move |(number, message)| {
                        (0..u64::from(message.numbered())).filter_map(move |at| {
                            let payment = PaymentNo::new(message.first_payment.get() + at);
                            let slot = book.slot(payment)?;
                            let settled = slot_in_cycle(book, payment, slot, cycle)?;
                            Some((self.view(book, number, message, payment, slot), settled))
                        })
                    })
            })
    }

    /// As [`Ledger::cycle_set`], with less about each payment: for passes over millions.
    pub fn cycle_payments(&self, cycle: CycleNumber) -> impl Iterator<Item = CyclePayment> {
        let record = self.cycles.get(&cycle);
        let book = record.and_then(|record| self.days.iter().find(|book| book.date == record.date));
        book.zip(record)
            .into_iter()
            .flat_map(move |(book, record)| {
                book.messages()
                    .take_while(move |(_, message)| message.first_payment < record.cut_below)
                    .flat_map(move |(number, message)| netted_of(book, cycle, number, message))
            })
    }

    /// What a settled cycle made of one message: its payments that were in the set.
    pub fn cycle_payments_of(
        &self,
        cycle: CycleNumber,
        message: MessageNo,
    ) -> impl Iterator<Item = CyclePayment> {
        let record = self.cycles.get(&cycle);
        let book = record.and_then(|record| self.days.iter().find(|book| book.date == record.date));
        book.zip(record)
            .and_then(|(book, record)| Some((book, record, book.message(message)?)))
            .filter(|(_, record, part)| part.first_payment < record.cut_below)
            .into_iter()
            .flat_map(move |(book, _, part)| netted_of(book, cycle, message, part))
    }

    /// Payments of one list of [`CycleCredits`] (ascending, of that cycle) with what their receipts say of them.
    pub fn credited<'a>(
        &'a self,
        cycle: CycleNumber,
        payments: &'a [PaymentNo],
    ) -> impl Iterator<Item = CyclePayment> + 'a {
        let book = self
            .cycles
            .get(&cycle)
            .and_then(|record| self.days.iter().find(|book| book.date == record.date));
        // Neighbours mostly come from one message, so its record is looked up once for all of them.
        let mut known: Option<(u64, MessageNo, &MessageRecord)> = None;
        payments.iter().filter_map(move |&payment| {
            let book = book?;
            let (message, record) = match known {
                Some((end, message, record)) if payment.get() < end => (message, record),
                _ => {
                    let (message, record) = book.message_of(payment)?;
                    let end = record.first_payment.get() + u64::from(record.numbered());
                    known = Some((end, message, record));
                    (message, record)
                }
            };
            let slot = book.slot(payment)?;
            cycle_payment(book, message, record, payment, slot, true)
        })
    }

    /// Where a payment stands that waits for netting; `None` when it does not.
    #[must_use]
    pub fn netting_state(&self, payment: PaymentNo) -> Option<NettingState> {
        let slot = self.book_of(payment)?.slot(payment)?;
        if slot.status != PaymentStatus::Netting {
            return None;
        }
        let in_set = |cut_below: PaymentNo| payment < cut_below;
        Some(
            if self
                .running
                .as_ref()
                .is_some_and(|running| in_set(running.cut_below))
            {
                NettingState::Running
            } else if self
                .cycles
                .values()
                .next_back()
                .is_some_and(|record| in_set(record.cut_below))
            {
                NettingState::Dropped
            } else {
                NettingState::Waiting
            },
        )
    }

    /// The business date of a message within retention.
    #[must_use]
    pub fn message_date(&self, message: MessageNo) -> Option<BusinessDate> {
        self.days
            .iter()
            .rev()
            .find(|book| book.message(message).is_some())
            .map(|book| book.date)
    }

    /// The first output number of a home participant after its last statements: where its next ones begin.
    #[must_use]
    pub fn day_first_number(&self, participant: ParticipantId) -> Option<u64> {
        self.members
            .get(&participant)
            .map(|member| member.stream.day_first_number)
    }

    /// The payments of this shard's senders that a cycle settled, bucketed by receiver and currency place: for the
    /// receivers' receipts. Keys ascend; payments ascend within a key.
    #[must_use]
    pub fn cycle_credits(&self, cycle: CycleNumber) -> CycleCredits {
        let mut credits = CycleCredits::default();
        let Some(record) = self.cycles.get(&cycle) else {
            return credits;
        };
        let Some(book) = self.days.iter().find(|book| book.date == record.date) else {
            return credits;
        };
        let currencies = self.totals.len();
        let buckets = self.directory.iter().count() * currencies;
        let bucket =
            |slot: &Slot| slot.receiver.index() * currencies + usize::from(slot.currency_place);
        let slots = || book.slots(book.first_payment, record.cut_below).flatten();
        // A gross payment carries the last cycle that was cut before it settled; it is sorted out below.
        let settled = |slot: &&Slot| slot.status == PaymentStatus::Settled && slot.cycle() == cycle;
        let mut counts = vec![0_usize; buckets];
        let mut netted = Vec::new();
        for (at, slot) in (0_u64..).zip(slots()).filter(|(_, slot)| settled(slot)) {
            let payment = PaymentNo::new(book.first_payment.get() + at);
            if book.gross(payment).is_none() {
                counts[bucket(slot)] += 1;
                netted.push((payment, bucket(slot)));
            }
        }
        let mut next = 0;
        credits.starts = counts
            .iter()
            .map(|count| {
                let start = next;
                next += count;
                start
            })
            .chain([netted.len()])
            .collect();
        let mut places = credits.starts.clone();
        credits.payments = vec![PaymentNo::default(); netted.len()];
        for (payment, key) in netted {
            credits.payments[places[key]] = payment;
            places[key] += 1;
        }
        credits.currencies = currencies;
        credits
    }

    /// The answers to a camt.056, in the order of its requests.
    #[must_use]
    pub fn cancellation_answers(&self, message: MessageNo) -> Option<&[CancelAnswer]> {
        self.cancellations.get(&message).map(Vec::as_slice)
    }

    /// Messages for a shard that it has not confirmed yet: the number of the first, and up to `max` of them from `from` on.
    #[must_use]
    pub fn outbound(&self, to: ShardId, from: u64, max: usize) -> (u64, Vec<ChannelMessage>) {
        let Some(outbound) = self.outbound.get(to.index()) else {
            return (from, Vec::new());
        };
        let first = from.max(outbound.first);
        let skip = usize::try_from(first - outbound.first).unwrap_or(usize::MAX);
        (
            first,
            outbound
                .messages
                .iter()
                .skip(skip)
                .take(max)
                .cloned()
                .collect(),
        )
    }

    /// Numbers of the messages for a shard that are kept: from the first, to before the second.
    #[must_use]
    pub fn outbound_range(&self, to: ShardId) -> (u64, u64) {
        self.outbound
            .get(to.index())
            .map_or((1, 1), |o| (o.first, o.first + o.messages.len() as u64))
    }

    /// The next number expected from a shard: everything below is applied.
    #[must_use]
    pub fn inbound_next(&self, from: ShardId) -> u64 {
        self.inbound.get(from.index()).copied().unwrap_or(1)
    }

    /// Bytes that the hot state holds for payments and messages.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.days.iter().map(DayBook::memory_bytes).sum()
    }

    /// How many payments are within retention.
    #[must_use]
    pub fn payment_count(&self) -> u64 {
        self.days
            .iter()
            .map(|book| book.end_payment().get() - book.first_payment.get())
            .sum()
    }

    /// The next time at which something is due, so that a tick entry is worth proposing.
    #[must_use]
    pub fn next_timer(&self) -> Option<Timestamp> {
        let payment = self.timers.first().map(|(time, ..)| *time);
        let gap = self.gap_timers.first().map(|(time, _)| *time);
        payment.into_iter().chain(gap).min()
    }
}

/// A business day's payments in one shard, by what has become of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PaymentCounts {
    /// Refused when they were taken in.
    pub refused: u64,
    /// Accepted; they wait for netting.
    pub netting: u64,
    /// Accepted; they wait for funds, their turn or their time.
    pub queued: u64,
    /// Settled, final.
    pub settled: u64,
    /// Accepted and refused later.
    pub ended: u64,
    /// Cancelled by their senders.
    pub cancelled: u64,
}

impl PaymentCounts {
    /// All that were accepted, whatever became of them.
    #[must_use]
    pub const fn accepted(&self) -> u64 {
        self.netting + self.queued + self.settled + self.ended + self.cancelled
    }
}

impl std::ops::AddAssign for PaymentCounts {
    fn add_assign(&mut self, other: Self) {
        self.refused += other.refused;
        self.netting += other.netting;
        self.queued += other.queued;
        self.settled += other.settled;
        self.ended += other.ended;
        self.cancelled += other.cancelled;
    }
}

/// Whether a payment was in a cycle's set, by what has become of it since: `Some(true)` when it settled in that cycle.
fn slot_in_cycle(
    book: &DayBook,
    payment: PaymentNo,
    slot: &Slot,
    cycle: CycleNumber,
) -> Option<bool> {
    if book.gross(payment).is_some() {
        return None;
    }
    netted_slot(slot, cycle)
}

/// The same for a payment that is known to settle by netting.
fn netted_slot(slot: &Slot, cycle: CycleNumber) -> Option<bool> {
    match slot.status {
        PaymentStatus::Settled if slot.cycle() == cycle => Some(true),
        PaymentStatus::Settled => (slot.cycle() > cycle).then_some(false),
        PaymentStatus::Netting => Some(false),
        // The last cycle cut before its end tells whether it was still there at this one.
        PaymentStatus::Ended | PaymentStatus::Cancelled => (slot.cycle() >= cycle).then_some(false),
        PaymentStatus::Refused | PaymentStatus::Queued | PaymentStatus::Claiming => None,
    }
}

/// A message's payments that were in a cycle's set.
fn netted_of<'a>(
    book: &'a DayBook,
    cycle: CycleNumber,
    message: MessageNo,
    record: &'a MessageRecord,
) -> impl Iterator<Item = CyclePayment> + 'a {
    // A message settles one way: what came to settle gross is in no cycle, so no payment of it is looked at.
    let gross =
        record.kind == MessageKind::Return || matches!(record.settlement, Settlement::Gross { .. });
    let count = if gross { 0 } else { record.numbered() };
    (0..u64::from(count)).filter_map(move |at| {
        let payment = PaymentNo::new(record.first_payment.get() + at);
        let slot = book.slot(payment)?;
        let settled = netted_slot(slot, cycle)?;
        cycle_payment(book, message, record, payment, slot, settled)
    })
}

fn cycle_payment(
    book: &DayBook,
    message: MessageNo,
    record: &MessageRecord,
    payment: PaymentNo,
    slot: &Slot,
    settled: bool,
) -> Option<CyclePayment> {
    Some(CyclePayment {
        payment,
        id: book.id(payment)?,
        message,
        position: u32::try_from(payment.get() - record.first_payment.get()).ok()?,
        sender: record.sender,
        receiver: slot.receiver,
        currency_place: slot.currency_place,
        amount: slot.amount,
        settled,
    })
}

/// A cycle's settled payments by receiver and currency.
#[derive(Clone, Debug, Default)]
pub struct CycleCredits {
    currencies: usize,
    starts: Vec<usize>,
    payments: Vec<PaymentNo>,
}

impl CycleCredits {
    /// The payments that credit a receiver in the currency at a place of the directory's list.
    #[must_use]
    pub fn of(&self, receiver: ParticipantId, currency_place: usize) -> &[PaymentNo] {
        let key = receiver.index() * self.currencies + currency_place;
        match (self.starts.get(key), self.starts.get(key + 1)) {
            (Some(&start), Some(&end)) => self.payments.get(start..end).unwrap_or(&[]),
            _ => &[],
        }
    }
}
