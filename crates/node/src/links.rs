//! Connections between nodes: mutual TLS 1.3, two per peer and direction, our own frames.
//!
//! Every node dials every other one and keeps two connections to it, used for sending only: one for what must not queue
//! behind megabytes, one for data. The acceptor reads. Both live and end together: a peer is up, or it is down, and what
//! waited for it is dropped, since replicas know how to go on and old messages only delay that. [`Links::send`] never
//! waits: a peer that does not drain its queue is cut off, and no other notices.
//!
//! A connection counts only once three things name the same node: its certificate, signed by the nodes' CA, its greeting,
//! and the cluster's definition. Before that nothing but the greeting is parsed.
//!
//! What is left to others: what frames mean, and what to do about a peer that is down.

mod accept;
mod convert;
mod dial;
mod identity;
mod meter;
mod queue;
mod wire;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use clearspan_codec::frame::{BODY_MAX_BYTES, FrameError, Kind, Lane};
use clearspan_ledger::nodes::{NodeDirectory, NodeRecord, NodeState};
use clearspan_replica::MemberId;
use clearspan_storage::{ClusterId, NodeId};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use crate::cluster::pki::LinkTls;
use crate::engine::peers::{PeerFrame, Peers};
use meter::Meter;
use queue::Queue;

pub use clearspan_codec::frame::NotAdmitted;
pub use convert::{recoded, weight_bytes};
pub use meter::{RTT_KEPT, Rtt};

/// Maxima and timeouts of a node's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLimits {
    /// Data that waits for one peer: bandwidth x round trip and more, so that a pause of the network does not cut.
    pub bulk_queue_bytes: usize,
    /// Urgent frames' bytes that wait for one peer.
    pub urgent_queue_bytes: usize,
    /// Frames that wait for one peer, in either lane.
    pub queue_frames: usize,
    /// Per peer and lane, what was received and the core has not yet dropped.
    pub inbound_bytes: usize,
    /// Send and receive buffers of the sockets that carry data; `None` leaves them to the system. Over regions
    /// bandwidth x round trip, if the system's maxima are lower than that.
    pub socket_buffer_bytes: Option<u32>,
    /// From the first packet to the greeting's answer.
    pub handshake_timeout: Duration,
    /// A write that makes no step forward for this long ends the connection.
    pub stall_timeout: Duration,
    /// Silence of this length ends the connection; several ping intervals.
    pub idle_timeout: Duration,
    /// Between pings.
    pub ping_interval: Duration,
    /// Before the first new attempt to connect; doubles.
    pub backoff_min: Duration,
    /// The longest wait before a new attempt.
    pub backoff_max: Duration,
}

impl Default for LinkLimits {
    fn default() -> Self {
        Self {
            // 25 MB are 160 MB/s x 156 ms; 64 MiB leave room for a pause of 0.25 s at that rate.
            bulk_queue_bytes: 64 << 20,
            urgent_queue_bytes: 8 << 20,
            // The bytes of so many smallest frames fit the bulk queue.
            queue_frames: 65_536,
            inbound_bytes: 64 << 20,
            socket_buffer_bytes: None,
            handshake_timeout: Duration::from_secs(5),
            stall_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(10),
            ping_interval: Duration::from_secs(1),
            backoff_min: Duration::from_millis(50),
            backoff_max: Duration::from_secs(1),
        }
    }
}

/// Another node, as the definition has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    /// Its number in the groups.
    pub member: MemberId,
    /// Its identity, which its certificate must name.
    pub node: NodeId,
    /// Host and port to dial: its own, or those of something between.
    pub address: String,
}

/// Where another node is dialled, given its record; asked whenever the nodes change.
pub type AddressOf = Box<dyn Fn(&NodeRecord) -> String + Send + Sync>;

/// Who this node is and who the others are.
pub struct LinkOptions {
    /// The cluster; in every frame.
    pub cluster: ClusterId,
    /// This node's identity.
    pub node: NodeId,
    /// This node's number in the groups.
    pub me: MemberId,
    /// This life of the node; rises with every start of its process: the newer of two is believed.
    pub incarnation: u64,
    /// The life before, as its data says; zero for none.
    pub previous: u64,
    /// How many shards there are: frames about others are refused.
    pub shards: u16,
    /// All other nodes, until others are set.
    pub peers: Vec<PeerAddress>,
    /// Where nodes that are set later are dialled.
    pub address_of: AddressOf,
    /// Certificates.
    pub tls: LinkTls,
    /// Maxima and timeouts.
    pub limits: LinkLimits,
}

/// Something from the connections, for the core.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all events are frames; a box would cost an allocation for each"
)]
pub enum LinkEvent {
    /// A frame.
    Frame {
        /// Who sent it; its certificate says so.
        from: MemberId,
        /// The frame, checked; its shard exists.
        frame: PeerFrame,
        /// To be dropped when the frame has been dealt with: then its sender may send as much again.
        room: Room,
    },
    /// Frames for this member are taken from now on.
    Up(MemberId),
    /// This member cannot be reached: frames that were on their way may be lost.
    Down {
        /// Who.
        member: MemberId,
        /// Why, for people.
        why: String,
    },
    /// A member has shown that it lives its life of this number.
    Life {
        /// Who.
        member: MemberId,
        /// Which.
        incarnation: u64,
    },
    /// This node is not admitted: it must stop, and not come back as the member that it was.
    NotAdmitted {
        /// By whom; this node itself when it has learnt that it was removed.
        by: MemberId,
        /// Why.
        why: NotAdmitted,
    },
    /// A connection from outside was refused or ended for a fault.
    Refused {
        /// Where it came from.
        address: SocketAddr,
        /// Why, for people.
        why: String,
    },
}

/// A received frame's share of the memory that its sender may fill here.
#[derive(Debug)]
pub struct Room(#[expect(dead_code, reason = "its drop gives the room back")] OwnedSemaphorePermit);

/// Why a connection ended or never was.
#[derive(Debug, thiserror::Error)]
pub enum LinkFault {
    /// No connection.
    #[error("connect: {0}")]
    Connect(#[source] io::Error),
    /// The TLS handshake failed: a certificate of another CA, expired, or no TLS at all.
    #[error("TLS handshake: {0}")]
    Tls(#[source] io::Error),
    /// It speaks something else.
    #[error("it does not speak the nodes' protocol")]
    Protocol,
    /// The certificate is not that of the node.
    #[error("the certificate names another node, several, or none")]
    Certificate,
    /// The definition has no such node.
    #[error("the cluster has no such node and member")]
    Identity,
    /// A node that may not be the member that it says it is, for good.
    #[error("not admitted: {0:?}")]
    NotAdmitted(NotAdmitted),
    /// A connection of a newer life of the same node stands.
    #[error("an older life of a node that is connected")]
    Older,
    /// The handshake took too long.
    #[error("the handshake took too long")]
    Handshake,
    /// Too many handshakes at once.
    #[error("too many handshakes at once")]
    Crowded,
    /// A frame that cannot be read.
    #[error("a frame: {0}")]
    Frame(#[from] FrameError),
    /// A frame that is not allowed here.
    #[error("a {0:?} frame where none is allowed")]
    Unexpected(Kind),
    /// A frame in another's name, to another, or about a shard that does not exist.
    #[error("a frame in another member's name, to another, or about no shard of the cluster")]
    Misaddressed,
    /// Reading failed.
    #[error("read: {0}")]
    Read(#[source] io::Error),
    /// Writing failed.
    #[error("write: {0}")]
    Write(#[source] io::Error),
    /// The peer ended it.
    #[error("the peer closed the connection")]
    Closed,
    /// A newer connection took its place.
    #[error("a newer connection took its place")]
    Replaced,
    /// Nothing came for too long.
    #[error("nothing came for too long")]
    Silent,
    /// A write made no step forward for too long.
    #[error("the peer takes nothing any more")]
    Stalled,
    /// The queue was full.
    #[error("the queue to the peer was full")]
    Overflow,
    /// It was asked for.
    #[error("cut on request")]
    Asked,
}

impl LinkFault {
    fn read(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Closed,
            _ => Self::Read(error),
        }
    }
}

/// How the connection to a peer stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// Who.
    pub member: MemberId,
    /// The address that is dialled.
    pub address: String,
    /// For how long it has been connected; `None` while it is down.
    pub connected_ns: Option<u64>,
    /// The life of its process that is connected.
    pub incarnation: Option<u64>,
    /// Frames sent since the start.
    pub sent_frames: u64,
    /// Bytes sent since the start, before encryption, urgent ones first.
    pub sent_bytes: [u64; 2],
    /// Frames received since the start.
    pub received_frames: u64,
    /// Bytes received since the start, after decryption, urgent ones first.
    pub received_bytes: [u64; 2],
    /// Frames that wait, urgent ones first.
    pub queued_frames: [usize; 2],
    /// Their bytes.
    pub queued_bytes: [usize; 2],
    /// How often a standing connection ended.
    pub cuts: u64,
    /// The round trip, while it is up.
    pub rtt: Option<Rtt>,
    /// Why the last connection or attempt ended.
    pub last_fault: Option<String>,
}

/// The door that a node listens at.
#[derive(Debug)]
pub struct LinkListener {
    inner: TcpListener,
}

/// Connections that wait to be looked at.
const LISTEN_BACKLOG: u32 = 256;

impl LinkListener {
    /// Binds the address. Buffers are set before, as TCP wants it.
    ///
    /// # Errors
    /// As the system says.
    pub fn bind(runtime: &Handle, address: SocketAddr, limits: &LinkLimits) -> io::Result<Self> {
        let _context = runtime.enter();
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        socket.set_reuseaddr(true)?;
        if let Some(bytes) = limits.socket_buffer_bytes {
            socket.set_recv_buffer_size(bytes)?;
        }
        socket.bind(address)?;
        Ok(Self {
            inner: socket.listen(LISTEN_BACKLOG)?,
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// As the system says.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

struct Shared {
    cluster: [u8; 16],
    node: NodeId,
    me: MemberId,
    incarnation: u64,
    shards: u16,
    limits: LinkLimits,
    previous: u64,
    peers: RwLock<BTreeMap<MemberId, Arc<Peer>>>,
    /// Who was removed and has left all groups.
    removed: RwLock<BTreeMap<MemberId, NodeId>>,
    /// The newest life of each member.
    lives: Mutex<BTreeMap<MemberId, u64>>,
    address_of: AddressOf,
    /// The certificates of now, and how often they were changed.
    tls: RwLock<(u64, LinkTls)>,
    sink: Box<dyn Fn(LinkEvent) + Send + Sync>,
}

impl Shared {
    fn tls(&self) -> (u64, LinkTls) {
        self.tls
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether certificates are still those of then. Asked once a connection can be cut: one that was greeted with older
    /// ones, and was under way when all were cut, would otherwise outlive them.
    fn tls_is_of(&self, changes: u64) -> bool {
        self.tls().0 == changes
    }

    fn peer(&self, member: MemberId) -> Option<Arc<Peer>> {
        let peers = self.peers.read().unwrap_or_else(PoisonError::into_inner);
        peers.get(&member).cloned()
    }

    fn all_peers(&self) -> Vec<Arc<Peer>> {
        let peers = self.peers.read().unwrap_or_else(PoisonError::into_inner);
        peers.values().cloned().collect()
    }

    fn lives(&self) -> std::sync::MutexGuard<'_, BTreeMap<MemberId, u64>> {
        self.lives.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a node may talk as this member. A directory that does not know the newest life that was seen here is a copy
    /// from before it: it has forgotten votes and entries that were promised then.
    fn admits(
        &self,
        member: MemberId,
        node: NodeId,
        incarnation: u64,
        previous: u64,
    ) -> Result<(), NotAdmitted> {
        let removed = self.removed.read().unwrap_or_else(PoisonError::into_inner);
        if removed.get(&member) == Some(&node) {
            return Err(NotAdmitted::Removed);
        }
        match self.lives().get(&member) {
            Some(&newest) if incarnation != newest && previous < newest => {
                Err(NotAdmitted::RolledBack)
            }
            _ => Ok(()),
        }
    }

    fn met(&self, member: MemberId, incarnation: u64) {
        let newer = {
            let mut lives = self.lives();
            let known = lives.entry(member).or_default();
            let newer = incarnation > *known;
            *known = incarnation.max(*known);
            newer
        };
        if newer {
            (self.sink)(LinkEvent::Life {
                member,
                incarnation,
            });
        }
    }

    fn new_peer(&self, address: PeerAddress) -> Arc<Peer> {
        let limits = &self.limits;
        let room = || {
            Arc::new(Semaphore::new(
                limits.inbound_bytes.min(Semaphore::MAX_PERMITS),
            ))
        };
        Arc::new(Peer {
            member: address.member,
            node: address.node,
            address: address.address,
            urgent: Queue::new(limits.queue_frames, limits.urgent_queue_bytes),
            bulk: Queue::new(limits.queue_frames, limits.bulk_queue_bytes),
            meter: Meter::default(),
            cut: Notify::new(),
            inbound: Mutex::default(),
            turns: Default::default(),
            rooms: [room(), room()],
        })
    }

    fn refused(&self, address: SocketAddr, fault: &LinkFault) {
        (self.sink)(LinkEvent::Refused {
            address,
            why: fault.to_string(),
        });
    }
}

struct Peer {
    member: MemberId,
    node: NodeId,
    address: String,
    urgent: Queue,
    bulk: Queue,
    meter: Meter,
    /// Ends the connections.
    cut: Notify,
    /// Per lane: the connection that is believed.
    inbound: Mutex<[Option<Arc<Inbound>>; 2]>,
    /// Per lane: held by the connection whose frames are handed on.
    turns: [tokio::sync::Mutex<()>; 2],
    /// Per lane: what may be received and not yet dealt with.
    rooms: [Arc<Semaphore>; 2],
}

/// A connection from a peer.
struct Inbound {
    incarnation: u64,
    /// Ends it.
    cut: Notify,
}

/// Takes the connection out of the books when it ends, however it ends.
struct InboundGuard {
    peer: Arc<Peer>,
    lane: Lane,
    inbound: Arc<Inbound>,
}

impl Drop for InboundGuard {
    fn drop(&mut self) {
        let mut all = self.peer.lock_inbound();
        let current = &mut all[lane_index(self.lane)];
        if current
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, &self.inbound))
        {
            *current = None;
        }
    }
}

const fn lane_index(lane: Lane) -> usize {
    match lane {
        Lane::Urgent => 0,
        Lane::Bulk => 1,
    }
}

impl Peer {
    fn queue(&self, lane: Lane) -> &Queue {
        match lane {
            Lane::Urgent => &self.urgent,
            Lane::Bulk => &self.bulk,
        }
    }

    fn turn(&self, lane: Lane) -> &tokio::sync::Mutex<()> {
        &self.turns[lane_index(lane)]
    }

    fn room(&self, lane: Lane) -> Arc<Semaphore> {
        self.rooms[lane_index(lane)].clone()
    }

    fn lock_inbound(&self) -> std::sync::MutexGuard<'_, [Option<Arc<Inbound>>; 2]> {
        self.inbound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection has said who it is. It takes the place of one that the peer may have lost already, but never of one
    /// from a newer life: a copy of a node that still runs somewhere must not push the real one aside.
    fn inbound_begins(
        self: &Arc<Self>,
        lane: Lane,
        incarnation: u64,
    ) -> Result<InboundGuard, LinkFault> {
        let mut all = self.lock_inbound();
        if all
            .iter()
            .flatten()
            .any(|known| known.incarnation > incarnation)
        {
            return Err(LinkFault::Older);
        }
        let inbound = Arc::new(Inbound {
            incarnation,
            cut: Notify::new(),
        });
        if let Some(known) = all[lane_index(lane)].replace(inbound.clone()) {
            known.cut.notify_one();
        }
        drop(all);
        Ok(InboundGuard {
            peer: self.clone(),
            lane,
            inbound,
        })
    }

    fn status(&self) -> PeerStatus {
        let (urgent, bulk) = (self.urgent.depth(), self.bulk.depth());
        let connection = self.meter.connection();
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        PeerStatus {
            member: self.member,
            address: self.address.clone(),
            connected_ns: connection.map(|(ns, _)| ns),
            incarnation: connection.map(|(_, incarnation)| incarnation),
            sent_frames: read(&self.meter.sent_frames),
            sent_bytes: self.meter.sent_bytes.each_ref().map(read),
            received_frames: read(&self.meter.received_frames),
            received_bytes: self.meter.received_bytes.each_ref().map(read),
            queued_frames: [urgent.0, bulk.0],
            queued_bytes: [urgent.1, bulk.1],
            cuts: read(&self.meter.cuts),
            rtt: self.meter.rtt(),
            last_fault: self.meter.last_fault(),
        }
    }
}

/// A node's connections to all others. Clones are the same connections; they end when the last one is dropped.
#[derive(Clone)]
pub struct Links {
    shared: Arc<Shared>,
    tasks: Arc<Tasks>,
}

impl fmt::Debug for LinkOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkOptions")
            .field("me", &self.me)
            .field("peers", &self.peers)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links")
            .field("me", &self.shared.me)
            .finish_non_exhaustive()
    }
}

struct Tasks {
    runtime: Handle,
    accept: AbortHandle,
    /// What dials each peer.
    dial: Mutex<BTreeMap<MemberId, AbortHandle>>,
}

impl Tasks {
    fn dial(&self) -> std::sync::MutexGuard<'_, BTreeMap<MemberId, AbortHandle>> {
        self.dial.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, shared: &Arc<Shared>, peer: &Arc<Peer>) {
        let task = self
            .runtime
            .spawn(dial::run(shared.clone(), peer.clone()))
            .abort_handle();
        if let Some(before) = self.dial().insert(peer.member, task) {
            before.abort();
        }
    }

    fn end(&self, member: MemberId) {
        if let Some(task) = self.dial().remove(&member) {
            task.abort();
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.accept.abort();
        for task in self.dial().values() {
            task.abort();
        }
    }
}

/// A bug in a task that connections depend on must end the process: peers would wait for it for ever.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

impl Links {
    /// Starts to listen and to dial. `sink` is called on the runtime's threads and must not wait; what it holds back is
    /// bounded by [`LinkLimits::inbound_bytes`] as long as each [`Room`] lives as long as its frame.
    ///
    /// # Panics
    /// When a limit could never let the largest frame through: that is a bug of whoever set it.
    pub fn start(
        runtime: &Handle,
        listener: LinkListener,
        options: LinkOptions,
        sink: impl Fn(LinkEvent) + Send + Sync + 'static,
    ) -> Self {
        let limits = options.limits;
        assert!(
            limits.inbound_bytes >= BODY_MAX_BYTES,
            "the largest frame must fit"
        );
        assert!(
            limits.bulk_queue_bytes >= BODY_MAX_BYTES,
            "the largest frame must fit"
        );
        let shared = Arc::new(Shared {
            cluster: options.cluster.to_bytes(),
            node: options.node,
            me: options.me,
            incarnation: options.incarnation,
            shards: options.shards,
            limits,
            previous: options.previous,
            peers: RwLock::default(),
            removed: RwLock::default(),
            lives: Mutex::default(),
            address_of: options.address_of,
            tls: RwLock::new((0, options.tls)),
            sink: Box::new(sink),
        });
        let accept = runtime
            .spawn(accept::run(shared.clone(), listener.inner))
            .abort_handle();
        let links = Self {
            shared,
            tasks: Arc::new(Tasks {
                runtime: runtime.clone(),
                accept,
                dial: Mutex::default(),
            }),
        };
        for address in options.peers {
            links.add(address);
        }
        links
    }

    fn add(&self, address: PeerAddress) {
        let peer = self.shared.new_peer(address);
        let mut peers = self
            .shared
            .peers
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        peers.insert(peer.member, peer.clone());
        drop(peers);
        self.tasks.start(&self.shared, &peer);
    }

    /// Ends everything to and from a peer; it is a stranger from now on.
    fn remove(&self, member: MemberId) {
        self.tasks.end(member);
        let mut peers = self
            .shared
            .peers
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(peer) = peers.remove(&member) else {
            return;
        };
        drop(peers);
        peer.urgent.close();
        peer.bulk.close();
        for inbound in peer.lock_inbound().iter().flatten() {
            inbound.cut.notify_one();
        }
        (self.shared.sink)(LinkEvent::Down {
            member,
            why: LinkFault::Asked.to_string(),
        });
    }

    /// How every peer stands, by member.
    #[must_use]
    pub fn status(&self) -> Vec<PeerStatus> {
        self.shared
            .all_peers()
            .iter()
            .map(|peer| peer.status())
            .collect()
    }

    /// The round trip to every peer that is up and has answered a ping.
    #[must_use]
    pub fn rtt(&self) -> BTreeMap<MemberId, Rtt> {
        let peers = self.shared.all_peers();
        peers
            .iter()
            .filter_map(|peer| Some((peer.member, peer.meter.rtt()?)))
            .collect()
    }

    /// Takes other certificates for connections from now on; those that stand go on with theirs.
    pub fn set_tls(&self, tls: LinkTls) {
        let mut now = self
            .shared
            .tls
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *now = (now.0 + 1, tls);
    }

    /// Ends the connections to and from a member; they are opened anew, with the certificates of then.
    pub fn cut(&self, member: MemberId) {
        if let Some(peer) = self.shared.peer(member) {
            // A wish while there is nothing to cut must not end the next connection.
            if peer.meter.connection().is_some() {
                peer.cut.notify_one();
            }
            for inbound in peer.lock_inbound().iter().flatten() {
                inbound.cut.notify_one();
            }
        }
    }
}

impl Peers for Links {
    fn send(&mut self, to: MemberId, frame: PeerFrame) -> bool {
        let Some(peer) = self.shared.peer(to) else {
            return false;
        };
        let lane = if frame.is_urgent() {
            Lane::Urgent
        } else {
            Lane::Bulk
        };
        peer.queue(lane).push(frame)
    }

    fn set_nodes(&mut self, directory: &NodeDirectory, linked: &BTreeSet<MemberId>) {
        let mut wanted = Vec::new();
        let mut removed = BTreeMap::new();
        for node in directory.all() {
            let Some(member) = MemberId::new(node.member) else {
                continue;
            };
            let id = NodeId::from_bytes(node.id.to_be_bytes());
            if node.state == NodeState::Removed && !linked.contains(&member) {
                removed.insert(member, id);
            } else if member != self.shared.me {
                wanted.push(PeerAddress {
                    member,
                    node: id,
                    address: (self.shared.address_of)(node),
                });
            }
        }
        let me_removed = removed.get(&self.shared.me) == Some(&self.shared.node);
        *self
            .shared
            .removed
            .write()
            .unwrap_or_else(PoisonError::into_inner) = removed;
        for peer in self.shared.all_peers() {
            let stays = wanted.iter().any(|address| {
                address.member == peer.member
                    && address.node == peer.node
                    && address.address == peer.address
            });
            if !stays {
                self.remove(peer.member);
            }
        }
        for address in wanted {
            if self.shared.peer(address.member).is_none() {
                self.add(address);
            }
        }
        if me_removed {
            (self.shared.sink)(LinkEvent::NotAdmitted {
                by: self.shared.me,
                why: NotAdmitted::Removed,
            });
        }
    }

    fn set_lives(&mut self, lives: &BTreeMap<MemberId, u64>) {
        let mut known = self.shared.lives();
        for (&member, &life) in lives {
            let newest = known.entry(member).or_default();
            *newest = life.max(*newest);
        }
    }
}
