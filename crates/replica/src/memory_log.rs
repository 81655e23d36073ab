//! A log in memory with a crash: for tests and simulation. It passes the same suite as the real one.

use std::collections::BTreeMap;

use crate::entry::{Entry, HardState, LogPosition, ShardId};
use crate::log_store::{Append, LogError, LogStore, ShardLog};

#[derive(Clone, Debug, Default)]
struct Shard {
    hard_state: HardState,
    base: LogPosition,
    // Contiguous from base.index + 1.
    entries: Vec<Entry>,
}

impl Shard {
    fn last_index(&self) -> u64 {
        self.entries
            .last()
            .map_or(self.base.index, |entry| entry.index)
    }

    fn offset(&self, index: u64) -> usize {
        usize::try_from(index.saturating_sub(self.base.index + 1)).unwrap_or(usize::MAX)
    }
}

/// A [`LogStore`] in memory. What was written without a sync is lost by [`MemoryLog::crash`].
#[derive(Clone, Debug, Default)]
pub struct MemoryLog {
    written: BTreeMap<ShardId, Shard>,
    synced: BTreeMap<ShardId, Shard>,
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
}

fn check(found: Option<&Shard>, append: &Append) -> Result<(), LogError> {
    let last = append.install.map_or_else(
        || found.map_or(0, Shard::last_index),
        |position| position.index,
    );
    let base = append.install.map_or_else(
        || found.map_or(0, |shard| shard.base.index),
        |position| position.index,
    );
    let Some(first) = append.entries.first() else {
        return Ok(());
    };
    let refuse = |expected, found| {
        Err(LogError::NotContiguous {
            shard: append.shard,
            expected,
            found,
        })
    };
    if first.index <= base || first.index > last + 1 {
        return refuse(last + 1, first.index);
    }
    for (before, entry) in append.entries.iter().zip(append.entries.iter().skip(1)) {
        if entry.index != before.index + 1 {
            return refuse(before.index + 1, entry.index);
        }
    }
    Ok(())
}

impl LogStore for MemoryLog {
    fn append(&mut self, batch: &[Append]) -> Result<(), LogError> {
        for append in batch {
            check(self.written.get(&append.shard), append)?;
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
        for append in batch.iter().filter(|append| !append.is_empty()) {
            let shard = self.written.entry(append.shard).or_default();
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
        if batch
            .iter()
            .any(|append| append.must_sync && !append.is_empty())
        {
            self.synced = self.written.clone();
            self.syncs_count += 1;
        }
        Ok(())
    }

    fn shards(&self) -> Vec<ShardId> {
        self.written.keys().copied().collect()
    }

    fn shard(&self, shard: ShardId) -> Result<ShardLog, LogError> {
        let found = self.written.get(&shard).cloned().unwrap_or_default();
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
        if low < log.first_index() || high > log.last_index + 1 {
            let index = if low < log.first_index() {
                low
            } else {
                high - 1
            };
            return Err(LogError::OutOfRange {
                shard,
                index,
                first: log.first_index(),
                last: log.last_index,
            });
        }
        let mut bytes = 0;
        let mut found = Vec::new();
        let stored = self
            .written
            .get(&shard)
            .map_or(&[][..], |stored| &stored.entries[..]);
        for entry in stored
            .iter()
            .filter(|entry| (low..high).contains(&entry.index))
        {
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
        if to.index > log.last_index {
            let (first, last) = (log.first_index(), log.last_index);
            return Err(LogError::OutOfRange {
                shard,
                index: to.index,
                first,
                last,
            });
        }
        // A cut is never promised to anyone, so it needs no sync: after a crash the log is merely longer.
        if let Some(stored) = self.written.get_mut(&shard) {
            let count = stored.offset(to.index + 1).min(stored.entries.len());
            stored.entries.drain(..count);
            stored.base = to;
        }
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
