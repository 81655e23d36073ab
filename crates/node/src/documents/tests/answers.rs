//! Questions and refusals.

use clearspan_iso20022::read::{Context, Incoming, Limits, read};
use clearspan_ledger::entry::AdminCommand;
use clearspan_ledger::{AmountMinor, Reason, Timestamp};

use super::cluster::{ALFA, BETA, Cluster, bic, net, pay, uetr, urgent};
use super::{assert_well_formed, texts};
use crate::documents::Document;

fn ask(cluster: &Cluster, code: &str, xml: &str) -> Vec<Document> {
    let documents = cluster.documents();
    let answer = match cluster.read(code, xml) {
        Incoming::StatusRequest(request) => documents.status_answer(&request),
        Incoming::ReportRequest(request) => documents.report_answer(&request),
        Incoming::Submission(_) => panic!("not a question"),
    };
    let answer = answer.expect("an answer");
    answer.iter().for_each(assert_well_formed);
    answer
}

fn status_request(code: &str, message: &str, transactions: &str) -> String {
    format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.028.001.03\"><FIToFIPmtStsReq><GrpHdr><MsgId>S-1</MsgId>\
         <CreDtTm>2026-11-30T08:00:00Z</CreDtTm><InstgAgt><FinInstnId><BICFI>{code}</BICFI></FinInstnId></InstgAgt></GrpHdr>\
         <OrgnlGrpInf><OrgnlMsgId>{message}</OrgnlMsgId><OrgnlMsgNmId>pacs.008.001.08</OrgnlMsgNmId></OrgnlGrpInf>\
         {transactions}</FIToFIPmtStsReq></Document>"
    )
}

fn report_request(code: &str, name: &str, more: &str) -> String {
    format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.060.001.05\"><AcctRptgReq><GrpHdr><MsgId>Q-1</MsgId>\
         <CreDtTm>2026-11-30T08:00:00Z</CreDtTm></GrpHdr><RptgReq><Id>1</Id><ReqdMsgNmId>{name}</ReqdMsgNmId>\
         <Acct><Id><Othr><Id>EUR</Id></Othr></Id><Ccy>EUR</Ccy></Acct><AcctOwnr><Agt><FinInstnId><BICFI>{code}</BICFI>\
         </FinInstnId></Agt></AcctOwnr>{more}</RptgReq></AcctRptgReq></Document>"
    )
}

#[test]
fn a_status_request_is_answered_as_things_stand() {
    let mut cluster = Cluster::funded();
    let transfers = [
        pay(1, BETA, "EUR", "50.00"),
        pay(2, BETA, "EUR", "60.00"),
        pay(3, BETA, "EUR", "0.00"),
    ];
    cluster.send(ALFA, &net("A-1", &transfers));
    let request = status_request(ALFA, "A-1", "");
    let answer = ask(&cluster, ALFA, &request);
    assert_eq!(texts(&answer[0], "DtldSts"), ["ACTC", "RJCT"]);
    cluster.cycle_opened();
    cluster.pump();
    let answer = ask(&cluster, ALFA, &request);
    assert_eq!(texts(&answer[0], "GrpSts"), ["PART"]);
    assert_eq!(texts(&answer[0], "DtldSts"), ["ACSC", "PDNG", "RJCT"]);
    assert_eq!(texts(&answer[0], "Cd"), ["AM04", "AM01"]);
    assert!(texts(&answer[0], "AddtlInf")[0].starts_with("As of journal position 0:"));

    let asked = |number| format!("<TxInf><OrgnlUETR>{}</OrgnlUETR></TxInf>", uetr(number));
    let request = status_request(ALFA, "A-1", &(asked(1) + &asked(99)));
    let answer = ask(&cluster, ALFA, &request);
    assert_eq!(answer.len(), 2);
    assert_eq!(texts(&answer[0], "TxSts"), ["ACSC"]);
    assert_eq!(texts(&answer[0], "AcctSvcrRef"), ["CYCLE-1"]);
    assert_eq!(texts(&answer[1], "Cd"), ["NOOR"]);
    assert_eq!(texts(&answer[1], "OrgnlUETR"), [uetr(99)]);
    // Nobody learns of other participants' payments.
    let answer = ask(&cluster, BETA, &status_request(BETA, "A-1", &asked(1)));
    assert_eq!(texts(&answer[0], "Cd"), ["NOOR"]);
    let answer = ask(&cluster, BETA, &status_request(BETA, "A-1", ""));
    assert_eq!(texts(&answer[0], "GrpSts"), ["RJCT"]);
}

#[test]
fn reports_are_formed_and_replayed() {
    let mut cluster = Cluster::funded();
    cluster.send(ALFA, &urgent("A-1", &pay(1, BETA, "EUR", "40.00")));
    let answer = ask(&cluster, ALFA, &report_request(ALFA, "camt.052.001.08", ""));
    assert_eq!(answer[0].name, "camt.052.001.08");
    assert!(
        texts(&answer[0], "Bal")
            .iter()
            .any(|b| b.contains("ITBD") && b.contains(">60.00<"))
    );
    assert_eq!(texts(&answer[0], "Ntry").len(), 2);

    let answer = ask(&cluster, BETA, &report_request(BETA, "camt.054", ""));
    assert_eq!(answer.len(), 3, "funding, credit, forward");
    let some = "<RptgSeq><FrToSeq><FrSeq>2</FrSeq><ToSeq>2</ToSeq></FrToSeq></RptgSeq>";
    let answer = ask(&cluster, BETA, &report_request(BETA, "camt.054", some));
    assert_eq!(answer.len(), 2);
    assert_eq!(texts(&answer[1], "PssblDplct"), ["true"]);

    let answer = ask(&cluster, BETA, &report_request(BETA, "camt.053", ""));
    assert_eq!(texts(&answer[0], "StsCd"), ["NOOR"]);
    let answer = ask(&cluster, BETA, &report_request(BETA, "camt.086", ""));
    assert_eq!(texts(&answer[0], "StsCd"), ["AG03"]);
    cluster.admin(AdminCommand::CloseDay);
    let answer = ask(&cluster, BETA, &report_request(BETA, "camt.053", ""));
    assert_eq!(answer[0].name, "camt.053.001.08");
    assert_eq!(answer.len(), 1);

    cluster.settings.replay_max_numbers = 1;
    let all = "<RptgSeq><FrSeq>1</FrSeq></RptgSeq>";
    let answer = ask(&cluster, BETA, &report_request(BETA, "camt.054", all));
    assert_eq!(answer.len(), 2);
    assert_eq!(texts(&answer[1], "Ref"), ["2-"]);
}

#[test]
fn what_cannot_be_read_is_answered_when_somebody_is_known() {
    let cluster = Cluster::funded();
    let documents = cluster.documents();
    let refuse = |xml: &str, sender: Option<&str>| {
        let context = Context {
            sender: sender.map(bic),
            amount_max: AmountMinor::MAX,
            numbers_messages: &|_| false,
        };
        let fault = read(xml.as_bytes(), &Limits::default(), &context).expect_err("a fault");
        documents.refusal(&fault, sender.map(bic), Timestamp::ZERO)
    };
    assert_eq!(refuse("<x/>", None), None);
    let unknown = refuse("<x/>", Some(ALFA)).expect("an answer");
    assert_well_formed(&unknown);
    assert_eq!(unknown.name, "admi.007.001.01");
    assert_eq!(texts(&unknown, "Ref"), ["NOTPROVIDED"]);
    let broken = net("A-1", &[pay(1, BETA, "EUR", "1.00")]).replace("<RmtInf>", "<Rmt");
    let known = refuse(&broken, Some(ALFA)).expect("an answer");
    assert_well_formed(&known);
    assert_eq!(known.name, "pacs.002.001.10");
    assert_eq!(texts(&known, "OrgnlMsgId"), ["A-1"]);
    assert_eq!(texts(&known, "Cd"), ["FF01"]);

    let Incoming::Submission(read) =
        cluster.read(ALFA, &net("A-1", &[pay(1, BETA, "EUR", "1.00")]))
    else {
        panic!("a submission");
    };
    let refused = documents
        .not_taken(&read.submission, Reason::DayClosed, Timestamp::ZERO)
        .expect("an answer");
    assert_eq!(texts(&refused, "Cd"), ["TM01"]);
    let held = documents
        .held(&read.submission, 3, 3, Timestamp::ZERO)
        .expect("an answer");
    assert_eq!(texts(&held, "Ref"), ["A-1", "3"]);
}
