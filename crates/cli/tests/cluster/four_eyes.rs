//! Where dangerous acts take two operators, through the real binary: one asks, another approves, whoever leads meanwhile
//! (ADR 0025).

use std::path::Path;

use clearspan_node::client::Ask;
use serde_json::{Value, json};

use crate::nodes::Cluster;
use crate::{ALFA, take};

const A1: usize = 0;
const B1: usize = 1;
const C1: usize = 2;
const D1: usize = 3;

/// An act that is asked for instead of done; its request.
fn asked(cluster: &Cluster, who: &str, through: &[usize], act: &[&str]) -> String {
    let output = cluster.operate_as(who, through, &[act, &["--json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{act:?}: {said}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    answer["request"].as_str().unwrap().to_owned()
}

/// What an act that is refused says.
fn refused(cluster: &Cluster, who: &str, through: &[usize], act: &[&str]) -> String {
    let output = cluster.operate_as(who, through, act);
    assert_eq!(output.status.code(), Some(5), "{act:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn done(cluster: &Cluster, who: &str, through: &[usize], act: &[&str]) -> Value {
    let output = cluster.operate_as(who, through, &[act, &["--json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{act:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn state_of(cluster: &Cluster, through: &[usize], request: &str) -> Value {
    let all = done(cluster, "second", through, &["approvals", "list"]);
    let mut requests = all["requests"].as_array().unwrap().iter();
    requests
        .find(|known| known["request"] == json!(request))
        .unwrap()
        .clone()
}

#[test]
fn dangerous_acts_take_two_operators() {
    let mut cluster = Cluster::with(&["--four-eyes"]);
    assert!(
        cluster
            .on_files("issue", &["operator", "second"])
            .status
            .success()
    );
    cluster.start_all();
    let settings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/day");
    let settings = settings.join("participants.toml");
    let found = ["found", settings.to_str().unwrap()];

    // Money comes from nothing only when two want it.
    let request = asked(&cluster, "admin", &[A1], &found);
    assert_eq!(
        asked(&cluster, "admin", &[B1], &found),
        request,
        "asked again"
    );
    let seen = state_of(&cluster, &[B1], &request);
    assert_eq!(seen["state"], json!("waits"), "{seen}");
    let lines = seen["parameters"].as_array().unwrap();
    let says = |text: &str| {
        lines
            .iter()
            .any(|line| line.as_str().unwrap().contains(text))
    };
    assert!(says("OPENING-ALFADEFFXXX-EUR"), "{seen}");
    assert!(says("take up ALFADEFFXXX"), "{seen}");
    let said = refused(
        &cluster,
        "admin",
        &[B1],
        &["approvals", "approve", &request],
    );
    assert!(said.contains("who asked cannot approve"), "{said}");
    let (number, _) = request.split_once('-').unwrap();
    let other = format!("{number}-0000000000000000");
    let said = refused(&cluster, "second", &[B1], &["approvals", "approve", &other]);
    assert!(said.contains("not what was asked for"), "{said}");

    // Whoever led when it was asked for need not be there when it is approved.
    cluster.kill(A1);
    let approve = ["approvals", "approve", &request];
    let approved = done(&cluster, "second", &[B1, C1], &approve);
    assert_eq!(approved["state"], json!("done"), "{approved}");
    assert_eq!(approved["decided_by"], json!("second"), "{approved}");
    done(&cluster, "second", &[B1, C1], &approve);
    cluster.start(A1);
    cluster.all_ready();
    done(&cluster, "admin", &[A1], &found);
    // The timetable's acts take one.
    done(&cluster, "admin", &[A1], &["open-day", "2026-11-30"]);
    take(&mut cluster.client(ALFA, &[C1]), 1);
    let accounts: Vec<Value> = cluster
        .client(ALFA, &[B1])
        .json(&Ask::get("/v1/accounts?currency=EUR"))
        .unwrap();
    assert_eq!(accounts[0]["balance"]["minor"], json!(100_000_000));

    // A node goes only when two want it, also after all nodes were started again.
    let remove = ["node", "remove", "C1"];
    let request = asked(&cluster, "second", &[A1], &remove);
    cluster.kill_all();
    cluster.start_all();
    let seen = state_of(&cluster, &[C1], &request);
    assert_eq!(
        seen["parameters"],
        json!(["remove member 3 (C1)"]),
        "{seen}"
    );
    let withdrawn = done(
        &cluster,
        "admin",
        &[A1],
        &["approvals", "withdraw", &request],
    );
    assert_eq!(withdrawn["state"], json!("withdrawn"));
    let said = refused(
        &cluster,
        "admin",
        &[A1],
        &["approvals", "approve", &request],
    );
    assert!(said.contains("approved or withdrawn before"), "{said}");

    // One that is replaced is left alone until then.
    cluster.kill(C1);
    let root = cluster.root();
    let replace = ["node", "replace", root.to_str().unwrap(), "C1"];
    let request = asked(&cluster, "admin", &[A1], &replace);
    assert!(root.join("nodes/C1/node.toml").exists());
    cluster.start(C1);
    cluster.all_ready();
    cluster.kill(C1);
    done(
        &cluster,
        "second",
        &[B1],
        &["approvals", "approve", &request],
    );
    done(&cluster, "admin", &[A1], &replace);
    assert!(root.join("nodes/C1.member-3/node.toml").exists());
    cluster.start(C1);
    cluster.all_ready();
    let nodes = done(&cluster, "admin", &[A1], &["node", "list"]);
    let nodes = nodes["nodes"].as_array().unwrap();
    let c1 = nodes
        .iter()
        .find(|node| node["node"] == json!("C1") && node["state"] == json!("active"));
    assert_eq!(c1.unwrap()["member"], json!(4), "{nodes:?}");

    // So is one whose successor has another name.
    cluster.kill(C1);
    let addresses = ["--as", "D1", "--peer", &cluster.address(0, D1), "--client"];
    let client = cluster.address(100, D1);
    let http = cluster.address(200, D1);
    let extra = root.join("../extra.toml");
    let settings = ["--settings", extra.to_str().unwrap()];
    let more = [&client, "--http", &http];
    let replace = [&replace[..], &addresses, &more, &settings].concat();
    let request = asked(&cluster, "admin", &[A1], &replace);
    done(
        &cluster,
        "second",
        &[B1],
        &["approvals", "approve", &request],
    );
    done(&cluster, "admin", &[A1], &replace);
    cluster.start(D1);
    cluster.all_ready();
    take(&mut cluster.client(ALFA, &[D1]), 2);
}
