//! Our own framing of what the log engine stores: each record says whose it is and which, under its own checksum, so that
//! a record that was altered or put in another's place is noticed whatever the engine believes.

use bytes::{BufMut, Bytes};
use clearspan_replica::{Entry, EntryKind, HardState, LogPosition, MemberId, ShardId};

use crate::data_dir::NodeId;
use crate::file::Fields;

const ENTRY_MAGIC: [u8; 4] = *b"CSLE";
const STATE_MAGIC: [u8; 4] = *b"CSLS";
const VERSION: u16 = 1;

/// Bytes before an entry's data.
pub(crate) const ENTRY_HEADER_BYTES: usize = 52;
const INDEX_OFFSET_BYTES: usize = 32;
const CRC_OFFSET_BYTES: usize = 48;

/// One shard's state: the hard state, and where its log begins and ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredState {
    pub(crate) hard_state: HardState,
    pub(crate) base: LogPosition,
    // The last entry, or the base when there is none.
    pub(crate) last: LogPosition,
}

fn entry_checksum(header: &[u8], data: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(header), data)
}

/// `None` when the data is too long to say.
pub(crate) fn encode_entry(node: NodeId, shard: ShardId, entry: &Entry) -> Option<Vec<u8>> {
    let mut record = Vec::with_capacity(ENTRY_HEADER_BYTES + entry.data.len());
    record.put_slice(&ENTRY_MAGIC);
    record.put_u16_le(VERSION);
    record.put_u8(entry.kind.to_byte());
    record.put_u8(0);
    record.put_slice(&node.to_bytes());
    record.put_u16_le(shard.get());
    record.put_u16_le(0);
    record.put_u32_le(u32::try_from(entry.data.len()).ok()?);
    record.put_u64_le(entry.index);
    record.put_u64_le(entry.term);
    let checksum = entry_checksum(&record, &entry.data);
    record.put_u32_le(checksum);
    record.put_slice(&entry.data);
    Some(record)
}

/// The index a record claims, for the engine's own table; 0 when it claims none.
pub(crate) fn claimed_index(record: &[u8]) -> u64 {
    record
        .get(INDEX_OFFSET_BYTES..)
        .and_then(|rest| Fields(rest).u64())
        .unwrap_or(0)
}

pub(crate) fn decode_entry(
    node: NodeId,
    shard: ShardId,
    index: u64,
    record: Bytes,
) -> Result<Entry, &'static str> {
    let header = record
        .get(..ENTRY_HEADER_BYTES)
        .ok_or("it is shorter than a header")?;
    let mut fields = Fields(header);
    let short = "it is shorter than a header";
    if fields.array() != Some(ENTRY_MAGIC) {
        return Err("it is not an entry");
    }
    let version = fields.u16().ok_or(short)?;
    let kind = fields.u8().ok_or(short)?;
    let zero = fields.u8().ok_or(short)?;
    let found_node = fields.array().map(NodeId::from_bytes).ok_or(short)?;
    let found_shard = fields.u16().map(ShardId::new).ok_or(short)?;
    let more_zero = fields.u16().ok_or(short)?;
    let data_len = fields.u32().ok_or(short)?;
    let found_index = fields.u64().ok_or(short)?;
    let term = fields.u64().ok_or(short)?;
    let checksum = fields.u32().ok_or(short)?;
    let data = record.slice(ENTRY_HEADER_BYTES..);
    if entry_checksum(header.get(..CRC_OFFSET_BYTES).ok_or(short)?, &data) != checksum {
        return Err("its checksum differs");
    }
    if version != VERSION {
        return Err("its version is unknown");
    }
    if usize::try_from(data_len) != Ok(data.len()) {
        return Err("its length differs");
    }
    if found_node != node {
        return Err("it is another node's");
    }
    if found_shard != shard {
        return Err("it is another shard's");
    }
    if found_index != index {
        return Err("it is another entry");
    }
    if zero != 0 || more_zero != 0 {
        return Err("its reserved bytes are used");
    }
    let kind = EntryKind::from_byte(kind).ok_or("its kind is unknown")?;
    Ok(Entry {
        index,
        term,
        kind,
        data,
    })
}

pub(crate) fn encode_state(node: NodeId, shard: ShardId, state: &StoredState) -> Vec<u8> {
    let mut record = Vec::with_capacity(84);
    record.put_slice(&STATE_MAGIC);
    record.put_u16_le(VERSION);
    record.put_u16_le(shard.get());
    record.put_slice(&node.to_bytes());
    record.put_u64_le(state.hard_state.term);
    record.put_u64_le(state.hard_state.vote.map_or(0, MemberId::get));
    record.put_u64_le(state.hard_state.commit);
    record.put_u64_le(state.base.index);
    record.put_u64_le(state.base.term);
    record.put_u64_le(state.last.index);
    record.put_u64_le(state.last.term);
    let checksum = crc32c::crc32c(&record);
    record.put_u32_le(checksum);
    record
}

pub(crate) fn decode_state(
    node: NodeId,
    shard: ShardId,
    record: &[u8],
) -> Result<StoredState, &'static str> {
    let short = "its length differs";
    let (covered, checksum) = record
        .len()
        .checked_sub(4)
        .and_then(|at| record.split_at_checked(at))
        .ok_or(short)?;
    if Fields(checksum).u32() != Some(crc32c::crc32c(covered)) {
        return Err("its checksum differs");
    }
    let mut fields = Fields(covered);
    if fields.array() != Some(STATE_MAGIC) {
        return Err("it is not a shard's state");
    }
    if fields.u16() != Some(VERSION) {
        return Err("its version is unknown");
    }
    if fields.u16() != Some(shard.get()) {
        return Err("it is another shard's");
    }
    if fields.array() != Some(node.to_bytes()) {
        return Err("it is another node's");
    }
    let mut number = || fields.u64().ok_or(short);
    let (term, vote, commit) = (number()?, number()?, number()?);
    let mut position = || {
        Ok(LogPosition {
            index: number()?,
            term: number()?,
        })
    };
    let (base, last) = (position()?, position()?);
    if !fields.0.is_empty() {
        return Err(short);
    }
    let hard_state = HardState {
        term,
        vote: MemberId::new(vote),
        commit,
    };
    if last.index < base.index {
        return Err("it ends before it begins");
    }
    Ok(StoredState {
        hard_state,
        base,
        last,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId::from_bytes([9; 16]);
    const SHARD: ShardId = ShardId::new(5);

    fn entry() -> Entry {
        Entry {
            index: 77,
            term: 3,
            kind: EntryKind::ChangeV2,
            data: Bytes::from_static(b"payment"),
        }
    }

    fn state() -> StoredState {
        let hard_state = HardState {
            term: 4,
            vote: MemberId::new(8),
            commit: 70,
        };
        let base = LogPosition { term: 2, index: 50 };
        let last = LogPosition { term: 4, index: 72 };
        StoredState {
            hard_state,
            base,
            last,
        }
    }

    #[test]
    fn an_entry_is_itself_again() {
        let record = encode_entry(NODE, SHARD, &entry()).unwrap();
        assert_eq!(record.len(), ENTRY_HEADER_BYTES + 7);
        assert_eq!(claimed_index(&record), 77);
        assert_eq!(decode_entry(NODE, SHARD, 77, record.into()), Ok(entry()));
    }

    #[test]
    fn every_changed_byte_and_every_cut_of_an_entry_is_noticed() {
        let record = encode_entry(NODE, SHARD, &entry()).unwrap();
        for at in 0..record.len() {
            let mut bad = record.clone();
            bad[at] ^= 0x10;
            assert!(
                decode_entry(NODE, SHARD, 77, bad.into()).is_err(),
                "byte {at}"
            );
            assert!(
                decode_entry(NODE, SHARD, 77, record[..at].to_vec().into()).is_err(),
                "cut at {at}"
            );
        }
    }

    #[test]
    fn a_whole_entry_in_the_wrong_place_is_named() {
        let record = Bytes::from(encode_entry(NODE, SHARD, &entry()).unwrap());
        let other = NodeId::from_bytes([1; 16]);
        assert_eq!(
            decode_entry(other, SHARD, 77, record.clone()),
            Err("it is another node's")
        );
        assert_eq!(
            decode_entry(NODE, ShardId::new(6), 77, record.clone()),
            Err("it is another shard's")
        );
        assert_eq!(
            decode_entry(NODE, SHARD, 78, record),
            Err("it is another entry")
        );
    }

    #[test]
    fn every_changed_byte_and_every_cut_of_a_state_is_noticed() {
        let record = encode_state(NODE, SHARD, &state());
        assert_eq!(decode_state(NODE, SHARD, &record), Ok(state()));
        for at in 0..record.len() {
            let mut bad = record.clone();
            bad[at] ^= 0x10;
            assert!(decode_state(NODE, SHARD, &bad).is_err(), "byte {at}");
            assert!(
                decode_state(NODE, SHARD, &record[..at]).is_err(),
                "cut at {at}"
            );
        }
        assert!(decode_state(NODE, ShardId::new(6), &record).is_err());
    }
}
