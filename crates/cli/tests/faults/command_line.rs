//! A cluster over three sites at 70 km, from the command line alone: sites are lost and come back, and service goes on.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clearspan_lab::clock::{SECOND_NS, now_ns};
use serde_json::Value;

/// Nothing here takes ten seconds; a loaded machine may need longer.
const DEADLINE_NS: u64 = 120 * SECOND_NS;
const POLL: Duration = Duration::from_millis(20);

/// A lab that is ended whatever becomes of the test.
struct Lab {
    dir: PathBuf,
    settings: Vec<(&'static str, String)>,
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.dir.exists() {
            if std::thread::panicking() {
                self.print_logs();
            }
            let _ = self.command(&["lab", "down"]).output();
        }
    }
}

impl Lab {
    fn up(dir: PathBuf, arguments: &[&str]) -> Self {
        let mut lab = Self {
            dir,
            settings: Vec::new(),
        };
        let up = [&["lab", "up"], arguments].concat();
        let report = lab.run(&up);
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let nodes = report["nodes"].as_array().expect("nodes").iter();
        let data = nodes.filter(|node| node["witness"] == false);
        let addresses: Vec<String> = data.map(|node| text(&node["client_address"])).collect();
        let operator = &report["operator"];
        lab.settings = vec![
            ("CLEARSPAN_NODE", addresses.join(",")),
            ("CLEARSPAN_CERT", text(&operator["certificate"])),
            ("CLEARSPAN_KEY", text(&operator["key"])),
            ("CLEARSPAN_CA", text(&operator["ca"])),
        ];
        lab
    }

    /// The ends of the nodes' logs, for a test that fails.
    fn print_logs(&self) {
        let logs = std::fs::read_dir(self.dir.join("logs"));
        for path in logs
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
        {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let end = &lines[lines.len().saturating_sub(80)..];
            println!("{}:\n{}", path.display(), end.join("\n"));
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clearspan"));
        command
            .args(arguments)
            .arg("--json")
            .env("CLEARSPAN_LAB", &self.dir)
            .envs(self.settings.iter().cloned());
        command
    }

    /// What a command that succeeds answers.
    fn run(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments).output().expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Waits until each node stands so: `ready`, `not-ready`, `killed`, `paused`.
    fn wait(&self, expected: [&str; 3]) {
        self.until(&["lab", "status"], |report| {
            let nodes = report["nodes"].as_array().into_iter().flatten();
            nodes
                .map(|node| node["state"].as_str())
                .eq(expected.map(Some))
        });
    }

    /// Waits until all is well on this business day, and states on both data nodes are the same.
    fn wait_for_day(&self, date: &str) {
        self.until(&["status"], |overview| {
            let mut shards = overview["shards"].as_array().into_iter().flatten();
            overview["well"] == true
                && overview["day"]["business_day"] == date
                && shards.all(|shard| shard["digests_agree"] == true)
        });
    }

    /// Asks until the answer will do.
    fn until(&self, arguments: &[&str], will_do: impl Fn(&Value) -> bool) {
        let start_ns = now_ns();
        loop {
            // A node that is not ready is a failure to `status`, and answers all the same.
            let output = self.command(arguments).output().expect("the binary runs");
            let answer = serde_json::from_slice(&output.stdout).unwrap_or_default();
            if will_do(&answer) {
                return;
            }
            assert!(
                now_ns() - start_ns < DEADLINE_NS,
                "in vain asked {arguments:?}: {answer}"
            );
            std::thread::sleep(POLL);
        }
    }
}

fn participants() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/day/participants.toml");
    path.display().to_string()
}

#[test]
fn service_outlives_a_site_and_the_site_comes_back_by_itself() {
    let scratch = tempfile::tempdir().expect("a directory");
    let lab = Lab::up(
        scratch.path().join("lab"),
        &["--sites", "A:1,B:1,W:witness", "--km", "70"],
    );
    lab.wait(["ready"; 3]);
    lab.run(&["admin", "found", &participants()]);

    // A site is lost: whatever its nodes led goes on elsewhere, and nobody is called.
    lab.run(&["lab", "kill", "A"]);
    lab.run(&["admin", "open-day", "2026-11-30"]);
    lab.wait(["killed", "ready", "ready"]);

    // Back again, it knows what was done without it.
    lab.run(&["lab", "restart", "A"]);
    lab.wait(["ready"; 3]);
    lab.wait_for_day("2026-11-30");

    lab.run(&["lab", "down"]);
    assert!(!lab.dir.exists());
}

#[test]
fn a_side_without_quorum_says_so_until_it_is_healed() {
    let scratch = tempfile::tempdir().expect("a directory");
    let lab = Lab::up(
        scratch.path().join("lab"),
        &["--sites", "A:1,B:1,W:witness", "--km", "70"],
    );
    lab.wait(["ready"; 3]);
    lab.run(&["lab", "cut", "A"]);
    lab.wait(["not-ready", "ready", "ready"]);
    lab.run(&["lab", "heal"]);
    lab.wait(["ready"; 3]);

    // A machine that hangs is no better than one that is gone.
    lab.run(&["lab", "pause", "B"]);
    lab.wait(["ready", "paused", "ready"]);
    lab.run(&["lab", "resume", "B"]);
    lab.wait(["ready"; 3]);
}
