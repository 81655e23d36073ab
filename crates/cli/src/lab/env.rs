//! `clearspan lab env`: how a shell asks the lab's cluster.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use clearspan_lab::control;
use clearspan_lab::lab::{CLUSTER_DIR, LabReport};
use clearspan_node::cluster::definition::Definition;
use clearspan_node::cluster::init::DEFINITION_FILE;
use serde_json::{Map, Value};

use crate::init::{Kind, certificate_of};
use crate::output;

/// Print what a shell must know to ask the cluster
#[derive(Debug, Args)]
#[command(after_help = "\
A certificate that is not there yet is issued.

Example:
  eval \"$(clearspan lab env)\"
  eval \"$(clearspan lab env --as ALFADEFFXXX --site B)\"")]
pub(super) struct Env {
    /// Who asks: `operator`, `auditor`, or a participant's BIC
    #[arg(long = "as", value_name = "WHO", default_value = "operator")]
    who: String,
    /// Ask this site's nodes only
    #[arg(long)]
    site: Option<String>,
}

impl Env {
    pub(super) fn run(self, dir: &Path, json: bool) -> anyhow::Result<ExitCode> {
        let report = control::report(dir)?;
        let cluster = report.dir.join(CLUSTER_DIR);
        let definition = Definition::read(&cluster.join(DEFINITION_FILE))?;
        let who = match self.who.as_str() {
            "operator" => (
                report.operator.certificate.clone(),
                report.operator.key.clone(),
            ),
            "auditor" => certificate_of(&cluster, &definition, Kind::Auditor, "audit")?,
            bic => certificate_of(&cluster, &definition, Kind::Participant, bic)?,
        };
        let nodes = addresses(&report, self.site.as_deref());
        if nodes.is_empty() {
            anyhow::bail!(
                "no site {:?} takes messages in",
                self.site.unwrap_or_default()
            );
        }
        let all = variables(&report, nodes, who);
        if json {
            let all: Map<String, Value> = all
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.into()))
                .collect();
            output::json(&all)?;
        } else {
            for (name, value) in all {
                println!("export {name}={}", quoted(&value));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Client addresses of the nodes that hold data.
fn addresses(report: &LabReport, site: Option<&str>) -> String {
    let data = report
        .nodes
        .iter()
        .filter(|node| !node.witness && site.is_none_or(|site| node.site == site));
    let addresses: Vec<&str> = data.map(|node| node.client_address.as_str()).collect();
    addresses.join(",")
}

fn variables(
    report: &LabReport,
    nodes: String,
    (certificate, key): (PathBuf, PathBuf),
) -> [(&'static str, String); 5] {
    let text = |path: &Path| path.display().to_string();
    [
        ("CLEARSPAN_LAB", text(&report.dir)),
        ("CLEARSPAN_NODE", nodes),
        ("CLEARSPAN_CERT", text(&certificate)),
        ("CLEARSPAN_KEY", text(&key)),
        ("CLEARSPAN_CA", text(&report.operator.ca)),
    ]
}

/// As a shell takes it, whatever is in it.
fn quoted(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:,".contains(&byte);
    if value.bytes().all(plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn what_a_shell_would_read_otherwise_is_quoted() {
        assert_eq!(quoted("/tmp/lab-1/a.crt"), "/tmp/lab-1/a.crt");
        assert_eq!(quoted("/tmp/my lab"), "'/tmp/my lab'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
