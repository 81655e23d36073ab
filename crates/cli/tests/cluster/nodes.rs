//! A cluster of real processes on this machine, each node in a site of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clearspan_lab::ports::{self, Ports};
use clearspan_node::client::{Ask, Client, ClientError, Retry};
use serde_json::{Value, json};

/// Everything here takes seconds; a loaded machine may need far longer.
const DEADLINE: Duration = Duration::from_secs(180);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// By the places of their ports; the first three found the cluster.
const NODES: [&str; 5] = ["A1", "B1", "C1", "D1", "B2"];
const FOUNDERS: usize = 3;

pub(crate) struct Cluster {
    dir: tempfile::TempDir,
    /// From here on ports are the cluster's, also between two lives of a node.
    ports: Ports,
    nodes: [Option<Child>; NODES.len()],
}

impl Cluster {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    /// Made with more options of `init`.
    pub(crate) fn with(more: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ports = ports::free(NODES.len()).unwrap();
        let base = ports.peer.to_string();
        let settings = dir.path().join("extra.toml");
        std::fs::write(
            &settings,
            "[log]\nprefill_mib = 0\nreserve_mib = 1\n\n[packages]\nreserve_mib = 1\n",
        )
        .unwrap();
        let cluster = Self {
            dir,
            ports,
            nodes: [const { None }; NODES.len()],
        };
        let root = cluster.root();
        let root = root.to_str().unwrap();
        let extra = settings.to_str().unwrap();
        let usual = [
            "init",
            root,
            "--sites",
            "A:1,B:1,C:1",
            "--shards",
            "4",
            "--base-port",
            &base,
            "--settings",
            extra,
        ];
        run(&[&usual, more].concat());
        for bic in ["ALFADEFFXXX", "BRAVFRPPXXX"] {
            run(&["issue", root, "participant", bic]);
        }
        cluster
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("cluster")
    }

    pub(crate) fn start(&mut self, at: usize) {
        let config = self.root().join("nodes").join(NODES[at]).join("node.toml");
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.dir.path().join(format!("{}.log", NODES[at])))
            .unwrap();
        let child = binary()
            .args(["serve", "--config", config.to_str().unwrap()])
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        self.nodes[at] = Some(child);
    }

    pub(crate) fn start_all(&mut self) {
        (0..FOUNDERS).for_each(|at| self.start(at));
        self.all_ready();
    }

    pub(crate) const fn name(at: usize) -> &'static str {
        NODES[at]
    }

    fn operate_output(&self, through: &[usize], act: &[&str]) -> std::process::Output {
        self.operate_as("admin", through, act)
    }

    /// `clearspan admin` by an operator, whatever comes of it.
    pub(crate) fn operate_as(
        &self,
        who: &str,
        through: &[usize],
        act: &[&str],
    ) -> std::process::Output {
        let nodes: Vec<String> = through.iter().map(|&at| self.address(100, at)).collect();
        let file = |name: &str| self.root().join(name).to_str().unwrap().to_owned();
        let (cert, key) = (
            format!("clients/operator-{who}.crt"),
            format!("clients/operator-{who}.key"),
        );
        binary()
            .args(["admin", "--node", &nodes.join(","), "--patience", "120"])
            .args(["--cert", &file(&cert), "--key", &file(&key)])
            .args(["--ca", &file("pki/nodes-ca.crt")])
            .args(act)
            .output()
            .unwrap()
    }

    /// `clearspan admin` with these nodes.
    pub(crate) fn operate(&self, through: &[usize], act: &[&str]) {
        let output = self.operate_output(through, act);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{act:?}: {said}");
    }

    /// What an act that must be refused says.
    pub(crate) fn fails(&self, through: &[usize], act: &[&str]) -> String {
        let output = self.operate_output(through, act);
        assert!(!output.status.success(), "{act:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Takes up a node of a new place: `act`, the cluster's directory, what it is, its addresses and settings.
    pub(crate) fn admin(&self, through: &[usize], act: &[&str], what: &[&str], at: usize) {
        let root = self.root();
        let extra = self.dir.path().join("extra.toml");
        let (peer, client, http) = (
            self.address(0, at),
            self.address(100, at),
            self.address(200, at),
        );
        let mut all: Vec<&str> = act.to_vec();
        all.push(root.to_str().unwrap());
        all.extend(what);
        all.extend(["--peer", &peer, "--client", &client, "--http", &http]);
        all.extend(["--settings", extra.to_str().unwrap()]);
        self.operate(through, &all);
    }

    pub(crate) fn address(&self, block: u16, at: usize) -> String {
        format!(
            "127.0.0.1:{}",
            self.ports.peer + block + u16::try_from(at).unwrap()
        )
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self, at: usize) {
        if let Some(mut child) = self.nodes[at].take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(crate) fn kill_all(&mut self) {
        (0..NODES.len()).for_each(|at| self.kill(at));
    }

    /// SIGTERM; whether the process ended well.
    pub(crate) fn stop(&mut self, at: usize) -> bool {
        let mut child = self.nodes[at].take().unwrap();
        let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let mut status = None;
        self.eventually("a node stops", || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().success()
    }

    /// Waits until a node's process has ended by itself; its exit code, or none when a signal ended it.
    pub(crate) fn wait_for_end(&mut self, at: usize) -> Option<i32> {
        let mut child = self.nodes[at].take().unwrap();
        let mut status = None;
        self.eventually("a node ends", || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }

    /// What a node has said.
    pub(crate) fn log(&self, at: usize) -> String {
        let path = self.dir.path().join(format!("{}.log", NODES[at]));
        std::fs::read_to_string(path).unwrap()
    }

    pub(crate) fn data_dir(&self, at: usize) -> PathBuf {
        self.root().join("nodes").join(NODES[at]).join("data")
    }

    /// `clearspan` with an act upon the cluster's directory: `what`, the directory, more.
    pub(crate) fn on_files(&self, what: &str, more: &[&str]) -> std::process::Output {
        let root = self.root();
        let all = binary().arg(what).arg(root).args(more).output();
        all.unwrap()
    }

    /// Has a running node look at its certificates at once.
    pub(crate) fn hang_up(&self, at: usize) {
        let child = self.nodes[at].as_ref().unwrap();
        let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    }

    /// What a node answers to somebody who asks whether it is ready; nothing when the connection ends instead.
    pub(crate) fn answer(&self, who: &str, at: usize) -> Option<u16> {
        let file = |end: &str| self.root().join("clients").join(format!("{who}.{end}"));
        let ca = self.root().join("pki/nodes-ca.crt");
        let one = [self.address(100, at)];
        let mut client =
            Client::new(&one, &file("crt"), &file("key"), &ca, Duration::ZERO).unwrap();
        match client.send(&Ask::get("/readyz")) {
            Ok(reply) => Some(reply.status.as_u16()),
            Err(ClientError::Unreachable(_)) => None,
            Err(other) => panic!("{who} at {}: {other}", Self::name(at)),
        }
    }

    /// Whether a node lets somebody in.
    pub(crate) fn lets_in(&self, who: &str, at: usize) -> bool {
        self.answer(who, at).is_some()
    }

    /// A client of these nodes with a certificate of the cluster's.
    pub(crate) fn client(&self, who: &str, nodes: &[usize]) -> Client {
        let addresses: Vec<String> = nodes.iter().map(|&at| self.address(100, at)).collect();
        let file = |end: &str| self.root().join("clients").join(format!("{who}.{end}"));
        let ca = self.root().join("pki/nodes-ca.crt");
        Client::new(&addresses, &file("crt"), &file("key"), &ca, DEADLINE).unwrap()
    }

    pub(crate) fn operator(&self, nodes: &[usize]) -> Client {
        self.client("operator-admin", nodes)
    }

    pub(crate) fn act(&self, path: &str, body: &Value) -> Value {
        let ask = Ask::post(path, body.to_string(), Retry::Always);
        self.operator(&[0, 1, 2]).json(&ask).unwrap()
    }

    pub(crate) fn found(&self) {
        let example =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/day/participants.toml");
        let body = std::fs::read(example).unwrap();
        let ask = Ask {
            content_type: "application/toml",
            ..Ask::post("/v1/admin/participants", body, Retry::Always)
        };
        let answer: Value = self.operator(&[0]).json(&ask).unwrap();
        assert_eq!(answer["everywhere"], json!(true), "{answer}");
        let answer = self.act("/v1/admin/day/open", &json!({ "date": "2026-11-30" }));
        assert_eq!(answer["everywhere"], json!(true), "{answer}");
    }

    /// Waits until every running node is ready and has applied the same in every shard.
    pub(crate) fn all_ready(&self) {
        let running: Vec<usize> = (0..NODES.len())
            .filter(|&at| self.nodes[at].is_some())
            .collect();
        let mut clients: Vec<Client> = running.iter().map(|&at| self.operator(&[at])).collect();
        self.eventually("all nodes are ready and agree", || {
            let seen: Vec<Value> = clients
                .iter_mut()
                .filter_map(|client| client.json(&Ask::get("/v1/status")).ok())
                .collect();
            let indexes = |status: &Value| -> Vec<Value> {
                status["shards"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|shard| shard["applied_index"].clone())
                    .collect()
            };
            seen.len() == clients.len()
                && seen.iter().all(|status| {
                    status["ready"] == json!(true) && indexes(status) == indexes(&seen[0])
                })
        });
    }

    #[expect(clippy::disallowed_methods, reason = "a test waits in real time")]
    pub(crate) fn eventually(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + DEADLINE;
        while !holds() {
            if Instant::now() > deadline {
                let tail = |name: &&str| {
                    let text = std::fs::read_to_string(self.dir.path().join(format!("{name}.log")))
                        .unwrap_or_default();
                    let lines: Vec<&str> = text.lines().rev().take(10).collect();
                    format!("{name}:\n{}", lines.join("\n"))
                };
                panic!(
                    "waited in vain: {what}\n{}",
                    NODES.iter().map(tail).collect::<Vec<_>>().join("\n")
                );
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kill_all();
    }
}

fn binary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_clearspan"))
}

fn run(args: &[&str]) {
    let output = binary().args(args).output().unwrap();
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
