//! A shard's replica on the real log, as a node drives it: the group of one voter.

use std::collections::VecDeque;

use bytes::Bytes;
use clearspan_replica::{
    Action, CommittedBody, Correlation, Event, LogPosition, LogStore, MemberId, Membership,
    Persist, Proposal, Recovered, Replica, ReplicaConfig, SnapshotMark, Timestamp,
};
use clearspan_storage::{Layout, Log, Snapshots};

use crate::support::{ONE, TWO, data_dir, new_dir, open_log, small};

fn member() -> MemberId {
    MemberId::new(1).unwrap()
}

/// The commands applied so far stand for the ledger's state.
struct Shard {
    replica: Replica,
    state: Vec<u8>,
    applied: LogPosition,
    answers: Vec<u64>,
}

impl Shard {
    fn start(log: &mut Log, snapshots: &Snapshots, shard: clearspan_replica::ShardId) -> Self {
        let newest = snapshots
            .list(shard)
            .unwrap()
            .into_iter()
            .next()
            .map(|file| file.checked.unwrap());
        let mut state = Vec::new();
        if let Some(mark) = &newest {
            let mut body = snapshots.read(shard, mark.position).unwrap();
            std::io::Read::read_to_end(&mut body, &mut state).unwrap();
        }
        let applied = newest
            .as_ref()
            .map_or(LogPosition::default(), |mark| mark.position);
        let recovered =
            Recovered::read(log, shard, newest, Membership::of_voters(vec![member()])).unwrap();
        let replica = Replica::new(ReplicaConfig::new(shard, member()), recovered).unwrap();
        Self {
            replica,
            state,
            applied,
            answers: Vec::new(),
        }
    }

    fn step(&mut self, event: Event) -> Vec<Persist> {
        let mut events = VecDeque::from([event]);
        let mut writes = Vec::new();
        while let Some(event) = events.pop_front() {
            for action in self.replica.step(event, Timestamp::from_ns(0)) {
                match action {
                    Action::Persist(write) => writes.push(write),
                    Action::Apply(entries) => {
                        for entry in entries {
                            if let CommittedBody::Command { data, correlation } = entry.body {
                                self.state.extend_from_slice(&data);
                                self.answers
                                    .extend(correlation.map(|correlation| correlation.0));
                            }
                            self.applied = entry.position;
                        }
                        events.push_back(Event::Applied {
                            index: self.applied.index,
                        });
                    }
                    Action::BecameLeader { .. } | Action::LeaderChanged { .. } => {}
                    other => panic!("{other:?}"),
                }
            }
        }
        writes
    }
}

/// One write for all shards, until nothing more comes.
fn settle(log: &mut Log, shards: &mut [Shard], mut writes: Vec<Vec<Persist>>) {
    while writes.iter().any(|of_shard| !of_shard.is_empty()) {
        let batch: Vec<_> = writes
            .iter()
            .flatten()
            .map(|write| write.append.clone())
            .collect();
        log.append(&batch).unwrap();
        let newest = writes
            .iter()
            .map(|of_shard| of_shard.last().map(|write| write.ready_number));
        let newest: Vec<Option<u64>> = newest.collect();
        writes = shards
            .iter_mut()
            .zip(newest)
            .map(|(shard, newest)| {
                newest.map_or(Vec::new(), |ready_number| {
                    shard.step(Event::Persisted { ready_number })
                })
            })
            .collect();
    }
}

fn run(layout: &Layout, life: u64) {
    let data = data_dir(layout);
    let mut log = open_log(&data, small()).unwrap();
    let snapshots = Snapshots::open(&data);
    let mut shards: Vec<Shard> = [ONE, TWO]
        .map(|shard| Shard::start(&mut log, &snapshots, shard))
        .into();
    let writes = shards
        .iter_mut()
        .map(|shard| shard.step(Event::Start))
        .collect();
    settle(&mut log, &mut shards, writes);
    // Everything of the earlier lives is there, in order.
    let expected: Vec<u8> = (0..life * 10)
        .map(|number| u8::try_from(number).unwrap())
        .collect();
    for shard in &shards {
        assert_eq!(shard.state, expected, "life {life}");
    }
    for number in life * 10..life * 10 + 10 {
        let data = Bytes::from(vec![u8::try_from(number).unwrap()]);
        let entries = vec![Proposal {
            data,
            correlation: Correlation(number),
        }];
        let propose = |shard: &mut Shard| {
            shard.step(Event::Propose {
                entries: entries.clone(),
            })
        };
        let writes = shards.iter_mut().map(propose).collect();
        settle(&mut log, &mut shards, writes);
    }
    for shard in &mut shards {
        assert_eq!(
            shard.answers,
            (life * 10..life * 10 + 10).collect::<Vec<_>>()
        );
        if life % 2 == 1 {
            let id = shard.replica.shard();
            let mark = SnapshotMark {
                position: shard.applied,
                membership: shard.replica.membership().clone(),
            };
            snapshots
                .write(id, &mark, |out| out.write_all(&shard.state))
                .unwrap();
            assert_eq!(shard.step(Event::SnapshotTaken(mark)), []);
            let compact = Event::Compact {
                to_index: shard.applied.index,
            };
            for action in shard.replica.step(compact, Timestamp::from_ns(0)) {
                match action {
                    Action::CompactLog { to } => log.compact(id, to).unwrap(),
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(log.shard(id).unwrap().base, shard.applied);
        }
    }
    log.purge().unwrap();
}

#[test]
fn a_group_of_one_keeps_everything_over_many_lives() {
    let (_dir, layout) = new_dir();
    for life in 0..8 {
        run(&layout, life);
    }
}
