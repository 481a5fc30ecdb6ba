//! The tokens of a text, as callers get them.

/// The tokens of a text and where they are from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// The ids, those of special tokens included.
    pub ids: Vec<u32>,
    /// For each token the bytes of the text that it stands for: from, to. Those of special tokens
    /// are (0, 0). Tokens may share bytes, and bytes may belong to no token.
    pub offsets: Vec<(u32, u32)>,
}

impl Tokens {
    /// The ids, and behind them the offsets in units of UTF-16, from and to of each token: what
    /// JavaScript counts texts in.
    pub fn in_utf16(&self, text: &str) -> Vec<u32> {
        // For each byte the units before its character, and for the end all.
        let (mut units, mut before) = (Vec::with_capacity(text.len() + 1), 0);
        for c in text.chars() {
            units.extend((0..c.len_utf8()).map(|_| before));
            before += if c.len_utf16() == 1 { 1 } else { 2 };
        }
        units.push(before);
        let unit = |byte: u32| units.get(byte as usize).copied().unwrap_or(before);
        let mut all = self.ids.clone();
        for (from, to) in &self.offsets {
            all.extend([unit(*from), unit(*to)]);
        }
        all
    }
}
