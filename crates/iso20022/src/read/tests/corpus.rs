//! Real shapes of messages, and traps.

use clearspan_ledger::Reason;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use quick_xml::events::Event;

use super::super::scan::{self, Scanner, Token};
use super::*;

fn digests(text: &str) -> (u128, Vec<u64>) {
    let submission = submission(text);
    (
        submission.digest,
        submission
            .payments
            .iter()
            .map(|payment| payment.content_digest)
            .collect(),
    )
}

/// The same message with a prefix on every element.
fn prefixed(text: &str, prefix: &str) -> String {
    let closing = text
        .replace("</", "\u{1}")
        .replace('<', &format!("<{prefix}:"))
        .replace('\u{1}', &format!("</{prefix}:"));
    closing.replacen("xmlns=", &format!("xmlns:{prefix}="), 1)
}

fn pretty(text: &str, line_end: &str) -> String {
    text.replace("><", &format!(">{line_end}\t  <"))
}

#[test]
fn shapes_that_mean_the_same_have_one_digest() {
    let text = message(2);
    let expected = digests(&text);
    let envelope = |name: &str, more: &str, inner: &str| format!("<{name}{more}>{inner}</{name}>");
    let header = |more: &str| header("ALFADEFF", "pacs.008.001.08", more);
    let declared = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{text}");
    let shapes = [
        declared.clone(),
        format!("\u{FEFF}{declared}"),
        format!("\u{FEFF}{text}"),
        declared.replace("encoding=\"UTF-8\"", "encoding='utf-8' standalone='yes'"),
        pretty(&text, "\n"),
        pretty(&text, "\r\n"),
        pretty(&text, "\r"),
        prefixed(&text, "p"),
        pretty(&prefixed(&text, "a-long_prefix.1"), "\r\n"),
        text.replace('"', "'"),
        text.replace("Ccy=", "  Ccy\n=\t").replace("</Dbtr>", "</Dbtr  >"),
        text.replace("<Dbtr>", "<!-- <Dbtr>old</Dbtr> --><Dbtr>").replace("10.00<", "1<?keep out?>0.<!---->00<"),
        text.replace("Somebody", "<![CDATA[Some]]>&#98;o<![CDATA[]]>&#x64;y"),
        text.replace("2026-11-30T08:00:00.123456789", "2026-11-30T09:30:00"),
        text.replace("<Document ", "<Document xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:schemaLocation='a b' "),
        text.replace("<Document ", "<Document xmlns:unused='urn:unused' "),
        envelope("Message", "", &format!("{}{text}", header(""))),
        envelope("BusinessMessage", " xmlns='urn:scheme'", &format!("{}{text}", header("<PssblDplct>true</PssblDplct>"))),
        envelope("s:Root", " xmlns:s='urn:scheme'", &format!("<s:Document/><s:AppHdr/><s:Body>{}{text}</s:Body>", header("<CpyDplct>CODU</CpyDplct>"))),
        envelope("Message", " xmlns='urn:scheme'", &prefixed(&text, "doc")),
        envelope("Message", " xmlns='urn:scheme' xmlns:doc='urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08'", &prefixed(&text, "doc").replace(" xmlns:doc=\"urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08\"", "")),
        text.replace("<CdtTrfTxInf>", "<x:CdtTrfTxInf xmlns:x=\"urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08\">").replace("</CdtTrfTxInf>", "</x:CdtTrfTxInf>"),
        format!("{text}\n<!-- behind --> <?done?>\n"),
    ];
    for shape in &shapes {
        assert_eq!(digests(shape), expected, "{shape}");
    }
}

#[test]
fn a_letter_or_a_cent_changes_the_digest() {
    let text = message(2);
    let (message, payments) = digests(&text);
    let changes = [
        ("10.00", "10.01"),
        ("10.00", "10.0"),
        ("Somebody", "Somebodx"),
        ("Somebody", "Somebody "),
        ("Somebody", " Somebody"),
        ("Invoice 1", "Invoice  1"),
        ("Ccy=\"EUR\"", "Ccy=\"USD\""),
        ("Ccy=\"EUR\"", "Ccy=\"EUR\" Note=\"x\""),
        ("<RmtInf>", "<Purp><Cd>SALA</Cd></Purp><RmtInf>"),
        ("Ustrd>", "Strd>"),
        (
            "<Ustrd>Invoice 1</Ustrd>",
            "<Ustrd>Invoice 1</Ustrd><Ustrd/>",
        ),
        (
            "<Ustrd>Invoice 1</Ustrd>",
            "<Ustrd>Invoice</Ustrd><Ustrd> 1</Ustrd>",
        ),
        ("E-1", "E-9"),
    ];
    for (from, to) in changes {
        let replaced = if from == "Ustrd>" {
            text.replace(from, to)
        } else {
            text.replacen(from, to, 1)
        };
        let (other_message, other_payments) = digests(&replaced);
        assert_ne!(other_message, message, "{to}");
        assert_ne!(other_payments[0], payments[0], "{to}");
    }
    // Identifiers are part of the message's digest, not of the payment's.
    for (from, to) in [
        ("I-1", "I-9"),
        ("T-1", "T-9"),
        ("b074-000000000001", "b074-000000000009"),
    ] {
        let (other_message, other_payments) = digests(&text.replace(from, to));
        assert_ne!(other_message, message, "{to}");
        assert_eq!(other_payments, payments, "{to}");
    }
    let (other, _) = digests(&text.replace("ALFA-1", "ALFA-2"));
    assert_ne!(other, message);
    let (other, _) = digests(&text.replace("001.08", "001.09"));
    assert_ne!(other, message);
}

#[test]
fn transactions_are_kept_byte_for_byte() {
    let odd = "<RmtInf><Ustrd>a &amp; b&#xD;\r\n<![CDATA[<c>]]> \u{FFFD}\u{A0}’<!-- d --></Ustrd><?e f?>\r</RmtInf>\
               <SplmtryData><Envlp><x:Any xmlns:x='urn:x' x:b = \"1\" x:a='2'>mixed <x:y/> text</x:Any></Envlp></SplmtryData>";
    let text = pretty(
        &message(3).replace("<RmtInf><Ustrd>Invoice 2</Ustrd></RmtInf>", odd),
        "\r\n ",
    );
    let submission = submission(&text);
    assert!(
        submission
            .payments
            .iter()
            .all(|payment| payment.faults.is_empty())
    );
    let mut rest = text.as_str();
    for payment in &submission.payments {
        let begins = rest.find("<CdtTrfTxInf>").unwrap();
        let ends = rest.find("</CdtTrfTxInf>").unwrap() + "</CdtTrfTxInf>".len();
        let body =
            heap::transaction(&submission.heap, payment.body_offset, payment.body_len).unwrap();
        assert_eq!(std::str::from_utf8(body).unwrap(), &rest[begins..ends]);
        rest = &rest[ends..];
    }
}

#[test]
fn the_heap_tells_what_was_in_scope() {
    let inner = prefixed(&message(1), "p").replace("<p:RmtInf>", "<p:RmtInf xmlns:own='urn:own'>");
    let text = format!(
        "<e:M xmlns:e='urn:e?a=1&amp;b=2' xmlns='urn:default' xmlns:p='urn:hidden' xml:lang='de'>{inner}</e:M>"
    );
    let read = submission(&text);
    let context = heap::heap_context(&read.heap).unwrap();
    assert_eq!(
        context.namespace,
        "urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08"
    );
    assert_eq!(context.prefix, "p");
    assert_eq!(
        context.declarations().collect::<Vec<_>>(),
        [
            ("", "urn:default"),
            ("e", "urn:e?a=1&b=2"),
            ("p", "urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08")
        ]
    );
    let mut attributes = Vec::new();
    context.push_attributes(&mut attributes);
    let attributes = String::from_utf8(attributes).unwrap();
    assert!(
        attributes.contains(" xmlns:e=\"urn:e?a=1&amp;b=2\""),
        "{attributes}"
    );
    assert!(attributes.ends_with(" xml:lang=\"de\""), "{attributes}");
    assert!(context.group_header.starts_with(b"<p:GrpHdr>"));
    assert_eq!(
        context.group_part("SttlmInf").unwrap(),
        b"<p:SttlmInf><p:SttlmMtd>CLRG</p:SttlmMtd></p:SttlmInf>"
    );
    assert_eq!(context.group_part("PmtTpInf"), None);
    assert_eq!(
        u32::try_from(context.len).unwrap(),
        read.payments[0].body_offset
    );

    // The transaction in a new document of these attributes says the same.
    let body = heap::transaction(
        &read.heap,
        read.payments[0].body_offset,
        read.payments[0].body_len,
    )
    .unwrap();
    let body = std::str::from_utf8(body).unwrap();
    let again = document("", "")
        .replace(
            "<FIToFICstmrCdtTrf>",
            &format!("<p:FIToFICstmrCdtTrf>{}{body}", prefixed(&group(1), "p")),
        )
        .replace("</FIToFICstmrCdtTrf>", "</p:FIToFICstmrCdtTrf>")
        .replace(
            "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08\">",
            &format!("<p:Document{attributes}>"),
        )
        .replace("</Document>", "</p:Document>");
    assert_eq!(digests(&again).1, digests(&text).1);
}

#[test]
fn a_prefix_of_the_transaction_alone_stays_in_its_bytes() {
    let own = "<x:CdtTrfTxInf xmlns:x=\"urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08\">";
    let text = message(1)
        .replace("<CdtTrfTxInf>", own)
        .replace("</CdtTrfTxInf>", "</x:CdtTrfTxInf>");
    let read = submission(&text);
    let context = heap::heap_context(&read.heap).unwrap();
    assert_eq!(context.prefix, "");
    assert_eq!(
        context.declarations().collect::<Vec<_>>(),
        [("", context.namespace)]
    );
    let body = &read.heap[context.len..];
    assert!(body.starts_with(own.as_bytes()));
}

#[test]
fn a_heap_of_other_bytes_is_none() {
    let read = submission(&message(1));
    let context = heap::heap_context(&read.heap).unwrap();
    for len in 0..context.len {
        assert_eq!(heap::heap_context(&read.heap[..len]), None, "{len}");
    }
    let mut other = read.heap.to_vec();
    other[0] = 2;
    assert_eq!(heap::heap_context(&other), None);
    assert_eq!(heap::transaction(&read.heap, u32::MAX, 1), None);
    assert_eq!(heap::transaction(&read.heap, 0, u32::MAX), None);
}

#[test]
fn identifiers_are_found_in_a_transactions_bytes() {
    let text = message(1)
        .replace("I-1", "I&amp;<![CDATA[<1>]]>")
        .replace("<TxId>T-1</TxId>", "")
        .replace(
            "<CdtTrfTxInf>",
            "<p:CdtTrfTxInf xmlns:p='urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08'>",
        )
        .replace("</CdtTrfTxInf>", "</p:CdtTrfTxInf>");
    let read = submission(&text);
    let body = heap::transaction(
        &read.heap,
        read.payments[0].body_offset,
        read.payments[0].body_len,
    )
    .unwrap();
    let ids = heap::transaction_ids(body);
    assert_eq!(ids.instruction.as_deref(), Some("I&<1>"));
    assert_eq!(ids.end_to_end.as_deref(), Some("E-1"));
    assert_eq!(ids.transaction, None);
    assert_eq!(
        ids.uetr.as_deref(),
        Some("8a562c67-ca16-48ba-b074-000000000001")
    );
    let ids = heap::transaction_ids(
        b"<TxInf><RtrId>R</RtrId><OrgnlInstrId>I</OrgnlInstrId><OrgnlTxId>T</OrgnlTxId></TxInf>",
    );
    assert_eq!(
        (
            ids.transaction.as_deref(),
            ids.original_transaction.as_deref(),
            ids.instruction.as_deref()
        ),
        (Some("R"), Some("T"), Some("I"))
    );
    for bytes in [
        &b""[..],
        b"<",
        b"<a>",
        b"x",
        b"<a><TxId>",
        b"\xFF<a><TxId>\xFF</TxId></a>",
    ] {
        assert_eq!(heap::transaction_ids(bytes).transaction, None);
    }
}

/// Bytes that are not well-formed, or of which XML allows what is never read here.
#[test]
fn what_is_not_well_formed_is_refused() {
    let text = message(1);
    let inside = |part: &str| text.replace("Invoice 1", part);
    let tag = |part: &str| text.replace("<RmtInf>", part);
    let cases = [
        String::new(),
        " \n".into(),
        "x".into(),
        "<".into(),
        "<Document".into(),
        "<a/><b/>".into(),
        format!("{text}{text}"),
        format!("{text}x"),
        format!("x{text}"),
        format!("\n<?xml version=\"1.0\"?>{text}"),
        format!("<?xml version=\"1.1\"?>{text}"),
        format!("<?xml version=\"1.0\" encoding=\"windows-1251\"?>{text}"),
        format!("<?xml encoding=\"UTF-8\"?>{text}"),
        format!("<?xml version=\"1.0\" version=\"1.0\"?>{text}"),
        format!("<?xml version=\"1.0\"{text}"),
        format!("<!DOCTYPE Document>{text}"),
        format!("<!DOCTYPE Document [<!ENTITY a \"b\">]>{text}"),
        format!("<!ELEMENT a ANY>{text}"),
        format!("<M>{text}{text}</M>"),
        format!("<M><![CDATA[{text}]]></M>"),
        format!("<M><!--{text}--></M>"),
        "<M/>".into(),
        text[..text.len() - 1].into(),
        text.replace("</Document>", ""),
        text.replace("</Document>", "</document>"),
        inside("&"),
        inside("&nbsp;"),
        inside("&amp"),
        inside("&#0;"),
        inside("&#8;"),
        inside("&#xFFFE;"),
        inside("&#xD800;"),
        inside("&#x110000;"),
        inside("&#99999999999;"),
        inside("&#;"),
        inside("&#x;"),
        inside("&lol1;"),
        inside("]]>"),
        inside("\u{0}"),
        inside("\u{8}"),
        inside("\u{FFFE}"),
        inside("<!-- a -- b -->"),
        inside("<!-- a --->"),
        inside("<!-- a"),
        inside("<![CDATA[ a"),
        inside("<![cdata[ a ]]>"),
        inside("<?xml version=\"1.0\"?>"),
        inside("<? a?>"),
        inside("<?a"),
        inside("<x:a/>"),
        inside("<a:b:c/>"),
        inside("<:a/>"),
        inside("<a:/>"),
        inside("<1a/>"),
        inside("<a\u{D7}/>"),
        inside("< a/>"),
        inside("</ a>"),
        tag("<RmtInf a=1>"),
        tag("<RmtInf a>"),
        tag("<RmtInf a=\"<\">"),
        tag("<RmtInf a=\"&x;\">"),
        tag("<RmtInf a=\"1\" a=\"2\">"),
        tag("<RmtInf a=\"1\"b=\"2\">"),
        tag("<RmtInf a=\"1>"),
        tag("<RmtInf x:a=\"1\">"),
        tag("<RmtInf xmlns:x=\"u\" xmlns:y=\"u\" x:a=\"1\" y:a=\"2\">"),
        tag("<RmtInf xmlns:x=\"\">"),
        tag("<RmtInf xmlns:xml=\"urn:x\">"),
        tag("<RmtInf xmlns:xmlns=\"urn:x\">"),
        tag("<RmtInf xmlns:x=\"http://www.w3.org/XML/1998/namespace\">"),
    ];
    for case in &cases {
        let fault = refused(case);
        assert_eq!(fault.reason, Reason::Syntax, "{case}");
        assert!(fault.line >= 1);
    }
    for bytes in [
        &b"\xFF\xFE<\0a\0/\0>\0"[..],
        b"<a>\xC0\x80</a>",
        b"<a>\xED\xA0\x80</a>",
        b"<a>\xE9</a>",
        b"\0",
    ] {
        let context = Context {
            sender: None,
            amount_max: AmountMinor::MAX,
            numbers_messages: &|_| false,
        };
        assert_eq!(
            read(bytes, &Limits::default(), &context)
                .unwrap_err()
                .reason,
            Reason::Syntax
        );
    }
}

#[test]
fn structure_is_as_published() {
    let text = message(1);
    let uetr = "<UETR>8a562c67-ca16-48ba-b074-000000000001</UETR>";
    let cases = [
        // Out of order, twice, unknown, missing, elsewhere.
        text.replace("<TxId>T-1</TxId>", "")
            .replace("<EndToEndId>", "<TxId>T-1</TxId><EndToEndId>"),
        text.replace("<TxId>T-1</TxId>", "<TxId>T-1</TxId><TxId>T-1</TxId>"),
        text.replace(uetr, &format!("{uetr}<Extra/>")),
        text.replace("<ChrgBr>", "<Extra/><ChrgBr>"),
        text.replace("<ChrgBr>SLEV</ChrgBr>", ""),
        text.replace("<Cdtr><Nm>Somebody</Nm></Cdtr>", ""),
        text.replace("<NbOfTxs>1</NbOfTxs>", ""),
        text.replace("<SttlmMtd>CLRG</SttlmMtd>", ""),
        text.replace("<SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf>", ""),
        text.replace("<ChrgBr>", "<x:ChrgBr xmlns:x=\"urn:x\"/><ChrgBr>"),
        text.replace("FIToFICstmrCdtTrf", "FICdtTrf"),
        text.replace(
            "</FIToFICstmrCdtTrf>",
            "</FIToFICstmrCdtTrf><FIToFICstmrCdtTrf/>",
        ),
        document(&group(0), ""),
        document("", &transaction(1, "1")),
        document(&(group(1) + &group(1)), &transaction(1, "1")),
        document(
            &group(1),
            &(transaction(1, "1") + "<SplmtryData/>" + &transaction(2, "1")),
        ),
        // Values where elements belong, elements where values belong, both.
        text.replace("10.00", "<a/>"),
        text.replace("<PmtId>", "<PmtId>x"),
        text.replace("</PmtId>", "x</PmtId>"),
        text.replace("<SttlmInf>", "<SttlmInf>\u{A0}"),
        pretty(&text, "\u{A0}"),
        text.replace("<Ustrd>", "x<Ustrd>"),
        text.replace("</Ustrd>", "</Ustrd>\u{A0}"),
        text.replace("</Ustrd>", "</Ustrd><![CDATA[x]]>"),
        // Header.
        format!(
            "<M>{}{text}</M>",
            header("ALFADEFF", "x", "").replace("<MsgDefIdr>x</MsgDefIdr>", "")
        ),
        format!(
            "<M>{}{}{text}</M>",
            header("ALFADEFF", "x", ""),
            header("ALFADEFF", "x", "")
        ),
        format!("<M>{}{text}</M>", header("ALFADEFF", "x", "<Extra/>")),
    ];
    for case in &cases {
        assert_eq!(refused(case).reason, Reason::Syntax, "{case}");
    }
}

#[test]
fn what_is_not_read_is_carried() {
    let text = message(1);
    for case in [
        text.replace("<Ustrd>", "<Unheard><Of/></Unheard><Ustrd>"),
        text.replace("</RmtInf>", "</RmtInf><SplmtryData><Envlp><a xmlns=''>mixed <b/> text\u{A0}</a></Envlp></SplmtryData>"),
        text.replace("Somebody", "’ \u{FFFD} \u{A0} \u{1F4B6}"),
        text.replace("<RmtInf>", "<RmtInf xml:space=\"preserve\">"),
        text.replace("2026-11-30T08:00:00.123456789", "yesterday"),
    ] {
        let read = submission(&case);
        assert!(read.faults.is_empty());
        assert!(read.payments[0].faults.is_empty(), "{case}");
    }
    // The amount in supplementary data is nobody's amount.
    let other = text.replace("</RmtInf>", "</RmtInf><SplmtryData><Envlp><IntrBkSttlmAmt Ccy=\"USD\">99</IntrBkSttlmAmt></Envlp></SplmtryData>");
    assert_eq!(submission(&other).payments[0].amount.minor(), 1000);
}

#[test]
fn messages_of_other_kinds_are_named() {
    for (namespace, reason, name) in [
        (
            "urn:iso:std:iso:20022:tech:xsd:pain.001.001.09",
            Reason::MessageNotSupported,
            Some("pain.001.001.09"),
        ),
        (
            "urn:iso:std:iso:20022:tech:xsd:pacs.008.002.08",
            Reason::MessageNotSupported,
            Some("pacs.008.002.08"),
        ),
        (
            "urn:iso:std:iso:20022:tech:xsd:é",
            Reason::MessageNotSupported,
            Some("é"),
        ),
        ("urn:other", Reason::Syntax, None),
        ("", Reason::Syntax, None),
    ] {
        let fault = refused(&format!("<Document xmlns=\"{namespace}\"><a/></Document>"));
        assert_eq!(
            (fault.reason, fault.message_name.as_deref()),
            (reason, name)
        );
    }
    let text = format!(
        "<M>{}{}</M>",
        header("ALFADEFF", "pacs.008.001.08", "").replace("head.001.001.02", "head.001.001.09"),
        message(1)
    );
    assert_eq!(refused(&text).reason, Reason::MessageNotSupported);
}

#[test]
fn nothing_is_larger_than_its_limit() {
    let text = message(2);
    let inside = |part: &str| text.replacen("<Ustrd>Invoice 1</Ustrd>", part, 1);
    let of = |len: usize| inside(&format!("<Ustrd>{}</Ustrd>", "x".repeat(len)));
    assert!(submission(&of(4096)).faults.is_empty());
    let long = [
        of(4097),
        inside(&format!("<Ustrd>{}</Ustrd>", "x<!---->".repeat(4097))),
        inside(&format!("<Ustrd>{}</Ustrd>", "&#120;".repeat(4097))),
        inside(&format!("<Ustrd>{}</Ustrd>", " ".repeat(4097))),
        inside(&format!("<Ustrd a=\"{}\"/>", "x".repeat(4097))),
        inside(&format!(
            "<Ustrd{}/>",
            (0..65).map(|n| format!(" a{n}=\"\"")).collect::<String>()
        )),
        inside(&format!("{}{}", "<a>".repeat(40), "</a>".repeat(40))),
        format!("{}{text}{}", "<a>".repeat(31), "</a>".repeat(31)),
        "<a>".repeat(1_000_000),
        inside(
            &(0..300)
                .map(|n| format!("<a xmlns:p=\"urn:{n}\"/>"))
                .collect::<String>(),
        ),
    ];
    for case in &long {
        assert_eq!(refused(case).reason, Reason::Syntax);
    }
    // Attributes and namespaces at their limits are read.
    let full: String = (0..63).map(|n| format!(" a{n}=\"\"")).collect();
    assert!(
        submission(&inside(&format!("<Ustrd{full}/>")))
            .faults
            .is_empty()
    );
    let nested: String = (0..9)
        .map(|level| {
            let many: String = (0..60)
                .map(|n| format!(" xmlns:p{level}_{n}=\"urn:{level}:{n}\""))
                .collect();
            format!("<a{many}>")
        })
        .collect();
    assert_eq!(
        refused(&inside(&format!("{nested}{}", "</a>".repeat(9)))).reason,
        Reason::Syntax
    );

    let context = Context {
        sender: Some(bic("ALFADEFF")),
        amount_max: AmountMinor::MAX,
        numbers_messages: &|_| false,
    };
    let few = Limits {
        payments_max: 1,
        ..Limits::default()
    };
    assert_eq!(
        read(text.as_bytes(), &few, &context).unwrap_err().reason,
        Reason::Syntax
    );
    let small = Limits {
        body_max_bytes: text.len() - 1,
        ..Limits::default()
    };
    assert_eq!(
        read(text.as_bytes(), &small, &context).unwrap_err().reason,
        Reason::Syntax
    );
    let quiet = Limits {
        notes_max: 1,
        ..Limits::default()
    };
    let bad = text.replace("10.00", "ten");
    let Ok(Incoming::Submission(read)) = read(bad.as_bytes(), &quiet, &context) else {
        panic!()
    };
    assert_eq!(read.notes.len(), 1);
    assert!(
        read.submission
            .payments
            .iter()
            .all(|payment| !payment.faults.is_empty())
    );
}

/// Our tokens as quick-xml would tell them: names, and text with the pieces between two tags joined.
fn ours(text: &str) -> Option<Vec<String>> {
    let mut scanner = Scanner::new(text.as_bytes(), usize::MAX).ok()?;
    let mut told = Vec::new();
    loop {
        match scanner.next().ok()? {
            Token::Start { name, empty, .. } => {
                told.push(format!("<{}", String::from_utf8_lossy(name)));
                for attribute in &scanner.attributes {
                    told.push(format!(
                        "@{}={}",
                        String::from_utf8_lossy(attribute.name),
                        String::from_utf8_lossy(attribute.value)
                    ));
                }
                if empty {
                    told.push(format!(">{}", String::from_utf8_lossy(name)));
                }
            }
            Token::End { name } => told.push(format!(">{}", String::from_utf8_lossy(name))),
            Token::Text { raw, .. } => {
                scan::resolve(&mut Vec::new(), raw, 0, false).ok()?;
                told.push(String::from_utf8_lossy(raw).into_owned());
            }
            Token::Literal { raw } => told.push(format!("[{}", String::from_utf8_lossy(raw))),
            Token::Other => {}
            Token::End0 => return Some(told),
        }
    }
}

fn theirs(text: &str) -> Option<Vec<String>> {
    let mut reader = quick_xml::Reader::from_str(text);
    reader.config_mut().check_end_names = false;
    reader.config_mut().allow_unmatched_ends = true;
    let mut told: Vec<String> = Vec::new();
    let mut text_open = false;
    loop {
        let event = reader.read_event().ok()?;
        let part = match &event {
            Event::Text(part) => Some(part.borrow().into_inner().into_owned()),
            Event::GeneralRef(part) => Some(format!("&{};", part.borrow().into_inner())),
            _ => None,
        };
        if let Some(part) = part {
            match told.last_mut().filter(|_| text_open) {
                Some(last) => last.push_str(&part),
                None => told.push(part),
            }
            text_open = true;
            continue;
        }
        text_open = false;
        let mut start = |tag: &quick_xml::events::BytesStart<'_>| -> Option<String> {
            let name = tag.name().0.to_owned();
            told.push(format!("<{name}"));
            for attribute in tag.attributes() {
                let attribute = attribute.ok()?;
                told.push(format!("@{}={}", attribute.key.0, attribute.value));
            }
            Some(name)
        };
        match &event {
            Event::Start(tag) => {
                start(tag)?;
            }
            Event::Empty(tag) => {
                let name = start(tag)?;
                told.push(format!(">{name}"));
            }
            Event::End(tag) => told.push(format!(">{}", tag.name().0)),
            Event::CData(part) => told.push(format!("[{}", part.borrow().into_inner())),
            Event::Eof => return Some(told),
            _ => {}
        }
    }
}

/// Pieces that matter to a scanner.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "<",
            ">",
            "</",
            "/>",
            "<!--",
            "-->",
            "--",
            "<![CDATA[",
            "]]>",
            "]",
            "<?",
            "?>",
            "<?xml version=\"1.0\"?>",
            "&",
            "&amp;",
            "&#65;",
            "&#x0;",
            "&x;",
            ";",
            "=",
            "'",
            "\"",
            " ",
            "\n",
            "\r",
            "\r\n",
            "\t",
            "a",
            "p:a",
            ":",
            "xmlns",
            "xmlns:p",
            "Ccy",
            "<!DOCTYPE",
            "Document",
            "AppHdr",
            "\u{FEFF}",
            "\u{A0}",
            "\u{FFFD}",
            "\u{FFFE}",
            "é",
            "-",
            "0",
            "10.00",
            "<a>",
            "</a>",
            "<a/>",
            "urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08",
            "<PmtId>",
            "</PmtId>",
            "<CdtTrfTxInf>",
            "</CdtTrfTxInf>",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,4}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, rng_seed: RngSeed::Fixed(20_022), ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let context = Context { sender: None, amount_max: AmountMinor::MAX, numbers_messages: &|_| true };
        let _ = read(&bytes, &Limits::default(), &context);
        let _ = heap::heap_context(&bytes);
        let _ = heap::transaction_ids(&bytes);
    }

    #[test]
    fn random_markup_is_read_as_another_reader_reads_it(pieces in prop::collection::vec(piece(), 0..30)) {
        let text: String = pieces.concat();
        let _ = read_with(&text, None, true);
        // We refuse more, but never accept what the other refuses, nor read it otherwise.
        if let Some(told) = ours(&text) {
            // Their declaration is ours, and attributes of a processing instruction are nobody's.
            prop_assert_eq!(Some(told), theirs(&text), "{}", text);
        }
    }

    #[test]
    fn damaged_messages_never_panic(at in 0.0..1.0_f64, cut in 0_usize..20, pieces in prop::collection::vec(piece(), 0..3), shape in 0..4) {
        let plain = message(2);
        let text = match shape {
            0 => plain,
            1 => prefixed(&plain, "p"),
            2 => pretty(&plain, "\r\n"),
            _ => format!("<M>{}{plain}</M>", header("ALFADEFF", "pacs.008.001.08", "")),
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a short text")]
        let at = (at * text.len() as f64) as usize;
        let mut damaged = text.as_bytes()[..at].to_vec();
        damaged.extend(pieces.concat().bytes());
        damaged.extend(&text.as_bytes()[(at + cut).min(text.len())..]);
        let context = Context { sender: None, amount_max: AmountMinor::MAX, numbers_messages: &|_| true };
        match read(&damaged, &Limits::default(), &context) {
            Ok(Incoming::Submission(read)) => {
                let text = std::str::from_utf8(&damaged).unwrap();
                prop_assert!(theirs(text).is_some());
                for payment in &read.submission.payments {
                    let body = heap::transaction(&read.submission.heap, payment.body_offset, payment.body_len);
                    prop_assert!(body.is_some_and(|body| body.starts_with(b"<") && body.ends_with(b">")));
                }
            }
            Ok(_) => prop_assert!(false, "a transfer became a request"),
            Err(fault) => prop_assert!(!fault.path.is_empty()),
        }
    }
}

#[test]
fn what_is_passed_on_can_be_read() {
    for (text, count) in [
        (
            include_str!("../../../tests/golden/forward-pacs.008.001.08.xml"),
            2,
        ),
        (
            include_str!("../../../tests/golden/forward-pacs.008.001.13-prefixed.xml"),
            1,
        ),
        (
            include_str!("../../../tests/golden/forward-pacs.009.001.08.xml"),
            1,
        ),
        (
            include_str!("../../../tests/golden/forward-pacs.004.001.09.xml"),
            1,
        ),
        (
            include_str!("../../../tests/golden/forward-camt.056.001.08.xml"),
            1,
        ),
    ] {
        let Ok(Incoming::Submission(read)) = read_with(text, None, false) else {
            panic!("{:?}", read_with(text, None, false));
        };
        assert_eq!(read.submission.payments.len(), count, "{text}");
        // The header names the system, the transactions their sender.
        assert!(
            read.notes
                .iter()
                .all(|note| note.reason == Reason::SenderUnknown),
            "{:?}",
            read.notes
        );
    }
}
