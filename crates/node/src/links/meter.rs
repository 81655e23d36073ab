//! What is counted about a peer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// A peer's round trip, from one ping per second on the urgent lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtt {
    /// The last one.
    pub last_ns: u64,
    /// The shortest since the connection stands.
    pub min_ns: u64,
    /// Smoothed: a new one counts an eighth.
    pub avg_ns: u64,
}

#[derive(Default)]
pub(super) struct Meter {
    pub(super) sent_frames: AtomicU64,
    pub(super) sent_bytes: AtomicU64,
    pub(super) received_frames: AtomicU64,
    pub(super) received_bytes: AtomicU64,
    pub(super) cuts: AtomicU64,
    state: Mutex<State>,
}

#[derive(Clone, Default)]
struct State {
    connected: Option<Connected>,
    rtt: Option<Rtt>,
    last_fault: Option<String>,
}

#[derive(Clone, Copy)]
struct Connected {
    since: Instant,
    incarnation: u64,
}

/// Now, by the runtime's clock: connections and round trips are nobody's log time.
pub(super) fn now() -> Instant {
    Instant::now()
}

pub(super) fn count(counter: &AtomicU64, by: usize) {
    counter.fetch_add(by as u64, Ordering::Relaxed);
}

impl Meter {
    fn with<T>(&self, body: impl FnOnce(&mut State) -> T) -> T {
        body(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn connected(&self, incarnation: u64) {
        self.with(|state| {
            state.connected = Some(Connected {
                since: now(),
                incarnation,
            });
            state.rtt = None;
        });
    }

    pub(super) fn disconnected(&self, fault: &str) {
        self.with(|state| {
            if state.connected.take().is_some() {
                self.cuts.fetch_add(1, Ordering::Relaxed);
            }
            state.rtt = None;
            state.last_fault = Some(fault.to_owned());
        });
    }

    pub(super) fn round_trip(&self, ns: u64) {
        self.with(|state| {
            state.rtt = Some(state.rtt.map_or(
                Rtt {
                    last_ns: ns,
                    min_ns: ns,
                    avg_ns: ns,
                },
                |rtt| Rtt {
                    last_ns: ns,
                    min_ns: rtt.min_ns.min(ns),
                    avg_ns: rtt.avg_ns - rtt.avg_ns / 8 + ns / 8,
                },
            ));
        });
    }

    pub(super) fn rtt(&self) -> Option<Rtt> {
        self.with(|state| state.rtt)
    }

    /// For how long the peer has been connected, and its incarnation.
    pub(super) fn connection(&self) -> Option<(u64, u64)> {
        self.with(|state| {
            state
                .connected
                .map(|connected| (elapsed_ns(connected.since), connected.incarnation))
        })
    }

    pub(super) fn last_fault(&self) -> Option<String> {
        self.with(|state| state.last_fault.clone())
    }
}

pub(super) fn elapsed_ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
