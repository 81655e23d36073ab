//! What a cluster of real processes does at distance: nodes of the built binary in a lab, load from this process.
//!
//! Rows that are compared are taken by turns on the same cluster, whose lines are given another length between two rows;
//! ratios are of values of one turn. Input is made before the clock starts. Relay and load run in this process and share
//! the machine with the nodes; `docs/performance.md` says what each figure means.

mod catch_up;
mod latency;
mod load;
mod nodes;
pub(crate) mod process;
mod reception;
mod relay;
mod stage;

use std::path::PathBuf;
use std::time::Instant;

use clearspan_lab::lab::LabError;
use clearspan_lab::topology::TopologyError;
use clearspan_node::client::ClientError;
use clearspan_node::cluster::pki::PkiError;

pub use crate::measure::{Aim, Figure};
pub use load::{Answered, Crowd, Drawn, Form, Load, Pending, Run, Watch, drawn};
pub use stage::{Sender, Stage, Where};

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// How true the relay is here, and how much it carries.
    Relay,
    /// Compact packages received by three data replicas, at several distances.
    Reception,
    /// Urgent payments alone and beside bulk, at several distances.
    Latency,
    /// A node that was away comes back.
    CatchUp,
    /// CPU time and bytes between nodes, of one, three and seven nodes.
    Nodes,
}

impl Part {
    /// All, in the order in which they run.
    pub const ALL: [Self; 5] = [
        Self::Relay,
        Self::Reception,
        Self::Latency,
        Self::CatchUp,
        Self::Nodes,
    ];

    /// Its name, as on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Relay => "relay",
            Self::Reception => "reception",
            Self::Latency => "latency",
            Self::CatchUp => "catch-up",
            Self::Nodes => "nodes",
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
    /// The built binary, `clearspan`.
    pub program: PathBuf,
    /// Where directories are made; they are removed afterwards.
    pub dir: PathBuf,
    /// How often each row is taken.
    pub repeats: usize,
    /// Payments of one row.
    pub payments: u64,
    /// Payments of one package.
    pub package_len: u32,
    /// Participants; each has one connection and one package on its way.
    pub participants: u16,
    /// Shards.
    pub shards: u16,
    /// Whether packages carry text.
    pub text: bool,
    /// Whether participants send to any node, not to the one that leads their home shard.
    pub spread: bool,
    /// Urgent payments per second.
    pub urgent_per_second: u64,
    /// Bulk payments per second beside them.
    pub bulk_per_second: u64,
    /// For how many seconds urgent payments are sent for one row.
    pub urgent_seconds: u64,
}

impl Options {
    /// What figures are quoted from.
    #[must_use]
    pub fn full(program: PathBuf, dir: PathBuf) -> Self {
        Self {
            program,
            dir,
            repeats: 3,
            payments: 1_000_000,
            package_len: 5000,
            participants: 96,
            shards: 3,
            text: false,
            spread: false,
            urgent_per_second: 200,
            bulk_per_second: 200_000,
            urgent_seconds: 5,
        }
    }

    /// The same in seconds, to see that everything works; no figure of it is worth quoting.
    #[must_use]
    pub fn quick(program: PathBuf, dir: PathBuf) -> Self {
        Self {
            repeats: 1,
            payments: 60_000,
            package_len: 1000,
            participants: 12,
            urgent_per_second: 50,
            bulk_per_second: 20_000,
            urgent_seconds: 1,
            ..Self::full(program, dir)
        }
    }
}

/// Why a figure could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The program is not there.
    #[error(
        "{0} is not there: cargo build --release -p clearspan-cli makes it, --program names another"
    )]
    Program(PathBuf),
    /// The lab.
    #[error("the lab")]
    Lab(#[from] LabError),
    /// Sites and distances.
    #[error("lay the sites out")]
    Topology(#[from] TopologyError),
    /// Certificates.
    #[error("issue certificates")]
    Pki(#[from] PkiError),
    /// A request.
    #[error("ask a node")]
    Client(#[from] ClientError),
    /// A file, thread or socket.
    #[error("{step}")]
    Io {
        /// What was tried.
        step: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// A node did not behave as it must.
    #[error("{0}")]
    Unexpected(String),
}

pub(crate) fn io(step: &'static str) -> impl FnOnce(std::io::Error) -> ClusterError {
    move |source| ClusterError::Io { step, source }
}

/// Takes the figures of one part and gives each to `show` as soon as it stands.
///
/// # Errors
/// [`ClusterError`] says what could not be done.
pub fn measure(
    part: Part,
    options: &Options,
    show: &mut dyn FnMut(Figure),
) -> Result<(), ClusterError> {
    if !options.program.is_file() {
        return Err(ClusterError::Program(options.program.clone()));
    }
    match part {
        Part::Relay => relay::measure(show),
        Part::Reception => reception::measure(options, show),
        Part::Latency => latency::measure(options, show),
        Part::CatchUp => catch_up::measure(options, show),
        Part::Nodes => nodes::measure(options, show),
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
