//! What a day came to, without what may differ between two runs: log positions, log times, identities.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clearspan_node::acknowledgements::{Acknowledged, Acknowledgement};
use serde_json::Value;

use crate::days::{Day, Place};
use crate::process::{Ended, clearspan};

/// What a finished day came to.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    /// All figures of the ledger: accounts, counts by reason, cycles, sums.
    pub(crate) summary: Value,
    /// What a run over the finished day does not take in.
    not_taken: Value,
    /// Message and answer number of every file.
    pub(crate) replies: BTreeMap<String, (Option<u64>, u64)>,
    /// Every numbered document, certificate and statement, masked.
    pub(crate) documents: BTreeMap<String, String>,
    /// What was answered outside of the numbered output: names and content depend on when it was asked.
    answers: BTreeSet<String>,
}

/// The journal's whole lines. Each line is one write, so none is ever torn.
pub(crate) fn acknowledgements(path: &Path) -> Vec<Acknowledgement> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

/// Checks all that must hold for a finished day by itself, and gives what it came to. What was acknowledged by any run
/// in this place is part of that.
#[track_caller]
pub(crate) fn of(place: &Place, last: &Ended) -> Outcome {
    let last = report(last);
    assert_eq!(
        last["summary"]["reconciled"], true,
        "receipts must add up to the ledger: {}",
        last["summary"]["differences"]
    );
    let before = acknowledgements(&place.acknowledgements);
    // Once more: every message is known, under the same number and with the same answer.
    let again = report(&place.run());
    assert_eq!(again["run"]["taken"], 0, "something was taken in twice");
    assert_eq!(again["run"]["cycles"], 0, "a cycle was run twice");
    assert_eq!(again["summary"], last["summary"]);
    let after = acknowledgements(&place.acknowledgements);
    let replies = check_acknowledgements(&place.out, &before, &after[before.len()..]);
    let verified = clearspan()
        .arg("verify")
        .arg(&place.out)
        .output()
        .expect("the binary runs");
    assert!(
        verified.status.success(),
        "{}{}",
        String::from_utf8_lossy(&verified.stdout),
        String::from_utf8_lossy(&verified.stderr)
    );
    let mut outcome = Outcome {
        summary: again["summary"].clone(),
        not_taken: again["run"]["not_taken"].clone(),
        replies,
        documents: BTreeMap::new(),
        answers: BTreeSet::new(),
    };
    for part in ["outbox", "certificates", "statements"] {
        gather(&place.out, &place.out.join(part), &mut outcome);
    }
    assert!(!outcome.documents.is_empty());
    outcome
}

#[track_caller]
fn report(ended: &Ended) -> Value {
    assert!(
        ended.status.success(),
        "{}: {}{}",
        ended.status,
        ended.stderr,
        ended.stdout
    );
    serde_json::from_str(&ended.stdout).expect("the report is JSON")
}

/// Nothing acknowledged is lost (I2), nothing is taken in twice (I3), and the answer is there.
#[track_caller]
fn check_acknowledgements(
    out: &Path,
    before: &[Acknowledgement],
    now: &[Acknowledgement],
) -> BTreeMap<String, (Option<u64>, u64)> {
    let replies: BTreeMap<String, (Option<u64>, u64)> = now
        .iter()
        .map(|known| (known.file.clone(), (known.message, known.answer)))
        .collect();
    let mut taken = BTreeSet::new();
    for acknowledged in before {
        let Acknowledgement {
            file,
            sender,
            reply,
            message,
            answer,
        } = acknowledged;
        let found = replies.get(file);
        let found = found.unwrap_or_else(|| panic!("{file} was acknowledged and is lost"));
        if *reply != Acknowledged::Held {
            assert_eq!(
                *found,
                (*message, *answer),
                "{file} was acknowledged under other numbers"
            );
        }
        if *reply == Acknowledged::Taken {
            assert!(taken.insert(file), "{file} was taken in twice");
        }
        if *answer > 0 {
            let start = format!("{answer:08}-");
            let mut there = std::fs::read_dir(out.join("outbox").join(sender))
                .unwrap_or_else(|error| panic!("output of {sender}: {error}"));
            let there = there.any(|entry| {
                let name = entry.expect("an entry of a directory").file_name();
                name.to_string_lossy().starts_with(&start)
            });
            assert!(there, "answer {answer} to {sender} on {file} is missing");
        }
    }
    replies
}

fn gather(root: &Path, dir: &Path, outcome: &mut Outcome) {
    for entry in std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
    {
        let path = entry.expect("an entry of a directory").path();
        let name = path.strip_prefix(root).expect("it lies below");
        let name = name.to_string_lossy().into_owned();
        if path.is_dir() {
            assert!(!name.ends_with(".part"), "{name} was left half done");
            gather(root, &path, outcome);
        } else if name.ends_with(".part") {
            // The next run writes it anew under the same name; what is in the way of nothing, nobody looks for.
            panic!("{name} was left half done");
        } else if name.contains("/answers/") {
            let (asked, _) = name.rsplit_once('/').expect("it lies in a directory");
            outcome.answers.insert(asked.to_owned());
        } else {
            let text = std::fs::read_to_string(&path).expect("documents are text");
            outcome.documents.insert(name, mask(&path, &text));
        }
    }
}

fn mask(path: &Path, text: &str) -> String {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("xml") => mask_times_and_positions(text),
        Some("json" | "jsonl") => text
            .lines()
            .map(|line| {
                let mut value: Value = serde_json::from_str(line).expect("lines are JSON");
                mask_json(&mut value);
                format!("{value}\n")
            })
            .collect(),
        _ => text.to_owned(),
    }
}

/// `2026-11-30T08:00:00.630967Z`, `08:00:00.1Z` and `0:52` become `#`: whatever consists of digits and their separators
/// and holds a colon.
fn mask_times_and_positions(text: &str) -> String {
    let part = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.' | '-' | 'T' | 'Z');
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        masked.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find(|c| !part(c)).unwrap_or(rest.len());
        let token = &rest[..end];
        masked.push_str(if token.contains(':') { "#" } else { token });
        rest = &rest[end..];
    }
    masked.push_str(rest);
    masked
}

fn mask_json(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                let differs = matches!(
                    name.as_str(),
                    "cluster" | "cuts" | "decided" | "posts" | "digest" | "previous"
                );
                if differs || name.ends_with("_blake3") && name != "inputs_blake3" {
                    *field = Value::Null;
                } else {
                    mask_json(field);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask_json),
        _ => {}
    }
}

impl Outcome {
    /// Compares with an undisturbed run, and names the first difference.
    #[track_caller]
    pub(crate) fn check_against(&self, undisturbed: &Self) {
        assert_eq!(self.replies, undisturbed.replies, "message numbers");
        assert_eq!(self.summary, undisturbed.summary, "figures");
        assert_eq!(self.not_taken, undisturbed.not_taken, "what was not taken");
        let names = |documents: &BTreeMap<String, String>| documents.keys().cloned().collect();
        let (mine, theirs): (BTreeSet<_>, BTreeSet<_>) =
            (names(&self.documents), names(&undisturbed.documents));
        assert!(
            mine == theirs,
            "only here: {:?}, only there: {:?}",
            mine.difference(&theirs).collect::<Vec<_>>(),
            theirs.difference(&mine).collect::<Vec<_>>()
        );
        for (name, text) in &self.documents {
            assert_eq!(text, &undisturbed.documents[name], "{name}");
        }
        assert_eq!(self.answers, undisturbed.answers, "answers");
    }
}

/// Input and outcome of a day that nobody disturbed.
pub(crate) fn undisturbed(root: &Path, day: Day) -> (std::path::PathBuf, Outcome) {
    let input = root.join(format!("{day:?}"));
    day.make(&input);
    let place = Place::new(root, &input, &format!("{day:?}-undisturbed"));
    let outcome = of(&place, &place.run());
    place.remove();
    (input, outcome)
}

#[test]
fn times_and_positions_are_masked_and_nothing_else() {
    let text =
        "<A>2026-11-30T08:00:00.63Z</A><B>0:52</B><C>2026-11-30</C><D>12.50</D><E>08:00:00Z</E>";
    assert_eq!(
        mask_times_and_positions(text),
        "<A>#</A><B>#</B><C>2026-11-30</C><D>12.50</D><E>#</E>"
    );
}

#[test]
fn an_undisturbed_day_repeated_comes_to_the_same() {
    let root = crate::days::scratch();
    for day in crate::days::DAYS {
        let (input, outcome) = undisturbed(root.path(), day);
        let place = Place::new(root.path(), &input, "again");
        of(&place, &place.run()).check_against(&outcome);
        place.remove();
    }
}
