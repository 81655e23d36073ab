//! What is counted about a peer.

use std::collections::VecDeque;
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
    /// Half of the last [`RTT_KEPT`] were no longer.
    pub p50_ns: u64,
    /// 99 of 100 of the last [`RTT_KEPT`] were no longer.
    pub p99_ns: u64,
}

/// Round trips that percentiles are taken from: the last two minutes, a ping a second.
pub const RTT_KEPT: usize = 120;

#[derive(Default)]
pub(super) struct Meter {
    pub(super) sent_frames: AtomicU64,
    /// By lane, urgent first, as all pairs here.
    pub(super) sent_bytes: [AtomicU64; 2],
    pub(super) received_frames: AtomicU64,
    pub(super) received_bytes: [AtomicU64; 2],
    pub(super) cuts: AtomicU64,
    state: Mutex<State>,
}

#[derive(Clone, Default)]
struct State {
    connected: Option<Connected>,
    rtt: Option<Seen>,
    last_fault: Option<String>,
}

#[derive(Clone)]
struct Seen {
    last_ns: u64,
    min_ns: u64,
    avg_ns: u64,
    /// The newest last.
    kept: VecDeque<u64>,
}

impl Seen {
    fn first(ns: u64) -> Self {
        Self {
            last_ns: ns,
            min_ns: ns,
            avg_ns: ns,
            kept: VecDeque::from([ns]),
        }
    }

    fn add(&mut self, ns: u64) {
        self.last_ns = ns;
        self.min_ns = self.min_ns.min(ns);
        self.avg_ns = self.avg_ns - self.avg_ns / 8 + ns / 8;
        if self.kept.len() >= RTT_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(ns);
    }

    fn rtt(&self) -> Rtt {
        let mut sorted: Vec<u64> = self.kept.iter().copied().collect();
        sorted.sort_unstable();
        // The smallest that so many of a hundred do not exceed.
        let percentile = |of_hundred: usize| {
            let rank = (sorted.len() * of_hundred).div_ceil(100);
            sorted
                .get(rank.saturating_sub(1))
                .copied()
                .unwrap_or(self.last_ns)
        };
        Rtt {
            last_ns: self.last_ns,
            min_ns: self.min_ns,
            avg_ns: self.avg_ns,
            p50_ns: percentile(50),
            p99_ns: percentile(99),
        }
    }
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
        self.with(|state| match &mut state.rtt {
            Some(seen) => seen.add(ns),
            None => state.rtt = Some(Seen::first(ns)),
        });
    }

    pub(super) fn rtt(&self) -> Option<Rtt> {
        self.with(|state| state.rtt.as_ref().map(Seen::rtt))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_the_last_round_trips() {
        let meter = Meter::default();
        assert_eq!(meter.rtt(), None);
        meter.round_trip(7);
        let rtt = meter.rtt().unwrap();
        assert_eq!((rtt.min_ns, rtt.p50_ns, rtt.p99_ns), (7, 7, 7));
        // The first ones are forgotten, but for the shortest.
        for ns in 1..=RTT_KEPT as u64 {
            meter.round_trip(ns * 1000);
        }
        let rtt = meter.rtt().unwrap();
        assert_eq!(
            (rtt.min_ns, rtt.last_ns, rtt.p50_ns, rtt.p99_ns),
            (7, 120_000, 60_000, 119_000)
        );
        meter.disconnected("gone");
        assert_eq!(meter.rtt(), None);
    }
}
