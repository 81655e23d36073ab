//! A shard's part in a netting cycle (ADR 0013): the set is fixed, tails are dropped, what is left is posted at once.

use std::collections::{BTreeMap, BTreeSet};

use super::Shard;
use crate::plain::{Body, Dropped, Flow, Holder, Letter, NetResult, Status, Sum};

/// The cycle that runs in a shard.
#[derive(Clone, Debug)]
pub(super) struct Running {
    cycle: u32,
    /// Payments before this number that wait for netting are in the set.
    pub(super) cut_below: u64,
    /// The set, in order, and what was dropped of it.
    set: Vec<u64>,
    dropped: BTreeSet<u64>,
    /// What accounts of this shard receive, as the coordinator said last; all that have a part in the cycle.
    incoming: BTreeMap<Holder, Sum>,
}

/// One payment of a cycle's set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InSet {
    /// Who pays.
    pub from: Holder,
    /// Who is paid.
    pub to: Holder,
    /// How much.
    pub minor: u64,
    /// The message it came with.
    pub message: u64,
    /// Whether its sender drops whole messages.
    pub by_package: bool,
    /// Whether it was dropped so far.
    pub dropped: bool,
}

fn add(sum: &mut Sum, minor: u64) {
    sum.0 += u128::from(minor);
    sum.1 += 1;
}

/// A sum of amounts below 2^64 over payments in memory.
fn signed(minor: u128) -> i128 {
    i128::try_from(minor).expect("a cycle's sums stay below 2^127")
}

impl Shard {
    pub(super) fn cut_below(&self) -> Option<u64> {
        self.running.as_ref().map(|running| running.cut_below)
    }

    pub(super) fn set_of(&self, cycle: u32) -> Vec<InSet> {
        let Some(running) = self.running.as_ref().filter(|r| r.cycle == cycle) else {
            return Vec::new();
        };
        let in_set = |&at: &u64| {
            let payment = self.payment(at);
            InSet {
                from: payment.from.clone(),
                to: payment.receiver().clone(),
                minor: payment.minor,
                message: payment.message,
                by_package: self
                    .terms(&payment.from.bank)
                    .is_some_and(|terms| terms.by_package),
                dropped: running.dropped.contains(&at),
            }
        };
        running.set.iter().map(in_set).collect()
    }

    /// Step 2.
    pub(super) fn cut(&mut self, from: usize, cycle: u32) {
        let set: Vec<u64> = self
            .numbers()
            .filter(|&at| self.payment(at).status == Status::Netting)
            .collect();
        let mut sums: BTreeMap<Holder, Flow> = BTreeMap::new();
        for &at in &set {
            let payment = self.payment(at);
            add(
                &mut sums.entry(payment.from.clone()).or_default().out,
                payment.minor,
            );
            add(
                &mut sums.entry(payment.receiver().clone()).or_default().into,
                payment.minor,
            );
        }
        self.running = Some(Running {
            cycle,
            cut_below: self.payments.len() as u64,
            set,
            dropped: BTreeSet::new(),
            incoming: BTreeMap::new(),
        });
        let cut = self.index;
        self.send(from, Letter::CutSums { cycle, cut, sums });
    }

    /// The set's payments of an account that are still in, in order.
    fn still_in(&self, running: &Running, holder: &Holder) -> Vec<u64> {
        running
            .set
            .iter()
            .copied()
            .filter(|at| self.payment(*at).from == *holder && !running.dropped.contains(at))
            .collect()
    }

    fn sum_of(&self, payments: &[u64]) -> Sum {
        let mut sum = (0, 0);
        for &at in payments {
            add(&mut sum, self.payment(at).minor);
        }
        sum
    }

    /// Step 3: every account looks at the same incoming sums, so it does not matter who drops first.
    pub(super) fn reserve(
        &mut self,
        from: usize,
        cycle: u32,
        round: u32,
        incoming: &BTreeMap<Holder, Sum>,
    ) {
        let Some(mut running) = self.running.take().filter(|r| r.cycle == cycle) else {
            return;
        };
        running.incoming = incoming
            .iter()
            .filter(|(holder, _)| self.accounts.contains_key(holder))
            .map(|(holder, sum)| (holder.clone(), *sum))
            .collect();
        let mut available = BTreeMap::new();
        let mut drops = BTreeMap::new();
        let mut reductions: BTreeMap<Holder, Sum> = BTreeMap::new();
        for (holder, into) in running.incoming.clone() {
            // What the cycle itself set aside in the round before is free for this one.
            self.account(&holder).reserved = 0;
            let free = self.available(&holder);
            available.insert(holder.clone(), free);
            let by_package = self
                .terms(&holder.bank)
                .is_some_and(|terms| terms.by_package);
            let mut left = self.still_in(&running, &holder);
            let before = self.sum_of(&left);
            let mut gone: Vec<u64> = Vec::new();
            while signed(self.sum_of(&left).0) > free + signed(into.0) {
                let Some(last) = left.pop() else { break };
                gone.push(last);
                let message = self.payment(last).message;
                while by_package
                    && left
                        .last()
                        .is_some_and(|&at| self.payment(at).message == message)
                {
                    gone.extend(left.pop());
                }
            }
            for &at in &gone {
                let payment = self.payment(at);
                let (to, minor) = (payment.receiver().clone(), payment.minor);
                add(reductions.entry(to).or_default(), minor);
            }
            if !gone.is_empty() {
                let dropped = Dropped {
                    round,
                    available: free,
                    out: before.0,
                    into: into.0,
                    gone: self.sum_of(&gone),
                };
                drops.insert(holder.clone(), dropped);
            }
            let out = self.sum_of(&left);
            running.dropped.extend(gone);
            self.account(&holder).reserved = (signed(out.0) - signed(into.0)).max(0);
        }
        self.running = Some(running);
        let letter = Letter::Reserved {
            cycle,
            round,
            available,
            drops,
            reductions,
        };
        self.send(from, letter);
    }

    /// Step 5: all in one entry.
    pub(super) fn settle_cycle(&mut self, from: usize, cycle: u32) {
        let Some(running) = self.running.take().filter(|r| r.cycle == cycle) else {
            return;
        };
        for account in self.accounts.values_mut() {
            account.reserved = 0;
        }
        let holders = self.by_bank(running.incoming.keys().cloned());
        let mut results = BTreeMap::new();
        let mut credits: BTreeMap<usize, BTreeMap<Holder, Sum>> = BTreeMap::new();
        // By message: settled and dropped.
        let mut netted: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for holder in &holders {
            let mine: Vec<u64> = running
                .set
                .iter()
                .copied()
                .filter(|&at| self.payment(at).from == *holder)
                .collect();
            let (gone, paid): (Vec<u64>, Vec<u64>) =
                mine.iter().partition(|at| running.dropped.contains(at));
            for &at in &gone {
                netted.entry(self.payment(at).message).or_default().1 += 1;
            }
            for &at in &paid {
                netted.entry(self.payment(at).message).or_default().0 += 1;
                let payment = self.payment_mut(at);
                payment.status = Status::Settled;
                let (to, minor) = (payment.receiver().clone(), payment.minor);
                let home = self.home(&to.bank);
                add(
                    credits.entry(home).or_default().entry(to).or_default(),
                    minor,
                );
            }
            let flow = Flow {
                out: self.sum_of(&paid),
                into: running.incoming[holder],
            };
            let dropped = self.sum_of(&gone);
            let (opening, line) = {
                let account = self.account(holder);
                (account.balance, account.line)
            };
            let net = signed(flow.into.0) - signed(flow.out.0);
            self.post(holder, net);
            let result = NetResult {
                opening,
                flow,
                closing: opening + net,
                line,
                dropped,
            };
            results.insert(holder.clone(), result);
        }
        self.last_cut_below = running.cut_below;
        // Each sender hears of its messages in their order, then everybody of its net movements.
        for (message, (settled, dropped)) in netted {
            let bank = self.messages[super::place(message)].bank.clone();
            let body = Body::Netted {
                cycle,
                message,
                settled,
                dropped,
            };
            self.tell(&bank, 1, body);
        }
        let mut told: BTreeSet<String> = BTreeSet::new();
        for holder in &holders {
            if told.insert(holder.bank.clone()) {
                self.tell(&holder.bank, 1, Body::NetResult { cycle });
            }
        }
        for (home, credits) in credits {
            self.send(home, Letter::CycleCredits { cycle, credits });
        }
        let posted = self.index;
        let letter = Letter::Posted {
            cycle,
            posted,
            results,
        };
        self.send(from, letter);
        self.release_all();
    }

    pub(super) fn end_cycle(&mut self, cycle: u32, abandoned: bool) {
        let runs = self.running.as_ref().is_some_and(|r| r.cycle == cycle);
        if abandoned && runs {
            self.forget_cycle();
            self.release_all();
        }
    }

    pub(super) fn forget_cycle(&mut self) {
        self.running = None;
        for account in self.accounts.values_mut() {
            account.reserved = 0;
        }
    }

    /// Receipts of what a cycle's payments of one shard brought to accounts here.
    pub(super) fn take_credits(
        &mut self,
        from: usize,
        cycle: u32,
        credits: &BTreeMap<Holder, Sum>,
    ) {
        let page_len = u64::from(self.rules().page_len);
        for holder in self.by_bank(credits.keys().cloned()) {
            let sum = credits[&holder];
            let body = Body::NetCredits {
                cycle,
                from,
                currency: holder.currency.clone(),
                sum,
            };
            self.tell(&holder.bank, sum.1.div_ceil(page_len), body);
        }
    }
}
