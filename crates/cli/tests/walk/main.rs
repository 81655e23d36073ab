//! The first walk of somebody new, as README.md and docs/operate.md print it: a lab, a business day through two sites, a site
//! that is lost in the middle and comes back. What comes out is what one embedded node makes of the same files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clearspan_lab::clock::{SECOND_NS, now_ns};
use serde_json::Value;

/// All of it takes half a minute; a loaded machine may need longer for any one step.
const DEADLINE_NS: u64 = 120 * SECOND_NS;
const POLL: Duration = Duration::from_millis(20);

/// Its reject time is a clock's, and the two runs have different clocks.
const BY_THE_CLOCK: &str = "0009-urgent-reject-time-passed.xml";

/// Whose numbered output is compared between sites: one of each home shard.
const COMPARED: [&str; 4] = ["ALFADEFFXXX", "BRAVFRPPXXX", "CHARGB2LXXX", "HOTLLULLXXX"];

/// A shell beside a checkout, as the pages expect it: `clearspan` is found, `examples/day` is there.
struct Shell {
    place: tempfile::TempDir,
    path: OsString,
}

impl Drop for Shell {
    fn drop(&mut self) {
        if self.lab().exists() {
            let _ = self.command("clearspan lab down").output();
        }
    }
}

impl Shell {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/day");
        copy(&example, &place.path().join("examples/day"));
        let binary = Path::new(env!("CARGO_BIN_EXE_clearspan"));
        let mut path = OsString::from(binary.parent().expect("a directory"));
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        Self { place, path }
    }

    fn lab(&self) -> PathBuf {
        self.place.path().join("lab")
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-ec", line])
            .current_dir(self.place.path())
            .env("PATH", &self.path)
            .env("CLEARSPAN_LAB", self.lab())
            .stdin(Stdio::null());
        command
    }

    /// What a line that succeeds prints.
    #[track_caller]
    fn run(&self, line: &str) -> String {
        let output = self.command(line).output().expect("a shell");
        let said = String::from_utf8_lossy(&output.stderr);
        let printed = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(output.status.success(), "{line}: {said}\n{printed}");
        printed
    }

    /// The same for a line that the pages print.
    #[track_caller]
    fn walk(&self, line: &str) -> String {
        on_pages(line);
        let env = "eval \"$(clearspan lab env 2>/dev/null)\"";
        self.run(&format!("{env}; {line}"))
    }

    /// What a command answers whom the lab's environment makes of `who`.
    #[track_caller]
    fn ask(&self, who: &str, command: &str) -> Value {
        let line = format!("eval \"$(clearspan lab env {who})\"; clearspan {command} --json");
        serde_json::from_str(&self.run(&line)).expect("JSON")
    }

    /// Waits until `status` will do; a cluster that is not well makes it fail, and it answers all the same.
    #[track_caller]
    fn until(&self, what: &str, will_do: impl Fn(&Value) -> bool) {
        let line = "eval \"$(clearspan lab env)\"; clearspan status --json";
        let start_ns = now_ns();
        loop {
            let output = self.command(line).output().expect("a shell");
            let status = serde_json::from_slice(&output.stdout).unwrap_or_default();
            if will_do(&status) {
                return;
            }
            assert!(now_ns() - start_ns < DEADLINE_NS, "{what}: {status}");
            std::thread::sleep(POLL);
        }
    }

    /// Waits until all is well, every data node leads something, and states agree.
    #[track_caller]
    fn until_well(&self) {
        self.until("all is well and every site leads", |status| {
            let each = |list: &str, holds: &dyn Fn(&Value) -> bool| {
                let all = status[list].as_array().map_or(&[][..], Vec::as_slice);
                !all.is_empty() && all.iter().all(holds)
            };
            status["well"] == true
                && each("nodes", &|node| {
                    let leads = node["leads"]
                        .as_array()
                        .is_some_and(|leads| !leads.is_empty());
                    node["kind"] == "witness" || leads
                })
                && each("shards", &|shard| shard["digests_agree"] == true)
        });
    }

    /// Every account of the cluster.
    fn accounts(&self) -> BTreeMap<String, Value> {
        let of = |bic: &String| self.ask("--as auditor", &format!("query account {bic}"));
        accounts(&self.participants(), of)
    }

    /// BICs of the example day.
    fn participants(&self) -> Vec<String> {
        let path = self.place.path().join("examples/day/participants.toml");
        let text = std::fs::read_to_string(path).expect("participants");
        let lines = text.lines();
        let bics = lines.filter_map(|line| line.strip_prefix("bic = \"")?.strip_suffix('"'));
        bics.map(str::to_owned).collect()
    }
}

/// A line that is walked stands on both pages; their lab is larger.
#[track_caller]
fn on_pages(line: &str) {
    let line = line.replace("A:1,B:1,W", "A:3,B:3,W");
    for (name, page) in [
        ("README.md", include_str!("../../../../README.md")),
        ("operate.md", include_str!("../../../../docs/operate.md")),
    ] {
        let found = page.lines().any(|of_page| of_page.trim() == line);
        assert!(found, "{name} does not say: {line}");
    }
}

/// Accounts without the log index at which they were asked for.
fn accounts(of: &[String], ask: impl Fn(&String) -> Value) -> BTreeMap<String, Value> {
    let found = of.iter().flat_map(|bic| {
        let answer = ask(bic);
        answer.as_array().cloned().expect("accounts")
    });
    let named = found.map(|mut account| {
        account.as_object_mut().expect("an account").remove("as_of");
        let name = format!(
            "{} {}",
            account["participant"], account["balance"]["currency"]
        );
        (name, account)
    });
    named.collect()
}

/// A directory without the one file whose outcome the clock decides.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else if entry.file_name() != BY_THE_CLOCK {
            std::fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// Files of a directory by name.
fn files(dir: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let read = entries.map(|entry| {
        let entry = entry.expect("an entry");
        (
            entry.file_name(),
            std::fs::read(entry.path()).expect("a file"),
        )
    });
    read.collect()
}

#[test]
fn a_day_through_two_sites_is_the_day_of_one_node_though_a_site_is_lost() {
    let shell = Shell::new();
    shell.walk("clearspan lab up --sites A:1,B:1,W:witness --km 70");
    shell.walk("eval \"$(clearspan lab env)\"");
    shell.walk("clearspan status");

    // A day of 62 messages, 4 a second; the site goes when the first have been taken in.
    let play = "clearspan lab play examples/day --sites A,B --per-second 4";
    on_pages(&format!("{play} &"));
    let mut play = shell
        .command(&format!("{play} --json"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    shell.until("payments are taken in", |status| {
        status["day"]["payments"]["accepted"].as_u64() >= Some(60)
    });
    shell.walk("clearspan lab kill A");
    shell.until("A is lost and B leads all", |status| {
        let leads = |site: usize| {
            status["sites"][site]["leads"]
                .as_array()
                .map_or(0, Vec::len)
        };
        leads(0) == 0 && leads(1) == 4
    });
    let mut printed = String::new();
    let mut pipe = play.stdout.take().expect("a pipe");
    std::io::Read::read_to_string(&mut pipe, &mut printed).expect("UTF-8");
    assert!(play.wait().expect("an end").success());
    let played: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(played["closed"], true);
    let noon = &played["sections"][1];
    assert!(noon["by_site"]["A"].as_u64() > Some(0), "{noon}");
    assert_eq!(noon["by_node"]["B1"], noon["messages"], "{noon}");

    // The site comes back, knows what was done without it, and leads again.
    shell.walk("clearspan lab restart A");
    shell.until_well();

    // Every site has the same bytes under the same numbers.
    for bic in COMPARED {
        let of = |site: &str| {
            let env = format!("eval \"$(clearspan lab env --as {bic} --site {site})\"");
            let receipts = format!("clearspan receipts --from 1 --out out/site-{site}");
            if bic == "HOTLLULLXXX" {
                on_pages(&env);
                on_pages(&receipts);
            }
            shell.run(&format!("{env}; {receipts}/{bic}"));
            files(&shell.place.path().join(format!("out/site-{site}/{bic}")))
        };
        let here = of("A");
        assert!(!here.is_empty(), "{bic}");
        assert!(here == of("B"), "the sites' receipts of {bic} differ");
    }

    // A participant asks for its own accounts.
    on_pages("clearspan query account HOTLLULLXXX");
    let own = shell.ask("--as HOTLLULLXXX --site A", "query account HOTLLULLXXX");
    assert!(own.as_array().is_some_and(|own| !own.is_empty()), "{own}");

    // Accounts are those of one embedded node.
    shell.run("clearspan day examples/day --out one");
    let one = accounts(&shell.participants(), |bic| {
        let line = format!("clearspan query one account {bic} --json");
        serde_json::from_str(&shell.run(&line)).expect("JSON")
    });
    let cluster = shell.accounts();
    assert_eq!(cluster, one);

    // A lab that is kept starts again where it stood; one that is not leaves nothing.
    shell.walk("clearspan lab down --keep");
    shell.walk("clearspan lab up");
    shell.until_well();
    assert_eq!(shell.accounts(), cluster);
    shell.walk("clearspan lab down");
    assert!(!shell.lab().exists());
}
