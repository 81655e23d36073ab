//! Committed logs through the model: the first place where it and the product part.
//!
//! The log index gives a total order within a shard, and between shards a letter cannot arrive before it was sent. So a history
//! needs no search: entries are applied in log order, shard by shard as far as letters allow. A command whose outcome nobody
//! learnt is decided by whether it stands in the log; one that does not stand there was never done.

use std::collections::BTreeMap;
use std::fmt;

use crate::greatest::{Pay, Payer, by_trying_all, greatest};
use crate::model::{Decided, InSet, Shard};
use crate::plain::{Answer, Entry, Holder, Op, Picture, Reply};

/// An entry and what was seen of its answer: nothing, when nobody learnt it.
#[derive(Clone, Debug)]
pub struct Logged {
    /// The entry.
    pub entry: Entry,
    /// What a replica made of it.
    pub applied: Option<Answer>,
    /// What clients were told, each of them.
    pub told: Vec<Reply>,
}

/// Where the model and the product part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where: shard, log index, and what was looked at.
    pub place: String,
    /// What the rules say.
    pub expected: String,
    /// What was seen.
    pub seen: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: by the rules {}, seen {}",
            self.place, self.expected, self.seen
        )
    }
}

fn differ<T: fmt::Debug + PartialEq>(
    place: impl FnOnce() -> String,
    expected: &T,
    seen: &T,
) -> Result<(), Difference> {
    if expected == seen {
        return Ok(());
    }
    Err(Difference {
        place: place(),
        expected: format!("{expected:?}"),
        seen: format!("{seen:?}"),
    })
}

/// Cycles with more choices than this are held against the shortening alone.
const CHOICES_MAX: usize = 20_000;

/// The model's shards, brought forward entry by entry.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    shards: Vec<Shard>,
    /// Cycles that were held against the greatest set.
    pub cycles: u64,
    /// Of these, cycles in which nobody's means changed between rounds, so that the result had to be the greatest set itself.
    pub cycles_exact: u64,
}

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It was applied.
    Applied,
    /// It delivers a letter that its sender has not sent yet, as far as that shard's log was applied.
    Waits,
}

impl Replay {
    /// Shards before their first entries.
    #[must_use]
    pub fn new(shards: usize) -> Self {
        Self {
            shards: vec![Shard::default(); shards],
            cycles: 0,
            cycles_exact: 0,
        }
    }

    /// Replays whole logs, one per shard.
    ///
    /// # Errors
    /// The first difference.
    pub fn whole(logs: &[Vec<Logged>]) -> Result<Self, Difference> {
        let mut replay = Self::new(logs.len());
        let mut next = vec![0; logs.len()];
        loop {
            let before = next.clone();
            for (shard, log) in logs.iter().enumerate() {
                while let Some(logged) = log.get(next[shard]) {
                    if replay.step(shard, logged)? == Step::Waits {
                        break;
                    }
                    next[shard] += 1;
                }
            }
            if next == before {
                break;
            }
        }
        for (shard, log) in logs.iter().enumerate() {
            if let Some(Op::Deliver {
                from,
                first,
                letters,
            }) = log.get(next[shard]).map(|logged| &logged.entry.op)
            {
                return Err(Difference {
                    place: format!(
                        "shard {shard}, index {}: letters from shard {from}",
                        next[shard] + 1
                    ),
                    expected: format!(
                        "that {} were sent",
                        replay.shards[*from].sent_to(shard).len()
                    ),
                    seen: format!("{first} and {} behind it", letters.len().saturating_sub(1)),
                });
            }
        }
        Ok(replay)
    }

    /// Applies the next entry of a shard.
    ///
    /// # Errors
    /// When it delivers other letters than were sent, is answered differently, or decides a cycle wrongly.
    pub fn step(&mut self, shard: usize, logged: &Logged) -> Result<Step, Difference> {
        let index = logged.entry.index;
        if let Op::Deliver {
            from,
            first,
            letters,
        } = &logged.entry.op
        {
            let Some(sender) = self.shards.get(*from) else {
                return Err(Difference {
                    place: format!("shard {shard}, index {index}"),
                    expected: format!("letters of one of {} shards", self.shards.len()),
                    seen: format!("letters of shard {from}"),
                });
            };
            let sent = sender.sent_to(shard);
            for (number, letter) in (*first..).zip(letters) {
                let at = usize::try_from(number)
                    .ok()
                    .and_then(|number| number.checked_sub(1));
                let Some(known) = at.and_then(|at| sent.get(at)) else {
                    return Ok(Step::Waits);
                };
                let place =
                    || format!("shard {shard}, index {index}: letter {number} of shard {from}");
                differ(place, known, letter)?;
            }
        }
        let answer = self.shards[shard].apply(&logged.entry);
        if answer.reply != Reply::Foreign {
            let place = |what: &str| {
                format!(
                    "shard {shard}, index {index}: {what} to {:?}",
                    logged.entry.op
                )
            };
            if let Some(applied) = &logged.applied {
                differ(|| place("outcome"), &answer, applied)?;
            }
            for told in &logged.told {
                differ(|| place("answer"), &answer.reply, told)?;
            }
        }
        if let Some(decided) = self.shards[shard].take_decided() {
            self.check_cycle(&decided)?;
        }
        Ok(Step::Applied)
    }

    /// A shard of the model.
    #[must_use]
    pub fn shard(&self, shard: usize) -> &Shard {
        &self.shards[shard]
    }

    /// A decided cycle's set lies between two greatest ones: of the least that each account had in any round, and of what it had
    /// in the last. Where nobody's means changed, these are the same (`docs/format/certificate.md`).
    fn check_cycle(&mut self, decided: &Decided) -> Result<(), Difference> {
        let set: Vec<InSet> = self
            .shards
            .iter()
            .flat_map(|shard| shard.cycle_set(decided.cycle))
            .collect();
        let last = decided.available.last().cloned().unwrap_or_default();
        let mut least = last.clone();
        for round in &decided.available {
            for (holder, &free) in round {
                least
                    .entry(holder.clone())
                    .and_modify(|least| *least = free.min(*least));
            }
        }
        let holders: Vec<Holder> = last.keys().cloned().collect();
        let (of_least, seen) = payers(&holders, &least, &set);
        let (of_last, _) = payers(&holders, &last, &set);
        let (low, high) = (greatest(&of_least), greatest(&of_last));
        let place = |what: &str| format!("cycle {}: {what}", decided.cycle);
        for (payers, found) in [(&of_least, &low), (&of_last, &high)] {
            if let Some(all) = by_trying_all(payers, CHOICES_MAX) {
                differ(|| place("the greatest set, by trying all"), &all, found)?;
            }
        }
        let between = (0..seen.len()).all(|at| low[at] <= seen[at] && seen[at] <= high[at]);
        if !between {
            return Err(Difference {
                place: place("units taken by account"),
                expected: format!("from {low:?} to {high:?} of {holders:?}"),
                seen: format!("{seen:?}"),
            });
        }
        self.cycles += 1;
        self.cycles_exact += u64::from(low == high);
        Ok(())
    }
}

/// The set as queues of units, and how many units of each are taken.
fn payers(
    holders: &[Holder],
    funds: &BTreeMap<Holder, i128>,
    set: &[InSet],
) -> (Vec<Payer>, Vec<usize>) {
    let mut payers = Vec::new();
    let mut taken = Vec::new();
    for holder in holders {
        let mut payer = Payer {
            funds: funds.get(holder).copied().unwrap_or(0),
            units: Vec::new(),
        };
        let mut count = 0;
        let mut last = None;
        for payment in set.iter().filter(|payment| payment.from == *holder) {
            let Ok(to) = holders.binary_search(&payment.to) else {
                continue;
            };
            let pay = Pay {
                to,
                minor: i128::from(payment.minor),
            };
            match payer.units.last_mut() {
                Some(unit) if payment.by_package && last == Some(payment.message) => unit.push(pay),
                _ => {
                    payer.units.push(vec![pay]);
                    count += usize::from(!payment.dropped);
                }
            }
            last = Some(payment.message);
        }
        payers.push(payer);
        taken.push(count);
    }
    (payers, taken)
}

/// Compares a shard's state with what was seen of it.
///
/// # Errors
/// The first account, payment, request or output that differs.
pub fn compare(shard: usize, expected: &Picture, seen: &Picture) -> Result<(), Difference> {
    by_key(shard, "account", &expected.accounts, &seen.accounts)?;
    by_key(shard, "payment", &expected.payments, &seen.payments)?;
    by_key(
        shard,
        "requests of message",
        &expected.cancels,
        &seen.cancels,
    )?;
    for (bank, output) in &expected.outputs {
        let place = |what: &str| format!("shard {shard}: {what} of {bank}");
        let Some(found) = seen.outputs.get(bank) else {
            continue;
        };
        for (item, other) in output.items.iter().zip(&found.items) {
            differ(|| place(&format!("output {}", item.number)), item, other)?;
        }
        let ends =
            |output: &crate::plain::Output| (output.items.len(), output.next, output.acknowledged);
        let what = "kept items, next number and acknowledged number";
        differ(|| place(what), &ends(output), &ends(found))?;
    }
    by_key(shard, "output of", &expected.outputs, &seen.outputs)
}

fn by_key<K: Ord + fmt::Debug, V: PartialEq + fmt::Debug>(
    shard: usize,
    what: &str,
    expected: &BTreeMap<K, V>,
    seen: &BTreeMap<K, V>,
) -> Result<(), Difference> {
    for key in expected.keys().chain(seen.keys()) {
        let place = || format!("shard {shard}: {what} {key:?}");
        differ(place, &expected.get(key), &seen.get(key))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
