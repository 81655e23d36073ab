//! Payments passed on: the bytes and what the names in them mean.

use clearspan_iso20022::read::heap::{heap_context, transaction};
use clearspan_iso20022::read::{Context, Incoming, Limits, read};
use clearspan_iso20022::write::*;
use clearspan_ledger::AmountMinor;
use quick_xml::events::Event;
use quick_xml::name::ResolveResult;
use quick_xml::reader::NsReader;

use crate::samples::{bic, currency, day, head};

const STEM: &str = "urn:iso:std:iso:20022:tech:xsd:";

/// A transaction as a sender writes it, with comments, blanks, CDATA and foreign XML of its own.
const TRANSFER: &str = "<CdtTrfTxInf>\n  <PmtId><EndToEndId>E2E &amp; 1</EndToEndId><TxId>TX-1</TxId>\
<UETR>8a562c67-ca16-48ba-b074-65581be6f001</UETR></PmtId><!-- kept -->\
<IntrBkSttlmAmt Ccy='EUR'>100.00</IntrBkSttlmAmt><ChrgBr>SLEV</ChrgBr>\
<Dbtr><Nm><![CDATA[Müller & Söhne]]></Nm></Dbtr><DbtrAgt><FinInstnId><BICFI>ALFADEFF</BICFI></FinInstnId></DbtrAgt>\
<CdtrAgt><FinInstnId><BICFI>BETAFRPP</BICFI></FinInstnId></CdtrAgt><Cdtr><Nm>B</Nm></Cdtr>\
<SplmtryData><Envlp><x xmlns=\"urn:other\" a=\"1\"/></Envlp></SplmtryData></CdtTrfTxInf>";

const PREFIXED: &str = "<p:CdtTrfTxInf><p:PmtId><p:EndToEndId>E2E</p:EndToEndId><p:TxId>TX-2</p:TxId></p:PmtId>\
<p:IntrBkSttlmAmt Ccy=\"EUR\">1</p:IntrBkSttlmAmt><p:ChrgBr>SLEV</p:ChrgBr><p:Dbtr/>\
<p:DbtrAgt><p:FinInstnId/></p:DbtrAgt><p:CdtrAgt><p:FinInstnId/></p:CdtrAgt><p:Cdtr/>\
<p:SplmtryData><p:Envlp><o:note o:kind=\"k\"><plain/></o:note></p:Envlp></p:SplmtryData></p:CdtTrfTxInf>";

const BANK_TRANSFER: &str = "<CdtTrfTxInf><PmtId><EndToEndId>E</EndToEndId><TxId>T</TxId></PmtId>\
<IntrBkSttlmAmt Ccy=\"EUR\">7.5</IntrBkSttlmAmt><IntrBkSttlmDt>2026-11-30</IntrBkSttlmDt>\
<InstgAgt><FinInstnId><BICFI>ALFADEFF</BICFI></FinInstnId></InstgAgt>\
<InstdAgt><FinInstnId><BICFI>BETAFRPP</BICFI></FinInstnId></InstdAgt>\
<Dbtr><FinInstnId><BICFI>ALFADEFF</BICFI></FinInstnId></Dbtr>\
<Cdtr><FinInstnId><BICFI>BETAFRPP</BICFI></FinInstnId></Cdtr></CdtTrfTxInf>";

const RETURN: &str = "<TxInf><RtrId>R1</RtrId><OrgnlTxId>T</OrgnlTxId>\
<RtrdIntrBkSttlmAmt Ccy=\"EUR\">7.5</RtrdIntrBkSttlmAmt>\
<RtrRsnInf><Rsn><Cd>AC04</Cd></Rsn></RtrRsnInf></TxInf>";

const RECALL: &str = "<TxInf><CxlId>C1</CxlId><OrgnlTxId>T</OrgnlTxId>\
<CxlRsnInf><Rsn><Cd>DUPL</Cd></Rsn></CxlRsnInf></TxInf>";

const GROUP: &str = "<GrpHdr><MsgId>ALFA-1</MsgId><CreDtTm>2026-11-30T08:00:00Z</CreDtTm><NbOfTxs>1</NbOfTxs>\
<IntrBkSttlmDt>2026-11-30</IntrBkSttlmDt><SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf>\
<PmtTpInf><InstrPrty>NORM</InstrPrty></PmtTpInf><InstgAgt><FinInstnId><BICFI>ALFADEFF</BICFI></FinInstnId></InstgAgt>\
<InstdAgt><FinInstnId><BICFI>BETAFRPP</BICFI></FinInstnId></InstdAgt></GrpHdr>";

const BARE_GROUP: &str = "<GrpHdr><MsgId>ALFA-2</MsgId><CreDtTm>2026-11-30T08:00:00Z</CreDtTm><NbOfTxs>1</NbOfTxs>\
<SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf></GrpHdr>";

const RETURN_GROUP: &str = "<GrpHdr><MsgId>ALFA-3</MsgId><CreDtTm>2026-11-30T08:00:00Z</CreDtTm><NbOfTxs>1</NbOfTxs>\
<IntrBkSttlmDt>2026-11-30</IntrBkSttlmDt><SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf>\
<InstgAgt><FinInstnId><BICFI>ALFADEFF</BICFI></FinInstnId></InstgAgt>\
<InstdAgt><FinInstnId><BICFI>BETAFRPP</BICFI></FinInstnId></InstdAgt></GrpHdr>\
<OrgnlGrpInf><OrgnlMsgId>M</OrgnlMsgId><OrgnlMsgNmId>pacs.008.001.08</OrgnlMsgNmId></OrgnlGrpInf>";

const ASSIGNMENT: &str = "<Assgnmt><Id>RECALL-1</Id><Assgnr><Agt><FinInstnId><BICFI>ALFADEFF</BICFI></FinInstnId></Agt></Assgnr>\
<Assgne><Agt><FinInstnId><BICFI>CLRSDEFF</BICFI></FinInstnId></Agt></Assgne><CreDtTm>2026-11-30T08:00:00Z</CreDtTm></Assgnmt>";

/// The group header with the prefix of [`PREFIXED`].
fn prefixed_group() -> String {
    GROUP
        .replace("</", "<\0")
        .replace('<', "<p:")
        .replace("<p:\0", "</p:")
}

/// A message as a sender sends it; `declarations` beside the document's own.
fn message(name: &str, prefix: &str, declarations: &str, root: &str, content: &str) -> String {
    let colon = if prefix.is_empty() { "" } else { ":" };
    let element = |local: &str| format!("{prefix}{colon}{local}");
    let (document, root) = (element("Document"), element(root));
    format!(
        "<{document} xmlns{colon}{prefix}=\"{STEM}{name}\"{declarations}><{root}>{content}</{root}></{document}>"
    )
}

/// Reads a message and passes all its transactions on.
fn pass_on(framing: Framing, sent: &str) -> Vec<u8> {
    let context = Context {
        sender: Some(bic("ALFADEFF")),
        amount_max: AmountMinor::MAX,
        numbers_messages: &|_| false,
    };
    let submission = match read(sent.as_bytes(), &Limits::default(), &context) {
        Ok(Incoming::Submission(read)) => read.submission,
        other => panic!("{other:?}\n{sent}"),
    };
    let group = ForwardGroup {
        definition: Definition {
            kind: submission.kind,
            version: submission.version,
        },
        count: u64::try_from(submission.payments.len()).unwrap(),
        total: Some((
            submission
                .payments
                .iter()
                .map(|payment| u128::from(payment.amount.minor()))
                .sum(),
            currency("EUR"),
        )),
        date: Some(day()),
        sender: bic("ALFADEFF"),
        receiver: bic("BETAFRPP"),
    };
    let transactions = submission.payments.iter().map(|payment| {
        transaction(&submission.heap, payment.body_offset, payment.body_len).unwrap()
    });
    let head = Head {
        to: bic("BETAFRPP"),
        framing,
        ..head("FWD-1")
    };
    let mut out = Vec::new();
    forward(
        &mut out,
        &head,
        &heap_context(&submission.heap).unwrap(),
        &group,
        transactions,
    );
    out
}

fn transfers() -> String {
    let second = TRANSFER
        .replace("be6f001", "be6f002")
        .replace("TX-1", "TX-2");
    let group = GROUP.replace("<NbOfTxs>1", "<NbOfTxs>2");
    let content = format!("{group}{TRANSFER}\r\n<!-- between -->{second}");
    message("pacs.008.001.08", "", "", "FIToFICstmrCdtTrf", &content)
}

fn prefixed(declarations: &str) -> String {
    let content = format!("{}{PREFIXED}", prefixed_group());
    message(
        "pacs.008.001.13",
        "p",
        declarations,
        "FIToFICstmrCdtTrf",
        &content,
    )
}

pub(crate) fn all() -> Vec<(String, Vec<u8>)> {
    let banks = format!("{BARE_GROUP}{BANK_TRANSFER}");
    let returns = format!("{RETURN_GROUP}{RETURN}");
    let recall = format!("{ASSIGNMENT}<Undrlyg>{RECALL}</Undrlyg>");
    [
        ("pacs.008.001.08", transfers()),
        (
            "pacs.008.001.13-prefixed",
            prefixed(" xmlns:o=\"urn:o?a=1&amp;b\""),
        ),
        (
            "pacs.009.001.08",
            message("pacs.009.001.08", "", "", "FICdtTrf", &banks),
        ),
        (
            "pacs.004.001.09",
            message("pacs.004.001.09", "", "", "PmtRtr", &returns),
        ),
        (
            "camt.056.001.08",
            message("camt.056.001.08", "", "", "FIToFIPmtCxlReq", &recall),
        ),
    ]
    .into_iter()
    .map(|(name, sent)| (format!("forward-{name}"), pass_on(Framing::Envelope, &sent)))
    .collect()
}

/// Names with their namespaces, attributes and texts of every element from `local` on, that is of the transactions.
fn meaning(xml: &[u8], local: &str) -> Vec<String> {
    let text = std::str::from_utf8(xml).unwrap();
    let mut reader = NsReader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut found = Vec::new();
    let mut depth = 0_usize;
    loop {
        let (namespace, event) = reader.read_resolved_event().unwrap();
        let namespace = match namespace {
            ResolveResult::Bound(namespace) => format!("{namespace:?}"),
            other => format!("{other:?}"),
        };
        match event {
            Event::Eof => return found,
            Event::Start(start) if depth > 0 || start.local_name().as_ref() == local => {
                depth += 1;
                found.push(format!("{namespace} {:?}", start.local_name()));
                for attribute in start.attributes() {
                    let attribute = attribute.unwrap();
                    let resolved = reader.resolver().resolve_attribute(attribute.key);
                    found.push(format!("{resolved:?} {:?}", attribute.value));
                }
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Text(text) if depth > 0 => found.push(format!("{text:?}")),
            _ => {}
        }
    }
}

#[test]
fn transactions_are_byte_exact() {
    for (name, document) in all() {
        let document = String::from_utf8(document).unwrap();
        let bodies = [TRANSFER, PREFIXED, BANK_TRANSFER, RETURN, RECALL];
        assert!(bodies.iter().any(|body| document.contains(body)), "{name}");
    }
}

#[test]
fn names_mean_what_they_meant() {
    // As sent: with and without a default namespace beside the prefix.
    for default in ["", " xmlns=\"urn:scheme:envelope\""] {
        let sent = prefixed(&format!(" xmlns:o=\"urn:o\"{default} xml:lang=\"de\""));
        for framing in [Framing::Envelope, Framing::Bare] {
            let forwarded = pass_on(framing, &sent);
            assert_eq!(
                meaning(&forwarded, "CdtTrfTxInf"),
                meaning(sent.as_bytes(), "CdtTrfTxInf")
            );
            assert!(
                String::from_utf8(forwarded)
                    .unwrap()
                    .contains(" xml:lang=\"de\"")
            );
        }
    }
}

#[test]
fn what_is_passed_on_reads_as_what_was_sent() {
    let context = Context {
        sender: Some(bic("ALFADEFF")),
        amount_max: AmountMinor::MAX,
        numbers_messages: &|_| false,
    };
    let records = |text: &[u8]| match read(text, &Limits::default(), &context) {
        Ok(Incoming::Submission(read)) => (read.submission.faults, read.submission.payments),
        other => panic!("{other:?}"),
    };
    let sent = transfers();
    let (faults, before) = records(sent.as_bytes());
    let (faults_after, after) = records(&pass_on(Framing::Bare, &sent));
    assert_eq!(faults, faults_after);
    assert_eq!(before.len(), 2);
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before.content_digest, after.content_digest);
        assert_eq!(before.id, after.id);
        assert_eq!(before.amount, after.amount);
        assert_eq!(before.receiver, after.receiver);
        assert_eq!(before.date, after.date);
        assert_eq!(before.faults, after.faults);
    }
}

#[test]
fn what_stood_in_the_transactions_is_not_said_twice() {
    let sent = message(
        "pacs.009.001.08",
        "",
        "",
        "FICdtTrf",
        &format!("{BARE_GROUP}{BANK_TRANSFER}"),
    );
    let forwarded = String::from_utf8(pass_on(Framing::Bare, &sent)).unwrap();
    for once in ["<InstgAgt>", "<InstdAgt>", "<IntrBkSttlmDt>"] {
        assert_eq!(forwarded.matches(once).count(), 1, "{once}");
    }
    assert!(forwarded.contains("<CtrlSum>7.50</CtrlSum>"), "{forwarded}");
}
