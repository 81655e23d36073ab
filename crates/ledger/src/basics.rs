//! Layouts of the basic types, beside each other because each is a line or two.

use crate::layout::{Layout, Sink, Source, layout};
use crate::message::{
    Class, MessageKind, OriginalPayment, PaymentRecord, Settlement, SettlementTimes, Submission,
};
use crate::{
    AmountMinor, Bic, BusinessDate, Currency, CycleNumber, LogIndex, MessageNo, ParticipantId,
    PaymentId, PaymentNo, PaymentRef, Reason, ReasonSet, ShardId, Text, Timestamp,
};

macro_rules! through {
    ($($name:ident: $wire:ty, $to:expr, $from:expr, $what:literal;)+) => { $(
        impl Layout for $name {
            #[inline]
            fn put<S: Sink>(&self, sink: &mut S) {
                let wire: $wire = $to(*self);
                wire.put(sink);
            }
            #[inline]
            fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
                let wire = <$wire>::take(source)?;
                let value: Option<Self> = $from(wire);
                value.ok_or_else(|| source.invalid($what))
            }
        }
    )+ };
}

through! {
    ShardId: u16, |v: Self| v.get(), |w| Some(Self::new(w)), "shard";
    ParticipantId: u16, |v: Self| v.get(), |w| Some(Self::new(w)), "participant";
    LogIndex: u64, |v: Self| v.get(), |w| Some(Self::new(w)), "log index";
    MessageNo: u64, |v: Self| v.get(), |w| Some(Self::new(w)), "message number";
    PaymentNo: u64, |v: Self| v.get(), |w| Some(Self::new(w)), "payment number";
    CycleNumber: u32, |v: Self| v.get(), |w| Some(Self::new(w)), "cycle number";
    Timestamp: u64, |v: Self| v.ns(), |w| Some(Self::from_ns(w)), "time";
    BusinessDate: u32, |v: Self| v.days(), |w| Some(Self::from_days(w)).filter(|d| d.days() == w), "a date is after the year 9999";
    AmountMinor: u64, |v: Self| v.minor(), Self::new, "an amount has more than 18 digits";
    Reason: u8, |v: Self| v.rank(), Self::from_rank, "no such reason";
    ReasonSet: u64, |v: Self| v.bits(), Self::from_bits, "no such reason";
    MessageKind: u8, |v: Self| Self::ALL.iter().position(|&k| k == v).and_then(|p| u8::try_from(p).ok()).unwrap_or(0),
        |w: u8| Self::ALL.get(usize::from(w)).copied(), "no such kind of message";
}

impl Layout for Bic {
    #[inline]
    fn put<S: Sink>(&self, sink: &mut S) {
        sink.raw(self.as_bytes());
    }
    #[inline]
    fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
        let code: [u8; 11] = source.raw()?;
        Self::parse(&code).ok_or_else(|| source.invalid("not a BIC"))
    }
}

impl Layout for Currency {
    #[inline]
    fn put<S: Sink>(&self, sink: &mut S) {
        sink.raw(self.as_bytes());
    }
    #[inline]
    fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
        let code: [u8; 3] = source.raw()?;
        Self::parse(&code).ok_or_else(|| source.invalid("not a currency code"))
    }
}

impl Layout for Text {
    fn put<S: Sink>(&self, sink: &mut S) {
        let text = self.as_str().as_bytes();
        u8::try_from(text.len()).unwrap_or(0).put(sink);
        sink.raw(text);
    }
    fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
        let len = u8::take(source)?;
        let bytes = source.slice(usize::from(len))?;
        std::str::from_utf8(&bytes)
            .ok()
            .and_then(Self::new)
            .ok_or_else(|| source.invalid("not a text of at most 35 bytes"))
    }
}

impl Layout for PaymentId {
    #[inline]
    fn put<S: Sink>(&self, sink: &mut S) {
        // The version nibble of a UUID tells the two kinds apart.
        self.bits().put(sink);
    }
    #[inline]
    fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
        Self::from_bits(u128::take(source)?).ok_or_else(|| source.invalid("not a payment key"))
    }
}

layout!(struct PaymentRef { shard, payment });
layout!(enum Class { 0 => Urgent, 1 => High, 2 => Normal });
layout!(enum Settlement { 0 => Net, 1 => Gross { class, settle_or_refuse } });
layout!(struct SettlementTimes { earliest, latest, reject });
layout!(struct OriginalPayment { id, reason });
layout!(struct PaymentRecord {
    id, content_digest, amount, currency, receiver, date, faults, body_offset, body_len
});
layout!(struct Submission {
    kind, version, sender, message_id, digest, sequence, settlement, faults, payments, times, originals, heap
});
