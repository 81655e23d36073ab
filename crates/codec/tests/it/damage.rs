//! Bytes from a disk or a peer: whatever they are, reading them gives a value or an error, never a panic.

use bytes::Bytes;
use clearspan_codec::{DecodeError, entry, heap, package, snapshot};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

use crate::golden::all;
use crate::samples::{Shards, TIME, commands};

/// Reads with every decoder. What an entry's bytes are read as is written as the same bytes: no two spellings of one
/// value, so equal states have equal digests.
fn read_all(bytes: &[u8]) {
    let shared = Bytes::copy_from_slice(bytes);
    if let Ok((time, command)) = entry::decode(shared.clone()) {
        assert_eq!(entry::encode(time, &command), bytes);
    }
    let _ = snapshot::decode(shared.clone());
    let _ = heap::unpack(&shared);
    if let Ok(package) = package::decode(shared) {
        assert_eq!(package.records().count(), package.len());
    }
}

/// A golden file of any layout.
fn golden() -> impl Strategy<Value = Vec<u8>> {
    let files: Vec<Vec<u8>> = ["entry", "snapshot", "heap", "package"]
        .into_iter()
        .flat_map(all)
        .map(|(_, bytes)| bytes)
        .collect();
    prop::sample::select(files)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1_130),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_bytes(mut bytes in vec(any::<u8>(), 0..400), kind in prop::sample::select(&b"ESP\x00\x01"[..])) {
        read_all(&bytes);
        // With the right header most reach further.
        if let [first, second, ..] = &mut bytes[..] {
            (*first, *second) = (kind, 1);
        }
        read_all(&bytes);
    }

    #[test]
    fn changed_bytes(mut bytes in golden(), changes in vec((any::<Index>(), any::<u8>()), 1..8)) {
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        read_all(&bytes);
    }

    /// Lengths and counts are where memory is lost: four bytes at once, all ones or nearly.
    #[test]
    fn huge_lengths(mut bytes in golden(), at in any::<Index>(), low in any::<u8>()) {
        let at = at.index(bytes.len());
        for (offset, value) in [low, 0xFF, 0xFF, 0xFF].into_iter().enumerate() {
            if let Some(byte) = bytes.get_mut(at + offset) {
                *byte = value;
            }
        }
        read_all(&bytes);
    }

    #[test]
    fn cut_and_joined(first in golden(), second in golden(), cut in any::<Index>(), from in any::<Index>()) {
        let mut bytes = first[..cut.index(first.len())].to_vec();
        bytes.extend_from_slice(&second[from.index(second.len())..]);
        read_all(&bytes);
    }
}

/// No part of a layout is the whole of another value, and nothing may follow it.
#[test]
fn only_the_whole_is_read() {
    for (name, command) in commands() {
        let bytes = entry::encode(TIME, &command);
        for len in 0..bytes.len() {
            assert!(
                entry::decode(bytes.slice(..len)).is_err(),
                "{name}: {len} bytes of it"
            );
        }
        let more = [&bytes[..], &[0]].concat();
        assert_eq!(
            entry::decode(Bytes::from(more)),
            Err(DecodeError::Trailing {
                offset_bytes: bytes.len(),
                left_bytes: 1
            })
        );
    }
    for ledger in Shards::at_the_end().ledgers {
        let bytes = Bytes::from(snapshot::encode(&ledger));
        for len in 0..bytes.len() {
            assert!(
                snapshot::decode(bytes.slice(..len)).is_err(),
                "{len} bytes of it"
            );
        }
        assert!(snapshot::decode(Bytes::from([&bytes[..], &[0]].concat())).is_err());
    }
}

#[test]
fn other_kinds_and_versions_are_named() {
    let mut bytes = entry::encode(TIME, &commands()[0].1).to_vec();
    for (kind, version) in [(b'S', 1), (b'E', 0), (b'E', 2)] {
        (bytes[0], bytes[1]) = (kind, version);
        let expected = DecodeError::Unknown {
            expected: "a journal entry",
            known: 1,
            kind,
            version,
        };
        assert_eq!(entry::decode(Bytes::from(bytes.clone())), Err(expected));
    }
    assert!(matches!(
        snapshot::decode(Bytes::from_static(b"E\x01")),
        Err(DecodeError::Unknown { .. })
    ));
}
