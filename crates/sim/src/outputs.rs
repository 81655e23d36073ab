//! What participants were told in their numbered output, held against what happened: order, receipts and cycles.

use std::collections::{BTreeMap, BTreeSet};

use clearspan_ledger::day::PaymentStatus;
use clearspan_ledger::stream::{GrossEvent, Item, ItemBody};
use clearspan_ledger::{CycleNumber, Ledger, ParticipantId, PaymentRef, ShardId};

use crate::history::Read;
use crate::reach::reach;

fn shards(ledgers: &[Ledger]) -> impl Iterator<Item = (ShardId, &Ledger)> {
    (0..).map(ShardId::new).zip(ledgers)
}

/// Every participant with the shard that it is at home in, and its output.
fn outputs(
    ledgers: &[Ledger],
) -> impl Iterator<Item = ((ShardId, &Ledger), ParticipantId, Vec<&Item>)> {
    shards(ledgers).flat_map(|(shard, ledger)| {
        let participants = ledger.directory().iter().map(|(id, _)| id);
        participants.filter_map(move |id| {
            let stream = ledger.stream(id)?;
            Some(((shard, ledger), id, stream.iter().collect()))
        })
    })
}

/// I4: payments of one account and class settle in the order of their arrival (rule R9) and reach each receiver in the order
/// in which they settled, none missing; a numbering sender's messages are taken in the order of their numbers.
pub(crate) fn order(ledgers: &[Ledger]) -> Result<(), String> {
    let mut sent: BTreeMap<(ParticipantId, ParticipantId), Vec<PaymentRef>> = BTreeMap::new();
    let mut came: BTreeMap<(ParticipantId, ParticipantId), Vec<PaymentRef>> = BTreeMap::new();
    for ((shard, ledger), participant, items) in outputs(ledgers) {
        let mut numbered = (None, 0);
        let mut last = BTreeMap::new();
        for item in items {
            match &item.body {
                ItemBody::Gross {
                    payment,
                    event: GrossEvent::Settled,
                } => {
                    let Some(view) = ledger.payment(*payment) else {
                        return Err(format!("I4: payment {payment} settled and is not known"));
                    };
                    let of = last.entry((view.currency, view.class));
                    let before = of.or_insert(view.payment);
                    if view.payment < *before {
                        return Err(format!(
                            "I4: payment {} settled behind {before}, which came later",
                            view.payment
                        ));
                    }
                    *before = view.payment;
                    let payment = PaymentRef {
                        shard,
                        payment: *payment,
                    };
                    let of = sent.entry((view.sender, view.receiver)).or_default();
                    of.push(payment);
                }
                ItemBody::GrossCredit(advice) => {
                    let of = came.entry((advice.sender, participant)).or_default();
                    of.push(advice.payment);
                }
                ItemBody::Reception { message } => {
                    let taken = ledger
                        .message(*message)
                        .filter(|record| record.refused.is_none())
                        .and_then(|record| record.sequence);
                    let Some(sequence) = taken else { continue };
                    // Each business day counts from one again.
                    let place = (ledger.message_date(*message), sequence);
                    if place <= numbered {
                        return Err(format!(
                            "I4: a participant's message {place:?} was taken behind its message {numbered:?}"
                        ));
                    }
                    numbered = place;
                }
                _ => {}
            }
        }
    }
    if sent.values().any(|of| of.len() > 1) {
        reach("a receiver was paid twice by one sender");
    }
    if sent != came {
        let differs = sent
            .keys()
            .chain(came.keys())
            .find(|k| sent.get(k) != came.get(k));
        return Err(format!(
            "I4: from and to {differs:?} settled {:?}, credited were {:?}",
            differs.and_then(|key| sent.get(key)),
            differs.and_then(|key| came.get(key))
        ));
    }
    Ok(())
}

/// I7: numbers have no holes, each message has one reception, each gross payment one final word, and what a read showed
/// once is what stands under its number for good.
pub(crate) fn receipts(ledgers: &[Ledger], reads: &[Read]) -> Result<(), String> {
    for ((_, ledger), participant, items) in outputs(ledgers) {
        let mut next = items.first().map_or(1, |item| item.number);
        let mut received = BTreeSet::new();
        let mut finals = BTreeSet::new();
        let mut place = (0, 0);
        for item in items {
            if item.number != next {
                return Err(format!(
                    "I7: output {next} of participant {participant} is missing: {} follows",
                    item.number
                ));
            }
            let here = (item.index.get(), item.time.ns());
            if here.0 < place.0 || here.1 < place.1 {
                return Err(format!(
                    "I7: output {next} of participant {participant} was made before the one before it"
                ));
            }
            place = here;
            next += u64::from(item.pages);
            match &item.body {
                ItemBody::Reception { message } if !received.insert(*message) => {
                    return Err(format!("I7: message {message} has two receptions"));
                }
                ItemBody::Gross {
                    payment,
                    event: GrossEvent::Settled | GrossEvent::Refused { .. } | GrossEvent::Cancelled,
                } if !finals.insert(*payment) => {
                    return Err(format!(
                        "I7: gross payment {payment} has two final receipts"
                    ));
                }
                _ => {}
            }
        }
        let settled = ledger
            .dates()
            .flat_map(|date| ledger.messages(date))
            .flat_map(|(message, _)| ledger.payments_of(message))
            .filter(|view| view.sender == participant && view.class.is_some())
            .filter(|view| view.status == PaymentStatus::Settled);
        for view in settled {
            if !finals.contains(&view.payment) {
                return Err(format!(
                    "I7: gross payment {} settled and its sender was not told",
                    view.payment
                ));
            }
        }
    }
    for read in reads {
        let ledger = &ledgers[read.shard.index()];
        // The read was of the bank's own output, whose first item tells whose it is.
        for item in &read.items {
            let same = ledger.directory().iter().any(|(id, _)| {
                ledger.stream(id).and_then(|stream| stream.get(item.number)) == Some(item)
            });
            if !same {
                return Err(format!(
                    "I7: output {} was read at index {} and is another one in the end",
                    item.number, read.index
                ));
            }
        }
        if read.items.len() > 3 {
            reach("output was read before the end");
        }
    }
    Ok(())
}

/// I6: every cycle's results sum to zero, are those of its payments, and no payment is in two; all shards posted it or none.
pub(crate) fn cycles(ledgers: &[Ledger]) -> Result<(), String> {
    let Some(coordinator) = ledgers.first() else {
        return Ok(());
    };
    let mut netted: BTreeMap<PaymentRef, CycleNumber> = BTreeMap::new();
    for summary in coordinator.cycle_summaries() {
        let cycle = summary.cycle;
        let posted = ledgers
            .iter()
            .filter(|ledger| ledger.cycle(cycle).is_some());
        let posted = posted.count();
        if summary.abandoned {
            if posted > 0 {
                return Err(format!(
                    "I6: cycle {cycle} was given up, and {posted} shards posted it"
                ));
            }
            continue;
        }
        if posted != ledgers.len() {
            return Err(format!(
                "I6: cycle {cycle} is posted in {posted} of {} shards",
                ledgers.len()
            ));
        }
        let mut sums: BTreeMap<_, i128> = BTreeMap::new();
        let mut out: BTreeMap<_, u128> = BTreeMap::new();
        let mut into: BTreeMap<_, u128> = BTreeMap::new();
        for ledger in ledgers {
            for result in ledger.cycle(cycle).into_iter().flat_map(|c| &c.results) {
                let moved = result.closing_minor - result.opening_minor;
                *sums.entry(result.currency).or_default() += moved;
                let key = (result.participant, result.currency);
                *out.entry(key).or_default() += result.out_minor;
                *into.entry(key).or_default() += result.in_minor;
                if moved != signed(result.in_minor) - signed(result.out_minor) {
                    return Err(format!("I6: cycle {cycle}: {result:?} does not add up"));
                }
            }
        }
        for (shard, ledger) in shards(ledgers) {
            for (view, _) in ledger.cycle_set(cycle).filter(|(_, settled)| *settled) {
                let payment = PaymentRef {
                    shard,
                    payment: view.payment,
                };
                if let Some(other) = netted.insert(payment, cycle) {
                    return Err(format!(
                        "I6: {payment:?} settled in cycles {other} and {cycle}"
                    ));
                }
                let minor = u128::from(view.amount.minor());
                take(&mut out, (view.sender, view.currency), minor, cycle)?;
                take(&mut into, (view.receiver, view.currency), minor, cycle)?;
            }
        }
        if let Some((currency, sum)) = sums.iter().find(|(_, sum)| **sum != 0) {
            return Err(format!("I6: cycle {cycle} makes {sum} of {currency}"));
        }
        if out.values().chain(into.values()).any(|rest| *rest != 0) {
            return Err(format!("I6: cycle {cycle} moved more than its payments"));
        }
        if !netted.is_empty() && ledgers.len() > 1 {
            reach("a cycle netted payments of several shards");
        }
    }
    Ok(())
}

fn signed(minor: u128) -> i128 {
    i128::try_from(minor).unwrap_or(i128::MAX)
}

fn take<K: Ord + Copy + std::fmt::Debug>(
    sums: &mut BTreeMap<K, u128>,
    key: K,
    minor: u128,
    cycle: CycleNumber,
) -> Result<(), String> {
    let rest = sums.get(&key).and_then(|sum| sum.checked_sub(minor));
    match rest {
        Some(rest) => {
            sums.insert(key, rest);
            Ok(())
        }
        None => Err(format!(
            "I6: cycle {cycle} moved less for {key:?} than its payments"
        )),
    }
}
