//! The second section: more packages, money for those who waited, and messages about payments of the morning.

use super::super::manifest::Answer;
use super::super::message::Payment;
use super::super::{Version, Wrapping};
use super::build::Example;
use super::requests::Original;
use super::{ALFA, BRAV, CHAR, DELT, ECHO, GOLF, HOTL};

pub(super) fn script(day: &mut Example) {
    packages(day);
    urgent_package(day);
    about_the_morning(day);
}

fn packages(day: &mut Example) {
    let id = day.id(DELT, "P1");
    let payments = day.generated(DELT, &id, 30, &["EUR", "KWD"], Version::default());
    day.add(
        "package-30",
        &day.message(DELT, &id, &payments),
        Answer::Accepted,
        [
            "30 net payments in EUR and KWD",
            "all accepted, all settled in cycle 2",
            "a new cycle follows each section",
        ],
    );

    let id = day.id(GOLF, "P2");
    let payments = day.generated(GOLF, &id, 25, &["JPY"], Version::default());
    day.add(
        "package-25-yen",
        &day.message(GOLF, &id, &payments),
        Answer::Accepted,
        [
            "25 net payments in JPY from GOLF",
            "all accepted, all settled in cycle 2",
            "refuse_whole matters only when one is bad",
        ],
    );

    let version = Version::new(13).expect("a known version");
    let id = day.id(ALFA, "P8");
    let payments = day.generated(ALFA, &id, 50, &["EUR"], version);
    let mut message = day.message(ALFA, &id, &payments);
    message.version = version;
    message.wrapping = Wrapping::Message;
    day.add(
        "package-50-version-13",
        &message,
        Answer::Accepted,
        [
            "50 net payments as pacs.008.001.13 below a business header",
            "all accepted, all settled in cycle 2",
            "versions 06 to 13 are read",
        ],
    );

    let id = day.id(BRAV, "N1");
    let payments = [day.payment(BRAV, ECHO, "EUR", "1000.00", &id)];
    day.add(
        "funds-for-the-package",
        &day.message(BRAV, &id, &payments),
        Answer::Accepted,
        [
            "BRAV pays ECHO 1000.00 EUR, net",
            "settled in cycle 2, together with ECHO's package of the morning",
            "what comes in inside a cycle pays what goes out",
        ],
    );
    day.settle(BRAV, ECHO, "EUR", "1000.00");
}

fn urgent_package(day: &mut Example) {
    let id = day.id(CHAR, "U1");
    let payments = [
        day.urgent(CHAR, DELT, "111.00", &format!("{id}.1")),
        day.urgent(CHAR, GOLF, "222.00", &format!("{id}.2")),
    ];
    day.add(
        "package-urgent",
        &day.message(CHAR, &id, &payments),
        Answer::Accepted,
        [
            "2 urgent payments in one message",
            "ACSC, ACSC",
            "each is settled gross, singly, in order",
        ],
    );
    day.settle(CHAR, DELT, "EUR", "111.00");
    day.settle(CHAR, GOLF, "EUR", "222.00");
}

fn about_the_morning(day: &mut Example) {
    let again = day.bytes_of("package-20-three-currencies");
    let id = day.id(ALFA, "P1");
    day.add_bytes(
        "duplicate-of-the-morning",
        again,
        Some(&id),
        20,
        Answer::Repeat,
        [
            "ALFA's first package of the morning, byte for byte",
            "its stored answer again",
            "the memory of duplicates outlasts cycles",
        ],
    );

    // HOTL received 400.00 from ALFA this morning and owns 200.00 now.
    let received_id = day.id(ALFA, "U2");
    let received = original_in(day, "urgent-funds-arrive", &received_id, "400.00");
    let original = Original {
        message_id: &received_id,
        payment: &received,
    };
    let id = day.id(HOTL, "R1");
    let xml = day.return_of(HOTL, ALFA, &id, &original, "150.00");
    day.add_bytes(
        "return-part",
        xml.into_bytes(),
        Some(&id),
        1,
        Answer::Accepted,
        [
            "HOTL gives back 150.00 of ALFA's 400.00 (pacs.004, urgent)",
            "ACSC",
            "a return is a new payment and may be of a part: HOTL keeps 50.00",
        ],
    );
    day.settle(HOTL, ALFA, "EUR", "150.00");

    let id = day.id(HOTL, "R2");
    let xml = day.return_of(HOTL, ALFA, &id, &original, "300.00");
    let returned = Payment {
        payment_id: Some(format!("{id}.1")),
        ..Payment::default()
    };
    day.result(
        (1, &returned),
        "refused",
        Some("AM09"),
        "150.00 + 300.00 is more than the 400.00 received",
    );
    day.add_bytes(
        "return-exceeds-the-rest",
        xml.into_bytes(),
        Some(&id),
        1,
        Answer::Accepted,
        [
            "HOTL gives back 300.00 more",
            "RJCT AM09",
            "150 + 300 > 400: refused for its amount, before funds are asked",
        ],
    );

    let queued_id = day.id(HOTL, "U1");
    let queued = original_in(day, "-urgent-queued", &queued_id, "250.00");
    let id = day.id(HOTL, "S1");
    let xml = day.enquiry(
        HOTL,
        &id,
        &Original {
            message_id: &queued_id,
            payment: &queued,
        },
    );
    day.add_bytes(
        "status-enquiry",
        xml.into_bytes(),
        Some(&id),
        0,
        Answer::Accepted,
        [
            "HOTL asks what became of its 250.00 (pacs.028)",
            "pacs.002 ACSC",
            "it was queued in the morning and settled when funds came",
        ],
    );

    let id = day.id(BRAV, "Q1");
    let xml = day.report_request(BRAV, &id, "EUR");
    day.add_bytes(
        "report-request",
        xml.into_bytes(),
        Some(&id),
        0,
        Answer::Accepted,
        [
            "BRAV asks for its intraday report in EUR (camt.060)",
            "camt.052",
            "balance and movements at one log index; cycle 2 is not in it yet",
        ],
    );
}

/// The identifiers of the single payment in an earlier file.
fn original_in(day: &Example, file: &str, id: &str, amount: &str) -> Payment {
    let bytes = day.bytes_of(file);
    let xml = String::from_utf8(bytes).expect("written as text");
    let uetr = xml.split("<UETR>").nth(1).map(|rest| rest[..36].to_owned());
    Payment {
        end_to_end_id: Some(format!("E2E-{id}")),
        payment_id: Some(id.to_owned()),
        uetr,
        currency: Some("EUR".to_owned()),
        amount: amount.to_owned(),
        ..Payment::default()
    }
}
