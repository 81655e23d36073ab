//! Payments, accounts, queues and cycles.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use clearspan_ledger::{Bic, Currency, CycleNumber, PaymentId};

use super::access::Caller;
use super::extract::{Json, Path, Query};
use super::{Api, COORDINATOR, Problem, Scope, must_name};
use crate::history::{self, AccountState, CycleState, PaymentHistory};

type Answer<T> = Result<Json<T>, Problem>;

pub(super) async fn payments(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(scope): Query<Scope>,
) -> Answer<Vec<PaymentHistory>> {
    let only = scope.subject(&caller)?;
    api.blocking(move |api| {
        api.catch_up(api.shards(), scope.stale)?;
        let key =
            PaymentId::parse_uetr(id.as_bytes()).unwrap_or_else(|| PaymentId::of_transaction(&id));
        let mut found = history::payments(&api.engine.read(), key);
        if let Some(only) = only {
            let code = only.to_string();
            found.retain(|payment| {
                payment.sender == code || payment.receiver.as_deref() == Some(&code)
            });
        }
        if found.is_empty() {
            return Err(Problem::not_found(format!("there is no payment {id}")));
        }
        hide_others(&mut found, caller.only());
        Ok(Json(found))
    })
    .await
}

/// What the other side was told is the other side's.
fn hide_others(payments: &mut [PaymentHistory], only: Option<Bic>) {
    let Some(only) = only.map(|only| only.to_string()) else {
        return;
    };
    for payment in payments {
        payment.events.retain(|event| event.participant == only);
    }
}

pub(super) async fn accounts(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Query(scope): Query<Scope>,
) -> Answer<Vec<AccountState>> {
    let subject = scope.subject(&caller)?;
    let currency = scope
        .currency
        .as_deref()
        .map(|code| {
            Currency::parse(code.as_bytes())
                .ok_or_else(|| Problem::invalid(format!("{code:?} is not a currency code")))
        })
        .transpose()?;
    api.blocking(move |api| {
        let Some(bic) = subject else {
            api.catch_up(api.shards(), scope.stale)?;
            let reading = api.engine.read();
            let directory = reading.ledger(COORDINATOR).directory();
            let all = directory
                .iter()
                .filter_map(|(_, terms)| history::accounts(&reading, terms.bic, currency));
            return Ok(Json(all.flatten().collect()));
        };
        let (_, home) = api.find(bic, scope.stale)?;
        api.catch_up([home], scope.stale)?;
        Ok(Json(
            history::accounts(&api.engine.read(), bic, currency).unwrap_or_default(),
        ))
    })
    .await
}

pub(super) async fn queue(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Query(scope): Query<Scope>,
) -> Answer<Vec<PaymentHistory>> {
    let bic = must_name(scope.subject(&caller)?)?;
    api.blocking(move |api| {
        let (_, home) = api.find(bic, scope.stale)?;
        api.catch_up([home], scope.stale)?;
        let mut found = history::queue(&api.engine.read(), bic).unwrap_or_default();
        hide_others(&mut found, caller.only());
        Ok(Json(found))
    })
    .await
}

pub(super) async fn incoming(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Query(scope): Query<Scope>,
) -> Answer<Vec<PaymentHistory>> {
    let bic = must_name(scope.subject(&caller)?)?;
    api.blocking(move |api| {
        api.find(bic, scope.stale)?;
        api.catch_up(api.shards(), scope.stale)?;
        let mut found = history::incoming(&api.engine.read(), bic).unwrap_or_default();
        hide_others(&mut found, caller.only());
        Ok(Json(found))
    })
    .await
}

pub(super) async fn cycles(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Query(scope): Query<Scope>,
) -> Answer<Vec<CycleState>> {
    let only = scope.subject(&caller)?;
    api.blocking(move |api| read_cycles(api, None, only, scope.stale))
        .await
}

pub(super) async fn cycle(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(number): Path<u32>,
    Query(scope): Query<Scope>,
) -> Answer<Vec<CycleState>> {
    let only = scope.subject(&caller)?;
    api.blocking(move |api| read_cycles(api, Some(CycleNumber::new(number)), only, scope.stale))
        .await
}

fn read_cycles(
    api: &Api,
    number: Option<CycleNumber>,
    only: Option<Bic>,
    stale: bool,
) -> Answer<Vec<CycleState>> {
    api.catch_up([COORDINATOR], stale)?;
    let mut cycles = history::cycles(&api.engine.read(), number);
    if let (true, Some(number)) = (cycles.is_empty(), number) {
        return Err(Problem::not_found(format!("there is no cycle {number}")));
    }
    if let Some(only) = only.map(|only| only.to_string()) {
        for cycle in &mut cycles {
            cycle.results.retain(|result| result.participant == only);
        }
    }
    Ok(Json(cycles))
}
