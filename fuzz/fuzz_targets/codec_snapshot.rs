//! Any bytes as a shard's state: an error or a state, and what a state is written as is read as the same state.

#![no_main]

use bytes::Bytes;
use clearspan_codec::snapshot;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(ledger) = snapshot::decode(Bytes::copy_from_slice(bytes)) {
        let written = snapshot::encode(&ledger);
        let again = snapshot::decode(Bytes::from(written.clone())).expect("what is written is read");
        assert_eq!(snapshot::encode(&again), written);
        assert_eq!(snapshot::state_digest(&again), snapshot::state_digest(&ledger));
    }
});
