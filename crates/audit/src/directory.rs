//! All cycles and all statements below one directory, in order.

use crate::cycle::{self, CycleVerdict};
use crate::days::{self, Chain, DayVerdict, Nets};
use crate::figures::Digest;
use crate::finding::Finding;
use crate::frame::is_date;
use crate::history::History;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What [`verify_directory`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// True when nothing is wrong anywhere.
    pub ok: bool,
    /// What the first certificate follows: none for the first of a cluster, otherwise what an older archive must end with.
    pub certificates_follow: Option<Digest>,
    /// Digest of the last certificate: compare it with one kept elsewhere to know that none is missing at the end.
    pub certificates_end: Option<Digest>,
    /// Digest of the last day of statements, for the same purpose.
    pub statements_end: Option<Digest>,
    /// Payments that settled, over all cycles and currencies.
    pub settled_count: u64,
    /// The cycles, in order.
    pub cycles: Vec<CycleReport>,
    /// The days of statements, in order.
    pub days: Vec<DayReport>,
    /// What is wrong with the directories themselves.
    pub findings: Vec<Finding>,
}

/// One cycle of a [`Report`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CycleReport {
    /// Where it stands, below the root.
    pub path: String,
    /// Its summary, as far as it can be read; right only without findings.
    pub verdict: Option<CycleVerdict>,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
}

/// One day of statements of a [`Report`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DayReport {
    /// Where it stands, below the root.
    pub path: String,
    /// Its summary, as far as it can be read; right only without findings.
    pub verdict: Option<DayVerdict>,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
}

impl Report {
    /// All findings with the path they were made at.
    pub fn all_findings(&self) -> impl Iterator<Item = (&str, &Finding)> {
        let own = self.findings.iter().map(|finding| ("", finding));
        let cycles = self.cycles.iter().flat_map(|at| {
            at.findings
                .iter()
                .map(|finding| (at.path.as_str(), finding))
        });
        let days = self.days.iter().flat_map(|at| {
            at.findings
                .iter()
                .map(|finding| (at.path.as_str(), finding))
        });
        own.chain(cycles).chain(days)
    }
}

/// Verifies `certificates/<date>/cycle-<number>` and `statements/<date>` below `root`: each cycle by itself, the chain
/// of certificates, that no payment settles twice on a date and dropped ones keep
/// their place, the chain of statements, and that statements and
/// certificates tell of the same movements. Names that end in `.part` are unfinished writes and are passed over.
///
/// A directory without certificates is a set of statements alone: what they call netted is then taken as it stands.
///
/// ```no_run
/// let report = clearspan_audit::verify_directory(std::path::Path::new("/var/lib/clearspan/audit"));
/// for (path, finding) in report.all_findings() {
///     eprintln!("{path}: {finding}");
/// }
/// assert!(report.ok);
/// ```
#[must_use]
pub fn verify_directory(root: &Path) -> Report {
    let mut report = Report::default();
    let mut nets: BTreeMap<String, Nets> = BTreeMap::new();
    let with_certificates = root.join("certificates").is_dir();
    if with_certificates {
        verify_certificates(root, &mut report, &mut nets);
    }
    if root.join("statements").is_dir() {
        verify_statements(root, with_certificates.then_some(&nets), &mut report);
    } else if !with_certificates {
        let cause = "neither certificates nor statements".to_owned();
        report.findings.push(Finding::Unreadable {
            file: root.display().to_string(),
            cause,
        });
    }
    let ok = report.all_findings().next().is_none();
    report.ok = ok;
    report
}

fn verify_certificates(root: &Path, report: &mut Report, nets: &mut BTreeMap<String, Nets>) {
    let mut previous: Option<CycleVerdict> = None;
    for date in entries(root, "certificates", &mut report.findings) {
        if !is_date(&date) {
            let (path, cause) = (
                format!("certificates/{date}"),
                "not a business date".to_owned(),
            );
            report.findings.push(Finding::Misplaced { path, cause });
            continue;
        }
        let below = format!("certificates/{date}");
        let mut numbers: Vec<u64> = Vec::new();
        for name in entries(root, &below, &mut report.findings) {
            match name
                .strip_prefix("cycle-")
                .and_then(|number| number.parse().ok())
            {
                Some(number) if name == format!("cycle-{number:04}") => numbers.push(number),
                _ => {
                    let (path, cause) = (format!("{below}/{name}"), "not a cycle".to_owned());
                    report.findings.push(Finding::Misplaced { path, cause });
                }
            }
        }
        numbers.sort_unstable();
        let mut history = History::default();
        let nets = nets.entry(date.clone()).or_default();
        for number in numbers {
            let path = format!("{below}/cycle-{number:04}");
            let cycle = verify_one(
                root,
                &path,
                (&date, number),
                previous.as_ref(),
                &mut history,
                nets,
            );
            if let Some(verdict) = &cycle.verdict {
                if previous.is_none() {
                    report.certificates_follow = verdict.previous;
                }
                report.certificates_end = Some(verdict.digest);
                let settled = verdict.totals.values().map(|totals| totals.settled.count);
                report.settled_count = settled.fold(report.settled_count, u64::saturating_add);
                previous = Some(verdict.clone());
            }
            report.cycles.push(cycle);
        }
    }
}

fn verify_one(
    root: &Path,
    path: &str,
    (date, number): (&str, u64),
    previous: Option<&CycleVerdict>,
    history: &mut History,
    nets: &mut Nets,
) -> CycleReport {
    let mut examined = cycle::examine(&root.join(path), previous, history);
    if let Some(verdict) = &examined.verdict
        && (verdict.business_date.as_str(), verdict.cycle) != (date, number)
    {
        let cause = format!(
            "the certificate is of cycle {} of {:?}",
            verdict.cycle, verdict.business_date
        );
        examined.findings.push(Finding::Misplaced {
            path: path.to_owned(),
            cause,
        });
    }
    for (name, net) in examined.nets {
        *nets.entry(name).or_default() += net.get();
    }
    CycleReport {
        path: path.to_owned(),
        verdict: examined.verdict,
        findings: examined.findings,
    }
}

fn verify_statements(root: &Path, nets: Option<&BTreeMap<String, Nets>>, report: &mut Report) {
    let mut chain = Chain::default();
    let none = Nets::new();
    for date in entries(root, "statements", &mut report.findings) {
        let path = format!("statements/{date}");
        if !is_date(&date) {
            report.findings.push(Finding::Misplaced {
                path,
                cause: "not a business date".to_owned(),
            });
            continue;
        }
        let nets = nets.map(|nets| nets.get(&date).unwrap_or(&none));
        let (verdict, findings) = days::examine(&root.join(&path), &date, nets, &mut chain);
        if let Some(verdict) = &verdict {
            report.statements_end = Some(verdict.digest);
        }
        report.days.push(DayReport {
            path,
            verdict,
            findings,
        });
    }
}

/// Names in `root/below` in ascending order, without unfinished writes.
fn entries(root: &Path, below: &str, findings: &mut Vec<Finding>) -> Vec<String> {
    let read = || -> std::io::Result<Vec<String>> {
        let names = fs::read_dir(root.join(below))?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    };
    match read() {
        Ok(mut names) => {
            names.retain(|name| !name.ends_with(".part"));
            names.sort();
            names
        }
        Err(e) => {
            findings.push(Finding::Unreadable {
                file: below.to_owned(),
                cause: e.to_string(),
            });
            Vec::new()
        }
    }
}
