//! The HTTPS interface, from the binary itself: the OpenAPI document, and its codes of problems and its metrics as tables.

use std::fmt::Write as _;

use anyhow::Context as _;
use serde_json::Value;

use super::GENERATED;
use crate::run::{cargo, output};

pub(super) fn openapi() -> anyhow::Result<String> {
    let arguments = [
        "run",
        "--quiet",
        "--package",
        "clearspan-cli",
        "--",
        "openapi",
    ];
    output(cargo(&arguments))
}

pub(super) fn problems() -> anyhow::Result<String> {
    let document: Value = serde_json::from_str(&openapi()?).context("read the OpenAPI document")?;
    table(&document)
}

fn table(document: &Value) -> anyhow::Result<String> {
    let mut text = format!(
        "{GENERATED}# Codes of problems

A node that does not do what it is asked answers a problem document (RFC 9457) with one of these codes. Codes are stable:
new ones may come, none changes its meaning. Where each may be given stands in [openapi.json](openapi.json). Reasons for
which a *message* or *payment* is refused are another list: [reasons.md](reasons.md).

| status | code | meaning |
|---|---|---|
"
    );
    let codes = document["x-problem-codes"]
        .as_array()
        .context("the OpenAPI document has no x-problem-codes")?;
    for code in codes {
        let field = |name: &str| {
            code[name]
                .as_str()
                .with_context(|| format!("{code}: no {name}"))
        };
        let status = code["status"]
            .as_u64()
            .with_context(|| format!("{code}: no status"))?;
        let _ = writeln!(
            text,
            "| {status} | `{}` | {} |",
            field("code")?,
            field("meaning")?
        );
    }
    Ok(text)
}

pub(super) fn metrics() -> anyhow::Result<String> {
    let document: Value = serde_json::from_str(&openapi()?).context("read the OpenAPI document")?;
    metrics_table(&document)
}

fn metrics_table(document: &Value) -> anyhow::Result<String> {
    let mut text = format!(
        "{GENERATED}# Metrics

What a node answers at `/metrics`, in the OpenMetrics text format: at its `http` address without TLS, and for operators and
auditors at its client address. Units stand in the names. Counters start at 0 with the process. A figure that the node does
not know is left out: only a shard's leader tells `shard_peer_…`, a witness has no payments. Rules for alerts are in
[operate.md](../operate.md#watching).

| metric | kind | labels | meaning |
|---|---|---|---|
"
    );
    let metrics = document["x-metrics"]
        .as_array()
        .context("the OpenAPI document has no x-metrics")?;
    for metric in metrics {
        let field = |name: &str| {
            metric[name]
                .as_str()
                .with_context(|| format!("{metric}: no {name}"))
        };
        let labels = metric["labels"].as_array().into_iter().flatten();
        let labels: Vec<String> = labels
            .filter_map(Value::as_str)
            .map(|label| format!("`{label}`"))
            .collect();
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            field("name")?,
            field("type")?,
            labels.join(", "),
            field("meaning")?
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::{metrics_table, table};

    #[test]
    fn a_metric_is_a_row_and_a_document_without_metrics_is_refused() {
        let document = serde_json::json!({
            "x-metrics": [{ "name": "up", "type": "gauge", "labels": ["peer", "site"], "meaning": "Up" }],
        });
        let text = metrics_table(&document).expect("a table");
        assert!(
            text.ends_with("| `up` | gauge | `peer`, `site` | Up |\n"),
            "{text}"
        );
        assert!(metrics_table(&serde_json::json!({})).is_err());
    }

    #[test]
    fn a_code_is_a_row_and_a_document_without_codes_is_refused() {
        let document = serde_json::json!({
            "x-problem-codes": [{ "code": "BUSY", "status": 503, "meaning": "Later." }],
        });
        let text = table(&document).expect("a table");
        assert!(text.ends_with("| 503 | `BUSY` | Later. |\n"), "{text}");
        assert!(table(&serde_json::json!({})).is_err());
    }
}
