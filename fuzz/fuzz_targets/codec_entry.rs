//! Any bytes as a journal entry: an error or a value, and a value has one spelling.

#![no_main]

use bytes::Bytes;
use clearspan_codec::entry;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((time, command)) = entry::decode(Bytes::copy_from_slice(bytes)) {
        assert_eq!(entry::encode(time, &command), bytes);
    }
});
