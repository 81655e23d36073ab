//! The same message from many threads at once (report 28 of `domain.md` 6): one posting, and every sender gets the whole
//! answer.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Barrier;

use clearspan_iso20022::read::Incoming;
use clearspan_ledger::day::PaymentStatus;
use clearspan_ledger::entry::{AdminCommand, Command, CycleCommand};
use clearspan_ledger::{Bic, Reply, ShardId};
use clearspan_node::engine::{Engine, EngineOptions, Lane};
use clearspan_node::founding::found;
use clearspan_node::gateway::Gateway;
use clearspan_node::settings::Settings;

const THREADS: usize = 100;
const PAYMENTS: usize = 20;
const ALFA: &str = "ALFADEFFXXX";
const BRAV: &str = "BRAVFRPPXXX";

fn settings(dir: &Path) -> Settings {
    let mut toml = "business_date = \"2026-11-30\"\nshards = 2\n".to_owned();
    for (shard, bic, opening) in [(0, ALFA, "100.00"), (1, BRAV, "0.00")] {
        let _ = write!(
            toml,
            "[[participant]]\nbic = \"{bic}\"\nname = \"{bic}\"\nshard = {shard}\n[[participant.account]]\n\
             currency = \"EUR\"\nopening_balance = \"{opening}\"\n"
        );
    }
    let file = dir.join("participants.toml");
    std::fs::write(&file, toml).unwrap();
    Settings::read(&file).unwrap()
}

fn message(id: &str, payments: usize, priority: &str) -> String {
    let mut out = format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08\"><FIToFICstmrCdtTrf><GrpHdr><MsgId>{id}</MsgId>\
         <CreDtTm>2026-11-30T08:00:00Z</CreDtTm><NbOfTxs>{payments}</NbOfTxs><SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf>\
         <InstgAgt><FinInstnId><BICFI>{ALFA}</BICFI></FinInstnId></InstgAgt></GrpHdr>"
    );
    for at in 0..payments {
        let _ = write!(
            out,
            "<CdtTrfTxInf><PmtId><EndToEndId>E</EndToEndId><TxId>{id}.{at}</TxId></PmtId><IntrBkSttlmAmt Ccy=\"EUR\">1.00\
             </IntrBkSttlmAmt><IntrBkSttlmDt>2026-11-30</IntrBkSttlmDt>{priority}<ChrgBr>DEBT</ChrgBr><InstdAgt><FinInstnId>\
             <BICFI>{BRAV}</BICFI></FinInstnId></InstdAgt><Dbtr><Nm>D</Nm></Dbtr><DbtrAgt><FinInstnId><BICFI>{ALFA}</BICFI>\
             </FinInstnId></DbtrAgt><CdtrAgt><FinInstnId><BICFI>{BRAV}</BICFI></FinInstnId></CdtrAgt><Cdtr><Nm>C</Nm></Cdtr>\
             </CdtTrfTxInf>"
        );
    }
    out + "</FIToFICstmrCdtTrf></Document>"
}

/// What a sender is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Answer {
    taken: bool,
    message: clearspan_ledger::MessageNo,
    number: u64,
}

/// Sends one message from many threads at the same moment.
fn send_at_once(engine: &Engine, gateway: &Gateway<'_>, xml: &str) -> Vec<Answer> {
    let together = Barrier::new(THREADS);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let Ok(Incoming::Submission(submitted)) = gateway.read(xml.as_bytes(), None)
                    else {
                        panic!("the message can be read")
                    };
                    together.wait();
                    match gateway.submit(submitted).unwrap().wait().unwrap().reply {
                        Reply::Taken {
                            message, answer, ..
                        } => Answer {
                            taken: true,
                            message,
                            number: answer,
                        },
                        Reply::Repeat {
                            message, answer, ..
                        } => Answer {
                            taken: false,
                            message,
                            number: answer,
                        },
                        other => panic!("{other:?}"),
                    }
                })
            })
            .collect();
        senders
            .into_iter()
            .map(|sender| sender.join().unwrap())
            .collect()
    });
    engine.settle_down();
    answers
}

fn check(answers: &[Answer]) {
    assert_eq!(answers.len(), THREADS);
    assert_eq!(
        answers.iter().filter(|answer| answer.taken).count(),
        1,
        "taken in once"
    );
    let same = |answer: &&Answer| {
        (answer.message, answer.number) == (answers[0].message, answers[0].number)
    };
    assert_eq!(
        answers.iter().filter(same).count(),
        THREADS,
        "one answer for all"
    );
}

fn balance(engine: &Engine, bic: &str, shard: u16) -> i128 {
    engine.with_ledger(ShardId::new(shard), |ledger| {
        let participant = ledger
            .directory()
            .find(Bic::parse(bic.as_bytes()).unwrap())
            .unwrap();
        let mut own = ledger
            .accounts()
            .iter()
            .filter(|account| account.participant() == participant);
        own.next().unwrap().balance_minor()
    })
}

#[test]
fn a_hundred_threads_send_the_same_message_and_it_is_posted_once() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path());
    let engine = Engine::open(
        &dir.path().join("data"),
        settings.shards,
        EngineOptions::usual(),
    )
    .unwrap();
    found(&engine, &settings).unwrap();
    let open = Command::Admin(AdminCommand::OpenDay {
        date: settings.business_date,
    });
    engine
        .execute(ShardId::new(0), &open, Lane::Urgent)
        .unwrap();
    engine.settle_down();
    let gateway = Gateway::new(&engine, settings.amount_max);

    check(&send_at_once(
        &engine,
        &gateway,
        &message("GROSS", PAYMENTS, "<SttlmPrty>URGT</SttlmPrty>"),
    ));
    assert_eq!(
        (balance(&engine, ALFA, 0), balance(&engine, BRAV, 1)),
        (8_000, 2_000)
    );
    check(&send_at_once(
        &engine,
        &gateway,
        &message("NET", PAYMENTS, ""),
    ));
    engine
        .execute(
            ShardId::new(0),
            &Command::Cycle(CycleCommand::Open),
            Lane::Urgent,
        )
        .unwrap();
    engine.settle_down();
    assert_eq!(
        (balance(&engine, ALFA, 0), balance(&engine, BRAV, 1)),
        (6_000, 4_000)
    );
    // Once more, now that all of it is final.
    let late = send_at_once(&engine, &gateway, &message("NET", PAYMENTS, ""));
    assert!(late.iter().all(|answer| !answer.taken));

    let settled = engine.with_ledger(ShardId::new(0), |ledger| {
        let messages: Vec<_> = ledger
            .messages(settings.business_date)
            .map(|(number, _)| number)
            .collect();
        assert_eq!(messages.len(), 2);
        let payments = messages
            .into_iter()
            .flat_map(|number| ledger.payments_of(number));
        payments
            .filter(|payment| payment.status == PaymentStatus::Settled)
            .count()
    });
    assert_eq!(settled, 2 * PAYMENTS);
    engine.close();
}
