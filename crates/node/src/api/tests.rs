//! Every cell of the table, through the router, on an embedded node.

mod packages;

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
use super::{Api, Code, ROUTES, Route, router};
use crate::cluster::definition::{Definition, Node, NodeKind};
use crate::cluster::pki::ClientName;
use crate::engine::{Engine, EngineOptions};

fn api(dir: &std::path::Path) -> Arc<Api> {
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
        sites: vec!["A".to_owned()],
        nodes: vec![node.clone()],
    };
    Arc::new(Api::new(engine, None, definition, node))
}

fn name_of(role: Role) -> ClientName {
    match role {
        Role::Participant => ClientName::Participant(Bic::parse(b"ALFADEFFXXX").unwrap()),
        Role::Operator => ClientName::Operator("olga".to_owned()),
        Role::Auditor => ClientName::Auditor("aude".to_owned()),
    }
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
    let app = router(api).layer(Extension(name_of(role)));
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
