//! Faults on clusters of real processes: nodes die and hang, sites are lost, lines are cut, disks fill, while participants
//! work through all nodes; then the full record of what they were told is held against the invariants
//! (`docs/reliability.md`). Input comes from a seed that a failure prints.

mod asker;
mod checks;
mod command_line;
mod ending;
mod long;
mod messages;
mod record;
#[path = "../crash/rng.rs"]
mod rng;
mod scenarios;
mod stage;
mod traffic;
mod world;

use scenarios::{Form, Scenario};
use stage::Stage;

/// Runs scenarios one after another on one cluster, each checked against the whole record so far.
fn run(seed: u64, names: &[&str]) {
    let scenarios: Vec<Scenario> = names
        .iter()
        .map(|name| Scenario::find(name).expect("a scenario's name"))
        .collect();
    let mut stage = Stage::up(scenarios[0].ground, seed);
    for scenario in scenarios {
        assert_eq!(scenario.ground, stage.ground, "{}", scenario.name);
        scenario.run(&mut stage, Form::Short);
    }
}

#[test]
fn processes_die_and_come_back() {
    run(
        1,
        &[
            "quiet",
            "kill-one",
            "kill-minority",
            "kill-site",
            "kill-witness",
            "kill-all",
        ],
    );
}

#[test]
fn processes_hang_and_disks_fill() {
    run(
        2,
        &[
            "pause-leader",
            "pause-follower",
            "disk-full",
            "duplicate-storm",
            "site-absent",
        ],
    );
}

#[test]
fn lines_are_cut() {
    run(
        3,
        &[
            "cut-witnessed",
            "one-way-there",
            "one-way-back",
            "isolate-site",
            "flapping",
        ],
    );
}

#[test]
fn cycles_and_receipts_are_interrupted() {
    run(4, &["cycle-steps", "cycle-site-lost", "receipts-site-lost"]);
}

#[test]
fn without_a_witness_neither_half_serves() {
    run(5, &["halves", "halves-kill-minority"]);
}

#[test]
#[ignore = "runs until its time is up: cargo xtask faults"]
fn long() {
    long::campaign();
}
