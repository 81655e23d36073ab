//! One pass over a message: nesting, namespaces, structure, canonical form.
//!
//! The canonical form is written into one buffer that is hashed and emptied at each transaction, so that nothing is
//! allocated per element. The buffer also holds the resolved text of the element that is open, which is where values are
//! read from.

use std::borrow::Cow;
use std::mem;

use clearspan_ledger::Reason;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::gather::{Gather, Place, Stop};
use super::heap::{self, local};
use super::names::{Names, Namespace};
use super::scan::{self, RawAttribute, Scanner, Token};
use super::shape::{self, Definition, Field, NAMESPACE_PREFIX, Node};
use super::{Context, Fault, Incoming, Limits, Note};

// Marks in the canonical form. None of them is a character that XML allows, so text never looks like one.
const ELEMENT: u8 = 1;
const END: u8 = 2;
const ATTRIBUTE: u8 = 3;
const VALUE: u8 = 4;
const CONTENT: u8 = 5;
const FOREIGN: u8 = 6;

/// Which part of the bytes an element belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Envelope,
    Header,
    Document,
}

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
    group_header: (usize, usize),
    original_group: (usize, usize),
    // `xml:space` and `xml:lang` in force: depth, name, value.
    inherited: Vec<(usize, &'a [u8], Vec<u8>)>,
    in_transaction: bool,
}

/// A place that the open elements name.
struct Here<'p, 'a> {
    frames: &'p [Frame<'a>],
    at: usize,
    // Transactions before this one.
    before: usize,
}

impl Place for Here<'_, '_> {
    fn at(&self) -> usize {
        self.at
    }

    fn path(&self) -> String {
        let mut path = String::new();
        // The envelope says nothing about the message.
        let from = self
            .frames
            .iter()
            .position(|frame| frame.part != Part::Envelope)
            .unwrap_or(0);
        for frame in self.frames.iter().skip(from) {
            path.push('/');
            path.push_str(&String::from_utf8_lossy(local(frame.name, frame.colon)));
            if matches!(frame.field, Field::Transaction | Field::Report) {
                path.push_str(&format!("[{}]", self.before + 1));
            }
        }
        if path.is_empty() { "/".into() } else { path }
    }
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

fn fault(
    bytes: &[u8],
    stop: Stop,
    gather: &mut Gather<'_>,
    message_name: Option<String>,
    path: &str,
) -> Box<Fault> {
    let (line, column) = Lines::new(bytes).place(stop.at);
    Box::new(Fault {
        reason: stop.reason,
        line,
        column,
        path: stop.path.unwrap_or_else(|| path.to_owned()),
        detail: stop.detail,
        sender: gather.sender(),
        message_id: gather.message_id.take(),
        message_name,
    })
}

/// Counts lines in one sweep over the bytes, for places in ascending order.
struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u64,
    line_begins: usize,
}

impl<'a> Lines<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            line: 1,
            line_begins: 0,
        }
    }

    /// Line and column, from 1. A carriage return without line feed ends a line as well.
    fn place(&mut self, at: usize) -> (u64, u64) {
        let at = at.min(self.bytes.len());
        while self.at < at {
            let byte = self.bytes[self.at];
            self.at += 1;
            if byte == b'\n' || (byte == b'\r' && self.bytes.get(self.at) != Some(&b'\n')) {
                self.line += 1;
                self.line_begins = self.at;
            }
        }
        let before = self.bytes.get(self.line_begins..at).unwrap_or_default();
        let characters = before.iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
        (
            self.line,
            u64::try_from(characters).map_or(u64::MAX, |count| count + 1),
        )
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
                    if self.frames.last().is_none_or(|frame| frame.name != name) {
                        return Err(self.stop("an end tag that does not match"));
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
        let mut frame = Frame {
            name,
            colon,
            namespace,
            part: Part::Envelope,
            field: Field::None,
            node: None,
            next: 0,
            repeated: false,
            has_child: false,
            has_text: false,
            at: self.scanner.token_at,
            begins: 0,
            text: 0,
            declarations,
        };
        match self.frames.last_mut() {
            None => {
                self.roots += 1;
                if self.roots > 1 {
                    return Err(self.stop("two messages: a second root element"));
                }
                self.open_part(&mut frame, local)?;
            }
            Some(parent) if parent.part == Part::Envelope => {
                if !parent.has_text {
                    self.canonical.truncate(parent.text);
                }
                parent.has_child = true;
                self.open_part(&mut frame, local)?;
            }
            Some(parent) => {
                // A parent of the message's own namespace has either text or elements.
                if parent.has_text && parent.namespace == self.namespace {
                    return Err(Stop::new(
                        frame.at,
                        Reason::Syntax,
                        "an element beside text",
                    ));
                }
                if !parent.has_text {
                    self.canonical.truncate(parent.text);
                }
                parent.has_child = true;
                frame.part = parent.part;
                if let Some(node) = parent.node {
                    if namespace != self.namespace {
                        let detail =
                            format!("{}: another namespace than the message's", Printed(local));
                        return Err(self.stop(detail));
                    }
                    let version = if frame.part == Part::Header {
                        self.header_version
                    } else {
                        self.version
                    };
                    let child = advance(parent, node, local, version)
                        .map_err(|detail| self.stop(detail))?;
                    let child = &node.children[child];
                    frame.field = child.field;
                    frame.node = child.node;
                }
            }
        }
        self.open_canonical(frame, local)
    }

    // An element below the envelope: header, document, or more envelope.
    fn open_part(&mut self, frame: &mut Frame<'a>, local: &[u8]) -> Result<(), Stop> {
        if !matches!(local, b"Document" | b"AppHdr") {
            return Ok(());
        }
        let uri = self.names.uri(frame.namespace);
        let Some(identifier) = uri
            .strip_prefix(NAMESPACE_PREFIX.as_bytes())
            .and_then(|rest| std::str::from_utf8(rest).ok())
        else {
            // The scheme's own element of that name; or a document without a namespace we could know it by.
            return Ok(());
        };
        let split = shape::split_definition(identifier);
        if local == b"AppHdr" {
            if self.gather.header.is_some() {
                return Err(self.stop("two business headers"));
            }
            match split {
                Some(("head.001", version @ 1..=4)) => {
                    frame.part = Part::Header;
                    frame.node = Some(&shape::HEADER);
                    self.namespace = frame.namespace;
                    self.header_version = version;
                    self.gather.open_header(version);
                    Ok(())
                }
                _ => Err(Stop::new(
                    frame.at,
                    Reason::MessageNotSupported,
                    format!("a business header of {identifier} is not served"),
                )),
            }
        } else {
            if self.message_name.is_some() {
                return Err(self.stop("two messages: a second Document"));
            }
            self.message_name = Some(identifier.to_owned());
            let found = split
                .and_then(|(name, version)| Some((version, shape::definition(name, version)?)));
            let Some((version, (definition, node))) = found else {
                let detail = format!("{identifier} is not served");
                return Err(Stop::new(frame.at, Reason::MessageNotSupported, detail));
            };
            frame.part = Part::Document;
            frame.node = Some(node);
            self.namespace = frame.namespace;
            self.version = version;
            self.gather.definition = Some((definition, version));
            self.canonical.clear();
            self.hasher.update(uri);
            Ok(())
        }
    }

    fn open_canonical(&mut self, mut frame: Frame<'a>, local: &[u8]) -> Result<(), Stop> {
        if matches!(frame.field, Field::Transaction | Field::Report) {
            self.hasher.update(&self.canonical);
            self.canonical.clear();
            self.identifiers.clear();
            self.begin_body(&frame)?;
            self.in_transaction = true;
        }
        frame.begins = self.canonical.len();
        self.canonical.push(ELEMENT);
        if frame.namespace != self.namespace {
            self.canonical.push(FOREIGN);
            self.canonical
                .extend_from_slice(self.names.uri(frame.namespace));
            self.canonical.push(FOREIGN);
        }
        self.canonical.extend_from_slice(local);
        if !self.scanner.attributes.is_empty() {
            self.canonical_attributes()?;
        }
        self.canonical.push(CONTENT);
        frame.text = self.canonical.len();
        let field = frame.field;
        let at = frame.at;
        self.frames.push(frame);
        if field != Field::None {
            if matches!(field, Field::Amount | Field::Total | Field::OriginalAmount) {
                self.amount_currency()?;
            }
            let here = Here {
                frames: &self.frames,
                at,
                before: self.gather.count_read(),
            };
            self.gather.open(field, &here)?;
        }
        Ok(())
    }

    // Declarations come into force for the whole tag, so they go first.
    fn attributes(&mut self) -> Result<(), Stop> {
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
                .sort_unstable_by(|a, b| (names.uri(a.0), a.1).cmp(&(names.uri(b.0), b.1)));
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

    fn canonical_attributes(&mut self) -> Result<(), Stop> {
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
                self.canonical.push(FOREIGN);
                self.canonical.extend_from_slice(uri);
                self.canonical.push(FOREIGN);
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

    fn amount_currency(&mut self) -> Result<(), Stop> {
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

    // The heap begins with what surrounds the first transaction; every transaction's bytes follow.
    fn begin_body(&mut self, frame: &Frame<'a>) -> Result<(), Stop> {
        let first = self.heap.is_empty();
        if matches!(
            self.gather.definition,
            Some((Definition::Status | Definition::Report, _))
        ) {
            return Ok(());
        }
        // Transactions of a cancellation have different parents, which may declare different prefixes.
        if first || matches!(self.gather.definition, Some((Definition::Cancellation, _))) {
            let mut context = Vec::new();
            let mut inherited: Vec<(&[u8], &[u8])> = Vec::new();
            for (at, name, value) in self.inherited.iter().rev() {
                if *at < self.frames.len() && !inherited.iter().any(|(known, _)| known == name) {
                    inherited.push((name, value));
                }
            }
            let parts = heap::Parts {
                namespace: self.names.uri(self.namespace),
                prefix: frame.name.get(..frame.colon).unwrap_or_default(),
                declarations: &self.names.in_scope(frame.declarations),
                inherited: &inherited,
                group_header: self
                    .bytes
                    .get(self.group_header.0..self.group_header.1)
                    .unwrap_or_default(),
                original_group: self
                    .bytes
                    .get(self.original_group.0..self.original_group.1)
                    .unwrap_or_default(),
            };
            if heap::push_context(&mut context, &parts).is_none() {
                return Err(self.stop("a longer namespace than one may be"));
            }
            if first {
                // What is left of the message is about what the transactions take.
                self.heap
                    .reserve(context.len() + self.bytes.len().saturating_sub(frame.at));
                self.heap.append(&mut context);
            } else if !self.heap.starts_with(&context) {
                return Err(
                    self.stop("transactions of one message under different namespace declarations")
                );
            }
        }
        self.body = self.heap.len();
        Ok(())
    }

    fn end_body(&mut self) -> Result<(), Stop> {
        self.in_transaction = false;
        let Some(frame) = self.frames.last() else {
            return Ok(());
        };
        let content_digest = xxh3_64(&self.canonical);
        // The identifiers stand before the content in the message's hash; their length keeps the two apart.
        let len = u64::try_from(self.identifiers.len()).unwrap_or(u64::MAX);
        self.hasher.update(&len.to_le_bytes());
        self.hasher.update(&self.identifiers);
        self.hasher.update(&self.canonical);
        self.canonical.clear();
        let mut body = (0, 0);
        if !matches!(
            self.gather.definition,
            Some((Definition::Status | Definition::Report, _))
        ) {
            self.heap.extend_from_slice(
                self.bytes
                    .get(frame.at..self.scanner.position())
                    .unwrap_or_default(),
            );
            let place = (
                u32::try_from(self.body),
                u32::try_from(self.heap.len() - self.body),
            );
            let (Ok(offset), Ok(len)) = place else {
                return Err(self.stop("larger than one message may be"));
            };
            body = (offset, len);
        }
        let here = Here {
            frames: &self.frames,
            at: frame.at,
            before: self.gather.count_read(),
        };
        self.gather.close_transaction(content_digest, body, &here);
        Ok(())
    }

    fn finish(mut self) -> Result<Incoming, Box<Fault>> {
        let end = End {
            at: self.bytes.len(),
        };
        if let Some(name) = &self.message_name {
            self.gather.compare_header(name, &end);
        }
        let digest = self.digest.unwrap_or(0);
        // Room that was reserved for what is not part of a transaction.
        self.heap.shrink_to_fit();
        match self.gather.finish(digest, mem::take(&mut self.heap), &end) {
            Ok((Incoming::Submission(mut submitted), mut marks)) => {
                marks.sort_by_key(|mark| mark.at);
                let mut lines = Lines::new(self.bytes);
                submitted.notes.extend(marks.into_iter().map(|mark| Note {
                    payment: mark.payment,
                    reason: mark.reason,
                    line: lines.place(mark.at).0,
                    path: mark.path,
                    detail: mark.detail,
                }));
                Ok(Incoming::Submission(submitted))
            }
            Ok((request, _)) => Ok(request),
            Err((stop, mut gather)) => Err(fault(
                self.bytes,
                stop,
                &mut gather,
                self.message_name.take(),
                "/Document",
            )),
        }
    }
}

/// The end of the message: where sums are compared.
struct End {
    at: usize,
}

impl Place for End {
    fn at(&self) -> usize {
        self.at
    }

    fn path(&self) -> String {
        "/Document".into()
    }
}

/// A name from outside, for people.
struct Printed<'p>(&'p [u8]);

impl std::fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = String::from_utf8_lossy(self.0);
        f.write_str(text.get(..text.len().min(64)).unwrap_or("a long name"))
    }
}

fn declared_prefix(name: &[u8]) -> Option<&[u8]> {
    match name.strip_prefix(b"xmlns")? {
        b"" => Some(b""),
        rest => rest.strip_prefix(b":"),
    }
}

/// The child of `node` that an element is: the published order, and each as often as published.
fn advance(
    parent: &mut Frame<'_>,
    node: &'static Node,
    name: &[u8],
    version: u8,
) -> Result<usize, Cow<'static, str>> {
    let from = parent.next;
    let later = node.children.get(from..).unwrap_or_default();
    let found = later
        .iter()
        .position(|child| child.name.as_bytes() == name && child.in_version(version));
    let Some(found) = found.map(|found| from + found) else {
        let known = node
            .children
            .iter()
            .any(|child| child.name.as_bytes() == name && child.in_version(version));
        return Err(if known {
            format!("{} is out of order, or stands twice", Printed(name)).into()
        } else {
            format!(
                "{} is no element of this place in this version",
                Printed(name)
            )
            .into()
        });
    };
    if node.choice {
        if parent.repeated && found != from {
            return Err(format!("{} beside its alternative", Printed(name)).into());
        }
    } else {
        missing(parent, node, found, version)?;
    }
    let many = node.children[found].many;
    parent.repeated = many;
    parent.next = match (many, node.choice) {
        (true, _) => found,
        (false, false) => found + 1,
        (false, true) => node.children.len(),
    };
    Ok(found)
}

/// Whether a required child before `until` is missing.
fn missing(
    parent: &Frame<'_>,
    node: &'static Node,
    until: usize,
    version: u8,
) -> Result<(), Cow<'static, str>> {
    for at in parent.next..until {
        let child = &node.children[at];
        let came = at == parent.next && parent.repeated;
        if child.required && !came && child.in_version(version) {
            return Err(format!("{} is missing", child.name).into());
        }
    }
    Ok(())
}

fn complete(frame: &Frame<'_>, node: &'static Node, version: u8) -> Result<(), Cow<'static, str>> {
    if node.choice {
        let chosen = frame.next != 0 || frame.repeated;
        return if chosen {
            Ok(())
        } else {
            Err("one of its alternatives is missing".into())
        };
    }
    missing(frame, node, node.children.len(), version)
}

/// Whether a field is read from text.
fn is_value(field: Field) -> bool {
    !matches!(
        field,
        Field::None | Field::Cover | Field::GroupCancellation | Field::ReturnedGroup
    )
}
