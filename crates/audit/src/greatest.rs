//! The greatest feasible set by another road than the rounds: a worklist that drops one unit of one account at a time.
//!
//! Feasible vectors are closed under the element-wise maximum, because a longer prefix of others only adds to what an
//! account receives. So there is one greatest vector and every order of dropping ends at it. It also bounds a cycle
//! whose availability moved between rounds: each drop was forced with the availability on its record, so the result is
//! not below the greatest vector for the smallest of those; and it is feasible with the last ones, so it is not above
//! the greatest vector for these. Where nothing moved the two are the same vector, and the result must be it.

use crate::book::Book;
use crate::finding::{Finding, Findings};
use crate::rounds::Vectors;

/// How many payments of each account the greatest feasible vector takes, with `available` per account.
pub(crate) fn greatest(book: &Book<'_>, available: &[i128]) -> Vec<usize> {
    let mut vectors = Vectors::full(book);
    let mut suspects: Vec<usize> = (0..book.accounts.len()).collect();
    while let Some(place) = suspects.pop() {
        let short = available[place] + vectors.in_minor[place] < vectors.out_minor[place];
        let taken = vectors.taken[place];
        if !short || taken == 0 {
            continue;
        }
        let unit_len = book.accounts[place].last_unit_len(taken);
        vectors.drop_last(book, place, unit_len);
        // Those who would have been paid may be short now, and this account may still be.
        let unpaid = &book.accounts[place].queue[taken - unit_len..taken];
        suspects.extend(unpaid.iter().map(|payment| payment.receiver as usize));
        suspects.push(place);
    }
    vectors.taken
}

/// Compares what settled with the greatest vectors for the smallest and for the last availabilities.
pub(crate) fn compare(book: &Book<'_>, smallest: &[i128], last: &[i128], findings: &mut Findings) {
    let above = greatest(book, last);
    let below = if smallest == last {
        above.clone()
    } else {
        greatest(book, smallest)
    };
    for ((account, &above), &below) in book.accounts.iter().zip(&above).zip(&below) {
        let found = account.settled;
        let (participant, currency) = (
            || account.participant.to_owned(),
            || account.currency.to_owned(),
        );
        let (line, settled) = (account.line_at(found.min(above)), found as u64);
        if found < below {
            findings.push(Finding::NotGreatest {
                line,
                participant: participant(),
                currency: currency(),
                expected: below as u64,
                found: settled,
            });
        }
        if found > above {
            findings.push(Finding::BeyondGreatest {
                line,
                participant: participant(),
                currency: currency(),
                expected: above as u64,
                found: settled,
            });
        }
    }
}
