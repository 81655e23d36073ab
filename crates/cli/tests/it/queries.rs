//! `clearspan query` on a stopped node's data.

use std::path::Path;

use clearspan_node::engine::Offline;
use serde_json::Value;

use crate::compare::check_money;
use crate::example_day::example;
use crate::input::{
    Pay, bank, cancellation, pacs008, participants, pay, payment_return, put, urgent,
};
use crate::support::{arguments, clearspan, day, no_child_starts, query, text, tree};

const ALFA: &str = "ALFADEFFXXX";
const BRAV: &str = "BRAVFRPPXXX";

fn statuses(answer: &Value) -> Vec<String> {
    let one = |payment: &Value| {
        format!(
            "{} {}",
            text(&payment["status"]),
            payment["code"].as_str().unwrap_or_default()
        )
        .trim_end()
        .to_owned()
    };
    answer.as_array().expect("a list").iter().map(one).collect()
}

/// A day whose run stops in its second section, at a file that cannot be read: what waits stays waiting.
fn stopped(dir: &Path) -> std::path::PathBuf {
    let (input, out) = (dir.join("input"), dir.join("out"));
    participants(
        &input,
        2,
        &[
            bank(ALFA, 0, &[("EUR", "100.00")]),
            bank(BRAV, 1, &[("EUR", "0.00"), ("JPY", "7")]),
        ],
    );
    let send = |name: &str, id: &str, from: &str, payments: &[Pay]| {
        put(&input, name, &pacs008(id, from, payments))
    };
    let to_cancel = urgent("C", ALFA, "EUR", "3.00").uetr(3);
    let settled = urgent("S", BRAV, "EUR", "40.00").uetr(1);
    send("1/01.xml", "M1", ALFA, std::slice::from_ref(&settled));
    // A part of it given back, before anything waits in that queue.
    put(
        &input,
        "1/015.xml",
        &payment_return("M8", (BRAV, ALFA), "M1", &settled, "15.00"),
    );
    send(
        "1/02.xml",
        "M2",
        BRAV,
        &[urgent("Q", ALFA, "EUR", "60.00").uetr(2)],
    );
    send("1/03.xml", "M3", BRAV, std::slice::from_ref(&to_cancel));
    put(
        &input,
        "1/04.xml",
        &cancellation("M4", BRAV, "M3", &to_cancel),
    );
    send(
        "1/05.xml",
        "M5",
        ALFA,
        &[urgent("E", BRAV, "EUR", "500.00").uetr(5).or_refuse()],
    );
    // Refused for its amount, then sent again as it should be.
    send(
        "1/06.xml",
        "M6",
        ALFA,
        &[
            pay("R", BRAV, "EUR", "1.001").uetr(6),
            pay("N", BRAV, "EUR", "2.00").uetr(7),
        ],
    );
    send(
        "1/07.xml",
        "M7",
        ALFA,
        &[pay("R", BRAV, "EUR", "1.00").uetr(6)],
    );
    send(
        "2/01.xml",
        "M9",
        ALFA,
        &[
            pay("W", BRAV, "EUR", "9.00").uetr(9),
            pay("T", BRAV, "EUR", "8.00"),
        ],
    );
    std::os::unix::fs::symlink("nowhere", input.join("inbox/2/02.xml"))
        .expect("a link can be made");
    let error = clearspan(arguments!["day", input, "--out", out]).error();
    assert!(
        error.contains("read ") && error.contains("2/02.xml") && error.contains("No such file"),
        "{error}"
    );
    out
}

#[test]
fn a_payment_of_each_status_by_uetr() {
    let dir = tempfile::tempdir().unwrap();
    let out = stopped(dir.path());
    let of = |number: u64| query(&out, &["payment", &crate::input::uetr(number)]);
    let settled = of(1);
    assert_eq!(statuses(&settled), ["settled"]);
    assert_eq!(settled[0]["returned"]["value"], "15.00");
    assert_eq!(settled[0]["class"], "urgent");
    assert_eq!(statuses(&of(2)), ["queued AM04"]);
    assert_eq!(statuses(&of(3)), ["cancelled"]);
    assert_eq!(statuses(&of(5)), ["refused after acceptance AM04"]);
    let again = of(6);
    assert_eq!(statuses(&again), ["refused CH20", "settled"]);
    assert_eq!(
        (text(&again[0]["message_id"]), text(&again[1]["message_id"])),
        ("M6", "M7")
    );
    assert_eq!(again[1]["cycle"], 1);
    assert_eq!(again[1]["amount"]["minor"], 100);
    assert_eq!(statuses(&of(9)), ["accepted, waits for netting"]);
    // One without a UETR, by its transaction identifier; one with, not.
    assert_eq!(
        statuses(&query(&out, &["payment", "T"])),
        ["accepted, waits for netting"]
    );
    for answer in [&settled, &again] {
        assert!(check_money(answer) >= 2);
    }
    for (name, code) in [("W", 1), ("nobody-s", 1), (&crate::input::uetr(77), 1)] {
        let ran = clearspan(arguments!["query", out, "payment", name]);
        assert_eq!(
            (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
            (Some(code), "", "nothing found\n"),
            "{name}"
        );
        let ran = clearspan(arguments!["query", out, "payment", name, "--json"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "[]\n"));
    }
    let words = clearspan(arguments!["query", out, "payment", crate::input::uetr(6)]).good();
    for part in [
        "refused",
        "CH20: ",
        "M6, payment 1",
        "M7, payment 1",
        "1.00",
        "cycle",
        "final",
        "as of",
    ] {
        assert!(words.contains(part), "{part} is not in\n{words}");
    }
}

#[test]
fn queues_accounts_incoming_and_cycles_of_a_day_that_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let out = stopped(dir.path());
    let ids = |answer: &Value| -> Vec<String> {
        answer
            .as_array()
            .unwrap()
            .iter()
            .map(|payment| text(&payment["message_id"]).to_owned())
            .collect()
    };
    let queue = query(&out, &["queue", "BRAVFRPP"]);
    assert_eq!(ids(&queue), ["M2"]);
    assert_eq!(queue[0]["receiver"], ALFA);
    assert_eq!(ids(&query(&out, &["queue", ALFA])), ["M9", "M9"]);
    assert_eq!(ids(&query(&out, &["incoming", ALFA])), ["M2"]);
    assert_eq!(ids(&query(&out, &["incoming", BRAV])), ["M9", "M9"]);
    // 100 - 40 - 1 - 2 + 15 of the return.
    let accounts = query(&out, &["account", ALFA]);
    assert_eq!(accounts[0]["balance"]["value"], "72.00");
    // 40 + 3 - 15; 60 wait on it.
    let accounts = query(&out, &["account", BRAV]);
    assert_eq!(accounts.as_array().unwrap().len(), 2);
    assert_eq!(
        (
            text(&accounts[0]["balance"]["value"]),
            &accounts[0]["queued"]
        ),
        ("28.00", &Value::from(1))
    );
    assert_eq!(
        query(&out, &["account", BRAV, "JPY"])[0]["balance"]["value"],
        "7"
    );
    let cycles = query(&out, &["cycle"]);
    assert_eq!(cycles.as_array().unwrap().len(), 1);
    assert_eq!(
        (text(&cycles[0]["state"]), &cycles[0]["in_set"]),
        ("settled", &Value::from(2))
    );
    assert_eq!(query(&out, &["cycle", "1"]), cycles);
    for what in [&["cycle", "2"][..], &["queue", ALFA, "--json"]] {
        let ran = clearspan(&[&["query", out.to_str().unwrap()][..], what].concat());
        assert_eq!(
            ran.code,
            Some(i32::from(what[0] == "cycle")),
            "{what:?} {}",
            ran.stdout
        );
    }
    // Every kind of answer in words.
    for what in [
        &["queue", BRAV][..],
        &["incoming", ALFA],
        &["account", BRAV],
        &["cycle"],
    ] {
        let words = clearspan(&[&["query", out.to_str().unwrap()][..], what].concat()).good();
        assert!(words.contains("BRAVFRPPXXX"), "{words}");
    }
}

#[test]
fn an_interrupted_day_goes_on_where_it_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let out = stopped(dir.path());
    let input = dir.path().join("input");
    let link = input.join("inbox/2/02.xml");
    std::fs::remove_file(&link).unwrap();
    std::fs::write(
        &link,
        pacs008("M10", ALFA, &[urgent("F", BRAV, "EUR", "32.00")]),
    )
    .unwrap();
    let report = day(&input, &out, &[]);
    assert_eq!(report["run"]["taken"], 1);
    assert_eq!(report["run"]["repeated"], 9);
    assert_eq!(report["run"]["cycles"], 1);
    assert_eq!(report["summary"]["reconciled"], true);
    // 28 + 32 pay the 60 that waited; then 17 are netted.
    assert_eq!(
        query(&out, &["account", BRAV, "EUR"])[0]["balance"]["value"],
        "17.00"
    );
    assert_eq!(
        query(&out, &["account", ALFA])[0]["balance"]["value"],
        "83.00"
    );
    clearspan(arguments!["verify", out]).good();
}

#[test]
fn asking_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let closed = dir.path().join("closed");
    day(&example(), &closed, &[]);
    for out in [closed, stopped(dir.path())] {
        let files = || {
            let mut files = tree(&out);
            // Who holds the directory is written there while it is held.
            files.remove(Path::new("data/LOCK"));
            // The package store keeps house in its own files whenever it is opened.
            files.retain(|path, _| !path.starts_with("data/packages"));
            files
        };
        let before = files();
        for what in [
            &["account", ALFA][..],
            &["cycle"],
            &["account", BRAV, "JPY"],
        ] {
            query(&out, what);
        }
        let after = files();
        let changed: Vec<_> = after
            .iter()
            .filter(|(path, bytes)| before.get(*path) != Some(bytes))
            .map(|(path, _)| path)
            .collect();
        assert!(
            changed.is_empty() && before.len() == after.len(),
            "{changed:?}"
        );
    }
}

#[test]
fn questions_that_cannot_be_asked() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    day(&example(), &out, &[]);
    for (what, expected) in [
        (
            &["account", "alfa"][..],
            "\"alfa\" is not a BIC: give 8 or 11 capital letters and digits",
        ),
        (&["queue", ""], "\"\" is not a BIC"),
        (&["incoming", "ALFADEFFXXXX"], "is not a BIC"),
        (&["account", "ZZZZDEFF"], "ZZZZDEFFXXX is not a participant"),
        (
            &["account", "ALFADEFF", "euro"],
            "\"euro\" is not a currency code",
        ),
    ] {
        let error = clearspan(&[&["query", out.to_str().unwrap()][..], what].concat()).error();
        assert!(error.contains(expected), "{error}");
    }
    // Usage is exit code 2.
    for wrong in [
        &["query"][..],
        &["query", ".", "cycle", "one"],
        &["query", ".", "nothing"],
        &["dance"],
    ] {
        assert_eq!(clearspan(wrong).code, Some(2), "{wrong:?}");
    }
    let error = clearspan(arguments!["query", dir.path().join("absent"), "cycle"]).error();
    assert!(
        error.contains("absent/data is not a data directory"),
        "{error}"
    );
    assert!(!dir.path().join("absent").exists());
}

#[test]
fn one_process_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("input"), dir.path().join("out"));
    participants(&input, 1, &[bank(ALFA, 0, &[("EUR", "1.00")])]);
    day(&input, &out, &[]);
    let held = Offline::open(&out.join("data")).expect("nobody else has it");
    let own = std::process::id().to_string();
    for arguments in [
        &arguments!["query", out, "cycle"][..],
        arguments!["day", input, "--out", out],
    ] {
        let error = clearspan(arguments).error();
        assert!(
            error.contains("in use by process") && error.contains(&own),
            "{error}"
        );
    }
    {
        let _alone = no_child_starts();
        drop(held);
    }
    clearspan(arguments!["query", out, "cycle"]).good();
}
