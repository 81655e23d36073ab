//! `cluster.toml`: which nodes a cluster is founded with. The same file lies on every node, also on one that came later:
//! what became of the nodes since is replicated (ADR 0022).

use std::collections::BTreeSet;
use std::path::Path;

use clearspan_ledger::Bic;
use clearspan_ledger::nodes::{NodeDirectory, NodeRecord};
use clearspan_replica::{MemberId, PEER_MEMBERS_MAX};
use clearspan_storage::{ClusterId, NodeId};
use serde::Deserialize;
use toml::Spanned;

use super::ConfigError;
use super::keys::{self, CLUSTER_KEYS};
use crate::engine::group::{Group, Seat};
use crate::links::PeerAddress;
use crate::toml_fault::{explain, line_of};

/// The longest name of a site or node: names stand in tables, paths and metrics.
pub const NAME_MAX_BYTES: usize = 32;

/// A cluster, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The cluster's random identity.
    pub cluster: ClusterId,
    /// How many shards; fixed for good.
    pub shards: u16,
    /// The clearing house's own code.
    pub clearing_house: Bic,
    /// How long a leader may be silent before another is elected, in milliseconds.
    pub election_ms: u64,
    /// For how many minutes an act that takes two operators waits for the second; nothing where one is enough (ADR 0025).
    pub four_eyes_minutes: Option<u64>,
    /// Names of the sites, in the order of the file.
    pub sites: Vec<String>,
    /// The nodes, in the order of the file.
    pub nodes: Vec<Node>,
}

/// What a node keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeKind {
    /// Everything.
    Data,
    /// The log only: it votes.
    Witness,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name, for people.
    pub name: String,
    /// Its site, as a place in [`Definition::sites`].
    pub site: u16,
    /// What it keeps.
    pub kind: NodeKind,
    /// Its random identity.
    pub id: NodeId,
    /// Its number in the groups.
    pub member: MemberId,
    /// Where other nodes reach it.
    pub peer_address: String,
    /// Where participants and operators reach it.
    pub client_address: String,
    /// Where metrics and the console are, without TLS; not every node has that.
    pub http_address: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    cluster: Spanned<String>,
    shards: Spanned<i64>,
    clearing_house: Spanned<String>,
    election_ms: Option<Spanned<i64>>,
    four_eyes_minutes: Option<Spanned<i64>>,
    #[serde(default)]
    site: Vec<Spanned<FileSite>>,
    #[serde(default)]
    node: Vec<Spanned<FileNode>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSite {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileNode {
    pub(super) name: String,
    pub(super) site: String,
    pub(super) kind: NodeKind,
    pub(super) id: String,
    pub(super) member: u64,
    pub(super) peer: String,
    pub(super) client: String,
    pub(super) http: Option<String>,
}

impl Definition {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`ConfigError`] names the line and says what to do.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text, path)
    }

    /// Checks a file's text; `path` is for messages.
    ///
    /// # Errors
    /// [`ConfigError`] names the line and says what to do.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let file: File = toml::from_str(text).map_err(|fault| {
            let (line, what) = explain(text, &fault, CLUSTER_KEYS);
            ConfigError::Value {
                path: path.to_owned(),
                line,
                what,
            }
        })?;
        let refuse = |offset: usize, what: String| ConfigError::Value {
            path: path.to_owned(),
            line: line_of(text, offset),
            what,
        };
        let cluster = ClusterId::parse(file.cluster.get_ref()).ok_or_else(|| {
            let what = format!(
                "cluster {:?} is not 32 hexadecimal digits",
                file.cluster.get_ref()
            );
            refuse(file.cluster.span().start, what)
        })?;
        let fault = |(offset, what)| refuse(offset, what);
        let shards = keys::SHARDS.number(Some(&file.shards)).map_err(fault)?;
        let shards = u16::try_from(shards)
            .map_err(|_| refuse(file.shards.span().start, "too many shards".to_owned()))?;
        let election_ms = keys::CLUSTER_ELECTION
            .number(file.election_ms.as_ref())
            .map_err(fault)?;
        let four_eyes_minutes = keys::FOUR_EYES
            .given(file.four_eyes_minutes.as_ref())
            .map_err(fault)?;
        let house = file.clearing_house.get_ref();
        let clearing_house = Bic::parse(house.as_bytes()).ok_or_else(|| {
            refuse(
                file.clearing_house.span().start,
                format!("clearing_house {house:?} is not a BIC"),
            )
        })?;
        let mut sites = Vec::new();
        for site in file.site {
            let offset = site.span().start;
            let name = site.into_inner().name;
            check_name("site", &name).map_err(|what| refuse(offset, what))?;
            if sites.contains(&name) {
                return Err(refuse(
                    offset,
                    format!("site {name} stands here a second time"),
                ));
            }
            sites.push(name);
        }
        if file.node.len() > PEER_MEMBERS_MAX {
            return Err(refuse(0, format!("more than {PEER_MEMBERS_MAX} nodes")));
        }
        let mut nodes: Vec<Node> = Vec::new();
        let mut seen = Seen::default();
        for node in file.node {
            let offset = node.span().start;
            let node =
                check_node(node.into_inner(), &sites).map_err(|what| refuse(offset, what))?;
            seen.add(&node).map_err(|what| refuse(offset, what))?;
            nodes.push(node);
        }
        if !nodes.iter().any(|node| node.kind == NodeKind::Data) {
            return Err(refuse(
                0,
                "no node of kind \"data\"; add [[node]]".to_owned(),
            ));
        }
        Ok(Self {
            cluster,
            shards,
            clearing_house,
            election_ms,
            four_eyes_minutes,
            sites,
            nodes,
        })
    }

    /// The same in nanoseconds.
    #[must_use]
    pub fn four_eyes_ns(&self) -> Option<u64> {
        self.four_eyes_minutes
            .map(|minutes| minutes * 60_000_000_000)
    }

    /// A node by name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// A node by its number in the groups.
    #[must_use]
    pub fn member(&self, member: MemberId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.member == member)
    }

    /// The nodes that the cluster is founded with.
    #[must_use]
    pub fn directory(&self) -> NodeDirectory {
        NodeDirectory::founding(self.nodes.iter().map(|node| self.record(node)).collect())
    }

    /// The cluster as one of its founders sees it at the founding.
    #[must_use]
    pub fn group(&self, me: MemberId) -> Group {
        let founding = self.directory();
        let witness = |node: &Node| node.kind == NodeKind::Witness;
        Seat {
            me,
            witness: self.member(me).is_some_and(witness),
            founding: founding.clone(),
        }
        .group(&founding)
    }

    /// A node as the cluster's directory has it.
    #[must_use]
    pub fn record(&self, node: &Node) -> NodeRecord {
        NodeRecord {
            member: node.member.get(),
            id: u128::from_be_bytes(node.id.to_bytes()),
            name: node.name.clone(),
            site: self
                .sites
                .get(usize::from(node.site))
                .cloned()
                .unwrap_or_default(),
            witness: node.kind == NodeKind::Witness,
            peer: node.peer_address.clone(),
            client: node.client_address.clone(),
            http: node.http_address.clone(),
            ..NodeRecord::default()
        }
    }

    /// All nodes but one, as that one dials them.
    #[must_use]
    pub fn peers_of(&self, me: MemberId) -> Vec<PeerAddress> {
        let others = self.nodes.iter().filter(|node| node.member != me);
        others
            .map(|node| PeerAddress {
                member: node.member,
                node: node.id,
                address: node.peer_address.clone(),
            })
            .collect()
    }
}

/// What may stand in one node only.
#[derive(Default)]
struct Seen {
    names: BTreeSet<String>,
    ids: BTreeSet<NodeId>,
    members: BTreeSet<MemberId>,
    addresses: BTreeSet<String>,
}

impl Seen {
    fn add(&mut self, node: &Node) -> Result<(), String> {
        let name = &node.name;
        if !self.names.insert(name.clone()) {
            return Err(format!("node {name} stands here a second time"));
        }
        if !self.ids.insert(node.id) {
            return Err(format!("node {name} has the id of another node"));
        }
        if !self.members.insert(node.member) {
            return Err(format!("node {name} has the member number of another node"));
        }
        let addresses = [
            Some(&node.peer_address),
            Some(&node.client_address),
            node.http_address.as_ref(),
        ];
        for address in addresses.into_iter().flatten() {
            if !self.addresses.insert(address.clone()) {
                return Err(format!(
                    "node {name} has the address {address}, which is taken already"
                ));
            }
        }
        Ok(())
    }
}

/// Names stand in paths and metrics.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let good = (1..=NAME_MAX_BYTES).contains(&name.len())
        && name.bytes().all(allowed)
        && !name.starts_with('-');
    if good {
        Ok(())
    } else {
        Err(format!(
            "{what} name {name:?}: give 1 to {NAME_MAX_BYTES} letters, digits and hyphens"
        ))
    }
}

/// A host and a port. Whether the host exists is not asked here.
pub(crate) fn check_address(what: &str, address: &str) -> Result<(), String> {
    let parts = address.rsplit_once(':').filter(|(host, port)| {
        !host.is_empty()
            && !host.contains(char::is_whitespace)
            && port.parse::<u16>().is_ok_and(|port| port != 0)
    });
    if parts.is_some() {
        Ok(())
    } else {
        Err(format!(
            "{what} address {address:?}: give host:port, such as \"10.0.0.1:7101\""
        ))
    }
}

pub(super) fn check_node(file: FileNode, sites: &[String]) -> Result<Node, String> {
    check_name("node", &file.name)?;
    let name = file.name;
    let site = sites
        .iter()
        .position(|site| *site == file.site)
        .and_then(|at| u16::try_from(at).ok())
        .ok_or_else(|| {
            format!(
                "node {name}: there is no site {:?}; add [[site]]",
                file.site
            )
        })?;
    let id = NodeId::parse(&file.id)
        .ok_or_else(|| format!("node {name}: id {:?} is not 32 hexadecimal digits", file.id))?;
    let member = MemberId::new(file.member)
        .ok_or_else(|| format!("node {name}: member numbers begin at 1"))?;
    let in_node = |what: String| format!("node {name}: {what}");
    check_address("peer", &file.peer).map_err(in_node)?;
    check_address("client", &file.client).map_err(in_node)?;
    if let Some(http) = &file.http {
        check_address("http", http).map_err(in_node)?;
    }
    Ok(Node {
        name,
        site,
        kind: file.kind,
        id,
        member,
        peer_address: file.peer,
        client_address: file.client,
        http_address: file.http,
    })
}
