//! The node's clock: the only place that reads it. Everything behind it takes time as an argument or from the log.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use clearspan_ledger::Timestamp;

/// Where a node takes the time from that its proposals carry.
#[derive(Debug, Default)]
pub enum Clock {
    /// The system's clock.
    #[default]
    System,
    /// Starts at a given time and advances by a microsecond each time it is read: runs that can be repeated exactly.
    Stepping(AtomicU64),
}

/// What a stepping clock advances by at each reading.
const STEP_NS: u64 = 1_000;

impl Clock {
    /// A clock that starts at a time and steps.
    #[must_use]
    pub const fn stepping_from(start: Timestamp) -> Self {
        Self::Stepping(AtomicU64::new(start.ns()))
    }

    /// Now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the node's one clock")]
    pub fn now(&self) -> Timestamp {
        match self {
            // A clock before 1970 changes nothing but the node's own entries; the ledger keeps log time monotone.
            Self::System => {
                let since = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default();
                Timestamp::from_ns(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
            }
            Self::Stepping(next_ns) => {
                Timestamp::from_ns(next_ns.fetch_add(STEP_NS, Ordering::Relaxed))
            }
        }
    }
}
