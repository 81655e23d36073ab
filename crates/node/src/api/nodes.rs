//! The cluster's nodes: who there is, how the groups follow, and operators' changes (ADR 0022).

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use clearspan_ledger::approvals::{self, Act};
use clearspan_ledger::entry::Command;
use clearspan_ledger::nodes::{NodeCommand, NodeDirectory, NodeRecord, NodeState};
use clearspan_ledger::{AdminRefusal, Reply, ShardId};
use clearspan_replica::MemberId;
use clearspan_storage::NodeId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::Caller;
use super::admin::{Answer, note};
use super::extract::Json;
use super::{Api, COORDINATOR, Code, Problem};
use crate::cluster::definition::{NodeKind, check_address, check_name};
use crate::engine::{Lane, ShardStatus};

/// The cluster's nodes and the shards' groups, as one node knows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Nodes {
    /// Where the journal of shard 0 last changed the nodes; 0 while they are those of the founding.
    pub version: u64,
    /// Whether every group has the members that it shall have.
    pub settled: bool,
    /// All nodes that there are and were.
    pub nodes: Vec<NodeEntry>,
    /// Every shard's group.
    pub shards: Vec<GroupEntry>,
    /// The directory of nodes as nodes keep it, in hexadecimal: what a new node begins with.
    pub directory: String,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeEntry {
    /// Its name.
    pub node: String,
    /// Its number in the groups.
    pub member: u64,
    /// Its identity.
    pub id: String,
    /// Its site.
    pub site: String,
    /// `data` or `witness`.
    pub kind: String,
    /// `active`, `draining` or `removed`.
    pub state: String,
    /// Where other nodes reach it.
    pub peer: String,
    /// Where participants and operators reach it.
    pub client: String,
    /// Where metrics and the console are.
    pub http: Option<String>,
    /// Whether it is connected to the node that was asked.
    pub up: bool,
    /// Shards in whose group it votes.
    pub votes: Vec<u16>,
    /// Shards whose group it follows without a vote.
    pub follows: Vec<u16>,
    /// Shards that it leads.
    pub leads: Vec<u16>,
}

/// One shard's group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupEntry {
    /// The shard.
    pub shard: u16,
    /// Who leads it, where that is known.
    pub leader: Option<String>,
    /// Whether it has the members that it shall have.
    pub settled: bool,
    /// What its next change waits for; known where it is led.
    pub waits_for: Option<String>,
    /// By how many entries the member that lags most does; known where it is led.
    pub lag_entries: Option<u64>,
}

/// A node that shall be taken up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewNode {
    /// Its name.
    pub node: String,
    /// Its site.
    pub site: String,
    /// Whether it keeps the log only.
    #[serde(default)]
    pub witness: bool,
    /// Its fresh identity, 32 hexadecimal digits.
    pub id: String,
    /// Where other nodes reach it.
    pub peer: String,
    /// Where participants and operators reach it.
    pub client: String,
    /// Where metrics and the console are.
    pub http: Option<String>,
    /// The node whose place it takes.
    pub replaces: Option<String>,
}

/// Which node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Which {
    /// Its name.
    pub node: String,
}

/// Whether a node shall lead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    /// Its name.
    pub node: String,
    /// Whether it shall lead nothing.
    pub draining: bool,
}

/// Who shall lead a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveLeader {
    /// The shard.
    pub shard: u16,
    /// The node; without one the shard goes back to whom it falls to.
    pub node: Option<String>,
}

pub(super) fn refused(refusal: AdminRefusal) -> Problem {
    let why = match refusal {
        AdminRefusal::NodeUnknown => "there is no such node, or it cannot be what is asked of it",
        AdminRefusal::NodeExists => "another node has this name or one of these addresses",
        AdminRefusal::NodeInvalid => {
            "a name or address is missing or too long, or a witness and a data node shall take each other's place"
        }
        AdminRefusal::LastNode => "nobody would be left to lead; add another data node first",
        AdminRefusal::TooMany => "the cluster has as many nodes as it may have",
        AdminRefusal::ShardUnknown => "there is no such shard",
        AdminRefusal::NoGenesis => {
            "the cluster has no participants yet; found it first: clearspan admin found"
        }
        other => return Problem::new(Code::Refused, format!("the ledger refused it: {other:?}")),
    };
    Problem::new(Code::Refused, why)
}

impl Api {
    /// What is known of the nodes here.
    pub(super) fn directory(&self) -> Arc<NodeDirectory> {
        let known = self.engine.nodes();
        if self.node.kind == NodeKind::Witness {
            return known;
        }
        // What was applied a moment ago.
        let applied = self.engine.with_ledger(COORDINATOR, |ledger| {
            let applied = ledger.nodes();
            (applied.version() > known.version()).then(|| applied.clone())
        });
        applied.map_or(known, Arc::new)
    }

    fn nodes_now(&self) -> Nodes {
        let directory = self.directory();
        let shards = self.engine.status();
        let peers = self.links.as_ref().map(crate::links::Links::status);
        let peers = peers.unwrap_or_default();
        let nodes = directory
            .all()
            .map(|node| {
                let in_shards = |holds: &dyn Fn(&ShardStatus, MemberId) -> bool| {
                    let member = MemberId::new(node.member);
                    shards
                        .iter()
                        .filter(|shard| member.is_some_and(|member| holds(shard, member)))
                        .map(|shard| shard.shard.get())
                        .collect()
                };
                let me = node.member == self.node.member.get();
                NodeEntry {
                    node: node.name.clone(),
                    member: node.member,
                    id: NodeId::from_bytes(node.id.to_be_bytes()).to_string(),
                    site: node.site.clone(),
                    kind: if node.witness { "witness" } else { "data" }.to_owned(),
                    state: match node.state {
                        NodeState::Active => "active",
                        NodeState::Draining => "draining",
                        NodeState::Removed => "removed",
                    }
                    .to_owned(),
                    peer: node.peer.clone(),
                    client: node.client.clone(),
                    http: node.http.clone(),
                    up: me
                        || peers.iter().any(|peer| {
                            peer.member.get() == node.member && peer.connected_ns.is_some()
                        }),
                    votes: in_shards(&|shard, member| {
                        let group = &shard.membership;
                        group.voters.contains(&member) || group.voters_outgoing.contains(&member)
                    }),
                    follows: in_shards(&|shard, member| {
                        let group = &shard.membership;
                        group.learners.contains(&member) || group.learners_next.contains(&member)
                    }),
                    leads: in_shards(&|shard, member| shard.replica.leader == Some(member)),
                }
            })
            .collect();
        let groups: Vec<GroupEntry> = shards
            .iter()
            .map(|shard| {
                let leader = shard.replica.leader;
                let settled = is_settled(&directory, shard);
                GroupEntry {
                    shard: shard.shard.get(),
                    leader: leader
                        .and_then(|leader| directory.get(leader.get()))
                        .map(|node| node.name.clone()),
                    settled,
                    waits_for: shard.change.map(|wait| wait.to_string()),
                    lag_entries: shard.peers.iter().map(|peer| peer.lag_entries).max(),
                }
            })
            .collect();
        let bytes = clearspan_codec::nodes::encode(&directory, &std::collections::BTreeMap::new());
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Nodes {
            version: directory.version().get(),
            settled: groups.iter().all(|group| group.settled),
            nodes,
            shards: groups,
            directory: hex,
        }
    }

    /// Changes the nodes; what the journal knows nothing of yet is what the cluster was founded with.
    fn change_nodes(&self, caller: &Caller, command: NodeCommand) -> Result<Nodes, Problem> {
        let found = self.directory().version().get() == 0;
        let founding = NodeCommand::Found {
            nodes: self.definition.directory().all().cloned().collect(),
        };
        for command in found.then_some(founding).into_iter().chain([command]) {
            let command = Command::Nodes(command);
            if let Command::Nodes(act) = &command
                && approvals::takes_two(&command)
                && self.takes_two()?
            {
                return Err(self.ask_for(caller, Act::Nodes(act.clone())));
            }
            let outcome = self.engine.execute(COORDINATOR, &command, Lane::Urgent)?;
            if let Reply::Refused(refusal) = outcome.reply {
                return Err(refused(refusal));
            }
        }
        self.catch_up([COORDINATOR], false)?;
        Ok(self.nodes_now())
    }

    /// A node that was not removed, as the journal has it by now.
    fn present(&self, name: &str) -> Result<NodeRecord, Problem> {
        self.catch_up([COORDINATOR], false)?;
        let directory = self.directory();
        directory.find(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = directory.present().map(|node| node.name.as_str()).collect();
            Problem::not_found(format!(
                "there is no node {name:?}; there are {}",
                known.join(", ")
            ))
        })
    }

    /// No group may be left without a majority of voters that are there.
    pub(super) fn check_quorum_without(&self, node: &NodeRecord) -> Result<(), Problem> {
        let peers = self.links.as_ref().map(crate::links::Links::status);
        let peers = peers.unwrap_or_default();
        let there = |member: &&MemberId| {
            **member == self.node.member
                || peers
                    .iter()
                    .any(|peer| peer.member == **member && peer.connected_ns.is_some())
        };
        for shard in self.engine.status() {
            let rest = || {
                let voters = shard.membership.voters.iter();
                voters.filter(|member| member.get() != node.member)
            };
            let (voters, there) = (rest().count(), rest().filter(there).count());
            if there * 2 <= voters {
                return Err(Problem::new(
                    Code::Quorum,
                    format!(
                        "without {} shard {} would have {voters} voters, of which this node reaches {there}: no majority; \
                         start those that are down, or replace them first",
                        node.name, shard.shard
                    ),
                ));
            }
        }
        Ok(())
    }
}

fn is_settled(directory: &NodeDirectory, shard: &ShardStatus) -> bool {
    let mut wanted: Vec<u64> = directory
        .wanted(shard.shard)
        .map(|node| node.member)
        .collect();
    let group = &shard.membership;
    let mut voters: Vec<u64> = group.voters.iter().map(|member| member.get()).collect();
    wanted.sort_unstable();
    voters.sort_unstable();
    // Before the first change the groups are as they were founded.
    let as_founded = directory.version().get() == 0;
    let done = group.learners.is_empty() && group.voters_outgoing.is_empty();
    as_founded || done && wanted == voters
}

/// The nodes and groups as this node sees them.
pub(super) async fn nodes(State(api): State<Arc<Api>>) -> Answer<Nodes> {
    api.blocking(|api| Ok(Json(api.nodes_now()))).await
}

pub(super) async fn add(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Json(new): Json<NewNode>,
) -> Answer<Nodes> {
    let act = format!("add node {}", new.node);
    let by = caller.clone();
    let done = api.blocking(move |api| take_up(api, &by, new)).await;
    note(&caller, &act, &done);
    done
}

fn take_up(api: &Api, by: &Caller, new: NewNode) -> Answer<Nodes> {
    api.catch_up([COORDINATOR], false)?;
    check_name("node", &new.node).map_err(Problem::invalid)?;
    check_name("site", &new.site).map_err(Problem::invalid)?;
    for (what, address) in [
        ("peer", Some(&new.peer)),
        ("client", Some(&new.client)),
        ("http", new.http.as_ref()),
    ] {
        if let Some(address) = address {
            check_address(what, address).map_err(Problem::invalid)?;
        }
    }
    let id = NodeId::parse(&new.id)
        .map(|id| u128::from_be_bytes(id.to_bytes()))
        .ok_or_else(|| Problem::invalid("id: give 32 hexadecimal digits"))?;
    // Asked a second time, after an answer was lost, it is done already.
    if let Some(known) = api.directory().with_id(id) {
        if known.state == NodeState::Removed {
            let detail = "a node of this identity was removed; identities do not come back";
            return Err(Problem::new(Code::Refused, detail));
        }
        return Ok(Json(api.nodes_now()));
    }
    let replaces = match &new.replaces {
        None => None,
        Some(name) => Some(api.present(name)?.member),
    };
    let node = NodeRecord {
        member: 0,
        id,
        name: new.node,
        site: new.site,
        witness: new.witness,
        peer: new.peer,
        client: new.client,
        http: new.http,
        state: NodeState::Active,
        replaces,
    };
    api.change_nodes(by, NodeCommand::Add { node }).map(Json)
}

pub(super) async fn remove(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Json(Which { node }): Json<Which>,
) -> Answer<Nodes> {
    let act = format!("remove node {node}");
    let by = caller.clone();
    let done = api
        .blocking(move |api| {
            api.catch_up([COORDINATOR], false)?;
            let directory = api.directory();
            // Asked a second time, after an answer was lost, it is done already.
            if directory.find(&node).is_none() && directory.all().any(|old| old.name == node) {
                return Ok(Json(api.nodes_now()));
            }
            let found = api.present(&node)?;
            api.check_quorum_without(&found)?;
            let member = found.member;
            api.change_nodes(&by, NodeCommand::Remove { member })
                .map(Json)
        })
        .await;
    note(&caller, &act, &done);
    done
}

pub(super) async fn drain(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Json(Drain { node, draining }): Json<Drain>,
) -> Answer<Nodes> {
    let act = format!("{} node {node}", if draining { "drain" } else { "undrain" });
    let by = caller.clone();
    let done = api
        .blocking(move |api| {
            let member = api.present(&node)?.member;
            api.change_nodes(&by, NodeCommand::Drain { member, draining })
                .map(Json)
        })
        .await;
    note(&caller, &act, &done);
    done
}

pub(super) async fn move_leader(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Json(MoveLeader { shard, node }): Json<MoveLeader>,
) -> Answer<Nodes> {
    let act = format!("move the lead of shard {shard}");
    let by = caller.clone();
    let done = api
        .blocking(move |api| {
            let member = match &node {
                None => None,
                Some(name) => Some(api.present(name)?.member),
            };
            let shard = ShardId::new(shard);
            api.change_nodes(&by, NodeCommand::MoveLeader { shard, member })
                .map(Json)
        })
        .await;
    note(&caller, &act, &done);
    done
}
