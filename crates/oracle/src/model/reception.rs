//! Taking messages in: duplicates (ADR 0009), numbering (ADR 0010), the order of checks (`docs/reference/reasons.md`).

use std::collections::BTreeSet;

use super::{DayState, Payment, SEQUENCE_END, Shard, TakenIn, place, refused};
use crate::plain::{Asked, Body, Class, Holder, Kind, Letter, Message, Reason, Reply, Status};

/// At most so many messages, and so many bytes of them, wait for a missing number (ADR 0010).
const HELD_MAX: usize = 256;
const HELD_MAX_BYTES: u64 = 64 << 20;

impl Shard {
    pub(super) fn submit(&mut self, message: &Message) -> Reply {
        let Some(terms) = self.terms(&message.bank).cloned() else {
            return Reply::NotTaken(Reason::SenderUnknown);
        };
        if terms.home != self.me() {
            return Reply::NotHome(terms.home);
        }
        if let Some(reply) = self.same_again(message) {
            return reply;
        }
        if !matches!(self.day, DayState::Open(_)) {
            return Reply::NotTaken(Reason::DayClosed);
        }
        if !terms.numbered {
            return self.take_in(message, None);
        }
        let next = self.member(&message.bank).next_sequence;
        match message.sequence.filter(|&number| number < SEQUENCE_END) {
            None => self.take_in(message, Some(Reason::SequenceMissing)),
            Some(number) if number < next => self.take_in(message, Some(Reason::SequenceUsed)),
            Some(number) if number > next => self.hold(message, number),
            Some(number) => {
                self.member(&message.bank).next_sequence = number + 1;
                let reply = self.take_in(message, None);
                self.take_held(&message.bank);
                reply
            }
        }
    }

    /// ADR 0009: the same identifier with the same content, of any retained day, has the same answer.
    fn same_again(&mut self, message: &Message) -> Option<Reply> {
        let oldest = self.oldest_day();
        let known = self.messages.iter().rposition(|known| {
            known.day >= oldest
                && known.bank == message.bank
                && known.id == message.id
                && known.digest == message.digest
        });
        if let Some(at) = known {
            return Some(Reply::Repeat {
                message: at as u64,
                answer: self.messages[at].answer,
            });
        }
        let member = self.member(&message.bank);
        let held = member.held.get(&message.sequence?)?;
        let same = held.id == message.id && held.digest == message.digest;
        same.then(|| Reply::Held {
            answer: 0,
            missing_from: member.next_sequence,
            missing_through: member.held.keys().next().map_or(0, |first| first - 1),
        })
    }

    fn hold(&mut self, message: &Message, number: u64) -> Reply {
        let now_ns = self.now_ns;
        let timeout_ns = self.rules().gap_timeout_ns;
        let member = self.member(&message.bank);
        if member.held.contains_key(&number) {
            return self.take_in(message, Some(Reason::SequenceUsed));
        }
        let missing_from = member.next_sequence;
        let bytes: u64 = member.held.values().map(|held| held.bytes).sum();
        if member.held.len() >= HELD_MAX || bytes + message.bytes > HELD_MAX_BYTES {
            return Reply::HeldFull { missing_from };
        }
        if member.held.is_empty() {
            member.gap_due_ns = Some(now_ns.saturating_add(timeout_ns));
        }
        member.held.insert(number, message.clone());
        let missing_through = member.held.keys().next().map_or(number, |&first| first - 1);
        let answer = self.tell(
            &message.bank,
            1,
            Body::Gap {
                message_id: message.id.clone(),
                missing_from,
                missing_through,
            },
        );
        Reply::Held {
            answer,
            missing_from,
            missing_through,
        }
    }

    /// Those whose turn has come.
    pub(super) fn take_held(&mut self, bank: &str) {
        loop {
            let member = self.member(bank);
            let next = member.next_sequence;
            let Some(message) = member.held.remove(&next) else {
                break;
            };
            member.next_sequence = next + 1;
            self.take_released(&message, None);
        }
        let due_ns = self.now_ns.saturating_add(self.rules().gap_timeout_ns);
        let member = self.member(bank);
        member.gap_due_ns = (!member.held.is_empty()).then_some(due_ns);
    }

    pub(super) fn take_released(&mut self, message: &Message, fault: Option<Reason>) {
        if let Reply::Taken {
            message: number, ..
        } = self.take_in(message, fault)
        {
            self.released.push((number, message.id.clone()));
        }
    }

    /// A hole that persists is told again, each once per entry.
    pub(super) fn tell_gaps(&mut self) {
        let now_ns = self.now_ns;
        let timeout_ns = self.rules().gap_timeout_ns;
        let banks: Vec<String> = self.members.keys().cloned().collect();
        for bank in banks {
            let member = self.member(&bank);
            if member.gap_due_ns.is_none_or(|due_ns| due_ns > now_ns) {
                continue;
            }
            member.gap_due_ns = None;
            let Some(first) = member.held.keys().next().copied() else {
                continue;
            };
            member.gap_due_ns = Some(now_ns.saturating_add(timeout_ns));
            let body = Body::Gap {
                message_id: String::new(),
                missing_from: member.next_sequence,
                missing_through: first - 1,
            };
            self.tell(&bank, 1, body);
        }
    }

    pub(super) fn skip(&mut self, bank: &str, next: u64) -> Reply {
        let Some(terms) = self.terms(bank).cloned() else {
            return refused("ParticipantUnknown");
        };
        if terms.home != self.me() {
            return Reply::NotHome(terms.home);
        }
        let open = matches!(self.day, DayState::Open(_));
        let member = self.member(bank);
        let over_one = member.held.keys().next().is_some_and(|&first| next > first);
        if !terms.numbered || !open || next <= member.next_sequence || over_one {
            return refused("SequenceNotAhead");
        }
        member.next_sequence = next;
        self.take_held(bank);
        Reply::Done
    }

    pub(super) fn take_in(&mut self, message: &Message, fault: Option<Reason>) -> Reply {
        let today = self.days.len() - 1;
        let mut faults = message.faults.clone();
        faults.extend(fault);
        let used = self.messages.iter().any(|known| {
            known.day == today && known.bank == message.bank && known.id == message.id
        });
        if used {
            faults.insert(Reason::MessageDuplicate);
        }
        let whole = self.terms(&message.bank).is_some_and(|terms| terms.whole);
        if faults.is_empty() && whole && message.kind != Kind::Cancellation {
            for (at, asked) in message.payments.iter().enumerate() {
                faults.extend(self.faults(message, asked));
                faults.extend(self.key_fault(&message.bank, asked, self.payments.len() as u64));
                if message.payments[..at]
                    .iter()
                    .any(|earlier| earlier.key == asked.key)
                {
                    faults.insert(Reason::DuplicateInMessage);
                }
            }
        }
        let number = self.messages.len() as u64;
        self.messages.push(TakenIn {
            bank: message.bank.clone(),
            id: message.id.clone(),
            digest: message.digest,
            day: today,
            answer: 0,
        });
        let all = message.payments.len() as u64;
        let (answer, count) = if !faults.is_empty() {
            let body = Body::Reception { message: number };
            (self.tell(&message.bank, 1, body), all)
        } else if message.kind == Kind::Cancellation {
            self.take_requests(message, number)
        } else {
            self.take_payments(message, number)
        };
        self.messages[place(number)].answer = answer;
        Reply::Taken {
            message: number,
            answer,
            accepted: all - count,
            refused: count,
        }
    }

    /// All that is wrong with a payment, its key aside.
    fn faults(&self, message: &Message, asked: &Asked) -> BTreeSet<Reason> {
        let mut faults = asked.faults.clone();
        let served = self
            .holders
            .iter()
            .any(|holder| holder.currency == asked.currency);
        if !asked.listed {
            faults.insert(Reason::CurrencyInvalid);
        } else if !served {
            faults.insert(Reason::CurrencyNotServed);
        } else if !self.has_account(&message.bank, &asked.currency) {
            faults.insert(Reason::SenderAccountMissing);
        }
        // An amount that could not be read is zero too; what is wrong with it stands among the gateway's faults.
        if asked.minor == 0 && asked.faults.is_empty() {
            faults.insert(Reason::AmountZero);
        }
        if asked.minor > self.rules().amount_max {
            faults.insert(Reason::AmountTooLarge);
        }
        match asked.to.as_ref().filter(|to| self.terms(to).is_some()) {
            None => {
                faults.insert(Reason::ReceiverInvalid);
            }
            Some(to) if *to == message.bank => {
                faults.insert(Reason::SameParticipant);
            }
            Some(to) => {
                if served && !self.has_account(to, &asked.currency) {
                    faults.insert(Reason::ReceiverAccountMissing);
                }
            }
        }
        let today = self.days.last().map(|day| day.date);
        if asked.date > today {
            faults.insert(Reason::DateFuture);
        } else if asked.date != today {
            faults.insert(Reason::DateInvalid);
        }
        if self.cut_off_passed(message.kind) {
            faults.insert(Reason::CutOffPassed);
        }
        faults
    }

    pub(super) fn cut_off_passed(&self, kind: Kind) -> bool {
        match &self.day {
            DayState::Open(cut_off) => cut_off.contains(&kind),
            _ => true,
        }
    }

    /// ADR 0009: a key is held by a payment of the day that was not refused when it came in.
    fn key_fault(&self, bank: &str, asked: &Asked, first_of_message: u64) -> Option<Reason> {
        let today = self.days.len() - 1;
        let holding = |payment: &Payment| {
            payment.day == today
                && payment.from.bank == bank
                && payment.key == asked.key
                && payment.status != Status::Refused
        };
        let at = self.payments.iter().position(holding)?;
        Some(if at as u64 >= first_of_message {
            Reason::DuplicateInMessage
        } else if self.payments[at].content == asked.content {
            Reason::PaymentDuplicate
        } else {
            Reason::PaymentKeyReused
        })
    }

    /// The message's payments, each on its own; the answer's number and how many were refused.
    fn take_payments(&mut self, message: &Message, number: u64) -> (u64, u64) {
        let returns = message.kind == Kind::Return;
        let gross = returns || message.gross.is_some();
        let (class, or_refuse) = message.gross.unwrap_or((Class::Normal, false));
        let first = self.payments.len() as u64;
        let mut refused = 0;
        for asked in &message.payments {
            let mut faults = self.faults(message, asked);
            faults.extend(self.key_fault(&message.bank, asked, first));
            let reason = faults.first().copied();
            refused += u64::from(reason.is_some());
            let status = match (reason, returns, gross) {
                (Some(_), _, _) => Status::Refused,
                (None, true, _) => Status::Claiming,
                (None, false, true) => Status::Queued,
                (None, false, false) => Status::Netting,
            };
            self.payments.push(Payment {
                key: asked.key.clone(),
                content: asked.content,
                message: number,
                day: self.days.len() - 1,
                from: Holder::new(&message.bank, &asked.currency),
                to: asked.to.as_ref().map(|to| Holder::new(to, &asked.currency)),
                minor: asked.minor,
                class,
                or_refuse: or_refuse && !returns,
                times: if returns {
                    Default::default()
                } else {
                    asked.times
                },
                queued: false,
                status,
                reason,
                claimed: None,
                returned: 0,
            });
        }
        // One urgent payment has one answer: what became of it. Otherwise the message's own answer goes first.
        let single = gross && !returns && message.payments.len() == 1 && refused == 0;
        let mut answer = 0;
        if !single {
            answer = self.tell(&message.bank, 1, Body::Reception { message: number });
        }
        if gross {
            // They stand behind one another, however soon the first ones credit somebody who pays back.
            for (at, asked) in (first..).zip(&message.payments) {
                if self.payment(at).status == Status::Refused {
                    continue;
                }
                if returns {
                    self.claim(at, asked);
                } else {
                    let told = self.enter(at);
                    if single {
                        answer = told;
                    }
                }
            }
        }
        (answer, refused)
    }

    /// ADR 0012: a return first asks the original's shard.
    fn claim(&mut self, at: u64, asked: &Asked) {
        let Some(original) = asked.original.clone() else {
            self.end(at, Reason::OriginalUnknown);
            return;
        };
        let payment = self.payment(at);
        let (returner, payer) = (payment.from.bank.clone(), payment.receiver().bank.clone());
        let letter = Letter::Claim {
            claim: at,
            returner,
            payer: payer.clone(),
            original,
            minor: asked.minor,
            currency: asked.currency.clone(),
        };
        let home = self.home(&payer);
        self.send(home, letter);
    }
}
