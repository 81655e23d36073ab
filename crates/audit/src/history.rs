//! What the cycles of one business date say about each other's payments: none settles twice, and what was dropped
//! comes first, in its order, in the cycle that takes it up again.

use crate::book::{Book, Listed, PaymentKey};
use crate::certificate::Certificate;
use crate::cycle::AccountName;
use crate::finding::{Finding, Findings};
use std::collections::BTreeMap;

/// The payments of a date's cycles so far.
#[derive(Default)]
pub(crate) struct History {
    cycles: Vec<Cycle>,
    /// What the last cycle dropped, by account, in queue order.
    dropped: BTreeMap<AccountName, Vec<PaymentKey>>,
}

struct Cycle {
    number: u64,
    /// Its settled payments by sender, in ascending order.
    settled: BTreeMap<String, Vec<PaymentKey>>,
}

impl History {
    /// Checks a cycle against those before it and adds it.
    pub(crate) fn check_and_add(
        &mut self,
        certificate: &Certificate,
        book: &Book<'_>,
        findings: &mut Findings,
    ) {
        let names: Vec<&String> = certificate.participants.keys().collect();
        let by_sender = book.listed.chunk_by(|a, b| a.sender == b.sender);
        let listed: BTreeMap<&str, &[Listed]> = by_sender
            .filter_map(|listed| {
                Some((names.get(listed.first()?.sender as usize)?.as_str(), listed))
            })
            .collect();
        self.check_settled(&listed, findings);
        self.check_order(book, &listed, findings);
        self.cycles.push(Cycle {
            number: certificate.cycle,
            settled: settled_keys(&listed),
        });
        self.dropped = dropped_keys(book);
    }

    /// Passes over a cycle that cannot be read: what it dropped is unknown.
    pub(crate) fn skip(&mut self) {
        self.dropped.clear();
    }

    fn check_settled(&self, listed: &BTreeMap<&str, &[Listed]>, findings: &mut Findings) {
        for (&participant, listed) in listed {
            for earlier in &self.cycles {
                // Both are in ascending order: one walk over both.
                let mut before = earlier
                    .settled
                    .get(participant)
                    .map_or(&[][..], Vec::as_slice)
                    .iter()
                    .peekable();
                for payment in *listed {
                    while before.next_if(|&&key| key < payment.key).is_some() {}
                    if before.peek() == Some(&&payment.key) {
                        let (line, participant, cycle) = (
                            u64::from(payment.line),
                            participant.to_owned(),
                            earlier.number,
                        );
                        findings.push(Finding::SettledBefore {
                            line,
                            participant,
                            cycle,
                        });
                    }
                }
            }
        }
    }

    /// A dropped payment may be gone (cancelled, refused), but those that are back stand first and in their old order.
    fn check_order(
        &self,
        book: &Book<'_>,
        listed: &BTreeMap<&str, &[Listed]>,
        findings: &mut Findings,
    ) {
        for account in &book.accounts {
            let (participant, currency) =
                (account.participant.to_owned(), account.currency.to_owned());
            let Some(dropped) = self.dropped.get(&AccountName {
                participant,
                currency,
            }) else {
                continue;
            };
            let listed = listed.get(account.participant).copied().unwrap_or_default();
            let back = dropped.iter().filter_map(|key| {
                let at = listed
                    .binary_search_by_key(key, |payment| payment.key)
                    .ok()?;
                listed.get(at).map(|payment| payment.line)
            });
            let misplaced = back
                .zip(&account.queue)
                .find(|(line, due)| *line != due.line);
            if let Some((_, due)) = misplaced {
                let (participant, currency) =
                    (account.participant.to_owned(), account.currency.to_owned());
                findings.push(Finding::OrderLost {
                    line: u64::from(due.line),
                    participant,
                    currency,
                });
            }
        }
    }
}

fn settled_keys(listed: &BTreeMap<&str, &[Listed]>) -> BTreeMap<String, Vec<PaymentKey>> {
    let keys = |listed: &[Listed]| {
        listed
            .iter()
            .filter(|payment| payment.settled)
            .map(|payment| payment.key)
            .collect()
    };
    listed
        .iter()
        .map(|(&participant, listed)| (participant.to_owned(), keys(listed)))
        .collect()
}

fn dropped_keys(book: &Book<'_>) -> BTreeMap<AccountName, Vec<PaymentKey>> {
    let dropped = book.listed.iter().filter(|payment| !payment.settled);
    let key_of: BTreeMap<u32, PaymentKey> =
        dropped.map(|payment| (payment.line, payment.key)).collect();
    let accounts = book.accounts.iter().map(|account| {
        let (participant, currency) = (account.participant.to_owned(), account.currency.to_owned());
        let lines = account
            .queue
            .iter()
            .skip(account.settled)
            .map(|payment| payment.line);
        (
            AccountName {
                participant,
                currency,
            },
            lines
                .filter_map(|line| key_of.get(&line).copied())
                .collect(),
        )
    });
    accounts.collect()
}
