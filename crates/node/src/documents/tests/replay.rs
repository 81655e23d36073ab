//! Rule R24: the same bytes at any later time, on every thread, but for the mark in the header.

use clearspan_ledger::directory::NetUnit;
use clearspan_ledger::entry::AdminCommand;

use super::cluster::{
    ALFA, BETA, Cluster, DAY, GAMM, cancel, give_back, net, package, pay, transfer, uetr, urgent,
};
use super::{Cache, DocumentError, Documents};

/// Two days of everything at once.
pub(super) fn busy() -> Cluster {
    let mut cluster = Cluster::funded();
    let twin = transfer(1, &uetr(7), BETA, "EUR", "60.00").replace("T-1<", "T-7<");
    let first = net(
        "A-1",
        &[
            pay(1, BETA, "EUR", "60.00"),
            pay(2, GAMM, "EUR", "60.00"),
            pay(3, BETA, "EUR", "60.00"),
            pay(4, BETA, "EUR", "0.001"),
            twin,
        ],
    );
    cluster.send(ALFA, &first);
    cluster.send(
        BETA,
        &net(
            "B-1",
            &[pay(11, GAMM, "EUR", "3.00"), pay(12, ALFA, "EUR", "4.00")],
        ),
    );
    // Cancelled before any cycle, dropped by one, cancelled after, settled by the next.
    cluster.send(BETA, &cancel("B-2", BETA, &[11]));
    cluster.cycle();
    cluster.send(ALFA, &cancel("A-2", ALFA, &[7, 1]));
    cluster.send(ALFA, &urgent("A-3", &pay(5, BETA, "EUR", "500.00")));
    cluster.send(ALFA, &urgent("A-4", &pay(6, BETA, "EUR", "1.00")));
    cluster.fund(ALFA, "EUR", 40_00);
    cluster.cycle();
    cluster.send(BETA, &give_back("B-3", 1, BETA, ALFA, "25.00"));
    cluster.send(BETA, &give_back("B-4", 1, BETA, ALFA, "50.00"));
    cluster.fund(ALFA, "EUR", 60_000);
    // The same message again is no new item; other content under its identifier is refused.
    cluster.send(ALFA, &first);
    cluster.send(ALFA, &first.replace("60.00", "61.00"));
    cluster.cycle();
    cluster.send(GAMM, &net("G-1", &[pay(41, ALFA, "EUR", "9999.00")]));
    cluster.admin(AdminCommand::CloseDay);
    cluster.fund(GAMM, "EUR", 1);
    cluster.open_day("2026-12-01");
    // A recall and a return of yesterday's payment.
    cluster.send(ALFA, &cancel("A-5", ALFA, &[6]));
    let again = give_back("B-5", 1, BETA, ALFA, "10.00").replace("2026-11-30<", "2026-12-01<");
    cluster.send(BETA, &again);
    cluster.send(
        GAMM,
        &package("G-2", "2026-12-01", "", &[pay(42, BETA, "EUR", "1.00")]),
    );
    cluster.cycle();
    cluster.admin(AdminCommand::CloseDay);
    cluster.tick(1);
    cluster.check_stable();
    cluster
}

/// After every entry all documents so far are formed again and compared (`Cluster::check_stable`).
#[test]
fn later_events_change_no_document() {
    let cluster = busy();
    for name in [
        "pacs.002", "pacs.004", "pacs.008", "pacs.029", "camt.029", "camt.053", "camt.054",
        "camt.056",
    ] {
        let formed = [ALFA, BETA, GAMM].map(|code| cluster.all(code, name).len());
        assert!(formed.iter().sum::<usize>() > 0, "{name}");
    }
}

#[test]
fn a_replay_differs_in_the_mark_alone() {
    let mut cluster = Cluster::funded();
    cluster.send(ALFA, &urgent("A-1", &pay(1, BETA, "EUR", "40.00")));
    let participant = cluster.participant(BETA);
    let plain = cluster.form(BETA, 2);
    let marked = cluster
        .documents()
        .repeat_answer(participant, 2)
        .expect("documents");
    assert_eq!(plain.len(), marked.len());
    for (plain, marked) in plain.iter().zip(&marked) {
        let text = String::from_utf8_lossy(&marked.bytes);
        assert!(text.contains("<PssblDplct>true</PssblDplct>"));
        let unmarked = text.replace("<PssblDplct>true</PssblDplct>", "");
        assert_eq!(unmarked.as_bytes(), plain.bytes);
        assert_eq!(plain.file_name, marked.file_name);
    }
}

#[test]
fn threads_form_the_same_documents() {
    let mut cluster = Cluster::funded();
    let transfers: Vec<String> = (1..40)
        .map(|number| pay(number, BETA, "EUR", "0.10"))
        .collect();
    cluster.send(ALFA, &net("A-1", &transfers));
    cluster.cycle();
    let cluster = &cluster;
    let cache = Cache::new();
    let participant = cluster.participant(BETA);
    let end = cluster
        .items(BETA)
        .last()
        .map_or(1, |item| item.number + u64::from(item.pages));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let documents = Documents::new(cluster, &cluster.settings, &cache);
                for number in 1..end {
                    let formed = documents.documents(participant, number, false);
                    assert_eq!(formed.expect("documents"), cluster.form(BETA, number));
                }
            });
        }
    });
}

/// What leaves memory leaves whole: a number is unknown then, and those that stay are what they were.
#[test]
fn days_that_leave_take_their_numbers_with_them() {
    let mut cluster = Cluster::with_retention(NetUnit::Payment, 2);
    for code in [ALFA, BETA, GAMM] {
        cluster.fund(code, "EUR", 10_000);
    }
    for (number, date) in (0_u32..).zip(["2026-11-30", "2026-12-01", "2026-12-02", "2026-12-03"]) {
        cluster.open_day(date);
        let (first, second) = (
            pay(10 * number + 1, BETA, "EUR", "1.00"),
            pay(10 * number + 2, GAMM, "EUR", "2.00"),
        );
        let id = format!("A-{number}");
        cluster.send(ALFA, &package(&id, date, "", &[first, second]));
        cluster.cycle();
        let id = format!("G-{number}");
        let single = urgent(&id, &pay(10 * number + 3, ALFA, "EUR", "0.50")).replace(DAY, date);
        cluster.send(GAMM, &single);
        if number > 0 {
            let recall = cancel(&format!("A-C{number}"), ALFA, &[10 * (number - 1) + 1]);
            cluster.send(ALFA, &recall);
        }
        cluster.admin(AdminCommand::CloseDay);
    }
    assert!(matches!(
        cluster.error(ALFA, 1),
        DocumentError::NumberUnknown { number: 1, .. }
    ));
    assert_eq!(
        cluster.all(ALFA, "camt.053").len(),
        4,
        "two accounts, two days"
    );
}
