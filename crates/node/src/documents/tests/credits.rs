//! camt.054, pacs.029, forwards and statements: what a receiver is told, and that it adds up (rules R23, R37).

use std::collections::BTreeMap;

use clearspan_ledger::entry::AdminCommand;

use super::super::View;
use super::cluster::{
    ALFA, BETA, Cluster, GAMM, give_back, net, package, pay, transfer, uetr, urgent,
};
use super::texts;

fn cents(text: &str) -> i128 {
    text.replace('.', "").parse().expect("an amount")
}

#[test]
fn a_gross_credit_is_noticed_and_forwarded_as_sent() {
    let mut cluster = Cluster::funded();
    let sent = pay(1, BETA, "EUR", "40.00");
    cluster.send(ALFA, &urgent("A-1", &sent));
    let [notice, forward] = &cluster.last(BETA)[..] else {
        panic!("two documents");
    };
    assert_eq!(notice.file_name, "00000002-camt.054.xml");
    assert_eq!(forward.file_name, "00000002-2-pacs.008.xml");
    assert_eq!(texts(notice, "UETR"), [uetr(1)]);
    assert_eq!(texts(notice, "EndToEndId"), ["E-1"]);
    assert_eq!(texts(notice, "Sum"), ["40.00", "40.00"]);
    assert_ne!(texts(notice, "BizMsgIdr"), texts(forward, "BizMsgIdr"));
    let bytes = String::from_utf8_lossy(&forward.bytes);
    let body = sent.replace(
        "</IntrBkSttlmAmt>",
        "</IntrBkSttlmAmt><SttlmPrty>URGT</SttlmPrty>",
    );
    assert!(bytes.contains(&body), "{bytes}");
    assert!(bytes.contains("<PmtTpInf><ClrChanl>RTGS</ClrChanl></PmtTpInf>"));
    assert!(bytes.contains("<TtlIntrBkSttlmAmt Ccy=\"EUR\">40.00</TtlIntrBkSttlmAmt>"));
}

/// A cycle with two currencies, pages, payments without UETR and other namespaces.
fn netted() -> Cluster {
    let mut cluster = Cluster::funded();
    for code in [ALFA, GAMM] {
        cluster.fund(code, "JPY", 1000);
    }
    cluster.send(
        ALFA,
        &net(
            "A-1",
            &[
                pay(1, BETA, "EUR", "10.00"),
                transfer(2, "", BETA, "EUR", "20.00"),
                pay(3, BETA, "JPY", "300"),
                pay(4, BETA, "EUR", "30.00"),
            ],
        ),
    );
    let prefixed = net("G-1", &[pay(5, BETA, "EUR", "7.00")])
        .replace("</", "</p:")
        .replace("xmlns=", "xmlns:p=");
    let mut other = String::new();
    let mut rest = prefixed.as_str();
    while let Some(at) = rest.find('<') {
        other.push_str(&rest[..=at]);
        rest = &rest[at + 1..];
        if !rest.starts_with('/') {
            other.push_str("p:");
        }
    }
    other.push_str(rest);
    cluster.send(GAMM, &other);
    cluster.send(BETA, &net("B-1", &[pay(6, ALFA, "EUR", "5.00")]));
    cluster.cycle();
    cluster
}

#[test]
fn a_cycles_credits_come_in_pages_and_add_up() {
    let cluster = netted();
    let pages = cluster.all(BETA, "camt.054");
    // One funding, then four EUR payments of shard 0 on two pages, then the one in JPY.
    assert_eq!(pages.len(), 4);
    let counts: Vec<_> = pages[1..]
        .iter()
        .flat_map(|page| texts(page, "NbOfTxs"))
        .collect();
    assert_eq!(counts, ["2", "2", "1"]);
    let last: Vec<_> = pages[1..]
        .iter()
        .flat_map(|page| texts(page, "LastPgInd"))
        .collect();
    assert_eq!(last, ["false", "true", "true"]);
    assert_eq!(texts(&pages[1], "UETR"), [uetr(1)]);
    assert_eq!(texts(&pages[1], "TxId"), ["T-2"]);
    assert_eq!(texts(&pages[1], "AcctSvcrRef"), ["CYCLE-1"]);

    // Receipts, cycle and ledger: the same counts and sums (rule R23).
    let mut by_currency: BTreeMap<String, (u64, i128)> = BTreeMap::new();
    for code in [ALFA, BETA, GAMM] {
        for page in cluster.all(code, "camt.054") {
            if !String::from_utf8_lossy(&page.bytes).contains("NETTING") {
                continue;
            }
            let sums = by_currency
                .entry(texts(&page, "Ccy")[0].clone())
                .or_default();
            sums.0 += texts(&page, "NbOfTxs")[0].parse::<u64>().expect("a number");
            sums.1 += cents(&texts(&page, "TtlAmt")[0]);
            let details: i128 = texts(&page, "TxDtls")
                .iter()
                .map(|detail| {
                    let (_, amount) = detail.split_once("<Amt Ccy=").expect("an amount");
                    let (_, amount) = amount.split_once('>').expect("an amount");
                    cents(amount.split_once('<').expect("an amount").0)
                })
                .sum();
            assert_eq!(details, cents(&texts(&page, "TtlAmt")[0]));
        }
    }
    let summary = cluster.ledgers[0]
        .cycle_summaries()
        .next()
        .expect("a cycle");
    let mut in_cycle: BTreeMap<String, (u64, i128)> = BTreeMap::new();
    for result in &summary.results {
        let sums = in_cycle.entry(result.currency.to_string()).or_default();
        sums.0 += u64::from(result.out_count);
        sums.1 += i128::try_from(result.out_minor).expect("small");
    }
    assert_eq!(by_currency, in_cycle);
    let mut told: BTreeMap<&str, (u64, i128)> = BTreeMap::new();
    for code in [ALFA, BETA, GAMM] {
        for receipt in cluster.all(code, "pacs.002") {
            if texts(&receipt, "DtldSts") == ["ACSC"] {
                let sums = told.entry("EUR").or_default();
                sums.0 += texts(&receipt, "DtldNbOfTxs")[0]
                    .parse::<u64>()
                    .expect("a number");
                // The message in two currencies has no sum.
                sums.1 += texts(&receipt, "DtldCtrlSum")
                    .first()
                    .map_or(60_00, |sum| cents(sum));
            }
        }
    }
    assert_eq!(told["EUR"].0, in_cycle["EUR"].0 + in_cycle["JPY"].0);
    assert_eq!(told["EUR"].1, in_cycle["EUR"].1);
}

#[test]
fn payments_of_a_cycle_are_forwarded_by_what_fits_in_one_message() {
    let cluster = netted();
    let forwards = cluster.all(BETA, "pacs.008");
    let shown: Vec<String> = forwards
        .iter()
        .map(|forward| String::from_utf8_lossy(&forward.bytes).into_owned())
        .collect();
    // Page 1: two of ALFA. Page 2: one of ALFA, one of GAMM with prefixes. JPY: one.
    assert_eq!(forwards.len(), 4, "{shown:?}");
    assert!(shown[0].contains(&pay(1, BETA, "EUR", "10.00")));
    assert!(shown[0].contains(&transfer(2, "", BETA, "EUR", "20.00")));
    assert!(shown[0].contains("<NbOfTxs>2</NbOfTxs>"));
    assert!(shown[1].contains(&pay(4, BETA, "EUR", "30.00")));
    assert!(shown[2].contains("<p:CdtTrfTxInf><p:PmtId>"));
    assert!(shown[3].contains("<TtlIntrBkSttlmAmt Ccy=\"JPY\">300</TtlIntrBkSttlmAmt>"));
    // The receipt alone is the first document.
    let item = cluster
        .items(BETA)
        .into_iter()
        .find(|item| item.pages == 2)
        .expect("two pages");
    let participant = cluster.participant(BETA);
    for number in [item.number, item.number + 1] {
        let receipt = cluster.documents().receipt(participant, number, false);
        let all = cluster.form(BETA, number);
        assert_eq!(receipt.expect("a receipt").as_ref(), all.first());
    }
}

#[test]
fn senders_share_a_forward_unless_the_group_header_names_them() {
    let mut cluster = Cluster::funded();
    let sent = |id: &str, number| net(id, &[pay(number, BETA, "EUR", "1.00")]);
    cluster.send(ALFA, &sent("A-1", 1));
    cluster.send(GAMM, &sent("G-1", 2));
    cluster.cycle();
    let [shared] = &cluster.all(BETA, "pacs.008")[..] else {
        panic!("one message");
    };
    assert_eq!(texts(shared, "UETR"), [uetr(1), uetr(2)]);
    for (code, id, number) in [(ALFA, "A-2", 3), (GAMM, "G-2", 4)] {
        let agent =
            format!("<InstgAgt><FinInstnId><BICFI>{code}</BICFI></FinInstnId></InstgAgt></GrpHdr>");
        cluster.send(code, &sent(id, number).replace("</GrpHdr>", &agent));
    }
    cluster.cycle();
    let [_, of_alfa, of_gamm] = &cluster.all(BETA, "pacs.008")[..] else {
        panic!("two more messages");
    };
    assert!(texts(of_alfa, "InstgAgt")[0].contains(ALFA));
    assert!(texts(of_gamm, "InstgAgt")[0].contains(GAMM));
}

#[test]
fn a_net_result_has_a_movement_in_each_currency() {
    let cluster = netted();
    let [result] = &cluster.all(BETA, "pacs.029")[..] else {
        panic!("one result");
    };
    assert_eq!(texts(result, "SttlmCycl"), ["1", "1"]);
    let amounts = texts(result, "Amt");
    let told = |amount: &str| amounts.iter().filter(|text| *text == amount).count();
    // Each movement has its other side.
    assert_eq!((told("62.00"), told("300")), (2, 2), "{amounts:?}");
}

#[test]
fn statements_reconcile_and_chain() {
    let mut cluster = netted();
    cluster.send(ALFA, &urgent("A-2", &pay(21, GAMM, "EUR", "3.00")));
    cluster.send(BETA, &urgent("B-2", &pay(22, ALFA, "EUR", "4.00")));
    cluster.send(GAMM, &give_back("G-2", 21, GAMM, ALFA, "1.00"));
    let named = transfer(23, "", GAMM, "EUR", "0.50");
    cluster.send(ALFA, &urgent("A-3", &named));
    cluster.admin(AdminCommand::CloseDay);
    let statements = cluster.all(ALFA, "camt.053");
    let [eur, jpy] = &statements[..] else {
        panic!("a statement for each account");
    };
    assert_eq!(texts(jpy, "ElctrncSeqNb"), ["1"]);
    let entries = texts(eur, "Ntry");
    // Funding, net of the cycle, sent, received, returned, sent.
    assert_eq!(entries.len(), 6, "{entries:?}");
    assert!(entries[1].contains("<Cd>NETTING</Cd>"));
    assert!(entries[1].contains("<Amt Ccy=\"EUR\">55.00</Amt><CdtDbtInd>DBIT</CdtDbtInd>"));
    assert!(entries[5].contains("<TxId>T-23</TxId>"));
    let balances = texts(eur, "Bal");
    assert!(balances[0].contains("OPBD") && balances[0].contains(">0.00<"));
    assert!(balances[1].contains("CLBD") && balances[1].contains(">46.50<"));
    let balance = cluster
        .ledger(cluster.home(ALFA))
        .account(cluster.participant(ALFA), super::cluster::currency("EUR"))
        .map(clearspan_ledger::account::Account::balance_minor);
    assert_eq!(balance, Some(46_50));

    // Money between the days is on the next statement, whose opening is this one's closing.
    cluster.fund(ALFA, "EUR", 1_00);
    cluster.open_day("2026-12-01");
    let later = package("A-9", "2026-12-01", "", &[pay(31, BETA, "EUR", "2.00")]);
    cluster.send(ALFA, &later);
    cluster.cycle();
    cluster.admin(AdminCommand::CloseDay);
    let statements = cluster.all(ALFA, "camt.053");
    let next = &statements[2];
    assert_eq!(texts(next, "ElctrncSeqNb"), ["2"]);
    let balances = texts(next, "Bal");
    assert!(balances[0].contains(">46.50<"));
    assert!(balances[1].contains(">45.50<"));
    assert_eq!(texts(next, "Ntry").len(), 2);
}
