//! The same facts in XML and in a package come to the same records and reasons.

use bytes::Bytes;
use clearspan_codec::package::{Head, Payment, encode};
use clearspan_iso20022::fields::{self, Field};
use clearspan_iso20022::read::{Context, Incoming, Limits};
use clearspan_ledger::message::{MessageKind, Settlement, Submission};
use clearspan_ledger::{AmountMinor, Bic, BusinessDate, Currency, PaymentId, Reason, Text};
use proptest::prelude::*;
use proptest::sample::Index;

use super::read;

const SENDER: &[u8] = b"ALFADEFFXXX";
/// Where the values of the first record stand in [`package`], found by what they hold.
const COUNT_AT: usize = 2 + 16 + 1 + 11 + (1 + 8) + 1 + 3 + 4;
const SUM_AT: usize = COUNT_AT + 4;
const RECORDS_AT: usize = SUM_AT + 16 + 4;

fn bic(text: &[u8]) -> Bic {
    Bic::parse(text).unwrap()
}

fn head(kind: MessageKind) -> Head {
    Head {
        kind,
        sender: bic(SENDER),
        message_id: Text::new("ALFA-007").unwrap(),
        settlement: Settlement::Net,
        currency: Currency::parse(b"EUR").unwrap(),
        date: BusinessDate::parse(b"2026-11-30").unwrap(),
    }
}

fn uetr(number: u128) -> PaymentId {
    PaymentId::from_bits(number << 80 | 4 << 76 | 2 << 62 | number).unwrap()
}

fn body() -> Vec<u8> {
    let mut body = Vec::new();
    fields::push(&mut body, Field::EndToEndId, "E2E & 1");
    fields::push(&mut body, Field::DebtorName, "Müller & Söhne <KG>");
    fields::push(&mut body, Field::DebtorAccount, "DE89370400440532013000");
    fields::push(&mut body, Field::CreditorAccount, "4711-0815");
    fields::push(&mut body, Field::Purpose, "SALA");
    fields::push(&mut body, Field::Remittance, "Rechnung 1");
    body
}

fn package(kind: MessageKind) -> Vec<u8> {
    let body = if kind == MessageKind::CustomerTransfer {
        body()
    } else {
        Vec::new()
    };
    let payment = |number: u64| Payment {
        id: uetr(u128::from(number)),
        receiver: bic(b"BRAVFRPPXXX"),
        amount: AmountMinor::new(1000 + number).unwrap(),
        fields: if number == 2 { &body } else { b"" },
    };
    encode(&head(kind), &[payment(1), payment(2)])
}

fn context(numbers_messages: &dyn Fn(Bic) -> bool) -> Context<'_> {
    Context {
        sender: Some(bic(SENDER)),
        amount_max: AmountMinor::new(1_000_000).unwrap(),
        numbers_messages,
    }
}

/// Makes the digest fit again.
fn signed(mut bytes: Vec<u8>) -> Bytes {
    let digest = xxhash_rust::xxh3::xxh3_128(&bytes[18..]);
    bytes[2..18].copy_from_slice(&digest.to_le_bytes());
    Bytes::from(bytes)
}

fn taken(bytes: Vec<u8>) -> Submission {
    read(signed(bytes), &Limits::default(), &context(&|_| false)).unwrap()
}

fn changed(at: usize, with: &[u8]) -> Submission {
    let mut bytes = package(MessageKind::BankTransfer);
    bytes[at..at + with.len()].copy_from_slice(with);
    taken(bytes)
}

fn first_of(submission: &Submission) -> Option<Reason> {
    submission.payments[0].faults.first()
}

#[test]
fn faults_are_those_of_xml() {
    let good = taken(package(MessageKind::BankTransfer));
    assert!(good.faults.is_empty());
    assert!(
        good.payments
            .iter()
            .all(|payment| payment.faults.is_empty())
    );
    assert_eq!(good.sequence, None);
    let numbered = read(
        signed(package(MessageKind::BankTransfer)),
        &Limits::default(),
        &context(&|_| true),
    );
    assert_eq!(numbered.unwrap().sequence, Some(7));

    assert_eq!(
        changed(COUNT_AT, &[3]).faults.first(),
        Some(Reason::CountMismatch)
    );
    assert_eq!(
        changed(SUM_AT, &[3]).faults.first(),
        Some(Reason::ControlSumMismatch)
    );
    let other = changed(2 + 16 + 1, b"CHARESMMXXX");
    assert_eq!(other.faults.first(), Some(Reason::SenderUnknown));
    assert_eq!(other.sender, bic(SENDER));
    for (at, with, reason) in [
        (RECORDS_AT, &[0; 16][..], Reason::IdMissing),
        (RECORDS_AT, &[1; 16], Reason::IdMissing),
        (RECORDS_AT + 16, b"bravfrppxxx", Reason::ReceiverInvalid),
        (RECORDS_AT + 16, SENDER, Reason::SameParticipant),
        (RECORDS_AT + 27, &[0; 8], Reason::AmountZero),
        (RECORDS_AT + 27, &[0xFF; 8], Reason::AmountTooLarge),
        (
            RECORDS_AT + 27,
            &2_000_000_u64.to_le_bytes(),
            Reason::AmountTooLarge,
        ),
        (COUNT_AT - 7, b"XQX", Reason::CurrencyInvalid),
        (COUNT_AT - 4, &[0xFF; 4], Reason::DateInvalid),
    ] {
        assert_eq!(first_of(&changed(at, with)), Some(reason), "{reason:?}");
    }
    let mut twins = package(MessageKind::BankTransfer);
    let (first, second) = (RECORDS_AT..RECORDS_AT + 16, RECORDS_AT + 37);
    twins.copy_within(first, second);
    let twins = taken(twins);
    assert!(twins.payments[0].faults.is_empty());
    assert_eq!(
        twins.payments[1].faults.first(),
        Some(Reason::DuplicateInMessage)
    );
}

#[test]
fn what_cannot_be_read_says_why() {
    let fault =
        |bytes: Vec<u8>| read(signed(bytes), &Limits::default(), &context(&|_| false)).unwrap_err();
    let mut other = package(MessageKind::BankTransfer);
    other[18] = 3;
    let found = fault(other);
    assert_eq!(found.reason, Reason::MessageNotSupported);
    assert_eq!(found.message_id.as_deref(), Some("ALFA-007"));
    // The last record's text is longer than the heap.
    let mut longer = package(MessageKind::BankTransfer);
    longer[RECORDS_AT + 37 + 35] = 1;
    assert_eq!(fault(longer).reason, Reason::Syntax);
    // Names in a transfer between institutions.
    let mut names = package(MessageKind::CustomerTransfer);
    names[18] = 1;
    assert_eq!(fault(names).reason, Reason::Syntax);
    let few = Limits {
        payments_max: 1,
        ..Limits::default()
    };
    let bytes = signed(package(MessageKind::BankTransfer));
    assert!(read(bytes, &few, &context(&|_| false)).is_err());
}

/// What a receiver gets is XML that reads as the records say.
#[test]
fn fields_become_xml_that_says_the_same() {
    for (kind, root) in [
        (MessageKind::CustomerTransfer, "FIToFICstmrCdtTrf"),
        (MessageKind::BankTransfer, "FICdtTrf"),
    ] {
        let mut submission = taken(package(kind));
        submission.heap = clearspan_codec::heap::unpack(&submission.heap).unwrap();
        let packed = submission.clone();
        fields::expand(&mut submission);
        let start = usize::try_from(submission.payments[0].body_offset).unwrap();
        let bodies = std::str::from_utf8(&submission.heap[start..]).unwrap();
        let xml = format!(
            "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:{}.001.08\"><{root}><GrpHdr><MsgId>ALFA-007</MsgId>\
             <CreDtTm>2026-11-30T08:00:00Z</CreDtTm><NbOfTxs>2</NbOfTxs><IntrBkSttlmDt>2026-11-30</IntrBkSttlmDt>\
             <SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf></GrpHdr>{bodies}</{root}></Document>",
            kind.name()
        );
        let numbers_messages = |_| false;
        let read = clearspan_iso20022::read::read(
            xml.as_bytes(),
            &Limits::default(),
            &context(&numbers_messages),
        );
        let Ok(Incoming::Submission(read)) = read else {
            panic!("{read:?}: {xml}");
        };
        assert_eq!(read.submission.kind, packed.kind);
        assert!(read.submission.faults.is_empty(), "{:?}", read.notes);
        for (xml, record) in read.submission.payments.iter().zip(&packed.payments) {
            assert_eq!(
                (
                    xml.id,
                    xml.amount,
                    xml.currency,
                    xml.receiver,
                    xml.date,
                    xml.faults
                ),
                (
                    record.id,
                    record.amount,
                    record.currency,
                    record.receiver,
                    record.date,
                    record.faults
                )
            );
        }
        let context = clearspan_iso20022::read::heap::heap_context(&submission.heap).unwrap();
        assert!(context.group_part("IntrBkSttlmDt").is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Hostile bytes with a digest that fits get an answer.
    #[test]
    fn any_change_has_an_answer(changes in prop::collection::vec((any::<Index>(), any::<u8>()), 1..8)) {
        let mut bytes = package(MessageKind::CustomerTransfer);
        for (at, value) in changes {
            let at = 18 + at.index(bytes.len() - 18);
            bytes[at] = value;
        }
        if let Ok(submission) = read(signed(bytes), &Limits::default(), &context(&|_| false)) {
            let mut whole = submission.clone();
            whole.heap = clearspan_codec::heap::unpack(&whole.heap).unwrap();
            fields::expand(&mut whole);
            prop_assert_eq!(whole.payments.len(), submission.payments.len());
        }
    }
}
