//! Writing certificates and statements: whole directories that appear at once or not at all.

use crate::certificate::Certificate;
use crate::figures::Digest;
use crate::inputs::{InputLine, InputsEncoder};
use crate::statement::{Day, Statement};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Why a certificate or a day's statements were not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file system refused, or a text cannot stand in the file.
    #[error("write {path}")]
    Io {
        /// File or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A value cannot stand in the file: an amount is beyond [`crate::MINOR_MAX`].
    #[error("encode {path}")]
    Encode {
        /// File that was to be written.
        path: PathBuf,
        /// What the encoder said.
        source: serde_json::Error,
    },
}

/// Where a cycle's files belong below the audit root: `certificates/2026-03-02/cycle-0001`.
#[must_use]
pub fn cycle_directory(root: &Path, business_date: &str, cycle: u64) -> PathBuf {
    root.join("certificates")
        .join(business_date)
        .join(format!("cycle-{cycle:04}"))
}

/// Where a day's statements belong below the audit root: `statements/2026-03-02`.
#[must_use]
pub fn day_directory(root: &Path, business_date: &str) -> PathBuf {
    root.join("statements").join(business_date)
}

/// Writes `inputs.csv` and `certificate.json` into `dir` and gives back the certificate as sealed: with the digest of
/// the inputs and its own, whatever `certificate` held there.
///
/// Everything is written and made durable in `<dir>.part`, which then takes its name, so that a reader never meets half
/// a certificate and a crash leaves only a `.part` that the next attempt replaces.
///
/// ```no_run
/// # use clearspan_audit::{Certificate, InputLine, WriteError, cycle_directory, write_certificate};
/// # fn close(certificate: Certificate, payments: Vec<InputLine<'_>>) -> Result<(), WriteError> {
/// let dir = cycle_directory("/var/lib/clearspan/audit".as_ref(), &certificate.business_date, certificate.cycle);
/// let sealed = write_certificate(&dir, &certificate, payments)?;
/// println!("the next certificate's `previous` is {}", sealed.digest);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`WriteError`]; also when `dir` exists already: a certificate is never rewritten.
pub fn write_certificate<'a>(
    dir: &Path,
    certificate: &Certificate,
    inputs: impl IntoIterator<Item = InputLine<'a>>,
) -> Result<Certificate, WriteError> {
    publish(dir, |part| {
        let path = part.join("inputs.csv");
        let file = File::create(&path).map_err(|source| WriteError::Io {
            path: path.clone(),
            source,
        })?;
        let mut encoder = InputsEncoder::new(file);
        let write_all = inputs.into_iter().try_for_each(|line| encoder.push(&line));
        let inputs_blake3 = write_all
            .and_then(|()| encoder.finish())
            .and_then(|(file, digest)| file.sync_all().map(|()| digest))
            .map_err(|source| WriteError::Io { path, source })?;

        let path = part.join("certificate.json");
        let encode = |source| WriteError::Encode {
            path: path.clone(),
            source,
        };
        let mut sealed = Certificate {
            inputs_blake3,
            ..certificate.clone()
        };
        sealed.digest = sealed.computed_digest().map_err(encode)?;
        let json = sealed.to_canonical_json().map_err(encode)?;
        // Nothing is published that cannot be read back.
        serde_json::from_slice::<Certificate>(&json).map_err(encode)?;
        write_json(&path, json)?;
        Ok(sealed)
    })
}

/// Writes `statements.jsonl` and `day.json` into `dir` and gives back the day as sealed. Statements come in order of
/// (participant, currency) with everything but their own digest; count and digests in `day` are filled in here.
///
/// # Errors
/// [`WriteError`]; also when `dir` exists already.
pub fn write_day(
    dir: &Path,
    day: &Day,
    statements: impl IntoIterator<Item = Statement>,
) -> Result<Day, WriteError> {
    publish(dir, |part| {
        let path = part.join("statements.jsonl");
        let io = |source| WriteError::Io {
            path: path.clone(),
            source,
        };
        let encode = |source| WriteError::Encode {
            path: path.clone(),
            source,
        };
        let mut out = BufWriter::new(File::create(&path).map_err(io)?);
        let mut hasher = blake3::Hasher::new();
        let mut count = 0;
        for mut statement in statements {
            statement.digest = statement.computed_digest().map_err(encode)?;
            let mut line = statement.to_canonical_json().map_err(encode)?;
            serde_json::from_slice::<Statement>(&line).map_err(encode)?;
            line.push(b'\n');
            hasher.update(&line);
            out.write_all(&line).map_err(io)?;
            count += 1;
        }
        let file = out.into_inner().map_err(|e| io(e.into_error()))?;
        file.sync_all().map_err(io)?;

        let path = part.join("day.json");
        let encode = |source| WriteError::Encode {
            path: path.clone(),
            source,
        };
        let statements_blake3 = Digest::from(*hasher.finalize().as_bytes());
        let mut sealed = Day {
            statements: count,
            statements_blake3,
            ..day.clone()
        };
        sealed.digest = sealed.computed_digest().map_err(encode)?;
        let json = sealed.to_canonical_json().map_err(encode)?;
        // Nothing is published that cannot be read back.
        serde_json::from_slice::<Day>(&json).map_err(encode)?;
        write_json(&path, json)?;
        Ok(sealed)
    })
}

fn write_json(path: &Path, mut json: Vec<u8>) -> Result<(), WriteError> {
    json.push(b'\n');
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(&json)?;
        file.sync_all()
    };
    write().map_err(|source| WriteError::Io {
        path: path.to_path_buf(),
        source,
    })
}

/// Fills a directory beside `dir` and renames it into place, durably.
fn publish<T>(
    dir: &Path,
    fill: impl FnOnce(&Path) -> Result<T, WriteError>,
) -> Result<T, WriteError> {
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |source| WriteError::Io { path, source }
    };
    if dir.exists() {
        return Err(io(dir)(io::ErrorKind::AlreadyExists.into()));
    }
    let mut part = dir.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    if part.exists() {
        fs::remove_dir_all(&part).map_err(io(&part))?;
    }
    fs::create_dir_all(&part).map_err(io(&part))?;
    let filled = fill(&part)?;
    sync_directory(&part).map_err(io(&part))?;
    fs::rename(&part, dir).map_err(io(dir))?;
    if let Some(parent) = dir.parent() {
        sync_directory(parent).map_err(io(parent))?;
    }
    Ok(filled)
}

fn sync_directory(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
