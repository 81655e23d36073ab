//! The first section: packages, urgent payments and their queue, duplicates, faults, strange clothes, order, netting.

use super::super::manifest::Answer;
use super::super::message::{Header, Kind, Payment};
use super::super::writer::{OPERATOR, channel};
use super::super::{Version, Wrapping};
use super::build::{Example, text};
use super::requests::Original;
use super::wire;
use super::{ALFA, BRAV, CHAR, DELT, ECHO, FOXT, GOLF, HOTL, INDI, JULI, KILO, LIMA, MIKE};

/// An amount with no minor unit left over, so that sums are easy.
const URGENT_LARGE: &str = "12000.00";

pub(super) fn script(day: &mut Example) {
    packages(day);
    urgent(day);
    queue(day);
    duplicates(day);
    faulty_payments(day);
    faulty_messages(day);
    unreadable(day);
    clothes(day);
    versions(day);
    sequence(day);
    netting(day);
}

fn packages(day: &mut Example) {
    let id = day.id(ALFA, "P1");
    let payments = day.generated(ALFA, &id, 20, &["EUR", "JPY", "KWD"], Version::default());
    day.add(
        "package-20-three-currencies",
        &day.message(ALFA, &id, &payments),
        Answer::Accepted,
        [
            "20 net payments in EUR, JPY and KWD by turns",
            "all accepted, all settled in cycle 1",
            "each currency is netted alone; the control sum adds amounts whatever their currency",
        ],
    );

    let id = day.id(BRAV, "P1");
    let mut payments = day.generated(BRAV, &id, 40, &["EUR"], Version::default());
    let mut message = day.message(BRAV, &id, &payments);
    let total = message.control_sum.clone().unwrap_or_default();
    payments
        .iter_mut()
        .for_each(|payment| payment.value_date = None);
    message = day.message(BRAV, &id, &payments);
    message.total = Some(("EUR".to_owned(), total));
    message.value_date = Some(super::BUSINESS_DATE.to_owned());
    message.type_information = channel("MPNS");
    day.add(
        "package-40-group-total",
        &message,
        Answer::Accepted,
        [
            "40 net payments in EUR, total and value date in the group header, channel MPNS",
            "all accepted, all settled in cycle 1",
            "total and date may stand in the group or in each payment, not in both",
        ],
    );

    let id = day.id(CHAR, "P1");
    let payments = day.generated(CHAR, &id, 60, &["EUR", "JPY"], Version::default());
    let mut message = day.message(CHAR, &id, &payments);
    message.wrapping = Wrapping::Message;
    day.add(
        "package-60-with-header",
        &message,
        Answer::Accepted,
        [
            "60 net payments below a business header (head.001)",
            "all accepted, all settled in cycle 1",
            "the header names the sender and the message that the payload really is",
        ],
    );
}

fn urgent(day: &mut Example) {
    let id = day.id(ALFA, "U1");
    let payment = day.urgent(ALFA, BRAV, URGENT_LARGE, &id);
    day.add(
        "urgent",
        &day.message(ALFA, &id, &[payment]),
        Answer::Accepted,
        [
            "ALFA pays BRAV 12000.00 EUR, priority URGT",
            "ACSC",
            "funds are there: settled gross, at once",
        ],
    );
    day.settle(ALFA, BRAV, "EUR", URGENT_LARGE);

    let id = day.id(BRAV, "U1");
    let payment = Payment {
        type_information: channel("RTGS"),
        priority: None,
        ..day.urgent_bank(BRAV, DELT, "JPY", "50000", &id)
    };
    let payments = [payment];
    let mut message = day.message(BRAV, &id, &payments);
    message.kind = Kind::Bank;
    day.add(
        "urgent-pacs009-channel-rtgs",
        &message,
        Answer::Accepted,
        [
            "BRAV pays DELT 50000 JPY by pacs.009, channel RTGS, no priority",
            "ACSC",
            "the channel alone says gross",
        ],
    );
    day.settle(BRAV, DELT, "JPY", "50000");
}

/// HOTL owns 100.00 EUR and no credit line.
fn queue(day: &mut Example) {
    let id = day.id(HOTL, "U3");
    let payment = Payment {
        type_information: "<PmtTpInf><LclInstrm><Prtry>SOR</Prtry></LclInstrm></PmtTpInf>"
            .to_owned(),
        ..day.urgent(HOTL, CHAR, "500.00", &id)
    };
    day.result(
        (1, &payment),
        "refused",
        Some("AM04"),
        "settle or refuse: it does not wait",
    );
    day.add(
        "urgent-settle-or-refuse",
        &day.message(HOTL, &id, &[payment]),
        Answer::Accepted,
        [
            "HOTL pays CHAR 500.00 EUR, settle or refuse",
            "RJCT AM04",
            "no funds (100.00), and the sender does not want it queued",
        ],
    );

    let queued_id = day.id(HOTL, "U1");
    let queued = day.urgent(HOTL, ALFA, "250.00", &queued_id);
    day.result(
        (1, &queued),
        "settled",
        None,
        "PDNG AM04 first; ACSC once ALFA's 400.00 are there",
    );
    day.add(
        "urgent-queued",
        &day.message(HOTL, &queued_id, &[queued]),
        Answer::Accepted,
        [
            "HOTL pays ALFA 250.00 EUR and owns 100.00",
            "PDNG AM04; later ACSC",
            "no funds: it waits at the head of HOTL's queue",
        ],
    );
    day.settle(HOTL, ALFA, "EUR", "250.00");

    let id = day.id(HOTL, "U2");
    let payment = day.urgent(HOTL, BRAV, "50.00", &id);
    day.result(
        (1, &payment),
        "settled",
        None,
        "PDNG ED05 first; ACSC after the payment before it",
    );
    day.add(
        "urgent-behind-the-queue",
        &day.message(HOTL, &id, &[payment]),
        Answer::Accepted,
        [
            "HOTL pays BRAV 50.00 EUR, less than it owns",
            "PDNG ED05; later ACSC",
            "order is strict inside sender, account and class: nothing overtakes the head",
        ],
    );
    day.settle(HOTL, BRAV, "EUR", "50.00");

    let id = day.id(HOTL, "U4");
    let payment = Payment {
        times: "<RjctTm>00:00:01Z</RjctTm>".to_owned(),
        ..day.urgent(HOTL, DELT, "75.00", &id)
    };
    day.result(
        (1, &payment),
        "refused",
        Some("TM01"),
        "its reject time has passed",
    );
    day.add(
        "urgent-reject-time-passed",
        &day.message(HOTL, &id, &[payment]),
        Answer::Accepted,
        [
            "HOTL pays DELT 75.00 EUR, to be refused after 00:00:01Z",
            "RJCT TM01",
            "the reject time has passed on arrival",
        ],
    );

    let id = day.id(HOTL, "U5");
    let cancelled = day.urgent(HOTL, CHAR, "40.00", &id);
    day.result(
        (1, &cancelled),
        "cancelled",
        None,
        "cancelled by the next file",
    );
    let payments = [cancelled];
    day.add(
        "urgent-to-be-cancelled",
        &day.message(HOTL, &id, &payments),
        Answer::Accepted,
        [
            "HOTL pays CHAR 40.00 EUR",
            "PDNG ED05; then cancelled",
            "third in HOTL's queue when its cancellation comes",
        ],
    );

    let cancellation = day.id(HOTL, "C1");
    let original = Original {
        message_id: &id,
        payment: &payments[0],
    };
    let xml = day.cancellation(HOTL, &cancellation, &original, "CUST");
    day.add_bytes(
        "cancel-queued",
        xml.into_bytes(),
        Some(&cancellation),
        0,
        Answer::Accepted,
        [
            "HOTL cancels its 40.00 (camt.056)",
            "camt.029 CNCL",
            "it was still queued: gone, nothing posted",
        ],
    );

    let funds_id = day.id(ALFA, "U2");
    let funds = [day.urgent(ALFA, HOTL, "400.00", &funds_id)];
    day.add(
        "urgent-funds-arrive",
        &day.message(ALFA, &funds_id, &funds),
        Answer::Accepted,
        [
            "ALFA pays HOTL 400.00 EUR",
            "ACSC; HOTL's 250.00 and 50.00 settle after it",
            "100 + 400 = 500 covers 250, then 50: HOTL keeps 200.00",
        ],
    );
    day.settle(ALFA, HOTL, "EUR", "400.00");

    let unknown_id = day.id(ALFA, "NEVER");
    let unknown = day.urgent(ALFA, BRAV, "1.00", &unknown_id);
    let cancellation = day.id(ALFA, "C1");
    let xml = day.cancellation(
        ALFA,
        &cancellation,
        &Original {
            message_id: &unknown_id,
            payment: &unknown,
        },
        "DUPL",
    );
    day.add_bytes(
        "cancel-unknown",
        xml.into_bytes(),
        Some(&cancellation),
        0,
        Answer::Refused("NOOR"),
        [
            "ALFA cancels a payment that it never sent",
            "camt.029 RJCR NOOR",
            "no original received",
        ],
    );

    let recall = day.id(ALFA, "C2");
    let xml = day.cancellation(
        ALFA,
        &recall,
        &Original {
            message_id: &funds_id,
            payment: &funds[0],
        },
        "TECH",
    );
    day.add_bytes(
        "recall-settled",
        xml.into_bytes(),
        Some(&recall),
        0,
        Answer::Accepted,
        [
            "ALFA asks HOTL for the 400.00 back (camt.056)",
            "camt.029 PDCR to ALFA, the camt.056 to HOTL",
            "a settled payment is final: a recall is a request, and nothing is posted",
        ],
    );
}

/// All about the payment in `urgent`.
fn duplicates(day: &mut Example) {
    let first = day.bytes_of("-urgent.xml");
    let id = day.id(ALFA, "U1");
    day.add_bytes(
        "duplicate-file",
        first.clone(),
        Some(&id),
        1,
        Answer::Repeat,
        [
            "the file of ALFA's 12000.00, byte for byte",
            "its stored answer again (ACSC)",
            "same sender, MsgId and content: nothing is posted twice",
        ],
    );

    let xml = String::from_utf8(first)
        .expect("written as text")
        .replace("12000", "12001");
    day.add_bytes(
        "same-message-id-other-content",
        xml.clone().into_bytes(),
        Some(&id),
        1,
        Answer::Refused("DU01"),
        [
            "the same with 12001.00",
            "RJCT DU01",
            "same MsgId, other content: refused and recorded as an incident",
        ],
    );

    let original = xml.replace("12001", "12000");
    let group_id = format!("<MsgId>{id}</MsgId>");
    let again = day.id(ALFA, "U3");
    let xml = original.replace(&group_id, &format!("<MsgId>{again}</MsgId>"));
    let repeated = Payment {
        payment_id: Some(id.clone()),
        ..Payment::default()
    };
    day.result(
        (1, &repeated),
        "refused",
        Some("AM05"),
        "same TxId, UETR and content as an earlier payment",
    );
    day.add_bytes(
        "same-payment-new-message",
        xml.into_bytes(),
        Some(&again),
        1,
        Answer::Refused("AM05"),
        [
            "the payment of 12000.00 in a new message",
            "RJCT AM05",
            "same payment key and content: nothing is posted twice",
        ],
    );

    let changed = day.id(ALFA, "U4");
    let xml = original
        .replace(&group_id, &format!("<MsgId>{changed}</MsgId>"))
        .replace("12000", "12002");
    day.result(
        (1, &repeated),
        "refused",
        Some("DU03"),
        "its TxId and UETR belong to another payment",
    );
    day.add_bytes(
        "changed-payment-new-message",
        xml.into_bytes(),
        Some(&changed),
        1,
        Answer::Refused("DU03"),
        [
            "the same payment of 12002.00 in a new message",
            "RJCT DU03",
            "same payment key, other content",
        ],
    );

    let alike = day.id(ALFA, "U5");
    let payment = day.urgent(ALFA, BRAV, URGENT_LARGE, &id);
    let payment = Payment {
        payment_id: Some(alike.clone()),
        ..payment
    };
    day.add(
        "same-content-new-keys",
        &day.message(ALFA, &alike, &[payment]),
        Answer::Accepted,
        [
            "12000.00 from ALFA to BRAV as before, but with its own MsgId, TxId and UETR",
            "ACSC, flagged as alike",
            "two equal payments in a day are lawful; only keys make a duplicate",
        ],
    );
    day.settle(ALFA, BRAV, "EUR", URGENT_LARGE);
}

fn faulty_payments(day: &mut Example) {
    let id = day.id(ALFA, "P2");
    let mut payments: Vec<Payment> = (1..=18)
        .map(|number| day.payment(ALFA, BRAV, "EUR", "10.00", &format!("{id}.{number}")))
        .collect();
    let fault: [(&'static str, &'static str); 16] = [
        (
            "CH16",
            "UETR in capitals: not a UUID as the schema writes it",
        ),
        ("CH21", "neither TxId nor UETR: it has no key"),
        ("RF01", "TxId and UETR of payment 1, twice in one message"),
        (
            "AM03",
            "XAU: a real code, but no settlement account in gold",
        ),
        ("AM11", "ZZZ: no such currency"),
        ("AM11", "currency missing"),
        (
            "CH20",
            "12.34567 EUR: the schema allows five decimals, the currency two",
        ),
        ("CH20", "1000.5 JPY: the yen has none"),
        ("CH20", "1.2345 KWD: the dinar has three"),
        ("AM01", "0.00"),
        ("AM12", "amount empty"),
        ("RC04", "receiver QQQQDEFFXXX is no participant"),
        ("DT01", "value date of yesterday"),
        ("DT04", "value date of tomorrow"),
        ("AG03", "receiver is ALFA, who pays"),
        (
            "AM03",
            "XAU and amount zero and receiver unknown: the currency is checked first",
        ),
    ];
    let first = (payments[0].payment_id.clone(), payments[0].uetr.clone());
    let [_, bad @ .., _] = payments.as_mut_slice() else {
        unreachable!("eighteen payments")
    };
    bad[0].uetr = bad[0]
        .uetr
        .take()
        .map(|uetr| format!("a{}", &uetr[1..]).to_uppercase());
    (bad[1].payment_id, bad[1].uetr) = (None, None);
    (bad[2].payment_id, bad[2].uetr) = first;
    bad[3].currency = Some("XAU".to_owned());
    bad[4].currency = Some("ZZZ".to_owned());
    bad[5].currency = None;
    bad[6].amount = "12.34567".to_owned();
    (bad[7].currency, bad[7].amount) = (Some("JPY".to_owned()), "1000.5".to_owned());
    (bad[8].currency, bad[8].amount) = (Some("KWD".to_owned()), "1.2345".to_owned());
    bad[9].amount = "0.00".to_owned();
    bad[10].amount.clear();
    bad[11].instructed_agent = Some("QQQQDEFFXXX".to_owned());
    bad[12].value_date = Some("2026-11-29".to_owned());
    bad[13].value_date = Some("2026-12-01".to_owned());
    bad[14].instructed_agent = Some(day.bic(ALFA).to_owned());
    (bad[15].currency, bad[15].amount) = (Some("XAU".to_owned()), "0.00".to_owned());
    bad[15].instructed_agent = Some("QQQQDEFFXXX".to_owned());
    for (index, (reason, why)) in fault.into_iter().enumerate() {
        day.result(
            (index + 2, &payments[index + 1]),
            "refused",
            Some(reason),
            why,
        );
    }
    day.add(
        "package-part-16-faults",
        &day.message(ALFA, &id, &payments),
        Answer::Part,
        [
            "18 net payments from ALFA to BRAV: the first and the last good, 16 faulty",
            "PART; payments 1 and 18 settled in cycle 1",
            "faulty payments are refused singly, each with its first fault in the order of checks",
        ],
    );
    day.settle(ALFA, BRAV, "EUR", "20.00");

    let id = day.id(GOLF, "P1");
    let good = day.payment(GOLF, BRAV, "EUR", "10.00", &format!("{id}.1"));
    let bad = day.payment(GOLF, BRAV, "EUR", "0.00", &format!("{id}.2"));
    day.result(
        (1, &good),
        "refused",
        Some("AM01"),
        "good, but in one package with the next",
    );
    day.result((2, &bad), "refused", Some("AM01"), "amount zero");
    day.add(
        "package-refused-whole",
        &day.message(GOLF, &id, &[good, bad]),
        Answer::Refused("AM01"),
        [
            "2 payments from GOLF, the second of 0.00",
            "RJCT AM01, both",
            "GOLF chose refuse_whole = true",
        ],
    );

    let id = day.id(ALFA, "P3");
    let conflict = Payment {
        type_information: channel("MPNS"),
        ..day.urgent(ALFA, BRAV, "10.00", &id)
    };
    day.add(
        "class-conflict",
        &day.message(ALFA, &id, &[conflict]),
        Answer::Refused("CH17"),
        [
            "channel MPNS (net) and priority URGT (gross) in one payment",
            "RJCT CH17, whole",
            "the two contradict each other; all payments of a message settle alike, so the message is refused",
        ],
    );
}

fn faulty_messages(day: &mut Example) {
    let mut whole = |name: &str,
                     tag: &str,
                     reason: &'static str,
                     change: &dyn Fn(&mut String),
                     story: [&str; 3]| {
        let id = day.id(ALFA, tag);
        let payments = [
            day.payment(ALFA, CHAR, "EUR", "10.00", &format!("{id}.1")),
            day.payment(ALFA, DELT, "EUR", "20.00", &format!("{id}.2")),
        ];
        let mut xml = text(&day.message(ALFA, &id, &payments));
        change(&mut xml);
        day.add_bytes(
            name,
            xml.into_bytes(),
            Some(&id),
            2,
            Answer::Refused(reason),
            story,
        );
    };
    whole(
        "control-sum",
        "P4",
        "AM10",
        &|xml| *xml = xml.replace("<CtrlSum>30</CtrlSum>", "<CtrlSum>30.01</CtrlSum>"),
        [
            "control sum 30.01 over 10.00 + 20.00",
            "RJCT AM10, whole",
            "the sum is of the whole message, so the whole message is in doubt",
        ],
    );
    whole(
        "payment-count",
        "P5",
        "AM18",
        &|xml| *xml = xml.replace("<NbOfTxs>2</NbOfTxs>", "<NbOfTxs>3</NbOfTxs>"),
        [
            "NbOfTxs 3 over 2 payments",
            "RJCT AM18, whole",
            "one may be lost",
        ],
    );
    whole(
        "group-total",
        "P9",
        "AM16",
        &|xml| {
            *xml = xml.replace(
                "<SttlmInf>",
                "<TtlIntrBkSttlmAmt Ccy=\"EUR\">29.99</TtlIntrBkSttlmAmt><SttlmInf>",
            )
        },
        [
            "total 29.99 over 10.00 + 20.00, control sum right",
            "RJCT AM16, whole",
            "the total is compared as well as the control sum",
        ],
    );
    whole(
        "settlement-method-inda",
        "P10",
        "AG03",
        &|xml| *xml = xml.replace("CLRG", "INDA"),
        [
            "to be settled on the books of the receiver (INDA)",
            "RJCT AG03, whole",
            "only settlement by the clearing system (CLRG) is served",
        ],
    );
    let long = "0f1e2d3c-4b5a-4968-8776-a5b4c3d2e1f0";
    let id = day.id(ALFA, "P6");
    let payments = [day.payment(ALFA, CHAR, "EUR", "10.00", &id)];
    day.add(
        "message-id-36-characters",
        &day.message(ALFA, long, &payments),
        Answer::Refused("CH21"),
        [
            "a UUID of 36 characters as MsgId",
            "CH21 (admi.007), not taken",
            "MsgId is at most 35 characters; it is refused, never cut",
        ],
    );
    let id = day.id(ALFA, "P7");
    let payments = [day.payment(ALFA, CHAR, "EUR", "10.00", &id)];
    let mut message = day.message(ALFA, &id, &payments);
    message.wrapping = Wrapping::Message;
    let xml = text(&message).replace("<MsgDefIdr>pacs.008.001.08", "<MsgDefIdr>pacs.008.001.09");
    day.add_bytes(
        "header-names-another-version",
        xml.into_bytes(),
        Some(&id),
        1,
        Answer::Refused("CH16"),
        [
            "the header says pacs.008.001.09, the payload is .08",
            "RJCT CH16, whole",
            "header and payload must name the same message",
        ],
    );
}

/// Files that give no message: nobody can be told a MsgId.
fn unreadable(day: &mut Example) {
    let id = day.id(ALFA, "X1");
    let payments = [day.payment(ALFA, CHAR, "EUR", "10.00", &id)];
    let good = text(&day.message(ALFA, &id, &payments));
    let mut add = |name: &str, bytes: Vec<u8>, story: [&str; 3]| {
        day.add_bytes(name, bytes, None, 1, Answer::Refused("FF01"), story);
    };
    let half = good[..good.find("</CdtTrfTxInf>").expect("a payment")].to_owned();
    add(
        "malformed",
        half.into_bytes(),
        [
            "a pacs.008 that ends in the middle",
            "RJCT FF01 (pacs.002)",
            "not well-formed",
        ],
    );
    let entity = good.replacen(
        '\n',
        "\n<!DOCTYPE Document [<!ENTITY a \"lol\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]>\n",
        1,
    );
    let entity = entity.replace("Customer of Alfa Bank", "&b;");
    add(
        "doctype-attack",
        entity.into_bytes(),
        [
            "a document type with nested entities",
            "FF01, nobody to answer",
            "no document types, no entities: refused before anything is expanded, so before its sender is known",
        ],
    );
    let mut cyrillic = good
        .replace("encoding=\"UTF-8\"", "encoding=\"windows-1251\"")
        .into_bytes();
    let name = b"Customer of Alfa Bank";
    let at = cyrillic
        .windows(name.len())
        .position(|window| window == name)
        .expect("the debtor's name");
    cyrillic.splice(at..at + name.len(), [0xc8, 0xe2, 0xe0, 0xed]);
    add(
        "encoding-windows-1251",
        cyrillic,
        [
            "a name in windows-1251",
            "FF01, nobody to answer",
            "strict UTF-8",
        ],
    );
    let inside = good.split_once('\n').map_or("", |(_, body)| body);
    let hidden = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Message><![CDATA[{inside}]]></Message>"
    );
    add(
        "cdata-hides-the-message",
        hidden.into_bytes(),
        [
            "a whole pacs.008 inside a CDATA section",
            "FF01, nobody to answer",
            "CDATA is text: the envelope holds no document",
        ],
    );
}

/// Good payments from BRAV to CHAR, of 1.00, 2.00, … 7.00 EUR, all settled in cycle 1.
fn clothes(day: &mut Example) {
    let mut amounts = (1..).map(|whole| format!("{whole}.00"));
    let mut add =
        |name: &str, tag: &str, dress: &dyn Fn(&Example, String) -> String, story: [&str; 3]| {
            let id = day.id(BRAV, tag);
            let amount = amounts.next().expect("endless");
            let payments = [day.payment(BRAV, CHAR, "EUR", &amount, &id)];
            let xml = dress(day, text(&day.message(BRAV, &id, &payments)));
            day.add_bytes(
                name,
                xml.into_bytes(),
                Some(&id),
                1,
                Answer::Accepted,
                story,
            );
            day.settle(BRAV, CHAR, "EUR", &amount);
        };
    const FINE: &str = "accepted, settled in cycle 1";
    add(
        "trap-prefixes",
        "T1",
        &|_, xml| wire::prefixed(&xml),
        [
            "every element has the prefix p",
            FINE,
            "names count, prefixes do not",
        ],
    );
    add(
        "trap-bom-crlf",
        "T2",
        &|_, xml| wire::bom_and_crlf(&xml),
        [
            "byte order mark, CRLF, indentation",
            FINE,
            "insignificant white space",
        ],
    );
    add(
        "trap-quotes-comment-cdata",
        "T3",
        &|_, xml| {
            let quoted = wire::quoted_and_commented(&xml);
            quoted.replace(
                "<Nm>Customer of Banque Bravo</Nm>",
                "<Nm><![CDATA[Søren & Ærø <A/S>]]></Nm>",
            )
        },
        [
            "single quotes, a comment with a tag in it, CDATA in a name",
            FINE,
            "all of it is XML; the name travels on as text",
        ],
    );
    add(
        "trap-fractional-seconds",
        "T4",
        &|day, xml| xml.replace(&day.created(), "2026-11-30T10:15:30.123456789+02:00"),
        [
            "nine digits of seconds and an offset of two hours",
            FINE,
            "ISO date and time, finer than needed",
        ],
    );
    add(
        "envelope-request-payload",
        "T5",
        &|day, xml| {
            let mut header = String::new();
            let from = day.bic(BRAV).to_owned();
            let created = day.created();
            Header {
                from: &from,
                to: OPERATOR,
                message_id: "BRAV-T5",
                name: "pacs.008.001.08",
                created: &created,
            }
            .write(&mut header);
            wire::enveloped(&xml, "<RequestPayload>", &header, "</RequestPayload>")
        },
        [
            "root RequestPayload with header and document",
            FINE,
            "schemes have envelopes of their own",
        ],
    );
    add(
        "envelope-scheme-namespace",
        "T6",
        &|day, xml| {
            let mut header = String::new();
            let from = day.bic(BRAV).to_owned();
            let created = day.created();
            Header {
                from: &from,
                to: OPERATOR,
                message_id: "BRAV-T6",
                name: "pacs.008.001.08",
                created: &created,
            }
            .write(&mut header);
            wire::enveloped(
                &xml,
                "<s:Incoming xmlns:s=\"urn:example:scheme\"><s:Technical><s:Hop>7</s:Hop></s:Technical><s:CustomerCreditTransfer>",
                &header,
                "</s:CustomerCreditTransfer></s:Incoming>",
            )
        },
        [
            "a root of a scheme's own namespace, the message two levels down",
            FINE,
            "header and document are found by their namespaces",
        ],
    );
    add(
        "supplementary-data",
        "T7",
        &|_, xml| {
            let foreign = "<SplmtryData><PlcAndNm>/Document</PlcAndNm><Envlp><inv:Invoice xmlns:inv=\"urn:example:invoice\">\
                <inv:IntrBkSttlmAmt Ccy=\"USD\">999999.99</inv:IntrBkSttlmAmt><inv:Note xml:space=\"preserve\">  two\tblanks  </inv:Note>\
                </inv:Invoice></Envlp></SplmtryData>";
            xml.replace("</CdtTrfTxInf>", &format!("{foreign}</CdtTrfTxInf>"))
        },
        [
            "foreign XML with an amount in it as supplementary data",
            FINE,
            "carried byte for byte; it never overrides the real amount",
        ],
    );
}

fn versions(day: &mut Example) {
    for (number, amount) in [(6, "8.00"), (13, "9.00")] {
        let version = Version::new(number).expect("a known version");
        let id = day.id(BRAV, &format!("V{number}"));
        let mut payment = day.payment(BRAV, CHAR, "EUR", amount, &id);
        if number < 8 {
            payment.uetr = None;
        }
        let payments = [payment];
        let mut message = day.message(BRAV, &id, &payments);
        message.version = version;
        let what = format!(
            "pacs.008.001.{number:02}{}",
            if number < 8 {
                ", which has no UETR"
            } else {
                ""
            }
        );
        let story = [
            what.as_str(),
            "accepted, settled in cycle 1",
            "answered in the sender's version; TxId alone is key enough",
        ];
        day.add(
            &format!("version-{number:02}"),
            &message,
            Answer::Accepted,
            story,
        );
        day.settle(BRAV, CHAR, "EUR", amount);
    }
}

/// FOXT numbers its messages.
fn sequence(day: &mut Example) {
    let mut add = |number: u32, name: &str, amount: &str, answer: Answer, story: [&str; 3]| {
        let id = day.id(FOXT, &format!("20261130-{number}"));
        let payments = [day.payment(FOXT, DELT, "EUR", amount, &id)];
        day.add(name, &day.message(FOXT, &id, &payments), answer, story);
        day.settle(FOXT, DELT, "EUR", amount);
    };
    add(
        1,
        "sequence-1",
        "10.00",
        Answer::Accepted,
        [
            "FOXT's message 1: 10.00 to DELT",
            "accepted, settled in cycle 1",
            "the first number of the day",
        ],
    );
    add(
        3,
        "sequence-3-before-2",
        "30.00",
        Answer::Held,
        [
            "FOXT's message 3: 30.00 to DELT",
            "held, gap 2 reported; then accepted, settled in cycle 1",
            "2 is missing; nothing is skipped silently",
        ],
    );
    add(
        2,
        "sequence-2-fills-the-gap",
        "20.00",
        Answer::Accepted,
        [
            "FOXT's message 2: 20.00 to DELT",
            "accepted, and 3 after it, settled in cycle 1",
            "the gap is filled",
        ],
    );
}

fn netting(day: &mut Example) {
    for (from, to) in [(INDI, JULI), (JULI, KILO), (KILO, INDI)] {
        let id = day.id(from, "N1");
        let payments = [day.payment(from, to, "EUR", "10.00", &id)];
        let what = format!(
            "{} pays {} 10.00 EUR; nobody in the ring owns anything",
            day.id(from, "")[..4].to_owned(),
            &day.bic(to)[..4]
        );
        let story = [
            what.as_str(),
            "settled in cycle 1",
            "gridlock: alone none can pay, netted all three can (nets 0, 0, 0)",
        ];
        day.add(
            "gridlock-ring",
            &day.message(from, &id, &payments),
            Answer::Accepted,
            story,
        );
        day.settle(from, to, "EUR", "10.00");
    }

    let id = day.id(LIMA, "N1");
    let payments = [
        day.payment(LIMA, MIKE, "EUR", "5.00", &format!("{id}.1")),
        day.payment(LIMA, MIKE, "EUR", "10.00", &format!("{id}.2")),
    ];
    day.result(
        (1, &payments[0]),
        "refused",
        Some("AM04"),
        "in no cycle; refused at the end of the day",
    );
    day.result(
        (2, &payments[1]),
        "refused",
        Some("AM04"),
        "in no cycle; refused at the end of the day",
    );
    day.add(
        "order-hurts-5-before-10",
        &day.message(LIMA, &id, &payments),
        Answer::Accepted,
        [
            "LIMA, who owns 2.00 EUR, pays MIKE 5.00, then 10.00; MIKE's 8.00 comes next",
            "neither settles in cycle 1 nor 2; RJCT AM04 at the end of the day",
            "2 - 15 + 8 < 0: drop the last, 10; then MIKE has 5 - 8 < 0: drop 8; then LIMA has 2 - 5 < 0: drop 5. Without order, 10 and 8 would do",
        ],
    );
    let id = day.id(MIKE, "N1");
    let payments = [day.payment(MIKE, LIMA, "EUR", "8.00", &id)];
    day.result(
        (1, &payments[0]),
        "refused",
        Some("AM04"),
        "in no cycle; refused at the end of the day",
    );
    day.add(
        "order-hurts-8-back",
        &day.message(MIKE, &id, &payments),
        Answer::Accepted,
        [
            "MIKE, who owns nothing, pays LIMA 8.00 EUR",
            "not settled; RJCT AM04 at the end of the day",
            "as said for the file before",
        ],
    );

    let id = day.id(LIMA, "N2");
    let payments = [
        day.payment(LIMA, MIKE, "JPY", "10", &format!("{id}.1")),
        day.payment(LIMA, MIKE, "JPY", "5", &format!("{id}.2")),
    ];
    day.result(
        (2, &payments[1]),
        "refused",
        Some("AM04"),
        "dropped from cycles 1 and 2; refused at the end of the day",
    );
    day.add(
        "order-helps-10-before-5",
        &day.message(LIMA, &id, &payments),
        Answer::Accepted,
        [
            "the same in yen, 10 before 5: LIMA owns 2 JPY",
            "10 settled in cycle 1; 5 stays, RJCT AM04 at the end of the day",
            "2 - 15 + 8 < 0: drop the last, 5; then 2 - 10 + 8 = 0 and MIKE has 10 - 8 = 2",
        ],
    );
    day.settle(LIMA, MIKE, "JPY", "10");
    let id = day.id(MIKE, "N2");
    let payments = [day.payment(MIKE, LIMA, "JPY", "8", &id)];
    day.add(
        "order-helps-8-back",
        &day.message(MIKE, &id, &payments),
        Answer::Accepted,
        [
            "MIKE pays LIMA 8 JPY",
            "settled in cycle 1",
            "as said for the file before",
        ],
    );
    day.settle(MIKE, LIMA, "JPY", "8");

    let id = day.id(ECHO, "N1");
    let payments: Vec<Payment> = (1..=3)
        .map(|number| day.payment(ECHO, ALFA, "EUR", "200.00", &format!("{id}.{number}")))
        .collect();
    day.add(
        "net-by-package-funded",
        &day.message(ECHO, &id, &payments),
        Answer::Accepted,
        [
            "ECHO, who owns 1000.00 EUR and nets by package, pays ALFA 3 times 200.00",
            "settled in cycle 1",
            "1000 - 600 = 400",
        ],
    );
    day.settle(ECHO, ALFA, "EUR", "600.00");
    let id = day.id(ECHO, "N2");
    let payments = [
        day.payment(ECHO, BRAV, "EUR", "300.00", &format!("{id}.1")),
        day.payment(ECHO, CHAR, "EUR", "900.00", &format!("{id}.2")),
    ];
    day.result(
        (1, &payments[0]),
        "settled",
        None,
        "left out of cycle 1, settled in cycle 2",
    );
    day.result(
        (2, &payments[1]),
        "settled",
        None,
        "left out of cycle 1, settled in cycle 2",
    );
    day.add(
        "net-by-package-short",
        &day.message(ECHO, &id, &payments),
        Answer::Accepted,
        [
            "ECHO pays 300.00 to BRAV and 900.00 to CHAR",
            "left out of cycle 1 whole; settled in cycle 2",
            "400 - 1200 < 0: the package is dropped as one, though 300 alone would fit; in cycle 2 it has 400 + 1000 - 1200 = 200",
        ],
    );
    day.settle(ECHO, BRAV, "EUR", "300.00");
    day.settle(ECHO, CHAR, "EUR", "900.00");
}
