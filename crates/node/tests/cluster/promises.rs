//! What must hold whatever happens to nodes and links (promises P1 to P3, P9).

use clearspan_ledger::entry::{Command, CycleCommand};
use clearspan_ledger::message::Settlement;
use clearspan_ledger::{Reply, ShardId};
use clearspan_node::engine::{Lane, ProposeError};

use crate::nodes::{Cluster, Payment, SHARDS, eventually};

/// Pays through nodes in turn until `count` payments are acknowledged, each again and again until it is; returns what
/// every participant's balance must be.
fn pay_all(cluster: &Cluster, through: &[usize], first: u64, count: u64) -> Vec<(u16, i128)> {
    let mut changes = vec![0_i128; 8];
    for number in first..first + count {
        let payment = Payment {
            number,
            from: u16::try_from(number % 8).unwrap(),
            to: u16::try_from((number * 3 + 1) % 8).unwrap(),
            minor: number + 1,
        };
        if payment.from == payment.to {
            continue;
        }
        let node = through[usize::try_from(number).unwrap() % through.len()];
        eventually("a payment is acknowledged", || {
            cluster.pay(node, &payment).is_ok()
        });
        changes[usize::from(payment.from)] -= i128::from(payment.minor);
        changes[usize::from(payment.to)] += i128::from(payment.minor);
    }
    (0_u16..).zip(changes).collect()
}

fn check_balances(cluster: &Cluster, at: usize, changes: &[(u16, i128)]) {
    for &(participant, change) in changes {
        assert_eq!(
            cluster.balance(at, participant),
            100_000_000 + change,
            "participant {participant} on node {at}"
        );
    }
}

#[test]
fn three_nodes_take_payments_through_any_of_them_and_agree() {
    let mut cluster = Cluster::new(&[1, 1, 1], false);
    cluster.start_all();
    cluster.found(0, 8);
    let changes = pay_all(&cluster, &[0, 1, 2], 0, 120);
    cluster.all_agree();
    for at in 0..3 {
        check_balances(&cluster, at, &changes);
    }
}

#[test]
fn every_data_site_leads_some_shards() {
    let mut cluster = Cluster::new(&[1, 1], true);
    cluster.start_all();
    cluster.found(0, 8);
    eventually("the preferred nodes lead", || {
        [0, 1].iter().all(|&at| {
            let led = cluster
                .node(at)
                .status()
                .iter()
                .filter(|status| status.replica.leader == Some(cluster.members[at].id))
                .count();
            led == usize::from(SHARDS) / 2
        })
    });
}

#[test]
fn the_same_message_through_all_nodes_at_once_has_one_effect_and_equal_answers() {
    let mut cluster = Cluster::new(&[1, 1, 1], false);
    cluster.start_all();
    cluster.found(0, 8);
    let payment = Payment {
        number: 7,
        from: 1,
        to: 2,
        minor: 500,
    };
    let answers: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..48)
            .map(|n| {
                let cluster = &cluster;
                scope.spawn(move || {
                    let mut answer = None;
                    eventually("an answer", || {
                        answer =
                            cluster.pay(n % 3, &payment).ok().and_then(|outcome| {
                                match outcome.reply {
                                    Reply::Taken {
                                        message, answer, ..
                                    }
                                    | Reply::Repeat { message, answer } => {
                                        Some((message.get(), answer))
                                    }
                                    _ => None,
                                }
                            });
                        answer.is_some()
                    });
                    answer.unwrap()
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .collect()
    });
    assert!(
        answers.iter().all(|answer| *answer == answers[0]),
        "{answers:?}"
    );
    cluster.all_agree();
    assert_eq!(cluster.balance(0, 1), 100_000_000 - 500);
    assert_eq!(cluster.balance(2, 2), 100_000_000 + 500);
}

#[test]
fn a_node_lost_and_back_loses_nothing_and_catches_up_by_itself() {
    let mut cluster = Cluster::new(&[1, 1, 1], false);
    cluster.start_all();
    cluster.found(0, 8);
    let mut changes = pay_all(&cluster, &[0, 1, 2], 0, 40);
    cluster.stop(0);
    for (sum, (_, change)) in changes.iter_mut().zip(pay_all(&cluster, &[1, 2], 40, 40)) {
        sum.1 += change;
    }
    cluster.start(0);
    for (sum, (_, change)) in changes
        .iter_mut()
        .zip(pay_all(&cluster, &[0, 1, 2], 80, 40))
    {
        sum.1 += change;
    }
    cluster.all_agree();
    for at in 0..3 {
        check_balances(&cluster, at, &changes);
    }
}

#[test]
fn a_node_far_behind_catches_up_by_snapshot() {
    let mut cluster = Cluster::new(&[1, 1, 1], false);
    // Snapshots so often that the log is cut while the node is away.
    cluster.snapshot_after_bytes = 2_000;
    cluster.start_all();
    cluster.found(0, 8);
    let mut changes = pay_all(&cluster, &[0, 1, 2], 0, 30);
    cluster.stop(2);
    for (sum, (_, change)) in changes.iter_mut().zip(pay_all(&cluster, &[0, 1], 30, 200)) {
        sum.1 += change;
    }
    eventually("the log is cut past the lost node", || {
        cluster
            .node(0)
            .status()
            .iter()
            .all(|status| status.replica.base.index > 40)
    });
    cluster.start(2);
    cluster.all_agree();
    for at in 0..3 {
        check_balances(&cluster, at, &changes);
    }
    // And it holds the packages that the snapshot stands on.
    for shard in (0..SHARDS).map(ShardId::new) {
        let (from, below) = cluster.node(2).with_ledger(shard, |ledger| {
            (ledger.retained_from(), ledger.next_message())
        });
        for number in (from.get()..below.get()).map(clearspan_ledger::MessageNo::new) {
            assert!(
                cluster.node(2).package(shard, number).unwrap().is_some(),
                "package {number} of shard {shard}"
            );
        }
    }
}

#[test]
fn a_cut_off_minority_serves_nothing_and_heals_by_itself() {
    let mut cluster = Cluster::new(&[1, 1], true);
    cluster.start_all();
    cluster.found(0, 8);
    let mut changes = pay_all(&cluster, &[0, 1], 0, 20);
    // Site A is alone; site B and the witness go on.
    let (a, b, w) = (
        cluster.members[0].id,
        cluster.members[1].id,
        cluster.members[2].id,
    );
    for (from, to) in [(a, b), (b, a), (a, w), (w, a)] {
        cluster.hub.cut(from, to);
    }
    let lost = Payment {
        number: 1000,
        from: 0,
        to: 1,
        minor: 9,
    };
    assert!(
        cluster.pay(0, &lost).is_err(),
        "a minority must not acknowledge"
    );
    assert!(
        cluster.node(0).catch_up(ShardId::new(0)).is_err(),
        "a minority must not answer linearizable reads"
    );
    for (sum, (_, change)) in changes.iter_mut().zip(pay_all(&cluster, &[1], 20, 30)) {
        sum.1 += change;
    }
    cluster.hub.heal();
    cluster.all_agree();
    // The refused payment may have been written by neither side.
    check_balances(&cluster, 1, &changes);
    check_balances(&cluster, 0, &changes);
}

#[test]
fn all_nodes_lost_at_once_come_back_with_everything_acknowledged() {
    let mut cluster = Cluster::new(&[1, 1], true);
    cluster.start_all();
    cluster.found(0, 8);
    let changes = pay_all(&cluster, &[0, 1], 0, 60);
    for at in 0..3 {
        cluster.stop(at);
    }
    cluster.start_all();
    cluster.all_agree();
    for at in 0..2 {
        check_balances(&cluster, at, &changes);
    }
}

#[test]
fn a_command_on_its_way_to_a_leader_that_fell_silent_is_taken_by_the_next_one() {
    let mut cluster = Cluster::new(&[1, 1, 1], false);
    cluster.start_all();
    cluster.found(0, 8);
    let silent = leader_of(&cluster, ShardId::new(0), 1);
    let through = (silent + 1) % 3;
    for other in (0..3).filter(|&other| other != silent) {
        let (a, b) = (cluster.members[silent].id, cluster.members[other].id);
        cluster.hub.silence(a, b);
        cluster.hub.silence(b, a);
    }
    let payment = Payment {
        number: 7,
        from: 0,
        to: 1,
        minor: 500,
    };
    cluster.pay(through, &payment).unwrap();
    cluster.hub.heal();
    cluster.all_agree();
    assert_eq!(cluster.balance(silent, 0), 100_000_000 - 500);
}

/// The node that leads a shard, as any running node sees it.
fn leader_of(cluster: &Cluster, shard: ShardId, through: usize) -> usize {
    let mut found = None;
    eventually("a leader is known", || {
        let statuses = cluster.node(through).status();
        let leader = statuses[shard.index()].replica.leader;
        found = cluster
            .members
            .iter()
            .position(|member| Some(member.id) == leader);
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn a_cycle_goes_on_when_the_leader_of_its_coordinator_is_lost() {
    const COORDINATOR: ShardId = ShardId::new(0);
    let mut cluster = Cluster::new(&[1, 1], true);
    cluster.start_all();
    cluster.found(0, 8);
    let mut changes = [0_i128; 8];
    for number in 0..64_u64 {
        let (from, to) = (
            u16::try_from(number % 8).unwrap(),
            u16::try_from((number * 5 + 3) % 8).unwrap(),
        );
        if from == to {
            continue;
        }
        let payment = Payment {
            number,
            from,
            to,
            minor: 1_000 + number,
        };
        let mut message = payment.message();
        message.settlement = Settlement::Net;
        let shard = ShardId::new(from % SHARDS);
        let command = Command::Submit(message);
        let node = usize::from(number % 2 == 0);
        eventually("a package is taken in", || {
            cluster
                .node(node)
                .execute(shard, &command, Lane::Bulk)
                .is_ok()
        });
        changes[usize::from(from)] -= i128::from(payment.minor);
        changes[usize::from(to)] += i128::from(payment.minor);
    }
    let lost = leader_of(&cluster, COORDINATOR, 0);
    let left = 1 - lost;
    eventually("a cycle is opened", || {
        let open = Command::Cycle(CycleCommand::Open);
        cluster
            .node(left)
            .execute(COORDINATOR, &open, Lane::Urgent)
            .is_ok_and(|outcome| outcome.reply == Reply::Done)
    });
    cluster.stop(lost);
    // The other site and the witness carry it to its end, with nobody's help.
    eventually("the cycle is settled", || {
        cluster.node(left).with_ledger(COORDINATOR, |ledger| {
            ledger.cycle_running().is_none()
                && ledger.cycle_summaries().any(|cycle| !cycle.abandoned)
        })
    });
    cluster.start(lost);
    cluster.all_agree();
    for at in 0..2 {
        for (participant, change) in (0_u16..).zip(changes) {
            assert_eq!(
                cluster.balance(at, participant),
                100_000_000 + change,
                "participant {participant} on node {at}"
            );
        }
    }
}

#[test]
fn a_command_that_may_have_been_stored_is_never_told_to_have_not() {
    let mut cluster = Cluster::new(&[1, 1, 1], false);
    cluster.start_all();
    cluster.found(0, 8);
    let id = |at: usize| cluster.members[at].id;
    for number in 0..20 {
        let status = cluster.node(0).status();
        let Some(leader) = (0..3).find(|&at| status[1].replica.leader == Some(id(at))) else {
            continue;
        };
        let (asked, third) = ((leader + 1) % 3, (leader + 2) % 3);
        let payment = Payment {
            number,
            from: 1,
            to: 5,
            minor: 1,
        };
        let before = cluster.balance(leader, 1);
        // The command reaches the leader, its outcome does not come back.
        cluster.hub.cut(id(leader), id(asked));
        let told = std::thread::scope(|scope| {
            let told = scope.spawn(|| cluster.pay(asked, &payment));
            let stored = || cluster.balance(leader, 1) < before;
            eventually("it is stored", || stored() || told.is_finished());
            // Then nobody can be asked any more.
            for (from, to) in [(asked, leader), (asked, third), (third, asked)] {
                cluster.hub.cut(id(from), id(to));
            }
            (stored() && !told.is_finished()).then(|| told.join().unwrap())
        });
        cluster.hub.heal();
        cluster.all_agree();
        if let Some(told) = told {
            assert!(matches!(told, Err(ProposeError::Unknown)), "{told:?}");
            return;
        }
    }
    panic!("no command was stored whose outcome was lost");
}
