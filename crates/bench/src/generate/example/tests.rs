use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use super::*;

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").path())
        {
            if entry.is_dir() {
                open.push(entry);
            } else {
                let name = entry
                    .strip_prefix(dir)
                    .expect("below it")
                    .to_string_lossy()
                    .into_owned();
                found.insert(name, fs::read(&entry).expect("a file"));
            }
        }
    }
    found
}

/// Where the checked-in example lives.
fn checked_in() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/day")
}

#[test]
fn the_checked_in_example_is_what_is_written() {
    let dir = tempfile::tempdir().expect("a directory");
    example_day(dir.path()).expect("written");
    let (written, kept) = (files(dir.path()), files(&checked_in()));
    let names =
        |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<BTreeSet<String>>();
    assert_eq!(
        names(&written),
        names(&kept),
        "run `cargo test -p clearspan-bench -- --ignored write_the_example`"
    );
    for (name, bytes) in &written {
        assert!(
            bytes == &kept[name],
            "{name} differs; run `cargo test -p clearspan-bench -- --ignored write_the_example`"
        );
    }
}

#[test]
#[ignore = "replaces examples/day; run it after a change of the script"]
fn write_the_example() {
    let target = checked_in();
    if target.exists() {
        fs::remove_dir_all(&target).expect("removed");
    }
    example_day(&target).expect("written");
}

#[test]
fn the_example_is_small_and_its_money_adds_up() {
    let dir = tempfile::tempdir().expect("a directory");
    example_day(dir.path()).expect("written");
    let written = files(dir.path());
    assert!(written.values().map(Vec::len).sum::<usize>() < 1_500_000);
    let csv = String::from_utf8(written["expected-balances.csv"].clone()).expect("text");
    let mut differences = BTreeMap::<&str, i128>::new();
    for line in csv.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let minor = |text: &str| text.replace('.', "").parse::<i128>().expect("a number");
        let closing = minor(cells[3]);
        assert!(
            closing >= 0,
            "{line}: the example needs no credit in the end"
        );
        *differences.entry(cells[1]).or_default() += closing - minor(cells[2]);
    }
    assert!(
        differences.values().all(|&difference| difference == 0),
        "{differences:?}"
    );
    // Hand-checked: see the table.
    for line in [
        "HOTLLULLXXX,EUR,100.00,50.00",
        "ECHOITMMXXX,EUR,1000.00,200.00",
        "FOXTESMMXXX,EUR,1000.00,940.00",
        "INDIATWWXXX,EUR,0.00,0.00",
        "LIMAFIHHXXX,EUR,2.00,2.00",
        "LIMAFIHHXXX,JPY,2,0",
        "MIKESEGGXXX,JPY,0,2",
    ] {
        assert!(csv.contains(line), "{line} in\n{csv}");
    }
}

#[test]
fn the_example_refuses_to_mix_with_another() {
    let dir = tempfile::tempdir().expect("a directory");
    example_day(dir.path()).expect("written");
    assert!(matches!(
        example_day(dir.path()),
        Err(Error::Occupied { .. })
    ));
}
