//! Reason codes, from the ledger's table.

use std::fmt::Write as _;

use clearspan_ledger::Reason;
use clearspan_ledger::reason::Level;

use super::GENERATED;

const fn level(level: Level) -> &'static str {
    match level {
        Level::Message => "message",
        Level::Payment => "payment",
        Level::Settlement => "settlement",
        Level::Request => "request",
    }
}

pub(super) fn text() -> String {
    let mut text = format!(
        "{GENERATED}# Reason codes

Why a message, payment or request was refused, or why a payment waits. Codes are the external status reason codes of ISO
20022; one code may stand for several reasons, which have names of their own here. Where several apply, the one that stands
first is answered, wherever and in whatever order the faults were found.

Level: a fault of the *message* refuses all of it; of a *payment*, that payment alone, unless its sender wants packages
whole (`refuse_whole`); *settlement* is about an accepted payment that waits or could not settle; *request* about a
cancellation or return.

| # | code | level | name | meaning |
|---|---|---|---|---|
"
    );
    for &reason in Reason::ALL {
        let (code, name, meaning) = (reason.code(), reason.name(), reason.text());
        // A text takes everything.
        let _ = writeln!(
            text,
            "| {} | {code} | {} | {name} | {meaning} |",
            reason.rank() + 1,
            level(reason.level())
        );
    }
    text.push_str(
        "
Two answers carry no reason code: a numbered message that came before its turn is *held*, and one beyond what may wait is
answered `BUSY` (nothing is stored; send it again after the missing one).
",
    );
    text
}
