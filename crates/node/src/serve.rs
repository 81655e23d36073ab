//! A node of a cluster as a process: its settings in, replicas, connections and the public interface up, until it is told
//! to stop.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use clearspan_ledger::nodes::NodeRecord;
use clearspan_replica::MemberId;
use clearspan_storage::{DataDir, DataDirError, Identity, Life};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::MissedTickBehavior;

use crate::api::{self, Api, Door};
use crate::clock::Clock;
use crate::cluster::ConfigError;
use crate::cluster::definition::NodeKind;
use crate::cluster::node_config::NodeConfig;
use crate::cluster::pki::{LinkTls, PkiError};
use crate::cluster::renewal::Certificates;
use crate::engine::group::Seat;
use crate::engine::{Engine, EngineError, EngineOptions, FORGOTTEN};
use crate::events;
use crate::links::{LinkEvent, LinkListener, LinkOptions, Links, NotAdmitted};

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
    /// The data directory is empty.
    #[error(
        "{path} holds no node's data: {name} lost it, and with it what it had promised as a voter; re-admit it under a new \
         identity with `clearspan admin node replace`"
    )]
    Wiped {
        /// The directory.
        path: String,
        /// The node by name.
        name: String,
    },
    /// Other nodes do not take it for the member that it was.
    #[error("{by} does not admit {name}: {}", match why {
        NotAdmitted::Removed => "it was taken out of the cluster for good; its data is of no further use".to_owned(),
        NotAdmitted::RolledBack => FORGOTTEN.to_owned(),
    })]
    NotAdmitted {
        /// The node by name.
        name: String,
        /// Who said so.
        by: String,
        /// Why.
        why: NotAdmitted,
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
    let life = begin_life(&config)?;
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
    let (certificates, link_tls) = Certificates::load(config.tls.clone())?;
    let certificates = Arc::new(certificates);
    let refused = Arc::new(OnceLock::new());
    let dismissed = Arc::new(Dismissed::default());
    let doors = Doors {
        listener: peers,
        tls: link_tls,
        refused: refused.clone(),
        dismissed: dismissed.clone(),
        config_path: config_path.to_owned(),
    };
    let (engine, links) = open(&runtime, &config, life, doors)?;
    let api = Arc::new(Api::new(
        engine,
        Some(links.clone()),
        config.definition.clone(),
        config.node.clone(),
        config.rate.clone(),
        config.http,
    ));
    // Whoever was refused before now was refused, only not counted.
    let _ = refused.set(Arc::downgrade(&api));
    api.watch_certificates(certificates.clone());
    events::log(
        "node.started",
        json!({
            "node": node, "peer": config.peer_listen, "client": config.client_listen, "http": config.http_listen,
        }),
    );
    let signal = runtime.block_on(async {
        let door = Arc::new(Door::new(&config.http));
        let (public, own_api) = (door.clone(), api.clone());
        let public_tls = certificates.public();
        tokio::spawn(async move { api::tls(&public, own_api, clients, public_tls).await });
        let mut hangup = signal(SignalKind::hangup())?;
        let renewing = tokio::spawn(async move { renew(&certificates, &links, &mut hangup).await });
        if let Some(listener) = plain {
            let (plain, own_api) = (door.clone(), api.clone());
            tokio::spawn(async move { api::plain(&plain, own_api, listener).await });
        }
        let signal = tokio::select! {
            signal = stop_signal() => signal?,
            () = dismissed.told.notified() => "not admitted",
        };
        events::log("node.stopping", json!({ "node": node, "signal": signal }));
        renewing.abort();
        door.close().await;
        Ok::<_, io::Error>(signal)
    });
    // What is acknowledged is durable; a snapshot makes the next start short. A witness has no state to take one of.
    if config.node.kind == NodeKind::Data {
        api.engine.snapshot_all();
    }
    runtime.shutdown_timeout(Duration::from_secs(1));
    // The engine goes with the last request that held it.
    drop(api);
    let signal = signal.map_err(ServeError::Runtime)?;
    events::log("node.stopped", json!({ "node": node, "signal": signal }));
    match dismissed.why.get() {
        Some((by, why)) => Err(ServeError::NotAdmitted {
            name: node.clone(),
            by: by.clone(),
            why: *why,
        }),
        None => Ok(()),
    }
}

/// How often files of certificates are looked at.
const CERTIFICATES_LOOK: Duration = Duration::from_secs(2);
/// How often the log says what expires soon.
const EXPIRY_LOOK: Duration = Duration::from_secs(86_400);
/// What soon is.
const EXPIRES_SOON_DAYS: i64 = 30;

/// Takes certificates, keys, authorities and revocation lists up when their files change or SIGHUP comes.
async fn renew(certificates: &Certificates, links: &Links, hangup: &mut Signal) {
    let mut look = tokio::time::interval(CERTIFICATES_LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut warn = tokio::time::interval(EXPIRY_LOOK);
    loop {
        let forced = tokio::select! {
            Some(()) = hangup.recv() => true,
            _ = look.tick() => false,
            _ = warn.tick() => {
                warn_of_expiry(certificates);
                continue;
            }
        };
        match certificates.reload(forced) {
            Ok(None) => {}
            Ok(Some(tls)) => {
                links.set_tls(tls);
                // Other nodes are verified anew: they come back at once, unless they are no longer admitted.
                for peer in links.status() {
                    links.cut(peer.member);
                }
                events::log("certificates.taken-up", json!({ "asked": forced }));
                warn_of_expiry(certificates);
            }
            Err(error) => events::log(
                "certificates.refused",
                json!({ "why": error.to_string(), "then": "those that stand go on" }),
            ),
        }
    }
}

fn warn_of_expiry(certificates: &Certificates) {
    for (what, days) in certificates.days_left(Clock::System.now()) {
        if days < EXPIRES_SOON_DAYS {
            events::log(
                "certificates.expire",
                json!({ "what": what, "days_left": days }),
            );
        }
    }
}

async fn stop_signal() -> io::Result<&'static str> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    })
}

/// A directory that was carried to another node must not be taken for that node's, nor an empty one for one that is whole.
fn begin_life(config: &NodeConfig) -> Result<Life, ServeError> {
    let data = match DataDir::open(config.layout.clone()) {
        Err(DataDirError::Absent { root }) => {
            return Err(ServeError::Wiped {
                path: root.display().to_string(),
                name: config.node.name.clone(),
            });
        }
        other => other?,
    };
    let found = data.identity();
    let wanted = Identity {
        cluster: config.definition.cluster,
        node: config.node.id,
    };
    if found == wanted {
        // The clock goes on while the node is down, so a later life has a higher number.
        return Ok(data.begin_life(Clock::System.now().ns())?);
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

/// Set once another node has said that this one must not go on.
#[derive(Default)]
struct Dismissed {
    why: OnceLock<(String, NotAdmitted)>,
    told: tokio::sync::Notify,
}

/// What connections to other nodes need besides settings.
struct Doors {
    listener: LinkListener,
    tls: LinkTls,
    refused: Refusals,
    dismissed: Arc<Dismissed>,
    config_path: std::path::PathBuf,
}

fn open(
    runtime: &Runtime,
    config: &NodeConfig,
    life: Life,
    doors: Doors,
) -> Result<(Engine, Links), ServeError> {
    let definition = &config.definition;
    let Doors {
        listener,
        tls,
        refused,
        dismissed,
        config_path,
    } = doors;
    let names: BTreeMap<MemberId, String> = definition
        .nodes
        .iter()
        .map(|node| (node.member, node.name.clone()))
        .collect();
    let names = Arc::new(Mutex::new(names));
    let (own_names, own_peers) = (names.clone(), config.peer_addresses.clone());
    // Asked whenever the nodes change: by then the settings may say where a new one is reached.
    let address_of = move |node: &NodeRecord| {
        if let Some(member) = MemberId::new(node.member) {
            own_names
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(member, node.name.clone());
        }
        let read = NodeConfig::read(&config_path);
        let addresses = read.map_or_else(|_| own_peers.clone(), |read| read.peer_addresses);
        let other = addresses.get(&node.name);
        other.unwrap_or(&node.peer).clone()
    };
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
        incarnation: life.number,
        previous: life.previous,
        shards: definition.shards,
        peers: config.peers.clone(),
        address_of: Box::new(address_of),
        tls,
        limits: config.links,
    };
    let started = Arc::new(Mutex::new(None));
    let slot = started.clone();
    let handle = runtime.handle().clone();
    let engine = Engine::open_member(
        config.layout.clone(),
        definition.shards,
        options,
        Seat {
            me: config.node.member,
            witness: config.node.kind == NodeKind::Witness,
            founding: definition.directory(),
        },
        move |inlet| {
            let name = move |member: MemberId| {
                let names = names.lock().unwrap_or_else(PoisonError::into_inner);
                let known = names.get(&member).cloned();
                known.unwrap_or_else(|| format!("member {}", member.get()))
            };
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
                LinkEvent::Life {
                    member,
                    incarnation,
                } => inlet.life(member, incarnation),
                LinkEvent::NotAdmitted { by, why } => {
                    if dismissed.why.set((name(by), why)).is_ok() {
                        dismissed.told.notify_one();
                    }
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
