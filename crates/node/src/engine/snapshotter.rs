//! The thread that takes, serves and stores snapshots: the shard stands still while its state is encoded, not while it is
//! written or sent.

use std::io::Read as _;
use std::sync::Arc;

use bytes::Bytes;
use clearspan_ledger::{Ledger, MessageNo, ShardId};
use clearspan_replica::{MemberId, SnapshotMark};
use clearspan_storage::{SnapshotError, Snapshots, crash_point, stop};
use crossbeam_channel::{Receiver, Sender, bounded};

use super::core::CoreEvent;
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
    /// Send packages.
    ServePackages {
        to: MemberId,
        shard: ShardId,
        from: u64,
        below: u64,
    },
}

/// Bytes of a snapshot or of packages per frame: urgent frames go on a connection of their own, so this only bounds
/// memory and what a broken connection repeats.
const PIECE_BYTES: usize = 1 << 20;

pub(crate) struct Snapshotter {
    pub(crate) shared: Arc<Shared>,
    pub(crate) snapshots: Snapshots,
    pub(crate) packages: Sender<PackageTask>,
    pub(crate) core: Sender<CoreEvent>,
    /// The body that was asked for last: pieces are asked for one after another.
    pub(crate) serving: Option<(ShardId, SnapshotMark, Bytes)>,
}

impl Snapshotter {
    pub(crate) fn run(mut self, tasks: &Receiver<SnapshotTask>) {
        while let Ok(task) = tasks.recv() {
            let event = match task {
                SnapshotTask::Take(shard) => self.take(shard),
                SnapshotTask::Store(shard, mark, ledger) => self.store(shard, mark, ledger),
                SnapshotTask::Serve {
                    to,
                    shard,
                    mark,
                    offset_bytes,
                } => Some(CoreEvent::Outgoing(
                    to,
                    self.piece(shard, mark, offset_bytes),
                )),
                SnapshotTask::ServePackages {
                    to,
                    shard,
                    from,
                    below,
                } => Some(CoreEvent::Outgoing(to, self.packages(shard, from, below))),
            };
            if event.is_none_or(|event| self.core.send(event).is_err()) {
                return;
            }
        }
    }

    fn take(&self, shard: ShardId) -> Option<CoreEvent> {
        let (mark, body, retained) = {
            let state = self.shared.shard(shard);
            (
                state.mark.clone(),
                clearspan_codec::snapshot::encode(&state.ledger),
                state.ledger.retained_from(),
            )
        };
        self.write(shard, mark, &body, retained)
    }

    fn store(&self, shard: ShardId, mark: SnapshotMark, ledger: Box<Ledger>) -> Option<CoreEvent> {
        let body = clearspan_codec::snapshot::encode(&ledger);
        match self.write(shard, mark.clone(), &body, ledger.retained_from())? {
            CoreEvent::SnapshotTaken(..) => Some(CoreEvent::SnapshotFetched(shard, mark, ledger)),
            skipped => Some(skipped),
        }
    }

    fn write(
        &self,
        shard: ShardId,
        mark: SnapshotMark,
        body: &[u8],
        retained: MessageNo,
    ) -> Option<CoreEvent> {
        // The log may go once the snapshot stands, so the packages that it carried must be durable first.
        let (done, wait) = bounded(1);
        self.packages.send(PackageTask::Persist(done)).ok()?;
        wait.recv().ok()?;
        crash_point("after-snapshot-packages");
        let number = clearspan_replica::ShardId::new(shard.get());
        match self
            .snapshots
            .write(number, &mark, |out| out.write_all(body))
        {
            Ok(_) => {}
            // The log stays until a later snapshot finds room.
            Err(SnapshotError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::StorageFull =>
            {
                return Some(CoreEvent::SnapshotSkipped(shard));
            }
            Err(error) => stop(&error),
        }
        self.packages
            .send(PackageTask::Remove(shard, retained))
            .ok()?;
        Some(CoreEvent::SnapshotTaken(shard, mark))
    }

    /// A piece of a snapshot's body; an empty one when it is not there any more.
    fn piece(&mut self, shard: ShardId, mark: SnapshotMark, offset_bytes: u64) -> PeerFrame {
        let held = self
            .serving
            .as_ref()
            .is_some_and(|(id, held, _)| *id == shard && *held == mark);
        if !held {
            self.serving = self
                .read(shard, &mark)
                .map(|body| (shard, mark.clone(), body));
        }
        let body = self
            .serving
            .as_ref()
            .map(|(.., body)| body.clone())
            .unwrap_or_default();
        let start = usize::try_from(offset_bytes)
            .unwrap_or(usize::MAX)
            .min(body.len());
        let end = (start + PIECE_BYTES).min(body.len());
        let piece = PeerFrame::SnapshotPiece {
            shard,
            mark,
            offset_bytes,
            body_bytes: body.len() as u64,
            data: body.slice(start..end),
        };
        if end == body.len() {
            self.serving = None;
        }
        piece
    }

    fn read(&self, shard: ShardId, mark: &SnapshotMark) -> Option<Bytes> {
        let number = clearspan_replica::ShardId::new(shard.get());
        let mut reader = self.snapshots.read(number, mark.position).ok()?;
        let mut body = Vec::new();
        reader.read_to_end(&mut body).ok()?;
        Some(Bytes::from(body))
    }

    /// Packages from a number on, as many as fit a frame; numbers that hold none (of messages refused before they were
    /// stored, or beyond retention) are passed over.
    fn packages(&self, shard: ShardId, from: u64, below: u64) -> PeerFrame {
        let mut packages = Vec::new();
        let mut bytes = 0;
        let mut number = from;
        while number < below && bytes < PIECE_BYTES {
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
