//! What a reader finds in the documents.

use clearspan_iso20022::write::*;
use quick_xml::events::Event;
use quick_xml::reader::Reader;

use crate::samples::{self, AWKWARD, UETR, account, detail, head};

/// Path and text of every element, in order of the document. Refuses what is not well-formed.
fn paths(xml: &[u8]) -> Vec<(String, String)> {
    let mut reader = Reader::from_str(std::str::from_utf8(xml).unwrap());
    let mut open: Vec<(String, usize)> = Vec::new();
    let mut found: Vec<(String, String)> = Vec::new();
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) => {
                let parent = open.last().map_or("", |(path, _)| path);
                let path = format!("{parent}/{}", start.local_name().as_ref());
                open.push((path.clone(), found.len()));
                found.push((path, String::new()));
            }
            Event::End(_) => {
                open.pop().unwrap();
            }
            Event::Text(text) => {
                if let Some((_, at)) = open.last() {
                    found[*at].1.push_str(&text);
                }
            }
            Event::GeneralRef(entity) => {
                let (_, at) = open.last().unwrap();
                found[*at].1.push_str(match &*entity {
                    "amp" => "&",
                    "lt" => "<",
                    "gt" => ">",
                    other => panic!("unknown entity {other}"),
                });
            }
            Event::Eof => {
                assert!(open.is_empty());
                return found;
            }
            _ => {}
        }
    }
}

fn text<'p>(paths: &'p [(String, String)], end: &str) -> &'p str {
    let found = paths.iter().find(|(path, _)| path.ends_with(end));
    found
        .map(|(_, text)| text.as_str())
        .unwrap_or_else(|| panic!("no {end}"))
}

#[test]
fn documents_hold_no_insignificant_white_space() {
    for (name, document) in samples::all() {
        let found = paths(&document);
        assert!(found.len() > 8, "{name}");
        if name.starts_with("forward") {
            continue; // the sender's own
        }
        assert!(!document.contains(&b'\n'), "{name}");
        assert!(
            !String::from_utf8_lossy(&document).contains("> <"),
            "{name}"
        );
        for (path, text) in &found {
            let leaf = !found
                .iter()
                .any(|(other, _)| other.starts_with(&format!("{path}/")));
            assert_eq!(leaf, !text.is_empty(), "{name}: {path} is {text:?}");
        }
    }
}

#[test]
fn header_agrees_with_the_message() {
    for (name, document) in samples::all() {
        let text_of = |end| text_or_none(&document, end);
        if let Some(definition) = text_of("/AppHdr/MsgDefIdr") {
            let document = String::from_utf8_lossy(&document).into_owned();
            assert!(
                document.contains(&format!("=\"urn:iso:std:iso:20022:tech:xsd:{definition}\"")),
                "{name}"
            );
            let id = text_of("/AppHdr/BizMsgIdr").unwrap();
            assert!(document.contains(&format!("Id>{id}</")), "{name}");
        }
    }
}

fn text_or_none(document: &[u8], end: &str) -> Option<String> {
    paths(document)
        .into_iter()
        .find(|(path, _)| path.ends_with(end))
        .map(|(_, text)| text)
}

#[test]
fn a_replay_differs_in_the_header_alone() {
    // Rule R24.
    let first = samples::notices(CashVersion::V08, &head("M-1"));
    let again = samples::notices(CashVersion::V08, &head("M-1"));
    assert_eq!(first, again);
    let marked = samples::notices(
        CashVersion::V08,
        &Head {
            possible_duplicate: true,
            ..head("M-1")
        },
    );
    let marked = String::from_utf8(marked).unwrap();
    assert!(marked.contains("<PssblDplct>true</PssblDplct></AppHdr>"));
    assert_eq!(
        marked.replace("<PssblDplct>true</PssblDplct>", ""),
        String::from_utf8(first).unwrap()
    );
    let bare = |possible_duplicate| {
        let head = Head {
            possible_duplicate,
            framing: Framing::Bare,
            ..head("M-1")
        };
        samples::status(StatusVersion::V10, &head)
    };
    assert_eq!(bare(true), bare(false));
}

#[test]
fn a_payment_status_in_order() {
    let found = paths(&samples::status(
        StatusVersion::V10,
        &Head {
            framing: Framing::Bare,
            ..head("M-1")
        },
    ));
    let first: Vec<&str> = found
        .iter()
        .filter_map(|(path, _)| path.strip_prefix("/Document/FIToFIPmtStsRpt/TxInfAndSts/"))
        .take(12)
        .collect();
    assert_eq!(
        first,
        [
            "OrgnlInstrId",
            "OrgnlEndToEndId",
            "OrgnlTxId",
            "OrgnlUETR",
            "TxSts",
            "AccptncDtTm",
            "FctvIntrBkSttlmDt",
            "FctvIntrBkSttlmDt/DtTm",
            "AcctSvcrRef",
            "ClrSysRef",
            "OrgnlTxId",
            "TxSts",
        ]
    );
    assert_eq!(text(&found, "/OrgnlEndToEndId"), AWKWARD);
    assert_eq!(text(&found, "/OrgnlUETR"), UETR);
    assert_eq!(text(&found, "/ClrSysRef"), "3:123456");
    assert_eq!(text(&found, "/AcctSvcrRef"), "CYCLE-42");
    assert_eq!(
        text(&found, "/FctvIntrBkSttlmDt/DtTm"),
        "2026-11-30T08:00:02.123456Z"
    );
    assert_eq!(text(&found, "/OrgnlMsgNmId"), "pacs.008.001.08");
    // A sum of 19 digits has no place in the type.
    assert_eq!(
        found
            .iter()
            .filter(|(path, _)| path.ends_with("/DtldSts"))
            .count(),
        4
    );
    assert_eq!(
        found
            .iter()
            .filter(|(path, _)| path.ends_with("/DtldCtrlSum"))
            .count(),
        2
    );
}

#[test]
fn what_a_version_lacks_is_left_out() {
    let old = String::from_utf8(samples::status(StatusVersion::V03, &head("M-1"))).unwrap();
    for absent in ["OrgnlUETR", "FctvIntrBkSttlmDt", "CANC"] {
        assert!(!old.contains(absent), "{absent}");
    }
    let old = String::from_utf8(samples::notices(CashVersion::V04, &head("M-1"))).unwrap();
    assert!(!old.contains("<UETR>"));
    assert!(
        old.contains("<Prtry><Tp>UETR</Tp><Ref>8a562c67ca1648bab07465581be6f001</Ref></Prtry>")
    );
}

#[test]
fn totals_of_a_page_are_those_of_its_entries() {
    let found = paths(&samples::notices(CashVersion::V08, &head("M-1")));
    assert_eq!(text(&found, "/TtlNtries/NbOfNtries"), "3");
    assert_eq!(text(&found, "/TtlNtries/Sum"), "600.05");
    assert_eq!(text(&found, "/TtlNtries/TtlNetNtry/Amt"), "599.95");
    assert_eq!(text(&found, "/TtlCdtNtries/Sum"), "600.00");
    assert_eq!(text(&found, "/TtlDbtNtries/Sum"), "0.05");
}

#[test]
fn an_empty_page_is_a_page() {
    let page = Notification {
        version: CashVersion::V08,
        account: account(),
        page: Page::ONLY,
        sequence: None,
        totals: Totals::default(),
        query: None,
    };
    let mut out = Vec::new();
    notification(
        &mut out,
        &head("M-1"),
        &page,
        Vec::<Entry<'_, [EntryDetail<'_>; 0]>>::new(),
    );
    let found = paths(&out);
    assert_eq!(text(&found, "/TtlNtries/NbOfNtries"), "0");
    assert!(!found.iter().any(|(path, _)| path.ends_with("/Ntry")));
    assert_eq!(detail(1).counterparty, samples::bic("BETAFRPP"));
}
