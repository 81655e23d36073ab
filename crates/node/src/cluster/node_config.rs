//! `node.toml`: one node's own settings. Relative paths are from the file's directory.

mod http;
mod rate;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clearspan_storage::{Layout, LogOptions, PackageOptions};
use serde::Deserialize;
use toml::Spanned;

use super::ConfigError;
use super::definition::{
    Definition, FileNode, Node, NodeKind, check_address, check_name, check_node,
};
use super::keys::{self, Fault, Key, NODE_KEYS};
use super::pki::TlsFiles;
use crate::api::HttpLimits;
use crate::links::{LinkLimits, PeerAddress};
use crate::rate::RateLimits;
use crate::toml_fault::{explain, line_of};

/// One node's settings, checked, with its cluster's definition.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The cluster.
    pub definition: Definition,
    /// The definition's file.
    pub definition_path: PathBuf,
    /// This node in it.
    pub node: Node,
    /// Where its data lies.
    pub layout: Layout,
    /// Its certificates.
    pub tls: TlsFiles,
    /// The log's files.
    pub log: LogOptions,
    /// The package store.
    pub packages: PackageOptions,
    /// A snapshot of a shard is taken once this many bytes were applied since its last one.
    pub snapshot_after_bytes: u64,
    /// How long a leader may be silent before another is elected, in nanoseconds.
    pub election_ns: u64,
    /// How fast snapshots and packages leave for nodes that catch up; 0 is no limit.
    pub catch_up_bytes_per_s: u64,
    /// Its connections to other nodes.
    pub links: LinkLimits,
    /// How much participants may hand in at it.
    pub rate: RateLimits,
    /// What its public interface holds against clients.
    pub http: HttpLimits,
    /// The other founders and where it dials them.
    pub peers: Vec<PeerAddress>,
    /// Other addresses at which nodes are dialled, by name.
    pub peer_addresses: BTreeMap<String, String>,
    /// Where it listens for other nodes; its address in the definition, unless something stands between.
    pub peer_listen: String,
    /// Where it listens for participants and operators.
    pub client_listen: String,
    /// Where it listens for metrics and the console, if it does.
    pub http_listen: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    definition: PathBuf,
    node: Spanned<String>,
    data: PathBuf,
    log_data: Option<PathBuf>,
    package_data: Option<PathBuf>,
    tls: FileTls,
    joined: Option<Spanned<FileJoined>>,
    #[serde(default)]
    listen: FileListen,
    #[serde(default)]
    log: FileLog,
    #[serde(default)]
    packages: FilePackages,
    #[serde(default)]
    limits: FileLimits,
    #[serde(default)]
    rate: rate::FileRate,
    #[serde(default)]
    http: http::FileHttp,
    #[serde(default)]
    peer_address: BTreeMap<String, Spanned<String>>,
}

/// A node that came after the founding: what the definition says of founders.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileJoined {
    site: String,
    kind: NodeKind,
    id: String,
    member: u64,
    peer: String,
    client: String,
    http: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTls {
    certificate: PathBuf,
    key: PathBuf,
    nodes_ca: PathBuf,
    clients_ca: PathBuf,
    nodes_crl: Option<PathBuf>,
    clients_crl: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileListen {
    peer: Option<Spanned<String>>,
    client: Option<Spanned<String>>,
    http: Option<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileLog {
    segment_mib: Option<Spanned<i64>>,
    purge_above_mib: Option<Spanned<i64>>,
    prefill_mib: Option<Spanned<i64>>,
    reserve_mib: Option<Spanned<i64>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FilePackages {
    cache_mib: Option<Spanned<i64>>,
    reserve_mib: Option<Spanned<i64>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileLimits {
    snapshot_after_mib: Option<Spanned<i64>>,
    election_ms: Option<Spanned<i64>>,
    catch_up_mib_per_s: Option<Spanned<i64>>,
    bulk_queue_mib: Option<Spanned<i64>>,
    urgent_queue_mib: Option<Spanned<i64>>,
    inbound_mib: Option<Spanned<i64>>,
    socket_buffer_mib: Option<Spanned<i64>>,
}

impl NodeConfig {
    /// Reads and checks a node's settings and the definition that they name.
    ///
    /// # Errors
    /// [`ConfigError`] names the file and line and says what to do.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        let file: File = toml::from_str(&text).map_err(|fault| {
            let (line, what) = explain(&text, &fault, NODE_KEYS);
            ConfigError::Value {
                path: path.to_owned(),
                line,
                what,
            }
        })?;
        let dir = path.parent().unwrap_or(Path::new(""));
        let definition_path = dir.join(&file.definition);
        let definition = Definition::read(&definition_path)?;
        Self::check(file, dir, definition, definition_path).map_err(|(offset, what)| {
            ConfigError::Value {
                path: path.to_owned(),
                line: line_of(&text, offset),
                what,
            }
        })
    }

    fn check(
        file: File,
        dir: &Path,
        mut definition: Definition,
        definition_path: PathBuf,
    ) -> Result<Self, Fault> {
        let name = file.node.get_ref();
        let node = match file.joined {
            Some(joined) => {
                let offset = joined.span().start;
                joined_node(name, joined.into_inner(), &mut definition)
                    .map_err(|what| (offset, what))?
            }
            None => definition.node(name).cloned().ok_or_else(|| {
                let what = format!(
                    "{} has no node {name:?}, and there is no [joined]",
                    definition_path.display()
                );
                (file.node.span().start, what)
            })?,
        };
        let mut peers = definition.peers_of(node.member);
        // Also of nodes that are not founders.
        let mut peer_addresses = BTreeMap::new();
        for (other, address) in &file.peer_address {
            let offset = address.span().start;
            check_name("node", other).map_err(|what| (offset, what))?;
            check_address("peer", address.get_ref()).map_err(|what| (offset, what))?;
            if *other == node.name {
                return Err((offset, format!("there is no other node {other:?}")));
            }
            if let Some(founder) = definition.node(other) {
                for peer in &mut peers {
                    if peer.member == founder.member {
                        peer.address.clone_from(address.get_ref());
                    }
                }
            }
            peer_addresses.insert(other.clone(), address.get_ref().clone());
        }
        let listen = |what: &str, setting: Option<&Spanned<String>>| match setting {
            Some(address) => check_address(what, address.get_ref())
                .map(|()| Some(address.get_ref().clone()))
                .map_err(|fault| (address.span().start, fault)),
            None => Ok(None),
        };
        let peer_listen = listen("peer", file.listen.peer.as_ref())?;
        let client_listen = listen("client", file.listen.client.as_ref())?;
        let http_listen = listen("http", file.listen.http.as_ref())?;
        let mut layout = Layout::under(dir.join(&file.data));
        if let Some(log) = &file.log_data {
            layout.log = dir.join(log);
        }
        if let Some(packages) = &file.package_data {
            layout.packages = dir.join(packages);
        }
        Ok(Self {
            layout,
            tls: TlsFiles {
                certificate: dir.join(&file.tls.certificate),
                key: dir.join(&file.tls.key),
                nodes_ca: dir.join(&file.tls.nodes_ca),
                clients_ca: dir.join(&file.tls.clients_ca),
                nodes_crl: file.tls.nodes_crl.as_ref().map(|list| dir.join(list)),
                clients_crl: file.tls.clients_crl.as_ref().map(|list| dir.join(list)),
            },
            log: log_options(&file.log)?,
            packages: package_options(&file.packages)?,
            snapshot_after_bytes: keys::SNAPSHOT_AFTER
                .bytes(file.limits.snapshot_after_mib.as_ref())?,
            catch_up_bytes_per_s: keys::CATCH_UP.bytes(file.limits.catch_up_mib_per_s.as_ref())?,
            election_ns: keys::ELECTION_MS
                .given(file.limits.election_ms.as_ref())?
                .unwrap_or(definition.election_ms)
                * 1_000_000,
            links: link_limits(&file.limits)?,
            rate: file.rate.check()?,
            http: file.http.check()?,
            peers,
            peer_addresses,
            peer_listen: peer_listen.unwrap_or_else(|| node.peer_address.clone()),
            client_listen: client_listen.unwrap_or_else(|| node.client_address.clone()),
            http_listen: http_listen.or_else(|| node.http_address.clone()),
            node,
            definition,
            definition_path,
        })
    }
}

/// A node that came later has what a founder has, but for its place in the definition.
fn joined_node(
    name: &str,
    joined: FileJoined,
    definition: &mut Definition,
) -> Result<Node, String> {
    check_name("site", &joined.site)?;
    if !definition.sites.contains(&joined.site) {
        definition.sites.push(joined.site.clone());
    }
    let node = check_node(
        FileNode {
            name: name.to_owned(),
            site: joined.site,
            kind: joined.kind,
            id: joined.id,
            member: joined.member,
            peer: joined.peer,
            client: joined.client,
            http: joined.http,
        },
        &definition.sites,
    )?;
    let founder = definition
        .nodes
        .iter()
        .find(|founder| founder.member == node.member || founder.id == node.id);
    match founder {
        Some(founder) => Err(format!(
            "member {} or id {} is that of the founder {}",
            node.member.get(),
            node.id,
            founder.name
        )),
        None => Ok(node),
    }
}

fn log_options(file: &FileLog) -> Result<LogOptions, Fault> {
    Ok(LogOptions {
        segment_bytes: keys::SEGMENT.bytes(file.segment_mib.as_ref())?,
        purge_above_bytes: keys::PURGE_ABOVE.bytes(file.purge_above_mib.as_ref())?,
        prefill_bytes: keys::PREFILL.bytes(file.prefill_mib.as_ref())?,
        reserve_bytes: keys::LOG_RESERVE.bytes(file.reserve_mib.as_ref())?,
        ..LogOptions::default()
    })
}

fn package_options(file: &FilePackages) -> Result<PackageOptions, Fault> {
    Ok(PackageOptions {
        cache_bytes: keys::CACHE.bytes(file.cache_mib.as_ref())?,
        reserve_bytes: keys::PACKAGES_RESERVE.bytes(file.reserve_mib.as_ref())?,
        ..PackageOptions::default()
    })
}

fn link_limits(file: &FileLimits) -> Result<LinkLimits, Fault> {
    let bytes = |key: &Key, setting: Option<&Spanned<i64>>| {
        let found = key.bytes(setting)?;
        let name = key.name;
        usize::try_from(found)
            .map_err(|_| (0, format!("{name} is more than this machine can address")))
    };
    let socket = file.socket_buffer_mib.as_ref();
    let socket_buffer_bytes = match socket {
        None => None,
        given => u32::try_from(keys::SOCKET_BUFFER.bytes(given)?).ok(),
    };
    Ok(LinkLimits {
        bulk_queue_bytes: bytes(&keys::BULK_QUEUE, file.bulk_queue_mib.as_ref())?,
        urgent_queue_bytes: bytes(&keys::URGENT_QUEUE, file.urgent_queue_mib.as_ref())?,
        inbound_bytes: bytes(&keys::INBOUND, file.inbound_mib.as_ref())?,
        socket_buffer_bytes,
        ..LinkLimits::default()
    })
}
