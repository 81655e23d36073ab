//! The full record against what nodes hold in the end: nothing lost, nothing doubled, order kept, sums constant.
//!
//! What was handed in is drawn again by number, so nothing that a node said takes part in what is expected. The invariants
//! are those of the fault campaign (`docs/reliability.md`: I1 to I4), for a load too large to keep its messages.

use std::collections::BTreeMap;

use super::report::Checks;
use crate::cluster::{Load, drawn};

/// As many faults are told in words.
const EXAMPLES_MAX: usize = 20;

/// A payment that was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Expected {
    uetr: u128,
    sender: u16,
    receiver: u16,
    urgent: bool,
    /// Its place among its sender's.
    order: u64,
}

/// What must be there.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// By UETR, once [`Record::close`] is called.
    payments: Vec<Expected>,
    /// What payments make of balances.
    balances_minor: Vec<i64>,
}

/// What one node told one participant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Output {
    /// Payments that it received, in the order of its output.
    pub(super) received: Vec<u128>,
    /// Numbers that did not follow on the one before.
    pub(super) holes: u64,
    /// Its balance.
    pub(super) balance_minor: i64,
}

impl Record {
    /// For so many participants who had nothing before.
    pub(super) fn new(participants: usize) -> Self {
        Self {
            payments: Vec::new(),
            balances_minor: vec![0; participants],
        }
    }

    /// Notes what was acknowledged: of each participant's messages the first so many.
    pub(super) fn note(&mut self, load: &Load, urgent: bool, acknowledged: &[usize]) {
        let participants = self.balances_minor.len();
        let len = u32::try_from(load.len).unwrap_or(u32::MAX);
        for (sender, (numbers, &count)) in load.numbers.iter().zip(acknowledged).enumerate() {
            let mut order = 0;
            for &number in numbers.iter().take(count) {
                for payment in drawn(number, sender, participants, len) {
                    order += 1;
                    self.payments.push(Expected {
                        uetr: payment.uetr,
                        sender: u16::try_from(sender).unwrap_or(u16::MAX),
                        receiver: u16::try_from(payment.receiver).unwrap_or(u16::MAX),
                        urgent,
                        order,
                    });
                    let minor = i64::try_from(payment.amount_minor).unwrap_or(i64::MAX);
                    for (place, change) in [(sender, -minor), (payment.receiver, minor)] {
                        if let Some(balance) = self.balances_minor.get_mut(place) {
                            *balance += change;
                        }
                    }
                }
            }
        }
    }

    /// Everything is noted.
    pub(super) fn close(&mut self) {
        self.payments.sort_unstable_by_key(|payment| payment.uetr);
    }

    /// Payments that were acknowledged.
    pub(super) fn len(&self) -> u64 {
        self.payments.len() as u64
    }

    /// Holds one node's output, one for each participant in order, against the record.
    pub(super) fn hold(&self, node: &str, outputs: &[Output], checks: &mut Checks) {
        let mut fault = Vec::new();
        let mut seen = vec![0_u8; self.payments.len()];
        let mut delivered = 0;
        for (receiver, output) in outputs.iter().enumerate() {
            let mut last: BTreeMap<(u16, bool), u64> = BTreeMap::new();
            for &uetr in &output.received {
                let found = self
                    .payments
                    .binary_search_by_key(&uetr, |payment| payment.uetr)
                    .ok();
                let expected = found.and_then(|at| Some((at, self.payments.get(at)?)));
                let Some((at, expected)) =
                    expected.filter(|(_, expected)| usize::from(expected.receiver) == receiver)
                else {
                    checks.strange += 1;
                    fault.push(format!("{node}: participant {receiver} got {uetr:032x}"));
                    continue;
                };
                delivered += 1;
                if let Some(seen) = seen.get_mut(at) {
                    checks.doubled += u64::from(*seen == 1);
                    if *seen == 1 {
                        fault.push(format!("{node}: {uetr:032x} was delivered again"));
                    }
                    *seen = seen.saturating_add(1);
                }
                let before = last.insert((expected.sender, expected.urgent), expected.order);
                if before.is_some_and(|before| before >= expected.order) {
                    checks.out_of_order += 1;
                    fault.push(format!(
                        "{node}: {uetr:032x} reached participant {receiver} too late"
                    ));
                }
            }
            checks.out_of_order += output.holes;
            if output.holes > 0 {
                fault.push(format!("{node}: holes in participant {receiver}'s output"));
            }
            if self.balances_minor.get(receiver) != Some(&output.balance_minor) {
                checks.wrong_balances += 1;
                fault.push(format!(
                    "{node}: participant {receiver} has {}, must have {:?}",
                    output.balance_minor,
                    self.balances_minor.get(receiver)
                ));
            }
        }
        for (payment, seen) in self.payments.iter().zip(&seen) {
            if *seen == 0 {
                checks.lost += 1;
                fault.push(format!("{node}: {:032x} is lost", payment.uetr));
            }
        }
        checks.acknowledged = self.len();
        checks.delivered = match checks.nodes_read.is_empty() {
            true => delivered,
            false => checks.delivered.min(delivered),
        };
        checks.nodes_read.push(node.to_owned());
        let sum = outputs.iter().map(|output| output.balance_minor).sum();
        checks.sums_minor.push(sum);
        let room = EXAMPLES_MAX.saturating_sub(checks.examples.len());
        checks.examples.extend(fault.into_iter().take(room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTICIPANTS: usize = 3;

    /// Two messages of two payments from each of three, and what each received.
    fn healthy() -> (Record, Vec<Output>) {
        let load = Load {
            messages: Vec::new(),
            numbers: vec![vec![1, 2], vec![3, 4], vec![5, 6]],
            len: 2,
        };
        let mut record = Record::new(PARTICIPANTS);
        record.note(&load, false, &[2, 2, 2]);
        let mut outputs = vec![Output::default(); PARTICIPANTS];
        for payment in &record.payments {
            outputs[usize::from(payment.receiver)]
                .received
                .push(payment.uetr);
        }
        for (output, balance) in outputs.iter_mut().zip(&record.balances_minor) {
            output.balance_minor = *balance;
        }
        record.close();
        (record, outputs)
    }

    fn checks(change: impl FnOnce(&mut Vec<Output>)) -> Checks {
        let (record, mut outputs) = healthy();
        change(&mut outputs);
        let mut checks = Checks::default();
        record.hold("A1", &outputs, &mut checks);
        assert_eq!(checks.hold(), checks.examples.is_empty(), "{checks:?}");
        checks
    }

    fn busiest(outputs: &mut [Output]) -> &mut Output {
        let most = outputs
            .iter_mut()
            .max_by_key(|output| output.received.len());
        most.unwrap()
    }

    #[test]
    fn what_is_as_it_was_handed_in_holds() {
        let checks = checks(|_| ());
        assert!(checks.hold(), "{checks:?}");
        assert_eq!((checks.acknowledged, checks.delivered), (12, 12));
        assert_eq!(checks.sums_minor, [0]);
    }

    #[test]
    fn each_fault_is_found() {
        let lost = checks(|outputs| {
            busiest(outputs).received.pop();
        });
        assert_eq!(lost.lost, 1);

        let doubled = checks(|outputs| {
            let output = busiest(outputs);
            output.received.push(*output.received.last().unwrap());
        });
        // A second time is too late as well.
        assert_eq!((doubled.doubled, doubled.out_of_order), (1, 1));

        let strange = checks(|outputs| busiest(outputs).received.push(7));
        assert_eq!(strange.strange, 1);

        let late = checks(|outputs| busiest(outputs).received.reverse());
        assert!(late.out_of_order > 0);

        let hole = checks(|outputs| busiest(outputs).holes = 1);
        assert_eq!(hole.out_of_order, 1);
    }

    #[test]
    fn money_that_was_made_is_found() {
        let checks = checks(|outputs| outputs[1].balance_minor += 1);
        assert_eq!((checks.wrong_balances, checks.sums_minor[0]), (1, 1));
        assert!(!checks.hold());
    }

    #[test]
    fn what_was_not_acknowledged_is_not_expected() {
        let load = Load {
            messages: Vec::new(),
            numbers: vec![vec![1, 2]],
            len: 2,
        };
        let mut record = Record::new(PARTICIPANTS);
        record.note(&load, true, &[1]);
        assert_eq!(record.len(), 2);
    }
}
