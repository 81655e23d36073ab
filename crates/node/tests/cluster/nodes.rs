//! A cluster of real engines with real disks.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clearspan_ledger::directory::NetUnit;
use clearspan_ledger::entry::{AdminCommand, Command};
use clearspan_ledger::message::{Class, MessageKind, PaymentRecord, Settlement, Submission};
use clearspan_ledger::nodes::{NodeDirectory, NodeRecord};
use clearspan_ledger::{
    AmountMinor, Bic, BusinessDate, Currency, Outcome, PaymentId, ReasonSet, ShardId, Text,
};
use clearspan_node::engine::group::Seat;
use clearspan_node::engine::{Engine, EngineOptions, Lane, ProposeError};
use clearspan_node::founding;
use clearspan_node::settings::{Account, Participant, Settings};
use clearspan_replica::MemberId;
use clearspan_storage::{ClusterId, DataDir, Identity, Layout, LogOptions, NodeId, PackageOptions};

use crate::hub::Hub;

pub(crate) const SHARDS: u16 = 4;
/// A small state is sent in many pieces.
const PIECE_BYTES: usize = 512;

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) id: MemberId,
    pub(crate) site: u16,
    pub(crate) witness: bool,
    pub(crate) node: NodeId,
}

pub(crate) struct Cluster {
    pub(crate) hub: Hub,
    pub(crate) members: Vec<Member>,
    pub(crate) nodes: Vec<Option<Arc<Engine>>>,
    pub(crate) snapshot_after_bytes: u64,
    founders: usize,
    cluster: ClusterId,
    root: tempfile::TempDir,
}

pub(crate) fn eur() -> Currency {
    Currency::parse(b"EUR").unwrap()
}

pub(crate) fn bic(at: u16) -> Bic {
    let letter = |n: u16| char::from(b'A' + u8::try_from(n % 26).unwrap());
    Bic::parse(format!("BK{}{}DEFFXXX", letter(at / 26), letter(at)).as_bytes()).unwrap()
}

pub(crate) fn date() -> BusinessDate {
    BusinessDate::from_ymd(2026, 11, 30).unwrap()
}

impl Cluster {
    /// `sites` data nodes per site, and a witness in a site of its own where asked for.
    pub(crate) fn new(sites: &[u16], witness: bool) -> Self {
        let mut members = Vec::new();
        for (site, &count) in (0_u16..).zip(sites) {
            for _ in 0..count {
                let id = MemberId::new(members.len() as u64 + 1).unwrap();
                members.push(Member {
                    id,
                    site,
                    witness: false,
                    node: NodeId::random().unwrap(),
                });
            }
        }
        if witness {
            let id = MemberId::new(members.len() as u64 + 1).unwrap();
            members.push(Member {
                id,
                site: u16::try_from(sites.len()).unwrap(),
                witness: true,
                node: NodeId::random().unwrap(),
            });
        }
        let root = tempfile::tempdir().unwrap();
        let cluster = ClusterId::random().unwrap();
        let new = Self {
            hub: Hub::default(),
            nodes: members.iter().map(|_| None).collect(),
            founders: members.len(),
            members,
            cluster,
            snapshot_after_bytes: 64 << 20,
            root,
        };
        for at in 0..new.members.len() {
            new.create_data(at);
        }
        new
    }

    /// A fresh data directory.
    pub(crate) fn create_data(&self, at: usize) {
        let identity = Identity {
            cluster: self.cluster,
            node: self.members[at].node,
        };
        drop(DataDir::create(Layout::under(self.dir(at)), identity).unwrap());
    }

    /// A node as the directory has it.
    pub(crate) fn record(&self, at: usize) -> NodeRecord {
        let member = &self.members[at];
        NodeRecord {
            member: member.id.get(),
            id: u128::from_be_bytes(member.node.to_bytes()),
            name: format!("N{at}"),
            site: format!("S{}", member.site),
            witness: member.witness,
            peer: format!("n{at}:1"),
            client: format!("n{at}:2"),
            ..NodeRecord::default()
        }
    }

    /// A node of the next number with a fresh directory, not started.
    pub(crate) fn join(&mut self, site: u16, witness: bool) -> usize {
        let at = self.members.len();
        self.members.push(Member {
            id: MemberId::new(at as u64 + 1).unwrap(),
            site,
            witness,
            node: NodeId::random().unwrap(),
        });
        self.nodes.push(None);
        self.create_data(at);
        at
    }

    /// What the cluster was founded with.
    pub(crate) fn founding(&self) -> NodeDirectory {
        NodeDirectory::founding((0..self.founders).map(|at| self.record(at)).collect())
    }

    pub(crate) fn dir(&self, at: usize) -> PathBuf {
        self.root.path().join(at.to_string())
    }

    pub(crate) fn start(&mut self, at: usize) {
        let seat = Seat {
            me: self.members[at].id,
            witness: self.members[at].witness,
            founding: self.founding(),
        };
        let options = EngineOptions {
            snapshot_after_bytes: self.snapshot_after_bytes,
            log: LogOptions {
                prefill_bytes: 0,
                reserve_bytes: 1 << 20,
                ..LogOptions::default()
            },
            packages: PackageOptions {
                reserve_bytes: 1 << 20,
                ..PackageOptions::default()
            },
            piece_bytes: PIECE_BYTES,
            ..EngineOptions::usual()
        };
        let (hub, me) = (self.hub.clone(), seat.me);
        let engine = Engine::open_member(
            Layout::under(self.dir(at)),
            SHARDS,
            options,
            seat,
            |inlet| hub.connect(me, inlet),
        )
        .unwrap();
        self.nodes[at] = Some(Arc::new(engine));
    }

    pub(crate) fn start_all(&mut self) {
        for at in 0..self.members.len() {
            self.start(at);
        }
    }

    /// Ends a node without a snapshot, as a kill would: what is not in its log is lost.
    pub(crate) fn stop(&mut self, at: usize) {
        self.hub.disconnect(self.members[at].id);
        self.nodes[at] = None;
    }

    pub(crate) fn node(&self, at: usize) -> &Engine {
        self.nodes[at].as_ref().unwrap()
    }

    /// Pays through a node, whatever becomes of the cluster meanwhile; whether it was acknowledged.
    pub(crate) fn door(&self, at: usize) -> impl Fn(&Payment) -> bool + Send + Sync + use<> {
        let node = self.nodes[at].clone().unwrap();
        move |payment| pay(&node, payment).is_ok()
    }

    /// Participants `0..count`, dealt over the shards, each with 1,000,000.00 EUR, and an open business day.
    pub(crate) fn found(&self, at: usize, count: u16) {
        let settings = Settings {
            business_date: date(),
            shards: SHARDS,
            clearing_house: Bic::parse(b"CLSPZZ2AXXX").unwrap(),
            retention_days: 5,
            amount_max: AmountMinor::MAX,
            page_len_payments: 1000,
            gap_timeout_seconds: 300,
            participants: (0..count)
                .map(|n| Participant {
                    bic: bic(n),
                    name: format!("Bank {n}"),
                    home: ShardId::new(n % SHARDS),
                    numbers_messages: false,
                    refuse_whole: false,
                    net_unit: NetUnit::Payment,
                    accounts: vec![Account {
                        currency: eur(),
                        opening_balance: AmountMinor::new(100_000_000).unwrap(),
                        credit_line: AmountMinor::ZERO,
                    }],
                })
                .collect(),
        };
        eventually("the cluster is founded", || {
            match founding::found(self.node(at), &settings) {
                Ok(()) => true,
                Err(error) => {
                    println!("not yet: {error:?}");
                    false
                }
            }
        });
        let open = Command::Admin(AdminCommand::OpenDay { date: date() });
        eventually("the day opens", || {
            self.node(at)
                .execute(ShardId::new(0), &open, Lane::Urgent)
                .is_ok()
        });
        self.all_agree();
    }

    /// Waits until every running data node has the same state at the same index in every shard, and nothing is in transit.
    pub(crate) fn all_agree(&self) {
        let running: Vec<&Engine> = self
            .nodes
            .iter()
            .zip(&self.members)
            .filter(|(_, member)| !member.witness)
            .filter_map(|(node, _)| node.as_deref())
            .collect();
        eventually("all nodes agree", || {
            (0..SHARDS).map(ShardId::new).all(|shard| {
                let view = |node: &&Engine| {
                    node.with_ledger(shard, |ledger| {
                        let idle = (0..SHARDS).map(ShardId::new).all(|to| {
                            let (first, end) = ledger.outbound_range(to);
                            first == end
                        });
                        (
                            ledger.position().0,
                            ledger.digest(),
                            clearspan_codec::snapshot::state_digest(ledger),
                            idle,
                        )
                    })
                };
                let first = view(&running[0]);
                first.3 && running.iter().all(|node| view(node) == first)
            })
        });
    }

    /// Balance of a participant's account as a node sees it.
    pub(crate) fn balance(&self, at: usize, participant: u16) -> i128 {
        let shard = ShardId::new(participant % SHARDS);
        self.node(at).with_ledger(shard, |ledger| {
            let number = ledger.directory().find(bic(participant)).unwrap();
            ledger.account(number, eur()).unwrap().balance_minor()
        })
    }

    pub(crate) fn pay(&self, at: usize, payment: &Payment) -> Result<Outcome, ProposeError> {
        pay(self.node(at), payment)
    }
}

fn pay(node: &Engine, payment: &Payment) -> Result<Outcome, ProposeError> {
    let shard = ShardId::new(payment.from % SHARDS);
    node.execute(shard, &Command::Submit(payment.message()), Lane::Urgent)
}

/// An urgent payment between two of the test's participants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payment {
    pub(crate) number: u64,
    pub(crate) from: u16,
    pub(crate) to: u16,
    pub(crate) minor: u64,
}

impl Payment {
    pub(crate) fn message(&self) -> Submission {
        Submission {
            kind: MessageKind::CustomerTransfer,
            version: 8,
            sender: bic(self.from),
            message_id: Text::new(&format!("M{}", self.number)).unwrap(),
            digest: u128::from(self.number),
            sequence: None,
            settlement: Settlement::Gross {
                class: Class::Urgent,
                settle_or_refuse: false,
            },
            faults: ReasonSet::EMPTY,
            payments: vec![PaymentRecord {
                id: PaymentId::of_transaction(&format!("T{}", self.number)),
                content_digest: self.number,
                amount: AmountMinor::new(self.minor).unwrap(),
                currency: eur(),
                receiver: Some(bic(self.to)),
                date: Some(date()),
                faults: ReasonSet::EMPTY,
                body_offset: 0,
                body_len: 0,
            }],
            times: Vec::new(),
            originals: Vec::new(),
            heap: clearspan_codec::heap::pack(b""),
        }
    }
}

/// Waits for a condition with a deadline.
#[expect(clippy::disallowed_methods, reason = "a test waits in real time")]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
