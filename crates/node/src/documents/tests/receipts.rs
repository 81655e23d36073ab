//! pacs.002, camt.029 and admi.007: what a sender is told.

use clearspan_ledger::entry::AdminCommand;
use clearspan_ledger::stream::ItemBody;

use super::cluster::{
    ALFA, BETA, Cluster, GAMM, cancel, give_back, net, pay, transfer, uetr, urgent,
};
use super::texts;

#[test]
fn a_package_is_answered_with_its_refused_payments() {
    let mut cluster = Cluster::funded();
    cluster.send(ALFA, &net("A-1", &[pay(1, BETA, "EUR", "1.00")]));
    let [document] = &cluster.last(ALFA)[..] else {
        panic!("one document");
    };
    assert_eq!(document.name, "pacs.002.001.10");
    assert_eq!(document.file_name, "00000002-pacs.002.xml");
    assert_eq!(texts(document, "OrgnlMsgId"), ["A-1"]);
    assert_eq!(texts(document, "GrpSts"), ["ACTC"]);
    assert_eq!(texts(document, "DtldCtrlSum"), ["1.00"]);
    assert_eq!(texts(document, "TxSts"), [""; 0]);

    cluster.send(
        ALFA,
        &net(
            "A-2",
            &[
                pay(2, BETA, "EUR", "2.00"),
                pay(3, BETA, "EUR", "0.001"),
                pay(4, "NOBODYXX", "EUR", "3.00"),
            ],
        ),
    );
    let [document] = &cluster.last(ALFA)[..] else {
        panic!("one document");
    };
    assert_eq!(texts(document, "GrpSts"), ["PART"]);
    assert_eq!(texts(document, "DtldNbOfTxs"), ["1", "2"]);
    assert_eq!(texts(document, "TxSts"), ["RJCT", "RJCT"]);
    assert_eq!(texts(document, "Cd"), ["CH20", "RC04"]);
    assert_eq!(texts(document, "OrgnlInstrId"), ["I-3", "I-4"]);
    assert_eq!(texts(document, "OrgnlEndToEndId"), ["E-3", "E-4"]);
    assert_eq!(texts(document, "OrgnlTxId"), ["T-3", "T-4"]);
    assert_eq!(texts(document, "OrgnlUETR"), [uetr(3), uetr(4)]);

    // Everything bad, and a message that is refused as a whole.
    cluster.send(ALFA, &net("A-3", &[pay(5, BETA, "EUR", "0.00")]));
    assert_eq!(texts(&cluster.last(ALFA)[0], "GrpSts"), ["RJCT"]);
    let counted = net("A-4", &[pay(6, BETA, "EUR", "1.00")])
        .replace("<NbOfTxs>1</NbOfTxs>", "<NbOfTxs>2</NbOfTxs>");
    cluster.send(ALFA, &counted);
    let document = &cluster.last(ALFA)[0];
    assert_eq!(texts(document, "GrpSts"), ["RJCT"]);
    assert_eq!(texts(document, "Cd"), ["AM18"]);
}

#[test]
fn the_same_content_under_a_new_key_is_accepted_and_flagged() {
    let mut cluster = Cluster::funded();
    cluster.send(ALFA, &net("A-1", &[pay(1, BETA, "EUR", "1.00")]));
    let twin = transfer(1, &uetr(2), BETA, "EUR", "1.00").replace("T-1", "T-2");
    cluster.send(ALFA, &net("A-2", &[twin]));
    let document = &cluster.last(ALFA)[0];
    assert_eq!(texts(document, "GrpSts"), ["ACTC"]);
    assert_eq!(texts(document, "TxSts"), ["ACTC"]);
    assert!(texts(document, "AddtlInf")[0].contains(&uetr(1)));
}

#[test]
fn a_gross_payment_is_told_at_every_turn() {
    let mut cluster = Cluster::funded();
    cluster.send(ALFA, &urgent("A-1", &pay(1, BETA, "EUR", "40.00")));
    let document = &cluster.last(ALFA)[0];
    assert_eq!(texts(document, "TxSts"), ["ACSC"]);
    assert_eq!(texts(document, "GrpSts"), ["ACSC"]);
    let item = cluster.items(ALFA).pop().expect("an item");
    assert_eq!(texts(document, "ClrSysRef"), [format!("0:{}", item.index)]);
    assert_eq!(texts(document, "DtTm"), [item.time.to_string()]);

    cluster.send(ALFA, &urgent("A-2", &pay(2, BETA, "EUR", "70.00")));
    let document = &cluster.last(ALFA)[0];
    assert_eq!(texts(document, "TxSts"), ["PDNG"]);
    assert_eq!(texts(document, "Cd"), ["AM04"]);
    cluster.send(ALFA, &urgent("A-3", &pay(3, BETA, "EUR", "1.00")));
    assert_eq!(texts(&cluster.last(ALFA)[0], "Cd"), ["ED05"]);
    assert_eq!(cluster.all(BETA, "pacs.008").len(), 1);

    // The one in front is cancelled, so the one behind it settles.
    cluster.send(ALFA, &cancel("A-4", ALFA, &[2, 1, 9]));
    let told = cluster.all(ALFA, "pacs.002");
    let stands: Vec<String> = told[2..].iter().flat_map(|d| texts(d, "TxSts")).collect();
    assert_eq!(
        stands,
        ["ED05", "CANC", "ACSC"].map(|s| if s == "ED05" { "PDNG" } else { s })
    );
    let answer = &cluster.all(ALFA, "camt.029")[0];
    assert_eq!(answer.name, "camt.029.001.09");
    assert_eq!(texts(answer, "TxCxlSts"), ["ACCR", "PDCR", "RJCR"]);
    assert_eq!(texts(answer, "CxlStsId"), ["C-2", "C-1", "C-9"]);
    assert_eq!(texts(answer, "Conf"), ["PECR"]);
    assert_eq!(texts(answer, "Id").last().map(String::as_str), Some("A-4"));

    // The settled one was recalled: its receiver gets the request as sent.
    let recall = cluster.last(BETA);
    assert_eq!(recall[0].name, "camt.056.001.08");
    let bytes = String::from_utf8_lossy(&recall[0].bytes);
    assert!(bytes.contains(&format!(
        "<TxInf><CxlId>C-1</CxlId><OrgnlUETR>{}</OrgnlUETR>",
        uetr(1)
    )));
}

#[test]
fn returns_and_their_refusals_are_told() {
    let mut cluster = Cluster::funded();
    cluster.send(ALFA, &urgent("A-1", &pay(1, BETA, "EUR", "40.00")));
    cluster.send(BETA, &give_back("B-1", 1, BETA, ALFA, "30.00"));
    let told = cluster.all(BETA, "pacs.002");
    assert_eq!(texts(&told[0], "GrpSts"), ["ACTC"]);
    assert_eq!(texts(&told[1], "TxSts"), ["ACSC"]);
    assert_eq!(texts(&told[1], "OrgnlTxId"), ["R-B-1"]);
    assert_eq!(told[1].name, "pacs.002.001.11");
    let credit = cluster.last(ALFA);
    assert_eq!(credit[0].name, "camt.054.001.08");
    assert_eq!(texts(&credit[0], "SubFmlyCd"), ["RRTN"]);
    assert_eq!(credit[1].name, "pacs.004.001.10");
    cluster.send(BETA, &give_back("B-2", 1, BETA, ALFA, "30.00"));
    assert_eq!(texts(&cluster.last(BETA)[0], "Cd"), ["AM09"]);
}

#[test]
fn a_cycle_tells_each_sender_what_became_of_its_message() {
    let mut cluster = Cluster::funded();
    cluster.send(
        ALFA,
        &net(
            "A-1",
            &[
                pay(1, BETA, "EUR", "90.00"),
                pay(2, GAMM, "EUR", "30.00"),
                pay(3, BETA, "EUR", "5.00"),
            ],
        ),
    );
    cluster.send(BETA, &net("B-1", &[pay(11, ALFA, "EUR", "1.00")]));
    cluster.cycle();
    let told = cluster.all(ALFA, "pacs.002");
    let part = told.last().expect("a receipt");
    assert_eq!(texts(part, "GrpSts"), ["PART"]);
    assert_eq!(texts(part, "DtldSts"), ["ACSC", "PDNG"]);
    assert_eq!(texts(part, "DtldNbOfTxs"), ["1", "2"]);
    assert_eq!(texts(part, "DtldCtrlSum"), ["90.00", "35.00"]);
    assert_eq!(texts(part, "TxSts"), ["PDNG", "PDNG"]);
    assert_eq!(texts(part, "Cd"), ["AM04", "AM04"]);
    assert_eq!(texts(part, "AcctSvcrRef"), ["CYCLE-1", "CYCLE-1"]);
    assert!(texts(part, "AddtlInf")[0].starts_with("CYCLE-1, final at 0:"));

    // With more money the rest follows in the next cycle; the receipt of the first one stays what it was.
    cluster.fund(ALFA, "EUR", 10_000);
    cluster.cycle();
    let told = cluster.all(ALFA, "pacs.002");
    let rest = told.last().expect("a receipt");
    assert_eq!(texts(rest, "GrpSts"), ["ACSC"]);
    assert_eq!(texts(rest, "DtldNbOfTxs"), ["2"]);
    assert_eq!(texts(rest, "DtldCtrlSum"), ["35.00"]);
    assert_eq!(texts(rest, "TxSts"), [""; 0]);
}

#[test]
fn what_the_day_leaves_is_refused() {
    let mut cluster = Cluster::funded();
    cluster.send(
        ALFA,
        &net(
            "A-1",
            &[pay(1, BETA, "EUR", "120.00"), pay(2, BETA, "EUR", "1.00")],
        ),
    );
    cluster.cycle();
    cluster.send(ALFA, &net("A-2", &[pay(3, BETA, "EUR", "1.00")]));
    cluster.send(ALFA, &urgent("A-3", &pay(4, BETA, "EUR", "500.00")));
    cluster.admin(AdminCommand::CloseDay);
    let told = cluster.all(ALFA, "pacs.002");
    let [.., gross, first, second] = &told[..] else {
        panic!("three refusals");
    };
    assert_eq!(texts(gross, "TxSts"), ["RJCT"]);
    assert_eq!(texts(first, "Cd"), ["AM04", "AM04"]);
    assert_eq!(texts(first, "GrpSts"), ["RJCT"]);
    assert_eq!(texts(first, "OrgnlTxId"), ["T-1", "T-2"]);
    assert_eq!(texts(second, "Cd"), ["ED05"]);
}

#[test]
fn a_hole_in_the_numbering_is_told() {
    use super::super::{DocumentError, Naming, Sheaf};
    let cluster = Cluster::funded();
    let mut sheaf = Sheaf {
        settings: &cluster.settings,
        to: super::cluster::bic(ALFA),
        created: clearspan_ledger::Timestamp::ZERO,
        possible_duplicate: false,
        naming: Naming::Number(7),
        documents: Vec::new(),
    };
    let id = clearspan_ledger::Text::new("A-9").expect("short");
    cluster
        .documents()
        .gap(&mut sheaf, &id, 17, 25)
        .expect("a notice");
    let [notice] = &sheaf.documents[..] else {
        panic!("one document");
    };
    super::assert_well_formed(notice);
    assert_eq!(notice.file_name, "00000007-admi.007.xml");
    assert_eq!(texts(notice, "Ref"), ["A-9", "17-25"]);
    assert_eq!(texts(notice, "StsCd"), ["PDNG", "MISS"]);
    assert!(matches!(
        cluster.error(ALFA, 99),
        DocumentError::NumberUnknown {
            number: 99,
            first: 1,
            end: 2
        }
    ));
    assert!(matches!(
        cluster.items(ALFA)[0].body,
        ItemBody::Funded { .. }
    ));
}
