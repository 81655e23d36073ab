//! Brings a data directory up to the settings: genesis of every shard, participants, accounts, opening balances.
//!
//! Every step asks the state first, so it can be cut off anywhere and run again.

use std::collections::VecDeque;
use std::io::Read as _;

use clearspan_ledger::directory::{AccountTerms, ParticipantTerms};
use clearspan_ledger::entry::{AdminCommand, Command, Genesis};
use clearspan_ledger::money::format_minor;
use clearspan_ledger::stream::ItemBody;
use clearspan_ledger::{AdminRefusal, AmountMinor, Bic, Currency, Reply, ShardId, Text};

use crate::engine::{Engine, Lane, Pending, ProposeError, ReadError};
use crate::settings::{Account, Participant, Settings};

/// Why settings cannot be put into force.
#[derive(Debug, thiserror::Error)]
pub enum FoundingError {
    /// A proposal had no outcome.
    #[error("propose to the ledger")]
    Propose(#[from] ProposeError),
    /// It cannot be known how things stand.
    #[error("read what was founded before")]
    Read(#[from] ReadError),
    /// The ledger refused.
    #[error("{what}: the ledger refused ({refusal:?})")]
    Refused {
        /// What was asked.
        what: String,
        /// Why.
        refusal: AdminRefusal,
    },
    /// The settings contradict what the data directory holds.
    #[error("{0}")]
    Contradiction(String),
    /// No random bytes for the cluster's secret.
    #[error("read random bytes for the cluster's secret")]
    Random(#[source] std::io::Error),
}

const COORDINATOR: ShardId = ShardId::new(0);

/// Founds the cluster where that has not been done, and takes up what is new in the settings.
///
/// # Errors
/// [`FoundingError::Contradiction`] when something that is fixed differs.
pub fn found(engine: &Engine, settings: &Settings) -> Result<(), FoundingError> {
    propose(engine, settings)?;
    engine.settle_down();
    Ok(())
}

/// As [`found`], without waiting until nothing is on its way: in a cluster that takes messages that may be never.
///
/// # Errors
/// As [`found`].
pub fn propose(engine: &Engine, settings: &Settings) -> Result<(), FoundingError> {
    prepare(engine, settings)?;
    take_up(engine, &settings.participants)
}

/// Founds the cluster where that has not been done, without anybody in it, and checks the settings against what was taken up
/// before.
///
/// # Errors
/// As [`found`].
pub fn prepare(engine: &Engine, settings: &Settings) -> Result<(), FoundingError> {
    engine.catch_up(COORDINATOR)?;
    let founded = engine.with_ledger(COORDINATOR, |ledger| ledger.genesis().cloned());
    let genesis = match founded {
        Some(genesis) => {
            if genesis.amount_max != settings.amount_max
                || genesis.retention_days != settings.retention_days
                || genesis.page_len_payments != settings.page_len_payments
            {
                return Err(FoundingError::Contradiction(
                    "amount_max_minor, retention_days or page_len_payments differ from those that this data directory \
                     was founded with; they are fixed for good"
                        .to_owned(),
                ));
            }
            genesis
        }
        None => Genesis {
            cluster: engine.cluster_id(),
            shard: COORDINATOR,
            shards: settings.shards,
            hash_seed: random()?,
            retention_days: settings.retention_days,
            amount_max: settings.amount_max,
            page_len_payments: settings.page_len_payments,
            gap_timeout_ns: u64::from(settings.gap_timeout_seconds) * 1_000_000_000,
        },
    };
    for shard in (0..settings.shards).map(ShardId::new) {
        engine.catch_up(shard)?;
        if engine.with_ledger(shard, |ledger| ledger.genesis().is_none()) {
            execute(
                engine,
                shard,
                &Command::Genesis(Genesis {
                    shard,
                    ..genesis.clone()
                }),
                || "found the cluster".to_owned(),
            )?;
        }
    }
    // The settings are put into force as a whole, or not at all.
    settings
        .participants
        .iter()
        .try_for_each(|participant| check(engine, participant))
}

/// What the settings have beyond what was taken up before, in the order in which it can be done; after [`prepare`].
#[must_use]
pub fn missing(engine: &Engine, settings: &Settings) -> Vec<AdminCommand> {
    let (mut people, mut accounts, mut money) = (Vec::new(), Vec::new(), Vec::new());
    for participant in &settings.participants {
        let bic = participant.bic;
        if known_terms(engine, bic).is_none() {
            people.push(AdminCommand::AddParticipant(terms_of(participant)));
        }
        for account in &participant.accounts {
            let is_open = engine.with_ledger(participant.home, |ledger| {
                let number = ledger.directory().find(bic)?;
                ledger.account(number, account.currency).map(drop)
            });
            if is_open.is_none() {
                accounts.push(open_account(participant, account));
            }
            let reference = opening_reference(participant, account.currency);
            let is_new =
                is_open.is_none() || was_cut_off(engine, participant, account.currency, reference);
            if account.opening_balance.minor() > 0 && is_new {
                money.push(fund(participant, account));
            }
        }
    }
    people.into_iter().chain(accounts).chain(money).collect()
}

fn open_account(participant: &Participant, account: &Account) -> AdminCommand {
    AdminCommand::OpenAccount(AccountTerms {
        bic: participant.bic,
        currency: account.currency,
        credit_line: account.credit_line,
    })
}

fn fund(participant: &Participant, account: &Account) -> AdminCommand {
    AdminCommand::Fund {
        reference: opening_reference(participant, account.currency),
        bic: participant.bic,
        currency: account.currency,
        amount: account.opening_balance,
    }
}

fn terms_of(participant: &Participant) -> ParticipantTerms {
    ParticipantTerms {
        bic: participant.bic,
        name: participant.name.clone(),
        home: participant.home,
        numbers_messages: participant.numbers_messages,
        refuse_whole: participant.refuse_whole,
        net_unit: participant.net_unit,
    }
}

fn known_terms(engine: &Engine, bic: Bic) -> Option<ParticipantTerms> {
    engine.with_ledger(COORDINATOR, |ledger| {
        ledger
            .directory()
            .find(bic)
            .and_then(|number| ledger.directory().get(number).cloned())
    })
}

/// What was agreed before must stand in the settings as it was agreed.
fn check(engine: &Engine, participant: &Participant) -> Result<(), FoundingError> {
    let bic = participant.bic;
    let Some(known) = known_terms(engine, bic) else {
        return Ok(());
    };
    if known != terms_of(participant) {
        return Err(FoundingError::Contradiction(format!(
            "{bic} was taken up as {:?} in shard {} (sequence = {}, refuse_whole = {}, net_unit = {:?}); the settings say otherwise",
            known.name, known.home, known.numbers_messages, known.refuse_whole, known.net_unit
        )));
    }
    participant
        .accounts
        .iter()
        .try_for_each(|account| same_credit_line(engine, participant, account))
}

/// One thing asked of the coordinator.
struct Ask {
    command: AdminCommand,
    /// The refusal that says that it had been done before: no fault.
    harmless: Option<AdminRefusal>,
    what: String,
}

/// Takes up what is new, in three steps: participants, their accounts, opening balances. Within a step many are on their
/// way at once, since they do not rest on one another, so a thousand participants cost some round trips and not thousands.
///
/// # Errors
/// As [`found`].
pub fn take_up(engine: &Engine, participants: &[Participant]) -> Result<(), FoundingError> {
    let unknown = participants
        .iter()
        .filter(|participant| known_terms(engine, participant.bic).is_none());
    ask_all(
        engine,
        unknown.map(|participant| Ask {
            command: AdminCommand::AddParticipant(terms_of(participant)),
            harmless: None,
            what: format!("take up {}", participant.bic),
        }),
    )?;
    let accounts = || {
        participants.iter().flat_map(|participant| {
            participant
                .accounts
                .iter()
                .map(move |account| (participant, account))
        })
    };
    let opened = ask_all(
        engine,
        accounts().map(|(participant, account)| Ask {
            command: open_account(participant, account),
            harmless: Some(AdminRefusal::AccountExists),
            what: format!(
                "open the {} account of {}",
                account.currency, participant.bic
            ),
        }),
    )?;
    let unfunded = accounts()
        .zip(opened)
        .filter(|&((participant, account), opened)| {
            account.opening_balance.minor() > 0
                && (opened
                    || was_cut_off(
                        engine,
                        participant,
                        account.currency,
                        opening_reference(participant, account.currency),
                    ))
        });
    ask_all(
        engine,
        unfunded.map(|((participant, account), _)| Ask {
            command: fund(participant, account),
            harmless: Some(AdminRefusal::ReferenceUsed),
            what: format!(
                "fund the {} account of {}",
                account.currency, participant.bic
            ),
        }),
    )?;
    Ok(())
}

/// Asks the coordinator for all of them, [`ASKED_AT_ONCE`] on their way; whether each was done, rather than done before.
fn ask_all(engine: &Engine, asks: impl Iterator<Item = Ask>) -> Result<Vec<bool>, FoundingError> {
    let mut done = Vec::new();
    let mut asked = VecDeque::new();
    let end = |(pending, harmless, what): (Pending, Option<AdminRefusal>, String)| match pending
        .wait()?
        .reply
    {
        Reply::Refused(refusal) if Some(&refusal) == harmless.as_ref() => Ok(false),
        Reply::Refused(refusal) => Err(FoundingError::Refused { what, refusal }),
        _ => Ok(true),
    };
    for ask in asks {
        if asked.len() == ASKED_AT_ONCE
            && let Some(first) = asked.pop_front()
        {
            done.push(end(first)?);
        }
        let command = Command::Admin(ask.command);
        let pending = engine.propose_when_room(COORDINATOR, &command, Lane::Bulk)?;
        asked.push_back((pending, ask.harmless, ask.what));
    }
    for rest in asked {
        done.push(end(rest)?);
    }
    Ok(done)
}

/// Some bulk beside what else the cluster does; a thousand accounts over a round trip of 100 ms take a second or two.
const ASKED_AT_ONCE: usize = 64;

/// A credit line is agreed when the account is opened: another one in the settings would be passed over in silence.
fn same_credit_line(
    engine: &Engine,
    participant: &Participant,
    account: &Account,
) -> Result<(), FoundingError> {
    let agreed = engine.with_ledger(participant.home, |ledger| {
        let number = ledger.directory().find(participant.bic)?;
        Some(ledger.account(number, account.currency)?.credit_line())
    });
    match agreed {
        Some(agreed) if agreed != account.credit_line => {
            let text = |line: AmountMinor| format_minor(line.signed(), account.currency);
            Err(FoundingError::Contradiction(format!(
                "the {} account of {} was opened with a credit line of {}; the settings say {}",
                account.currency,
                participant.bic,
                text(agreed),
                text(account.credit_line)
            )))
        }
        _ => Ok(()),
    }
}

/// Whether an earlier run opened an account and ended before it put the opening balance there. The ledger forgets references
/// with their business day, so the participant's output is asked: as long as it begins at its first number, it holds every
/// funding there ever was. Where it does not, the account is old, and money is rather missing than made.
fn was_cut_off(
    engine: &Engine,
    participant: &Participant,
    currency: Currency,
    reference: Text,
) -> bool {
    // Accounts are opened and funded before the day is: while it is open, and after it, nothing was cut off.
    let day_opened = engine.with_ledger(COORDINATOR, |ledger| ledger.cluster_day().is_some());
    if day_opened {
        return false;
    }
    engine.with_ledger(participant.home, |ledger| {
        let Some(stream) = ledger
            .directory()
            .find(participant.bic)
            .and_then(|number| ledger.stream(number))
        else {
            return false;
        };
        // The first statement of an account comes after its first business day, and stays as long as any day is known.
        !stream.iter().any(|item| match &item.body {
            ItemBody::Funded {
                reference: known, ..
            } => *known == reference,
            ItemBody::Statement(statement) => statement.currency == currency,
            _ => false,
        })
    })
}

/// Names an account's opening balance: it is put there once.
fn opening_reference(participant: &Participant, currency: Currency) -> Text {
    Text::new(&format!("OPENING-{}-{currency}", participant.bic)).unwrap_or(Text::EMPTY)
}

fn execute(
    engine: &Engine,
    shard: ShardId,
    command: &Command,
    what: impl Fn() -> String,
) -> Result<(), FoundingError> {
    match engine.execute_when_room(shard, command, Lane::Bulk)?.reply {
        Reply::Refused(refusal) => Err(FoundingError::Refused {
            what: what(),
            refusal,
        }),
        _ => Ok(()),
    }
}

fn random() -> Result<u128, FoundingError> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(FoundingError::Random)?;
    Ok(u128::from_le_bytes(bytes))
}
