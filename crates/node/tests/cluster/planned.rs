//! The planner (`clearspan_plan`) says what a failure does without running anything. Here nodes that run agree with it.

use clearspan_ledger::ShardId;
use clearspan_ledger::nodes::{NodeDirectory, NodeRecord};
use clearspan_node::engine::group::Seat;
use clearspan_plan::{Damage, Layout, Part, Site, Timing, examine};
use clearspan_replica::MemberId;

use crate::nodes::{Cluster, Payment, SHARDS, eventually};

/// Data nodes per site, and a witness in a site of its own.
fn layout(sites: &[u16], witness: bool) -> Layout {
    let mut planned: Vec<Site> = sites
        .iter()
        .enumerate()
        .map(|(at, &data_nodes)| Site {
            name: format!("S{at}"),
            data_nodes,
            witnesses: 0,
        })
        .collect();
    if witness {
        planned.push(Site {
            name: "W".to_owned(),
            data_nodes: 0,
            witnesses: 1,
        });
    }
    let lines = planned.len() * (planned.len() - 1) / 2;
    Layout::new(planned, vec![0; lines], SHARDS, None).unwrap()
}

/// The planner's order of standing for election is the nodes' own, whatever the layout.
#[test]
fn leaders_stand_in_the_planned_order() {
    const ELECTION_TICKS: usize = 20;
    for (sites, witness) in [
        (&[1][..], false),
        (&[3], false),
        (&[1, 1], true),
        (&[3, 3], true),
        (&[1, 2, 3], false),
        (&[4, 1, 2, 1], true),
    ] {
        let layout = layout(sites, witness);
        let sites = layout.sites().iter().enumerate();
        let nodes: Vec<(usize, bool)> = sites
            .flat_map(|(site, spec)| {
                let count = usize::from(spec.data_nodes + spec.witnesses);
                std::iter::repeat_n((site, spec.data_nodes == 0), count)
            })
            .collect();
        let record = |(member, &(site, witness)): (u64, &(usize, bool))| NodeRecord {
            member,
            site: format!("S{site}"),
            witness,
            ..NodeRecord::default()
        };
        let directory = NodeDirectory::founding((1..).zip(&nodes).map(record).collect());
        for shard in 0..SHARDS {
            let ticks = |at: usize| {
                let seat = Seat {
                    me: MemberId::new(at as u64 + 1).unwrap(),
                    witness: nodes[at].1,
                    founding: directory.clone(),
                };
                let group = seat.group(&directory);
                group.campaign_ticks(ShardId::new(shard), ELECTION_TICKS)
            };
            let mut order: Vec<usize> = (0..nodes.len()).collect();
            order.sort_by_key(|&at| ticks(at));
            assert_eq!(
                layout.standing_order(shard),
                order,
                "{}",
                layout.sites_text()
            );
            // Their turns are as far apart as the planner counts.
            for (turn, &at) in order.iter().enumerate() {
                assert_eq!(ticks(at), ELECTION_TICKS + 2 + 4 * turn);
            }
        }
    }
}

/// Does to a running cluster what the plan's parts are.
fn harm(cluster: &mut Cluster, parts: &[Part]) {
    for &part in parts {
        match part {
            Part::Node(node) => cluster.stop(node),
            Part::Site(site) => {
                for at in 0..cluster.members.len() {
                    if usize::from(cluster.members[at].site) == site {
                        cluster.stop(at);
                    }
                }
            }
            Part::Link(a, b) => {
                for one in cluster.members.clone() {
                    for other in cluster.members.clone() {
                        if usize::from(one.site) == a && usize::from(other.site) == b {
                            cluster.hub.cut(one.id, other.id);
                            cluster.hub.cut(other.id, one.id);
                        }
                    }
                }
            }
        }
    }
}

/// Shards of which a node takes a payment now; numbers from `number` on are new.
fn takes_of(cluster: &Cluster, at: usize, number: u64) -> Vec<u16> {
    let pay = cluster.door(at);
    let takes = |shard: u16| {
        let payment = Payment {
            number: number + u64::from(shard),
            from: shard,
            to: (shard + 1) % 8,
            minor: 1,
        };
        pay(&payment)
    };
    // All at once: who refuses takes its time.
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..SHARDS)
            .map(|shard| {
                (
                    shard,
                    scope.spawn({
                        let takes = &takes;
                        move || takes(shard)
                    }),
                )
            })
            .collect();
        let taken = asked
            .into_iter()
            .filter_map(|(shard, asked)| asked.join().unwrap().then_some(shard));
        taken.collect()
    })
}

/// Holds the plan of each failure against a cluster that suffers it: of how many shards each data node takes payments.
fn check(sites: &[u16], witness: bool, failures: &[&[Part]]) {
    let layout = layout(sites, witness);
    let mut cluster = Cluster::new(sites, witness);
    cluster.start_all();
    cluster.found(0, 8);
    let mut number = 0;
    for &parts in failures {
        harm(&mut cluster, parts);
        let verdict = examine(&layout, Timing::of(&layout, 0), &Damage::of(&layout, parts));
        for takes in &verdict.takes {
            let site = layout
                .sites()
                .iter()
                .position(|site| site.name == takes.site)
                .unwrap();
            for at in 0..cluster.members.len() {
                let member = &cluster.members[at];
                if member.witness || usize::from(member.site) != site || cluster.nodes[at].is_none()
                {
                    continue;
                }
                // As many as planned come through in the end, and then no more than these.
                let mut taken = Vec::new();
                eventually("a node takes what is planned", || {
                    number += u64::from(SHARDS);
                    taken = takes_of(&cluster, at, number);
                    taken.len() >= usize::from(takes.shards)
                });
                assert_eq!(
                    taken.len(),
                    usize::from(takes.shards),
                    "node {at} takes shards {taken:?} after {parts:?}: {verdict:?}"
                );
            }
        }
        cluster.hub.heal();
        for at in 0..cluster.members.len() {
            if cluster.nodes[at].is_none() {
                cluster.start(at);
            }
        }
        cluster.all_agree();
        // The lead is where the plan begins again.
        eventually("the preferred nodes lead", || {
            (0..SHARDS).all(|shard| {
                let leader = cluster.members[layout.standing_order(shard)[0]].id;
                let status = cluster.node(0).status();
                status[usize::from(shard)].replica.leader == Some(leader)
            })
        });
    }
}

#[test]
fn lines_of_two_sites_and_a_witness() {
    check(
        &[1, 1],
        true,
        &[
            &[Part::Link(0, 1)],
            &[Part::Link(0, 2)],
            &[Part::Link(0, 1), Part::Link(0, 2)],
            &[Part::Link(0, 2), Part::Link(1, 2)],
        ],
    );
}

#[test]
fn sites_of_two_sites_and_a_witness() {
    check(
        &[1, 1],
        true,
        &[
            &[Part::Site(0)],
            &[Part::Site(2)],
            &[Part::Site(0), Part::Site(2)],
            &[Part::Site(2), Part::Link(0, 1)],
        ],
    );
}

#[test]
fn nodes_of_five() {
    check(
        &[2, 2],
        true,
        &[
            &[Part::Node(0), Part::Node(2)],
            &[Part::Site(0)],
            &[Part::Site(0), Part::Node(2)],
            &[Part::Node(0), Part::Link(0, 1)],
        ],
    );
}

#[test]
fn two_sites_without_a_witness() {
    check(
        &[2, 1],
        false,
        &[
            &[Part::Site(1)],
            &[Part::Node(0)],
            &[Part::Link(0, 1)],
            &[Part::Site(0)],
        ],
    );
}
