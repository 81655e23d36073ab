//! Rates as participants meet them.

use clearspan_node::client::{Ask, Client};
use hyper::StatusCode;

use crate::node::{ALFA, BRAV, Node};

fn message(from: &str, to: &str, number: u32) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08"><FIToFICstmrCdtTrf><GrpHdr><MsgId>M-{from}-{number}</MsgId><CreDtTm>2026-11-30T08:00:00.000Z</CreDtTm><NbOfTxs>1</NbOfTxs><SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf><InstgAgt><FinInstnId><BICFI>{from}</BICFI></FinInstnId></InstgAgt></GrpHdr><CdtTrfTxInf><PmtId><EndToEndId>E-{number}</EndToEndId><TxId>T-{number}</TxId><UETR>{number:08x}-f94f-4148-956e-344e58dba5ac</UETR></PmtId><IntrBkSttlmAmt Ccy="EUR">1.00</IntrBkSttlmAmt><IntrBkSttlmDt>2026-11-30</IntrBkSttlmDt><ChrgBr>SHAR</ChrgBr><InstdAgt><FinInstnId><BICFI>{to}</BICFI></FinInstnId></InstdAgt><Dbtr><Nm>Ute Vogt</Nm></Dbtr><DbtrAgt><FinInstnId><BICFI>{from}</BICFI></FinInstnId></DbtrAgt><CdtrAgt><FinInstnId><BICFI>{to}</BICFI></FinInstnId></CdtrAgt><Cdtr><Nm>Ivo Simon</Nm></Cdtr></CdtTrfTxInf></FIToFICstmrCdtTrf></Document>"#
    )
}

fn submit(client: &mut Client, xml: String) -> StatusCode {
    client.send(&Ask::message(xml.into())).unwrap().status
}

/// 20 payments a second are saved up to 20: of 60 that come at once, some are told to come again, `submit` does so with the
/// same message until all are in, and nothing is in twice. Urgent ones of another pass meanwhile, every one at its first try.
#[test]
fn who_is_over_its_rate_comes_again_until_all_is_in() {
    let node =
        Node::start("[rate]\nnode_payments_per_s = 20\nburst_ms = 1000\nurgent_percent = 25\n");
    let dir = tempfile::tempdir().unwrap();
    for number in 0..60 {
        let path = dir.path().join(format!("{number:03}.xml"));
        std::fs::write(path, message(BRAV, ALFA, number)).unwrap();
    }
    let dir = dir.path().to_str().unwrap();
    let said = std::thread::scope(|scope| {
        let flood = scope.spawn(|| {
            node.command(
                BRAV,
                &["submit", "--brief", "--in-flight", "8", "--json", dir],
            )
        });
        let mut alfa = node.client(ALFA);
        for number in 0..10 {
            let urgent = message(ALFA, BRAV, 1_000 + number);
            let urgent = urgent.replace("<ChrgBr>", "<SttlmPrty>URGT</SttlmPrty><ChrgBr>");
            assert_eq!(submit(&mut alfa, urgent), StatusCode::OK, "{number}");
        }
        flood.join().unwrap()
    });
    assert_eq!(said.matches("\"status\":\"taken\"").count(), 60, "{said}");
    let refused = |who: &str, what: &str| {
        let labels = format!("{{participant=\"{who}\",what=\"{what}\"}}");
        node.metric(&format!("clearspan_rate_refused_total{labels}"))
    };
    assert!(refused(BRAV, "bulk") > 0);
    assert_eq!([refused(ALFA, "urgent"), refused(ALFA, "bulk")], [0, 0]);
}
