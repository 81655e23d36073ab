//! The core thread: steps every shard's replica, applies what is committed, and carries messages between the shards.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use clearspan_ledger::entry::Command;
use clearspan_ledger::{MessageNo, Outcome, Reply, ShardId, Timestamp};
use clearspan_replica::{
    Action, Committed, CommittedBody, Correlation, Event, Persist, Proposal, Replica, SnapshotMark,
};
use clearspan_storage::crash_point;
use crossbeam_channel::{Receiver, Sender, bounded, never, select, unbounded};

use super::apply::apply_entry;
use super::log_writer::LogTask;
use super::package_writer::PackageTask;
use super::recover::Recovered;
use super::shared::{ShardState, Shared};
use super::{
    EngineError, EngineOptions, ProposeError, Request, log_writer, package_writer, snapshotter,
};

/// What reaches the core besides proposals.
#[derive(Debug)]
pub(crate) enum CoreEvent {
    /// Writes up to these numbers are durable, by shard, in order.
    Persisted(Vec<(clearspan_replica::ShardId, u64)>),
    /// A snapshot stands.
    SnapshotTaken(ShardId, SnapshotMark),
    /// A snapshot could not be written for lack of room; the log stays as it is.
    SnapshotSkipped(ShardId),
    /// Answer when nothing is on its way.
    WhenQuiet(Sender<()>),
    /// Take a snapshot of every shard, answer when all stand.
    SnapshotAll(Sender<()>),
    /// End.
    Stop,
}

/// Proposed and not yet applied bytes above which bulk waits outside: below the replica's own limit, so that it never
/// has to refuse. An urgent entry waits until the log has written what is before it, so this is its delay in bytes: one
/// write of the log under way, and as much being gathered or applied.
const IN_FLIGHT_MAX_BYTES: usize = 4 << 20;
/// Bulk bytes taken up per turn, so that urgent entries never wait for more than one such chunk.
const TURN_MAX_BYTES: usize = 1 << 20;
/// Urgent proposals taken up per turn.
const TURN_MAX_URGENT: usize = 256;
/// Messages between shards per entry.
const DELIVER_MAX_MESSAGES: usize = 512;
/// Writes under way before the core waits for the log.
const LOG_WAITING_MAX: usize = 64;
/// Packages on their way into the store before the core waits.
const PACKAGES_WAITING_MAX: usize = 4096;
/// Messages that a shard could not take yet are offered again after this long.
const AGAIN_AFTER_NS: u64 = 20_000_000;
/// The longest the core sleeps: timers are due no later than this after their time.
const IDLE_WAIT: Duration = Duration::from_millis(20);

pub(crate) type Started = (Vec<JoinHandle<()>>, Sender<CoreEvent>, Arc<Shared>);

/// Starts the core and its helpers' threads.
pub(crate) fn start(
    recovered: Recovered,
    options: EngineOptions,
    urgent: Receiver<Request>,
    bulk: Receiver<Request>,
) -> Result<Started, EngineError> {
    let Recovered {
        data,
        log,
        packages,
        snapshots,
        replicas,
        states,
        cluster,
    } = recovered;
    // Nothing but a snapshot has been applied yet.
    let snapshot_indexes: Vec<u64> = states
        .iter()
        .map(|state| state.mark.position.index)
        .collect();
    let shared = Arc::new(Shared::new(cluster, options.clock, states, packages));
    let (events, event_queue) = unbounded();
    let (log_tasks, log_queue) = bounded(LOG_WAITING_MAX);
    let (package_tasks, package_queue) = bounded(PACKAGES_WAITING_MAX);
    let (snapshot_tasks, snapshot_queue) = unbounded();
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
    let core = Core {
        shards: (0..)
            .map(ShardId::new)
            .zip(replicas)
            .zip(snapshot_indexes)
            .map(|((id, replica), snapshot)| Shard::new(id, replica, snapshot))
            .collect(),
        shared: shared.clone(),
        log: log_tasks,
        packages: package_tasks.clone(),
        snapshots: snapshot_tasks,
        snapshot_after_bytes: options.snapshot_after_bytes,
        writes: Vec::new(),
        next_correlation: 0,
        in_flight_bytes: 0,
        dirty: true,
        quiet_waiters: Vec::new(),
        snapshot_waiters: Vec::new(),
    };
    let body: Box<dyn FnOnce() + Send> = Box::new(move || core.run(&urgent, &bulk, &event_queue));
    threads.push(spawn("core", body).map_err(EngineError::Thread)?);
    let (helper_shared, helper_events) = (shared.clone(), events.clone());
    let body: Box<dyn FnOnce() + Send> = Box::new(move || {
        log_writer::run(log, &helper_shared, &log_queue, &helper_events);
        // The directory stays locked for as long as the log may be written.
        drop(data);
    });
    threads.push(spawn("log", body).map_err(EngineError::Thread)?);
    let helper_shared = shared.clone();
    let body: Box<dyn FnOnce() + Send> =
        Box::new(move || package_writer::run(&helper_shared, &package_queue));
    threads.push(spawn("packages", body).map_err(EngineError::Thread)?);
    let (helper_shared, helper_events) = (shared.clone(), events.clone());
    let body: Box<dyn FnOnce() + Send> = Box::new(move || {
        snapshotter::run(
            &helper_shared,
            &snapshots,
            &snapshot_queue,
            &package_tasks,
            &helper_events,
        );
    });
    threads.push(spawn("snapshots", body).map_err(EngineError::Thread)?);
    Ok((threads, events, shared))
}

/// One shard in the core's hands.
struct Shard {
    id: ShardId,
    replica: Replica,
    proposals: Vec<Proposal>,
    /// Who waits for an outcome; `None` for the core's own proposals.
    waiting: BTreeMap<Correlation, Waiting>,
    /// By receiving shard.
    links: Vec<Link>,
    tick_in_flight: bool,
    since_snapshot_bytes: u64,
    snapshot_running: bool,
    /// Index of the snapshot before the newest: the log is kept back to it, so that either can be started from.
    older_snapshot: u64,
    newest_snapshot: u64,
}

struct Waiting {
    len_bytes: usize,
    origin: Origin,
}

/// Who proposed it.
enum Origin {
    /// Somebody outside.
    Request(Sender<Result<Outcome, ProposeError>>),
    /// The core: an entry that lets time pass.
    Tick,
    /// The core: messages of a channel, by its sending and receiving shard.
    Deliver { from: usize, to: usize },
    /// The core: a confirmation.
    Delivered,
}

/// One channel's progress as far as the core drives it. Lost with the process; repeats are ignored.
#[derive(Clone, Copy, Default)]
struct Link {
    /// Messages below this number were proposed to the receiving shard.
    sent: u64,
    /// Entries with messages that were proposed and not yet applied.
    in_flight: usize,
    /// Confirmations below this number were proposed to the sending shard.
    confirmed: u64,
    /// Messages that the receiving shard could not take yet are not offered again before this time.
    again_after: Timestamp,
}

impl Shard {
    fn new(id: ShardId, replica: Replica, snapshot_index: u64) -> Self {
        let base = replica.status().base.index;
        Self {
            id,
            replica,
            proposals: Vec::new(),
            waiting: BTreeMap::new(),
            links: Vec::new(),
            tick_in_flight: false,
            since_snapshot_bytes: 0,
            snapshot_running: false,
            older_snapshot: base,
            newest_snapshot: snapshot_index.max(base),
        }
    }
}

struct Core {
    shards: Vec<Shard>,
    shared: Arc<Shared>,
    log: Sender<LogTask>,
    packages: Sender<PackageTask>,
    snapshots: Sender<ShardId>,
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
    fn run(
        mut self,
        urgent: &Receiver<Request>,
        bulk: &Receiver<Request>,
        events: &Receiver<CoreEvent>,
    ) {
        for shard in &mut self.shards {
            shard.links = vec![Link::default(); self.shared.shards.len()];
        }
        for at in 0..self.shards.len() {
            self.step(at, Event::Start);
        }
        self.flush();
        let closed = never();
        loop {
            let open =
                self.in_flight_bytes < IN_FLIGHT_MAX_BYTES && self.shared.disk_full().is_none();
            let bulk_now = if open { bulk } else { &closed };
            select! {
                recv(events) -> event => match event {
                    Ok(CoreEvent::Stop) | Err(_) => break,
                    Ok(event) => self.handle(event),
                },
                recv(urgent) -> request => if let Ok(request) = request { self.take(request) },
                recv(bulk_now) -> request => if let Ok(request) = request { self.take(request) },
                default(IDLE_WAIT) => {}
            }
            let mut stopping = false;
            while let Ok(event) = events.try_recv() {
                match event {
                    CoreEvent::Stop => stopping = true,
                    event => self.handle(event),
                }
            }
            if stopping {
                break;
            }
            for request in urgent.try_iter().take(TURN_MAX_URGENT) {
                self.take(request);
            }
            let mut taken = 0;
            while taken < TURN_MAX_BYTES && open && self.in_flight_bytes < IN_FLIGHT_MAX_BYTES {
                let Ok(request) = bulk.try_recv() else { break };
                taken += request.data.len();
                self.take(request);
            }
            self.propose_ticks();
            self.pump();
            self.flush();
            self.answer_quiet(urgent.is_empty() && bulk.is_empty());
        }
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
                self.shards[shard.index()].snapshot_running = false
            }
            CoreEvent::WhenQuiet(waiter) => self.quiet_waiters.push(waiter),
            CoreEvent::SnapshotAll(waiter) => {
                self.snapshot_waiters.push(waiter);
                for at in 0..self.shards.len() {
                    self.start_snapshot(at);
                }
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

    fn take(&mut self, request: Request) {
        self.propose(
            request.shard.index(),
            request.data,
            Origin::Request(request.reply),
        );
    }

    fn propose(&mut self, at: usize, data: Bytes, origin: Origin) {
        self.next_correlation += 1;
        let correlation = Correlation(self.next_correlation);
        let len_bytes = data.len();
        self.in_flight_bytes += len_bytes;
        let shard = &mut self.shards[at];
        shard
            .waiting
            .insert(correlation, Waiting { len_bytes, origin });
        shard.proposals.push(Proposal { data, correlation });
    }

    fn propose_command(&mut self, at: usize, command: &Command, origin: Origin) {
        let data = clearspan_codec::entry::encode(self.shared.clock.now(), command);
        self.propose(at, data, origin);
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
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let now = clearspan_replica::Timestamp::from_ns(self.shared.clock.now().ns());
            for action in self.shards[at].replica.step(event, now) {
                match action {
                    Action::Persist(persist) => {
                        let shard = clearspan_replica::ShardId::new(self.shards[at].id.get());
                        self.writes.push((shard, persist));
                    }
                    Action::Apply(committed) => {
                        let last = committed.last().map_or(0, |entry| entry.position.index);
                        self.apply(at, committed);
                        events.insert(0, Event::Applied { index: last });
                    }
                    Action::Dropped {
                        correlation,
                        reason,
                    } => {
                        self.answer(at, correlation, Err(ProposeError::Dropped(reason)));
                    }
                    Action::CompactLog { to } => {
                        let shard = clearspan_replica::ShardId::new(self.shards[at].id.get());
                        let _ = self.log.send(LogTask::Compact(shard, to));
                    }
                    Action::Stop(reason) => {
                        eprintln!("stopping: shard {}: {reason:?}", self.shards[at].id);
                        std::process::abort();
                    }
                    // A group of one sends nothing, fetches no snapshot, and is its own leader throughout.
                    Action::Send(_)
                    | Action::InstallSnapshot(_)
                    | Action::BecameLeader { .. }
                    | Action::LostLeadership { .. }
                    | Action::LeaderChanged { .. }
                    | Action::ReadReady { .. } => {}
                }
            }
        }
    }

    fn apply(&mut self, at: usize, committed: Vec<Committed>) {
        let id = self.shards[at].id;
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
        let (time, outcome) = apply_entry(state, entry.position, data.as_ref());
        if let Some(data) = data {
            self.shards[at].since_snapshot_bytes += data.len() as u64;
            if let Reply::Taken { message, .. } = outcome.reply {
                self.store_package(id, message, data);
            }
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

    fn answer(
        &mut self,
        at: usize,
        correlation: Correlation,
        outcome: Result<Outcome, ProposeError>,
    ) {
        let Some(waiting) = self.shards[at].waiting.remove(&correlation) else {
            return;
        };
        self.in_flight_bytes -= waiting.len_bytes;
        match waiting.origin {
            Origin::Request(reply) => {
                // Whoever asked may have given up.
                let _ = reply.send(outcome);
            }
            Origin::Tick => self.shards[at].tick_in_flight = false,
            Origin::Deliver { from, to } => self.delivered(from, to),
            Origin::Delivered => {
                // A confirmation that was dropped is proposed again from what the states say.
                if outcome.is_err() {
                    for link in &mut self.shards[at].links {
                        link.confirmed = 0;
                    }
                    self.dirty = true;
                }
            }
        }
    }

    /// An entry with messages has its outcome. What it did not get applied goes again from where the receiving shard
    /// stands: entries that were dropped, and credits to an account that it does not know yet.
    fn delivered(&mut self, from: usize, to: usize) {
        let (sender, receiver) = (self.shards[from].id, self.shards[to].id);
        let applied = self.shared.shard(receiver).ledger.inbound_next(sender);
        let again_after = self.shared.clock.now().plus_ns(AGAIN_AFTER_NS);
        let link = &mut self.shards[from].links[to];
        link.in_flight -= 1;
        if link.in_flight == 0 && applied < link.sent {
            link.sent = applied;
            link.again_after = again_after;
            self.dirty = true;
        }
    }

    /// An entry that does nothing but let due times pass.
    fn propose_ticks(&mut self) {
        let now = self.shared.clock.now();
        for at in 0..self.shards.len() {
            let due = self
                .shared
                .shard(self.shards[at].id)
                .ledger
                .next_timer()
                .is_some_and(|time| time <= now);
            if due && !self.shards[at].tick_in_flight {
                self.shards[at].tick_in_flight = true;
                self.propose_command(at, &Command::Tick, Origin::Tick);
            }
        }
    }

    /// Carries committed messages to their shards, in order, and confirmations back.
    fn pump(&mut self) {
        if !std::mem::take(&mut self.dirty) {
            return;
        }
        for from in 0..self.shards.len() {
            for to in 0..self.shards.len() {
                self.pump_link(from, to);
            }
        }
    }

    fn pump_link(&mut self, from: usize, to: usize) {
        let (sender, receiver) = (self.shards[from].id, self.shards[to].id);
        let now = self.shared.clock.now();
        loop {
            let link = self.shards[from].links[to];
            let (first, messages) = {
                let state = self.shared.shard(sender);
                let (_, end) = state.ledger.outbound_range(receiver);
                if link.sent >= end {
                    break;
                }
                if now < link.again_after {
                    self.dirty = true;
                    break;
                }
                state
                    .ledger
                    .outbound(receiver, link.sent, DELIVER_MAX_MESSAGES)
            };
            if messages.is_empty() {
                break;
            }
            let link = &mut self.shards[from].links[to];
            link.sent = first + messages.len() as u64;
            link.in_flight += 1;
            self.propose_command(
                to,
                &Command::Deliver {
                    from: sender,
                    first,
                    messages,
                },
                Origin::Deliver { from, to },
            );
        }
        let applied = self.shared.shard(receiver).ledger.inbound_next(sender);
        let (first, _) = self.shared.shard(sender).ledger.outbound_range(receiver);
        let link = &mut self.shards[from].links[to];
        if applied > first.max(link.confirmed) {
            link.confirmed = applied;
            self.propose_command(
                from,
                &Command::Delivered {
                    to: receiver,
                    through: applied - 1,
                },
                Origin::Delivered,
            );
        }
    }

    fn answer_quiet(&mut self, queues_empty: bool) {
        if self.quiet_waiters.is_empty() || !queues_empty || self.dirty {
            return;
        }
        let idle = self.shards.iter().all(|shard| {
            let status = shard.replica.status();
            shard.waiting.is_empty()
                && shard.proposals.is_empty()
                && status.applied_index == status.last.index
                && matches!(status.role, clearspan_replica::Role::Leader)
        });
        if idle {
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
        let _ = self.snapshots.send(shard.id);
    }

    fn snapshot_taken(&mut self, at: usize, mark: SnapshotMark) {
        let shard = &mut self.shards[at];
        shard.snapshot_running = false;
        shard.older_snapshot = shard.newest_snapshot;
        shard.newest_snapshot = mark.position.index;
        let to_index = shard.older_snapshot;
        self.step(at, Event::SnapshotTaken(mark));
        if to_index > 0 {
            self.step(at, Event::Compact { to_index });
        }
    }
}
