//! I4: a participant's payments keep their order, and its output has no holes.

use std::collections::BTreeMap;

use super::{effective, taken};
use crate::ending::Ending;
use crate::record::History;
use crate::world::Bank;

/// Numbers follow real time; answers and forwarded payments follow numbers; output is numbered without a hole.
pub(super) fn holds(history: &History, ending: &Ending) -> Vec<String> {
    let mut faults = real_time(history);
    let effective = effective(history);
    let mut answers: BTreeMap<Bank, Vec<(u64, u64)>> = BTreeMap::new();
    // A payment's place among its sender's: message, position; and what must be in order with it.
    let mut places = BTreeMap::new();
    for (message, answer) in &effective {
        let numbers = (answer.message_no, answer.answer_no);
        answers.entry(message.sender).or_default().push(numbers);
        for (at, payment) in message.payments().iter().enumerate() {
            let class = (message.sender, message.is_urgent(), payment.currency);
            places.insert(payment.id.as_str(), (class, (answer.message_no, at)));
        }
    }
    for (bank, mut numbers) in answers {
        numbers.sort_unstable();
        if !numbers.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1) {
            faults.push(format!(
                "I4: answers to {bank:?} are not in the order of its messages"
            ));
        }
    }
    for view in &ending.views {
        for (bank, stream) in &view.streams {
            let whole = stream
                .iter()
                .zip(1..)
                .all(|(receipt, number)| receipt.number == number);
            if !whole {
                faults.push(format!(
                    "I4: {}: holes in the output of {bank:?}",
                    view.node
                ));
            }
            let mut last = BTreeMap::new();
            let documents = stream.iter().flat_map(|receipt| &receipt.documents);
            for id in documents.flat_map(|document| &document.forwards) {
                let Some(&(class, place)) = places.get(id.as_str()) else {
                    continue;
                };
                let before = last.insert(class, place);
                if before.is_some_and(|before| before > place) {
                    faults.push(format!("I4: {}: {id} reached {bank:?} too late", view.node));
                }
            }
        }
    }
    faults
}

/// What was sent after an acknowledgement has a higher number than what was acknowledged.
fn real_time(history: &History) -> Vec<String> {
    let mut sent = vec![u64::MAX; history.messages.len()];
    for op in &history.ops {
        if let crate::record::Asked::Submit(message) = op.asked {
            sent[message] = sent[message].min(op.from_ns);
        }
    }
    let mut known = BTreeMap::new();
    for (op, message, answer) in taken(history) {
        let first = known
            .entry(message)
            .or_insert((op.to_ns, answer.message_no));
        first.0 = first.0.min(op.to_ns);
    }
    // By sender: what begins, and what is acknowledged, in the order of time.
    let mut events: BTreeMap<Bank, Vec<(u64, bool, u64)>> = BTreeMap::new();
    for (message, (acknowledged_ns, number)) in known {
        let events = events.entry(history.messages[message].sender).or_default();
        events.push((sent[message], true, number));
        events.push((acknowledged_ns, false, number));
    }
    let mut faults = Vec::new();
    for (bank, mut events) in events {
        events.sort_unstable();
        let mut highest = None;
        for (_, begins, number) in events {
            if !begins {
                highest = highest.max(Some(number));
            } else if Some(number) < highest {
                faults.push(format!(
                    "I4: message {number} of {bank:?} was sent after {highest:?} was acknowledged"
                ));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample::healthy;
    use crate::record::Told;
    use crate::world::Role;

    #[test]
    fn a_number_against_real_time_is_found() {
        let (mut history, _) = healthy();
        for op in &mut history.ops {
            if let Told::Taken(answer) = &mut op.told {
                answer.message_no = 9 - answer.message_no;
            }
        }
        assert!(!real_time(&history).is_empty());
    }

    #[test]
    fn answers_out_of_order_are_found() {
        let (mut history, ending) = healthy();
        for op in &mut history.ops {
            if let Told::Taken(answer) = &mut op.told {
                answer.answer_no = 9 - answer.answer_no;
            }
        }
        let faults = holds(&history, &ending);
        assert!(faults.iter().any(|fault| fault.contains("answers to")));
    }

    #[test]
    fn a_hole_and_a_payment_out_of_order_are_found() {
        let (history, mut ending) = healthy();
        let stream = ending.views[0]
            .streams
            .get_mut(&Bank::new(Role::Partner, 0));
        stream.expect("it has one").remove(0);
        assert_eq!(holds(&history, &ending).len(), 1);

        let (history, mut ending) = healthy();
        let stream = ending.views[0]
            .streams
            .get_mut(&Bank::new(Role::Partner, 0));
        let stream = stream.expect("it has one");
        let (first, second) = (stream[0].documents.clone(), stream[1].documents.clone());
        (stream[0].documents, stream[1].documents) = (second, first);
        assert_eq!(holds(&history, &ending).len(), 1);
    }
}
