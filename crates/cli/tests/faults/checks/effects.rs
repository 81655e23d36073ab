//! I2, I3, I16: what was acknowledged is done, once, on every node; what was refused is not.

use std::collections::BTreeMap;

use super::{cancelled, effective, taken};
use crate::ending::{Ending, View};
use crate::messages::Content;
use crate::record::{Asked, History, Told};
use crate::world::{Bank, CURRENCIES, OPENING_MINOR};

/// How often each payment was forwarded, to whom.
fn forwarded(view: &View) -> BTreeMap<&str, Vec<Bank>> {
    let mut found: BTreeMap<&str, Vec<Bank>> = BTreeMap::new();
    for (bank, stream) in &view.streams {
        for document in stream.iter().flat_map(|receipt| &receipt.documents) {
            for id in &document.forwards {
                found.entry(id).or_default().push(*bank);
            }
        }
    }
    found
}

/// I2: every node has every acknowledged message's answer under its number, every payment at its receiver, every balance.
pub(super) fn nothing_is_lost(history: &History, ending: &Ending) -> Vec<String> {
    let mut faults = Vec::new();
    let cancelled = cancelled(history);
    let effective = effective(history);
    let mut balances: BTreeMap<(Bank, &str), i128> = Bank::all()
        .flat_map(|bank| CURRENCIES.map(|(currency, _)| ((bank, currency), OPENING_MINOR)))
        .collect();
    for (message, _) in &effective {
        for payment in message.payments() {
            if !cancelled.contains(payment.id.as_str()) {
                let minor = i128::from(payment.minor);
                *balances
                    .entry((message.sender, payment.currency))
                    .or_default() -= minor;
                *balances.entry((payment.to, payment.currency)).or_default() += minor;
            }
        }
    }
    for view in &ending.views {
        let node = &view.node;
        let forwarded = forwarded(view);
        for (message, answer) in &effective {
            let receipt = view.streams.get(&message.sender).and_then(|stream| {
                let number = answer.answer_no;
                stream.iter().find(|receipt| receipt.number == number)
            });
            // A cancellation's answer names the message that it was about.
            let about = match &message.content {
                Content::Cancel { package, .. } => package,
                _ => &message.id,
            };
            let answers = receipt.is_some_and(|receipt| {
                let mut documents = receipt.documents.iter();
                documents.any(|document| document.answers.as_ref() == Some(about))
            });
            if !answers {
                faults.push(format!(
                    "I2: {node} has no answer to {} under number {}",
                    message.id, answer.answer_no
                ));
            }
            for payment in message.payments() {
                let there = forwarded
                    .get(payment.id.as_str())
                    .is_some_and(|banks| banks.contains(&payment.to));
                if there == cancelled.contains(payment.id.as_str()) {
                    faults.push(format!(
                        "I2: {node}: payment {} of {} is cancelled: {}, forwarded: {there}",
                        payment.id, message.id, !there
                    ));
                }
            }
        }
        for account in &view.accounts {
            let expected = balances.get(&(account.bank, account.currency.as_str()));
            if expected != Some(&account.minor) {
                faults.push(format!(
                    "I2: {node}: {:?} has {} {}, must have {expected:?}",
                    account.bank, account.minor, account.currency
                ));
            }
        }
    }
    faults
}

/// I3: one effect per message, and equal answers however often and wherever it was sent.
pub(super) fn nothing_is_done_twice(history: &History, ending: &Ending) -> Vec<String> {
    let mut faults = Vec::new();
    let mut first: BTreeMap<usize, _> = BTreeMap::new();
    let mut fresh: BTreeMap<usize, u32> = BTreeMap::new();
    for (op, message, answer) in taken(history) {
        *fresh.entry(message).or_default() += u32::from(!answer.repeat);
        // A cancellation may come too late; everything else here is sound and new.
        let sound = !matches!(history.messages[message].content, Content::Cancel { .. });
        if sound && answer.refused > 0 {
            faults.push(format!("I3: refused as a duplicate or worse: {op:?}"));
        }
        let known = first.entry(message).or_insert(answer);
        let same = (known.message_no, known.answer_no, known.hash)
            == (answer.message_no, answer.answer_no, answer.hash);
        if !same {
            faults.push(format!("I3: another answer than {known:?}: {op:?}"));
        }
    }
    for (message, count) in fresh {
        if count > 1 {
            let id = &history.messages[message].id;
            faults.push(format!("I3: {id} was taken {count} times"));
        }
    }
    for view in &ending.views {
        for (id, banks) in forwarded(view) {
            if banks.len() != 1 {
                faults.push(format!(
                    "I3: {}: {id} was forwarded to {banks:?}",
                    view.node
                ));
            }
        }
    }
    faults
}

/// I16: a message of which every answer was that nothing was done has no effect.
pub(super) fn what_was_refused_is_not_done(history: &History, ending: &Ending) -> Vec<String> {
    let mut maybe = vec![false; history.messages.len()];
    for op in &history.ops {
        if let Asked::Submit(message) = op.asked {
            maybe[message] |= !matches!(op.told, Told::Refused(_));
        }
    }
    let mut faults = Vec::new();
    for view in &ending.views {
        let forwarded = forwarded(view);
        for (message, maybe) in history.messages.iter().zip(&maybe) {
            let done = message
                .payments()
                .iter()
                .any(|payment| forwarded.contains_key(payment.id.as_str()));
            if done && !maybe {
                faults.push(format!(
                    "I16: {}: {} was refused and is done",
                    view.node, message.id
                ));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample::{forward, healthy};
    use crate::record::Taken;
    use crate::world::Role;

    #[test]
    fn a_lost_answer_is_found() {
        let (history, mut ending) = healthy();
        let teller = Bank::new(Role::Teller, 0);
        ending.views[1]
            .streams
            .get_mut(&teller)
            .expect("it has one")
            .pop();
        assert_eq!(nothing_is_lost(&history, &ending).len(), 1);
    }

    #[test]
    fn a_lost_payment_is_found_by_its_document_and_by_the_balance() {
        let (history, mut ending) = healthy();
        let partner = Bank::new(Role::Partner, 0);
        ending.views[0]
            .streams
            .get_mut(&partner)
            .expect("it has one")
            .pop();
        assert_eq!(nothing_is_lost(&history, &ending).len(), 1);
        let (history, mut ending) = healthy();
        ending.views[0].accounts[0].minor += 1;
        assert_eq!(nothing_is_lost(&history, &ending).len(), 1);
    }

    #[test]
    fn a_cancelled_payment_that_was_made_is_found() {
        let (history, mut ending) = healthy();
        forward(&mut ending.views[0], Bank::new(Role::Crosser, 1), "Q3.1");
        assert_eq!(nothing_is_lost(&history, &ending).len(), 1);
    }

    #[test]
    fn a_second_effect_is_found() {
        let (history, mut ending) = healthy();
        forward(&mut ending.views[0], Bank::new(Role::Partner, 0), "P1");
        assert_eq!(nothing_is_done_twice(&history, &ending).len(), 1);
    }

    #[test]
    fn another_answer_to_the_same_message_is_found() {
        let change: [fn(&mut Taken); 4] = [
            |answer| answer.message_no += 1,
            |answer| answer.hash += 1,
            |answer| answer.repeat = false,
            |answer| answer.refused = 1,
        ];
        for change in change {
            let (mut history, ending) = healthy();
            let repeated = history.ops.iter_mut().find_map(|op| match &mut op.told {
                Told::Taken(answer) if answer.repeat => Some(answer),
                _ => None,
            });
            change(repeated.expect("one is repeated"));
            assert_eq!(nothing_is_done_twice(&history, &ending).len(), 1);
        }
    }

    #[test]
    fn a_refused_payment_that_was_made_is_found() {
        let (history, mut ending) = healthy();
        forward(&mut ending.views[0], Bank::new(Role::Partner, 0), "P5");
        assert_eq!(what_was_refused_is_not_done(&history, &ending).len(), 1);
    }
}
