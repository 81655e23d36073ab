//! What documents promise: the right message, code and figures for every item, and the same bytes for ever.

mod answers;
pub(crate) mod cluster;
mod credits;
mod receipts;
mod replay;
mod schema;

use super::{Cache, Document, DocumentError, Documents, Settings};

/// The texts of all elements with this local name, in order. Enough for documents that this crate has written.
pub(crate) fn texts(document: &Document, tag: &str) -> Vec<String> {
    let text = std::str::from_utf8(&document.bytes).expect("UTF-8");
    let (open, close) = (format!("<{tag}"), format!("</{tag}>"));
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(&open) {
        rest = &rest[at + open.len()..];
        if !rest.starts_with(['>', ' ']) {
            continue;
        }
        let begin = rest.find('>').expect("a tag ends") + 1;
        let end = rest.find(&close).expect("an element ends");
        found.push(rest[begin..end].to_owned());
    }
    found
}

/// Reads to the end, so that what is not well-formed is found.
pub(crate) fn assert_well_formed(document: &Document) {
    let text = std::str::from_utf8(&document.bytes).expect("UTF-8");
    let mut reader = quick_xml::Reader::from_str(text);
    loop {
        match reader.read_event() {
            Ok(quick_xml::events::Event::Eof) => break,
            Ok(_) => {}
            Err(e) => panic!("{}: {e}\n{text}", document.file_name),
        }
    }
    assert!(text.contains(&document.name), "{text}");
}
