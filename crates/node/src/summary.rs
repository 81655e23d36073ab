//! What a business day came to, from the shards' states: the same figures however often it is asked.

use std::collections::BTreeMap;

use clearspan_ledger::day::PaymentStatus;
use clearspan_ledger::money::format_minor;
use clearspan_ledger::stream::{GrossEvent, ItemBody};
use clearspan_ledger::{BusinessDate, Currency, Reason, ShardId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::Reading;

/// An amount as every JSON answer gives it: decimals for people, minor units for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Money {
    /// ISO 4217 code.
    pub currency: String,
    /// With the currency's decimals.
    pub value: String,
    /// In minor units.
    pub minor: i128,
}

impl Money {
    /// Signed minor units of a currency.
    #[must_use]
    pub fn new(currency: Currency, minor: i128) -> Self {
        Self {
            currency: currency.to_string(),
            value: format_minor(minor, currency),
            minor,
        }
    }
}

/// A business day's figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Summary {
    /// Business date.
    pub business_date: String,
    /// Messages taken in, which includes refused ones with a stored answer.
    pub messages: u64,
    /// Messages refused as a whole.
    pub messages_refused: u64,
    /// Payments in messages that were not refused as a whole.
    pub payments: u64,
    /// Refused when taken in, refused later, or part of a refused message, by reason.
    pub refused: Vec<RefusedCount>,
    /// Payments by what has become of them.
    pub gross: GrossFigures,
    /// Netted payments.
    pub netted: u64,
    /// Accepted for netting and not settled at the end of the day (also counted under their reason).
    pub not_netted: u64,
    /// Cancelled before they settled.
    pub cancelled: u64,
    /// One row per currency.
    pub currencies: Vec<CurrencyFigures>,
    /// One row per cycle.
    pub cycles: Vec<CycleFigures>,
    /// One row per account.
    pub accounts: Vec<AccountFigures>,
    /// Whether receipts, cycles and accounts say the same, by count and by sum; `None` while the day is open.
    pub reconciled: Option<bool>,
    /// What differs when they do not.
    pub differences: Vec<String>,
}

/// How often a reason was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RefusedCount {
    /// ISO 20022 code.
    pub code: &'static str,
    /// The rule's name.
    pub reason: &'static str,
    /// What it means.
    pub text: &'static str,
    /// Messages refused as a whole for it.
    pub messages: u64,
    /// Single payments refused for it.
    pub payments: u64,
}

/// Payments that settle gross.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GrossFigures {
    /// Settled, final.
    pub settled: u64,
    /// Of these, after they had waited in a queue.
    pub settled_after_queue: u64,
    /// Waiting now.
    pub queued: u64,
    /// Refused after they were accepted: settle-or-refuse, times, end of day.
    pub refused: u64,
}

/// One currency's figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CurrencyFigures {
    /// ISO 4217 code.
    pub currency: String,
    /// Value settled gross.
    pub gross_value: Money,
    /// Value of the payments settled in cycles.
    pub netted_value: Money,
    /// What changed hands for them: half the sum of all net movements.
    pub net_value: Money,
    /// Share of the value that netting saved, in thousandths of a percent.
    pub netting_ratio_ppm: Option<u64>,
    /// Sum of all balances.
    pub balances: Money,
    /// Central-bank money on accounts; equal to the balances when nothing is in transit.
    pub issued: Money,
}

/// One cycle's figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CycleFigures {
    /// Its number.
    pub cycle: u32,
    /// Payments in the set.
    pub in_set: u64,
    /// Settled.
    pub settled: u64,
    /// Dropped for lack of funds; they stayed first in line.
    pub dropped: u64,
    /// Rounds of reserving.
    pub rounds: u32,
    /// Whether it was given up before its decision.
    pub abandoned: bool,
}

/// One account's figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AccountFigures {
    /// The participant's code.
    pub participant: String,
    /// Balance when the day began, central-bank money put on it included.
    pub before: Money,
    /// Balance now.
    pub after: Money,
    /// Credit line.
    pub credit_line: Money,
}

#[derive(Default)]
struct PerCurrency {
    gross_minor: u128,
    netted_minor: u128,
    net_minor: u128,
    balances_minor: i128,
    issued_minor: i128,
}

/// The figures of a business date.
#[must_use]
pub fn summarize(reading: &Reading<'_>, date: BusinessDate) -> Summary {
    let mut refused: BTreeMap<Reason, (u64, u64)> = BTreeMap::new();
    let mut per_currency: BTreeMap<Currency, PerCurrency> = BTreeMap::new();
    let mut gross = GrossFigures::default();
    let (mut messages, mut messages_refused, mut payments) = (0, 0, 0);
    let (mut netted, mut not_netted, mut cancelled) = (0, 0, 0);
    let mut sums = Sums::default();
    for (shard, ledger) in reading.ledgers() {
        for (number, record) in ledger.messages(date) {
            messages += 1;
            if let Some(reason) = record.refused {
                messages_refused += 1;
                refused.entry(reason).or_default().0 += 1;
                continue;
            }
            for payment in ledger.payments_of(number) {
                payments += 1;
                let netting = payment.class.is_none();
                let figures = per_currency.entry(payment.currency).or_default();
                match payment.status {
                    PaymentStatus::Settled if netting => {
                        netted += 1;
                        figures.netted_minor += u128::from(payment.amount.minor());
                    }
                    PaymentStatus::Settled => {
                        gross.settled += 1;
                        figures.gross_minor += u128::from(payment.amount.minor());
                        sums.gross_settled += 1;
                        sums.gross_minor += u128::from(payment.amount.minor());
                    }
                    PaymentStatus::Queued | PaymentStatus::Claiming => gross.queued += 1,
                    PaymentStatus::Netting => not_netted += 1,
                    PaymentStatus::Cancelled => cancelled += 1,
                    PaymentStatus::Refused => {}
                    PaymentStatus::Ended if netting => not_netted += 1,
                    PaymentStatus::Ended => gross.refused += 1,
                }
                if matches!(
                    payment.status,
                    PaymentStatus::Refused | PaymentStatus::Ended
                ) && let Some(reason) = payment.reason
                {
                    refused.entry(reason).or_default().1 += 1;
                }
            }
        }
        for (currency, totals) in ledger.totals() {
            let figures = per_currency.entry(currency).or_default();
            figures.balances_minor += totals.balances_minor;
            figures.issued_minor += totals.issued_minor;
        }
        sums.add_streams(reading, shard, date, &mut gross);
    }
    let coordinator = reading.ledger(ShardId::new(0));
    let mut cycles = Vec::new();
    for summary in coordinator
        .cycle_summaries()
        .filter(|summary| summary.date == date)
    {
        let settled = summary
            .results
            .iter()
            .map(|result| u64::from(result.out_count))
            .sum();
        cycles.push(CycleFigures {
            cycle: summary.cycle.get(),
            in_set: summary.set_count,
            settled,
            dropped: summary
                .results
                .iter()
                .map(|result| u64::from(result.dropped_count))
                .sum(),
            rounds: summary.rounds,
            abandoned: summary.abandoned,
        });
        sums.cycle_settled += settled;
        for result in &summary.results {
            sums.cycle_out_minor += result.out_minor;
            sums.cycle_in_minor += result.in_minor;
            let moved = (result.closing_minor - result.opening_minor).unsigned_abs();
            per_currency.entry(result.currency).or_default().net_minor += moved;
        }
    }
    let closed = reading.ledger(ShardId::new(0)).cluster_day().is_none();
    let differences = if closed {
        sums.differences(netted, &per_currency)
    } else {
        Vec::new()
    };
    Summary {
        business_date: date.to_string(),
        messages,
        messages_refused,
        payments,
        refused: refused
            .into_iter()
            .map(|(reason, (messages, payments))| RefusedCount {
                code: reason.code(),
                reason: reason.name(),
                text: reason.text(),
                messages,
                payments,
            })
            .collect(),
        gross,
        netted,
        not_netted,
        cancelled,
        currencies: per_currency
            .into_iter()
            .filter(|(currency, _)| *currency != Currency::NONE)
            .map(|(currency, figures)| currency_figures(currency, &figures))
            .collect(),
        cycles,
        accounts: account_figures(reading),
        reconciled: closed.then_some(differences.is_empty()),
        differences,
    }
}

fn currency_figures(currency: Currency, figures: &PerCurrency) -> CurrencyFigures {
    let money = |minor: u128| Money::new(currency, i128::try_from(minor).unwrap_or(i128::MAX));
    let net = figures.net_minor / 2;
    CurrencyFigures {
        currency: currency.to_string(),
        gross_value: money(figures.gross_minor),
        netted_value: money(figures.netted_minor),
        net_value: money(net),
        netting_ratio_ppm: (figures.netted_minor > 0).then(|| {
            u64::try_from((figures.netted_minor - net) * 1_000_000 / figures.netted_minor)
                .unwrap_or(0)
        }),
        balances: Money::new(currency, figures.balances_minor),
        issued: Money::new(currency, figures.issued_minor),
    }
}

fn account_figures(reading: &Reading<'_>) -> Vec<AccountFigures> {
    let mut rows = Vec::new();
    for (_, ledger) in reading.ledgers() {
        for account in ledger.accounts() {
            let (before, after) = day_balances(ledger, account);
            rows.push(AccountFigures {
                participant: ledger.directory().bic(account.participant()).to_string(),
                before: Money::new(account.currency(), before),
                after: Money::new(account.currency(), after),
                credit_line: Money::new(account.currency(), account.credit_line().signed()),
            });
        }
    }
    rows.sort_by(|a, b| {
        (&a.participant, &a.before.currency).cmp(&(&b.participant, &b.before.currency))
    });
    rows
}

/// An account's balance at the beginning of the open (or last) business day, and at its end (or now).
fn day_balances(
    ledger: &clearspan_ledger::Ledger,
    account: &clearspan_ledger::account::Account,
) -> (i128, i128) {
    let stream = ledger.stream(account.participant());
    let statement = stream
        .into_iter()
        .flat_map(|stream| stream.iter())
        .filter_map(|item| match &item.body {
            ItemBody::Statement(statement) if statement.currency == account.currency() => {
                Some(**statement)
            }
            _ => None,
        });
    let last = statement.last();
    let open = ledger.day_state() != &clearspan_ledger::DayState::Closed;
    let (opening, closing, first) = match last {
        Some(statement) if !open => (
            statement.opening_minor,
            statement.closing_minor,
            statement.first_number,
        ),
        Some(statement) => (
            account.day_opening_minor(),
            account.balance_minor(),
            statement.end_number,
        ),
        None => (account.day_opening_minor(), account.balance_minor(), 1),
    };
    let funded: i128 = stream
        .into_iter()
        .flat_map(|stream| stream.range(first, u64::MAX))
        .filter_map(|item| match &item.body {
            ItemBody::Funded {
                currency, amount, ..
            } if *currency == account.currency() => Some(amount.signed()),
            _ => None,
        })
        .sum();
    (opening + funded, closing)
}

/// Totals of receipts, to be compared with those of payments and cycles (rule R23).
#[derive(Default)]
struct Sums {
    gross_settled: u64,
    gross_minor: u128,
    gross_receipts: u64,
    credit_receipts: u64,
    credit_minor: u128,
    netted_receipts: u64,
    net_credit_receipts: u64,
    net_credit_minor: u128,
    cycle_settled: u64,
    cycle_out_minor: u128,
    cycle_in_minor: u128,
}

impl Sums {
    fn add_streams(
        &mut self,
        reading: &Reading<'_>,
        shard: ShardId,
        date: BusinessDate,
        gross: &mut GrossFigures,
    ) {
        let ledger = reading.ledger(shard);
        let first = ledger.messages(date).map(|(_, record)| record.index).min();
        let last_opened = ledger.dates().last() == Some(date);
        let mut waited = std::collections::BTreeSet::new();
        for (participant, _) in ledger.directory().iter() {
            let Some(stream) = ledger.stream(participant) else {
                continue;
            };
            for item in stream.iter() {
                // Items carry no date; those of the last business day follow its first message.
                let of_last_day = last_opened && first.is_some_and(|first| item.index >= first);
                let names_its_payments = matches!(
                    item.body,
                    ItemBody::GrossCredit(_) | ItemBody::NetCredits { .. }
                );
                if !of_last_day && !names_its_payments {
                    continue;
                }
                match &item.body {
                    ItemBody::Gross {
                        payment,
                        event: GrossEvent::Queued { .. },
                    } => {
                        waited.insert(*payment);
                    }
                    ItemBody::Gross {
                        payment,
                        event: GrossEvent::Settled,
                    } => {
                        self.gross_receipts += 1;
                        gross.settled_after_queue += u64::from(waited.contains(payment));
                    }
                    ItemBody::GrossCredit(advice) if self.is_of(reading, advice.payment, date) => {
                        self.credit_receipts += 1;
                        self.credit_minor += u128::from(advice.amount.minor());
                    }
                    ItemBody::Netted { settled, .. } => self.netted_receipts += u64::from(*settled),
                    ItemBody::NetCredits {
                        cycle,
                        count,
                        minor,
                        ..
                    } => {
                        let summary = reading.ledger(ShardId::new(0)).cycle_summary(*cycle);
                        if summary.is_some_and(|summary| summary.date == date) {
                            self.net_credit_receipts += u64::from(*count);
                            self.net_credit_minor += minor;
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn is_of(
        &self,
        reading: &Reading<'_>,
        payment: clearspan_ledger::PaymentRef,
        date: BusinessDate,
    ) -> bool {
        reading
            .ledger(payment.shard)
            .payment(payment.payment)
            .is_some_and(|view| view.date == date)
    }

    fn differences(
        &self,
        netted: u64,
        per_currency: &BTreeMap<Currency, PerCurrency>,
    ) -> Vec<String> {
        let mut differences = Vec::new();
        let mut compare = |what: &str, left: u128, right: u128| {
            if left != right {
                differences.push(format!("{what}: {left} against {right}"));
            }
        };
        compare(
            "gross payments settled, receipts to senders",
            self.gross_settled.into(),
            self.gross_receipts.into(),
        );
        compare(
            "gross payments settled, receipts to receivers",
            self.gross_settled.into(),
            self.credit_receipts.into(),
        );
        compare(
            "gross value settled, value of receipts",
            self.gross_minor,
            self.credit_minor,
        );
        compare(
            "payments netted, of the cycles",
            netted.into(),
            self.cycle_settled.into(),
        );
        compare(
            "payments netted, receipts to senders",
            netted.into(),
            self.netted_receipts.into(),
        );
        compare(
            "payments netted, receipts to receivers",
            netted.into(),
            self.net_credit_receipts.into(),
        );
        compare(
            "value out of the cycles, into them",
            self.cycle_out_minor,
            self.cycle_in_minor,
        );
        compare(
            "value of the cycles, of receipts",
            self.cycle_in_minor,
            self.net_credit_minor,
        );
        for (currency, figures) in per_currency {
            if figures.balances_minor != figures.issued_minor {
                differences.push(format!(
                    "{currency}: accounts hold {}, {} was issued",
                    figures.balances_minor, figures.issued_minor
                ));
            }
        }
        differences
    }
}
