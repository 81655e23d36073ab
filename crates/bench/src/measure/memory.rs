//! Bytes of state per payment, as the ledger counts them and as the process grows.

use clearspan_ledger::AmountMinor;

use super::cluster::Cluster;
use super::workload::Workload;
use super::{Aim, Figure, MeasureError, Options, io};

const PART: &str = "memory";
const AIM_BYTES: f64 = 100.0;
/// Credit line, in minor units, with which every urgent payment settles.
const AMPLE_MINOR: u64 = 1_000_000_000_000_000;

pub(super) fn measure(options: &Options, show: &mut dyn FnMut(Figure)) -> Result<(), MeasureError> {
    let line = AmountMinor::new(AMPLE_MINOR).unwrap_or(AmountMinor::MAX);
    let mut layouts = vec![1, options.shards];
    layouts.dedup();
    for shards in layouts {
        let workload = Workload::new(options, shards)?;
        let of = format!("{shards} shard{}", if shards == 1 { "" } else { "s" });
        let packages = |cluster: &mut Cluster| {
            for number in 0..options.packages() {
                let (shard, submission) = workload.package(number);
                cluster.submit(shard, submission)?;
            }
            Ok(options.packages() * u64::from(options.package_len))
        };
        let what = format!("payments in packages, {of}");
        grow(&what, Some(AIM_BYTES), &workload, line, show, packages)?;
        // A tenth as many: each is a message with an answer and a credit of its own.
        let urgent = |cluster: &mut Cluster| {
            let count = options.payments / 10;
            for number in 0..count {
                let (shard, submission) = workload.urgent(number);
                cluster.submit(shard, submission)?;
                if number.is_multiple_of(64) {
                    cluster.pump();
                }
            }
            cluster.pump();
            Ok(count)
        };
        let what = format!("urgent payments, {of}");
        grow(&what, None, &workload, line, show, urgent)?;
    }
    Ok(())
}

fn grow(
    what: &str,
    aim_bytes: Option<f64>,
    workload: &Workload,
    credit_line: AmountMinor,
    show: &mut dyn FnMut(Figure),
    load: impl FnOnce(&mut Cluster) -> Result<u64, MeasureError>,
) -> Result<(), MeasureError> {
    let mut cluster = Cluster::found(workload, credit_line)?;
    let before = resident_bytes()?;
    let payments = load(&mut cluster)?;
    let grown = resident_bytes()?.saturating_sub(before);
    let counted: usize = cluster
        .ledgers
        .iter()
        .map(clearspan_ledger::Ledger::memory_bytes)
        .sum();
    let unit = "bytes/payment";
    let resident = Figure::new(
        PART,
        format!("resident, {what}"),
        unit,
        vec![grown as f64 / payments as f64],
    );
    show(match aim_bytes {
        Some(most) => resident.aiming(Aim::AtMost(most)),
        None => resident,
    });
    show(Figure::new(
        PART,
        format!("  as the ledger counts, {what}"),
        unit,
        vec![counted as f64 / payments as f64],
    ));
    Ok(())
}

/// The process's resident memory, as Linux tells it.
fn resident_bytes() -> Result<u64, MeasureError> {
    let status =
        std::fs::read_to_string("/proc/self/status").map_err(io("read /proc/self/status"))?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .and_then(|number| number.trim().parse::<u64>().ok())
        .map(|kilobytes| kilobytes * 1024)
        .ok_or_else(|| MeasureError::Unexpected("/proc/self/status has no VmRSS".to_owned()))
}
