//! Writes a day: decides what each message holds, writes it, and follows every account to know the funds it needs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::amount::{Currency, control_sum, decimal};
use super::customer::{self, Context};
use super::date::Day;
use super::fault::{MessageFault, PaymentFault};
use super::ids;
use super::manifest::{Answer, Manifest, PaymentResult};
use super::message::{Kind, Message, Payment, bank_tail, charges};
use super::participants::{self, Account, Participant, Weights};
use super::rng::Rng;
use super::{Error, Options, Progress, Summary};

/// The clearing system's own BIC, to which headers are addressed.
pub(crate) const OPERATOR: &str = "CLRSBE22XXX";

const SECTIONS: [&str; 8] = [
    "morning",
    "noon",
    "afternoon",
    "evening",
    "late",
    "night",
    "small-hours",
    "dawn",
];
/// The day's messages are stamped from 06:00 to 18:00.
const OPENS_SECOND: u64 = 6 * 3600;
const LASTS_SECONDS: u64 = 12 * 3600;
/// Payments in a message that is faulty as a whole.
const FAULTY_MESSAGE_PAYMENTS: u32 = 3;
/// Streams 0 and 1 of the seed are for the participants and the plan; messages follow.
const FIRST_MESSAGE_STREAM: u64 = 2;

/// What one message of the plan is.
#[derive(Clone, Copy)]
enum Item {
    Package { payments: u32 },
    Urgent,
    Faulty(MessageFault),
}

/// `TxId` and UETR of a payment, which make its key.
type Keys = (Option<String>, Option<String>);

/// One account as the day goes on, in minor units.
#[derive(Clone, Copy, Default)]
struct Position {
    /// Net of everything settled so far.
    settled: i128,
    /// Net of the open cycle.
    open_cycle: i128,
    /// The lowest `settled` ever was; zero or below.
    lowest: i128,
}

pub(crate) fn write_day(
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Summary, Error> {
    let mut day = DayWriter::new(options)?;
    let plan = day.plan();
    let total = plan.len();
    for (index, item) in plan.into_iter().enumerate() {
        day.begin_message(index, total)?;
        match item {
            Item::Package { payments } => day.package(payments)?,
            Item::Urgent => day.urgent()?,
            Item::Faulty(fault) => day.faulty(fault)?,
        }
        progress(Progress {
            messages: u64::try_from(index + 1).expect("a length fits 64 bits"),
            messages_total: u64::try_from(total).expect("a length fits 64 bits"),
            payments: day.summary.payments,
            written_bytes: day.summary.written_bytes,
        });
    }
    day.finish()
}

struct DayWriter<'a> {
    options: &'a Options,
    date: Day,
    currencies: Vec<&'static Currency>,
    participants: Vec<Participant>,
    weights: Weights,
    /// By participant, then currency.
    positions: Vec<Vec<Position>>,
    /// Messages numbered so far, by participant.
    sent: Vec<u64>,
    /// The last good payment of each participant that stands on its own, and its currency and amount in hundred-thousandths:
    /// what a repeat repeats.
    last_good: Vec<Option<(Payment, u128)>>,
    manifest: Manifest,
    summary: Summary,
    values_minor: Vec<u128>,
    rng: Rng,
    /// Section of the message at hand, from 0, and its directory under the output directory.
    section: usize,
    section_dir: String,
    file_number: usize,
    second: u64,
    xml: String,
    /// Faults used so far, to take the kinds in turn.
    faults_drawn: usize,
}

impl<'a> DayWriter<'a> {
    fn new(options: &'a Options) -> Result<Self, Error> {
        let (date, currencies) = check(options)?;
        let inbox = options.out_dir.join("inbox");
        if inbox.exists() {
            return Err(Error::Occupied { path: inbox });
        }
        create_dir(&inbox)?;
        let mut rng = Rng::new(options.seed, 0);
        let participants = participants::invent(&mut rng, options.participants, options.shards);
        let count = participants.len();
        Ok(Self {
            options,
            date,
            positions: vec![vec![Position::default(); currencies.len()]; count],
            sent: vec![0; count],
            last_good: vec![None; count],
            weights: Weights::zipf(count),
            participants,
            values_minor: vec![0; currencies.len()],
            currencies,
            manifest: Manifest::create(&options.out_dir.join("expected.jsonl"))?,
            summary: Summary::default(),
            rng: Rng::new(options.seed, 1),
            section: usize::MAX,
            section_dir: String::new(),
            file_number: 0,
            second: 0,
            xml: String::new(),
            faults_drawn: 0,
        })
    }

    /// All messages of the day in the order they come.
    fn plan(&mut self) -> Vec<Item> {
        let mut plan = Vec::new();
        for count in &self.options.packages {
            plan.extend((0..count.packages).map(|_| Item::Package {
                payments: count.payments,
            }));
        }
        plan.extend((0..self.options.urgent).map(|_| Item::Urgent));
        let faults = MessageFault::ALL.iter().copied().cycle();
        plan.extend(
            faults
                .map(Item::Faulty)
                .zip(0..self.options.faulty_messages)
                .map(|(item, _)| item),
        );
        self.rng.shuffle(&mut plan);
        plan
    }

    /// Sets the section, the time and the draws of the message `index` of `total`.
    fn begin_message(&mut self, index: usize, total: usize) -> Result<(), Error> {
        let wide = |number: usize| u64::try_from(number).expect("a length fits 64 bits");
        let sections = usize::try_from(self.options.sections).expect("at most 24");
        let section = index * sections / total;
        if section != self.section {
            if self.section != usize::MAX {
                self.close_cycle();
            }
            self.section = section;
            let name = SECTIONS.get(section).copied().unwrap_or("section");
            self.section_dir = format!("inbox/{:02}-{name}", section + 1);
            create_dir(&self.options.out_dir.join(&self.section_dir))?;
        }
        self.file_number = index + 1;
        self.second = OPENS_SECOND + LASTS_SECONDS * wide(index) / wide(total);
        self.rng = Rng::new(self.options.seed, FIRST_MESSAGE_STREAM + wide(index));
        Ok(())
    }

    /// What the open cycle nets becomes settled.
    fn close_cycle(&mut self) {
        for position in self.positions.iter_mut().flatten() {
            position.settled += position.open_cycle;
            position.open_cycle = 0;
            position.lowest = position.lowest.min(position.settled);
        }
    }

    fn draw_currency(&mut self) -> usize {
        let total = self.currencies.iter().map(|currency| currency.weight).sum();
        let mut drawn = self.rng.below(total);
        for (index, currency) in self.currencies.iter().enumerate() {
            if drawn < currency.weight {
                return index;
            }
            drawn -= currency.weight;
        }
        unreachable!("the draw is below the sum of the weights")
    }

    /// The sender's next message identifier; its digits after the last dash are the sequence number.
    fn next_message_id(&mut self, sender: usize) -> String {
        self.sent[sender] += 1;
        format!(
            "{}-{}-{:06}",
            &self.participants[sender].bic[..8],
            self.date.compact(),
            self.sent[sender]
        )
    }

    /// A good payment. `urgent` draws from the larger amounts.
    fn draw_payment(
        &mut self,
        currency: usize,
        sender: usize,
        receiver: usize,
        id: String,
        kind: Kind,
        urgent: bool,
    ) -> (Payment, u64) {
        let served = self.currencies[currency];
        let amount_minor = if urgent {
            served.draw_urgent_minor(&mut self.rng)
        } else {
            served.draw_package_minor(&mut self.rng)
        };
        let amount = served.text(amount_minor);
        let rng = &mut self.rng;
        let version = self.options.version;
        let with_uetr = kind == Kind::Bank || version.number() >= 8;
        let date = self.date.text();
        let (debtor, creditor) = (
            &self.participants[sender].bic,
            &self.participants[receiver].bic,
        );
        let context = Context {
            version,
            debtor_agent: debtor,
            creditor_agent: creditor,
            currency: served.code,
            amount: &amount,
            date: &date,
        };
        let uetr = with_uetr.then(|| ids::uetr(rng));
        let payment = Payment {
            instruction_id: rng
                .percent(70)
                .then(|| format!("I{}", ids::digits(rng, 15))),
            end_to_end_id: Some(if rng.percent(5) {
                "NOTPROVIDED".to_owned()
            } else {
                format!("E2E-{}", ids::digits(rng, 16))
            }),
            payment_id: Some(id),
            uetr,
            type_information: if kind == Kind::Customer && !urgent {
                customer::type_information(rng)
            } else {
                String::new()
            },
            currency: Some(served.code.to_owned()),
            value_date: None,
            priority: None,
            times: String::new(),
            charges: if kind == Kind::Customer {
                charges(rng, served.code, &amount)
            } else {
                String::new()
            },
            instructed_agent: Some(creditor.clone()),
            tail: match kind {
                Kind::Customer => customer::tail(rng, &context),
                Kind::Bank => bank_tail(debtor, creditor),
            },
            amount,
        };
        (payment, amount_minor)
    }

    /// A package of `count` payments of one sender.
    fn package(&mut self, count: u32) -> Result<(), Error> {
        let sender = self.weights.draw(&mut self.rng);
        let message_id = self.next_message_id(sender);
        let faults: Vec<bool> = (0..count)
            .map(|_| self.rng.ppm(self.options.faulty_payments_ppm))
            .collect();
        // A group total and a group date leave no room for faults of currency and date, and none for two currencies.
        let grouped = !faults.contains(&true) && self.rng.percent(70);
        let mixed = !grouped && self.rng.percent(33);
        let mut currency = self.draw_currency();
        let mut payments = Vec::with_capacity(faults.len());
        let mut expected = Vec::new();
        let mut sum = 0_u128;
        let mut total_minor = 0_u64;
        let mut good = None;
        let mut keys = None;
        for (index, &faulty) in faults.iter().enumerate() {
            if mixed {
                currency = self.draw_currency();
            }
            let receiver = self.weights.draw_other(&mut self.rng, sender);
            let id = format!("{message_id}.{:05}", index + 1);
            let (mut payment, amount_minor) =
                self.draw_payment(currency, sender, receiver, id, Kind::Customer, false);
            let mut finest = self.currencies[currency].finest(amount_minor);
            if !grouped {
                payment.value_date = Some(self.date.text());
            }
            let fault = if faulty {
                self.draw_fault(sender, keys.is_some())
            } else {
                None
            };
            if let Some(fault) = fault {
                finest = self.spoil(&mut payment, fault, currency, sender, keys.as_ref(), finest);
                expected.push((index + 1, payment.payment_id.clone(), fault));
            } else {
                self.net(sender, receiver, currency, amount_minor);
                total_minor += amount_minor;
                keys = Some((payment.payment_id.clone(), payment.uetr.clone()));
                if !grouped {
                    good = Some((payment.clone(), finest));
                }
            }
            sum += finest;
            payments.push(payment);
        }
        let served = self.currencies[currency];
        let message = Message {
            kind: Kind::Customer,
            version: self.options.version,
            wrapping: self.options.wrapping,
            created: self.date.at(self.second),
            count: payments.len().to_string(),
            control_sum: Some(control_sum(sum)),
            total: grouped.then(|| (served.code.to_owned(), served.text(total_minor))),
            value_date: grouped.then(|| self.date.text()),
            type_information: if self.rng.percent(50) {
                channel("MPNS")
            } else {
                String::new()
            },
            instructing_agent: self.participants[sender].bic.clone(),
            operator: OPERATOR,
            payments: &payments,
            message_id,
        };
        let answer = match expected.len() {
            0 => Answer::Accepted,
            refused if refused == payments.len() => Answer::Refused(expected[0].2.reason()),
            _ => Answer::Part,
        };
        let name = self.file_name(&format!("package-{count}"), sender);
        self.write_message(&name, &message)?;
        self.manifest.message(
            &name,
            Some(&message.message_id),
            payments.len(),
            answer,
            None,
        )?;
        for (number, id, fault) in &expected {
            let result = PaymentResult {
                number: *number,
                payment_id: id.as_deref(),
                outcome: "refused",
                reason: Some(fault.reason()),
                fault: Some(fault.name()),
            };
            self.manifest.payment(&name, &message.message_id, &result)?;
        }
        self.summary.payments += u64::from(count);
        self.summary.faulty_payments +=
            u64::try_from(expected.len()).expect("a length fits 64 bits");
        if good.is_some() {
            self.last_good[sender] = good;
        }
        Ok(())
    }

    /// The next kind of fault that can be made here.
    fn draw_fault(&mut self, sender: usize, after_good: bool) -> Option<PaymentFault> {
        let all = PaymentFault::ALL.len();
        for _ in 0..all {
            let fault = PaymentFault::ALL[self.faults_drawn % all];
            self.faults_drawn += 1;
            let possible = match fault {
                // UETR came with version 08, which made the other key optional.
                PaymentFault::UpperCaseUetr | PaymentFault::MissingKeys => {
                    self.options.version.number() >= 8
                }
                PaymentFault::TwiceInMessage => after_good,
                PaymentFault::ChangedRepeat | PaymentFault::Repeat => {
                    self.last_good[sender].is_some()
                }
                _ => true,
            };
            if possible {
                return Some(fault);
            }
        }
        None
    }

    /// Makes `payment` faulty; returns what it adds to the control sum.
    fn spoil(
        &mut self,
        payment: &mut Payment,
        fault: PaymentFault,
        currency: usize,
        sender: usize,
        before: Option<&Keys>,
        finest: u128,
    ) -> u128 {
        let served = self.currencies[currency];
        match fault {
            PaymentFault::UpperCaseUetr => {
                // An 'a' in it, or there may be no letter to raise.
                payment.uetr = payment
                    .uetr
                    .take()
                    .map(|uetr| format!("a{}", &uetr[1..]).to_uppercase());
            }
            PaymentFault::MissingKeys => (payment.payment_id, payment.uetr) = (None, None),
            PaymentFault::TwiceInMessage => {
                (payment.payment_id, payment.uetr) = before.cloned().unwrap_or_default();
            }
            PaymentFault::UnservedCurrency => payment.currency = Some("XAU".to_owned()),
            PaymentFault::UnknownCurrency => payment.currency = Some("ZZZ".to_owned()),
            PaymentFault::MissingCurrency => payment.currency = None,
            PaymentFault::TooManyDecimals => {
                // One more digit than the currency has, and not a zero.
                let whole = finest / 100_000;
                let decimals = served.exponent + 1;
                payment.amount = format!(
                    "{whole}.{:0width$}1",
                    0,
                    width = usize::try_from(served.exponent).expect("small")
                );
                if served.exponent == 0 {
                    payment.amount = format!("{whole}.1");
                }
                return whole * 100_000 + 10_u128.pow(5 - decimals);
            }
            PaymentFault::ZeroAmount => {
                payment.amount = served.text(0);
                return 0;
            }
            PaymentFault::EmptyAmount => {
                payment.amount.clear();
                return 0;
            }
            PaymentFault::UnknownReceiver => {
                payment.instructed_agent = Some("QQQQDEFFXXX".to_owned())
            }
            PaymentFault::OwnReceiver => {
                payment.instructed_agent = Some(self.participants[sender].bic.clone());
            }
            PaymentFault::PastDate => payment.value_date = Some(self.date.before().text()),
            PaymentFault::FutureDate => payment.value_date = Some(self.date.after().text()),
            // A repeated payment is used up, or it could stand twice inside one message.
            PaymentFault::ChangedRepeat => {
                if let Some((good, _)) = self.last_good[sender].take() {
                    (payment.payment_id, payment.uetr) = (good.payment_id, good.uetr);
                }
            }
            PaymentFault::Repeat => {
                if let Some((good, good_finest)) = self.last_good[sender].take() {
                    *payment = good;
                    return good_finest;
                }
            }
        }
        finest
    }

    /// One urgent payment, alone in its message, settled gross.
    fn urgent(&mut self) -> Result<(), Error> {
        let sender = self.weights.draw(&mut self.rng);
        let receiver = self.weights.draw_other(&mut self.rng, sender);
        let currency = self.draw_currency();
        let kind = if self.rng.percent(25) {
            Kind::Bank
        } else {
            Kind::Customer
        };
        let message_id = self.next_message_id(sender);
        let id = format!("{message_id}.00001");
        let (mut payment, amount_minor) =
            self.draw_payment(currency, sender, receiver, id, kind, true);
        payment.value_date = Some(self.date.text());
        payment.priority = Some(if self.rng.percent(80) { "URGT" } else { "HIGH" });
        if self.rng.percent(30) {
            payment.type_information = channel("RTGS");
        }
        if self.rng.percent(10) {
            payment.times = "<TillTm>17:30:00Z</TillTm>".to_owned();
        }
        let finest = self.currencies[currency].finest(amount_minor);
        let payments = [payment];
        let message = self.single(kind, message_id, sender, &payments, finest);
        let stem = if kind == Kind::Bank {
            "urgent-pacs009"
        } else {
            "urgent-pacs008"
        };
        let name = self.file_name(stem, sender);
        self.write_message(&name, &message)?;
        self.manifest
            .message(&name, Some(&message.message_id), 1, Answer::Accepted, None)?;
        self.settle_gross(sender, receiver, currency, amount_minor);
        self.summary.payments += 1;
        self.summary.urgent += 1;
        Ok(())
    }

    /// A small message that is faulty as a whole; a repeat is preceded by the message it repeats, in the same section.
    fn faulty(&mut self, fault: MessageFault) -> Result<(), Error> {
        let sender = self.weights.draw(&mut self.rng);
        let repeats = matches!(fault, MessageFault::Repeat | MessageFault::ChangedRepeat);
        let message_id = match fault {
            // A UUID of 36 characters; it ends in a letter, so that it cannot be taken for a numbered message.
            MessageFault::LongMessageId => format!("{}f", &ids::uetr(&mut self.rng)[..35]),
            // What cannot be taken in has no number, so it leaves no gap among those that have.
            _ if fault.is_unreadable() => format!("UNREAD-{}", ids::digits(&mut self.rng, 12)),
            _ => self.next_message_id(sender),
        };
        let currency = self.draw_currency();
        let mut payments = Vec::new();
        let mut sum = 0;
        for index in 1..=FAULTY_MESSAGE_PAYMENTS {
            let receiver = self.weights.draw_other(&mut self.rng, sender);
            let id = format!("{}.{index:05}", &message_id[..message_id.len().min(29)]);
            let (mut payment, amount_minor) =
                self.draw_payment(currency, sender, receiver, id, Kind::Customer, false);
            payment.value_date = Some(self.date.text());
            sum += self.currencies[currency].finest(amount_minor);
            if repeats {
                self.net(sender, receiver, currency, amount_minor);
            }
            payments.push(payment);
        }
        let mut message = self.single(Kind::Customer, message_id, sender, &payments, sum);
        if repeats {
            let first = self.file_name("repeated", sender);
            self.write_message(&first, &message)?;
            self.manifest.message(
                &first,
                Some(&message.message_id),
                payments.len(),
                Answer::Accepted,
                None,
            )?;
            self.summary.payments += u64::from(FAULTY_MESSAGE_PAYMENTS);
        }
        let mut changed = payments.clone();
        match fault {
            MessageFault::ControlSum => message.control_sum = Some(control_sum(sum + 100_000)),
            MessageFault::Total => {
                let served = self.currencies[currency];
                message.total = Some((served.code.to_owned(), control_sum(sum + 100_000)));
            }
            MessageFault::ClassConflict => {
                message.type_information = channel("MPNS");
                changed[0].priority = Some("URGT");
                message.payments = &changed;
            }
            MessageFault::MissingElement => {
                changed[0].end_to_end_id = None;
                message.payments = &changed;
            }
            MessageFault::Count => message.count = (payments.len() + 1).to_string(),
            MessageFault::ChangedRepeat => {
                changed[0].end_to_end_id = Some("CHANGED".to_owned());
                message.payments = &changed;
            }
            _ => {}
        }
        let mut xml = String::new();
        message.write(&mut xml);
        match fault {
            // Cut in the middle of an element.
            MessageFault::Malformed => {
                xml.truncate(xml.find("</CdtTrfTxInf>").expect("it holds payments") + 5)
            }
            MessageFault::DocumentType => {
                let end = xml.find('\n').expect("the declaration ends its line") + 1;
                xml.insert_str(end, "<!DOCTYPE Document [<!ENTITY e \"e\">]>\n");
            }
            _ => {}
        }
        let name = self.file_name(
            &format!("z-faulty-{}", fault.name().replace('_', "-")),
            sender,
        );
        let answer = fault.reason().map_or(Answer::Repeat, Answer::Refused);
        let readable = (!fault.is_unreadable()).then_some(message.message_id.as_str());
        self.manifest
            .message(&name, readable, payments.len(), answer, Some(fault.name()))?;
        self.write_file(&name, xml.as_bytes())?;
        self.summary.faulty_messages += 1;
        Ok(())
    }

    /// A message without group total or group date.
    fn single<'b>(
        &self,
        kind: Kind,
        message_id: String,
        sender: usize,
        payments: &'b [Payment],
        sum: u128,
    ) -> Message<'b> {
        Message {
            kind,
            version: self.options.version,
            wrapping: self.options.wrapping,
            message_id,
            created: self.date.at(self.second),
            count: payments.len().to_string(),
            control_sum: Some(control_sum(sum)),
            total: None,
            value_date: None,
            type_information: String::new(),
            instructing_agent: self.participants[sender].bic.clone(),
            operator: OPERATOR,
            payments,
        }
    }

    fn net(&mut self, sender: usize, receiver: usize, currency: usize, amount_minor: u64) {
        self.positions[sender][currency].open_cycle -= i128::from(amount_minor);
        self.positions[receiver][currency].open_cycle += i128::from(amount_minor);
        self.values_minor[currency] += u128::from(amount_minor);
    }

    fn settle_gross(&mut self, sender: usize, receiver: usize, currency: usize, amount_minor: u64) {
        let debited = &mut self.positions[sender][currency];
        debited.settled -= i128::from(amount_minor);
        debited.lowest = debited.lowest.min(debited.settled);
        self.positions[receiver][currency].settled += i128::from(amount_minor);
        self.values_minor[currency] += u128::from(amount_minor);
    }

    fn file_name(&self, stem: &str, sender: usize) -> String {
        format!(
            "{}/{:06}-{stem}-{}.xml",
            self.section_dir,
            self.file_number,
            self.participants[sender].short()
        )
    }

    fn write_message(&mut self, name: &str, message: &Message<'_>) -> Result<(), Error> {
        let mut xml = std::mem::take(&mut self.xml);
        xml.clear();
        message.write(&mut xml);
        let written = self.write_file(name, xml.as_bytes());
        self.xml = xml;
        written
    }

    fn write_file(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.summary.messages += 1;
        self.summary.written_bytes += u64::try_from(bytes.len()).expect("a length fits 64 bits");
        write(&self.options.out_dir.join(name), bytes)
    }

    fn finish(mut self) -> Result<Summary, Error> {
        self.close_cycle();
        let mut rng = Rng::new(self.options.seed, u64::MAX);
        let coverage = i128::from(self.options.coverage_percent);
        for (participant, positions) in self.participants.iter_mut().zip(&self.positions) {
            let short = rng.percent(u64::from(self.options.shortfall_percent));
            participant.sequence = self.options.sequenced;
            for (&currency, position) in self.currencies.iter().zip(positions) {
                // Rounded up to a whole unit, so that nobody is short by a fraction.
                let unit = 10_i128.pow(currency.exponent);
                let needed = (-position.lowest * coverage / 100 + unit) / unit * unit;
                let funds = if short {
                    needed * 2 / 5 / unit * unit
                } else {
                    needed
                };
                let credit_line_minor = funds / 5 / unit * unit;
                participant.accounts.push(Account {
                    currency,
                    opening_minor: funds - credit_line_minor,
                    credit_line_minor,
                });
            }
        }
        let toml = participants::toml(&self.date.text(), self.options.shards, &self.participants);
        write(
            &self.options.out_dir.join("participants.toml"),
            toml.as_bytes(),
        )?;
        if self.options.shortfall_percent == 0 && self.options.coverage_percent >= 100 {
            self.write_balances()?;
        }
        let values = self.currencies.iter().zip(&self.values_minor);
        self.summary.values = values
            .map(|(currency, &minor)| {
                let minor = i128::try_from(minor).expect("a sum of amounts fits 127 bits");
                (currency.code.to_owned(), decimal(minor, currency.exponent))
            })
            .collect();
        self.manifest.finish()?;
        Ok(self.summary)
    }

    fn write_balances(&self) -> Result<(), Error> {
        let mut out = "bic,currency,opening,closing\n".to_owned();
        for (participant, positions) in self.participants.iter().zip(&self.positions) {
            for (account, position) in participant.accounts.iter().zip(positions) {
                let exponent = account.currency.exponent;
                let opening = decimal(account.opening_minor, exponent);
                let closing = decimal(account.opening_minor + position.settled, exponent);
                out.push_str(&format!(
                    "{},{},{opening},{closing}\n",
                    participant.bic, account.currency.code
                ));
            }
        }
        write(
            &self.options.out_dir.join("expected-balances.csv"),
            out.as_bytes(),
        )
    }
}

/// `PmtTpInf` with a clearing channel alone.
pub(crate) fn channel(code: &str) -> String {
    format!("<PmtTpInf><ClrChanl>{code}</ClrChanl></PmtTpInf>")
}

pub(crate) fn create_dir(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(|source| Error::CreateDir {
        path: path.to_owned(),
        source,
    })
}

pub(crate) fn write(path: &PathBuf, bytes: &[u8]) -> Result<(), Error> {
    fs::write(path, bytes).map_err(|source| Error::Write {
        path: path.clone(),
        source,
    })
}

fn check(options: &Options) -> Result<(Day, Vec<&'static Currency>), Error> {
    let rule = |holds: bool, option, rule| {
        if holds {
            Ok(())
        } else {
            Err(Error::Option { option, rule })
        }
    };
    rule(
        (2..=5_000).contains(&options.participants),
        "participants",
        "2 to 5000",
    )?;
    rule((1..=256).contains(&options.shards), "shards", "1 to 256")?;
    rule((1..=24).contains(&options.sections), "sections", "1 to 24")?;
    rule(
        options.faulty_payments_ppm <= 1_000_000,
        "faulty_payments_ppm",
        "at most 1000000",
    )?;
    rule(
        options.coverage_percent <= 10_000,
        "coverage_percent",
        "at most 10000",
    )?;
    rule(
        options.shortfall_percent <= 100,
        "shortfall_percent",
        "at most 100",
    )?;
    rule(
        options
            .packages
            .iter()
            .all(|count| (1..=50_000).contains(&count.payments)),
        "packages",
        "1 to 50000 payments in each",
    )?;
    let messages = options
        .packages
        .iter()
        .map(|count| u64::from(count.packages))
        .sum::<u64>();
    let messages = messages + u64::from(options.urgent) + u64::from(options.faulty_messages);
    rule(
        (1..1_000_000).contains(&messages),
        "packages",
        "1 to 999999 messages in all",
    )?;
    let currencies: Option<Vec<_>> = options
        .currencies
        .iter()
        .map(|code| Currency::by_code(code))
        .collect();
    let currencies = currencies.ok_or(Error::Option {
        option: "currencies",
        rule: "one not known here",
    })?;
    let once: BTreeSet<&str> = options.currencies.iter().map(String::as_str).collect();
    rule(
        !currencies.is_empty() && once.len() == currencies.len(),
        "currencies",
        "at least one, each once",
    )?;
    let date = Day::parse(&options.business_date);
    let date = date.ok_or(Error::Option {
        option: "business_date",
        rule: "a day of 2000 to 2099 as 2026-11-30",
    })?;
    Ok((date, currencies))
}

#[cfg(test)]
mod tests;
