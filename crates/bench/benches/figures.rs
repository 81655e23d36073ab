//! The figures of `docs/performance.md`: `cargo bench -p clearspan-bench --bench figures -- [PART…] [--quick] [--json]`.

use std::path::PathBuf;
use std::process::ExitCode;

use clearspan_bench::measure::{Options, Part, measure};
use clearspan_bench::program::{Words, number, show};

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
    show(run.parts, run.json, Part::name, |part, figure| {
        measure(part, &run.options, figure)
    })
}

fn parse(args: impl Iterator<Item = String>) -> Result<Run, String> {
    let words = Words::read(args, &["--quick", "--json"])?;
    let dir = std::env::temp_dir();
    let mut options = if words.has("--quick") {
        Options::quick(dir)
    } else {
        Options::full(dir)
    };
    for (name, value) in &words.values {
        match name.as_str() {
            "--dir" => options.dir = PathBuf::from(value),
            "--payments" => options.payments = number(name, value)?,
            "--package-len" => options.package_len = number(name, value)?,
            "--participants" => options.participants = number(name, value)?,
            "--shards" => options.shards = number(name, value)?,
            "--repeats" => options.repeats = number(name, value)?,
            "--threads" => options.threads = number(name, value)?,
            "--urgent-per-second" => options.urgent_per_second = number(name, value)?,
            _ => return Err(format!("no option {name}")),
        }
    }
    Ok(Run {
        parts: words.parts(&Part::ALL, Part::from_name)?,
        options,
        json: words.has("--json"),
    })
}
