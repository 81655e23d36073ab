use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clearspan_replica::conformance::append;
use clearspan_replica::{LogError, LogStore};
use clearspan_storage::{FileFaults, Layout, LogOptions, WriteFault};

use crate::support::{ONE, copy_dir, new_dir, open, read, small};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    /// The n-th write takes only a part.
    Short,
    /// The n-th write leaves a part and says that the disk is full.
    Full,
    /// The n-th write leaves a part and fails.
    Torn,
    /// The n-th fsync fails, the next would succeed.
    Sync,
    /// The n-th new file finds the disk full.
    Create,
}

#[derive(Debug)]
struct Faults {
    kind: Break,
    at: u64,
    count: AtomicU64,
}

impl Faults {
    fn due(&self, kind: Break) -> bool {
        self.kind == kind && self.count.fetch_add(1, Ordering::Relaxed) + 1 == self.at
    }
}

impl FileFaults for Faults {
    fn write(&self, _path: &Path, length: usize) -> Option<WriteFault> {
        match self.kind {
            Break::Short => self
                .due(Break::Short)
                .then_some(WriteFault::Short(length / 2)),
            Break::Full => self
                .due(Break::Full)
                .then(|| WriteFault::Torn(length / 2, io::Error::from(io::ErrorKind::StorageFull))),
            Break::Torn => self
                .due(Break::Torn)
                .then(|| WriteFault::Torn(length / 2, io::Error::other("input/output error"))),
            Break::Sync | Break::Create => None,
        }
    }

    fn sync(&self, _path: &Path) -> io::Result<()> {
        if self.due(Break::Sync) {
            Err(io::Error::other("input/output error"))
        } else {
            Ok(())
        }
    }

    fn create(&self, _path: &Path) -> io::Result<()> {
        if self.due(Break::Create) {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        } else {
            Ok(())
        }
    }
}

fn broken(kind: Break, at: u64) -> LogOptions {
    LogOptions {
        faults: Some(Arc::new(Faults {
            kind,
            at,
            count: AtomicU64::new(0),
        })),
        ..small()
    }
}

/// Opens what a stopped process left behind. Its locks are held in this one, so look at a copy.
fn reopen_copy(layout: &Layout, to: &Path) -> u64 {
    let copy = Layout::under(to);
    copy_dir(&layout.root, &copy.root);
    let held = open(&copy, small()).unwrap();
    let last = held.log.shard(ONE).unwrap().last_index;
    assert_eq!(read(&held.log, ONE), append(ONE, 1, 1..=last, 5000).entries);
    last
}

const ENTRIES: u64 = 30;

/// Appends one entry at a time; gives the last one acknowledged and how it ended.
fn fill(layout: &Layout, kind: Break, at: u64) -> (u64, Option<LogError>) {
    let mut held = match open(layout, broken(kind, at)) {
        Ok(held) => held,
        Err(error) => return (0, Some(error)),
    };
    for index in 1..=ENTRIES {
        let batch = [append(ONE, 1, index..=index, 5000)];
        if let Err(error) = held.log.append(&batch) {
            let stopped = held.log.append(&batch);
            if error.is_fatal() {
                assert!(
                    matches!(stopped, Err(LogError::Stopped)),
                    "a stopped log took more: {stopped:?}"
                );
                assert!(matches!(
                    held.log.entries(ONE, 1, 2, 1),
                    Err(LogError::Stopped)
                ));
                return (index - 1, Some(error));
            }
            stopped.expect("once space is back, the same batch is taken");
        }
    }
    (ENTRIES, None)
}

#[test]
fn a_short_write_is_finished() {
    for at in 1..20 {
        let (dir, layout) = new_dir();
        let (acked, error) = fill(&layout, Break::Short, at);
        assert!(error.is_none(), "write {at}: {error:?}");
        assert_eq!(reopen_copy(&layout, &dir.path().join("copy")), acked);
    }
}

#[test]
fn a_full_disk_at_any_write_is_refused_and_leaves_nothing_behind() {
    for kind in [Break::Full, Break::Create] {
        // The first two are the files made at open.
        for at in 3..30 {
            let (dir, layout) = new_dir();
            let (acked, error) = fill(&layout, kind, at);
            assert!(error.is_none(), "{kind:?} {at}: {error:?}");
            assert_eq!(acked, ENTRIES);
            assert_eq!(
                reopen_copy(&layout, &dir.path().join("copy")),
                acked,
                "{kind:?} {at}"
            );
        }
    }
}

#[test]
fn a_failed_write_stops_the_log_and_nothing_acknowledged_is_lost() {
    for at in 3..20 {
        let (dir, layout) = new_dir();
        let (acked, error) = fill(&layout, Break::Torn, at);
        let error = error.expect("the write failed");
        assert!(error.is_fatal(), "write {at}: {error:?}");
        assert_eq!(
            reopen_copy(&layout, &dir.path().join("copy")),
            acked,
            "write {at}"
        );
    }
}

#[test]
fn a_failed_fsync_is_never_tried_again() {
    let mut fatal = 0;
    for at in 1..20 {
        let (dir, layout) = new_dir();
        let (acked, error) = fill(&layout, Break::Sync, at);
        let error = error.expect("the fsync failed");
        assert!(error.is_fatal(), "fsync {at}: {error:?}");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(cause, "input/output error", "fsync {at}");
        let found = reopen_copy(&layout, &dir.path().join("copy"));
        assert!(
            (acked..=acked + 1).contains(&found),
            "fsync {at}: {acked} acknowledged, {found} found"
        );
        fatal += 1;
    }
    assert_eq!(fatal, 19);
}
