//! Certificates, keys, authorities and revocation lists of a running node: taken up anew when their files change or the
//! process gets SIGHUP. When something is wrong with the new ones, those that stand go on.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use clearspan_ledger::Timestamp;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use tokio::sync::watch;

use super::pki::{Expiry, LinkTls, PkiError, TlsFiles, expiries, public_server};

/// What the door for participants and operators needs.
#[derive(Clone)]
pub struct PublicTls {
    /// For new connections.
    pub config: Arc<ServerConfig>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl fmt::Debug for PublicTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicTls").finish_non_exhaustive()
    }
}

impl PublicTls {
    /// Reads the files.
    ///
    /// # Errors
    /// [`PkiError`] names the file.
    pub fn load(files: &TlsFiles) -> Result<Self, PkiError> {
        let (config, verifier) = public_server(files)?;
        Ok(Self { config, verifier })
    }

    /// Whether a client that showed this chain would be admitted now.
    ///
    /// # Errors
    /// Why not: revoked, expired, of an authority that no longer counts.
    pub fn admits(&self, chain: &[CertificateDer<'_>]) -> Result<(), rustls::Error> {
        let (own, between) = chain
            .split_first()
            .ok_or(rustls::Error::NoCertificatesPresented)?;
        self.verifier
            .verify_client_cert(own, between, UnixTime::now())
            .map(drop)
    }
}

/// How the files look from outside: length, number and time of each. Times alone stand still for some milliseconds.
type Looks = Vec<Option<(u64, u64, Option<SystemTime>)>>;

struct State {
    looks: Looks,
    expiries: Vec<Expiry>,
}

/// A node's certificates while it runs.
pub struct Certificates {
    files: TlsFiles,
    public: watch::Sender<PublicTls>,
    state: Mutex<State>,
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl Certificates {
    /// Reads the files.
    ///
    /// # Errors
    /// [`PkiError`] names the file. A revocation list that the settings name must be there.
    pub fn load(files: TlsFiles) -> Result<(Self, LinkTls), PkiError> {
        // Looked at first: what changes while it is read is read again.
        let looks = looks(&files);
        let links = LinkTls::load(&files)?;
        let public = watch::Sender::new(PublicTls::load(&files)?);
        let state = Mutex::new(State {
            looks,
            expiries: expiries(&files)?,
        });
        let certificates = Self {
            files,
            public,
            state,
        };
        Ok((certificates, links))
    }

    /// What the public door uses, now and after every change.
    #[must_use]
    pub fn public(&self) -> watch::Receiver<PublicTls> {
        self.public.subscribe()
    }

    /// Whole days until each ends; less than none when it has.
    #[must_use]
    pub fn days_left(&self, now: Timestamp) -> Vec<(&'static str, i64)> {
        let now_s = i64::try_from(now.ns() / 1_000_000_000).unwrap_or(i64::MAX);
        let days = |expiry: Expiry| {
            let at_s = i64::try_from(expiry.at_s).unwrap_or(i64::MAX);
            (expiry.what, at_s.saturating_sub(now_s).div_euclid(86_400))
        };
        self.lock().expiries.iter().copied().map(days).collect()
    }

    /// Reads the files again when they look different from the last time that they were read, or `forced`. The public door
    /// has the new ones at once and ends connections that would no longer be admitted; links take what is given back.
    ///
    /// # Errors
    /// [`PkiError`] names the file; what stood goes on. It is not tried again before the files change once more.
    pub fn reload(&self, forced: bool) -> Result<Option<LinkTls>, PkiError> {
        let looks = looks(&self.files);
        {
            let mut state = self.lock();
            if state.looks == looks && !forced {
                return Ok(None);
            }
            state.looks = looks;
        }
        let links = LinkTls::load(&self.files)?;
        let public = PublicTls::load(&self.files)?;
        let expiries = expiries(&self.files)?;
        self.lock().expiries = expiries;
        self.public.send_replace(public);
        Ok(Some(links))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn looks(files: &TlsFiles) -> Looks {
    let look = |path: &Path| {
        let found = fs::metadata(path).ok()?;
        Some((found.len(), found.ino(), found.modified().ok()))
    };
    files.paths().map(|(_, path)| look(path)).collect()
}
