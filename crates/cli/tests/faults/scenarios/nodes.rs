//! Processes that are killed or hang.

use std::time::Duration;

use super::Form;
use crate::asker::Asker;
use crate::record::Told;
use crate::stage::Stage;
use crate::traffic::package;
use crate::world::{Bank, Role, SHARDS};

/// A few acknowledgements: service has not only begun.
const SOME: usize = 10;

/// Nothing at all: everything must hold without a fault, too.
pub(super) fn quiet(stage: &mut Stage, _: Form) {
    stage.await_service(6);
}

fn kill(stage: &mut Stage, targets: &[&str]) {
    let lost: Vec<String> = stage
        .data_nodes(None)
        .into_iter()
        .filter(|node| targets.iter().any(|target| node.starts_with(target)))
        .collect();
    for target in targets {
        stage.kill(target);
    }
    // Of two acknowledgements one after another the second was asked for afterwards.
    let ms = stage.await_service(2);
    stage.figure(&format!("{targets:?} killed to every shard served"), ms);
    let left = stage.others(&lost);
    stage.await_acknowledged(&left, SOME);
}

pub(super) fn kill_one(stage: &mut Stage, _: Form) {
    let nodes = stage.data_nodes(None);
    let node = nodes[stage.rng.below(nodes.len())].clone();
    kill(stage, &[&node]);
}

/// As many as may be lost at once.
pub(super) fn kill_minority(stage: &mut Stage, _: Form) {
    let first = stage.rng.below(2) + 1;
    kill(stage, &[&format!("A{first}"), "B2"]);
}

pub(super) fn kill_site(stage: &mut Stage, _: Form) {
    let site = ["A", "B"][stage.rng.below(2)];
    kill(stage, &[site]);
}

pub(super) fn kill_witness(stage: &mut Stage, _: Form) {
    kill(stage, &["W"]);
}

/// A power cut everywhere.
pub(super) fn kill_all(stage: &mut Stage, _: Form) {
    for site in ["A", "B", "W"] {
        stage.kill(site);
    }
}

/// It must come to know that it leads no more.
pub(super) fn pause_leader(stage: &mut Stage, form: Form) {
    let node = stage.leader(0);
    stage.pause(&node);
    let left = stage.others(std::slice::from_ref(&node));
    let ms = stage.await_service(2);
    stage.figure("leader paused to every shard served", ms);
    stage.await_acknowledged(&left, SOME);
    if form == Form::Long {
        std::thread::sleep(Duration::from_secs(30));
    }
    stage.resume(&node);
    stage.await_acknowledged(&[node], 1);
}

pub(super) fn pause_follower(stage: &mut Stage, form: Form) {
    let leader = stage.leader(0);
    let others = stage.others(&[leader]);
    let node = others[stage.rng.below(others.len())].clone();
    stage.pause(&node);
    let left = stage.others(std::slice::from_ref(&node));
    stage.await_acknowledged(&left, SOME);
    stage.await_service(2);
    if form == Form::Long {
        std::thread::sleep(Duration::from_secs(20));
    }
    stage.resume(&node);
    stage.await_acknowledged(&[node], 1);
}

/// Together several times as long as the log is kept, here, before a snapshot stands for it.
const PACKAGES: usize = 8;
/// Payments of each, and letters of each payment's note.
const PACKAGE: (usize, usize) = (250, 2800);

/// Away until the others have let go of the log that it would need: it fetches snapshots, and leads again.
pub(super) fn site_absent(stage: &mut Stage, _: Form) {
    stage.kill("B");
    let left = stage.data_nodes(Some("A"));
    stage.await_acknowledged(&left, 1);
    let (bank, mut node) = (Bank::new(Role::Netter, 1), 0);
    let mut asker = Asker::new(&stage.directory, &bank.bic(), &stage.record);
    for _ in 0..PACKAGES {
        let number = stage.number();
        let (message, _) = package(&stage.record, number, bank, PACKAGE, &mut stage.rng);
        stage.until("a long package is taken", |_| {
            node = (node + 1) % asker.node_count();
            matches!(asker.submit(node, message), Told::Taken(_))
        });
    }
    let before = stage.snapshots_fetched();
    stage.heal();
    stage.until("a snapshot is fetched", |stage| {
        stage.snapshots_fetched() > before
    });
    let ms = stage.until("site B leads again", |stage| {
        (0..SHARDS).any(|shard| stage.leader(shard).starts_with('B'))
    });
    stage.figure(
        "site back after a snapshot to leading again",
        ms / 1_000_000,
    );
}
