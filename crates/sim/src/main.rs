//! `clearspan-sim`: runs seeds; see `cargo xtask sim`.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clearspan_sim::{Fault, Narrow, POINTS, Report, run, shrink};

const HELP: &str = "\
clearspan-sim --seeds N [--from SEED]    runs so many seeds; without --from they begin at a number of the clock's
clearspan-sim --seed X                   runs one and prints what happened
              --quiet                    without the trace
              --without FAULT,…          leaves kinds of faults out
              --commands N --faults N    at most so many
clearspan-sim --shrink X                 looks for less that fails as well
clearspan-sim --kept FILE                runs the seeds of a file: one a line, then its story
              --until-failure            stops at the first one
              --threads N                as many at once";

/// One seed in so many is run twice, and both runs must be the same.
const TWICE_EVERY: u64 = 100;

struct Arguments {
    seeds: Option<u64>,
    from: Option<u64>,
    seed: Option<u64>,
    shrink: Option<u64>,
    kept: Option<String>,
    quiet: bool,
    until_failure: bool,
    threads: usize,
    narrow: Narrow,
}

fn parse() -> Result<Arguments, String> {
    let mut arguments = Arguments {
        seeds: None,
        from: None,
        seed: None,
        shrink: None,
        kept: None,
        quiet: false,
        until_failure: false,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        narrow: Narrow::default(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--quiet" {
            arguments.quiet = true;
            continue;
        }
        if word == "--until-failure" {
            arguments.until_failure = true;
            continue;
        }
        let value = words
            .next()
            .ok_or_else(|| format!("{word} needs a value"))?;
        let number = || {
            value
                .parse::<u64>()
                .map_err(|_| format!("{word} needs a number, {value:?} is none"))
        };
        match word.as_str() {
            "--seeds" => arguments.seeds = Some(number()?),
            "--from" => arguments.from = Some(number()?),
            "--seed" => arguments.seed = Some(number()?),
            "--shrink" => arguments.shrink = Some(number()?),
            "--kept" => arguments.kept = Some(value),
            "--threads" => arguments.threads = usize::try_from(number()?).unwrap_or(1).max(1),
            "--commands" => arguments.narrow.commands_max = number()?,
            "--faults" => arguments.narrow.faults_max = number()?,
            "--without" => {
                for name in value.split(',') {
                    let fault = Fault::ALL
                        .into_iter()
                        .find(|fault| fault.name() == name)
                        .ok_or_else(|| format!("there is no fault {name:?}"))?;
                    arguments.narrow.without.push(fault);
                }
            }
            _ => return Err(format!("unknown: {word}")),
        }
    }
    Ok(arguments)
}

fn main() -> ExitCode {
    let arguments = match parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("error: {error}\n{HELP}");
            return ExitCode::from(2);
        }
    };
    if let Some(seed) = arguments.seed {
        let report = run(seed, &arguments.narrow, !arguments.quiet);
        for line in &report.trace {
            println!("{line}");
        }
        return tell(&report);
    }
    if let Some(seed) = arguments.shrink {
        let (narrow, report) = shrink(seed);
        println!("--seed {seed} {}", words(&narrow));
        return tell(&report);
    }
    if let Some(path) = &arguments.kept {
        return kept(path, arguments.threads);
    }
    match arguments.seeds {
        Some(count) => many(count, &arguments),
        None => {
            eprintln!("{HELP}");
            ExitCode::from(2)
        }
    }
}

/// The arguments that narrow a run so.
fn words(narrow: &Narrow) -> String {
    let mut words = Vec::new();
    if !narrow.without.is_empty() {
        let names: Vec<String> = narrow.without.iter().map(|fault| fault.name()).collect();
        words.push(format!("--without {}", names.join(",")));
    }
    if narrow.commands_max < u64::MAX {
        words.push(format!("--commands {}", narrow.commands_max));
    }
    if narrow.faults_max < u64::MAX {
        words.push(format!("--faults {}", narrow.faults_max));
    }
    words.join(" ")
}

fn tell(report: &Report) -> ExitCode {
    println!(
        "seed {}: {} events, {:.1} s simulated, {} commands, {} entries, {} faults, hash {:016x}",
        report.seed,
        report.events,
        report.simulated_ns as f64 / 1e9,
        report.commands,
        report.entries,
        report.faults,
        report.hash
    );
    match &report.failure {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            println!("seed {} FAILED: {failure}", report.seed);
            ExitCode::FAILURE
        }
    }
}

fn kept(path: &str, threads: usize) -> ExitCode {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("error: read {path}: {error}");
            return ExitCode::from(2);
        }
    };
    let mut seeds = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let word = line.split_whitespace().next().unwrap_or_default();
        match word.parse() {
            Ok(seed) => seeds.push(seed),
            Err(_) => {
                eprintln!("error: {path}: {word:?} is no seed");
                return ExitCode::from(2);
            }
        }
    }
    runs(&seeds, threads, &Narrow::default(), false, false)
}

fn many(count: u64, arguments: &Arguments) -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "fresh seeds come from the clock")]
    let fresh = || {
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| {
                since.as_secs() * 1000 + u64::from(since.subsec_millis())
            })
    };
    let from = arguments.from.unwrap_or_else(fresh);
    let seeds: Vec<u64> = (from..from.saturating_add(count)).collect();
    println!("seeds {from} to {}", from.saturating_add(count));
    runs(
        &seeds,
        arguments.threads,
        &arguments.narrow,
        true,
        arguments.until_failure,
    )
}

#[derive(Default)]
struct Sum {
    reached: BTreeMap<&'static str, u64>,
    pairs: BTreeSet<(Fault, Fault)>,
    failed: Vec<(u64, String)>,
    events: u64,
    simulated_ns: u64,
    commands: usize,
    entries: usize,
    faults: u64,
}

fn runs(
    seeds: &[u64],
    threads: usize,
    narrow: &Narrow,
    points: bool,
    until_failure: bool,
) -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "measures its own speed")]
    let began = Instant::now();
    let next = AtomicU64::new(0);
    let sum = Mutex::new(Sum::default());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&seed) = usize::try_from(at).ok().and_then(|at| seeds.get(at)) else {
                        return;
                    };
                    let mut report = run(seed, narrow, false);
                    if at.is_multiple_of(TWICE_EVERY) {
                        let again = run(seed, narrow, false);
                        if again.hash != report.hash || again.events != report.events {
                            report
                                .failure
                                .get_or_insert("two runs of it differ".to_owned());
                        }
                    }
                    let mut sum = sum.lock().expect("no thread panics while it adds");
                    if let Some(failure) = report.failure {
                        println!("seed {seed} FAILED: {failure}");
                        sum.failed.push((seed, failure));
                        if until_failure {
                            next.store(u64::MAX / 2, Ordering::Relaxed);
                        }
                    }
                    for (point, count) in report.reached {
                        *sum.reached.entry(point).or_default() += count;
                    }
                    let struck = &report.struck;
                    let pairs = struck.iter().flat_map(|one| {
                        let others = struck.iter().filter(move |other| one < *other);
                        others.map(|other| (*one, *other))
                    });
                    sum.pairs.extend(pairs);
                    sum.events += report.events;
                    sum.simulated_ns += report.simulated_ns;
                    sum.commands += report.commands;
                    sum.entries += report.entries;
                    sum.faults += report.faults;
                }
            });
        }
    });
    let sum = sum.into_inner().expect("no thread panics while it adds");
    let seconds = began.elapsed().as_secs_f64();
    if points {
        let reached = POINTS.iter().filter(|p| sum.reached.contains_key(*p));
        println!("points reached: {} of {}", reached.count(), POINTS.len());
        for point in POINTS {
            match sum.reached.get(point) {
                Some(count) => println!("{count:>10}  {point}"),
                None => println!("         -  {point}"),
            }
        }
    }
    let pairs = Fault::pairs();
    println!(
        "pairs of faults that struck in one run: {} of {}",
        sum.pairs.len(),
        pairs.len()
    );
    println!(
        "{} seeds in {seconds:.1} s: {:.1} simulated seconds and {:.0} events a second; {} commands, {} entries, {} faults",
        seeds.len(),
        sum.simulated_ns as f64 / 1e9 / seconds,
        sum.events as f64 / seconds,
        sum.commands,
        sum.entries,
        sum.faults
    );
    if sum.failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("{} FAILED", sum.failed.len());
    for (seed, failure) in &sum.failed {
        println!("  {seed}: {failure}");
    }
    ExitCode::FAILURE
}
