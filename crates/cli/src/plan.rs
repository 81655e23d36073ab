//! `clearspan plan`

mod show;
mod write;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use clearspan_lab::topology::{self, Quality, Topology};
use clearspan_plan::{
    Entry, Kernel, Layout, Load, Plan, Site, Survive, Surviving, Timing, cheapest,
};
use serde::Serialize;

use crate::output;
use crate::place::SitesAndDistances;

/// Compute what a cluster's sites, distances and load cost and survive, without running anything
#[derive(Debug, Args)]
#[command(after_help = "\
What every figure rests on is in docs/plan.md. Measured figures are the defaults; put your own in their place.

Example:
  clearspan plan --sites A:3,B:3,W:witness --km 70
  clearspan plan --preset tokyo-seoul-singapore --bulk-per-second 50000
  clearspan plan --sites A:1,B:1,C:1 --rtt-ms A-B=1,A-C=8,B-C=9 --survive site+node
  clearspan plan --sites A:1,B:1,W:witness --km 70 --write settings.toml")]
pub(crate) struct PlanCommand {
    #[command(flatten)]
    place: SitesAndDistances,
    /// How many shards; fixed for good when a cluster is founded
    #[arg(long, default_value_t = 4)]
    shards: u16,
    /// How many data nodes hold each shard; all of them when not given
    #[arg(long, value_name = "NODES")]
    copies: Option<u16>,
    /// Non-urgent payments per second at the peak: by default a package of 1,000 each 4 ms
    #[arg(long, value_name = "PAYMENTS", default_value_t = 250_000)]
    bulk_per_second: u64,
    /// Urgent payments per second: by default one each 10 ms
    #[arg(long, value_name = "PAYMENTS", default_value_t = 100)]
    urgent_per_second: u64,
    /// What one non-urgent payment is on its way to one replica: 370 with its text, 69 without
    #[arg(long, value_name = "BYTES", default_value_t = 370)]
    bulk_bytes: u64,
    /// The same of an urgent payment, with the credit advice that it sends to another shard
    #[arg(long, value_name = "BYTES", default_value_t = 1_500)]
    urgent_bytes: u64,
    /// Where payments enter: evenly at all data sites, or at their shard's leader
    #[arg(long, default_value = "any")]
    entry: EntryWord,
    /// An urgent payment's time without distance: one fsync and the work of client and node, in ms
    #[arg(long, default_value = "1.45")]
    local_ms: String,
    /// Find the cheapest layout over these sites that survives this: node, site, line, joined by + (site+node), or two-nodes,
    /// two-sites, two-lines
    #[arg(long, value_name = "FAILURE")]
    survive: Option<String>,
    /// List every double failure, not only those that stop something
    #[arg(long)]
    all: bool,
    /// Write the node settings that the plan asks for, to be given to `clearspan init --settings`
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EntryWord {
    Any,
    Leader,
}

/// The answer.
#[derive(Debug, Serialize)]
struct Answer {
    /// What was asked for; with `--survive`, the layout found.
    #[serde(flatten)]
    plan: Plan,
    #[serde(skip_serializing_if = "Option::is_none")]
    cheapest: Option<Surviving>,
    /// How to found it.
    init: String,
}

impl PlanCommand {
    pub(crate) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let topology = self.place.topology(Quality::default())?;
        let asked = layout(topology, self.shards, self.copies)?;
        let local_ns = topology::ms(&self.local_ms).context("--local-ms")?;
        let load = Load {
            bulk_per_s: self.bulk_per_second,
            urgent_per_s: self.urgent_per_second,
            bulk_bytes: self.bulk_bytes,
            urgent_bytes: self.urgent_bytes,
            entry: match self.entry {
                EntryWord::Any => Entry::Any,
                EntryWord::Leader => Entry::Leader,
            },
        };
        let cheapest = match &self.survive {
            Some(text) => {
                let timing = Timing::of(&asked, local_ns);
                Some(cheapest(&asked, &Survive::parse(text)?, timing)?)
            }
            None => None,
        };
        let layout = cheapest
            .as_ref()
            .map_or(asked, |found| found.layout.clone());
        let timing = Timing::of(&layout, local_ns);
        let plan = Plan::new(layout, timing, load, kernel());
        let init = write::init_command(&plan, self.write.as_deref());
        if let Some(path) = &self.write {
            fs::write(path, write::settings(&plan))
                .with_context(|| format!("write {}", path.display()))?;
        }
        let answer = Answer {
            plan,
            cheapest,
            init,
        };
        if json {
            output::json(&answer)?;
        } else {
            answer.print(self.all)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Sites and lines as the planner wants them: both have pairs in the same order.
fn layout(topology: Topology, shards: u16, copies: Option<u16>) -> anyhow::Result<Layout> {
    let site = |site: topology::Site| Site {
        name: site.name,
        data_nodes: site.data_nodes,
        witnesses: site.witnesses,
    };
    let rtts = topology.pairs.iter().map(|pair| pair.rtt_ns).collect();
    let sites = topology.sites.into_iter().map(site).collect();
    Ok(Layout::new(sites, rtts, shards, copies)?)
}

/// What this machine's kernel allows; `None` where it does not say.
fn kernel() -> Option<Kernel> {
    let read = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok()?;
        let numbers: Vec<u64> = text
            .split_whitespace()
            .map(|word| word.parse().ok())
            .collect::<Option<_>>()?;
        <[u64; 3]>::try_from(numbers).ok()
    };
    Some(Kernel {
        tcp_rmem: read("tcp_rmem")?,
        tcp_wmem: read("tcp_wmem")?,
    })
}
