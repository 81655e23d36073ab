//! Any bytes as a compact package, with a digest that fits so that the rest is looked at.

#![no_main]

use bytes::Bytes;
use clearspan_codec::{heap, package};
use clearspan_iso20022::fields;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut whole = b"P\x01".to_vec();
    whole.extend(xxhash_rust::xxh3::xxh3_128(bytes).to_le_bytes());
    whole.extend(bytes);
    let Ok(package) = package::decode(Bytes::from(whole)) else {
        return;
    };
    assert_eq!(package.records().count(), package.len());
    let _ = heap::unpack(&package.heap);
    let _ = fields::check(&package.heap, package.kind);
});
