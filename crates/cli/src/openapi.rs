//! `clearspan openapi`

use std::io::Write as _;
use std::process::ExitCode;

use clap::Args;

/// Print the description of a node's HTTPS interface: OpenAPI 3.1, as JSON
#[derive(Debug, Args)]
#[command(after_help = "\
The same document that every node of this version serves at GET /v1/openapi.json: paths, roles, bodies with examples, and \
the codes of all problems. No node is asked.

Example:
  clearspan openapi > clearspan-openapi.json")]
pub(crate) struct Openapi {}

impl Openapi {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut stdout = std::io::stdout().lock();
        serde_json::to_writer_pretty(&mut stdout, &clearspan_node::api::openapi())
            .map_err(std::io::Error::from)?;
        writeln!(stdout)?;
        Ok(ExitCode::SUCCESS)
    }
}
