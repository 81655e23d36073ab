//! A file of one JSON object in its canonical form: compact, fields in order, one line end behind it.

use crate::finding::{Finding, Findings};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads `dir/file`, of at most `len_bytes_max`; none when it says nothing that can be checked.
pub(crate) fn read_object<T: Serialize + DeserializeOwned>(
    dir: &Path,
    file: &str,
    len_bytes_max: u64,
    findings: &mut Findings,
) -> Option<T> {
    let name = || file.to_owned();
    let bytes = match read_bounded(&dir.join(file), len_bytes_max) {
        Ok(bytes) => bytes,
        Err(e) => {
            findings.push(Finding::Unreadable {
                file: name(),
                cause: e.to_string(),
            });
            return None;
        }
    };
    let object: T = match serde_json::from_slice(&bytes) {
        Ok(object) => object,
        Err(e) => {
            findings.push(Finding::Malformed {
                file: name(),
                line: e.line() as u64,
                cause: e.to_string(),
            });
            return None;
        }
    };
    let canonical = serde_json::to_vec(&object).ok();
    if canonical.as_deref() != bytes.strip_suffix(b"\n") {
        findings.push(Finding::NotCanonical { file: name() });
    }
    Some(object)
}

fn read_bounded(path: &Path, len_bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(len_bytes_max + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > len_bytes_max {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("longer than {len_bytes_max} bytes"),
        ));
    }
    Ok(bytes)
}
