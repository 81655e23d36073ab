//! The node's public interface: HTTPS with mutual TLS for participants, operators and auditors.
//!
//! Who asks is what the certificate says. What it may do stands in one table ([`access::access`]); every path
//! stands in [`ROUTES`], from which both the router and the OpenAPI document are made. Answers are linearizable unless `stale=true` asks for
//! what this node holds.

pub mod access;
mod admin;
mod approvals;
mod bounds;
mod door;
mod extract;
mod items;
mod limits;
mod messages;
mod metrics;
mod nodes;
mod openapi;
mod problem;
mod queries;
mod receipts;
mod routes;
mod status;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use axum::extract::{MatchedPath, Request, State};
use axum::http::HeaderValue;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Extension, Router};
use clearspan_ledger::{Bic, ParticipantId, ShardId};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::cluster::definition::{Definition, Node, NodeKind};
use crate::cluster::pki::Shown;
use crate::cluster::renewal::Certificates;
use crate::documents::{self, Cache, Documents};
use crate::engine::{Engine, ReadError, Reading};
use crate::links::Links;
use crate::rate::{RateLimits, Rates};
use access::{Access, Caller};

pub use approvals::{ApprovalRequest, Approvals, WhichRequest};
pub use door::{Door, plain, tls};
pub use items::ItemState;
pub use limits::HttpLimits;
pub use messages::{Answer, Refusal};
pub use nodes::{Drain, GroupEntry, MoveLeader, NewNode, NodeEntry, Nodes, Which};
pub use openapi::document as openapi;
pub use problem::{Code, Problem, ProblemDocument};
pub use receipts::{Receipt, ReceiptDocument, Receipts};
pub use routes::{ROUTES, Route};
pub use status::{
    CatchUpState, EndedCycle, NodeStatus, PaymentFigures, PeerState, QueueState, RunningCycle,
    ShardPeer, ShardState,
};

/// The largest request.
pub const BODY_MAX_BYTES: usize = 64 << 20;
const COORDINATOR: ShardId = ShardId::new(0);

/// What requests are answered from.
#[derive(Debug)]
pub struct Api {
    /// The node.
    pub engine: Engine,
    /// Its connections; none in a cluster of one.
    pub links: Option<Links>,
    /// The cluster.
    pub definition: Definition,
    /// This node.
    pub node: Node,
    rates: Rates,
    http: HttpLimits,
    documents: documents::Settings,
    cache: Cache,
    counts: metrics::Counts,
    certificates: OnceLock<Arc<Certificates>>,
    counted: status::Counted,
    forming: receipts::Forming,
}

/// All paths of the table, behind the table.
pub fn router(api: &Arc<Api>) -> Router {
    ROUTES
        .iter()
        .fold(Router::new(), |router, route| {
            router.route(route.path, route.handler())
        })
        .route_layer(from_fn_with_state(api.clone(), guard))
        .fallback(|| async { Problem::not_found("there is no such path") })
        .method_not_allowed_fallback(|| async {
            Problem::new(Code::Method, "the path does not know this method")
        })
        .layer(from_fn_with_state(api.clone(), bounds::bound))
        .with_state(api.clone())
}

/// Probes and figures for a plain port of this machine: nothing of a participant's is among them.
pub fn plain_router(api: &Arc<Api>) -> Router {
    Router::new()
        .route("/metrics", get(metrics::metrics))
        .route("/healthz", get(status::health))
        .route("/readyz", get(status::ready))
        .layer(from_fn_with_state(api.clone(), bounds::bound))
        .with_state(api.clone())
}

/// Denies what the table does not allow, and says to the handlers who asks.
async fn guard(
    State(api): State<Arc<Api>>,
    Extension(Shown { name, key }): Extension<Shown>,
    path: MatchedPath,
    mut request: Request,
    next: Next,
) -> Response {
    let operation = ROUTES
        .iter()
        .find(|route| route.method == request.method() && route.path == path.as_str())
        .map(|route| route.operation);
    let role = access::role_of(&name);
    let allowed = operation.map_or(Access::No, |operation| access::access(role, operation));
    let mut response = if allowed == Access::No {
        Problem::forbidden(format!("{role:?}s may not do that")).into_response()
    } else {
        request.extensions_mut().insert(Caller {
            name,
            key,
            access: allowed,
        });
        next.run(request).await
    };
    api.counts.answered(response.status());
    let headers = response.headers_mut();
    headers.insert("cache-control", HeaderValue::from_static("no-store"));
    if let Ok(node) = HeaderValue::from_str(&api.node.name) {
        headers.insert("clearspan-node", node);
    }
    response
}

/// Whom and how freshly a query asks.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Scope {
    /// Whose, for those who may read everybody's.
    participant: Option<String>,
    /// Only this currency (ISO 4217), where the answer has currencies.
    currency: Option<String>,
    /// What this node holds, without asking whether there is more.
    #[serde(default)]
    stale: bool,
}

impl Scope {
    /// The participant that the answer is about, if any.
    fn subject(&self, caller: &Caller) -> Result<Option<Bic>, Problem> {
        subject(self.participant.as_deref(), caller)
    }
}

fn subject(named: Option<&str>, caller: &Caller) -> Result<Option<Bic>, Problem> {
    let named = named
        .map(|code| {
            Bic::parse(code.as_bytes())
                .ok_or_else(|| Problem::invalid(format!("{code:?} is not a BIC")))
        })
        .transpose()?;
    caller
        .subject(named)
        .map_err(|other| Problem::forbidden(format!("what is {other}'s is read by {other} alone")))
}

fn must_name(subject: Option<Bic>) -> Result<Bic, Problem> {
    subject.ok_or_else(|| Problem::invalid("name the participant: ?participant=BIC"))
}

impl Api {
    /// Over a running node.
    #[must_use]
    pub fn new(
        engine: Engine,
        links: Option<Links>,
        definition: Definition,
        node: Node,
        rate: RateLimits,
        http: HttpLimits,
    ) -> Self {
        Self {
            engine,
            links,
            rates: Rates::new(rate),
            http,
            documents: documents::Settings::new(definition.clearing_house),
            cache: Cache::new(),
            counts: metrics::Counts::default(),
            certificates: OnceLock::new(),
            counted: status::Counted::default(),
            forming: receipts::Forming::default(),
            definition,
            node,
        }
    }

    /// Tells in the figures until when these count. Only the first are kept.
    pub fn watch_certificates(&self, certificates: Arc<Certificates>) {
        let _ = self.certificates.set(certificates);
    }

    /// Runs something that waits, off the threads that serve connections.
    async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let api = self.clone();
        tokio::task::spawn_blocking(move || work(&api))
            .await
            .unwrap_or_else(|_| Err(Problem::internal("the request's thread ended early")))
    }

    /// A witness keeps the log only: it can answer nothing about the state.
    fn must_hold_state(&self) -> Result<(), Problem> {
        match self.node.kind {
            NodeKind::Data => Ok(()),
            NodeKind::Witness => Err(Problem::new(
                Code::Witness,
                format!(
                    "{} is a witness and keeps no state; ask another node",
                    self.node.name
                ),
            )),
        }
    }

    fn shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        (0..self.definition.shards).map(ShardId::new)
    }

    /// Makes what is read of these shards afterwards linearizable.
    fn catch_up(
        &self,
        shards: impl IntoIterator<Item = ShardId>,
        stale: bool,
    ) -> Result<(), Problem> {
        self.must_hold_state()?;
        for shard in shards {
            if self.engine.disputed(shard).is_some() {
                return Err(ReadError::Diverged.into());
            }
            if !stale {
                self.engine.catch_up(shard)?;
            }
        }
        Ok(())
    }

    /// A participant's number and home shard; the coordinator is asked when this node does not know it (yet).
    fn find(&self, bic: Bic, stale: bool) -> Result<(ParticipantId, ShardId), Problem> {
        self.must_hold_state()?;
        let look = || {
            self.engine.with_ledger(COORDINATOR, |ledger| {
                let directory = ledger.directory();
                let participant = directory.find(bic)?;
                Some((participant, directory.get(participant)?.home))
            })
        };
        if let Some(found) = look() {
            return Ok(found);
        }
        self.catch_up([COORDINATOR], stale)?;
        look().ok_or_else(|| Problem::not_found(format!("{bic} is no participant")))
    }

    fn documents<'a>(&'a self, reading: &'a Reading<'a>) -> Documents<'a, Reading<'a>> {
        Documents::new(reading, &self.documents, &self.cache)
    }
}
