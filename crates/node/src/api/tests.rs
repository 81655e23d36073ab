//! Every cell of the table, through the router, on an embedded node.

mod certificates;
mod packages;
mod rates;

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use clearspan_ledger::Bic;
use clearspan_replica::MemberId;
use clearspan_storage::{ClusterId, NodeId};
use tower::ServiceExt as _;

use super::access::{Access, Operation, Role, access};
use super::openapi::may_answer;
use super::openapi::tests::check;
use super::{Api, Code, HttpLimits, ROUTES, Route, router};
use crate::cluster::definition::{Definition, Node, NodeKind};
use crate::cluster::pki::{ClientName, Shown};
use crate::engine::{Engine, EngineOptions};
use crate::rate::RateLimits;

fn api(dir: &std::path::Path) -> Arc<Api> {
    api_with(dir, RateLimits::default())
}

fn api_with(dir: &std::path::Path, rate: RateLimits) -> Arc<Api> {
    let mut options = EngineOptions::usual();
    options.log.prefill_bytes = 0;
    options.log.reserve_bytes = 1 << 20;
    options.packages.reserve_bytes = 1 << 20;
    let engine = Engine::open(dir, 1, options).unwrap();
    let node = Node {
        name: "A1".to_owned(),
        site: 0,
        kind: NodeKind::Data,
        id: NodeId::random().unwrap(),
        member: MemberId::new(1).unwrap(),
        peer_address: "127.0.0.1:1".to_owned(),
        client_address: "127.0.0.1:2".to_owned(),
        http_address: None,
    };
    let definition = Definition {
        cluster: ClusterId::random().unwrap(),
        shards: 1,
        clearing_house: Bic::parse(b"CLSPZZ2AXXX").unwrap(),
        election_ms: 1000,
        four_eyes_minutes: None,
        sites: vec!["A".to_owned()],
        nodes: vec![node.clone()],
    };
    Arc::new(Api::new(
        engine,
        None,
        definition,
        node,
        rate,
        HttpLimits::default(),
    ))
}

fn shown(role: Role) -> Shown {
    let name = match role {
        Role::Participant => ClientName::Participant(Bic::parse(b"ALFADEFFXXX").unwrap()),
        Role::Operator => ClientName::Operator("olga".to_owned()),
        Role::Auditor => ClientName::Auditor("aude".to_owned()),
    };
    Shown { name, key: 1 }
}

/// Asks, and holds the answer against the description of the interface.
async fn ask(api: &Arc<Api>, role: Role, method: &Method, path: &str) -> StatusCode {
    let described = ROUTES.iter().find(|route| {
        let known = route.path.split('/');
        let mut parts = path.split('?').next().unwrap().split('/');
        route.method == *method
            && known
                .zip(parts.by_ref())
                .all(|(known, part)| known == part || known.starts_with('{'))
            && parts.next().is_none()
            && route.path.split('/').count() == path.split('?').next().unwrap().split('/').count()
    });
    let request = Request::builder()
        .method(method.clone())
        .uri(path.replace("{id}", "x").replace("{number}", "1"))
        .body(Body::empty())
        .unwrap();
    let app = router(api).layer(Extension(shown(role)));
    let response = app.oneshot(request).await.unwrap();
    let status = response.status();
    let code = response.extensions().get::<Code>().copied();
    let json = response
        .headers()
        .get("content-type")
        .is_some_and(|kind| kind.to_str().unwrap().contains("json"));
    let body = axum::body::to_bytes(response.into_body(), 1 << 20)
        .await
        .unwrap();
    let Some(route) = described else {
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        return status;
    };
    if let Some(code) = code {
        assert!(
            may_answer(route, code),
            "{method} {path}: {code:?} is not described"
        );
    }
    if json && path != "/v1/openapi.json" {
        let whole = super::openapi();
        let method = method.as_str().to_ascii_lowercase();
        let form = &whole["paths"][route.path][method]["responses"][status.as_str()]["content"];
        let media = if code.is_some() {
            "application/problem+json"
        } else {
            "application/json"
        };
        let value = serde_json::from_slice(&body).unwrap();
        check(&whole, &form[media]["schema"], &value, path).unwrap();
    }
    status
}

#[tokio::test(flavor = "multi_thread")]
async fn every_role_and_path_as_the_table_says() {
    let dir = tempfile::tempdir().unwrap();
    let api = api(dir.path());
    let mut allowed = 0;
    for Route {
        method,
        path,
        operation,
        ..
    } in ROUTES
    {
        for role in Role::ALL {
            let status = ask(&api, role, method, path).await;
            if access(role, *operation) == Access::No {
                assert_eq!(status, StatusCode::FORBIDDEN, "{role:?} {method} {path}");
            } else {
                allowed += 1;
                assert_ne!(status, StatusCode::FORBIDDEN, "{role:?} {method} {path}");
                assert_ne!(
                    status,
                    StatusCode::METHOD_NOT_ALLOWED,
                    "{role:?} {method} {path}"
                );
            }
        }
    }
    assert!(allowed > ROUTES.len());
}

#[test]
fn every_operation_has_a_path_and_money_moves_for_participants_alone() {
    for operation in Operation::ALL {
        assert!(
            ROUTES.iter().any(|route| route.operation == operation),
            "{operation:?}"
        );
    }
    for role in [Role::Operator, Role::Auditor] {
        assert_eq!(access(role, Operation::SubmitMessage), Access::No);
        assert_eq!(access(role, Operation::AcknowledgeReceipts), Access::No);
    }
    for operation in Operation::ALL {
        let participant = access(Role::Participant, operation);
        assert!(
            participant != Access::All
                || matches!(operation, Operation::ReadInterface | Operation::Probe),
            "{operation:?}"
        );
    }
    assert_eq!(access(Role::Auditor, Operation::Administer), Access::No);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_participant_reads_its_own_only() {
    let dir = tempfile::tempdir().unwrap();
    let api = api(dir.path());
    for path in [
        "/v1/accounts",
        "/v1/queue",
        "/v1/incoming",
        "/v1/receipts",
        "/v1/cycles",
        "/v1/payments/x",
    ] {
        let path = format!("{path}?participant=BRAVFRPPXXX");
        assert_eq!(
            ask(&api, Role::Participant, &Method::GET, &path).await,
            StatusCode::FORBIDDEN,
            "{path}"
        );
        assert_ne!(
            ask(&api, Role::Auditor, &Method::GET, &path).await,
            StatusCode::FORBIDDEN,
            "{path}"
        );
    }
    assert_eq!(
        ask(&api, Role::Operator, &Method::GET, "/v1/nothing").await,
        StatusCode::NOT_FOUND
    );
}

async fn send(
    api: &Arc<Api>,
    role: Role,
    method: Method,
    path: &str,
    kind: &str,
    body: &str,
) -> (StatusCode, serde_json::Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .header("accept", "application/json")
        .body(Body::from(body.to_owned()))
        .unwrap();
    let app = router(api).layer(Extension(shown(role)));
    let response = app.oneshot(request).await.unwrap();
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 1 << 20)
        .await
        .unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_in_json_is_decided_as_its_xml_is() {
    let dir = tempfile::tempdir().unwrap();
    let api = api(dir.path());
    let json = "application/json";
    let settings = include_str!("openapi/participants.toml");
    let act = async |path: &str, body: &str| {
        let done = send(&api, Role::Operator, Method::POST, path, json, body).await;
        assert_eq!(done.0, StatusCode::OK, "{done:?}");
    };
    act("/v1/admin/participants", settings).await;
    act("/v1/admin/day/open", r#"{ "date": "2026-11-30" }"#).await;
    let whole = super::openapi();
    let submit = async |kind: &str, body: &str| {
        let done = send(
            &api,
            Role::Participant,
            Method::POST,
            "/v1/messages",
            kind,
            body,
        )
        .await;
        let answers = &whole["paths"]["/v1/messages"]["post"]["responses"];
        if done.1.get("type").is_none() {
            let schema = &answers[done.0.as_str()]["content"][json]["schema"];
            check(&whole, schema, &done.1, "answer").unwrap();
        }
        done
    };

    let payment = include_str!("../../../../examples/json/payment.json");
    let (status, answer) = submit(json, payment).await;
    assert_eq!(
        (status, &answer["status"]),
        (StatusCode::OK, &"taken".into()),
        "{answer}"
    );
    assert_eq!(answer["accepted"], 1, "{answer}");
    let (_, again) = submit(json, payment).await;
    assert_eq!(again["status"], "repeat");
    assert_eq!(again["answer_no"], answer["answer_no"]);

    // A bad payment in a package, and an unreadable form: code and place.
    let bad = payment
        .replace("ALFA-2", "ALFA-3")
        .replace("980.50", "980.505");
    let (status, answer) = submit(json, &bad).await;
    assert_eq!(
        (status, &answer["refused"]),
        (StatusCode::OK, &1.into()),
        "{answer}"
    );
    let refusal = &answer["refusals"][0];
    assert_eq!(refusal["code"], "CH20", "{answer}");
    assert_eq!(refusal["place"], "transfer.payments[0].amount", "{answer}");
    let (status, answer) = submit(json, &payment.replace("\"receiver\"", "\"reciever\"")).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(answer["code"], "FF01", "{answer}");
    assert_eq!(answer["place"], "transfer.payments[0].reciever", "{answer}");
    let (status, answer) = submit("text/csv", payment).await;
    assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(answer["code"], "MEDIA_TYPE");

    // The output as items: taken in, settled, refused.
    let path = "/v1/receipts?format=json&from=1";
    let (status, page) = send(&api, Role::Participant, Method::GET, path, json, "").await;
    assert_eq!(status, StatusCode::OK, "{page}");
    let schema =
        &whole["paths"]["/v1/receipts"]["get"]["responses"]["200"]["content"][json]["schema"];
    check(&whole, schema, &page, "receipts").unwrap();
    let items = page["receipts"].as_array().unwrap();
    let settled = items
        .iter()
        .find(|receipt| receipt["item"]["kind"] == "gross")
        .unwrap();
    assert_eq!(settled["item"]["event"], "settled", "{page}");
    assert_eq!(settled["item"]["amount"]["value"], "980.50", "{page}");
    assert_eq!(settled["documents"], serde_json::json!([]));
    let refused = items
        .iter()
        .find(|receipt| receipt["item"]["refused"] == 1)
        .unwrap();
    assert_eq!(refused["item"]["refusals"][0]["code"], "CH20", "{page}");
}
