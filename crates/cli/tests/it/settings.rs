//! Input that cannot be used: what is said, and that nothing is left behind.

use crate::input::{bank, pacs008, participants, pay, put};
use crate::support::{arguments, clearspan, day, number, write};

const ALFA: &str = "ALFADEFFXXX";
const BRAV: &str = "BRAVFRPPXXX";

#[test]
fn faults_of_the_settings_name_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("input"), dir.path().join("out"));
    participants(
        &input,
        2,
        &[
            bank(ALFA, 0, &[("EUR", "1.00")]),
            bank(BRAV, 1, &[("KWD", "1.000")]),
        ],
    );
    let file = input.join("participants.toml");
    let good = std::fs::read_to_string(&file).unwrap();
    for (from, to, expected) in [
        ("shards = 2", "shards = two", "line 2"),
        (
            "shards = 2",
            "shards = 2\ncolour = \"red\"",
            "line 3: unknown key `colour`",
        ),
        (
            "shards = 2",
            "shards = 257",
            "line 2: shards is 257; give 1 to 256",
        ),
        ("shards = 2\n", "", "line 1: missing key `shards`"),
        (
            "bic = \"ALFADEFFXXX\"",
            "bic = \"ALFA\"",
            "line 4: \"ALFA\" is not a BIC",
        ),
        (
            "shard = 1",
            "shard = 2",
            "line 13: BRAVFRPPXXX has home shard 2, there are shards 0 to 1",
        ),
        (
            "currency = \"KWD\"",
            "currency = \"XYZ\"",
            "\"XYZ\" is not an ISO 4217 currency",
        ),
        (
            "\"1.000\"",
            "\"1.0001\"",
            "line 13: BRAVFRPPXXX: opening_balance \"1.0001\" has more than the 3 decimals of KWD",
        ),
        ("\"1.000\"", "1.0", "line 20"),
        (
            "2026-11-30",
            "30.11.2026",
            "line 1: business_date is \"30.11.2026\"",
        ),
        (
            "bic = \"BRAVFRPPXXX\"",
            "bic = \"ALFADEFF\"",
            "line 13: ALFADEFFXXX stands here a second time",
        ),
        (
            "bic = \"BRAVFRPPXXX\"",
            "bic = \"CLSPZZ2A\"",
            "is the clearing house's own code",
        ),
    ] {
        assert!(good.contains(from));
        write(&file, good.replacen(from, to, 1).as_bytes());
        let error = clearspan(arguments!["day", input, "--out", out]).error();
        assert!(error.contains("participants.toml"), "{error}");
        assert!(error.contains(expected), "{expected} is not in: {error}");
        assert_eq!(error.matches(expected).count(), 1, "said twice: {error}");
        assert!(!out.exists(), "{expected}");
    }
    write(&file, &[0xff, 0xfe, b'\n']);
    let error = clearspan(arguments!["day", input, "--out", out]).error();
    assert!(error.contains("participants.toml"), "{error}");
}

#[test]
fn directories_and_files_that_are_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("input"), dir.path().join("out"));
    let error = clearspan(arguments!["day", input, "--out", out]).error();
    assert!(
        error.contains("input/participants.toml") && error.contains("No such file"),
        "{error}"
    );
    participants(&input, 1, &[bank(ALFA, 0, &[("EUR", "1.00")])]);
    std::fs::remove_dir(input.join("inbox")).unwrap();
    let error = clearspan(arguments!["day", input, "--out", out]).error();
    assert!(
        error.contains("input/inbox") && error.contains("No such file"),
        "{error}"
    );
    assert!(!out.exists());
    // A file where the output should go.
    std::fs::create_dir(input.join("inbox")).unwrap();
    std::fs::write(&out, "").unwrap();
    let error = clearspan(arguments!["day", input, "--out", out]).error();
    assert!(
        error.contains("create ") && error.contains("out"),
        "{error}"
    );
    assert_eq!(
        clearspan(arguments!["day", input, "--window", "0"]).code,
        Some(2)
    );
    assert_eq!(
        clearspan(arguments!["day", input, "--threads", "0"]).code,
        Some(2)
    );
}

#[test]
fn an_empty_inbox_and_files_of_other_kinds() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("input"), dir.path().join("out"));
    participants(
        &input,
        2,
        &[
            bank(ALFA, 0, &[("EUR", "5.00")]),
            bank(BRAV, 1, &[("EUR", "0.00")]),
        ],
    );
    for name in ["notes.txt", "1.xml.part", "old.xml~", "xml", "1/.hidden"] {
        put(&input, name, "not a message");
    }
    std::fs::remove_file(input.join("inbox/1/.hidden")).unwrap();
    let report = day(&input, &out, &[]);
    assert_eq!(number(&report["run"]["files"]), 0);
    assert_eq!(report["summary"]["reconciled"], true);
    assert_eq!(report["summary"]["cycles"][0]["in_set"], 0);
    clearspan(arguments!["verify", out]).good();

    // What is no message is told and does no harm to the rest, and neither does an empty file, or one of any bytes.
    let out = dir.path().join("other");
    put(&input, "1/01.xml", "");
    put(&input, "1/02.xml", "\u{1}\u{2}<<<>>>&&&");
    put(&input, "1/03.xml", "<html><body>Not found</body></html>");
    write(&input.join("inbox/1/04.xml"), &[0xff, 0x00, 0xd8, 0x3c]);
    put(
        &input,
        "1/05.XML",
        &pacs008("M1", ALFA, &[pay("P", BRAV, "EUR", "5.00")]),
    );
    put(
        &input,
        "1/06.xml",
        &pacs008("M2", "ZZZZDEFFXXX", &[pay("P", BRAV, "EUR", "5.00")]),
    );
    let report = day(&input, &out, &[]);
    assert_eq!(
        (
            number(&report["run"]["files"]),
            number(&report["run"]["taken"])
        ),
        (6, 1)
    );
    let codes: Vec<_> = report["run"]["not_taken"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["FF01", "FF01", "FF01", "FF01", "AG01"]);
    assert_eq!(number(&report["summary"]["netted"]), 1);
}
