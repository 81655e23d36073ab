//! Shard 0 also coordinates what the whole cluster does together: operators' acts, business days, netting cycles.
//!
//! Every step is an entry of its journal, so a new leader goes on where the old one stood.

use std::collections::{BTreeMap, BTreeSet};

use crate::apply::{AdminRefusal, Reply};
use crate::day::CYCLES_MAX;
use crate::directory::{CURRENCIES_MAX, NAME_MAX_BYTES, PARTICIPANTS_MAX};
use crate::entry::{
    AdminCommand, Available, ChannelMessage, CycleCommand, Drop, Flow, Incoming, NetResult,
};
use crate::layout::layout;
use crate::state::Ledger;
use crate::{
    BusinessDate, Currency, CycleNumber, LogIndex, ParticipantId, ShardId, Text, Timestamp,
};

/// What the coordinator keeps; empty in the other shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Coordinator {
    pub(crate) next_cycle: CycleNumber,
    pub(crate) running: Option<RunningCycle>,
    pub(crate) cycles: BTreeMap<CycleNumber, CycleSummary>,
    pub(crate) day: Option<CoordinatedDay>,
    pub(crate) last_date: Option<BusinessDate>,
    /// References of central-bank movements, with the business date after which they may go.
    pub(crate) references: BTreeMap<Text, BusinessDate>,
}

layout!(struct Coordinator { next_cycle, running, cycles, day, last_date, references });

/// The business day that is open in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CoordinatedDay {
    pub(crate) date: BusinessDate,
    /// Shards that have closed it; `None` while it is open.
    pub(crate) closed: Option<BTreeSet<ShardId>>,
}

layout!(struct CoordinatedDay { date, closed });

/// Where a running cycle stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CyclePhase {
    /// Shards fix their sets.
    Cutting,
    /// Shards reserve, or drop.
    Reserving,
    /// Decided; shards post.
    Posting,
}

layout!(enum CyclePhase { 0 => Cutting, 1 => Reserving, 2 => Posting });

/// The cycle that is running in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunningCycle {
    pub(crate) phase: CyclePhase,
    pub(crate) round: u32,
    answered: BTreeSet<ShardId>,
    dropped_in_round: bool,
    flows: BTreeMap<(ParticipantId, Currency), Sums>,
    pub(crate) summary: CycleSummary,
}

layout!(struct RunningCycle { phase, round, answered, dropped_in_round, flows, summary });

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    out_minor: u128,
    out_count: u32,
    in_minor: u128,
    in_count: u32,
}

layout!(struct Sums { out_minor, out_count, in_minor, in_count });

/// One cycle as the coordinator saw it: what its certificate is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleSummary {
    /// Its number.
    pub cycle: CycleNumber,
    /// Its business date.
    pub date: BusinessDate,
    /// The cut-off in the coordinator's journal.
    pub opened: LogIndex,
    /// Log time of the cut-off.
    pub opened_time: Timestamp,
    /// The cut in each shard's journal.
    pub cuts: BTreeMap<ShardId, LogIndex>,
    /// Payments in the set.
    pub set_count: u64,
    /// Rounds of reserving; the last one dropped nothing.
    pub rounds: u32,
    /// What was dropped, by round, then shard.
    pub drops: Vec<Drop>,
    /// What was available to each participant in the last round.
    pub available: Vec<Available>,
    /// The decision in the coordinator's journal; zero when the cycle was given up.
    pub decided: LogIndex,
    /// The posting in each shard's journal.
    pub posts: BTreeMap<ShardId, LogIndex>,
    /// Each participant's result.
    pub results: Vec<NetResult>,
    /// Log time of the end.
    pub ended_time: Timestamp,
    /// Whether it was given up before its decision.
    pub abandoned: bool,
}

layout!(struct CycleSummary {
    cycle, date, opened, opened_time, cuts, set_count, rounds, drops, available, decided, posts, results, ended_time,
    abandoned
});

impl Ledger {
    pub(crate) fn admin(&mut self, command: &AdminCommand) -> Reply {
        if self.shard().get() != 0 {
            return Reply::Refused(AdminRefusal::NotCoordinator);
        }
        if let Err(refusal) = self.admit(command) {
            return Reply::Refused(refusal);
        }
        match command {
            AdminCommand::OpenDay { date } => {
                self.coordinator.day = Some(CoordinatedDay {
                    date: *date,
                    closed: None,
                });
                self.coordinator.last_date = Some(*date);
                let retention = u32::from(
                    self.genesis
                        .as_ref()
                        .map_or(1, |genesis| genesis.retention_days),
                );
                // Movements made before the first business day count with it.
                for dated in self.coordinator.references.values_mut() {
                    if *dated == BusinessDate::default() {
                        *dated = *date;
                    }
                }
                self.coordinator
                    .references
                    .retain(|_, kept| kept.days() + retention >= date.days());
            }
            AdminCommand::CloseDay => {
                if let Some(day) = &mut self.coordinator.day {
                    day.closed = Some(BTreeSet::new());
                }
            }
            AdminCommand::Fund { reference, .. } => {
                let date = self.coordinator.last_date.unwrap_or_default();
                self.coordinator.references.insert(*reference, date);
            }
            AdminCommand::AddParticipant(_)
            | AdminCommand::OpenAccount(_)
            | AdminCommand::CutOff { .. } => {}
        }
        // Every shard learns of it in the same order, so participants have the same numbers everywhere. The coordinator's
        // own shard acts with this entry and needs no message.
        for shard in 1..self.shards() {
            self.send(ShardId::new(shard), ChannelMessage::Admin(command.clone()));
        }
        self.receive_admin(command);
        Reply::Done
    }

    pub(crate) fn admit(&self, command: &AdminCommand) -> Result<(), AdminRefusal> {
        let day_open = self
            .coordinator
            .day
            .as_ref()
            .is_some_and(|day| day.closed.is_none());
        match command {
            AdminCommand::AddParticipant(terms) => {
                if self.directory.find(terms.bic).is_some() {
                    Err(AdminRefusal::ParticipantExists)
                } else if terms.home.get() >= self.shards() {
                    Err(AdminRefusal::ShardUnknown)
                } else if self.directory.iter().count() >= PARTICIPANTS_MAX
                    || terms.name.len() > NAME_MAX_BYTES
                {
                    Err(AdminRefusal::TooMany)
                } else {
                    Ok(())
                }
            }
            AdminCommand::OpenAccount(terms) => {
                let participant = self
                    .directory
                    .find(terms.bic)
                    .ok_or(AdminRefusal::ParticipantUnknown)?;
                if !terms.currency.is_listed() {
                    Err(AdminRefusal::CurrencyUnknown)
                } else if self.place(participant, terms.currency)
                    != crate::directory::AccountPlace::None
                {
                    Err(AdminRefusal::AccountExists)
                } else if self.directory.currency_place(terms.currency).is_none()
                    && self.directory.currencies().len() >= CURRENCIES_MAX
                {
                    Err(AdminRefusal::TooMany)
                } else if self.coordinator.running.is_some() {
                    Err(AdminRefusal::CycleRunning)
                } else {
                    Ok(())
                }
            }
            AdminCommand::Fund {
                reference,
                bic,
                currency,
                ..
            } => {
                let participant = self
                    .directory
                    .find(*bic)
                    .ok_or(AdminRefusal::ParticipantUnknown)?;
                if self.place(participant, *currency) == crate::directory::AccountPlace::None {
                    Err(AdminRefusal::AccountMissing)
                } else if self.coordinator.references.contains_key(reference) {
                    Err(AdminRefusal::ReferenceUsed)
                } else {
                    Ok(())
                }
            }
            AdminCommand::OpenDay { date } => {
                if self.coordinator.day.is_some() {
                    Err(AdminRefusal::DayOpen)
                } else if self.coordinator.last_date.is_some_and(|last| *date <= last) {
                    Err(AdminRefusal::DateNotLater)
                } else {
                    Ok(())
                }
            }
            AdminCommand::CutOff { .. } => day_open.then_some(()).ok_or(AdminRefusal::DayNotOpen),
            AdminCommand::CloseDay => {
                if !day_open {
                    Err(AdminRefusal::DayNotOpen)
                } else if self.coordinator.running.is_some() {
                    Err(AdminRefusal::CycleRunning)
                } else {
                    Ok(())
                }
            }
        }
    }

    pub(crate) fn cycle_command(&mut self, command: CycleCommand) -> Reply {
        if self.shard().get() != 0 {
            return Reply::Refused(AdminRefusal::NotCoordinator);
        }
        match command {
            CycleCommand::Open => self.open_cycle(),
            CycleCommand::Abandon => self.abandon_cycle(),
        }
    }

    fn open_cycle(&mut self) -> Reply {
        let Some(date) = self
            .coordinator
            .day
            .as_ref()
            .filter(|day| day.closed.is_none())
            .map(|day| day.date)
        else {
            return Reply::Refused(AdminRefusal::DayNotOpen);
        };
        if self.coordinator.running.is_some() {
            return Reply::Refused(AdminRefusal::CycleRunning);
        }
        let cycle = self.coordinator.next_cycle.next();
        assert!(
            cycle.get() <= CYCLES_MAX,
            "cycle numbers end at {CYCLES_MAX}"
        );
        self.coordinator.next_cycle = cycle;
        self.coordinator.running = Some(RunningCycle {
            phase: CyclePhase::Cutting,
            round: 0,
            answered: BTreeSet::new(),
            dropped_in_round: false,
            flows: BTreeMap::new(),
            summary: CycleSummary {
                cycle,
                date,
                opened: self.index,
                opened_time: self.now,
                cuts: BTreeMap::new(),
                set_count: 0,
                rounds: 0,
                drops: Vec::new(),
                available: Vec::new(),
                decided: LogIndex::default(),
                posts: BTreeMap::new(),
                results: Vec::new(),
                ended_time: Timestamp::ZERO,
                abandoned: false,
            },
        });
        self.send_all(&ChannelMessage::Cut { cycle });
        Reply::Done
    }

    fn abandon_cycle(&mut self) -> Reply {
        let Some(mut running) = self
            .coordinator
            .running
            .take_if(|running| running.phase != CyclePhase::Posting)
        else {
            return Reply::Refused(AdminRefusal::NoCycle);
        };
        let cycle = running.summary.cycle;
        running.summary.abandoned = true;
        running.summary.ended_time = self.now;
        self.coordinator.cycles.insert(cycle, running.summary);
        self.send_all(&ChannelMessage::End {
            cycle,
            abandoned: true,
        });
        Reply::Done
    }

    /// The running cycle, when this is the answer of a shard that has not answered this phase yet.
    fn expect_answer(
        &mut self,
        from: ShardId,
        cycle: CycleNumber,
        phase: CyclePhase,
    ) -> Option<RunningCycle> {
        let fits = |running: &mut RunningCycle| {
            running.summary.cycle == cycle
                && running.phase == phase
                && !running.answered.contains(&from)
        };
        let mut running = self.coordinator.running.take_if(fits)?;
        running.answered.insert(from);
        Some(running)
    }

    pub(crate) fn receive_cut_sums(
        &mut self,
        from: ShardId,
        cycle: CycleNumber,
        cut: LogIndex,
        sums: &[Flow],
    ) {
        let Some(mut running) = self.expect_answer(from, cycle, CyclePhase::Cutting) else {
            return;
        };
        running.summary.cuts.insert(from, cut);
        for flow in sums {
            let total = running
                .flows
                .entry((flow.participant, flow.currency))
                .or_default();
            total.out_minor += flow.out_minor;
            total.out_count += flow.out_count;
            total.in_minor += flow.in_minor;
            total.in_count += flow.in_count;
            running.summary.set_count += u64::from(flow.out_count);
        }
        if running.answered.len() == usize::from(self.shards()) {
            assert_balanced(&running);
            running.phase = CyclePhase::Reserving;
            self.start_round(&mut running);
        }
        self.coordinator.running = Some(running);
    }

    fn start_round(&mut self, running: &mut RunningCycle) {
        running.round += 1;
        running.answered.clear();
        running.dropped_in_round = false;
        running.summary.available.clear();
        let (cycle, round) = (running.summary.cycle, running.round);
        running.summary.rounds = round;
        let mut incoming: Vec<Vec<Incoming>> = vec![Vec::new(); usize::from(self.shards())];
        for (&(participant, currency), sums) in &running.flows {
            incoming[self.home_of(participant).index()].push(Incoming {
                participant,
                currency,
                minor: sums.in_minor,
                count: sums.in_count,
            });
        }
        for (shard, incoming) in (0..).map(ShardId::new).zip(incoming) {
            self.send(
                shard,
                ChannelMessage::Reserve {
                    cycle,
                    round,
                    incoming,
                },
            );
        }
    }

    pub(crate) fn receive_reserved(
        &mut self,
        from: ShardId,
        cycle: CycleNumber,
        round: u32,
        available: &[Available],
        drops: &[Drop],
        reductions: &[Incoming],
    ) {
        if self
            .coordinator
            .running
            .as_ref()
            .is_none_or(|running| running.round != round)
        {
            return;
        }
        let Some(mut running) = self.expect_answer(from, cycle, CyclePhase::Reserving) else {
            return;
        };
        running.summary.available.extend_from_slice(available);
        running.summary.drops.extend_from_slice(drops);
        running.dropped_in_round |= !drops.is_empty();
        for drop in drops {
            let sums = running
                .flows
                .entry((drop.participant, drop.currency))
                .or_default();
            sums.out_minor -= drop.minor;
            sums.out_count -= drop.count;
        }
        for reduction in reductions {
            let sums = running
                .flows
                .entry((reduction.participant, reduction.currency))
                .or_default();
            sums.in_minor -= reduction.minor;
            sums.in_count -= reduction.count;
        }
        if running.answered.len() == usize::from(self.shards()) {
            assert_balanced(&running);
            // Rounds ascend, so the list is in order once each round's part is.
            let drops = &mut running.summary.drops;
            let begun = drops.partition_point(|drop| drop.round < round);
            drops[begun..].sort_by_key(|drop| (drop.participant, drop.currency));
            if running.dropped_in_round {
                self.start_round(&mut running);
            } else {
                // The commit point of the cycle: from here on it is posted everywhere.
                running.phase = CyclePhase::Posting;
                running.answered.clear();
                running.summary.decided = self.index;
                self.send_all(&ChannelMessage::Decide {
                    cycle,
                    decided: self.index,
                });
            }
        }
        self.coordinator.running = Some(running);
    }

    pub(crate) fn receive_posted(
        &mut self,
        from: ShardId,
        cycle: CycleNumber,
        posted: LogIndex,
        results: &[NetResult],
    ) {
        let Some(mut running) = self.expect_answer(from, cycle, CyclePhase::Posting) else {
            return;
        };
        running.summary.posts.insert(from, posted);
        running.summary.results.extend_from_slice(results);
        if running.answered.len() == usize::from(self.shards()) {
            assert_zero_sum(&running.summary);
            running
                .summary
                .results
                .sort_by_key(|result| (result.participant, result.currency));
            running
                .summary
                .available
                .sort_by_key(|available| (available.participant, available.currency));
            running.summary.ended_time = self.now;
            self.coordinator.cycles.insert(cycle, running.summary);
            self.send_all(&ChannelMessage::End {
                cycle,
                abandoned: false,
            });
        } else {
            self.coordinator.running = Some(running);
        }
    }

    pub(crate) fn receive_day_closed(&mut self, from: ShardId, date: BusinessDate) {
        let shards = usize::from(self.shards());
        let Some(day) = self.coordinator.day.as_mut().filter(|day| day.date == date) else {
            return;
        };
        let closed = day.closed.get_or_insert_default();
        closed.insert(from);
        if closed.len() == shards {
            self.coordinator.day = None;
        }
    }

    /// A cycle that has ended (or was given up), in the coordinator's shard, within retention.
    #[must_use]
    pub fn cycle_summary(&self, cycle: CycleNumber) -> Option<&CycleSummary> {
        self.coordinator.cycles.get(&cycle)
    }

    /// All ended cycles within retention, in the coordinator's shard.
    pub fn cycle_summaries(&self) -> impl Iterator<Item = &CycleSummary> {
        self.coordinator.cycles.values()
    }

    /// The running cycle's number, phase and round, in the coordinator's shard.
    #[must_use]
    pub fn cycle_running(&self) -> Option<(CycleNumber, CyclePhase, u32)> {
        self.coordinator
            .running
            .as_ref()
            .map(|running| (running.summary.cycle, running.phase, running.round))
    }

    /// The business day that is open (or closing) in the cluster, in the coordinator's shard.
    #[must_use]
    pub fn cluster_day(&self) -> Option<(BusinessDate, bool)> {
        self.coordinator
            .day
            .as_ref()
            .map(|day| (day.date, day.closed.is_some()))
    }

    /// The last business day that was opened in the cluster, in the coordinator's shard.
    #[must_use]
    pub const fn last_business_date(&self) -> Option<BusinessDate> {
        self.coordinator.last_date
    }
}

/// What all pay is what all receive, in each currency.
fn assert_balanced(running: &RunningCycle) {
    let mut totals: BTreeMap<Currency, (u128, u128)> = BTreeMap::new();
    for (&(_, currency), sums) in &running.flows {
        let total = totals.entry(currency).or_default();
        total.0 += sums.out_minor;
        total.1 += sums.in_minor;
    }
    for (currency, (out, incoming)) in totals {
        assert_eq!(
            out, incoming,
            "cycle {} does not balance in {currency}",
            running.summary.cycle
        );
    }
}

/// Netting moves money between participants; it never makes or loses any.
fn assert_zero_sum(summary: &CycleSummary) {
    let mut totals: BTreeMap<Currency, i128> = BTreeMap::new();
    for result in &summary.results {
        *totals.entry(result.currency).or_default() += result.closing_minor - result.opening_minor;
    }
    for (currency, total) in totals {
        assert_eq!(
            total, 0,
            "cycle {} does not sum to zero in {currency}",
            summary.cycle
        );
    }
}
