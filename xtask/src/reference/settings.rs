//! Keys of `participants.toml`. Names, kinds and defaults are read from the source that parses the file; what each means
//! stands here, and a key on one side only is a fault.

use std::fmt::Write as _;

use anyhow::{Context as _, bail};

use super::GENERATED;
use crate::root;

const SOURCE: &str = "crates/node/src/settings.rs";

/// Table of the file, struct of the source, and what each key means.
const TABLES: [(&str, &str, &[(&str, &str)]); 3] = [
    (
        "top level",
        "File",
        &[
            (
                "business_date",
                "The business date, `YYYY-MM-DD`; payments must carry it. A later run may give a later date, never an earlier one.",
            ),
            (
                "shards",
                "How many shards, 1 to 256. Fixed for good when the data directory is founded.",
            ),
            (
                "clearing_house",
                "The clearing house's own BIC: the sender of all output. No participant may have it.",
            ),
            (
                "retention_days",
                "For how many business days payments, messages and output stay known, at least 1. Fixed for good.",
            ),
            (
                "amount_max_minor",
                "The largest amount of one payment, in minor units of any currency; without it 999999999999999999 (18 digits). Fixed for good.",
            ),
            (
                "page_len_payments",
                "Credits of one netting cycle per output document, at least 1. Fixed for good.",
            ),
            (
                "gap_timeout_seconds",
                "After how long a hole in a participant's numbering is reported again. What the data directory was founded with stays.",
            ),
            ("participant", "The participants, one table each."),
        ],
    ),
    (
        "[[participant]]",
        "FileParticipant",
        &[
            (
                "bic",
                "Its code, 8 or 11 capital letters and digits; 8 are filled up with `XXX`.",
            ),
            ("name", "Its name, 1 to 140 bytes."),
            (
                "shard",
                "Its home shard, from 0: accounts, queues, duplicates, order and output of this participant live there.",
            ),
            (
                "sequence",
                "Whether it numbers its messages: the digits behind the last `-` or `/` of the message identifier, from 1 each business day. Its messages are taken in that order only.",
            ),
            (
                "refuse_whole",
                "Whether one bad payment refuses its whole package. Otherwise bad payments are refused singly.",
            ),
            (
                "net_unit",
                "What a netting cycle drops when its funds lack: its last payments one by one (`\"payment\"`), or its last packages whole (`\"package\"`).",
            ),
            (
                "account",
                "Its settlement accounts, one table each, at least one.",
            ),
        ],
    ),
    (
        "[[participant.account]]",
        "FileAccount",
        &[
            (
                "currency",
                "ISO 4217 code; one account per participant and currency.",
            ),
            (
                "opening_balance",
                "Central-bank money put on it when it is opened, as a decimal text with at most the currency's decimals. Put there once, whatever later files say.",
            ),
            (
                "credit_line",
                "How far the balance may fall below zero; without it 0.",
            ),
        ],
    ),
];

struct Key {
    name: String,
    kind: String,
    default: Option<String>,
}

pub(super) fn text() -> anyhow::Result<String> {
    let source =
        std::fs::read_to_string(root().join(SOURCE)).with_context(|| format!("read {SOURCE}"))?;
    let mut text = format!(
        "{GENERATED}# Settings: participants.toml

One TOML file per business day, checked as a whole before anything is done; an unknown key, a second account in a currency
or a code that stands twice is refused with its line. [examples/day/participants.toml](../../examples/day/participants.toml)
is a whole one. Participants and accounts may be added by a later day's file; what was taken up before must stay as it was,
or the run stops and says what differs. A participant that is left out stays.
"
    );
    for (table, name, meanings) in TABLES {
        let keys = keys(&source, name)?;
        for key in &keys {
            if meanings.iter().all(|(known, _)| *known != key.name) {
                bail!(
                    "{SOURCE}: {name}.{} is not described in xtask/src/reference/settings.rs",
                    key.name
                );
            }
        }
        let _ = write!(
            text,
            "\n## {table}\n\n| key | kind | default | meaning |\n|---|---|---|---|\n"
        );
        for (name_of_key, meaning) in meanings {
            let key = keys
                .iter()
                .find(|key| key.name == *name_of_key)
                .with_context(|| format!("{SOURCE}: {name} has no {name_of_key} any more"))?;
            let default = key
                .default
                .as_deref()
                .map_or_else(|| "required".to_owned(), str::to_owned);
            let _ = writeln!(
                text,
                "| `{name_of_key}` | {} | {default} | {meaning} |",
                key.kind
            );
        }
    }
    Ok(text)
}

/// The fields of a struct as rustfmt lays them out: attributes and fields one to a line, the brace alone.
fn keys(source: &str, name: &str) -> anyhow::Result<Vec<Key>> {
    let (_, body) = source
        .split_once(&format!("\nstruct {name} {{\n"))
        .with_context(|| format!("{SOURCE}: no struct {name}"))?;
    let (body, _) = body
        .split_once("\n}")
        .with_context(|| format!("{SOURCE}: struct {name} has no end"))?;
    let mut keys = Vec::new();
    let mut attribute = None;
    for line in body.lines().map(str::trim) {
        if line.starts_with("#[serde(") {
            attribute = Some(line);
        } else if let Some((field, kind)) = line.trim_end_matches(',').split_once(": ") {
            let default = match attribute.take() {
                Some(attribute) => Some(default(source, attribute, kind)?),
                None => kind.starts_with("Option<").then(|| "none".to_owned()),
            };
            keys.push(Key {
                name: field.to_owned(),
                kind: kind_for_people(kind)?.to_owned(),
                default,
            });
        }
    }
    Ok(keys)
}

fn default(source: &str, attribute: &str, kind: &str) -> anyhow::Result<String> {
    if attribute == "#[serde(default)]" {
        return Ok(match kind {
            "bool" => "`false`",
            "FileNetUnit" => "`\"payment\"`",
            _ => "none",
        }
        .to_owned());
    }
    let function = attribute
        .split('"')
        .nth(1)
        .with_context(|| format!("{SOURCE}: {attribute}"))?;
    let (_, body) = source
        .split_once(&format!("fn {function}()"))
        .with_context(|| format!("{SOURCE}: no {function}"))?;
    let value = body
        .lines()
        .nth(1)
        .unwrap_or_default()
        .trim()
        .trim_end_matches(".to_owned()");
    Ok(format!("`{value}`"))
}

fn kind_for_people(kind: &str) -> anyhow::Result<&'static str> {
    let inner = kind
        .trim_start_matches("toml::Spanned<")
        .trim_start_matches("Option<")
        .trim_end_matches('>');
    Ok(match inner {
        "String" => "text",
        "u16" | "u32" | "u64" => "number",
        "bool" => "true or false",
        "FileNetUnit" => "text",
        _ if inner.starts_with("Vec<") => "tables",
        _ => bail!("{SOURCE}: no word for the kind {kind}"),
    })
}

#[cfg(test)]
mod tests {
    use super::keys;

    const SOURCE: &str = "
struct File {
    business_date: toml::Spanned<String>,
    #[serde(default = \"five\")]
    retention_days: u16,
    amount_max_minor: Option<u64>,
    #[serde(default)]
    participant: Vec<toml::Spanned<FileParticipant>>,
}

const fn five() -> u16 {
    5
}
";

    #[test]
    fn keys_come_with_kind_and_default() {
        let keys = keys(SOURCE, "File").expect("keys");
        let found: Vec<_> = keys
            .iter()
            .map(|key| (key.name.as_str(), key.kind.as_str(), key.default.as_deref()))
            .collect();
        assert_eq!(
            found,
            [
                ("business_date", "text", None),
                ("retention_days", "number", Some("`5`")),
                ("amount_max_minor", "number", Some("none")),
                ("participant", "tables", Some("none")),
            ]
        );
        assert!(super::keys(SOURCE, "Other").is_err());
    }
}
