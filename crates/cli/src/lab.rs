//! `clearspan lab`

mod env;
mod play;

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use clearspan_lab::clock::{SECOND_NS, now_ns};
use clearspan_lab::control::{self, Request};
use clearspan_lab::failover::{self, By, FailoverOptions, Loss};
use clearspan_lab::lab::{LabOptions, LabReport, Launch, NodeState, Ways};
use clearspan_lab::measure::{self, CHECKED_RTT_NS, Seen};
use clearspan_lab::relay::Shape;
use clearspan_lab::topology::{self, Quality, Topology};

use crate::output::{self, Table};
use crate::place::SitesAndDistances;

/// Between looks at a lab that comes up.
const POLL: Duration = Duration::from_millis(50);
const MEGABYTE: u64 = 1_000_000;
const SHARDS: u16 = 4;

/// Run a cluster over several sites on this machine, with distance between them
#[derive(Debug, Args)]
#[command(after_help = "\
Nodes are processes of their own. Connections between sites run through a relay, which gives them delay, jitter and \
bandwidth and can cut them; connections inside a site are direct. No root is needed, and `down` leaves nothing.

Example:
  clearspan lab up --sites A:3,B:3,W:witness --km 70
  clearspan lab play examples/day --sites A,B
  eval \"$(clearspan lab env)\"
  clearspan status
  clearspan lab kill A
  clearspan lab status
  clearspan lab restart A
  clearspan lab cut A B --one-way
  clearspan lab heal
  clearspan lab down")]
pub(crate) struct Lab {
    /// The lab's directory
    #[arg(long, global = true, env = "CLEARSPAN_LAB", default_value_os_t = default_dir())]
    dir: PathBuf,
    #[command(subcommand)]
    command: LabCommand,
}

fn default_dir() -> PathBuf {
    std::env::temp_dir().join("clearspan-lab")
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// Set up a new cluster and start its nodes, or start the one again that was kept
    Up(Up),
    /// Show nodes and lines
    Status,
    /// Print what a shell must know to ask the cluster: eval "$(clearspan lab env)"
    Env(env::Env),
    /// Hand a business day in through several sites
    Play(play::Play),
    /// Kill a node, or all nodes of a site, as a power cut does
    Kill(Target),
    /// Stop a node or site where it is, as a machine that hangs
    Pause(Target),
    /// Let a paused node or site go on
    Resume(Target),
    /// Start a node or site again on its data; if it runs it is killed first
    Restart(Target),
    /// Cut the line between two sites, or one site off from all others
    Cut(Cut),
    /// Heal the line between two sites, or all lines
    Heal(Heal),
    /// Give the line between two sites another length, jitter or bandwidth
    Shape(Reshape),
    /// End everything and remove the lab's files
    Down(Down),
    /// Measure how long participants wait when a site is lost
    Failover(Failover),
    /// Measure how true the relay is on this machine
    RelayCheck(RelayCheck),
    /// Hold a lab: what `up` starts
    #[command(hide = true)]
    Supervise,
}

#[derive(Debug, Args)]
struct Up {
    #[command(flatten)]
    place: Place,
    /// How many shards; 4 when not given
    #[arg(long)]
    shards: Option<u16>,
    /// How long to wait for nodes to be ready; 0 does not wait
    #[arg(long, default_value_t = 60)]
    wait_seconds: u64,
}

#[derive(Debug, Args)]
struct Place {
    #[command(flatten)]
    sites: SitesAndDistances,
    #[command(flatten)]
    quality: LineQuality,
}

impl Place {
    /// Whether nothing was said of it.
    fn is_open(&self) -> bool {
        self.sites.is_open() && self.quality.is_usual()
    }

    fn topology(self) -> anyhow::Result<Topology> {
        let quality = self.quality.read()?;
        self.sites.topology(quality)
    }
}

#[derive(Debug, Args)]
struct LineQuality {
    /// Up to this much is added to each way, in ms
    #[arg(long, default_value = "0")]
    jitter_ms: String,
    /// Bandwidth of each way between two sites, in MB/s; as much as the machine can do when not given
    #[arg(long)]
    bandwidth_mb_s: Option<u64>,
}

impl LineQuality {
    fn is_usual(&self) -> bool {
        self.jitter_ms == "0" && self.bandwidth_mb_s.is_none()
    }

    fn read(&self) -> anyhow::Result<Quality> {
        Ok(Quality {
            jitter_ns: topology::ms(&self.jitter_ms).context("--jitter-ms")?,
            bytes_per_s: self
                .bandwidth_mb_s
                .map(|rate| rate.saturating_mul(MEGABYTE)),
        })
    }
}

#[derive(Debug, Args)]
struct Target {
    /// A node or a site by name; node:NAME or site:NAME when one is called like the other
    target: String,
}

#[derive(Debug, Args)]
struct Cut {
    /// From this site
    from: String,
    /// To this site; to and from all others when not given
    to: Option<String>,
    /// Only what goes from the first to the second
    #[arg(long, requires = "to")]
    one_way: bool,
}

#[derive(Debug, Args)]
struct Heal {
    /// From this site; all lines when not given
    #[arg(requires = "to")]
    from: Option<String>,
    /// To this site
    to: Option<String>,
    /// Only what goes from the first to the second
    #[arg(long, requires = "to")]
    one_way: bool,
}

#[derive(Debug, Args)]
struct Reshape {
    /// From this site
    from: String,
    /// To this site
    to: String,
    /// Round trip in ms
    #[arg(long)]
    rtt_ms: String,
    #[command(flatten)]
    quality: LineQuality,
    /// Only what goes from the first to the second; it takes half the round trip
    #[arg(long)]
    one_way: bool,
}

#[derive(Debug, Args)]
struct Down {
    /// Leave the cluster's files and logs
    #[arg(long)]
    keep: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A lab of its own comes up, all nodes of the site are killed at once, or cut off from the other sites in silence while \
participants still reach them, and the time is taken until an urgent payment of a participant of each shard is \
acknowledged that was sent after that. Then the site comes back, leads again, and is lost \
again. Exit code 1 when a time is above 2 s within 100 km of fibre, or 5 s over regions.

Example:
  clearspan lab failover --sites A:1,B:1,W:witness --km 70
  clearspan lab failover --sites A:2,B:2,W:witness --km 70 --by cut
  clearspan lab failover --preset tokyo-seoul-singapore --repeats 5")]
struct Failover {
    #[command(flatten)]
    place: Place,
    /// The site to lose; the first when not given
    #[arg(long)]
    site: Option<String>,
    /// How it is lost: its processes are killed, or its lines to other sites drop everything without a word
    #[arg(long, value_enum, default_value = "kill")]
    by: Way,
    /// How often
    #[arg(long, default_value_t = 20)]
    repeats: usize,
    /// Between the site's return and its next loss: within 10 s of the last loss a broken connection is not believed again,
    /// only silence is
    #[arg(long, default_value_t = 10)]
    pause_seconds: u64,
    /// How many shards
    #[arg(long, default_value_t = 4)]
    shards: u16,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Way {
    Kill,
    Cut,
}

#[derive(Debug, Args)]
struct RelayCheck {
    /// Round trips to check, in ms
    #[arg(long, value_delimiter = ',')]
    rtt_ms: Vec<String>,
}

impl Lab {
    pub(crate) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let dir = self.dir;
        let request = match self.command {
            LabCommand::Up(up) => return up.run(&dir, json),
            LabCommand::Env(env) => return env.run(&dir, json),
            LabCommand::Play(play) => return play.run(&dir, json),
            LabCommand::Down(down) => return down.run(&dir, json),
            LabCommand::RelayCheck(check) => return check.run(json),
            LabCommand::Failover(failover) => return failover.run(&dir, json),
            LabCommand::Supervise => {
                control::supervise(&dir)?;
                return Ok(ExitCode::SUCCESS);
            }
            LabCommand::Status => Request::Report,
            LabCommand::Kill(Target { target }) => Request::Kill { target },
            LabCommand::Pause(Target { target }) => Request::Pause { target },
            LabCommand::Resume(Target { target }) => Request::Resume { target },
            LabCommand::Restart(Target { target }) => Request::Restart { target },
            LabCommand::Cut(Cut {
                from,
                to: Some(to),
                one_way,
            }) => Request::Cut {
                from,
                to,
                ways: ways(one_way),
            },
            LabCommand::Cut(Cut { from, to: None, .. }) => Request::Isolate { site: from },
            LabCommand::Heal(Heal {
                from: Some(from),
                to: Some(to),
                one_way,
            }) => Request::Heal {
                from,
                to,
                ways: ways(one_way),
            },
            LabCommand::Heal(_) => Request::HealAll,
            LabCommand::Shape(shape) => shape.request()?,
        };
        if request != Request::Report {
            control::ask(&dir, &request)?;
        }
        print(&control::report(&dir)?, json)?;
        Ok(ExitCode::SUCCESS)
    }
}

const fn ways(one_way: bool) -> Ways {
    if one_way { Ways::There } else { Ways::Both }
}

impl Reshape {
    fn request(self) -> anyhow::Result<Request> {
        let quality = self.quality.read()?;
        let shape = Shape {
            delay_ns: topology::ms(&self.rtt_ms).context("--rtt-ms")? / 2,
            jitter_ns: quality.jitter_ns,
            bytes_per_s: quality.bytes_per_s,
        };
        Ok(Request::Shape {
            from: self.from,
            to: self.to,
            ways: ways(self.one_way),
            shape,
        })
    }
}

impl Up {
    fn run(self, dir: &Path, json: bool) -> anyhow::Result<ExitCode> {
        let program = std::env::current_exe().context("find this program")?;
        let kept = control::kept(dir)?;
        let again = kept.is_some();
        let options = match kept {
            Some(kept) if self.place.is_open() => LabOptions {
                shards: self.shards.unwrap_or(kept.shards),
                ..kept
            },
            _ => LabOptions {
                topology: self.place.topology()?,
                shards: self.shards.unwrap_or(SHARDS),
                launch: Launch::serve(program.clone()),
                extra_settings: String::new(),
            },
        };
        control::prepare(dir, &options)?;
        if let Err(error) = start_supervisor(&program, dir) {
            // Nothing of a new lab that did not come up is of use.
            control::down(dir, again)?;
            return Err(error);
        }
        let limit_ns = self.wait_seconds.saturating_mul(SECOND_NS);
        let start_ns = now_ns();
        let report = loop {
            let report = control::report(dir)?;
            let Some((why, hopeless)) = report.not_ready() else {
                break report;
            };
            if limit_ns == 0 {
                break report;
            }
            if hopeless || now_ns() - start_ns > limit_ns {
                print(&report, json)?;
                bail!(
                    "not ready after {} s: {why}; the lab stays up until `clearspan lab down`, logs are in {}",
                    (now_ns() - start_ns) / SECOND_NS,
                    report.dir.join("logs").display()
                );
            }
            std::thread::sleep(POLL);
        };
        print(&report, json)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Starts the process that holds the lab, apart from this terminal, and waits until it listens.
fn start_supervisor(program: &Path, dir: &Path) -> anyhow::Result<()> {
    let path = dir.join(control::SUPERVISOR_LOG);
    let log = File::create(&path).with_context(|| format!("write {}", path.display()))?;
    let mut supervisor = Command::new(program)
        .args(["lab", "supervise", "--dir"])
        .arg(dir)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0)
        .spawn()
        .context("start the lab's supervisor")?;
    while !control::is_up(dir) {
        if let Some(status) = supervisor.try_wait()? {
            let says = fs::read_to_string(&path).unwrap_or_default();
            bail!("the lab did not come up ({status}): {}", says.trim());
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

impl Down {
    fn run(self, dir: &Path, json: bool) -> anyhow::Result<ExitCode> {
        control::down(dir, self.keep)?;
        if json {
            output::json(&serde_json::json!({ "dir": dir, "kept": self.keep }))?;
        } else {
            let what = if self.keep {
                "its files are in"
            } else {
                "gone from"
            };
            writeln!(
                std::io::stdout(),
                "The lab is down, {what} {}",
                dir.display()
            )?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What all losses together say.
#[derive(Debug, serde::Serialize)]
struct FailoverReport {
    site: String,
    by: By,
    aim_ns: u64,
    within_aim: bool,
    losses: Vec<Loss>,
}

impl Failover {
    fn run(self, dir: &Path, json: bool) -> anyhow::Result<ExitCode> {
        let topology = self.place.topology()?;
        let first = topology.sites.first().map(|site| site.name.clone());
        let far = topology
            .pairs
            .iter()
            .any(|pair| pair.rtt_ns > failover::NEAR_RTT_MAX_NS);
        let options = FailoverOptions {
            site: self.site.or(first).unwrap_or_default(),
            by: match self.by {
                Way::Kill => By::Kill,
                Way::Cut => By::Cut,
            },
            repeats: self.repeats,
            pause: Duration::from_secs(self.pause_seconds),
            lab: LabOptions {
                topology,
                shards: self.shards,
                launch: Launch::serve(std::env::current_exe().context("find this program")?),
                extra_settings: String::new(),
            },
        };
        let mut name = dir.file_name().unwrap_or_default().to_owned();
        name.push(format!("-failover-{}", std::process::id()));
        let dir = dir.with_file_name(name);
        let mut losses = Vec::new();
        let measured = failover::measure(&dir, &options, &mut |loss| {
            let at = losses.len() + 1;
            let worst = loss.acknowledged_ns.iter().max().copied().unwrap_or(0);
            eprintln!("loss {at} of {}: {} ms", options.repeats, ms(worst));
            losses.push(loss.clone());
        });
        measured.with_context(|| format!("measure; what the nodes say is in {}", dir.display()))?;
        fs::remove_dir_all(&dir).with_context(|| format!("remove {}", dir.display()))?;
        let aim_ns = if far {
            failover::FAR_AIM_NS
        } else {
            failover::NEAR_AIM_NS
        };
        let all = losses.iter().flat_map(|loss| &loss.acknowledged_ns);
        let within_aim = all.copied().max().unwrap_or(0) <= aim_ns;
        let report = FailoverReport {
            site: options.site,
            by: options.by,
            aim_ns,
            within_aim,
            losses,
        };
        if json {
            output::json(&report)?;
        } else {
            report.print()?;
        }
        Ok(if within_aim {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

impl FailoverReport {
    fn print(&self) -> anyhow::Result<()> {
        let head = [
            "shards led by",
            "payments",
            "min ms",
            "p50 ms",
            "p90 ms",
            "max ms",
        ];
        let mut table = Table::new("<>>>>>", &head);
        for (name, there) in [("the lost site", true), ("the others", false)] {
            let mut seen: Vec<u64> = self
                .losses
                .iter()
                .flat_map(|loss| loss.led_there.iter().zip(&loss.acknowledged_ns))
                .filter(|&(&led, _)| led == there)
                .map(|(_, &ns)| ns)
                .collect();
            seen.sort_unstable();
            table.row(vec![
                name.to_owned(),
                seen.len().to_string(),
                ms(measure::quantile(&seen, 0)),
                ms(measure::quantile(&seen, 50)),
                ms(measure::quantile(&seen, 90)),
                ms(measure::quantile(&seen, 100)),
            ]);
        }
        let mut out = std::io::stdout().lock();
        writeln!(
            out,
            "Site {} {} {} times, to the next acknowledged urgent payment of each shard:",
            self.site,
            match self.by {
                By::Kill => "killed",
                By::Cut => "cut off in silence",
            },
            self.losses.len()
        )?;
        table.print(&mut out)?;
        let met = if self.within_aim { "met" } else { "MISSED" };
        writeln!(out, "Promised: {} ms, {met}", ms(self.aim_ns))?;
        Ok(())
    }
}

impl RelayCheck {
    fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let mut rtts_ns = Vec::new();
        for text in &self.rtt_ms {
            rtts_ns.push(topology::ms(text).context("--rtt-ms")?);
        }
        if rtts_ns.is_empty() {
            rtts_ns.extend(CHECKED_RTT_NS);
        }
        let seen = measure::relay_check(&rtts_ns).context("measure the relay")?;
        if json {
            output::json(&seen)?;
            return Ok(ExitCode::SUCCESS);
        }
        let head = [
            "asked RTT ms",
            "echoes",
            "min ms",
            "p50 ms",
            "p99 ms",
            "MB/s, one connection",
        ];
        let mut table = Table::new("<>>>>>", &head);
        for seen in &seen {
            let Seen {
                asked_rtt_ns,
                echoes,
                rtt_min_ns,
                rtt_p50_ns,
                rtt_p99_ns,
                ceiling_bytes_per_s,
            } = *seen;
            table.row(vec![
                asked_rtt_ns.map_or_else(|| "no relay".to_owned(), ms),
                output::count(echoes),
                ms(rtt_min_ns),
                ms(rtt_p50_ns),
                ms(rtt_p99_ns),
                output::count(ceiling_bytes_per_s / MEGABYTE),
            ]);
        }
        table.print(&mut std::io::stdout().lock())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Nanoseconds as milliseconds with three decimals.
fn ms(ns: u64) -> String {
    let us = ns / 1000;
    format!("{}.{:03}", us / 1000, us % 1000)
}

fn print(report: &LabReport, json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(report);
    }
    let mut out = std::io::stdout().lock();
    let mut nodes = Table::new(
        "<<<<>",
        &["node", "site", "state", "participants and operators", "pid"],
    );
    for node in &report.nodes {
        let state = match &node.state {
            NodeState::Ready => "ready".to_owned(),
            NodeState::NotReady(why) => format!("not ready: {why}"),
            NodeState::Paused => "paused".to_owned(),
            NodeState::Killed => "killed".to_owned(),
            NodeState::Ended(status) => format!("ended: {status}"),
        };
        let site = if node.witness {
            format!("{} (witness)", node.site)
        } else {
            node.site.clone()
        };
        nodes.row(vec![
            node.name.clone(),
            site,
            state,
            format!("https://{}", node.client_address),
            node.pid
                .map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
        ]);
    }
    nodes.print(&mut out)?;
    let head = [
        "line",
        "state",
        "one way ms",
        "jitter ms",
        "MB/s",
        "connections",
        "carried MB",
        "late µs",
    ];
    let mut lines = Table::new("<<>>>>>>", &head);
    for line in &report.lines {
        let status = &line.line;
        lines.row(vec![
            format!("{} to {}", line.from, line.to),
            if status.cut { "CUT" } else { "open" }.to_owned(),
            ms(status.shape.delay_ns),
            ms(status.shape.jitter_ns),
            status
                .shape
                .bytes_per_s
                .map_or_else(|| "-".to_owned(), |rate| output::count(rate / MEGABYTE)),
            status.connections.to_string(),
            output::count(status.carried_bytes / MEGABYTE),
            output::count(status.late_mean_ns / 1000),
        ]);
    }
    if !lines.is_empty() {
        writeln!(out)?;
        lines.print(&mut out)?;
    }
    let default = report.dir == default_dir();
    let dir = report.dir.display();
    let option = if default {
        String::new()
    } else {
        format!(" --dir {dir}")
    };
    writeln!(
        out,
        "
  eval \"$(clearspan lab env{option})\"                     commands below ask as its operator
  clearspan lab play examples/day --sites {}      a business day, in through several sites
  clearspan status --watch                         the cluster at a glance
  eval \"$(clearspan lab env --as ALFADEFFXXX)\"    ask as a participant
  clearspan receipts                               its numbered output
  clearspan query account ALFADEFFXXX              its accounts",
        sites(report)
    )?;
    Ok(())
}

/// Sites that take messages in.
fn sites(report: &LabReport) -> String {
    let data = report.nodes.iter().filter(|node| !node.witness);
    let mut sites: Vec<&str> = data.map(|node| node.site.as_str()).collect();
    sites.dedup();
    sites.join(",")
}
