//! Labelled places in this crate where a test can make the process die; see [`clearspan_storage::crash_point`].

/// Places in this crate besides [`CYCLE_STEPS`]. A test proves that some run reaches each.
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

/// The steps of a cycle in their order, each reached when a shard has applied it.
pub const CYCLE_STEPS: [&str; 8] = [
    "cycle-opened",
    "cycle-cut",
    "cycle-sums",
    "cycle-reserve",
    "cycle-reserved",
    "cycle-decide",
    "cycle-posted",
    "cycle-end",
];

/// Every place in the whole program.
pub fn all_crash_points() -> impl Iterator<Item = &'static str> {
    clearspan_storage::CRASH_POINTS
        .into_iter()
        .chain(CRASH_POINTS)
        .chain(CYCLE_STEPS)
}
