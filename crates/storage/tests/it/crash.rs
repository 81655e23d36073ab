//! Kills a process at every labelled point and looks at what it left.

use std::env;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

use bytes::Bytes;
use clearspan_replica::conformance::append;
use clearspan_replica::{LogPosition, LogStore, MemberId, Membership, SnapshotMark};
use clearspan_storage::{CRASH_AT, CRASH_POINTS, Layout, Package, PackageOptions, Snapshots};

use crate::support::{self, ONE, data_dir, new_dir, open, open_log, open_packages, read, small};

const DIR: &str = "CLEARSPAN_TEST_DIR";
const WORK: &str = "CLEARSPAN_TEST_WORK";
const SIGABRT: i32 = 6;
const ROUNDS: u64 = 12;

/// Not a test of its own: the process that is killed.
#[test]
fn child() {
    let Ok(dir) = env::var(DIR) else { return };
    match env::var(WORK).as_deref() {
        Ok("rounds") => rounds(&dir),
        _ => shrink(&dir),
    }
}

/// A node in small: an entry, its package, now and then a snapshot and a cut. Says what it would have acknowledged.
fn rounds(dir: &str) {
    let data = data_dir(&Layout::under(dir));
    let mut log = open_log(&data, small()).unwrap();
    let options = PackageOptions {
        reserve_bytes: 0,
        ..PackageOptions::default()
    };
    let packages = open_packages(&data, options);
    let snapshots = Snapshots::open(&data);
    for index in 1..=ROUNDS {
        log.append(&[append(ONE, 1, index..=index, 3000)]).unwrap();
        say(&format!("acked {index}"));
        packages
            .put(&[Package {
                shard: ONE,
                number: index,
                data: package(index),
            }])
            .unwrap();
        if index % 3 == 0 {
            packages.persist().unwrap();
            let mark = mark(index);
            snapshots
                .write(ONE, &mark, |out| out.write_all(&index.to_le_bytes()))
                .unwrap();
            say(&format!("snapshot {index}"));
            log.compact(ONE, mark.position).unwrap();
        }
    }
}

/// A log whose end is replaced by a shorter one.
fn shrink(dir: &str) {
    let data = data_dir(&Layout::under(dir));
    let mut log = open_log(&data, small()).unwrap();
    log.append(&[append(ONE, 1, 1..=10, 100)]).unwrap();
    say("acked 10");
    log.append(&[append(ONE, 2, 5..=5, 100)]).unwrap();
    say("acked 5");
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    // On a line of its own, whatever the test harness printed before.
    writeln!(out, "\n{text}").unwrap();
    out.flush().unwrap();
}

fn package(index: u64) -> Bytes {
    Bytes::from(vec![u8::try_from(index).unwrap(); 2000])
}

fn mark(index: u64) -> SnapshotMark {
    let membership = Membership::of_voters(vec![MemberId::new(1).unwrap()]);
    SnapshotMark {
        position: LogPosition { term: 1, index },
        membership,
    }
}

fn run(layout: &Layout, work: &str, crash_at: &str) -> Output {
    support::run(
        Command::new(env::current_exe().unwrap())
            .args(["--exact", "crash::child", "--nocapture"])
            .env(DIR, &layout.root)
            .env(WORK, work)
            .env(CRASH_AT, crash_at),
    )
}

fn said(output: &Output, what: &str) -> u64 {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .filter_map(|line| line.strip_prefix(what))
        .filter_map(|n| n.trim().parse().ok())
        .next_back()
        .unwrap_or(0)
}

#[test]
fn a_kill_at_any_point_loses_nothing_acknowledged() {
    for label in CRASH_POINTS {
        for hit in [1, 2, 4] {
            let (_dir, layout) = new_dir();
            let output = run(&layout, "rounds", &format!("{label}:{hit}"));
            let at = format!("{label}:{hit}");
            assert_eq!(
                output.status.signal(),
                Some(SIGABRT),
                "{at}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            let acked = said(&output, "acked ");
            let held = open(&layout, small()).unwrap();
            let found = held.log.shard(ONE).unwrap();
            assert!(
                (acked..=acked + 1).contains(&found.last_index),
                "{at}: {acked} acknowledged, {found:?}"
            );
            let expected = append(ONE, 1, found.first_index()..=found.last_index, 3000).entries;
            assert_eq!(read(&held.log, ONE), expected, "{at}");
            drop(held);
            // What the log no longer holds is in a whole snapshot.
            let data = data_dir(&layout);
            let newest = Snapshots::open(&data).list(ONE).unwrap();
            let newest = newest
                .first()
                .map_or(0, |file| file.checked.as_ref().unwrap().position.index);
            assert!(
                newest >= found.base.index,
                "{at}: snapshot {newest}, {found:?}"
            );
            assert!(newest >= said(&output, "snapshot "), "{at}");
            let options = PackageOptions {
                reserve_bytes: 0,
                ..PackageOptions::default()
            };
            let packages = open_packages(&data, options);
            for number in 1..=newest {
                assert_eq!(
                    packages.get(ONE, number).unwrap(),
                    Some(package(number)),
                    "{at}: package {number}"
                );
            }
            drop((packages, data));
            // And the node goes on from there.
            let mut held = open(&layout, small()).unwrap();
            let next = found.last_index + 1;
            held.log.append(&[append(ONE, 2, next..=next, 10)]).unwrap();
        }
    }
}

#[test]
fn a_kill_while_the_log_gets_shorter_is_no_loss() {
    for at in [
        "before-log-append:2",
        "after-log-append-before-sync:2",
        "after-log-sync:2",
        "after-marker-write:2",
    ] {
        let (_dir, layout) = new_dir();
        let output = run(&layout, "shrink", at);
        assert_eq!(
            output.status.signal(),
            Some(SIGABRT),
            "{at}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(said(&output, "acked "), 10, "{at}");
        let held = open(&layout, small()).unwrap();
        let last = held.log.shard(ONE).unwrap().last_index;
        assert!(last == 10 || last == 5, "{at}: {last}");
    }
}
