//! The nodes of the cluster as they change: what shard 0's journal says of them reaches every node, also those that do not
//! apply it; links and groups follow (ADR 0022).

use clearspan_ledger::nodes::NodeDirectory;

use super::super::reconcile::{self, Step, View, Wait};
use super::*;

/// A leader proposes no further change of a group before the last one has come into force, or this long has passed.
const CHANGE_INTERVAL_NS: u64 = 1_000_000_000;
/// A member that lags by more entries than this has not caught up.
const CAUGHT_UP_MAX_LAG: u64 = 512;

/// What a node knows of the nodes, itself included.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Who there is.
    pub(crate) directory: NodeDirectory,
    /// The newest life of each member that this node has met or heard of.
    pub(crate) lives: BTreeMap<MemberId, u64>,
}

/// How a shard's group follows the directory, of meaning while this node leads.
#[derive(Default)]
pub(super) struct Following {
    /// What the next change waits for.
    pub(super) wait: Option<Wait>,
    /// No change is proposed before this time.
    after: Timestamp,
}

impl Core {
    /// Shard 0 may have decided something about nodes.
    pub(super) fn look_for_nodes(&mut self, at: usize) {
        if at != 0 || self.group.is_witness() {
            return;
        }
        let newer = {
            let state = self.shared.shard(self.shards[at].id);
            let directory = state.ledger.nodes();
            (directory.version() > self.known.directory.version()).then(|| directory.clone())
        };
        if let Some(directory) = newer {
            self.learn_nodes(directory, Vec::new());
        }
    }

    /// A newer directory, or word of newer lives, from the journal or another node.
    pub(super) fn learn_nodes(&mut self, directory: NodeDirectory, lives: Vec<(MemberId, u64)>) {
        let newer = directory.version() > self.known.directory.version();
        let mut news = newer;
        for (member, life) in lives {
            let known = self.known.lives.entry(member).or_default();
            news |= life > *known;
            *known = life.max(*known);
        }
        if !news {
            return;
        }
        if newer {
            self.known.directory = directory;
            self.regroup_due = true;
        }
        self.peers.set_lives(&self.known.lives);
        self.store_known();
        self.tell_nodes(self.up.clone());
    }

    /// A member has begun a new life.
    pub(super) fn met(&mut self, member: MemberId, life: u64) {
        let directory = NodeDirectory::default();
        self.learn_nodes(directory, vec![(member, life)]);
    }

    fn store_known(&self) {
        let bytes = clearspan_codec::nodes::encode(&self.known.directory, &self.known.lives);
        let _ = self.snapshots.send(SnapshotTask::StoreNodes(bytes));
    }

    /// Tells members what this node knows of the nodes; what they know already they pass over.
    pub(super) fn tell_nodes(&mut self, members: BTreeSet<MemberId>) {
        if self.group.is_alone() {
            return;
        }
        for member in members {
            let frame = PeerFrame::Nodes {
                directory: self.known.directory.clone(),
                lives: self.known.lives.clone().into_iter().collect(),
            };
            // A peer that is gone is told when it is back.
            let _ = self.peers.send(member, frame);
        }
    }

    /// Everything that follows from the directory and from who is in the groups. Not while a replica's actions are being
    /// performed: it steps replicas itself.
    pub(super) fn regroup(&mut self) {
        self.group = self.seat.group(&self.known.directory);
        self.shared.set_nodes(self.known.directory.clone());
        let mut linked: BTreeSet<MemberId> =
            self.group.members.iter().map(|member| member.id).collect();
        for shard in &mut self.shards {
            let membership = shard.replica.membership();
            shard.preference = self.group.preference(shard.id);
            shard
                .preference
                .retain(|member| membership.voters.contains(member));
            // Who leaves is listened to until it has left.
            linked.extend(members_of(membership));
        }
        self.peers.set_nodes(&self.known.directory, &linked);
        for at in 0..self.shards.len() {
            let ticks = self
                .group
                .campaign_ticks(self.shards[at].id, ELECTION_TICKS);
            self.step(at, Event::CampaignTicks { ticks });
        }
    }

    /// The next step towards the members that a shard's group shall have.
    pub(super) fn reconcile(&mut self, at: usize, now: Timestamp) {
        let shard = &self.shards[at];
        // What it was founded with is what it has.
        if self.known.directory.version().get() == 0 || !shard.leads() {
            return;
        }
        if now < shard.following.after {
            return;
        }
        let committed = shard.replica.status().committed_index;
        let caught_up = |member| {
            let matched = shard.replica.matched_index(member);
            matched.is_some_and(|matched| matched + CAUGHT_UP_MAX_LAG >= committed)
        };
        let step = reconcile::next(&View {
            directory: &self.known.directory,
            shard: shard.id,
            me: self.group.me,
            membership: shard.replica.membership(),
            reachable: &|member| self.up.contains(&member),
            caught_up: &caught_up,
        });
        let following = &mut self.shards[at].following;
        match step {
            Step::Nothing => following.wait = None,
            Step::Wait(wait) => following.wait = Some(wait),
            Step::Change(changes) => {
                following.wait = Some(Wait::Change);
                following.after = now.plus_ns(CHANGE_INTERVAL_NS);
                self.next_correlation += 1;
                let correlation = Correlation(self.next_correlation);
                // Whether it came into force is seen by the group itself.
                self.step(
                    at,
                    Event::ChangeMembership {
                        changes,
                        correlation,
                    },
                );
            }
        }
    }

    /// A shard's group has changed.
    pub(super) fn membership_changed(&mut self, at: usize) {
        self.shards[at].following.after = Timestamp::ZERO;
        self.regroup_due = true;
    }
}

/// Everybody in a group, in whatever role.
fn members_of(membership: &Membership) -> impl Iterator<Item = MemberId> {
    [
        &membership.voters,
        &membership.learners,
        &membership.voters_outgoing,
        &membership.learners_next,
    ]
    .into_iter()
    .flatten()
    .copied()
}
