//! Recipes of samplings of clips: lanes of rows as threads.
//!
//! Lanes, widths and clips are the calls' own, so that calls of any clips are
//! computed together. What the samplers do is the kernel's business.

use super::recipe::Extent;
use super::{Dispatch, Operand, Segment, Slot};
use crate::graph::sampling::Sampling;
use crate::kernel::{Kernel, MAX_OPERANDS, Settings};

/// A call's rows, and its header.
pub(super) fn operands(sampling: &Sampling) -> Vec<Extent> {
    vec![Extent::rows(sampling.row), Extent::fixed(sampling.header())]
}

/// Words of a result: none where it goes to a tensor.
pub(super) fn result(sampling: &Sampling) -> Extent {
    if sampling.is_stored {
        Extent::default()
    } else {
        Extent::rows(sampling.width)
    }
}

/// A call's share: where its rows, its header and its result begin.
pub(super) fn segment(
    sampling: &Sampling,
    rows: u32,
    (places, result): (impl Iterator<Item = u32>, u32),
) -> Segment {
    let mut operands = [0; MAX_OPERANDS];
    for (operand, place) in operands.iter_mut().zip(places) {
        *operand = place;
    }
    Segment {
        rows: rows.saturating_mul(sampling.lanes),
        // The header says where in a tensor.
        result: if sampling.is_stored { 0 } else { result },
        operands,
    }
}

/// The step for calls that share their store and their target.
pub(super) fn dispatch(segments: Vec<Segment>, set: &[u32]) -> Dispatch {
    let rows = |slot| Operand::Rows { slot, words: 0 };
    let tensor = |index: usize| set.get(index).map(|tensor| Slot::resident(*tensor));
    Dispatch {
        kernel: Kernel::Clip,
        settings: Settings::default(),
        operands: vec![rows(Slot::INPUTS), rows(tensor(0).unwrap_or(Slot::INPUTS))],
        output: tensor(1).unwrap_or(Slot::RESULTS),
        row_words: 0,
        calls: u32::try_from(segments.len()).expect("few calls"),
        segments,
        entries: Vec::new(),
    }
}
