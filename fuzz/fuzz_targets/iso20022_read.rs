//! Any bytes as a message: reading never panics, and what it accepts holds together.

#![no_main]

use clearspan_iso20022::read::{Context, Incoming, Limits, heap, read};
use clearspan_ledger::AmountMinor;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let context = Context { sender: None, amount_max: AmountMinor::MAX, numbers_messages: &|_| true };
    let _ = heap::heap_context(bytes);
    let _ = heap::transaction_ids(bytes);
    match read(bytes, &Limits::default(), &context) {
        Err(fault) => assert!(fault.line >= 1),
        Ok(incoming) => {
            // Another reader, with tokens of its own, accepts what we accept.
            let text = std::str::from_utf8(bytes).expect("what is read is UTF-8");
            assert!(roxmltree::Document::parse(text).is_ok());
            let Incoming::Submission(read) = incoming else { return };
            let submission = read.submission;
            if !submission.payments.is_empty() {
                assert!(heap::heap_context(&submission.heap).is_some());
            }
            for payment in &submission.payments {
                let body = heap::transaction(&submission.heap, payment.body_offset, payment.body_len);
                let body = body.expect("a payment's bytes lie in the heap");
                assert!(body.starts_with(b"<"));
                assert!(body.ends_with(b">"));
                let _ = heap::transaction_ids(body);
            }
        }
    }
});
