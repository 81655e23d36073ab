use std::fs;
use std::sync::atomic::Ordering;

use clearspan_replica::conformance::{self, append};
use clearspan_replica::{Append, HardState, LogError, LogPosition, LogStore, ShardId};
use clearspan_storage::{DataDir, Log};

use crate::support::{
    ONE, TWO, Volume, contents, copy_dir, data_dir, log_files, new_dir, open, open_log, read, small,
};

/// A process that is being started shares its parent's locks until it runs its own program.
#[test]
fn a_lock_of_the_engine_that_goes_is_waited_for() {
    let (_dir, layout) = new_dir();
    drop(open(&layout, small()).unwrap());
    let lock = fs::File::open(layout.log.join("LOCK")).unwrap();
    lock.lock().unwrap();
    let data = data_dir(&layout);
    std::thread::scope(|scope| {
        let opener = scope.spawn(|| open_log(&data, small()).map(drop));
        drop(lock);
        opener.join().unwrap().unwrap();
    });
}

#[test]
fn passes_the_suite() {
    let (_dir, layout) = new_dir();
    let data = data_dir(&layout);
    let mut log = Some(open_log(&data, small()).unwrap());
    // The suite hands back the log it had; the engine under it must close before it opens again.
    struct Reopening<'a>(&'a DataDir, Option<Log>);
    impl LogStore for Reopening<'_> {
        fn append(&mut self, batch: &[Append]) -> Result<(), LogError> {
            self.1.as_mut().unwrap().append(batch)
        }
        fn shards(&self) -> Vec<ShardId> {
            self.1.as_ref().unwrap().shards()
        }
        fn shard(&self, shard: ShardId) -> Result<clearspan_replica::ShardLog, LogError> {
            self.1.as_ref().unwrap().shard(shard)
        }
        fn entries(
            &self,
            shard: ShardId,
            low: u64,
            high: u64,
            max: u64,
        ) -> Result<Vec<clearspan_replica::Entry>, LogError> {
            self.1.as_ref().unwrap().entries(shard, low, high, max)
        }
        fn compact(&mut self, shard: ShardId, to: LogPosition) -> Result<(), LogError> {
            self.1.as_mut().unwrap().compact(shard, to)
        }
        fn purge(&mut self) -> Result<Vec<ShardId>, LogError> {
            self.1.as_mut().unwrap().purge()
        }
    }
    let mut reopening = Reopening(&data, log.take());
    conformance::check(&mut reopening, &mut |open| {
        drop(open.1.take());
        Reopening(open.0, Some(open_log(open.0, small()).unwrap()))
    });
}

#[test]
fn many_shards_many_files_and_space_given_back() {
    let (_dir, layout) = new_dir();
    let mut held = open(&layout, small()).unwrap();
    for index in 1..=200 {
        let batch: Vec<Append> = (0..8)
            .map(|number| append(ShardId::new(number), 1, index..=index, 1000))
            .collect();
        held.log.append(&batch).unwrap();
    }
    let before = log_files(&layout).len();
    assert!(before > 10, "{before} files");
    drop(held);
    let mut held = open(&layout, small()).unwrap();
    for number in 0..8 {
        assert_eq!(
            read(&held.log, ShardId::new(number)),
            append(ShardId::new(number), 1, 1..=200, 1000).entries
        );
        held.log
            .compact(
                ShardId::new(number),
                LogPosition {
                    term: 1,
                    index: 195,
                },
            )
            .unwrap();
    }
    held.log.purge().unwrap();
    drop(held);
    let after = log_files(&layout).len();
    assert!(after < before / 2, "{before} files before, {after} after");
    let held = open(&layout, small()).unwrap();
    for number in 0..8 {
        assert_eq!(
            read(&held.log, ShardId::new(number)),
            append(ShardId::new(number), 1, 196..=200, 1000).entries
        );
    }
}

#[test]
fn the_log_moves_to_reused_files_and_back() {
    // Reused files still hold old records behind the new ones; none of them may come back.
    let (_dir, layout) = new_dir();
    let mut index = 0;
    for _ in 0..4 {
        let mut held = open(&layout, small()).unwrap();
        for _ in 0..150 {
            index += 1;
            held.log
                .append(&[append(ONE, 1, index..=index, 2000)])
                .unwrap();
            if index % 20 == 0 {
                held.log
                    .compact(
                        ONE,
                        LogPosition {
                            term: 1,
                            index: index - 5,
                        },
                    )
                    .unwrap();
                held.log.purge().unwrap();
            }
        }
        let found = held.log.shard(ONE).unwrap();
        assert_eq!(found.last_index, index);
        assert_eq!(
            read(&held.log, ONE),
            append(ONE, 1, found.first_index()..=index, 2000).entries
        );
    }
}

#[test]
fn a_full_volume_is_refused_cleanly_and_recovers() {
    let (_dir, layout) = new_dir();
    let volume = Volume::new(10_000);
    let mut options = small();
    options.reserve_bytes = 5_000;
    options.free_space = volume.clone();
    let mut held = open(&layout, options).unwrap();
    held.log.append(&[append(ONE, 1, 1..=1, 1000)]).unwrap();
    volume.0.store(5_500, Ordering::Relaxed);
    let before = contents(&layout.log);
    let refused = held.log.append(&[append(ONE, 1, 2..=2, 1000)]).unwrap_err();
    assert!(
        matches!(refused, LogError::DiskFull { free_bytes: 5_500, needed_bytes } if needed_bytes > 6_000)
    );
    assert!(!refused.is_fatal());
    assert_eq!(contents(&layout.log), before, "nothing reached the disk");
    assert_eq!(held.log.shard(ONE).unwrap().last_index, 1);
    volume.0.store(10_000, Ordering::Relaxed);
    held.log.append(&[append(ONE, 1, 2..=2, 1000)]).unwrap();
    assert_eq!(read(&held.log, ONE), append(ONE, 1, 1..=2, 1000).entries);
}

#[test]
fn a_log_that_lost_its_end_is_named_and_left_alone() {
    let (dir, layout) = new_dir();
    let mut held = open(&layout, small()).unwrap();
    for index in 1..=20 {
        held.log
            .append(&[
                append(ONE, 1, index..=index, 500),
                append(TWO, 1, index..=index, 10),
            ])
            .unwrap();
    }
    drop(held);
    let file = log_files(&layout).pop().unwrap();
    let whole = fs::read(&file).unwrap();
    // Every cut in the last few batches: each ends before what was synced.
    for length in (whole.len() - 2000..whole.len()).step_by(37) {
        fs::write(&file, &whole[..length]).unwrap();
        let before = contents(&layout.log);
        match open(&layout, small()) {
            Err(LogError::TailLost {
                synced: 20, found, ..
            }) => assert!(found < 20),
            other => panic!("cut to {length}: {:?}", other.map(|open| open.log)),
        }
        assert_eq!(
            contents(&layout.log),
            before,
            "cut to {length}: the evidence was changed"
        );
    }
    fs::write(&file, &whole).unwrap();
    assert_eq!(read(&open(&layout, small()).unwrap().log, ONE).len(), 20);
    // All of it gone.
    copy_dir(&layout.log, &dir.path().join("copy"));
    for file in fs::read_dir(&layout.log).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    assert!(matches!(
        open(&layout, small()),
        Err(LogError::TailLost {
            shard: ONE,
            synced: 20,
            found: 0
        })
    ));
}

#[test]
fn an_unfinished_write_behind_what_was_synced_is_dropped() {
    for torn in 0..3 {
        let (_dir, layout) = new_dir();
        let mut held = open(&layout, small()).unwrap();
        held.log.append(&[append(ONE, 1, 1..=5, 500)]).unwrap();
        drop(held);
        let file = log_files(&layout).pop().unwrap();
        let whole = fs::read(&file).unwrap();
        // Blocks allocated and never written, noise, and half of a real batch.
        let half = whole[whole.len() - 900..whole.len() - 200].to_vec();
        let tail = [vec![0; 4096], vec![0xff; 100], half][torn].clone();
        fs::write(&file, [whole, tail].concat()).unwrap();
        let mut held = open(&layout, small()).unwrap();
        assert_eq!(read(&held.log, ONE), append(ONE, 1, 1..=5, 500).entries);
        held.log.append(&[append(ONE, 1, 6..=6, 500)]).unwrap();
        drop(held);
        assert_eq!(read(&open(&layout, small()).unwrap().log, ONE).len(), 6);
    }
}

#[test]
fn an_older_mark_is_no_fault_and_a_missing_one_is() {
    let (_dir, layout) = new_dir();
    let marker = layout.root.join("SYNCED");
    let mut held = open(&layout, small()).unwrap();
    held.log.append(&[append(ONE, 1, 1..=5, 100)]).unwrap();
    let older = fs::read(&marker).unwrap();
    held.log.append(&[append(ONE, 1, 6..=9, 100)]).unwrap();
    drop(held);
    // As after a power cut: the mark's last write never reached the disk.
    fs::write(&marker, older).unwrap();
    assert_eq!(
        open(&layout, small())
            .unwrap()
            .log
            .shard(ONE)
            .unwrap()
            .last_index,
        9
    );
    fs::remove_file(&marker).unwrap();
    assert!(matches!(
        open(&layout, small()),
        Err(LogError::Unreadable { .. })
    ));
}

#[test]
fn an_old_end_in_an_older_term_is_noticed() {
    let (dir, layout) = new_dir();
    let mut held = open(&layout, small()).unwrap();
    held.log.append(&[append(ONE, 1, 1..=5, 100)]).unwrap();
    drop(held);
    let copy = dir.path().join("copy");
    copy_dir(&layout.log, &copy);
    let mut held = open(&layout, small()).unwrap();
    held.log.append(&[append(ONE, 2, 5..=5, 100)]).unwrap();
    drop(held);
    // The log goes back to before its end was replaced: as long as before, and not the same.
    fs::remove_dir_all(&layout.log).unwrap();
    copy_dir(&copy, &layout.log);
    assert!(matches!(
        open(&layout, small()),
        Err(LogError::TailLost {
            synced: 5,
            found: 5,
            ..
        })
    ));
}

#[test]
fn a_forgotten_vote_is_noticed() {
    let (_dir, layout) = new_dir();
    let mut held = open(&layout, small()).unwrap();
    held.log.append(&[append(ONE, 1, 1..=5, 100)]).unwrap();
    let whole =
        |layout: &clearspan_storage::Layout| fs::read(log_files(layout).pop().unwrap()).unwrap();
    drop(held);
    let before = whole(&layout);
    let mut held = open(&layout, small()).unwrap();
    let hard_state = HardState {
        term: 2,
        vote: clearspan_replica::MemberId::new(3),
        commit: 0,
    };
    let vote = Append {
        shard: ONE,
        hard_state: Some(hard_state),
        must_sync: true,
        ..Append::default()
    };
    held.log.append(&[vote]).unwrap();
    drop(held);
    assert_eq!(
        open(&layout, small())
            .unwrap()
            .log
            .shard(ONE)
            .unwrap()
            .hard_state,
        hard_state
    );
    // No entry is missing, only the vote at the end.
    fs::write(log_files(&layout).pop().unwrap(), before).unwrap();
    let refused = open(&layout, small()).map(|open| open.log).unwrap_err();
    assert!(
        matches!(
            refused,
            LogError::VoteLost {
                shard: ONE,
                synced_term: 2,
                found_term: 0
            }
        ),
        "{refused:?}"
    );
}

/// Whatever byte of a log file changes: the log is either refused by name, or an entry is, or everything reads back.
/// Never is a different entry served, never one skipped.
#[test]
fn every_region_of_every_file_is_guarded() {
    let (_dir, layout) = new_dir();
    let mut held = open(&layout, small()).unwrap();
    for index in 1..=60 {
        let mut part = append(ONE, 1, index..=index, 3000);
        part.hard_state = Some(HardState {
            term: 1,
            vote: None,
            commit: index - 1,
        });
        held.log.append(&[part]).unwrap();
    }
    let expected = append(ONE, 1, 1..=60, 3000).entries;
    drop(held);
    let files = log_files(&layout);
    assert!(files.len() >= 3);
    let (mut refused, mut named, mut harmless) = (0, 0, 0);
    for file in &files {
        let whole = fs::read(file).unwrap();
        // A header, then batches of about 3,250 bytes: the step visits every part of a batch.
        let head = (0..64).chain((64..whole.len()).step_by(211));
        for at in head {
            let mut bad = whole.clone();
            bad[at] ^= 0x20;
            fs::write(file, &bad).unwrap();
            let before = contents(&layout.log);
            match open(&layout, small()) {
                Err(
                    LogError::TailLost { .. }
                    | LogError::VoteLost { .. }
                    | LogError::Unreadable { .. }
                    | LogError::Corrupt { .. },
                ) => {
                    assert_eq!(
                        contents(&layout.log),
                        before,
                        "{}: byte {at}: changed",
                        file.display()
                    );
                    refused += 1;
                }
                Err(other) => panic!("{}: byte {at}: {other:?}", file.display()),
                Ok(held) => {
                    let found = held.log.shard(ONE).unwrap();
                    assert_eq!(found.last_index, 60);
                    for index in 1..=60 {
                        match held.log.entries(ONE, index, index + 1, u64::MAX) {
                            Ok(entries) => assert_eq!(
                                entries,
                                expected[usize::try_from(index).unwrap() - 1..][..1]
                            ),
                            Err(LogError::Corrupt {
                                shard: ONE,
                                index: at,
                                place,
                                ..
                            }) => {
                                assert_eq!(at, index);
                                assert_eq!(place, file.display().to_string());
                                named += 1;
                            }
                            Err(other) => panic!("{other:?}"),
                        }
                    }
                    if found.hard_state.commit == 59 {
                        harmless += 1;
                    }
                }
            }
            fs::write(file, &whole).unwrap();
        }
    }
    assert!(
        refused > 100,
        "{refused} refused, {named} named, {harmless} harmless"
    );
    assert!(
        named > 100,
        "{refused} refused, {named} named, {harmless} harmless"
    );
}

#[test]
fn another_node_s_log_is_refused() {
    let (_dir, layout) = new_dir();
    let mut held = open(&layout, small()).unwrap();
    held.log.append(&[append(ONE, 1, 1..=3, 100)]).unwrap();
    drop(held);
    let (_other, elsewhere) = new_dir();
    // As after copying the wrong directory.
    let mut theirs = crate::support::identity();
    theirs.node = clearspan_storage::NodeId::from_bytes([0x77; 16]);
    fs::remove_dir_all(&elsewhere.root).unwrap();
    drop(DataDir::create(elsewhere.clone(), theirs).unwrap());
    copy_dir(&layout.log, &elsewhere.log);
    assert!(
        matches!(open(&elsewhere, small()), Err(LogError::Unreadable { .. })),
        "a log without its marker"
    );
    fs::remove_file(elsewhere.log.join("LOCK")).ok();
    fs::copy(layout.root.join("SYNCED"), elsewhere.root.join("SYNCED")).unwrap();
    assert!(
        matches!(open(&elsewhere, small()), Err(LogError::Unreadable { .. })),
        "another's marker"
    );
}

#[test]
fn a_missing_file_in_the_middle_is_noticed() {
    let (_dir, layout) = new_dir();
    let mut held = open(&layout, small()).unwrap();
    for index in 1..=100 {
        held.log
            .append(&[append(ONE, 1, index..=index, 3000)])
            .unwrap();
    }
    drop(held);
    let files = log_files(&layout);
    assert!(files.len() > 4);
    fs::remove_file(&files[2]).unwrap();
    let refused = open(&layout, small()).map(|open| open.log).unwrap_err();
    assert!(
        matches!(
            refused,
            LogError::Corrupt {
                shard: ONE,
                index: 1,
                ..
            }
        ),
        "{refused:?}"
    );
}

/// A chunk of a file lands in another's place, or an old one comes back: the engine's own checksums do not know where a
/// batch belongs. A wrong entry must not come out of it.
#[test]
fn a_misplaced_chunk_is_never_served() {
    let (_dir, layout) = new_dir();
    let mut held = open(&layout, small()).unwrap();
    for index in 1..=12 {
        held.log
            .append(&[append(ONE, 1, index..=index, 900)])
            .unwrap();
    }
    drop(held);
    let expected = append(ONE, 1, 1..=12, 900).entries;
    let file = log_files(&layout).remove(0);
    let whole = fs::read(&file).unwrap();
    let records: Vec<usize> = whole
        .windows(4)
        .enumerate()
        .filter(|(_, w)| w == b"CSLE")
        .map(|(at, _)| at)
        .collect();
    assert_eq!(records.len(), 12);
    let length = records[4] - records[3];
    let mut refused = 0;
    // Around the batch's own start the copy is exact, so that every engine checksum holds.
    for before in 0..64 {
        for (from, to, swap) in [(3, 7, false), (7, 3, false), (3, 7, true), (3, 4, true)] {
            let (from, to) = (records[from] - before, records[to] - before);
            let mut bad = whole.clone();
            bad[to..to + length].copy_from_slice(&whole[from..from + length]);
            if swap {
                bad[from..from + length].copy_from_slice(&whole[to..to + length]);
            }
            fs::write(&file, &bad).unwrap();
            match open(&layout, small()) {
                Err(
                    LogError::TailLost { .. }
                    | LogError::Unreadable { .. }
                    | LogError::Corrupt { .. },
                ) => refused += 1,
                Err(other) => panic!("{before}: {other:?}"),
                Ok(held) => {
                    for (index, entry) in (1..=12).zip(&expected) {
                        match held.log.entries(ONE, index, index + 1, u64::MAX) {
                            Ok(entries) => {
                                assert_eq!(entries, std::slice::from_ref(entry), "{before}")
                            }
                            Err(LogError::Corrupt {
                                shard: ONE,
                                index: at,
                                ..
                            }) => assert_eq!(at, index),
                            Err(other) => panic!("{before}: {other:?}"),
                        }
                    }
                }
            }
        }
    }
    assert!(refused > 0);
}
