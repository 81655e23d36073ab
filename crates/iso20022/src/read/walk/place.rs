//! Places in a message, for people: lines, columns and paths.

use std::fmt;

use super::{Fault, Field, Frame, Gather, Part, Place, Stop, local};

/// A place that the open elements name.
pub(super) struct Here<'p, 'a> {
    pub(super) frames: &'p [Frame<'a>],
    pub(super) at: usize,
    // Transactions before this one.
    pub(super) before: usize,
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
            path.push_str(&Printed(local(frame.name, frame.colon)).to_string());
            if matches!(frame.field, Field::Transaction | Field::Report) {
                path.push_str(&format!("[{}]", self.before + 1));
            }
        }
        if path.is_empty() { "/".into() } else { path }
    }
}

/// The end of the message: where sums are compared.
pub(super) struct End {
    pub(super) at: usize,
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
pub(super) struct Printed<'p>(pub(super) &'p [u8]);

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Published names have at most 40 characters; a path is made of up to 32, and kept in many notes.
        let len = self.0.len().min(64);
        f.write_str(&String::from_utf8_lossy(
            self.0.get(..len).unwrap_or_default(),
        ))
    }
}

/// Counts lines in one sweep over the bytes, for places in ascending order.
pub(super) struct Lines<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
    line: u64,
    line_begins: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            line: 1,
            line_begins: 0,
        }
    }

    /// The line, from 1. A carriage return without line feed ends a line as well.
    pub(super) fn line(&mut self, at: usize) -> u64 {
        let at = at.min(self.bytes.len());
        while self.at < at {
            let byte = self.bytes[self.at];
            self.at += 1;
            if byte == b'\n' || (byte == b'\r' && self.bytes.get(self.at) != Some(&b'\n')) {
                self.line += 1;
                self.line_begins = self.at;
            }
        }
        self.line
    }

    /// The column in characters, from 1, of a place in the line that was asked for last.
    fn column(&self, at: usize) -> u64 {
        let before = self.bytes.get(self.line_begins..at).unwrap_or_default();
        // Continuation bytes do not count.
        let characters = before.iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
        u64::try_from(characters).map_or(u64::MAX, |count| count + 1)
    }
}

pub(super) fn fault(
    bytes: &[u8],
    stop: Stop,
    gather: &mut Gather<'_>,
    message_name: Option<String>,
    path: &str,
) -> Box<Fault> {
    let mut lines = Lines::new(bytes);
    let line = lines.line(stop.at);
    let column = lines.column(stop.at);
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
