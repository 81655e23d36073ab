//! What is checked before the engine opens its files: it trusts its tables of contents, and a damaged length in one of them
//! would have it ask for memory that no machine has, which ends a process without a word.
//!
//! Per table space the file `current` names the version in use and that file's checksum; the version names the tables and
//! blob files in use. Of them the tables, small as they hold keys and small values alone, are checked whole, blob files by
//! their tables of contents: each blob has its own checksum. Files in no use are what an interrupted write left; the
//! engine removes them.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::file::{Fields, each_piece};

/// Magic, version, kind of checksum, checksum of the table of contents, its place, its length.
const TRAILER_BYTES: usize = 4 + 1 + 1 + 16 + 8 + 8;
const TRAILER_START: [u8; 6] = *b"SFA!\x01\0";
const XXH3_128: u8 = 0;

/// Checks the files in use of every table space below the store's directory.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] with the damaged file's path and what is wrong; other kinds when reading fails.
pub(crate) fn check_files(store: &Path) -> io::Result<()> {
    let spaces = match fs::read_dir(store.join("keyspaces")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    for space in spaces {
        check_space(&space?.path())?;
    }
    Ok(())
}

fn check_space(space: &Path) -> io::Result<()> {
    let current_path = space.join("current");
    let current = match fs::read(&current_path) {
        // Its setting up was cut off.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    let mut fields = Fields(&current);
    let (Some(version), Some(checksum), Some(XXH3_128), []) =
        (fields.u64(), fields.array(), fields.u8(), fields.0)
    else {
        return Err(damaged(&current_path, "it is no version and checksum"));
    };
    let version_path = space.join(format!("v{version}"));
    let bytes = fs::read(&version_path).map_err(|error| in_use(&version_path, error))?;
    if xxh3_128(&bytes).to_le_bytes() != checksum {
        let reason = "it and the file `current` beside it do not go together";
        return Err(damaged(&version_path, reason));
    }
    let files = files_in_use(&version_path)?
        .ok_or_else(|| damaged(&version_path, "it is no list of files"))?;
    for (id, checksum) in files.tables {
        let path = space.join("tables").join(id.to_string());
        check_whole(&path, checksum).map_err(|error| in_use(&path, error))?;
    }
    for id in files.blob_files {
        let path = space.join("blobs").join(id.to_string());
        check_contents(&path).map_err(|error| in_use(&path, error))?;
    }
    Ok(())
}

struct InUse {
    tables: Vec<(u64, [u8; 16])>,
    blob_files: Vec<u64>,
}

/// Reads a version file, known to be as it was written. `None` when it is of a form we do not know.
fn files_in_use(path: &Path) -> io::Result<Option<InUse>> {
    let reader = sfa::Reader::new(path).map_err(|error| damaged(path, &error.to_string()))?;
    let section = |name: &[u8]| {
        let mut bytes = Vec::new();
        if let Some(entry) = reader.toc().section(name) {
            entry.reader(path)?.read_to_end(&mut bytes)?;
        }
        Ok::<_, io::Error>(bytes)
    };
    let (tables, blob_files) = (section(b"tables")?, section(b"blob_files")?);
    Ok(tables_in_use(&tables).and_then(|tables| {
        let blob_files = blob_files_in_use(&blob_files)?;
        Some(InUse { tables, blob_files })
    }))
}

fn tables_in_use(section: &[u8]) -> Option<Vec<(u64, [u8; 16])>> {
    let mut fields = Fields(section);
    let mut tables = Vec::new();
    let level_count = fields.u8()?;
    for _ in 0..level_count {
        let run_count = fields.u8()?;
        for _ in 0..run_count {
            for _ in 0..fields.u32()? {
                let id = fields.u64()?;
                let XXH3_128 = fields.u8()? else {
                    return None;
                };
                tables.push((id, fields.array()?));
                let _sequence_number = fields.u64()?;
            }
        }
    }
    fields.0.is_empty().then_some(tables)
}

fn blob_files_in_use(section: &[u8]) -> Option<Vec<u64>> {
    let mut fields = Fields(section);
    let mut ids = Vec::new();
    for _ in 0..fields.u32()? {
        ids.push(fields.u64()?);
        let _kind_and_checksum: [u8; 17] = fields.array()?;
    }
    fields.0.is_empty().then_some(ids)
}

fn check_whole(path: &Path, checksum: [u8; 16]) -> io::Result<()> {
    let mut hasher = Xxh3::new();
    each_piece(path, |piece| {
        hasher.update(piece);
        true
    })?;
    if hasher.digest128().to_le_bytes() == checksum {
        Ok(())
    } else {
        Err(damaged(path, "its checksum differs"))
    }
}

/// The table of contents lies before the trailer, which ends the file and has its checksum.
fn check_contents(path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let Some(before) = length.checked_sub(TRAILER_BYTES as u64) else {
        return Err(damaged(path, "it is shorter than a trailer"));
    };
    file.seek(SeekFrom::Start(before))?;
    let mut trailer = [0; TRAILER_BYTES];
    file.read_exact(&mut trailer)?;
    let mut fields = Fields(&trailer);
    let (Some(TRAILER_START), Some(checksum), Some(start), Some(contents_bytes)) = (
        fields.array(),
        fields.array::<16>(),
        fields.u64(),
        fields.u64(),
    ) else {
        return Err(damaged(path, "its end is no trailer"));
    };
    if start.checked_add(contents_bytes) != Some(before) {
        return Err(damaged(
            path,
            "its table of contents is not where its trailer says",
        ));
    }
    file.seek(SeekFrom::Start(start))?;
    let mut contents = Vec::new();
    file.take(contents_bytes).read_to_end(&mut contents)?;
    if xxh3_128(&contents).to_le_bytes() == checksum {
        Ok(())
    } else {
        Err(damaged(
            path,
            "the checksum of its table of contents differs",
        ))
    }
}

fn damaged(path: &Path, reason: &str) -> io::Error {
    let text = format!("{} is damaged: {reason}", path.display());
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// A file that must be there and is not is damage as well.
fn in_use(path: &Path, error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::NotFound {
        return damaged(path, "it is gone");
    }
    error
}
