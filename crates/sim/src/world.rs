//! The scheduler: one heap of things to come, in the order of virtual time; equal times in an order that the seed draws.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use clearspan_ledger::ShardId;
use clearspan_ledger::nodes::NodeDirectory;
use clearspan_node::engine::group::Seat;
use clearspan_node::engine::peers::PeerFrame;
use clearspan_replica::MessageKind;

use crate::atlas::Atlas;
use crate::check::Oracle;
use crate::disk::SimDisk;
use crate::faults::FaultEvent;
use crate::history::History;
use crate::members::Act;
use crate::net::Net;
use crate::node::{Life, SimNode, member};
use crate::plan::{Fault, MS, Plan, S};
use crate::reach::reach;
use crate::rng::{Rng, Stream};
use crate::sides::Sides;
use crate::work::Work;

/// What is to come.
pub(crate) enum Event {
    Turn {
        node: usize,
        life: u64,
    },
    LogDone {
        node: usize,
        life: u64,
    },
    Packages {
        node: usize,
        life: u64,
    },
    SnapshotDone {
        node: usize,
        life: u64,
    },
    Frame {
        from: usize,
        to: usize,
        epoch: u64,
        bytes: usize,
        frame: Box<PeerFrame>,
    },
    Connect {
        a: usize,
        b: usize,
    },
    /// A cut that lasts is noticed.
    Notice {
        a: usize,
        b: usize,
    },
    /// A queue was full, and what was in it has arrived.
    Overflowed {
        a: usize,
        b: usize,
        epoch: u64,
    },
    Restart {
        node: usize,
        life: u64,
    },
    Fault,
    FaultEnd(FaultEvent),
    Bank(usize),
    Retry(usize),
    Timeout(usize, usize),
    Operator,
    Heal,
    Look,
}

struct Scheduled {
    at_ns: u64,
    tie: u64,
    number: u64,
    event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |s: &Self| (s.at_ns, s.tie, s.number);
        key(other).cmp(&key(self))
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Founding,
    Safety,
    Liveness,
    Drained,
}

/// The idle core looks at its timers this often.
const IDLE_NS: u64 = 20 * MS;
/// From the end of all faults on: every shard has a leader.
const LEADER_WITHIN_NS: u64 = 15 * S;
/// From the end of all faults on: everything is answered, delivered and equal.
const DRAINED_WITHIN_NS: u64 = 90 * S;
/// Participants go on for this long after the end of all faults.
const LIVELY_NS: u64 = 3 * S;

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) now_ns: u64,
    heap: BinaryHeap<Scheduled>,
    number: u64,
    scheduler: Rng,
    pub(crate) network: Rng,
    pub(crate) disks: Rng,
    pub(crate) fault_rng: Rng,
    pub(crate) nodes: Vec<SimNode>,
    pub(crate) net: Net,
    stalled: BTreeMap<(usize, usize), Vec<Event>>,
    pub(crate) work: Work,
    pub(crate) atlas: Atlas,
    pub(crate) struck: BTreeSet<Fault>,
    pub(crate) sides: Sides,
    pub(crate) member_act: Option<Act>,
    pub(crate) history: History,
    pub(crate) oracle: Oracle,
    pub(crate) phase: Phase,
    pub(crate) healed_ns: u64,
    pub(crate) faults_made: u64,
    pub(crate) events: u64,
    pub(crate) hash: u64,
    pub(crate) trace: Option<Vec<String>>,
    pub(crate) failure: Option<String>,
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A node that stops itself.
struct Stopped(String);

/// Keeps panics and stops of nodes inside their simulation; once per process.
pub(crate) fn prepare() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        clearspan_storage::instead_of_stopping(|text| {
            std::panic::resume_unwind(Box::new(Stopped(text)))
        });
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if IN_NODE.get() {
                let text = info.to_string();
                PANIC.with_borrow_mut(|panic| *panic = Some(text));
            } else {
                before(info);
            }
        }));
    });
}

thread_local! {
    static IN_NODE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

impl World {
    pub(crate) fn new(seed: u64, plan: Plan, traced: bool) -> Self {
        let count = plan.sites.len();
        let mut fault_rng = Rng::new(seed, Stream::Faults);
        let drifts = plan.faults.contains(&Fault::Drift);
        let nodes = (0..count)
            .map(|at| SimNode {
                disk: SimDisk::default(),
                clock: Arc::default(),
                steady: Arc::default(),
                offset_ns: i64::try_from(fault_rng.below(20 * MS)).unwrap_or(0),
                drift_ppm: if drifts {
                    i64::try_from(fault_rng.below(200_000)).unwrap_or(0) - 100_000
                } else {
                    0
                },
                life: None,
                lives: 0,
                paused_until_ns: 0,
                slow: 1,
                lost: false,
                joined: at < plan.founders,
                replaced: false,
                witness: plan.witness && at + 1 == plan.founders,
                restarted_from_snapshot: false,
            })
            .collect();
        let mut net = Net::new(count);
        if plan.faults.contains(&Fault::Datagrams) {
            net.datagrams = Some((
                fault_rng.pick(&[0, 10, 100]),
                fault_rng.pick(&[0, 20, 200]),
                fault_rng.pick(&[0, 20, 200]),
            ));
        }
        let work = Work::new(&plan, Rng::new(seed, Stream::Workload));
        let history = History {
            logs: vec![Vec::new(); usize::from(plan.shards)],
            ..History::default()
        };
        Self {
            now_ns: 0,
            heap: BinaryHeap::new(),
            number: 0,
            scheduler: Rng::new(seed, Stream::Scheduler),
            network: Rng::new(seed, Stream::Network),
            disks: Rng::new(seed, Stream::Disk),
            fault_rng,
            nodes,
            net,
            stalled: BTreeMap::new(),
            work,
            atlas: Atlas::default(),
            struck: BTreeSet::new(),
            sides: Sides::new(count),
            member_act: None,
            history,
            oracle: Oracle::new(),
            phase: Phase::Founding,
            healed_ns: u64::MAX,
            faults_made: 0,
            events: 0,
            hash: seed,
            trace: traced.then(Vec::new),
            failure: None,
            plan,
        }
    }

    pub(crate) fn at(&mut self, at_ns: u64, event: Event) {
        let tie = self.scheduler.next() & 0xFF;
        self.schedule(at_ns, tie, event);
    }

    pub(crate) fn after(&mut self, wait_ns: u64, event: Event) {
        self.at(self.now_ns + wait_ns, event);
    }

    fn schedule(&mut self, at_ns: u64, tie: u64, event: Event) {
        self.number += 1;
        self.heap.push(Scheduled {
            at_ns,
            tie,
            number: self.number,
            event,
        });
    }

    pub(crate) fn say(&mut self, text: impl FnOnce() -> String) {
        let now = self.now_ns;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>12.6} {}", now as f64 / 1e9, text()));
        }
    }

    pub(crate) fn fail(&mut self, what: String) {
        self.say(|| format!("FAILED {what}"));
        for line in self.picture() {
            self.say(|| line);
        }
        self.failure.get_or_insert(what);
    }

    /// How every node stands, for a trace.
    fn picture(&self) -> Vec<String> {
        if self.trace.is_none() {
            return Vec::new();
        }
        let mut lines = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            let Some(life) = &node.life else {
                lines.push(format!("n{at} is down"));
                continue;
            };
            lines.push(format!(
                "n{at} until turn {} ns, log {}, packages {}, snapshot {}, open {}",
                life.turn_ns,
                life.log_busy,
                life.packages_busy,
                life.snapshot_busy,
                life.open.len()
            ));
            for status in life.stepped.status() {
                lines.push(format!(
                    "n{at} shard {}: {:?}",
                    status.shard, status.replica
                ));
            }
        }
        lines
    }

    fn mix(&mut self, value: u64) {
        self.hash = (self.hash ^ value)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(29);
    }

    fn seat(&self, me: usize) -> Seat {
        Seat {
            me: member(me),
            witness: self.nodes[me].witness,
            founding: NodeDirectory::founding(self.founders()),
        }
    }

    pub(crate) fn shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        (0..self.plan.shards).map(ShardId::new)
    }

    /// Runs to the end.
    pub(crate) fn run(&mut self) {
        if self.plan.changes_members() {
            let nodes = self.founders();
            self.work.found_with(nodes);
        }
        for node in 0..self.plan.founders {
            self.start(node);
        }
        for a in 0..self.plan.founders {
            for b in a + 1..self.plan.founders {
                self.after(MS, Event::Connect { a, b });
            }
        }
        self.after(100 * MS, Event::Operator);
        self.after(500 * MS, Event::Look);
        while self.failure.is_none() && self.phase != Phase::Drained {
            let Some(next) = self.heap.pop() else { break };
            self.now_ns = next.at_ns;
            self.events += 1;
            self.handle(next.event);
        }
        if self.failure.is_none() {
            self.finish();
        } else if self.trace.is_some() {
            for shard in self.shards() {
                let _ = self.replay(shard);
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Turn { node, life } => {
                if !self.is_running(node, life, Event::Turn { node, life }) {
                    return;
                }
                if let Some(life) = &mut self.nodes[node].life {
                    // An earlier turn took its place.
                    if life.turn_ns > self.now_ns {
                        return;
                    }
                    life.turn_ns = u64::MAX;
                }
                self.mix(node as u64 ^ self.now_ns);
                self.call(node, |life| {
                    life.stepped.turn();
                });
            }
            Event::LogDone { node, life } => {
                if !self.is_running(node, life, Event::LogDone { node, life }) {
                    return;
                }
                let mut ended = false;
                self.call(node, |life| {
                    // Not ended: the disk is full.
                    ended = life.stepped.end_log();
                    life.log_busy = !ended;
                });
                if !ended && self.nodes[node].lives == life {
                    self.after(100 * MS, Event::LogDone { node, life });
                }
            }
            Event::Packages { node, life } => {
                if !self.is_running(node, life, Event::Packages { node, life }) {
                    return;
                }
                let mut full = false;
                self.call(node, |life| {
                    full = !life.stepped.step_packages() && life.stepped.has_package_work();
                    life.packages_busy = full;
                });
                if full {
                    self.after(100 * MS, Event::Packages { node, life });
                }
            }
            Event::SnapshotDone { node, life } => {
                if !self.is_running(node, life, Event::SnapshotDone { node, life }) {
                    return;
                }
                let mut ended = true;
                self.call(node, |life| {
                    ended = life.stepped.end_snapshot().unwrap_or(true);
                    life.snapshot_busy = !ended;
                });
                if !ended && self.nodes[node].lives == life {
                    self.after(100 * MS, Event::SnapshotDone { node, life });
                }
            }
            Event::Frame {
                from,
                to,
                epoch,
                bytes,
                frame,
            } => self.arrive(from, to, epoch, bytes, frame),
            Event::Connect { a, b } => self.connect(a, b),
            Event::Notice { a, b } => {
                let waited = self
                    .net
                    .pair(a, b)
                    .cut_since_ns
                    .is_some_and(|since| self.now_ns >= since + self.plan.break_after_ns);
                if waited && self.net.pair(a, b).connected {
                    self.disconnect(a, b);
                }
            }
            Event::Overflowed { a, b, epoch } => {
                let pair = self.net.pair(a, b);
                if pair.connected && pair.epoch == epoch {
                    self.disconnect(a, b);
                }
            }
            Event::Restart { node, life } => {
                if self.nodes[node].lives == life && self.nodes[node].life.is_none() {
                    self.start(node);
                }
            }
            Event::Fault => self.fault(),
            Event::FaultEnd(end) => self.end_fault(end),
            Event::Bank(bank) => self.bank_turn(bank),
            Event::Retry(command) => self.attempt(command),
            Event::Timeout(command, attempt) => self.timed_out(command, attempt),
            Event::Operator => self.operator_turn(),
            Event::Heal => self.heal(),
            Event::Look => {
                self.after(200 * MS, Event::Look);
                self.look();
            }
        }
    }

    /// Whether a life goes on and is not paused; an event for a paused one waits.
    fn is_running(&mut self, node: usize, life: u64, event: Event) -> bool {
        let this = &self.nodes[node];
        if this.life.is_none() || this.lives != life {
            return false;
        }
        if this.paused_until_ns > self.now_ns {
            let until = this.paused_until_ns;
            self.schedule(until, 0, event);
            return false;
        }
        true
    }

    // ---- nodes ----

    pub(crate) fn start(&mut self, node: usize) {
        let this = &self.nodes[node];
        if this.lost || !this.joined || this.life.is_some() {
            return;
        }
        let group = self.seat(node);
        let count = self.nodes.len();
        self.nodes[node].show_time(self.now_ns);
        let snapshots: usize = self
            .shards()
            .map(|shard| {
                self.nodes[node]
                    .disk
                    .snapshot_count(clearspan_replica::ShardId::new(shard.get()))
            })
            .sum();
        let restarted = self.nodes[node].lives > 0;
        if restarted {
            reach(if snapshots > 0 {
                "a node restarted with a snapshot"
            } else {
                "a node restarted without a snapshot"
            });
        }
        let must_refuse = self.must_refuse(node);
        let opened = {
            let this = &self.nodes[node];
            let plan = &self.plan;
            guarded(|| this.open(plan, group, count))
        };
        self.nodes[node].lives += 1;
        self.nodes[node].paused_until_ns = 0;
        self.nodes[node].restarted_from_snapshot = snapshots > 0;
        let (off, full) = {
            let state = self.nodes[node].disk.state();
            (state.off, state.full)
        };
        if off || (full && !matches!(opened, Ok(Ok(_)))) {
            // Power went while it started, or there was no room for what it had to finish first.
            drop(opened);
            reach(if off {
                "power went while a node started"
            } else {
                "a node could not start on a full disk"
            });
            self.nodes[node].disk.restart(off, &mut self.disks);
            let life = self.nodes[node].lives;
            self.after(200 * MS, Event::Restart { node, life });
            return;
        }
        match opened {
            Ok(Ok(_)) if must_refuse => {
                self.fail(format!("I17: node {node} starts with what is damaged"));
            }
            Ok(Ok(life)) => {
                self.nodes[node].life = Some(life);
                self.say(|| format!("n{node} starts"));
                self.settle(node);
                for other in 0..count {
                    if other != node && self.nodes[other].joined {
                        if self.net.pair(node, other).connected {
                            self.disconnect(node, other);
                        }
                        let wait = 5 * MS + self.network.below(50 * MS);
                        self.after(
                            wait,
                            Event::Connect {
                                a: node.min(other),
                                b: node.max(other),
                            },
                        );
                    }
                }
            }
            Ok(Err(error)) => {
                if must_refuse {
                    reach(if self.may_stop(node) {
                        "a damaged log kept a node from starting"
                    } else {
                        "a damaged snapshot kept a node from starting"
                    });
                    self.nodes[node].lost = true;
                    self.say(|| format!("n{node} does not start: {error}"));
                } else {
                    self.fail(format!(
                        "I11: node {node} cannot start again: {}",
                        chain(&error)
                    ));
                }
            }
            Err(what) => self.fail(format!("node {node} breaks while it starts: {what}")),
        }
    }

    /// Runs something in a node's process, then carries out what came of it.
    pub(crate) fn call(&mut self, node: usize, what: impl FnOnce(&mut Life)) {
        let nodes = self.nodes.len();
        let Some(mut life) = self.nodes[node].life.take() else {
            return;
        };
        self.nodes[node].show_time(self.now_ns);
        {
            let mut view = life.view.get();
            for to in (0..nodes).filter(|&to| to != node) {
                view.connected[to] = self.net.pair(node, to).connected;
                let queued = self.net.direction_mut(node, to).queued_bytes;
                view.room_bytes[to] = self.plan.queue_max_bytes.saturating_sub(queued);
                if self.phase == Phase::Safety
                    && self.plan.faults.contains(&Fault::FullQueues)
                    && self.network.per_mille(5)
                {
                    reach("a queue to a peer was said to be full");
                    view.room_bytes[to] = 0;
                }
            }
        }
        let result = guarded(|| what(&mut life));
        self.nodes[node].life = Some(life);
        let sync_failed = self.nodes[node].disk.state().sync_failed;
        if let Err(what) = result {
            if !self.may_stop(node) {
                self.fail(format!("node {node} stops itself: {what}"));
                return;
            }
            reach(if sync_failed {
                "a node stopped after a failed sync"
            } else {
                "a node stopped at damage that it read"
            });
            self.say(|| format!("n{node} stops itself: {what}"));
            self.die(node, false);
            return;
        }
        if sync_failed {
            self.fail(format!("I2: node {node} goes on after a failed sync"));
            return;
        }
        if self.nodes[node].disk.state().off {
            reach("power went in the middle of a node's work");
            self.die(node, true);
            return;
        }
        self.settle(node);
    }

    /// Sends what was sent, starts the writes that were asked for, looks at what has changed.
    fn settle(&mut self, node: usize) {
        let life_number = self.nodes[node].lives;
        let (sent, overflowed) = {
            let Some(life) = &self.nodes[node].life else {
                return;
            };
            let mut view = life.view.get();
            (
                std::mem::take(&mut view.sent),
                std::mem::take(&mut view.overflowed),
            )
        };
        self.observe(node);
        for (to, frame) in sent {
            self.send(node, to, frame);
        }
        for to in overflowed {
            reach("a queue to a peer was full");
            let pair = self.net.pair(node, to);
            if pair.connected {
                let (a, b, epoch) = (node.min(to), node.max(to), pair.epoch);
                let drained_ns = self.net.drained_ns(node, to).max(self.now_ns);
                self.schedule(drained_ns + 1, 0, Event::Overflowed { a, b, epoch });
            }
        }
        let slow = self.nodes[node].slow;
        let Some(life) = &mut self.nodes[node].life else {
            return;
        };
        let mut later = Vec::new();
        if !life.log_busy
            && let Some(bytes) = life.stepped.begin_log()
        {
            life.log_busy = true;
            let sync = self.disks.around(self.plan.sync_ns) + bytes * 10;
            later.push((
                sync * slow,
                Event::LogDone {
                    node,
                    life: life_number,
                },
            ));
        }
        if !life.packages_busy && life.stepped.has_package_work() {
            life.packages_busy = true;
            let wait = self.disks.around(self.plan.sync_ns / 2 + 1) * slow;
            later.push((
                wait,
                Event::Packages {
                    node,
                    life: life_number,
                },
            ));
        }
        while life.stepped.begin_snapshot() {}
        if !life.snapshot_busy && life.stepped.is_writing_snapshot() {
            life.snapshot_busy = true;
            let wait = self.disks.around(self.plan.sync_ns * 4) * slow;
            later.push((
                wait,
                Event::SnapshotDone {
                    node,
                    life: life_number,
                },
            ));
        }
        let wait = if life.stepped.has_input() {
            20_000
        } else {
            IDLE_NS
        };
        let turn_ns = self.now_ns + wait;
        if turn_ns < life.turn_ns {
            life.turn_ns = turn_ns;
            later.push((
                wait,
                Event::Turn {
                    node,
                    life: life_number,
                },
            ));
        }
        for (wait, event) in later {
            self.after(wait, event);
        }
        self.collect(node);
    }

    /// A process ends; with `power` lost its unsynced writes may be, too.
    pub(crate) fn die(&mut self, node: usize, power: bool) {
        let Some(life) = self.nodes[node].life.take() else {
            return;
        };
        self.say(|| {
            format!(
                "n{node} {}",
                if power { "loses power" } else { "is killed" }
            )
        });
        reach(if power {
            "a node lost power"
        } else {
            "a node was killed"
        });
        let Life {
            mut stepped,
            open,
            snapshot_busy,
            log_busy,
            ..
        } = life;
        if snapshot_busy {
            reach("a snapshot was under way when a node died");
        }
        // A write under way may have reached the disk.
        if log_busy && !self.nodes[node].disk.state().off {
            if self.disks.per_mille(500) {
                reach("a log write was under way when power went and survived");
                let _ = guarded(|| stepped.end_log());
            } else {
                reach("a log write was under way when power went and was lost");
            }
        }
        drop(stepped);
        self.nodes[node].disk.restart(power, &mut self.disks);
        let lives = self.nodes[node].lives;
        for token in open {
            self.lost(token);
        }
        for other in 0..self.nodes.len() {
            if other != node && self.net.pair(node, other).connected {
                if power {
                    // Nobody says goodbye: the others notice by silence.
                    let now = self.now_ns;
                    self.net
                        .pair_mut(node, other)
                        .cut_since_ns
                        .get_or_insert(now);
                    self.after(
                        self.plan.break_after_ns,
                        Event::Notice {
                            a: node.min(other),
                            b: node.max(other),
                        },
                    );
                } else {
                    self.disconnect(node, other);
                }
            }
        }
        let down = if self.phase == Phase::Liveness {
            50 * MS
        } else {
            50 * MS + self.fault_rng.around(S)
        };
        self.after(down, Event::Restart { node, life: lives });
    }

    // ---- network ----

    fn send(&mut self, from: usize, to: usize, frame: PeerFrame) {
        let urgent = frame.is_urgent();
        // The transport owes the engine word of a lost snapshot: it gets it from the broken connection alone.
        let raft =
            matches!(&frame, PeerFrame::Raft(_, message) if message.kind != MessageKind::Snapshot);
        self.mark_frame(&frame);
        let Some(frame) = clearspan_node::links::recoded(frame) else {
            self.fail(format!("a frame of node {from} cannot be read back"));
            return;
        };
        let bytes = clearspan_node::links::weight_bytes(&frame);
        let way = self.net.send(
            &self.plan,
            &mut self.network,
            self.now_ns,
            from,
            to,
            urgent,
            raft,
            bytes,
        );
        let Some(way) = way else { return };
        if let Some(again_ns) = way.again_ns {
            self.schedule(
                again_ns,
                0,
                Event::Frame {
                    from,
                    to,
                    epoch: way.epoch,
                    bytes: 0,
                    frame: Box::new(frame.clone()),
                },
            );
        }
        self.schedule(
            way.at_ns,
            0,
            Event::Frame {
                from,
                to,
                epoch: way.epoch,
                bytes,
                frame: Box::new(frame),
            },
        );
    }

    fn arrive(&mut self, from: usize, to: usize, epoch: u64, bytes: usize, frame: Box<PeerFrame>) {
        if self.net.pair(from, to).epoch != epoch {
            reach("a frame was lost with its connection");
            return;
        }
        let event = Event::Frame {
            from,
            to,
            epoch,
            bytes,
            frame,
        };
        if !self.net.flows(from, to) {
            self.stalled.entry((from, to)).or_default().push(event);
            return;
        }
        if self.nodes[to].paused_until_ns > self.now_ns {
            let until = self.nodes[to].paused_until_ns;
            self.schedule(until, 0, event);
            return;
        }
        let Event::Frame { frame, .. } = event else {
            return;
        };
        let direction = self.net.direction_mut(from, to);
        direction.queued_bytes = direction.queued_bytes.saturating_sub(bytes);
        if let Some(life) = &self.nodes[to].life {
            life.inlet.frame(member(from), *frame, Box::new(()));
            self.wake(to);
        }
    }

    /// A node has input: a turn is due soon.
    pub(crate) fn wake(&mut self, node: usize) {
        let lives = self.nodes[node].lives;
        let at_ns = self.now_ns + 20_000;
        if let Some(life) = &mut self.nodes[node].life
            && at_ns < life.turn_ns
        {
            life.turn_ns = at_ns;
            self.at(at_ns, Event::Turn { node, life: lives });
        }
    }

    fn connect(&mut self, a: usize, b: usize) {
        if self.net.pair(a, b).connected {
            return;
        }
        let alive = |node: &SimNode| node.life.is_some() && node.paused_until_ns <= self.now_ns;
        if !alive(&self.nodes[a]) || !alive(&self.nodes[b]) || !self.net.flows_both(a, b) {
            let wait = 100 * MS + self.network.below(200 * MS);
            self.after(wait, Event::Connect { a, b });
            return;
        }
        let pair = self.net.pair_mut(a, b);
        pair.connected = true;
        pair.epoch += 1;
        pair.cut_since_ns = None;
        if pair.epoch > 1 {
            reach("a connection broke and came back");
        }
        for (node, other) in [(a, b), (b, a)] {
            self.net.direction_mut(node, other).queued_bytes = 0;
            if let Some(life) = &self.nodes[node].life {
                life.inlet.up(member(other));
            }
            self.wake(node);
        }
    }

    /// A connection ends: what is on its way is lost, both sides hear of it, and dial again.
    pub(crate) fn disconnect(&mut self, a: usize, b: usize) {
        let (a, b) = (a.min(b), a.max(b));
        let pair = self.net.pair_mut(a, b);
        pair.connected = false;
        pair.epoch += 1;
        for (node, other) in [(a, b), (b, a)] {
            self.stalled.remove(&(node, other));
            self.net.direction_mut(node, other).queued_bytes = 0;
            if let Some(life) = &self.nodes[node].life {
                life.inlet.down(member(other));
            }
            self.wake(node);
        }
        let wait = 20 * MS + self.network.below(200 * MS);
        self.after(wait, Event::Connect { a, b });
    }

    /// Cuts one direction.
    pub(crate) fn cut(&mut self, from: usize, to: usize) {
        self.net.direction_mut(from, to).cuts += 1;
        self.note_sides();
        let now = self.now_ns;
        self.net.pair_mut(from, to).cut_since_ns.get_or_insert(now);
        self.after(
            self.plan.break_after_ns,
            Event::Notice {
                a: from.min(to),
                b: from.max(to),
            },
        );
    }

    pub(crate) fn mend(&mut self, from: usize, to: usize) {
        let direction = self.net.direction_mut(from, to);
        direction.cuts = direction.cuts.saturating_sub(1);
        self.note_sides();
        if !self.net.flows(from, to) {
            return;
        }
        let alive = self.nodes[from].life.is_some() && self.nodes[to].life.is_some();
        if self.net.flows_both(from, to) && alive {
            self.net.pair_mut(from, to).cut_since_ns = None;
        }
        for event in self.stalled.remove(&(from, to)).unwrap_or_default() {
            self.schedule(self.now_ns + 50_000, 0, event);
        }
    }

    // ---- phases ----

    /// The founding is over: faults begin.
    pub(crate) fn founded(&mut self) {
        self.phase = Phase::Safety;
        self.say(|| "founded".to_owned());
        self.after(self.plan.safety_ns, Event::Heal);
        if !self.plan.faults.is_empty() {
            self.after(10 * MS, Event::Fault);
        }
        for bank in 0..self.plan.banks {
            self.after(MS, Event::Bank(bank));
        }
    }

    fn heal(&mut self) {
        self.phase = Phase::Liveness;
        self.healed_ns = self.now_ns;
        self.say(|| "healed".to_owned());
        self.net.datagrams = None;
        for from in 0..self.nodes.len() {
            for to in (0..self.nodes.len()).filter(|&to| to != from) {
                while !self.net.flows(from, to) {
                    self.mend(from, to);
                }
            }
        }
        for node in 0..self.nodes.len() {
            let this = &mut self.nodes[node];
            this.paused_until_ns = 0;
            this.slow = 1;
            this.disk.set_full(false);
            let mut state = this.disk.state();
            state.cancel_cut();
            drop(state);
            self.start(node);
        }
    }

    /// Whether participants still begin new commands.
    pub(crate) fn is_lively(&self) -> bool {
        self.phase == Phase::Safety
            || (self.phase == Phase::Liveness && self.now_ns < self.healed_ns + LIVELY_NS)
    }

    /// Now and then: is the cluster alive, is it done?
    fn look(&mut self) {
        if self.phase == Phase::Founding && self.now_ns > 60 * S {
            self.fail("I11: the cluster was not founded within a minute".to_owned());
        }
        if self.phase != Phase::Liveness {
            return;
        }
        let since = self.now_ns - self.healed_ns;
        if since > LEADER_WITHIN_NS {
            for shard in self.shards() {
                if self.leader(shard).is_none() {
                    self.fail(format!(
                        "I11: shard {shard} has no leader {} s after the last fault",
                        LEADER_WITHIN_NS / S
                    ));
                }
            }
        }
        match self.what_is_open() {
            None if !self.is_lively() => self.phase = Phase::Drained,
            Some(what) if since > DRAINED_WITHIN_NS => {
                self.fail(format!(
                    "I11: {} s after the last fault {what}",
                    DRAINED_WITHIN_NS / S
                ));
            }
            _ => {}
        }
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

/// Runs a node's code: a panic or a stop in it is told, not passed on.
pub(crate) fn guarded<T>(what: impl FnOnce() -> T) -> Result<T, String> {
    IN_NODE.set(true);
    let result = catch_unwind(AssertUnwindSafe(what));
    IN_NODE.set(false);
    result.map_err(|payload| match payload.downcast::<Stopped>() {
        Ok(stopped) => stopped.0,
        Err(_) => PANIC
            .with_borrow_mut(Option::take)
            .unwrap_or_else(|| "a panic".to_owned()),
    })
}
