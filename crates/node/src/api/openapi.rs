//! The interface as an OpenAPI 3.1 document, made from [`ROUTES`] and the types that are read and written.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::access::{Access, Role, access};
use super::extract::Json;
use super::metrics::METRICS;
use super::problem::{Code, Problem, ProblemDocument};
use super::routes::{ROUTES, Route};

#[cfg(test)]
pub(super) mod tests;

type SchemaOf = fn(&mut SchemaGenerator) -> Schema;
type Parses = fn(&str) -> Result<(), serde_json::Error>;

/// How one method of a path is used.
#[derive(Debug)]
pub(super) struct Doc {
    /// `operationId`.
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) description: &'static str,
    /// The object whose fields are the parameters behind the `?`.
    pub(super) query: Option<SchemaOf>,
    /// Parameters of the path: name, meaning, type.
    pub(super) path: &'static [(&'static str, &'static str, &'static str)],
    /// The forms in which a body may come.
    pub(super) body: &'static [Content],
    pub(super) body_optional: bool,
    /// Status, meaning, forms.
    pub(super) answers: &'static [(u16, &'static str, &'static [Content])],
    /// Codes of problems, besides those of every path.
    pub(super) codes: &'static [&'static [Code]],
}

impl Doc {
    pub(super) const EMPTY: Self = Self {
        id: "",
        summary: "",
        description: "",
        query: None,
        path: &[],
        body: &[],
        body_optional: false,
        answers: &[],
        codes: &[],
    };
}

/// One form of a body: its type with an example.
#[derive(Debug)]
pub(super) struct Content {
    media: &'static str,
    schema: Option<SchemaOf>,
    example: &'static str,
    /// Whether the type that reads it takes a text.
    #[cfg_attr(not(test), expect(dead_code, reason = "examples are proved by tests"))]
    parses: Option<Parses>,
}

impl Content {
    /// A text without a schema of ours.
    pub(super) const fn text(media: &'static str, example: &'static str) -> Self {
        Self {
            media,
            schema: None,
            example,
            parses: None,
        }
    }

    /// JSON of a type that is only written.
    pub(super) const fn given<T: JsonSchema>(example: &'static str) -> Self {
        Self {
            media: "application/json",
            schema: Some(|generator| generator.subschema_for::<T>()),
            example,
            parses: None,
        }
    }

    /// JSON of a type that is also read.
    pub(super) const fn parsed<T: JsonSchema + DeserializeOwned>(
        media: &'static str,
        example: &'static str,
    ) -> Self {
        Self {
            media,
            schema: Some(|generator| generator.subschema_for::<T>()),
            example,
            parses: Some(|text| serde_json::from_str::<T>(text).map(drop)),
        }
    }
}

/// What every path may answer, whatever it is for.
const EVERYWHERE: &[Code] = &[
    Code::Invalid,
    Code::Forbidden,
    Code::HeadTooLarge,
    Code::Internal,
];

/// Whether a path may be answered with a code.
pub(super) fn may_answer(route: &Route, code: Code) -> bool {
    EVERYWHERE.contains(&code) || route.doc.codes.iter().any(|codes| codes.contains(&code))
}

/// The document. The same for every node of a version.
#[must_use]
pub fn document() -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
        .into_generator();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for route in ROUTES {
        let method = route.method.as_str().to_ascii_lowercase();
        let described = operation(route, &mut generator);
        paths
            .entry(route.path)
            .or_default()
            .insert(method, described);
    }
    generator.subschema_for::<ProblemDocument>();
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Clearspan",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Payment clearing and settlement over several sites",
            "description": INFO,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{
            "url": "https://{node}",
            "description": "Any node of the cluster, at its client address",
            "variables": { "node": { "default": "127.0.0.1:7201" } },
        }],
        "security": [{ "certificate": [] }],
        "tags": TAGS.map(|(name, description)| json!({ "name": name, "description": description })),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "certificate": {
                    "type": "mutualTLS",
                    "description": "A certificate of the clients' authority names a participant, an operator or an auditor; what each may do stands at every operation under `x-roles`.",
                },
            },
        },
        "x-problem-codes": Code::ALL.iter().map(|code| json!({
            "code": code.text(), "status": code.status().as_u16(), "meaning": code.meaning(),
        })).collect::<Vec<_>>(),
        "x-metrics": METRICS.iter().map(|metric| json!({
            "name": metric.full_name(), "type": metric.type_name(), "labels": metric.labels(), "meaning": metric.help(),
        })).collect::<Vec<_>>(),
    })
}

const INFO: &str = "HTTPS with client certificates (TLS 1.3). Any node takes any participant's request. Every refusal is a problem document (RFC 9457) with a stable `code`; `x-problem-codes` lists all. `x-metrics` lists the figures of `/metrics`. What cannot be done at the moment is answered 503 with `Retry-After`. Amounts are texts with the currency's decimals, never floating point; `minor` is the same in minor units. Answers say the shard and log index at which they hold and are linearizable unless `stale=true` asks for what the node has at hand.";

const TAGS: [(&str, &str); 5] = [
    ("messages", "Messages in, numbered output out"),
    ("queries", "Payments, accounts, queues, cycles"),
    (
        "administration",
        "Participants, business days, netting cycles",
    ),
    ("node", "How a node stands"),
    ("interface", "This document"),
];

const fn tag(route: &Route) -> &'static str {
    use super::access::Operation as Op;
    match route.operation {
        Op::SubmitMessage | Op::ReadReceipts | Op::AcknowledgeReceipts => "messages",
        Op::ReadPayment | Op::ReadAccounts | Op::ReadQueue | Op::ReadIncoming | Op::ReadCycles => {
            "queries"
        }
        Op::Administer => "administration",
        Op::ReadStatus | Op::ReadMetrics | Op::Probe => "node",
        Op::ReadInterface => "interface",
    }
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let doc = &route.doc;
    let mut object = Map::new();
    let mut set = |key: &str, value: Value| object.insert(key.to_owned(), value);
    set("operationId", json!(doc.id));
    set("summary", json!(doc.summary));
    if !doc.description.is_empty() {
        set("description", json!(doc.description));
    }
    set("tags", json!([tag(route)]));
    set("x-roles", roles(route));
    let mut parameters: Vec<Value> = doc
        .path
        .iter()
        .map(|(name, meaning, kind)| {
            json!({
                "name": name, "in": "path", "required": true, "description": meaning, "schema": { "type": kind },
            })
        })
        .collect();
    if let Some(query) = doc.query {
        parameters.extend(query_parameters(query));
    }
    if !parameters.is_empty() {
        set("parameters", json!(parameters));
    }
    if !doc.body.is_empty() {
        set(
            "requestBody",
            json!({ "required": !doc.body_optional, "content": contents(doc.body, generator) }),
        );
    }
    set("responses", responses(route, generator));
    Value::Object(object)
}

fn roles(route: &Route) -> Value {
    let mut object = Map::new();
    for role in Role::ALL {
        let may = match access(role, route.operation) {
            Access::No => "no",
            Access::Own => "own",
            Access::All => "all",
        };
        object.insert(format!("{role:?}").to_ascii_lowercase(), json!(may));
    }
    Value::Object(object)
}

/// Every field of the object is a parameter. The object itself does not stay among the schemas.
fn query_parameters(query: SchemaOf) -> Vec<Value> {
    let mut own = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator();
    let schema = query(&mut own);
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    properties
        .into_iter()
        .map(|(name, mut schema)| {
            let description = schema
                .as_object_mut()
                .and_then(|schema| schema.remove("description"));
            // A parameter that is not given is absent, never null.
            if let Some(kinds) = schema.get_mut("type")
                && let Some(kind) = kinds.as_array().and_then(|kinds| kinds.first()).cloned()
            {
                *kinds = kind;
            }
            json!({
                "name": name, "in": "query", "required": false, "description": description, "schema": schema,
            })
        })
        .collect()
}

fn contents(contents: &[Content], generator: &mut SchemaGenerator) -> Value {
    let mut object = Map::new();
    for content in contents {
        let mut described = Map::new();
        let schema = content.schema.map_or_else(
            || json!({ "type": "string" }),
            |schema| schema(generator).into(),
        );
        described.insert("schema".to_owned(), schema);
        let example = match content.schema {
            Some(_) => serde_json::from_str(content.example).unwrap_or(Value::Null),
            None => json!(content.example),
        };
        described.insert("example".to_owned(), example);
        object.insert(content.media.to_owned(), Value::Object(described));
    }
    Value::Object(object)
}

fn responses(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut object = Map::new();
    for (status, meaning, forms) in route.doc.answers {
        object.insert(
            status.to_string(),
            json!({ "description": meaning, "content": contents(forms, generator) }),
        );
    }
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for &code in Code::ALL.iter().filter(|&&code| may_answer(route, code)) {
        by_status
            .entry(code.status().as_u16())
            .or_default()
            .push(code);
    }
    for (status, codes) in by_status {
        let problem = problem_content(&codes);
        let meaning: Vec<String> = codes
            .iter()
            .map(|code| format!("`{}`: {}", code.text(), code.meaning()))
            .collect();
        // A status may stand for an answer of the path and for problems.
        match object.get_mut(&status.to_string()) {
            Some(known) => {
                if let Some(content) = known.get_mut("content").and_then(Value::as_object_mut) {
                    content.insert("application/problem+json".to_owned(), problem);
                }
                if let Some(Value::String(description)) = known.get_mut("description") {
                    description.push_str("\n\n");
                    description.push_str(&meaning.join("\n\n"));
                }
            }
            None => {
                object.insert(
                    status.to_string(),
                    json!({
                        "description": meaning.join("\n\n"),
                        "content": { "application/problem+json": problem },
                    }),
                );
            }
        }
    }
    Value::Object(object)
}

fn problem_content(codes: &[Code]) -> Value {
    let texts: Vec<&str> = codes.iter().map(|code| code.text()).collect();
    let first = codes.first().copied().unwrap_or(Code::Internal);
    json!({
        "schema": {
            "allOf": [
                { "$ref": "#/components/schemas/Problem" },
                { "type": "object", "properties": { "code": { "type": "string", "enum": texts } } },
            ],
        },
        "example": Problem::new(first, first.meaning()).document(),
    })
}

pub(super) async fn read(State(_): State<std::sync::Arc<super::Api>>) -> Response {
    Json(document()).into_response()
}
