//! The XML tokens of one message, as slices of its bytes.
//!
//! quick-xml finds them ([`Reader`] over a slice: nothing is copied). This adapter says where each begins, and refuses what
//! quick-xml lets through for speed or for the sake of other documents: characters and names that XML does not allow, `]]>`
//! in text, `--` in comments, attributes twice or without space between them, document types, other encodings. What is not
//! well-formed is refused, never repaired (ADR 0005). Tokens also carry what the caller would look for again: whether a
//! text is blank or needs resolving. Namespaces and element nesting are the caller's.

use memchr::memmem;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::attributes::Attributes;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

/// Why the bytes are not a message, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    /// Byte offset in the message.
    pub(crate) at: usize,
    /// For people.
    pub(crate) detail: &'static str,
}

/// One attribute as written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawAttribute<'a> {
    pub(crate) name: &'a [u8],
    /// Between the quotes, references unresolved.
    pub(crate) value: &'a [u8],
    /// Offset of the value.
    pub(crate) at: usize,
}

/// One token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// `<name …>` or `<name …/>`; the attributes stand in [`Scanner::attributes`].
    Start {
        name: &'a [u8],
        colon: usize,
        empty: bool,
    },
    /// `</name>`. The name is looked at no further: it is that of an open element, or [`Scanner::unlike`] says what is wrong.
    End { name: &'a [u8] },
    /// Character data. `blank`: XML white space alone. `plain`: no reference and no carriage return in it.
    Text {
        raw: &'a [u8],
        blank: bool,
        plain: bool,
    },
    /// The inside of a CDATA section.
    Literal { raw: &'a [u8] },
    /// A comment or processing instruction.
    Other,
    /// The end of the bytes.
    End0,
}

/// Reads tokens one after another.
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    reader: Reader<&'a [u8]>,
    at: usize,
    /// Offset of the token that was read last.
    pub(crate) token_at: usize,
    /// Attributes of the start tag that was read last.
    pub(crate) attributes: Vec<RawAttribute<'a>>,
    attributes_max: usize,
    // Whether a carriage return, or `]]>`, stands anywhere: two fast looks at the whole save two slow ones at every text.
    any_return: bool,
    any_literal_end: bool,
}

// Classes of bytes of names and white space.
const NAME: u8 = 1;
const NAME_START: u8 = 2;
const COLON: u8 = 4;
const BLANK: u8 = 8;
const HIGH: u8 = 16;

const CLASS: [u8; 256] = {
    let mut table = [0_u8; 256];
    let mut byte = 0_usize;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "the loop ends at 255")]
        let b = byte as u8;
        table[byte] = match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => NAME | NAME_START,
            b'0'..=b'9' | b'-' | b'.' => NAME,
            b':' => NAME | NAME_START | COLON,
            0x80..=0xFF => NAME | NAME_START | HIGH,
            b' ' | b'\t' | b'\n' | b'\r' => BLANK,
            _ => 0,
        };
        byte += 1;
    }
    table
};

fn class(byte: u8) -> u8 {
    CLASS[usize::from(byte)]
}

impl<'a> Scanner<'a> {
    /// Checks the whole for what no place of a message may hold, reads over the byte order mark and the XML declaration.
    ///
    /// # Errors
    /// Bytes that are not UTF-8, characters that XML does not know, a declaration of another encoding.
    pub(crate) fn new(bytes: &'a [u8], attributes_max: usize) -> Result<Self, Bad> {
        // Most messages are ASCII, which is told faster.
        let ascii = bytes.is_ascii();
        if !ascii && let Err(error) = std::str::from_utf8(bytes) {
            return Err(Bad {
                at: error.valid_up_to(),
                detail: "not UTF-8",
            });
        }
        if let Some(at) = illegal_character(bytes, ascii) {
            return Err(Bad {
                at,
                detail: "a character that XML does not allow",
            });
        }
        let mut scanner = Self::fragment(bytes, attributes_max);
        scanner.declaration()?;
        Ok(scanner)
    }

    /// Reads a part of a message that was checked before.
    pub(crate) fn fragment(bytes: &'a [u8], attributes_max: usize) -> Self {
        let mut reader = Reader::from_reader(bytes);
        let config = reader.config_mut();
        // The caller compares names, and resolves a text as a whole.
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        config.trim_markup_names_in_closing_tags = false;
        config.allow_dangling_amp = true;
        Self {
            bytes,
            reader,
            // quick-xml reads over a byte order mark.
            at: if bytes.starts_with(b"\xEF\xBB\xBF") {
                3
            } else {
                0
            },
            token_at: 0,
            attributes: Vec::new(),
            attributes_max,
            any_return: memchr::memchr(b'\r', bytes).is_some(),
            any_literal_end: memmem::find(bytes, b"]]>").is_some(),
        }
    }

    /// Offset behind the last token.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    fn slice(&self, from: usize, to: usize) -> &'a [u8] {
        self.bytes.get(from..to).unwrap_or_default()
    }

    fn byte(&self, at: usize) -> u8 {
        // No byte of a message is 0: the whole was checked.
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// The first place from `at` on without white space.
    fn behind_blank(&self, mut at: usize) -> usize {
        while class(self.byte(at)) & BLANK != 0 {
            at += 1;
        }
        at
    }

    fn bad<T>(&self, at: usize, detail: &'static str) -> Result<T, Bad> {
        Err(Bad { at, detail })
    }

    fn event(&mut self) -> Result<Event<'a>, quick_xml::Error> {
        let event = self.reader.read_event();
        self.at = self.bytes.len() - self.reader.get_ref().len();
        event
    }

    fn declaration(&mut self) -> Result<(), Bad> {
        let at = self.at;
        let rest = self.slice(at, self.bytes.len());
        if !rest.starts_with(b"<?xml") || rest.get(5).is_some_and(|&byte| class(byte) & NAME != 0) {
            return Ok(());
        }
        self.token_at = at;
        let malformed = Bad {
            at,
            detail: "the XML declaration is malformed",
        };
        let inside = match self.event() {
            Ok(Event::Decl(_)) => self.slice(at + 2, self.at - 2),
            Ok(_) => return Err(malformed),
            Err(_) => return self.bad(at, "the XML declaration has no end"),
        };
        let whole = self.list(Attributes::new(text(inside), 3), at + 5);
        let mut version = false;
        for attribute in &self.attributes {
            version |= attribute.name == b"version";
            let fits = match attribute.name {
                b"version" => attribute.value == b"1.0",
                b"encoding" => attribute.value.eq_ignore_ascii_case(b"utf-8"),
                b"standalone" => matches!(attribute.value, b"yes" | b"no"),
                _ => return self.bad(attribute.at, "an unknown part of the XML declaration"),
            };
            if !fits {
                return self.bad(attribute.at, "only XML 1.0 in UTF-8 is read");
            }
        }
        match whole {
            Err(bad) if bad.at != at => Err(bad),
            Ok(()) if version => Ok(()),
            _ => Err(malformed),
        }
    }

    /// The next token.
    ///
    /// # Errors
    /// The first place that is not well-formed.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Token<'a>, Bad> {
        let from = self.at;
        self.token_at = from;
        // Matched where it lies: moving an event costs more than finding it.
        let event = self.reader.read_event();
        self.at = self.bytes.len() - self.reader.get_ref().len();
        match &event {
            Ok(Event::Start(tag)) => self.start(tag, false),
            Ok(Event::End(_)) => {
                let name = self.slice(from + 2, self.at - 1);
                Ok(Token::End {
                    name: name.trim_ascii_end(),
                })
            }
            Ok(Event::Text(_) | Event::GeneralRef(_)) => self.text(),
            Ok(Event::Empty(tag)) => self.start(tag, true),
            Ok(Event::CData(_)) => Ok(Token::Literal {
                raw: self.slice(from + 9, self.at - 3),
            }),
            Ok(Event::Comment(_)) => self.comment(self.at - 3),
            Ok(Event::PI(_) | Event::Decl(_)) => self.instruction(true),
            Ok(Event::Eof) => Ok(Token::End0),
            Ok(Event::DocType(_)) | Err(_) => self.refused(),
        }
    }

    /// Text from here to the next tag: quick-xml tells references and what stands between them one by one.
    fn text(&mut self) -> Result<Token<'a>, Bad> {
        let from = self.token_at;
        let mut plain = self.byte(from) != b'&';
        while !matches!(self.bytes.get(self.at), None | Some(b'<')) {
            plain = false;
            if self.event().is_err() {
                return self.bad(self.at, "not UTF-8");
            }
        }
        let raw = self.slice(from, self.at);
        let blank = raw.iter().all(|&byte| class(byte) & BLANK != 0);
        plain = plain && !(self.any_return && raw.contains(&b'\r'));
        if self.any_literal_end
            && let Some(at) = memmem::find(raw, b"]]>")
        {
            return self.bad(from + at, "]]> in text");
        }
        Ok(Token::Text { raw, blank, plain })
    }

    fn start(&mut self, tag: &BytesStart<'_>, empty: bool) -> Result<Token<'a>, Bad> {
        let from = self.token_at + 1;
        let (len, colon) = self.name(from)?;
        let behind = from + len;
        self.attributes.clear();
        if behind + 1 + usize::from(empty) != self.at {
            self.list(tag.attributes(), behind)?;
        }
        Ok(Token::Start {
            name: self.slice(from, behind),
            colon,
            empty,
        })
    }

    /// Takes the attributes behind a name that ends at `behind`.
    fn list(&mut self, mut list: Attributes<'_>, mut behind: usize) -> Result<(), Bad> {
        self.attributes.clear();
        if class(self.byte(behind)) & BLANK == 0 {
            return Err(self.no_attribute(behind));
        }
        for found in list.with_checks(false) {
            let found = found.ok().and_then(|found| {
                let name = self.place(found.key.0);
                let len = self.name(name).ok()?.0;
                // A name to quick-xml is whatever stands before `=`, and no space needs to stand before a name.
                (name > behind && len == found.key.0.len()).then(|| RawAttribute {
                    name: self.slice(name, name + len),
                    value: self.slice(
                        self.place(&found.value),
                        self.place(&found.value) + found.value.len(),
                    ),
                    at: self.place(&found.value),
                })
            });
            let Some(attribute) = found else {
                return Err(self.no_attribute(behind));
            };
            if let Some(at) = memchr::memchr(b'<', attribute.value) {
                return self.bad(attribute.at + at, "< in an attribute value");
            }
            let same = |other: &RawAttribute<'_>| other.name == attribute.name;
            if self.attributes.iter().any(same) {
                return self.bad(attribute.at, "an attribute stands twice");
            }
            if self.attributes.len() >= self.attributes_max {
                return self.bad(attribute.at, "too many attributes");
            }
            behind = attribute.at + attribute.value.len() + 1;
            self.attributes.push(attribute);
        }
        Ok(())
    }

    /// Where a part of the bytes begins in them.
    fn place(&self, part: &str) -> usize {
        part.as_ptr()
            .addr()
            .saturating_sub(self.bytes.as_ptr().addr())
    }

    fn unended(&self) -> Bad {
        Bad {
            at: self.token_at,
            detail: "a tag without end, or attributes without space between them",
        }
    }

    /// What is wrong with the attribute that should follow at `behind`.
    #[cold]
    fn no_attribute(&self, behind: usize) -> Bad {
        let from = self.behind_blank(behind);
        let bad = |at, detail| Bad { at, detail };
        if from == behind || class(self.byte(from)) & NAME_START == 0 {
            return self.unended();
        }
        let equals = match self.name(from) {
            Ok((len, _)) => self.behind_blank(from + len),
            Err(bad) => return bad,
        };
        if self.byte(equals) != b'=' {
            return bad(equals, "an attribute without value");
        }
        let quote = self.behind_blank(equals + 1);
        let rest = self.slice(quote + 1, self.bytes.len());
        match self.byte(quote) {
            mark @ (b'"' | b'\'') => match memchr::memchr2(mark, b'<', rest) {
                Some(len) if rest[len] == b'<' => bad(quote + 1 + len, "< in an attribute value"),
                _ => bad(quote, "an attribute value without end"),
            },
            _ => bad(quote, "an attribute value without quotes"),
        }
    }

    /// A comment whose `-->` begins at `to`.
    fn comment(&self, to: usize) -> Result<Token<'a>, Bad> {
        let from = self.token_at + 4;
        // The byte behind the last is the first of `-->`.
        let hyphens = memchr::memchr_iter(b'-', self.slice(from, to))
            .map(|at| from + at)
            .find(|at| self.byte(at + 1) == b'-');
        match hyphens {
            None => Ok(Token::Other),
            Some(at) => self.bad(at, "-- inside a comment"),
        }
    }

    fn instruction(&self, closed: bool) -> Result<Token<'a>, Bad> {
        let from = self.token_at;
        let (len, colon) = self.name(from + 2)?;
        let behind = from + 2 + len;
        if self.slice(from + 2, behind).eq_ignore_ascii_case(b"xml") || colon != 0 {
            return self.bad(
                from,
                "an XML declaration that is not at the beginning, or a bad target",
            );
        }
        if !closed {
            return self.bad(from, "a processing instruction without end");
        }
        if behind + 2 != self.at && class(self.byte(behind)) & BLANK == 0 {
            return self.bad(from, "a bad target of a processing instruction");
        }
        Ok(Token::Other)
    }

    /// What is wrong with the end tag that was read last, where no open element has its name.
    #[cold]
    pub(crate) fn unlike(&self) -> Bad {
        let at = self.token_at;
        match self.name(at + 2) {
            Err(bad) => bad,
            Ok((len, _)) => Bad {
                at,
                detail: if self.byte(self.behind_blank(at + 2 + len)) == b'>' {
                    "an end tag that does not match"
                } else {
                    "an end tag without >"
                },
            },
        }
    }

    /// What is wrong with the markup that quick-xml gave no token for, or one that is never read.
    #[cold]
    fn refused(&mut self) -> Result<Token<'a>, Bad> {
        let from = self.token_at;
        let end = self.bytes.len();
        let rest = self.slice(from, end);
        if rest.starts_with(b"<!--") {
            self.comment(end)?;
            self.bad(from, "a comment without end")
        } else if rest.starts_with(b"<![CDATA[") {
            self.bad(from, "a CDATA section without end")
        } else if rest.starts_with(b"<!DOCTYPE") {
            self.bad(from, "a document type declaration is never read")
        } else if rest.starts_with(b"<!") {
            self.bad(from, "a declaration that is not allowed here")
        } else if rest.starts_with(b"<?") {
            self.instruction(false)
        } else if rest.starts_with(b"</") {
            Err(self.unlike())
        } else if rest.starts_with(b"<") {
            let (len, _) = self.name(from + 1)?;
            self.list(Attributes::new(text(rest), len + 1), from + 1 + len)?;
            Err(self.unended())
        } else {
            self.bad(from, "not UTF-8")
        }
    }

    /// The length of the qualified name that begins at `from`, and the place of its colon, 0 where it has none.
    fn name(&self, from: usize) -> Result<(usize, usize), Bad> {
        let mut colon = 0;
        let mut seen = 0;
        let mut len = 0;
        for &byte in self.slice(from, self.bytes.len()) {
            let class = class(byte);
            if class & NAME == 0 {
                break;
            }
            seen |= class;
            if class & COLON != 0 {
                if colon != 0 || len == 0 {
                    return self.bad(from + len, "a bad colon in a name");
                }
                colon = len;
            }
            len += 1;
        }
        let starts = |at| class(self.byte(at)) & NAME_START != 0;
        if len == 0 || !starts(from) || (colon != 0 && !starts(from + colon + 1)) {
            return self.bad(from, "a name was expected");
        }
        if seen & HIGH != 0 && !is_name(self.slice(from, from + len)) {
            return self.bad(from, "a character that no name may have");
        }
        Ok((len, colon))
    }
}

/// Bytes that were read as text before.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// The first control character or non-character. Bytes are UTF-8.
fn illegal_character(bytes: &[u8], ascii: bool) -> Option<usize> {
    let control = |byte: u8| byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r');
    // Whole blocks first, without a branch per byte.
    let mut from = 0;
    for block in bytes.chunks(4096) {
        if block.iter().fold(false, |any, &byte| any | control(byte)) {
            return block
                .iter()
                .position(|&byte| control(byte))
                .map(|at| from + at);
        }
        from += block.len();
    }
    if ascii {
        return None;
    }
    // U+FFFE and U+FFFF.
    memmem::find_iter(bytes, b"\xEF\xBF").find(|&at| matches!(bytes.get(at + 2), Some(0xBE | 0xBF)))
}

/// Whether a name holds only the characters XML 1.0 (fifth edition) allows; its ASCII part was checked.
fn is_name(name: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(name) else {
        return false;
    };
    let starts = |c: char| {
        c.is_ascii()
            || matches!(u32::from(c), 0xC0..=0xD6 | 0xD8..=0xF6 | 0xF8..=0x2FF | 0x370..=0x37D | 0x37F..=0x1FFF
                | 0x200C..=0x200D | 0x2070..=0x218F | 0x2C00..=0x2FEF | 0x3001..=0xD7FF | 0xF900..=0xFDCF
                | 0xFDF0..=0xFFFD | 0x1_0000..=0xE_FFFF)
    };
    let inside =
        |c: char| starts(c) || matches!(u32::from(c), 0xB7 | 0x300..=0x36F | 0x203F..=0x2040);
    text.split(':')
        .all(|part| part.chars().next().is_some_and(starts) && part.chars().all(inside))
}

/// Appends text with references resolved and line ends as XML wants them: `\r\n` and `\r` become `\n`. In an attribute
/// (`attribute`), white space becomes a blank.
///
/// # Errors
/// A reference to anything but the five entities and the legal characters. `at` is the offset of `raw`.
pub(crate) fn resolve(
    out: &mut Vec<u8>,
    raw: &[u8],
    at: usize,
    attribute: bool,
) -> Result<(), Bad> {
    let mut from = 0;
    while let Some(&byte) = raw.get(from) {
        match byte {
            b'&' => {
                let rest = raw.get(from + 1..).unwrap_or_default();
                // The longest is `#x10FFFF`, with leading zeros somewhat more.
                let len = rest.iter().take(16).position(|&byte| byte == b';');
                let Some(name) = len.and_then(|len| rest.get(..len)) else {
                    return Err(Bad {
                        at: at + from,
                        detail: "& without a reference",
                    });
                };
                let Some(character) = reference(name) else {
                    return Err(Bad {
                        at: at + from,
                        detail: "an unknown entity or a reference to no character",
                    });
                };
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                from += name.len() + 2;
                continue;
            }
            b'\r' => {
                if raw.get(from + 1) != Some(&b'\n') {
                    out.push(if attribute { b' ' } else { b'\n' });
                }
            }
            b'\n' | b'\t' if attribute => out.push(b' '),
            _ => out.push(byte),
        }
        from += 1;
    }
    Ok(())
}

/// As [`resolve`] for a CDATA section, where only line ends change.
pub(crate) fn resolve_literal(out: &mut Vec<u8>, raw: &[u8]) {
    for (at, &byte) in raw.iter().enumerate() {
        match byte {
            b'\r' if raw.get(at + 1) == Some(&b'\n') => {}
            b'\r' => out.push(b'\n'),
            _ => out.push(byte),
        }
    }
}

fn reference(name: &[u8]) -> Option<char> {
    let name = std::str::from_utf8(name).ok()?;
    if let Some(text) = resolve_xml_entity(name) {
        return text.chars().next();
    }
    let character = BytesRef::new(name).resolve_char_ref().ok()??;
    // quick-xml admits control characters and non-characters.
    matches!(u32::from(character), 0x9 | 0xA | 0xD | 0x20..=0xFFFD | 0x1_0000..)
        .then_some(character)
}
