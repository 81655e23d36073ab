//! Compact packages through log, package store and state machine on a disk, beside what the disk itself can do.

use std::collections::BTreeMap;
use std::path::Path;

use clearspan_ledger::entry::Command;
use clearspan_ledger::{AmountMinor, Reply, ShardId};
use clearspan_node::engine::{Engine, EngineOptions, Lane, LogCounts, Pending};
use crossbeam_channel::{Receiver, bounded};

use super::cluster::expect_accepted;
use super::workload::Workload;
use super::{Aim, Figure, MeasureError, Options, disk, io, now, process_cpu, threads};

const PART: &str = "engine";
/// Payments per second, or what the disk itself can do.
const AIM_PAYMENTS: f64 = 1_000_000.0;
/// Proposals whose answers are awaited: as many as the engine lets wait, and those under way.
const PENDING_MAX: usize = 4096;

pub(super) fn measure(options: &Options, show: &mut dyn FnMut(Figure)) -> Result<(), MeasureError> {
    for (name, text) in [("with text", true), ("without text", false)] {
        let workload = Workload::new(options, options.shards)?;
        let workload = if text {
            workload
        } else {
            workload.without_text()
        };
        let packages: Vec<(ShardId, Command)> = (0..options.packages())
            .map(|number| {
                let (shard, submission) = workload.package(number);
                (shard, Command::Submit(submission))
            })
            .collect();
        series(name, &workload, &packages, options, show)?;
    }
    Ok(())
}

fn series(
    name: &str,
    workload: &Workload,
    packages: &[(ShardId, Command)],
    options: &Options,
    show: &mut dyn FnMut(Figure),
) -> Result<(), MeasureError> {
    let payments = (options.packages() * u64::from(options.package_len)) as f64;
    let (mut rates, mut logged, mut fsyncs, mut chunks) = (vec![], vec![], vec![], vec![]);
    let (mut raw, mut raw_ratios, mut bare, mut bare_ratios) = (vec![], vec![], vec![], vec![]);
    let (mut per_payment, mut cpu_ns) = (vec![], vec![]);
    let mut by_thread: BTreeMap<String, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for _ in 0..options.repeats {
        let dir = directory(options)?;
        let run = receive(dir.path(), workload, packages)?;
        drop(dir);
        let megabytes = run.log.bytes as f64 / 1e6;
        let written = megabytes / run.seconds;
        let dir = directory(options)?;
        let on_disk = disk::sequential(dir.path(), run.log)?;
        let dir = directory(options)?;
        let on_log = disk::bare_log(dir.path(), run.log, packages)?;
        drop(dir);
        rates.push(payments / run.seconds);
        logged.push(written);
        fsyncs.push(run.log.writes as f64);
        chunks.push(run.log.bytes as f64 / run.log.writes.max(1) as f64 / 1e6);
        per_payment.push(run.log.bytes as f64 / payments);
        cpu_ns.push(run.cpu_seconds * 1e9 / payments);
        for (name, time) in run.threads {
            let (ran, waited) = by_thread.entry(name).or_default();
            ran.push(time.ran.as_nanos() as f64 / payments);
            waited.push(time.waited.as_nanos() as f64 / payments);
        }
        raw.push(on_disk);
        raw_ratios.push(written / on_disk);
        bare.push(on_log);
        bare_ratios.push(written / on_log);
    }
    let rate = |values| Figure::new(PART, format!("received, {name}"), "payments/s", values);
    show(rate(rates).aiming(Aim::AtLeast(AIM_PAYMENTS)));
    let mut more = |what: &str, unit, values| {
        show(Figure::new(PART, format!("  {what}, {name}"), unit, values));
    };
    more("CPU time of all threads", "ns/payment", cpu_ns);
    for (thread, (ran, waited)) in by_thread {
        more(&format!("  thread {thread} ran"), "ns/payment", ran);
        more(
            &format!("  thread {thread} waited for a CPU"),
            "ns/payment",
            waited,
        );
    }
    more("to the log", "MB/s", logged);
    more("log", "bytes/payment", per_payment);
    more("fsyncs of the log", "", fsyncs);
    more("mean write", "MB", chunks);
    more("limit: the same writes to a plain file", "MB/s", raw);
    more("against that", "ratio", raw_ratios);
    more(
        "limit: the same writes to the bare log engine",
        "MB/s",
        bare,
    );
    more("against that", "ratio", bare_ratios);
    Ok(())
}

fn directory(options: &Options) -> Result<tempfile::TempDir, MeasureError> {
    tempfile::tempdir_in(&options.dir).map_err(io("make a data directory"))
}

struct Run {
    seconds: f64,
    cpu_seconds: f64,
    threads: BTreeMap<String, threads::Time>,
    log: LogCounts,
}

/// From the first proposal to the last answer; every answer says that all is accepted, durable and applied.
fn receive(
    dir: &Path,
    workload: &Workload,
    packages: &[(ShardId, Command)],
) -> Result<Run, MeasureError> {
    let engine = found(dir, workload, AmountMinor::ZERO)?;
    let before = engine.log_counts();
    let (begun, cpu_before, threads_before) = (now(), process_cpu(), threads::times());
    let (pending, answers) = bounded(PENDING_MAX);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| await_accepted(&answers));
        for (shard, command) in packages {
            // The other side ends early only with an error, which it returns.
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
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    let after = engine.log_counts();
    Ok(Run {
        seconds,
        cpu_seconds: (process_cpu() - cpu_before).as_secs_f64(),
        threads: threads::since(&threads_before),
        log: LogCounts {
            bytes: after.bytes - before.bytes,
            entries: after.entries - before.entries,
            writes: after.writes - before.writes,
        },
    })
}

pub(super) fn await_accepted(answers: &Receiver<Pending>) -> Result<(), MeasureError> {
    for pending in answers {
        expect_accepted(&pending.wait()?.reply)?;
    }
    Ok(())
}

/// An engine with the workload's participants and an open day.
pub(super) fn found(
    dir: &Path,
    workload: &Workload,
    credit_line: AmountMinor,
) -> Result<Engine, MeasureError> {
    let engine = Engine::open(&dir.join("data"), workload.shards, EngineOptions::usual())?;
    let expect_done = |shard, command: &Command| match engine.execute(shard, command, Lane::Bulk)? {
        outcome if outcome.reply == Reply::Done => Ok(()),
        outcome => Err(MeasureError::Unexpected(format!(
            "the ledger answered {:?}",
            outcome.reply
        ))),
    };
    for shard in (0..workload.shards).map(ShardId::new) {
        expect_done(shard, &workload.genesis(shard))?;
    }
    let commands = workload.founding(credit_line);
    let pending: Vec<Pending> = commands
        .iter()
        .map(|command| engine.propose(ShardId::new(0), command, Lane::Urgent))
        .collect::<Result<_, _>>()?;
    for pending in pending {
        let outcome = pending.wait()?;
        if outcome.reply != Reply::Done {
            return Err(MeasureError::Unexpected(format!(
                "the ledger answered {:?}",
                outcome.reply
            )));
        }
    }
    engine.settle_down();
    Ok(engine)
}
