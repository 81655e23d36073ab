//! Replaying the reservation rounds: is every recorded drop forced, minimal and complete?
//!
//! All shards answer a round from the same vectors, so drops of one round do not see each other. The replay follows the
//! record: after a wrong drop it continues from what was recorded, so that one fault is reported once.
//!
//! A participant that drops nothing in a round leaves no availability for it. It is held to the next one on record: its
//! own next drop, or the last round. That is sound because a round reserves what it found: until the participant drops
//! again its need only grows, and other uses cannot take what is reserved.

use crate::book::{Book, BookAccount};
use crate::certificate::{Certificate, Dropped, Round};
use crate::figures::Minor;
use crate::finding::{Finding, Findings};
use std::collections::BTreeMap;

/// The vectors of a cycle: per account how many payments are still in, and what they come to.
pub(crate) struct Vectors {
    pub(crate) taken: Vec<usize>,
    pub(crate) out_minor: Vec<i128>,
    pub(crate) in_minor: Vec<i128>,
}

impl Vectors {
    /// Everything is in.
    pub(crate) fn full(book: &Book<'_>) -> Self {
        let mut vectors = Self {
            taken: book
                .accounts
                .iter()
                .map(|account| account.queue.len())
                .collect(),
            out_minor: vec![0; book.accounts.len()],
            in_minor: vec![0; book.accounts.len()],
        };
        for (place, account) in book.accounts.iter().enumerate() {
            for payment in &account.queue {
                vectors.out_minor[place] += i128::from(payment.amount_minor);
                vectors.in_minor[payment.receiver as usize] += i128::from(payment.amount_minor);
            }
        }
        vectors
    }

    /// Takes the last `count` payments of an account out.
    pub(crate) fn drop_last(&mut self, book: &Book<'_>, place: usize, count: usize) {
        let left = self.taken[place].saturating_sub(count);
        for payment in &book.accounts[place].queue[left..self.taken[place]] {
            self.out_minor[place] -= i128::from(payment.amount_minor);
            self.in_minor[payment.receiver as usize] -= i128::from(payment.amount_minor);
        }
        self.taken[place] = left;
    }
}

/// Replays all rounds against `book`.
pub(crate) fn replay(
    certificate: &Certificate,
    book: &Book<'_>,
    available_last: &[i128],
    findings: &mut Findings,
) {
    let mut replay = Replay {
        book,
        places: places(book),
        records: vec![Vec::new(); book.accounts.len()],
        vectors: Vectors::full(book),
        available_last,
        findings,
    };
    if certificate.rounds.is_empty() {
        replay.findings.push(Finding::NoRounds);
    }
    // Backwards, so that the next record of an account is always the last in its stack.
    for round in certificate.rounds.iter().rev() {
        for dropped in &round.drops {
            if let Some(&place) = replay
                .places
                .get(&(dropped.participant.as_str(), dropped.currency.as_str()))
            {
                replay.records[place].push((round.round, dropped.available_minor.get()));
            }
        }
    }
    for (round, number) in certificate.rounds.iter().zip(1..) {
        if round.round != number {
            replay.findings.push(Finding::RoundNumber {
                expected: number,
                found: round.round,
            });
        }
        let last = number == certificate.rounds.len() as u64;
        match (last, round.drops.is_empty()) {
            (true, false) => replay
                .findings
                .push(Finding::LastRoundDrops { round: number }),
            (false, true) => replay.findings.push(Finding::IdleRound { round: number }),
            _ => {}
        }
        replay.step(round);
        // A forged record may hold millions of wrong rounds, each of them dear to judge.
        if replay.findings.is_full() {
            break;
        }
    }
    replay.compare_outcomes();
}

/// Accounts by their names.
pub(crate) fn places<'b>(book: &'b Book<'_>) -> BTreeMap<(&'b str, &'b str), usize> {
    book.accounts
        .iter()
        .enumerate()
        .map(|(place, account)| ((account.participant, account.currency), place))
        .collect()
}

struct Replay<'b, 'f> {
    book: &'b Book<'b>,
    places: BTreeMap<(&'b str, &'b str), usize>,
    /// Per account, availabilities recorded with its drops that are still to come; the next one on top.
    records: Vec<Vec<(u64, i128)>>,
    vectors: Vectors,
    available_last: &'b [i128],
    findings: &'f mut Findings,
}

impl Replay<'_, '_> {
    fn step(&mut self, round: &Round) {
        let mut drops: BTreeMap<usize, usize> = BTreeMap::new();
        for dropped in &round.drops {
            let (number, participant, currency) =
                (round.round, &dropped.participant, &dropped.currency);
            let Some(&place) = self.places.get(&(participant.as_str(), currency.as_str())) else {
                let (participant, currency) = (participant.clone(), currency.clone());
                self.findings.push(Finding::DropUnknown {
                    round: number,
                    participant,
                    currency,
                });
                continue;
            };
            self.records[place].pop();
            if drops.contains_key(&place) {
                let (participant, currency) = (participant.clone(), currency.clone());
                self.findings.push(Finding::DropTwice {
                    round: number,
                    participant,
                    currency,
                });
                continue;
            }
            drops.insert(place, self.judge(number, place, dropped));
        }
        for place in 0..self.book.accounts.len() {
            if !drops.contains_key(&place) {
                self.judge_undropped(round.round, place);
            }
        }
        for (place, count) in drops {
            self.vectors.drop_last(self.book, place, count);
        }
    }

    /// Judges one drop against the vectors at the start of its round; gives back how many payments it takes out.
    fn judge(&mut self, round: u64, place: usize, dropped: &Dropped) -> usize {
        let account = &self.book.accounts[place];
        let taken = self.vectors.taken[place];
        let (out_minor, in_minor) = (self.vectors.out_minor[place], self.vectors.in_minor[place]);
        let shortfall = out_minor - in_minor - dropped.available_minor.get();
        let count = usize::try_from(dropped.dropped_count)
            .unwrap_or(usize::MAX)
            .min(taken);
        let names = || (dropped.participant.clone(), dropped.currency.clone());

        for (figure, expected, found) in [
            ("out_before_minor", out_minor, dropped.out_before_minor),
            ("in_before_minor", in_minor, dropped.in_before_minor),
            ("shortfall_minor", shortfall, dropped.shortfall_minor),
            (
                "dropped_sum_minor",
                sum_of_last(account, taken, count),
                dropped.dropped_sum_minor,
            ),
        ] {
            if expected != found.get() {
                let ((participant, currency), expected) = (names(), Minor::from(expected));
                self.findings.push(Finding::DropFigure {
                    round,
                    participant,
                    currency,
                    figure,
                    expected,
                    found,
                });
            }
        }
        let (participant, currency) = names();
        if shortfall <= 0 {
            let surplus = Minor::from(-shortfall);
            self.findings.push(Finding::DropNeedless {
                round,
                participant,
                currency,
                surplus,
            });
            return count;
        }
        let needed = fewest_that_cover(account, taken, shortfall);
        let (expected, found) = (needed as u64, dropped.dropped_count);
        if found > expected {
            self.findings.push(Finding::DropTooMany {
                round,
                participant,
                currency,
                expected,
                found,
            });
        } else if found < expected {
            self.findings.push(Finding::DropTooFew {
                round,
                participant,
                currency,
                expected,
                found,
            });
        } else if found == 0 {
            // Short, but with nothing left to drop: nothing to record either.
            let surplus = Minor::ZERO;
            self.findings.push(Finding::DropNeedless {
                round,
                participant,
                currency,
                surplus,
            });
        }
        count
    }

    fn judge_undropped(&mut self, round: u64, place: usize) {
        if self.vectors.taken[place] == 0 {
            return;
        }
        let next_record = self.records[place].last().map(|&(_, available)| available);
        let available = next_record.unwrap_or(self.available_last[place]);
        let shortfall = self.vectors.out_minor[place] - self.vectors.in_minor[place] - available;
        if shortfall > 0 {
            let account = &self.book.accounts[place];
            let (participant, currency) =
                (account.participant.to_owned(), account.currency.to_owned());
            let shortfall = Minor::from(shortfall);
            self.findings.push(Finding::ShortfallIgnored {
                round,
                participant,
                currency,
                shortfall,
            });
        }
    }

    fn compare_outcomes(&mut self) {
        for (account, &taken) in self.book.accounts.iter().zip(&self.vectors.taken) {
            if taken != account.settled {
                let (participant, currency) =
                    (account.participant.to_owned(), account.currency.to_owned());
                let (expected, found) = (taken as u64, account.settled as u64);
                let line = account.line_at(taken.min(account.settled));
                self.findings.push(Finding::OutcomeMismatch {
                    line,
                    participant,
                    currency,
                    expected,
                    found,
                });
            }
        }
    }
}

fn sum_of_last(account: &BookAccount<'_>, taken: usize, count: usize) -> i128 {
    account.queue[taken - count..taken]
        .iter()
        .map(|payment| i128::from(payment.amount_minor))
        .sum()
}

/// Walks from the tail, one unit at a time, until the shortfall is covered or nothing is left.
fn fewest_that_cover(account: &BookAccount<'_>, taken: usize, shortfall: i128) -> usize {
    let (mut count, mut covered) = (0, 0);
    while covered < shortfall && count < taken {
        let unit_len = account.last_unit_len(taken - count);
        covered += sum_of_last(account, taken - count, unit_len);
        count += unit_len;
    }
    count
}
