//! `clearspan revoke`

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use clearspan_node::clock::Clock;
use clearspan_node::cluster::definition::Definition;
use clearspan_node::cluster::init::{DEFINITION_FILE, NODE_FILE, NODES_DIR, PKI_DIR};
use clearspan_node::cluster::node_config::NodeConfig;
use clearspan_node::cluster::pki::{
    Authority, AuthorityKind, Revoked, describe, revoked, write_over,
};
use serde_json::{Value, json};

use crate::output;

/// Take certificates back: write the list of those that are no longer admitted
#[derive(Debug, Args)]
#[command(after_help = "\
Writes pki/clients.crl, and pki/nodes.crl for a node's certificate, and puts them where the nodes read them whose directories \
lie here. Carry them to the tls directories of all other nodes: each takes a new list up within 5 seconds, or at once on \
SIGHUP, and ends the connections of whoever stands in it. Without a certificate both lists are only signed anew, for another \
--valid-days; a node lets nobody in once its list is past its time.

Exit code 1: the lists are written, but the settings of a node in this directory name none; it says which and what to add.

Examples:
  clearspan revoke /tmp/cluster /tmp/cluster/clients/ALFADEFFXXX.crt
  clearspan revoke ~/lab/cluster ~/lab/cluster/clients/operator-admin.crt")]
pub(crate) struct Revoke {
    /// The directory that `clearspan init` wrote; a lab's is its directory `cluster`
    dir: PathBuf,
    /// Certificates, as files
    certificates: Vec<PathBuf>,
    /// For how many days the list counts
    #[arg(long, default_value_t = 3650, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    valid_days: u32,
}

/// What became of one authority's list.
struct Written {
    list: PathBuf,
    revoked: Vec<Revoked>,
    /// Where nodes of this directory read it.
    given: Vec<PathBuf>,
    /// Nodes of this directory whose settings name none, and where it was put for them.
    unread: Vec<(PathBuf, PathBuf)>,
    setting: &'static str,
}

impl Revoke {
    pub(crate) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let definition = Definition::read(&self.dir.join(DEFINITION_FILE))?;
        let mut wanted = Vec::new();
        for path in &self.certificates {
            wanted.push(describe(path)?);
        }
        let pki = self.dir.join(PKI_DIR);
        let validity = Duration::from_secs(u64::from(self.valid_days) * 86_400);
        let mut lists = Vec::new();
        for kind in [AuthorityKind::Nodes, AuthorityKind::Clients] {
            let own: Vec<(String, String)> = wanted
                .iter()
                .filter(|(of, ..)| *of == kind)
                .map(|(_, serial, name)| (serial.clone(), name.clone()))
                .collect();
            if own.is_empty() && !wanted.is_empty() {
                continue;
            }
            let authority = Authority::open(&pki, kind, definition.cluster)?;
            let list = authority.revoke(&pki, kind, &own, Clock::System.now(), validity)?;
            let mut written = Written {
                list,
                revoked: revoked(&pki, kind)?,
                given: Vec::new(),
                unread: Vec::new(),
                setting: match kind {
                    AuthorityKind::Nodes => "nodes_crl",
                    AuthorityKind::Clients => "clients_crl",
                },
            };
            self.give(kind, &mut written)?;
            lists.push(written);
        }
        if json {
            output::json(&json!(lists.iter().map(Written::json).collect::<Vec<_>>()))?;
        } else {
            for written in &lists {
                println!(
                    "{}: {} revoked",
                    written.list.display(),
                    written.revoked.len()
                );
                for path in &written.given {
                    println!("  {}", path.display());
                }
            }
        }
        let mut code = ExitCode::SUCCESS;
        for written in &lists {
            for (settings, list) in &written.unread {
                code = ExitCode::FAILURE;
                eprintln!(
                    "{} names no list, so its node refuses nobody: add {} = {:?} to its table [tls] and restart the node",
                    settings.display(),
                    written.setting,
                    list.display().to_string(),
                );
            }
        }
        Ok(code)
    }

    /// Puts a list where the nodes in this directory read it, also those that joined later. One that was put aside for its
    /// successor lies under another name than its own.
    fn give(&self, kind: AuthorityKind, written: &mut Written) -> anyhow::Result<()> {
        let list = &written.list;
        let bytes = std::fs::read(list).with_context(|| format!("read {}", list.display()))?;
        let nodes = self.dir.join(NODES_DIR);
        let mut homes: Vec<PathBuf> = match std::fs::read_dir(&nodes) {
            Ok(entries) => entries
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<Result<_, _>>()
                .with_context(|| format!("read {}", nodes.display()))?,
            // All were carried to their machines.
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error).context(format!("read {}", nodes.display())),
        };
        homes.sort();
        for home in homes {
            let settings = home.join(NODE_FILE);
            if !settings.exists() {
                continue;
            }
            let config = NodeConfig::read(&settings)?;
            if home.file_name() != Some(OsStr::new(&config.node.name)) {
                continue;
            }
            let (authority, named) = match kind {
                AuthorityKind::Nodes => (&config.tls.nodes_ca, config.tls.nodes_crl),
                AuthorityKind::Clients => (&config.tls.clients_ca, config.tls.clients_crl),
            };
            let path = named
                .clone()
                .unwrap_or_else(|| kind.revocation_list_path(authority.parent().unwrap_or(&home)));
            write_over(&path, &bytes, 0o644)
                .with_context(|| format!("write {}", path.display()))?;
            if named.is_some() {
                written.given.push(path);
            } else {
                let path = path.strip_prefix(&home).unwrap_or(&path).to_owned();
                written.unread.push((settings, path));
            }
        }
        Ok(())
    }
}

impl Written {
    fn json(&self) -> Value {
        json!({
            "list": self.list, "nodes": self.given,
            "unread": self.unread.iter().map(|(settings, _)| settings).collect::<Vec<_>>(),
            "revoked": self.revoked.iter().map(|one| json!({
                "serial": one.serial, "name": one.name, "at_s": one.at_s,
            })).collect::<Vec<_>>(),
        })
    }
}
