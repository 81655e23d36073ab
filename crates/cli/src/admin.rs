//! `clearspan admin`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use clearspan_node::client::{Ask, Client, Retry};
use serde_json::{Value, json};

use crate::approvals::{self, ApprovalsAct};
use crate::nodes::{LeadersAct, NodeAct, run_leaders, run_node};
use crate::output;
use crate::remote::Remote;

/// Run a cluster: participants, business days, netting cycles, nodes
#[derive(Debug, Args)]
#[command(after_help = "\
Needs an operator's certificate. Every act is an entry of the journal; asked for again after a lost answer it is done \
once, but for a cycle: whether one has begun, `clearspan admin cycles` says.

Example:
  clearspan admin --node 127.0.0.1:7201 --cert operator.crt --key operator.key --ca nodes-ca.crt found participants.toml")]
pub(crate) struct Admin {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// Take up the participants of a settings file; the first one founds the cluster
    Found {
        /// participants.toml
        file: PathBuf,
    },
    /// Open a business day
    OpenDay {
        /// Such as 2026-11-30
        date: String,
    },
    /// Pass the cut-off of a kind of message, or of all
    CutOff {
        /// pacs.008, pacs.009, pacs.004 or camt.056
        kind: Option<String>,
    },
    /// Run a netting cycle and wait for its end
    Cycle,
    /// Give the running cycle up
    AbandonCycle,
    /// Show netting cycles
    Cycles,
    /// End the business day
    CloseDay,
    /// Add, replace, drain and remove nodes
    #[command(subcommand)]
    Node(NodeAct),
    /// Approve what another operator asked for, where dangerous acts take two
    #[command(subcommand)]
    Approvals(ApprovalsAct),
    /// Choose who leads shards
    #[command(subcommand)]
    Leaders(LeadersAct),
}

/// Looks at a running cycle before its wait is given up: ten minutes.
const CYCLE_LOOKS: u32 = 3000;
const CYCLE_LOOK: Duration = Duration::from_millis(200);

impl Admin {
    pub(crate) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let mut client = self.remote.client()?;
        let answer = match self.act {
            Act::Found { file } => {
                let body =
                    std::fs::read(&file).with_context(|| format!("read {}", file.display()))?;
                client.json(&Ask {
                    content_type: "application/toml",
                    ..Ask::post("/v1/admin/participants", body, Retry::Always)
                })?
            }
            Act::OpenDay { date } => act(&mut client, "day/open", &json!({ "date": date }))?,
            Act::CutOff { kind } => act(&mut client, "day/cut-off", &json!({ "kind": kind }))?,
            Act::Node(act) => return run_node(act, &mut client, json),
            Act::Approvals(act) => return approvals::run(act, &mut client, json),
            Act::Leaders(act) => return run_leaders(act, &mut client, json),
            Act::CloseDay => act(&mut client, "day/close", &json!({}))?,
            Act::AbandonCycle => act(&mut client, "cycle/abandon", &json!({}))?,
            Act::Cycles => client.json(&Ask::get("/v1/cycles"))?,
            Act::Cycle => cycle(&mut client)?,
        };
        if json {
            output::json(&answer)?;
        } else {
            match &answer {
                Value::Object(fields) => {
                    for (name, value) in fields {
                        println!("{name}: {}", plain(value));
                    }
                }
                Value::Array(rows) => rows.iter().for_each(|row| println!("{}", plain(row))),
                other => println!("{}", plain(other)),
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn act(client: &mut Client, path: &str, body: &Value) -> anyhow::Result<Value> {
    let retry = if path.starts_with("cycle") {
        Retry::NothingDone
    } else {
        Retry::Always
    };
    let path = format!("/v1/admin/{path}");
    Ok(client.json(&Ask::post(&path, body.to_string(), retry))?)
}

fn cycle(client: &mut Client) -> anyhow::Result<Value> {
    let opened = act(client, "cycle/open", &json!({}))?;
    let Some(number) = opened.get("cycle").and_then(Value::as_u64) else {
        bail!("the node did not say which cycle it opened");
    };
    let path = format!("/v1/cycles/{number}");
    for _ in 0..CYCLE_LOOKS {
        let cycles: Vec<Value> = client.json(&Ask::get(&path))?;
        let ended = cycles
            .into_iter()
            .find(|cycle| matches!(cycle["state"].as_str(), Some("settled" | "given up")));
        if let Some(cycle) = ended {
            return Ok(cycle);
        }
        std::thread::sleep(CYCLE_LOOK);
    }
    bail!("cycle {number} still runs; `clearspan admin cycles` shows it")
}
