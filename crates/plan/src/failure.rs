//! What a failure does: which shards still have a leader with a quorum, where their payments can be handed in, how long
//! nothing is acknowledged, and what a payment costs then.
//!
//! A leader needs direct lines to a quorum of its shard's voters, itself among them; nothing is relayed. It must be a data
//! node: a witness leads only to hand a newer tail over. A leader that keeps its quorum stays. A new one needs more than a
//! quorum: voters refuse whom they are ahead of, and one that is ahead but has itself no quorum would refuse for ever. So the
//! voters are taken of whom each has a quorum among just these: whoever of them is furthest ahead can be elected. A node
//! takes payments of a shard when it has a direct line to the shard's leader.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::Timing;
use crate::layout::{Group, Layout, Node};

/// Ticks for which a leader's broken connection may be back before the leader is given up, and one tick's grid.
const SEEN_TICKS: u64 = 4 + 1;
/// Ticks between giving a leader up and the first successor's turn to stand.
const AFTER_TICKS: u64 = 2;
/// Ticks between the turns of two successors.
const SPREAD_TICKS: u64 = 4;
/// Round trips to a quorum from standing to the first payment: pre-vote, vote, the term's first entry, the payment.
const ELECTION_ROUND_TRIPS: u64 = 4;

/// Something that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// A node, by its place in the order of the definition.
    Node(usize),
    /// A whole site.
    Site(usize),
    /// The line between two sites.
    Link(usize, usize),
}

/// What has failed: nodes that are down, lines that carry nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    down: BTreeSet<usize>,
    cut: BTreeSet<(usize, usize)>,
}

impl Damage {
    /// The damage that the loss of some parts is.
    #[must_use]
    pub fn of(layout: &Layout, parts: &[Part]) -> Self {
        let mut damage = Self::default();
        for &part in parts {
            match part {
                Part::Node(node) => {
                    damage.down.insert(node);
                }
                Part::Site(site) => {
                    let nodes = layout.nodes();
                    let there = nodes
                        .iter()
                        .enumerate()
                        .filter(|(_, node)| node.site == site);
                    damage.down.extend(there.map(|(at, _)| at));
                }
                Part::Link(a, b) => {
                    damage.cut.insert((a.min(b), a.max(b)));
                }
            }
        }
        damage
    }

    fn is_up(&self, node: usize) -> bool {
        !self.down.contains(&node)
    }

    fn joined(&self, a: usize, b: usize) -> bool {
        a == b || !self.cut.contains(&(a.min(b), a.max(b)))
    }
}

/// Whether payments are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Serves {
    /// Those of all participants.
    All,
    /// Those of the participants of some shards.
    SomeShards,
    /// None, until enough is back.
    Nothing,
}

/// What can be lost of what was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rpo {
    /// Nothing, also when the disks of what failed never come back: a voter that is left holds every acknowledged payment.
    Nothing,
    /// Nothing when the disks come back; without them the last payments may be gone, since they may have been nowhere else.
    NothingWithDisks,
}

/// A data site's nodes that are left, and how many shards' payments they take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SiteTakes {
    /// The site.
    pub site: String,
    /// Of so many shards.
    pub shards: u16,
}

/// What a failure does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// What fails, in words. Nodes of one site and kind that fare alike are one line.
    pub failure: String,
    /// Whether payments are acknowledged.
    pub serves: Serves,
    /// Of how many shards.
    pub shards_served: u16,
    /// Through which sites: every data site that has a node left, also when that takes nothing.
    pub takes: Vec<SiteTakes>,
    /// What can be lost.
    pub rpo: Rpo,
    /// For how long some shard acknowledges nothing when connections break at once, as when processes or machines end.
    /// None without a new leader, `None` where there will be none.
    pub pause_seen_ns: Option<u64>,
    /// The same when there is only silence, as after a power cut of a whole site or a cut line.
    pub pause_silent_ns: Option<u64>,
    /// Until an urgent payment is answered that enters where its shard is led: the slowest shard that is served.
    pub answer_ns: Option<u64>,
}

/// A shard's leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leader {
    /// Its place in the order in which the voters stand.
    pub(crate) turn: usize,
    pub(crate) node: usize,
    pub(crate) site: usize,
    /// To the nearest quorum and back.
    pub(crate) quorum_rtt_ns: u64,
}

/// A layout with its groups, made once for many questions.
#[derive(Debug)]
pub(crate) struct Standing<'a> {
    layout: &'a Layout,
    pub(crate) nodes: Vec<Node>,
    pub(crate) groups: Vec<Group>,
}

impl<'a> Standing<'a> {
    pub(crate) fn new(layout: &'a Layout) -> Self {
        Self {
            layout,
            nodes: layout.nodes(),
            groups: layout.groups(),
        }
    }

    /// Who leads each shard: who led it before, when that is up and has a quorum; else the first in turn that is sure to be
    /// elected, whatever logs the voters have.
    pub(crate) fn led(&self, damage: &Damage) -> Vec<Option<Leader>> {
        let leader = |group| self.leader(group, damage);
        self.groups.iter().map(leader).collect()
    }

    fn leader(&self, group: &Group, damage: &Damage) -> Option<Leader> {
        let up: Vec<Node> = group
            .order
            .iter()
            .filter(|&&node| damage.is_up(node))
            .filter_map(|&node| self.nodes.get(node).copied())
            .collect();
        let electing = electing_sites(&up, group.quorum(), damage);
        group.order.iter().enumerate().find_map(|(turn, &node)| {
            let own = self.nodes.get(node)?;
            let stands = turn == 0 || electing.contains(&own.site);
            if own.witness || !damage.is_up(node) || !stands {
                return None;
            }
            let joined = up
                .iter()
                .filter(|other| damage.joined(own.site, other.site));
            let mut rtts: Vec<u64> = joined
                .map(|other| self.layout.rtt_ns(own.site, other.site))
                .collect();
            rtts.sort_unstable();
            // Its own disk is one of the quorum, at no distance.
            let quorum_rtt_ns = *rtts.get(group.quorum() - 1)?;
            Some(Leader {
                turn,
                node,
                site: own.site,
                quorum_rtt_ns,
            })
        })
    }

    fn verdict(&self, damage: &Damage, before: &[Option<Leader>], timing: Timing) -> Verdict {
        let after = self.led(damage);
        let served = after.iter().flatten().count();
        let shards = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        let takes = (0..self.layout.sites().len())
            .filter(|&site| {
                let mut nodes = self.nodes.iter().enumerate();
                nodes.any(|(at, node)| node.site == site && !node.witness && damage.is_up(at))
            })
            .map(|site| SiteTakes {
                site: self.layout.site_name(site),
                shards: shards(
                    after
                        .iter()
                        .flatten()
                        .filter(|leader| damage.joined(site, leader.site))
                        .count(),
                ),
            })
            .collect();
        let lost = |group: &Group| {
            let down = group.order.iter().filter(|&&node| !damage.is_up(node));
            down.count() >= group.quorum()
        };
        let pause = |ticks: u64| {
            let pauses = before.iter().zip(&after).filter_map(|(before, after)| {
                let after = after.as_ref()?;
                if before.as_ref().map(|before| before.node) == Some(after.node) {
                    return Some(0);
                }
                let turns = AFTER_TICKS + after.turn as u64 * SPREAD_TICKS;
                let waits_ns = (ticks + turns) * timing.tick_ns();
                Some(waits_ns + ELECTION_ROUND_TRIPS * after.quorum_rtt_ns + timing.local_ns)
            });
            pauses.max()
        };
        let seen = if damage.cut.is_empty() {
            SEEN_TICKS
        } else {
            crate::ELECTION_TICKS
        };
        let answers = after
            .iter()
            .flatten()
            .map(|leader| timing.local_ns + leader.quorum_rtt_ns);
        Verdict {
            failure: String::new(),
            serves: match served {
                0 => Serves::Nothing,
                _ if served == after.len() => Serves::All,
                _ => Serves::SomeShards,
            },
            shards_served: shards(served),
            takes,
            rpo: if self.groups.iter().any(lost) {
                Rpo::NothingWithDisks
            } else {
                Rpo::Nothing
            },
            pause_seen_ns: pause(seen),
            pause_silent_ns: pause(crate::ELECTION_TICKS),
            answer_ns: answers.max(),
        }
    }
}

/// Sites of the most voters of whom each reaches a quorum of just these.
fn electing_sites(up: &[Node], quorum: usize, damage: &Damage) -> BTreeSet<usize> {
    let mut sites: BTreeSet<usize> = up.iter().map(|node| node.site).collect();
    loop {
        let reaches_quorum = |&site: &usize| {
            let there = |node: &&Node| sites.contains(&node.site) && damage.joined(site, node.site);
            up.iter().filter(there).count() >= quorum
        };
        let left: BTreeSet<usize> = sites.iter().copied().filter(reaches_quorum).collect();
        if left == sites {
            return sites;
        }
        sites = left;
    }
}

/// What one failure does; its name is left empty.
#[must_use]
pub fn examine(layout: &Layout, timing: Timing, damage: &Damage) -> Verdict {
    let standing = Standing::new(layout);
    let before = standing.led(&Damage::default());
    standing.verdict(damage, &before, timing)
}

/// What every failure of so many parts does: nodes, sites, lines between sites. Nodes of one site and kind are one line with
/// the worst that any of them does; a node that is its whole site is named as the node's site is.
#[must_use]
pub fn verdicts(layout: &Layout, timing: Timing, parts: usize) -> Vec<Verdict> {
    let standing = Standing::new(layout);
    let before = standing.led(&Damage::default());
    let all = all_parts(layout);
    let mut found: Vec<Verdict> = Vec::new();
    for chosen in combinations(&all, parts) {
        if !apart(&standing.nodes, &chosen) {
            continue;
        }
        let mut verdict = standing.verdict(&Damage::of(layout, &chosen), &before, timing);
        verdict.failure = name(layout, &standing.nodes, &chosen);
        match found
            .iter_mut()
            .find(|known| known.failure == verdict.failure)
        {
            Some(known) => known.worsen(verdict),
            None => found.push(verdict),
        }
    }
    found
}

impl Verdict {
    /// The worse of two that differ in which node of a site it was.
    fn worsen(&mut self, other: Self) {
        self.serves = self.serves.max(other.serves);
        if other.shards_served < self.shards_served {
            self.shards_served = other.shards_served;
            self.takes = other.takes;
        }
        self.rpo = self.rpo.max(other.rpo);
        self.pause_seen_ns = longer(self.pause_seen_ns, other.pause_seen_ns);
        self.pause_silent_ns = longer(self.pause_silent_ns, other.pause_silent_ns);
        self.answer_ns = longer(self.answer_ns, other.answer_ns);
    }
}

/// The longer of two times, where none means for ever.
fn longer(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.zip(b).map(|(a, b)| a.max(b))
}

/// All that can fail alone. A site with one node is the site.
pub(crate) fn all_parts(layout: &Layout) -> Vec<Part> {
    let nodes = layout.nodes();
    let there = |site: usize| nodes.iter().filter(|node| node.site == site).count();
    let alone = nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| there(node.site) > 1);
    let alone = alone.map(|(at, _)| Part::Node(at));
    let sites = (0..layout.sites().len()).map(Part::Site);
    let links = layout.pairs().map(|(a, b)| Part::Link(a, b));
    alone.chain(sites).chain(links).collect()
}

/// Whether no part is in another: a node in a site that fails too, a line to a site that fails too.
pub(crate) fn apart(nodes: &[Node], parts: &[Part]) -> bool {
    let failed = |site: usize| parts.contains(&Part::Site(site));
    parts.iter().all(|&part| match part {
        Part::Node(node) => nodes.get(node).is_some_and(|node| !failed(node.site)),
        Part::Link(a, b) => !failed(a) && !failed(b),
        Part::Site(_) => true,
    })
}

/// All choices of so many, each once.
pub(crate) fn combinations(all: &[Part], count: usize) -> Vec<Vec<Part>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut found = Vec::new();
    for (at, &first) in all.iter().enumerate() {
        let rest = all.get(at + 1..).unwrap_or_default();
        for mut others in combinations(rest, count - 1) {
            others.insert(0, first);
            found.push(others);
        }
    }
    found
}

/// `a node of A + line A-B`, `two nodes of A`.
fn name(layout: &Layout, nodes: &[Node], parts: &[Part]) -> String {
    let one = |part: &Part| match *part {
        Part::Node(at) => match nodes.get(at) {
            Some(node) if node.witness => format!("witness {}", layout.node_name(*node)),
            Some(node) => format!("a node of {}", layout.site_name(node.site)),
            None => String::new(),
        },
        Part::Site(site) => {
            let only_witness = layout
                .sites()
                .get(site)
                .is_some_and(|site| site.data_nodes == 0);
            let what = if only_witness { "witness" } else { "site" };
            format!("{what} {}", layout.site_name(site))
        }
        Part::Link(a, b) => format!("line {}-{}", layout.site_name(a), layout.site_name(b)),
    };
    let mut words: Vec<(String, usize)> = Vec::new();
    for word in parts.iter().map(one) {
        match words.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => words.push((word, 1)),
        }
    }
    let words = words.into_iter().map(|(word, count)| match count {
        1 => word,
        _ => word.replacen("a node", &format!("{count} nodes"), 1),
    });
    words.collect::<Vec<_>>().join(" + ")
}
