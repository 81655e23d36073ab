//! Takes a node up into a running cluster: identity, keys and settings first, then the cluster's word, then its seed. Each
//! step can be done again after it was interrupted or its answer was lost.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clearspan_ledger::Timestamp;
use clearspan_replica::MemberId;
use clearspan_storage::{DataDir, Layout, NodeId, NodesFile};

use super::definition::{Definition, FileNode, Node, check_node};
use super::init::{
    DEFINITION_FILE, InitError, NODE_FILE, NODES_DIR, PKI_DIR, copy_authorities, create_dir,
    ensure_lists, settings_text, write, write_identity,
};
use super::node_config::NodeConfig;
use super::pki::{Authority, AuthorityKind};
use crate::api::{NewNode, NodeEntry, Nodes};
use crate::client::{Ask, Client, ClientError, Retry};

/// Why a node was not taken up.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// Its files cannot be written.
    #[error(transparent)]
    Files(#[from] InitError),
    /// The cluster did not take it, or did not answer; asked again it goes on where it stood.
    #[error(transparent)]
    Cluster(#[from] ClientError),
    /// It makes no sense as it is.
    #[error("{0}")]
    Unfit(String),
}

/// A node that was taken up and can be started.
#[derive(Clone, Debug)]
pub struct Joined {
    /// Its settings.
    pub config: PathBuf,
    /// Where an earlier node's files of the same name were put.
    pub set_aside: Option<PathBuf>,
    /// It in the cluster's directory.
    pub node: NodeEntry,
}

/// Prepares a node under `dir`, where the cluster's authorities are, and has the cluster take it up. `settings` are added to
/// its `node.toml`.
///
/// # Errors
/// [`JoinError`]; what was done before stands, and is used when it is asked for again.
pub fn join(
    dir: &Path,
    client: &mut Client,
    new: &NewNode,
    settings: &str,
    now: Timestamp,
) -> Result<Joined, JoinError> {
    let definition = Definition::read(&dir.join(DEFINITION_FILE)).map_err(InitError::from)?;
    let known: Nodes = client.json(&Ask::get("/v1/nodes"))?;
    let place = dir.join(NODES_DIR).join(&new.node);
    let old = finished(&place, new, &known)?;
    // Nothing of an earlier node of this name is touched before the cluster has said yes.
    let home = place.with_file_name(format!("{}.joining", new.node));
    let data = Layout::under(home.join("data"));
    let id = if home.join("data").join("CLUSTER").exists() {
        // Begun before, and interrupted.
        let identity = DataDir::open(data.clone())
            .map_err(InitError::from)?
            .identity();
        identity.node
    } else {
        if home.exists() {
            // Without an identity there is nothing in it that anybody knows.
            fs::remove_dir_all(&home).map_err(|source| InitError::Io {
                step: "remove",
                path: home.clone(),
                source,
            })?;
        }
        let id = NodeId::random().map_err(InitError::Random)?;
        let pki = dir.join(PKI_DIR);
        let authority = Authority::open(&pki, AuthorityKind::Nodes, definition.cluster)
            .map_err(InitError::from)?;
        ensure_lists(&pki, definition.cluster, now)?;
        create_dir(&home)?;
        write_identity(
            &home,
            &pki,
            definition.cluster,
            id,
            &new.client,
            &authority,
            now,
        )?;
        id
    };
    let ask = NewNode {
        id: id.to_string(),
        ..new.clone()
    };
    let body = serde_json::to_vec(&ask).map_err(|error| JoinError::Unfit(error.to_string()))?;
    let answer: Nodes = client.json(&Ask::post("/v1/admin/nodes/add", body, Retry::Always))?;
    let text = id.to_string();
    let entry = answer.nodes.iter().find(|node| node.id == text);
    let entry = entry
        .cloned()
        .ok_or_else(|| JoinError::Unfit("the cluster does not name the new node".to_owned()))?;
    // What it begins with: also where nodes are that the definition does not know.
    let seed = from_hex(&answer.directory)
        .ok_or_else(|| JoinError::Unfit("the cluster's directory cannot be read".to_owned()))?;
    clearspan_codec::nodes::decode(Bytes::from(seed.clone()))
        .map_err(|error| JoinError::Unfit(format!("the cluster's directory: {error}")))?;
    NodesFile::of(&data)
        .replace(&seed)
        .map_err(InitError::from)?;
    // Some may have been revoked since it was begun.
    copy_authorities(&dir.join(PKI_DIR), &home.join("tls"))?;
    let config = home.join(NODE_FILE);
    if !config.exists() {
        let joined = joined_text(&definition, &entry)?;
        let extra = [joined.as_str(), settings].join("\n");
        write(&config, &settings_text(&entry.node, &extra))?;
    }
    let set_aside = old
        .map(|old| {
            let member = old.node.member.get();
            let aside = place.with_file_name(format!("{}.member-{member}", new.node));
            rename(&place, &aside).map(|()| aside)
        })
        .transpose()?;
    rename(&home, &place)?;
    Ok(Joined {
        config: place.join(NODE_FILE),
        set_aside,
        node: entry,
    })
}

/// A finished node of the same name that is here: it must be the one that is replaced, and goes aside, whole.
fn finished(place: &Path, new: &NewNode, known: &Nodes) -> Result<Option<NodeConfig>, JoinError> {
    let settings = place.join(NODE_FILE);
    if !settings.exists() {
        return Ok(None);
    }
    let replaces = new.replaces.as_ref() == Some(&new.node);
    let is_known = |node: &NodeEntry| node.node == new.node && node.state != "removed";
    if !replaces || !known.nodes.iter().any(is_known) {
        return Err(InitError::Exists(place.to_owned()).into());
    }
    let old = NodeConfig::read(&settings).map_err(InitError::from)?;
    Ok(Some(old))
}

fn rename(from: &Path, to: &Path) -> Result<(), InitError> {
    fs::rename(from, to).map_err(|source| InitError::Io {
        step: "rename",
        path: from.to_owned(),
        source,
    })
}

/// What `node.toml` says of a node that is no founder; it is read back before it is written.
fn joined_text(definition: &Definition, entry: &NodeEntry) -> Result<String, JoinError> {
    let mut sites = definition.sites.clone();
    sites.push(entry.site.clone());
    let kind = if entry.kind == "witness" {
        super::definition::NodeKind::Witness
    } else {
        super::definition::NodeKind::Data
    };
    let node: Node = check_node(
        FileNode {
            name: entry.node.clone(),
            site: entry.site.clone(),
            kind,
            id: entry.id.clone(),
            member: entry.member,
            peer: entry.peer.clone(),
            client: entry.client.clone(),
            http: entry.http.clone(),
        },
        &sites,
    )
    .map_err(JoinError::Unfit)?;
    let member = MemberId::get(node.member);
    let http = entry
        .http
        .as_ref()
        .map_or(String::new(), |http| format!("http = \"{http}\"\n"));
    Ok(format!(
        "# It came after the cluster was founded.\n[joined]\nsite = \"{}\"\nkind = \"{}\"\nid = \"{}\"\nmember = {member}\n\
         peer = \"{}\"\nclient = \"{}\"\n{http}",
        entry.site, entry.kind, entry.id, entry.peer, entry.client
    ))
}

/// The settings of a node that its replacement on the same machine keeps: all but who it is and where its files lie.
///
/// # Errors
/// [`JoinError::Unfit`] when they cannot be read.
pub fn kept_settings(node_file: &Path) -> Result<String, JoinError> {
    let text = match fs::read_to_string(node_file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(source) => {
            return Err(InitError::Io {
                step: "read",
                path: node_file.to_owned(),
                source,
            }
            .into());
        }
    };
    let unfit = |error: String| JoinError::Unfit(format!("{}: {error}", node_file.display()));
    let mut table: toml::Table =
        toml::from_str(&text).map_err(|error: toml::de::Error| unfit(error.to_string()))?;
    table.retain(|_, value| value.is_table());
    for own in ["tls", "joined"] {
        table.remove(own);
    }
    toml::to_string(&table).map_err(|error| unfit(error.to_string()))
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits
        .chunks(2)
        .map(|pair| {
            let pair = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(pair, 16).ok()
        })
        .collect()
}
