//! Golden cases of the domain's section 5, each with the result it must have.

use crate::netting::{Case, case, net};
use clearspan_audit::{Minor, NetsBy, verify_cycle, write_certificate};
use std::fs;
use std::path::Path;

fn check(case: &Case, settled: &[u64], closing: &[i128]) {
    let mut made = net(case);
    assert_eq!(made.settled(), settled);
    for (bank, &closing) in case.banks.iter().zip(closing) {
        assert_eq!(
            made.account(bank.name).closing_minor,
            Minor::from(closing),
            "{}",
            bank.name
        );
    }
    let verdict = made.verify().expect("a sound certificate");
    assert_eq!(
        verdict.totals["EUR"].settled.count,
        settled.iter().sum::<u64>()
    );
    assert!(verdict.availability_moved.is_empty());
}

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const D: usize = 3;

#[test]
fn g1_a_ring_settles_without_funds() {
    check(
        &case(&[0, 0, 0], &[(A, B, 10), (B, C, 10), (C, A, 10)]),
        &[1, 1, 1],
        &[0, 0, 0],
    );
}

#[test]
fn g2_order_hurts() {
    check(
        &case(&[2, 0], &[(A, B, 5), (A, B, 10), (B, A, 8)]),
        &[0, 0],
        &[2, 0],
    );
}

#[test]
fn g3_the_same_in_the_other_order() {
    check(
        &case(&[2, 0], &[(A, B, 10), (A, B, 5), (B, A, 8)]),
        &[1, 1],
        &[0, 2],
    );
}

#[test]
fn g4_four_banks() {
    let payments = [
        (A, B, 30),
        (A, C, 20),
        (B, C, 25),
        (B, A, 9),
        (C, D, 20),
        (C, A, 10),
        (D, A, 28),
        (D, B, 15),
    ];
    check(
        &case(&[5, 3, 2, 10], &payments),
        &[1, 1, 1, 1],
        &[3, 8, 7, 2],
    );
}

#[test]
fn g7_true_deadlock() {
    check(&case(&[2, 0], &[(A, B, 10), (B, A, 7)]), &[0, 0], &[2, 0]);
}

#[test]
fn a_credit_line_is_as_good_as_a_balance() {
    let mut g7 = case(&[0, 0], &[(A, B, 10), (B, A, 7)]);
    g7.banks[A].credit_line = 3;
    check(&g7, &[1, 1], &[-3, 3]);
}

#[test]
fn a_package_stays_whole() {
    let mut packages = case(&[12, 0], &[(A, B, 10), (A, B, 1), (A, B, 1), (A, B, 1)]);
    for (payment, unit) in packages.payments.iter_mut().zip([1, 2, 2, 2]) {
        payment.unit = unit;
    }
    check(&packages, &[3, 0], &[0, 12]);
    packages.banks[A].nets_by = NetsBy::Package;
    check(&packages, &[1, 0], &[2, 10]);
}

#[test]
fn an_empty_cycle_and_one_of_a_single_bank_pass() {
    check(&case(&[], &[]), &[], &[]);
    check(&case(&[7], &[]), &[0], &[7]);
}

#[test]
fn urgent_payments_may_take_funds_between_rounds() {
    // C cannot pay, so in round 2 A lacks what it was to receive, and an urgent payment has taken one more.
    let mut moved = case(&[8, 0, 0], &[(A, B, 4), (A, B, 6), (C, A, 5)]);
    moved.urgent = vec![(2, A, -2), (3, A, -2)];
    let made = net(&moved);
    assert_eq!(made.settled(), [1, 0, 0]);
    let verdict = made.verify().expect("a sound certificate");
    assert_eq!(verdict.availability_moved.len(), 1);
    // What is reserved they cannot take: A keeps the 4 it needs.
    moved.urgent = vec![(2, A, -2), (3, A, -100)];
    let mut made = net(&moved);
    assert_eq!(made.account("BANKA").available_minor, Minor::from(4_i128));
    assert_eq!(made.account("BANKA").closing_minor, Minor::ZERO);
    made.verify().expect("a sound certificate");
    // And they may bring funds, too late for what was dropped.
    moved.urgent = vec![(3, A, 30)];
    let made = net(&moved);
    assert_eq!(made.settled(), [1, 0, 0]);
    assert_eq!(
        made.verify()
            .expect("a sound certificate")
            .availability_moved
            .len(),
        1
    );
}

/// Golden files change only together with the certificate's version.
#[test]
fn the_layout_is_as_it_was() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/cycle-0001");
    let made = net(&case(&[2, 0], &[(A, B, 10), (A, B, 5), (B, A, 8)]));
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("cycle-0001");
    let sealed =
        write_certificate(&dir, &made.certificate, made.lines.iter().cloned()).expect("write");
    for file in ["inputs.csv", "certificate.json"] {
        let (written, golden) = (
            fs::read_to_string(dir.join(file)),
            fs::read_to_string(golden.join(file)),
        );
        assert_eq!(written.expect("written"), golden.expect("golden"), "{file}");
    }
    assert_eq!(
        verify_cycle(&golden, None).map(|verdict| verdict.digest),
        Ok(sealed.digest)
    );
}
