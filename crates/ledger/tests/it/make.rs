//! Banks and messages for tests that make them by the thousand.

use bytes::Bytes;
use clearspan_ledger::directory::{AccountTerms, NetUnit, ParticipantTerms};
use clearspan_ledger::entry::AdminCommand;
use clearspan_ledger::message::{
    Class, MessageKind, PaymentRecord, Settlement, SettlementTimes, Submission,
};
use clearspan_ledger::{BusinessDate, Currency, PaymentId, ReasonSet, ShardId, Text};

use crate::cluster::Cluster;
use crate::script::{amount, bic, hash};

pub(crate) const NAMES: [&str; 8] = ["A", "B", "C", "D", "E", "F", "G", "H"];

/// A business day of the tests.
pub(crate) fn date(day: u32) -> BusinessDate {
    BusinessDate::from_ymd(2026, 11, 30)
        .map(|first| BusinessDate::from_days(first.days() + day))
        .expect("a date")
}

#[derive(Clone, Debug)]
pub(crate) struct Bank {
    pub(crate) name: &'static str,
    pub(crate) unit: NetUnit,
    /// By currency: balance and credit line.
    pub(crate) accounts: Vec<(Currency, u64, u64)>,
}

/// Takes up a bank in the shard that its place gives it.
pub(crate) fn add_bank(cluster: &mut Cluster, place: usize, bank: &Bank) {
    let home = u16::try_from(place % cluster.ledgers.len()).expect("few shards");
    cluster.expect_done(AdminCommand::AddParticipant(ParticipantTerms {
        bic: bic(bank.name),
        name: bank.name.to_owned(),
        home: ShardId::new(home),
        numbers_messages: false,
        refuse_whole: false,
        net_unit: bank.unit,
    }));
    for &(currency, balance, line) in &bank.accounts {
        cluster.expect_done(AdminCommand::OpenAccount(AccountTerms {
            bic: bic(bank.name),
            currency,
            credit_line: amount(line),
        }));
        cluster.expect_done(AdminCommand::Fund {
            reference: Text::new(&format!("{}{currency}", bank.name)).expect("short"),
            bic: bic(bank.name),
            currency,
            amount: amount(balance),
        });
    }
}

/// A payment's key and its content, by a name.
pub(crate) fn payment(
    key: &str,
    receiver: &str,
    minor: u64,
    currency: Currency,
    date: BusinessDate,
) -> PaymentRecord {
    PaymentRecord {
        id: PaymentId::of_transaction(key),
        content_digest: u64::try_from(hash(key) >> 64).unwrap_or(0),
        amount: amount(minor),
        currency,
        receiver: Some(bic(receiver)),
        date: Some(date),
        faults: ReasonSet::EMPTY,
        body_offset: 0,
        body_len: 0,
    }
}

pub(crate) fn message(
    kind: MessageKind,
    sender: &str,
    id: &str,
    settlement: Settlement,
    payments: Vec<PaymentRecord>,
) -> Submission {
    Submission {
        kind,
        version: 8,
        sender: bic(sender),
        message_id: Text::new(id).expect("short"),
        digest: hash(&format!("{sender} {id} {payments:?}")),
        sequence: None,
        settlement,
        faults: ReasonSet::EMPTY,
        payments,
        times: Vec::new(),
        originals: Vec::new(),
        heap: Bytes::new(),
    }
}

pub(crate) fn net(sender: &str, id: &str, payments: Vec<PaymentRecord>) -> Submission {
    message(
        MessageKind::CustomerTransfer,
        sender,
        id,
        Settlement::Net,
        payments,
    )
}

pub(crate) fn gross(
    sender: &str,
    id: &str,
    class: Class,
    settle_or_refuse: bool,
    payments: Vec<PaymentRecord>,
    times: Vec<(u32, SettlementTimes)>,
) -> Submission {
    Submission {
        times,
        ..message(
            MessageKind::CustomerTransfer,
            sender,
            id,
            Settlement::Gross {
                class,
                settle_or_refuse,
            },
            payments,
        )
    }
}
