//! The plan for people.

use std::io::Write;

use clearspan_plan::{Entry, Plan, Rpo, Serves, SiteTakes, Verdict};

use super::Answer;
use crate::output::{self, Table};

impl Answer {
    pub(super) fn print(&self, all: bool) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        let plan = &self.plan;
        if let Some(found) = &self.cheapest {
            writeln!(
                out,
                "Cheapest that survives {}: {} ({}, {})\n",
                found.failure,
                found.sites,
                output::some(usize::from(found.data_nodes), "data node"),
                match found.witnesses {
                    0 => "no witness".to_owned(),
                    1 => "1 witness".to_owned(),
                    count => format!("{count} witnesses"),
                }
            )?;
        }
        head(plan, &mut out)?;
        leaders(plan, &mut out)?;
        lines(plan, &mut out)?;
        needs(plan, &mut out)?;
        let shards = plan.layout.shards();
        writeln!(out, "\nOne failure")?;
        verdicts(shards, &plan.singles.iter().collect::<Vec<_>>(), &mut out)?;
        doubles(shards, &plan.doubles, all, &mut out)?;
        writeln!(
            out,
            "
  taken at: A:2 when A takes the payments of 2 shards only
  RPO: acknowledged payments that are lost; * if the disks of what failed come back
  pause: to the next acknowledgement, when connections break at once / when there is only silence
\nTo found it: {}",
            self.init
        )?;
        Ok(())
    }
}

fn head(plan: &Plan, out: &mut impl Write) -> std::io::Result<()> {
    let witnesses: u16 = plan.layout.sites().iter().map(|site| site.witnesses).sum();
    writeln!(
        out,
        "{}: {}, each on {} and {}",
        plan.layout.sites_text(),
        output::some(usize::from(plan.layout.shards()), "shard"),
        output::some(usize::from(plan.layout.copies()), "data node"),
        match witnesses {
            0 => "no witness".to_owned(),
            1 => "1 witness".to_owned(),
            count => format!("{count} witnesses"),
        }
    )
}

fn leaders(plan: &Plan, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(
        out,
        "\nAn urgent payment: one round trip to the nearest quorum, and {} ms that need no distance",
        ms(plan.timing.local_ns)
    )?;
    let head = [
        "led at",
        "shards",
        "quorum RTT ms",
        "answer ms",
        "if it enters elsewhere, ms",
    ];
    let mut table = Table::new("<>>><", &head);
    for leader in &plan.leaders {
        let elsewhere = leader.answer_from_ns.iter();
        let elsewhere: Vec<String> = elsewhere
            .map(|(site, ns)| format!("{site} {}", ms(*ns)))
            .collect();
        table.row(vec![
            leader.site.clone(),
            leader.shards.to_string(),
            ms(leader.quorum_rtt_ns),
            ms(leader.answer_ns),
            or_dash(elsewhere.join(", ")),
        ]);
    }
    table.print(out)
}

fn lines(plan: &Plan, out: &mut impl Write) -> std::io::Result<()> {
    let load = plan.load;
    writeln!(
        out,
        "\nBetween sites, with {} non-urgent payments/s ({} bytes per copy) and {} urgent ({}),\nentering at {}",
        output::count(load.bulk_per_s),
        load.bulk_bytes,
        output::count(load.urgent_per_s),
        output::count(load.urgent_bytes),
        match load.entry {
            Entry::Any => "any data site",
            Entry::Leader => "their leader",
        }
    )?;
    if plan.links.is_empty() {
        return writeln!(out, "  one site: nothing");
    }
    let head = [
        "from",
        "to",
        "RTT ms",
        "copies MB/s",
        "forwarded MB/s",
        "Mbit/s",
        "under way",
    ];
    let mut table = Table::new("<<>>>>>", &head);
    for link in &plan.links {
        let both = link
            .replication_bytes_per_s
            .saturating_add(link.forwarding_bytes_per_s);
        table.row(vec![
            link.from.clone(),
            link.to.clone(),
            ms(link.rtt_ns),
            tenths(link.replication_bytes_per_s, 1_000_000),
            tenths(link.forwarding_bytes_per_s, 1_000_000),
            tenths(both.saturating_mul(8), 1_000_000),
            output::bytes(link.window_bytes),
        ]);
    }
    table.print(out)
}

fn needs(plan: &Plan, out: &mut impl Write) -> std::io::Result<()> {
    let under_way = plan.under_way;
    writeln!(
        out,
        "\nThe busiest node leads {} payments/s, {} under way. It takes up {},\nso over this distance at most {} payments/s",
        output::count(under_way.led_per_s),
        output::bytes(under_way.bytes),
        output::bytes(under_way.max_bytes),
        output::count(under_way.ceiling_per_s),
    )?;
    if under_way.bytes > under_way.max_bytes {
        writeln!(
            out,
            "TOO MUCH: let more nodes lead (--sites), or plan for less (--bulk-per-second, --bulk-bytes)"
        )?;
    }
    let sockets = &plan.sockets;
    writeln!(
        out,
        "The busiest connection has {} on the line and wants buffers of {}",
        output::bytes(sockets.window_bytes),
        output::bytes(sockets.buffer_bytes)
    )?;
    let whose = if sockets.kernel.is_some() {
        "This kernel"
    } else {
        "Linux"
    };
    if sockets.sysctl.is_empty() {
        return writeln!(out, "{whose} allows that");
    }
    writeln!(out, "{whose} allows less; on every node, in sysctl.conf:")?;
    for line in &sockets.sysctl {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

fn doubles(shards: u16, found: &[Verdict], all: bool, out: &mut impl Write) -> std::io::Result<()> {
    let harmful =
        |verdict: &&Verdict| all || verdict.serves != Serves::All || verdict.rpo != Rpo::Nothing;
    let shown: Vec<&Verdict> = found.iter().filter(harmful).collect();
    let survived = found.len() - shown.len();
    if all {
        writeln!(out, "\nTwo failures")?;
    } else {
        writeln!(
            out,
            "\nTwo failures: {} of {} kinds are survived without loss (--all lists them); these are not",
            survived,
            found.len()
        )?;
    }
    if shown.is_empty() {
        return writeln!(out, "  none");
    }
    verdicts(shards, &shown, out)
}

fn verdicts(shards: u16, found: &[&Verdict], out: &mut impl Write) -> std::io::Result<()> {
    let head = [
        "failure",
        "serves",
        "taken at",
        "RPO",
        "pause ms",
        "answer ms",
    ];
    let mut table = Table::new("<<<<>>", &head);
    for verdict in found {
        table.row(vec![
            verdict.failure.clone(),
            match verdict.serves {
                Serves::All => "yes".to_owned(),
                Serves::SomeShards => format!("{} of {shards}", verdict.shards_served),
                Serves::Nothing => "NO".to_owned(),
            },
            taken_at(verdict),
            match verdict.rpo {
                Rpo::Nothing => "0",
                Rpo::NothingWithDisks => "0 *",
            }
            .to_owned(),
            match (verdict.pause_seen_ns, verdict.pause_silent_ns) {
                (Some(0), Some(0)) => "none".to_owned(),
                (Some(seen), Some(silent)) if seen == silent => whole_ms(silent),
                (Some(seen), Some(silent)) => format!("{} / {}", whole_ms(seen), whole_ms(silent)),
                _ => "-".to_owned(),
            },
            verdict.answer_ns.map_or_else(|| "-".to_owned(), ms),
        ]);
    }
    table.print(out)
}

/// The sites, with how many shards' payments each takes where that differs.
fn taken_at(verdict: &Verdict) -> String {
    if verdict.shards_served == 0 {
        return "-".to_owned();
    }
    let alike = verdict
        .takes
        .iter()
        .all(|takes| takes.shards == verdict.shards_served);
    if alike && verdict.takes.len() > 1 {
        return "all sites left".to_owned();
    }
    let one = |takes: &SiteTakes| {
        if takes.shards == verdict.shards_served {
            takes.site.clone()
        } else {
            format!("{}:{}", takes.site, takes.shards)
        }
    };
    let takes = verdict.takes.iter().filter(|takes| takes.shards > 0);
    takes.map(one).collect::<Vec<_>>().join(" ")
}

fn or_dash(text: String) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        text
    }
}

/// Nanoseconds as milliseconds with two decimals.
fn ms(ns: u64) -> String {
    let hundredths = ns / 10_000;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

fn whole_ms(ns: u64) -> String {
    output::count(ns / 1_000_000)
}

/// With one decimal.
fn tenths(number: u64, unit: u64) -> String {
    let tenths = number / (unit / 10);
    output::group(&format!("{}.{}", tenths / 10, tenths % 10))
}
