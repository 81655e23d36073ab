//! A lab with its participants founded and a business day open.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clearspan_lab::lab::{CLUSTER_DIR, Lab, LabOptions, Launch, Ways};
use clearspan_lab::relay::Shape;
use clearspan_lab::topology::{Distance, Quality, Topology};
use clearspan_ledger::{Bic, ShardId};
use clearspan_node::api::NodeStatus;
use clearspan_node::client::{Ask, Client, Retry, client_tls};
use clearspan_node::clock::Clock;
use clearspan_node::cluster::definition::NodeKind;
use clearspan_node::cluster::init::PKI_DIR;
use clearspan_node::cluster::pki::{Authority, AuthorityKind};
use rustls::ClientConfig;
use serde_json::Value;

use super::{ClusterError, Options, io, now};

/// The business day.
pub(super) const DATE: &str = "2026-11-30";
/// Until a cluster is ready, or has done what it was asked.
const PATIENCE: Duration = Duration::from_secs(90);
const LOOK: Duration = Duration::from_millis(50);
/// A node that was away has everything again by then.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(120);
const LOOK_CLOSELY: Duration = Duration::from_millis(20);
/// After lines were given another length: what was under way has ended.
const SETTLE: Duration = Duration::from_millis(300);

/// How far sites are from one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Where {
    /// For people.
    pub name: &'static str,
    /// Round trips between first and second, first and third, second and third site.
    pub rtt_us: [u64; 3],
}

impl Where {
    /// All sites so many km of fibre apart.
    pub(crate) const fn km(name: &'static str, km: u64) -> Self {
        Self {
            name,
            rtt_us: [km * 10; 3],
        }
    }

    /// No distance, through the relay as all others.
    pub const NEAR: Self = Self::km("0 km", 0);
    /// Two sites of a metropolitan area.
    pub const METRO: Self = Self::km("70 km", 70);
    /// Three regions.
    pub const REGIONS: Self = Self {
        name: "tokyo-seoul-singapore",
        rtt_us: [32_000, 69_000, 97_000],
    };
    /// All that are measured, the one that others are held against first.
    pub const ALL: [Self; 5] = [
        Self::NEAR,
        Self::km("20 km", 20),
        Self::km("50 km", 50),
        Self::METRO,
        Self::REGIONS,
    ];
}

/// One that sends.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Its code.
    pub bic: Bic,
    /// Where its messages are decided.
    pub home: ShardId,
    pub(crate) tls: Arc<ClientConfig>,
    /// Where it sends to, best first.
    pub(crate) nodes: Vec<String>,
}

/// A running cluster with participants.
#[derive(Debug)]
pub struct Stage {
    /// The cluster.
    pub lab: Lab,
    /// The participants.
    pub senders: Vec<Sender>,
    /// How many payments were made so far, so that none is made twice.
    pub(super) drawn: u64,
    // Removed last.
    _dir: tempfile::TempDir,
}

impl Stage {
    /// Brings a cluster up: `sites` as for `clearspan lab up`, no distance yet. `settings` are added to every node's.
    ///
    /// # Errors
    /// [`ClusterError`] when it does not come up or cannot be founded.
    pub fn up(options: &Options, sites: &str, settings: &str) -> Result<Self, ClusterError> {
        let dir = tempfile::tempdir_in(&options.dir).map_err(io("make a directory"))?;
        let distance = Distance::Km("0".to_owned());
        let topology = Topology::parse(Some(sites), Some(&distance), Quality::default())?;
        let mut lab = Lab::up(
            dir.path(),
            &LabOptions {
                topology,
                shards: options.shards,
                launch: Launch::serve(options.program.clone()),
                extra_settings: settings.to_owned(),
            },
        )?;
        lab.wait_until_ready(PATIENCE)?;
        let mut stage = Self {
            lab,
            senders: Vec::new(),
            drawn: 0,
            _dir: dir,
        };
        stage.found(options)?;
        stage.wait_for_leaders()?;
        stage.issue(options)?;
        Ok(stage)
    }

    fn found(&mut self, options: &Options) -> Result<(), ClusterError> {
        let mut text = format!("business_date = \"{DATE}\"\nshards = {}\n", options.shards);
        for position in 0..options.participants {
            let (bic, shard) = (code(position), position % options.shards);
            write!(
                text,
                "[[participant]]\nbic = \"{bic}\"\nname = \"Participant {position}\"\nshard = {shard}\n\
                 [[participant.account]]\ncurrency = \"EUR\"\nopening_balance = \"0.00\"\n\
                 credit_line = \"1000000000000.00\"\n"
            )
            .map_err(|_| ClusterError::Unexpected("a text takes no more".to_owned()))?;
        }
        let mut operator = self.operator()?;
        let _: Value = operator.json(&Ask {
            content_type: "application/toml",
            ..Ask::post("/v1/admin/participants", text, Retry::Always)
        })?;
        let day = format!("{{\"date\":\"{DATE}\"}}");
        let _: Value = operator.json(&Ask::post("/v1/admin/day/open", day, Retry::Always))?;
        Ok(())
    }

    /// A client of all nodes with the operator's certificate.
    ///
    /// # Errors
    /// When its certificate cannot be used.
    pub fn operator(&self) -> Result<Client, ClusterError> {
        let nodes: Vec<String> = self.addresses().into_values().collect();
        self.operator_of(&nodes)
    }

    fn operator_of(&self, nodes: &[String]) -> Result<Client, ClusterError> {
        let operator = self.lab.operator();
        Ok(Client::new(
            nodes,
            &operator.certificate,
            &operator.key,
            &operator.ca,
            PATIENCE,
        )?)
    }

    /// Client addresses of the nodes that keep state.
    pub(crate) fn addresses(&self) -> BTreeMap<String, String> {
        let nodes = self.lab.definition().nodes.iter();
        nodes
            .filter(|node| node.kind == NodeKind::Data)
            .map(|node| (node.name.clone(), node.client_address.clone()))
            .collect()
    }

    /// How one node says that it and the others stand.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn status(&self, node: &str) -> Result<NodeStatus, ClusterError> {
        let address = self.addresses().remove(node).unwrap_or_default();
        let mut client = self.operator_of(&[address])?;
        Ok(client.json(&Ask::get("/v1/status"))?)
    }

    /// How far each shard is committed, as one node knows.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn committed(&self, node: &str) -> Result<Vec<u64>, ClusterError> {
        let shards = self.status(node)?.shards;
        Ok(shards.iter().map(|shard| shard.committed_index).collect())
    }

    /// Waits until a node has applied as much of each shard.
    ///
    /// # Errors
    /// When that takes too long.
    pub fn wait_until_applied(&self, node: &str, wanted: &[u64]) -> Result<(), ClusterError> {
        let begun = now();
        loop {
            let there = self.status(node).is_ok_and(|status| {
                let mut pairs = status.shards.iter().zip(wanted);
                !status.shards.is_empty()
                    && pairs.all(|(shard, &index)| shard.applied_index >= index)
            });
            if there {
                return Ok(());
            }
            if begun.elapsed() > CAUGHT_UP_WITHIN {
                return Err(ClusterError::Unexpected(format!(
                    "{node} did not catch up within {} s",
                    CAUGHT_UP_WITHIN.as_secs()
                )));
            }
            std::thread::sleep(LOOK_CLOSELY);
        }
    }

    /// The node that should lead a shard while all is well.
    pub(crate) fn preferred(&self, shard: ShardId) -> Option<String> {
        let definition = self.lab.definition();
        let me = definition.nodes.first()?.member;
        let first = definition.group(me).preference(shard).first().copied()?;
        Some(definition.member(first)?.name.clone())
    }

    /// Waits until every shard is led by the node that should lead it.
    ///
    /// # Errors
    /// When that takes too long.
    pub fn wait_for_leaders(&self) -> Result<(), ClusterError> {
        let begun = now();
        let node = self.lab.definition().nodes.first();
        let node = node.map(|node| node.name.clone()).unwrap_or_default();
        loop {
            let status = self.status(&node)?;
            let home = |shard: u16| self.preferred(ShardId::new(shard));
            if status
                .shards
                .iter()
                .all(|shard| shard.leader == home(shard.shard))
            {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                return Err(ClusterError::Unexpected(
                    "the leads did not come to where they belong".to_owned(),
                ));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn issue(&mut self, options: &Options) -> Result<(), ClusterError> {
        let cluster = self.lab.dir().join(CLUSTER_DIR);
        let authority = Authority::open(
            &cluster.join(PKI_DIR),
            AuthorityKind::Clients,
            self.lab.definition().cluster,
        )?;
        let addresses = self.addresses();
        for position in 0..options.participants {
            let name = code(position);
            let bic = Bic::parse(name.as_bytes())
                .ok_or_else(|| ClusterError::Unexpected(format!("{name} is no BIC")))?;
            let file = |end: &str| cluster.join("clients").join(format!("{name}.{end}"));
            let (certificate, key) = (file("crt"), file("key"));
            authority
                .issue_participant(bic, Clock::System.now())?
                .write(&certificate, &key)?;
            let home = ShardId::new(position % options.shards);
            let mut nodes: Vec<String> = addresses.values().cloned().collect();
            let count = nodes.len().max(1);
            if options.spread {
                nodes.rotate_left(usize::from(position / options.shards) % count);
            } else if let Some(leader) = self.preferred(home).and_then(|name| addresses.get(&name))
            {
                nodes.sort_by_key(|address| address != leader);
            }
            let tls = client_tls(&certificate, &key, Path::new(&self.lab.operator().ca))?;
            self.senders.push(Sender {
                bic,
                home,
                tls,
                nodes,
            });
        }
        Ok(())
    }

    /// Gives the lines between three sites another length.
    ///
    /// # Errors
    /// When there are no such lines.
    pub fn put(&self, place: Where) -> Result<(), ClusterError> {
        let sites = self.lab.definition().sites.clone();
        let pairs = [(0, 1), (0, 2), (1, 2)];
        for ((a, b), rtt_us) in pairs.into_iter().zip(place.rtt_us) {
            if let (Some(a), Some(b)) = (sites.get(a), sites.get(b)) {
                let shape = Shape {
                    delay_ns: rtt_us * 1000 / 2,
                    ..Shape::default()
                };
                self.lab.shape(a, b, Ways::Both, shape)?;
            }
        }
        std::thread::sleep(SETTLE);
        self.wait_for_leaders()
    }

    /// Bytes that all lines have carried.
    ///
    /// # Errors
    /// When the relay has ended.
    pub fn carried_bytes(&mut self) -> Result<u64, ClusterError> {
        let lines = self.lab.report()?.lines;
        Ok(lines.iter().map(|line| line.line.carried_bytes).sum())
    }
}

/// Code of the participant at a place: its first four letters are the place in base 26.
fn code(position: u16) -> String {
    let mut rest = position;
    let mut letters = [b'A'; 4];
    for letter in &mut letters {
        *letter += u8::try_from(rest % 26).unwrap_or(0);
        rest /= 26;
    }
    format!("{}DEFFXXX", String::from_utf8_lossy(&letters))
}
