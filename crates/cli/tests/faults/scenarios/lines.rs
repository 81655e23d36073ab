//! Lines that are cut, both ways, one way, again and again.

use std::time::Duration;

use clearspan_lab::clock::now_ns;
use clearspan_lab::lab::Ways;

use super::Form;
use crate::stage::Stage;

/// Refusals that show that a side without a quorum says so.
const REFUSALS: usize = 3;

/// Both data sites see the witness and not each other: every shard is served, by the side that its leader is on and by no
/// other, as long as that leads.
pub(super) fn cut_seen_by_the_witness(stage: &mut Stage, _: Form) {
    stage.cut("A", "B", Ways::Both);
    let ms = stage.await_service(3);
    stage.figure("sites cut off from each other to every shard served", ms);
    stage.until("every shard has one leader while it serves", |stage| {
        let Some(leaders) = stage.leaders() else {
            return false;
        };
        let from_ns = now_ns();
        stage.await_service(3);
        if stage.leaders().as_ref() != Some(&leaders) {
            // A lead that changed hands served by both sides, one after the other.
            return false;
        }
        for ((leader, _), home) in leaders.iter().zip(0..) {
            let served = stage.record.served_by(home, from_ns);
            let side = &leader[..1];
            let mut faults: Vec<String> = served
                .iter()
                .filter(|node| !node.starts_with(side))
                .map(|node| format!("shard {home}: {leader} leads, {node} serves"))
                .collect();
            if served.is_empty() {
                faults.push(format!("shard {home}: {leader} leads, nobody serves"));
            }
            if !faults.is_empty() {
                stage.fail(&faults);
            }
        }
        true
    });
}

pub(super) fn one_way_there(stage: &mut Stage, _: Form) {
    stage.cut("A", "B", Ways::There);
    stage.await_service(3);
}

pub(super) fn one_way_back(stage: &mut Stage, _: Form) {
    stage.cut("B", "A", Ways::There);
    stage.await_service(3);
}

/// The site alone refuses everything; the others serve every shard.
pub(super) fn isolate_site(stage: &mut Stage, _: Form) {
    let site = ["A", "B"][stage.rng.below(2)];
    let alone = stage.data_nodes(Some(site));
    stage.isolate(site);
    stage.record.darkens(&alone);
    let left = stage.others(&alone);
    let ms = stage.await_service(2);
    stage.figure("site isolated to every shard served", ms);
    stage.await_acknowledged(&left, 1);
    stage.await_refused(&alone, REFUSALS);
}

/// Half of the voters on each side: nobody serves, and nobody is needed to heal it.
pub(super) fn halves(stage: &mut Stage, _: Form) {
    let all = stage.data_nodes(None);
    stage.cut("A", "B", Ways::Both);
    stage.record.darkens(&all);
    for site in ["A", "B"] {
        let side = stage.data_nodes(Some(site));
        stage.await_refused(&side, REFUSALS);
    }
}

/// The line comes and goes.
pub(super) fn flapping(stage: &mut Stage, form: Form) {
    let times = if form == Form::Short { 6 } else { 20 };
    for _ in 0..times {
        let ways = [Ways::Both, Ways::There][stage.rng.below(2)];
        let sites = [("A", "B"), ("B", "A"), ("A", "W"), ("W", "B")];
        let (from, to) = sites[stage.rng.below(sites.len())];
        stage.cut(from, to, ways);
        let ms = stage.rng.between(100, 1500);
        std::thread::sleep(Duration::from_millis(ms));
        stage.lab().heal_all().expect("lines can be healed");
        let ms = stage.rng.between(50, 500);
        std::thread::sleep(Duration::from_millis(ms));
    }
}
