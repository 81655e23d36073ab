//! A log in memory with a crash: for tests and simulation. It passes the same suite as the real one.

use std::collections::{BTreeMap, VecDeque};

use crate::entry::{Entry, HardState, LogPosition, ShardId};
use crate::log_store::{Append, LogError, LogStore, ShardLog};

#[derive(Clone, Debug, Default)]
struct Shard {
    hard_state: HardState,
    base: LogPosition,
    // Contiguous from base.index + 1.
    entries: VecDeque<Entry>,
}

impl Shard {
    fn last_index(&self) -> u64 {
        self.entries
            .back()
            .map_or(self.base.index, |entry| entry.index)
    }

    fn offset(&self, index: u64) -> usize {
        usize::try_from(index.saturating_sub(self.base.index + 1)).unwrap_or(usize::MAX)
    }
}

/// One change, kept until it is synced.
#[derive(Clone, Debug)]
enum Change {
    Append(Append),
    Compact(ShardId, LogPosition),
}

type Shards = BTreeMap<ShardId, Shard>;

/// A [`LogStore`] in memory. What was written without a sync is lost by [`MemoryLog::crash`].
#[derive(Clone, Debug, Default)]
pub struct MemoryLog {
    written: Shards,
    synced: Shards,
    // What `synced` lacks to be `written`.
    unsynced: Vec<Change>,
    syncs_count: u64,
    free_bytes: Option<u64>,
}

impl MemoryLog {
    /// An empty log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Loses power: keeps what was synced.
    pub fn crash(&mut self) {
        self.unsynced.clear();
        self.written = self.synced.clone();
    }

    /// How many fsyncs were made.
    #[must_use]
    pub const fn syncs_count(&self) -> u64 {
        self.syncs_count
    }

    /// Pretends that so many bytes are free; `None` for no limit. Writes do not use them up.
    pub fn set_free_bytes(&mut self, free_bytes: Option<u64>) {
        self.free_bytes = free_bytes;
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.written, &change);
        self.unsynced.push(change);
    }
}

/// Refuses a part that does not follow; gives the shard's base and last index after it.
fn check(append: &Append, (mut base, mut last): (u64, u64)) -> Result<(u64, u64), LogError> {
    let refuse = |expected, found| {
        Err(LogError::NotContiguous {
            shard: append.shard,
            expected,
            found,
        })
    };
    if let Some(position) = append.install {
        (base, last) = (position.index, position.index);
    }
    let Some(first) = append.entries.first() else {
        return Ok((base, last));
    };
    if first.index <= base || first.index > last + 1 {
        return refuse(last + 1, first.index);
    }
    for (expected, entry) in (first.index..).zip(&append.entries) {
        if entry.index != expected {
            return refuse(expected, entry.index);
        }
        last = expected;
    }
    Ok((base, last))
}

fn apply(shards: &mut Shards, change: &Change) {
    match change {
        Change::Append(append) => {
            let shard = shards.entry(append.shard).or_default();
            if let Some(base) = append.install {
                shard.base = base;
                shard.entries.clear();
            }
            if let Some(first) = append.entries.first() {
                shard.entries.truncate(shard.offset(first.index));
                shard.entries.extend(append.entries.iter().cloned());
            }
            if let Some(hard_state) = append.hard_state {
                shard.hard_state = hard_state;
            }
        }
        Change::Compact(shard, to) => {
            if let Some(stored) = shards.get_mut(shard) {
                let count = stored.offset(to.index + 1).min(stored.entries.len());
                stored.entries.drain(..count);
                stored.base = *to;
            }
        }
    }
}

fn found_from(shards: &Shards, shard: ShardId, low: u64) -> impl Iterator<Item = &Entry> {
    shards
        .get(&shard)
        .into_iter()
        .flat_map(move |stored| stored.entries.iter().skip(stored.offset(low)))
}

impl LogStore for MemoryLog {
    fn append(&mut self, batch: &[Append]) -> Result<(), LogError> {
        let mut ends = BTreeMap::new();
        for append in batch {
            let stored = || {
                self.written
                    .get(&append.shard)
                    .map_or((0, 0), |shard| (shard.base.index, shard.last_index()))
            };
            let end = check(
                append,
                ends.get(&append.shard).copied().unwrap_or_else(stored),
            )?;
            ends.insert(append.shard, end);
        }
        if let Some(free_bytes) = self.free_bytes {
            let needed_bytes = batch.iter().map(Append::data_bytes).sum();
            if free_bytes < needed_bytes {
                return Err(LogError::DiskFull {
                    free_bytes,
                    needed_bytes,
                });
            }
        }
        let mut sync = false;
        for append in batch.iter().filter(|append| !append.is_empty()) {
            sync |= append.must_sync || !append.entries.is_empty() || append.install.is_some();
            self.change(Change::Append(append.clone()));
        }
        if sync {
            for change in std::mem::take(&mut self.unsynced) {
                apply(&mut self.synced, &change);
            }
            self.syncs_count += 1;
        }
        Ok(())
    }

    fn shards(&self) -> Vec<ShardId> {
        self.written.keys().copied().collect()
    }

    fn shard(&self, shard: ShardId) -> Result<ShardLog, LogError> {
        let empty = Shard::default();
        let found = self.written.get(&shard).unwrap_or(&empty);
        Ok(ShardLog {
            shard,
            hard_state: found.hard_state,
            base: found.base,
            last_index: found.last_index(),
        })
    }

    fn entries(
        &self,
        shard: ShardId,
        low: u64,
        high: u64,
        max_bytes: u64,
    ) -> Result<Vec<Entry>, LogError> {
        let log = self.shard(shard)?;
        if low >= high {
            return Ok(Vec::new());
        }
        log.expect_stored(low)?;
        log.expect_stored(high - 1)?;
        let mut bytes = 0;
        let mut found = Vec::new();
        let count = usize::try_from(high - low).unwrap_or(usize::MAX);
        for entry in found_from(&self.written, shard, low).take(count) {
            bytes += entry.data.len() as u64;
            if !found.is_empty() && bytes > max_bytes {
                break;
            }
            found.push(entry.clone());
        }
        Ok(found)
    }

    fn compact(&mut self, shard: ShardId, to: LogPosition) -> Result<(), LogError> {
        let log = self.shard(shard)?;
        if to.index <= log.base.index {
            return Ok(());
        }
        log.expect_stored(to.index)?;
        // A cut is never promised to anyone, so it needs no sync: after a crash the log is merely longer.
        self.change(Change::Compact(shard, to));
        Ok(())
    }

    fn purge(&mut self) -> Result<Vec<ShardId>, LogError> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance;

    #[test]
    fn passes_the_suite() {
        conformance::check(&mut MemoryLog::new(), &mut |log| log.clone());
    }

    #[test]
    fn a_crash_forgets_what_was_not_synced() {
        let mut log = MemoryLog::new();
        let shard = ShardId::new(1);
        let commit = HardState {
            term: 1,
            vote: None,
            commit: 5,
        };
        let part = Append {
            shard,
            hard_state: Some(commit),
            ..Append::default()
        };
        log.append(&[part]).unwrap();
        assert_eq!(log.syncs_count(), 0);
        log.crash();
        assert_eq!(log.shard(shard).unwrap().hard_state, HardState::default());
    }

    #[test]
    fn a_full_disk_stores_nothing() {
        let mut log = MemoryLog::new();
        log.set_free_bytes(Some(1));
        let batch = [conformance::append(ShardId::new(0), 1, 1..=1, 100)];
        assert!(matches!(log.append(&batch), Err(LogError::DiskFull { .. })));
        assert_eq!(log.shards(), []);
        log.set_free_bytes(None);
        log.append(&batch).unwrap();
        assert_eq!(log.shard(ShardId::new(0)).unwrap().last_index, 1);
    }
}
