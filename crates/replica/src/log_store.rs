//! The port to the log that all shards of a node share.

use std::error::Error;

use crate::entry::{Entry, HardState, LogPosition, ShardId};

/// One shard's part of a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Append {
    /// Whose log.
    pub shard: ShardId,
    /// A snapshot was installed: the whole log is replaced by this position, before `entries` go in.
    pub install: Option<LogPosition>,
    /// Entries in rising order without gaps. The first may lie at or below the last stored index; then everything from
    /// it on is replaced.
    pub entries: Vec<Entry>,
    /// The hard state, when it changed.
    pub hard_state: Option<HardState>,
    /// Whether anything in here was or will be promised. False for a mere commit index, which may be lost.
    pub must_sync: bool,
}

impl Append {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.install.is_none() && self.entries.is_empty() && self.hard_state.is_none()
    }

    /// Bytes of the entries' data.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.entries
            .iter()
            .map(|entry| entry.data.len() as u64)
            .sum()
    }
}

/// One shard's log as found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardLog {
    /// Whose.
    pub shard: ShardId,
    /// The newest stored hard state.
    pub hard_state: HardState,
    /// The entry before the first one stored: the log was cut up to here, or starts after a snapshot. Zero when nothing
    /// was ever cut.
    pub base: LogPosition,
    /// Index of the last stored entry; the base's index when there is none.
    pub last_index: u64,
}

impl ShardLog {
    /// Index of the first entry that can be stored: one after the base.
    #[must_use]
    pub const fn first_index(&self) -> u64 {
        self.base.index + 1
    }

    /// Says no for an entry that is not stored.
    ///
    /// # Errors
    /// [`LogError::OutOfRange`].
    pub fn expect_stored(&self, index: u64) -> Result<(), LogError> {
        let (first, last) = (self.first_index(), self.last_index);
        if (first..=last).contains(&index) {
            Ok(())
        } else {
            Err(LogError::OutOfRange {
                shard: self.shard,
                index,
                first,
                last,
            })
        }
    }
}

/// Why the log refused. After a fatal one the process stops: see [`LogError::is_fatal`].
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The volume is nearly full: nothing was written. The same batch may be offered again once space returns.
    #[error("the log's volume has {free_bytes} bytes free, {needed_bytes} are needed")]
    DiskFull {
        /// Free now.
        free_bytes: u64,
        /// The reserve plus this write.
        needed_bytes: u64,
    },
    /// The caller offered entries that do not continue the stored ones. Nothing was written.
    #[error("shard {shard}: entry {found} offered where {expected} was due")]
    NotContiguous {
        /// Whose log.
        shard: ShardId,
        /// Highest index that could have followed.
        expected: u64,
        /// What was offered.
        found: u64,
    },
    /// The index is not stored: cut off, or past the end.
    #[error("shard {shard}: entry {index} is not in the log, which holds {first}..={last}")]
    OutOfRange {
        /// Whose log.
        shard: ShardId,
        /// What was asked.
        index: u64,
        /// First stored index.
        first: u64,
        /// Last stored index.
        last: u64,
    },
    /// A stored record is damaged, misplaced, or another node's. It is never served or skipped.
    #[error("shard {shard}: entry {index} in {place} is damaged: {reason}")]
    Corrupt {
        /// Whose log.
        shard: ShardId,
        /// Which entry; 0 for the shard's own state.
        index: u64,
        /// File or directory, as exactly as known.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A log file cannot be read back, so which shard's records are damaged is not known. Nothing was changed on disk.
    #[error("log in {place} cannot be read back: {reason}")]
    Unreadable {
        /// File or directory, as exactly as known.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The log ends before what was once synced: acknowledged entries are gone. A single voter must stop and say so; a
    /// member of a group comes back as a learner. Nothing was changed on disk.
    #[error(
        "shard {shard}: the log was synced up to entry {synced} and now ends at {found}: acknowledged entries are lost"
    )]
    TailLost {
        /// Whose log.
        shard: ShardId,
        /// Last entry known to have been synced.
        synced: u64,
        /// Last entry found.
        found: u64,
    },
    /// The shard's newest term or its vote is gone: it might vote twice. As with [`LogError::TailLost`], it must not vote
    /// as the member it was. Nothing was changed on disk.
    #[error(
        "shard {shard}: term {synced_term} and its vote were synced, and the log now knows term {found_term}"
    )]
    VoteLost {
        /// Whose log.
        shard: ShardId,
        /// Newest term known to have been synced.
        synced_term: u64,
        /// Newest term found.
        found_term: u64,
    },
    /// A write or fsync failed. What reached the disk is unknown, and a second fsync may lie; so stop, do not retry.
    #[error("{step}")]
    Fatal {
        /// The step that failed.
        step: String,
        /// Its cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// An earlier call failed fatally; this log takes nothing more.
    #[error("the log stopped after an earlier failure")]
    Stopped,
}

impl LogError {
    /// Whether the process must stop: what is on disk no longer follows from what was asked of it.
    #[must_use]
    pub const fn is_fatal(&self) -> bool {
        matches!(self, Self::Fatal { .. } | Self::Stopped)
    }
}

/// A durable log shared by all shards of one node. One thread owns it.
pub trait LogStore {
    /// Writes all of `batch` in one go and, when any part has `must_sync`, makes it durable with one fsync before it
    /// returns. Either all of it is stored or none. The caller may offer the same batch again after
    /// [`LogError::DiskFull`]; after a fatal error it must stop.
    fn append(&mut self, batch: &[Append]) -> Result<(), LogError>;

    /// The shards with anything stored, in order.
    fn shards(&self) -> Vec<ShardId>;

    /// One shard's log as stored; an empty one for a shard never seen.
    fn shard(&self, shard: ShardId) -> Result<ShardLog, LogError>;

    /// Entries from `low` up to but without `high`, in order, each checked. Stops after `max_bytes` of data, but gives at
    /// least one entry when the range is not empty.
    fn entries(
        &self,
        shard: ShardId,
        low: u64,
        high: u64,
        max_bytes: u64,
    ) -> Result<Vec<Entry>, LogError>;

    /// Cuts a shard's log up to and including `to`, which must be stored or be the base. Cutting again is no fault.
    fn compact(&mut self, shard: ShardId, to: LogPosition) -> Result<(), LogError>;

    /// Gives the space of cut entries back; to be called now and then. Returns the shards whose old entries hold back
    /// the most space and should be cut first.
    fn purge(&mut self) -> Result<Vec<ShardId>, LogError>;
}
