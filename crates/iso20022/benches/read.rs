//! Reading a package of 1,000 payments, beside plain tokenising of the same bytes in the same run.

use std::fmt::Write;
use std::hint::black_box;
use std::time::Duration;
use std::time::Instant;

use clearspan_iso20022::read::{Context, Incoming, Limits, read};
use clearspan_ledger::AmountMinor;
use quick_xml::events::Event;
use quick_xml::reader::Reader;

const PAYMENTS: u32 = 1000;

/// A package as banks write them: structured addresses, accounts, remittance. `pretty`: one element per line.
fn package(payments: u32, pretty: bool, prefix: &str) -> String {
    let agent = |bic: &str| format!("<FinInstnId><BICFI>{bic}</BICFI></FinInstnId>");
    let party = |name: &str| {
        format!(
            "<Nm>{name}</Nm><PstlAdr><StrtNm>Long Street</StrtNm><BldgNb>17</BldgNb><PstCd>60311</PstCd>\
             <TwnNm>Frankfurt</TwnNm><Ctry>DE</Ctry></PstlAdr>"
        )
    };
    let mut text = format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08\"><FIToFICstmrCdtTrf><GrpHdr>\
         <MsgId>ALFA-20261130-1</MsgId><CreDtTm>2026-11-30T08:00:00Z</CreDtTm><NbOfTxs>{payments}</NbOfTxs>\
         <SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf><InstgAgt>{}</InstgAgt></GrpHdr>",
        agent("ALFADEFFXXX")
    );
    for number in 0..payments {
        let _ = write!(
            text,
            "<CdtTrfTxInf><PmtId><InstrId>INSTR-{number:08}</InstrId><EndToEndId>E2E-{number:012}</EndToEndId>\
             <TxId>TX-{number:012}</TxId><UETR>8a562c67-ca16-48ba-b074-{number:012x}</UETR></PmtId>\
             <PmtTpInf><SvcLvl><Cd>SEPA</Cd></SvcLvl></PmtTpInf>\
             <IntrBkSttlmAmt Ccy=\"EUR\">{}.{:02}</IntrBkSttlmAmt><IntrBkSttlmDt>2026-11-30</IntrBkSttlmDt>\
             <ChrgBr>SLEV</ChrgBr><InstdAgt>{}</InstdAgt><Dbtr>{}</Dbtr>\
             <DbtrAcct><Id><IBAN>DE89370400440532013000</IBAN></Id></DbtrAcct><DbtrAgt>{}</DbtrAgt>\
             <CdtrAgt>{}</CdtrAgt><Cdtr>{}</Cdtr><CdtrAcct><Id><IBAN>FR7630006000011234567890189</IBAN></Id></CdtrAcct>\
             <RmtInf><Ustrd>Invoice {number} of 30 November, with thanks</Ustrd></RmtInf></CdtTrfTxInf>",
            number * 7 + 1,
            number % 100,
            agent("BETAFRPPXXX"),
            party("Mueller &amp; Sons"),
            agent("ALFADEFFXXX"),
            agent("BETAFRPPXXX"),
            party("Dupont et Fils"),
        );
    }
    text.push_str("</FIToFICstmrCdtTrf></Document>");
    if !prefix.is_empty() {
        text = text
            .replace("</", "\u{1}")
            .replace('<', &format!("<{prefix}:"))
            .replace('\u{1}', &format!("</{prefix}:"));
        text = text.replacen("xmlns=", &format!("xmlns:{prefix}="), 1);
    }
    if pretty {
        text = text.replace("><", ">\n            <");
    }
    text
}

/// The best of many runs, in which neither side waits for the other core.
#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn best(mut run: impl FnMut()) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..60 {
        let begun = Instant::now();
        run();
        best = best.min(begun.elapsed());
    }
    best
}

/// Plain tokenising, with quick-xml as it comes; the number of events.
fn tokenise(bytes: &[u8]) -> usize {
    let mut reader = Reader::from_reader(bytes);
    let mut events = 0;
    while !matches!(reader.read_event(), Ok(Event::Eof) | Err(_)) {
        events += 1;
    }
    events
}

fn main() {
    let limits = Limits::default();
    let context = Context {
        sender: None,
        amount_max: AmountMinor::MAX,
        numbers_messages: &|_| false,
    };
    for (name, text) in [
        ("compact", package(PAYMENTS, false, "")),
        ("pretty", package(PAYMENTS, true, "")),
        ("prefixed", package(PAYMENTS, false, "pacs")),
    ] {
        let bytes = text.as_bytes();
        let Ok(Incoming::Submission(submitted)) = read(bytes, &limits, &context) else {
            println!(
                "{name}: not read: {:?}",
                read(bytes, &limits, &context).err()
            );
            continue;
        };
        let submission = submitted.submission;
        assert!(submission.faults.is_empty());
        assert!(
            submission
                .payments
                .iter()
                .all(|payment| payment.faults.is_empty())
        );
        let tokenised = best(|| {
            black_box(tokenise(black_box(bytes)));
        });
        let read = best(|| {
            let _ = black_box(read(black_box(bytes), &limits, &context));
        });
        let per_second = |time: Duration, count: f64| count / time.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let megabytes = bytes.len() as f64 / 1e6;
        println!(
            "{name}: {megabytes:.2} MB; tokenise {:.0} MB/s; read {:.0} MB/s, {:.0} payments/s; ratio {:.2}",
            per_second(tokenised, megabytes),
            per_second(read, megabytes),
            per_second(read, f64::from(PAYMENTS)),
            tokenised.as_secs_f64() / read.as_secs_f64(),
        );
    }
    // The urgent path: one payment in a message.
    let single = package(1, false, "");
    let time = best(|| {
        for _ in 0..100 {
            let _ = black_box(read(black_box(single.as_bytes()), &limits, &context));
        }
    });
    println!(
        "single: {} bytes; {:.2} us",
        single.len(),
        time.as_secs_f64() * 1e4
    );
    for (name, text) in hostile() {
        let bytes = text.as_bytes();
        let time = best(|| {
            let _ = black_box(read(black_box(bytes), &limits, &context));
        });
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let megabytes = bytes.len() as f64 / 1e6;
        let outcome = match read(bytes, &limits, &context) {
            Ok(_) => "read".to_owned(),
            Err(fault) => fault.detail.into_owned(),
        };
        println!(
            "hostile {name}: {megabytes:.2} MB; {:.0} MB/s; {outcome}",
            megabytes / time.as_secs_f64()
        );
    }
}

/// Messages that are made to cost: each fills one transaction's supplementary data, or every payment, with one thing.
fn hostile() -> Vec<(&'static str, String)> {
    let plain = package(PAYMENTS, false, "");
    let mark = "<RmtInf><Ustrd>Invoice 0 of 30 November, with thanks</Ustrd></RmtInf>";
    let filled = |part: String| {
        plain.replacen(
            mark,
            &format!("{mark}<SplmtryData><Envlp>{part}</Envlp></SplmtryData>"),
            1,
        )
    };
    let declared = |count: u32| -> String {
        (0..count)
            .map(|n| format!(" xmlns:p{n:02}=\"urn:{n:02}\""))
            .collect()
    };
    let scopes: String = (0..3)
        .map(|level| {
            format!(
                "<a{}>",
                declared(60).replace("urn:", &format!("urn:{level}"))
            )
        })
        .collect();
    vec![
        (
            "namespaces declared again and again",
            filled("<a xmlns:a=\"urn:00\"/>".repeat(40_000)),
        ),
        (
            "prefixes far out, by turns",
            filled(format!(
                "<z{}>{scopes}{}</a></a></a></z>",
                declared(60),
                "<p00:a/><p01:a/><b/>".repeat(40_000)
            )),
        ),
        (
            "attributes",
            filled(
                format!(
                    "<a{}/>",
                    (0..60)
                        .map(|n| format!(" a{n:02}=\"\""))
                        .collect::<String>()
                )
                .repeat(2000),
            ),
        ),
        (
            "depth",
            filled(format!("{}{}", "<a>".repeat(24), "</a>".repeat(24)).repeat(4000)),
        ),
        (
            "entities",
            filled(format!("<a>{}</a>", "&amp;".repeat(4000)).repeat(40)),
        ),
        ("comments", filled("<!---->".repeat(150_000))),
        (
            "texts in pieces",
            filled(format!("<a>{}</a>", "x<![CDATA[]]>".repeat(4000)).repeat(20)),
        ),
        (
            "one long namespace, many elements",
            filled(format!(
                "<a xmlns:p=\"urn:{}\">{}</a>",
                "x".repeat(1000),
                "<p:b/>".repeat(200_000)
            )),
        ),
        (
            "every amount wrong",
            plain.replace("Ccy=\"EUR\">", "Ccy=\"EUR\">x"),
        ),
        (
            "every identifier the same",
            plain
                .replace("b074-", "b074-0")
                .replace("000</UETR>", "</UETR>")
                .replace("<UETR>", "<UETR>x"),
        ),
    ]
}
