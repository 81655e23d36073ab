//! The certificate's frame: format, names, numbers and log positions, before any payment is read.

use crate::certificate::{CERTIFICATE_FORMAT, CERTIFICATE_VERSION, Certificate};
use crate::cycle::CycleVerdict;
use crate::finding::{Finding, Findings};
use crate::inputs::text_is_sound;

/// Checks everything that stands in `certificate.json` alone and its place in the chain.
pub(crate) fn check(
    certificate: &Certificate,
    previous: Option<&CycleVerdict>,
    findings: &mut Findings,
) {
    if certificate.format != CERTIFICATE_FORMAT || certificate.version != CERTIFICATE_VERSION {
        let (file, format, version) = (
            "certificate.json".to_owned(),
            certificate.format.clone(),
            certificate.version,
        );
        findings.push(Finding::Unsupported {
            file,
            format,
            version,
        });
    }
    match certificate.computed_digest() {
        Ok(expected) if expected == certificate.digest => {}
        Ok(expected) => {
            let (document, found) = ("certificate.json".to_owned(), certificate.digest);
            findings.push(Finding::OwnDigest {
                document,
                expected,
                found,
            });
        }
        Err(e) => findings.push(Finding::Field {
            field: "digest",
            cause: e.to_string(),
        }),
    }
    check_fields(certificate, findings);
    check_log_positions(certificate, findings);
    if let Some(previous) = previous {
        check_chain(certificate, previous, findings);
    }
}

fn check_fields(certificate: &Certificate, findings: &mut Findings) {
    let mut unsound = |field, cause: String| findings.push(Finding::Field { field, cause });
    if !text_is_sound(&certificate.cluster) {
        unsound(
            "cluster",
            "empty, too long or with control characters".to_owned(),
        );
    }
    if !is_date(&certificate.business_date) {
        unsound(
            "business_date",
            format!("{:?} is not a date", certificate.business_date),
        );
    }
    if certificate.cycle == 0 {
        unsound("cycle", "cycles count from 1".to_owned());
    }
    for (currency, &decimals) in &certificate.currencies {
        if !is_currency(currency) {
            unsound(
                "currencies",
                format!("{currency:?} is not three capital letters"),
            );
        }
        if decimals > 5 {
            unsound(
                "currencies",
                format!("{currency} with {decimals} decimals; amounts have at most 5"),
            );
        }
    }
    if !certificate.totals.keys().eq(certificate.currencies.keys()) {
        unsound(
            "totals",
            "not one entry for each of the currencies".to_owned(),
        );
    }
    for (name, participant) in &certificate.participants {
        if !text_is_sound(name) {
            unsound(
                "participants",
                format!("the name {name:?} is empty, too long or with control characters"),
            );
        }
        for currency in participant.accounts.keys() {
            if !certificate.currencies.contains_key(currency) {
                unsound(
                    "participants",
                    format!("{name} has an account in {currency}, not a currency of the cycle"),
                );
            }
        }
    }
}

fn check_log_positions(certificate: &Certificate, findings: &mut Findings) {
    let mut order = |shard, (earlier, earlier_index), (later, later_index)| {
        if earlier_index > later_index {
            findings.push(Finding::LogOrder {
                shard,
                earlier,
                earlier_index,
                later,
                later_index,
            });
        }
    };
    let decided = certificate.decided;
    order(
        decided.shard,
        ("the first entry", 1),
        ("decision", decided.index),
    );
    for (&shard, &cut) in &certificate.cuts {
        order(shard, ("the first entry", 1), ("cut", cut));
        if let Some(&post) = certificate.posts.get(&shard) {
            order(shard, ("cut", cut), ("post", post));
        }
    }
    // The decision follows the coordinator's own cut and comes before, or together with, its own post.
    if let Some(&cut) = certificate.cuts.get(&decided.shard) {
        order(decided.shard, ("cut", cut), ("decision", decided.index));
    }
    if let Some(&post) = certificate.posts.get(&decided.shard) {
        order(decided.shard, ("decision", decided.index), ("post", post));
    }
    let homes = certificate
        .participants
        .values()
        .map(|participant| participant.shard);
    let named = homes
        .chain(certificate.cuts.keys().copied())
        .chain(certificate.posts.keys().copied());
    for shard in named.collect::<std::collections::BTreeSet<u32>>() {
        for (what, positions) in [("cut", &certificate.cuts), ("post", &certificate.posts)] {
            if !positions.contains_key(&shard) {
                findings.push(Finding::ShardMissing { shard, what });
            }
        }
    }
}

fn check_chain(certificate: &Certificate, previous: &CycleVerdict, findings: &mut Findings) {
    let document = || "certificate.json".to_owned();
    if certificate.previous != Some(previous.digest) {
        let (expected, found) = (Some(previous.digest), certificate.previous);
        findings.push(Finding::ChainBreak {
            document: document(),
            expected,
            found,
        });
    }
    if certificate.cluster != previous.cluster {
        let (expected, found) = (previous.cluster.clone(), certificate.cluster.clone());
        findings.push(Finding::OtherCluster {
            document: document(),
            expected,
            found,
        });
    }
    let (this, before) = (
        (certificate.business_date.as_str(), certificate.cycle),
        (previous.business_date.as_str(), previous.cycle),
    );
    if this <= before {
        let cause = format!(
            "cycle {} of {} does not come after cycle {} of {}",
            this.1, this.0, before.1, before.0
        );
        findings.push(Finding::Field {
            field: "cycle",
            cause,
        });
    }
    for (&shard, &earlier_index) in &previous.posts {
        if let Some(&later_index) = certificate.cuts.get(&shard)
            && later_index <= earlier_index
        {
            let (earlier, later) = ("post of the cycle before", "cut");
            findings.push(Finding::LogOrder {
                shard,
                earlier,
                earlier_index,
                later,
                later_index,
            });
        }
    }
}

pub(crate) fn is_currency(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|b| b.is_ascii_uppercase())
}

/// `YYYY-MM-DD`, a day of the Gregorian calendar.
pub(crate) fn is_date(text: &str) -> bool {
    let plain = text.len() == 10
        && text.bytes().enumerate().all(|(at, b)| {
            if matches!(at, 4 | 7) {
                b == b'-'
            } else {
                b.is_ascii_digit()
            }
        });
    let mut parts = text.split('-').map(str::parse::<u32>);
    let (Some(Ok(year)), Some(Ok(month)), Some(Ok(day))) =
        (parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    plain && (1..=days).contains(&day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days_that_exist() {
        for good in ["2026-03-02", "2028-02-29", "2000-02-29", "2026-12-31"] {
            assert!(is_date(good), "{good}");
        }
        for bad in [
            "",
            "2026-3-2",
            "2026-02-29",
            "2100-02-29",
            "2026-04-31",
            "2026-13-01",
            "2026-00-10",
            "2026/03/02",
        ] {
            assert!(!is_date(bad), "{bad}");
        }
    }
}
