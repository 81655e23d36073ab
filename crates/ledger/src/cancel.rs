//! Cancellation while a payment waits, recall when it is final, and returns (rules R10, R34).

use crate::day::PaymentStatus;
use crate::entry::{ChannelMessage, RecallNotice, ReturnClaim, Verdict};
use crate::message::{Class, SettlementTimes, Submission};
use crate::state::{CancelAnswer, CancelOutcome, Ledger};
use crate::stream::ItemBody;
use crate::{
    AmountMinor, MessageNo, ParticipantId, PaymentId, PaymentNo, PaymentRef, Reason, ShardId,
};

impl Ledger {
    /// Decides one request of a camt.056. Log order decides between cancelling and settling: exactly one wins.
    pub(crate) fn cancel(
        &mut self,
        sender: ParticipantId,
        request: MessageNo,
        position: u32,
        submission: &Submission,
    ) -> CancelAnswer {
        let record = submission.payments[position as usize];
        let request_reason = submission
            .originals
            .binary_search_by_key(&position, |(at, _)| *at)
            .map_or(*b"NARR", |at| submission.originals[at].1.reason);
        let answer = |payment, outcome| CancelAnswer {
            payment,
            outcome,
            request_reason,
        };
        let mut faults = record.faults;
        if self.cut_off_passed(submission.kind) {
            faults.insert(Reason::CutOffPassed);
        }
        if let Some(reason) = faults.first() {
            return answer(None, CancelOutcome::Refused { reason });
        }
        let Some(payment) = self.find_payment(sender, record.id) else {
            return answer(
                None,
                CancelOutcome::Refused {
                    reason: Reason::OriginalUnknown,
                },
            );
        };
        let slot = *self.known_slot(payment);
        let outcome = match slot.status {
            PaymentStatus::Queued => {
                self.cancel_gross(payment);
                CancelOutcome::Cancelled
            }
            PaymentStatus::Netting
                if self
                    .running
                    .as_ref()
                    .is_some_and(|running| payment < running.cut_below) =>
            {
                // The cycle's set is fixed; until it ends the payment can neither leave nor be said to be final.
                CancelOutcome::Refused {
                    reason: Reason::InSettlement,
                }
            }
            PaymentStatus::Netting => {
                self.set_status(payment, PaymentStatus::Cancelled, None);
                CancelOutcome::Cancelled
            }
            PaymentStatus::Claiming => CancelOutcome::Refused {
                reason: Reason::InSettlement,
            },
            PaymentStatus::Settled => {
                let notice = RecallNotice {
                    original: PaymentRef {
                        shard: self.shard(),
                        payment,
                    },
                    sender,
                    receiver: slot.receiver,
                    request,
                    position,
                };
                self.send(self.home_of(slot.receiver), ChannelMessage::Recall(notice));
                CancelOutcome::Recalled
            }
            PaymentStatus::Refused | PaymentStatus::Ended | PaymentStatus::Cancelled => {
                CancelOutcome::Refused {
                    reason: Reason::AlreadyEnded,
                }
            }
        };
        answer(Some(payment), outcome)
    }

    /// The payment of this sender under this key, the accepted one before refused ones, newest day first.
    #[must_use]
    pub fn find_payment(&self, sender: ParticipantId, id: PaymentId) -> Option<PaymentNo> {
        let mine = || {
            self.days.iter().rev().flat_map(move |book| {
                book.payments_with_id(book.id_hash(id), id)
                    .filter(move |&payment| {
                        book.message_of(payment)
                            .is_some_and(|(_, record)| record.sender == sender)
                    })
                    .filter_map(move |payment| Some((payment, book.slot(payment)?.status)))
            })
        };
        // A refused payment holds no key, on whatever day it came: it never hides an accepted one.
        mine()
            .find(|(_, status)| *status != PaymentStatus::Refused)
            .or_else(|| mine().next())
            .map(|(payment, _)| payment)
    }

    pub(crate) fn receive_recall(&mut self, from: ShardId, notice: RecallNotice) {
        self.emit(notice.receiver, 1, ItemBody::RecallRequest { from, notice });
    }

    /// A return wants its part of an original that this shard took in: the sum of returns never exceeds the original.
    pub(crate) fn receive_claim(&mut self, from: ShardId, claim: &ReturnClaim) {
        let verdict = match self.judge_claim(claim) {
            Ok(payment) => {
                let returned = self.returned.entry(payment).or_default();
                *returned = AmountMinor::new(returned.minor() + claim.amount.minor())
                    .expect("returns stay below the original");
                self.digest.fold(payment.get() ^ claim.amount.minor());
                Verdict::Granted {
                    original: PaymentRef {
                        shard: self.shard(),
                        payment,
                    },
                }
            }
            Err(reason) => Verdict::Refused { reason },
        };
        let claim = claim.claim;
        self.send(from, ChannelMessage::ReturnVerdict { claim, verdict });
    }

    fn judge_claim(&self, claim: &ReturnClaim) -> Result<PaymentNo, Reason> {
        let payment = self
            .find_payment(claim.original_sender, claim.original)
            .ok_or(Reason::OriginalUnknown)?;
        let slot = self.known_slot(payment);
        if slot.receiver != claim.returner || slot.status != PaymentStatus::Settled {
            return Err(Reason::OriginalUnknown);
        }
        if self.directory.currency_place(claim.currency) != Some(slot.currency_place) {
            return Err(Reason::ReturnCurrency);
        }
        let returned = self.returned.get(&payment).copied().unwrap_or_default();
        if returned == slot.amount {
            Err(Reason::AlreadyEnded)
        } else if returned.minor() + claim.amount.minor() > slot.amount.minor() {
            Err(Reason::ReturnExceeds)
        } else {
            Ok(payment)
        }
    }

    /// The original's shard has answered a return's claim: the return settles like any gross payment, or is refused.
    pub(crate) fn receive_verdict(&mut self, claim: PaymentNo, verdict: Verdict) {
        let Some(book) = self.book_of(claim) else {
            // The shard's next end of day follows in the same channel, and a day stays for one more than that.
            unreachable!("a claim's verdict comes before its day leaves memory")
        };
        let slot = *self.known_slot(claim);
        let class = book
            .gross(claim)
            .map_or(Class::Normal, |record| record.class);
        let Some(sender) = book.message_of(claim).map(|(_, record)| record.sender) else {
            return;
        };
        let crate::directory::AccountPlace::Home(account) =
            self.directory.account(sender, slot.currency_place)
        else {
            return;
        };
        match verdict {
            Verdict::Granted { original } => {
                self.claims.insert(claim, original);
                self.set_status(claim, PaymentStatus::Queued, None);
                self.enter_gross(claim, account, class, false, SettlementTimes::default());
            }
            Verdict::Refused { reason } => {
                self.end_gross(claim, account, reason);
            }
        }
    }

    pub(crate) fn receive_release(&mut self, original: PaymentRef, amount: AmountMinor) {
        if let Some(returned) = self.returned.get_mut(&original.payment) {
            *returned = AmountMinor::new(returned.minor().saturating_sub(amount.minor()))
                .unwrap_or_default();
            self.digest.fold(original.payment.get() ^ amount.minor());
        }
    }
}
