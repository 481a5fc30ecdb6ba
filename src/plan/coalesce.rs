//! Coalesces calls whose rows lie end to end to one segment of more rows.
//!
//! A workgroup reads one entry, so that many short calls would leave most of each tile of a
//! product empty. Where a stage's next call begins just where the last one ends, in everything
//! that the stage reads and writes, the segment of the last call takes the rows of the next
//! one too. Each row is computed as before. Which calls share a dispatch is not decided here.

use std::ops::Range;

use super::Segment;
use super::call::SegmentList;
use crate::program::{Access, Body, LANES, Layout, Stage, Width, tiles};

/// How two neighboring calls of a stage are coalesced: where an entry says how many rows the
/// call has, and how far apart these are.
#[derive(Debug)]
pub(super) struct CoalesceRule {
    grows: Grows,
    /// For each load, then for the result: the entry's word of the stride along the first
    /// dimension; none where elements lie in their own places, one behind the other.
    steps: Vec<Option<u32>>,
    /// The entry's words of the dimensions behind the first one.
    behind: Range<usize>,
}

/// What a segment gets more of when it takes a call.
#[derive(Clone, Copy, Debug)]
enum Grows {
    /// Nothing: each call keeps a segment of its own.
    Nothing,
    /// Elements of a map that are not counted: four for each thread.
    Elements,
    /// Elements of a map, counted in this word of the entry.
    Part(u32),
    /// Rows of so many threads each.
    Rows(u32),
    /// Rows of a product, counted in this word of the entry; the next word counts columns.
    Product(u32),
}

impl CoalesceRule {
    /// The rule of a stage.
    pub(super) fn of(stage: &Stage) -> CoalesceRule {
        let layout = Layout::of(stage);
        let (grows, dims, axis) = match &stage.body {
            Body::Map(_) if stage.looks_anywhere() => (Grows::Nothing, 0, 0),
            Body::Map(map) if map.is_counted() => (Grows::Part(layout.count), map.rank, 0),
            Body::Map(map) => (Grows::Elements, map.rank, 0),
            // Strips are counted from a call's first row.
            Body::Rows(rows) if rows.is_cut => (Grows::Nothing, 0, 0),
            Body::Rows(rows) => match rows.width {
                Width::Tile(_) => {
                    let axis = rows.outer - 2;
                    (Grows::Product(layout.matrix(rows.outer)), rows.outer, axis)
                }
                Width::Thread => (Grows::Rows(1), rows.outer, 0),
                Width::Group => (Grows::Rows(LANES), rows.outer, 0),
            },
            // Attention reads all keys of a call; the other two count their rows themselves.
            Body::Attention(_) | Body::Named(..) | Body::Search(_) => (Grows::Nothing, 0, 0),
        };
        let behind = layout.outer as usize;
        let loads = stage.loads.iter().zip(&layout.strides);
        let mut steps: Vec<Option<u32>> = loads
            .map(|(load, strides)| {
                let is_placed = matches!(load.access, Access::Strided | Access::Indexed(_));
                is_placed.then_some(strides + axis)
            })
            .collect();
        let is_placed = !matches!(&stage.body, Body::Map(map) if !map.is_strided);
        steps.push(is_placed.then_some(layout.result + axis));
        CoalesceRule {
            grows,
            steps,
            behind: behind..behind + dims.saturating_sub(1) as usize,
        }
    }

    /// Adds a call whose entry begins at word `start` of the entries: as more rows of the last
    /// segment, or as one more segment.
    pub(super) fn push(&self, call: Segment, list: &mut SegmentList, start: usize) {
        let (before, own) = list.entries.split_at_mut(start);
        if let Some(last) = list.segments.last_mut() {
            let before = &mut before[start - own.len()..];
            let next = Entry {
                segment: call,
                words: own,
            };
            if let Some(threads) = self.grow(*last, before, next) {
                last.rows = threads;
                list.entries.truncate(start);
                return;
            }
        }
        list.segments.push(call);
    }

    /// Gives the last segment, with these words of its entry, the rows of the next call, if these
    /// lie behind its own. Returns the threads of both.
    fn grow(&self, last: Segment, before: &mut [u32], next: Entry<'_>) -> Option<u32> {
        let loads = self.steps.len() - 1;
        let Entry {
            segment: next,
            words: own,
        } = next;
        let (of_last, of_next) = (self.length(last, before)?, self.length(next, own)?);
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

    /// How much a segment has of what grows; `None` where that is nothing, or no whole number
    /// of steps along the first dimension.
    fn length(&self, call: Segment, entry: &[u32]) -> Option<Length> {
        let elements = match self.grows {
            Grows::Nothing => return None,
            Grows::Elements => call.rows.checked_mul(4)?,
            Grows::Part(word) => entry[word as usize],
            Grows::Rows(threads) => call.rows / threads,
            Grows::Product(word) => {
                let steps = entry[word as usize];
                // The rows of a stack of several products do not lie end to end.
                let is_one = product(steps, entry[word as usize + 1]) == Some(call.rows);
                return (is_one && steps > 0).then_some(Length { elements: 0, steps });
            }
        };
        let behind: u32 = entry[self.behind.clone()].iter().product();
        let is_whole = elements > 0 && elements.checked_rem(behind) == Some(0);
        is_whole.then(|| Length {
            elements,
            steps: elements / behind,
        })
    }
}

/// A call, and what its entry holds behind the address of the result.
struct Entry<'a> {
    segment: Segment,
    words: &'a [u32],
}

/// How much a segment has of what grows.
struct Length {
    /// Elements in all.
    elements: u32,
    /// Steps along the first dimension.
    steps: u32,
}

/// Threads of one product of so many rows and columns.
fn product(rows: u32, columns: u32) -> Option<u32> {
    tiles(rows, columns).checked_mul(LANES)
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "coalesce_tests.rs"]
mod tests;
