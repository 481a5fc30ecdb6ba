//! Between which characters merges of a BPE join tokens: where none does, a word can be cut.
//!
//! A merge joins the last character of one token and the first of another, so tokens on both sides
//! of two characters that no merge joins have nothing to do with each other.

use std::str::from_utf8;

/// Pairs of characters, each a bit; pairs share bits, so that some are in the set that were never
/// added.
#[derive(Default)]
pub(super) struct Joints(Vec<u32>);

/// How many bits tell pairs apart: 128 KB of them.
const BITS: u32 = 20;

impl Joints {
    /// Notes that a merge joins these tokens.
    pub(super) fn add(&mut self, left: &[u8], right: &[u8]) {
        self.0.resize(1 << (BITS - 5), 0);
        let at = place(left, right);
        self.0[at >> 5] |= 1 << (at & 31);
    }

    /// Whether tokens that end and begin as these do may join.
    pub(super) fn may_join(&self, left: &[u8], right: &[u8]) -> bool {
        let at = place(left, right);
        self.0
            .get(at >> 5)
            .is_some_and(|bits| bits >> (at & 31) & 1 == 1)
    }
}

fn place(left: &[u8], right: &[u8]) -> usize {
    let code = |c: Option<char>| c.map_or(0, u32::from);
    let last = code(
        from_utf8(left)
            .ok()
            .and_then(|text| text.chars().next_back()),
    );
    let first = code(from_utf8(right).ok().and_then(|text| text.chars().next()));
    let hash = last.wrapping_mul(0x9e37_79b1) ^ first.wrapping_mul(0x85eb_ca77);
    (hash >> (32 - BITS)) as usize
}
