//! The example day: a small inbox that can be checked by hand, with one file per rule of the house.
//!
//! `cases_morning` and `cases_noon` are the script, in the order the files are read. Everything written here is
//! repeatable, and a test holds `examples/day` to it.

mod build;
mod cases_morning;
mod cases_noon;
mod readme;
mod requests;
mod wire;

use std::path::Path;

use super::Error;
use super::manifest::{Manifest, PaymentResult};
use super::participants;
use super::writer::{create_dir, write};
use build::Example;

/// Participants by their place in the list.
const ALFA: usize = 0;
const BRAV: usize = 1;
const CHAR: usize = 2;
const DELT: usize = 3;
const ECHO: usize = 4;
const FOXT: usize = 5;
const GOLF: usize = 6;
const HOTL: usize = 7;
const INDI: usize = 8;
const JULI: usize = 9;
const KILO: usize = 10;
const LIMA: usize = 11;
const MIKE: usize = 12;

/// The business day of the example.
const BUSINESS_DATE: &str = "2026-11-30";
const SHARDS: u32 = 4;
const SECTIONS: [&str; 2] = ["01-morning", "02-noon"];

/// Writes the example day into `out`: `participants.toml`, `inbox/`, `expected.jsonl`, `expected-balances.csv` and
/// `README.md`, which says of every file what it is, what comes out and why.
///
/// # Errors
///
/// An inbox that is there already, or a file that cannot be written.
pub fn example_day(out: &Path) -> Result<(), Error> {
    let inbox = out.join("inbox");
    if inbox.exists() {
        return Err(Error::Occupied { path: inbox });
    }
    let mut example = Example::new();
    cases_morning::script(&mut example);
    example.begin_section(1);
    cases_noon::script(&mut example);

    for section in SECTIONS {
        create_dir(&inbox.join(section))?;
    }
    let mut manifest = Manifest::create(&out.join("expected.jsonl"))?;
    for case in &example.cases {
        write(&out.join(&case.file), &case.bytes)?;
        let id = case.message_id.as_deref();
        manifest.message(&case.file, id, case.payments, case.answer, None)?;
        for result in &case.results {
            let line = PaymentResult {
                number: result.number,
                payment_id: result.payment_id.as_deref(),
                outcome: result.outcome,
                reason: result.reason,
                fault: None,
            };
            manifest.payment(&case.file, id.unwrap_or_default(), &line)?;
        }
    }
    manifest.finish()?;
    let toml = participants::toml(BUSINESS_DATE, SHARDS, &example.participants);
    write(&out.join("participants.toml"), toml.as_bytes())?;
    write(
        &out.join("expected-balances.csv"),
        readme::balances_csv(&example).as_bytes(),
    )?;
    write(&out.join("README.md"), readme::text(&example).as_bytes())
}

#[cfg(test)]
mod tests;
