//! What a busy cluster puts out obeys the schemas of `iso20022`.

use std::path::Path;
use std::process::Command;

use super::cluster::{ALFA, BETA, GAMM};
use super::replay::busy;

/// Needs `xmllint` (Debian: libxml2-utils). Where it is missing the test says so and passes, unless `CI=true`.
#[test]
fn documents_obey_their_schemas() {
    if Command::new("xmllint").arg("--version").output().is_err() {
        let required = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!required, "xmllint is required when CI=true");
        eprintln!("xmllint is not installed: schemas not checked");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let cluster = busy();
    let mut files = Vec::new();
    for code in [ALFA, BETA, GAMM] {
        // Forwards are of the senders' versions, for which there may be no schema here.
        for name in ["pacs.002", "pacs.029", "camt.029", "camt.053", "camt.054"] {
            for document in cluster.all(code, name) {
                let path = directory
                    .path()
                    .join(format!("{code}-{}", document.file_name));
                std::fs::write(&path, &document.bytes).expect("written");
                files.push(path);
            }
        }
    }
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../iso20022/tests/xsd/all.xsd");
    let output = Command::new("xmllint")
        .args(["--noout", "--nonet", "--schema"])
        .arg(schema)
        .args(&files)
        .output()
        .expect("xmllint runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
