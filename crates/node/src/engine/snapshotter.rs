//! Takes, serves and stores snapshots: the shard stands still while its state is encoded, not while it is
//! written or sent.

use std::sync::Arc;

use bytes::Bytes;
use clearspan_ledger::{Ledger, MessageNo, ShardId};
use clearspan_replica::{MemberId, SnapshotMark};
use clearspan_storage::{SnapshotError, crash_point, stop};
use crossbeam_channel::{Receiver, Sender, bounded};

use super::core::CoreEvent;
use super::disk::{NodesStore, SnapshotStore};
use super::package_writer::PackageTask;
use super::peers::PeerFrame;
use super::shared::Shared;

/// What is asked of this thread.
#[derive(Debug)]
pub(crate) enum SnapshotTask {
    /// Take one of a shard.
    Take(ShardId),
    /// Make a fetched one durable, with the packages that came before it.
    Store(ShardId, SnapshotMark, Box<Ledger>),
    /// Send a piece of one.
    Serve {
        to: MemberId,
        shard: ShardId,
        mark: SnapshotMark,
        offset_bytes: u64,
    },
    /// Keep what is known of the cluster's nodes.
    StoreNodes(Vec<u8>),
    /// Find what was kept of one that is fetched.
    Kept(ShardId, SnapshotMark),
    /// Keep a piece of one that is fetched.
    Keep {
        shard: ShardId,
        mark: SnapshotMark,
        offset_bytes: u64,
        data: Bytes,
    },
    /// Drop what was kept.
    Forget(ShardId),
    /// Send packages.
    ServePackages {
        to: MemberId,
        shard: ShardId,
        from: u64,
        below: u64,
    },
}

/// Bodies of snapshots that are held while they are sent: several shards of a node that was away are fetched at once.
const SERVING_MAX: usize = 4;

pub(crate) struct Snapshotter {
    pub(crate) shared: Arc<Shared>,
    pub(crate) snapshots: Box<dyn SnapshotStore>,
    pub(crate) nodes: Box<dyn NodesStore>,
    pub(crate) packages: Sender<PackageTask>,
    /// The bodies that were asked for last, the newest at the end.
    pub(crate) serving: Vec<(ShardId, SnapshotMark, Bytes)>,
    /// Bytes of a snapshot or of packages per frame: urgent frames go on a connection of their own, so this only bounds
    /// memory and what a broken connection repeats.
    pub(crate) piece_bytes: usize,
}

/// How far a task comes at once.
pub(crate) enum Begun {
    /// All of it; the core is not waiting for it.
    Nothing,
    /// All of it.
    Done(CoreEvent),
    /// A snapshot is to be written once the packages that it stands on are durable.
    Write(Writing),
}

/// A snapshot on its way to the disk.
pub(crate) struct Writing {
    shard: ShardId,
    mark: SnapshotMark,
    body: Vec<u8>,
    retained: MessageNo,
    /// The state that was fetched, which the core waits for.
    fetched: Option<Box<Ledger>>,
}

impl Snapshotter {
    /// Works until nobody asks any more.
    pub(crate) fn run(mut self, tasks: &Receiver<SnapshotTask>, core: &Sender<CoreEvent>) {
        while let Ok(task) = tasks.recv() {
            let event = match self.begin(task) {
                Begun::Nothing => continue,
                Begun::Done(event) => event,
                Begun::Write(writing) => {
                    let (done, wait) = bounded(1);
                    if self.packages.send(PackageTask::Persist(done)).is_err()
                        || wait.recv().is_err()
                    {
                        return;
                    }
                    self.finish(writing)
                }
            };
            if core.send(event).is_err() {
                return;
            }
        }
    }

    /// Takes a task as far as it comes without the package writer. The log may go once a snapshot stands, so the packages
    /// that it carried must be durable first.
    pub(crate) fn begin(&mut self, task: SnapshotTask) -> Begun {
        match task {
            SnapshotTask::StoreNodes(bytes) => {
                if let Err(error) = self.nodes.replace(&bytes) {
                    stop(&error);
                }
                Begun::Nothing
            }
            SnapshotTask::Take(shard) => {
                let state = self.shared.shard(shard);
                Begun::Write(Writing {
                    shard,
                    mark: state.mark.clone(),
                    body: clearspan_codec::snapshot::encode(&state.ledger),
                    retained: state.ledger.retained_from(),
                    fetched: None,
                })
            }
            SnapshotTask::Store(shard, mark, ledger) => Begun::Write(Writing {
                shard,
                mark,
                body: clearspan_codec::snapshot::encode(&ledger),
                retained: ledger.retained_from(),
                fetched: Some(ledger),
            }),
            SnapshotTask::Serve {
                to,
                shard,
                mark,
                offset_bytes,
            } => {
                let piece = self.piece(shard, &mark, offset_bytes);
                Begun::Done(match piece {
                    Some(piece) => CoreEvent::Outgoing(to, piece),
                    None => CoreEvent::SnapshotUnreadable {
                        to,
                        shard,
                        mark,
                        offset_bytes,
                    },
                })
            }
            SnapshotTask::Kept(shard, mark) => {
                let number = clearspan_replica::ShardId::new(shard.get());
                // What cannot be read is fetched again.
                let kept = self.snapshots.kept_pieces(number, &mark);
                Begun::Done(CoreEvent::PiecesKept(shard, mark, kept.unwrap_or_default()))
            }
            SnapshotTask::Keep {
                shard,
                mark,
                offset_bytes,
                data,
            } => {
                let number = clearspan_replica::ShardId::new(shard.get());
                // What is not kept is fetched again after a restart.
                let _ = self
                    .snapshots
                    .keep_piece(number, &mark, offset_bytes, &data);
                Begun::Nothing
            }
            SnapshotTask::Forget(shard) => {
                let number = clearspan_replica::ShardId::new(shard.get());
                // The next fetch's first piece takes its place at the latest.
                let _ = self.snapshots.forget_pieces(number);
                Begun::Nothing
            }
            SnapshotTask::ServePackages {
                to,
                shard,
                from,
                below,
            } => Begun::Done(CoreEvent::Outgoing(to, self.packages(shard, from, below))),
        }
    }

    /// Writes a snapshot whose packages are durable.
    pub(crate) fn finish(&self, writing: Writing) -> CoreEvent {
        let Writing {
            shard,
            mark,
            body,
            retained,
            fetched,
        } = writing;
        crash_point("after-snapshot-packages");
        let number = clearspan_replica::ShardId::new(shard.get());
        match self.snapshots.write(number, &mark, &body) {
            Ok(()) => {}
            // The log stays until a later snapshot finds room.
            Err(SnapshotError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::StorageFull =>
            {
                return CoreEvent::SnapshotSkipped(shard);
            }
            Err(error) => stop(&error),
        }
        // Nobody stores packages any more when the node stops.
        let _ = self.packages.send(PackageTask::Remove(shard, retained));
        match fetched {
            Some(ledger) => {
                let _ = self.snapshots.forget_pieces(number);
                CoreEvent::SnapshotFetched(shard, mark, ledger)
            }
            None => CoreEvent::SnapshotTaken(shard, mark),
        }
    }

    /// A piece of a snapshot's body; `None` when it is not there any more, or damaged.
    fn piece(
        &mut self,
        shard: ShardId,
        mark: &SnapshotMark,
        offset_bytes: u64,
    ) -> Option<PeerFrame> {
        let held = self
            .serving
            .iter()
            .find(|(id, held, _)| *id == shard && held == mark)
            .map(|(.., body)| body.clone());
        let body = match held {
            Some(body) => body,
            None => {
                let body = self.read(shard, mark)?;
                self.serving.retain(|(id, ..)| *id != shard);
                if self.serving.len() == SERVING_MAX {
                    self.serving.remove(0);
                }
                self.serving.push((shard, mark.clone(), body.clone()));
                body
            }
        };
        let start = usize::try_from(offset_bytes)
            .unwrap_or(usize::MAX)
            .min(body.len());
        let end = (start + self.piece_bytes).min(body.len());
        let piece = PeerFrame::SnapshotPiece {
            shard,
            mark: mark.clone(),
            offset_bytes,
            body_bytes: body.len() as u64,
            data: body.slice(start..end),
        };
        if end == body.len() {
            self.serving.retain(|(id, ..)| *id != shard);
        }
        Some(piece)
    }

    fn read(&self, shard: ShardId, mark: &SnapshotMark) -> Option<Bytes> {
        let number = clearspan_replica::ShardId::new(shard.get());
        self.snapshots.body(number, mark.position).ok()
    }

    /// Packages from a number on, as many as fit a frame; numbers that hold none (of messages refused before they were
    /// stored, or beyond retention) are passed over.
    fn packages(&self, shard: ShardId, from: u64, below: u64) -> PeerFrame {
        let mut packages = Vec::new();
        let mut bytes = 0;
        let mut number = from;
        while number < below && bytes < self.piece_bytes {
            match self.shared.package(shard, MessageNo::new(number)) {
                Ok(Some(data)) => {
                    bytes += data.len();
                    packages.push((number, data));
                }
                Ok(None) => {}
                Err(error) => stop(&error),
            }
            number += 1;
        }
        PeerFrame::Packages {
            shard,
            packages,
            through: number,
        }
    }
}
