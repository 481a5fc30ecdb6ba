//! Where calls may be cut into parts of their rows, and what a part is.
//!
//! No bit depends on it: a part is computed by the program of the whole.

use std::sync::{Arc, Mutex, PoisonError};

use super::Recipe;
use super::fuse::fuse;
use super::schedule::Schedule;
use crate::graph::chain::{self, Chain};
use crate::program::Sizes;

/// Calls are cut at multiples of so many rows.
pub(super) const GRAIN: u32 = 4;

/// Places that are looked at for a cut.
const TRIES: usize = 4;

/// Sizes that are kept: those of a batch's pieces, and of its last one.
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
    fn sizes(&self, rows: u32, whole: &Schedule) -> Option<Arc<Sizes>> {
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

impl Recipe {
    /// Whether each row is computed by itself, so that a call may be cut anywhere.
    pub(super) fn is_by_row(&self) -> bool {
        match self.slicing {
            Slicing::Rows => true,
            // One element at a time is each call's own affair.
            Slicing::Elements => self.rows.is_some_and(|rows| rows > 1),
            Slicing::Never | Slicing::Axis(_) => false,
        }
    }

    /// The sizes of a part of so many rows, where these are not those of the whole.
    pub(super) fn sizes_of(&self, rows: u32) -> Option<Arc<Sizes>> {
        match &self.slicing {
            Slicing::Axis(along) => along.sizes(rows, &self.schedule),
            Slicing::Never | Slicing::Rows | Slicing::Elements => None,
        }
    }

    /// How many of a call's last `rows` rows go first if these are cut after
    /// about so many: a multiple of [`GRAIN`], which keeps all operands at
    /// multiples of 16 bytes whatever their width. `None` where they cannot be cut.
    pub(super) fn cut(&self, rows: u32, about: u32) -> Option<u32> {
        let first = (about / GRAIN * GRAIN).max(GRAIN);
        if self.is_by_row() {
            return (first < rows).then_some(first);
        }
        self.rows?;
        let suits = |rows| self.computes(rows);
        // Where both sides are computed by the same program; one row need not be.
        let near = (first..rows.saturating_sub(GRAIN - 1)).step_by(GRAIN as usize);
        near.take(TRIES)
            .find(|first| suits(*first) && (rows - first > *first || suits(rows - first)))
    }

    /// Whether so many rows of a call are computed as all of them are.
    pub(super) fn computes(&self, rows: u32) -> bool {
        let is_whole = || self.rows == Some(rows);
        self.is_by_row() || is_whole() || self.sizes_of(rows).is_some()
    }

    /// Rows of a part that is no larger than it must be.
    pub fn least(&self, rows: u32) -> u32 {
        match self.rows {
            Some(1) => rows,
            _ if self.is_by_row() => rows.min(GRAIN),
            Some(_) => rows.min(2 * GRAIN),
            None => rows,
        }
    }
}
