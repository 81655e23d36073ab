//! One rule, one small message.

use clearspan_ledger::message::{Class, MessageKind, Settlement};
use clearspan_ledger::{PaymentId, Reason};

use super::*;

/// Two payments, the second changed: the faults of the message and of both payments.
fn changed(from: &str, to: &str) -> (Vec<Reason>, Vec<Reason>, Vec<Reason>) {
    let second = transaction(2, "10.00");
    assert!(second.contains(from), "{from}");
    let text = document(
        &group(2),
        &(transaction(1, "10.00") + &second.replace(from, to)),
    );
    let read = submitted(&text);
    let submission = &read.submission;
    let counted: usize = submission
        .payments
        .iter()
        .map(|payment| payment.faults.iter().count())
        .sum::<usize>()
        + submission.faults.iter().count();
    // All failures are logged. A fault of the same kind may be found at two places.
    assert!(read.notes.len() >= counted, "{:?}", read.notes);
    (
        submission.faults.iter().collect(),
        faults(&submission.payments[0]),
        faults(&submission.payments[1]),
    )
}

#[test]
fn faults_of_one_payment_refuse_it_alone() {
    const UETR: &str = "<UETR>8a562c67-ca16-48ba-b074-000000000002</UETR>";
    const TX_ID: &str = "<TxId>T-2</TxId>";
    const AMOUNT: &str = "<IntrBkSttlmAmt Ccy=\"EUR\">10.00</IntrBkSttlmAmt>";
    const DATE: &str = "<IntrBkSttlmDt>2026-11-30</IntrBkSttlmDt>";
    const TO: &str = "<InstdAgt><FinInstnId><BICFI>BETAFRPPXXX</BICFI></FinInstnId></InstdAgt>";
    let long = format!("<TxId>{}</TxId>", "x".repeat(36));
    let accents = format!("<TxId>{}</TxId>", "é".repeat(35));
    let times = |inside: &str| format!("{DATE}<SttlmTmReq>{inside}</SttlmTmReq>");
    let cases: Vec<(&str, String, Vec<Reason>)> = vec![
        (UETR, String::new(), vec![]),
        (
            "<TxId>T-2</TxId><UETR>8a562c67-ca16-48ba-b074-000000000002</UETR>",
            String::new(),
            vec![Reason::IdMissing],
        ),
        (
            "8a562c67-ca16-48ba-b074-000000000002",
            "8A562C67-ca16-48ba-b074-000000000002".into(),
            vec![Reason::IdInvalid],
        ),
        (
            "8a562c67-ca16-48ba-b074-000000000002",
            String::new(),
            vec![Reason::IdInvalid],
        ),
        (
            "8a562c67-ca16-48ba-b074-000000000002",
            "8a562c67-ca16-18ba-b074-000000000002".into(),
            vec![Reason::IdInvalid],
        ),
        (
            "8a562c67-ca16-48ba-b074-000000000002",
            "8a562c67-ca16-48ba-b074-000000000001".into(),
            vec![Reason::DuplicateInMessage],
        ),
        (TX_ID, long.clone(), vec![Reason::IdInvalid]),
        (TX_ID, accents, vec![]),
        (TX_ID, "<TxId/>".into(), vec![Reason::IdInvalid]),
        ("I-2", "x".repeat(36), vec![Reason::IdInvalid]),
        ("E-2", "x".repeat(36), vec![Reason::IdInvalid]),
        (
            AMOUNT,
            String::new(),
            vec![Reason::CurrencyInvalid, Reason::AmountInvalid],
        ),
        (
            AMOUNT,
            "<IntrBkSttlmAmt Ccy='EUR'/>".into(),
            vec![Reason::AmountInvalid],
        ),
        (
            AMOUNT,
            "<IntrBkSttlmAmt Ccy='EUR'></IntrBkSttlmAmt>".into(),
            vec![Reason::AmountInvalid],
        ),
        (
            AMOUNT,
            "<IntrBkSttlmAmt Ccy='EUR'> </IntrBkSttlmAmt>".into(),
            vec![Reason::AmountInvalid],
        ),
        (
            AMOUNT,
            "<IntrBkSttlmAmt>10.00</IntrBkSttlmAmt>".into(),
            vec![Reason::CurrencyInvalid],
        ),
        (
            AMOUNT,
            "<IntrBkSttlmAmt Ccy='EURO'>10.00</IntrBkSttlmAmt>".into(),
            vec![Reason::CurrencyInvalid],
        ),
        (
            AMOUNT,
            "<IntrBkSttlmAmt Ccy='eur'>10.00</IntrBkSttlmAmt>".into(),
            vec![Reason::CurrencyInvalid],
        ),
        (
            AMOUNT,
            "<IntrBkSttlmAmt Ccy='ZZZ'>10.00</IntrBkSttlmAmt>".into(),
            vec![Reason::CurrencyInvalid],
        ),
        (
            AMOUNT,
            "<IntrBkSttlmAmt Ccy='XAU'>10</IntrBkSttlmAmt>".into(),
            vec![],
        ),
        (
            AMOUNT,
            "<IntrBkSttlmAmt Ccy='&#69;UR'>&#49;0.00</IntrBkSttlmAmt>".into(),
            vec![],
        ),
        (
            AMOUNT,
            "<IntrBkSttlmAmt Ccy='EUR'>1<!-- no -->0</IntrBkSttlmAmt>".into(),
            vec![],
        ),
        (
            AMOUNT,
            "<IntrBkSttlmAmt Ccy='EUR'><![CDATA[10]]></IntrBkSttlmAmt>".into(),
            vec![],
        ),
        (">10.00<", ">10.001<".into(), vec![Reason::DecimalsExceeded]),
        (
            AMOUNT,
            "<IntrBkSttlmAmt Ccy='JPY'>10.0</IntrBkSttlmAmt>".into(),
            vec![Reason::DecimalsExceeded],
        ),
        (
            AMOUNT,
            "<IntrBkSttlmAmt Ccy='KWD'>10.001</IntrBkSttlmAmt>".into(),
            vec![],
        ),
        (">10.00<", ">0.00<".into(), vec![Reason::AmountZero]),
        (">10.00<", ">-10.00<".into(), vec![Reason::AmountInvalid]),
        (">10.00<", ">+10.00<".into(), vec![Reason::AmountInvalid]),
        (">10.00<", ">1e1<".into(), vec![Reason::AmountInvalid]),
        (">10.00<", ">10,00<".into(), vec![Reason::AmountInvalid]),
        (">10.00<", ">0010<".into(), vec![]),
        (
            ">10.00<",
            ">1000000000.01<".into(),
            vec![Reason::AmountTooLarge],
        ),
        (">10.00<", ">1000000000.00<".into(), vec![]),
        (
            ">10.00<",
            ">99999999999999999999<".into(),
            vec![Reason::AmountTooLarge],
        ),
        (DATE, String::new(), vec![Reason::DateInvalid]),
        ("2026-11-30", "2026-11-31".into(), vec![Reason::DateInvalid]),
        (
            "2026-11-30",
            "2026-11-30Z".into(),
            vec![Reason::DateInvalid],
        ),
        (TO, String::new(), vec![Reason::ReceiverInvalid]),
        (
            "BETAFRPPXXX",
            "BETAFRPPXX".into(),
            vec![Reason::ReceiverInvalid],
        ),
        (
            "BETAFRPPXXX",
            "ALFADEFF".into(),
            vec![Reason::SameParticipant],
        ),
        (
            "<BICFI>BETAFRPPXXX</BICFI>",
            "<ClrSysMmbId><MmbId>1</MmbId></ClrSysMmbId>".into(),
            vec![Reason::ReceiverInvalid],
        ),
        ("SLEV", "SLEF".into(), vec![Reason::FieldInvalid]),
        (
            "<BICFI>BETAFRPPXXX</BICFI>",
            "<BICFI>BETAFRPPXXX</BICFI><LEI>529900T8BM49AURSDO55</LEI>".into(),
            vec![],
        ),
        (
            "<BICFI>BETAFRPPXXX</BICFI>",
            "<BICFI>BETAFRPPXXX</BICFI><LEI>529900T8BM49AURSDO50</LEI>".into(),
            vec![Reason::FieldInvalid],
        ),
        (
            "<Cdtr><Nm>Somebody</Nm>",
            "<Cdtr><Id><OrgId><LEI>529900T8BM49AURSDO50</LEI></OrgId></Id>".into(),
            vec![Reason::FieldInvalid],
        ),
        (DATE, format!("{DATE}<SttlmPrty>NORM</SttlmPrty>"), vec![]),
        (
            DATE,
            format!("{DATE}<SttlmPrty>NORMAL</SttlmPrty>"),
            vec![Reason::FieldInvalid],
        ),
        (
            AMOUNT,
            format!("<PmtTpInf><InstrPrty>URGT</InstrPrty></PmtTpInf>{AMOUNT}"),
            vec![Reason::FieldInvalid],
        ),
        (
            AMOUNT,
            format!("<PmtTpInf><ClrChanl>RTGX</ClrChanl></PmtTpInf>{AMOUNT}"),
            vec![Reason::FieldInvalid],
        ),
        (
            DATE,
            times("<TillTm>10:00:00Z</TillTm><FrTm>09:00:00Z</FrTm><RjctTm>11:00:00Z</RjctTm>"),
            vec![],
        ),
        (
            DATE,
            times("<FrTm>09:00:00</FrTm>"),
            vec![Reason::FieldInvalid],
        ),
        (
            DATE,
            times("<FrTm>09:00:00Z</FrTm><RjctTm>08:00:00Z</RjctTm>"),
            vec![Reason::TimesInvalid],
        ),
        (
            DATE,
            times("<TillTm>09:00:00+01:00</TillTm><FrTm>08:30:00Z</FrTm>"),
            vec![Reason::TimesInvalid],
        ),
    ];
    for (from, to, expected) in cases {
        let (message, first, second) = changed(from, &to);
        assert_eq!(message, [], "{from} -> {to}");
        assert_eq!(first, [], "{from} -> {to}");
        assert_eq!(second, expected, "{from} -> {to}");
    }
    let (_, _, second) = changed(&format!("{TX_ID}{UETR}"), &long);
    assert_eq!(second, [Reason::IdInvalid]);
}

#[test]
fn faults_of_the_group_header_are_every_payments() {
    let own = "<IntrBkSttlmDt>2026-11-30</IntrBkSttlmDt>";
    let to = "<InstdAgt><FinInstnId><BICFI>BETAFRPPXXX</BICFI></FinInstnId></InstdAgt>";
    let read = |date: &str, agent: &str, keep: bool| {
        let group = group(2)
            .replace("<SttlmInf>", &format!("{date}<SttlmInf>"))
            .replace("</SttlmInf>", &format!("</SttlmInf>{agent}"));
        let mut transactions = transaction(1, "10.00") + &transaction(2, "10.00");
        if !keep {
            transactions = transactions.replace(own, "").replace(to, "");
        }
        let submission = submission(&document(&group, &transactions));
        assert!(submission.faults.is_empty());
        submission
    };
    let good = read(own, to, false);
    assert!(
        good.payments
            .iter()
            .all(|payment| payment.faults.is_empty())
    );
    assert_eq!(good.payments[1].receiver, Some(bic("BETAFRPP")));
    assert_eq!(
        good.payments[1]
            .date
            .map(|date| date.to_string())
            .as_deref(),
        Some("2026-11-30")
    );
    let both = read(own, to, true);
    assert!(
        both.payments
            .iter()
            .all(|payment| payment.faults.is_empty())
    );
    let differ = read("<IntrBkSttlmDt>2026-12-01</IntrBkSttlmDt>", "", true);
    assert!(
        differ
            .payments
            .iter()
            .all(|payment| faults(payment) == [Reason::DateInvalid])
    );
    let bad = read(
        "<IntrBkSttlmDt>soon</IntrBkSttlmDt>",
        &to.replace("BETA", "beta"),
        false,
    );
    assert!(
        bad.payments
            .iter()
            .all(|payment| faults(payment) == [Reason::ReceiverInvalid, Reason::DateInvalid])
    );
}

#[test]
fn counts_and_sums_are_compared_when_they_are_there() {
    let read = |from: &str, to: &str, amounts: [&str; 2]| {
        let group = group(2).replace(from, to);
        let submission = submission(&document(
            &group,
            &(transaction(1, amounts[0]) + &transaction(2, amounts[1])),
        ));
        submission.faults.iter().collect::<Vec<_>>()
    };
    let count = "<NbOfTxs>2</NbOfTxs>";
    let sum = |text: &str| format!("{count}<CtrlSum>{text}</CtrlSum>");
    let total =
        |text: &str| format!("{count}<TtlIntrBkSttlmAmt Ccy=\"EUR\">{text}</TtlIntrBkSttlmAmt>");
    let plain = ["10.00", "0.01"];
    assert_eq!(
        read(count, "<NbOfTxs>3</NbOfTxs>", plain),
        [Reason::CountMismatch]
    );
    assert_eq!(
        read(count, "<NbOfTxs>-2</NbOfTxs>", plain),
        [Reason::CountMismatch]
    );
    assert_eq!(
        read(count, "<NbOfTxs>0000000000000002</NbOfTxs>", plain),
        [Reason::CountMismatch]
    );
    assert_eq!(read(count, "<NbOfTxs>000000000000002</NbOfTxs>", plain), []);
    assert_eq!(read(count, &sum("10.01"), plain), []);
    assert_eq!(read(count, &sum("10.01000"), plain), []);
    assert_eq!(
        read(count, &sum("10.02"), plain),
        [Reason::ControlSumMismatch]
    );
    assert_eq!(read(count, &sum("x"), plain), [Reason::ControlSumMismatch]);
    assert_eq!(read(count, &total("10.01"), plain), []);
    assert_eq!(read(count, &total("10.00"), plain), [Reason::TotalMismatch]);
    assert_eq!(
        read(count, &total("10.01").replace("EUR", "USD"), plain),
        [Reason::TotalMismatch]
    );
    // Exact where binary fractions are not.
    assert_eq!(
        read(
            count,
            &sum("90071992547409.94"),
            ["90071992547409.93", "0.01"]
        ),
        []
    );
    assert_eq!(read(count, &sum("0.30"), ["0.10", "0.20"]), []);
    // One payment without a readable amount is refused alone.
    assert_eq!(read(count, &sum("10.00"), ["10.00", "ten"]), []);
    // More decimals than the currency has still sum.
    assert_eq!(read(count, &sum("10.0001"), ["10.00", "0.0001"]), []);
}

#[test]
fn a_control_sum_counts_all_currencies() {
    let transactions = transaction(1, "10.00") + &transaction(2, "1000").replace("EUR", "JPY");
    let with = |part: &str| {
        let group = group(2).replace("</NbOfTxs>", &format!("</NbOfTxs>{part}"));
        submission(&document(&group, &transactions))
            .faults
            .iter()
            .collect::<Vec<_>>()
    };
    assert_eq!(with("<CtrlSum>1010</CtrlSum>"), []);
    assert_eq!(
        with("<TtlIntrBkSttlmAmt Ccy='EUR'>1010</TtlIntrBkSttlmAmt>"),
        [Reason::TotalMismatch]
    );
}

#[test]
fn channel_and_priority_say_how_payments_settle() {
    let gross = |class, settle_or_refuse| Settlement::Gross {
        class,
        settle_or_refuse,
    };
    let read = |channel: &str, priority: &str, instrument: &str| {
        let part = |name: &str, value: &str| {
            if value.is_empty() {
                String::new()
            } else {
                format!("<{name}>{value}</{name}>")
            }
        };
        let kind = part("ClrChanl", channel) + &part("LclInstrm", &part("Prtry", instrument));
        let own = transaction(1, "10.00").replace(
            "</IntrBkSttlmDt>",
            &format!("</IntrBkSttlmDt>{}", part("SttlmPrty", priority)),
        );
        let in_transaction =
            own.replace("</PmtId>", &format!("</PmtId>{}", part("PmtTpInf", &kind)));
        let in_group = group(1).replace(
            "</SttlmInf>",
            &format!("</SttlmInf>{}", part("PmtTpInf", &kind)),
        );
        let a = submission(&document(&group(1), &in_transaction));
        let b = submission(&document(&in_group, &own));
        assert_eq!(a.settlement, b.settlement);
        assert_eq!(a.faults, b.faults);
        (a.settlement, a.faults.iter().collect::<Vec<_>>())
    };
    assert_eq!(read("", "", ""), (Settlement::Net, vec![]));
    assert_eq!(read("", "NORM", ""), (Settlement::Net, vec![]));
    assert_eq!(read("", "HIGH", ""), (gross(Class::High, false), vec![]));
    assert_eq!(read("", "URGT", ""), (gross(Class::Urgent, false), vec![]));
    assert_eq!(
        read("", "URGT", "SOR"),
        (gross(Class::Urgent, true), vec![])
    );
    assert_eq!(read("RTGS", "", ""), (gross(Class::Normal, false), vec![]));
    assert_eq!(
        read("RTGS", "NORM", "SOR"),
        (gross(Class::Normal, true), vec![])
    );
    assert_eq!(
        read("RTGS", "HIGH", "OTHER"),
        (gross(Class::High, false), vec![])
    );
    assert_eq!(read("RTNS", "", ""), (Settlement::Net, vec![]));
    assert_eq!(read("MPNS", "NORM", ""), (Settlement::Net, vec![]));
    assert_eq!(read("MPNS", "HIGH", "").1, [Reason::ClassConflict]);
    assert_eq!(read("RTNS", "URGT", "").1, [Reason::ClassConflict]);
    assert_eq!(read("BOOK", "", "").1, [Reason::MessageNotSupported]);
}

#[test]
fn payments_of_one_message_settle_alike() {
    let (message, ..) = changed(
        "</IntrBkSttlmDt>",
        "</IntrBkSttlmDt><SttlmPrty>URGT</SttlmPrty>",
    );
    assert_eq!(message, [Reason::ClassConflict]);
    let (message, ..) = changed(
        "</PmtId>",
        "</PmtId><PmtTpInf><ClrChanl>RTNS</ClrChanl></PmtTpInf>",
    );
    assert_eq!(message, []);
    let group = group(1).replace(
        "</SttlmInf>",
        "</SttlmInf><PmtTpInf><ClrChanl>RTGS</ClrChanl></PmtTpInf>",
    );
    let own = transaction(1, "1").replace(
        "</PmtId>",
        "</PmtId><PmtTpInf><ClrChanl>MPNS</ClrChanl></PmtTpInf>",
    );
    assert_eq!(
        submission(&document(&group, &own)).faults.first(),
        Some(Reason::ClassConflict)
    );
}

#[test]
fn only_clearing_is_served() {
    for method in ["INDA", "INGA", "COVE", ""] {
        let text = message(1).replace("CLRG", method);
        assert_eq!(
            submission(&text).faults.iter().collect::<Vec<_>>(),
            [Reason::MessageNotSupported]
        );
    }
}

#[test]
fn settlement_times_are_utc_on_the_settlement_date() {
    let text = message(2).replacen(
        "</IntrBkSttlmDt>",
        "</IntrBkSttlmDt><SttlmTmReq><TillTm>01:00:00.5+02:00</TillTm><RjctTm>23:00:00-02:00</RjctTm></SttlmTmReq>",
        1,
    );
    let submission = submission(&text);
    let [(0, times)] = submission.times[..] else {
        panic!("{:?}", submission.times)
    };
    assert_eq!(times.earliest, None);
    assert_eq!(
        times.latest.map(|at| at.to_string()).as_deref(),
        Some("2026-11-29T23:00:00.500000Z")
    );
    assert_eq!(
        times.reject.map(|at| at.to_string()).as_deref(),
        Some("2026-12-01T01:00:00.000000Z")
    );
}

#[test]
fn without_a_uetr_the_transaction_identifier_is_the_key() {
    let text = message(1)
        .replace("<UETR>8a562c67-ca16-48ba-b074-000000000001</UETR>", "")
        .replace("T-1", "T&amp;1");
    assert_eq!(
        submission(&text).payments[0].id,
        PaymentId::of_transaction("T&1")
    );
}

#[test]
fn the_sender_is_who_delivered_it_or_who_the_header_names_or_who_instructs() {
    let plain = message(1);
    let with_header = |from: &str| format!("<M>{}{plain}</M>", header(from, "pacs.008.001.08", ""));
    let read = |text: &str, sender| match read_with(text, sender, false) {
        Ok(Incoming::Submission(read)) => (
            read.submission.sender,
            read.submission.faults.iter().collect::<Vec<_>>(),
        ),
        other => panic!("{other:?}"),
    };
    assert_eq!(read(&plain, None), (bic("ALFADEFF"), vec![]));
    assert_eq!(read(&plain, Some("ALFADEFF")), (bic("ALFADEFF"), vec![]));
    assert_eq!(
        read(&plain, Some("GAMMDEFF")),
        (bic("GAMMDEFF"), vec![Reason::SenderUnknown])
    );
    assert_eq!(
        read(&with_header("ALFADEFFXXX"), None),
        (bic("ALFADEFF"), vec![])
    );
    assert_eq!(
        read(&with_header("GAMMDEFF"), None),
        (bic("GAMMDEFF"), vec![Reason::SenderUnknown])
    );
    assert_eq!(
        read(&with_header("GAMMDEFF"), Some("ALFADEFF")),
        (bic("ALFADEFF"), vec![Reason::HeaderMismatch])
    );
    // The header behind the document.
    let behind = format!(
        "<M>{plain}{}</M>",
        header("GAMMDEFF", "pacs.008.001.08", "")
    );
    assert_eq!(
        read(&behind, None),
        (bic("GAMMDEFF"), vec![Reason::SenderUnknown])
    );
    // Two payments of different instructing agents.
    let own = "<InstgAgt><FinInstnId><BICFI>ALFADEFF</BICFI></FinInstnId></InstgAgt>";
    let other = document(
        &group(2),
        &(transaction(1, "1") + &transaction(2, "1").replace(own, &own.replace("ALFA", "GAMM"))),
    );
    assert_eq!(read(&other, None).1, [Reason::SenderUnknown]);
    // Nobody.
    let nobody = plain.replace(own, "");
    let fault = read_with(&nobody, None, false).unwrap_err();
    assert_eq!((fault.reason, fault.sender), (Reason::SenderUnknown, None));
    assert_eq!(fault.message_id.as_deref(), Some("ALFA-1"));
    assert_eq!(read(&nobody, Some("ALFADEFF")), (bic("ALFADEFF"), vec![]));
}

#[test]
fn the_header_agrees_with_the_message() {
    let text = |definition: &str| {
        format!(
            "<M>{}{}</M>",
            header("ALFADEFF", definition, ""),
            message(1)
        )
    };
    assert!(submission(&text("pacs.008.001.08")).faults.is_empty());
    for other in ["pacs.008.001.09", "pacs.009.001.08", "pacs.008.001.08 ", ""] {
        assert_eq!(
            submission(&text(other)).faults.first(),
            Some(Reason::HeaderMismatch),
            "{other}"
        );
    }
    let unnamed = text("pacs.008.001.08").replacen(
        "<BICFI>ALFADEFF</BICFI>",
        "<LEI>529900T8BM49AURSDO55</LEI>",
        1,
    );
    assert_eq!(
        submission(&unnamed).faults.first(),
        Some(Reason::HeaderMismatch)
    );
}

#[test]
fn the_header_is_handed_on() {
    let more = "<CpyDplct>CODU</CpyDplct><PssblDplct>true</PssblDplct>";
    let text = format!(
        "<M>{}{}</M>",
        header("ALFADEFF", "pacs.008.001.08", more),
        message(1)
    );
    let header = submitted(&text).header.unwrap();
    assert_eq!(header.version, 2);
    assert_eq!(header.from, Some(bic("ALFADEFF")));
    assert_eq!(header.to, Some(bic("CLRSDEFF")));
    assert_eq!(header.message_id, "B-1");
    assert_eq!(header.copy.as_deref(), Some("CODU"));
    assert!(header.possible_duplicate);
}

#[test]
fn numbered_messages_carry_a_number() {
    let read = |id: &str| match read_with(&message(1).replace("ALFA-1", id), Some("ALFADEFF"), true)
    {
        Ok(Incoming::Submission(read)) => {
            (read.submission.sequence, read.submission.faults.first())
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(read("ALFA-1"), (Some(1), None));
    assert_eq!(read("ALFA/20261130/000017"), (Some(17), None));
    assert_eq!(read("ALFA17"), (None, Some(Reason::SequenceMissing)));
    assert_eq!(submission(&message(1)).sequence, None);
}

#[test]
fn a_message_without_usable_identifier_is_a_fault() {
    for (to, id) in [
        (String::new(), None),
        ("<MsgId></MsgId>".to_owned(), Some(String::new())),
        (
            format!("<MsgId>{}</MsgId>", "x".repeat(36)),
            Some("x".repeat(36)),
        ),
    ] {
        let fault = refused(&message(1).replace("<MsgId>ALFA-1</MsgId>", &to));
        assert_eq!(fault.reason, Reason::MessageIdInvalid);
        assert_eq!(fault.message_id, id);
        assert_eq!(fault.sender, Some(bic("ALFADEFF")));
        assert_eq!(fault.message_name.as_deref(), Some("pacs.008.001.08"));
    }
}

#[test]
fn places_are_named() {
    let text = message(3)
        .replace("><", ">\n<")
        .replace("<EndToEndId>E-3</EndToEndId>\n", "");
    let fault = refused(&text);
    assert_eq!(fault.reason, Reason::Syntax);
    assert_eq!(
        fault.path,
        "/Document/FIToFICstmrCdtTrf/CdtTrfTxInf[3]/PmtId"
    );
    assert!(fault.detail.contains("EndToEndId"), "{}", fault.detail);
    let line = text.lines().position(|line| line.contains("T-3")).unwrap();
    assert_eq!(fault.line, u64::try_from(line).unwrap() + 1);

    let text = message(3)
        .replace("><", ">\r\n<")
        .replace("E-3", &"x".repeat(36));
    let notes = submitted(&text).notes;
    let [note] = &notes[..] else {
        panic!("{notes:?}")
    };
    assert_eq!(note.payment, Some(2));
    assert_eq!(
        note.path,
        "/Document/FIToFICstmrCdtTrf/CdtTrfTxInf[3]/PmtId/EndToEndId"
    );
    let line = text.lines().position(|line| line.contains("xxxx")).unwrap();
    assert_eq!(note.line, u64::try_from(line).unwrap() + 1);
}

#[test]
fn what_is_found_at_the_end_is_placed_where_it_stands() {
    let text = message(2)
        .replace("b074-000000000002", "b074-000000000001")
        .replace("<NbOfTxs>2", "<NbOfTxs>3");
    let text =
        format!("<M>{}{text}</M>", header("ALFADEFF", "pacs.008.001.09", "")).replace("><", ">\n<");
    let line = |part: &str| text.lines().position(|line| line.contains(part)).unwrap() + 1;
    let second = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains("<CdtTrfTxInf>"))
        .nth(1)
        .unwrap()
        .0
        + 1;
    let notes: Vec<_> = submitted(&text)
        .notes
        .into_iter()
        .map(|note| {
            (
                note.reason,
                note.payment,
                usize::try_from(note.line).unwrap(),
                note.path,
            )
        })
        .collect();
    assert_eq!(
        notes,
        [
            (
                Reason::HeaderMismatch,
                None,
                line("<MsgDefIdr>"),
                "/AppHdr/MsgDefIdr".to_owned()
            ),
            (
                Reason::CountMismatch,
                None,
                line("<NbOfTxs>"),
                "/Document/FIToFICstmrCdtTrf/GrpHdr/NbOfTxs".to_owned()
            ),
            (
                Reason::DuplicateInMessage,
                Some(1),
                second,
                "/Document/FIToFICstmrCdtTrf/CdtTrfTxInf[2]".to_owned()
            ),
        ]
    );
}

#[test]
fn a_bank_transfer_and_its_cover_form() {
    let core = message(1)
        .replace("pacs.008.001.08", "pacs.009.001.08")
        .replace("FIToFICstmrCdtTrf", "FICdtTrf")
        .replace("<ChrgBr>SLEV</ChrgBr>", "");
    let read = submission(&core);
    assert_eq!(read.kind, MessageKind::BankTransfer);
    assert!(read.payments[0].faults.is_empty());
    let cover = core.replace(
        "</CdtTrfTxInf>",
        "<UndrlygCstmrCdtTrf><Dbtr><Nm>X</Nm></Dbtr></UndrlygCstmrCdtTrf></CdtTrfTxInf>",
    );
    assert_eq!(submission(&cover).kind, MessageKind::CoverTransfer);
}

fn payment_return(more: &str, transactions: &str) -> String {
    format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.004.001.10\"><PmtRtr><GrpHdr><MsgId>ALFA-2</MsgId>\
         <CreDtTm>2026-11-30T08:00:00Z</CreDtTm><NbOfTxs>1</NbOfTxs>{more}<SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf>\
         <InstgAgt>{BANK}</InstgAgt><InstdAgt><FinInstnId><BICFI>BETAFRPP</BICFI></FinInstnId></InstdAgt></GrpHdr>\
         <OrgnlGrpInf><OrgnlMsgId>BETA-9</OrgnlMsgId><OrgnlMsgNmId>pacs.008.001.08</OrgnlMsgNmId></OrgnlGrpInf>\
         {transactions}</PmtRtr></Document>"
    )
}

#[test]
fn a_return_settles_gross_and_names_its_original() {
    let own = "<TxInf><RtrId>R-1</RtrId><OrgnlTxId>T-1</OrgnlTxId><OrgnlUETR>8a562c67-ca16-48ba-b074-000000000001</OrgnlUETR>\
               <RtrdIntrBkSttlmAmt Ccy=\"EUR\">4.00</RtrdIntrBkSttlmAmt><IntrBkSttlmDt>2026-11-30</IntrBkSttlmDt>\
               <SttlmPrty>HIGH</SttlmPrty><RtrRsnInf><Rsn><Cd>AC04</Cd></Rsn></RtrRsnInf></TxInf>";
    let text = payment_return("", own);
    let read = submission(&text);
    assert_eq!(read.kind, MessageKind::Return);
    assert_eq!(
        read.settlement,
        Settlement::Gross {
            class: Class::High,
            settle_or_refuse: false
        }
    );
    assert_eq!(read.payments[0].id, PaymentId::of_transaction("R-1"));
    assert_eq!(read.payments[0].amount.minor(), 400);
    assert_eq!(read.payments[0].receiver, Some(bic("BETAFRPP")));
    assert!(read.payments[0].faults.is_empty());
    let [(0, original)] = read.originals[..] else {
        panic!()
    };
    assert_eq!(
        original.id,
        PaymentId::parse_uetr(b"8a562c67-ca16-48ba-b074-000000000001").unwrap()
    );
    assert_eq!(&original.reason, b"AC04");
    let context = heap::heap_context(&read.heap).unwrap();
    assert!(
        context
            .original_group
            .starts_with(b"<OrgnlGrpInf><OrgnlMsgId>BETA-9")
    );
    let by_id = submission(&text.replace(
        "<OrgnlUETR>8a562c67-ca16-48ba-b074-000000000001</OrgnlUETR>",
        "",
    ));
    assert_eq!(by_id.originals[0].1.id, PaymentId::of_transaction("T-1"));
    for (from, reason) in [
        ("<RtrId>R-1</RtrId>", Reason::IdMissing),
        (
            "<RtrdIntrBkSttlmAmt Ccy=\"EUR\">4.00</RtrdIntrBkSttlmAmt>",
            Reason::CurrencyInvalid,
        ),
    ] {
        assert_eq!(
            submission(&text.replace(from, "")).payments[0]
                .faults
                .first(),
            Some(reason)
        );
    }
    let whole = payment_return("<GrpRtr>true</GrpRtr>", own);
    assert_eq!(
        submission(&whole).faults.first(),
        Some(Reason::MessageNotSupported)
    );
    let empty = payment_return("", "").replace("<NbOfTxs>1", "<NbOfTxs>0");
    assert_eq!(
        submission(&empty).faults.first(),
        Some(Reason::MessageNotSupported)
    );
}

fn cancellation(transactions: &str) -> String {
    format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.056.001.08\"><FIToFIPmtCxlReq><Assgnmt><Id>ALFA-3</Id>\
         <Assgnr><Agt>{BANK}</Agt></Assgnr><Assgne><Agt><FinInstnId><BICFI>CLRSDEFF</BICFI></FinInstnId></Agt></Assgne>\
         <CreDtTm>2026-11-30T08:00:00Z</CreDtTm></Assgnmt><CtrlData><NbOfTxs>2</NbOfTxs></CtrlData>\
         <Undrlyg>{transactions}</Undrlyg></FIToFIPmtCxlReq></Document>"
    )
}

#[test]
fn a_cancellation_names_payments_and_a_reason() {
    let text = cancellation(
        "<TxInf><CxlId>C-1</CxlId><OrgnlUETR>8a562c67-ca16-48ba-b074-000000000001</OrgnlUETR>\
         <OrgnlIntrBkSttlmAmt Ccy='EUR'>10.00</OrgnlIntrBkSttlmAmt><OrgnlIntrBkSttlmDt>2026-11-30</OrgnlIntrBkSttlmDt>\
         <CxlRsnInf><Rsn><Cd>DUPL</Cd></Rsn></CxlRsnInf></TxInf><TxInf><OrgnlTxId>T-2</OrgnlTxId></TxInf>",
    );
    let read = submission(&text);
    assert_eq!(read.kind, MessageKind::Cancellation);
    assert_eq!(read.message_id.as_str(), "ALFA-3");
    assert!(read.faults.is_empty(), "{:?}", read.faults);
    assert!(
        read.payments
            .iter()
            .all(|payment| payment.faults.is_empty())
    );
    assert_eq!(read.payments[0].amount.minor(), 1000);
    assert_eq!(read.originals[0].1.reason, *b"DUPL");
    assert_eq!(read.originals[1].1.id, PaymentId::of_transaction("T-2"));
    assert_eq!(read.originals[1].1.reason, *b"    ");
    let sender = match read_with(&text, None, false) {
        Ok(Incoming::Submission(read)) => read.submission.sender,
        other => panic!("{other:?}"),
    };
    assert_eq!(sender, bic("ALFADEFF"));
    assert_eq!(
        submission(&text.replace("ALFADEFF", "GAMMDEFF"))
            .faults
            .first(),
        Some(Reason::SenderUnknown)
    );
    assert_eq!(
        submission(&text.replace("<NbOfTxs>2", "<NbOfTxs>3"))
            .faults
            .first(),
        Some(Reason::CountMismatch)
    );
    let group = cancellation("<OrgnlGrpInfAndCxl><OrgnlMsgId>M</OrgnlMsgId></OrgnlGrpInfAndCxl>");
    assert!(
        submission(&group)
            .faults
            .iter()
            .any(|reason| reason == Reason::MessageNotSupported)
    );
    // Two parents with different declarations cannot share one heap context.
    let two = text.replace(
        "</TxInf><TxInf>",
        "</TxInf></Undrlyg><Undrlyg xmlns:x=\"urn:x\"><TxInf>",
    );
    assert_eq!(refused(&two).reason, Reason::Syntax);
    assert!(
        submission(&two.replace(" xmlns:x=\"urn:x\"", ""))
            .faults
            .is_empty()
    );
}

#[test]
fn a_status_request_names_messages_and_payments() {
    let text = format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.028.001.03\"><FIToFIPmtStsReq><GrpHdr><MsgId>S-1</MsgId>\
         <CreDtTm>2026-11-30T08:00:00Z</CreDtTm><InstgAgt>{BANK}</InstgAgt></GrpHdr>\
         <OrgnlGrpInf><OrgnlMsgId>ALFA-1</OrgnlMsgId><OrgnlMsgNmId>pacs.008.001.08</OrgnlMsgNmId></OrgnlGrpInf>\
         <TxInf><StsReqId>Q</StsReqId><OrgnlEndToEndId>E</OrgnlEndToEndId><OrgnlTxId>T-1</OrgnlTxId></TxInf></FIToFIPmtStsReq></Document>"
    );
    let Ok(Incoming::StatusRequest(request)) = read_with(&text, None, true) else {
        panic!()
    };
    assert_eq!((request.sender, request.version), (bic("ALFADEFF"), 3));
    assert_eq!(request.originals[0].message_id, "ALFA-1");
    assert_eq!(
        request.payments[0].id,
        Some(PaymentId::of_transaction("T-1"))
    );
    assert_eq!(request.payments[0].request_id.as_deref(), Some("Q"));
    let fault = read_with(&text, Some("GAMMDEFF"), false).unwrap_err();
    assert_eq!(fault.reason, Reason::SenderUnknown);
    assert_eq!(
        fault.path,
        "/Document/FIToFIPmtStsReq/GrpHdr/InstgAgt/FinInstnId/BICFI"
    );
}

#[test]
fn a_report_request_names_reports() {
    let report = |more: &str| {
        format!(
            "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.060.001.05\"><AcctRptgReq><GrpHdr><MsgId>Q-1</MsgId>\
             <CreDtTm>2026-11-30T08:00:00Z</CreDtTm></GrpHdr><RptgReq><Id>1</Id><ReqdMsgNmId>camt.053</ReqdMsgNmId>\
             <Acct><Id><Othr><Id>EUR</Id></Othr></Id><Ccy>EUR</Ccy></Acct><AcctOwnr><Agt>{BANK}</Agt></AcctOwnr>\
             {more}</RptgReq></AcctRptgReq></Document>"
        )
    };
    let read = |more: &str| match read_with(&report(more), None, false) {
        Ok(Incoming::ReportRequest(request)) => request,
        other => panic!("{other:?}"),
    };
    let request = read(
        "<RptgPrd><FrToDt><FrDt>2026-11-29</FrDt><ToDt>2026-11-30</ToDt></FrToDt><Tp>ALLL</Tp></RptgPrd>\
         <RptgSeq><FrToSeq><FrSeq>3</FrSeq><ToSeq>9</ToSeq></FrToSeq><FrToSeq><FrSeq>12</FrSeq><ToSeq>12</ToSeq></FrToSeq></RptgSeq>",
    );
    assert_eq!(request.sender, bic("ALFADEFF"));
    let [only] = &request.reports[..] else {
        panic!()
    };
    assert_eq!(only.message_name, "camt.053");
    assert_eq!(
        only.currency
            .map(|currency| currency.to_string())
            .as_deref(),
        Some("EUR")
    );
    assert_eq!(
        only.from_date.map(|date| date.to_string()).as_deref(),
        Some("2026-11-29")
    );
    assert_eq!(
        only.to_date.map(|date| date.to_string()).as_deref(),
        Some("2026-11-30")
    );
    assert_eq!(only.sequences, [(Some(3), Some(9)), (Some(12), Some(12))]);
    assert_eq!(
        read("<RptgSeq><FrSeq>3</FrSeq></RptgSeq>").reports[0].sequences,
        [(Some(3), None)]
    );
    assert_eq!(
        read("<RptgSeq><ToSeq>3</ToSeq></RptgSeq>").reports[0].sequences,
        [(None, Some(3))]
    );
    assert_eq!(
        read("<RptgSeq><EQSeq>3</EQSeq><EQSeq>5</EQSeq></RptgSeq>").reports[0].sequences,
        [(Some(3), Some(3)), (Some(5), Some(5))]
    );
    let fault = read_with(
        &report("<RptgSeq><FrSeq>three</FrSeq></RptgSeq>"),
        None,
        false,
    )
    .unwrap_err();
    assert_eq!(fault.reason, Reason::FieldInvalid);
    let fault = read_with(&report("<RptgSeq></RptgSeq>"), None, false).unwrap_err();
    assert_eq!(fault.reason, Reason::Syntax);
}

#[test]
fn versions_differ_by_their_elements() {
    let of =
        |version: &str| message(1).replace("pacs.008.001.08", &format!("pacs.008.001.{version}"));
    for version in ["08", "09", "10", "11", "12", "13"] {
        assert_eq!(
            submission(&of(version)).version,
            version.parse::<u8>().unwrap()
        );
    }
    // UETR came with .08; before, the transaction identifier is the key.
    assert_eq!(refused(&of("07")).reason, Reason::Syntax);
    let old = of("06").replace("<UETR>8a562c67-ca16-48ba-b074-000000000001</UETR>", "");
    assert_eq!(
        submission(&old).payments[0].id,
        PaymentId::of_transaction("T-1")
    );
    for version in ["05", "14", "8", "008"] {
        let fault = refused(&of(version));
        assert_eq!(fault.reason, Reason::MessageNotSupported, "{version}");
        assert_eq!(fault.message_name, Some(format!("pacs.008.001.{version}")));
    }
    let expiry = message(1).replace(
        "</CreDtTm>",
        "</CreDtTm><XpryDtTm>2026-12-01T00:00:00Z</XpryDtTm>",
    );
    assert_eq!(refused(&expiry).reason, Reason::Syntax);
    assert!(
        submission(&expiry.replace("001.08", "001.13"))
            .faults
            .is_empty()
    );
}
