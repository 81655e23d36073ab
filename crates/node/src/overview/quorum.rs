//! What can be served, and what could still be lost before nothing can.

use serde::{Deserialize, Serialize};

use super::{Node, NodeHealth, Shard};

/// How many voters there are, and how many of them could be lost now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quorum {
    /// Shards.
    pub shards: usize,
    /// Those with a leader that is up.
    pub shards_served: usize,
    /// Voters: every node holds every shard.
    pub voters: usize,
    /// Those that are up.
    pub voters_up: usize,
    /// How many must be up.
    pub majority: usize,
    /// Whichever so many nodes are lost now, the others go on.
    pub may_lose_nodes: usize,
    /// Each of these sites, whole, could be lost now.
    pub may_lose_sites: Vec<String>,
}

fn is_up(node: &&Node) -> bool {
    matches!(node.health, NodeHealth::Ready | NodeHealth::Unheard)
}

/// Keeps a ledger, and is not so far behind that its state must be fetched first.
fn serves(node: &&Node) -> bool {
    is_up(node) && node.kind == "data" && node.catching_up.is_empty()
}

impl Quorum {
    pub(super) fn of(nodes: &[Node], shards: &[Shard]) -> Self {
        let voters = nodes.len();
        let majority = voters / 2 + 1;
        let up = nodes.iter().filter(is_up).count();
        let serving = nodes.iter().filter(serves).count();
        let mut sites: Vec<&String> = nodes.iter().map(|node| &node.site).collect();
        sites.dedup();
        let may_lose = |site: &&String| {
            let here = nodes.iter().filter(|node| node.site == **site);
            let up_here = here.clone().filter(is_up).count();
            // One that is lost already cannot be lost again.
            up_here > 0 && up - up_here >= majority && serving > here.filter(serves).count()
        };
        Self {
            shards: shards.len(),
            shards_served: shards.iter().filter(|shard| shard.leader.is_some()).count(),
            voters,
            voters_up: up,
            majority,
            may_lose_nodes: up.saturating_sub(majority).min(serving.saturating_sub(1)),
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

    pub(super) fn troubles(&self, shards: &[Shard]) -> Vec<String> {
        let mut troubles = Vec::new();
        let without: Vec<String> = shards
            .iter()
            .filter(|shard| shard.leader.is_none())
            .map(|shard| shard.shard.to_string())
            .collect();
        if self.voters_up < self.majority {
            troubles.push(format!(
                "NO QUORUM: {} of {} nodes are up, {} must be; nothing is taken in",
                self.voters_up, self.voters, self.majority
            ));
        } else if !without.is_empty() {
            troubles.push(format!("no leader: shard {}", without.join(", ")));
        }
        if self.voters > 1 && self.may_lose_nodes == 0 && self.voters_up >= self.majority {
            troubles
                .push("no further node may be lost: the next loss stops the cluster".to_owned());
        }
        troubles
    }
}
