//! Every golden document against the schemas of `tests/xsd`: what we write of each message, in the published order.
//!
//! Needs `xmllint` (Debian: libxml2-utils). Where it is missing the test says so and passes, unless `CI=true`.

use std::path::PathBuf;
use std::process::Command;

use crate::samples;

#[test]
fn documents_obey_their_schemas() {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests");
    if Command::new("xmllint").arg("--version").output().is_err() {
        let required = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!required, "xmllint is required when CI=true");
        eprintln!("xmllint is not installed: schemas not checked");
        return;
    }
    let output = Command::new("xmllint")
        .args(["--noout", "--nonet", "--schema"])
        .arg(tests.join("xsd/all.xsd"))
        .args(
            samples::all()
                .iter()
                .map(|(name, _)| tests.join(format!("golden/{name}.xml"))),
        )
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn schemas_refuse_another_order() {
    if Command::new("xmllint").arg("--version").output().is_err() {
        return;
    }
    let (_, document) = samples::all().swap_remove(0);
    let document = String::from_utf8(document).unwrap();
    let swapped = document
        .replacen("<OrgnlInstrId>INSTR-1</OrgnlInstrId>", "", 1)
        .replacen(
            "<TxSts>ACSC</TxSts>",
            "<TxSts>ACSC</TxSts><OrgnlInstrId>INSTR-1</OrgnlInstrId>",
            1,
        );
    assert_ne!(swapped, document);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("another-order.xml");
    std::fs::write(&path, swapped).unwrap();
    let schema = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/xsd/all.xsd");
    let output = Command::new("xmllint")
        .args(["--noout", "--nonet", "--schema"])
        .arg(schema)
        .arg(path)
        .output()
        .unwrap();
    // 3 is xmllint's code for a document that is not valid; a broken schema has another.
    assert_eq!(
        output.status.code(),
        Some(3),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
