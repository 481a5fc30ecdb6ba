//! Calls whose rows lie end to end, as one call of more rows.
//!
//! A kernel sees entries and no calls, and a workgroup reads one entry. So of
//! many short calls a product would leave most of each tile empty. Where a
//! stage's next call begins just where the last one ends, in everything that it
//! reads and writes, the last one's entry takes its rows too. Each row is
//! computed as before. Which calls share a stage is not decided here.

use std::ops::Range;

use super::Segment;
use super::call::Shares;
use crate::program::{Access, Body, LANES, Layout, Stage, Width, tiles};

/// Where a stage's entries say how many rows there are, and how far apart.
#[derive(Debug)]
pub(super) struct Joint {
    grows: Grows,
    /// For each load, then for the result: the word of the stride along what
    /// grows; none where elements follow one another in their own places.
    steps: Vec<Option<u32>>,
    /// The dimensions behind the one that grows.
    behind: Range<usize>,
}

/// What of a call there can be more of.
#[derive(Clone, Copy, Debug)]
enum Grows {
    /// Nothing: calls stay their own.
    Nothing,
    /// Elements of a map, four a thread.
    Elements,
    /// Elements of a part of a concat: so many as this word says.
    Part(u32),
    /// Rows of so many threads.
    Rows(u32),
    /// Rows of a product: so many as this word says. The columns are the next.
    Product(u32),
}

impl Joint {
    /// Where the entries of a stage say so.
    pub(super) fn of(stage: &Stage) -> Joint {
        let layout = Layout::of(stage);
        let (grows, dims, axis) = match &stage.body {
            Body::Map(map) if map.is_strided => (Grows::Part(layout.count), map.rank, 0),
            Body::Map(map) => (Grows::Elements, map.rank, 0),
            // Strips are counted from a call's first, and heads look at all of its rows.
            Body::Rows(rows) if rows.is_cut => (Grows::Nothing, 0, 0),
            Body::Rows(rows) => match rows.width {
                Width::Tile(_) => {
                    let axis = rows.outer - 2;
                    (Grows::Product(layout.matrix(rows.outer)), rows.outer, axis)
                }
                Width::Thread => (Grows::Rows(1), rows.outer, 0),
                Width::Group => (Grows::Rows(LANES), rows.outer, 0),
            },
            Body::Attention(_) | Body::Named(..) | Body::Search(_) => (Grows::Nothing, 0, 0),
        };
        let behind = layout.outer as usize;
        let loads = stage.loads.iter().zip(&layout.strides);
        let mut steps: Vec<Option<u32>> = loads
            .map(|(load, strides)| {
                let is_placed = !matches!(load.access, Access::Flat | Access::Found);
                is_placed.then_some(strides + axis)
            })
            .collect();
        let is_placed = !matches!(grows, Grows::Elements);
        steps.push(is_placed.then_some(layout.result + axis));
        Joint {
            grows,
            steps,
            behind: behind..behind + dims.saturating_sub(1) as usize,
        }
    }

    /// Adds a call whose entry is what the entries have from `start` on: as more
    /// rows of the last call, or as one more.
    pub(super) fn push(&self, call: Segment, shares: &mut Shares, start: usize) {
        let (before, own) = shares.entries.split_at_mut(start);
        if let Some(last) = shares.segments.last_mut() {
            let before = &mut before[start - own.len()..];
            if let Some(threads) = self.join((last, before), (&call, own)) {
                last.rows = threads;
                shares.entries.truncate(start);
                return;
            }
        }
        shares.segments.push(call);
    }

    /// Gives an entry the rows of the next one too, if these lie behind its own.
    /// The threads of both.
    fn join(
        &self,
        (last, before): (&Segment, &mut [u32]),
        (next, own): (&Segment, &[u32]),
    ) -> Option<u32> {
        let loads = self.steps.len() - 1;
        let (of_last, of_next) = (self.extent(last, before)?, self.extent(next, own)?);
        let starts = before[..loads].iter().chain([&last.result]);
        let others = own[..loads].iter().chain([&next.result]);
        let is_behind = starts
            .zip(others)
            .zip(&self.steps)
            .all(|((start, other), step)| {
                let step = step.map_or(of_last.elements, |word| {
                    before[word as usize].wrapping_mul(of_last.steps)
                });
                other.wrapping_sub(*start) == step
            });
        let grown = match self.grows {
            Grows::Part(word) | Grows::Product(word) => word as usize,
            Grows::Nothing | Grows::Elements | Grows::Rows(_) => before.len(),
        };
        let is_same = |word: usize| word == grown || before[word] == own[word];
        if !is_behind || !(loads..own.len()).all(is_same) {
            return None;
        }
        let elements = of_last.elements.checked_add(of_next.elements)?;
        let threads = match self.grows {
            Grows::Part(_) => elements.div_ceil(4),
            Grows::Product(word) => {
                let rows = of_last.steps.checked_add(of_next.steps)?;
                product(rows, before[word as usize + 1])?
            }
            _ => last.rows.checked_add(next.rows)?,
        };
        if let Some(count) = before.get_mut(grown) {
            *count += own[grown];
        }
        Some(threads)
    }

    /// How much a call has of what grows; `None` where it is not a whole number
    /// of steps of the first dimension, or nothing.
    fn extent(&self, call: &Segment, entry: &[u32]) -> Option<Extent> {
        let elements = match self.grows {
            Grows::Nothing => return None,
            Grows::Elements => call.rows.checked_mul(4)?,
            Grows::Part(word) => entry[word as usize],
            Grows::Rows(threads) => call.rows / threads,
            Grows::Product(word) => {
                let steps = entry[word as usize];
                // Of a stack of several the rows do not lie end to end.
                let is_one = product(steps, entry[word as usize + 1]) == Some(call.rows);
                return (is_one && steps > 0).then_some(Extent { elements: 0, steps });
            }
        };
        let behind: u32 = entry[self.behind.clone()].iter().product();
        let is_whole = elements > 0 && elements.checked_rem(behind) == Some(0);
        is_whole.then(|| Extent {
            elements,
            steps: elements / behind,
        })
    }
}

/// Of what grows.
struct Extent {
    /// Places.
    elements: u32,
    /// Steps of the first dimension.
    steps: u32,
}

/// Threads of one product of so many rows and columns.
fn product(rows: u32, columns: u32) -> Option<u32> {
    tiles(rows, columns).checked_mul(LANES)
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "coalesce_tests.rs"]
mod tests;
