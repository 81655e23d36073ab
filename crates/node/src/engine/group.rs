//! Who holds a cluster's shards, as one node sees it: what follows from the directory of nodes.

use std::collections::BTreeMap;

use clearspan_ledger::ShardId;
use clearspan_ledger::nodes::{NodeDirectory, NodeRecord, NodeState};
use clearspan_replica::MemberId;

/// Who a node is, and what its cluster was founded with: the same on every node, also on one that came later, since
/// journals begin with these members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// This node's own number.
    pub me: MemberId,
    /// Whether it keeps the log only.
    pub witness: bool,
    /// The founders.
    pub founding: NodeDirectory,
}

/// The only member of an embedded node's groups.
const ALONE: u64 = 1;

impl Seat {
    /// A node without peers.
    ///
    /// # Panics
    /// Never: one is a member number.
    #[must_use]
    pub fn alone() -> Self {
        Self {
            me: MemberId::new(ALONE).expect("one is a member number"),
            witness: false,
            founding: NodeDirectory::founding(vec![NodeRecord {
                member: ALONE,
                ..NodeRecord::default()
            }]),
        }
    }

    /// The cluster as this node sees it with a directory.
    #[must_use]
    pub fn group(&self, directory: &NodeDirectory) -> Group {
        let mut sites: Vec<&str> = Vec::new();
        let mut members = Vec::new();
        for node in directory.all() {
            // Also the sites of removed nodes keep their turn, so that the others do not change theirs.
            let known = sites.iter().position(|site| *site == node.site);
            let site = known.unwrap_or(sites.len());
            if known.is_none() {
                sites.push(&node.site);
            }
            if node.state == NodeState::Removed {
                continue;
            }
            if let Some(id) = MemberId::new(node.member) {
                members.push(Member {
                    id,
                    site,
                    witness: node.witness,
                    draining: node.state == NodeState::Draining,
                });
            }
        }
        let leaders = directory
            .leaders()
            .filter_map(|(shard, member)| Some((shard, MemberId::new(member)?)))
            .collect();
        Group {
            me: self.me,
            witness: self.witness,
            members,
            leaders,
        }
    }
}

/// A node that belongs to the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its number in the groups.
    pub id: MemberId,
    /// The site it stands in, as a place among the sites of all nodes that there ever were.
    pub site: usize,
    /// Whether it keeps the log only: it votes, holds no state, and leads only to hand over.
    pub witness: bool,
    /// Whether it shall lead nothing.
    pub draining: bool,
}

/// The cluster as one node sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// This node's own number.
    pub me: MemberId,
    /// Whether this node keeps the log only.
    pub witness: bool,
    /// All nodes that were not removed, by number.
    pub members: Vec<Member>,
    /// Who shall lead a shard because an operator said so.
    pub leaders: BTreeMap<ShardId, MemberId>,
}

impl Group {
    /// Whether there is nobody else.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        matches!(self.members.as_slice(), [only] if only.id == self.me)
    }

    /// Whether this node keeps the log only.
    #[must_use]
    pub const fn is_witness(&self) -> bool {
        self.witness
    }

    /// The data members in the order in which they should lead a shard: sites take turns, and nodes within a site, so that
    /// all lead some shards (design 4). Whom an operator named comes first, who drains is not among them.
    #[must_use]
    pub fn preference(&self, shard: ShardId) -> Vec<MemberId> {
        let leading = |member: &&Member| !member.witness && !member.draining;
        let mut sites: Vec<Vec<MemberId>> = Vec::new();
        for member in self.members.iter().filter(leading) {
            if sites.len() <= member.site {
                sites.resize(member.site + 1, Vec::new());
            }
            sites[member.site].push(member.id);
        }
        sites.retain(|site| !site.is_empty());
        if sites.is_empty() {
            return Vec::new();
        }
        let first_site = shard.index() % sites.len();
        let turn = shard.index() / sites.len();
        sites.rotate_left(first_site);
        for site in &mut sites {
            let turn = turn % site.len();
            site.rotate_left(turn);
        }
        // First choices of each site before second ones: after the loss of a site the other takes over evenly.
        let longest = sites.iter().map(Vec::len).max().unwrap_or(0);
        let mut order: Vec<MemberId> = (0..longest)
            .flat_map(|at| sites.iter().filter_map(move |site| site.get(at).copied()))
            .collect();
        if let Some(named) = self.leaders.get(&shard)
            && let Some(at) = order.iter().position(|id| id == named)
        {
            order[..=at].rotate_right(1);
        }
        order
    }

    /// Ticks without a leader before this node stands for election: different for every member of a shard's group, lowest
    /// for the one that should lead, so that elections do not collide. All are above `election_ticks`, for which every
    /// member holds to a leader that it heard.
    #[must_use]
    pub fn campaign_ticks(&self, shard: ShardId, election_ticks: usize) -> usize {
        let mut order = self.preference(shard);
        for witness in [false, true] {
            for member in &self.members {
                if member.witness == witness && !order.contains(&member.id) {
                    order.push(member.id);
                }
            }
        }
        // Who does not belong (yet, or any more) comes last.
        let rank = order
            .iter()
            .position(|id| *id == self.me)
            .unwrap_or(order.len());
        election_ticks + CAMPAIGN_AFTER_TICKS + rank * CAMPAIGN_SPREAD_TICKS
    }
}

/// The first to stand asks for votes when the others have let the leader go: they may have heard one heartbeat more.
const CAMPAIGN_AFTER_TICKS: usize = 2;
/// Ticks between one member's election and the next one's: a round trip over regions and a bit.
const CAMPAIGN_SPREAD_TICKS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> MemberId {
        MemberId::new(number).unwrap()
    }

    /// Nodes in these sites, the last one a witness.
    fn directory(sites: &[&str]) -> NodeDirectory {
        let node = |(member, site): (u64, &&str)| NodeRecord {
            member,
            site: (*site).to_owned(),
            witness: usize::try_from(member) == Ok(sites.len()),
            ..NodeRecord::default()
        };
        NodeDirectory::founding((1..).zip(sites).map(node).collect())
    }

    fn group(me: u64, directory: &NodeDirectory) -> Group {
        let seat = Seat {
            me: id(me),
            witness: false,
            founding: directory.clone(),
        };
        seat.group(directory)
    }

    fn order(group: &Group, shard: u16) -> Vec<u64> {
        let order = group.preference(ShardId::new(shard));
        order.iter().map(|id| id.get()).collect()
    }

    #[test]
    fn sites_and_nodes_take_turns() {
        let group = group(1, &directory(&["A", "A", "A", "B", "B", "B", "W"]));
        let first: Vec<u64> = (0..6).map(|shard| order(&group, shard)[0]).collect();
        assert_eq!(first, [1, 4, 2, 5, 3, 6]);
        assert_eq!(order(&group, 1), [4, 1, 5, 2, 6, 3]);
    }

    #[test]
    fn who_is_named_leads_and_who_drains_does_not() {
        let mut group = group(1, &directory(&["A", "A", "B", "B", "W"]));
        group.leaders.insert(ShardId::new(1), id(2));
        assert_eq!(order(&group, 1), [2, 3, 1, 4]);
        group.members[2].draining = true;
        assert_eq!(order(&group, 1), [2, 4, 1]);
        group.members[1].draining = true;
        assert_eq!(order(&group, 1), [4, 1]);
    }

    #[test]
    fn elections_do_not_collide_and_the_witness_is_last() {
        let all = directory(&["A", "A", "B", "W"]);
        for shard in (0..4).map(ShardId::new) {
            let mut ticks: Vec<usize> = (1..=5)
                .map(|me| group(me, &all).campaign_ticks(shard, 20))
                .collect();
            // A stranger waits longer than all members.
            assert_eq!(ticks.pop(), Some(38));
            assert_eq!(ticks.last(), ticks.iter().max());
            assert!(ticks.iter().all(|&ticks| ticks > 20), "{ticks:?}");
            ticks.sort_unstable();
            ticks.dedup();
            assert_eq!(ticks.len(), 4);
        }
    }
}
