//! A node that was away comes back: how fast it gets what it missed, by the leaders' logs or by snapshots.

use clearspan_ledger::message::Settlement;

use super::load::Crowd;
use super::reception::SITES;
use super::{ClusterError, Figure, Options, Stage, now};

const PART: &str = "catch-up";
/// The node that goes away, and one that stays.
const AWAY: &str = "C1";
const STAYS: &str = "A1";
/// Leaders forget their log after so much more than two snapshots: what was missed is behind it.
const SNAPSHOT_AFTER_MIB: u64 = 8;

pub(super) fn measure(options: &Options, show: &mut dyn FnMut(Figure)) -> Result<(), ClusterError> {
    let often = format!("\n[limits]\nsnapshot_after_mib = {SNAPSHOT_AFTER_MIB}\n");
    for (how, settings) in [("by log", ""), ("by snapshot", often.as_str())] {
        let (mut rates, mut seconds, mut missed) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..options.repeats {
            let (bytes, took) = once(options, settings)?;
            missed.push(bytes / 1e6);
            seconds.push(took);
            rates.push(bytes / 1e6 / took);
        }
        let figure =
            |what: &str, unit, values| Figure::new(PART, format!("{how}{what}"), unit, values);
        show(figure(
            ": log bytes missed against the time until all is applied",
            "MB/s",
            rates,
        ));
        show(figure(", time", "s", seconds));
        show(figure(", missed", "MB", missed));
    }
    Ok(())
}

/// Log bytes missed, and seconds from the start of the process until everything is applied.
fn once(options: &Options, settings: &str) -> Result<(f64, f64), ClusterError> {
    let mut stage = Stage::up(options, SITES, settings)?;
    let mut crowd = Crowd::connect(&stage.senders)?;
    let payments = options.payments;
    let mut load = |stage: &mut Stage, payments| {
        let load = stage.draw(payments, options.package_len, Settlement::Net, options.text);
        crowd.run(&load, None)
    };
    load(&mut stage, payments / 10)?;
    let before = stage.status(STAYS)?.log_bytes;
    stage.lab.kill(AWAY)?;
    load(&mut stage, payments)?;
    let missed = stage.status(STAYS)?.log_bytes.saturating_sub(before);
    let wanted = stage.committed(STAYS)?;
    let begun = now();
    stage.lab.restart(AWAY)?;
    stage.wait_until_applied(AWAY, &wanted)?;
    Ok((missed as f64, begun.elapsed().as_secs_f64()))
}
