//! `clearspan status`

mod screen;

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use clearspan_lab::clock::{SECOND_NS, now_ns};
use clearspan_node::client::{Ask, Client};
use clearspan_node::overview::{Heard, Overview, sum_up, unasked};

use crate::output;
use crate::remote::{self, Remote};

/// Show a running cluster at a glance: nodes, quorum, leaders, lag, queues, cycles, round trips
#[derive(Debug, Args)]
#[command(after_help = "\
Nodes that are named are asked, and all others that they know of; what does not answer is what its peers say of it. \
Exit code 0 when all is well, 1 when something is not, 3 when no node answers. docs/format/status.md describes --json.

Example:
  clearspan status --node 127.0.0.1:7201,127.0.0.1:7202 --cert operator.crt --key operator.key --ca nodes-ca.crt
  clearspan status --watch")]
pub(crate) struct Status {
    #[command(flatten)]
    remote: Remote,
    /// Show it again every second, with what happens per second
    #[arg(long)]
    watch: bool,
}

const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// A node that says nothing for so long is shown as one that does not answer.
const LOOK_LIMIT: Duration = Duration::from_secs(2);

impl Status {
    pub(crate) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let mut asker = Asker::new(self.remote)?;
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let mut before: Option<(u64, Overview)> = None;
        if self.watch && !json {
            // Clears the screen once; later looks are drawn over it.
            print!("\x1b[2J");
        }
        loop {
            let at_ns = now_ns();
            let heard = asker.ask()?;
            let Some(overview) = sum_up(&heard) else {
                let why: Vec<String> = heard
                    .iter()
                    .filter_map(|one| one.answer.as_ref().err())
                    .cloned()
                    .collect();
                if !self.watch {
                    return nobody(&heard, &why.join("; "));
                }
                eprintln!("no node answers: {}", why.join("; "));
                std::thread::sleep(WATCH_INTERVAL);
                continue;
            };
            if json && self.watch {
                let mut out = std::io::stdout().lock();
                serde_json::to_writer(&mut out, &overview).map_err(std::io::Error::from)?;
                writeln!(out)?;
            } else if json {
                output::json(&overview)?;
            } else {
                let rates = before
                    .as_ref()
                    .map(|(then_ns, then)| rates(then, &overview, at_ns - then_ns));
                let text = screen::draw(&overview, rates.as_ref(), colour)?;
                print(&text, self.watch)?;
            }
            if !self.watch {
                return Ok(if overview.well {
                    ExitCode::SUCCESS
                } else {
                    ExitCode::FAILURE
                });
            }
            before = Some((at_ns, overview));
            std::thread::sleep(WATCH_INTERVAL);
        }
    }
}

fn nobody(heard: &[Heard], why: &str) -> anyhow::Result<ExitCode> {
    if heard.is_empty() {
        bail!("name a node: --node host:port");
    }
    eprintln!("error: no node answers: {why}");
    Ok(remote::unreachable())
}

/// Over what was drawn before, line by line, so that nothing flickers.
fn print(text: &str, over: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if over {
        write!(out, "\x1b[H")?;
        for line in text.lines() {
            writeln!(out, "{line}\x1b[K")?;
        }
        write!(out, "\x1b[J")?;
    } else {
        write!(out, "{text}")?;
    }
    out.flush()
}

/// What happens per second, between two looks.
#[derive(Debug, Default)]
struct Rates {
    accepted: u64,
    settled: u64,
    entries: u64,
    log_bytes: u64,
}

fn rates(then: &Overview, now: &Overview, passed_ns: u64) -> Rates {
    let per_second = |then: u64, now: u64| {
        let passed = u128::from(passed_ns.max(1));
        let gained = u128::from(now.saturating_sub(then)) * u128::from(SECOND_NS);
        u64::try_from(gained / passed).unwrap_or(u64::MAX)
    };
    let entries = |overview: &Overview| -> u64 {
        let shards = overview.shards.iter();
        shards.map(|shard| shard.committed_index).sum()
    };
    // Of nodes that answered both times: one that comes back has a whole log to show.
    let log = |overview: &Overview, other: &Overview| -> u64 {
        let both = overview.nodes.iter().filter(|node| {
            let other = other.nodes.iter().find(|known| known.node == node.node);
            other.is_some_and(|known| known.log_bytes.is_some())
        });
        both.filter_map(|node| node.log_bytes).sum()
    };
    let (old, new) = (&then.day.payments, &now.day.payments);
    Rates {
        accepted: per_second(old.accepted, new.accepted),
        settled: per_second(old.settled, new.settled),
        entries: per_second(entries(then), entries(now)),
        log_bytes: per_second(log(then, now), log(now, then)),
    }
}

/// Asks all nodes at once, and keeps the connections for the next time.
struct Asker {
    remote: Remote,
    clients: BTreeMap<String, Client>,
}

impl Asker {
    fn new(remote: Remote) -> anyhow::Result<Self> {
        let mut asker = Self {
            clients: BTreeMap::new(),
            remote,
        };
        for address in asker.remote.nodes.clone() {
            asker.add(address)?;
        }
        Ok(asker)
    }

    fn add(&mut self, address: String) -> anyhow::Result<()> {
        let client = self.remote.one(&address, LOOK_LIMIT)?;
        self.clients.insert(address, client);
        Ok(())
    }

    /// Those that are known, then those that they know of.
    fn ask(&mut self) -> anyhow::Result<Vec<Heard>> {
        let known: Vec<String> = self.clients.keys().cloned().collect();
        let mut heard = self.ask_these(&known);
        let new = unasked(&heard);
        for address in &new {
            self.add(address.clone())?;
        }
        heard.extend(self.ask_these(&new));
        Ok(heard)
    }

    fn ask_these(&mut self, addresses: &[String]) -> Vec<Heard> {
        std::thread::scope(|scope| {
            let asked: Vec<_> = self
                .clients
                .iter_mut()
                .filter(|(address, _)| addresses.contains(address))
                .map(|(address, client)| {
                    let ask = move || client.json(&Ask::get("/v1/status"));
                    (address.clone(), scope.spawn(ask))
                })
                .collect();
            asked
                .into_iter()
                .map(|(address, thread)| Heard {
                    address,
                    answer: match thread.join() {
                        Ok(answer) => answer.map_err(|error| error.to_string()),
                        Err(_) => Err("the look ended early".to_owned()),
                    },
                })
                .collect()
        })
    }
}
