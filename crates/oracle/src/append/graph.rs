//! Dependencies between transactions, and cycles of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Outcome, Transaction};

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dependency {
    /// ww: the other appended next.
    Overwrites,
    /// wr: the other read what this one appended last.
    WasRead,
    /// rw: this one read a state that the other appended to.
    MissedWrite,
    /// This one was answered before the other was asked.
    EarlierInTime,
}

impl Dependency {
    /// All kinds.
    pub const ALL: [Self; 4] = [
        Self::Overwrites,
        Self::WasRead,
        Self::MissedWrite,
        Self::EarlierInTime,
    ];
}

/// Transactions by their places, and what leads from one to another.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    edges: Vec<BTreeSet<(usize, Dependency)>>,
}

impl Graph {
    pub(super) fn new(transactions: usize) -> Self {
        Self {
            edges: vec![BTreeSet::new(); transactions],
        }
    }

    pub(super) fn add(&mut self, from: usize, by: Dependency, to: usize) {
        if from != to {
            self.edges[from].insert((to, by));
        }
    }

    /// Who was answered before whom was asked; what follows from two others is left out.
    pub(super) fn add_real_time(&mut self, history: &[Transaction]) {
        let mut moments = Vec::new();
        for (at, transaction) in history.iter().enumerate() {
            if transaction.outcome == Outcome::Refused {
                continue;
            }
            moments.push((transaction.invoked_ns, false, at));
            if transaction.outcome == Outcome::Done {
                moments.push((transaction.returned_ns, true, at));
            }
        }
        moments.sort_unstable();
        // Answered, and not before the question of another that is answered too.
        let mut newest: BTreeSet<usize> = BTreeSet::new();
        let mut before: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (_, answered, at) in moments {
            if answered {
                for known in before.remove(&at).unwrap_or_default() {
                    newest.remove(&known);
                }
                newest.insert(at);
            } else {
                for &earlier in &newest {
                    self.add(earlier, Dependency::EarlierInTime, at);
                }
                before.insert(at, newest.clone());
            }
        }
    }

    /// The shortest cycle that begins with a dependency of one kind and goes on by some kinds.
    pub(super) fn cycle_with(
        &self,
        first: Dependency,
        rest: &[Dependency],
    ) -> Option<Vec<(usize, Dependency)>> {
        let component = self.components(first, rest);
        let mut best: Option<Vec<(usize, Dependency)>> = None;
        for (from, edges) in self.edges.iter().enumerate() {
            for &(to, by) in edges {
                if by != first || component[from] != component[to] {
                    continue;
                }
                if let Some(back) = self.path(to, from, rest)
                    && best.as_ref().is_none_or(|best| back.len() + 1 < best.len())
                {
                    best = Some([(from, by)].into_iter().chain(back).collect());
                }
            }
            // One cycle shows that something is wrong; the search for a shorter one stays cheap.
            if best.is_some() {
                break;
            }
        }
        best
    }

    /// The shortest way from one transaction to another by some kinds of dependencies.
    pub(super) fn path(
        &self,
        from: usize,
        to: usize,
        kinds: &[Dependency],
    ) -> Option<Vec<(usize, Dependency)>> {
        let mut came: BTreeMap<usize, (usize, Dependency)> = BTreeMap::new();
        let mut open = VecDeque::from([from]);
        while let Some(at) = open.pop_front() {
            if at == to {
                let mut way = Vec::new();
                let mut at = to;
                while at != from {
                    let (before, by) = came[&at];
                    way.push((before, by));
                    at = before;
                }
                way.reverse();
                return Some(way);
            }
            for &(next, by) in &self.edges[at] {
                if kinds.contains(&by) && next != from && !came.contains_key(&next) {
                    came.insert(next, (at, by));
                    open.push_back(next);
                }
            }
        }
        None
    }

    /// Strongly connected components by the kinds given (Tarjan, without recursion): a cycle stays within one.
    fn components(&self, first: Dependency, rest: &[Dependency]) -> Vec<usize> {
        const NEW: usize = usize::MAX;
        let count = self.edges.len();
        let next: Vec<Vec<usize>> = self
            .edges
            .iter()
            .map(|edges| {
                edges
                    .iter()
                    .filter(|(_, by)| *by == first || rest.contains(by))
                    .map(|(to, _)| *to)
                    .collect()
            })
            .collect();
        let (mut order, mut low, mut component) =
            (vec![NEW; count], vec![NEW; count], vec![NEW; count]);
        let (mut numbered, mut components) = (0, 0);
        let mut stack = Vec::new();
        for root in 0..count {
            if order[root] != NEW {
                continue;
            }
            let mut calls = vec![(root, 0)];
            while let Some((at, edge)) = calls.pop() {
                if edge == 0 {
                    order[at] = numbered;
                    low[at] = numbered;
                    numbered += 1;
                    stack.push(at);
                }
                if let Some(&to) = next[at].get(edge) {
                    calls.push((at, edge + 1));
                    if order[to] == NEW {
                        calls.push((to, 0));
                    } else if component[to] == NEW {
                        low[at] = low[at].min(order[to]);
                    }
                    continue;
                }
                if low[at] == order[at] {
                    while let Some(member) = stack.pop() {
                        component[member] = components;
                        if member == at {
                            break;
                        }
                    }
                    components += 1;
                }
                if let Some(&(caller, _)) = calls.last() {
                    low[caller] = low[caller].min(low[at]);
                }
            }
        }
        component
    }
}
