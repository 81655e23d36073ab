//! Keys of `node.toml` and `cluster.toml`, from the table by which the binary reads them.

use std::fmt::Write as _;

use anyhow::Context as _;
use serde_json::Value;

use super::GENERATED;
use crate::run::{cargo, output};

pub(super) fn text() -> anyhow::Result<String> {
    let mut text = format!(
        "{GENERATED}# Settings: node.toml and cluster.toml

Both are written by `clearspan init`, checked as a whole at every start, and refused with the line of what is wrong: an unknown
key with the nearest one that there is, a value out of its range with the range. Relative paths are from the file's directory.
`clearspan reference node` and `clearspan reference cluster` print the same. [settings.md](settings.md) has the participants' file.
"
    );
    for (title, list) in [
        ("node.toml: one node's own settings", "node"),
        (
            "cluster.toml: the cluster's definition, the same on every node",
            "cluster",
        ),
    ] {
        let _ = write!(text, "\n# {title}\n");
        tables(&mut text, &list_of(list)?)?;
    }
    Ok(text)
}

/// What `clearspan reference LIST --json` says.
pub(super) fn list_of(list: &str) -> anyhow::Result<Value> {
    let arguments = [
        "run",
        "--quiet",
        "--package",
        "clearspan-cli",
        "--",
        "reference",
        list,
        "--json",
    ];
    serde_json::from_str(&output(cargo(&arguments))?).context("read the list")
}

fn tables(text: &mut String, keys: &Value) -> anyhow::Result<()> {
    let mut table = None;
    for key in keys.as_array().context("a list of keys")? {
        let field = |name: &str| {
            let field = key[name].as_str();
            field.with_context(|| format!("{key}: no {name}"))
        };
        let here = field("table")?;
        if table != Some(here) {
            let head = if here.is_empty() { "top level" } else { here };
            let _ = write!(
                text,
                "\n## {head}\n\n| key | value | without it | what it does |\n|---|---|---|---|\n"
            );
            table = Some(here);
        }
        let usual = match &key["usual"] {
            Value::String(word) => word.clone(),
            usual => match (usual["number"].as_u64(), usual["else"].as_str()) {
                (Some(number), _) => format!("`{number}`"),
                (None, Some(what)) => what.to_owned(),
                (None, None) => anyhow::bail!("{key}: what holds without it?"),
            },
        };
        let _ = writeln!(
            text,
            "| `{}` | {} | {usual} | {} |",
            field("name")?,
            value(key)?,
            field("meaning")?
        );
    }
    Ok(())
}

fn value(key: &Value) -> anyhow::Result<String> {
    Ok(match key["kind"].as_str().context("a kind")? {
        "text" => "text".to_owned(),
        "path" => "path".to_owned(),
        "address" => "`host:port`".to_owned(),
        "word" => {
            let words = key["words"].as_array().context("words")?;
            let words: Vec<String> = words
                .iter()
                .filter_map(Value::as_str)
                .map(|word| format!("`{word}`"))
                .collect();
            words.join(", ")
        }
        "number" => {
            let number = |name: &str| key[name].as_u64().with_context(|| format!("{key}: {name}"));
            let (min, max) = (number("min")?, number("max")?);
            let unit = key["unit"].as_str().unwrap_or_default();
            let range = if max >= i64::MAX.unsigned_abs() {
                format!("from {min}")
            } else {
                format!("{min} to {max}")
            };
            format!("{range} {unit}").trim_end().to_owned()
        }
        other => anyhow::bail!("{key}: no words for the kind {other}"),
    })
}

#[cfg(test)]
mod tests {
    use super::tables;

    #[test]
    fn a_key_is_a_row_with_its_range_and_usual_value() {
        let keys = serde_json::json!([
            { "table": "", "name": "node", "kind": "text", "usual": "required", "meaning": "Its name." },
            { "table": "[log]", "name": "segment_mib", "kind": "number", "unit": "MiB", "min": 1, "max": 9,
              "usual": { "number": 4 }, "meaning": "Length." },
        ]);
        let mut text = String::new();
        tables(&mut text, &keys).expect("tables");
        assert!(
            text.contains("| `node` | text | required | Its name. |"),
            "{text}"
        );
        assert!(
            text.ends_with("| `segment_mib` | 1 to 9 MiB | `4` | Length. |\n"),
            "{text}"
        );
        assert!(
            tables(
                &mut text,
                &serde_json::json!([{ "table": "", "name": "x" }])
            )
            .is_err()
        );
    }
}
