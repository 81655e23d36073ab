//! What a payment costs that is led at a site: one round trip to the nearest quorum, one fsync.

use serde::Serialize;

use crate::Timing;
use crate::failure::{Damage, Standing};
use crate::layout::Layout;

/// A data site and the payments whose shards it leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeaderLatency {
    /// The site.
    pub site: String,
    /// How many shards it leads while nothing has failed.
    pub shards: u16,
    /// To the nearest quorum and back: the longest of its shards.
    pub quorum_rtt_ns: u64,
    /// Until an urgent payment is answered that entered at this site.
    pub answer_ns: u64,
    /// The same for one that entered at another site, by that site's name: the way here and back comes on top.
    pub answer_from_ns: Vec<(String, u64)>,
}

/// Every data site that leads a shard, in order.
#[must_use]
pub fn leader_latencies(layout: &Layout, timing: Timing) -> Vec<LeaderLatency> {
    let standing = Standing::new(layout);
    let led = standing.led(&Damage::default());
    let sites = 0..layout.sites().len();
    let of = |site: usize| {
        let rtts: Vec<u64> = led
            .iter()
            .flatten()
            .filter(|leader| leader.site == site)
            .map(|leader| leader.quorum_rtt_ns)
            .collect();
        let quorum_rtt_ns = rtts.iter().copied().max()?;
        let answer_ns = timing.local_ns + quorum_rtt_ns;
        let others = (0..layout.sites().len()).filter(|&other| {
            other != site
                && layout
                    .sites()
                    .get(other)
                    .is_some_and(|site| site.data_nodes > 0)
        });
        Some(LeaderLatency {
            site: layout.site_name(site),
            shards: u16::try_from(rtts.len()).unwrap_or(u16::MAX),
            quorum_rtt_ns,
            answer_ns,
            answer_from_ns: others
                .map(|other| {
                    (
                        layout.site_name(other),
                        answer_ns + layout.rtt_ns(site, other),
                    )
                })
                .collect(),
        })
    };
    sites.filter_map(of).collect()
}
