//! One pass over a message: nesting, namespaces, structure, canonical form.
//!
//! The canonical form is written into one buffer that is hashed and emptied at each transaction, so that nothing is
//! allocated per element. The buffer also holds the resolved text of the element that is open, which is where values are
//! read from.

use std::borrow::Cow;

use clearspan_ledger::Reason;
use xxhash_rust::xxh3::Xxh3;

use super::gather::{Gather, Place, Stop};
use super::heap::{self, local};
use super::names::{Names, Namespace, same};
use super::scan::{self, RawAttribute, Scanner, Token};
use super::shape::{self, Definition, Field, NAMESPACE_PREFIX, Node};
use super::{Context, Fault, Incoming, Limits, Note};
use canonical::END;
use order::{advance, complete, is_value};
use place::{Here, Printed, fault};

mod body;
mod canonical;
mod order;
mod place;

/// Which part of the bytes an element belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Envelope,
    Header,
    Document,
}

/// What an element is to us: its part, what it is read for, and the table of its children.
type Meaning = (Part, Field, Option<&'static Node>);

/// An element that is open.
struct Frame<'a> {
    /// As written.
    name: &'a [u8],
    colon: usize,
    namespace: Namespace,
    part: Part,
    field: Field,
    node: Option<&'static Node>,
    /// The next child of `node` that may come.
    next: usize,
    /// `node`'s child at `next` came at least once.
    repeated: bool,
    has_child: bool,
    has_text: bool,
    /// Where the element begins in the message.
    at: usize,
    /// Where it begins in the canonical form.
    begins: usize,
    /// Where the text that is open begins in the canonical form.
    text: usize,
    /// Namespace declarations before it.
    declarations: usize,
}

struct Walk<'a, 'c> {
    bytes: &'a [u8],
    limits: &'c Limits,
    scanner: Scanner<'a>,
    names: Names<'a>,
    frames: Vec<Frame<'a>>,
    gather: Gather<'c>,
    canonical: Vec<u8>,
    // Canonical form of the identifiers of the transaction that is open.
    identifiers: Vec<u8>,
    hasher: Box<Xxh3>,
    attributes: Vec<(Namespace, &'a [u8], RawAttribute<'a>)>,
    namespace: Namespace,
    version: u8,
    header_version: u8,
    message_name: Option<String>,
    digest: Option<u128>,
    roots: usize,
    heap: Vec<u8>,
    body: usize,
    // Whether the first transaction's parent had declarations of its own.
    context_own: bool,
    group_header: (usize, usize),
    original_group: (usize, usize),
    // `xml:space` and `xml:lang` in force: depth, name, value.
    inherited: Vec<(usize, &'a [u8], Vec<u8>)>,
    in_transaction: bool,
}

pub(crate) fn read(
    bytes: &[u8],
    limits: &Limits,
    context: &Context<'_>,
) -> Result<Incoming, Box<Fault>> {
    let mut gather = Gather::new(limits, context);
    let scanner = if bytes.len() > limits.body_max_bytes {
        Err(Stop::new(
            0,
            Reason::Syntax,
            "larger than one message may be",
        ))
    } else {
        Scanner::new(bytes, limits.attributes_max).map_err(Stop::from)
    };
    let scanner = match scanner {
        Ok(scanner) => scanner,
        Err(stop) => return Err(fault(bytes, stop, &mut gather, None, "/")),
    };
    let mut walk = Walk {
        bytes,
        limits,
        scanner,
        names: Names::new(limits.namespaces_max),
        frames: Vec::with_capacity(limits.depth_max.min(64)),
        gather,
        canonical: Vec::with_capacity(8 << 10),
        identifiers: Vec::with_capacity(256),
        hasher: Box::new(Xxh3::new()),
        attributes: Vec::new(),
        namespace: Namespace::NONE,
        version: 0,
        header_version: 0,
        message_name: None,
        digest: None,
        roots: 0,
        heap: Vec::new(),
        body: 0,
        context_own: false,
        group_header: (0, 0),
        original_group: (0, 0),
        inherited: Vec::new(),
        in_transaction: false,
    };
    match walk.run() {
        Ok(()) => walk.finish(),
        Err(stop) => {
            let before = walk.gather.count_read();
            let path = Here {
                frames: &walk.frames,
                at: stop.at,
                before,
            }
            .path();
            Err(fault(
                bytes,
                stop,
                &mut walk.gather,
                walk.message_name.take(),
                &path,
            ))
        }
    }
}

impl<'a> Walk<'a, '_> {
    fn run(&mut self) -> Result<(), Stop> {
        loop {
            match self.scanner.next()? {
                Token::Start { name, colon, empty } => {
                    self.open(name, colon)?;
                    if empty {
                        self.close()?;
                    }
                }
                Token::End { name } => {
                    if self
                        .frames
                        .last()
                        .is_none_or(|frame| !same(frame.name, name))
                    {
                        return Err(self.scanner.unlike().into());
                    }
                    self.close()?;
                }
                Token::Text { raw, blank, plain } => self.text(raw, blank, plain)?,
                Token::Literal { raw } => self.literal(raw)?,
                Token::Other => {}
                Token::End0 => break,
            }
        }
        if !self.frames.is_empty() {
            return Err(self.stop("the message ends inside an element"));
        }
        if self.roots == 0 {
            return Err(self.stop("nothing there"));
        }
        Ok(())
    }

    /// Reading stops at the token that was read last.
    fn stop(&self, detail: impl Into<Cow<'static, str>>) -> Stop {
        Stop::new(self.scanner.token_at, Reason::Syntax, detail)
    }

    fn open(&mut self, name: &'a [u8], colon: usize) -> Result<(), Stop> {
        if self.frames.len() >= self.limits.depth_max {
            return Err(self.stop("too many elements inside one another"));
        }
        let declarations = self.names.depth();
        if !self.scanner.attributes.is_empty() {
            self.attributes()?;
        }
        let prefix = name.get(..colon).unwrap_or_default();
        let Some(namespace) = self.names.find(prefix) else {
            return Err(self.stop("a prefix that is not declared"));
        };
        let local = local(name, colon);
        let at = self.scanner.token_at;
        let (part, field, node) = match self.frames.last_mut() {
            None => {
                self.roots += 1;
                if self.roots > 1 {
                    return Err(self.stop("two messages: a second root element"));
                }
                self.open_part(namespace, local)?
            }
            Some(parent) if parent.part == Part::Envelope => {
                if !parent.has_text {
                    self.canonical.truncate(parent.text);
                }
                parent.has_child = true;
                self.open_part(namespace, local)?
            }
            Some(parent) => {
                // A parent of the message's own namespace has either text or elements.
                if parent.has_text && parent.namespace == self.namespace {
                    return Err(self.stop("an element beside text"));
                }
                if !parent.has_text {
                    self.canonical.truncate(parent.text);
                }
                parent.has_child = true;
                let part = parent.part;
                match parent.node {
                    None => (part, Field::None, None),
                    Some(_) if namespace != self.namespace => {
                        let detail =
                            format!("{}: another namespace than the message's", Printed(local));
                        return Err(self.stop(detail));
                    }
                    Some(node) => {
                        let version = if part == Part::Header {
                            self.header_version
                        } else {
                            self.version
                        };
                        match advance(parent, node, local, version) {
                            Ok(child) => (part, child.field, child.node),
                            Err(detail) => return Err(self.stop(detail)),
                        }
                    }
                }
            }
        };
        if matches!(field, Field::Transaction | Field::Report) {
            self.begin_body(at, declarations)?;
        }
        let begins = self.canonical.len();
        self.open_canonical(namespace, local)?;
        // Made where it lies: a frame that is built up elsewhere and moved costs more than all of its fields.
        self.frames.push(Frame {
            name,
            colon,
            namespace,
            part,
            field,
            node,
            next: 0,
            repeated: false,
            has_child: false,
            has_text: false,
            at,
            begins,
            text: self.canonical.len(),
            declarations,
        });
        if field == Field::None {
            return Ok(());
        }
        if matches!(field, Field::Amount | Field::Total | Field::OriginalAmount) {
            self.amount_currency()?;
        }
        let here = Here {
            frames: &self.frames,
            at,
            before: self.gather.count_read(),
        };
        self.gather.open(field, &here)
    }

    // An element below the envelope: header, document, or more envelope.
    fn open_part(&mut self, namespace: Namespace, local: &[u8]) -> Result<Meaning, Stop> {
        let envelope = (Part::Envelope, Field::None, None);
        if !matches!(local, b"Document" | b"AppHdr") {
            return Ok(envelope);
        }
        let uri = self.names.uri(namespace);
        let Some(identifier) = uri
            .strip_prefix(NAMESPACE_PREFIX.as_bytes())
            .and_then(|rest| std::str::from_utf8(rest).ok())
        else {
            // The scheme's own element of that name; or a document without a namespace we could know it by.
            return Ok(envelope);
        };
        let not_served = |what: &str| {
            Stop::new(
                self.scanner.token_at,
                Reason::MessageNotSupported,
                format!("{what}{identifier} is not served"),
            )
        };
        let split = shape::split_definition(identifier);
        if local == b"AppHdr" {
            if self.gather.header.is_some() {
                return Err(self.stop("two business headers"));
            }
            let Some(("head.001", version @ 1..=4)) = split else {
                return Err(not_served("a business header of "));
            };
            self.namespace = namespace;
            self.header_version = version;
            self.gather.open_header(version);
            Ok((Part::Header, Field::None, Some(&shape::HEADER)))
        } else {
            if self.message_name.is_some() {
                return Err(self.stop("two messages: a second Document"));
            }
            self.message_name = Some(identifier.to_owned());
            let found = split
                .and_then(|(name, version)| Some((version, shape::definition(name, version)?)));
            let Some((version, (definition, node))) = found else {
                return Err(not_served(""));
            };
            self.namespace = namespace;
            self.version = version;
            self.gather.definition = Some((definition, version));
            self.canonical.clear();
            self.hasher.update(uri);
            Ok((Part::Document, Field::None, Some(node)))
        }
    }

    fn text(&mut self, raw: &'a [u8], blank: bool, plain: bool) -> Result<(), Stop> {
        let at = self.scanner.token_at;
        let Some(frame) = self.frames.last_mut() else {
            return if blank {
                Ok(())
            } else {
                Err(self.stop("text outside the message"))
            };
        };
        if blank && frame.has_child {
            return Ok(());
        }
        if plain {
            self.canonical.extend_from_slice(raw);
        } else {
            scan::resolve(&mut self.canonical, raw, at, false)?;
        }
        self.written(blank)
    }

    fn literal(&mut self, raw: &'a [u8]) -> Result<(), Stop> {
        if self.frames.is_empty() {
            return Err(self.stop("text outside the message"));
        }
        scan::resolve_literal(&mut self.canonical, raw);
        self.written(
            raw.iter()
                .all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')),
        )
    }

    // Text was appended to the element that is open.
    fn written(&mut self, blank: bool) -> Result<(), Stop> {
        let Some(frame) = self.frames.last_mut() else {
            return Ok(());
        };
        if !blank {
            frame.has_text = true;
            if frame.has_child && frame.part != Part::Envelope && frame.namespace == self.namespace
            {
                return Err(self.stop("text beside elements"));
            }
        }
        if self.canonical.len() - frame.text.min(self.canonical.len()) > self.limits.text_max_bytes
        {
            return Err(self.stop("a longer text than one element may have"));
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), Stop> {
        let at = self.scanner.token_at;
        let Some(frame) = self.frames.last() else {
            return Ok(());
        };
        let field = frame.field;
        if frame.has_child && !frame.has_text {
            self.canonical.truncate(frame.text);
        }
        if let Some(node) = frame.node {
            let version = if frame.part == Part::Header {
                self.header_version
            } else {
                self.version
            };
            complete(frame, node, version)
                .map_err(|detail| Stop::new(at, Reason::Syntax, detail))?;
            if frame.has_text {
                return Err(self.stop("text where elements belong"));
            }
        } else if frame.has_child && is_value(field) {
            return Err(self.stop("elements where a value belongs"));
        }
        let begins = frame.begins;
        let text = frame.text;
        let part = frame.part;
        let value = self.canonical.get(text..).unwrap_or_default();
        let is_lei = local(frame.name, frame.colon) == b"LEI" && part == Part::Document;
        if (field != Field::None && !matches!(field, Field::Transaction | Field::Report)) || is_lei
        {
            let here = Here {
                frames: &self.frames,
                at: frame.at,
                before: self.gather.count_read(),
            };
            if is_lei && frame.namespace == self.namespace {
                self.gather.entity(value, &here);
            }
            self.gather.close(field, value, &here);
        }
        self.canonical.push(END);
        match field {
            Field::Creation => self.canonical.truncate(begins),
            Field::InstructionId
            | Field::TransactionId
            | Field::Uetr
            | Field::ClearingReference => {
                self.identifiers
                    .extend_from_slice(self.canonical.get(begins..).unwrap_or_default());
                self.canonical.truncate(begins);
            }
            Field::Group => self.group_header = (frame.at, self.scanner.position()),
            Field::ReturnedGroup => self.original_group = (frame.at, self.scanner.position()),
            Field::Transaction | Field::Report => self.end_body()?,
            _ => {}
        }
        let depth = self.frames.len() - 1;
        if let Some(frame) = self.frames.pop() {
            self.names.leave(frame.declarations);
        }
        if !self.inherited.is_empty() {
            self.inherited.retain(|(at, _, _)| *at < depth);
        }
        let outside = self
            .frames
            .last()
            .is_none_or(|parent| parent.part == Part::Envelope);
        if outside && part != Part::Envelope {
            if part == Part::Document {
                self.hasher.update(&self.canonical);
                self.digest = Some(self.hasher.digest128());
            }
            self.namespace = Namespace::NONE;
        }
        if outside {
            self.canonical.clear();
        }
        if let Some(parent) = self.frames.last_mut() {
            parent.text = self.canonical.len();
        }
        Ok(())
    }
}
