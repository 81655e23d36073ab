//! Two small files beside the identity: which life of the node this is, and what it knows of the cluster's nodes.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::data_dir::{DataDir, DataDirError, Layout, io_error};
use crate::file::{self, Fields};

const LIFE_MAGIC: [u8; 4] = *b"CSLF";
const NODES_MAGIC: [u8; 4] = *b"CSND";
const VERSION: u16 = 1;
/// Above this a file is none of these.
const FILE_MAX_BYTES: u64 = 16 << 20;

/// One run of a node's process on its data. The number of every life is above those of all before, so that others can
/// tell a directory that has forgotten a life from one that has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// This one's number.
    pub number: u64,
    /// The number of the life before; zero for none.
    pub previous: u64,
}

impl DataDir {
    /// Begins a life: durable before this returns. `now_ns` is its number unless the clock went back.
    ///
    /// # Errors
    /// When the file of the life before is damaged, or this one's cannot be written.
    pub fn begin_life(&self, now_ns: u64) -> Result<Life, DataDirError> {
        let path = self.layout().root.join("LIFE");
        let previous = match read(&path, LIFE_MAGIC)? {
            Some(bytes) => Fields(&bytes).u64().ok_or(DataDirError::Damaged {
                path: path.clone(),
                reason: "it is too short",
            })?,
            None => 0,
        };
        let number = now_ns.max(previous.saturating_add(1));
        replace(&path, LIFE_MAGIC, &number.to_le_bytes())?;
        Ok(Life { number, previous })
    }
}

/// What a node knows of the cluster's nodes, whatever the bytes mean.
#[derive(Clone, Debug)]
pub struct NodesFile(PathBuf);

impl NodesFile {
    /// That of a data directory.
    #[must_use]
    pub fn of(layout: &Layout) -> Self {
        Self(layout.root.join("NODES"))
    }

    /// Reads it; `None` when nothing was ever written.
    ///
    /// # Errors
    /// When it is damaged or cannot be read.
    pub fn read(&self) -> Result<Option<Bytes>, DataDirError> {
        read(&self.0, NODES_MAGIC)
    }

    /// Replaces it: after a crash the old content is there or the new.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn replace(&self, bytes: &[u8]) -> Result<(), DataDirError> {
        replace(&self.0, NODES_MAGIC, bytes)
    }
}

/// Magic, version, content, checksum over all before.
fn replace(path: &Path, magic: [u8; 4], content: &[u8]) -> Result<(), DataDirError> {
    let mut bytes = Vec::with_capacity(content.len() + 10);
    bytes.extend(magic);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(content);
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    file::replace(path, &bytes).map_err(io_error("write", path))
}

fn read(path: &Path, magic: [u8; 4]) -> Result<Option<Bytes>, DataDirError> {
    let damaged = |reason| DataDirError::Damaged {
        path: path.to_path_buf(),
        reason,
    };
    let bytes = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("read", path)(error)),
        Ok(found) if found.len() > FILE_MAX_BYTES => return Err(damaged("it is too long")),
        Ok(_) => fs::read(path).map_err(io_error("read", path))?,
    };
    let Some((covered, checksum)) = bytes.split_last_chunk::<4>() else {
        return Err(damaged("it is too short"));
    };
    if crc32c::crc32c(covered).to_le_bytes() != *checksum {
        return Err(damaged("its checksum differs"));
    }
    let mut fields = Fields(covered);
    if fields.array() != Some(magic) {
        return Err(damaged("it is something else's"));
    }
    match fields.u16() {
        Some(VERSION) => Ok(Some(Bytes::copy_from_slice(fields.0))),
        Some(found) => Err(DataDirError::Format {
            path: path.to_path_buf(),
            found: u32::from(found),
        }),
        None => Err(damaged("it is too short")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClusterId, Identity, NodeId};

    fn dir(at: &Path) -> DataDir {
        let identity = Identity {
            cluster: ClusterId::from_bytes([1; 16]),
            node: NodeId::from_bytes([2; 16]),
        };
        DataDir::create(Layout::under(at), identity).unwrap()
    }

    #[test]
    fn lives_rise_even_when_the_clock_goes_back() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = dir(temporary.path());
        let lives: Vec<Life> = [10, 5, 30].map(|now| dir.begin_life(now).unwrap()).into();
        let numbers: Vec<(u64, u64)> = lives
            .iter()
            .map(|life| (life.previous, life.number))
            .collect();
        assert_eq!(numbers, [(0, 10), (10, 11), (11, 30)]);
    }

    #[test]
    fn a_damaged_file_is_not_taken_for_an_absent_one() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = dir(temporary.path());
        let nodes = NodesFile::of(dir.layout());
        assert_eq!(nodes.read().unwrap(), None);
        nodes.replace(b"who").unwrap();
        assert_eq!(nodes.read().unwrap().as_deref(), Some(&b"who"[..]));
        let path = temporary.path().join("NODES");
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(&path, &changed).unwrap();
            assert!(nodes.read().is_err(), "byte {at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert!(nodes.read().is_err(), "cut at {at}");
        }
    }
}
