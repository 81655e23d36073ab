//! JSON and XML are two spellings of one message.

use clearspan_ledger::message::{Class, MessageKind, Settlement};
use clearspan_ledger::{AmountMinor, Bic, Reason, Timestamp};

use super::{Message, place, to_xml};
use crate::read::{Context, Fault, Incoming, Limits, Submitted, read};

const TRANSFER: &str = r#"{ "transfer": {
  "message_id": "ALFA-1", "business_date": "2026-11-30", "settlement": "urgent", "settle_or_refuse": true,
  "payments": [
    { "uetr": "8a562c67-ca16-48ba-b074-65581be6f001", "transaction_id": "T-1", "end_to_end_id": "INVOICE-7",
      "amount": { "currency": "EUR", "value": "1250.00" }, "receiver": "BRAVFRPPXXX",
      "debtor": { "name": "Ute & Söhne <GmbH>", "iban": "DE89370400440532013000" },
      "creditor": { "name": "Inês Simões", "account": "77-1" }, "reject_time": "10:30:00Z", "remittance": "INV 7" },
    { "transaction_id": "T-2", "amount": { "currency": "JPY", "value": "5" }, "receiver": "BRAVFRPPXXX",
      "debtor": { "name": "A" }, "creditor": { "name": "B" } }
  ] } }"#;

fn sender() -> Bic {
    Bic::parse(b"ALFADEFFXXX").unwrap()
}

fn read_xml(xml: &[u8]) -> Result<Incoming, Box<Fault>> {
    read_from(sender(), xml)
}

fn read_from(sender: Bic, xml: &[u8]) -> Result<Incoming, Box<Fault>> {
    let context = Context {
        sender: Some(sender),
        amount_max: AmountMinor::MAX,
        numbers_messages: &|_| false,
    };
    read(xml, &Limits::default(), &context)
}

fn taken(json: &str, created_ns: u64) -> Submitted {
    let message = Message::parse(json.as_bytes()).unwrap();
    let xml = to_xml(&message, sender(), Timestamp::from_ns(created_ns));
    match read_xml(&xml).unwrap() {
        Incoming::Submission(submitted) => submitted,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_package_is_read_as_its_xml_is() {
    let submitted = taken(TRANSFER, 1);
    assert_eq!(submitted.notes, []);
    let submission = &submitted.submission;
    assert_eq!(submission.kind, MessageKind::CustomerTransfer);
    assert_eq!(
        submission.settlement,
        Settlement::Gross {
            class: Class::Urgent,
            settle_or_refuse: true
        }
    );
    let amounts: Vec<u64> = submission
        .payments
        .iter()
        .map(|payment| payment.amount.minor())
        .collect();
    assert_eq!(amounts, [125_000, 5]);
    let heap = String::from_utf8_lossy(&submission.heap).into_owned();
    for part in [
        "Ute &amp; Söhne &lt;GmbH&gt;",
        "DE89370400440532013000",
        "77-1",
        "INV 7",
        "Inês",
    ] {
        assert!(heap.contains(part), "{part}: {heap}");
    }
}

#[test]
fn a_resend_has_the_same_digest_whenever_it_is_written() {
    let (first, second) = (taken(TRANSFER, 1), taken(TRANSFER, 2_000_000_000));
    assert_eq!(first.submission.digest, second.submission.digest);
}

#[test]
fn returns_cancellations_and_requests_are_read() {
    let returned = taken(
        r#"{ "return": { "message_id": "R-1", "business_date": "2026-11-30", "payments": [
            { "return_id": "R-1.1", "original": { "uetr": "8a562c67-ca16-48ba-b074-65581be6f001" },
              "amount": { "currency": "EUR", "value": "1.50" }, "reason": "FOCR", "receiver": "BRAVFRPPXXX" }] } }"#,
        1,
    );
    assert_eq!(returned.notes, []);
    assert_eq!(returned.submission.kind, MessageKind::Return);
    let cancelled = taken(
        r#"{ "cancellation": { "message_id": "C-1", "payments": [
            { "cancellation_id": "C-1.1", "original": { "transaction_id": "T-2" },
              "amount": { "currency": "JPY", "value": "5" }, "business_date": "2026-11-30", "reason": "CUST" }] } }"#,
        1,
    );
    assert_eq!(cancelled.notes, []);
    assert_eq!(cancelled.submission.kind, MessageKind::Cancellation);
    let request = r#"{ "status_request": { "message_id": "Q-1", "payments": [{ "transaction_id": "T-2" }] } }"#;
    let message = Message::parse(request.as_bytes()).unwrap();
    let read = read_xml(&to_xml(&message, sender(), Timestamp::from_ns(1))).unwrap();
    assert!(
        matches!(read, Incoming::StatusRequest(ref request) if request.payments.len() == 1),
        "{read:?}"
    );
}

#[test]
fn another_form_is_refused_with_its_place() {
    let cases = [
        (
            r#""value": "1250.00""#,
            r#""value": 1250.00"#,
            "transfer.payments[0].amount.value",
        ),
        (
            r#""value": "5""#,
            r#""value": "5", "cents": 0"#,
            "transfer.payments[1].amount.cents",
        ),
        (
            r#""settlement": "urgent""#,
            r#""settlement": "now""#,
            "transfer.settlement",
        ),
        (
            r#""name": "B""#,
            r#""nme": "B""#,
            "transfer.payments[1].creditor.nme",
        ),
    ];
    for (from, to, place) in cases {
        let fault = Message::parse(TRANSFER.replacen(from, to, 1).as_bytes()).unwrap_err();
        assert_eq!(fault.place, place, "{fault}");
    }
    assert!(Message::parse(b"").is_err());
    assert!(Message::parse(format!("{TRANSFER} x").as_bytes()).is_err());
    assert!(Message::parse(br#"{ "transfer": {}, "return": {} }"#).is_err());
}

#[test]
fn values_have_the_codes_of_xml_and_a_place_in_json() {
    let cases = [
        (
            r#""value": "1250.00""#,
            r#""value": "1250.001""#,
            Reason::DecimalsExceeded,
            "transfer.payments[0].amount",
        ),
        (
            r#""value": "1250.00""#,
            r#""value": "0.00""#,
            Reason::AmountZero,
            "transfer.payments[0].amount",
        ),
        (
            r#""value": "1250.00""#,
            r#""value": "1e3""#,
            Reason::AmountInvalid,
            "transfer.payments[0].amount",
        ),
        (
            r#""currency": "JPY""#,
            r#""currency": "XYZ""#,
            Reason::CurrencyInvalid,
            "transfer.payments[1].amount",
        ),
        (
            "65581be6f001",
            "65581BE6F001",
            Reason::IdInvalid,
            "transfer.payments[0].uetr",
        ),
        (
            r#""reject_time": "10:30:00Z""#,
            r#""reject_time": "10:30""#,
            Reason::FieldInvalid,
            "transfer.payments[0].reject_time",
        ),
    ];
    for (from, to, reason, wanted) in cases {
        let json = TRANSFER.replacen(from, to, 1);
        let message = Message::parse(json.as_bytes()).unwrap();
        let submitted = taken(&json, 1);
        let note = &submitted.notes[0];
        assert_eq!(
            (note.reason, place(&message, &note.path).as_str()),
            (reason, wanted),
            "{to}"
        );
    }
    // What makes the whole message unreadable.
    for (from, to, reason) in [
        (r#""ALFA-1""#, r#""""#, Reason::MessageIdInvalid),
        (r#""INV 7""#, r#""\u0001""#, Reason::Syntax),
    ] {
        let json = TRANSFER.replacen(from, to, 1);
        let message = Message::parse(json.as_bytes()).unwrap();
        let fault = read_xml(&to_xml(&message, sender(), Timestamp::from_ns(1))).unwrap_err();
        assert_eq!(fault.reason, reason, "{fault}");
        assert!(
            place(&message, &fault.path).starts_with("transfer"),
            "{fault}"
        );
    }
}

#[test]
fn the_examples_are_read_without_a_fault() {
    for json in [
        include_str!("../../../../examples/json/payment.json"),
        include_str!("../../../../examples/json/package.json"),
        include_str!("../../../../examples/json/return.json"),
        include_str!("../../../../examples/json/cancellation.json"),
        include_str!("../../../../examples/json/status-request.json"),
    ] {
        let message = Message::parse(json.as_bytes()).unwrap();
        // Who was paid is who returns.
        let sender = match message {
            Message::Return(_) => Bic::parse(b"BRAVFRPPXXX").unwrap(),
            _ => sender(),
        };
        let xml = to_xml(&message, sender, Timestamp::from_ns(1));
        match read_from(sender, &xml).unwrap() {
            Incoming::Submission(submitted) => assert_eq!(submitted.notes, [], "{json}"),
            Incoming::StatusRequest(request) => assert_eq!(request.payments.len(), 2),
            other => panic!("{other:?}"),
        }
    }
}
