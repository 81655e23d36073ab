//! I9: who can be served at all. A node is without a majority when neither it nor anybody that it can talk to can talk to a
//! majority; only cut lines count, so that whoever is called unserved here is so whatever else is the matter.

use crate::reach::reach;
use crate::world::World;

/// By node: since when it has had no majority; `None` while it has one.
#[derive(Debug)]
pub(crate) struct Sides(Vec<Option<u64>>);

impl Sides {
    pub(crate) fn new(nodes: usize) -> Self {
        Self(vec![None; nodes])
    }
}

impl World {
    /// After a cut and after its end.
    pub(crate) fn note_sides(&mut self) {
        if self.plan.changes_members() {
            return;
        }
        let count = self.nodes.len();
        let talk = |a: usize, b: usize| a == b || self.net.flows_both(a, b);
        let leads: Vec<bool> = (0..count)
            .map(|a| (0..count).filter(|&b| talk(a, b)).count() * 2 > count)
            .collect();
        let served: Vec<bool> = (0..count)
            .map(|a| (0..count).any(|b| leads[b] && talk(a, b)))
            .collect();
        for (since, served) in self.sides.0.iter_mut().zip(served) {
            if served {
                *since = None;
            } else {
                since.get_or_insert(self.now_ns);
            }
        }
    }

    /// Something that was asked of a node then is answered now.
    pub(crate) fn check_served(&mut self, node: usize, asked_ns: u64, what: &str) {
        if let Some(since) = self.sides.0[node]
            && asked_ns > since
        {
            self.fail(format!(
                "I9: node {node} answers {what} of {} ms ago, and has had no majority for {} ms",
                (self.now_ns - asked_ns) / 1_000_000,
                (self.now_ns - since) / 1_000_000
            ));
        }
    }

    /// Notes that a node is asked that cannot be served.
    pub(crate) fn mark_unserved(&self, node: usize) {
        if self.sides.0[node].is_some() {
            reach("a node without a majority was asked");
        }
    }
}
