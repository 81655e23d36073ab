//! The set of a cycle as `inputs.csv` lists it, with the checks a single pass over the lines can make.

use crate::certificate::{Certificate, NetsBy};
use crate::figures::Digest;
use crate::finding::{Finding, Findings};
use crate::inputs::{InputLine, InputsReader, Outcome};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

/// Every account of the certificate with its queue. An account is known by its place in `accounts`.
pub(crate) struct Book<'a> {
    pub(crate) accounts: Vec<BookAccount<'a>>,
    /// False when some line found no place here: what is left would only repeat that finding in other words.
    pub(crate) complete: bool,
    pub(crate) inputs_blake3: Digest,
    /// Identities of all payments, in order of sender and key.
    pub(crate) listed: Vec<Listed>,
}

pub(crate) struct BookAccount<'a> {
    pub(crate) participant: &'a str,
    pub(crate) currency: &'a str,
    pub(crate) nets_by: NetsBy,
    /// Its payments in queue order.
    pub(crate) queue: Vec<Queued>,
    /// How many of the first are settled.
    pub(crate) settled: usize,
}

/// One payment; 24 bytes, because there are millions.
pub(crate) struct Queued {
    pub(crate) amount_minor: u64,
    pub(crate) unit: u64,
    /// Place of the receiver's account.
    pub(crate) receiver: u32,
    pub(crate) line: u32,
}

/// Identity of a payment at its sender: a UETR itself, any other identifier by its hash.
pub(crate) type PaymentKey = u128;

impl BookAccount<'_> {
    /// Line of the payment after the first `count`, or of the last one; 0 when there is none.
    pub(crate) fn line_at(&self, count: usize) -> u64 {
        self.queue
            .get(count)
            .or(self.queue.last())
            .map_or(0, |payment| u64::from(payment.line))
    }

    /// How many payments at the end of the first `taken` are dropped together, 0 when none is left.
    pub(crate) fn last_unit_len(&self, taken: usize) -> usize {
        let queue = self.queue.get(..taken).unwrap_or_default();
        match (queue.last(), self.nets_by) {
            (None, _) => 0,
            (Some(_), NetsBy::Payment) => 1,
            (Some(last), NetsBy::Package) => queue
                .iter()
                .rev()
                .take_while(|payment| payment.unit == last.unit)
                .count(),
        }
    }
}

/// A payment's identity and where it stands, for the search for duplicates.
pub(crate) struct Listed {
    /// Number of the sender among the certificate's participants.
    pub(crate) sender: u32,
    pub(crate) key: PaymentKey,
    pub(crate) line: u32,
    pub(crate) settled: bool,
}

/// Reads all lines. What is wrong with single lines and lists goes to `findings`.
///
/// # Errors
/// What the reader says; a line without its end is `InvalidData`.
pub(crate) fn read_book<'a>(
    certificate: &'a Certificate,
    source: impl Read,
    findings: &mut Findings,
) -> io::Result<Book<'a>> {
    let mut reading = Reading::new(certificate, findings);
    let mut lines = InputsReader::new(source);
    while let Some((line, parsed)) = lines.next_line()? {
        match parsed {
            Ok(payment) => reading.take(&payment, line),
            Err(cause) => {
                reading.complete = false;
                let (file, line) = ("inputs.csv".to_owned(), u64::from(line));
                reading.findings.push(Finding::Malformed {
                    file,
                    line,
                    cause: cause.to_owned(),
                });
            }
        }
    }
    Ok(reading.finish(lines.digest()))
}

struct Reading<'a, 'f> {
    findings: &'f mut Findings,
    accounts: Vec<BookAccount<'a>>,
    /// Home shard of each account.
    homes: Vec<u32>,
    /// Number of the participant of each account.
    holders: Vec<u32>,
    /// Position of the last line of each account.
    positions: Vec<u64>,
    places: BTreeMap<&'a str, BTreeMap<&'a str, u32>>,
    complete: bool,
    listed: Vec<Listed>,
    /// The list the last line belonged to, and its packages.
    current: Option<u32>,
    units: BTreeSet<u64>,
}

impl<'a, 'f> Reading<'a, 'f> {
    fn new(certificate: &'a Certificate, findings: &'f mut Findings) -> Self {
        let mut reading = Self {
            findings,
            accounts: Vec::new(),
            homes: Vec::new(),
            holders: Vec::new(),
            positions: Vec::new(),
            places: BTreeMap::new(),
            complete: true,
            listed: Vec::new(),
            current: None,
            units: BTreeSet::new(),
        };
        for ((name, participant), holder) in certificate.participants.iter().zip(0..) {
            for currency in participant.accounts.keys() {
                let place =
                    u32::try_from(reading.accounts.len()).expect("a certificate of bounded length");
                reading
                    .places
                    .entry(currency)
                    .or_default()
                    .insert(name, place);
                reading.positions.push(0);
                reading.homes.push(participant.shard);
                reading.holders.push(holder);
                reading.accounts.push(BookAccount {
                    participant: name,
                    currency,
                    nets_by: participant.nets_by,
                    queue: Vec::new(),
                    settled: 0,
                });
            }
        }
        reading
    }

    fn place(&self, participant: &str, currency: &str) -> Option<u32> {
        self.places.get(currency)?.get(participant).copied()
    }

    fn take(&mut self, payment: &InputLine<'_>, line: u32) {
        let same_list = self.current.filter(|&place| {
            let account = &self.accounts[place as usize];
            account.participant == payment.sender && account.currency == payment.currency
        });
        let Some(sender) = same_list.or_else(|| self.place(&payment.sender, &payment.currency))
        else {
            return self.unknown(&payment.sender, payment, line);
        };
        let place = sender as usize;
        self.check_list(place, same_list.is_none(), payment, u64::from(line));
        self.current = Some(sender);
        let Some(receiver) = self.place(&payment.receiver, &payment.currency) else {
            return self.unknown(&payment.receiver, payment, line);
        };
        if sender == receiver {
            let (participant, currency) = names(payment);
            self.findings.push(Finding::SelfPayment {
                line: u64::from(line),
                participant,
                currency,
            });
        }
        self.check_outcome(place, payment, u64::from(line));

        let settled = payment.outcome == Outcome::Settled;
        let account = &mut self.accounts[place];
        if settled && account.settled == account.queue.len() {
            account.settled += 1;
        }
        let (amount_minor, unit) = (payment.amount_minor, payment.unit);
        account.queue.push(Queued {
            amount_minor,
            unit,
            receiver,
            line,
        });
        let (sender, key) = (self.holders[place], payment_key(&payment.id));
        self.listed.push(Listed {
            sender,
            key,
            line,
            settled,
        });
    }

    fn unknown(&mut self, participant: &str, payment: &InputLine<'_>, line: u32) {
        self.complete = false;
        let (line, participant, currency) = (
            u64::from(line),
            participant.to_owned(),
            payment.currency.to_string(),
        );
        self.findings.push(Finding::UnknownAccount {
            line,
            participant,
            currency,
        });
    }

    /// Is the line where it belongs: in its list, at its position, from its shard?
    fn check_list(&mut self, place: usize, list_begins: bool, payment: &InputLine<'_>, line: u64) {
        if list_begins {
            self.units.clear();
            if self.positions[place] > 0 {
                let (participant, currency) = names(payment);
                self.findings.push(Finding::ListReappears {
                    line,
                    participant,
                    currency,
                });
            }
        }
        if payment.shard != self.homes[place] {
            let (participant, expected, found) =
                (names(payment).0, self.homes[place], payment.shard);
            self.findings.push(Finding::WrongShard {
                line,
                participant,
                expected,
                found,
            });
        }
        // After a gap the count goes on from what was found, so that one gap is one finding.
        let (expected, found) = (self.positions[place].saturating_add(1), payment.position);
        if found != expected {
            let (participant, currency) = names(payment);
            self.findings.push(Finding::PositionGap {
                line,
                participant,
                currency,
                expected,
                found,
            });
        }
        self.positions[place] = found;
    }

    /// Does the outcome leave the settled payments a prefix, in whole units?
    fn check_outcome(&mut self, place: usize, payment: &InputLine<'_>, line: u64) {
        let account = &self.accounts[place];
        let settled = payment.outcome == Outcome::Settled;
        let all_settled = account.settled == account.queue.len();
        if settled && !all_settled {
            let ((participant, currency), position) = (names(payment), payment.position);
            self.findings.push(Finding::NotPrefix {
                line,
                participant,
                currency,
                position,
            });
        }
        if account.nets_by == NetsBy::Payment {
            return;
        }
        let unit = payment.unit;
        let same_unit = account.queue.last().is_some_and(|last| last.unit == unit);
        if !self.units.insert(unit) && !same_unit {
            let (participant, currency) = names(payment);
            self.findings.push(Finding::UnitReappears {
                line,
                participant,
                currency,
                unit,
            });
        }
        if same_unit && all_settled && !settled {
            let (participant, currency) = names(payment);
            self.findings.push(Finding::UnitSplit {
                line,
                participant,
                currency,
                unit,
            });
        }
    }

    fn finish(mut self, inputs_blake3: Digest) -> Book<'a> {
        let names: BTreeMap<u32, &str> = self
            .holders
            .iter()
            .copied()
            .zip(self.accounts.iter().map(|account| account.participant))
            .collect();
        self.listed
            .sort_unstable_by_key(|listed| (listed.sender, listed.key, listed.line));
        for pair in self.listed.windows(2) {
            if let [first, again] = pair
                && (first.sender, first.key) == (again.sender, again.key)
            {
                let (line, first_line) = (u64::from(again.line), u64::from(first.line));
                let participant = names[&again.sender].to_owned();
                self.findings.push(Finding::DuplicatePayment {
                    line,
                    first_line,
                    participant,
                });
            }
        }
        Book {
            accounts: self.accounts,
            complete: self.complete,
            inputs_blake3,
            listed: self.listed,
        }
    }
}

/// Sender and currency, as findings name them.
fn names(payment: &InputLine<'_>) -> (String, String) {
    (payment.sender.to_string(), payment.currency.to_string())
}

fn payment_key(id: &str) -> PaymentKey {
    uuid(id).unwrap_or_else(|| {
        let digest = Digest::of(id.as_bytes());
        digest
            .as_bytes()
            .iter()
            .take(16)
            .fold(0, |key, &byte| key << 8 | PaymentKey::from(byte))
    })
}

/// The value of a UUID in its hyphenated form, in either case.
fn uuid(text: &str) -> Option<u128> {
    if text.len() != 36 {
        return None;
    }
    text.bytes()
        .enumerate()
        .try_fold(0_u128, |value, (at, byte)| match (at, byte) {
            (8 | 13 | 18 | 23, b'-') => Some(value),
            (8 | 13 | 18 | 23, _) => None,
            _ => char::from(byte)
                .to_digit(16)
                .map(|digit| value << 4 | u128::from(digit)),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uetr_is_its_own_key() {
        let key = 0x8a56_2c67_ca16_48ba_b074_6558_1be6_f011;
        assert_eq!(payment_key("8a562c67-ca16-48ba-b074-65581be6f011"), key);
        assert_eq!(payment_key("8A562C67-CA16-48BA-B074-65581BE6F011"), key);
        assert_eq!(uuid("8a562c67-ca16-48ba-b074-65581be6f01"), None);
        assert_eq!(uuid("8a562c67+ca16-48ba-b074-65581be6f011"), None);
        assert_eq!(uuid("8a562c67-ca16-48ba-b074-65581be6f01g"), None);
        assert_ne!(payment_key("TX-1"), payment_key("TX-2"));
    }
}
