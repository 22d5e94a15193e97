//! The laws that the fuzzers test, over every input that was ever of interest.

#[path = "../../fuzz/laws.rs"]
mod laws;

use std::path::Path;

fn holds_over(folder: &str, law: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(folder);
    let mut held = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        law(&std::fs::read(entry.unwrap().path()).unwrap());
        held += 1;
    }
    assert!(held > 0, "{} is empty", folder.display());
}

#[test]
fn framing_holds() {
    holds_over("framing", laws::framing);
}

#[test]
fn index_holds() {
    holds_over("index", laws::index);
}

#[test]
fn sidecar_holds() {
    holds_over("sidecar", laws::sidecar);
}

#[test]
fn example_holds() {
    holds_over("example", laws::example);
}

#[test]
fn sequence_example_holds() {
    holds_over("sequence_example", laws::sequence_example);
}

#[test]
fn image_holds() {
    holds_over("image", laws::image);
}

#[test]
fn inflate_holds() {
    holds_over("inflate", laws::inflate);
}
