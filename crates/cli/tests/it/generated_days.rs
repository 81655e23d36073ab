//! Generated days: the generator knows beforehand what must come out, and shares no code with what is under test.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::compare::{
    Funds, accounts, check_balances, check_expected, check_money, check_receipts,
};
use crate::support::{clearspan, day, number, parse};

fn generate(dir: &Path, more: &[&str]) -> PathBuf {
    let input = dir.join("input");
    let mut all = vec![
        "generate".into(),
        input.clone().into_os_string(),
        "--json".into(),
    ];
    for option in [
        "--participants=12",
        "--packages=4x40,2x150",
        "--urgent=30",
        "--faulty-payments-ppm=60000",
    ] {
        let name = option.split('=').next().unwrap();
        if !more.iter().any(|given| given.starts_with(name)) {
            all.push(option.into());
        }
    }
    all.extend(more.iter().map(std::ffi::OsString::from));
    let made = parse(&clearspan(&all).good());
    assert!(number(&made["messages"]) > 0);
    input
}

fn run_and_check(input: &Path, out: &Path, funds: Funds) -> Value {
    let report = day(input, out, &[]);
    let settled = check_expected(input, out, &report, funds);
    if funds == Funds::Enough {
        check_balances(input, &report);
        assert_eq!(number(&report["summary"]["not_netted"]), 0);
    }
    check_receipts(out, &report, settled);
    check_money(&report);
    let verified = clearspan(&["verify".as_ref(), out.as_os_str()]);
    assert_eq!(verified.code, Some(0), "{}", verified.stdout);
    report
}

#[test]
fn every_version_with_faults_of_every_kind() {
    for version in 6..=13_u32 {
        let dir = tempfile::tempdir().unwrap();
        let (seed, version) = (
            format!("--seed={}", 100 + version),
            format!("--message-version={version}"),
        );
        let input = generate(dir.path(), &[&seed, &version]);
        run_and_check(&input, &dir.path().join("out"), Funds::Enough);
    }
}

#[test]
fn headers_and_numbered_messages() {
    for (seed, more) in [
        ("21", &["--header"][..]),
        ("22", &["--sequenced"]),
        ("23", &["--header", "--sequenced"]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let seed = format!("--seed={seed}");
        let mut options = vec![seed.as_str()];
        options.extend(more);
        let input = generate(dir.path(), &options);
        run_and_check(&input, &dir.path().join("out"), Funds::Enough);
    }
}

#[test]
fn just_enough_funds_and_not_enough() {
    let dir = tempfile::tempdir().unwrap();
    let input = generate(dir.path(), &["--seed=31", "--coverage-percent=100"]);
    run_and_check(&input, &dir.path().join("out"), Funds::Enough);
    for seed in ["--seed=32", "--seed=33", "--seed=34"] {
        let dir = tempfile::tempdir().unwrap();
        let input = generate(
            dir.path(),
            &[seed, "--coverage-percent=70", "--shortfall-percent=40"],
        );
        let report = run_and_check(&input, &dir.path().join("out"), Funds::Short);
        let summary = &report["summary"];
        let short = number(&summary["not_netted"]) + number(&summary["gross"]["refused"]);
        assert!(short > 0, "the seed should run short");
        let all = number(&summary["gross"]["settled"]) + number(&summary["netted"]) + short;
        assert!(all <= number(&summary["payments"]));
    }
}

#[test]
fn neither_window_nor_shards_nor_threads_change_an_account() {
    let seed = "--seed=41";
    let dir = tempfile::tempdir().unwrap();
    let input = generate(dir.path(), &[seed, "--shards=4", "--urgent=60"]);
    let first = run_and_check(&input, &dir.path().join("out"), Funds::Enough);
    for more in [
        &["--window=64"][..],
        &["--window=3", "--threads=1"],
        &["--window=200", "--threads=7"],
    ] {
        let out = dir.path().join(more.concat());
        let report = day(&input, &out, more);
        assert_eq!(accounts(&report), accounts(&first), "{more:?}");
        check_balances(&input, &report);
    }
    for shards in ["--shards=1", "--shards=7"] {
        let dir = tempfile::tempdir().unwrap();
        let input = generate(dir.path(), &[seed, shards, "--urgent=60"]);
        let report = day(&input, &dir.path().join("out"), &["--window=16"]);
        assert_eq!(accounts(&report), accounts(&first), "{shards}");
    }
}

#[test]
fn the_same_options_write_the_same_bytes_and_never_into_another_day() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let one = generate(first.path(), &["--seed=5"]);
    let two = generate(second.path(), &["--seed=5"]);
    assert!(crate::support::tree(&one) == crate::support::tree(&two));
    let error = clearspan(&["generate".as_ref(), one.as_os_str()]).error();
    assert!(error.contains("is there already"), "{error}");
}
