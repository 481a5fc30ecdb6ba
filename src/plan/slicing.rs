//! Row slicing: where a call may be cut, and the sizes of a slice.
//!
//! No bit of a result depends on slicing, because a slice is computed by the program of the
//! whole call. How large slices are is not decided here.

use std::sync::{Arc, Mutex, PoisonError};

use super::fuse::fuse;
use super::schedule::Schedule;
use crate::graph::chain::{self, Chain};
use crate::program::Sizes;

/// Calls are cut at multiples of so many rows.
pub(super) const GRAIN: u32 = 4;

/// Sizes that are kept, for the row counts used last: a batch's chunks have few different
/// ones.
const KEPT: usize = 4;

/// Where calls of a structure may be cut.
#[derive(Clone, Debug, Default)]
pub(super) enum Slicing {
    /// Nowhere.
    #[default]
    Never,
    /// Anywhere: each row of the operands is computed by itself.
    Rows,
    /// Between any elements of the only result, each of which counts as a row.
    Elements,
    /// Along the first axis, wherever the program of the whole call computes both sides.
    Axis(Box<AxisRows>),
}

/// The sizes of so many rows, or `None` where another program computes so many.
type SizesOfRows = (u32, Option<Arc<Sizes>>);

/// The first axis of a chain, along which it is computed row by row.
#[derive(Clone, Debug)]
pub(super) struct AxisRows {
    chain: Chain,
    pub(super) by: chain::ByRows,
    /// The row counts that were asked for last. Behind a mutex, because recipes go from thread
    /// to thread.
    known: Arc<Mutex<Vec<SizesOfRows>>>,
}

impl AxisRows {
    /// The axis of a chain, if the chain is computed row by row.
    pub(super) fn of(chain: &Chain) -> Option<AxisRows> {
        Some(AxisRows {
            by: chain.by_rows()?,
            chain: chain.clone(),
            known: Arc::default(),
        })
    }

    /// The sizes with which the program of the whole call computes `rows` rows. `None` where
    /// so few rows have another program, which might change a bit.
    pub(super) fn sizes(&self, rows: u32, whole: &Schedule) -> Option<Arc<Sizes>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, sizes)) = known.iter().find(|(of, _)| *of == rows) {
            return sizes.clone();
        }
        let (program, sizes) = fuse(&self.chain.of_rows(&self.by, rows));
        let sizes = (program == whole.program).then(|| Arc::new(sizes));
        if known.len() == KEPT {
            known.remove(0);
        }
        known.push((rows, sizes.clone()));
        sizes
    }
}
