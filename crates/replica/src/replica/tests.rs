use bytes::Bytes;

use super::*;
use crate::entry::EntryKind;
use crate::log_store::LogStore;
use crate::memory_log::MemoryLog;

const SHARD: ShardId = ShardId::new(3);

fn member(number: u64) -> MemberId {
    MemberId::new(number).unwrap()
}

fn proposal(number: u64, bytes: usize) -> Proposal {
    let data: Vec<u8> = number
        .to_le_bytes()
        .into_iter()
        .cycle()
        .take(bytes)
        .collect();
    Proposal {
        data: Bytes::from(data),
        correlation: Correlation(number),
    }
}

/// A node: one replica, its log, and a ledger that merely lists what it was given.
struct Node {
    config: ReplicaConfig,
    founders: Membership,
    replica: Replica,
    log: MemoryLog,
    // Writes given and not yet made.
    writes: VecDeque<Persist>,
    outbox: Vec<PeerMessage>,
    applied: Vec<Committed>,
    snapshot: Option<SnapshotMark>,
    seen: Vec<Action>,
    // While false, writes wait.
    disk_works: bool,
}

impl Node {
    fn new(number: u64, voters: u64) -> Self {
        let mut config = ReplicaConfig::new(SHARD, member(number));
        config.campaign_ticks = 20 + usize::try_from(number).unwrap();
        let founders = Membership::of_voters((1..=voters).map(member).collect());
        let recovered = Recovered {
            founders: founders.clone(),
            ..Recovered::default()
        };
        let replica = Replica::new(config.clone(), recovered).unwrap();
        Self {
            config,
            founders,
            replica,
            log: MemoryLog::new(),
            writes: VecDeque::new(),
            outbox: Vec::new(),
            applied: Vec::new(),
            snapshot: None,
            seen: Vec::new(),
            disk_works: true,
        }
    }

    fn step(&mut self, event: Event) {
        let actions = self.replica.step(event, Timestamp::default());
        self.perform(actions);
        while self.disk_works {
            let Some(write) = self.writes.pop_front() else {
                break;
            };
            self.log
                .append(std::slice::from_ref(&write.append))
                .unwrap();
            let persisted = Event::Persisted {
                ready_number: write.ready_number,
            };
            let actions = self.replica.step(persisted, Timestamp::default());
            self.perform(actions);
        }
    }

    fn perform(&mut self, actions: Vec<Action>) {
        for action in actions {
            self.seen.push(action.clone());
            match action {
                Action::Persist(write) => self.writes.push_back(write),
                Action::Send(messages) => self.outbox.extend(messages),
                Action::Apply(entries) => {
                    let index = entries.last().unwrap().position.index;
                    self.applied.extend(entries);
                    let actions = self
                        .replica
                        .step(Event::Applied { index }, Timestamp::default());
                    self.perform(actions);
                }
                Action::InstallSnapshot(mark) => {
                    let index = mark.position.index;
                    self.applied.clear();
                    self.snapshot = Some(mark);
                    let actions = self
                        .replica
                        .step(Event::Applied { index }, Timestamp::default());
                    self.perform(actions);
                }
                Action::CompactLog { to } => self.log.compact(SHARD, to).unwrap(),
                _ => {}
            }
        }
    }

    fn take_snapshot(&mut self) {
        let position = self.applied.last().unwrap().position;
        let mark = SnapshotMark {
            position,
            membership: self.replica.membership().clone(),
        };
        self.snapshot = Some(mark.clone());
        self.step(Event::SnapshotTaken(mark));
        self.step(Event::Compact {
            to_index: position.index,
        });
    }

    /// Loses power, starts again from what was synced.
    fn restart(&mut self) {
        self.log.crash();
        self.writes.clear();
        self.outbox.clear();
        self.seen.clear();
        let (snapshot, founders) = (self.snapshot.clone(), self.founders.clone());
        let recovered = Recovered::read(&mut self.log, SHARD, snapshot, founders).unwrap();
        self.replica = Replica::new(self.config.clone(), recovered).unwrap();
        let kept = self.snapshot.as_ref().map_or(0, |mark| mark.position.index);
        self.applied.retain(|entry| entry.position.index <= kept);
        self.step(Event::Start);
    }

    fn commands(&self) -> Vec<Bytes> {
        let data = |entry: &Committed| match &entry.body {
            CommittedBody::Command { data, .. } => Some(data.clone()),
            _ => None,
        };
        self.applied.iter().filter_map(data).collect()
    }

    fn answered(&self) -> Vec<u64> {
        let answered = |entry: &Committed| match entry.body {
            CommittedBody::Command { correlation, .. }
            | CommittedBody::Membership { correlation, .. } => correlation,
            CommittedBody::Blank => None,
        };
        self.applied
            .iter()
            .filter_map(answered)
            .map(|correlation| correlation.0)
            .collect()
    }

    fn drops(&self) -> Vec<(u64, DropReason)> {
        let dropped = |action: &Action| match action {
            Action::Dropped {
                correlation,
                reason,
            } => Some((correlation.0, *reason)),
            _ => None,
        };
        self.seen.iter().filter_map(dropped).collect()
    }
}

fn alone() -> Node {
    let mut node = Node::new(1, 1);
    node.step(Event::Start);
    node
}

/// Several nodes and the messages between them, delivered in order.
struct Group {
    nodes: Vec<Node>,
    cut: Vec<u64>,
}

impl Group {
    fn new(voters: u64) -> Self {
        let mut nodes: Vec<Node> = (1..=voters)
            .map(|number| Node::new(number, voters))
            .collect();
        for node in &mut nodes {
            node.step(Event::Start);
        }
        Self {
            nodes,
            cut: Vec::new(),
        }
    }

    fn node(&mut self, number: u64) -> &mut Node {
        self.nodes
            .iter_mut()
            .find(|node| node.config.member == member(number))
            .unwrap()
    }

    fn deliver(&mut self) {
        loop {
            let sent: Vec<PeerMessage> = self
                .nodes
                .iter_mut()
                .flat_map(|node| std::mem::take(&mut node.outbox))
                .collect();
            if sent.is_empty() {
                return;
            }
            for message in sent {
                if self
                    .cut
                    .iter()
                    .any(|&number| [message.to, message.from].contains(&member(number)))
                {
                    continue;
                }
                let snapshot =
                    (message.kind == MessageKind::Snapshot).then_some((message.from, message.to));
                let (from, to) = (message.from.get(), message.to.get());
                if self
                    .nodes
                    .iter()
                    .any(|node| node.config.member == message.to)
                {
                    self.node(to).step(Event::Message(message));
                }
                if let Some((_, peer)) = snapshot {
                    self.node(from).step(Event::SnapshotSent {
                        peer,
                        delivered: true,
                    });
                }
            }
        }
    }

    fn tick(&mut self, count: usize) {
        for _ in 0..count {
            for node in &mut self.nodes {
                node.step(Event::Tick);
            }
            self.deliver();
        }
    }

    fn leader(&mut self) -> u64 {
        for _ in 0..200 {
            let leading = |node: &&Node| {
                node.replica.status().role == Role::Leader
                    && !self.cut.contains(&node.config.member.get())
            };
            if let Some(node) = self.nodes.iter().find(leading) {
                return node.config.member.get();
            }
            self.tick(1);
        }
        panic!("nobody leads");
    }
}

#[test]
fn a_group_of_one_leads_at_once_and_commits_after_its_own_write() {
    let mut node = Node::new(1, 1);
    node.disk_works = false;
    node.step(Event::Start);
    assert_eq!(node.replica.status().role, Role::Leader);
    assert!(node.seen.contains(&Action::BecameLeader { term: 1 }));
    node.step(Event::Propose {
        entries: vec![proposal(7, 10)],
    });
    assert_eq!(
        node.applied,
        [],
        "nothing is committed before it is durable"
    );
    node.disk_works = true;
    node.step(Event::Tick);
    assert_eq!(node.answered(), [7]);
    assert_eq!(node.applied[0].body, CommittedBody::Blank);
    assert!(node.log.syncs_count() > 0);
}

#[test]
fn a_write_is_capped_whatever_is_proposed() {
    let mut node = alone();
    node.seen.clear();
    node.step(Event::Propose {
        entries: (0..100).map(|number| proposal(number, 64 << 10)).collect(),
    });
    let writes: Vec<u64> = node
        .seen
        .iter()
        .filter_map(|action| match action {
            Action::Persist(write) => Some(write.append.data_bytes()),
            _ => None,
        })
        .collect();
    assert!(writes.iter().all(|&bytes| bytes <= 1 << 20), "{writes:?}");
    assert_eq!(writes.iter().sum::<u64>(), 100 * (64 << 10));
    assert_eq!(node.answered(), (0..100).collect::<Vec<u64>>());
}

#[test]
fn answers_keep_the_order_of_proposals() {
    let mut node = alone();
    for number in 0..50 {
        node.disk_works = number % 3 == 0;
        node.step(Event::Propose {
            entries: vec![proposal(number * 2, 9), proposal(number * 2 + 1, 9)],
        });
    }
    node.disk_works = true;
    node.step(Event::Tick);
    assert_eq!(node.answered(), (0..100).collect::<Vec<u64>>());
    assert_eq!(node.replica.status().waiting_count, 0);
}

#[test]
fn one_answer_stands_for_several_writes() {
    let mut node = alone();
    node.disk_works = false;
    node.step(Event::Propose {
        entries: vec![proposal(1, 9)],
    });
    node.step(Event::Propose {
        entries: vec![proposal(2, 9)],
    });
    let newest = node.writes.back().unwrap().ready_number;
    let actions = node.replica.step(
        Event::Persisted {
            ready_number: newest,
        },
        Timestamp::default(),
    );
    node.perform(actions);
    assert_eq!(node.answered(), [1, 2]);
}

#[test]
fn too_much_uncommitted_is_refused_and_taken_again_later() {
    let mut node = Node::new(1, 1);
    node.config.uncommitted_max_bytes = 2 << 20;
    let recovered = Recovered {
        founders: node.founders.clone(),
        ..Recovered::default()
    };
    node.replica = Replica::new(node.config.clone(), recovered).unwrap();
    node.step(Event::Start);
    node.disk_works = false;
    node.step(Event::Propose {
        entries: (0..40).map(|number| proposal(number, 64 << 10)).collect(),
    });
    let drops = node.drops();
    assert!(!drops.is_empty());
    assert!(
        drops
            .iter()
            .all(|(_, reason)| *reason == DropReason::Overloaded)
    );
    node.disk_works = true;
    node.step(Event::Tick);
    assert_eq!(node.answered().len() + drops.len(), 40);
    node.step(Event::Propose {
        entries: vec![proposal(99, 64 << 10)],
    });
    assert_eq!(node.answered().last(), Some(&99));
}

#[test]
fn empty_and_oversized_proposals_are_refused() {
    let mut node = alone();
    node.step(Event::Propose {
        entries: vec![
            proposal(1, 0),
            proposal(2, PEER_ENTRY_BYTES_MAX + 1),
            proposal(3, 1),
        ],
    });
    assert_eq!(
        node.drops(),
        [(1, DropReason::Invalid), (2, DropReason::Invalid)]
    );
    assert_eq!(node.answered(), [3]);
}

#[test]
fn restart_gives_the_same_entries_in_a_new_term() {
    let mut node = alone();
    node.step(Event::Propose {
        entries: (0..10).map(|number| proposal(number, 20)).collect(),
    });
    let before = node.commands();
    node.restart();
    assert_eq!(node.commands(), before);
    assert_eq!(node.answered(), [], "correlations belong to one life");
    assert_eq!(node.replica.status().term, 2);
    node.step(Event::Propose {
        entries: vec![proposal(77, 20)],
    });
    assert_eq!(node.answered(), [77]);
}

#[test]
fn what_was_not_durable_is_lost_and_was_never_answered() {
    let mut node = alone();
    node.step(Event::Propose {
        entries: vec![proposal(1, 20)],
    });
    node.disk_works = false;
    node.step(Event::Propose {
        entries: vec![proposal(2, 20)],
    });
    assert_eq!(node.answered(), [1]);
    node.disk_works = true;
    node.restart();
    assert_eq!(node.commands(), [proposal(1, 20).data]);
}

#[test]
fn a_snapshot_lets_the_log_go_and_restart_begins_there() {
    let mut node = alone();
    node.step(Event::Propose {
        entries: (0..10).map(|number| proposal(number, 20)).collect(),
    });
    node.step(Event::Compact { to_index: 5 });
    assert_eq!(
        node.replica.status().base.index,
        0,
        "without a snapshot nothing may go"
    );
    node.take_snapshot();
    let base = node.replica.status().base;
    assert_eq!(base.index, 11);
    assert_eq!(node.log.shard(SHARD).unwrap().base, base);
    node.step(Event::Propose {
        entries: vec![proposal(20, 20)],
    });
    let before = node.commands();
    node.restart();
    assert_eq!(node.commands(), before);
}

#[test]
fn reads_wait_for_the_term_to_commit_then_get_its_index() {
    let mut node = Node::new(1, 1);
    node.disk_works = false;
    node.step(Event::Start);
    node.step(Event::ReadIndex {
        correlation: Correlation(1),
    });
    assert_eq!(node.drops(), [(1, DropReason::Unconfirmed)]);
    node.disk_works = true;
    node.step(Event::Propose {
        entries: vec![proposal(5, 5)],
    });
    node.step(Event::ReadIndex {
        correlation: Correlation(2),
    });
    assert!(node.seen.contains(&Action::ReadReady {
        correlation: Correlation(2),
        index: 2
    }));
}

#[test]
fn every_ready_is_given_to_the_writer_in_order() {
    let mut node = alone();
    for number in 0..20 {
        node.step(Event::Propose {
            entries: vec![proposal(number, 20)],
        });
    }
    let numbers: Vec<u64> = node
        .seen
        .iter()
        .filter_map(|action| match action {
            Action::Persist(write) => Some(write.ready_number),
            _ => None,
        })
        .collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(node.replica.persisted_ready, node.replica.newest_ready);
    // A mere commit index asks for no fsync.
    assert!(node.seen.iter().any(|action| matches!(action,
        Action::Persist(write) if !write.append.must_sync && write.append.hard_state.is_some())));
}

#[test]
fn three_replicate_and_the_minority_answers_nothing() {
    let mut group = Group::new(3);
    let leader = group.leader();
    assert_eq!(leader, 1, "the shortest election timeout wins");
    group.node(leader).step(Event::Propose {
        entries: (0..10).map(|number| proposal(number, 50)).collect(),
    });
    group.deliver();
    group.tick(3);
    let commands = group.node(leader).commands();
    assert_eq!(commands.len(), 10);
    for node in &group.nodes {
        assert_eq!(node.commands(), commands);
    }
    // The leader is cut off: it answers nothing more, and steps down.
    group.cut = vec![leader];
    group.node(leader).step(Event::Propose {
        entries: vec![proposal(100, 50)],
    });
    group.tick(60);
    assert_ne!(group.node(leader).replica.status().role, Role::Leader);
    assert!(!group.node(leader).answered().contains(&100));
    let second = group.leader();
    assert_ne!(second, leader);
    group.node(second).step(Event::Propose {
        entries: vec![proposal(200, 50)],
    });
    group.deliver();
    assert!(group.node(second).answered().contains(&200));
    // Healed: the old leader learns that its entry was replaced.
    group.cut.clear();
    group.tick(30);
    assert!(
        group
            .node(leader)
            .drops()
            .contains(&(100, DropReason::Replaced))
    );
    let expected = group.node(second).commands();
    assert_eq!(group.node(leader).commands(), expected);
}

#[test]
fn a_follower_promises_only_what_is_durable() {
    let mut group = Group::new(2);
    let leader = group.leader();
    let follower = 3 - leader;
    group.tick(3);
    group.node(follower).disk_works = false;
    group.node(leader).step(Event::Propose {
        entries: vec![proposal(1, 50)],
    });
    group.deliver();
    assert_eq!(
        group.node(leader).answered(),
        [],
        "the follower's write has not ended"
    );
    group.node(follower).disk_works = true;
    group.node(follower).step(Event::Tick);
    group.deliver();
    assert_eq!(group.node(leader).answered(), [1]);
}

#[test]
fn a_leader_sends_before_its_own_write_ends() {
    let mut group = Group::new(3);
    let leader = group.leader();
    group.tick(3);
    group.node(leader).disk_works = false;
    group.node(leader).step(Event::Propose {
        entries: vec![proposal(1, 50)],
    });
    assert!(
        group
            .node(leader)
            .outbox
            .iter()
            .any(|message| message.kind == MessageKind::Append)
    );
}

#[test]
fn one_that_fell_behind_the_cut_gets_the_snapshot() {
    let mut group = Group::new(3);
    let leader = group.leader();
    let behind = if leader == 3 { 2 } else { 3 };
    group.cut = vec![behind];
    group.node(leader).step(Event::Propose {
        entries: (0..20).map(|number| proposal(number, 50)).collect(),
    });
    group.deliver();
    group.node(leader).take_snapshot();
    group.node(leader).step(Event::Propose {
        entries: vec![proposal(50, 50)],
    });
    group.deliver();
    group.cut.clear();
    group.tick(30);
    let mark = group.node(leader).snapshot.clone();
    assert_eq!(group.node(behind).snapshot, mark);
    assert_eq!(group.node(behind).commands(), [proposal(50, 50).data]);
    let index = mark.unwrap().position.index;
    assert_eq!(
        group.node(behind).log.shard(SHARD).unwrap().base.index,
        index
    );
    // It starts again from there.
    group.node(behind).restart();
    group.tick(30);
    assert_eq!(group.node(behind).commands(), [proposal(50, 50).data]);
}

#[test]
fn one_that_lost_what_it_promised_stops() {
    let mut group = Group::new(3);
    let leader = group.leader();
    group.node(leader).step(Event::Propose {
        entries: (0..5).map(|number| proposal(number, 50)).collect(),
    });
    group.tick(5);
    let lost = if leader == 3 { 2 } else { 3 };
    let fresh = Node::new(lost, 3);
    *group.node(lost) = fresh;
    group.tick(5);
    let stopped = group
        .node(lost)
        .seen
        .iter()
        .any(|action| matches!(action, Action::Stop(StopReason::LogBehindPromise { .. })));
    assert!(stopped);
}

#[test]
fn a_group_of_one_grows_and_hands_over() {
    let mut group = Group::new(1);
    group.tick(1);
    let mut joining = Node::new(2, 1);
    // It knows the founders and is not one of them, so it waits to be told.
    joining.step(Event::Start);
    group.nodes.push(joining);
    let changes = vec![Change::AddVoter(member(2))];
    group.node(1).step(Event::ChangeMembership {
        changes,
        correlation: Correlation(9),
    });
    group.deliver();
    group.tick(5);
    assert_eq!(group.node(1).answered(), [9]);
    let both = Membership::of_voters(vec![member(1), member(2)]);
    assert_eq!(group.node(1).replica.membership(), &both);
    assert_eq!(group.node(2).replica.membership(), &both);
    group
        .node(1)
        .step(Event::TransferLeadership { to: member(2) });
    group.deliver();
    assert_eq!(group.node(2).replica.status().role, Role::Leader);
    group.node(1).step(Event::Propose {
        entries: vec![proposal(1, 5)],
    });
    assert_eq!(
        group.node(1).drops(),
        [(
            1,
            DropReason::NotLeader {
                leader: Some(member(2))
            }
        )]
    );
}

#[test]
fn the_same_events_give_the_same_actions() {
    let run = || {
        let mut group = Group::new(3);
        let leader = group.leader();
        group.node(leader).step(Event::Propose {
            entries: (0..20).map(|number| proposal(number, 500)).collect(),
        });
        group.tick(50);
        group
            .nodes
            .iter()
            .map(|node| node.seen.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn a_stranger_or_a_bad_message_changes_nothing() {
    let mut group = Group::new(3);
    let leader = group.leader();
    group.node(leader).step(Event::Propose {
        entries: vec![proposal(1, 5)],
    });
    let good = group
        .node(leader)
        .outbox
        .iter()
        .find(|m| m.kind == MessageKind::Append)
        .cloned()
        .unwrap();
    let follower = good.to.get();
    let before = group.node(follower).replica.status();
    let mut gap = good.clone();
    gap.entries[0].index += 1;
    let mut elsewhere = good.clone();
    elsewhere.to = member(99);
    let mut stranger = good;
    stranger.from = stranger.to;
    for bad in [gap, elsewhere, stranger] {
        group.node(follower).step(Event::Message(bad));
    }
    assert_eq!(group.node(follower).replica.status(), before);
}

#[test]
fn what_does_not_fit_together_is_refused_at_start() {
    let founders = Membership::of_voters(vec![member(1)]);
    let entry = |index, term| Entry {
        index,
        term,
        kind: EntryKind::Command,
        data: Bytes::from_static(b"x"),
    };
    let mark = |term, index| {
        Some(SnapshotMark {
            position: LogPosition { term, index },
            membership: founders.clone(),
        })
    };
    let open = |recovered| Replica::new(ReplicaConfig::new(SHARD, member(1)), recovered).err();
    let base = Recovered {
        founders: founders.clone(),
        ..Recovered::default()
    };
    let gap = Recovered {
        base: LogPosition { term: 1, index: 5 },
        ..base.clone()
    };
    assert_eq!(
        open(gap),
        Some(OpenError::Gap {
            shard: SHARD,
            base: 5,
            applied: 0
        })
    );
    let holes = Recovered {
        entries: vec![entry(1, 1), entry(3, 1)],
        ..base.clone()
    };
    assert_eq!(
        open(holes),
        Some(OpenError::NotContiguous {
            shard: SHARD,
            expected: 2,
            found: 3
        })
    );
    let hard_state = HardState {
        term: 1,
        vote: None,
        commit: 2,
    };
    let short = Recovered {
        hard_state,
        entries: vec![entry(1, 1)],
        ..base.clone()
    };
    assert_eq!(
        open(short),
        Some(OpenError::Short {
            shard: SHARD,
            last: 1,
            needed: 2
        })
    );
    let other = Recovered {
        entries: vec![entry(1, 1)],
        snapshot: mark(2, 1),
        ..base
    };
    assert!(matches!(
        open(other),
        Some(OpenError::Diverged { index: 1, .. })
    ));
}

#[test]
fn a_snapshot_ahead_of_the_log_replaces_it_at_start() {
    let mut log = MemoryLog::new();
    log.append(&[crate::conformance::append(SHARD, 1, 1..=5, 10)])
        .unwrap();
    let founders = Membership::of_voters(vec![member(1), member(2)]);
    let position = LogPosition { term: 3, index: 40 };
    let mark = SnapshotMark {
        position,
        membership: founders.clone(),
    };
    let recovered = Recovered::read(&mut log, SHARD, Some(mark), founders).unwrap();
    assert_eq!((recovered.base, recovered.entries.len()), (position, 0));
    let mut config = ReplicaConfig::new(SHARD, member(1));
    config.campaign_ticks = 30;
    let replica = Replica::new(config, recovered).unwrap();
    assert_eq!(replica.status().applied_index, 40);
    log.crash();
    assert_eq!(log.shard(SHARD).unwrap().base, position);
}

#[test]
fn a_snapshot_over_a_conflicting_tail_replaces_it_at_start_and_committed_entries_never_are() {
    let founders = Membership::of_voters(vec![member(1), member(2)]);
    let position = LogPosition { term: 3, index: 4 };
    let mark = || {
        Some(SnapshotMark {
            position,
            membership: founders.clone(),
        })
    };
    // Entries 1 to 5 of term 1; what others committed at 4 is of term 3.
    let mut log = MemoryLog::new();
    log.append(&[crate::conformance::append(SHARD, 1, 1..=5, 10)])
        .unwrap();
    let recovered = Recovered::read(&mut log, SHARD, mark(), founders.clone()).unwrap();
    assert_eq!((recovered.base, recovered.entries.len()), (position, 0));
    assert!(recovered.hard_state.term >= 3);
    Replica::new(ReplicaConfig::new(SHARD, member(1)), recovered).unwrap();
    // Where this log knows its entry to be committed, the two are of different histories: nothing is replaced.
    let mut log = MemoryLog::new();
    let mut append = crate::conformance::append(SHARD, 1, 1..=5, 10);
    append.hard_state = Some(HardState {
        term: 1,
        vote: None,
        commit: 4,
    });
    log.append(&[append]).unwrap();
    let recovered = Recovered::read(&mut log, SHARD, mark(), founders.clone()).unwrap();
    assert_eq!(recovered.entries.len(), 5);
    let refused = Replica::new(ReplicaConfig::new(SHARD, member(1)), recovered);
    assert!(matches!(refused, Err(OpenError::Diverged { index: 4, .. })));
}

#[test]
fn the_first_turn_after_a_lost_leader_elects_one() {
    let mut group = Group::new(3);
    // The last to stand lets go of the leader no later than the others.
    group.tick(60);
    assert_eq!(group.leader(), 1);
    group.cut.push(1);
    let turn = group.node(2).config.campaign_ticks;
    group.tick(turn + 1);
    assert_eq!(group.node(2).replica.status().role, Role::Leader);
}

#[test]
fn a_leader_that_is_given_up_is_replaced_at_the_next_turn_unless_it_is_heard() {
    let mut group = Group::new(3);
    group.tick(60);
    let leader = member(group.leader());
    assert_eq!(leader, member(1));
    let term = group.node(1).replica.status().term;
    let give_up = |group: &mut Group| {
        for follower in [2, 3] {
            group.node(follower).step(Event::LeaderLost { leader });
        }
    };
    // It is there: its next heartbeat comes before anybody's turn.
    give_up(&mut group);
    group.tick(60);
    assert_eq!(
        (group.leader(), group.node(1).replica.status().term),
        (1, term)
    );
    // One alone that gives it up gets no votes, and goes back to it.
    group.node(3).step(Event::LeaderLost { leader });
    group.node(3).step(Event::Tick);
    group.node(3).step(Event::Tick);
    group.node(3).step(Event::Tick);
    group.deliver();
    group.tick(60);
    assert_eq!(
        (group.leader(), group.node(1).replica.status().term),
        (1, term)
    );
    assert_eq!(group.node(3).replica.status().leader, Some(leader));
    // It is gone.
    group.cut.push(1);
    give_up(&mut group);
    group.tick(4);
    assert_eq!(group.leader(), 2);
    // Who is not the leader cannot be given up.
    group.node(3).step(Event::LeaderLost { leader });
    group.tick(60);
    assert_eq!(group.leader(), 2);
}

#[test]
fn a_replica_can_live_on_any_thread() {
    fn check<T: Send>() {}
    check::<Replica>();
}

#[test]
fn a_fresh_member_refuses_a_pre_vote_of_one_that_should_not_lead() {
    let mut low = Node::new(3, 3);
    low.config.priority = -1;
    let recovered = Recovered {
        founders: low.founders.clone(),
        ..Recovered::default()
    };
    low.replica = Replica::new(low.config.clone(), recovered).unwrap();
    let mut fresh = Node::new(1, 3);
    low.step(Event::Start);
    fresh.step(Event::Start);
    while low.outbox.is_empty() {
        low.step(Event::Tick);
    }
    let asks = low.outbox.drain(..).find(|ask| ask.to == member(1));
    fresh.step(Event::Message(asks.unwrap()));
    let answer = fresh.outbox.pop().unwrap();
    assert_eq!(answer.kind, MessageKind::PreVoteResponse);
    assert!(answer.reject);
    low.step(Event::Message(answer));
    assert!(low.outbox.is_empty());
}

#[test]
fn a_leader_knows_how_far_the_others_are() {
    let mut group = Group::new(3);
    let leader = group.leader();
    assert!(group.nodes.iter().all(|node| {
        node.config.member == member(leader) || node.replica.progress().is_empty()
    }));
    let others: Vec<u64> = (1..=3).filter(|&number| number != leader).collect();
    let (near, gone) = (others[0], others[1]);
    group.deliver();
    let last = group.node(leader).replica.status().last.index;
    for progress in group.node(leader).replica.progress() {
        assert_eq!(progress.sending, Sending::Replicate);
        assert_eq!(
            (
                progress.matched_index,
                progress.next_index,
                progress.lag_bytes
            ),
            (last, last + 1, 0)
        );
        assert_eq!(progress.oldest_missing, None);
    }

    // One is cut off: the entries that it lacks are counted, and the oldest is told.
    group.cut.push(gone);
    let entries = (0..10).map(|number| proposal(number, 100)).collect();
    group.node(leader).step(Event::Propose { entries });
    group.deliver();
    let progress = group.node(leader).replica.progress();
    let of = |number| {
        let found = progress.iter().find(|known| known.member == member(number));
        found.unwrap().clone()
    };
    assert_eq!(of(near).matched_index, last + 10);
    let behind = of(gone);
    assert_eq!(behind.matched_index, last);
    assert_eq!(behind.lag_bytes, 1000);
    assert_eq!(behind.oldest_missing, Some(proposal(0, 100).data));
    assert!(
        behind.next_index > last + 1,
        "it was sent ahead of the answers"
    );
}
