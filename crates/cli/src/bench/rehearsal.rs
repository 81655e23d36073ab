//! `clearspan bench rehearsal`

mod table;

use std::fs;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::{Args, ValueEnum};
use clearspan_bench::rehearsal::report::{Report, Start, VERSION};
use clearspan_bench::rehearsal::{self, Options, Progress, ROWS, RowSpec};
use indicatif::{ProgressBar, ProgressStyle};

use crate::output;

/// The report, in the directory of a rehearsal.
const REPORT_FILE: &str = "rehearsal.json";

/// Receive, net and receipt packages beside urgent payments, on one cluster after another
#[derive(Debug, Args)]
#[command(after_help = "\
Every row is a cluster of its own: processes of this binary on loopback, with the distance between their sites. Nodes and \
load share this machine, so ratios within one run are what is worth quoting. The directory gets rehearsal.json, written \
after each row. docs/rehearsal.md says what each figure means.

Rows: single, km-0, km-20, km-50, km-70, regions, scale-1, scale-2, scale-4, lost-reception, lost-netting, lost-receipts.

Exit code 1: something does not hold (lost, doubled, out of order, a wrong sum), or a row could not be run.

Examples:
  clearspan bench rehearsal --quick
  clearspan bench rehearsal --out /tmp/rehearsal --rows single,km-0,km-70
  clearspan bench rehearsal --out /tmp/rehearsal --resume
  clearspan bench rehearsal --start both --package-len 5000 --rows single")]
pub(crate) struct Rehearsal {
    /// Directory for the report
    #[arg(long, default_value = "rehearsal")]
    out: PathBuf,
    /// Keep the rows that the directory's report has, and run the others
    #[arg(long)]
    resume: bool,
    /// A fiftieth of the load, in under two minutes: to see that everything works
    #[arg(long)]
    quick: bool,
    /// Rows by name; all when left out
    #[arg(long, value_delimiter = ',', value_name = "ROW")]
    rows: Vec<String>,
    /// Where the bytes of messages start
    #[arg(long, value_enum, default_value_t = Starts::Compact)]
    start: Starts,
    /// Non-urgent payments [default: 2000000, quick: 40000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    payments: Option<u64>,
    /// Payments of a package [default: 1000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    package_len: Option<u32>,
    /// From one package to the next, in microseconds; 0: as fast as answers come [default: 4000]
    #[arg(long)]
    package_interval_us: Option<u64>,
    /// Urgent payments, at least: they go on until receipts are read [default: 16000, quick: 200]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    urgent: Option<u64>,
    /// From one urgent payment to the next, in microseconds [default: 10000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(10..=10_000_000))]
    urgent_interval_us: Option<u64>,
    /// For how long urgent payments run alone before packages come, in milliseconds [default: 5000, quick: 700]
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=600_000))]
    alone_ms: Option<u64>,
    /// Participants; each hands one package in after the other [default: 100, quick: 20]
    #[arg(long, value_parser = clap::value_parser!(u16).range(2..=2000))]
    participants: Option<u16>,
    /// Shards [default: 4]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    shards: Option<u16>,
    /// Compact packages without names, accounts and references
    #[arg(long)]
    bare: bool,
    /// Share of one core for each node of a scaling row [default: 0.25]
    #[arg(long, value_parser = share)]
    share: Option<f64>,
    /// Where clusters are made and removed again; the system's directory for such things when left out
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Starts {
    /// Compact packages on the socket
    Compact,
    /// pacs.008 as XML on the socket
    Xml,
    /// Every row both ways
    Both,
}

impl Starts {
    fn all(self) -> &'static [Start] {
        match self {
            Self::Compact => &[Start::Compact],
            Self::Xml => &[Start::Xml],
            Self::Both => &[Start::Compact, Start::Xml],
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok();
    share
        .filter(|share| (0.1..=64.0).contains(share))
        .ok_or_else(|| "a share is from 0.1 to 64 cores".to_owned())
}

impl Rehearsal {
    pub(crate) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let options = self.options()?;
        let specs = self.specs()?;
        let path = self.out.join(REPORT_FILE);
        let mut report = if self.resume {
            kept(&path, &options)?
        } else {
            rehearsal::begin(&options)
        };
        fs::create_dir_all(&self.out).with_context(|| format!("create {}", self.out.display()))?;
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        let mut said = String::new();
        for spec in specs {
            for &start in self.start.all() {
                if report.row(spec.name, start).is_some() {
                    continue;
                }
                let shown = &mut |progress: Progress| match &bar {
                    Some(bar) => bar.set_message(say(&progress, true)),
                    None => {
                        let now = say(&progress, false);
                        if now != said {
                            eprintln!("{now}");
                            said = now;
                        }
                    }
                };
                rehearsal::run(spec, start, &options, &mut report, shown)
                    .with_context(|| format!("row {}", spec.name))?;
                write(&path, &report)?;
            }
        }
        if let Some(bar) = &bar {
            bar.finish_and_clear();
        }
        write(&path, &report)?;
        if json {
            output::json(&report)?;
        } else {
            table::print(&report, &path)?;
        }
        let hold = report.rows.iter().all(|row| row.checks.hold());
        Ok(if hold {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }

    fn options(&self) -> anyhow::Result<Options> {
        let program = std::env::current_exe().context("find this program")?;
        let dir = self.work_dir.clone().unwrap_or_else(std::env::temp_dir);
        ensure!(dir.is_dir(), "{} is no directory", dir.display());
        let mut options = if self.quick {
            Options::quick(program, dir)
        } else {
            Options::full(program, dir)
        };
        let load = &mut options.load;
        set(&mut load.payments, self.payments);
        set(&mut load.package_len, self.package_len);
        set(&mut load.package_interval_us, self.package_interval_us);
        set(&mut load.urgent, self.urgent);
        set(&mut load.urgent_interval_us, self.urgent_interval_us);
        set(&mut load.participants, self.participants);
        set(&mut load.shards, self.shards);
        load.text = !self.bare;
        set(&mut options.alone_ms, self.alone_ms);
        set(&mut options.share_cores, self.share);
        Ok(options)
    }

    fn specs(&self) -> anyhow::Result<Vec<&'static RowSpec>> {
        if self.rows.is_empty() {
            return Ok(ROWS.iter().collect());
        }
        let named = self.rows.iter().map(|name| {
            RowSpec::find(name).with_context(|| {
                let known: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
                format!("there is no row {name:?}; there are {}", known.join(", "))
            })
        });
        named.collect()
    }
}

fn set<T: Copy>(field: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *field = given;
    }
}

/// The report that is there, if it is of the same load; an empty one if there is none.
fn kept(path: &Path, options: &Options) -> anyhow::Result<Report> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => {
            return Ok(rehearsal::begin(options));
        }
        Err(fault) => return Err(fault).with_context(|| format!("read {}", path.display())),
    };
    let report: Report = serde_json::from_slice(&text)
        .with_context(|| format!("{} is no report of a rehearsal", path.display()))?;
    if report.version != VERSION {
        bail!(
            "{} has layout {}, this program writes {VERSION}: choose another --out",
            path.display(),
            report.version
        );
    }
    ensure!(
        report.load == options.load,
        "{} is of another load: give the same one, or choose another --out",
        path.display()
    );
    Ok(report)
}

/// Whole or not at all: a rehearsal that is ended while it writes keeps its rows.
fn write(path: &Path, report: &Report) -> anyhow::Result<()> {
    let text = serde_json::to_vec_pretty(report)?;
    let new = path.with_extension("new");
    fs::write(&new, text).with_context(|| format!("write {}", new.display()))?;
    fs::rename(&new, path).with_context(|| format!("write {}", path.display()))
}

fn say(progress: &Progress, counts: bool) -> String {
    let start = match progress.start {
        Start::Compact => "compact",
        Start::Xml => "XML",
    };
    let Progress {
        row,
        doing,
        done,
        of,
        ..
    } = progress;
    if counts && *of > 0 {
        let (done, of) = (output::count(*done), output::count(*of));
        format!("{row}, {start}: {doing}, {done} of {of}")
    } else {
        format!("{row}, {start}: {doing}")
    }
}
