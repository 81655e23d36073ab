//! Over real TLS: who is revoked is out at once, who is not goes on, and a list past its time admits nobody.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clearspan_ledger::{Bic, Timestamp};
use clearspan_storage::{ClusterId, NodeId};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::api::{Door, HttpLimits, tls};
use crate::clock::Clock;
use crate::cluster::pki::{
    Authority, AuthorityKind, LinkTls, TlsFiles, client_config, describe, node_name,
};
use crate::cluster::renewal::Certificates;

/// Everything here takes milliseconds; a loaded machine may need far longer.
const DEADLINE: Duration = Duration::from_secs(60);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

struct World {
    dir: tempfile::TempDir,
    nodes: Authority,
    clients: Authority,
    now: Timestamp,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (cluster, now) = (ClusterId::random().unwrap(), Clock::System.now());
        let create = |kind| Authority::create(dir.path(), kind, cluster, now).unwrap();
        let world = Self {
            nodes: create(AuthorityKind::Nodes),
            clients: create(AuthorityKind::Clients),
            dir,
            now,
        };
        world.revoke(AuthorityKind::Nodes, &[], now, YEAR);
        world.revoke(AuthorityKind::Clients, &[], now, YEAR);
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn revoke(&self, kind: AuthorityKind, files: &[&Path], now: Timestamp, validity: Duration) {
        let serials: Vec<(String, String)> = files
            .iter()
            .map(|path| {
                let (of, serial, name) = describe(path).unwrap();
                assert_eq!(of, kind);
                (serial, name)
            })
            .collect();
        let authority = match kind {
            AuthorityKind::Nodes => &self.nodes,
            AuthorityKind::Clients => &self.clients,
        };
        authority
            .revoke(self.dir.path(), kind, &serials, now, validity)
            .unwrap();
    }

    fn node(&self, name: &str, id: NodeId) -> TlsFiles {
        let (certificate, key) = (
            self.path(&format!("{name}.crt")),
            self.path(&format!("{name}.key")),
        );
        let issued = self.nodes.issue_node(id, &[], Clock::System.now()).unwrap();
        issued.write(&certificate, &key).unwrap();
        TlsFiles {
            certificate,
            key,
            nodes_ca: AuthorityKind::Nodes.certificate_path(self.dir.path()),
            clients_ca: AuthorityKind::Clients.certificate_path(self.dir.path()),
            nodes_crl: Some(AuthorityKind::Nodes.revocation_list_path(self.dir.path())),
            clients_crl: Some(AuthorityKind::Clients.revocation_list_path(self.dir.path())),
        }
    }

    fn participant(&self, bic: &str) -> TlsConnector {
        let (cert, key) = (
            self.path(&format!("{bic}.crt")),
            self.path(&format!("{bic}.key")),
        );
        let bic = Bic::parse(bic.as_bytes()).unwrap();
        let issued = self
            .clients
            .issue_participant(bic, Clock::System.now())
            .unwrap();
        issued.write(&cert, &key).unwrap();
        let ca = AuthorityKind::Nodes.certificate_path(self.dir.path());
        TlsConnector::from(client_config(&cert, &key, &ca).unwrap())
    }
}

/// A request's answer; nothing when the connection ends instead.
async fn ask(stream: &mut TlsStream<TcpStream>) -> String {
    let mut got = Vec::new();
    let exchange = async {
        let request = b"GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n";
        if stream.write_all(request).await.is_err() {
            return;
        }
        while !got.ends_with(b"ok\n") {
            match stream.read_buf(&mut got).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    };
    timeout(DEADLINE, exchange)
        .await
        .expect("an answer or an end");
    String::from_utf8(got).unwrap()
}

async fn connect(
    connector: &TlsConnector,
    address: SocketAddr,
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    connector.connect(name, stream).await
}

/// Whether a new connection is served.
async fn admitted(connector: &TlsConnector, address: SocketAddr) -> bool {
    match connect(connector, address).await {
        Ok(mut stream) => ask(&mut stream).await.starts_with("HTTP/1.1 200"),
        Err(_) => false,
    }
}

/// Whether the other side ends an open connection.
async fn ends(stream: &mut TlsStream<TcpStream>) {
    let mut rest = Vec::new();
    let _ = timeout(DEADLINE, stream.read_to_end(&mut rest))
        .await
        .expect("the connection ends");
    assert_eq!(rest, b"");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_revoked_is_out_at_once_and_others_go_on() {
    let world = World::new();
    let files = world.node("node", NodeId::random().unwrap());
    let (alfa, brav) = (
        world.participant("ALFADEFFXXX"),
        world.participant("BRAVFRPPXXX"),
    );
    let (certificates, _) = Certificates::load(files.clone()).unwrap();
    let api = super::api(&world.path("data"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let door = Arc::new(Door::new(&HttpLimits::default()));
    let (own_door, public) = (door.clone(), certificates.public());
    let serving = tokio::spawn(async move { tls(&own_door, api, listener, public).await });

    let mut open_alfa = connect(&alfa, address).await.unwrap();
    let mut open_brav = connect(&brav, address).await.unwrap();
    assert!(ask(&mut open_alfa).await.starts_with("HTTP/1.1 200"));
    assert!(ask(&mut open_brav).await.starts_with("HTTP/1.1 200"));
    assert!(
        certificates.reload(false).unwrap().is_none(),
        "nothing changed"
    );

    let now = Clock::System.now();
    let brav_file = world.path("BRAVFRPPXXX.crt");
    world.revoke(AuthorityKind::Clients, &[&brav_file], now, YEAR);
    assert!(certificates.reload(false).unwrap().is_some());
    ends(&mut open_brav).await;
    assert!(!admitted(&brav, address).await);
    assert!(ask(&mut open_alfa).await.starts_with("HTTP/1.1 200"));
    assert!(admitted(&alfa, address).await);

    // A list that is gone changes nothing while the node runs; it does not start without.
    let list = files.clients_crl.clone().unwrap();
    let kept = std::fs::read(&list).unwrap();
    std::fs::remove_file(&list).unwrap();
    assert!(certificates.reload(false).is_err());
    assert!(!admitted(&brav, address).await);
    assert!(admitted(&alfa, address).await);
    assert!(Certificates::load(files.clone()).is_err());
    std::fs::write(&list, b"no list").unwrap();
    assert!(certificates.reload(false).is_err());
    std::fs::write(&list, &kept).unwrap();

    // Past its time it admits nobody.
    let long_ago = Timestamp::from_ns(now.ns() - 30 * 86_400 * 1_000_000_000);
    let day = Duration::from_secs(86_400);
    world.revoke(AuthorityKind::Clients, &[], long_ago, day);
    assert!(certificates.reload(false).unwrap().is_some());
    let left = certificates.days_left(world.now);
    assert!(left.contains(&("clients_crl", -29)), "{left:?}");
    assert!(left.contains(&("nodes_crl", 365)), "{left:?}");
    assert!(left.contains(&("certificate", 730)), "{left:?}");
    ends(&mut open_alfa).await;
    assert!(!admitted(&alfa, address).await);
    world.revoke(AuthorityKind::Clients, &[], now, YEAR);
    assert!(certificates.reload(false).unwrap().is_some());
    assert!(admitted(&alfa, address).await);
    assert!(!admitted(&brav, address).await, "it stays revoked");

    door.close().await;
    serving.await.unwrap();
}

/// Whether a connection from one node to another stands on both sides.
async fn link(from: &LinkTls, to: &LinkTls, to_id: NodeId) -> bool {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = TlsAcceptor::from(to.server.clone());
    let accepting = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        acceptor.accept(stream).await.is_ok()
    });
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from(node_name(to_id)).unwrap();
    let connected = TlsConnector::from(from.client.clone())
        .connect(name, stream)
        .await
        .is_ok();
    accepting.await.unwrap() && connected
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_node_neither_reaches_nor_is_reached() {
    let world = World::new();
    let (good, bad) = (NodeId::random().unwrap(), NodeId::random().unwrap());
    let (good_files, bad_files) = (world.node("good", good), world.node("bad", bad));
    let load = |files: &TlsFiles| LinkTls::load(files).unwrap();
    let (one, other) = (load(&good_files), load(&bad_files));
    assert!(link(&one, &other, bad).await);
    assert!(link(&other, &one, good).await);
    let now = Clock::System.now();
    world.revoke(AuthorityKind::Nodes, &[&bad_files.certificate], now, YEAR);
    let one = load(&good_files);
    assert!(!link(&one, &other, bad).await);
    assert!(!link(&other, &one, good).await);

    // Past its time the list lets no node in at all, also none that was never revoked.
    let third = NodeId::random().unwrap();
    let third_files = world.node("third", third);
    let fresh = load(&third_files);
    assert!(link(&one, &fresh, third).await);
    let long_ago = Timestamp::from_ns(now.ns() - 30 * 86_400 * 1_000_000_000);
    let day = Duration::from_secs(86_400);
    world.revoke(AuthorityKind::Nodes, &[], long_ago, day);
    let late = load(&good_files);
    assert!(!link(&late, &fresh, third).await);
    assert!(!link(&fresh, &late, good).await);
    world.revoke(AuthorityKind::Nodes, &[], now, YEAR);
    assert!(link(&load(&good_files), &fresh, third).await);
}
