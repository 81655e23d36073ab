//! Commands on their way to their shard's leader, on this node or another.

use super::*;

/// A command without an outcome.
pub(super) struct Pending {
    pub(super) shard: ShardId,
    pub(super) data: Bytes,
    /// Whether it may be sent again when it is not known whether it was stored: applied twice it has no second effect.
    pub(super) repeatable: bool,
    /// An earlier try may have been stored: whatever the last one comes to, nobody may be told that nothing was.
    pub(super) unsure: bool,
    pub(super) origin: Origin,
    pub(super) deadline: Timestamp,
}

/// Who wants to know.
pub(super) enum Origin {
    /// Somebody on this node.
    Here(Replier),
    /// Another node that took this one for the leader.
    Peer { member: MemberId, number: u64 },
    /// The core itself: an entry that lets time pass.
    Tick,
    /// The core itself: messages of a channel, by its sending and receiving shard.
    Deliver { from: usize, to: usize },
    /// The core itself: a confirmation of such messages.
    Delivered { from: usize, to: usize },
    /// Nobody any more: the answer was given when the time ran out.
    Nobody,
}

/// Who wants to read.
pub(crate) enum Reader {
    /// Somebody on this node.
    Here(Sender<Result<u64, ProposeError>>),
    /// Another node.
    Peer { member: MemberId, number: u64 },
}

/// A read that waits for a leader on another node.
pub(super) struct ForwardedRead {
    pub(super) shard: ShardId,
    pub(super) to: MemberId,
    reader: Reader,
    deadline: Timestamp,
}

/// After so many beats without a leader it is not awaited any more: an election takes fewer.
const ELECTION_BEATS: u64 = ELECTION_TICKS as u64;
/// How long a command looks for a leader before its sender is told that there is none.
const PARK_NS: u64 = 3_000_000_000;
/// How long a command may be without an outcome before its sender is told that it is unknown.
const OUTCOME_NS: u64 = 10_000_000_000;

impl Core {
    pub(super) fn take(&mut self, request: Request) {
        let Request {
            shard,
            data,
            repeatable,
            reply,
        } = request;
        let deadline = self.shared.clock.steady().plus_ns(PARK_NS);
        self.in_flight_bytes += data.len();
        self.route(Pending {
            shard,
            data,
            repeatable,
            unsure: false,
            origin: Origin::Here(reply),
            deadline,
        });
    }

    pub(super) fn propose_command(&mut self, at: usize, command: &Command, origin: Origin) {
        let now = self.shared.clock.steady();
        let data = clearspan_codec::entry::encode(self.shared.clock.now(), command);
        self.in_flight_bytes += data.len();
        let deadline = now.plus_ns(PARK_NS);
        self.route(Pending {
            shard: self.shards[at].id,
            data,
            repeatable: true,
            unsure: false,
            origin,
            deadline,
        });
    }

    /// Notes how long a shard has been without a leader that this node hears. An election takes what the silence took, at
    /// most, as a rule; who has heard nothing for longer is on the wrong side of a cut, and another node may know more.
    pub(super) fn note_leader(&mut self, at: usize, now: Timestamp) {
        let shard = &mut self.shards[at];
        let status = shard.replica.status();
        let is_led = matches!(status.role, Role::Leader) || status.leader.is_some();
        if is_led {
            shard.leaderless_since = None;
        } else {
            shard.leaderless_since.get_or_insert(now);
        }
        let patience_ns = ELECTION_BEATS * self.tick_ns;
        let given_up = shard
            .leaderless_since
            .is_some_and(|since| since.plus_ns(patience_ns) <= now);
        self.shared.set_leaderless(shard.id, given_up);
    }

    /// To the leader, wherever it is.
    fn route(&mut self, mut pending: Pending) {
        let at = pending.shard.index();
        if self.shared.is_disputed(pending.shard) {
            self.finish(pending, Err(ProposeError::Diverged));
            return;
        }
        let status = self.shards[at].replica.status();
        if matches!(status.role, Role::Leader) && self.group.is_witness() {
            // It applies nothing, so it knows no outcome; it leads only until somebody takes over.
            let error = ProposeError::Dropped(DropReason::NotLeader { leader: None });
            return self.finish(pending, Err(error));
        }
        if matches!(status.role, Role::Leader) {
            self.next_correlation += 1;
            let correlation = Correlation(self.next_correlation);
            let shard = &mut self.shards[at];
            shard.proposals.push(Proposal {
                data: pending.data.clone(),
                correlation,
            });
            pending.deadline = self.shared.clock.steady().plus_ns(OUTCOME_NS);
            shard.waiting.insert(correlation, pending);
            return;
        }
        let leader = status.leader.filter(|&leader| leader != self.group.me);
        match (leader, &pending.origin) {
            // One hop at most: whoever asked finds the leader itself.
            (_, Origin::Peer { .. }) => {
                let error = ProposeError::Dropped(DropReason::NotLeader { leader });
                self.finish(pending, Err(error));
            }
            (Some(leader), _) => {
                self.next_correlation += 1;
                let number = self.next_correlation;
                let frame = PeerFrame::Propose {
                    number,
                    shard: pending.shard,
                    data: pending.data.clone(),
                };
                if self.peers.send(leader, frame) {
                    let previous = pending.deadline;
                    pending.deadline = self.shared.clock.steady().plus_ns(OUTCOME_NS).max(previous);
                    self.forwarded.insert(number, (leader, pending));
                } else {
                    self.park(pending);
                }
            }
            (None, _) => self.park(pending),
        }
    }

    fn park(&mut self, pending: Pending) {
        match pending.origin {
            Origin::Here(_) if !self.shared.is_leaderless(pending.shard) => {
                self.shards[pending.shard.index()].parked.push_back(pending);
            }
            // The core makes these anew once it can.
            _ => self.finish(pending, Err(ProposeError::NoLeader)),
        }
    }

    /// A leader is known, or this node leads: what waited for that goes on.
    pub(super) fn unpark(&mut self, at: usize) {
        for pending in std::mem::take(&mut self.shards[at].parked) {
            self.route(pending);
        }
    }

    /// The outcome of a proposal to this node's replica.
    pub(super) fn answer(
        &mut self,
        at: usize,
        correlation: Correlation,
        result: Result<Outcome, ProposeError>,
    ) {
        if let Some(pending) = self.shards[at].waiting.remove(&correlation) {
            self.settle(pending, result);
        }
    }

    /// Answers, or tries again where that cannot do harm.
    pub(super) fn settle(&mut self, mut pending: Pending, result: Result<Outcome, ProposeError>) {
        let again = match &result {
            Ok(_) | Err(ProposeError::Diverged | ProposeError::Dropped(DropReason::Invalid)) => {
                false
            }
            // Nothing was stored by this try.
            Err(ProposeError::Dropped(reason)) if *reason != DropReason::Unknown => true,
            Err(_) => {
                pending.unsure = true;
                pending.repeatable
            }
        };
        let now = self.shared.clock.steady();
        if again && matches!(pending.origin, Origin::Here(_)) {
            // From the first failure on it has as long as one that finds no leader.
            pending.deadline = pending.deadline.min(now.plus_ns(PARK_NS));
            if pending.deadline > now {
                self.shards[pending.shard.index()].parked.push_back(pending);
                return;
            }
        }
        self.finish(pending, result);
    }

    pub(super) fn finish(&mut self, pending: Pending, mut result: Result<Outcome, ProposeError>) {
        self.in_flight_bytes -= pending.data.len();
        if pending.unsure && result.is_err() {
            result = Err(ProposeError::Unknown);
        }
        match pending.origin {
            Origin::Here(reply) => reply(result),
            Origin::Peer { member, number } => {
                // A peer that is gone asks again.
                let _ = self
                    .peers
                    .send(member, PeerFrame::Answer { number, result });
            }
            Origin::Tick => self.shards[pending.shard.index()].tick_in_flight = false,
            Origin::Deliver { from, to } => self.delivered(from, to),
            Origin::Delivered { from, to } => {
                // A confirmation that was dropped is proposed again from what the states say.
                if result.is_err() {
                    self.shards[from].links[to].confirmed = 0;
                }
            }
            Origin::Nobody => {}
        }
    }

    /// Looks for commands whose time has run out, and tries parked ones again.
    pub(super) fn sweep(&mut self, now: Timestamp) {
        for at in 0..self.shards.len() {
            for pending in std::mem::take(&mut self.shards[at].parked) {
                if pending.deadline <= now || self.shared.is_leaderless(pending.shard) {
                    self.finish(pending, Err(ProposeError::NoLeader));
                } else {
                    self.route(pending);
                }
            }
            // This node led, and nobody does now: what it proposed may be taken up by the next leader or not.
            let leaderless = self.shared.is_leaderless(self.shards[at].id);
            let late: Vec<Correlation> = self.shards[at]
                .waiting
                .iter()
                .filter(|(_, pending)| {
                    let is_late = pending.deadline <= now || leaderless;
                    is_late && !matches!(pending.origin, Origin::Nobody)
                })
                .map(|(&correlation, _)| correlation)
                .collect();
            for correlation in late {
                // It stays: its outcome, when it comes, frees what it holds.
                let Some(pending) = self.shards[at].waiting.get_mut(&correlation) else {
                    continue;
                };
                let origin = std::mem::replace(&mut pending.origin, Origin::Nobody);
                let (shard, repeatable) = (pending.shard, pending.repeatable);
                let told = Pending {
                    shard,
                    data: Bytes::new(),
                    repeatable,
                    unsure: true,
                    origin,
                    deadline: now,
                };
                self.finish(told, Err(ProposeError::Unknown));
            }
        }
        let late: Vec<u64> = self
            .forwarded
            .iter()
            .filter(|(_, (_, pending))| {
                pending.deadline <= now || self.shared.is_leaderless(pending.shard)
            })
            .map(|(&number, _)| number)
            .collect();
        for number in late {
            if let Some((_, pending)) = self.forwarded.remove(&number) {
                self.finish(pending, Err(ProposeError::Unknown));
            }
        }
        self.end_reads(|read| read.deadline <= now);
    }

    /// Tells readers whose leader does not answer that there is none.
    pub(super) fn end_reads(&mut self, ended: impl Fn(&ForwardedRead) -> bool) {
        let late: Vec<u64> = self
            .forwarded_reads
            .iter()
            .filter(|(_, read)| ended(read))
            .map(|(&number, _)| number)
            .collect();
        for number in late {
            if let Some(read) = self.forwarded_reads.remove(&number) {
                self.answer_read(read.reader, Err(ProposeError::NoLeader));
            }
        }
    }

    pub(super) fn receive(&mut self, from: MemberId, frame: PeerFrame) {
        match frame {
            PeerFrame::Raft(shard, message) if shard.index() < self.shards.len() => {
                self.receive_raft(shard.index(), from, message);
            }
            PeerFrame::Propose {
                number,
                shard,
                data,
            } if shard.index() < self.shards.len() => {
                let deadline = self.shared.clock.steady().plus_ns(PARK_NS);
                self.in_flight_bytes += data.len();
                let origin = Origin::Peer {
                    member: from,
                    number,
                };
                self.route(Pending {
                    shard,
                    data,
                    repeatable: true,
                    unsure: false,
                    origin,
                    deadline,
                });
            }
            PeerFrame::Answer { number, result } => {
                if self
                    .forwarded
                    .get(&number)
                    .is_some_and(|(member, _)| *member == from)
                    && let Some((_, pending)) = self.forwarded.remove(&number)
                {
                    self.settle(pending, result);
                }
            }
            PeerFrame::ReadIndex { number, shard } if shard.index() < self.shards.len() => {
                self.read_index(
                    shard.index(),
                    Reader::Peer {
                        member: from,
                        number,
                    },
                );
            }
            PeerFrame::ReadAnswer { number, result } => {
                if self
                    .forwarded_reads
                    .get(&number)
                    .is_some_and(|read| read.to == from)
                    && let Some(read) = self.forwarded_reads.remove(&number)
                {
                    self.answer_read(read.reader, result);
                }
            }
            PeerFrame::WantSnapshot {
                shard,
                mark,
                offset_bytes,
            } => {
                let _ = self.snapshots.send(SnapshotTask::Serve {
                    to: from,
                    shard,
                    mark,
                    offset_bytes,
                });
            }
            PeerFrame::WantPackages {
                shard,
                from: first,
                below,
            } => {
                let _ = self.snapshots.send(SnapshotTask::ServePackages {
                    to: from,
                    shard,
                    from: first,
                    below,
                });
            }
            PeerFrame::SnapshotPiece {
                shard,
                mark,
                offset_bytes,
                body_bytes,
                data,
            } if shard.index() < self.shards.len() => {
                self.snapshot_piece(shard.index(), &mark, offset_bytes, body_bytes, data);
            }
            PeerFrame::Packages {
                shard,
                packages,
                through,
            } if shard.index() < self.shards.len() => {
                self.packages_came(shard.index(), packages, through);
            }
            PeerFrame::Held { shard, index } if shard.index() < self.shards.len() => {
                let shard = &mut self.shards[shard.index()];
                shard.held_by_all = shard.held_by_all.max(index);
            }
            PeerFrame::Digest {
                shard,
                index,
                digest,
            } if shard.index() < self.shards.len() => {
                self.shards[shard.index()]
                    .compared
                    .hear(from, index, digest);
            }
            PeerFrame::Nodes { directory, lives } => self.learn_nodes(directory, lives),
            PeerFrame::SnapshotEnd { shard, delivered } if shard.index() < self.shards.len() => {
                self.step(
                    shard.index(),
                    Event::SnapshotSent {
                        peer: from,
                        delivered,
                    },
                );
            }
            // A shard that this cluster does not have: a peer of another definition; its frames mean nothing here.
            _ => {}
        }
    }

    pub(super) fn peer_down(&mut self, member: MemberId) {
        if self.up.remove(&member) {
            self.gone.insert(member, self.shared.clock.steady());
        }
        for at in 0..self.shards.len() {
            self.step(at, Event::Unreachable { peer: member });
            // A snapshot that was on its way to it is offered again once it is back.
            self.step(
                at,
                Event::SnapshotSent {
                    peer: member,
                    delivered: false,
                },
            );
        }
        self.pace.drop_for(member);
        let lost: Vec<u64> = self
            .forwarded
            .iter()
            .filter(|(_, (to, _))| *to == member)
            .map(|(&number, _)| number)
            .collect();
        for number in lost {
            if let Some((_, pending)) = self.forwarded.remove(&number) {
                self.settle(pending, Err(ProposeError::Unknown));
            }
        }
        self.end_reads(|read| read.to == member);
    }

    /// Asks a shard's leader, here or on another node, how far a read must have applied.
    pub(super) fn read_index(&mut self, at: usize, reader: Reader) {
        if self.shared.is_disputed(self.shards[at].id) {
            self.answer_read(reader, Err(ProposeError::Diverged));
            return;
        }
        let status = self.shards[at].replica.status();
        self.next_correlation += 1;
        let number = self.next_correlation;
        let leader = status.leader.filter(|&leader| leader != self.group.me);
        match (status.role, leader, &reader) {
            (Role::Leader, ..) => {
                let correlation = Correlation(number);
                self.reads.insert(correlation, reader);
                self.step(at, Event::ReadIndex { correlation });
            }
            (_, Some(leader), Reader::Here(_)) => {
                let shard = self.shards[at].id;
                if self
                    .peers
                    .send(leader, PeerFrame::ReadIndex { number, shard })
                {
                    let read = ForwardedRead {
                        shard,
                        to: leader,
                        reader,
                        deadline: self.shared.clock.steady().plus_ns(PARK_NS),
                    };
                    self.forwarded_reads.insert(number, read);
                } else {
                    self.answer_read(reader, Err(ProposeError::NoLeader));
                }
            }
            _ => self.answer_read(reader, Err(ProposeError::NoLeader)),
        }
    }

    pub(super) fn answer_read(&mut self, reader: Reader, result: Result<u64, ProposeError>) {
        match reader {
            Reader::Here(reply) => {
                let _ = reply.send(result);
            }
            Reader::Peer { member, number } => {
                // A peer that is gone asks again.
                let _ = self
                    .peers
                    .send(member, PeerFrame::ReadAnswer { number, result });
            }
        }
    }
}
