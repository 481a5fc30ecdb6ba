//! Chains of which some rows are computed like all of them: the same program
//! with the sizes of a chain of fewer rows.

use std::sync::{Arc, Mutex, PoisonError};

use super::fused::{Fused, Shaped};
use crate::graph::chain::{self, Chain};

/// Sizes that are kept: those of a batch's pieces, and of its last one.
const KEPT: usize = 4;

/// Programs of so many rows. A mutex, so that recipes go from thread to thread.
type Known = Arc<Mutex<Vec<(u32, Option<Arc<Shaped>>)>>>;

/// The rows of a chain.
#[derive(Clone, Debug)]
pub(super) struct ByRows {
    chain: Chain,
    by: chain::ByRows,
    /// Those asked for last; `None` for rows that another program computes.
    known: Known,
}

impl ByRows {
    /// The rows of a chain, if it is computed row by row.
    pub(super) fn of(chain: &Chain) -> Option<ByRows> {
        Some(ByRows {
            by: chain.by_rows()?,
            chain: chain.clone(),
            known: Known::default(),
        })
    }

    pub(super) fn rows(&self) -> u32 {
        self.by.rows
    }

    /// Words of a row of each input; 0 where every row reads all of it.
    pub(super) fn inputs(&self) -> &[u32] {
        &self.by.inputs
    }

    /// Words of a row of each result.
    pub(super) fn outputs(&self) -> &[u32] {
        &self.by.outputs
    }

    /// The program of the whole at work on some rows. `None` where so few rows
    /// are computed in another way, which might change a bit.
    pub(super) fn shaped(&self, rows: u32, whole: &Arc<Fused>) -> Option<Arc<Shaped>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, shaped)) = known.iter().find(|(of, _)| *of == rows) {
            return shaped.clone();
        }
        let chain = self.chain.of_rows(&self.by, rows);
        let mut shaped = Shaped::whole(&chain, &mut [whole].into_iter());
        shaped.row_words.clone_from(&self.by.inputs);
        let is_same = Arc::ptr_eq(&shaped.fused, whole);
        let shaped = is_same.then(|| Arc::new(shaped));
        if known.len() == KEPT {
            known.remove(0);
        }
        known.push((rows, shaped.clone()));
        shaped
    }
}
