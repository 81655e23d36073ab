//! The cluster's nodes, as shard 0's journal decides them (ADR 0022): who there is, where, and who shall leave.
//!
//! What follows from it (links, the members of each shard's group, who leads) is the nodes' own doing. The ledger only
//! keeps what all of them must agree on, in one order.

use std::collections::BTreeMap;

use crate::apply::{AdminRefusal, Reply};
use crate::layout::{Layout, Sink, Source, layout};
use crate::state::Ledger;
use crate::{LogIndex, ShardId};

/// Nodes of a cluster, without those that were removed: the names of a group's members fit a frame.
pub const NODES_MAX: usize = 64;
/// Nodes that there ever were: their numbers are kept for good, so that none comes back, and all of them fit a frame.
pub const NODES_EVER_MAX: usize = 1024;
/// The longest name of a node or site, and the longest address.
pub const NODE_TEXT_MAX_BYTES: usize = 255;

/// What shall become of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeState {
    /// It belongs to every group it should, and leads.
    #[default]
    Active,
    /// It belongs to its groups and leads nothing.
    Draining,
    /// It is taken out of its groups, or was. Neither its number nor its identity comes back.
    Removed,
}

layout!(enum NodeState { 0 => Active, 1 => Draining, 2 => Removed });

/// One node, in one life of its data directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeRecord {
    /// Its number in the groups, from 1; never used again.
    pub member: u64,
    /// Its random identity; never used again.
    pub id: u128,
    /// Its name; one that was removed may leave it to another.
    pub name: String,
    /// Its site's name.
    pub site: String,
    /// Whether it keeps the log only.
    pub witness: bool,
    /// Where other nodes reach it.
    pub peer: String,
    /// Where participants and operators reach it.
    pub client: String,
    /// Where metrics and the console are, if anywhere.
    pub http: Option<String>,
    /// What shall become of it.
    pub state: NodeState,
    /// The member whose place it takes: that one leaves each group in the same change in which this one begins to vote.
    pub replaces: Option<u64>,
}

layout!(struct NodeRecord { member, id, name, site, witness, peer, client, http, state, replaces });

/// All nodes that there are and were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeDirectory {
    /// Where shard 0's journal last changed it; zero for what the cluster was founded with.
    version: LogIndex,
    nodes: BTreeMap<u64, NodeRecord>,
    /// By shard: the member that an operator wants to lead it.
    leaders: BTreeMap<ShardId, u64>,
}

// It also comes from peers: there is one spelling, in order.
impl Layout for NodeDirectory {
    fn put<S: Sink>(&self, sink: &mut S) {
        self.version.put(sink);
        let nodes: Vec<NodeRecord> = self.all().cloned().collect();
        nodes.put(sink);
        let leaders: Vec<(ShardId, u64)> = self.leaders.clone().into_iter().collect();
        leaders.put(sink);
    }

    fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
        let version = LogIndex::take(source)?;
        let nodes: Vec<NodeRecord> = Vec::take(source)?;
        let leaders: Vec<(ShardId, u64)> = Vec::take(source)?;
        let numbers = nodes.iter().map(|node| node.member);
        let shards = leaders.iter().map(|(shard, _)| *shard);
        if nodes.len() > NODES_EVER_MAX || !numbers.is_sorted_by(|a, b| a < b) {
            return Err(source.invalid("nodes are too many or out of order"));
        }
        if nodes.first().is_some_and(|node| node.member == 0) || !shards.is_sorted_by(|a, b| a < b)
        {
            return Err(source.invalid("no such member, or shards out of order"));
        }
        Ok(Self {
            version,
            leaders: leaders.into_iter().collect(),
            ..Self::founding(nodes)
        })
    }
}

/// A change of the cluster's nodes; shard 0 takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeCommand {
    /// The nodes that the cluster was founded with; the first one counts.
    Found {
        /// The nodes.
        nodes: Vec<NodeRecord>,
    },
    /// Takes a node up; its number is the next one, its state active. Its identity says whether it was done before.
    Add {
        /// The node.
        node: NodeRecord,
    },
    /// Takes a node out for good.
    Remove {
        /// Its number.
        member: u64,
    },
    /// Lets a node lead nothing, or lead again.
    Drain {
        /// Its number.
        member: u64,
        /// Whether it shall lead nothing.
        draining: bool,
    },
    /// Says who leads a shard where it can.
    MoveLeader {
        /// The shard.
        shard: ShardId,
        /// The member; without one the shard goes back to whom it falls to.
        member: Option<u64>,
    },
}

layout!(enum NodeCommand {
    0 => Found { nodes }, 1 => Add { node }, 2 => Remove { member }, 3 => Drain { member, draining },
    4 => MoveLeader { shard, member }
});

impl NodeDirectory {
    /// What a cluster is founded with.
    #[must_use]
    pub fn founding(nodes: Vec<NodeRecord>) -> Self {
        Self {
            nodes: nodes.into_iter().map(|node| (node.member, node)).collect(),
            ..Self::default()
        }
    }

    /// Where shard 0's journal last changed it; zero for what the cluster was founded with.
    #[must_use]
    pub const fn version(&self) -> LogIndex {
        self.version
    }

    /// All nodes that there are and were, by number.
    pub fn all(&self) -> impl Iterator<Item = &NodeRecord> {
        self.nodes.values()
    }

    /// The nodes that were not removed, by number.
    pub fn present(&self) -> impl Iterator<Item = &NodeRecord> {
        self.all().filter(|node| node.state != NodeState::Removed)
    }

    /// A node by its number, also one that was removed.
    #[must_use]
    pub fn get(&self, member: u64) -> Option<&NodeRecord> {
        self.nodes.get(&member)
    }

    /// A node that was not removed, by name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&NodeRecord> {
        self.present().find(|node| node.name == name)
    }

    /// A node by its identity, also one that was removed.
    #[must_use]
    pub fn with_id(&self, id: u128) -> Option<&NodeRecord> {
        self.all().find(|node| node.id == id)
    }

    /// Whom an operator wants to lead, by shard.
    pub fn leaders(&self) -> impl Iterator<Item = (ShardId, u64)> {
        self.leaders.iter().map(|(&shard, &member)| (shard, member))
    }

    /// The members that a shard's group shall have: today all nodes.
    pub fn wanted(&self, _shard: ShardId) -> impl Iterator<Item = &NodeRecord> {
        self.present()
    }

    /// The node that takes a removed one's place in the end: its replacement, or that one's, and so on.
    #[must_use]
    pub fn successor(&self, member: u64) -> Option<&NodeRecord> {
        let mut of = member;
        // Numbers rise along the way, so it ends.
        loop {
            let next = self
                .all()
                .find(|node| node.replaces == Some(of) && node.member > of)?;
            if next.state != NodeState::Removed {
                return Some(next);
            }
            of = next.member;
        }
    }

    fn leading(&self) -> impl Iterator<Item = &NodeRecord> {
        self.all()
            .filter(|node| node.state == NodeState::Active && !node.witness)
    }

    fn somebody_leads_without(&self, member: u64) -> bool {
        self.leading().any(|other| other.member != member)
    }

    fn check(&self, node: &NodeRecord) -> Result<(), AdminRefusal> {
        let texts = [&node.name, &node.site, &node.peer, &node.client];
        let long = |text: &String| text.len() > NODE_TEXT_MAX_BYTES;
        let missing = texts.iter().any(|text| text.is_empty());
        if missing || texts.into_iter().chain(&node.http).any(long) {
            return Err(AdminRefusal::NodeInvalid);
        }
        let replaced = match node.replaces {
            None => None,
            Some(member) => Some(
                self.get(member)
                    .filter(|old| old.state != NodeState::Removed)
                    .ok_or(AdminRefusal::NodeUnknown)?,
            ),
        };
        if replaced.is_some_and(|old| old.witness != node.witness) {
            return Err(AdminRefusal::NodeInvalid);
        }
        let others = || {
            self.present()
                .filter(|other| Some(other.member) != node.replaces)
        };
        if others().count() >= NODES_MAX || self.nodes.len() >= NODES_EVER_MAX {
            return Err(AdminRefusal::TooMany);
        }
        let addresses = |node: &NodeRecord| {
            [
                Some(node.peer.clone()),
                Some(node.client.clone()),
                node.http.clone(),
            ]
        };
        let wanted = addresses(node);
        for other in others() {
            let taken = addresses(other).into_iter().flatten();
            let clash = taken
                .into_iter()
                .any(|address| wanted.contains(&Some(address)));
            if other.name == node.name || clash {
                return Err(AdminRefusal::NodeExists);
            }
        }
        Ok(())
    }

    fn change(&mut self, command: &NodeCommand, shards: u16) -> Result<(), AdminRefusal> {
        match command {
            NodeCommand::Found { nodes } => {
                if self.nodes.is_empty() {
                    *self = Self::founding(nodes.clone());
                }
            }
            NodeCommand::Add { node } => {
                // Asked a second time, after an answer was lost.
                if self.with_id(node.id).is_some() {
                    return Ok(());
                }
                self.check(node)?;
                let last = self.nodes.keys().next_back().copied().unwrap_or(0);
                let member = last.checked_add(1).ok_or(AdminRefusal::TooMany)?;
                if let Some(old) = node.replaces.and_then(|old| self.nodes.get_mut(&old)) {
                    old.state = NodeState::Removed;
                }
                let node = NodeRecord {
                    member,
                    state: NodeState::Active,
                    ..node.clone()
                };
                self.nodes.insert(member, node);
            }
            NodeCommand::Remove { member } => {
                let node = self.get(*member).ok_or(AdminRefusal::NodeUnknown)?;
                if !node.witness && !self.somebody_leads_without(*member) {
                    return Err(AdminRefusal::LastNode);
                }
                self.set_state(*member, NodeState::Removed);
            }
            NodeCommand::Drain { member, draining } => {
                let node = self
                    .get(*member)
                    .filter(|node| node.state != NodeState::Removed)
                    .ok_or(AdminRefusal::NodeUnknown)?;
                if *draining && !node.witness && !self.somebody_leads_without(*member) {
                    return Err(AdminRefusal::LastNode);
                }
                let state = if *draining {
                    NodeState::Draining
                } else {
                    NodeState::Active
                };
                self.set_state(*member, state);
            }
            NodeCommand::MoveLeader { shard, member } => {
                if shard.get() >= shards {
                    return Err(AdminRefusal::ShardUnknown);
                }
                match member {
                    None => {
                        self.leaders.remove(shard);
                    }
                    Some(member) => {
                        if !self.leading().any(|node| node.member == *member) {
                            return Err(AdminRefusal::NodeUnknown);
                        }
                        self.leaders.insert(*shard, *member);
                    }
                }
            }
        }
        let leading: Vec<u64> = self.leading().map(|node| node.member).collect();
        self.leaders.retain(|_, member| leading.contains(member));
        Ok(())
    }

    fn set_state(&mut self, member: u64, state: NodeState) {
        if let Some(node) = self.nodes.get_mut(&member) {
            node.state = state;
        }
    }
}

impl Ledger {
    /// The cluster's nodes; empty until the first change of those it was founded with, and in every shard but shard 0.
    #[must_use]
    pub const fn nodes(&self) -> &NodeDirectory {
        &self.nodes
    }

    /// Takes up what a snapshot holds beside the rest.
    pub fn set_nodes(&mut self, nodes: NodeDirectory) {
        self.nodes = nodes;
    }

    /// Whether a change would be taken now.
    pub(crate) fn nodes_admit(&self, command: &NodeCommand) -> Result<(), AdminRefusal> {
        self.nodes.clone().change(command, self.shards())
    }

    pub(crate) fn change_nodes(&mut self, command: &NodeCommand) -> Reply {
        if self.shard().get() != 0 {
            return Reply::Refused(AdminRefusal::NotCoordinator);
        }
        let before = self.nodes.clone();
        if let Err(refusal) = self.nodes.change(command, self.shards()) {
            self.nodes = before;
            return Reply::Refused(refusal);
        }
        if self.nodes != before {
            self.nodes.version = self.index;
            self.digest.fold(self.nodes.nodes.len() as u64);
        }
        Reply::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u64) -> NodeRecord {
        NodeRecord {
            member: number,
            id: u128::from(number),
            name: format!("N{number}"),
            site: "A".to_owned(),
            peer: format!("n{number}:1"),
            client: format!("n{number}:2"),
            ..NodeRecord::default()
        }
    }

    fn three() -> NodeDirectory {
        NodeDirectory::founding((1..=3).map(node).collect())
    }

    fn add(directory: &mut NodeDirectory, node: NodeRecord) -> Result<(), AdminRefusal> {
        directory.change(&NodeCommand::Add { node }, 4)
    }

    #[test]
    fn numbers_and_identities_never_come_back() {
        let mut all = three();
        add(&mut all, node(9)).unwrap();
        assert_eq!(all.find("N9").unwrap().member, 4);
        // Asked again it is done already.
        add(&mut all, node(9)).unwrap();
        assert_eq!(all.all().count(), 4);
        all.change(&NodeCommand::Remove { member: 4 }, 4).unwrap();
        assert!(all.find("N9").is_none());
        // The removed one's identity stays its own; its name may be another's.
        add(&mut all, node(9)).unwrap();
        assert!(all.find("N9").is_none());
        let other = NodeRecord { id: 77, ..node(9) };
        add(&mut all, other).unwrap();
        assert_eq!(all.find("N9").unwrap().member, 5);
    }

    #[test]
    fn a_replacement_takes_name_and_place() {
        let mut all = three();
        let again = |id| NodeRecord {
            id,
            replaces: Some(2),
            ..node(2)
        };
        add(&mut all, again(20)).unwrap();
        assert_eq!(all.find("N2").unwrap().member, 4);
        assert_eq!(all.successor(2).unwrap().member, 4);
        // The replaced one is gone, so it is not replaced twice; its replacement may be.
        assert_eq!(add(&mut all, again(21)), Err(AdminRefusal::NodeUnknown));
        let further = NodeRecord {
            replaces: Some(4),
            ..again(21)
        };
        add(&mut all, further).unwrap();
        assert_eq!(all.successor(2).unwrap().member, 5);
        let witness = NodeRecord {
            witness: true,
            replaces: Some(3),
            ..node(8)
        };
        assert_eq!(add(&mut all, witness), Err(AdminRefusal::NodeInvalid));
    }

    #[test]
    fn names_and_addresses_are_of_one_node() {
        let mut all = three();
        let same_name = NodeRecord {
            name: "N1".to_owned(),
            ..node(9)
        };
        assert_eq!(add(&mut all, same_name), Err(AdminRefusal::NodeExists));
        let same_address = NodeRecord {
            http: Some("n3:1".to_owned()),
            ..node(9)
        };
        assert_eq!(add(&mut all, same_address), Err(AdminRefusal::NodeExists));
        let no_site = NodeRecord {
            site: String::new(),
            ..node(9)
        };
        assert_eq!(add(&mut all, no_site), Err(AdminRefusal::NodeInvalid));
    }

    #[test]
    fn somebody_is_left_to_lead() {
        let mut all = three();
        let drain = |member| NodeCommand::Drain {
            member,
            draining: true,
        };
        all.change(&drain(1), 4).unwrap();
        all.change(&NodeCommand::Remove { member: 2 }, 4).unwrap();
        assert_eq!(all.change(&drain(3), 4), Err(AdminRefusal::LastNode));
        let remove = NodeCommand::Remove { member: 3 };
        assert_eq!(all.change(&remove, 4), Err(AdminRefusal::LastNode));
    }

    #[test]
    fn a_wanted_leader_can_lead() {
        let mut all = three();
        let to = |shard, member| NodeCommand::MoveLeader {
            shard: ShardId::new(shard),
            member,
        };
        assert_eq!(
            all.change(&to(4, Some(1)), 4),
            Err(AdminRefusal::ShardUnknown)
        );
        assert_eq!(
            all.change(&to(0, Some(7)), 4),
            Err(AdminRefusal::NodeUnknown)
        );
        all.change(&to(0, Some(2)), 4).unwrap();
        assert!(all.leaders().eq([(ShardId::new(0), 2)]));
        // Who leads nothing is not wanted as a leader any more.
        let drain = NodeCommand::Drain {
            member: 2,
            draining: true,
        };
        all.change(&drain, 4).unwrap();
        assert_eq!(all.leaders().count(), 0);
    }
}
