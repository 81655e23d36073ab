//! A lab whose nodes are stand-ins: processes that run and do nothing. What real nodes make of a lab is tested where the
//! binary is.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use clearspan_node::cluster::node_config::NodeConfig;

use super::{Lab, LabError, LabOptions, Launch, NodeState, Ways};
use crate::control::{self, ControlError, Request};
use crate::process::Process;
use crate::topology::{Distance, Quality, Topology};

fn options(script: &str) -> LabOptions {
    let km = Distance::Km("70".to_owned());
    LabOptions {
        topology: Topology::parse(Some("A:2,B:1,W:witness"), Some(&km), Quality::default())
            .unwrap(),
        shards: 2,
        launch: Launch {
            program: "/bin/sh".into(),
            arguments: vec!["-c".to_owned(), script.to_owned(), "{config}".to_owned()],
            environment: vec![("NOTES".to_owned(), "{config}.notes".to_owned())],
            ready_path: None,
        },
        extra_settings: "[limits]\nsocket_buffer_mib = 4".to_owned(),
    }
}

const RUNS: &str = "echo $0 $NOTES; exec sleep 1000";

fn states(lab: &mut Lab) -> Vec<(String, &'static str)> {
    let name = |state: NodeState| match state {
        NodeState::Ready => "ready",
        NodeState::NotReady(_) => "not ready",
        NodeState::Paused => "paused",
        NodeState::Killed => "killed",
        NodeState::Ended(_) => "ended",
    };
    let nodes = lab.report().unwrap().nodes.into_iter();
    nodes.map(|node| (node.name, name(node.state))).collect()
}

fn kernel_state(pid: u32) -> char {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    text.rsplit_once(") ").unwrap().1.chars().next().unwrap()
}

#[test]
fn nodes_are_killed_paused_and_restarted_alone_and_by_site() {
    let dir = tempfile::tempdir().unwrap();
    let mut lab = Lab::up(dir.path(), &options(RUNS)).unwrap();
    lab.wait_until_ready(Duration::from_secs(10)).unwrap();
    let is = |lab: &mut Lab, expected: [&str; 4]| {
        let names = ["A1", "A2", "B1", "W1"].map(str::to_owned);
        let expected: Vec<_> = names.into_iter().zip(expected).collect();
        assert_eq!(states(lab), expected);
    };
    is(&mut lab, ["ready"; 4]);
    lab.kill("A").unwrap();
    is(&mut lab, ["killed", "killed", "ready", "ready"]);
    lab.restart("A2").unwrap();
    is(&mut lab, ["killed", "ready", "ready", "ready"]);
    lab.pause("B1").unwrap();
    is(&mut lab, ["killed", "ready", "paused", "ready"]);
    let pid = lab.report().unwrap().nodes[2].pid.unwrap();
    let stopped = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(1));
        kernel_state(pid) == 'T'
    });
    assert!(stopped);
    lab.resume("site:B").unwrap();
    is(&mut lab, ["killed", "ready", "ready", "ready"]);
    // One that is paused can be killed, and one that runs is killed before it starts anew.
    lab.pause("W").unwrap();
    lab.kill("W").unwrap();
    lab.restart("W").unwrap();
    lab.restart("B1").unwrap();
    let again = lab.report().unwrap().nodes[2].pid.unwrap();
    assert_ne!(again, pid);
    is(&mut lab, ["killed", "ready", "ready", "ready"]);

    let fault = lab.kill("C").unwrap_err();
    assert!(matches!(fault, LabError::NoTarget { .. }), "{fault}");
    assert!(
        fault.to_string().contains("A, B, W, A1, A2, B1, W1"),
        "{fault}"
    );
    let log = fs::read_to_string(dir.path().join("logs/B1.log")).unwrap();
    assert!(log.contains("nodes/B1/node.toml "), "{log}");
    assert!(log.contains("nodes/B1/node.toml.notes"), "{log}");
    drop(lab);
    assert!(Process::find(again).is_err());
}

#[test]
fn nodes_dial_other_sites_through_relays_and_their_own_directly() {
    let dir = tempfile::tempdir().unwrap();
    let mut lab = Lab::up(dir.path(), &options(RUNS)).unwrap();
    let report = lab.report().unwrap();
    let config = |name: &str| {
        let node = report.nodes.iter().find(|node| node.name == name).unwrap();
        NodeConfig::read(&node.config).unwrap()
    };
    for name in ["A1", "A2", "B1", "W1"] {
        let config = config(name);
        assert_eq!(config.peers.len(), 3);
        assert_eq!(config.links.socket_buffer_bytes, Some(4 << 20));
        for peer in &config.peers {
            let node = config.definition.member(peer.member).unwrap();
            let direct = peer.address == node.peer_address;
            assert_eq!(
                direct,
                node.site == config.node.site,
                "{name} to {}",
                node.name
            );
            let address: SocketAddr = peer.address.parse().unwrap();
            assert!(address.ip().is_loopback());
        }
    }
    assert_eq!(report.lines.len(), 6);
    assert!(
        report
            .lines
            .iter()
            .all(|line| line.line.shape.delay_ns == 350_000)
    );

    let cuts = |lab: &mut Lab| {
        let lines = lab.report().unwrap().lines.into_iter();
        let cut = lines.filter(|line| line.line.cut);
        cut.map(|line| format!("{}>{}", line.from, line.to))
            .collect::<Vec<_>>()
    };
    lab.cut("A", "B", Ways::There).unwrap();
    assert_eq!(cuts(&mut lab), ["A>B"]);
    lab.cut("B", "W", Ways::Both).unwrap();
    assert_eq!(cuts(&mut lab), ["A>B", "B>W", "W>B"]);
    lab.heal("W", "B", Ways::There).unwrap();
    assert_eq!(cuts(&mut lab), ["A>B", "B>W"]);
    lab.heal_all().unwrap();
    lab.isolate("W").unwrap();
    assert_eq!(cuts(&mut lab), ["A>W", "B>W", "W>A", "W>B"]);
    assert!(matches!(
        lab.cut("A", "A", Ways::Both),
        Err(LabError::NoLine { .. })
    ));
    assert!(matches!(lab.isolate("Z"), Err(LabError::NoLine { .. })));
}

#[test]
fn a_node_that_ends_by_itself_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut lab = Lab::up(dir.path(), &options("exit 3")).unwrap();
    let fault = loop {
        match lab.wait_until_ready(Duration::from_secs(10)) {
            // Looked at before it ended.
            Ok(()) => std::thread::sleep(Duration::from_millis(1)),
            Err(fault) => break fault.to_string(),
        }
    };
    assert!(fault.contains("ended: exit status: 3"), "{fault}");
    assert!(fault.contains("logs"), "{fault}");
}

#[test]
fn two_labs_at_once_do_not_meet() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut ports = Vec::new();
    let labs: Vec<Lab> = dirs
        .iter()
        .map(|dir| {
            let mut lab = Lab::up(dir.path(), &options(RUNS)).unwrap();
            ports.push(lab.report().unwrap().nodes[0].client_address.clone());
            lab
        })
        .collect();
    assert_ne!(ports[0], ports[1]);
    drop(labs);
}

/// A supervisor on a thread: its lab's processes are real ones.
fn supervised(dir: &Path, script: &str) -> std::thread::JoinHandle<Result<(), ControlError>> {
    control::prepare(dir, &options(script)).unwrap();
    let dir = dir.to_owned();
    std::thread::spawn(move || control::supervise(&dir))
}

#[test]
fn a_lab_is_steered_over_its_socket_and_leaves_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("lab");
    assert!(matches!(control::report(&dir), Err(ControlError::NoLab(_))));
    let supervisor = supervised(&dir, RUNS);
    while !control::is_up(&dir) {
        assert!(!supervisor.is_finished(), "{:?}", supervisor.join());
        std::thread::sleep(Duration::from_millis(1));
    }
    // This process is the supervisor here, and is not to be ended.
    fs::remove_file(dir.join("supervisor.pid")).unwrap();
    assert!(matches!(
        control::prepare(&dir, &options(RUNS)),
        Err(ControlError::Exists(_))
    ));
    let ask = |request| control::ask(&dir, &request);
    ask(Request::Kill {
        target: "A".to_owned(),
    })
    .unwrap();
    ask(Request::Isolate {
        site: "B".to_owned(),
    })
    .unwrap();
    let report = control::report(&dir).unwrap();
    assert_eq!(report.nodes[0].state, NodeState::Killed);
    assert_eq!(report.lines.iter().filter(|line| line.line.cut).count(), 4);
    let fault = ask(Request::Pause {
        target: "nobody".to_owned(),
    })
    .unwrap_err();
    assert!(
        fault.to_string().contains("there is no node or site"),
        "{fault}"
    );
    let pid = report.nodes[2].pid.unwrap();
    control::down(&dir, false).unwrap();
    supervisor.join().unwrap().unwrap();
    assert!(Process::find(pid).is_err());
    assert!(!dir.exists());
}

#[test]
fn what_a_dead_supervisor_left_is_ended_and_nothing_else() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path();
    control::prepare(dir, &options(RUNS)).unwrap();
    fs::create_dir(dir.join("run")).unwrap();
    let spawn = || {
        std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap()
    };
    let (mut ours, mut other) = (spawn(), spawn());
    Process::find(ours.id())
        .unwrap()
        .write(&dir.join("run/A1.pid"))
        .unwrap();
    // A number that is another process's by now.
    fs::write(dir.join("run/A2.pid"), format!("{} 1\n", other.id())).unwrap();
    fs::write(dir.join("mine.txt"), "not the lab's").unwrap();
    control::down(dir, false).unwrap();
    assert!(!ours.wait().unwrap().success());
    assert!(
        other.try_wait().unwrap().is_none(),
        "another's process was ended"
    );
    other.kill().unwrap();
    other.wait().unwrap();
    let left: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["mine.txt"], "the directory was there before");
}
