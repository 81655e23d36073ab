//! What the disk can do with the writes of a measured run: alone, and under the bare log engine.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::Path;

use bytes::Bytes;
use clearspan_ledger::entry::Command;
use clearspan_ledger::{ShardId, Timestamp};
use clearspan_node::engine::LogCounts;
use clearspan_replica::{Append, Entry, EntryKind, LogStore as _};
use clearspan_storage::{ClusterId, DataDir, Identity, Layout, Log, LogOptions, NodeId};

use super::{MeasureError, io, now};

/// Bytes written at once while a file is filled beforehand.
const FILL_BYTES: usize = 4 << 20;

/// Writes as many bytes in as many equal writes, each followed by fdatasync, one after the other into a file whose blocks
/// were written before. Megabytes per second.
pub(super) fn sequential(dir: &Path, log: LogCounts) -> Result<f64, MeasureError> {
    let chunk_len = usize::try_from(log.bytes / log.writes.max(1)).unwrap_or(FILL_BYTES);
    let path = dir.join("plain");
    let mut file = File::create(&path).map_err(io("create a plain file"))?;
    let fill = vec![0; FILL_BYTES];
    let mut left = usize::try_from(log.bytes).unwrap_or(usize::MAX);
    while left > 0 {
        let len = left.min(FILL_BYTES);
        file.write_all(&fill[..len])
            .map_err(io("fill a plain file"))?;
        left -= len;
    }
    file.sync_all().map_err(io("sync a plain file"))?;
    file.rewind().map_err(io("rewind a plain file"))?;
    let chunk: Vec<u8> = (0_u8..=255).cycle().take(chunk_len).collect();
    let mut written = 0_u64;
    let begun = now();
    while written < log.bytes {
        let len = chunk_len.min(usize::try_from(log.bytes - written).unwrap_or(chunk_len));
        file.write_all(&chunk[..len])
            .map_err(io("write a plain file"))?;
        file.sync_data().map_err(io("sync a plain file"))?;
        written += len as u64;
    }
    Ok(written as f64 / 1e6 / begun.elapsed().as_secs_f64())
}

/// Appends the same entries in writes of the same mean length to the node's log and nothing else. Megabytes per second.
pub(super) fn bare_log(
    dir: &Path,
    log: LogCounts,
    packages: &[(ShardId, Command)],
) -> Result<f64, MeasureError> {
    let identity = Identity {
        cluster: ClusterId::random().map_err(io("read random bytes"))?,
        node: NodeId::random().map_err(io("read random bytes"))?,
    };
    let data = DataDir::create(Layout::under(dir.join("data")), identity)?;
    let mut store = Log::open(&data, LogOptions::default())?;
    let entries: Vec<(ShardId, Bytes)> = packages
        .iter()
        .map(|(shard, command)| {
            (
                *shard,
                clearspan_codec::entry::encode(Timestamp::ZERO, command),
            )
        })
        .collect();
    let per_write = entries
        .len()
        .div_ceil(usize::try_from(log.writes.max(1)).unwrap_or(1));
    let shards = packages
        .iter()
        .map(|(shard, _)| shard.index() + 1)
        .max()
        .unwrap_or(0);
    let mut next = vec![1; shards];
    let mut written = 0_u64;
    let begun = now();
    for write in entries.chunks(per_write.max(1)) {
        let mut parts = vec![Append::default(); shards];
        for (shard, data) in write {
            let part = &mut parts[shard.index()];
            part.shard = clearspan_replica::ShardId::new(shard.get());
            part.must_sync = true;
            part.entries.push(Entry {
                index: next[shard.index()],
                term: 1,
                kind: EntryKind::Command,
                data: data.clone(),
            });
            next[shard.index()] += 1;
            written += data.len() as u64;
        }
        parts.retain(|part| !part.is_empty());
        store.append(&parts)?;
    }
    Ok(written as f64 / 1e6 / begun.elapsed().as_secs_f64())
}
