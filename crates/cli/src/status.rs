//! `clearspan status`

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use clearspan_node::api::NodeStatus;
use clearspan_node::client::{Ask, Client};
use serde_json::json;

use crate::output::{self, Table, count};
use crate::remote::Remote;

/// Show how a running cluster's nodes and shards stand
#[derive(Debug, Args)]
#[command(after_help = "\
Every node that is named is asked what it sees. Exit code 1 when one of them is not ready or does not answer.

Example:
  clearspan status --node 127.0.0.1:7201,127.0.0.1:7202 --cert operator.crt --key operator.key --ca nodes-ca.crt")]
pub(crate) struct Status {
    #[command(flatten)]
    remote: Remote,
    /// Show it again every second
    #[arg(long)]
    watch: bool,
}

const WATCH_INTERVAL: Duration = Duration::from_secs(1);

impl Status {
    pub(crate) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let mut clients = self.remote.each()?;
        loop {
            let answers: Vec<(String, Result<NodeStatus, String>)> = clients
                .iter_mut()
                .map(|(node, client)| (node.clone(), ask(client)))
                .collect();
            let all_ready = answers
                .iter()
                .all(|(_, answer)| answer.as_ref().is_ok_and(|status| status.ready));
            if json {
                let lines: Vec<serde_json::Value> = answers
                    .iter()
                    .map(|(node, answer)| match answer {
                        Ok(status) => json!({ "address": node, "status": status }),
                        Err(why) => json!({ "address": node, "error": why }),
                    })
                    .collect();
                output::json(&lines)?;
            } else {
                if self.watch {
                    // Clears the screen and goes to its top left.
                    print!("\x1b[2J\x1b[H");
                }
                show(&answers)?;
            }
            if !self.watch {
                return Ok(if all_ready {
                    ExitCode::SUCCESS
                } else {
                    ExitCode::FAILURE
                });
            }
            std::thread::sleep(WATCH_INTERVAL);
        }
    }
}

fn ask(client: &mut Client) -> Result<NodeStatus, String> {
    client
        .json(&Ask::get("/v1/status"))
        .map_err(|error| error.to_string())
}

fn show(answers: &[(String, Result<NodeStatus, String>)]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let mut nodes = Table::new(
        "<<<<<>>",
        &[
            "node",
            "site",
            "kind",
            "state",
            "day",
            "leads",
            "participants",
        ],
    );
    for (address, answer) in answers {
        match answer {
            Ok(status) => nodes.row(vec![
                status.node.clone(),
                status.site.clone(),
                status.kind.clone(),
                status.why_not.clone().unwrap_or_else(|| "ready".to_owned()),
                status
                    .business_day
                    .clone()
                    .unwrap_or_else(|| "-".to_owned()),
                status
                    .shards
                    .iter()
                    .filter(|shard| shard.role == "leader")
                    .count()
                    .to_string(),
                status.participants.to_string(),
            ]),
            Err(why) => nodes.row(vec![
                address.clone(),
                "-".to_owned(),
                "-".to_owned(),
                why.clone(),
            ]),
        }
    }
    nodes.print(&mut out)?;
    for status in answers
        .iter()
        .filter_map(|(_, answer)| answer.as_ref().ok())
    {
        writeln!(out, "\n {} sees", status.node)?;
        let mut peers = Table::new(
            "<<>>>",
            &["peer", "state", "round trip", "queued bytes", "cuts"],
        );
        for peer in status.nodes.iter().filter(|peer| peer.node != status.node) {
            peers.row(vec![
                peer.node.clone(),
                if peer.up {
                    "up".to_owned()
                } else {
                    "down".to_owned()
                },
                peer.rtt_ms
                    .map_or("-".to_owned(), |ms| format!("{ms:.2} ms")),
                count(peer.queued_bytes),
                count(peer.cuts),
            ]);
        }
        if !peers.is_empty() {
            peers.print(&mut out)?;
        }
        let mut shards = Table::new(
            ">><>>>>>",
            &[
                "shard",
                "leader",
                "role",
                "term",
                "last",
                "committed",
                "applied",
                "waiting",
            ],
        );
        for shard in &status.shards {
            shards.row(vec![
                shard.shard.to_string(),
                shard.leader.clone().unwrap_or_else(|| "-".to_owned()),
                shard.role.clone(),
                count(shard.term),
                count(shard.last_index),
                count(shard.committed_index),
                count(shard.applied_index),
                shard.waiting.to_string(),
            ]);
        }
        shards.print(&mut out)?;
    }
    Ok(())
}
