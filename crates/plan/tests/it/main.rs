//! What the planner promises: its verdicts are those of counting every quorum, and its figures those of arithmetic that can be
//! followed by hand. That the nodes do what it says is tested where the nodes are (`crates/node/tests/cluster/planned.rs`).

#![expect(clippy::unwrap_used, reason = "a test that finds nothing fails")]

mod figures;
mod logs;
mod oracle;
mod survive;

use clearspan_plan::{Layout, Site};

/// Sites as `A:3,B:3,W:witness`, all as far apart as said.
fn layout(text: &str, rtt_ns: u64, shards: u16, copies: Option<u16>) -> Layout {
    let site = |part: &str| {
        let (name, nodes) = part.split_once(':').unwrap();
        let data_nodes = nodes.parse().unwrap_or(0);
        Site {
            name: name.to_owned(),
            data_nodes,
            witnesses: u16::from(data_nodes == 0),
        }
    };
    let sites: Vec<Site> = text.split(',').map(site).collect();
    let lines = sites.len() * (sites.len() - 1) / 2;
    Layout::new(sites, vec![rtt_ns; lines], shards, copies).unwrap()
}
