//! How many notices, statuses and forwarded payments one core writes in a second.
//!
//! `cargo bench -p clearspan-iso20022 --bench write`; each figure is the best of five runs over one reused buffer.

use std::time::Duration;

use clearspan_iso20022::read::heap::heap_context;
use clearspan_iso20022::read::{Context, Incoming, Limits, read};
use clearspan_iso20022::write::*;
use clearspan_ledger::message::MessageKind;
use clearspan_ledger::{
    AmountMinor, Bic, BusinessDate, Currency, CycleNumber, LogIndex, PaymentId, Reason, ShardId,
    Timestamp,
};

const PAGES: u64 = 400;
const PER_PAGE: u64 = 1000;
const RUNS: usize = 5;

#[expect(
    clippy::disallowed_methods,
    reason = "a bench measures with the machine's clock"
)]
fn time(work: &mut impl FnMut(u64)) -> Duration {
    let start = std::time::Instant::now();
    for page in 0..PAGES {
        work(page);
    }
    start.elapsed()
}

fn measure(name: &str, mut work: impl FnMut(&mut Vec<u8>, u64)) {
    let mut out = Vec::new();
    let mut len_bytes = 0;
    let best = (0..RUNS)
        .map(|_| {
            time(&mut |page| {
                out.clear();
                work(&mut out, page);
                len_bytes = out.len();
            })
        })
        .min()
        .unwrap_or_default();
    let payments = (PAGES * PER_PAGE) as f64;
    let per_second = payments / best.as_secs_f64();
    let bytes_each = len_bytes as f64 / PER_PAGE as f64;
    println!(
        "{name:<40} {per_second:>12.0}/s  {:>7.0} ns each  {bytes_each:>6.0} bytes each  {:>6.0} MB/s",
        1e9 / per_second,
        per_second * bytes_each / 1e6
    );
}

fn bic(code: &[u8]) -> Bic {
    Bic::parse(code).expect("a BIC")
}

fn main() {
    let to = bic(b"ALFADEFF");
    let currency = Currency::parse(b"EUR").expect("a currency");
    let date = BusinessDate::from_days(20_787);
    let at = Timestamp::from_ns(1_796_025_600_123_456_789);
    let finality = |number| Finality {
        shard: ShardId::new(3),
        index: LogIndex::new(number),
    };
    let id = |number: u64| {
        PaymentId::Uetr(0x8a56_2c67_ca16_48ba_b074_0000_0000_0000 | u128::from(number))
    };
    let detail = |number: u64| EntryDetail {
        message_id: None,
        instruction_id: None,
        end_to_end_id: Some("E2E-2026-11-30-0000001"),
        transaction_id: Some("TX-2026-11-30-000000001"),
        id: id(number),
        finality: Some(finality(number)),
        amount: AmountMinor::new(100 + number * 37).unwrap_or_default(),
        counterparty: bic(b"BETAFRPP"),
    };
    let page = |version, number| Notification {
        version,
        account: Account {
            id: "ALFADEFFXXX-EUR",
            currency,
            owner: to,
        },
        page: Page {
            number: u16::try_from(number + 1).unwrap_or(u16::MAX),
            last: false,
        },
        sequence: Some(number),
        totals: Totals {
            credits: PER_PAGE,
            credit_sum: 123_456_789,
            debits: 0,
            debit_sum: 0,
        },
        query: None,
    };

    measure("camt.054.001.08, one batch entry a page", |out, number| {
        let message_id = output_message_id(date, to, number);
        let entry = Entry {
            reference: "42-1",
            amount: 123_456_789,
            direction: Direction::Credit,
            booked: at,
            value_date: date,
            cycle: Some(CycleNumber::new(42)),
            finality: finality(number),
            code: BankCode::TransferReceived,
            batch_count: Some(PER_PAGE),
            details: (0..PER_PAGE).map(|place| detail(number * PER_PAGE + place)),
        };
        notification(
            out,
            &head(message_id.as_str()),
            &page(CashVersion::V08, number),
            [entry],
        );
    });
    measure("camt.054.001.08, one entry a payment", |out, number| {
        let message_id = output_message_id(date, to, number);
        let entries = (0..PER_PAGE).map(|place| Entry {
            reference: "20261130-000001",
            amount: u128::from(100 + place),
            direction: Direction::Credit,
            booked: at.plus_ns(place * 1000),
            value_date: date,
            cycle: None,
            finality: finality(number * PER_PAGE + place),
            code: BankCode::TransferReceived,
            batch_count: None,
            details: [detail(number * PER_PAGE + place)],
        });
        notification(
            out,
            &head(message_id.as_str()),
            &page(CashVersion::V08, number),
            entries,
        );
    });
    measure("pacs.002.001.10, settled", |out, number| {
        let message_id = output_message_id(date, to, number);
        let report = report(PER_PAGE);
        let payments = (0..PER_PAGE).map(|place| PaymentStatus {
            instruction_id: None,
            end_to_end_id: Some("E2E-2026-11-30-0000001"),
            transaction_id: Some("TX-2026-11-30-000000001"),
            id: id(place),
            status: Status::Settled,
            reason: None,
            accepted: Some(at),
            effective: Some(EffectiveDate::At(at.plus_ns(number))),
            cycle: Some(CycleNumber::new(42)),
            finality: Some(finality(number)),
        });
        status_report(out, &head(message_id.as_str()), &report, payments);
    });
    measure("pacs.002.001.10, refused", |out, number| {
        let message_id = output_message_id(date, to, number);
        let report = report(PER_PAGE);
        let payments = (0..PER_PAGE).map(|place| PaymentStatus {
            instruction_id: None,
            end_to_end_id: Some("E2E-2026-11-30-0000001"),
            transaction_id: Some("TX-2026-11-30-000000001"),
            id: id(place),
            status: Status::Rejected,
            reason: Some(Reason::DecimalsExceeded.into()),
            accepted: None,
            effective: None,
            cycle: None,
            finality: None,
        });
        status_report(out, &head(message_id.as_str()), &report, payments);
    });
    passed_on(date, to);
}

/// A payment of some 800 bytes, passed on in pages and one by one.
fn passed_on(date: BusinessDate, to: Bic) {
    let agent = "<FinInstnId><BICFI>ALFADEFF</BICFI></FinInstnId>";
    let body = format!(
        "<CdtTrfTxInf><PmtId><EndToEndId>E2E</EndToEndId><TxId>TX</TxId></PmtId>\
         <IntrBkSttlmAmt Ccy=\"EUR\">12.34</IntrBkSttlmAmt><ChrgBr>SLEV</ChrgBr><Dbtr><Nm>A</Nm></Dbtr>\
         <DbtrAgt>{agent}</DbtrAgt><CdtrAgt>{agent}</CdtrAgt><Cdtr><Nm>B</Nm></Cdtr>\
         <RmtInf>{}</RmtInf></CdtTrfTxInf>",
        format!("<Ustrd>{}</Ustrd>", "x".repeat(135)).repeat(3)
    );
    let sent = format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08\"><FIToFICstmrCdtTrf><GrpHdr>\
         <MsgId>M</MsgId><CreDtTm>2026-11-30T08:00:00Z</CreDtTm><NbOfTxs>1</NbOfTxs>\
         <IntrBkSttlmDt>2026-11-30</IntrBkSttlmDt><SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf>\
         </GrpHdr>{body}</FIToFICstmrCdtTrf></Document>"
    );
    let context = Context {
        sender: Some(to),
        amount_max: AmountMinor::MAX,
        numbers_messages: &|_| false,
    };
    let Ok(Incoming::Submission(read)) = read(sent.as_bytes(), &Limits::default(), &context) else {
        panic!("the payment was not read");
    };
    let heap = read.submission.heap;
    let group = |count| ForwardGroup {
        definition: Definition {
            kind: MessageKind::CustomerTransfer,
            version: 8,
        },
        count,
        total: Currency::parse(b"EUR").map(|currency| (1234, currency)),
        date: Some(date),
        sender: to,
        receiver: bic(b"BETAFRPP"),
    };
    measure("pacs.008.001.08 passed on, a page each", |out, number| {
        let message_id = output_message_id(date, to, number);
        let context = heap_context(&heap).expect("a heap");
        let transactions = (0..PER_PAGE).map(|_| body.as_bytes());
        forward(
            out,
            &head(message_id.as_str()),
            &context,
            &group(PER_PAGE),
            transactions,
        );
    });
    measure("pacs.008.001.08 passed on, one each", |out, number| {
        for place in 0..PER_PAGE {
            let message_id = output_message_id(date, to, number * PER_PAGE + place);
            let context = heap_context(&heap).expect("a heap");
            forward(
                out,
                &head(message_id.as_str()),
                &context,
                &group(1),
                [body.as_bytes()],
            );
        }
    });
}

fn head(message_id: &str) -> Head<'_> {
    Head {
        from: bic(b"CLRSDEFF"),
        to: bic(b"ALFADEFF"),
        message_id,
        created: Timestamp::from_ns(1_796_025_600_123_456_789),
        service: None,
        possible_duplicate: false,
        framing: Framing::Envelope,
    }
}

fn report(count: u64) -> StatusReport<'static> {
    StatusReport {
        version: StatusVersion::V10,
        original: OriginalMessage {
            message_id: "ALFA-2026-11-30-0001",
            definition: Definition {
                kind: MessageKind::CustomerTransfer,
                version: 8,
            },
            created: None,
            count: Some(count),
            sum: None,
        },
        status: None,
        reason: None,
        counts: &[],
    }
}
