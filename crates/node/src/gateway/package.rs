//! Compact packages: every check that an XML message gets, with the same reasons, over records instead of elements.

use bytes::Bytes;
use clearspan_codec::package::{self, Package, Record};
use clearspan_iso20022::fields;
use clearspan_iso20022::read::{Context, Fault, Limits, sequence_of};
use clearspan_ledger::message::{MessageKind, PaymentRecord, Submission};
use clearspan_ledger::{AmountMinor, Bic, BusinessDate, Currency, PaymentId, Reason, ReasonSet};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Reads a package into what its sender's home shard decides on. The heap stays packed.
pub(super) fn read(
    bytes: Bytes,
    limits: &Limits,
    context: &Context<'_>,
) -> Result<Submission, Box<Fault>> {
    let unread = |reason, detail: String, known: Option<&Package>| {
        Box::new(Fault {
            reason,
            line: 1,
            column: 1,
            path: "/".to_owned(),
            detail: detail.into(),
            sender: known.map(|package| package.sender),
            message_id: known.map(|package| package.message_id.as_str().to_owned()),
            message_name: None,
        })
    };
    if bytes.len() > limits.body_max_bytes {
        let detail = "larger than one message may be".to_owned();
        return Err(unread(Reason::Syntax, detail, None));
    }
    let package =
        package::decode(bytes).map_err(|error| unread(Reason::Syntax, error.to_string(), None))?;
    let fault = |reason, detail: String| unread(reason, detail, Some(&package));
    if package.len() > limits.payments_max {
        let detail = "more payments than one message may have".to_owned();
        return Err(fault(Reason::Syntax, detail));
    }
    if !matches!(
        package.kind,
        MessageKind::CustomerTransfer | MessageKind::BankTransfer
    ) {
        let detail = format!("a package of {} is not served", package.kind.name());
        return Err(fault(Reason::MessageNotSupported, detail));
    }
    let id = package.message_id.as_str();
    if id.is_empty() || id.chars().any(char::is_control) {
        let detail = "the message identifier is empty or has control characters".to_owned();
        return Err(fault(Reason::MessageIdInvalid, detail));
    }
    let heap = clearspan_codec::heap::unpack(&package.heap)
        .map_err(|error| fault(Reason::Syntax, error.to_string()))?;
    if heap.len() > limits.body_max_bytes || !fields::are_in(&heap) {
        let detail = "the heap is too large or of no known layout".to_owned();
        return Err(fault(Reason::Syntax, detail));
    }
    let payments = payments(&package, &heap, context)
        .map_err(|(at, why)| fault(Reason::Syntax, format!("payment {}: {why}", at + 1)))?;
    // As in XML: who delivered it is the sender; whom it names must be the same.
    let sender = context.sender.unwrap_or(package.sender);
    let mut sequence = None;
    let mut faults = faults_of(&package);
    if sender != package.sender {
        faults.insert(Reason::SenderUnknown);
    }
    if (context.numbers_messages)(sender) {
        sequence = sequence_of(id);
        if sequence.is_none() {
            faults.insert(Reason::SequenceMissing);
        }
    }
    Ok(Submission {
        kind: package.kind,
        version: fields::VERSION,
        sender,
        message_id: package.message_id,
        digest: package.digest,
        sequence,
        settlement: package.settlement,
        faults,
        payments,
        times: Vec::new(),
        originals: Vec::new(),
        heap: package.heap,
    })
}

/// What is wrong with the package as a whole.
fn faults_of(package: &Package) -> ReasonSet {
    let mut faults = ReasonSet::EMPTY;
    if usize::try_from(package.count) != Ok(package.len()) {
        faults.insert(Reason::CountMismatch);
    }
    let sum = package.records().try_fold(0_u128, |sum, record| {
        sum.checked_add(u128::from(record.amount_minor))
    });
    if sum != Some(package.sum_minor) {
        faults.insert(Reason::ControlSumMismatch);
    }
    if package.is_empty() && faults.is_empty() {
        faults.insert(Reason::MessageNotSupported);
    }
    faults
}

type Misfit = (usize, String);

fn payments(
    package: &Package,
    heap: &Bytes,
    context: &Context<'_>,
) -> Result<Vec<PaymentRecord>, Misfit> {
    let currency = Currency::parse(&package.currency).filter(|currency| currency.is_listed());
    let date = BusinessDate::from_days(package.date_days);
    let shared = Shared {
        currency,
        date: Some(date).filter(|date| date.days() == package.date_days),
        sender: context.sender.unwrap_or(package.sender),
        amount_max: context.amount_max,
    };
    let mut payments = Vec::with_capacity(package.len());
    let mut content = Content::new(package);
    let mut offset = 1;
    for (at, record) in package.records().enumerate() {
        let end = offset + usize::from(record.body_len);
        let body = heap
            .get(offset..end)
            .ok_or_else(|| (at, "its text is not all there".to_owned()))?;
        let body_offset =
            u32::try_from(offset).map_err(|_| (at, "the heap is too long".to_owned()))?;
        let long = fields::check(body, package.kind).map_err(|error| (at, error.to_string()))?;
        payments.push(PaymentRecord {
            content_digest: content.digest(&record, body),
            body_offset,
            body_len: u32::from(record.body_len),
            ..shared.payment(&record, long)
        });
        offset = end;
    }
    if offset != heap.len() {
        return Err((package.len(), "more text than payments".to_owned()));
    }
    find_twins(&mut payments);
    Ok(payments)
}

/// What all payments of a package are held against.
struct Shared {
    currency: Option<Currency>,
    date: Option<BusinessDate>,
    sender: Bic,
    amount_max: AmountMinor,
}

impl Shared {
    /// As the same values in XML: each fault is told, and a value that cannot be read is none.
    fn payment(&self, record: &Record, mut faults: ReasonSet) -> PaymentRecord {
        let id = PaymentId::from_bits(record.id)
            .filter(|id| matches!(id, PaymentId::Uetr(_)) && record.id >> 62 & 0b11 == 0b10);
        if id.is_none() {
            faults.insert(Reason::IdMissing);
            if record.id != 0 {
                faults.insert(Reason::IdInvalid);
            }
        }
        let receiver = Bic::parse(&record.receiver);
        match receiver {
            None => faults.insert(Reason::ReceiverInvalid),
            Some(receiver) if receiver == self.sender => faults.insert(Reason::SameParticipant),
            Some(_) => {}
        }
        let mut amount = AmountMinor::new(record.amount_minor);
        if amount == Some(AmountMinor::ZERO) {
            faults.insert(Reason::AmountZero);
        }
        if self.currency.is_none() {
            faults.insert(Reason::CurrencyInvalid);
            amount = amount.and(None);
        } else if amount.is_none_or(|amount| amount > self.amount_max) {
            faults.insert(Reason::AmountTooLarge);
        }
        if self.date.is_none() {
            faults.insert(Reason::DateInvalid);
        }
        PaymentRecord {
            id: id.unwrap_or(PaymentId::Transaction(0)),
            content_digest: 0,
            amount: amount.unwrap_or(AmountMinor::ZERO),
            currency: self.currency.unwrap_or(Currency::NONE),
            receiver,
            date: self.date,
            faults,
            body_offset: 0,
            body_len: 0,
        }
    }
}

/// Hashes a payment's content without its key: the same under another key is told (rule R3).
struct Content([u8; 26]);

impl Content {
    fn new(package: &Package) -> Self {
        let mut bytes = [0; 26];
        let shared = package
            .currency
            .into_iter()
            .chain(package.date_days.to_le_bytes());
        for (to, from) in bytes.iter_mut().zip(shared) {
            *to = from;
        }
        Self(bytes)
    }

    fn digest(&mut self, record: &Record, body: &[u8]) -> u64 {
        let own = record
            .receiver
            .into_iter()
            .chain(record.amount_minor.to_le_bytes());
        for (to, from) in self.0.iter_mut().skip(7).zip(own) {
            *to = from;
        }
        let digest = xxh3_64(&self.0);
        if body.is_empty() {
            digest
        } else {
            xxh3_64_with_seed(body, digest)
        }
    }
}

/// Every later payment of a key that stands above already is refused.
fn find_twins(payments: &mut [PaymentRecord]) {
    // Half of each key tells nearly always that there are none.
    let mut halves: Vec<u64> = payments
        .iter()
        .filter(|payment| payment.id != PaymentId::Transaction(0))
        .map(|payment| {
            let [low, high] = [payment.id.bits(), payment.id.bits() >> 64];
            #[expect(clippy::cast_possible_truncation, reason = "halves of 128 bits")]
            let both = (low as u64) ^ (high as u64).rotate_left(32);
            both
        })
        .collect();
    halves.sort_unstable();
    if halves
        .windows(2)
        .all(|pair| matches!(pair, [a, b] if a != b))
    {
        return;
    }
    let mut keys: Vec<(PaymentId, usize)> = (0..)
        .zip(payments.iter())
        .map(|(at, payment)| (payment.id, at))
        .filter(|(id, _)| *id != PaymentId::Transaction(0))
        .collect();
    keys.sort_unstable();
    for pair in keys.windows(2) {
        if let [(first, _), (second, at)] = *pair
            && first == second
            && let Some(payment) = payments.get_mut(at)
        {
            payment.faults.insert(Reason::DuplicateInMessage);
        }
    }
}

#[cfg(test)]
mod tests;
