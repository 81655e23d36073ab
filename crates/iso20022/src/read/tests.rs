//! What reading promises, message by message.

mod corpus;
mod places;
mod rules;

use clearspan_ledger::message::{PaymentRecord, Submission};
use clearspan_ledger::{AmountMinor, Bic, Reason};

use super::{Context, Fault, Incoming, Limits, Submitted, heap, read};

const BANK: &str = "<FinInstnId><BICFI>ALFADEFF</BICFI></FinInstnId>";
const PARTY: &str = "<Nm>Somebody</Nm>";

/// A transaction of pacs.008.001.08 with one UETR per number.
fn transaction(number: u32, amount: &str) -> String {
    format!(
        "<CdtTrfTxInf><PmtId><InstrId>I-{number}</InstrId><EndToEndId>E-{number}</EndToEndId><TxId>T-{number}</TxId>\
         <UETR>8a562c67-ca16-48ba-b074-{number:012x}</UETR></PmtId>\
         <IntrBkSttlmAmt Ccy=\"EUR\">{amount}</IntrBkSttlmAmt><IntrBkSttlmDt>2026-11-30</IntrBkSttlmDt><ChrgBr>SLEV</ChrgBr>\
         <InstgAgt>{BANK}</InstgAgt><InstdAgt><FinInstnId><BICFI>BETAFRPPXXX</BICFI></FinInstnId></InstdAgt>\
         <Dbtr>{PARTY}</Dbtr><DbtrAgt>{BANK}</DbtrAgt><CdtrAgt>{BANK}</CdtrAgt><Cdtr>{PARTY}</Cdtr>\
         <RmtInf><Ustrd>Invoice {number}</Ustrd></RmtInf></CdtTrfTxInf>"
    )
}

fn group(count: usize) -> String {
    format!(
        "<GrpHdr><MsgId>ALFA-1</MsgId><CreDtTm>2026-11-30T08:00:00.123456789</CreDtTm><NbOfTxs>{count}</NbOfTxs>\
         <SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf></GrpHdr>"
    )
}

/// pacs.008.001.08 with `count` payments of 10.00 EUR.
fn message(count: u32) -> String {
    let transactions: String = (1..=count)
        .map(|number| transaction(number, "10.00"))
        .collect();
    document(&group(usize::try_from(count).unwrap_or(0)), &transactions)
}

fn document(group: &str, transactions: &str) -> String {
    format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08\"><FIToFICstmrCdtTrf>{group}{transactions}\
         </FIToFICstmrCdtTrf></Document>"
    )
}

fn header(from: &str, definition: &str, more: &str) -> String {
    format!(
        "<AppHdr xmlns=\"urn:iso:std:iso:20022:tech:xsd:head.001.001.02\">\
         <Fr><FIId><FinInstnId><BICFI>{from}</BICFI></FinInstnId></FIId></Fr>\
         <To><FIId><FinInstnId><BICFI>CLRSDEFF</BICFI></FinInstnId></FIId></To>\
         <BizMsgIdr>B-1</BizMsgIdr><MsgDefIdr>{definition}</MsgDefIdr><CreDt>2026-11-30T08:00:00Z</CreDt>{more}</AppHdr>"
    )
}

fn bic(text: &str) -> Bic {
    Bic::parse(text.as_bytes()).unwrap()
}

fn read_with(text: &str, sender: Option<&str>, numbers: bool) -> Result<Incoming, Box<Fault>> {
    let context = Context {
        sender: sender.map(bic),
        amount_max: AmountMinor::new(100_000_000_000).unwrap(),
        numbers_messages: &|_| numbers,
    };
    read(text.as_bytes(), &Limits::default(), &context)
}

fn submitted(text: &str) -> Submitted {
    match read_with(text, Some("ALFADEFF"), false) {
        Ok(Incoming::Submission(submitted)) => submitted,
        other => panic!("{other:?}\n{text}"),
    }
}

fn submission(text: &str) -> Submission {
    submitted(text).submission
}

fn refused(text: &str) -> Fault {
    match read_with(text, Some("ALFADEFF"), false) {
        Err(fault) => *fault,
        Ok(read) => panic!("{read:?}\n{text}"),
    }
}

fn faults(record: &PaymentRecord) -> Vec<Reason> {
    record.faults.iter().collect()
}

#[test]
fn a_package_is_read() {
    let text = message(3);
    let read = submitted(&text);
    let submission = &read.submission;
    assert!(read.notes.is_empty(), "{:?}", read.notes);
    assert!(submission.faults.is_empty());
    assert_eq!(submission.message_id.as_str(), "ALFA-1");
    assert_eq!(submission.sender, bic("ALFADEFFXXX"));
    assert_eq!(submission.version, 8);
    assert_eq!(submission.payments.len(), 3);
    for (number, payment) in (1..).zip(&submission.payments) {
        assert!(payment.faults.is_empty());
        assert_eq!(
            payment.id.to_string(),
            format!("8a562c67-ca16-48ba-b074-{number:012x}")
        );
        assert_eq!(payment.amount.minor(), 1000);
        assert_eq!(payment.currency.as_str(), "EUR");
        assert_eq!(payment.receiver, Some(bic("BETAFRPP")));
        assert_eq!(
            payment.date.map(|date| date.to_string()).as_deref(),
            Some("2026-11-30")
        );
        let body =
            heap::transaction(&submission.heap, payment.body_offset, payment.body_len).unwrap();
        assert_eq!(
            std::str::from_utf8(body).unwrap(),
            transaction(number, "10.00")
        );
    }
}
