//! Acts that take two operators (ADR 0025): asked for here instead of done, told, approved and withdrawn.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use clearspan_ledger::approvals::{self as ledger, Act, ApprovalCommand, Fate, Person, Request};
use clearspan_ledger::entry::{AdminCommand, Command};
use clearspan_ledger::money::format_minor;
use clearspan_ledger::nodes::{NodeCommand, NodeDirectory};
use clearspan_ledger::{AdminRefusal, Reply};
use clearspan_storage::NodeId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::Caller;
use super::admin::{Answer, note};
use super::extract::Json;
use super::{Api, COORDINATOR, Code, Problem, nodes};
use crate::cluster::pki::ClientName;
use crate::engine::Lane;

/// Whether acts take two operators, and the requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approvals {
    /// Whether the acts of the table take two operators.
    pub required: bool,
    /// For how many minutes a request can be approved.
    pub valid_minutes: Option<u64>,
    /// Requests that wait, and the last ones that were decided; the journal has all.
    pub requests: Vec<ApprovalRequest>,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRequest {
    /// Its number: its place in the journal of shard 0, and a digest of the act.
    pub request: String,
    /// The act in a few words.
    pub act: String,
    /// What exactly would be done, in order, while it waits.
    pub parameters: Vec<String>,
    /// `waits`, `done`, `refused`, `withdrawn` or `stale`.
    pub state: String,
    /// Who asked.
    pub asked_by: String,
    /// When, in log time.
    pub asked_at: String,
    /// Until when it can be approved, in log time.
    pub expires_at: String,
    /// Who approved or withdrew it.
    pub decided_by: Option<String>,
    /// Where in the journal of shard 0.
    pub decided_index: Option<u64>,
    /// Why the act was refused when it was approved.
    pub refused: Option<String>,
}

/// Which request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhichRequest {
    /// Its number, as it was printed, with the digest.
    pub request: String,
}

fn name(number: u64, digest: u64) -> String {
    format!("{number}-{digest:016x}")
}

fn parse(text: &str) -> Result<(u64, u64), Problem> {
    let parsed = text.split_once('-').and_then(|(number, digest)| {
        let whole = digest.len() == 16 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        let digest = u64::from_str_radix(digest, 16).ok().filter(|_| whole)?;
        Some((number.parse().ok()?, digest))
    });
    parsed.ok_or_else(|| {
        Problem::invalid(format!(
            "{text:?} is no request; give one as it was printed, such as 812-3fa9c2d1e0b44a5c: `clearspan admin approvals list`"
        ))
    })
}

fn digest_of(act: &Act) -> u64 {
    let digest = blake3::hash(&clearspan_codec::entry::act(act));
    let (first, _) = digest
        .as_bytes()
        .split_first_chunk()
        .expect("a digest has 32 bytes");
    u64::from_be_bytes(*first)
}

fn person(caller: &Caller) -> Result<Person, Problem> {
    match &caller.name {
        ClientName::Operator(name) => Ok(Person {
            name: name.clone(),
            key: caller.key,
        }),
        ClientName::Participant(_) | ClientName::Auditor(_) => {
            Err(Problem::forbidden("operators approve"))
        }
    }
}

pub(super) fn refused(refusal: AdminRefusal) -> Problem {
    let why = match refusal {
        AdminRefusal::RequestUnknown => {
            "there is no such request, or it was decided long ago: `clearspan admin approvals list`"
        }
        AdminRefusal::RequestDecided => "the request was approved or withdrawn before",
        AdminRefusal::RequestStale => "nobody approved the request in time; ask for the act again",
        AdminRefusal::RequestOther => {
            "this is not what was asked for under this number; look at it: `clearspan admin approvals list`"
        }
        AdminRefusal::SamePerson => {
            "who asked cannot approve: the certificate has the same name or the same key; another operator must"
        }
        AdminRefusal::RequestsFull => {
            "too many requests wait; approve or withdraw some first: `clearspan admin approvals list`"
        }
        AdminRefusal::RequestInvalid => {
            "too much for one request; take participants up in several files"
        }
        other => return nodes::refused(other),
    };
    Problem::new(Code::Refused, why)
}

impl Api {
    /// Whether acts of the table take two operators. Where the definition says so and the journal does not yet, it does from
    /// now on.
    pub(super) fn takes_two(&self) -> Result<bool, Problem> {
        self.catch_up([COORDINATOR], false)?;
        let (founded, required) = self.engine.with_ledger(COORDINATOR, |ledger| {
            let required = ledger.approvals().valid_ns().is_some();
            (ledger.genesis().is_some(), required)
        });
        match self.definition.four_eyes_ns() {
            Some(valid_ns) if founded && !required => {
                self.approval(ApprovalCommand::Require { valid_ns })?;
                Ok(true)
            }
            _ => Ok(required),
        }
    }

    /// Notes an act that one operator alone cannot do. Never well: the problem names the request.
    pub(super) fn ask_for(&self, caller: &Caller, act: Act) -> Problem {
        let asked = person(caller).and_then(|by| {
            let digest = digest_of(&act);
            let title = act.title();
            match self.approval(ApprovalCommand::Ask { by, act, digest })? {
                Reply::Asked { request } => Ok((name(request, digest), title)),
                _ => Err(Problem::internal("the ledger did not number the request")),
            }
        });
        match asked {
            Ok((request, title)) => Problem {
                request: Some(request.clone()),
                ..Problem::new(
                    Code::ApprovalNeeded,
                    format!(
                        "it takes two operators to {title}: request {request} waits for another one, who says \
                         `clearspan admin approvals approve {request}`"
                    ),
                )
            },
            Err(problem) => problem,
        }
    }

    fn approval(&self, command: ApprovalCommand) -> Result<Reply, Problem> {
        let command = Command::Approvals(command);
        let outcome = self.engine.execute(COORDINATOR, &command, Lane::Urgent)?;
        match outcome.reply {
            Reply::Refused(refusal) => Err(refused(refusal)),
            reply => Ok(reply),
        }
    }

    fn told(&self, number: u64) -> Answer<ApprovalRequest> {
        self.catch_up([COORDINATOR], false)
            .map_err(Problem::though_done)?;
        self.engine.with_ledger(COORDINATOR, |ledger| {
            let request = ledger.approvals().get(number);
            let told = request.map(|it| tell(number, it, ledger.nodes(), ledger.log_time()));
            told.map(Json)
                .ok_or_else(|| refused(AdminRefusal::RequestUnknown))
        })
    }
}

fn tell(
    number: u64,
    request: &Request,
    directory: &NodeDirectory,
    now: clearspan_ledger::Timestamp,
) -> ApprovalRequest {
    let (state, decided_by, decided_index) = match &request.fate {
        Fate::Waits if now > request.expires => ("stale", None, None),
        Fate::Waits => ("waits", None, None),
        Fate::Stale => ("stale", None, None),
        Fate::Withdrawn { by, at } => ("withdrawn", Some(by), Some(at)),
        Fate::Approved {
            by,
            at,
            refused: None,
        } => ("done", Some(by), Some(at)),
        Fate::Approved { by, at, .. } => ("refused", Some(by), Some(at)),
    };
    let refused = match &request.fate {
        Fate::Approved {
            refused: Some((at, why)),
            ..
        } => Some(format!(
            "{}; {at} of its acts were done before",
            refused(*why).detail
        )),
        _ => None,
    };
    ApprovalRequest {
        request: name(number, request.digest),
        act: request.title.clone(),
        parameters: request
            .act
            .as_ref()
            .map(|act| describe(act, directory))
            .unwrap_or_default(),
        state: state.to_owned(),
        asked_by: request.by.name.clone(),
        asked_at: request.asked.to_string(),
        expires_at: request.expires.to_string(),
        decided_by: decided_by.map(|by| by.name.clone()),
        decided_index: decided_index.map(|at| at.get()),
        refused,
    }
}

/// What exactly would be done: who approves sees every parameter.
fn describe(act: &Act, directory: &NodeDirectory) -> Vec<String> {
    let member = |number: u64| {
        let name = directory.get(number).map_or("", |node| node.name.as_str());
        format!("member {number} ({name})")
    };
    match act {
        Act::Admin(commands) => commands.iter().map(describe_admin).collect(),
        Act::Nodes(NodeCommand::Add { node }) => {
            let kind = if node.witness { "witness" } else { "data node" };
            let http = node.http.as_deref().unwrap_or("none");
            let place = node
                .replaces
                .map(|old| format!(", in the place of {}", member(old)));
            vec![format!(
                "take up {kind} {} of identity {} at site {}: peer {}, client {}, http {http}{}",
                node.name,
                NodeId::from_bytes(node.id.to_be_bytes()),
                node.site,
                node.peer,
                node.client,
                place.unwrap_or_default()
            )]
        }
        Act::Nodes(NodeCommand::Remove { member: gone }) => {
            vec![format!("remove {}", member(*gone))]
        }
        Act::Nodes(other) => vec![format!("{other:?}")],
    }
}

fn describe_admin(command: &AdminCommand) -> String {
    match command {
        AdminCommand::AddParticipant(terms) => format!(
            "take up {} ({}) in shard {}, numbers messages: {}, refused whole: {}, dropped by: {:?}",
            terms.bic,
            terms.name,
            terms.home,
            terms.numbers_messages,
            terms.refuse_whole,
            terms.net_unit
        ),
        AdminCommand::OpenAccount(terms) => format!(
            "open the {} account of {} with a credit line of {}",
            terms.currency,
            terms.bic,
            format_minor(terms.credit_line.signed(), terms.currency)
        ),
        AdminCommand::Fund {
            reference,
            bic,
            currency,
            amount,
        } => format!(
            "put {currency} {} on the account of {bic} as {reference}",
            format_minor(amount.signed(), *currency)
        ),
        other => format!("{other:?}"),
    }
}

pub(super) async fn list(State(api): State<Arc<Api>>) -> Answer<Approvals> {
    api.blocking(|api| {
        api.catch_up([COORDINATOR], false)?;
        let told = api.engine.with_ledger(COORDINATOR, |ledger| {
            let approvals: &ledger::Approvals = ledger.approvals();
            let minutes = |ns: u64| ns / 60_000_000_000;
            Approvals {
                required: approvals.valid_ns().is_some(),
                valid_minutes: approvals.valid_ns().map(minutes),
                requests: approvals
                    .requests()
                    .map(|(number, request)| {
                        tell(number, request, ledger.nodes(), ledger.log_time())
                    })
                    .collect(),
            }
        });
        Ok(Json(told))
    })
    .await
}

pub(super) async fn approve(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Json(WhichRequest { request }): Json<WhichRequest>,
) -> Answer<ApprovalRequest> {
    let act = format!("approve request {request}");
    let by = caller.clone();
    let done = api
        .blocking(move |api| {
            let (number, digest) = parse(&request)?;
            let by = person(&by)?;
            api.catch_up([COORDINATOR], false)?;
            // What the operator who asked was held to holds now as well.
            let leaves = api.engine.with_ledger(COORDINATOR, |ledger| {
                match ledger.approvals().get(number)?.act.as_ref()? {
                    Act::Nodes(NodeCommand::Remove { member }) => {
                        ledger.nodes().get(*member).cloned()
                    }
                    _ => None,
                }
            });
            if let Some(node) = leaves {
                api.check_quorum_without(&node)?;
            }
            api.approval(ApprovalCommand::Approve {
                request: number,
                digest,
                by,
            })?;
            api.told(number)
        })
        .await;
    note(&caller, &act, &done);
    done
}

pub(super) async fn withdraw(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Json(WhichRequest { request }): Json<WhichRequest>,
) -> Answer<ApprovalRequest> {
    let act = format!("withdraw request {request}");
    let by = caller.clone();
    let done = api
        .blocking(move |api| {
            let (number, _) = parse(&request)?;
            let by = person(&by)?;
            api.approval(ApprovalCommand::Withdraw {
                request: number,
                by,
            })?;
            api.told(number)
        })
        .await;
    note(&caller, &act, &done);
    done
}
