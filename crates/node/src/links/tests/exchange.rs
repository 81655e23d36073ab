//! Frames arrive, in order, and what happens when peers come and go.

use std::collections::BTreeMap;

use bytes::Bytes;
use clearspan_ledger::{LogIndex, Outcome, Reply};

use super::*;
use crate::engine::ProposeError;
use crate::engine::peers::Peers as _;

#[test]
fn two_nodes_exchange_frames_of_both_lanes() {
    let world = World::new();
    let mut ends = world.nodes(2, quick());
    let (first, second) = ends.split_at_mut(1);
    let (first, second) = (&mut first[0], &mut second[0]);
    let outcome = Outcome {
        index: LogIndex::new(7),
        reply: Reply::Done,
        released: Vec::new(),
    };
    let sent = [
        append(1, 2, 10, 3, 100_000),
        PeerFrame::Raft(shard(2), heartbeat(1, 2)),
        PeerFrame::Propose {
            number: 5,
            shard: shard(3),
            data: Bytes::from(vec![1; 20_000]),
        },
        PeerFrame::Answer {
            number: 6,
            result: Ok(outcome),
        },
        PeerFrame::Answer {
            number: 7,
            result: Err(ProposeError::NoShard(9)),
        },
        held(8),
        wants(9),
    ];
    let mut expected: Vec<String> = sent.iter().map(|frame| format!("{frame:?}")).collect();
    for frame in sent {
        assert!(first.links.send(member(2), frame));
    }
    let mut found: Vec<String> = expected
        .iter()
        .map(|_| {
            let (from, frame) = second.expect_frame();
            assert_eq!(from, member(1));
            format!("{frame:?}")
        })
        .collect();
    // The lanes overtake each other.
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    // And the other way.
    assert!(second.links.send(member(1), held(1)));
    assert_eq!(first.expect_frame().0, member(2));
    assert!(
        !first.links.send(member(3), held(1)),
        "there is no such member"
    );
}

#[test]
fn each_lane_keeps_its_order() {
    const COUNT: u64 = 5_000;
    let world = World::new();
    let mut ends = world.nodes(2, quick());
    for number in 1..=COUNT {
        assert!(ends[0].links.send(member(2), held(number)));
        assert!(ends[0].links.send(member(2), wants(number)));
    }
    let (mut urgent, mut bulk) = (0, 0);
    while urgent < COUNT || bulk < COUNT {
        match ends[1].expect_frame().1 {
            PeerFrame::Held { index, .. } => {
                urgent += 1;
                assert_eq!(index, urgent);
            }
            PeerFrame::WantPackages { from, .. } => {
                bulk += 1;
                assert_eq!(from, bulk);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn round_trips_and_traffic_are_counted() {
    let world = World::new();
    let mut ends = world.nodes(3, quick());
    assert!(ends[0].links.send(member(3), append(1, 3, 1, 1, 50_000)));
    ends[2].expect_frame();
    let deadline = super::super::meter::now() + DEADLINE;
    while ends[0].links.rtt().len() < 2 {
        assert!(super::super::meter::now() < deadline, "no round trip");
        std::thread::yield_now();
    }
    for rtt in ends[0].links.rtt().values() {
        assert!(rtt.min_ns > 0);
        assert!(rtt.min_ns <= rtt.last_ns);
        assert!(rtt.min_ns <= rtt.avg_ns);
    }
    let status = ends[0].links.status();
    assert_eq!(status.len(), 2);
    assert_eq!(status[1].sent_frames, 1);
    assert!(status[1].sent_bytes.iter().sum::<u64>() > 50_000);
    assert!(status[1].connected_ns.is_some());
    assert_eq!(ends[2].links.status()[0].received_frames, 1);
}

#[test]
fn a_peer_that_goes_away_is_down_and_comes_back() {
    let world = World::new();
    let limits = quick();
    let (listener_1, address_1) = world.listener(&limits);
    let (listener_2, address_2) = world.listener(&limits);
    let addresses = BTreeMap::from([(1, address_1), (2, address_2)]);
    let mut first = world.start(1, listener_1, &addresses, |_| {});
    assert!(
        !first.links.send(member(2), held(1)),
        "nothing is kept for a peer that is down"
    );
    let second = world.start(2, listener_2, &addresses, |_| {});
    assert_eq!(first.expect_up(), member(2));
    drop(second);
    assert_eq!(first.expect_down().0, member(2));
    assert!(!first.links.send(member(2), held(2)));
    // Its connections may be gone before its listener is.
    let listener = (0..1000)
        .find_map(|_| {
            let bound = LinkListener::bind(world.runtime.handle(), address_2, &limits).ok();
            if bound.is_none() {
                std::thread::sleep(Duration::from_millis(5));
            }
            bound
        })
        .expect("the address is free once the node is gone");
    let second = world.start(2, listener, &addresses, |options| {
        (options.previous, options.incarnation) = (1, 2);
    });
    assert_eq!(first.expect_up(), member(2));
    assert!(first.links.send(member(2), held(3)));
    assert!(matches!(
        second.expect_frame().1,
        PeerFrame::Held { index: 3, .. }
    ));
    assert_eq!(first.links.status()[0].incarnation, Some(2));
    assert_eq!(first.links.status()[0].cuts, 1);
}

#[test]
fn a_connection_that_is_cut_is_opened_anew_with_new_certificates() {
    let world = World::new();
    let ends = world.nodes(2, quick());
    let renewed = world.files("renewed", node_id(1), &world.nodes, Clock::System.now());
    ends[0].links.set_tls(LinkTls::load(&renewed).unwrap());
    ends[0].links.cut(member(2));
    assert_eq!(ends[0].expect_down().1, "cut on request");
    assert_eq!(ends[0].expect_up(), member(2));
}
