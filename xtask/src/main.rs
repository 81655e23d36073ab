//! Automation of the repository: `cargo xtask ci | tidy | faults | golden | sim`.

#![forbid(unsafe_code)]

mod ci;
mod faults;
mod golden;
mod reference;
mod run;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask ci [STEP…]    the gates, all or those named: fmt test clippy docs tidy example deny
cargo xtask tidy          fails when generated documents differ from the code, or a link or citation leads nowhere
cargo xtask tidy --write  writes the generated documents
cargo xtask faults [--minutes N] [--seed S] [--scenario NAME]
                          faults on clusters of real processes until the time is up, 10 minutes unless said
cargo xtask golden        writes golden files of layouts; refuses to change one that is committed
cargo xtask sim           runs the seeds that once failed
cargo xtask sim --seeds N runs so many fresh seeds of the simulator; --seed X prints what happens in one, --shrink X looks
                          for less that fails as well; without a right argument it names all";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["ci", ref steps @ ..] => ci::run(steps),
        ["tidy"] => tidy::run(false),
        ["tidy", "--write"] => tidy::run(true),
        ["faults", ref options @ ..] => faults::run(options),
        ["golden"] => golden::run(),
        ["sim"] => sim(&["--kept", "crates/sim/seeds/kept.txt"]),
        ["sim", ref rest @ ..] => sim(rest),
        ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The simulator, with the assertions and the third-party builds of the tests; their profile is optimised enough.
fn sim(arguments: &[&str]) -> anyhow::Result<()> {
    let mut words = vec!["run", "--quiet", "-p", "clearspan-sim", "--"];
    words.extend(arguments);
    run::check(run::cargo(&words))
}

/// The repository.
fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_owned()
}
