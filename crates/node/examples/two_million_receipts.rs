//! Nets two million payments among 500 participants of four shards and times the forming of all their output.
//!
//!     cargo run --release -p clearspan-node --example two_million_receipts [payments] [threads]
//!
//! Bytes stay in memory; nothing is written. Packages have 5000 payments of about 600 bytes of XML each.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clearspan_iso20022::read::{Context, Incoming, Limits, read};
use clearspan_ledger::directory::{AccountTerms, NetUnit, ParticipantTerms};
use clearspan_ledger::entry::{AdminCommand, Command, CycleCommand, Entry, Genesis};
use clearspan_ledger::message::Submission;
use clearspan_ledger::stream::ItemBody;
use clearspan_ledger::{
    AmountMinor, Bic, BusinessDate, Currency, Ledger, MessageNo, ParticipantId, Reply, ShardId,
    Text, Timestamp,
};
use clearspan_node::documents::{Cache, Documents, Settings, View};

const SHARDS: u16 = 4;
const PARTICIPANTS: u32 = 500;
const PACKAGE_LEN: u64 = 5000;
const PAGE_LEN: u32 = 1000;

struct Cluster {
    ledgers: Vec<Ledger>,
    packages: BTreeMap<(ShardId, MessageNo), Submission>,
    now_ns: u64,
}

impl View for Cluster {
    type Error = Infallible;
    fn shards(&self) -> u16 {
        SHARDS
    }
    fn ledger(&self, shard: ShardId) -> &Ledger {
        &self.ledgers[shard.index()]
    }
    fn package(
        &self,
        shard: ShardId,
        message: MessageNo,
    ) -> Result<Option<Submission>, Infallible> {
        Ok(self.packages.get(&(shard, message)).cloned())
    }
}

impl Cluster {
    fn apply(&mut self, shard: ShardId, command: Command) -> Reply {
        self.now_ns += 1000;
        let ledger = &mut self.ledgers[shard.index()];
        let (index, time) = (ledger.position().0.next(), Timestamp::from_ns(self.now_ns));
        ledger
            .apply(&Entry {
                index,
                time,
                command,
            })
            .reply
    }

    fn pump(&mut self) {
        loop {
            let mut quiet = true;
            for from in (0..SHARDS).map(ShardId::new) {
                for to in (0..SHARDS).map(ShardId::new) {
                    let next = self.ledgers[to.index()].inbound_next(from);
                    let (first, messages) =
                        self.ledgers[from.index()].outbound(to, next, usize::MAX);
                    if messages.is_empty() {
                        continue;
                    }
                    quiet = false;
                    self.apply(
                        to,
                        Command::Deliver {
                            from,
                            first,
                            messages,
                        },
                    );
                }
            }
            if quiet {
                return;
            }
        }
    }

    fn admin(&mut self, command: AdminCommand) {
        let reply = self.apply(ShardId::new(0), Command::Admin(command));
        assert_eq!(reply, Reply::Done);
        self.pump();
    }
}

#[expect(clippy::disallowed_methods, reason = "an example that measures")]
fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = std::time::Instant::now();
    let result = work();
    let took: Duration = start.elapsed();
    println!("{what}: {:.3} s", took.as_secs_f64());
    result
}

fn code(participant: u32) -> String {
    let letter = |n: u32| char::from(b'A' + u8::try_from(n % 26).unwrap_or(0));
    let name: String = [17_576, 676, 26, 1]
        .map(|n| letter(participant / n))
        .iter()
        .collect();
    format!("{name}DEFF")
}

/// A fixed sequence of numbers.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn package(number: u64, sender: u32, sequence: &mut Sequence) -> String {
    let mut text = format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08\"><FIToFICstmrCdtTrf><GrpHdr>\
         <MsgId>P-{number}</MsgId><CreDtTm>2026-11-30T08:00:00Z</CreDtTm><NbOfTxs>{PACKAGE_LEN}</NbOfTxs>\
         <IntrBkSttlmDt>2026-11-30</IntrBkSttlmDt><SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf></GrpHdr>"
    );
    for at in 0..PACKAGE_LEN {
        let id = number * PACKAGE_LEN + at;
        let receiver = u32::try_from(sequence.below(u64::from(PARTICIPANTS) - 1)).unwrap_or(0);
        let receiver = code((sender + 1 + receiver) % PARTICIPANTS);
        let (tail, cents) = (sequence.below(1 << 31), sequence.below(100));
        text.push_str(&format!(
            "<CdtTrfTxInf><PmtId><InstrId>I-{id}</InstrId><EndToEndId>E-{id}</EndToEndId><TxId>T-{id}</TxId>\
             <UETR>8a562c67-ca16-48ba-b074-{id:012x}</UETR></PmtId><IntrBkSttlmAmt Ccy=\"EUR\">{}.{cents:02}</IntrBkSttlmAmt>\
             <ChrgBr>SLEV</ChrgBr><InstdAgt><FinInstnId><BICFI>{receiver}</BICFI></FinInstnId></InstdAgt>\
             <Dbtr><Nm>Debtor number {tail}</Nm></Dbtr><DbtrAgt><FinInstnId><BICFI>{}</BICFI></FinInstnId></DbtrAgt>\
             <CdtrAgt><FinInstnId><BICFI>{receiver}</BICFI></FinInstnId></CdtrAgt><Cdtr><Nm>Creditor number {tail}</Nm></Cdtr>\
             <RmtInf><Ustrd>Invoice {tail} of November</Ustrd></RmtInf></CdtTrfTxInf>",
            1 + sequence.below(1000),
            code(sender),
        ));
    }
    text.push_str("</FIToFICstmrCdtTrf></Document>");
    text
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter_map(|text| text.parse::<u64>().ok());
    let payments = arguments.next().unwrap_or(2_000_000);
    let threads = arguments.next().unwrap_or(2);
    let cluster = timed("set up, read and receive", || {
        set_up(payments / PACKAGE_LEN)
    });
    let mut cluster = cluster;
    timed("cycle", || {
        cluster.apply(ShardId::new(0), Command::Cycle(CycleCommand::Open));
        cluster.pump();
    });
    let mut settings = Settings::new(Bic::parse(b"CLRSDEFF").expect("a BIC"));
    settings.replay_max_numbers = u64::MAX;
    let numbers = |wanted: fn(&ItemBody) -> bool| -> Vec<(ParticipantId, u64)> {
        let mut all = Vec::new();
        for ledger in &cluster.ledgers {
            for (participant, _) in ledger.directory().iter() {
                for item in ledger
                    .stream(participant)
                    .into_iter()
                    .flat_map(|s| s.iter())
                {
                    if wanted(&item.body) {
                        all.extend(
                            (item.number..item.number + u64::from(item.pages))
                                .map(|number| (participant, number)),
                        );
                    }
                }
            }
        }
        all
    };
    let credits = numbers(|body| matches!(body, ItemBody::NetCredits { .. }));
    let netted =
        numbers(|body| matches!(body, ItemBody::Netted { .. } | ItemBody::NetResult { .. }));
    let receptions = numbers(|body| matches!(body, ItemBody::Reception { .. }));
    let cache = Cache::new();
    let form = |what: &str, numbers: &[(ParticipantId, u64)], all: bool| {
        let (next, bytes, count) = (
            AtomicUsize::new(0),
            AtomicUsize::new(0),
            AtomicUsize::new(0),
        );
        timed(what, || {
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        let documents = Documents::new(&cluster, &settings, &cache);
                        while let Some(&(participant, number)) =
                            numbers.get(next.fetch_add(1, Ordering::Relaxed))
                        {
                            let formed = if all {
                                documents.documents(participant, number, false)
                            } else {
                                documents
                                    .receipt(participant, number, false)
                                    .map(|receipt| receipt.into_iter().collect())
                            };
                            for document in formed.expect("a document") {
                                bytes.fetch_add(document.bytes.len(), Ordering::Relaxed);
                                count.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    });
                }
            });
        });
        println!(
            "  {} documents, {} MB, {threads} threads",
            count.into_inner(),
            bytes.into_inner() / 1_000_000
        );
    };
    form("pacs.002 of reception", &receptions, false);
    form("pacs.002 and pacs.029 of the cycle", &netted, false);
    form("camt.054 of the cycle", &credits, false);
    form("camt.054 once more", &credits, false);
    form("camt.054 and forwards", &credits, true);
}

fn set_up(packages: u64) -> Cluster {
    let mut cluster = Cluster {
        ledgers: vec![Ledger::new(); usize::from(SHARDS)],
        packages: BTreeMap::new(),
        now_ns: 1_796_025_600_000_000_000,
    };
    for shard in (0..SHARDS).map(ShardId::new) {
        let genesis = Genesis {
            cluster: 1,
            shard,
            shards: SHARDS,
            hash_seed: 1,
            retention_days: 5,
            amount_max: AmountMinor::MAX,
            page_len_payments: PAGE_LEN,
            gap_timeout_ns: u64::MAX,
        };
        cluster.apply(shard, Command::Genesis(genesis));
    }
    let eur = Currency::parse(b"EUR").expect("a currency");
    for participant in 0..PARTICIPANTS {
        let bic = Bic::parse(code(participant).as_bytes()).expect("a BIC");
        cluster.admin(AdminCommand::AddParticipant(ParticipantTerms {
            bic,
            name: code(participant),
            home: ShardId::new(u16::try_from(participant % u32::from(SHARDS)).unwrap_or(0)),
            numbers_messages: false,
            refuse_whole: false,
            net_unit: NetUnit::Payment,
        }));
        cluster.admin(AdminCommand::OpenAccount(AccountTerms {
            bic,
            currency: eur,
            credit_line: AmountMinor::ZERO,
        }));
        cluster.admin(AdminCommand::Fund {
            reference: Text::new(&code(participant)).expect("short"),
            bic,
            currency: eur,
            amount: AmountMinor::new(1_000_000_000_000).expect("an amount"),
        });
    }
    let date = BusinessDate::parse(b"2026-11-30").expect("a date");
    cluster.admin(AdminCommand::OpenDay { date });
    let mut sequence = Sequence(1);
    let context = Context {
        sender: None,
        amount_max: AmountMinor::MAX,
        numbers_messages: &|_| false,
    };
    for number in 0..packages {
        let sender = u32::try_from(number % u64::from(PARTICIPANTS)).unwrap_or(0);
        let text = package(number, sender, &mut sequence);
        let context = Context {
            sender: Bic::parse(code(sender).as_bytes()),
            ..context
        };
        let Ok(Incoming::Submission(submitted)) =
            read(text.as_bytes(), &Limits::default(), &context)
        else {
            panic!("a package");
        };
        let mut submission = submitted.submission;
        submission.heap = clearspan_codec::heap::pack(&submission.heap);
        let home = ShardId::new(u16::try_from(sender % u32::from(SHARDS)).unwrap_or(0));
        let Reply::Taken {
            message, accepted, ..
        } = cluster.apply(home, Command::Submit(submission.clone()))
        else {
            panic!("taken in");
        };
        assert_eq!(u64::from(accepted), PACKAGE_LEN);
        cluster.packages.insert((home, message), submission);
    }
    cluster
}
