//! What is written verifies, and what is not true does not.

use std::path::Path;

use clearspan_audit::{Minor, verify_cycle, verify_directory, write_certificate};
use clearspan_ledger::directory::NetUnit;
use clearspan_ledger::entry::AdminCommand;
use clearspan_ledger::{BusinessDate, CycleNumber};

use super::{CertificateError, assemble, last_certificate, write, write_statements};
use crate::documents::tests::cluster::{
    ALFA, BETA, Cluster, DAY, GAMM, cancel, give_back, net, package, pay, transfer, urgent,
};

fn certify(root: &Path, cluster: &Cluster, cycle: u32) -> Result<(), CertificateError> {
    let previous = last_certificate(root)?.map(|last| last.digest);
    let cycle = CycleNumber::new(cycle);
    write(root, cluster, &cluster.documents(), cycle, previous).map(|_| ())
}

fn date(text: &str) -> BusinessDate {
    BusinessDate::parse(text.as_bytes()).expect("a date")
}

/// Two days with drops, two currencies, payments without UETR, cancellations and urgent payments between.
fn two_days(root: &Path, net_unit: NetUnit) -> Cluster {
    let mut cluster = Cluster::new(net_unit);
    for code in [ALFA, BETA, GAMM] {
        cluster.fund(code, "EUR", 10_000);
    }
    cluster.fund(ALFA, "JPY", 500);
    cluster.open_day(DAY);
    cluster.send(
        ALFA,
        &net(
            "A-1",
            &[
                pay(1, BETA, "EUR", "90.00"),
                transfer(2, "", GAMM, "EUR", "20.00"),
                pay(3, BETA, "JPY", "400"),
                pay(4, GAMM, "JPY", "400"),
            ],
        ),
    );
    cluster.send(
        ALFA,
        &net(
            "A-2",
            &[pay(5, BETA, "EUR", "8.00"), pay(6, GAMM, "EUR", "9.00")],
        ),
    );
    cluster.send(
        BETA,
        &net(
            "B-1",
            &[
                pay(11, GAMM, "EUR", "150.00"),
                pay(12, ALFA, "EUR", "250.00"),
            ],
        ),
    );
    cluster.send(GAMM, &net("G-1", &[pay(21, ALFA, "EUR", "3.00")]));
    cluster.cycle();
    certify(root, &cluster, 1).expect("a certificate");
    cluster.send(ALFA, &cancel("A-3", ALFA, &[6]));
    cluster.fund(ALFA, "EUR", 30_00);
    cluster.send(GAMM, &urgent("G-2", &pay(22, BETA, "EUR", "77.00")));
    cluster.cycle();
    certify(root, &cluster, 2).expect("a certificate");
    // A cycle without payments that settle anything new.
    cluster.cycle();
    certify(root, &cluster, 3).expect("a certificate");
    cluster.send(BETA, &give_back("B-2", 1, BETA, ALFA, "1.00"));
    cluster.admin(AdminCommand::CloseDay);
    write_statements(root, &cluster, date(DAY)).expect("statements");
    cluster.fund(BETA, "EUR", 5_00);
    cluster.open_day("2026-12-01");
    cluster.send(
        ALFA,
        &package("A-9", "2026-12-01", "", &[pay(31, BETA, "EUR", "2.00")]),
    );
    cluster.cycle();
    certify(root, &cluster, 4).expect("a certificate");
    cluster.admin(AdminCommand::CloseDay);
    write_statements(root, &cluster, date("2026-12-01")).expect("statements");
    cluster
}

#[test]
fn certificates_and_statements_verify() {
    for net_unit in [NetUnit::Payment, NetUnit::Package] {
        let root = tempfile::tempdir().expect("a directory");
        two_days(root.path(), net_unit);
        let report = verify_directory(root.path());
        let findings: Vec<String> = report
            .all_findings()
            .map(|(path, finding)| format!("{path}: {finding}"))
            .collect();
        assert_eq!(findings, [""; 0], "{net_unit:?}");
        assert!(report.ok);
        assert_eq!((report.cycles.len(), report.days.len()), (4, 2));
        assert!(report.settled_count > 0);
    }
}

#[test]
fn a_figure_that_is_not_the_ledgers_is_found() {
    let root = tempfile::tempdir().expect("a directory");
    let cluster = two_days(root.path(), NetUnit::Payment);
    let true_one = assemble(&cluster, CycleNumber::new(1), None).expect("a certificate");
    let eur = |certificate: &mut clearspan_audit::Certificate,
               change: &dyn Fn(&mut clearspan_audit::Account)| {
        let account = certificate
            .participants
            .get_mut("ALFADEFFXXX")
            .and_then(|participant| participant.accounts.get_mut("EUR"))
            .expect("an account");
        change(account);
    };
    let less = |minor: Minor| Minor::from(minor.get() - 1);
    let changes: [&dyn Fn(&mut clearspan_audit::Account); 4] = [
        &|account| account.opening_minor = less(account.opening_minor),
        &|account| account.out_minor = less(account.out_minor),
        &|account| account.set.count += 1,
        // More than there was cannot be told from funds that moved; less than was needed can.
        &|account| account.available_minor = Minor::ZERO,
    ];
    let names = super::cycle::names(&cluster, &cluster.documents(), CycleNumber::new(1));
    let names = names.expect("names");
    let lines = || super::cycle::inputs(&cluster, CycleNumber::new(1), &names);
    let dir = root.path().join("true");
    write_certificate(&dir, &true_one, lines()).expect("written");
    verify_cycle(&dir, None).expect("what is true verifies");
    for (at, change) in changes.into_iter().enumerate() {
        let mut forged = true_one.clone();
        eur(&mut forged, change);
        let dir = root.path().join(format!("forged-{at}"));
        write_certificate(&dir, &forged, lines()).expect("written");
        assert!(verify_cycle(&dir, None).is_err(), "change {at}");
    }
}

#[test]
fn only_what_is_settled_is_certified() {
    let root = tempfile::tempdir().expect("a directory");
    let mut cluster = Cluster::funded();
    cluster.cycle_opened();
    assert!(matches!(
        certify(root.path(), &cluster, 1),
        Err(CertificateError::NotSettled { .. })
    ));
    cluster.pump();
    certify(root.path(), &cluster, 1).expect("a cycle of nothing");
    assert!(matches!(
        certify(root.path(), &cluster, 1),
        Err(CertificateError::Write(_))
    ));
    assert!(matches!(
        write_statements(root.path(), &cluster, date(DAY)),
        Err(CertificateError::DayNotClosed { .. })
    ));
    assert!(verify_directory(root.path()).ok);
}

/// A fixed sequence of numbers.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// The ledger's netting and the verifier's share no code, so they agree on random days or one of them is wrong.
#[test]
fn random_days_verify() {
    let codes = [ALFA, BETA, GAMM];
    let mut dropped = 0;
    for seed in 0..16 {
        let mut sequence = Sequence(seed);
        let unit = [NetUnit::Payment, NetUnit::Package][usize::from(seed % 2 == 1)];
        let mut cluster = Cluster::new(unit);
        for code in codes {
            cluster.fund(code, "EUR", 1 + sequence.below(3000));
        }
        cluster.open_day(DAY);
        let root = tempfile::tempdir().expect("a directory");
        let mut number = 0;
        for cycle in 1..4 {
            for (place, code) in codes.into_iter().enumerate() {
                for message in 0..sequence.below(3) {
                    let mut transfers = Vec::new();
                    for _ in 0..=sequence.below(3) {
                        number += 1;
                        let skip = 1 + usize::try_from(sequence.below(2)).expect("small");
                        let amount =
                            format!("{}.{:02}", sequence.below(30), 1 + sequence.below(99));
                        transfers.push(pay(number, codes[(place + skip) % 3], "EUR", &amount));
                    }
                    cluster.send(code, &net(&format!("{code}-{cycle}-{message}"), &transfers));
                }
            }
            number += 1;
            let single = pay(number, GAMM, "EUR", "1.00");
            cluster.send(ALFA, &urgent(&format!("U-{cycle}"), &single));
            cluster.cycle();
            certify(root.path(), &cluster, cycle).expect("a certificate");
        }
        cluster.admin(AdminCommand::CloseDay);
        write_statements(root.path(), &cluster, date(DAY)).expect("statements");
        let report = verify_directory(root.path());
        let findings: Vec<String> = report
            .all_findings()
            .map(|(path, finding)| format!("{path}: {finding}"))
            .collect();
        assert_eq!(findings, [""; 0], "seed {seed}");
        dropped += cluster.ledgers[0]
            .cycle_summaries()
            .filter(|summary| !summary.drops.is_empty())
            .count();
    }
    assert!(dropped > 10, "funds lacked in {dropped} cycles alone");
}
