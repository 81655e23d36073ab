//! Operators' acts: participants, business days, cycles. Every one is a log entry, and the node's log says who asked.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use clearspan_ledger::approvals::Act;
use clearspan_ledger::entry::{AdminCommand, Command, CycleCommand};
use clearspan_ledger::message::MessageKind;
use clearspan_ledger::{AdminRefusal, BusinessDate, DayState, Ledger, Reply};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::access::Caller;
use super::extract::{Body, Json};
use super::{Api, COORDINATOR, Code, Problem};
use crate::cluster::pki::ClientName;
use crate::engine::Lane;
use crate::events;
use crate::founding::{self, FoundingError};
use crate::settings::Settings;

pub(super) type Answer<T> = Result<Json<T>, Problem>;

/// How long an act of the whole cluster may take to reach every shard before it is answered as under way.
const EVERYWHERE_LOOKS: u32 = 1000;
const EVERYWHERE_LOOK: Duration = Duration::from_millis(10);

fn refused(refusal: AdminRefusal) -> Problem {
    Problem::new(Code::Refused, format!("the ledger refused it: {refusal:?}"))
}

pub(super) fn note<T>(caller: &Caller, act: &str, done: &Answer<T>) {
    let who = match &caller.name {
        ClientName::Operator(name) | ClientName::Auditor(name) => name.clone(),
        ClientName::Participant(bic) => bic.to_string(),
    };
    let why = done.as_ref().err().map(|problem| problem.detail.clone());
    events::log(
        "admin.act",
        json!({ "operator": who, "act": act, "done": done.is_ok(), "why": why }),
    );
}

impl Api {
    fn coordinate(&self, command: &Command) -> Result<(), Problem> {
        self.must_hold_state()?;
        match self
            .engine
            .execute(COORDINATOR, command, Lane::Urgent)?
            .reply
        {
            Reply::Refused(refusal) => Err(refused(refusal)),
            _ => Ok(()),
        }
    }

    /// After an act was taken: waits until a condition holds in every shard; whether it does.
    fn everywhere(&self, holds: impl Fn(&Ledger) -> bool) -> Result<bool, Problem> {
        self.catch_up([COORDINATOR], false)
            .map_err(Problem::though_done)?;
        for _ in 0..EVERYWHERE_LOOKS {
            if self
                .shards()
                .all(|shard| self.engine.with_ledger(shard, &holds))
            {
                return Ok(true);
            }
            std::thread::sleep(EVERYWHERE_LOOK);
        }
        Ok(false)
    }
}

/// Participants that were taken up.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct TakenUp {
    /// How many the settings name.
    participants: usize,
    /// The settings' business date; it is not opened by this.
    business_date: String,
    /// Whether this node has seen it done in every shard; otherwise it is under way.
    everywhere: bool,
}

/// A business day that was opened.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct DayOpened {
    /// Its date.
    business_day: String,
    /// Whether this node has seen it done in every shard; otherwise it is under way.
    everywhere: bool,
}

/// A cut-off that was passed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct CutOffPassed {
    /// The kind of message that was named; all when none was.
    cut_off: Option<String>,
    /// Whether this node has seen it done in every shard; otherwise it is under way.
    everywhere: bool,
}

/// A business day that was closed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct DayClosed {
    /// Its date.
    closed: Option<String>,
    /// Whether this node has seen it done in every shard; otherwise it is under way.
    everywhere: bool,
}

/// The cycle that an act was about.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct CycleTouched {
    /// Its number.
    cycle: Option<u32>,
}

/// Takes up the participants of a settings file; the first one founds the cluster. Sent again it changes nothing.
pub(super) async fn participants(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Body(body): Body,
) -> Answer<TakenUp> {
    let by = caller.clone();
    let done = api.blocking(move |api| found(api, &by, &body)).await;
    note(&caller, "take up participants", &done);
    done
}

fn found(api: &Api, by: &Caller, body: &[u8]) -> Answer<TakenUp> {
    api.must_hold_state()?;
    let unusable = |detail: String| Problem::new(Code::Settings, detail);
    let text =
        std::str::from_utf8(body).map_err(|_| unusable("the settings are not UTF-8".to_owned()))?;
    let settings = Settings::parse(text, Path::new("settings")).map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        unusable(format!("{error}{}", cause.unwrap_or_default()))
    })?;
    let definition = &api.definition;
    if settings.shards != definition.shards {
        return Err(unusable(format!(
            "the settings are for {} shards, the cluster has {}",
            settings.shards, definition.shards
        )));
    }
    if settings.clearing_house != definition.clearing_house {
        return Err(unusable(format!(
            "the settings' clearing house is {}, the cluster's is {}",
            settings.clearing_house, definition.clearing_house
        )));
    }
    founding::prepare(&api.engine, &settings).map_err(failed)?;
    if api.takes_two()? {
        let missing = founding::missing(&api.engine, &settings);
        if !missing.is_empty() {
            return Err(api.ask_for(by, Act::Admin(missing)));
        }
    } else {
        founding::take_up(&api.engine, &settings.participants).map_err(failed)?;
    }
    let wanted = settings.participants.len();
    let everywhere = api.everywhere(|ledger| {
        let directory = ledger.directory();
        settings
            .participants
            .iter()
            .all(|participant| directory.find(participant.bic).is_some())
    })?;
    Ok(Json(TakenUp {
        participants: wanted,
        business_date: settings.business_date.to_string(),
        everywhere,
    }))
}

fn failed(error: FoundingError) -> Problem {
    match error {
        FoundingError::Propose(error) => error.into(),
        FoundingError::Read(error) => error.into(),
        FoundingError::Refused { .. } | FoundingError::Contradiction(_) => {
            Problem::new(Code::Contradiction, error.to_string())
        }
        FoundingError::Random(_) => Problem::internal(error.to_string()),
    }
}

/// Which day.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Day {
    /// Such as `2026-11-30`.
    date: String,
}

pub(super) async fn open_day(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Json(Day { date }): Json<Day>,
) -> Answer<DayOpened> {
    let done = api
        .blocking(move |api| {
            let date = BusinessDate::parse(date.as_bytes()).ok_or_else(|| {
                Problem::invalid(format!("{date:?} is no date; give one such as 2026-11-30"))
            })?;
            api.catch_up([COORDINATOR], false)?;
            // Asked a second time, after an answer was lost, it is done already.
            let open = api.engine.with_ledger(COORDINATOR, Ledger::cluster_day);
            if open != Some((date, false)) {
                api.coordinate(&Command::Admin(AdminCommand::OpenDay { date }))?;
            }
            let everywhere =
                api.everywhere(|ledger| matches!(ledger.day_state(), DayState::Open { .. }))?;
            Ok(Json(DayOpened {
                business_day: date.to_string(),
                everywhere,
            }))
        })
        .await;
    note(&caller, "open the business day", &done);
    done
}

/// Which kinds of message.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Kinds {
    /// `pacs.008` and so on; all of them when there is none.
    kind: Option<String>,
}

pub(super) async fn cut_off(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Body(body): Body,
) -> Answer<CutOffPassed> {
    let done = api
        .blocking(move |api| {
            let Kinds { kind } = if body.is_empty() {
                Kinds::default()
            } else {
                serde_json::from_slice(&body)
                    .map_err(|error| Problem::invalid(error.to_string()))?
            };
            let kinds: Vec<MessageKind> = MessageKind::ALL
                .into_iter()
                .filter(|known| kind.as_deref().is_none_or(|kind| kind == known.name()))
                .collect();
            if kinds.is_empty() {
                return Err(Problem::invalid(
                    "kind is pacs.008, pacs.009, pacs.004 or camt.056, or left out for all",
                ));
            }
            for &kind in &kinds {
                api.coordinate(&Command::Admin(AdminCommand::CutOff { kind }))?;
            }
            let everywhere = api.everywhere(|ledger| match ledger.day_state() {
                DayState::Open { cut_off } => kinds.iter().all(|kind| cut_off.contains(kind)),
                _ => true,
            })?;
            Ok(Json(CutOffPassed {
                cut_off: kind,
                everywhere,
            }))
        })
        .await;
    note(&caller, "pass a cut-off", &done);
    done
}

pub(super) async fn close_day(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Answer<DayClosed> {
    let done = api
        .blocking(|api| {
            api.catch_up([COORDINATOR], false)?;
            let (open, last) = api.engine.with_ledger(COORDINATOR, |ledger| {
                (ledger.cluster_day(), ledger.last_business_date())
            });
            // Asked a second time, after an answer was lost, it is done already.
            if open.is_none_or(|(_, closing)| !closing) && !(open.is_none() && last.is_some()) {
                api.coordinate(&Command::Admin(AdminCommand::CloseDay))?;
            }
            let everywhere =
                api.everywhere(|ledger| matches!(ledger.day_state(), DayState::Closed))?;
            Ok(Json(DayClosed {
                closed: last.map(|date| date.to_string()),
                everywhere,
            }))
        })
        .await;
    note(&caller, "close the business day", &done);
    done
}

fn current_cycle(api: &Api) -> Option<u32> {
    api.engine.with_ledger(COORDINATOR, |ledger| {
        let running = ledger.cycle_running().map(|(cycle, ..)| cycle.get());
        running.or_else(|| {
            ledger
                .cycle_summaries()
                .map(|summary| summary.cycle.get())
                .max()
        })
    })
}

/// Starts a cycle. Whether one whose start is unknown has begun, `GET /v1/cycles` says: it is not asked for twice by itself.
pub(super) async fn open_cycle(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Answer<CycleTouched> {
    let done = api
        .blocking(|api| {
            api.coordinate(&Command::Cycle(CycleCommand::Open))?;
            api.catch_up([COORDINATOR], false)
                .map_err(Problem::though_done)?;
            Ok(Json(CycleTouched {
                cycle: current_cycle(api),
            }))
        })
        .await;
    note(&caller, "open a netting cycle", &done);
    done
}

pub(super) async fn abandon_cycle(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Answer<CycleTouched> {
    let done = api
        .blocking(|api| {
            api.coordinate(&Command::Cycle(CycleCommand::Abandon))?;
            api.catch_up([COORDINATOR], false)
                .map_err(Problem::though_done)?;
            Ok(Json(CycleTouched {
                cycle: current_cycle(api),
            }))
        })
        .await;
    note(&caller, "abandon the netting cycle", &done);
    done
}
