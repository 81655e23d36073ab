//! Tamperings. The forger knows the format and seals the files again after each, so that digests are sound and only
//! the meaning can give it away; the last tests leave the seals broken instead.

use crate::netting::{DATE, Made, case, net};
use clearspan_audit::{
    Certificate, Digest, Finding, LogPosition, Minor, NetsBy, Outcome, Report, Round,
    cycle_directory, verify_cycle, verify_directory,
};
use std::fs;
use std::path::Path;

/// Golden case G4: five rounds, in which D, B, A and C drop one payment each, in this order.
///
/// Lines 2 to 9 are A→B 30, A→C 20, B→C 25, B→A 9, C→D 20, C→A 10, D→A 28, D→B 15; the first of each bank settles.
fn g4() -> Made {
    let payments = [
        (0, 1, 30),
        (0, 2, 20),
        (1, 2, 25),
        (1, 0, 9),
        (2, 3, 20),
        (2, 0, 10),
        (3, 0, 28),
        (3, 1, 15),
    ];
    let made = net(&case(&[5, 3, 2, 10], &payments));
    let dropped: Vec<usize> = made
        .certificate
        .rounds
        .iter()
        .map(|round| round.drops.len())
        .collect();
    assert_eq!(dropped, [1, 1, 1, 1, 0]);
    made
}

fn plus(minor: &mut Minor, change: i128) {
    *minor = Minor::from(minor.get() + change);
}

/// Applies a tampering to G4 and asks that one of the findings is the expected one.
#[track_caller]
fn caught(tamper: impl FnOnce(&mut Made), expected: impl Fn(&Finding) -> bool) {
    let mut made = g4();
    tamper(&mut made);
    let findings = made.verify().expect_err("a tampered certificate");
    assert!(findings.iter().any(expected), "{findings:#?}");
    assert!(
        findings
            .iter()
            .all(|finding| !finding.to_string().is_empty())
    );
}

#[test]
fn the_untouched_certificate_passes() {
    let verdict = g4().verify().expect("a sound certificate");
    assert_eq!((verdict.rounds, verdict.participants), (5, 4));
    assert_eq!(
        verdict.totals["EUR"].settled.sum_minor,
        Minor::from(103_i128)
    );
    let mut summed = g4();
    summed.sum_again();
    assert_eq!(summed.certificate, g4().certificate);
}

#[test]
fn one_cent_moved_between_closing_balances() {
    caught(
        |made| {
            plus(&mut made.account("BANKA").closing_minor, 1);
            plus(&mut made.account("BANKB").closing_minor, -1);
        },
        |finding| {
            let (expected, found) = (Minor::from(3_i128), Minor::from(4_i128));
            *finding
                == Finding::Closing {
                    participant: "BANKA".into(),
                    currency: "EUR".into(),
                    expected,
                    found,
                }
        },
    );
}

#[test]
fn one_cent_moved_between_net_positions() {
    caught(
        |made| {
            for (name, change) in [("BANKA", 1), ("BANKB", -1)] {
                plus(&mut made.account(name).net_minor, change);
                plus(&mut made.account(name).closing_minor, change);
            }
        },
        |finding| matches!(finding, Finding::Net { participant, .. } if participant == "BANKA"),
    );
}

#[test]
fn one_cent_made_from_nothing() {
    caught(
        |made| {
            plus(&mut made.account("BANKA").net_minor, 1);
            plus(&mut made.account("BANKA").in_minor, 1);
            plus(&mut made.account("BANKA").closing_minor, 1);
        },
        |finding| {
            *finding
                == Finding::NetsDoNotBalance {
                    currency: "EUR".into(),
                    found: Minor::from(1_i128),
                }
        },
    );
}

#[test]
fn one_cent_more_in_a_payment() {
    caught(
        |made| {
            made.lines[0].amount_minor += 1;
            made.sum_again();
        },
        |finding| matches!(finding, Finding::DropFigure { round: 2, figure: "in_before_minor", participant, .. } if participant == "BANKB"),
    );
}

#[test]
fn a_settled_payment_removed() {
    caught(
        |made| {
            made.lines.remove(0);
            made.sum_again();
        },
        |finding| {
            matches!(
                finding,
                Finding::PositionGap {
                    line: 2,
                    expected: 1,
                    found: 2,
                    ..
                }
            )
        },
    );
}

#[test]
fn a_dropped_payment_removed() {
    caught(
        |made| {
            made.lines.remove(7);
            made.sum_again();
        },
        |finding| matches!(finding, Finding::DropFigure { round: 1, figure: "out_before_minor", participant, .. } if participant == "BANKD"),
    );
}

#[test]
fn a_payment_removed_and_nothing_else() {
    caught(
        |made| drop(made.lines.remove(7)),
        |finding| {
            matches!(
                finding,
                Finding::Total {
                    figure: "count of the set",
                    ..
                }
            )
        },
    );
}

#[test]
fn two_lines_swapped() {
    caught(
        |made| made.lines.swap(0, 1),
        |finding| matches!(finding, Finding::PositionGap { line: 2, .. }),
    );
}

#[test]
fn two_payments_swapped_in_their_queue() {
    caught(
        |made| {
            made.lines.swap(0, 1);
            for (line, position) in made.lines[..2].iter_mut().zip(1..) {
                line.position = position;
                line.outcome = if position == 1 {
                    Outcome::Settled
                } else {
                    Outcome::Dropped
                };
            }
            made.sum_again();
        },
        |finding| {
            matches!(
                finding,
                Finding::DropFigure {
                    round: 3,
                    figure: "dropped_sum_minor",
                    ..
                }
            )
        },
    );
}

#[test]
fn a_dropped_payment_called_settled() {
    for expected in [
        (|finding: &Finding| {
            matches!(
                finding,
                Finding::OutcomeMismatch {
                    line: 3,
                    expected: 1,
                    found: 2,
                    ..
                }
            )
        }) as fn(&Finding) -> bool,
        |finding| {
            matches!(
                finding,
                Finding::BeyondGreatest {
                    line: 3,
                    expected: 1,
                    found: 2,
                    ..
                }
            )
        },
        |finding| matches!(finding, Finding::Unfunded { participant, .. } if participant == "BANKA"),
    ] {
        let tamper = |made: &mut Made| {
            made.lines[1].outcome = Outcome::Settled;
            made.sum_again();
        };
        caught(tamper, expected);
    }
}

#[test]
fn a_settled_payment_called_dropped() {
    for expected in [
        (|finding: &Finding| {
            matches!(
                finding,
                Finding::OutcomeMismatch {
                    line: 2,
                    expected: 1,
                    found: 0,
                    ..
                }
            )
        }) as fn(&Finding) -> bool,
        |finding| {
            matches!(
                finding,
                Finding::NotGreatest {
                    line: 2,
                    expected: 1,
                    found: 0,
                    ..
                }
            )
        },
    ] {
        let tamper = |made: &mut Made| {
            made.lines[0].outcome = Outcome::Dropped;
            made.sum_again();
        };
        caught(tamper, expected);
    }
}

#[test]
fn a_later_payment_settled_in_place_of_an_earlier_one() {
    caught(
        |made| {
            made.lines[0].outcome = Outcome::Dropped;
            made.lines[1].outcome = Outcome::Settled;
            made.sum_again();
        },
        |finding| {
            matches!(
                finding,
                Finding::NotPrefix {
                    line: 3,
                    position: 2,
                    ..
                }
            )
        },
    );
}

#[test]
fn a_round_removed() {
    caught(
        |made| drop(made.certificate.rounds.remove(1)),
        |finding| {
            *finding
                == Finding::RoundNumber {
                    expected: 2,
                    found: 3,
                }
        },
    );
}

fn number_again(rounds: &mut [Round]) {
    rounds
        .iter_mut()
        .zip(1..)
        .for_each(|(round, number)| round.round = number);
}

#[test]
fn a_round_removed_and_the_rest_numbered_again() {
    for expected in [
        (|finding: &Finding| matches!(finding, Finding::ShortfallIgnored { participant, .. } if participant == "BANKB"))
            as fn(&Finding) -> bool,
        |finding| matches!(finding, Finding::OutcomeMismatch { participant, .. } if participant == "BANKB"),
        |finding| {
            matches!(
                finding,
                Finding::DropFigure {
                    round: 2,
                    figure: "in_before_minor",
                    ..
                }
            )
        },
    ] {
        let tamper = |made: &mut Made| {
            made.certificate.rounds.remove(1);
            number_again(&mut made.certificate.rounds);
        };
        caught(tamper, expected);
    }
}

#[test]
fn the_last_round_removed() {
    caught(
        |made| drop(made.certificate.rounds.pop()),
        |finding| *finding == Finding::LastRoundDrops { round: 4 },
    );
    caught(
        |made| made.certificate.rounds.clear(),
        |finding| *finding == Finding::NoRounds,
    );
}

#[test]
fn a_round_inserted() {
    caught(
        |made| {
            made.certificate.rounds.insert(
                2,
                Round {
                    round: 3,
                    drops: Vec::new(),
                },
            );
            number_again(&mut made.certificate.rounds);
        },
        |finding| *finding == Finding::IdleRound { round: 3 },
    );
}

#[test]
fn two_rounds_told_as_one() {
    caught(
        |made| {
            let second = made.certificate.rounds.remove(1);
            made.certificate.rounds[0].drops.extend(second.drops);
            number_again(&mut made.certificate.rounds);
        },
        |finding| {
            matches!(
                finding,
                Finding::DropFigure {
                    round: 1,
                    figure: "in_before_minor",
                    ..
                }
            )
        },
    );
}

#[test]
fn availability_raised_at_a_drop() {
    caught(
        |made| plus(&mut made.certificate.rounds[0].drops[0].available_minor, 5),
        |finding| {
            matches!(
                finding,
                Finding::DropFigure {
                    round: 1,
                    figure: "shortfall_minor",
                    ..
                }
            )
        },
    );
    caught(
        |made| {
            plus(&mut made.certificate.rounds[0].drops[0].available_minor, 13);
            plus(
                &mut made.certificate.rounds[0].drops[0].shortfall_minor,
                -13,
            );
        },
        |finding| {
            matches!(
                finding,
                Finding::DropNeedless {
                    round: 1,
                    surplus: Minor::ZERO,
                    ..
                }
            )
        },
    );
}

#[test]
fn availability_lowered_at_the_end() {
    caught(
        |made| plus(&mut made.account("BANKA").available_minor, -4),
        |finding| matches!(finding, Finding::Unfunded { participant, .. } if participant == "BANKA"),
    );
}

#[test]
fn availability_moved_is_told_and_bounded() {
    // A claim about funds between rounds cannot be refuted by the certificate alone, so the verdict names the account.
    let mut made = g4();
    plus(&mut made.certificate.rounds[0].drops[0].available_minor, 5);
    plus(&mut made.certificate.rounds[0].drops[0].shortfall_minor, -5);
    let verdict = made.verify().expect("nothing to refute");
    assert_eq!(verdict.availability_moved.len(), 1);
    assert_eq!(verdict.availability_moved[0].participant, "BANKD");
}

#[test]
fn a_payment_dropped_needlessly() {
    caught(
        |made| {
            let mut needless = made.certificate.rounds[2].drops[0].clone();
            needless.out_before_minor = Minor::from(30_i128);
            needless.in_before_minor = Minor::from(28_i128);
            needless.shortfall_minor = Minor::from(-3_i128);
            needless.dropped_sum_minor = Minor::from(30_i128);
            made.certificate.rounds[4].drops.push(needless);
            made.certificate.rounds.push(Round {
                round: 6,
                drops: Vec::new(),
            });
            made.lines[0].outcome = Outcome::Dropped;
            made.sum_again();
        },
        |finding| matches!(finding, Finding::DropNeedless { round: 5, surplus, .. } if surplus.get() == 3),
    );
}

#[test]
fn one_payment_more_dropped_than_needed() {
    caught(
        |made| {
            let dropped = &mut made.certificate.rounds[2].drops[0];
            dropped.dropped_count = 2;
            plus(&mut dropped.dropped_sum_minor, 30);
            made.lines[0].outcome = Outcome::Dropped;
            made.sum_again();
        },
        |finding| {
            matches!(
                finding,
                Finding::DropTooMany {
                    round: 3,
                    expected: 1,
                    found: 2,
                    ..
                }
            )
        },
    );
}

#[test]
fn one_payment_fewer_dropped_than_needed() {
    caught(
        |made| {
            let dropped = &mut made.certificate.rounds[2].drops[0];
            dropped.dropped_count = 0;
            dropped.dropped_sum_minor = Minor::ZERO;
        },
        |finding| {
            matches!(
                finding,
                Finding::DropTooFew {
                    round: 3,
                    expected: 1,
                    found: 0,
                    ..
                }
            )
        },
    );
}

#[test]
fn a_drop_twice_or_of_nobody() {
    caught(
        |made| {
            let again = made.certificate.rounds[0].drops[0].clone();
            made.certificate.rounds[0].drops.push(again);
        },
        |finding| matches!(finding, Finding::DropTwice { round: 1, .. }),
    );
    caught(
        |made| made.certificate.rounds[0].drops[0].currency = "USD".into(),
        |finding| matches!(finding, Finding::DropUnknown { round: 1, .. }),
    );
}

#[test]
fn a_drop_count_beyond_all_payments() {
    caught(
        |made| made.certificate.rounds[0].drops[0].dropped_count = u64::MAX,
        |finding| {
            matches!(
                finding,
                Finding::DropTooMany {
                    found: u64::MAX,
                    ..
                }
            )
        },
    );
}

#[test]
fn a_payment_listed_twice() {
    caught(
        |made| {
            made.lines[7].id = made.lines[6].id.clone();
        },
        |finding| {
            matches!(
                finding,
                Finding::DuplicatePayment {
                    first_line: 8,
                    line: 9,
                    ..
                }
            )
        },
    );
}

#[test]
fn a_receiver_changed() {
    caught(
        |made| {
            made.lines[7].receiver = "BANKC".into();
            made.sum_again();
        },
        |finding| {
            matches!(
                finding,
                Finding::DropFigure {
                    round: 4,
                    figure: "in_before_minor",
                    ..
                } | Finding::ShortfallIgnored { round: 1, .. }
            )
        },
    );
    caught(
        |made| {
            made.lines[0].receiver = "BANKC".into();
            made.sum_again();
        },
        |finding| matches!(finding, Finding::DropFigure { participant, .. } if participant == "BANKB"),
    );
    caught(
        |made| made.lines[0].receiver = "NOBODY".into(),
        |finding| matches!(finding, Finding::UnknownAccount { line: 2, .. }),
    );
    caught(
        |made| made.lines[0].receiver = "BANKA".into(),
        |finding| matches!(finding, Finding::SelfPayment { line: 2, .. }),
    );
}

#[test]
fn a_total_changed() {
    caught(
        |made| {
            made.certificate
                .totals
                .get_mut("EUR")
                .expect("a currency")
                .settled
                .count += 1
        },
        |finding| {
            matches!(
                finding,
                Finding::Total {
                    figure: "count settled",
                    ..
                }
            )
        },
    );
    caught(
        |made| made.account("BANKC").received_count += 1,
        |finding| {
            matches!(
                finding,
                Finding::AccountFigure {
                    figure: "received_count",
                    ..
                }
            )
        },
    );
}

#[test]
fn a_balance_below_its_floor() {
    caught(
        |made| {
            plus(&mut made.account("BANKA").opening_minor, -4);
            plus(&mut made.account("BANKA").closing_minor, -4);
        },
        |finding| matches!(finding, Finding::BelowFloor { closing, .. } if closing.get() == -1),
    );
    caught(
        |made| made.account("BANKB").credit_line_minor = Minor::from(-1_i128),
        |finding| {
            matches!(
                finding,
                Finding::AccountFigure {
                    figure: "credit_line_minor",
                    ..
                }
            )
        },
    );
}

#[test]
fn a_sender_in_two_lists_or_on_another_shard() {
    caught(
        |made| {
            let moved = made.lines.remove(1);
            made.lines.push(moved);
        },
        |finding| matches!(finding, Finding::ListReappears { line: 9, .. }),
    );
    caught(
        |made| made.lines[0].shard = 1,
        |finding| {
            matches!(
                finding,
                Finding::WrongShard {
                    line: 2,
                    expected: 0,
                    found: 1,
                    ..
                }
            )
        },
    );
}

#[test]
fn a_package_settled_in_part() {
    let tamper = |made: &mut Made| {
        made.certificate
            .participants
            .get_mut("BANKA")
            .expect("a participant")
            .nets_by = NetsBy::Package;
        made.lines[0].unit = 7;
        made.lines[1].unit = 7;
    };
    caught(tamper, |finding| {
        matches!(
            finding,
            Finding::UnitSplit {
                line: 3,
                unit: 7,
                ..
            }
        )
    });
    caught(tamper, |finding| {
        matches!(
            finding,
            Finding::DropTooFew {
                round: 3,
                expected: 2,
                found: 1,
                ..
            }
        )
    });
}

#[test]
fn a_package_in_two_places() {
    let mut made = net(&case(&[9, 0], &[(0, 1, 1), (0, 1, 1), (0, 1, 1)]));
    made.certificate
        .participants
        .get_mut("BANKA")
        .expect("a participant")
        .nets_by = NetsBy::Package;
    made.lines[2].unit = made.lines[0].unit;
    let findings = made.verify().expect_err("a torn package");
    assert!(
        matches!(
            findings[..],
            [Finding::UnitReappears {
                line: 4,
                unit: 1,
                ..
            }]
        ),
        "{findings:?}"
    );
}

#[test]
fn log_positions_out_of_order() {
    caught(
        |made| made.certificate.decided = LogPosition { shard: 0, index: 9 },
        |finding| {
            matches!(
                finding,
                Finding::LogOrder {
                    shard: 0,
                    later: "decision",
                    ..
                }
            )
        },
    );
    caught(
        |made| {
            let _ = made.certificate.posts.insert(1, 19);
        },
        |finding| {
            matches!(
                finding,
                Finding::LogOrder {
                    shard: 1,
                    earlier: "cut",
                    later: "post",
                    ..
                }
            )
        },
    );
    caught(
        |made| {
            let _ = made.certificate.posts.remove(&1);
        },
        |finding| {
            *finding
                == Finding::ShardMissing {
                    shard: 1,
                    what: "post",
                }
        },
    );
}

#[test]
fn a_frame_that_is_not_sound() {
    caught(
        |made| made.certificate.version = 2,
        |finding| matches!(finding, Finding::Unsupported { version: 2, .. }),
    );
    caught(
        |made| made.certificate.business_date = "2026-02-30".into(),
        |finding| {
            matches!(
                finding,
                Finding::Field {
                    field: "business_date",
                    ..
                }
            )
        },
    );
    caught(
        |made| {
            let _ = made.certificate.currencies.insert("usd".into(), 2);
        },
        |finding| {
            matches!(
                finding,
                Finding::Field {
                    field: "currencies",
                    ..
                }
            )
        },
    );
    caught(
        |made| made.certificate.currencies.clear(),
        |finding| {
            matches!(
                finding,
                Finding::Field {
                    field: "participants",
                    ..
                }
            )
        },
    );
}

#[test]
fn unknown_lines_do_not_hide_behind_their_consequences() {
    let mut made = g4();
    made.certificate.participants.remove("BANKD");
    let findings = made.verify().expect_err("a missing participant");
    assert_eq!(findings.len(), 3, "{findings:?}");
    assert!(
        findings
            .iter()
            .all(|finding| matches!(finding, Finding::UnknownAccount { .. }))
    );
}

#[test]
fn a_wholly_wrong_file_gives_the_first_findings_and_a_count() {
    let payments: Vec<(usize, usize, u64)> = (0..300).map(|_| (0, 1, 1)).collect();
    let mut made = net(&case(&[300, 0], &payments));
    made.lines.iter_mut().for_each(|line| line.shard = 7);
    let findings = made.verify().expect_err("every line from another shard");
    assert_eq!(findings.len(), 201);
    assert_eq!(findings.last(), Some(&Finding::Truncated { more: 100 }));
}

// Seals left broken.

#[track_caller]
fn caught_in_bytes(
    file: &str,
    edit: impl FnOnce(String) -> String,
    expected: impl Fn(&Finding) -> bool,
) {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("cycle-0001");
    g4().write(&dir);
    let text = fs::read_to_string(dir.join(file)).expect("read");
    let edited = edit(text.clone());
    assert_ne!(text, edited);
    fs::write(dir.join(file), edited).expect("write");
    let findings = verify_cycle(&dir, None).expect_err("tampered files");
    assert!(findings.iter().any(expected), "{findings:#?}");
}

#[test]
fn broken_seals() {
    caught_in_bytes(
        "inputs.csv",
        |text| text.replace("TX-0", "TX-9"),
        |f| matches!(f, Finding::FileDigest { .. }),
    );
    caught_in_bytes(
        "certificate.json",
        |text| text.replace("\"cluster\":\"test\"", "\"cluster\":\"tesT\""),
        |finding| matches!(finding, Finding::OwnDigest { .. }),
    );
    caught_in_bytes(
        "certificate.json",
        |text| text.replace("\"cycle\":1,", "\"cycle\": 1,"),
        |finding| matches!(finding, Finding::NotCanonical { .. }),
    );
    caught_in_bytes(
        "certificate.json",
        |text| text.replace("\"cycle\":1,", "\"cycle\":1,\"note\":\"\","),
        |finding| matches!(finding, Finding::Malformed { .. }),
    );
    caught_in_bytes(
        "inputs.csv",
        |text| text.trim_end().to_owned(),
        |finding| matches!(finding, Finding::Unreadable { cause, .. } if cause.contains("line 9")),
    );
    caught_in_bytes(
        "inputs.csv",
        |text| text.replacen("position", "Position", 1),
        |finding| matches!(finding, Finding::Malformed { line: 1, .. }),
    );
    caught_in_bytes(
        "inputs.csv",
        |text| text.replacen(",30,", ",30.0,", 1),
        |finding| matches!(finding, Finding::Malformed { line: 2, .. }),
    );
}

#[test]
fn the_digest_can_be_taken_with_a_text_editor() {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("cycle-0001");
    let sealed = g4().write(&dir);
    let text = fs::read_to_string(dir.join("certificate.json")).expect("read");
    let (body, _) = text.split_once(",\"digest\":\"").expect("the last field");
    assert_eq!(Digest::of(format!("{body}}}").as_bytes()), sealed.digest);
}

// Several cycles.

/// Writes three cycles of a day, chained; `tamper` sees each before it is sealed.
fn chain(root: &Path, tamper: impl Fn(u64, &mut Made)) -> Vec<Certificate> {
    let mut sealed: Vec<Certificate> = Vec::new();
    for cycle in 1..=3 {
        let mut made = g4();
        made.certificate.cycle = cycle;
        made.certificate.previous = sealed.last().map(|certificate| certificate.digest);
        for index in made
            .certificate
            .cuts
            .values_mut()
            .chain(made.certificate.posts.values_mut())
        {
            *index += 100 * cycle;
        }
        made.certificate.decided.index += 100 * cycle;
        for line in &mut made.lines {
            line.id = format!("{cycle}-{}", line.id).into();
        }
        tamper(cycle, &mut made);
        sealed.push(made.write(&cycle_directory(root, DATE, cycle)));
    }
    sealed
}

fn has(report: &Report, path: &str, expected: impl Fn(&Finding) -> bool) -> bool {
    !report.ok
        && report
            .all_findings()
            .any(|(at, finding)| at.ends_with(path) && expected(finding))
}

#[test]
fn a_sound_chain_passes() {
    let root = tempfile::tempdir().expect("a directory");
    let sealed = chain(root.path(), |_, _| {});
    fs::create_dir(cycle_directory(root.path(), DATE, 4).with_extension("part"))
        .expect("an unfinished write");
    let report = verify_directory(root.path());
    assert!(report.ok, "{report:#?}");
    assert_eq!(report.certificates_follow, None);
    assert_eq!(
        report.certificates_end,
        sealed.last().map(|certificate| certificate.digest)
    );
    assert_eq!(report.settled_count, 12);
    serde_json::to_string(&report).expect("a report is JSON");
}

#[test]
fn a_cycle_cut_out_of_the_chain() {
    let root = tempfile::tempdir().expect("a directory");
    chain(root.path(), |_, _| {});
    fs::remove_dir_all(cycle_directory(root.path(), DATE, 2)).expect("remove");
    let report = verify_directory(root.path());
    assert!(
        has(&report, "cycle-0003", |finding| matches!(
            finding,
            Finding::ChainBreak { .. }
        )),
        "{report:#?}"
    );
}

#[test]
fn a_chain_that_starts_again() {
    let root = tempfile::tempdir().expect("a directory");
    chain(root.path(), |cycle, made| {
        if cycle == 2 {
            made.certificate.previous = None;
        }
    });
    let report = verify_directory(root.path());
    assert!(has(&report, "cycle-0002", |finding| matches!(
        finding,
        Finding::ChainBreak { found: None, .. }
    )));
}

#[test]
fn a_cycle_under_another_name() {
    let root = tempfile::tempdir().expect("a directory");
    chain(root.path(), |_, _| {});
    let (from, to) = (
        cycle_directory(root.path(), DATE, 3),
        cycle_directory(root.path(), DATE, 4),
    );
    fs::rename(from, to).expect("rename");
    let report = verify_directory(root.path());
    assert!(has(&report, "cycle-0004", |finding| matches!(
        finding,
        Finding::Misplaced { .. }
    )));
}

#[test]
fn a_payment_settled_in_two_cycles() {
    let root = tempfile::tempdir().expect("a directory");
    chain(root.path(), |cycle, made| {
        if cycle == 3 {
            made.lines[0].id = "1-TX-0".into();
        }
    });
    let report = verify_directory(root.path());
    assert!(has(&report, "cycle-0003", |finding| matches!(
        finding,
        Finding::SettledBefore {
            line: 2,
            cycle: 1,
            ..
        }
    )));
}

#[test]
fn a_dropped_payment_comes_again_first_in_line() {
    let root = tempfile::tempdir().expect("a directory");
    chain(root.path(), |cycle, made| {
        if cycle == 3 {
            made.lines[0].id = "2-TX-1".into();
        }
    });
    let report = verify_directory(root.path());
    assert!(report.ok, "{report:#?}");

    let root = tempfile::tempdir().expect("a directory");
    chain(root.path(), |cycle, made| {
        if cycle == 3 {
            made.lines[1].id = "2-TX-1".into();
        }
    });
    let report = verify_directory(root.path());
    assert!(has(&report, "cycle-0003", |finding| matches!(
        finding,
        Finding::OrderLost { line: 2, .. }
    )));
}

#[test]
fn a_cycle_of_another_cluster_or_time() {
    let root = tempfile::tempdir().expect("a directory");
    chain(root.path(), |cycle, made| {
        if cycle == 2 {
            made.certificate.cluster = "other".into();
            made.certificate.cuts.insert(1, 100);
        }
    });
    let report = verify_directory(root.path());
    assert!(has(&report, "cycle-0002", |finding| matches!(
        finding,
        Finding::OtherCluster { .. }
    )));
    assert!(has(&report, "cycle-0002", |finding| matches!(
        finding,
        Finding::LogOrder {
            shard: 1,
            later: "cut",
            ..
        }
    )));
}

#[test]
fn an_empty_place_is_not_a_proof() {
    let root = tempfile::tempdir().expect("a directory");
    assert!(!verify_directory(root.path()).ok);
    assert!(verify_cycle(root.path(), None).is_err());
}
