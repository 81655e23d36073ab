//! A whole business day on an embedded node: messages in, cycles, documents and certificates out.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clearspan_iso20022::read::Incoming;
use clearspan_ledger::entry::{AdminCommand, Command, CycleCommand};
use clearspan_ledger::message::{MessageKind, Submission};
use clearspan_ledger::{AdminRefusal, Bic, Reason, Reply, ShardId};
use clearspan_storage::crash_point;
use serde::Serialize;

use crate::acknowledgements::{AcknowledgementError, Acknowledgements};
use crate::engine::{Engine, Lane, Pending, ProposeError};
use crate::gateway::{Gateway, lane_of};
use crate::inbox::{self, Section, read_in_order};
use crate::outbox::{Outbox, OutboxError};
use crate::settings::Settings;
use crate::summary::{Summary, summarize};

/// How a day is run.
#[derive(Clone, Debug)]
pub struct DayOptions {
    /// The directory with `participants.toml` and `inbox/`; never written to.
    pub input: PathBuf,
    /// Where `outbox/`, `certificates/` and `statements/` go.
    pub output: PathBuf,
    /// Messages that may be on their way at once. With one, every message and all that follows from it settles before the
    /// next is looked at, so a day repeated gives the same results.
    pub window_messages: usize,
    /// Threads that read and form documents.
    pub threads: usize,
    /// Where each durable reply is noted, one line of JSON each, as soon as it has come; see [`crate::acknowledgements::Acknowledgement`].
    pub acknowledgements: Option<PathBuf>,
}

/// Where a day stands, for progress bars.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Files of a section are being taken in.
    Reception {
        /// The section.
        section: String,
        /// Files taken in, of all of the section.
        done: u64,
        /// All.
        total: u64,
    },
    /// A netting cycle runs.
    Netting {
        /// The section that it follows.
        section: String,
    },
    /// Documents are being written.
    Receipts {
        /// Output numbers done.
        done: u64,
        /// All.
        total: u64,
    },
    /// Intake waits for room on the disk.
    DiskFull {
        /// Free.
        free_bytes: u64,
        /// Needed.
        needed_bytes: u64,
    },
}

/// What a run did, and what the day came to.
#[derive(Clone, Debug, Serialize)]
pub struct DayReport {
    /// The day's figures, from the ledger.
    pub summary: Summary,
    /// What this run itself did.
    pub run: RunFigures,
    /// Where output lies.
    pub output: PathBuf,
}

/// What one run did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunFigures {
    /// Files found.
    pub files: u64,
    /// Bytes read.
    pub input_bytes: u64,
    /// Messages taken in by this run.
    pub taken: u64,
    /// Messages that had been taken in before: the stored answer stands, nothing settled twice.
    pub repeated: u64,
    /// Messages that wait for a missing number, or waited.
    pub held: u64,
    /// Messages not taken in: nothing was stored. File and reason.
    pub not_taken: Vec<NotTaken>,
    /// Of these, messages that came after the business day had ended: nothing of them was stored.
    pub after_close: u64,
    /// Requests answered (status enquiries, reports).
    pub requests: u64,
    /// Cycles that this run started.
    pub cycles: u64,
    /// Documents written by this run, and those that stood there already.
    pub documents_written: u64,
    /// Documents that an earlier run had written.
    pub documents_kept: u64,
    /// Seconds per phase.
    pub seconds: Seconds,
    /// The log's work.
    pub log_bytes: u64,
    /// Writes to the log, each durable.
    pub log_writes: u64,
}

/// A file that was not taken in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotTaken {
    /// The file, relative to the inbox.
    pub file: String,
    /// Code.
    pub code: String,
    /// Why, and where in the file.
    pub why: String,
}

/// Seconds per phase.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Seconds {
    /// Opening the data directory is not in here.
    pub founding: f64,
    /// Phase 1.
    pub reception: f64,
    /// Phase 2.
    pub netting: f64,
    /// End of day.
    pub closing: f64,
    /// Phase 3.
    pub receipts: f64,
}

/// Why a day cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum DayError {
    /// The settings cannot be put into force.
    #[error("found the cluster")]
    Founding(#[from] crate::founding::FoundingError),
    /// A file or directory cannot be read.
    #[error("read {path}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A proposal had no outcome.
    #[error("{what}")]
    Propose {
        /// What was proposed.
        what: String,
        /// Why.
        source: ProposeError,
    },
    /// The ledger refused an act that a day consists of.
    #[error("{what}: the ledger refused ({refusal:?})")]
    Refused {
        /// What was asked.
        what: &'static str,
        /// Why.
        refusal: AdminRefusal,
    },
    /// Another day than the input's is open, or a later one was.
    #[error("the data directory is at business day {found}; the input is for {wanted}")]
    OtherDay {
        /// What the ledger holds.
        found: String,
        /// What the settings say.
        wanted: String,
    },
    /// A reply cannot be noted.
    #[error("note a reply")]
    Acknowledgement(#[from] AcknowledgementError),
    /// The data directory's day has ended, and was another one than the input's.
    #[error(
        "business day {date} has ended in this data directory, and the settings give {bic} an account that it did not have: \
         this input belongs to another --out"
    )]
    Ended {
        /// The business date.
        date: String,
        /// The first participant that is not known there.
        bic: Bic,
    },
    /// A file of the output cannot be formed or written.
    #[error("write the output")]
    Outbox(#[from] OutboxError),
}

const COORDINATOR: ShardId = ShardId::new(0);

/// Runs a business day, or goes on with one that was interrupted. Run again after its end it settles nothing and says so.
///
/// # Errors
/// [`DayError`] names the step; what was acknowledged before is safe, and running it again goes on from there.
pub fn run(
    engine: &Engine,
    settings: &Settings,
    options: &DayOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<DayReport, DayError> {
    let mut day = Day {
        engine,
        settings,
        options,
        gateway: Gateway::new(engine, settings.amount_max),
        outbox: Outbox::new(engine, settings, &options.output),
        run: RunFigures::default(),
        window: VecDeque::new(),
        acknowledgements: options
            .acknowledgements
            .as_deref()
            .map(Acknowledgements::append_to)
            .transpose()?,
    };
    let watch = Watch::start();
    let ended = day.has_ended();
    if ended {
        day.check_known()?;
    }
    crate::founding::found(engine, settings)?;
    crash_point("after-founding");
    if !ended {
        day.open()?;
    }
    crash_point("after-open-day");
    day.run.seconds.founding = watch.seconds();
    let inbox = options.input.join("inbox");
    let sections = inbox::sections(&inbox).map_err(|source| DayError::Read {
        path: inbox.clone(),
        source,
    })?;
    for (at, section) in sections.iter().enumerate() {
        let watch = Watch::start();
        day.receive(&inbox, section, progress)?;
        day.run.seconds.reception += watch.seconds();
        let watch = Watch::start();
        progress(Progress::Netting {
            section: section.name.clone(),
        });
        day.net(at)?;
        day.run.seconds.netting += watch.seconds();
    }
    let watch = Watch::start();
    day.close()?;
    day.run.seconds.closing = watch.seconds();
    let watch = Watch::start();
    let (written, kept) = day.outbox.write_all(options.threads, &mut |done, total| {
        progress(Progress::Receipts { done, total })
    })?;
    (day.run.documents_written, day.run.documents_kept) = (written, kept);
    day.run.seconds.receipts = watch.seconds();
    let counts = engine.log_counts();
    (day.run.log_bytes, day.run.log_writes) = (counts.bytes, counts.writes);
    let summary = summarize(&engine.read(), settings.business_date);
    Ok(DayReport {
        summary,
        run: day.run,
        output: options.output.clone(),
    })
}

struct Watch(Instant);

impl Watch {
    #[expect(
        clippy::disallowed_methods,
        reason = "the report says how long each phase took"
    )]
    fn start() -> Self {
        Self(Instant::now())
    }

    fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

struct OnTheWay {
    file: String,
    lane: Lane,
    /// The message without its payments, for an answer.
    message: Submission,
    pending: Pending,
}

struct Day<'a> {
    engine: &'a Engine,
    settings: &'a Settings,
    options: &'a DayOptions,
    gateway: Gateway<'a>,
    outbox: Outbox<'a>,
    run: RunFigures,
    window: VecDeque<OnTheWay>,
    acknowledgements: Option<Acknowledgements>,
}

fn without_payments(submission: &Submission) -> Submission {
    Submission {
        payments: Vec::new(),
        times: Vec::new(),
        originals: Vec::new(),
        heap: bytes::Bytes::new(),
        ..*submission
    }
}

/// How long a refused intake waits before it asks a full disk again.
const DISK_FULL_WAIT: Duration = Duration::from_millis(200);

impl Day<'_> {
    fn has_ended(&self) -> bool {
        self.engine.with_ledger(COORDINATOR, |ledger| {
            ledger.cluster_day().is_none()
                && ledger.last_business_date() == Some(self.settings.business_date)
        })
    }

    /// A day that has ended takes up nobody and nothing, whatever the settings say by now.
    fn check_known(&self) -> Result<(), DayError> {
        for participant in &self.settings.participants {
            let known = self.engine.with_ledger(participant.home, |ledger| {
                ledger
                    .directory()
                    .find(participant.bic)
                    .is_some_and(|number| {
                        let elsewhere = ledger.stream(number).is_none();
                        let mut accounts = participant.accounts.iter();
                        elsewhere
                            || accounts
                                .all(|account| ledger.account(number, account.currency).is_some())
                    })
            });
            if !known {
                return Err(DayError::Ended {
                    date: self.settings.business_date.to_string(),
                    bic: participant.bic,
                });
            }
        }
        Ok(())
    }

    fn open(&self) -> Result<(), DayError> {
        let date = self.settings.business_date;
        let (open, last) = self.engine.with_ledger(COORDINATOR, |ledger| {
            (ledger.cluster_day(), ledger.last_business_date())
        });
        let other = |found: clearspan_ledger::BusinessDate| DayError::OtherDay {
            found: found.to_string(),
            wanted: date.to_string(),
        };
        match (open, last) {
            (Some((found, _)), _) if found != date => Err(other(found)),
            (Some(_), _) => Ok(()),
            (None, Some(found)) if found > date => Err(other(found)),
            (None, Some(found)) if found == date => Ok(()),
            (None, _) => self.administer("open the business day", AdminCommand::OpenDay { date }),
        }
    }

    fn administer(&self, what: &'static str, command: AdminCommand) -> Result<(), DayError> {
        self.coordinate(what, &Command::Admin(command))
    }

    /// Has the coordinator do something, and waits until every shard has.
    fn coordinate(&self, what: &'static str, command: &Command) -> Result<(), DayError> {
        let outcome = self
            .engine
            .execute_when_room(COORDINATOR, command, Lane::Urgent)
            .map_err(|source| DayError::Propose {
                what: what.to_owned(),
                source,
            })?;
        if matches!(command, Command::Cycle(_)) {
            crash_point("after-cycle-open");
        }
        self.engine.settle_down();
        match outcome.reply {
            Reply::Refused(refusal) => Err(DayError::Refused { what, refusal }),
            _ => Ok(()),
        }
    }

    fn receive(
        &mut self,
        inbox: &Path,
        section: &Section,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), DayError> {
        let total = section.files.len() as u64;
        self.run.files += total;
        let gateway = Gateway::new(self.engine, self.settings.amount_max);
        let mut done = 0;
        read_in_order(
            &gateway,
            &section.files,
            self.options.threads,
            |path, source| DayError::Read {
                path: path.to_owned(),
                source,
            },
            |read| {
                let file = read
                    .path
                    .strip_prefix(inbox)
                    .unwrap_or(read.path)
                    .to_string_lossy()
                    .into_owned();
                self.run.input_bytes += read.bytes;
                match read.message {
                    Err(fault) => {
                        self.drain()?;
                        self.outbox.refuse_file(&file, &fault)?;
                        self.run.not_taken.push(NotTaken {
                            file,
                            code: fault.reason.code().to_owned(),
                            why: fault.to_string(),
                        });
                    }
                    Ok(Incoming::Submission(submitted)) => {
                        self.submit(file, submitted, progress)?
                    }
                    Ok(Incoming::StatusRequest(request)) => {
                        self.drain()?;
                        self.outbox.answer_status(&file, &request)?;
                        self.run.requests += 1;
                    }
                    Ok(Incoming::ReportRequest(request)) => {
                        self.drain()?;
                        self.outbox.answer_report(&file, &request)?;
                        self.run.requests += 1;
                    }
                }
                done += 1;
                progress(Progress::Reception {
                    section: section.name.clone(),
                    done,
                    total,
                });
                Ok(())
            },
        )?;
        self.drain()
    }

    fn submit(
        &mut self,
        file: String,
        submitted: clearspan_iso20022::read::Submitted,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), DayError> {
        let sender = submitted.submission.sender;
        let lane = lane_of(&submitted.submission);
        // Lanes overtake each other, a participant's own messages must not.
        if self
            .window
            .iter()
            .any(|other| other.message.sender == sender && other.lane != lane)
        {
            self.drain()?;
        }
        while let Some((free_bytes, needed_bytes)) = self.engine.disk_full() {
            progress(Progress::DiskFull {
                free_bytes,
                needed_bytes,
            });
            std::thread::sleep(DISK_FULL_WAIT);
        }
        let message = without_payments(&submitted.submission);
        let pending =
            self.gateway
                .submit_when_room(submitted)
                .map_err(|source| DayError::Propose {
                    what: format!("take in {file}"),
                    source,
                })?;
        self.window.push_back(OnTheWay {
            file,
            lane,
            message,
            pending,
        });
        if self.options.window_messages <= 1 {
            self.drain()?;
        }
        while self.window.len() > self.options.window_messages.max(1) {
            self.take_oldest()?;
        }
        Ok(())
    }

    fn drain(&mut self) -> Result<(), DayError> {
        if self.window.is_empty() {
            return Ok(());
        }
        while !self.window.is_empty() {
            self.take_oldest()?;
        }
        self.engine.settle_down();
        Ok(())
    }

    fn take_oldest(&mut self) -> Result<(), DayError> {
        let Some(OnTheWay {
            file,
            message,
            pending,
            ..
        }) = self.window.pop_front()
        else {
            return Ok(());
        };
        let outcome = pending.wait().map_err(|source| DayError::Propose {
            what: format!("take in {file}"),
            source,
        })?;
        if let Some(acknowledgements) = &self.acknowledgements {
            acknowledgements.note(&file, message.sender, &outcome.reply)?;
        }
        match outcome.reply {
            Reply::Taken { .. } => self.run.taken += 1,
            Reply::Repeat { .. } => self.run.repeated += 1,
            Reply::Held { .. } => self.run.held += 1,
            Reply::NotTaken { reason } => {
                self.run.after_close += u64::from(reason == Reason::DayClosed);
                self.outbox.answer_not_taken(&file, &message, reason)?;
                self.run.not_taken.push(NotTaken {
                    file,
                    code: reason.code().to_owned(),
                    why: format!("{}: {}: {}", message.sender, reason.code(), reason.text()),
                });
            }
            Reply::HeldFull { missing_from } => self.run.not_taken.push(NotTaken {
                file,
                code: "BUSY".to_owned(),
                why: format!(
                    "{}: too many messages wait for number {missing_from}; send it again after that one",
                    message.sender
                ),
            }),
            Reply::NotHome { .. } | Reply::Done | Reply::Refused(_) | Reply::Asked { .. } => {
                unreachable!("the gateway sends a message to its sender's home shard")
            }
        }
        Ok(())
    }

    /// The cycle that follows a section, unless an earlier run had it.
    fn net(&mut self, section: usize) -> Result<(), DayError> {
        let date = self.settings.business_date;
        let (open, ended) = self.engine.with_ledger(COORDINATOR, |ledger| {
            let ended = ledger
                .cycle_summaries()
                .filter(|cycle| cycle.date == date && !cycle.abandoned)
                .count();
            (
                ledger.cluster_day().is_some_and(|(_, closing)| !closing),
                ended,
            )
        });
        if open && ended <= section {
            crash_point("before-cycle");
            self.coordinate("start a netting cycle", &Command::Cycle(CycleCommand::Open))?;
            self.run.cycles += 1;
        }
        self.outbox.write_certificates()?;
        Ok(())
    }

    fn close(&self) -> Result<(), DayError> {
        let open = self.engine.with_ledger(COORDINATOR, |ledger| {
            ledger.cluster_day().is_some_and(|(_, closing)| !closing)
        });
        if open {
            for kind in MessageKind::ALL {
                self.administer("pass a cut-off", AdminCommand::CutOff { kind })?;
                crash_point("after-cut-off");
            }
            crash_point("before-close-day");
            self.administer("close the business day", AdminCommand::CloseDay)?;
        }
        self.engine.settle_down();
        crash_point("after-close-day");
        Ok(())
    }
}
