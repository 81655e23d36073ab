//! Answers to queries, in the form in which they are given: every one says at which journal position it holds (rule R36).

use std::borrow::Cow;

use clearspan_ledger::day::PaymentStatus;
use clearspan_ledger::message::Class;
use clearspan_ledger::query::PaymentView;
use clearspan_ledger::stream::{GrossEvent, ItemBody};
use clearspan_ledger::{
    Bic, Currency, CycleNumber, Finality, Ledger, ParticipantId, PaymentId, PaymentRef, ShardId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::Reading;
use crate::summary::Money;

/// A journal position with its shard, and its log time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Position {
    /// Shard.
    pub shard: u16,
    /// Log index.
    pub index: u64,
    /// Log time, UTC.
    pub time: String,
}

impl Position {
    pub(crate) fn of(shard: ShardId, at: Finality) -> Self {
        Self {
            shard: shard.get(),
            index: at.index.get(),
            time: at.time.to_string(),
        }
    }

    fn now(shard: ShardId, ledger: &Ledger) -> Self {
        let (index, time) = ledger.position();
        Self::of(shard, Finality { index, time })
    }
}

/// A payment's whole history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PaymentHistory {
    /// UETR, or the key of its transaction identifier.
    pub id: String,
    /// What has become of it.
    pub status: Cow<'static, str>,
    /// Reason code, where there is one.
    pub code: Option<Cow<'static, str>>,
    /// What the reason means.
    pub reason: Option<Cow<'static, str>>,
    /// Who pays.
    pub sender: String,
    /// Who is paid; `None` when it was refused for lack of one.
    pub receiver: Option<String>,
    /// Amount.
    pub amount: Money,
    /// Sum of returns.
    pub returned: Money,
    /// Class when it settles gross.
    pub class: Option<Cow<'static, str>>,
    /// The cycle that settled it.
    pub cycle: Option<u32>,
    /// Business date.
    pub business_date: String,
    /// Identifier of the message it came with.
    pub message_id: String,
    /// Its place in that message, from 1.
    pub position_in_message: u32,
    /// Moment of entry.
    pub entered: Position,
    /// Moment from which its sender could not take it back.
    pub irrevocable: Option<Position>,
    /// Moment of finality.
    pub settled: Option<Position>,
    /// An earlier payment with the same content under another key.
    pub same_content_as: Option<String>,
    /// Everything that was put out about it, in order: to its sender, then to its receiver.
    pub events: Vec<PaymentEvent>,
    /// The position at which this answer holds.
    pub as_of: Position,
}

/// One output number that says something about a payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PaymentEvent {
    /// What it says.
    pub event: String,
    /// Whose output.
    pub participant: String,
    /// Its number there.
    pub number: u64,
    /// The position it proves.
    pub at: Position,
}

const fn status_name(status: PaymentStatus) -> &'static str {
    match status {
        PaymentStatus::Refused => "refused",
        PaymentStatus::Netting => "accepted, waits for netting",
        PaymentStatus::Settled => "settled",
        PaymentStatus::Queued => "queued",
        PaymentStatus::Ended => "refused after acceptance",
        PaymentStatus::Cancelled => "cancelled",
        PaymentStatus::Claiming => "return, waits for the original to be found",
    }
}

const fn class_name(class: Class) -> &'static str {
    match class {
        Class::Urgent => "urgent",
        Class::High => "high",
        Class::Normal => "normal",
    }
}

/// What an item of the sender's output says about a payment.
fn told_sender(body: &ItemBody, view: &PaymentView) -> Option<String> {
    match body {
        ItemBody::Reception { message } if *message == view.message => {
            let refused = view.status == PaymentStatus::Refused;
            Some(if refused { "refused" } else { "received" }.to_owned())
        }
        ItemBody::Gross { payment, event } if *payment == view.payment => Some(match event {
            GrossEvent::Settled => "settled".to_owned(),
            GrossEvent::Queued { reason } => format!("queued: {} {}", reason.code(), reason.text()),
            GrossEvent::Warned => "still queued at the time of its warning".to_owned(),
            GrossEvent::Refused { reason } => {
                format!("refused: {} {}", reason.code(), reason.text())
            }
            GrossEvent::Cancelled => "cancelled".to_owned(),
        }),
        ItemBody::Netted { cycle, message, .. }
            if *message == view.message && view.class.is_none() =>
        {
            match (view.cycle, view.status) {
                (Some(own), _) if own == *cycle => Some(format!("settled in cycle {cycle}")),
                (Some(own), _) if own < *cycle => None,
                (_, PaymentStatus::Refused | PaymentStatus::Cancelled) => None,
                _ => Some(format!("dropped from cycle {cycle} for lack of funds")),
            }
        }
        ItemBody::Ended { message }
            if *message == view.message && view.status == PaymentStatus::Ended =>
        {
            Some("refused at the end of the business day".to_owned())
        }
        _ => None,
    }
}

fn events(reading: &Reading<'_>, shard: ShardId, view: &PaymentView) -> Vec<PaymentEvent> {
    let directory = reading.ledger(ShardId::new(0)).directory();
    let mut events = Vec::new();
    let mut gather = |participant: ParticipantId, told: &dyn Fn(&ItemBody) -> Option<String>| {
        let Some((home, stream)) = reading
            .ledgers()
            .find_map(|(home, ledger)| ledger.stream(participant).map(|stream| (home, stream)))
        else {
            return;
        };
        for item in stream.iter() {
            if let Some(event) = told(&item.body) {
                let at = Position::of(
                    home,
                    Finality {
                        index: item.index,
                        time: item.time,
                    },
                );
                let participant = directory.bic(participant).to_string();
                events.push(PaymentEvent {
                    event,
                    participant,
                    number: item.number,
                    at,
                });
            }
        }
    };
    gather(view.sender, &|body| told_sender(body, view));
    if view.status == PaymentStatus::Settled {
        gather(view.receiver, &|body| match body {
            ItemBody::GrossCredit(advice) => (advice.payment
                == PaymentRef {
                    shard,
                    payment: view.payment,
                })
            .then(|| "credited to the receiver".to_owned()),
            ItemBody::NetCredits {
                cycle,
                from,
                currency,
                ..
            } => (Some(*cycle) == view.cycle && *from == shard && *currency == view.currency)
                .then(|| format!("credited to the receiver, with others of cycle {cycle}")),
            _ => None,
        });
    }
    events
}

fn history(
    reading: &Reading<'_>,
    shard: ShardId,
    ledger: &Ledger,
    view: &PaymentView,
) -> PaymentHistory {
    let directory = ledger.directory();
    let message_id = ledger
        .message(view.message)
        .map(|record| record.message_id.to_string())
        .unwrap_or_default();
    PaymentHistory {
        id: view.id.to_string(),
        status: status_name(view.status).into(),
        code: view.reason.map(|reason| reason.code().into()),
        reason: view.reason.map(|reason| reason.text().into()),
        sender: directory.bic(view.sender).to_string(),
        receiver: (view.receiver != view.sender).then(|| directory.bic(view.receiver).to_string()),
        amount: Money::new(view.currency, view.amount.signed()),
        returned: Money::new(view.currency, view.returned.signed()),
        class: view.class.map(|class| class_name(class).into()),
        cycle: view.cycle.map(CycleNumber::get),
        business_date: view.date.to_string(),
        message_id,
        position_in_message: view.position + 1,
        entered: Position::of(shard, view.entered),
        irrevocable: view.irrevocable.map(|at| Position::of(shard, at)),
        settled: view.settled.map(|at| Position::of(shard, at)),
        same_content_as: view
            .same_content_as
            .and_then(|other| ledger.payment(other))
            .map(|other| other.id.to_string()),
        events: events(reading, shard, view),
        as_of: Position::now(shard, ledger),
    }
}

/// Every payment under a key, of any sender: one that was refused and sent again stands here twice.
#[must_use]
pub fn payments(reading: &Reading<'_>, id: PaymentId) -> Vec<PaymentHistory> {
    reading
        .ledgers()
        .flat_map(|(shard, ledger)| {
            ledger
                .payments_with_id(id)
                .into_iter()
                .map(move |view| history(reading, shard, ledger, &view))
        })
        .collect()
}

/// A participant's own queue: what waits for funds or its time, most urgent first, then what waits for netting.
#[must_use]
pub fn queue(reading: &Reading<'_>, bic: Bic) -> Option<Vec<PaymentHistory>> {
    let participant = reading.ledger(ShardId::new(0)).directory().find(bic)?;
    let (shard, ledger) = reading
        .ledgers()
        .find(|(_, ledger)| ledger.stream(participant).is_some())?;
    Some(
        ledger
            .queue(participant)
            .iter()
            .map(|view| history(reading, shard, ledger, view))
            .collect(),
    )
}

/// What waits elsewhere and would credit a participant.
#[must_use]
pub fn incoming(reading: &Reading<'_>, bic: Bic) -> Option<Vec<PaymentHistory>> {
    let participant = reading.ledger(ShardId::new(0)).directory().find(bic)?;
    Some(
        reading
            .ledgers()
            .flat_map(|(shard, ledger)| {
                ledger
                    .expected_incoming(participant)
                    .into_iter()
                    .map(move |view| history(reading, shard, ledger, &view))
            })
            .collect(),
    )
}

/// An account as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccountState {
    /// Whose.
    pub participant: String,
    /// Name.
    pub name: String,
    /// Balance.
    pub balance: Money,
    /// Credit line.
    pub credit_line: Money,
    /// Set aside by a running cycle.
    pub reserved: Money,
    /// What a payment may use.
    pub available: Money,
    /// Gross payments that wait on it.
    pub queued: usize,
    /// The position at which this answer holds.
    pub as_of: Position,
}

/// A participant's accounts, or the one in a currency.
#[must_use]
pub fn accounts(
    reading: &Reading<'_>,
    bic: Bic,
    currency: Option<Currency>,
) -> Option<Vec<AccountState>> {
    let participant = reading.ledger(ShardId::new(0)).directory().find(bic)?;
    let (shard, ledger) = reading
        .ledgers()
        .find(|(_, ledger)| ledger.stream(participant).is_some())?;
    let name = ledger
        .directory()
        .get(participant)
        .map(|terms| terms.name.clone())
        .unwrap_or_default();
    let mine = ledger.accounts().iter().filter(|account| {
        account.participant() == participant
            && currency.is_none_or(|currency| account.currency() == currency)
    });
    Some(
        mine.map(|account| AccountState {
            participant: bic.to_string(),
            name: name.clone(),
            balance: Money::new(account.currency(), account.balance_minor()),
            credit_line: Money::new(account.currency(), account.credit_line().signed()),
            reserved: Money::new(account.currency(), account.reserved_minor()),
            available: Money::new(account.currency(), account.available_minor()),
            queued: account.queued().count(),
            as_of: Position::now(shard, ledger),
        })
        .collect(),
    )
}

/// One cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CycleState {
    /// Number.
    pub cycle: u32,
    /// Business date.
    pub business_date: String,
    /// `running: cutting`, `settled`, `given up`.
    pub state: String,
    /// Rounds of reserving so far.
    pub rounds: u32,
    /// Payments in the set, once it has ended.
    pub in_set: Option<u64>,
    /// Cut-off, decision: positions in the coordinator's journal.
    pub opened: Option<Position>,
    /// Log index of the decision in shard 0.
    pub decided_index: Option<u64>,
    /// Each participant's result.
    pub results: Vec<NetState>,
    /// The position at which this answer holds.
    pub as_of: Position,
}

/// One participant's result of a cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetState {
    /// Whose.
    pub participant: String,
    /// Balance just before.
    pub opening: Money,
    /// Paid.
    pub paid: Money,
    /// Received.
    pub received: Money,
    /// Balance just after.
    pub closing: Money,
    /// Own payments settled and dropped.
    pub settled: u32,
    /// Dropped for lack of funds.
    pub dropped: u32,
}

/// A cycle, or all that are within retention.
#[must_use]
pub fn cycles(reading: &Reading<'_>, number: Option<CycleNumber>) -> Vec<CycleState> {
    let shard = ShardId::new(0);
    let coordinator = reading.ledger(shard);
    let as_of = Position::now(shard, coordinator);
    let wanted = |cycle: CycleNumber| number.is_none_or(|number| number == cycle);
    let money =
        |currency, minor: u128| Money::new(currency, i128::try_from(minor).unwrap_or(i128::MAX));
    let mut states: Vec<CycleState> = coordinator
        .cycle_summaries()
        .filter(|summary| wanted(summary.cycle))
        .map(|summary| CycleState {
            cycle: summary.cycle.get(),
            business_date: summary.date.to_string(),
            state: if summary.abandoned {
                "given up"
            } else {
                "settled"
            }
            .to_owned(),
            rounds: summary.rounds,
            in_set: Some(summary.set_count),
            opened: Some(Position::of(
                shard,
                Finality {
                    index: summary.opened,
                    time: summary.opened_time,
                },
            )),
            decided_index: (!summary.abandoned).then(|| summary.decided.get()),
            results: summary
                .results
                .iter()
                .map(|result| NetState {
                    participant: coordinator.directory().bic(result.participant).to_string(),
                    opening: Money::new(result.currency, result.opening_minor),
                    paid: money(result.currency, result.out_minor),
                    received: money(result.currency, result.in_minor),
                    closing: Money::new(result.currency, result.closing_minor),
                    settled: result.out_count,
                    dropped: result.dropped_count,
                })
                .collect(),
            as_of: as_of.clone(),
        })
        .collect();
    if let Some((cycle, phase, round)) = coordinator
        .cycle_running()
        .filter(|(cycle, ..)| wanted(*cycle))
    {
        states.push(CycleState {
            cycle: cycle.get(),
            business_date: coordinator
                .last_business_date()
                .map(|date| date.to_string())
                .unwrap_or_default(),
            state: format!("running: {phase:?}").to_lowercase(),
            rounds: round,
            in_set: None,
            opened: None,
            decided_index: None,
            results: Vec::new(),
            as_of,
        });
    }
    states
}
