//! The gates, the same on a laptop and in CI. `.ci/run` prepares a fresh machine and calls them.

use std::time::Instant;

use anyhow::{Context as _, bail};

use crate::run::{cargo, check, command};
use crate::{root, tidy};

type Step = (&'static str, fn() -> anyhow::Result<()>);

/// In this order, since what fails soonest comes first and the later ones use what the earlier ones built.
const STEPS: [Step; 7] = [
    ("fmt", || {
        check(cargo(&["fmt", "--all", "--check", "--", "-l"]))
    }),
    ("test", || check(cargo(&["test", "--workspace"]))),
    ("clippy", || {
        check(cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]))
    }),
    ("docs", docs),
    ("tidy", || tidy::run(false)),
    ("example", example),
    ("deny", deny),
];

pub(crate) fn run(names: &[&str]) -> anyhow::Result<()> {
    if let Some(unknown) = names
        .iter()
        .find(|name| STEPS.iter().all(|(step, _)| step != *name))
    {
        bail!("there is no step {unknown}");
    }
    for (name, step) in STEPS {
        if names.is_empty() || names.contains(&name) {
            println!("\n=== {name}");
            let watch = start();
            step().with_context(|| format!("step {name}"))?;
            println!("=== {name}: passed in {} s", watch.elapsed().as_secs());
        }
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "says how long a step took")]
fn start() -> Instant {
    Instant::now()
}

fn docs() -> anyhow::Result<()> {
    let mut command = cargo(&["doc", "--workspace", "--no-deps"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    check(command)
}

/// The first commands of the README, on the example: run, run again, verify, ask.
fn example() -> anyhow::Result<()> {
    let out = root().join("target/ci-example");
    if out.exists() {
        std::fs::remove_dir_all(&out).with_context(|| format!("remove {}", out.display()))?;
    }
    for arguments in [
        &["day", "examples/day", "--out", "target/ci-example"][..],
        &[
            "day",
            "examples/day",
            "--out",
            "target/ci-example",
            "--json",
        ],
        &["verify", "target/ci-example"],
        &["query", "target/ci-example", "cycle", "1"],
    ] {
        println!("$ clearspan {}", arguments.join(" "));
        check(cargo(&[&["run", "--quiet", "--"], arguments].concat()))?;
    }
    Ok(())
}

/// Bans, licences and sources. Advisories need their database from the network: `cargo deny check advisories`.
fn deny() -> anyhow::Result<()> {
    let installed = command("cargo-deny", &["--version"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !installed {
        println!("cargo-deny is not installed: skipped (cargo install cargo-deny --locked)");
        return Ok(());
    }
    check(command(
        "cargo-deny",
        &["--workspace", "check", "bans", "licenses", "sources"],
    ))
}
