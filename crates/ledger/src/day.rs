//! One business day's memory: messages, payments, and the keys by which duplicates are known.
//!
//! A payment dated outside the open day is refused, so a day's keys matter for that day alone, and a day leaves memory as
//! a whole when its retention ends (rule R4).

use crate::layout::{Layout, Sink, Source, layout};
use crate::message::{Class, MessageKind, Settlement};
use crate::table::{Chunked, Hasher, Index};
use crate::{
    AmountMinor, BusinessDate, CycleNumber, LogIndex, MessageNo, ParticipantId, PaymentId,
    PaymentNo, Reason, Text, Timestamp,
};

/// What became of a payment so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaymentStatus {
    /// Refused when it was taken in.
    Refused,
    /// Accepted, waits for netting.
    Netting,
    /// Settled, final.
    Settled,
    /// Gross, waits for funds, its turn or its time.
    Queued,
    /// Accepted, and refused later: its time passed, or the day ended.
    Ended,
    /// Cancelled by its sender before it settled.
    Cancelled,
    /// A return that waits for the original's shard to grant it.
    Claiming,
}

layout!(enum PaymentStatus {
    0 => Refused, 1 => Netting, 2 => Settled, 3 => Queued, 4 => Ended, 5 => Cancelled, 6 => Claiming
});

/// The most a cycle number may be, so that it fits beside a reason: a cycle a minute for 30 years.
pub(crate) const CYCLES_MAX: u32 = (1 << 24) - 1;

/// What the hot state keeps of one payment besides its key and content digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) amount: AmountMinor,
    /// Cycle number in the upper 24 bits (of settlement; for the other ends, the last one cut before), reason in the rest.
    detail: u32,
    pub(crate) receiver: ParticipantId,
    pub(crate) currency_place: u8,
    pub(crate) status: PaymentStatus,
}

// The memory budget per payment rests on this.
const _: () = assert!(size_of::<Slot>() == 16);

layout!(struct Slot { amount, detail, receiver, currency_place, status });

impl Slot {
    pub(crate) const NO_REASON: u8 = 0xFF;

    pub(crate) const fn new(
        amount: AmountMinor,
        receiver: ParticipantId,
        currency_place: u8,
        status: PaymentStatus,
    ) -> Self {
        Self {
            amount,
            detail: Self::NO_REASON as u32,
            receiver,
            currency_place,
            status,
        }
    }

    /// Moves on to a later status, at a cycle and for a reason where there is one.
    pub(crate) fn become_(
        &mut self,
        status: PaymentStatus,
        cycle: CycleNumber,
        reason: Option<Reason>,
    ) {
        self.status = status;
        self.detail = cycle.get() << 8 | u32::from(reason.map_or(Self::NO_REASON, Reason::rank));
    }

    pub(crate) const fn cycle(&self) -> CycleNumber {
        CycleNumber::new(self.detail >> 8)
    }

    pub(crate) fn reason(&self) -> Option<Reason> {
        Reason::from_rank((self.detail & 0xFF) as u8)
    }
}

/// A message as it was taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRecord {
    /// Kind.
    pub kind: MessageKind,
    /// Version of the definition.
    pub version: u8,
    /// Who sent it.
    pub sender: ParticipantId,
    /// Its identifier.
    pub message_id: Text,
    /// Digest of its canonical form.
    pub digest: u128,
    /// Its number in the sender's sequence.
    pub sequence: Option<u64>,
    /// How its payments settle.
    pub settlement: Settlement,
    /// Why it was refused as a whole, if it was.
    pub refused: Option<Reason>,
    /// Journal position: the moment of entry.
    pub index: LogIndex,
    /// Log time of that entry.
    pub time: Timestamp,
    /// Its first payment; of no meaning when it was refused as a whole.
    pub first_payment: PaymentNo,
    /// How many payments it states.
    pub count: u32,
    /// How many of them were refused when it was taken in.
    pub refused_count: u32,
    /// The output number of the stored answer.
    pub answer: u64,
}

layout!(struct MessageRecord {
    kind, version, sender, message_id, digest, sequence, settlement, refused, index, time, first_payment, count,
    refused_count, answer
});

impl MessageRecord {
    /// How many payments have a number.
    #[must_use]
    pub const fn numbered(&self) -> u32 {
        if self.refused.is_some() || matches!(self.kind, MessageKind::Cancellation) {
            0
        } else {
            self.count
        }
    }
}

/// What is kept of a gross payment besides its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GrossRecord {
    pub(crate) payment: PaymentNo,
    pub(crate) class: Class,
    /// When it settled; zero before.
    pub(crate) settled: LogIndex,
    pub(crate) settled_time: Timestamp,
}

layout!(struct GrossRecord { payment, class, settled, settled_time });

/// One business day's messages and payments in one shard.
#[derive(Clone, Debug)]
pub(crate) struct DayBook {
    pub(crate) date: BusinessDate,
    pub(crate) opened: LogIndex,
    pub(crate) first_payment: PaymentNo,
    pub(crate) first_message: MessageNo,
    hasher: Hasher,
    slots: Chunked<Slot>,
    ids: Chunked<u128>,
    contents: Chunked<u64>,
    messages: Chunked<MessageRecord>,
    /// Messages whose payments have numbers: any number of others may lie between them.
    carriers: Chunked<MessageNo>,
    gross: Chunked<GrossRecord>,
    by_id: Index,
    by_content: Index,
    by_message_id: Index,
}

impl DayBook {
    pub(crate) fn new(
        date: BusinessDate,
        opened: LogIndex,
        first_payment: PaymentNo,
        first_message: MessageNo,
        seed: u128,
    ) -> Self {
        Self {
            date,
            opened,
            first_payment,
            first_message,
            hasher: Hasher { seed },
            slots: Chunked::default(),
            ids: Chunked::default(),
            contents: Chunked::default(),
            messages: Chunked::default(),
            carriers: Chunked::default(),
            gross: Chunked::default(),
            by_id: Index::default(),
            by_content: Index::default(),
            by_message_id: Index::default(),
        }
    }

    pub(crate) fn end_payment(&self) -> PaymentNo {
        PaymentNo::new(self.first_payment.get() + self.slots.len() as u64)
    }

    fn at(&self, payment: PaymentNo) -> Option<usize> {
        payment
            .get()
            .checked_sub(self.first_payment.get())
            .and_then(|at| usize::try_from(at).ok())
    }

    pub(crate) fn slot(&self, payment: PaymentNo) -> Option<&Slot> {
        self.slots.get(self.at(payment)?)
    }

    pub(crate) fn slot_mut(&mut self, payment: PaymentNo) -> Option<&mut Slot> {
        let at = self.at(payment)?;
        self.slots.get_mut(at)
    }

    pub(crate) fn id(&self, payment: PaymentNo) -> Option<PaymentId> {
        PaymentId::from_bits(*self.ids.get(self.at(payment)?)?)
    }

    /// The slots of `first..end`, for passes over a whole cycle.
    pub(crate) fn slots(
        &self,
        first: PaymentNo,
        end: PaymentNo,
    ) -> impl DoubleEndedIterator<Item = &[Slot]> {
        self.slots
            .slices(self.at(first).unwrap_or(0), self.at(end).unwrap_or(0))
    }

    pub(crate) fn slots_mut(
        &mut self,
        first: PaymentNo,
        end: PaymentNo,
    ) -> impl Iterator<Item = &mut [Slot]> {
        let (first, end) = (self.at(first).unwrap_or(0), self.at(end).unwrap_or(0));
        self.slots.slices_mut(first, end)
    }

    pub(crate) fn message(&self, message: MessageNo) -> Option<&MessageRecord> {
        let at = message.get().checked_sub(self.first_message.get())?;
        self.messages.get(usize::try_from(at).ok()?)
    }

    pub(crate) fn message_mut(&mut self, message: MessageNo) -> Option<&mut MessageRecord> {
        let at = message.get().checked_sub(self.first_message.get())?;
        self.messages.get_mut(usize::try_from(at).ok()?)
    }

    pub(crate) fn messages(&self) -> impl Iterator<Item = (MessageNo, &MessageRecord)> {
        (self.first_message.get()..)
            .map(MessageNo::new)
            .zip(self.messages.iter())
    }

    /// The message that a payment came with.
    pub(crate) fn message_of(&self, payment: PaymentNo) -> Option<(MessageNo, &MessageRecord)> {
        // Messages ascend by their first payment.
        let (mut low, mut high) = (0, self.carriers.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let (_, record) = self.carrier(middle)?;
            if record.first_payment <= payment {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let (message, record) = self.carrier(low.checked_sub(1)?)?;
        let end = record.first_payment.get() + u64::from(record.numbered());
        (payment.get() < end).then_some((message, record))
    }

    fn carrier(&self, at: usize) -> Option<(MessageNo, &MessageRecord)> {
        let message = *self.carriers.get(at)?;
        Some((message, self.message(message)?))
    }

    pub(crate) fn gross(&self, payment: PaymentNo) -> Option<&GrossRecord> {
        self.gross.get(self.gross_at(payment)?)
    }

    pub(crate) fn gross_mut(&mut self, payment: PaymentNo) -> Option<&mut GrossRecord> {
        let at = self.gross_at(payment)?;
        self.gross.get_mut(at)
    }

    fn gross_at(&self, payment: PaymentNo) -> Option<usize> {
        let (mut low, mut high) = (0, self.gross.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.gross.get(middle)?.payment.cmp(&payment) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    pub(crate) fn push_gross(&mut self, record: GrossRecord) {
        self.gross.push(record);
    }

    /// Messages of this sender with this identifier: at most one was accepted, others were refused for using it again.
    pub(crate) fn messages_with_id(
        &self,
        sender: ParticipantId,
        id: &Text,
    ) -> impl Iterator<Item = (MessageNo, &MessageRecord)> {
        let key = Self::message_key(id);
        self.by_message_id
            .find(self.hasher.hash(key, sender.get()))
            .filter_map(move |at| {
                let record = self.messages.get(at)?;
                (record.sender == sender && record.message_id == *id)
                    .then_some((MessageNo::new(self.first_message.get() + at as u64), record))
            })
    }

    pub(crate) fn push_message(&mut self, record: MessageRecord) {
        let position = self.messages.len();
        let key = Self::message_key(&record.message_id);
        let hash = self.hasher.hash(key, record.sender.get());
        if record.numbered() > 0 {
            let message = MessageNo::new(self.first_message.get() + position as u64);
            self.carriers.push(message);
        }
        self.messages.push(record);
        self.by_message_id.insert(hash, position);
    }

    fn message_key(id: &Text) -> u128 {
        xxhash_rust::xxh3::xxh3_128(id.as_str().as_bytes())
    }

    /// The hash under which a sender's payment key is found. The key's hash needs no sender: UETRs are unique in the
    /// world, and a transaction identifier that two senders use costs one more comparison.
    #[inline]
    pub(crate) fn id_hash(&self, id: PaymentId) -> u64 {
        self.hasher.hash(id.bits(), 0)
    }

    #[inline]
    pub(crate) fn content_hash(&self, content: u64) -> u64 {
        self.hasher.hash(u128::from(content), 1)
    }

    /// Payments with this key, of any sender.
    #[inline]
    pub(crate) fn payments_with_id(
        &self,
        hash: u64,
        id: PaymentId,
    ) -> impl Iterator<Item = PaymentNo> {
        self.by_id
            .find(hash)
            .filter(move |&at| self.ids.get(at) == Some(&id.bits()))
            .map(|at| PaymentNo::new(self.first_payment.get() + at as u64))
    }

    /// Payments with this content, of any sender.
    #[inline]
    pub(crate) fn payments_with_content(
        &self,
        hash: u64,
        content: u64,
    ) -> impl Iterator<Item = PaymentNo> {
        self.by_content
            .find(hash)
            .filter(move |&at| self.contents.get(at) == Some(&content))
            .map(|at| PaymentNo::new(self.first_payment.get() + at as u64))
    }

    pub(crate) fn content(&self, payment: PaymentNo) -> Option<u64> {
        self.contents.get(self.at(payment)?).copied()
    }

    /// Loads the index lines of a payment to come, so that the loads of a whole package overlap.
    #[inline]
    pub(crate) fn touch(&self, id_hash: u64, content_hash: u64) -> u64 {
        self.by_id.touch(id_hash) ^ self.by_content.touch(content_hash)
    }

    #[inline]
    pub(crate) fn push_payment(
        &mut self,
        slot: Slot,
        id: PaymentId,
        content: u64,
        id_hash: u64,
        content_hash: u64,
    ) {
        let position = self.slots.len();
        self.slots.push(slot);
        self.ids.push(id.bits());
        self.contents.push(content);
        self.by_id.insert(id_hash, position);
        self.by_content.insert(content_hash, position);
    }

    /// Bytes held for payments and messages.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.slots.memory_bytes()
            + self.ids.memory_bytes()
            + self.contents.memory_bytes()
            + self.messages.memory_bytes()
            + self.carriers.memory_bytes()
            + self.gross.memory_bytes()
            + self.by_id.memory_bytes()
            + self.by_content.memory_bytes()
            + self.by_message_id.memory_bytes()
    }
}

impl Layout for DayBook {
    fn put<S: Sink>(&self, sink: &mut S) {
        self.date.put(sink);
        self.opened.put(sink);
        self.first_payment.put(sink);
        self.first_message.put(sink);
        self.hasher.seed.put(sink);
        self.slots.put(sink);
        self.ids.put(sink);
        self.contents.put(sink);
        self.messages.put(sink);
        self.gross.put(sink);
    }

    fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
        let (date, opened) = Layout::take(source)?;
        let (first_payment, first_message, seed) = Layout::take(source)?;
        let mut book = Self::new(date, opened, first_payment, first_message, seed);
        let slots: Chunked<Slot> = Layout::take(source)?;
        let ids: Chunked<u128> = Layout::take(source)?;
        let contents: Chunked<u64> = Layout::take(source)?;
        if ids.len() != slots.len() || contents.len() != slots.len() {
            return Err(source.invalid("payments, keys and contents differ in number"));
        }
        // The indexes are derived, so they are made again rather than read.
        for ((slot, &id), &content) in slots.iter().zip(ids.iter()).zip(contents.iter()) {
            let id = PaymentId::from_bits(id).ok_or_else(|| source.invalid("not a payment key"))?;
            let (id_hash, content_hash) = (book.id_hash(id), book.content_hash(content));
            book.push_payment(*slot, id, content, id_hash, content_hash);
        }
        let messages: Chunked<MessageRecord> = Layout::take(source)?;
        for message in messages.iter() {
            book.push_message(message.clone());
        }
        book.gross = Layout::take(source)?;
        Ok(book)
    }
}
