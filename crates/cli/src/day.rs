//! `clearspan day`

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use clearspan_ledger::{BusinessDate, Timestamp};
use clearspan_node::clock::Clock;
use clearspan_node::day::{DayOptions, DayReport, Progress, run};
use clearspan_node::engine::{Engine, EngineOptions};
use clearspan_node::settings::Settings;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::{self, Table, count, group};

/// Run a business day on an embedded node
#[derive(Debug, Args)]
#[command(after_help = "\
DIR holds participants.toml and inbox/. Files are taken in the order of their names; sub-directories of inbox/ are parts \
of the day, a netting cycle follows each. The input is never changed. Output goes to OUT: outbox/<BIC>/ (pacs.002, \
camt.054, camt.053, pacs.029, the payments themselves), certificates/, statements/, and data/, the node's own. \
Run again on the same OUT it goes on where it was interrupted, settles nothing twice and says so.

Examples:
  clearspan day examples/day
  clearspan day examples/day --json | jq .summary.currencies
  clearspan generate /tmp/input --packages 200x1000 && clearspan day /tmp/input --out /tmp/output")]
pub(crate) struct Day {
    /// Directory with participants.toml and inbox/
    dir: PathBuf,
    /// Where output and data go [default: the name of DIR under out/]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Messages on their way at once; 1 settles each before the next and makes a day repeatable [default: 1 up to 1000
    /// files, else 256]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    window: Option<u16>,
    /// Threads that read messages and form documents [default: all cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Which clock the day runs by: "business" starts at 08:00 UTC of the business date, "system" is the machine's
    #[arg(long, value_enum, default_value = "business")]
    clock: ClockKind,
    /// Add a line of JSON to this file for every durable reply, as soon as it has come
    #[arg(long, value_name = "FILE")]
    acknowledgements: Option<PathBuf>,
    /// Megabytes (MiB) kept free on the volumes of the data: intake waits below that
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    disk_reserve_mib: u32,
    /// Take a snapshot of a shard's state after this much log (KiB): a restart reads no more than that
    #[arg(long, value_name = "KIB", default_value_t = 256 << 10, value_parser = clap::value_parser!(u32).range(1..))]
    snapshot_after_kib: u32,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ClockKind {
    Business,
    System,
}

impl Day {
    pub(crate) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let settings = Settings::read(&self.dir.join("participants.toml"))?;
        let out = match &self.out {
            Some(out) => out.clone(),
            None => Path::new("out").join(name_of(&self.dir)?),
        };
        let files = count_files(&self.dir.join("inbox"))?;
        let threads = match self.threads {
            Some(threads) => usize::from(threads),
            None => std::thread::available_parallelism().map_or(1, usize::from),
        };
        let options = DayOptions {
            input: self.dir.clone(),
            output: out.clone(),
            window_messages: self
                .window
                .map_or(if files <= 1000 { 1 } else { 256 }, usize::from),
            threads,
            acknowledgements: self.acknowledgements.clone(),
        };
        let clock = match self.clock {
            ClockKind::System => Clock::System,
            ClockKind::Business => Clock::business(morning(settings.business_date)),
        };
        let reserve_bytes = u64::from(self.disk_reserve_mib) << 20;
        let mut engine_options = EngineOptions {
            clock,
            snapshot_after_bytes: u64::from(self.snapshot_after_kib) << 10,
            ..EngineOptions::usual()
        };
        engine_options.log.reserve_bytes = reserve_bytes;
        engine_options.packages.reserve_bytes = reserve_bytes;
        let data = out.join("data");
        std::fs::create_dir_all(&out).with_context(|| format!("create {}", out.display()))?;
        if let (Ok(out), Ok(inbox)) = (out.canonicalize(), self.dir.join("inbox").canonicalize())
            && out.starts_with(&inbox)
        {
            bail!(
                "--out {} lies inside the inbox, which is never written to: give another",
                out.display()
            );
        }
        let engine = Engine::open(&data, settings.shards, engine_options)
            .with_context(|| format!("start the node in {}", data.display()))?;
        let bars = Bars::new(json);
        let report = run(&engine, &settings, &options, &mut |progress| {
            bars.show(&progress)
        });
        bars.clear();
        let report = report.with_context(|| format!("run the day of {}", self.dir.display()))?;
        engine.close();
        if json {
            output::json(&report)?;
        } else {
            print(&report, &settings)?;
        }
        // A day whose receipts do not add up to its ledger must not look like success, nor may one that came too late.
        Ok(if report.summary.reconciled == Some(false) {
            ExitCode::FAILURE
        } else if report.run.after_close > 0 {
            ExitCode::from(REFUSED)
        } else {
            ExitCode::SUCCESS
        })
    }
}

fn name_of(dir: &Path) -> anyhow::Result<String> {
    let full = dir
        .canonicalize()
        .with_context(|| format!("find {}", dir.display()))?;
    Ok(full.file_name().map_or_else(
        || "day".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    ))
}

fn count_files(inbox: &Path) -> anyhow::Result<usize> {
    let sections = clearspan_node::inbox::sections(inbox)
        .with_context(|| format!("list {}", inbox.display()))?;
    Ok(sections.iter().map(|section| section.files.len()).sum())
}

/// 08:00 UTC of a date: after every earliest reject time that a message of the night could ask for.
fn morning(date: BusinessDate) -> Timestamp {
    const HOUR_NS: u64 = 3_600_000_000_000;
    Timestamp::from_ns(u64::from(date.days()) * 24 * HOUR_NS + 8 * HOUR_NS)
}

struct Bars {
    bar: Option<ProgressBar>,
}

impl Bars {
    fn new(json: bool) -> Self {
        let bar = (!json && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(0);
            if let Ok(style) =
                ProgressStyle::with_template("{msg:<28} {wide_bar} {pos}/{len} {eta}")
            {
                bar.set_style(style);
            }
            bar
        });
        Self { bar }
    }

    fn show(&self, progress: &Progress) {
        let Some(bar) = &self.bar else { return };
        match progress {
            Progress::Reception {
                section,
                done,
                total,
            } => {
                bar.set_length(*total);
                bar.set_position(*done);
                bar.set_message(format!("receiving {section}"));
            }
            Progress::Netting { section } => bar.set_message(format!("netting after {section}")),
            Progress::Receipts { done, total } => {
                bar.set_length(*total);
                bar.set_position(*done);
                bar.set_message("writing documents");
            }
            // The node itself tells the operator.
            Progress::DiskFull { .. } => bar.set_message("waiting for room on the disk"),
        }
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn print(report: &DayReport, settings: &Settings) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let (summary, run) = (&report.summary, &report.run);
    writeln!(
        out,
        "Business day {}: {} participants, {} shards",
        summary.business_date,
        settings.participants.len(),
        settings.shards
    )?;
    writeln!(out)?;
    writeln!(
        out,
        "This run: {} files, {} messages taken in, {} repeated, {} held for a missing number, {} requests answered, {} not taken",
        count(run.files),
        count(run.taken),
        count(run.repeated),
        count(run.held),
        count(run.requests),
        count(run.not_taken.len() as u64)
    )?;
    if run.taken == 0 && run.repeated > 0 && run.cycles == 0 {
        writeln!(
            out,
            "Everything had been taken in before: nothing was settled again."
        )?;
    }
    if run.after_close > 0 {
        writeln!(
            out,
            "The business day had ended: {} messages came too late and were not taken. For another day, or another input, \
             give another --out.",
            count(run.after_close)
        )?;
    }
    for not_taken in run.not_taken.iter().take(NOT_TAKEN_SHOWN) {
        writeln!(out, "  not taken: {}: {}", not_taken.file, not_taken.why)?;
    }
    if run.not_taken.len() > NOT_TAKEN_SHOWN {
        writeln!(
            out,
            "  … and {} more; --json lists all",
            run.not_taken.len() - NOT_TAKEN_SHOWN
        )?;
    }
    writeln!(out)?;
    writeln!(
        out,
        "The day: {} messages ({} refused whole), {} payments",
        count(summary.messages),
        count(summary.messages_refused),
        count(summary.payments)
    )?;
    writeln!(
        out,
        "  urgent (gross): {} settled, {} of them after waiting in a queue; {} refused later; {} waiting",
        count(summary.gross.settled),
        count(summary.gross.settled_after_queue),
        count(summary.gross.refused),
        count(summary.gross.queued)
    )?;
    writeln!(
        out,
        "  netted: {} settled, {} not settled; cancelled: {}",
        count(summary.netted),
        count(summary.not_netted),
        count(summary.cancelled)
    )?;
    print_refused(&mut out, report)?;
    print_figures(&mut out, report)?;
    let seconds = &run.seconds;
    writeln!(
        out,
        "\nSeconds: founding {:.3}, reception {:.3}, netting {:.3}, closing {:.3}, receipts {:.3}",
        seconds.founding, seconds.reception, seconds.netting, seconds.closing, seconds.receipts
    )?;
    writeln!(
        out,
        "Log: {} bytes in {} durable writes; documents: {} written, {} already there",
        count(run.log_bytes),
        count(run.log_writes),
        count(run.documents_written),
        count(run.documents_kept)
    )?;
    match summary.reconciled {
        Some(true) => writeln!(
            out,
            "Reconciled: receipts = cycles = ledger, by count and by sum."
        )?,
        Some(false) => {
            writeln!(out, "NOT RECONCILED:")?;
            for difference in &summary.differences {
                writeln!(out, "  {difference}")?;
            }
        }
        None => {}
    }
    writeln!(out, "Output: {}", report.output.display())
}

/// Exit code of what a rule refused.
const REFUSED: u8 = 5;
/// Refused files listed for people.
const NOT_TAKEN_SHOWN: usize = 12;

fn print_refused(out: &mut impl std::io::Write, report: &DayReport) -> std::io::Result<()> {
    let mut table = Table::new("<>><", &["code", "messages", "payments", "refused because"]);
    for refused in &report.summary.refused {
        table.row(vec![
            refused.code.to_owned(),
            count(refused.messages),
            count(refused.payments),
            refused.text.to_owned(),
        ]);
    }
    if !table.is_empty() {
        writeln!(out)?;
        table.print(out)?;
    }
    Ok(())
}

fn print_figures(out: &mut impl std::io::Write, report: &DayReport) -> std::io::Result<()> {
    let summary = &report.summary;
    let mut table = Table::new(
        "<>>>>",
        &[
            "currency",
            "settled gross",
            "netted",
            "net value moved",
            "netting ratio",
        ],
    );
    for row in &summary.currencies {
        table.row(vec![
            row.currency.clone(),
            group(&row.gross_value.value),
            group(&row.netted_value.value),
            group(&row.net_value.value),
            row.netting_ratio_ppm
                .map_or_else(|| "-".to_owned(), percent),
        ]);
    }
    writeln!(out)?;
    table.print(out)?;
    let mut table = Table::new(
        "<>>>>",
        &["cycle", "in the set", "settled", "dropped", "rounds"],
    );
    for row in &summary.cycles {
        let name = if row.abandoned {
            format!("{} (given up)", row.cycle)
        } else {
            row.cycle.to_string()
        };
        table.row(vec![
            name,
            count(row.in_set),
            count(row.settled),
            count(row.dropped),
            row.rounds.to_string(),
        ]);
    }
    if !table.is_empty() {
        writeln!(out)?;
        table.print(out)?;
    }
    let mut table = Table::new(
        "<<>>>",
        &["participant", "currency", "before", "after", "credit line"],
    );
    for row in summary.accounts.iter().take(ACCOUNTS_SHOWN) {
        table.row(vec![
            row.participant.clone(),
            row.before.currency.clone(),
            group(&row.before.value),
            group(&row.after.value),
            group(&row.credit_line.value),
        ]);
    }
    writeln!(out)?;
    table.print(out)?;
    if summary.accounts.len() > ACCOUNTS_SHOWN {
        writeln!(
            out,
            "  … and {} more; --json lists all",
            summary.accounts.len() - ACCOUNTS_SHOWN
        )?;
    }
    Ok(())
}

/// Accounts listed for people.
const ACCOUNTS_SHOWN: usize = 60;

/// Parts per million as a percentage with one decimal: `87.5 %`.
fn percent(ppm: u64) -> String {
    format!("{}.{} %", ppm / 10_000, ppm % 10_000 / 1000)
}
