//! One settled cycle's certificate.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clearspan_audit::{
    Account, CERTIFICATE_FORMAT, CERTIFICATE_VERSION, Certificate, Digest, Dropped, InputLine,
    LogPosition, Minor, NetsBy, Outcome, Participant, Round, Tally, Totals, cycle_directory,
    write_certificate,
};
use clearspan_ledger::directory::{Directory, NetUnit};
use clearspan_ledger::query::CyclePayment;
use clearspan_ledger::{
    Currency, CycleNumber, CycleSummary, ParticipantId, PaymentId, PaymentNo, ShardId,
};

use super::{CertificateError, cluster_name, shards, signed};
use crate::documents::{Documents, View};

/// Writes the certificate of a settled cycle below the audit root and gives it back as sealed; its digest is the next
/// one's `previous`. `documents` is over the same view: it names payments without UETR.
///
/// # Errors
/// [`CertificateError`]; also when the certificate was written before: nothing is rewritten.
pub fn write<V: View>(
    root: &Path,
    view: &V,
    documents: &Documents<'_, V>,
    cycle: CycleNumber,
    previous: Option<Digest>,
) -> Result<Certificate, CertificateError> {
    let certificate = assemble(view, cycle, previous)?;
    let names = names(view, documents, cycle)?;
    let dir = cycle_directory(root, &certificate.business_date, certificate.cycle);
    Ok(write_certificate(
        &dir,
        &certificate,
        inputs(view, cycle, &names),
    )?)
}

/// The newest certificate below the audit root: its digest is the next one's `previous`.
///
/// # Errors
/// [`CertificateError::Read`] and [`CertificateError::Damaged`].
pub fn last_certificate(root: &Path) -> Result<Option<Certificate>, CertificateError> {
    let mut newest = root.join("certificates");
    for _ in ["date", "cycle"] {
        let Some(last) = last_entry(&newest)? else {
            return Ok(None);
        };
        newest = last;
    }
    let path = newest.join("certificate.json");
    let bytes = std::fs::read(&path).map_err(|source| CertificateError::Read {
        path: path.clone(),
        source,
    })?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|source| CertificateError::Damaged { path, source })
}

/// The last finished directory in the order of dates and cycle numbers; `None` when there is none.
pub(super) fn last_entry(dir: &Path) -> Result<Option<PathBuf>, CertificateError> {
    let read = |source| CertificateError::Read {
        path: dir.to_owned(),
        source,
    };
    if !dir.exists() {
        return Ok(None);
    }
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(read)? {
        let name = entry.map_err(read)?.file_name();
        if let Some(name) = name.to_str().filter(|name| !name.ends_with(".part")) {
            // Cycle numbers of more than four digits are longer names; dates are all of one length.
            names.push((name.len(), name.to_owned()));
        }
    }
    names.sort();
    Ok(names.pop().map(|(_, name)| dir.join(name)))
}

/// The certificate without digest of its inputs and without its own: what the states say of the cycle.
///
/// # Errors
/// [`CertificateError`] when the cycle is not settled in this view.
pub fn assemble<V: View>(
    view: &V,
    cycle: CycleNumber,
    previous: Option<Digest>,
) -> Result<Certificate, CertificateError> {
    let coordinator = view.ledger(ShardId::new(0));
    let summary = coordinator
        .cycle_summary(cycle)
        .filter(|summary| !summary.abandoned)
        .ok_or(CertificateError::NotSettled { cycle })?;
    for (shard, ledger) in shards(view) {
        if ledger.cycle(cycle).is_none() {
            return Err(CertificateError::ShardBehind { shard, cycle });
        }
    }
    let directory = coordinator.directory();
    let mut totals: BTreeMap<String, Totals> = BTreeMap::new();
    let mut currencies = BTreeMap::new();
    let participants = participants(summary, directory, &mut totals);
    for result in &summary.results {
        currencies.insert(result.currency.to_string(), result.currency.exponent());
    }
    Ok(Certificate {
        format: CERTIFICATE_FORMAT.to_owned(),
        version: CERTIFICATE_VERSION,
        cluster: cluster_name(coordinator)?,
        business_date: summary.date.to_string(),
        cycle: u64::from(cycle.get()),
        currencies,
        cuts: positions(&summary.cuts),
        decided: LogPosition {
            shard: 0,
            index: summary.decided.get(),
        },
        posts: positions(&summary.posts),
        inputs_blake3: Digest::default(),
        totals,
        participants,
        rounds: rounds(summary, directory),
        previous,
        digest: Digest::default(),
    })
}

fn positions(of: &BTreeMap<ShardId, clearspan_ledger::LogIndex>) -> BTreeMap<u32, u64> {
    of.iter()
        .map(|(shard, index)| (u32::from(shard.get()), index.get()))
        .collect()
}

fn participants(
    summary: &CycleSummary,
    directory: &Directory,
    totals: &mut BTreeMap<String, Totals>,
) -> BTreeMap<String, Participant> {
    // What was available in the last round, or else at the last drop.
    let mut available: BTreeMap<(ParticipantId, Currency), i128> = BTreeMap::new();
    for drop in &summary.drops {
        available.insert((drop.participant, drop.currency), drop.available_minor);
    }
    for last in &summary.available {
        available.insert((last.participant, last.currency), last.minor);
    }
    let mut participants: BTreeMap<String, Participant> = BTreeMap::new();
    for result in &summary.results {
        let Some(terms) = directory.get(result.participant) else {
            continue;
        };
        let tally = |count: u32, minor: u128| Tally {
            count: u64::from(count),
            sum_minor: Minor::from(signed(minor)),
        };
        let settled = tally(result.out_count, result.out_minor);
        let dropped = tally(result.dropped_count, result.dropped_minor);
        let set = tally(
            result.out_count + result.dropped_count,
            result.out_minor + result.dropped_minor,
        );
        let account = Account {
            opening_minor: Minor::from(result.opening_minor),
            out_minor: Minor::from(signed(result.out_minor)),
            in_minor: Minor::from(signed(result.in_minor)),
            net_minor: Minor::from(signed(result.in_minor) - signed(result.out_minor)),
            closing_minor: Minor::from(result.closing_minor),
            credit_line_minor: Minor::from(result.credit_line.signed()),
            available_minor: Minor::from(
                available
                    .get(&(result.participant, result.currency))
                    .copied()
                    .unwrap_or(result.opening_minor + result.credit_line.signed()),
            ),
            set,
            settled,
            dropped,
            received_count: u64::from(result.in_count),
        };
        let total = totals.entry(result.currency.to_string()).or_default();
        for (sum, part) in [
            (&mut total.set, set),
            (&mut total.settled, settled),
            (&mut total.dropped, dropped),
        ] {
            sum.count += part.count;
            sum.sum_minor = Minor::from(sum.sum_minor.get() + part.sum_minor.get());
        }
        participants
            .entry(terms.bic.to_string())
            .or_insert_with(|| Participant {
                shard: u32::from(terms.home.get()),
                nets_by: match terms.net_unit {
                    NetUnit::Payment => NetsBy::Payment,
                    NetUnit::Package => NetsBy::Package,
                },
                accounts: BTreeMap::new(),
            })
            .accounts
            .insert(result.currency.to_string(), account);
    }
    participants
}

fn rounds(summary: &CycleSummary, directory: &Directory) -> Vec<Round> {
    (1..=summary.rounds)
        .map(|round| Round {
            round: u64::from(round),
            drops: summary
                .drops
                .iter()
                .filter(|drop| drop.round == round)
                .map(|drop| {
                    let (out, incoming) = (signed(drop.out_minor), signed(drop.in_minor));
                    Dropped {
                        participant: directory.bic(drop.participant).to_string(),
                        currency: drop.currency.to_string(),
                        available_minor: Minor::from(drop.available_minor),
                        out_before_minor: Minor::from(out),
                        in_before_minor: Minor::from(incoming),
                        shortfall_minor: Minor::from(out - incoming - drop.available_minor),
                        dropped_count: u64::from(drop.count),
                        dropped_sum_minor: Minor::from(signed(drop.minor)),
                    }
                })
                .collect(),
        })
        .collect()
}

pub(super) type Names = BTreeMap<(ShardId, PaymentNo), String>;

/// What payments without UETR are called. Before anything is written: a package that cannot be read stops it.
pub(super) fn names<V: View>(
    view: &V,
    documents: &Documents<'_, V>,
    cycle: CycleNumber,
) -> Result<Names, CertificateError> {
    let mut names = Names::new();
    for (shard, ledger) in shards(view) {
        let unnamed: Vec<CyclePayment> = ledger
            .cycle_payments(cycle)
            .filter(|payment| matches!(payment.id, PaymentId::Transaction(_)))
            .collect();
        for (payment, name) in documents.transaction_names(shard, &unnamed)? {
            names.insert((shard, payment), name);
        }
    }
    Ok(names)
}

/// One payment while its list is put together: sender and currency first, then the order of arrival.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    sender: ParticipantId,
    currency_place: u8,
    settled: bool,
    payment: PaymentNo,
}

const _: () = assert!(size_of::<Place>() == 16);

pub(super) fn inputs<'a, V: View>(
    view: &'a V,
    cycle: CycleNumber,
    names: &'a Names,
) -> impl Iterator<Item = InputLine<'a>> {
    shards(view).flat_map(move |(shard, ledger)| {
        let mut places: Vec<Place> = ledger
            .cycle_payments(cycle)
            .map(|payment| Place {
                sender: payment.sender,
                currency_place: payment.currency_place,
                settled: payment.settled,
                payment: payment.payment,
            })
            .collect();
        places.sort_unstable_by_key(|place| (place.sender, place.currency_place, place.payment));
        let directory = ledger.directory();
        let mut list = None;
        let mut position = 0_u64;
        places.into_iter().filter_map(move |place| {
            if list != Some((place.sender, place.currency_place)) {
                list = Some((place.sender, place.currency_place));
                position = 0;
            }
            position += 1;
            let payment = ledger.credited(cycle, &[place.payment]).next()?;
            let name = names.get(&(shard, place.payment));
            Some(InputLine {
                shard: u32::from(shard.get()),
                sender: text(directory, place.sender),
                currency: directory
                    .currencies()
                    .get(usize::from(place.currency_place))
                    .map_or_else(String::new, Currency::to_string)
                    .into(),
                position,
                unit: payment.message.get(),
                id: name.map_or_else(
                    || payment.id.to_string().into(),
                    |name| name.as_str().into(),
                ),
                receiver: text(directory, payment.receiver),
                amount_minor: payment.amount.minor(),
                outcome: if place.settled {
                    Outcome::Settled
                } else {
                    Outcome::Dropped
                },
            })
        })
    })
}

fn text(directory: &Directory, participant: ParticipantId) -> std::borrow::Cow<'_, str> {
    directory
        .get(participant)
        .map_or("", |terms| terms.bic.as_str())
        .into()
}
