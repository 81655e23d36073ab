//! Connections from other nodes: who it is, then frames, until something ends it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clearspan_codec::frame::{Frame, Kind, Lane};
use clearspan_storage::NodeId;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::convert::from_wire;
use super::identity::{check_certificate, hello, read_hello, read_life};
use super::meter::count;
use super::wire::{encode_one, read_body, read_header, write};
use super::{AbortOnPanic, InboundGuard, LinkEvent, LinkFault, Peer, Room, Shared, lane_index};
use crate::cluster::pki::LINK_PROTOCOL;
use crate::engine::peers::PeerFrame;

/// Strangers that are looked at at once. Each may take this much of the node's time, and no memory to speak of.
const HANDSHAKES_MAX: usize = 256;
/// Before connections are taken again when the process has no file left for them.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Takes connections for as long as the node lives.
pub(super) async fn run(shared: Arc<Shared>, listener: TcpListener) {
    let _guard = AbortOnPanic;
    let slots = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => match slots.clone().try_acquire_owned() {
                    Ok(slot) => {
                        connections.spawn(serve(shared.clone(), stream, address, slot));
                    }
                    Err(_) => shared.refused(address, &LinkFault::Crowded),
                },
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(
    shared: Arc<Shared>,
    stream: TcpStream,
    address: SocketAddr,
    slot: OwnedSemaphorePermit,
) {
    let greeted = timeout(shared.limits.handshake_timeout, greet(&shared, stream)).await;
    drop(slot);
    match greeted.unwrap_or(Err(LinkFault::Handshake)) {
        Ok((stream, inbound)) => {
            let fault = receive(&shared, stream, &inbound).await;
            // A node that goes away closes its connections; the rest is worth a line.
            if !matches!(
                fault,
                LinkFault::Closed | LinkFault::Replaced | LinkFault::Read(_)
            ) {
                shared.refused(address, &fault);
            }
        }
        // It comes again, with the certificates of now.
        Err(LinkFault::Asked) => {}
        Err(fault) => shared.refused(address, &fault),
    }
}

type Greeted = (TlsStream<TcpStream>, InboundGuard);

/// Certificate, greeting and definition must name the same node; nothing else is parsed before.
async fn greet(shared: &Shared, stream: TcpStream) -> Result<Greeted, LinkFault> {
    stream.set_nodelay(true).map_err(LinkFault::Connect)?;
    let (changes, tls) = shared.tls();
    let acceptor = TlsAcceptor::from(tls.server);
    let mut stream = acceptor.accept(stream).await.map_err(LinkFault::Tls)?;
    if stream.get_ref().1.alpn_protocol() != Some(LINK_PROTOCOL) {
        return Err(LinkFault::Protocol);
    }
    let theirs = read_hello(shared, &mut stream).await?;
    let previous = read_life(shared, &mut stream).await?;
    let node = NodeId::from_bytes(theirs.node);
    check_certificate(stream.get_ref().1, node)?;
    if let Err(why) = shared.admits(theirs.member, node, theirs.incarnation, previous) {
        let refusal = encode_one(shared.cluster, &Frame::NotAdmitted(why))?;
        let sent_bytes = std::sync::atomic::AtomicU64::new(0);
        write(
            &mut stream,
            &refusal,
            shared.limits.stall_timeout,
            &sent_bytes,
        )
        .await?;
        // The answer must not be lost with the connection: the other side closes it.
        let _ = timeout(
            shared.limits.stall_timeout,
            tokio::io::copy(&mut stream, &mut tokio::io::sink()),
        )
        .await;
        return Err(LinkFault::NotAdmitted(why));
    }
    let peer = shared.peer(theirs.member).ok_or(LinkFault::Identity)?;
    if peer.node != node {
        return Err(LinkFault::Identity);
    }
    let inbound = peer.inbound_begins(theirs.lane, theirs.incarnation)?;
    shared.met(theirs.member, theirs.incarnation);
    let ours = encode_one(shared.cluster, &hello(shared, theirs.lane))?;
    write(
        &mut stream,
        &ours,
        shared.limits.stall_timeout,
        &peer.meter.sent_bytes[lane_index(theirs.lane)],
    )
    .await?;
    if !shared.tls_is_of(changes) {
        return Err(LinkFault::Asked);
    }
    Ok((stream, inbound))
}

/// Hands on what comes in. Frames of one connection keep their order; a newer connection's come after all of an older one's.
async fn receive(
    shared: &Shared,
    mut stream: TlsStream<TcpStream>,
    connection: &InboundGuard,
) -> LinkFault {
    let InboundGuard {
        peer,
        lane,
        inbound,
    } = connection;
    let reading = async {
        let _turn = peer.turn(*lane).lock().await;
        loop {
            if let Err(fault) = receive_one(shared, peer, *lane, &mut stream).await {
                return fault;
            }
        }
    };
    tokio::select! {
        biased;
        () = inbound.cut.notified() => LinkFault::Replaced,
        fault = reading => fault,
    }
}

async fn receive_one(
    shared: &Shared,
    peer: &Peer,
    lane: Lane,
    stream: &mut TlsStream<TcpStream>,
) -> Result<(), LinkFault> {
    let limits = &shared.limits;
    let header = read_header(stream, shared.cluster, limits.idle_timeout).await?;
    if matches!(
        header.kind(),
        Kind::Hello | Kind::Pong | Kind::Life | Kind::NotAdmitted
    ) {
        return Err(LinkFault::Unexpected(header.kind()));
    }
    // Memory for what the core has not looked at yet is bounded per peer: behind that the peer waits, and no other.
    let wanted = u32::try_from(header.body_bytes()).unwrap_or(u32::MAX);
    let room = peer
        .room(lane)
        .acquire_many_owned(wanted)
        .await
        .map_err(|_| LinkFault::Closed)?;
    let frame = read_body(stream, &header, limits.idle_timeout).await?;
    count(
        &peer.meter.received_bytes[lane_index(lane)],
        clearspan_codec::frame::HEADER_BYTES + header.body_bytes(),
    );
    if let Frame::Ping { number } = frame {
        let pong = encode_one(shared.cluster, &Frame::Pong { number })?;
        let sent = &peer.meter.sent_bytes[lane_index(lane)];
        return write(stream, &pong, limits.stall_timeout, sent).await;
    }
    let frame = from_wire(frame).ok_or(LinkFault::Unexpected(header.kind()))?;
    check_addresses(shared, peer, &frame)?;
    count(&peer.meter.received_frames, 1);
    (shared.sink)(LinkEvent::Frame {
        from: peer.member,
        frame,
        room: Room(room),
    });
    Ok(())
}

/// A member speaks for itself, to this one, about shards that there are.
fn check_addresses(shared: &Shared, peer: &Peer, frame: &PeerFrame) -> Result<(), LinkFault> {
    let shard = match frame {
        PeerFrame::Raft(shard, message) => {
            if message.from != peer.member || message.to != shared.me {
                return Err(LinkFault::Misaddressed);
            }
            *shard
        }
        PeerFrame::Answer { .. } | PeerFrame::ReadAnswer { .. } | PeerFrame::Nodes { .. } => {
            return Ok(());
        }
        PeerFrame::Propose { shard, .. }
        | PeerFrame::WantSnapshot { shard, .. }
        | PeerFrame::SnapshotPiece { shard, .. }
        | PeerFrame::SnapshotEnd { shard, .. }
        | PeerFrame::Held { shard, .. }
        | PeerFrame::Digest { shard, .. }
        | PeerFrame::ReadIndex { shard, .. }
        | PeerFrame::WantPackages { shard, .. }
        | PeerFrame::Packages { shard, .. } => *shard,
    };
    if shard.get() < shared.shards {
        Ok(())
    } else {
        Err(LinkFault::Misaddressed)
    }
}
