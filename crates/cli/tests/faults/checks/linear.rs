//! I5: urgent settlements and reads of balances are linearizable.
//!
//! Only a teller changes its account, one payment after another, so its balance says how many payments were made: a
//! register with one writer, for which real time can be checked exactly. And positions in a shard's log that answers carry
//! may not go back in real time.

use std::collections::BTreeMap;

use super::{effective, taken};
use crate::ending::Ending;
use crate::record::{Asked, History, Op, Told};
use crate::world::{Bank, OPENING_MINOR, Role, SHARDS};

/// Both checks.
pub(super) fn reads_are(history: &History, _: &Ending) -> Vec<String> {
    let mut faults = positions(history);
    for home in 0..SHARDS {
        faults.extend(register(history, Bank::new(Role::Teller, home)));
    }
    faults
}

/// Reads of one bank's euros: the request, whether it may be old, the balance.
fn reads(history: &History, bank: Bank) -> impl Iterator<Item = (&Op, bool, i128)> {
    history.ops.iter().filter_map(move |op| {
        let (Asked::Accounts { stale, .. }, Told::Accounts(accounts)) = (&op.asked, &op.told)
        else {
            return None;
        };
        let account = accounts
            .iter()
            .find(|account| account.bank == bank && account.currency == "EUR")?;
        Some((op, *stale, account.minor))
    })
}

fn register(history: &History, bank: Bank) -> Vec<String> {
    let mut payments: Vec<_> = effective(history)
        .into_iter()
        .filter(|(message, _)| message.sender == bank)
        .map(|(message, answer)| {
            let minor: u64 = message.payments().iter().map(|payment| payment.minor).sum();
            (answer.message_no, minor, message.id.as_str())
        })
        .collect();
    payments.sort_unstable();
    let mut made_at = BTreeMap::from([(OPENING_MINOR, 0)]);
    let mut place = BTreeMap::new();
    let mut balance = OPENING_MINOR;
    for (made, (_, minor, id)) in (1..).zip(&payments) {
        balance -= i128::from(*minor);
        made_at.insert(balance, made);
        place.insert(*id, made);
    }
    // When the n-th payment was first sent and first acknowledged.
    let mut sent = vec![u64::MAX; payments.len() + 1];
    let mut known = vec![u64::MAX; payments.len() + 1];
    for op in &history.ops {
        let Asked::Submit(message) = op.asked else {
            continue;
        };
        if let Some(&at) = place.get(history.messages[message].id.as_str()) {
            let at: usize = at;
            sent[at] = sent[at].min(op.from_ns);
            if matches!(op.told, Told::Taken(_)) {
                known[at] = known[at].min(op.to_ns);
            }
        }
    }
    let mut faults = Vec::new();
    let mut fresh: Vec<(u64, u64, usize)> = Vec::new();
    for (op, stale, minor) in reads(history, bank) {
        let Some(&made) = made_at.get(&minor) else {
            faults.push(format!(
                "I5: {bank:?} never had {minor}: {} asked {} at {}",
                op.client, op.node, op.from_ns
            ));
            continue;
        };
        if sent[made] > op.to_ns && made > 0 {
            faults.push(format!(
                "I5: {made} payments of {bank:?} before they were sent: {op:?}"
            ));
        }
        if stale {
            continue;
        }
        let must = (1..=payments.len())
            .rev()
            .find(|&at| known[at] < op.from_ns)
            .unwrap_or(0);
        if made < must {
            faults.push(format!(
                "I5: {made} payments of {bank:?} are seen, {must} were acknowledged before: {op:?}"
            ));
        }
        fresh.push((op.from_ns, op.to_ns, made));
    }
    faults.extend(not_back(&format!("payments of {bank:?}"), &fresh, &fresh));
    faults
}

/// What begins after something has ended may not be behind it.
fn not_back(what: &str, before: &[(u64, u64, usize)], reads: &[(u64, u64, usize)]) -> Vec<String> {
    let mut ended: Vec<(u64, usize)> = before.iter().map(|&(_, to, at)| (to, at)).collect();
    ended.sort_unstable();
    let mut reads = reads.to_vec();
    reads.sort_unstable();
    let (mut next, mut highest) = (0, 0);
    let mut faults = Vec::new();
    for (from, to, at) in reads {
        while let Some(&(_, past)) = ended.get(next).filter(|(end, _)| *end < from) {
            highest = highest.max(past);
            next += 1;
        }
        if at < highest {
            faults.push(format!(
                "I5: {what}: {at} from {from} to {to}, after {highest}"
            ));
        }
    }
    faults
}

fn positions(history: &History) -> Vec<String> {
    let mut before: BTreeMap<u16, Vec<(u64, u64, usize)>> = BTreeMap::new();
    let mut fresh = before.clone();
    let index = |index: u64| usize::try_from(index).expect("64 bits");
    for (op, _, answer) in taken(history) {
        if let Some(at) = answer.settled {
            let event = (op.from_ns, op.to_ns, index(at.index));
            before.entry(at.shard).or_default().push(event);
        }
    }
    for op in &history.ops {
        let (Asked::Accounts { stale: false, .. }, Told::Accounts(accounts)) =
            (&op.asked, &op.told)
        else {
            continue;
        };
        for account in accounts {
            let event = (op.from_ns, op.to_ns, index(account.at.index));
            before.entry(account.at.shard).or_default().push(event);
            fresh.entry(account.at.shard).or_default().push(event);
        }
    }
    let mut faults = Vec::new();
    for (shard, reads) in fresh {
        let events = before.get(&shard).map_or(&[][..], Vec::as_slice);
        faults.extend(not_back(&format!("log of shard {shard}"), events, &reads));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::sample::healthy;

    fn with_balance(change: i128, stale: bool) -> Vec<String> {
        let (mut history, _) = healthy();
        let (asked, accounts) = history
            .ops
            .iter_mut()
            .find_map(|op| match (&mut op.asked, &mut op.told) {
                (asked @ Asked::Accounts { bank: Some(_), .. }, Told::Accounts(accounts)) => {
                    Some((asked, accounts))
                }
                _ => None,
            })
            .expect("a balance is read");
        if let Asked::Accounts { stale: old, .. } = asked {
            *old = stale;
        }
        accounts[0].minor += change;
        register(&history, Bank::new(Role::Teller, 0))
    }

    #[test]
    fn a_balance_that_never_was_or_is_not_yet_or_no_more_is_found() {
        // Read between the payments of 100 and of 50.
        assert_eq!(with_balance(0, false).len(), 0);
        assert_eq!(with_balance(1, true).len(), 1);
        assert_eq!(with_balance(-50, true).len(), 1);
        assert_eq!(with_balance(100, false).len(), 1);
        assert_eq!(with_balance(100, true).len(), 0);
    }

    #[test]
    fn a_read_behind_an_acknowledgement_is_found() {
        let (mut history, _) = healthy();
        for op in &mut history.ops {
            if let Told::Accounts(accounts) = &mut op.told {
                accounts[0].at.index = 1;
            }
        }
        assert!(!positions(&history).is_empty());
    }

    #[test]
    fn a_read_behind_an_earlier_read_is_found() {
        let reads = [(1, 2, 7), (3, 4, 6)];
        assert_eq!(not_back("it", &reads, &reads).len(), 1);
        let overlapping = [(1, 3, 7), (2, 4, 6)];
        assert_eq!(not_back("it", &overlapping, &overlapping).len(), 0);
    }
}
