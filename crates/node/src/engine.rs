//! A node with all its shards in one process: replicas, ledgers, log and packages, and the pump between the shards.
//!
//! One core thread steps every shard's replica and applies what is committed. The log has a thread of its own, which makes
//! everything at hand durable with one fsync while the core goes on; so have packages and snapshots. A reply leaves only
//! after its entry is durable and applied.

mod apply;
mod core;
pub mod disk;
pub mod group;
mod log_writer;
mod package_writer;
pub mod peers;
mod reconcile;
mod recover;
mod shared;
mod snapshotter;
pub mod stepped;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::thread::JoinHandle;

use bytes::Bytes;
use clearspan_ledger::entry::Command;
use clearspan_ledger::nodes::NodeDirectory;
use clearspan_ledger::{Ledger, MessageNo, Outcome, ShardId};
use clearspan_storage::{
    DataDirError, FreeSpace as _, Layout, LogOptions, PackageError, PackageOptions, SnapshotError,
    VolumeSpace, crash_point,
};
use crossbeam_channel::{Receiver, Sender, bounded};

use crate::clock::Clock;
use clearspan_replica::MemberId;
use group::Seat;
use peers::{NoPeers, PeerFrame, Peers};
use shared::Shared;

pub(crate) use core::FORGOTTEN;
pub use core::{CatchUp, Comparisons, CoreQueues, PeerProgress, ShardStatus};
pub use reconcile::Wait;
pub use shared::Reading;

/// How a node keeps its data.
#[derive(Debug, Default)]
pub struct EngineOptions {
    /// The log's files.
    pub log: LogOptions,
    /// The package store.
    pub packages: PackageOptions,
    /// Where time comes from.
    pub clock: Clock,
    /// A snapshot of a shard is taken once this many bytes were applied since its last one.
    pub snapshot_after_bytes: u64,
    /// How long a leader may be silent before another is elected, in nanoseconds; the same on all nodes. Ten round trips at
    /// least, and ten times the slowest fsync.
    pub election_ns: u64,
    /// Snapshots and packages leave for nodes that catch up no faster than this, all together; 0 is no limit. They share
    /// the lines between sites with what is being settled.
    pub catch_up_bytes_per_s: u64,
    /// They leave in pieces of this many bytes.
    pub piece_bytes: usize,
}

/// A second: ten round trips of 100 ms, and ten times the slowest fsync that was seen on a shared disk.
pub const ELECTION_NS: u64 = 1_000_000_000;
/// Beats of the replicas' clock in that time; there is a heartbeat every second one.
pub(crate) const ELECTION_TICKS: usize = 20;

/// 64 MiB/s: half of a line of 1 Gbit/s is left.
pub const CATCH_UP_BYTES_PER_S: u64 = 64 << 20;
/// Small enough that what is being settled never waits long behind one, large enough to cost nothing.
const PIECE_BYTES: usize = 1 << 20;

impl EngineOptions {
    /// The usual settings: a snapshot per 256 MiB of log, so that a restart replays a few seconds' work at most.
    #[must_use]
    pub fn usual() -> Self {
        Self {
            snapshot_after_bytes: 256 << 20,
            election_ns: ELECTION_NS,
            catch_up_bytes_per_s: CATCH_UP_BYTES_PER_S,
            piece_bytes: PIECE_BYTES,
            ..Self::default()
        }
    }
}

/// Why a node cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The data directory cannot be used.
    #[error("open the data directory")]
    DataDir(#[from] DataDirError),
    /// The log cannot be used as it is.
    #[error("open the log")]
    Log(#[from] clearspan_replica::LogError),
    /// The package store cannot be used.
    #[error("open the package store")]
    Packages(#[from] PackageError),
    /// Packages that the log no longer holds are not in the store.
    #[error(
        "shard {shard}: packages {from} to {last} should be in the package store, it holds {found}: restore \
         data/packages from the backup that the rest of the directory is of"
    )]
    PackagesMissing {
        /// Whose.
        shard: u16,
        /// The first that should be there.
        from: u64,
        /// The last.
        last: u64,
        /// What is there.
        found: String,
    },
    /// Snapshots cannot be read or written.
    #[error("read the snapshots of shard {shard}")]
    Snapshots {
        /// Whose.
        shard: u16,
        /// Why.
        source: SnapshotError,
    },
    /// A snapshot's body is not a ledger's state.
    #[error("read the snapshot {path}")]
    SnapshotBody {
        /// Where it lies.
        path: std::path::PathBuf,
        /// Why.
        source: clearspan_codec::DecodeError,
    },
    /// A snapshot's body cannot be read.
    #[error("read the snapshot {path}")]
    SnapshotRead {
        /// Where it lies.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What the node knew of the cluster's nodes cannot be read.
    #[error("read the file NODES of the data directory")]
    Nodes(#[source] clearspan_codec::DecodeError),
    /// Log and snapshot of a shard do not fit together.
    #[error("start the replica of shard {shard}")]
    Replica {
        /// Whose.
        shard: u16,
        /// Why.
        source: clearspan_replica::OpenError,
    },
    /// The directory was made for another number of shards.
    #[error(
        "the data directory holds {found} shards, {wanted} are configured; the number of shards is fixed for good"
    )]
    Shards {
        /// What it holds.
        found: usize,
        /// What was asked for.
        wanted: u16,
    },
    /// This node's state was found to differ from the majority's.
    #[error(
        "{path} says: {why}: this node went astray and is not started again; keep its data directory for examination, and \
         re-admit the node with an empty one"
    )]
    Diverged {
        /// The note.
        path: std::path::PathBuf,
        /// What it says.
        why: String,
    },
    /// A note about diverged replicas cannot be read.
    #[error("read the notes about diverged replicas")]
    Verdicts(#[source] std::io::Error),
    /// No random bytes for identities.
    #[error("read random bytes for an identity")]
    Random(#[source] std::io::Error),
    /// A thread cannot be started.
    #[error("start a thread")]
    Thread(#[source] std::io::Error),
}

/// Why a proposal has no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// The volume is nearly full: nothing was stored. Intake goes on by itself once there is room.
    #[error(
        "the disk is full ({free_bytes} bytes free, {needed_bytes} needed): nothing was stored; make room and send it again"
    )]
    DiskFull {
        /// Free.
        free_bytes: u64,
        /// Needed.
        needed_bytes: u64,
    },
    /// The replica did not take it: nothing was stored.
    #[error("the shard did not take it ({0:?}): nothing was stored; send it again")]
    Dropped(clearspan_replica::DropReason),
    /// It is larger than an entry may be: nothing was stored.
    #[error("a message of {len_bytes} bytes is more than one entry may hold ({max_bytes} bytes)")]
    TooLarge {
        /// Its length, compact.
        len_bytes: usize,
        /// The most.
        max_bytes: usize,
    },
    /// There is no such shard.
    #[error("there is no shard {0}")]
    NoShard(u16),
    /// No leader of the shard was found in time: nothing was stored.
    #[error(
        "no quorum: the shard has no leader that this node can reach; nothing was stored; send it again"
    )]
    NoLeader,
    /// It is not known whether it was stored.
    #[error(
        "no answer in time: whether it was stored is unknown; send it again, it will not be taken twice"
    )]
    Unknown,
    /// The shard's replicas differ and no majority says which is right: nothing was stored, and it is not served.
    #[error(
        "replicas of the shard differ and no majority says which is right: it is not served until an operator has decided; \
         nothing was stored"
    )]
    Diverged,
    /// The node is stopping; whether it was stored is unknown: send it again, it will not be taken twice.
    #[error("the node is stopping: send it again later, it will not be taken twice")]
    Stopped,
}

/// Why a read cannot be known to be up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// No leader confirmed in time that it still leads.
    #[error(
        "no quorum: no leader of the shard confirms to this node how far a read must have come; ask another node, or again"
    )]
    NoQuorum,
    /// This node is too far behind.
    #[error(
        "this node has applied shard {shard} up to entry {applied}, the read needs {needed}: it is catching up, or cut off; \
         ask another node, or again later"
    )]
    Behind {
        /// The shard.
        shard: ShardId,
        /// What is applied here.
        applied: u64,
        /// What must be.
        needed: u64,
    },
    /// The shard's replicas differ, and no majority says which is right.
    #[error(
        "replicas of the shard differ and no majority says which is right: it is not served until an operator has decided"
    )]
    Diverged,
    /// The node is stopping.
    #[error("the node is stopping: ask another node")]
    Stopped,
}

/// How soon a proposal is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Before all bulk that waits.
    Urgent,
    /// In its turn.
    Bulk,
}

/// A proposal on its way.
#[derive(Debug)]
pub struct Pending(Receiver<Result<Outcome, ProposeError>>);

impl Pending {
    /// Waits until it is durable and applied, or refused.
    ///
    /// # Errors
    /// [`ProposeError`] says whether anything was stored.
    pub fn wait(self) -> Result<Outcome, ProposeError> {
        self.0.recv().unwrap_or(Err(ProposeError::Stopped))
    }
}

/// Called with the outcome, on the core's thread: it must be quick.
pub type Replier = Box<dyn FnOnce(Result<Outcome, ProposeError>) + Send>;

pub(crate) struct Request {
    pub(crate) shard: ShardId,
    pub(crate) data: Bytes,
    /// Whether it may be sent again when its outcome is unknown.
    pub(crate) repeatable: bool,
    pub(crate) reply: Replier,
}

/// How long a full disk is left alone before it is asked again.
pub(crate) const DISK_FULL_WAIT: std::time::Duration = std::time::Duration::from_millis(100);
/// Bulk proposals that wait for the core: behind it, senders wait too.
const BULK_WAITING_MAX: usize = 256;
/// Urgent proposals that wait for the core.
const URGENT_WAITING_MAX: usize = 4096;

/// What waits on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Urgent commands that the core has not taken up.
    pub urgent: u64,
    /// Bulk commands that the core has not taken up.
    pub bulk: u64,
    /// What waits in the core.
    pub core: CoreQueues,
}

/// A running node.
#[derive(Debug)]
pub struct Engine {
    urgent: Sender<Request>,
    bulk: Sender<Request>,
    events: Sender<core::CoreEvent>,
    shared: Arc<Shared>,
    layout: Layout,
    threads: Vec<JoinHandle<()>>,
}

impl Engine {
    /// Opens a data directory, or sets a new one up, with this many shards; replays what is there.
    ///
    /// # Errors
    /// [`EngineError`] names what is damaged, missing or in use. Nothing on disk is changed to get past damage.
    pub fn open(
        root: &std::path::Path,
        shards: u16,
        options: EngineOptions,
    ) -> Result<Self, EngineError> {
        let engine =
            Self::open_member(Layout::under(root), shards, options, Seat::alone(), |_| {
                Box::new(NoPeers)
            })?;
        // Everything committed before is applied before anybody asks.
        engine.settle_down();
        crash_point("after-replay");
        Ok(engine)
    }

    /// Opens the data directory of a cluster's member. `connect` is given the door through which frames of other nodes
    /// come in, and gives back the one through which they go out.
    ///
    /// # Errors
    /// As [`Engine::open`]; also when the directory was not set up for this cluster.
    pub fn open_member(
        layout: Layout,
        shards: u16,
        options: EngineOptions,
        seat: Seat,
        connect: impl FnOnce(Inlet) -> Box<dyn Peers>,
    ) -> Result<Self, EngineError> {
        let disk = recover::open_disk(layout.clone(), &options, &seat)?;
        let recovered = recover::restore(disk, shards, &seat)?;
        let (urgent, urgent_waiting) = bounded(URGENT_WAITING_MAX);
        let (bulk, bulk_waiting) = bounded(BULK_WAITING_MAX);
        let (threads, events, shared) = core::start(core::assemble(
            recovered,
            options,
            urgent_waiting,
            bulk_waiting,
            seat,
            core::WAITING_MAX,
            connect,
        ))?;
        Ok(Self {
            urgent,
            bulk,
            events,
            shared,
            layout,
            threads,
        })
    }

    /// Proposes a command to a shard. Commands of one thread to one shard in one lane keep their order.
    ///
    /// # Errors
    /// [`ProposeError`] when it is refused at once.
    pub fn propose(
        &self,
        shard: ShardId,
        command: &Command,
        lane: Lane,
    ) -> Result<Pending, ProposeError> {
        let (data, repeatable) = encode(&self.shared, shard, command)?;
        self.refuse_when_full()?;
        self.send(shard, data, repeatable, lane)
    }

    /// Proposes a command to a shard once the disk has room for it: for callers that have nobody to send away. What they
    /// have on its way at once must be bounded.
    ///
    /// # Errors
    /// As [`Engine::propose`], without [`ProposeError::DiskFull`].
    pub fn propose_when_room(
        &self,
        shard: ShardId,
        command: &Command,
        lane: Lane,
    ) -> Result<Pending, ProposeError> {
        let (data, repeatable) = encode(&self.shared, shard, command)?;
        while self.shared.disk_full().is_some() {
            std::thread::sleep(DISK_FULL_WAIT);
        }
        self.send(shard, data, repeatable, lane)
    }

    /// Proposes a command and has its outcome told to `reply` rather than waited for: no thread stands for what is on its
    /// way. It waits while too much is on its way already.
    ///
    /// # Errors
    /// As [`Engine::propose`]; then `reply` is never called.
    pub fn propose_with(
        &self,
        shard: ShardId,
        command: &Command,
        lane: Lane,
        reply: Replier,
    ) -> Result<(), ProposeError> {
        let (data, repeatable) = encode(&self.shared, shard, command)?;
        self.refuse_when_full()?;
        self.enqueue(
            Request {
                shard,
                data,
                repeatable,
                reply,
            },
            lane,
        )
    }

    fn refuse_when_full(&self) -> Result<(), ProposeError> {
        match self.shared.disk_full() {
            None => Ok(()),
            Some((free_bytes, needed_bytes)) => Err(ProposeError::DiskFull {
                free_bytes,
                needed_bytes,
            }),
        }
    }

    fn send(
        &self,
        shard: ShardId,
        data: Bytes,
        repeatable: bool,
        lane: Lane,
    ) -> Result<Pending, ProposeError> {
        let (reply, outcome) = bounded(1);
        let reply: Replier = Box::new(move |result| {
            // Whoever asked may have given up.
            let _ = reply.send(result);
        });
        self.enqueue(
            Request {
                shard,
                data,
                repeatable,
                reply,
            },
            lane,
        )?;
        Ok(Pending(outcome))
    }

    fn enqueue(&self, request: Request, lane: Lane) -> Result<(), ProposeError> {
        let queue = match lane {
            Lane::Urgent => &self.urgent,
            Lane::Bulk => &self.bulk,
        };
        queue.send(request).map_err(|_| ProposeError::Stopped)
    }

    /// Waits until this node has applied everything that any node had acknowledged for a shard when this was called: what
    /// is read afterwards is linearizable.
    ///
    /// # Errors
    /// [`ReadError`], in bounded time: when there is no quorum to confirm it, or this node is too far behind.
    #[expect(
        clippy::disallowed_methods,
        reason = "a reader waits in real time, whatever the log's clock says"
    )]
    pub fn catch_up(&self, shard: ShardId) -> Result<(), ReadError> {
        if self.shared.is_disputed(shard) {
            return Err(ReadError::Diverged);
        }
        let deadline = std::time::Instant::now() + READ_WAIT;
        let needed = loop {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            let (reply, index) = bounded(1);
            self.events
                .send(core::CoreEvent::ReadIndex(shard, reply))
                .map_err(|_| ReadError::Stopped)?;
            match index.recv_timeout(left) {
                Ok(Ok(index)) => break index,
                Ok(Err(ProposeError::Diverged)) => return Err(ReadError::Diverged),
                Ok(Err(ProposeError::Stopped))
                | Err(crossbeam_channel::RecvTimeoutError::Disconnected) => {
                    return Err(ReadError::Stopped);
                }
                // A leader is being elected, or has not yet settled.
                Ok(Err(_)) if left > READ_AGAIN && !self.shared.is_leaderless(shard) => {
                    std::thread::sleep(READ_AGAIN);
                }
                Ok(Err(_)) | Err(crossbeam_channel::RecvTimeoutError::Timeout) => {
                    return Err(ReadError::NoQuorum);
                }
            }
        };
        let deadline = std::time::Instant::now() + APPLIED_WAIT;
        let mut wait = APPLIED_WAIT_MIN;
        loop {
            let applied = self.with_ledger(shard, |ledger| ledger.position().0.get());
            if applied >= needed {
                break;
            }
            // Without a leader nothing comes that could be applied.
            if std::time::Instant::now() >= deadline || self.shared.is_leaderless(shard) {
                return Err(ReadError::Behind {
                    shard,
                    applied,
                    needed,
                });
            }
            std::thread::sleep(wait);
            wait = (wait * 2).min(APPLIED_WAIT_MAX);
        }
        Ok(())
    }

    /// How the replicas of a shard differ, while nobody knows which is right: nothing of it may be told.
    #[must_use]
    pub fn disputed(&self, shard: ShardId) -> Option<String> {
        self.shared.disputed(shard)
    }

    /// The cluster's nodes, as far as this node knows.
    #[must_use]
    pub fn nodes(&self) -> Arc<NodeDirectory> {
        self.shared.nodes()
    }

    /// How every shard stands on this node.
    #[must_use]
    pub fn status(&self) -> Vec<ShardStatus> {
        self.look().0
    }

    /// How every shard stands on this node, and what waits; without shards when the node is stopping.
    #[must_use]
    pub fn look(&self) -> (Vec<ShardStatus>, Queues) {
        let (reply, looked) = bounded(1);
        let (shards, core) = match self.events.send(core::CoreEvent::Status(reply)) {
            Ok(()) => looked.recv().unwrap_or_default(),
            Err(_) => Default::default(),
        };
        let queues = Queues {
            urgent: self.urgent.len() as u64,
            bulk: self.bulk.len() as u64,
            core,
        };
        (shards, queues)
    }

    /// Free bytes on the volumes of the log and of the packages; `None` where the system does not say.
    #[must_use]
    pub fn free_bytes(&self) -> [Option<u64>; 2] {
        let free = |path| VolumeSpace.free_bytes(path).ok();
        [free(&self.layout.log), free(&self.layout.packages)]
    }

    /// Proposes and waits.
    ///
    /// # Errors
    /// As [`Engine::propose`] and [`Pending::wait`].
    pub fn execute(
        &self,
        shard: ShardId,
        command: &Command,
        lane: Lane,
    ) -> Result<Outcome, ProposeError> {
        self.propose(shard, command, lane)?.wait()
    }

    /// Proposes once the disk has room, and waits.
    ///
    /// # Errors
    /// As [`Engine::propose_when_room`] and [`Pending::wait`].
    pub fn execute_when_room(
        &self,
        shard: ShardId,
        command: &Command,
        lane: Lane,
    ) -> Result<Outcome, ProposeError> {
        self.propose_when_room(shard, command, lane)?.wait()
    }

    /// Waits until nothing is on its way: every proposal applied, every message between shards delivered and confirmed.
    pub fn settle_down(&self) {
        let (quiet, wait) = bounded(1);
        if self.events.send(core::CoreEvent::WhenQuiet(quiet)).is_ok() {
            let _ = wait.recv();
        }
    }

    /// Reads the shards' states; they stand still until the guard goes.
    #[must_use]
    pub fn read(&self) -> Reading<'_> {
        Reading::new(&self.shared)
    }

    /// One shard's state for a short look.
    pub fn with_ledger<R>(&self, shard: ShardId, look: impl FnOnce(&Ledger) -> R) -> R {
        look(&self.shared.shard(shard).ledger)
    }

    /// The journal entry that took a message in; `None` beyond retention.
    ///
    /// # Errors
    /// When the stored bytes are damaged.
    pub fn package(
        &self,
        shard: ShardId,
        message: MessageNo,
    ) -> Result<Option<Bytes>, PackageError> {
        self.shared.package(shard, message)
    }

    /// The cluster's identity.
    #[must_use]
    pub fn cluster_id(&self) -> u128 {
        self.shared.cluster
    }

    /// Free and needed bytes while the disk is too full to take anything in.
    #[must_use]
    pub fn disk_full(&self) -> Option<(u64, u64)> {
        self.shared.disk_full()
    }

    /// Bytes written to the log, writes and fsyncs so far.
    #[must_use]
    pub fn log_counts(&self) -> LogCounts {
        self.shared.log_counts()
    }

    /// A time that no later proposal goes before.
    #[must_use]
    pub fn now(&self) -> clearspan_ledger::Timestamp {
        self.shared.clock.now()
    }

    /// The node's clock for waits and rates, which nobody sets.
    #[must_use]
    pub fn steady(&self) -> clearspan_ledger::Timestamp {
        self.shared.clock.steady()
    }

    /// Takes a snapshot of every shard, makes everything durable, and stops.
    pub fn close(mut self) {
        self.snapshot_all();
        self.stop();
    }

    /// Takes a snapshot of every shard and waits for it: the next start has nothing to replay before it.
    pub fn snapshot_all(&self) {
        let (done, wait) = bounded(1);
        if self.events.send(core::CoreEvent::SnapshotAll(done)).is_ok() {
            let _ = wait.recv();
        }
    }

    fn stop(&mut self) {
        let _ = self.events.send(core::CoreEvent::Stop);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The entry's bytes, and whether it may be sent again when its outcome is unknown.
fn encode(
    shared: &Shared,
    shard: ShardId,
    command: &Command,
) -> Result<(Bytes, bool), ProposeError> {
    let data = clearspan_codec::entry::encode(shared.clock.now(), command);
    if shard.index() >= shared.shards.len() {
        return Err(ProposeError::NoShard(shard.get()));
    }
    if data.len() > ENTRY_MAX_BYTES {
        return Err(ProposeError::TooLarge {
            len_bytes: data.len(),
            max_bytes: ENTRY_MAX_BYTES,
        });
    }
    Ok((data, is_repeatable(command)))
}

/// Whether a command applied twice has no second effect: then it is sent again by itself when its outcome is unknown.
fn is_repeatable(command: &Command) -> bool {
    !matches!(command, Command::Cycle(_))
}

/// How long a read looks for a leader that confirms it.
const READ_WAIT: std::time::Duration = std::time::Duration::from_secs(3);
/// Between two such looks.
const READ_AGAIN: std::time::Duration = std::time::Duration::from_millis(20);
/// How long a read waits for this node to apply what the leader said.
const APPLIED_WAIT: std::time::Duration = std::time::Duration::from_secs(10);
/// How long to wait for an entry to be applied before looking again.
const APPLIED_WAIT_MIN: std::time::Duration = std::time::Duration::from_micros(50);
const APPLIED_WAIT_MAX: std::time::Duration = std::time::Duration::from_millis(5);

/// Kept until a frame has been dealt with.
pub(crate) struct Held(#[expect(dead_code, reason = "its drop gives the room back")] Box<dyn Send>);

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Held")
    }
}

/// The door through which frames of other nodes reach the core.
#[derive(Clone, Debug)]
pub struct Inlet(Sender<core::CoreEvent>);

impl Inlet {
    /// A frame from a member; those of one kind in the order in which it sent them. `room` is dropped once the frame has
    /// been dealt with: its sender may then send as much again.
    pub fn frame(&self, from: MemberId, frame: PeerFrame, room: Box<dyn Send>) {
        let _ = self.0.send(core::CoreEvent::Frame(from, frame, Held(room)));
    }

    /// A member can be reached.
    pub fn up(&self, member: MemberId) {
        let _ = self.0.send(core::CoreEvent::PeerUp(member));
    }

    /// A member has begun a life of this number.
    pub fn life(&self, member: MemberId, life: u64) {
        let _ = self.0.send(core::CoreEvent::Life(member, life));
    }

    /// A member cannot be reached; what was on its way to it may be lost.
    pub fn down(&self, member: MemberId) {
        let _ = self.0.send(core::CoreEvent::PeerDown(member));
    }
}

/// A stopped node's data, read without starting anything: nothing is written, nobody else may have the directory open.
#[derive(Debug)]
pub struct Offline {
    shared: Shared,
    _data: clearspan_storage::DataDir,
}

impl Offline {
    /// Reads a data directory: newest snapshots, then the log to its end.
    ///
    /// # Errors
    /// As [`Engine::open`]; also when the directory holds no node's data.
    pub fn open(root: &std::path::Path) -> Result<Self, EngineError> {
        let (data, packages, states, cluster) = recover::replay(root)?;
        Ok(Self {
            shared: Shared::new(cluster, Clock::System, states, Box::new(packages)),
            _data: data,
        })
    }

    /// The states and packages.
    #[must_use]
    pub fn read(&self) -> Reading<'_> {
        Reading::new(&self.shared)
    }
}

/// The most bytes of one entry. A package of 5,000 payments of 2 kB compresses to a few megabytes.
pub const ENTRY_MAX_BYTES: usize = clearspan_replica::PEER_ENTRY_BYTES_MAX;

/// What the log has done since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCounts {
    /// Bytes of entries.
    pub bytes: u64,
    /// Entries.
    pub entries: u64,
    /// Writes, each with one fsync where anything was promised.
    pub writes: u64,
}
