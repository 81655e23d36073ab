//! `clearspan lab play`: a business day's files through a lab, by the interface that participants and operators have.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use clearspan_lab::clock::{SECOND_NS, now_ns};
use clearspan_lab::control;
use clearspan_lab::lab::{CLUSTER_DIR, LabReport, NodeReport};
use clearspan_ledger::Bic;
use clearspan_node::api::Answer;
use clearspan_node::client::{Ask, Client, Retry};
use clearspan_node::cluster::definition::Definition;
use clearspan_node::cluster::init::DEFINITION_FILE;
use clearspan_node::inbox::{Section, sections, sender_of};
use clearspan_node::settings::Settings;
use serde::Serialize;
use serde_json::{Value, json};

use crate::init::{Kind, certificate_of};
use crate::output::{self, count, some};

/// Hand a business day in through several sites: participants, messages in their order, cycles, the day's end
#[derive(Debug, Args)]
#[command(after_help = "\
Files enter in the order of their names, one after another, each at the next site's nodes; a netting cycle follows each \
directory of the inbox, as with `clearspan day`. A node that does not answer is passed over: the same message goes to \
another one and is never taken twice. Interrupted, run it again: what is known gets its stored answer.

Example:
  clearspan lab play examples/day --sites A,B --per-second 5")]
pub(super) struct Play {
    /// A directory with participants.toml and inbox/
    day: PathBuf,
    /// Sites whose nodes messages enter by, in turn; all that hold data when not given
    #[arg(long, value_name = "SITE,…", value_delimiter = ',')]
    sites: Vec<String>,
    /// At most so many messages a second
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    per_second: Option<u64>,
    /// Leave the business day open
    #[arg(long)]
    keep_open: bool,
    /// For how many seconds a message is tried again before it is given up
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    patience: u64,
}

/// What came of the files of one directory of the inbox.
#[derive(Debug, Default, Serialize)]
struct Played {
    section: String,
    messages: u64,
    /// `taken`, `repeat`, `held`, `answered`, or what else a node said.
    by_status: BTreeMap<String, u64>,
    /// By the site whose nodes were asked first.
    by_site: BTreeMap<String, u64>,
    /// By the node that answered.
    by_node: BTreeMap<String, u64>,
    /// The cycle that followed.
    cycle: Value,
}

/// Between looks at a running cycle, and before an operator's act is tried again.
const LOOK: Duration = Duration::from_millis(100);

impl Play {
    pub(super) fn run(self, dir: &Path, json: bool) -> anyhow::Result<ExitCode> {
        let report = control::report(dir)?;
        let path = self.day.join("participants.toml");
        let settings = Settings::read(&path)?;
        let sites = self.sites(&report)?;
        let mut stage = Stage::new(
            &report,
            &settings,
            &sites,
            Duration::from_secs(self.patience),
        )?;
        let text = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        stage.found(text, &settings)?;
        let inbox = self.day.join("inbox");
        let parts = sections(&inbox).with_context(|| format!("list {}", inbox.display()))?;
        let mut all = Vec::new();
        let mut at = 0;
        for section in &parts {
            let played = self.section(&mut stage, section, &mut at)?;
            if !json {
                print(&played);
            }
            all.push(played);
        }
        if !self.keep_open {
            stage.act("day/cut-off", &json!({}))?;
            stage.act("day/close", &json!({}))?;
        }
        if json {
            output::json(&json!({
                "business_date": settings.business_date.to_string(),
                "sites": sites,
                "sections": all,
                "closed": !self.keep_open,
            }))?;
        } else if self.keep_open {
            println!("business day {} is open", settings.business_date);
        } else {
            println!("business day {} has ended", settings.business_date);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn sites(&self, report: &LabReport) -> anyhow::Result<Vec<String>> {
        let mut known: Vec<String> = data(report).map(|node| node.site.clone()).collect();
        known.dedup();
        if self.sites.is_empty() {
            return Ok(known);
        }
        if let Some(other) = self.sites.iter().find(|site| !known.contains(site)) {
            bail!(
                "no site {other:?} takes messages in; there are {}",
                known.join(", ")
            );
        }
        Ok(self.sites.clone())
    }

    fn section(
        &self,
        stage: &mut Stage<'_>,
        section: &Section,
        at: &mut usize,
    ) -> anyhow::Result<Played> {
        let mut played = Played {
            section: section.name.clone(),
            ..Played::default()
        };
        let interval_ns = self.per_second.map_or(0, |rate| SECOND_NS / rate);
        for file in &section.files {
            let start_ns = now_ns();
            let site = *at % stage.sites.len();
            *at += 1;
            let (node, status) = stage.hand_in(file, site)?;
            played.messages += 1;
            *played.by_status.entry(status).or_default() += 1;
            let site = stage.sites.get(site).cloned().unwrap_or_default();
            *played.by_site.entry(site).or_default() += 1;
            *played.by_node.entry(stage.name_of(&node)).or_default() += 1;
            let rest_ns = interval_ns.saturating_sub(now_ns().saturating_sub(start_ns));
            std::thread::sleep(Duration::from_nanos(rest_ns));
        }
        played.cycle = stage.cycle()?;
        Ok(played)
    }
}

fn data(report: &LabReport) -> impl Iterator<Item = &NodeReport> {
    report.nodes.iter().filter(|node| !node.witness)
}

fn print(played: &Played) {
    let counts = |counts: &BTreeMap<String, u64>| {
        let counts: Vec<String> = counts
            .iter()
            .map(|(name, number)| format!("{name} {}", count(*number)))
            .collect();
        counts.join(", ")
    };
    let messages = usize::try_from(played.messages).unwrap_or(usize::MAX);
    println!(
        "{}: {} ({})",
        played.section,
        some(messages, "message"),
        counts(&played.by_status)
    );
    println!(
        "  entered by {}; answered by {}",
        counts(&played.by_site),
        counts(&played.by_node)
    );
    let cycle = &played.cycle;
    println!(
        "  cycle {}: {}, {} payments in the set",
        cycle["cycle"],
        cycle["state"].as_str().unwrap_or("?"),
        cycle["in_set"]
    );
}

/// The lab's cluster, and who asks it.
struct Stage<'a> {
    report: &'a LabReport,
    sites: Vec<String>,
    cluster: PathBuf,
    definition: Definition,
    participants: Vec<Bic>,
    patience: Duration,
    operator: Client,
    /// By participant and site.
    clients: BTreeMap<(Bic, usize), Client>,
}

impl<'a> Stage<'a> {
    fn new(
        report: &'a LabReport,
        settings: &Settings,
        sites: &[String],
        patience: Duration,
    ) -> anyhow::Result<Self> {
        let cluster = report.dir.join(CLUSTER_DIR);
        let nodes: Vec<String> = data(report)
            .map(|node| node.client_address.clone())
            .collect();
        let who = &report.operator;
        Ok(Self {
            sites: sites.to_vec(),
            definition: Definition::read(&cluster.join(DEFINITION_FILE))?,
            participants: settings
                .participants
                .iter()
                .map(|participant| participant.bic)
                .collect(),
            operator: Client::new(&nodes, &who.certificate, &who.key, &who.ca, patience)?,
            clients: BTreeMap::new(),
            report,
            cluster,
            patience,
        })
    }

    fn act(&mut self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let path = format!("/v1/admin/{path}");
        Ok(self
            .operator
            .json(&Ask::post(&path, body.to_string(), Retry::Always))?)
    }

    fn found(&mut self, participants: Vec<u8>, settings: &Settings) -> anyhow::Result<()> {
        let _: Value = self.operator.json(&Ask {
            content_type: "application/toml",
            ..Ask::post("/v1/admin/participants", participants, Retry::Always)
        })?;
        let date = settings.business_date.to_string();
        self.act("day/open", &json!({ "date": date }))?;
        Ok(())
    }

    /// A participant's client that asks a site's nodes first, then all others.
    fn client(&mut self, who: Bic, site: usize) -> anyhow::Result<&mut Client> {
        let key = (who, site);
        if !self.clients.contains_key(&key) {
            let name = self.sites.get(site);
            let here = data(self.report).filter(|node| Some(&node.site) == name);
            let others = data(self.report).filter(|node| Some(&node.site) != name);
            let nodes: Vec<String> = here
                .chain(others)
                .map(|node| node.client_address.clone())
                .collect();
            let (certificate, key_file) = certificate_of(
                &self.cluster,
                &self.definition,
                Kind::Participant,
                &who.to_string(),
            )?;
            let ca = &self.report.operator.ca;
            let client = Client::new(&nodes, &certificate, &key_file, ca, self.patience)?;
            self.clients.insert(key, client);
        }
        self.clients
            .get_mut(&key)
            .context("a client that was just made")
    }

    /// Hands one file in; the address that answered, and what it said.
    fn hand_in(&mut self, file: &Path, site: usize) -> anyhow::Result<(String, String)> {
        let body = std::fs::read(file).with_context(|| format!("read {}", file.display()))?;
        // What says nobody's name that is known here is handed in by the first one.
        let sender = sender_of(&body).filter(|sender| self.participants.contains(sender));
        let Some(sender) = sender.or_else(|| self.participants.first().copied()) else {
            bail!("there is no participant to hand anything in");
        };
        let client = self.client(sender, site)?;
        let reply = client
            .send(&Ask {
                content_type: "application/xml",
                ..Ask::post("/v1/messages", body, Retry::Always)
            })
            .with_context(|| format!("hand in {}", file.display()))?;
        // A refusal is an answer; that nobody could store it is none.
        if reply.status.is_server_error() {
            return Err(anyhow::Error::new(reply.refusal()).context(file.display().to_string()));
        }
        let status = serde_json::from_slice::<Answer>(&reply.body).map_or_else(
            |_| format!("HTTP {}", reply.status.as_u16()),
            |answer| answer.status,
        );
        Ok((reply.node, status))
    }

    fn name_of(&self, address: &str) -> String {
        let node = self
            .report
            .nodes
            .iter()
            .find(|node| node.client_address == address);
        node.map_or_else(|| address.to_owned(), |node| node.name.clone())
    }

    fn cycles(&mut self) -> anyhow::Result<Vec<Value>> {
        Ok(self.operator.json(&Ask::get("/v1/cycles"))?)
    }

    /// Runs a netting cycle. One whose answer was lost is looked for: a cycle must not run twice.
    fn cycle(&mut self) -> anyhow::Result<Value> {
        let newest = |cycles: &[Value]| {
            let numbers = cycles.iter().filter_map(|cycle| cycle["cycle"].as_u64());
            numbers.max().unwrap_or(0)
        };
        let before = newest(&self.cycles()?);
        let patience_ns = u64::try_from(self.patience.as_nanos()).unwrap_or(u64::MAX);
        let start_ns = now_ns();
        loop {
            let waited_ns = now_ns().saturating_sub(start_ns);
            let cycles = self.cycles()?;
            let new = cycles.into_iter().find(|cycle| {
                cycle["cycle"]
                    .as_u64()
                    .is_some_and(|number| number > before)
            });
            match new {
                Some(cycle) if matches!(cycle["state"].as_str(), Some("settled" | "given up")) => {
                    return Ok(cycle);
                }
                Some(_) => {}
                None => {
                    let ask = Ask::post("/v1/admin/cycle/open", "{}", Retry::NothingDone);
                    if let Err(error) = self.operator.json::<Value>(&ask)
                        && waited_ns > patience_ns
                    {
                        return Err(error.into());
                    }
                }
            }
            if waited_ns > patience_ns {
                bail!("a cycle has not ended after {} s", self.patience.as_secs());
            }
            std::thread::sleep(LOOK);
        }
    }
}
