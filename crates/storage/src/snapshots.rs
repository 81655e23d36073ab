//! Snapshots: the whole state of a shard at one log index, one file each.
//!
//! A file appears under its name only when it is whole and durable. What is found is listed with what is wrong with it;
//! whether an older one will do depends on how far back the log reaches, which the caller knows.

mod incoming;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytes::BufMut;
use clearspan_replica::{
    LogPosition, MemberId, Membership, PEER_MEMBERS_MAX, ShardId, SnapshotMark,
};

use crate::crash_point::crash_point;
use crate::data_dir::{ClusterId, DataDir};
use crate::file::{self, Fields};

const MAGIC: [u8; 8] = *b"CLRSNAP\0";
const VERSION: u16 = 1;
const HEADER_BYTES: usize = 64;
const MEMBERSHIP_HEAD_BYTES: usize = 10;
const MEMBERSHIP_BYTES_MAX: usize = MEMBERSHIP_HEAD_BYTES + 4 * PEER_MEMBERS_MAX * 8;
/// Kept per shard: the newest, and one more in case it turns out damaged.
const KEPT_COUNT: usize = 2;
const BUFFER_BYTES: usize = 256 * 1024;
const ENDING: &str = "snap";
const UNFINISHED_ENDING: &str = "unfinished";

/// Why a snapshot could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The file is damaged, another's, or misnamed. It is never served.
    #[error("snapshot {path} is damaged: {reason}")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A later version wrote it.
    #[error("snapshot {path} has format {found}, this version reads {VERSION}")]
    Format {
        /// Which file.
        path: PathBuf,
        /// What it says.
        found: u16,
    },
    /// The group has too many members to write down.
    #[error("the group of shard {shard} has over {PEER_MEMBERS_MAX} members")]
    TooManyMembers {
        /// Whose.
        shard: ShardId,
    },
    /// A file operation failed. While writing, the older snapshots and the log are untouched: the caller may go on
    /// without this one, and must not cut the log for it.
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

fn io_error<'a>(
    step: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> SnapshotError + 'a {
    move |source| SnapshotError::Io {
        step,
        path: path.to_path_buf(),
        source,
    }
}

/// A file found, whole or not.
#[derive(Debug)]
pub struct SnapshotFile {
    /// Where it lies.
    pub path: PathBuf,
    /// The position its name claims.
    pub position: LogPosition,
    /// Its length in all.
    pub length_bytes: u64,
    /// What it holds, once read through and found whole; or what is wrong with it.
    pub checked: Result<SnapshotMark, SnapshotError>,
}

/// The snapshots of all shards of a node.
#[derive(Clone, Debug)]
pub struct Snapshots {
    root: PathBuf,
    cluster: ClusterId,
}

impl Snapshots {
    /// Those of this directory.
    #[must_use]
    pub fn open(data: &DataDir) -> Self {
        Self {
            root: data.layout().snapshots.clone(),
            cluster: data.identity().cluster,
        }
    }

    /// Writes a shard's snapshot, which `body` produces in pieces, and makes it durable; then drops all but the newest
    /// two. Returns where it lies.
    pub fn write(
        &self,
        shard: ShardId,
        mark: &SnapshotMark,
        body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<PathBuf, SnapshotError> {
        let dir = self.dir(shard);
        file::create_dir(&dir).map_err(io_error("create", &dir))?;
        let path = dir.join(name(mark.position, ENDING));
        let unfinished = dir.join(name(mark.position, UNFINISHED_ENDING));
        let membership =
            encode_membership(&mark.membership).ok_or(SnapshotError::TooManyMembers { shard })?;
        crash_point("snapshot-before-write");
        let written = self.write_file(&unfinished, shard, mark.position, &membership, body);
        if let Err(source) = written {
            // Best effort: `list` never sees it, and the next write of any snapshot clears it.
            let _ = fs::remove_file(&unfinished);
            return Err(io_error("write", &unfinished)(source));
        }
        crash_point("snapshot-before-rename");
        fs::rename(&unfinished, &path).map_err(io_error("rename", &unfinished))?;
        file::sync_dir(&dir).map_err(io_error("sync", &dir))?;
        crash_point("snapshot-after-rename");
        self.drop_old(&dir)?;
        Ok(path)
    }

    /// A shard's snapshots, newest first, each read through and checked.
    pub fn list(&self, shard: ShardId) -> Result<Vec<SnapshotFile>, SnapshotError> {
        let found = positions(&self.dir(shard))?;
        let check = |(position, path): (LogPosition, PathBuf)| {
            let length_bytes = fs::metadata(&path).map_or(0, |metadata| metadata.len());
            let checked = self.check(shard, position, &path);
            SnapshotFile {
                path,
                position,
                length_bytes,
                checked,
            }
        };
        Ok(found.into_iter().map(check).collect())
    }

    /// Opens a snapshot's body for reading. The checksum is compared at its end: the last read fails when it differs, so
    /// nothing read may be used before the end was reached.
    pub fn read(
        &self,
        shard: ShardId,
        position: LogPosition,
    ) -> Result<SnapshotReader, SnapshotError> {
        let path = self.path(shard, position);
        self.open_file(shard, position, &path)
    }

    /// Where a snapshot lies, or would.
    #[must_use]
    pub fn path(&self, shard: ShardId, position: LogPosition) -> PathBuf {
        self.dir(shard).join(name(position, ENDING))
    }

    fn dir(&self, shard: ShardId) -> PathBuf {
        self.root.join(shard.to_string())
    }

    fn write_file(
        &self,
        path: &Path,
        shard: ShardId,
        position: LogPosition,
        membership: &[u8],
        body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let file = File::create(path)?;
        let mut out = Summing {
            inner: BufWriter::with_capacity(BUFFER_BYTES, file),
            checksum: 0,
            length_bytes: 0,
        };
        // The header says how long the body is and what it sums to: known only after it, so its place is kept free.
        out.inner.write_all(&[0; HEADER_BYTES])?;
        out.inner.write_all(membership)?;
        out.inner.write_all(&[0; 4])?;
        body(&mut out)?;
        out.flush()?;
        let Summing {
            inner,
            checksum,
            length_bytes,
        } = out;
        let mut file = inner.into_inner().map_err(io::IntoInnerError::into_error)?;
        let header = Header {
            cluster: self.cluster,
            shard,
            position,
            length_bytes,
            checksum,
        };
        let head = header
            .encode(membership)
            .ok_or_else(|| io::Error::other("the group is too large"))?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&head)?;
        file.sync_all()
    }

    fn open_file(
        &self,
        shard: ShardId,
        position: LogPosition,
        path: &Path,
    ) -> Result<SnapshotReader, SnapshotError> {
        let damaged = |reason| SnapshotError::Damaged {
            path: path.to_path_buf(),
            reason,
        };
        let mut file = File::open(path).map_err(io_error("open", path))?;
        let length_bytes = file.metadata().map_err(io_error("measure", path))?.len();
        let mut head = vec![0; HEADER_BYTES];
        file.read_exact(&mut head)
            .map_err(|_| damaged("it is shorter than its header"))?;
        let members = head
            .last_chunk::<4>()
            .map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let members = usize::try_from(members)
            .ok()
            .filter(|&length| length <= MEMBERSHIP_BYTES_MAX);
        let members = members.ok_or_else(|| damaged("its group is too large"))?;
        head.resize(HEADER_BYTES + members + 4, 0);
        let rest = head.get_mut(HEADER_BYTES..).unwrap_or_default();
        file.read_exact(rest)
            .map_err(|_| damaged("it is shorter than its header"))?;
        let (header, membership) = Header::decode(&head).map_err(|fault| match fault {
            HeaderFault::Damaged(reason) => damaged(reason),
            HeaderFault::Format(found) => SnapshotError::Format {
                path: path.to_path_buf(),
                found,
            },
        })?;
        if header.cluster != self.cluster {
            return Err(damaged("it is another cluster's"));
        }
        if header.shard != shard {
            return Err(damaged("it is another shard's"));
        }
        if header.position != position {
            return Err(damaged("its name says another position"));
        }
        if length_bytes != (head.len() as u64).saturating_add(header.length_bytes) {
            return Err(damaged("its length differs"));
        }
        Ok(SnapshotReader {
            mark: SnapshotMark {
                position,
                membership,
            },
            inner: BufReader::with_capacity(BUFFER_BYTES, file).take(header.length_bytes),
            length_bytes: header.length_bytes,
            expected: header.checksum,
            checksum: 0,
        })
    }

    fn check(
        &self,
        shard: ShardId,
        position: LogPosition,
        path: &Path,
    ) -> Result<SnapshotMark, SnapshotError> {
        let mut reader = self.open_file(shard, position, path)?;
        match io::copy(&mut reader, &mut io::sink()) {
            Ok(_) => Ok(reader.mark),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(SnapshotError::Damaged {
                    path: path.to_path_buf(),
                    reason: "its body's checksum differs",
                })
            }
            Err(source) => Err(io_error("read", path)(source)),
        }
    }

    fn drop_old(&self, dir: &Path) -> Result<(), SnapshotError> {
        for (_, path) in positions(dir)?.into_iter().skip(KEPT_COUNT) {
            fs::remove_file(&path).map_err(io_error("remove", &path))?;
        }
        for path in paths(dir)?
            .into_iter()
            .filter(|path| path.extension().is_some_and(|end| end == UNFINISHED_ENDING))
        {
            fs::remove_file(&path).map_err(io_error("remove", &path))?;
        }
        Ok(())
    }
}

/// A snapshot's body, summed while it is read.
pub struct SnapshotReader {
    mark: SnapshotMark,
    inner: io::Take<BufReader<File>>,
    length_bytes: u64,
    expected: u32,
    checksum: u32,
}

impl SnapshotReader {
    /// What it is a snapshot of.
    #[must_use]
    pub const fn mark(&self) -> &SnapshotMark {
        &self.mark
    }

    /// Length of the body.
    #[must_use]
    pub const fn length_bytes(&self) -> u64 {
        self.length_bytes
    }
}

impl fmt::Debug for SnapshotReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotReader")
            .field("mark", &self.mark)
            .finish_non_exhaustive()
    }
}

impl Read for SnapshotReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.checksum =
            crc32c::crc32c_append(self.checksum, buffer.get(..count).unwrap_or_default());
        if count == 0
            && !buffer.is_empty()
            && (self.inner.limit() > 0 || self.checksum != self.expected)
        {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the snapshot's checksum differs",
            ));
        }
        Ok(count)
    }
}

struct Summing<W> {
    inner: W,
    checksum: u32,
    length_bytes: u64,
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.checksum =
            crc32c::crc32c_append(self.checksum, bytes.get(..count).unwrap_or_default());
        self.length_bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[derive(Clone, Copy)]
struct Header {
    cluster: ClusterId,
    shard: ShardId,
    position: LogPosition,
    length_bytes: u64,
    checksum: u32,
}

enum HeaderFault {
    Damaged(&'static str),
    Format(u16),
}

impl Header {
    fn encode(&self, membership: &[u8]) -> Option<Vec<u8>> {
        let mut head = Vec::with_capacity(HEADER_BYTES + membership.len() + 4);
        head.put_slice(&MAGIC);
        head.put_u16_le(VERSION);
        head.put_u16_le(self.shard.get());
        head.put_slice(&self.cluster.to_bytes());
        head.put_u64_le(self.position.index);
        head.put_u64_le(self.position.term);
        head.put_u64_le(self.length_bytes);
        head.put_u32_le(self.checksum);
        head.put_u32_le(0);
        head.put_u32_le(u32::try_from(membership.len()).ok()?);
        assert_eq!(head.len(), HEADER_BYTES);
        head.put_slice(membership);
        let checksum = crc32c::crc32c(&head);
        head.put_u32_le(checksum);
        Some(head)
    }

    fn decode(head: &[u8]) -> Result<(Self, Membership), HeaderFault> {
        let damaged = HeaderFault::Damaged;
        let short = "it is shorter than its header";
        let (covered, checksum) = head
            .len()
            .checked_sub(4)
            .and_then(|at| head.split_at_checked(at))
            .ok_or(damaged(short))?;
        let mut fields = Fields(covered);
        if fields.array() != Some(MAGIC) {
            return Err(damaged("it is not a snapshot"));
        }
        if Fields(checksum).u32() != Some(crc32c::crc32c(covered)) {
            return Err(damaged("its header's checksum differs"));
        }
        let version = fields.u16().ok_or(damaged(short))?;
        if version != VERSION {
            return Err(HeaderFault::Format(version));
        }
        let shard = fields.u16().map(ShardId::new).ok_or(damaged(short))?;
        let cluster = fields
            .array()
            .map(ClusterId::from_bytes)
            .ok_or(damaged(short))?;
        let index = fields.u64().ok_or(damaged(short))?;
        let term = fields.u64().ok_or(damaged(short))?;
        let length_bytes = fields.u64().ok_or(damaged(short))?;
        let checksum = fields.u32().ok_or(damaged(short))?;
        let _zero = fields.u32().ok_or(damaged(short))?;
        let _members = fields.u32().ok_or(damaged(short))?;
        let membership =
            decode_membership(&mut fields).ok_or(damaged("its group cannot be read"))?;
        let position = LogPosition { term, index };
        Ok((
            Self {
                cluster,
                shard,
                position,
                length_bytes,
                checksum,
            },
            membership,
        ))
    }
}

fn encode_membership(group: &Membership) -> Option<Vec<u8>> {
    let lists = [
        &group.voters,
        &group.learners,
        &group.voters_outgoing,
        &group.learners_next,
    ];
    let mut bytes = Vec::with_capacity(MEMBERSHIP_HEAD_BYTES);
    for list in lists {
        let count = u16::try_from(list.len())
            .ok()
            .filter(|&count| usize::from(count) <= PEER_MEMBERS_MAX)?;
        bytes.put_u16_le(count);
    }
    bytes.put_u8(u8::from(group.auto_leave));
    bytes.put_u8(0);
    for member in lists.into_iter().flatten() {
        bytes.put_u64_le(member.get());
    }
    Some(bytes)
}

fn decode_membership(fields: &mut Fields<'_>) -> Option<Membership> {
    let counts = [fields.u16()?, fields.u16()?, fields.u16()?, fields.u16()?];
    let auto_leave = match fields.u8()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    let _zero = fields.u8()?;
    let mut list = |count: u16| -> Option<Vec<MemberId>> {
        (0..count)
            .map(|_| fields.u64().and_then(MemberId::new))
            .collect()
    };
    let [voters, learners, voters_outgoing, learners_next] = [
        list(counts[0])?,
        list(counts[1])?,
        list(counts[2])?,
        list(counts[3])?,
    ];
    fields.0.is_empty().then_some(Membership {
        voters,
        learners,
        voters_outgoing,
        learners_next,
        auto_leave,
    })
}

/// Fixed width, so that names sort as positions do.
fn name(position: LogPosition, ending: &str) -> String {
    format!("{:020}-{:020}.{ending}", position.index, position.term)
}

fn parse_name(path: &Path) -> Option<LogPosition> {
    if path.extension()? != ENDING {
        return None;
    }
    let (index, term) = path.file_stem()?.to_str()?.split_once('-')?;
    Some(LogPosition {
        index: index.parse().ok()?,
        term: term.parse().ok()?,
    })
}

fn paths(dir: &Path) -> Result<Vec<PathBuf>, SnapshotError> {
    let found = match fs::read_dir(dir) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(io_error("list", dir)(source)),
    };
    found
        .map(|file| file.map(|file| file.path()).map_err(io_error("list", dir)))
        .collect()
}

/// Newest first.
fn positions(dir: &Path) -> Result<Vec<(LogPosition, PathBuf)>, SnapshotError> {
    let mut found: Vec<(LogPosition, PathBuf)> = paths(dir)?
        .into_iter()
        .filter_map(|path| Some((parse_name(&path)?, path)))
        .collect();
    found.sort_by_key(|(position, _)| std::cmp::Reverse((position.index, position.term)));
    Ok(found)
}
