//! A Raft message's body. Entries follow the place just before them without a gap, so their indexes are not written.

use bytes::Bytes;
use clearspan_ledger::layout::{Layout, Sink, Source};
use clearspan_replica::{Entry, EntryKind, MessageKind, PEER_ENTRIES_MAX, PeerMessage};

use super::body::{put_mark, put_position, take_mark, take_member, take_position};
use crate::DecodeError;
use crate::bytes_io::{Reader, Writer};

/// What an entry takes besides its data: term, kind, length.
pub(super) const ENTRY_FIELDS_BYTES: usize = 8 + 1 + 4;

const REJECT: u8 = 1;
const SNAPSHOT: u8 = 2;

pub(super) fn put(message: &PeerMessage, writer: &mut Writer) {
    let reject = if message.reject { REJECT } else { 0 };
    let snapshot = if message.snapshot.is_some() {
        SNAPSHOT
    } else {
        0
    };
    writer.raw(&[message.kind.to_byte(), reject | snapshot]);
    message.to.get().put(writer);
    message.from.get().put(writer);
    message.term.put(writer);
    put_position(message.at, writer);
    put_position(message.commit, writer);
    message.request_snapshot.put(writer);
    message.reject_hint.put(writer);
    writer.raw(&message.priority.to_le_bytes());
    message.context.put(writer);
    if let Some(mark) = &message.snapshot {
        put_mark(mark, writer);
    }
    // The message was checked before: it has no more than 65,536 entries.
    u32::try_from(message.entries.len())
        .unwrap_or(u32::MAX)
        .put(writer);
    for entry in &message.entries {
        entry.term.put(writer);
        entry.kind.to_byte().put(writer);
        entry.data.put(writer);
    }
}

pub(super) fn take(reader: &mut Reader) -> Result<PeerMessage, DecodeError> {
    let [kind, flags] = reader.raw()?;
    let kind = MessageKind::from_byte(kind).ok_or_else(|| reader.invalid("no such message"))?;
    if flags & !(REJECT | SNAPSHOT) != 0 {
        return Err(reader.invalid("unknown flags"));
    }
    let to = take_member(reader)?;
    let from = take_member(reader)?;
    let term = u64::take(reader)?;
    let at = take_position(reader)?;
    let commit = take_position(reader)?;
    let request_snapshot = u64::take(reader)?;
    let reject_hint = u64::take(reader)?;
    let priority = i64::from_le_bytes(reader.raw()?);
    let context = Bytes::take(reader)?;
    let snapshot = if flags & SNAPSHOT == 0 {
        None
    } else {
        Some(take_mark(reader)?)
    };
    let count = u32::take(reader)?;
    let count = usize::try_from(count)
        .ok()
        .filter(|&count| count <= PEER_ENTRIES_MAX && count <= reader.left() / ENTRY_FIELDS_BYTES)
        .ok_or_else(|| reader.invalid("more entries than a message holds"))?;
    let mut entries = Vec::with_capacity(count);
    let mut index = at.index;
    for _ in 0..count {
        index = index
            .checked_add(1)
            .ok_or_else(|| reader.invalid("an entry past the last index"))?;
        let term = u64::take(reader)?;
        let kind = u8::take(reader)?;
        let kind =
            EntryKind::from_byte(kind).ok_or_else(|| reader.invalid("no such kind of entry"))?;
        entries.push(Entry {
            index,
            term,
            kind,
            data: Bytes::take(reader)?,
        });
    }
    Ok(PeerMessage {
        kind,
        to,
        from,
        term,
        at,
        entries,
        commit,
        snapshot,
        request_snapshot,
        reject: flags & REJECT != 0,
        reject_hint,
        context,
        priority,
    })
}
