//! What shard 0 decides for the whole cluster (ADR 0011): acts, days, cycles.

use std::collections::{BTreeMap, BTreeSet};

use super::{Shard, refused};
use crate::plain::{Act, Dropped, Flow, Holder, Letter, NetResult, Reply, Sum};

/// The most banks and currencies of a cluster, and bytes of a name.
const BANKS_MAX: usize = 65_000;
const CURRENCIES_MAX: usize = 250;
const NAME_MAX_BYTES: usize = 140;

#[derive(Clone, Debug, Default)]
pub(super) struct Coordinator {
    last_cycle: u32,
    running: Option<Cycle>,
    /// The open day's date, and who has closed it once it is being closed.
    day: Option<(u32, Option<BTreeSet<usize>>)>,
    last_date: Option<u32>,
    /// References of movements, with the business date that they count with; `None` before the first day.
    references: BTreeMap<String, Option<u32>>,
    pub(super) decided: Option<Decided>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Cutting,
    Reserving,
    Posting,
}

#[derive(Clone, Debug)]
struct Cycle {
    cycle: u32,
    phase: Phase,
    round: u32,
    answered: BTreeSet<usize>,
    dropped: bool,
    flows: BTreeMap<Holder, Flow>,
    /// By round.
    available: Vec<BTreeMap<Holder, i128>>,
    results: BTreeMap<Holder, NetResult>,
}

/// A cycle at its commit point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The cycle.
    pub cycle: u32,
    /// What was available to each account, by round.
    pub available: Vec<BTreeMap<Holder, i128>>,
}

impl Shard {
    pub(super) fn operate(&mut self, act: &Act) -> Reply {
        if self.me() != 0 {
            return refused("NotCoordinator");
        }
        if let Some(refusal) = self.refusal(act) {
            return refused(refusal);
        }
        let retention = self.rules().retention_days;
        let coordinator = &mut self.coordinator;
        match act {
            Act::OpenDay(date) => {
                coordinator.day = Some((*date, None));
                coordinator.last_date = Some(*date);
                coordinator.references.retain(|_, of| {
                    let of = *of.get_or_insert(*date);
                    of as usize + retention >= *date as usize
                });
            }
            Act::CloseDay => {
                if let Some((_, closed)) = &mut coordinator.day {
                    *closed = Some(BTreeSet::new());
                }
            }
            Act::Fund { reference, .. } => {
                let date = coordinator.last_date;
                coordinator.references.insert(reference.clone(), date);
            }
            Act::AddBank(_) | Act::OpenAccount { .. } | Act::CutOff(_) | Act::Foreign(_) => {}
        }
        for to in 1..self.rules().shards {
            self.send(to, Letter::Act(act.clone()));
        }
        self.take_act(act);
        Reply::Done
    }

    fn refusal(&self, act: &Act) -> Option<&'static str> {
        let coordinator = &self.coordinator;
        let day_open = matches!(coordinator.day, Some((_, None)));
        let first = |checks: &[(bool, &'static str)]| {
            checks
                .iter()
                .find(|(wrong, _)| *wrong)
                .map(|(_, refusal)| *refusal)
        };
        match act {
            Act::AddBank(terms) => first(&[
                (self.terms(&terms.bank).is_some(), "ParticipantExists"),
                (terms.home >= self.rules().shards, "ShardUnknown"),
                (
                    self.banks.len() >= BANKS_MAX || terms.name_len > NAME_MAX_BYTES,
                    "TooMany",
                ),
            ]),
            Act::OpenAccount { holder, listed, .. } => {
                let currencies = self.currencies();
                first(&[
                    (self.terms(&holder.bank).is_none(), "ParticipantUnknown"),
                    (!listed, "CurrencyUnknown"),
                    (
                        self.has_account(&holder.bank, &holder.currency),
                        "AccountExists",
                    ),
                    (
                        !currencies.contains(&holder.currency)
                            && currencies.len() >= CURRENCIES_MAX,
                        "TooMany",
                    ),
                    (coordinator.running.is_some(), "CycleRunning"),
                ])
            }
            Act::Fund {
                reference, holder, ..
            } => first(&[
                (self.terms(&holder.bank).is_none(), "ParticipantUnknown"),
                (
                    !self.has_account(&holder.bank, &holder.currency),
                    "AccountMissing",
                ),
                (
                    coordinator.references.contains_key(reference),
                    "ReferenceUsed",
                ),
            ]),
            Act::OpenDay(date) => first(&[
                (coordinator.day.is_some(), "DayOpen"),
                (
                    coordinator.last_date.is_some_and(|last| *date <= last),
                    "DateNotLater",
                ),
            ]),
            Act::CutOff(_) => first(&[(!day_open, "DayNotOpen")]),
            Act::CloseDay => first(&[
                (!day_open, "DayNotOpen"),
                (coordinator.running.is_some(), "CycleRunning"),
            ]),
            Act::Foreign(_) => None,
        }
    }

    pub(super) fn open_cycle(&mut self) -> Reply {
        if self.me() != 0 {
            return refused("NotCoordinator");
        }
        if !matches!(self.coordinator.day, Some((_, None))) {
            return refused("DayNotOpen");
        }
        if self.coordinator.running.is_some() {
            return refused("CycleRunning");
        }
        self.coordinator.last_cycle += 1;
        let cycle = self.coordinator.last_cycle;
        self.coordinator.running = Some(Cycle {
            cycle,
            phase: Phase::Cutting,
            round: 0,
            answered: BTreeSet::new(),
            dropped: false,
            flows: BTreeMap::new(),
            available: Vec::new(),
            results: BTreeMap::new(),
        });
        self.send_all(&Letter::Cut { cycle });
        Reply::Done
    }

    pub(super) fn abandon_cycle(&mut self) -> Reply {
        if self.me() != 0 {
            return refused("NotCoordinator");
        }
        match &self.coordinator.running {
            Some(running) if running.phase != Phase::Posting => {
                let cycle = running.cycle;
                self.coordinator.running = None;
                let abandoned = true;
                self.send_all(&Letter::End { cycle, abandoned });
                Reply::Done
            }
            _ => refused("NoCycle"),
        }
    }

    /// The running cycle, if this is the answer that it waits for.
    fn awaited(&mut self, from: usize, cycle: u32, phase: Phase) -> Option<Cycle> {
        let running = self.coordinator.running.as_mut()?;
        let fits =
            running.cycle == cycle && running.phase == phase && !running.answered.contains(&from);
        if !fits {
            return None;
        }
        running.answered.insert(from);
        self.coordinator.running.take()
    }

    pub(super) fn take_sums(
        &mut self,
        from: usize,
        cycle: u32,
        _cut: u64,
        sums: &BTreeMap<Holder, Flow>,
    ) {
        let Some(mut running) = self.awaited(from, cycle, Phase::Cutting) else {
            return;
        };
        for (holder, flow) in sums {
            let total = running.flows.entry(holder.clone()).or_default();
            total.out = (total.out.0 + flow.out.0, total.out.1 + flow.out.1);
            total.into = (total.into.0 + flow.into.0, total.into.1 + flow.into.1);
        }
        if running.answered.len() == self.rules().shards {
            running.phase = Phase::Reserving;
            self.next_round(&mut running);
        }
        self.coordinator.running = Some(running);
    }

    fn next_round(&mut self, running: &mut Cycle) {
        running.round += 1;
        running.answered.clear();
        running.dropped = false;
        running.available.push(BTreeMap::new());
        for to in 0..self.rules().shards {
            let incoming: BTreeMap<Holder, Sum> = running
                .flows
                .iter()
                .filter(|(holder, _)| self.home(&holder.bank) == to)
                .map(|(holder, flow)| (holder.clone(), flow.into))
                .collect();
            let (cycle, round) = (running.cycle, running.round);
            let letter = Letter::Reserve {
                cycle,
                round,
                incoming,
            };
            self.send(to, letter);
        }
    }

    pub(super) fn take_reserved(
        &mut self,
        from: usize,
        cycle: u32,
        round: u32,
        available: &BTreeMap<Holder, i128>,
        drops: &BTreeMap<Holder, Dropped>,
        reductions: &BTreeMap<Holder, Sum>,
    ) {
        let current = self.coordinator.running.as_ref().map(|r| r.round);
        if current != Some(round) {
            return;
        }
        let Some(mut running) = self.awaited(from, cycle, Phase::Reserving) else {
            return;
        };
        if let Some(seen) = running.available.last_mut() {
            seen.extend(
                available
                    .iter()
                    .map(|(holder, &free)| (holder.clone(), free)),
            );
        }
        running.dropped |= !drops.is_empty();
        for (holder, Dropped { gone, .. }) in drops {
            let out = &mut running.flows.entry(holder.clone()).or_default().out;
            *out = (out.0 - gone.0, out.1 - gone.1);
        }
        for (holder, less) in reductions {
            let into = &mut running.flows.entry(holder.clone()).or_default().into;
            *into = (into.0 - less.0, into.1 - less.1);
        }
        if running.answered.len() == self.rules().shards {
            if running.dropped {
                self.next_round(&mut running);
            } else {
                running.phase = Phase::Posting;
                running.answered.clear();
                let decided = self.index;
                self.coordinator.decided = Some(Decided {
                    cycle,
                    available: running.available.clone(),
                });
                self.send_all(&Letter::Decide { cycle, decided });
            }
        }
        self.coordinator.running = Some(running);
    }

    pub(super) fn take_posted(
        &mut self,
        from: usize,
        cycle: u32,
        results: &BTreeMap<Holder, NetResult>,
    ) {
        let Some(mut running) = self.awaited(from, cycle, Phase::Posting) else {
            return;
        };
        running.results.extend(
            results
                .iter()
                .map(|(holder, result)| (holder.clone(), *result)),
        );
        if running.answered.len() == self.rules().shards {
            let abandoned = false;
            self.send_all(&Letter::End { cycle, abandoned });
        } else {
            self.coordinator.running = Some(running);
        }
    }

    pub(super) fn take_day_closed(&mut self, from: usize, date: u32) {
        let shards = self.rules().shards;
        let Some((open, closed)) = &mut self.coordinator.day else {
            return;
        };
        if *open != date {
            return;
        }
        let closed = closed.get_or_insert_default();
        closed.insert(from);
        if closed.len() == shards {
            self.coordinator.day = None;
        }
    }
}
