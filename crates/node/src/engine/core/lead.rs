//! Who leads: the preferred member when it is there, never a witness for longer than it takes to hand over.

use super::*;

/// How long a leader waits between two tries to hand over: a new leader settles first, a target that just came back
/// catches up first.
const HAND_OVER_INTERVAL_NS: u64 = 2_000_000_000;
/// A target that lags by more entries than this is not handed anything yet.
const HAND_OVER_MAX_LAG: u64 = 512;

impl Core {
    pub(super) fn became_leader(&mut self, at: usize) {
        let now = self.shared.clock.now();
        let shard = &mut self.shards[at];
        shard.links.fill(Link::default());
        shard.tick_in_flight = false;
        // A witness hands over as soon as it can.
        let wait_ns = if self.group.is_witness() {
            0
        } else {
            HAND_OVER_INTERVAL_NS
        };
        shard.hand_over_after = now.plus_ns(wait_ns);
        self.dirty = true;
        self.unpark(at);
    }

    /// Hands the lead to a member that should have it and can be reached (fail-back without hands).
    pub(super) fn hand_over(&mut self, at: usize, now: Timestamp) {
        let shard = &self.shards[at];
        if self.group.is_alone() || !shard.leads() || now < shard.hand_over_after {
            return;
        }
        let me = self.group.me;
        let better = shard
            .preference
            .iter()
            .copied()
            .take_while(|&member| member != me);
        let Some(target) = better.into_iter().find(|member| self.up.contains(member)) else {
            return;
        };
        let status = shard.replica.status();
        let matched = shard.replica.matched_index(target).unwrap_or(0);
        if matched + HAND_OVER_MAX_LAG < status.committed_index {
            return;
        }
        self.shards[at].hand_over_after = now.plus_ns(HAND_OVER_INTERVAL_NS);
        self.step(at, Event::TransferLeadership { to: target });
    }

    /// Tells witnesses up to where every data member holds the log, so that they can let it go.
    pub(super) fn tell_witnesses(&mut self, at: usize) {
        let shard = &self.shards[at];
        if self.group.is_alone() || !shard.leads() {
            return;
        }
        let data = self.group.members.iter().filter(|member| !member.witness);
        let held = data
            .map(|member| shard.replica.matched_index(member.id).unwrap_or(0))
            .min()
            .unwrap_or(0);
        if held <= shard.held_by_all {
            return;
        }
        let id = shard.id;
        self.shards[at].held_by_all = held;
        for witness in self.group.members.iter().filter(|member| member.witness) {
            // Lost ones are made up for by the next.
            let _ = self.peers.send(
                witness.id,
                PeerFrame::Held {
                    shard: id,
                    index: held,
                },
            );
        }
    }
}
