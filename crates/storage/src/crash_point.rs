//! Labelled places where a test can make the process die, as `kill -9` would. Always compiled, so that what is tested is
//! what is shipped; when off, a place costs one atomic load.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The environment variable that names a place and a count: `CLEARSPAN_CRASH_AT=after-log-sync:3` dies at the third time.
pub const CRASH_AT: &str = "CLEARSPAN_CRASH_AT";

/// The environment variable that names a file in which such a plan may appear while the process runs: one that has come up,
/// has replayed what it has and takes part. It is looked at at every place.
pub const CRASH_FILE: &str = "CLEARSPAN_CRASH_FILE";

/// The places in this crate. Other crates have their own.
pub const CRASH_POINTS: [&str; 10] = [
    "before-log-append",
    "after-log-append-before-sync",
    "after-log-sync",
    "after-marker-write",
    "after-compact",
    "before-package-put",
    "after-package-put",
    "snapshot-before-write",
    "snapshot-before-rename",
    "snapshot-after-rename",
];

/// A place and at which time of passing it to die.
struct Plan {
    label: String,
    hit: u64,
}

impl Plan {
    fn parse(text: &str) -> Option<Self> {
        let (label, hit) = text.trim_end().rsplit_once(':')?;
        let hit = hit.parse().ok().filter(|&hit| hit > 0)?;
        Some(Self {
            label: label.to_owned(),
            hit,
        })
    }
}

/// Where a plan comes from.
enum Source {
    Fixed(Plan),
    File(PathBuf),
}

struct Watch {
    source: Source,
    hits: AtomicU64,
}

impl Watch {
    fn new(source: Source) -> Self {
        Self {
            source,
            hits: AtomicU64::new(0),
        }
    }

    fn from_environment() -> Option<Self> {
        if let Ok(text) = std::env::var(CRASH_AT) {
            let plan = Plan::parse(&text)
                .unwrap_or_else(|| panic!("{CRASH_AT}={text} is not <label>:<n>"));
            return Some(Self::new(Source::Fixed(plan)));
        }
        let path = PathBuf::from(std::env::var_os(CRASH_FILE)?);
        Some(Self::new(Source::File(path)))
    }

    fn is_due(&self, label: &str) -> bool {
        let due = |plan: &Plan| {
            plan.label == label && self.hits.fetch_add(1, Ordering::Relaxed) + 1 == plan.hit
        };
        match &self.source {
            Source::Fixed(plan) => due(plan),
            // Half written, it is read again at the next place.
            Source::File(path) => std::fs::read_to_string(path)
                .ok()
                .and_then(|text| Plan::parse(&text))
                .is_some_and(|plan| due(&plan)),
        }
    }
}

static WATCH: OnceLock<Option<Watch>> = OnceLock::new();

/// Aborts the process when a plan ([`CRASH_AT`], [`CRASH_FILE`]) names this label and it is reached for the named time.
///
/// # Panics
///
/// At the first place reached, when [`CRASH_AT`] is set and cannot be read: a test that means to crash must not pass
/// because of a typing error.
pub fn crash_point(label: &str) {
    if let Some(watch) = WATCH.get_or_init(Watch::from_environment)
        && watch.is_due(label)
    {
        eprintln!("crash point {label}");
        std::process::abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dies_at_the_named_time_only() {
        let plan = |text| Plan::parse(text).unwrap();
        let watch = Watch::new(Source::Fixed(plan("after-log-sync:2")));
        assert!(!watch.is_due("after-log-sync"));
        assert!(!watch.is_due("before-log-append"));
        assert!(watch.is_due("after-log-sync"));
        assert!(!watch.is_due("after-log-sync"));
        for bad in ["after-log-sync", "after-log-sync:0", "after-log-sync:x"] {
            assert!(Plan::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_plan_may_appear_later() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plan");
        let watch = Watch::new(Source::File(path.clone()));
        assert!(!watch.is_due("after-log-sync"));
        std::fs::write(&path, "after-log-sync:2\n").unwrap();
        assert!(!watch.is_due("before-log-append"));
        assert!(!watch.is_due("after-log-sync"));
        assert!(watch.is_due("after-log-sync"));
    }
}
