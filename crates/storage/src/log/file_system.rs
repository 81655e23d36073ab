//! The files under the log engine: plain files, with the places where tests break them, and a rehearsal in which an open
//! changes nothing on disk.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use raft_engine::env::{FileSystem, Handle, Permission, WriteExt};

use crate::crash_point::crash_point;

/// What shall happen to one write instead of the write.
#[derive(Debug)]
pub enum WriteFault {
    /// Only so many bytes are taken, which is no error: the writer must go on with the rest.
    Short(usize),
    /// So many bytes reach the file, then the write fails.
    Torn(usize, io::Error),
}

/// Breaks the log's files on purpose.
pub trait FileFaults: Send + Sync + fmt::Debug {
    /// Before a write of `length` bytes.
    fn write(&self, path: &Path, length: usize) -> Option<WriteFault> {
        let _ = (path, length);
        None
    }

    /// Before an fsync; an error is its outcome.
    fn sync(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Ok(())
    }

    /// Before a file is created; an error is its outcome.
    fn create(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Shared {
    faults: Option<Arc<dyn FileFaults>>,
    // The engine turns a failed fsync into a panic without its cause; the cause is kept here.
    sync_error: Mutex<Option<io::Error>>,
    // The engine's errors name no file; this is the one it read last.
    last_read: Mutex<Option<PathBuf>>,
}

/// The log's files.
#[derive(Clone, Debug)]
pub(crate) struct LogFiles {
    shared: Arc<Shared>,
    rehearsal: bool,
}

impl LogFiles {
    pub(crate) fn new(faults: Option<Arc<dyn FileFaults>>) -> Self {
        Self {
            shared: Arc::new(Shared {
                faults,
                ..Shared::default()
            }),
            rehearsal: false,
        }
    }

    /// Files whose content can be read and is never changed: cuts are only remembered, writes forgotten.
    pub(crate) fn rehearsal() -> Self {
        Self {
            shared: Arc::new(Shared::default()),
            rehearsal: true,
        }
    }

    pub(crate) fn take_sync_error(&self) -> Option<io::Error> {
        self.shared
            .sync_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    pub(crate) fn last_read(&self) -> Option<PathBuf> {
        self.shared
            .last_read
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn handle(&self, path: &Path, file: Option<File>) -> LogHandle {
        LogHandle {
            file,
            path: path.to_path_buf(),
            rehearsal: self.rehearsal,
            cut_at: AtomicU64::new(u64::MAX),
            shared: Arc::clone(&self.shared),
        }
    }
}

impl FileSystem for LogFiles {
    type Handle = LogHandle;
    type Reader = LogCursor;
    type Writer = LogCursor;

    fn create<P: AsRef<Path>>(&self, path: P) -> io::Result<LogHandle> {
        let path = path.as_ref();
        if self.rehearsal {
            return Ok(self.handle(path, None));
        }
        if let Some(faults) = &self.shared.faults {
            faults.create(path)?;
        }
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        Ok(self.handle(path, Some(file)))
    }

    fn open<P: AsRef<Path>>(&self, path: P, permission: Permission) -> io::Result<LogHandle> {
        let path = path.as_ref();
        let write = permission == Permission::ReadWrite && !self.rehearsal;
        let file = File::options().read(true).write(write).open(path)?;
        Ok(self.handle(path, Some(file)))
    }

    fn delete<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        if self.rehearsal {
            Ok(())
        } else {
            fs::remove_file(path)
        }
    }

    fn rename<P: AsRef<Path>>(&self, from: P, to: P) -> io::Result<()> {
        if self.rehearsal {
            Ok(())
        } else {
            fs::rename(from, to)
        }
    }

    fn new_reader(&self, handle: Arc<LogHandle>) -> io::Result<LogCursor> {
        let mut last = self
            .shared
            .last_read
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if last.as_ref() != Some(&handle.path) {
            *last = Some(handle.path.clone());
        }
        Ok(LogCursor {
            handle,
            offset_bytes: 0,
        })
    }

    fn new_writer(&self, handle: Arc<LogHandle>) -> io::Result<LogCursor> {
        Ok(LogCursor {
            handle,
            offset_bytes: 0,
        })
    }
}

/// One open file.
#[derive(Debug)]
pub(crate) struct LogHandle {
    // None for a file created in a rehearsal.
    file: Option<File>,
    path: PathBuf,
    rehearsal: bool,
    // In a rehearsal: where the file would have been cut; otherwise u64::MAX.
    cut_at: AtomicU64,
    shared: Arc<Shared>,
}

impl LogHandle {
    fn length(&self) -> io::Result<u64> {
        let length = self
            .file
            .as_ref()
            .map_or(Ok(0), |file| file.metadata().map(|metadata| metadata.len()))?;
        Ok(length.min(self.cut_at.load(Ordering::Relaxed)))
    }

    fn cut(&self, offset: usize) -> io::Result<()> {
        match &self.file {
            Some(file) if !self.rehearsal => file.set_len(offset as u64),
            _ => {
                self.cut_at.fetch_min(offset as u64, Ordering::Relaxed);
                Ok(())
            }
        }
    }
}

impl Handle for LogHandle {
    fn truncate(&self, offset: usize) -> io::Result<()> {
        self.cut(offset)
    }

    fn file_size(&self) -> io::Result<usize> {
        usize::try_from(self.length()?).map_err(io::Error::other)
    }

    fn sync(&self) -> io::Result<()> {
        let Some(file) = self.file.as_ref().filter(|_| !self.rehearsal) else {
            return Ok(());
        };
        crash_point("after-log-append-before-sync");
        let synced = self
            .shared
            .faults
            .as_ref()
            .map_or(Ok(()), |faults| faults.sync(&self.path));
        synced.and_then(|()| file.sync_data()).map_err(|error| {
            let repeated = io::Error::new(
                error.kind(),
                format!("fsync {}: {error}", self.path.display()),
            );
            *self
                .shared
                .sync_error
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some(error);
            repeated
        })
    }
}

/// A place in one open file.
#[derive(Debug)]
pub(crate) struct LogCursor {
    handle: Arc<LogHandle>,
    offset_bytes: u64,
}

impl Read for LogCursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(file) = &self.handle.file else {
            return Ok(0);
        };
        let count = file.read_at(buffer, self.offset_bytes)?;
        self.offset_bytes += count as u64;
        Ok(count)
    }
}

impl Write for LogCursor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(file) = self.handle.file.as_ref().filter(|_| !self.handle.rehearsal) else {
            self.offset_bytes += bytes.len() as u64;
            return Ok(bytes.len());
        };
        let faults = self.handle.shared.faults.as_ref();
        let fault = faults.and_then(|faults| faults.write(&self.handle.path, bytes.len()));
        let length = match &fault {
            Some(WriteFault::Short(length) | WriteFault::Torn(length, _)) => {
                (*length).min(bytes.len())
            }
            None => bytes.len(),
        };
        let written = file.write_at(bytes.get(..length).unwrap_or(bytes), self.offset_bytes)?;
        if let Some(WriteFault::Torn(_, error)) = fault {
            return Err(error);
        }
        self.offset_bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for LogCursor {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(by) => self.offset_bytes.checked_add_signed(by),
            SeekFrom::End(by) => self.handle.length()?.checked_add_signed(by),
        };
        self.offset_bytes = target.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.offset_bytes)
    }
}

impl WriteExt for LogCursor {
    fn truncate(&mut self, offset: usize) -> io::Result<()> {
        self.handle.cut(offset)?;
        self.offset_bytes = offset as u64;
        Ok(())
    }

    fn allocate(&mut self, offset: usize, size: usize) -> io::Result<()> {
        let Some(file) = self.handle.file.as_ref().filter(|_| !self.handle.rehearsal) else {
            return Ok(());
        };
        let flags = rustix::fs::FallocateFlags::empty();
        match rustix::fs::fallocate(file, flags, offset as u64, size as u64) {
            // Not every file system can; then the file grows as it is written.
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            outcome => Ok(outcome?),
        }
    }
}
