//! How the shards stand on this node, and what waits in the core.

use clearspan_replica::Sending;

use super::super::reconcile::Wait;
use super::compare::Comparisons;
use super::*;

/// How one shard stands on this node.
#[derive(Clone, Debug)]
pub struct ShardStatus {
    /// The shard.
    pub shard: ShardId,
    /// Its replica's own numbers.
    pub replica: clearspan_replica::Status,
    /// Proposals of this node without an outcome.
    pub waiting: usize,
    /// Index of the newest snapshot.
    pub snapshot_index: u64,
    /// How far the other members are; empty unless this node leads.
    pub peers: Vec<PeerProgress>,
    /// The snapshot that is being fetched.
    pub catching_up: Option<CatchUp>,
    /// Who is in its group.
    pub membership: Membership,
    /// Digests of other replicas that were held against this one's.
    pub comparisons: Comparisons,
    /// While this node leads: what the next change of the group waits for.
    pub change: Option<Wait>,
}

/// How far another member is with a shard that this node leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerProgress {
    /// Who.
    pub member: MemberId,
    /// How entries are sent to it.
    pub sending: Sending,
    /// It has every entry up to this one.
    pub matched_index: u64,
    /// Entries that it is not known to have.
    pub lag_entries: u64,
    /// Their bytes; of the first [`clearspan_replica::LAG_COUNTED_MAX_ENTRIES`] at most.
    pub lag_bytes: u64,
    /// How long ago the oldest of them was proposed.
    pub lag_ns: u64,
    /// Entries sent to it and not yet answered.
    pub in_flight_entries: u64,
}

/// A snapshot on its way to this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatchUp {
    /// Who sends it.
    pub from: MemberId,
    /// Where the shard will stand.
    pub index: u64,
    /// Bytes of the state that are here.
    pub have_bytes: u64,
    /// All its bytes; 0 until the first piece has come.
    pub state_bytes: u64,
    /// Whether the state is here and its packages come, or all are being stored.
    pub packages: bool,
}

/// What waits in the core and before its helpers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreQueues {
    /// Bytes of commands that were taken up and have no outcome.
    pub in_flight_bytes: u64,
    /// Commands at other nodes that lead their shards.
    pub forwarded: u64,
    /// Commands that wait for a leader.
    pub parked: u64,
    /// Writes that wait for the log's thread.
    pub log_writes: u64,
    /// Packages that wait for the store.
    pub packages: u64,
}

impl Core {
    pub(crate) fn status(&self) -> (Vec<ShardStatus>, CoreQueues) {
        let now = self.shared.clock.now();
        let shards = self.shards.iter().map(|shard| shard.status(now)).collect();
        let queues = CoreQueues {
            in_flight_bytes: self.in_flight_bytes as u64,
            forwarded: self.forwarded.len() as u64,
            parked: self
                .shards
                .iter()
                .map(|shard| shard.parked.len() as u64)
                .sum(),
            log_writes: self.log.len() as u64,
            packages: self.packages.len() as u64,
        };
        (shards, queues)
    }
}

impl Shard {
    fn status(&self, now: Timestamp) -> ShardStatus {
        let replica = self.replica.status();
        let peers = self.replica.progress().into_iter().map(|progress| {
            let proposed = progress
                .oldest_missing
                .and_then(|data| clearspan_codec::entry::time(data).ok());
            PeerProgress {
                member: progress.member,
                sending: progress.sending,
                matched_index: progress.matched_index,
                lag_entries: replica.last.index.saturating_sub(progress.matched_index),
                lag_bytes: progress.lag_bytes,
                lag_ns: proposed.map_or(0, |time| now.ns().saturating_sub(time.ns())),
                in_flight_entries: match progress.sending {
                    Sending::Replicate => progress
                        .next_index
                        .saturating_sub(progress.matched_index + 1),
                    // One message looks for the place where both logs agree; how many entries it holds means nothing.
                    Sending::Probe | Sending::Snapshot => 0,
                },
            }
        });
        ShardStatus {
            shard: self.id,
            replica,
            waiting: self.waiting.len() + self.parked.len(),
            snapshot_index: self.newest_snapshot,
            peers: peers.collect(),
            catching_up: self.fetch.as_ref().map(catch_up::Fetch::status),
            comparisons: self.compared.counts(),
            membership: self.replica.membership().clone(),
            change: self.following.wait.filter(|_| self.leads()),
        }
    }
}
