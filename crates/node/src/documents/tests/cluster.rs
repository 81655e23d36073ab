//! Two real ledgers, their packages and the channels between them, fed with real messages.

use std::collections::BTreeMap;
use std::convert::Infallible;

use clearspan_iso20022::read::{Context, Incoming, Limits, read};
use clearspan_ledger::directory::{AccountTerms, NetUnit, ParticipantTerms};
use clearspan_ledger::entry::{AdminCommand, Command, CycleCommand, Entry, Genesis};
use clearspan_ledger::message::Submission;
use clearspan_ledger::stream::Item;
use clearspan_ledger::{
    AmountMinor, Bic, BusinessDate, Currency, Ledger, MessageNo, ParticipantId, Reply, ShardId,
    Timestamp,
};

use super::super::{Document, View};
use super::{Cache, DocumentError, Documents, Settings, assert_well_formed};

const START_NS: u64 = 1_796_025_600_000_000_000;

pub(crate) const ALFA: &str = "ALFADEFF";
pub(crate) const BETA: &str = "BETAFRPP";
pub(crate) const GAMM: &str = "GAMMITMM";

pub(crate) fn bic(text: &str) -> Bic {
    Bic::parse(text.as_bytes()).expect("a BIC")
}

pub(crate) fn currency(text: &str) -> Currency {
    Currency::parse(text.as_bytes()).expect("a currency")
}

pub(crate) struct Cluster {
    pub(crate) ledgers: Vec<Ledger>,
    pub(crate) packages: BTreeMap<(ShardId, MessageNo), Submission>,
    pub(crate) settings: Settings,
    cache: Cache,
    held: Vec<(ShardId, Submission)>,
    now_ns: u64,
    funded: u32,
    /// What every number stood for when it was first seen.
    known: BTreeMap<(ParticipantId, u64), Vec<Document>>,
}

impl View for Cluster {
    type Error = Infallible;

    fn shards(&self) -> u16 {
        u16::try_from(self.ledgers.len()).expect("few shards")
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
    /// ALFA and GAMM live in shard 0, BETA in shard 1. Nobody has money; a day is not open.
    pub(crate) fn new(net_unit: NetUnit) -> Self {
        Self::with_retention(net_unit, 5)
    }

    pub(crate) fn with_retention(net_unit: NetUnit, retention_days: u16) -> Self {
        let mut cluster = Self {
            ledgers: vec![Ledger::new(), Ledger::new()],
            packages: BTreeMap::new(),
            settings: Settings::new(bic("CLRSDEFF")),
            cache: Cache::new(),
            held: Vec::new(),
            now_ns: START_NS,
            funded: 0,
            known: BTreeMap::new(),
        };
        for shard in 0..2 {
            let genesis = Genesis {
                cluster: 0xC1EA,
                shard: ShardId::new(shard),
                shards: 2,
                hash_seed: 1,
                retention_days,
                amount_max: AmountMinor::MAX,
                page_len_payments: 2,
                gap_timeout_ns: 60_000_000_000,
            };
            cluster.apply(ShardId::new(shard), Command::Genesis(genesis));
        }
        for (code, home) in [(ALFA, 0), (BETA, 1), (GAMM, 0)] {
            cluster.admin(AdminCommand::AddParticipant(ParticipantTerms {
                bic: bic(code),
                name: code.to_owned(),
                home: ShardId::new(home),
                numbers_messages: false,
                refuse_whole: false,
                net_unit,
            }));
            for code_of_currency in ["EUR", "JPY"] {
                cluster.admin(AdminCommand::OpenAccount(AccountTerms {
                    bic: bic(code),
                    currency: currency(code_of_currency),
                    credit_line: AmountMinor::ZERO,
                }));
            }
        }
        cluster
    }

    /// With an open day and money for everybody.
    pub(crate) fn funded() -> Self {
        let mut cluster = Self::new(NetUnit::Payment);
        for code in [ALFA, BETA, GAMM] {
            cluster.fund(code, "EUR", 10_000);
        }
        cluster.open_day("2026-11-30");
        cluster
    }

    pub(crate) fn open_day(&mut self, date: &str) {
        let date = BusinessDate::parse(date.as_bytes()).expect("a date");
        self.admin(AdminCommand::OpenDay { date });
    }

    pub(crate) fn fund(&mut self, code: &str, of: &str, minor: u64) {
        self.funded += 1;
        let reference = clearspan_ledger::Text::new(&format!("FUND-{}", self.funded));
        self.admin(AdminCommand::Fund {
            reference: reference.expect("short"),
            bic: bic(code),
            currency: currency(of),
            amount: AmountMinor::new(minor).expect("an amount"),
        });
    }

    pub(crate) fn participant(&self, code: &str) -> ParticipantId {
        self.ledgers[0]
            .directory()
            .find(bic(code))
            .expect("a participant")
    }

    pub(crate) fn home(&self, code: &str) -> ShardId {
        let directory = self.ledgers[0].directory();
        directory
            .get(self.participant(code))
            .expect("a participant")
            .home
    }

    pub(crate) fn documents(&self) -> Documents<'_, Self> {
        Documents::new(self, &self.settings, &self.cache)
    }

    fn apply(&mut self, shard: ShardId, command: Command) -> Reply {
        self.now_ns += 1_000_000;
        let ledger = &mut self.ledgers[shard.index()];
        let outcome = ledger.apply(&Entry {
            index: ledger.position().0.next(),
            time: Timestamp::from_ns(self.now_ns),
            command,
        });
        let submitted = std::mem::take(&mut self.held);
        for (home, submission) in submitted {
            let ledger = &self.ledgers[home.index()];
            let sender = ledger.directory().find(submission.sender);
            match sender.and_then(|sender| ledger.find_message(sender, &submission.message_id)) {
                Some((message, _)) => {
                    self.packages.insert((home, message), submission);
                }
                None => self.held.push((home, submission)),
            }
        }
        outcome.reply
    }

    /// An operator's act everywhere.
    pub(crate) fn admin(&mut self, command: AdminCommand) {
        assert_eq!(
            self.apply(ShardId::new(0), Command::Admin(command)),
            Reply::Done
        );
        self.pump();
    }

    pub(crate) fn tick(&mut self, ns: u64) {
        self.now_ns += ns;
        for shard in 0..2 {
            self.apply(ShardId::new(shard), Command::Tick);
        }
        self.pump();
    }

    pub(crate) fn cycle(&mut self) {
        let open = Command::Cycle(CycleCommand::Open);
        assert_eq!(self.apply(ShardId::new(0), open), Reply::Done);
        self.pump();
    }

    /// Opens a cycle and leaves the channels alone.
    pub(crate) fn cycle_opened(&mut self) {
        self.apply(ShardId::new(0), Command::Cycle(CycleCommand::Open));
    }

    /// One message over every channel, again and again; after each entry all documents so far are looked at.
    pub(crate) fn pump(&mut self) {
        loop {
            let mut quiet = true;
            for (from, to) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let (from, to) = (ShardId::new(from), ShardId::new(to));
                let next = self.ledgers[to.index()].inbound_next(from);
                let (first, messages) = self.ledgers[from.index()].outbound(to, next, 1);
                if messages.is_empty() {
                    continue;
                }
                quiet = false;
                let deliver = Command::Deliver {
                    from,
                    first,
                    messages,
                };
                self.apply(to, deliver);
                self.check_stable();
            }
            if quiet {
                return;
            }
        }
    }

    pub(crate) fn read(&self, code: &str, xml: &str) -> Incoming {
        let context = Context {
            sender: Some(bic(code)),
            amount_max: AmountMinor::MAX,
            numbers_messages: &|_| false,
        };
        read(xml.as_bytes(), &Limits::default(), &context)
            .unwrap_or_else(|fault| panic!("{fault}\n{xml}"))
    }

    /// A message of a participant, at its home shard.
    pub(crate) fn send(&mut self, code: &str, xml: &str) -> Reply {
        let Incoming::Submission(submitted) = self.read(code, xml) else {
            panic!("not a submission: {xml}");
        };
        let mut submission = submitted.submission;
        submission.heap = clearspan_codec::heap::pack(&submission.heap);
        let home = self.home(code);
        let again = self.packages.values().any(|known| {
            known.sender == submission.sender && known.message_id == submission.message_id
        });
        if !again {
            self.held.push((home, submission.clone()));
        }
        let reply = self.apply(home, Command::Submit(submission));
        self.check_stable();
        self.pump();
        reply
    }

    /// A participant's items, oldest first.
    pub(crate) fn items(&self, code: &str) -> Vec<Item> {
        self.ledger(self.home(code))
            .stream(self.participant(code))
            .map(|stream| stream.iter().cloned().collect())
            .unwrap_or_default()
    }

    pub(crate) fn form(&self, code: &str, number: u64) -> Vec<Document> {
        self.documents()
            .documents(self.participant(code), number, false)
            .unwrap_or_else(|e| panic!("{code} {number}: {e}"))
    }

    /// The documents of a participant's last number.
    pub(crate) fn last(&self, code: &str) -> Vec<Document> {
        let items = self.items(code);
        let item = items.last().expect("an item");
        self.form(code, item.number + u64::from(item.pages) - 1)
    }

    /// All documents of a participant whose definition begins so.
    pub(crate) fn all(&self, code: &str, name: &str) -> Vec<Document> {
        let mut found = Vec::new();
        for item in self.items(code) {
            for number in item.number..item.number + u64::from(item.pages) {
                found.extend(
                    self.form(code, number)
                        .into_iter()
                        .filter(|document| document.name.starts_with(name)),
                );
            }
        }
        found
    }

    /// Every number within retention can be formed, is well-formed, and is what it was when it was first seen.
    pub(crate) fn check_stable(&mut self) {
        // Nothing is left of earlier states but what is in the ledgers and the package store.
        self.cache = Cache::new();
        let mut seen = BTreeMap::new();
        let participants: Vec<ParticipantId> = self.ledgers[0]
            .directory()
            .iter()
            .map(|(participant, _)| participant)
            .collect();
        for participant in participants {
            let home = self.ledgers[0]
                .directory()
                .get(participant)
                .map(|terms| terms.home);
            let Some(stream) = home.and_then(|home| self.ledger(home).stream(participant)) else {
                continue;
            };
            for item in stream.iter() {
                for number in item.number..item.number + u64::from(item.pages) {
                    let documents = self
                        .documents()
                        .documents(participant, number, false)
                        .unwrap_or_else(|e| panic!("{participant} {number} {:?}: {e}", item.body));
                    assert!(!documents.is_empty());
                    if let Some(before) = self.known.get(&(participant, number)) {
                        assert_eq!(
                            show(before),
                            show(&documents),
                            "number {number} of {participant} changed: {:?}",
                            item.body
                        );
                        continue;
                    }
                    documents.iter().for_each(assert_well_formed);
                    seen.insert((participant, number), documents);
                }
            }
        }
        self.known.extend(seen);
    }

    pub(crate) fn error(&self, code: &str, number: u64) -> DocumentError {
        self.documents()
            .documents(self.participant(code), number, false)
            .expect_err("no document")
    }
}

fn show(documents: &[Document]) -> Vec<(&str, String)> {
    documents
        .iter()
        .map(|document| {
            (
                document.file_name.as_str(),
                String::from_utf8_lossy(&document.bytes).into_owned(),
            )
        })
        .collect()
}

/// The UETR of a number.
pub(crate) fn uetr(number: u32) -> String {
    format!("8a562c67-ca16-48ba-b074-{number:012x}")
}

fn agent(code: &str) -> String {
    format!("<FinInstnId><BICFI>{code}</BICFI></FinInstnId>")
}

/// A transaction of a pacs.008.001.08; without a UETR where `id` is empty.
pub(crate) fn transfer(number: u32, id: &str, to: &str, of: &str, amount: &str) -> String {
    let id = if id.is_empty() {
        String::new()
    } else {
        format!("<UETR>{id}</UETR>")
    };
    format!(
        "<CdtTrfTxInf><PmtId><InstrId>I-{number}</InstrId><EndToEndId>E-{number}</EndToEndId><TxId>T-{number}</TxId>{id}\
         </PmtId><IntrBkSttlmAmt Ccy=\"{of}\">{amount}</IntrBkSttlmAmt><ChrgBr>SLEV</ChrgBr><InstdAgt>{}</InstdAgt>\
         <Dbtr><Nm>Debtor</Nm></Dbtr><DbtrAgt>{}</DbtrAgt><CdtrAgt>{}</CdtrAgt><Cdtr><Nm>Creditor</Nm></Cdtr>\
         <RmtInf><Ustrd>Invoice {number}</Ustrd></RmtInf></CdtTrfTxInf>",
        agent(to),
        agent(ALFA),
        agent(to),
    )
}

/// A transfer named by the UETR of its number.
pub(crate) fn pay(number: u32, to: &str, of: &str, amount: &str) -> String {
    transfer(number, &uetr(number), to, of, amount)
}

/// A pacs.008.001.08; `more` goes into the group header before the settlement information's end.
pub(crate) fn package(
    id: &str,
    date: &str,
    type_information: &str,
    transfers: &[String],
) -> String {
    format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08\"><FIToFICstmrCdtTrf><GrpHdr><MsgId>{id}</MsgId>\
         <CreDtTm>2026-11-30T08:00:00Z</CreDtTm><NbOfTxs>{}</NbOfTxs><IntrBkSttlmDt>{date}</IntrBkSttlmDt>\
         <SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf>{type_information}</GrpHdr>{}</FIToFICstmrCdtTrf></Document>",
        transfers.len(),
        transfers.concat()
    )
}

pub(crate) const DAY: &str = "2026-11-30";

/// Payments for netting.
pub(crate) fn net(id: &str, transfers: &[String]) -> String {
    package(id, DAY, "", transfers)
}

/// One urgent payment.
pub(crate) fn urgent(id: &str, transfer: &str) -> String {
    let settle = transfer.replace(
        "</IntrBkSttlmAmt>",
        "</IntrBkSttlmAmt><SttlmPrty>URGT</SttlmPrty>",
    );
    let channel = "<PmtTpInf><ClrChanl>RTGS</ClrChanl></PmtTpInf>";
    package(id, DAY, channel, &[settle])
}

/// A camt.056 for payments by UETR.
pub(crate) fn cancel(id: &str, code: &str, numbers: &[u32]) -> String {
    let transactions: String = numbers
        .iter()
        .map(|&number| {
            format!(
                "<TxInf><CxlId>C-{number}</CxlId><OrgnlUETR>{}</OrgnlUETR>\
                 <CxlRsnInf><Rsn><Cd>DUPL</Cd></Rsn></CxlRsnInf></TxInf>",
                uetr(number)
            )
        })
        .collect();
    format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.056.001.08\"><FIToFIPmtCxlReq><Assgnmt><Id>{id}</Id>\
         <Assgnr><Agt>{}</Agt></Assgnr><Assgne><Agt>{}</Agt></Assgne><CreDtTm>2026-11-30T08:00:00Z</CreDtTm></Assgnmt>\
         <CtrlData><NbOfTxs>{}</NbOfTxs></CtrlData><Undrlyg>{transactions}</Undrlyg></FIToFIPmtCxlReq></Document>",
        agent(code),
        agent("CLRSDEFF"),
        numbers.len()
    )
}

/// A pacs.004 that sends back part of a payment to its sender.
pub(crate) fn give_back(id: &str, number: u32, from: &str, to: &str, amount: &str) -> String {
    format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.004.001.10\"><PmtRtr><GrpHdr><MsgId>{id}</MsgId>\
         <CreDtTm>2026-11-30T08:00:00Z</CreDtTm><NbOfTxs>1</NbOfTxs><SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf>\
         <InstgAgt>{}</InstgAgt><InstdAgt>{}</InstdAgt></GrpHdr><TxInf><RtrId>R-{id}</RtrId>\
         <OrgnlUETR>{}</OrgnlUETR><RtrdIntrBkSttlmAmt Ccy=\"EUR\">{amount}</RtrdIntrBkSttlmAmt>\
         <IntrBkSttlmDt>{DAY}</IntrBkSttlmDt><RtrRsnInf><Rsn><Cd>AC04</Cd></Rsn></RtrRsnInf></TxInf></PmtRtr></Document>",
        agent(from),
        agent(to),
        uetr(number)
    )
}
