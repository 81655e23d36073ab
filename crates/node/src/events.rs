//! The node's log: one JSON object per line on stdout, each with the name of its event.

use std::io::Write as _;

use serde_json::{Map, Value};

use crate::clock::Clock;

/// Writes one line: time, event, and the fields of an object.
pub fn log(event: &str, fields: Value) {
    let mut line = Map::new();
    line.insert("time".to_owned(), Clock::System.now().to_string().into());
    line.insert("event".to_owned(), event.into());
    if let Value::Object(fields) = fields {
        line.extend(fields);
    }
    let mut bytes = Value::Object(line).to_string().into_bytes();
    bytes.push(b'\n');
    // A log that nobody reads any more must not stop the node.
    let _ = std::io::stdout().lock().write_all(&bytes);
}
