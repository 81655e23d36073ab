//! One document of each kind and version, with every element that is ever written in one of them.

use clearspan_iso20022::write::*;
use clearspan_ledger::message::MessageKind;
use clearspan_ledger::{
    AmountMinor, Bic, BusinessDate, Currency, CycleNumber, LogIndex, PaymentId, Reason, ShardId,
    Timestamp,
};

pub(crate) const UETR: &str = "8a562c67-ca16-48ba-b074-65581be6f001";
pub(crate) const AWKWARD: &str = "E2E <&> \u{20ac}";

pub(crate) fn bic(code: &str) -> Bic {
    Bic::parse(code.as_bytes()).unwrap()
}

pub(crate) fn currency(code: &str) -> Currency {
    Currency::parse(code.as_bytes()).unwrap()
}

pub(crate) fn at(second: u64) -> Timestamp {
    Timestamp::from_ns(1_796_025_600_000_000_000 + second * 1_000_000_000 + 123_456_000)
}

pub(crate) fn day() -> BusinessDate {
    BusinessDate::from_ymd(2026, 11, 30).unwrap()
}

pub(crate) fn uetr() -> PaymentId {
    PaymentId::parse_uetr(UETR.as_bytes()).unwrap()
}

pub(crate) fn head(message_id: &str) -> Head<'_> {
    Head {
        from: bic("CLRSDEFF"),
        to: bic("ALFADEFF"),
        message_id,
        created: at(0),
        service: Some("clearspan.1"),
        possible_duplicate: false,
        framing: Framing::Envelope,
    }
}

pub(crate) fn finality(index: u64) -> Finality {
    Finality {
        shard: ShardId::new(3),
        index: LogIndex::new(index),
    }
}

pub(crate) fn account() -> Account<'static> {
    Account {
        id: "ALFADEFFXXX-EUR",
        currency: currency("EUR"),
        owner: bic("ALFADEFF"),
    }
}

const MESSAGE_ID: &str = "20261130ALFADEFFXXX0000000000000042";

/// Name of the golden file, and the document.
pub(crate) fn all() -> Vec<(String, Vec<u8>)> {
    let mut samples = Vec::new();
    for &version in StatusVersion::ALL {
        samples.push((
            format!("pacs.002.{}", version.suffix()),
            status(version, &head(MESSAGE_ID)),
        ));
    }
    samples.push((
        "pacs.002.001.10-bare-group-only".to_owned(),
        status_of_message_alone(),
    ));
    samples.push(("pacs.029.001.02".to_owned(), netting()));
    for &version in CancellationVersion::ALL {
        samples.push((
            format!("camt.029.{}", version.suffix()),
            cancellation(version),
        ));
    }
    for &version in CashVersion::ALL {
        samples.push((format!("camt.052.{}", version.suffix()), report(version)));
        samples.push((
            format!("camt.053.{}", version.suffix()),
            day_statement(version),
        ));
        samples.push((
            format!("camt.054.{}", version.suffix()),
            notices(version, &head(MESSAGE_ID)),
        ));
    }
    samples.push(("admi.007.001.01".to_owned(), acknowledgements()));
    samples.extend(crate::forwards::all());
    samples
}

pub(crate) fn status(version: StatusVersion, head: &Head<'_>) -> Vec<u8> {
    let sum = |minor| Some(Sum { minor, exponent: 2 });
    let report = StatusReport {
        version,
        original: OriginalMessage {
            message_id: "ALFA-2026-11-30-0001",
            definition: Definition {
                kind: MessageKind::CustomerTransfer,
                version: 8,
            },
            created: Some("2026-11-30T09:00:00+01:00"),
            count: Some(4),
            sum: sum(1_000_000),
        },
        status: Some(Status::Partial),
        reason: Some(StatusReason {
            code: "SCHEME-OWN",
            text: "Some payments were refused & one waits.",
        }),
        counts: &[
            StatusCount {
                status: Status::Settled,
                count: 1,
                sum: sum(250_000),
            },
            StatusCount {
                status: Status::Pending,
                count: 1,
                sum: sum(250_000),
            },
            StatusCount {
                status: Status::Rejected,
                count: 1,
                sum: None,
            },
            StatusCount {
                status: Status::Cancelled,
                count: 1,
                sum: sum(10_u128.pow(18)),
            },
        ],
    };
    let payment = PaymentStatus {
        instruction_id: Some("INSTR-1"),
        end_to_end_id: Some(AWKWARD),
        transaction_id: Some("TX-1"),
        id: uetr(),
        status: Status::Settled,
        reason: None,
        accepted: Some(at(1)),
        effective: Some(EffectiveDate::At(at(2))),
        cycle: Some(CycleNumber::new(42)),
        finality: Some(finality(123_456)),
    };
    let waiting = PaymentStatus {
        instruction_id: None,
        end_to_end_id: None,
        id: PaymentId::of_transaction("TX-2"),
        transaction_id: Some("TX-2"),
        status: Status::Pending,
        reason: Some(Reason::InsufficientFunds.into()),
        effective: Some(EffectiveDate::Date(day())),
        cycle: None,
        finality: None,
        ..payment
    };
    let refused = PaymentStatus {
        transaction_id: Some(""),
        accepted: None,
        effective: None,
        status: Status::Rejected,
        reason: Some(Reason::DecimalsExceeded.into()),
        ..waiting
    };
    let cancelled = PaymentStatus {
        status: Status::Cancelled,
        reason: None,
        ..waiting
    };
    let mut out = Vec::new();
    status_report(
        &mut out,
        head,
        &report,
        [payment, waiting, refused, cancelled],
    );
    out
}

fn status_of_message_alone() -> Vec<u8> {
    let mut out = Vec::new();
    let report = StatusReport {
        version: StatusVersion::V10,
        original: OriginalMessage {
            message_id: "",
            definition: Definition {
                kind: MessageKind::Return,
                version: 9,
            },
            created: None,
            count: None,
            sum: None,
        },
        status: Some(Status::Rejected),
        reason: Some(Reason::Syntax.into()),
        counts: &[],
    };
    status_report(
        &mut out,
        &Head {
            framing: Framing::Bare,
            ..head("M-1")
        },
        &report,
        [],
    );
    out
}

fn netting() -> Vec<u8> {
    let movement = |code, net| NetMovement {
        currency: currency(code),
        net,
        account_id: "ALFADEFFXXX-1",
        finality: finality(777),
    };
    let result = NettingResult {
        cycle: CycleNumber::new(42),
        cut_off: at(3600),
        settled: at(3602),
        movements: &[
            movement("EUR", -123_456_789),
            movement("JPY", 5_000),
            movement("KWD", 0),
        ],
    };
    let mut out = Vec::new();
    netting_result(&mut out, &head(MESSAGE_ID), &result);
    out
}

fn cancellation(version: CancellationVersion) -> Vec<u8> {
    let definition = Definition {
        kind: MessageKind::CustomerTransfer,
        version: 8,
    };
    let cancelled = PaymentCancellation {
        cancellation_id: Some("CXL-1"),
        original: Some(("ALFA-0001", definition)),
        instruction_id: Some("INSTR-1"),
        end_to_end_id: Some(AWKWARD),
        transaction_id: Some("TX-1"),
        id: uetr(),
        status: CancellationStatus::Cancelled,
        reason: None,
        amount: AmountMinor::new(12_345).map(|amount| (amount, currency("EUR"))),
        date: Some(day()),
    };
    let refused = PaymentCancellation {
        status: CancellationStatus::Rejected,
        reason: Some(Reason::InSettlement.into()),
        amount: None,
        date: None,
        ..cancelled
    };
    let answer = CancellationAnswer {
        version,
        request_id: "RECALL-1",
        case: Some(Case {
            id: "CASE-1",
            creator: bic("ALFADEFF"),
        }),
        confirmation: Confirmation::of([cancelled.status, refused.status]),
        original: Some(("ALFA-0001", definition)),
    };
    let mut out = Vec::new();
    cancellation_answer(&mut out, &head(MESSAGE_ID), &answer, [cancelled, refused]);
    out
}

pub(crate) fn detail(amount: u64) -> EntryDetail<'static> {
    EntryDetail {
        message_id: Some("BETA-0001"),
        instruction_id: Some("INSTR-1"),
        end_to_end_id: Some(AWKWARD),
        transaction_id: Some("TX-1"),
        id: uetr(),
        finality: Some(finality(778)),
        amount: AmountMinor::new(amount).unwrap(),
        counterparty: bic("BETAFRPP"),
    }
}

/// A batch of two credits, a single debit, and a net movement without payments.
fn entries() -> Vec<Entry<'static, Vec<EntryDetail<'static>>>> {
    let batch = Entry {
        reference: "42-1",
        amount: 30_000,
        direction: Direction::Credit,
        booked: at(3602),
        value_date: day(),
        cycle: Some(CycleNumber::new(42)),
        finality: finality(777),
        code: BankCode::TransferReceived,
        batch_count: Some(2),
        details: vec![
            detail(10_000),
            EntryDetail {
                message_id: None,
                finality: None,
                ..detail(20_000)
            },
        ],
    };
    let single = Entry {
        reference: "779",
        amount: 5,
        direction: Direction::Debit,
        booked: at(4000),
        cycle: None,
        finality: finality(779),
        code: BankCode::BankTransferSent,
        batch_count: None,
        details: vec![detail(5)],
        ..batch.clone()
    };
    let net = Entry {
        reference: "",
        code: BankCode::NETTING,
        batch_count: None,
        details: vec![],
        ..batch.clone()
    };
    vec![batch, single, net]
}

fn totals() -> Totals {
    let mut totals = Totals::default();
    for entry in entries() {
        totals.add(entry.direction, entry.amount);
    }
    totals
}

pub(crate) fn notices(version: CashVersion, head: &Head<'_>) -> Vec<u8> {
    let page = Notification {
        version,
        account: account(),
        page: Page {
            number: 2,
            last: false,
        },
        sequence: Some(42),
        totals: totals(),
        query: Some("QUERY-1"),
    };
    let mut out = Vec::new();
    notification(&mut out, head, &page, entries());
    out
}

fn balance(kind: BalanceKind, minor: i128) -> Balance {
    let within_day = matches!(kind, BalanceKind::Interim | BalanceKind::InterimAvailable);
    Balance {
        kind,
        minor,
        date: day(),
        at: within_day.then(|| at(5000)),
    }
}

fn day_statement(version: CashVersion) -> Vec<u8> {
    let description = Statement {
        version,
        id: "STMT-2026-11-30-EUR",
        sequence: 7,
        chain: Some("Previous statement 6, digest 0123456789abcdef."),
        period: Some((at(0), at(36_000))),
        account: account(),
        page: Page::ONLY,
        balances: &[
            balance(BalanceKind::Opening, -100),
            balance(BalanceKind::Closing, 59_895),
        ],
        totals: totals(),
        query: Some("QUERY-1"),
    };
    let mut out = Vec::new();
    statement(&mut out, &head(MESSAGE_ID), &description, entries());
    out
}

fn report(version: CashVersion) -> Vec<u8> {
    let description = Statement {
        version,
        id: "RPT-1",
        sequence: 3,
        chain: Some("As of 3:800."),
        period: Some((at(0), at(5000))),
        account: account(),
        page: Page::ONLY,
        balances: &[
            balance(BalanceKind::Interim, 59_895),
            balance(BalanceKind::InterimAvailable, 9_895),
        ],
        totals: totals(),
        query: Some("QUERY-1"),
    };
    let mut out = Vec::new();
    intraday_report(&mut out, &head(MESSAGE_ID), &description, entries());
    out
}

fn acknowledgements() -> Vec<u8> {
    let item = |reference, name, handled, text| Acknowledgement {
        reference,
        name,
        handled,
        at: Some(at(1)),
        text,
    };
    let mut out = Vec::new();
    acknowledgement(
        &mut out,
        &head(MESSAGE_ID),
        &[
            item("LIMIT-1", Some("camt.011.001.07"), Handled::Accepted, ""),
            item(
                "LIMIT-2",
                None,
                Handled::Pending,
                "Waits for the second person.",
            ),
            item(
                "17-25",
                Some("sequence 2026-11-30"),
                Handled::Missing,
                "9 messages are missing.",
            ),
            item(
                "",
                None,
                Handled::Refused(Reason::Syntax),
                "Byte 812: <Foo> is not closed.",
            ),
        ],
    );
    out
}
