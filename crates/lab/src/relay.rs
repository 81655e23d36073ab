//! A relay of TCP connections that behaves like a long line: bytes come out as they went in, later.
//!
//! A *line* is one direction between two sites, with its [`Shape`]: delay, jitter, bandwidth. A *route* is an address to
//! dial instead of another one; its connections run over one line there and another one back. Lines are shared: all
//! connections from one site to another have the line's bandwidth together, and are cut together.
//!
//! One thread does everything, on `epoll` and a `timerfd`, whose resolution is far below a millisecond; it sleeps when
//! nothing is due. What it holds per connection and direction is bounded by bandwidth x delay; then it stops reading, and
//! the sender feels it as it would on the line.
//!
//! A cut line carries nothing: what is inside stays inside, no more is taken in, and connections neither end nor begin. A
//! node notices by silence, as it does when packets are lost. Healed, the line goes on where it stopped, and what was
//! inside travels its whole length again. A line that is cut one way still carries the other way's bytes, although over a
//! real one the acknowledgements of TCP would be missing after a while.
//!
//! What is not like a real line: the handshake of TCP itself costs nothing, and nothing is lost, only late.

mod driver;
mod line;
mod pipe;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use serde::{Deserialize, Serialize};

pub use line::{LineStatus, Shape};

/// A line of one relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LineId(usize);

/// A running relay. It ends, with all its connections, when it is dropped.
#[derive(Debug)]
pub struct Relay {
    commands: Sender<Command>,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

enum Command {
    Line(Shape, Sender<LineId>),
    Route {
        listener: TcpListener,
        target: SocketAddr,
        forward: LineId,
        backward: LineId,
        done: Sender<io::Result<()>>,
    },
    Shape(LineId, Shape, Sender<()>),
    Cut(Vec<LineId>, Sender<()>),
    Heal(Vec<LineId>, Sender<()>),
    Status(Sender<Vec<LineStatus>>),
    Stop,
}

impl Relay {
    /// Starts the relay's thread.
    ///
    /// # Errors
    /// As the system says: it may have no more descriptors or threads.
    pub fn start() -> io::Result<Self> {
        let (commands, queue) = channel();
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let driver = driver::Driver::new(queue, wake.clone())?;
        let thread = std::thread::Builder::new()
            .name("relay".to_owned())
            .spawn(move || driver.run())?;
        Ok(Self {
            commands,
            wake,
            thread: Some(thread),
        })
    }

    /// A new line.
    ///
    /// # Errors
    /// When the relay's thread has ended.
    pub fn line(&self, shape: Shape) -> io::Result<LineId> {
        self.ask(|done| Command::Line(shape, done))
    }

    /// Listens on a free port of `127.0.0.1` and carries each connection to `target`; gives the address to dial instead.
    ///
    /// # Errors
    /// As the system says, or when the relay's thread has ended.
    pub fn route(
        &self,
        target: SocketAddr,
        forward: LineId,
        backward: LineId,
    ) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        self.ask(|done| Command::Route {
            listener,
            target,
            forward,
            backward,
            done,
        })??;
        Ok(address)
    }

    /// Gives a line another shape; what is inside keeps its time.
    ///
    /// # Errors
    /// When the relay's thread has ended.
    pub fn shape(&self, line: LineId, shape: Shape) -> io::Result<()> {
        self.ask(|done| Command::Shape(line, shape, done))
    }

    /// Cuts lines, all at the same moment: once this returns, no byte leaves them.
    ///
    /// # Errors
    /// When the relay's thread has ended.
    pub fn cut(&self, lines: &[LineId]) -> io::Result<()> {
        self.ask(|done| Command::Cut(lines.to_vec(), done))
    }

    /// Heals lines.
    ///
    /// # Errors
    /// When the relay's thread has ended.
    pub fn heal(&self, lines: &[LineId]) -> io::Result<()> {
        self.ask(|done| Command::Heal(lines.to_vec(), done))
    }

    /// How each line stands, in the order they were made.
    ///
    /// # Errors
    /// When the relay's thread has ended.
    pub fn status(&self) -> io::Result<Vec<LineStatus>> {
        self.ask(Command::Status)
    }

    fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> io::Result<T> {
        let gone = || io::Error::other("the relay has ended");
        let (done, answer): (Sender<T>, Receiver<T>) = channel();
        self.commands.send(command(done)).map_err(|_| gone())?;
        self.wake()?;
        answer.recv().map_err(|_| gone())
    }

    fn wake(&self) -> io::Result<()> {
        rustix::io::write(&self.wake, &1_u64.to_ne_bytes())?;
        Ok(())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if self.commands.send(Command::Stop).is_ok()
            && self.wake().is_ok()
            && let Some(thread) = self.thread.take()
        {
            // A panic was reported on stderr by the thread itself.
            let _ = thread.join();
        }
    }
}
