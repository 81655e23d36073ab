//! CPU time of processes and their threads, as Linux tells it.

use std::collections::BTreeMap;

/// Seconds that each thread of a process ran so far, by the thread's number, with its name. Empty where the system does
/// not tell.
pub(crate) fn threads(pid: u32) -> BTreeMap<u64, (String, f64)> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return BTreeMap::new();
    };
    tasks
        .filter_map(|task| {
            let path = task.ok()?.path();
            let id = path.file_name()?.to_str()?.parse().ok()?;
            let name = std::fs::read_to_string(path.join("comm")).ok()?;
            let stat = std::fs::read_to_string(path.join("schedstat")).ok()?;
            let ns: u64 = stat.split_whitespace().next()?.parse().ok()?;
            Some((id, (name.trim().to_owned(), ns as f64 / 1e9)))
        })
        .collect()
}

/// Seconds between two looks, by the threads' names. What threads did that have ended since is missing.
pub(crate) fn between(
    before: &BTreeMap<u64, (String, f64)>,
    after: &BTreeMap<u64, (String, f64)>,
) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for (id, (name, seconds)) in after {
        let earlier = before.get(id).map_or(0.0, |(_, seconds)| *seconds);
        *sums.entry(name.clone()).or_insert(0.0) += seconds - earlier;
    }
    sums
}

/// Ticks of a second in `/proc`: what Linux tells programs on every machine it runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds that a process ran so far, with those of its threads that have ended; `None` where the system does not tell.
pub(crate) fn cpu_seconds(pid: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name may hold anything, but ends with the last parenthesis; fields 14 and 15 of all.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) as f64 / TICKS_PER_SECOND)
}

/// The most memory that a process held, in bytes.
pub(crate) fn rss_max_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}
