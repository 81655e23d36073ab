//! `clearspan verify`: what holds is verified, and whatever was changed afterwards is named. Some of the forgers below know
//! the layout and make every digest right again.

use std::path::{Path, PathBuf};

use clearspan_audit::{Certificate, Digest, Minor};
use serde_json::Value;

use crate::example_day::finished;
use crate::support::{arguments, clearspan, copy_without_data, parse, text, tree};

const FIRST: &str = "certificates/2026-11-30/cycle-0001";
const SECOND: &str = "certificates/2026-11-30/cycle-0002";
const STATEMENTS: &str = "statements/2026-11-30";

/// A forger's reach: one output directory.
struct Forged {
    root: PathBuf,
}

impl Forged {
    fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.root.join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file} has no {from}");
        std::fs::write(path, text.replacen(from, to, 1)).unwrap();
    }

    fn lines(&self, file: &str, change: impl FnOnce(&mut Vec<String>)) {
        let path = self.root.join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines().map(str::to_owned).collect();
        change(&mut lines);
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        std::fs::write(path, lines.join(end) + end).unwrap();
    }

    fn remove(&self, path: &str) {
        let path = self.root.join(path);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap()
        } else {
            std::fs::remove_file(path).unwrap()
        }
    }

    /// Changes a certificate and makes its digests right, those of its inputs too.
    fn certificate(&self, cycle: &str, change: impl FnOnce(&mut Certificate)) {
        let path = self.root.join(cycle).join("certificate.json");
        let mut certificate: Certificate =
            serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(&mut certificate);
        certificate.inputs_blake3 =
            Digest::of(&std::fs::read(self.root.join(cycle).join("inputs.csv")).unwrap());
        certificate.digest = certificate.computed_digest().unwrap();
        let mut json = certificate.to_canonical_json().unwrap();
        json.push(b'\n');
        std::fs::write(path, json).unwrap();
    }
}

/// What verify found, by the names of the findings.
fn findings(root: &Path) -> Vec<String> {
    let ran = clearspan(arguments!["verify", root, "--json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    let report = parse(&ran.stdout);
    assert_eq!(report["ok"], false);
    let lists = [&report["findings"]];
    let parts = [&report["cycles"], &report["days"]];
    let parts = parts.iter().flat_map(|part| {
        part.as_array()
            .unwrap()
            .iter()
            .map(|part| &part["findings"])
    });
    let all: Vec<&Value> = lists
        .into_iter()
        .chain(parts)
        .flat_map(|list| list.as_array().unwrap())
        .collect();
    assert!(!all.is_empty());
    // People are told in words, with the place.
    let words = clearspan(arguments!["verify", root]);
    assert_eq!(words.code, Some(1));
    assert!(words.stdout.contains("NOT VERIFIED"), "{}", words.stdout);
    assert!(words.stdout.lines().count() > all.len(), "{}", words.stdout);
    all.iter()
        .map(|finding| text(&finding["finding"]).to_owned())
        .collect()
}

fn minor(value: i128) -> Minor {
    value.to_string().parse().expect("a figure")
}

#[track_caller]
fn check(expected: &str, forge: impl FnOnce(&Forged)) {
    let dir = tempfile::tempdir().unwrap();
    let forged = Forged {
        root: dir.path().to_owned(),
    };
    copy_without_data(finished(), dir.path());
    forge(&forged);
    let found = findings(dir.path());
    assert!(
        found.iter().any(|finding| finding == expected),
        "{expected} is not among {found:?}:\n{}",
        clearspan(arguments!["verify", dir.path()]).stdout
    );
}

#[test]
fn what_a_day_wrote_is_verified_without_its_data() {
    let dir = tempfile::tempdir().unwrap();
    copy_without_data(finished(), dir.path());
    let before = tree(dir.path());
    let report = parse(&clearspan(arguments!["verify", dir.path(), "--json"]).good());
    assert_eq!(report["ok"], true);
    assert_eq!(report["settled_count"], 250);
    assert_eq!(report["cycles"].as_array().unwrap().len(), 2);
    assert!(tree(dir.path()) == before);
    // Unfinished writes are passed over.
    std::fs::create_dir(dir.path().join("certificates/2026-11-30/cycle-0003.part")).unwrap();
    clearspan(arguments!["verify", dir.path()]).good();
}

#[test]
fn inputs_that_were_changed() {
    let inputs = format!("{FIRST}/inputs.csv");
    check("file_digest", |forged| {
        forged.edit(
            &inputs,
            ",BRAVFRPPXXX,1999,settled",
            ",BRAVFRPPXXX,1998,settled",
        )
    });
    check("file_digest", |forged| {
        forged.lines(&inputs, |lines| drop(lines.pop()))
    });
    check("unreadable", |forged| forged.remove(&inputs));
    check("malformed", |forged| {
        forged.edit(&inputs, ",1999,settled", ",19.99,settled");
        forged.certificate(FIRST, |_| {});
    });
    // A cent less, every digest made right.
    check("account_figure", |forged| {
        forged.edit(
            &inputs,
            ",BRAVFRPPXXX,1999,settled",
            ",BRAVFRPPXXX,1998,settled",
        );
        forged.certificate(FIRST, |_| {});
    });
    // A payment paid twice.
    check("duplicate_payment", |forged| {
        forged.lines(&inputs, |lines| {
            let again = lines[1].replace(",EUR,1,", ",EUR,2,");
            lines.insert(2, again);
        });
        forged.certificate(FIRST, |_| {});
    });
    // One that was dropped for lack of funds is said to have settled.
    check("account_figure", |forged| {
        forged.edit(&inputs, ",dropped", ",settled");
        forged.certificate(FIRST, |_| {});
    });
}

#[test]
fn certificates_that_were_changed() {
    let file = format!("{FIRST}/certificate.json");
    check("own_digest", |forged| {
        forged.edit(
            &file,
            "\"closing_minor\":\"98225957\"",
            "\"closing_minor\":\"98225958\"",
        )
    });
    check("not_canonical", |forged| {
        forged.edit(&file, ",\"version\"", ", \"version\"")
    });
    check("unsupported", |forged| {
        forged.edit(&file, "\"version\":1", "\"version\":9")
    });
    check("malformed", |forged| forged.edit(&file, "{", "["));
    check("closing", |forged| {
        forged.certificate(FIRST, |certificate| {
            let alfa = certificate.participants.get_mut("ALFADEFFXXX").unwrap();
            alfa.accounts.get_mut("EUR").unwrap().closing_minor = minor(98_225_958);
        });
    });
    // Money from nowhere: more received than anybody paid.
    check("nets_do_not_balance", |forged| {
        forged.certificate(FIRST, |certificate| {
            let alfa = certificate.participants.get_mut("ALFADEFFXXX").unwrap();
            let account = alfa.accounts.get_mut("EUR").unwrap();
            account.net_minor = minor(640_958);
            account.in_minor = minor(1_170_137);
            account.closing_minor = minor(98_225_958);
        });
    });
    check("no_rounds", |forged| {
        forged.certificate(FIRST, |certificate| certificate.rounds.clear())
    });
    check("other_cluster", |forged| {
        forged.certificate(SECOND, |certificate| certificate.cluster = "0".repeat(32));
    });
}

#[test]
fn certificates_that_are_missing_or_elsewhere() {
    check("statement_figure", |forged| forged.remove(FIRST));
    check("statement_figure", |forged| forged.remove(SECOND));
    check("misplaced", |forged| {
        let [first, second] = [FIRST, SECOND].map(|path| forged.root.join(path));
        let aside = forged.root.join("aside");
        std::fs::rename(&first, &aside).unwrap();
        std::fs::rename(&second, &first).unwrap();
        std::fs::rename(&aside, &second).unwrap();
    });
    check("misplaced", |forged| {
        std::fs::write(forged.root.join("certificates/readme"), "").unwrap()
    });
    // Cut off from the one before.
    check("chain_break", |forged| {
        forged.certificate(SECOND, |certificate| certificate.previous = None);
    });
}

#[test]
fn statements_that_were_changed() {
    let statements = format!("{STATEMENTS}/statements.jsonl");
    check("file_digest", |forged| {
        forged.edit(
            &statements,
            "\"closing_minor\":\"93012178\"",
            "\"closing_minor\":\"93012179\"",
        );
    });
    check("own_digest", |forged| {
        forged.edit(
            &statements,
            "\"closing_minor\":\"93012178\"",
            "\"closing_minor\":\"93012179\"",
        );
    });
    check("file_digest", |forged| {
        forged.lines(&statements, |lines| drop(lines.pop()))
    });
    check("unreadable", |forged| {
        forged.remove(&format!("{STATEMENTS}/day.json"))
    });
    check("own_digest", |forged| {
        forged.edit(
            &format!("{STATEMENTS}/day.json"),
            "\"central_bank_minor\":\"500210200\"",
            "\"central_bank_minor\":\"500210300\"",
        );
    });
}

#[test]
fn a_directory_without_anything_to_verify_is_not_verified() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().to_owned(), dir.path().join("absent")] {
        assert_eq!(findings(&path), ["unreadable"]);
    }
}
