//! XML to compact packages, beside plain tokenising of the same bytes in the same run.

use std::hint::black_box;
use std::time::Duration;

use quick_xml::events::Event;
use quick_xml::reader::Reader;

use super::workload::{messages, submission};
use super::{Aim, Figure, MeasureError, Options, cpu, now};

const PART: &str = "xml";
/// Reading costs at most a quarter more than finding the tags alone.
const AIM_RATIO: f64 = 0.8;
/// Packages read for one value: 20 MB, more than the caches hold.
const PACKAGES: u32 = 16;

pub(super) fn measure(options: &Options, show: &mut dyn FnMut(Figure)) -> Result<(), MeasureError> {
    let messages = messages(options, PACKAGES, 0)?;
    let bytes: usize = messages.iter().map(Vec::len).sum();
    let payments = PACKAGES * options.package_len;
    for message in &messages {
        submission(message)?;
    }
    let megabytes = bytes as f64 / 1e6;
    let (mut tokenised, mut reads, mut rates, mut ratios) = (vec![], vec![], vec![], vec![]);
    let (mut packs, mut together, mut scaling) = (vec![], vec![], vec![]);
    for _ in 0..options.repeats.max(1) * 3 {
        let tokenise = time(|| {
            for message in &messages {
                black_box(plain(message));
            }
        });
        let read = time(|| {
            for message in &messages {
                black_box(submission(message).is_ok());
            }
        });
        let pack = time(|| {
            for message in &messages {
                let packed =
                    submission(message).map(|read| clearspan_codec::heap::pack(&read.heap));
                black_box(packed.is_ok());
            }
        });
        // Each thread reads all messages, so that none waits for another.
        let begun = now();
        let in_threads: Duration = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..options.threads)
                .map(|_| {
                    scope.spawn(|| {
                        time(|| {
                            for message in &messages {
                                black_box(submission(message).is_ok());
                            }
                        })
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_default())
                .sum()
        });
        let wall = begun.elapsed();
        let threads = options.threads as f64;
        tokenised.push(megabytes / tokenise.as_secs_f64());
        reads.push(megabytes / read.as_secs_f64());
        rates.push(f64::from(payments) / read.as_secs_f64());
        ratios.push(tokenise.as_secs_f64() / read.as_secs_f64());
        packs.push(megabytes / pack.as_secs_f64());
        together.push(megabytes * threads / wall.as_secs_f64());
        scaling.push(read.as_secs_f64() * threads / in_threads.as_secs_f64());
    }
    show(Figure::new(PART, "read, one core", "MB/s", reads));
    show(Figure::new(PART, "read, one core", "payments/s", rates));
    show(Figure::new(
        PART,
        "  limit: plain tokenising, one core",
        "MB/s",
        tokenised,
    ));
    show(
        Figure::new(PART, "read against plain tokenising", "ratio", ratios)
            .aiming(Aim::AtLeast(AIM_RATIO)),
    );
    show(Figure::new(
        PART,
        "read and pack for the log, one core",
        "MB/s",
        packs,
    ));
    show(Figure::new(
        PART,
        format!("read, {} threads, on the wall", options.threads),
        "MB/s",
        together,
    ));
    show(
        Figure::new(
            PART,
            format!(
                "a core's work beside {} others against alone",
                options.threads - 1
            ),
            "ratio",
            scaling,
        )
        .aiming(Aim::AtLeast(AIM_RATIO)),
    );
    Ok(())
}

/// CPU time of this thread.
fn time(run: impl FnOnce()) -> Duration {
    let begun = cpu();
    run();
    cpu() - begun
}

/// Plain tokenising, with quick-xml as it comes; the number of events.
fn plain(message: &[u8]) -> usize {
    let mut reader = Reader::from_reader(message);
    let mut events = 0;
    while !matches!(reader.read_event(), Ok(Event::Eof) | Err(_)) {
        events += 1;
    }
    events
}
