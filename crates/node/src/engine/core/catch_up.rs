//! Catching up by snapshot: a replica that is behind the leader's log fetches its state and the packages it lacks, then
//! takes the leader's offer.

use clearspan_replica::{MessageKind, PeerMessage};

use super::*;

/// A snapshot on its way here.
pub(super) struct Fetch {
    from: MemberId,
    mark: SnapshotMark,
    /// The leader's offer, given to the replica once everything is here.
    offer: PeerMessage,
    body: Vec<u8>,
    /// The length of the whole body, once a piece has said so.
    body_bytes: u64,
    /// The state, once the body is complete; packages follow.
    state: Option<Box<Ledger>>,
}

impl Fetch {
    pub(super) fn status(&self) -> CatchUp {
        // Once it is whole the body is decoded, and gone.
        let whole = self.state.is_some() || (self.body.is_empty() && self.body_bytes > 0);
        CatchUp {
            from: self.from,
            index: self.mark.position.index,
            have_bytes: if whole {
                self.body_bytes
            } else {
                self.body.len() as u64
            },
            state_bytes: self.body_bytes,
            packages: whole,
        }
    }
}

/// The longest snapshot that is taken in: a shard's hot state is a few hundred megabytes at most.
const BODY_MAX_BYTES: u64 = 4 << 30;

impl Core {
    pub(super) fn receive_raft(&mut self, at: usize, from: MemberId, message: PeerMessage) {
        if message.from != from {
            return;
        }
        let offered = match (&message.kind, &message.snapshot) {
            (MessageKind::Snapshot, Some(mark)) => Some(mark.clone()),
            _ => None,
        };
        let shard = &mut self.shards[at];
        match offered {
            Some(mark)
                if mark.position.index > shard.replica.status().applied_index
                    && !self.group.is_witness() =>
            {
                if shard
                    .fetch
                    .as_ref()
                    .is_some_and(|fetch| fetch.mark == mark && fetch.from == from)
                {
                    return;
                }
                let id = shard.id;
                shard.fetch = Some(Fetch {
                    from,
                    mark: mark.clone(),
                    offer: message,
                    body: Vec::new(),
                    body_bytes: 0,
                    state: None,
                });
                let frame = PeerFrame::WantSnapshot {
                    shard: id,
                    mark,
                    offset_bytes: 0,
                };
                if !self.peers.send(from, frame) {
                    self.shards[at].fetch = None;
                }
            }
            _ => self.step(at, Event::Message(message)),
        }
    }

    pub(super) fn snapshot_piece(
        &mut self,
        at: usize,
        mark: &SnapshotMark,
        offset_bytes: u64,
        body_bytes: u64,
        data: &[u8],
    ) {
        let shard = &mut self.shards[at];
        let id = shard.id;
        let Some(fetch) = shard
            .fetch
            .as_mut()
            .filter(|fetch| fetch.mark == *mark && fetch.state.is_none())
        else {
            return;
        };
        if fetch.body.len() as u64 != offset_bytes {
            return;
        }
        if data.is_empty() || body_bytes > BODY_MAX_BYTES {
            self.end_fetch(at, false);
            return;
        }
        fetch.body_bytes = body_bytes;
        fetch.body.extend_from_slice(data);
        let (from, have) = (fetch.from, fetch.body.len() as u64);
        if have < body_bytes {
            let frame = PeerFrame::WantSnapshot {
                shard: id,
                mark: mark.clone(),
                offset_bytes: have,
            };
            if !self.peers.send(from, frame) {
                self.end_fetch(at, false);
            }
            return;
        }
        let body = Bytes::from(std::mem::take(&mut fetch.body));
        match clearspan_codec::snapshot::decode(body) {
            Ok(ledger) => {
                fetch.state = Some(Box::new(ledger));
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
        let Some(fetch) = &self.shards[at].fetch else {
            return;
        };
        let Some(state) = &fetch.state else { return };
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
        if !self.peers.send(fetch.from, frame) {
            self.end_fetch(at, false);
        }
    }

    pub(super) fn packages_came(&mut self, at: usize, packages: Vec<(u64, Bytes)>, through: u64) {
        let id = self.shards[at].id;
        let Some(fetch) = &self.shards[at].fetch else {
            return;
        };
        let Some(state) = &fetch.state else { return };
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
            let from = fetch.from;
            if !self.peers.send(from, frame) {
                self.end_fetch(at, false);
            }
        }
    }

    /// Everything is here: it becomes durable before the replica may count on it.
    fn store_fetched(&mut self, at: usize) {
        let shard = &mut self.shards[at];
        if let Some(fetch) = &mut shard.fetch
            && let Some(state) = fetch.state.take()
        {
            let _ = self
                .snapshots
                .send(SnapshotTask::Store(shard.id, fetch.mark.clone(), state));
        }
    }

    pub(super) fn snapshot_fetched(&mut self, at: usize, mark: &SnapshotMark, ledger: Ledger) {
        let Some(fetch) = self.shards[at].fetch.take_if(|fetch| fetch.mark == *mark) else {
            return;
        };
        self.shards[at].fetch = Some(Fetch {
            state: Some(Box::new(ledger)),
            ..fetch
        });
        let Some(offer) = self.shards[at]
            .fetch
            .as_ref()
            .map(|fetch| fetch.offer.clone())
        else {
            return;
        };
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
            .and_then(|fetch| fetch.state.take());
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

    fn end_fetch(&mut self, at: usize, delivered: bool) {
        let shard = &mut self.shards[at];
        let id = shard.id;
        if let Some(fetch) = shard.fetch.take() {
            let _ = self.peers.send(
                fetch.from,
                PeerFrame::SnapshotEnd {
                    shard: id,
                    delivered,
                },
            );
        }
    }

    pub(super) fn abandon_fetch(&mut self, at: usize, member: MemberId) {
        let shard = &mut self.shards[at];
        shard.fetch.take_if(|fetch| fetch.from == member);
    }
}
