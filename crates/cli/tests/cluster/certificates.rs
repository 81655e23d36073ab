//! Certificates change while nodes run, through the real binary: who is revoked is refused at TLS, a node's new certificate is
//! taken up, and nobody restarts anything (ADR 0024).

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::nodes::Cluster;
use crate::{ALFA, BRAV, take};

const A1: usize = 0;
const D1: usize = 3;

/// `clearspan revoke`, which must succeed; for how many nodes it wrote each list.
fn revoke(cluster: &Cluster, files: &[&PathBuf]) -> Vec<usize> {
    let mut more: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
    more.push("--json");
    let output = cluster.on_files("revoke", &more);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let lists: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let nodes = |list: &Value| list["nodes"].as_array().unwrap().len();
    lists.iter().map(nodes).collect()
}

fn client_file(cluster: &Cluster, who: &str) -> PathBuf {
    cluster.root().join(format!("clients/{who}.crt"))
}

/// How often a node has taken certificates up, and for how many of these it was asked by SIGHUP.
fn taken_up(cluster: &Cluster, at: usize) -> (usize, usize) {
    let log = cluster.log(at);
    let lines = log
        .lines()
        .filter(|line| line.contains("certificates.taken-up"))
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let asked: Vec<bool> = lines.map(|line| line["asked"] == json!(true)).collect();
    (asked.len(), asked.iter().filter(|asked| **asked).count())
}

#[test]
fn who_is_revoked_is_refused_while_nodes_run() {
    let mut cluster = Cluster::new();
    cluster.start_all();
    cluster.found();
    assert!(
        cluster
            .on_files("issue", &["operator", "second"])
            .status
            .success()
    );
    let mut alfa = cluster.client(ALFA, &[0, 1, 2]);
    take(&mut alfa, 1);
    for at in 0..3 {
        assert!(cluster.lets_in(BRAV, at));
        assert!(cluster.lets_in("operator-second", at));
    }

    // By itself: nobody tells the nodes.
    assert_eq!(revoke(&cluster, &[&client_file(&cluster, BRAV)]), [3]);
    for at in 0..3 {
        cluster.eventually("a node refuses whom the list names", || {
            !cluster.lets_in(BRAV, at)
        });
        assert_eq!(taken_up(&cluster, at), (1, 0), "{}", cluster.log(at));
        cluster.eventually("the log says why", || {
            cluster
                .log(at)
                .contains("invalid peer certificate: Revoked")
        });
    }

    // By SIGHUP.
    revoke(&cluster, &[&client_file(&cluster, "operator-second")]);
    for at in 0..3 {
        cluster.hang_up(at);
        cluster.eventually("a node is asked to look", || taken_up(&cluster, at).1 == 1);
        assert!(!cluster.lets_in("operator-second", at));
    }
    cluster.all_ready();
    take(&mut alfa, 2);

    // A node that joins later has the lists that stand then, and gets later ones.
    cluster.admin(&[A1], &["node", "add"], &["D1", "--site", "D"], D1);
    cluster.start(D1);
    cluster.all_ready();
    assert!(!cluster.lets_in(BRAV, D1));
    assert!(cluster.lets_in(ALFA, D1));
    assert!(
        cluster
            .on_files("issue", &["auditor", "third"])
            .status
            .success()
    );
    assert!(cluster.lets_in("auditor-third", D1));
    assert_eq!(
        revoke(&cluster, &[&client_file(&cluster, "auditor-third")]),
        [4]
    );
    cluster.eventually("the newcomer refuses whom the list names", || {
        !cluster.lets_in("auditor-third", D1)
    });

    // So has one that replaces another, whose old directory is left alone.
    cluster.kill(D1);
    let root = cluster.root();
    cluster.operate(&[A1], &["node", "replace", root.to_str().unwrap(), "D1"]);
    cluster.start(D1);
    cluster.all_ready();
    assert!(!cluster.lets_in("auditor-third", D1));
    // Signed anew without more names, for nodes and clients.
    assert_eq!(revoke(&cluster, &[]), [4, 4]);
    cluster.all_ready();
    take(&mut alfa, 3);
}

#[test]
fn a_node_takes_a_new_certificate_up_and_one_that_is_revoked_is_out() {
    let mut cluster = Cluster::new();
    cluster.start_all();
    cluster.found();
    let own = cluster.root().join("nodes/A1/tls/node.crt");
    let old = cluster.root().join("old.crt");
    std::fs::copy(&own, &old).unwrap();

    let renew = |cluster: &Cluster| {
        let before = taken_up(cluster, A1).0;
        assert!(cluster.on_files("issue", &["node", "A1"]).status.success());
        cluster.eventually("the node takes its new certificate up", || {
            taken_up(cluster, A1).0 > before
        });
    };
    renew(&cluster);
    assert_ne!(std::fs::read(&own).unwrap(), std::fs::read(&old).unwrap());
    // Were the old one still in use, the node would be out now.
    assert_eq!(revoke(&cluster, &[&old]), [3]);
    for at in 0..3 {
        cluster.eventually("the list is taken up", || {
            taken_up(&cluster, at).0 > usize::from(at == A1)
        });
    }
    cluster.all_ready();
    take(&mut cluster.client(ALFA, &[A1]), 1);

    // The new one as well: nobody speaks with the node until it has another.
    revoke(&cluster, &[&own]);
    cluster.eventually("the node knows no leader", || {
        cluster.answer("operator-admin", A1) == Some(503)
    });
    take(&mut cluster.client(ALFA, &[1, 2]), 2);
    renew(&cluster);
    cluster.all_ready();
    take(&mut cluster.client(ALFA, &[A1]), 3);
}

#[test]
fn a_cluster_of_before_lists_goes_on_and_is_told_what_to_do() {
    let mut cluster = Cluster::new();
    let settings = |name: &str| cluster.root().join(format!("nodes/{name}/node.toml"));
    let lists = "nodes_crl = \"tls/nodes.crl\"\nclients_crl = \"tls/clients.crl\"\n";
    for name in ["A1", "B1", "C1"] {
        let text = std::fs::read_to_string(settings(name)).unwrap();
        assert!(text.contains(lists), "{text}");
        std::fs::write(settings(name), text.replace(lists, "")).unwrap();
        for list in ["nodes.crl", "clients.crl"] {
            std::fs::remove_file(cluster.root().join(format!("nodes/{name}/tls/{list}"))).unwrap();
        }
    }
    for list in ["nodes.crl", "clients.crl"] {
        std::fs::remove_file(cluster.root().join("pki").join(list)).unwrap();
    }
    cluster.start_all();
    cluster.found();
    // A newcomer's directory is as if it were new.
    cluster.admin(&[A1], &["node", "add"], &["D1", "--site", "D"], D1);
    cluster.start(D1);
    cluster.all_ready();

    let brav = client_file(&cluster, BRAV);
    let output = cluster.on_files("revoke", &[brav.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    let wanted = "add clients_crl = \"tls/clients.crl\" to its table [tls] and restart the node";
    assert_eq!(said.matches(wanted).count(), 3, "{said}");
    cluster.eventually("the newcomer refuses", || !cluster.lets_in(BRAV, D1));
    assert!(cluster.lets_in(BRAV, A1));

    // What it says to do is enough.
    for (at, name) in ["A1", "B1", "C1"].into_iter().enumerate() {
        let path = cluster.root().join(format!("nodes/{name}/node.toml"));
        let text = std::fs::read_to_string(&path).unwrap();
        let named = text.replace("[tls]\n", "[tls]\nclients_crl = \"tls/clients.crl\"\n");
        std::fs::write(&path, named).unwrap();
        assert!(cluster.stop(at));
        cluster.start(at);
        cluster.all_ready();
        assert!(!cluster.lets_in(BRAV, at));
    }
    assert_eq!(revoke(&cluster, &[&brav]), [4]);
    take(&mut cluster.client(ALFA, &[A1]), 1);
}
