//! The fault atlas: what is damaged for good, and where. Damage is bounded, so that a correct cluster must go on: fewer than
//! half of the nodes are ever touched, and a data node never is. A touched node may have to stop, and then it must.

use std::collections::BTreeSet;

use clearspan_ledger::ShardId;

use crate::world::World;

/// Damage so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Atlas {
    /// Nodes with unreadable entries in their logs.
    logs: BTreeSet<usize>,
    /// Nodes with a snapshot that cannot be read.
    snapshots: BTreeSet<usize>,
    /// Nodes whose disks are wiped.
    given_up: BTreeSet<usize>,
}

impl Atlas {
    fn is_touched(&self, node: usize) -> bool {
        [&self.logs, &self.snapshots, &self.given_up]
            .iter()
            .any(|nodes| nodes.contains(&node))
    }

    /// A node is to lose its disk.
    pub(crate) fn give_up(&mut self, node: usize) {
        self.given_up.insert(node);
    }
}

pub(crate) fn number(shard: ShardId) -> clearspan_replica::ShardId {
    clearspan_replica::ShardId::new(shard.get())
}

impl World {
    /// Whether damage to this node leaves the others enough.
    pub(crate) fn may_be_damaged(&self, node: usize) -> bool {
        let touched = |at: &usize| self.atlas.is_touched(*at) || self.nodes[*at].lost;
        if touched(&node) {
            return true;
        }
        let count = (0..self.nodes.len()).filter(touched).count() + 1;
        let is_left = |at: &usize| {
            *at != node && *at < self.plan.founders && !self.nodes[*at].witness && !touched(at)
        };
        let data_left = (0..self.nodes.len()).any(|at| is_left(&at));
        count * 2 < self.plan.founders && data_left
    }

    pub(crate) fn damage_log(&mut self, node: usize, shard: ShardId) {
        self.nodes[node].disk.damage_log(number(shard));
        self.atlas.logs.insert(node);
    }

    /// Damages the newest snapshot of a shard, when there is one.
    pub(crate) fn damage_snapshot(&mut self, node: usize, shard: ShardId) {
        if self.nodes[node].disk.damage_snapshot(number(shard)) {
            self.atlas.snapshots.insert(node);
        }
    }

    /// Whether a node has read what is damaged and had to stop.
    pub(crate) fn may_stop(&self, node: usize) -> bool {
        self.atlas.logs.contains(&node) || self.nodes[node].disk.state().sync_failed
    }

    /// I17: whether a node must not start: its log cannot be read, or begins behind every snapshot that can.
    pub(crate) fn must_refuse(&self, node: usize) -> bool {
        self.atlas.logs.contains(&node)
            || self
                .shards()
                .any(|shard| self.nodes[node].disk.is_cut_off(number(shard)))
    }
}
