//! The relay's thread: one loop over all connections.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::line::{CHUNK_BYTES, Line, Shape};
use super::pipe::{Item, Pipe};
use super::{Command, LineId};
use crate::clock::{SECOND_NS, now_ns};

/// Events taken from the system at once.
const EVENTS: usize = 256;
/// Chunks that one connection may take in before others have their turn.
const TURN_CHUNKS: usize = 4;

/// The timer goes off this long before something is due, and the rest is spent looking at the clock: a sleeping core
/// takes up to 100 microseconds to wake.
const EARLY_NS: u64 = 100_000;
/// One part in so many of the time may be spent so. On a busy line cores do not sleep deeply, and the nodes need them.
const LOOKING_SHARE: u64 = 10;
/// What can be saved up for it: ten times.
const LOOKING_MAX_NS: u64 = 10 * EARLY_NS;

const TOKEN_TIMER: u64 = 0;
const TOKEN_WAKE: u64 = 1;
const TOKEN_FIRST: u64 = 2;

/// What an event is about.
enum Token {
    Timer,
    Wake,
    Route(usize),
    Socket(usize, Side),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Dialler = 0,
    Target = 1,
}

impl Side {
    const fn other(self) -> Self {
        match self {
            Self::Dialler => Self::Target,
            Self::Target => Self::Dialler,
        }
    }
}

impl Token {
    fn data(&self) -> EventData {
        let place = |at: usize, kind: u64| TOKEN_FIRST + (at as u64) * 3 + kind;
        EventData::new_u64(match *self {
            Self::Timer => TOKEN_TIMER,
            Self::Wake => TOKEN_WAKE,
            Self::Route(at) => place(at, 0),
            Self::Socket(at, side) => place(at, 1 + side as u64),
        })
    }

    fn parse(data: u64) -> Self {
        let Some(rest) = data.checked_sub(TOKEN_FIRST) else {
            return if data == TOKEN_TIMER {
                Self::Timer
            } else {
                Self::Wake
            };
        };
        let at = usize::try_from(rest / 3).unwrap_or(usize::MAX);
        match rest % 3 {
            0 => Self::Route(at),
            1 => Self::Socket(at, Side::Dialler),
            _ => Self::Socket(at, Side::Target),
        }
    }
}

struct Route {
    listener: TcpListener,
    target: SocketAddr,
    /// To the target and back.
    lines: [usize; 2],
    /// Connections may wait to be accepted.
    waiting: bool,
}

/// One relayed connection. Pipe `side` carries what is read on that side.
struct Connection {
    ends: [End; 2],
    pipes: [Pipe; 2],
    lines: [usize; 2],
}

struct End {
    stream: TcpStream,
    connecting: bool,
    /// Reading may give something.
    readable: bool,
    /// The other side has closed or broken: reading goes on until it says so.
    hung_up: bool,
    /// Writing may take something.
    writable: bool,
}

/// Time spent looking at the clock, and how much more may be.
#[derive(Default)]
struct Looking {
    saved_ns: u64,
    counted_ns: u64,
    since_ns: Option<u64>,
}

impl Looking {
    /// Settles the account; says whether there is enough for once more.
    fn may(&mut self, now_ns: u64) -> bool {
        let passed_ns = now_ns.saturating_sub(self.counted_ns);
        self.counted_ns = now_ns;
        self.saved_ns = (self.saved_ns + passed_ns / LOOKING_SHARE).min(LOOKING_MAX_NS);
        if let Some(since_ns) = self.since_ns.take() {
            self.saved_ns = self
                .saved_ns
                .saturating_sub(now_ns.saturating_sub(since_ns));
        }
        self.saved_ns >= EARLY_NS
    }
}

/// A direction of a connection: `connection * 2 + side`.
type PipeAt = (usize, Side);

/// What came of taking in.
enum Taken {
    /// Nothing more to do now.
    Done,
    /// There may be more.
    Again,
    /// The line's bandwidth is used up until then.
    Wait(u64),
}

pub(super) struct Driver {
    commands: Receiver<Command>,
    epoll: OwnedFd,
    timer: OwnedFd,
    /// Kept so that the descriptor lives as long as it is watched.
    _wake: Arc<OwnedFd>,
    armed_ns: Option<u64>,
    looking: Looking,
    lines: Vec<Line>,
    routes: Vec<Route>,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// When pipes have something that comes out.
    due: BTreeSet<(u64, usize, bool)>,
    /// Pipes that may take in, in turn.
    hungry: VecDeque<PipeAt>,
    scratch: Vec<u8>,
}

impl Driver {
    pub(super) fn new(commands: Receiver<Command>, wake: Arc<OwnedFd>) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        // Edges: neither is ever read, and each expiry or wish is a new edge.
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &timer, Token::Timer.data(), flags)?;
        epoll::add(&epoll, &wake, Token::Wake.data(), flags)?;
        Ok(Self {
            commands,
            epoll,
            timer,
            _wake: wake,
            armed_ns: None,
            looking: Looking::default(),
            lines: Vec::new(),
            routes: Vec::new(),
            connections: Vec::new(),
            free: Vec::new(),
            due: BTreeSet::new(),
            hungry: VecDeque::new(),
            scratch: vec![0; CHUNK_BYTES],
        })
    }

    pub(super) fn run(mut self) {
        let mut events = [MaybeUninit::<Event>::uninit(); EVENTS];
        let mut wait = None;
        loop {
            let found: &[Event] = match epoll::wait(&self.epoll, &mut events[..], wait.as_ref()) {
                Ok((found, _)) => found,
                Err(Errno::INTR) => &[],
                // Without events there is no relay, and a cluster that hangs says less than one that ends.
                Err(fault) => panic!("epoll: {fault}"),
            };
            for event in found {
                match Token::parse(event.data.u64()) {
                    Token::Timer => self.armed_ns = None,
                    Token::Wake => {
                        if self.obey() {
                            return;
                        }
                    }
                    Token::Route(at) => self.accept(at),
                    Token::Socket(at, side) => self.socket_event(at, side, event.flags),
                }
            }
            self.release_due();
            let next = self.take_in_turns();
            // What was just taken in may be due by now.
            self.release_due();
            wait = self.sleep_until(next);
        }
    }

    /// Sets the timer; `None` waits for whatever comes first, otherwise there is work at once.
    fn sleep_until(&mut self, taken: Option<u64>) -> Option<Timespec> {
        let due = self.due.first().map(|&(ns, ..)| ns);
        let next_ns = match (due, taken) {
            (Some(a), Some(b)) => a.min(b),
            (Some(a), None) | (None, Some(a)) => a,
            (None, None) => return None,
        };
        let now_ns = now_ns();
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let may_look = self.looking.may(now_ns);
        if next_ns <= now_ns {
            return Some(at_once);
        }
        let mut next_ns = next_ns;
        if may_look {
            if next_ns - now_ns <= EARLY_NS {
                self.looking.since_ns = Some(now_ns);
                return Some(at_once);
            }
            next_ns -= EARLY_NS;
        }
        if self.armed_ns != Some(next_ns) {
            let at = timespec(next_ns);
            let once = Itimerspec {
                it_interval: timespec(0),
                it_value: at,
            };
            timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)
                .expect("a timer of our own takes any time");
            self.armed_ns = Some(next_ns);
        }
        None
    }

    /// Does what was asked for; true to stop.
    fn obey(&mut self) -> bool {
        while let Ok(command) = self.commands.try_recv() {
            // An asker that has gone away wants no answer.
            match command {
                Command::Line(shape, done) => {
                    let id = LineId(self.lines.len());
                    self.lines.push(Line::new(shape, id.0 as u64 + 1));
                    let _ = done.send(id);
                }
                Command::Route {
                    listener,
                    target,
                    forward,
                    backward,
                    done,
                } => {
                    let _ = done.send(self.add_route(listener, target, [forward.0, backward.0]));
                }
                Command::Shape(line, shape, done) => {
                    self.reshape(line.0, shape);
                    let _ = done.send(());
                }
                Command::Cut(lines, done) => {
                    for line in lines {
                        self.cut(line.0);
                    }
                    let _ = done.send(());
                }
                Command::Heal(lines, done) => {
                    for line in lines {
                        self.heal(line.0);
                    }
                    let _ = done.send(());
                }
                Command::Status(done) => {
                    let _ = done.send(self.lines.iter().map(Line::status).collect());
                }
                Command::Stop => return true,
            }
        }
        false
    }

    fn add_route(
        &mut self,
        listener: TcpListener,
        target: SocketAddr,
        lines: [usize; 2],
    ) -> io::Result<()> {
        if lines.iter().any(|&line| line >= self.lines.len()) {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                "there is no such line",
            ));
        }
        let at = self.routes.len();
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&self.epoll, &listener, Token::Route(at).data(), flags)?;
        self.routes.push(Route {
            listener,
            target,
            lines,
            waiting: true,
        });
        self.accept(at);
        Ok(())
    }

    fn reshape(&mut self, line: usize, shape: Shape) {
        if let Some(line) = self.lines.get_mut(line) {
            line.reshape(shape, now_ns());
        }
        self.list_all(line);
    }

    fn cut(&mut self, line: usize) {
        let Some(cut) = self.lines.get_mut(line) else {
            return;
        };
        cut.cut = true;
        for at in self.pipes_of(line) {
            self.disarm(at);
        }
    }

    fn heal(&mut self, line: usize) {
        let Some(healed) = self.lines.get_mut(line) else {
            return;
        };
        if !healed.cut {
            return;
        }
        healed.cut = false;
        let again_ns = healed.pass(now_ns());
        for at in self.pipes_of(line) {
            if let Some(connection) = self.connection(at.0) {
                connection.pipes[at.1 as usize].not_before(again_ns);
            }
            self.arm(at);
        }
        self.list_all(line);
        for at in 0..self.routes.len() {
            self.accept(at);
        }
    }

    fn list_all(&mut self, line: usize) {
        for at in self.pipes_of(line) {
            self.list(at);
        }
    }

    fn pipes_of(&self, line: usize) -> Vec<PipeAt> {
        let mut found = Vec::new();
        for (at, connection) in self.connections.iter().enumerate() {
            let Some(connection) = connection else {
                continue;
            };
            for side in [Side::Dialler, Side::Target] {
                if connection.lines[side as usize] == line {
                    found.push((at, side));
                }
            }
        }
        found
    }

    fn connection(&mut self, at: usize) -> Option<&mut Connection> {
        self.connections.get_mut(at)?.as_mut()
    }

    /// Takes new connections, unless a way is cut: then they wait where the system keeps them.
    fn accept(&mut self, at: usize) {
        loop {
            let Some(route) = self.routes.get_mut(at) else {
                return;
            };
            route.waiting = true;
            if route.lines.iter().any(|&line| self.lines[line].cut) {
                return;
            }
            match route.listener.accept() {
                Ok((stream, _)) => {
                    let (target, lines) = (route.target, route.lines);
                    if let Ok(connection) = open(stream, target, lines) {
                        self.add(connection);
                    }
                }
                Err(fault) if fault.kind() == ErrorKind::WouldBlock => {
                    route.waiting = false;
                    return;
                }
                Err(fault)
                    if matches!(
                        fault.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                    ) => {}
                // No more descriptors: tried again when a connection has ended.
                Err(_) => return,
            }
        }
    }

    fn add(&mut self, connection: Connection) {
        let at = self.free.pop().unwrap_or(self.connections.len());
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        for side in [Side::Dialler, Side::Target] {
            let stream = &connection.ends[side as usize].stream;
            let data = Token::Socket(at, side).data();
            if epoll::add(&self.epoll, stream, data, flags).is_err() {
                // The system has no memory for it: the dialler sees its connection end.
                self.free.push(at);
                return;
            }
        }
        for line in connection.lines {
            self.lines[line].connections += 1;
        }
        if at == self.connections.len() {
            self.connections.push(Some(connection));
        } else {
            self.connections[at] = Some(connection);
        }
        self.list((at, Side::Dialler));
    }

    fn socket_event(&mut self, at: usize, side: Side, flags: EventFlags) {
        // The connection may have ended within the same batch of events.
        let Some(connection) = self.connection(at) else {
            return;
        };
        let end = &mut connection.ends[side as usize];
        let broken = flags.intersects(EventFlags::HUP | EventFlags::ERR);
        let writable = flags.contains(EventFlags::OUT) || broken;
        if end.connecting {
            if !writable {
                return;
            }
            if !matches!(sockopt::socket_error(&end.stream), Ok(Ok(()))) {
                self.remove(at, true);
                return;
            }
            end.connecting = false;
        }
        if broken || flags.intersects(EventFlags::IN | EventFlags::RDHUP) {
            end.readable = true;
            end.hung_up |= broken || flags.contains(EventFlags::RDHUP);
            self.list((at, side));
        }
        if writable {
            if let Some(connection) = self.connection(at) {
                connection.ends[side as usize].writable = true;
            }
            self.arm((at, side.other()));
        }
    }

    /// Has a pipe looked at when its first item comes out, if anything can come out.
    fn arm(&mut self, at: PipeAt) {
        self.disarm(at);
        let (index, side) = at;
        let Some(Some(connection)) = self.connections.get_mut(index) else {
            return;
        };
        let to = &connection.ends[side.other() as usize];
        if self.lines[connection.lines[side as usize]].cut || !to.writable || to.connecting {
            return;
        }
        let pipe = &mut connection.pipes[side as usize];
        if let Some(ns) = pipe.head_ns() {
            pipe.due_ns = Some(ns);
            self.due.insert((ns, index, side == Side::Target));
        }
    }

    fn disarm(&mut self, (index, side): PipeAt) {
        if let Some(Some(connection)) = self.connections.get_mut(index)
            && let Some(ns) = connection.pipes[side as usize].due_ns.take()
        {
            self.due.remove(&(ns, index, side == Side::Target));
        }
    }

    /// Has a pipe take in when it is its turn.
    fn list(&mut self, at: PipeAt) {
        if let Some(connection) = self.connection(at.0) {
            let pipe = &mut connection.pipes[at.1 as usize];
            if !pipe.listed {
                pipe.listed = true;
                self.hungry.push_back(at);
            }
        }
    }

    fn release_due(&mut self) {
        while let Some(&(ns, index, target)) = self.due.first() {
            let now_ns = now_ns();
            if ns > now_ns {
                return;
            }
            let side = if target { Side::Target } else { Side::Dialler };
            self.release((index, side), now_ns);
        }
    }

    /// Writes what has come out of a pipe.
    fn release(&mut self, at: PipeAt, now_ns: u64) {
        self.disarm(at);
        let (index, side) = at;
        let Some(Some(connection)) = self.connections.get_mut(index) else {
            return;
        };
        let line = &mut self.lines[connection.lines[side as usize]];
        let pipe = &mut connection.pipes[side as usize];
        let to = &mut connection.ends[side.other() as usize];
        while let Some(ns) = pipe.head_ns()
            && ns <= now_ns
            && to.writable
            && !line.cut
        {
            match pipe.head() {
                Some(Item::Bytes { bytes, sent }) => {
                    if *sent == 0 {
                        line.was_late(now_ns - ns);
                    }
                    match to.stream.write(bytes.get(*sent..).unwrap_or_default()) {
                        Ok(count) => {
                            *sent += count;
                            line.came_out(count as u64);
                            if *sent == bytes.len() {
                                pipe.pop();
                            }
                        }
                        Err(fault) if fault.kind() == ErrorKind::WouldBlock => to.writable = false,
                        Err(fault) if fault.kind() == ErrorKind::Interrupted => {}
                        Err(_) => {
                            self.receiver_broke(at, now_ns);
                            return;
                        }
                    }
                }
                Some(Item::End) => {
                    pipe.pop();
                    pipe.finished = true;
                    // Reading from it tells what is wrong with it, if anything is.
                    let _ = to.stream.shutdown(Shutdown::Write);
                    let over = connection.pipes.iter().all(|pipe| pipe.finished);
                    if over {
                        self.remove(index, false);
                    }
                    return;
                }
                Some(Item::Reset) => {
                    self.remove(index, true);
                    return;
                }
                None => break,
            }
        }
        self.arm(at);
        self.list(at);
    }

    /// What comes out of a pipe cannot be written any more. Its sender learns that over the way back.
    fn receiver_broke(&mut self, (index, side): PipeAt, now_ns: u64) {
        let Some(Some(connection)) = self.connections.get_mut(index) else {
            return;
        };
        let pipe = &mut connection.pipes[side as usize];
        let lost = pipe.clear();
        (pipe.ended, pipe.finished) = (true, true);
        self.lines[connection.lines[side as usize]].forget(lost);
        let back = side.other();
        let line = &self.lines[connection.lines[back as usize]];
        let pipe = &mut connection.pipes[back as usize];
        pipe.push(line.pass(now_ns), Item::Reset);
        (pipe.ended, pipe.finished) = (true, false);
        self.arm((index, back));
    }

    /// Every pipe that may takes in, in turn; gives the time when to go on.
    fn take_in_turns(&mut self) -> Option<u64> {
        let mut next = None;
        for _ in 0..self.hungry.len() {
            let Some(at) = self.hungry.pop_front() else {
                break;
            };
            let taken = self.take_in(at);
            let wake_ns = match taken {
                Taken::Done => None,
                Taken::Again => Some(0),
                Taken::Wait(ns) => Some(ns),
            };
            if let Some(ns) = wake_ns {
                self.hungry.push_back(at);
                next = Some(next.map_or(ns, |known: u64| known.min(ns)));
            } else if let Some(connection) = self.connection(at.0) {
                connection.pipes[at.1 as usize].listed = false;
            }
        }
        next
    }

    fn take_in(&mut self, at: PipeAt) -> Taken {
        let (index, side) = at;
        for _ in 0..TURN_CHUNKS {
            let Some(Some(connection)) = self.connections.get_mut(index) else {
                return Taken::Done;
            };
            let line = &mut self.lines[connection.lines[side as usize]];
            let pipe = &mut connection.pipes[side as usize];
            let from = &mut connection.ends[side as usize];
            let full = !line.has_room(pipe.in_flight_bytes());
            if !from.readable || from.connecting || pipe.ended || line.cut || full {
                // Whatever ends that lists the pipe again.
                return Taken::Done;
            }
            let now_ns = now_ns();
            let open_ns = line.open_at_ns();
            if open_ns > now_ns {
                return Taken::Wait(open_ns);
            }
            let want = line.chunk_bytes();
            let buffer = self.scratch.get_mut(..want).unwrap_or_default();
            match from.stream.read(buffer) {
                Ok(0) => {
                    pipe.push(line.pass(now_ns), Item::End);
                    pipe.ended = true;
                }
                Ok(count) => {
                    // Less than wanted was all there was, and more is a new event; but an end may have come with it.
                    from.readable = count == want || from.hung_up;
                    let bytes = buffer.get(..count).unwrap_or_default().to_vec();
                    let out_ns = line.take_in(now_ns, count as u64);
                    pipe.push(out_ns, Item::Bytes { bytes, sent: 0 });
                }
                Err(fault) if fault.kind() == ErrorKind::WouldBlock => from.readable = false,
                Err(fault) if fault.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    pipe.push(line.pass(now_ns), Item::Reset);
                    pipe.ended = true;
                }
            }
            if pipe.due_ns.is_none() {
                self.arm(at);
            }
        }
        Taken::Again
    }

    /// Ends a connection on both sides.
    fn remove(&mut self, at: usize, reset: bool) {
        for side in [Side::Dialler, Side::Target] {
            self.disarm((at, side));
        }
        let Some(mut connection) = self.connections.get_mut(at).and_then(Option::take) else {
            return;
        };
        for (pipe, &line) in connection.pipes.iter_mut().zip(&connection.lines) {
            let line = &mut self.lines[line];
            line.forget(pipe.clear());
            line.connections -= 1;
        }
        if reset {
            for end in &connection.ends {
                // With no time to linger the system says "reset" to the other side; if it cannot, "end" must do.
                let _ = sockopt::set_socket_linger(&end.stream, Some(Duration::ZERO));
            }
        }
        drop(connection);
        self.hungry.retain(|&(index, _)| index != at);
        self.free.push(at);
        for route in 0..self.routes.len() {
            if self.routes[route].waiting {
                self.accept(route);
            }
        }
    }
}

/// Begins to connect to the target.
fn open(dialler: TcpStream, target: SocketAddr, lines: [usize; 2]) -> io::Result<Connection> {
    dialler.set_nonblocking(true)?;
    dialler.set_nodelay(true)?;
    let family = if target.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, &target) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(fault) => return Err(fault.into()),
    }
    let to = TcpStream::from(socket);
    to.set_nodelay(true)?;
    Ok(Connection {
        ends: [
            End {
                stream: dialler,
                connecting: false,
                readable: true,
                hung_up: false,
                writable: true,
            },
            End {
                stream: to,
                connecting: true,
                readable: false,
                hung_up: false,
                writable: false,
            },
        ],
        pipes: [Pipe::default(), Pipe::default()],
        lines,
    })
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ns / SECOND_NS).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ns % SECOND_NS).unwrap_or(0),
    }
}
