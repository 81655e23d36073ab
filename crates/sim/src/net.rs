//! The network between the nodes, per directed link: delay, jitter, cuts, and connections that break when a cut lasts.

use std::collections::BTreeMap;

use crate::plan::Plan;
use crate::reach::reach;
use crate::rng::Rng;

/// One direction of a pair.
#[derive(Clone, Debug, Default)]
pub(crate) struct Direction {
    /// Cuts in force; flows only while there is none.
    pub(crate) cuts: u32,
    /// When the last frame of each lane arrives: those behind come no earlier.
    last_ns: [u64; 2],
    /// Bytes on the way.
    pub(crate) queued_bytes: usize,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Pair {
    pub(crate) connected: bool,
    /// Counts connections: what was on its way on an earlier one is lost.
    pub(crate) epoch: u64,
    /// Since when one of the directions does not flow.
    pub(crate) cut_since_ns: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Net {
    directions: BTreeMap<(usize, usize), Direction>,
    pairs: BTreeMap<(usize, usize), Pair>,
    /// Drop, double and overtake, per mille.
    pub(crate) datagrams: Option<(u64, u64, u64)>,
}

/// Where a frame ends up.
pub(crate) struct Way {
    pub(crate) at_ns: u64,
    pub(crate) epoch: u64,
    pub(crate) again_ns: Option<u64>,
}

fn pair_of(a: usize, b: usize) -> (usize, usize) {
    (a.min(b), a.max(b))
}

impl Net {
    pub(crate) fn new(nodes: usize) -> Self {
        let mut directions = BTreeMap::new();
        let mut pairs = BTreeMap::new();
        for a in 0..nodes {
            for b in 0..nodes {
                if a != b {
                    directions.insert((a, b), Direction::default());
                    pairs.insert(pair_of(a, b), Pair::default());
                }
            }
        }
        Self {
            directions,
            pairs,
            datagrams: None,
        }
    }

    pub(crate) fn pair(&self, a: usize, b: usize) -> &Pair {
        &self.pairs[&pair_of(a, b)]
    }

    pub(crate) fn pair_mut(&mut self, a: usize, b: usize) -> &mut Pair {
        self.pairs.get_mut(&pair_of(a, b)).expect("two nodes")
    }

    pub(crate) fn direction_mut(&mut self, from: usize, to: usize) -> &mut Direction {
        self.directions.get_mut(&(from, to)).expect("two nodes")
    }

    /// When all that is on its way has arrived.
    pub(crate) fn drained_ns(&self, from: usize, to: usize) -> u64 {
        let last_ns = self.directions[&(from, to)].last_ns;
        last_ns[0].max(last_ns[1])
    }

    pub(crate) fn flows(&self, from: usize, to: usize) -> bool {
        self.directions[&(from, to)].cuts == 0
    }

    pub(crate) fn flows_both(&self, a: usize, b: usize) -> bool {
        self.flows(a, b) && self.flows(b, a)
    }

    /// When a frame that leaves now arrives.
    #[expect(clippy::too_many_arguments, reason = "a frame and the link it takes")]
    pub(crate) fn send(
        &mut self,
        plan: &Plan,
        rng: &mut Rng,
        now_ns: u64,
        from: usize,
        to: usize,
        urgent: bool,
        raft: bool,
        bytes: usize,
    ) -> Option<Way> {
        let epoch = self.pair(from, to).epoch;
        let base = if plan.sites[from] == plan.sites[to] {
            plan.delay_local_ns
        } else {
            plan.delay_sites_ns
        };
        let delay = base + rng.below(plan.jitter_ns + 1) + bytes as u64 * 8;
        let datagrams = self.datagrams.filter(|_| raft);
        let direction = self.direction_mut(from, to);
        let mut at_ns = now_ns + delay;
        let mut again_ns = None;
        let mut overtaken = false;
        if let Some((drop, double, overtake)) = datagrams {
            if rng.per_mille(drop) {
                reach("a raft message was dropped");
                return None;
            }
            if rng.per_mille(double) {
                reach("a raft message came twice");
                again_ns = Some(at_ns + rng.around(delay * 4 + 1_000_000));
            }
            if rng.per_mille(overtake) {
                reach("a raft message was overtaken");
                at_ns += rng.around(delay * 4 + 1_000_000);
                overtaken = true;
            }
        }
        if !overtaken {
            let last = &mut direction.last_ns[usize::from(urgent)];
            at_ns = at_ns.max(*last);
            *last = at_ns;
        }
        direction.queued_bytes += bytes;
        Some(Way {
            at_ns,
            epoch,
            again_ns,
        })
    }
}
