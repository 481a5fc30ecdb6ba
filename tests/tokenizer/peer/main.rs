//! The tests of `tests/tokenizer`, which ask Hugging Face's crate itself; and what they read is held to it.

#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "tests count in small numbers, and fail where they are wrong"
)]

use framebatch_tokenizer_peer::{Peer, root, transcript};

mod fixtures;
mod tables;
mod trained;

#[path = "../cases.rs"]
mod cases;
#[path = "../fuzz.rs"]
mod fuzz;
#[path = "../minilm.rs"]
mod minilm;
#[path = "../models.rs"]
mod models;
#[path = "../pair.rs"]
mod pair;
#[path = "../stages.rs"]
mod stages;
#[path = "../texts.rs"]
mod texts;
#[path = "../twins.rs"]
mod twins;
