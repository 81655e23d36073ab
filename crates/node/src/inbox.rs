//! The files of a business day, read and parsed on all cores, handed on in their order.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clearspan_iso20022::read::{self, Context, Fault, Incoming, Limits};
use clearspan_ledger::{AmountMinor, Bic};
use crossbeam_channel::bounded;

use crate::gateway::Gateway;

/// Files of one part of the day; a netting cycle follows each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Name of its directory, empty for files that lie in the inbox itself.
    pub name: String,
    /// Its files, in the order of their names.
    pub files: Vec<PathBuf>,
}

/// Lists an inbox: sub-directories are sections in the order of their names; files beside them come first.
///
/// # Errors
/// When a directory cannot be listed.
pub fn sections(inbox: &Path) -> std::io::Result<Vec<Section>> {
    let (files, directories) = list(inbox)?;
    let mut sections = Vec::new();
    if !files.is_empty() || directories.is_empty() {
        sections.push(Section {
            name: String::new(),
            files,
        });
    }
    for directory in directories {
        let name = directory
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        sections.push(Section {
            name,
            files: list(&directory)?.0,
        });
    }
    Ok(sections)
}

fn list(directory: &Path) -> std::io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let mut files = Vec::new();
    let mut directories = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            directories.push(path);
        } else if path.metadata().is_ok_and(|found| !found.is_file()) {
            // Reading a pipe or a device would wait for ever.
            let what = format!("{} is neither a file nor a directory", path.display());
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, what));
        } else if path
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("xml"))
        {
            files.push(path);
        }
    }
    files.sort();
    directories.sort();
    Ok((files, directories))
}

/// Whom a message names as its sender, as far as it can be read.
#[must_use]
pub fn sender_of(bytes: &[u8]) -> Option<Bic> {
    let context = Context {
        sender: None,
        amount_max: AmountMinor::MAX,
        numbers_messages: &|_| false,
    };
    match read::read(bytes, &Limits::default(), &context) {
        Ok(Incoming::Submission(submitted)) => Some(submitted.submission.sender),
        Ok(Incoming::StatusRequest(request)) => Some(request.sender),
        Ok(Incoming::ReportRequest(request)) => Some(request.sender),
        Err(fault) => fault.sender,
    }
}

/// A file as the gateway read it.
pub(crate) struct ReadFile<'a> {
    pub(crate) path: &'a Path,
    pub(crate) bytes: u64,
    pub(crate) message: Result<Incoming, Box<Fault>>,
}

/// A file's bytes; of one that is longer than any message may be, no more than it takes to see that.
fn read_bounded(path: &Path, max_bytes: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    let len = file.metadata()?.len().min(max_bytes as u64);
    bytes.reserve(usize::try_from(len).unwrap_or(0) + 1);
    file.take(max_bytes as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Files that each reading thread may be ahead: enough to keep it busy, little enough to bound memory.
const AHEAD_MAX_FILES: usize = 4;

/// Reads files on `threads` threads and gives them to `take` in their order. Stops at the first error of either side.
///
/// # Errors
/// As `take`, or when a file cannot be read.
pub(crate) fn read_in_order<E: Send>(
    gateway: &Gateway<'_>,
    files: &[PathBuf],
    threads: usize,
    unreadable: impl Fn(&Path, std::io::Error) -> E + Sync,
    mut take: impl FnMut(ReadFile<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let threads = threads.clamp(1, files.len().max(1));
    std::thread::scope(|scope| {
        let queues: Vec<_> = (0..threads)
            .map(|first| {
                let (sender, receiver) = bounded(AHEAD_MAX_FILES);
                let unreadable = &unreadable;
                scope.spawn(move || {
                    for path in files.iter().skip(first).step_by(threads) {
                        let read = read_bounded(path, gateway.body_max_bytes())
                            .map_err(|error| unreadable(path, error))
                            .map(|bytes| ReadFile {
                                path,
                                bytes: bytes.len() as u64,
                                message: gateway.read(&bytes, None),
                            });
                        // The other side has stopped: nobody wants the rest.
                        if sender.send(read).is_err() {
                            return;
                        }
                    }
                });
                receiver
            })
            .collect();
        // Thread n reads files n, n + threads, …, so turn by turn they come in their order.
        for at in 0..files.len() {
            match queues[at % threads].recv() {
                Ok(file) => take(file?)?,
                Err(_) => unreachable!("a reading thread sends one result per file"),
            }
        }
        Ok(())
    })
}
