//! Golden files: hexadecimal, 32 bytes to a line, in `tests/golden/<layout>/<version>/<name>.hex`.
//!
//! A golden file changes only together with a version number: then the encoder writes into a new directory, and the files
//! of the old one stay and must stay readable. `UPDATE_GOLDEN=1 cargo test -p clearspan-codec` writes them (or
//! `cargo xtask golden`, which also refuses to change one that is committed).

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clearspan_codec::{entry, heap, package, snapshot};
use clearspan_ledger::entry::{Command, Entry};

use crate::samples::{Shards, TIME, commands, packages};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn updating() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1")
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(32) {
        for byte in line {
            write!(text, "{byte:02x}").expect("a text takes everything");
        }
        text.push('\n');
    }
    text
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| {
            let pair = std::str::from_utf8(pair).expect("ASCII");
            u8::from_str_radix(pair, 16).expect("two digits")
        })
        .collect()
}

pub(crate) fn check_text(layout: &str, version: u8, name: &str, found: &str) {
    let path = root().join(layout).join(version.to_string()).join(name);
    if updating() {
        fs::create_dir_all(path.parent().expect("a directory")).expect("make the directory");
        fs::write(&path, found).expect("write the golden file");
        return;
    }
    let golden = fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!(
            "{}: {error}; UPDATE_GOLDEN=1 writes new golden files",
            path.display()
        )
    });
    assert_eq!(
        golden,
        found,
        "{}: the layout has changed, or what entries do to a ledger. What is on disks cannot change: a new layout gets a new \
         version number, the old one stays readable, and UPDATE_GOLDEN=1 writes files for the new one. Replicas of two \
         builds must not differ either: say so in CHANGELOG.md before UPDATE_GOLDEN=1 rewrites a snapshot",
        path.display()
    );
}

fn check(layout: &str, name: &str, bytes: &[u8]) {
    check_text(layout, bytes[1], &format!("{name}.hex"), &to_hex(bytes));
}

/// Every golden file of a layout, of all versions.
pub(crate) fn all(layout: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for version in fs::read_dir(root().join(layout)).expect("golden files") {
        for file in fs::read_dir(version.expect("a version").path()).expect("golden files") {
            let path = file.expect("a file").path();
            if path.extension().is_some_and(|extension| extension == "hex") {
                let bytes = from_hex(&fs::read_to_string(&path).expect("read the golden file"));
                files.push((path, bytes));
            }
        }
    }
    files.sort();
    assert!(!files.is_empty());
    files
}

#[test]
fn entries() {
    for (name, command) in commands() {
        let bytes = entry::encode(TIME, &command);
        check("entry", &name, &bytes);
        assert_eq!(entry::decode(bytes), Ok((TIME, command)), "{name}");
    }
}

#[test]
fn snapshots() {
    let mut digests = String::new();
    let mut version = 0;
    for (name, shards) in [
        ("midday", Shards::at_midday()),
        ("end", Shards::at_the_end()),
    ] {
        for (shard, ledger) in shards.ledgers.iter().enumerate() {
            let bytes = snapshot::encode(ledger);
            version = bytes[1];
            check("snapshot", &format!("{name}-shard-{shard}"), &bytes);
            writeln!(
                digests,
                "{name} shard {shard}: index {}, running {:032x}, whole {:032x}",
                ledger.position().0,
                ledger.digest(),
                snapshot::state_digest(ledger)
            )
            .expect("a text takes everything");
        }
    }
    // Promise P9: the same entries give the same digests in any build.
    check_text("snapshot", version, "digests.txt", &digests);
}

#[test]
fn heaps() {
    // The packed heap's first byte is its form; both belong to version 1 of the entry that holds them.
    let repeated = b"<CdtTrfTxInf><PmtId/></CdtTrfTxInf>".repeat(20);
    let mixed: Vec<u8> = (0..=255).collect();
    for (name, raw) in [
        ("empty", &b""[..]),
        ("stored", b"too short to try"),
        ("stored-anyway", &mixed),
    ] {
        let packed = heap::pack(raw);
        check_text("heap", 1, &format!("{name}.hex"), &to_hex(&packed));
        assert_eq!(heap::unpack(&packed).as_deref(), Ok(raw));
    }
    // What compresses is held by what it unpacks to: a newer compressor may find shorter bytes.
    let golden = root().join("heap/1/compressed.hex");
    if updating() && !golden.exists() {
        fs::write(&golden, to_hex(&heap::pack(&repeated))).expect("write the golden file");
    }
    let packed = Bytes::from(from_hex(
        &fs::read_to_string(golden).expect("a golden file"),
    ));
    assert_eq!(packed.first(), Some(&1));
    assert_eq!(heap::unpack(&packed).as_deref(), Ok(&repeated[..]));
}

#[test]
fn compact_packages() {
    for (name, bytes) in packages() {
        check("package", name, &bytes);
        package::decode(Bytes::from(bytes)).expect("a package");
    }
}

/// Old versions stay readable, and what is read is written as the same bytes while the version is the newest.
#[test]
fn all_versions_are_read() {
    // The files may be half-way.
    if updating() {
        return;
    }
    let newest = entry::encode(TIME, &Command::Tick)[1];
    for (path, bytes) in all("entry") {
        let (time, command) = entry::decode(Bytes::from(bytes.clone()))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if bytes[1] == newest {
            assert_eq!(entry::encode(time, &command), bytes, "{}", path.display());
        }
    }
    let newest = snapshot::encode(&clearspan_ledger::Ledger::new())[1];
    for (path, bytes) in all("snapshot") {
        let ledger = snapshot::decode(Bytes::from(bytes.clone()))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if bytes[1] == newest {
            assert_eq!(snapshot::encode(&ledger), bytes, "{}", path.display());
        }
    }
    for (path, bytes) in all("package") {
        package::decode(Bytes::from(bytes))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    for (path, bytes) in all("heap") {
        heap::unpack(&Bytes::from(bytes))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// A ledger read from a snapshot goes on exactly as the one that was written: indexes are no part of the layout.
#[test]
fn a_restored_ledger_goes_on_alike() {
    let mut original = Shards::at_midday();
    for ledger in &mut original.ledgers {
        let bytes = Bytes::from(snapshot::encode(ledger));
        let mut restored = snapshot::decode(bytes).expect("a snapshot");
        for (_, command) in commands()
            .into_iter()
            .filter(|(name, _)| name.starts_with("submit") || name == "tick")
        {
            let entry = Entry {
                index: ledger.position().0.next(),
                time: TIME,
                command,
            };
            assert_eq!(ledger.apply(&entry), restored.apply(&entry));
        }
        assert_eq!(ledger.digest(), restored.digest());
        assert_eq!(snapshot::encode(ledger), snapshot::encode(&restored));
    }
}

/// What stands beside the ledger's own layout is in a snapshot as well, and in the digest of the state.
#[test]
fn a_snapshot_holds_requests_and_nodes() {
    let mut shards = Shards::at_midday();
    let ledger = &mut shards.ledgers[0];
    let before = snapshot::state_digest(ledger);
    for (name, command) in commands() {
        if name.starts_with("approvals") || name == "nodes-found" {
            let entry = Entry {
                index: ledger.position().0.next(),
                time: TIME,
                command,
            };
            ledger.apply(&entry);
        }
    }
    assert_eq!(ledger.approvals().requests().count(), 1);
    assert_ne!(snapshot::state_digest(ledger), before);
    let restored = snapshot::decode(Bytes::from(snapshot::encode(ledger))).expect("a snapshot");
    assert_eq!(restored.approvals(), ledger.approvals());
    assert_eq!(restored.nodes(), ledger.nodes());
    assert_eq!(
        snapshot::state_digest(&restored),
        snapshot::state_digest(ledger)
    );
}
