//! What is written is what is read; faults name their lines; certificates say who somebody is.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use clearspan_ledger::Bic;
use clearspan_storage::{ClusterId, DataDir, LogOptions, NodeId, PackageOptions};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::definition::{Definition, NodeKind};
use super::init::{
    InitError, InitOptions, NODES_DIR, PKI_DIR, SiteSpec, election_ms_for, init, node_files,
    parse_sites,
};
use super::node_config::NodeConfig;
use super::pki::{
    Authority, AuthorityKind, ClientName, LinkTls, PkiError, client_config, client_of_certificate,
    node_of_certificate, shown_by,
};
use super::renewal::PublicTls;
use crate::api::HttpLimits;
use crate::clock::Clock;
use crate::links::LinkLimits;
use crate::rate::{Rate, RateLimits};

/// Who asks and who approves must be two: two names of one key are not.
#[test]
fn a_key_is_known_whatever_name_is_on_it() {
    let certificate = |name: &str, key: &rcgen::KeyPair| {
        let names = vec![format!("{name}.operator.clearspan")];
        let params = rcgen::CertificateParams::new(names).unwrap();
        params.self_signed(key).unwrap().der().clone()
    };
    let (one, other) = (
        rcgen::KeyPair::generate().unwrap(),
        rcgen::KeyPair::generate().unwrap(),
    );
    let ann = shown_by(&certificate("ann", &one)).unwrap();
    let bob = shown_by(&certificate("bob", &one)).unwrap();
    let cid = shown_by(&certificate("cid", &other)).unwrap();
    assert_eq!(ann.name, ClientName::Operator("ann".to_owned()));
    assert_ne!(ann.name, bob.name);
    assert_eq!(ann.key, bob.key);
    assert_ne!(ann.key, cid.key);
}

fn options(sites: &str) -> InitOptions {
    InitOptions::local(parse_sites(sites).unwrap(), 6, Clock::System.now())
}

fn certificate(path: &Path) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(path).unwrap()
}

#[test]
fn sites_are_read() {
    let site = |name: &str, data_nodes, witnesses| SiteSpec {
        name: name.to_owned(),
        data_nodes,
        witnesses,
        host: None,
    };
    assert_eq!(
        parse_sites("A:3, B:3,W:witness").unwrap(),
        [site("A", 3, 0), site("B", 3, 0), site("W", 0, 1)]
    );
    for wrong in [
        "", "A", "A:", "A:0", "A:x", "A:-1", "a b:3", "A:3,", ":3", "A:70000",
    ] {
        assert!(
            matches!(parse_sites(wrong), Err(InitError::Options(_))),
            "{wrong:?}"
        );
    }
}

#[test]
fn a_new_cluster_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("c");
    let definition = init(&root, &options("A:3,B:3,W:witness")).unwrap();
    assert_eq!(
        Definition::read(&root.join("cluster.toml")).unwrap(),
        definition
    );
    assert_eq!(definition.sites, ["A", "B", "W"]);
    let names: Vec<&str> = definition
        .nodes
        .iter()
        .map(|node| node.name.as_str())
        .collect();
    assert_eq!(names, ["A1", "A2", "A3", "B1", "B2", "B3", "W1"]);
    assert_eq!(definition.nodes[4].peer_address, "127.0.0.1:7105");
    assert_eq!(
        definition.nodes[6].http_address.as_deref(),
        Some("127.0.0.1:7307")
    );
    assert_eq!(definition.nodes[6].kind, NodeKind::Witness);
    for (name, path) in node_files(&root, &definition) {
        let config = NodeConfig::read(&path).unwrap();
        assert_eq!(config.node.name, name);
        assert_eq!(config.peers.len(), 6);
        assert!(
            config
                .peers
                .iter()
                .all(|peer| peer.member != config.node.member)
        );
        assert_eq!(config.peer_listen, config.node.peer_address);
        let data = DataDir::open(config.layout.clone()).unwrap();
        assert_eq!(data.identity().cluster, definition.cluster);
        assert_eq!(data.identity().node, config.node.id);
        assert_eq!(
            node_of_certificate(&certificate(&config.tls.certificate)),
            Some(config.node.id)
        );
        assert_eq!(
            client_of_certificate(&certificate(&config.tls.certificate)),
            None
        );
        LinkTls::load(&config.tls).unwrap();
        PublicTls::load(&config.tls).unwrap();
        let mode = fs::metadata(&config.tls.key).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let directory = definition.directory();
    let nodes: Vec<(u64, &str, bool)> = directory
        .present()
        .map(|node| (node.member, node.site.as_str(), node.witness))
        .collect();
    assert_eq!(
        nodes,
        [
            (1, "A", false),
            (2, "A", false),
            (3, "A", false),
            (4, "B", false),
            (5, "B", false),
            (6, "B", false),
            (7, "W", true)
        ]
    );
    for kind in [AuthorityKind::Nodes, AuthorityKind::Clients] {
        let key = fs::metadata(kind.key_path(&root.join(PKI_DIR))).unwrap();
        assert_eq!(key.permissions().mode() & 0o777, 0o600);
    }
    // The authorities' keys stay out of the nodes' directories.
    assert!(!root.join(NODES_DIR).join("A1/tls/nodes-ca.key").exists());
}

#[test]
fn nothing_is_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let definition = init(dir.path(), &options("A:1")).unwrap();
    assert!(matches!(
        init(dir.path(), &options("A:1")),
        Err(InitError::Exists(_))
    ));
    assert_eq!(
        Definition::read(&dir.path().join("cluster.toml")).unwrap(),
        definition
    );
    let pki = dir.path().join(PKI_DIR);
    let again = Authority::create(
        &pki,
        AuthorityKind::Nodes,
        definition.cluster,
        Clock::System.now(),
    );
    assert!(matches!(again, Err(PkiError::Io { .. })));
}

#[test]
fn options_that_make_no_cluster() {
    let dir = tempfile::tempdir().unwrap();
    let mut no_shards = options("A:1");
    no_shards.shards = 0;
    let mut high_port = options("A:3");
    high_port.peer_port = 65_534;
    for wrong in [
        options("W:witness"),
        options("A:1,A:2"),
        options("A:65"),
        no_shards,
        high_port,
    ] {
        assert!(matches!(
            init(&dir.path().join("c"), &wrong),
            Err(InitError::Options(_))
        ));
        assert!(!dir.path().join("c").exists());
    }
}

const GOOD: &str = r#"cluster = "0102030405060708090a0b0c0d0e0f10"
shards = 6
clearing_house = "CLSPZZ2AXXX"
[[site]]
name = "A"
[[node]]
name = "A1"
site = "A"
kind = "data"
id = "11111111111111111111111111111111"
member = 1
peer = "a1.example:7101"
client = "a1.example:7201"
[[node]]
name = "A2"
site = "A"
kind = "witness"
id = "22222222222222222222222222222222"
member = 2
peer = "[::1]:7102"
client = "[::1]:7202"
http = "[::1]:7302"
"#;

#[test]
fn faults_in_a_definition_name_the_line() {
    let parse = |text: &str| {
        Definition::parse(text, Path::new("c.toml")).map_err(|error| error.to_string())
    };
    let good = parse(GOOD).unwrap();
    assert_eq!(good.node("A2").unwrap().kind, NodeKind::Witness);
    for (from, to, expected) in [
        ("shards = 6", "shards = 0", "line 2: shards is 0"),
        ("0102", "01", "line 1: cluster"),
        ("CLSPZZ2AXXX", "clsp", "line 3: clearing_house"),
        ("name = \"A\"", "name = \"A B\"", "line 4: site name"),
        (
            "site = \"A\"",
            "site = \"B\"",
            "line 6: node A1: there is no site \"B\"",
        ),
        (
            "\"A2\"",
            "\"A1\"",
            "line 14: node A1 stands here a second time",
        ),
        ("2222", "222", "line 14: node A2: id"),
        (
            "22222222222222222222222222222222",
            "11111111111111111111111111111111",
            "line 14: node A2 has the id",
        ),
        (
            "member = 2",
            "member = 1",
            "line 14: node A2 has the member number",
        ),
        (
            "member = 1",
            "member = 0",
            "line 6: node A1: member numbers begin at 1",
        ),
        (
            "a1.example:7101",
            "a1.example",
            "line 6: node A1: peer address",
        ),
        ("[::1]:7202", "[::1]:0", "line 14: node A2: client address"),
        (
            "[::1]:7302",
            "[::1]:7202",
            "line 14: node A2 has the address",
        ),
        ("\"data\"", "\"witness\"", "no node of kind"),
        ("\"data\"", "\"tape\"", "unknown variant `tape`"),
        (
            "kind =",
            "kidn =",
            "line 9: unknown key `kidn`; the nearest is `kind`",
        ),
        (
            "clearing_house = \"CLSPZZ2AXXX\"\n",
            "",
            "missing key `clearing_house`",
        ),
    ] {
        let text = GOOD.replacen(
            from,
            to,
            if expected.contains("there is no site") {
                2
            } else {
                1
            },
        );
        let error = parse(&text).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

fn node_text(rest: &str) -> String {
    format!(
        "definition = \"cluster.toml\"\nnode = \"A1\"\ndata = \"d\"\n[tls]\ncertificate = \"c\"\nkey = \"k\"\n\
         nodes_ca = \"n\"\nclients_ca = \"p\"\n{rest}"
    )
}

#[test]
fn a_nodes_settings_are_read_and_checked() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("cluster.toml"), GOOD).unwrap();
    let path = dir.path().join("node.toml");
    let read = |text: &str| {
        fs::write(&path, text).unwrap();
        NodeConfig::read(&path).map_err(|error| error.to_string())
    };
    let usual = read(&node_text("")).unwrap();
    assert_eq!(usual.layout.log, dir.path().join("d/log"));
    assert_eq!(usual.tls.key, dir.path().join("k"));
    assert_eq!(usual.snapshot_after_bytes, 256 << 20);
    assert_eq!(usual.http_listen, None);
    assert_eq!(usual.election_ns, 1_000_000_000);
    let changed = read(&node_text(
        "[log]\nsegment_mib = 8\n[limits]\nbulk_queue_mib = 128\nsocket_buffer_mib = 32\nelection_ms = 1500\ncatch_up_mib_per_s = 16\n\
         [listen]\npeer = \"127.0.0.1:9\"\n[peer_address]\nA2 = \"127.0.0.1:8\"\n",
    ))
    .unwrap();
    assert_eq!(changed.log.segment_bytes, 8 << 20);
    assert_eq!(changed.links.bulk_queue_bytes, 128 << 20);
    assert_eq!(changed.links.socket_buffer_bytes, Some(32 << 20));
    assert_eq!(changed.election_ns, 1_500_000_000);
    assert_eq!(changed.catch_up_bytes_per_s, 16 << 20);
    assert_eq!(changed.peer_listen, "127.0.0.1:9");
    assert_eq!(changed.peers[0].address, "127.0.0.1:8");
    assert_eq!(usual.rate, RateLimits::default());
    assert_eq!(usual.http, HttpLimits::default());
    let http = read(&node_text(
        "[http]\nconnections = 9\nconnections_per_client = 3\nhead_kib = 16\nhead_timeout_ms = 100\nfloor_bytes_per_s = 7\n",
    ))
    .unwrap()
    .http;
    assert_eq!(
        (http.connections_max, http.connections_per_client_max),
        (9, 3)
    );
    assert_eq!((http.head_max_bytes, http.floor_bytes_per_s), (16 << 10, 7));
    assert_eq!(http.head_timeout.as_millis(), 100);
    let changed = read(&node_text(
        "[rate]\npayments_per_s = 7\nmib_per_s = 2\nnode_payments_per_s = 90\nburst_ms = 500\nurgent_percent = 20\n\
         [rate.participant.ALFADEFF]\npayments_per_s = 70\n",
    ))
    .unwrap();
    let rate = |payments_per_s| Rate {
        payments_per_s,
        bytes_per_s: 2 << 20,
    };
    let alfa = Bic::parse(b"ALFADEFFXXX").unwrap();
    assert_eq!(
        changed.rate,
        RateLimits {
            each: rate(7),
            named: [(alfa, rate(70))].into(),
            node_payments_per_s: 90,
            burst_ns: 500_000_000,
            reserved_percent: 20,
        }
    );
    for (text, expected) in [
        (
            node_text("[rate]\nburst_ms = 1\n"),
            "line 10: burst_ms is 1; give 100 to 3600000",
        ),
        (
            node_text("[rate.participant.NOBODY]\n"),
            "\"NOBODY\" is not a BIC",
        ),
        (
            node_text("[rate.participant.ALFADEFF]\n[rate.participant.ALFADEFFXXX]\n"),
            "ALFADEFFXXX stands here a second time",
        ),
        (
            node_text("[limits]\nbulk_queue_mib = 1\n"),
            "line 10: bulk_queue_mib is 1; give 13",
        ),
        (
            node_text("[limits]\nelection_ms = 100\n"),
            "line 10: election_ms is 100; give 200 to 60000",
        ),
        (
            node_text("[log]\nsegment_mib = 0\n"),
            "line 10: segment_mib is 0",
        ),
        (
            node_text("[peer_address]\nA1 = \"h:1\"\n"),
            "line 10: there is no other node \"A1\"",
        ),
        (
            node_text("[peer_address]\nA2 = \"h\"\n"),
            "line 10: peer address",
        ),
        (
            node_text("[listen]\nclient = \":1\"\n"),
            "line 10: client address",
        ),
        (
            node_text("[lgo]\n"),
            "line 9: unknown key `lgo`; the nearest is `log`",
        ),
        (
            node_text("[limits]\nelection_m = 1000\n"),
            "line 10: unknown key `election_m`; the nearest is `election_ms`",
        ),
        (
            node_text("[log]\nelection_ms = 1000\n"),
            "line 10: unknown key `election_ms` here; it stands in [limits]",
        ),
        (
            node_text("[log]\nsegment_mib = -1\n"),
            "line 10: segment_mib is -1; give 1 to 16777216 MiB; without it 64",
        ),
        (
            node_text("[rate]\nurgent_percent = 91\n"),
            "line 10: urgent_percent is 91; give 0 to 90 %; without it 10",
        ),
        (
            node_text("[log]\nsegment_mib = \"64\"\n"),
            "line 10: invalid type: string \"64\"",
        ),
        (node_text("").replace("\"A1\"", "\"B1\""), "line 2: "),
    ] {
        let error = read(&text).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

/// The tables of the reference as they are in a file, with a key that there is none of, after what the file needs.
fn with_an_unknown_key(good: &str, table: &str) -> String {
    let head = match table {
        "" => return format!("zzz = 1\n{good}"),
        "[rate.participant.BIC]" => "[rate.participant.ALFADEFFXXX]",
        "[tls]" | "[[site]]" | "[[node]]" => {
            return good.replacen(table, &format!("{table}\nzzz = 1"), 1);
        }
        other => other,
    };
    format!("{good}{head}\nzzz = 1\n")
}

#[test]
fn the_table_of_keys_has_every_key_that_is_read_and_no_other() {
    use super::keys::{CLUSTER_KEYS, Key, NODE_KEYS};
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("cluster.toml"), GOOD).unwrap();
    let path = dir.path().join("node.toml");
    let node_fault = |text: &str| {
        fs::write(&path, text).unwrap();
        NodeConfig::read(&path).unwrap_err().to_string()
    };
    let cluster_fault = |text: &str| {
        let parsed = Definition::parse(text, Path::new("cluster.toml"));
        parsed.unwrap_err().to_string()
    };
    let check = |keys: &[Key], good: &str, fault: &dyn Fn(&str) -> String| {
        let mut tables: Vec<&str> = keys.iter().map(|key| key.table).collect();
        tables.dedup();
        for table in tables {
            // Its keys are whatever the writer calls them.
            if table == "[peer_address]" {
                continue;
            }
            let error = fault(&with_an_unknown_key(good, table));
            let (_, known) = error
                .split_once("unknown key `zzz`; there are ")
                .unwrap_or_else(|| panic!("{table}: {error}"));
            let read: BTreeSet<&str> = known.trim().split(", ").collect();
            let here = keys.iter().filter(|key| key.table == table);
            let mut named: BTreeSet<&str> = here.map(|key| key.name).collect();
            // Tables within this one.
            let inner = keys.iter().filter(|key| key.table != table);
            named.extend(inner.filter_map(|key| {
                let path = key.table.trim_matches(['[', ']']);
                match table.trim_matches(['[', ']']) {
                    "" => path.split('.').next(),
                    outer => path
                        .strip_prefix(outer)?
                        .strip_prefix('.')?
                        .split('.')
                        .next(),
                }
            }));
            assert_eq!(read, named, "{table}");
        }
    };
    check(NODE_KEYS, &node_text(""), &node_fault);
    check(CLUSTER_KEYS, GOOD, &cluster_fault);
}

#[test]
fn usual_values_are_those_of_what_they_set() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("cluster.toml"), GOOD).unwrap();
    let path = dir.path().join("node.toml");
    fs::write(&path, node_text("")).unwrap();
    let config = NodeConfig::read(&path).unwrap();
    let (log, packages) = (LogOptions::default(), PackageOptions::default());
    assert_eq!(config.log.segment_bytes, log.segment_bytes);
    assert_eq!(config.log.purge_above_bytes, log.purge_above_bytes);
    assert_eq!(config.log.prefill_bytes, log.prefill_bytes);
    assert_eq!(config.log.reserve_bytes, log.reserve_bytes);
    assert_eq!(config.packages.cache_bytes, packages.cache_bytes);
    assert_eq!(config.packages.reserve_bytes, packages.reserve_bytes);
    assert_eq!(config.links, LinkLimits::default());
    assert_eq!(config.rate, RateLimits::default());
    assert_eq!(config.http, HttpLimits::default());
}

#[test]
fn how_long_a_leader_may_be_silent_follows_from_the_distance() {
    for (rtt_ns, expected_ms) in [
        (0, 1_000),
        (700_000, 1_000),
        (97_000_000, 1_000),
        (156_000_000, 1_600),
        (u64::MAX, 60_000),
    ] {
        assert_eq!(election_ms_for(rtt_ns), expected_ms, "{rtt_ns}");
    }
    let dir = tempfile::tempdir().unwrap();
    let mut far = options("A:1,B:1,W:witness");
    far.rtt_ns = 156_000_000;
    let definition = init(&dir.path().join("cluster"), &far).unwrap();
    assert_eq!(definition.election_ms, 1_600);
    let files = node_files(&dir.path().join("cluster"), &definition);
    let node = NodeConfig::read(&files["A1"]).unwrap();
    assert_eq!(node.election_ns, 1_600_000_000);
}

#[test]
fn certificates_say_who_somebody_is() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = ClusterId::random().unwrap();
    let now = Clock::System.now();
    Authority::create(dir.path(), AuthorityKind::Clients, cluster, now).unwrap();
    Authority::create(dir.path(), AuthorityKind::Nodes, cluster, now).unwrap();
    let clients = Authority::open(dir.path(), AuthorityKind::Clients, cluster).unwrap();
    let (crt, key) = (dir.path().join("x.crt"), dir.path().join("x.key"));
    let alfa = Bic::parse(b"ALFADEFF").unwrap();
    clients
        .issue_participant(alfa, now)
        .unwrap()
        .write(&crt, &key)
        .unwrap();
    assert_eq!(
        client_of_certificate(&certificate(&crt)),
        Some(ClientName::Participant(alfa))
    );
    assert_eq!(node_of_certificate(&certificate(&crt)), None);
    let nodes_ca = AuthorityKind::Nodes.certificate_path(dir.path());
    client_config(&crt, &key, &nodes_ca).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(
        client_config(&crt, &key, &nodes_ca),
        Err(PkiError::KeyMode(path)) if path == key
    ));
    let (crt, key) = (dir.path().join("y.crt"), dir.path().join("y.key"));
    clients
        .issue_operator("ann-2", now)
        .unwrap()
        .write(&crt, &key)
        .unwrap();
    assert_eq!(
        client_of_certificate(&certificate(&crt)),
        Some(ClientName::Operator("ann-2".to_owned()))
    );
    for name in ["", "Ann", "-a", "a.b", "*", "ä"] {
        assert!(matches!(
            clients.issue_operator(name, now),
            Err(PkiError::OperatorName(_))
        ));
    }
    // Another cluster's authority, or a key that is not its own, is noticed before anything is issued.
    let other = ClusterId::random().unwrap();
    assert!(matches!(
        Authority::open(dir.path(), AuthorityKind::Clients, other),
        Err(PkiError::Authority { .. })
    ));
    fs::copy(
        AuthorityKind::Nodes.key_path(dir.path()),
        AuthorityKind::Clients.key_path(dir.path()),
    )
    .unwrap();
    assert!(matches!(
        Authority::open(dir.path(), AuthorityKind::Clients, cluster),
        Err(PkiError::Authority { .. })
    ));
}

#[test]
fn names_that_are_nobodys() {
    let key = rcgen::KeyPair::generate().unwrap();
    let node = NodeId::from_bytes([0xAB; 16]);
    let made = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let params = rcgen::CertificateParams::new(names).unwrap();
        params.self_signed(&key).unwrap().der().clone()
    };
    let good = super::pki::node_name(node);
    assert_eq!(
        node_of_certificate(&made(&[&good, "localhost"])),
        Some(node)
    );
    for names in [
        &["*.node.clearspan"][..],
        &[&good, "*.node.clearspan"],
        &[&good, "alfadeffxxx.participant.clearspan"],
        &[&good.to_uppercase()],
        &["00.node.clearspan"],
        &["localhost"],
        &[],
    ] {
        assert_eq!(node_of_certificate(&made(names)), None, "{names:?}");
    }
    for names in [
        &["alfadeff.participant.clearspan"][..],
        &["a.b.operator.clearspan"],
        &["x.other.clearspan"],
    ] {
        assert_eq!(client_of_certificate(&made(names)), None, "{names:?}");
    }
    // A URI is no name.
    let mut params = rcgen::CertificateParams::default();
    params.subject_alt_names = vec![rcgen::SanType::URI(good.as_str().try_into().unwrap())];
    assert_eq!(
        node_of_certificate(params.self_signed(&key).unwrap().der()),
        None
    );
    assert_eq!(
        node_of_certificate(&CertificateDer::from(vec![1, 2, 3])),
        None
    );
}
