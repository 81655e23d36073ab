//! A rehearsal's report for people.

use std::io::Write;
use std::path::Path;

use clearspan_bench::rehearsal::report::{HeldBy, Latency, Ratios, Report, Row, Start};

use crate::output::{Table, count, group};

pub(super) fn print(report: &Report, path: &Path) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let load = &report.load;
    writeln!(
        out,
        "{} payments in packages of {} every {} ms beside an urgent one every {} ms; {} participants, {} shards",
        count(load.payments),
        count(load.package_len.into()),
        load.package_interval_us as f64 / 1e3,
        load.urgent_interval_us as f64 / 1e3,
        count(load.participants.into()),
        load.shards
    )?;
    writeln!(
        out,
        "{} cores for all nodes and the load{}{}",
        report.machine.cores,
        report
            .machine
            .load_before
            .map(|load| format!(", load average before: {load}"))
            .unwrap_or_default(),
        if load.quick {
            "; a small scale: no figure is worth quoting"
        } else {
            ""
        }
    )?;
    phases(report, &mut out)?;
    urgent(report, &mut out)?;
    costs(report, &mut out)?;
    faults(report, &mut out)?;
    for row in report.rows.iter().filter(|row| !row.checks.hold()) {
        writeln!(out, "\nrow {} does not hold:", name(row))?;
        for example in &row.checks.examples {
            writeln!(out, "  {example}")?;
        }
    }
    writeln!(out, "\nReport: {}", path.display())?;
    Ok(())
}

fn name(row: &Row) -> String {
    match row.start {
        Start::Compact => row.name.clone(),
        Start::Xml => format!("{}, XML", row.name),
    }
}

fn phases(report: &Report, out: &mut impl Write) -> anyhow::Result<()> {
    let mut table = Table::new(
        "<>>>>>>>",
        &[
            "row",
            "reception s",
            "payments/s",
            "netting s",
            "receipts s",
            "payments/s",
            "to single",
            "to km-0",
        ],
    );
    for row in &report.rows {
        let phases = &row.phases;
        let rate = |rate: f64| group(&format!("{rate:.0}"));
        let ratio = |ratios: Option<Ratios>| {
            ratios.map_or_else(String::new, |ratios| format!("{:.2}", ratios.reception))
        };
        table.row(vec![
            name(row),
            format!("{:.2}", phases.reception.seconds),
            rate(phases.reception.payments_per_s),
            format!("{:.3}", phases.netting.seconds),
            format!("{:.2}", phases.receipts.seconds),
            rate(phases.receipts.payments_per_s),
            ratio(row.against_first),
            ratio(row.against_near),
        ]);
    }
    writeln!(
        out,
        "\nThree phases; reception's payments per second against those of other rows"
    )?;
    table.print(out)?;
    Ok(())
}

fn urgent(report: &Report, out: &mut impl Write) -> anyhow::Result<()> {
    let mut table = Table::new(
        "<<>>>>>>>",
        &[
            "row", "due", "count", "average", "p50", "p90", "p99", "p99.9", "max",
        ],
    );
    let mut line = |row: &Row, due: &str, latency: &Latency| {
        let ms = |value: f64| format!("{value:.2}");
        table.row(vec![
            name(row),
            due.to_owned(),
            count(latency.count),
            ms(latency.average_ms),
            ms(latency.p50_ms),
            ms(latency.p90_ms),
            ms(latency.p99_ms),
            ms(latency.p999_ms),
            ms(latency.max_ms),
        ]);
    };
    for row in &report.rows {
        if let Some(alone) = &row.urgent.alone {
            line(row, "alone", alone);
        }
        line(row, "before the cut", &row.urgent.before);
        line(row, "cut to receipts", &row.urgent.during);
        line(row, "overall", &row.urgent.overall);
    }
    writeln!(
        out,
        "\nUrgent payments, ms from when each was due until its answer"
    )?;
    table.print(out)?;
    Ok(())
}

fn costs(report: &Report, out: &mut impl Write) -> anyhow::Result<()> {
    let mut table = Table::new(
        "<>>>>>",
        &[
            "row",
            "CPU s per million",
            "of a node",
            "between sites B",
            "on disk B",
            "RSS max MB",
        ],
    );
    for row in &report.rows {
        let cost = &row.cost;
        let nodes = cost.nodes.iter();
        let most = nodes
            .clone()
            .filter_map(|node| node.cpu_s_per_million)
            .fold(None, |most: Option<f64>, one| {
                Some(most.map_or(one, |most| most.max(one)))
            });
        let rss = nodes.filter_map(|node| node.rss_max_bytes).max();
        let figure = |value: Option<f64>| value.map_or_else(String::new, |v| format!("{v:.2}"));
        table.row(vec![
            name(row),
            figure(cost.cpu_s_per_million),
            figure(most),
            format!("{:.0}", cost.wire_bytes_per_payment),
            format!("{:.0}", cost.disk_bytes_per_payment),
            rss.map_or_else(String::new, |bytes| count(bytes / 1_000_000)),
        ]);
    }
    writeln!(
        out,
        "\nCosts of the nodes, per payment; the load and the relay are not counted"
    )?;
    table.print(out)?;
    for row in &report.rows {
        if let Some(share) = &row.layout.share {
            let by = match share.held_by {
                HeldBy::CgroupV2 => "a control group (v2)",
                HeldBy::CgroupV1 => "a control group (v1)",
                HeldBy::Affinity => "affinity: shares are not the same with more nodes than cores",
            };
            writeln!(
                out,
                "  {}: each node held to {:.2} of a core by {by}",
                name(row),
                share.cores
            )?;
        }
    }
    Ok(())
}

fn faults(report: &Report, out: &mut impl Write) -> anyhow::Result<()> {
    let mut table = Table::new(
        "<<>>>>>><",
        &[
            "row",
            "site",
            "at s",
            "no answer s",
            "again: packages",
            "urgent",
            "reads",
            "back s",
            "record",
        ],
    );
    for row in &report.rows {
        let Some(fault) = &row.fault else { continue };
        let checks = &row.checks;
        table.row(vec![
            name(row),
            fault.site.clone(),
            format!("{:.2}", fault.at_s),
            format!("{:.2}", fault.longest_s),
            count(fault.retried.packages),
            count(fault.retried.urgent),
            count(fault.retried.reads),
            format!("{:.2}", fault.caught_up_s),
            if checks.hold() {
                format!(
                    "{} payments, on {}: all there, once, in order",
                    count(checks.acknowledged),
                    checks.nodes_read.join(" and ")
                )
            } else {
                "does not hold".to_owned()
            },
        ]);
    }
    if !table.is_empty() {
        writeln!(out, "\nA site lost")?;
        table.print(out)?;
    }
    Ok(())
}
