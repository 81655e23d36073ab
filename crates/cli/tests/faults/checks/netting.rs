//! I6: a cycle happens to all or to none.

use std::collections::BTreeMap;

use super::{cancelled, effective};
use crate::ending::Ending;
use crate::record::History;
use crate::world::Bank;

/// Every node tells the same cycles; each sums to nothing and takes each from what it had to what it has; together they
/// paid exactly what was handed in for netting.
pub(super) fn is_atomic(history: &History, ending: &Ending) -> Vec<String> {
    let mut faults = Vec::new();
    let Some(first) = ending.views.first() else {
        return faults;
    };
    for view in &ending.views {
        if view.cycles != first.cycles {
            faults.push(format!(
                "I6: {} and {} tell different cycles",
                view.node, first.node
            ));
        }
    }
    let mut paid: BTreeMap<(Bank, &str), i128> = BTreeMap::new();
    for cycle in &first.cycles {
        let mut sums: BTreeMap<&str, i128> = BTreeMap::new();
        for net in &cycle.results {
            *sums.entry(net.currency.as_str()).or_default() += net.received - net.paid;
            *paid.entry((net.bank, net.currency.as_str())).or_default() += net.paid;
            if net.opening - net.paid + net.received != net.closing {
                faults.push(format!("I6: cycle {}: {net:?}", cycle.number));
            }
        }
        for (currency, sum) in sums {
            if sum != 0 {
                faults.push(format!("I6: cycle {} makes {sum} {currency}", cycle.number));
            }
        }
    }
    let cancelled = cancelled(history);
    let mut expected: BTreeMap<(Bank, &str), i128> = BTreeMap::new();
    for (message, _) in effective(history) {
        let netted = message.payments().iter();
        for payment in netted.filter(|payment| !cancelled.contains(payment.id.as_str())) {
            if !message.is_urgent() {
                *expected
                    .entry((message.sender, payment.currency))
                    .or_default() += i128::from(payment.minor);
            }
        }
    }
    paid.retain(|_, sum| *sum != 0);
    if paid != expected {
        faults.push(format!(
            "I6: cycles paid {paid:?}, handed in were {expected:?}"
        ));
    }
    faults
}

#[test]
fn half_a_cycle_is_found() {
    use super::sample::healthy;
    let (history, mut ending) = healthy();
    for view in &mut ending.views {
        view.cycles[0].results.remove(0);
    }
    // It makes money, and pays less than was handed in.
    assert_eq!(is_atomic(&history, &ending).len(), 2);

    let (history, mut ending) = healthy();
    ending.views[1].cycles.clear();
    assert_eq!(is_atomic(&history, &ending).len(), 1);

    let (history, mut ending) = healthy();
    for view in &mut ending.views {
        view.cycles[0].results[0].closing += 1;
    }
    assert_eq!(is_atomic(&history, &ending).len(), 1);
}
