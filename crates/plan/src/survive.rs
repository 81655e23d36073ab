//! The cheapest layout over given sites that survives a given failure.

use serde::Serialize;

use crate::failure::{Damage, Part, Standing, all_parts, apart, combinations};
use crate::layout::{Layout, LayoutError, Site};
use crate::{Timing, leader_latencies};

/// More nodes are not tried: a payment then waits for so many disks that another answer is wanted.
const VOTERS_MAX: usize = 11;
/// More sites are not tried.
const SITES_TRIED_MAX: usize = 6;
/// More parts at once are not asked for.
const PARTS_MAX: usize = 3;

/// A kind of part, of which any one may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Node,
    Site,
    Link,
}

/// What shall be survived: so many parts of these kinds at once, whichever they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survive(Vec<Kind>);

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SurviveError {
    /// Not a failure.
    #[error(
        "--survive: {0:?} is no failure; give node, site or line, up to {PARTS_MAX} of them joined by +, or two-nodes, \
         two-sites, two-lines"
    )]
    Text(String),
    /// Too many sites to try all.
    #[error("--survive: {0} sites; at most {SITES_TRIED_MAX} are tried")]
    Sites(usize),
    /// Nothing does.
    #[error(
        "--survive {0}: no layout of up to {VOTERS_MAX} nodes over these sites does; give more sites with --sites and their \
         distances"
    )]
    None(String),
    /// What was to be tried is no layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

/// A layout that survives, and what it costs.
#[derive(Clone, Debug, Serialize)]
pub struct Surviving {
    /// What it survives.
    pub failure: String,
    /// The layout as `--sites` takes it.
    pub sites: String,
    /// Nodes that keep everything.
    pub data_nodes: u16,
    /// Nodes that keep the log only.
    pub witnesses: u16,
    /// Until an urgent payment is answered: the slowest leader.
    pub answer_ns: u64,
    /// The layout, to be planned in its turn.
    #[serde(skip)]
    pub layout: Layout,
}

impl Survive {
    /// Reads `node`, `site+node`, `two-nodes`, `site+line`, …
    ///
    /// # Errors
    /// [`SurviveError::Text`] names the word.
    pub fn parse(text: &str) -> Result<Self, SurviveError> {
        let mut kinds = Vec::new();
        for word in text.split('+') {
            let found: &[Kind] = match word.trim() {
                "node" => &[Kind::Node],
                "site" => &[Kind::Site],
                "line" => &[Kind::Link],
                "two-nodes" => &[Kind::Node, Kind::Node],
                "two-sites" => &[Kind::Site, Kind::Site],
                "two-lines" => &[Kind::Link, Kind::Link],
                _ => return Err(SurviveError::Text(word.to_owned())),
            };
            kinds.extend_from_slice(found);
        }
        if kinds.len() > PARTS_MAX {
            return Err(SurviveError::Text(text.to_owned()));
        }
        Ok(Self(kinds))
    }

    /// As it is read, `two-…` written out.
    #[must_use]
    pub fn text(&self) -> String {
        let word = |kind: &Kind| match kind {
            Kind::Node => "node",
            Kind::Site => "site",
            Kind::Link => "line",
        };
        self.0.iter().map(word).collect::<Vec<_>>().join("+")
    }

    /// Whether a layout serves all participants after every failure of this kind. A node that is its whole site is both.
    #[must_use]
    pub fn survived_by(&self, layout: &Layout) -> bool {
        let standing = Standing::new(layout);
        let nodes = &standing.nodes;
        let kinds = |part: Part| match part {
            Part::Node(_) => vec![Kind::Node],
            Part::Site(site) => {
                let there = nodes.iter().filter(|node| node.site == site).count();
                if there == 1 {
                    vec![Kind::Node, Kind::Site]
                } else {
                    vec![Kind::Site]
                }
            }
            Part::Link(..) => vec![Kind::Link],
        };
        let all = all_parts(layout);
        // Fewer at once are survived too: there may be fewer sites or lines than are to fail.
        (1..=self.0.len()).all(|count| {
            let mut chosen = combinations(&all, count).into_iter();
            chosen.all(|parts| {
                let asked = |kinds: Vec<Vec<Kind>>| fits(&kinds, &self.0);
                if !apart(nodes, &parts) || !asked(parts.iter().map(|&part| kinds(part)).collect())
                {
                    return true;
                }
                let led = standing.led(&Damage::of(layout, &parts));
                led.iter().all(Option::is_some)
            })
        })
    }
}

/// Whether each part can stand for a kind of its own.
fn fits(parts: &[Vec<Kind>], wanted: &[Kind]) -> bool {
    let Some((first, others)) = parts.split_first() else {
        return true;
    };
    (0..wanted.len()).any(|at| {
        let mut rest = wanted.to_vec();
        first.contains(&rest.swap_remove(at)) && fits(others, &rest)
    })
}

/// The cheapest layout over the sites of `ask` (a site may be left out) that survives: fewest data nodes, then fewest
/// witnesses, then the fastest answer. A site that has only a witness in `ask` gets no data node, since it may be a small one.
/// Every data node holds every shard.
///
/// # Errors
/// When there is none, or when too much would have to be tried.
pub fn cheapest(
    ask: &Layout,
    survive: &Survive,
    timing: Timing,
) -> Result<Surviving, SurviveError> {
    let sites = ask.sites();
    if sites.len() > SITES_TRIED_MAX {
        return Err(SurviveError::Sites(sites.len()));
    }
    let mut tried: Vec<Vec<(u16, u16)>> = vec![Vec::new()];
    for site in sites {
        tried = tried
            .into_iter()
            .flat_map(|counts| {
                let most = if site.data_nodes > 0 { VOTERS_MAX } else { 0 };
                let data = (1..=most).filter_map(|count| Some((u16::try_from(count).ok()?, 0)));
                // Among equals a witness stands where one was thought of.
                let others = if most > 0 {
                    [(0, 0), (0, 1)]
                } else {
                    [(0, 1), (0, 0)]
                };
                let choices = data.chain(others);
                choices.map(move |choice| {
                    let mut counts = counts.clone();
                    counts.push(choice);
                    counts
                })
            })
            .filter(|counts| voters(counts) <= VOTERS_MAX)
            .collect();
    }
    tried.retain(|counts| counts.iter().any(|&(data, _)| data > 0));
    let cost = |counts: &[(u16, u16)]| {
        let sum = |one: fn(&(u16, u16)) -> u16| counts.iter().map(one).sum::<u16>();
        (sum(|counts| counts.0), sum(|counts| counts.1))
    };
    tried.sort_by_key(|counts| cost(counts));
    let mut best: Option<Surviving> = None;
    for counts in &tried {
        let (data_nodes, witnesses) = cost(counts);
        if let Some(best) = &best
            && (best.data_nodes, best.witnesses) < (data_nodes, witnesses)
        {
            break;
        }
        let layout = with_counts(ask, counts)?;
        if !survive.survived_by(&layout) {
            continue;
        }
        let answers = leader_latencies(&layout, timing).into_iter();
        let answer_ns = answers.map(|leader| leader.answer_ns).max().unwrap_or(0);
        if best.as_ref().is_none_or(|best| answer_ns < best.answer_ns) {
            best = Some(Surviving {
                failure: survive.text(),
                sites: layout.sites_text(),
                data_nodes,
                witnesses,
                answer_ns,
                layout,
            });
        }
    }
    best.ok_or_else(|| SurviveError::None(survive.text()))
}

fn voters(counts: &[(u16, u16)]) -> usize {
    let both = counts
        .iter()
        .map(|&(data, witnesses)| usize::from(data) + usize::from(witnesses));
    both.sum()
}

fn with_counts(ask: &Layout, counts: &[(u16, u16)]) -> Result<Layout, LayoutError> {
    let kept: Vec<usize> = (0..counts.len())
        .filter(|&at| counts.get(at).is_some_and(|&counts| counts != (0, 0)))
        .collect();
    let site = |&at: &usize| {
        let &(data_nodes, witnesses) = counts.get(at)?;
        Some(Site {
            name: ask.site_name(at),
            data_nodes,
            witnesses,
        })
    };
    let sites = kept.iter().filter_map(site).collect();
    let rtts = kept.iter().enumerate().flat_map(|(high, &b)| {
        let lower = kept.iter().take(high);
        lower.map(move |&a| ask.rtt_ns(a, b))
    });
    Layout::new(sites, rtts.collect(), ask.shards(), None)
}
