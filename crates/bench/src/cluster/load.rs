//! Participants that hand packages in: each over a connection of its own, the next after the answer to the one before.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clearspan_codec::package::{Head, Payment, encode};
use clearspan_iso20022::fields::{self, Field};
use clearspan_ledger::message::{Class, MessageKind, Settlement};
use clearspan_ledger::{AmountMinor, Bic, BusinessDate, Currency, PaymentId, Text};
use clearspan_node::api::Answer;
use clearspan_node::client::{Ask, ClientError, Session};
use rustls::ClientConfig;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::stage::{DATE, Sender, Stage};
use super::{ClusterError, io, now};
use crate::generate::rng::Rng;

/// Drawn amounts are below this, in minor units.
const AMOUNT_BELOW_MINOR: u64 = 5_000_000;
/// A node that is away or without a leader is asked again after this.
const AGAIN: Duration = Duration::from_millis(20);
/// How long a message is handed in again before the run is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// The share of a run at either end that is left out of its rate: there not all participants have work.
const ENDS_PERCENT: u64 = 10;

/// What is to be handed in: messages of each participant, in order.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// By participant.
    pub messages: Vec<Vec<Bytes>>,
    /// Payments of each message.
    pub len: u64,
}

/// An answer that came.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    /// When the message was due.
    pub due: Instant,
    /// When its answer was there.
    pub at: Instant,
}

/// A run's answers, in the order in which they came.
#[derive(Clone, Debug)]
pub struct Run {
    /// When the first message was sent.
    pub begun: Instant,
    /// One for each message.
    pub answers: Vec<Answered>,
    /// Payments of each message.
    pub len: u64,
}

impl Run {
    /// Payments per second between the first and the last tenth.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let count = self.answers.len() as u64;
        let cut = count * ENDS_PERCENT / 100;
        let at = |place: u64| {
            let place = usize::try_from(place).ok()?;
            self.answers.get(place).map(|answer| answer.at)
        };
        match (at(cut), at(count.saturating_sub(cut + 1))) {
            (Some(from), Some(to)) if to > from => {
                ((count - 1 - 2 * cut) * self.len) as f64 / (to - from).as_secs_f64()
            }
            _ => 0.0,
        }
    }

    /// Payments in all.
    #[must_use]
    pub fn payments(&self) -> u64 {
        self.answers.len() as u64 * self.len
    }

    /// Milliseconds from due to answered, unsorted.
    #[must_use]
    pub fn latencies_ms(&self) -> Vec<f64> {
        let latency = |answer: &Answered| (answer.at - answer.due).as_secs_f64() * 1e3;
        self.answers.iter().map(latency).collect()
    }
}

impl Stage {
    /// Makes at least so many payments in packages of `len`, dealt round the participants. No payment is made twice.
    pub fn draw(&mut self, payments: u64, len: u32, settlement: Settlement, text: bool) -> Load {
        let senders = self.senders.len().max(1) as u64;
        let each = payments.div_ceil(u64::from(len)).div_ceil(senders);
        let receivers: Vec<Bic> = self.senders.iter().map(|sender| sender.bic).collect();
        let mut messages = Vec::with_capacity(self.senders.len());
        for place in 0..self.senders.len() {
            let mut own = Vec::new();
            for _ in 0..each {
                self.drawn += 1;
                own.extend(message(
                    self.drawn, &receivers, place, len, settlement, text,
                ));
            }
            messages.push(own);
        }
        Load {
            messages,
            len: u64::from(len),
        }
    }
}

const URGENT: Settlement = Settlement::Gross {
    class: Class::Urgent,
    settle_or_refuse: false,
};

impl Load {
    /// How urgent payments settle.
    pub const URGENT: Settlement = URGENT;
}

fn message(
    number: u64,
    receivers: &[Bic],
    sender: usize,
    len: u32,
    settlement: Settlement,
    text: bool,
) -> Option<Bytes> {
    let mut rng = Rng::new(11, number);
    let own = *receivers.get(sender)?;
    let mut bodies = Vec::new();
    if text {
        for at in 0..len {
            let mut body = Vec::new();
            let id = format!("E2E-{number}-{at}");
            let account = format!("DE{:020}", rng.below(1 << 60));
            let reference = format!("Invoice {} of {DATE}, thank you", rng.below(1 << 40));
            fields::push(&mut body, Field::EndToEndId, &id);
            fields::push(&mut body, Field::DebtorName, "Northern Mills and Sons Ltd");
            fields::push(&mut body, Field::DebtorAccount, "DE89370400440532013000");
            fields::push(&mut body, Field::CreditorName, "Harbour Light Works GmbH");
            fields::push(&mut body, Field::CreditorAccount, &account);
            fields::push(&mut body, Field::Remittance, &reference);
            bodies.push(body);
        }
    }
    let mut payments = Vec::new();
    for at in 0..len {
        let bits = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        // Version 4, variant 2, as in a UUID.
        let bits = bits & !(0xF << 76) & !(0b11 << 62) | 4 << 76 | 0b10 << 62;
        let other = 1 + rng.index(receivers.len().max(2) - 1);
        let body = usize::try_from(at).ok().and_then(|at| bodies.get(at));
        payments.push(Payment {
            id: PaymentId::Uetr(bits),
            receiver: *receivers.get((sender + other) % receivers.len())?,
            amount: AmountMinor::new(1 + rng.below(AMOUNT_BELOW_MINOR))?,
            fields: body.map_or(&[], Vec::as_slice),
        });
    }
    let head = Head {
        kind: MessageKind::CustomerTransfer,
        sender: own,
        message_id: Text::new(&format!("BENCH-{number}"))?,
        settlement,
        currency: Currency::parse(b"EUR")?,
        date: BusinessDate::parse(DATE.as_bytes())?,
    };
    Some(Bytes::from(encode(&head, &payments)))
}

/// Connections that stand from run to run, and the threads that serve them.
#[derive(Debug)]
pub struct Crowd {
    runtime: Runtime,
    members: Vec<Option<Member>>,
}

#[derive(Debug)]
struct Member {
    nodes: Vec<String>,
    tls: Arc<ClientConfig>,
    at: usize,
    session: Option<Session>,
}

impl Crowd {
    /// Connects every participant.
    ///
    /// # Errors
    /// When a node does not take a connection.
    pub fn connect(senders: &[Sender]) -> Result<Self, ClusterError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("load")
            .enable_all()
            .build()
            .map_err(io("start the load's threads"))?;
        let members = senders.iter().map(|sender| {
            let session = Session::connect(
                sender.nodes.first().map_or("", String::as_str),
                sender.tls.clone(),
            );
            Ok(Some(Member {
                nodes: sender.nodes.clone(),
                tls: sender.tls.clone(),
                at: 0,
                session: Some(runtime.block_on(session)?),
            }))
        });
        let members = members.collect::<Result<_, ClientError>>()?;
        Ok(Self { runtime, members })
    }

    /// Hands a load in as fast as it is answered, or paced: then a participant's messages are due one `interval` apart,
    /// and those of all participants are spread over it.
    ///
    /// # Errors
    /// When a message is not taken whole.
    pub fn run(&mut self, load: &Load, interval: Option<Duration>) -> Result<Run, ClusterError> {
        let pending = self.start(load, interval);
        self.finish(pending)
    }

    /// Begins a run beside others.
    pub fn start(&mut self, load: &Load, interval: Option<Duration>) -> Pending {
        let begun = now();
        let mut tasks = JoinSet::new();
        let count = u32::try_from(self.members.len().max(1)).unwrap_or(u32::MAX);
        for (place, messages) in load.messages.iter().enumerate() {
            let Some(member) = self.members.get_mut(place).and_then(Option::take) else {
                continue;
            };
            let pace = interval.map(|interval| {
                let share = u32::try_from(place).unwrap_or(0);
                (begun + interval * share / count, interval)
            });
            let (messages, len) = (messages.clone(), load.len);
            tasks.spawn_on(
                async move { (place, hand_in(member, messages, len, pace).await) },
                self.runtime.handle(),
            );
        }
        Pending {
            begun,
            tasks,
            len: load.len,
        }
    }

    /// Waits for a run's last answer.
    ///
    /// # Errors
    /// When a message was not taken whole.
    pub fn finish(&mut self, mut pending: Pending) -> Result<Run, ClusterError> {
        let mut answers = Vec::new();
        let mut failed = None;
        while let Some(done) = self.runtime.block_on(pending.tasks.join_next()) {
            let (place, (member, result)) = done
                .map_err(|_| ClusterError::Unexpected("a participant's task ended".to_owned()))?;
            if let Some(slot) = self.members.get_mut(place) {
                *slot = Some(member);
            }
            match result {
                Ok(own) => answers.extend(own),
                Err(error) => failed = Some(error),
            }
        }
        answers.sort_by_key(|answer: &Answered| answer.at);
        match failed {
            Some(error) => Err(error),
            None => Ok(Run {
                begun: pending.begun,
                answers,
                len: pending.len,
            }),
        }
    }
}

/// A run under way.
#[derive(Debug)]
pub struct Pending {
    begun: Instant,
    tasks: JoinSet<(usize, HandedIn)>,
    len: u64,
}

/// A participant that is done, and its answers.
type HandedIn = (Member, Result<Vec<Answered>, ClusterError>);

async fn hand_in(
    mut member: Member,
    messages: Vec<Bytes>,
    len: u64,
    pace: Option<(Instant, Duration)>,
) -> HandedIn {
    let mut answers = Vec::with_capacity(messages.len());
    let mut due = pace.map(|(first, _)| first);
    for message in messages {
        if let Some(due) = due {
            tokio::time::sleep_until(due.into()).await;
        }
        let sent = due.unwrap_or_else(now);
        if let Err(error) = member.hand_in(message, len).await {
            return (member, Err(error));
        }
        answers.push(Answered {
            due: sent,
            at: now(),
        });
        due = due.zip(pace).map(|(due, (_, interval))| due + interval);
    }
    (member, Ok(answers))
}

impl Member {
    /// Until it is taken; at the next node when one does not answer.
    async fn hand_in(&mut self, message: Bytes, len: u64) -> Result<(), ClusterError> {
        let ask = Ask {
            minimal: true,
            ..Ask::message(message)
        };
        let begun = now();
        loop {
            let failed = match self.once(&ask).await {
                Ok(reply) if reply.status.as_u16() != 503 => {
                    let answer: Answer = reply.json()?;
                    let good = matches!(answer.status.as_str(), "taken" | "repeat")
                        && answer.refused.unwrap_or(0) == 0
                        && answer.accepted.is_none_or(|count| u64::from(count) == len);
                    return good
                        .then_some(())
                        .ok_or_else(|| ClusterError::Unexpected(format!("an answer: {answer:?}")));
                }
                Ok(reply) => reply.refusal(),
                Err(error) => {
                    self.session = None;
                    self.at = (self.at + 1) % self.nodes.len().max(1);
                    error
                }
            };
            if begun.elapsed() > PATIENCE {
                return Err(failed.into());
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn once(&mut self, ask: &Ask<'_>) -> Result<clearspan_node::client::Reply, ClientError> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => {
                let node = self.nodes.get(self.at).map_or("", String::as_str);
                Session::connect(node, self.tls.clone()).await?
            }
        };
        let reply = session.ask(ask).await?;
        self.session = Some(session);
        Ok(reply)
    }
}

/// Each thread's share of a run, for people: by name.
pub(super) fn merge(into: &mut BTreeMap<String, Vec<f64>>, one: BTreeMap<String, f64>) {
    for (name, value) in one {
        into.entry(name).or_default().push(value);
    }
}
