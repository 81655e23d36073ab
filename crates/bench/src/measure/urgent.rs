//! Latency of urgent payments beside reception and a netting cycle, on a disk.
//!
//! Open loop: payments are due at fixed times whatever became of those before, and a latency counts from the time a
//! payment was due, so that a stall shows in every payment that it held up.

use std::time::{Duration, Instant};

use clearspan_ledger::entry::{Command, CycleCommand};
use clearspan_ledger::{AmountMinor, ShardId};
use clearspan_node::engine::{Engine, Lane, Pending};
use crossbeam_channel::{Receiver, bounded};
use std::sync::atomic::{AtomicBool, Ordering};

use super::cluster::expect_accepted;
use super::engine::{await_accepted, found};
use super::figure::quantile;
use super::workload::Workload;
use super::{Figure, MeasureError, Options, io, now};

const PART: &str = "urgent";
/// A package each 4 ms (domain 1).
const PACKAGE_INTERVAL: Duration = Duration::from_millis(4);
/// Credit line, in minor units, with which everything settles.
const AMPLE_MINOR: u64 = 1_000_000_000_000_000;
/// Answers awaited; far more than are ever under way.
const PENDING_MAX: usize = 65_536;

pub(super) fn measure(options: &Options, show: &mut dyn FnMut(Figure)) -> Result<(), MeasureError> {
    let workload = Workload::new(options, options.shards)?;
    let half = options.packages() / 2;
    let packages = |range: std::ops::Range<u64>| -> Vec<(ShardId, Command)> {
        range
            .map(|number| {
                let (shard, submission) = workload.package(number);
                (shard, Command::Submit(submission))
            })
            .collect()
    };
    let (paced, flat_out) = (packages(0..half), packages(half..options.packages()));
    let dir = tempfile::tempdir_in(&options.dir).map_err(io("make a data directory"))?;
    let line = AmountMinor::new(AMPLE_MINOR).unwrap_or(AmountMinor::MAX);
    let engine = found(dir.path(), &workload, line)?;
    let stop = AtomicBool::new(false);
    let begun = now();
    let mut phases: Vec<(&str, Duration, Duration)> = Vec::new();
    let samples = std::thread::scope(|scope| {
        let (pending, answers) = bounded(PENDING_MAX);
        let waiter = scope.spawn(move || await_latencies(&answers));
        let sender = scope.spawn(|| {
            let done = send(&engine, &workload, options, begun, &stop, &pending);
            drop(pending);
            done
        });
        let load = (|| -> Result<(), MeasureError> {
            let mut phase = |name, work: &mut dyn FnMut() -> Result<(), MeasureError>| {
                let from = begun.elapsed();
                work()?;
                phases.push((name, from, begun.elapsed()));
                Ok::<(), MeasureError>(())
            };
            phase("alone", &mut || {
                std::thread::sleep(options.idle);
                Ok(())
            })?;
            phase("beside a package each 4 ms", &mut || {
                bulk(&engine, &paced, Some(PACKAGE_INTERVAL))
            })?;
            phase("beside packages as fast as they go", &mut || {
                bulk(&engine, &flat_out, None)
            })?;
            phase("during the netting cycle", &mut || {
                engine.execute(
                    ShardId::new(0),
                    &Command::Cycle(CycleCommand::Open),
                    Lane::Urgent,
                )?;
                while !cycle_ended(&engine) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok(())
            })?;
            phase("alone again", &mut || {
                std::thread::sleep(options.idle);
                Ok(())
            })
        })();
        stop.store(true, Ordering::Relaxed);
        let panicked = || MeasureError::Unexpected("a thread panicked".to_owned());
        sender.join().map_err(|_| panicked())??;
        let samples = waiter.join().map_err(|_| panicked())??;
        load?;
        Ok::<_, MeasureError>(samples)
    })?;
    for (name, from, to) in phases {
        let latencies: Vec<f64> = samples
            .iter()
            .filter(|(due, _)| (from..to).contains(&due.duration_since(begun)))
            .map(|(_, latency)| latency.as_secs_f64() * 1e3)
            .collect();
        let seconds = (to - from).as_secs_f64();
        let what = format!("{name} ({seconds:.2} s, {} payments)", latencies.len());
        for (share, label) in [(0.5, "p50"), (0.99, "p99"), (1.0, "max")] {
            let value = vec![quantile(&latencies, share)];
            show(Figure::new(PART, format!("{label} {what}"), "ms", value));
        }
    }
    Ok(())
}

fn cycle_ended(engine: &Engine) -> bool {
    engine.with_ledger(ShardId::new(0), |ledger| ledger.cycle_running().is_none())
}

/// Proposes packages and waits until all are taken.
fn bulk(
    engine: &Engine,
    packages: &[(ShardId, Command)],
    interval: Option<Duration>,
) -> Result<(), MeasureError> {
    let (pending, answers) = bounded(PENDING_MAX);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| await_accepted(&answers));
        let mut due = now();
        for (shard, command) in packages {
            if let Some(interval) = interval {
                sleep_until(due);
                due += interval;
            }
            if pending
                .send(engine.propose(*shard, command, Lane::Bulk)?)
                .is_err()
            {
                break;
            }
        }
        drop(pending);
        waiter
            .join()
            .unwrap_or_else(|_| Err(MeasureError::Unexpected("a waiter panicked".to_owned())))
    })
}

fn sleep_until(due: Instant) {
    std::thread::sleep(due.saturating_duration_since(now()));
}

type Due = (Instant, Pending);

fn send(
    engine: &Engine,
    workload: &Workload,
    options: &Options,
    begun: Instant,
    stop: &AtomicBool,
    pending: &crossbeam_channel::Sender<Due>,
) -> Result<(), MeasureError> {
    let interval = Duration::from_secs(1) / u32::try_from(options.urgent_per_second).unwrap_or(1);
    let mut due = begun;
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let (shard, submission) = workload.urgent(number);
        let command = Command::Submit(submission);
        sleep_until(due);
        let proposed = engine.propose(shard, &command, Lane::Urgent)?;
        if pending.send((due, proposed)).is_err() {
            break;
        }
        due += interval;
        number += 1;
    }
    Ok(())
}

/// Answers are awaited in the order of sending: one that comes earlier than its turn counts as coming then.
fn await_latencies(answers: &Receiver<Due>) -> Result<Vec<(Instant, Duration)>, MeasureError> {
    let mut latencies = Vec::new();
    for (due, pending) in answers {
        expect_accepted(&pending.wait()?.reply)?;
        latencies.push((due, due.elapsed()));
    }
    Ok(latencies)
}
