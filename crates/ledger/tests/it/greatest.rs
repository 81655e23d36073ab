//! Netting against brute force: all prefix vectors are tried, and the ledger must reach the greatest that is feasible,
//! whatever the number of shards, the order of dropping and the interleaving of messages (domain 5).

use std::collections::{BTreeMap, BTreeSet};

use clearspan_ledger::Currency;
use clearspan_ledger::directory::NetUnit;
use clearspan_ledger::entry::{AdminCommand, Command, CycleCommand};
use clearspan_ledger::message::{Class, Submission};
use clearspan_ledger::{CyclePhase, PaymentId, Reply};

use crate::cluster::{Cluster, genesis};
use crate::make::{Bank, NAMES, add_bank, date, gross, net, payment};
use crate::receipts::check_cycle;
use crate::rng::Rng;
use crate::script::{bic, currency};

#[derive(Clone, Debug)]
struct Paid {
    key: String,
    to: usize,
    minor: u64,
    currency: usize,
}

/// Banks, and each bank's packages in order.
#[derive(Clone, Debug)]
struct Case {
    currencies: Vec<Currency>,
    banks: Vec<Bank>,
    packages: Vec<(usize, Vec<Paid>)>,
}

impl Case {
    fn random(rng: &mut Rng) -> Self {
        let codes = ["EUR", "JPY", "KWD"];
        let currencies: Vec<Currency> = codes[..1 + rng.index(2)]
            .iter()
            .map(|code| currency(code))
            .collect();
        let scale = rng.pick(&[3, 12, 60]);
        let banks: Vec<Bank> = NAMES[..2 + rng.index(3)]
            .iter()
            .map(|&name| Bank {
                name,
                unit: if rng.one_in(3) {
                    NetUnit::Package
                } else {
                    NetUnit::Payment
                },
                accounts: currencies
                    .iter()
                    .map(|&currency| {
                        let line = if rng.one_in(4) { rng.below(scale) } else { 0 };
                        (currency, rng.below(scale), line)
                    })
                    .collect(),
            })
            .collect();
        let mut packages: Vec<(usize, Vec<Paid>)> = Vec::new();
        for _ in 0..rng.index(3 * banks.len() + 1) {
            let from = rng.index(banks.len());
            // Enough to drop, few enough to try all vectors.
            let so_far: usize = packages
                .iter()
                .filter(|(sender, _)| *sender == from)
                .map(|(_, paid)| paid.len())
                .sum();
            let len = 1 + rng.index(3);
            if so_far + len > 6 {
                continue;
            }
            let package = packages.len();
            let paid = (0..len)
                .map(|at| Paid {
                    key: format!("{from}-{package}-{at}"),
                    to: (from + 1 + rng.index(banks.len() - 1)) % banks.len(),
                    minor: 1 + rng.below(scale),
                    currency: rng.index(currencies.len()),
                })
                .collect();
            packages.push((from, paid));
        }
        Self {
            currencies,
            banks,
            packages,
        }
    }

    /// A bank's payments in one currency, in the units in which they are dropped.
    fn units(&self, bank: usize, currency: usize) -> Vec<Vec<&Paid>> {
        let mut units: Vec<Vec<&Paid>> = Vec::new();
        for (_, paid) in self.packages.iter().filter(|(from, _)| *from == bank) {
            let mine = paid.iter().filter(|paid| paid.currency == currency);
            match self.banks[bank].unit {
                NetUnit::Payment => units.extend(mine.map(|paid| vec![paid])),
                NetUnit::Package => {
                    let unit: Vec<&Paid> = mine.collect();
                    if !unit.is_empty() {
                        units.push(unit);
                    }
                }
            }
        }
        units
    }

    /// The keys that settle: the greatest of all feasible prefix vectors, found by trying every one.
    fn greatest(&self) -> BTreeSet<String> {
        let mut settled = BTreeSet::new();
        for currency in 0..self.currencies.len() {
            let units: Vec<Vec<Vec<&Paid>>> = (0..self.banks.len())
                .map(|bank| self.units(bank, currency))
                .collect();
            let mut greatest = vec![0; units.len()];
            let mut vector = vec![0; units.len()];
            loop {
                if self.feasible(currency, &units, &vector) {
                    for (most, &len) in greatest.iter_mut().zip(&vector) {
                        *most = len.max(*most);
                    }
                }
                // The next vector, like an odometer.
                let Some(at) = (0..units.len()).find(|&at| vector[at] < units[at].len()) else {
                    break;
                };
                vector[at] += 1;
                vector[..at].fill(0);
            }
            assert!(
                self.feasible(currency, &units, &greatest),
                "feasible vectors are closed under taking the greater of each"
            );
            for (units, &len) in units.iter().zip(&greatest) {
                let paid = units.iter().take(len).flatten();
                settled.extend(paid.map(|paid| paid.key.clone()));
            }
        }
        settled
    }

    fn feasible(&self, currency: usize, units: &[Vec<Vec<&Paid>>], vector: &[usize]) -> bool {
        let mut balances: Vec<i128> = self
            .banks
            .iter()
            .map(|bank| {
                let (_, balance, line) = bank.accounts[currency];
                i128::from(balance) + i128::from(line)
            })
            .collect();
        for (from, (units, &len)) in units.iter().zip(vector).enumerate() {
            for paid in units.iter().take(len).flatten() {
                balances[from] -= i128::from(paid.minor);
                balances[paid.to] += i128::from(paid.minor);
            }
        }
        balances.iter().all(|&balance| balance >= 0)
    }

    fn messages(&self) -> Vec<Submission> {
        self.packages
            .iter()
            .enumerate()
            .map(|(at, (from, paid))| {
                let payments = paid
                    .iter()
                    .map(|paid| {
                        let to = self.banks[paid.to].name;
                        let currency = self.currencies[paid.currency];
                        payment(&paid.key, to, paid.minor, currency, date(0))
                    })
                    .collect();
                net(self.banks[*from].name, &format!("M{at}"), payments)
            })
            .collect()
    }

    fn cluster(&self, shards: u16) -> Cluster {
        let mut cluster = Cluster::new(&genesis(shards));
        for (place, bank) in self.banks.iter().enumerate() {
            add_bank(&mut cluster, place, bank);
        }
        cluster.expect_done(AdminCommand::OpenDay { date: date(0) });
        cluster.pump();
        cluster
    }
}

fn submit(cluster: &mut Cluster, message: &Submission) -> Reply {
    let home = cluster.home(message.sender);
    cluster.apply(home, Command::Submit(message.clone()))
}

/// The keys that the last cycle settled.
fn settled(cluster: &Cluster) -> BTreeSet<PaymentId> {
    let cycle = cluster.coordinator().cycle_summaries().last();
    let cycle = cycle.expect("a cycle").cycle;
    cluster
        .ledgers
        .iter()
        .flat_map(|ledger| ledger.cycle_set(cycle))
        .filter_map(|(payment, settled)| settled.then_some(payment.id))
        .collect()
}

#[test]
fn netting_reaches_the_greatest_feasible_vector() {
    for seed in 0..3000 {
        let mut rng = Rng::new(seed);
        let case = Case::random(&mut rng);
        let expected: BTreeSet<PaymentId> = case
            .greatest()
            .iter()
            .map(|key| PaymentId::of_transaction(key))
            .collect();
        let shards = 1 + u16::try_from(rng.below(4)).expect("small");
        let mut cluster = case.cluster(shards);
        for message in case.messages() {
            let reply = submit(&mut cluster, &message);
            assert!(matches!(reply, Reply::Taken { refused: 0, .. }));
        }
        assert_eq!(cluster.cycle(CycleCommand::Open), Reply::Done);
        // Sometimes it is given up on the way, which changes nothing.
        if rng.one_in(4) {
            for _ in 0..rng.index(40) {
                cluster.pump_step(&mut rng);
            }
            if cluster.cycle(CycleCommand::Abandon) == Reply::Done {
                cluster.pump_random(&mut rng);
                assert_eq!(cluster.cycle(CycleCommand::Open), Reply::Done);
            }
        }
        cluster.pump_random(&mut rng);
        assert_eq!(settled(&cluster), expected, "seed {seed}: {case:#?}");
        let last = cluster.coordinator().cycle_summaries().last();
        let cycle = last.expect("a cycle").cycle;
        check_cycle(&cluster, cycle);
        // Nothing more nets without more money, and what waits keeps its order.
        if rng.one_in(4) {
            let before: Vec<Vec<_>> = queues(&cluster, &case);
            assert_eq!(cluster.cycle(CycleCommand::Open), Reply::Done);
            cluster.pump_random(&mut rng);
            assert_eq!(settled(&cluster), BTreeSet::new());
            assert_eq!(queues(&cluster, &case), before);
        }
    }
}

fn queues(cluster: &Cluster, case: &Case) -> Vec<Vec<PaymentId>> {
    case.banks
        .iter()
        .map(|bank| {
            let ledger = cluster.ledger(cluster.home(bic(bank.name)));
            let participant = ledger.directory().find(bic(bank.name)).expect("a bank");
            ledger
                .queue(participant)
                .iter()
                .map(|view| view.id)
                .collect()
        })
        .collect()
}

#[test]
fn payments_go_on_between_all_steps_of_a_cycle() {
    for seed in 0..1500 {
        let mut rng = Rng::new(seed ^ 0xABCD);
        let case = Case::random(&mut rng);
        let shards = 1 + u16::try_from(rng.below(4)).expect("small");
        let mut cluster = case.cluster(shards);
        let mut urgent = 0;
        for message in case.messages() {
            submit(&mut cluster, &message);
        }
        cluster.cycle(CycleCommand::Open);
        let mut orders: BTreeMap<usize, Vec<PaymentId>> = BTreeMap::new();
        for (from, paid) in &case.packages {
            let keys = paid.iter().map(|paid| PaymentId::of_transaction(&paid.key));
            orders.entry(*from).or_default().extend(keys);
        }
        let mut posting_seen = false;
        loop {
            if !cluster.pump_step(&mut rng) {
                break;
            }
            let running = cluster.coordinator().cycle_running();
            posting_seen |= matches!(running, Some((_, CyclePhase::Posting, _)));
            if rng.one_in(2) {
                let from = rng.index(case.banks.len());
                let to = (from + 1) % case.banks.len();
                let at = rng.index(case.currencies.len());
                let key = format!("U{urgent}");
                let minor = 1 + rng.below(12);
                let to = case.banks[to].name;
                let record = payment(&key, to, minor, case.currencies[at], date(0));
                let class = rng.pick(&[Class::Urgent, Class::High, Class::Normal]);
                let or_refuse = rng.one_in(2);
                let sender = case.banks[from].name;
                let message = gross(sender, &key, class, or_refuse, vec![record], Vec::new());
                let reply = submit(&mut cluster, &message);
                assert!(matches!(reply, Reply::Taken { accepted: 1, .. }));
                urgent += 1;
            }
            // New packages wait for the next cycle.
            if rng.one_in(8) {
                let key = format!("N{urgent}");
                let to = case.banks[1].name;
                let record = payment(&key, to, 1, case.currencies[0], date(0));
                submit(&mut cluster, &net(case.banks[0].name, &key, vec![record]));
                urgent += 1;
            }
        }
        assert!(posting_seen, "seed {seed}");
        let last = cluster.coordinator().cycle_summaries().last();
        let summary = last.expect("a cycle").clone();
        assert!(!summary.abandoned);
        check_cycle(&cluster, summary.cycle);
        // What was available when it was reserved covers each net debit.
        for result in &summary.results {
            let available = summary.available.iter().find(|available| {
                available.participant == result.participant && available.currency == result.currency
            });
            let net = result.opening_minor - result.closing_minor;
            let available = available.map(|available| available.minor);
            if result.out_count > 0 || result.in_count > 0 {
                assert!(available.is_some_and(|free| net <= free), "seed {seed}");
            }
        }
        // Each bank's settled payments are a prefix of what it sent, in each currency.
        let settled = settled(&cluster);
        for keys in orders.values() {
            let mut ended: BTreeSet<Currency> = BTreeSet::new();
            for key in keys {
                let found = cluster
                    .ledgers
                    .iter()
                    .flat_map(|ledger| ledger.payments_with_id(*key))
                    .next()
                    .expect("taken in");
                if settled.contains(key) {
                    assert!(!ended.contains(&found.currency), "seed {seed}: overtaken");
                } else {
                    ended.insert(found.currency);
                }
            }
        }
    }
}
