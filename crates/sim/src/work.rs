//! The work: banks that pay, cancel, ask again and read; an operator who founds the cluster, opens cycles and days.

use std::collections::BTreeMap;

use bytes::Bytes;
use clearspan_ledger::directory::{AccountTerms, NetUnit, ParticipantTerms};
use clearspan_ledger::entry::{AdminCommand, Command, CycleCommand, Genesis};
use clearspan_ledger::message::{
    Class, MessageKind, OriginalPayment, PaymentRecord, Settlement, Submission,
};
use clearspan_ledger::nodes::{NodeCommand, NodeRecord};
use clearspan_ledger::stream::{Item, Stream};
use clearspan_ledger::{
    AmountMinor, Bic, BusinessDate, Currency, Ledger, Outcome, PaymentId, ReasonSet, Reply,
    ShardId, Text,
};
use clearspan_node::engine::{Lane, ProposeError};

use crate::history::{Attempt, Issued, Read};
use crate::node::{ReadWait, Token};
use crate::plan::{MS, Plan, S};
use crate::reach::reach;
use crate::rng::Rng;
use crate::world::{Event, Phase, World};

#[derive(Clone, Debug)]
pub(crate) struct Bank {
    pub(crate) bic: Bic,
    pub(crate) home: ShardId,
    numbered: bool,
    in_flight: usize,
    /// The next number of its sequence today, as far as it knows.
    sequence: u64,
    sequence_day: u32,
    sent: Vec<usize>,
    /// Keys of its payments.
    payments: Vec<PaymentId>,
}

pub(crate) struct Work {
    pub(crate) rng: Rng,
    pub(crate) banks: Vec<Bank>,
    /// What the operator still has to do to found the cluster.
    founding: Vec<(ShardId, Command)>,
    operator: Option<usize>,
    next_cycle_ns: u64,
    next_day_ns: u64,
    pub(crate) day: u32,
    day_open: bool,
    pub(crate) commands_made: u64,
    pub(crate) issued_minor: BTreeMap<Currency, i128>,
}

const COORDINATOR: ShardId = ShardId::new(0);
/// A client gives an attempt up after this long.
const TIMEOUT_NS: u64 = 15 * S;
/// Days stay below retention, so that no duplicate is forgotten.
const DAYS_MAX: u32 = 4;

pub(crate) fn date(day: u32) -> BusinessDate {
    BusinessDate::from_ymd(2026, 11, 30)
        .map(|first| BusinessDate::from_days(first.days() + day))
        .expect("a date")
}

fn euro() -> Currency {
    Currency::parse(b"EUR").expect("a currency")
}

fn amount(minor: u64) -> AmountMinor {
    AmountMinor::new(minor).expect("a small amount")
}

fn hash(text: &str) -> u128 {
    xxhash_rust::xxh3::xxh3_128(text.as_bytes())
}

impl Work {
    pub(crate) fn new(plan: &Plan, mut rng: Rng) -> Self {
        let banks: Vec<Bank> = (0..plan.banks)
            .zip(b'A'..=b'Z')
            .zip((0..plan.shards).cycle())
            .map(|((_, letter), home)| Bank {
                bic: Bic::parse(format!("BNK{}DEFF", char::from(letter)).as_bytes())
                    .expect("a code"),
                home: ShardId::new(home),
                numbered: rng.per_mille(250),
                in_flight: 0,
                sequence: 1,
                sequence_day: 0,
                sent: Vec::new(),
                payments: Vec::new(),
            })
            .collect();
        let mut founding: Vec<(ShardId, Command)> = (0..plan.shards)
            .map(ShardId::new)
            .map(|shard| {
                let genesis = Genesis {
                    cluster: 7,
                    shard,
                    shards: plan.shards,
                    hash_seed: 0x1234_5678_9ABC_DEF0_1122_3344_5566_7788,
                    retention_days: 8,
                    amount_max: AmountMinor::MAX,
                    page_len_payments: 3,
                    gap_timeout_ns: S,
                };
                (shard, Command::Genesis(genesis))
            })
            .collect();
        let mut issued_minor = BTreeMap::new();
        for bank in &banks {
            let mut admin = |command| founding.push((COORDINATOR, Command::Admin(command)));
            admin(AdminCommand::AddParticipant(ParticipantTerms {
                bic: bank.bic,
                name: "a bank".to_owned(),
                home: bank.home,
                numbers_messages: bank.numbered,
                refuse_whole: rng.per_mille(200),
                net_unit: if rng.per_mille(300) {
                    NetUnit::Package
                } else {
                    NetUnit::Payment
                },
            }));
            admin(AdminCommand::OpenAccount(AccountTerms {
                bic: bank.bic,
                currency: euro(),
                credit_line: amount(rng.below(100)),
            }));
            if plan.balance > 0 {
                admin(AdminCommand::Fund {
                    reference: Text::new(&format!("F{}", bank.bic)).expect("short"),
                    bic: bank.bic,
                    currency: euro(),
                    amount: amount(plan.balance),
                });
                *issued_minor.entry(euro()).or_default() += i128::from(plan.balance);
            }
        }
        founding.push((
            COORDINATOR,
            Command::Admin(AdminCommand::OpenDay { date: date(0) }),
        ));
        founding.reverse();
        Self {
            rng,
            banks,
            founding,
            operator: None,
            next_cycle_ns: 0,
            next_day_ns: 0,
            day: 0,
            day_open: true,
            commands_made: 0,
            issued_minor,
        }
    }
}

impl Work {
    /// Shard 0 is told who there is, before anybody changes it.
    pub(crate) fn found_with(&mut self, nodes: Vec<NodeRecord>) {
        // From the end on: after every shard's first entry.
        let at = self.founding.len()
            - self
                .founding
                .iter()
                .rev()
                .take_while(|(_, c)| matches!(c, Command::Genesis(_)))
                .count();
        let found = Command::Nodes(NodeCommand::Found { nodes });
        self.founding.insert(at, (COORDINATOR, found));
    }
}

impl World {
    // ---- the operator ----

    pub(crate) fn operator_turn(&mut self) {
        let wait = 20 * MS + self.work.rng.below(30 * MS);
        self.after(wait, Event::Operator);
        self.follow_members();
        if let Some(at) = self.work.operator {
            if !self.history.commands[at].ended {
                return;
            }
            self.work.operator = None;
            if self.phase == Phase::Founding && self.history.commands[at].answer.is_some() {
                self.work.founding.pop();
            }
        }
        if self.phase == Phase::Founding {
            match self.work.founding.last().cloned() {
                Some((shard, command)) => {
                    self.work.operator =
                        Some(self.issue(shard, command, Lane::Urgent, None, false));
                }
                // Everybody must have heard of it.
                None if self.all_know_the_day() => {
                    self.work.next_cycle_ns = self.now_ns + self.plan.cycle_every_ns;
                    self.work.next_day_ns = self.now_ns + self.plan.day_ns;
                    self.founded();
                }
                None => {}
            }
            return;
        }
        if !self.is_lively() {
            return;
        }
        if self.now_ns >= self.work.next_day_ns && self.work.day < DAYS_MAX {
            self.next_day();
        } else if self.now_ns >= self.work.next_cycle_ns {
            self.work.next_cycle_ns = self.now_ns + self.work.rng.around(self.plan.cycle_every_ns);
            self.work.operator = Some(self.issue(
                COORDINATOR,
                Command::Cycle(CycleCommand::Open),
                Lane::Urgent,
                None,
                true,
            ));
            if self.work.rng.per_mille(200) {
                self.issue(
                    COORDINATOR,
                    Command::Cycle(CycleCommand::Abandon),
                    Lane::Urgent,
                    None,
                    true,
                );
            }
        }
    }

    fn next_day(&mut self) {
        // The day closes when no cycle runs and all have closed it: the state says so.
        let day = self
            .newest(COORDINATOR)
            .and_then(|node| {
                let life = self.nodes[node].life.as_ref()?;
                Some(life.stepped.with_ledger(COORDINATOR, |l| l.cluster_day()))
            })
            .flatten();
        let Some((at, open)) = day else { return };
        if self.work.day_open && open && at == date(self.work.day) {
            reach("a business day ended");
            self.work.operator = Some(self.issue(
                COORDINATOR,
                Command::Admin(AdminCommand::CloseDay),
                Lane::Urgent,
                None,
                false,
            ));
            self.work.day_open = false;
        } else if !open {
            self.work.day += 1;
            self.work.day_open = true;
            self.work.next_day_ns = self.now_ns + self.plan.day_ns;
            self.work.operator = Some(self.issue(
                COORDINATOR,
                Command::Admin(AdminCommand::OpenDay {
                    date: date(self.work.day),
                }),
                Lane::Urgent,
                None,
                false,
            ));
        } else if open && !self.work.day_open {
            // It was refused, a cycle ran: once more.
            self.work.day_open = true;
            self.work.next_day_ns = self.now_ns + 300 * MS;
        }
    }

    fn all_know_the_day(&self) -> bool {
        self.shards().all(|shard| {
            self.nodes
                .iter()
                .filter(|node| !node.witness)
                .filter_map(|node| node.life.as_ref())
                .all(|life| {
                    life.stepped
                        .with_ledger(shard, |ledger| ledger.dates().next().is_some())
                })
        })
    }

    // ---- banks ----

    pub(crate) fn bank_turn(&mut self, bank: usize) {
        if !self.is_lively() {
            return;
        }
        let wait = self.work.rng.around(self.plan.think_ns);
        self.after(wait, Event::Bank(bank));
        if self.work.commands_made >= self.plan.narrow.commands_max {
            return;
        }
        let max = if self.work.banks[bank].numbered {
            2
        } else {
            self.plan.in_flight_max
        };
        if self.work.banks[bank].in_flight >= max {
            return;
        }
        self.work.commands_made += 1;
        match self.work.rng.below(100) {
            0..42 => self.pay(bank, true),
            42..65 => self.pay(bank, false),
            65..73 => self.cancel(bank),
            73..83 => self.repeat(bank),
            83..86 => self.acknowledge(bank),
            _ => self.read(bank),
        }
    }

    fn pay(&mut self, bank: usize, gross: bool) {
        let count = if gross {
            1
        } else {
            self.work.rng.between(1, 6)
        };
        let number = self.history.commands.len();
        let receivers = self.work.banks.len();
        let mut payments = Vec::new();
        for at in 0..count {
            let other = (bank + 1 + self.work.rng.index(receivers - 1)) % receivers;
            let key = format!("P{number}-{at}");
            let wrong_day = self.work.rng.per_mille(20);
            let id = PaymentId::of_transaction(&key);
            self.work.banks[bank].payments.push(id);
            payments.push(PaymentRecord {
                id,
                content_digest: u64::try_from(hash(&key) >> 64).unwrap_or(0),
                amount: amount(self.work.rng.between(1, 120)),
                currency: euro(),
                receiver: Some(self.work.banks[other].bic),
                date: Some(date(self.work.day + u32::from(wrong_day))),
                faults: ReasonSet::EMPTY,
                body_offset: 0,
                body_len: 0,
            });
        }
        let settlement = if gross {
            Settlement::Gross {
                class: self
                    .work
                    .rng
                    .pick(&[Class::Urgent, Class::High, Class::Normal]),
                settle_or_refuse: self.work.rng.per_mille(300),
            }
        } else {
            Settlement::Net
        };
        let lane = if gross { Lane::Urgent } else { Lane::Bulk };
        self.submit(
            bank,
            MessageKind::CustomerTransfer,
            settlement,
            payments,
            Vec::new(),
            lane,
        );
    }

    fn cancel(&mut self, bank: usize) {
        if self.work.banks[bank].payments.is_empty() {
            return self.pay(bank, true);
        }
        let keys = self.work.banks[bank].payments.clone();
        let recent = &keys[keys.len().saturating_sub(8)..];
        let id = self.work.rng.pick(recent);
        let record = PaymentRecord {
            id,
            content_digest: 0,
            amount: amount(0),
            currency: Currency::NONE,
            receiver: None,
            date: None,
            faults: ReasonSet::EMPTY,
            body_offset: 0,
            body_len: 0,
        };
        let reason = *b"DUPL";
        let original = OriginalPayment { id, reason };
        self.submit(
            bank,
            MessageKind::Cancellation,
            Settlement::Net,
            vec![record],
            vec![(0, original)],
            Lane::Urgent,
        );
    }

    fn submit(
        &mut self,
        bank: usize,
        kind: MessageKind,
        settlement: Settlement,
        payments: Vec<PaymentRecord>,
        originals: Vec<(u32, OriginalPayment)>,
        lane: Lane,
    ) {
        let number = self.history.commands.len();
        let id = format!("M{number}");
        let home = self.work.banks[bank].home;
        let sequence = self.next_number(bank);
        let sender = self.work.banks[bank].bic;
        let padding = self.work.rng.pick(&[0, 0, 40, 900]);
        let submission = Submission {
            kind,
            version: 8,
            sender,
            message_id: Text::new(&id).expect("short"),
            digest: hash(&format!("{sender} {id} {payments:?} {originals:?}")),
            sequence,
            settlement,
            faults: ReasonSet::EMPTY,
            payments,
            times: Vec::new(),
            originals,
            heap: Bytes::from(vec![0x5A; padding]),
        };
        let once = self.work.rng.per_mille(150) && sequence.is_none();
        let at = self.issue(home, Command::Submit(submission), lane, Some(bank), once);
        self.work.banks[bank].sent.push(at);
    }

    /// The number that a numbering bank gives its next message; now and then one too early.
    fn next_number(&mut self, bank: usize) -> Option<u64> {
        if !self.work.banks[bank].numbered {
            return None;
        }
        let home = self.work.banks[bank].home;
        let bic = self.work.banks[bank].bic;
        if self.work.banks[bank].in_flight == 0
            || self.work.banks[bank].sequence_day != self.work.day
        {
            // It asks where it stands.
            let known = self.newest(home).and_then(|node| {
                let life = self.nodes[node].life.as_ref()?;
                life.stepped.with_ledger(home, |ledger| {
                    let participant = ledger.directory().find(bic)?;
                    ledger.sequence(participant)
                })
            });
            if let Some((next, _)) = known {
                self.work.banks[bank].sequence = next;
                self.work.banks[bank].sequence_day = self.work.day;
            }
        }
        let state = &mut self.work.banks[bank];
        let early = self.work.rng.per_mille(200);
        let number = state.sequence + u64::from(early);
        if !early {
            state.sequence += 1;
        }
        Some(number)
    }

    /// Sends an earlier message again, unchanged or, seldom, with other content under its identifier.
    fn repeat(&mut self, bank: usize) {
        let sent = self.work.banks[bank].sent.clone();
        if sent.is_empty() {
            return self.pay(bank, true);
        }
        let earlier = self.work.rng.pick(&sent[sent.len().saturating_sub(12)..]);
        let (shard, mut command) = {
            let issued = &self.history.commands[earlier];
            (issued.shard, issued.command.clone())
        };
        let mut repeats = Some(earlier);
        if self.work.rng.per_mille(150)
            && let Command::Submit(submission) = &mut command
        {
            reach("the same identifier came with other content");
            submission.digest ^= 1;
            repeats = None;
        }
        let lane = self.history.commands[earlier].lane;
        let at = self.issue(shard, command, lane, Some(bank), false);
        self.history.commands[at].repeats = repeats;
    }

    fn acknowledge(&mut self, bank: usize) {
        let home = self.work.banks[bank].home;
        let bic = self.work.banks[bank].bic;
        let last = self.newest(home).and_then(|node| {
            let life = self.nodes[node].life.as_ref()?;
            life.stepped.with_ledger(home, |ledger| {
                let participant = ledger.directory().find(bic)?;
                Some(ledger.stream(participant)?.next_number() - 1)
            })
        });
        let Some(last) = last.filter(|&last| last > 0) else {
            return;
        };
        reach("receipts were acknowledged");
        let through = self.work.rng.between(1, last);
        self.issue(
            home,
            Command::AcknowledgeReceipts { bic, through },
            Lane::Urgent,
            Some(bank),
            false,
        );
    }

    fn read(&mut self, bank: usize) {
        let shard = self.work.banks[bank].home;
        let node = self.some_node();
        let must_index = self.oracle.acknowledged(shard);
        let began_ns = self.now_ns;
        if self.nodes[node].life.is_none() {
            return;
        }
        self.call(node, |life| {
            let index = life.stepped.read_index(shard);
            life.reads.push(ReadWait {
                bank,
                shard,
                began_ns,
                index,
                must_ns: None,
                must_index,
            });
        });
    }

    // ---- commands on their way ----

    /// A data node, up or not: clients know no better.
    fn some_node(&mut self) -> usize {
        let data: Vec<usize> = (0..self.nodes.len())
            .filter(|&at| self.nodes[at].joined && !self.nodes[at].witness)
            .collect();
        self.work.rng.pick(&data)
    }

    /// The data node that has applied most of a shard.
    pub(crate) fn newest(&self, shard: ShardId) -> Option<usize> {
        (0..self.nodes.len())
            .filter(|&at| !self.nodes[at].witness && self.nodes[at].life.is_some())
            .max_by_key(|&at| {
                self.nodes[at].life.as_ref().map_or(0, |life| {
                    life.stepped
                        .with_ledger(shard, |ledger| ledger.position().0.get())
                })
            })
    }

    pub(crate) fn issue(
        &mut self,
        shard: ShardId,
        command: Command,
        lane: Lane,
        bank: Option<usize>,
        once: bool,
    ) -> usize {
        let at = self.history.commands.len();
        self.history.commands.push(Issued {
            shard,
            command,
            bank,
            began_ns: self.now_ns,
            attempts: Vec::new(),
            answer: None,
            answered_ns: 0,
            later_answers: Vec::new(),
            lane,
            once,
            ended: false,
            repeats: None,
        });
        if let Some(bank) = bank {
            self.work.banks[bank].in_flight += 1;
        }
        self.attempt(at);
        at
    }

    pub(crate) fn attempt(&mut self, at: usize) {
        if self.history.commands[at].ended {
            return;
        }
        let node = self.some_node();
        let attempt = self.history.commands[at].attempts.len();
        if attempt > 0 {
            reach("a command was sent twice by its client");
        }
        self.history.commands[at].attempts.push(Attempt {
            node,
            began_ns: self.now_ns,
            refused: None,
        });
        self.mark_unserved(node);
        let token = (at, attempt);
        if self.nodes[node].life.is_none() {
            // Nobody answers the call.
            self.refuse(token, ProposeError::NoLeader);
            return;
        }
        let (shard, command, lane) = {
            let issued = &self.history.commands[at];
            (issued.shard, issued.command.clone(), issued.lane)
        };
        self.say(|| format!("c{at} to n{node}, shard {shard}: {}", brief(&command)));
        let mut refused = None;
        self.call(node, |life| {
            let answer = life.answer.clone();
            let reply = Box::new(move |result| {
                let _ = answer.send((token, result));
            });
            match life.stepped.propose(shard, &command, lane, reply) {
                Ok(()) => {
                    life.open.insert(token);
                }
                Err(error) => refused = Some(error),
            }
        });
        match refused {
            Some(error) => self.refuse(token, error),
            None => self.after(TIMEOUT_NS, Event::Timeout(at, attempt)),
        }
    }

    /// Takes up the answers that a node has given.
    pub(crate) fn collect(&mut self, node: usize) {
        let mut answers = Vec::new();
        let mut reads = Vec::new();
        if let Some(life) = &mut self.nodes[node].life {
            while let Ok((token, result)) = life.answers.try_recv() {
                life.open.remove(&token);
                answers.push((token, result));
            }
            let waiting = std::mem::take(&mut life.reads);
            for mut read in waiting {
                if read.must_ns.is_none() {
                    match read.index.try_recv() {
                        Ok(Ok(index)) => read.must_ns = Some(index),
                        Ok(Err(_)) => {
                            reach("a read was refused");
                            continue;
                        }
                        Err(_) => {
                            life.reads.push(read);
                            continue;
                        }
                    }
                }
                let applied = life
                    .stepped
                    .with_ledger(read.shard, |ledger| ledger.position().0.get());
                if read.must_ns.is_some_and(|index| applied >= index) {
                    let bic = self.work.banks[read.bank].bic;
                    let seen = life
                        .stepped
                        .with_ledger(read.shard, |ledger| see(ledger, bic));
                    reads.push((read, applied, seen));
                } else {
                    life.reads.push(read);
                }
            }
        }
        for (token, result) in answers {
            match result {
                Ok(outcome) => self.answered(node, token, outcome),
                Err(error) => self.refuse(token, error),
            }
        }
        for (read, applied, (balances, items)) in reads {
            reach("a read was answered");
            self.check_served(node, read.began_ns, "a read");
            if self.leader(read.shard) != Some(node) {
                reach("a read was answered by a follower");
            }
            if applied < read.must_index {
                self.fail(format!(
                    "I5: a read of shard {} at node {node} saw index {applied}, though {} was acknowledged before it began",
                    read.shard, read.must_index
                ));
            }
            self.oracle.note_acknowledged(read.shard, applied);
            self.history.reads.push(Read {
                bank: read.bank,
                shard: read.shard,
                node,
                began_ns: read.began_ns,
                answered_ns: self.now_ns,
                index: applied,
                balances,
                items,
            });
        }
    }

    fn answered(&mut self, node: usize, token: Token, outcome: Outcome) {
        let (at, attempt) = token;
        let asked_ns = self.history.commands[at].attempts[attempt].began_ns;
        self.check_served(node, asked_ns, "a command");
        let shard = self.history.commands[at].shard;
        self.say(|| {
            format!(
                "c{at} answered by n{node}: index {} {:?}",
                outcome.index.get(),
                outcome.reply
            )
        });
        self.hash ^= outcome.index.get().rotate_left(17) ^ at as u64;
        self.oracle.note_acknowledged(shard, outcome.index.get());
        self.mark_reply(node, at, &outcome.reply);
        let issued = &mut self.history.commands[at];
        if issued.answer.is_none() {
            issued.answer = Some(outcome);
            issued.answered_ns = self.now_ns;
        } else {
            issued.later_answers.push(outcome);
        }
        self.end_command(at);
    }

    fn end_command(&mut self, at: usize) {
        let issued = &mut self.history.commands[at];
        if !issued.ended {
            issued.ended = true;
            if let Some(bank) = issued.bank {
                self.work.banks[bank].in_flight -= 1;
            }
        }
    }

    /// An attempt's node died.
    pub(crate) fn lost(&mut self, token: Token) {
        self.refuse(token, ProposeError::Unknown);
    }

    pub(crate) fn timed_out(&mut self, at: usize, attempt: usize) {
        if self.history.commands[at].attempts[attempt]
            .refused
            .is_none()
            && self.history.commands[at].answer.is_none()
        {
            self.refuse((at, attempt), ProposeError::Unknown);
        }
    }

    fn refuse(&mut self, token: Token, error: ProposeError) {
        let (at, attempt) = token;
        match error {
            ProposeError::NoLeader => reach("a command was refused for want of a leader"),
            ProposeError::DiskFull { .. } => {
                reach("a proposal was refused because the disk is full");
            }
            _ => {}
        }
        let issued = &mut self.history.commands[at];
        let open = &mut issued.attempts[attempt].refused;
        if open.is_some() {
            return;
        }
        *open = Some(error);
        let (ended, once) = (issued.ended, issued.once);
        self.say(|| format!("c{at} refused: {error}"));
        if ended {
            return;
        }
        if once {
            self.end_command(at);
        } else {
            let wait = 30 * MS + self.work.rng.around(200 * MS);
            self.after(wait, Event::Retry(at));
        }
    }

    fn mark_reply(&mut self, node: usize, at: usize, reply: &Reply) {
        let issued = &self.history.commands[at];
        match reply {
            Reply::Repeat { .. } => {
                reach("a repeat was answered as one");
                let first = issued
                    .repeats
                    .and_then(|first| self.history.commands[first].attempts.first())
                    .or(issued.attempts.first());
                if first.is_some_and(|first| first.node != node) {
                    reach("a repeat came through another node");
                }
                if self.nodes[node].lives > 1 && self.nodes[node].restarted_from_snapshot {
                    reach("a repeat came after its node restarted from a snapshot");
                }
                if self.oracle.leaders_of(issued.shard) > 1 {
                    reach("a repeat came after a leader change");
                }
            }
            Reply::Held { .. } => reach("a message waited for its number"),
            Reply::NotTaken { .. } => reach("a payment came after the day's end"),
            _ => {}
        }
    }
}

/// What a bank is shown: all balances of its shard, and its own output.
fn see(ledger: &Ledger, bic: Bic) -> (Vec<(Bic, Currency, i128)>, Vec<Item>) {
    let directory = ledger.directory();
    let balances = ledger.accounts().iter().filter_map(|account| {
        let terms = directory.get(account.participant())?;
        Some((terms.bic, account.currency(), account.balance_minor()))
    });
    let stream = directory.find(bic).and_then(|bank| ledger.stream(bank));
    let items = stream.into_iter().flat_map(Stream::iter).cloned();
    (balances.collect(), items.collect())
}

pub(crate) fn brief(command: &Command) -> String {
    match command {
        Command::Submit(submission) => format!(
            "{} {} with {} {:?}",
            submission.sender,
            submission.message_id,
            submission.payments.len(),
            submission.settlement
        ),
        Command::Deliver {
            from,
            first,
            messages,
        } => {
            format!("{} messages of shard {from} from {first}", messages.len())
        }
        Command::Genesis(_) => "genesis".to_owned(),
        other => format!("{other:?}"),
    }
}
