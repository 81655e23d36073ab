//! The statement chain: each account's days follow one another, and each day's books balance.

use crate::cycle::AccountName;
use crate::figures::{Digest, Minor};
use crate::finding::{Finding, Findings};
use crate::frame::{is_currency, is_date};
use crate::inputs::text_is_sound;
use crate::object::read_object;
use crate::statement::{DAY_FORMAT, DAY_VERSION, Day, Statement};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// A day of statements in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayVerdict {
    /// Business date, `YYYY-MM-DD`.
    pub business_date: String,
    /// Digest of `day.json`.
    pub digest: Digest,
    /// Digest of the day before, as this one states it.
    pub previous: Option<Digest>,
    /// Statements read.
    pub statements: u64,
    /// Per currency, the sum of closing less opening balances.
    pub change_minor: BTreeMap<String, Minor>,
}

/// What the days so far leave to check the next one against.
#[derive(Default)]
pub(crate) struct Chain {
    day: Option<Day>,
    accounts: BTreeMap<(String, String), Statement>,
}

/// Longest line of `statements.jsonl`: two names, eight figures and two digests, with room to spare.
const LINE_LEN_BYTES_MAX: u64 = 4096;

/// Longest `day.json`: a few lines per currency.
const DAY_LEN_BYTES_MAX: u64 = 1 << 20;

/// Net movement of each account by the date's cycles.
pub(crate) type Nets = BTreeMap<AccountName, i128>;

/// Verifies the statements in `dir` after the days in `chain`, and adds them to it. With `nets`, what statements call
/// netted must be what the certificates of the date posted.
pub(crate) fn examine(
    dir: &Path,
    date: &str,
    nets: Option<&Nets>,
    chain: &mut Chain,
) -> (Option<DayVerdict>, Vec<Finding>) {
    let mut findings = Findings::default();
    let Some(day) = read_object::<Day>(dir, "day.json", DAY_LEN_BYTES_MAX, &mut findings) else {
        return (None, findings.into_vec());
    };
    check_day(&day, date, chain.day.as_ref(), &mut findings);
    let mut reading = Reading {
        date,
        chain,
        nets,
        findings: &mut findings,
        today: BTreeMap::new(),
        change: BTreeMap::new(),
    };
    let read = File::open(dir.join("statements.jsonl")).and_then(|file| reading.read(file));
    let today = std::mem::take(&mut reading.today);
    let change = std::mem::take(&mut reading.change);
    match read {
        Ok(digest) => {
            if digest != day.statements_blake3 {
                let (file, expected, found) =
                    ("statements.jsonl".to_owned(), day.statements_blake3, digest);
                findings.push(Finding::FileDigest {
                    file,
                    expected,
                    found,
                });
            }
            check_absent(date, chain, nets, &today, &mut findings);
            check_books(
                &day,
                chain.day.as_ref(),
                &change,
                today.len() as u64,
                &mut findings,
            );
        }
        Err(e) => findings.push(Finding::Unreadable {
            file: "statements.jsonl".to_owned(),
            cause: e.to_string(),
        }),
    }
    let verdict = DayVerdict {
        business_date: day.business_date.clone(),
        digest: day.digest,
        previous: day.previous,
        statements: today.len() as u64,
        change_minor: change
            .into_iter()
            .map(|(currency, minor)| (currency, Minor::from(minor)))
            .collect(),
    };
    // An account that closed at zero may rest for some days; its chain goes on from its last statement.
    chain.accounts.extend(today);
    chain.day = Some(day);
    (Some(verdict), findings.into_vec())
}

fn check_day(day: &Day, date: &str, previous: Option<&Day>, findings: &mut Findings) {
    let document = || "day.json".to_owned();
    if day.format != DAY_FORMAT || day.version != DAY_VERSION {
        findings.push(Finding::Unsupported {
            file: document(),
            format: day.format.clone(),
            version: day.version,
        });
    }
    if let Ok(expected) = day.computed_digest()
        && expected != day.digest
    {
        findings.push(Finding::OwnDigest {
            document: document(),
            expected,
            found: day.digest,
        });
    }
    if day.business_date != date || !is_date(date) {
        let (path, cause) = (
            date.to_owned(),
            format!("day.json is of business date {:?}", day.business_date),
        );
        findings.push(Finding::Misplaced { path, cause });
    }
    for currency in day
        .currencies
        .keys()
        .filter(|currency| !is_currency(currency))
    {
        let cause = format!("{currency:?} is not three capital letters");
        findings.push(Finding::Field {
            field: "currencies",
            cause,
        });
    }
    let Some(previous) = previous else { return };
    if day.previous != Some(previous.digest) {
        let (expected, found) = (Some(previous.digest), day.previous);
        findings.push(Finding::ChainBreak {
            document: document(),
            expected,
            found,
        });
    }
    if day.cluster != previous.cluster {
        let (expected, found) = (previous.cluster.clone(), day.cluster.clone());
        findings.push(Finding::OtherCluster {
            document: document(),
            expected,
            found,
        });
    }
}

struct Reading<'a> {
    date: &'a str,
    chain: &'a Chain,
    nets: Option<&'a Nets>,
    findings: &'a mut Findings,
    today: BTreeMap<(String, String), Statement>,
    change: BTreeMap<String, i128>,
}

impl Reading<'_> {
    fn read(&mut self, file: impl Read) -> io::Result<Digest> {
        let mut source = BufReader::with_capacity(256 * 1024, file);
        let mut hasher = blake3::Hasher::new();
        let mut bytes = Vec::new();
        let mut line = 0;
        loop {
            bytes.clear();
            if (&mut source)
                .take(LINE_LEN_BYTES_MAX)
                .read_until(b'\n', &mut bytes)?
                == 0
            {
                return Ok(Digest::from(*hasher.finalize().as_bytes()));
            }
            hasher.update(&bytes);
            line += 1;
            let Some(json) = bytes.strip_suffix(b"\n") else {
                let cause = format!("line {line} does not end within {LINE_LEN_BYTES_MAX} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, cause));
            };
            let file = || "statements.jsonl".to_owned();
            match serde_json::from_slice::<Statement>(json) {
                Ok(statement) => {
                    if statement.to_canonical_json().ok().as_deref() != Some(json) {
                        self.findings.push(Finding::NotCanonical { file: file() });
                    }
                    self.take(statement, line);
                }
                Err(e) => self.findings.push(Finding::Malformed {
                    file: file(),
                    line,
                    cause: e.to_string(),
                }),
            }
        }
    }

    fn take(&mut self, statement: Statement, line: u64) {
        let key = (statement.participant.clone(), statement.currency.clone());
        if self
            .today
            .last_key_value()
            .is_some_and(|(last, _)| *last >= key)
        {
            let ((participant, currency), date) = (key.clone(), self.date.to_owned());
            self.findings.push(Finding::StatementOrder {
                date,
                line,
                participant,
                currency,
            });
        }
        self.check(&statement, line, self.chain.accounts.get(&key));
        let change = statement.closing_minor.get() - statement.opening_minor.get();
        *self.change.entry(statement.currency.clone()).or_default() += change;
        self.today.insert(key, statement);
    }

    fn check(&mut self, statement: &Statement, line: u64, before: Option<&Statement>) {
        let document = || {
            let (date, participant, currency) =
                (self.date, &statement.participant, &statement.currency);
            format!("statement of {participant} in {currency} of {date}")
        };
        if !text_is_sound(&statement.participant) || !is_currency(&statement.currency) {
            let cause = "participant or currency is not a name".to_owned();
            self.findings.push(Finding::Malformed {
                file: "statements.jsonl".to_owned(),
                line,
                cause,
            });
        }
        if statement.business_date != self.date {
            let cause = format!("its business date is {:?}", statement.business_date);
            self.findings.push(Finding::Misplaced {
                path: document(),
                cause,
            });
        }
        if let Ok(expected) = statement.computed_digest()
            && expected != statement.digest
        {
            self.findings.push(Finding::OwnDigest {
                document: document(),
                expected,
                found: statement.digest,
            });
        }
        // The archive may begin in the middle of a chain, but only on its first day.
        let begins = before.is_none() && self.chain.day.is_none();
        let expected = before.map(|before| before.digest);
        if statement.previous != expected && !begins {
            self.findings.push(Finding::ChainBreak {
                document: document(),
                expected,
                found: statement.previous,
            });
        }
        let number = |value: u64| Minor::from(value);
        let first_ever = statement.previous.is_none();
        let sequence = before.map_or(if first_ever { 1 } else { statement.sequence }, |before| {
            before.sequence.saturating_add(1)
        });
        let opening = before.map_or(
            if first_ever {
                Minor::ZERO
            } else {
                statement.opening_minor
            },
            |b| b.closing_minor,
        );
        let first_output = before.map_or(statement.first_output, |before| {
            before.last_output.saturating_add(1)
        });
        let closing = statement.opening_minor.get() - statement.debits_minor.get()
            + statement.credits_minor.get();
        let netted = self.nets.map_or(statement.netted_minor.get(), |nets| {
            let (participant, currency) =
                (statement.participant.clone(), statement.currency.clone());
            nets.get(&AccountName {
                participant,
                currency,
            })
            .copied()
            .unwrap_or_default()
        });
        let least = |sum: Minor, count: u64| {
            if count == 0 {
                Minor::ZERO
            } else {
                sum.max(Minor::ZERO)
            }
        };
        for (figure, expected, found) in [
            ("sequence", number(sequence), number(statement.sequence)),
            ("opening_minor", opening, statement.opening_minor),
            (
                "debits_minor",
                least(statement.debits_minor, statement.debits),
                statement.debits_minor,
            ),
            (
                "credits_minor",
                least(statement.credits_minor, statement.credits),
                statement.credits_minor,
            ),
            (
                "closing_minor",
                Minor::from(closing),
                statement.closing_minor,
            ),
            ("netted_minor", Minor::from(netted), statement.netted_minor),
            (
                "first_output",
                number(first_output.max(1)),
                number(statement.first_output),
            ),
            (
                "last_output",
                number(
                    statement
                        .last_output
                        .max(statement.first_output.saturating_sub(1)),
                ),
                number(statement.last_output),
            ),
        ] {
            if expected != found {
                self.findings.push(Finding::StatementFigure {
                    date: self.date.to_owned(),
                    line,
                    participant: statement.participant.clone(),
                    currency: statement.currency.clone(),
                    figure,
                    expected,
                    found,
                });
            }
        }
    }
}

/// Accounts that should have a statement today and have none.
fn check_absent(
    date: &str,
    chain: &Chain,
    nets: Option<&Nets>,
    today: &BTreeMap<(String, String), Statement>,
    findings: &mut Findings,
) {
    for (key, before) in &chain.accounts {
        if before.closing_minor != Minor::ZERO && !today.contains_key(key) {
            let ((participant, currency), closing) = (key.clone(), before.closing_minor);
            findings.push(Finding::StatementMissing {
                date: date.to_owned(),
                participant,
                currency,
                closing,
            });
        }
    }
    for (name, &netted) in nets.into_iter().flatten() {
        let AccountName {
            participant,
            currency,
        } = name.clone();
        if netted != 0 && !today.contains_key(&(participant.clone(), currency.clone())) {
            let (date, netted) = (date.to_owned(), Minor::from(netted));
            findings.push(Finding::NettedWithoutStatement {
                date,
                participant,
                currency,
                netted,
            });
        }
    }
}

/// Accounts and transit together change by the central bank's movements alone (domain rule 37).
fn check_books(
    day: &Day,
    previous: Option<&Day>,
    change: &BTreeMap<String, i128>,
    statements: u64,
    findings: &mut Findings,
) {
    let date = || day.business_date.clone();
    if day.statements != statements {
        let (expected, found) = (Minor::from(statements), Minor::from(day.statements));
        let (currency, figure) = ("all".to_owned(), "statements");
        findings.push(Finding::DayFigure {
            date: date(),
            currency,
            figure,
            expected,
            found,
        });
    }
    for currency in change
        .keys()
        .filter(|currency| !day.currencies.contains_key(*currency))
    {
        let cause = format!("{currency} has statements and no entry in day.json");
        findings.push(Finding::Field {
            field: "currencies",
            cause,
        });
    }
    for (currency, stated) in &day.currencies {
        let transit = stated.in_transit_closing_minor.get() - stated.in_transit_opening_minor.get();
        let expected = Minor::from(change.get(currency).copied().unwrap_or_default() + transit);
        let before = previous.map(|previous| {
            previous
                .currencies
                .get(currency)
                .copied()
                .unwrap_or_default()
        });
        let opening = before.map_or(stated.in_transit_opening_minor, |before| {
            before.in_transit_closing_minor
        });
        for (figure, expected, found) in [
            ("central_bank_minor", expected, stated.central_bank_minor),
            (
                "in_transit_opening_minor",
                opening,
                stated.in_transit_opening_minor,
            ),
        ] {
            if expected != found {
                findings.push(Finding::DayFigure {
                    date: date(),
                    currency: currency.clone(),
                    figure,
                    expected,
                    found,
                });
            }
        }
    }
    for (currency, before) in previous
        .into_iter()
        .flat_map(|previous| &previous.currencies)
    {
        if before.in_transit_closing_minor != Minor::ZERO && !day.currencies.contains_key(currency)
        {
            let (expected, found) = (before.in_transit_closing_minor, Minor::ZERO);
            let (currency, figure) = (currency.clone(), "in_transit_opening_minor");
            findings.push(Finding::DayFigure {
                date: date(),
                currency,
                figure,
                expected,
                found,
            });
        }
    }
}
