//! Histories of lists that are only appended to, judged by the dependencies between transactions, as Elle does.
//!
//! Since a list shows its whole past, a read tells the order of all appends before it. From that follow which transaction came
//! before which: by overwriting (ww), by reading what another wrote (wr), by not having seen what another wrote (rw), and by
//! the clock on the wall. A cycle means that no order explains the history; what it is made of names the anomaly (Adya).

mod graph;

use std::collections::{BTreeMap, BTreeSet};

pub use graph::Dependency;
use graph::Graph;

/// What a transaction does to a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Appends a value that nobody else appends to this list.
    Append {
        /// The list.
        list: String,
        /// The value.
        value: u64,
    },
    /// Reads all of it.
    Read {
        /// The list.
        list: String,
        /// What was seen.
        seen: Vec<u64>,
    },
}

/// What its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// It was not done, for good.
    Refused,
    /// Nobody knows. It was done if somebody saw what it wrote; what it read was told to nobody.
    Unknown,
}

/// One transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// When it was asked.
    pub invoked_ns: u64,
    /// When it was answered; of no meaning while its outcome is unknown.
    pub returned_ns: u64,
    /// What its client knows.
    pub outcome: Outcome,
    /// What it did, in order.
    pub ops: Vec<Op>,
}

/// Kinds of anomalies, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The history itself makes no sense: a value was appended by two.
    Malformed,
    /// A value that nobody appended, or one value twice.
    Garbage,
    /// A transaction does not see what itself did.
    Internal,
    /// Two reads of a list, neither a beginning of the other.
    IncompatibleOrder,
    /// G1a: what was refused was seen.
    AbortedRead,
    /// G1b: a transaction was seen half done.
    IntermediateRead,
    /// G0: two transactions overwrite each other in different orders.
    WriteCycle,
    /// G1c: information flows in a circle.
    CircularInformation,
    /// Two transactions read the same and both wrote: one did not see the other.
    LostUpdate,
    /// G-single: a cycle with one missed write.
    SingleAntiDependency,
    /// G2: a cycle with several missed writes, as in a write skew.
    AntiDependencyCycle,
    /// What was there before the question was not seen.
    StaleRead,
    /// Any other cycle that only the clock on the wall closes.
    RealTimeCycle,
}

/// An anomaly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// Its kind.
    pub class: Class,
    /// The transactions in it by their places in the history; in a cycle each with what leads to the next.
    pub cycle: Vec<(usize, Option<Dependency>)>,
    /// The list that it was seen on, where it is one.
    pub list: String,
}

impl Anomaly {
    fn at(class: Class, transactions: &[usize], list: &str) -> Self {
        Self {
            class,
            cycle: transactions.iter().map(|&at| (at, None)).collect(),
            list: list.to_owned(),
        }
    }
}

/// Everything that is wrong with a history, worst first, one of each kind of cycle.
#[must_use]
pub fn check(history: &[Transaction]) -> Vec<Anomaly> {
    let mut found = Vec::new();
    let Some(writers) = writers(history, &mut found) else {
        return found;
    };
    for (at, transaction) in history.iter().enumerate() {
        if transaction.outcome == Outcome::Done {
            check_reads(history, &writers, at, &mut found);
        }
    }
    let orders = orders(history, &mut found);
    if found
        .iter()
        .all(|anomaly| anomaly.class > Class::AbortedRead)
    {
        found.extend(cycles(history, &writers, &orders));
    }
    found.sort_by_key(|anomaly| anomaly.class);
    found
}

type Writers<'a> = BTreeMap<(&'a str, u64), usize>;

/// Who appended what; `None` when a value was appended by two.
fn writers<'a>(history: &'a [Transaction], found: &mut Vec<Anomaly>) -> Option<Writers<'a>> {
    let mut writers = BTreeMap::new();
    for (at, transaction) in history.iter().enumerate() {
        for op in &transaction.ops {
            if let Op::Append { list, value } = op
                && let Some(first) = writers.insert((list.as_str(), *value), at)
            {
                found.push(Anomaly::at(Class::Malformed, &[first, at], list));
                return None;
            }
        }
    }
    Some(writers)
}

/// What a transaction appended to a list, in order.
fn appended<'a>(transaction: &'a Transaction, of: &'a str) -> impl Iterator<Item = u64> + 'a {
    transaction.ops.iter().filter_map(move |op| match op {
        Op::Append { list, value } if list == of => Some(*value),
        _ => None,
    })
}

/// Faults that one read shows by itself.
fn check_reads(
    history: &[Transaction],
    writers: &Writers<'_>,
    at: usize,
    found: &mut Vec<Anomaly>,
) {
    // By list: what it must end with, and what was read first.
    let mut own: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut known: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for op in &history[at].ops {
        let (list, seen) = match op {
            Op::Append { list, value } => {
                own.entry(list).or_default().push(*value);
                if let Some(known) = known.get_mut(list.as_str()) {
                    known.push(*value);
                }
                continue;
            }
            Op::Read { list, seen } => (list.as_str(), seen),
        };
        let mine = own.get(list).map_or(&[][..], Vec::as_slice);
        if !seen.ends_with(mine) || known.get(list).is_some_and(|known| known != seen) {
            found.push(Anomaly::at(Class::Internal, &[at], list));
        }
        known.insert(list, seen.clone());
        let mut once = BTreeSet::new();
        for value in seen {
            match writers.get(&(list, *value)) {
                None => found.push(Anomaly::at(Class::Garbage, &[at], list)),
                Some(_) if !once.insert(value) => {
                    found.push(Anomaly::at(Class::Garbage, &[at], list));
                }
                Some(&writer) if history[writer].outcome == Outcome::Refused => {
                    found.push(Anomaly::at(Class::AbortedRead, &[at, writer], list));
                }
                Some(_) => {}
            }
        }
        let others = &seen[..seen.len().saturating_sub(mine.len())];
        if let Some(last) = others.last()
            && let Some(&writer) = writers.get(&(list, *last))
            && writer != at
            && appended(&history[writer], list).last() != Some(*last)
        {
            found.push(Anomaly::at(Class::IntermediateRead, &[at, writer], list));
        }
    }
}

/// By list: the longest that was read, of which all other reads must be beginnings.
fn orders<'a>(
    history: &'a [Transaction],
    found: &mut Vec<Anomaly>,
) -> BTreeMap<&'a str, &'a [u64]> {
    let mut longest: BTreeMap<&str, (usize, &[u64])> = BTreeMap::new();
    for (at, list, seen) in reads(history) {
        let entry = longest.entry(list).or_insert((at, seen));
        if seen.len() > entry.1.len() {
            *entry = (at, seen);
        }
    }
    for (at, list, seen) in reads(history) {
        let (other, order) = longest[list];
        if !order.starts_with(seen) {
            found.push(Anomaly::at(Class::IncompatibleOrder, &[at, other], list));
        }
    }
    longest
        .into_iter()
        .map(|(list, (_, order))| (list, order))
        .collect()
}

/// All reads that somebody was told.
fn reads(history: &[Transaction]) -> impl Iterator<Item = (usize, &str, &[u64])> {
    history
        .iter()
        .enumerate()
        .filter(|(_, transaction)| transaction.outcome == Outcome::Done)
        .flat_map(|(at, transaction)| {
            transaction.ops.iter().filter_map(move |op| match op {
                Op::Read { list, seen } => Some((at, list.as_str(), seen.as_slice())),
                Op::Append { .. } => None,
            })
        })
}

fn cycles(
    history: &[Transaction],
    writers: &Writers<'_>,
    orders: &BTreeMap<&str, &[u64]>,
) -> Vec<Anomaly> {
    let mut graph = Graph::new(history.len());
    // Appends that no read shows: those that were done stand behind all that are shown, in an order that nobody knows.
    let mut unseen: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (&(list, value), &writer) in writers {
        let shown = orders.get(list).is_some_and(|order| order.contains(&value));
        if !shown && history[writer].outcome == Outcome::Done {
            unseen.entry(list).or_default().insert(writer);
        }
    }
    for (list, order) in orders {
        let of: Vec<usize> = order
            .iter()
            .filter_map(|value| writers.get(&(*list, *value)).copied())
            .collect();
        for pair in of.windows(2) {
            graph.add(pair[0], Dependency::Overwrites, pair[1]);
        }
        if let Some(&last) = of.last() {
            for &writer in unseen.get(list).into_iter().flatten() {
                graph.add(last, Dependency::Overwrites, writer);
            }
        }
    }
    for (at, list, seen) in reads(history) {
        let order = orders[list];
        // What it appended itself before it read tells nothing of others.
        let others = seen
            .iter()
            .take_while(|value| writers.get(&(list, **value)) != Some(&at))
            .count();
        if let Some(&writer) = others
            .checked_sub(1)
            .and_then(|last| writers.get(&(list, seen[last])))
        {
            graph.add(writer, Dependency::WasRead, at);
        }
        match order.get(seen.len()) {
            Some(next) => {
                if let Some(&writer) = writers.get(&(list, *next)) {
                    graph.add(at, Dependency::MissedWrite, writer);
                }
            }
            None => {
                for &writer in unseen.get(list).into_iter().flatten() {
                    graph.add(at, Dependency::MissedWrite, writer);
                }
            }
        }
    }
    use Dependency::{EarlierInTime, MissedWrite, Overwrites, WasRead};
    let cycle = |class, cycle: Option<Vec<(usize, Dependency)>>| {
        cycle.map(|cycle| Anomaly {
            class,
            cycle: cycle.into_iter().map(|(at, by)| (at, Some(by))).collect(),
            list: String::new(),
        })
    };
    let of_data = [
        cycle(
            Class::WriteCycle,
            graph.cycle_with(Overwrites, &[Overwrites]),
        ),
        cycle(
            Class::CircularInformation,
            graph.cycle_with(WasRead, &[Overwrites, WasRead]),
        ),
        cycle(Class::LostUpdate, lost_update(history, &graph)),
        cycle(
            Class::SingleAntiDependency,
            graph.cycle_with(MissedWrite, &[Overwrites, WasRead]),
        ),
    ];
    let found: Vec<Anomaly> = of_data.into_iter().flatten().collect();
    if !found.is_empty() {
        return found;
    }
    // Weaker kinds only where there is nothing stronger: a cycle of theirs may contain one of those.
    let skew = graph.cycle_with(MissedWrite, &[Overwrites, WasRead, MissedWrite]);
    if skew.is_some() {
        return cycle(Class::AntiDependencyCycle, skew)
            .into_iter()
            .collect();
    }
    graph.add_real_time(history);
    let stale = graph.cycle_with(MissedWrite, &[Overwrites, WasRead, EarlierInTime]);
    if stale.is_some() {
        return cycle(Class::StaleRead, stale).into_iter().collect();
    }
    let any = graph.cycle_with(EarlierInTime, &Dependency::ALL);
    cycle(Class::RealTimeCycle, any).into_iter().collect()
}

/// Two that read the same of a list and both appended to it.
fn lost_update(history: &[Transaction], graph: &Graph) -> Option<Vec<(usize, Dependency)>> {
    let mut first: BTreeMap<(&str, &[u64]), usize> = BTreeMap::new();
    for (at, list, seen) in reads(history) {
        let writes = appended(&history[at], list).any(|value| !seen.contains(&value));
        if !writes {
            continue;
        }
        match first.get(&(list, seen)) {
            Some(&other) if other != at => {
                return Some(
                    graph
                        .path(at, other, &Dependency::ALL)
                        .into_iter()
                        .chain(graph.path(other, at, &Dependency::ALL))
                        .flatten()
                        .collect(),
                );
            }
            _ => {
                first.insert((list, seen), at);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests;
