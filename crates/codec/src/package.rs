//! A compact package, as participants of high volume hand it in: one header, fixed-size records, one packed heap with each
//! payment's text. `docs/format/package.md` draws it.
//!
//! There is one spelling: records stand without gaps, bodies cover the heap in the order of the records, and the digest in
//! the header is that of everything behind it. What the values mean is checked by the gateway, as it is for XML.

use bytes::Bytes;
use clearspan_ledger::layout::{Layout, Sink as _, Source as _};
use clearspan_ledger::message::{MessageKind, Settlement};
use clearspan_ledger::{AmountMinor, Bic, BusinessDate, Currency, PaymentId, Text};
use xxhash_rust::xxh3::xxh3_128;

use crate::bytes_io::{Reader, Writer};
use crate::{DecodeError, heap};

/// How a package is called in HTTP.
pub const CONTENT_TYPE: &str = "application/vnd.clearspan.package";
/// The first byte of a heap whose bodies are fields, not XML.
pub const HEAP_LAYOUT: u8 = 2;
/// Key, receiver, amount, length of the body.
pub const RECORD_BYTES: usize = 16 + 11 + 8 + 2;

const KIND: u8 = b'P';
const VERSION: u8 = 1;
const DIGEST_END: usize = 2 + 16;

/// A package as it came, its values not looked at yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// What its payments are; the gateway serves some kinds only.
    pub kind: MessageKind,
    /// Who says it sent it.
    pub sender: Bic,
    /// The sender's identifier.
    pub message_id: Text,
    /// How the payments settle.
    pub settlement: Settlement,
    /// Of all payments: three bytes that may be no code.
    pub currency: [u8; 3],
    /// Of all payments: days since 1970, of any size.
    pub date_days: u32,
    /// How many payments the sender says there are.
    pub count: u32,
    /// What the sender says they come to.
    pub sum_minor: u128,
    /// XXH3-128 of everything behind it; it was compared.
    pub digest: u128,
    /// The packed heap.
    pub heap: Bytes,
    records: Bytes,
}

/// A payment as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The bits of its UETR, or anything else.
    pub id: u128,
    /// A BIC, or anything else.
    pub receiver: [u8; 11],
    /// Minor units, of any size.
    pub amount_minor: u64,
    /// Bytes of its body in the heap.
    pub body_len: u16,
}

/// What a sender says about all payments of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// `CustomerTransfer` or `BankTransfer`.
    pub kind: MessageKind,
    /// Who sends it.
    pub sender: Bic,
    /// The sender's identifier; it ends in the message's number where the sender numbers its messages.
    pub message_id: Text,
    /// How the payments settle.
    pub settlement: Settlement,
    /// Of all payments.
    pub currency: Currency,
    /// When they settle.
    pub date: BusinessDate,
}

/// One payment to be put into a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payment<'a> {
    /// Its UETR.
    pub id: PaymentId,
    /// To whom.
    pub receiver: Bic,
    /// How much.
    pub amount: AmountMinor,
    /// Its text, as fields; empty for none. At most 65,535 bytes.
    pub fields: &'a [u8],
}

/// Writes a package; count, sum and digest are made here.
///
/// # Panics
/// When a payment's fields are longer than [`u16::MAX`] bytes, or there are 2^32 payments.
#[must_use]
pub fn encode(head: &Head, payments: &[Payment<'_>]) -> Vec<u8> {
    let fields: usize = payments.iter().map(|payment| payment.fields.len()).sum();
    let mut writer = Writer(Vec::with_capacity(
        160 + payments.len() * RECORD_BYTES + fields,
    ));
    writer.raw(&[KIND, VERSION]);
    writer.raw(&[0; 16]);
    head.kind.put(&mut writer);
    head.sender.put(&mut writer);
    head.message_id.put(&mut writer);
    head.settlement.put(&mut writer);
    writer.raw(head.currency.as_bytes());
    head.date.days().put(&mut writer);
    let count = u32::try_from(payments.len()).expect("a package holds fewer payments than 2^32");
    count.put(&mut writer);
    let sum: u128 = payments
        .iter()
        .map(|payment| u128::from(payment.amount.minor()))
        .sum();
    sum.put(&mut writer);
    count.put(&mut writer);
    let mut raw = Vec::with_capacity(1 + fields);
    raw.push(HEAP_LAYOUT);
    for payment in payments {
        payment.id.bits().put(&mut writer);
        writer.raw(payment.receiver.as_bytes());
        payment.amount.minor().put(&mut writer);
        u16::try_from(payment.fields.len())
            .expect("fields of a payment fit 65,535 bytes")
            .put(&mut writer);
        raw.extend_from_slice(payment.fields);
    }
    heap::pack(&raw).put(&mut writer);
    let mut bytes = writer.0;
    let digest = bytes.get(DIGEST_END..).map(xxh3_128).unwrap_or_default();
    if let Some(place) = bytes.get_mut(2..DIGEST_END) {
        place.copy_from_slice(&digest.to_le_bytes());
    }
    bytes
}

/// Whether bytes begin as a package does: no XML document begins so.
#[must_use]
pub fn is_package(bytes: &[u8]) -> bool {
    bytes.first() == Some(&KIND)
}

/// Reads a package. Only what no package can be is refused here: bytes that end early or go on, another digest, a header
/// that is none.
///
/// # Errors
/// [`DecodeError`] names the byte and what is wrong there.
pub fn decode(bytes: Bytes) -> Result<Package, DecodeError> {
    let stated = bytes.get(DIGEST_END..).map(xxh3_128);
    let mut reader = Reader::new(bytes);
    reader.header("a package", KIND, VERSION)?;
    let digest = u128::take(&mut reader)?;
    if stated != Some(digest) {
        return Err(reader.invalid("the digest is not that of what follows"));
    }
    let kind = Layout::take(&mut reader)?;
    let sender = Layout::take(&mut reader)?;
    let message_id = Layout::take(&mut reader)?;
    let settlement = Layout::take(&mut reader)?;
    let currency = reader.raw()?;
    let date_days = u32::take(&mut reader)?;
    let count = u32::take(&mut reader)?;
    let sum_minor = u128::take(&mut reader)?;
    let found = u32::take(&mut reader)?;
    let records_len = usize::try_from(found)
        .ok()
        .and_then(|found| found.checked_mul(RECORD_BYTES))
        .ok_or_else(|| reader.invalid("more payments than there can be"))?;
    let records = reader.slice(records_len)?;
    let heap = Bytes::take(&mut reader)?;
    reader.end()?;
    Ok(Package {
        kind,
        sender,
        message_id,
        settlement,
        currency,
        date_days,
        count,
        sum_minor,
        digest,
        heap,
        records,
    })
}

impl Package {
    /// How many payments there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len() / RECORD_BYTES
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The payments, in order.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let (records, _) = self.records.as_chunks::<RECORD_BYTES>();
        records.iter().map(|bytes| Record {
            id: u128::from_le_bytes(part::<0, 16>(bytes)),
            receiver: part::<16, 11>(bytes),
            amount_minor: u64::from_le_bytes(part::<27, 8>(bytes)),
            body_len: u16::from_le_bytes(part::<35, 2>(bytes)),
        })
    }
}

/// `LEN` bytes of a record.
fn part<const FROM: usize, const LEN: usize>(bytes: &[u8; RECORD_BYTES]) -> [u8; LEN] {
    const { assert!(FROM + LEN <= RECORD_BYTES) };
    std::array::from_fn(|at| bytes.get(FROM + at).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        Head {
            kind: MessageKind::BankTransfer,
            sender: Bic::parse(b"ALFADEFF").unwrap(),
            message_id: Text::new("ALFA-1").unwrap(),
            settlement: Settlement::Net,
            currency: Currency::parse(b"EUR").unwrap(),
            date: BusinessDate::parse(b"2026-11-30").unwrap(),
        }
    }

    fn payment(number: u64) -> Payment<'static> {
        Payment {
            id: PaymentId::from_bits(u128::from(number) | 4 << 76 | 2 << 62).unwrap(),
            receiver: Bic::parse(b"BRAVFRPP").unwrap(),
            amount: AmountMinor::new(100 + number).unwrap(),
            fields: if number == 1 { b"abc" } else { b"" },
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let payments: Vec<_> = (0..3).map(payment).collect();
        let bytes = Bytes::from(encode(&head(), &payments));
        assert!(is_package(&bytes));
        let package = decode(bytes.clone()).unwrap();
        assert_eq!((package.count, package.len()), (3, 3));
        assert_eq!(package.sum_minor, 303);
        assert_eq!(package.message_id.as_str(), "ALFA-1");
        assert_eq!(heap::unpack(&package.heap).as_deref(), Ok(&b"\x02abc"[..]));
        for (record, payment) in package.records().zip(&payments) {
            assert_eq!(record.id, payment.id.bits());
            assert_eq!(&record.receiver, payment.receiver.as_bytes());
            assert_eq!(record.amount_minor, payment.amount.minor());
            assert_eq!(usize::from(record.body_len), payment.fields.len());
        }
        let empty = decode(Bytes::from(encode(&head(), &[]))).unwrap();
        assert!(empty.is_empty());
        // Every byte counts.
        for at in 0..bytes.len() {
            let mut other = bytes.to_vec();
            other[at] ^= 1;
            assert!(decode(Bytes::from(other)).is_err(), "byte {at}");
            assert!(decode(bytes.slice(..at)).is_err(), "{at} bytes of it");
        }
        assert!(decode(Bytes::from([&bytes[..], &[0]].concat())).is_err());
    }
}
