//! Urgent payments alone and beside bulk, open loop: a payment is due at its time whatever became of those before, and its
//! latency counts from then.

use std::time::Duration;

use clearspan_ledger::message::Settlement;

use super::load::{Crowd, Load};
use super::reception::SITES;
use super::{Aim, ClusterError, Figure, Options, Stage, Where};
use crate::measure::quantile;

const PART: &str = "latency";
/// Distances that are compared.
const PLACES: [Where; 3] = [Where::NEAR, Where::METRO, Where::REGIONS];
/// An average may grow by so many round trips.
const AIM_ROUND_TRIPS: f64 = 1.1;
/// A p99 beside bulk against one without.
const AIM_BESIDE_BULK: f64 = 1.5;

pub(super) fn measure(options: &Options, show: &mut dyn FnMut(Figure)) -> Result<(), ClusterError> {
    let mut stage = Stage::up(options, SITES, "")?;
    let mut bulk_crowd = Crowd::connect(&stage.senders)?;
    let mut urgent_crowd = Crowd::connect(&stage.senders)?;
    let mut near_average = 0.0;
    for place in PLACES {
        stage.put(place)?;
        let mut alone = Vec::new();
        let mut beside = Vec::new();
        for _ in 0..options.repeats {
            for with_bulk in [false, true] {
                let seconds = options.urgent_seconds;
                let senders = stage.senders.len().max(1);
                let payments = options.urgent_per_second * seconds;
                let load = stage.draw(payments, 1, Load::URGENT, false);
                let interval = interval(senders as f64, options.urgent_per_second as f64);
                let bulk = with_bulk.then(|| {
                    let payments = options.bulk_per_second * seconds;
                    let len = options.package_len;
                    let load = stage.draw(payments, len, Settlement::Net, options.text);
                    let own = f64::from(len) * senders as f64;
                    let pace = self::interval(own, options.bulk_per_second as f64);
                    bulk_crowd.start(&load, Some(pace))
                });
                let run = urgent_crowd.run(&load, Some(interval))?;
                if let Some(bulk) = bulk {
                    bulk_crowd.finish(bulk)?;
                }
                let kept = if with_bulk { &mut beside } else { &mut alone };
                kept.push(run.latencies_ms());
            }
        }
        let averages: Vec<f64> = alone.iter().map(|run| average(run)).collect();
        let rtt_ms = rtt_ms(place);
        let average = quantile(&averages, 0.5);
        if place == Where::NEAR {
            near_average = average;
        }
        for (name, runs) in [("alone", &alone), ("beside bulk", &beside)] {
            let what = format!("urgent at {} {name}", place.name);
            let each = |of: &dyn Fn(&[f64]) -> f64| runs.iter().map(|run| of(run)).collect();
            let averages =
                Figure::new(PART, format!("{what}, average"), "ms", each(&self::average));
            show(if name == "alone" && place == Where::METRO {
                averages.aiming(Aim::AtMost(near_average + AIM_ROUND_TRIPS * rtt_ms))
            } else {
                averages
            });
            for (share, label) in [(0.5, "p50"), (0.99, "p99"), (1.0, "max")] {
                let values = each(&|run: &[f64]| quantile(run, share));
                show(Figure::new(PART, format!("  {label}"), "ms", values));
            }
        }
        let p99 = |run: &[f64]| quantile(run, 0.99);
        let ratios = beside
            .iter()
            .zip(&alone)
            .map(|(beside, alone)| p99(beside) / p99(alone))
            .collect();
        let ratio = Figure::new(PART, "  p99 beside bulk against alone", "ratio", ratios);
        show(ratio.aiming(Aim::AtMost(AIM_BESIDE_BULK)));
    }
    Ok(())
}

/// Between two messages of one participant so that all together send at a rate.
fn interval(senders: f64, per_second: f64) -> Duration {
    Duration::from_secs_f64(senders / per_second.max(1.0))
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// To the nearest other site, on average over the sites that lead.
fn rtt_ms(place: Where) -> f64 {
    let [ab, ac, bc] = place.rtt_us;
    let nearest = [ab.min(ac), ab.min(bc), ac.min(bc)];
    nearest.iter().sum::<u64>() as f64 / 3e3
}
