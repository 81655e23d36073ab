//! Writes everything that a new cluster needs into one directory: the definition, two authorities, and for every node its
//! settings, an empty data directory with its identity, and its certificate. Node directories may then be carried to
//! their machines.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clearspan_ledger::{Bic, Timestamp};
use clearspan_replica::{MemberId, PEER_MEMBERS_MAX};
use clearspan_storage::{ClusterId, DataDir, DataDirError, Identity, Layout, NodeId};

use super::ConfigError;
use super::definition::{Definition, Node, NodeKind, check_name};
use super::keys::ELECTION_RANGE_MS;
use super::node_config::NodeConfig;
use super::pki::{AUTHORITY_VALIDITY, Authority, AuthorityKind, PkiError, TlsFiles};
use crate::engine::ELECTION_NS;
use crate::settings::SHARDS_MAX;

/// The definition's file.
pub const DEFINITION_FILE: &str = "cluster.toml";
/// The authorities' directory.
pub const PKI_DIR: &str = "pki";
/// The nodes' directory.
pub const NODES_DIR: &str = "nodes";
/// A node's settings, in its directory.
pub const NODE_FILE: &str = "node.toml";

/// One site of a new cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteSpec {
    /// Its name.
    pub name: String,
    /// How many data nodes.
    pub data_nodes: u16,
    /// How many witnesses.
    pub witnesses: u16,
    /// The host under which its nodes are reached; [`InitOptions::host`] when there is none.
    pub host: Option<String>,
}

/// What a new cluster shall be.
#[derive(Clone, Debug)]
pub struct InitOptions {
    /// Its sites.
    pub sites: Vec<SiteSpec>,
    /// How many shards; fixed for good.
    pub shards: u16,
    /// The clearing house's own code.
    pub clearing_house: Bic,
    /// For how many minutes an act that takes two operators waits for the second; nothing where one is enough.
    pub four_eyes_minutes: Option<u64>,
    /// The host under which nodes are reached.
    pub host: String,
    /// The first node's port for other nodes; the next node's is one higher.
    pub peer_port: u16,
    /// The first node's port for participants and operators.
    pub client_port: u16,
    /// The first node's port for metrics and the console; `None` for none.
    pub http_port: Option<u16>,
    /// The longest round trip between sites, in nanoseconds: how long a leader may be silent follows from it.
    pub rtt_ns: u64,
    /// Settings added to every `node.toml`, such as `[log]` with its values; empty for none.
    pub extra_settings: String,
    /// Now: certificates are valid from a day before.
    pub now: Timestamp,
}

impl InitOptions {
    /// A cluster on this machine, on the usual ports.
    ///
    /// # Panics
    /// Never: the clearing house's code is one.
    #[must_use]
    pub fn local(sites: Vec<SiteSpec>, shards: u16, now: Timestamp) -> Self {
        Self {
            sites,
            shards,
            clearing_house: Bic::parse(b"CLSPZZ2AXXX").expect("a BIC"),
            four_eyes_minutes: None,
            host: "127.0.0.1".to_owned(),
            peer_port: 7101,
            client_port: 7201,
            http_port: Some(7301),
            rtt_ns: 0,
            extra_settings: String::new(),
            now,
        }
    }
}

/// Why a cluster was not written.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// The directory holds something: nothing was changed.
    #[error("{0} is not empty; a cluster is written into a new directory")]
    Exists(PathBuf),
    /// The options make no cluster.
    #[error("{0}")]
    Options(String),
    /// A file operation failed.
    #[error("{step} {path}")]
    Io {
        /// Which step.
        step: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No random bytes for identities.
    #[error("read random bytes for an identity")]
    Random(#[source] io::Error),
    /// Certificates cannot be made.
    #[error("make certificates")]
    Pki(#[from] PkiError),
    /// A list that every new node gets is not there and cannot be signed here.
    #[error(
        "{0} is not there, and neither is the authority's key: write it with `clearspan revoke` where the key is, and put it here"
    )]
    NoList(PathBuf),
    /// A data directory cannot be set up.
    #[error("set up a data directory")]
    DataDir(#[from] DataDirError),
    /// What would be written is no definition.
    #[error("check the definition")]
    Definition(#[from] ConfigError),
}

/// Reads `A:3,B:3,W:witness`: a site's name and its number of data nodes, or `witness` for one witness.
///
/// # Errors
/// Says what is wrong and what to give.
pub fn parse_sites(text: &str) -> Result<Vec<SiteSpec>, InitError> {
    let refuse = |part: &str| {
        InitError::Options(format!(
            "{part:?} is no site: give name:nodes or name:witness, such as A:3,B:3,W:witness"
        ))
    };
    text.split(',')
        .map(|part| {
            let (name, nodes) = part.trim().split_once(':').ok_or_else(|| refuse(part))?;
            check_name("site", name).map_err(InitError::Options)?;
            let (data_nodes, witnesses) = match nodes {
                "witness" => (0, 1),
                count => (
                    count
                        .parse()
                        .ok()
                        .filter(|&count| count > 0)
                        .ok_or_else(|| refuse(part))?,
                    0,
                ),
            };
            Ok(SiteSpec {
                name: name.to_owned(),
                data_nodes,
                witnesses,
                host: None,
            })
        })
        .collect()
}

/// Writes a new cluster and gives back its definition.
///
/// # Errors
/// [`InitError::Exists`] when the directory is not empty. After another error the directory is unfinished: the definition
/// is written last.
pub fn init(dir: &Path, options: &InitOptions) -> Result<Definition, InitError> {
    let definition = define(options)?;
    let text = definition_text(&definition);
    let path = dir.join(DEFINITION_FILE);
    assert_eq!(
        Definition::parse(&text, &path)?,
        definition,
        "what is written is what is read"
    );
    create_empty(dir)?;
    let pki = dir.join(PKI_DIR);
    create_dir(&pki)?;
    let nodes = Authority::create(&pki, AuthorityKind::Nodes, definition.cluster, options.now)?;
    Authority::create(
        &pki,
        AuthorityKind::Clients,
        definition.cluster,
        options.now,
    )?;
    // Nobody is revoked yet; the lists are there so that somebody can be.
    ensure_lists(&pki, definition.cluster, options.now)?;
    create_dir(&dir.join(NODES_DIR))?;
    for node in &definition.nodes {
        write_node(dir, &definition, node, &nodes, options)?;
    }
    write(&path, &text)?;
    Ok(definition)
}

/// How long a leader may be silent where a quorum is so far away, in milliseconds: ten round trips, in hundreds, and not
/// below what is usual where all is near. A candidate asks twice and is answered twice before it leads, and heartbeats that
/// a busy line holds up for a few round trips must not cost a leader its lead.
#[must_use]
pub fn election_ms_for(rtt_ns: u64) -> u64 {
    let (_, max) = ELECTION_RANGE_MS;
    let ten_ms = rtt_ns.saturating_mul(10).div_ceil(1_000_000);
    let usual = ELECTION_NS / 1_000_000;
    (ten_ms.div_ceil(100) * 100).clamp(usual, max)
}

fn define(options: &InitOptions) -> Result<Definition, InitError> {
    let fault = |what: &str| InitError::Options(what.to_owned());
    if options.shards == 0 || options.shards > SHARDS_MAX {
        return Err(InitError::Options(format!("give 1 to {SHARDS_MAX} shards")));
    }
    let counts = options
        .sites
        .iter()
        .map(|site| usize::from(site.data_nodes) + usize::from(site.witnesses));
    if counts.sum::<usize>() > PEER_MEMBERS_MAX {
        return Err(InitError::Options(format!(
            "more than {PEER_MEMBERS_MAX} nodes"
        )));
    }
    if options.sites.iter().all(|site| site.data_nodes == 0) {
        return Err(fault("no site has a data node"));
    }
    let mut nodes: Vec<Node> = Vec::new();
    let mut sites: Vec<String> = Vec::new();
    for spec in &options.sites {
        check_name("site", &spec.name).map_err(InitError::Options)?;
        if sites.contains(&spec.name) {
            return Err(InitError::Options(format!(
                "site {} is named twice",
                spec.name
            )));
        }
        let site = u16::try_from(sites.len()).map_err(|_| fault("too many sites"))?;
        sites.push(spec.name.clone());
        let data = std::iter::repeat_n(NodeKind::Data, usize::from(spec.data_nodes));
        let witnesses = std::iter::repeat_n(NodeKind::Witness, usize::from(spec.witnesses));
        for (number, kind) in (1..).zip(data.chain(witnesses)) {
            let at = u16::try_from(nodes.len()).map_err(|_| fault("too many nodes"))?;
            let host = spec.host.as_ref().unwrap_or(&options.host);
            let address = |port: u16| {
                let port = port
                    .checked_add(at)
                    .filter(|_| port != 0)
                    .ok_or_else(|| fault("the ports go beyond 65535, or begin at 0"))?;
                Ok::<_, InitError>(match host.parse::<IpAddr>() {
                    Ok(IpAddr::V6(_)) => format!("[{host}]:{port}"),
                    _ => format!("{host}:{port}"),
                })
            };
            nodes.push(Node {
                name: format!("{}{number}", spec.name),
                site,
                kind,
                id: NodeId::random().map_err(InitError::Random)?,
                member: MemberId::new(u64::from(at) + 1)
                    .ok_or_else(|| fault("no member number"))?,
                peer_address: address(options.peer_port)?,
                client_address: address(options.client_port)?,
                http_address: options.http_port.map(address).transpose()?,
            });
        }
    }
    Ok(Definition {
        cluster: ClusterId::random().map_err(InitError::Random)?,
        shards: options.shards,
        clearing_house: options.clearing_house,
        election_ms: election_ms_for(options.rtt_ns),
        four_eyes_minutes: options.four_eyes_minutes,
        sites,
        nodes,
    })
}

fn definition_text(definition: &Definition) -> String {
    let mut text = String::from("# A Clearspan cluster. The same file lies on every node.\n\n");
    let Definition {
        cluster,
        shards,
        clearing_house,
        election_ms,
        four_eyes_minutes,
        sites,
        nodes,
    } = definition;
    let mut line = |args: std::fmt::Arguments<'_>| {
        text.write_fmt(args)
            .and_then(|()| text.write_char('\n'))
            .expect("a text takes everything");
    };
    line(format_args!("cluster = \"{cluster}\""));
    line(format_args!("# Fixed for good."));
    line(format_args!("shards = {shards}"));
    line(format_args!("clearing_house = \"{clearing_house}\""));
    line(format_args!(
        "# How long a leader may be silent before another is elected: ten round trips between sites at least."
    ));
    line(format_args!("election_ms = {election_ms}"));
    if let Some(minutes) = four_eyes_minutes {
        line(format_args!(
            "# Dangerous acts take two operators; a request waits so long for the second. Once in force it stays."
        ));
        line(format_args!("four_eyes_minutes = {minutes}"));
    }
    for site in sites {
        line(format_args!("\n[[site]]\nname = \"{site}\""));
    }
    for node in nodes {
        let site = sites.get(usize::from(node.site)).map_or("", String::as_str);
        let kind = match node.kind {
            NodeKind::Data => "data",
            NodeKind::Witness => "witness",
        };
        line(format_args!(
            "\n[[node]]\nname = \"{}\"\nsite = \"{site}\"\nkind = \"{kind}\"",
            node.name
        ));
        line(format_args!(
            "id = \"{}\"\nmember = {}",
            node.id,
            node.member.get()
        ));
        line(format_args!(
            "peer = \"{}\"\nclient = \"{}\"",
            node.peer_address, node.client_address
        ));
        if let Some(http) = &node.http_address {
            line(format_args!("http = \"{http}\""));
        }
    }
    text
}

fn write_node(
    dir: &Path,
    definition: &Definition,
    node: &Node,
    authority: &Authority,
    options: &InitOptions,
) -> Result<(), InitError> {
    let home = dir.join(NODES_DIR).join(&node.name);
    create_dir(&home)?;
    write_identity(
        &home,
        &dir.join(PKI_DIR),
        definition.cluster,
        node.id,
        &node.client_address,
        authority,
        options.now,
    )?;
    write(
        &home.join(NODE_FILE),
        &settings_text(&node.name, &options.extra_settings),
    )
}

/// Writes the lists of revoked certificates where there are none yet, as in directories that are older than lists.
///
/// # Errors
/// [`InitError::NoList`] when the authority's key is not here.
pub(super) fn ensure_lists(
    pki: &Path,
    cluster: ClusterId,
    now: Timestamp,
) -> Result<(), InitError> {
    for kind in [AuthorityKind::Nodes, AuthorityKind::Clients] {
        let list = kind.revocation_list_path(pki);
        if list.exists() {
            continue;
        }
        if !kind.key_path(pki).exists() {
            return Err(InitError::NoList(list));
        }
        Authority::open(pki, kind, cluster)?.revoke(pki, kind, &[], now, AUTHORITY_VALIDITY)?;
    }
    Ok(())
}

/// A node's certificates, and last an empty data directory with its identity: where that is, the rest is too.
pub(super) fn write_identity(
    home: &Path,
    pki: &Path,
    cluster: ClusterId,
    id: NodeId,
    client_address: &str,
    authority: &Authority,
    now: Timestamp,
) -> Result<(), InitError> {
    let tls = home.join("tls");
    create_dir(&tls)?;
    authority
        .issue_node(id, &[host_of(client_address)], now)?
        .write(&tls.join("node.crt"), &tls.join("node.key"))?;
    copy_authorities(pki, &tls)?;
    let identity = Identity { cluster, node: id };
    DataDir::create(Layout::under(home.join("data")), identity)?;
    Ok(())
}

/// The authorities' certificates and their lists as they stand, over those that are there.
pub(super) fn copy_authorities(pki: &Path, tls: &Path) -> Result<(), InitError> {
    for kind in [AuthorityKind::Nodes, AuthorityKind::Clients] {
        for of_kind in [
            AuthorityKind::certificate_path,
            AuthorityKind::revocation_list_path,
        ] {
            let to = of_kind(kind, tls);
            fs::copy(of_kind(kind, pki), &to).map_err(|source| InitError::Io {
                step: "write",
                path: to,
                source,
            })?;
        }
    }
    Ok(())
}

/// The host in `host:port`, without the brackets of an address of IPv6.
fn host_of(address: &str) -> String {
    let host = address.rsplit_once(':').map_or("", |(host, _)| host);
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned()
}

/// Issues a new certificate and key to a node whose directory lies here, over those that it has, and says where.
///
/// # Errors
/// [`InitError`] when its settings cannot be read or the authority's key is not here; when the key alone was written, the node
/// goes on with what it has until this is done again.
pub fn reissue_node(
    dir: &Path,
    name: &str,
    now: Timestamp,
) -> Result<(PathBuf, PathBuf), InitError> {
    check_name("node", name).map_err(InitError::Options)?;
    let settings = dir.join(NODES_DIR).join(name).join(NODE_FILE);
    if !settings.exists() {
        return Err(InitError::Options(format!(
            "{} is not there: copy the node's {NODE_FILE} to it, then carry the tls directory beside it to the node",
            settings.display()
        )));
    }
    let config = NodeConfig::read(&settings)?;
    let authority = Authority::open(
        &dir.join(PKI_DIR),
        AuthorityKind::Nodes,
        config.definition.cluster,
    )?;
    let TlsFiles {
        certificate, key, ..
    } = config.tls;
    for parent in [&certificate, &key]
        .into_iter()
        .filter_map(|it| it.parent())
    {
        fs::create_dir_all(parent).map_err(|source| InitError::Io {
            step: "create",
            path: parent.to_owned(),
            source,
        })?;
    }
    authority
        .issue_node(config.node.id, &[host_of(&config.node.client_address)], now)?
        .replace(&certificate, &key)?;
    Ok((certificate, key))
}

/// A node's settings, with more added.
pub(super) fn settings_text(name: &str, extra: &str) -> String {
    let mut text = format!(
        "# Node {name} of the cluster. Relative paths are from this file's directory.\n\n\
         definition = \"../../{DEFINITION_FILE}\"\nnode = \"{name}\"\ndata = \"data\"\n\n\
         [tls]\ncertificate = \"tls/node.crt\"\nkey = \"tls/node.key\"\n\
         nodes_ca = \"tls/nodes-ca.crt\"\nclients_ca = \"tls/clients-ca.crt\"\n\
         nodes_crl = \"tls/nodes.crl\"\nclients_crl = \"tls/clients.crl\"\n",
    );
    if !extra.is_empty() {
        text.push('\n');
        text.push_str(extra);
        text.push('\n');
    }
    text
}

/// Where every node's settings lie, by node name.
#[must_use]
pub fn node_files(dir: &Path, definition: &Definition) -> BTreeMap<String, PathBuf> {
    let path = |name: &str| dir.join(NODES_DIR).join(name).join(NODE_FILE);
    definition
        .nodes
        .iter()
        .map(|node| (node.name.clone(), path(&node.name)))
        .collect()
}

fn create_empty(dir: &Path) -> Result<(), InitError> {
    fs::create_dir_all(dir).map_err(|source| InitError::Io {
        step: "create",
        path: dir.to_owned(),
        source,
    })?;
    let mut entries = fs::read_dir(dir).map_err(|source| InitError::Io {
        step: "read",
        path: dir.to_owned(),
        source,
    })?;
    if entries.next().is_some() {
        Err(InitError::Exists(dir.to_owned()))
    } else {
        Ok(())
    }
}

pub(super) fn create_dir(dir: &Path) -> Result<(), InitError> {
    fs::create_dir(dir).map_err(|source| InitError::Io {
        step: "create",
        path: dir.to_owned(),
        source,
    })
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), InitError> {
    fs::write(path, text).map_err(|source| InitError::Io {
        step: "write",
        path: path.to_owned(),
        source,
    })
}
