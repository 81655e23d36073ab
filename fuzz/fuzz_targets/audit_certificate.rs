//! A certificate and its inputs, changed anywhere: the verifier finds something or passes it, and never panics.
//!
//! The input is the JSON of the certificate, a zero byte, and `inputs.csv`. Digests are set right where the JSON can be
//! read, so that mutations reach the checks behind them.

#![no_main]

use std::fs;
use std::path::PathBuf;

use clearspan_audit::{Certificate, Digest, verify_cycle};
use libfuzzer_sys::fuzz_target;

fn directory() -> PathBuf {
    // Files are the verifier's only input; in memory where there is such a place.
    let memory = PathBuf::from("/dev/shm");
    let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
    base.join(format!("clearspan-fuzz-{}", std::process::id()))
}

fn seal(json: &[u8], inputs: &[u8]) -> Option<Vec<u8>> {
    let mut certificate: Certificate = serde_json::from_slice(json).ok()?;
    certificate.inputs_blake3 = Digest::of(inputs);
    certificate.digest = certificate.computed_digest().ok()?;
    let mut sealed = certificate.to_canonical_json().ok()?;
    if sealed.last() != Some(&b'\n') {
        sealed.push(b'\n');
    }
    Some(sealed)
}

fuzz_target!(|bytes: &[u8]| {
    let Some(middle) = bytes.iter().position(|&byte| byte == 0) else { return };
    let (json, inputs) = (&bytes[..middle], &bytes[middle + 1..]);
    let directory = directory();
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join("inputs.csv"), inputs).expect("write");
    let certificate = seal(json, inputs).unwrap_or_else(|| json.to_vec());
    fs::write(directory.join("certificate.json"), certificate).expect("write");
    match verify_cycle(&directory, None) {
        Ok(verdict) => {
            for totals in verdict.totals.values() {
                assert_eq!(totals.set.count, totals.settled.count + totals.dropped.count);
            }
        }
        Err(findings) => assert!(!findings.is_empty()),
    }
});
