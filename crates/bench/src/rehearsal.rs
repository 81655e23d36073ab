//! The rehearsal: the full load over distance, in phases, measured on real processes.
//!
//! Packages are *received*, *netted* at one cut-off, and everybody reads its *receipts*, while urgent payments settle all
//! the time (ADR 0030). `docs/rehearsal.md` says what a row is and what each figure means.

mod check;
mod cost;
mod latency;
mod reading;
pub mod report;
mod row;
mod rows;
mod share;

use std::path::PathBuf;

use clearspan_node::clock::Clock;

use crate::cluster::ClusterError;
use report::{Load, Machine, Report, Start, VERSION};
pub use rows::{ROWS, RowSpec};

/// What is rehearsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The binary whose `serve` runs the nodes.
    pub program: PathBuf,
    /// Where directories are made; they are removed afterwards.
    pub dir: PathBuf,
    /// The load of every row.
    pub load: Load,
    /// For how long urgent payments run alone before packages come, in milliseconds.
    pub alone_ms: u64,
    /// Share of one core that each node of a scaling row gets.
    pub share_cores: f64,
}

impl Options {
    /// The load that promises are stated for: two million payments in packages of 1,000, one each 4 ms, beside 16,000 urgent
    /// ones each 10 ms.
    #[must_use]
    pub fn full(program: PathBuf, dir: PathBuf) -> Self {
        Self {
            program,
            dir,
            load: Load {
                payments: 2_000_000,
                package_len: 1000,
                package_interval_us: 4000,
                urgent: 16_000,
                urgent_interval_us: 10_000,
                participants: 100,
                shards: 4,
                text: true,
                quick: false,
            },
            alone_ms: 5000,
            share_cores: 0.25,
        }
    }

    /// A fiftieth of it: everything is seen to work, in under two minutes for all rows.
    #[must_use]
    pub fn quick(program: PathBuf, dir: PathBuf) -> Self {
        let full = Self::full(program, dir);
        Self {
            load: Load {
                payments: 40_000,
                urgent: 200,
                participants: 20,
                quick: true,
                ..full.load
            },
            alone_ms: 700,
            ..full
        }
    }
}

/// How far a rehearsal is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The row.
    pub row: &'static str,
    /// Where its bytes start.
    pub start: Start,
    /// What is being done.
    pub doing: &'static str,
    /// How much of it is done.
    pub done: u64,
    /// Of how much; 0 when that is not known.
    pub of: u64,
}

/// A report without rows, for what begins now.
#[must_use]
pub fn begin(options: &Options) -> Report {
    let begun_at = Clock::System.now().to_string();
    Report {
        version: VERSION,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        begun_at,
        machine: machine(),
        load: options.load.clone(),
        rows: Vec::new(),
    }
}

/// Runs one row and adds it to the report, with the ratios that it allows.
///
/// # Errors
/// [`ClusterError`] says what could not be done; the report is as it was.
pub fn run(
    spec: &'static RowSpec,
    start: Start,
    options: &Options,
    report: &mut Report,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), ClusterError> {
    if !options.program.is_file() {
        return Err(ClusterError::Program(options.program.clone()));
    }
    let row = row::run(spec, start, options, progress)?;
    report
        .rows
        .retain(|other| other.name != row.name || other.start != row.start);
    report.rows.push(row);
    report.relate();
    Ok(())
}

fn machine() -> Machine {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let after = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let memory = after(&read("/proc/meminfo"), "MemTotal");
    let memory = memory.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    let load = read("/proc/loadavg");
    Machine {
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        cpu: after(&read("/proc/cpuinfo"), "model name"),
        memory_bytes: memory.map(|kib| kib * 1024),
        load_before: load
            .split_whitespace()
            .next()
            .and_then(|text| text.parse().ok()),
    }
}
