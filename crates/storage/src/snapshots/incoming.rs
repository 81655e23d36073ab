//! Pieces of a snapshot that is being fetched from another node: kept as they come, so that a cut or a restart costs only
//! what was under way. One file per shard, for one snapshot; nothing in it is believed without its checksum.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;

use bytes::BufMut as _;
use clearspan_replica::{ShardId, SnapshotMark};

use super::{Snapshots, encode_membership};
use crate::file::{self, Fields};

const MAGIC: [u8; 8] = *b"CLRPART\0";
const VERSION: u16 = 1;
const NAME: &str = "incoming";
const RECORD_HEAD_BYTES: usize = 16;

impl Snapshots {
    /// Keeps a piece of a snapshot's body. The first, at offset 0, takes the place of all that was kept of another.
    ///
    /// # Errors
    /// As the system says; what was kept before still counts.
    pub fn keep_piece(
        &self,
        shard: ShardId,
        mark: &SnapshotMark,
        offset_bytes: u64,
        data: &[u8],
    ) -> io::Result<()> {
        let mut bytes = if offset_bytes == 0 {
            file::create_dir(&self.dir(shard))?;
            self.head(shard, mark)?
        } else {
            Vec::new()
        };
        let length = u32::try_from(data.len())
            .map_err(|_| io::Error::other("a piece of more than 4 GiB"))?;
        let mut record = Vec::with_capacity(RECORD_HEAD_BYTES);
        record.put_u64_le(offset_bytes);
        record.put_u32_le(length);
        record.put_u32_le(crc32c::crc32c_append(crc32c::crc32c(&record), data));
        bytes.extend(record);
        bytes.extend(data);
        // Not made durable: a piece that a power cut takes is fetched again.
        let mut options = OpenOptions::new();
        if offset_bytes == 0 {
            options.create(true).write(true).truncate(true);
        } else {
            options.append(true);
        }
        options.open(self.incoming(shard))?.write_all(&bytes)
    }

    /// What is kept of a snapshot's body, from its beginning on without a gap; empty when there is nothing of it.
    ///
    /// # Errors
    /// As the system says.
    pub fn kept_pieces(&self, shard: ShardId, mark: &SnapshotMark) -> io::Result<Vec<u8>> {
        let path = self.incoming(shard);
        let mut bytes = Vec::new();
        match File::open(&path) {
            Ok(mut file) => file.read_to_end(&mut bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let head = self.head(shard, mark)?;
        let Some(records) = bytes.strip_prefix(head.as_slice()) else {
            return Ok(Vec::new());
        };
        let mut fields = Fields(records);
        let mut body = Vec::new();
        while let Some(data) = next_record(&mut fields, body.len() as u64) {
            body.extend_from_slice(data);
        }
        let good = bytes.len() - fields.0.len();
        if good < bytes.len() {
            // What comes next is written behind what is good.
            OpenOptions::new()
                .write(true)
                .open(&path)?
                .set_len(good as u64)?;
        }
        Ok(body)
    }

    /// Drops what is kept.
    ///
    /// # Errors
    /// As the system says.
    pub fn forget_pieces(&self, shard: ShardId) -> io::Result<()> {
        match fs::remove_file(self.incoming(shard)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn incoming(&self, shard: ShardId) -> PathBuf {
        self.dir(shard).join(NAME)
    }

    /// How a file with pieces of this snapshot begins.
    fn head(&self, shard: ShardId, mark: &SnapshotMark) -> io::Result<Vec<u8>> {
        let group = encode_membership(&mark.membership)
            .ok_or_else(|| io::Error::other("the group is too large"))?;
        let mut head = Vec::new();
        head.put_slice(&MAGIC);
        head.put_u16_le(VERSION);
        head.put_u16_le(shard.get());
        head.put_slice(&self.cluster.to_bytes());
        head.put_u64_le(mark.position.term);
        head.put_u64_le(mark.position.index);
        head.put_slice(&group);
        head.put_u32_le(crc32c::crc32c(&head));
        Ok(head)
    }
}

/// The next piece, when it is whole and follows; `fields` stay where they are when not.
fn next_record<'a>(fields: &mut Fields<'a>, due_offset: u64) -> Option<&'a [u8]> {
    let mut ahead = Fields(fields.0);
    let head = ahead.take(RECORD_HEAD_BYTES)?;
    let (summed, _) = head.split_at_checked(RECORD_HEAD_BYTES - 4)?;
    let mut head = Fields(head);
    let (offset, length, checksum) = (head.u64()?, head.u32()?, head.u32()?);
    let data = ahead.take(usize::try_from(length).ok()?)?;
    let whole = crc32c::crc32c_append(crc32c::crc32c(summed), data) == checksum;
    if !whole || offset != due_offset {
        return None;
    }
    *fields = ahead;
    Some(data)
}

#[cfg(test)]
mod tests {
    use clearspan_replica::{LogPosition, MemberId, Membership};

    use super::*;
    use crate::data_dir::{ClusterId, DataDir, Identity, Layout, NodeId};

    const ONE: ShardId = ShardId::new(1);

    fn mark(index: u64) -> SnapshotMark {
        SnapshotMark {
            position: LogPosition { term: 2, index },
            membership: Membership::of_voters(vec![MemberId::new(1).unwrap()]),
        }
    }

    #[test]
    fn what_is_whole_and_follows_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let identity = Identity {
            cluster: ClusterId::from_bytes([1; 16]),
            node: NodeId::from_bytes([2; 16]),
        };
        let data = DataDir::create(Layout::under(dir.path().join("data")), identity).unwrap();
        let snapshots = Snapshots::open(&data);
        let kept = || snapshots.kept_pieces(ONE, &mark(7)).unwrap();
        assert_eq!(kept(), b"");
        snapshots.keep_piece(ONE, &mark(7), 0, b"abc").unwrap();
        snapshots.keep_piece(ONE, &mark(7), 3, b"defg").unwrap();
        assert_eq!(kept(), b"abcdefg");
        // Another snapshot's are not this one's.
        assert_eq!(snapshots.kept_pieces(ONE, &mark(8)).unwrap(), b"");
        // Half a record is cut off, and what comes after it follows the good ones.
        let path = snapshots.incoming(ONE);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert_eq!(kept(), b"abc");
        snapshots.keep_piece(ONE, &mark(7), 3, b"DEFG").unwrap();
        snapshots.keep_piece(ONE, &mark(7), 9, b"a gap").unwrap();
        assert_eq!(kept(), b"abcDEFG");
        // No changed byte is believed.
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            fs::write(&path, &damaged).unwrap();
            assert!([&b""[..], b"abc"].contains(&&kept()[..]), "byte {at}");
        }
        // The first piece of another takes their place.
        snapshots.keep_piece(ONE, &mark(8), 0, b"xy").unwrap();
        assert_eq!(kept(), b"");
        assert_eq!(snapshots.kept_pieces(ONE, &mark(8)).unwrap(), b"xy");
        snapshots.forget_pieces(ONE).unwrap();
        snapshots.forget_pieces(ONE).unwrap();
        assert_eq!(snapshots.kept_pieces(ONE, &mark(8)).unwrap(), b"");
    }
}
