//! F17: after a failed fsync the process stops and does not try again; what was acknowledged before stays. F18: a write
//! that finds the disk full is offered again or stops the process.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use crate::days::{Day, Place, scratch};
use crate::outcome::{Outcome, of, undisturbed};
use crate::process::works;

const INJECTED: &str = "(INJECTED)";
/// The package store's engine tidies its list of tables up after it has made one, and does without where it cannot: the
/// list stands as it was.
const BEST_EFFORT: &str = "/packages/keyspaces/0";
/// The n-th call of any thread fails, for these n.
const AT: [u32; 9] = [1, 2, 3, 5, 9, 20, 40, 70, 100];

fn strace_works() -> bool {
    let works = works("strace", &["-f", "-y", "-e", "trace=none", "true"]);
    if !works {
        eprintln!("SKIPPED: faults of system calls: strace is not here or must not trace");
    }
    works
}

/// Runs a day under strace and gives how it ended and the trace; then without, to the end, and compares.
fn run_with_fault(place: &Place, fault: &str, calls: &str, outcome: &Outcome) -> (bool, String) {
    let trace = place.scratch.join("trace");
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qq", "-y", "-o"])
        .arg(&trace)
        .args([
            "-e",
            &format!("trace={calls}"),
            "-e",
            &format!("inject={fault}"),
        ])
        .arg(env!("CARGO_BIN_EXE_clearspan"));
    place.add_arguments(&mut command);
    let ended = place.start(command).wait();
    let trace = std::fs::read_to_string(trace).expect("strace wrote its trace");
    let good = ended.status.success();
    if !good {
        assert!(
            ended.status.code() == Some(1) || ended.status.signal() == Some(6),
            "{fault}: {ended:?}"
        );
        assert!(
            ended.stderr.contains("stopping: ") || ended.stderr.contains("error: "),
            "{fault}: {}",
            ended.stderr
        );
    }
    of(place, &place.run()).check_against(outcome);
    place.remove();
    (good, trace)
}

#[test]
fn a_failed_fsync_stops_the_process_and_is_not_tried_again() {
    if !strace_works() {
        return;
    }
    let root = scratch();
    let (input, outcome) = undisturbed(root.path(), Day::Netting);
    let mut failed = 0;
    for calls in ["fdatasync", "fsync"] {
        for at in AT {
            let place = Place::new(root.path(), &input, &format!("{calls}-{at}"));
            let fault = format!("{calls}:error=EIO:when={at}");
            let (good, trace) = run_with_fault(&place, &fault, "fdatasync,fsync", &outcome);
            if !trace.contains(INJECTED) {
                assert!(good);
                break;
            }
            failed += 1;
            let (path, after) = injected(&trace);
            if path.contains(BEST_EFFORT) && good {
                continue;
            }
            assert!(!good, "{fault}: the process went on after {path}");
            // A second call may claim what is not so.
            let again = after.lines().find(|line| line.contains(&path));
            assert_eq!(again, None, "{fault}");
        }
    }
    println!("{failed} failed fsyncs");
    assert!(failed > AT.len());
}

/// The file whose fsync failed, as `<path>`, and what was called after it.
fn injected(trace: &str) -> (String, &str) {
    let line = trace
        .lines()
        .find(|line| line.contains(INJECTED))
        .expect("it was there");
    let (before, after) = trace.split_once(INJECTED).expect("it was there");
    let thread = line.split_whitespace().next().expect("a thread");
    // A call that another thread's came between is told in two lines; the first names the file.
    let call = before
        .lines()
        .rfind(|line| line.split_whitespace().next() == Some(thread) && line.contains("sync("))
        .expect("the call");
    let start = call.find('<').expect("strace -y names files");
    let end = call[start..].find('>').expect("strace -y names files") + start;
    (call[start..=end].to_owned(), after)
}

#[test]
fn a_write_that_finds_the_disk_full_loses_nothing() {
    if !strace_works() {
        return;
    }
    let root = scratch();
    let (input, outcome) = undisturbed(root.path(), Day::Netting);
    let mut failed = 0;
    for at in AT {
        let place = Place::new(root.path(), &input, &format!("full-{at}"));
        let fault = format!("pwrite64:error=ENOSPC:when={at}");
        let (_, trace) = run_with_fault(&place, &fault, "pwrite64", &outcome);
        failed += usize::from(trace.contains(INJECTED));
    }
    assert!(failed > 0);
}
