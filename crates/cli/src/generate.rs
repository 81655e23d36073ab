//! `clearspan generate`

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use clearspan_bench::generate::{Options, PackageCount, Version, Wrapping, example_day, generate};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::output::{self, count};

/// Write realistic input for a business day
#[derive(Debug, Args)]
#[command(after_help = "\
Writes participants.toml, inbox/, expected.jsonl (what each message and each payment that does not simply settle must come \
to) and, when everything can settle, expected-balances.csv. The same options write the same bytes. docs/generate.md \
describes the distributions.

Examples:
  clearspan generate /tmp/small
  clearspan generate /tmp/bulk --participants 500 --packages 2000x1000 --urgent 16000 --shortfall-percent 5
  clearspan generate examples/day2 --example")]
pub(crate) struct Generate {
    /// Directory to write; must not hold an inbox yet
    dir: PathBuf,
    /// Where every random draw starts
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Participants, 2 to 5000
    #[arg(long, default_value_t = 50)]
    participants: u32,
    /// Shards, 1 to 256; participants are dealt round
    #[arg(long, default_value_t = 4)]
    shards: u32,
    /// Currencies by code
    #[arg(long, value_delimiter = ',', default_value = "EUR,JPY,KWD")]
    currencies: Vec<String>,
    /// Packages as COUNTxPAYMENTS, several separated by commas
    #[arg(long, value_delimiter = ',', default_value = "8x500,4x1000,1x5000")]
    packages: Vec<PackageCount>,
    /// Urgent payments, each a message of its own
    #[arg(long, default_value_t = 100)]
    urgent: u32,
    /// Faulty payments inside packages, per million
    #[arg(long, default_value_t = 1000)]
    faulty_payments_ppm: u32,
    /// Faulty messages beside the good ones
    #[arg(long, default_value_t = 10)]
    faulty_messages: u32,
    /// Business date
    #[arg(long, default_value = "2026-11-30")]
    business_date: String,
    /// Parts of the day, 1 to 24; a netting cycle follows each
    #[arg(long, default_value_t = 3)]
    sections: u32,
    /// Version of pacs.008, 6 to 13
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u8).range(6..=13))]
    message_version: u8,
    /// Wrap each message with a business header (head.001)
    #[arg(long)]
    header: bool,
    /// Funds of a participant as a percentage of what it needs for everything to settle
    #[arg(long, default_value_t = 110)]
    coverage_percent: u32,
    /// Share of the participants that get two fifths of those funds instead, in percent
    #[arg(long, default_value_t = 0)]
    shortfall_percent: u32,
    /// Have participants number their messages
    #[arg(long)]
    sequenced: bool,
    /// Write the example day instead; all other options are ignored
    #[arg(long)]
    example: bool,
}

#[derive(Serialize)]
struct Made {
    dir: PathBuf,
    messages: u64,
    faulty_messages: u64,
    payments: u64,
    urgent: u64,
    faulty_payments: u64,
    written_bytes: u64,
    values: Vec<Value>,
}

#[derive(Serialize)]
struct Value {
    currency: String,
    value: String,
}

impl Generate {
    pub(crate) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let dir = self.dir.clone();
        if self.example {
            example_day(&dir)?;
            if json {
                output::json(&serde_json::json!({ "dir": dir }))?;
            } else {
                writeln!(std::io::stdout(), "The example day is in {}", dir.display())?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        let options = Options {
            seed: self.seed,
            out_dir: self.dir,
            participants: self.participants,
            shards: self.shards,
            currencies: self.currencies,
            packages: self.packages,
            urgent: self.urgent,
            faulty_payments_ppm: self.faulty_payments_ppm,
            faulty_messages: self.faulty_messages,
            business_date: self.business_date,
            sections: self.sections,
            version: Version::new(self.message_version).context("--message-version is 6 to 13")?,
            wrapping: if self.header {
                Wrapping::Message
            } else {
                Wrapping::Bare
            },
            coverage_percent: self.coverage_percent,
            shortfall_percent: self.shortfall_percent,
            sequenced: self.sequenced,
        };
        let bar = (!json && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(0);
            if let Ok(style) =
                ProgressStyle::with_template("writing messages {wide_bar} {pos}/{len} {eta}")
            {
                bar.set_style(style);
            }
            bar
        });
        let summary = generate(&options, &mut |progress| {
            if let Some(bar) = &bar {
                bar.set_length(progress.messages_total);
                bar.set_position(progress.messages);
            }
        })?;
        if let Some(bar) = &bar {
            bar.finish_and_clear();
        }
        let made = Made {
            dir,
            messages: summary.messages,
            faulty_messages: summary.faulty_messages,
            payments: summary.payments,
            urgent: summary.urgent,
            faulty_payments: summary.faulty_payments,
            written_bytes: summary.written_bytes,
            values: summary
                .values
                .into_iter()
                .map(|(currency, value)| Value { currency, value })
                .collect(),
        };
        if json {
            output::json(&made)?;
        } else {
            let mut out = std::io::stdout().lock();
            writeln!(
                out,
                "{} messages ({} faulty) with {} payments ({} urgent, {} faulty), {} bytes, in {}",
                count(made.messages),
                count(made.faulty_messages),
                count(made.payments),
                count(made.urgent),
                count(made.faulty_payments),
                count(made.written_bytes),
                made.dir.display()
            )?;
            writeln!(out, "Next: clearspan day {}", made.dir.display())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
