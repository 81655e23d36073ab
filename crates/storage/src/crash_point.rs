//! Labelled places where a test can make the process die, as `kill -9` would. Always compiled, so that what is tested is
//! what is shipped; when off, a place costs one atomic load.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The environment variable that names a place and a count: `CLEARSPAN_CRASH_AT=after-log-sync:3` dies at the third time.
pub const CRASH_AT: &str = "CLEARSPAN_CRASH_AT";

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

struct Plan {
    label: String,
    hit: u64,
    hits: AtomicU64,
}

impl Plan {
    fn parse(text: &str) -> Option<Self> {
        let (label, hit) = text.rsplit_once(':')?;
        let hit = hit.parse().ok().filter(|&hit| hit > 0)?;
        Some(Self {
            label: label.to_owned(),
            hit,
            hits: AtomicU64::new(0),
        })
    }

    fn is_due(&self, label: &str) -> bool {
        self.label == label && self.hits.fetch_add(1, Ordering::Relaxed) + 1 == self.hit
    }
}

static PLAN: OnceLock<Option<Plan>> = OnceLock::new();

/// Aborts the process when [`CRASH_AT`] names this label and it is reached for the named time.
///
/// # Panics
///
/// At the first place reached, when the variable is set and cannot be read: a test that means to crash must not pass
/// because of a typing error.
pub fn crash_point(label: &str) {
    let plan = PLAN.get_or_init(|| {
        let text = std::env::var(CRASH_AT).ok()?;
        Some(Plan::parse(&text).unwrap_or_else(|| panic!("{CRASH_AT}={text} is not <label>:<n>")))
    });
    if let Some(plan) = plan
        && plan.is_due(label)
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
        let plan = Plan::parse("after-log-sync:2").unwrap();
        assert!(!plan.is_due("after-log-sync"));
        assert!(!plan.is_due("before-log-append"));
        assert!(plan.is_due("after-log-sync"));
        assert!(!plan.is_due("after-log-sync"));
        for bad in ["after-log-sync", "after-log-sync:0", "after-log-sync:x"] {
            assert!(Plan::parse(bad).is_none(), "{bad}");
        }
    }
}
