//! The table of the example: every file, what it is, what comes out and why; and the closing balances.

use super::super::amount::decimal;
use super::build::{BY_HAND, Case, Example};
use super::{BUSINESS_DATE, SECTIONS};

pub(super) fn text(example: &Example) -> String {
    let mut out = format!(
        "# An example day\n\n\
         One business day, {BUSINESS_DATE}, of 13 invented participants in 4 shards: `clearspan day examples/day` reads \
         `participants.toml`, then the files of `inbox/` in name order. A netting cycle follows each section (directory); \
         the day ends after the last, and what is still queued is refused with AM04.\n\n\
         Payments marked neither urgent (`SttlmPrty` URGT or HIGH) nor gross (`ClrChanl` RTGS) are net: they settle in the \
         cycle of their section. Reasons are the ISO 20022 external codes; a payment gets its first fault in this order: \
         identifiers, twice in the message, currency, amount, decimals, receiver, accounts, dates, duplicate.\n\n\
         All files of this directory are written by one function of the generator (`docs/generate.md`), and a test holds \
         them to it; `expected.jsonl` and `expected-balances.csv` say the same as this page to programs.\n"
    );
    for (section, title) in SECTIONS.iter().zip(["Morning", "Noon"]) {
        out.push_str(&format!("\n## {title}: `inbox/{section}`\n\n| File | What it is | What comes out | Why |\n|---|---|---|---|\n"));
        let prefix = format!("inbox/{section}/");
        for case in &example.cases {
            if let Some(name) = case.file.strip_prefix(&prefix) {
                out.push_str(&format!(
                    "| `{name}` | {} | {} | {} |\n",
                    case.what, case.comes_out, case.why
                ));
            }
        }
    }
    out.push_str(
        "\n## Payments that do not simply settle\n\n| File | No. | TxId | By the end of the day | Why |\n|---|---|---|---|---|\n",
    );
    for case in &example.cases {
        results(&mut out, case);
    }
    out.push_str(
        "\n## Closing balances to check by hand\n\nThe large participants exchange the generated packages; their closing \
         balances are in `expected-balances.csv`. These follow from the tables above:\n\n\
         | Participant | Currency | Opening | Closing |\n|---|---|---|---|\n",
    );
    for index in BY_HAND {
        for (code, opening, closing) in accounts(example, index) {
            if opening != "0" && opening != "0.00" && opening != "0.000"
                || opening != closing
                || code == "EUR"
            {
                let name = example.participants[index].short();
                out.push_str(&format!("| {name} | {code} | {opening} | {closing} |\n"));
            }
        }
    }
    out
}

fn results(out: &mut String, case: &Case) {
    let name = case.file.rsplit('/').next().unwrap_or_default();
    for result in &case.results {
        let id = result.payment_id.as_deref().unwrap_or_default();
        let reason = result.reason.unwrap_or_default();
        let outcome = format!("{} {reason}", result.outcome);
        out.push_str(&format!(
            "| `{name}` | {} | {id} | {} | {} |\n",
            result.number,
            outcome.trim_end(),
            result.why
        ));
    }
}

/// Currency, opening and closing balance of each account of a participant.
fn accounts(example: &Example, index: usize) -> Vec<(&'static str, String, String)> {
    let listed = example.participants[index].accounts.iter();
    listed
        .map(|account| {
            let currency = account.currency;
            let closing = example.balances[&(index, currency.code)];
            (
                currency.code,
                decimal(account.opening_minor, currency.exponent),
                decimal(closing, currency.exponent),
            )
        })
        .collect()
}

/// The closing balance of every account.
pub(super) fn balances_csv(example: &Example) -> String {
    let mut out = "bic,currency,opening,closing\n".to_owned();
    for (index, participant) in example.participants.iter().enumerate() {
        for (code, opening, closing) in accounts(example, index) {
            out.push_str(&format!("{},{code},{opening},{closing}\n", participant.bic));
        }
    }
    out
}
