//! One transaction at its end: its record, and what its elements say together.

use clearspan_ledger::message::{
    Class, OriginalPayment, PaymentRecord, Settlement, SettlementTimes,
};
use clearspan_ledger::{AmountMinor, BusinessDate, Currency, PaymentId, Reason, Timestamp};

use super::{Agent, Channel, Definition, Gather, NO_REQUEST, Place};

impl Gather<'_> {
    /// A transaction, request or report ends. `body` is where its bytes lie in the heap.
    pub(crate) fn close_transaction(
        &mut self,
        content_digest: u64,
        body: (u32, u32),
        place: &dyn Place,
    ) {
        match self.definition {
            Some((Definition::Status, _)) => {
                let transaction = &self.transaction;
                self.requested.id = transaction
                    .original_uetr
                    .or(transaction.original_transaction);
                self.requests
                    .push(std::mem::replace(&mut self.requested, NO_REQUEST));
            }
            Some((Definition::Report, _)) => self.reports.push(std::mem::take(&mut self.report)),
            Some((Definition::Cancellation, _)) => {
                self.close_cancellation(content_digest, body, place)
            }
            _ => self.close_payment(content_digest, body, place),
        }
        self.in_transaction = false;
    }

    fn keep_place(&mut self, place: &dyn Place) {
        if self.starts.is_empty() {
            let path = place.path();
            self.transactions_path = path.strip_suffix("[1]").unwrap_or(&path).to_owned();
        }
        self.starts.push(place.at());
    }

    fn place_in_message(&self) -> u32 {
        // Bounded by the limit on payments.
        u32::try_from(self.payments.len()).unwrap_or(u32::MAX)
    }

    fn close_cancellation(
        &mut self,
        content_digest: u64,
        (body_offset, body_len): (u32, u32),
        place: &dyn Place,
    ) {
        let id = self
            .transaction
            .original_uetr
            .or(self.transaction.original_transaction);
        let id = self.checked_id(id, place);
        if !self.transaction.amount_seen {
            self.sum = None;
        }
        self.keep_place(place);
        let transaction = &self.transaction;
        self.originals.push((
            self.place_in_message(),
            OriginalPayment {
                id,
                reason: transaction.reason.unwrap_or(*b"    "),
            },
        ));
        self.payments.push(PaymentRecord {
            id,
            content_digest,
            amount: transaction.amount.unwrap_or(AmountMinor::ZERO),
            currency: transaction.currency.unwrap_or(Currency::NONE),
            receiver: None,
            date: transaction.common.date.flatten(),
            faults: transaction.faults,
            body_offset,
            body_len,
        });
    }

    fn checked_id(&mut self, id: Option<PaymentId>, place: &dyn Place) -> PaymentId {
        if id.is_none() {
            self.fault(
                place,
                Reason::IdMissing,
                "neither a UETR nor a transaction identifier",
            );
        }
        id.unwrap_or(PaymentId::Transaction(0))
    }

    fn close_payment(
        &mut self,
        content_digest: u64,
        (body_offset, body_len): (u32, u32),
        place: &dyn Place,
    ) {
        let number = self.place_in_message();
        let id = self.transaction.uetr.or(self.transaction.transaction);
        let id = self.checked_id(id, place);
        if self.is(Definition::Return) {
            let original = self
                .transaction
                .original_uetr
                .or(self.transaction.original_transaction);
            let original = self.checked_id(original, place);
            let reason = self.transaction.reason.unwrap_or(*b"    ");
            self.originals.push((
                number,
                OriginalPayment {
                    id: original,
                    reason,
                },
            ));
        }
        if !self.transaction.amount_seen {
            self.sum = None;
            self.fault(place, Reason::AmountInvalid, "no amount");
            self.fault(place, Reason::CurrencyInvalid, "no amount, so no currency");
        }
        let receiver = match self.transaction.common.instructed {
            Agent::Absent => self.group.instructed,
            agent => agent,
        };
        if matches!(receiver, Agent::Absent | Agent::Unnamed) {
            self.fault(
                place,
                Reason::ReceiverInvalid,
                "no instructed agent with a BIC",
            );
        }
        let date = self.date(place);
        self.settlement_of(place);
        self.settlement_times(number, date, place);
        self.keep_place(place);
        let transaction = &self.transaction;
        self.payments.push(PaymentRecord {
            id,
            content_digest,
            amount: transaction.amount.unwrap_or(AmountMinor::ZERO),
            currency: transaction.currency.unwrap_or(Currency::NONE),
            receiver: receiver.bic(),
            date,
            faults: transaction.faults,
            body_offset,
            body_len,
        });
    }

    fn date(&mut self, place: &dyn Place) -> Option<BusinessDate> {
        match (self.group.date, self.transaction.common.date) {
            (None, None) => {
                self.fault(place, Reason::DateInvalid, "no settlement date");
                None
            }
            (Some(date), None) | (None, Some(date)) => date,
            (Some(group), Some(own)) => {
                if group != own {
                    self.fault(
                        place,
                        Reason::DateInvalid,
                        "another settlement date than the group header's",
                    );
                }
                own
            }
        }
    }

    // The decided mapping of channel and priority to how a payment settles; all of a message settle alike.
    fn settlement_of(&mut self, place: &dyn Place) {
        let own = self.transaction.common;
        let channel = own.channel.or(self.group.channel);
        let contradicts = own.channel.is_some()
            && self.group.channel.is_some()
            && own.channel != self.group.channel;
        let priority = self.transaction.priority;
        let pressing = matches!(priority, Some(Class::Urgent | Class::High));
        let gross = Settlement::Gross {
            class: priority.unwrap_or(Class::Normal),
            settle_or_refuse: own.settle_or_refuse || self.group.settle_or_refuse,
        };
        let settlement = match channel {
            _ if self.is(Definition::Return) => gross,
            Some(Channel::Gross) => gross,
            None if pressing => gross,
            _ => Settlement::Net,
        };
        let first = *self.settlement.get_or_insert(settlement);
        let conflict = if contradicts {
            "another clearing channel than the group header's"
        } else if channel == Some(Channel::Net) && pressing && settlement == Settlement::Net {
            "an urgent payment cannot be netted"
        } else if first != settlement {
            "payments of one message settle alike"
        } else {
            return;
        };
        if !self.class_conflict {
            self.class_conflict = true;
            self.fault(place, Reason::ClassConflict, conflict);
        }
    }

    fn settlement_times(&mut self, number: u32, date: Option<BusinessDate>, place: &dyn Place) {
        let times = self.transaction.times;
        if times == [None; 3] {
            return;
        }
        let [from, till, reject] = times;
        let after = |early: Option<i64>, late: Option<i64>| {
            early.zip(late).is_some_and(|(early, late)| early > late)
        };
        if after(from, till) || after(from, reject) || after(till, reject) {
            self.fault(place, Reason::TimesInvalid, "settlement times out of order");
        }
        let Some(date) = date else { return };
        let at = |time: Option<i64>| {
            let midnight = i128::from(date.days()) * 86_400_000_000_000;
            // Years after 2554 do not fit; such a date is refused as a future one.
            time.and_then(|time| u64::try_from(midnight + i128::from(time)).ok())
                .map(Timestamp::from_ns)
        };
        self.times.push((
            number,
            SettlementTimes {
                earliest: at(from),
                latest: at(till),
                reject: at(reject),
            },
        ));
    }
}
