//! The business days that are run, and a place to run them in.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::process::{Ended, Running, clearspan};

/// Input to run: several shards, packages, cycles, queues, faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Day {
    /// Packages and netting, a part of the participants short of funds, so that rounds drop payments.
    Netting,
    /// Urgent payments that wait for funds, numbered messages, four shards.
    Urgent,
    /// The example day: cancellations, returns, enquiries, every kind of fault.
    Example,
}

pub(crate) const DAYS: [Day; 3] = [Day::Netting, Day::Urgent, Day::Example];

impl Day {
    /// Writes the input.
    pub(crate) fn make(self, dir: &Path) {
        let options: &[&str] = match self {
            Self::Netting => &[
                "--participants",
                "12",
                "--shards",
                "3",
                "--currencies",
                "EUR,JPY",
                "--packages",
                "9x12",
                "--urgent",
                "14",
                "--faulty-messages",
                "5",
                "--faulty-payments-ppm",
                "40000",
                "--sections",
                "3",
                "--shortfall-percent",
                "50",
            ],
            Self::Urgent => &[
                "--participants",
                "9",
                "--shards",
                "4",
                "--currencies",
                "EUR",
                "--packages",
                "3x10",
                "--urgent",
                "40",
                "--faulty-messages",
                "2",
                "--sections",
                "2",
                "--coverage-percent",
                "60",
                "--sequenced",
            ],
            Self::Example => &["--example"],
        };
        let made = clearspan()
            .arg("generate")
            .arg(dir)
            .args(options)
            .output()
            .expect("the binary runs");
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
    }
}

/// A directory in memory where there is one with room, because a killed process leaves what it wrote on any file system,
/// and fsync costs nothing there.
pub(crate) fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    let roomy = rustix::fs::statvfs(memory)
        .is_ok_and(|volume| volume.f_bavail.saturating_mul(volume.f_frsize) > 2 << 30);
    let made = if roomy {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    made.expect("create a directory")
}

/// Kept free: small, so that volumes of a test's own can be small.
const RESERVE_MIB: &str = "8";

/// One output directory of a day, and the journal of acknowledgements of all runs in it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) input: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) acknowledgements: PathBuf,
    pub(crate) scratch: PathBuf,
    /// Log after which a snapshot is taken: little, so that snapshots are taken and the log is cut during the day.
    pub(crate) snapshot_after_kib: u32,
    /// Messages on their way at once; with one a day repeated comes to the same.
    pub(crate) window: u16,
}

impl Place {
    /// A fresh one below `root`.
    pub(crate) fn new(root: &Path, input: &Path, name: &str) -> Self {
        let scratch = root.join(format!("{name}.run"));
        std::fs::create_dir_all(&scratch).expect("create a directory");
        Self {
            input: input.to_owned(),
            out: root.join(name),
            acknowledgements: scratch.join("acknowledgements"),
            scratch,
            snapshot_after_kib: 12,
            window: 1,
        }
    }

    /// `clearspan day` in this place.
    pub(crate) fn command(&self) -> Command {
        let mut command = clearspan();
        self.add_arguments(&mut command);
        command
    }

    /// The arguments of `clearspan day` in this place.
    pub(crate) fn add_arguments(&self, command: &mut Command) {
        command
            .arg("day")
            .arg(&self.input)
            .arg("--out")
            .arg(&self.out)
            .arg("--acknowledgements")
            .arg(&self.acknowledgements)
            .args(["--json", "--threads", "2", "--snapshot-after-kib"])
            .arg(self.snapshot_after_kib.to_string())
            .args(["--window", &self.window.to_string()])
            .args(["--disk-reserve-mib", RESERVE_MIB]);
    }

    pub(crate) fn start(&self, command: Command) -> Running {
        Running::start(command, &self.scratch)
    }

    /// Runs it undisturbed.
    pub(crate) fn run(&self) -> Ended {
        self.start(self.command()).wait()
    }

    pub(crate) fn remove(&self) {
        let _ = std::fs::remove_dir_all(&self.out);
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}
