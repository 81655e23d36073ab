//! Requests about earlier payments: cancellations and recalls (rule R10), returns and their claims (rule R34, ADR 0012).

use super::Shard;
use crate::plain::{Body, Cancel, CancelOutcome, Letter, Message, Reason, Recall, Status};

impl Shard {
    /// A bank's payment under a key: the newest that was accepted, else the newest refused.
    fn find(&self, bank: &str, key: &str) -> Option<u64> {
        let oldest = self.oldest_day();
        let mine = |at: &u64| {
            let payment = self.payment(*at);
            payment.day >= oldest && payment.from.bank == bank && payment.key == key
        };
        let accepted = |at: &u64| self.payment(*at).status != Status::Refused;
        let newest = |found: &mut dyn Iterator<Item = u64>| found.last();
        newest(&mut self.numbers().filter(mine).filter(accepted))
            .or_else(|| newest(&mut self.numbers().filter(mine)))
    }

    /// The requests of a camt.056; the answer's number and how many were refused.
    pub(super) fn take_requests(&mut self, message: &Message, number: u64) -> (u64, u64) {
        let mut answers = Vec::new();
        for (position, asked) in (0_u32..).zip(&message.payments) {
            let mut faults = asked.faults.clone();
            if self.cut_off_passed(message.kind) {
                faults.insert(Reason::CutOffPassed);
            }
            let answer = match faults.first() {
                Some(&reason) => Cancel {
                    payment: None,
                    outcome: CancelOutcome::Refused(reason),
                },
                None => {
                    let payment = self.find(&message.bank, &asked.key);
                    let outcome = match payment {
                        None => CancelOutcome::Refused(Reason::OriginalUnknown),
                        Some(at) => self.cancel(at, number, position),
                    };
                    Cancel { payment, outcome }
                }
            };
            answers.push(answer);
        }
        let refused = answers
            .iter()
            .filter(|answer| matches!(answer.outcome, CancelOutcome::Refused(_)))
            .count() as u64;
        self.cancels.insert(number, answers);
        let body = Body::CancellationAnswer { message: number };
        (self.tell(&message.bank, 1, body), refused)
    }

    fn cancel(&mut self, at: u64, request: u64, position: u32) -> CancelOutcome {
        let payment = self.payment(at);
        match payment.status {
            Status::Queued => {
                self.cancel_waiting(at);
                CancelOutcome::Cancelled
            }
            // The cycle's set is fixed.
            Status::Netting if self.cut_below().is_some_and(|below| at < below) => {
                CancelOutcome::Refused(Reason::InSettlement)
            }
            Status::Netting => {
                self.payment_mut(at).status = Status::Cancelled;
                CancelOutcome::Cancelled
            }
            Status::Claiming => CancelOutcome::Refused(Reason::InSettlement),
            Status::Settled => {
                let recall = Recall {
                    original: (self.me(), at),
                    sender: payment.from.bank.clone(),
                    receiver: payment.receiver().bank.clone(),
                    request,
                    position,
                };
                let home = self.home(&recall.receiver);
                self.send(home, Letter::Recall(recall));
                CancelOutcome::Recalled
            }
            Status::Refused | Status::Ended | Status::Cancelled => {
                CancelOutcome::Refused(Reason::AlreadyEnded)
            }
        }
    }

    /// The sum of returns never exceeds the original.
    #[expect(clippy::too_many_arguments, reason = "the fields of one letter")]
    pub(super) fn take_claim(
        &mut self,
        from: usize,
        claim: u64,
        returner: &str,
        payer: &str,
        original: &str,
        minor: u64,
        currency: &str,
    ) {
        let received = |at: &u64| {
            let payment = self.payment(*at);
            payment.status == Status::Settled && payment.receiver().bank == returner
        };
        let verdict = match self.find(payer, original).filter(received) {
            None => Err(Reason::OriginalUnknown),
            Some(at) => {
                let me = self.me();
                let original = self.payment_mut(at);
                let left = original.minor - original.returned;
                if original.from.currency != currency {
                    Err(Reason::ReturnCurrency)
                } else if left == 0 {
                    Err(Reason::AlreadyEnded)
                } else if minor > left {
                    Err(Reason::ReturnExceeds)
                } else {
                    original.returned += minor;
                    Ok((me, at))
                }
            }
        };
        self.send(from, Letter::Verdict { claim, verdict });
    }

    pub(super) fn take_verdict(&mut self, claim: u64, verdict: Result<(usize, u64), Reason>) {
        match verdict {
            Ok(original) => {
                self.payment_mut(claim).claimed = Some(original);
                self.enter(claim);
            }
            Err(reason) => {
                self.end(claim, reason);
            }
        }
    }
}
