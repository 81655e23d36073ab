//! What can be served, and what could still be lost before nothing can.

use serde::{Deserialize, Serialize};

use super::{Node, NodeHealth, Shard};

/// What votes, and how much of it could be lost now. `voters`, `voters_up` and `majority` are of the shard that could lose
/// least: where all nodes vote in all shards, that is every shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quorum {
    /// Shards.
    pub shards: usize,
    /// Those with a leader that is up.
    pub shards_served: usize,
    /// Nodes that vote.
    pub voters: usize,
    /// Those that are up.
    pub voters_up: usize,
    /// How many must be up.
    pub majority: usize,
    /// Nodes that vote in no shard yet: they catch up first.
    pub newcomers: Vec<String>,
    /// Whichever so many nodes are lost now, the others go on.
    pub may_lose_nodes: usize,
    /// Each of these sites, whole, could be lost now.
    pub may_lose_sites: Vec<String>,
}

fn is_up(node: &Node) -> bool {
    matches!(node.health, NodeHealth::Ready | NodeHealth::Unheard)
}

/// Keeps a ledger, and is not so far behind that its state must be fetched first.
fn serves(node: &Node) -> bool {
    is_up(node) && node.kind == "data" && node.catching_up.is_empty()
}

/// Nodes of which a majority decides in a shard: its voters, or those that were its voters while its group changes.
struct Electorate<'a> {
    shard: u16,
    voters: usize,
    up: Vec<&'a Node>,
}

impl<'a> Electorate<'a> {
    fn of(shard: &Shard, names: &[String], nodes: &'a [Node]) -> Self {
        let up = nodes
            .iter()
            .filter(|node| is_up(node) && names.contains(&node.node));
        Self {
            shard: shard.shard,
            voters: names.len(),
            up: up.collect(),
        }
    }

    /// Of every shard: one, or two while its group changes.
    fn all(nodes: &'a [Node], shards: &[Shard]) -> Vec<Self> {
        shards
            .iter()
            .flat_map(|shard| [(shard, &shard.voters), (shard, &shard.voters_outgoing)])
            .filter(|(_, names)| !names.is_empty())
            .map(|(shard, names)| Self::of(shard, names, nodes))
            .collect()
    }

    const fn majority(&self) -> usize {
        self.voters / 2 + 1
    }

    fn has_quorum(&self) -> bool {
        self.up.len() >= self.majority()
    }

    /// Whichever so many are lost, a majority is left, and one that can lead.
    fn may_lose_nodes(&self) -> usize {
        let serving = self.up.iter().filter(|node| serves(node)).count();
        let spare = self.up.len().saturating_sub(self.majority());
        spare.min(serving.saturating_sub(1))
    }

    fn may_lose_site(&self, site: &str) -> bool {
        let left = self.up.iter().filter(|node| node.site != site);
        left.clone().count() >= self.majority() && left.filter(|node| serves(node)).count() > 0
    }
}

impl Quorum {
    pub(super) fn of(nodes: &[Node], shards: &[Shard]) -> Self {
        let electorates = Electorate::all(nodes, shards);
        let tightest = electorates
            .iter()
            .min_by_key(|one| (one.has_quorum(), one.may_lose_nodes(), one.up.len()));
        let mut sites: Vec<&String> = nodes.iter().map(|node| &node.site).collect();
        sites.dedup();
        // One that is lost already cannot be lost again.
        let may_lose = |site: &&String| {
            nodes.iter().any(|node| node.site == **site && is_up(node))
                && electorates.iter().all(|one| one.may_lose_site(site))
        };
        let votes = |node: &&Node| {
            let mut groups = shards.iter().flat_map(|shard| &shard.voters);
            groups.any(|name| *name == node.node)
        };
        let newcomers = nodes.iter().filter(|node| !votes(node));
        Self {
            shards: shards.len(),
            shards_served: shards.iter().filter(|shard| shard.leader.is_some()).count(),
            voters: tightest.map_or(0, |one| one.voters),
            voters_up: tightest.map_or(0, |one| one.up.len()),
            majority: tightest.map_or(0, Electorate::majority),
            newcomers: newcomers.map(|node| node.node.clone()).collect(),
            may_lose_nodes: tightest.map_or(0, Electorate::may_lose_nodes),
            may_lose_sites: sites.into_iter().filter(may_lose).cloned().collect(),
        }
    }

    /// What could be lost now, in words.
    #[must_use]
    pub fn may_lose(&self) -> String {
        let nodes = match self.may_lose_nodes {
            0 => return "nothing: the next loss stops it".to_owned(),
            1 => "any 1 node".to_owned(),
            several => format!("any {several} nodes"),
        };
        match self.may_lose_sites.split_last() {
            None => nodes,
            Some((last, [])) => format!("site {last}, or {nodes}"),
            Some((last, others)) => format!("site {} or {last}, or {nodes}", others.join(", ")),
        }
    }

    pub(super) fn troubles(&self, nodes: &[Node], shards: &[Shard]) -> Vec<String> {
        let mut troubles = Vec::new();
        let numbers = |shards: Vec<u16>| {
            let numbers: Vec<String> = shards.iter().map(u16::to_string).collect();
            numbers.join(", ")
        };
        let mut cut: Vec<u16> = Electorate::all(nodes, shards)
            .iter()
            .filter(|one| !one.has_quorum())
            .map(|one| one.shard)
            .collect();
        cut.dedup();
        let leaderless = shards.iter().filter(|shard| shard.leader.is_none());
        let without: Vec<u16> = leaderless
            .map(|shard| shard.shard)
            .filter(|shard| !cut.contains(shard))
            .collect();
        if !cut.is_empty() {
            let (place, there) = if cut.len() == shards.len() {
                (String::new(), "")
            } else {
                (format!(" in shard {}", numbers(cut.clone())), " there")
            };
            troubles.push(format!(
                "NO QUORUM{place}: {} of {} voters up, {} must be; nothing is taken in{there}",
                self.voters_up, self.voters, self.majority
            ));
        }
        if !without.is_empty() {
            troubles.push(format!("no leader: shard {}", numbers(without)));
        }
        if self.voters > 1 && self.may_lose_nodes == 0 && cut.is_empty() {
            troubles
                .push("no further node may be lost: the next loss stops the cluster".to_owned());
        }
        troubles
    }
}
