//! The package store: append-once blobs by shard and package number, in an embedded store that keeps large values apart
//! from its keys.
//!
//! It is written behind the log and can be rebuilt from it, so a put is buffered; [`PackageStore::persist`] makes
//! everything before it durable, and only then may the log be cut past it.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use clearspan_replica::ShardId;
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode,
};

use crate::crash_point::crash_point;
use crate::data_dir::DataDir;
use crate::engine_call::engine_call;
use crate::file::{Fields, each_piece};
use crate::free_space::{FreeSpace, VolumeSpace};

mod check;

const VERSION: u8 = 1;
const KEY_BYTES: usize = 10;
const HEADER_BYTES: usize = 8;
/// Values below this stay beside their keys.
const SEPARATION_BYTES: u32 = 1024;
/// Keys removed per batch: one batch holds the store's write lock.
const REMOVE_BATCH_COUNT: usize = 1000;
/// Written in small pieces, because the log's sync waits behind whatever a disk is given at once: what was put is synced
/// after so many bytes, and what is in memory goes to files in pieces of so many.
const SYNC_BYTES: u64 = 4 << 20;
const FLUSH_BYTES: u64 = 16 << 20;

/// How the package store uses its volume and memory.
#[derive(Clone, Debug)]
pub struct PackageOptions {
    /// Block cache.
    pub cache_bytes: u64,
    /// Kept free on the volume: a put that would dip into it is refused.
    pub reserve_bytes: u64,
    /// Who is asked for free space.
    pub free_space: Arc<dyn FreeSpace>,
}

impl Default for PackageOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 64 << 20,
            reserve_bytes: 256 << 20,
            free_space: Arc::new(VolumeSpace),
        }
    }
}

/// A package on its way in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Whose it is.
    pub shard: ShardId,
    /// Its number in that shard.
    pub number: u64,
    /// Its bytes.
    pub data: Bytes,
}

/// Why the package store refused.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// The volume is nearly full: nothing was written. Offer it again once space returns.
    #[error("the package volume has {free_bytes} bytes free, {needed_bytes} are needed")]
    DiskFull {
        /// Free now.
        free_bytes: u64,
        /// The reserve plus this write.
        needed_bytes: u64,
    },
    /// A stored package is damaged or another's. It is never served.
    #[error("package {number} of shard {shard} in {place} is damaged: {reason}")]
    Corrupt {
        /// Whose it is.
        shard: ShardId,
        /// Its number.
        number: u64,
        /// The store's directory.
        place: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The store failed; what reached the disk is unknown. The process stops.
    #[error("{step} in {place}")]
    Fatal {
        /// The step that failed.
        step: &'static str,
        /// The store's directory.
        place: PathBuf,
        /// Its cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl PackageError {
    /// Whether the process must stop.
    #[must_use]
    pub const fn is_fatal(&self) -> bool {
        matches!(self, Self::Fatal { .. })
    }
}

/// The packages of all shards of a node. Shared by reference between threads.
pub struct PackageStore {
    database: Database,
    packages: Keyspace,
    place: PathBuf,
    options: PackageOptions,
    /// Put since the last [`Self::persist`].
    unsynced_bytes: AtomicU64,
}

impl fmt::Debug for PackageStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackageStore")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl PackageStore {
    /// Opens the directory's package store, or starts an empty one.
    pub fn open(data: &DataDir, options: PackageOptions) -> Result<Self, PackageError> {
        let place = data.layout().packages.clone();
        let fatal = |step| {
            let place = place.clone();
            move |source: fjall::Error| PackageError::Fatal {
                step,
                place,
                source: source.into(),
            }
        };
        clear_unfinished(&place).map_err(|source| PackageError::Fatal {
            step: "clear what an interrupted start left",
            place: place.clone(),
            source: source.into(),
        })?;
        check::check_files(&place)
            .map_err(|source| fatal("open the package store")(source.into()))?;
        let database = store_call(|| {
            Database::builder(&place)
                .cache_size(options.cache_bytes)
                // Packages are compact already, and trying again costs more than anything else here.
                .journal_compression(CompressionType::None)
                // Two cores suffice for flushing and compaction; they must not crowd the ledgers.
                .worker_threads(2)
                .open()
        })
        .map_err(fatal("open the package store"))?;
        let keyspace = || {
            let separation = KvSeparationOptions::default()
                .separation_threshold(SEPARATION_BYTES)
                // Packages are compact already.
                .compression(CompressionType::None);
            KeyspaceCreateOptions::default()
                .with_kv_separation(Some(separation))
                .max_memtable_size(FLUSH_BYTES)
        };
        let packages = store_call(|| database.keyspace("packages", keyspace))
            .map_err(fatal("open the package table"))?;
        Ok(Self {
            database,
            packages,
            place,
            options,
            unsynced_bytes: AtomicU64::new(0),
        })
    }

    /// Stores packages in one go. Putting one again replaces it by the same bytes, so a replay is no fault.
    pub fn put(&self, batch: &[Package]) -> Result<(), PackageError> {
        let bytes = batch
            .iter()
            .map(|package| package.data.len() as u64 + 64)
            .sum::<u64>();
        let free_bytes = self
            .options
            .free_space
            .free_bytes(&self.place)
            .map_err(|source| self.fatal("ask for free space", source))?;
        // The blob passes through the store's journal and again into its own file.
        let needed_bytes = self
            .options
            .reserve_bytes
            .saturating_add(bytes.saturating_mul(2));
        if free_bytes < needed_bytes {
            return Err(PackageError::DiskFull {
                free_bytes,
                needed_bytes,
            });
        }
        crash_point("before-package-put");
        let mut writes = self.database.batch();
        for package in batch {
            let key = key(package.shard, package.number);
            writes.insert(&self.packages, key, encode(&key, &package.data));
        }
        store_call(|| writes.commit()).map_err(|source| self.fatal("put packages", source))?;
        crash_point("after-package-put");
        if self.unsynced_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes >= SYNC_BYTES {
            self.persist()?;
        }
        Ok(())
    }

    /// One package, checked; `None` when there is none under this number.
    pub fn get(&self, shard: ShardId, number: u64) -> Result<Option<Bytes>, PackageError> {
        let key = key(shard, number);
        match store_call(|| self.packages.get(key)) {
            Ok(None) => Ok(None),
            Ok(Some(value)) => {
                let data = decode(&key, &value);
                data.map(|data| Some(Bytes::copy_from_slice(data)))
                    .map_err(|reason| self.corrupt(shard, number, reason))
            }
            Err(error) => Err(self.read_error(shard, number, error)),
        }
    }

    /// The numbers of a shard's first and last stored package.
    pub fn span(&self, shard: ShardId) -> Result<Option<(u64, u64)>, PackageError> {
        let ends = store_call(|| {
            let mut numbers = self.packages.prefix(shard.get().to_be_bytes());
            let key = |found: Option<fjall::Guard>| found.map(fjall::Guard::key).transpose();
            Ok((key(numbers.next())?, key(numbers.next_back())?))
        });
        let (first, last) = ends.map_err(|error| self.read_error(shard, 0, error))?;
        let number = |key: Option<fjall::UserKey>| {
            let number = key.map(|key| number_of(&key).ok_or("its key has another length"));
            number
                .transpose()
                .map_err(|reason| self.corrupt(shard, 0, reason))
        };
        let (first, last) = (number(first)?, number(last)?);
        Ok(first.map(|first| (first, last.unwrap_or(first))))
    }

    /// Removes a shard's packages up to and including `number`; how many there were. Retention calls it after a snapshot
    /// no longer refers to them.
    pub fn remove_through(&self, shard: ShardId, number: u64) -> Result<u64, PackageError> {
        let mut removed_count = 0;
        loop {
            let found = store_call(|| {
                let range = self.packages.range(key(shard, 0)..=key(shard, number));
                let keys = range.take(REMOVE_BATCH_COUNT).map(fjall::Guard::key);
                keys.collect::<fjall::Result<Vec<_>>>()
            });
            let keys = found.map_err(|error| self.read_error(shard, number, error))?;
            if keys.is_empty() {
                return Ok(removed_count);
            }
            removed_count += keys.len() as u64;
            let mut writes = self.database.batch();
            for key in keys {
                writes.remove(&self.packages, key);
            }
            store_call(|| writes.commit())
                .map_err(|source| self.fatal("remove packages", source))?;
        }
    }

    /// Makes everything put or removed before durable.
    pub fn persist(&self) -> Result<(), PackageError> {
        self.unsynced_bytes.store(0, Ordering::Relaxed);
        store_call(|| self.database.persist(PersistMode::SyncAll))
            .map_err(|source| self.fatal("sync the package store", source))
    }

    /// Moves what is buffered in memory into the store's files and waits for it, as before a copy of the directory.
    pub fn flush(&self) -> Result<(), PackageError> {
        store_call(|| self.packages.rotate_memtable_and_wait())
            .map_err(|source| self.fatal("flush the package store", source))
    }

    fn fatal(
        &self,
        step: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> PackageError {
        PackageError::Fatal {
            step,
            place: self.place.clone(),
            source: source.into(),
        }
    }

    fn corrupt(&self, shard: ShardId, number: u64, reason: impl Into<String>) -> PackageError {
        PackageError::Corrupt {
            shard,
            number,
            place: self.place.clone(),
            reason: reason.into(),
        }
    }

    /// A failed read is damage to this package, unless the whole store has failed.
    fn read_error(&self, shard: ShardId, number: u64, error: fjall::Error) -> PackageError {
        match error {
            fjall::Error::Poisoned => self.fatal("read a package", error),
            fjall::Error::Io(source) if source.kind() != io::ErrorKind::InvalidData => {
                self.fatal("read a package", source)
            }
            other => self.corrupt(shard, number, other.to_string()),
        }
    }
}

/// Runs one call of the engine. Damaged files can trip its own assertions: that is damage, as it says of other damage.
fn store_call<T>(call: impl FnOnce() -> fjall::Result<T>) -> fjall::Result<T> {
    engine_call(call)
        .unwrap_or_else(|panic| Err(io::Error::new(io::ErrorKind::InvalidData, panic).into()))
}

/// The engine opens no store whose setting up was cut off before its version was noted. Such a one never held anything:
/// tables come after the version, so it has none, and its journal is one file of zeros. Then, and only then, it is cleared.
fn clear_unfinished(place: &Path) -> io::Result<()> {
    let version = place.join("version");
    let version_length = match fs::metadata(&version) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    let tables = match fs::read_dir(place.join("keyspaces")) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    if version_length > 0 || tables {
        return Ok(());
    }
    let first_journal = place.join("0.jnl");
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        let is_journal = path.extension().is_some_and(|ending| ending == "jnl");
        if is_journal && (path != first_journal || !is_zero(&path)?) {
            return Ok(());
        }
    }
    for path in [first_journal, version] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn is_zero(path: &Path) -> io::Result<bool> {
    let mut zero = true;
    each_piece(path, |piece| {
        zero = piece.iter().all(|&byte| byte == 0);
        zero
    })?;
    Ok(zero)
}

/// Big-endian, so that the store's order is by shard, then by number: packages are written in key order.
fn key(shard: ShardId, number: u64) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    let (front, rest) = key.split_at_mut(2);
    front.copy_from_slice(&shard.get().to_be_bytes());
    rest.copy_from_slice(&number.to_be_bytes());
    key
}

fn number_of(key: &[u8]) -> Option<u64> {
    (key.len() == KEY_BYTES)
        .then(|| {
            key.last_chunk::<8>()
                .map(|bytes| u64::from_be_bytes(*bytes))
        })
        .flatten()
}

fn checksum(key: &[u8; KEY_BYTES], data: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(key), data)
}

fn encode(key: &[u8; KEY_BYTES], data: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(HEADER_BYTES + data.len());
    value.extend_from_slice(&[VERSION, 0, 0, 0]);
    value.extend_from_slice(&checksum(key, data).to_le_bytes());
    value.extend_from_slice(data);
    value
}

fn decode<'a>(key: &[u8; KEY_BYTES], value: &'a [u8]) -> Result<&'a [u8], &'static str> {
    let mut fields = Fields(value);
    let short = "it is shorter than a header";
    let head: [u8; 4] = fields.array().ok_or(short)?;
    let expected = fields.u32().ok_or(short)?;
    if head != [VERSION, 0, 0, 0] {
        return Err("its version is unknown");
    }
    if checksum(key, fields.0) != expected {
        return Err("its checksum differs");
    }
    Ok(fields.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_and_another_key_are_noticed() {
        let key_one = key(ShardId::new(1), 2);
        let value = encode(&key_one, b"package");
        assert_eq!(decode(&key_one, &value), Ok(&b"package"[..]));
        for at in 0..value.len() {
            let mut bad = value.clone();
            bad[at] ^= 4;
            assert!(decode(&key_one, &bad).is_err(), "byte {at}");
            assert!(decode(&key_one, &value[..at]).is_err(), "cut at {at}");
        }
        assert!(decode(&key(ShardId::new(1), 3), &value).is_err());
    }
}
