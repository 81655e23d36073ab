//! Whatever comes to the door: it is refused, and the node and its other connections live on.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream as StdStream;

use clearspan_codec::frame::{self, Frame, HEADER_BYTES, Hello, Lane};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use super::*;
use crate::cluster::pki::node_name;
use crate::engine::peers::Peers as _;

/// Node 1 at work with node 2; node 3 of the definition is whoever the test makes of it.
struct Besieged {
    world: World,
    ends: Vec<End>,
    address: SocketAddr,
}

impl Besieged {
    fn new() -> Self {
        let world = World::new();
        let limits = quick();
        let (listener_1, address) = world.listener(&limits);
        let (listener_2, address_2) = world.listener(&limits);
        let addresses = BTreeMap::from([(1, address), (2, address_2)]);
        let mut known = addresses.clone();
        // Nobody listens there: node 3 dials only.
        known.insert(3, loopback(1));
        let ends = vec![
            world.start(1, listener_1, &known, |_| {}),
            world.start(2, listener_2, &addresses, |_| {}),
        ];
        assert_eq!(ends[0].expect_up(), member(2));
        ends[1].expect_up();
        Self {
            world,
            ends,
            address,
        }
    }

    /// The node still does its work.
    fn assert_alive(&mut self) {
        assert!(self.ends[1].links.send(member(1), held(77)));
        assert!(
            matches!(self.ends[0].expect_frame(), (from, PeerFrame::Held { index: 77, .. }) if from == member(2))
        );
    }

    fn hello(&self, number: u64) -> Frame {
        Frame::Hello(Hello {
            node: node_id(number).to_bytes(),
            member: member(number),
            incarnation: 1,
            version: frame::VERSION,
            lane: Lane::Urgent,
        })
    }

    /// A whole greeting: who it is, and that there was no life before.
    fn greeting(&self, number: u64) -> Vec<u8> {
        let life = self.bytes(&Frame::Life { previous: 0 });
        [self.bytes(&self.hello(number)), life].concat()
    }

    fn bytes(&self, frame: &Frame) -> Vec<u8> {
        let mut bytes = Vec::new();
        frame::encode(self.world.cluster.to_bytes(), frame, &mut bytes).unwrap();
        bytes
    }

    /// A TLS connection to node 1 with these certificates.
    fn connect(&self, tls: &LinkTls) -> StreamOwned<ClientConnection, StdStream> {
        let stream = StdStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let name = ServerName::try_from(node_name(node_id(1))).unwrap();
        StreamOwned::new(
            ClientConnection::new(tls.client.clone(), name).unwrap(),
            stream,
        )
    }

    /// Sends this over a connection of node 3's certificate; the reason for which node 1 ends it.
    fn refusal_of(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect(&self.world.tls(3));
        // The node may end it before everything is written.
        let _ = stream.write_all(bytes).and_then(|()| stream.flush());
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        self.ends[0].expect_refused()
    }

    /// Node 3's greeting, then this.
    fn refusal_after_hello(&self, bytes: &[u8]) -> String {
        self.refusal_of(&[&self.greeting(3)[..], bytes].concat())
    }
}

#[test]
fn bytes_that_are_no_tls() {
    let mut node = Besieged::new();
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0xFF; 4096],
        &[0x16, 3, 3, 0xFF, 0xFF],
    ] {
        let mut stream = StdStream::connect(node.address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
        assert!(node.ends[0].expect_refused().starts_with("TLS handshake"));
    }
    node.assert_alive();
}

#[test]
fn certificates_that_are_not_a_nodes() {
    let mut node = Besieged::new();
    let other_dir = tempfile::tempdir().unwrap();
    let now = Clock::System.now();
    let stranger = Authority::create(
        other_dir.path(),
        AuthorityKind::Nodes,
        node.world.cluster,
        now,
    )
    .unwrap();
    let day_ns = 86_400 * 1_000_000_000;
    let expired = Timestamp::from_ns(now.ns() - 1000 * day_ns);
    let early = now.plus_ns(10 * day_ns);
    let authority = &node.world.nodes;
    for (name, files, expected) in [
        (
            "other-ca",
            node.world.files("other-ca", node_id(3), &stranger, now),
            "TLS handshake",
        ),
        (
            "expired",
            node.world.files("expired", node_id(3), authority, expired),
            "TLS handshake",
        ),
        (
            "early",
            node.world.files("early", node_id(3), authority, early),
            "TLS handshake",
        ),
        (
            "another-node",
            node.world.files("another-node", node_id(4), authority, now),
            "the certificate names another node",
        ),
    ] {
        let mut stream = node.connect(&LinkTls::load(&files).unwrap());
        let _ = stream
            .write_all(&node.greeting(3))
            .and_then(|()| stream.flush());
        let _ = stream.read_to_end(&mut Vec::new());
        let why = node.ends[0].expect_refused();
        assert!(why.starts_with(expected), "{name}: {why}");
    }
    // A participant's certificate, of the authority that the nodes believe even, names no node.
    let bic = clearspan_ledger::Bic::parse(b"ALFADEFFXXX").unwrap();
    let path = |end: &str| node.world.dir.path().join(format!("alfa.{end}"));
    authority
        .issue_participant(bic, now)
        .unwrap()
        .write(&path("crt"), &path("key"))
        .unwrap();
    let files = TlsFiles {
        certificate: path("crt"),
        key: path("key"),
        nodes_ca: node.world.ca(),
        clients_ca: node.world.ca(),
        nodes_crl: None,
        clients_crl: None,
    };
    let mut stream = node.connect(&LinkTls::load(&files).unwrap());
    let _ = stream
        .write_all(&node.greeting(3))
        .and_then(|()| stream.flush());
    let _ = stream.read_to_end(&mut Vec::new());
    assert!(
        node.ends[0]
            .expect_refused()
            .starts_with("the certificate names")
    );
    node.assert_alive();
}

#[test]
fn no_certificate_or_another_protocol() {
    let mut node = Besieged::new();
    let tls = node.world.tls(3);
    let mut bare = (*tls.client).clone();
    bare.client_auth_cert_resolver = std::sync::Arc::new(NoCertificate);
    let mut stream = node.connect(&LinkTls {
        client: std::sync::Arc::new(bare),
        server: tls.server.clone(),
    });
    let _ = stream
        .write_all(&node.greeting(3))
        .and_then(|()| stream.flush());
    let _ = stream.read_to_end(&mut Vec::new());
    assert!(node.ends[0].expect_refused().starts_with("TLS handshake"));
    let mut plain = (*tls.client).clone();
    plain.alpn_protocols.clear();
    let mut stream = node.connect(&LinkTls {
        client: std::sync::Arc::new(plain),
        server: tls.server,
    });
    let _ = stream
        .write_all(&node.greeting(3))
        .and_then(|()| stream.flush());
    let _ = stream.read_to_end(&mut Vec::new());
    assert_eq!(
        node.ends[0].expect_refused(),
        "it does not speak the nodes' protocol"
    );
    node.assert_alive();
}

#[derive(Debug)]
struct NoCertificate;

impl rustls::client::ResolvesClientCert for NoCertificate {
    fn resolve(
        &self,
        _: &[&[u8]],
        _: &[rustls::SignatureScheme],
    ) -> Option<std::sync::Arc<rustls::sign::CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

#[test]
fn greetings_that_are_none() {
    let mut node = Besieged::new();
    let mut other_cluster = Vec::new();
    frame::encode([9; 16], &node.hello(3), &mut other_cluster).unwrap();
    let mut version = node.bytes(&node.hello(3));
    version[4] = 2;
    let mut flipped = node.bytes(&node.hello(3));
    *flipped.last_mut().unwrap() ^= 1;
    let mut member_of_another = node.hello(3);
    if let Frame::Hello(hello) = &mut member_of_another {
        hello.member = member(2);
    }
    let ping = node.bytes(&Frame::Ping { number: 1 });
    for (bytes, expected) in [
        (vec![0xAB; 400], "a frame: these are not frames of a node"),
        (other_cluster, "a frame: a frame of another cluster"),
        (version, "a frame: frames of version 2, this build speaks 1"),
        (
            flipped,
            "a frame: a frame's checksum does not fit its bytes",
        ),
        (
            [
                node.bytes(&member_of_another),
                node.bytes(&Frame::Life { previous: 0 }),
            ]
            .concat(),
            "the cluster has no such node and member",
        ),
        (ping, "a Ping frame where none is allowed"),
    ] {
        assert_eq!(node.refusal_of(&bytes), expected);
    }
    node.assert_alive();
}

#[test]
fn frames_that_are_none() {
    let mut node = Besieged::new();
    let raft = |from, to, of_shard| {
        node.bytes(&Frame::Raft {
            shard: shard(of_shard),
            message: heartbeat(from, to),
        })
    };
    let mut long = raft(3, 1, 0);
    long[24..28].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut flipped = raft(3, 1, 0);
    flipped[HEADER_BYTES + 3] ^= 1;
    let other = "a frame in another member's name, to another, or about no shard of the cluster";
    for (bytes, expected) in [
        (raft(2, 1, 0), other),
        (raft(3, 2, 0), other),
        (raft(3, 1, SHARDS), other),
        (
            long,
            "a frame: a Raft frame of 4294967295 bytes, at most 10293248 are allowed",
        ),
        (
            flipped,
            "a frame: a frame's checksum does not fit its bytes",
        ),
        (
            node.bytes(&node.hello(3)),
            "a Hello frame where none is allowed",
        ),
        (
            vec![0; HEADER_BYTES],
            "a frame: these are not frames of a node",
        ),
    ] {
        assert_eq!(node.refusal_after_hello(&bytes), expected);
    }
    node.assert_alive();
}

#[test]
fn truncated_frames_end_quietly() {
    let mut node = Besieged::new();
    let whole = node.bytes(&Frame::Raft {
        shard: shard(0),
        message: heartbeat(3, 1),
    });
    for len in [1, HEADER_BYTES - 1, HEADER_BYTES, whole.len() - 1] {
        let mut stream = node.connect(&node.world.tls(3));
        stream.write_all(&node.greeting(3)).unwrap();
        stream.write_all(&whole[..len]).unwrap();
        stream.conn.send_close_notify();
        stream.flush().unwrap();
        stream.sock.shutdown(std::net::Shutdown::Write).unwrap();
        // It ends: the node closes its side too.
        let _ = stream.read_to_end(&mut Vec::new());
    }
    node.assert_alive();
}

#[test]
fn an_older_life_is_refused_while_a_newer_one_stands() {
    let mut node = Besieged::new();
    let greet = |previous, incarnation| {
        let Frame::Hello(mut hello) = node.hello(3) else {
            panic!("a greeting")
        };
        hello.incarnation = incarnation;
        let mut stream = node.connect(&node.world.tls(3));
        stream.write_all(&node.bytes(&Frame::Hello(hello))).unwrap();
        let life = node.bytes(&Frame::Life { previous });
        stream.write_all(&life).unwrap();
        stream.flush().unwrap();
        stream
    };
    let welcomed = |stream: &mut StreamOwned<ClientConnection, StdStream>| {
        let mut answer = [0; HEADER_BYTES + 34];
        stream.read_exact(&mut answer).is_ok()
    };
    let mut newer = greet(0, 5);
    assert!(welcomed(&mut newer));
    // An older one, and a newer one of a directory that has forgotten the fifth.
    for (previous, incarnation) in [(3, 4), (4, 7)] {
        let mut stream = greet(previous, incarnation);
        let mut answer = [0; HEADER_BYTES + 1];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer.last(), Some(&1), "rolled back");
        drop(stream);
        assert_eq!(node.ends[0].expect_refused(), "not admitted: RolledBack");
    }
    let mut newest = greet(5, 6);
    assert!(welcomed(&mut newest));
    // The newest takes the place of the one before.
    let _ = newer.read_to_end(&mut Vec::new());
    newest
        .write_all(&node.bytes(&Frame::Held {
            shard: shard(0),
            index: 3,
        }))
        .unwrap();
    newest.flush().unwrap();
    assert_eq!(node.ends[0].expect_frame().0, member(3));
    node.assert_alive();
}

#[test]
fn a_listener_that_is_another_node_is_not_believed() {
    let world = World::new();
    let limits = quick();
    let (listener_1, address_1) = world.listener(&limits);
    let (listener_2, address_2) = world.listener(&limits);
    let addresses = BTreeMap::from([(1, address_1), (2, address_2)]);
    let files = world.files("posing", node_id(4), &world.nodes, Clock::System.now());
    let first = world.start(1, listener_1, &addresses, |_| {});
    let second = world.start(2, listener_2, &addresses, |options| {
        options.tls = LinkTls::load(&files).unwrap();
    });
    let deadline = super::super::meter::now() + DEADLINE;
    let fault = loop {
        if let Some(fault) = first.links.status().remove(0).last_fault {
            break fault;
        }
        assert!(super::super::meter::now() < deadline, "no fault");
        std::thread::yield_now();
    };
    assert!(fault.starts_with("TLS handshake"), "{fault}");
    // Nor is it when it dials.
    assert!(
        first
            .expect_refused()
            .starts_with("the certificate names another node")
    );
    assert_eq!(first.links.status()[0].connected_ns, None);
    drop(second);
}

/// A member that takes connections, greets, and then reads nothing any more.
fn deaf_member(world: &World, listener: std::net::TcpListener) {
    let (tls, cluster) = (world.tls(3), world.cluster.to_bytes());
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let Ok(connection) = rustls::ServerConnection::new(tls.server.clone()) else {
                return;
            };
            let mut stream = StreamOwned::new(connection, stream);
            let mut greeting = vec![0; HEADER_BYTES + 34];
            if stream.read_exact(&mut greeting).is_err() {
                continue;
            }
            let lane = if greeting.last() == Some(&0) {
                Lane::Urgent
            } else {
                Lane::Bulk
            };
            let hello = Hello {
                node: node_id(3).to_bytes(),
                member: member(3),
                incarnation: 1,
                version: frame::VERSION,
                lane,
            };
            let mut answer = Vec::new();
            frame::encode(cluster, &Frame::Hello(hello), &mut answer).unwrap();
            let _ = stream.write_all(&answer).and_then(|()| stream.flush());
            kept.push(stream);
        }
    });
}

/// Node 1 with a healthy node 2 and a deaf node 3.
fn with_a_deaf_member(limits: LinkLimits) -> (World, End, End) {
    let world = World::new();
    let (listener_1, address_1) = world.listener(&limits);
    let (listener_2, address_2) = world.listener(&limits);
    let deaf = std::net::TcpListener::bind(loopback(0)).unwrap();
    let known = BTreeMap::from([
        (1, address_1),
        (2, address_2),
        (3, deaf.local_addr().unwrap()),
    ]);
    deaf_member(&world, deaf);
    let first = world.start(1, listener_1, &known, |options| options.limits = limits);
    let second = world.start(
        2,
        listener_2,
        &BTreeMap::from([(1, address_1)]),
        |options| {
            options.limits = limits;
        },
    );
    let mut up = [first.expect_up(), first.expect_up()];
    up.sort_unstable();
    assert_eq!(up, [member(2), member(3)]);
    (world, first, second)
}

#[test]
fn a_peer_that_stops_reading_is_cut_off_and_stalls_nobody() {
    let limits = LinkLimits {
        bulk_queue_bytes: 16 << 20,
        ..quick()
    };
    let (_world, mut first, second) = with_a_deaf_member(limits);
    // The sockets take some; then the queue fills, and not one call waits.
    let mut taken = 0;
    while first.links.send(member(3), append(1, 3, 1, 1, 1 << 20)) {
        taken += 1;
        assert!(taken < 1_000, "a queue without an end");
        assert!(first.links.send(member(2), held(taken)));
    }
    for number in 1..=taken {
        assert!(
            matches!(second.expect_frame().1, PeerFrame::Held { index, .. } if index == number)
        );
    }
    assert_eq!(
        first.expect_down(),
        (member(3), "the queue to the peer was full".to_owned())
    );
    assert!(
        first.links.send(member(2), held(0)),
        "the other peer is still there"
    );
    // It is dialled again, and nothing old is waiting for it.
    assert_eq!(first.expect_up(), member(3));
    assert_eq!(first.links.status()[1].queued_frames, [0, 0]);
}

#[test]
fn a_peer_that_answers_no_ping_is_cut_off() {
    let limits = LinkLimits {
        idle_timeout: Duration::from_millis(200),
        ..quick()
    };
    let (_world, first, _second) = with_a_deaf_member(limits);
    let (who, why) = first.expect_down();
    assert_eq!(
        (who, why.as_str()),
        (member(3), "nothing came for too long")
    );
}

#[test]
fn a_core_that_is_slow_holds_back_the_sender_and_not_the_memory() {
    let limits = LinkLimits {
        inbound_bytes: 12 << 20,
        ..quick()
    };
    let world = World::new();
    let mut ends = world.nodes(2, limits);
    for number in 0..40 {
        assert!(
            ends[0]
                .links
                .send(member(2), append(1, 2, number + 1, 1, 1 << 20))
        );
    }
    // The rooms that come are kept: the frames stop before all are here.
    let mut rooms = Vec::new();
    while rooms.len() < 11 {
        let room = ends[1].wait("a frame", |event| match event {
            LinkEvent::Frame { room, .. } => Some(room),
            _ => None,
        });
        rooms.push(room);
    }
    // An urgent frame comes through all the same, and nothing of the bulk.
    assert!(ends[0].links.send(member(2), held(1)));
    assert!(matches!(ends[1].expect_frame().1, PeerFrame::Held { .. }));
    drop(rooms);
    for _ in 11..40 {
        assert!(matches!(ends[1].expect_frame().1, PeerFrame::Raft(..)));
    }
}
