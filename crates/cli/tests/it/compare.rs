//! A day's results against what its input says they must be, and against one another.

use std::collections::BTreeMap;
use std::path::Path;

use clearspan_ledger::day::PaymentStatus;
use clearspan_node::engine::Offline;
use serde_json::Value;

use crate::documents::{Outbox, Totals, add};
use crate::support::{no_child_starts, number, parse, text};
use crate::xml::{all, amount};

/// A message as the node keeps it.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) id: String,
    /// Code, when it was refused as a whole.
    pub(crate) refused: Option<&'static str>,
    pub(crate) payments: Vec<Payment>,
}

/// A payment as the node keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payment {
    pub(crate) outcome: &'static str,
    /// Code, when it was refused.
    pub(crate) code: Option<&'static str>,
    pub(crate) currency: String,
    pub(crate) minor: u64,
    pub(crate) cycle: Option<u32>,
}

/// All messages in a stopped node's data.
pub(crate) fn stored(out: &Path) -> Vec<Message> {
    let offline = Offline::open(&out.join("data")).expect("a stopped node's data can be read");
    let reading = offline.read();
    let mut messages = Vec::new();
    for (_, ledger) in reading.ledgers() {
        for date in ledger.dates() {
            for (no, record) in ledger.messages(date) {
                let payments = ledger.payments_of(no).map(|payment| {
                    let outcome = match payment.status {
                        PaymentStatus::Settled => "settled",
                        PaymentStatus::Refused | PaymentStatus::Ended => "refused",
                        PaymentStatus::Cancelled => "cancelled",
                        PaymentStatus::Queued => "queued",
                        PaymentStatus::Netting => "waits for netting",
                        PaymentStatus::Claiming => "claims",
                    };
                    Payment {
                        outcome,
                        code: payment
                            .reason
                            .filter(|_| outcome == "refused")
                            .map(clearspan_ledger::Reason::code),
                        currency: payment.currency.to_string(),
                        minor: payment.amount.minor(),
                        cycle: payment.cycle.map(clearspan_ledger::CycleNumber::get),
                    }
                });
                messages.push(Message {
                    id: record.message_id.to_string(),
                    refused: record.refused.map(clearspan_ledger::Reason::code),
                    payments: payments.collect(),
                });
            }
        }
    }
    drop(reading);
    let _alone = no_child_starts();
    drop(offline);
    messages
}

/// Whether funds cover everything, or payments may end for lack of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Funds {
    Enough,
    Short,
}

/// Holds a day to `expected.jsonl`, message by message and payment by payment: by what the node keeps, by the report of the
/// run, and by the documents. Returns the bytes of every payment that settled, in no order.
pub(crate) fn check_expected(
    input: &Path,
    out: &Path,
    report: &Value,
    funds: Funds,
) -> Vec<String> {
    let manifest = std::fs::read_to_string(input.join("expected.jsonl")).expect("expected.jsonl");
    let lines: Vec<Value> = manifest.lines().map(parse).collect();
    let mut payment_lines: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line["kind"] == "payment") {
        payment_lines
            .entry(text(&line["file"]))
            .or_default()
            .push(line);
    }
    let not_taken: BTreeMap<String, &str> = report["run"]["not_taken"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|file| {
            (
                format!("inbox/{}", text(&file["file"])),
                text(&file["code"]),
            )
        })
        .collect();
    let kept = stored(out);
    let outbox = Outbox::read(out);
    let statuses = outbox.statuses();
    let (mut repeated, mut held, mut settled, mut messages) = (0, 0, Vec::new(), 0);
    for line in lines.iter().filter(|line| line["kind"] == "message") {
        let file = text(&line["file"]);
        let outcome = text(&line["outcome"]);
        let reason = line["reason"].as_str();
        let singly = payment_lines.remove(file).unwrap_or_default();
        messages += 1;
        match outcome {
            "repeat" => {
                repeated += 1;
                continue;
            }
            "held" => held += 1,
            _ => {}
        }
        let Some(id) = line["message_id"]
            .as_str()
            .filter(|_| !not_taken.contains_key(file))
        else {
            assert_eq!(
                not_taken.get(file).copied(),
                reason,
                "{file} should not be taken in"
            );
            continue;
        };
        let whole = kept
            .iter()
            .find(|message| message.id == id && reason.is_some() && message.refused == reason);
        let taken = kept
            .iter()
            .find(|message| message.id == id && message.refused.is_none());
        let answers: Vec<_> = statuses
            .iter()
            .filter(|status| status.message_id == id)
            .collect();
        if let (Some(reason), Some(_)) = (reason.filter(|_| outcome == "refused"), whole) {
            let told = answers.iter().any(|status| {
                status.group == "RJCT"
                    && (status.group_code == reason
                        || status.payments.iter().any(|payment| payment.code == reason))
            });
            assert!(told, "{file}: nobody is told of {reason}: {answers:?}");
            continue;
        }
        if line["payments"] == 0 {
            // Requests: their answers are looked at where they are known one by one.
            continue;
        }
        let message = taken.unwrap_or_else(|| panic!("{file}: {id} is not there: {line}"));
        assert_eq!(
            message.payments.len() as u64,
            number(&line["payments"]),
            "{file}"
        );
        let mut refused_at_once = Vec::new();
        let xml = String::from_utf8_lossy(&std::fs::read(input.join(file)).expect("an input file"))
            .into_owned();
        let mut transactions = all(&xml, "CdtTrfTxInf");
        if transactions.is_empty() {
            transactions = all(&xml, "TxInf");
        }
        assert_eq!(transactions.len(), message.payments.len(), "{file}");
        for (at, payment) in message.payments.iter().enumerate() {
            let expected = singly
                .iter()
                .find(|line| number(&line["number"]) == at as u64 + 1);
            let (outcome, code) = expected.map_or(("settled", None), |line| {
                (text(&line["outcome"]), line["reason"].as_str())
            });
            let found = (payment.outcome, payment.code);
            let ran_short =
                funds == Funds::Short && expected.is_none() && found == ("refused", Some("AM04"));
            assert!(
                found == (outcome, code) || ran_short,
                "{file} {}: {found:?}, not {outcome} {code:?}",
                at + 1
            );
            if payment.outcome == "settled" {
                settled.push(transactions[at].outer.to_owned());
                continue;
            }
            let transaction = expected
                .and_then(|line| line["payment_id"].as_str())
                .unwrap_or_default();
            let wanted = if outcome == "cancelled" {
                ("CANC", "")
            } else {
                ("RJCT", code.unwrap_or_default())
            };
            let told = ran_short
                || answers.iter().any(|status| {
                    status.payments.iter().any(|payment| {
                        payment.transaction == transaction
                            && (&*payment.status, &*payment.code) == wanted
                    })
                });
            assert!(
                told,
                "{file} {}: the sender is not told {wanted:?}: {answers:?}",
                at + 1
            );
            refused_at_once.extend(code.map(str::to_owned));
        }
        if outcome == "part" {
            let part = answers
                .iter()
                .find(|status| status.group == "PART")
                .expect("an answer of PART");
            let codes: Vec<_> = part
                .payments
                .iter()
                .map(|payment| payment.code.clone())
                .collect();
            assert_eq!(codes, refused_at_once, "{file}");
        }
    }
    assert!(payment_lines.is_empty());
    let run = &report["run"];
    assert_eq!(number(&run["files"]), messages);
    assert_eq!(number(&run["repeated"]), repeated);
    assert_eq!(number(&run["held"]), held);
    assert_eq!(
        number(&run["taken"]),
        messages - repeated - held - number(&run["requests"]) - not_taken.len() as u64
    );
    settled
}

/// Closing balances as `expected-balances.csv` has them.
pub(crate) fn check_balances(input: &Path, report: &Value) {
    let expected =
        std::fs::read_to_string(input.join("expected-balances.csv")).expect("expected balances");
    let mut rows: Vec<String> = expected.lines().skip(1).map(str::to_owned).collect();
    rows.sort();
    let found: Vec<String> = report["summary"]["accounts"]
        .as_array()
        .expect("accounts")
        .iter()
        .map(|row| {
            let [before, after] = [&row["before"], &row["after"]];
            let parts = [
                &row["participant"],
                &before["currency"],
                &before["value"],
                &after["value"],
            ];
            parts.map(text).join(",")
        })
        .collect();
    assert_eq!(found, rows);
}

/// Rule R23: receipts = cycles = ledger, by count and by sum, with the receipts read from the documents. `settled` are the
/// bytes of the payments that settled, as their senders wrote them: the receivers have each of them, and nothing else.
pub(crate) fn check_receipts(out: &Path, report: &Value, mut settled: Vec<String>) {
    let summary = &report["summary"];
    assert_eq!(summary["reconciled"], true, "{}", summary["differences"]);
    let outbox = Outbox::read(out);
    outbox.check_numbers();
    let mut ledger = Totals::new();
    for message in stored(out) {
        for payment in message
            .payments
            .iter()
            .filter(|payment| payment.outcome == "settled")
        {
            add(
                &mut ledger,
                &payment.currency,
                1,
                i128::from(payment.minor) * scale(&payment.currency),
            );
        }
    }
    let count: u64 = ledger.values().map(|(count, _)| count).sum();
    assert_eq!(
        count,
        number(&summary["gross"]["settled"]) + number(&summary["netted"])
    );
    assert_eq!(outbox.credits(), ledger);
    let (totals, mut forwarded) = outbox.forwarded();
    assert_eq!(totals, ledger);
    assert_eq!(outbox.settled_by_statuses(), count);
    settled.sort();
    forwarded.sort_unstable();
    assert!(
        settled == forwarded,
        "what was forwarded is not what was sent"
    );
    let nets = outbox.nets();
    for figures in summary["currencies"].as_array().expect("currencies") {
        let currency = text(&figures["currency"]);
        let value = |name: &str| amount(text(&figures[name]["value"]));
        let settled = ledger.get(currency).map_or(0, |(_, sum)| *sum);
        assert_eq!(
            value("gross_value") + value("netted_value"),
            settled,
            "{currency}"
        );
        assert_eq!(value("balances"), value("issued"), "{currency}");
        let of_currency = nets.iter().filter(|((_, of), _)| of == currency);
        let (gained, given) =
            of_currency.fold((0, 0), |sum, (_, net)| (sum.0 + net.0, sum.1 + net.1));
        assert_eq!(
            (gained, given),
            (value("net_value"), value("net_value")),
            "{currency}"
        );
    }
    let in_cycles: u64 = summary["cycles"]
        .as_array()
        .expect("cycles")
        .iter()
        .map(|cycle| number(&cycle["settled"]))
        .sum();
    assert_eq!(in_cycles, number(&summary["netted"]));
    let statements = outbox.statements();
    for account in summary["accounts"].as_array().expect("accounts") {
        let key = (
            text(&account["participant"]).to_owned(),
            text(&account["after"]["currency"]).to_owned(),
        );
        let statement = statements[&key]
            .last()
            .expect("a statement for each account");
        assert_eq!(
            statement.closing,
            amount(text(&account["after"]["value"])),
            "{key:?}"
        );
        let line = amount(text(&account["credit_line"]["value"]));
        assert!(statement.closing + line >= 0, "{key:?} is below its floor");
    }
}

/// Hundred-thousandths in a minor unit.
pub(crate) fn scale(currency: &str) -> i128 {
    match currency {
        "JPY" => 100_000,
        "KWD" | "BHD" | "OMR" => 100,
        _ => 1_000,
    }
}

/// Every amount of an answer is currency, decimal text and minor units, and the two figures are one.
pub(crate) fn check_money(value: &Value) -> u64 {
    match value {
        Value::Object(fields) if fields.contains_key("minor") => {
            assert_eq!(
                fields.keys().collect::<Vec<_>>(),
                ["currency", "minor", "value"]
            );
            let currency = text(&fields["currency"]);
            let minor = i128::from(
                fields["minor"]
                    .as_i64()
                    .expect("minor units are an integer"),
            );
            assert_eq!(
                amount(text(&fields["value"])),
                minor * scale(currency),
                "{value}"
            );
            let decimals = text(&fields["value"])
                .split_once('.')
                .map_or(0, |(_, decimals)| decimals.len());
            assert_eq!(
                10_i128.pow(5 - u32::try_from(decimals).expect("few")),
                scale(currency),
                "{value}"
            );
            1
        }
        Value::Object(fields) => fields.values().map(check_money).sum(),
        Value::Array(items) => items.iter().map(check_money).sum(),
        _ => 0,
    }
}

/// Accounts of a report, to compare days by.
pub(crate) fn accounts(report: &Value) -> &Value {
    &report["summary"]["accounts"]
}
