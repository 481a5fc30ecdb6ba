//! Tokenizers of real models, 75 MB that `tools/tokenizers.sh` fetches, against Hugging Face's
//! crate. `make long` runs it; `cargo test` does only when asked for it by name.

#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "tests count in small numbers, and fail where they are wrong"
)]

use std::fs;
use std::path::PathBuf;

use framebatch_tokenizer_peer::{Peer, root, transcript};
use texts::{amount, texts};
use twins::Twins;

#[allow(dead_code, reason = "shared with the other tests of tokenizers")]
#[path = "../texts.rs"]
mod texts;
#[allow(dead_code, reason = "shared with the other tests of tokenizers")]
#[path = "../twins.rs"]
mod twins;

/// Every `tokenizer.json` in a folder of `models/tokenizers`.
fn files() -> Vec<PathBuf> {
    let folder = root().join("models/tokenizers");
    let entries = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}; run tools/tokenizers.sh", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path().join("tokenizer.json"))
        .filter(|file| file.exists())
        .collect();
    files.sort();
    files
}

#[test]
fn real_tokenizers_have_the_tokens_of_the_crate() {
    let files = files();
    assert!(files.len() > 2, "{files:?}; run tools/tokenizers.sh");
    for (seed, file) in (500..).zip(files) {
        let mut twins = Twins::of_file(&fs::read(file).unwrap());
        let own = include_str!("../../../README.md")
            .split("\n\n")
            .map(String::from);
        let all: Vec<String> = own.chain(texts(seed, amount())).collect();
        for text in &all {
            twins.check(text);
        }
        for (at, both) in all.windows(2).enumerate().step_by(4) {
            twins.check_within(4 + at % 37, &both[0]);
            twins.check_pair(8 + at % 61, (&both[0], &both[1]));
        }
    }
}
