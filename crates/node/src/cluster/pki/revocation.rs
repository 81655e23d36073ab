//! Who is no longer admitted: a list per authority, in a file of our own from which the signed list is made anew each time.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clearspan_ledger::Timestamp;
use rcgen::{
    CertificateRevocationListParams, KeyIdMethod, RevocationReason, RevokedCertParams, SerialNumber,
};
use rustls::pki_types::CertificateDer;

use super::{
    Authority, AuthorityKind, PkiError, client_of_certificate, node_of_certificate, read,
    read_certificates,
};

/// One certificate that was revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoked {
    /// Its serial number, hexadecimal.
    pub serial: String,
    /// When, in seconds since 1970.
    pub at_s: u64,
    /// Whose it was.
    pub name: String,
}

impl AuthorityKind {
    /// The signed list of its certificates that are no longer admitted.
    #[must_use]
    pub fn revocation_list_path(self, dir: &Path) -> PathBuf {
        dir.join(format!("{}.crl", self.name()))
    }

    fn revoked_path(self, dir: &Path) -> PathBuf {
        dir.join(format!("{}-revoked.txt", self.name()))
    }
}

/// Which authority issued a certificate, by whom it is for, with its serial number and name.
///
/// # Errors
/// [`PkiError::Nobody`] when it is no certificate of a node, participant, operator or auditor.
pub fn describe(path: &Path) -> Result<(AuthorityKind, String, String), PkiError> {
    let nobody = || PkiError::Nobody(path.to_owned());
    let certificate = read_certificates(path)?
        .into_iter()
        .next()
        .ok_or_else(nobody)?;
    let (kind, name) = if let Some(node) = node_of_certificate(&certificate) {
        (AuthorityKind::Nodes, format!("node {node}"))
    } else {
        let client = client_of_certificate(&certificate).ok_or_else(nobody)?;
        (AuthorityKind::Clients, client.to_string())
    };
    let serial = serial_of(&certificate).ok_or_else(nobody)?;
    Ok((kind, serial, name))
}

fn serial_of(certificate: &CertificateDer<'_>) -> Option<String> {
    let parsed = webpki::EndEntityCert::try_from(certificate).ok()?;
    let mut text = String::new();
    for byte in parsed.serial() {
        let _ = write!(text, "{byte:02x}");
    }
    Some(text)
}

/// What was revoked so far.
///
/// # Errors
/// [`PkiError::RevokedLine`] when the file was changed by hand and a line cannot be read.
pub fn revoked(dir: &Path, kind: AuthorityKind) -> Result<Vec<Revoked>, PkiError> {
    let path = kind.revoked_path(dir);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = read(&path)?;
    let line = |(number, line): (usize, &str)| {
        let mut words = line.splitn(3, ' ');
        let parsed = (|| {
            let serial = words.next().filter(|serial| bytes_of(serial).is_some())?;
            Some(Revoked {
                serial: serial.to_owned(),
                at_s: words.next()?.parse().ok()?,
                name: words.next()?.to_owned(),
            })
        })();
        parsed.ok_or_else(|| PkiError::RevokedLine {
            path: path.clone(),
            line: number + 1,
        })
    };
    text.lines().enumerate().map(line).collect()
}

fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    if hex.is_empty() || !hex.len().is_multiple_of(2) || !hex.is_ascii() {
        return None;
    }
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok())
        .collect()
}

impl Authority {
    /// Notes certificates as revoked and writes the authority's signed list anew, which counts for so long. Revoked again,
    /// or with none, it only renews the list.
    ///
    /// # Errors
    /// [`PkiError`]; the list that stood stays when the new one cannot be written.
    pub fn revoke(
        &self,
        dir: &Path,
        kind: AuthorityKind,
        serials: &[(String, String)],
        now: Timestamp,
        validity: Duration,
    ) -> Result<PathBuf, PkiError> {
        let now_s = now.ns() / 1_000_000_000;
        let mut all = revoked(dir, kind)?;
        let mut lines = String::new();
        for (serial, name) in serials {
            if all.iter().all(|known| known.serial != *serial) {
                let _ = writeln!(lines, "{serial} {now_s} {name}");
                all.push(Revoked {
                    serial: serial.clone(),
                    at_s: now_s,
                    name: name.clone(),
                });
            }
        }
        let fault = |path: &Path| {
            let path = path.to_owned();
            move |source| PkiError::Io {
                step: "write",
                path,
                source,
            }
        };
        if !lines.is_empty() {
            let path = kind.revoked_path(dir);
            let append = || {
                let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
                file.write_all(lines.as_bytes())?;
                file.sync_all()
            };
            append().map_err(fault(&path))?;
        }
        let text = self.sign(&all, now_s, validity)?;
        let path = kind.revocation_list_path(dir);
        write_over(&path, text.as_bytes(), 0o644).map_err(fault(&path))?;
        Ok(path)
    }

    fn sign(&self, all: &[Revoked], now_s: u64, validity: Duration) -> Result<String, PkiError> {
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        let at = |seconds: u64| epoch + Duration::from_secs(seconds);
        let revoked_certs = all
            .iter()
            .filter_map(|revoked| {
                Some(RevokedCertParams {
                    serial_number: SerialNumber::from(bytes_of(&revoked.serial)?),
                    revocation_time: at(revoked.at_s),
                    reason_code: Some(RevocationReason::Unspecified),
                    invalidity_date: None,
                })
            })
            .collect();
        let list = CertificateRevocationListParams {
            // Clocks of other machines may be behind.
            this_update: at(now_s.saturating_sub(super::BACKDATED.as_secs())),
            next_update: at(now_s.saturating_add(validity.as_secs())),
            // Rises with every list: the clock does, and lists of one second have the same content or more.
            crl_number: SerialNumber::from(now_s),
            issuing_distribution_point: None,
            revoked_certs,
            key_identifier_method: KeyIdMethod::Sha256,
        };
        Ok(list.signed_by(&self.issuer)?.pem()?)
    }
}

/// Whole or not at all: a node may be reading it.
///
/// # Errors
/// As the system says.
pub fn write_over(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let part = path.with_extension("part");
    // One that an interruption left may have another mode.
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&part, path)
}
