//! Days whose process is killed: whatever it had come to, run again it goes on, and ends as if nothing had been.

use std::path::{Path, PathBuf};

use crate::compare::{Funds, accounts, check_balances, check_expected, check_receipts, stored};
use crate::example_day::example;
use crate::support::{arguments, clearspan, day, start, tree};

/// Kills a run of the example day as soon as something is to be seen in its output, if it has not ended by then, which is as
/// good: the runs that follow must come to the same end.
fn kill_when(out: &Path, seen: impl Fn(&Path) -> bool) {
    let mut child = start(arguments!["day", example(), "--out", out]);
    while child.try_wait().expect("the child can be asked").is_none() {
        if seen(out) {
            child.kill().expect("the child can be killed");
        }
        std::thread::yield_now();
    }
}

fn count(out: &Path, part: &str) -> usize {
    let path = out.join(part);
    if path.is_dir() {
        walk(&path)
    } else {
        usize::from(path.exists())
    }
}

/// Files below a directory that is being written to.
fn walk(directory: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return 0;
    };
    entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .map(|path: PathBuf| if path.is_dir() { walk(&path) } else { 1 })
        .sum()
}

#[test]
fn killed_at_any_point_and_run_again() {
    let points: [&dyn Fn(&Path) -> bool; 4] = [
        &|out| count(out, "data/log") > 1,
        &|out| count(out, "certificates") > 0,
        &|out| count(out, "outbox") > 40,
        &|out| count(out, "statements") > 0,
    ];
    let reference = tempfile::tempdir().unwrap();
    let expected = day(&example(), &reference.path().join("out"), &[]);
    for (at, point) in points.into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        // Twice, so that a start after a kill is killed too.
        kill_when(&out, point);
        kill_when(&out, point);
        let report = day(&example(), &out, &[]);
        assert_eq!(accounts(&report), accounts(&expected), "point {at}");
        for figure in [
            "payments",
            "refused",
            "gross",
            "netted",
            "not_netted",
            "cancelled",
            "currencies",
        ] {
            assert_eq!(
                report["summary"][figure], expected["summary"][figure],
                "point {at}: {figure}"
            );
        }
        assert_eq!(report["summary"]["reconciled"], true);
        check_balances(&example(), &report);
        let verified = clearspan(arguments!["verify", out]);
        assert_eq!(verified.code, Some(0), "point {at}: {}", verified.stdout);
        let before = tree(&out.join("outbox"));
        let again = day(&example(), &out, &[]);
        assert_eq!(again["summary"], report["summary"]);
        let after = tree(&out.join("outbox"));
        assert!(
            before
                .iter()
                .all(|(path, bytes)| after.get(path) == Some(bytes)),
            "point {at}: a document changed"
        );
    }
}

#[test]
fn a_generated_day_killed_with_many_messages_on_their_way() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("input"), dir.path().join("out"));
    clearspan(&[
        "generate",
        input.to_str().unwrap(),
        "--seed=51",
        "--participants=10",
        "--packages=30x30",
        "--urgent=40",
        "--faulty-payments-ppm=20000",
    ])
    .good();
    let mut last = 0;
    // Each start gets a few cycles further than the one before, until one comes to the end.
    for _ in 0..3 {
        let mut child = start(arguments!["day", input, "--out", out, "--window=64"]);
        while child.try_wait().unwrap().is_none() {
            if count(&out, "certificates") > last {
                child.kill().unwrap();
            }
            std::thread::yield_now();
        }
        last = count(&out, "certificates");
    }
    let report = day(&input, &out, &["--window=64"]);
    check_balances(&input, &report);
    clearspan(arguments!["verify", out]).good();
    // The same day without a kill, to hold the documents to.
    let whole = dir.path().join("whole");
    let unbroken = day(&input, &whole, &[]);
    assert_eq!(accounts(&report), accounts(&unbroken));
    let settled = check_expected(&input, &whole, &unbroken, Funds::Enough);
    check_receipts(&whole, &unbroken, settled.clone());
    check_receipts(&out, &report, settled);
    let payments = |out: &Path| -> usize {
        stored(out)
            .iter()
            .map(|message| message.payments.len())
            .sum()
    };
    assert_eq!(payments(&out), payments(&whole));
}
