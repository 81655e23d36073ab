//! The business day in one shard, and the dispatch of what other shards say (rules R31, R37).

use std::collections::BTreeSet;

use crate::day::{DayBook, MessageRecord, PaymentStatus};
use crate::entry::{AdminCommand, ChannelMessage};
use crate::member::waiting_net;
use crate::message::MessageKind;
use crate::state::{DayState, Ledger};
use crate::stream::{ItemBody, Statement};
use crate::{BusinessDate, MessageNo, ParticipantId, PaymentNo, Reason, ShardId};

/// The answer to a return's claim can come behind its shard's end of day, when the next day is open here already. It comes
/// before that next day ends, since the end of day follows in the same channel.
const RETENTION_MIN_DAYS: usize = 2;

impl Ledger {
    pub(crate) fn receive(&mut self, from: ShardId, message: &ChannelMessage) {
        match message {
            ChannelMessage::Admin(command) => self.receive_admin(command),
            ChannelMessage::Credit(advice) => self.receive_credit(from, *advice),
            ChannelMessage::Cut { cycle } => self.receive_cut(from, *cycle),
            ChannelMessage::CutSums { cycle, cut, sums } => {
                self.receive_cut_sums(from, *cycle, *cut, sums)
            }
            ChannelMessage::Reserve {
                cycle,
                round,
                incoming,
            } => self.receive_reserve(from, *cycle, *round, incoming),
            ChannelMessage::Reserved {
                cycle,
                round,
                available,
                drops,
                reductions,
            } => {
                self.receive_reserved(from, *cycle, *round, available, drops, reductions);
            }
            ChannelMessage::Decide { cycle, decided } => {
                self.receive_decide(from, *cycle, *decided)
            }
            ChannelMessage::Posted {
                cycle,
                posted,
                results,
            } => self.receive_posted(from, *cycle, *posted, results),
            ChannelMessage::End { cycle, abandoned } => self.receive_end(*cycle, *abandoned),
            ChannelMessage::CycleCredits { cycle, credits } => {
                self.receive_cycle_credits(from, *cycle, credits)
            }
            ChannelMessage::ReturnClaim {
                claim,
                returner,
                original_sender,
                original,
                amount,
                currency,
            } => {
                self.receive_claim(
                    from,
                    *claim,
                    *returner,
                    *original_sender,
                    *original,
                    *amount,
                    *currency,
                );
            }
            ChannelMessage::ReturnVerdict { claim, verdict } => {
                self.receive_verdict(*claim, *verdict)
            }
            ChannelMessage::ReturnReleased { original, amount } => {
                self.receive_release(*original, *amount)
            }
            ChannelMessage::Recall(notice) => self.receive_recall(from, *notice),
            ChannelMessage::DayEnd { date } => self.receive_day_end(from, *date),
            ChannelMessage::DayClosed { date } => self.receive_day_closed(from, *date),
        }
    }

    /// An operator's act that the coordinator has admitted: it holds in every shard.
    pub(crate) fn receive_admin(&mut self, command: &AdminCommand) {
        match command {
            AdminCommand::AddParticipant(terms) => {
                self.digest.fold(u64::from(terms.home.get()) ^ 0xADD);
                self.directory.add_participant(terms.clone());
                if let Some(participant) = self
                    .directory
                    .find(terms.bic)
                    .filter(|_| terms.home == self.shard())
                {
                    self.members.entry(participant).or_default();
                }
            }
            AdminCommand::OpenAccount(terms) => {
                self.digest.fold(terms.credit_line.minor());
                self.place_account(terms);
            }
            AdminCommand::Fund { .. } => self.fund(command),
            AdminCommand::OpenDay { date } => self.open_day(*date),
            AdminCommand::CutOff { kind } => self.cut_off(*kind),
            AdminCommand::CloseDay => self.end_day(),
        }
    }

    fn open_day(&mut self, date: BusinessDate) {
        let (retention, seed) = self
            .genesis
            .as_ref()
            .map_or((RETENTION_MIN_DAYS, 0), |genesis| {
                (
                    usize::from(genesis.retention_days).max(RETENTION_MIN_DAYS),
                    genesis.hash_seed,
                )
            });
        self.days.push_back(DayBook::new(
            date,
            self.index,
            self.next_payment,
            self.next_message,
            seed,
        ));
        // Before a first day leaves, nothing does: what was put out ahead of it is still to be fetched.
        if self.days.len() > retention {
            self.days.drain(..self.days.len() - retention);
            self.forget_before_retention();
        }
        self.day = DayState::Open {
            cut_off: BTreeSet::new(),
        };
        self.digest.fold(u64::from(date.days()));
    }

    /// Everything that stands for a business day beyond retention goes together.
    fn forget_before_retention(&mut self) {
        let Some(oldest) = self.days.front() else {
            return;
        };
        let (payment, message, opened, date) = (
            oldest.first_payment,
            oldest.first_message,
            oldest.opened,
            oldest.date,
        );
        self.returned = self.returned.split_off(&payment);
        self.cancellations = self.cancellations.split_off(&message);
        self.cycles.retain(|_, record| record.date >= date);
        self.coordinator
            .cycles
            .retain(|_, summary| summary.date >= date);
        for member in self.members.values_mut() {
            member.stream.retain_from(date, opened);
        }
    }

    fn cut_off(&mut self, kind: MessageKind) {
        if let DayState::Open { cut_off } = &mut self.day {
            cut_off.insert(kind);
        }
        self.digest.fold(kind as u64);
    }

    /// Ends the day here: what still waits is refused by rule R17, and the other shards learn that nothing more comes.
    fn end_day(&mut self) {
        let Some(date) = self.business_date() else {
            return;
        };
        // The coordinator closes no day under a cycle: one that still runs here was given up, and its end is on the way.
        self.forget_cycle();
        self.refuse_held();
        let waiting: Vec<(PaymentNo, u32, bool)> = self
            .waiting
            .iter()
            .map(|(&payment, waiting)| (payment, waiting.account, waiting.queued))
            .collect();
        for (payment, account, queued) in waiting {
            let reason = if queued {
                Reason::InsufficientFunds
            } else {
                Reason::SettlementBroken
            };
            self.end_gross(payment, account, reason);
        }
        self.end_netting();
        self.day = DayState::Closing {
            ended: std::mem::take(&mut self.early_ends),
        };
        self.send_all(&ChannelMessage::DayEnd { date });
    }

    /// Payments that no cycle settled: dropped ones lacked funds, the others came after the last cut.
    fn end_netting(&mut self) {
        let cut_below = self
            .cycles
            .values()
            .map(|record| record.cut_below)
            .max()
            .unwrap_or_default();
        let mut ended: Vec<(ParticipantId, MessageNo)> = Vec::new();
        let Some(mut book) = self.days.pop_back() else {
            return;
        };
        for at in 0..self.accounts.len() {
            let account = &self.accounts[at];
            let participant = account.participant;
            let payments: Vec<PaymentNo> = waiting_net(&book, account)
                .map(|(payment, ..)| payment)
                .collect();
            ended.extend(account.net.iter().map(|run| (participant, run.message)));
            for payment in payments {
                let reason = if payment < cut_below {
                    Reason::InsufficientFunds
                } else {
                    Reason::SettlementBroken
                };
                if let Some(slot) = book.slot_mut(payment) {
                    slot.become_(PaymentStatus::Ended, self.last_cut, Some(reason));
                }
                self.digest.fold(payment.get());
            }
            self.accounts[at].net.clear();
        }
        ended.sort_unstable();
        ended.dedup();
        // A run may hold nothing but cancelled payments: then there is nothing to say.
        ended.retain(|(_, message)| {
            book.message(*message)
                .is_some_and(|record: &MessageRecord| {
                    let end =
                        PaymentNo::new(record.first_payment.get() + u64::from(record.numbered()));
                    book.slots(record.first_payment, end)
                        .flatten()
                        .any(|slot| slot.status == PaymentStatus::Ended)
                })
        });
        self.days.push_back(book);
        for (participant, message) in ended {
            self.emit(participant, 1, ItemBody::Ended { message });
        }
    }

    /// When every shard has ended the day, no credit of it is in transit to this one: the statements are complete.
    fn receive_day_end(&mut self, from: ShardId, date: BusinessDate) {
        let shards = usize::from(self.shards());
        let DayState::Closing { ended } = &mut self.day else {
            // Another shard's end may come before the coordinator's word; it is kept until that comes.
            self.early_ends.insert(from);
            return;
        };
        ended.insert(from);
        if ended.len() < shards {
            return;
        }
        self.check_full_sums();
        self.form_statements(date);
        self.day = DayState::Closed;
        self.send(ShardId::new(0), ChannelMessage::DayClosed { date });
    }

    fn form_statements(&mut self, date: BusinessDate) {
        let ends: Vec<(ParticipantId, u64, u64)> = self
            .members
            .iter()
            .map(|(&participant, member)| {
                (
                    participant,
                    member.stream.day_first_number,
                    member.stream.next_number(),
                )
            })
            .collect();
        for at in 0..self.accounts.len() {
            let account = &mut self.accounts[at];
            account.statements += 1;
            let closing = account.day_opening
                + i128::try_from(account.day_credits).expect("a day's turnover stays below 2^127")
                - i128::try_from(account.day_debits).expect("a day's turnover stays below 2^127");
            assert_eq!(
                closing, account.balance,
                "the statement of {} does not reconcile",
                account.participant
            );
            let participant = account.participant;
            let (first_number, end_number) = ends
                .binary_search_by_key(&participant, |(participant, ..)| *participant)
                .map_or((1, 1), |at| (ends[at].1, ends[at].2));
            let statement = Statement {
                sequence: account.statements,
                date,
                currency: account.currency,
                opening_minor: account.day_opening,
                debits_minor: account.day_debits,
                credits_minor: account.day_credits,
                closing_minor: account.balance,
                first_number,
                end_number,
            };
            // Money that moves while no day is open belongs to the next statement.
            account.day_opening = account.balance;
            account.day_debits = 0;
            account.day_credits = 0;
            self.emit(participant, 1, ItemBody::Statement(Box::new(statement)));
        }
        for member in self.members.values_mut() {
            member.stream.day_first_number = member.stream.next_number();
        }
    }
}
