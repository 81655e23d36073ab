//! What nodes use: CPU, memory, bytes of files, bytes between sites.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::report::{Cost, NodeCost};
use crate::cluster::process::{cpu_seconds, rss_max_bytes};
use crate::cluster::{ClusterError, Stage};

/// What `stat` counts in.
const BLOCK_BYTES: u64 = 512;

/// Nodes at one moment.
pub(super) struct Look {
    nodes: Vec<Seen>,
    carried_bytes: u64,
}

struct Seen {
    name: String,
    site: String,
    witness: bool,
    pid: Option<u32>,
    cpu_s: Option<f64>,
    rss_max_bytes: Option<u64>,
    disk_bytes: u64,
}

pub(super) fn look(stage: &mut Stage) -> Result<Look, ClusterError> {
    let report = stage.lab.report()?;
    let nodes = report.nodes.into_iter().map(|node| Seen {
        cpu_s: node.pid.and_then(cpu_seconds),
        rss_max_bytes: node.pid.and_then(rss_max_bytes),
        disk_bytes: node.config.parent().map_or(0, bytes_under),
        name: node.name,
        site: node.site,
        witness: node.witness,
        pid: node.pid,
    });
    Ok(Look {
        nodes: nodes.collect(),
        carried_bytes: stage.carried_bytes()?,
    })
}

/// Between two looks, for so many payments.
pub(super) fn between(before: &Look, after: &Look, payments: u64) -> Cost {
    let payments = payments.max(1) as f64;
    let mut nodes = Vec::new();
    for (before, after) in before.nodes.iter().zip(&after.nodes) {
        // A process that began in between has another number and another count.
        let same = before.pid.is_some() && before.pid == after.pid;
        let cpu_s = after.cpu_s.zip(before.cpu_s).filter(|_| same);
        let cpu_s = cpu_s.map(|(after, before)| after - before);
        nodes.push(NodeCost {
            node: after.name.clone(),
            site: after.site.clone(),
            witness: after.witness,
            cpu_s,
            cpu_s_per_million: cpu_s.map(|cpu_s| cpu_s / payments * 1e6),
            rss_max_bytes: after.rss_max_bytes,
            disk_bytes: after.disk_bytes.saturating_sub(before.disk_bytes),
        });
    }
    let all: Option<f64> = nodes.iter().map(|node| node.cpu_s).sum();
    let disk: u64 = nodes.iter().map(|node| node.disk_bytes).sum();
    let wire = after.carried_bytes.saturating_sub(before.carried_bytes);
    Cost {
        nodes,
        cpu_s_per_million: all.map(|cpu_s| cpu_s / payments * 1e6),
        wire_bytes_per_payment: wire as f64 / payments,
        disk_bytes_per_payment: disk as f64 / payments,
    }
}

/// Bytes that files take on their disk. Files that go away meanwhile are not counted.
fn bytes_under(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return 0;
    };
    let entries = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let metadata = entry.metadata().ok()?;
        Some(if metadata.is_dir() {
            bytes_under(&entry.path())
        } else {
            metadata.blocks() * BLOCK_BYTES
        })
    });
    entries.sum()
}
