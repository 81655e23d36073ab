//! The XML tokens of one message, as slices of its bytes.
//!
//! A strict reading of XML 1.0 without document types: what is not well-formed is refused, never repaired. It is our own
//! rather than a general reader's because a settlement message needs less (UTF-8 only, no DTD, no entities but the five)
//! and more (exact offsets, illegal characters, `]]>` in text, `--` in comments, duplicate attributes), and because the
//! caller hashes while it reads: tokens carry what the scan already knows, whether a text is blank or needs resolving.
//! The tests compare it with quick-xml. Namespaces and element nesting are the caller's.

use memchr::memmem;

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
    /// `</name>`
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
    at: usize,
    /// Offset of the token that was read last.
    pub(crate) token_at: usize,
    /// Attributes of the start tag that was read last.
    pub(crate) attributes: Vec<RawAttribute<'a>>,
    attributes_max: usize,
}

// Classes of bytes inside names and text.
const NAME: u8 = 1;
const NAME_START: u8 = 2;
const COLON: u8 = 4;
const STOP: u8 = 8;
const BLANK: u8 = 16;
const HIGH: u8 = 32;

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
            b'<' | b'&' | b']' => STOP,
            b'\r' => STOP | BLANK,
            b' ' | b'\t' | b'\n' => BLANK,
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
        if bytes.starts_with(b"\xEF\xBB\xBF") {
            scanner.at = 3;
        }
        scanner.declaration()?;
        Ok(scanner)
    }

    /// Reads a part of a message that was checked before.
    pub(crate) fn fragment(bytes: &'a [u8], attributes_max: usize) -> Self {
        Self {
            bytes,
            at: 0,
            token_at: 0,
            attributes: Vec::new(),
            attributes_max,
        }
    }

    /// Offset behind the last token.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    fn bad<T>(&self, at: usize, detail: &'static str) -> Result<T, Bad> {
        Err(Bad { at, detail })
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> u8 {
        // No byte of a message is 0: the whole was checked.
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn slice(&self, from: usize, to: usize) -> &'a [u8] {
        self.bytes.get(from..to).unwrap_or_default()
    }

    fn declaration(&mut self) -> Result<(), Bad> {
        let rest = self.rest();
        if !rest.starts_with(b"<?xml") || rest.get(5).is_some_and(|&byte| class(byte) & NAME != 0) {
            return Ok(());
        }
        let at = self.at;
        let Some(len) = memmem::find(rest, b"?>") else {
            return self.bad(at, "the XML declaration has no end");
        };
        self.at = at + 5;
        let end = at + len;
        let mut names: [&[u8]; 3] = [b"version", b"encoding", b"standalone"];
        while self.skip_blank() && self.at < end {
            let attribute = self.attribute()?;
            let known = names.iter_mut().find(|name| **name == attribute.name);
            let Some(name) = known else {
                return self.bad(attribute.at, "an unknown part of the XML declaration");
            };
            let fits = match *name {
                b"version" => attribute.value == b"1.0",
                b"encoding" => attribute.value.eq_ignore_ascii_case(b"utf-8"),
                _ => matches!(attribute.value, b"yes" | b"no"),
            };
            if !fits {
                return self.bad(attribute.at, "only XML 1.0 in UTF-8 is read");
            }
            // Each at most once.
            *name = b"";
        }
        if self.at != end || !names[0].is_empty() {
            return self.bad(at, "the XML declaration is malformed");
        }
        self.at = end + 2;
        Ok(())
    }

    /// The next token.
    ///
    /// # Errors
    /// The first place that is not well-formed.
    pub(crate) fn next(&mut self) -> Result<Token<'a>, Bad> {
        self.token_at = self.at;
        match self.bytes.get(self.at) {
            None => Ok(Token::End0),
            Some(b'<') => self.markup(),
            Some(_) => self.text(),
        }
    }

    /// Whether `</name>` stands here, in which case it is read: the usual end of an element, without looking for its name.
    pub(crate) fn end_of(&mut self, name: &[u8]) -> bool {
        let rest = self.rest();
        let Some(behind) = rest
            .strip_prefix(b"</")
            .and_then(|rest| rest.strip_prefix(name))
        else {
            return false;
        };
        if behind.first() != Some(&b'>') {
            return false;
        }
        self.token_at = self.at;
        self.at += name.len() + 3;
        true
    }

    fn text(&mut self) -> Result<Token<'a>, Bad> {
        let from = self.at;
        let mut plain = true;
        let mut at = from;
        while let Some(&byte) = self.bytes.get(at)
            && class(byte) & BLANK != 0
        {
            plain &= byte != b'\r';
            at += 1;
        }
        let blank = matches!(self.bytes.get(at), None | Some(b'<'));
        if !blank {
            while let Some(&byte) = self.bytes.get(at) {
                if class(byte) & STOP != 0 {
                    match byte {
                        b'<' => break,
                        b']' if self
                            .bytes
                            .get(at..)
                            .is_some_and(|rest| rest.starts_with(b"]]>")) =>
                        {
                            return self.bad(at, "]]> in text");
                        }
                        b']' => {}
                        _ => plain = false,
                    }
                }
                at += 1;
            }
        }
        self.at = at;
        Ok(Token::Text {
            raw: self.slice(from, at),
            blank,
            plain,
        })
    }

    fn markup(&mut self) -> Result<Token<'a>, Bad> {
        let from = self.at;
        self.at += 1;
        match self.peek() {
            b'/' => {
                self.at += 1;
                let (name, _) = self.name()?;
                self.skip_blank();
                if self.peek() != b'>' {
                    return self.bad(from, "an end tag without >");
                }
                self.at += 1;
                Ok(Token::End { name })
            }
            b'!' => self.declared(from),
            b'?' => {
                self.at += 1;
                let (target, colon) = self.name()?;
                if target.eq_ignore_ascii_case(b"xml") || colon != 0 {
                    return self.bad(
                        from,
                        "an XML declaration that is not at the beginning, or a bad target",
                    );
                }
                let rest = self.rest();
                let Some(len) = memmem::find(rest, b"?>") else {
                    return self.bad(from, "a processing instruction without end");
                };
                if len != 0 && class(rest[0]) & BLANK == 0 {
                    return self.bad(from, "a bad target of a processing instruction");
                }
                self.at += len + 2;
                Ok(Token::Other)
            }
            _ => self.start(),
        }
    }

    fn declared(&mut self, from: usize) -> Result<Token<'a>, Bad> {
        let rest = self.slice(from, self.bytes.len());
        if rest.starts_with(b"<!--") {
            let Some(len) = rest.get(4..).and_then(|inside| memmem::find(inside, b"--")) else {
                return self.bad(from, "a comment without end");
            };
            if rest.get(len + 6) != Some(&b'>') {
                return self.bad(from + 4 + len, "-- inside a comment");
            }
            self.at = from + len + 7;
            return Ok(Token::Other);
        }
        if rest.starts_with(b"<![CDATA[") {
            let Some(len) = rest
                .get(9..)
                .and_then(|inside| memmem::find(inside, b"]]>"))
            else {
                return self.bad(from, "a CDATA section without end");
            };
            self.at = from + len + 12;
            return Ok(Token::Literal {
                raw: self.slice(from + 9, from + 9 + len),
            });
        }
        if rest.starts_with(b"<!DOCTYPE") {
            return self.bad(from, "a document type declaration is never read");
        }
        self.bad(from, "a declaration that is not allowed here")
    }

    fn start(&mut self) -> Result<Token<'a>, Bad> {
        let (name, colon) = self.name()?;
        self.attributes.clear();
        loop {
            match self.peek() {
                b'>' => {
                    self.at += 1;
                    return Ok(Token::Start {
                        name,
                        colon,
                        empty: false,
                    });
                }
                b'/' if self.bytes.get(self.at + 1) == Some(&b'>') => {
                    self.at += 2;
                    return Ok(Token::Start {
                        name,
                        colon,
                        empty: true,
                    });
                }
                _ => {}
            }
            if !self.skip_blank() {
                return self.bad(
                    self.token_at,
                    "a tag without end, or attributes without space between them",
                );
            }
            if class(self.peek()) & NAME_START != 0 {
                let attribute = self.attribute()?;
                if self
                    .attributes
                    .iter()
                    .any(|other| other.name == attribute.name)
                {
                    return self.bad(attribute.at, "an attribute stands twice");
                }
                if self.attributes.len() >= self.attributes_max {
                    return self.bad(attribute.at, "too many attributes");
                }
                self.attributes.push(attribute);
            }
        }
    }

    fn attribute(&mut self) -> Result<RawAttribute<'a>, Bad> {
        let (name, _) = self.name()?;
        self.skip_blank();
        if self.peek() != b'=' {
            return self.bad(self.at, "an attribute without value");
        }
        self.at += 1;
        self.skip_blank();
        let quote = self.peek();
        if quote != b'"' && quote != b'\'' {
            return self.bad(self.at, "an attribute value without quotes");
        }
        let at = self.at + 1;
        let Some(len) = self
            .bytes
            .get(at..)
            .and_then(|rest| memchr::memchr2(quote, b'<', rest))
        else {
            return self.bad(self.at, "an attribute value without end");
        };
        if self.bytes.get(at + len) == Some(&b'<') {
            return self.bad(at + len, "< in an attribute value");
        }
        self.at = at + len + 1;
        Ok(RawAttribute {
            name,
            value: self.slice(at, at + len),
            at,
        })
    }

    /// A qualified name and the place of its colon, 0 where it has none.
    fn name(&mut self) -> Result<(&'a [u8], usize), Bad> {
        let from = self.at;
        let mut colon = 0;
        let mut seen = 0;
        let mut at = from;
        while let Some(&byte) = self.bytes.get(at) {
            let class = class(byte);
            if class & NAME == 0 {
                break;
            }
            seen |= class;
            if class & COLON != 0 {
                if colon != 0 || at == from {
                    return self.bad(at, "a bad colon in a name");
                }
                colon = at - from;
            }
            at += 1;
        }
        let name = self.slice(from, at);
        let starts = |name: &[u8]| {
            name.first()
                .is_some_and(|&byte| class(byte) & NAME_START != 0)
        };
        if !starts(name) || (colon != 0 && !starts(name.get(colon + 1..).unwrap_or_default())) {
            return self.bad(from, "a name was expected");
        }
        if seen & HIGH != 0 && !is_name(name) {
            return self.bad(from, "a character that no name may have");
        }
        self.at = at;
        Ok((name, colon))
    }

    /// Whether there was white space.
    fn skip_blank(&mut self) -> bool {
        let from = self.at;
        while class(self.peek()) & BLANK != 0 {
            self.at += 1;
        }
        self.at != from
    }
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
    let number = match name {
        b"amp" => return Some('&'),
        b"lt" => return Some('<'),
        b"gt" => return Some('>'),
        b"quot" => return Some('"'),
        b"apos" => return Some('\''),
        [b'#', b'x', digits @ ..] => number(digits, 16)?,
        [b'#', digits @ ..] => number(digits, 10)?,
        _ => return None,
    };
    let character = char::from_u32(number)?;
    let legal = matches!(number, 0x9 | 0xA | 0xD | 0x20..=0xFFFD | 0x1_0000..);
    legal.then_some(character)
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u32, |sum, &digit| {
        sum.checked_mul(radix)?
            .checked_add(char::from(digit).to_digit(radix)?)
    })
}
