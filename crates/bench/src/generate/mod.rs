//! Makes a day of input: `participants.toml` and an `inbox` of ISO 20022 messages, with the outcome each must have.
//!
//! `clearspan day DIR` reads what is made here. The distributions are described in `docs/generate.md`. The generator
//! shares no code with the parser or the ledger, so that the two can be tested against each other.

mod amount;
mod customer;
mod date;
mod example;
mod fault;
mod ids;
mod manifest;
pub(crate) mod message;
mod participants;
pub(crate) mod rng;
mod text;
mod writer;

use std::io;
use std::path::PathBuf;
use std::str::FromStr;

pub use example::example_day;

/// What to make. The same options make the same bytes.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where every random draw starts.
    pub seed: u64,
    /// The directory to make; it may exist but must not hold an `inbox`.
    pub out_dir: PathBuf,
    /// Participants, 2 to 5 000.
    pub participants: u32,
    /// Shards, 1 to 256; participants are dealt round.
    pub shards: u32,
    /// Currencies by code, each once, of those that amounts are known for. Every participant has an account in each.
    pub currencies: Vec<String>,
    /// How many packages of which size.
    pub packages: Vec<PackageCount>,
    /// Urgent payments, each a message of its own.
    pub urgent: u32,
    /// Share of faulty payments inside packages, per million.
    pub faulty_payments_ppm: u32,
    /// Faulty messages beside the good ones.
    pub faulty_messages: u32,
    /// The business day, `2026-11-30`.
    pub business_date: String,
    /// Sections of the day, 1 to 24; a netting cycle follows each.
    pub sections: u32,
    /// Version of the pacs.008 messages.
    pub version: Version,
    /// Whether messages carry a business header.
    pub wrapping: Wrapping,
    /// Funds of a participant (balance and credit line) as a percentage of what it needs for everything to settle: 100 is
    /// just enough.
    pub coverage_percent: u32,
    /// Share of the participants that get two fifths of those funds instead, in percent.
    pub shortfall_percent: u32,
    /// Whether participants number their messages (`sequence = true`).
    pub sequenced: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            out_dir: PathBuf::from("day"),
            participants: 50,
            shards: 4,
            currencies: vec!["EUR".to_owned(), "JPY".to_owned(), "KWD".to_owned()],
            packages: vec![
                PackageCount {
                    payments: 500,
                    packages: 8,
                },
                PackageCount {
                    payments: 1_000,
                    packages: 4,
                },
                PackageCount {
                    payments: 5_000,
                    packages: 1,
                },
            ],
            urgent: 100,
            faulty_payments_ppm: 1_000,
            faulty_messages: 10,
            business_date: "2026-11-30".to_owned(),
            sections: 3,
            version: Version::default(),
            wrapping: Wrapping::Bare,
            coverage_percent: 110,
            shortfall_percent: 0,
            sequenced: false,
        }
    }
}

/// A number of packages of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackageCount {
    /// Payments in each package, 1 to 50 000.
    pub payments: u32,
    /// Packages.
    pub packages: u32,
}

impl FromStr for PackageCount {
    type Err = Error;

    /// Reads `8x500`: eight packages of 500 payments.
    fn from_str(text: &str) -> Result<Self, Error> {
        let rule = Error::Option {
            option: "packages",
            rule: "as 8x500: eight packages of 500 payments",
        };
        let (packages, payments) = match text.split_once('x') {
            Some((packages, payments)) => (packages.parse().ok(), payments.parse().ok()),
            None => (None, None),
        };
        match (packages, payments) {
            (Some(packages), Some(payments)) => Ok(Self { payments, packages }),
            _ => Err(rule),
        }
    }
}

/// The version of pacs.008, 6 to 13.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(u8);

impl Version {
    /// The version `pacs.008.001.<number>`; none when it is not 6 to 13.
    #[must_use]
    pub fn new(number: u8) -> Option<Self> {
        (6..=13).contains(&number).then_some(Self(number))
    }

    /// 6 to 13.
    #[must_use]
    pub fn number(self) -> u8 {
        self.0
    }
}

impl Default for Version {
    /// pacs.008.001.08, the version most seen in public samples.
    fn default() -> Self {
        Self(8)
    }
}

/// What stands around the `Document` of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapping {
    /// Nothing: `Document` is the root.
    Bare,
    /// A root `Message` with the business header (head.001.001.02) before the document.
    Message,
}

/// How far the work is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Messages written.
    pub messages: u64,
    /// Messages in all.
    pub messages_total: u64,
    /// Payments written.
    pub payments: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// What was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Messages, faulty ones included.
    pub messages: u64,
    /// Messages that must be refused whole or answered as repeats.
    pub faulty_messages: u64,
    /// Payments in messages that are not faulty.
    pub payments: u64,
    /// Of these, urgent ones.
    pub urgent: u64,
    /// Of these, ones that must be refused singly or answered as repeats.
    pub faulty_payments: u64,
    /// Bytes of all messages.
    pub written_bytes: u64,
    /// Currency and value of the good payments as decimal text, in the order of the options.
    pub values: Vec<(String, String)>,
}

/// Why nothing, or only a part, was made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An option outside its range.
    #[error("option {option}: {rule}")]
    Option {
        /// Its name, as in [`Options`].
        option: &'static str,
        /// What it must be.
        rule: &'static str,
    },
    /// The directory holds another day; two days in one inbox would be mixed.
    #[error("{path} is there already; choose another directory or remove it")]
    Occupied {
        /// The inbox found.
        path: PathBuf,
    },
    /// The directory cannot be made.
    #[error("create directory {path}")]
    CreateDir {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("write file {path}")]
    Write {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Writes a day into `options.out_dir`: `participants.toml`, `inbox/`, `expected.jsonl`, and `expected-balances.csv` when
/// all good payments can settle. `progress` is called after each message. Memory is bounded by the largest package.
///
/// # Errors
///
/// An option outside its range, an inbox that is there already, or a file that cannot be written.
///
/// ```
/// use clearspan_bench::generate::{generate, Options, PackageCount};
///
/// let dir = tempfile::tempdir()?;
/// let options = Options {
///     out_dir: dir.path().join("day"),
///     packages: vec![PackageCount { payments: 20, packages: 3 }],
///     faulty_messages: 0,
///     ..Options::default()
/// };
/// let summary = generate(&options, &mut |_progress| {})?;
/// assert_eq!(summary.payments - summary.urgent, 60);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn generate(options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Summary, Error> {
    writer::write_day(options, progress)
}
