//! A second opinion that shares no code with the planner: every set of voters is looked at.

use clearspan_plan::{Damage, Layout, Part, Rpo, Serves, Site, Timing, examine};
use proptest::collection::vec;
use proptest::prelude::*;

const LOCAL_NS: u64 = 1_000_000;

/// A node as the oracle sees it.
#[derive(Clone, Copy, Debug)]
struct Voter {
    node: usize,
    site: usize,
    witness: bool,
}

struct World<'a> {
    layout: &'a Layout,
    down: Vec<usize>,
    cut: Vec<(usize, usize)>,
}

/// What the oracle says of one shard.
#[derive(Debug, PartialEq, Eq)]
struct Opinion {
    /// Site of the leader and round trip of its nearest quorum.
    led: Option<(usize, u64)>,
    /// Whether some quorum is wholly among the nodes that are down.
    may_lose: bool,
}

impl World<'_> {
    fn voters(&self) -> Vec<Voter> {
        let mut voters = Vec::new();
        for (site, spec) in self.layout.sites().iter().enumerate() {
            for number in 0..spec.data_nodes + spec.witnesses {
                voters.push(Voter {
                    node: voters.len(),
                    site,
                    witness: number >= spec.data_nodes,
                });
            }
        }
        voters
    }

    fn talk(&self, a: Voter, b: Voter) -> bool {
        let cut = |pair| self.cut.contains(&pair);
        let up = |voter: Voter| !self.down.contains(&voter.node);
        up(a) && up(b) && (a.site == b.site || !(cut((a.site, b.site)) || cut((b.site, a.site))))
    }

    fn opinion(&self, shard: u16) -> Opinion {
        let all = self.voters();
        let members: Vec<Voter> = self
            .layout
            .standing_order(shard)
            .iter()
            .map(|&node| all[node])
            .collect();
        let subsets = || {
            (0_u32..1 << members.len()).filter_map(|mask| {
                let chosen: Vec<Voter> = (0..members.len())
                    .filter(|at| mask & (1 << at) != 0)
                    .map(|at| members[at])
                    .collect();
                (chosen.len() * 2 > members.len()).then_some(chosen)
            })
        };
        // Voters of whom each reaches a majority of all within just these.
        let close = |chosen: &Vec<Voter>| {
            chosen.iter().all(|&own| {
                let reached = chosen
                    .iter()
                    .filter(|&&other| self.talk(own, other))
                    .count();
                reached * 2 > members.len()
            })
        };
        let electing: Vec<Vec<Voter>> = subsets().filter(close).collect();
        let mut led = None;
        for (turn, &leader) in members.iter().enumerate() {
            let is_leader = |voter: &Voter| voter.node == leader.node;
            // Who led before stays; who comes new must be elected whatever the voters' logs are.
            let stands = turn == 0 || electing.iter().any(|chosen| chosen.iter().any(is_leader));
            if leader.witness || !stands {
                continue;
            }
            // A majority around the leader, and the one whose farthest member is nearest.
            let nearest = subsets()
                .filter(|chosen| chosen.iter().any(is_leader))
                .filter(|chosen| chosen.iter().all(|&voter| self.talk(leader, voter)))
                .map(|chosen| {
                    let far = |voter: &Voter| self.layout.rtt_ns(leader.site, voter.site);
                    chosen.iter().map(far).max().unwrap()
                })
                .min();
            if let Some(rtt_ns) = nearest {
                led = Some((leader.site, rtt_ns));
                break;
            }
        }
        let may_lose =
            subsets().any(|chosen| chosen.iter().all(|voter| self.down.contains(&voter.node)));
        Opinion { led, may_lose }
    }
}

/// Holds the planner against the oracle for one failure.
fn check(layout: &Layout, parts: &[Part]) {
    let mut world = World {
        layout,
        down: Vec::new(),
        cut: Vec::new(),
    };
    for part in parts {
        match *part {
            Part::Node(node) => world.down.push(node),
            Part::Site(site) => {
                let there = world
                    .voters()
                    .into_iter()
                    .filter(|voter| voter.site == site);
                world
                    .down
                    .extend(there.map(|voter| voter.node).collect::<Vec<_>>());
            }
            Part::Link(a, b) => world.cut.push((a, b)),
        }
    }
    let opinions: Vec<Opinion> = (0..layout.shards())
        .map(|shard| world.opinion(shard))
        .collect();
    let timing = Timing::of(layout, LOCAL_NS);
    let verdict = examine(layout, timing, &Damage::of(layout, parts));
    let context = format!(
        "{} {:?} after {parts:?}: {verdict:?}",
        layout.sites_text(),
        layout
    );

    let served = opinions
        .iter()
        .filter(|opinion| opinion.led.is_some())
        .count();
    assert_eq!(usize::from(verdict.shards_served), served, "{context}");
    let serves = if served == opinions.len() {
        Serves::All
    } else if served > 0 {
        Serves::SomeShards
    } else {
        Serves::Nothing
    };
    assert_eq!(verdict.serves, serves, "{context}");
    let rpo = if opinions.iter().any(|opinion| opinion.may_lose) {
        Rpo::NothingWithDisks
    } else {
        Rpo::Nothing
    };
    assert_eq!(verdict.rpo, rpo, "{context}");
    let slowest = opinions
        .iter()
        .filter_map(|opinion| opinion.led)
        .map(|led| led.1)
        .max();
    assert_eq!(
        verdict.answer_ns,
        slowest.map(|rtt_ns| rtt_ns + LOCAL_NS),
        "{context}"
    );

    let mut takes = Vec::new();
    for (site, spec) in layout.sites().iter().enumerate() {
        let gateways: Vec<Voter> = world
            .voters()
            .into_iter()
            .filter(|voter| voter.site == site && !voter.witness && world.talk(*voter, *voter))
            .collect();
        let Some(&gateway) = gateways.first() else {
            continue;
        };
        let reached = opinions
            .iter()
            .filter_map(|opinion| opinion.led)
            .filter(|&(led, _)| {
                led == gateway.site
                    || !(world.cut.contains(&(led, site)) || world.cut.contains(&(site, led)))
            });
        takes.push((spec.name.clone(), u16::try_from(reached.count()).unwrap()));
    }
    let planned: Vec<(String, u16)> = verdict
        .takes
        .iter()
        .map(|takes| (takes.site.clone(), takes.shards))
        .collect();
    assert_eq!(planned, takes, "{context}");

    // A pause is what comes before a new leader, so there is none without one and never one without a survivor.
    assert_eq!(verdict.pause_seen_ns.is_none(), served == 0, "{context}");
    assert!(
        verdict.pause_seen_ns <= verdict.pause_silent_ns,
        "{context}"
    );
}

fn layouts() -> impl Strategy<Value = Layout> {
    let sites = vec((0_u16..4, 0_u16..2), 1..5).prop_filter("a cluster of few nodes", |sites| {
        let data: u16 = sites.iter().map(|site| site.0).sum();
        let all: u16 = data + sites.iter().map(|site| site.1).sum::<u16>();
        data > 0 && all <= 9 && sites.iter().all(|&(data, witnesses)| data + witnesses > 0)
    });
    (
        sites,
        vec(0_u64..200_000_000, 6),
        1_u16..6,
        any::<prop::sample::Index>(),
    )
        .prop_map(|(sites, rtts, shards, copies)| {
            let lines = sites.len() * (sites.len() - 1) / 2;
            let data: u16 = sites.iter().map(|site| site.0).sum();
            let copies = u16::try_from(copies.index(usize::from(data))).unwrap() + 1;
            let sites = sites
                .iter()
                .enumerate()
                .map(|(at, &(data_nodes, witnesses))| Site {
                    name: format!("S{at}"),
                    data_nodes,
                    witnesses,
                });
            Layout::new(
                sites.collect(),
                rtts[..lines].to_vec(),
                shards,
                Some(copies),
            )
            .unwrap()
        })
}

fn failures(
    layout: &Layout,
    picks: &[(u8, prop::sample::Index, prop::sample::Index)],
) -> Vec<Part> {
    let sites = layout.sites();
    let nodes: u16 = sites
        .iter()
        .map(|site| site.data_nodes + site.witnesses)
        .sum();
    picks
        .iter()
        .map(|(kind, a, b)| match kind {
            0 => Part::Node(a.index(usize::from(nodes))),
            1 => Part::Site(a.index(sites.len())),
            _ => Part::Link(a.index(sites.len()), b.index(sites.len())),
        })
        .filter(|part| !matches!(part, Part::Link(a, b) if a == b))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Any layout, any damage of up to four parts.
    #[test]
    fn verdicts_are_those_of_counting_every_quorum(
        layout in layouts(),
        picks in vec((0_u8..3, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..5),
    ) {
        check(&layout, &failures(&layout, &picks));
    }
}

/// Every double failure of usual layouts.
#[test]
fn usual_layouts_part_by_part() {
    for text in [
        "A:1",
        "A:3",
        "A:1,B:1",
        "A:1,B:1,W:witness",
        "A:2,B:2,W:witness",
        "A:3,B:3,W:witness",
        "A:1,B:2,C:2",
    ] {
        for copies in [None, Some(1)] {
            let layout = crate::layout(text, 700_000, 4, copies);
            let nodes: u16 = layout
                .sites()
                .iter()
                .map(|site| site.data_nodes + site.witnesses)
                .sum();
            let sites = layout.sites().len();
            let mut parts: Vec<Part> = (0..usize::from(nodes)).map(Part::Node).collect();
            parts.extend((0..sites).map(Part::Site));
            for a in 0..sites {
                parts.extend((a + 1..sites).map(|b| Part::Link(a, b)));
            }
            check(&layout, &[]);
            for &first in &parts {
                for &second in &parts {
                    check(&layout, &[first, second]);
                }
            }
        }
    }
}
