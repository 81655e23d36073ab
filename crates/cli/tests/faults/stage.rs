//! A cluster under test: a lab of real processes with participants, traffic through all its nodes, and the record of it.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use clearspan_lab::clock::{SECOND_NS, now_ns};
use clearspan_lab::lab::{CLUSTER_DIR, Lab, LabOptions, Launch, NodeState, Ways};
use clearspan_lab::topology::{Distance, Quality, Topology};
use clearspan_node::api::NodeStatus;
use clearspan_node::client::{Ask, Retry};
use clearspan_node::clock::Clock;
use clearspan_node::cluster::pki::{Authority, AuthorityKind};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::asker::{Asker, Directory};
use crate::messages::{Content, Message, Payment};
use crate::record::{Look, Position, Record};
use crate::rng::Rng;
use crate::traffic::{AUDITOR, OPERATOR, Traffic};
use crate::world::{Bank, DATE, Role, SHARDS, settings};

/// Everything here takes seconds; a loaded machine may need far longer.
pub(crate) const DEADLINE_NS: u64 = 180 * SECOND_NS;
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Small files, and snapshots so often that one who was away for a while finds the log gone.
const EXTRA_SETTINGS: &str = "[log]\nprefill_mib = 0\nreserve_mib = 1\n\n[packages]\nreserve_mib = 1\n\n[limits]\n\
                              snapshot_after_mib = 1\n";

const CRASH_FILE: &str = "CLEARSPAN_CRASH_FILE";
/// Beside a node's settings.
const CRASH_PLAN: &str = "{config}.crash";

/// Which sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ground {
    /// Two data sites and a witness.
    Metro,
    /// Two data sites and nobody else.
    Halves,
}

impl Ground {
    const fn sites(self) -> &'static str {
        match self {
            Self::Metro => "A:2,B:2,W:witness",
            Self::Halves => "A:3,B:3",
        }
    }
}

/// The cluster and all that is known of it.
pub(crate) struct Stage {
    lab: Option<Lab>,
    kept: Vec<Box<dyn Any>>,
    dir: Option<TempDir>,
    pub(crate) ground: Ground,
    pub(crate) path: PathBuf,
    pub(crate) seed: u64,
    pub(crate) rng: Rng,
    pub(crate) record: Arc<Record>,
    pub(crate) directory: Directory,
    pub(crate) operator: Asker,
    pub(crate) auditor: Asker,
    next: Arc<AtomicU64>,
    traffic: Option<Traffic>,
    /// Durations of note, in milliseconds, by what they are.
    pub(crate) figures: Vec<(String, u64)>,
}

impl Stage {
    /// Brings a cluster up and founds it.
    pub(crate) fn up(ground: Ground, seed: u64) -> Self {
        println!("{ground:?}, seed {seed}");
        let dir = tempfile::tempdir().expect("create a directory");
        let distance = Distance::Km("70".to_owned());
        let options = LabOptions {
            topology: Topology::parse(Some(ground.sites()), Some(&distance), Quality::default())
                .expect("sites"),
            shards: SHARDS,
            launch: Launch {
                environment: vec![(CRASH_FILE.to_owned(), CRASH_PLAN.to_owned())],
                ..Launch::serve(PathBuf::from(env!("CARGO_BIN_EXE_clearspan")))
            },
            extra_settings: EXTRA_SETTINGS.to_owned(),
        };
        let mut lab = Lab::up(dir.path(), &options).expect("the lab comes up");
        lab.wait_until_ready(Duration::from_nanos(DEADLINE_NS))
            .expect("the nodes become ready");
        let report = lab.report().expect("the lab reports");
        let directory = Directory {
            nodes: report
                .nodes
                .iter()
                .filter(|node| !node.witness)
                .map(|node| (node.name.clone(), node.client_address.clone()))
                .collect(),
            certificates: lab.dir().join(CLUSTER_DIR).join("clients"),
            ca: lab.operator().ca.clone(),
        };
        issue(&lab, &directory.certificates);
        let record = Arc::new(Record::default());
        let mut stage = Self {
            path: lab.dir().to_owned(),
            lab: Some(lab),
            kept: Vec::new(),
            dir: Some(dir),
            ground,
            seed,
            rng: Rng::new(seed),
            operator: Asker::new(&directory, OPERATOR, &record),
            auditor: Asker::new(&directory, AUDITOR, &record),
            record,
            directory,
            next: Arc::new(AtomicU64::new(1)),
            traffic: None,
            figures: Vec::new(),
        };
        stage.found();
        stage
    }

    fn found(&mut self) {
        let ask = Ask {
            content_type: "application/toml",
            ..Ask::post("/v1/admin/participants", settings(), Retry::Always)
        };
        self.act_until_done("the cluster is founded", &ask);
        let day = json!({ "date": DATE }).to_string();
        let ask = Ask::post("/v1/admin/day/open", day, Retry::Always);
        self.act_until_done("the day opens", &ask);
    }

    fn act_until_done(&mut self, what: &str, ask: &Ask<'_>) {
        self.until(what, |stage| {
            let node = stage.operator.pick(&mut stage.rng);
            let done: Result<Value, _> = stage.operator.json(node, ask);
            done.is_ok_and(|answer| answer["everywhere"] == json!(true))
        });
    }

    pub(crate) fn lab(&mut self) -> &mut Lab {
        self.lab.as_mut().expect("it is up")
    }

    /// Waits until a condition holds.
    ///
    /// # Panics
    /// When it does not within the deadline; the directory is kept.
    pub(crate) fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) -> u64 {
        let start_ns = now_ns();
        while !holds(self) {
            if now_ns() - start_ns > DEADLINE_NS {
                self.fail(&[format!("I11: waited in vain: {what}")]);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        now_ns() - start_ns
    }

    /// Ends the test with what is wrong; everything is kept.
    pub(crate) fn fail(&mut self, faults: &[String]) -> ! {
        let path = match self.dir.take() {
            Some(dir) => dir.keep(),
            None => self.path.clone(),
        };
        let record = path.join("record.jsonl");
        self.record
            .with(|history| history.write(&record))
            .expect("the record can be written");
        let shown: Vec<&str> = faults.iter().take(20).map(String::as_str).collect();
        let states: Vec<String> = self.nodes_not_ready();
        panic!(
            "{} faults with seed {}; record and data are kept in {}\n{}\nnodes: {states:?}",
            faults.len(),
            self.seed,
            path.display(),
            shown.join("\n")
        );
    }

    fn nodes_not_ready(&mut self) -> Vec<String> {
        let report = self.lab().report();
        report
            .map(|report| {
                let nodes = report.nodes.into_iter();
                nodes
                    .filter(|node| node.state != NodeState::Ready)
                    .map(|node| format!("{}: {:?}", node.name, node.state))
                    .collect()
            })
            .unwrap_or_default()
    }

    // Traffic

    pub(crate) fn work(&mut self) {
        if self.traffic.is_none() {
            self.traffic = Some(Traffic::start(
                &self.record,
                &self.directory,
                &self.next,
                &mut self.rng,
            ));
        }
    }

    pub(crate) fn rest(&mut self) {
        if let Some(traffic) = self.traffic.take() {
            traffic.stop();
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }

    /// Waits until so many more messages were acknowledged through these nodes.
    pub(crate) fn await_acknowledged(&mut self, nodes: &[String], more: usize) {
        let before = self.record.acknowledged(nodes);
        let nodes = nodes.to_vec();
        let what = format!("acknowledgements through {}", nodes.join(", "));
        self.until(&what, |stage| {
            stage.record.acknowledged(&nodes) >= before + more
        });
    }

    /// Waits until these nodes refused so many more requests.
    pub(crate) fn await_refused(&mut self, nodes: &[String], more: usize) {
        let before = self.record.refused(nodes);
        let nodes = nodes.to_vec();
        self.until(&format!("refusals of {}", nodes.join(", ")), |stage| {
            stage.record.refused(&nodes) >= before + more
        });
    }

    /// Waits until the teller of every shard got so many more acknowledgements, so that every shard is served by somebody;
    /// gives the milliseconds.
    pub(crate) fn await_service(&mut self, more: usize) -> u64 {
        let count = |stage: &Self, home: u16| {
            let teller = Bank::new(Role::Teller, home);
            stage.record.acknowledged_of(teller)
        };
        let before: Vec<usize> = (0..SHARDS).map(|home| count(self, home)).collect();
        self.until("every shard is served", |stage| {
            (0..SHARDS)
                .zip(&before)
                .all(|(home, before)| count(stage, home) >= before + more)
        }) / 1_000_000
    }

    /// A new urgent payment between two shards, not sent yet.
    pub(crate) fn fresh_urgent(&mut self) -> (usize, Bank) {
        let (from, to) = (Bank::new(Role::Crosser, 3), Bank::new(Role::Crosser, 2));
        let number = self.number();
        let payment = Payment {
            id: format!("P{number}"),
            to,
            currency: "EUR",
            minor: 1,
            note: String::new(),
        };
        let message = Message::new(format!("M{number}"), from, Content::Urgent(payment));
        (self.record.message(message), from)
    }

    pub(crate) fn figure(&mut self, what: &str, ms: u64) {
        println!("  {what}: {ms} ms");
        self.figures.push((what.to_owned(), ms));
    }

    // Nodes

    /// Names of all data nodes, or of those at a site.
    pub(crate) fn data_nodes(&self, site: Option<&str>) -> Vec<String> {
        let nodes = self.directory.nodes.iter();
        nodes
            .filter(|(name, _)| site.is_none_or(|site| name.starts_with(site)))
            .map(|(name, _)| name.clone())
            .collect()
    }

    pub(crate) fn others(&self, than: &[String]) -> Vec<String> {
        let all = self.data_nodes(None).into_iter();
        all.filter(|name| !than.contains(name)).collect()
    }

    pub(crate) fn kill(&mut self, target: &str) {
        self.record.act(format!("kill {target}"));
        self.lab().kill(target).expect("it can be killed");
    }

    pub(crate) fn restart(&mut self, target: &str) {
        self.record.act(format!("restart {target}"));
        self.lab().restart(target).expect("it can be started");
    }

    pub(crate) fn pause(&mut self, target: &str) {
        self.record.act(format!("pause {target}"));
        self.lab().pause(target).expect("it can be paused");
    }

    pub(crate) fn resume(&mut self, target: &str) {
        self.record.act(format!("resume {target}"));
        self.lab().resume(target).expect("it can be resumed");
    }

    pub(crate) fn cut(&mut self, from: &str, to: &str, ways: Ways) {
        self.record.act(format!("cut {from} {to} {ways:?}"));
        self.lab().cut(from, to, ways).expect("it can be cut");
    }

    pub(crate) fn isolate(&mut self, site: &str) {
        self.record.act(format!("isolate {site}"));
        self.lab().isolate(site).expect("it can be isolated");
    }

    /// Heals all lines, lets paused nodes go on and starts those that are not there.
    pub(crate) fn heal(&mut self) {
        self.record.dawns();
        self.record.act("heal");
        self.lab().heal_all().expect("lines can be healed");
        let report = self.lab().report().expect("the lab reports");
        for node in report.nodes {
            match node.state {
                NodeState::Paused => self.resume(&node.name),
                NodeState::Killed => self.restart(&node.name),
                NodeState::Ended(how) => self.fail(&[format!(
                    "{} ended by itself: {how}; see {}",
                    node.name,
                    node.log.display()
                )]),
                NodeState::Ready | NodeState::NotReady(_) => {}
            }
        }
    }

    /// Has a node's process die where its code passes a labelled place for the n-th time from now on.
    pub(crate) fn plan_crash(&mut self, node: &str, label: &str, hit: u64) {
        self.record
            .act(format!("plan: {node} dies at {label}:{hit}"));
        let plan = self.crash_plan(node);
        std::fs::write(plan, format!("{label}:{hit}\n")).expect("a plan can be written");
    }

    pub(crate) fn forget_crash(&mut self, node: &str) {
        std::fs::remove_file(self.crash_plan(node)).expect("a plan can be removed");
    }

    fn crash_plan(&self, node: &str) -> PathBuf {
        let nodes = self.path.join(CLUSTER_DIR).join("nodes");
        nodes.join(node).join("node.toml.crash")
    }

    /// Whether a node's process has ended by itself.
    pub(crate) fn has_ended(&mut self, name: &str) -> bool {
        let report = self.lab().report().expect("the lab reports");
        report
            .nodes
            .iter()
            .any(|node| node.name == name && matches!(node.state, NodeState::Ended(_)))
    }

    /// How a node sees the cluster.
    pub(crate) fn status(&mut self, node: usize) -> Option<NodeStatus> {
        self.operator.json(node, &Ask::get("/v1/status")).ok()
    }

    /// Who leads a shard, as the first node that knows says.
    pub(crate) fn leader(&mut self, shard: u16) -> String {
        let mut found = None;
        self.until("a leader", |stage| {
            found = (0..stage.operator.node_count()).find_map(|node| {
                let status = stage.status(node)?;
                let state = status.shards.iter().find(|state| state.shard == shard)?;
                state.leader.clone()
            });
            found.is_some()
        });
        found.unwrap_or_default()
    }

    /// Who leads each shard in which term, when exactly one data node does of each.
    pub(crate) fn leaders(&mut self) -> Option<Vec<(String, u64)>> {
        let all: Vec<NodeStatus> = (0..self.operator.node_count())
            .filter_map(|node| self.status(node))
            .collect();
        (0..SHARDS)
            .map(|shard| {
                let mut leading = all.iter().filter_map(|status| {
                    let state = status.shards.iter().find(|state| state.shard == shard)?;
                    (state.role == "leader").then(|| (status.node.clone(), state.term))
                });
                leading.next().filter(|_| leading.next().is_none())
            })
            .collect()
    }

    /// Waits until every node is ready.
    pub(crate) fn await_ready(&mut self) {
        self.until("all nodes are ready", |stage| {
            let report = stage.lab().report().expect("the lab reports");
            report
                .nodes
                .iter()
                .all(|node| node.state == NodeState::Ready)
        });
    }

    /// Where a node's data is.
    pub(crate) fn data_dir(&self, node: &str) -> PathBuf {
        let nodes = self.path.join(CLUSTER_DIR).join("nodes");
        nodes.join(node).join("data")
    }

    /// Holds something until the processes have ended.
    pub(crate) fn keep_until_the_end(&mut self, what: Box<dyn Any>) {
        self.kept.push(what);
    }

    /// Whether a node says that its disk is full.
    pub(crate) fn says_disk_full(&mut self, node: &str) -> bool {
        let nodes = 0..self.operator.node_count();
        let at = nodes
            .into_iter()
            .find(|&at| self.operator.node_name(at) == node);
        at.and_then(|at| self.status(at))
            .is_some_and(|status| status.disk_full.is_some())
    }

    /// Snapshots that nodes have fetched and installed, as they say.
    pub(crate) fn snapshots_fetched(&mut self) -> usize {
        let report = self.lab().report().expect("the lab reports");
        let logs = report.nodes.iter();
        logs.filter_map(|node| std::fs::read_to_string(&node.log).ok())
            .map(|log| log.matches("shard.snapshot-installed").count())
            .sum()
    }

    /// Looks at every node's states; the looks are kept. `None` unless all data nodes answer.
    pub(crate) fn look(&mut self) -> Option<Vec<NodeStatus>> {
        let mut all = Vec::new();
        for node in 0..self.operator.node_count() {
            all.push(self.status(node)?);
        }
        for status in &all {
            for shard in &status.shards {
                let Some(digest) = &shard.digest else {
                    continue;
                };
                let look = Look {
                    node: status.node.clone(),
                    at: Position {
                        shard: shard.shard,
                        index: shard.digest_index,
                    },
                    digest: digest.clone(),
                };
                self.record.with(|history| history.looks.push(look));
            }
        }
        Some(all)
    }

    /// Waits until all is at rest: every node ready, all at the same place in every shard, nothing waiting, twice in a row.
    pub(crate) fn await_rest(&mut self) -> u64 {
        let mut last: BTreeMap<u16, u64> = BTreeMap::new();
        self.until("all nodes are ready and at the same place", |stage| {
            let Some(all) = stage.look() else {
                return false;
            };
            let mut places: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
            for shard in all.iter().flat_map(|status| &status.shards) {
                let index = shard.digest_index;
                places.entry(shard.shard).or_default().push(index);
            }
            let same = places
                .values()
                .all(|indexes| indexes.iter().all(|index| *index == indexes[0]));
            let quiet = all
                .iter()
                .all(|status| status.ready && status.shards.iter().all(|shard| shard.waiting == 0));
            let now: BTreeMap<u16, u64> = places
                .into_iter()
                .map(|(shard, indexes)| (shard, indexes[0]))
                .collect();
            let still = now == last;
            last = now;
            same && quiet && still
        }) / 1_000_000
    }

    /// Opens a cycle through any node; whether it was opened.
    pub(crate) fn open_cycle(&mut self) -> Option<u64> {
        let ask = Ask::post("/v1/admin/cycle/open", "", Retry::NothingDone);
        let node = self.operator.pick(&mut self.rng);
        let opened: Result<Value, _> = self.operator.json(node, &ask);
        opened.ok()?["cycle"].as_u64()
    }

    /// The newest cycle's number and state.
    pub(crate) fn newest_cycle(&mut self) -> Option<(u64, String)> {
        let node = self.operator.pick(&mut self.rng);
        let cycles: Vec<Value> = self.operator.json(node, &Ask::get("/v1/cycles")).ok()?;
        let newest = cycles.iter().max_by_key(|cycle| cycle["cycle"].as_u64())?;
        Some((
            newest["cycle"].as_u64()?,
            newest["state"].as_str()?.to_owned(),
        ))
    }

    /// Runs a cycle over all that was taken so far, to its end.
    pub(crate) fn run_cycle(&mut self) {
        self.until("no cycle runs", |stage| {
            stage
                .newest_cycle()
                .is_none_or(|(_, state)| !state.starts_with("running"))
        });
        let mut opened = None;
        self.until("a cycle opens", |stage| {
            opened = stage.open_cycle();
            opened.is_some()
        });
        self.until("the cycle settles", |stage| {
            stage
                .newest_cycle()
                .is_some_and(|(number, state)| Some(number) >= opened && state == "settled")
        });
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(traffic) = self.traffic.take()
            && !std::thread::panicking()
        {
            traffic.stop();
        }
        // Processes end before what they stand on is taken away, and that before their files go.
        self.lab = None;
        self.kept.clear();
    }
}

/// Certificates for everybody.
fn issue(lab: &Lab, dir: &Path) {
    let pki = lab
        .dir()
        .join(CLUSTER_DIR)
        .join(clearspan_node::cluster::init::PKI_DIR);
    let authority = Authority::open(&pki, AuthorityKind::Clients, lab.definition().cluster)
        .expect("the lab's authority");
    let now = Clock::System.now();
    let write = |name: &str, issued: clearspan_node::cluster::pki::Issued| {
        issued
            .write(
                &dir.join(format!("{name}.crt")),
                &dir.join(format!("{name}.key")),
            )
            .expect("certificates can be written");
    };
    for bank in Bank::all() {
        let code = bank.bic();
        let bic = clearspan_ledger::Bic::parse(code.as_bytes()).expect("a BIC");
        write(
            &code,
            authority
                .issue_participant(bic, now)
                .expect("a certificate"),
        );
    }
    write(
        AUDITOR,
        authority
            .issue_auditor("audit", now)
            .expect("a certificate"),
    );
}
