//! `inputs.csv`: the payments of a cycle's set, one per line, as written and as read back.
//!
//! RFC 4180 with a header line and CRLF; a field never holds a line end, so that a line is a record.

use crate::figures::Digest;
use std::borrow::Cow;
use std::io::{self, BufRead, Read, Write};

/// Header line of `inputs.csv`, without its line end.
pub const INPUTS_HEADER: &str =
    "shard,sender,currency,position,unit,uetr_or_txid,receiver,amount_minor,outcome";

/// Longest name or identifier. ISO 20022 identifiers have at most 35 characters, of up to four bytes each.
pub const TEXT_LEN_BYTES_MAX: usize = 140;

/// What became of a payment of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Settled by this cycle.
    Settled,
    /// Left for the next cycle.
    Dropped,
}

/// One payment of the set. Lines of one (sender, currency) stand together, in the order of the sender's queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputLine<'a> {
    /// Home shard of the sender.
    pub shard: u32,
    /// Participant that pays.
    pub sender: Cow<'a, str>,
    /// Three capital letters.
    pub currency: Cow<'a, str>,
    /// Place in the sender's queue in this currency, from 1 without holes.
    pub position: u64,
    /// Number of the package it came in; payments of one package stand together.
    pub unit: u64,
    /// The payment's UETR, or its TxId where it has none; once per sender.
    pub id: Cow<'a, str>,
    /// Participant that is paid, another than the sender.
    pub receiver: Cow<'a, str>,
    /// Amount, above zero.
    pub amount_minor: u64,
    /// What became of it.
    pub outcome: Outcome,
}

/// Longest line read: nine fields of at most [`TEXT_LEN_BYTES_MAX`], each character quoted, with room to spare.
const LINE_LEN_BYTES_MAX: u64 = 4096;

/// Bytes gathered before they are hashed and written: enough for BLAKE3 to hash in parallel lanes.
const BLOCK_LEN_BYTES: usize = 256 * 1024;

/// Writes `inputs.csv` and its digest in one pass.
#[derive(Debug)]
pub struct InputsEncoder<W> {
    out: W,
    hasher: blake3::Hasher,
    block: Vec<u8>,
}

impl<W: Write> InputsEncoder<W> {
    /// Starts with the header line.
    #[must_use]
    pub fn new(out: W) -> Self {
        let mut block = Vec::with_capacity(BLOCK_LEN_BYTES + 4096);
        block.extend_from_slice(INPUTS_HEADER.as_bytes());
        block.extend_from_slice(b"\r\n");
        Self {
            out,
            hasher: blake3::Hasher::new(),
            block,
        }
    }

    /// Adds one payment.
    ///
    /// # Errors
    /// What the writer says; `InvalidInput` for a text that is empty, too long or holds a control character.
    pub fn push(&mut self, line: &InputLine<'_>) -> io::Result<()> {
        let block = &mut self.block;
        write!(block, "{},", line.shard)?;
        push_text(block, &line.sender)?;
        push_text(block, &line.currency)?;
        write!(block, "{},{},", line.position, line.unit)?;
        push_text(block, &line.id)?;
        push_text(block, &line.receiver)?;
        write!(block, "{},", line.amount_minor)?;
        block.extend_from_slice(match line.outcome {
            Outcome::Settled => b"settled\r\n",
            Outcome::Dropped => b"dropped\r\n",
        });
        if self.block.len() >= BLOCK_LEN_BYTES {
            self.write_block()?;
        }
        Ok(())
    }

    /// Writes what is left and gives back the writer with the digest of all bytes.
    ///
    /// # Errors
    /// What the writer says.
    pub fn finish(mut self) -> io::Result<(W, Digest)> {
        self.write_block()?;
        self.out.flush()?;
        Ok((self.out, Digest::from(*self.hasher.finalize().as_bytes())))
    }

    fn write_block(&mut self) -> io::Result<()> {
        self.hasher.update(&self.block);
        self.out.write_all(&self.block)?;
        self.block.clear();
        Ok(())
    }
}

fn push_text(buffer: &mut Vec<u8>, text: &str) -> io::Result<()> {
    if !text_is_sound(text) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{text:?} cannot stand in inputs.csv"),
        ));
    }
    if text.contains([',', '"']) {
        buffer.push(b'"');
        for byte in text.bytes() {
            if byte == b'"' {
                buffer.push(b'"');
            }
            buffer.push(byte);
        }
        buffer.push(b'"');
    } else {
        buffer.extend_from_slice(text.as_bytes());
    }
    buffer.push(b',');
    Ok(())
}

/// Names and identifiers: not empty, not too long, no control characters.
pub(crate) fn text_is_sound(text: &str) -> bool {
    !text.is_empty() && text.len() <= TEXT_LEN_BYTES_MAX && !text.chars().any(char::is_control)
}

/// Reads `inputs.csv` line by line, hashing as it goes.
pub(crate) struct InputsReader<R> {
    source: io::BufReader<Hashing<R>>,
    buffer: Vec<u8>,
    line: u32,
}

struct Hashing<R> {
    inner: R,
    hasher: blake3::Hasher,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(buffer)?;
        self.hasher.update(buffer.get(..len).unwrap_or_default());
        Ok(len)
    }
}

impl<R: Read> InputsReader<R> {
    pub(crate) fn new(inner: R) -> Self {
        let hashing = Hashing {
            inner,
            hasher: blake3::Hasher::new(),
        };
        Self {
            source: io::BufReader::with_capacity(BLOCK_LEN_BYTES, hashing),
            buffer: Vec::new(),
            line: 0,
        }
    }

    /// Digest of all bytes, once the end was reached.
    pub(crate) fn digest(&self) -> Digest {
        Digest::from(*self.source.get_ref().hasher.finalize().as_bytes())
    }

    /// The next payment with its line number (the header is line 1), or why the line is none.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<(u32, ParsedLine<'_>)>> {
        if self.line == 0 && (!self.read_line()? || self.buffer != INPUTS_HEADER.as_bytes()) {
            self.line = 1;
            return Ok(Some((1, Err("not the header line of inputs.csv"))));
        }
        Ok(self
            .read_line()?
            .then(|| (self.line, parse_line(&self.buffer))))
    }

    /// Fills the buffer with the next line, without its CRLF; false at the end. The last line must have its end too.
    fn read_line(&mut self) -> io::Result<bool> {
        self.buffer.clear();
        let len = (&mut self.source)
            .take(LINE_LEN_BYTES_MAX)
            .read_until(b'\n', &mut self.buffer)?;
        if len == 0 {
            return Ok(false);
        }
        self.line = self
            .line
            .checked_add(1)
            .ok_or(io::ErrorKind::FileTooLarge)?;
        if self.buffer.ends_with(b"\r\n") {
            self.buffer.truncate(len - 2);
            return Ok(true);
        }
        let cause = format!(
            "line {} does not end with CRLF within {LINE_LEN_BYTES_MAX} bytes",
            self.line
        );
        Err(io::Error::new(io::ErrorKind::InvalidData, cause))
    }
}

/// A line of the file, or why it is none.
pub(crate) type ParsedLine<'a> = Result<InputLine<'a>, &'static str>;

fn parse_line(bytes: &[u8]) -> ParsedLine<'_> {
    let text = std::str::from_utf8(bytes).map_err(|_| "not UTF-8")?;
    let mut fields = Fields(Some(text));
    let line = InputLine {
        shard: u32::try_from(number(&fields.next()?)?).map_err(|_| "shard out of range")?,
        sender: name(fields.next()?)?,
        currency: fields.next()?,
        position: number(&fields.next()?)?,
        unit: number(&fields.next()?)?,
        id: name(fields.next()?)?,
        receiver: name(fields.next()?)?,
        amount_minor: number(&fields.next()?)?,
        outcome: match &*fields.next()? {
            "settled" => Outcome::Settled,
            "dropped" => Outcome::Dropped,
            _ => return Err("outcome is neither settled nor dropped"),
        },
    };
    if fields.0.is_some() {
        return Err("more than nine fields");
    }
    if line.amount_minor == 0 {
        return Err("amount is zero");
    }
    Ok(line)
}

/// What is left of a record; none after its last field.
struct Fields<'a>(Option<&'a str>);

impl<'a> Fields<'a> {
    fn next(&mut self) -> Result<Cow<'a, str>, &'static str> {
        let rest = self.0.ok_or("fewer than nine fields")?;
        let Some(quoted) = rest.strip_prefix('"') else {
            let (field, rest) = rest
                .split_once(',')
                .map_or((rest, None), |(field, rest)| (field, Some(rest)));
            self.0 = rest;
            return if field.contains('"') {
                Err("quote inside a plain field")
            } else {
                Ok(Cow::Borrowed(field))
            };
        };
        let mut field = String::new();
        let mut rest = quoted;
        loop {
            let (part, after) = rest.split_once('"').ok_or("quote without its end")?;
            field.push_str(part);
            if let Some(after) = after.strip_prefix('"') {
                field.push('"');
                rest = after;
            } else if after.is_empty() {
                self.0 = None;
                return Ok(Cow::Owned(field));
            } else {
                self.0 = Some(
                    after
                        .strip_prefix(',')
                        .ok_or("text after a closing quote")?,
                );
                return Ok(Cow::Owned(field));
            }
        }
    }
}

fn name(text: Cow<'_, str>) -> Result<Cow<'_, str>, &'static str> {
    if text_is_sound(&text) {
        Ok(text)
    } else {
        Err("name or identifier empty, too long or with control characters")
    }
}

/// A decimal in its only spelling.
fn number(text: &str) -> Result<u64, &'static str> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if !plain {
        return Err("not a plain decimal number");
    }
    text.parse().map_err(|_| "not a number within 64 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line<'a>(sender: &'a str, id: &'a str) -> InputLine<'a> {
        InputLine {
            shard: 3,
            sender: sender.into(),
            currency: "EUR".into(),
            position: 1,
            unit: 7,
            id: id.into(),
            receiver: "BANKB".into(),
            amount_minor: u64::MAX,
            outcome: Outcome::Dropped,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let lines = [
            line("BANKA", "a-1"),
            line("a, \"b\"", "\"\""),
            line("\"x", "y\","),
            line("é", ","),
        ];
        let mut encoder = InputsEncoder::new(Vec::new());
        lines
            .iter()
            .for_each(|line| encoder.push(line).expect("a vector takes all"));
        let (bytes, digest) = encoder.finish().expect("a vector takes all");
        assert_eq!(digest, Digest::of(&bytes));
        let mut reader = InputsReader::new(bytes.as_slice());
        for (line, number) in lines.iter().zip(2..) {
            assert_eq!(
                reader.next_line().expect("read"),
                Some((number, Ok(line.clone())))
            );
        }
        assert!(reader.next_line().expect("read").is_none());
        assert_eq!(reader.digest(), digest);
    }

    #[test]
    fn a_line_end_cannot_be_smuggled_in() {
        for id in ["", "a\nb", "a\rb", "a\0"] {
            let refusal = InputsEncoder::new(Vec::new()).push(&line("BANKA", id));
            assert_eq!(
                refusal.map_err(|e| e.kind()),
                Err(io::ErrorKind::InvalidInput),
                "{id:?}"
            );
        }
    }

    #[test]
    fn crooked_lines_are_refused() {
        let sound = "1,A,EUR,1,1,i,B,5,settled";
        assert!(parse_line(sound.as_bytes()).is_ok());
        for crooked in [
            "",
            "1,A,EUR,1,1,i,B,5",
            "1,A,EUR,1,1,i,B,5,settled,",
            "1,A,EUR,01,1,i,B,5,settled",
            "1,A,EUR,+1,1,i,B,5,settled",
            "1,A,EUR,,1,i,B,5,settled",
            "1,A,EUR,1,1,i,B,0,settled",
            "1,A,EUR,1,1,i,B,18446744073709551616,settled",
            "4294967296,A,EUR,1,1,i,B,5,settled",
            "1,A,EUR,1,1,i,B,5,Settled",
            "1,\"A,EUR,1,1,i,B,5,settled",
            "1,\"A\"x,EUR,1,1,i,B,5,settled",
            "1,A\"\",EUR,1,1,i,B,5,settled",
            "1,,EUR,1,1,i,B,5,settled",
        ] {
            assert!(parse_line(crooked.as_bytes()).is_err(), "{crooked:?}");
        }
    }
}
