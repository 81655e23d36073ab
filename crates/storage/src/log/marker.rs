//! How far each shard's log is known to be synced, kept apart from the log: so a log that lost its end is noticed even
//! though what is left of it is in perfect order.
//!
//! The file has two slots. One is durable and left alone while the other is written, until that one is synced and they
//! change places; so whatever a power cut tears, one is whole. A slot is written after the log's fsync and without one of
//! its own: after a crash of the process it is exact, after a power cut it may be older, by at most [`UNSYNCED_MAX`]
//! writes. It is never ahead of the log: before the log may become shorter, the mark is lowered and synced.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::BufMut;
use clearspan_replica::{LogPosition, MemberId, ShardId};

use crate::data_dir::NodeId;
use crate::file::{self, Fields};

const MAGIC: [u8; 4] = *b"CSLM";
const VERSION: u16 = 1;
const HEADER_BYTES: usize = 32;
const SHARD_BYTES: usize = 36;
/// Room for every shard a node can hold.
const SHARDS_MAX: usize = 1800;
const SLOT_BYTES: usize = 64 * 1024;
const _: () = assert!(HEADER_BYTES + SHARDS_MAX * SHARD_BYTES + 4 <= SLOT_BYTES);
/// Writes between two fsyncs of the marker: bounds what a power cut can hide at under two percent of the log's fsyncs.
const UNSYNCED_MAX: u32 = 64;

/// What one shard's log was synced up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The last entry. Term 0 when only the index is known.
    pub(crate) last: LogPosition,
    /// The newest term seen, and the vote in it: a second copy, because a vote that is forgotten can be cast twice.
    pub(crate) term: u64,
    pub(crate) vote: Option<MemberId>,
}

/// By shard.
pub(crate) type Marks = BTreeMap<ShardId, Mark>;

#[derive(Debug)]
pub(crate) struct Marker {
    path: PathBuf,
    file: File,
    node: NodeId,
    sequence: u64,
    marks: Marks,
    // The slot to write; the other is durable.
    slot: u64,
    unsynced_count: u32,
}

/// What is wrong with a marker file.
#[derive(Debug)]
pub(crate) enum MarkerError {
    Io {
        step: &'static str,
        source: io::Error,
    },
    Damaged,
}

impl Marker {
    pub(crate) fn create(path: &Path, node: NodeId) -> Result<Self, MarkerError> {
        let mut bytes = encode(node, 0, &Marks::new());
        // All its blocks are written now: later writes neither grow the file nor find the volume full.
        bytes.resize(2 * SLOT_BYTES, 0);
        file::replace(path, &bytes).map_err(|source| MarkerError::Io {
            step: "create",
            source,
        })?;
        Self::open(path, node)
    }

    pub(crate) fn open(path: &Path, node: NodeId) -> Result<Self, MarkerError> {
        let io = |step| move |source| MarkerError::Io { step, source };
        let file = File::options()
            .read(true)
            .write(true)
            .open(path)
            .map_err(io("open"))?;
        let mut best: Option<(u64, u64, Marks)> = None;
        for slot in 0..2 {
            let mut bytes = vec![0; SLOT_BYTES];
            let length =
                read_up_to(&file, &mut bytes, slot * SLOT_BYTES as u64).map_err(io("read"))?;
            let found = bytes.get(..length).and_then(|bytes| decode(node, bytes));
            if let Some((sequence, marks)) = found
                && best.as_ref().is_none_or(|(newest, ..)| *newest < sequence)
            {
                best = Some((sequence, slot, marks));
            }
        }
        let (sequence, newest, marks) = best.ok_or(MarkerError::Damaged)?;
        // It may have been written by a process that died before it could sync it.
        file.sync_data().map_err(io("sync"))?;
        let path = path.to_path_buf();
        Ok(Self {
            path,
            file,
            node,
            sequence,
            marks,
            slot: 1 - newest,
            unsynced_count: 0,
        })
    }

    pub(crate) const fn marks(&self) -> &Marks {
        &self.marks
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether another shard still fits.
    pub(crate) fn has_room_for(&self, shard: ShardId) -> bool {
        self.marks.contains_key(&shard) || self.marks.len() < SHARDS_MAX
    }

    /// Raises marks after the log was synced that far.
    pub(crate) fn raise(
        &mut self,
        marks: impl IntoIterator<Item = (ShardId, Mark)>,
    ) -> io::Result<()> {
        self.marks.extend(marks);
        self.write()?;
        if self.unsynced_count >= UNSYNCED_MAX {
            self.sync()?;
        }
        Ok(())
    }

    /// Lowers marks, durably, before the log gets shorter. The term is forgotten with the index.
    pub(crate) fn lower(&mut self, lowered: &[(ShardId, u64)]) -> io::Result<()> {
        if lowered.is_empty() {
            return Ok(());
        }
        for &(shard, index) in lowered {
            self.marks.entry(shard).or_default().last = LogPosition { term: 0, index };
        }
        self.write()?;
        self.sync()
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if self.unsynced_count > 0 {
            self.file.sync_data()?;
            self.unsynced_count = 0;
            self.slot = 1 - self.slot;
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        self.sequence += 1;
        self.unsynced_count += 1;
        let bytes = encode(self.node, self.sequence, &self.marks);
        self.file
            .write_all_at(&bytes, self.slot * SLOT_BYTES as u64)
    }
}

fn read_up_to(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut length = 0;
    while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

fn encode(node: NodeId, sequence: u64, marks: &Marks) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + marks.len() * SHARD_BYTES + 4);
    bytes.put_slice(&MAGIC);
    bytes.put_u16_le(VERSION);
    bytes.put_u16_le(
        u16::try_from(marks.len()).expect("has_room_for keeps the count below its maximum"),
    );
    bytes.put_u64_le(sequence);
    bytes.put_slice(&node.to_bytes());
    for (shard, mark) in marks {
        bytes.put_u16_le(shard.get());
        bytes.put_u16_le(0);
        bytes.put_u64_le(mark.last.index);
        bytes.put_u64_le(mark.last.term);
        bytes.put_u64_le(mark.term);
        bytes.put_u64_le(mark.vote.map_or(0, MemberId::get));
    }
    let checksum = crc32c::crc32c(&bytes);
    bytes.put_u32_le(checksum);
    bytes
}

fn decode(node: NodeId, bytes: &[u8]) -> Option<(u64, Marks)> {
    let mut fields = Fields(bytes);
    let magic: [u8; 4] = fields.array()?;
    let version = fields.u16()?;
    let count = usize::from(fields.u16()?);
    let sequence = fields.u64()?;
    let owner: [u8; 16] = fields.array()?;
    let covered = bytes.get(..HEADER_BYTES.checked_add(count.checked_mul(SHARD_BYTES)?)?)?;
    let mut marks = Marks::new();
    for _ in 0..count {
        let (shard, _zero) = (fields.u16()?, fields.u16()?);
        let (index, last_term) = (fields.u64()?, fields.u64()?);
        let (term, vote) = (fields.u64()?, MemberId::new(fields.u64()?));
        let last = LogPosition {
            term: last_term,
            index,
        };
        marks.insert(ShardId::new(shard), Mark { last, term, vote });
    }
    let good = fields.u32()? == crc32c::crc32c(covered)
        && magic == MAGIC
        && version == VERSION
        && owner == node.to_bytes()
        && marks.len() == count;
    good.then_some((sequence, marks))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId::from_bytes([3; 16]);

    fn mark(shard: u16, index: u64) -> (ShardId, Mark) {
        let last = LogPosition { term: 1, index };
        (
            ShardId::new(shard),
            Mark {
                last,
                term: 2,
                vote: MemberId::new(5),
            },
        )
    }

    #[test]
    fn the_newest_slot_counts_and_a_torn_one_leaves_the_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("SYNCED");
        let mut marker = Marker::create(&path, NODE).unwrap();
        marker.raise([mark(0, 5), mark(9, 6)]).unwrap();
        marker.sync().unwrap();
        // Nothing new: a second sync must not turn to the slot that was just made durable.
        marker.sync().unwrap();
        marker.raise([mark(0, 6)]).unwrap();
        marker.raise([mark(0, 7)]).unwrap();
        let marks = marker.marks().clone();
        drop(marker);
        assert_eq!(Marker::open(&path, NODE).unwrap().marks(), &marks);
        // The file began with its first slot, the first mark went to the second, the newest to the first again.
        let good = std::fs::read(&path).unwrap();
        for at in 0..HEADER_BYTES + 2 * SHARD_BYTES + 4 {
            let mut torn = good.clone();
            torn[at] ^= 1;
            std::fs::write(&path, &torn).unwrap();
            let older = Marker::open(&path, NODE).unwrap();
            assert_eq!(older.marks()[&ShardId::new(0)].last.index, 5, "byte {at}");
        }
        let mut both = good;
        both[0] ^= 1;
        both[SLOT_BYTES] ^= 1;
        std::fs::write(&path, &both).unwrap();
        assert!(matches!(
            Marker::open(&path, NODE),
            Err(MarkerError::Damaged)
        ));
    }

    #[test]
    fn the_durable_slot_is_left_alone_until_the_other_is_synced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("SYNCED");
        let mut marker = Marker::create(&path, NODE).unwrap();
        let first = std::fs::read(&path).unwrap();
        for index in 1..u64::from(UNSYNCED_MAX) {
            marker.raise([mark(0, index)]).unwrap();
        }
        assert_eq!(
            std::fs::read(&path).unwrap()[..SLOT_BYTES],
            first[..SLOT_BYTES]
        );
        // The sync comes with the next write; after it the slots change places.
        marker.raise([mark(0, 100)]).unwrap();
        assert_eq!(
            std::fs::read(&path).unwrap()[..SLOT_BYTES],
            first[..SLOT_BYTES]
        );
        marker.raise([mark(0, 101)]).unwrap();
        assert_ne!(
            std::fs::read(&path).unwrap()[..SLOT_BYTES],
            first[..SLOT_BYTES]
        );
    }

    #[test]
    fn another_node_s_marker_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("SYNCED");
        Marker::create(&path, NODE).unwrap();
        assert!(matches!(
            Marker::open(&path, NodeId::from_bytes([4; 16])),
            Err(MarkerError::Damaged)
        ));
    }

    #[test]
    fn lowering_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("SYNCED");
        let mut marker = Marker::create(&path, NODE).unwrap();
        marker.raise([mark(1, 50)]).unwrap();
        marker.lower(&[(ShardId::new(1), 30)]).unwrap();
        let found = Marker::open(&path, NODE).unwrap();
        let lowered = Mark {
            last: LogPosition { term: 0, index: 30 },
            term: 2,
            vote: MemberId::new(5),
        };
        assert_eq!(found.marks()[&ShardId::new(1)], lowered);
    }
}
