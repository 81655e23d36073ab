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
    /// Tells whoever keeps the connection that the queue was full: its writer may hang in a write.
    full: Notify,
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
        Self {
            state: Mutex::default(),
            wake: Notify::new(),
            full: Notify::new(),
            max_frames,
            max_bytes,
        }
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

    /// Whether there was room. If not the queue is closed, and [`Self::overflowed`] tells.
    pub(super) fn push(&self, frame: PeerFrame) -> bool {
        let weight = weight_bytes(&frame);
        let mut state = self.lock();
        if !state.open {
            return false;
        }
        if state.frames.len() >= self.max_frames || state.bytes + weight > self.max_bytes {
            *state = State::default();
            drop(state);
            self.full.notify_one();
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

    /// Returns once the queue was full.
    pub(super) async fn overflowed(&self) {
        loop {
            self.full.notified().await;
            // An earlier connection's overflow is not this one's.
            if !self.lock().open {
                return;
            }
        }
    }

    /// Frames and bytes that wait.
    pub(super) fn depth(&self) -> (usize, usize) {
        let state = self.lock();
        (state.frames.len(), state.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(index: u64) -> PeerFrame {
        PeerFrame::Held {
            shard: clearspan_ledger::ShardId::new(0),
            index,
        }
    }

    fn indexes(batch: Vec<PeerFrame>) -> Vec<u64> {
        let index = |frame| match frame {
            PeerFrame::Held { index, .. } => index,
            other => panic!("{other:?}"),
        };
        batch.into_iter().map(index).collect()
    }

    #[tokio::test]
    async fn bounded_in_frames_and_bytes() {
        let weight = weight_bytes(&frame(0));
        for queue in [
            Queue::new(3, usize::MAX),
            Queue::new(usize::MAX, 3 * weight + 1),
        ] {
            assert!(!queue.push(frame(0)), "a closed queue takes nothing");
            queue.open();
            assert!((1..=3).all(|index| queue.push(frame(index))));
            assert_eq!(queue.depth(), (3, 3 * weight));
            assert_eq!(queue.next(weight + 1).await.map(indexes), Some(vec![1, 2]));
            assert_eq!(queue.depth(), (1, weight));
            assert!(queue.push(frame(4)));
            assert!(queue.push(frame(5)));
            assert!(!queue.push(frame(6)), "it is full");
            queue.overflowed().await;
            assert_eq!(queue.depth(), (0, 0), "what waited is dropped");
            assert_eq!(queue.next(1).await.map(indexes), None);
            assert!(!queue.push(frame(7)), "until it is opened again");
            queue.open();
            assert!(queue.push(frame(8)));
            assert_eq!(queue.next(usize::MAX).await.map(indexes), Some(vec![8]));
        }
    }
}
