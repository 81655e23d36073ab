//! Many nodes, one thread, one seed.
//!
//! The product's own core, replicas, ledgers, writers and snapshotter run over a clock, a network and disks that the seed
//! decides. What a run may assume of the world, and what must hold whatever it does, is in `docs/reliability.md`. The same
//! seed on the same build gives the same run, event for event.

#![forbid(unsafe_code)]

mod atlas;
mod check;
mod disk;
mod faults;
pub mod history;
mod members;
mod net;
mod node;
mod outputs;
pub mod plain;
mod plan;
mod reach;
mod rng;
mod sides;
mod work;
mod world;

use std::collections::{BTreeMap, BTreeSet};

pub use plan::{Fault, Narrow};
pub use reach::POINTS;

/// What came of a seed.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// What was found wrong, first thing first.
    pub failure: Option<String>,
    /// Things that happened.
    pub events: u64,
    /// Simulated nanoseconds.
    pub simulated_ns: u64,
    /// Commands that banks and the operator issued.
    pub commands: usize,
    /// Entries committed in all shards.
    pub entries: usize,
    /// Single faults.
    pub faults: u64,
    /// Kinds of faults that happened.
    pub struck: BTreeSet<Fault>,
    /// Equal for equal runs.
    pub hash: u64,
    /// How often each point of [`POINTS`] was reached.
    pub reached: BTreeMap<&'static str, u64>,
    /// What was done and seen.
    pub history: history::History,
    /// What happened, when it was asked for.
    pub trace: Vec<String>,
}

/// Runs a seed.
#[must_use]
pub fn run(seed: u64, narrow: &Narrow, traced: bool) -> Report {
    world::prepare();
    let _ = reach::take();
    let plan = plan::Plan::new(seed, narrow);
    let mut world = world::World::new(seed, plan, traced);
    if traced {
        let text = format!("{:?}", world.plan);
        world.say(|| text);
    }
    world.run();
    Report {
        seed,
        failure: world.failure,
        events: world.events,
        simulated_ns: world.now_ns,
        commands: world.history.commands.len(),
        entries: world.history.logs.iter().map(Vec::len).sum(),
        faults: world.faults_made,
        struck: world.struck,
        hash: world.hash,
        reached: reach::take(),
        history: world.history,
        trace: world.trace.unwrap_or_default(),
    }
}

/// Looks for less that fails as well: kinds of faults are left out, then commands, then single faults.
#[must_use]
pub fn shrink(seed: u64) -> (Narrow, Report) {
    let mut narrow = Narrow::default();
    let mut report = run(seed, &narrow, false);
    if report.failure.is_none() {
        return (narrow, report);
    }
    let attempt = |narrow: &mut Narrow, report: &mut Report, tried: Narrow| {
        let found = run(seed, &tried, false);
        let fails = found.failure.is_some();
        if fails {
            *narrow = tried;
            *report = found;
        }
        fails
    };
    for fault in Fault::ALL {
        let mut tried = narrow.clone();
        tried.without.push(fault);
        attempt(&mut narrow, &mut report, tried);
    }
    for field in [0, 1] {
        let mut high = if field == 0 {
            report.commands as u64
        } else {
            report.faults
        };
        let mut low = 0;
        while low < high {
            let middle = low + (high - low) / 2;
            let mut tried = narrow.clone();
            if field == 0 {
                tried.commands_max = middle;
            } else {
                tried.faults_max = middle;
            }
            if attempt(&mut narrow, &mut report, tried) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
    }
    (narrow, report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_one_run_and_its_faults_do_no_harm() {
        let first = run(3, &Narrow::default(), false);
        let second = run(3, &Narrow::default(), true);
        assert_eq!(first.failure, None);
        assert_eq!((first.hash, first.events), (second.hash, second.events));
        assert!(first.faults > 0);
        assert!(!second.trace.is_empty());
    }
}
