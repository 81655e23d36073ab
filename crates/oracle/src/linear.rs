//! Linearizability of accounts, account by account, from what clients saw alone (no log index is asked for).
//!
//! An account is linearizable when each operation can be given a moment between its question and its answer such that all
//! answers follow from that order. Accounts are independent objects, so each is judged by itself (P-composition, Herlihy and
//! Wing). The search goes along the clock and keeps every state that could still be true, with the operations that may have
//! happened in it (Wing and Gong; Lowe's just-in-time form with a memory of what was tried): what is kept between two
//! moments is all that a window hands on to the next, so a long history costs no more than its most crowded moment.

use std::collections::{BTreeMap, BTreeSet};

/// What was asked of an account, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Money moved: in when positive, out when negative. Out only down to the floor.
    Moved(i128),
    /// So much did not go out, since the floor would have been broken.
    Short(i128),
    /// The balance was read.
    Read(i128),
}

/// One operation on an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What.
    pub act: Act,
    /// When it was asked.
    pub invoked_ns: u64,
    /// When it was answered. `None`: nobody knows whether it happened; if so, at any time after the question.
    pub returned_ns: Option<u64>,
}

/// An account and everything that was done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its balance before.
    pub opening: i128,
    /// How low it may fall by money going out.
    pub floor: i128,
    /// The operations, in any order.
    pub operations: Vec<Operation>,
}

/// Why an account was not found linearizable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No order explains what was answered up to and with this operation.
    NoOrder {
        /// Its place in the list.
        operation: usize,
    },
    /// More states were possible than the caller wanted to follow, when this operation was answered.
    TooMany {
        /// Its place in the list.
        operation: usize,
    },
}

/// A state that may be true: the balance, and which of the open operations have happened in it.
type Possible = (i128, BTreeSet<usize>);

fn apply(account: &Account, balance: i128, act: Act) -> Option<i128> {
    match act {
        Act::Moved(minor) if minor < 0 && balance + minor < account.floor => None,
        Act::Moved(minor) => Some(balance + minor),
        Act::Short(minor) => (balance - minor < account.floor).then_some(balance),
        Act::Read(seen) => (seen == balance).then_some(balance),
    }
}

/// Judges one account, following at most `states_max` states at a time.
///
/// # Errors
/// The first answer that no order explains, or that there were too many states to follow.
pub fn check(account: &Account, states_max: usize) -> Result<(), Fault> {
    let mut moments = Vec::new();
    for (at, operation) in account.operations.iter().enumerate() {
        // Who was told nothing learnt nothing: only money that moved leaves a trace.
        if operation.returned_ns.is_none() && !matches!(operation.act, Act::Moved(_)) {
            continue;
        }
        moments.push((operation.invoked_ns, false, at));
        if let Some(returned_ns) = operation.returned_ns {
            moments.push((returned_ns, true, at));
        }
    }
    // Questions before answers of the same moment: they overlap.
    moments.sort_unstable();
    let mut open: BTreeSet<usize> = BTreeSet::new();
    let mut possible: BTreeSet<Possible> = BTreeSet::from([(account.opening, BTreeSet::new())]);
    for (_, answered, operation) in moments {
        if !answered {
            open.insert(operation);
            continue;
        }
        // It has happened by now, in whatever order with other open ones before it.
        let mut tried: BTreeSet<Possible> = BTreeSet::new();
        let mut next: BTreeSet<Possible> = BTreeSet::new();
        let mut waiting: Vec<Possible> = possible.into_iter().collect();
        while let Some((balance, happened)) = waiting.pop() {
            if happened.contains(&operation) {
                let mut happened = happened;
                happened.remove(&operation);
                next.insert((balance, happened));
                continue;
            }
            if !tried.insert((balance, happened.clone())) {
                continue;
            }
            if tried.len() + next.len() > states_max {
                return Err(Fault::TooMany { operation });
            }
            for &other in open.difference(&happened) {
                if let Some(balance) = apply(account, balance, account.operations[other].act) {
                    let mut happened = happened.clone();
                    happened.insert(other);
                    waiting.push((balance, happened));
                }
            }
        }
        if next.is_empty() {
            return Err(Fault::NoOrder { operation });
        }
        open.remove(&operation);
        possible = next;
    }
    Ok(())
}

/// Judges all accounts, each by itself.
///
/// # Errors
/// The first account at fault.
pub fn check_all<K: Ord + Clone>(
    accounts: &BTreeMap<K, Account>,
    states_max: usize,
) -> Result<(), (K, Fault)> {
    for (name, account) in accounts {
        check(account, states_max).map_err(|fault| (name.clone(), fault))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
