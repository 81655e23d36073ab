//! Frames on their way to one peer in one lane: bounded in number and bytes, never waited for by who fills it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::engine::peers::PeerFrame;

use super::convert::weight_bytes;

pub(super) struct Queue {
    state: Mutex<State>,
    /// Tells the one writer that there is something, or that the queue was closed.
    wake: Notify,
    max_frames: usize,
    max_bytes: usize,
}

#[derive(Default)]
struct State {
    /// Only while the peer can be reached: what waits for one that cannot is old when it comes back.
    open: bool,
    frames: VecDeque<(usize, PeerFrame)>,
    /// The weights of `frames`.
    bytes: usize,
}

impl Queue {
    pub(super) fn new(max_frames: usize, max_bytes: usize) -> Self {
        Self { state: Mutex::default(), wake: Notify::new(), max_frames, max_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn open(&self) {
        self.lock().open = true;
    }

    /// Drops what waits; nothing is taken until it is opened again.
    pub(super) fn close(&self) {
        *self.lock() = State::default();
        self.wake.notify_one();
    }

    /// Whether there was room. If not the queue is closed, and its writer cuts the connection.
    pub(super) fn push(&self, frame: PeerFrame) -> bool {
        let weight = weight_bytes(&frame);
        let mut state = self.lock();
        if !state.open {
            return false;
        }
        if state.frames.len() >= self.max_frames || state.bytes + weight > self.max_bytes {
            *state = State::default();
            drop(state);
            self.wake.notify_one();
            return false;
        }
        state.bytes += weight;
        state.frames.push_back((weight, frame));
        drop(state);
        self.wake.notify_one();
        true
    }

    /// The next frames, one at least, of about `target_bytes` together. `None` once the queue is closed.
    pub(super) async fn next(&self, target_bytes: usize) -> Option<Vec<PeerFrame>> {
        loop {
            {
                let mut state = self.lock();
                if !state.open {
                    return None;
                }
                if !state.frames.is_empty() {
                    let mut batch = Vec::new();
                    let mut taken = 0;
                    while taken < target_bytes
                        && let Some((weight, frame)) = state.frames.pop_front()
                    {
                        taken += weight;
                        batch.push(frame);
                    }
                    state.bytes -= taken;
                    return Some(batch);
                }
            }
            self.wake.notified().await;
        }
    }

    /// Frames and bytes that wait.
    pub(super) fn depth(&self) -> (usize, usize) {
        let state = self.lock();
        (state.frames.len(), state.bytes)
    }
}
