//! Writes golden files of layouts, and refuses to change what is committed: a golden file changes only together with a
//! version number, and then it is a new file beside the old one.

use std::process::Command;

use anyhow::bail;

use crate::run::{cargo, check, command, output};

const GOLDEN: &str = "crates/codec/tests/golden";

pub(crate) fn run() -> anyhow::Result<()> {
    let mut write = golden_tests();
    write.env("UPDATE_GOLDEN", "1");
    check(write)?;
    let changed = output(command(
        "git",
        &[
            "diff",
            "--name-only",
            "--diff-filter=MD",
            "HEAD",
            "--",
            GOLDEN,
        ],
    ))?;
    let (states, layouts): (Vec<&str>, Vec<&str>) = changed
        .lines()
        .partition(|file| file.contains("/snapshot/"));
    if !states.is_empty() {
        // The layout may be the same: then entries now do something else to a ledger.
        println!(
            "changed: {}\nReplicas of two builds would differ: say so in CHANGELOG.md.",
            states.join(", ")
        );
    }
    if !layouts.is_empty() {
        bail!(
            "{} changed under the same version number: give the layout a new one and keep reading the old \
             (git checkout -- {GOLDEN} brings the files back)",
            layouts.join(", ")
        );
    }
    check(golden_tests())
}

fn golden_tests() -> Command {
    cargo(&[
        "test",
        "--quiet",
        "--package",
        "clearspan-codec",
        "--test",
        "it",
        "golden::",
    ])
}
