//! `clearspan serve`

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

/// Run a node of a cluster
#[derive(Debug, Args)]
#[command(after_help = "\
Runs until SIGTERM or SIGINT. Logs are JSON lines on stdout, each with an event. What a node has acknowledged survives any \
end of its process.

Example:
  clearspan serve --config /tmp/cluster/nodes/A1/node.toml")]
pub(crate) struct Serve {
    /// The node's settings
    #[arg(long, value_name = "FILE", env = "CLEARSPAN_CONFIG")]
    config: PathBuf,
}

impl Serve {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        clearspan_node::serve::serve(&self.config)?;
        Ok(ExitCode::SUCCESS)
    }
}
