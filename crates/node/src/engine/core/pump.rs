//! Carries committed messages between shards: the sending shard's leader proposes them to the receiving shard's.

use super::*;

/// One channel's progress as far as this node drives it. Lost with the process or the lead; repeats are ignored.
#[derive(Clone, Copy, Default)]
pub(super) struct Link {
    /// Messages below this number were proposed to the receiving shard.
    pub(super) sent: u64,
    /// Entries with messages that were proposed and have no outcome yet.
    pub(super) in_flight: usize,
    /// Confirmations below this number were proposed to the sending shard.
    pub(super) confirmed: u64,
    /// Messages that the receiving shard could not take yet are not offered again before this time.
    pub(super) again_after: Timestamp,
}

/// Messages that a shard could not take yet are offered again after this long.
const AGAIN_AFTER_NS: u64 = 20_000_000;

/// Proposed and unconfirmed messages of one channel: bandwidth times round trip of credit advices, and a bound on what is
/// repeated after a change of leader.
const LINK_MAX_MESSAGES: u64 = 64 * 1024;

impl Core {
    /// An entry that does nothing but let due times pass.
    pub(super) fn propose_ticks(&mut self) {
        let now = self.shared.clock.now();
        for at in 0..self.shards.len() {
            if self.shards[at].tick_in_flight || !self.shards[at].leads() {
                continue;
            }
            let due = self
                .shared
                .shard(self.shards[at].id)
                .ledger
                .next_timer()
                .is_some_and(|time| time <= now);
            if due {
                self.shards[at].tick_in_flight = true;
                self.propose_command(at, &Command::Tick, Origin::Tick);
            }
        }
    }

    /// Carries committed messages to their shards, in order, and confirmations back.
    pub(super) fn pump(&mut self) {
        if !std::mem::take(&mut self.dirty) || self.group.is_witness() {
            return;
        }
        for from in 0..self.shards.len() {
            if self.shards[from].leads() {
                for to in 0..self.shards.len() {
                    self.pump_link(from, to);
                }
            }
        }
    }

    /// Whether a channel has something that was not proposed yet.
    pub(super) fn work_for_pump(&self) -> bool {
        (0..self.shards.len()).any(|from| {
            let sender = self.shared.shard(self.shards[from].id);
            (0..self.shards.len()).any(|to| {
                let (first, end) = sender.ledger.outbound_range(self.shards[to].id);
                first < end
            })
        })
    }

    fn pump_link(&mut self, from: usize, to: usize) {
        let (sender, receiver) = (self.shards[from].id, self.shards[to].id);
        let now = self.shared.clock.steady();
        loop {
            let link = self.shards[from].links[to];
            let (first, messages) = {
                let state = self.shared.shard(sender);
                let (kept, end) = state.ledger.outbound_range(receiver);
                if link.sent >= end || link.sent > kept + LINK_MAX_MESSAGES {
                    break;
                }
                if now < link.again_after {
                    self.dirty = true;
                    break;
                }
                state
                    .ledger
                    .outbound(receiver, link.sent, DELIVER_MAX_MESSAGES)
            };
            if messages.is_empty() {
                break;
            }
            let link = &mut self.shards[from].links[to];
            link.sent = first + messages.len() as u64;
            link.in_flight += 1;
            let command = Command::Deliver {
                from: sender,
                first,
                messages,
            };
            self.propose_command(to, &command, Origin::Deliver { from, to });
        }
        let applied = self.shared.shard(receiver).ledger.inbound_next(sender);
        let (first, _) = self.shared.shard(sender).ledger.outbound_range(receiver);
        let link = &mut self.shards[from].links[to];
        if applied > first.max(link.confirmed) {
            link.confirmed = applied;
            let command = Command::Delivered {
                to: receiver,
                through: applied - 1,
            };
            self.propose_command(from, &command, Origin::Delivered { from, to });
        }
    }

    /// An entry with messages has an outcome. What it did not get applied goes again from where the receiving shard
    /// stands: entries that were dropped, and credits to an account that it does not know yet.
    pub(super) fn delivered(&mut self, from: usize, to: usize) {
        let (sender, receiver) = (self.shards[from].id, self.shards[to].id);
        let applied = self.shared.shard(receiver).ledger.inbound_next(sender);
        let again_after = self.shared.clock.steady().plus_ns(AGAIN_AFTER_NS);
        let link = &mut self.shards[from].links[to];
        // A new lead counts anew.
        link.in_flight = link.in_flight.saturating_sub(1);
        if link.in_flight == 0 && applied < link.sent {
            link.sent = applied;
            link.again_after = again_after;
            self.dirty = true;
        }
    }
}
