//! Layouts: what is written is read again; bytes that are short, left over or wrong are refused and never panic.

use std::fmt::Debug;

use clearspan_ledger::entry::{ChannelMessage, Command, Entry};
use clearspan_ledger::layout::Layout;
use clearspan_ledger::{AmountMinor, Ledger, PaymentNo, PaymentRef, ShardId};

use crate::bytes::{read, write};
use crate::chaos::history;
use crate::rng::Rng;

fn round_trip<T: Layout + Debug + PartialEq>(value: &T) -> Vec<u8> {
    let bytes = write(value);
    assert_eq!(read::<T>(&bytes).as_ref(), Ok(value));
    bytes
}

/// Each part of it alone is refused, and so is more than it.
fn only_whole<T: Layout>(bytes: &[u8], step: usize) {
    for len in (0..bytes.len()).step_by(step) {
        assert!(read::<T>(&bytes[..len]).is_err(), "{len} bytes of it");
    }
    let mut more = bytes.to_vec();
    more.push(0);
    assert!(read::<T>(&more).is_err());
}

#[test]
fn entries_round_trip_and_have_one_spelling() {
    let mut kinds = [false; 9];
    let mut messages = [false; 16];
    for seed in 0..60 {
        let cluster = history(seed ^ 0xE47, 200);
        let mut rng = Rng::new(seed);
        for entry in cluster.journals.iter().flatten() {
            let bytes = round_trip(entry);
            kinds[usize::from(write(&entry.command)[0])] = true;
            if let Command::Deliver { messages: some, .. } = &entry.command {
                for message in some {
                    messages[usize::from(round_trip::<ChannelMessage>(message)[0])] = true;
                }
            }
            if !rng.one_in(10) {
                continue;
            }
            only_whole::<Entry>(&bytes, 1);
            for _ in 0..20 {
                let mut wrong = bytes.clone();
                let at = rng.index(wrong.len());
                wrong[at] = u8::try_from(rng.below(256)).expect("a byte");
                // Whatever is read from changed bytes is written as these bytes: no two spellings of one entry.
                if let Ok(other) = read::<Entry>(&wrong) {
                    assert_eq!(write(&other), wrong);
                }
            }
        }
    }
    // Too rare for chance: a granted return that did not settle.
    let released = ChannelMessage::ReturnReleased {
        original: PaymentRef {
            shard: ShardId::new(3),
            payment: PaymentNo::new(u64::MAX),
        },
        amount: AmountMinor::MAX,
    };
    messages[usize::from(round_trip(&released)[0])] = true;
    assert_eq!(kinds, [true; 9], "every command was met");
    assert_eq!(messages, [true; 16], "every message between shards was met");
}

#[test]
fn damaged_snapshots_are_refused_or_read_but_never_panic() {
    for seed in 0..40 {
        let cluster = history(seed ^ 0x54A7, 200);
        let mut rng = Rng::new(seed);
        for ledger in &cluster.ledgers {
            let bytes = write(ledger);
            only_whole::<Ledger>(&bytes, 97);
            for _ in 0..60 {
                let mut wrong = bytes.clone();
                for _ in 0..=rng.index(3) {
                    let at = rng.index(wrong.len());
                    wrong[at] = rng.pick(&[0, 1, 2, 7, 0x7F, 0x80, 0xFF]);
                }
                let _ = read::<Ledger>(&wrong);
            }
        }
    }
}

#[test]
fn garbage_is_refused() {
    let mut rng = Rng::new(4);
    let mut accepted = 0;
    for _ in 0..20_000 {
        let len = rng.index(200);
        let bytes: Vec<u8> = (0..len)
            .map(|_| u8::try_from(rng.below(256)).expect("a byte"))
            .collect();
        accepted += u32::from(read::<Ledger>(&bytes).is_ok());
        accepted += u32::from(read::<ChannelMessage>(&bytes).is_ok());
        if let Ok(entry) = read::<Entry>(&bytes) {
            assert_eq!(write(&entry), bytes);
        }
    }
    assert!(accepted < 200, "{accepted}");
    // Lengths that promise more than there is ask for no memory.
    let mut bytes = vec![0; 17];
    bytes.extend([0xFF; 40]);
    assert!(read::<Entry>(&bytes).is_err());
}
