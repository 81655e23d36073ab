//! Every document, byte for byte. `UPDATE_GOLDEN=1` writes the files anew.

use std::fs;
use std::path::PathBuf;

use crate::samples;

#[test]
fn documents_are_the_golden_ones() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    for (name, document) in samples::all() {
        let path = folder.join(format!("{name}.xml"));
        if update {
            fs::write(&path, &document).unwrap();
        }
        let golden = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(
            String::from_utf8_lossy(&document),
            String::from_utf8_lossy(&golden),
            "{name}"
        );
    }
}
