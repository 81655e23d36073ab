//! How the node, its shards and its peers stand.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use clearspan_replica::{MemberId, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::{Json, Query};
use super::{Api, COORDINATOR, Problem, Scope};
use crate::cluster::definition::NodeKind;
use crate::summary::{Summary, summarize};

/// A node's view of the cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeStatus {
    /// This node.
    pub node: String,
    /// Its site.
    pub site: String,
    /// `data` or `witness`.
    pub kind: String,
    /// The cluster.
    pub cluster: String,
    /// The version it runs.
    pub version: String,
    /// Whether every shard has a leader and the disk has room.
    pub ready: bool,
    /// Why it is not.
    pub why_not: Option<String>,
    /// The open business day.
    pub business_day: Option<String>,
    /// Participants.
    pub participants: usize,
    /// All nodes of the definition, this one included.
    pub nodes: Vec<PeerState>,
    /// Every shard, as this node sees it.
    pub shards: Vec<ShardState>,
    /// Free and needed bytes while the disk is too full to take anything in.
    pub disk_full: Option<(u64, u64)>,
    /// Bytes written to the log since the start.
    pub log_bytes: u64,
    /// Writes to the log since the start, each durable.
    pub log_writes: u64,
}

/// A node as this one sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeerState {
    /// Its name.
    pub node: String,
    /// Its site.
    pub site: String,
    /// `data` or `witness`.
    pub kind: String,
    /// Whether it is connected; this node always is.
    pub up: bool,
    /// Smoothed round trip, in milliseconds.
    pub rtt_ms: Option<f64>,
    /// Bytes that wait to be sent to it.
    pub queued_bytes: u64,
    /// How often a standing connection ended.
    pub cuts: u64,
    /// Why the last connection or attempt ended.
    pub last_fault: Option<String>,
    /// Shards that it leads, as far as this node knows.
    pub leads: Vec<u16>,
}

/// A shard's replica on this node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShardState {
    /// The shard.
    pub shard: u16,
    /// The leader's name, where one is known.
    pub leader: Option<String>,
    /// `leader`, `follower` or `candidate`.
    pub role: String,
    /// Raft term.
    pub term: u64,
    /// Last entry in the log here.
    pub last_index: u64,
    /// Last one that is durable here.
    pub persisted_index: u64,
    /// Last one known to be committed.
    pub committed_index: u64,
    /// Last one applied here.
    pub applied_index: u64,
    /// This node's proposals without an outcome.
    pub waiting: usize,
}

const fn kind_name(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Data => "data",
        NodeKind::Witness => "witness",
    }
}

impl Api {
    fn name_of(&self, member: MemberId) -> String {
        self.definition
            .member(member)
            .map_or_else(|| member.get().to_string(), |node| node.name.clone())
    }

    fn site_of(&self, site: u16) -> String {
        self.definition
            .sites
            .get(usize::from(site))
            .cloned()
            .unwrap_or_default()
    }

    /// How everything stands here. It asks nobody else.
    #[must_use]
    pub fn node_status(&self) -> NodeStatus {
        let shards: Vec<ShardState> = self
            .engine
            .status()
            .into_iter()
            .map(|shard| ShardState {
                shard: shard.shard.get(),
                leader: shard.replica.leader.map(|leader| self.name_of(leader)),
                role: match shard.replica.role {
                    Role::Leader => "leader",
                    Role::Follower => "follower",
                    Role::Candidate => "candidate",
                }
                .to_owned(),
                term: shard.replica.term,
                last_index: shard.replica.last.index,
                persisted_index: shard.replica.persisted_index,
                committed_index: shard.replica.committed_index,
                applied_index: shard.replica.applied_index,
                waiting: shard.waiting,
            })
            .collect();
        let peers = self
            .links
            .as_ref()
            .map(crate::links::Links::status)
            .unwrap_or_default();
        let nodes = self
            .definition
            .nodes
            .iter()
            .map(|node| {
                let peer = peers.iter().find(|peer| peer.member == node.member);
                PeerState {
                    node: node.name.clone(),
                    site: self.site_of(node.site),
                    kind: kind_name(node.kind).to_owned(),
                    up: peer.is_none_or(|peer| peer.connected_ns.is_some()),
                    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
                    rtt_ms: peer
                        .and_then(|peer| peer.rtt)
                        .map(|rtt| rtt.avg_ns as f64 / 1e6),
                    queued_bytes: peer
                        .map_or(0, |peer| peer.queued_bytes.iter().sum::<usize>() as u64),
                    cuts: peer.map_or(0, |peer| peer.cuts),
                    last_fault: peer.and_then(|peer| peer.last_fault.clone()),
                    leads: shards
                        .iter()
                        .filter(|shard| shard.leader.as_ref() == Some(&node.name))
                        .map(|shard| shard.shard)
                        .collect(),
                }
            })
            .collect();
        let disk_full = self.engine.disk_full();
        let leaderless = shards.iter().filter(|shard| shard.leader.is_none()).count();
        let why_not = if shards.is_empty() {
            Some("the node is stopping".to_owned())
        } else if leaderless > 0 {
            Some(format!(
                "{leaderless} of {} shards have no leader that this node knows",
                shards.len()
            ))
        } else if let Some((shard, how)) = shards.iter().find_map(|shard| {
            let how = self
                .engine
                .disputed(clearspan_ledger::ShardId::new(shard.shard))?;
            Some((shard.shard, how))
        }) {
            Some(format!("shard {shard} is not served: {how}"))
        } else {
            disk_full.map(|(free, needed)| {
                format!("the disk is full: {free} bytes free, {needed} needed")
            })
        };
        let (business_day, participants) = self.engine.with_ledger(COORDINATOR, |ledger| {
            let open = ledger.cluster_day().filter(|(_, closing)| !closing);
            (
                open.map(|(date, _)| date.to_string()),
                ledger.directory().iter().count(),
            )
        });
        let counts = self.engine.log_counts();
        NodeStatus {
            node: self.node.name.clone(),
            site: self.site_of(self.node.site),
            kind: kind_name(self.node.kind).to_owned(),
            cluster: self.definition.cluster.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ready: why_not.is_none(),
            why_not,
            business_day,
            participants,
            nodes,
            shards,
            disk_full,
            log_bytes: counts.bytes,
            log_writes: counts.writes,
        }
    }
}

pub(super) async fn status(State(api): State<Arc<Api>>) -> Result<Json<NodeStatus>, Problem> {
    api.blocking(|api| Ok(Json(api.node_status()))).await
}

/// The business day's figures, from all shards at one moment.
pub(super) async fn day(
    State(api): State<Arc<Api>>,
    Query(scope): Query<Scope>,
) -> Result<Json<Summary>, Problem> {
    api.blocking(move |api| {
        api.catch_up(api.shards(), scope.stale)?;
        let reading = api.engine.read();
        let date = reading
            .ledger(COORDINATOR)
            .last_business_date()
            .ok_or_else(|| Problem::not_found("no business day was opened yet"))?;
        Ok(Json(summarize(&reading, date)))
    })
    .await
}

/// The process works: its core answers.
pub(super) async fn health(State(api): State<Arc<Api>>) -> Response {
    let alive = api
        .blocking(|api| Ok(!api.engine.status().is_empty()))
        .await
        .unwrap_or(false);
    if alive {
        "ok\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response()
    }
}

/// Messages can be taken in here.
pub(super) async fn ready(State(api): State<Arc<Api>>) -> Response {
    match api.blocking(|api| Ok(api.node_status())).await {
        Ok(NodeStatus { why_not: None, .. }) => "ready\n".into_response(),
        Ok(NodeStatus {
            why_not: Some(why), ..
        }) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
        Err(problem) => problem.into_response(),
    }
}
