//! `clearspan verify`

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::output;

/// Check certificates and statement chains with code that shares nothing with the netting
#[derive(Debug, Args)]
#[command(after_help = "\
Checks every cycle's certificate (inputs, prefixes, sums, zero sum, closing = opening + net, floors, each round's drops, \
greatest feasible set), the chain of certificates, and the chain of statements. Needs nothing but the files. \
Exit code 0 when everything holds, 1 when anything does not.

Example:
  clearspan verify out/day")]
pub(crate) struct Verify {
    /// Output directory of a day, with certificates/ and statements/
    dir: PathBuf,
}

impl Verify {
    pub(crate) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let report = clearspan_audit::verify_directory(&self.dir);
        if json {
            output::json(&report)?;
        } else {
            let mut out = std::io::stdout().lock();
            for (path, finding) in report.all_findings() {
                writeln!(out, "{path}: {finding}")?;
            }
            writeln!(
                out,
                "{}: {}, {}, {} settled payments checked",
                if report.ok {
                    "verified"
                } else {
                    "NOT VERIFIED"
                },
                output::some(report.cycles.len(), "cycle"),
                output::some(report.days.len(), "business day"),
                output::count(report.settled_count)
            )?;
            for (missing, what) in [
                (report.cycles.is_empty(), "certificates"),
                (report.days.is_empty(), "statements"),
            ] {
                if missing && report.ok {
                    writeln!(out, "there are no {what} here: nothing is said about them")?;
                }
            }
            if let Some(before) = &report.certificates_follow {
                writeln!(
                    out,
                    "the first certificate here follows an older one, {before}: keep that figure to prove that none is missing"
                )?;
            }
        }
        Ok(if report.ok {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}
