//! A node's data directory: where things lie, whose it is, and that only one process uses it.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::file;

/// The version of the directory's layout, in its `CLUSTER` file.
const FORMAT: u32 = 1;
/// A `CLUSTER` file is about 140 bytes; more is not one.
const CLUSTER_FILE_BYTES_MAX: u64 = 4096;

macro_rules! random_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name([u8; 16]);

        impl $name {
            /// From its bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// Its bytes.
            #[must_use]
            pub const fn to_bytes(self) -> [u8; 16] {
                self.0
            }

            /// A fresh one from the system's random source.
            pub fn random() -> io::Result<Self> {
                let mut bytes = [0; 16];
                File::open("/dev/urandom")?.read_exact(&mut bytes)?;
                Ok(Self(bytes))
            }

            /// Reads 32 hexadecimal digits.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                (text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
                    .then(|| u128::from_str_radix(text, 16).ok().map(|number| Self(number.to_be_bytes())))
                    .flatten()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:032x}", u128::from_be_bytes(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

random_id! {
    /// A cluster: 128 random bits, the same on all its nodes.
    ClusterId
}
random_id! {
    /// A node in one life of its data directory: 128 random bits, never used again after the directory is lost.
    NodeId
}

/// Whose a data directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster.
    pub cluster: ClusterId,
    /// The node.
    pub node: NodeId,
}

/// Where a node's data lies. Log and packages may be on volumes of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Holds `CLUSTER`, `LOCK` and `SYNCED`.
    pub root: PathBuf,
    /// The log of all shards.
    pub log: PathBuf,
    /// The package store.
    pub packages: PathBuf,
    /// Snapshots, one directory per shard.
    pub snapshots: PathBuf,
}

impl Layout {
    /// Everything under one directory.
    #[must_use]
    pub fn under(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self {
            log: root.join("log"),
            packages: root.join("packages"),
            snapshots: root.join("snapshots"),
            root,
        }
    }

    pub(crate) fn synced_file(&self) -> PathBuf {
        self.root.join("SYNCED")
    }

    fn cluster_file(&self) -> PathBuf {
        self.root.join("CLUSTER")
    }

    fn lock_file(&self) -> PathBuf {
        self.root.join("LOCK")
    }
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another process has it.
    #[error("data directory {root} is in use by process {process}")]
    InUse {
        /// Which.
        root: PathBuf,
        /// The process that locked it, as it wrote.
        process: String,
    },
    /// It was never set up.
    #[error("{root} is not a data directory: it has no CLUSTER file")]
    Absent {
        /// Which.
        root: PathBuf,
    },
    /// It was set up before; nothing was changed.
    #[error("{root} already holds a node's data")]
    Exists {
        /// Which.
        root: PathBuf,
    },
    /// Its identity cannot be read.
    #[error("{path} is damaged: {reason}")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// It was written by a version with another layout.
    #[error("{path} has format {found}, this version reads {FORMAT}")]
    Format {
        /// Which file.
        path: PathBuf,
        /// What it says.
        found: u32,
    },
    /// A file operation failed.
    #[error("{step} {path}")]
    Io {
        /// Which step.
        step: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

pub(crate) fn io_error<'a>(
    step: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> DataDirError + 'a {
    move |source| DataDirError::Io {
        step,
        path: path.to_path_buf(),
        source,
    }
}

/// A data directory this process has for itself until dropped.
#[derive(Debug)]
pub struct DataDir {
    layout: Layout,
    identity: Identity,
    // Held open: the lock goes with the file.
    _lock: File,
}

impl DataDir {
    /// Sets up a new directory. Refuses one that holds anything of a node's.
    pub fn create(layout: Layout, identity: Identity) -> Result<Self, DataDirError> {
        for dir in [
            &layout.root,
            &layout.log,
            &layout.packages,
            &layout.snapshots,
        ] {
            file::create_dir(dir).map_err(io_error("create", dir))?;
        }
        let lock = lock(&layout)?;
        let cluster = layout.cluster_file();
        let used = cluster.exists()
            || layout.synced_file().exists()
            || !is_empty(&layout.log)?
            || !is_empty(&layout.packages)?
            || !is_empty(&layout.snapshots)?;
        if used {
            return Err(DataDirError::Exists { root: layout.root });
        }
        file::replace(&cluster, encode(identity).as_bytes())
            .map_err(io_error("write", &cluster))?;
        Ok(Self {
            layout,
            identity,
            _lock: lock,
        })
    }

    /// Opens one that was set up before.
    pub fn open(layout: Layout) -> Result<Self, DataDirError> {
        let path = layout.cluster_file();
        if !path.exists() {
            return Err(DataDirError::Absent { root: layout.root });
        }
        let lock = lock(&layout)?;
        let mut bytes = Vec::new();
        let file = File::open(&path).map_err(io_error("open", &path))?;
        file.take(CLUSTER_FILE_BYTES_MAX)
            .read_to_end(&mut bytes)
            .map_err(io_error("read", &path))?;
        let identity = decode(&bytes, &path)?;
        for dir in [&layout.log, &layout.packages, &layout.snapshots] {
            file::create_dir(dir).map_err(io_error("create", dir))?;
        }
        Ok(Self {
            layout,
            identity,
            _lock: lock,
        })
    }

    /// Whose it is.
    #[must_use]
    pub const fn identity(&self) -> Identity {
        self.identity
    }

    /// Where its parts lie.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }
}

fn is_empty(dir: &Path) -> Result<bool, DataDirError> {
    Ok(fs::read_dir(dir)
        .map_err(io_error("list", dir))?
        .next()
        .is_none())
}

fn lock(layout: &Layout) -> Result<File, DataDirError> {
    let path = layout.lock_file();
    let mut file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path)
        .map_err(io_error("open", &path))?;
    let locked = patiently(
        || file.try_lock(),
        |tried| matches!(tried, Err(TryLockError::WouldBlock)),
    );
    match locked {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut process = String::new();
            // Only to name it; the lock decides.
            let _ = file.take(32).read_to_string(&mut process);
            let process = if process.trim().is_empty() {
                "unknown".to_owned()
            } else {
                process.trim().to_owned()
            };
            return Err(DataDirError::InUse {
                root: layout.root.clone(),
                process,
            });
        }
        Err(TryLockError::Error(source)) => return Err(io_error("lock", &path)(source)),
    }
    let written = file
        .set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()));
    written.map_err(io_error("write", &path))?;
    Ok(file)
}

/// Tries to lock for a while: a process that was just killed keeps its locks until the system has buried it, and a process
/// that is just being started holds a copy of its parent's until it runs its own program.
pub(crate) fn patiently<T>(mut attempt: impl FnMut() -> T, held: impl Fn(&T) -> bool) -> T {
    for _ in 1..LOCK_TRIES {
        let tried = attempt();
        if !held(&tried) {
            return tried;
        }
        std::thread::sleep(LOCK_RETRY);
    }
    attempt()
}

/// Two seconds: long for a process that ends, short for a person who started a second one by mistake.
const LOCK_TRIES: u32 = 200;
const LOCK_RETRY: std::time::Duration = std::time::Duration::from_millis(10);

fn encode(identity: Identity) -> String {
    let mut text = format!(
        "clearspan data directory\nformat = {FORMAT}\ncluster = {}\nnode = {}\n",
        identity.cluster, identity.node
    );
    let checksum = crc32c::crc32c(text.as_bytes());
    text.push_str(&format!("crc32c = {checksum:08x}\n"));
    text
}

fn decode(bytes: &[u8], path: &Path) -> Result<Identity, DataDirError> {
    let damaged = |reason| DataDirError::Damaged {
        path: path.to_path_buf(),
        reason,
    };
    let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is not text"))?;
    let (covered, checksum) = text
        .rsplit_once("crc32c = ")
        .ok_or_else(|| damaged("it has no checksum"))?;
    if checksum != format!("{:08x}\n", crc32c::crc32c(covered.as_bytes())) {
        return Err(damaged("its checksum differs"));
    }
    let field = |name: &str| {
        covered
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix('='))
            .map(str::trim)
    };
    if !covered.starts_with("clearspan data directory\n") {
        return Err(damaged("it is something else's"));
    }
    let format = field("format")
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| damaged("it has no format"))?;
    if format != FORMAT {
        return Err(DataDirError::Format {
            path: path.to_path_buf(),
            found: format,
        });
    }
    let cluster = field("cluster")
        .and_then(ClusterId::parse)
        .ok_or_else(|| damaged("it names no cluster"))?;
    let node = field("node")
        .and_then(NodeId::parse)
        .ok_or_else(|| damaged("it names no node"))?;
    Ok(Identity { cluster, node })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            cluster: ClusterId::from_bytes([0xab; 16]),
            node: NodeId::from_bytes([1; 16]),
        }
    }

    #[test]
    fn opens_what_was_created_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::under(dir.path().join("a/b"));
        assert!(matches!(
            DataDir::open(layout.clone()),
            Err(DataDirError::Absent { .. })
        ));
        drop(DataDir::create(layout.clone(), identity()).unwrap());
        assert!(matches!(
            DataDir::create(layout.clone(), identity()),
            Err(DataDirError::Exists { .. })
        ));
        assert_eq!(DataDir::open(layout).unwrap().identity(), identity());
    }

    #[test]
    fn a_second_opener_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::under(dir.path());
        let held = DataDir::create(layout.clone(), identity()).unwrap();
        let refused = DataDir::open(layout.clone()).unwrap_err().to_string();
        assert!(
            refused.ends_with(&format!("is in use by process {}", std::process::id())),
            "{refused}"
        );
        drop(held);
        DataDir::open(layout).unwrap();
    }

    #[test]
    fn a_lock_that_goes_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::under(dir.path());
        let held = DataDir::create(layout.clone(), identity()).unwrap();
        std::thread::scope(|scope| {
            let opener = scope.spawn(|| DataDir::open(layout.clone()));
            drop(held);
            opener.join().unwrap().unwrap();
        });
    }

    #[test]
    fn every_changed_byte_of_the_identity_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::under(dir.path());
        drop(DataDir::create(layout.clone(), identity()).unwrap());
        let path = layout.cluster_file();
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&path, &bad).unwrap();
            assert!(
                matches!(
                    DataDir::open(layout.clone()),
                    Err(DataDirError::Damaged { .. })
                ),
                "byte {at}"
            );
        }
        for length in 0..good.len() {
            fs::write(&path, &good[..length]).unwrap();
            assert!(DataDir::open(layout.clone()).is_err(), "cut to {length}");
        }
    }

    #[test]
    fn another_format_is_refused() {
        let text = encode(identity()).replace("format = 1", "format = 2");
        let (covered, _) = text.rsplit_once("crc32c").unwrap();
        let text = format!(
            "{covered}crc32c = {:08x}\n",
            crc32c::crc32c(covered.as_bytes())
        );
        let refused = decode(text.as_bytes(), Path::new("CLUSTER"));
        assert!(matches!(
            refused,
            Err(DataDirError::Format { found: 2, .. })
        ));
    }

    #[test]
    fn identities_are_random_and_read_back() {
        let (one, two) = (NodeId::random().unwrap(), NodeId::random().unwrap());
        assert_ne!(one, two);
        assert_eq!(NodeId::parse(&one.to_string()), Some(one));
        assert_eq!(NodeId::parse("+0000000000000000000000000000001"), None);
    }
}
