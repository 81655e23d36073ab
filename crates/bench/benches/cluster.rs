//! Figures of a cluster of real processes:
//! `cargo bench -p clearspan-bench --bench cluster -- [PART…] [--quick] [--json]`, after
//! `cargo build --release -p clearspan-cli`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use clearspan_bench::cluster::{Options, Part, measure};

const USAGE: &str = "cluster [PART...] [--quick] [--json] [--text] [--spread] [--program FILE] [--dir DIR] [--repeats N] \
                     [--payments N] [--package-len N] [--participants N] [--shards N] [--urgent-per-second N] \
                     [--bulk-per-second N]\nparts: relay reception latency catch-up nodes";

struct Run {
    parts: Vec<Part>,
    options: Options,
    json: bool,
}

fn main() -> ExitCode {
    let run = match parse(std::env::args().skip(1)) {
        Ok(run) => run,
        Err(what) => {
            eprintln!("{what}\nusage: {USAGE}");
            return ExitCode::from(2);
        }
    };
    for part in run.parts {
        let shown = measure(part, &run.options, &mut |figure| {
            if run.json {
                println!("{}", figure.to_json());
            } else {
                println!("{figure}");
            }
        });
        if let Err(error) = shown {
            eprintln!("{}: {error}", part.name());
            let mut cause = std::error::Error::source(&error);
            while let Some(error) = cause {
                eprintln!("  because: {error}");
                cause = error.source();
            }
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The release binary that was built beside this bench: `target/release/deps/cluster-…` to `target/release/clearspan`.
fn built() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let release = own.ancestors().nth(2).map(PathBuf::from);
    release.unwrap_or_default().join("clearspan")
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Run, String> {
    let (mut parts, mut flags) = (Vec::new(), Vec::new());
    let mut changes: Vec<(String, String)> = Vec::new();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--quick" | "--json" | "--text" | "--spread" => flags.push(arg),
            // Cargo says this to every bench.
            "--bench" => {}
            _ if arg.starts_with("--") => {
                let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
                changes.push((arg, value));
            }
            _ => parts.push(Part::from_name(&arg).ok_or_else(|| format!("no part {arg:?}"))?),
        }
    }
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    let dir = std::env::temp_dir();
    let mut options = if has("--quick") {
        Options::quick(built(), dir)
    } else {
        Options::full(built(), dir)
    };
    options.text = has("--text");
    options.spread = has("--spread");
    for (name, value) in changes {
        match name.as_str() {
            "--program" => options.program = PathBuf::from(value),
            "--dir" => options.dir = PathBuf::from(value),
            "--repeats" => options.repeats = number(&name, &value)?,
            "--payments" => options.payments = number(&name, &value)?,
            "--package-len" => options.package_len = number(&name, &value)?,
            "--participants" => options.participants = number(&name, &value)?,
            "--shards" => options.shards = number(&name, &value)?,
            "--urgent-per-second" => options.urgent_per_second = number(&name, &value)?,
            "--bulk-per-second" => options.bulk_per_second = number(&name, &value)?,
            _ => return Err(format!("no option {name}")),
        }
    }
    if parts.is_empty() {
        parts.extend(Part::ALL);
    }
    Ok(Run {
        parts,
        options,
        json: has("--json"),
    })
}

fn number<T: FromStr + PartialOrd + From<u8>>(name: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .ok()
        .filter(|number: &T| *number >= T::from(1))
        .ok_or_else(|| format!("{name} needs a whole number of at least 1"))
}
