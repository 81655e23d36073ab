//! A cluster of processes with lines between its sites.

mod probe;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clearspan_node::clock::Clock;
use clearspan_node::cluster::ConfigError;
use clearspan_node::cluster::definition::{Definition, Node, NodeKind};
use clearspan_node::cluster::init::{
    DEFINITION_FILE, InitError, InitOptions, PKI_DIR, init, node_files,
};
use clearspan_node::cluster::pki::{Authority, AuthorityKind, PkiError};
use serde::{Deserialize, Serialize};

use crate::clock::now_ns;
use crate::process::{Act, Process};
use crate::relay::{LineId, LineStatus, Relay, Shape};
use crate::topology::Topology;

/// The cluster's files, in the lab's directory.
pub const CLUSTER_DIR: &str = "cluster";
/// What the nodes say, one file for each.
pub const LOGS_DIR: &str = "logs";
/// Which processes there are, one file for each.
pub const RUN_DIR: &str = "run";
/// The place of a node's settings in its arguments.
pub const CONFIG_ARGUMENT: &str = "{config}";

const HOST: &str = "127.0.0.1";
/// Between looks at nodes that are not ready.
const POLL: Duration = Duration::from_millis(50);

/// How a node's process is started and known to work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments; [`CONFIG_ARGUMENT`] stands for the path of the node's settings.
    pub arguments: Vec<String>,
    /// Added to its environment, names and values; [`CONFIG_ARGUMENT`] stands for the same in values.
    #[serde(default)]
    pub environment: Vec<(String, String)>,
    /// Where a node says over HTTP that it is ready, such as `/readyz`; `None`: as soon as it runs.
    pub ready_path: Option<String>,
}

impl Launch {
    /// `clearspan serve`.
    #[must_use]
    pub fn serve(program: PathBuf) -> Self {
        Self {
            program,
            arguments: ["serve", "--config", CONFIG_ARGUMENT]
                .map(str::to_owned)
                .into(),
            environment: Vec::new(),
            ready_path: Some("/readyz".to_owned()),
        }
    }
}

/// What a lab shall be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabOptions {
    /// Sites and lines.
    pub topology: Topology,
    /// How many shards.
    pub shards: u16,
    /// How nodes are started.
    pub launch: Launch,
    /// Settings added to every `node.toml`; no `[peer_address]`, which is the lab's.
    pub extra_settings: String,
}

/// Why something could not be done in a lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The cluster's files cannot be written.
    #[error("write the cluster's files")]
    Init(#[from] InitError),
    /// The cluster that is there cannot be read.
    #[error("read the cluster's definition")]
    Definition(#[from] ConfigError),
    /// The operator's certificate cannot be made.
    #[error("issue the operator's certificate")]
    Pki(#[from] PkiError),
    /// A file operation failed.
    #[error("{step} {path}")]
    File {
        /// Which step.
        step: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The relay cannot do it.
    #[error("the relay")]
    Relay(#[source] io::Error),
    /// There are not enough free ports in a row.
    #[error("find free ports on {HOST}")]
    Ports(#[source] io::Error),
    /// A node's process cannot be started.
    #[error("start {program} for node {node}")]
    Start {
        /// Which node.
        node: String,
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A node's process cannot be killed, paused or resumed.
    #[error("signal node {node}")]
    Signal {
        /// Which node.
        node: String,
        /// Why.
        source: io::Error,
    },
    /// There is no such node or site.
    #[error("there is no node or site {name:?}; there are {known}")]
    NoTarget {
        /// What was given.
        name: String,
        /// What there is.
        known: String,
    },
    /// The name of a node is that of a site as well.
    #[error("{0:?} is a node and a site: say node:{0} or site:{0}")]
    Ambiguous(String),
    /// There is no such pair of sites.
    #[error("there is no line from site {from:?} to site {to:?}; there are sites {known}")]
    NoLine {
        /// From.
        from: String,
        /// To.
        to: String,
        /// What there is.
        known: String,
    },
    /// Nodes are not ready in time.
    #[error("not ready within {seconds} s: {why}; what they say is in {logs}")]
    NotReady {
        /// The limit.
        seconds: u64,
        /// Which nodes, and why.
        why: String,
        /// Where to look.
        logs: PathBuf,
    },
}

/// Which ways between two sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ways {
    /// There and back.
    Both,
    /// From the first to the second only.
    There,
}

/// How a node's process stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state", content = "why")]
pub enum NodeState {
    /// It runs and says that it is ready.
    Ready,
    /// It runs and says why it is not ready, or does not answer.
    NotReady(String),
    /// It is stopped and can be resumed.
    Paused,
    /// It was killed, and can be restarted.
    Killed,
    /// It ended by itself; its log says why.
    Ended(String),
}

/// A node of the lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    /// Its name.
    pub name: String,
    /// Its site.
    pub site: String,
    /// Whether it votes only.
    pub witness: bool,
    /// Its process, while there is one.
    pub pid: Option<u32>,
    /// How it stands.
    #[serde(flatten)]
    pub state: NodeState,
    /// Where participants and operators reach it.
    pub client_address: String,
    /// Where metrics and the console are.
    pub http_address: Option<String>,
    /// Its settings.
    pub config: PathBuf,
    /// What it says.
    pub log: PathBuf,
}

/// A line of the lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineReport {
    /// From this site.
    pub from: String,
    /// To this site.
    pub to: String,
    /// How it stands.
    #[serde(flatten)]
    pub line: LineStatus,
}

/// What an operator shows to the cluster, and by what it knows the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operator {
    /// The operator's certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The certificate of the nodes' authority.
    pub ca: PathBuf,
}

/// How a lab stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabReport {
    /// The lab's directory.
    pub dir: PathBuf,
    /// How an operator reaches the cluster.
    pub operator: Operator,
    /// The nodes.
    pub nodes: Vec<NodeReport>,
    /// The lines between sites.
    pub lines: Vec<LineReport>,
}

/// A running cluster. Its processes end when it is dropped.
#[derive(Debug)]
pub struct Lab {
    dir: PathBuf,
    launch: Launch,
    definition: Definition,
    operator: Operator,
    relay: Relay,
    /// By places of the sites, from and to.
    lines: BTreeMap<(u16, u16), LineId>,
    nodes: Vec<NodeProcess>,
    /// Keeps other labs off this one's ports.
    _ports: TcpListener,
}

#[derive(Debug)]
struct NodeProcess {
    node: Node,
    config: PathBuf,
    log: PathBuf,
    pid_file: PathBuf,
    running: Option<(Child, Process)>,
    paused: bool,
    ended: NodeState,
}

impl Lab {
    /// Starts the cluster under `dir`, which is written if there is none yet, its relay and its nodes. Whether nodes are
    /// ready is for [`Self::wait_until_ready`].
    ///
    /// # Errors
    /// [`LabError`]; nothing runs then, but files may lie in `dir`.
    pub fn up(dir: &Path, options: &LabOptions) -> Result<Self, LabError> {
        create_dir(dir)?;
        // Nodes run elsewhere and must find their files.
        let dir = fs::canonicalize(dir).map_err(file("find", dir))?;
        for part in [LOGS_DIR, RUN_DIR] {
            create_dir(&dir.join(part))?;
        }
        let cluster = dir.join(CLUSTER_DIR);
        let (definition, guard) = if cluster.join(DEFINITION_FILE).exists() {
            found_again(&cluster)?
        } else {
            new_cluster(&cluster, options)?
        };
        let operator = make_operator(&cluster, &definition)?;
        let relay = Relay::start().map_err(LabError::Relay)?;
        let lines = make_lines(&relay, &options.topology, &definition)?;
        let configs = node_files(&cluster, &definition);
        let mut nodes = Vec::new();
        for node in &definition.nodes {
            let config = configs.get(&node.name).cloned().unwrap_or_default();
            let addresses = peer_addresses(&relay, &lines, &definition, node)?;
            replace_tail(&config, &addresses)?;
            nodes.push(NodeProcess {
                node: node.clone(),
                config,
                log: dir.join(LOGS_DIR).join(format!("{}.log", node.name)),
                pid_file: dir.join(RUN_DIR).join(format!("{}.pid", node.name)),
                running: None,
                paused: false,
                ended: NodeState::Killed,
            });
        }
        let mut lab = Self {
            dir,
            launch: options.launch.clone(),
            definition,
            operator,
            relay,
            lines,
            nodes,
            _ports: guard,
        };
        for node in &mut lab.nodes {
            node.start(&lab.launch)?;
        }
        Ok(lab)
    }

    /// The lab's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// How an operator reaches the cluster.
    #[must_use]
    pub fn operator(&self) -> &Operator {
        &self.operator
    }

    /// The cluster's definition.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Waits until every node that runs says that it is ready.
    ///
    /// # Errors
    /// [`LabError::NotReady`] says which are not, and why; a node that ended by itself is not waited for.
    pub fn wait_until_ready(&mut self, limit: Duration) -> Result<(), LabError> {
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let start_ns = now_ns();
        loop {
            let report = self.report()?;
            let Some((why, hopeless)) = report.not_ready() else {
                return Ok(());
            };
            if hopeless || now_ns().saturating_sub(start_ns) > limit_ns {
                return Err(LabError::NotReady {
                    seconds: limit.as_secs(),
                    why,
                    logs: self.dir.join(LOGS_DIR),
                });
            }
            std::thread::sleep(POLL);
        }
    }

    /// Kills a node or all nodes of a site at once.
    ///
    /// # Errors
    /// [`LabError`] when there is no such node or site, or the system refuses.
    pub fn kill(&mut self, target: &str) -> Result<(), LabError> {
        let places = self.target(target)?;
        // First all signals, so that a site's nodes go together.
        self.act(&places, Act::Kill)?;
        for node in self.nodes_at(&places) {
            node.reap(NodeState::Killed)?;
        }
        Ok(())
    }

    /// Pauses a node or all nodes of a site.
    ///
    /// # Errors
    /// As [`Self::kill`].
    pub fn pause(&mut self, target: &str) -> Result<(), LabError> {
        let places = self.target(target)?;
        self.act(&places, Act::Pause)?;
        for node in self.nodes_at(&places) {
            node.paused = node.running.is_some();
        }
        Ok(())
    }

    /// Lets a paused node or site go on.
    ///
    /// # Errors
    /// As [`Self::kill`].
    pub fn resume(&mut self, target: &str) -> Result<(), LabError> {
        let places = self.target(target)?;
        self.act(&places, Act::Resume)?;
        for node in self.nodes_at(&places) {
            node.paused = false;
        }
        Ok(())
    }

    /// Starts a node or all nodes of a site again, on their data; those that run are killed before.
    ///
    /// # Errors
    /// As [`Self::kill`], or when a process does not start.
    pub fn restart(&mut self, target: &str) -> Result<(), LabError> {
        self.kill(target)?;
        let places = self.target(target)?;
        let launch = self.launch.clone();
        for node in self.nodes_at(&places) {
            node.start(&launch)?;
        }
        Ok(())
    }

    /// Cuts the lines between two sites.
    ///
    /// # Errors
    /// [`LabError`] when there are no such sites.
    pub fn cut(&self, from: &str, to: &str, ways: Ways) -> Result<(), LabError> {
        let lines = self.lines_between(from, to, ways)?;
        self.relay.cut(&lines).map_err(LabError::Relay)
    }

    /// Heals the lines between two sites.
    ///
    /// # Errors
    /// [`LabError`] when there are no such sites.
    pub fn heal(&self, from: &str, to: &str, ways: Ways) -> Result<(), LabError> {
        let lines = self.lines_between(from, to, ways)?;
        self.relay.heal(&lines).map_err(LabError::Relay)
    }

    /// Cuts all lines of a site, both ways.
    ///
    /// # Errors
    /// [`LabError`] when there is no such site.
    pub fn isolate(&self, site: &str) -> Result<(), LabError> {
        let at = self
            .site(site)
            .ok_or_else(|| self.no_line(site, "others"))?;
        let lines = self
            .lines
            .iter()
            .filter(|((from, to), _)| *from == at || *to == at);
        let lines: Vec<LineId> = lines.map(|(_, &line)| line).collect();
        self.relay.cut(&lines).map_err(LabError::Relay)
    }

    /// Heals all lines.
    ///
    /// # Errors
    /// [`LabError`] when the relay has ended.
    pub fn heal_all(&self) -> Result<(), LabError> {
        let lines: Vec<LineId> = self.lines.values().copied().collect();
        self.relay.heal(&lines).map_err(LabError::Relay)
    }

    /// Gives lines between two sites another shape.
    ///
    /// # Errors
    /// [`LabError`] when there are no such sites.
    pub fn shape(&self, from: &str, to: &str, ways: Ways, shape: Shape) -> Result<(), LabError> {
        for line in self.lines_between(from, to, ways)? {
            self.relay.shape(line, shape).map_err(LabError::Relay)?;
        }
        Ok(())
    }

    /// How everything stands; nodes that run are asked.
    ///
    /// # Errors
    /// [`LabError`] when the relay has ended or a process cannot be looked at.
    pub fn report(&mut self) -> Result<LabReport, LabError> {
        let status = self.relay.status().map_err(LabError::Relay)?;
        let name = |at: u16| {
            self.definition
                .sites
                .get(usize::from(at))
                .cloned()
                .unwrap_or_default()
        };
        // Lines are made in the order of their keys.
        let lines = self
            .lines
            .keys()
            .zip(status)
            .map(|(&(from, to), line)| LineReport {
                from: name(from),
                to: name(to),
                line,
            });
        let lines = lines.collect();
        let ready_path = self.launch.ready_path.clone();
        let mut nodes = Vec::new();
        for node in &mut self.nodes {
            let state = node.state(ready_path.as_deref())?;
            nodes.push(NodeReport {
                name: node.node.name.clone(),
                site: self
                    .definition
                    .sites
                    .get(usize::from(node.node.site))
                    .cloned()
                    .unwrap_or_default(),
                witness: node.node.kind == NodeKind::Witness,
                pid: node.running.as_ref().map(|(child, _)| child.id()),
                state,
                client_address: node.node.client_address.clone(),
                http_address: node.node.http_address.clone(),
                config: node.config.clone(),
                log: node.log.clone(),
            });
        }
        Ok(LabReport {
            dir: self.dir.clone(),
            operator: self.operator.clone(),
            nodes,
            lines,
        })
    }

    /// Ends all processes; files stay.
    ///
    /// # Errors
    /// [`LabError::Signal`] when one cannot be ended.
    pub fn stop(&mut self) -> Result<(), LabError> {
        let all: Vec<usize> = (0..self.nodes.len()).collect();
        self.act(&all, Act::Kill)?;
        for node in &mut self.nodes {
            node.reap(NodeState::Killed)?;
        }
        Ok(())
    }

    fn act(&self, places: &[usize], act: Act) -> Result<(), LabError> {
        for node in places.iter().filter_map(|&at| self.nodes.get(at)) {
            if let Some((_, process)) = &node.running {
                process
                    .act(act)
                    .map_err(|source| node.signal_fault(source))?;
            }
        }
        Ok(())
    }

    fn nodes_at(&mut self, places: &[usize]) -> impl Iterator<Item = &mut NodeProcess> {
        let nodes = self.nodes.iter_mut().enumerate();
        nodes
            .filter(|(at, _)| places.contains(at))
            .map(|(_, node)| node)
    }

    /// Places of the nodes that a name means.
    fn target(&self, name: &str) -> Result<Vec<usize>, LabError> {
        let (kind, bare) = match name.split_once(':') {
            Some((kind @ ("node" | "site"), bare)) => (Some(kind), bare),
            _ => (None, name),
        };
        let which = |wanted: &dyn Fn(&Node) -> bool| -> Vec<usize> {
            let nodes = self.nodes.iter().enumerate();
            nodes
                .filter(|(_, node)| wanted(&node.node))
                .map(|(at, _)| at)
                .collect()
        };
        let node = which(&|node| node.name == bare);
        let site = match self.site(bare) {
            Some(at) => which(&|node| node.site == at),
            None => Vec::new(),
        };
        match (kind, node.is_empty(), site.is_empty()) {
            (None, false, false) => Err(LabError::Ambiguous(bare.to_owned())),
            (None | Some("node"), false, _) => Ok(node),
            (None | Some("site"), _, false) => Ok(site),
            _ => {
                let nodes = self.nodes.iter().map(|node| node.node.name.as_str());
                let sites = self.definition.sites.iter().map(String::as_str);
                let known: Vec<&str> = sites.chain(nodes).collect();
                Err(LabError::NoTarget {
                    name: name.to_owned(),
                    known: known.join(", "),
                })
            }
        }
    }

    fn site(&self, name: &str) -> Option<u16> {
        let place = self.definition.sites.iter().position(|site| site == name)?;
        u16::try_from(place).ok()
    }

    fn lines_between(&self, from: &str, to: &str, ways: Ways) -> Result<Vec<LineId>, LabError> {
        let found = self.site(from).zip(self.site(to)).and_then(|(from, to)| {
            let (there, back) = (self.lines.get(&(from, to))?, self.lines.get(&(to, from))?);
            Some(match ways {
                Ways::Both => vec![*there, *back],
                Ways::There => vec![*there],
            })
        });
        found.ok_or_else(|| self.no_line(from, to))
    }

    fn no_line(&self, from: &str, to: &str) -> LabError {
        LabError::NoLine {
            from: from.to_owned(),
            to: to.to_owned(),
            known: self.definition.sites.join(", "),
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // What cannot be ended here is left to its pid file.
        let _ = self.stop();
    }
}

impl LabReport {
    /// Which nodes are not ready and why, and whether there is no hope: `None` when all that run are.
    #[must_use]
    pub fn not_ready(&self) -> Option<(String, bool)> {
        let mut why = Vec::new();
        let mut hopeless = false;
        for node in &self.nodes {
            match &node.state {
                NodeState::Ready | NodeState::Paused | NodeState::Killed => {}
                NodeState::NotReady(reason) => why.push(format!("{}: {reason}", node.name)),
                NodeState::Ended(status) => {
                    hopeless = true;
                    why.push(format!("{} ended: {status}", node.name));
                }
            }
        }
        (!why.is_empty()).then(|| (why.join("; "), hopeless))
    }
}

impl NodeProcess {
    fn start(&mut self, launch: &Launch) -> Result<(), LabError> {
        let fault = |source| LabError::Start {
            node: self.node.name.clone(),
            program: launch.program.clone(),
            source,
        };
        let log = File::options()
            .create(true)
            .append(true)
            .open(&self.log)
            .map_err(file("open", &self.log))?;
        let config = self.config.to_string_lossy();
        let arguments = launch
            .arguments
            .iter()
            .map(|part| part.replace(CONFIG_ARGUMENT, &config));
        let environment = launch
            .environment
            .iter()
            .map(|(name, value)| (name, value.replace(CONFIG_ARGUMENT, &config)));
        let mut child = Command::new(&launch.program)
            .args(arguments)
            .envs(environment)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(fault)?)
            .stderr(log)
            .spawn()
            .map_err(fault)?;
        // Until it is waited for, the number is the child's, even if it has ended already.
        let written = Process::find(child.id())
            .and_then(|process| process.write(&self.pid_file).map(|()| process));
        match written {
            Ok(process) => {
                self.running = Some((child, process));
                self.paused = false;
                Ok(())
            }
            Err(source) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(fault(source))
            }
        }
    }

    /// Waits for the end of a process that was killed.
    fn reap(&mut self, ended: NodeState) -> Result<(), LabError> {
        if let Some((child, _)) = &mut self.running {
            child.wait().map_err(|source| LabError::Signal {
                node: self.node.name.clone(),
                source,
            })?;
            self.gone(ended);
        }
        Ok(())
    }

    fn gone(&mut self, ended: NodeState) {
        self.running = None;
        self.paused = false;
        self.ended = ended;
        // A file that stays names a process that is gone, which is known by its beginning.
        let _ = fs::remove_file(&self.pid_file);
    }

    fn state(&mut self, ready_path: Option<&str>) -> Result<NodeState, LabError> {
        let Some((child, _)) = &mut self.running else {
            return Ok(self.ended.clone());
        };
        let ended = child.try_wait().map_err(|source| LabError::Signal {
            node: self.node.name.clone(),
            source,
        })?;
        if let Some(status) = ended {
            self.gone(NodeState::Ended(status.to_string()));
            return Ok(self.ended.clone());
        }
        if self.paused {
            return Ok(NodeState::Paused);
        }
        Ok(match (ready_path, &self.node.http_address) {
            (Some(path), Some(address)) => match probe::get(address, path) {
                Ok((200, _)) => NodeState::Ready,
                Ok((_, says)) => NodeState::NotReady(says),
                Err(fault) => NodeState::NotReady(fault.to_string()),
            },
            _ => NodeState::Ready,
        })
    }

    fn signal_fault(&self, source: io::Error) -> LabError {
        LabError::Signal {
            node: self.node.name.clone(),
            source,
        }
    }
}

/// Writes a cluster whose addresses are free.
fn new_cluster(
    cluster: &Path,
    options: &LabOptions,
) -> Result<(Definition, TcpListener), LabError> {
    let specs = options.topology.site_specs();
    let counts = specs
        .iter()
        .map(|site| usize::from(site.data_nodes) + usize::from(site.witnesses));
    let ports = crate::ports::free(counts.sum()).map_err(LabError::Ports)?;
    let mut new = InitOptions::local(specs, options.shards, Clock::System.now());
    new.host = HOST.to_owned();
    let pairs = options.topology.pairs.iter();
    new.rtt_ns = pairs.map(|pair| pair.rtt_ns).max().unwrap_or(0);
    (new.peer_port, new.client_port, new.http_port) = (ports.peer, ports.client, Some(ports.http));
    new.extra_settings.clone_from(&options.extra_settings);
    Ok((init(cluster, &new)?, ports.guard))
}

/// A cluster that was there before, at the addresses that it had.
fn found_again(cluster: &Path) -> Result<(Definition, TcpListener), LabError> {
    let definition = Definition::read(&cluster.join(DEFINITION_FILE))?;
    let first = definition.nodes.iter().filter_map(|node| {
        let (_, port) = node.peer_address.rsplit_once(':')?;
        port.parse().ok()
    });
    let first = first.min().unwrap_or(0);
    let guard = crate::ports::again(first).map_err(LabError::Ports)?;
    Ok((definition, guard))
}

/// Every lab has an operator, where `clearspan init` has one too.
fn make_operator(cluster: &Path, definition: &Definition) -> Result<Operator, LabError> {
    let pki = cluster.join(PKI_DIR);
    let authority = Authority::open(&pki, AuthorityKind::Clients, definition.cluster)?;
    let clients = cluster.join("clients");
    create_dir(&clients)?;
    let operator = Operator {
        certificate: clients.join("operator-admin.crt"),
        key: clients.join("operator-admin.key"),
        ca: AuthorityKind::Nodes.certificate_path(&pki),
    };
    if !operator.certificate.exists() || !operator.key.exists() {
        authority
            .issue_operator("admin", Clock::System.now())?
            .write(&operator.certificate, &operator.key)?;
    }
    Ok(operator)
}

fn make_lines(
    relay: &Relay,
    topology: &Topology,
    definition: &Definition,
) -> Result<BTreeMap<(u16, u16), LineId>, LabError> {
    let mut shapes = BTreeMap::new();
    let site = |name: &String| {
        let place = definition.sites.iter().position(|site| site == name)?;
        u16::try_from(place).ok()
    };
    for pair in &topology.pairs {
        let [a, b] = &pair.sites;
        if let (Some(a), Some(b)) = (site(a), site(b)) {
            shapes.insert((a, b), pair.shape());
            shapes.insert((b, a), pair.shape());
        }
    }
    shapes
        .into_iter()
        .map(|(key, shape)| Ok((key, relay.line(shape).map_err(LabError::Relay)?)))
        .collect()
}

/// The part of a node's settings that has it dial nodes of other sites through the relay.
fn peer_addresses(
    relay: &Relay,
    lines: &BTreeMap<(u16, u16), LineId>,
    definition: &Definition,
    node: &Node,
) -> Result<String, LabError> {
    let mut text = format!("{RELAY_PART}[peer_address]\n");
    for other in &definition.nodes {
        let (Some(&there), Some(&back)) = (
            lines.get(&(node.site, other.site)),
            lines.get(&(other.site, node.site)),
        ) else {
            continue;
        };
        let target: SocketAddr = other
            .peer_address
            .parse()
            .map_err(|fault| LabError::Relay(io::Error::other(fault)))?;
        let address = relay.route(target, there, back).map_err(LabError::Relay)?;
        writeln!(text, "{} = \"{address}\"", other.name).expect("a text takes everything");
    }
    Ok(text)
}

/// Begins the end of a node's settings, which is the lab's.
const RELAY_PART: &str = "\n# Through the lab's relay.\n";

/// Puts this in the place of the end that an earlier life of the lab wrote: a relay's addresses are new each time.
fn replace_tail(path: &Path, text: &str) -> Result<(), LabError> {
    let all = fs::read_to_string(path).map_err(file("read", path))?;
    let own = all.split(RELAY_PART).next().unwrap_or_default();
    fs::write(path, format!("{own}{text}")).map_err(file("write", path))
}

fn create_dir(path: &Path) -> Result<(), LabError> {
    fs::create_dir_all(path).map_err(file("create", path))
}

fn file(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LabError + use<> {
    let path = path.to_owned();
    move |source| LabError::File { step, path, source }
}
