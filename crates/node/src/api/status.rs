//! How the node, its shards and its peers stand.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use clearspan_ledger::entry::NetResult;
use clearspan_ledger::query::PaymentCounts;
use clearspan_ledger::{CyclePhase, CycleSummary, Ledger, Timestamp};
use clearspan_replica::{MemberId, Role, Sending};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::{Json, Query};
use super::{Api, COORDINATOR, Problem, Scope};
use crate::cluster::definition::NodeKind;
use crate::engine::ShardStatus;
use crate::links::{PeerStatus, Rtt};
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
    /// The node's clock, UTC.
    pub time: String,
    /// The open business day.
    pub business_day: Option<String>,
    /// That day's payments, or those of the last one; a witness knows none.
    pub payments: Option<PaymentFigures>,
    /// The netting cycle that runs.
    pub cycle: Option<RunningCycle>,
    /// The last cycles that ended, newest first.
    pub last_cycles: Vec<EndedCycle>,
    /// Participants.
    pub participants: usize,
    /// All nodes of the cluster, this one included.
    pub nodes: Vec<PeerState>,
    /// Every shard, as this node sees it.
    pub shards: Vec<ShardState>,
    /// What waits on this node.
    pub queues: QueueState,
    /// Free and needed bytes while the disk is too full to take anything in.
    pub disk_full: Option<(u64, u64)>,
    /// Free bytes on the volume of the log.
    pub log_free_bytes: Option<u64>,
    /// Free bytes on the volume of the packages.
    pub packages_free_bytes: Option<u64>,
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
    /// Where participants and operators reach it.
    pub client_address: String,
    /// Whether it is connected; this node always is.
    pub up: bool,
    /// Smoothed round trip, in milliseconds.
    pub rtt_ms: Option<f64>,
    /// Half of the last two minutes' round trips were no longer, in milliseconds.
    pub rtt_p50_ms: Option<f64>,
    /// 99 of 100 of them were no longer.
    pub rtt_p99_ms: Option<f64>,
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
    /// Entry at which the newest snapshot stands.
    pub snapshot_index: u64,
    /// The state's running digest at `digest_index`, in hexadecimal: equal on every node that has applied as far. A witness
    /// has none.
    pub digest: Option<String>,
    /// What the digest takes in.
    pub digest_index: u64,
    /// Digests of other replicas that were the same as this one's at the same entry, since the start.
    pub digests_same: u64,
    /// Those that were not.
    pub digests_differed: u64,
    /// Who votes in the shard's group, as far as this node knows: a majority of them decides.
    pub voters: Vec<String>,
    /// While the group changes: who voted before. A majority of them is needed too.
    pub voters_outgoing: Vec<String>,
    /// How far the other members are; only the leader knows.
    pub peers: Vec<ShardPeer>,
    /// The snapshot that this node fetches because it is behind the leader's log.
    pub catching_up: Option<CatchUpState>,
}

/// How far another member of a shard is, as the leader sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShardPeer {
    /// The member's node.
    pub node: String,
    /// `probe`, `replicate` or `snapshot`: how entries are sent to it.
    pub state: String,
    /// It has every entry up to this one.
    pub matched_index: u64,
    /// Entries that it is not known to have.
    pub lag_entries: u64,
    /// Their bytes; of the first 16,384 at most.
    pub lag_bytes: u64,
    /// How long ago the oldest of them was proposed; 0 without any.
    pub lag_ns: u64,
    /// Entries sent to it and not yet answered.
    pub in_flight_entries: u64,
}

/// A snapshot on its way to a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CatchUpState {
    /// Who sends it.
    pub from: String,
    /// The entry at which it stands.
    pub index: u64,
    /// Bytes of the state that are here.
    pub have_bytes: u64,
    /// All its bytes; 0 until the first piece has come.
    pub state_bytes: u64,
    /// Whether the state is here and its packages come, or all are being stored.
    pub packages: bool,
}

/// What waits on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueState {
    /// Urgent commands that the core has not taken up.
    pub urgent: u64,
    /// Bulk commands that the core has not taken up.
    pub bulk: u64,
    /// Bytes of commands that were taken up and have no outcome.
    pub in_flight_bytes: u64,
    /// Commands at other nodes that lead their shards.
    pub forwarded: u64,
    /// Commands that wait for a leader.
    pub parked: u64,
    /// Writes that wait for the log.
    pub log_writes: u64,
    /// Packages that wait for the package store.
    pub packages: u64,
}

/// A business day's payments by what has become of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PaymentFigures {
    /// All that were accepted.
    pub accepted: u64,
    /// Settled, final.
    pub settled: u64,
    /// They wait for netting.
    pub netting: u64,
    /// They wait for funds, their turn or their time.
    pub queued: u64,
    /// Refused when they were taken in.
    pub refused: u64,
    /// Refused later.
    pub ended: u64,
    /// Cancelled by their senders.
    pub cancelled: u64,
}

impl From<PaymentCounts> for PaymentFigures {
    fn from(counts: PaymentCounts) -> Self {
        Self {
            accepted: counts.accepted(),
            settled: counts.settled,
            netting: counts.netting,
            queued: counts.queued,
            refused: counts.refused,
            ended: counts.ended,
            cancelled: counts.cancelled,
        }
    }
}

/// The netting cycle that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunningCycle {
    /// Its number.
    pub cycle: u32,
    /// `cutting`, `reserving` or `posting`.
    pub phase: String,
    /// The round of reserving, from 1.
    pub round: u32,
}

/// A netting cycle that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndedCycle {
    /// Its number.
    pub cycle: u32,
    /// `settled` or `given up`.
    pub state: String,
    /// Payments in its set.
    pub in_set: u64,
    /// Payments that it settled.
    pub settled: u64,
    /// Payments that wait for the next one for lack of funds.
    pub dropped: u64,
    /// Rounds of reserving.
    pub rounds: u32,
    /// From cut-off to end, in log time.
    pub duration_ns: u64,
}

/// How many ended cycles are shown.
const LAST_CYCLES: usize = 3;
/// Payments are not counted more often: it passes over all of the day's.
const COUNT_INTERVAL_NS: u64 = 1_000_000_000;

/// The payments as they were counted last, and when.
#[derive(Debug, Default)]
pub(super) struct Counted(Mutex<Option<(Timestamp, PaymentFigures)>>);

const fn kind_name(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Data => "data",
        NodeKind::Witness => "witness",
    }
}

/// A figure of a peer's round trips in milliseconds, while it is connected.
#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn rtt(peer: Option<&PeerStatus>, which: impl Fn(Rtt) -> u64) -> Option<f64> {
    Some(which(peer?.rtt?) as f64 / 1e6)
}

/// The running cycle and the last ones, from the coordinator's state.
fn cycles(coordinator: &Ledger) -> (Option<RunningCycle>, Vec<EndedCycle>) {
    let running = coordinator
        .cycle_running()
        .map(|(cycle, phase, round)| RunningCycle {
            cycle: cycle.get(),
            phase: phase_name(phase).to_owned(),
            round,
        });
    let mut ended: Vec<&CycleSummary> = coordinator.cycle_summaries().collect();
    ended.sort_unstable_by_key(|summary| std::cmp::Reverse(summary.cycle));
    let last = ended.into_iter().take(LAST_CYCLES).map(|summary| {
        let sum = |count: fn(&NetResult) -> u32| {
            let counts = summary.results.iter().map(count);
            counts.map(u64::from).sum()
        };
        EndedCycle {
            cycle: summary.cycle.get(),
            state: if summary.abandoned {
                "given up"
            } else {
                "settled"
            }
            .to_owned(),
            in_set: summary.set_count,
            settled: sum(|result| result.out_count),
            dropped: sum(|result| result.dropped_count),
            rounds: summary.rounds,
            duration_ns: (summary.ended_time.ns()).saturating_sub(summary.opened_time.ns()),
        }
    });
    (running, last.collect())
}

/// A cycle's phase, as it is called everywhere.
pub(super) const fn phase_name(phase: CyclePhase) -> &'static str {
    match phase {
        CyclePhase::Cutting => "cutting",
        CyclePhase::Reserving => "reserving",
        CyclePhase::Posting => "posting",
    }
}

impl Api {
    fn name_of(&self, member: MemberId) -> String {
        let nodes = self.directory();
        let known = nodes.get(member.get()).map(|node| node.name.clone());
        known.unwrap_or_else(|| member.get().to_string())
    }

    pub(super) fn site_of(&self, site: u16) -> String {
        self.definition
            .sites
            .get(usize::from(site))
            .cloned()
            .unwrap_or_default()
    }

    fn holds_state(&self) -> bool {
        self.node.kind == NodeKind::Data
    }

    fn shard_state(&self, shard: ShardStatus) -> ShardState {
        let (digest_index, digest) = self
            .engine
            .with_ledger(shard.shard, |ledger| (ledger.position().0, ledger.digest()));
        let names = |members: &[MemberId]| -> Vec<String> {
            members.iter().map(|&member| self.name_of(member)).collect()
        };
        ShardState {
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
            snapshot_index: shard.snapshot_index,
            digest: self.holds_state().then(|| format!("{digest:032x}")),
            digest_index: digest_index.get(),
            digests_same: shard.comparisons.same,
            digests_differed: shard.comparisons.differed,
            voters: names(&shard.membership.voters),
            voters_outgoing: names(&shard.membership.voters_outgoing),
            peers: shard
                .peers
                .into_iter()
                .map(|peer| ShardPeer {
                    node: self.name_of(peer.member),
                    state: match peer.sending {
                        Sending::Probe => "probe",
                        Sending::Replicate => "replicate",
                        Sending::Snapshot => "snapshot",
                    }
                    .to_owned(),
                    matched_index: peer.matched_index,
                    lag_entries: peer.lag_entries,
                    lag_bytes: peer.lag_bytes,
                    lag_ns: peer.lag_ns,
                    in_flight_entries: peer.in_flight_entries,
                })
                .collect(),
            catching_up: shard.catching_up.map(|catch_up| CatchUpState {
                from: self.name_of(catch_up.from),
                index: catch_up.index,
                have_bytes: catch_up.have_bytes,
                state_bytes: catch_up.state_bytes,
                packages: catch_up.packages,
            }),
        }
    }

    /// The day's payments of all shards, one shard after the other, at most once a second.
    pub(super) fn payment_figures(&self) -> PaymentFigures {
        let now = self.engine.now();
        let mut counted = self
            .counted
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((at, figures)) = *counted
            // A clock that was set back has them counted anew.
            && (at..at.plus_ns(COUNT_INTERVAL_NS)).contains(&now)
        {
            return figures;
        }
        let mut sum = PaymentCounts::default();
        for shard in self.shards() {
            sum += self.engine.with_ledger(shard, Ledger::payment_counts);
        }
        let figures = PaymentFigures::from(sum);
        *counted = Some((now, figures));
        figures
    }

    /// How everything stands here. It asks nobody else.
    #[must_use]
    pub fn node_status(&self) -> NodeStatus {
        let (shards, queues) = self.engine.look();
        let shards: Vec<ShardState> = shards
            .into_iter()
            .map(|shard| self.shard_state(shard))
            .collect();
        let peers = self
            .links
            .as_ref()
            .map(crate::links::Links::status)
            .unwrap_or_default();
        let directory = self.directory();
        let nodes = directory
            .present()
            .map(|node| {
                let me = node.member == self.node.member.get();
                let peer = peers.iter().find(|peer| peer.member.get() == node.member);
                PeerState {
                    node: node.name.clone(),
                    site: node.site.clone(),
                    kind: if node.witness { "witness" } else { "data" }.to_owned(),
                    client_address: node.client.clone(),
                    up: me || peer.is_some_and(|peer| peer.connected_ns.is_some()),
                    rtt_ms: rtt(peer, |rtt| rtt.avg_ns),
                    rtt_p50_ms: rtt(peer, |rtt| rtt.p50_ns),
                    rtt_p99_ms: rtt(peer, |rtt| rtt.p99_ns),
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
        let [log_free_bytes, packages_free_bytes] = self.engine.free_bytes();
        let (cycle, last_cycles) = self.engine.with_ledger(COORDINATOR, cycles);
        NodeStatus {
            node: self.node.name.clone(),
            site: self.site_of(self.node.site),
            kind: kind_name(self.node.kind).to_owned(),
            cluster: self.definition.cluster.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ready: why_not.is_none(),
            why_not,
            time: self.engine.now().to_string(),
            business_day,
            payments: self.holds_state().then(|| self.payment_figures()),
            cycle,
            last_cycles,
            participants,
            nodes,
            shards,
            queues: QueueState {
                urgent: queues.urgent,
                bulk: queues.bulk,
                in_flight_bytes: queues.core.in_flight_bytes,
                forwarded: queues.core.forwarded,
                parked: queues.core.parked,
                log_writes: queues.core.log_writes,
                packages: queues.core.packages,
            },
            disk_full,
            log_free_bytes,
            packages_free_bytes,
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
