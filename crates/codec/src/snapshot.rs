//! A shard's whole state at one log index, and its digest.

use bytes::Bytes;
use clearspan_ledger::Ledger;
use clearspan_ledger::approvals::Approvals;
use clearspan_ledger::layout::{Layout, Sink};
use clearspan_ledger::nodes::NodeDirectory;
use xxhash_rust::xxh3::Xxh3;

use crate::DecodeError;
use crate::bytes_io::{Reader, Writer};

const KIND: u8 = b'S';
/// Version 1 had no nodes, version 2 no approvals.
const VERSION: u8 = 3;

/// Writes a shard's state.
#[must_use]
pub fn encode(ledger: &Ledger) -> Vec<u8> {
    let mut writer = Writer(Vec::with_capacity(ledger.memory_bytes() / 2 + 4096));
    writer.0.extend([KIND, VERSION]);
    ledger.put(&mut writer);
    ledger.nodes().put(&mut writer);
    ledger.approvals().put(&mut writer);
    writer.0
}

/// Reads it back; indexes are built anew.
///
/// # Errors
/// [`DecodeError`] names the byte and what is wrong there.
pub fn decode(bytes: Bytes) -> Result<Ledger, DecodeError> {
    let mut reader = Reader::new(bytes);
    let version = reader.header("a snapshot", KIND, VERSION)?;
    let mut ledger = Ledger::take(&mut reader)?;
    if version > 1 {
        ledger.set_nodes(NodeDirectory::take(&mut reader)?);
    }
    if version > 2 {
        ledger.set_approvals(Approvals::take(&mut reader)?);
    }
    reader.end()?;
    Ok(ledger)
}

struct Hash(Xxh3);

impl Sink for Hash {
    fn raw(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}

/// The digest of a shard's whole state, as its snapshot would hold it: replicas compare it at cuts and at the day's end
/// (rule R30). The running digest of each entry is [`Ledger::digest`].
#[must_use]
pub fn state_digest(ledger: &Ledger) -> u128 {
    let mut hash = Hash(Xxh3::new());
    ledger.put(&mut hash);
    ledger.nodes().put(&mut hash);
    ledger.approvals().put(&mut hash);
    hash.0.digest128()
}
