//! Faults that other systems were reported for (`domain.md` 6, by its numbers), and what happens here.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::compare::{Funds, accounts, check_expected, check_receipts, stored};
use crate::documents::Outbox;
use crate::input::{
    Pay, bank, cancellation, dressed_otherwise, pacs008, participants, pay, payment_return, put,
    urgent, with_header,
};
use crate::support::{arguments, clearspan, day, number, parse, query, text};
use crate::xml::amount;

const ALFA: &str = "ALFADEFFXXX";
const BRAV: &str = "BRAVFRPPXXX";
const CHAR: &str = "CHARGB2LXXX";

struct Day {
    _dir: tempfile::TempDir,
    input: PathBuf,
    out: PathBuf,
}

impl Day {
    /// Three banks in three shards; the first two have money.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let day = Self {
            input: dir.path().join("input"),
            out: dir.path().join("out"),
            _dir: dir,
        };
        participants(
            &day.input,
            3,
            &[
                bank(
                    ALFA,
                    0,
                    &[("EUR", "1000.00"), ("JPY", "1000"), ("KWD", "0.010")],
                ),
                bank(
                    BRAV,
                    1,
                    &[("EUR", "1000.00"), ("JPY", "1000"), ("KWD", "0.000")],
                ),
                bank(CHAR, 2, &[("EUR", "0.00")]),
            ],
        );
        day
    }

    fn put(&self, name: &str, xml: &str) {
        put(&self.input, name, xml);
    }

    fn send(&self, name: &str, message_id: &str, from: &str, payments: &[Pay]) {
        self.put(name, &pacs008(message_id, from, payments));
    }

    fn run(&self) -> Value {
        let report = day(&self.input, &self.out, &[]);
        assert_eq!(
            report["summary"]["reconciled"], true,
            "{}",
            report["summary"]["differences"]
        );
        let verified = clearspan(arguments!["verify", self.out]);
        assert_eq!(verified.code, Some(0), "{}", verified.stdout);
        report
    }

    fn balance(&self, bic: &str, currency: &str) -> String {
        text(&query(&self.out, &["account", bic, currency])[0]["balance"]["value"]).to_owned()
    }

    fn outbox(&self) -> Outbox {
        Outbox::read(&self.out)
    }

    /// Outcome and code of each payment of the messages with an identifier, in the order in which they came.
    fn payments(&self, message_id: &str) -> Vec<String> {
        stored(&self.out)
            .iter()
            .filter(|message| message.id == message_id && message.refused.is_none())
            .flat_map(|message| &message.payments)
            .map(|payment| {
                format!("{} {}", payment.outcome, payment.code.unwrap_or_default())
                    .trim_end()
                    .to_owned()
            })
            .collect()
    }
}

#[test]
fn report_3_a_refused_payment_leaves_no_trace_on_an_account() {
    let day = Day::new();
    day.send(
        "1.xml",
        "M1",
        ALFA,
        &[urgent("P", CHAR, "EUR", "1000.01").or_refuse()],
    );
    day.run();
    assert_eq!(day.payments("M1"), ["refused AM04"]);
    let outbox = day.outbox();
    assert!(outbox.credits().is_empty());
    // The receiver hears nothing of it: its statement is all it gets.
    let kinds: Vec<_> = outbox
        .to(CHAR)
        .map(|document| document.name[9..].to_owned())
        .collect();
    assert_eq!(kinds, ["camt.053.xml"]);
    let statements = outbox.statements();
    let alfa = &statements[&(ALFA.to_owned(), "EUR".to_owned())][0];
    assert_eq!(
        (alfa.credits, alfa.debits),
        ((1, amount("1000.00")), (0, 0))
    );
}

#[test]
fn report_5_a_duplicate_in_each_state_gets_the_stored_answer_and_pays_nobody_twice() {
    let day = Day::new();
    let to_cancel = urgent("C", ALFA, "EUR", "2.00");
    let messages = [
        (
            "settled",
            pacs008("M1", ALFA, &[urgent("S", BRAV, "EUR", "1.00")]),
        ),
        (
            "waits for netting",
            pacs008("M2", ALFA, &[pay("N", BRAV, "EUR", "3.00")]),
        ),
        (
            "queued",
            pacs008("M3", CHAR, &[urgent("Q", ALFA, "EUR", "4.00")]),
        ),
        (
            "cancelled",
            pacs008("M4", CHAR, std::slice::from_ref(&to_cancel)),
        ),
        (
            "refused singly",
            pacs008("M5", ALFA, &[pay("R", ALFA, "EUR", "5.00")]),
        ),
        (
            "refused later",
            pacs008(
                "M6",
                ALFA,
                &[urgent("L", BRAV, "EUR", "5000.00").or_refuse()],
            ),
        ),
        (
            "refused whole",
            pacs008("M7", ALFA, &[pay("W", BRAV, "EUR", "5.00")])
                .replace("<NbOfTxs>1", "<NbOfTxs>2"),
        ),
        ("cancellation", cancellation("M8", CHAR, "M4", &to_cancel)),
        (
            "cancellation refused",
            cancellation("M9", CHAR, "M4", &to_cancel),
        ),
    ];
    for (at, (_, xml)) in messages.iter().enumerate() {
        day.put(&format!("1/{at}.xml"), xml);
        day.put(&format!("1/{at}-again.xml"), xml);
    }
    // Funds for the queued one, and everything a third time, now that the first ones are final.
    day.send("2/00.xml", "M20", BRAV, &[urgent("F", CHAR, "EUR", "4.00")]);
    for (at, (_, xml)) in messages.iter().enumerate() {
        day.put(&format!("2/{at}-at-last.xml"), xml);
    }
    let report = day.run();
    assert_eq!(
        number(&report["run"]["repeated"]),
        2 * messages.len() as u64
    );
    assert_eq!(number(&report["run"]["taken"]), messages.len() as u64 + 1);
    let outbox = day.outbox();
    let credits = outbox.credits();
    assert_eq!(credits["EUR"], (4, amount("12.00")));
    let (_, mut forwarded) = outbox.forwarded();
    forwarded.sort_unstable();
    let before = forwarded.len();
    forwarded.dedup();
    assert_eq!(forwarded.len(), before, "a payment was passed on twice");
    for (account, expected) in [(ALFA, "1000.00"), (BRAV, "1000.00"), (CHAR, "0.00")] {
        assert_eq!(day.balance(account, "EUR"), expected);
    }
    // Each message was answered as often as something happened to it, and not once more for its copies.
    let answers = |id: &str| -> Vec<String> {
        outbox
            .statuses()
            .iter()
            .filter(|status| status.message_id == id)
            .map(|status| status.group.clone())
            .collect()
    };
    assert_eq!(answers("M1"), ["ACSC"]);
    assert_eq!(answers("M2"), ["ACTC", "ACSC"]);
    assert_eq!(answers("M3"), ["PDNG", "ACSC"]);
    assert_eq!(answers("M4"), ["PDNG", "CANC"]);
    for id in ["M5", "M6", "M7"] {
        assert_eq!(answers(id), ["RJCT"], "{id}");
    }
    assert_eq!(outbox.of("camt.029").count(), 2);
}

#[test]
fn reports_6_and_37_other_content_is_refused_and_other_clothes_are_a_repeat() {
    let day = Day::new();
    let original = [urgent("P", BRAV, "EUR", "10.00").uetr(1)];
    let with = |change: &dyn Fn(&mut Pay)| {
        let mut payment = original[0].clone();
        change(&mut payment);
        [payment]
    };
    let cent = with(&|payment| payment.amount = "10.01".to_owned());
    let letter = with(&|payment| payment.name = "Customer of the Sender".to_owned());
    let document = pacs008("M1", ALFA, &original);
    day.put("01.xml", &document);
    day.send("02-cent.xml", "M1", ALFA, &cent);
    day.send("03-letter.xml", "M1", ALFA, &letter);
    day.put("04-dressed.xml", &dressed_otherwise(&document));
    day.put(
        "05-header.xml",
        &with_header(&document, "M1", ALFA, "<PssblDplct>true</PssblDplct>"),
    );
    day.put(
        "06-dressed-header.xml",
        &with_header(
            &document.replace("><", ">\n  <"),
            "M1",
            ALFA,
            "<CpyDplct>COPY</CpyDplct>",
        ),
    );
    day.send("07-cent-new.xml", "M7", ALFA, &cent);
    day.send("08-letter-new.xml", "M8", ALFA, &letter);
    day.send("09-same-new.xml", "M9", ALFA, &original);
    day.put(
        "10-dressed-new.xml",
        &dressed_otherwise(&pacs008("M10", ALFA, &original)),
    );
    let report = day.run();
    assert_eq!(number(&report["run"]["repeated"]), 3, "{}", report["run"]);
    let refused: Vec<_> = stored(&day.out)
        .iter()
        .filter_map(|message| message.refused)
        .collect();
    assert_eq!(refused, ["DU01", "DU01"]);
    assert_eq!(day.payments("M1"), ["settled"]);
    assert_eq!(day.payments("M7"), ["refused DU03"]);
    assert_eq!(day.payments("M8"), ["refused DU03"]);
    assert_eq!(day.payments("M9"), ["refused AM05"]);
    assert_eq!(day.payments("M10"), ["refused AM05"]);
    assert_eq!(day.balance(BRAV, "EUR"), "1010.00");
}

#[test]
fn report_8_every_payment_is_in_exactly_one_of_many_cycles() {
    for (seed, window) in [("61", "1"), ("62", "64")] {
        let dir = tempfile::tempdir().unwrap();
        let (input, out) = (dir.path().join("input"), dir.path().join("out"));
        let seed = format!("--seed={seed}");
        let made = clearspan(&[
            "generate",
            input.to_str().unwrap(),
            &seed,
            "--participants=9",
            "--packages=24x5,8x40",
            "--urgent=24",
            "--sections=1",
            "--faulty-messages=0",
            "--faulty-payments-ppm=0",
            "--coverage-percent=60",
        ]);
        made.good();
        // The one section cut into many of one or two files, by a rule that has nothing to do with what they hold.
        let files = std::fs::read_dir(input.join("inbox/01-morning")).unwrap();
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        let mut section = 0;
        for (at, file) in files.iter().enumerate() {
            section += usize::from((at * at + 3 * at) % 5 < 3);
            let directory = input.join(format!("inbox/{section:03}"));
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::rename(file, directory.join(file.file_name().unwrap())).unwrap();
        }
        std::fs::remove_dir(input.join("inbox/01-morning")).unwrap();
        let report = day(&input, &out, &["--window", window]);
        assert_eq!(report["summary"]["reconciled"], true);
        clearspan(arguments!["verify", out]).good();
        let cycles = report["summary"]["cycles"].as_array().unwrap();
        assert!(cycles.len() > 20, "{}", cycles.len());
        let mut by_cycle = vec![0_u64; cycles.len() + 1];
        let (mut netted, mut ended) = (0, 0);
        for payment in stored(&out).iter().flat_map(|message| &message.payments) {
            match payment.cycle {
                Some(cycle) => {
                    by_cycle[usize::try_from(cycle).unwrap()] += 1;
                    netted += 1;
                }
                None => ended += u64::from(payment.outcome == "refused"),
            }
        }
        let told: Vec<u64> = cycles
            .iter()
            .map(|cycle| number(&cycle["settled"]))
            .collect();
        assert_eq!(by_cycle[1..], told);
        assert_eq!(netted, number(&report["summary"]["netted"]));
        assert_eq!(
            ended,
            number(&report["summary"]["not_netted"])
                + number(&report["summary"]["gross"]["refused"])
        );
        // What a cycle drops is the next one's, with what came since.
        for pair in cycles.windows(2) {
            assert!(number(&pair[1]["in_set"]) >= number(&pair[0]["dropped"]));
        }
    }
}

#[test]
fn report_9_cycles_of_nothing_and_of_zero_nets_end() {
    let day = Day::new();
    std::fs::create_dir_all(day.input.join("inbox/1-nothing")).unwrap();
    // A ring without money: every net is zero.
    day.send(
        "2-ring/1.xml",
        "M1",
        CHAR,
        &[pay("1", ALFA, "EUR", "5000.00")],
    );
    day.send(
        "2-ring/2.xml",
        "M2",
        ALFA,
        &[pay("2", BRAV, "EUR", "5000.00")],
    );
    day.send(
        "2-ring/3.xml",
        "M3",
        BRAV,
        &[pay("3", CHAR, "EUR", "5000.00")],
    );
    std::fs::create_dir_all(day.input.join("inbox/3-nothing")).unwrap();
    // One participant alone.
    day.send(
        "4-alone/1.xml",
        "M4",
        CHAR,
        &[pay("4", ALFA, "EUR", "1.00")],
    );
    let report = day.run();
    let cycles: Vec<_> = report["summary"]["cycles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cycle| ["in_set", "settled", "dropped"].map(|name| number(&cycle[name])))
        .collect();
    assert_eq!(cycles, [[0, 0, 0], [3, 3, 0], [0, 0, 0], [1, 0, 1]]);
    assert_eq!(day.payments("M4"), ["refused AM04"]);
    for cycle in 1..=4 {
        assert!(
            day.out
                .join(format!(
                    "certificates/2026-11-30/cycle-{cycle:04}/certificate.json"
                ))
                .exists()
        );
    }
    let nets = day.outbox().nets();
    assert_eq!(nets[&("2".to_owned(), "EUR".to_owned())], (0, 0));
    let eur = report["summary"]["currencies"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["currency"] == "EUR")
        .unwrap();
    assert_eq!(
        (
            text(&eur["netted_value"]["value"]),
            text(&eur["net_value"]["value"])
        ),
        ("15000.00", "0.00")
    );
}

#[test]
fn report_11_the_smallest_units_down_to_nothing_and_decimals_that_no_currency_has() {
    let day = Day::new();
    // 0.010 KWD in steps of 0.001, and one step more.
    let steps: Vec<_> = (0..11)
        .map(|step| urgent(&format!("S{step:02}"), BRAV, "KWD", "0.001").or_refuse())
        .collect();
    for (at, step) in steps.iter().enumerate() {
        day.send(
            &format!("1/{at:02}.xml"),
            &format!("S{at}"),
            ALFA,
            std::slice::from_ref(step),
        );
    }
    day.send(
        "2/1.xml",
        "D",
        ALFA,
        &[
            pay("1", BRAV, "JPY", "1.5"),
            pay("2", BRAV, "EUR", "1.00001"),
            pay("3", BRAV, "KWD", "0.0001"),
            pay("4", BRAV, "JPY", "0"),
            pay("5", BRAV, "JPY", "1"),
            pay("6", BRAV, "EUR", "0001.10"),
            pay("7", BRAV, "EUR", "1e2"),
            pay("8", BRAV, "EUR", "-1.00"),
            pay("9", BRAV, "EUR", "1,00"),
            pay("10", BRAV, "EUR", ""),
            pay("11", BRAV, "EUR", "1234567890123456789"),
        ],
    );
    day.run();
    for at in 0..10 {
        assert_eq!(day.payments(&format!("S{at}")), ["settled"]);
    }
    assert_eq!(day.payments("S10"), ["refused AM04"]);
    assert_eq!(
        (day.balance(ALFA, "KWD"), day.balance(BRAV, "KWD")),
        ("0.000".to_owned(), "0.010".to_owned())
    );
    assert_eq!(
        day.payments("D"),
        [
            "refused CH20",
            "refused CH20",
            "refused CH20",
            "refused AM01",
            "settled",
            "settled",
            "refused AM12",
            "refused AM12",
            "refused AM12",
            "refused AM12",
            "refused AM02",
        ]
    );
}

#[test]
fn report_12_opening_and_movements_make_the_closing_balance_day_after_day() {
    let day = Day::new();
    day.send(
        "1.xml",
        "M1",
        ALFA,
        &[pay("1", BRAV, "EUR", "10.00"), pay("2", BRAV, "JPY", "10")],
    );
    day.run();
    let mut closing = day.outbox().statements();
    // The same house on the next days: what a day closed with, the next one opens with, also when the settings still name
    // the opening balances of the first day.
    for (date, id) in [
        ("2026-12-01", "M2"),
        ("2026-12-02", "M3"),
        ("2026-12-03", "M4"),
        ("2026-12-10", "M5"),
        ("2026-12-20", "M6"),
        ("2027-01-04", "M7"),
    ] {
        let file = day.input.join("participants.toml");
        let toml = std::fs::read_to_string(&file).unwrap();
        let (_, rest) = toml.split_once('\n').unwrap();
        std::fs::write(&file, format!("business_date = \"{date}\"\n{rest}")).unwrap();
        std::fs::remove_dir_all(day.input.join("inbox")).unwrap();
        day.put(
            "1.xml",
            &pacs008(id, BRAV, &[urgent(id, CHAR, "EUR", "1.00")]).replace("2026-11-30", date),
        );
        let report = day.run();
        assert_eq!(report["summary"]["business_date"], date);
        assert_eq!(report["summary"]["gross"]["settled"], 1, "{date}");
        let statements = day.outbox().statements();
        for (account, of) in &statements {
            if let [.., before, last] = &of[..] {
                assert_eq!(last.opening, before.closing, "{account:?} on {date}");
            }
        }
        assert!(closing.keys().eq(statements.keys()));
        closing = statements;
    }
    assert_eq!(day.balance(ALFA, "EUR"), "990.00");
    assert_eq!(day.balance(BRAV, "EUR"), "1004.00");
    assert_eq!(day.balance(CHAR, "EUR"), "6.00");
}

#[test]
fn report_13_a_large_package_with_bad_items_lists_every_one() {
    let day = Day::new();
    let bad = [0, 2499, 4999];
    let package = |name: &str, faulty: &dyn Fn(usize) -> bool| -> Vec<Pay> {
        (0..5000)
            .map(|at| {
                let amount = if faulty(at) { "0.00" } else { "0.01" };
                pay(&format!("{name}.{at:04}"), BRAV, "EUR", amount)
            })
            .collect()
    };
    day.send(
        "1.xml",
        "SOME",
        ALFA,
        &package("SOME", &|at| bad.contains(&at)),
    );
    day.send("2.xml", "ALL", ALFA, &package("ALL", &|_| true));
    day.send("3.xml", "NONE", ALFA, &package("NONE", &|_| false));
    let report = day.run();
    assert_eq!(number(&report["summary"]["netted"]), 9997);
    assert_eq!(day.balance(ALFA, "EUR"), "900.03");
    let outbox = day.outbox();
    let statuses = outbox.statuses();
    let first = |id: &str| {
        statuses
            .iter()
            .find(|status| status.message_id == id)
            .expect("an answer")
    };
    let some = first("SOME");
    assert_eq!(some.group, "PART");
    let listed: Vec<_> = some
        .payments
        .iter()
        .map(|payment| (&*payment.transaction, &*payment.code))
        .collect();
    assert_eq!(
        listed,
        [
            ("SOME.0000", "AM01"),
            ("SOME.2499", "AM01"),
            ("SOME.4999", "AM01")
        ]
    );
    assert_eq!(
        some.counts,
        [("ACTC".to_owned(), 4997), ("RJCT".to_owned(), 3)]
    );
    let all = first("ALL");
    assert_eq!(all.group, "RJCT");
    assert_eq!(all.payments.len(), 5000);
    assert!(all.payments.iter().all(|payment| payment.code == "AM01"));
    assert_eq!(first("NONE").counts, [("ACTC".to_owned(), 5000)]);
    assert_eq!(outbox.credits()["EUR"], (9997, amount("99.97")));
    assert_eq!(outbox.forwarded().0["EUR"], (9997, amount("99.97")));
}

#[test]
fn report_14_currencies_two_unknown_and_none() {
    let day = Day::new();
    day.send(
        "1.xml",
        "M1",
        ALFA,
        &[
            pay("1", BRAV, "EUR", "1.00"),
            pay("2", BRAV, "JPY", "1"),
            pay("3", BRAV, "ZZZ", "1.00"),
            pay("4", BRAV, "", "1.00"),
            pay("5", BRAV, "XAU", "1.00"),
            pay("6", BRAV, "eur", "1.00"),
            pay("7", CHAR, "JPY", "1"),
        ],
    );
    // Yen are short and euros are not: each nets alone.
    day.send(
        "2.xml",
        "M2",
        BRAV,
        &[pay("8", ALFA, "JPY", "5000"), pay("9", ALFA, "EUR", "2.00")],
    );
    let report = day.run();
    let first = [
        "settled",
        "settled",
        "refused AM11",
        "refused AM11",
        "refused AM03",
        "refused AM11",
        "refused AC03",
    ];
    assert_eq!(day.payments("M1"), first);
    assert_eq!(day.payments("M2"), ["refused AM04", "settled"]);
    assert_eq!(number(&report["summary"]["netted"]), 3);
}

#[test]
fn report_34_sums_are_exact_to_the_last_digit() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("input"), dir.path().join("out"));
    participants(
        &input,
        2,
        &[
            bank(ALFA, 0, &[("EUR", "90071992547409.93")]),
            bank(BRAV, 1, &[("EUR", "0.00")]),
        ],
    );
    // 0.1 + 0.2, then 2^53 + 1 cents less 0.30 to the cent.
    put(
        &input,
        "1.xml",
        &pacs008(
            "M1",
            ALFA,
            &[pay("1", BRAV, "EUR", "0.1"), pay("2", BRAV, "EUR", "0.2")],
        ),
    );
    put(
        &input,
        "2.xml",
        &pacs008("M2", ALFA, &[urgent("3", BRAV, "EUR", "90071992547409.63")]),
    );
    put(
        &input,
        "3.xml",
        &pacs008("M3", BRAV, &[urgent("4", ALFA, "EUR", "90071992547409.62")]),
    );
    let report = day(&input, &out, &[]);
    assert_eq!(report["summary"]["reconciled"], true);
    let figures = &report["summary"]["currencies"][0];
    assert_eq!(figures["netted_value"]["value"], "0.30");
    assert_eq!(figures["gross_value"]["value"], "180143985094819.25");
    assert_eq!(figures["gross_value"]["minor"], 18_014_398_509_481_925_u64);
    assert_eq!(accounts(&report)[0]["after"]["value"], "90071992547409.62");
    assert_eq!(accounts(&report)[1]["after"]["value"], "0.31");
    let outbox = Outbox::read(&out);
    assert_eq!(outbox.credits()["EUR"], (4, amount("180143985094819.55")));
    clearspan(arguments!["verify", out]).good();
}

#[test]
fn returns_never_exceed_the_original_and_recalls_post_nothing() {
    let day = Day::new();
    let original = urgent("P", BRAV, "EUR", "10.00").uetr(1);
    day.send("1.xml", "M1", ALFA, std::slice::from_ref(&original));
    for (at, amount) in ["4.00", "6.01", "6.00", "0.01"].into_iter().enumerate() {
        day.put(
            &format!("2-{at}.xml"),
            &payment_return(&format!("R{at}"), (BRAV, ALFA), "M1", &original, amount),
        );
    }
    day.put("3.xml", &cancellation("C1", ALFA, "M1", &original));
    // Who received nothing gives nothing back.
    day.put(
        "4.xml",
        &payment_return("R9", (CHAR, ALFA), "M1", &original, "1.00"),
    );
    day.run();
    let outcomes: Vec<_> = (0..4)
        .flat_map(|at| day.payments(&format!("R{at}")))
        .collect();
    assert_eq!(outcomes[..2], ["settled", "refused AM09"]);
    assert_eq!(outcomes[2], "settled");
    assert!(outcomes[3].starts_with("refused"), "{outcomes:?}");
    assert!(
        day.payments("R9")
            .iter()
            .all(|outcome| outcome.starts_with("refused"))
    );
    assert_eq!(
        (day.balance(ALFA, "EUR"), day.balance(BRAV, "EUR")),
        ("1000.00".to_owned(), "1000.00".to_owned())
    );
    let found = query(&day.out, &["payment", &crate::input::uetr(1)]);
    assert_eq!(found[0]["returned"]["value"], "10.00");
}

#[test]
fn a_day_taken_in_twice_under_other_file_names_settles_once() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("input"), dir.path().join("out"));
    let made = clearspan(&[
        "generate",
        input.to_str().unwrap(),
        "--json",
        "--seed=71",
        "--participants=8",
        "--packages=6x30",
        "--urgent=10",
        "--faulty-messages=0",
        "--faulty-payments-ppm=30000",
    ]);
    let made = parse(&made.good());
    let report = day(&input, &out, &[]);
    let settled = check_expected(&input, &out, &report, Funds::Enough);
    // Every file once more in a last section of the same day, somewhere else.
    let twice = dir.path().join("twice");
    copy(&input, &twice);
    for (at, section) in std::fs::read_dir(input.join("inbox")).unwrap().enumerate() {
        for file in std::fs::read_dir(section.unwrap().path()).unwrap() {
            let file = file.unwrap().path();
            let name = format!(
                "99-again/{at}-{}",
                file.file_name().unwrap().to_string_lossy()
            );
            put(&twice, &name, &std::fs::read_to_string(&file).unwrap());
        }
    }
    let other = dir.path().join("other");
    let again = day(&twice, &other, &[]);
    assert_eq!(accounts(&again), accounts(&report));
    assert_eq!(again["run"]["repeated"], made["messages"]);
    check_receipts(&other, &again, settled);
}

fn copy(from: &Path, to: &Path) {
    for (path, bytes) in crate::support::tree(from) {
        crate::support::write(&to.join(path), &bytes);
    }
}
