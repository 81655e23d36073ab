//! The node's clock: the only place that reads it. Everything behind it takes time as an argument or from the log.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clearspan_ledger::Timestamp;

/// Where a node takes the time from that its proposals carry.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The system's clock.
    #[default]
    System,
    /// Runs as fast as the system's from a given time on: a business day run at another hour or date than its own.
    Business {
        /// Log time when it was made.
        start: Timestamp,
        /// The system's instant then.
        made: Instant,
    },
    /// Shows nanoseconds since 1970 that whoever holds the numbers moves.
    Stepped {
        /// What it shows; may jump.
        shown: Arc<AtomicU64>,
        /// What it measures waits by; only rises.
        steady: Arc<AtomicU64>,
    },
}

impl Clock {
    /// A clock that shows `start` now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the node's one clock")]
    pub fn business(start: Timestamp) -> Self {
        Self::Business {
            start,
            made: Instant::now(),
        }
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
            Self::Stepped { shown, .. } => Timestamp::from_ns(shown.load(Ordering::Relaxed)),
            Self::Business { start, made } => {
                start.plus_ns(u64::try_from(made.elapsed().as_nanos()).unwrap_or(u64::MAX))
            }
        }
    }

    /// Nanoseconds since some moment of this process's life, which nobody sets: what waits, beats and deadlines are
    /// measured by. A clock that is set back must not stop elections for as long.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the node's one clock")]
    pub fn steady(&self) -> Timestamp {
        match self {
            Self::Stepped { steady, .. } => Timestamp::from_ns(steady.load(Ordering::Relaxed)),
            Self::System | Self::Business { .. } => {
                let began = BEGAN.get_or_init(Instant::now);
                Timestamp::from_ns(
                    u64::try_from(began.elapsed().as_nanos())
                        .unwrap_or(u64::MAX)
                        .saturating_add(1),
                )
            }
        }
    }
}

static BEGAN: OnceLock<Instant> = OnceLock::new();
