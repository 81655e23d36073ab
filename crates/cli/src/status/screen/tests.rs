use clearspan_node::api::{CatchUpState, PaymentFigures, QueueState, RunningCycle};
use clearspan_node::overview::{CatchingUp, Cycles, Day, Lag, Quorum, Site, SiteRtt};

use super::*;

/// The longest name that a site or node may have.
fn name(kind: &str, number: usize) -> String {
    format!("{kind}-{number:02}-{}", "n".repeat(32 - kind.len() - 4))
}

/// A cluster as large as there may be, with the longest names and large figures.
fn large(sites: usize, nodes: usize, shards: u16) -> Overview {
    let site_of = |node: usize| name("site", node % sites);
    let peers = |shard: u16| {
        let lag = 1_234_567_890 + u64::from(shard);
        (0..nodes).map(move |node| ShardPeer {
            node: name("node", node),
            state: "snapshot".to_owned(),
            matched_index: 1,
            lag_entries: lag,
            lag_bytes: lag,
            lag_ns: lag,
            in_flight_entries: lag,
        })
    };
    Overview {
        cluster: "0123456789abcdef0123456789abcdef".to_owned(),
        time: "2026-11-30T08:00:00.000000000Z".to_owned(),
        well: false,
        troubles: vec![
            "a word and a path ".repeat(20),
            format!("{} is down", "x".repeat(300)),
        ],
        sites: (0..sites)
            .map(|site| Site {
                site: name("site", site),
                nodes: nodes / sites,
                nodes_up: 1,
                leads: (0..shards.min(16)).collect(),
            })
            .collect(),
        nodes: (0..nodes)
            .map(|node| Node {
                node: name("node", node),
                site: site_of(node),
                kind: "witness".to_owned(),
                client_address: "[fe80::1]:7201".to_owned(),
                health: NodeHealth::NotReady,
                why: None,
                version: None,
                leads: (0..shards).collect(),
                lag: Some(Lag {
                    entries: u64::MAX,
                    bytes: u64::MAX,
                    ns: u64::MAX,
                    in_flight_entries: u64::MAX,
                }),
                queues: Some(QueueState {
                    urgent: u64::MAX,
                    bulk: u64::MAX,
                    log_writes: u64::MAX,
                    ..QueueState::default()
                }),
                link_queue_bytes: Some(u64::MAX),
                log_bytes: Some(u64::MAX),
                free_bytes: Some(u64::MAX),
                catching_up: vec![CatchingUp {
                    shard: 255,
                    progress: CatchUpState {
                        from: name("node", 0),
                        index: 1,
                        have_bytes: 1,
                        state_bytes: 1,
                        packages: true,
                    },
                }],
            })
            .collect(),
        quorum: Quorum {
            shards: shards.into(),
            shards_served: 0,
            voters: nodes,
            voters_up: nodes,
            majority: nodes / 2 + 1,
            newcomers: vec![name("node", 1)],
            may_lose_nodes: 3,
            may_lose_sites: (0..sites).map(|site| name("site", site)).collect(),
        },
        shards: (0..shards)
            .map(|shard| Shard {
                shard,
                leader: Some(name("node", 1)),
                site: Some(name("site", 1)),
                term: u64::MAX,
                committed_index: u64::MAX,
                waiting: u64::MAX,
                voters: Vec::new(),
                voters_outgoing: Vec::new(),
                peers: peers(shard).collect(),
                digests_agree: Some(false),
            })
            .collect(),
        rtt: (0..sites * sites)
            .map(|pair| SiteRtt {
                from: name("site", pair / sites),
                to: name("site", pair % sites),
                p50_ms: 156.25,
                p99_ms: 12_345.67,
            })
            .collect(),
        day: Day {
            business_day: Some("2026-11-30".to_owned()),
            participants: usize::MAX,
            payments: PaymentFigures {
                accepted: u64::MAX,
                settled: u64::MAX,
                netting: u64::MAX / 2,
                queued: u64::MAX / 2,
                refused: u64::MAX,
                ended: u64::MAX,
                cancelled: u64::MAX,
            },
        },
        cycles: Cycles {
            running: Some(RunningCycle {
                cycle: u32::MAX,
                phase: "reserving".to_owned(),
                round: u32::MAX,
            }),
            last: vec![
                EndedCycle {
                    cycle: u32::MAX,
                    state: "settled".to_owned(),
                    in_set: u64::MAX,
                    settled: u64::MAX,
                    dropped: 0,
                    rounds: 1,
                    duration_ns: u64::MAX,
                };
                3
            ],
        },
        silent: Vec::new(),
    }
}

#[test]
fn no_line_is_longer_than_a_hundred_columns() {
    for (sites, nodes, shards) in [(1, 1, 1), (3, 7, 4), (3, 8, 256), (16, 32, 256)] {
        let overview = large(sites, nodes, shards);
        let rates = Rates {
            accepted: u64::MAX,
            settled: u64::MAX,
            entries: u64::MAX,
            log_bytes: u64::MAX,
        };
        let text = draw(&overview, Some(&rates), false).unwrap();
        for line in text.lines() {
            assert!(line.chars().count() <= COLUMNS, "{line}\n{text}");
        }
        for node in &overview.nodes {
            assert!(
                text.contains(&node.node),
                "{} is missing:\n{text}",
                node.node
            );
        }
    }
}

#[test]
fn what_fits_stands_in_one_table() {
    let mut overview = large(1, 1, 1);
    overview.nodes[0].node = "A1".to_owned();
    overview.nodes[0].site = "A".to_owned();
    overview.nodes[0].lag = None;
    overview.nodes[0].queues = None;
    overview.nodes[0].catching_up.clear();
    overview.nodes[0].leads.clear();
    let text = nodes(&overview, &Paint(false)).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
}
