//! Steering a lab from another process. A supervisor holds the [`Lab`] and listens at a socket in its directory; requests
//! and answers are one JSON document per line.

use std::fs;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::lab::{CLUSTER_DIR, LOGS_DIR, Lab, LabError, LabOptions, LabReport, RUN_DIR, Ways};
use crate::process::{Act, Process};
use crate::relay::Shape;

/// What the lab is, in its directory: it is there as long as the lab is, running or not.
pub const LAB_FILE: &str = "lab.json";
/// What the supervisor says.
pub const SUPERVISOR_LOG: &str = "supervisor.log";
const SOCKET: &str = "lab.sock";
const SUPERVISOR_PID: &str = "supervisor.pid";
/// Longer than any request takes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// One that has connected has something to ask.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// No request is longer.
const REQUEST_MAX_BYTES: u64 = 64 << 10;

/// What is kept of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabFile {
    /// What it shall be.
    pub options: LabOptions,
    /// Whether the lab made its directory, and so removes it.
    pub made_dir: bool,
}

/// What may be asked of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "do")]
pub enum Request {
    /// [`Lab::report`].
    Report,
    /// [`Lab::kill`].
    Kill {
        /// Node or site.
        target: String,
    },
    /// [`Lab::pause`].
    Pause {
        /// Node or site.
        target: String,
    },
    /// [`Lab::resume`].
    Resume {
        /// Node or site.
        target: String,
    },
    /// [`Lab::restart`].
    Restart {
        /// Node or site.
        target: String,
    },
    /// [`Lab::cut`].
    Cut {
        /// From this site.
        from: String,
        /// To this one.
        to: String,
        /// Which ways.
        ways: Ways,
    },
    /// [`Lab::heal`].
    Heal {
        /// From this site.
        from: String,
        /// To this one.
        to: String,
        /// Which ways.
        ways: Ways,
    },
    /// [`Lab::isolate`].
    Isolate {
        /// Which site.
        site: String,
    },
    /// [`Lab::heal_all`].
    HealAll,
    /// [`Lab::shape`].
    Shape {
        /// From this site.
        from: String,
        /// To this one.
        to: String,
        /// Which ways.
        ways: Ways,
        /// What they are from now on.
        shape: Shape,
    },
    /// [`Lab::stop`], and the supervisor ends.
    Stop,
}

/// Why a lab cannot be steered.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// A lab is there already.
    #[error("a lab is up in {0} already; `clearspan lab down` first, or give another --dir")]
    Exists(PathBuf),
    /// A lab of another kind is there.
    #[error(
        "the lab that is kept in {0} has other sites, lines or shards; `clearspan lab up` without options starts it again, \
         `clearspan lab down` removes it"
    )]
    Other(PathBuf),
    /// The directory holds something else.
    #[error("{0} is not empty; a lab is set up in a new directory")]
    NotEmpty(PathBuf),
    /// There is none.
    #[error("there is no lab in {0}; `clearspan lab up` makes one")]
    NoLab(PathBuf),
    /// Its supervisor does not answer.
    #[error(
        "the lab in {dir} does not run; `clearspan lab up` starts it again, `clearspan lab down` removes what is left of it"
    )]
    Silent {
        /// Its directory.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file operation failed.
    #[error("{step} {path}")]
    File {
        /// Which step.
        step: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A process cannot be ended.
    #[error("end {0}")]
    End(PathBuf, #[source] io::Error),
    /// The lab could not do it.
    #[error("{0}")]
    Refused(String),
    /// The supervisor's lab.
    #[error(transparent)]
    Lab(#[from] LabError),
}

/// The lab that a directory keeps, and that does not run.
///
/// # Errors
/// [`ControlError::Exists`] when it runs.
pub fn kept(dir: &Path) -> Result<Option<LabOptions>, ControlError> {
    if !dir.join(LAB_FILE).exists() {
        return Ok(None);
    }
    if is_up(dir) {
        return Err(ControlError::Exists(dir.to_owned()));
    }
    read_lab_file(dir).map(|file| Some(file.options))
}

/// Makes a directory ready for a supervisor. One that keeps this very lab stays as it is, but for what an earlier life left
/// running.
///
/// # Errors
/// [`ControlError`] when it holds something else.
pub fn prepare(dir: &Path, options: &LabOptions) -> Result<(), ControlError> {
    if let Some(kept) = kept(dir)? {
        // The program may have moved; what the lab is may not.
        if kept.topology != options.topology || kept.shards != options.shards {
            return Err(ControlError::Other(dir.to_owned()));
        }
        return end_all(dir);
    }
    let made_dir = match fs::read_dir(dir) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(ControlError::NotEmpty(dir.to_owned()));
            }
            false
        }
        Err(fault) if fault.kind() == ErrorKind::NotFound => {
            fs::create_dir_all(dir).map_err(file("create", dir))?;
            true
        }
        Err(fault) => return Err(file("read", dir)(fault)),
    };
    let kept = LabFile {
        options: options.clone(),
        made_dir,
    };
    let path = dir.join(LAB_FILE);
    let text = serde_json::to_vec_pretty(&kept).map_err(io::Error::from);
    let written = text.and_then(|text| fs::write(&path, text));
    written.map_err(file("write", &path))
}

/// Runs the lab that a directory was prepared for, until it is asked to stop.
///
/// # Errors
/// [`ControlError`] when the lab does not come up.
pub fn supervise(dir: &Path) -> Result<(), ControlError> {
    let kept = read_lab_file(dir)?;
    let path = dir.join(SUPERVISOR_PID);
    Process::find(std::process::id())
        .and_then(|process| process.write(&path))
        .map_err(file("write", &path))?;
    let mut lab = Lab::up(dir, &kept.options)?;
    let path = dir.join(SOCKET);
    let listener = UnixListener::bind(&path).map_err(file("listen at", &path))?;
    for stream in listener.incoming() {
        // One that has gone away again, or says nothing that can be read, changes nothing.
        let Ok(stream) = stream else { continue };
        let Ok(request) = read_request(&stream) else {
            continue;
        };
        let stop = request == Request::Stop;
        let answer: Answer = obey(&mut lab, request).map_err(|fault| chain(&fault));
        let stopped = stop && answer.is_ok();
        let _ = write_line(&stream, &answer);
        if stopped {
            return Ok(());
        }
    }
    Ok(())
}

type Answer = Result<Option<LabReport>, String>;

fn obey(lab: &mut Lab, request: Request) -> Result<Option<LabReport>, LabError> {
    match request {
        Request::Report => return lab.report().map(Some),
        Request::Kill { target } => lab.kill(&target),
        Request::Pause { target } => lab.pause(&target),
        Request::Resume { target } => lab.resume(&target),
        Request::Restart { target } => lab.restart(&target),
        Request::Cut { from, to, ways } => lab.cut(&from, &to, ways),
        Request::Heal { from, to, ways } => lab.heal(&from, &to, ways),
        Request::Isolate { site } => lab.isolate(&site),
        Request::HealAll => lab.heal_all(),
        Request::Shape {
            from,
            to,
            ways,
            shape,
        } => lab.shape(&from, &to, ways, shape),
        Request::Stop => lab.stop(),
    }
    .map(|()| None)
}

/// Whether a supervisor listens by now.
#[must_use]
pub fn is_up(dir: &Path) -> bool {
    UnixStream::connect(dir.join(SOCKET)).is_ok()
}

/// Asks a lab for something.
///
/// # Errors
/// [`ControlError`] when there is no lab, it does not answer, or it could not do it.
pub fn ask(dir: &Path, request: &Request) -> Result<Option<LabReport>, ControlError> {
    read_lab_file(dir)?;
    let silent = |source| ControlError::Silent {
        dir: dir.to_owned(),
        source,
    };
    let stream = UnixStream::connect(dir.join(SOCKET)).map_err(silent)?;
    stream
        .set_read_timeout(Some(ANSWER_TIMEOUT))
        .map_err(silent)?;
    write_line(&stream, request).map_err(silent)?;
    let mut line = String::new();
    BufReader::new(&stream)
        .read_line(&mut line)
        .map_err(silent)?;
    let answer: Answer = serde_json::from_str(&line).map_err(|fault| silent(fault.into()))?;
    answer.map_err(ControlError::Refused)
}

/// Asks how a lab stands.
///
/// # Errors
/// As [`ask`].
pub fn report(dir: &Path) -> Result<LabReport, ControlError> {
    ask(dir, &Request::Report)?
        .ok_or_else(|| ControlError::Refused("the lab gave no report".to_owned()))
}

/// Ends everything that a lab started, whether or not its supervisor still runs, and removes its files unless they are to
/// be kept.
///
/// # Errors
/// [`ControlError`] when there is no lab, or something cannot be ended or removed.
pub fn down(dir: &Path, keep: bool) -> Result<(), ControlError> {
    let kept = read_lab_file(dir)?;
    // A supervisor that is gone, or hangs, is of no further use: its files say what there is to end.
    let _ = ask(dir, &Request::Stop);
    end_all(dir)?;
    if keep {
        return Ok(());
    }
    for part in [CLUSTER_DIR, LOGS_DIR, RUN_DIR] {
        let path = dir.join(part);
        match fs::remove_dir_all(&path) {
            Ok(()) => {}
            Err(fault) if fault.kind() == ErrorKind::NotFound => {}
            Err(fault) => return Err(file("remove", &path)(fault)),
        }
    }
    for part in [SUPERVISOR_PID, SUPERVISOR_LOG, LAB_FILE] {
        remove(&dir.join(part))?;
    }
    if kept.made_dir {
        match fs::remove_dir(dir) {
            Ok(()) => {}
            // Somebody else's files are not the lab's to remove.
            Err(fault) if fault.kind() == ErrorKind::DirectoryNotEmpty => {}
            Err(fault) => return Err(file("remove", dir)(fault)),
        }
    }
    Ok(())
}

/// Ends what runs of a lab.
fn end_all(dir: &Path) -> Result<(), ControlError> {
    let supervisor = dir.join(SUPERVISOR_PID);
    // It first, for it must not start anything again.
    if supervisor.exists() {
        end(&supervisor)?;
    }
    let run = dir.join(RUN_DIR);
    if run.exists() {
        for entry in fs::read_dir(&run).map_err(file("read", &run))? {
            end(&entry.map_err(file("read", &run))?.path())?;
        }
    }
    remove(&dir.join(SOCKET))
}

/// Ends the process that a file names, and removes the file.
fn end(path: &Path) -> Result<(), ControlError> {
    let ended = Process::read(path).and_then(|process| {
        process.act(Act::Kill)?;
        process.wait_until_gone()
    });
    ended.map_err(|source| ControlError::End(path.to_owned(), source))?;
    remove(path)
}

fn remove(path: &Path) -> Result<(), ControlError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(fault) if fault.kind() == ErrorKind::NotFound => Ok(()),
        Err(fault) => Err(file("remove", path)(fault)),
    }
}

fn read_lab_file(dir: &Path) -> Result<LabFile, ControlError> {
    let path = dir.join(LAB_FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(fault) if fault.kind() == ErrorKind::NotFound => {
            return Err(ControlError::NoLab(dir.to_owned()));
        }
        Err(fault) => return Err(file("read", &path)(fault)),
    };
    serde_json::from_str(&text).map_err(|fault| file("read", &path)(fault.into()))
}

fn read_request(stream: &UnixStream) -> io::Result<Request> {
    stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
    let mut line = String::new();
    BufReader::new(stream.take(REQUEST_MAX_BYTES)).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

fn write_line(mut stream: &UnixStream, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// An error and what is behind it, in one line.
fn chain(fault: &dyn std::error::Error) -> String {
    let mut text = fault.to_string();
    let mut source = fault.source();
    while let Some(fault) = source {
        text.push_str(": ");
        text.push_str(&fault.to_string());
        source = fault.source();
    }
    text
}

fn file(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ControlError + use<> {
    let path = path.to_owned();
    move |source| ControlError::File { step, path, source }
}
