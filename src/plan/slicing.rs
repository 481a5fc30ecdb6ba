//! Where calls may be cut into parts of their rows, and what a part is.
//!
//! No bit depends on it: a part is computed by the program of the whole.

use std::sync::{Arc, Mutex, PoisonError};

use super::fuse::fuse;
use super::schedule::Schedule;
use crate::graph::chain::{self, Chain};
use crate::program::Sizes;

/// Calls are cut at multiples of so many rows.
pub(super) const GRAIN: u32 = 4;

/// Sizes that are kept: those of a batch's chunks, and of its last one.
const KEPT: usize = 4;

/// Where calls of a structure may be cut.
#[derive(Clone, Debug, Default)]
pub(super) enum Slicing {
    /// Nowhere.
    #[default]
    Never,
    /// Anywhere: each row of the operands is computed by itself.
    Rows,
    /// Anywhere: each row is an element of the only result, if there is more than one.
    Elements,
    /// Along the first axis, where the program of the whole computes both sides.
    Axis(Box<AxisRows>),
}

/// Sizes of so many rows. A mutex, so that recipes go from thread to thread.
type Known = Arc<Mutex<Vec<(u32, Option<Arc<Sizes>>)>>>;

/// The rows of a chain of which some are computed like all of them.
#[derive(Clone, Debug)]
pub(super) struct AxisRows {
    chain: Chain,
    pub(super) by: chain::ByRows,
    /// Those asked for last; `None` for rows that another program computes.
    known: Known,
}

impl AxisRows {
    /// The rows of a chain, if it is computed row by row.
    pub(super) fn of(chain: &Chain) -> Option<AxisRows> {
        Some(AxisRows {
            by: chain.by_rows()?,
            chain: chain.clone(),
            known: Known::default(),
        })
    }

    /// The program of the whole at work on some rows. `None` where so few rows
    /// are computed in another way, which might change a bit.
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
