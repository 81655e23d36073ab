//! What the parts of a node cost on the machine at hand: each figure beside the physical limit of its stage, from the
//! same run.
//!
//! Other work on the machine moves absolute times; a [`Figure`] keeps every repeat and quotes the median, and what is
//! compared is measured by turns. What one core does is measured in CPU time of the thread, so that others on the machine
//! cost it caches, but no waiting; what a disk or several threads do is measured on the wall. Input is made beforehand, so no figure contains its making. `docs/performance.md` says
//! what each figure means.

mod cluster;
mod disk;
mod engine;
mod figure;
mod memory;
mod netting;
mod receipts;
mod reception;
mod threads;
mod urgent;
mod workload;
mod xml;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

pub(crate) use figure::quantile;
pub use figure::{Aim, Figure};

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Bytes of state per payment. First, before other parts leave freed memory behind.
    Memory,
    /// Compact packages into the state machine, in memory.
    Reception,
    /// A netting cycle over all shards, in memory.
    Netting,
    /// Receipts of a cycle's payments, to memory.
    Receipts,
    /// XML to compact packages.
    Xml,
    /// Compact packages through log, package store and state machine on a disk.
    Engine,
    /// Latency of urgent payments beside reception and a cycle, on a disk.
    Urgent,
}

impl Part {
    /// All, in the order in which they should run.
    pub const ALL: [Self; 7] = [
        Self::Memory,
        Self::Reception,
        Self::Netting,
        Self::Receipts,
        Self::Xml,
        Self::Engine,
        Self::Urgent,
    ];

    /// Its name, as on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Reception => "reception",
            Self::Netting => "netting",
            Self::Receipts => "receipts",
            Self::Xml => "xml",
            Self::Engine => "engine",
            Self::Urgent => "urgent",
        }
    }

    /// The part of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }
}

/// How much is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Payments of the load.
    pub payments: u64,
    /// Payments of one package.
    pub package_len: u32,
    /// Participants.
    pub participants: u16,
    /// Shards of the sharded figures.
    pub shards: u16,
    /// How often each figure is taken.
    pub repeats: usize,
    /// Threads where a figure uses several.
    pub threads: usize,
    /// Urgent payments per second.
    pub urgent_per_second: u64,
    /// How long urgent payments run alone before and after the load.
    pub idle: Duration,
    /// Where directories are made for what goes through a disk; they are removed afterwards.
    pub dir: PathBuf,
}

impl Options {
    /// The load that the aims are set for: two million payments in packages of 1,000 from 500 participants.
    #[must_use]
    pub fn full(dir: PathBuf) -> Self {
        Self {
            payments: 2_000_000,
            package_len: 1000,
            participants: 500,
            shards: 4,
            repeats: 5,
            threads: 2,
            urgent_per_second: 1000,
            idle: Duration::from_secs(3),
            dir,
        }
    }

    /// The same in seconds, to see that everything works; no figure of it is worth quoting.
    #[must_use]
    pub fn quick(dir: PathBuf) -> Self {
        Self {
            payments: 100_000,
            repeats: 2,
            idle: Duration::from_millis(300),
            ..Self::full(dir)
        }
    }

    fn packages(&self) -> u64 {
        self.payments.div_ceil(u64::from(self.package_len))
    }
}

/// Why a figure could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// Input could not be made.
    #[error("make the input")]
    Generate(#[from] crate::generate::Error),
    /// Something that was made for the measurement did not behave as it must.
    #[error("{0}")]
    Unexpected(String),
    /// A file or directory.
    #[error("{step}")]
    Io {
        /// What was tried.
        step: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// The node's engine did not start.
    #[error("start an engine")]
    Engine(#[from] clearspan_node::engine::EngineError),
    /// A proposal had no outcome.
    #[error("propose to the engine")]
    Propose(#[from] clearspan_node::engine::ProposeError),
    /// A data directory could not be made.
    #[error("make a data directory")]
    DataDir(#[from] clearspan_storage::DataDirError),
    /// The bare log failed.
    #[error("write to a bare log")]
    Log(#[from] clearspan_replica::LogError),
}

fn io(step: &'static str) -> impl FnOnce(std::io::Error) -> MeasureError {
    move |source| MeasureError::Io { step, source }
}

/// Takes the figures of one part and gives each to `show` as soon as it stands.
///
/// # Errors
/// [`MeasureError`] says what could not be done.
pub fn measure(
    part: Part,
    options: &Options,
    show: &mut dyn FnMut(Figure),
) -> Result<(), MeasureError> {
    match part {
        Part::Memory => memory::measure(options, show),
        Part::Reception => reception::measure(options, show),
        Part::Netting => netting::measure(options, show),
        Part::Receipts => receipts::measure(options, show),
        Part::Xml => xml::measure(options, show),
        Part::Engine => engine::measure(options, show),
        Part::Urgent => urgent::measure(options, show),
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn now() -> Instant {
    Instant::now()
}

/// CPU time of this thread so far.
fn cpu() -> Duration {
    cpu_time(ClockId::ThreadCPUTime)
}

/// CPU time of all threads so far.
fn process_cpu() -> Duration {
    cpu_time(ClockId::ProcessCPUTime)
}

fn cpu_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}
