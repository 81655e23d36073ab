//! The operator changes who there is: a data node is wiped and comes back under a new number, nodes are drained, shards are
//! given to other leaders (ADR 0022). The groups keep their size, so what is lost stays within the atlas.

use clearspan_ledger::nodes::{NodeCommand, NodeRecord};
use clearspan_ledger::{Reply, ShardId, entry::Command};
use clearspan_node::engine::Lane;

use crate::node::member;
use crate::reach::reach;
use crate::world::World;

/// An act on its way: the command, and the place of the node that is replaced by it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Act {
    command: usize,
    replaced: Option<usize>,
}

impl World {
    /// What the directory says of a node.
    pub(crate) fn record(&self, at: usize) -> NodeRecord {
        NodeRecord {
            member: member(at).get(),
            id: at as u128 + 1,
            name: format!("N{at}"),
            site: format!("S{}", self.plan.sites[at]),
            witness: self.nodes[at].witness,
            peer: format!("n{at}:1"),
            client: format!("n{at}:2"),
            ..NodeRecord::default()
        }
    }

    /// The founders, as shard 0's journal is told of them.
    pub(crate) fn founders(&self) -> Vec<NodeRecord> {
        (0..self.plan.founders).map(|at| self.record(at)).collect()
    }

    /// Begins a change, unless one is on its way; false when there is none to make.
    pub(crate) fn change_members(&mut self) -> bool {
        if self.member_act.is_some() {
            return false;
        }
        let data: Vec<usize> = (0..self.nodes.len())
            .filter(|&at| self.nodes[at].joined && !self.nodes[at].witness)
            .filter(|&at| !self.nodes[at].replaced)
            .collect();
        let at = self.fault_rng.pick(&data);
        let number = member(at).get();
        let (command, replaced) = match self.fault_rng.below(3) {
            0 => {
                let draining = self.fault_rng.per_mille(500);
                let drain = NodeCommand::Drain {
                    member: number,
                    draining,
                };
                (drain, None)
            }
            1 => {
                let shard = self.fault_rng.below(u64::from(self.plan.shards));
                let shard = ShardId::new(u16::try_from(shard).unwrap_or(0));
                let member = self.fault_rng.per_mille(800).then_some(number);
                (NodeCommand::MoveLeader { shard, member }, None)
            }
            _ => {
                let spare = (0..self.nodes.len()).find(|&at| !self.nodes[at].joined);
                let Some(spare) = spare.filter(|_| self.may_be_damaged(at)) else {
                    return false;
                };
                self.atlas.give_up(at);
                self.plan.sites[spare] = self.plan.sites[at];
                let node = NodeRecord {
                    replaces: Some(number),
                    name: format!("N{at}"),
                    ..self.record(spare)
                };
                (NodeCommand::Add { node }, Some(at))
            }
        };
        let command = self.issue(
            ShardId::new(0),
            Command::Nodes(command),
            Lane::Urgent,
            None,
            false,
        );
        self.member_act = Some(Act { command, replaced });
        true
    }

    /// When it was answered: a replaced node is gone with its disk, and the one in its place starts with an empty one.
    pub(crate) fn follow_members(&mut self) {
        let Some(act) = self.member_act else { return };
        let issued = &self.history.commands[act.command];
        if !issued.ended {
            return;
        }
        let done = issued.answer.as_ref().map(|answer| &answer.reply) == Some(&Reply::Done);
        self.member_act = None;
        if !done {
            reach("an act on nodes was refused");
            return;
        }
        let Some(old) = act.replaced else {
            reach("a node was drained or a shard was moved");
            return;
        };
        // Numbers are given one after another.
        let Some(new) = (0..self.nodes.len()).find(|&at| !self.nodes[at].joined) else {
            return;
        };
        reach("a node was replaced");
        if self.nodes[old].lost {
            reach("a lost node was replaced");
        }
        self.say(|| format!("n{new} takes the place of n{old}"));
        self.nodes[old].replaced = true;
        self.nodes[old].lost = true;
        self.die(old, true);
        self.nodes[new].joined = true;
        self.start(new);
    }

    /// What of a change is not in force yet.
    pub(crate) fn open_change(&self) -> Option<String> {
        if self.member_act.is_some() {
            return Some("an act on nodes has no answer".to_owned());
        }
        for shard in self.shards() {
            let life = self.nodes[self.leader(shard)?].life.as_ref()?;
            for status in life.stepped.status().iter().filter(|s| s.shard == shard) {
                let group = &status.membership;
                let left = (0..self.nodes.len()).find(|&at| {
                    let votes = group.voters.contains(&member(at));
                    votes != (self.nodes[at].joined && !self.nodes[at].replaced)
                });
                if let Some(at) = left.filter(|_| self.plan.changes_members()) {
                    return Some(format!(
                        "node {at} is not what it should be in the group of shard {shard}: {group:?}"
                    ));
                }
            }
        }
        None
    }
}
