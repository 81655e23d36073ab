//! Running the binary, and looking at directories.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// What a run of the binary said.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Its answer, when it must have succeeded.
    #[track_caller]
    pub(crate) fn good(self) -> String {
        assert_eq!(self.code, Some(0), "{}\n{}", self.stderr, self.stdout);
        self.stdout
    }

    /// What it said on stderr, when it must have failed with exit code 1. Errors go to stderr in one line, data to stdout.
    #[track_caller]
    pub(crate) fn error(self) -> String {
        assert_eq!(self.code, Some(1), "{}\n{}", self.stderr, self.stdout);
        assert_eq!(self.stdout, "");
        let text = self
            .stderr
            .strip_prefix("error: ")
            .unwrap_or_else(|| panic!("{self:?}"));
        text.trim_end().to_owned()
    }
}

fn command(arguments: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clearspan"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs the binary to its end.
pub(crate) fn clearspan(arguments: &[impl AsRef<OsStr>]) -> Ran {
    let child = spawn(
        command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
    );
    let output = child.wait_with_output().expect("the binary ends");
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("output is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("errors are UTF-8"),
    }
}

/// Starts the binary and says nothing of what it prints.
pub(crate) fn start(arguments: &[impl AsRef<OsStr>]) -> Child {
    spawn(
        command(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    )
}

fn spawn(command: &mut Command) -> Child {
    let _alone = no_child_starts();
    command.spawn().expect("the binary runs")
}

/// While this lives no test starts a child. Between its fork and its start a child holds every lock of this process, so a
/// data directory that a test had open itself is given back under this guard, or it might still be locked afterwards.
pub(crate) fn no_child_starts() -> MutexGuard<'static, ()> {
    static STARTING: Mutex<()> = Mutex::new(());
    STARTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Arguments of all kinds of strings and paths.
macro_rules! arguments {
    ($($argument:expr),* $(,)?) => {
        &[$( std::ffi::OsString::from(&$argument) ),*]
    };
}
pub(crate) use arguments;

/// Runs a day; its report.
#[track_caller]
pub(crate) fn day(input: &Path, out: &Path, more: &[&str]) -> Value {
    let mut all = vec![
        "day".into(),
        input.into(),
        "--out".into(),
        out.into(),
        "--json".into(),
    ];
    all.extend(more.iter().map(std::ffi::OsString::from));
    parse(&clearspan(&all).good())
}

/// Asks; the answer, which must be there.
#[track_caller]
pub(crate) fn query(out: &Path, what: &[&str]) -> Value {
    let mut all = vec!["query".into(), out.into()];
    all.extend(what.iter().map(std::ffi::OsString::from));
    all.push("--json".into());
    parse(&clearspan(&all).good())
}

#[track_caller]
pub(crate) fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Where the checkout begins.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the checkout is there")
}

/// Every file below a directory with what it holds, by its path below it.
pub(crate) fn tree(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(at) = open.pop() {
        for entry in
            std::fs::read_dir(&at).unwrap_or_else(|error| panic!("{}: {error}", at.display()))
        {
            let path = entry.expect("an entry can be read").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let below = path
                    .strip_prefix(directory)
                    .expect("it lies below")
                    .to_owned();
                files.insert(below, std::fs::read(&path).expect("a file can be read"));
            }
        }
    }
    files
}

/// Copies a directory without `data/`, which no check of documents or certificates needs.
pub(crate) fn copy_without_data(from: &Path, to: &Path) {
    for part in ["certificates", "statements"] {
        for (path, bytes) in tree(&from.join(part)) {
            write(&to.join(part).join(path), &bytes);
        }
    }
}

pub(crate) fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().expect("a file lies in a directory"))
        .expect("directories can be made");
    std::fs::write(path, bytes).expect("a file can be written");
}

/// Numbers of a JSON answer.
#[track_caller]
pub(crate) fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no count"))
}

/// Text of a JSON answer.
#[track_caller]
pub(crate) fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"))
}
