//! What a cluster will cost and survive, computed from its sites, distances and load before anything runs.
//!
//! Pure arithmetic: no file, socket, clock or randomness. The rules are those that the nodes obey (which nodes hold a shard,
//! who leads it, what a quorum is, when a successor stands); the tests hold them against the nodes' own code and against
//! running clusters. What is not computed is measured and given as a number: bytes per payment, and an urgent payment's time
//! where there is no distance.

#![forbid(unsafe_code)]

mod failure;
mod latency;
mod layout;
mod load;
mod survive;

pub use failure::{Damage, Part, Rpo, Serves, SiteTakes, Verdict, examine, verdicts};
pub use latency::{LeaderLatency, leader_latencies};
pub use layout::{Layout, LayoutError, NODES_MAX, SITES_MAX, Site};
pub use load::{
    Entry, Kernel, LinkLoad, Load, SocketNeed, UnderWay, link_loads, socket_need, under_way,
};
pub use survive::{Survive, SurviveError, Surviving, cheapest};

use serde::Serialize;

/// Ticks in an election timeout, as the nodes count.
pub const ELECTION_TICKS: u64 = 20;
/// The shortest election timeout over a distance, in round trips between the farthest sites: heartbeats get lost.
pub const ELECTION_RTTS: u64 = 10;
/// The nodes' own choice where distance does not ask for more.
pub const ELECTION_USUAL_NS: u64 = 1_000_000_000;

/// How fast failures are noticed, and what takes time without any distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Timing {
    /// For so long a leader that says nothing is held to.
    pub election_ns: u64,
    /// One fsync and a node's work: an urgent payment's time where there is no distance, from client to answer.
    pub local_ns: u64,
}

impl Timing {
    /// As measured, with an election timeout that fits the layout's longest line.
    #[must_use]
    pub fn of(layout: &Layout, local_ns: u64) -> Self {
        Self {
            election_ns: ELECTION_USUAL_NS.max(layout.rtt_max_ns() * ELECTION_RTTS),
            local_ns,
        }
    }

    /// One tick.
    #[must_use]
    pub const fn tick_ns(self) -> u64 {
        self.election_ns / ELECTION_TICKS
    }
}

/// Everything that is computed of one layout.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// The layout.
    pub layout: Layout,
    /// How fast failures are noticed.
    pub timing: Timing,
    /// What it shall carry.
    pub load: Load,
    /// What a payment costs that is led at each data site.
    pub leaders: Vec<LeaderLatency>,
    /// Every line between two sites, each way.
    pub links: Vec<LinkLoad>,
    /// What one node has under way, against what it may have.
    pub under_way: UnderWay,
    /// What the kernel must allow.
    pub sockets: SocketNeed,
    /// What each failure of one part does.
    pub singles: Vec<Verdict>,
    /// What each failure of two parts does.
    pub doubles: Vec<Verdict>,
}

impl Plan {
    /// Computes all of it; `kernel` is what the machine allows now, where that is known.
    #[must_use]
    pub fn new(layout: Layout, timing: Timing, load: Load, kernel: Option<Kernel>) -> Self {
        Self {
            leaders: leader_latencies(&layout, timing),
            links: link_loads(&layout, load),
            under_way: under_way(&layout, timing, load),
            sockets: socket_need(&layout, load, kernel),
            singles: verdicts(&layout, timing, 1),
            doubles: verdicts(&layout, timing, 2),
            layout,
            timing,
            load,
        }
    }
}
