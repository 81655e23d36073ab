//! `clearspan admin approvals`

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Subcommand;
use clearspan_node::api::{ApprovalRequest, Approvals, WhichRequest};
use clearspan_node::client::{Ask, Client, Retry};

use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsAct {
    /// Show requests: what waits for a second operator, exactly, and what was decided last
    List,
    /// Approve what another operator asked for, which does it
    #[command(after_help = "\
Look at it first: `clearspan admin approvals list` shows every parameter. The number ends in a digest of them, so that nothing else \
is approved. For a node that was added or replaced the command that asked is given again afterwards: it goes on.

Example:
  clearspan admin approvals approve 812-3fa9c2d1e0b44a5c")]
    Approve {
        /// The number that the act printed
        request: String,
    },
    /// End a request without the act, whoever asked for it
    Withdraw {
        /// The number that the act printed
        request: String,
    },
}

pub(crate) fn run(act: ApprovalsAct, client: &mut Client, json: bool) -> anyhow::Result<ExitCode> {
    match act {
        ApprovalsAct::List => {
            let all: Approvals = client.json(&Ask::get("/v1/approvals"))?;
            if json {
                output::json(&all)?;
                return Ok(ExitCode::SUCCESS);
            }
            match all.valid_minutes {
                Some(minutes) => {
                    println!("dangerous acts take two operators; requests wait for {minutes} min");
                }
                None => println!("one operator is enough for all acts"),
            }
            all.requests.iter().for_each(show);
            Ok(ExitCode::SUCCESS)
        }
        ApprovalsAct::Approve { request } => decide(client, "approve", request, json),
        ApprovalsAct::Withdraw { request } => decide(client, "withdraw", request, json),
    }
}

fn decide(client: &mut Client, act: &str, request: String, json: bool) -> anyhow::Result<ExitCode> {
    let body = serde_json::to_vec(&WhichRequest { request }).context("write the request")?;
    let path = format!("/v1/admin/approvals/{act}");
    let done: ApprovalRequest = client.json(&Ask::post(&path, body, Retry::Always))?;
    if json {
        output::json(&done)?;
    } else {
        show(&done);
    }
    Ok(ExitCode::SUCCESS)
}

fn show(request: &ApprovalRequest) {
    println!("{}  {}: {}", request.request, request.state, request.act);
    println!(
        "  asked by {} at {}, until {}",
        request.asked_by, request.asked_at, request.expires_at
    );
    if let Some(by) = &request.decided_by {
        println!("  {} by {by}", request.state);
    }
    if let Some(why) = &request.refused {
        println!("  {why}");
    }
    for line in &request.parameters {
        println!("  - {line}");
    }
}
