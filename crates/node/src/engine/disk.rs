//! The ports to a node's disk: what the engine's parts ask of it, whatever keeps it. The log's port is
//! [`clearspan_replica::LogStore`].

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::PathBuf;

use bytes::Bytes;
use clearspan_replica::{LogPosition, LogStore, ShardId, SnapshotMark};
use clearspan_storage::{
    DataDirError, NodesFile, Package, PackageError, PackageStore, SnapshotError, SnapshotFile,
    Snapshots,
};

/// Packages by shard and number.
pub trait Packages: std::fmt::Debug + Send + Sync {
    /// Stores packages in one go. Putting one again is no fault.
    ///
    /// # Errors
    /// [`PackageError::DiskFull`] when nothing was written for lack of room; others are fatal.
    fn put(&self, batch: &[Package]) -> Result<(), PackageError>;

    /// Makes everything put before durable.
    ///
    /// # Errors
    /// Fatal ones.
    fn persist(&self) -> Result<(), PackageError>;

    /// One package, checked; `None` when there is none under this number.
    ///
    /// # Errors
    /// When it is damaged.
    fn get(&self, shard: ShardId, number: u64) -> Result<Option<Bytes>, PackageError>;

    /// The numbers of a shard's first and last stored package.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn span(&self, shard: ShardId) -> Result<Option<(u64, u64)>, PackageError>;

    /// Removes a shard's packages up to and including `number`; how many there were.
    ///
    /// # Errors
    /// Fatal ones.
    fn remove_through(&self, shard: ShardId, number: u64) -> Result<u64, PackageError>;
}

/// Snapshots by shard and position.
pub trait SnapshotStore: std::fmt::Debug + Send {
    /// Writes one and makes it durable, then drops all but the newest two of its shard.
    ///
    /// # Errors
    /// The older ones are untouched then.
    fn write(&self, shard: ShardId, mark: &SnapshotMark, body: &[u8]) -> Result<(), SnapshotError>;

    /// A shard's snapshots, newest first, each read through and checked.
    ///
    /// # Errors
    /// When they cannot be listed.
    fn list(&self, shard: ShardId) -> Result<Vec<SnapshotFile>, SnapshotError>;

    /// A snapshot's whole body, checked.
    ///
    /// # Errors
    /// When it is absent, damaged or cannot be read.
    fn body(&self, shard: ShardId, position: LogPosition) -> Result<Bytes, SnapshotError>;

    /// Keeps a piece of a snapshot that is being fetched; the first, at offset 0, takes the place of all kept before.
    /// Where pieces are not kept a fetch that was cut off by a restart begins anew.
    ///
    /// # Errors
    /// As the disk says; what was kept before still counts.
    fn keep_piece(
        &self,
        _shard: ShardId,
        _mark: &SnapshotMark,
        _offset_bytes: u64,
        _data: &[u8],
    ) -> io::Result<()> {
        Ok(())
    }

    /// What is kept of a snapshot's body, checked, from its beginning on without a gap.
    ///
    /// # Errors
    /// As the disk says.
    fn kept_pieces(&self, _shard: ShardId, _mark: &SnapshotMark) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    /// Drops what is kept.
    ///
    /// # Errors
    /// As the disk says.
    fn forget_pieces(&self, _shard: ShardId) -> io::Result<()> {
        Ok(())
    }
}

/// What was found out about replicas that differ; it outlives the process.
pub trait Verdicts: std::fmt::Debug + Send {
    /// Where it lies that this node's state differs from the majority's.
    fn diverged_file(&self) -> PathBuf;

    /// Where it lies that replicas of a shard differ without a majority.
    fn disputed_file(&self, shard: ShardId) -> PathBuf;

    /// Notes durably that this node's state differs from the majority's: it must not be served again.
    ///
    /// # Errors
    /// As the disk says.
    fn diverged(&self, why: &str) -> io::Result<()>;

    /// Notes durably that replicas of a shard differ and there is no majority.
    ///
    /// # Errors
    /// As the disk says.
    fn disputed(&self, shard: ShardId, why: &str) -> io::Result<()>;

    /// Why this node's state must not be served, if that was noted.
    ///
    /// # Errors
    /// As the disk says: what cannot be read may be such a note.
    fn read_diverged(&self) -> io::Result<Option<String>>;

    /// Shards, below `shards`, whose replicas differ, and how.
    ///
    /// # Errors
    /// As [`Self::read_diverged`].
    fn read_disputed(&self, shards: u16) -> io::Result<BTreeMap<ShardId, String>>;
}

impl Verdicts for clearspan_storage::Verdicts {
    fn diverged_file(&self) -> PathBuf {
        self.diverged_file()
    }

    fn disputed_file(&self, shard: ShardId) -> PathBuf {
        self.disputed_file(shard)
    }

    fn diverged(&self, why: &str) -> io::Result<()> {
        self.diverged(why)
    }

    fn disputed(&self, shard: ShardId, why: &str) -> io::Result<()> {
        self.disputed(shard, why)
    }

    fn read_diverged(&self) -> io::Result<Option<String>> {
        self.read_diverged()
    }

    fn read_disputed(&self, shards: u16) -> io::Result<BTreeMap<ShardId, String>> {
        self.read_disputed(shards)
    }
}

/// What a node knows of the cluster's nodes, whatever the bytes mean.
pub trait NodesStore: std::fmt::Debug + Send {
    /// What was kept last; `None` for nothing ever.
    ///
    /// # Errors
    /// When it is damaged or cannot be read.
    fn read(&self) -> Result<Option<Bytes>, DataDirError>;

    /// Replaces it: after a crash the old content is there or the new.
    ///
    /// # Errors
    /// Fatal ones.
    fn replace(&self, bytes: &[u8]) -> Result<(), DataDirError>;
}

/// All of a node's disk.
pub struct Disk {
    /// The log of all shards.
    pub log: Box<dyn LogStore + Send>,
    /// The package store.
    pub packages: Box<dyn Packages>,
    /// Snapshots.
    pub snapshots: Box<dyn SnapshotStore>,
    /// What was found out about replicas that differ.
    pub verdicts: Box<dyn Verdicts>,
    /// What it knows of the cluster's nodes.
    pub nodes: Box<dyn NodesStore>,
    /// Whose data it is.
    pub cluster: u128,
    /// Kept for as long as the log may be written: the directory's lock.
    pub lock: Box<dyn Send>,
}

impl NodesStore for NodesFile {
    fn read(&self) -> Result<Option<Bytes>, DataDirError> {
        self.read()
    }

    fn replace(&self, bytes: &[u8]) -> Result<(), DataDirError> {
        self.replace(bytes)
    }
}

impl Packages for PackageStore {
    fn put(&self, batch: &[Package]) -> Result<(), PackageError> {
        self.put(batch)
    }

    fn persist(&self) -> Result<(), PackageError> {
        self.persist()
    }

    fn get(&self, shard: ShardId, number: u64) -> Result<Option<Bytes>, PackageError> {
        self.get(shard, number)
    }

    fn span(&self, shard: ShardId) -> Result<Option<(u64, u64)>, PackageError> {
        self.span(shard)
    }

    fn remove_through(&self, shard: ShardId, number: u64) -> Result<u64, PackageError> {
        self.remove_through(shard, number)
    }
}

impl SnapshotStore for Snapshots {
    fn write(&self, shard: ShardId, mark: &SnapshotMark, body: &[u8]) -> Result<(), SnapshotError> {
        self.write(shard, mark, |out| out.write_all(body))
            .map(|_| ())
    }

    fn list(&self, shard: ShardId) -> Result<Vec<SnapshotFile>, SnapshotError> {
        self.list(shard)
    }

    fn keep_piece(
        &self,
        shard: ShardId,
        mark: &SnapshotMark,
        offset_bytes: u64,
        data: &[u8],
    ) -> io::Result<()> {
        self.keep_piece(shard, mark, offset_bytes, data)
    }

    fn kept_pieces(&self, shard: ShardId, mark: &SnapshotMark) -> io::Result<Vec<u8>> {
        self.kept_pieces(shard, mark)
    }

    fn forget_pieces(&self, shard: ShardId) -> io::Result<()> {
        self.forget_pieces(shard)
    }

    fn body(&self, shard: ShardId, position: LogPosition) -> Result<Bytes, SnapshotError> {
        let mut reader = self.read(shard, position)?;
        let mut body = Vec::new();
        reader
            .read_to_end(&mut body)
            .map_err(|source| SnapshotError::Io {
                step: "read",
                path: self.path(shard, position),
                source,
            })?;
        Ok(Bytes::from(body))
    }
}
