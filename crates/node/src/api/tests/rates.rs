//! Over its rate a participant is told when to come again, in whatever form it sends, and nothing is stored.

use axum::Extension;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::super::access::Role;
use super::super::router;
use super::{api_with, send, shown};
use crate::rate::{Rate, RateLimits};

const JSON: &str = "application/json";

#[tokio::test(flavor = "multi_thread")]
async fn every_form_is_refused_over_the_rate_and_nothing_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    // A payment in so long a time that none comes in while the test runs.
    let api = api_with(
        dir.path(),
        RateLimits {
            each: Rate {
                payments_per_s: 1,
                bytes_per_s: 0,
            },
            burst_ns: 1,
            ..RateLimits::default()
        },
    );
    let act = async |path: &str, body: &str| {
        let done = send(&api, Role::Operator, Method::POST, path, JSON, body).await;
        assert_eq!(done.0, StatusCode::OK, "{done:?}");
    };
    act(
        "/v1/admin/participants",
        include_str!("../openapi/participants.toml"),
    )
    .await;
    act("/v1/admin/day/open", r#"{ "date": "2026-11-30" }"#).await;
    let path = "/v1/receipts";
    let (_, before) = send(&api, Role::Participant, Method::GET, path, JSON, "").await;
    // So much is owed now that no test is slow enough to pay it off.
    let owed = 1_000_000;
    for lane in [crate::engine::Lane::Urgent, crate::engine::Lane::Bulk] {
        let alfa = clearspan_ledger::Bic::parse(b"ALFADEFFXXX").unwrap();
        let _ = api
            .rates
            .take_payments(alfa, lane, owed, api.engine.steady());
    }
    let transfer = include_str!("../../../../../examples/json/payment.json");
    let package = super::packages::package(
        "RATE-1",
        "0f3f7c4e-1f65-4b5e-8a6f-5a0d4d3a1f11",
        clearspan_ledger::message::Settlement::Net,
        100,
    );
    let bodies: [(&str, Vec<u8>); 5] = [
        (JSON, transfer.into()),
        (JSON, b"{".to_vec()),
        (
            "application/xml",
            include_str!("../openapi/payment.xml").into(),
        ),
        ("application/xml", b"<nothing>".to_vec()),
        (clearspan_codec::package::CONTENT_TYPE, package),
    ];
    for (kind, body) in bodies {
        let request = Request::builder()
            .method(Method::POST)
            .uri("/v1/messages")
            .header("content-type", kind)
            .body(Body::from(body))
            .unwrap();
        let app = router(&api).layer(Extension(shown(Role::Participant)));
        let response = app.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS, "{kind}");
        let after = response.headers().get("retry-after").unwrap();
        let after: u64 = after.to_str().unwrap().parse().unwrap();
        assert!((900_000..=2 * owed).contains(&after), "{kind}: {after}");
        let body = axum::body::to_bytes(response.into_body(), 1 << 20)
            .await
            .unwrap();
        let problem: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem["code"], json!("RATE"), "{problem}");
        assert_eq!(problem["type"], json!("urn:clearspan:problem:rate"));
    }
    let (status, page) = send(&api, Role::Participant, Method::GET, path, JSON, "").await;
    assert_eq!((status, page), (StatusCode::OK, before));
    let request = Request::get("/metrics").body(Body::empty()).unwrap();
    let app = router(&api).layer(Extension(shown(Role::Operator)));
    let response = app.oneshot(request).await.unwrap();
    let body = axum::body::to_bytes(response.into_body(), 1 << 20)
        .await
        .unwrap();
    let text = String::from_utf8(body.to_vec()).unwrap();
    let refused = "clearspan_rate_refused_total{participant=\"ALFADEFFXXX\",what=\"bulk\"}";
    let line = text.lines().find(|line| line.starts_with(refused));
    let count = line.and_then(|line| line.rsplit(' ').next()).unwrap();
    assert!(count.parse::<u64>().unwrap() >= 3, "{text}");
    assert!(text.contains(
        "clearspan_rate_level_payments{participant=\"ALFADEFFXXX\",lane=\"urgent\"} 0\n"
    ));
}
