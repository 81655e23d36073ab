//! How much participants may hand in at this node, in payments and in bytes (ADR 0026). Over its rate somebody is told when
//! to come again, and nothing is stored. Pure but for a lock: time comes as an argument.
//!
//! Urgent messages have buckets of their own, which bulk never touches: whether an urgent message passes depends on urgent
//! messages alone. What they take is missing to bulk. Where the node as a whole has a limit, who has taken more than its
//! fair part may draw a bucket down by half only; the other half is for the rest.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use clearspan_ledger::{Bic, Timestamp};

use crate::engine::Lane;

/// Levels are in billionths, so that a nanosecond's refill of a small rate is exact.
const NANO: i128 = 1_000_000_000;
/// Whoever asked within this time or the one before counts when what the node takes is divided.
const ACTIVE_NS: u64 = 1_000_000_000;
/// Bodies up to this many bytes may be urgent: they may also take what larger ones must leave.
const SMALL_BODY_BYTES: u64 = 64 << 10;

/// One participant's limits. 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Payments each second; a message without payments counts as one.
    pub payments_per_s: u64,
    /// Bytes of messages each second.
    pub bytes_per_s: u64,
}

/// A node's limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimits {
    /// Of every participant that is not named.
    pub each: Rate,
    /// Of participants that are.
    pub named: BTreeMap<Bic, Rate>,
    /// Payments each second of all participants together; 0 is no limit.
    pub node_payments_per_s: u64,
    /// For so long everything may be saved up that was not used.
    pub burst_ns: u64,
    /// Of what is saved up, bulk leaves so many hundredths.
    pub reserved_percent: u8,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self {
            each: Rate::default(),
            named: BTreeMap::new(),
            node_payments_per_s: 0,
            // Twice what a participant sends between two ticks of its own scheduler, and a large package at a usual rate.
            burst_ns: 2_000_000_000,
            reserved_percent: 10,
        }
    }
}

impl RateLimits {
    fn of(&self, who: Bic) -> Rate {
        self.named.get(&who).copied().unwrap_or(self.each)
    }

    fn are_none(&self) -> bool {
        let is_none = |rate: &Rate| *rate == Rate::default();
        self.node_payments_per_s == 0 && is_none(&self.each) && self.named.values().all(is_none)
    }
}

/// Somebody is over a limit. Nothing was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{limit}; come again in {} ms", wait_ns.div_ceil(1_000_000))]
pub struct TooFast {
    /// Which limit.
    pub limit: Limit,
    /// After this time the same passes, if nothing else comes between.
    pub wait_ns: u64,
}

/// A limit that somebody is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    /// Its own.
    #[error("more payments than agreed with you: {0} each second at this node")]
    Payments(u64),
    /// Its own.
    #[error("more bytes than agreed with you: {0} each second at this node")]
    Bytes(u64),
    /// Of all together.
    #[error("more payments than this node takes of all participants: {0} each second")]
    Node(u64),
}

/// How full somebody's buckets are, and how often it was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Urgent payments that pass at once; `None` without a limit.
    pub urgent: Option<u64>,
    /// The same of bulk.
    pub bulk: Option<u64>,
    /// Bytes.
    pub bytes: Option<u64>,
    /// Urgent messages that were refused.
    pub refused_urgent: u64,
    /// Bulk messages, enquiries and unreadable ones that were refused.
    pub refused_bulk: u64,
    /// Messages that were refused for their bytes, unread.
    pub refused_bytes: u64,
}

/// The node's meters.
#[derive(Debug)]
pub struct Rates {
    limits: RateLimits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    node: Option<Node>,
    meters: BTreeMap<Bic, Meter>,
}

#[derive(Debug)]
struct Bucket {
    rate_per_s: u64,
    capacity: i128,
    /// Below zero after something that was larger than the bucket.
    level: i128,
    at: Timestamp,
}

impl Bucket {
    /// A full one; none without a rate.
    fn new(rate_per_s: u64, burst_ns: u64, now: Timestamp) -> Option<Self> {
        // Less than one would never let anything pass as it should.
        let capacity = (i128::from(rate_per_s) * i128::from(burst_ns)).max(NANO);
        (rate_per_s > 0).then_some(Self {
            rate_per_s,
            capacity,
            level: capacity,
            at: now,
        })
    }

    fn refill(&mut self, now: Timestamp) {
        let elapsed_ns = now.ns().saturating_sub(self.at.ns());
        self.at = self.at.max(now);
        let more = i128::from(self.rate_per_s) * i128::from(elapsed_ns);
        self.level = (self.level + more).min(self.capacity);
    }

    /// How long until so much can be taken and `floor` is left. More than there ever is passes once the bucket is full, and
    /// is paid off afterwards.
    fn wait_ns(&self, cost: u64, floor: i128) -> u64 {
        let wanted = floor + (i128::from(cost) * NANO).min(self.capacity - floor);
        let missing = wanted - self.level;
        if missing <= 0 {
            return 0;
        }
        let rate = i128::from(self.rate_per_s);
        u64::try_from((missing + rate - 1) / rate).unwrap_or(u64::MAX)
    }

    fn take(&mut self, cost: u64) {
        self.level -= i128::from(cost) * NANO;
    }

    fn above(&self, floor: i128) -> u64 {
        u64::try_from((self.level - floor) / NANO).unwrap_or(0)
    }
}

/// A limit of payments for both lanes.
#[derive(Debug)]
struct Lanes {
    /// What urgent messages are held against.
    urgent: Bucket,
    /// What bulk is held against; urgent messages take from it too, below zero if it must be.
    bulk: Bucket,
    /// What bulk leaves in it.
    reserved: i128,
}

impl Lanes {
    fn new(rate_per_s: u64, limits: &RateLimits, reserved: bool, now: Timestamp) -> Option<Self> {
        let bulk = Bucket::new(rate_per_s, limits.burst_ns, now)?;
        let percent = i128::from(limits.reserved_percent.min(100));
        Some(Self {
            urgent: Bucket::new(rate_per_s, limits.burst_ns, now)?,
            reserved: if reserved {
                bulk.capacity * percent / 100
            } else {
                0
            },
            bulk,
        })
    }

    fn refill(&mut self, now: Timestamp) {
        self.urgent.refill(now);
        self.bulk.refill(now);
    }

    /// `half`: only the upper half may be drawn.
    fn wait_ns(&self, lane: Lane, cost: u64, half: bool) -> u64 {
        let (bucket, reserved) = match lane {
            Lane::Urgent => (&self.urgent, 0),
            Lane::Bulk => (&self.bulk, self.reserved),
        };
        let floor = if half {
            i128::midpoint(reserved, bucket.capacity)
        } else {
            reserved
        };
        bucket.wait_ns(cost, floor)
    }

    fn take(&mut self, lane: Lane, cost: u64) {
        if lane == Lane::Urgent {
            self.urgent.take(cost);
        }
        self.bulk.take(cost);
    }
}

/// The limit of all together, and among how many it is divided.
#[derive(Debug)]
struct Node {
    lanes: Lanes,
    /// By lane.
    active: [Active; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct Active {
    epoch: u64,
    now: u64,
    before: u64,
}

impl Active {
    /// Counts somebody who asks, once in each epoch.
    fn seen(&mut self, last: &mut Option<u64>, now: Timestamp) {
        let epoch = now.ns() / ACTIVE_NS;
        if epoch > self.epoch {
            let is_next = epoch == self.epoch + 1;
            self.before = if is_next { self.now } else { 0 };
            self.now = 0;
            self.epoch = epoch;
        }
        if *last != Some(epoch) {
            *last = Some(epoch);
            self.now += 1;
        }
    }

    fn count(self) -> i128 {
        i128::from(self.now.max(self.before).max(1))
    }
}

/// One participant's meter.
#[derive(Debug)]
struct Meter {
    own: Option<Lanes>,
    bytes: Option<Bucket>,
    /// By lane.
    parts: [Part; 2],
    refused: [u64; 2],
    refused_bytes: u64,
}

/// What somebody took of the node's limit lately.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// Drains as fast as its fair part of the node's rate comes in.
    taken: i128,
    at: Timestamp,
    seen: Option<u64>,
}

const fn index(lane: Lane) -> usize {
    match lane {
        Lane::Urgent => 0,
        Lane::Bulk => 1,
    }
}

impl Meter {
    fn new(rate: Rate, limits: &RateLimits, now: Timestamp) -> Self {
        Self {
            own: Lanes::new(rate.payments_per_s, limits, false, now),
            bytes: Bucket::new(rate.bytes_per_s, limits.burst_ns, now),
            parts: [Part {
                at: now,
                ..Part::default()
            }; 2],
            refused: [0; 2],
            refused_bytes: 0,
        }
    }
}

impl Rates {
    /// Meters that are full.
    #[must_use]
    pub fn new(limits: RateLimits) -> Self {
        Self {
            limits,
            state: Mutex::default(),
        }
    }

    fn with<T>(
        &self,
        who: Bic,
        now: Timestamp,
        work: impl FnOnce(&mut Option<Node>, &mut Meter) -> T,
    ) -> T {
        let limits = &self.limits;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { node, meters } = &mut *state;
        if node.is_none() {
            *node = Lanes::new(limits.node_payments_per_s, limits, true, now).map(|lanes| Node {
                lanes,
                active: [Active::default(); 2],
            });
        }
        let meter = meters
            .entry(who)
            .or_insert_with(|| Meter::new(limits.of(who), limits, now));
        work(node, meter)
    }

    /// Takes the bytes of a message that was not looked at yet; what is small leaves less behind, for it may be urgent.
    ///
    /// # Errors
    /// [`TooFast`]; then nothing was taken.
    pub fn take_bytes(&self, who: Bic, bytes: u64, now: Timestamp) -> Result<(), TooFast> {
        if self.limits.are_none() {
            return Ok(());
        }
        self.with(who, now, |_, meter| {
            let Some(bucket) = &mut meter.bytes else {
                return Ok(());
            };
            bucket.refill(now);
            let percent = i128::from(self.limits.reserved_percent.min(100));
            let floor = if bytes > SMALL_BODY_BYTES {
                bucket.capacity * percent / 100
            } else {
                0
            };
            let wait_ns = bucket.wait_ns(bytes, floor);
            if wait_ns > 0 {
                meter.refused_bytes += 1;
                return Err(TooFast {
                    limit: Limit::Bytes(bucket.rate_per_s),
                    wait_ns,
                });
            }
            bucket.take(bytes);
            Ok(())
        })
    }

    /// Takes a message's payments, of its sender's limit and of the node's. A message without payments is one.
    ///
    /// # Errors
    /// [`TooFast`]; then nothing was taken.
    pub fn take_payments(
        &self,
        who: Bic,
        lane: Lane,
        payments: u64,
        now: Timestamp,
    ) -> Result<(), TooFast> {
        if self.limits.are_none() {
            return Ok(());
        }
        let cost = payments.max(1);
        self.with(who, now, |node, meter| {
            let Meter {
                own,
                parts,
                refused,
                ..
            } = meter;
            let at = index(lane);
            let mut refuse = |limit, wait_ns| {
                refused[at] += 1;
                Err(TooFast { limit, wait_ns })
            };
            if let Some(own) = own {
                own.refill(now);
                let wait_ns = own.wait_ns(lane, cost, false);
                if wait_ns > 0 {
                    return refuse(Limit::Payments(own.bulk.rate_per_s), wait_ns);
                }
            }
            if let Some(Node { lanes, active }) = node {
                let part = &mut parts[at];
                active[at].seen(&mut part.seen, now);
                lanes.refill(now);
                let count = active[at].count();
                let elapsed_ns = i128::from(now.ns().saturating_sub(part.at.ns()));
                part.at = part.at.max(now);
                let drained = i128::from(lanes.bulk.rate_per_s) * elapsed_ns / count;
                part.taken = (part.taken - drained).max(0);
                // Who is alone has nobody to leave something for.
                let half = count > 1 && part.taken >= lanes.bulk.capacity / (2 * count);
                let wait_ns = lanes.wait_ns(lane, cost, half);
                if wait_ns > 0 {
                    return refuse(Limit::Node(lanes.bulk.rate_per_s), wait_ns);
                }
                lanes.take(lane, cost);
                part.taken += i128::from(cost) * NANO;
            }
            if let Some(own) = own {
                own.take(lane, cost);
            }
            Ok(())
        })
    }

    /// How full the node's own buckets are, urgent and bulk; `None` without a limit, or before the first message.
    #[must_use]
    pub fn node_level(&self, now: Timestamp) -> Option<[u64; 2]> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let lanes = &mut state.node.as_mut()?.lanes;
        lanes.refill(now);
        Some([lanes.urgent.above(0), lanes.bulk.above(lanes.reserved)])
    }

    /// How full the buckets are of everybody who has handed in something since the start.
    #[must_use]
    pub fn levels(&self, now: Timestamp) -> Vec<(Bic, Level)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let meters = state.meters.iter_mut();
        meters
            .map(|(&who, meter)| {
                if let Some(own) = &mut meter.own {
                    own.refill(now);
                }
                if let Some(bytes) = &mut meter.bytes {
                    bytes.refill(now);
                }
                let own = meter.own.as_ref();
                let [refused_urgent, refused_bulk] = meter.refused;
                let level = Level {
                    urgent: own.map(|own| own.urgent.above(0)),
                    bulk: own.map(|own| own.bulk.above(0)),
                    bytes: meter.bytes.as_ref().map(|bucket| bucket.above(0)),
                    refused_urgent,
                    refused_bulk,
                    refused_bytes: meter.refused_bytes,
                };
                (who, level)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
