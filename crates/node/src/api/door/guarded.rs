//! A connection's bytes under the clock: a head that does not end, silence between requests, and a client that does not read
//! its answer end the connection. What a request's body does is [`super::super::extract`]'s to watch.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::super::limits::HttpLimits;
use super::super::metrics::{Cut, Cuts};
use super::super::{Code, Problem};

/// What the bytes' side and the requests' side of a connection tell each other.
#[derive(Debug, Default)]
pub(in crate::api) struct Conversation {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Conversation {
    /// A request's head is whole. Until the value is dropped it is the node's turn.
    pub(in crate::api) fn begin(self: Arc<Self>) -> Turn {
        self.begun.fetch_add(1, Ordering::AcqRel);
        Turn(self)
    }

    fn begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }

    fn is_nodes_turn(&self) -> bool {
        self.ended.load(Ordering::Acquire) < self.begun()
    }
}

/// The node's turn: from a request's head to the end of its answer.
#[derive(Debug)]
pub(in crate::api) struct Turn(Arc<Conversation>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::AcqRel);
    }
}

/// What the client was last seen to do while it is its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// Nothing, since then.
    Idle(Instant),
    /// It began a head then.
    Head(Instant),
}

/// An answer that the client is slow to take.
#[derive(Clone, Copy, Debug)]
struct Blocked {
    since: Instant,
    taken_bytes: u64,
}

/// A stream under the clock.
pub(super) struct Guarded<S> {
    stream: S,
    limits: HttpLimits,
    conversation: Arc<Conversation>,
    cuts: Arc<Cuts>,
    waiting: Waiting,
    /// How many requests there were when `waiting` was set.
    seen: u64,
    blocked: Option<Blocked>,
    read_timer: Pin<Box<Sleep>>,
    write_timer: Pin<Box<Sleep>>,
}

impl<S> Guarded<S> {
    pub(super) fn new(
        stream: S,
        limits: HttpLimits,
        conversation: Arc<Conversation>,
        cuts: Arc<Cuts>,
    ) -> Self {
        Self {
            stream,
            limits,
            conversation,
            cuts,
            waiting: Waiting::Idle(Instant::now()),
            seen: 0,
            blocked: None,
            read_timer: Box::pin(sleep(limits.idle_timeout)),
            write_timer: Box::pin(sleep(limits.grace)),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Guarded<S> {
    /// Ready when the client has waited too long to go on with its turn: with its end, or with an error.
    fn poll_client(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.conversation.is_nodes_turn() {
            return Poll::Pending;
        }
        let begun = self.conversation.begun();
        if begun != self.seen {
            // It is the client's turn again.
            self.seen = begun;
            self.waiting = Waiting::Idle(Instant::now());
        }
        let deadline = match self.waiting {
            Waiting::Idle(since) => since + self.limits.idle_timeout,
            Waiting::Head(since) => since + self.limits.head_timeout,
        };
        self.read_timer.as_mut().reset(deadline);
        ready!(self.read_timer.as_mut().poll(cx));
        if let Waiting::Idle(_) = self.waiting {
            // As if the client had closed it.
            self.cuts.count(Cut::Idle);
            return Poll::Ready(Ok(()));
        }
        self.cuts.count(Cut::Head);
        self.farewell(cx);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Says why, as far as it can be said at once.
    fn farewell(&mut self, cx: &mut Context<'_>) {
        let problem = Problem::new(Code::Slow, "the request's head did not end in time");
        let body = serde_json::to_string(&problem.document()).unwrap_or_default();
        let text = format!(
            "HTTP/1.1 408 Request Timeout\r\ncontent-type: application/problem+json\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        if Pin::new(&mut self.stream)
            .poll_write(cx, text.as_bytes())
            .is_ready()
        {
            let _ = Pin::new(&mut self.stream).poll_flush(cx);
            let _ = Pin::new(&mut self.stream).poll_shutdown(cx);
        }
    }

    /// What becomes of bytes that could not be given to the client yet: pending, or an error when it is too slow.
    fn poll_reader<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        loop {
            let now = Instant::now();
            let blocked = *self.blocked.get_or_insert(Blocked {
                since: now,
                taken_bytes: 0,
            });
            self.write_timer
                .as_mut()
                .reset(blocked.since + self.limits.grace);
            ready!(self.write_timer.as_mut().poll(cx));
            let floor = u128::from(self.limits.floor_bytes_per_s) * self.limits.grace.as_millis();
            if u128::from(blocked.taken_bytes) * 1_000 < floor {
                self.cuts.count(Cut::Reader);
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.blocked = None;
        }
    }

    fn wrote(&mut self, bytes: usize) {
        if let Some(blocked) = &mut self.blocked {
            blocked.taken_bytes = blocked.taken_bytes.saturating_add(bytes as u64);
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let guarded = self.get_mut();
        let before = buffer.filled().len();
        if Pin::new(&mut guarded.stream)
            .poll_read(cx, buffer)?
            .is_pending()
        {
            return guarded.poll_client(cx);
        }
        if buffer.filled().len() > before && !guarded.conversation.is_nodes_turn() {
            let begun = guarded.conversation.begun();
            if begun != guarded.seen || matches!(guarded.waiting, Waiting::Idle(_)) {
                guarded.seen = begun;
                guarded.waiting = Waiting::Head(Instant::now());
            }
            // However many bytes come: the time is the head's.
            if let Waiting::Head(since) = guarded.waiting
                && since.elapsed() > guarded.limits.head_timeout
            {
                return guarded.poll_client(cx);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let guarded = self.get_mut();
        match Pin::new(&mut guarded.stream).poll_write(cx, bytes)? {
            Poll::Ready(written) => {
                guarded.wrote(written);
                Poll::Ready(Ok(written))
            }
            Poll::Pending => guarded.poll_reader(cx),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let guarded = self.get_mut();
        match Pin::new(&mut guarded.stream).poll_flush(cx)? {
            Poll::Ready(()) => {
                guarded.blocked = None;
                Poll::Ready(Ok(()))
            }
            Poll::Pending => guarded.poll_reader(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let guarded = self.get_mut();
        match Pin::new(&mut guarded.stream).poll_shutdown(cx)? {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            Poll::Pending => guarded.poll_reader(cx),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let guarded = self.get_mut();
        match Pin::new(&mut guarded.stream).poll_write_vectored(cx, slices)? {
            Poll::Ready(written) => {
                guarded.wrote(written);
                Poll::Ready(Ok(written))
            }
            Poll::Pending => guarded.poll_reader(cx),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
