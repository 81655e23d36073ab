//! The ledger's values in the oracle's words: the only place that knows both.

use std::collections::BTreeMap;

use clearspan_ledger::day::PaymentStatus;
use clearspan_ledger::directory::Directory;
use clearspan_ledger::entry::{
    AdminCommand, ChannelMessage, Command, CreditAdvice, CycleCommand, Entry, Flow, Incoming,
    RecallNotice, Verdict,
};
use clearspan_ledger::message::{self, MessageKind, Settlement, Submission};
use clearspan_ledger::stream::{GrossEvent, ItemBody};
use clearspan_ledger::{
    Bic, CancelOutcome as Cancelled, Currency, Ledger, MessageNo, Outcome, ParticipantId,
    PaymentRef, Reason, ReasonSet, Reply,
};
use clearspan_oracle::plain as oracle;

/// Participants' codes by their numbers.
#[derive(Clone, Debug, Default)]
pub struct Names(Vec<String>);

impl Names {
    /// The names of a directory.
    #[must_use]
    pub fn of(directory: &Directory) -> Self {
        Self(directory.iter().map(|(_, terms)| code(terms.bic)).collect())
    }

    fn get(&self, participant: ParticipantId) -> String {
        let unknown = || format!("number {participant}");
        self.0
            .get(participant.index())
            .cloned()
            .unwrap_or_else(unknown)
    }

    fn holder(&self, participant: ParticipantId, currency: Currency) -> oracle::Holder {
        oracle::Holder::new(&self.get(participant), currency.as_str())
    }

    fn sums(&self, list: &[Incoming]) -> BTreeMap<oracle::Holder, oracle::Sum> {
        let sum = |item: &Incoming| {
            let holder = self.holder(item.participant, item.currency);
            (holder, (item.minor, u64::from(item.count)))
        };
        list.iter().map(sum).collect()
    }

    fn advice(&self, advice: &CreditAdvice) -> oracle::Advice {
        oracle::Advice {
            payment: payment_ref(advice.payment),
            message: advice.message.get(),
            sender: self.get(advice.sender),
            to: self.holder(advice.receiver, advice.currency),
            minor: advice.amount.minor(),
        }
    }

    fn recall(&self, notice: &RecallNotice) -> oracle::Recall {
        oracle::Recall {
            original: payment_ref(notice.original),
            sender: self.get(notice.sender),
            receiver: self.get(notice.receiver),
            request: notice.request.get(),
            position: notice.position,
        }
    }

    /// A log entry.
    #[must_use]
    pub fn entry(&self, entry: &Entry) -> oracle::Entry {
        oracle::Entry {
            index: entry.index.get(),
            time_ns: entry.time.ns(),
            op: self.op(&entry.command),
        }
    }

    fn op(&self, command: &Command) -> oracle::Op {
        match command {
            Command::Genesis(genesis) => oracle::Op::Found(oracle::Rules {
                shard: genesis.shard.index(),
                shards: usize::from(genesis.shards),
                retention_days: usize::from(genesis.retention_days),
                amount_max: genesis.amount_max.minor(),
                page_len: genesis.page_len_payments,
                gap_timeout_ns: genesis.gap_timeout_ns,
            }),
            Command::Admin(command) => oracle::Op::Operate(act(command)),
            Command::Cycle(CycleCommand::Open) => oracle::Op::OpenCycle,
            Command::Cycle(CycleCommand::Abandon) => oracle::Op::AbandonCycle,
            Command::Submit(submission) => oracle::Op::Submit(message(submission)),
            Command::SkipSequence { bic, next } => oracle::Op::Skip {
                bank: code(*bic),
                next: *next,
            },
            Command::AcknowledgeReceipts { bic, through } => oracle::Op::Acknowledge {
                bank: code(*bic),
                through: *through,
            },
            Command::Deliver {
                from,
                first,
                messages,
            } => oracle::Op::Deliver {
                from: from.index(),
                first: *first,
                letters: messages.iter().map(|letter| self.letter(letter)).collect(),
            },
            Command::Delivered { .. } => oracle::Op::Delivered,
            Command::Tick => oracle::Op::Tick,
            Command::Nodes(_) | Command::Approvals(_) => oracle::Op::Foreign,
        }
    }

    fn letter(&self, message: &ChannelMessage) -> oracle::Letter {
        use oracle::Letter;
        match message {
            ChannelMessage::Admin(command) => Letter::Act(act(command)),
            ChannelMessage::Credit(advice) => Letter::Credit(self.advice(advice)),
            ChannelMessage::Cut { cycle } => Letter::Cut { cycle: cycle.get() },
            ChannelMessage::CutSums { cycle, cut, sums } => Letter::CutSums {
                cycle: cycle.get(),
                cut: cut.get(),
                sums: sums
                    .iter()
                    .map(|item| (self.holder(item.participant, item.currency), flow(item)))
                    .collect(),
            },
            ChannelMessage::Reserve {
                cycle,
                round,
                incoming,
            } => Letter::Reserve {
                cycle: cycle.get(),
                round: *round,
                incoming: self.sums(incoming),
            },
            ChannelMessage::Reserved {
                cycle,
                round,
                available,
                drops,
                reductions,
            } => Letter::Reserved {
                cycle: cycle.get(),
                round: *round,
                available: available
                    .iter()
                    .map(|item| (self.holder(item.participant, item.currency), item.minor))
                    .collect(),
                drops: drops
                    .iter()
                    .map(|item| {
                        let dropped = oracle::Dropped {
                            round: item.round,
                            available: item.available_minor,
                            out: item.out_minor,
                            into: item.in_minor,
                            gone: (item.minor, u64::from(item.count)),
                        };
                        (self.holder(item.participant, item.currency), dropped)
                    })
                    .collect(),
                reductions: self.sums(reductions),
            },
            ChannelMessage::Decide { cycle, decided } => Letter::Decide {
                cycle: cycle.get(),
                decided: decided.get(),
            },
            ChannelMessage::Posted {
                cycle,
                posted,
                results,
            } => Letter::Posted {
                cycle: cycle.get(),
                posted: posted.get(),
                results: results
                    .iter()
                    .map(|result| {
                        let net = oracle::NetResult {
                            opening: result.opening_minor,
                            flow: oracle::Flow {
                                out: (result.out_minor, u64::from(result.out_count)),
                                into: (result.in_minor, u64::from(result.in_count)),
                            },
                            closing: result.closing_minor,
                            line: result.credit_line.minor(),
                            dropped: (result.dropped_minor, u64::from(result.dropped_count)),
                        };
                        (self.holder(result.participant, result.currency), net)
                    })
                    .collect(),
            },
            ChannelMessage::End { cycle, abandoned } => Letter::End {
                cycle: cycle.get(),
                abandoned: *abandoned,
            },
            ChannelMessage::CycleCredits { cycle, credits } => Letter::CycleCredits {
                cycle: cycle.get(),
                credits: self.sums(credits),
            },
            ChannelMessage::ReturnClaim(claim) => Letter::Claim {
                claim: claim.claim.get(),
                returner: self.get(claim.returner),
                payer: self.get(claim.original_sender),
                original: claim.original.to_string(),
                minor: claim.amount.minor(),
                currency: claim.currency.as_str().to_owned(),
            },
            ChannelMessage::ReturnVerdict { claim, verdict } => Letter::Verdict {
                claim: claim.get(),
                verdict: match verdict {
                    Verdict::Granted { original } => Ok(payment_ref(*original)),
                    Verdict::Refused { reason: why } => Err(reason(*why)),
                },
            },
            ChannelMessage::ReturnReleased { original, amount } => Letter::Released {
                original: payment_ref(*original),
                minor: amount.minor(),
            },
            ChannelMessage::Recall(notice) => Letter::Recall(self.recall(notice)),
            ChannelMessage::DayEnd { date } => Letter::DayEnd(date.days()),
            ChannelMessage::DayClosed { date } => Letter::DayClosed(date.days()),
        }
    }

    fn body(&self, body: &ItemBody) -> oracle::Body {
        use oracle::Body;
        match body {
            ItemBody::Reception { message } => Body::Reception {
                message: message.get(),
            },
            ItemBody::Gap {
                message_id,
                missing_from,
                missing_through,
            } => Body::Gap {
                message_id: message_id.to_string(),
                missing_from: *missing_from,
                missing_through: *missing_through,
            },
            ItemBody::Gross { payment, event } => Body::Gross {
                payment: payment.get(),
                event: match event {
                    GrossEvent::Settled => oracle::Event::Settled,
                    GrossEvent::Queued { reason: why } => oracle::Event::Queued(reason(*why)),
                    GrossEvent::Warned => oracle::Event::Warned,
                    GrossEvent::Refused { reason: why } => oracle::Event::Refused(reason(*why)),
                    GrossEvent::Cancelled => oracle::Event::Cancelled,
                },
            },
            ItemBody::GrossCredit(advice) => Body::GrossCredit(self.advice(advice)),
            ItemBody::Funded {
                reference,
                currency,
                amount,
            } => Body::Funded {
                reference: reference.to_string(),
                currency: currency.as_str().to_owned(),
                minor: amount.minor(),
            },
            ItemBody::Netted {
                cycle,
                message,
                settled,
                dropped,
            } => Body::Netted {
                cycle: cycle.get(),
                message: message.get(),
                settled: u64::from(*settled),
                dropped: u64::from(*dropped),
            },
            ItemBody::NetResult { cycle } => Body::NetResult { cycle: cycle.get() },
            ItemBody::NetCredits {
                cycle,
                from,
                currency,
                count,
                minor,
            } => Body::NetCredits {
                cycle: cycle.get(),
                from: from.index(),
                currency: currency.as_str().to_owned(),
                sum: (*minor, u64::from(*count)),
            },
            ItemBody::CancellationAnswer { message } => Body::CancellationAnswer {
                message: message.get(),
            },
            ItemBody::RecallRequest { from, notice } => Body::RecallRequest {
                from: from.index(),
                recall: self.recall(notice),
            },
            ItemBody::Ended { message } => Body::Ended {
                message: message.get(),
            },
            ItemBody::Statement(statement) => Body::Statement(oracle::Statement {
                sequence: u64::from(statement.sequence),
                date: statement.date.days(),
                currency: statement.currency.as_str().to_owned(),
                opening: statement.opening_minor,
                debits: statement.debits_minor,
                credits: statement.credits_minor,
                closing: statement.closing_minor,
                first_number: statement.first_number,
                end_number: statement.end_number,
            }),
        }
    }
}

fn code(bic: Bic) -> String {
    bic.as_str().to_owned()
}

fn payment_ref(payment: PaymentRef) -> (usize, u64) {
    (payment.shard.index(), payment.payment.get())
}

fn flow(flow: &Flow) -> oracle::Flow {
    oracle::Flow {
        out: (flow.out_minor, u64::from(flow.out_count)),
        into: (flow.in_minor, u64::from(flow.in_count)),
    }
}

fn reason(reason: Reason) -> oracle::Reason {
    oracle::Reason::named(reason.name()).expect("docs/reference/reasons.md names it")
}

fn kind(kind: MessageKind) -> oracle::Kind {
    match kind {
        MessageKind::CustomerTransfer => oracle::Kind::CustomerTransfer,
        MessageKind::BankTransfer => oracle::Kind::BankTransfer,
        MessageKind::CoverTransfer => oracle::Kind::CoverTransfer,
        MessageKind::Return => oracle::Kind::Return,
        MessageKind::Cancellation => oracle::Kind::Cancellation,
    }
}

fn act(command: &AdminCommand) -> oracle::Act {
    use oracle::Act;
    match command {
        AdminCommand::AddParticipant(terms) => Act::AddBank(oracle::Terms {
            bank: code(terms.bic),
            home: terms.home.index(),
            numbered: terms.numbers_messages,
            whole: terms.refuse_whole,
            by_package: terms.net_unit == clearspan_ledger::directory::NetUnit::Package,
            name_len: terms.name.len(),
        }),
        AdminCommand::OpenAccount(terms) => Act::OpenAccount {
            holder: oracle::Holder::new(terms.bic.as_str(), terms.currency.as_str()),
            line: terms.credit_line.minor(),
            listed: terms.currency.is_listed(),
        },
        AdminCommand::Fund {
            reference,
            bic,
            currency,
            amount,
        } => Act::Fund {
            reference: reference.to_string(),
            holder: oracle::Holder::new(bic.as_str(), currency.as_str()),
            minor: amount.minor(),
        },
        AdminCommand::OpenDay { date } => Act::OpenDay(date.days()),
        AdminCommand::CutOff { kind: of } => Act::CutOff(kind(*of)),
        AdminCommand::CloseDay => Act::CloseDay,
    }
}

fn faults(set: ReasonSet) -> std::collections::BTreeSet<oracle::Reason> {
    set.iter().map(reason).collect()
}

fn message(submission: &Submission) -> oracle::Message {
    let gross = match submission.settlement {
        Settlement::Net => None,
        Settlement::Gross {
            class,
            settle_or_refuse,
        } => {
            let class = match class {
                message::Class::Urgent => oracle::Class::Urgent,
                message::Class::High => oracle::Class::High,
                message::Class::Normal => oracle::Class::Normal,
            };
            Some((class, settle_or_refuse))
        }
    };
    let asked = |(at, record): (u32, &message::PaymentRecord)| {
        let times = submission.times.iter().find(|(place, _)| *place == at);
        let times = times.map(|(_, times)| *times).unwrap_or_default();
        let original = submission.originals.iter().find(|(place, _)| *place == at);
        oracle::Asked {
            key: record.id.to_string(),
            content: record.content_digest,
            minor: record.amount.minor(),
            currency: record.currency.as_str().to_owned(),
            listed: record.currency.is_listed(),
            to: record.receiver.map(code),
            date: record.date.map(|date| date.days()),
            faults: faults(record.faults),
            times: oracle::Times {
                earliest: times.earliest.map(|time| time.ns()),
                latest: times.latest.map(|time| time.ns()),
                reject: times.reject.map(|time| time.ns()),
            },
            original: original.map(|(_, original)| original.id.to_string()),
        }
    };
    oracle::Message {
        kind: kind(submission.kind),
        bank: code(submission.sender),
        id: submission.message_id.to_string(),
        digest: submission.digest,
        sequence: submission.sequence,
        gross,
        faults: faults(submission.faults),
        payments: (0..).zip(&submission.payments).map(asked).collect(),
        // What a held message weighs: its heap and its records (96 bytes each).
        bytes: submission.heap.len() as u64 + submission.payments.len() as u64 * 96,
    }
}

/// A reply. Refusals are compared by their names.
#[must_use]
pub fn reply(reply: &Reply) -> oracle::Reply {
    match *reply {
        Reply::Done => oracle::Reply::Done,
        Reply::Taken {
            message,
            answer,
            accepted,
            refused,
        } => oracle::Reply::Taken {
            message: message.get(),
            answer,
            accepted: u64::from(accepted),
            refused: u64::from(refused),
        },
        Reply::Repeat { message, answer } => oracle::Reply::Repeat {
            message: message.get(),
            answer,
        },
        Reply::Held {
            answer,
            missing_from,
            missing_through,
        } => oracle::Reply::Held {
            answer,
            missing_from,
            missing_through,
        },
        Reply::NotTaken { reason: why } => oracle::Reply::NotTaken(reason(why)),
        Reply::HeldFull { missing_from } => oracle::Reply::HeldFull { missing_from },
        Reply::NotHome { home } => oracle::Reply::NotHome(home.index()),
        Reply::Refused(refusal) => oracle::Reply::Refused(format!("{refusal:?}")),
        Reply::Asked { .. } => oracle::Reply::Foreign,
    }
}

/// Everything that an entry brought about for its proposer.
#[must_use]
pub fn answer(outcome: &Outcome) -> oracle::Answer {
    let released = |(message, submission): &(MessageNo, Submission)| {
        (message.get(), submission.message_id.to_string())
    };
    oracle::Answer {
        reply: reply(&outcome.reply),
        released: outcome.released.iter().map(released).collect(),
    }
}

/// A ledger's state as far as it is compared.
#[must_use]
pub fn picture(ledger: &Ledger, names: &Names) -> oracle::Picture {
    let mut picture = oracle::Picture::default();
    for account in ledger.accounts() {
        let holder = names.holder(account.participant(), account.currency());
        let state = (account.balance_minor(), account.reserved_minor());
        picture.accounts.insert(holder, state);
    }
    for date in ledger.dates() {
        for (number, _) in ledger.messages(date) {
            for payment in ledger.payments_of(number) {
                let shown = oracle::Shown {
                    key: payment.id.to_string(),
                    message: payment.message.get(),
                    status: status(payment.status),
                    reason: payment.reason.map(reason),
                    returned: payment.returned.minor(),
                };
                picture.payments.insert(payment.payment.get(), shown);
            }
            if let Some(answers) = ledger.cancellation_answers(number) {
                let cancels = answers.iter().map(|answer| oracle::Cancel {
                    payment: answer.payment.map(|payment| payment.get()),
                    outcome: match answer.outcome {
                        Cancelled::Cancelled => oracle::CancelOutcome::Cancelled,
                        Cancelled::Recalled => oracle::CancelOutcome::Recalled,
                        Cancelled::Refused { reason: why } => {
                            oracle::CancelOutcome::Refused(reason(why))
                        }
                    },
                });
                picture.cancels.insert(number.get(), cancels.collect());
            }
        }
    }
    for (participant, terms) in ledger.directory().iter() {
        if let Some(stream) = ledger.stream(participant) {
            let items = stream.iter().map(|item| oracle::Item {
                number: item.number,
                pages: u64::from(item.pages),
                index: item.index.get(),
                time_ns: item.time.ns(),
                body: names.body(&item.body),
            });
            let output = oracle::Output {
                next: stream.next_number(),
                acknowledged: stream.acknowledged(),
                items: items.collect(),
            };
            picture.outputs.insert(code(terms.bic), output);
        }
    }
    picture
}

fn status(status: PaymentStatus) -> oracle::Status {
    match status {
        PaymentStatus::Refused => oracle::Status::Refused,
        PaymentStatus::Netting => oracle::Status::Netting,
        PaymentStatus::Settled => oracle::Status::Settled,
        PaymentStatus::Queued => oracle::Status::Queued,
        PaymentStatus::Ended => oracle::Status::Ended,
        PaymentStatus::Cancelled => oracle::Status::Cancelled,
        PaymentStatus::Claiming => oracle::Status::Claiming,
    }
}
