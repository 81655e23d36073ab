//! CPU time of processes and their threads, as Linux tells it.

use std::collections::BTreeMap;

/// Seconds that each thread of a process ran so far, by the thread's number, with its name. Empty where the system does
/// not tell.
pub(super) fn threads(pid: u32) -> BTreeMap<u64, (String, f64)> {
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
pub(super) fn between(
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
