//! Every cell of the table, through the router, on an embedded node.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use clearspan_ledger::Bic;
use clearspan_replica::MemberId;
use clearspan_storage::{ClusterId, NodeId};
use tower::ServiceExt as _;

use super::access::{Access, Operation, Role, access};
use super::{Api, ROUTES, router};
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

async fn ask(api: &Arc<Api>, role: Role, method: &Method, path: &str) -> StatusCode {
    let request = Request::builder()
        .method(method.clone())
        .uri(path.replace("{id}", "x").replace("{number}", "1"))
        .body(Body::empty())
        .unwrap();
    let app = router(api).layer(Extension(name_of(role)));
    app.oneshot(request).await.unwrap().status()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_role_and_path_as_the_table_says() {
    let dir = tempfile::tempdir().unwrap();
    let api = api(dir.path());
    let mut allowed = 0;
    for (method, path, operation) in &ROUTES {
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
            ROUTES.iter().any(|(_, _, known)| *known == operation),
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
            participant != Access::All || operation == Operation::Probe,
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
