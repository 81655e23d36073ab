//! Anything in any order: nothing panics, money is conserved, and the same entries give the same state, whether they are
//! applied to a new ledger, to one restored from a snapshot, or on another thread (promise P9).

use bytes::Bytes;
use clearspan_ledger::directory::{AccountTerms, NetUnit, ParticipantTerms};
use clearspan_ledger::entry::{AdminCommand, Command, CycleCommand, Entry, Genesis};
use clearspan_ledger::message::{
    Class, MessageKind, OriginalPayment, PaymentRecord, Settlement, SettlementTimes, Submission,
};
use clearspan_ledger::{
    AmountMinor, Bic, Currency, Ledger, LogIndex, PaymentId, Reason, ReasonSet, ShardId, Text,
    Timestamp,
};

use crate::bytes::{read, write};
use crate::cluster::{Cluster, START_NS, genesis};
use crate::make::{NAMES, date};
use crate::rng::Rng;
use crate::script::{amount, bic, currency};

/// Histories of anything that can be proposed. Small pools make the same things meet again and again.
pub(crate) struct Chaos {
    rng: Rng,
    day: u32,
}

impl Chaos {
    pub(crate) const fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            day: 0,
        }
    }

    fn text(&mut self) -> Text {
        Text::new(&format!("T{}", self.rng.below(40))).expect("short")
    }

    fn bic(&mut self) -> Bic {
        if self.rng.one_in(25) {
            bic("Z")
        } else {
            bic(self.rng.pick(&NAMES))
        }
    }

    fn currency(&mut self) -> Currency {
        if self.rng.one_in(25) {
            return self
                .rng
                .pick(&[Currency::NONE, currency("ZZZ"), currency("XAU")]);
        }
        currency(self.rng.pick(&["EUR", "EUR", "EUR", "JPY", "KWD"]))
    }

    fn amount(&mut self) -> AmountMinor {
        match self.rng.below(20) {
            0 => AmountMinor::MAX,
            1 => amount(AmountMinor::MAX.minor() - self.rng.below(5)),
            2 => AmountMinor::ZERO,
            _ => amount(1 + self.rng.below(30)),
        }
    }

    fn id(&mut self) -> PaymentId {
        PaymentId::of_transaction(&self.rng.below(120).to_string())
    }

    fn faults(&mut self, rare: u64) -> ReasonSet {
        if self.rng.one_in(rare) {
            (self.rng.pick(Reason::ALL)).into()
        } else {
            ReasonSet::EMPTY
        }
    }

    fn time(&mut self) -> Option<Timestamp> {
        match self.rng.below(12) {
            0 => Some(Timestamp::ZERO),
            1 => Some(Timestamp::MAX),
            2..5 => Some(Timestamp::from_ns(START_NS + self.rng.below(6000))),
            _ => None,
        }
    }

    fn number(&mut self) -> u64 {
        match self.rng.below(20) {
            0 => u64::MAX,
            1 => u64::MAX - 1,
            2 => 0,
            _ => 1 + self.rng.below(12),
        }
    }

    fn submission(&mut self) -> Submission {
        let kind = match self.rng.below(10) {
            0 | 1 => MessageKind::Cancellation,
            2 | 3 => MessageKind::Return,
            4 => MessageKind::BankTransfer,
            _ => MessageKind::CustomerTransfer,
        };
        let class = self.rng.pick(&[Class::Urgent, Class::High, Class::Normal]);
        let settlement = if self.rng.one_in(2) {
            Settlement::Net
        } else {
            Settlement::Gross {
                class,
                settle_or_refuse: self.rng.one_in(4),
            }
        };
        let len = if self.rng.one_in(40) {
            70
        } else {
            self.rng.below(4)
        };
        let payments: Vec<PaymentRecord> = (0..len)
            .map(|_| PaymentRecord {
                id: self.id(),
                content_digest: self.rng.below(50),
                amount: self.amount(),
                currency: self.currency(),
                receiver: (!self.rng.one_in(40)).then(|| self.bic()),
                date: match self.rng.below(30) {
                    0 => None,
                    1 => Some(date(self.day + 1)),
                    2 => Some(date(0)),
                    _ => Some(date(self.day)),
                },
                faults: self.faults(30),
                body_offset: u32::MAX,
                body_len: u32::MAX,
            })
            .collect();
        let mut times = Vec::new();
        let mut originals = Vec::new();
        for at in 0..u32::try_from(payments.len()).expect("few") {
            if self.rng.one_in(2) {
                let times_asked = SettlementTimes {
                    earliest: self.time(),
                    latest: self.time(),
                    reject: self.time(),
                };
                times.push((at, times_asked));
            }
            if !self.rng.one_in(10) {
                let id = self.id();
                originals.push((
                    at,
                    OriginalPayment {
                        id,
                        reason: *b"DUPL",
                    },
                ));
            }
        }
        Submission {
            kind,
            version: 8,
            sender: self.bic(),
            message_id: self.text(),
            digest: u128::from(self.rng.below(4)),
            sequence: (!self.rng.one_in(3)).then(|| self.number()),
            settlement,
            faults: self.faults(40),
            payments,
            times,
            originals,
            heap: Bytes::from_static(b"heap"),
        }
    }

    fn admin(&mut self) -> AdminCommand {
        match self.rng.below(24) {
            0..3 => AdminCommand::AddParticipant(ParticipantTerms {
                bic: self.bic(),
                name: "B".repeat(self.rng.index(150)),
                home: ShardId::new(u16::try_from(self.rng.below(5)).expect("small")),
                numbers_messages: self.rng.one_in(3),
                refuse_whole: self.rng.one_in(4),
                net_unit: if self.rng.one_in(3) {
                    NetUnit::Package
                } else {
                    NetUnit::Payment
                },
            }),
            3..8 => AdminCommand::OpenAccount(AccountTerms {
                bic: self.bic(),
                currency: self.currency(),
                credit_line: if self.rng.one_in(3) {
                    self.amount()
                } else {
                    AmountMinor::ZERO
                },
            }),
            8..14 => AdminCommand::Fund {
                reference: self.text(),
                bic: self.bic(),
                currency: self.currency(),
                amount: self.amount(),
            },
            14..19 => {
                self.day += u32::from(self.rng.one_in(2));
                AdminCommand::OpenDay {
                    date: date(self.day),
                }
            }
            19 => AdminCommand::CutOff {
                kind: self.rng.pick(&MessageKind::ALL),
            },
            _ if self.rng.one_in(3) => AdminCommand::CloseDay,
            _ => AdminCommand::Fund {
                reference: self.text(),
                bic: self.bic(),
                currency: self.currency(),
                amount: AmountMinor::MAX,
            },
        }
    }

    /// One more thing that happens.
    pub(crate) fn step(&mut self, cluster: &mut Cluster) {
        let shards = u64::try_from(cluster.ledgers.len()).expect("few");
        let shard = |rng: &mut Rng| ShardId::new(u16::try_from(rng.below(shards)).expect("few"));
        match self.rng.below(40) {
            0..16 => {
                cluster.pump_step(&mut self.rng);
            }
            16..28 => {
                let submission = self.submission();
                // Now and then it comes to a shard that is not its home.
                let home = if self.rng.one_in(30) {
                    shard(&mut self.rng)
                } else {
                    cluster.home(submission.sender)
                };
                cluster.apply(home, Command::Submit(submission));
            }
            28..33 => {
                let command = self.admin();
                let to = if self.rng.one_in(30) {
                    shard(&mut self.rng)
                } else {
                    ShardId::new(0)
                };
                cluster.apply(to, Command::Admin(command));
            }
            33 => {
                let to = if self.rng.one_in(10) {
                    shard(&mut self.rng)
                } else {
                    ShardId::new(0)
                };
                let command = if self.rng.one_in(5) {
                    CycleCommand::Abandon
                } else {
                    CycleCommand::Open
                };
                cluster.apply(to, Command::Cycle(command));
            }
            34 => {
                let (bic, next) = (self.bic(), self.number());
                let to = shard(&mut self.rng);
                cluster.apply(to, Command::SkipSequence { bic, next });
            }
            35 => {
                let (bic, through) = (self.bic(), self.number());
                let to = shard(&mut self.rng);
                cluster.apply(to, Command::AcknowledgeReceipts { bic, through });
            }
            36 => {
                // A channel that does not exist, or numbers that never were.
                let to = shard(&mut self.rng);
                let (first, from) = if self.rng.one_in(2) {
                    (1, ShardId::new(u16::MAX))
                } else {
                    (self.rng.pick(&[0, u64::MAX, u64::MAX - 1]), ShardId::new(0))
                };
                let max = if first == 0 { 0 } else { 2 };
                let (_, messages) = cluster.ledger(ShardId::new(0)).outbound(to, 0, max);
                cluster.apply(
                    to,
                    Command::Deliver {
                        from,
                        first,
                        messages,
                    },
                );
            }
            37 => {
                let from = shard(&mut self.rng);
                let to = if self.rng.one_in(2) {
                    ShardId::new(u16::MAX)
                } else {
                    shard(&mut self.rng)
                };
                let (_, end) = cluster.ledger(from).outbound_range(to);
                let through = self.rng.pick(&[0, end, u64::MAX]);
                cluster.apply(from, Command::Delivered { to, through });
            }
            38 => {
                let to = shard(&mut self.rng);
                let command = Command::Genesis(Genesis {
                    shards: u16::try_from(self.rng.below(3)).expect("small"),
                    ..genesis(3)
                });
                cluster.apply(to, command);
            }
            _ => {
                // Time goes on, stands, or jumps back with another leader's clock.
                match self.rng.below(8) {
                    0 => cluster.now_ns -= self.rng.below(500),
                    1 => cluster.now_ns += self.rng.below(3000),
                    _ => cluster.now_ns += self.rng.below(300),
                }
                let to = shard(&mut self.rng);
                cluster.apply(to, Command::Tick);
            }
        }
    }
}

/// Banks with accounts and money in several shards, then chaos. Sometimes there is nothing before the chaos.
pub(crate) fn history(seed: u64, steps: usize) -> Cluster {
    let mut chaos = Chaos::new(seed);
    let shards = 1 + u16::try_from(chaos.rng.below(4)).expect("small");
    let retention_days = u16::try_from(chaos.rng.below(4)).expect("small");
    let mut cluster = Cluster::new(&Genesis {
        retention_days,
        gap_timeout_ns: chaos.rng.pick(&[0, 1, 500, u64::MAX]),
        amount_max: chaos
            .rng
            .pick(&[AmountMinor::MAX, AmountMinor::MAX, amount(25)]),
        page_len_payments: 1 + u32::try_from(chaos.rng.below(3)).expect("small"),
        ..genesis(shards)
    });
    if !chaos.rng.one_in(10) {
        for (at, name) in NAMES.iter().take(6).enumerate() {
            let home = u16::try_from(at).expect("small") % shards;
            cluster.expect_done(AdminCommand::AddParticipant(ParticipantTerms {
                bic: bic(name),
                name: (*name).to_owned(),
                home: ShardId::new(home),
                numbers_messages: at % 4 == 3,
                refuse_whole: at == 2,
                net_unit: if at % 2 == 1 {
                    NetUnit::Package
                } else {
                    NetUnit::Payment
                },
            }));
            for code in ["EUR", "JPY"] {
                cluster.expect_done(AdminCommand::OpenAccount(AccountTerms {
                    bic: bic(name),
                    currency: currency(code),
                    credit_line: amount(chaos.rng.below(10)),
                }));
            }
        }
        cluster.expect_done(AdminCommand::OpenDay { date: date(0) });
        if chaos.rng.one_in(2) {
            cluster.pump();
        }
    }
    for _ in 0..steps {
        chaos.step(&mut cluster);
    }
    cluster
}

#[test]
fn nothing_panics_and_money_is_conserved() {
    for seed in 0..1200 {
        let mut cluster = history(seed, 220);
        cluster.pump_random(&mut Rng::new(seed));
        assert!(cluster.busy().is_empty());
        // Nobody is stuck: the day ends, and with it everything that waited.
        cluster.cycle(CycleCommand::Abandon);
        cluster.pump_random(&mut Rng::new(seed));
        cluster.admin(AdminCommand::CloseDay);
        cluster.pump_random(&mut Rng::new(seed));
        assert_eq!(cluster.coordinator().cycle_running(), None, "seed {seed}");
        assert_eq!(cluster.coordinator().cluster_day(), None, "seed {seed}");
        for ledger in &cluster.ledgers {
            assert_eq!(ledger.waiting_counts(), (0, 0), "seed {seed}");
            let counts = ledger.payment_counts();
            assert_eq!((counts.queued, counts.netting), (0, 0), "seed {seed}");
            let all = counts.accepted() + counts.refused;
            if ledger.dates().count() == 1 {
                assert_eq!(all, ledger.payment_count(), "seed {seed}");
            }
            for account in ledger.accounts() {
                assert_eq!(account.reserved_minor(), 0, "seed {seed}");
            }
        }
    }
}

/// Applies entries to a ledger; the answers are compared by their text.
fn replay(ledger: &mut Ledger, entries: &[Entry]) -> Vec<String> {
    entries
        .iter()
        .map(|entry| format!("{:?}", ledger.apply(entry)))
        .collect()
}

#[test]
fn the_same_entries_give_the_same_state() {
    for seed in 0..120 {
        let cluster = history(seed ^ 0x5EED, 250);
        let mut rng = Rng::new(seed);
        for (ledger, journal) in cluster.ledgers.iter().zip(&cluster.journals) {
            let expected = write(ledger);
            let mut fresh = Ledger::new();
            let outcomes = replay(&mut fresh, journal);
            assert_eq!(fresh.digest(), ledger.digest());
            assert_eq!(write(&fresh), expected, "seed {seed}: a new ledger");

            // From snapshots at some positions; the rest of the journal goes on from there.
            for _ in 0..6 {
                let at = rng.index(journal.len() + 1);
                let mut first = Ledger::new();
                replay(&mut first, &journal[..at]);
                let snapshot = write(&first);
                let mut restored: Ledger = read(&snapshot).expect("a whole snapshot");
                assert_eq!(write(&restored), snapshot, "seed {seed} at {at}");
                assert_eq!(replay(&mut restored, &journal[at..]), outcomes[at..]);
                assert_eq!(write(&restored), expected, "seed {seed} from {at}");
                assert_eq!(restored.digest(), ledger.digest());
            }
        }
        // All shards at once, on threads of their own.
        let digests: Vec<u128> = std::thread::scope(|scope| {
            let threads: Vec<_> = cluster
                .journals
                .iter()
                .map(|journal| {
                    scope.spawn(move || {
                        let mut ledger = Ledger::new();
                        replay(&mut ledger, journal);
                        ledger.digest()
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("no panic"))
                .collect()
        });
        let expected: Vec<u128> = cluster.ledgers.iter().map(Ledger::digest).collect();
        assert_eq!(digests, expected);
    }
}

#[test]
fn a_different_entry_gives_a_different_digest() {
    let cluster = history(1, 200);
    let journal = &cluster.journals[0];
    for at in 0..journal.len() {
        let mut changed = journal.clone();
        if changed[at].command == Command::Tick {
            continue;
        }
        changed[at].time = Timestamp::from_ns(changed[at].time.ns() + 1_000_000);
        let mut ledger = Ledger::new();
        replay(&mut ledger, &changed);
        assert_ne!(ledger.digest(), cluster.ledgers[0].digest(), "entry {at}");
    }
}

#[test]
#[should_panic(expected = "entries are applied in order")]
fn entries_come_without_a_gap() {
    let mut ledger = Ledger::new();
    ledger.apply(&Entry {
        index: LogIndex::new(2),
        time: Timestamp::ZERO,
        command: Command::Tick,
    });
}

#[test]
fn nothing_is_done_before_genesis() {
    let mut chaos = Chaos::new(9);
    let mut ledger = Ledger::new();
    for index in 1..200 {
        let command = match chaos.rng.below(4) {
            0 => Command::Admin(chaos.admin()),
            1 => Command::Submit(chaos.submission()),
            2 => Command::Delivered {
                to: ShardId::new(3),
                through: 9,
            },
            _ => Command::Genesis(Genesis {
                shards: 0,
                ..genesis(1)
            }),
        };
        let outcome = ledger.apply(&Entry {
            index: LogIndex::new(index),
            time: Timestamp::from_ns(index),
            command,
        });
        let refused = matches!(outcome.reply, clearspan_ledger::Reply::Refused(_));
        assert!(refused);
    }
}
