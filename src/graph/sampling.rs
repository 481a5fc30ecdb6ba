//! Samplings of clips: what a call of one reads and gives, without its values.
//!
//! A *clip* is a list of keyframe tracks in a *store*, a tensor that holds all of
//! a session's; `ops::clips` says how they lie there. A *lane* is what one thread
//! computes: up to four neighboring floats of one track. Which clips are sampled is
//! the call's data, so calls of different clips merge.

/// Words in front of a call's layers.
pub const HEADER: u32 = 4;

/// Words of a layer.
pub const LAYER: u32 = 4;

/// Layers of a call at most.
pub const MOST_LAYERS: u32 = 63;

/// Set in the second word of a header: rows have a weight for each layer.
pub const WEIGHTS: u32 = 1 << 16;

/// Set there: rows have a wrap mode for each layer.
pub const WRAPS: u32 = 1 << 17;

/// The structure of a sampling.
///
/// A call's operands are its rows and its header. A row has a time for each layer,
/// then a weight each, then a wrap mode each, as far as the call has them. The
/// header is `[lanes, layers and flags, word of the target, width]` and for each
/// layer `[clip, wrap mode, 1 if additive, weight]`. The store follows, and the
/// target if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sampling {
    /// Clips that are blended.
    pub layers: u32,
    /// Lanes of each of them.
    pub lanes: u32,
    /// Floats of a row of the result.
    pub width: u32,
    /// Words of a row of operands.
    pub row: u32,
    /// Whether results go to a tensor instead of the caller.
    pub is_stored: bool,
}

impl Sampling {
    /// Words of a call's header.
    pub const fn header(&self) -> u32 {
        HEADER + LAYER * self.layers
    }

    /// Tensors that a call names behind its operands.
    pub const fn tensors(&self) -> u32 {
        1 + self.is_stored as u32
    }
}
