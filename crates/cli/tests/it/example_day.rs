//! The example day: everything that its page promises.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::compare::{Funds, check_balances, check_expected, check_money, check_receipts};
use crate::documents::Outbox;
use crate::support::{arguments, clearspan, day, number, query, root, tree};
use crate::xml::{first, need};

/// Where the example's input lies.
pub(crate) fn example() -> PathBuf {
    root().join("examples/day")
}

/// A finished run of the example, for tests that only read its documents, certificates and statements.
pub(crate) fn finished() -> &'static PathBuf {
    static OUT: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, out) = OUT.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let out = dir.path().join("out");
        day(&example(), &out, &[]);
        (dir, out)
    });
    out
}

#[test]
fn every_expectation_is_met_and_the_input_stays_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let before = tree(&example());
    let report = day(&example(), &out, &[]);
    assert!(tree(&example()) == before, "the input was changed");
    let settled = check_expected(&example(), &out, &report, Funds::Enough);
    check_balances(&example(), &report);
    check_receipts(&out, &report, settled);
    assert!(check_money(&report) > 100);
    let verified = clearspan(arguments!["verify", out]).good();
    assert!(
        verified.contains("verified: 2 cycles, 1 business day"),
        "{verified}"
    );

    // Again: everything is known, and nothing that was put out changes.
    let (documents, certificates, statements) = (
        numbered(&out),
        tree(&out.join("certificates")),
        tree(&out.join("statements")),
    );
    let again = clearspan(arguments!["day", example(), "--out", out]).good();
    assert!(
        again.contains("Everything had been taken in before: nothing was settled again."),
        "{again}"
    );
    assert!(numbered(&out) == documents);
    assert!(tree(&out.join("certificates")) == certificates);
    assert!(tree(&out.join("statements")) == statements);
    let third = day(&example(), &out, &[]);
    assert_eq!(third["summary"], report["summary"]);
    let run = &third["run"];
    assert_eq!(
        (
            number(&run["taken"]),
            number(&run["cycles"]),
            number(&run["documents_written"])
        ),
        (0, 0, 0)
    );
    assert_eq!(number(&run["documents_kept"]), documents.len() as u64);
    // What each account holds is asked of the node itself too: a run again must not bring money.
    for row in third["summary"]["accounts"].as_array().unwrap() {
        let currency = row["after"]["currency"].as_str().unwrap();
        if row["participant"] == "ALFADEFFXXX" {
            let account = query(&out, &["account", "ALFADEFF", currency]);
            assert_eq!(account[0]["balance"], row["after"]);
        }
    }
    assert!(clearspan(arguments!["verify", out]).code == Some(0));
}

fn numbered(out: &std::path::Path) -> Vec<(PathBuf, Vec<u8>)> {
    tree(&out.join("outbox"))
        .into_iter()
        .filter(|(path, _)| path.iter().count() == 2)
        .collect()
}

#[test]
fn states_in_between_and_answers_to_requests() {
    let outbox = Outbox::read(finished());
    let statuses = outbox.statuses();
    let course = |id: &str| -> Vec<String> {
        let of = statuses.iter().filter(|status| status.message_id == id);
        of.flat_map(|status| status.payments.iter())
            .map(|payment| {
                format!("{} {}", payment.status, payment.code)
                    .trim_end()
                    .to_owned()
            })
            .collect()
    };
    assert_eq!(course("HOTL-U3"), ["RJCT AM04"]);
    assert_eq!(course("HOTL-U1"), ["PDNG AM04", "ACSC"]);
    assert_eq!(course("HOTL-U2"), ["PDNG ED05", "ACSC"]);
    assert_eq!(course("HOTL-U4"), ["RJCT TM01"]);
    assert_eq!(course("HOTL-U5"), ["PDNG ED05", "CANC"]);
    assert_eq!(course("LIMA-N2"), ["PDNG AM04", "PDNG AM04", "RJCT AM04"]);
    assert_eq!(course("ECHO-N2")[..2], ["PDNG AM04", "PDNG AM04"]);
    assert_eq!(course("HOTL-R2"), ["RJCT AM09"]);

    let resolutions: Vec<_> = outbox
        .of("camt.029")
        .map(|document| {
            let xml = &document.xml;
            let id = need(xml, "CxlStsId").to_owned();
            let code = first(need(xml, "TxInfAndSts"), "Cd")
                .unwrap_or_default()
                .to_owned();
            (document.bic.clone(), id, need(xml, "Conf").to_owned(), code)
        })
        .collect();
    let expected = [
        ("ALFADEFFXXX", "ALFA-C1.1", "RJCR", "NOOR"),
        ("ALFADEFFXXX", "ALFA-C2.1", "PDCR", "PTNA"),
        ("HOTLLULLXXX", "HOTL-C1.1", "CNCL", ""),
    ]
    .map(|(bic, id, conf, code)| {
        (
            bic.to_owned(),
            id.to_owned(),
            conf.to_owned(),
            code.to_owned(),
        )
    });
    assert_eq!(resolutions, expected);

    let recalls: Vec<_> = outbox
        .of("camt.056")
        .map(|document| document.bic.as_str())
        .collect();
    assert_eq!(recalls, ["HOTLLULLXXX"]);
    let gap: Vec<_> = outbox.of("admi.007").collect();
    assert_eq!(gap.len(), 1);
    assert_eq!(gap[0].bic, "FOXTESMMXXX");
    assert!(gap[0].xml.contains("<Ref>2</Ref><MsgNm>SEQUENCE</MsgNm>"));

    let answers: Vec<_> = tree(&finished().join("outbox"))
        .into_iter()
        .filter(|(path, _)| path.iter().any(|part| part == "answers"))
        .map(|(path, bytes)| {
            (
                path.to_string_lossy().into_owned(),
                String::from_utf8(bytes).unwrap(),
            )
        })
        .collect();
    let answer = |file: &str| {
        let mut found = answers.iter().filter(|(path, _)| path.contains(file));
        let answer = found
            .next()
            .unwrap_or_else(|| panic!("no answer to {file}"));
        assert!(found.next().is_none(), "two answers to {file}");
        answer
    };
    let (path, enquiry) = answer("02-noon+0009-status-enquiry");
    assert!(path.starts_with("HOTLLULLXXX"));
    assert_eq!(need(enquiry, "TxSts"), "ACSC");
    let (path, report) = answer("02-noon+0010-report-request");
    assert!(path.starts_with("BRAVFRPPXXX") && path.ends_with("camt.052.xml"));
    assert!(report.contains("BRAVFRPPXXX-EUR"));
    // To whom it can be made out, an unreadable message is answered; one that hides its sender is answered to nobody.
    assert!(answer("0027-message-id-36-characters").1.contains("CH21"));
    assert!(answer("0029-malformed").1.contains("FF01"));
    assert!(!answers.iter().any(|(path, _)| path.contains("0032")));
}

#[test]
fn a_day_repeated_elsewhere_gives_the_same_results() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("other");
    let report = day(&example(), &out, &["--threads", "1", "--window", "1"]);
    check_balances(&example(), &report);
    // Times and log positions apart, every participant gets the same documents in the same order.
    let names = |out: &std::path::Path| -> Vec<PathBuf> {
        numbered(out).into_iter().map(|(path, _)| path).collect()
    };
    assert_eq!(names(&out), names(finished()));
    let states = |out: &std::path::Path| -> Vec<String> {
        Outbox::read(out)
            .statuses()
            .iter()
            .map(|status| {
                format!(
                    "{} {} {} {:?}",
                    status.bic, status.message_id, status.group, status.payments
                )
            })
            .collect()
    };
    assert_eq!(states(&out), states(finished()));
}

#[test]
fn the_output_of_another_day_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("input"), dir.path().join("out"));
    crate::input::participants(
        &input,
        2,
        &[crate::input::bank("ALFADEFFXXX", 1, &[("EUR", "5.00")])],
    );
    day(&input, &out, &[]);
    let before = tree(&out.join("outbox"));
    // Other shards.
    let error = clearspan(arguments!["day", example(), "--out", out]).error();
    assert!(
        error.contains("2 shards") && error.contains("4 are configured"),
        "{error}"
    );
    // Another participant under a known code.
    let toml = std::fs::read_to_string(input.join("participants.toml")).unwrap();
    let changed = dir.path().join("changed");
    crate::support::write(
        &changed.join("participants.toml"),
        toml.replace("name = \"ALFADEFFXXX\"", "name = \"Beta\"")
            .as_bytes(),
    );
    std::fs::create_dir_all(changed.join("inbox")).unwrap();
    let error = clearspan(arguments!["day", changed, "--out", out]).error();
    assert!(error.contains("ALFADEFFXXX was taken up as"), "{error}");
    // Another credit line.
    crate::support::write(
        &changed.join("participants.toml"),
        format!("{toml}credit_line = \"2.50\"\n").as_bytes(),
    );
    let error = clearspan(arguments!["day", changed, "--out", out]).error();
    assert!(
        error.contains("the EUR account of ALFADEFFXXX was opened with a credit line of 0.00; the settings say 2.50"),
        "{error}"
    );
    // An earlier business date.
    crate::support::write(
        &changed.join("participants.toml"),
        toml.replace("2026-11-30", "2026-11-27").as_bytes(),
    );
    let error = clearspan(arguments!["day", changed, "--out", out]).error();
    assert!(
        error.contains("2026-11-30") && error.contains("2026-11-27"),
        "{error}"
    );
    assert!(tree(&out.join("outbox")) == before);
}

#[test]
fn output_for_people_says_what_happened() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let text = clearspan(arguments!["day", example(), "--out", out]).good();
    for line in [
        "Business day 2026-11-30: 13 participants, 4 shards",
        "not taken: 01-morning/0029-malformed.xml: FF01 in line 2",
        "Reconciled: receipts = cycles = ledger, by count and by sum.",
        "ALFADEFFXXX  EUR       1 000 000.00    930 121.78   250 000.00",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    // Pipes that close early are no failure of the day.
    assert!(text.ends_with(&format!("Output: {}\n", out.display())));
}
