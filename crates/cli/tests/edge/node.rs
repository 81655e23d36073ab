//! One node as a process, and who may ask it.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use clearspan_lab::ports::{self, Ports};
use clearspan_node::client::{Ask, Client, Retry};
use serde_json::Value;

pub(crate) const ALFA: &str = "ALFADEFFXXX";
pub(crate) const BRAV: &str = "BRAVFRPPXXX";

/// Everything here takes seconds; a loaded machine may need far longer.
pub(crate) const DEADLINE: Duration = Duration::from_secs(180);

pub(crate) struct Node {
    dir: tempfile::TempDir,
    /// From here on ports are the node's.
    ports: Ports,
    process: Child,
}

fn clearspan(args: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_clearspan"))
        .args(args)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    output
}

impl Node {
    /// A founded node with an open day and these settings more.
    pub(crate) fn start(settings: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ports = ports::free(1).unwrap();
        let extra = dir.path().join("extra.toml");
        let text = format!(
            "[log]\nprefill_mib = 0\nreserve_mib = 1\n\n[packages]\nreserve_mib = 1\n\n{settings}"
        );
        std::fs::write(&extra, text).unwrap();
        let root = dir.path().join("cluster");
        let root = root.to_str().unwrap();
        let base = ports.peer.to_string();
        let extra = extra.to_str().unwrap();
        clearspan(&[
            "init",
            root,
            "--sites",
            "A:1",
            "--shards",
            "4",
            "--base-port",
            &base,
            "--settings",
            extra,
        ]);
        for bic in [ALFA, BRAV] {
            clearspan(&["issue", root, "participant", bic]);
        }
        let log = std::fs::File::create(dir.path().join("log")).unwrap();
        let config = dir.path().join("cluster/nodes/A1/node.toml");
        let process = Command::new(env!("CARGO_BIN_EXE_clearspan"))
            .args(["serve", "--config", config.to_str().unwrap()])
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let node = Self {
            dir,
            ports,
            process,
        };
        let participants = Ask {
            content_type: "application/toml",
            ..Ask::post(
                "/v1/admin/participants",
                include_str!("../../../../examples/day/participants.toml"),
                Retry::Always,
            )
        };
        let mut operator = node.client("operator-admin");
        let _: Value = operator.json(&participants).unwrap();
        let open = Ask::post(
            "/v1/admin/day/open",
            r#"{ "date": "2026-11-30" }"#,
            Retry::Always,
        );
        let _: Value = operator.json(&open).unwrap();
        node
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join("cluster").join(name)
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.ports.peer + 100)
    }

    pub(crate) fn client(&self, who: &str) -> Client {
        let file = |end: &str| self.file(&format!("clients/{who}.{end}"));
        let ca = self.file("pki/nodes-ca.crt");
        Client::new(&[self.address()], &file("crt"), &file("key"), &ca, DEADLINE).unwrap()
    }

    /// `clearspan`, as somebody.
    pub(crate) fn command(&self, who: &str, args: &[&str]) -> String {
        let path = |name: String| self.file(&name).to_str().unwrap().to_owned();
        let [cert, key] = ["crt", "key"].map(|end| path(format!("clients/{who}.{end}")));
        let (ca, node) = (path("pki/nodes-ca.crt".to_owned()), self.address());
        let remote = [
            "--node",
            &node,
            "--cert",
            &cert,
            "--key",
            &key,
            "--ca",
            &ca,
            "--patience",
            "180",
        ];
        let (command, rest) = args.split_first().unwrap();
        let all: Vec<&str> = [*command]
            .into_iter()
            .chain(remote)
            .chain(rest.iter().copied())
            .collect();
        String::from_utf8(clearspan(&all).stdout).unwrap()
    }

    /// A figure of `/metrics`, named with its labels; 0 when it is not there.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let reply = self
            .client("operator-admin")
            .send(&Ask::get("/metrics"))
            .unwrap();
        let text = String::from_utf8(reply.body.to_vec()).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0, |value| value.parse().unwrap())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
