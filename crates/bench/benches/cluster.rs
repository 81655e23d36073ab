//! Figures of a cluster of real processes:
//! `cargo bench -p clearspan-bench --bench cluster -- [PART…] [--quick] [--json]`, after
//! `cargo build --release -p clearspan-cli`.

use std::path::PathBuf;
use std::process::ExitCode;

use clearspan_bench::cluster::{Options, Part, measure};
use clearspan_bench::program::{Words, number, show};

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
    show(run.parts, run.json, Part::name, |part, figure| {
        measure(part, &run.options, figure)
    })
}

/// The release binary that was built beside this bench: `target/release/deps/cluster-…` to `target/release/clearspan`.
fn built() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let release = own.ancestors().nth(2).map(PathBuf::from);
    release.unwrap_or_default().join("clearspan")
}

fn parse(args: impl Iterator<Item = String>) -> Result<Run, String> {
    let words = Words::read(args, &["--quick", "--json", "--text", "--spread"])?;
    let dir = std::env::temp_dir();
    let mut options = if words.has("--quick") {
        Options::quick(built(), dir)
    } else {
        Options::full(built(), dir)
    };
    options.text = words.has("--text");
    options.spread = words.has("--spread");
    for (name, value) in &words.values {
        match name.as_str() {
            "--program" => options.program = PathBuf::from(value),
            "--dir" => options.dir = PathBuf::from(value),
            "--repeats" => options.repeats = number(name, value)?,
            "--payments" => options.payments = number(name, value)?,
            "--package-len" => options.package_len = number(name, value)?,
            "--participants" => options.participants = number(name, value)?,
            "--shards" => options.shards = number(name, value)?,
            "--urgent-per-second" => options.urgent_per_second = number(name, value)?,
            "--bulk-per-second" => options.bulk_per_second = number(name, value)?,
            _ => return Err(format!("no option {name}")),
        }
    }
    Ok(Run {
        parts: words.parts(&Part::ALL, Part::from_name)?,
        options,
        json: words.has("--json"),
    })
}
