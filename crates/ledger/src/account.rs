//! Settlement accounts: balance, credit line, reservation, gross queues and the list that waits for netting.

use std::collections::{BTreeSet, VecDeque};

use crate::layout::layout;
use crate::message::Class;
use crate::{AmountMinor, Currency, MessageNo, ParticipantId, PaymentNo};

/// One participant's settlement account in one currency, in its home shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub(crate) participant: ParticipantId,
    pub(crate) currency: Currency,
    pub(crate) currency_place: u8,
    /// Minor units; never below `-credit_line` at any log position (rule R12).
    pub(crate) balance: i128,
    pub(crate) credit_line: AmountMinor,
    /// What the running cycle has set aside; zero when none runs.
    pub(crate) reserved: i128,
    /// Gross payments that wait for funds, by class; in order of arrival inside a class.
    pub(crate) queues: [BTreeSet<PaymentNo>; 3],
    /// Payments that wait for netting, in order of arrival.
    pub(crate) net: VecDeque<Run>,
    /// Balance at the opening of the business day.
    pub(crate) day_opening: i128,
    /// Turnover of the business day.
    pub(crate) day_debits: u128,
    pub(crate) day_credits: u128,
    /// Number of the last statement; they count from 1 and chain.
    pub(crate) statements: u32,
}

layout!(struct Account {
    participant, currency, currency_place, balance, credit_line, reserved, queues, net, day_opening, day_debits,
    day_credits, statements
});

/// Consecutive payments of one message; those with another currency or another status than waiting are not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: PaymentNo,
    pub(crate) len: u32,
    pub(crate) message: MessageNo,
}

layout!(struct Run { first, len, message });

impl Run {
    /// The number after its last payment.
    pub(crate) const fn end(self) -> PaymentNo {
        PaymentNo::new(self.first.get() + self.len as u64)
    }
}

impl Account {
    pub(crate) fn new(
        participant: ParticipantId,
        currency: Currency,
        currency_place: u8,
        credit_line: AmountMinor,
    ) -> Self {
        Self {
            participant,
            currency,
            currency_place,
            balance: 0,
            credit_line,
            reserved: 0,
            queues: Default::default(),
            net: VecDeque::new(),
            day_opening: 0,
            day_debits: 0,
            day_credits: 0,
            statements: 0,
        }
    }

    /// Whose account it is.
    #[must_use]
    pub const fn participant(&self) -> ParticipantId {
        self.participant
    }

    /// Its currency.
    #[must_use]
    pub const fn currency(&self) -> Currency {
        self.currency
    }

    /// Balance in minor units; negative while the credit line is used.
    #[must_use]
    pub const fn balance_minor(&self) -> i128 {
        self.balance
    }

    /// How far the balance may fall below zero.
    #[must_use]
    pub const fn credit_line(&self) -> AmountMinor {
        self.credit_line
    }

    /// Minor units that the running cycle has set aside.
    #[must_use]
    pub const fn reserved_minor(&self) -> i128 {
        self.reserved
    }

    /// What an urgent payment may use: balance and credit line less what is reserved.
    #[must_use]
    pub const fn available_minor(&self) -> i128 {
        self.balance + self.credit_line.signed() - self.reserved
    }

    /// Balance at the opening of the business day.
    #[must_use]
    pub const fn day_opening_minor(&self) -> i128 {
        self.day_opening
    }

    /// Queued gross payments, urgent first, in the order in which they will settle.
    pub fn queued(&self) -> impl Iterator<Item = (Class, PaymentNo)> {
        [Class::Urgent, Class::High, Class::Normal]
            .into_iter()
            .zip(&self.queues)
            .flat_map(|(class, queue)| queue.iter().map(move |&payment| (class, payment)))
    }

    /// The next payment to settle, if any waits.
    pub(crate) fn head(&self) -> Option<PaymentNo> {
        self.queues.iter().find_map(|queue| queue.first().copied())
    }

    /// Whether a payment of this class would overtake one that waits: a more urgent one, or one of its class that came
    /// before it.
    pub(crate) fn waits_before(&self, class: Class, payment: PaymentNo) -> bool {
        let (more_urgent, rest) = self.queues.split_at(class as usize);
        more_urgent.iter().any(|queue| !queue.is_empty())
            || rest
                .first()
                .and_then(BTreeSet::first)
                .is_some_and(|&first| first < payment)
    }
}
