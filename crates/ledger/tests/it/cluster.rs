//! Some ledgers and the channels between them, one entry at a time.
//!
//! Whatever a test does, money is counted after every entry: what the accounts of all shards hold, and what is in transit
//! between them, is what the central bank issued.

use std::collections::BTreeMap;

use clearspan_ledger::entry::{
    AdminCommand, ChannelMessage, Command, CycleCommand, Entry, Genesis,
};
use clearspan_ledger::{
    AdminRefusal, AmountMinor, Bic, Currency, CyclePhase, Ledger, Reply, ShardId, Timestamp,
};

use crate::rng::Rng;

pub(crate) const START_NS: u64 = 1_796_000_000_000_000_000;

/// What most tests agree on for good.
pub(crate) fn genesis(shards: u16) -> Genesis {
    Genesis {
        cluster: 7,
        shard: ShardId::new(0),
        shards,
        hash_seed: 0x1234_5678_9ABC_DEF0_1122_3344_5566_7788,
        retention_days: 3,
        amount_max: AmountMinor::MAX,
        page_len_payments: 3,
        gap_timeout_ns: 1000,
    }
}

#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) ledgers: Vec<Ledger>,
    /// Every entry of every shard, for replays.
    pub(crate) journals: Vec<Vec<Entry>>,
    /// Log time of the next entries.
    pub(crate) now_ns: u64,
    issued: BTreeMap<Currency, i128>,
}

impl Cluster {
    pub(crate) fn new(genesis: &Genesis) -> Self {
        let shards = usize::from(genesis.shards);
        let mut cluster = Self {
            ledgers: vec![Ledger::new(); shards],
            journals: vec![Vec::new(); shards],
            now_ns: START_NS,
            issued: BTreeMap::new(),
        };
        for at in 0..genesis.shards {
            let shard = ShardId::new(at);
            let reply = cluster.apply(
                shard,
                Command::Genesis(Genesis {
                    shard,
                    ..genesis.clone()
                }),
            );
            assert_eq!(reply, Reply::Done);
        }
        cluster
    }

    pub(crate) fn shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        (0..u16::try_from(self.ledgers.len()).expect("few shards")).map(ShardId::new)
    }

    pub(crate) fn ledger(&self, shard: ShardId) -> &Ledger {
        &self.ledgers[shard.index()]
    }

    pub(crate) fn coordinator(&self) -> &Ledger {
        &self.ledgers[0]
    }

    /// The home of a participant that the coordinator knows.
    pub(crate) fn home(&self, bic: Bic) -> ShardId {
        let directory = self.coordinator().directory();
        directory
            .find(bic)
            .and_then(|participant| directory.get(participant))
            .map_or(ShardId::new(0), |terms| terms.home)
    }

    pub(crate) fn apply(&mut self, shard: ShardId, command: Command) -> Reply {
        let fund = match &command {
            Command::Admin(AdminCommand::Fund {
                currency, amount, ..
            }) => Some((*currency, amount.signed())),
            _ => None,
        };
        let ledger = &mut self.ledgers[shard.index()];
        let (last, before) = ledger.position();
        let entry = Entry {
            index: last.next(),
            time: Timestamp::from_ns(self.now_ns),
            command,
        };
        let outcome = ledger.apply(&entry);
        assert_eq!(outcome.index, entry.index);
        let after = ledger.position();
        assert_eq!(after, (entry.index, before.max(entry.time)), "log time");
        self.journals[shard.index()].push(entry);
        if let (Some((currency, minor)), Reply::Done) = (fund, &outcome.reply) {
            *self.issued.entry(currency).or_default() += minor;
        }
        self.check_money();
        outcome.reply
    }

    pub(crate) fn admin(&mut self, command: AdminCommand) -> Reply {
        self.apply(ShardId::new(0), Command::Admin(command))
    }

    pub(crate) fn cycle(&mut self, command: CycleCommand) -> Reply {
        self.apply(ShardId::new(0), Command::Cycle(command))
    }

    pub(crate) fn tick(&mut self) {
        for shard in self.shards() {
            self.apply(shard, Command::Tick);
        }
    }

    /// What is on its way from one shard to another: sent there and not yet applied.
    pub(crate) fn in_transit(&self, from: ShardId, to: ShardId) -> (u64, Vec<ChannelMessage>) {
        let next = self.ledger(to).inbound_next(from);
        self.ledger(from).outbound(to, next, usize::MAX)
    }

    /// Whether there is something to deliver.
    fn has_mail(&self, from: ShardId, to: ShardId) -> bool {
        self.ledger(from).outbound_range(to).1 > self.ledger(to).inbound_next(from)
    }

    /// Channels with something to deliver.
    pub(crate) fn busy(&self) -> Vec<(ShardId, ShardId)> {
        let mut busy = Vec::new();
        for from in self.shards() {
            for to in self.shards() {
                if self.has_mail(from, to) {
                    busy.push((from, to));
                }
            }
        }
        busy
    }

    /// Delivers the next messages of a channel, at most `max`.
    pub(crate) fn deliver(&mut self, from: ShardId, to: ShardId, max: usize) {
        let next = self.ledger(to).inbound_next(from);
        let (first, messages) = self.ledger(from).outbound(to, next, max);
        self.apply(
            to,
            Command::Deliver {
                from,
                first,
                messages,
            },
        );
    }

    /// Tells the sending shard how far the receiving one is.
    pub(crate) fn confirm(&mut self, from: ShardId, to: ShardId) {
        let through = self.ledger(to).inbound_next(from) - 1;
        self.apply(from, Command::Delivered { to, through });
    }

    /// Delivers everything until all is quiet, channel by channel.
    pub(crate) fn pump(&mut self) {
        loop {
            let busy = self.busy();
            if busy.is_empty() {
                return;
            }
            for (from, to) in busy {
                self.deliver(from, to, usize::MAX);
                self.confirm(from, to);
            }
        }
    }

    /// One random thing that a network and a restarting leader can do to a channel. `false` when all is quiet.
    pub(crate) fn pump_step(&mut self, rng: &mut Rng) -> bool {
        let busy = self.busy();
        if busy.is_empty() {
            return false;
        }
        let (from, to) = rng.pick(&busy);
        match rng.below(10) {
            // What is there already comes again, with or without something new behind it.
            0 => {
                let (kept, _) = self.ledger(from).outbound_range(to);
                let max = 1 + rng.index(6);
                let (first, messages) = self.ledger(from).outbound(to, kept, max);
                self.apply(
                    to,
                    Command::Deliver {
                        from,
                        first,
                        messages,
                    },
                );
            }
            // Messages are lost before those that come.
            1 => {
                let next = self.ledger(to).inbound_next(from) + 1 + rng.below(3);
                let (first, messages) = self.ledger(from).outbound(to, next, 3);
                let before = self.ledger(to).inbound_next(from);
                self.apply(
                    to,
                    Command::Deliver {
                        from,
                        first,
                        messages,
                    },
                );
                assert_eq!(self.ledger(to).inbound_next(from), before, "a gap waits");
            }
            2 => self.confirm(from, to),
            3 => {
                // An old confirmation comes late.
                let (kept, _) = self.ledger(from).outbound_range(to);
                let through = rng.below(kept);
                self.apply(from, Command::Delivered { to, through });
            }
            4 => self.deliver(from, to, usize::MAX),
            _ => self.deliver(from, to, 1 + rng.index(2)),
        }
        true
    }

    /// Delivers everything in a random interleaving with repetitions and losses.
    pub(crate) fn pump_random(&mut self, rng: &mut Rng) {
        while self.pump_step(rng) {}
    }

    /// Money per currency: balances and what is in transit are what was issued; netting nets to nothing.
    fn check_money(&self) {
        let mut held: BTreeMap<Currency, i128> = BTreeMap::new();
        let mut netted: BTreeMap<Currency, i128> = BTreeMap::new();
        for ledger in &self.ledgers {
            for account in ledger.accounts() {
                *held.entry(account.currency()).or_default() += account.balance_minor();
                assert!(account.balance_minor() >= -account.credit_line().signed());
                assert!(account.reserved_minor() >= 0);
                assert!(account.available_minor() >= 0);
            }
            for (currency, totals) in ledger.totals() {
                *netted.entry(currency).or_default() += totals.netted_minor;
            }
        }
        for from in self.shards() {
            for to in self.shards() {
                if !self.has_mail(from, to) {
                    continue;
                }
                for message in self.in_transit(from, to).1 {
                    match message {
                        ChannelMessage::Credit(advice) => {
                            *held.entry(advice.currency).or_default() += advice.amount.signed();
                        }
                        ChannelMessage::Admin(AdminCommand::Fund {
                            bic,
                            currency,
                            amount,
                            ..
                        }) if self.home(bic) == to => {
                            *held.entry(currency).or_default() += amount.signed();
                        }
                        _ => {}
                    }
                }
            }
        }
        let posting = matches!(
            self.coordinator().cycle_running(),
            Some((_, CyclePhase::Posting, _))
        );
        for (currency, sum) in held {
            let issued = self.issued.get(&currency).copied().unwrap_or_default();
            let net = netted.get(&currency).copied().unwrap_or_default();
            assert_eq!(sum, issued + net, "{currency}: held and in transit, issued");
            assert!(posting || net == 0, "{currency}: netting nets to nothing");
        }
    }

    /// The balance of an account, wherever it is.
    pub(crate) fn balance(&self, bic: Bic, currency: Currency) -> i128 {
        let ledger = self.ledger(self.home(bic));
        ledger
            .directory()
            .find(bic)
            .and_then(|participant| ledger.account(participant, currency))
            .map_or(0, clearspan_ledger::account::Account::balance_minor)
    }

    pub(crate) fn expect_done(&mut self, command: AdminCommand) {
        let reply = self.admin(command);
        assert_eq!(reply, Reply::Done);
    }

    pub(crate) fn expect_refused(&mut self, command: AdminCommand, refusal: AdminRefusal) {
        let reply = self.admin(command);
        assert_eq!(reply, Reply::Refused(refusal));
    }
}
