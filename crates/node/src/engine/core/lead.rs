//! Who leads: the preferred member when it is there, never a witness for longer than it takes to hand over.

use super::*;

/// How long a leader waits between two tries to hand over: a new leader settles first, a target that just came back
/// catches up first.
const HAND_OVER_INTERVAL_NS: u64 = 2_000_000_000;
/// A target that lags by more entries than this is not handed anything yet.
const HAND_OVER_MAX_LAG: u64 = 512;

/// Beats for which a leader's broken connection may be back before the leader is given up: a new one takes a pause and four
/// round trips, and the turns to stand for election come on top.
const GIVE_UP_TICKS: u64 = 4;
/// Elections on the connection's word are no closer than this: a line that comes and goes is left to heartbeats.
const GIVE_UP_INTERVAL_NS: u64 = 10_000_000_000;

impl Core {
    /// A process that ends has its connections broken by the system, long before its silence says so. A leader that only
    /// lost a connection is heard by its heartbeats meanwhile, which undoes this.
    pub(super) fn give_up_leader(&mut self, at: usize, now: Timestamp) {
        let shard = &self.shards[at];
        if self.gone.is_empty() || now < shard.give_up_after {
            return;
        }
        let Some(leader) = shard.replica.status().leader else {
            return;
        };
        let patience_ns = GIVE_UP_TICKS * self.tick_ns;
        if self
            .gone
            .get(&leader)
            .is_some_and(|since| since.plus_ns(patience_ns) <= now)
        {
            self.shards[at].give_up_after = now.plus_ns(GIVE_UP_INTERVAL_NS);
            self.step(at, Event::LeaderLost { leader });
        }
    }

    /// Commands that wait for an answer of another leader go to the new one, where twice does no harm: the old one may be
    /// gone without a word.
    pub(super) fn leader_changed(&mut self, at: usize, leader: Option<MemberId>) {
        let id = self.shards[at].id;
        if let Some(leader) = leader {
            let stranded: Vec<u64> = self
                .forwarded
                .iter()
                .filter(|(_, (to, pending))| {
                    *to != leader && pending.shard == id && pending.repeatable
                })
                .map(|(&number, _)| number)
                .collect();
            for number in stranded {
                if let Some((_, pending)) = self.forwarded.remove(&number) {
                    self.settle(pending, Err(ProposeError::Unknown));
                }
            }
        }
        // Readers ask again, whoever it is now.
        self.end_reads(|read| read.shard == id && Some(read.to) != leader);
        self.unpark(at);
    }

    pub(super) fn became_leader(&mut self, at: usize) {
        let now = self.shared.clock.steady();
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
        // Who follows without a vote has promised nothing yet: it does not hold the witnesses' logs.
        let membership = shard.replica.membership();
        let voters = membership.voters.iter().chain(&membership.voters_outgoing);
        let keeps_log_only = |member: MemberId| {
            self.known
                .directory
                .get(member.get())
                .is_some_and(|node| node.witness)
        };
        let held = voters
            .filter(|&&member| !keeps_log_only(member))
            .map(|&member| shard.replica.matched_index(member).unwrap_or(0))
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
