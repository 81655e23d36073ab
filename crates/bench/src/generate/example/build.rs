//! What the script is written with: participants, payments, messages, and the money they move.

use std::collections::BTreeMap;

use super::super::amount::{Currency, control_sum};
use super::super::customer::{self, Context};
use super::super::date::Day;
use super::super::ids;
use super::super::manifest::Answer;
use super::super::message::{Kind, Message, Payment, agent, bank_tail, charges, element};
use super::super::participants::{Account, Participant};
use super::super::rng::Rng;
use super::super::writer::OPERATOR;
use super::super::{Version, Wrapping};
use super::{ALFA, BRAV, BUSINESS_DATE, CHAR, DELT, ECHO, FOXT, GOLF, HOTL, SECTIONS, SHARDS};

/// The seed of the example; another one would change every file.
const SEED: u64 = 2026;
/// The first file of a section is stamped at these hours.
const SECTION_HOURS: [u64; 2] = [8, 12];

/// One file of the inbox.
pub(super) struct Case {
    pub(super) file: String,
    pub(super) bytes: Vec<u8>,
    /// None when no identifier can be read from the file.
    pub(super) message_id: Option<String>,
    pub(super) payments: usize,
    pub(super) answer: Answer,
    /// Payments that do not simply settle.
    pub(super) results: Vec<Result>,
    pub(super) what: String,
    pub(super) comes_out: String,
    pub(super) why: String,
}

/// What becomes of one payment by the end of the day.
pub(super) struct Result {
    pub(super) number: usize,
    pub(super) payment_id: Option<String>,
    pub(super) outcome: &'static str,
    pub(super) reason: Option<&'static str>,
    pub(super) why: &'static str,
}

/// The three texts of a case: what the file is, what comes out, why.
pub(super) type Story<'a> = [&'a str; 3];

/// The day being written.
pub(super) struct Example {
    pub(super) participants: Vec<Participant>,
    pub(super) cases: Vec<Case>,
    /// Balances by participant and currency code, in minor units; at the end of the script the closing ones.
    pub(super) balances: BTreeMap<(usize, &'static str), i128>,
    pub(super) rng: Rng,
    section: usize,
    in_section: usize,
    results: Vec<Result>,
}

impl Example {
    pub(super) fn new() -> Self {
        let participants = participants();
        let mut balances = BTreeMap::new();
        for (index, participant) in participants.iter().enumerate() {
            for account in &participant.accounts {
                balances.insert((index, account.currency.code), account.opening_minor);
            }
        }
        let rng = Rng::new(SEED, 0);
        Self {
            participants,
            cases: Vec::new(),
            balances,
            rng,
            section: 0,
            in_section: 0,
            results: Vec::new(),
        }
    }

    pub(super) fn begin_section(&mut self, section: usize) {
        self.section = section;
        self.in_section = 0;
    }

    pub(super) fn bic(&self, participant: usize) -> &str {
        &self.participants[participant].bic
    }

    /// When the next file is stamped; a minute passes between files.
    pub(super) fn created(&self) -> String {
        let minute = u64::try_from(self.in_section).expect("a small number");
        day().at(SECTION_HOURS[self.section] * 3600 + minute * 60)
    }

    /// The message identifier of `participant` for `tag`.
    pub(super) fn id(&self, participant: usize, tag: &str) -> String {
        format!("{}-{tag}", self.participants[participant].short())
    }

    /// A plain payment, net unless the caller says more. Its `TxId` is `<message>.<number>`.
    pub(super) fn payment(
        &mut self,
        from: usize,
        to: usize,
        currency: &str,
        amount: &str,
        id: &str,
    ) -> Payment {
        let charge = charges(&mut Rng::new(SEED, 7), currency, amount);
        Payment {
            instruction_id: None,
            end_to_end_id: Some(format!("E2E-{id}")),
            payment_id: Some(id.to_owned()),
            uetr: Some(ids::uetr(&mut self.rng)),
            type_information: String::new(),
            currency: Some(currency.to_owned()),
            amount: amount.to_owned(),
            value_date: Some(BUSINESS_DATE.to_owned()),
            priority: None,
            times: String::new(),
            charges: charge,
            instructed_agent: Some(self.bic(to).to_owned()),
            tail: self.tail(from, to, id),
        }
    }

    /// Plain parties named after their banks.
    fn tail(&self, from: usize, to: usize, text: &str) -> String {
        let mut out = String::new();
        for (name, agent_name, participant) in [("Dbtr", "DbtrAgt", from), ("CdtrAgt", "Cdtr", to)]
        {
            let customer = |out: &mut String, name: &str| {
                out.push_str(&format!("<{name}>"));
                element(
                    out,
                    "Nm",
                    &format!("Customer of {}", self.participants[participant].name),
                );
                out.push_str(&format!("</{name}>"));
            };
            // The debtor stands before its agent, the creditor after.
            if name == "Dbtr" {
                customer(&mut out, name);
                agent(&mut out, agent_name, self.bic(participant));
            } else {
                agent(&mut out, name, self.bic(participant));
                customer(&mut out, agent_name);
            }
        }
        out.push_str("<RmtInf>");
        element(&mut out, "Ustrd", text);
        out.push_str("</RmtInf>");
        out
    }

    /// An urgent customer payment.
    pub(super) fn urgent(&mut self, from: usize, to: usize, amount: &str, id: &str) -> Payment {
        Payment {
            priority: Some("URGT"),
            ..self.payment(from, to, "EUR", amount, id)
        }
    }

    /// An urgent bank payment.
    pub(super) fn urgent_bank(
        &mut self,
        from: usize,
        to: usize,
        currency: &str,
        amount: &str,
        id: &str,
    ) -> Payment {
        Payment {
            priority: Some("URGT"),
            charges: String::new(),
            tail: bank_tail(self.bic(from), self.bic(to)),
            ..self.payment(from, to, currency, amount, id)
        }
    }

    /// A bare pacs.008.001.08 with the counts and sums of its payments, to be changed where a case needs it.
    pub(super) fn message<'a>(
        &self,
        from: usize,
        id: &str,
        payments: &'a [Payment],
    ) -> Message<'a> {
        Message {
            kind: Kind::Customer,
            version: Version::default(),
            wrapping: Wrapping::Bare,
            message_id: id.to_owned(),
            created: self.created(),
            count: payments.len().to_string(),
            control_sum: Some(control_sum(
                payments.iter().map(|payment| finest(&payment.amount)).sum(),
            )),
            total: None,
            value_date: None,
            type_information: String::new(),
            instructing_agent: self.bic(from).to_owned(),
            operator: OPERATOR,
            payments,
        }
    }

    /// Says what becomes of a payment of the case that is added next.
    pub(super) fn result(
        &mut self,
        payment: (usize, &Payment),
        outcome: &'static str,
        reason: Option<&'static str>,
        why: &'static str,
    ) {
        let (number, payment) = payment;
        self.results.push(Result {
            number,
            payment_id: payment.payment_id.clone(),
            outcome,
            reason,
            why,
        });
    }

    /// Adds a message as the next file.
    pub(super) fn add(
        &mut self,
        name: &str,
        message: &Message<'_>,
        answer: Answer,
        story: Story<'_>,
    ) {
        let bytes = text(message).into_bytes();
        self.add_bytes(
            name,
            bytes,
            Some(&message.message_id),
            message.payments.len(),
            answer,
            story,
        );
    }

    /// Adds any bytes as the next file; `message_id` is what can be read of them.
    pub(super) fn add_bytes(
        &mut self,
        name: &str,
        bytes: Vec<u8>,
        message_id: Option<&str>,
        payments: usize,
        answer: Answer,
        story: Story<'_>,
    ) {
        self.in_section += 1;
        let [what, comes_out, why] = story.map(str::to_owned);
        self.cases.push(Case {
            file: format!(
                "inbox/{}/{:04}-{name}.xml",
                SECTIONS[self.section], self.in_section
            ),
            bytes,
            message_id: message_id.map(str::to_owned),
            payments,
            answer,
            results: std::mem::take(&mut self.results),
            what,
            comes_out,
            why,
        });
    }

    /// The bytes of an earlier file, by a part of its name.
    pub(super) fn bytes_of(&self, name: &str) -> Vec<u8> {
        self.cases
            .iter()
            .find(|case| case.file.contains(name))
            .expect("an earlier file")
            .bytes
            .clone()
    }

    /// Moves money by the end of the day.
    pub(super) fn settle(&mut self, from: usize, to: usize, currency: &str, amount: &str) {
        let served = Currency::by_code(currency).expect("a currency of the example");
        let minor = finest(amount) / 10_u128.pow(5 - served.exponent);
        let minor = i128::try_from(minor).expect("a small amount");
        *self
            .balances
            .get_mut(&(from, served.code))
            .expect("the sender has the account") -= minor;
        *self
            .balances
            .get_mut(&(to, served.code))
            .expect("the receiver has the account") += minor;
    }

    /// `count` random payments of `from` to the large participants, in `currencies` by turns.
    pub(super) fn generated(
        &mut self,
        from: usize,
        id: &str,
        count: usize,
        currencies: &[&str],
        version: Version,
    ) -> Vec<Payment> {
        let receivers: Vec<usize> = [ALFA, BRAV, CHAR, DELT, GOLF]
            .into_iter()
            .filter(|&to| to != from)
            .collect();
        (1..=count)
            .map(|number| {
                let to = self.rng.pick(&receivers);
                let currency =
                    Currency::by_code(currencies[number % currencies.len()]).expect("known");
                let amount = currency.text(currency.draw_package_minor(&mut self.rng));
                self.settle(from, to, currency.code, &amount);
                let mut payment = self.payment(
                    from,
                    to,
                    currency.code,
                    &amount,
                    &format!("{id}.{number:05}"),
                );
                let context = Context {
                    version,
                    debtor_agent: &self.participants[from].bic,
                    creditor_agent: &self.participants[to].bic,
                    currency: currency.code,
                    amount: &amount,
                    date: BUSINESS_DATE,
                };
                payment.type_information = customer::type_information(&mut self.rng);
                payment.tail = customer::tail(&mut self.rng, &context);
                payment.charges = charges(&mut self.rng, currency.code, &amount);
                payment
            })
            .collect()
    }
}

/// The bytes of a message, as text.
pub(super) fn text(message: &Message<'_>) -> String {
    let mut xml = String::new();
    message.write(&mut xml);
    xml
}

pub(super) fn day() -> Day {
    Day::parse(BUSINESS_DATE).expect("a day")
}

/// A decimal amount in hundred-thousandths; nothing for what is no amount.
pub(super) fn finest(amount: &str) -> u128 {
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    format!("{whole}{fraction:0<5}").parse().unwrap_or(0)
}

fn participants() -> Vec<Participant> {
    // Opening balances and credit lines in whole units of EUR, JPY and KWD.
    const RICH: [i128; 3] = [1_000_000, 100_000_000, 200_000];
    let listed: [(&str, &str, [i128; 3]); 13] = [
        ("ALFADEFFXXX", "Alfa Bank", RICH),
        ("BRAVFRPPXXX", "Banque Bravo", RICH),
        ("CHARGB2LXXX", "Charlie & Sons Bank", RICH),
        ("DELTNL2AXXX", "Delta Bank", RICH),
        ("ECHOITMMXXX", "Banca Echo", [1_000, 0, 0]),
        ("FOXTESMMXXX", "Banco Foxtrot", [1_000, 0, 0]),
        ("GOLFBEBBXXX", "Golf Bank", RICH),
        ("HOTLLULLXXX", "Hotel Bank", [100, 0, 0]),
        ("INDIATWWXXX", "India Bank", [0, 0, 0]),
        ("JULIIE2DXXX", "Juliett Bank", [0, 0, 0]),
        ("KILOPTPLXXX", "Banco Kilo", [0, 0, 0]),
        ("LIMAFIHHXXX", "Lima Bank", [2, 2, 0]),
        ("MIKESEGGXXX", "Mike Bank", [0, 0, 0]),
    ];
    let currencies = ["EUR", "JPY", "KWD"].map(|code| Currency::by_code(code).expect("known"));
    let accounts = |index: usize, opening: [i128; 3]| {
        let both = currencies.into_iter().zip(opening);
        both.map(|(currency, whole)| {
            let unit = 10_i128.pow(currency.exponent);
            let credit = if index == ALFA && currency.code == "EUR" {
                250_000
            } else {
                0
            };
            Account {
                currency,
                opening_minor: whole * unit,
                credit_line_minor: credit * unit,
            }
        })
        .collect()
    };
    let shards = usize::try_from(SHARDS).expect("a small number");
    listed
        .into_iter()
        .enumerate()
        .map(|(index, (bic, name, opening))| Participant {
            bic: bic.to_owned(),
            // An ampersand would have to be escaped in XML, which is wanted, and is plain in TOML.
            name: name.to_owned(),
            shard: u32::try_from(index % shards).expect("a small number"),
            sequence: index == FOXT,
            refuse_whole: index == GOLF,
            net_by_package: index == ECHO,
            accounts: accounts(index, opening),
        })
        .collect()
}

/// The participants with accounts so small that their closing balances follow from a few files.
pub(super) const BY_HAND: [usize; 8] = [
    ECHO,
    FOXT,
    HOTL,
    super::INDI,
    super::JULI,
    super::KILO,
    super::LIMA,
    super::MIKE,
];
