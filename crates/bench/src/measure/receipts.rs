//! Receipts of a netting cycle: the camt.054 notices of all its payments, formed on several threads, to memory only.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use clearspan_ledger::entry::{Command, CycleCommand};
use clearspan_ledger::message::Submission;
use clearspan_ledger::stream::ItemBody;
use clearspan_ledger::{AmountMinor, Ledger, MessageNo, ParticipantId, Reply, ShardId};
use clearspan_node::documents::{Cache, Documents, Settings, View};

use super::cluster::{Cluster, expect_accepted};
use super::workload::Workload;
use super::{Aim, Figure, MeasureError, Options, cpu, now};

const PART: &str = "receipts";
const AIM_SECONDS: f64 = 5.0;
/// Credit line, in minor units, with which everything settles.
const AMPLE_MINOR: u64 = 1_000_000_000_000_000;

/// Ledgers and packages in memory. Packages keep their heaps packed, as the package store does.
struct Memory {
    cluster: Cluster,
    workload: Workload,
    /// Which package of the workload a message is.
    packages: BTreeMap<(ShardId, MessageNo), u64>,
}

impl View for Memory {
    type Error = std::convert::Infallible;

    fn shards(&self) -> u16 {
        self.workload.shards
    }

    fn ledger(&self, shard: ShardId) -> &Ledger {
        &self.cluster.ledgers[shard.index()]
    }

    fn package(
        &self,
        shard: ShardId,
        message: MessageNo,
    ) -> Result<Option<Submission>, Self::Error> {
        let number = self.packages.get(&(shard, message));
        Ok(number.map(|&number| self.workload.package(number).1))
    }
}

pub(super) fn measure(options: &Options, show: &mut dyn FnMut(Figure)) -> Result<(), MeasureError> {
    let view = settled(options)?;
    let pages = pages(&view);
    let settings = Settings::new(view.workload.participants[0]);
    // Forwards are for information and take long: once.
    for (kind, forwards, repeats) in [
        ("notices", false, options.repeats),
        ("notices and forwards", true, 1),
    ] {
        let (mut walls, mut cores, mut sizes, mut limits) = (vec![], vec![], vec![], vec![]);
        for _ in 0..repeats {
            let formed = form(&view, &settings, &pages, options.threads, forwards)?;
            if formed.notices != pages.len() as u64 {
                return Err(MeasureError::Unexpected(format!(
                    "{} of {} notices were formed",
                    formed.notices,
                    pages.len()
                )));
            }
            walls.push(formed.wall.as_secs_f64());
            cores.push(formed.cpu.as_secs_f64() / options.threads as f64);
            sizes.push(formed.bytes as f64 / options.payments as f64);
            limits.push(copy(formed.bytes / options.threads.max(1) as u64).as_secs_f64());
        }
        let count = pages.len();
        let threads = options.threads;
        let per_core = Figure::new(
            PART,
            format!("{kind}, {count} numbers, CPU time per thread of {threads}"),
            "s",
            cores,
        );
        show(if forwards {
            per_core
        } else {
            per_core.aiming(Aim::AtMost(AIM_SECONDS))
        });
        let on_wall = format!("  {kind}, on the wall, {threads} threads");
        show(Figure::new(PART, on_wall, "s", walls));
        show(Figure::new(
            PART,
            format!("  {kind}: XML"),
            "bytes/payment",
            sizes,
        ));
        show(Figure::new(
            PART,
            format!("  limit: filling as many bytes of new memory, per thread of {threads}"),
            "s",
            limits,
        ));
    }
    Ok(())
}

/// A cluster in which one cycle has settled all packages.
fn settled(options: &Options) -> Result<Memory, MeasureError> {
    let workload = Workload::new(options, options.shards)?;
    let line = AmountMinor::new(AMPLE_MINOR).unwrap_or(AmountMinor::MAX);
    let mut cluster = Cluster::found(&workload, line)?;
    let mut packages = BTreeMap::new();
    for number in 0..options.packages() {
        let (shard, submission) = workload.package(number);
        let (reply, _) = cluster.apply(shard, Command::Submit(submission));
        expect_accepted(&reply)?;
        if let Reply::Taken { message, .. } = reply {
            packages.insert((shard, message), number);
        }
    }
    cluster.apply(ShardId::new(0), Command::Cycle(CycleCommand::Open));
    cluster.pump();
    Ok(Memory {
        cluster,
        workload,
        packages,
    })
}

/// The output numbers of all pages of netted credits, by participant.
fn pages(view: &Memory) -> Vec<(ParticipantId, u64)> {
    let mut pages = Vec::new();
    for ledger in &view.cluster.ledgers {
        for (participant, _) in ledger.directory().iter() {
            let items = ledger.stream(participant).into_iter();
            for item in items.flat_map(clearspan_ledger::stream::Stream::iter) {
                if matches!(item.body, ItemBody::NetCredits { .. }) {
                    let numbers = item.number..item.number + u64::from(item.pages);
                    pages.extend(numbers.map(|number| (participant, number)));
                }
            }
        }
    }
    pages
}

struct Formed {
    notices: u64,
    bytes: u64,
    wall: Duration,
    cpu: Duration,
}

fn form(
    view: &Memory,
    settings: &Settings,
    pages: &[(ParticipantId, u64)],
    threads: usize,
    forwards: bool,
) -> Result<Formed, MeasureError> {
    let cache = Cache::new();
    let (next, bytes, notices) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let begun = now();
    let work = || -> Result<Duration, MeasureError> {
        let begun = cpu();
        let documents = Documents::new(view, settings, &cache);
        while let Some(&(participant, number)) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
            let formed = if forwards {
                documents.documents(participant, number, false)
            } else {
                documents
                    .receipt(participant, number, false)
                    .map(|receipt| receipt.into_iter().collect())
            };
            let formed = formed
                .map_err(|error| MeasureError::Unexpected(format!("form a receipt: {error}")))?;
            let len: usize = formed.iter().map(|document| document.bytes.len()).sum();
            bytes.fetch_add(len as u64, Ordering::Relaxed);
            notices.fetch_add(u64::from(!formed.is_empty()), Ordering::Relaxed);
        }
        Ok(cpu() - begun)
    };
    let cpu = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .map(|thread| {
                thread.join().unwrap_or_else(|_| {
                    Err(MeasureError::Unexpected("a thread panicked".to_owned()))
                })
            })
            .sum::<Result<Duration, MeasureError>>()
    })?;
    Ok(Formed {
        notices: notices.into_inner(),
        bytes: bytes.into_inner(),
        wall: begun.elapsed(),
        cpu,
    })
}

/// CPU time of writing this many bytes once, a document's worth at a time.
fn copy(bytes: u64) -> Duration {
    const DOCUMENT_BYTES: usize = 64 << 10;
    let source = vec![b'x'; DOCUMENT_BYTES];
    let begun = cpu();
    for _ in 0..bytes / DOCUMENT_BYTES as u64 {
        let mut document = Vec::with_capacity(DOCUMENT_BYTES);
        document.extend_from_slice(&source);
        std::hint::black_box(document);
    }
    cpu() - begun
}
