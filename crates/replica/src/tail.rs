//! The part of a shard's log that Raft may still read, in memory: everything after the last cut.
//!
//! The Raft engine's own memory storage clones its whole tail for every read and is not made for service; this one
//! clones at most what was asked for, and entries are cheap to clone because their data is shared.

use std::collections::VecDeque;

use bytes::Bytes;
use raft::eraftpb::{self, ConfState, HardState};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

use crate::entry::LogPosition;
use crate::event::SnapshotMark;
use crate::message::snapshot_to_engine;

/// Bytes of an entry that are not data: tags, lengths, term and index, rounded up.
const ENTRY_OVERHEAD_BYTES: u64 = 32;

#[derive(Debug)]
pub(crate) struct Tail {
    hard_state: HardState,
    // The group as of the last applied entry at start; the engine asks once.
    conf_state: ConfState,
    // The entry just before the first one held.
    base: LogPosition,
    // Contiguous from base.index + 1.
    entries: VecDeque<eraftpb::Entry>,
    // The newest durable snapshot: offered to peers whose next entry is cut. Never behind the base.
    snapshot: Option<SnapshotMark>,
}

impl Tail {
    pub(crate) fn new(
        hard_state: HardState,
        conf_state: ConfState,
        base: LogPosition,
        entries: VecDeque<eraftpb::Entry>,
        snapshot: Option<SnapshotMark>,
    ) -> Self {
        Self {
            hard_state,
            conf_state,
            base,
            entries,
            snapshot,
        }
    }

    pub(crate) const fn base(&self) -> LogPosition {
        self.base
    }

    pub(crate) fn last(&self) -> LogPosition {
        self.entries.back().map_or(self.base, |entry| LogPosition {
            term: entry.term,
            index: entry.index,
        })
    }

    fn offset(&self, index: u64) -> Option<usize> {
        usize::try_from(index.checked_sub(self.base.index + 1)?).ok()
    }

    /// Entries held after an index.
    pub(crate) fn after(&self, index: u64) -> impl Iterator<Item = &eraftpb::Entry> + Clone {
        self.entries
            .range(self.offset(index + 1).unwrap_or(0).min(self.entries.len())..)
    }

    /// Takes entries from a Ready, replacing everything from the first one's index on.
    pub(crate) fn append(&mut self, entries: &[eraftpb::Entry]) {
        let Some(first) = entries.first() else { return };
        let keep = self
            .offset(first.index)
            .expect("Raft never replaces what is cut");
        assert!(
            keep <= self.entries.len(),
            "Raft leaves no gap: {} after {}",
            first.index,
            self.last().index
        );
        self.entries.truncate(keep);
        self.entries.extend(entries.iter().cloned());
    }

    /// Replaces the whole log by a snapshot.
    pub(crate) fn install(&mut self, mark: SnapshotMark) {
        self.base = mark.position;
        self.entries.clear();
        self.snapshot = Some(mark);
    }

    pub(crate) fn set_hard_state(&mut self, hard_state: HardState) {
        self.hard_state = hard_state;
    }

    pub(crate) const fn snapshot_mark(&self) -> Option<&SnapshotMark> {
        self.snapshot.as_ref()
    }

    /// Remembers a newer durable snapshot.
    pub(crate) fn set_snapshot(&mut self, mark: SnapshotMark) {
        if self
            .snapshot
            .as_ref()
            .is_none_or(|held| held.position.index < mark.position.index)
        {
            self.snapshot = Some(mark);
        }
    }

    /// Drops entries up to and including `index`; the new base, or `None` when there was nothing to drop.
    pub(crate) fn compact(&mut self, index: u64) -> Option<LogPosition> {
        let offset = self.offset(index)?;
        let entry = self.entries.get(offset)?;
        self.base = LogPosition {
            term: entry.term,
            index,
        };
        self.entries.drain(..=offset);
        Some(self.base)
    }
}

impl Storage for Tail {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(RaftState::new(
            self.hard_state.clone(),
            self.conf_state.clone(),
        ))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> raft::Result<Vec<eraftpb::Entry>> {
        let offset = self.offset(low).ok_or(StorageError::Compacted)?;
        if high > self.last().index + 1 {
            return Err(StorageError::Unavailable.into());
        }
        let count = usize::try_from(high.saturating_sub(low)).unwrap_or(usize::MAX);
        let max_bytes = max_size.into().unwrap_or(u64::MAX);
        let mut bytes = 0_u64;
        let mut found = Vec::new();
        for entry in self
            .entries
            .range(offset.min(self.entries.len())..)
            .take(count)
        {
            bytes = bytes.saturating_add(entry.data.len() as u64 + ENTRY_OVERHEAD_BYTES);
            if !found.is_empty() && bytes > max_bytes {
                break;
            }
            found.push(entry.clone());
        }
        Ok(found)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        if index == self.base.index {
            return Ok(self.base.term);
        }
        let offset = self.offset(index).ok_or(StorageError::Compacted)?;
        self.entries
            .get(offset)
            .map(|entry| entry.term)
            .ok_or_else(|| StorageError::Unavailable.into())
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.base.index + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last().index)
    }

    fn snapshot(&self, request_index: u64, _to: u64) -> raft::Result<eraftpb::Snapshot> {
        match &self.snapshot {
            Some(mark) if mark.position.index >= request_index.max(self.base.index) => {
                Ok(eraftpb::Snapshot {
                    data: Bytes::new(),
                    ..snapshot_to_engine(mark)
                })
            }
            _ => Err(StorageError::SnapshotTemporarilyUnavailable.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: u64, term: u64) -> eraftpb::Entry {
        eraftpb::Entry {
            index,
            term,
            data: Bytes::from(vec![1; 100]),
            ..Default::default()
        }
    }

    fn tail(last: u64) -> Tail {
        let entries = (1..=last).map(|index| entry(index, 1)).collect();
        Tail::new(
            HardState::default(),
            ConfState::default(),
            LogPosition::default(),
            entries,
            None,
        )
    }

    fn indexes(tail: &Tail, low: u64, high: u64, max: u64) -> Vec<u64> {
        let found = tail
            .entries(low, high, max, GetEntriesContext::empty(false))
            .unwrap();
        found.iter().map(|entry| entry.index).collect()
    }

    #[test]
    fn a_read_stops_at_its_size_but_gives_one() {
        let tail = tail(5);
        assert_eq!(indexes(&tail, 2, 5, u64::MAX), [2, 3, 4]);
        assert_eq!(indexes(&tail, 2, 5, 270), [2, 3]);
        assert_eq!(indexes(&tail, 2, 5, 0), [2]);
        assert!(
            tail.entries(2, 7, None, GetEntriesContext::empty(false))
                .is_err()
        );
    }

    #[test]
    fn an_empty_tail_answers() {
        let tail = tail(0);
        assert_eq!(
            (
                tail.first_index().unwrap(),
                tail.last_index().unwrap(),
                tail.term(0).unwrap()
            ),
            (1, 0, 0)
        );
        assert!(tail.term(1).is_err());
        assert!(tail.snapshot(0, 1).is_err());
    }

    #[test]
    fn a_new_leader_replaces_the_end() {
        let mut tail = tail(5);
        tail.append(&[entry(3, 2), entry(4, 2)]);
        assert_eq!(tail.last(), LogPosition { term: 2, index: 4 });
        assert_eq!((tail.term(2).unwrap(), tail.term(3).unwrap()), (1, 2));
    }

    #[test]
    fn what_is_cut_keeps_its_last_term() {
        let mut tail = tail(5);
        assert_eq!(tail.compact(3), Some(LogPosition { term: 1, index: 3 }));
        assert_eq!(tail.compact(3), None);
        assert_eq!(tail.compact(9), None);
        assert_eq!(tail.term(3).unwrap(), 1);
        assert!(tail.term(2).is_err());
        assert!(
            tail.entries(3, 4, None, GetEntriesContext::empty(false))
                .is_err()
        );
        assert_eq!(indexes(&tail, 4, 6, u64::MAX), [4, 5]);
    }

    #[test]
    fn a_snapshot_is_offered_only_when_it_reaches_far_enough() {
        let mut tail = tail(5);
        let mark = SnapshotMark {
            position: LogPosition { term: 1, index: 4 },
            ..SnapshotMark::default()
        };
        tail.set_snapshot(mark);
        tail.compact(3);
        assert_eq!(tail.snapshot(0, 1).unwrap().get_metadata().index, 4);
        assert!(tail.snapshot(5, 1).is_err());
    }
}
