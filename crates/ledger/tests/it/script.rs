//! Scripts: what an operator and some banks do, line by line, and what comes of it.
//!
//! Each line is a command; what follows `->` is its outcome, and a line without one is expected to be `done`. Everything
//! in transit between shards arrives before the next line, unless the script says `pause`. Each script runs with the
//! banks on one shard, on two and on four: nobody may notice.
//!
//!     bank A 5 line 10          a bank with 5 on its EUR account, which may fall to -10 (also: numbered, whole, package)
//!     account A USD 7 line 1    another account of it
//!     day, close, cut-off pacs.008
//!     fund A 5 USD
//!     A sends m: B 10, C 5 USD  a package for netting; its payments are m.1 and m.2, and a single one is also m
//!     A pays p urgent: B 10     gross (urgent, high or normal; or-refuse; times: from 5 till 8 reject 9)
//!     A returns r: B 4 of p     a return
//!     A cancels c: p, m.2
//!     again m                   the same bytes of m once more
//!     at 30, tick, cycle, open cycle, abandon, pause, pump, until reserving, resume
//!     balance A, balances, status p, queue A, incoming A, output A, gaps A, skip A 4, ack A 3, acknowledged A, returned p,
//!     running

use std::collections::BTreeMap;

use bytes::Bytes;
use clearspan_ledger::day::PaymentStatus;
use clearspan_ledger::directory::{AccountTerms, NetUnit, ParticipantTerms};
use clearspan_ledger::entry::{AdminCommand, Command, CycleCommand};
use clearspan_ledger::message::{
    Class, MessageKind, OriginalPayment, PaymentRecord, Settlement, SettlementTimes, Submission,
};
use clearspan_ledger::query::PaymentView;
use clearspan_ledger::stream::{GrossEvent, Item, ItemBody};
use clearspan_ledger::{
    AmountMinor, Bic, BusinessDate, CancelOutcome, Currency, CyclePhase, Ledger, MessageNo,
    PaymentId, Reason, ReasonSet, Reply, ShardId, Text, Timestamp,
};

use crate::cluster::{Cluster, START_NS, genesis};
use crate::receipts::check_cycle;

/// Runs a script on one, two and four shards and compares every outcome.
pub(crate) fn check(script: &str) {
    check_on(&[1, 2, 4], script);
}

pub(crate) fn check_on(shards: &[u16], script: &str) {
    for &count in shards {
        let mut world = World::new(count);
        for line in script.lines() {
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            let (command, expected) = line.split_once("->").unwrap_or((line, "done"));
            let outcome = world.run(command.trim());
            assert_eq!(
                outcome,
                expected.trim(),
                "on {count} shards, `{}`, after:\n{}",
                command.trim(),
                world.log.join("\n")
            );
            world.log.push(format!("{} -> {outcome}", command.trim()));
        }
    }
}

pub(crate) fn eur() -> Currency {
    currency("EUR")
}

pub(crate) fn currency(code: &str) -> Currency {
    Currency::parse(code.as_bytes()).expect("three capital letters")
}

pub(crate) fn bic(name: &str) -> Bic {
    Bic::parse(format!("BNK{name:X<1}DEFF").as_bytes()).expect("one capital letter or digit")
}

pub(crate) fn amount(minor: u64) -> AmountMinor {
    AmountMinor::new(minor).expect("18 digits")
}

pub(crate) fn hash(text: &str) -> u128 {
    xxhash_rust::xxh3::xxh3_128(text.as_bytes())
}

fn number(word: &str) -> u64 {
    word.parse()
        .unwrap_or_else(|_| panic!("`{word}` is not a number"))
}

pub(crate) fn reason_named(name: &str) -> Reason {
    *Reason::ALL
        .iter()
        .find(|reason| reason.name() == name)
        .unwrap_or_else(|| panic!("no reason {name}"))
}

struct Sent {
    submission: Submission,
    answer: u64,
}

#[derive(Clone, Copy)]
struct Known {
    sender: Bic,
    record: PaymentRecord,
}

struct World {
    cluster: Cluster,
    banks: Vec<String>,
    date: BusinessDate,
    sent: BTreeMap<String, Sent>,
    payments: BTreeMap<String, Known>,
    /// Names under which messages were taken in, for output.
    names: BTreeMap<(ShardId, MessageNo), String>,
    paused: bool,
    references: u32,
    read: BTreeMap<String, u64>,
    log: Vec<String>,
}

impl World {
    fn new(shards: u16) -> Self {
        Self {
            cluster: Cluster::new(&genesis(shards)),
            banks: Vec::new(),
            date: BusinessDate::from_ymd(2026, 11, 29).expect("a date"),
            sent: BTreeMap::new(),
            payments: BTreeMap::new(),
            names: BTreeMap::new(),
            paused: false,
            references: 0,
            read: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    fn run(&mut self, command: &str) -> String {
        let (head, items) = command.split_once(':').unwrap_or((command, ""));
        let words: Vec<&str> = head.split_whitespace().collect();
        let outcome = match *words.as_slice() {
            ["bank", name, ref rest @ ..] => self.bank(name, rest),
            ["account", name, code, ref rest @ ..] => self.account(name, code, rest),
            ["fund", name, minor] => self.fund(name, number(minor), "EUR"),
            ["fund", name, minor, code] => self.fund(name, number(minor), code),
            ["day"] => {
                let date = self.date.next();
                let reply = self.cluster.admin(AdminCommand::OpenDay { date });
                if reply == Reply::Done {
                    self.date = date;
                }
                shown(&reply)
            }
            ["close"] => shown(&self.cluster.admin(AdminCommand::CloseDay)),
            ["cut-off", kind] => {
                let kind = MessageKind::ALL.into_iter().find(|k| k.name() == kind);
                let kind = kind.expect("a kind of message");
                shown(&self.cluster.admin(AdminCommand::CutOff { kind }))
            }
            [name, "sends", message, ref rest @ ..] => {
                self.submit(name, message, MessageKind::CustomerTransfer, rest, items)
            }
            [name, "pays", message, ref rest @ ..] => {
                let mut rest = rest.to_vec();
                rest.push("gross");
                self.submit(name, message, MessageKind::CustomerTransfer, &rest, items)
            }
            [name, "returns", message, ref rest @ ..] => {
                self.submit(name, message, MessageKind::Return, rest, items)
            }
            [name, "cancels", message, ref rest @ ..] => {
                self.submit(name, message, MessageKind::Cancellation, rest, items)
            }
            ["again", message] => self.again(message),
            ["at", ns] => {
                self.cluster.now_ns = START_NS + number(ns);
                done()
            }
            ["tick"] => {
                self.cluster.tick();
                done()
            }
            ["cycle"] => {
                let reply = self.cluster.cycle(CycleCommand::Open);
                self.cluster.pump();
                if reply == Reply::Done {
                    self.last_cycle()
                } else {
                    shown(&reply)
                }
            }
            ["open", "cycle"] => return shown(&self.cluster.cycle(CycleCommand::Open)),
            ["last", "cycle"] => self.last_cycle(),
            ["abandon"] => shown(&self.cluster.cycle(CycleCommand::Abandon)),
            ["pause"] => {
                self.paused = true;
                done()
            }
            ["resume"] => {
                self.paused = false;
                done()
            }
            ["pump"] => {
                self.cluster.pump();
                done()
            }
            ["until", phase] => self.until(phase),
            ["running"] => self.running(),
            ["balance", name] => self.cluster.balance(bic(name), eur()).to_string(),
            ["balance", name, code] => self.cluster.balance(bic(name), currency(code)).to_string(),
            ["balances"] => {
                let balance =
                    |name: &String| format!("{name} {}", self.cluster.balance(bic(name), eur()));
                list(self.banks.iter().map(balance), ", ")
            }
            ["reserved", name] => {
                let (ledger, participant) = self.at_home(name);
                let account = ledger.account(participant, eur()).expect("an account");
                account.reserved_minor().to_string()
            }
            ["status", payment] => self.status(payment),
            ["returned", payment] => self.view(payment).returned.minor().to_string(),
            ["queue", name] => {
                let (ledger, participant) = self.at_home(name);
                list(
                    ledger.queue(participant).iter().map(|view| self.name(view)),
                    " ",
                )
            }
            ["incoming", name] => {
                let (_, participant) = self.at_home(name);
                let views: Vec<PaymentView> = self
                    .cluster
                    .ledgers
                    .iter()
                    .flat_map(|ledger| ledger.expected_incoming(participant))
                    .collect();
                let mut names: Vec<String> = views.iter().map(|view| self.name(view)).collect();
                names.sort();
                list(names.into_iter(), " ")
            }
            ["output", name] => self.output(name),
            ["gaps", name] => {
                let (ledger, participant) = self.at_home(name);
                let gaps = ledger.gaps(participant);
                list(gaps.iter().map(|(from, to)| format!("{from}..{to}")), ", ")
            }
            ["acknowledged", name] => {
                let (ledger, participant) = self.at_home(name);
                let stream = ledger.stream(participant).expect("output");
                stream.acknowledged().to_string()
            }
            ["skip", name, next] => {
                let command = Command::SkipSequence {
                    bic: bic(name),
                    next: number(next),
                };
                let home = self.cluster.home(bic(name));
                shown(&self.cluster.apply(home, command))
            }
            ["ack", name, through] => {
                let command = Command::AcknowledgeReceipts {
                    bic: bic(name),
                    through: number(through),
                };
                let home = self.cluster.home(bic(name));
                shown(&self.cluster.apply(home, command))
            }
            _ => panic!("`{command}` is no command"),
        };
        if !self.paused {
            self.cluster.pump();
        }
        outcome
    }

    fn bank(&mut self, name: &str, rest: &[&str]) -> String {
        let home = self.banks.len() % self.cluster.ledgers.len();
        self.banks.push(name.to_owned());
        let reply = self
            .cluster
            .admin(AdminCommand::AddParticipant(ParticipantTerms {
                bic: bic(name),
                name: format!("Bank {name}"),
                home: ShardId::new(u16::try_from(home).expect("few shards")),
                numbers_messages: rest.contains(&"numbered"),
                refuse_whole: rest.contains(&"whole"),
                net_unit: if rest.contains(&"package") {
                    NetUnit::Package
                } else {
                    NetUnit::Payment
                },
            }));
        assert_eq!(reply, Reply::Done);
        self.account(name, "EUR", rest)
    }

    fn account(&mut self, name: &str, code: &str, rest: &[&str]) -> String {
        let line = rest.iter().position(|&word| word == "line");
        let credit_line = line.map_or(0, |at| number(rest[at + 1]));
        let reply = self.cluster.admin(AdminCommand::OpenAccount(AccountTerms {
            bic: bic(name),
            currency: currency(code),
            credit_line: amount(credit_line),
        }));
        if reply != Reply::Done {
            return shown(&reply);
        }
        match rest.first().and_then(|word| word.parse().ok()) {
            Some(minor) if minor > 0 => self.fund(name, minor, code),
            _ => done(),
        }
    }

    fn fund(&mut self, name: &str, minor: u64, code: &str) -> String {
        self.references += 1;
        let reply = self.cluster.admin(AdminCommand::Fund {
            reference: Text::new(&format!("F{}", self.references)).expect("short"),
            bic: bic(name),
            currency: currency(code),
            amount: amount(minor),
        });
        shown(&reply)
    }

    fn submit(
        &mut self,
        sender: &str,
        message: &str,
        kind: MessageKind,
        rest: &[&str],
        items: &str,
    ) -> String {
        // A name that was used before is used again on purpose, for other content.
        let mut name = message.to_owned();
        while self.sent.contains_key(&name) {
            name.push('\'');
        }
        let class = if rest.contains(&"urgent") {
            Class::Urgent
        } else if rest.contains(&"high") {
            Class::High
        } else {
            Class::Normal
        };
        let settlement = if rest.contains(&"gross") || kind == MessageKind::Return {
            Settlement::Gross {
                class,
                settle_or_refuse: rest.contains(&"or-refuse"),
            }
        } else {
            Settlement::Net
        };
        let after = |word: &str| rest.iter().position(|&w| w == word).map(|at| rest[at + 1]);
        let mut submission = Submission {
            kind,
            version: 8,
            sender: bic(sender),
            message_id: Text::new(message).expect("short"),
            digest: hash(&format!(
                "{sender} {message} {rest:?} {items} {}",
                self.date
            )),
            sequence: after("no").map(number),
            settlement,
            faults: after("fault").map_or(ReasonSet::EMPTY, |f| reason_named(f).into()),
            payments: Vec::new(),
            times: Vec::new(),
            originals: Vec::new(),
            heap: Bytes::new(),
        };
        let items: Vec<&str> = items.split(',').map(str::trim).collect();
        for (at, item) in (0_u32..).zip(items.iter().filter(|item| !item.is_empty())) {
            let key = format!("{name}.{}", at + 1);
            let words: Vec<&str> = item.split_whitespace().collect();
            let record = if kind == MessageKind::Cancellation {
                self.cancel_item(&words, at, &mut submission)
            } else {
                self.payment_item(sender, &key, &words, at, &mut submission)
            };
            submission.payments.push(record);
            let known = Known {
                sender: bic(sender),
                record,
            };
            if kind != MessageKind::Cancellation {
                self.payments.insert(key, known);
                if items.len() == 1 {
                    self.payments.insert(name.clone(), known);
                }
            }
        }
        let home = self.cluster.home(bic(sender));
        let before = self.next_output(sender);
        let reply = self
            .cluster
            .apply(home, Command::Submit(submission.clone()));
        let answer = match reply {
            Reply::Taken {
                message, answer, ..
            } => {
                self.names.insert((home, message), name.clone());
                assert!(answer >= before, "the answer is output of this entry");
                answer
            }
            Reply::Held { answer, .. } => answer,
            _ => 0,
        };
        self.sent.insert(name, Sent { submission, answer });
        self.shown_reception(home, &reply)
    }

    fn cancel_item(&self, words: &[&str], at: u32, submission: &mut Submission) -> PaymentRecord {
        let known = self.payments.get(words[0]).copied();
        let id = known.map_or_else(
            || PaymentId::of_transaction(words[0]),
            |known| known.record.id,
        );
        submission.originals.push((
            at,
            OriginalPayment {
                id,
                reason: *b"DUPL",
            },
        ));
        PaymentRecord {
            id,
            content_digest: 0,
            amount: AmountMinor::ZERO,
            currency: Currency::NONE,
            receiver: None,
            date: None,
            faults: ReasonSet::EMPTY,
            body_offset: 0,
            body_len: 0,
        }
    }

    fn payment_item(
        &self,
        sender: &str,
        key: &str,
        words: &[&str],
        at: u32,
        submission: &mut Submission,
    ) -> PaymentRecord {
        let after = |word: &str| {
            words
                .iter()
                .position(|&w| w == word)
                .map(|at| words[at + 1])
        };
        let of = |word: &str| {
            after(word).map(|name| {
                self.payments
                    .get(name)
                    .unwrap_or_else(|| panic!("no payment {name}"))
                    .record
            })
        };
        if let [word, name, ..] = *words
            && word == "again"
        {
            return self.payments[name].record;
        }
        let record = PaymentRecord {
            id: of("key").map_or_else(
                || PaymentId::of_transaction(&format!("{sender}/{key}")),
                |record| record.id,
            ),
            content_digest: of("content").map_or_else(
                || u64::try_from(hash(key) >> 64).unwrap_or(0),
                |record| record.content_digest,
            ),
            amount: amount(number(words[1])),
            currency: words
                .get(2)
                .and_then(|word| Currency::parse(word.as_bytes()))
                .unwrap_or(eur()),
            receiver: (words[0] != "-").then(|| bic(words[0])),
            date: match after("dated") {
                Some("yesterday") => Some(BusinessDate::from_days(self.date.days() - 1)),
                Some("tomorrow") => Some(self.date.next()),
                Some(_) => None,
                None => Some(self.date),
            },
            faults: after("fault").map_or(ReasonSet::EMPTY, |f| reason_named(f).into()),
            body_offset: 0,
            body_len: 0,
        };
        let time = |word| after(word).map(|ns| Timestamp::from_ns(START_NS + number(ns)));
        let times = SettlementTimes {
            earliest: time("from"),
            latest: time("till"),
            reject: time("reject"),
        };
        if times != SettlementTimes::default() {
            submission.times.push((at, times));
        }
        if let Some(original) = after("of") {
            let id = self.payments.get(original).map_or_else(
                || PaymentId::of_transaction(original),
                |known| known.record.id,
            );
            submission.originals.push((
                at,
                OriginalPayment {
                    id,
                    reason: *b"AC04",
                },
            ));
        }
        record
    }

    /// The same bytes once more: the same stored answer, nothing changes.
    fn again(&mut self, name: &str) -> String {
        let sent = &self.sent[name];
        let (submission, answer) = (sent.submission.clone(), sent.answer);
        let home = self.cluster.home(submission.sender);
        let outputs = |world: &Self| -> Vec<u64> {
            world
                .banks
                .iter()
                .map(|bank| world.next_output(bank))
                .collect()
        };
        let before = (outputs(self), self.cluster.ledger(home).payment_count());
        let reply = self.cluster.apply(home, Command::Submit(submission));
        match reply {
            Reply::Repeat { answer: same, .. } => {
                let after = (outputs(self), self.cluster.ledger(home).payment_count());
                assert_eq!(after, before, "a repetition puts nothing out");
                if same == answer {
                    "same answer".to_owned()
                } else {
                    format!("answer {same} instead of {answer}")
                }
            }
            reply => self.shown_reception(home, &reply),
        }
    }

    fn next_output(&self, bank: &str) -> u64 {
        let Some(participant) = self.cluster.coordinator().directory().find(bic(bank)) else {
            return 1;
        };
        let ledger = self.cluster.ledger(self.cluster.home(bic(bank)));
        ledger
            .stream(participant)
            .map_or(1, clearspan_ledger::stream::Stream::next_number)
    }

    fn shown_reception(&self, home: ShardId, reply: &Reply) -> String {
        let Reply::Taken {
            message,
            answer,
            accepted,
            refused,
        } = *reply
        else {
            return shown(reply);
        };
        let ledger = self.cluster.ledger(home);
        let record = ledger.message(message).expect("just taken in");
        if let Some(reason) = record.refused {
            return format!("refused {}", reason.code());
        }
        if let Some(answers) = ledger.cancellation_answers(message) {
            return list(
                answers.iter().map(|answer| shown_cancel(answer.outcome)),
                ", ",
            );
        }
        let item = ledger
            .stream(record.sender)
            .and_then(|stream| stream.get(answer))
            .expect("the answer is in the stream");
        if let ItemBody::Gross { event, .. } = item.body {
            assert_eq!((accepted, refused), (1, 0));
            return shown_event(event);
        }
        let reasons: Vec<String> = ledger
            .payments_of(message)
            .filter(|view| view.status == PaymentStatus::Refused)
            .map(|view| {
                let code = view.reason.map_or("-", Reason::code);
                format!("{code} at {}", view.position + 1)
            })
            .collect();
        assert_eq!(reasons.len(), usize::try_from(refused).expect("small"));
        if refused == 0 {
            format!("accepted {accepted}")
        } else {
            format!("accepted {accepted}, refused {}", reasons.join(", "))
        }
    }

    fn at_home(&self, name: &str) -> (&Ledger, clearspan_ledger::ParticipantId) {
        let ledger = self.cluster.ledger(self.cluster.home(bic(name)));
        let participant = ledger.directory().find(bic(name));
        (ledger, participant.expect("a participant"))
    }

    fn view(&self, name: &str) -> PaymentView {
        let known = self
            .payments
            .get(name)
            .unwrap_or_else(|| panic!("no payment {name}"));
        let ledger = self.cluster.ledger(self.cluster.home(known.sender));
        let sender = ledger.directory().find(known.sender).expect("a sender");
        let payment = ledger
            .find_payment(sender, known.record.id)
            .unwrap_or_else(|| panic!("{name} was not taken in"));
        ledger.payment(payment).expect("it was found")
    }

    fn name(&self, view: &PaymentView) -> String {
        let sender = self.cluster.coordinator().directory().bic(view.sender);
        self.payments
            .iter()
            .find(|(_, known)| known.sender == sender && known.record.id == view.id)
            .map_or_else(|| "?".to_owned(), |(name, _)| name.clone())
    }

    fn status(&self, name: &str) -> String {
        let view = self.view(name);
        let status = match view.status {
            PaymentStatus::Refused => "refused",
            PaymentStatus::Netting => "netting",
            PaymentStatus::Settled => "settled",
            PaymentStatus::Queued => "queued",
            PaymentStatus::Ended => "ended",
            PaymentStatus::Cancelled => "cancelled",
            PaymentStatus::Claiming => "claiming",
        };
        match view.reason {
            Some(reason) => format!("{status} {}", reason.code()),
            None => status.to_owned(),
        }
    }

    fn bank_name(&self, participant: clearspan_ledger::ParticipantId) -> String {
        self.banks[participant.index()].clone()
    }

    fn output(&mut self, name: &str) -> String {
        let from = self.read.get(name).copied().unwrap_or(1);
        let next = self.next_output(name);
        self.read.insert(name.to_owned(), next);
        let home = self.cluster.home(bic(name));
        let (ledger, participant) = self.at_home(name);
        let Some(stream) = ledger.stream(participant) else {
            return "nothing".to_owned();
        };
        let mut number = from;
        let mut lines: Vec<String> = Vec::new();
        let mut credits: Option<(u32, u128)> = None;
        for item in stream.range(from, next) {
            assert_eq!(item.number, number, "output is numbered without holes");
            number += u64::from(item.pages);
            // Credits of one cycle come from as many shards as there are senders in; they count together here.
            if let ItemBody::NetCredits { count, minor, .. } = item.body {
                let (n, sum) = credits.unwrap_or_default();
                credits = Some((n + count, sum + minor));
                continue;
            }
            if let Some((count, minor)) = credits.take() {
                lines.push(format!("credits {count} for {minor}"));
            }
            lines.push(self.shown_item(home, ledger, item));
        }
        if let Some((count, minor)) = credits {
            lines.push(format!("credits {count} for {minor}"));
        }
        assert_eq!(number, next);
        list(lines.into_iter(), "; ")
    }

    fn shown_item(&self, home: ShardId, ledger: &Ledger, item: &Item) -> String {
        let message = |number: MessageNo| {
            self.names
                .get(&(home, number))
                .cloned()
                .unwrap_or_else(|| format!("message {number}"))
        };
        match &item.body {
            ItemBody::Reception { message: number } => {
                let record = ledger.message(*number).expect("within retention");
                match record.refused {
                    Some(reason) => format!("{} refused {}", message(*number), reason.code()),
                    None => format!(
                        "{} accepted {} of {}",
                        message(*number),
                        record.count - record.refused_count,
                        record.count
                    ),
                }
            }
            ItemBody::Gap {
                missing_from,
                missing_through,
                ..
            } => format!("missing {missing_from}..{missing_through}"),
            ItemBody::Gross { payment, event } => {
                let view = ledger.payment(*payment).expect("within retention");
                format!("{} {}", self.name(&view), shown_event(*event))
            }
            ItemBody::GrossCredit(advice) => format!(
                "credit {} from {}",
                advice.amount.minor(),
                self.bank_name(advice.sender)
            ),
            ItemBody::Funded { amount, .. } => format!("funded {}", amount.minor()),
            ItemBody::Netted {
                message: number,
                settled,
                dropped,
                ..
            } => format!("{} netted {settled}, dropped {dropped}", message(*number)),
            ItemBody::NetResult { .. } => "net result".to_owned(),
            ItemBody::NetCredits { .. } => "credits".to_owned(),
            ItemBody::CancellationAnswer { message: number } => {
                let answers = ledger.cancellation_answers(*number).unwrap_or(&[]);
                let answers = answers.iter().map(|answer| shown_cancel(answer.outcome));
                format!("{} {}", message(*number), list(answers, ", "))
            }
            ItemBody::RecallRequest { notice, .. } => {
                format!("recall from {}", self.bank_name(notice.sender))
            }
            ItemBody::Ended { message: number } => format!("{} ended", message(*number)),
            ItemBody::Statement(statement) => format!(
                "statement {} {}: {} - {} + {} = {}",
                statement.sequence,
                statement.currency,
                statement.opening_minor,
                statement.debits_minor,
                statement.credits_minor,
                statement.closing_minor
            ),
        }
    }

    fn last_cycle(&mut self) -> String {
        let Some(summary) = self.cluster.coordinator().cycle_summaries().last().cloned() else {
            return "none".to_owned();
        };
        if summary.abandoned {
            return "abandoned".to_owned();
        }
        // Earlier ones still count up, though what they dropped has gone on.
        for earlier in self.cluster.coordinator().cycle_summaries() {
            if !earlier.abandoned {
                check_cycle(&self.cluster, earlier.cycle);
            }
        }
        let mut sums: BTreeMap<Currency, (u32, u128, u32, u128)> = BTreeMap::new();
        for result in &summary.results {
            let sum = sums.entry(result.currency).or_default();
            sum.0 += result.out_count;
            sum.1 += result.out_minor;
            sum.2 += result.dropped_count;
            sum.3 += result.dropped_minor;
        }
        let lines = sums
            .into_iter()
            .map(|(currency, (count, minor, dropped, lost))| {
                if dropped == 0 {
                    format!("{currency} settled {count} for {minor}")
                } else {
                    format!("{currency} settled {count} for {minor}, dropped {dropped} for {lost}")
                }
            });
        list(lines, "; ")
    }

    fn running(&self) -> String {
        match self.cluster.coordinator().cycle_running() {
            None => "nothing".to_owned(),
            Some((_, CyclePhase::Cutting, _)) => "cutting".to_owned(),
            Some((_, CyclePhase::Reserving, round)) => format!("reserving {round}"),
            Some((_, CyclePhase::Posting, _)) => "posting".to_owned(),
        }
    }

    /// Delivers message by message until the coordinator's cycle is in a phase: `reserving`, `round-2`, `posting` or
    /// `nothing`.
    fn until(&mut self, phase: &str) -> String {
        loop {
            let running = self.running();
            if running.split_whitespace().next() == Some(phase)
                || running.replace("reserving ", "round-") == phase
            {
                return running;
            }
            let busy = self.cluster.busy();
            let Some(&(from, to)) = busy.first() else {
                return format!("quiet, running {running}");
            };
            self.cluster.deliver(from, to, 1);
            self.cluster.confirm(from, to);
        }
    }
}

fn done() -> String {
    "done".to_owned()
}

fn list(items: impl Iterator<Item = String>, between: &str) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() {
        "nothing".to_owned()
    } else {
        items.join(between)
    }
}

fn shown(reply: &Reply) -> String {
    match reply {
        Reply::Done => done(),
        Reply::Repeat { .. } => "repeat".to_owned(),
        Reply::Held {
            missing_from,
            missing_through,
            ..
        } => format!("held, missing {missing_from}..{missing_through}"),
        Reply::HeldFull { missing_from } => format!("full, missing {missing_from}"),
        Reply::NotTaken { reason } => format!("not taken {}", reason.code()),
        Reply::NotHome { home } => format!("not home, {home}"),
        Reply::Refused(refusal) => format!("refused {refusal:?}"),
        Reply::Taken { .. } => "taken".to_owned(),
        Reply::Asked { request } => format!("asked, request {request}"),
    }
}

fn shown_event(event: GrossEvent) -> String {
    match event {
        GrossEvent::Settled => "settled".to_owned(),
        GrossEvent::Queued { reason } => format!("queued {}", reason.code()),
        GrossEvent::Warned => "warned".to_owned(),
        GrossEvent::Refused { reason } => format!("refused {}", reason.code()),
        GrossEvent::Cancelled => "cancelled".to_owned(),
    }
}

fn shown_cancel(outcome: CancelOutcome) -> String {
    match outcome {
        CancelOutcome::Cancelled => "cancelled".to_owned(),
        CancelOutcome::Recalled => "recalled".to_owned(),
        CancelOutcome::Refused { reason } => format!("refused {}", reason.code()),
    }
}
