//! `clearspan init` and `clearspan issue`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use clearspan_lab::topology;
use clearspan_ledger::Bic;
use clearspan_node::clock::Clock;
use clearspan_node::cluster::definition::Definition;
use clearspan_node::cluster::init::{
    DEFINITION_FILE, InitOptions, PKI_DIR, init, node_files, parse_sites, reissue_node,
};
use clearspan_node::cluster::pki::{Authority, AuthorityKind};
use serde_json::json;

use crate::output;

/// Where certificates of participants, operators and auditors go.
const CLIENTS_DIR: &str = "clients";
/// The operator that every new cluster has.
const FIRST_OPERATOR: &str = "admin";

/// Write a new cluster: definition, certificates, and a directory for every node
#[derive(Debug, Args)]
#[command(after_help = "\
Example, three nodes in three sites on this machine, the third a witness:
  clearspan init /tmp/cluster --sites A:1,B:1,W:witness --shards 4
  clearspan serve --config /tmp/cluster/nodes/A1/node.toml")]
pub(crate) struct Init {
    /// A directory that is new or empty
    dir: PathBuf,
    /// Sites with their number of nodes, or `witness`
    #[arg(long, value_name = "SITES", default_value = "A:1,B:1,W:witness")]
    sites: String,
    /// How many shards; fixed for good
    #[arg(long, default_value_t = 4)]
    shards: u16,
    /// Have dangerous acts take two operators; a request waits so many minutes for the second
    #[arg(long, value_name = "MINUTES", num_args = 0..=1, require_equals = true, default_missing_value = "60", value_parser = clap::value_parser!(u64).range(1..=10_080))]
    four_eyes: Option<u64>,
    /// The host under which all nodes are reached
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// The first node's port for other nodes; its port for clients is 100 higher, the one for metrics 200
    #[arg(long, value_name = "PORT", default_value_t = 7101)]
    base_port: u16,
    /// Longest round trip between sites; how long a leader may be silent follows from it
    #[arg(long, value_name = "MS", default_value = "0")]
    rtt_ms: String,
    /// Settings added to every node.toml, such as a table `log`
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
}

const CLIENT_PORTS: u16 = 100;
const HTTP_PORTS: u16 = 200;

impl Init {
    pub(crate) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let mut options =
            InitOptions::local(parse_sites(&self.sites)?, self.shards, Clock::System.now());
        let port = |above: u16| {
            self.base_port
                .checked_add(above)
                .context("the ports go beyond 65535")
        };
        options.rtt_ns = topology::ms(&self.rtt_ms).context("--rtt-ms")?;
        options.four_eyes_minutes = self.four_eyes;
        options.host = self.host;
        options.peer_port = self.base_port;
        options.client_port = port(CLIENT_PORTS)?;
        options.http_port = Some(port(HTTP_PORTS)?);
        if let Some(path) = &self.settings {
            options.extra_settings = std::fs::read_to_string(path)
                .with_context(|| format!("read {}", path.display()))?;
        }
        let definition = init(&self.dir, &options)?;
        let (cert, key) = issue(&self.dir, &definition, Kind::Operator, FIRST_OPERATOR)?;
        let files = node_files(&self.dir, &definition);
        if json {
            output::json(&json!({
                "cluster": definition.cluster.to_string(),
                "definition": self.dir.join(DEFINITION_FILE),
                "nodes": definition.nodes.iter().map(|node| json!({
                    "name": node.name, "config": files.get(&node.name), "client": node.client_address,
                    "peer": node.peer_address, "http": node.http_address,
                })).collect::<Vec<_>>(),
                "operator": { "certificate": cert, "key": key },
                "nodes_ca": AuthorityKind::Nodes.certificate_path(&self.dir.join(PKI_DIR)),
            }))?;
            return Ok(ExitCode::SUCCESS);
        }
        println!("cluster {} in {}", definition.cluster, self.dir.display());
        for node in &definition.nodes {
            if let Some(config) = files.get(&node.name) {
                println!("  clearspan serve --config {}", config.display());
            }
        }
        println!(
            "operator: --cert {} --key {}",
            cert.display(),
            key.display()
        );
        if self.four_eyes.is_some() {
            println!(
                "dangerous acts take two operators; issue the second: clearspan issue {} operator NAME",
                self.dir.display()
            );
        }
        let ca = AuthorityKind::Nodes.certificate_path(&self.dir.join(PKI_DIR));
        println!("nodes: --ca {}", ca.display());
        Ok(ExitCode::SUCCESS)
    }
}

/// Issue a certificate to a participant, an operator, an auditor, or anew to a node
#[derive(Debug, Args)]
#[command(after_help = "\
A node has a certificate from the start. A new one is written over that in the node's directory here, with a new key: a node that \
runs there takes it up within 5 seconds, any other gets both files carried to it. What the others had is not overwritten.

Examples:
  clearspan issue /tmp/cluster participant ALFADEFFXXX
  clearspan issue /tmp/cluster node A1")]
pub(crate) struct Issue {
    /// The directory that `clearspan init` wrote
    dir: PathBuf,
    /// To whom
    kind: Whom,
    /// A participant's BIC, a node's name, or a name of lower-case letters, digits and hyphens
    name: String,
}

/// Whose a client's certificate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Participant,
    Operator,
    Auditor,
}

/// Whom a certificate can be issued to from the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Whom {
    /// Sends messages and reads what is its own
    Participant,
    /// Runs the cluster
    Operator,
    /// Reads everything, changes nothing
    Auditor,
    /// Is one of the cluster's nodes
    Node,
}

impl Issue {
    pub(crate) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let definition = Definition::read(&self.dir.join(DEFINITION_FILE))?;
        let client = |kind| issue(&self.dir, &definition, kind, &self.name);
        let (cert, key) = match self.kind {
            Whom::Participant => client(Kind::Participant)?,
            Whom::Operator => client(Kind::Operator)?,
            Whom::Auditor => client(Kind::Auditor)?,
            Whom::Node => reissue_node(&self.dir, &self.name, Clock::System.now())?,
        };
        if json {
            output::json(&json!({ "certificate": cert, "key": key }))?;
        } else {
            println!("--cert {} --key {}", cert.display(), key.display());
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A client's certificate and key in a cluster's directory, issued unless they are there.
pub(crate) fn certificate_of(
    dir: &Path,
    definition: &Definition,
    kind: Kind,
    name: &str,
) -> anyhow::Result<(PathBuf, PathBuf)> {
    let stem = match kind {
        Kind::Participant => match Bic::parse(name.as_bytes()) {
            Some(bic) => bic.to_string(),
            None => bail!("{name:?} is not a BIC: give 8 or 11 capital letters and digits"),
        },
        Kind::Operator => format!("operator-{name}"),
        Kind::Auditor => format!("auditor-{name}"),
    };
    let clients = dir.join(CLIENTS_DIR);
    let (cert, key) = (
        clients.join(format!("{stem}.crt")),
        clients.join(format!("{stem}.key")),
    );
    if cert.exists() && key.exists() {
        return Ok((cert, key));
    }
    issue(dir, definition, kind, name)
}

fn issue(
    dir: &Path,
    definition: &Definition,
    kind: Kind,
    name: &str,
) -> anyhow::Result<(PathBuf, PathBuf)> {
    let authority = Authority::open(
        &dir.join(PKI_DIR),
        AuthorityKind::Clients,
        definition.cluster,
    )?;
    let now = Clock::System.now();
    let (issued, stem) = match kind {
        Kind::Participant => {
            let Some(bic) = Bic::parse(name.as_bytes()) else {
                bail!("{name:?} is not a BIC: give 8 or 11 capital letters and digits");
            };
            (authority.issue_participant(bic, now)?, bic.to_string())
        }
        Kind::Operator => (
            authority.issue_operator(name, now)?,
            format!("operator-{name}"),
        ),
        Kind::Auditor => (
            authority.issue_auditor(name, now)?,
            format!("auditor-{name}"),
        ),
    };
    let clients = dir.join(CLIENTS_DIR);
    std::fs::create_dir_all(&clients).with_context(|| format!("create {}", clients.display()))?;
    let (cert, key) = (
        clients.join(format!("{stem}.crt")),
        clients.join(format!("{stem}.key")),
    );
    issued.write(&cert, &key)?;
    Ok((cert, key))
}
