//! Compact packages through the router: the answers of XML, and what a receiver gets.

use axum::Extension;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Request, StatusCode};
use clearspan_codec::package::{CONTENT_TYPE, Head, Payment, encode};
use clearspan_iso20022::fields::{self, Field};
use clearspan_ledger::message::{MessageKind, Settlement};
use clearspan_ledger::{AmountMinor, Bic, BusinessDate, Currency, PaymentId, Text};
use serde_json::Value;
use std::sync::Arc;
use tower::ServiceExt as _;

use super::{Api, api, router};
use crate::cluster::pki::{ClientName, Shown};

const SETTINGS: &str = "business_date = \"2026-11-30\"\nshards = 1\n\
    [[participant]]\nbic = \"ALFADEFFXXX\"\nname = \"Alfa\"\nshard = 0\n\
    [[participant.account]]\ncurrency = \"EUR\"\nopening_balance = \"1000.00\"\n\
    [[participant]]\nbic = \"BRAVFRPPXXX\"\nname = \"Bravo\"\nshard = 0\n\
    [[participant.account]]\ncurrency = \"EUR\"\nopening_balance = \"1000.00\"\n";

fn bic(code: &str) -> Bic {
    Bic::parse(code.as_bytes()).unwrap()
}

async fn ask(
    api: &Arc<Api>,
    who: ClientName,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Body>,
) -> (StatusCode, Bytes) {
    let mut request = Request::builder().method("POST").uri(path);
    if path.contains('?') {
        request = request.method("GET");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(body.into()).unwrap();
    let app = router(api).layer(Extension(Shown { name: who, key: 1 }));
    let response = app.oneshot(request).await.unwrap();
    let status = response.status();
    (
        status,
        to_bytes(response.into_body(), 1 << 24).await.unwrap(),
    )
}

async fn submit(api: &Arc<Api>, who: &str, body: Vec<u8>, minimal: bool) -> (StatusCode, Value) {
    let mut headers = vec![
        ("content-type", CONTENT_TYPE),
        ("accept", "application/json"),
    ];
    if minimal {
        headers.push(("prefer", "return=minimal"));
    }
    let who = ClientName::Participant(bic(who));
    let (status, body) = ask(api, who, "/v1/messages", &headers, body).await;
    (status, serde_json::from_slice(&body).unwrap())
}

pub(super) fn package(message_id: &str, uetr: &str, settlement: Settlement, minor: u64) -> Vec<u8> {
    let mut text = Vec::new();
    fields::push(&mut text, Field::EndToEndId, "E2E-1");
    fields::push(&mut text, Field::CreditorName, "Brown & Sons");
    encode(
        &Head {
            kind: MessageKind::CustomerTransfer,
            sender: bic("ALFADEFFXXX"),
            message_id: Text::new(message_id).unwrap(),
            settlement,
            currency: Currency::parse(b"EUR").unwrap(),
            date: BusinessDate::parse(b"2026-11-30").unwrap(),
        },
        &[Payment {
            id: PaymentId::parse_uetr(uetr.as_bytes()).unwrap(),
            receiver: bic("BRAVFRPPXXX"),
            amount: AmountMinor::new(minor).unwrap(),
            fields: &text,
        }],
    )
}

const GROSS: Settlement = Settlement::Gross {
    class: clearspan_ledger::message::Class::Urgent,
    settle_or_refuse: false,
};
const FIRST: &str = "8a562c67-ca16-48ba-b074-65581be6f001";

async fn founded(dir: &std::path::Path) -> Arc<Api> {
    let api = api(dir);
    let operator = || ClientName::Operator("olga".to_owned());
    for (path, kind, body) in [
        ("/v1/admin/participants", "application/toml", SETTINGS),
        (
            "/v1/admin/day/open",
            "application/json",
            "{\"date\":\"2026-11-30\"}",
        ),
    ] {
        let headers = [("content-type", kind)];
        let (status, body) = ask(&api, operator(), path, &headers, body).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body:?}");
    }
    api
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_is_answered_as_xml_is() {
    let dir = tempfile::tempdir().unwrap();
    let api = founded(dir.path()).await;
    let alfa = "ALFADEFFXXX";
    let first = package("ALFA-1", FIRST, GROSS, 100);
    let (status, answer) = submit(&api, alfa, first.clone(), false).await;
    assert_eq!(
        (status, &answer["status"]),
        (StatusCode::OK, &"taken".into())
    );
    assert_eq!(answer["accepted"], 1);
    assert!(
        answer["documents"][0]["xml"]
            .as_str()
            .unwrap()
            .contains(FIRST)
    );
    // The same bytes: the same message, whichever answer is preferred.
    let (status, again) = submit(&api, alfa, first.clone(), true).await;
    assert_eq!(
        (status, &again["status"]),
        (StatusCode::OK, &"repeat".into())
    );
    assert_eq!(again["message_no"], answer["message_no"]);
    assert_eq!(again["documents"], serde_json::json!([]));
    // The identifier with other content, and the payment under another identifier.
    for (message, uetr, minor, code) in [
        (
            "ALFA-1",
            "8a562c67-ca16-48ba-b074-65581be6f002",
            100,
            "DU01",
        ),
        ("ALFA-2", FIRST, 100, "AM05"),
        ("ALFA-3", FIRST, 101, "DU03"),
    ] {
        let (_, answer) = submit(&api, alfa, package(message, uetr, GROSS, minor), false).await;
        let xml = answer["documents"][0]["xml"].as_str().unwrap();
        assert_eq!(answer["refused"], 1, "{answer}");
        assert!(xml.contains(code), "{code}: {xml}");
    }
    // Another one's package, and bytes that are none.
    let (_, answer) = submit(&api, "BRAVFRPPXXX", first.clone(), false).await;
    let xml = answer["documents"][0]["xml"].as_str().unwrap();
    assert!(xml.contains("AG01"), "{xml}");
    for bad in [&first[..first.len() - 1], b"P", b"", b"P\x01garbage"] {
        let (status, answer) = submit(&api, alfa, bad.to_vec(), false).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(
            (&answer["status"], &answer["code"]),
            (&"unreadable".into(), &"FF01".into())
        );
    }
    // The receiver reads XML.
    let bravo = ClientName::Participant(bic("BRAVFRPPXXX"));
    let (status, body) = ask(&api, bravo, "/v1/receipts?from=1", &[], Body::empty()).await;
    assert_eq!(status, StatusCode::OK);
    let text = String::from_utf8_lossy(&body).into_owned();
    assert!(text.contains("pacs.008.001.08"), "{text}");
    assert!(
        text.contains("Brown &amp; Sons") && text.contains(FIRST),
        "{text}"
    );
}
