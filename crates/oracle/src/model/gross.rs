//! Gross settlement (rules R8 to R12): at once, or in a queue by class and arrival, or not.

use std::collections::VecDeque;

use super::{DayState, Shard};
use crate::plain::{Advice, Body, Event, Holder, Letter, Reason, Status, Times};

impl Shard {
    /// An accepted payment tries; the number of what its sender is told.
    pub(super) fn enter(&mut self, at: u64) -> u64 {
        let now_ns = self.now_ns;
        let payment = self.payment(at);
        let today = payment.day + 1 == self.days.len() && matches!(self.day, DayState::Open(_));
        let times = payment.times;
        if !today {
            // A return that was granted after its day's end (ADR 0014).
            return self.end(at, Reason::SettlementBroken);
        }
        if times.reject.is_some_and(|reject| reject <= now_ns) {
            return self.end(at, Reason::RejectTimePassed);
        }
        // What is over when a payment comes asks for nothing.
        let ahead = |time: &u64| *time > now_ns;
        let times = Times {
            earliest: times.earliest.filter(ahead),
            latest: times.latest.filter(ahead),
            reject: times.reject,
        };
        let payment = self.payment_mut(at);
        payment.times = times;
        payment.status = Status::Queued;
        if times.earliest.is_some() {
            return self.tell_event(at, Event::Queued(Reason::EarliestTime));
        }
        match self.obstacle(at) {
            None => {
                let told = self.settle(at, &mut VecDeque::new());
                let credited = self.payment(at).receiver().clone();
                self.release(vec![credited]);
                told
            }
            Some(reason) if self.payment(at).or_refuse => self.end(at, reason),
            Some(reason) => {
                self.payment_mut(at).queued = true;
                self.tell_event(at, Event::Queued(reason))
            }
        }
    }

    fn stands_in_queue(&self, at: u64) -> bool {
        let payment = self.payment(at);
        payment.status == Status::Queued && payment.queued
    }

    /// Why a payment cannot settle now.
    fn obstacle(&self, at: u64) -> Option<Reason> {
        let mine = self.payment(at);
        let before = self.numbers().any(|other| {
            let payment = self.payment(other);
            other != at
                && payment.from == mine.from
                && self.stands_in_queue(other)
                && (payment.class, other) < (mine.class, at)
        });
        if before {
            Some(Reason::QueuedBehind)
        } else if self.available(&mine.from) < mine.signed() {
            Some(Reason::InsufficientFunds)
        } else {
            None
        }
    }

    fn tell_event(&mut self, at: u64, event: Event) -> u64 {
        let bank = self.payment(at).from.bank.clone();
        self.tell(&bank, 1, Body::Gross { payment: at, event })
    }

    /// Settles; a home account that was credited is noted.
    fn settle(&mut self, at: u64, credited: &mut VecDeque<Holder>) -> u64 {
        let payment = self.payment_mut(at);
        payment.status = Status::Settled;
        payment.queued = false;
        let (from, to, minor) = (
            payment.from.clone(),
            payment.receiver().clone(),
            payment.minor,
        );
        let message = payment.message;
        self.post(&from, -i128::from(minor));
        let told = self.tell_event(at, Event::Settled);
        let advice = Advice {
            payment: (self.me(), at),
            message,
            sender: from.bank,
            to: to.clone(),
            minor,
        };
        if self.accounts.contains_key(&to) {
            self.credit_here(advice);
            credited.push_back(to);
        } else {
            let home = self.home(&to.bank);
            self.send(home, Letter::Credit(advice));
        }
        told
    }

    pub(super) fn credit_here(&mut self, advice: Advice) {
        let holder = advice.to.clone();
        self.post(&holder, i128::from(advice.minor));
        self.tell(&holder.bank, 1, Body::GrossCredit(advice));
    }

    /// The payment whose turn it is on an account.
    fn head(&self, holder: &Holder) -> Option<u64> {
        self.numbers()
            .filter(|&at| self.payment(at).from == *holder && self.stands_in_queue(at))
            .min_by_key(|&at| (self.payment(at).class, at))
    }

    /// Accounts whose means grew let their queues try, and whoever that credits after them. Nobody overtakes.
    pub(super) fn release(&mut self, holders: Vec<Holder>) {
        let mut touched: VecDeque<Holder> = holders
            .into_iter()
            .filter(|holder| self.accounts.contains_key(holder))
            .collect();
        while let Some(holder) = touched.pop_front() {
            while let Some(at) = self.head(&holder) {
                if self.available(&holder) < self.payment(at).signed() {
                    break;
                }
                self.settle(at, &mut touched);
            }
        }
    }

    pub(super) fn release_all(&mut self) {
        let waiting = self
            .own_holders()
            .into_iter()
            .filter(|holder| self.head(holder).is_some())
            .collect();
        self.release(waiting);
    }

    /// Refuses an accepted payment for good; a return gives its claim back.
    pub(super) fn end(&mut self, at: u64, reason: Reason) -> u64 {
        let payment = self.payment_mut(at);
        payment.status = Status::Ended;
        payment.reason = Some(reason);
        payment.queued = false;
        self.give_back(at);
        self.tell_event(at, Event::Refused(reason))
    }

    fn give_back(&mut self, at: u64) {
        let payment = self.payment_mut(at);
        let minor = payment.minor;
        if let Some(original) = payment.claimed.take() {
            self.send(original.0, Letter::Released { original, minor });
        }
    }

    pub(super) fn cancel_waiting(&mut self, at: u64) {
        let payment = self.payment_mut(at);
        payment.status = Status::Cancelled;
        payment.queued = false;
        let holder = payment.from.clone();
        self.give_back(at);
        self.tell_event(at, Event::Cancelled);
        self.release(vec![holder]);
    }

    /// Every time that has come acts, in order, before the entry itself.
    pub(super) fn pass_time(&mut self) {
        loop {
            let mut due: Option<(u64, u8, u64)> = None;
            for at in self.numbers() {
                let payment = self.payment(at);
                if payment.status != Status::Queued {
                    continue;
                }
                let times = [
                    payment.times.earliest,
                    payment.times.latest,
                    payment.times.reject,
                ];
                for (kind, time) in (0..).zip(times) {
                    let Some(time) = time.filter(|&time| time <= self.now_ns) else {
                        continue;
                    };
                    let this = (time, kind, at);
                    if due.is_none_or(|first| this < first) {
                        due = Some(this);
                    }
                }
            }
            let Some((_, kind, at)) = due else { break };
            match kind {
                0 => self.earliest_came(at),
                1 => {
                    self.payment_mut(at).times.latest = None;
                    self.tell_event(at, Event::Warned);
                }
                _ => {
                    let holder = self.payment(at).from.clone();
                    let reason = if self.payment(at).queued {
                        Reason::InsufficientFunds
                    } else {
                        Reason::RejectTimePassed
                    };
                    self.end(at, reason);
                    self.release(vec![holder]);
                }
            }
        }
        self.tell_gaps();
    }

    /// It takes the place that its arrival gives it.
    fn earliest_came(&mut self, at: u64) {
        self.payment_mut(at).times.earliest = None;
        let obstacle = self.obstacle(at);
        match obstacle {
            Some(reason) if self.payment(at).or_refuse => {
                self.end(at, reason);
                return;
            }
            Some(reason) => {
                self.tell_event(at, Event::Queued(reason));
            }
            None => {}
        }
        let payment = self.payment_mut(at);
        payment.queued = true;
        let holder = payment.from.clone();
        self.release(vec![holder]);
    }

    /// The reason that is shown for a payment.
    pub(super) fn shown_reason(&self, at: u64) -> Option<Reason> {
        let payment = self.payment(at);
        if payment.status != Status::Queued {
            return payment.reason;
        }
        Some(if !payment.queued {
            Reason::EarliestTime
        } else if self.head(&payment.from) == Some(at) {
            Reason::InsufficientFunds
        } else {
            Reason::QueuedBehind
        })
    }
}
