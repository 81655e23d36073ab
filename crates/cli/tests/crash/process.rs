//! Running the binary, waiting for it with a deadline, and killing it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// No run here takes a second; a loaded machine may need longer.
const DEADLINE: Duration = Duration::from_secs(120);
/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(1);

/// A point in time after which a test gives up.
pub(crate) struct Deadline(Instant);

impl Deadline {
    #[expect(
        clippy::disallowed_methods,
        reason = "a test that waits for a process needs a limit"
    )]
    pub(crate) fn new() -> Self {
        Self(Instant::now() + DEADLINE)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a test that waits for a process needs a limit"
    )]
    fn is_over(&self) -> bool {
        Instant::now() > self.0
    }

    /// Waits until the condition gives something.
    ///
    /// # Panics
    /// When it gives nothing in time.
    pub(crate) fn until<T>(&self, what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
        loop {
            if let Some(found) = condition() {
                return found;
            }
            assert!(!self.is_over(), "in vain waited for: {what}");
            std::thread::sleep(POLL);
        }
    }
}

/// The built binary.
pub(crate) fn clearspan() -> Command {
    Command::new(env!("CARGO_BIN_EXE_clearspan"))
}

/// A running process whose output goes to files: a pipe that nobody empties would stop it.
pub(crate) struct Running {
    pub(crate) child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// What a process said, and how it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

fn read(path: &Path) -> String {
    let mut text = Vec::new();
    if let Ok(mut file) = File::open(path) {
        file.read_to_end(&mut text).expect("output can be read");
    }
    String::from_utf8_lossy(&text).into_owned()
}

impl Running {
    /// Starts a command; its output lies in `scratch`.
    pub(crate) fn start(mut command: Command, scratch: &Path) -> Self {
        let (stdout, stderr) = (scratch.join("stdout"), scratch.join("stderr"));
        let create = |path: &Path| File::create(path).expect("create a file for output");
        let child = command
            .stdin(Stdio::null())
            .stdout(create(&stdout))
            .stderr(create(&stderr))
            .spawn()
            .unwrap_or_else(|error| panic!("start {:?}: {error}", command.get_program()));
        Self {
            child,
            stdout,
            stderr,
        }
    }

    pub(crate) fn stderr(&self) -> String {
        read(&self.stderr)
    }

    /// How it ended, once it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }

    pub(crate) fn wait(mut self) -> Ended {
        let deadline = Deadline::new();
        let status = deadline.until("the end of the process", || self.ended());
        Ended {
            status,
            stdout: read(&self.stdout),
            stderr: read(&self.stderr),
        }
    }

    /// `kill -9`.
    pub(crate) fn kill(mut self) -> Ended {
        self.child.kill().expect("a child can be killed");
        self.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After a failed assertion: nothing may run on in a directory that goes away.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a program can be run here.
pub(crate) fn works(program: &str, arguments: &[impl AsRef<OsStr>]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
