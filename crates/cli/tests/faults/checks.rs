//! The invariants, each a function over the record and what the nodes hold in the end, each tested on a history in which
//! it is broken on purpose.

mod digests;
mod effects;
mod finality;
mod linear;
mod money;
mod netting;
mod order;
mod quorum;
mod receipts;
#[cfg(test)]
mod sample;

use std::collections::BTreeSet;

use crate::ending::Ending;
use crate::messages::{Content, Message};
use crate::record::{Asked, History, Op, Taken, Told};

type Check = fn(&History, &Ending) -> Vec<String>;

const CHECKS: [Check; 12] = [
    nothing_unexpected,
    money::is_conserved,
    effects::nothing_is_lost,
    effects::nothing_is_done_twice,
    effects::what_was_refused_is_not_done,
    order::holds,
    linear::reads_are,
    netting::is_atomic,
    receipts::are_exact,
    finality::holds,
    quorum::nothing_is_served_without,
    digests::are_equal,
];

/// Everything that does not hold, each line beginning with its invariant.
pub(crate) fn all(history: &History, ending: &Ending) -> Vec<String> {
    let checks = CHECKS.iter();
    checks.flat_map(|check| check(history, ending)).collect()
}

/// Answers of a kind that no request here should get.
fn nothing_unexpected(history: &History, _: &Ending) -> Vec<String> {
    let ops = history.ops.iter();
    ops.filter(|op| matches!(op.told, Told::Unexpected(_)))
        .map(|op| format!("unexpected: {op:?}"))
        .collect()
}

/// Acknowledged messages: the request, the message's place, the answer.
fn taken(history: &History) -> impl Iterator<Item = (&Op, usize, &Taken)> {
    history
        .ops
        .iter()
        .filter_map(|op| match (&op.asked, &op.told) {
            (Asked::Submit(message), Told::Taken(taken)) => Some((op, *message, taken)),
            _ => None,
        })
}

/// Messages of which it is known that they were taken, with one of their answers.
fn effective(history: &History) -> Vec<(&Message, &Taken)> {
    let mut seen = vec![None; history.messages.len()];
    for (_, message, answer) in taken(history) {
        seen[message].get_or_insert(answer);
    }
    let all = history.messages.iter().zip(seen);
    all.filter_map(|(message, answer)| Some((message, answer?)))
        .collect()
}

/// Payments that were taken back in time.
fn cancelled(history: &History) -> BTreeSet<&str> {
    effective(history)
        .into_iter()
        .filter(|(_, answer)| answer.cancelled)
        .filter_map(|(message, _)| match &message.content {
            Content::Cancel { payment, .. } => Some(payment.id.as_str()),
            _ => None,
        })
        .collect()
}

#[test]
fn a_healthy_history_passes() {
    let (history, ending) = sample::healthy();
    assert_eq!(all(&history, &ending), Vec::<String>::new());
}

#[test]
fn an_unexpected_answer_is_found() {
    let (mut history, ending) = sample::healthy();
    history.ops[0].told = Told::Unexpected("HTTP 500".to_owned());
    assert_eq!(nothing_unexpected(&history, &ending).len(), 1);
}
