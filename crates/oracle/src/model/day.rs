//! The business day in one shard (ADR 0014), and what operators' acts do there.

use std::collections::BTreeSet;

use super::{Account, Day, DayState, Shard};
use crate::plain::{Act, Body, Letter, Reason, Statement, Status};

impl Shard {
    /// An act that the coordinator has admitted.
    pub(super) fn take_act(&mut self, act: &Act) {
        match act {
            Act::AddBank(terms) => {
                self.banks.push(terms.clone());
                if terms.home == self.me() {
                    self.member(&terms.bank);
                }
            }
            Act::OpenAccount { holder, line, .. } => {
                self.holders.push(holder.clone());
                if self.home(&holder.bank) == self.me() {
                    let account = Account {
                        line: *line,
                        ..Account::default()
                    };
                    self.accounts.insert(holder.clone(), account);
                }
            }
            Act::Fund {
                reference,
                holder,
                minor,
            } => {
                if self.accounts.contains_key(holder) {
                    self.post(holder, i128::from(*minor));
                    let body = Body::Funded {
                        reference: reference.clone(),
                        currency: holder.currency.clone(),
                        minor: *minor,
                    };
                    self.tell(&holder.bank, 1, body);
                    self.release(vec![holder.clone()]);
                }
            }
            Act::OpenDay(date) => {
                self.days.push(Day {
                    date: *date,
                    opened: self.index,
                });
                self.day = DayState::Open(BTreeSet::new());
            }
            Act::CutOff(kind) => {
                if let DayState::Open(cut_off) = &mut self.day {
                    cut_off.insert(*kind);
                }
            }
            Act::CloseDay => self.end_day(),
            Act::Foreign(_) => {}
        }
    }

    /// What still waits is refused; then every shard learns that nothing more of this day follows.
    fn end_day(&mut self) {
        let Some(date) = self.days.last().map(|day| day.date) else {
            return;
        };
        // The coordinator ends no day under a cycle: one that runs here still was given up.
        self.forget_cycle();
        let banks: Vec<String> = self.members.keys().cloned().collect();
        for bank in banks {
            let held = std::mem::take(&mut self.member(&bank).held);
            for message in held.into_values() {
                self.take_released(&message, Some(Reason::SequenceGap));
            }
            let member = self.member(&bank);
            member.gap_due_ns = None;
            member.next_sequence = 1;
        }
        for at in self.numbers() {
            let payment = self.payment(at);
            if payment.status == Status::Queued {
                let reason = if payment.queued {
                    Reason::InsufficientFunds
                } else {
                    Reason::SettlementBroken
                };
                self.end(at, reason);
            }
        }
        let mut ended: BTreeSet<u64> = BTreeSet::new();
        for at in self.numbers() {
            let dropped_before = at < self.last_cut_below;
            let payment = self.payment_mut(at);
            if payment.status == Status::Netting {
                payment.status = Status::Ended;
                payment.reason = Some(if dropped_before {
                    Reason::InsufficientFunds
                } else {
                    Reason::SettlementBroken
                });
                ended.insert(payment.message);
            }
        }
        for message in ended {
            let bank = self.messages[super::place(message)].bank.clone();
            self.tell(&bank, 1, Body::Ended { message });
        }
        self.day = DayState::Closing(std::mem::take(&mut self.early_ends));
        self.send_all(&Letter::DayEnd(date));
    }

    /// When all shards have ended the day, nothing of it is in transit to this one.
    pub(super) fn take_day_end(&mut self, from: usize, date: u32) {
        let shards = self.rules().shards;
        let DayState::Closing(ended) = &mut self.day else {
            self.early_ends.insert(from);
            return;
        };
        ended.insert(from);
        if ended.len() < shards {
            return;
        }
        let numbers: Vec<(String, u64, u64)> = self
            .members
            .iter()
            .map(|(bank, member)| (bank.clone(), member.day_first_number, member.next_number))
            .collect();
        for holder in self.own_holders() {
            let account = self.account(&holder);
            account.statements += 1;
            let statement = Statement {
                sequence: account.statements,
                date,
                currency: holder.currency.clone(),
                opening: account.opening,
                debits: account.debits,
                credits: account.credits,
                closing: account.balance,
                first_number: 0,
                end_number: 0,
            };
            account.opening = account.balance;
            (account.debits, account.credits) = (0, 0);
            let (_, first_number, end_number) = numbers
                .iter()
                .find(|(bank, ..)| *bank == holder.bank)
                .cloned()
                .unwrap_or_default();
            let statement = Statement {
                first_number,
                end_number,
                ..statement
            };
            self.tell(&holder.bank, 1, Body::Statement(statement));
        }
        for member in self.members.values_mut() {
            member.day_first_number = member.next_number;
        }
        self.day = DayState::Closed;
        self.send(0, Letter::DayClosed(date));
    }
}
