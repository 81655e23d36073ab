//! Every path of the interface, once: the router, the roles' table and the OpenAPI document are made from it.

use std::sync::Arc;

use axum::http::Method;
use axum::routing::{MethodRouter, get, post};
use clearspan_iso20022::json::Message;

use super::access::Operation;
use super::messages::Answer;
use super::openapi::{Content, Doc};
use super::problem::Code;
use super::receipts::{Range, Receipts, Through};
use super::{
    Api, Scope, admin, approvals, messages, metrics, nodes, openapi, queries, receipts, status,
};
use crate::history::{AccountState, CycleState, PaymentHistory};
use crate::summary::Summary;

/// One method of one path.
#[derive(Debug)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path; what stands in braces is a parameter.
    pub path: &'static str,
    /// What it is, for the table of roles.
    pub operation: Operation,
    pub(super) handler: fn() -> MethodRouter<Arc<Api>>,
    pub(super) doc: Doc,
}

impl Route {
    pub(super) fn handler(&self) -> MethodRouter<Arc<Api>> {
        (self.handler)()
    }
}

/// Of whoever asks what the state is.
const READS: &[Code] = &[
    Code::Witness,
    Code::NoQuorum,
    Code::Diverged,
    Code::Stopping,
    Code::Behind,
];
/// Of whoever changes it.
const CHANGES: &[Code] = &[
    Code::Length,
    Code::Slow,
    Code::TooLarge,
    Code::Witness,
    Code::NotTaken,
    Code::DiskFull,
    Code::NoQuorum,
    Code::Diverged,
    Code::Unknown,
    Code::Stopping,
    Code::Behind,
];

/// All of them.
pub static ROUTES: &[Route] = &[
    Route {
        method: Method::POST,
        path: "/v1/messages",
        operation: Operation::SubmitMessage,
        handler: || post(messages::submit),
        doc: Doc {
            id: "submitMessage",
            summary: "Hand in one message",
            description: "Any node takes any participant's message. The answer leaves once the message is durable and applied. Without an answer send the same bytes again, here or to another node: the stored answer comes, and nothing is taken twice. With `Accept: application/json` the answer is a JSON document that holds the XML answers; otherwise one XML document, with the rest in headers `clearspan-status`, `clearspan-message` and `clearspan-answer`. A message in JSON stands for an ISO 20022 message: the same checks, codes and duplicates; it is answered in JSON unless `Accept` asks for `application/xml`. With `Prefer: return=minimal` it is JSON without documents. A compact package (docs/format/package.md) with `Content-Type: application/vnd.clearspan.package` is taken with the same checks and answers as XML.",
            body: &[
                Content::text("application/xml", include_str!("openapi/payment.xml")),
                Content::parsed::<Message>(
                    "application/json",
                    include_str!("../../../../examples/json/payment.json"),
                ),
            ],
            answers: &[
                (
                    200,
                    "Taken in, a repeat, or an enquiry's answer",
                    &[
                        Content::parsed::<Answer>(
                            "application/json",
                            include_str!("openapi/answer.json"),
                        ),
                        Content::text(
                            "application/xml",
                            "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.002.001.10\"/>",
                        ),
                    ],
                ),
                (
                    202,
                    "Held: messages with lower numbers are missing",
                    &[Content::parsed::<Answer>(
                        "application/json",
                        include_str!("openapi/held.json"),
                    )],
                ),
                (
                    422,
                    "Nothing was stored: the message cannot be read, or not be taken; `code` and the document say why",
                    &[Content::parsed::<Answer>(
                        "application/json",
                        include_str!("openapi/unreadable.json"),
                    )],
                ),
            ],
            codes: &[
                CHANGES,
                &[
                    Code::MediaType,
                    Code::NotFound,
                    Code::NotFounded,
                    Code::Busy,
                    Code::Rate,
                ],
            ],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::GET,
        path: "/v1/receipts",
        operation: Operation::ReadReceipts,
        handler: || get(receipts::read),
        doc: Doc {
            id: "readReceipts",
            summary: "Read a participant's numbered output",
            description: "Numbers count from 1 without holes; every node has the same bytes under the same number. `wait_ms` waits for the first number (long poll); `next` is where to go on.",
            query: Some(|generator| generator.subschema_for::<Range>()),
            answers: &[(
                200,
                "Numbers in order",
                &[Content::parsed::<Receipts>(
                    "application/json",
                    include_str!("openapi/receipts.json"),
                )],
            )],
            codes: &[READS, &[Code::NotFound, Code::RetentionEnded]],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::POST,
        path: "/v1/receipts/acknowledge",
        operation: Operation::AcknowledgeReceipts,
        handler: || post(receipts::acknowledge),
        doc: Doc {
            id: "acknowledgeReceipts",
            summary: "Say that output is safely stored",
            description: "`GET /v1/receipts` without `from` begins behind what was acknowledged. Output stays readable within retention all the same.",
            body: &[Content::parsed::<Through>(
                "application/json",
                r#"{ "through": 12 }"#,
            )],
            answers: &[(
                200,
                "Acknowledged",
                &[Content::given::<receipts::Acknowledged>(
                    r#"{ "acknowledged": 12, "end": 15 }"#,
                )],
            )],
            codes: &[CHANGES, &[Code::NotFound, Code::Refused]],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::GET,
        path: "/v1/payments/{id}",
        operation: Operation::ReadPayment,
        handler: || get(queries::payments),
        doc: Doc {
            id: "readPayment",
            summary: "Look a payment up",
            description: "By its UETR, or by its transaction identifier when it has none. Participants see payments that they sent or received, and what they themselves were told.",
            query: Some(|generator| generator.subschema_for::<Scope>()),
            path: &[("id", "UETR or transaction identifier", "string")],
            answers: &[(
                200,
                "Every payment under that key",
                &[Content::given::<Vec<PaymentHistory>>(include_str!(
                    "openapi/payments.json"
                ))],
            )],
            codes: &[READS, &[Code::NotFound]],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::GET,
        path: "/v1/accounts",
        operation: Operation::ReadAccounts,
        handler: || get(queries::accounts),
        doc: Doc {
            id: "readAccounts",
            summary: "Look accounts up",
            description: "A participant's own; of everybody, or of one that is named, for operators and auditors.",
            query: Some(|generator| generator.subschema_for::<Scope>()),
            answers: &[(
                200,
                "Accounts",
                &[Content::given::<Vec<AccountState>>(include_str!(
                    "openapi/accounts.json"
                ))],
            )],
            codes: &[READS, &[Code::NotFound]],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::GET,
        path: "/v1/queue",
        operation: Operation::ReadQueue,
        handler: || get(queries::queue),
        doc: Doc {
            id: "readQueue",
            summary: "Look up a participant's queued payments",
            description: "In the order in which they will settle, class by class.",
            query: Some(|generator| generator.subschema_for::<Scope>()),
            answers: &[(
                200,
                "Payments that wait",
                &[Content::given::<Vec<PaymentHistory>>(include_str!(
                    "openapi/payments.json"
                ))],
            )],
            codes: &[READS, &[Code::NotFound]],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::GET,
        path: "/v1/incoming",
        operation: Operation::ReadIncoming,
        handler: || get(queries::incoming),
        doc: Doc {
            id: "readIncoming",
            summary: "Look up payments that others have queued for a participant",
            query: Some(|generator| generator.subschema_for::<Scope>()),
            answers: &[(
                200,
                "Payments that are expected",
                &[Content::given::<Vec<PaymentHistory>>(include_str!(
                    "openapi/payments.json"
                ))],
            )],
            codes: &[READS, &[Code::NotFound]],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::GET,
        path: "/v1/cycles",
        operation: Operation::ReadCycles,
        handler: || get(queries::cycles),
        doc: Doc {
            id: "readCycles",
            summary: "Look netting cycles up",
            description: "Participants see their own results only.",
            query: Some(|generator| generator.subschema_for::<Scope>()),
            answers: &[(
                200,
                "Cycles within retention",
                &[Content::given::<Vec<CycleState>>(include_str!(
                    "openapi/cycles.json"
                ))],
            )],
            codes: &[READS],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::GET,
        path: "/v1/cycles/{number}",
        operation: Operation::ReadCycles,
        handler: || get(queries::cycle),
        doc: Doc {
            id: "readCycle",
            summary: "Look one netting cycle up",
            description: "Participants see their own results only.",
            query: Some(|generator| generator.subschema_for::<Scope>()),
            path: &[("number", "The cycle's number", "integer")],
            answers: &[(
                200,
                "The cycle",
                &[Content::given::<Vec<CycleState>>(include_str!(
                    "openapi/cycles.json"
                ))],
            )],
            codes: &[READS, &[Code::NotFound]],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::POST,
        path: "/v1/admin/participants",
        operation: Operation::Administer,
        handler: || post(admin::participants),
        doc: Doc {
            id: "takeUpParticipants",
            summary: "Take participants up",
            description: "The first settings found the cluster. Sent again they change nothing; what was taken up before must stay as it was.",
            body: &[Content::text(
                "application/toml",
                include_str!("openapi/participants.toml"),
            )],
            answers: &[(
                200,
                "Taken up",
                &[Content::given::<admin::TakenUp>(
                    r#"{ "participants": 2, "business_date": "2026-11-30", "everywhere": true }"#,
                )],
            )],
            codes: &[
                CHANGES,
                &[
                    Code::ApprovalNeeded,
                    Code::Settings,
                    Code::Contradiction,
                    Code::Refused,
                ],
            ],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::POST,
        path: "/v1/admin/day/open",
        operation: Operation::Administer,
        handler: || post(admin::open_day),
        doc: Doc {
            id: "openDay",
            summary: "Open a business day",
            description: "Asked again for the same date it changes nothing.",
            body: &[Content::parsed::<admin::Day>(
                "application/json",
                r#"{ "date": "2026-11-30" }"#,
            )],
            answers: &[(
                200,
                "Open",
                &[Content::given::<admin::DayOpened>(
                    r#"{ "business_day": "2026-11-30", "everywhere": true }"#,
                )],
            )],
            codes: &[CHANGES, &[Code::Refused]],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::POST,
        path: "/v1/admin/day/cut-off",
        operation: Operation::Administer,
        handler: || post(admin::cut_off),
        doc: Doc {
            id: "passCutOff",
            summary: "Pass the cut-off of one kind of message, or of all",
            body: &[Content::parsed::<admin::Kinds>(
                "application/json",
                r#"{ "kind": "pacs.008" }"#,
            )],
            body_optional: true,
            answers: &[(
                200,
                "Passed",
                &[Content::given::<admin::CutOffPassed>(
                    r#"{ "cut_off": "pacs.008", "everywhere": true }"#,
                )],
            )],
            codes: &[CHANGES, &[Code::Refused]],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::POST,
        path: "/v1/admin/day/close",
        operation: Operation::Administer,
        handler: || post(admin::close_day),
        doc: Doc {
            id: "closeDay",
            summary: "Close the business day",
            description: "What still waits is refused, statements are made. Asked again it changes nothing.",
            answers: &[(
                200,
                "Closed",
                &[Content::given::<admin::DayClosed>(
                    r#"{ "closed": "2026-11-30", "everywhere": true }"#,
                )],
            )],
            codes: &[CHANGES, &[Code::Refused]],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::POST,
        path: "/v1/admin/cycle/open",
        operation: Operation::Administer,
        handler: || post(admin::open_cycle),
        doc: Doc {
            id: "openCycle",
            summary: "Start a netting cycle",
            description: "Not to be repeated without an answer: `GET /v1/cycles` says whether it has begun.",
            answers: &[(
                200,
                "Begun",
                &[Content::given::<admin::CycleTouched>(r#"{ "cycle": 3 }"#)],
            )],
            codes: &[CHANGES, &[Code::Refused]],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::POST,
        path: "/v1/admin/cycle/abandon",
        operation: Operation::Administer,
        handler: || post(admin::abandon_cycle),
        doc: Doc {
            id: "abandonCycle",
            summary: "Give the running cycle up before its decision",
            description: "It leaves no trace: its payments wait for the next one.",
            answers: &[(
                200,
                "Given up",
                &[Content::given::<admin::CycleTouched>(r#"{ "cycle": 3 }"#)],
            )],
            codes: &[CHANGES, &[Code::Refused]],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::GET,
        path: "/v1/nodes",
        operation: Operation::ReadStatus,
        handler: || get(nodes::nodes),
        doc: Doc {
            id: "readNodes",
            summary: "The cluster's nodes and how the shards' groups follow",
            description: "What this node sees; it asks nobody else.",
            answers: &[(
                200,
                "The nodes as they are then",
                &[Content::parsed::<nodes::Nodes>(
                    "application/json",
                    include_str!("openapi/nodes.json"),
                )],
            )],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::POST,
        path: "/v1/admin/nodes/add",
        operation: Operation::Administer,
        handler: || post(nodes::add),
        doc: Doc {
            id: "addNode",
            summary: "Take a node up, or put one in another's place",
            description: "It follows every shard without a vote until it has caught up. With `replaces` the other one leaves each group in the same change. Asked again for the same identity it changes nothing.",
            body: &[Content::parsed::<nodes::NewNode>(
                "application/json",
                r#"{ "node": "B2", "site": "B", "id": "5d1b9c20c0ffee00112233445566779c", "peer": "10.0.1.2:7101", "client": "10.0.1.2:7201" }"#,
            )],
            answers: &[(
                200,
                "The nodes as they are then",
                &[Content::parsed::<nodes::Nodes>(
                    "application/json",
                    include_str!("openapi/nodes.json"),
                )],
            )],
            codes: &[
                CHANGES,
                &[Code::ApprovalNeeded, Code::Refused, Code::NotFound],
            ],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::POST,
        path: "/v1/admin/nodes/remove",
        operation: Operation::Administer,
        handler: || post(nodes::remove),
        doc: Doc {
            id: "removeNode",
            summary: "Take a node out for good",
            description: "Refused where a shard would be left without a majority of voters that are there. Asked again it changes nothing.",
            body: &[Content::parsed::<nodes::Which>(
                "application/json",
                r#"{ "node": "B2" }"#,
            )],
            answers: &[(
                200,
                "The nodes as they are then",
                &[Content::parsed::<nodes::Nodes>(
                    "application/json",
                    include_str!("openapi/nodes.json"),
                )],
            )],
            codes: &[
                CHANGES,
                &[
                    Code::ApprovalNeeded,
                    Code::Refused,
                    Code::NotFound,
                    Code::Quorum,
                ],
            ],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::POST,
        path: "/v1/admin/nodes/drain",
        operation: Operation::Administer,
        handler: || post(nodes::drain),
        doc: Doc {
            id: "drainNode",
            summary: "Let a node lead nothing, or lead again",
            description: "It stays a member.",
            body: &[Content::parsed::<nodes::Drain>(
                "application/json",
                r#"{ "node": "B2", "draining": true }"#,
            )],
            answers: &[(
                200,
                "The nodes as they are then",
                &[Content::parsed::<nodes::Nodes>(
                    "application/json",
                    include_str!("openapi/nodes.json"),
                )],
            )],
            codes: &[CHANGES, &[Code::Refused, Code::NotFound]],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::POST,
        path: "/v1/admin/leaders",
        operation: Operation::Administer,
        handler: || post(nodes::move_leader),
        doc: Doc {
            id: "moveLeader",
            summary: "Say who leads a shard",
            description: "It holds until it is said otherwise; without a node the shard goes back to whom it falls to.",
            body: &[Content::parsed::<nodes::MoveLeader>(
                "application/json",
                r#"{ "shard": 1, "node": "A1" }"#,
            )],
            answers: &[(
                200,
                "The nodes as they are then",
                &[Content::parsed::<nodes::Nodes>(
                    "application/json",
                    include_str!("openapi/nodes.json"),
                )],
            )],
            codes: &[CHANGES, &[Code::Refused, Code::NotFound]],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::GET,
        path: "/v1/approvals",
        operation: Operation::ReadStatus,
        handler: || get(approvals::list),
        doc: Doc {
            id: "readApprovals",
            summary: "Acts that wait for a second operator, and the last ones that were decided",
            answers: &[(
                200,
                "The requests",
                &[Content::parsed::<approvals::Approvals>(
                    "application/json",
                    include_str!("openapi/approvals.json"),
                )],
            )],
            codes: &[READS],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::POST,
        path: "/v1/admin/approvals/approve",
        operation: Operation::Administer,
        handler: || post(approvals::approve),
        doc: Doc {
            id: "approveRequest",
            summary: "Approve what another operator asked for, which does it",
            description: "It is done in the journal's entry that approves it, with exactly the parameters that were asked for, or refused for good. Asked again by the same operator it changes nothing.",
            body: &[Content::parsed::<approvals::WhichRequest>(
                "application/json",
                r#"{ "request": "812-3fa9c2d1e0b44a5c" }"#,
            )],
            answers: &[(
                200,
                "Approved and done",
                &[Content::parsed::<approvals::ApprovalRequest>(
                    "application/json",
                    include_str!("openapi/approval.json"),
                )],
            )],
            codes: &[CHANGES, &[Code::Refused, Code::Quorum]],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::POST,
        path: "/v1/admin/approvals/withdraw",
        operation: Operation::Administer,
        handler: || post(approvals::withdraw),
        doc: Doc {
            id: "withdrawRequest",
            summary: "End a request without the act",
            description: "Any operator may: whoever asked, or another who says no.",
            body: &[Content::parsed::<approvals::WhichRequest>(
                "application/json",
                r#"{ "request": "812-3fa9c2d1e0b44a5c" }"#,
            )],
            answers: &[(
                200,
                "Withdrawn",
                &[Content::parsed::<approvals::ApprovalRequest>(
                    "application/json",
                    include_str!("openapi/approval.json"),
                )],
            )],
            codes: &[CHANGES, &[Code::Refused]],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::GET,
        path: "/v1/status",
        operation: Operation::ReadStatus,
        handler: || get(status::status),
        doc: Doc {
            id: "readStatus",
            summary: "How the node, its shards and its peers stand",
            description: "What this node sees; it asks nobody else.",
            answers: &[(
                200,
                "The node's view",
                &[Content::parsed::<status::NodeStatus>(
                    "application/json",
                    include_str!("openapi/status.json"),
                )],
            )],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::GET,
        path: "/v1/day",
        operation: Operation::ReadStatus,
        handler: || get(status::day),
        doc: Doc {
            id: "readDay",
            summary: "The business day's figures, from all shards at one moment",
            query: Some(|generator| generator.subschema_for::<Scope>()),
            answers: &[(
                200,
                "Figures",
                &[Content::given::<Summary>(include_str!("openapi/day.json"))],
            )],
            codes: &[READS, &[Code::NotFound]],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::GET,
        path: "/v1/openapi.json",
        operation: Operation::ReadInterface,
        handler: || get(openapi::read),
        doc: Doc {
            id: "readInterface",
            summary: "This document",
            answers: &[(
                200,
                "OpenAPI 3.1",
                &[Content::text(
                    "application/json",
                    r#"{ "openapi": "3.1.0" }"#,
                )],
            )],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::GET,
        path: "/metrics",
        operation: Operation::ReadMetrics,
        handler: || get(metrics::metrics),
        doc: Doc {
            id: "readMetrics",
            summary: "The node's figures in the OpenMetrics text format",
            description: "Also at the node's `http` address, without TLS.",
            answers: &[(
                200,
                "Figures",
                &[Content::text(
                    "application/openmetrics-text",
                    "clearspan_ready 1\n# EOF\n",
                )],
            )],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::GET,
        path: "/healthz",
        operation: Operation::Probe,
        handler: || get(status::health),
        doc: Doc {
            id: "probeHealth",
            summary: "Whether the process works",
            description: "Also at the node's `http` address, without TLS.",
            answers: &[
                (200, "It does", &[Content::text("text/plain", "ok\n")]),
                (
                    503,
                    "It stops",
                    &[Content::text("text/plain", "stopping\n")],
                ),
            ],
            ..Doc::EMPTY
        },
    },
    Route {
        method: Method::GET,
        path: "/readyz",
        operation: Operation::Probe,
        handler: || get(status::ready),
        doc: Doc {
            id: "probeReadiness",
            summary: "Whether messages can be taken in here",
            description: "Also at the node's `http` address, without TLS.",
            answers: &[
                (200, "They can", &[Content::text("text/plain", "ready\n")]),
                (
                    503,
                    "They cannot, and why",
                    &[Content::text(
                        "text/plain",
                        "1 of 4 shards have no leader that this node knows\n",
                    )],
                ),
            ],
            ..Doc::EMPTY
        },
    },
];
