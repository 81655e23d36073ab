//! `clearspan bench rehearsal`: the smallest scale that has every phase, with real processes; what the report says must fit
//! what was asked and fit together. No time is judged.

use clearspan_bench::rehearsal::report::{Kind, PhaseName, Report, Row, Start, VERSION};

use crate::support::clearspan;

const PAYMENTS: u64 = 600;
const PACKAGE_LEN: u64 = 50;
const PARTICIPANTS: u64 = 4;
const URGENT: u64 = 40;

fn rehearse(out: &str, more: &[&str]) -> Report {
    let mut arguments = vec!["--json", "bench", "rehearsal", "--quick", "--out", out];
    arguments.extend(["--payments", "600", "--package-len", "50"]);
    arguments.extend(["--participants", "4", "--shards", "2"]);
    arguments.extend(["--urgent", "40", "--alone-ms", "100"]);
    arguments.extend(more);
    serde_json::from_str(&clearspan(&arguments).good()).unwrap()
}

#[test]
fn a_small_rehearsal_reports_what_was_asked_and_what_holds() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("rehearsal");
    let out = out.to_str().unwrap();
    let report = rehearse(out, &["--rows", "single,lost-receipts"]);
    assert_eq!(report.version, VERSION);
    assert_eq!(
        (report.load.payments, report.load.urgent),
        (PAYMENTS, URGENT)
    );
    let [single, lost] = report.rows.as_slice() else {
        panic!("{report:?}");
    };
    for row in [single, lost] {
        sensible(row);
    }
    assert_eq!(single.kind, Kind::Single);
    assert_eq!(single.layout.data_nodes, 1);
    assert!(single.fault.is_none());
    let itself = single.against_first.unwrap();
    assert_eq!((itself.reception, itself.urgent_p99), (1.0, 1.0));

    assert_eq!((lost.layout.data_nodes, lost.layout.witnesses), (2, 1));
    assert_eq!(lost.layout.rtt_us, [700; 3]);
    let fault = lost.fault.as_ref().unwrap();
    assert_eq!(
        (fault.site.as_str(), fault.phase),
        ("A", PhaseName::Receipts)
    );
    assert!(fault.without_answer_s.iter().any(|gap| gap.led_there));
    // The record is held against the site that was lost as well.
    assert_eq!(lost.checks.nodes_read, ["A1", "B1"]);
    assert!(lost.cost.cpu_s_per_million.is_none());

    // What is there is kept: nothing runs again.
    let rows = ["--rows", "lost-receipts", "--resume"];
    assert_eq!(rehearse(out, &rows), report);
    let other = clearspan(&["bench", "rehearsal", "--resume", "--out", out]).error();
    assert!(other.contains("another load"), "{other}");
}

fn sensible(row: &Row) {
    assert_eq!(row.start, Start::Compact);
    let phases = &row.phases;
    let packages = PAYMENTS.div_ceil(PACKAGE_LEN).div_ceil(PARTICIPANTS) * PARTICIPANTS;
    let payments = packages * PACKAGE_LEN;
    for phase in [phases.reception, phases.netting, phases.receipts] {
        assert_eq!(phase.payments, payments, "{phases:?}");
        assert!(phase.seconds > 0.0, "{phases:?}");
    }
    assert!(phases.netting.from_s > phases.reception.from_s);
    assert!(phases.receipts.from_s > phases.netting.from_s);
    assert!(phases.receipts_bytes > 0);

    let urgent = &row.urgent;
    assert!(urgent.overall.count >= URGENT, "{urgent:?}");
    assert!(urgent.before.count + urgent.during.count <= urgent.overall.count);
    let in_series: u64 = urgent.series.iter().map(|moment| moment.count).sum();
    assert_eq!(in_series, urgent.overall.count);
    let latency = urgent.overall;
    assert!(latency.p50_ms <= latency.p90_ms && latency.p90_ms <= latency.p99_ms);
    assert!(latency.p99_ms <= latency.p999_ms && latency.p999_ms <= latency.max_ms);

    let checks = &row.checks;
    assert!(checks.hold(), "{checks:?}");
    assert_eq!(checks.acknowledged, payments + urgent.overall.count);
    assert_eq!(checks.delivered, checks.acknowledged);
    assert_eq!(checks.put_in_minor, 0);
    assert!(row.cost.disk_bytes_per_payment > 0.0);
}

#[test]
fn a_row_that_is_not_there_is_told_with_those_that_are() {
    let error = clearspan(&["bench", "rehearsal", "--rows", "moon"]).error();
    assert!(error.contains("there are single, km-0"), "{error}");
}
