//! Payments passed on: the bytes and what the names in them mean.

use clearspan_iso20022::write::*;
use clearspan_ledger::message::MessageKind;
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
<Dbtr><FinInstnId><BICFI>ALFADEFF</BICFI></FinInstnId></Dbtr><Cdtr><FinInstnId><BICFI>BETAFRPP</BICFI></FinInstnId></Cdtr>\
</CdtTrfTxInf>";

const RETURN: &str = "<TxInf><RtrId>R1</RtrId><OrgnlTxId>T</OrgnlTxId>\
<RtrdIntrBkSttlmAmt Ccy=\"EUR\">7.5</RtrdIntrBkSttlmAmt></TxInf>";

const RECALL: &str = "<TxInf><CxlId>C1</CxlId><OrgnlTxId>T</OrgnlTxId>\
<CxlRsnInf><Rsn><Cd>DUPL</Cd></Rsn></CxlRsnInf></TxInf>";

fn group(kind: MessageKind, version: u8) -> ForwardGroup<'static> {
    ForwardGroup {
        definition: Definition { kind, version },
        count: 1,
        total: Some((10_000, currency("EUR"))),
        date: Some(day()),
        instructing: Some(bic("ALFADEFF")),
        instructed: Some(bic("BETAFRPP")),
        payment_type: b"",
        original_group: b"",
    }
}

fn write(
    head: &Head<'_>,
    prefix: &str,
    declarations: &str,
    group: &ForwardGroup<'_>,
    transactions: &[&str],
) -> Vec<u8> {
    let name = format!(
        "{STEM}{}.001.{:02}",
        group.definition.kind.name(),
        group.definition.version
    );
    let colon = if prefix.is_empty() { "" } else { ":" };
    let attributes = format!(" xmlns{colon}{prefix}=\"{name}\"{declarations}");
    let context = ForwardContext {
        prefix,
        attributes: attributes.as_bytes(),
    };
    let mut out = Vec::new();
    forward(
        &mut out,
        head,
        &context,
        group,
        transactions.iter().map(|text| text.as_bytes()),
    );
    out
}

fn prefixed(framing: Framing, declarations: &str) -> Vec<u8> {
    let head = Head {
        to: bic("BETAFRPP"),
        framing,
        ..head("FWD-1")
    };
    let group = ForwardGroup {
        payment_type: b"<p:PmtTpInf><p:InstrPrty>NORM</p:InstrPrty></p:PmtTpInf>",
        ..group(MessageKind::CustomerTransfer, 13)
    };
    write(&head, "p", declarations, &group, &[PREFIXED])
}

pub(crate) fn all() -> Vec<(String, Vec<u8>)> {
    let head = Head {
        to: bic("BETAFRPP"),
        ..head("FWD-1")
    };
    let transfers = ForwardGroup {
        count: 2,
        total: Some((20_000, currency("EUR"))),
        ..group(MessageKind::CustomerTransfer, 8)
    };
    let banks = ForwardGroup {
        total: Some((750, currency("EUR"))),
        date: None,
        instructing: None,
        instructed: None,
        ..group(MessageKind::BankTransfer, 8)
    };
    let returns = ForwardGroup {
        total: Some((750, currency("EUR"))),
        original_group: b"<OrgnlGrpInf><OrgnlMsgId>M</OrgnlMsgId><OrgnlMsgNmId>pacs.008.001.08</OrgnlMsgNmId></OrgnlGrpInf>",
        ..group(MessageKind::Return, 9)
    };
    let recall = RecallGroup {
        version: 8,
        count: 1,
        case: b"<Case><Id>CASE-1</Id><Cretr><Agt><FinInstnId><BICFI>ALFADEFF</BICFI></FinInstnId></Agt></Cretr></Case>",
        original_group: b"",
    };
    let attributes = format!(" xmlns=\"{STEM}camt.056.001.08\"");
    let context = ForwardContext {
        prefix: "",
        attributes: attributes.as_bytes(),
    };
    let mut recalled = Vec::new();
    forward_recall(&mut recalled, &head, &context, &recall, [RECALL.as_bytes()]);
    vec![
        (
            "forward-pacs.008.001.08".to_owned(),
            write(&head, "", "", &transfers, &[TRANSFER, TRANSFER]),
        ),
        (
            "forward-pacs.008.001.13-prefixed".to_owned(),
            prefixed(Framing::Envelope, " xmlns:o=\"urn:o?a=1&amp;b\""),
        ),
        (
            "forward-pacs.009.001.08".to_owned(),
            write(&head, "", "", &banks, &[BANK_TRANSFER]),
        ),
        (
            "forward-pacs.004.001.09".to_owned(),
            write(&head, "", "", &returns, &[RETURN]),
        ),
        ("forward-camt.056.001.08".to_owned(), recalled),
    ]
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
        let contained = [TRANSFER, PREFIXED, BANK_TRANSFER, RETURN, RECALL]
            .iter()
            .any(|text| document.contains(text));
        assert!(contained, "{name}");
    }
    let (_, twice) = all().swap_remove(0);
    assert_eq!(
        String::from_utf8(twice).unwrap().matches(TRANSFER).count(),
        2
    );
}

#[test]
fn names_mean_what_they_meant() {
    let namespace = format!("{STEM}pacs.008.001.13");
    // As sent: with and without a default namespace beside the prefix.
    for default in ["", "urn:scheme:envelope"] {
        let declared = if default.is_empty() {
            String::new()
        } else {
            format!(" xmlns=\"{default}\"")
        };
        let sent = format!(
            "<p:Document xmlns:p=\"{namespace}\" xmlns:o=\"urn:o\"{declared}>{PREFIXED}</p:Document>"
        );
        let declarations = format!(" xmlns:o=\"urn:o\"{declared} xml:lang=\"de\"");
        for framing in [Framing::Envelope, Framing::Bare] {
            let forwarded = prefixed(framing, &declarations);
            assert_eq!(
                meaning(&forwarded, "CdtTrfTxInf"),
                meaning(sent.as_bytes(), "CdtTrfTxInf")
            );
        }
    }
}

#[test]
fn old_versions_keep_their_names() {
    let old = write(
        &head("F"),
        "",
        "",
        &group(MessageKind::BankTransfer, 2),
        &[],
    );
    let old = String::from_utf8(old).unwrap();
    assert!(old.contains("<FinInstnCdtTrf><GrpHdr>"), "{old}");
    assert!(
        old.contains("<InstgAgt><FinInstnId><BIC>ALFADEFFXXX</BIC>"),
        "{old}"
    );
}
