//! Messages for a business day that has ended, and answers asked for again.

use crate::input::{bank, pacs008, participants, pay, put};
use crate::support::{arguments, clearspan, day, number, tree};

#[test]
fn another_input_for_a_day_that_has_ended_is_refused_and_says_what_to_do() {
    let dir = tempfile::tempdir().expect("a directory");
    let (first, second, out) = (
        dir.path().join("first"),
        dir.path().join("second"),
        dir.path().join("out"),
    );
    let banks = [
        bank("AAAADEFFXXX", 0, &[("EUR", "100.00")]),
        bank("BBBBDEFFXXX", 1, &[("EUR", "0.00")]),
    ];
    for (input, id) in [(&first, "M1"), (&second, "M2")] {
        participants(input, 2, &banks);
        put(
            input,
            "1.xml",
            &pacs008(id, "AAAADEFFXXX", &[pay(id, "BBBBDEFFXXX", "EUR", "10.00")]),
        );
    }
    let report = day(&first, &out, &[]);
    assert_eq!(number(&report["run"]["after_close"]), 0);
    let late = clearspan(arguments!["day", &second, "--out", &out]);
    assert_eq!(late.code, Some(5), "{late:?}");
    assert!(
        late.stdout
            .contains("1 messages came too late and were not taken"),
        "{}",
        late.stdout
    );
    assert!(late.stdout.contains("another --out"), "{}", late.stdout);
    // The answer of the late message stands once, however often it is sent.
    let before = tree(&out.join("outbox"));
    clearspan(arguments!["day", &second, "--out", &out]);
    let names = |tree: &std::collections::BTreeMap<std::path::PathBuf, Vec<u8>>| {
        tree.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(names(&tree(&out.join("outbox"))), names(&before));
}

#[test]
fn a_day_that_has_ended_takes_up_nobody() {
    let dir = tempfile::tempdir().expect("a directory");
    let (first, second, out) = (
        dir.path().join("first"),
        dir.path().join("second"),
        dir.path().join("out"),
    );
    participants(&first, 2, &[bank("AAAADEFFXXX", 0, &[("EUR", "100.00")])]);
    participants(
        &second,
        2,
        &[
            bank("AAAADEFFXXX", 0, &[("EUR", "100.00")]),
            bank("BBBBDEFFXXX", 1, &[("EUR", "7.00")]),
        ],
    );
    let before = day(&first, &out, &[]);
    let error = clearspan(arguments!["day", &second, "--out", &out]).error();
    assert!(error.contains("BBBBDEFFXXX"), "{error}");
    assert_eq!(day(&first, &out, &[])["summary"], before["summary"]);
}

#[test]
fn a_lost_package_store_is_named_by_every_command() {
    let dir = tempfile::tempdir().expect("a directory");
    let (input, out) = (dir.path().join("in"), dir.path().join("out"));
    participants(
        &input,
        1,
        &[
            bank("AAAADEFFXXX", 0, &[("EUR", "100.00")]),
            bank("BBBBDEFFXXX", 0, &[("EUR", "0.00")]),
        ],
    );
    put(
        &input,
        "1.xml",
        &pacs008(
            "M1",
            "AAAADEFFXXX",
            &[pay("P1", "BBBBDEFFXXX", "EUR", "10.00")],
        ),
    );
    day(&input, &out, &[]);
    std::fs::remove_dir_all(out.join("data/packages")).expect("removed");
    for command in [
        &arguments!["query", &out, "cycle"][..],
        &arguments!["day", &input, "--out", &out][..],
    ] {
        let error = clearspan(command).error();
        assert!(
            error.contains("packages 0 to 0 should be in the package store, it holds none"),
            "{error}"
        );
    }
}

#[test]
fn an_account_is_funded_once_whatever_later_settings_say() {
    let dir = tempfile::tempdir().expect("a directory");
    let (input, out) = (dir.path().join("in"), dir.path().join("out"));
    participants(&input, 2, &[bank("AAAADEFFXXX", 1, &[("EUR", "0.00")])]);
    day(&input, &out, &[]);
    let settings = input.join("participants.toml");
    let text = std::fs::read_to_string(&settings).expect("settings");
    let richer = text.replace("\"0.00\"", "\"500.00\"");
    // The same day again, and the next one.
    for changed in [richer.clone(), richer.replace("2026-11-30", "2026-12-01")] {
        std::fs::write(&settings, changed).expect("written");
        let report = day(&input, &out, &[]);
        assert_eq!(report["summary"]["accounts"][0]["after"]["value"], "0.00");
    }
}
