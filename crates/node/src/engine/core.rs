//! The core thread: steps every shard's replica, applies what is committed, and carries messages between the shards.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use clearspan_ledger::entry::Command;
use clearspan_ledger::{Ledger, LogIndex, MessageNo, Outcome, Reply, ShardId, Timestamp};
use clearspan_replica::{
    Action, Committed, CommittedBody, Correlation, DropReason, Event, MemberId, Membership,
    Persist, Proposal, Replica, Role, SnapshotMark, StopReason,
};
use clearspan_storage::{crash_point, stop};
use crossbeam_channel::{Receiver, Sender, bounded, never, select, unbounded};

use super::apply::apply_entry;
use super::disk::Verdicts;
use super::group::{Group, Seat};
use super::log_writer::{LogTask, LogWriter};
use super::package_writer::{PackageTask, PackageWriter};
use super::peers::{PeerFrame, Peers};
use super::recover::Recovered;
use super::shared::{ShardState, Shared};
use super::snapshotter::{SnapshotTask, Snapshotter};
use super::{
    ELECTION_TICKS, EngineError, EngineOptions, Held, Inlet, ProposeError, Replier, Request,
};
use members::{Following, Known};
use pump::Link;
use route::{ForwardedRead, Origin, Pending, Reader};

mod catch_up;
mod compare;
mod lead;
pub(crate) mod members;
mod pump;
mod route;
mod status;

pub use compare::Comparisons;
pub use status::{CatchUp, CoreQueues, PeerProgress, ShardStatus};

/// What reaches the core besides proposals.
#[derive(Debug)]
pub(crate) enum CoreEvent {
    /// Writes up to these numbers are durable, by shard, in order.
    Persisted(Vec<(clearspan_replica::ShardId, u64)>),
    /// A snapshot stands.
    SnapshotTaken(ShardId, SnapshotMark),
    /// A snapshot could not be written for lack of room; the log stays as it is.
    SnapshotSkipped(ShardId),
    /// A snapshot that a node asked for is not there any more, or damaged.
    SnapshotUnreadable {
        /// Who asked.
        to: MemberId,
        shard: ShardId,
        mark: SnapshotMark,
        /// From where on.
        offset_bytes: u64,
    },
    /// Answer when nothing is on its way.
    WhenQuiet(Sender<()>),
    /// Take a snapshot of every shard, answer when all stand.
    SnapshotAll(Sender<()>),
    /// A node has said something.
    Frame(MemberId, PeerFrame, Held),
    /// Something for another node.
    Outgoing(MemberId, PeerFrame),
    /// A node can be reached.
    PeerUp(MemberId),
    /// A node cannot be reached: what was on its way to it may be lost.
    PeerDown(MemberId),
    /// A node has begun a life of this number.
    Life(MemberId, u64),
    /// A snapshot that a leader offered is here, durable, with all its packages.
    SnapshotFetched(ShardId, SnapshotMark, Box<Ledger>),
    /// What is kept of the body of a snapshot that is fetched.
    PiecesKept(ShardId, SnapshotMark, Vec<u8>),
    /// The leader's word on how far this node must have applied before it may answer a read of a shard.
    ReadIndex(ShardId, Sender<Result<u64, ProposeError>>),
    /// How the shards stand, and what waits.
    Status(Sender<(Vec<ShardStatus>, CoreQueues)>),
    /// End.
    Stop,
}

/// Why a node must not go on.
#[derive(Debug, thiserror::Error)]
enum Stopping {
    #[error("shard {shard}: {}", why_stopped(*reason))]
    Replica {
        shard: ShardId,
        reason: clearspan_replica::StopReason,
    },
    #[error(
        "shard {shard}: at entry {index} this node has state digest {mine:032x}, the majority has {majority:032x}: it went \
         astray and serves nothing from now on; keep its data directory for examination, and re-admit the node with an \
         empty one"
    )]
    Astray {
        shard: ShardId,
        index: u64,
        mine: u128,
        majority: u128,
    },
    #[error("shard {shard}: a snapshot was to be installed that was not fetched")]
    NotFetched { shard: ShardId },
}

fn why_stopped(reason: StopReason) -> String {
    match reason {
        StopReason::LogBehindPromise { promised, last } => format!(
            "the log ends at entry {last}, and this node had acknowledged {promised}: {FORGOTTEN}"
        ),
        other @ StopReason::BadMembershipChange { .. } => format!("{other:?}"),
    }
}

/// Proposed and not yet applied bytes above which bulk waits outside: below the replica's own limit, so that it never
/// has to refuse. In a group of one an urgent entry waits until the log has written what is before it, so this is its
/// delay in bytes: one write of the log under way, and as much being gathered or applied.
const ALONE_IN_FLIGHT_MAX_BYTES: usize = 4 << 20;
/// The same with peers: bandwidth times the longest round trip, 160 MB/s at 156 ms.
const IN_FLIGHT_MAX_BYTES: usize = 32 << 20;
/// Bulk bytes taken up per turn, so that urgent entries never wait for more than one such chunk.
const TURN_MAX_BYTES: usize = 1 << 20;
/// Events taken up per turn.
const TURN_MAX_EVENTS: usize = 1024;
/// Urgent proposals taken up per turn.
const TURN_MAX_URGENT: usize = 256;
/// Messages between shards per entry.
const DELIVER_MAX_MESSAGES: usize = 512;
/// Writes under way before the core waits for the log.
const LOG_WAITING_MAX: usize = 64;
/// Packages on their way into the store before the core waits.
const PACKAGES_WAITING_MAX: usize = 4096;
/// The longest the core sleeps: timers are due no later than this after their time.
const IDLE_WAIT: Duration = Duration::from_millis(20);

/// What to do with a node that has forgotten what it promised.
pub(crate) const FORGOTTEN: &str = "its data is older than what it has promised (a copy put back, or wiped), so it must not vote; \
     re-admit it under a new identity with `clearspan admin node replace`, and do not start it on this data again";

pub(crate) type Started = (Vec<JoinHandle<()>>, Sender<CoreEvent>, Arc<Shared>);

/// The core and its helpers with the queues between them: threads drive them in service, a simulation by hand.
pub(crate) struct Parts {
    pub(crate) core: Core,
    pub(crate) queues: Queues,
    pub(crate) events: Sender<CoreEvent>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) log: LogWriter,
    pub(crate) log_tasks: Receiver<LogTask>,
    pub(crate) packages: PackageWriter,
    pub(crate) package_tasks: Receiver<PackageTask>,
    pub(crate) snapshots: Snapshotter,
    pub(crate) snapshot_tasks: Receiver<SnapshotTask>,
    /// Kept for as long as the log may be written.
    pub(crate) lock: Box<dyn Send>,
}

/// What the core takes up.
pub(crate) struct Queues {
    pub(crate) urgent: Receiver<Request>,
    pub(crate) bulk: Receiver<Request>,
    pub(crate) events: Receiver<CoreEvent>,
}

/// How many tasks may wait for the core's helpers before it waits: log and packages. `None`: as many as come.
pub(crate) type Waiting = Option<(usize, usize)>;

/// In service.
pub(crate) const WAITING_MAX: Waiting = Some((LOG_WAITING_MAX, PACKAGES_WAITING_MAX));

/// Puts a node together.
pub(crate) fn assemble(
    recovered: Recovered,
    options: EngineOptions,
    urgent: Receiver<Request>,
    bulk: Receiver<Request>,
    seat: Seat,
    waiting: Waiting,
    connect: impl FnOnce(Inlet) -> Box<dyn Peers>,
) -> Parts {
    let Recovered {
        disk,
        replicas,
        states,
        disputed,
        known,
    } = recovered;
    let group = seat.group(&known.directory);
    // Nothing but a snapshot has been applied yet.
    let snapshots_found: Vec<(u64, u128)> = states
        .iter()
        .map(|state| (state.mark.position.index, state.ledger.digest()))
        .collect();
    let shared = Arc::new(Shared::new(
        disk.cluster,
        options.clock,
        states,
        disk.packages,
    ));
    for (shard, how) in disputed {
        eprintln!("shard {shard} is not served: {how}");
        shared.set_disputed(ShardId::new(shard.get()), how);
    }
    let (events, event_queue) = unbounded();
    let (to_log, log_tasks) = waiting.map_or_else(unbounded, |(log, _)| bounded(log));
    let (to_packages, package_tasks) =
        waiting.map_or_else(unbounded, |(_, packages)| bounded(packages));
    let (to_snapshots, snapshot_tasks) = unbounded();
    let peers = connect(Inlet(events.clone()));
    let mut core = Core {
        shards: (0..)
            .map(ShardId::new)
            .zip(replicas)
            .zip(snapshots_found)
            .map(|((id, replica), snapshot)| Shard::new(id, replica, snapshot, &group))
            .collect(),
        group,
        seat,
        known,
        regroup_due: false,
        peers,
        up: BTreeSet::new(),
        forwarded: BTreeMap::new(),
        reads: BTreeMap::new(),
        forwarded_reads: BTreeMap::new(),
        gone: BTreeMap::new(),
        tick_ns: (options.election_ns / ELECTION_TICKS as u64).max(1),
        next_tick: shared.clock.steady(),
        verdicts: disk.verdicts,
        pace: catch_up::Pace::new(options.catch_up_bytes_per_s),
        shared: shared.clone(),
        log: to_log,
        packages: to_packages.clone(),
        snapshots: to_snapshots,
        snapshot_after_bytes: options.snapshot_after_bytes,
        writes: Vec::new(),
        // A peer's answer to an earlier life of this node must not pass for an answer to this one.
        next_correlation: shared.clock.now().ns(),
        in_flight_bytes: 0,
        dirty: true,
        quiet_waiters: Vec::new(),
        snapshot_waiters: Vec::new(),
    };
    core.peers.set_lives(&core.known.lives);
    Parts {
        core,
        queues: Queues {
            urgent,
            bulk,
            events: event_queue,
        },
        events,
        log: LogWriter::new(disk.log, shared.clone()),
        log_tasks,
        packages: PackageWriter::new(shared.clone()),
        package_tasks,
        snapshots: Snapshotter {
            shared: shared.clone(),
            snapshots: disk.snapshots,
            nodes: disk.nodes,
            packages: to_packages,
            serving: Vec::new(),
            piece_bytes: options.piece_bytes.max(1),
        },
        snapshot_tasks,
        shared,
        lock: disk.lock,
    }
}

/// Starts the core's and its helpers' threads.
pub(crate) fn start(parts: Parts) -> Result<Started, EngineError> {
    let Parts {
        core,
        queues,
        events,
        shared,
        log,
        log_tasks,
        packages,
        package_tasks,
        snapshots,
        snapshot_tasks,
        lock,
    } = parts;
    let mut threads = Vec::new();
    let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                // A bug in one of these threads must end the process: its peers would wait for it for ever.
                if std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_err() {
                    std::process::abort();
                }
            })
    };
    let body: Box<dyn FnOnce() + Send> = Box::new(move || core.run(&queues));
    threads.push(spawn("core", body).map_err(EngineError::Thread)?);
    let log_events = events.clone();
    let body: Box<dyn FnOnce() + Send> = Box::new(move || {
        log.run(&log_tasks, &log_events);
        // The directory stays locked for as long as the log may be written.
        drop(lock);
    });
    threads.push(spawn("log", body).map_err(EngineError::Thread)?);
    let body: Box<dyn FnOnce() + Send> = Box::new(move || packages.run(&package_tasks));
    threads.push(spawn("packages", body).map_err(EngineError::Thread)?);
    let snapshot_events = events.clone();
    let body: Box<dyn FnOnce() + Send> =
        Box::new(move || snapshots.run(&snapshot_tasks, &snapshot_events));
    threads.push(spawn("snapshots", body).map_err(EngineError::Thread)?);
    Ok((threads, events, shared))
}

/// One shard in the core's hands.
struct Shard {
    id: ShardId,
    replica: Replica,
    proposals: Vec<Proposal>,
    /// Proposals of this node's replica without an outcome.
    waiting: BTreeMap<Correlation, Pending>,
    /// Commands that wait for a leader to be known.
    parked: VecDeque<Pending>,
    /// By receiving shard; of meaning while this node leads.
    links: Vec<Link>,
    tick_in_flight: bool,
    since_snapshot_bytes: u64,
    snapshot_running: bool,
    /// Index of the snapshot before the newest: the log is kept back to it, so that either can be started from.
    older_snapshot: u64,
    newest_snapshot: u64,
    /// All data members hold the log up to here, as the leader last said: a witness may let it go.
    held_by_all: u64,
    /// A snapshot that is being fetched from a leader.
    fetch: Option<catch_up::Fetch>,
    /// State digests, own and others'.
    compared: compare::Compared,
    /// Members in the order in which they should lead.
    preference: Vec<MemberId>,
    following: Following,
    /// No hand-over is tried before this time.
    hand_over_after: Timestamp,
    /// No leader is given up on the connection's word before this time.
    give_up_after: Timestamp,
    /// Since when this node hears no leader.
    leaderless_since: Option<Timestamp>,
}

impl Shard {
    fn new(
        id: ShardId,
        replica: Replica,
        (snapshot_index, digest): (u64, u128),
        group: &Group,
    ) -> Self {
        let base = replica.status().base.index;
        let mut compared = compare::Compared::default();
        compared.reset(snapshot_index, digest);
        Self {
            id,
            replica,
            proposals: Vec::new(),
            waiting: BTreeMap::new(),
            parked: VecDeque::new(),
            links: Vec::new(),
            tick_in_flight: false,
            since_snapshot_bytes: 0,
            snapshot_running: false,
            older_snapshot: base,
            newest_snapshot: snapshot_index.max(base),
            held_by_all: 0,
            fetch: None,
            compared,
            preference: group.preference(id),
            following: Following::default(),
            hand_over_after: Timestamp::ZERO,
            give_up_after: Timestamp::ZERO,
            leaderless_since: None,
        }
    }

    fn leads(&self) -> bool {
        matches!(self.replica.status().role, Role::Leader)
    }
}

pub(crate) struct Core {
    shards: Vec<Shard>,
    seat: Seat,
    known: Known,
    /// Something was learnt that changes it.
    regroup_due: bool,
    /// What follows from what is known.
    group: Group,
    peers: Box<dyn Peers>,
    /// Members that can be reached.
    up: BTreeSet<MemberId>,
    /// Commands sent to a shard's leader on another node.
    forwarded: BTreeMap<u64, (MemberId, Pending)>,
    reads: BTreeMap<Correlation, Reader>,
    /// Reads that a leader on another node was asked about, until when.
    forwarded_reads: BTreeMap<u64, ForwardedRead>,
    /// Members that could be reached and cannot be any more, since when.
    gone: BTreeMap<MemberId, Timestamp>,
    /// A beat of the replicas' clock.
    tick_ns: u64,
    next_tick: Timestamp,
    verdicts: Box<dyn Verdicts>,
    /// Snapshots and packages on their way to those that catch up.
    pace: catch_up::Pace,
    shared: Arc<Shared>,
    log: Sender<LogTask>,
    packages: Sender<PackageTask>,
    snapshots: Sender<SnapshotTask>,
    snapshot_after_bytes: u64,
    writes: Vec<(clearspan_replica::ShardId, Persist)>,
    next_correlation: u64,
    in_flight_bytes: usize,
    /// Something was applied since the pump last ran.
    dirty: bool,
    quiet_waiters: Vec<Sender<()>>,
    snapshot_waiters: Vec<Sender<()>>,
}

impl Core {
    fn run(mut self, queues: &Queues) {
        let Queues {
            urgent,
            bulk,
            events,
        } = queues;
        let closed = never();
        self.begin();
        loop {
            let bulk_now = if self.takes_bulk() { bulk } else { &closed };
            select! {
                recv(events) -> event => match event {
                    Ok(CoreEvent::Stop) | Err(_) => break,
                    Ok(event) => self.handle(event),
                },
                recv(urgent) -> request => if let Ok(request) = request { self.take(request) },
                recv(bulk_now) -> request => if let Ok(request) = request { self.take(request) },
                default(self.idle_wait()) => {}
            }
            if !self.turn(queues) {
                break;
            }
        }
    }

    /// The first turn.
    pub(crate) fn begin(&mut self) {
        for shard in &mut self.shards {
            shard.links = vec![Link::default(); self.shared.shards.len()];
        }
        for at in 0..self.shards.len() {
            self.step(at, Event::Start);
        }
        self.regroup();
        self.flush();
    }

    /// Whether there is room for bulk.
    pub(crate) fn takes_bulk(&self) -> bool {
        let in_flight_max_bytes = if self.group.is_alone() {
            ALONE_IN_FLIGHT_MAX_BYTES
        } else {
            IN_FLIGHT_MAX_BYTES
        };
        self.in_flight_bytes < in_flight_max_bytes && self.shared.disk_full().is_none()
    }

    /// Takes up what is at hand, without waiting, and lets time pass; false when it is to end.
    pub(crate) fn turn(&mut self, queues: &Queues) -> bool {
        let Queues {
            urgent,
            bulk,
            events,
        } = queues;
        let mut stopping = false;
        for event in events.try_iter().take(TURN_MAX_EVENTS) {
            match event {
                CoreEvent::Stop => stopping = true,
                event => self.handle(event),
            }
        }
        if stopping {
            return false;
        }
        for request in urgent.try_iter().take(TURN_MAX_URGENT) {
            self.take(request);
        }
        let mut taken = 0;
        while taken < TURN_MAX_BYTES && self.takes_bulk() {
            let Ok(request) = bulk.try_recv() else { break };
            taken += request.data.len();
            self.take(request);
        }
        if std::mem::take(&mut self.regroup_due) {
            self.regroup();
        }
        self.tick();
        self.propose_ticks();
        self.send_paced();
        self.pump();
        self.flush();
        self.answer_quiet(urgent.is_empty() && bulk.is_empty());
        true
    }

    fn handle(&mut self, event: CoreEvent) {
        match event {
            CoreEvent::Persisted(numbers) => {
                for (shard, ready_number) in numbers {
                    self.step(usize::from(shard.get()), Event::Persisted { ready_number });
                }
            }
            CoreEvent::SnapshotTaken(shard, mark) => self.snapshot_taken(shard.index(), mark),
            CoreEvent::SnapshotSkipped(shard) => {
                self.shards[shard.index()].snapshot_running = false;
                self.fetch_skipped(shard.index());
            }
            CoreEvent::SnapshotUnreadable {
                to,
                shard,
                mark,
                offset_bytes,
            } => self.snapshot_unreadable(to, shard.index(), mark, offset_bytes),
            CoreEvent::WhenQuiet(waiter) => self.quiet_waiters.push(waiter),
            CoreEvent::SnapshotAll(waiter) => {
                self.snapshot_waiters.push(waiter);
                for at in 0..self.shards.len() {
                    self.start_snapshot(at);
                }
            }
            CoreEvent::Frame(from, frame, _held) => self.receive(from, frame),
            CoreEvent::Outgoing(to, frame) => {
                self.pace.push(to, frame);
            }
            CoreEvent::PeerUp(member) => {
                self.up.insert(member);
                self.gone.remove(&member);
                self.tell_nodes(BTreeSet::from([member]));
            }
            CoreEvent::PeerDown(member) => self.peer_down(member),
            CoreEvent::Life(member, life) => self.met(member, life),
            CoreEvent::SnapshotFetched(shard, mark, ledger) => {
                self.snapshot_fetched(shard.index(), &mark, *ledger);
            }
            CoreEvent::PiecesKept(shard, mark, body) => {
                self.pieces_kept(shard.index(), &mark, body);
            }
            CoreEvent::ReadIndex(shard, reply) => {
                self.read_index(shard.index(), Reader::Here(reply))
            }
            CoreEvent::Status(reply) => {
                let _ = reply.send(self.status());
            }
            CoreEvent::Stop => {}
        }
        if !self.snapshot_waiters.is_empty()
            && self.shards.iter().all(|shard| !shard.snapshot_running)
        {
            for waiter in self.snapshot_waiters.drain(..) {
                let _ = waiter.send(());
            }
        }
    }

    /// How long to sleep when there is nothing to do.
    fn idle_wait(&self) -> Duration {
        let now = self.shared.clock.steady();
        let due = self
            .pace
            .due()
            .map_or(self.next_tick, |due| due.min(self.next_tick));
        Duration::from_nanos(due.ns().saturating_sub(now.ns())).min(IDLE_WAIT)
    }

    /// One beat of the replicas' clock, when it is due.
    fn tick(&mut self) {
        let now = self.shared.clock.steady();
        if now < self.next_tick {
            return;
        }
        // Beats that were missed are not made up for: a node that stood still must not rush into an election.
        let on_time = self.next_tick.plus_ns(self.tick_ns);
        self.next_tick = if on_time > now {
            on_time
        } else {
            now.plus_ns(self.tick_ns)
        };
        for at in 0..self.shards.len() {
            self.give_up_leader(at, now);
            self.step(at, Event::Tick);
            self.hand_over(at, now);
            self.reconcile(at, now);
            self.tell_witnesses(at);
            self.compare(at, now);
            self.note_leader(at, now);
        }
        self.sweep(now);
        // Confirmations and messages that found no leader are tried again.
        self.dirty = true;
    }

    /// Gives every shard its proposals, and the log what came of it.
    fn flush(&mut self) {
        for at in 0..self.shards.len() {
            let entries = std::mem::take(&mut self.shards[at].proposals);
            if !entries.is_empty() {
                self.step(at, Event::Propose { entries });
            }
        }
        if !self.writes.is_empty() {
            let writes = std::mem::take(&mut self.writes);
            // The log's thread ends only after this one.
            let _ = self.log.send(LogTask::Write(writes));
        }
    }

    fn step(&mut self, at: usize, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let now = clearspan_replica::Timestamp::from_ns(self.shared.clock.steady().ns());
            for action in self.shards[at].replica.step(event, now) {
                match action {
                    Action::Send(messages) => {
                        let shard = self.shards[at].id;
                        for message in messages {
                            let peer = message.to;
                            if !self.peers.send(peer, PeerFrame::Raft(shard, message)) {
                                events.push_back(Event::Unreachable { peer });
                            }
                        }
                    }
                    Action::Persist(persist) => {
                        let shard = clearspan_replica::ShardId::new(self.shards[at].id.get());
                        self.writes.push((shard, persist));
                    }
                    Action::Apply(committed) => {
                        let last = committed.last().map_or(0, |entry| entry.position.index);
                        self.apply(at, committed);
                        events.push_back(Event::Applied { index: last });
                    }
                    Action::InstallSnapshot(mark) => {
                        let index = mark.position.index;
                        self.install(at, mark);
                        events.push_back(Event::Applied { index });
                    }
                    Action::Dropped {
                        correlation,
                        reason,
                    } => {
                        if let Some(reader) = self.reads.remove(&correlation) {
                            self.answer_read(reader, Err(ProposeError::Dropped(reason)));
                        } else {
                            self.answer(at, correlation, Err(ProposeError::Dropped(reason)));
                        }
                    }
                    Action::ReadReady { correlation, index } => {
                        if let Some(reader) = self.reads.remove(&correlation) {
                            self.answer_read(reader, Ok(index));
                        }
                    }
                    Action::CompactLog { to } => {
                        let shard = clearspan_replica::ShardId::new(self.shards[at].id.get());
                        let _ = self.log.send(LogTask::Compact(shard, to));
                    }
                    Action::Stop(reason) => {
                        stop(&Stopping::Replica {
                            shard: self.shards[at].id,
                            reason,
                        });
                    }
                    Action::BecameLeader { .. } => self.became_leader(at),
                    Action::LostLeadership { .. } => self.shards[at].tick_in_flight = false,
                    Action::LeaderChanged { leader } => self.leader_changed(at, leader),
                }
            }
        }
    }

    fn apply(&mut self, at: usize, committed: Vec<Committed>) {
        let id = self.shards[at].id;
        let regrouped = committed
            .iter()
            .any(|entry| matches!(entry.body, CommittedBody::Membership { .. }));
        let mut replies = Vec::with_capacity(committed.len());
        crash_point("before-apply");
        {
            let shared = self.shared.clone();
            let mut state = shared.shard_mut(id);
            for entry in committed {
                let (reply, outcome) = self.apply_one(at, &mut state, entry);
                if let Some(correlation) = reply {
                    replies.push((correlation, outcome));
                }
            }
        }
        crash_point("after-apply");
        self.dirty = true;
        self.look_for_nodes(at);
        if regrouped {
            self.membership_changed(at);
        }
        for (correlation, outcome) in replies {
            self.answer(at, correlation, Ok(outcome));
        }
        crash_point("after-reply");
        if self.shards[at].since_snapshot_bytes >= self.snapshot_after_bytes {
            self.start_snapshot(at);
        }
    }

    fn apply_one(
        &mut self,
        at: usize,
        state: &mut ShardState,
        entry: Committed,
    ) -> (Option<Correlation>, Outcome) {
        let id = self.shards[at].id;
        let (data, correlation) = match entry.body {
            CommittedBody::Command { data, correlation } => (Some(data), correlation),
            CommittedBody::Blank => (None, None),
            CommittedBody::Membership {
                membership,
                correlation,
            } => {
                state.mark.membership = membership;
                (None, correlation)
            }
        };
        self.shards[at].since_snapshot_bytes += data.as_ref().map_or(0, |data| data.len() as u64);
        if self.group.is_witness() {
            // A witness holds entries, not their meaning.
            state.mark.position = entry.position;
            let index = LogIndex::new(entry.position.index);
            return (
                correlation,
                Outcome {
                    index,
                    reply: Reply::Done,
                    released: Vec::new(),
                },
            );
        }
        let (time, outcome) = apply_entry(state, entry.position, data.as_ref());
        if !self.group.is_alone() {
            let compared = &mut self.shards[at].compared;
            compared.applied(entry.position.index, state.ledger.digest());
        }
        if let Some(data) = data
            && let Reply::Taken { message, .. } = outcome.reply
        {
            self.store_package(id, message, data);
        }
        for (message, submission) in &outcome.released {
            let data = clearspan_codec::entry::encode(time, &Command::Submit(submission.clone()));
            self.store_package(id, *message, data);
        }
        (correlation, outcome)
    }

    fn store_package(&self, shard: ShardId, message: MessageNo, data: Bytes) {
        self.shared.package_comes(shard, message, data.clone());
        let _ = self.packages.send(PackageTask::Put(shard, message, data));
    }

    fn answer_quiet(&mut self, queues_empty: bool) {
        if self.quiet_waiters.is_empty() || !queues_empty {
            return;
        }
        // With peers: as far as this node has applied.
        let idle = self.forwarded.is_empty()
            && self.shards.iter().all(|shard| {
                let status = shard.replica.status();
                let led = shard.leads() || (!self.group.is_alone() && status.leader.is_some());
                shard.waiting.is_empty()
                    && shard.parked.is_empty()
                    && shard.proposals.is_empty()
                    && status.applied_index == status.last.index
                    && led
            });
        if idle && !self.work_for_pump() {
            for waiter in self.quiet_waiters.drain(..) {
                let _ = waiter.send(());
            }
        }
    }

    fn start_snapshot(&mut self, at: usize) {
        let shard = &mut self.shards[at];
        let applied = self.shared.shard(shard.id).mark.position.index;
        if shard.snapshot_running || applied == shard.newest_snapshot {
            return;
        }
        shard.snapshot_running = true;
        shard.since_snapshot_bytes = 0;
        let _ = self.snapshots.send(SnapshotTask::Take(shard.id));
    }

    fn snapshot_taken(&mut self, at: usize, mark: SnapshotMark) {
        let shard = &mut self.shards[at];
        shard.snapshot_running = false;
        shard.older_snapshot = shard.newest_snapshot;
        shard.newest_snapshot = mark.position.index;
        // A witness keeps full entries until both data sites hold them (design 7).
        let bound = if self.group.is_witness() {
            shard.held_by_all
        } else {
            u64::MAX
        };
        let to_index = shard.older_snapshot.min(bound);
        self.step(at, Event::SnapshotTaken(mark));
        if to_index > 0 {
            self.step(at, Event::Compact { to_index });
        }
    }
}
