//! From a data directory to replicas and ledgers: newest whole snapshot, then the log after it.

use std::collections::BTreeMap;
use std::path::Path;

use clearspan_replica::{LogStore, MemberId, Membership, Replica, ReplicaConfig, SnapshotMark};
use clearspan_storage::{
    ClusterId, DataDir, DataDirError, Identity, Layout, Log, NodeId, NodesFile, PackageStore,
    SnapshotError, Snapshots, crash_point,
};

use super::core::members::Known;
use super::disk::{Disk, NodesStore, Packages, SnapshotStore};
use super::group::Seat;
use super::shared::ShardState;
use super::{ELECTION_TICKS, EngineError, EngineOptions};

/// All that a start needs.
pub(crate) struct Recovered {
    pub(crate) disk: Disk,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) states: Vec<ShardState>,
    /// Shards that are not served, since replicas differ.
    pub(crate) disputed: BTreeMap<clearspan_replica::ShardId, String>,
    pub(crate) known: Known,
}

/// Opens a data directory, or sets a new one up.
pub(crate) fn open_disk(
    layout: Layout,
    options: &EngineOptions,
    seat: &Seat,
) -> Result<Disk, EngineError> {
    let alone = *seat == Seat::alone();
    let nodes = NodesFile::of(&layout);
    let data = match DataDir::open(layout.clone()) {
        // A member's identity is part of the cluster's definition: a directory that lost it is no member any more.
        Err(DataDirError::Absent { .. }) if alone => {
            let identity = Identity {
                cluster: ClusterId::random().map_err(EngineError::Random)?,
                node: NodeId::random().map_err(EngineError::Random)?,
            };
            DataDir::create(layout, identity)?
        }
        other => other?,
    };
    crash_point("after-data-dir");
    let log = Log::open(&data, options.log.clone())?;
    crash_point("after-log-open");
    let packages = PackageStore::open(&data, options.packages.clone())?;
    crash_point("after-packages-open");
    Ok(Disk {
        log: Box::new(log),
        packages: Box::new(packages),
        snapshots: Box::new(Snapshots::open(&data)),
        verdicts: Box::new(data.verdicts()),
        nodes: Box::new(nodes),
        cluster: u128::from_be_bytes(data.identity().cluster.to_bytes()),
        lock: Box::new(data),
    })
}

/// Restores every shard from what is on the disk.
pub(crate) fn restore(mut disk: Disk, shards: u16, seat: &Seat) -> Result<Recovered, EngineError> {
    let verdicts = &*disk.verdicts;
    if let Some(why) = verdicts.read_diverged().map_err(EngineError::Verdicts)? {
        let path = verdicts.diverged_file();
        return Err(EngineError::Diverged { path, why });
    }
    let disputed = verdicts
        .read_disputed(shards)
        .map_err(EngineError::Verdicts)?;
    let log = &*disk.log;
    let found = log.shards().len();
    if found > usize::from(shards)
        || (found > 0 && found < usize::from(shards) && any_founded(log, shards)?)
    {
        return Err(EngineError::Shards {
            found,
            wanted: shards,
        });
    }
    let mut replicas = Vec::new();
    let mut states = Vec::new();
    for shard in 0..shards {
        let (replica, state) = open_shard(shard, &mut disk, seat)?;
        replicas.push(replica);
        states.push(state);
    }
    Ok(Recovered {
        known: known(&*disk.nodes, seat, &states)?,
        disk,
        replicas,
        states,
        disputed,
    })
}

/// What this node last knew of the cluster's nodes: from its file, or its state where that goes further.
fn known(file: &dyn NodesStore, seat: &Seat, states: &[ShardState]) -> Result<Known, EngineError> {
    let mut known = Known {
        directory: seat.founding.clone(),
        ..Known::default()
    };
    if let Some(bytes) = file.read()? {
        let (directory, lives) =
            clearspan_codec::nodes::decode(bytes).map_err(EngineError::Nodes)?;
        known.lives = lives;
        if directory.version() > known.directory.version() {
            known.directory = directory;
        }
    }
    if let Some(state) = states.first() {
        let applied = state.ledger.nodes();
        if applied.version() > known.directory.version() {
            known.directory = applied.clone();
        }
    }
    Ok(known)
}

/// Reads without starting: what a group of one has synced is committed, so all of the log is applied.
pub(crate) fn replay(
    root: &Path,
) -> Result<(DataDir, PackageStore, Vec<ShardState>, u128), EngineError> {
    let data = DataDir::open(Layout::under(root))?;
    let options = EngineOptions::usual();
    let log = Log::open(&data, options.log)?;
    let packages = PackageStore::open(&data, options.packages)?;
    let snapshots = Snapshots::open(&data);
    let mut states = Vec::new();
    for id in log.shards() {
        let (mut state, _) = newest_snapshot(
            id.get(),
            log.shard(id)?.base.index,
            &snapshots,
            &Seat::alone(),
        )?;
        check_packages(&packages, id.get(), &state)?;
        let stored = log.shard(id)?;
        let mut next = (state.mark.position.index + 1).max(stored.first_index());
        while next <= stored.last_index {
            for entry in log.entries(id, next, stored.last_index + 1, REPLAY_CHUNK_BYTES)? {
                next = entry.index + 1;
                super::apply::apply_stored(&mut state, &entry);
            }
        }
        states.push(state);
    }
    let cluster = u128::from_be_bytes(data.identity().cluster.to_bytes());
    Ok((data, packages, states, cluster))
}

/// Below every data member's: a witness leads only when it alone has the newest entries.
const WITNESS_PRIORITY: i64 = -1;

/// The group before its first entry.
fn founders(seat: &Seat) -> Membership {
    let founders = seat.founding.all();
    Membership::of_voters(
        founders
            .filter_map(|node| MemberId::new(node.member))
            .collect(),
    )
}

/// Log read at once while replaying.
const REPLAY_CHUNK_BYTES: u64 = 8 << 20;

/// Whether a shard holds more than the first blank entry of its leader: then the number of shards is fixed.
fn any_founded(log: &dyn LogStore, shards: u16) -> Result<bool, EngineError> {
    for shard in 0..shards {
        if log
            .shard(clearspan_replica::ShardId::new(shard))?
            .last_index
            > 1
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The newest whole snapshot that the log reaches back to, or nothing applied.
fn newest_snapshot(
    shard: u16,
    base_index: u64,
    snapshots: &dyn SnapshotStore,
    seat: &Seat,
) -> Result<(ShardState, Option<SnapshotMark>), EngineError> {
    let id = clearspan_replica::ShardId::new(shard);
    let mut state = ShardState::default();
    state.mark.membership = founders(seat);
    for file in snapshots
        .list(id)
        .map_err(|source| EngineError::Snapshots { shard, source })?
    {
        match file.checked {
            Ok(mark) => {
                let body = snapshots
                    .body(id, mark.position)
                    .map_err(|error| match error {
                        SnapshotError::Io { path, source, .. } => {
                            EngineError::SnapshotRead { path, source }
                        }
                        source => EngineError::Snapshots { shard, source },
                    })?;
                state.ledger = clearspan_codec::snapshot::decode(body).map_err(|source| {
                    EngineError::SnapshotBody {
                        path: file.path,
                        source,
                    }
                })?;
                state.mark = mark.clone();
                return Ok((state, Some(mark)));
            }
            Err(error) if file.position.index > base_index => {
                // The log still reaches back behind it, so an older one (or none) will do.
                eprintln!("warning: {error}; starting from an older snapshot and the log");
            }
            Err(source) => return Err(EngineError::Snapshots { shard, source }),
        }
    }
    Ok((state, None))
}

/// Packages below a snapshot are not in the log any more: where the store lacks them, nothing that they carried can be put
/// out, so it is said at once.
fn check_packages(
    packages: &dyn Packages,
    shard: u16,
    state: &ShardState,
) -> Result<(), EngineError> {
    let (from, below) = (
        state.ledger.retained_from().get(),
        state.ledger.next_message().get(),
    );
    let span = packages.span(clearspan_replica::ShardId::new(shard))?;
    if from == below || span.is_some_and(|(first, last)| first <= from && last + 1 >= below) {
        return Ok(());
    }
    Err(EngineError::PackagesMissing {
        shard,
        from,
        last: below - 1,
        found: span.map_or_else(
            || "none".to_owned(),
            |(first, last)| format!("{first} to {last}"),
        ),
    })
}

fn open_shard(
    shard: u16,
    disk: &mut Disk,
    seat: &Seat,
) -> Result<(Replica, ShardState), EngineError> {
    let id = clearspan_replica::ShardId::new(shard);
    let base_index = disk.log.shard(id)?.base.index;
    let (state, snapshot) = newest_snapshot(shard, base_index, &*disk.snapshots, seat)?;
    check_packages(&*disk.packages, shard, &state)?;
    let recovered =
        clearspan_replica::Recovered::read(&mut *disk.log, id, snapshot, founders(seat))?;
    // How long it waits before it stands for election follows from who else there is.
    let mut config = ReplicaConfig::new(id, seat.me);
    config.election_ticks = ELECTION_TICKS;
    if seat.witness {
        config.priority = WITNESS_PRIORITY;
    }
    let replica =
        Replica::new(config, recovered).map_err(|source| EngineError::Replica { shard, source })?;
    Ok((replica, state))
}
