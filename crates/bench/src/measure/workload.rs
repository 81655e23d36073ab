//! The load: participants, and compact packages as a gateway hands them over.
//!
//! Heaps are those of generated messages that were read and packed, so entries have the length and the content of real
//! ones. Keys, contents, amounts and receivers are drawn anew for every payment: no two are alike, and receivers are
//! drawn evenly over all participants, which is the worst case for caches.

use clearspan_iso20022::read::{Context, Incoming, Limits, read};
use clearspan_ledger::directory::{AccountTerms, NetUnit, ParticipantTerms};
use clearspan_ledger::entry::{AdminCommand, Command, Genesis};
use clearspan_ledger::message::{Settlement, Submission};
use clearspan_ledger::{AmountMinor, Bic, BusinessDate, Currency, PaymentId, ShardId, Text};

use super::{MeasureError, Options, io};
use crate::generate::{self, PackageCount, rng::Rng};

/// Different heaps among the packages.
const TEMPLATES: u32 = 16;
/// Different heaps among the urgent payments.
const URGENT_TEMPLATES: u32 = 64;
const DATE: &str = "2026-11-30";
/// Drawn amounts are below this, in minor units.
const AMOUNT_BELOW_MINOR: u64 = 5_000_000;

/// What is submitted, by whom.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) participants: Vec<Bic>,
    pub(super) shards: u16,
    packages: Vec<Submission>,
    urgent: Vec<Submission>,
    currency: Currency,
    date: BusinessDate,
}

/// A payment's or message's place among all, so that each is drawn alike whatever was drawn before.
const PACKAGE_STREAM: u64 = 1 << 32;
const URGENT_STREAM: u64 = 1 << 33;

impl Workload {
    pub(super) fn new(options: &Options, shards: u16) -> Result<Self, MeasureError> {
        let messages = messages(options, TEMPLATES, URGENT_TEMPLATES)?;
        let (mut packages, mut urgent) = (Vec::new(), Vec::new());
        for message in &messages {
            let mut submission = submission(message)?;
            submission.heap = clearspan_codec::heap::pack(&submission.heap);
            submission.sequence = None;
            submission.times.clear();
            match submission.settlement {
                Settlement::Net => packages.push(submission),
                Settlement::Gross { .. } => urgent.push(submission),
            }
        }
        if packages.is_empty() || urgent.is_empty() {
            return Err(MeasureError::Unexpected(
                "the generated day has no packages or no urgent payments".to_owned(),
            ));
        }
        let unreadable = || MeasureError::Unexpected("a fixed date or code is wrong".to_owned());
        Ok(Self {
            participants: (0..options.participants)
                .map(bic)
                .collect::<Option<Vec<_>>>()
                .ok_or_else(unreadable)?,
            shards,
            packages,
            urgent,
            currency: Currency::parse(b"EUR").ok_or_else(unreadable)?,
            date: BusinessDate::parse(DATE.as_bytes()).ok_or_else(unreadable)?,
        })
    }

    /// The same without the payments' own text: what the state machine itself reads.
    pub(super) fn without_text(mut self) -> Self {
        for template in self.packages.iter_mut().chain(&mut self.urgent) {
            template.heap = clearspan_codec::heap::pack(b"");
        }
        self
    }

    pub(super) fn genesis(&self, shard: ShardId) -> Command {
        Command::Genesis(Genesis {
            cluster: 1,
            shard,
            shards: self.shards,
            hash_seed: 0x5DEE_CE66_D1CE_4E5B_9A76_1D64_78BD_642F,
            retention_days: 5,
            amount_max: AmountMinor::MAX,
            page_len_payments: 1000,
            gap_timeout_ns: 60_000_000_000,
        })
    }

    /// Takes up all participants with this credit line, and opens the day.
    pub(super) fn founding(&self, credit_line: AmountMinor) -> Vec<Command> {
        let mut commands = Vec::new();
        for (position, &bic) in self.participants.iter().enumerate() {
            commands.push(AdminCommand::AddParticipant(ParticipantTerms {
                bic,
                name: format!("Participant {position}"),
                home: self.home(position),
                numbers_messages: false,
                refuse_whole: false,
                net_unit: NetUnit::Payment,
            }));
            commands.push(AdminCommand::OpenAccount(AccountTerms {
                bic,
                currency: self.currency,
                credit_line,
            }));
        }
        commands.push(AdminCommand::OpenDay { date: self.date });
        commands.into_iter().map(Command::Admin).collect()
    }

    /// Funds the participants whose place `which` picks.
    pub(super) fn funds(&self, minor: u64, which: impl Fn(usize) -> bool) -> Vec<Command> {
        (0..)
            .zip(&self.participants)
            .filter(|(position, _)| which(*position))
            .map(|(position, &bic)| {
                Command::Admin(AdminCommand::Fund {
                    reference: text(&format!("FUND-{position}")),
                    bic,
                    currency: self.currency,
                    amount: AmountMinor::new(minor).unwrap_or(AmountMinor::MAX),
                })
            })
            .collect()
    }

    fn home(&self, participant: usize) -> ShardId {
        ShardId::new(u16::try_from(participant % usize::from(self.shards)).unwrap_or(0))
    }

    /// The `number`-th package: its sender's home, and the message.
    pub(super) fn package(&self, number: u64) -> (ShardId, Submission) {
        self.draw(&self.packages, 'P', PACKAGE_STREAM + number, number)
    }

    /// The `number`-th urgent payment.
    pub(super) fn urgent(&self, number: u64) -> (ShardId, Submission) {
        self.draw(&self.urgent, 'U', URGENT_STREAM + number, number)
    }

    fn draw(
        &self,
        templates: &[Submission],
        kind: char,
        stream: u64,
        number: u64,
    ) -> (ShardId, Submission) {
        let mut rng = Rng::new(7, stream);
        let at = |len: usize| usize::try_from(number % len.max(1) as u64).unwrap_or(0);
        let sender = at(self.participants.len());
        let mut submission = templates[at(templates.len())].clone();
        submission.sender = self.participants[sender];
        submission.message_id = text(&format!("{kind}{number:012}"));
        submission.digest = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        for record in &mut submission.payments {
            let bits = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
            // Version 4, variant 2, as in a UUID.
            let bits = bits & !(0xF << 76) & !(0b11 << 62) | 4 << 76 | 0b10 << 62;
            record.id = PaymentId::Uetr(bits);
            record.content_digest = rng.next_u64();
            record.amount =
                AmountMinor::new(1 + rng.below(AMOUNT_BELOW_MINOR)).unwrap_or(AmountMinor::MAX);
            record.currency = self.currency;
            record.date = Some(self.date);
            let other = 1 + rng.index(self.participants.len() - 1);
            record.receiver = Some(self.participants[(sender + other) % self.participants.len()]);
        }
        (self.home(sender), submission)
    }
}

fn text(text: &str) -> Text {
    Text::new(text).unwrap_or(Text::EMPTY)
}

/// Code of the participant at a place: its first four letters are the place in base 26.
fn bic(position: u16) -> Option<Bic> {
    let mut code = *b"AAAADEFFXXX";
    let mut rest = position;
    for letter in &mut code[..4] {
        *letter += u8::try_from(rest % 26).unwrap_or(0);
        rest /= 26;
    }
    Bic::parse(&code)
}

/// The bytes of generated good messages: `packages` of the options' length, and `urgent` single payments.
pub(super) fn messages(
    options: &Options,
    packages: u32,
    urgent: u32,
) -> Result<Vec<Vec<u8>>, MeasureError> {
    let dir = tempfile::tempdir_in(&options.dir).map_err(io("make a directory for the input"))?;
    let generated = generate::Options {
        out_dir: dir.path().join("day"),
        participants: u32::from(options.participants),
        shards: 1,
        currencies: vec!["EUR".to_owned()],
        packages: vec![PackageCount {
            payments: options.package_len,
            packages,
        }],
        urgent,
        faulty_payments_ppm: 0,
        faulty_messages: 0,
        business_date: DATE.to_owned(),
        sections: 1,
        ..generate::Options::default()
    };
    generate::generate(&generated, &mut |_| {})?;
    let mut files = Vec::new();
    collect(&generated.out_dir.join("inbox"), &mut files).map_err(io("list the input"))?;
    files.sort();
    files
        .iter()
        .map(|file| std::fs::read(file).map_err(io("read the input")))
        .collect()
}

fn collect(dir: &std::path::Path, files: &mut Vec<std::path::PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Reads a generated message as a gateway does.
pub(super) fn submission(message: &[u8]) -> Result<Submission, MeasureError> {
    let context = Context {
        sender: None,
        amount_max: AmountMinor::MAX,
        numbers_messages: &|_| false,
    };
    match read(message, &Limits::default(), &context) {
        Ok(Incoming::Submission(submitted)) => {
            let submission = submitted.submission;
            let good = submission.faults.is_empty()
                && submission.payments.iter().all(|p| p.faults.is_empty());
            good.then_some(submission).ok_or_else(|| {
                MeasureError::Unexpected("a generated message has a fault".to_owned())
            })
        }
        Ok(_) => Err(MeasureError::Unexpected(
            "a generated message is no submission".to_owned(),
        )),
        Err(fault) => Err(MeasureError::Unexpected(format!(
            "a generated message: {fault}"
        ))),
    }
}
