//! A netting cycle over all shards, in memory: every entry from the cut-off to the end.

use std::hint::black_box;
use std::time::Duration;

use clearspan_ledger::entry::{Command, CycleCommand};
use clearspan_ledger::{AmountMinor, CycleNumber, ShardId};

use super::cluster::Cluster;
use super::workload::Workload;
use super::{Aim, Figure, MeasureError, Options, cpu};

const PART: &str = "netting";
const AIM_SECONDS: f64 = 0.5;
/// More than anybody pays in a cycle, in minor units.
const AMPLE_MINOR: u64 = 1_000_000_000_000_000;

pub(super) fn measure(options: &Options, show: &mut dyn FnMut(Figure)) -> Result<(), MeasureError> {
    let mut layouts = vec![options.shards, 1];
    layouts.dedup();
    for shards in layouts {
        let workload = Workload::new(options, shards)?;
        let mut received = Cluster::found(&workload, AmountMinor::ZERO)?;
        for number in 0..options.packages() {
            let (shard, submission) = workload.package(number);
            received.submit(shard, submission)?;
        }
        let of = format!("{shards} shard{}", if shards == 1 { "" } else { "s" });
        let scenarios: [(&str, &dyn Fn(usize) -> bool); 3] = [
            ("funds for everything", &|_| true),
            ("one in ten without funds", &|place| place % 10 != 0),
            ("nobody has funds", &|_| false),
        ];
        for (name, which) in scenarios {
            let mut funded = received.clone();
            funded.admin(workload.funds(AMPLE_MINOR, which))?;
            run(&format!("{name}, {of}"), &funded, options, show)?;
        }
        if shards == options.shards {
            let floors = (0..options.repeats)
                .map(|_| floor(options.payments))
                .collect();
            show(Figure::new(
                PART,
                "  limit: one sum over 16 bytes per payment",
                "ms",
                floors,
            ));
        }
    }
    Ok(())
}

fn run(
    name: &str,
    funded: &Cluster,
    options: &Options,
    show: &mut dyn FnMut(Figure),
) -> Result<(), MeasureError> {
    let (mut totals, mut longest, mut carried) = (vec![], vec![], vec![]);
    let (mut is, mut about) = ("nothing", String::new());
    for _ in 0..options.repeats {
        let mut cluster = funded.clone();
        let (_, opening) = cluster.apply(ShardId::new(0), Command::Cycle(CycleCommand::Open));
        let spent = cluster.pump();
        totals.push((opening + spent.apply).as_secs_f64());
        longest.push(spent.longest.as_secs_f64() * 1e3);
        carried.push(spent.carry.as_secs_f64() * 1e3);
        is = spent.longest_is;
        about = outcome(&cluster, options.payments, spent.entries)?;
    }
    show(
        Figure::new(PART, format!("all entries, {name}"), "s", totals)
            .aiming(Aim::AtMost(AIM_SECONDS)),
    );
    show(Figure::new(
        PART,
        format!("  longest entry: {is}"),
        "ms",
        longest,
    ));
    show(Figure::new(
        PART,
        format!("  carrying: {about}"),
        "ms",
        carried,
    ));
    Ok(())
}

/// What became of the cycle, and that it is what it must be.
fn outcome(cluster: &Cluster, payments: u64, entries: u64) -> Result<String, MeasureError> {
    let wrong = |what: &str| MeasureError::Unexpected(format!("the cycle {what}"));
    let summary = cluster
        .ledgers
        .first()
        .and_then(|ledger| ledger.cycle_summary(CycleNumber::new(1)))
        .ok_or_else(|| wrong("did not end"))?;
    if summary.set_count < payments {
        return Err(wrong("left payments out"));
    }
    let settled: u64 = summary
        .results
        .iter()
        .map(|result| u64::from(result.out_count))
        .sum();
    Ok(format!(
        "{} rounds, {} dropped, {entries} entries",
        summary.rounds,
        summary.set_count - settled
    ))
}

/// One pass over what the cycle must look at, at the speed of memory, in milliseconds.
fn floor(payments: u64) -> f64 {
    let slots = vec![[1_u64, 2]; usize::try_from(payments).unwrap_or(0)];
    let begun = cpu();
    let sum = slots
        .iter()
        .fold(0_u64, |sum, slot| sum.wrapping_add(slot[0] ^ slot[1]));
    let spent: Duration = cpu() - begun;
    black_box(sum);
    spent.as_secs_f64() * 1e3
}
