//! Certificates: two authorities, what they issue, and what is accepted.
//!
//! Nodes have an authority of their own, so that no participant's or operator's certificate opens the door between nodes,
//! and no node's certificate speaks for a participant. A certificate carries one name that says who it is:
//! `<node id>.node.clearspan`, `<bic>.participant.clearspan`, `<name>.operator.clearspan` or `<name>.auditor.clearspan`; a node's also carries the
//! names and addresses under which clients reach it. All keys are ECDSA P-256, all connections TLS 1.3 without resumption:
//! every one is verified anew, so new certificates, authorities and revocation lists count from the next connection on.

mod der;
mod revocation;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clearspan_ledger::{Bic, Timestamp};
use clearspan_storage::{ClusterId, NodeId};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use rustls::client::{ClientConfig, Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ServerConfig, WebPkiClientVerifier};
use rustls::{RootCertStore, version};

pub use revocation::{Revoked, describe, revoked, write_over};

/// What nodes say they speak when a connection is opened; a client of the public API does not get that far.
pub const LINK_PROTOCOL: &[u8] = b"clearspan-node/1";

const NODE_SUFFIX: &str = ".node.clearspan";
const PARTICIPANT_SUFFIX: &str = ".participant.clearspan";
const OPERATOR_SUFFIX: &str = ".operator.clearspan";
const AUDITOR_SUFFIX: &str = ".auditor.clearspan";
/// The end of every name that says who somebody is.
const SUFFIX: &str = ".clearspan";

const DAY: Duration = Duration::from_secs(86_400);
/// Clocks of other machines may be behind.
const BACKDATED: Duration = DAY;
/// An authority outlives the hardware.
pub const AUTHORITY_VALIDITY: Duration = Duration::from_secs(86_400 * 3653);
/// Certificates are renewed without a restart; two years leave room for who does it by hand.
const VALIDITY: Duration = Duration::from_secs(86_400 * 730);
/// An operator's name in a DNS label.
const OPERATOR_NAME_MAX_BYTES: usize = 63;

/// Why certificates cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A file cannot be written or read.
    #[error("{step} {path}")]
    Io {
        /// Which step.
        step: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file holds no certificate or key.
    #[error("read the certificate or key in {path}: {source}")]
    Pem {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: rustls::pki_types::pem::Error,
    },
    /// A certificate cannot be made.
    #[error("make a certificate")]
    Make(#[from] rcgen::Error),
    /// TLS does not take certificate and key.
    #[error("set up TLS with the certificates in {path}: {why}")]
    Tls {
        /// Where they lie.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Certificate and key of an authority, or the cluster, do not belong together.
    #[error("{path} is not the certificate of this cluster's authority with this key")]
    Authority {
        /// The certificate's file.
        path: PathBuf,
    },
    /// A key that everybody on the machine can read.
    #[error("{0} is a key that everybody can read or change; set its mode to 0600")]
    KeyMode(PathBuf),
    /// A certificate of nobody that could be revoked.
    #[error("{0} is no certificate of a node, participant, operator or auditor")]
    Nobody(PathBuf),
    /// The list of what was revoked was changed by hand.
    #[error(
        "{path}: line {line} is not `serial seconds name`; restore the file, it is what lists are made from"
    )]
    RevokedLine {
        /// Which file.
        path: PathBuf,
        /// From 1.
        line: usize,
    },
    /// A name that cannot be in a certificate.
    #[error("{0:?} is no operator's name: give 1 to 63 small letters, digits and hyphens")]
    OperatorName(String),
}

/// Whose certificates an authority issues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorityKind {
    /// Nodes.
    Nodes,
    /// Participants and operators.
    Clients,
}

impl AuthorityKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Clients => "clients",
        }
    }

    /// The authority's certificate.
    #[must_use]
    pub fn certificate_path(self, dir: &Path) -> PathBuf {
        dir.join(format!("{}-ca.crt", self.name()))
    }

    /// The authority's key.
    #[must_use]
    pub fn key_path(self, dir: &Path) -> PathBuf {
        dir.join(format!("{}-ca.key", self.name()))
    }

    fn params(self, cluster: ClusterId) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(
            DnType::CommonName,
            format!("Clearspan {} {cluster}", self.name()),
        );
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params
    }
}

/// An authority with its key.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// A certificate and its key, as PEM.
pub struct Issued {
    certificate: String,
    key: KeyPair,
}

impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issued")
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

impl Issued {
    /// Writes certificate and key; the key is readable by its owner alone.
    ///
    /// # Errors
    /// [`PkiError::Io`]; nothing is overwritten.
    pub fn write(&self, certificate: &Path, key: &Path) -> Result<(), PkiError> {
        write_new(key, self.key.serialize_pem().as_bytes(), 0o600)?;
        write_new(certificate, self.certificate.as_bytes(), 0o644)
    }

    /// The same over files that are there. A node that reads them meanwhile finds that they do not belong together, and
    /// reads again.
    ///
    /// # Errors
    /// [`PkiError::Io`].
    pub fn replace(&self, certificate: &Path, key: &Path) -> Result<(), PkiError> {
        let fault = |path: &Path| {
            let path = path.to_owned();
            move |source| PkiError::Io {
                step: "write",
                path,
                source,
            }
        };
        write_over(key, self.key.serialize_pem().as_bytes(), 0o600).map_err(fault(key))?;
        write_over(certificate, self.certificate.as_bytes(), 0o644).map_err(fault(certificate))
    }
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> Result<(), PkiError> {
    let write = || {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|source| PkiError::Io {
        step: "write",
        path: path.to_owned(),
        source,
    })
}

fn read(path: &Path) -> Result<String, PkiError> {
    fs::read_to_string(path).map_err(|source| PkiError::Io {
        step: "read",
        path: path.to_owned(),
        source,
    })
}

fn set_validity(params: &mut CertificateParams, now: Timestamp, validity: Duration) {
    let now = Duration::from_secs(now.ns() / 1_000_000_000);
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(BACKDATED);
    params.not_after = epoch + (now + validity);
}

impl Authority {
    /// Makes an authority and writes its certificate and key into a directory.
    ///
    /// # Errors
    /// [`PkiError`]; nothing is overwritten.
    pub fn create(
        dir: &Path,
        kind: AuthorityKind,
        cluster: ClusterId,
        now: Timestamp,
    ) -> Result<Self, PkiError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = kind.params(cluster);
        set_validity(&mut params, now, AUTHORITY_VALIDITY);
        let certificate = params.self_signed(&key)?;
        write_new(&kind.key_path(dir), key.serialize_pem().as_bytes(), 0o600)?;
        write_new(
            &kind.certificate_path(dir),
            certificate.pem().as_bytes(),
            0o644,
        )?;
        Ok(Self {
            issuer: Issuer::new(params, key),
        })
    }

    /// Opens one that was made before.
    ///
    /// # Errors
    /// [`PkiError::Authority`] when key, certificate and cluster do not belong together.
    pub fn open(dir: &Path, kind: AuthorityKind, cluster: ClusterId) -> Result<Self, PkiError> {
        let key = KeyPair::from_pem(&read(&kind.key_path(dir))?)?;
        let path = kind.certificate_path(dir);
        let certificate = read_certificates(&path)?.into_iter().next();
        // What is issued names its issuer as `params` does: it must be the name that stands in the authority's own
        // certificate, together with the key's public half.
        let name = format!("Clearspan {} {cluster}", kind.name());
        let belongs = certificate.is_some_and(|certificate| {
            contains(&certificate, key.public_key_raw()) && contains(&certificate, name.as_bytes())
        });
        if !belongs {
            return Err(PkiError::Authority { path });
        }
        Ok(Self {
            issuer: Issuer::new(kind.params(cluster), key),
        })
    }

    /// A node's certificate; `hosts` are the names and addresses under which clients reach it, besides those of this
    /// machine.
    ///
    /// # Errors
    /// [`PkiError::Make`] when a host is neither a name nor an address.
    pub fn issue_node(
        &self,
        node: NodeId,
        hosts: &[String],
        now: Timestamp,
    ) -> Result<Issued, PkiError> {
        let mut names = vec![node_name(node)];
        for host in ["localhost", "127.0.0.1", "::1"]
            .into_iter()
            .map(str::to_owned)
            .chain(hosts.iter().cloned())
        {
            if !names.contains(&host) {
                names.push(host);
            }
        }
        let usages = [
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        self.issue(names, &usages, now)
    }

    /// A participant's certificate.
    ///
    /// # Errors
    /// [`PkiError::Make`].
    pub fn issue_participant(&self, bic: Bic, now: Timestamp) -> Result<Issued, PkiError> {
        let name = format!("{}{PARTICIPANT_SUFFIX}", bic.as_str().to_ascii_lowercase());
        self.issue(vec![name], &[ExtendedKeyUsagePurpose::ClientAuth], now)
    }

    /// An operator's certificate.
    ///
    /// # Errors
    /// [`PkiError::OperatorName`] when the name cannot be in a certificate.
    pub fn issue_operator(&self, name: &str, now: Timestamp) -> Result<Issued, PkiError> {
        if !is_operator_name(name) {
            return Err(PkiError::OperatorName(name.to_owned()));
        }
        let name = format!("{name}{OPERATOR_SUFFIX}");
        self.issue(vec![name], &[ExtendedKeyUsagePurpose::ClientAuth], now)
    }

    /// An auditor's certificate: it reads everything and changes nothing.
    ///
    /// # Errors
    /// [`PkiError::OperatorName`] when the name cannot be in a certificate.
    pub fn issue_auditor(&self, name: &str, now: Timestamp) -> Result<Issued, PkiError> {
        if !is_operator_name(name) {
            return Err(PkiError::OperatorName(name.to_owned()));
        }
        let name = format!("{name}{AUDITOR_SUFFIX}");
        self.issue(vec![name], &[ExtendedKeyUsagePurpose::ClientAuth], now)
    }

    fn issue(
        &self,
        names: Vec<String>,
        usages: &[ExtendedKeyUsagePurpose],
        now: Timestamp,
    ) -> Result<Issued, PkiError> {
        let subject = names.first().cloned().unwrap_or_default();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, subject);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = usages.to_vec();
        params.use_authority_key_identifier_extension = true;
        set_validity(&mut params, now, VALIDITY);
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Issued { certificate, key })
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes
        .windows(part.len().max(1))
        .any(|window| window == part)
}

fn is_operator_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=OPERATOR_NAME_MAX_BYTES).contains(&name.len())
        && name.bytes().all(allowed)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// The name in a node's certificate that says which node it is.
#[must_use]
pub fn node_name(node: NodeId) -> String {
    format!("{node}{NODE_SUFFIX}")
}

/// The one name in a certificate that says who somebody is. None when there is none, or several; wildcards are nobody.
fn clearspan_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let parsed = webpki::EndEntityCert::try_from(certificate).ok()?;
    let mut names = parsed
        .valid_dns_names()
        .filter(|name| name.to_ascii_lowercase().ends_with(SUFFIX));
    let name = names.next()?;
    if names.next().is_some() || name.contains('*') {
        return None;
    }
    // What is listed must also be what verification by name accepts.
    let server_name = rustls::pki_types::ServerName::try_from(name).ok()?;
    parsed.verify_is_valid_for_subject_name(&server_name).ok()?;
    Some(name.to_owned())
}

/// Which node a certificate is for. The certificate's chain must have been verified.
#[must_use]
pub fn node_of_certificate(certificate: &CertificateDer<'_>) -> Option<NodeId> {
    let name = clearspan_name(certificate)?;
    let node = NodeId::parse(name.strip_suffix(NODE_SUFFIX)?)?;
    // One spelling only.
    (node_name(node) == name).then_some(node)
}

/// Whom a client's certificate is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientName {
    /// A participant, by its code.
    Participant(Bic),
    /// An operator, by name.
    Operator(String),
    /// An auditor, by name.
    Auditor(String),
}

impl std::fmt::Display for ClientName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Participant(bic) => write!(f, "participant {bic}"),
            Self::Operator(name) => write!(f, "operator {name}"),
            Self::Auditor(name) => write!(f, "auditor {name}"),
        }
    }
}

/// Who opened a connection: whom its certificate is for, and the key that proved it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The name in the certificate.
    pub name: ClientName,
    /// A fingerprint of its public key: two certificates with one key have one.
    pub key: u128,
}

/// Who showed this certificate. Its chain must have been verified.
#[must_use]
pub fn shown_by(certificate: &CertificateDer<'_>) -> Option<Shown> {
    let parsed = webpki::EndEntityCert::try_from(certificate).ok()?;
    let digest = blake3::hash(parsed.subject_public_key_info().as_ref());
    let (first, _) = digest.as_bytes().split_first_chunk()?;
    Some(Shown {
        name: client_of_certificate(certificate)?,
        key: u128::from_be_bytes(*first),
    })
}

/// Whom a client's certificate is for. The certificate's chain must have been verified.
#[must_use]
pub fn client_of_certificate(certificate: &CertificateDer<'_>) -> Option<ClientName> {
    let name = clearspan_name(certificate)?;
    if let Some(code) = name.strip_suffix(PARTICIPANT_SUFFIX) {
        let bic = Bic::parse(code.to_ascii_uppercase().as_bytes())?;
        return (bic.as_str().to_ascii_lowercase() == code).then_some(ClientName::Participant(bic));
    }
    if let Some(auditor) = name.strip_suffix(AUDITOR_SUFFIX) {
        return is_operator_name(auditor).then(|| ClientName::Auditor(auditor.to_owned()));
    }
    let operator = name.strip_suffix(OPERATOR_SUFFIX)?;
    is_operator_name(operator).then(|| ClientName::Operator(operator.to_owned()))
}

/// Where a node's certificates lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The node's certificate, with any between it and the authority.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The nodes' authority; several certificates while one replaces another.
    pub nodes_ca: PathBuf,
    /// The participants' and operators' authority.
    pub clients_ca: PathBuf,
    /// Nodes that are no longer admitted: a list of every authority in `nodes_ca`. Without one nobody is revoked.
    pub nodes_crl: Option<PathBuf>,
    /// The same of participants, operators and auditors.
    pub clients_crl: Option<PathBuf>,
}

impl TlsFiles {
    /// Every file, with its name in the settings.
    pub(super) fn paths(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let lists = [
            ("nodes_crl", self.nodes_crl.as_deref()),
            ("clients_crl", self.clients_crl.as_deref()),
        ];
        [
            ("certificate", self.certificate.as_path()),
            ("key", self.key.as_path()),
            ("nodes_ca", self.nodes_ca.as_path()),
            ("clients_ca", self.clients_ca.as_path()),
        ]
        .into_iter()
        .chain(
            lists
                .into_iter()
                .filter_map(|(what, path)| Some((what, path?))),
        )
    }
}

/// Until when something counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// Its name in the settings.
    pub what: &'static str,
    /// Its end, in seconds since 1970; of a file with several the first.
    pub at_s: u64,
}

/// Until when certificates and revocation lists count.
///
/// # Errors
/// [`PkiError`] names the file.
pub(super) fn expiries(files: &TlsFiles) -> Result<Vec<Expiry>, PkiError> {
    let mut found = Vec::new();
    for (what, path) in files.paths() {
        let first = match what {
            "key" => continue,
            "nodes_crl" | "clients_crl" => {
                let lists = read_lists(path)?;
                lists
                    .iter()
                    .filter_map(|list| der::next_update_s(list))
                    .min()
            }
            _ => {
                let certificates = read_certificates(path)?;
                let ends = certificates.iter().filter_map(|one| der::not_after_s(one));
                ends.min()
            }
        };
        found.extend(first.map(|at_s| Expiry { what, at_s }));
    }
    Ok(found)
}

/// TLS between nodes.
#[derive(Clone, Debug)]
pub struct LinkTls {
    /// For connections that this node opens.
    pub client: Arc<ClientConfig>,
    /// For connections that it accepts.
    pub server: Arc<ServerConfig>,
}

impl LinkTls {
    /// Reads the files. To take up new ones, read again and give the result to [`crate::links::Links::set_tls`]: when
    /// something is wrong with them the old ones go on.
    ///
    /// # Errors
    /// [`PkiError`] names the file.
    pub fn load(files: &TlsFiles) -> Result<Self, PkiError> {
        let mut client = client_config_with(
            &files.certificate,
            &files.key,
            &files.nodes_ca,
            files.nodes_crl.as_deref(),
        )?;
        client.alpn_protocols = vec![LINK_PROTOCOL.to_vec()];
        let (mut server, _) = server_config(files, &files.nodes_ca, files.nodes_crl.as_deref())?;
        server.alpn_protocols = vec![LINK_PROTOCOL.to_vec()];
        Ok(Self {
            client: Arc::new(client),
            server: Arc::new(server),
        })
    }
}

/// TLS for the door at which participants and operators come in: the node shows its certificate, clients must show one of
/// theirs. Whose it is: [`client_of_certificate`]. With it goes what verifies a client's chain.
pub(super) fn public_server(
    files: &TlsFiles,
) -> Result<(Arc<ServerConfig>, Arc<dyn ClientCertVerifier>), PkiError> {
    let (mut server, verifier) =
        server_config(files, &files.clients_ca, files.clients_crl.as_deref())?;
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((Arc::new(server), verifier))
}

/// TLS for a participant or operator: it shows its certificate and believes the nodes' authority.
///
/// # Errors
/// [`PkiError`] names the file.
pub fn client_config(
    certificate: &Path,
    key: &Path,
    nodes_ca: &Path,
) -> Result<Arc<ClientConfig>, PkiError> {
    client_config_with(certificate, key, nodes_ca, None).map(Arc::new)
}

fn client_config_with(
    certificate: &Path,
    key: &Path,
    nodes_ca: &Path,
    nodes_crl: Option<&Path>,
) -> Result<ClientConfig, PkiError> {
    let fault = |error: rustls::Error| tls_error(certificate, &error);
    let mut verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots(nodes_ca)?), provider());
    if let Some(path) = nodes_crl {
        verifier = verifier
            .with_crls(read_lists(path)?)
            .enforce_revocation_expiration();
    }
    let verifier = verifier.build().map_err(|error| PkiError::Tls {
        path: nodes_crl.unwrap_or(nodes_ca).to_owned(),
        why: error.to_string(),
    })?;
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&version::TLS13])
        .map_err(fault)?
        .with_webpki_verifier(verifier)
        .with_client_auth_cert(read_certificates(certificate)?, read_key(key)?)
        .map_err(fault)?;
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// A list that is named must be there, of every authority, and must not be past its time: otherwise nobody is admitted.
fn server_config(
    files: &TlsFiles,
    clients: &Path,
    list: Option<&Path>,
) -> Result<(ServerConfig, Arc<dyn ClientCertVerifier>), PkiError> {
    let fault = |error: rustls::Error| tls_error(&files.certificate, &error);
    let mut verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots(clients)?), provider());
    if let Some(path) = list {
        verifier = verifier
            .with_crls(read_lists(path)?)
            .enforce_revocation_expiration();
    }
    let verifier = verifier.build().map_err(|error| PkiError::Tls {
        path: list.unwrap_or(clients).to_owned(),
        why: error.to_string(),
    })?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&version::TLS13])
        .map_err(fault)?
        .with_client_cert_verifier(verifier.clone())
        .with_single_cert(
            read_certificates(&files.certificate)?,
            read_key(&files.key)?,
        )
        .map_err(fault)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok((config, verifier))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn tls_error(path: &Path, error: &rustls::Error) -> PkiError {
    PkiError::Tls {
        path: path.to_owned(),
        why: error.to_string(),
    }
}

fn roots(path: &Path) -> Result<RootCertStore, PkiError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| tls_error(path, &error))?;
    }
    Ok(roots)
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, PkiError> {
    let text = read(path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let fault = |source| PkiError::Pem {
        path: path.to_owned(),
        source,
    };
    let certificates = certificates.map_err(fault)?;
    if certificates.is_empty() {
        return Err(fault(rustls::pki_types::pem::Error::NoItemsFound));
    }
    Ok(certificates)
}

fn read_lists(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, PkiError> {
    let text = read(path)?;
    let fault = |source| PkiError::Pem {
        path: path.to_owned(),
        source,
    };
    let lists: Result<Vec<_>, _> =
        CertificateRevocationListDer::pem_slice_iter(text.as_bytes()).collect();
    let lists = lists.map_err(fault)?;
    if lists.is_empty() {
        return Err(fault(rustls::pki_types::pem::Error::NoItemsFound));
    }
    Ok(lists)
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, PkiError> {
    let fault = |source| PkiError::Io {
        step: "read",
        path: path.to_owned(),
        source,
    };
    let mode = fs::metadata(path).map_err(fault)?.permissions().mode();
    // A group may be meant, as service managers hand keys over; others never are.
    if mode & 0o007 != 0 {
        return Err(PkiError::KeyMode(path.to_owned()));
    }
    PrivateKeyDer::from_pem_slice(read(path)?.as_bytes()).map_err(|source| PkiError::Pem {
        path: path.to_owned(),
        source,
    })
}
