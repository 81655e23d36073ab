//! The screen of `clearspan status`: at most 100 columns whatever the cluster, readable without colour.

use std::fmt::Write as _;

use clearspan_node::api::{EndedCycle, ShardPeer};
use clearspan_node::overview::{Node, NodeHealth, Overview, Shard, is_known};

use super::Rates;
use crate::output::{Table, bytes, count, some, wrap};

const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const BOLD: &str = "1";

/// No line is longer.
const COLUMNS: usize = 100;
/// Where what a line of the head says begins.
const HEAD_INDENT: usize = 12;
/// Shards that are shown one by one; of more, those with something to tell.
const SHARDS_SHOWN: usize = 16;
/// Nodes that are columns beside a shard; of more, only those that are behind are named.
const NODE_COLUMNS_MAX: usize = 8;
/// Nodes that are named in a cell.
const NAMES_SHOWN: usize = 2;
/// Troubles that are shown.
const TROUBLES_SHOWN: usize = 12;

struct Paint(bool);

impl Paint {
    fn paint(&self, colour: &str, text: &str) -> String {
        if self.0 {
            format!("\x1b[{colour}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

pub(super) fn draw(
    overview: &Overview,
    rates: Option<&Rates>,
    colour: bool,
) -> anyhow::Result<String> {
    let paint = Paint(colour);
    let mut text = String::new();
    head(&mut text, overview, rates, &paint)?;
    text.push('\n');
    text.push_str(&nodes(overview, &paint)?);
    text.push('\n');
    text.push_str(&shards(overview)?);
    let rtt = round_trips(overview)?;
    if !rtt.is_empty() {
        text.push('\n');
        text.push_str(&rtt);
    }
    Ok(text)
}

fn head(
    text: &mut String,
    overview: &Overview,
    rates: Option<&Rates>,
    paint: &Paint,
) -> anyhow::Result<()> {
    let quorum = &overview.quorum;
    let verdict = if overview.well {
        paint.paint(GREEN, "ALL WELL")
    } else {
        paint.paint(RED, &some(overview.troubles.len(), "trouble"))
    };
    let short = overview.cluster.get(..8).unwrap_or(&overview.cluster);
    writeln!(text, "  cluster {short}…  {verdict}  {}", overview.time)?;
    let ready = overview
        .nodes
        .iter()
        .filter(|node| node.health == NodeHealth::Ready)
        .count();
    let sites_up = overview
        .sites
        .iter()
        .filter(|site| site.nodes_up > 0)
        .count();
    writeln!(
        text,
        "  sites     {sites_up} of {} up, {ready} of {} nodes ready",
        overview.sites.len(),
        overview.nodes.len(),
    )?;
    let newcomers = match quorum.newcomers.len() {
        0 => String::new(),
        1 => format!("; {} does not vote yet", quorum.newcomers.concat()),
        some => format!("; {some} nodes do not vote yet"),
    };
    let line = format!(
        "  quorum    {} of {} shards served, {} of {} voters up (majority {}); may lose {}{newcomers}",
        quorum.shards_served,
        quorum.shards,
        quorum.voters_up,
        quorum.voters,
        quorum.majority,
        quorum.may_lose()
    );
    writeln!(text, "{}", wrap(&line, COLUMNS, HEAD_INDENT))?;
    let leads: Vec<String> = overview
        .sites
        .iter()
        .map(|site| {
            let shards: Vec<String> = site.leads.iter().map(u16::to_string).collect();
            let shards = if shards.len() > SHARDS_SHOWN {
                count(shards.len() as u64)
            } else {
                shards.join(" ")
            };
            format!(
                "{}: {}",
                site.site,
                if shards.is_empty() { "-" } else { &shards }
            )
        })
        .collect();
    let line = format!("  leaders   {}", leads.join("   "));
    writeln!(text, "{}", wrap(&line, COLUMNS, HEAD_INDENT))?;
    day(text, overview)?;
    if let Some(rates) = rates {
        let line = format!(
            "  a second  {} payments accepted, {} settled, {} entries, {} of log on all nodes",
            count(rates.accepted),
            count(rates.settled),
            count(rates.entries),
            bytes(rates.log_bytes)
        );
        writeln!(text, "{}", wrap(&line, COLUMNS, HEAD_INDENT))?;
    }
    for trouble in overview.troubles.iter().take(TROUBLES_SHOWN) {
        let trouble = wrap(trouble, COLUMNS - 4, 4);
        writeln!(text, "  {} {trouble}", paint.paint(RED, "!"))?;
    }
    let more = overview.troubles.len().saturating_sub(TROUBLES_SHOWN);
    if more > 0 {
        writeln!(
            text,
            "  {} and {more} more, see --json",
            paint.paint(RED, "!")
        )?;
    }
    Ok(())
}

fn day(text: &mut String, overview: &Overview) -> anyhow::Result<()> {
    let day = &overview.day;
    let payments = &day.payments;
    let open = match &day.business_day {
        Some(date) => format!("{date} open"),
        None => "none open".to_owned(),
    };
    let line = format!(
        "  day       {open}, {}; payments: {} accepted, {} settled, {} wait",
        some(day.participants, "participant"),
        count(payments.accepted),
        count(payments.settled),
        count(payments.netting + payments.queued),
    );
    writeln!(text, "{}", wrap(&line, COLUMNS, HEAD_INDENT))?;
    let line = format!(
        "            ({} for netting, {} queued); {} refused, {} refused later, {} cancelled",
        count(payments.netting),
        count(payments.queued),
        count(payments.refused),
        count(payments.ended),
        count(payments.cancelled)
    );
    writeln!(text, "{}", wrap(&line, COLUMNS, HEAD_INDENT))?;
    let running = match &overview.cycles.running {
        None => "none runs".to_owned(),
        Some(cycle) => format!("{} is {}, round {}", cycle.cycle, cycle.phase, cycle.round),
    };
    let last: Vec<String> = overview.cycles.last.iter().map(ended).collect();
    let last = if last.is_empty() {
        "-".to_owned()
    } else {
        last.join(", ")
    };
    let line = format!("  cycles    {running}; last: {last}");
    writeln!(text, "{}", wrap(&line, COLUMNS, HEAD_INDENT))?;
    Ok(())
}

fn ended(cycle: &EndedCycle) -> String {
    if cycle.state == "settled" {
        let millis = cycle.duration_ns / 1_000_000;
        format!(
            "{} settled {}/{} in {millis} ms",
            cycle.cycle,
            count(cycle.settled),
            count(cycle.in_set)
        )
    } else {
        format!("{} {}", cycle.cycle, cycle.state)
    }
}

fn nodes(overview: &Overview, paint: &Paint) -> anyhow::Result<String> {
    let mut table = Table::new(
        "<<<><>>>>>",
        &[
            "node",
            "site",
            "state",
            "leads",
            "behind",
            "in flight",
            "wait u/b",
            "to log",
            "to peers",
            "disk free",
        ],
    );
    for node in &overview.nodes {
        let known = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        table.row(vec![
            node.node.clone(),
            node.site.clone(),
            state(node),
            node.leads.len().to_string(),
            behind(node),
            known(node.lag.map(|lag| count(lag.in_flight_entries))),
            known(
                node.queues
                    .map(|queues| format!("{}/{}", count(queues.urgent), count(queues.bulk))),
            ),
            known(node.queues.map(|queues| count(queues.log_writes))),
            known(node.link_queue_bytes.map(bytes)),
            known(node.free_bytes.map(bytes)),
        ]);
    }
    let mut text = String::new();
    for (row, line) in table.lines_within(COLUMNS) {
        let node = row.checked_sub(1).and_then(|at| overview.nodes.get(at));
        let colour = match node.map(|node| (node.health, node.catching_up.is_empty())) {
            None => Some(BOLD),
            Some((NodeHealth::Ready, true)) => None,
            Some((NodeHealth::Ready | NodeHealth::Unheard, _)) => Some(YELLOW),
            Some((NodeHealth::NotReady | NodeHealth::Down, _)) => Some(RED),
        };
        match colour {
            Some(colour) => writeln!(text, "{}", paint.paint(colour, &line))?,
            None => writeln!(text, "{line}")?,
        }
    }
    Ok(text)
}

fn state(node: &Node) -> String {
    let health = match node.health {
        NodeHealth::Ready => "ready",
        NodeHealth::NotReady => "not ready",
        NodeHealth::Unheard => "no answer",
        NodeHealth::Down => "DOWN",
    };
    if let Some(shard) = node.catching_up.first() {
        let progress = &shard.progress;
        let (have, all) = (progress.have_bytes, progress.state_bytes);
        // Packages follow once the state is here.
        let percent = have.saturating_mul(100).checked_div(all).unwrap_or(0);
        let part = if progress.packages {
            "packages".to_owned()
        } else {
            format!("{percent} %")
        };
        return format!("catch-up {} ({part})", shard.shard);
    }
    match (node.kind.as_str(), node.health) {
        ("witness", NodeHealth::Ready) => "witness".to_owned(),
        ("witness", _) => format!("{health} (witness)"),
        _ => health.to_owned(),
    }
}

fn behind(node: &Node) -> String {
    let Some(lag) = &node.lag else {
        return "?".to_owned();
    };
    if lag.entries == 0 {
        return "0".to_owned();
    }
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let seconds = lag.ns as f64 / 1e9;
    let decimals = usize::from(seconds < 10.0);
    format!(
        "{}, {}, {seconds:.decimals$} s",
        count(lag.entries),
        bytes(lag.bytes)
    )
}

/// A row per shard, a column per node: entries that it is behind, `+` those of them in flight.
fn shards(overview: &Overview) -> anyhow::Result<String> {
    let columns = overview.nodes.len() <= NODE_COLUMNS_MAX;
    let mut head = vec!["shard", "leader", "term", "committed", "waiting", "states"];
    let mut alignment = "><>>><".to_owned();
    if columns {
        head.extend(overview.nodes.iter().map(|node| node.node.as_str()));
        alignment.push_str(&">".repeat(overview.nodes.len()));
    } else {
        head.push("behind");
        alignment.push('<');
    }
    let mut table = Table::of(alignment, &head);
    let all = overview.shards.len();
    let shown = overview
        .shards
        .iter()
        .filter(|shard| all <= SHARDS_SHOWN || tells(shard));
    let mut rows = 0;
    for shard in shown.take(SHARDS_SHOWN) {
        rows += 1;
        let mut row = vec![
            shard.shard.to_string(),
            shard.leader.clone().unwrap_or_else(|| "NONE".to_owned()),
            count(shard.term),
            count(shard.committed_index),
            count(shard.waiting),
            match shard.digests_agree {
                Some(true) => "same",
                Some(false) => "DIFFER",
                None => "-",
            }
            .to_owned(),
        ];
        if columns {
            row.extend(overview.nodes.iter().map(|node| cell(shard, &node.node)));
        } else {
            row.push(late(shard));
        }
        table.row(row);
    }
    let mut text = drawn(&table)?;
    if rows < all {
        writeln!(text, "  {} more", some(all - rows, "shard"))?;
    }
    Ok(text)
}

fn drawn(table: &Table) -> anyhow::Result<String> {
    let mut text = String::new();
    for (_, line) in table.lines_within(COLUMNS) {
        writeln!(text, "{line}")?;
    }
    Ok(text)
}

/// Those that are furthest behind.
fn late(shard: &Shard) -> String {
    let mut late: Vec<&ShardPeer> = shard.peers.iter().collect();
    late.retain(|peer| peer.lag_entries > 0);
    late.sort_by_key(|peer| std::cmp::Reverse(peer.lag_entries));
    let mut named: Vec<String> = late
        .iter()
        .take(NAMES_SHOWN)
        .map(|peer| format!("{} {}", peer.node, lag(peer)))
        .collect();
    if late.len() > NAMES_SHOWN {
        named.push(format!("and {} more", late.len() - NAMES_SHOWN));
    }
    named.join("  ")
}

fn tells(shard: &Shard) -> bool {
    shard.leader.is_none()
        || shard.digests_agree == Some(false)
        || shard.peers.iter().any(|peer| peer.state != "replicate")
}

fn cell(shard: &Shard, node: &str) -> String {
    if shard.leader.as_deref() == Some(node) {
        return "leads".to_owned();
    }
    match shard.peers.iter().find(|peer| peer.node == node) {
        Some(peer) => lag(peer),
        None => "?".to_owned(),
    }
}

fn lag(peer: &ShardPeer) -> String {
    if !is_known(peer) {
        return "?".to_owned();
    }
    let entries = count(peer.lag_entries);
    match (peer.state.as_str(), peer.in_flight_entries) {
        ("probe", _) => format!("{entries} probe"),
        ("snapshot", _) => format!("{entries} snap"),
        (_, 0) => entries,
        (_, in_flight) => format!("{entries}+{}", count(in_flight)),
    }
}

/// p50/p99 in milliseconds, from the row's site to the column's.
fn round_trips(overview: &Overview) -> anyhow::Result<String> {
    if overview.rtt.is_empty() {
        return Ok(String::new());
    }
    let mut head = vec!["round trip p50/p99 ms"];
    head.extend(overview.sites.iter().map(|site| site.site.as_str()));
    let mut table = Table::of(format!("<{}", ">".repeat(overview.sites.len())), &head);
    for from in &overview.sites {
        let mut row = vec![from.site.clone()];
        row.extend(overview.sites.iter().map(|to| {
            let found = overview
                .rtt
                .iter()
                .find(|rtt| rtt.from == from.site && rtt.to == to.site);
            found.map_or_else(
                || "-".to_owned(),
                |rtt| format!("{:.2}/{:.2}", rtt.p50_ms, rtt.p99_ms),
            )
        }));
        table.row(row);
    }
    drawn(&table)
}

#[cfg(test)]
mod tests;
