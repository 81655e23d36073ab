//! The connections to one peer: two, used for sending, which live and end together.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use clearspan_codec::frame::{self, Frame, Lane};
use tokio::io::{ReadHalf, WriteHalf, split};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::convert::to_wire;
use super::identity::{check_certificate, hello, read_hello, server_name};
use super::meter::{count, elapsed_ns, now};
use super::wire::{encode_one, read_body, read_header, write};
use super::{AbortOnPanic, LinkEvent, LinkFault, Peer, Shared, lane_index};
use crate::cluster::pki::LINK_PROTOCOL;

/// Frames are gathered up to this before they are written, so that small ones share a TLS record and a system call.
const BATCH_BYTES: usize = 256 << 10;
/// Above this a writer gives its memory back after a large frame.
const BUFFER_KEPT_BYTES: usize = 1 << 20;

/// Keeps the peer connected for as long as the node lives.
pub(super) async fn run(shared: Arc<Shared>, peer: Arc<Peer>) {
    let _guard = AbortOnPanic;
    let limits = shared.limits;
    let mut backoff = limits.backoff_min;
    loop {
        let (changes, _) = shared.tls();
        let fault = match connect(&shared, &peer).await {
            Ok((urgent, bulk, incarnation)) => {
                let since = now();
                peer.meter.connected(incarnation);
                peer.urgent.open();
                peer.bulk.open();
                (shared.sink)(LinkEvent::Up(peer.member));
                let fault = if shared.tls_is_of(changes) {
                    tokio::select! {
                        fault = drive(&shared, &peer, Lane::Urgent, urgent) => fault,
                        fault = drive(&shared, &peer, Lane::Bulk, bulk) => fault,
                        () = peer.cut.notified() => LinkFault::Asked,
                    }
                } else {
                    LinkFault::Asked
                };
                peer.urgent.close();
                peer.bulk.close();
                // A peer that takes connections only to end them is not dialled faster than one that takes none.
                if since.elapsed() > limits.backoff_max {
                    backoff = limits.backoff_min;
                }
                peer.meter.disconnected(&fault.to_string());
                (shared.sink)(LinkEvent::Down {
                    member: peer.member,
                    why: fault.to_string(),
                });
                fault
            }
            Err(fault) => fault,
        };
        if let LinkFault::NotAdmitted(why) = fault {
            (shared.sink)(LinkEvent::NotAdmitted {
                by: peer.member,
                why,
            });
        }
        peer.meter.disconnected(&fault.to_string());
        sleep(backoff).await;
        backoff = (backoff * 2).min(limits.backoff_max);
    }
}

type Stream = TlsStream<TcpStream>;

async fn connect(shared: &Shared, peer: &Peer) -> Result<(Stream, Stream, u64), LinkFault> {
    let both = async {
        tokio::try_join!(
            connect_lane(shared, peer, Lane::Urgent),
            connect_lane(shared, peer, Lane::Bulk)
        )
    };
    let ((urgent, first), (bulk, second)) = timeout(shared.limits.handshake_timeout, both)
        .await
        .map_err(|_| LinkFault::Handshake)??;
    // The peer restarted between the two.
    if first != second {
        return Err(LinkFault::Closed);
    }
    Ok((urgent, bulk, first))
}

async fn connect_lane(
    shared: &Shared,
    peer: &Peer,
    lane: Lane,
) -> Result<(Stream, u64), LinkFault> {
    let connector = TlsConnector::from(shared.tls().1.client);
    let stream = open(shared, &peer.address, lane)
        .await
        .map_err(LinkFault::Connect)?;
    let mut stream = connector
        .connect(server_name(peer.node)?, stream)
        .await
        .map_err(LinkFault::Tls)?;
    let (_, connection) = stream.get_ref();
    if connection.alpn_protocol() != Some(LINK_PROTOCOL) {
        return Err(LinkFault::Protocol);
    }
    check_certificate(connection, peer.node)?;
    let mut greeting = encode_one(shared.cluster, &hello(shared, lane))?;
    let life = Frame::Life {
        previous: shared.previous,
    };
    frame::encode(shared.cluster, &life, &mut greeting)?;
    write(
        &mut stream,
        &greeting,
        shared.limits.stall_timeout,
        &peer.meter.sent_bytes[lane_index(lane)],
    )
    .await?;
    let answer = read_hello(shared, &mut stream).await?;
    if answer.node != peer.node.to_bytes() || answer.member != peer.member || answer.lane != lane {
        return Err(LinkFault::Identity);
    }
    Ok((stream, answer.incarnation))
}

async fn open(shared: &Shared, address: &str, lane: Lane) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::from(std::io::ErrorKind::NotFound);
    for address in lookup_host(address).await? {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        socket.set_nodelay(true)?;
        if let (Lane::Bulk, Some(bytes)) = (lane, shared.limits.socket_buffer_bytes) {
            socket.set_send_buffer_size(bytes)?;
        }
        match socket.connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Sends what is queued until something ends it.
async fn drive(shared: &Shared, peer: &Peer, lane: Lane, stream: Stream) -> LinkFault {
    let (reader, writer) = split(stream);
    let origin = now();
    let answered = AtomicU64::new(0);
    let ended = tokio::select! {
        ended = send(shared, peer, lane, writer, origin, &answered) => ended,
        ended = hear(shared, peer, lane, reader, origin, &answered) => ended,
        () = peer.queue(lane).overflowed() => Err(LinkFault::Overflow),
    };
    ended.map_or_else(|fault| fault, |never| match never {})
}

async fn send(
    shared: &Shared,
    peer: &Peer,
    lane: Lane,
    mut writer: WriteHalf<Stream>,
    origin: Instant,
    answered_ns: &AtomicU64,
) -> Result<std::convert::Infallible, LinkFault> {
    let limits = &shared.limits;
    let queue = peer.queue(lane);
    let mut beat = interval(limits.ping_interval);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let silence_ns = nanoseconds(limits.idle_timeout);
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        buffer.shrink_to(BUFFER_KEPT_BYTES);
        tokio::select! {
            biased;
            _ = beat.tick() => {
                let number = elapsed_ns(origin);
                // On the bulk lane an answer may rightly come late, behind megabytes: there only a standstill is a fault.
                let answered_ns = answered_ns.load(std::sync::atomic::Ordering::Relaxed);
                if lane == Lane::Urgent && number.saturating_sub(answered_ns) > silence_ns {
                    return Err(LinkFault::Silent);
                }
                frame::encode(shared.cluster, &Frame::Ping { number }, &mut buffer)?;
            }
            batch = queue.next(BATCH_BYTES) => {
                let batch = batch.ok_or(LinkFault::Overflow)?;
                let frames = batch.len();
                for frame in batch {
                    frame::encode(shared.cluster, &to_wire(frame), &mut buffer)?;
                }
                count(&peer.meter.sent_frames, frames);
            }
        }
        write(
            &mut writer,
            &buffer,
            limits.stall_timeout,
            &peer.meter.sent_bytes[lane_index(lane)],
        )
        .await?;
    }
}

/// Answers to pings are all that comes back; an end is noticed at once.
async fn hear(
    shared: &Shared,
    peer: &Peer,
    lane: Lane,
    mut reader: ReadHalf<Stream>,
    origin: Instant,
    answered_ns: &AtomicU64,
) -> Result<std::convert::Infallible, LinkFault> {
    loop {
        // The writer counts silence.
        let header = read_header(&mut reader, shared.cluster, Duration::MAX).await?;
        if header.kind() != frame::Kind::Pong {
            return Err(LinkFault::Unexpected(header.kind()));
        }
        let answer = read_body(&mut reader, &header, shared.limits.idle_timeout).await?;
        let Frame::Pong { number } = answer else {
            return Err(LinkFault::Unexpected(header.kind()));
        };
        let now_ns = elapsed_ns(origin);
        answered_ns.store(now_ns, std::sync::atomic::Ordering::Relaxed);
        if lane == Lane::Urgent {
            peer.meter.round_trip(now_ns.saturating_sub(number));
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
