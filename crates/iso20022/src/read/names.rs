//! Namespaces in scope.

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_64;

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

/// Published namespaces have about 50 bytes. The context of a heap repeats them.
const URI_MAX_BYTES: usize = 1024;
const PREFIX_MAX_BYTES: usize = 256;

const XML_URI: &[u8] = b"http://www.w3.org/XML/1998/namespace";
const XMLNS_URI: &[u8] = b"http://www.w3.org/2000/xmlns/";

/// The declarations in scope, innermost last, and all URIs seen.
///
/// Look-up compares numbers first, so that a message full of declarations costs little more than another.
pub(crate) struct Names<'a> {
    uris: Vec<Cow<'a, [u8]>>,
    // Hashes of `uris`.
    uri_keys: Vec<u64>,
    // Hashes of the prefixes in `bindings`.
    keys: Vec<u64>,
    bindings: Vec<(&'a [u8], Namespace)>,
    // What was looked up last; nearly every element has the prefix of the one before it.
    last: Option<(&'a [u8], Namespace)>,
    max: usize,
}

impl<'a> Names<'a> {
    pub(crate) fn new(max: usize) -> Self {
        let uris = vec![Cow::Borrowed(&b""[..]), Cow::Borrowed(XML_URI)];
        let uri_keys = uris.iter().map(|uri| xxh3_64(uri)).collect();
        Self {
            uris,
            uri_keys,
            keys: Vec::new(),
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
            self.keys.truncate(depth);
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
        if uri.len() > URI_MAX_BYTES || prefix.len() > PREFIX_MAX_BYTES {
            return Err(Bad {
                at,
                detail: "a longer namespace than one may be",
            });
        }
        let uri_key = xxh3_64(&uri);
        // Two namespaces of one hash are two entries, the second of which is found by its text.
        let mut same = (0_usize..)
            .zip(&self.uri_keys)
            .filter(|(_, key)| **key == uri_key)
            .map(|(index, _)| index);
        let index =
            match same.find(|&index| self.uris.get(index).is_some_and(|known| *known == uri)) {
                Some(index) => index,
                None => {
                    self.uris.push(uri);
                    self.uri_keys.push(uri_key);
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
        self.keys.push(xxh3_64(prefix));
        self.last = None;
        Ok(())
    }

    /// The namespace of a prefix; the empty prefix is the default namespace.
    #[inline]
    pub(crate) fn find(&mut self, prefix: &'a [u8]) -> Option<Namespace> {
        if let Some((last, namespace)) = self.last
            && same(last, prefix)
        {
            return Some(namespace);
        }
        self.look_up(prefix)
    }

    fn look_up(&mut self, prefix: &'a [u8]) -> Option<Namespace> {
        let wanted = xxh3_64(prefix);
        // Two prefixes of one hash: those behind are looked at in turn.
        let mut until = self.keys.len();
        let found = loop {
            let Some(at) = self
                .keys
                .get(..until)
                .and_then(|keys| keys.iter().rposition(|key| *key == wanted))
            else {
                break None;
            };
            match self.bindings.get(at) {
                Some(&(name, namespace)) if name == prefix => break Some(namespace),
                _ => until = at,
            }
        };
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

    /// A number that stands for the namespace's URI whatever its place in the table.
    pub(crate) fn key(&self, namespace: Namespace) -> u64 {
        self.uri_keys
            .get(usize::from(namespace.0))
            .copied()
            .unwrap_or(0)
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

/// Whether two names are the same. Names are a few bytes: comparing them here, in two overlapping words, costs less than a
/// call.
#[inline]
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (a.first_chunk::<8>(), b.first_chunk::<8>()) {
        (Some(first_a), Some(first_b)) if a.len() <= 16 => {
            first_a == first_b && a.last_chunk::<8>() == b.last_chunk::<8>()
        }
        (Some(_), Some(_)) => a == b,
        _ => match (a.first_chunk::<4>(), b.first_chunk::<4>()) {
            (Some(first_a), Some(first_b)) => {
                first_a == first_b && a.last_chunk::<4>() == b.last_chunk::<4>()
            }
            _ => a.iter().zip(b).all(|(a, b)| a == b),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{Names, Namespace};

    #[test]
    fn the_innermost_declaration_counts() {
        let mut names = Names::new(10);
        assert_eq!(names.find(b""), Some(Namespace::NONE));
        assert_eq!(names.find(b"xml"), Some(Namespace::XML));
        assert_eq!(names.find(b"p"), None);
        names.declare(b"p", b"urn:a", 0).unwrap();
        names.declare(b"prefix-1", b"urn:a&amp;", 0).unwrap();
        names.declare(b"prefix-2", b"urn:b", 0).unwrap();
        let outer = names.find(b"p").unwrap();
        let depth = names.depth();
        names.declare(b"p", b"urn:b", 0).unwrap();
        assert_eq!(names.find(b"p"), names.find(b"prefix-2"));
        // Prefixes of one length and beginning.
        assert_ne!(names.find(b"prefix-1"), names.find(b"prefix-2"));
        assert_eq!(names.find(b"prefix-3"), None);
        assert_eq!(names.in_scope(names.depth()).len(), 3);
        names.leave(depth);
        assert_eq!(names.find(b"p"), Some(outer));
        let first = names.find(b"prefix-1").unwrap();
        assert_eq!(names.uri(first), b"urn:a&");
    }
}
