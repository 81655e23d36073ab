//! One simulated node: its disk for good, its process for as long as it lives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clearspan_ledger::ShardId;
use clearspan_ledger::nodes::NodeDirectory;
use clearspan_node::clock::Clock;
use clearspan_node::engine::group::Seat;
use clearspan_node::engine::peers::{PeerFrame, Peers};
use clearspan_node::engine::stepped::Stepped;
use clearspan_node::engine::{EngineError, EngineOptions, Inlet, ProposeError};
use clearspan_replica::MemberId;
use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::disk::SimDisk;
use crate::plan::Plan;

/// Where simulated time begins: the tests' business day.
pub(crate) const START_NS: u64 = 1_796_000_000_000_000_000;

/// Pieces of snapshots, several of which are asked for ahead, must fit the queue beside the rest.
const PIECES_IN_QUEUE: usize = 32;

/// A node's network as its core sees it during one call.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) connected: Vec<bool>,
    pub(crate) room_bytes: Vec<usize>,
    pub(crate) sent: Vec<(usize, PeerFrame)>,
    /// Peers whose queue was full.
    pub(crate) overflowed: BTreeSet<usize>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct SharedView(Arc<Mutex<View>>);

impl SharedView {
    pub(crate) fn get(&self) -> MutexGuard<'_, View> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct SimPeers(SharedView);

impl Peers for SimPeers {
    fn send(&mut self, to: MemberId, frame: PeerFrame) -> bool {
        let mut view = self.0.get();
        let to = place(to);
        if !view.connected.get(to).copied().unwrap_or(false) {
            return false;
        }
        if view.room_bytes[to] == 0 {
            view.overflowed.insert(to);
            return false;
        }
        let bytes = clearspan_node::links::weight_bytes(&frame);
        view.room_bytes[to] = view.room_bytes[to].saturating_sub(bytes);
        view.sent.push((to, frame));
        true
    }

    /// The members are those of the founding; the network links all of them.
    fn set_nodes(&mut self, _: &NodeDirectory, _: &BTreeSet<MemberId>) {}

    /// Disks are never put back from older copies.
    fn set_lives(&mut self, _: &BTreeMap<MemberId, u64>) {}
}

/// A member's place among the nodes.
pub(crate) fn place(member: MemberId) -> usize {
    usize::try_from(member.get()).map_or(usize::MAX, |number| number - 1)
}

pub(crate) fn member(place: usize) -> MemberId {
    MemberId::new(place as u64 + 1).expect("from one on")
}

/// A proposal's or a read's place: command and attempt.
pub(crate) type Token = (usize, usize);
pub(crate) type Answered = (Token, Result<clearspan_ledger::Outcome, ProposeError>);

/// A read on its way.
pub(crate) struct ReadWait {
    pub(crate) bank: usize,
    pub(crate) began_ns: u64,
    pub(crate) shard: ShardId,
    pub(crate) index: Receiver<Result<u64, ProposeError>>,
    pub(crate) must_ns: Option<u64>,
    /// What a linearizable answer must have applied.
    pub(crate) must_index: u64,
}

pub(crate) struct Life {
    pub(crate) stepped: Stepped,
    pub(crate) inlet: Inlet,
    pub(crate) view: SharedView,
    pub(crate) answers: Receiver<Answered>,
    pub(crate) answer: Sender<Answered>,
    /// Proposals without an answer.
    pub(crate) open: BTreeSet<Token>,
    pub(crate) reads: Vec<ReadWait>,
    /// The next turn that is scheduled.
    pub(crate) turn_ns: u64,
    pub(crate) log_busy: bool,
    pub(crate) packages_busy: bool,
    pub(crate) snapshot_busy: bool,
    /// By shard: how far the committed log has been compared.
    pub(crate) compared: Vec<u64>,
    pub(crate) seen: Vec<Seen>,
}

/// What a shard's replica was when it was last looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) term: u64,
    pub(crate) committed: u64,
    pub(crate) applied: u64,
    pub(crate) led: bool,
    pub(crate) base: u64,
    pub(crate) last: u64,
}

pub(crate) struct SimNode {
    pub(crate) disk: SimDisk,
    pub(crate) clock: Arc<AtomicU64>,
    pub(crate) steady: Arc<AtomicU64>,
    pub(crate) offset_ns: i64,
    /// How much faster than true time its clock runs, in millionths.
    pub(crate) drift_ppm: i64,
    pub(crate) life: Option<Life>,
    /// Counts lives: what was scheduled for an earlier one is void.
    pub(crate) lives: u64,
    pub(crate) paused_until_ns: u64,
    pub(crate) slow: u64,
    /// Damaged for good: it stays down.
    pub(crate) lost: bool,
    pub(crate) witness: bool,
    /// It belongs to the cluster, or did.
    pub(crate) joined: bool,
    /// Another one has its place.
    pub(crate) replaced: bool,
    /// A later life began from a snapshot.
    pub(crate) restarted_from_snapshot: bool,
}

impl SimNode {
    /// Shows the node the time as its clock has it.
    pub(crate) fn show_time(&self, now_ns: u64) {
        let drift = i64::try_from(now_ns / 1_000_000).unwrap_or(0) * self.drift_ppm;
        let shown = START_NS
            .saturating_add(now_ns)
            .saturating_add_signed(self.offset_ns)
            .saturating_add_signed(drift);
        self.clock.store(shown, Ordering::Relaxed);
        let steady = 1_000_000_000_u64
            .saturating_add(now_ns)
            .saturating_add_signed(drift);
        self.steady.store(steady, Ordering::Relaxed);
    }

    pub(crate) fn open(&self, plan: &Plan, seat: Seat, nodes: usize) -> Result<Life, EngineError> {
        let view = SharedView::default();
        {
            let mut view = view.get();
            view.connected = vec![false; nodes];
            view.room_bytes = vec![0; nodes];
        }
        let options = EngineOptions {
            clock: Clock::Stepped {
                shown: self.clock.clone(),
                steady: self.steady.clone(),
            },
            snapshot_after_bytes: plan.snapshot_after_bytes,
            election_ns: plan.election_ns,
            piece_bytes: (plan.queue_max_bytes / PIECES_IN_QUEUE).max(1),
            ..EngineOptions::default()
        };
        let mut door = None;
        let peers = SimPeers(view.clone());
        let stepped = Stepped::open(self.disk.ports(), plan.shards, options, seat, |inlet| {
            door = Some(inlet);
            Box::new(peers)
        })?;
        let (answer, answers) = unbounded();
        Ok(Life {
            stepped,
            inlet: door.expect("a node is connected when it is put together"),
            view,
            answers,
            answer,
            open: BTreeSet::new(),
            reads: Vec::new(),
            turn_ns: u64::MAX,
            log_busy: false,
            packages_busy: false,
            snapshot_busy: false,
            compared: vec![0; usize::from(plan.shards)],
            seen: vec![Seen::default(); usize::from(plan.shards)],
        })
    }
}
