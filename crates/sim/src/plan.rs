//! What one seed runs: a cluster, its sizes, the faults that exist at all, and the work.

use crate::rng::{Rng, Stream};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const S: u64 = 1_000_000_000;

/// Kinds of faults; each seed has some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A process is killed.
    Kill,
    /// A machine loses power.
    Power,
    /// Power goes at one of the next disk operations.
    PowerAtOperation,
    /// All machines lose power at once.
    PowerAll,
    /// A process stands still.
    Pause,
    /// A link is cut both ways.
    Cut,
    /// A link is cut one way.
    CutOneWay,
    /// One node is cut off.
    Isolate,
    /// A site is cut off.
    CutSite,
    /// Two sides that only one node sees.
    Bridge,
    /// A connection breaks.
    Break,
    /// Messages between replicas are lost, doubled and overtaken.
    Datagrams,
    /// A disk is slow.
    SlowDisk,
    /// A disk is full.
    FullDisk,
    /// A clock jumps.
    ClockJump,
    /// Clocks run at different speeds.
    Drift,
    /// A snapshot is damaged.
    DamagedSnapshot,
    /// A log is damaged, so that its node does not start again.
    DamagedLog,
    /// A log is damaged under a node that runs.
    LatentLog,
    /// A sync fails once; the next one would not.
    FailedSync,
    /// Queues to peers are full now and then.
    FullQueues,
    /// A node is wiped and replaced, nodes are drained, shards get other leaders.
    Members,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::Kill,
        Self::Power,
        Self::PowerAtOperation,
        Self::PowerAll,
        Self::Pause,
        Self::Cut,
        Self::CutOneWay,
        Self::Isolate,
        Self::CutSite,
        Self::Bridge,
        Self::Break,
        Self::Datagrams,
        Self::SlowDisk,
        Self::FullDisk,
        Self::ClockJump,
        Self::Drift,
        Self::DamagedSnapshot,
        Self::DamagedLog,
        Self::LatentLog,
        Self::FailedSync,
        Self::FullQueues,
        Self::Members,
    ];

    /// All pairs.
    #[must_use]
    pub fn pairs() -> Vec<(Self, Self)> {
        let behind = |at: usize| Self::ALL.into_iter().skip(at + 1);
        let pairs = Self::ALL.into_iter().enumerate();
        pairs
            .flat_map(|(at, one)| behind(at).map(move |other| (one, other)))
            .collect()
    }

    /// Its name on a command line.
    #[must_use]
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// What a run is narrowed to; the usual is everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrow {
    /// Kinds of faults that are left out.
    pub without: Vec<Fault>,
    /// The most commands of participants.
    pub commands_max: u64,
    /// The most single faults.
    pub faults_max: u64,
}

impl Default for Narrow {
    fn default() -> Self {
        Self {
            without: Vec::new(),
            commands_max: u64::MAX,
            faults_max: u64::MAX,
        }
    }
}

/// Nodes that stand by where members change.
const SPARES: usize = 2;

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Site of each member; the last one is the witness when there is one.
    pub(crate) sites: Vec<u16>,
    pub(crate) witness: bool,
    /// How many members it is founded with; the others stand by to take a place.
    pub(crate) founders: usize,
    pub(crate) shards: u16,
    pub(crate) snapshot_after_bytes: u64,
    pub(crate) election_ns: u64,
    pub(crate) faults: Vec<Fault>,
    /// Mean time between two faults.
    pub(crate) fault_every_ns: u64,
    /// How long the faulty phase takes, from the founding on.
    pub(crate) safety_ns: u64,
    pub(crate) delay_local_ns: u64,
    pub(crate) delay_sites_ns: u64,
    pub(crate) jitter_ns: u64,
    pub(crate) queue_max_bytes: usize,
    pub(crate) sync_ns: u64,
    /// A link that is cut for this long is noticed.
    pub(crate) break_after_ns: u64,
    pub(crate) banks: usize,
    pub(crate) think_ns: u64,
    pub(crate) in_flight_max: usize,
    pub(crate) cycle_every_ns: u64,
    pub(crate) day_ns: u64,
    pub(crate) balance: u64,
    pub(crate) narrow: Narrow,
}

impl Plan {
    pub(crate) fn changes_members(&self) -> bool {
        self.founders < self.sites.len()
    }

    pub(crate) fn new(seed: u64, narrow: &Narrow) -> Self {
        let mut rng = Rng::new(seed, Stream::Plan);
        let shape = rng.index(8);
        let (mut sites, witness): (Vec<u16>, bool) = match shape {
            0 => (vec![0, 0, 0], false),
            1 | 2 => (vec![0, 1, 2], true),
            3 => (vec![0, 1, 2], false),
            4 | 5 => (vec![0, 0, 1, 1, 2], true),
            6 => (vec![0, 0, 1, 1, 2], false),
            _ => (vec![0, 0, 0, 1, 1, 1, 2], true),
        };
        let mut faults: Vec<Fault> = Fault::ALL
            .into_iter()
            .filter(|_| rng.per_mille(450))
            .collect();
        // One in twenty has none at all: what is wrong there needs no fault.
        if rng.per_mille(50) {
            faults.clear();
        }
        // One in four has the next pair of kinds whatever else it has, so that a night combines all of them.
        if seed.is_multiple_of(4) {
            let pairs = Fault::pairs();
            let at = usize::try_from(seed / 4 % pairs.len() as u64).unwrap_or(0);
            for fault in <[Fault; 2]>::from(pairs[at]) {
                if !faults.contains(&fault) {
                    faults.push(fault);
                }
            }
            faults.sort_unstable();
        }
        faults.retain(|fault| !narrow.without.contains(fault));
        let founders = sites.len();
        if faults.contains(&Fault::Members) {
            sites.extend([0; SPARES]);
        }
        let delay_sites_ns = rng.pick(&[50_000, 350_000, 3 * MS, 16 * MS, 48 * MS]);
        Self {
            sites,
            witness,
            founders,
            shards: rng.pick(&[1, 1, 2, 2, 3, 4, 6]),
            snapshot_after_bytes: rng.pick(&[1, 300, 300, 2_000, 10_000, 1 << 20]),
            election_ns: rng.pick(&[S, S, 2 * S]),
            fault_every_ns: rng.pick(&[150 * MS, 400 * MS, 1200 * MS]),
            safety_ns: rng.between(6, 16) * S,
            delay_local_ns: 50_000,
            delay_sites_ns,
            jitter_ns: rng.pick(&[0, 20_000, MS, 5 * MS]),
            // What all shards together send in a burst must fit, as it must in service.
            queue_max_bytes: rng.pick(&[64 << 10, 256 << 10, 16 << 20]),
            sync_ns: rng.pick(&[100_000, MS, 5 * MS]),
            break_after_ns: rng.pick(&[300 * MS, S, 3 * S]),
            banks: usize::try_from(rng.between(3, 8)).unwrap_or(3),
            think_ns: rng.pick(&[10 * MS, 40 * MS, 150 * MS]),
            in_flight_max: rng.pick(&[1, 2, 6]),
            cycle_every_ns: rng.pick(&[400 * MS, S, 3 * S]),
            day_ns: rng.pick(&[3 * S, 8 * S, 40 * S]),
            balance: rng.pick(&[0, 300, 5_000]),
            faults,
            narrow: narrow.clone(),
        }
    }
}
