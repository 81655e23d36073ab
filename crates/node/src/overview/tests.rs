use super::*;

/// A view of a cluster of three sites, A: 3, B: 3, W: 1, with four shards; `down` are not connected to it.
fn view(node: &str, down: &[&str]) -> NodeStatus {
    let names = ["A1", "A2", "A3", "B1", "B2", "B3", "W1"];
    let kind = |name: &str| if name == "W1" { "witness" } else { "data" }.to_owned();
    let site = |name: &str| name[..1].to_owned();
    let leaders = if down.contains(&"A1") {
        ["B1", "B1", "B2", "B2"]
    } else {
        ["A1", "B1", "A2", "B2"]
    };
    let nodes = names.map(|name| PeerState {
        node: name.to_owned(),
        site: site(name),
        kind: kind(name),
        client_address: format!("{name}:1"),
        up: !down.contains(&name),
        rtt_ms: Some(1.0),
        rtt_p50_ms: Some(if site(name) == site(node) { 0.1 } else { 0.7 }),
        rtt_p99_ms: Some(1.5),
        queued_bytes: 10,
        cuts: 0,
        last_fault: down
            .contains(&name)
            .then(|| "the peer closed the connection".to_owned()),
        leads: Vec::new(),
    });
    let shards = (0..4).zip(leaders).map(|(shard, leader)| ShardState {
        shard,
        leader: Some(leader.to_owned()),
        role: if leader == node { "leader" } else { "follower" }.to_owned(),
        term: 5,
        last_index: 110,
        persisted_index: 110,
        committed_index: 100,
        applied_index: 100,
        waiting: 1,
        snapshot_index: 0,
        digest: (node != "W1").then(|| "ab".to_owned()),
        digest_index: 100,
        digests_same: 3,
        digests_differed: 0,
        voters: names.map(str::to_owned).to_vec(),
        voters_outgoing: Vec::new(),
        peers: if leader == node {
            vec![ShardPeer {
                node: "B3".to_owned(),
                state: "replicate".to_owned(),
                matched_index: 90,
                lag_entries: 20,
                lag_bytes: 2000,
                lag_ns: 5,
                in_flight_entries: 3,
            }]
        } else {
            Vec::new()
        },
        catching_up: None,
    });
    NodeStatus {
        node: node.to_owned(),
        site: site(node),
        kind: kind(node),
        cluster: "c".to_owned(),
        version: "1".to_owned(),
        ready: true,
        why_not: None,
        time: "t".to_owned(),
        business_day: Some("2026-11-30".to_owned()),
        payments: (node != "W1").then(|| PaymentFigures {
            accepted: 7,
            ..PaymentFigures::default()
        }),
        cycle: None,
        last_cycles: Vec::new(),
        participants: 4,
        nodes: nodes.into(),
        shards: shards.collect(),
        queues: QueueState::default(),
        disk_full: None,
        log_free_bytes: Some(9),
        packages_free_bytes: Some(8),
        log_bytes: 1,
        log_writes: 1,
    }
}

fn heard(down: &[&str]) -> Vec<Heard> {
    ["A1", "A2", "A3", "B1", "B2", "B3", "W1"]
        .map(|name| Heard {
            address: format!("{name}:1"),
            answer: if down.contains(&name) {
                Err("no connection".to_owned())
            } else {
                Ok(view(name, down))
            },
        })
        .into()
}

#[test]
fn all_is_well() {
    let overview = sum_up(&heard(&[])).unwrap();
    assert!(overview.well, "{:?}", overview.troubles);
    assert_eq!(overview.quorum.shards_served, 4);
    assert_eq!(overview.quorum.may_lose(), "site A, B or W, or any 3 nodes");
    let sites: Vec<_> = overview.sites.iter().map(|site| &site.leads[..]).collect();
    assert_eq!(sites, [&[0, 2][..], &[1, 3], &[]]);
    // What all four leaders say of it.
    let lag = overview.nodes[5].lag.unwrap();
    assert_eq!((lag.entries, lag.in_flight_entries, lag.ns), (80, 12, 5));
    assert_eq!(overview.shards[0].digests_agree, Some(true));
    assert_eq!(overview.shards[0].waiting, 7);
    assert_eq!(overview.nodes[0].free_bytes, Some(8));
    let far = overview
        .rtt
        .iter()
        .find(|rtt| rtt.from == "A" && rtt.to == "B");
    assert_eq!(far.map(|rtt| (rtt.p50_ms, rtt.p99_ms)), Some((0.7, 1.5)));
    assert_eq!(overview.day.payments.accepted, 7);
}

#[test]
fn a_site_is_lost() {
    let overview = sum_up(&heard(&["A1", "A2", "A3"])).unwrap();
    assert_eq!(overview.nodes[0].health, NodeHealth::Down);
    assert_eq!(overview.nodes[0].lag, None, "no leader has heard from it");
    let quorum = &overview.quorum;
    assert_eq!((quorum.voters_up, quorum.majority), (4, 4));
    assert_eq!((quorum.shards_served, quorum.may_lose_nodes), (4, 0));
    assert_eq!(quorum.may_lose(), "nothing: the next loss stops it");
    assert_eq!(
        overview.troubles,
        [
            "no further node may be lost: the next loss stops the cluster",
            "A1 is down: the peer closed the connection",
            "A2 is down: the peer closed the connection",
            "A3 is down: the peer closed the connection",
        ]
    );
}

#[test]
fn who_does_not_vote_yet_is_no_voter() {
    let mut heard = heard(&[]);
    for one in &mut heard {
        let status = one.answer.as_mut().unwrap();
        for name in ["C1", "C2"] {
            let newcomer = PeerState {
                node: name.to_owned(),
                site: "C".to_owned(),
                client_address: format!("{name}:1"),
                ..status.nodes[3].clone()
            };
            status.nodes.push(newcomer);
        }
        // C1 votes already in one of four shards, where A3 is about to leave.
        let shard = &mut status.shards[1];
        shard.voters_outgoing = shard.voters.clone();
        shard.voters[2] = "C1".to_owned();
    }
    let overview = sum_up(&heard).unwrap();
    let quorum = &overview.quorum;
    assert_eq!(
        (quorum.voters, quorum.voters_up, quorum.majority),
        (7, 7, 4)
    );
    assert_eq!(quorum.newcomers, ["C2"]);
    assert_eq!(quorum.may_lose(), "site A, B, W or C, or any 3 nodes");
    // Two founders lost: seven of nine nodes are up, but of seven voters only five.
    for name in ["B1", "B2"] {
        let at = heard
            .iter()
            .position(|one| one.address == format!("{name}:1"));
        heard[at.unwrap()].answer = Err("no connection".to_owned());
    }
    for status in heard.iter_mut().filter_map(|one| one.answer.as_mut().ok()) {
        for node in &mut status.nodes {
            node.up &= !["B1", "B2"].contains(&node.node.as_str());
        }
    }
    let quorum = sum_up(&heard).unwrap().quorum;
    assert_eq!((quorum.voters_up, quorum.may_lose_nodes), (5, 1));
    assert_eq!(quorum.may_lose(), "site B, W or C, or any 1 node");
}

#[test]
fn both_halves_of_a_changing_group_need_a_majority() {
    let mut heard = heard(&["B1", "B2", "B3"]);
    for status in heard.iter_mut().filter_map(|one| one.answer.as_mut().ok()) {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        status.shards[3].voters = names(&["A1", "A2", "A3"]);
        status.shards[3].voters_outgoing = names(&["B1", "B2", "A3"]);
    }
    let overview = sum_up(&heard).unwrap();
    let quorum = &overview.quorum;
    assert_eq!(
        (quorum.voters, quorum.voters_up, quorum.majority),
        (3, 1, 2)
    );
    assert_eq!(quorum.may_lose_nodes, 0);
    assert_eq!(
        overview.troubles[0],
        "NO QUORUM in shard 3: 1 of 3 voters up, 2 must be; nothing is taken in there"
    );
}

#[test]
fn without_a_majority_nothing_is_served() {
    let mut heard = heard(&["A1", "A2", "A3", "W1"]);
    for one in &mut heard {
        if let Ok(status) = &mut one.answer {
            status.ready = false;
            status.why_not = Some("no leaders".to_owned());
            for shard in &mut status.shards {
                shard.leader = None;
                shard.role = "candidate".to_owned();
            }
        }
    }
    let overview = sum_up(&heard).unwrap();
    assert_eq!(overview.quorum.shards_served, 0);
    assert_eq!(
        overview.troubles[0],
        "NO QUORUM: 0 of 7 voters up, 4 must be; nothing is taken in"
    );
}

#[test]
fn one_that_is_not_asked_is_known_through_the_others() {
    let mut heard = heard(&[]);
    heard.truncate(1);
    let addresses = unasked(&heard);
    assert_eq!(addresses, ["A2:1", "A3:1", "B1:1", "B2:1", "B3:1", "W1:1"]);
    let overview = sum_up(&heard).unwrap();
    assert_eq!(overview.nodes[3].health, NodeHealth::Unheard);
    assert_eq!(overview.quorum.voters_up, 7);
    assert_eq!(overview.shards[0].digests_agree, None);
    assert!(sum_up(&[]).is_none());
}

#[test]
fn states_that_differ_at_the_same_entry_are_told() {
    let mut heard = heard(&[]);
    if let Ok(status) = &mut heard[4].answer {
        status.shards[2].digest = Some("cd".to_owned());
    }
    let overview = sum_up(&heard).unwrap();
    assert_eq!(overview.shards[2].digests_agree, Some(false));
    assert!(!overview.well);
    // Elsewhere it would merely be behind.
    if let Ok(status) = &mut heard[4].answer {
        status.shards[2].digest_index = 99;
    }
    assert!(sum_up(&heard).unwrap().well);
}

#[test]
fn an_old_leader_that_heard_nothing_is_not_believed() {
    let mut heard = heard(&["A1"]);
    let mut old = view("A1", &[]);
    for shard in &mut old.shards {
        shard.term = 4;
    }
    heard[0].answer = Ok(old);
    let overview = sum_up(&heard).unwrap();
    assert_eq!(overview.shards[0].leader.as_deref(), Some("B1"));
    assert_eq!(overview.shards[0].term, 5);
}

/// The object of `clearspan status --json` is described whole in docs/format/status.md.
#[test]
fn every_field_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format/status.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut overview = sum_up(&heard(&["A1"])).unwrap();
    overview.cycles = Cycles {
        running: Some(RunningCycle {
            cycle: 1,
            phase: "cutting".to_owned(),
            round: 1,
        }),
        last: vec![EndedCycle {
            cycle: 1,
            state: "settled".to_owned(),
            in_set: 1,
            settled: 1,
            dropped: 0,
            rounds: 1,
            duration_ns: 1,
        }],
    };
    overview.nodes[1].catching_up = vec![CatchingUp {
        shard: 0,
        progress: CatchUpState {
            from: "B1".to_owned(),
            index: 1,
            have_bytes: 1,
            state_bytes: 2,
            packages: false,
        },
    }];
    let mut paths = BTreeSet::new();
    walk("", &serde_json::to_value(&overview).unwrap(), &mut paths);
    let missing: Vec<&String> = paths
        .iter()
        .filter(|path| !text.contains(&format!("`{path}`")))
        .collect();
    assert!(missing.is_empty(), "not in {path}: {missing:?}");
}

fn walk(at: &str, value: &serde_json::Value, paths: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if at.is_empty() { "" } else { "." };
                walk(&format!("{at}{dot}{name}"), value, paths);
            }
        }
        serde_json::Value::Array(values) if values.iter().any(|value| value.is_object()) => {
            for value in values {
                walk(&format!("{at}[]"), value, paths);
            }
        }
        _ => {
            paths.insert(at.to_owned());
        }
    }
}
