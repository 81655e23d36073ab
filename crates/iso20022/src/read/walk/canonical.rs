//! The canonical form, element by element.

use clearspan_ledger::Reason;

use super::{Namespace, Stop, Walk, local, scan};

// Marks in the canonical form. None of them is a character that XML allows, so text never looks like one.
const ELEMENT: u8 = 1;
pub(super) const END: u8 = 2;
const ATTRIBUTE: u8 = 3;
const VALUE: u8 = 4;
const CONTENT: u8 = 5;
const FOREIGN: u8 = 6;

impl<'a> Walk<'a, '_> {
    /// Writes the beginning of an element.
    pub(super) fn open_canonical(
        &mut self,
        namespace: Namespace,
        local: &[u8],
    ) -> Result<(), Stop> {
        self.canonical.push(ELEMENT);
        if namespace != self.namespace {
            foreign(&mut self.canonical, self.names.key(namespace));
        }
        self.canonical.extend_from_slice(local);
        if !self.scanner.attributes.is_empty() {
            self.canonical_attributes()?;
        }
        self.canonical.push(CONTENT);
        Ok(())
    }

    // Declarations come into force for the whole tag, so they go first.
    pub(super) fn attributes(&mut self) -> Result<(), Stop> {
        for attribute in &self.scanner.attributes {
            if let Some(prefix) = declared_prefix(attribute.name) {
                self.names.declare(prefix, attribute.value, attribute.at)?;
            }
        }
        self.attributes.clear();
        for attribute in &self.scanner.attributes {
            if declared_prefix(attribute.name).is_some() {
                continue;
            }
            let colon = memchr::memchr(b':', attribute.name).unwrap_or(0);
            let namespace = match colon {
                0 => Some(Namespace::NONE),
                _ => self
                    .names
                    .find(attribute.name.get(..colon).unwrap_or_default()),
            };
            let Some(namespace) = namespace else {
                return Err(Stop::new(
                    attribute.at,
                    Reason::Syntax,
                    "a prefix that is not declared",
                ));
            };
            let local = local(attribute.name, colon);
            if namespace == Namespace::XML
                && !self.in_transaction
                && matches!(local, b"space" | b"lang")
            {
                let mut value = Vec::with_capacity(attribute.value.len());
                scan::resolve(&mut value, attribute.value, attribute.at, true)?;
                self.inherited.push((self.frames.len(), local, value));
            }
            self.attributes.push((namespace, local, *attribute));
        }
        if self.attributes.len() > 1 {
            let names = &self.names;
            self.attributes
                .sort_unstable_by_key(|&(namespace, local, _)| (names.key(namespace), local));
            for pair in self.attributes.windows(2) {
                if pair[0].0 == pair[1].0 && pair[0].1 == pair[1].1 {
                    return Err(Stop::new(
                        pair[1].2.at,
                        Reason::Syntax,
                        "an attribute stands twice under two prefixes",
                    ));
                }
            }
        }
        Ok(())
    }

    pub(super) fn canonical_attributes(&mut self) -> Result<(), Stop> {
        for (namespace, local, attribute) in &self.attributes {
            let uri = self.names.uri(*namespace);
            if uri == b"http://www.w3.org/2001/XMLSchema-instance"
                && matches!(*local, b"schemaLocation" | b"noNamespaceSchemaLocation")
            {
                // Where a schema lies says nothing about the payment; still it must be well-formed.
                let mut value = Vec::new();
                scan::resolve(&mut value, attribute.value, attribute.at, true)?;
                continue;
            }
            self.canonical.push(ATTRIBUTE);
            if !uri.is_empty() {
                foreign(&mut self.canonical, self.names.key(*namespace));
            }
            self.canonical.extend_from_slice(local);
            self.canonical.push(VALUE);
            if attribute.value.len() > self.limits.text_max_bytes {
                return Err(Stop::new(
                    attribute.at,
                    Reason::Syntax,
                    "a longer attribute than one may be",
                ));
            }
            scan::resolve(&mut self.canonical, attribute.value, attribute.at, true)?;
        }
        Ok(())
    }

    pub(super) fn amount_currency(&mut self) -> Result<(), Stop> {
        let mut code = None;
        if !self.scanner.attributes.is_empty() {
            for (namespace, local, attribute) in &self.attributes {
                if *namespace == Namespace::NONE && *local == b"Ccy" {
                    let mut value = Vec::with_capacity(8);
                    scan::resolve(&mut value, attribute.value, attribute.at, true)?;
                    code = Some(value);
                }
            }
        }
        self.gather.amount_currency(code.as_deref());
        Ok(())
    }
}

fn declared_prefix(name: &[u8]) -> Option<&[u8]> {
    match name.strip_prefix(b"xmlns")? {
        b"" => Some(b""),
        rest => rest.strip_prefix(b":"),
    }
}

// A namespace is written as its hash: a long one would make short elements long.
fn foreign(canonical: &mut Vec<u8>, key: u64) {
    canonical.push(FOREIGN);
    canonical.extend_from_slice(&key.to_le_bytes());
}
