//! One row: a cluster, its load, the phases, what they took, and the record's check.

use std::time::{Duration, Instant};

use clearspan_ledger::ShardId;
use clearspan_ledger::message::Settlement;
use clearspan_node::client::{Ask, Client, Retry};
use serde_json::Value;

use super::check::Record;
use super::reading::{Read, Readers, Task};
use super::report::{
    Checks, Fault, Kind, Layout, Phase, PhaseName, Phases, Retried, Row, ShardGap, Start, Urgent,
};
use super::rows::RowSpec;
use super::{Options, Progress, cost, latency, share};
use crate::cluster::{self, Answered, ClusterError, Crowd, Form, Load, Run, Stage, Watch, now};

/// Between looks at what is under way.
const LOOK: Duration = Duration::from_millis(20);
/// Between looks at a cycle, which takes milliseconds.
const LOOK_CYCLE: Duration = Duration::from_millis(2);
/// A cycle that is not settled by then is given up.
const CYCLE_PATIENCE: Duration = Duration::from_secs(60);
/// Urgent payments are made for so many seconds more than asked for, and one more for each so many other payments: they
/// must not run out before receipts are read, on a slow machine either.
const SPARE_S: u64 = 60;
const SPARE_PAYMENTS_PER_S: u64 = 2000;

type Report<'a> = &'a mut dyn FnMut(&'static str, u64, u64);

/// A cluster under its load.
struct Rehearsal<'a> {
    spec: &'static RowSpec,
    options: &'a Options,
    stage: Stage,
    bulk: Crowd,
    urgent: Crowd,
    readers: Readers,
    operator: Client,
    /// When the site was lost.
    lost_at: Option<Instant>,
}

pub(super) fn run(
    spec: &'static RowSpec,
    start: Start,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Row, ClusterError> {
    let mut tell = |doing, done, of| {
        progress(Progress {
            row: spec.name,
            start,
            doing,
            done,
            of,
        });
    };
    tell("start", 0, 0);
    let stage = cluster::Options {
        participants: options.load.participants,
        shards: options.load.shards,
        ..cluster::Options::full(options.program.clone(), options.dir.clone())
    };
    let mut stage = Stage::up(&stage, spec.sites, "")?;
    stage.put(spec.place())?;
    let held = (spec.kind == Kind::Scaling)
        .then(|| share::hold(&mut stage, options.share_cores))
        .transpose()?;
    let mut rehearsal = Rehearsal {
        spec,
        options,
        bulk: Crowd::connect(&stage.senders)?,
        urgent: Crowd::connect(&stage.senders)?,
        readers: Readers::new(&stage.senders, None)?,
        operator: stage.operator()?,
        stage,
        lost_at: None,
    };
    let mut row = rehearsal.row(start, &mut tell)?;
    row.layout.share = held.as_ref().map(|held| held.share.clone());
    // First the processes, then the groups that held them.
    drop(rehearsal);
    drop(held);
    Ok(row)
}

impl Rehearsal<'_> {
    fn row(&mut self, start: Start, tell: Report<'_>) -> Result<Row, ClusterError> {
        tell("make messages", 0, 0);
        let load = &self.options.load;
        let form = match (start, load.text) {
            (Start::Xml, _) => Form::Xml,
            (Start::Compact, true) => Form::Text,
            (Start::Compact, false) => Form::Bare,
        };
        let stage = &mut self.stage;
        let packages = stage.draw_in(form, load.payments, load.package_len, Settlement::Net);
        let interval = Duration::from_micros(load.urgent_interval_us.max(1));
        let spare = Duration::from_secs(SPARE_S + load.payments / SPARE_PAYMENTS_PER_S);
        let spare = u64::try_from(spare.as_nanos() / interval.as_nanos()).unwrap_or(u64::MAX);
        let urgent = stage.draw_in(form, load.urgent + spare, 1, Load::URGENT);
        let participants = u32::from(load.participants.max(1));
        let least = usize::try_from(load.urgent.div_ceil(u64::from(participants)));
        let watch = Watch::of_at_least(least.unwrap_or(usize::MAX));

        let before = cost::look(&mut self.stage)?;
        let pending = self
            .urgent
            .start_watched(&urgent, Some(interval * participants), &watch);
        let zero = pending.begun;
        tell("urgent alone", 0, 0);
        std::thread::sleep(Duration::from_millis(self.options.alone_ms));

        let reception = self.reception(&packages, tell)?;
        let ends = self.readers.run(|_| Task::End)?;
        let netting = self.netting(tell)?;
        let (receipts_from, receipts_to, receipts) = self.receipts(&ends, tell)?;

        // After a loss every participant sends at least once more: how long its shard acknowledged nothing is told by that.
        let again = self.lost_at.map(|at| at + interval * participants * 2);
        watch.end(again.unwrap_or(receipts_to).max(receipts_to));
        let total = load.urgent;
        while watch.answered() < total && !watch.failed() {
            tell("urgent", watch.answered(), total);
            std::thread::sleep(LOOK);
        }
        let urgents = self.urgent.finish(pending)?;
        let payments = reception.payments() + urgents.payments();
        let after = cost::look(&mut self.stage)?;
        let fault = self.fault(zero, &reception, &urgents, &receipts, tell)?;
        let checks = self.check(&packages, &urgent, &urgents, tell)?;

        let at = |instant: Instant| instant.saturating_duration_since(zero).as_secs_f64();
        let phase = |from: Instant, to: Instant, payments: u64| {
            let seconds = (to - from).as_secs_f64();
            Phase {
                from_s: at(from),
                seconds,
                payments,
                payments_per_s: payments as f64 / seconds.max(f64::MIN_POSITIVE),
            }
        };
        let answers = &urgents.answers;
        let received = reception.answers.last().map_or(reception.begun, |a| a.at);
        let alone = latency::between(answers, zero, reception.begun);
        let during = latency::between(answers, netting.from, receipts_to);
        Ok(Row {
            name: self.spec.name.to_owned(),
            title: self.spec.title.to_owned(),
            kind: self.spec.kind,
            start,
            layout: self.layout()?,
            phases: Phases {
                reception: phase(reception.begun, received, reception.payments()),
                netting: phase(netting.from, netting.to, netting.payments),
                receipts: phase(receipts_from, receipts_to, netting.payments),
                cycle_s: netting.cycle_s,
                receipts_bytes: receipts.iter().map(|read| read.bytes).sum(),
            },
            urgent: Urgent {
                alone: (alone.count > 0).then_some(alone),
                before: latency::between(answers, zero, netting.from),
                during,
                overall: latency::all(answers),
                during_against_alone: (alone.p99_ms > 0.0 && during.count > 0)
                    .then(|| during.p99_ms / alone.p99_ms),
                series: latency::series(answers, zero),
            },
            cost: cost::between(&before, &after, payments),
            fault,
            checks,
            against_first: None,
            against_near: None,
        })
    }

    fn layout(&mut self) -> Result<Layout, ClusterError> {
        let nodes = self.stage.lab.report()?.nodes;
        let witnesses = nodes.iter().filter(|node| node.witness).count();
        let sites = self.stage.lab.definition().sites.len();
        let pairs = if sites > 2 {
            3
        } else {
            sites.saturating_sub(1)
        };
        Ok(Layout {
            sites: self.spec.sites.to_owned(),
            data_nodes: nodes.len() - witnesses,
            witnesses,
            km: self.spec.km,
            rtt_us: self.spec.rtt_us.into_iter().take(pairs).collect(),
            share: None,
        })
    }

    /// Loses the site, in a row that does, once.
    fn lose(&mut self, phase: PhaseName) -> Result<(), ClusterError> {
        if self.spec.fault == Some(phase) && self.lost_at.is_none() {
            let site = self.site();
            self.lost_at = Some(now());
            self.stage.lab.kill(&site)?;
        }
        Ok(())
    }

    /// The site that is lost: the first, which leads the shard that coordinates.
    fn site(&self) -> String {
        let sites = &self.stage.lab.definition().sites;
        sites.first().cloned().unwrap_or_default()
    }

    fn reception(&mut self, packages: &Load, tell: Report<'_>) -> Result<Run, ClusterError> {
        let load = &self.options.load;
        let interval = Duration::from_micros(load.package_interval_us);
        let pace = interval * u32::from(load.participants.max(1));
        let watch = Watch::default();
        let total: u64 = packages.messages.iter().map(|own| own.len() as u64).sum();
        let pace = (!pace.is_zero()).then_some(pace);
        let pending = self.bulk.start_watched(packages, pace, &watch);
        while watch.answered() < total && !watch.failed() {
            let answered = watch.answered();
            tell("reception", answered * packages.len, total * packages.len);
            if answered >= total / 2 {
                self.lose(PhaseName::Reception)?;
            }
            std::thread::sleep(LOOK);
        }
        // A short reception can end between two looks.
        self.lose(PhaseName::Reception)?;
        self.bulk.finish(pending)
    }

    fn netting(&mut self, tell: Report<'_>) -> Result<Netting, ClusterError> {
        tell("netting", 0, 0);
        let from = now();
        let ask = Ask::post("/v1/admin/cycle/open", "", Retry::NothingDone);
        let opened: Value = self.operator.json(&ask)?;
        self.lose(PhaseName::Netting)?;
        let cycle = opened.get("cycle").and_then(Value::as_u64).unwrap_or(1);
        let path = format!("/v1/cycles/{cycle}");
        loop {
            let found: Value = self.operator.json(&Ask::get(&path))?;
            if found.pointer("/0/state").and_then(Value::as_str) == Some("settled") {
                let to = now();
                let results = found.pointer("/0/results").and_then(Value::as_array);
                let payments = results.into_iter().flatten();
                let payments =
                    payments.filter_map(|result| result.get("settled").and_then(Value::as_u64));
                return Ok(Netting {
                    from,
                    to,
                    payments: payments.sum(),
                    cycle_s: self.cycle_s(cycle)?,
                });
            }
            if from.elapsed() > CYCLE_PATIENCE {
                return Err(ClusterError::Unexpected(format!(
                    "the cycle did not settle within {} s: {found}",
                    CYCLE_PATIENCE.as_secs()
                )));
            }
            std::thread::sleep(LOOK_CYCLE);
        }
    }

    /// In log time.
    fn cycle_s(&mut self, cycle: u64) -> Result<f64, ClusterError> {
        let status: Value = self.operator.json(&Ask::get("/v1/status"))?;
        let ended = status.get("last_cycles").and_then(Value::as_array);
        let mut ended = ended.into_iter().flatten();
        let ended = ended.find(|ended| ended.get("cycle").and_then(Value::as_u64) == Some(cycle));
        let ns = ended.and_then(|ended| ended.get("duration_ns")?.as_f64());
        Ok(ns.unwrap_or(0.0) / 1e9)
    }

    fn receipts(
        &mut self,
        ends: &[Read],
        tell: Report<'_>,
    ) -> Result<(Instant, Instant, Vec<Read>), ClusterError> {
        let from = now();
        let all = ends.len() as u64;
        let reading = self
            .readers
            .start(|place| Task::From(ends.get(place).map_or(1, |read| read.end)));
        // Early, so that most of what is read is read elsewhere.
        self.lose(PhaseName::Receipts)?;
        while reading.done() < all {
            tell("receipts", reading.done(), all);
            std::thread::sleep(LOOK);
        }
        let read = self.readers.finish(reading)?;
        Ok((from, now(), read))
    }

    /// What the loss of the site did, once its nodes are back.
    fn fault(
        &mut self,
        zero: Instant,
        reception: &Run,
        urgents: &Run,
        receipts: &[Read],
        tell: Report<'_>,
    ) -> Result<Option<Fault>, ClusterError> {
        let (Some(phase), Some(lost_at)) = (self.spec.fault, self.lost_at) else {
            return Ok(None);
        };
        tell("the site comes back", 0, 0);
        let site = self.site();
        let (mut here, mut stays) = (Vec::new(), String::new());
        for node in self.stage.lab.report()?.nodes {
            if node.site == site {
                here.push(node.name);
            } else if !node.witness {
                stays = node.name;
            }
        }
        let wanted = self.stage.committed(&stays)?;
        let begun = now();
        self.stage.lab.restart(&site)?;
        for node in &here {
            self.stage.wait_until_applied(node, &wanted)?;
        }
        let caught_up_s = begun.elapsed().as_secs_f64();
        let gaps = self.gaps(&urgents.answers, lost_at, &here);
        let again = |answers: &[Answered]| {
            let again = answers.iter().filter(|answer| answer.again > 0);
            again.count() as u64
        };
        let repeats = |answers: &[Answered]| {
            let repeats = answers.iter().filter(|answer| answer.repeat);
            repeats.count() as u64
        };
        Ok(Some(Fault {
            site,
            phase,
            at_s: lost_at.saturating_duration_since(zero).as_secs_f64(),
            longest_s: gaps.iter().map(|gap| gap.seconds).fold(0.0, f64::max),
            without_answer_s: gaps,
            retried: Retried {
                packages: again(&reception.answers),
                urgent: again(&urgents.answers),
                repeats: repeats(&reception.answers) + repeats(&urgents.answers),
                reads: receipts.iter().map(|read| read.again).sum(),
            },
            caught_up_s,
        }))
    }

    /// For each shard: from the loss until something was acknowledged that was due after it.
    fn gaps(&self, answers: &[Answered], lost_at: Instant, lost: &[String]) -> Vec<ShardGap> {
        let shards = 0..self.options.load.shards;
        let gap = |shard: u16| {
            let home = ShardId::new(shard);
            let own = answers.iter().filter(|answer| {
                let sender = self.stage.senders.get(answer.place);
                answer.due >= lost_at && sender.is_some_and(|sender| sender.home == home)
            });
            let first = own.map(|answer| answer.at).min()?;
            let led = self.stage.preferred(home);
            Some(ShardGap {
                shard,
                led_there: led.is_some_and(|node| lost.contains(&node)),
                seconds: (first - lost_at).as_secs_f64(),
            })
        };
        shards.filter_map(gap).collect()
    }

    /// Everything that was acknowledged against what one data node holds; after a fault, against all of them.
    fn check(
        &mut self,
        packages: &Load,
        urgent: &Load,
        urgents: &Run,
        tell: Report<'_>,
    ) -> Result<Checks, ClusterError> {
        tell("check", 0, 0);
        let senders = self.stage.senders.len();
        let mut record = Record::new(senders);
        let whole: Vec<usize> = packages.numbers.iter().map(Vec::len).collect();
        record.note(packages, false, &whole);
        let mut sent = vec![0; senders];
        for answer in &urgents.answers {
            if let Some(sent) = sent.get_mut(answer.place) {
                *sent += 1;
            }
        }
        record.note(urgent, true, &sent);
        record.close();
        let mut checks = Checks::default();
        let nodes = self.stage.addresses();
        let count = if self.spec.fault.is_some() {
            nodes.len()
        } else {
            1
        };
        for (name, address) in nodes.iter().take(count) {
            let readers = Readers::new(&self.stage.senders, Some(address))?;
            let read = readers.run(|_| Task::Whole)?;
            let outputs: Vec<_> = read.into_iter().map(|read| read.output).collect();
            record.hold(name, &outputs, &mut checks);
        }
        Ok(checks)
    }
}

/// A cycle that settled.
struct Netting {
    from: Instant,
    to: Instant,
    payments: u64,
    cycle_s: f64,
}
