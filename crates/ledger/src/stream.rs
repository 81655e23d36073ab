//! A participant's output: numbered items, each standing for documents that can be derived again at any time.
//!
//! Output is derived, not stored: an item says what a number stands for, in a form that never changes afterwards, so that
//! replay of a range gives the same bytes (rules R23 to R25).

use std::collections::VecDeque;

use crate::entry::{CreditAdvice, RecallNotice};
use crate::layout::layout;
use crate::{
    AmountMinor, BusinessDate, Currency, CycleNumber, LogIndex, MessageNo, PaymentNo, Reason,
    ShardId, Text, Timestamp,
};

/// One position of a participant's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The first number it takes; numbers count from 1 and are contiguous.
    pub number: u64,
    /// How many numbers it takes: one per document.
    pub pages: u32,
    /// The journal position that it proves, in the participant's home shard.
    pub index: LogIndex,
    /// Log time of that entry.
    pub time: Timestamp,
    /// What it stands for.
    pub body: ItemBody,
}

layout!(struct Item { number, pages, index, time, body });

/// What an item stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemBody {
    /// A message was taken in: accepted, refused, or in part (pacs.002).
    Reception {
        /// The message.
        message: MessageNo,
    },
    /// A message came before its turn, or a hole in the numbering persists (admi.007).
    Gap {
        /// The message that waits; empty when the hole is reported again.
        message_id: Text,
        /// The first missing number.
        missing_from: u64,
        /// The last missing number before the first one held.
        missing_through: u64,
    },
    /// A gross payment's state (pacs.002).
    Gross {
        /// The payment, in this shard.
        payment: PaymentNo,
        /// What became of it.
        event: GrossEvent,
    },
    /// A gross payment credited the participant (camt.054, and the payment itself).
    GrossCredit(CreditAdvice),
    /// Central-bank money was put on an account (camt.054).
    Funded {
        /// Its reference.
        reference: Text,
        /// Currency.
        currency: Currency,
        /// Amount.
        amount: AmountMinor,
    },
    /// What a cycle made of one of the participant's messages (pacs.002).
    Netted {
        /// The cycle.
        cycle: CycleNumber,
        /// The message.
        message: MessageNo,
        /// How many of its payments settled.
        settled: u32,
        /// How many were in the set and wait for the next cycle.
        dropped: u32,
    },
    /// The participant's net movements of a cycle (pacs.029).
    NetResult {
        /// The cycle.
        cycle: CycleNumber,
    },
    /// Payments of a cycle that credited the participant, of senders in one shard (camt.054, and the payments).
    NetCredits {
        /// The cycle.
        cycle: CycleNumber,
        /// The senders' shard.
        from: ShardId,
        /// Currency.
        currency: Currency,
        /// How many payments.
        count: u32,
        /// Their sum, in minor units.
        minor: u128,
    },
    /// The answer to a camt.056 (camt.029).
    CancellationAnswer {
        /// The request.
        message: MessageNo,
    },
    /// Another participant asks to have a settled payment sent back (camt.056).
    RecallRequest {
        /// The senders' shard, for the two references.
        from: ShardId,
        /// What is asked.
        notice: RecallNotice,
    },
    /// Payments of a message that had not settled when the business day ended (pacs.002).
    Ended {
        /// The message.
        message: MessageNo,
    },
    /// An account's statement of a business day (camt.053).
    Statement(Box<Statement>),
}

layout!(enum ItemBody {
    0 => Reception { message },
    1 => Gap { message_id, missing_from, missing_through },
    2 => Gross { payment, event },
    3 => GrossCredit(advice),
    4 => Funded { reference, currency, amount },
    5 => Netted { cycle, message, settled, dropped },
    6 => NetResult { cycle },
    7 => NetCredits { cycle, from, currency, count, minor },
    8 => CancellationAnswer { message },
    9 => RecallRequest { from, notice },
    10 => Ended { message },
    11 => Statement(statement),
});

/// What became of a gross payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrossEvent {
    /// Settled, final.
    Settled,
    /// Waits.
    Queued {
        /// For what.
        reason: Reason,
    },
    /// Still waits at the time at which the sender wanted a warning.
    Warned,
    /// Refused.
    Refused {
        /// Why.
        reason: Reason,
    },
    /// Cancelled by its sender while it waited.
    Cancelled,
}

layout!(enum GrossEvent { 0 => Settled, 1 => Queued { reason }, 2 => Warned, 3 => Refused { reason }, 4 => Cancelled });

/// One account over one business day; closing is the next one's opening (rule R37).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Counts from 1 per account.
    pub sequence: u32,
    /// The business date.
    pub date: BusinessDate,
    /// Currency.
    pub currency: Currency,
    /// Balance before the day, in minor units.
    pub opening_minor: i128,
    /// Sum of debits.
    pub debits_minor: u128,
    /// Sum of credits.
    pub credits_minor: u128,
    /// Balance after the day.
    pub closing_minor: i128,
    /// First number of the participant's output of this day.
    pub first_number: u64,
    /// The number after the last one before the statements.
    pub end_number: u64,
}

layout!(struct Statement {
    sequence, date, currency, opening_minor, debits_minor, credits_minor, closing_minor, first_number, end_number
});

/// A participant's numbered output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Items within retention, in order.
    items: VecDeque<Item>,
    next_number: u64,
    acknowledged: u64,
    /// First number after the last statements: where the next ones begin.
    pub(crate) day_first_number: u64,
}

layout!(struct Stream { items, next_number, acknowledged, day_first_number });

impl Default for Stream {
    fn default() -> Self {
        Self {
            items: VecDeque::new(),
            next_number: 1,
            acknowledged: 0,
            day_first_number: 1,
        }
    }
}

impl Stream {
    pub(crate) fn push(
        &mut self,
        pages: u32,
        index: LogIndex,
        time: Timestamp,
        body: ItemBody,
    ) -> u64 {
        let number = self.next_number;
        self.next_number += u64::from(pages);
        self.items.push_back(Item {
            number,
            pages,
            index,
            time,
            body,
        });
        number
    }

    /// The number that the next item will take.
    #[must_use]
    pub const fn next_number(&self) -> u64 {
        self.next_number
    }

    /// The highest number that the participant said it has.
    #[must_use]
    pub const fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub(crate) fn acknowledge(&mut self, through: u64) {
        self.acknowledged = self.acknowledged.max(through.min(self.next_number - 1));
    }

    /// The item that a number belongs to; `None` before retention or after the end.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<&Item> {
        let at = self
            .items
            .partition_point(|item| item.number + u64::from(item.pages) <= number);
        self.items.get(at).filter(|item| item.number <= number)
    }

    /// Items whose numbers reach into `from..end`, in order.
    pub fn range(&self, from: u64, end: u64) -> impl Iterator<Item = &Item> {
        let at = self
            .items
            .partition_point(|item| item.number + u64::from(item.pages) <= from);
        self.items
            .range(at..)
            .take_while(move |item| item.number < end)
    }

    /// All items within retention.
    pub fn iter(&self) -> impl Iterator<Item = &Item> {
        self.items.iter()
    }

    /// Forgets business days before `oldest`, which opened at `opened`. A day's output ends with its statements: what was
    /// put out between two days belongs to the later one, whose statement accounts for it.
    pub(crate) fn retain_from(&mut self, oldest: BusinessDate, opened: LogIndex) {
        let ended = |item: &Item| matches!(&item.body, ItemBody::Statement(statement) if statement.date < oldest);
        let is_statement = |item: &Item| matches!(item.body, ItemBody::Statement(_));
        if let Some(last) = self.items.iter().rposition(ended) {
            self.items.drain(..=last);
        } else if !self.items.iter().any(is_statement) {
            // A participant without an account has no statements.
            self.items
                .drain(..self.items.partition_point(|item| item.index < opened));
        }
    }
}
