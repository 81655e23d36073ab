//! The document is whole, refers to nothing that is not there, and its examples are what our own types take and give.

use std::collections::BTreeSet;

use clearspan_iso20022::read::{Context, Limits};
use clearspan_ledger::{AmountMinor, Bic};
use serde_json::Value;

use super::{document, may_answer};
use crate::api::problem::Code;
use crate::api::routes::ROUTES;

/// What is answered for what is no path or method.
const NOWHERE: &[Code] = &[Code::NotFound, Code::Method];

/// Follows a reference within the document.
fn resolve<'a>(whole: &'a Value, schema: &'a Value) -> &'a Value {
    let Some(reference) = schema.get("$ref") else {
        return schema;
    };
    let pointer = reference.as_str().unwrap().strip_prefix('#').unwrap();
    let found = whole.pointer(pointer);
    found.unwrap_or_else(|| panic!("{pointer} leads nowhere"))
}

fn is_of_kind(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("no such type: {other}"),
    }
}

/// Checks a value against a schema, and knows every keyword that stands in ours.
pub(in crate::api) fn check(
    whole: &Value,
    schema: &Value,
    value: &Value,
    at: &str,
) -> Result<(), String> {
    let schema = resolve(whole, schema);
    let fault = |what: &str| Err(format!("{at}: {what}: {value}"));
    let Some(keywords) = schema.as_object() else {
        return if schema == &Value::Bool(true) {
            Ok(())
        } else {
            fault("nothing is allowed")
        };
    };
    for (keyword, wanted) in keywords {
        match keyword.as_str() {
            "title" | "description" | "format" | "default" | "examples" => {}
            "type" => {
                let kinds = match wanted {
                    Value::Array(kinds) => kinds.clone(),
                    kind => vec![kind.clone()],
                };
                if !kinds
                    .iter()
                    .any(|kind| is_of_kind(kind.as_str().unwrap(), value))
                {
                    return fault(&format!("not of type {wanted}"));
                }
            }
            "enum" => {
                if !wanted.as_array().unwrap().contains(value) {
                    return fault("not one of the values");
                }
            }
            "const" => {
                if wanted != value {
                    return fault("another value");
                }
            }
            "required" => {
                for name in wanted.as_array().unwrap() {
                    if value.is_object() && value.get(name.as_str().unwrap()).is_none() {
                        return fault(&format!("{name} is missing"));
                    }
                }
            }
            "properties" => {
                for (name, inner) in value.as_object().into_iter().flatten() {
                    if let Some(schema) = wanted.get(name) {
                        check(whole, schema, inner, &format!("{at}.{name}"))?;
                    } else if keywords.get("additionalProperties") == Some(&Value::Bool(false)) {
                        return fault(&format!("{name} is unknown"));
                    }
                }
            }
            "additionalProperties" => {}
            "items" => {
                for (number, inner) in value.as_array().into_iter().flatten().enumerate() {
                    check(whole, wanted, inner, &format!("{at}[{number}]"))?;
                }
            }
            "minimum" | "maximum" => {
                let (found, bound) = (value.as_f64(), wanted.as_f64().unwrap());
                if found.is_some_and(|found| {
                    (keyword == "minimum" && found < bound)
                        || (keyword == "maximum" && found > bound)
                }) {
                    return fault("out of bounds");
                }
            }
            "minItems" | "maxItems" => {
                let count = value.as_array().map(|items| items.len() as u64);
                let bound = wanted.as_u64().unwrap();
                if count.is_some_and(|count| {
                    (keyword == "minItems" && count < bound)
                        || (keyword == "maxItems" && count > bound)
                }) {
                    return fault("of another count");
                }
            }
            "prefixItems" => {
                let items = value.as_array().into_iter().flatten();
                for (schema, inner) in wanted.as_array().unwrap().iter().zip(items) {
                    check(whole, schema, inner, at)?;
                }
            }
            "minLength" | "maxLength" => {
                let length = value.as_str().map(|text| text.chars().count() as u64);
                let bound = wanted.as_u64().unwrap();
                if length.is_some_and(|length| {
                    (keyword == "minLength" && length < bound)
                        || (keyword == "maxLength" && length > bound)
                }) {
                    return fault("of another length");
                }
            }
            "allOf" => {
                for schema in wanted.as_array().unwrap() {
                    check(whole, schema, value, at)?;
                }
            }
            "anyOf" | "oneOf" => {
                let schemas = wanted.as_array().unwrap();
                let good = schemas
                    .iter()
                    .filter(|schema| check(whole, schema, value, at).is_ok())
                    .count();
                if good == 0 || (keyword == "oneOf" && good > 1) {
                    return fault(&format!("{good} of the alternatives fit"));
                }
            }
            other => panic!("{at}: the check does not know {other}"),
        }
    }
    Ok(())
}

fn walk(value: &Value, seen: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                seen(name, inner);
                walk(inner, seen);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, seen)),
        _ => {}
    }
}

#[test]
fn every_route_is_described_once_and_nothing_else() {
    let whole = document();
    let paths = whole["paths"].as_object().unwrap();
    let described: usize = paths
        .values()
        .map(|path| path.as_object().unwrap().len())
        .sum();
    assert_eq!(described, ROUTES.len(), "two routes of one method and path");
    let mut ids = BTreeSet::new();
    for route in ROUTES {
        let operation = &paths[route.path][route.method.as_str().to_ascii_lowercase()];
        let id = operation["operationId"].as_str().unwrap();
        assert!(!id.is_empty(), "{}", route.path);
        assert!(ids.insert(id.to_owned()), "{id} stands twice");
        assert!(!operation["summary"].as_str().unwrap().is_empty(), "{id}");
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.contains_key("200"), "{id}");
        // What stands in braces is described, and nothing else is a parameter of the path.
        let in_braces: BTreeSet<&str> = route
            .path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .collect();
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let of_path: BTreeSet<&str> = parameters
            .filter(|parameter| parameter["in"] == "path")
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        assert_eq!(in_braces, of_path, "{id}");
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_schema_is_used() {
    let whole = document();
    let mut used = BTreeSet::new();
    walk(&whole, &mut |name, value| {
        if name == "$ref" {
            let pointer = value.as_str().unwrap().strip_prefix('#').unwrap();
            assert!(whole.pointer(pointer).is_some(), "{pointer} leads nowhere");
            used.insert(pointer.rsplit('/').next().unwrap().to_owned());
        }
    });
    let schemas = whole["components"]["schemas"].as_object().unwrap();
    let defined: BTreeSet<String> = schemas.keys().cloned().collect();
    assert_eq!(defined, used);
}

#[test]
fn every_example_fits_its_schema_and_is_read_by_its_type() {
    let whole = document();
    let mut examples = 0;
    for (path, methods) in whole["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            walk(operation, &mut |name, content| {
                if name != "content" {
                    return;
                }
                for (media, form) in content.as_object().unwrap() {
                    let at = format!("{method} {path} {media}");
                    assert!(!form["example"].is_null(), "{at}: no example, or no JSON");
                    check(&whole, &form["schema"], &form["example"], &at).unwrap();
                    examples += 1;
                }
            });
        }
    }
    assert!(examples > ROUTES.len());
    for content in ROUTES.iter().flat_map(|route| {
        let answers = route
            .doc
            .answers
            .iter()
            .flat_map(|(_, _, forms)| forms.iter());
        route.doc.body.iter().chain(answers)
    }) {
        if let Some(parses) = content.parses {
            parses(content.example).unwrap_or_else(|error| panic!("{error}: {}", content.example));
        }
    }
}

#[test]
fn the_example_message_and_settings_are_readable() {
    let context = Context {
        sender: Bic::parse(b"ALFADEFFXXX"),
        amount_max: AmountMinor::MAX,
        numbers_messages: &|_| false,
    };
    let message = include_bytes!("payment.xml");
    let read = clearspan_iso20022::read::read(message, &Limits::default(), &context).unwrap();
    let clearspan_iso20022::read::Incoming::Submission(submitted) = read else {
        panic!("no submission");
    };
    assert_eq!(submitted.notes, []);
    let settings = include_str!("participants.toml");
    let path = std::path::Path::new("participants.toml");
    let settings = crate::settings::Settings::parse(settings, path).unwrap();
    assert_eq!(settings.participants.len(), 2);
}

#[test]
fn every_code_is_described_and_given_somewhere() {
    let mut texts = BTreeSet::new();
    for &code in Code::ALL {
        assert!(texts.insert(code.text()), "{} stands twice", code.text());
        assert!(
            NOWHERE.contains(&code) || ROUTES.iter().any(|route| may_answer(route, code)),
            "{} is never given",
            code.text()
        );
    }
    assert_eq!(
        document()["x-problem-codes"].as_array().unwrap().len(),
        texts.len()
    );
}
