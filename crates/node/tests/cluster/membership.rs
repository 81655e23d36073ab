//! Nodes come, go and are replaced while payments go on: none is lost, none made twice, and all end alike (ADR 0022).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use clearspan_ledger::entry::Command;
use clearspan_ledger::nodes::{NodeCommand, NodeRecord};
use clearspan_ledger::{AdminRefusal, Reply, ShardId};
use clearspan_node::engine::{Lane, Wait};
use clearspan_replica::MemberId;

use crate::nodes::{Cluster, Payment, SHARDS, eventually};

const COORDINATOR: ShardId = ShardId::new(0);

/// Changes the nodes, again and again until shard 0 has answered.
fn change(cluster: &Cluster, through: usize, command: NodeCommand) -> Reply {
    let command = Command::Nodes(command);
    let mut reply = None;
    eventually("the nodes are changed", || {
        reply = cluster
            .node(through)
            .execute(COORDINATOR, &command, Lane::Urgent)
            .ok()
            .map(|outcome| outcome.reply);
        reply.is_some()
    });
    reply.unwrap()
}

fn found(cluster: &Cluster, through: usize) {
    let nodes = cluster.founding().all().cloned().collect();
    let founded = change(cluster, through, NodeCommand::Found { nodes });
    assert_eq!(founded, Reply::Done);
}

/// Adds a node and starts it.
fn add(
    cluster: &mut Cluster,
    through: usize,
    site: u16,
    witness: bool,
    replaces: Option<usize>,
) -> usize {
    let at = cluster.join(site, witness);
    let node = NodeRecord {
        replaces: replaces.map(|old| cluster.members[old].id.get()),
        ..cluster.record(at)
    };
    assert_eq!(
        change(cluster, through, NodeCommand::Add { node }),
        Reply::Done
    );
    cluster.start(at);
    at
}

/// Waits until every shard's group votes with these nodes and no others, as one of them sees it.
fn all_vote(cluster: &Cluster, through: usize, nodes: &[usize]) {
    let wanted: BTreeSet<MemberId> = nodes.iter().map(|&at| cluster.members[at].id).collect();
    eventually("the groups are as they shall be", || {
        cluster.node(through).status().iter().all(|shard| {
            let group = &shard.membership;
            group.voters.iter().copied().collect::<BTreeSet<_>>() == wanted
                && group.learners.is_empty()
                && group.voters_outgoing.is_empty()
        })
    });
}

/// How many shards a node leads, as it sees it itself.
fn leads(cluster: &Cluster, at: usize) -> usize {
    let me = cluster.members[at].id;
    let shards = cluster.node(at).status();
    shards
        .iter()
        .filter(|shard| shard.replica.leader == Some(me))
        .count()
}

/// Pays without a pause while something happens; gives back what every balance must be.
fn pay_while(
    cluster: &mut Cluster,
    through: &[usize],
    first: u64,
    what: impl FnOnce(&mut Cluster),
) -> Vec<i128> {
    let done = AtomicBool::new(false);
    let paid = AtomicU64::new(first);
    let payers: Vec<_> = through.iter().map(|&at| cluster.door(at)).collect();
    std::thread::scope(|scope| {
        let payer = scope.spawn(|| {
            for number in first.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let payment = payment(number);
                let mut tries = usize::try_from(number).unwrap();
                eventually("a payment is acknowledged", || {
                    tries += 1;
                    payers[tries % payers.len()](&payment)
                });
                paid.store(number + 1, Ordering::Relaxed);
            }
        });
        what(cluster);
        // It was done under load, however quickly.
        eventually("payments are made meanwhile", || {
            paid.load(Ordering::Relaxed) > first + 10
        });
        done.store(true, Ordering::Relaxed);
        payer.join().unwrap();
    });
    let end = paid.load(Ordering::Relaxed);
    let mut balances = vec![0; 8];
    for payment in (first..end).map(payment) {
        balances[usize::from(payment.from)] -= i128::from(payment.minor);
        balances[usize::from(payment.to)] += i128::from(payment.minor);
    }
    balances
}

fn payment(number: u64) -> Payment {
    let from = number % 8;
    Payment {
        number,
        from: u16::try_from(from).unwrap(),
        to: u16::try_from((from + 1 + number % 5) % 8).unwrap(),
        minor: number % 97 + 1,
    }
}

fn check(cluster: &Cluster, nodes: &[usize], changes: &[Vec<i128>]) {
    cluster.all_agree();
    for &at in nodes {
        for participant in 0..8_u16 {
            let change: i128 = changes
                .iter()
                .map(|sums| sums[usize::from(participant)])
                .sum();
            assert_eq!(
                cluster.balance(at, participant),
                100_000_000 + change,
                "participant {participant} on node {at}"
            );
        }
    }
}

#[test]
fn a_node_is_added_under_load_leads_and_is_removed_again() {
    let mut cluster = Cluster::new(&[1, 1, 1], false);
    // Snapshots so often that the new one catches up by one.
    cluster.snapshot_after_bytes = 4_000;
    cluster.start_all();
    cluster.found(0, 8);
    let before = pay_while(&mut cluster, &[0, 1, 2], 0, |cluster| found(cluster, 0));
    let grown = pay_while(&mut cluster, &[0, 1, 2], 100_000, |cluster| {
        let new = add(cluster, 0, 3, false, None);
        all_vote(cluster, 0, &[0, 1, 2, new]);
        eventually("the new node leads", || leads(cluster, new) > 0);
    });
    check(&cluster, &[0, 3], &[before.clone(), grown.clone()]);
    let shrunk = pay_while(&mut cluster, &[1, 2], 200_000, |cluster| {
        let member = cluster.members[0].id.get();
        assert_eq!(
            change(cluster, 1, NodeCommand::Remove { member }),
            Reply::Done
        );
        all_vote(cluster, 1, &[1, 2, 3]);
        cluster.stop(0);
    });
    check(&cluster, &[1, 2, 3], &[before, grown, shrunk]);
}

#[test]
fn a_lost_node_is_replaced_under_load() {
    let mut cluster = Cluster::new(&[1, 1], true);
    cluster.start_all();
    cluster.found(0, 8);
    found(&cluster, 0);
    cluster.stop(1);
    let changes = pay_while(&mut cluster, &[0], 0, |cluster| {
        let new = add(cluster, 0, 1, false, Some(1));
        all_vote(cluster, 0, &[0, 2, new]);
        eventually("the new node leads", || leads(cluster, new) > 0);
    });
    check(&cluster, &[0, 3], &[changes]);
    // The old one comes back all the same: nobody votes with it, nothing is disturbed.
    cluster.start(1);
    let more = pay_while(&mut cluster, &[0, 3], 100_000, |cluster| {
        eventually("all shards have a leader", || {
            let all = cluster.node(0).status();
            all.iter().all(|shard| shard.replica.leader.is_some())
        });
    });
    cluster.stop(1);
    assert!(more.iter().any(|change| *change != 0));
    all_vote(&cluster, 0, &[0, 2, 3]);
}

#[test]
fn a_witness_is_replaced_and_the_new_one_keeps_the_quorum() {
    let mut cluster = Cluster::new(&[1, 1], true);
    cluster.snapshot_after_bytes = 4_000;
    cluster.start_all();
    cluster.found(0, 8);
    found(&cluster, 0);
    cluster.stop(2);
    let changes = pay_while(&mut cluster, &[0, 1], 0, |cluster| {
        let new = add(cluster, 0, 2, true, Some(2));
        all_vote(cluster, 0, &[0, 1, new]);
    });
    cluster.all_agree();
    // With the new witness a data node can be lost.
    cluster.stop(1);
    let alone = pay_while(&mut cluster, &[0], 100_000, |cluster| {
        eventually("this one leads all", || {
            leads(cluster, 0) == usize::from(SHARDS)
        });
    });
    cluster.start(1);
    check(&cluster, &[0, 1], &[changes, alone]);
}

#[test]
fn a_drained_node_leads_nothing_and_leaders_move_where_they_are_sent() {
    let mut cluster = Cluster::new(&[1, 1, 1], false);
    cluster.start_all();
    cluster.found(0, 8);
    found(&cluster, 0);
    let member = |cluster: &Cluster, at: usize| cluster.members[at].id.get();
    let changes = pay_while(&mut cluster, &[0, 1, 2], 0, |cluster| {
        let drain = |draining| NodeCommand::Drain {
            member: member(cluster, 0),
            draining,
        };
        change(cluster, 1, drain(true));
        eventually("it leads nothing", || {
            let shards = cluster.node(1).status();
            let me = Some(cluster.members[0].id);
            shards
                .iter()
                .all(|shard| shard.replica.leader.is_some() && shard.replica.leader != me)
        });
        change(cluster, 1, drain(false));
        eventually("it leads again", || leads(cluster, 0) > 0);
        let to = NodeCommand::MoveLeader {
            shard: ShardId::new(0),
            member: Some(member(cluster, 2)),
        };
        change(cluster, 1, to);
        eventually("the shard is led there", || {
            cluster.node(1).status()[0].replica.leader == Some(cluster.members[2].id)
        });
    });
    check(&cluster, &[0, 1, 2], &[changes]);
}

#[test]
fn a_removal_that_would_cost_the_quorum_waits_for_it() {
    let mut cluster = Cluster::new(&[1, 1, 1], false);
    cluster.start_all();
    cluster.found(0, 8);
    found(&cluster, 0);
    cluster.stop(1);
    let member = cluster.members[2].id.get();
    assert_eq!(
        change(&cluster, 0, NodeCommand::Remove { member }),
        Reply::Done
    );
    let mut waits = None;
    eventually("it is said what is missing", || {
        let shards = cluster.node(0).status();
        waits = shards.iter().find_map(|shard| shard.change);
        matches!(waits, Some(Wait::Quorum { .. }))
    });
    let short = Wait::Quorum {
        voters: 2,
        there: 1,
    };
    assert_eq!(waits, Some(short));
    // The group has not shrunk below what it can do, so it goes on and lets the node go once the other is back.
    assert_eq!(cluster.node(0).status()[0].membership.voters.len(), 3);
    cluster.start(1);
    all_vote(&cluster, 0, &[0, 1]);
    let last = cluster.members[0].id.get();
    for (member, expected) in [
        (cluster.members[1].id.get(), Reply::Done),
        (last, Reply::Refused(AdminRefusal::LastNode)),
    ] {
        assert_eq!(
            change(&cluster, 0, NodeCommand::Remove { member }),
            expected
        );
    }
}
