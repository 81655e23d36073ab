//! What each thread of this process did, as Linux tells it: how long it ran, and how long it could have run and had no
//! CPU, which is what other work on the machine costs.

use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Time {
    pub(super) ran: Duration,
    pub(super) waited: Duration,
}

/// By thread: name and times so far. Empty where the system does not tell.
pub(super) fn times() -> BTreeMap<String, (String, Time)> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return BTreeMap::new();
    };
    tasks
        .filter_map(|task| {
            let path = task.ok()?.path();
            let name = std::fs::read_to_string(path.join("comm")).ok()?;
            let stat = std::fs::read_to_string(path.join("schedstat")).ok()?;
            let mut fields = stat
                .split_whitespace()
                .map(|field| field.parse().map(Duration::from_nanos));
            let time = Time {
                ran: fields.next()?.ok()?,
                waited: fields.next()?.ok()?,
            };
            let id = path.file_name()?.to_string_lossy().into_owned();
            Some((id, (name.trim().to_owned(), time)))
        })
        .collect()
}

/// What the threads that live now did since `before`, by name.
pub(super) fn since(before: &BTreeMap<String, (String, Time)>) -> BTreeMap<String, Time> {
    let mut sums: BTreeMap<String, Time> = BTreeMap::new();
    for (id, (name, time)) in times() {
        let earlier = before.get(&id).map_or(Time::default(), |(_, time)| *time);
        let sum = sums.entry(name).or_default();
        sum.ran += time.ran.saturating_sub(earlier.ran);
        sum.waited += time.waited.saturating_sub(earlier.waited);
    }
    sums
}
