//! The figures of `docs/performance.md`: `cargo bench -p clearspan-bench --bench figures -- [PART…] [--quick] [--json]`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use clearspan_bench::measure::{Options, Part, measure};

const USAGE: &str = "figures [PART...] [--quick] [--json] [--dir DIR] [--payments N] [--package-len N] \
                     [--participants N] [--shards N] [--repeats N] [--threads N] [--urgent-per-second N]";

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

fn parse(mut args: impl Iterator<Item = String>) -> Result<Run, String> {
    let dir = std::env::temp_dir();
    let (mut parts, mut quick, mut json) = (Vec::new(), false, false);
    let mut changes: Vec<(String, String)> = Vec::new();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--quick" => quick = true,
            "--json" => json = true,
            // Cargo says this to every bench.
            "--bench" => {}
            _ if arg.starts_with("--") => {
                let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
                changes.push((arg, value));
            }
            _ => parts.push(Part::from_name(&arg).ok_or_else(|| format!("no part {arg:?}"))?),
        }
    }
    let mut options = if quick {
        Options::quick(dir)
    } else {
        Options::full(dir)
    };
    for (name, value) in changes {
        match name.as_str() {
            "--dir" => options.dir = PathBuf::from(value),
            "--payments" => options.payments = number(&name, &value)?,
            "--package-len" => options.package_len = number(&name, &value)?,
            "--participants" => options.participants = number(&name, &value)?,
            "--shards" => options.shards = number(&name, &value)?,
            "--repeats" => options.repeats = number(&name, &value)?,
            "--threads" => options.threads = number(&name, &value)?,
            "--urgent-per-second" => options.urgent_per_second = number(&name, &value)?,
            _ => return Err(format!("no option {name}")),
        }
    }
    if parts.is_empty() {
        parts.extend(Part::ALL);
    }
    Ok(Run {
        parts,
        options,
        json,
    })
}

fn number<T: FromStr + PartialOrd + From<u8>>(name: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .ok()
        .filter(|number: &T| *number >= T::from(1))
        .ok_or_else(|| format!("{name} needs a whole number of at least 1"))
}
