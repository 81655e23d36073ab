//! Labelled places in this crate where a test can make the process die; see [`clearspan_storage::crash_point`].

/// Every place in this crate. A test proves that some run reaches each.
pub const CRASH_POINTS: [&str; 24] = [
    // Opening a data directory.
    "after-data-dir",
    "after-log-open",
    "after-packages-open",
    "after-replay",
    // An entry's way.
    "before-apply",
    "after-apply",
    "after-reply",
    "after-deliver",
    "after-compact-request",
    "after-snapshot-packages",
    // A business day.
    "after-founding",
    "after-open-day",
    "before-acknowledgement",
    "after-acknowledgement",
    "before-cycle",
    "after-cycle-open",
    "after-cut-off",
    "before-close-day",
    "after-close-day",
    // Output.
    "before-outbox-write",
    "before-outbox-rename",
    "before-certificate-write",
    "after-certificate-write",
    "after-statements-write",
];

/// Every place in the whole program.
pub fn all_crash_points() -> impl Iterator<Item = &'static str> {
    clearspan_storage::CRASH_POINTS
        .into_iter()
        .chain(CRASH_POINTS)
}
