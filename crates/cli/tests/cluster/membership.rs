//! Nodes of a running cluster come, go, die, lose their data and are rolled back, while a participant pays without a pause: no
//! payment that was acknowledged is lost, none is made twice, and all nodes end alike (ADR 0022).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use clearspan_node::api::Nodes;
use clearspan_node::client::Ask;
use serde_json::json;

use crate::nodes::Cluster;
use crate::{ALFA, BRAV, same_everywhere, take};

/// Places of the nodes' ports.
const A1: usize = 0;
const B1: usize = 1;
const C1: usize = 2;
const D1: usize = 3;
const B2: usize = 4;

fn nodes(cluster: &Cluster, through: usize) -> Option<Nodes> {
    cluster
        .operator(&[through])
        .json(&Ask::get("/v1/nodes"))
        .ok()
}

/// Waits until the groups are as they shall be and this node votes in all shards.
fn votes_everywhere(cluster: &Cluster, through: usize, name: &str) {
    cluster.eventually(&format!("{name} votes everywhere"), || {
        nodes(cluster, through).is_some_and(|all| {
            let mut present = all.nodes.iter().filter(|node| node.state != "removed");
            let new = present.find(|node| node.node == name);
            all.settled && new.is_some_and(|node| node.votes.len() == all.shards.len())
        })
    });
}

/// A node that must not start, or go on: it ends by itself, with a fault that names the command that re-admits it. Without data
/// it exits; on an older copy it exits when a peer does not admit it, or aborts when a leader's heartbeat counts on entries
/// that are gone: whichever comes first.
fn is_refused(cluster: &mut Cluster, at: usize, may_abort: bool) {
    let code = cluster.wait_for_end(at);
    let ended = code == Some(1) || may_abort && code.is_none();
    assert!(
        ended,
        "{}: {code:?}\n{}",
        Cluster::name(at),
        cluster.log(at)
    );
    let said = cluster.log(at);
    let last = said.lines().last().unwrap_or_default();
    assert!(last.contains("clearspan admin node replace"), "{last}");
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Ends the payments also when the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn nodes_come_and_go_while_payments_settle() {
    let mut cluster = Cluster::new();
    cluster.start_all();
    cluster.found();
    let (done, paid) = (AtomicBool::new(false), AtomicU32::new(0));
    // Through every door there will ever be: one that is closed is passed over.
    let mut payer = cluster.client(ALFA, &[A1, B1, C1, D1, B2]);
    std::thread::scope(|scope| {
        let paying = scope.spawn(|| {
            for number in 1.. {
                take(&mut payer, number);
                paid.store(number, Ordering::Relaxed);
                if done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let stop = Stop(&done);
        change_everything(&mut cluster, &paid);
        drop(stop);
        paying.join().unwrap();
    });
    let paid = paid.load(Ordering::Relaxed);
    cluster.all_ready();
    same_everywhere(&cluster, &[B2, C1, D1]);
    // Each payment took the next number, so their sum says that none is missing and none is there twice.
    crate::run_cycle(&cluster, C1);
    cluster.all_ready();
    for node in [B2, C1, D1] {
        let accounts: Vec<serde_json::Value> = cluster
            .client(BRAV, &[node])
            .json(&Ask::get("/v1/accounts?currency=EUR"))
            .unwrap();
        let sum = u64::from(paid) * u64::from(paid + 1) / 2;
        assert_eq!(accounts[0]["balance"]["minor"], json!(100_000_000 + sum));
    }
}

fn change_everything(cluster: &mut Cluster, paid: &AtomicU32) {
    let goes_on = |cluster: &Cluster| {
        let before = paid.load(Ordering::Relaxed);
        cluster.eventually("payments go on", || {
            paid.load(Ordering::Relaxed) > before + 5
        });
    };
    // A new node, in a site of its own, that comes to lead.
    cluster.admin(&[A1], &["node", "add"], &["D1", "--site", "D"], D1);
    cluster.start(D1);
    votes_everywhere(cluster, A1, "D1");
    cluster.eventually("the new node leads", || {
        nodes(cluster, A1).is_some_and(|all| {
            all.nodes
                .iter()
                .any(|node| node.node == "D1" && !node.leads.is_empty())
        })
    });
    goes_on(cluster);

    // A dead one is replaced by another machine.
    cluster.kill(B1);
    cluster.admin(&[A1], &["node", "replace"], &["B1", "--as", "B2"], B2);
    cluster.start(B2);
    votes_everywhere(cluster, A1, "B2");
    goes_on(cluster);

    // One that lost its data does not start, and is re-admitted by one command.
    cluster.kill(C1);
    std::fs::remove_dir_all(cluster.data_dir(C1)).unwrap();
    cluster.start(C1);
    is_refused(cluster, C1, false);
    cluster.operate(
        &[A1],
        &["node", "replace", cluster.root().to_str().unwrap(), "C1"],
    );
    cluster.start(C1);
    votes_everywhere(cluster, A1, "C1");
    goes_on(cluster);

    // One that got an older copy of its data is not admitted, and is re-admitted the same way.
    assert!(cluster.stop(D1));
    let aside = cluster.root().join("copy");
    copy(&cluster.data_dir(D1), &aside);
    cluster.start(D1);
    cluster.all_ready();
    goes_on(cluster);
    cluster.kill(D1);
    std::fs::remove_dir_all(cluster.data_dir(D1)).unwrap();
    std::fs::rename(&aside, cluster.data_dir(D1)).unwrap();
    cluster.start(D1);
    is_refused(cluster, D1, true);
    cluster.operate(
        &[A1],
        &["node", "replace", cluster.root().to_str().unwrap(), "D1"],
    );
    cluster.start(D1);
    votes_everywhere(cluster, A1, "D1");
    goes_on(cluster);

    // Drained it leads nothing, then it leaves; it is told so and stops.
    cluster.operate(&[B2, C1], &["node", "drain", "A1"]);
    let drained = nodes(cluster, B2).unwrap();
    let a1 = drained.nodes.iter().find(|node| node.node == "A1").unwrap();
    assert_eq!((a1.state.as_str(), a1.leads.len()), ("draining", 0));
    cluster.operate(&[B2, C1], &["leaders", "move", "0", "C1"]);
    cluster.operate(&[B2, C1], &["node", "remove", "A1"]);
    assert_eq!(cluster.wait_for_end(A1), Some(1));
    assert!(cluster.log(A1).contains("taken out of the cluster"));
    goes_on(cluster);
}

#[test]
fn what_cannot_be_is_refused_and_said() {
    let mut cluster = Cluster::new();
    cluster.start_all();
    cluster.found();
    cluster.kill(2);
    let said = cluster.fails(&[A1], &["node", "remove", "B1"]);
    assert!(said.contains("no majority"), "{said}");
    let said = cluster.fails(&[A1], &["node", "drain", "X9"]);
    assert!(said.contains("there are A1, B1, C1"), "{said}");
    let said = cluster.fails(&[A1], &["leaders", "move", "99", "B1"]);
    assert!(said.contains("no such shard"), "{said}");
    // The dead one can go; then the rest still has its majority.
    cluster.operate(&[A1], &["node", "remove", "C1"]);
}
