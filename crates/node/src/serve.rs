//! A node of a cluster as a process: its settings in, replicas, connections and the public interface up, until it is told
//! to stop.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use clearspan_storage::{DataDir, DataDirError, Identity};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::api::{self, Api, Door};
use crate::clock::Clock;
use crate::cluster::ConfigError;
use crate::cluster::definition::NodeKind;
use crate::cluster::node_config::NodeConfig;
use crate::cluster::pki::{LinkTls, PkiError, public_server_config};
use crate::engine::{Engine, EngineError, EngineOptions};
use crate::events;
use crate::links::{LinkEvent, LinkListener, LinkOptions, Links};

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Its settings or the cluster's definition.
    #[error("read the settings")]
    Config(#[from] ConfigError),
    /// Its certificates.
    #[error("read the certificates")]
    Pki(#[from] PkiError),
    /// Its data directory.
    #[error("open the data directory")]
    DataDir(#[from] DataDirError),
    /// Its data.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The data directory is another node's.
    #[error(
        "{path} belongs to node {found}, the definition says that {name} is node {wanted}: it is another node's directory, \
         or the node was replaced"
    )]
    Identity {
        /// The directory.
        path: String,
        /// The node by name.
        name: String,
        /// Cluster and node of the directory.
        found: String,
        /// Cluster and node of the definition.
        wanted: String,
    },
    /// An address cannot be listened at.
    #[error("listen at {address}")]
    Listen {
        /// Which.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// No threads or signals.
    #[error("start the runtime")]
    Runtime(#[source] io::Error),
}

/// Runs a node until SIGTERM or SIGINT. Logs go to stdout, one JSON object per line.
///
/// # Errors
/// [`ServeError`] when it cannot start; nothing on disk is changed to get past damage.
pub fn serve(config_path: &Path) -> Result<(), ServeError> {
    let config = NodeConfig::read(config_path)?;
    check_identity(&config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("net")
        .build()
        .map_err(ServeError::Runtime)?;
    let node = &config.node.name;
    events::log(
        "node.starting",
        json!({
            "node": node, "cluster": config.definition.cluster.to_string(), "shards": config.definition.shards,
            "data": config.layout.root.display().to_string(), "version": env!("CARGO_PKG_VERSION"),
        }),
    );
    // All doors are there before anything is opened: a port in use is found out at once.
    let peers = listen_peers(&runtime, &config)?;
    let clients = listen(&runtime, &config.client_listen)?;
    let plain = config
        .http_listen
        .as_deref()
        .map(|address| listen(&runtime, address))
        .transpose()?;
    let public_tls = public_server_config(&config.tls)?;
    let refused = Arc::new(OnceLock::new());
    let (engine, links) = open(&runtime, &config, peers, refused.clone())?;
    let api = Arc::new(Api::new(
        engine,
        Some(links),
        config.definition.clone(),
        config.node.clone(),
    ));
    // Whoever was refused before now was refused, only not counted.
    let _ = refused.set(Arc::downgrade(&api));
    events::log(
        "node.started",
        json!({
            "node": node, "peer": config.peer_listen, "client": config.client_listen, "http": config.http_listen,
        }),
    );
    let signal = runtime.block_on(async {
        let door = Arc::new(Door::default());
        let (public, own_api) = (door.clone(), api.clone());
        tokio::spawn(async move { api::tls(&public, own_api, clients, public_tls).await });
        if let Some(listener) = plain {
            let (plain, own_api) = (door.clone(), api.clone());
            tokio::spawn(async move { api::plain(&plain, own_api, listener).await });
        }
        let signal = stop_signal().await?;
        events::log("node.stopping", json!({ "node": node, "signal": signal }));
        door.close().await;
        Ok::<_, io::Error>(signal)
    });
    // What is acknowledged is durable; a snapshot makes the next start short. A witness has no state to take one of.
    if config.node.kind == NodeKind::Data {
        api.engine.snapshot_all();
    }
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    // The engine goes with the last request that held it.
    drop(api);
    let signal = signal.map_err(ServeError::Runtime)?;
    events::log("node.stopped", json!({ "node": node, "signal": signal }));
    Ok(())
}

async fn stop_signal() -> io::Result<&'static str> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    })
}

/// A directory that was carried to another node must not be taken for that node's.
fn check_identity(config: &NodeConfig) -> Result<(), ServeError> {
    let found = DataDir::open(config.layout.clone())?.identity();
    let wanted = Identity {
        cluster: config.definition.cluster,
        node: config.node.id,
    };
    if found == wanted {
        return Ok(());
    }
    let name = |identity: Identity| format!("{} of cluster {}", identity.node, identity.cluster);
    Err(ServeError::Identity {
        path: config.layout.root.display().to_string(),
        name: config.node.name.clone(),
        found: name(found),
        wanted: name(wanted),
    })
}

/// The first address that a host and port stand for.
fn resolve(address: &str) -> Result<SocketAddr, ServeError> {
    let failed = |source| ServeError::Listen {
        address: address.to_owned(),
        source,
    };
    std::net::ToSocketAddrs::to_socket_addrs(address)
        .map_err(failed)?
        .next()
        .ok_or_else(|| failed(io::Error::from(io::ErrorKind::AddrNotAvailable)))
}

fn listen(runtime: &Runtime, address: &str) -> Result<TcpListener, ServeError> {
    let resolved = resolve(address)?;
    runtime
        .block_on(TcpListener::bind(resolved))
        .map_err(|source| ServeError::Listen {
            address: address.to_owned(),
            source,
        })
}

fn listen_peers(runtime: &Runtime, config: &NodeConfig) -> Result<LinkListener, ServeError> {
    let resolved = resolve(&config.peer_listen)?;
    LinkListener::bind(runtime.handle(), resolved, &config.links).map_err(|source| {
        ServeError::Listen {
            address: config.peer_listen.clone(),
            source,
        }
    })
}

type Refusals = Arc<OnceLock<std::sync::Weak<Api>>>;

fn open(
    runtime: &Runtime,
    config: &NodeConfig,
    listener: LinkListener,
    refused: Refusals,
) -> Result<(Engine, Links), ServeError> {
    let definition = &config.definition;
    let options = EngineOptions {
        log: config.log.clone(),
        packages: config.packages.clone(),
        snapshot_after_bytes: config.snapshot_after_bytes,
        election_ns: config.election_ns,
        catch_up_bytes_per_s: config.catch_up_bytes_per_s,
        ..EngineOptions::usual()
    };
    let link_options = LinkOptions {
        cluster: definition.cluster,
        node: config.node.id,
        me: config.node.member,
        // The clock goes on while the node is down, so a later life has a higher number.
        incarnation: Clock::System.now().ns(),
        shards: definition.shards,
        peers: config.peers.clone(),
        tls: LinkTls::load(&config.tls)?,
        limits: config.links,
    };
    let names: std::collections::BTreeMap<_, _> = definition
        .nodes
        .iter()
        .map(|node| (node.member, node.name.clone()))
        .collect();
    let started = Arc::new(Mutex::new(None));
    let slot = started.clone();
    let handle = runtime.handle().clone();
    let engine = Engine::open_member(
        config.layout.clone(),
        definition.shards,
        options,
        definition.group(config.node.member),
        move |inlet| {
            let name = move |member| names.get(&member).cloned().unwrap_or_default();
            let links = Links::start(&handle, listener, link_options, move |event| match event {
                LinkEvent::Frame { from, frame, room } => inlet.frame(from, frame, Box::new(room)),
                LinkEvent::Up(member) => {
                    events::log("peer.up", json!({ "peer": name(member) }));
                    inlet.up(member);
                }
                LinkEvent::Down { member, why } => {
                    events::log("peer.down", json!({ "peer": name(member), "why": why }));
                    inlet.down(member);
                }
                LinkEvent::Refused { address, why } => {
                    if let Some(api) = refused.get().and_then(std::sync::Weak::upgrade) {
                        api.peer_refused();
                    }
                    events::log(
                        "peer.refused",
                        json!({ "address": address.to_string(), "why": why }),
                    );
                }
            });
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(links.clone());
            Box::new(links)
        },
    )?;
    let links = started
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    Ok((engine, links.expect("a member was given its connections")))
}
