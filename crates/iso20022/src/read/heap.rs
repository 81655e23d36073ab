//! The heap of a submission: what the receiver gets unchanged.
//!
//! The layout is drawn in `docs/format/heap.md`. It begins with what surrounded the transactions (namespace declarations in
//! scope and the group header's own bytes), then each transaction's element exactly as sent. To the ledger it is opaque.

use std::borrow::Cow;

use super::scan::{self, Scanner, Token};

/// The layout's version, its first byte.
pub const LAYOUT: u8 = 1;

/// What surrounded the transactions of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapContext<'a> {
    /// The message's namespace, `urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08`.
    pub namespace: &'a str,
    /// A prefix that the declarations bind to the message's namespace (that of the element around the transactions), empty
    /// where it is the default namespace. The new document's own elements take it, since the default namespace in scope
    /// may be another one.
    pub prefix: &'a str,
    /// The group header (`GrpHdr`, `Assgnmt`) exactly as sent.
    pub group_header: &'a [u8],
    /// A return's `OrgnlGrpInf` for all of its transactions, exactly as sent; empty where there was none.
    pub original_group: &'a [u8],
    declarations: &'a [u8],
    inherited: &'a [u8],
    /// Bytes before the first transaction.
    pub len: usize,
}

impl<'a> HeapContext<'a> {
    /// Every declaration in scope where the transactions stood: prefix (empty for the default namespace) and URI.
    pub fn declarations(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        Pairs(self.declarations)
    }

    /// `xml:space` and `xml:lang` in force where the transactions stood: local name and value.
    pub fn inherited(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        Pairs(self.inherited)
    }

    /// Appends ` xmlns="…" xmlns:p="…" xml:lang="…"` with values escaped: what the new document's root element needs so
    /// that transactions put below it mean what they meant.
    pub fn push_attributes(&self, out: &mut Vec<u8>) {
        for (prefix, uri) in self.declarations() {
            out.extend_from_slice(if prefix.is_empty() {
                b" xmlns"
            } else {
                b" xmlns:"
            });
            out.extend_from_slice(prefix.as_bytes());
            push_value(out, uri);
        }
        for (name, value) in self.inherited() {
            out.extend_from_slice(b" xml:");
            out.extend_from_slice(name.as_bytes());
            push_value(out, value);
        }
    }

    /// The bytes of one direct child of the group header (`PmtTpInf`, `SttlmInf`), exactly as sent.
    /// Declarations that the group header's own element makes are not part of it.
    #[must_use]
    pub fn group_part(&self, local: &str) -> Option<&'a [u8]> {
        children(self.group_header)
            .into_iter()
            .find(|(name, _)| *name == local.as_bytes())
            .map(|(_, bytes)| bytes)
    }
}

fn push_value(out: &mut Vec<u8>, value: &str) {
    out.extend_from_slice(b"=\"");
    for byte in value.bytes() {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\t' => out.extend_from_slice(b"&#9;"),
            b'\n' => out.extend_from_slice(b"&#10;"),
            b'\r' => out.extend_from_slice(b"&#13;"),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// What was in scope where the transactions stood, while the heap is built.
pub(crate) struct Surroundings<'p> {
    pub(crate) namespace: &'p [u8],
    pub(crate) prefix: &'p [u8],
    pub(crate) declarations: &'p [(&'p [u8], &'p [u8])],
    pub(crate) inherited: &'p [(&'p [u8], &'p [u8])],
}

impl Surroundings<'_> {
    /// Appends the beginning of a heap; `None` when a part is too long for its length field.
    pub(crate) fn push(&self, out: &mut Vec<u8>) -> Option<()> {
        out.push(LAYOUT);
        push_short(out, self.namespace)?;
        push_short(out, self.prefix)?;
        push_pairs(out, self.declarations)?;
        push_pairs(out, self.inherited)
    }
}

/// Appends bytes behind their length; `None` when they are too long for it.
pub(crate) fn push_long(out: &mut Vec<u8>, part: &[u8]) -> Option<()> {
    out.extend_from_slice(&u32::try_from(part.len()).ok()?.to_le_bytes());
    out.extend_from_slice(part);
    Some(())
}

fn push_short(out: &mut Vec<u8>, part: &[u8]) -> Option<()> {
    out.extend_from_slice(&u16::try_from(part.len()).ok()?.to_le_bytes());
    out.extend_from_slice(part);
    Some(())
}

fn push_pairs(out: &mut Vec<u8>, pairs: &[(&[u8], &[u8])]) -> Option<()> {
    let len: usize = pairs
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4)
        .sum();
    out.extend_from_slice(&u32::try_from(len).ok()?.to_le_bytes());
    for (name, value) in pairs {
        push_short(out, name)?;
        push_short(out, value)?;
    }
    Some(())
}

/// Reads the context a heap begins with. `None` when the bytes are no heap of a known layout.
#[must_use]
pub fn heap_context(heap: &[u8]) -> Option<HeapContext<'_>> {
    let mut rest = heap;
    let [LAYOUT] = *take(&mut rest, 1)? else {
        return None;
    };
    let namespace = text(take_short(&mut rest)?)?;
    let prefix = text(take_short(&mut rest)?)?;
    let declarations = take_long(&mut rest)?;
    let inherited = take_long(&mut rest)?;
    for pairs in [declarations, inherited] {
        let mut unread = pairs;
        while !unread.is_empty() {
            pair(&mut unread)?;
        }
    }
    let group_header = take_long(&mut rest)?;
    let original_group = take_long(&mut rest)?;
    Some(HeapContext {
        namespace,
        prefix,
        group_header,
        original_group,
        declarations,
        inherited,
        len: heap.len() - rest.len(),
    })
}

/// The bytes of one transaction: what a payment record's offset and length point at.
#[must_use]
pub fn transaction(heap: &[u8], body_offset: u32, body_len: u32) -> Option<&[u8]> {
    let from = usize::try_from(body_offset).ok()?;
    let to = from.checked_add(usize::try_from(body_len).ok()?)?;
    heap.get(from..to)
}

struct Pairs<'a>(&'a [u8]);

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        pair(&mut self.0)
    }
}

fn pair<'a>(rest: &mut &'a [u8]) -> Option<(&'a str, &'a str)> {
    let name = text(take_short(rest)?)?;
    Some((name, text(take_short(rest)?)?))
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(len)?;
    *rest = left;
    Some(taken)
}

fn take_short<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = u16::from_le_bytes(take(rest, 2)?.try_into().ok()?);
    take(rest, usize::from(len))
}

fn take_long<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = u32::from_le_bytes(take(rest, 4)?.try_into().ok()?);
    take(rest, usize::try_from(len).ok()?)
}

/// The identifiers a transaction carries, as its sender wrote them (references resolved). Of a return or a cancellation,
/// `instruction`, `end_to_end` and `uetr` are those of the original payment (`OrgnlInstrId`, …), and `transaction` is the
/// return's own (`RtrId`), else the original's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ids<'a> {
    /// `InstrId`
    pub instruction: Option<Cow<'a, str>>,
    /// `EndToEndId`
    pub end_to_end: Option<Cow<'a, str>>,
    /// `TxId`
    pub transaction: Option<Cow<'a, str>>,
    /// `UETR`
    pub uetr: Option<Cow<'a, str>>,
    /// `OrgnlTxId`, of a return or a cancellation.
    pub original_transaction: Option<Cow<'a, str>>,
    /// `CxlId`, of a cancellation.
    pub cancellation: Option<Cow<'a, str>>,
}

/// Reads the identifiers of a transaction's bytes. Bytes that are no element give no identifiers.
#[must_use]
pub fn transaction_ids(body: &[u8]) -> Ids<'_> {
    let mut ids = Ids::default();
    let top = children(body);
    let nested = top
        .iter()
        .find(|(name, _)| *name == b"PmtId")
        .map(|(_, bytes)| children(bytes));
    for (name, bytes) in nested.iter().flatten().chain(&top) {
        let slot = match *name {
            b"InstrId" | b"OrgnlInstrId" => &mut ids.instruction,
            b"EndToEndId" | b"OrgnlEndToEndId" => &mut ids.end_to_end,
            b"TxId" | b"RtrId" => &mut ids.transaction,
            b"UETR" | b"OrgnlUETR" => &mut ids.uetr,
            b"OrgnlTxId" => &mut ids.original_transaction,
            b"CxlId" => &mut ids.cancellation,
            _ => continue,
        };
        if slot.is_none() {
            *slot = content(bytes);
        }
    }
    if ids.transaction.is_none() {
        ids.transaction.clone_from(&ids.original_transaction);
    }
    ids
}

/// Direct children of the element that the bytes hold: local name and bytes. Stops where they are not well-formed.
fn children(element: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut scanner = Scanner::fragment(element, usize::MAX);
    let mut found: Vec<(&[u8], &[u8])> = Vec::new();
    let mut depth = 0_usize;
    let mut child: (&[u8], usize) = (b"", 0);
    while let Ok(token) = scanner.next() {
        match token {
            Token::Start { name, colon, empty } => {
                depth += 1;
                if depth == 2 {
                    child = (local(name, colon), scanner.token_at);
                }
                if !empty {
                    continue;
                }
            }
            Token::End { .. } => {}
            Token::End0 => break,
            _ => continue,
        }
        if depth == 2 {
            found.push((
                child.0,
                element.get(child.1..scanner.position()).unwrap_or_default(),
            ));
        }
        depth = depth.saturating_sub(1);
        if depth == 0 {
            break;
        }
    }
    found
}

/// The text of an element without child elements.
fn content(element: &[u8]) -> Option<Cow<'_, str>> {
    let mut scanner = Scanner::fragment(element, usize::MAX);
    let Ok(Token::Start { empty: false, .. }) = scanner.next() else {
        return None;
    };
    let mut whole: Option<Cow<'_, str>> = None;
    loop {
        let piece = match scanner.next().ok()? {
            Token::Text {
                raw, plain: true, ..
            } => Cow::Borrowed(text(raw)?),
            Token::Text { raw, .. } => {
                let mut resolved = Vec::with_capacity(raw.len());
                scan::resolve(&mut resolved, raw, 0, false).ok()?;
                Cow::Owned(String::from_utf8(resolved).ok()?)
            }
            Token::Literal { raw } => {
                let mut resolved = Vec::with_capacity(raw.len());
                scan::resolve_literal(&mut resolved, raw);
                Cow::Owned(String::from_utf8(resolved).ok()?)
            }
            Token::Other => continue,
            Token::End { .. } => return whole,
            Token::Start { .. } | Token::End0 => return None,
        };
        whole = Some(match whole {
            None => piece,
            Some(before) => Cow::Owned(before.into_owned() + &piece),
        });
    }
}

/// A name without its prefix.
pub(crate) fn local(name: &[u8], colon: usize) -> &[u8] {
    if colon == 0 {
        name
    } else {
        name.get(colon + 1..).unwrap_or_default()
    }
}
