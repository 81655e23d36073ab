//! camt.053, an account's statement of a business day: folded from the participant's own output (rule R37).
//!
//! Every movement of an account has an item of its own in its owner's output, so the statement is what these items add up
//! to. When they do not add up to the balances stated, no document is formed: a wrong statement is worse than none.

use clearspan_iso20022::write::{
    self, Account, Balance, BalanceKind, BankCode, Direction, Entry, EntryDetail, Page, Totals,
};
use clearspan_ledger::entry::CreditAdvice;
use clearspan_ledger::stream::{GrossEvent, ItemBody, Statement};
use clearspan_ledger::{
    Currency, CycleNumber, Ledger, LogIndex, ParticipantId, PaymentId, PaymentNo, ShardId, Text,
    Timestamp,
};

use super::credit::{received_code, sent_code};
use super::status::finality;
use super::{DocumentError, Documents, Found, Sheaf, View, account_id};

/// One movement of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Movement {
    /// The output number that tells of it.
    pub(crate) number: u64,
    /// Minor units; negative for a debit, never zero.
    pub(crate) minor: i128,
    pub(crate) booked: Timestamp,
    pub(crate) index: LogIndex,
    pub(crate) kind: Kind,
}

/// What moved it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A gross payment sent.
    Sent(PaymentNo),
    /// A gross payment received.
    Received(CreditAdvice),
    /// Central-bank money.
    Funded(Text),
    /// A cycle's net; a net of nothing moves nothing and is left out.
    Net(CycleNumber),
}

/// Movements of one account told by output numbers `first..end`, in their order.
pub(crate) fn movements(
    ledger: &Ledger,
    home: ShardId,
    participant: ParticipantId,
    currency: Currency,
    (first, end): (u64, u64),
) -> Result<Vec<Movement>, DocumentError> {
    let missing = |what, number| DocumentError::Missing {
        what,
        shard: home,
        number,
    };
    let mut found = Vec::new();
    let stream = ledger
        .stream(participant)
        .ok_or(DocumentError::ParticipantUnknown)?;
    for item in stream.range(first, end) {
        let (minor, kind) = match &item.body {
            ItemBody::Gross {
                payment,
                event: GrossEvent::Settled,
            } => {
                let view = ledger
                    .payment(*payment)
                    .ok_or_else(|| missing("payment", payment.get()))?;
                if view.currency != currency {
                    continue;
                }
                (-view.amount.signed(), Kind::Sent(*payment))
            }
            ItemBody::GrossCredit(advice) if advice.currency == currency => {
                (advice.amount.signed(), Kind::Received(*advice))
            }
            ItemBody::Funded {
                reference,
                currency: of,
                amount,
            } if *of == currency => (amount.signed(), Kind::Funded(*reference)),
            ItemBody::NetResult { cycle } => {
                let record = ledger
                    .cycle(*cycle)
                    .ok_or_else(|| missing("cycle", u64::from(cycle.get())))?;
                let result = record.results.iter().find(|result| {
                    result.participant == participant && result.currency == currency
                });
                let Some(result) = result else { continue };
                let net = result.closing_minor - result.opening_minor;
                if net == 0 {
                    continue;
                }
                (net, Kind::Net(*cycle))
            }
            _ => continue,
        };
        found.push(Movement {
            number: item.number,
            minor,
            booked: item.time,
            index: item.index,
            kind,
        });
    }
    Ok(found)
}

/// An entry's texts, which the written entry borrows.
pub(super) struct Line {
    reference: String,
    movement: Movement,
    code: BankCode,
    value_date: clearspan_ledger::BusinessDate,
    payment: Option<PaymentLine>,
}

struct PaymentLine {
    id: PaymentId,
    transaction: Option<String>,
    amount: clearspan_ledger::AmountMinor,
    counterparty: clearspan_ledger::Bic,
}

impl Line {
    pub(super) fn entry(&self, home: ShardId) -> Entry<'_, Option<EntryDetail<'_>>> {
        Entry {
            reference: &self.reference,
            amount: self.movement.minor.unsigned_abs(),
            direction: Direction::of(self.movement.minor),
            booked: self.movement.booked,
            value_date: self.value_date,
            cycle: match self.movement.kind {
                Kind::Net(cycle) => Some(cycle),
                _ => None,
            },
            finality: finality(home, self.movement.index),
            code: self.code,
            batch_count: None,
            details: self.payment.as_ref().map(|payment| EntryDetail {
                message_id: None,
                instruction_id: None,
                end_to_end_id: None,
                transaction_id: payment.transaction.as_deref(),
                id: payment.id,
                finality: None,
                amount: payment.amount,
                counterparty: payment.counterparty,
            }),
        }
    }
}

pub(super) fn totals(movements: &[Movement]) -> Totals {
    let mut totals = Totals::default();
    for movement in movements {
        totals.add(Direction::of(movement.minor), movement.minor.unsigned_abs());
    }
    totals
}

impl<V: View> Documents<'_, V> {
    pub(super) fn lines(
        &self,
        home: ShardId,
        movements: &[Movement],
    ) -> Result<Vec<Line>, DocumentError> {
        movements
            .iter()
            .map(|&movement| self.line(home, movement))
            .collect()
    }

    fn line(&self, home: ShardId, movement: Movement) -> Result<Line, DocumentError> {
        let reference = movement.number.to_string();
        let line = |code, value_date, payment| Line {
            reference,
            movement,
            code,
            value_date,
            payment,
        };
        Ok(match movement.kind {
            Kind::Sent(payment) => {
                let of = self.payment_of(home, payment)?;
                let (receiver, _) = self.participant(of.view.receiver)?;
                let payment = self.payment_line(home, &of.view, receiver)?;
                line(sent_code(of.record.kind), of.view.date, Some(payment))
            }
            Kind::Received(advice) => {
                let shard = advice.payment.shard;
                let of = self.payment_of(shard, advice.payment.payment)?;
                let (sender, _) = self.participant(advice.sender)?;
                let payment = self.payment_line(shard, &of.view, sender)?;
                line(received_code(of.record.kind), of.view.date, Some(payment))
            }
            Kind::Funded(reference) => Line {
                reference: reference.as_str().to_owned(),
                ..line(BankCode::FUNDING, movement.booked.date(), None)
            },
            Kind::Net(cycle) => {
                let date = self.cycle_record(home, cycle)?.date;
                line(BankCode::NETTING, date, None)
            }
        })
    }

    fn payment_line(
        &self,
        shard: ShardId,
        view: &clearspan_ledger::query::PaymentView,
        counterparty: clearspan_ledger::Bic,
    ) -> Result<PaymentLine, DocumentError> {
        // A UETR names the payment by itself; only without one is the package asked what its sender called it.
        let transaction = match view.id {
            PaymentId::Uetr(_) => None,
            PaymentId::Transaction(_) => {
                let package = self.package(shard, view.message)?;
                let names = self.names(Some(&package), shard, view.message, view.position)?;
                names.transaction().map(str::to_owned)
            }
        };
        Ok(PaymentLine {
            id: view.id,
            transaction,
            amount: view.amount,
            counterparty,
        })
    }

    pub(super) fn statement(
        &self,
        sheaf: &mut Sheaf<'_>,
        found: &Found<'_>,
        statement: &Statement,
    ) -> Result<(), DocumentError> {
        let numbers = (statement.first_number, statement.end_number);
        let movements = movements(
            found.ledger,
            found.home,
            found.participant,
            statement.currency,
            numbers,
        )?;
        let totals = totals(&movements);
        reconcile(found, statement, &totals)?;
        let lines = self.lines(found.home, &movements)?;
        let account = account_id(found.bic, statement.currency);
        let id = format!("{account}-{}", statement.sequence);
        let balance = |kind, minor| Balance {
            kind,
            minor,
            date: statement.date,
            at: None,
        };
        let balances = [
            balance(BalanceKind::Opening, statement.opening_minor),
            balance(BalanceKind::Closing, statement.closing_minor),
        ];
        let written = write::Statement {
            version: self.settings.cash_version,
            id: &id,
            sequence: u64::from(statement.sequence),
            chain: None,
            period: None,
            account: Account {
                id: &account,
                currency: statement.currency,
                owner: found.bic,
            },
            page: Page::ONLY,
            balances: &balances,
            totals,
            query: None,
        };
        let name = format!("camt.053.{}", written.version.suffix());
        sheaf.add(name, |out, head| {
            write::statement(
                out,
                head,
                &written,
                lines.iter().map(|line| line.entry(found.home)),
            );
        })
    }
}

/// Opening, entries and closing must agree, and so must debits and credits by themselves.
fn reconcile(
    found: &Found<'_>,
    statement: &Statement,
    totals: &Totals,
) -> Result<(), DocumentError> {
    let signed = |sum: u128| i128::try_from(sum).unwrap_or(i128::MAX);
    let (debits, credits) = (signed(totals.debit_sum), signed(totals.credit_sum));
    for (what, stated_minor, derived_minor) in [
        ("debits", signed(statement.debits_minor), debits),
        ("credits", signed(statement.credits_minor), credits),
        (
            "closing balance",
            statement.closing_minor,
            statement.opening_minor - debits + credits,
        ),
    ] {
        if stated_minor != derived_minor {
            return Err(DocumentError::Unreconciled {
                what,
                participant: found.bic,
                currency: statement.currency,
                date: statement.date,
                stated_minor,
                derived_minor,
            });
        }
    }
    Ok(())
}
