//! Participants that hand packages in: each over a connection of its own, the next after the answer to the one before.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
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
use crate::generate::message::{self, agent};
use crate::generate::rng::Rng;
use crate::generate::{Version, Wrapping};

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
    /// Their numbers, in the same places: [`drawn`] says what each holds.
    pub numbers: Vec<Vec<u64>>,
    /// Payments of each message.
    pub len: u64,
}

/// An answer that came.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    /// Who sent it: its place among the participants.
    pub place: usize,
    /// When the message was due.
    pub due: Instant,
    /// When its answer was there.
    pub at: Instant,
    /// How often it was handed in again.
    pub again: u32,
    /// Whether it turned out to have been taken before.
    pub repeat: bool,
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
        let form = if text { Form::Text } else { Form::Bare };
        self.draw_in(form, payments, len, settlement)
    }

    /// The same, in any form.
    pub fn draw_in(&mut self, form: Form, payments: u64, len: u32, settlement: Settlement) -> Load {
        let senders = self.senders.len().max(1) as u64;
        let each = payments.div_ceil(u64::from(len)).div_ceil(senders);
        let receivers: Vec<Bic> = self.senders.iter().map(|sender| sender.bic).collect();
        let mut messages = Vec::with_capacity(self.senders.len());
        let mut numbers = Vec::with_capacity(self.senders.len());
        for place in 0..self.senders.len() {
            let (mut own, mut own_numbers) = (Vec::new(), Vec::new());
            for _ in 0..each {
                self.drawn += 1;
                let number = self.drawn;
                if let Some(message) = message(number, &receivers, place, len, settlement, form) {
                    own.push(message);
                    own_numbers.push(number);
                }
            }
            messages.push(own);
            numbers.push(own_numbers);
        }
        Load {
            messages,
            numbers,
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

/// In which form messages are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Compact packages with what decides, and nothing else.
    Bare,
    /// Compact packages with names, accounts and references.
    Text,
    /// pacs.008 with the same content as [`Form::Text`].
    Xml,
}

/// A payment of a message, as it was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Its UETR.
    pub uetr: u128,
    /// The receiver's place among the participants.
    pub receiver: usize,
    /// The amount.
    pub amount_minor: u64,
}

/// The payments of the message of this number, which a participant sends to the others; the same each time.
pub fn drawn(
    number: u64,
    sender: usize,
    participants: usize,
    len: u32,
) -> impl Iterator<Item = Drawn> {
    let mut rng = Rng::new(11, number);
    (0..len).map(move |_| {
        let bits = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        let other = 1 + rng.index(participants.max(2) - 1);
        Drawn {
            // Version 4, variant 2, as in a UUID.
            uetr: bits & !(0xF << 76) & !(0b11 << 62) | 4 << 76 | 0b10 << 62,
            receiver: (sender + other) % participants.max(1),
            amount_minor: 1 + rng.below(AMOUNT_BELOW_MINOR),
        }
    })
}

/// What a payment says beside what decides.
struct Words {
    end_to_end: String,
    account: String,
    reference: String,
}

const DEBTOR: &str = "Northern Mills and Sons Ltd";
const DEBTOR_ACCOUNT: &str = "DE89370400440532013000";
const CREDITOR: &str = "Harbour Light Works GmbH";

fn words(rng: &mut Rng, number: u64, at: u32) -> Words {
    Words {
        end_to_end: format!("E2E-{number}-{at}"),
        account: format!("DE{:020}", rng.below(1 << 60)),
        reference: format!("Invoice {} of {DATE}, thank you", rng.below(1 << 40)),
    }
}

fn message(
    number: u64,
    receivers: &[Bic],
    sender: usize,
    len: u32,
    settlement: Settlement,
    form: Form,
) -> Option<Bytes> {
    let own = *receivers.get(sender)?;
    let mut rng = Rng::new(12, number);
    let words: Vec<Words> = match form {
        Form::Bare => Vec::new(),
        Form::Text | Form::Xml => (0..len).map(|at| words(&mut rng, number, at)).collect(),
    };
    let drawn: Vec<Drawn> = drawn(number, sender, receivers.len(), len).collect();
    if form == Form::Xml {
        return xml(number, own, receivers, settlement, &drawn, &words);
    }
    let bodies: Vec<Vec<u8>> = words.iter().map(body).collect();
    let mut payments = Vec::new();
    for (at, drawn) in drawn.iter().enumerate() {
        payments.push(Payment {
            id: PaymentId::Uetr(drawn.uetr),
            receiver: *receivers.get(drawn.receiver)?,
            amount: AmountMinor::new(drawn.amount_minor)?,
            fields: bodies.get(at).map_or(&[], Vec::as_slice),
        });
    }
    let head = Head {
        kind: MessageKind::CustomerTransfer,
        sender: own,
        message_id: Text::new(&message_id(number))?,
        settlement,
        currency: Currency::parse(b"EUR")?,
        date: BusinessDate::parse(DATE.as_bytes())?,
    };
    Some(Bytes::from(encode(&head, &payments)))
}

fn message_id(number: u64) -> String {
    format!("BENCH-{number}")
}

fn body(words: &Words) -> Vec<u8> {
    let mut body = Vec::new();
    fields::push(&mut body, Field::EndToEndId, &words.end_to_end);
    fields::push(&mut body, Field::DebtorName, DEBTOR);
    fields::push(&mut body, Field::DebtorAccount, DEBTOR_ACCOUNT);
    fields::push(&mut body, Field::CreditorName, CREDITOR);
    fields::push(&mut body, Field::CreditorAccount, &words.account);
    fields::push(&mut body, Field::Remittance, &words.reference);
    body
}

fn xml(
    number: u64,
    sender: Bic,
    receivers: &[Bic],
    settlement: Settlement,
    drawn: &[Drawn],
    words: &[Words],
) -> Option<Bytes> {
    let from = sender.to_string();
    let urgent = matches!(settlement, Settlement::Gross { .. });
    let mut payments = Vec::new();
    for (drawn, words) in drawn.iter().zip(words) {
        let to = receivers.get(drawn.receiver)?.to_string();
        let mut tail = String::new();
        let account = |tail: &mut String, name: &str, text: &str| {
            let _ = write!(tail, "<{name}><Id><IBAN>{text}</IBAN></Id></{name}>");
        };
        let party = |tail: &mut String, name: &str, text: &str| {
            let _ = write!(tail, "<{name}><Nm>{text}</Nm></{name}>");
        };
        party(&mut tail, "Dbtr", DEBTOR);
        account(&mut tail, "DbtrAcct", DEBTOR_ACCOUNT);
        agent(&mut tail, "DbtrAgt", &from);
        agent(&mut tail, "CdtrAgt", &to);
        party(&mut tail, "Cdtr", CREDITOR);
        account(&mut tail, "CdtrAcct", &words.account);
        let _ = write!(tail, "<RmtInf><Ustrd>{}</Ustrd></RmtInf>", words.reference);
        payments.push(message::Payment {
            end_to_end_id: Some(words.end_to_end.clone()),
            uetr: Some(uetr_text(drawn.uetr)),
            currency: Some("EUR".to_owned()),
            amount: format!(
                "{}.{:02}",
                drawn.amount_minor / 100,
                drawn.amount_minor % 100
            ),
            priority: urgent.then_some("URGT"),
            charges: "<ChrgBr>DEBT</ChrgBr>".to_owned(),
            instructed_agent: Some(to),
            tail,
            ..message::Payment::default()
        });
    }
    let message = message::Message {
        kind: message::Kind::Customer,
        version: Version::new(8)?,
        wrapping: Wrapping::Bare,
        message_id: message_id(number),
        created: format!("{DATE}T08:00:00Z"),
        count: payments.len().to_string(),
        control_sum: None,
        total: None,
        value_date: Some(DATE.to_owned()),
        type_information: String::new(),
        instructing_agent: from,
        operator: "",
        payments: &payments,
    };
    let mut out = String::new();
    message.write(&mut out);
    Some(Bytes::from(out))
}

/// As messages spell it: lower case, in five groups.
fn uetr_text(uetr: u128) -> String {
    let hex = format!("{uetr:032x}");
    let (a, rest) = hex.split_at(8);
    let (b, rest) = rest.split_at(4);
    let (c, rest) = rest.split_at(4);
    let (d, e) = rest.split_at(4);
    format!("{a}-{b}-{c}-{d}-{e}")
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
        self.start_watched(load, interval, &Watch::default())
    }

    /// Begins a run that is watched, and can be ended before its load is.
    pub fn start_watched(
        &mut self,
        load: &Load,
        interval: Option<Duration>,
        watch: &Watch,
    ) -> Pending {
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
            let (messages, len, watch) = (messages.clone(), load.len, watch.clone());
            tasks.spawn_on(
                async move {
                    (
                        place,
                        hand_in(member, place, messages, len, pace, &watch).await,
                    )
                },
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

/// A look at a run from outside, and a way to end it.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    answered: Arc<AtomicU64>,
    end: Arc<OnceLock<Instant>>,
    failed: Arc<AtomicBool>,
    /// Messages that each participant sends in any case.
    least: usize,
}

impl Watch {
    /// Of a run in which each participant sends at least so many messages, however early it is ended.
    #[must_use]
    pub fn of_at_least(least: usize) -> Self {
        Self {
            least,
            ..Self::default()
        }
    }

    /// Messages that have been answered.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Whether a message was not taken whole: then not all will be answered.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Has participants send nothing more that is due after this. Only the first time counts.
    pub fn end(&self, after: Instant) {
        let _ = self.end.set(after);
    }

    fn ends(&self, sent: usize, due: Option<Instant>) -> bool {
        let end = self.end.get();
        sent >= self.least && end.is_some_and(|&end| due.is_none_or(|due| due > end))
    }
}

/// A run under way.
#[derive(Debug)]
pub struct Pending {
    /// When its first message was due.
    pub begun: Instant,
    tasks: JoinSet<(usize, HandedIn)>,
    len: u64,
}

/// A participant that is done, and its answers.
type HandedIn = (Member, Result<Vec<Answered>, ClusterError>);

async fn hand_in(
    mut member: Member,
    place: usize,
    messages: Vec<Bytes>,
    len: u64,
    pace: Option<(Instant, Duration)>,
    watch: &Watch,
) -> HandedIn {
    let mut answers = Vec::with_capacity(messages.len());
    let mut due = pace.map(|(first, _)| first);
    for message in messages {
        if let Some(due) = due {
            tokio::time::sleep_until(due.into()).await;
        }
        if watch.ends(answers.len(), due) {
            break;
        }
        let sent = due.unwrap_or_else(now);
        let (again, repeat) = match member.hand_in(message, len).await {
            Ok(how) => how,
            Err(error) => {
                watch.failed.store(true, Ordering::Relaxed);
                return (member, Err(error));
            }
        };
        answers.push(Answered {
            place,
            due: sent,
            at: now(),
            again,
            repeat,
        });
        watch.answered.fetch_add(1, Ordering::Relaxed);
        due = due.zip(pace).map(|(due, (_, interval))| due + interval);
    }
    (member, Ok(answers))
}

impl Member {
    /// Until it is taken; at the next node when one does not answer. How often it was handed in again, and whether it had
    /// been taken before.
    async fn hand_in(&mut self, message: Bytes, len: u64) -> Result<(u32, bool), ClusterError> {
        let ask = Ask {
            minimal: true,
            ..Ask::message(message)
        };
        let begun = now();
        let mut again = 0;
        loop {
            let failed = match self.once(&ask).await {
                Ok(reply) if reply.status.as_u16() != 503 => {
                    let answer: Answer = reply.json()?;
                    let good = matches!(answer.status.as_str(), "taken" | "repeat")
                        && answer.refused.unwrap_or(0) == 0
                        && answer.accepted.is_none_or(|count| u64::from(count) == len);
                    return good
                        .then_some((again, answer.status == "repeat"))
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
            again += 1;
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
