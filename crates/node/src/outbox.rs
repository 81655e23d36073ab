//! Output on disk: `outbox/<BIC>/…`, `certificates/…`, `statements/…`. All of it can be derived again from the data
//! directory; a file that is there already must hold the same bytes.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use clearspan_iso20022::read::{Fault, ReportRequest, StatusRequest};
use clearspan_ledger::entry::Command;
use clearspan_ledger::message::Submission;
use clearspan_ledger::{Bic, Ledger, MessageNo, ParticipantId, Reason, ShardId};

use clearspan_storage::crash_point;

use crate::certificates::{self, CertificateError};
use crate::documents::{self, Cache, Document, DocumentError, Documents, View};
use crate::engine::{Engine, Reading};
use crate::settings::Settings;

/// Why output cannot be formed or written.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// A document cannot be formed.
    #[error("form output {number} of {participant}")]
    Document {
        /// Whose.
        participant: Bic,
        /// Its number.
        number: u64,
        /// Why.
        source: Box<DocumentError>,
    },
    /// An answer cannot be formed.
    #[error("answer {file}")]
    Answer {
        /// The request's file.
        file: String,
        /// Why.
        source: Box<DocumentError>,
    },
    /// A certificate or statement cannot be formed or written.
    #[error("write certificates and statements")]
    Certificate(#[from] Box<CertificateError>),
    /// A file cannot be written.
    #[error("write {path}")]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is there with other content: the output directory belongs to other data, or was changed.
    #[error(
        "{path} is there with other content: it belongs to other data or was changed; give another --out, or move it away"
    )]
    Differs {
        /// Which.
        path: PathBuf,
    },
}

/// Why a package cannot be read for output.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The store.
    #[error(transparent)]
    Store(#[from] clearspan_storage::PackageError),
    /// Its bytes.
    #[error("decode package {number} of shard {shard}")]
    Decode {
        /// Whose.
        shard: ShardId,
        /// Its number.
        number: MessageNo,
        /// Why.
        source: clearspan_codec::DecodeError,
    },
    /// Another kind of entry lies in its place.
    #[error("package {number} of shard {shard} holds no message")]
    NoMessage {
        /// Whose.
        shard: ShardId,
        /// Its number.
        number: MessageNo,
    },
}

impl View for Reading<'_> {
    type Error = ViewError;

    fn shards(&self) -> u16 {
        Reading::shards(self)
    }

    fn ledger(&self, shard: ShardId) -> &Ledger {
        Reading::ledger(self, shard)
    }

    fn package(&self, shard: ShardId, message: MessageNo) -> Result<Option<Submission>, ViewError> {
        let Some(data) = Reading::package(self, shard, message)? else {
            return Ok(None);
        };
        match clearspan_codec::entry::decode(data) {
            Ok((_, Command::Submit(submission))) => Ok(Some(submission)),
            Ok(_) => Err(ViewError::NoMessage {
                shard,
                number: message,
            }),
            Err(source) => Err(ViewError::Decode {
                shard,
                number: message,
                source,
            }),
        }
    }
}

/// Where a node puts its output.
#[derive(Debug)]
pub struct Outbox<'a> {
    engine: &'a Engine,
    settings: documents::Settings,
    cache: Cache,
    root: PathBuf,
}

impl<'a> Outbox<'a> {
    /// Output below `root`.
    #[must_use]
    pub fn new(engine: &'a Engine, settings: &Settings, root: &Path) -> Self {
        Self {
            engine,
            settings: documents::Settings::new(settings.clearing_house),
            cache: Cache::new(),
            root: root.to_owned(),
        }
    }

    fn of(&self, participant: &str) -> PathBuf {
        self.root.join("outbox").join(participant)
    }

    /// Answers a message that could not be read, to its sender; nobody is told when that cannot be made out.
    pub(crate) fn refuse_file(&self, file: &str, fault: &Fault) -> Result<(), OutboxError> {
        let reading = self.engine.read();
        let known = fault.sender.filter(|&bic| {
            reading
                .ledger(ShardId::new(0))
                .directory()
                .find(bic)
                .is_some()
        });
        let documents = Documents::new(&reading, &self.settings, &self.cache);
        match (known, documents.refusal(fault, known, self.engine.now())) {
            (Some(bic), Some(answer)) => {
                self.write_answer(&self.of(bic.as_str()), file, 1, &answer)
            }
            _ => Ok(()),
        }
    }

    /// Answers a message of which nothing was stored.
    pub(crate) fn answer_not_taken(
        &self,
        file: &str,
        submission: &Submission,
        reason: Reason,
    ) -> Result<(), OutboxError> {
        let reading = self.engine.read();
        if reading
            .ledger(ShardId::new(0))
            .directory()
            .find(submission.sender)
            .is_none()
        {
            return Ok(());
        }
        let documents = Documents::new(&reading, &self.settings, &self.cache);
        let answer = documents
            .not_taken(submission, reason, self.engine.now())
            .map_err(|source| OutboxError::Answer {
                file: file.to_owned(),
                source: Box::new(source),
            })?;
        self.write_answer(&self.of(submission.sender.as_str()), file, 1, &answer)
    }

    /// Answers a status enquiry, as things stand.
    pub(crate) fn answer_status(
        &self,
        file: &str,
        request: &StatusRequest,
    ) -> Result<(), OutboxError> {
        self.answer(file, request.sender, |documents| {
            documents.status_answer(request)
        })
    }

    /// Answers a request for reports or for a replay of output.
    pub(crate) fn answer_report(
        &self,
        file: &str,
        request: &ReportRequest,
    ) -> Result<(), OutboxError> {
        self.answer(file, request.sender, |documents| {
            documents.report_answer(request)
        })
    }

    fn answer(
        &self,
        file: &str,
        sender: Bic,
        form: impl FnOnce(&Documents<'_, Reading<'_>>) -> Result<Vec<Document>, DocumentError>,
    ) -> Result<(), OutboxError> {
        let reading = self.engine.read();
        let answers = match form(&Documents::new(&reading, &self.settings, &self.cache)) {
            // An enquiry of a stranger is answered to nobody.
            Err(DocumentError::ParticipantUnknown) => return Ok(()),
            answers => answers.map_err(|source| OutboxError::Answer {
                file: file.to_owned(),
                source: Box::new(source),
            })?,
        };
        self.write_answers(sender, file, &answers)
    }

    fn write_answers(
        &self,
        sender: Bic,
        file: &str,
        answers: &[Document],
    ) -> Result<(), OutboxError> {
        let directory = self.of(sender.as_str());
        (1..)
            .zip(answers)
            .try_for_each(|(place, answer)| self.write_answer(&directory, file, place, answer))
    }

    /// Answers that have no number are not part of the stream: they say how things stood when they were asked for, and
    /// are written anew each time.
    fn write_answer(
        &self,
        directory: &Path,
        file: &str,
        place: usize,
        answer: &Document,
    ) -> Result<(), OutboxError> {
        let directory = answers_of(directory, file);
        // `pacs.002.001.10` answers as `1-pacs.002.xml`.
        let short: Vec<&str> = answer.name.split('.').take(2).collect();
        let path = directory.join(format!("{place}-{}.xml", short.join(".")));
        // What was answered stands: a day that is run again does not answer again, as things are by then.
        if path.exists() {
            return Ok(());
        }
        // Under one name for all, nothing half done is left lying about.
        replace(&path, &path.with_file_name("answer.part"), &answer.bytes)
    }

    /// Writes every participant's numbered documents that are not there yet, and the chain of statements. Returns how many
    /// were written and how many were there.
    ///
    /// # Errors
    /// [`OutboxError::Differs`] when a file that is there holds something else.
    pub fn write_all(
        &self,
        threads: usize,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(u64, u64), OutboxError> {
        let jobs = self.jobs();
        let total = jobs.iter().map(|job| job.end - job.first).sum();
        let (next, written, kept, done) = (
            AtomicUsize::new(0),
            AtomicU64::new(0),
            AtomicU64::new(0),
            AtomicU64::new(0),
        );
        let failure = Mutex::new(None);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads.max(1))
                .map(|_| {
                    scope.spawn(|| {
                        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                            match self.write_job(job) {
                                Ok((new, old)) => {
                                    written.fetch_add(new, Ordering::Relaxed);
                                    kept.fetch_add(old, Ordering::Relaxed);
                                    done.fetch_add(job.end - job.first, Ordering::Relaxed);
                                }
                                Err(error) => {
                                    next.store(jobs.len(), Ordering::Relaxed);
                                    if let Ok(mut failure) = failure.lock() {
                                        failure.get_or_insert(error);
                                    }
                                }
                            }
                        }
                    })
                })
                .collect();
            while workers.iter().any(|worker| !worker.is_finished()) {
                std::thread::sleep(std::time::Duration::from_millis(20));
                progress(done.load(Ordering::Relaxed), total);
            }
        });
        if let Some(error) = failure.into_inner().ok().flatten() {
            return Err(error);
        }
        self.write_statements()?;
        Ok((written.into_inner(), kept.into_inner()))
    }

    fn jobs(&self) -> Vec<Job> {
        let reading = self.engine.read();
        let mut jobs = Vec::new();
        for (_, ledger) in reading.ledgers() {
            for (participant, terms) in ledger.directory().iter() {
                let Some(stream) = ledger.stream(participant) else {
                    continue;
                };
                let first = stream
                    .iter()
                    .next()
                    .map_or(stream.next_number(), |item| item.number);
                let end = stream.next_number();
                let mut at = first;
                while at < end {
                    let to = (at + JOB_LEN_NUMBERS).min(end);
                    jobs.push(Job {
                        participant,
                        bic: terms.bic,
                        first: at,
                        end: to,
                    });
                    at = to;
                }
            }
        }
        jobs
    }

    fn write_job(&self, job: &Job) -> Result<(u64, u64), OutboxError> {
        let directory = self.of(job.bic.as_str());
        create(&directory)?;
        let (mut written, mut kept) = (0, 0);
        for number in job.first..job.end {
            let formed = {
                let reading = self.engine.read();
                Documents::new(&reading, &self.settings, &self.cache).documents(
                    job.participant,
                    number,
                    false,
                )
            };
            let documents = formed.map_err(|source| OutboxError::Document {
                participant: job.bic,
                number,
                source: Box::new(source),
            })?;
            for document in documents {
                if keep(&directory.join(&document.file_name), &document.bytes)? {
                    kept += 1;
                } else {
                    written += 1;
                }
            }
        }
        Ok((written, kept))
    }

    /// Writes the certificate of every settled cycle that has none yet.
    ///
    /// # Errors
    /// When one cannot be formed or written.
    pub fn write_certificates(&self) -> Result<(), OutboxError> {
        let reading = self.engine.read();
        let documents = Documents::new(&reading, &self.settings, &self.cache);
        let settled = reading
            .ledger(ShardId::new(0))
            .cycle_summaries()
            .filter(|summary| !summary.abandoned);
        for summary in settled {
            let directory = clearspan_audit::cycle_directory(
                &self.root,
                &summary.date.to_string(),
                summary.cycle.get().into(),
            );
            if directory.exists() {
                continue;
            }
            let last = certificates::last_certificate(&self.root).map_err(Box::new)?;
            let previous = last.map(|certificate| certificate.digest);
            crash_point("before-certificate-write");
            certificates::write(&self.root, &reading, &documents, summary.cycle, previous)
                .map_err(Box::new)?;
            crash_point("after-certificate-write");
        }
        Ok(())
    }

    /// Writes the chain of statements of every closed business day that is not there yet.
    fn write_statements(&self) -> Result<(), OutboxError> {
        let reading = self.engine.read();
        let coordinator = reading.ledger(ShardId::new(0));
        let open = coordinator.cluster_day().map(|(date, _)| date);
        for date in coordinator.dates().filter(|&date| Some(date) != open) {
            if !clearspan_audit::day_directory(&self.root, &date.to_string()).exists() {
                certificates::write_statements(&self.root, &reading, date).map_err(Box::new)?;
                crash_point("after-statements-write");
            }
        }
        Ok(())
    }
}

/// Where the answers to a file go: under its path below the inbox, slashes as `+`. A long name keeps its beginning and gets
/// a hash of the whole, since file systems take no more than 255 bytes.
fn answers_of(directory: &Path, file: &str) -> PathBuf {
    let mut name = file.replace('+', "++").replace(['/', '\\'], "+");
    if let Some(stem) = name
        .strip_suffix(".xml")
        .filter(|stem| !stem.trim_matches('.').is_empty())
    {
        name.truncate(stem.len());
    }
    if name.len() > ANSWER_NAME_MAX_BYTES {
        let hash = xxhash_rust::xxh3::xxh3_128(name.as_bytes());
        let mut cut = ANSWER_NAME_MAX_BYTES - 33;
        while !name.is_char_boundary(cut) {
            cut -= 1;
        }
        name.truncate(cut);
        name.push_str(&format!("-{hash:032x}"));
    }
    directory.join("answers").join(name)
}

/// Longest name of a directory of answers.
const ANSWER_NAME_MAX_BYTES: usize = 200;

/// Numbers that one thread forms in a row.
const JOB_LEN_NUMBERS: u64 = 64;

struct Job {
    participant: ParticipantId,
    bic: Bic,
    first: u64,
    end: u64,
}

fn create(directory: &Path) -> Result<(), OutboxError> {
    std::fs::create_dir_all(directory).map_err(|source| OutboxError::Write {
        path: directory.to_owned(),
        source,
    })
}

/// Writes a file unless it is there; whether it was.
fn keep(path: &Path, bytes: &[u8]) -> Result<bool, OutboxError> {
    match std::fs::read(path) {
        Ok(found) if found == bytes => Ok(true),
        Ok(found) if !is_remnant(&found, bytes) => Err(OutboxError::Differs {
            path: path.to_owned(),
        }),
        _ => replace(path, &path.with_extension("part"), bytes).map(|()| false),
    }
}

/// Whether this is what a power cut may leave of a file: documents are not synced one by one, because they can be formed
/// again, so a renamed file may lack its end or hold zeros in its place.
fn is_remnant(found: &[u8], bytes: &[u8]) -> bool {
    let same = found.iter().zip(bytes).take_while(|(a, b)| a == b).count();
    found.len() <= bytes.len() && found[same..].iter().all(|&byte| byte == 0)
}

/// A reader sees the whole file or none.
fn replace(path: &Path, part: &Path, bytes: &[u8]) -> Result<(), OutboxError> {
    let failed = |source| OutboxError::Write {
        path: path.to_owned(),
        source,
    };
    if let Some(directory) = path.parent() {
        create(directory)?;
    }
    crash_point("before-outbox-write");
    let mut file = std::fs::File::create(part).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    drop(file);
    crash_point("before-outbox-rename");
    std::fs::rename(part, path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_directory_of_answers_of_its_own() {
        let at = |file: &str| answers_of(Path::new("o"), file);
        assert_eq!(at("01/a.xml"), Path::new("o/answers/01+a"));
        assert_ne!(at("a+b.xml"), at("a/b.xml"));
        assert_eq!(at("...xml"), Path::new("o/answers/...xml"));
        assert_eq!(at(".xml"), Path::new("o/answers/.xml"));
        let (long, longer) = (
            format!("s/{}.xml", "ä".repeat(120)),
            format!("s/{}.xml", "ä".repeat(121)),
        );
        assert_ne!(at(&long), at(&longer));
        assert!(
            at(&longer)
                .file_name()
                .is_some_and(|name| name.len() <= ANSWER_NAME_MAX_BYTES)
        );
    }

    #[test]
    fn a_document_that_is_there_is_kept_one_that_lost_its_end_is_written_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("00000001-pacs.002.xml");
        let bytes = b"<Document>whole</Document>";
        assert!(!keep(&path, bytes).unwrap());
        assert!(keep(&path, bytes).unwrap());
        let mut zeros = bytes.to_vec();
        zeros[10..].fill(0);
        for remnant in [&b""[..], &bytes[..7], &zeros, &zeros[..15]] {
            std::fs::write(&path, remnant).unwrap();
            assert!(!keep(&path, bytes).unwrap(), "{remnant:?}");
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
        let mut longer = bytes.to_vec();
        longer.push(0);
        for other in [&b"<Document>other</Document>"[..], &b"<Dx"[..], &longer] {
            std::fs::write(&path, other).unwrap();
            assert!(matches!(
                keep(&path, bytes),
                Err(OutboxError::Differs { .. })
            ));
            assert_eq!(std::fs::read(&path).unwrap(), other);
        }
    }
}
