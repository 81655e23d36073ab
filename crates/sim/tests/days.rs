//! Thousands of small random days, through the ledger and through the oracle's model side by side.
//!
//! Shards act at any interleaving: messages between them are delivered late, twice, or behind a gap. Every reply, every
//! payment, balance, answer and item of output must be the same, and every cycle the greatest there is. A difference is a
//! fault of one of the two; the documents say of which.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use clearspan_ledger::directory::{AccountTerms, NetUnit, ParticipantTerms};
use clearspan_ledger::entry::{AdminCommand, Command, CycleCommand, Entry, Genesis};
use clearspan_ledger::message::{
    Class, MessageKind, OriginalPayment, PaymentRecord, Settlement, SettlementTimes, Submission,
};
use clearspan_ledger::{
    AmountMinor, Bic, BusinessDate, CancelOutcome, Currency, Ledger, PaymentId, Reason, ReasonSet,
    Reply, ShardId, Text, Timestamp,
};
use clearspan_oracle::replay::{Difference, Logged, Replay, Step, compare};
use clearspan_sim::plain;

const AMOUNT_MAX: u64 = 40;
const START_NS: u64 = 1_796_000_000_000_000_000;
const DAYS: u64 = 3000;
const STEPS: usize = 140;

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
    fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).expect("small")
    }
    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
    fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.index(list.len())].clone()
    }
}

fn bic(bank: usize) -> Bic {
    let letter = char::from(b'A' + u8::try_from(bank).expect("few banks"));
    Bic::parse(format!("BNK{letter}DEFF").as_bytes()).expect("a code")
}

fn currency(code: &str) -> Currency {
    Currency::parse(code.as_bytes()).expect("a currency")
}

fn amount(minor: u64) -> AmountMinor {
    AmountMinor::new(minor).expect("a small amount")
}

fn date(day: u32) -> BusinessDate {
    BusinessDate::from_ymd(2026, 11, 30)
        .map(|first| BusinessDate::from_days(first.days() + day))
        .expect("a date")
}

fn text(text: &str) -> Text {
    Text::new(text).expect("short")
}

/// A payment that was sent, for returns and cancellations.
#[derive(Clone, Copy)]
struct Sent {
    id: PaymentId,
    from: usize,
    to: Option<Bic>,
    currency: Currency,
    minor: u64,
}

struct Pair {
    rng: Rng,
    ledgers: Vec<Ledger>,
    model: Replay,
    now_ns: u64,
    day: u32,
    banks: usize,
    numbered: Vec<bool>,
    next_sequence: Vec<u64>,
    sent: Vec<Submission>,
    payments: Vec<Sent>,
    log: Vec<String>,
}

type Judged<T> = Result<T, Box<Difference>>;

impl Pair {
    fn new(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let shards = rng.pick(&[1_usize, 1, 2, 3]);
        Self {
            ledgers: vec![Ledger::new(); shards],
            model: Replay::new(shards),
            now_ns: START_NS,
            day: 0,
            banks: 0,
            numbered: Vec::new(),
            next_sequence: Vec::new(),
            sent: Vec::new(),
            payments: Vec::new(),
            log: Vec::new(),
            rng,
        }
    }

    fn found(&mut self) -> Judged<()> {
        let shards = self.shards();
        let genesis = Genesis {
            cluster: 7,
            shard: ShardId::new(0),
            shards: u16::try_from(shards.len()).expect("few"),
            hash_seed: 0x1234_5678_9ABC_DEF0_1122_3344_5566_7788,
            retention_days: u16::try_from(1 + self.rng.below(4)).expect("small"),
            amount_max: amount(AMOUNT_MAX),
            page_len_payments: u32::try_from(1 + self.rng.below(3)).expect("small"),
            gap_timeout_ns: self.rng.pick(&[0, 7, 40, u64::MAX]),
        };
        for shard in shards {
            if self.rng.one_in(8) {
                self.apply(shard, Command::Tick)?;
            }
            let genesis = Genesis {
                shard,
                ..genesis.clone()
            };
            self.apply(shard, Command::Genesis(genesis))?;
        }
        for _ in 0..2 + self.rng.index(4) {
            self.add_bank()?;
        }
        while self.banks < 2 {
            self.add_bank()?;
        }
        let open = AdminCommand::OpenDay { date: date(0) };
        self.apply(ShardId::new(0), Command::Admin(open))?;
        self.deliver_all()
    }

    fn shards(&self) -> Vec<ShardId> {
        (0..u16::try_from(self.ledgers.len()).expect("few"))
            .map(ShardId::new)
            .collect()
    }

    fn some_shard(&mut self) -> ShardId {
        let shards = self.shards();
        self.rng.pick(&shards)
    }

    fn apply(&mut self, shard: ShardId, command: Command) -> Judged<Reply> {
        // Leaders' clocks differ.
        let time_ns = self.now_ns - self.rng.pick(&[0, 0, 0, 9]);
        self.log.push(format!("{shard} {command:?}"));
        let ledger = &mut self.ledgers[shard.index()];
        let entry = Entry {
            index: ledger.position().0.next(),
            time: Timestamp::from_ns(time_ns),
            command,
        };
        let outcome = ledger.apply(&entry);
        let names = plain::Names::of(self.ledgers[0].directory());
        let logged = Logged {
            entry: names.entry(&entry),
            applied: Some(plain::answer(&outcome)),
            told: Vec::new(),
        };
        let step = self.model.step(shard.index(), &logged).map_err(Box::new)?;
        assert_eq!(
            step,
            Step::Applied,
            "letters are delivered after they are sent"
        );
        Ok(outcome.reply)
    }

    fn compare(&self) -> Judged<()> {
        let names = plain::Names::of(self.ledgers[0].directory());
        for (shard, ledger) in self.ledgers.iter().enumerate() {
            let expected = self.model.shard(shard).picture();
            compare(shard, &expected, &plain::picture(ledger, &names)).map_err(Box::new)?;
        }
        Ok(())
    }

    fn admin(&mut self, command: AdminCommand) -> Judged<Reply> {
        // Now and then somebody asks the wrong shard.
        let shard = if self.rng.one_in(30) {
            self.some_shard()
        } else {
            ShardId::new(0)
        };
        self.apply(shard, Command::Admin(command))
    }

    fn add_bank(&mut self) -> Judged<()> {
        let bank = self.banks;
        let beyond = u16::from(self.rng.one_in(40)) * 9;
        let home = self.some_shard().get() + beyond;
        let terms = ParticipantTerms {
            bic: bic(bank),
            name: "a bank".to_owned(),
            home: ShardId::new(home),
            numbers_messages: self.rng.one_in(4),
            refuse_whole: self.rng.one_in(5),
            net_unit: if self.rng.one_in(3) {
                NetUnit::Package
            } else {
                NetUnit::Payment
            },
        };
        let numbered = terms.numbers_messages;
        if self.admin(AdminCommand::AddParticipant(terms.clone()))? == Reply::Done {
            if self.rng.one_in(10) {
                self.admin(AdminCommand::AddParticipant(terms))?;
            }
            self.banks += 1;
            self.numbered.push(numbered);
            self.next_sequence.push(1);
            self.open_account(bank, "EUR")?;
            if self.rng.one_in(2) {
                self.open_account(bank, "JPY")?;
            }
        }
        Ok(())
    }

    fn open_account(&mut self, bank: usize, code: &str) -> Judged<()> {
        let line = if self.rng.one_in(3) {
            self.rng.below(20)
        } else {
            0
        };
        let terms = AccountTerms {
            bic: bic(bank),
            currency: currency(code),
            credit_line: amount(line),
        };
        self.admin(AdminCommand::OpenAccount(terms)).map(drop)
    }

    // ---- messages between shards ----

    fn busy(&self) -> Vec<(ShardId, ShardId)> {
        let mut busy = Vec::new();
        for from in self.shards() {
            for to in self.shards() {
                let next = self.ledgers[to.index()].inbound_next(from);
                if self.ledgers[from.index()].outbound_range(to).1 > next {
                    busy.push((from, to));
                }
            }
        }
        busy
    }

    fn deliver(&mut self, from: ShardId, to: ShardId, at: u64, max: usize) -> Judged<()> {
        let (first, messages) = self.ledgers[from.index()].outbound(to, at, max);
        let command = Command::Deliver {
            from,
            first,
            messages,
        };
        self.apply(to, command).map(drop)
    }

    /// One thing that a network and a restarting leader can do to a channel. `false` when all is quiet.
    fn deliver_some(&mut self) -> Judged<bool> {
        let busy = self.busy();
        if busy.is_empty() {
            return Ok(false);
        }
        let (from, to) = self.rng.pick(&busy);
        let next = self.ledgers[to.index()].inbound_next(from);
        let kept = self.ledgers[from.index()].outbound_range(to).0;
        match self.rng.below(10) {
            0 => {
                let max = 1 + self.rng.index(6);
                self.deliver(from, to, kept, max)?;
            }
            1 => {
                let lost = 1 + self.rng.below(3);
                self.deliver(from, to, next + lost, 3)?;
            }
            2 => {
                let through = next - 1;
                self.apply(from, Command::Delivered { to, through })?;
            }
            3 => {
                let through = self.rng.below(kept);
                self.apply(from, Command::Delivered { to, through })?;
            }
            4 => self.deliver(from, to, next, usize::MAX)?,
            _ => {
                let max = 1 + self.rng.index(2);
                self.deliver(from, to, next, max)?;
            }
        }
        Ok(true)
    }

    fn deliver_all(&mut self) -> Judged<()> {
        while self.deliver_some()? {}
        Ok(())
    }

    // ---- what banks and operators do ----

    fn time(&mut self) -> Option<Timestamp> {
        self.rng
            .one_in(3)
            .then(|| Timestamp::from_ns(self.now_ns + self.rng.below(40)))
    }

    fn key(&mut self) -> PaymentId {
        PaymentId::of_transaction(&self.rng.below(60).to_string())
    }

    fn record(&mut self) -> PaymentRecord {
        let to = self.rng.index(self.banks);
        let mut record = PaymentRecord {
            id: self.key(),
            content_digest: self.rng.below(3),
            amount: amount(1 + self.rng.below(20)),
            currency: currency(self.rng.pick(&["EUR", "EUR", "EUR", "JPY"])),
            receiver: Some(bic(to)),
            date: Some(date(self.day)),
            faults: ReasonSet::EMPTY,
            body_offset: 0,
            body_len: 0,
        };
        if self.rng.one_in(6) {
            match self.rng.below(9) {
                0 => record.amount = AmountMinor::ZERO,
                1 => record.amount = amount(AMOUNT_MAX + 1),
                2 => record.receiver = Some(bic(25)),
                3 => record.receiver = None,
                4 => record.date = Some(date(self.day + 1)),
                5 => record.date = None,
                6 => record.currency = currency(self.rng.pick(&["ZZZ", "USD"])),
                7 => record.faults.insert(self.rng.pick(&[
                    Reason::IdInvalid,
                    Reason::TimesInvalid,
                    Reason::AmountInvalid,
                ])),
                _ => {
                    record.amount = AmountMinor::ZERO;
                    record.faults.insert(Reason::DecimalsExceeded);
                }
            }
        }
        record
    }

    fn submission(&mut self) -> Submission {
        let sender = self.rng.index(self.banks);
        let kind = match self.rng.below(11) {
            0 | 1 => MessageKind::Cancellation,
            2 | 3 => MessageKind::Return,
            4 => MessageKind::BankTransfer,
            _ => MessageKind::CustomerTransfer,
        };
        let sequence = (!self.rng.one_in(8)).then(|| {
            let ahead = self.rng.pick(&[0, 0, 0, 1, 2]);
            self.next_sequence[sender] + ahead
        });
        let settlement = if self.rng.one_in(2) {
            Settlement::Gross {
                class: self.rng.pick(&[Class::Urgent, Class::High, Class::Normal]),
                settle_or_refuse: self.rng.one_in(5),
            }
        } else {
            Settlement::Net
        };
        let mut submission = Submission {
            kind,
            version: 8,
            sender: bic(sender),
            message_id: text(&format!("M{}", self.rng.below(80))),
            digest: u128::from(self.rng.next()),
            sequence,
            settlement,
            faults: ReasonSet::EMPTY,
            payments: Vec::new(),
            times: Vec::new(),
            originals: Vec::new(),
            heap: Bytes::new(),
        };
        if self.rng.one_in(40) {
            submission.faults.insert(Reason::CountMismatch);
        }
        for at in 0..u32::try_from(self.rng.index(5)).expect("few") {
            self.add_payment(&mut submission, at, sender);
        }
        submission
    }

    fn add_payment(&mut self, submission: &mut Submission, at: u32, sender: usize) {
        let mut record = self.record();
        let chosen = |rng: &mut Rng, sent: &[Sent], fits: &dyn Fn(&Sent) -> bool| {
            let fitting: Vec<Sent> = sent.iter().copied().filter(fits).collect();
            (!fitting.is_empty() && !rng.one_in(5)).then(|| rng.pick(&fitting))
        };
        if submission.kind == MessageKind::Cancellation {
            let mine = |sent: &Sent| sent.from == sender;
            if let Some(sent) = chosen(&mut self.rng, &self.payments, &mine) {
                record.id = sent.id;
            }
            record.faults = ReasonSet::EMPTY;
            submission.payments.push(record);
            return;
        }
        // A return usually goes for something that was sent to the bank.
        if submission.kind == MessageKind::Return && !self.rng.one_in(8) {
            let mut id = self.key();
            let received = |sent: &Sent| sent.to == Some(bic(sender));
            if let Some(sent) = chosen(&mut self.rng, &self.payments, &received) {
                id = sent.id;
                record.receiver = Some(bic(sent.from));
                let part = self.rng.one_in(2).then(|| 1 + self.rng.below(8));
                record.amount = amount(part.unwrap_or(sent.minor));
                if !self.rng.one_in(6) {
                    record.currency = sent.currency;
                }
            }
            let reason = *b"AC04";
            submission
                .originals
                .push((at, OriginalPayment { id, reason }));
        }
        if self.rng.one_in(3) {
            let times = SettlementTimes {
                earliest: self.time(),
                latest: self.time(),
                reject: self.time(),
            };
            submission.times.push((at, times));
        }
        self.payments.push(Sent {
            id: record.id,
            from: sender,
            to: record.receiver,
            currency: record.currency,
            minor: record.amount.minor(),
        });
        submission.payments.push(record);
    }

    fn submit(&mut self, submission: Submission) -> Judged<()> {
        let sender = (0..self.banks)
            .find(|&bank| bic(bank) == submission.sender)
            .unwrap_or(0);
        let directory = self.ledgers[0].directory();
        let home = directory
            .find(submission.sender)
            .and_then(|found| directory.get(found))
            .map(|terms| terms.home);
        let shard = match home {
            Some(home) if !self.rng.one_in(50) => home,
            _ => self.some_shard(),
        };
        let sequence = submission.sequence;
        let reply = self.apply(shard, Command::Submit(submission))?;
        let next = &mut self.next_sequence[sender];
        if matches!(reply, Reply::Taken { .. }) && self.numbered[sender] && sequence == Some(*next)
        {
            *next += 1;
        }
        Ok(())
    }

    fn step(&mut self) -> Judged<()> {
        let coordinator = ShardId::new(0);
        match self.rng.below(40) {
            0 | 1 => {
                let bank = self.rng.index(self.banks + 1);
                let command = AdminCommand::Fund {
                    reference: text(&format!("F{}", self.rng.below(60))),
                    bic: bic(bank),
                    currency: currency(self.rng.pick(&["EUR", "EUR", "JPY"])),
                    amount: amount(1 + self.rng.below(60)),
                };
                self.admin(command).map(drop)
            }
            2 | 3 => self
                .apply(coordinator, Command::Cycle(CycleCommand::Open))
                .map(drop),
            4 if self.rng.one_in(3) => {
                let shard = if self.rng.one_in(9) {
                    self.some_shard()
                } else {
                    coordinator
                };
                self.apply(shard, Command::Cycle(CycleCommand::Abandon))
                    .map(drop)
            }
            5 | 6 => {
                self.now_ns += self.rng.below(30);
                let shard = self.some_shard();
                self.apply(shard, Command::Tick).map(drop)
            }
            7 => self.change_day(),
            8 if self.rng.one_in(10) => {
                let kind = self.rng.pick(&MessageKind::ALL);
                self.admin(AdminCommand::CutOff { kind }).map(drop)
            }
            9 => {
                let bank = self.rng.index(self.banks);
                let next = self.next_sequence[bank] + self.rng.below(4);
                let bic = bic(bank);
                let shard = self.some_shard();
                let reply = self.apply(shard, Command::SkipSequence { bic, next })?;
                if reply == Reply::Done {
                    self.next_sequence[bank] = next;
                }
                Ok(())
            }
            10 => {
                let bic = bic(self.rng.index(self.banks));
                let through = self.rng.below(30);
                let shard = self.some_shard();
                self.apply(shard, Command::AcknowledgeReceipts { bic, through })
                    .map(drop)
            }
            11 if self.banks < 7 && self.rng.one_in(6) => self.add_bank(),
            12 if self.rng.one_in(6) => {
                let bank = self.rng.index(self.banks);
                let code = self.rng.pick(&["JPY", "USD", "ZZZ"]);
                self.open_account(bank, code)
            }
            13..16 if !self.sent.is_empty() => {
                let submission = self.rng.pick(&self.sent);
                self.submit(submission)
            }
            16..27 => self.deliver_some().map(drop),
            27 => self.deliver_all(),
            _ => {
                let submission = self.submission();
                self.sent.push(submission.clone());
                self.submit(submission)
            }
        }
    }

    fn change_day(&mut self) -> Judged<()> {
        match self.ledgers[0].cluster_day() {
            Some((_, true)) => self.deliver_all(),
            Some((_, false)) if self.rng.one_in(3) => self.admin(AdminCommand::CloseDay).map(drop),
            Some((_, false)) => Ok(()),
            None => {
                let next = self.day + 1 - u32::from(self.rng.one_in(9));
                let date = date(next);
                if self.admin(AdminCommand::OpenDay { date })? == Reply::Done {
                    self.day = next;
                    self.next_sequence.fill(1);
                }
                Ok(())
            }
        }
    }

    fn run(&mut self) -> Judged<()> {
        self.found()?;
        for at in 0..STEPS {
            self.step()?;
            if at % 6 == 0 {
                self.compare()?;
            }
        }
        self.deliver_all()?;
        self.compare()
    }
}

#[test]
fn the_ledger_and_the_model_agree_on_small_days() {
    let mut met: BTreeSet<Reason> = BTreeSet::new();
    let mut commands: BTreeMap<String, u64> = BTreeMap::new();
    let (mut entries, mut cycles, mut exact) = (0, 0, 0);
    for seed in 0..DAYS {
        let mut pair = Pair::new(seed);
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pair.run()));
        if !matches!(run, Ok(Ok(()))) {
            let last = pair.log.len().saturating_sub(12);
            let difference = run.map_or_else(
                |_| "it panicked".to_owned(),
                |judged| {
                    judged.map_or_else(|difference| difference.to_string(), |()| String::new())
                },
            );
            panic!("seed {seed}: {difference}\nafter {:#?}", &pair.log[last..]);
        }
        entries += pair.log.len();
        cycles += pair.model.cycles;
        exact += pair.model.cycles_exact;
        for ledger in &pair.ledgers {
            for date in ledger.dates() {
                for (message, record) in ledger.messages(date) {
                    met.extend(record.refused);
                    met.extend(
                        ledger
                            .payments_of(message)
                            .filter_map(|payment| payment.reason),
                    );
                    for answer in ledger.cancellation_answers(message).unwrap_or_default() {
                        if let CancelOutcome::Refused { reason } = answer.outcome {
                            met.insert(reason);
                        }
                    }
                }
            }
        }
        for line in &pair.log {
            if let Some(word) = line.split([' ', '(']).nth(1) {
                *commands.entry(word.to_owned()).or_default() += 1;
            }
        }
    }
    println!(
        "{DAYS} days, {entries} entries, {cycles} cycles, {exact} of them the greatest set exactly: {commands:?}"
    );
    assert!(cycles > DAYS);
    assert!(exact > DAYS / 2);
    // What only a gateway finds, and what stores nothing, aside, every reason was met.
    let rare: Vec<Reason> = Reason::ALL
        .iter()
        .copied()
        .filter(|reason| !met.contains(reason) && !found_elsewhere(*reason))
        .collect();
    assert_eq!(rare, []);
}

fn found_elsewhere(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Syntax
            | Reason::HeaderMismatch
            | Reason::MessageIdInvalid
            | Reason::MessageNotSupported
            | Reason::ClassConflict
            | Reason::ControlSumMismatch
            | Reason::TotalMismatch
            | Reason::IdMissing
            | Reason::FieldInvalid
            | Reason::SenderUnknown
            | Reason::DayClosed
    )
}
