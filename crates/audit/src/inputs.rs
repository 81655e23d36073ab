//! `inputs.csv`: the payments of a cycle's set, one per line, as written and as read back.
//!
//! RFC 4180 with a header line and CRLF; a field never holds a line end, so that a line is a record.

use crate::figures::Digest;
use std::borrow::Cow;
use std::io::{self, Write};

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

/// Writes `inputs.csv` and its digest in one pass.
#[derive(Debug)]
pub struct InputsEncoder<W> {
    out: W,
    hasher: blake3::Hasher,
    line: Vec<u8>,
}

impl<W: Write> InputsEncoder<W> {
    /// Starts with the header line. `out` should be buffered.
    ///
    /// # Errors
    /// What `out` says.
    pub fn new(out: W) -> io::Result<Self> {
        let mut encoder = Self {
            out,
            hasher: blake3::Hasher::new(),
            line: Vec::with_capacity(256),
        };
        encoder.line.extend_from_slice(INPUTS_HEADER.as_bytes());
        encoder.end_line()?;
        Ok(encoder)
    }

    /// Adds one payment.
    ///
    /// # Errors
    /// What `out` says; `InvalidInput` for a text that is empty, too long or holds a control character.
    pub fn push(&mut self, line: &InputLine<'_>) -> io::Result<()> {
        let buffer = &mut self.line;
        buffer.clear();
        write!(buffer, "{},", line.shard)?;
        push_text(buffer, &line.sender)?;
        push_text(buffer, &line.currency)?;
        write!(buffer, "{},{},", line.position, line.unit)?;
        push_text(buffer, &line.id)?;
        push_text(buffer, &line.receiver)?;
        write!(buffer, "{},", line.amount_minor)?;
        buffer.extend_from_slice(match line.outcome {
            Outcome::Settled => b"settled",
            Outcome::Dropped => b"dropped",
        });
        self.end_line()
    }

    /// Flushes and gives back the writer with the digest of all bytes written.
    ///
    /// # Errors
    /// What `out` says.
    pub fn finish(mut self) -> io::Result<(W, Digest)> {
        self.out.flush()?;
        Ok((self.out, Digest::from(*self.hasher.finalize().as_bytes())))
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.line.extend_from_slice(b"\r\n");
        self.hasher.update(&self.line);
        self.out.write_all(&self.line)
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
