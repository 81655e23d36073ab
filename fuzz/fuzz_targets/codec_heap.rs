//! Any bytes as a packed heap, and any bytes packed.

#![no_main]

use bytes::Bytes;
use clearspan_codec::heap;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = heap::unpack(&Bytes::copy_from_slice(bytes));
    assert_eq!(heap::unpack(&heap::pack(bytes)).as_deref(), Ok(bytes));
});
