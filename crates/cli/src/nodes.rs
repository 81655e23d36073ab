//! `clearspan admin node` and `clearspan admin leaders`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use clearspan_node::api::{Drain, MoveLeader, NewNode, NodeEntry, Nodes, Which};
use clearspan_node::client::{Ask, Client, Retry};
use clearspan_node::clock::Clock;
use clearspan_node::cluster::init::{NODE_FILE, NODES_DIR};
use clearspan_node::cluster::join::{self, Joined};
use serde::Serialize;
use serde_json::json;

use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum NodeAct {
    /// Show the nodes, and how the shards' groups follow
    List,
    /// Take a new node up: prepare its directory and tell the cluster
    #[command(after_help = "\
Run it where the cluster's authorities are. Start the new node with the command that is printed: it catches up from the others \
and gets its vote. Asked for again after an interruption it goes on where it stood.

Example:
  clearspan admin node add /tmp/cluster A2 --site A --peer 10.0.0.2:7101 --client 10.0.0.2:7201")]
    Add {
        /// The directory that `clearspan init` wrote
        dir: PathBuf,
        /// The node's name
        name: String,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        prepare: Prepare,
    },
    /// Put a new node in another's place; also re-admits one that lost its data or was rolled back
    #[command(after_help = "\
Without options the new node has the old one's name, site and addresses, and a new identity: this re-admits a node on the same \
machine. The old directory is put aside. The old node leaves each group in the same change in which the new one begins to vote.

Example:
  clearspan admin node replace /tmp/cluster A1")]
    Replace {
        /// The directory that `clearspan init` wrote
        dir: PathBuf,
        /// The node whose place is taken
        old: String,
        /// Another name for the new one
        #[arg(long = "as", value_name = "NAME")]
        new: Option<String>,
        /// Where other nodes reach it; as the old one when left out
        #[arg(long, value_name = "HOST:PORT")]
        peer: Option<String>,
        /// Where participants and operators reach it; as the old one when left out
        #[arg(long, value_name = "HOST:PORT")]
        client: Option<String>,
        /// Where metrics are; as the old one when left out
        #[arg(long, value_name = "HOST:PORT")]
        http: Option<String>,
        #[command(flatten)]
        prepare: Prepare,
    },
    /// Take a node out for good, alive or dead
    Remove {
        /// The node's name
        name: String,
        /// Do not wait until it has left all groups
        #[arg(long)]
        no_wait: bool,
    },
    /// Let a node lead nothing, such as before its machine is serviced
    Drain {
        /// The node's name
        name: String,
        /// Do not wait until it leads nothing
        #[arg(long)]
        no_wait: bool,
    },
    /// Let a drained node lead again
    Undrain {
        /// The node's name
        name: String,
    },
}

/// Where a new node is.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Its site; a new one is a new site
    #[arg(long)]
    site: String,
    /// It votes and keeps the log only
    #[arg(long)]
    witness: bool,
    /// Where other nodes reach it
    #[arg(long, value_name = "HOST:PORT")]
    peer: String,
    /// Where participants and operators reach it
    #[arg(long, value_name = "HOST:PORT")]
    client: String,
    /// Where metrics are, without TLS
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
}

/// How a new node is prepared.
#[derive(Debug, Args)]
pub(crate) struct Prepare {
    /// Settings added to its node.toml, such as a table `log`
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Wait until it votes in every shard; it must be started meanwhile
    #[arg(long)]
    wait: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LeadersAct {
    /// Let a shard be led by a node, until it is said otherwise
    Move {
        /// The shard
        shard: u16,
        /// The node
        node: String,
    },
    /// Let a shard go back to the node that it falls to
    Reset {
        /// The shard
        shard: u16,
    },
}

/// Between looks at a change that is under way.
const LOOK: Duration = Duration::from_millis(200);
/// Looks before the wait is given up, not the change: an hour.
const LOOKS_MAX: u32 = 18_000;

pub(crate) fn run_node(act: NodeAct, client: &mut Client, json: bool) -> anyhow::Result<ExitCode> {
    match act {
        NodeAct::List => show(&look(client)?, json),
        NodeAct::Add {
            dir,
            name,
            place,
            prepare,
        } => {
            let new = NewNode {
                node: name,
                site: place.site,
                witness: place.witness,
                id: String::new(),
                peer: place.peer,
                client: place.client,
                http: place.http,
                replaces: None,
            };
            let settings = read_settings(prepare.settings.as_ref())?.unwrap_or_default();
            let joined = join::join(&dir, client, &new, &settings, Clock::System.now())?;
            finish_join(&joined, client, prepare.wait, json)
        }
        NodeAct::Replace {
            dir,
            old,
            new,
            peer,
            client: client_address,
            http,
            prepare,
        } => {
            let nodes = look(client)?;
            let name = new.unwrap_or_else(|| old.clone());
            // Begun before: by now it may be out, and the new one in its place.
            let gone = |node: &&NodeEntry| node.node == old && node.state == "removed";
            let found = match find(&nodes, &old) {
                Err(_) if nodes.nodes.iter().any(|node| gone(&node)) => find(&nodes, &name)?,
                found => found?,
            };
            let settings = match read_settings(prepare.settings.as_ref())? {
                Some(settings) => settings,
                None if name == old => {
                    join::kept_settings(&dir.join(NODES_DIR).join(&old).join(NODE_FILE))?
                }
                None => String::new(),
            };
            let new = NewNode {
                node: name,
                site: found.site.clone(),
                witness: found.kind == "witness",
                id: String::new(),
                peer: peer.unwrap_or_else(|| found.peer.clone()),
                client: client_address.unwrap_or_else(|| found.client.clone()),
                http: http.or_else(|| found.http.clone()),
                replaces: Some(old),
            };
            let joined = join::join(&dir, client, &new, &settings, Clock::System.now())?;
            finish_join(&joined, client, prepare.wait, json)
        }
        NodeAct::Remove { name, no_wait } => {
            let body = Which { node: name.clone() };
            let mut nodes = act_on(client, "nodes/remove", &body)?;
            if !no_wait {
                nodes = wait(client, &format!("{name} leaves"), |nodes| {
                    let gone = |node: &&NodeEntry| node.node == name && node.state == "removed";
                    let mut old = nodes.nodes.iter().filter(gone);
                    old.all(|node| node.votes.is_empty() && node.follows.is_empty())
                })?;
            }
            show(&nodes, json)
        }
        NodeAct::Drain { name, no_wait } => {
            let body = Drain {
                node: name.clone(),
                draining: true,
            };
            let mut nodes = act_on(client, "nodes/drain", &body)?;
            if !no_wait {
                nodes = wait(client, &format!("{name} hands over"), |nodes| {
                    let led = nodes.shards.iter().all(|shard| {
                        shard.leader.is_some() && shard.leader.as_ref() != Some(&name)
                    });
                    led && find(nodes, &name).is_ok_and(|node| node.leads.is_empty())
                })?;
            }
            show(&nodes, json)
        }
        NodeAct::Undrain { name } => {
            let body = Drain {
                node: name,
                draining: false,
            };
            show(&act_on(client, "nodes/drain", &body)?, json)
        }
    }
}

pub(crate) fn run_leaders(
    act: LeadersAct,
    client: &mut Client,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let (shard, node) = match act {
        LeadersAct::Move { shard, node } => (shard, Some(node)),
        LeadersAct::Reset { shard } => (shard, None),
    };
    let body = MoveLeader {
        shard,
        node: node.clone(),
    };
    let mut nodes = act_on(client, "leaders", &body)?;
    if let Some(node) = node {
        nodes = wait(
            client,
            &format!("{node} takes over shard {shard}"),
            |nodes| {
                let mut shards = nodes.shards.iter();
                shards.any(|group| group.shard == shard && group.leader.as_ref() == Some(&node))
            },
        )?;
    }
    show(&nodes, json)
}

fn read_settings(path: Option<&PathBuf>) -> anyhow::Result<Option<String>> {
    path.map(|path| {
        std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
    })
    .transpose()
}

fn look(client: &mut Client) -> anyhow::Result<Nodes> {
    Ok(client.json(&Ask::get("/v1/nodes"))?)
}

fn act_on(client: &mut Client, path: &str, body: &impl Serialize) -> anyhow::Result<Nodes> {
    let body = serde_json::to_vec(body).context("write the request")?;
    let path = format!("/v1/admin/{path}");
    Ok(client.json(&Ask::post(&path, body, Retry::Always))?)
}

fn find<'a>(nodes: &'a Nodes, name: &str) -> anyhow::Result<&'a NodeEntry> {
    let present = || nodes.nodes.iter().filter(|node| node.state != "removed");
    present().find(|node| node.node == name).with_context(|| {
        let known: Vec<&str> = present().map(|node| node.node.as_str()).collect();
        format!("there is no node {name:?}; there are {}", known.join(", "))
    })
}

fn finish_join(
    joined: &Joined,
    client: &mut Client,
    wanted: bool,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let name = &joined.node.node;
    if let Some(aside) = &joined.set_aside {
        eprintln!("the old directory is kept as {}", aside.display());
    }
    if wanted {
        eprintln!(
            "start it: clearspan serve --config {}",
            joined.config.display()
        );
        let member = joined.node.member;
        wait(client, &format!("{name} joins"), |nodes| {
            let new = nodes.nodes.iter().find(|node| node.member == member);
            nodes.settled && new.is_some_and(|node| node.votes.len() == nodes.shards.len())
        })?;
    }
    if json {
        output::json(&json!({
            "node": name, "member": joined.node.member, "id": joined.node.id, "config": joined.config,
            "set_aside": joined.set_aside, "joined": wanted,
        }))?;
    } else if wanted {
        println!(
            "{name} is member {} and votes in every shard",
            joined.node.member
        );
    } else {
        println!("{name} is member {}; start it:", joined.node.member);
        println!("  clearspan serve --config {}", joined.config.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits until a change has come into force, and says on stderr how far it is. A node that does not answer is waited for.
fn wait(client: &mut Client, what: &str, done: impl Fn(&Nodes) -> bool) -> anyhow::Result<Nodes> {
    let mut said = String::new();
    for _ in 0..LOOKS_MAX {
        let nodes = look(client)?;
        if done(&nodes) {
            return Ok(nodes);
        }
        let settled = nodes.shards.iter().filter(|shard| shard.settled).count();
        let waits = nodes.shards.iter().find_map(|shard| {
            let waits = shard.waits_for.as_ref()?;
            Some(format!("; shard {}: {waits}", shard.shard))
        });
        let progress = format!(
            "{what}: {settled} of {} shards are as they shall be{}",
            nodes.shards.len(),
            waits.unwrap_or_default()
        );
        if progress != said {
            eprintln!("{progress}");
            said = progress;
        }
        std::thread::sleep(LOOK);
    }
    bail!(
        "{what}: not done within an hour; it goes on by itself, `clearspan admin node list` shows how far it is"
    )
}

fn show(nodes: &Nodes, json: bool) -> anyhow::Result<ExitCode> {
    if json {
        output::json(nodes)?;
        return Ok(ExitCode::SUCCESS);
    }
    for node in nodes.nodes.iter().filter(|node| node.state != "removed") {
        println!(
            "{} member {} site {} {} {} {}: votes in {} of {} shards, follows {}, leads {}",
            node.node,
            node.member,
            node.site,
            node.kind,
            node.state,
            if node.up { "up" } else { "down" },
            node.votes.len(),
            nodes.shards.len(),
            node.follows.len(),
            node.leads.len(),
        );
    }
    let leaving = nodes.nodes.iter().filter(|node| {
        node.state == "removed" && !(node.votes.is_empty() && node.follows.is_empty())
    });
    for node in leaving {
        println!(
            "{} member {} leaves: votes in {} shards still",
            node.node,
            node.member,
            node.votes.len()
        );
    }
    for shard in &nodes.shards {
        if let Some(waits) = &shard.waits_for {
            println!("shard {}: {waits}", shard.shard);
        }
    }
    Ok(ExitCode::SUCCESS)
}
