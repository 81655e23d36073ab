//! Replicas compare their states while they run (promise P9): a state digest every so many entries, at the same places on
//! all, and the newest one each second. One that differs from the majority stops itself; where there is no majority nobody
//! knows who is right, and the shard is not served.

use super::*;

/// Digests are exchanged at every multiple of this index.
const INTERVAL_ENTRIES: u64 = 256;
/// A shard with less traffic tells its newest digest this often.
const INTERVAL_NS: u64 = 1_000_000_000;
/// Own digests that are kept of the newest entries: for words about quiet shards.
const RECENT_MAX: usize = 512;
const _: () = assert!(RECENT_MAX as u64 >= INTERVAL_ENTRIES);
/// Own digests that are kept at multiples of the interval: for peers that are behind.
const FIXED_MAX: usize = 256;
/// Indexes of which others' words are kept.
const HEARD_MAX: usize = 128;
/// Where replicas differ and no majority of all is seen, the rest is waited for this long.
const DECIDE_AFTER_NS: u64 = 2_000_000_000;

/// One shard's digests, own and heard.
#[derive(Debug, Default)]
pub(super) struct Compared {
    recent: VecDeque<(u64, u128)>,
    fixed: VecDeque<(u64, u128)>,
    heard: BTreeMap<u64, Heard>,
    /// Own digests that are to be told.
    untold: Vec<(u64, u128)>,
    told_index: u64,
    tell_after: Timestamp,
    /// Members that the majority was seen to differ from.
    astray: BTreeSet<MemberId>,
    counts: Comparisons,
}

/// How many digests of other replicas were held against this one's, since the process's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comparisons {
    /// They were the same.
    pub same: u64,
    /// They were not.
    pub differed: u64,
}

#[derive(Debug, Default)]
struct Heard {
    digests: BTreeMap<MemberId, u128>,
    /// Whose are counted.
    counted: BTreeSet<MemberId>,
    differs_since: Option<Timestamp>,
}

/// What a comparison says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// This replica is one of a minority.
    Astray {
        index: u64,
        mine: u128,
        majority: u128,
    },
    /// Another one is.
    OtherAstray {
        member: MemberId,
        index: u64,
        mine: u128,
        theirs: u128,
    },
    /// They differ, and no digest has a majority.
    Undecided {
        index: u64,
        mine: u128,
        others: BTreeMap<MemberId, u128>,
    },
}

impl Compared {
    /// A state that was not reached by applying: what was known before says nothing about it.
    pub(super) fn reset(&mut self, index: u64, digest: u128) {
        *self = Self {
            astray: std::mem::take(&mut self.astray),
            counts: self.counts,
            ..Self::default()
        };
        if index > 0 {
            self.recent.push_back((index, digest));
        }
    }

    pub(super) fn applied(&mut self, index: u64, digest: u128) {
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back((index, digest));
        if index.is_multiple_of(INTERVAL_ENTRIES) {
            if self.fixed.len() == FIXED_MAX {
                self.fixed.pop_front();
            }
            self.fixed.push_back((index, digest));
            self.untold.push((index, digest));
        }
    }

    pub(super) fn hear(&mut self, from: MemberId, index: u64, digest: u128) {
        self.heard
            .entry(index)
            .or_default()
            .digests
            .insert(from, digest);
        if self.heard.len() > HEARD_MAX {
            // One that lags comes to the later ones too.
            self.heard.pop_first();
        }
    }

    /// Digests that the others are to be told now.
    pub(super) fn take_untold(&mut self, now: Timestamp) -> Vec<(u64, u128)> {
        if now >= self.tell_after {
            self.tell_after = now.plus_ns(INTERVAL_NS);
            let newest = self.recent.back().copied();
            self.untold
                .extend(newest.filter(|(index, _)| *index > self.told_index));
        }
        if let Some((index, _)) = self.untold.last() {
            self.told_index = *index;
        }
        std::mem::take(&mut self.untold)
    }

    fn own(&self, index: u64) -> Option<u128> {
        let find = |kept: &VecDeque<(u64, u128)>| {
            let at = kept
                .binary_search_by_key(&index, |(index, _)| *index)
                .ok()?;
            kept.get(at).map(|(_, digest)| *digest)
        };
        find(&self.recent).or_else(|| find(&self.fixed))
    }

    pub(super) const fn counts(&self) -> Comparisons {
        self.counts
    }

    /// Compares what can be compared. `members` hold states, this one included.
    pub(super) fn judge(&mut self, members: usize, now: Timestamp) -> Option<Finding> {
        let newest = self.recent.back().map_or(0, |(index, _)| *index);
        let ready: Vec<u64> = self
            .heard
            .range(..=newest)
            .map(|(&index, _)| index)
            .collect();
        for index in ready {
            let Some(mine) = self.own(index) else {
                self.heard.remove(&index);
                continue;
            };
            let Some(heard) = self.heard.get_mut(&index) else {
                continue;
            };
            for (&member, &theirs) in &heard.digests {
                if heard.counted.insert(member) {
                    let same = theirs == mine;
                    self.counts.same += u64::from(same);
                    self.counts.differed += u64::from(!same);
                }
            }
            let all_told = heard.digests.len() + 1 >= members;
            let agreeing = 1 + heard
                .digests
                .values()
                .filter(|&&theirs| theirs == mine)
                .count();
            if agreeing == heard.digests.len() + 1 {
                if all_told {
                    self.heard.remove(&index);
                }
                continue;
            }
            let since = *heard.differs_since.get_or_insert(now);
            let waited = all_told || since.plus_ns(DECIDE_AFTER_NS) <= now;
            // A majority of all decides at once, one of those that told it once the others had their time.
            let voters = if waited {
                heard.digests.len() + 1
            } else {
                members
            };
            let majority = heard
                .digests
                .values()
                .copied()
                .find(|digest| {
                    let of_others = heard
                        .digests
                        .values()
                        .filter(|&theirs| theirs == digest)
                        .count();
                    (of_others + usize::from(*digest == mine)) * 2 > voters
                })
                .or_else(|| (agreeing * 2 > voters).then_some(mine));
            match majority {
                Some(majority) if majority != mine => {
                    return Some(Finding::Astray {
                        index,
                        mine,
                        majority,
                    });
                }
                Some(_) => {
                    let other = heard
                        .digests
                        .iter()
                        .find(|&(member, &theirs)| theirs != mine && !self.astray.contains(member))
                        .map(|(&member, &theirs)| (member, theirs));
                    match other {
                        Some((member, theirs)) => {
                            self.astray.insert(member);
                            return Some(Finding::OtherAstray {
                                member,
                                index,
                                mine,
                                theirs,
                            });
                        }
                        None if all_told => {
                            self.heard.remove(&index);
                        }
                        None => {}
                    }
                }
                None if waited => {
                    return Some(Finding::Undecided {
                        index,
                        mine,
                        others: heard.digests.clone(),
                    });
                }
                None => {}
            }
        }
        None
    }
}

impl Core {
    /// Tells the others this node's digests and looks at theirs.
    pub(super) fn compare(&mut self, at: usize, now: Timestamp) {
        if self.group.is_alone() || self.group.is_witness() {
            return;
        }
        let id = self.shards[at].id;
        let others: Vec<MemberId> = self
            .group
            .members
            .iter()
            .filter(|member| !member.witness && member.id != self.group.me)
            .map(|member| member.id)
            .collect();
        for (index, digest) in self.shards[at].compared.take_untold(now) {
            for &member in &others {
                // A peer that is gone hears the next one.
                let _ = self.peers.send(
                    member,
                    PeerFrame::Digest {
                        shard: id,
                        index,
                        digest,
                    },
                );
            }
        }
        if self.shared.is_disputed(id) {
            return;
        }
        while let Some(finding) = self.shards[at].compared.judge(others.len() + 1, now) {
            match finding {
                Finding::Astray {
                    index,
                    mine,
                    majority,
                } => self.end_astray(id, index, mine, majority),
                Finding::OtherAstray {
                    member,
                    index,
                    mine,
                    theirs,
                } => eprintln!(
                    "shard {id}: at entry {index} member {member} has state digest {theirs:032x}, the majority and this \
                     node have {mine:032x}: that node stops itself; keep its directory for examination and re-admit it"
                ),
                Finding::Undecided {
                    index,
                    mine,
                    others,
                } => {
                    let theirs: Vec<String> = others
                        .iter()
                        .map(|(member, digest)| format!("member {member} {digest:032x}"))
                        .collect();
                    self.dispute(
                        at,
                        format!(
                            "at entry {index} this node has state digest {mine:032x}, {}",
                            theirs.join(", ")
                        ),
                    );
                    return;
                }
            }
        }
    }

    /// This node's state is wrong: nothing of it is told to anybody any more, now or after a restart.
    fn end_astray(&self, shard: ShardId, index: u64, mine: u128, majority: u128) -> ! {
        let why = format!(
            "shard {shard}: at entry {index} this node has state digest {mine:032x}, the majority has {majority:032x}"
        );
        if let Err(error) = self.verdicts.diverged(&why) {
            eprintln!("write {}: {error}", self.verdicts.diverged_file().display());
        }
        stop(&Stopping::Astray {
            shard,
            index,
            mine,
            majority,
        })
    }

    /// Nobody knows which replica is right: this one answers nothing about the shard until an operator has decided.
    fn dispute(&mut self, at: usize, how: String) {
        let id = self.shards[at].id;
        let number = clearspan_replica::ShardId::new(id.get());
        let file = self.verdicts.disputed_file(number);
        if let Err(error) = self.verdicts.disputed(number, &how) {
            eprintln!("write {}: {error}", file.display());
        }
        eprintln!(
            "shard {id}: {how}: no majority says which is right, so the shard is not served. Compare the nodes' states with \
             `clearspan query` on copies of their directories, re-admit those that are wrong, remove {} from the node that \
             is right and start it again",
            file.display()
        );
        self.shared.set_disputed(id, how);
        for pending in std::mem::take(&mut self.shards[at].parked) {
            self.finish(pending, Err(ProposeError::Diverged));
        }
        for (_, pending) in std::mem::take(&mut self.shards[at].waiting) {
            self.finish(pending, Err(ProposeError::Unknown));
        }
        let stranded: Vec<u64> = self
            .forwarded
            .iter()
            .filter(|(_, (_, pending))| pending.shard == id)
            .map(|(&number, _)| number)
            .collect();
        for number in stranded {
            if let Some((_, pending)) = self.forwarded.remove(&number) {
                self.finish(pending, Err(ProposeError::Unknown));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(number: u64) -> MemberId {
        MemberId::new(number).unwrap()
    }

    const START: Timestamp = Timestamp::from_ns(1_000_000_000_000);

    fn through(last: u64) -> Compared {
        let mut compared = Compared::default();
        (1..=last).for_each(|index| compared.applied(index, u128::from(index) * 7));
        compared
    }

    #[test]
    fn digests_are_told_at_fixed_places_and_once_a_second_the_newest() {
        let mut compared = through(600);
        let indexes = |told: Vec<(u64, u128)>| -> Vec<u64> {
            told.into_iter().map(|(index, _)| index).collect()
        };
        assert_eq!(indexes(compared.take_untold(START)), [256, 512, 600]);
        assert!(compared.take_untold(START).is_empty());
        compared.applied(601, 1);
        assert!(compared.take_untold(START).is_empty());
        let later = START.plus_ns(INTERVAL_NS);
        assert_eq!(compared.take_untold(later), [(601, 1)]);
        // A state from elsewhere is told like one that was applied.
        compared.reset(1000, 5);
        assert_eq!(
            compared.take_untold(later.plus_ns(INTERVAL_NS)),
            [(1000, 5)]
        );
    }

    #[test]
    fn equal_digests_say_nothing_and_are_forgotten() {
        let mut compared = through(300);
        for index in [256, 300] {
            compared.hear(member(2), index, u128::from(index) * 7);
            compared.hear(member(3), index, u128::from(index) * 7);
        }
        // Not reached yet, and gone already.
        compared.hear(member(2), 301, 1);
        assert_eq!(compared.judge(3, START), None);
        assert_eq!(compared.heard.len(), 1);
        let counts = compared.counts();
        assert_eq!((counts.same, counts.differed), (4, 0));
        let mut late = through(100_000);
        late.hear(member(2), 256, 1);
        assert_eq!(late.judge(3, START), None);
        assert_eq!(late.heard.len(), 0);
        // A peer that is behind still finds the fixed places.
        late.hear(member(2), 99_840 - 256, 1);
        assert_ne!(late.judge(2, START), None);
    }

    #[test]
    fn a_majority_decides_at_once() {
        let mut compared = through(256);
        compared.hear(member(2), 256, 5);
        assert_eq!(compared.judge(3, START), None, "one against one of three");
        assert_eq!(compared.judge(3, START), None);
        let counts = compared.counts();
        assert_eq!(
            (counts.same, counts.differed),
            (0, 1),
            "looked at twice, counted once"
        );
        compared.hear(member(3), 256, 5);
        assert_eq!(
            compared.judge(3, START),
            Some(Finding::Astray {
                index: 256,
                mine: 256 * 7,
                majority: 5
            })
        );
        let mut compared = through(256);
        compared.hear(member(2), 256, 256 * 7);
        compared.hear(member(3), 256, 5);
        assert_eq!(
            compared.judge(3, START),
            Some(Finding::OtherAstray {
                member: member(3),
                index: 256,
                mine: 256 * 7,
                theirs: 5
            })
        );
        assert_eq!(compared.judge(3, START), None, "said once");
        assert_eq!(compared.heard.len(), 0);
    }

    #[test]
    fn without_a_majority_nobody_is_right() {
        let mut compared = through(256);
        compared.hear(member(2), 256, 5);
        let undecided = Some(Finding::Undecided {
            index: 256,
            mine: 256 * 7,
            others: BTreeMap::from([(member(2), 5)]),
        });
        assert_eq!(compared.judge(2, START), undecided);
        // The third of three may be down: it gets its time.
        let mut compared = through(256);
        compared.hear(member(2), 256, 5);
        assert_eq!(compared.judge(3, START), None);
        assert_eq!(compared.judge(3, START.plus_ns(DECIDE_AFTER_NS)), undecided);
        // Three of six that are there: two of them decide, after that time.
        let mut compared = through(256);
        compared.hear(member(2), 256, 5);
        compared.hear(member(3), 256, 5);
        assert_eq!(compared.judge(6, START), None);
        assert!(matches!(
            compared.judge(6, START.plus_ns(DECIDE_AFTER_NS)),
            Some(Finding::Astray { majority: 5, .. })
        ));
    }

    #[test]
    fn what_is_heard_is_bounded() {
        let mut compared = through(1);
        for index in 0..1000 {
            compared.hear(member(2), index, 1);
        }
        assert_eq!(compared.heard.len(), HEARD_MAX);
        assert!(compared.heard.contains_key(&999));
    }
}
