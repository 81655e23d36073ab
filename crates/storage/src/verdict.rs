//! What was found out about a replica's state and must outlive the process: that it went astray, or that replicas differ and
//! nobody knows which is right. People read these files, and remove them once they have decided.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clearspan_replica::ShardId;

use crate::data_dir::DataDir;
use crate::file;

const DIVERGED: &str = "DIVERGED";
const DISPUTED: &str = "DISPUTED-";

/// A data directory's verdicts.
#[derive(Clone, Debug)]
pub struct Verdicts {
    root: PathBuf,
}

impl DataDir {
    /// What was found out about the states in this directory.
    #[must_use]
    pub fn verdicts(&self) -> Verdicts {
        Verdicts {
            root: self.layout().root.clone(),
        }
    }
}

impl Verdicts {
    /// Where it lies that this node's state differs from the majority's.
    #[must_use]
    pub fn diverged_file(&self) -> PathBuf {
        self.root.join(DIVERGED)
    }

    /// Where it lies that replicas of a shard differ without a majority.
    #[must_use]
    pub fn disputed_file(&self, shard: ShardId) -> PathBuf {
        self.root.join(format!("{DISPUTED}{shard}"))
    }

    /// Notes durably that this node's state differs from the majority's: it must not be served again.
    ///
    /// # Errors
    /// As the system says.
    pub fn diverged(&self, why: &str) -> io::Result<()> {
        file::replace(&self.diverged_file(), format!("{why}\n").as_bytes())
    }

    /// Notes durably that replicas of a shard differ and there is no majority.
    ///
    /// # Errors
    /// As the system says.
    pub fn disputed(&self, shard: ShardId, why: &str) -> io::Result<()> {
        file::replace(&self.disputed_file(shard), format!("{why}\n").as_bytes())
    }

    /// Why this node's state must not be served, if that was noted.
    ///
    /// # Errors
    /// As the system says: what cannot be read may be such a note.
    pub fn read_diverged(&self) -> io::Result<Option<String>> {
        read(&self.diverged_file())
    }

    /// Shards, below `shards`, whose replicas differ, and how.
    ///
    /// # Errors
    /// As [`Self::read_diverged`].
    pub fn read_disputed(&self, shards: u16) -> io::Result<BTreeMap<ShardId, String>> {
        let mut found = BTreeMap::new();
        for shard in (0..shards).map(ShardId::new) {
            if let Some(why) = read(&self.disputed_file(shard))? {
                found.insert(shard, why);
            }
        }
        Ok(found)
    }
}

fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::read(path) {
        // A note cut short, or in other letters, is a note all the same.
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_found_until_it_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let verdicts = Verdicts {
            root: dir.path().to_owned(),
        };
        assert_eq!(verdicts.read_diverged().unwrap(), None);
        assert!(verdicts.read_disputed(4).unwrap().is_empty());
        verdicts.diverged("shard 1 at entry 512").unwrap();
        verdicts.disputed(ShardId::new(2), "a against b").unwrap();
        assert_eq!(
            verdicts.read_diverged().unwrap().as_deref(),
            Some("shard 1 at entry 512")
        );
        let disputed = verdicts.read_disputed(4).unwrap();
        assert_eq!(disputed.len(), 1);
        assert_eq!(disputed[&ShardId::new(2)], "a against b");
        fs::remove_file(verdicts.disputed_file(ShardId::new(2))).unwrap();
        assert!(verdicts.read_disputed(4).unwrap().is_empty());
        // An empty file says enough.
        fs::write(verdicts.diverged_file(), "").unwrap();
        assert_eq!(verdicts.read_diverged().unwrap().as_deref(), Some(""));
    }
}
