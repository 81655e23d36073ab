//! How long participants wait when a site is lost: all its nodes are killed at once, or all its lines to the other sites go
//! silent, again and again, and the time is taken until an urgent payment of a participant of each shard is acknowledged that
//! was sent after the loss.
//!
//! Participants know all data nodes and start at one after another, so that half of them find the node gone that they ask
//! first, as their own systems would.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clearspan_ledger::{Bic, ShardId};
use clearspan_node::client::{Ask, Client, ClientError, Retry};
use clearspan_node::clock::Clock;
use clearspan_node::cluster::definition::NodeKind;
use clearspan_node::cluster::init::PKI_DIR;
use clearspan_node::cluster::pki::{Authority, AuthorityKind, PkiError};
use serde::Serialize;
use serde_json::{Value, json};

use crate::clock::{SECOND_NS, now_ns};
use crate::lab::{CLUSTER_DIR, Lab, LabError, LabOptions};

/// Promise P8 for sites within 100 km.
pub const NEAR_AIM_NS: u64 = 2 * SECOND_NS;
/// Promise P8 over regions.
pub const FAR_AIM_NS: u64 = 5 * SECOND_NS;
/// A round trip of 100 km: above this sites are regions.
pub const NEAR_RTT_MAX_NS: u64 = 100 * crate::topology::RTT_NS_PER_KM;

/// Whatever is waited for here takes seconds; a loaded machine may need longer.
const LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);
const BUSINESS_DATE: &str = "2026-11-30";

/// How a site is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Its processes end; the system breaks their connections.
    Kill,
    /// Its lines to the other sites drop everything without a word. Participants still reach its nodes.
    Cut,
}

/// What is measured.
#[derive(Clone, Debug)]
pub struct FailoverOptions {
    /// The lab; it is made for this and ended afterwards.
    pub lab: LabOptions,
    /// The site that is lost.
    pub site: String,
    /// How it is lost.
    pub by: By,
    /// How often.
    pub repeats: usize,
    /// Between the site's return and its next loss.
    pub pause: Duration,
}

/// One loss.
#[derive(Clone, Debug, Serialize)]
pub struct Loss {
    /// By shard: whether the lost site led it.
    pub led_there: Vec<bool>,
    /// By shard: from the loss to the acknowledgement of a payment that was sent after it, in nanoseconds.
    pub acknowledged_ns: Vec<u64>,
}

/// Why it could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum FailoverError {
    /// The lab.
    #[error("the lab")]
    Lab(#[from] LabError),
    /// Certificates.
    #[error("issue certificates")]
    Pki(#[from] PkiError),
    /// No answer.
    #[error("ask the cluster")]
    Client(#[from] ClientError),
    /// An answer that a working cluster does not give.
    #[error("{0}")]
    Unexpected(String),
    /// The site cannot be lost.
    #[error("site {0:?} has no data node: name one that has")]
    Site(String),
}

/// Brings a lab up under `dir`, loses the site again and again, and gives each loss to `show`.
///
/// # Errors
/// [`FailoverError`]; the lab's processes are ended, its files stay in `dir`.
pub fn measure(
    dir: &Path,
    options: &FailoverOptions,
    show: &mut dyn FnMut(&Loss),
) -> Result<(), FailoverError> {
    let mut lab = Lab::up(dir, &options.lab)?;
    let site = lab
        .definition()
        .sites
        .iter()
        .position(|site| *site == options.site);
    let site = site
        .and_then(|site| u16::try_from(site).ok())
        .ok_or_else(|| FailoverError::Site(options.site.clone()))?;
    let data: Vec<(u16, String)> = lab
        .definition()
        .nodes
        .iter()
        .filter(|node| node.kind == NodeKind::Data)
        .map(|node| (node.site, node.client_address.clone()))
        .collect();
    let addresses = |wanted: &dyn Fn(u16) -> bool| -> Vec<String> {
        let nodes = data.iter().filter(|(at, _)| wanted(*at));
        nodes.map(|(_, address)| address.clone()).collect()
    };
    let (all, left) = (addresses(&|_| true), addresses(&|at| at != site));
    if left.len() == all.len() || left.is_empty() {
        return Err(FailoverError::Site(options.site.clone()));
    }
    lab.wait_until_ready(LIMIT)?;
    let mut cluster = Cluster::found(&lab, &all, &left, options.lab.shards)?;
    for repeat in 0..options.repeats {
        if repeat > 0 {
            std::thread::sleep(options.pause);
        }
        cluster.wait_for_leaders(&lab)?;
        show(&cluster.lose(&mut lab, options, repeat)?);
        match options.by {
            By::Kill => lab.restart(&options.site)?,
            By::Cut => lab.heal_all()?,
        }
        lab.wait_until_ready(LIMIT)?;
    }
    lab.stop()?;
    Ok(())
}

struct Cluster {
    dir: PathBuf,
    nodes: Vec<String>,
    participants: Vec<Bic>,
    /// Asks the nodes that stay.
    operator: Client,
}

impl Cluster {
    fn found(
        lab: &Lab,
        nodes: &[String],
        left: &[String],
        shards: u16,
    ) -> Result<Self, FailoverError> {
        let dir = lab.dir().join(CLUSTER_DIR);
        let participants: Option<Vec<Bic>> = (0..shards).map(bic).collect();
        let participants = participants
            .ok_or_else(|| FailoverError::Unexpected(format!("{shards} shards are too many")))?;
        let authority = Authority::open(
            &dir.join(PKI_DIR),
            AuthorityKind::Clients,
            lab.definition().cluster,
        )?;
        for &bic in &participants {
            let [certificate, key] = files(&dir, bic);
            authority
                .issue_participant(bic, Clock::System.now())?
                .write(&certificate, &key)?;
        }
        let operator = lab.operator();
        let client = Client::new(
            left,
            &operator.certificate,
            &operator.key,
            &operator.ca,
            LIMIT,
        )?;
        let mut cluster = Self {
            dir,
            nodes: nodes.to_vec(),
            participants,
            operator: client,
        };
        let ask = Ask {
            content_type: "application/toml",
            ..Ask::post(
                "/v1/admin/participants",
                settings(&cluster.participants),
                Retry::Always,
            )
        };
        cluster.operator.json::<Value>(&ask)?;
        let date = json!({ "date": BUSINESS_DATE }).to_string();
        cluster
            .operator
            .json::<Value>(&Ask::post("/v1/admin/day/open", date, Retry::Always))?;
        Ok(cluster)
    }

    /// Waits until every shard is led where it should be, as seen by a node that stays.
    fn wait_for_leaders(&mut self, lab: &Lab) -> Result<(), FailoverError> {
        let definition = lab.definition();
        let Some(any) = definition.nodes.first() else {
            return Err(FailoverError::Unexpected("no nodes".to_owned()));
        };
        let group = definition.group(any.member);
        let wanted: Vec<Option<String>> = (0..definition.shards)
            .map(|shard| {
                let first = *group.preference(ShardId::new(shard)).first()?;
                Some(definition.member(first)?.name.clone())
            })
            .collect();
        let start_ns = now_ns();
        loop {
            let leaders = self.leaders()?;
            if leaders == wanted {
                return Ok(());
            }
            if now_ns().saturating_sub(start_ns) > LIMIT.as_secs() * SECOND_NS {
                return Err(FailoverError::Unexpected(format!(
                    "shards are led by {leaders:?}, should be by {wanted:?}"
                )));
            }
            std::thread::sleep(POLL);
        }
    }

    fn leaders(&mut self) -> Result<Vec<Option<String>>, FailoverError> {
        let status: Value = self.operator.json(&Ask::get("/v1/status"))?;
        let shards = status["shards"].as_array().into_iter().flatten();
        Ok(shards
            .map(|shard| shard["leader"].as_str().map(str::to_owned))
            .collect())
    }

    fn lose(
        &mut self,
        lab: &mut Lab,
        options: &FailoverOptions,
        repeat: usize,
    ) -> Result<Loss, FailoverError> {
        let site = options.site.as_str();
        let leaders = self.leaders()?;
        let definition = lab.definition();
        let led_there = leaders
            .iter()
            .map(|leader| {
                let node = leader.as_ref().and_then(|name| definition.node(name));
                node.and_then(|node| definition.sites.get(usize::from(node.site)))
                    .is_some_and(|of| of == site)
            })
            .collect();
        // Connections stand before the loss, as they do in service.
        let mut payers = Vec::new();
        for shard in 0..self.participants.len() {
            let mut payer = self.payer(shard, repeat)?;
            payer.pay("W", repeat, shard)?;
            payers.push(payer);
        }
        let start_ns = now_ns();
        match options.by {
            By::Kill => lab.kill(site)?,
            By::Cut => lab.isolate(site)?,
        }
        let waiting: Vec<_> = payers
            .into_iter()
            .enumerate()
            .map(|(shard, mut payer)| {
                std::thread::spawn(move || {
                    payer.pay("L", repeat, shard)?;
                    Ok::<u64, FailoverError>(now_ns().saturating_sub(start_ns))
                })
            })
            .collect();
        let mut acknowledged_ns = Vec::new();
        for payer in waiting {
            let paid = payer
                .join()
                .map_err(|_| FailoverError::Unexpected("a payer panicked".to_owned()))?;
            acknowledged_ns.push(paid?);
        }
        Ok(Loss {
            led_there,
            acknowledged_ns,
        })
    }

    /// The participant of a shard; it asks another node first than its neighbours and than last time.
    fn payer(&self, shard: usize, repeat: usize) -> Result<Payer, FailoverError> {
        let mut nodes = self.nodes.clone();
        let turn = (shard / 2 + shard + repeat) % nodes.len();
        nodes.rotate_left(turn);
        let [certificate, key] = files(&self.dir, self.participants[shard]);
        let ca = AuthorityKind::Nodes.certificate_path(&self.dir.join(PKI_DIR));
        let to = (shard + 1) % self.participants.len();
        Ok(Payer {
            client: Client::new(&nodes, &certificate, &key, &ca, LIMIT)?,
            from: self.participants[shard],
            to: self.participants[to],
        })
    }
}

struct Payer {
    client: Client,
    from: Bic,
    to: Bic,
}

impl Payer {
    /// Sends an urgent payment until it is acknowledged.
    fn pay(&mut self, when: &str, repeat: usize, shard: usize) -> Result<(), FailoverError> {
        let id = format!("{when}{repeat}-{shard}");
        let ask = Ask::message(urgent(&id, self.from, self.to).into());
        let answer: Value = self.client.json(&ask)?;
        match answer["status"].as_str() {
            Some("taken" | "repeat") => Ok(()),
            _ => Err(FailoverError::Unexpected(format!(
                "payment {id} was answered {answer}"
            ))),
        }
    }
}

/// A participant of each shard.
fn bic(shard: u16) -> Option<Bic> {
    let letter = |n: u16| char::from(b'A' + u8::try_from(n % 26).unwrap_or(0));
    Bic::parse(format!("LS{}{}DEFFXXX", letter(shard / 26), letter(shard)).as_bytes())
}

fn files(cluster: &Path, bic: Bic) -> [PathBuf; 2] {
    ["crt", "key"].map(|end| cluster.join("clients").join(format!("{bic}.{end}")))
}

fn settings(participants: &[Bic]) -> String {
    let mut text = format!(
        "business_date = \"{BUSINESS_DATE}\"\nshards = {}\n",
        participants.len()
    );
    for (shard, bic) in participants.iter().enumerate() {
        write!(
            text,
            "\n[[participant]]\nbic = \"{bic}\"\nname = \"Bank {shard}\"\nshard = {shard}\n[[participant.account]]\n\
             currency = \"EUR\"\nopening_balance = \"1000000.00\"\n"
        )
        .expect("a text takes everything");
    }
    text
}

/// One cent, urgent.
fn urgent(id: &str, from: Bic, to: Bic) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08\"><FIToFICstmrCdtTrf><GrpHdr>\
         <MsgId>{id}</MsgId><CreDtTm>{BUSINESS_DATE}T08:00:00.000Z</CreDtTm><NbOfTxs>1</NbOfTxs>\
         <SttlmInf><SttlmMtd>CLRG</SttlmMtd></SttlmInf>\
         <InstgAgt><FinInstnId><BICFI>{from}</BICFI></FinInstnId></InstgAgt></GrpHdr><CdtTrfTxInf>\
         <PmtId><EndToEndId>E-{id}</EndToEndId><TxId>T-{id}</TxId></PmtId>\
         <IntrBkSttlmAmt Ccy=\"EUR\">0.01</IntrBkSttlmAmt><IntrBkSttlmDt>{BUSINESS_DATE}</IntrBkSttlmDt>\
         <SttlmPrty>URGT</SttlmPrty><ChrgBr>SHAR</ChrgBr>\
         <InstdAgt><FinInstnId><BICFI>{to}</BICFI></FinInstnId></InstdAgt><Dbtr><Nm>Payer</Nm></Dbtr>\
         <DbtrAgt><FinInstnId><BICFI>{from}</BICFI></FinInstnId></DbtrAgt>\
         <CdtrAgt><FinInstnId><BICFI>{to}</BICFI></FinInstnId></CdtrAgt><Cdtr><Nm>Payee</Nm></Cdtr>\
         </CdtTrfTxInf></FIToFICstmrCdtTrf></Document>"
    )
}
