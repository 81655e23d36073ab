//! `clearspan reference`

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use clearspan_node::cluster::keys::{CLUSTER_KEYS, Key, Kind, NODE_KEYS, Usual};

use crate::output;

/// Print what this version's settings mean
#[derive(Debug, Args)]
#[command(after_help = "\
The same lists that stand in docs/reference, for where the documentation is not at hand. No node is asked.

Example:
  clearspan reference node
  clearspan reference node --json | jq -r '.[] | select(.name == \"election_ms\") | .meaning'")]
pub(crate) struct Reference {
    /// Of what
    list: List,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum List {
    /// Keys of node.toml
    Node,
    /// Keys of cluster.toml
    Cluster,
}

impl Reference {
    pub(crate) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self.list {
            List::Node => keys(NODE_KEYS, json),
            List::Cluster => keys(CLUSTER_KEYS, json),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

fn keys(keys: &[Key], json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(&keys);
    }
    let mut out = std::io::stdout().lock();
    let mut table = None;
    for key in keys {
        if table != Some(key.table) {
            writeln!(
                out,
                "{}{}",
                if table.is_some() { "\n" } else { "" },
                key.table
            )?;
            table = Some(key.table);
        }
        let value = match key.kind {
            Kind::Text => "text".to_owned(),
            Kind::Path => "path".to_owned(),
            Kind::Address => "host:port".to_owned(),
            Kind::Word { words } => words.join(" or "),
            Kind::Number { unit, min, max } => {
                // Nothing is as large: there is no greatest.
                let range = if max >= i64::MAX.unsigned_abs() {
                    format!("from {min}")
                } else {
                    format!("{min} to {max}")
                };
                format!("{range} {unit}").trim_end().to_owned()
            }
        };
        let usual = match key.usual {
            Usual::Required => "required".to_owned(),
            Usual::Number(number) => format!("without it {number}"),
            Usual::Else(what) => format!("without it {}", what.replace('`', "")),
        };
        writeln!(out, "{}: {value}; {usual}", key.name)?;
        let meaning = format!("    {}", key.meaning.replace('`', ""));
        writeln!(out, "{}", output::wrap(&meaning, 100, 4))?;
    }
    Ok(())
}
