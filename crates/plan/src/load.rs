//! What goes over the lines, what is under way at once, and what the kernel must allow for that.

use serde::{Deserialize, Serialize};

use crate::Timing;
use crate::failure::{Damage, Leader, Standing};
use crate::layout::Layout;

const SECOND_NS: u128 = 1_000_000_000;
const MIB: u64 = 1 << 20;
/// Bulk that one node takes up before it has an outcome, as the nodes have it.
const IN_FLIGHT_MAX_BYTES: u64 = 32 * MIB;
/// Buffers are twice what is under way: half of a socket's buffer is the kernel's own, and a lost packet holds up what is
/// behind it for another round trip.
const BUFFER_FACTOR: u64 = 2;

/// What a cluster shall carry, and what that takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Non-urgent payments per second, in packages, at the peak.
    pub bulk_per_s: u64,
    /// Urgent payments per second.
    pub urgent_per_s: u64,
    /// What one non-urgent payment is on its way to one replica, encryption included.
    pub bulk_bytes: u64,
    /// The same of an urgent payment, with the credit advice that it sends to another shard.
    pub urgent_bytes: u64,
    /// Where payments enter.
    pub entry: Entry,
}

/// Where payments enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Entry {
    /// Evenly at all data sites, whoever leads.
    Any,
    /// At the node that leads their shard.
    Leader,
}

impl Load {
    /// All payments together.
    #[must_use]
    pub fn bytes_per_s(self) -> u64 {
        let bulk = self.bulk_per_s.saturating_mul(self.bulk_bytes);
        bulk.saturating_add(self.urgent_per_s.saturating_mul(self.urgent_bytes))
    }
}

/// One way of a line between two sites.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkLoad {
    /// From this site.
    pub from: String,
    /// To this one.
    pub to: String,
    /// There and back.
    pub rtt_ns: u64,
    /// What replicas get from their leaders this way.
    pub replication_bytes_per_s: u64,
    /// Payments on the way from where they entered to their leaders.
    pub forwarding_bytes_per_s: u64,
    /// On the way at once, all connections together: bandwidth times the round trip.
    pub window_bytes: u64,
}

/// What the busiest node has under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UnderWay {
    /// Without an answer yet, at the planned load.
    pub bytes: u64,
    /// Above so many it takes no bulk up.
    pub max_bytes: u64,
    /// So many non-urgent payments per second it leads at most over this distance, whatever its cores can do.
    pub ceiling_per_s: u64,
    /// So many of the planned ones it leads.
    pub led_per_s: u64,
}

/// What a kernel allows a TCP connection, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Kernel {
    /// `net.ipv4.tcp_rmem`: least, first, most.
    pub tcp_rmem: [u64; 3],
    /// `net.ipv4.tcp_wmem`: least, first, most.
    pub tcp_wmem: [u64; 3],
}

impl Default for Kernel {
    /// Linux on a machine with a few GB of memory.
    fn default() -> Self {
        Self {
            tcp_rmem: [4096, 131_072, 6 * MIB],
            tcp_wmem: [4096, 16_384, 4 * MIB],
        }
    }
}

/// What one connection needs of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SocketNeed {
    /// On the way at once on the busiest connection between two nodes.
    pub window_bytes: u64,
    /// What its sockets' buffers must be able to grow to.
    pub buffer_bytes: u64,
    /// What the kernel allows; `None` when that is not known.
    pub kernel: Option<Kernel>,
    /// For `/etc/sysctl.conf` of every node, where the kernel allows less; with an unknown kernel, what is needed at least.
    pub sysctl: Vec<String>,
}

/// Every line between two sites, each way.
#[must_use]
pub fn link_loads(layout: &Layout, load: Load) -> Vec<LinkLoad> {
    let standing = Standing::new(layout);
    let led = standing.led(&Damage::default());
    let data_sites = layout
        .sites()
        .iter()
        .filter(|site| site.data_nodes > 0)
        .count() as u128;
    let shards = u128::from(layout.shards());
    let total = u128::from(load.bytes_per_s());
    let ways = layout.pairs().flat_map(|(a, b)| [(a, b), (b, a)]);
    let way = |(from, to): (usize, usize)| {
        let copies: usize = standing
            .groups
            .iter()
            .zip(&led)
            .filter(|(_, leader)| leader.as_ref().is_some_and(|leader| leader.site == from))
            .map(|(group, _)| {
                let nodes = group.order.iter().filter_map(|&at| standing.nodes.get(at));
                nodes.filter(|node| node.site == to).count()
            })
            .sum();
        let led_there = led
            .iter()
            .flatten()
            .filter(|leader| leader.site == to)
            .count();
        let takes_in = layout
            .sites()
            .get(from)
            .is_some_and(|site| site.data_nodes > 0);
        let forwarding = match load.entry {
            Entry::Any if takes_in => total * led_there as u128 / (shards * data_sites),
            _ => 0,
        };
        let replication = total * copies as u128 / shards;
        let rtt_ns = layout.rtt_ns(from, to);
        LinkLoad {
            from: layout.site_name(from),
            to: layout.site_name(to),
            rtt_ns,
            replication_bytes_per_s: narrow(replication),
            forwarding_bytes_per_s: narrow(forwarding),
            window_bytes: narrow((replication + forwarding) * u128::from(rtt_ns) / SECOND_NS),
        }
    };
    ways.map(way).collect()
}

/// What the busiest node has under way.
#[must_use]
pub fn under_way(layout: &Layout, timing: Timing, load: Load) -> UnderWay {
    let standing = Standing::new(layout);
    let led: Vec<Leader> = standing
        .led(&Damage::default())
        .into_iter()
        .flatten()
        .collect();
    let shards = u128::from(layout.shards());
    let of = |node: usize| {
        let own = led.iter().filter(|leader| leader.node == node);
        let rtt_ns = own
            .clone()
            .map(|leader| leader.quorum_rtt_ns)
            .max()
            .unwrap_or(0);
        let answer_ns = u128::from(timing.local_ns + rtt_ns).max(1);
        let led = own.count() as u128;
        let bytes = u128::from(load.bytes_per_s()) * led * answer_ns / (shards * SECOND_NS);
        let ceiling = u128::from(IN_FLIGHT_MAX_BYTES) * SECOND_NS / answer_ns;
        UnderWay {
            bytes: narrow(bytes),
            max_bytes: IN_FLIGHT_MAX_BYTES,
            ceiling_per_s: narrow(ceiling / u128::from(load.bulk_bytes.max(1))),
            led_per_s: narrow(u128::from(load.bulk_per_s) * led / shards),
        }
    };
    let nodes = 0..standing.nodes.len();
    let busiest = nodes.map(of).max_by_key(|found| found.bytes);
    busiest.unwrap_or(UnderWay {
        bytes: 0,
        max_bytes: IN_FLIGHT_MAX_BYTES,
        ceiling_per_s: u64::MAX,
        led_per_s: 0,
    })
}

/// What the busiest connection needs: one node sends all that it leads to another.
#[must_use]
pub fn socket_need(layout: &Layout, load: Load, kernel: Option<Kernel>) -> SocketNeed {
    let standing = Standing::new(layout);
    let led = standing.led(&Damage::default());
    let shards = u128::from(layout.shards());
    let total = u128::from(load.bytes_per_s());
    let window = |from: usize, to: usize| {
        let (Some(own), Some(other)) = (standing.nodes.get(from), standing.nodes.get(to)) else {
            return 0;
        };
        let sent = standing.groups.iter().zip(&led).filter(|(group, leader)| {
            leader.as_ref().is_some_and(|leader| leader.node == from) && group.order.contains(&to)
        });
        let rtt_ns = u128::from(layout.rtt_ns(own.site, other.site));
        narrow(total * sent.count() as u128 * rtt_ns / (shards * SECOND_NS))
    };
    let count = standing.nodes.len();
    let pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
    let window_bytes = pairs.map(|(from, to)| window(from, to)).max().unwrap_or(0);
    let buffer_bytes = window_bytes
        .saturating_mul(BUFFER_FACTOR)
        .checked_next_multiple_of(MIB)
        .unwrap_or(u64::MAX)
        .max(MIB);
    let line = |name: &str, allowed: [u64; 3]| {
        let [least, first, most] = allowed;
        (most < buffer_bytes).then(|| format!("net.ipv4.{name} = {least} {first} {buffer_bytes}"))
    };
    let known = kernel.unwrap_or_default();
    let sysctl = [
        line("tcp_rmem", known.tcp_rmem),
        line("tcp_wmem", known.tcp_wmem),
    ];
    SocketNeed {
        window_bytes,
        buffer_bytes,
        kernel,
        sysctl: sysctl.into_iter().flatten().collect(),
    }
}

fn narrow(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
