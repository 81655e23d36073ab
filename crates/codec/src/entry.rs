//! A journal entry's data: log time and command. Index and term are the log's.

use bytes::Bytes;
use clearspan_ledger::Timestamp;
use clearspan_ledger::approvals::Act;
use clearspan_ledger::entry::Command;
use clearspan_ledger::layout::Layout;

use crate::DecodeError;
use crate::bytes_io::{Reader, Writer};

const KIND: u8 = b'E';
const VERSION: u8 = 1;

/// Writes what is proposed to a shard.
#[must_use]
pub fn encode(time: Timestamp, command: &Command) -> Bytes {
    let mut writer = Writer(Vec::with_capacity(capacity_of(command)));
    writer.0.extend([KIND, VERSION]);
    time.put(&mut writer);
    command.put(&mut writer);
    Bytes::from(writer.0)
}

fn capacity_of(command: &Command) -> usize {
    match command {
        // 128 bytes hold any record with its sparse parts; a package is written without growing.
        Command::Submit(submission) => {
            256 + submission.payments.len() * 128 + submission.heap.len()
        }
        _ => 256,
    }
}

/// An act as it stands in the entry that asks for it: what its digest is made from.
#[must_use]
pub fn act(act: &Act) -> Vec<u8> {
    let mut writer = Writer(Vec::with_capacity(256));
    act.put(&mut writer);
    writer.0
}

/// Reads the log time alone.
///
/// # Errors
/// [`DecodeError`] names the byte and what is wrong there.
pub fn time(bytes: Bytes) -> Result<Timestamp, DecodeError> {
    let mut reader = Reader::new(bytes);
    reader.header("a journal entry", KIND, VERSION)?;
    Layout::take(&mut reader)
}

/// Reads it back.
///
/// # Errors
/// [`DecodeError`] names the byte and what is wrong there.
pub fn decode(bytes: Bytes) -> Result<(Timestamp, Command), DecodeError> {
    let mut reader = Reader::new(bytes);
    reader.header("a journal entry", KIND, VERSION)?;
    let entry = Layout::take(&mut reader)?;
    reader.end()?;
    Ok(entry)
}
