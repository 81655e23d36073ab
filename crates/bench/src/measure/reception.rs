//! Compact packages into the state machine, one core, in memory.

use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use clearspan_ledger::entry::Command;
use clearspan_ledger::{AmountMinor, ShardId, Timestamp};

use super::cluster::{Cluster, expect_accepted};
use super::workload::Workload;
use super::{Aim, Figure, MeasureError, Options, cpu};

const PART: &str = "reception";
/// Design 6: a four-core node could then take over ten million payments a second.
const AIM_NS: f64 = 250.0;

pub(super) fn measure(options: &Options, show: &mut dyn FnMut(Figure)) -> Result<(), MeasureError> {
    let mut layouts = vec![1, options.shards];
    layouts.dedup();
    for shards in layouts {
        let workload = Workload::new(options, shards)?;
        let entries: Vec<(ShardId, Bytes)> = (0..options.packages())
            .map(|number| {
                let (shard, submission) = workload.package(number);
                let command = Command::Submit(submission);
                let data = clearspan_codec::entry::encode(Timestamp::ZERO, &command);
                (shard, data)
            })
            .collect();
        let payments = options.packages() * u64::from(options.package_len);
        let (mut decodes, mut applies, mut sums, mut floors) = (vec![], vec![], vec![], vec![]);
        let mut longest = Vec::new();
        for _ in 0..options.repeats {
            let taken = receive(&workload, &entries)?;
            let per_payment = |time: Duration| time.as_nanos() as f64 / payments as f64;
            decodes.push(per_payment(taken.decode));
            applies.push(per_payment(taken.apply));
            sums.push(per_payment(taken.decode + taken.apply));
            longest.push(taken.longest.as_secs_f64() * 1e6);
            floors.push(per_payment(floor(payments)));
        }
        let of = format!("{shards} shard{}", if shards == 1 { "" } else { "s" });
        let unit = "ns/payment";
        show(
            Figure::new(PART, format!("decode and apply, {of}"), unit, sums)
                .aiming(Aim::AtMost(AIM_NS)),
        );
        show(Figure::new(
            PART,
            format!("  apply alone, {of}"),
            unit,
            applies,
        ));
        show(Figure::new(
            PART,
            format!("  decode alone (its memory's return included), {of}"),
            unit,
            decodes,
        ));
        show(Figure::new(
            PART,
            format!("  limit: two random writes, 40 bytes appended, {of}"),
            unit,
            floors,
        ));
        show(Figure::new(
            PART,
            format!("  longest entry (a package), {of}"),
            "us",
            longest,
        ));
    }
    Ok(())
}

struct Taken {
    decode: Duration,
    apply: Duration,
    longest: Duration,
}

fn receive(workload: &Workload, entries: &[(ShardId, Bytes)]) -> Result<Taken, MeasureError> {
    let mut cluster = Cluster::found(workload, AmountMinor::ZERO)?;
    let mut taken = Taken {
        decode: Duration::ZERO,
        apply: Duration::ZERO,
        longest: Duration::ZERO,
    };
    for (shard, data) in entries {
        let begun = cpu();
        let decoded = clearspan_codec::entry::decode(data.clone());
        let decode = cpu() - begun;
        let (_, command) = decoded
            .map_err(|error| MeasureError::Unexpected(format!("an encoded entry: {error}")))?;
        let entry = cluster.entry(*shard, command);
        let begun = cpu();
        let outcome = cluster.ledgers[shard.index()].apply(&entry);
        let apply = cpu() - begun;
        let begun = cpu();
        drop(entry);
        taken.decode += decode + (cpu() - begun);
        taken.apply += apply;
        taken.longest = taken.longest.max(apply);
        expect_accepted(&outcome.reply)?;
    }
    Ok(taken)
}

/// What memory alone asks for: for each payment one write to a random place in each of two indexes of 8-byte slots, half
/// full, which no cache holds, and 40 bytes of new memory filled in order.
fn floor(payments: u64) -> Duration {
    let slots = usize::try_from(payments * 2)
        .unwrap_or(usize::MAX)
        .next_power_of_two();
    // Written once, so that the pages are there as they would be.
    let (mut ids, mut contents) = (vec![1_u64; slots], vec![1_u64; slots]);
    let mut rows: Vec<[u64; 5]> = Vec::with_capacity(usize::try_from(payments).unwrap_or(0));
    let mask = slots - 1;
    let begun = cpu();
    for payment in 0..payments {
        let hash = payment.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let hash = (hash ^ hash >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let at = |hash: u64| usize::try_from(hash & mask as u64).unwrap_or(0);
        ids[at(hash)] = payment;
        contents[at(hash.rotate_left(32))] ^= payment;
        rows.push([payment; 5]);
    }
    let spent = cpu() - begun;
    black_box((ids, contents, rows));
    spent
}
