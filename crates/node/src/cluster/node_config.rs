//! `node.toml`: one node's own settings. Relative paths are from the file's directory.

mod http;
mod rate;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clearspan_codec::frame::BODY_MAX_BYTES;
use clearspan_storage::{Layout, LogOptions, PackageOptions};
use serde::Deserialize;
use toml::Spanned;

use super::definition::{
    Definition, FileNode, Node, NodeKind, check_address, check_name, check_node,
};
use super::pki::TlsFiles;
use super::{ConfigError, line_of};
use crate::api::HttpLimits;
use crate::engine::{CATCH_UP_BYTES_PER_S, ELECTION_NS};
use crate::links::{LinkLimits, PeerAddress};
use crate::rate::RateLimits;

const MIB: u64 = 1 << 20;
/// A log file shorter than this is mostly bookkeeping.
const SEGMENT_MIN_MIB: u64 = 1;
/// Above this a socket buffer is a mistake in the unit.
const SOCKET_BUFFER_MAX_MIB: u64 = 1024;
/// Above this a size is a mistake in the unit: 16 TiB.
const SIZE_MAX_MIB: u64 = 16 << 20;

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
    segment_mib: Option<Spanned<u64>>,
    purge_above_mib: Option<Spanned<u64>>,
    prefill_mib: Option<Spanned<u64>>,
    reserve_mib: Option<Spanned<u64>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FilePackages {
    cache_mib: Option<Spanned<u64>>,
    reserve_mib: Option<Spanned<u64>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileLimits {
    snapshot_after_mib: Option<Spanned<u64>>,
    election_ms: Option<Spanned<u64>>,
    catch_up_mib_per_s: Option<Spanned<u64>>,
    bulk_queue_mib: Option<Spanned<u64>>,
    urgent_queue_mib: Option<Spanned<u64>>,
    inbound_mib: Option<Spanned<u64>>,
    socket_buffer_mib: Option<Spanned<u64>>,
}

/// A snapshot per this much log, so that a restart replays a few seconds' work at most.
const SNAPSHOT_AFTER_MIB: u64 = 256;

type Fault = (usize, String);

/// A size in bytes, from a setting in MiB between two bounds or its default in bytes.
fn size(
    what: &str,
    setting: Option<&Spanned<u64>>,
    default_bytes: u64,
    min_mib: u64,
    max_mib: u64,
) -> Result<u64, Fault> {
    match setting {
        None => Ok(default_bytes),
        setting => Ok(number(what, setting, 0, min_mib, max_mib)? * MIB),
    }
}

/// A setting between two bounds, or its default.
fn number(
    what: &str,
    setting: Option<&Spanned<u64>>,
    default: u64,
    min: u64,
    max: u64,
) -> Result<u64, Fault> {
    let Some(setting) = setting else {
        return Ok(default);
    };
    let number = *setting.get_ref();
    if (min..=max).contains(&number) {
        Ok(number)
    } else {
        Err((
            setting.span().start,
            format!("{what} is {number}; give {min} to {max}"),
        ))
    }
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
        let file: File = toml::from_str(&text).map_err(|source| ConfigError::Toml {
            path: path.to_owned(),
            source: Box::new(source),
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
            },
            log: log_options(&file.log)?,
            packages: package_options(&file.packages)?,
            snapshot_after_bytes: size(
                "snapshot_after_mib",
                file.limits.snapshot_after_mib.as_ref(),
                SNAPSHOT_AFTER_MIB * MIB,
                1,
                SIZE_MAX_MIB,
            )?,
            catch_up_bytes_per_s: size(
                "catch_up_mib_per_s",
                file.limits.catch_up_mib_per_s.as_ref(),
                CATCH_UP_BYTES_PER_S,
                0,
                SIZE_MAX_MIB,
            )?,
            election_ns: election_ns(file.limits.election_ms.as_ref())?,
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
    let usual = LogOptions::default();
    Ok(LogOptions {
        segment_bytes: size(
            "segment_mib",
            file.segment_mib.as_ref(),
            usual.segment_bytes,
            SEGMENT_MIN_MIB,
            SIZE_MAX_MIB,
        )?,
        purge_above_bytes: size(
            "purge_above_mib",
            file.purge_above_mib.as_ref(),
            usual.purge_above_bytes,
            1,
            SIZE_MAX_MIB,
        )?,
        prefill_bytes: size(
            "prefill_mib",
            file.prefill_mib.as_ref(),
            usual.prefill_bytes,
            0,
            SIZE_MAX_MIB,
        )?,
        reserve_bytes: size(
            "reserve_mib",
            file.reserve_mib.as_ref(),
            usual.reserve_bytes,
            1,
            SIZE_MAX_MIB,
        )?,
        ..usual
    })
}

fn package_options(file: &FilePackages) -> Result<PackageOptions, Fault> {
    let usual = PackageOptions::default();
    Ok(PackageOptions {
        cache_bytes: size(
            "cache_mib",
            file.cache_mib.as_ref(),
            usual.cache_bytes,
            1,
            SIZE_MAX_MIB,
        )?,
        reserve_bytes: size(
            "reserve_mib",
            file.reserve_mib.as_ref(),
            usual.reserve_bytes,
            1,
            SIZE_MAX_MIB,
        )?,
        ..usual
    })
}

/// Below this a slow fsync or a busy machine costs a leader its lead.
const ELECTION_MIN_MS: u64 = 200;
/// Above this nobody would call it automatic.
const ELECTION_MAX_MS: u64 = 60_000;

fn election_ns(setting: Option<&Spanned<u64>>) -> Result<u64, Fault> {
    let Some(setting) = setting else {
        return Ok(ELECTION_NS);
    };
    let ms = *setting.get_ref();
    if (ELECTION_MIN_MS..=ELECTION_MAX_MS).contains(&ms) {
        Ok(ms * 1_000_000)
    } else {
        Err((
            setting.span().start,
            format!(
                "election_ms is {ms}; give {ELECTION_MIN_MS} to {ELECTION_MAX_MS}, ten round trips between sites at least"
            ),
        ))
    }
}

fn link_limits(file: &FileLimits) -> Result<LinkLimits, Fault> {
    let usual = LinkLimits::default();
    // The largest frame must fit.
    let frame_mib = BODY_MAX_BYTES as u64 / MIB + 1;
    let bytes = |what: &str, setting: Option<&Spanned<u64>>, default: usize, min_mib: u64| {
        let found = size(what, setting, default as u64, min_mib, SIZE_MAX_MIB)?;
        usize::try_from(found)
            .map_err(|_| (0, format!("{what} is more than this machine can address")))
    };
    let socket = match &file.socket_buffer_mib {
        None => None,
        setting => {
            let found = size(
                "socket_buffer_mib",
                setting.as_ref(),
                0,
                1,
                SOCKET_BUFFER_MAX_MIB,
            )?;
            u32::try_from(found).ok()
        }
    };
    Ok(LinkLimits {
        bulk_queue_bytes: bytes(
            "bulk_queue_mib",
            file.bulk_queue_mib.as_ref(),
            usual.bulk_queue_bytes,
            frame_mib,
        )?,
        urgent_queue_bytes: bytes(
            "urgent_queue_mib",
            file.urgent_queue_mib.as_ref(),
            usual.urgent_queue_bytes,
            1,
        )?,
        inbound_bytes: bytes(
            "inbound_mib",
            file.inbound_mib.as_ref(),
            usual.inbound_bytes,
            frame_mib,
        )?,
        socket_buffer_bytes: socket,
        ..usual
    })
}
