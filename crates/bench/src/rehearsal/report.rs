//! What a rehearsal found, as its JSON says it: what tables, pictures and pages are made from.
//!
//! Seconds, milliseconds and ratios are floating point, for people; payments and amounts are whole numbers. A figure that a
//! row cannot have is absent (`None`), never 0.

use serde::{Deserialize, Serialize};

/// The layout of [`Report`]; a reader refuses others.
pub const VERSION: u32 = 1;

/// A rehearsal: one load, several rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`VERSION`].
    pub version: u32,
    /// The version of `clearspan` that ran.
    pub program: String,
    /// When the first row began: UTC, `2026-11-30T10:00:00Z`.
    pub begun_at: String,
    /// On what it ran.
    pub machine: Machine,
    /// What every row got.
    pub load: Load,
    /// In the order in which they ran.
    pub rows: Vec<Row>,
}

/// The machine, which all nodes and the load share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Cores that may be used.
    pub cores: usize,
    /// The kernel, as `uname -r` tells it.
    pub kernel: String,
    /// The processor's name, if the system tells it.
    pub cpu: Option<String>,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// The system's load average over a minute before the first row: above a little more than 0, others used the machine.
    pub load_before: Option<f64>,
}

/// The load of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Non-urgent payments, at least: the same number of packages for each participant.
    pub payments: u64,
    /// Payments of a package.
    pub package_len: u32,
    /// From one package to the next, all participants together, in microseconds. 0: as fast as answers come.
    pub package_interval_us: u64,
    /// Urgent payments, at least: they go on until receipts are read.
    pub urgent: u64,
    /// From one urgent payment to the next, in microseconds.
    pub urgent_interval_us: u64,
    /// Participants.
    pub participants: u16,
    /// Shards.
    pub shards: u16,
    /// Whether payments carry names, accounts and references, or only what decides. XML always carries what it must.
    pub text: bool,
    /// Whether the scale was made small, so that everything is seen to work and no figure is worth quoting.
    pub quick: bool,
}

/// Where the bytes of a message start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// A compact package on the socket: read by its sender's own systems before.
    Compact,
    /// pacs.008 as XML on the socket: the node reads and packs it.
    Xml,
}

/// What a row is there to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One node without peers: what all others are held against.
    Single,
    /// Two data sites and a witness, at a distance.
    Distance,
    /// Three regions.
    Regions,
    /// So many nodes, each held to the same share of a CPU.
    Scaling,
    /// A data site is lost on the way.
    Fault,
}

/// One cluster under the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name, `km-70`: unique together with `start`.
    pub name: String,
    /// For people: `2 data sites and a witness, 70 km`.
    pub title: String,
    /// What it shows.
    pub kind: Kind,
    /// Where bytes start.
    pub start: Start,
    /// Sites and nodes.
    pub layout: Layout,
    /// The three phases.
    pub phases: Phases,
    /// Urgent payments.
    pub urgent: Urgent,
    /// What it cost.
    pub cost: Cost,
    /// The loss of a site, in a row that has one.
    pub fault: Option<Fault>,
    /// What the full record says.
    pub checks: Checks,
    /// Against the single node, if it ran with the same `start`.
    pub against_first: Option<Ratios>,
    /// Against two data sites and a witness at 0 km, if it ran with the same `start`.
    pub against_near: Option<Ratios>,
}

/// A row's cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// As `clearspan lab up --sites` takes it: `A:1,B:1,W:witness`.
    pub sites: String,
    /// Nodes with ledgers.
    pub data_nodes: usize,
    /// Nodes that vote only.
    pub witnesses: usize,
    /// Distance of its sites in km, where all are equally far apart.
    pub km: Option<u64>,
    /// Round trips between sites in microseconds: first and second, first and third, second and third. Empty with one site.
    pub rtt_us: Vec<u64>,
    /// How each node was held to a share of a CPU, in a scaling row.
    pub share: Option<Share>,
}

/// Equal shares of a CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Of one core, for each node.
    pub cores: f64,
    /// What holds them.
    pub held_by: HeldBy,
}

/// What holds a node to its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeldBy {
    /// `cpu.max` of a control group, version 2.
    CgroupV2,
    /// `cpu.cfs_quota_us` of a control group, version 1.
    CgroupV1,
    /// One core for each node, shared when there are more nodes than cores: then shares are not the same.
    Affinity,
}

/// The phases, one after another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// From when the first package was due until the last was acknowledged, durable at a quorum.
    pub reception: Phase,
    /// From the operator's cut-off until the cycle is seen to be settled in every shard.
    pub netting: Phase,
    /// Until every participant has read what the cycle gave it: the status of each payment it sent, each payment it got,
    /// its net movement.
    pub receipts: Phase,
    /// Seconds of the cycle in log time, from the cut-off to the last shard's posting.
    pub cycle_s: f64,
    /// Bytes of output that participants read in the receipts phase.
    pub receipts_bytes: u64,
}

/// One phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// When it began: seconds after the row's first urgent payment was due.
    pub from_s: f64,
    /// How long it took.
    pub seconds: f64,
    /// Payments that went through it.
    pub payments: u64,
    /// Those per second.
    pub payments_per_s: f64,
}

/// Urgent payments, open loop: each is due at its time whatever became of those before, and its latency counts from then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Urgent {
    /// Due before anything else was sent.
    pub alone: Option<Latency>,
    /// Due before the cut-off: alone, and while packages were received.
    pub before: Latency,
    /// Due from the cut-off until the last receipt was read.
    pub during: Latency,
    /// All.
    pub overall: Latency,
    /// p99 during against p99 alone: promise P5 has at most 1.5.
    pub during_against_alone: Option<f64>,
    /// Over time, by when payments were due.
    pub series: Vec<Moment>,
}

/// How long urgent payments took, in milliseconds from when each was due until its answer was there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Of how many.
    pub count: u64,
    /// Their average.
    pub average_ms: f64,
    /// Half took no longer.
    pub p50_ms: f64,
    /// Nine in ten took no longer.
    pub p90_ms: f64,
    /// All but one in a hundred.
    pub p99_ms: f64,
    /// All but one in a thousand.
    pub p999_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

/// Urgent payments that were due within one piece of a row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// The piece's beginning: seconds after the row's first urgent payment was due.
    pub at_s: f64,
    /// Payments due in it.
    pub count: u64,
    /// Half took no longer.
    pub p50_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

/// What a row cost, over all phases; the load's and the relay's own work is in none of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// By node.
    pub nodes: Vec<NodeCost>,
    /// CPU seconds of all nodes per million payments; absent when a node was lost with its count.
    pub cpu_s_per_million: Option<f64>,
    /// Bytes between sites per payment, with encryption.
    pub wire_bytes_per_payment: f64,
    /// Bytes that the nodes' files grew by per payment, all nodes together.
    pub disk_bytes_per_payment: f64,
}

/// What one node used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeCost {
    /// Its name.
    pub node: String,
    /// Its site.
    pub site: String,
    /// Whether it votes only.
    pub witness: bool,
    /// CPU seconds; absent when it was killed on the way.
    pub cpu_s: Option<f64>,
    /// Those per million payments.
    pub cpu_s_per_million: Option<f64>,
    /// The most memory that it held, in bytes.
    pub rss_max_bytes: Option<u64>,
    /// Bytes that its files grew by.
    pub disk_bytes: u64,
}

/// A phase of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseName {
    /// Packages are taken in.
    Reception,
    /// The cycle runs.
    Netting,
    /// Output is read.
    Receipts,
}

/// The loss of a site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// The site whose processes were all killed.
    pub site: String,
    /// In which phase.
    pub phase: PhaseName,
    /// When: seconds after the row's first urgent payment was due.
    pub at_s: f64,
    /// For each shard: seconds from then until an urgent payment that was due later was acknowledged. Promise P8.
    pub without_answer_s: Vec<ShardGap>,
    /// The longest of them.
    pub longest_s: f64,
    /// Requests that were sent again, since they had no answer or were told that nothing was done.
    pub retried: Retried,
    /// Seconds from the restart of the site's nodes until they had applied everything.
    pub caught_up_s: f64,
}

/// How long one shard acknowledged nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardGap {
    /// The shard.
    pub shard: u16,
    /// Whether the lost site led it.
    pub led_there: bool,
    /// Seconds.
    pub seconds: f64,
}

/// What was sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retried {
    /// Packages that were handed in more than once.
    pub packages: u64,
    /// Urgent payments that were handed in more than once.
    pub urgent: u64,
    /// Of both, those that turned out to have been taken the first time.
    pub repeats: u64,
    /// Requests for receipts.
    pub reads: u64,
}

/// The full record against what the nodes hold in the end. Every count of faults must be 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    /// Nodes of which all participants' whole output was read.
    pub nodes_read: Vec<String>,
    /// Payments that were acknowledged, urgent ones among them.
    pub acknowledged: u64,
    /// Payments that receivers got, at the node with the fewest.
    pub delivered: u64,
    /// Acknowledged and not delivered to their receiver.
    pub lost: u64,
    /// Delivered more than once.
    pub doubled: u64,
    /// Delivered, and never handed in or to another receiver.
    pub strange: u64,
    /// Payments of one sender and class that a receiver got in another order than they were handed in; holes in numbers.
    pub out_of_order: u64,
    /// Participants whose balance, in the end, is not what their payments make it.
    pub wrong_balances: u64,
    /// Sum of all balances in minor units at each node read; all are what was put in.
    pub sums_minor: Vec<i64>,
    /// What was put in: the sum of all opening balances in minor units.
    pub put_in_minor: i64,
    /// The first faults, in words.
    pub examples: Vec<String>,
}

impl Checks {
    /// Whether all of it holds.
    #[must_use]
    pub fn hold(&self) -> bool {
        let faults =
            self.lost + self.doubled + self.strange + self.out_of_order + self.wrong_balances;
        faults == 0 && self.sums_minor.iter().all(|&sum| sum == self.put_in_minor)
    }
}

/// A row's figures as multiples of another's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratios {
    /// Payments received per second; promise P4 has at least 0.95 at 70 km, 0.90 over regions.
    pub reception: f64,
    /// Seconds of netting.
    pub netting_seconds: f64,
    /// Receipts' payments per second.
    pub receipts: f64,
    /// Urgent average, overall.
    pub urgent_average: f64,
    /// Urgent p99, overall.
    pub urgent_p99: f64,
    /// CPU seconds per million payments.
    pub cpu: Option<f64>,
}

impl Ratios {
    /// A row's figures against another's; `None` where the other has none to divide by.
    #[must_use]
    pub fn of(row: &Row, other: &Row) -> Option<Self> {
        let ratio = |own: f64, of: f64| (of > 0.0).then(|| own / of);
        let cpu = row.cost.cpu_s_per_million.zip(other.cost.cpu_s_per_million);
        Some(Self {
            reception: ratio(
                row.phases.reception.payments_per_s,
                other.phases.reception.payments_per_s,
            )?,
            netting_seconds: ratio(row.phases.netting.seconds, other.phases.netting.seconds)?,
            receipts: ratio(
                row.phases.receipts.payments_per_s,
                other.phases.receipts.payments_per_s,
            )?,
            urgent_average: ratio(
                row.urgent.overall.average_ms,
                other.urgent.overall.average_ms,
            )?,
            urgent_p99: ratio(row.urgent.overall.p99_ms, other.urgent.overall.p99_ms)?,
            cpu: cpu.and_then(|(own, of)| ratio(own, of)),
        })
    }
}

/// Name of the row that others are held against.
pub const FIRST: &str = "single";
/// Name of the row without distance.
pub const NEAR: &str = "km-0";

impl Report {
    /// The row of this name and start.
    #[must_use]
    pub fn row(&self, name: &str, start: Start) -> Option<&Row> {
        let mut rows = self.rows.iter();
        rows.find(|row| row.name == name && row.start == start)
    }

    /// Fills every row's ratios in, from the rows that are there.
    pub fn relate(&mut self) {
        let against = |of: &str| -> Vec<Option<Ratios>> {
            let rows = self.rows.iter();
            rows.map(|row| Ratios::of(row, self.row(of, row.start)?))
                .collect()
        };
        let (first, near) = (against(FIRST), against(NEAR));
        for (row, (first, near)) in self.rows.iter_mut().zip(first.into_iter().zip(near)) {
            row.against_first = first;
            row.against_near = near;
        }
    }
}

/// A published result of another system, to stand beside ours: another load on another machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Published {
    /// What kind of system.
    pub system: &'static str,
    /// What was measured.
    pub what: &'static str,
    /// The result, as a multiple of the same system without distance, or with one node.
    pub ratio: f64,
}

/// What others published, as multiples. Absolute figures of other loads on other machines would say nothing here.
pub const PUBLISHED: [Published; 6] = [
    Published {
        system: "mainframe cluster with a coupling facility",
        what: "urgent average at 70 km against 0 km",
        ratio: 1.076,
    },
    Published {
        system: "mainframe cluster with a coupling facility",
        what: "urgent at 70 km against 0 km, worst",
        ratio: 1.40,
    },
    Published {
        system: "mainframe cluster with a coupling facility",
        what: "reception with two nodes against one",
        ratio: 1.4,
    },
    Published {
        system: "mainframe cluster with a coupling facility",
        what: "receipts with two nodes against one",
        ratio: 2.0,
    },
    Published {
        system: "mainframe cluster with mirrored disks",
        what: "cost of mirroring",
        ratio: 1.04,
    },
    Published {
        system: "multi-master SQL cluster over Tokyo, Seoul and Singapore",
        what: "throughput over regions against one site",
        ratio: 0.17,
    },
];
