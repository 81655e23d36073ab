//! A big catch-up that is cut in its middle goes on where it was.

use std::collections::BTreeMap;

use crate::nodes::{Cluster, Payment, eventually};

/// A cluster of which node 2 was away until the others' logs were cut.
fn with_one_far_behind() -> Cluster {
    let mut cluster = Cluster::new(&[1, 1, 1], false);
    cluster.snapshot_after_bytes = 2_000;
    cluster.start_all();
    cluster.found(0, 8);
    cluster.all_agree();
    cluster.stop(2);
    for number in 0..240 {
        let payment = Payment {
            number,
            from: u16::try_from(number % 8).unwrap(),
            to: u16::try_from((number + 3) % 8).unwrap(),
            minor: 1 + number,
        };
        eventually("a payment is acknowledged", || {
            cluster.pay(0, &payment).is_ok()
        });
    }
    eventually("the log is cut past the lost node", || {
        [0, 1].iter().all(|&at| {
            let statuses = cluster.node(at).status();
            statuses.iter().all(|status| status.replica.base.index > 40)
        })
    });
    // The snapshots that are offered stay the newest.
    cluster.all_agree();
    cluster.node(0).snapshot_all();
    cluster.node(1).snapshot_all();
    cluster
}

/// Where each shard's pieces begin, in the order in which they came.
fn begins(pieces: &[(u16, u64, usize)]) -> BTreeMap<u16, u64> {
    let first = pieces.iter().rev();
    first.map(|&(shard, offset, _)| (shard, offset)).collect()
}

/// How far each shard's pieces reach.
fn reach(pieces: &[(u16, u64, usize)]) -> BTreeMap<u16, u64> {
    let mut ends = BTreeMap::new();
    for &(shard, offset, length) in pieces {
        let end = ends.entry(shard).or_default();
        *end = offset.saturating_add(length as u64).max(*end);
    }
    ends
}

#[test]
fn a_fetch_that_was_cut_goes_on_where_it_was() {
    const BEFORE: usize = 20;
    let mut cluster = with_one_far_behind();
    let behind = cluster.members[2].id;
    cluster.hub.cut_after_pieces(behind, BEFORE);
    cluster.start(2);
    eventually("the fetch is cut", || cluster.hub.is_cut(behind));
    assert_eq!(cluster.hub.pieces(behind).len(), BEFORE);
    cluster.hub.heal();
    cluster.all_agree();
    // Every shard goes on where it was: nothing that had come comes again first.
    let pieces = cluster.hub.pieces(behind);
    let (before, after) = pieces.split_at(BEFORE);
    let (had, goes_on) = (reach(before), begins(after));
    assert!(!had.is_empty());
    for (shard, end) in had {
        assert!(end > 0);
        // One that was whole has nothing to come.
        if let Some(&offset) = goes_on.get(&shard) {
            assert_eq!(offset, end, "shard {shard}");
        }
    }
    assert!(!goes_on.is_empty());
}

#[test]
fn a_fetch_goes_on_after_a_restart() {
    const BEFORE: usize = 40;
    let mut cluster = with_one_far_behind();
    let behind = cluster.members[2].id;
    cluster.hub.cut_after_pieces(behind, BEFORE);
    cluster.start(2);
    eventually("the fetch is cut", || cluster.hub.is_cut(behind));
    cluster.stop(2);
    cluster.hub.heal();
    cluster.start(2);
    cluster.all_agree();
    let pieces = cluster.hub.pieces(behind);
    let first = begins(&pieces[BEFORE..]);
    assert!(
        first.values().any(|&offset| offset > 0),
        "nothing was kept: {first:?}"
    );
}
