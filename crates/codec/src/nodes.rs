//! What a node knows of its cluster's nodes, as it keeps it between runs: the directory and the newest lives.

use std::collections::BTreeMap;

use bytes::Bytes;
use clearspan_ledger::layout::Layout as _;
use clearspan_ledger::nodes::NodeDirectory;
use clearspan_replica::MemberId;

use crate::DecodeError;
use crate::bytes_io::{Reader, Writer};
use crate::frame::{put_lives, take_lives};

/// Writes it.
#[must_use]
pub fn encode(directory: &NodeDirectory, lives: &BTreeMap<MemberId, u64>) -> Vec<u8> {
    let mut writer = Writer(Vec::new());
    directory.put(&mut writer);
    put_lives(lives.iter().map(|(&of, &life)| (of, life)), &mut writer);
    writer.0
}

/// Reads it back.
///
/// # Errors
/// [`DecodeError`] names the byte and what is wrong there.
pub fn decode(bytes: Bytes) -> Result<(NodeDirectory, BTreeMap<MemberId, u64>), DecodeError> {
    let mut reader = Reader::new(bytes);
    let directory = NodeDirectory::take(&mut reader)?;
    let lives = take_lives(&mut reader)?;
    reader.end()?;
    Ok((directory, lives.into_iter().collect()))
}
