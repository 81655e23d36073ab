//! The cluster at a glance: what the views of several nodes add up to. Every node says what it sees; leaders know best how
//! far the others are, and a node that does not answer is what its peers say of it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::api::{
    CatchUpState, EndedCycle, NodeStatus, PaymentFigures, PeerState, QueueState, RunningCycle,
    ShardPeer, ShardState,
};

mod quorum;
#[cfg(test)]
mod tests;

pub use quorum::Quorum;

/// What came of asking one address.
#[derive(Clone, Debug)]
pub struct Heard {
    /// The client address that was asked.
    pub address: String,
    /// What the node there sees, or why there was no answer.
    pub answer: Result<NodeStatus, String>,
}

/// The cluster, as far as those say that answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overview {
    /// The cluster's identity.
    pub cluster: String,
    /// The clock of the node that was heard first, UTC.
    pub time: String,
    /// Whether all is well: nothing in `troubles`.
    pub well: bool,
    /// What is not well, one sentence each.
    pub troubles: Vec<String>,
    /// Sites, in the order of the cluster's definition.
    pub sites: Vec<Site>,
    /// Nodes, in the order of the definition.
    pub nodes: Vec<Node>,
    /// What can be served, and what could still be lost.
    pub quorum: Quorum,
    /// Shards.
    pub shards: Vec<Shard>,
    /// Round trips between sites, for each pair that was measured.
    pub rtt: Vec<SiteRtt>,
    /// The business day.
    pub day: Day,
    /// Netting cycles.
    pub cycles: Cycles,
    /// Addresses that were asked and did not answer.
    pub silent: Vec<Silent>,
}

/// A site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Its name.
    pub site: String,
    /// Its nodes.
    pub nodes: usize,
    /// Those that are up.
    pub nodes_up: usize,
    /// Shards that its nodes lead.
    pub leads: Vec<u16>,
}

/// How a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeHealth {
    /// It says that it can take messages in.
    Ready,
    /// It answers and says why it cannot.
    NotReady,
    /// It does not answer here, but is connected to nodes that do.
    Unheard,
    /// Nobody who answers is connected to it.
    Down,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its name.
    pub node: String,
    /// Its site.
    pub site: String,
    /// `data` or `witness`.
    pub kind: String,
    /// Where participants and operators reach it.
    pub client_address: String,
    /// How it is.
    pub health: NodeHealth,
    /// Why it is not ready, or why nobody is connected to it.
    pub why: Option<String>,
    /// The version it runs; known of those that answer, as is all below but the lag.
    pub version: Option<String>,
    /// Shards that it leads.
    pub leads: Vec<u16>,
    /// What it is behind its shards' leaders, as they see it: summed up over shards, the longest time of all. `None` while
    /// no leader has heard from it.
    pub lag: Option<Lag>,
    /// What waits on it.
    pub queues: Option<QueueState>,
    /// Bytes that wait to be sent to other nodes.
    pub link_queue_bytes: Option<u64>,
    /// Bytes written to its log since its start.
    pub log_bytes: Option<u64>,
    /// Free bytes on its fullest volume.
    pub free_bytes: Option<u64>,
    /// Shards whose snapshot it fetches.
    pub catching_up: Vec<CatchingUp>,
}

/// What a node is behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lag {
    /// Entries that it is not known to have.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long ago the oldest of them was proposed.
    pub ns: u64,
    /// Entries sent to it and not yet answered.
    pub in_flight_entries: u64,
}

/// A shard whose snapshot a node fetches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatchingUp {
    /// The shard.
    pub shard: u16,
    /// How far it is.
    #[serde(flatten)]
    pub progress: CatchUpState,
}

/// A shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Its number.
    pub shard: u16,
    /// Who leads it, when a node that is up does.
    pub leader: Option<String>,
    /// The leader's site.
    pub site: Option<String>,
    /// Raft term, the highest that was heard of.
    pub term: u64,
    /// Last entry known to be committed.
    pub committed_index: u64,
    /// Proposals without an outcome, on all nodes.
    pub waiting: u64,
    /// Who votes in its group: a majority of them decides.
    pub voters: Vec<String>,
    /// While its group changes: who voted before. A majority of them is needed too.
    pub voters_outgoing: Vec<String>,
    /// How far the other members are, as the leader sees them; empty when it does not answer.
    pub peers: Vec<ShardPeer>,
    /// Whether states that stand at the same entry are the same; `None` when no two do at this moment.
    pub digests_agree: Option<bool>,
}

/// Round trips between the nodes of two sites.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteRtt {
    /// From this site's nodes.
    pub from: String,
    /// To this one's.
    pub to: String,
    /// Half of the last two minutes' were no longer, in milliseconds: the median over pairs of nodes.
    pub p50_ms: f64,
    /// 99 of 100 were no longer: the longest over pairs of nodes.
    pub p99_ms: f64,
}

/// The business day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Day {
    /// The open one.
    pub business_day: Option<String>,
    /// Participants.
    pub participants: usize,
    /// Its payments, or those of the last one.
    pub payments: PaymentFigures,
}

/// Netting cycles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cycles {
    /// The one that runs.
    pub running: Option<RunningCycle>,
    /// The last ones that ended, newest first.
    pub last: Vec<EndedCycle>,
}

/// An address without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silent {
    /// The address.
    pub address: String,
    /// Why.
    pub why: String,
}

/// Addresses of nodes that those heard so far know of and that were not asked yet.
#[must_use]
pub fn unasked(heard: &[Heard]) -> Vec<String> {
    let asked: BTreeSet<&str> = heard.iter().map(|one| one.address.as_str()).collect();
    let answered: BTreeSet<&str> = answers(heard).map(|status| status.node.as_str()).collect();
    let known = answers(heard).flat_map(|status| &status.nodes);
    let mut addresses: Vec<String> = known
        .filter(|node| !answered.contains(node.node.as_str()))
        .map(|node| node.client_address.clone())
        .filter(|address| !asked.contains(address.as_str()))
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

fn answers(heard: &[Heard]) -> impl Iterator<Item = &NodeStatus> {
    heard.iter().filter_map(|one| one.answer.as_ref().ok())
}

/// Adds up what was heard; `None` when nobody answered.
#[must_use]
pub fn sum_up(heard: &[Heard]) -> Option<Overview> {
    // A node that was asked at two addresses answers twice.
    let mut views: BTreeMap<&str, &NodeStatus> = BTreeMap::new();
    for status in answers(heard) {
        views.entry(&status.node).or_insert(status);
    }
    let first = answers(heard).next()?;
    let shards = shards(first, &views);
    let nodes: Vec<Node> = first
        .nodes
        .iter()
        .map(|known| node(known, &views, &shards))
        .collect();
    let quorum = Quorum::of(&nodes, &shards);
    let sites = sites(&nodes);
    let addresses: BTreeSet<&str> = first
        .nodes
        .iter()
        .map(|node| node.client_address.as_str())
        .collect();
    let silent: Vec<Silent> = heard
        .iter()
        .filter_map(|one| {
            let why = one.answer.as_ref().err()?.clone();
            let address = one.address.clone();
            Some(Silent { address, why })
        })
        .collect();
    // Who has applied most of the coordinator's log knows most about days and cycles.
    let knows = views
        .values()
        .filter(|status| status.payments.is_some())
        .max_by_key(|status| status.shards.first().map_or(0, |shard| shard.applied_index));
    let (day, cycles) = knows.map(|status| day(status)).unwrap_or_default();
    let mut overview = Overview {
        cluster: first.cluster.clone(),
        time: first.time.clone(),
        well: true,
        troubles: Vec::new(),
        rtt: round_trips(&sites, &views),
        sites,
        nodes,
        quorum,
        shards,
        day,
        cycles,
        silent,
    };
    overview.troubles = troubles(&overview, &views, &addresses);
    overview.well = overview.troubles.is_empty();
    Some(overview)
}

fn shards(first: &NodeStatus, views: &BTreeMap<&str, &NodeStatus>) -> Vec<Shard> {
    first
        .shards
        .iter()
        .map(|shard| shard_of(shard.shard, first, views))
        .collect()
}

fn shard_of(number: u16, first: &NodeStatus, views: &BTreeMap<&str, &NodeStatus>) -> Shard {
    let seen: Vec<(&NodeStatus, &ShardState)> = views
        .values()
        .filter_map(|&status| {
            let shard = status.shards.iter().find(|shard| shard.shard == number)?;
            Some((status, shard))
        })
        .collect();
    let term = seen.iter().map(|(_, shard)| shard.term).max().unwrap_or(0);
    // Who leads says so; a node that has not heard of a newer term may still name, or be, an older leader.
    let own = seen
        .iter()
        .filter(|(_, shard)| shard.role == "leader")
        .max_by_key(|(_, shard)| shard.term);
    let named = seen
        .iter()
        .filter(|(_, shard)| shard.leader.is_some())
        .max_by_key(|(_, shard)| shard.term);
    let leader = match (own, named) {
        (Some((status, shard)), named)
            if named.is_none_or(|(_, other)| other.term <= shard.term) =>
        {
            Some(status.node.clone())
        }
        (_, Some((_, shard))) => shard.leader.clone(),
        _ => None,
    };
    // One that nobody is connected to leads no more, whatever was last known.
    let leader = leader.filter(|name| {
        views.contains_key(name.as_str())
            || views.values().any(|status| {
                status
                    .nodes
                    .iter()
                    .any(|peer| peer.node == *name && peer.up)
            })
    });
    let site = leader.as_ref().and_then(|name| {
        let node = first.nodes.iter().find(|node| node.node == *name)?;
        Some(node.site.clone())
    });
    // Whoever leads knows best who is in the group, else whoever knows most of the journal.
    let group = own.or_else(|| seen.iter().max_by_key(|(_, shard)| shard.committed_index));
    let (voters, voters_outgoing) = group
        .map(|(_, shard)| (shard.voters.clone(), shard.voters_outgoing.clone()))
        .unwrap_or_default();
    let peers = own
        .filter(|(status, _)| Some(&status.node) == leader.as_ref())
        .map(|(_, shard)| shard.peers.clone())
        .unwrap_or_default();
    Shard {
        shard: number,
        leader,
        site,
        term,
        committed_index: seen
            .iter()
            .map(|(_, shard)| shard.committed_index)
            .max()
            .unwrap_or(0),
        waiting: seen.iter().map(|(_, shard)| shard.waiting as u64).sum(),
        voters,
        voters_outgoing,
        peers,
        digests_agree: digests_agree(&seen),
    }
}

/// Compares states that stand at the same entry.
fn digests_agree(seen: &[(&NodeStatus, &ShardState)]) -> Option<bool> {
    let mut by_index: BTreeMap<u64, BTreeMap<&str, usize>> = BTreeMap::new();
    for (_, shard) in seen {
        if let Some(digest) = &shard.digest {
            let digests = by_index.entry(shard.digest_index).or_default();
            *digests.entry(digest).or_default() += 1;
        }
    }
    if by_index.values().any(|digests| digests.len() > 1) {
        return Some(false);
    }
    let compared = by_index
        .values()
        .any(|digests| digests.values().any(|&count| count > 1));
    compared.then_some(true)
}

fn node(known: &PeerState, views: &BTreeMap<&str, &NodeStatus>, shards: &[Shard]) -> Node {
    let status = views.get(known.node.as_str()).copied();
    let as_peer = || {
        views
            .values()
            .flat_map(|status| &status.nodes)
            .filter(|peer| peer.node == known.node)
    };
    let (health, why) = match status {
        Some(status) if status.ready => (NodeHealth::Ready, None),
        Some(status) => (NodeHealth::NotReady, status.why_not.clone()),
        None if as_peer().any(|peer| peer.up) => (NodeHealth::Unheard, None),
        None => (
            NodeHealth::Down,
            as_peer().find_map(|peer| peer.last_fault.clone()),
        ),
    };
    let leads: Vec<u16> = shards
        .iter()
        .filter(|shard| shard.leader.as_ref() == Some(&known.node))
        .map(|shard| shard.shard)
        .collect();
    let mut lag = (!leads.is_empty()).then(Lag::default);
    for peer in shards.iter().flat_map(|shard| &shard.peers) {
        if peer.node == known.node && is_known(peer) {
            let lag = lag.get_or_insert_default();
            lag.entries += peer.lag_entries;
            lag.bytes += peer.lag_bytes;
            lag.ns = lag.ns.max(peer.lag_ns);
            lag.in_flight_entries += peer.in_flight_entries;
        }
    }
    let catching_up = status.into_iter().flat_map(|status| &status.shards);
    Node {
        node: known.node.clone(),
        site: known.site.clone(),
        kind: known.kind.clone(),
        client_address: known.client_address.clone(),
        health,
        why,
        version: status.map(|status| status.version.clone()),
        leads,
        lag,
        queues: status.map(|status| status.queues),
        link_queue_bytes: status
            .map(|status| status.nodes.iter().map(|peer| peer.queued_bytes).sum()),
        log_bytes: status.map(|status| status.log_bytes),
        free_bytes: status.and_then(|status| {
            let volumes = [status.log_free_bytes, status.packages_free_bytes];
            volumes.into_iter().flatten().min()
        }),
        catching_up: catching_up
            .filter_map(|shard| {
                Some(CatchingUp {
                    shard: shard.shard,
                    progress: shard.catching_up.clone()?,
                })
            })
            .collect(),
    }
}

/// A new leader does not know what a member has until it answers.
#[must_use]
pub fn is_known(peer: &ShardPeer) -> bool {
    peer.matched_index > 0 || peer.state != "probe"
}

fn sites(nodes: &[Node]) -> Vec<Site> {
    let mut sites: Vec<Site> = Vec::new();
    for node in nodes {
        let at = sites.iter().position(|site| site.site == node.site);
        let at = at.unwrap_or_else(|| {
            sites.push(Site {
                site: node.site.clone(),
                nodes: 0,
                nodes_up: 0,
                leads: Vec::new(),
            });
            sites.len() - 1
        });
        if let Some(site) = sites.get_mut(at) {
            site.nodes += 1;
            site.nodes_up += usize::from(node.health != NodeHealth::Down);
            site.leads.extend(&node.leads);
            site.leads.sort_unstable();
        }
    }
    sites
}

fn round_trips(sites: &[Site], views: &BTreeMap<&str, &NodeStatus>) -> Vec<SiteRtt> {
    let mut found = Vec::new();
    for from in sites {
        for to in sites {
            let peers = views
                .values()
                .filter(|status| status.site == from.site)
                .flat_map(|status| status.nodes.iter().filter(|peer| peer.node != status.node))
                .filter(|peer| peer.site == to.site && peer.up);
            let mut pairs: Vec<(f64, f64)> = peers
                .filter_map(|peer| Some((peer.rtt_p50_ms?, peer.rtt_p99_ms?)))
                .collect();
            pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
            if let Some(&(p50_ms, _)) = pairs.get(pairs.len() / 2) {
                found.push(SiteRtt {
                    from: from.site.clone(),
                    to: to.site.clone(),
                    p50_ms,
                    p99_ms: pairs.iter().map(|pair| pair.1).fold(0.0, f64::max),
                });
            }
        }
    }
    found
}

fn day(status: &NodeStatus) -> (Day, Cycles) {
    let day = Day {
        business_day: status.business_day.clone(),
        participants: status.participants,
        payments: status.payments.unwrap_or_default(),
    };
    let cycles = Cycles {
        running: status.cycle.clone(),
        last: status.last_cycles.clone(),
    };
    (day, cycles)
}

/// What is not well.
fn troubles(
    overview: &Overview,
    views: &BTreeMap<&str, &NodeStatus>,
    addresses: &BTreeSet<&str>,
) -> Vec<String> {
    let mut troubles = overview.quorum.troubles(&overview.nodes, &overview.shards);
    for node in &overview.nodes {
        let why = node.why.as_deref().unwrap_or("no reason is known");
        match node.health {
            NodeHealth::Ready => {}
            NodeHealth::NotReady => troubles.push(format!("{} is not ready: {why}", node.node)),
            NodeHealth::Unheard => troubles.push(format!(
                "{} does not answer at {}; other nodes are connected to it",
                node.node, node.client_address
            )),
            NodeHealth::Down => troubles.push(format!("{} is down: {why}", node.node)),
        }
        for shard in &node.catching_up {
            troubles.push(format!(
                "{} catches up with shard {}",
                node.node, shard.shard
            ));
        }
    }
    for shard in &overview.shards {
        if shard.digests_agree == Some(false) {
            troubles.push(format!(
                "states of shard {} differ at the same entry: compare digests in --json, stop the odd one out",
                shard.shard
            ));
        }
    }
    let clusters: BTreeSet<&str> = views
        .values()
        .map(|status| status.cluster.as_str())
        .collect();
    if clusters.len() > 1 {
        troubles.push(format!(
            "the addresses belong to {} clusters; only the first is shown",
            clusters.len()
        ));
    }
    for silent in &overview.silent {
        if !addresses.contains(silent.address.as_str()) {
            troubles.push(format!(
                "{} does not answer: {}",
                silent.address, silent.why
            ));
        }
    }
    troubles
}
