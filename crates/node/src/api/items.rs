//! A participant's output as JSON: what each number says, from what never changes once it stands. Payments themselves, as
//! they were sent, are in the documents.

use clearspan_ledger::stream::{GrossEvent, Item, ItemBody};
use clearspan_ledger::{
    Finality, Ledger, MessageNo, ParticipantId, PaymentNo, PaymentRef, Reason, ShardId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::messages::{Refusal, refusals};
use super::{Api, COORDINATOR, Code, Problem};
use crate::engine::Reading;
use crate::history::Position;
use crate::summary::Money;

/// What an output number says. Fields that are not of its kind are left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ItemState {
    /// `reception`, `gap`, `gross`, `gross_credit`, `funded`, `netted`, `net_result`, `net_credits`, `cancellation_answer`,
    /// `recall_request`, `ended` or `statement`.
    pub kind: String,
    /// The journal position that it proves, in the participant's home shard.
    pub at: Position,
    /// Which of its item's numbers this is, from 1: credits of a large cycle take several.
    pub page: u64,
    /// How many numbers the item takes.
    pub pages: u32,
    /// What became of a gross payment: `settled`, `queued`, `warned`, `refused` or `cancelled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// ISO 20022 code of a refusal, or of why something waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What the code means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Identifier of the message that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// UETR of the payment that it is about, or the key of its transaction identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment: Option<String>,
    /// Who pays, or who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// Amount; of credits of a cycle the sum over all pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<Money>,
    /// The netting cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle: Option<u32>,
    /// Payments that were accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<u32>,
    /// Payments that were refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<u32>,
    /// The refused payments of a reception.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<Refusal>,
    /// Payments that a cycle settled, or credited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<u32>,
    /// Payments that wait for the next cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u32>,
    /// Numbers that are missing, first and last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<[u64; 2]>,
    /// An account's statement of a business day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<StatementState>,
}

/// One account over one business day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatementState {
    /// Counts from 1 per account.
    pub sequence: u32,
    /// The business date.
    pub business_date: String,
    /// Balance before the day.
    pub opening: Money,
    /// Sum of debits.
    pub debits: Money,
    /// Sum of credits.
    pub credits: Money,
    /// Balance after the day.
    pub closing: Money,
}

/// An output number as JSON; other shards' states are waited for once.
pub(super) fn read_item(
    api: &Api,
    participant: ParticipantId,
    home: ShardId,
    number: u64,
    stale: bool,
) -> Result<ItemState, Problem> {
    let once = || {
        let reading = api.engine.read();
        let ledger = reading.ledger(home);
        let stream = ledger.stream(participant);
        let item = stream
            .and_then(|stream| stream.get(number))
            .ok_or_else(|| Problem::not_found(format!("there is no output number {number}")))?;
        state(&reading, ledger, home, item, number)
    };
    match once() {
        Err(Problem {
            code: Code::Behind, ..
        }) => {
            api.catch_up(api.shards(), stale)?;
            once()
        }
        other => other,
    }
}

fn behind() -> Problem {
    Problem::new(
        Code::Behind,
        "this node has not yet all of it, or retention has ended; ask again",
    )
}

fn state(
    reading: &Reading<'_>,
    ledger: &Ledger,
    home: ShardId,
    item: &Item,
    number: u64,
) -> Result<ItemState, Problem> {
    let message_id = |shard: ShardId, message: MessageNo| {
        let record = reading.ledger(shard).message(message);
        record
            .map(|record| record.message_id.as_str().to_owned())
            .ok_or_else(behind)
    };
    let payment_id = |payment: PaymentRef| {
        let view = reading.ledger(payment.shard).payment(payment.payment);
        view.map(|view| view.id.to_string()).ok_or_else(behind)
    };
    let own = |payment: PaymentNo| ledger.payment(payment).ok_or_else(behind);
    let name = |participant: ParticipantId| {
        let directory = reading.ledger(COORDINATOR).directory();
        directory
            .get(participant)
            .map(|terms| terms.bic.to_string())
            .ok_or_else(behind)
    };
    let finality = Finality {
        index: item.index,
        time: item.time,
    };
    let mut state = ItemState {
        kind: String::new(),
        at: Position::of(home, finality),
        page: number.saturating_sub(item.number) + 1,
        pages: item.pages,
        event: None,
        code: None,
        reason: None,
        message_id: None,
        payment: None,
        sender: None,
        amount: None,
        cycle: None,
        accepted: None,
        refused: None,
        refusals: Vec::new(),
        settled: None,
        dropped: None,
        missing: None,
        statement: None,
    };
    let kind = match &item.body {
        ItemBody::Reception { message } => {
            let record = ledger.message(*message).ok_or_else(behind)?;
            state.message_id = Some(record.message_id.as_str().to_owned());
            state.because(record.refused);
            let whole = record.refused.is_some();
            let refused = if whole {
                record.count
            } else {
                record.refused_count
            };
            state.refused = Some(refused);
            state.accepted = Some(record.count.saturating_sub(refused));
            state.refusals = refusals(ledger, *message, &[]);
            "reception"
        }
        ItemBody::Gap {
            message_id,
            missing_from,
            missing_through,
        } => {
            let id = message_id.as_str();
            state.message_id = (!id.is_empty()).then(|| id.to_owned());
            state.missing = Some([*missing_from, *missing_through]);
            "gap"
        }
        ItemBody::Gross { payment, event } => {
            let view = own(*payment)?;
            state.payment = Some(view.id.to_string());
            state.message_id = Some(message_id(home, view.message)?);
            state.amount = Some(Money::new(view.currency, i128::from(view.amount.minor())));
            let (event, reason) = match event {
                GrossEvent::Settled => ("settled", None),
                GrossEvent::Queued { reason } => ("queued", Some(*reason)),
                GrossEvent::Warned => ("warned", None),
                GrossEvent::Refused { reason } => ("refused", Some(*reason)),
                GrossEvent::Cancelled => ("cancelled", None),
            };
            state.event = Some(event.to_owned());
            state.because(reason);
            "gross"
        }
        ItemBody::GrossCredit(advice) => {
            state.payment = Some(payment_id(advice.payment)?);
            state.message_id = Some(message_id(advice.payment.shard, advice.message)?);
            state.sender = Some(name(advice.sender)?);
            let minor = i128::from(advice.amount.minor());
            state.amount = Some(Money::new(advice.currency, minor));
            "gross_credit"
        }
        ItemBody::Funded {
            reference,
            currency,
            amount,
        } => {
            state.message_id = Some(reference.as_str().to_owned());
            state.amount = Some(Money::new(*currency, i128::from(amount.minor())));
            "funded"
        }
        ItemBody::Netted {
            cycle,
            message,
            settled,
            dropped,
        } => {
            state.cycle = Some(cycle.get());
            state.message_id = Some(message_id(home, *message)?);
            (state.settled, state.dropped) = (Some(*settled), Some(*dropped));
            "netted"
        }
        ItemBody::NetResult { cycle } => {
            state.cycle = Some(cycle.get());
            "net_result"
        }
        ItemBody::NetCredits {
            cycle,
            currency,
            count,
            minor,
            ..
        } => {
            state.cycle = Some(cycle.get());
            state.settled = Some(*count);
            let minor = i128::try_from(*minor).unwrap_or(i128::MAX);
            state.amount = Some(Money::new(*currency, minor));
            "net_credits"
        }
        ItemBody::CancellationAnswer { message } => {
            state.message_id = Some(message_id(home, *message)?);
            "cancellation_answer"
        }
        ItemBody::RecallRequest { from, notice } => {
            state.message_id = Some(message_id(*from, notice.request)?);
            state.payment = Some(payment_id(notice.original)?);
            state.sender = Some(name(notice.sender)?);
            "recall_request"
        }
        ItemBody::Ended { message } => {
            state.message_id = Some(message_id(home, *message)?);
            "ended"
        }
        ItemBody::Statement(statement) => {
            let money = |minor: i128| Money::new(statement.currency, minor);
            let sum = |minor: u128| money(i128::try_from(minor).unwrap_or(i128::MAX));
            state.statement = Some(StatementState {
                sequence: statement.sequence,
                business_date: statement.date.to_string(),
                opening: money(statement.opening_minor),
                debits: sum(statement.debits_minor),
                credits: sum(statement.credits_minor),
                closing: money(statement.closing_minor),
            });
            "statement"
        }
    };
    kind.clone_into(&mut state.kind);
    Ok(state)
}

impl ItemState {
    fn because(&mut self, reason: Option<Reason>) {
        self.code = reason.map(|reason| reason.code().to_owned());
        self.reason = reason.map(|reason| reason.text().to_owned());
    }
}
