//! The structure of a sampling: what a call that samples clips reads and gives, without its
//! values.
//!
//! A *clip* is a list of keyframe tracks in the *store*, a tensor that holds all clips of a
//! session; `ops::clips` says how clips lie there. A *lane* is what one thread computes: up to
//! four neighboring floats of one track. An operand says which clips are sampled, so that
//! calls of different clips merge.

/// Words in front of a call's layers.
pub const HEADER: u32 = 4;

/// Words of a layer.
pub const LAYER: u32 = 4;

/// The most layers of a call.
pub const MOST_LAYERS: u32 = 63;

/// Set in the second word of a header if rows have a weight for each layer.
pub const WEIGHTS: u32 = 1 << 16;

/// Set in the second word of a header if rows have a wrap mode for each layer.
pub const WRAPS: u32 = 1 << 17;

/// The structure of a sampling.
///
/// A call's operands are its rows and its header. A row has a time for each layer, then a weight
/// for each if [`WEIGHTS`] is set, then a wrap mode for each if [`WRAPS`] is set. The header is
/// `[lanes, layers and flags, word of the target, width]` and for each layer `[clip, wrap mode,
/// 1 if additive, weight]`. The call names the store as a resident tensor, and behind it the
/// target if results are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sampling {
    /// How many clips are blended.
    pub layers: u32,
    /// Lanes of each clip.
    pub lanes: u32,
    /// Floats of a row of the result.
    pub width: u32,
    /// Words of a row of operands.
    pub row: u32,
    /// Whether results are written to a resident tensor rather than given to the caller.
    pub is_stored: bool,
}

impl Sampling {
    /// Words of a call's header.
    pub const fn header(&self) -> u32 {
        HEADER + LAYER * self.layers
    }

    /// The word of a header that says where in the target the call writes.
    pub const TARGET: usize = 2;

    /// The words of the target that a call of so many rows with this header writes: the first,
    /// and how many.
    pub fn written(header: &[u32], rows: u32) -> (u32, u32) {
        (header[Self::TARGET], rows.saturating_mul(header[3]))
    }

    /// How many resident tensors a call names.
    pub const fn tensors(&self) -> u32 {
        1 + self.is_stored as u32
    }
}
