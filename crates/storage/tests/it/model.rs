//! The real log against the one in memory, step by step, under seeded histories: replaced ends, snapshots that jump, cuts,
//! space given back, files reused, the log closed and opened.

use clearspan_replica::conformance::entry;
use clearspan_replica::{Append, HardState, LogPosition, LogStore, MemberId, MemoryLog, ShardId};
use clearspan_storage::Log;

use crate::support::{data_dir, new_dir, open_log, read, small};

/// Seed 25 is the story of entries that came back: cut behind a snapshot, moved by a purge, there again after an open.
const SEEDS: u64 = 30;
const STEPS: u64 = 150;
const SHARDS: u64 = 3;

/// Splitmix64: a history is its seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

fn part(draw: &mut Draw, model: &MemoryLog, term: u64, touched: &[ShardId]) -> Option<Append> {
    let shard = ShardId::new(u16::try_from(draw.below(SHARDS)).unwrap());
    // Several parts of one shard in a write are the suite's business; here each is drawn from what is stored.
    if touched.contains(&shard) {
        return None;
    }
    let found = model.shard(shard).unwrap();
    let mut part = Append {
        shard,
        must_sync: true,
        ..Append::default()
    };
    let mut next = found.last_index + 1;
    match draw.below(12) {
        // A new leader replaces the end.
        0 | 1 => next = found.first_index() + draw.below(next - found.base.index),
        // A snapshot replaces everything, ahead or not.
        2 => {
            let index = found.base.index + 1 + draw.below(40);
            part.install = Some(LogPosition { term, index });
            next = index + 1;
        }
        _ => {}
    }
    let count = draw.below(6);
    let bytes = usize::try_from(draw.below(4000)).unwrap() + 1;
    part.entries = (next..next + count)
        .map(|index| entry(shard, term, index, bytes))
        .collect();
    if draw.below(3) == 0 {
        part.hard_state = Some(HardState {
            term,
            vote: MemberId::new(draw.below(3)),
            commit: found.base.index,
        });
    }
    Some(part)
}

fn compare(real: &Log, model: &MemoryLog, at: &str) {
    assert_eq!(real.shards(), model.shards(), "{at}");
    for shard in model.shards() {
        let found = model.shard(shard).unwrap();
        assert_eq!(real.shard(shard).unwrap(), found, "{at}");
        let entries = model
            .entries(shard, found.first_index(), found.last_index + 1, u64::MAX)
            .unwrap();
        assert_eq!(read(real, shard), entries, "{at}");
    }
}

#[test]
fn the_real_log_follows_the_model() {
    for seed in 0..SEEDS {
        let (_dir, layout) = new_dir();
        let data = data_dir(&layout);
        let mut real = open_log(&data, small()).unwrap();
        let mut model = MemoryLog::new();
        let mut draw = Draw(seed);
        for step in 0..STEPS {
            let at = format!("seed {seed} step {step}");
            match draw.below(20) {
                0 => {
                    drop(real);
                    real = open_log(&data, small()).unwrap_or_else(|error| panic!("{at}: {error}"));
                    compare(&real, &model, &at);
                }
                1 => {
                    real.purge().unwrap();
                    compare(&real, &model, &at);
                }
                2..=4 => {
                    let shard = ShardId::new(u16::try_from(draw.below(SHARDS)).unwrap());
                    let found = model.shard(shard).unwrap();
                    let held = found.last_index - found.base.index;
                    if held > 0 {
                        let index = found.first_index() + draw.below(held);
                        let term = model.entries(shard, index, index + 1, 0).unwrap()[0].term;
                        real.compact(shard, LogPosition { term, index }).unwrap();
                        model.compact(shard, LogPosition { term, index }).unwrap();
                    }
                }
                _ => {
                    // Terms rise, as Raft's do.
                    let mut batch: Vec<Append> = Vec::new();
                    for _ in 0..=draw.below(2) {
                        let touched: Vec<ShardId> = batch.iter().map(|part| part.shard).collect();
                        batch.extend(part(&mut draw, &model, step + 1, &touched));
                    }
                    model
                        .append(&batch)
                        .unwrap_or_else(|error| panic!("{at}: {error}"));
                    real.append(&batch)
                        .unwrap_or_else(|error| panic!("{at}: {error}"));
                }
            }
        }
        compare(&real, &model, &format!("seed {seed} at its end"));
    }
}
