//! One direction between two sites: when a byte that goes in now comes out.

use serde::{Deserialize, Serialize};

use crate::clock::{MILLI_NS, SECOND_NS};

/// The most that is read at once: few system calls per megabyte, and no connection keeps the thread for long.
pub(super) const CHUNK_BYTES: usize = 128 << 10;
/// A capped line takes in what it will have sent within this time: less would leave gaps when the thread is late, more
/// would have urgent bytes of one connection wait behind bulk of another.
const BACKLOG_NS: u64 = MILLI_NS;
/// An Ethernet frame's payload: less at once is no use.
const CHUNK_MIN_BYTES: usize = 1460;
/// What a line without a cap is taken to carry when its memory is bounded: more than the thread can move.
const UNCAPPED_BYTES_PER_S: u64 = 2_000_000_000;
/// Each connection and direction may hold this, however short its line.
const IN_FLIGHT_MIN_BYTES: u64 = 1 << 20;
/// No connection and direction holds more: 850 MB/s over 78 ms one way.
const IN_FLIGHT_MAX_BYTES: u64 = 64 << 20;
/// Beyond the least for each, all connections of a line together hold no more.
const LINE_IN_FLIGHT_MAX_BYTES: u64 = 256 << 20;

const _: () = assert!(IN_FLIGHT_MIN_BYTES > 2 * CHUNK_BYTES as u64);
const _: () = assert!(IN_FLIGHT_MIN_BYTES < IN_FLIGHT_MAX_BYTES);
const _: () = assert!(IN_FLIGHT_MAX_BYTES < LINE_IN_FLIGHT_MAX_BYTES);

/// What a line does to bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// One way, from reading a byte to writing it.
    pub delay_ns: u64,
    /// Up to this is added, evenly spread; the order of bytes stays.
    pub jitter_ns: u64,
    /// The line's bandwidth; `None` for as much as the machine can do.
    pub bytes_per_s: Option<u64>,
}

/// How a line stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineStatus {
    /// What it does to bytes.
    pub shape: Shape,
    /// Whether it is cut.
    pub cut: bool,
    /// Connections whose bytes run over it.
    pub connections: usize,
    /// Bytes that came out, since it was made.
    pub carried_bytes: u64,
    /// Bytes inside.
    pub in_flight_bytes: u64,
    /// How much later than asked bytes came out, on average: what the machine adds.
    pub late_mean_ns: u64,
    /// The worst of it.
    pub late_max_ns: u64,
}

pub(super) struct Line {
    shape: Shape,
    pub(super) cut: bool,
    /// When the last byte taken in will have left the sender's end.
    free_at_ns: u64,
    random: u64,
    pub(super) connections: usize,
    carried_bytes: u64,
    in_flight_bytes: u64,
    late_sum_ns: u64,
    late_count: u64,
    late_max_ns: u64,
}

impl Line {
    pub(super) fn new(shape: Shape, seed: u64) -> Self {
        Self {
            shape,
            cut: false,
            free_at_ns: 0,
            // An xorshift generator may start anywhere but at zero.
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            connections: 0,
            carried_bytes: 0,
            in_flight_bytes: 0,
            late_sum_ns: 0,
            late_count: 0,
            late_max_ns: 0,
        }
    }

    pub(super) fn reshape(&mut self, shape: Shape, now_ns: u64) {
        self.shape = shape;
        self.free_at_ns = self.free_at_ns.min(now_ns);
    }

    /// When more may be taken in.
    pub(super) fn open_at_ns(&self) -> u64 {
        match self.shape.bytes_per_s {
            Some(_) => self.free_at_ns.saturating_sub(BACKLOG_NS),
            None => 0,
        }
    }

    /// The most to take in at once.
    pub(super) fn chunk_bytes(&self) -> usize {
        let Some(rate) = self.shape.bytes_per_s else {
            return CHUNK_BYTES;
        };
        let bytes = bytes_in(rate, BACKLOG_NS);
        usize::try_from(bytes)
            .unwrap_or(CHUNK_BYTES)
            .clamp(CHUNK_MIN_BYTES, CHUNK_BYTES)
    }

    /// Whether a connection that has so much inside may add to it.
    pub(super) fn has_room(&self, in_flight_bytes: u64) -> bool {
        if in_flight_bytes < IN_FLIGHT_MIN_BYTES {
            return true;
        }
        let rate = self.shape.bytes_per_s.unwrap_or(UNCAPPED_BYTES_PER_S);
        let longest_ns = self
            .shape
            .delay_ns
            .saturating_add(self.shape.jitter_ns)
            .saturating_add(2 * BACKLOG_NS);
        in_flight_bytes < bytes_in(rate, longest_ns).min(IN_FLIGHT_MAX_BYTES)
            && self.in_flight_bytes < LINE_IN_FLIGHT_MAX_BYTES
    }

    /// Takes bytes in; says when they come out.
    pub(super) fn take_in(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.in_flight_bytes += bytes;
        let start_ns = self.free_at_ns.max(now_ns);
        self.free_at_ns = match self.shape.bytes_per_s {
            Some(rate) => start_ns.saturating_add(time_of(bytes, rate)),
            None => now_ns,
        };
        self.free_at_ns
            .saturating_add(self.shape.delay_ns)
            .saturating_add(self.jitter_ns())
    }

    /// The time that something without bytes takes, such as the end of a connection, or all that a cut held back.
    pub(super) fn pass(&self, now_ns: u64) -> u64 {
        now_ns.saturating_add(self.shape.delay_ns)
    }

    /// Bytes came out, that were due then.
    pub(super) fn came_out(&mut self, bytes: u64) {
        self.carried_bytes += bytes;
        self.in_flight_bytes -= bytes;
    }

    /// Bytes will never come out: their connection is gone.
    pub(super) fn forget(&mut self, bytes: u64) {
        self.in_flight_bytes -= bytes;
    }

    /// A chunk begins to leave so much later than it was due.
    pub(super) fn was_late(&mut self, late_ns: u64) {
        self.late_sum_ns = self.late_sum_ns.saturating_add(late_ns);
        self.late_count += 1;
        self.late_max_ns = self.late_max_ns.max(late_ns);
    }

    pub(super) fn status(&self) -> LineStatus {
        LineStatus {
            shape: self.shape,
            cut: self.cut,
            connections: self.connections,
            carried_bytes: self.carried_bytes,
            in_flight_bytes: self.in_flight_bytes,
            late_mean_ns: self.late_sum_ns.checked_div(self.late_count).unwrap_or(0),
            late_max_ns: self.late_max_ns,
        }
    }

    fn jitter_ns(&mut self) -> u64 {
        if self.shape.jitter_ns == 0 {
            return 0;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        match self.shape.jitter_ns.checked_add(1) {
            Some(span) => self.random % span,
            None => self.random,
        }
    }
}

/// How many bytes a rate carries in a time.
fn bytes_in(bytes_per_s: u64, ns: u64) -> u64 {
    let bytes = u128::from(bytes_per_s) * u128::from(ns) / u128::from(SECOND_NS);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// How long a rate needs for bytes, rounded up.
fn time_of(bytes: u64, bytes_per_s: u64) -> u64 {
    let ns = (u128::from(bytes) * u128::from(SECOND_NS)).div_ceil(u128::from(bytes_per_s.max(1)));
    u64::try_from(ns).unwrap_or(u64::MAX)
}
