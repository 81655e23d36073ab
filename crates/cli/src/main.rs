//! `clearspan`: node, operator's tool and test bench in one binary.
//!
//! Data goes to stdout, talk to stderr; every answer has `--json`. Exit codes: 0 done, 1 a failed verdict or step, 2 usage,
//! 3 no node reached, 4 waits for a second operator, 5 refused by a rule.

#![forbid(unsafe_code)]

mod admin;
mod approvals;
mod bench;
mod day;
mod generate;
mod init;
mod lab;
mod nodes;
mod openapi;
mod output;
mod place;
mod plan;
mod query;
mod receipts;
mod reference;
mod remote;
mod revoke;
mod serve;
mod status;
mod submit;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Clears and settles payments between banks
///
/// Urgent payments settle one by one and at once; all others are collected, netted several times a day and settled together.
/// Every payment settles exactly once, in its sender's order, and every participant gets numbered receipts. This one program is
/// a node of a cluster over several sites, what operators and participants ask it with, a cluster on one machine to try things
/// out, and a business day run from a directory of files. Begin with `clearspan day examples/day --out /tmp/day`, or with
/// `clearspan lab up`.
#[derive(Debug, Parser)]
#[command(name = "clearspan", version, max_term_width = 100)]
struct Cli {
    /// Answer in JSON on stdout
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a business day on an embedded node: a directory of ISO 20022 files in, settled accounts and receipts out
    Day(day::Day),
    /// Write realistic input for a business day
    Generate(generate::Generate),
    /// Check certificates and statement chains with code that shares nothing with the netting
    Verify(verify::Verify),
    /// Ask for a payment, an account, a queue, expected incoming payments or a cycle
    Query(query::Query),
    /// Write a new cluster: definition, certificates, and a directory for every node
    Init(init::Init),
    /// Issue a certificate to a participant, an operator or an auditor
    Issue(init::Issue),
    /// Take certificates back: write the list of those that are no longer admitted
    Revoke(revoke::Revoke),
    /// Run a node of a cluster
    Serve(serve::Serve),
    /// Hand messages in at a running cluster
    Submit(submit::Submit),
    /// Fetch a participant's numbered output from a running cluster
    Receipts(receipts::Receipts),
    /// Show how a running cluster's nodes and shards stand
    Status(status::Status),
    /// Run a cluster: participants, business days, netting cycles
    Admin(admin::Admin),
    /// Print the description of a node's HTTPS interface: OpenAPI 3.1, as JSON
    Openapi(openapi::Openapi),
    /// Compute what a cluster's sites, distances and load cost and survive, without running anything
    Plan(plan::PlanCommand),
    /// Print what this version's settings mean
    Reference(reference::Reference),
    /// Run a cluster over several sites on this machine, with distance between them
    Lab(lab::Lab),
    /// Measure what distance, nodes and a lost site cost, on real processes
    Bench(bench::Bench),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Day(day) => day.run(cli.json),
        Command::Generate(generate) => generate.run(cli.json),
        Command::Verify(verify) => verify.run(cli.json),
        Command::Query(query) => query.run(cli.json),
        Command::Init(init) => init.run(cli.json),
        Command::Issue(issue) => issue.run(cli.json),
        Command::Revoke(revoke) => revoke.run(cli.json),
        Command::Serve(serve) => serve.run(),
        Command::Submit(submit) => submit.run(cli.json),
        Command::Receipts(receipts) => receipts.run(cli.json),
        Command::Status(status) => status.run(cli.json),
        Command::Admin(admin) => admin.run(cli.json),
        Command::Openapi(openapi) => openapi.run(),
        Command::Plan(plan) => plan.run(cli.json),
        Command::Reference(reference) => reference.run(cli.json),
        Command::Lab(lab) => lab.run(cli.json),
        Command::Bench(bench) => bench.run(cli.json),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            // A reader that went away (`clearspan … | head`) is no failure of ours.
            let gone = error
                .downcast_ref::<std::io::Error>()
                .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe);
            if gone {
                return ExitCode::SUCCESS;
            }
            if let Some(request) = remote::waits_for(&error) {
                // It is noted, which is what can be done: the number is the answer.
                let shown = if cli.json {
                    output::json(&serde_json::json!({ "request": request }))
                } else {
                    output::line(&format!("request: {request}"))
                };
                if shown.is_ok() {
                    eprintln!("{error:#}");
                    return remote::exit_code(&error);
                }
            }
            eprintln!("error: {error:#}");
            remote::exit_code(&error)
        }
    }
}
