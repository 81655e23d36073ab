//! One cycle: its certificate against its inputs, from the digests to the greatest set.

use crate::book::{Book, read_book};
use crate::certificate::{Account, Certificate, Tally, Totals};
use crate::figures::{Digest, Minor};
use crate::finding::{Finding, Findings};
use crate::history::History;
use crate::object::read_object;
use crate::{frame, greatest, rounds};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// A cycle that was found right, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CycleVerdict {
    /// Cluster that ran it.
    pub cluster: String,
    /// Business date, `YYYY-MM-DD`.
    pub business_date: String,
    /// Cycle number.
    pub cycle: u64,
    /// Digest of its certificate.
    pub digest: Digest,
    /// Digest of the certificate before, as the certificate states it.
    pub previous: Option<Digest>,
    /// Per shard, the log index of finality.
    pub posts: BTreeMap<u32, u64>,
    /// Participants in the certificate.
    pub participants: u64,
    /// Reservation rounds, with the last that dropped nothing.
    pub rounds: u64,
    /// Per currency, what went in, settled and was dropped.
    pub totals: BTreeMap<String, Totals>,
    /// Accounts whose recorded availability changed between rounds: urgent payments went on. For them and those they
    /// pay the result is checked to lie between two greatest sets; without any it is checked to be the greatest set.
    pub availability_moved: Vec<AccountName>,
}

/// A participant and a currency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AccountName {
    /// Account holder.
    pub participant: String,
    /// Currency of the account.
    pub currency: String,
}

/// A cycle examined, right or not.
pub(crate) struct Examined {
    /// The summary; none when the certificate cannot be read.
    pub(crate) verdict: Option<CycleVerdict>,
    pub(crate) findings: Vec<Finding>,
    /// Net movement per participant and currency.
    pub(crate) nets: Vec<(AccountName, Minor)>,
}

/// Longest `certificate.json` read: a thousand participants with fifty currencies each and as many drops.
const CERTIFICATE_LEN_BYTES_MAX: u64 = 256 << 20;

/// Verifies the cycle in `dir` (`inputs.csv` and `certificate.json`). With `previous`, the certificate must follow it;
/// without, its place in the chain is not judged.
///
/// # Errors
/// Everything found wrong, the first few of each file; never empty.
pub fn verify_cycle(
    dir: &Path,
    previous: Option<&CycleVerdict>,
) -> Result<CycleVerdict, Vec<Finding>> {
    let examined = examine(dir, previous, &mut History::default());
    match examined.verdict {
        Some(verdict) if examined.findings.is_empty() => Ok(verdict),
        _ => Err(examined.findings),
    }
}

/// Examines the cycle in `dir` after those of the same date in `history`, and adds it there.
pub(crate) fn examine(
    dir: &Path,
    previous: Option<&CycleVerdict>,
    history: &mut History,
) -> Examined {
    let mut findings = Findings::default();
    let Some(certificate) = read_object::<Certificate>(
        dir,
        "certificate.json",
        CERTIFICATE_LEN_BYTES_MAX,
        &mut findings,
    ) else {
        history.skip();
        return Examined {
            verdict: None,
            findings: findings.into_vec(),
            nets: Vec::new(),
        };
    };
    frame::check(&certificate, previous, &mut findings);
    match File::open(dir.join("inputs.csv"))
        .and_then(|file| read_book(&certificate, file, &mut findings))
    {
        Ok(book) => {
            check_book(&certificate, &book, &mut findings);
            history.check_and_add(&certificate, &book, &mut findings);
        }
        Err(e) => {
            history.skip();
            findings.push(Finding::Unreadable {
                file: "inputs.csv".to_owned(),
                cause: e.to_string(),
            });
        }
    }
    let accounts = certificate
        .participants
        .iter()
        .flat_map(|(name, participant)| {
            participant.accounts.iter().map(move |(currency, account)| {
                let (participant, currency) = (name.clone(), currency.clone());
                (
                    AccountName {
                        participant,
                        currency,
                    },
                    account.net_minor,
                )
            })
        });
    let nets = accounts.collect();
    Examined {
        verdict: Some(verdict(certificate)),
        findings: findings.into_vec(),
        nets,
    }
}

fn check_book(certificate: &Certificate, book: &Book<'_>, findings: &mut Findings) {
    if book.inputs_blake3 != certificate.inputs_blake3 {
        let (expected, found) = (certificate.inputs_blake3, book.inputs_blake3);
        findings.push(Finding::FileDigest {
            file: "inputs.csv".to_owned(),
            expected,
            found,
        });
    }
    // Lines without a place make every sum and every round differ: one finding each is enough.
    if !book.complete {
        return;
    }
    let accounts: Vec<&Account> = certificate
        .participants
        .values()
        .flat_map(|participant| participant.accounts.values())
        .collect();
    assert_eq!(
        accounts.len(),
        book.accounts.len(),
        "the book has the certificate's accounts in its order"
    );
    check_sums(certificate, book, &accounts, findings);
    let last: Vec<i128> = accounts
        .iter()
        .map(|account| account.available_minor.get())
        .collect();
    rounds::replay(certificate, book, &last, findings);
    greatest::compare(
        book,
        &smallest_available(certificate, book, &last),
        &last,
        findings,
    );
}

/// Per account, the smallest availability recorded with a drop; the last one where nothing was dropped.
fn smallest_available(certificate: &Certificate, book: &Book<'_>, last: &[i128]) -> Vec<i128> {
    let places = rounds::places(book);
    let mut recorded: Vec<Option<i128>> = vec![None; last.len()];
    for dropped in certificate.rounds.iter().flat_map(|round| &round.drops) {
        if let Some(&place) = places.get(&(dropped.participant.as_str(), dropped.currency.as_str()))
        {
            let available = dropped.available_minor.get();
            recorded[place] =
                Some(recorded[place].map_or(available, |smallest| smallest.min(available)));
        }
    }
    recorded
        .iter()
        .zip(last)
        .map(|(recorded, &last)| recorded.unwrap_or(last))
        .collect()
}

fn check_sums(
    certificate: &Certificate,
    book: &Book<'_>,
    stated: &[&Account],
    findings: &mut Findings,
) {
    let counted = count(book);
    let mut totals: BTreeMap<&str, Totals> = BTreeMap::new();
    let mut nets: BTreeMap<&str, i128> = BTreeMap::new();
    for ((names, counted), stated) in book.accounts.iter().zip(&counted).zip(stated) {
        check_account(names.participant, names.currency, counted, stated, findings);
        let total = totals.entry(names.currency).or_default();
        add(&mut total.set, counted.set);
        add(&mut total.settled, counted.settled);
        add(&mut total.dropped, counted.dropped);
        *nets.entry(names.currency).or_default() += stated.net_minor.get();
    }
    for (currency, stated) in &certificate.totals {
        let counted = totals.get(currency.as_str()).copied().unwrap_or_default();
        for (figure, expected, found) in [
            (
                "count of the set",
                count_of(counted.set),
                count_of(stated.set),
            ),
            (
                "sum of the set",
                counted.set.sum_minor,
                stated.set.sum_minor,
            ),
            (
                "count settled",
                count_of(counted.settled),
                count_of(stated.settled),
            ),
            (
                "sum settled",
                counted.settled.sum_minor,
                stated.settled.sum_minor,
            ),
            (
                "count dropped",
                count_of(counted.dropped),
                count_of(stated.dropped),
            ),
            (
                "sum dropped",
                counted.dropped.sum_minor,
                stated.dropped.sum_minor,
            ),
        ] {
            if expected != found {
                findings.push(Finding::Total {
                    currency: currency.clone(),
                    figure,
                    expected,
                    found,
                });
            }
        }
    }
    for (currency, net) in nets {
        if net != 0 {
            findings.push(Finding::NetsDoNotBalance {
                currency: currency.to_owned(),
                found: Minor::from(net),
            });
        }
    }
}

/// What the lines say about each account: the figures a certificate repeats.
fn count(book: &Book<'_>) -> Vec<Account> {
    let mut counted = vec![Account::default(); book.accounts.len()];
    for (place, account) in book.accounts.iter().enumerate() {
        for (at, payment) in account.queue.iter().enumerate() {
            let one = Tally {
                count: 1,
                sum_minor: Minor::from(payment.amount_minor),
            };
            add(&mut counted[place].set, one);
            if at < account.settled {
                add(&mut counted[place].settled, one);
                let receiver = &mut counted[payment.receiver as usize];
                receiver.received_count += 1;
                receiver.in_minor = Minor::from(receiver.in_minor.get() + one.sum_minor.get());
            } else {
                add(&mut counted[place].dropped, one);
            }
        }
        counted[place].out_minor = counted[place].settled.sum_minor;
    }
    counted
}

fn add(tally: &mut Tally, more: Tally) {
    tally.count += more.count;
    tally.sum_minor = Minor::from(tally.sum_minor.get() + more.sum_minor.get());
}

fn count_of(tally: Tally) -> Minor {
    Minor::from(tally.count)
}

fn check_account(
    participant: &str,
    currency: &str,
    counted: &Account,
    stated: &Account,
    findings: &mut Findings,
) {
    let names = || (participant.to_owned(), currency.to_owned());
    for (figure, expected, found) in [
        ("out_minor", counted.out_minor, stated.out_minor),
        ("in_minor", counted.in_minor, stated.in_minor),
        ("set.count", count_of(counted.set), count_of(stated.set)),
        ("set.sum_minor", counted.set.sum_minor, stated.set.sum_minor),
        (
            "settled.count",
            count_of(counted.settled),
            count_of(stated.settled),
        ),
        (
            "settled.sum_minor",
            counted.settled.sum_minor,
            stated.settled.sum_minor,
        ),
        (
            "dropped.count",
            count_of(counted.dropped),
            count_of(stated.dropped),
        ),
        (
            "dropped.sum_minor",
            counted.dropped.sum_minor,
            stated.dropped.sum_minor,
        ),
        (
            "received_count",
            Minor::from(counted.received_count),
            Minor::from(stated.received_count),
        ),
    ] {
        if expected != found {
            let (participant, currency) = names();
            findings.push(Finding::AccountFigure {
                participant,
                currency,
                figure,
                expected,
                found,
            });
        }
    }
    // From here on the certificate is held to its own figures, so that a wrong one is reported where it stands.
    let (net, available) = (stated.net_minor, stated.available_minor);
    let expected = Minor::from(stated.in_minor.get() - stated.out_minor.get());
    if net != expected {
        let (participant, currency) = names();
        findings.push(Finding::Net {
            participant,
            currency,
            expected,
            found: net,
        });
    }
    let (expected, closing) = (
        Minor::from(stated.opening_minor.get() + net.get()),
        stated.closing_minor,
    );
    if closing != expected {
        let (participant, currency) = names();
        findings.push(Finding::Closing {
            participant,
            currency,
            expected,
            found: closing,
        });
    }
    let credit_line = stated.credit_line_minor;
    if credit_line < Minor::ZERO {
        let (participant, currency) = names();
        let (figure, expected) = ("credit_line_minor", Minor::ZERO);
        findings.push(Finding::AccountFigure {
            participant,
            currency,
            figure,
            expected,
            found: credit_line,
        });
    }
    // A balance that stood below its floor already is not the cycle's doing as long as the cycle raises it.
    if net < Minor::ZERO && closing.get() + credit_line.get() < 0 {
        let (participant, currency) = names();
        findings.push(Finding::BelowFloor {
            participant,
            currency,
            closing,
            credit_line,
        });
    }
    // Who settles nothing needs nothing.
    if stated.settled.count > 0 && available.get() + net.get() < 0 {
        let (participant, currency) = names();
        findings.push(Finding::Unfunded {
            participant,
            currency,
            available,
            net,
        });
    }
}

fn verdict(certificate: Certificate) -> CycleVerdict {
    let mut moved: Vec<AccountName> = Vec::new();
    for dropped in certificate.rounds.iter().flat_map(|round| &round.drops) {
        let account = certificate
            .participants
            .get(&dropped.participant)
            .and_then(|of| of.accounts.get(&dropped.currency));
        if account.is_some_and(|account| account.available_minor != dropped.available_minor) {
            let (participant, currency) = (dropped.participant.clone(), dropped.currency.clone());
            moved.push(AccountName {
                participant,
                currency,
            });
        }
    }
    moved.sort();
    moved.dedup();
    CycleVerdict {
        cluster: certificate.cluster,
        business_date: certificate.business_date,
        cycle: certificate.cycle,
        digest: certificate.digest,
        previous: certificate.previous,
        posts: certificate.posts,
        participants: certificate.participants.len() as u64,
        rounds: certificate.rounds.len() as u64,
        totals: certificate.totals,
        availability_moved: moved,
    }
}
