//! What every [`LogStore`] promises, as one suite run against each provider.

use std::ops::RangeInclusive;

use bytes::Bytes;

use crate::entry::{Entry, EntryKind, HardState, LogPosition, MemberId, ShardId};
use crate::log_store::{Append, LogError, LogStore};

/// Entries `indexes` of `term`, each with `bytes` bytes that depend on shard, index and term, to be synced.
#[must_use]
pub fn append(shard: ShardId, term: u64, indexes: RangeInclusive<u64>, bytes: usize) -> Append {
    let entries = indexes
        .map(|index| entry(shard, term, index, bytes))
        .collect();
    Append {
        shard,
        entries,
        must_sync: true,
        ..Append::default()
    }
}

/// One entry with `bytes` bytes that depend on shard, index and term.
#[must_use]
pub fn entry(shard: ShardId, term: u64, index: u64, bytes: usize) -> Entry {
    let seed = [u64::from(shard.get()), term, index]
        .map(u64::to_le_bytes)
        .concat();
    let data: Vec<u8> = seed.iter().copied().cycle().take(bytes).collect();
    Entry {
        index,
        term,
        kind: EntryKind::Command,
        data: Bytes::from(data),
    }
}

fn read(log: &impl LogStore, shard: ShardId) -> Vec<Entry> {
    let found = log.shard(shard).expect("the shard's state reads back");
    log.entries(shard, found.first_index(), found.last_index + 1, u64::MAX)
        .expect("the entries read back")
}

/// Runs the suite on an empty log. `reopen` closes the log and opens it again from what is durable.
///
/// # Panics
///
/// When the provider breaks a promise.
pub fn check<L: LogStore>(log: &mut L, reopen: &mut dyn FnMut(&mut L) -> L) {
    let (one, two) = (ShardId::new(0), ShardId::new(7));
    assert_eq!(log.shards(), []);
    let empty = log.shard(one).expect("an unknown shard is empty");
    assert_eq!((empty.first_index(), empty.last_index), (1, 0));
    assert_eq!(
        log.entries(one, 1, 1, u64::MAX)
            .expect("an empty range is no fault"),
        []
    );

    // Two shards in one write, hard state with them.
    let vote = HardState {
        term: 1,
        vote: MemberId::new(9),
        commit: 0,
    };
    let mut first = append(one, 1, 1..=3, 100);
    first.hard_state = Some(vote);
    log.append(&[first, append(two, 4, 1..=2, 10)])
        .expect("two shards are written");
    *log = reopen(log);
    assert_eq!(log.shards(), [one, two]);
    assert_eq!(log.shard(one).expect("state").hard_state, vote);
    assert_eq!(read(log, one), append(one, 1, 1..=3, 100).entries);
    assert_eq!(read(log, two), append(two, 4, 1..=2, 10).entries);

    // A range, capped in bytes, always at least one.
    assert_eq!(log.entries(one, 2, 4, 1).expect("capped").len(), 1);
    assert_eq!(log.entries(one, 1, 4, 200).expect("capped").len(), 2);
    for (low, high) in [(0, 2), (3, 5), (5, 6)] {
        assert!(matches!(
            log.entries(one, low, high, u64::MAX),
            Err(LogError::OutOfRange { .. })
        ));
    }

    // A gap is refused and changes nothing, not even the other shard of the same batch.
    let gap = [append(two, 4, 3..=3, 10), append(one, 1, 5..=5, 10)];
    assert!(matches!(
        log.append(&gap),
        Err(LogError::NotContiguous { .. })
    ));
    let mut holes = append(one, 1, 4..=6, 10);
    holes.entries.remove(1);
    assert!(matches!(
        log.append(&[holes]),
        Err(LogError::NotContiguous { .. })
    ));
    assert_eq!(log.shard(one).expect("state").last_index, 3);
    assert_eq!(log.shard(two).expect("state").last_index, 2);

    // A new leader replaces the tail, and the log may get shorter.
    log.append(&[append(one, 2, 2..=2, 50)])
        .expect("the tail is replaced");
    *log = reopen(log);
    let mut expected = append(one, 1, 1..=1, 100).entries;
    expected.extend(append(one, 2, 2..=2, 50).entries);
    assert_eq!(read(log, one), expected);

    // Kinds survive.
    let mut change = append(one, 2, 3..=4, 9);
    change.entries[0].kind = EntryKind::Change;
    change.entries[1].kind = EntryKind::ChangeV2;
    log.append(std::slice::from_ref(&change))
        .expect("changes are stored");
    *log = reopen(log);
    assert_eq!(
        log.entries(one, 3, 5, u64::MAX).expect("changes"),
        change.entries
    );

    // An empty write is no write.
    log.append(&[Append {
        shard: ShardId::new(3),
        must_sync: true,
        ..Append::default()
    }])
    .expect("nothing to write");
    assert_eq!(log.shards(), [one, two]);

    // Cutting: the base stays known, what is cut is refused, and the log goes on.
    log.compact(one, LogPosition { term: 2, index: 3 })
        .expect("cut");
    log.compact(one, LogPosition { term: 2, index: 2 })
        .expect("cutting less again is no fault");
    assert!(log.compact(one, LogPosition { term: 2, index: 9 }).is_err());
    assert!(matches!(
        log.entries(one, 3, 4, u64::MAX),
        Err(LogError::OutOfRange { first: 4, .. })
    ));
    log.append(&[append(one, 2, 5..=5, 20)]).expect("goes on");
    *log = reopen(log);
    let cut = log.shard(one).expect("state");
    assert_eq!(
        (cut.base, cut.last_index),
        (LogPosition { term: 2, index: 3 }, 5)
    );
    assert!(matches!(
        log.append(&[append(one, 2, 3..=3, 20)]),
        Err(LogError::NotContiguous { .. })
    ));
    log.compact(one, LogPosition { term: 2, index: 5 })
        .expect("cut everything");
    log.append(&[append(one, 3, 6..=7, 20)])
        .expect("goes on after nothing");
    *log = reopen(log);
    assert_eq!(read(log, one), append(one, 3, 6..=7, 20).entries);

    // A snapshot replaces the log, forwards over a gap and backwards over a tail that never was committed.
    let mut jump = append(one, 5, 101..=102, 30);
    jump.install = Some(LogPosition {
        term: 5,
        index: 100,
    });
    jump.hard_state = Some(HardState {
        term: 5,
        vote: None,
        commit: 100,
    });
    log.append(std::slice::from_ref(&jump))
        .expect("a snapshot jumps ahead");
    *log = reopen(log);
    assert_eq!(
        log.shard(one).expect("state").base,
        LogPosition {
            term: 5,
            index: 100
        }
    );
    assert_eq!(log.shard(one).expect("state").hard_state.commit, 100);
    assert_eq!(read(log, one), jump.entries);
    let back = Append {
        shard: one,
        install: Some(LogPosition {
            term: 6,
            index: 101,
        }),
        must_sync: true,
        ..Append::default()
    };
    log.append(&[back]).expect("a snapshot replaces a tail");
    *log = reopen(log);
    let replaced = log.shard(one).expect("state");
    assert_eq!(
        (replaced.base, replaced.last_index),
        (
            LogPosition {
                term: 6,
                index: 101
            },
            101
        )
    );
    log.append(&[append(one, 6, 102..=103, 30)])
        .expect("goes on after a snapshot");
    *log = reopen(log);
    assert_eq!(read(log, one), append(one, 6, 102..=103, 30).entries);

    // Several parts of one shard in one write, as a writer gathers them: the later replaces what the earlier said.
    let state = |term| {
        Some(HardState {
            term,
            vote: None,
            commit: 101,
        })
    };
    let mut early = append(one, 7, 104..=106, 30);
    early.hard_state = state(7);
    let mut late = append(one, 8, 105..=105, 30);
    late.hard_state = state(8);
    log.append(&[
        early,
        append(two, 4, 3..=3, 10),
        late,
        append(one, 8, 106..=108, 30),
    ])
    .expect("parts of one shard follow one another");
    *log = reopen(log);
    let mut expected = append(one, 6, 102..=103, 30).entries;
    expected.extend(append(one, 7, 104..=104, 30).entries);
    expected.extend(append(one, 8, 105..=108, 30).entries);
    assert_eq!(read(log, one), expected);
    assert_eq!(log.shard(one).expect("state").hard_state.term, 8);
    let mut jump = append(one, 9, 201..=202, 30);
    jump.install = Some(LogPosition {
        term: 9,
        index: 200,
    });
    log.append(&[
        append(one, 8, 109..=110, 30),
        jump.clone(),
        append(one, 9, 203..=203, 30),
    ])
    .expect("a snapshot between two parts");
    *log = reopen(log);
    assert_eq!(read(log, one), append(one, 9, 201..=203, 30).entries);

    // The other shard never noticed.
    assert_eq!(read(log, two), append(two, 4, 1..=3, 10).entries);
    log.purge().expect("purge");
    assert_eq!(read(log, two), append(two, 4, 1..=3, 10).entries);
}
