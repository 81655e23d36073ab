//! Gross settlement: a payment alone, in full, at once or as soon as funds allow (rules R8 to R12).

use std::collections::VecDeque;

use crate::day::PaymentStatus;
use crate::entry::{ChannelMessage, CreditAdvice};
use crate::message::{Class, SettlementTimes};
use crate::state::{DayState, Ledger, Timer, Waiting};
use crate::stream::{GrossEvent, ItemBody};
use crate::{LogIndex, PaymentNo, Reason, ShardId, Timestamp};

impl Ledger {
    /// A gross payment has been accepted: settles it, queues it, or refuses it. Returns the output number of what it
    /// emitted for the sender.
    pub(crate) fn enter_gross(
        &mut self,
        payment: PaymentNo,
        account: u32,
        class: Class,
        settle_or_refuse: bool,
        times: SettlementTimes,
    ) -> u64 {
        let today = self
            .book()
            .is_some_and(|book| book.first_payment <= payment);
        if !today || !matches!(self.day, DayState::Open { .. }) {
            // A return whose claim was granted after its day's end, perhaps within the next day.
            return self.end_gross(payment, account, Reason::SettlementBroken);
        }
        if times.reject.is_some_and(|reject| reject <= self.now) {
            return self.end_gross(payment, account, Reason::RejectTimePassed);
        }
        let waiting = Waiting {
            account,
            class,
            settle_or_refuse,
            times,
            queued: false,
        };
        if times.earliest.is_some_and(|earliest| earliest > self.now) {
            self.wait(payment, waiting);
            return self.tell(
                account,
                payment,
                GrossEvent::Queued {
                    reason: Reason::EarliestTime,
                },
            );
        }
        let Some(reason) = self.obstacle(payment, account, class) else {
            return self.settle_and_release(payment, account);
        };
        if settle_or_refuse {
            return self.end_gross(payment, account, reason);
        }
        self.wait(
            payment,
            Waiting {
                queued: true,
                ..waiting
            },
        );
        self.tell(account, payment, GrossEvent::Queued { reason })
    }

    /// Why a payment cannot settle at once; `None` when it can.
    fn obstacle(&self, payment: PaymentNo, account: u32, class: Class) -> Option<Reason> {
        let slot = self.known_slot(payment);
        let account = &self.accounts[account as usize];
        if account.waits_before(class, payment) {
            Some(Reason::QueuedBehind)
        } else if account.available_minor() < slot.amount.signed() {
            Some(Reason::InsufficientFunds)
        } else {
            None
        }
    }

    fn wait(&mut self, payment: PaymentNo, waiting: Waiting) {
        if waiting.queued {
            self.accounts[waiting.account as usize].queues[waiting.class as usize].insert(payment);
        }
        for (timer, time) in timers_of(waiting.times) {
            // A warning or earliest time that has passed asks for nothing any more.
            if time > self.now {
                self.timers.insert((time, timer, payment));
            }
        }
        self.waiting.insert(payment, waiting);
    }

    /// Takes a payment out of queue and timers, whatever becomes of it.
    pub(crate) fn unwait(&mut self, payment: PaymentNo) -> Option<Waiting> {
        let waiting = self.waiting.remove(&payment)?;
        if waiting.queued {
            self.accounts[waiting.account as usize].queues[waiting.class as usize].remove(&payment);
        }
        for (timer, time) in timers_of(waiting.times) {
            self.timers.remove(&(time, timer, payment));
        }
        Some(waiting)
    }

    fn tell(&mut self, account: u32, payment: PaymentNo, event: GrossEvent) -> u64 {
        let participant = self.accounts[account as usize].participant;
        self.emit(participant, 1, ItemBody::Gross { payment, event })
    }

    /// Refuses an accepted payment for good.
    pub(crate) fn end_gross(&mut self, payment: PaymentNo, account: u32, reason: Reason) -> u64 {
        self.unwait(payment);
        self.set_status(payment, PaymentStatus::Ended, Some(reason));
        if let Some(original) = self.claims.remove(&payment) {
            let amount = self.known_slot(payment).amount;
            self.send(
                original.shard,
                ChannelMessage::ReturnReleased { original, amount },
            );
        }
        self.tell(account, payment, GrossEvent::Refused { reason })
    }

    fn settle_and_release(&mut self, payment: PaymentNo, account: u32) -> u64 {
        let (number, credited) = self.settle(payment, account);
        self.release(credited.into_iter().collect());
        number
    }

    /// Debits the sender and credits the receiver, or sends the advice: final with this entry.
    fn settle(&mut self, payment: PaymentNo, account: u32) -> (u64, Option<u32>) {
        let slot = *self.known_slot(payment);
        let (sender, currency) = {
            let account = &self.accounts[account as usize];
            (account.participant, account.currency)
        };
        let (index, now) = (self.index, self.now);
        self.unwait(payment);
        self.claims.remove(&payment);
        self.set_status(payment, PaymentStatus::Settled, None);
        let book = self
            .book_of_mut(payment)
            .expect("a settling payment is within retention");
        if let Some(record) = book.gross_mut(payment) {
            (record.settled, record.settled_time) = (index, now);
        }
        let message = book
            .message_of(payment)
            .map(|(message, _)| message)
            .unwrap_or_default();
        self.post(account, -slot.amount.signed());
        let number = self.tell(account, payment, GrossEvent::Settled);
        let credited = self.credit(CreditAdvice {
            payment: crate::PaymentRef {
                shard: self.shard(),
                payment,
            },
            message,
            sender,
            receiver: slot.receiver,
            currency,
            amount: slot.amount,
        });
        (number, credited)
    }

    /// Settles what can now settle on these accounts, and on those that this credits in turn. Each step settles a
    /// payment, so it ends.
    pub(crate) fn release(&mut self, accounts: Vec<u32>) {
        let mut touched = VecDeque::from(accounts);
        while let Some(number) = touched.pop_front() {
            while let Some(head) = self.accounts[number as usize].head() {
                // A head that cannot settle stops its account; less urgent ones do not overtake it (rule R9).
                let amount = self.known_slot(head).amount.signed();
                if self.accounts[number as usize].available_minor() < amount {
                    break;
                }
                let (_, credited) = self.settle(head, number);
                touched.extend(credited);
            }
        }
    }

    /// A credit from another shard: funds come in.
    pub(crate) fn receive_credit(&mut self, from: ShardId, advice: CreditAdvice) {
        let place = self.accounts_place(advice.currency);
        self.totals[place].received_minor += advice.amount.signed();
        debug_assert_eq!(from, advice.payment.shard);
        let credited = self.credit(advice);
        self.release(credited.into_iter().collect());
    }

    /// Cancels a waiting payment and lets those behind it try.
    pub(crate) fn cancel_gross(&mut self, payment: PaymentNo) {
        if let Some(waiting) = self.unwait(payment) {
            self.set_status(payment, PaymentStatus::Cancelled, None);
            if let Some(original) = self.claims.remove(&payment) {
                let amount = self.known_slot(payment).amount;
                self.send(
                    original.shard,
                    ChannelMessage::ReturnReleased { original, amount },
                );
            }
            self.tell(waiting.account, payment, GrossEvent::Cancelled);
            self.release(vec![waiting.account]);
        }
    }

    /// Acts on every time that has come, before the entry itself.
    pub(crate) fn run_timers(&mut self) {
        while let Some(&(time, timer, payment)) =
            self.timers.first().filter(|(time, ..)| *time <= self.now)
        {
            self.timers.remove(&(time, timer, payment));
            let Some(waiting) = self.waiting.get(&payment).copied() else {
                continue;
            };
            match timer {
                Timer::Earliest => self.become_eligible(payment, waiting),
                Timer::Latest => {
                    self.tell(waiting.account, payment, GrossEvent::Warned);
                }
                Timer::Reject => {
                    let reason = if waiting.queued {
                        Reason::InsufficientFunds
                    } else {
                        Reason::RejectTimePassed
                    };
                    self.end_gross(payment, waiting.account, reason);
                    self.release(vec![waiting.account]);
                }
            }
        }
        self.run_gap_timers();
    }

    /// A payment's earliest time has come: it takes the place that its arrival gives it.
    fn become_eligible(&mut self, payment: PaymentNo, waiting: Waiting) {
        let obstacle = self.obstacle(payment, waiting.account, waiting.class);
        if let (Some(reason), true) = (obstacle, waiting.settle_or_refuse) {
            self.end_gross(payment, waiting.account, reason);
            return;
        }
        // Those that came later and wait already do not stand before it, so it may settle at once.
        if let Some(entry) = self.waiting.get_mut(&payment) {
            entry.queued = true;
        }
        self.accounts[waiting.account as usize].queues[waiting.class as usize].insert(payment);
        if let Some(reason) = obstacle {
            self.tell(waiting.account, payment, GrossEvent::Queued { reason });
        }
        self.release(vec![waiting.account]);
    }
}

fn timers_of(times: SettlementTimes) -> impl Iterator<Item = (Timer, Timestamp)> {
    [
        (Timer::Earliest, times.earliest),
        (Timer::Latest, times.latest),
        (Timer::Reject, times.reject),
    ]
    .into_iter()
    .filter_map(|(timer, time)| time.map(|time| (timer, time)))
}

/// When and where a gross payment became final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finality {
    /// Journal position in the sender's home shard.
    pub index: LogIndex,
    /// Log time.
    pub time: Timestamp,
}
