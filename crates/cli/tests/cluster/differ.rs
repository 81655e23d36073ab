//! A replica whose state differs from the majority's stops itself (promise P9). The difference is planted on its disk: a
//! balance in a snapshot, with all checksums right.

use std::io::Read as _;
use std::path::Path;

use bytes::Bytes;
use clearspan_ledger::{Bic, Currency};
use clearspan_replica::ShardId;
use clearspan_storage::{DataDir, Layout, Snapshots};

use crate::nodes::Cluster;
use crate::{ALFA, submit, urgent};

/// Adds a cent to a participant's balance in the newest snapshot of shard 0.
fn plant(root: &Path, participant: &str) {
    let data = DataDir::open(Layout::under(root)).unwrap();
    let snapshots = Snapshots::open(&data);
    let shard = ShardId::new(0);
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
        let number = ledger
            .directory()
            .find(Bic::parse(participant.as_bytes()).unwrap())
            .unwrap();
        let account = ledger.account(number, Currency::parse(b"EUR").unwrap());
        account.unwrap().balance_minor()
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
fn a_replica_that_differs_from_the_majority_stops_itself_and_is_not_started_again() {
    let mut cluster = Cluster::new();
    cluster.start_all();
    cluster.found();
    let pay = |cluster: &Cluster, number| {
        let mut client = cluster.client(ALFA, &[0, 1]);
        let reply = submit(&mut client, &urgent(number), "application/json");
        assert!(reply.status.is_success(), "{reply:?}");
    };
    for number in 1..=5 {
        pay(&cluster, number);
    }
    cluster.all_ready();
    assert!(cluster.stop(2));
    plant(&cluster.data_dir(2), ALFA);
    cluster.start(2);
    cluster.all_ready();

    // The next posting brings it out: that process ends, the others go on.
    pay(&cluster, 6);
    let ended = cluster.wait_for_end(2);
    assert_eq!(ended, None, "it aborts");
    let said = cluster.log(2);
    let line = said
        .lines()
        .find(|line| line.starts_with("stopping: shard 0: at entry "))
        .unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains("the majority has"), "{line}");
    assert!(line.contains("re-admit"), "{line}");
    pay(&cluster, 7);

    // Whoever starts it again is told the same.
    cluster.start(2);
    assert_eq!(cluster.wait_for_end(2), Some(1));
    let said = cluster.log(2);
    assert!(said.contains("DIVERGED says: shard 0: at entry"), "{said}");
    pay(&cluster, 8);
}
