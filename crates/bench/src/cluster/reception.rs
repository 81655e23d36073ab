//! Compact packages received by three data replicas: without a relay, then at each distance by turns.

use std::collections::BTreeMap;

use clearspan_ledger::message::Settlement;

use super::load::{Crowd, Load, Run, merge};
use super::process::{between, threads};
use super::{Aim, ClusterError, Figure, Options, Stage, Where};
use crate::measure::quantile;

const PART: &str = "reception";
/// Payments per second through three replicas on a small machine.
const AIM_PAYMENTS: f64 = 800_000.0;
/// Three sites with a data node each.
pub(super) const SITES: &str = "A:1,B:1,C:1";

pub(super) fn measure(options: &Options, show: &mut dyn FnMut(Figure)) -> Result<(), ClusterError> {
    direct(options, show)?;
    distances(options, show)
}

/// One run and what it cost.
pub(super) struct Cost {
    pub(super) run: Run,
    /// CPU seconds of the nodes' threads, all nodes together, by name.
    pub(super) threads: BTreeMap<String, f64>,
    /// CPU seconds of each node.
    pub(super) nodes: Vec<f64>,
    /// CPU seconds of this process: load and relay.
    pub(super) own: BTreeMap<String, f64>,
    /// Bytes between sites.
    pub(super) carried_bytes: u64,
}

pub(super) fn cost(
    stage: &mut Stage,
    crowd: &mut Crowd,
    load: &Load,
) -> Result<Cost, ClusterError> {
    let pids: Vec<u32> = stage
        .lab
        .report()?
        .nodes
        .iter()
        .filter_map(|node| node.pid)
        .collect();
    let look = || -> Vec<_> { pids.iter().map(|&pid| threads(pid)).collect() };
    let (before, own_before) = (look(), threads(std::process::id()));
    let carried = stage.carried_bytes()?;
    let run = crowd.run(load, None)?;
    let (after, own_after) = (look(), threads(std::process::id()));
    let mut by_name = BTreeMap::new();
    let mut nodes = Vec::new();
    for (before, after) in before.iter().zip(&after) {
        let spent = between(before, after);
        nodes.push(spent.values().sum());
        for (name, seconds) in spent {
            *by_name.entry(name).or_insert(0.0) += seconds;
        }
    }
    Ok(Cost {
        run,
        threads: by_name,
        nodes,
        own: between(&own_before, &own_after),
        carried_bytes: stage.carried_bytes()?.saturating_sub(carried),
    })
}

/// What all packages of a run are.
pub(super) fn named(options: &Options) -> String {
    let text = if options.text { "with" } else { "without" };
    format!("packages of {} {text} text", options.package_len)
}

fn direct(options: &Options, show: &mut dyn FnMut(Figure)) -> Result<(), ClusterError> {
    let mut stage = Stage::up(options, "A:3", "")?;
    let mut crowd = Crowd::connect(&stage.senders)?;
    let (mut rates, mut by_thread) = (Vec::new(), BTreeMap::new());
    let warm = options.payments / 4;
    for payments in std::iter::once(warm).chain(vec![options.payments; options.repeats]) {
        let load = stage.draw(payments, options.package_len, Settlement::Net, options.text);
        let cost = cost(&mut stage, &mut crowd, &load)?;
        if payments == warm {
            continue;
        }
        rates.push(cost.run.rate());
        let per_payment = 1e9 / cost.run.payments() as f64;
        let nodes = cost
            .threads
            .into_iter()
            .map(|(name, seconds)| (format!("nodes' {name}"), seconds * per_payment));
        let own = cost
            .own
            .into_iter()
            .map(|(name, seconds)| (format!("this process's {name}"), seconds * per_payment));
        merge(&mut by_thread, nodes.chain(own).collect());
    }
    let name = named(options);
    let figure = Figure::new(
        PART,
        format!("received by 3 data replicas, {name}, no relay between them"),
        "payments/s",
        rates,
    );
    show(figure.aiming(Aim::AtLeast(AIM_PAYMENTS)));
    for (thread, ns) in by_thread {
        let figure = Figure::new(PART, format!("  CPU time of {thread}"), "ns/payment", ns);
        if figure.median() >= 1.0 {
            show(figure);
        }
    }
    Ok(())
}

fn distances(options: &Options, show: &mut dyn FnMut(Figure)) -> Result<(), ClusterError> {
    let mut stage = Stage::up(options, SITES, "")?;
    let mut crowd = Crowd::connect(&stage.senders)?;
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); Where::ALL.len()];
    let mut latencies = rates.clone();
    let mut bytes = Vec::new();
    let warm = stage.draw(
        options.payments / 4,
        options.package_len,
        Settlement::Net,
        options.text,
    );
    crowd.run(&warm, None)?;
    for turn in 0..options.repeats {
        // Each turn begins elsewhere, so that growing states burden no distance more than others.
        let mut order: Vec<usize> = (0..Where::ALL.len()).collect();
        order.rotate_left(turn % Where::ALL.len());
        for at in order {
            let Some(&place) = Where::ALL.get(at) else {
                continue;
            };
            stage.put(place)?;
            let load = stage.draw(
                options.payments,
                options.package_len,
                Settlement::Net,
                options.text,
            );
            let cost = cost(&mut stage, &mut crowd, &load)?;
            if let (Some(rates), Some(latencies)) = (rates.get_mut(at), latencies.get_mut(at)) {
                rates.push(cost.run.rate());
                latencies.push(quantile(&cost.run.latencies_ms(), 0.5));
            }
            bytes.push(cost.carried_bytes as f64 / cost.run.payments() as f64);
        }
    }
    let name = named(options);
    let near = rates.first().cloned().unwrap_or_default();
    for ((place, rates), latencies) in Where::ALL.iter().zip(rates).zip(latencies) {
        let at = place.name;
        let ratios = rates
            .iter()
            .zip(&near)
            .map(|(rate, near)| rate / near)
            .collect();
        let figure = |what: &str, unit, values| Figure::new(PART, what.to_owned(), unit, values);
        show(figure(
            &format!("received at {at}, {name}"),
            "payments/s",
            rates,
        ));
        if *place != Where::NEAR {
            let least = if *place == Where::REGIONS { 0.90 } else { 0.95 };
            let ratio = figure(&format!("  {at} against 0 km"), "ratio", ratios);
            show(ratio.aiming(Aim::AtLeast(least)));
        }
        show(figure("  a package's answer after, p50", "ms", latencies));
    }
    show(Figure::new(
        PART,
        "between sites, with encryption",
        "bytes/payment",
        bytes,
    ));
    Ok(())
}
