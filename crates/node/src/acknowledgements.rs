//! A journal of durable replies: what a sender may count on, noted as soon as it is so.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clearspan_ledger::{Bic, Reply};
use clearspan_storage::crash_point;
use serde::{Deserialize, Serialize};

/// One durable reply. Whoever holds such a line finds the message in the ledger for as long as it is retained, whatever
/// happens to the process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Acknowledgement {
    /// The message's file, relative to the inbox.
    pub file: String,
    /// Its sender.
    pub sender: String,
    /// What was said.
    pub reply: Acknowledged,
    /// The message's number in its sender's home shard; none while it waits for a missing one.
    pub message: Option<u64>,
    /// The answer's number in its sender's output; zero for a message held before.
    pub answer: u64,
}

/// What a durable reply says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledged {
    /// It was taken in, which includes one refused with a stored answer.
    Taken,
    /// It was taken in before; the stored answer stands.
    Repeat,
    /// It waits for a missing number.
    Held,
}

/// Why a reply cannot be noted.
#[derive(Debug, thiserror::Error)]
pub enum AcknowledgementError {
    /// The journal cannot be opened or written.
    #[error("{step} {path}")]
    Io {
        /// Which step.
        step: &'static str,
        /// Where it lies.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line cannot be formed.
    #[error("form an acknowledgement")]
    Form(#[from] serde_json::Error),
}

/// The journal. Lines are written whole, one at a time, and survive the end of the process; they are not synced, because
/// what they speak of is.
#[derive(Debug)]
pub(crate) struct Acknowledgements {
    path: PathBuf,
    file: File,
}

impl Acknowledgements {
    /// Opens a journal to add to it.
    pub(crate) fn append_to(path: &Path) -> Result<Self, AcknowledgementError> {
        let file = File::options()
            .create(true)
            .append(true)
            .open(path)
            .map_err(|source| AcknowledgementError::Io {
                step: "open",
                path: path.to_owned(),
                source,
            })?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    /// Notes a reply; one that promises nothing is left out.
    pub(crate) fn note(
        &self,
        file: &str,
        sender: Bic,
        reply: &Reply,
    ) -> Result<(), AcknowledgementError> {
        let (said, message, answer) = match reply {
            Reply::Taken {
                message, answer, ..
            } => (Acknowledged::Taken, Some(message.get()), *answer),
            Reply::Repeat { message, answer } => {
                (Acknowledged::Repeat, Some(message.get()), *answer)
            }
            Reply::Held { answer, .. } => (Acknowledged::Held, None, *answer),
            Reply::NotTaken { .. }
            | Reply::HeldFull { .. }
            | Reply::NotHome { .. }
            | Reply::Done
            | Reply::Refused(_)
            | Reply::Asked { .. } => return Ok(()),
        };
        crash_point("before-acknowledgement");
        let mut line = serde_json::to_vec(&Acknowledgement {
            file: file.to_owned(),
            sender: sender.to_string(),
            reply: said,
            message,
            answer,
        })?;
        line.push(b'\n');
        (&self.file)
            .write_all(&line)
            .map_err(|source| AcknowledgementError::Io {
                step: "write",
                path: self.path.clone(),
                source,
            })?;
        crash_point("after-acknowledgement");
        Ok(())
    }
}
