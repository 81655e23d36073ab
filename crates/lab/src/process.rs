//! Processes that the lab started, and how they are found again: a pid alone may by now be another's, so its file holds
//! the time when the process began as well.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::clock::{SECOND_NS, now_ns};

/// A process that was killed is gone within this, whatever the machine does.
const GONE_WITHIN_NS: u64 = 20 * SECOND_NS;
/// Between looks.
const POLL: Duration = Duration::from_millis(2);

/// What can be done to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Ends it at once, as a power cut of its machine.
    Kill,
    /// Stops it where it is, as a machine that hangs.
    Pause,
    /// Lets it go on.
    Resume,
}

/// One process, told from all that had or will have its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pid: i32,
    /// Clock ticks from the machine's start to the process's.
    began_ticks: u64,
}

impl Process {
    /// A process that runs now, by its number.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).map_err(io::Error::other)?;
        match state(pid)? {
            Some((_, began_ticks)) => Ok(Self { pid, began_ticks }),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Reads what [`Self::write`] wrote.
    ///
    /// # Errors
    /// When the file cannot be read or is none of the lab's.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(path)?;
        let fault = || {
            io::Error::new(
                ErrorKind::InvalidData,
                format!("{} names no process", path.display()),
            )
        };
        let (pid, began) = text.trim().split_once(' ').ok_or_else(fault)?;
        Ok(Self {
            pid: pid.parse().map_err(|_| fault())?,
            began_ticks: began.parse().map_err(|_| fault())?,
        })
    }

    /// Writes it down.
    ///
    /// # Errors
    /// As the system says.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(path, format!("{} {}\n", self.pid, self.began_ticks))
    }

    /// Whether it runs or is stopped; one that has ended and waits for its parent to notice does not.
    ///
    /// # Errors
    /// When that cannot be told.
    pub fn is_alive(&self) -> io::Result<bool> {
        let found = state(self.pid)?;
        Ok(found
            .is_some_and(|(state, began)| began == self.began_ticks && !matches!(state, 'Z' | 'X')))
    }

    /// Does it, unless the process has ended.
    ///
    /// # Errors
    /// As the system says.
    pub fn act(&self, act: Act) -> io::Result<()> {
        if !self.is_alive()? {
            return Ok(());
        }
        let Some(pid) = Pid::from_raw(self.pid) else {
            return Ok(());
        };
        let signal = match act {
            Act::Kill => Signal::KILL,
            Act::Pause => Signal::STOP,
            Act::Resume => Signal::CONT,
        };
        match kill_process(pid, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(fault) => Err(fault.into()),
        }
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// When it does not.
    pub fn wait_until_gone(&self) -> io::Result<()> {
        let start_ns = now_ns();
        while self.is_alive()? {
            if now_ns() - start_ns > GONE_WITHIN_NS {
                let what = format!("process {} does not end", self.pid);
                return Err(io::Error::new(ErrorKind::TimedOut, what));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

/// State and beginning of a process, if there is one: fields 3 and 22 of `/proc/<pid>/stat`.
fn state(pid: i32) -> io::Result<Option<(char, u64)>> {
    let text = match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(text) => text,
        Err(fault) if fault.kind() == ErrorKind::NotFound => return Ok(None),
        // It ended between opening and reading.
        Err(fault) if fault.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => return Ok(None),
        Err(fault) => return Err(fault),
    };
    let fault = || io::Error::new(ErrorKind::InvalidData, "/proc/<pid>/stat reads otherwise");
    // The program's name may hold anything, but ends with the last parenthesis.
    let (_, rest) = text.rsplit_once(')').ok_or_else(fault)?;
    let mut fields = rest.split_whitespace();
    let state = fields
        .next()
        .and_then(|field| field.chars().next())
        .ok_or_else(fault)?;
    let began = fields
        .nth(18)
        .and_then(|field| field.parse().ok())
        .ok_or_else(fault)?;
    Ok(Some((state, began)))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{Act, Process};

    #[test]
    fn a_process_is_known_by_its_file_and_by_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pid");
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let process = Process::find(child.id()).unwrap();
        process.write(&path).unwrap();
        assert_eq!(Process::read(&path).unwrap(), process);
        assert!(process.is_alive().unwrap());

        // The same number, another life: it is left alone.
        let other = Process {
            began_ticks: process.began_ticks + 1,
            ..process
        };
        assert!(!other.is_alive().unwrap());
        other.act(Act::Kill).unwrap();
        process.act(Act::Pause).unwrap();
        process.act(Act::Resume).unwrap();
        assert!(process.is_alive().unwrap());

        process.act(Act::Kill).unwrap();
        process.wait_until_gone().unwrap();
        child.wait().unwrap();
        process.act(Act::Kill).unwrap();
        std::fs::write(&path, "no process").unwrap();
        assert!(Process::read(&path).is_err());
    }
}
