//! Statement chains: sound ones pass with and without certificates, and what breaks them is named.

use crate::netting::{DATE, case, net};
use clearspan_audit::{
    DAY_FORMAT, DAY_VERSION, Day, DayCurrency, Digest, Finding, Minor, Report, Statement,
    cycle_directory, day_directory, verify_directory, write_day,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const NEXT_DATE: &str = "2026-03-03";

fn minor(value: i128) -> Minor {
    Minor::from(value)
}

fn statement(
    participant: &str,
    date: &str,
    opening: i128,
    debits: i128,
    credits: i128,
) -> Statement {
    Statement {
        participant: participant.into(),
        currency: "EUR".into(),
        business_date: date.into(),
        sequence: 1,
        opening_minor: minor(opening),
        debits: u64::from(debits != 0),
        debits_minor: minor(debits),
        credits: u64::from(credits != 0),
        credits_minor: minor(credits),
        netted_minor: Minor::ZERO,
        closing_minor: minor(opening - debits + credits),
        first_output: 1,
        last_output: 4,
        previous: None,
        digest: Digest::default(),
    }
}

fn after(before: &Statement, debits: i128, credits: i128) -> Statement {
    Statement {
        sequence: before.sequence + 1,
        first_output: before.last_output + 1,
        last_output: before.last_output + 3,
        previous: Some(before.computed_digest().expect("a digest")),
        ..statement(
            &before.participant,
            NEXT_DATE,
            before.closing_minor.get(),
            debits,
            credits,
        )
    }
}

/// Two days of two accounts. Day 1: the central bank funds A with 100, A pays 30, of which B has 25 and 5 travel.
/// Day 2: the 5 arrive and B pays 10 to A.
struct Days {
    first: (Day, Vec<Statement>),
    second: (Day, Vec<Statement>),
}

fn day(date: &str, central_bank: i128, transit: (i128, i128)) -> Day {
    let currency = DayCurrency {
        central_bank_minor: minor(central_bank),
        in_transit_opening_minor: minor(transit.0),
        in_transit_closing_minor: minor(transit.1),
    };
    Day {
        format: DAY_FORMAT.into(),
        version: DAY_VERSION,
        cluster: "test".into(),
        business_date: date.into(),
        statements: 0,
        statements_blake3: Digest::default(),
        currencies: BTreeMap::from([("EUR".into(), currency)]),
        previous: None,
        digest: Digest::default(),
    }
}

fn days() -> Days {
    let first = vec![
        statement("BANKA", DATE, 0, 30, 100),
        statement("BANKB", DATE, 0, 0, 25),
    ];
    let second = vec![after(&first[0], 0, 10), after(&first[1], 10, 5)];
    Days {
        first: (day(DATE, 100, (0, 5)), first),
        second: (day(NEXT_DATE, 0, (5, 0)), second),
    }
}

fn write(root: &Path, days: Days) {
    let sealed = write_day(&day_directory(root, DATE), &days.first.0, days.first.1).expect("write");
    let mut second = days.second.0;
    second.previous = second.previous.or(Some(sealed.digest));
    write_day(&day_directory(root, NEXT_DATE), &second, days.second.1).expect("write");
}

fn verify(days: Days) -> Report {
    let root = tempfile::tempdir().expect("a directory");
    write(root.path(), days);
    verify_directory(root.path())
}

#[track_caller]
fn caught(tamper: impl FnOnce(&mut Days), expected: impl Fn(&Finding) -> bool) {
    let mut days = days();
    tamper(&mut days);
    let report = verify(days);
    assert!(!report.ok);
    assert!(
        report.all_findings().any(|(_, finding)| expected(finding)),
        "{report:#?}"
    );
}

#[test]
fn a_sound_chain_passes() {
    let report = verify(days());
    assert!(report.ok, "{report:#?}");
    assert_eq!(report.days.len(), 2);
    let changes: Vec<Minor> = report
        .days
        .iter()
        .map(|day| day.verdict.as_ref().expect("a verdict").change_minor["EUR"])
        .collect();
    assert_eq!(changes, [minor(95), minor(5)]);
}

#[test]
fn a_closing_balance_changed() {
    caught(
        |days| days.first.1[0].closing_minor = minor(71),
        |finding| {
            matches!(
                finding,
                Finding::StatementFigure {
                    figure: "closing_minor",
                    line: 1,
                    ..
                }
            )
        },
    );
}

#[test]
fn an_opening_balance_changed() {
    caught(
        |days| {
            days.second.1[0].opening_minor = minor(71);
            days.second.1[0].closing_minor = minor(81);
        },
        |finding| {
            matches!(
                finding,
                Finding::StatementFigure {
                    figure: "opening_minor",
                    line: 1,
                    ..
                }
            )
        },
    );
}

#[test]
fn money_made_in_the_books() {
    caught(
        |days| {
            days.first.1[0].credits_minor = minor(101);
            days.first.1[0].closing_minor = minor(71);
            let first = days.first.1[0].clone();
            days.second.1[0] = after(&first, 0, 10);
        },
        |finding| {
            matches!(finding, Finding::DayFigure { figure: "central_bank_minor", expected, found, .. }
                if (expected.get(), found.get()) == (101, 100))
        },
    );
}

#[test]
fn money_lost_on_the_way() {
    caught(
        |days| {
            days.second.0 = day(NEXT_DATE, 0, (4, 0));
            days.second.1[1].credits_minor = minor(4);
            days.second.1[1].closing_minor = minor(19);
        },
        |finding| {
            matches!(
                finding,
                Finding::DayFigure {
                    figure: "in_transit_opening_minor",
                    ..
                }
            )
        },
    );
    caught(
        |days| {
            days.second.0.currencies.clear();
        },
        |finding| {
            matches!(
                finding,
                Finding::DayFigure {
                    figure: "in_transit_opening_minor",
                    found: Minor::ZERO,
                    ..
                }
            )
        },
    );
}

#[test]
fn a_statement_left_out() {
    caught(
        |days| drop(days.second.1.remove(1)),
        |finding| matches!(finding, Finding::StatementMissing { participant, .. } if participant == "BANKB"),
    );
}

#[test]
fn a_chain_cut() {
    caught(
        |days| days.second.1[0].previous = None,
        |finding| matches!(finding, Finding::ChainBreak { document, .. } if document.contains("BANKA")),
    );
    caught(
        |days| days.second.0.previous = Some(Digest::of(b"another")),
        |finding| matches!(finding, Finding::ChainBreak { document, .. } if document == "day.json"),
    );
}

#[test]
fn numbers_that_do_not_follow() {
    caught(
        |days| days.second.1[0].sequence = 3,
        |finding| {
            matches!(
                finding,
                Finding::StatementFigure {
                    figure: "sequence",
                    ..
                }
            )
        },
    );
    caught(
        |days| days.second.1[0].first_output = 6,
        |finding| {
            matches!(
                finding,
                Finding::StatementFigure {
                    figure: "first_output",
                    ..
                }
            )
        },
    );
    caught(
        |days| days.second.1[0].last_output = 2,
        |finding| {
            matches!(
                finding,
                Finding::StatementFigure {
                    figure: "last_output",
                    ..
                }
            )
        },
    );
    caught(
        |days| days.first.1.swap(0, 1),
        |finding| matches!(finding, Finding::StatementOrder { line: 2, .. }),
    );
}

#[test]
fn a_sum_without_postings_or_below_zero() {
    caught(
        |days| days.first.1[0].debits = 0,
        |finding| {
            matches!(
                finding,
                Finding::StatementFigure {
                    figure: "debits_minor",
                    ..
                }
            )
        },
    );
    caught(
        |days| {
            days.first.1[0].debits_minor = minor(-70);
            days.first.1[0].credits_minor = Minor::ZERO;
        },
        |finding| {
            matches!(
                finding,
                Finding::StatementFigure {
                    figure: "debits_minor",
                    ..
                }
            )
        },
    );
}

#[test]
fn numbers_at_the_end_of_their_range() {
    caught(
        |days| {
            days.first.1[0].sequence = u64::MAX;
            days.first.1[0].last_output = u64::MAX;
            days.second.1[0].previous = Some(days.first.1[0].computed_digest().expect("a digest"));
        },
        |finding| {
            matches!(
                finding,
                Finding::StatementFigure {
                    figure: "sequence",
                    ..
                }
            )
        },
    );
}

#[test]
fn statements_and_certificates_tell_of_the_same_movements() {
    let root = tempfile::tempdir().expect("a directory");
    let made = net(&case(&[70, 0], &[(0, 1, 25)]));
    made.write(&cycle_directory(root.path(), DATE, 1));
    let mut sound = days();
    for (statement, netted) in sound.first.1.iter_mut().zip([-25, 25]) {
        statement.netted_minor = minor(netted);
    }
    for (first, second) in sound.first.1.iter().zip(&mut sound.second.1) {
        second.previous = Some(first.computed_digest().expect("a digest"));
    }
    write(root.path(), sound);
    let report = verify_directory(root.path());
    assert!(report.ok, "{report:#?}");

    let root = tempfile::tempdir().expect("a directory");
    made.write(&cycle_directory(root.path(), DATE, 1));
    write(root.path(), days());
    let report = verify_directory(root.path());
    let told = |finding: &Finding| {
        matches!(
            finding,
            Finding::StatementFigure {
                figure: "netted_minor",
                ..
            }
        )
    };
    assert_eq!(
        report
            .all_findings()
            .filter(|(_, finding)| told(finding))
            .count(),
        2,
        "{report:#?}"
    );
}

#[test]
fn a_netted_account_without_a_statement() {
    let root = tempfile::tempdir().expect("a directory");
    net(&case(&[0, 0, 9], &[(2, 0, 9)])).write(&cycle_directory(root.path(), DATE, 1));
    write(root.path(), days());
    let report = verify_directory(root.path());
    let told = |finding: &Finding| {
        matches!(finding, Finding::NettedWithoutStatement { participant, netted, .. }
            if participant == "BANKC" && *netted == minor(-9))
    };
    assert!(
        report.all_findings().any(|(_, finding)| told(finding)),
        "{report:#?}"
    );
}

/// Golden files change only together with the day's version.
#[test]
fn the_layout_is_as_it_was() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/statements")
        .join(DATE);
    let root = tempfile::tempdir().expect("a directory");
    write(root.path(), days());
    for file in ["statements.jsonl", "day.json"] {
        let written = fs::read_to_string(day_directory(root.path(), DATE).join(file));
        assert_eq!(
            written.expect("written"),
            fs::read_to_string(golden.join(file)).expect("golden"),
            "{file}"
        );
    }
    assert!(verify_directory(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")).ok);
}
