//! `clearspan bench`

mod rehearsal;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Measure what distance, nodes and a lost site cost, on real processes
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Receive, net and receipt packages beside urgent payments, on one cluster after another
    Rehearsal(Box<rehearsal::Rehearsal>),
}

impl Bench {
    pub(crate) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self.what {
            What::Rehearsal(rehearsal) => rehearsal.run(json),
        }
    }
}
