//! What is done to a cluster at work. A scenario waits for what must happen meanwhile; whether everything holds is decided
//! when it has ended ([`Stage::finish`]).

mod cycles;
mod disk;
mod duplicates;
mod lines;
mod nodes;

use crate::stage::{Ground, Stage};

/// How long pauses and the like are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Short,
    Long,
}

/// Something that happens to a cluster.
#[derive(Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) ground: Ground,
    run: fn(&mut Stage, Form),
}

const fn on(ground: Ground, name: &'static str, run: fn(&mut Stage, Form)) -> Scenario {
    Scenario { name, ground, run }
}

/// All of them.
pub(crate) const SCENARIOS: [Scenario; 21] = [
    on(Ground::Metro, "quiet", nodes::quiet),
    on(Ground::Metro, "kill-one", nodes::kill_one),
    on(Ground::Metro, "kill-minority", nodes::kill_minority),
    on(Ground::Metro, "kill-site", nodes::kill_site),
    on(Ground::Metro, "kill-witness", nodes::kill_witness),
    on(Ground::Metro, "kill-all", nodes::kill_all),
    on(Ground::Metro, "pause-leader", nodes::pause_leader),
    on(Ground::Metro, "pause-follower", nodes::pause_follower),
    on(Ground::Metro, "site-absent", nodes::site_absent),
    on(
        Ground::Metro,
        "cut-witnessed",
        lines::cut_seen_by_the_witness,
    ),
    on(Ground::Metro, "one-way-there", lines::one_way_there),
    on(Ground::Metro, "one-way-back", lines::one_way_back),
    on(Ground::Metro, "isolate-site", lines::isolate_site),
    on(Ground::Metro, "flapping", lines::flapping),
    on(Ground::Metro, "cycle-steps", cycles::killed_at_every_step),
    on(
        Ground::Metro,
        "cycle-site-lost",
        cycles::site_lost_in_a_cycle,
    ),
    on(
        Ground::Metro,
        "receipts-site-lost",
        cycles::site_lost_during_receipts,
    ),
    on(Ground::Metro, "duplicate-storm", duplicates::storm),
    on(Ground::Metro, "disk-full", disk::full),
    on(Ground::Halves, "halves", lines::halves),
    on(Ground::Halves, "halves-kill-minority", nodes::kill_minority),
];

impl Scenario {
    pub(crate) fn find(name: &str) -> Option<Self> {
        SCENARIOS.into_iter().find(|scenario| scenario.name == name)
    }

    /// Does it to a cluster at work, and checks everything.
    pub(crate) fn run(&self, stage: &mut Stage, form: Form) {
        stage.record.act(format!("scenario {}", self.name));
        stage.work();
        stage.await_service(2);
        (self.run)(stage, form);
        stage.finish(self.name);
    }
}
