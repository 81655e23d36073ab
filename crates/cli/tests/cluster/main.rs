//! A cluster of three real processes over TLS: what a participant was told holds at every node, whatever happens to them.

#![expect(clippy::unwrap_used, reason = "a test that finds nothing fails")]

mod certificates;
mod differ;
mod four_eyes;
mod membership;
mod nodes;

use clearspan_node::api::{Answer, Receipts};
use clearspan_node::client::{Ask, Client, Reply, Retry};
use nodes::Cluster;
use serde_json::{Value, json};

const ALFA: &str = "ALFADEFFXXX";
const BRAV: &str = "BRAVFRPPXXX";

/// A payment of `cents` for the next netting cycle.
fn message(number: u32, cents: u32) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08"><FIToFICstmrCdtTrf><GrpHdr><MsgId>M-{number}</MsgId><CreDtTm>2026-11-30T08:00:00.000Z</CreDtTm><NbOfTxs>1</NbOfTxs><SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf><InstgAgt><FinInstnId><BICFI>{ALFA}</BICFI></FinInstnId></InstgAgt></GrpHdr><CdtTrfTxInf><PmtId><EndToEndId>E-{number}</EndToEndId><TxId>T-{number}</TxId><UETR>{number:08x}-f94f-4148-956e-344e58dba5ac</UETR></PmtId><IntrBkSttlmAmt Ccy="EUR">{}.{:02}</IntrBkSttlmAmt><IntrBkSttlmDt>2026-11-30</IntrBkSttlmDt><ChrgBr>SHAR</ChrgBr><InstdAgt><FinInstnId><BICFI>{BRAV}</BICFI></FinInstnId></InstdAgt><Dbtr><Nm>Ute Vogt</Nm></Dbtr><DbtrAgt><FinInstnId><BICFI>{ALFA}</BICFI></FinInstnId></DbtrAgt><CdtrAgt><FinInstnId><BICFI>{BRAV}</BICFI></FinInstnId></CdtrAgt><Cdtr><Nm>Inês Simões</Nm></Cdtr></CdtTrfTxInf></FIToFICstmrCdtTrf></Document>"#,
        cents / 100,
        cents % 100
    )
}

/// The same, settled at once.
fn urgent(number: u32) -> String {
    message(number, number).replace("<ChrgBr>", "<SttlmPrty>URGT</SttlmPrty><ChrgBr>")
}

fn submit(client: &mut Client, xml: &str, accept: &str) -> Reply {
    let ask = Ask {
        accept,
        content_type: "application/xml",
        ..Ask::post("/v1/messages", xml.to_owned(), Retry::Always)
    };
    client.send(&ask).unwrap()
}

fn take(client: &mut Client, number: u32) -> Answer {
    let answer: Answer = submit(client, &message(number, number), "application/json")
        .json()
        .unwrap();
    assert!(
        matches!(answer.status.as_str(), "taken" | "repeat"),
        "{answer:?}"
    );
    answer
}

fn receipts(cluster: &Cluster, who: &str, node: usize) -> Receipts {
    cluster
        .client(who, &[node])
        .json(&Ask::get("/v1/receipts?from=1&max=1000"))
        .unwrap()
}

fn run_cycle(cluster: &Cluster, at: usize) {
    let opened: Value = cluster
        .operator(&[at])
        .json(&Ask::post("/v1/admin/cycle/open", "", Retry::NothingDone))
        .unwrap();
    let path = format!("/v1/cycles/{}", opened["cycle"]);
    let mut client = cluster.operator(&[at]);
    cluster.eventually("the cycle settles", || {
        let cycles: Vec<Value> = client.json(&Ask::get(&path)).unwrap();
        cycles
            .iter()
            .any(|cycle| cycle["state"] == json!("settled"))
    });
}

/// Every node has the same bytes under the same numbers.
fn same_everywhere(cluster: &Cluster, nodes: &[usize]) {
    for who in [ALFA, BRAV] {
        let first = receipts(cluster, who, nodes[0]);
        assert!(!first.receipts.is_empty());
        for &node in nodes {
            assert_eq!(receipts(cluster, who, node), first, "{who} at node {node}");
        }
    }
}

#[test]
fn a_day_over_the_network_with_nodes_killed() {
    let mut cluster = Cluster::new();
    cluster.start_all();
    cluster.found();

    // Through two nodes; each answer has its number, the same message its stored answer at any node.
    let (mut at_a, mut at_b) = (cluster.client(ALFA, &[0]), cluster.client(ALFA, &[1]));
    for number in 1..=10 {
        take(
            if number % 2 == 0 {
                &mut at_a
            } else {
                &mut at_b
            },
            number,
        );
    }
    let reply = submit(&mut at_a, &message(11, 11), "application/xml");
    assert_eq!(
        (reply.status.as_u16(), reply.content_type.as_str()),
        (200, "application/xml")
    );
    assert!(String::from_utf8_lossy(&reply.body).contains("<OrgnlMsgId>M-11</OrgnlMsgId>"));
    assert_eq!(take(&mut at_b, 3).status, "repeat");

    // Who is who: the certificate says so, whatever the message says.
    let mut brav = cluster.client(BRAV, &[2]);
    let stranger: Answer = submit(&mut brav, &message(12, 12), "application/json")
        .json()
        .unwrap();
    assert_eq!(
        (stranger.accepted, stranger.refused),
        (Some(0), Some(1)),
        "{stranger:?}"
    );
    assert!(stranger.documents[0].xml.contains("AG01"), "{stranger:?}");
    assert_eq!(
        brav.send(&Ask::get("/v1/status")).unwrap().status.as_u16(),
        403
    );
    let reply = submit(
        &mut cluster.operator(&[0]),
        &message(12, 12),
        "application/json",
    );
    assert_eq!(reply.status.as_u16(), 403);

    run_cycle(&cluster, 1);
    cluster.all_ready();
    same_everywhere(&cluster, &[0, 1, 2]);

    // One node is lost: the others go on. It comes back and has it all.
    cluster.kill(0);
    let mut elsewhere = cluster.client(ALFA, &[0, 1, 2]);
    for number in 21..=30 {
        take(&mut elsewhere, number);
    }
    run_cycle(&cluster, 1);
    same_everywhere(&cluster, &[1, 2]);
    cluster.start(0);
    cluster.all_ready();
    same_everywhere(&cluster, &[0, 1, 2]);

    // All at once, without warning: what was said stands.
    let before = receipts(&cluster, BRAV, 1);
    cluster.kill_all();
    cluster.start_all();
    assert_eq!(receipts(&cluster, BRAV, 2), before);
    assert_eq!(take(&mut cluster.client(ALFA, &[2]), 30).status, "repeat");
    let accounts: Vec<Value> = cluster
        .client(BRAV, &[0])
        .json(&Ask::get("/v1/accounts?currency=EUR"))
        .unwrap();
    let paid: u32 = (1..=11).chain(21..=30).sum();
    assert_eq!(accounts[0]["balance"]["minor"], json!(100_000_000 + paid));
    assert!(cluster.stop(2), "SIGTERM ends a node well");
}
