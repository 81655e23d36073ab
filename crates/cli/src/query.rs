//! `clearspan query`

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use clearspan_ledger::{Bic, Currency, CycleNumber, PaymentId};
use clearspan_node::client::{Ask, Client, ClientError};
use clearspan_node::engine::Offline;
use clearspan_node::history::{self, AccountState, CycleState, PaymentHistory, Position};
use serde::de::DeserializeOwned;

use crate::output::{self, Table, group};
use crate::remote::MaybeRemote;

/// Ask for a payment, an account, a queue, expected incoming payments or a cycle
#[derive(Debug, Args)]
#[command(after_help = "\
Asks a stopped node's data directory, or with --node a running cluster, where a participant sees what is its own, operators \
and auditors everything. No state changes. Exit code 1 when there is nothing under that name. A payment with a UETR is found \
by its UETR only.

Examples:
  clearspan query out/day cycle
  clearspan query out/day account ALFADEFF EUR
  clearspan query --node 127.0.0.1:7201 --cert alfa.crt --key alfa.key --ca nodes-ca.crt queue ALFADEFF
  clearspan query out/day payment 8a562c67-ca16-48ba-b074-65581be6f001 --json")]
pub(crate) struct Query {
    /// Output directory of a day (the one that holds data/); the cluster is asked when it is not given
    dir: Option<PathBuf>,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// A payment's whole history
    Payment {
        /// UETR, or the transaction identifier of a payment without one
        id: String,
    },
    /// A participant's accounts
    Account {
        /// BIC of 8 or 11 characters
        bic: String,
        /// Only the account in this currency
        currency: Option<String>,
    },
    /// A participant's payments that wait
    Queue {
        /// BIC of 8 or 11 characters
        bic: String,
    },
    /// Payments of others that wait and would credit a participant
    Incoming {
        /// BIC of 8 or 11 characters
        bic: String,
    },
    /// Netting cycles
    Cycle {
        /// Only this one
        number: Option<u32>,
    },
}

impl Query {
    pub(crate) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let found = match &self.dir {
            Some(dir) => self.ask_directory(dir, json)?,
            None => self.ask_cluster(json)?,
        };
        if !found && !json {
            eprintln!("nothing found");
        }
        Ok(if found {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }

    fn ask_cluster(&self, json: bool) -> anyhow::Result<bool> {
        let remote = self
            .remote
            .remote()
            .context("give a day's output directory, or name a cluster's nodes")?;
        let mut client = remote.client()?;
        match &self.what {
            What::Payment { id } => {
                let path = format!("/v1/payments/{}", encoded(id));
                payments(&ask(&mut client, &path)?, json)
            }
            What::Account { bic, currency } => {
                let mut path = format!("/v1/accounts?participant={}", encoded(bic));
                if let Some(currency) = currency {
                    path.push_str(&format!("&currency={}", encoded(currency)));
                }
                accounts(&client.json::<Vec<_>>(&Ask::get(&path))?, json)
            }
            What::Queue { bic } => {
                let path = format!("/v1/queue?participant={}", encoded(bic));
                payments(&client.json::<Vec<_>>(&Ask::get(&path))?, json)
            }
            What::Incoming { bic } => {
                let path = format!("/v1/incoming?participant={}", encoded(bic));
                payments(&client.json::<Vec<_>>(&Ask::get(&path))?, json)
            }
            What::Cycle { number: None } => cycles(&ask(&mut client, "/v1/cycles")?, json),
            What::Cycle {
                number: Some(number),
            } => cycles(&ask(&mut client, &format!("/v1/cycles/{number}"))?, json),
        }
    }

    fn ask_directory(&self, dir: &Path, json: bool) -> anyhow::Result<bool> {
        let data = dir.join("data");
        let offline =
            Offline::open(&data).with_context(|| format!("read the data in {}", data.display()))?;
        let reading = offline.read();
        Ok(match &self.what {
            What::Payment { id } => payments(&history::payments(&reading, payment_id(id)), json)?,
            What::Account { bic, currency } => {
                let currency = currency
                    .as_deref()
                    .map(|code| {
                        Currency::parse(code.as_bytes())
                            .with_context(|| format!("{code:?} is not a currency code"))
                    })
                    .transpose()?;
                accounts(
                    &known(bic, |bic| history::accounts(&reading, bic, currency))?,
                    json,
                )?
            }
            What::Queue { bic } => {
                payments(&known(bic, |bic| history::queue(&reading, bic))?, json)?
            }
            What::Incoming { bic } => {
                payments(&known(bic, |bic| history::incoming(&reading, bic))?, json)?
            }
            What::Cycle { number } => cycles(
                &history::cycles(&reading, number.map(CycleNumber::new)),
                json,
            )?,
        })
    }
}

/// What is found under a name; nothing when there is no such thing.
fn ask<T: DeserializeOwned>(client: &mut Client, path: &str) -> anyhow::Result<Vec<T>> {
    match client.json(&Ask::get(path)) {
        Err(ClientError::Refused { status: 404, .. }) => Ok(Vec::new()),
        answer => Ok(answer?),
    }
}

/// As it may stand in a path or query.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn payment_id(text: &str) -> PaymentId {
    PaymentId::parse_uetr(text.as_bytes()).unwrap_or_else(|| PaymentId::of_transaction(text))
}

fn known<T>(bic: &str, ask: impl FnOnce(Bic) -> Option<T>) -> anyhow::Result<T> {
    let Some(code) = Bic::parse(bic.as_bytes()) else {
        bail!("{bic:?} is not a BIC: give 8 or 11 capital letters and digits");
    };
    ask(code).with_context(|| format!("{code} is not a participant"))
}

fn at(position: &Position) -> String {
    format!("{}:{} at {}", position.shard, position.index, position.time)
}

fn payments(found: &[PaymentHistory], json: bool) -> anyhow::Result<bool> {
    if json {
        output::json(&found)?;
        return Ok(!found.is_empty());
    }
    let mut out = std::io::stdout().lock();
    for payment in found {
        writeln!(out, "{}", payment.id)?;
        let mut table = Table::new("<<", &["status", payment.status.as_ref()]);
        let mut row = |name: &str, value: String| table.row(vec![name.to_owned(), value]);
        if let (Some(code), Some(reason)) = (&payment.code, &payment.reason) {
            row("reason", format!("{code}: {reason}"));
        }
        row("from", payment.sender.clone());
        row(
            "to",
            payment.receiver.clone().unwrap_or_else(|| "-".to_owned()),
        );
        row(
            "amount",
            format!(
                "{} {}",
                payment.amount.currency,
                group(&payment.amount.value)
            ),
        );
        if payment.returned.minor > 0 {
            row(
                "returned",
                format!(
                    "{} {}",
                    payment.returned.currency,
                    group(&payment.returned.value)
                ),
            );
        }
        row(
            "message",
            format!(
                "{}, payment {}",
                payment.message_id, payment.position_in_message
            ),
        );
        row("entered", at(&payment.entered));
        if let Some(class) = &payment.class {
            row("class", class.to_string());
        }
        if let Some(cycle) = payment.cycle {
            row("cycle", cycle.to_string());
        }
        if let Some(position) = &payment.irrevocable {
            row("irrevocable", at(position));
        }
        if let Some(position) = &payment.settled {
            row("final", at(position));
        }
        if let Some(other) = &payment.same_content_as {
            row("same content as", other.clone());
        }
        for event in &payment.events {
            row(
                "told",
                format!(
                    "{}, {} number {}: {}",
                    at(&event.at),
                    event.participant,
                    event.number,
                    event.event
                ),
            );
        }
        row("as of", at(&payment.as_of));
        table.print(&mut out)?;
    }
    Ok(!found.is_empty())
}

fn accounts(found: &[AccountState], json: bool) -> anyhow::Result<bool> {
    if json {
        output::json(&found)?;
        return Ok(!found.is_empty());
    }
    let mut table = Table::new(
        "<<>>>>>",
        &[
            "participant",
            "currency",
            "balance",
            "credit line",
            "reserved",
            "available",
            "queued",
        ],
    );
    for account in found {
        table.row(vec![
            account.participant.clone(),
            account.balance.currency.clone(),
            group(&account.balance.value),
            group(&account.credit_line.value),
            group(&account.reserved.value),
            group(&account.available.value),
            account.queued.to_string(),
        ]);
    }
    if found.is_empty() {
        return Ok(false);
    }
    let mut out = std::io::stdout().lock();
    table.print(&mut out)?;
    if let Some(account) = found.first() {
        writeln!(out, "  as of {}", at(&account.as_of))?;
    }
    Ok(!found.is_empty())
}

fn cycles(found: &[CycleState], json: bool) -> anyhow::Result<bool> {
    if json {
        output::json(&found)?;
        return Ok(!found.is_empty());
    }
    let mut out = std::io::stdout().lock();
    for cycle in found {
        writeln!(
            out,
            "cycle {} of {}: {}, {} payments in the set, {} rounds",
            cycle.cycle,
            cycle.business_date,
            cycle.state,
            cycle.in_set.map_or_else(|| "?".to_owned(), output::count),
            cycle.rounds
        )?;
        let mut table = Table::new(
            "<<>>>>>>",
            &[
                "participant",
                "currency",
                "before",
                "paid",
                "received",
                "after",
                "settled",
                "dropped",
            ],
        );
        for result in &cycle.results {
            table.row(vec![
                result.participant.clone(),
                result.opening.currency.clone(),
                group(&result.opening.value),
                group(&result.paid.value),
                group(&result.received.value),
                group(&result.closing.value),
                output::count(result.settled.into()),
                output::count(result.dropped.into()),
            ]);
        }
        if !table.is_empty() {
            table.print(&mut out)?;
        }
    }
    Ok(!found.is_empty())
}
