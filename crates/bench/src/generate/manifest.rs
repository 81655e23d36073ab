//! `expected.jsonl`: one line per message with its expected answer, one per payment that is not simply accepted.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::Error;

/// What a message must be answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// All payments taken.
    Accepted,
    /// Some payments refused singly, the others taken.
    Part,
    /// Refused whole.
    Refused(&'static str),
    /// The stored answer of the same message, again.
    Repeat,
    /// Held until the numbers before it are there.
    Held,
}

impl Answer {
    fn outcome_and_reason(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Accepted => ("accepted", None),
            Self::Part => ("part", None),
            Self::Refused(reason) => ("refused", Some(reason)),
            Self::Repeat => ("repeat", None),
            Self::Held => ("held", None),
        }
    }
}

/// What becomes of one payment.
pub(crate) struct PaymentResult<'a> {
    /// Its place in the message, from 1: two payments of one message may have one identifier.
    pub(crate) number: usize,
    pub(crate) payment_id: Option<&'a str>,
    pub(crate) outcome: &'a str,
    pub(crate) reason: Option<&'a str>,
    pub(crate) fault: Option<&'a str>,
}

/// The file being written.
pub(crate) struct Manifest {
    path: PathBuf,
    file: BufWriter<File>,
    line: String,
}

impl Manifest {
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        let file = File::create(path).map_err(|source| Error::Write {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::new(file),
            line: String::new(),
        })
    }

    /// The answer to the message in `file`; `payments` is how many it holds.
    pub(crate) fn message(
        &mut self,
        file: &str,
        message_id: Option<&str>,
        payments: usize,
        answer: Answer,
        fault: Option<&str>,
    ) -> Result<(), Error> {
        let (outcome, reason) = answer.outcome_and_reason();
        self.line.clear();
        self.line.push_str("{\"kind\":\"message\"");
        field(&mut self.line, "file", Some(file));
        field(&mut self.line, "message_id", message_id);
        // Writing to a string cannot fail.
        let _ = write!(self.line, ",\"payments\":{payments}");
        field(&mut self.line, "outcome", Some(outcome));
        field(&mut self.line, "reason", reason);
        field(&mut self.line, "fault", fault);
        self.end_line()
    }

    /// The outcome of one payment of the message in `file`.
    pub(crate) fn payment(
        &mut self,
        file: &str,
        message_id: &str,
        result: &PaymentResult<'_>,
    ) -> Result<(), Error> {
        self.line.clear();
        self.line.push_str("{\"kind\":\"payment\"");
        field(&mut self.line, "file", Some(file));
        field(&mut self.line, "message_id", Some(message_id));
        let _ = write!(self.line, ",\"number\":{}", result.number);
        field(&mut self.line, "payment_id", result.payment_id);
        field(&mut self.line, "outcome", Some(result.outcome));
        field(&mut self.line, "reason", result.reason);
        field(&mut self.line, "fault", result.fault);
        self.end_line()
    }

    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.file.flush().map_err(|source| Error::Write {
            path: self.path,
            source,
        })
    }

    fn end_line(&mut self) -> Result<(), Error> {
        self.line.push_str("}\n");
        let path = &self.path;
        self.file
            .write_all(self.line.as_bytes())
            .map_err(|source| Error::Write {
                path: path.clone(),
                source,
            })
    }
}

/// Appends `,"name":"text"`, or null. The texts are names and identifiers of our own making.
fn field(line: &mut String, name: &str, text: Option<&str>) {
    let _ = write!(line, ",\"{name}\":");
    let Some(text) = text else {
        line.push_str("null");
        return;
    };
    assert!(
        text.chars()
            .all(|sign| sign >= ' ' && sign != '"' && sign != '\\'),
        "{text} needs escaping"
    );
    let _ = write!(line, "\"{text}\"");
}
