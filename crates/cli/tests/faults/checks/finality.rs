//! I8: what is final stays as it is.

use std::collections::BTreeMap;

use super::taken;
use crate::ending::Ending;
use crate::record::{Asked, History, Told};

/// An urgent payment that was acknowledged as settled is settled at that place for ever after.
pub(super) fn holds(history: &History, _: &Ending) -> Vec<String> {
    let mut settled = BTreeMap::new();
    for (op, message, answer) in taken(history) {
        if let (Some(at), [payment]) = (answer.settled, history.messages[message].payments()) {
            let first = settled.entry(payment.id.as_str()).or_insert((op.to_ns, at));
            first.0 = first.0.min(op.to_ns);
        }
    }
    let mut faults = Vec::new();
    for op in &history.ops {
        let (Asked::Payment { id }, Told::Payment(status, at)) = (&op.asked, &op.told) else {
            continue;
        };
        let Some(&(known_ns, place)) = settled.get(id.as_str()) else {
            continue;
        };
        let later = op.from_ns > known_ns;
        let other = at.is_some_and(|at| at != place);
        if other || (later && (status != "settled" || at.is_none())) {
            faults.push(format!("I8: it settled at {place:?}: {op:?}"));
        }
    }
    faults
}

#[test]
fn an_undone_settlement_is_found() {
    use super::sample::healthy;
    use crate::record::Position;
    let other = Position { shard: 0, index: 6 };
    for told in [
        Told::Payment("queued".to_owned(), None),
        Told::Payment("none".to_owned(), None),
        Told::Payment("settled".to_owned(), Some(other)),
    ] {
        let (mut history, ending) = healthy();
        let read = history
            .ops
            .iter_mut()
            .find(|op| matches!(op.asked, Asked::Payment { .. }));
        read.expect("a payment is read").told = told;
        assert_eq!(holds(&history, &ending).len(), 1);
    }
}
