//! What the plan asks of a new cluster.

use std::fmt::Write as _;
use std::path::Path;

use clearspan_plan::{ELECTION_USUAL_NS, Plan};

const MS_NS: u64 = 1_000_000;

/// The command that founds the cluster; `settings` is where the plan's settings lie.
pub(super) fn init_command(plan: &Plan, settings: Option<&Path>) -> String {
    let mut command = format!(
        "clearspan init DIR --sites {} --shards {}",
        plan.layout.sites_text(),
        plan.layout.shards()
    );
    if let Some(path) = settings {
        let _ = write!(command, " --settings {}", path.display());
    }
    command
}

/// Settings of every node, for `clearspan init --settings`.
pub(super) fn settings(plan: &Plan) -> String {
    let mut text = format!(
        "# Planned by: clearspan plan --sites {}, longest round trip {} us.\n# Kernel settings of every node, in sysctl.conf:\n",
        plan.layout.sites_text(),
        plan.layout.rtt_max_ns() / 1000,
    );
    if plan.sockets.sysctl.is_empty() {
        text.push_str("#   none\n");
    }
    for line in &plan.sockets.sysctl {
        let _ = writeln!(text, "#   {line}");
    }
    text.push_str("\n[limits]\n");
    let why = if plan.timing.election_ns > ELECTION_USUAL_NS {
        "ten of the longest round trips"
    } else {
        "the usual"
    };
    let _ = writeln!(text, "# {why}");
    let _ = writeln!(
        text,
        "election_ms = {}",
        plan.timing.election_ns.div_ceil(MS_NS)
    );
    text
}
