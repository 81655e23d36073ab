//! Who holds a cluster's shards, as one node sees it.

use clearspan_ledger::ShardId;
use clearspan_replica::MemberId;

/// A member of every shard's group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its number in the groups.
    pub id: MemberId,
    /// The site it stands in, as a place in the cluster's list of sites.
    pub site: u16,
    /// Whether it keeps the log only: it votes, holds no state, and leads only to hand over.
    pub witness: bool,
}

/// The cluster as one node sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// This node's own number.
    pub me: MemberId,
    /// All members, in the order of the cluster's definition.
    pub members: Vec<Member>,
}

/// The only member of an embedded node's groups.
const ALONE: u64 = 1;

impl Group {
    /// A node without peers.
    ///
    /// # Panics
    /// Never: one is a member number.
    #[must_use]
    pub fn alone() -> Self {
        let id = MemberId::new(ALONE).expect("one is a member number");
        Self {
            me: id,
            members: vec![Member {
                id,
                site: 0,
                witness: false,
            }],
        }
    }

    /// Whether there is nobody else.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.members.len() == 1
    }

    /// Whether this node keeps the log only.
    #[must_use]
    pub fn is_witness(&self) -> bool {
        self.members
            .iter()
            .any(|member| member.id == self.me && member.witness)
    }

    /// The data members in the order in which they should lead a shard: sites take turns, and nodes within a site, so that
    /// all lead some shards (design 4).
    #[must_use]
    pub fn preference(&self, shard: ShardId) -> Vec<MemberId> {
        let mut sites: Vec<Vec<MemberId>> = Vec::new();
        for member in self.members.iter().filter(|member| !member.witness) {
            let site = usize::from(member.site);
            if sites.len() <= site {
                sites.resize(site + 1, Vec::new());
            }
            sites[site].push(member.id);
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
        (0..longest)
            .flat_map(|at| sites.iter().filter_map(move |site| site.get(at).copied()))
            .collect()
    }

    /// Ticks without a leader before this node stands for election: different for every member of a shard's group, lowest
    /// for the one that should lead, so that elections do not collide. All are above `election_ticks`, for which every
    /// member holds to a leader that it heard.
    #[must_use]
    pub fn campaign_ticks(&self, shard: ShardId, election_ticks: usize) -> usize {
        let order = self.preference(shard);
        let witnesses = self
            .members
            .iter()
            .filter(|member| member.witness)
            .map(|member| member.id);
        let rank = order
            .into_iter()
            .chain(witnesses)
            .position(|id| id == self.me)
            .unwrap_or(0);
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

    fn group(sites: &[u16], witness_site: Option<u16>) -> Group {
        let id = |at: usize| MemberId::new(at as u64 + 1).unwrap();
        let mut members: Vec<Member> = sites
            .iter()
            .enumerate()
            .map(|(at, &site)| Member {
                id: id(at),
                site,
                witness: false,
            })
            .collect();
        if let Some(site) = witness_site {
            members.push(Member {
                id: id(sites.len()),
                site,
                witness: true,
            });
        }
        Group { me: id(0), members }
    }

    #[test]
    fn sites_and_nodes_take_turns() {
        let group = group(&[0, 0, 0, 1, 1, 1], Some(2));
        let first: Vec<u64> = (0..6)
            .map(|shard| group.preference(ShardId::new(shard))[0].get())
            .collect();
        assert_eq!(first, [1, 4, 2, 5, 3, 6]);
        let order: Vec<u64> = group
            .preference(ShardId::new(1))
            .iter()
            .map(|id| id.get())
            .collect();
        assert_eq!(order, [4, 1, 5, 2, 6, 3]);
    }

    #[test]
    fn elections_do_not_collide_and_the_witness_is_last() {
        let group = group(&[0, 0, 1], Some(2));
        for shard in (0..4).map(ShardId::new) {
            let mut ticks: Vec<usize> = group
                .members
                .iter()
                .map(|member| {
                    Group {
                        me: member.id,
                        ..group.clone()
                    }
                    .campaign_ticks(shard, 20)
                })
                .collect();
            assert_eq!(ticks.last(), ticks.iter().max());
            assert!(ticks.iter().all(|&ticks| ticks > 20), "{ticks:?}");
            ticks.sort_unstable();
            ticks.dedup();
            assert_eq!(ticks.len(), group.members.len());
        }
    }
}
