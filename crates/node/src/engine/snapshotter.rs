//! The thread that takes snapshots: the shard stands still while its state is encoded, not while it is written.

use std::sync::Arc;

use clearspan_ledger::ShardId;
use clearspan_storage::{SnapshotError, Snapshots, crash_point, stop};
use crossbeam_channel::{Receiver, Sender, bounded};

use super::core::CoreEvent;
use super::package_writer::PackageTask;
use super::shared::Shared;

pub(crate) fn run(
    shared: &Arc<Shared>,
    snapshots: &Snapshots,
    tasks: &Receiver<ShardId>,
    packages: &Sender<PackageTask>,
    core: &Sender<CoreEvent>,
) {
    while let Ok(shard) = tasks.recv() {
        let Some(event) = take(shared, snapshots, packages, shard) else {
            return;
        };
        if core.send(event).is_err() {
            return;
        }
    }
}

fn take(
    shared: &Arc<Shared>,
    snapshots: &Snapshots,
    packages: &Sender<PackageTask>,
    shard: ShardId,
) -> Option<CoreEvent> {
    let (mark, body, retained) = {
        let state = shared.shard(shard);
        (
            state.mark.clone(),
            clearspan_codec::snapshot::encode(&state.ledger),
            state.ledger.retained_from(),
        )
    };
    // The log may go once the snapshot stands, so the packages that it carried must be durable first.
    let (done, wait) = bounded(1);
    packages.send(PackageTask::Persist(done)).ok()?;
    wait.recv().ok()?;
    crash_point("after-snapshot-packages");
    let number = clearspan_replica::ShardId::new(shard.get());
    match snapshots.write(number, &mark, |out| out.write_all(&body)) {
        Ok(_) => {}
        // The log stays until a later snapshot finds room.
        Err(SnapshotError::Io { source, .. })
            if source.kind() == std::io::ErrorKind::StorageFull =>
        {
            return Some(CoreEvent::SnapshotSkipped(shard));
        }
        Err(error) => stop(&error),
    }
    packages.send(PackageTask::Remove(shard, retained)).ok()?;
    Some(CoreEvent::SnapshotTaken(shard, mark))
}
