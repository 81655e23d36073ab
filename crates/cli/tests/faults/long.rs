//! The long form: scenarios by lot until the time is up.

use std::collections::BTreeMap;

use clearspan_lab::clock::{SECOND_NS, now_ns};

use crate::rng::Rng;
use crate::scenarios::{Form, SCENARIOS, Scenario};
use crate::stage::Stage;

/// A cluster sees so many of them before a new one is set up: its record is read anew after each.
const SCENARIOS_PER_CLUSTER: usize = 8;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")),
    )
}

/// `CLEARSPAN_FAULTS_MINUTES`, `CLEARSPAN_FAULTS_SEED`, `CLEARSPAN_FAULTS_SCENARIO`: as `cargo xtask faults` sets them.
pub(crate) fn campaign() {
    let minutes = number("CLEARSPAN_FAULTS_MINUTES").unwrap_or(10);
    let seed = number("CLEARSPAN_FAULTS_SEED").unwrap_or_else(now_ns);
    let only = std::env::var("CLEARSPAN_FAULTS_SCENARIO").ok().map(|name| {
        Scenario::find(&name).unwrap_or_else(|| {
            let known = SCENARIOS.map(|scenario| scenario.name).join(", ");
            panic!("there is no scenario {name}; there are {known}")
        })
    });
    println!("{minutes} minutes of faults, seed {seed}");
    let mut rng = Rng::new(seed);
    let end_ns = now_ns() + minutes * 60 * SECOND_NS;
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut figures: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let (mut messages, mut requests) = (0, 0);
    while now_ns() < end_ns {
        let mut order: Vec<Scenario> = only.map_or_else(|| SCENARIOS.to_vec(), |only| vec![only]);
        rng.shuffle(&mut order);
        let ground = order[0].ground;
        let here: Vec<Scenario> = order
            .into_iter()
            .filter(|scenario| scenario.ground == ground)
            .collect();
        let mut stage = Stage::up(ground, rng.next());
        for scenario in here.iter().cycle().take(SCENARIOS_PER_CLUSTER) {
            if now_ns() >= end_ns {
                break;
            }
            scenario.run(&mut stage, Form::Long);
            *counts.entry(scenario.name).or_default() += 1;
        }
        for (what, ms) in std::mem::take(&mut stage.figures) {
            figures.entry(what).or_default().push(ms);
        }
        stage.record.with(|history| {
            messages += history.messages.len();
            requests += history.ops.len();
        });
    }
    println!("\nscenario                times");
    for (name, count) in &counts {
        println!("{name:<22} {count:>6}");
    }
    println!(
        "\n{:<60} {:>6} {:>8} {:>8}",
        "milliseconds", "count", "median", "most"
    );
    for (what, ms) in &mut figures {
        ms.sort_unstable();
        let (median, most) = (ms[ms.len() / 2], ms[ms.len() - 1]);
        println!("{what:<60} {:>6} {median:>8} {most:>8}", ms.len());
    }
    println!("\n{messages} messages, {requests} requests, no fault found (seed {seed})");
}
