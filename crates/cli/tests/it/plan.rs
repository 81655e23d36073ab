//! `clearspan plan`: what docs/plan.md prints is run, and what comes out is what the nodes take.

use clearspan_node::cluster::node_config::NodeConfig;
use serde_json::Value;

use crate::support::clearspan;

const PAGE: &str = include_str!("../../../../docs/plan.md");
/// Lines fit a terminal.
const COLUMNS_MAX: usize = 100;

fn ask(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    clearspan(&words).good()
}

fn json(line: &str) -> Value {
    serde_json::from_str(&ask(&format!("--json {line}"))).unwrap()
}

fn fault(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    clearspan(&words).error()
}

#[test]
fn the_pages_commands_run_and_fit_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let settings = dir.path().join("settings.toml");
    let cluster = dir.path().join("planned");
    let commands = PAGE
        .lines()
        .filter_map(|line| line.strip_prefix("    clearspan "));
    let commands: Vec<String> = commands
        .map(|line| {
            line.replace("settings.toml", settings.to_str().unwrap())
                .replace("/tmp/planned", cluster.to_str().unwrap())
        })
        .collect();
    assert!(commands.len() >= 8, "{commands:?}");
    for command in &commands {
        let shown = ask(command);
        if command.starts_with("plan ") {
            for line in shown.lines() {
                // Only the command at the end is as long as its paths.
                let fits = line.chars().count() <= COLUMNS_MAX || line.contains("clearspan init");
                assert!(fits, "{command}: {line}");
            }
        }
    }
    // What was written are settings that a node reads.
    let node = NodeConfig::read(&cluster.join("nodes/Oregon1/node.toml")).unwrap();
    assert_eq!(node.election_ns, 1_560_000_000);
}

#[test]
fn tables_fit_a_terminal_also_with_long_names_and_large_figures() {
    for line in [
        "plan --sites A:9,B:9,C:9,D:9,E:9 --km 300 --all --shards 32",
        "plan --preset tokyo-seoul-singapore --all --bulk-per-second 800000",
    ] {
        for shown in ask(line).lines() {
            assert!(shown.chars().count() <= COLUMNS_MAX, "{shown}");
        }
    }
}

#[test]
fn everything_is_in_the_json() {
    let plan = json("plan --sites A:1,B:1,W:witness --km 70 --survive site");
    assert_eq!(plan["cheapest"]["sites"], "A:1,B:1,W:witness");
    assert_eq!(plan["leaders"][0]["quorum_rtt_ns"], 700_000);
    assert_eq!(plan["singles"][0]["failure"], "site A");
    assert_eq!(plan["singles"][0]["serves"], "all");
    assert_eq!(plan["doubles"][0]["rpo"], "nothing-with-disks");
    assert_eq!(plan["links"].as_array().unwrap().len(), 6);
    let init = plan["init"].as_str().unwrap();
    assert_eq!(
        init,
        "clearspan init DIR --sites A:1,B:1,W:witness --shards 4"
    );
}

#[test]
fn faults_name_the_argument() {
    for (line, says) in [
        ("plan", "give --sites"),
        ("plan --sites A", "--sites: \"A\" is no site"),
        ("plan --sites W:witness", "--sites: no site has a data node"),
        (
            "plan --sites A:1,A:1 --km 1",
            "--sites: site A is named twice",
        ),
        (
            "plan --sites A:1,B:1 --km far",
            "\"far\" is no distance in km",
        ),
        (
            "plan --sites A:1,B:1,C:1 --rtt-ms A-B=1",
            "nothing is said of A-C",
        ),
        ("plan --sites A:1 --copies 2", "--copies 2: give 1 to 1"),
        ("plan --sites A:1 --shards 0", "--shards 0: give 1 to 256"),
        ("plan --sites A:1 --local-ms slow", "--local-ms"),
        (
            "plan --sites A:1 --survive moon",
            "--survive: \"moon\" is no failure",
        ),
        (
            "plan --sites A:1,B:1 --km 1 --survive site",
            "--survive site: no layout",
        ),
        (
            "plan --sites A:1 --write /no/such/place",
            "write /no/such/place",
        ),
    ] {
        let fault = fault(line);
        assert!(fault.contains(says), "{line}: {fault}");
    }
}
