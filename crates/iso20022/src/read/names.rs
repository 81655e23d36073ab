//! Namespaces in scope.

use std::borrow::Cow;

use super::scan::{self, Bad};

/// A namespace of this message: a place in the table of its URIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Namespace(u16);

impl Namespace {
    /// No namespace.
    pub(crate) const NONE: Self = Self(0);
    /// That of `xml:space` and `xml:lang`.
    pub(crate) const XML: Self = Self(1);
}

const XML_URI: &[u8] = b"http://www.w3.org/XML/1998/namespace";
const XMLNS_URI: &[u8] = b"http://www.w3.org/2000/xmlns/";

/// The declarations in scope, innermost last, and all URIs seen.
pub(crate) struct Names<'a> {
    uris: Vec<Cow<'a, [u8]>>,
    bindings: Vec<(&'a [u8], Namespace)>,
    // What was looked up last; nearly every element has the prefix of the one before it.
    last: Option<(&'a [u8], Namespace)>,
    max: usize,
}

impl<'a> Names<'a> {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            uris: vec![Cow::Borrowed(b""), Cow::Borrowed(XML_URI)],
            bindings: Vec::new(),
            last: None,
            max,
        }
    }

    /// How many declarations are in scope: given back to [`Names::leave`] at the end of the element.
    pub(crate) fn depth(&self) -> usize {
        self.bindings.len()
    }

    /// Declarations behind `depth` go out of scope.
    pub(crate) fn leave(&mut self, depth: usize) {
        if self.bindings.len() != depth {
            self.bindings.truncate(depth);
            self.last = None;
        }
    }

    /// `xmlns="raw"` or `xmlns:prefix="raw"`.
    ///
    /// # Errors
    /// More in scope than the limit, or a declaration that the namespace recommendation forbids.
    pub(crate) fn declare(
        &mut self,
        prefix: &'a [u8],
        raw: &'a [u8],
        at: usize,
    ) -> Result<(), Bad> {
        let plain = memchr::memchr3(b'&', b'\n', b'\t', raw).is_none() && !raw.contains(&b'\r');
        let uri = if plain {
            Cow::Borrowed(raw)
        } else {
            let mut resolved = Vec::with_capacity(raw.len());
            scan::resolve(&mut resolved, raw, at, true)?;
            Cow::Owned(resolved)
        };
        let forbidden = prefix == b"xmlns"
            || (prefix == b"xml") != (*uri == *XML_URI)
            || *uri == *XMLNS_URI
            || (uri.is_empty() && !prefix.is_empty());
        if forbidden {
            return Err(Bad {
                at,
                detail: "a namespace declaration that is not allowed",
            });
        }
        let found = self.uris.iter().position(|known| *known == uri);
        let index = match found {
            Some(index) => index,
            None => {
                self.uris.push(uri);
                self.uris.len() - 1
            }
        };
        if self.uris.len() > self.max || self.bindings.len() >= self.max {
            return Err(Bad {
                at,
                detail: "too many namespaces",
            });
        }
        let index = u16::try_from(index).map_err(|_| Bad {
            at,
            detail: "too many namespaces",
        })?;
        self.bindings.push((prefix, Namespace(index)));
        self.last = None;
        Ok(())
    }

    /// The namespace of a prefix; the empty prefix is the default namespace.
    pub(crate) fn find(&mut self, prefix: &'a [u8]) -> Option<Namespace> {
        if let Some((last, namespace)) = self.last
            && last == prefix
        {
            return Some(namespace);
        }
        let found = self
            .bindings
            .iter()
            .rev()
            .find(|(name, _)| *name == prefix)
            .map(|&(_, namespace)| namespace);
        let namespace = match found {
            Some(namespace) => namespace,
            None if prefix.is_empty() => Namespace::NONE,
            None if prefix == b"xml" => Namespace::XML,
            None => return None,
        };
        self.last = Some((prefix, namespace));
        Some(namespace)
    }

    /// The URI of a namespace.
    pub(crate) fn uri(&self, namespace: Namespace) -> &[u8] {
        self.uris
            .get(usize::from(namespace.0))
            .map_or(b"", |uri| uri)
    }

    /// Every prefix with its URI among the outer `depth` declarations, by prefix.
    pub(crate) fn in_scope(&self, depth: usize) -> Vec<(&[u8], &[u8])> {
        let mut all: Vec<(&[u8], &[u8])> = Vec::new();
        for &(prefix, namespace) in self.bindings.iter().take(depth).rev() {
            if prefix != b"xml" && !all.iter().any(|(known, _)| *known == prefix) {
                all.push((prefix, self.uri(namespace)));
            }
        }
        all.sort_unstable();
        all
    }
}
