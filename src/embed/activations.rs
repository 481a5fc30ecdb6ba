//! What a text takes of a device's memory while an encoder computes it.
//!
//! Numbers only. The weights are not counted: every text shares them.

/// Bytes of a float, and of an id.
const WORD: u64 = 4;

/// Words of the numbers that come with a text's ids, at their alignment.
const NUMBERS: u64 = 4;

/// The sizes that decide how much memory a text takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activations {
    /// Tokens of the text, `[CLS]` and `[SEP]` included.
    pub tokens: u64,
    /// Floats of a token's vector, and of the result.
    pub hidden: u64,
    /// Floats between the two products of a feed-forward network; of a gated one both halves.
    pub intermediate: u64,
}

impl Activations {
    /// Bytes of a text's ids, intermediates and vector together.
    ///
    /// Of a layer, three intermediates are in memory at once: the layer's input, of `hidden`
    /// floats a token, and two of the widest that a stage writes or reads beside it, which is
    /// query, key and value side by side (`3 · hidden`), or what is between the products of the
    /// feed-forward network. The next layer uses the same memory again, and the scores of an
    /// attention are never in memory, so neither layers nor heads count; an encoder of
    /// one layer takes less. With T tokens,
    /// H hidden and I intermediate floats that is `4 · (T · (2 · max(I, 3 · H) + H) + T + H)`,
    /// with T and H rounded up to 4 where they stand alone, and four words of numbers.
    /// An encoder that gates, or turns queries and keys by their places, takes up to half as much
    /// again.
    pub fn bytes(&self) -> u64 {
        let widest = self.intermediate.max(self.hidden.saturating_mul(3));
        let floats = widest.saturating_mul(2).saturating_add(self.hidden);
        let passing = self.tokens.saturating_mul(floats);
        let aligned = |words: u64| words.div_ceil(4).saturating_mul(4);
        let traveling = aligned(self.tokens)
            .saturating_add(aligned(self.hidden))
            .saturating_add(NUMBERS);
        passing.saturating_add(traveling).saturating_mul(WORD)
    }
}
