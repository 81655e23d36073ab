//! Nodes held to equal shares of a CPU: by control groups where this process may make them, else by one core for each.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::thread::{CpuSet, Pid, sched_setaffinity};

use super::report::{HeldBy, Share};
use crate::cluster::{ClusterError, Stage, io as io_fault};

/// Where control groups are, as every distribution mounts them.
const ROOT: &str = "/sys/fs/cgroup";
/// The CPU controller's place in version 1.
const CPU_V1: &str = "/sys/fs/cgroup/cpu";
/// In each of these a share is given out anew: short, so that a held node stands still for milliseconds only.
const PERIOD_US: u64 = 10_000;

/// Nodes that are held. Groups go when it is dropped, once their processes have ended.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) share: Share,
    groups: Vec<PathBuf>,
}

impl Drop for Held {
    fn drop(&mut self) {
        for group in &self.groups {
            // A process that was killed leaves its group a moment later; one that stays empty does no harm.
            for _ in 0..100 {
                if fs::remove_dir(group).is_ok() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
    }
}

/// Holds every node of a cluster to `cores` of one core.
pub(super) fn hold(stage: &mut Stage, cores: f64) -> Result<Held, ClusterError> {
    let nodes = stage.lab.report()?.nodes;
    let pids: Vec<u32> = nodes.iter().filter_map(|node| node.pid).collect();
    let mut held = Held {
        share: Share {
            cores,
            held_by: HeldBy::CgroupV2,
        },
        groups: Vec::new(),
    };
    for (held_by, root) in [(HeldBy::CgroupV2, ROOT), (HeldBy::CgroupV1, CPU_V1)] {
        held.share.held_by = held_by;
        let root = Path::new(root);
        let all = pids
            .iter()
            .try_for_each(|&pid| group(&mut held, root, pid, cores));
        if all.is_ok() {
            return Ok(held);
        }
    }
    held.share.held_by = HeldBy::Affinity;
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    held.share.cores = (count as f64 / pids.len().max(1) as f64).min(1.0);
    for (place, &pid) in pids.iter().enumerate() {
        pin(pid, place % count).map_err(io_fault("hold a node to one core"))?;
    }
    Ok(held)
}

/// Makes a group with a share and puts a process into it.
fn group(held: &mut Held, root: &Path, pid: u32, cores: f64) -> io::Result<()> {
    let path = root.join(format!("clearspan-rehearsal-{pid}"));
    // Where the controller is not mounted there is nothing to make a group in.
    let (file, text) = match held.share.held_by {
        HeldBy::CgroupV2 => {
            fs::metadata(root.join("cgroup.controllers"))?;
            ("cpu.max", format!("{} {PERIOD_US}", quota_us(cores)))
        }
        _ => {
            fs::metadata(root.join("cpu.cfs_quota_us"))?;
            ("cpu.cfs_quota_us", quota_us(cores).to_string())
        }
    };
    fs::create_dir(&path)?;
    held.groups.push(path.clone());
    if held.share.held_by == HeldBy::CgroupV1 {
        fs::write(path.join("cpu.cfs_period_us"), PERIOD_US.to_string())?;
    }
    fs::write(path.join(file), text)?;
    fs::write(path.join("cgroup.procs"), pid.to_string())
}

/// At least a millisecond: the kernel takes no less.
fn quota_us(cores: f64) -> u64 {
    let quota = std::time::Duration::from_secs_f64(cores.clamp(0.1, 64.0) * PERIOD_US as f64 / 1e6);
    u64::try_from(quota.as_micros())
        .unwrap_or(PERIOD_US)
        .max(1000)
}

/// All threads of a process; those that begin later have what their makers have.
fn pin(pid: u32, core: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    // Twice: a thread that began during the first pass has its maker's old set.
    for _ in 0..2 {
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let name = task?.file_name();
            let id = name.to_str().and_then(|name| name.parse().ok());
            if let Some(id) = id.and_then(Pid::from_raw) {
                match sched_setaffinity(Some(id), &set) {
                    // It has ended.
                    Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                    Err(fault) => return Err(fault.into()),
                }
            }
        }
    }
    Ok(())
}
