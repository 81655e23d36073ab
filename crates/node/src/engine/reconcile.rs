//! From the members that a shard's group has to those that it shall have, one step at a time (ADR 0022).
//!
//! A step is taken by the group's leader only, and only where both what is and what would be have a majority of voters that
//! are there and have caught up: no step may cost the quorum. A new member follows without a vote until it has caught up; a
//! replaced one leaves in the same joint change in which its replacement begins to vote.

use std::fmt;

use clearspan_ledger::ShardId;
use clearspan_ledger::nodes::{NodeDirectory, NodeState};
use clearspan_replica::{Change, MemberId, Membership};

/// What a leader knows.
pub(crate) struct View<'a> {
    pub(crate) directory: &'a NodeDirectory,
    pub(crate) shard: ShardId,
    pub(crate) me: MemberId,
    pub(crate) membership: &'a Membership,
    /// Whether a member can be reached.
    pub(crate) reachable: &'a dyn Fn(MemberId) -> bool,
    /// Whether a member's log is nearly as long as the leader's.
    pub(crate) caught_up: &'a dyn Fn(MemberId) -> bool,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing: the group is as it shall be.
    Nothing,
    /// Propose this.
    Change(Vec<Change>),
    /// Something must happen first.
    Wait(Wait),
}

/// What a change of a group waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A change that is under way.
    Change,
    /// A new member that cannot be reached.
    Unreachable(MemberId),
    /// A new member that has not caught up.
    CatchUp(MemberId),
    /// Another leader: this one is to leave.
    Leader,
    /// More voters that are there and have caught up: without them the change would cost the quorum.
    Quorum {
        /// Voters after the change.
        voters: usize,
        /// Of them are there.
        there: usize,
    },
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Change => f.write_str("a change is under way"),
            Self::Unreachable(member) => {
                write!(f, "member {} cannot be reached: start it", member.get())
            }
            Self::CatchUp(member) => write!(f, "member {} is catching up", member.get()),
            Self::Leader => f.write_str("the leader is to leave: another one takes over first"),
            Self::Quorum { voters, there } => write!(
                f,
                "of {voters} voters only {there} would be there: no majority; start those that are down"
            ),
        }
    }
}

/// The next step.
pub(crate) fn next(view: &View<'_>) -> Step {
    let membership = view.membership;
    if !membership.voters_outgoing.is_empty() {
        return Step::Wait(Wait::Change);
    }
    let wanted: Vec<MemberId> = view
        .directory
        .wanted(view.shard)
        .filter_map(|node| MemberId::new(node.member))
        .collect();
    let votes = |member: &MemberId| membership.voters.contains(member);
    let follows = |member: &MemberId| membership.learners.contains(member);
    if let Some(&stranger) = membership.learners.iter().find(|one| !wanted.contains(one)) {
        return Step::Change(vec![Change::Remove(stranger)]);
    }
    let mut wait = None;
    for &new in wanted.iter().filter(|one| !votes(one) && !follows(one)) {
        if (view.reachable)(new) {
            return Step::Change(vec![Change::AddLearner(new)]);
        }
        wait.get_or_insert(Wait::Unreachable(new));
    }
    for &learner in wanted.iter().filter(|one| follows(one)) {
        if !(view.reachable)(learner) {
            wait.get_or_insert(Wait::Unreachable(learner));
            continue;
        }
        if !(view.caught_up)(learner) {
            wait.get_or_insert(Wait::CatchUp(learner));
            continue;
        }
        let replaced: Vec<MemberId> = leaving(view, &wanted)
            .filter(|old| successor(view.directory, *old) == Some(learner))
            .collect();
        if replaced.contains(&view.me) {
            wait.get_or_insert(Wait::Leader);
            continue;
        }
        let mut voters: Vec<MemberId> = membership.voters.clone();
        voters.retain(|voter| !replaced.contains(voter));
        voters.push(learner);
        match quorum(view, &voters) {
            Ok(()) => {
                let removals = replaced.into_iter().map(Change::Remove);
                let changes = std::iter::once(Change::AddVoter(learner)).chain(removals);
                return Step::Change(changes.collect());
            }
            Err(short) => {
                wait.get_or_insert(short);
            }
        }
    }
    for old in leaving(view, &wanted) {
        // Its place is to be taken by one that does not vote yet: both in one change.
        if successor(view.directory, old).is_some_and(|next| !votes(&next)) {
            continue;
        }
        if old == view.me {
            wait.get_or_insert(Wait::Leader);
            continue;
        }
        let mut voters = membership.voters.clone();
        voters.retain(|voter| *voter != old);
        match quorum(view, &voters) {
            Ok(()) => return Step::Change(vec![Change::Remove(old)]),
            Err(short) => {
                wait.get_or_insert(short);
            }
        }
    }
    wait.map_or(Step::Nothing, Step::Wait)
}

/// Voters that shall not be members.
fn leaving<'a>(
    view: &'a View<'_>,
    wanted: &'a [MemberId],
) -> impl Iterator<Item = MemberId> + use<'a> {
    let voters = view.membership.voters.iter().copied();
    voters.filter(|voter| !wanted.contains(voter))
}

fn successor(directory: &NodeDirectory, old: MemberId) -> Option<MemberId> {
    directory
        .successor(old.get())
        .filter(|next| next.state != NodeState::Removed)
        .and_then(|next| MemberId::new(next.member))
}

/// Whether these voters would have a majority that is there.
fn quorum(view: &View<'_>, voters: &[MemberId]) -> Result<(), Wait> {
    let there = voters
        .iter()
        .filter(|&&voter| voter == view.me || (view.reachable)(voter) && (view.caught_up)(voter))
        .count();
    if there * 2 > voters.len() {
        Ok(())
    } else {
        Err(Wait::Quorum {
            voters: voters.len(),
            there,
        })
    }
}

#[cfg(test)]
mod tests {
    use clearspan_ledger::nodes::NodeRecord;

    use super::*;

    fn id(number: u64) -> MemberId {
        MemberId::new(number).unwrap()
    }

    fn ids(numbers: &[u64]) -> Vec<MemberId> {
        numbers.iter().map(|&number| id(number)).collect()
    }

    /// Nodes 1 to `count`; `gone` are removed; a pair says who replaces whom.
    fn directory(count: u64, gone: &[u64], replaces: &[(u64, u64)]) -> NodeDirectory {
        let node = |member| NodeRecord {
            member,
            state: if gone.contains(&member) {
                NodeState::Removed
            } else {
                NodeState::Active
            },
            replaces: replaces
                .iter()
                .find(|(new, _)| *new == member)
                .map(|&(_, old)| old),
            ..NodeRecord::default()
        };
        NodeDirectory::founding((1..=count).map(node).collect())
    }

    struct Case {
        directory: NodeDirectory,
        voters: Vec<u64>,
        learners: Vec<u64>,
        down: Vec<u64>,
        behind: Vec<u64>,
    }

    impl Case {
        fn new(directory: NodeDirectory, voters: &[u64]) -> Self {
            Self {
                directory,
                voters: voters.into(),
                learners: Vec::new(),
                down: Vec::new(),
                behind: Vec::new(),
            }
        }

        fn step(&self, me: u64) -> Step {
            let membership = Membership {
                voters: ids(&self.voters),
                learners: ids(&self.learners),
                ..Membership::default()
            };
            next(&View {
                directory: &self.directory,
                shard: ShardId::new(0),
                me: id(me),
                membership: &membership,
                reachable: &|member| !self.down.contains(&member.get()),
                caught_up: &|member| !self.behind.contains(&member.get()),
            })
        }
    }

    #[test]
    fn a_new_member_follows_until_it_has_caught_up() {
        let mut case = Case::new(directory(4, &[], &[]), &[1, 2, 3]);
        case.down = vec![4];
        assert_eq!(case.step(1), Step::Wait(Wait::Unreachable(id(4))));
        case.down.clear();
        assert_eq!(case.step(1), Step::Change(vec![Change::AddLearner(id(4))]));
        case.learners = vec![4];
        case.behind = vec![4];
        assert_eq!(case.step(1), Step::Wait(Wait::CatchUp(id(4))));
        case.behind.clear();
        assert_eq!(case.step(1), Step::Change(vec![Change::AddVoter(id(4))]));
        let done = Case::new(directory(4, &[], &[]), &[1, 2, 3, 4]);
        assert_eq!(done.step(1), Step::Nothing);
    }

    #[test]
    fn a_replaced_member_leaves_when_its_replacement_votes() {
        let mut case = Case::new(directory(4, &[2], &[(4, 2)]), &[1, 2, 3]);
        case.down = vec![2];
        assert_eq!(case.step(1), Step::Change(vec![Change::AddLearner(id(4))]));
        case.learners = vec![4];
        let both = vec![Change::AddVoter(id(4)), Change::Remove(id(2))];
        assert_eq!(case.step(1), Step::Change(both));
        // One that leads and is replaced hands over first.
        case.down.clear();
        assert_eq!(case.step(2), Step::Wait(Wait::Leader));
        // A replacement that is replaced itself: the last one takes the place.
        let mut again = Case::new(directory(5, &[2, 4], &[(4, 2), (5, 4)]), &[1, 2, 3]);
        again.learners = vec![4, 5];
        assert_eq!(again.step(1), Step::Change(vec![Change::Remove(id(4))]));
        again.learners = vec![5];
        let both = vec![Change::AddVoter(id(5)), Change::Remove(id(2))];
        assert_eq!(again.step(1), Step::Change(both));
        // One whose replacement was given up leaves alone.
        let given_up = Case::new(directory(4, &[2, 4], &[(4, 2)]), &[1, 2, 3]);
        assert_eq!(given_up.step(1), Step::Change(vec![Change::Remove(id(2))]));
    }

    #[test]
    fn a_removal_that_would_cost_the_quorum_waits() {
        let mut case = Case::new(directory(4, &[4], &[]), &[1, 2, 3, 4]);
        case.down = vec![4];
        assert_eq!(case.step(1), Step::Change(vec![Change::Remove(id(4))]));
        case.down = vec![2, 3];
        let short = Wait::Quorum {
            voters: 3,
            there: 1,
        };
        assert_eq!(case.step(1), Step::Wait(short));
        // One that is there and far behind is as good as absent.
        (case.down, case.behind) = (vec![2], vec![3]);
        assert_eq!(case.step(1), Step::Wait(short));
        assert_eq!(
            Case::new(directory(2, &[2], &[]), &[1, 2]).step(2),
            Step::Wait(Wait::Leader)
        );
    }

    #[test]
    fn one_change_at_a_time() {
        let all = directory(3, &[3], &[]);
        let membership = Membership {
            voters: ids(&[1, 2]),
            voters_outgoing: ids(&[1, 2, 3]),
            ..Membership::default()
        };
        let step = next(&View {
            directory: &all,
            shard: ShardId::new(0),
            me: id(1),
            membership: &membership,
            reachable: &|_| true,
            caught_up: &|_| true,
        });
        assert_eq!(step, Step::Wait(Wait::Change));
    }
}
