//! all-mpnet-base-v2 beside transformers in float64 (`tests/embed/make_reference.py`). `make long`
//! fetches the model, 438 MB, and runs it; `cargo test` does only when asked for it by name.

#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::cast_possible_truncation,
    reason = "tests count in small numbers"
)]
#![allow(clippy::unwrap_used, reason = "what a test cannot set up fails it")]
#![allow(clippy::print_stdout, reason = "`make long` records what it finds")]

#[allow(dead_code, reason = "each test target uses its own part")]
#[path = "../engines/mod.rs"]
mod engines;
#[allow(dead_code, reason = "each test target uses its own part")]
mod nearness;
mod reference;

use framebatch::Storage;

use crate::engines::both;
use crate::reference::Reference;

#[test]
fn mpnet_is_as_its_reference() {
    let mpnet = Reference {
        model: "mpnet",
        file: "mpnet-reference.jsonl",
        texts: 7,
        verify: true,
    };
    for gpu in both() {
        let engine = gpu.info().engine;
        let dtypes = [Storage::F32, Storage::F16, Storage::Int8];
        let found = mpnet.hold(&gpu, &dtypes);
        println!("fidelity on {engine:?}: {found:?}");
        assert!(found[0] == Some(1.0));
        for (fidelity, least) in found[1..].iter().zip([0.9999, 0.99]) {
            let fidelity = fidelity.expect("storage is tested");
            assert!(fidelity >= least && fidelity < 1.0, "{engine:?}: {found:?}");
        }
    }
}
