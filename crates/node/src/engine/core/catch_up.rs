//! Catching up by snapshot: a replica that is behind the leader's log fetches its state and the packages it lacks, then
//! takes the leader's offer.

use clearspan_replica::{MessageKind, PeerMessage};

use super::*;

/// A snapshot on its way here.
pub(super) struct Fetch {
    from: MemberId,
    mark: SnapshotMark,
    /// The leader's newest offer, given to the replica once everything is here.
    offer: PeerMessage,
    /// The length of the whole body, once a piece has said so.
    body_bytes: u64,
    stage: Stage,
}

/// How far it has come. A cut takes nothing of it back: the leader offers again, and it goes on.
enum Stage {
    /// What was kept by an earlier life is being looked for.
    Looking,
    /// Pieces of the body come.
    Body {
        body: Vec<u8>,
        /// Pieces are asked for up to here.
        asked_bytes: u64,
        /// The length of the sender's pieces, as the first one shows.
        piece_bytes: Option<u64>,
    },
    /// The state is here; packages follow.
    Packages(Box<Ledger>),
    /// It is being made durable.
    Storing,
    /// It is durable; the replica is to take it.
    Stored(Box<Ledger>),
}

impl Fetch {
    pub(super) fn status(&self) -> CatchUp {
        let (have_bytes, packages) = match &self.stage {
            Stage::Looking => (0, false),
            Stage::Body { body, .. } => (body.len() as u64, false),
            Stage::Packages(_) | Stage::Storing | Stage::Stored(_) => (self.body_bytes, true),
        };
        CatchUp {
            from: self.from,
            index: self.mark.position.index,
            have_bytes,
            state_bytes: self.body_bytes,
            packages,
        }
    }
}

/// The longest snapshot that is taken in: a shard's hot state is a few hundred megabytes at most.
const BODY_MAX_BYTES: u64 = 4 << 30;
/// Pieces that are asked for ahead: with one alone a round trip of 100 ms would bound a fetch to 10 MB/s.
const AHEAD_PIECES: u64 = 8;

impl Core {
    pub(super) fn receive_raft(&mut self, at: usize, from: MemberId, message: PeerMessage) {
        if message.from != from {
            return;
        }
        let offered = match (&message.kind, &message.snapshot) {
            (MessageKind::Snapshot, Some(mark)) => Some(mark.clone()),
            _ => None,
        };
        match offered {
            Some(mark)
                if mark.position.index > self.shards[at].replica.status().applied_index
                    && !self.group.is_witness() =>
            {
                self.offered(at, from, mark, message);
            }
            _ => self.step(at, Event::Message(message)),
        }
    }

    /// A leader offers a snapshot, or offers it again after a cut or a restart of its own.
    fn offered(&mut self, at: usize, from: MemberId, mark: SnapshotMark, offer: PeerMessage) {
        let shard = &mut self.shards[at];
        if let Some(fetch) = shard.fetch.as_mut().filter(|fetch| fetch.mark == mark) {
            fetch.from = from;
            fetch.offer = offer;
            match &mut fetch.stage {
                Stage::Body {
                    body,
                    asked_bytes,
                    piece_bytes,
                } => {
                    // What was under way may be lost, and another sender may cut other pieces.
                    *asked_bytes = body.len() as u64;
                    *piece_bytes = None;
                    self.want_pieces(at, u64::MAX);
                }
                Stage::Packages(_) => self.want_packages(at),
                Stage::Looking | Stage::Storing | Stage::Stored(_) => {}
            }
            return;
        }
        let id = shard.id;
        shard.fetch = Some(Fetch {
            from,
            mark: mark.clone(),
            offer,
            body_bytes: 0,
            stage: Stage::Looking,
        });
        let _ = self.snapshots.send(SnapshotTask::Kept(id, mark));
    }

    /// What an earlier life of this node, or an earlier fetch, has kept of the snapshot.
    pub(super) fn pieces_kept(&mut self, at: usize, mark: &SnapshotMark, body: Vec<u8>) {
        let fetch = self.shards[at].fetch.as_mut();
        let Some(fetch) = fetch.filter(|fetch| fetch.mark == *mark) else {
            return;
        };
        if matches!(fetch.stage, Stage::Looking) {
            fetch.stage = Stage::Body {
                asked_bytes: body.len() as u64,
                body,
                piece_bytes: None,
            };
            self.want_pieces(at, u64::MAX);
        }
    }

    /// Asks for pieces ahead, as far as the body goes. A leader that cannot be reached now offers again once it can.
    fn want_pieces(&mut self, at: usize, body_bytes: u64) {
        let id = self.shards[at].id;
        let Some(Fetch {
            from,
            mark,
            stage:
                Stage::Body {
                    body,
                    asked_bytes,
                    piece_bytes,
                },
            ..
        }) = &mut self.shards[at].fetch
        else {
            return;
        };
        let have = body.len() as u64;
        let end = piece_bytes.map_or(have + 1, |piece| {
            have.saturating_add(AHEAD_PIECES.saturating_mul(piece))
        });
        while *asked_bytes < end.min(body_bytes) {
            let frame = PeerFrame::WantSnapshot {
                shard: id,
                mark: mark.clone(),
                offset_bytes: *asked_bytes,
            };
            if !self.peers.send(*from, frame) {
                return;
            }
            *asked_bytes = asked_bytes.saturating_add(piece_bytes.unwrap_or(1).max(1));
        }
    }

    pub(super) fn snapshot_piece(
        &mut self,
        at: usize,
        mark: &SnapshotMark,
        offset_bytes: u64,
        body_bytes: u64,
        data: Bytes,
    ) {
        let shard = &mut self.shards[at];
        let id = shard.id;
        let Some(Fetch {
            body_bytes: whole_bytes,
            stage:
                Stage::Body {
                    body,
                    asked_bytes,
                    piece_bytes,
                },
            ..
        }) = shard.fetch.as_mut().filter(|fetch| fetch.mark == *mark)
        else {
            return;
        };
        // One that was asked for twice, around a cut.
        if body.len() as u64 != offset_bytes {
            return;
        }
        // The leader has it no more, or what was kept is not of it.
        if data.is_empty() || body_bytes > BODY_MAX_BYTES {
            self.end_fetch(at, false);
            return;
        }
        *whole_bytes = body_bytes;
        body.extend_from_slice(&data);
        let have = body.len() as u64;
        piece_bytes.get_or_insert(data.len() as u64);
        *asked_bytes = (*asked_bytes).max(have);
        if have < body_bytes {
            let _ = self.snapshots.send(SnapshotTask::Keep {
                shard: id,
                mark: mark.clone(),
                offset_bytes,
                data,
            });
            self.want_pieces(at, body_bytes);
            return;
        }
        let body = Bytes::from(std::mem::take(body));
        match clearspan_codec::snapshot::decode(body) {
            Ok(ledger) => {
                if let Some(fetch) = &mut shard.fetch {
                    fetch.stage = Stage::Packages(Box::new(ledger));
                }
                self.want_packages(at);
            }
            Err(error) => {
                eprintln!("shard {id}: the snapshot that was offered cannot be read: {error}");
                self.end_fetch(at, false);
            }
        }
    }

    /// Asks for the packages that the fetched state stands on and that are not here.
    fn want_packages(&mut self, at: usize) {
        let id = self.shards[at].id;
        let number = clearspan_replica::ShardId::new(id.get());
        let Some(Fetch {
            from: source,
            stage: Stage::Packages(state),
            ..
        }) = &self.shards[at].fetch
        else {
            return;
        };
        let source = *source;
        let (retained, below) = (state.retained_from().get(), state.next_message().get());
        let here = match self.shared.packages.span(number) {
            Ok(span) => span.map_or(0, |(_, last)| last + 1),
            Err(error) => stop(&error),
        };
        let from = here.max(retained);
        if from >= below {
            self.store_fetched(at);
            return;
        }
        let frame = PeerFrame::WantPackages {
            shard: id,
            from,
            below,
        };
        // A leader that cannot be reached now offers again once it can.
        let _ = self.peers.send(source, frame);
    }

    pub(super) fn packages_came(&mut self, at: usize, packages: Vec<(u64, Bytes)>, through: u64) {
        let id = self.shards[at].id;
        let Some(Fetch {
            from,
            stage: Stage::Packages(state),
            ..
        }) = &self.shards[at].fetch
        else {
            return;
        };
        let from = *from;
        let below = state.next_message().get();
        for (number, data) in packages {
            self.store_package(id, MessageNo::new(number), data);
        }
        if through >= below {
            self.store_fetched(at);
        } else {
            let frame = PeerFrame::WantPackages {
                shard: id,
                from: through,
                below,
            };
            let _ = self.peers.send(from, frame);
        }
    }

    /// Everything is here: it becomes durable before the replica may count on it.
    fn store_fetched(&mut self, at: usize) {
        let shard = &mut self.shards[at];
        let Some(fetch) = &mut shard.fetch else {
            return;
        };
        match std::mem::replace(&mut fetch.stage, Stage::Storing) {
            Stage::Packages(state) => {
                let _ =
                    self.snapshots
                        .send(SnapshotTask::Store(shard.id, fetch.mark.clone(), state));
            }
            other => fetch.stage = other,
        }
    }

    pub(super) fn snapshot_fetched(&mut self, at: usize, mark: &SnapshotMark, ledger: Ledger) {
        let fetch = self.shards[at].fetch.as_mut();
        let Some(fetch) = fetch.filter(|fetch| fetch.mark == *mark) else {
            return;
        };
        fetch.stage = Stage::Stored(Box::new(ledger));
        let offer = fetch.offer.clone();
        self.step(at, Event::Message(offer));
        self.end_fetch(at, true);
    }

    /// The replica has taken the offer: the state is replaced.
    pub(super) fn install(&mut self, at: usize, mark: SnapshotMark) {
        let id = self.shards[at].id;
        let fetched = self.shards[at]
            .fetch
            .as_mut()
            .filter(|fetch| fetch.mark == mark)
            .and_then(
                |fetch| match std::mem::replace(&mut fetch.stage, Stage::Storing) {
                    Stage::Stored(ledger) => Some(ledger),
                    _ => None,
                },
            );
        {
            let shared = self.shared.clone();
            let mut state = shared.shard_mut(id);
            match fetched {
                Some(ledger) => state.ledger = *ledger,
                None if self.group.is_witness() => {}
                None => {
                    drop(state);
                    stop(&Stopping::NotFetched { shard: id });
                }
            }
            state.mark = mark.clone();
            let digest = state.ledger.digest();
            let compared = &mut self.shards[at].compared;
            compared.reset(mark.position.index, digest);
        }
        crate::events::log(
            "shard.snapshot-installed",
            serde_json::json!({ "shard": id.get(), "index": mark.position.index }),
        );
        let shard = &mut self.shards[at];
        shard.older_snapshot = mark.position.index;
        shard.newest_snapshot = mark.position.index;
        self.dirty = true;
        self.look_for_nodes(at);
        self.membership_changed(at);
    }

    pub(super) fn end_fetch(&mut self, at: usize, delivered: bool) {
        let shard = &mut self.shards[at];
        let id = shard.id;
        if let Some(fetch) = shard.fetch.take() {
            if !delivered {
                let _ = self.snapshots.send(SnapshotTask::Forget(id));
            }
            let _ = self.peers.send(
                fetch.from,
                PeerFrame::SnapshotEnd {
                    shard: id,
                    delivered,
                },
            );
        }
    }

    /// Somebody asked for a snapshot that this node cannot read. It is told so, and when it is the newest, another one is
    /// taken: otherwise the same one would be offered until the log has grown enough.
    pub(super) fn snapshot_unreadable(
        &mut self,
        to: MemberId,
        at: usize,
        mark: SnapshotMark,
        offset_bytes: u64,
    ) {
        let shard = &mut self.shards[at];
        let id = shard.id;
        if mark.position.index == shard.newest_snapshot && !shard.snapshot_running {
            eprintln!("shard {id}: the newest snapshot cannot be read: another one is taken");
            // The one before it stays what the log is kept back to.
            shard.newest_snapshot = shard.older_snapshot;
            shard.snapshot_running = true;
            shard.since_snapshot_bytes = 0;
            let _ = self.snapshots.send(SnapshotTask::Take(id));
        }
        let nothing = PeerFrame::SnapshotPiece {
            shard: id,
            mark,
            offset_bytes,
            body_bytes: 0,
            data: Bytes::new(),
        };
        self.pace.push(to, nothing);
    }

    /// Lets go what may leave by now.
    pub(super) fn send_paced(&mut self) {
        let now = self.shared.clock.steady();
        while let Some((to, frame)) = self.pace.pop(now) {
            // A peer that is gone asks again.
            let _ = self.peers.send(to, frame);
        }
    }

    /// A fetched snapshot found no room on the disk: the leader offers again.
    pub(super) fn fetch_skipped(&mut self, at: usize) {
        let fetch = &self.shards[at].fetch;
        if fetch
            .as_ref()
            .is_some_and(|fetch| matches!(fetch.stage, Stage::Storing))
        {
            self.end_fetch(at, false);
        }
    }
}

/// Pieces and packages on their way out, no faster than they may go: they share the line with what is being settled.
pub(super) struct Pace {
    bytes_per_s: u64,
    waiting: VecDeque<(MemberId, PeerFrame)>,
    next: Timestamp,
}

/// What may leave at once after a pause.
const PACE_SLACK_NS: u64 = 50_000_000;

impl Pace {
    /// Zero is no limit.
    pub(super) const fn new(bytes_per_s: u64) -> Self {
        Self {
            bytes_per_s,
            waiting: VecDeque::new(),
            next: Timestamp::ZERO,
        }
    }

    pub(super) fn push(&mut self, to: MemberId, frame: PeerFrame) {
        self.waiting.push_back((to, frame));
    }

    /// The next that may leave now.
    pub(super) fn pop(&mut self, now: Timestamp) -> Option<(MemberId, PeerFrame)> {
        if now < self.next {
            return None;
        }
        let (to, frame) = self.waiting.pop_front()?;
        let bytes = match &frame {
            PeerFrame::SnapshotPiece { data, .. } => data.len(),
            PeerFrame::Packages { packages, .. } => {
                packages.iter().map(|(_, data)| data.len()).sum()
            }
            _ => 0,
        };
        if self.bytes_per_s > 0 {
            let ns = u128::from(bytes as u64) * 1_000_000_000 / u128::from(self.bytes_per_s);
            let earliest = Timestamp::from_ns(now.ns().saturating_sub(PACE_SLACK_NS));
            self.next = self
                .next
                .max(earliest)
                .plus_ns(u64::try_from(ns).unwrap_or(u64::MAX));
        }
        Some((to, frame))
    }

    /// When the next may leave; `None` while none waits.
    pub(super) fn due(&self) -> Option<Timestamp> {
        (!self.waiting.is_empty()).then_some(self.next)
    }

    /// What waits for a member that is gone is asked for again.
    pub(super) fn drop_for(&mut self, member: MemberId) {
        self.waiting.retain(|(to, _)| *to != member);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_leave_no_faster_than_they_may() {
        let member = MemberId::new(1).unwrap();
        let piece = |offset_bytes| PeerFrame::SnapshotPiece {
            shard: ShardId::new(0),
            mark: SnapshotMark::default(),
            offset_bytes,
            body_bytes: 1 << 30,
            data: Bytes::from(vec![0; 1_000_000]),
        };
        let mut pace = Pace::new(10_000_000);
        let start = Timestamp::from_ns(1_000_000_000_000);
        for at in 0..100 {
            pace.push(member, piece(at));
        }
        let mut sent = 0;
        for ms in 0..1000 {
            while pace.pop(start.plus_ns(ms * 1_000_000)).is_some() {
                sent += 1;
            }
        }
        assert_eq!(sent, 11, "10 MB in a second, and the first at once");
        assert!(pace.due().is_some());
        pace.drop_for(member);
        assert!(pace.due().is_none());
        let mut free = Pace::new(0);
        for at in 0..100 {
            free.push(member, piece(at));
        }
        while free.pop(start).is_some() {}
        assert!(free.due().is_none());
    }
}
