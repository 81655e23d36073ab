//! Sites, nodes and lines, and what follows from them by the nodes' rules: who holds a shard and who shall lead it.

use serde::Serialize;

/// Most nodes of a cluster, as its definition allows.
pub const NODES_MAX: usize = 64;
/// Most sites that are planned: with more, the table of double failures says nothing to anybody.
pub const SITES_MAX: usize = 16;
/// Most shards of a cluster.
const SHARDS_MAX: u16 = 256;

/// A cluster's sites, the distances between them and how its shards are held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Layout {
    sites: Vec<Site>,
    /// Pairs of sites in the order 0-1, 0-2, 1-2, 0-3, …
    rtt_ns: Vec<u64>,
    shards: u16,
    /// Data nodes that hold each shard.
    copies: u16,
}

/// A site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Site {
    /// Its name.
    pub name: String,
    /// Nodes that keep everything.
    pub data_nodes: u16,
    /// Nodes that keep the log only, and vote.
    pub witnesses: u16,
}

/// Why something is no layout.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Nobody keeps a ledger.
    #[error("--sites: no site has a data node; give name:nodes, such as A:3")]
    NoData,
    /// A site with nothing in it.
    #[error("--sites: site {0} has no node; give it one, or leave the site out")]
    Empty(String),
    /// Two sites of one name.
    #[error("--sites: site {0} is named twice")]
    Twice(String),
    /// Too many nodes.
    #[error("--sites: {0} nodes; a cluster has at most {NODES_MAX}")]
    Nodes(usize),
    /// Too many sites.
    #[error("--sites: {0} sites; give at most {SITES_MAX}")]
    Sites(usize),
    /// A number of lines that does not fit the sites.
    #[error("{lines} distances for {sites} sites; each pair of sites has one")]
    Lines {
        /// How many there are.
        lines: usize,
        /// How many sites.
        sites: usize,
    },
    /// Shards out of bounds.
    #[error("--shards {0}: give 1 to {SHARDS_MAX}")]
    Shards(u16),
    /// Copies out of bounds.
    #[error("--copies {copies}: give 1 to {data_nodes}, the number of data nodes")]
    Copies {
        /// What was asked for.
        copies: u16,
        /// How many data nodes there are.
        data_nodes: u16,
    },
}

/// One node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) site: usize,
    pub(crate) witness: bool,
    /// Its number among the data nodes or witnesses of its site.
    at: usize,
}

/// Who holds one shard: its voters, in the order in which they stand for election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) order: Vec<usize>,
}

impl Group {
    /// How many voters must hold an entry.
    pub(crate) fn quorum(&self) -> usize {
        self.order.len() / 2 + 1
    }
}

impl Layout {
    /// Checks sites, round trips (pairs of sites in the order 0-1, 0-2, 1-2, 0-3, …), shards, and the number of data nodes
    /// that hold each shard; `None` for all of them.
    ///
    /// # Errors
    /// Says which argument to change.
    pub fn new(
        sites: Vec<Site>,
        rtt_ns: Vec<u64>,
        shards: u16,
        copies: Option<u16>,
    ) -> Result<Self, LayoutError> {
        if sites.len() > SITES_MAX {
            return Err(LayoutError::Sites(sites.len()));
        }
        for (at, site) in sites.iter().enumerate() {
            if site.data_nodes == 0 && site.witnesses == 0 {
                return Err(LayoutError::Empty(site.name.clone()));
            }
            if sites.iter().take(at).any(|other| other.name == site.name) {
                return Err(LayoutError::Twice(site.name.clone()));
            }
        }
        let lines = sites.len() * sites.len().saturating_sub(1) / 2;
        if rtt_ns.len() != lines {
            return Err(LayoutError::Lines {
                lines: rtt_ns.len(),
                sites: sites.len(),
            });
        }
        let count =
            |count: fn(&Site) -> u16| sites.iter().map(|site| usize::from(count(site))).sum();
        let data_nodes: usize = count(|site| site.data_nodes);
        let witnesses: usize = count(|site| site.witnesses);
        if data_nodes + witnesses > NODES_MAX {
            return Err(LayoutError::Nodes(data_nodes + witnesses));
        }
        let data_nodes = u16::try_from(data_nodes).unwrap_or(u16::MAX);
        if data_nodes == 0 {
            return Err(LayoutError::NoData);
        }
        if shards == 0 || shards > SHARDS_MAX {
            return Err(LayoutError::Shards(shards));
        }
        let copies = copies.unwrap_or(data_nodes);
        if copies == 0 || copies > data_nodes {
            return Err(LayoutError::Copies { copies, data_nodes });
        }
        Ok(Self {
            sites,
            rtt_ns,
            shards,
            copies,
        })
    }

    /// The sites, in order.
    #[must_use]
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// How many shards.
    #[must_use]
    pub const fn shards(&self) -> u16 {
        self.shards
    }

    /// How many data nodes hold each shard.
    #[must_use]
    pub const fn copies(&self) -> u16 {
        self.copies
    }

    /// The round trip between two sites, by their places; none within a site.
    #[must_use]
    pub fn rtt_ns(&self, a: usize, b: usize) -> u64 {
        let (low, high) = (a.min(b), a.max(b));
        if low == high {
            return 0;
        }
        let before = high * (high - 1) / 2;
        self.rtt_ns.get(before + low).copied().unwrap_or(0)
    }

    /// The longest round trip.
    #[must_use]
    pub fn rtt_max_ns(&self) -> u64 {
        self.rtt_ns.iter().copied().max().unwrap_or(0)
    }

    /// The sites as `--sites` takes them.
    #[must_use]
    pub fn sites_text(&self) -> String {
        let text = |site: &Site| match site.data_nodes {
            0 => format!("{}:witness", site.name),
            nodes => format!("{}:{nodes}", site.name),
        };
        self.sites.iter().map(text).collect::<Vec<_>>().join(",")
    }

    /// A site's name.
    pub(crate) fn site_name(&self, site: usize) -> String {
        self.sites
            .get(site)
            .map(|site| site.name.clone())
            .unwrap_or_default()
    }

    /// Pairs of sites, the earlier first.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let count = self.sites.len();
        (0..count).flat_map(move |a| (a + 1..count).map(move |b| (a, b)))
    }

    /// The nodes in the order of a cluster's definition: site by site, data nodes first.
    pub(crate) fn nodes(&self) -> Vec<Node> {
        let of = |site: usize, count: u16, witness: bool| {
            (0..usize::from(count)).map(move |at| Node { site, witness, at })
        };
        let nodes = self.sites.iter().enumerate().flat_map(|(at, site)| {
            of(at, site.data_nodes, false).chain(of(at, site.witnesses, true))
        });
        nodes.collect()
    }

    /// A node's name, as a new cluster gives it.
    pub(crate) fn node_name(&self, node: Node) -> String {
        format!("{}{}", self.site_name(node.site), node.at + 1)
    }

    /// Who holds each shard. Sites take turns in leading, and nodes within a site (ADR 0019); where not all data nodes hold a
    /// shard, those that come first do, and all witnesses vote.
    pub(crate) fn groups(&self) -> Vec<Group> {
        let nodes = self.nodes();
        let mut by_site: Vec<Vec<usize>> = vec![Vec::new(); self.sites.len()];
        for (at, node) in nodes.iter().enumerate() {
            if !node.witness
                && let Some(site) = by_site.get_mut(node.site)
            {
                site.push(at);
            }
        }
        by_site.retain(|site| !site.is_empty());
        let witnesses: Vec<usize> = (0..nodes.len())
            .filter(|&at| nodes.get(at).is_some_and(|node| node.witness))
            .collect();
        (0..usize::from(self.shards))
            .map(|shard| {
                let mut sites = by_site.clone();
                let turn = shard / sites.len();
                let first = shard % sites.len();
                sites.rotate_left(first);
                for site in &mut sites {
                    let turn = turn % site.len();
                    site.rotate_left(turn);
                }
                let longest = sites.iter().map(Vec::len).max().unwrap_or(0);
                let data = (0..longest)
                    .flat_map(|at| sites.iter().filter_map(move |site| site.get(at).copied()))
                    .take(usize::from(self.copies));
                Group {
                    order: data.chain(witnesses.iter().copied()).collect(),
                }
            })
            .collect()
    }

    /// The order in which a shard's voters stand for election, by their places among the nodes of the definition.
    #[must_use]
    pub fn standing_order(&self, shard: u16) -> Vec<usize> {
        let mut groups = self.groups();
        let at = usize::from(shard);
        if at < groups.len() {
            groups.swap_remove(at).order
        } else {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(name: &str, data_nodes: u16, witnesses: u16) -> Site {
        Site {
            name: name.to_owned(),
            data_nodes,
            witnesses,
        }
    }

    #[test]
    fn faults_name_the_argument() {
        let new = |sites: Vec<Site>, lines: usize, shards, copies| {
            Layout::new(sites, vec![0; lines], shards, copies)
                .map(|_| ())
                .map_err(|fault| fault.to_string())
        };
        let a3 = || vec![site("A", 3, 0)];
        for (layout, says) in [
            (
                new(vec![site("W", 0, 1)], 0, 4, None),
                "--sites: no site has a data node",
            ),
            (
                new(vec![site("A", 0, 0)], 0, 4, None),
                "--sites: site A has no node",
            ),
            (
                new(vec![site("A", 1, 0), site("A", 1, 0)], 1, 4, None),
                "--sites: site A is named twice",
            ),
            (new(vec![site("A", 65, 0)], 0, 4, None), "--sites: 65 nodes"),
            (
                new(vec![site("A", 1, 0), site("B", 1, 0)], 0, 4, None),
                "0 distances for 2 sites",
            ),
            (new(a3(), 0, 0, None), "--shards 0: give 1 to 256"),
            (new(a3(), 0, 257, None), "--shards 257"),
            (new(a3(), 0, 4, Some(4)), "--copies 4: give 1 to 3"),
            (new(a3(), 0, 4, Some(0)), "--copies 0"),
        ] {
            let fault = layout.expect_err(says);
            assert!(fault.contains(says), "{fault}");
        }
    }

    #[test]
    fn a_line_has_one_length_from_both_ends() {
        let sites = ["A", "B", "C"].map(|name| site(name, 1, 0)).to_vec();
        let layout = Layout::new(sites, vec![1, 2, 3], 1, None).expect("a layout");
        let rtts =
            [(0, 1), (0, 2), (1, 2), (2, 1), (2, 0), (1, 1)].map(|(a, b)| layout.rtt_ns(a, b));
        assert_eq!(rtts, [1, 2, 3, 3, 2, 0]);
        assert_eq!(layout.sites_text(), "A:1,B:1,C:1");
    }
}
