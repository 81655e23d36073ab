//! What one connection has inside one line: bytes in order, each with the time when it comes out.

use std::collections::VecDeque;

/// The books' own memory per chunk, so that many tiny chunks are bounded too.
const CHUNK_OVERHEAD_BYTES: u64 = 64;

/// Something inside the line.
pub(super) enum Item {
    Bytes {
        bytes: Vec<u8>,
        sent: usize,
    },
    /// The sender has said its last byte.
    End,
    /// The connection broke at the sender's end.
    Reset,
}

#[derive(Default)]
pub(super) struct Pipe {
    queue: VecDeque<(u64, Item)>,
    last_ns: u64,
    in_flight_bytes: u64,
    /// The time under which the driver expects this pipe.
    pub(super) due_ns: Option<u64>,
    /// In the driver's list of pipes that may take in.
    pub(super) listed: bool,
    /// The sender's end has been taken in: nothing more comes.
    pub(super) ended: bool,
    /// The end has come out.
    pub(super) finished: bool,
}

impl Pipe {
    /// Nothing overtakes: an item comes out no earlier than the one before it.
    pub(super) fn push(&mut self, out_ns: u64, item: Item) {
        self.last_ns = self.last_ns.max(out_ns);
        if let Item::Bytes { bytes, .. } = &item {
            self.in_flight_bytes += bytes.len() as u64 + CHUNK_OVERHEAD_BYTES;
        }
        self.queue.push_back((self.last_ns, item));
    }

    /// When the first item comes out.
    pub(super) fn head_ns(&self) -> Option<u64> {
        self.queue.front().map(|&(ns, _)| ns)
    }

    /// The first item.
    pub(super) fn head(&mut self) -> Option<&mut Item> {
        self.queue.front_mut().map(|(_, item)| item)
    }

    /// The first item has come out.
    pub(super) fn pop(&mut self) {
        if let Some((_, Item::Bytes { bytes, .. })) = self.queue.pop_front() {
            self.in_flight_bytes -= bytes.len() as u64 + CHUNK_OVERHEAD_BYTES;
        }
    }

    /// Memory that it holds.
    pub(super) fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }

    /// What was held back begins its way again: nothing comes out before then.
    pub(super) fn not_before(&mut self, ns: u64) {
        for (out_ns, _) in &mut self.queue {
            *out_ns = (*out_ns).max(ns);
        }
        self.last_ns = self.last_ns.max(ns);
    }

    /// Drops everything inside; gives the number of bytes that had not come out.
    pub(super) fn clear(&mut self) -> u64 {
        let bytes = self.queue.drain(..).map(|(_, item)| match item {
            Item::Bytes { bytes, sent } => (bytes.len() - sent) as u64,
            Item::End | Item::Reset => 0,
        });
        let bytes = bytes.sum();
        self.in_flight_bytes = 0;
        bytes
    }
}
