//! Two and more nodes in one process, over loopback, with real certificates.

mod exchange;
mod hostile;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use clearspan_ledger::{ShardId, Timestamp};
use clearspan_replica::{Entry, EntryKind, LogPosition, MemberId, MessageKind, PeerMessage};
use clearspan_storage::{ClusterId, NodeId};
use crossbeam_channel::{Receiver, unbounded};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{LinkEvent, LinkLimits, LinkListener, LinkOptions, Links, PeerAddress};
use crate::clock::Clock;
use crate::cluster::pki::{Authority, AuthorityKind, LinkTls, TlsFiles};
use crate::engine::peers::PeerFrame;

/// Nothing in these tests takes this long; a wait for it is a failure.
const DEADLINE: Duration = Duration::from_secs(30);
const SHARDS: u16 = 4;

fn member(number: u64) -> MemberId {
    MemberId::new(number).unwrap()
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

fn node_id(number: u64) -> NodeId {
    NodeId::from_bytes(u128::from(number).to_be_bytes())
}

/// A cluster's certificates and a runtime.
struct World {
    dir: TempDir,
    runtime: Runtime,
    cluster: ClusterId,
    nodes: Authority,
}

/// One node's end.
struct End {
    links: Links,
    events: Receiver<LinkEvent>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let cluster = ClusterId::random().unwrap();
        let nodes = Authority::create(
            dir.path(),
            AuthorityKind::Nodes,
            cluster,
            Clock::System.now(),
        )
        .unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        Self {
            dir,
            runtime,
            cluster,
            nodes,
        }
    }

    fn ca(&self) -> PathBuf {
        AuthorityKind::Nodes.certificate_path(self.dir.path())
    }

    /// Certificate files of a node, issued at a time by an authority.
    fn files(&self, name: &str, node: NodeId, by: &Authority, at: Timestamp) -> TlsFiles {
        let path = |end: &str| self.dir.path().join(format!("{name}.{end}"));
        let (certificate, key) = (path("crt"), path("key"));
        by.issue_node(node, &[], at)
            .unwrap()
            .write(&certificate, &key)
            .unwrap();
        TlsFiles {
            certificate,
            key,
            nodes_ca: self.ca(),
            clients_ca: self.ca(),
            nodes_crl: None,
            clients_crl: None,
        }
    }

    fn tls(&self, number: u64) -> LinkTls {
        let name = format!("node-{number}");
        let existing = self.dir.path().join(format!("{name}.crt"));
        let files = if existing.exists() {
            TlsFiles {
                key: existing.with_extension("key"),
                certificate: existing,
                nodes_ca: self.ca(),
                clients_ca: self.ca(),
                nodes_crl: None,
                clients_crl: None,
            }
        } else {
            self.files(&name, node_id(number), &self.nodes, Clock::System.now())
        };
        LinkTls::load(&files).unwrap()
    }

    fn listener(&self, limits: &LinkLimits) -> (LinkListener, SocketAddr) {
        let listener = LinkListener::bind(self.runtime.handle(), loopback(0), limits).unwrap();
        let address = listener.local_address().unwrap();
        (listener, address)
    }

    fn start(
        &self,
        me: u64,
        listener: LinkListener,
        peers: &BTreeMap<u64, SocketAddr>,
        change: impl FnOnce(&mut LinkOptions),
    ) -> End {
        let peers = peers
            .iter()
            .filter(|(number, _)| **number != me)
            .map(|(&number, address)| PeerAddress {
                member: member(number),
                node: node_id(number),
                address: address.to_string(),
            })
            .collect();
        let mut options = LinkOptions {
            cluster: self.cluster,
            node: node_id(me),
            me: member(me),
            incarnation: 1,
            previous: 0,
            address_of: Box::new(|node| node.peer.clone()),
            shards: SHARDS,
            peers,
            tls: self.tls(me),
            limits: quick(),
        };
        change(&mut options);
        let (sender, events) = unbounded();
        let links = Links::start(self.runtime.handle(), listener, options, move |event| {
            // A test that has seen enough lets go.
            let _ = sender.send(event);
        });
        End { links, events }
    }

    /// So many nodes, each connected to all others.
    fn nodes(&self, count: u64, limits: LinkLimits) -> Vec<End> {
        let (mut listeners, mut addresses) = (Vec::new(), BTreeMap::new());
        for number in 1..=count {
            let (listener, address) = self.listener(&limits);
            listeners.push((number, listener));
            addresses.insert(number, address);
        }
        let ends: Vec<End> = listeners
            .into_iter()
            .map(|(number, listener)| {
                self.start(number, listener, &addresses, |options| {
                    options.limits = limits
                })
            })
            .collect();
        for end in &ends {
            let mut up: Vec<u64> = (1..count).map(|_| end.expect_up().get()).collect();
            up.sort_unstable();
            up.dedup();
            assert_eq!(up.len() as u64, count - 1);
        }
        ends
    }
}

/// Shorter pings, so that tests need not wait for them.
fn quick() -> LinkLimits {
    LinkLimits {
        ping_interval: Duration::from_millis(20),
        ..LinkLimits::default()
    }
}

impl End {
    /// The next event that `pick` takes; others are passed over.
    fn wait<T>(&self, what: &str, mut pick: impl FnMut(LinkEvent) -> Option<T>) -> T {
        loop {
            match self.events.recv_timeout(DEADLINE) {
                Ok(event) => {
                    if let Some(found) = pick(event) {
                        return found;
                    }
                }
                Err(_) => panic!("waited in vain for {what}; {:?}", self.links.status()),
            }
        }
    }

    fn expect_up(&self) -> MemberId {
        self.wait("a peer", |event| match event {
            LinkEvent::Up(member) => Some(member),
            _ => None,
        })
    }

    fn expect_down(&self) -> (MemberId, String) {
        self.wait("the end of a connection", |event| match event {
            LinkEvent::Down { member, why } => Some((member, why)),
            _ => None,
        })
    }

    fn expect_refused(&self) -> String {
        self.wait("a refusal", |event| match event {
            LinkEvent::Refused { why, .. } => Some(why),
            _ => None,
        })
    }

    fn expect_frame(&self) -> (MemberId, PeerFrame) {
        self.wait("a frame", |event| match event {
            LinkEvent::Frame { from, frame, .. } => Some((from, frame)),
            _ => None,
        })
    }
}

fn shard(number: u16) -> ShardId {
    ShardId::new(number)
}

/// Entries from one member to another, each of so many bytes.
fn append(from: u64, to: u64, first: u64, count: u64, len_bytes: usize) -> PeerFrame {
    let entries = (first..first + count)
        .map(|index| Entry {
            index,
            term: 2,
            kind: EntryKind::Command,
            data: Bytes::from(vec![7; len_bytes]),
        })
        .collect();
    let mut message = heartbeat(from, to);
    message.kind = MessageKind::Append;
    message.at = LogPosition {
        term: 2,
        index: first - 1,
    };
    message.entries = entries;
    PeerFrame::Raft(shard(1), message)
}

fn heartbeat(from: u64, to: u64) -> PeerMessage {
    PeerMessage {
        kind: MessageKind::Heartbeat,
        to: member(to),
        from: member(from),
        term: 2,
        at: LogPosition::default(),
        entries: Vec::new(),
        commit: LogPosition { term: 2, index: 9 },
        snapshot: None,
        request_snapshot: 0,
        reject: false,
        reject_hint: 0,
        context: Bytes::new(),
        priority: 0,
    }
}

fn held(index: u64) -> PeerFrame {
    PeerFrame::Held {
        shard: shard(0),
        index,
    }
}

fn wants(from: u64) -> PeerFrame {
    PeerFrame::WantPackages {
        shard: shard(3),
        from,
        below: from + 10,
    }
}
