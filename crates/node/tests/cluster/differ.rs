//! Replicas whose states differ (promise P9). The difference is planted on a disk: a balance in a snapshot, with all
//! checksums right.

use std::io::Read as _;

use bytes::Bytes;
use clearspan_ledger::ShardId;
use clearspan_node::engine::ProposeError;
use clearspan_storage::{DataDir, Layout, Snapshots};

use crate::nodes::{Cluster, Payment, SHARDS, bic, eur, eventually};

fn payment(number: u64, from: u16, to: u16) -> Payment {
    Payment {
        number,
        from,
        to,
        minor: 77,
    }
}

/// Adds a cent to a participant's balance in the newest snapshot of its shard, on a node that is stopped.
fn plant(cluster: &Cluster, at: usize, participant: u16) {
    let shard = clearspan_replica::ShardId::new(participant % SHARDS);
    let data = DataDir::open(Layout::under(cluster.dir(at))).unwrap();
    let snapshots = Snapshots::open(&data);
    let newest = snapshots.list(shard).unwrap().remove(0);
    let mark = newest.checked.unwrap();
    let mut body = Vec::new();
    snapshots
        .read(shard, mark.position)
        .unwrap()
        .read_to_end(&mut body)
        .unwrap();
    let balance = |body: &[u8]| {
        let ledger = clearspan_codec::snapshot::decode(Bytes::copy_from_slice(body)).unwrap();
        let number = ledger.directory().find(bic(participant)).unwrap();
        ledger.account(number, eur()).unwrap().balance_minor()
    };
    let right = balance(&body);
    let place = body
        .windows(16)
        .position(|window| *window == right.to_le_bytes())
        .unwrap();
    body[place..place + 16].copy_from_slice(&(right + 1).to_le_bytes());
    assert_eq!(balance(&body), right + 1);
    snapshots
        .write(shard, &mark, |out| out.write_all(&body))
        .unwrap();
}

#[test]
fn where_no_majority_says_who_is_right_the_shard_is_not_served_and_others_are() {
    const WRONG: u16 = 2;
    let shard = ShardId::new(WRONG % SHARDS);
    let mut cluster = Cluster::new(&[1, 1], true);
    cluster.start_all();
    cluster.found(0, 8);
    for number in 0..8 {
        let from = u16::try_from(number).unwrap();
        eventually("a payment is acknowledged", || {
            cluster
                .pay(0, &payment(number, from, (from + 2) % 8))
                .is_ok()
        });
    }
    cluster.all_agree();
    // Something that no other balance is.
    eventually("a payment is acknowledged", || {
        cluster.pay(0, &payment(8, WRONG, 3)).is_ok()
    });
    cluster.all_agree();
    cluster.node(1).snapshot_all();
    cluster.stop(1);
    plant(&cluster, 1, WRONG);
    cluster.start(1);
    // The next posting brings it out.
    let mut number = 100;
    eventually("both nodes have found out", || {
        number += 1;
        let _ = cluster.pay(0, &payment(number, WRONG, 3));
        (0..2).all(|at| cluster.node(at).disputed(shard).is_some())
    });
    for at in 0..2 {
        let how = cluster.node(at).disputed(shard).unwrap();
        assert!(how.contains("at entry") && how.contains("member"), "{how}");
        assert_eq!(
            cluster.pay(at, &payment(1000, WRONG, 3)).unwrap_err(),
            ProposeError::Diverged
        );
        assert!(cluster.node(at).catch_up(shard).is_err());
        // The others go on.
        let others = payment(2000 + at as u64, 1, 5);
        eventually("a payment in another shard is acknowledged", || {
            cluster.pay(at, &others).is_ok()
        });
    }
    // A restart does not make it forgotten.
    cluster.stop(1);
    cluster.start(1);
    assert!(cluster.node(1).disputed(shard).is_some());
}
