//! A business day's statements, chained to those of the day before.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use clearspan_audit::{
    DAY_FORMAT, DAY_VERSION, Day, DayCurrency, Digest, Minor, Statement, day_directory, write_day,
};
use clearspan_ledger::stream::{ItemBody, Statement as Formed};
use clearspan_ledger::{BusinessDate, Currency, ParticipantId, ShardId};

use super::cycle::last_entry;
use super::{CertificateError, cluster_name, shards, signed};
use crate::documents::{Kind, View, movements};

/// What the newest day below the audit root hands on.
#[derive(Default)]
struct Link {
    day: Option<Digest>,
    accounts: BTreeMap<(String, String), Digest>,
}

/// Writes the statements of a closed business date below the audit root, chained to the newest ones there, and gives the
/// day back as sealed.
///
/// In transit is nothing at either end: statements are formed when every shard has said that no credit of the day follows.
///
/// # Errors
/// [`CertificateError`]; also when the date was written before.
pub fn write_statements<V: View>(
    root: &Path,
    view: &V,
    date: BusinessDate,
) -> Result<Day, CertificateError> {
    let link = link(root)?;
    let mut statements: BTreeMap<(String, String), Statement> = BTreeMap::new();
    let mut currencies: BTreeMap<String, DayCurrency> = BTreeMap::new();
    for (shard, ledger) in shards(view) {
        for account in ledger.accounts() {
            let (participant, currency) = (account.participant(), account.currency());
            let Some((formed, last_output)) = formed(ledger, participant, currency, date) else {
                continue;
            };
            let owner = ledger.directory().bic(participant).to_string();
            let key = (owner, currency.to_string());
            let (mut statement, central_bank) =
                statement(ledger, shard, (participant, currency), &formed)?;
            statement.participant.clone_from(&key.0);
            statement.last_output = last_output;
            statement.previous = link.accounts.get(&key).copied();
            let books = currencies.entry(key.1.clone()).or_default();
            books.central_bank_minor = Minor::from(books.central_bank_minor.get() + central_bank);
            statements.insert(key, statement);
        }
    }
    if statements.is_empty() || !closed_everywhere(view, date) {
        return Err(CertificateError::DayNotClosed { date });
    }
    let day = Day {
        format: DAY_FORMAT.to_owned(),
        version: DAY_VERSION,
        cluster: cluster_name(view.ledger(ShardId::new(0)))?,
        business_date: date.to_string(),
        statements: 0,
        statements_blake3: Digest::default(),
        currencies,
        previous: link.day,
        digest: Digest::default(),
    };
    let dir = day_directory(root, &day.business_date);
    Ok(write_day(&dir, &day, statements.into_values())?)
}

/// Whether the coordinator has heard from every shard, or a later day was opened.
fn closed_everywhere<V: View>(view: &V, date: BusinessDate) -> bool {
    let coordinator = view.ledger(ShardId::new(0));
    coordinator
        .cluster_day()
        .is_none_or(|(open, _)| open > date)
        && coordinator
            .last_business_date()
            .is_some_and(|last| last >= date)
        && shards(view).all(|(_, ledger)| {
            // An account opened after the day's end has its first statement later; any statement of the date tells
            // that the shard has formed them all in one entry.
            ledger.accounts().is_empty()
                || ledger.accounts().iter().any(|account| {
                    formed(ledger, account.participant(), account.currency(), date).is_some()
                })
        })
}

/// An account's statement of a date, and the participant's last output number of it.
fn formed(
    ledger: &clearspan_ledger::Ledger,
    participant: ParticipantId,
    currency: Currency,
    date: BusinessDate,
) -> Option<(Formed, u64)> {
    let of_date: Vec<(u64, Formed)> = ledger
        .stream(participant)?
        .iter()
        .filter_map(|item| match &item.body {
            ItemBody::Statement(statement) if statement.date == date => {
                Some((item.number, **statement))
            }
            _ => None,
        })
        .collect();
    let (last_output, _) = *of_date.last()?;
    of_date
        .into_iter()
        .find(|(_, statement)| statement.currency == currency)
        .map(|(_, statement)| (statement, last_output))
}

/// The statement without what the files give it, and what the central bank moved.
fn statement(
    ledger: &clearspan_ledger::Ledger,
    home: ShardId,
    (participant, currency): (ParticipantId, Currency),
    formed: &Formed,
) -> Result<(Statement, i128), CertificateError> {
    let numbers = (formed.first_number, formed.end_number);
    let (mut debits, mut credits, mut netted, mut central_bank) = (0, 0, 0, 0);
    for movement in movements(ledger, home, participant, currency, numbers)? {
        if movement.minor < 0 {
            debits += 1;
        } else {
            credits += 1;
        }
        match movement.kind {
            Kind::Net(_) => netted += movement.minor,
            Kind::Funded(_) => central_bank += movement.minor,
            Kind::Sent(_) | Kind::Received(_) => {}
        }
    }
    let statement = Statement {
        participant: String::new(),
        currency: currency.to_string(),
        business_date: formed.date.to_string(),
        sequence: u64::from(formed.sequence),
        opening_minor: Minor::from(formed.opening_minor),
        debits,
        debits_minor: Minor::from(signed(formed.debits_minor)),
        credits,
        credits_minor: Minor::from(signed(formed.credits_minor)),
        netted_minor: Minor::from(netted),
        closing_minor: Minor::from(formed.closing_minor),
        first_output: formed.first_number,
        last_output: 0,
        previous: None,
        digest: Digest::default(),
    };
    Ok((statement, central_bank))
}

fn link(root: &Path) -> Result<Link, CertificateError> {
    let Some(dir) = last_entry(&root.join("statements"))? else {
        return Ok(Link::default());
    };
    let path = dir.join("day.json");
    let bytes = std::fs::read(&path).map_err(|source| CertificateError::Read {
        path: path.clone(),
        source,
    })?;
    let day: Day = serde_json::from_slice(&bytes)
        .map_err(|source| CertificateError::Damaged { path, source })?;
    let path = dir.join("statements.jsonl");
    let read = |source| CertificateError::Read {
        path: path.clone(),
        source,
    };
    let mut accounts = BTreeMap::new();
    for line in BufReader::new(File::open(&path).map_err(read)?).lines() {
        let statement: Statement =
            serde_json::from_str(&line.map_err(read)?).map_err(|source| {
                CertificateError::Damaged {
                    path: path.clone(),
                    source,
                }
            })?;
        accounts.insert(
            (statement.participant, statement.currency),
            statement.digest,
        );
    }
    Ok(Link {
        day: Some(day.digest),
        accounts,
    })
}
