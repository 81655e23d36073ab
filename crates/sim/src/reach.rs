//! "Sometimes" points: situations that a night of seeds must have been in, or it has proved less than it says.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// Every point, in the order in which they are reported.
pub const POINTS: &[&str] = &[
    "a node lost power",
    "a node was killed",
    "all nodes lost power",
    "power went in the middle of a node's work",
    "a log write was under way when power went and survived",
    "a log write was under way when power went and was lost",
    "a snapshot was under way when a node died",
    "a node restarted with a snapshot",
    "a node restarted without a snapshot",
    "a damaged log kept a node from starting",
    "a damaged snapshot kept a node from starting",
    "a snapshot was damaged",
    "a log was damaged under a living node",
    "a node stopped at damage that it read",
    "a sync was to fail",
    "a node stopped after a failed sync",
    "a queue to a peer was said to be full",
    "a node without a majority was asked",
    "a receiver was paid twice by one sender",
    "output was read before the end",
    "a cycle netted payments of several shards",
    "power went while a node started",
    "a node could not start on a full disk",
    "an act on nodes was refused",
    "a node was drained or a shard was moved",
    "a node was replaced",
    "a lost node was replaced",
    "a node was paused",
    "a disk was slow",
    "a disk was full",
    "a proposal was refused because the disk is full",
    "a clock jumped",
    "clocks differed by over a second",
    "a link was cut both ways",
    "a link was cut one way",
    "a node was isolated",
    "a site was cut off",
    "a bridge node saw both sides",
    "a connection broke and came back",
    "a frame was lost with its connection",
    "a raft message was dropped",
    "a raft message came twice",
    "a raft message was overtaken",
    "a queue to a peer was full",
    "a leader was elected",
    "a second leader was elected in one shard",
    "a witness led",
    "a witness handed over",
    "a leader lost its lead and kept living",
    "two nodes thought that they lead one shard",
    "a candidate stood and did not win",
    "a follower's tail was replaced",
    "a snapshot was sent",
    "a snapshot was installed",
    "packages were sent to a peer",
    "a witness was told what all hold",
    "a log was cut",
    "a witness cut its log",
    "a command was forwarded",
    "a command was refused for want of a leader",
    "a command's outcome stayed unknown and it was there",
    "a command's outcome stayed unknown and it was not there",
    "a command was sent twice by its client",
    "a repeat was answered as one",
    "a repeat came through another node",
    "a repeat came after a leader change",
    "a repeat came after its node restarted from a snapshot",
    "the same identifier came with other content",
    "a read was answered",
    "a read was refused",
    "a read was answered by a follower",
    "a payment settled at once",
    "a payment waited for funds",
    "a payment was refused for want of funds",
    "a credit crossed shards",
    "a cycle settled",
    "a cycle was abandoned",
    "a cycle dropped payments",
    "a leader changed while a cycle ran",
    "a coordinator changed while a cycle ran",
    "a payment was cancelled",
    "a cancellation came too late",
    "a message waited for its number",
    "a held message was released",
    "a business day ended",
    "a payment came after the day's end",
    "receipts were acknowledged",
    "an acknowledged command survived the loss of all power",
];

thread_local! {
    static REACHED: RefCell<BTreeMap<&'static str, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// Notes that a run is here.
///
/// # Panics
/// When the point is not in the list.
pub(crate) fn reach(point: &'static str) {
    debug_assert!(POINTS.contains(&point), "unlisted point: {point}");
    REACHED.with_borrow_mut(|reached| *reached.entry(point).or_default() += 1);
}

/// What was reached on this thread since it was last asked.
pub(crate) fn take() -> BTreeMap<&'static str, u64> {
    REACHED.with_borrow_mut(std::mem::take)
}
