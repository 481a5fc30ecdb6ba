//! One stage of one call: reads elements of its loads, evaluates expressions and stores values.
//!
//! In which order elements are computed is known to the files of maps, rows, products and
//! attention.

use std::ops::Range;

use super::row_ranges::Output;
use super::stage_call::{Numbers, Operands};
use super::strided::Places;
use crate::device::cpu::expr::Columns;
use crate::kernel::Expr;
use crate::program::{Access, Layout, Scalar, Stage};

/// Lines of rows that are to be computed, and the memory for that.
pub(super) struct RowLines<'a> {
    pub(super) lines: Range<usize>,
    pub(super) columns: &'a mut Columns,
    pub(super) output: Output<'a>,
}

/// Elements of a buffer at their places.
#[derive(Clone, Copy)]
pub(super) struct Elements<'a> {
    pub(super) places: Places<'a>,
    pub(super) count: usize,
}

/// A load, and where the words of its index begin in a call's entry.
#[derive(Clone, Copy)]
pub(super) struct IndexedLoad {
    pub(super) load: usize,
    pub(super) index: u32,
}

/// The axis that an index chooses from: its stride, and its length.
#[derive(Clone, Copy)]
pub(super) struct Axis {
    pub(super) step: u32,
    pub(super) limit: u32,
}

/// One stage of one call.
pub(super) struct Run<'a> {
    pub(super) stage: &'a Stage,
    pub(super) layout: &'a Layout,
    pub(super) sizes: Numbers<'a>,
    pub(super) operands: &'a Operands<'a>,
}

impl Run<'_> {
    /// Evaluates an expression and stores its values.
    pub(super) fn store(
        &self,
        columns: &mut Columns,
        value: &Expr,
        to: Elements<'_>,
        output: &mut Output<'_>,
    ) {
        let run = to.places.even(to.count);
        if run.count == to.count && run.step == 1 {
            let words = bytemuck::cast_slice_mut(output.words_at(run.at, to.count));
            columns.evaluate_to(value, self.operands.loads, words);
            return;
        }
        let values = columns.evaluate(value, self.operands.loads, to.count);
        output.store(to.places, values);
    }

    /// Puts each scalar in the first `elements` of its column.
    pub(super) fn fill_scalars(&self, columns: &mut Columns, elements: usize) {
        let loads = self.stage.loads.len();
        for (i, scalar) in self.stage.scalars.iter().enumerate() {
            let word = match scalar {
                Scalar::Constant(index) => self.operands.constants[*index as usize],
                Scalar::Count => self.word(self.layout.scalars[i]),
            };
            columns.fill(loads + i, f32::from_bits(word), elements);
        }
    }

    /// Has elements of a load read in place if they lie one after the other; `false` if they
    /// do not.
    pub(super) fn refer(&self, columns: &mut Columns, load: usize, from: Elements<'_>) -> bool {
        let source = self.operands.loads[load];
        let run = from.places.even(from.count);
        let start = run.at as usize;
        let is_plain = !matches!(self.stage.loads[load].access, Access::Indexed(_))
            && (run.count, run.step) == (from.count, 1)
            && source.get(start..start + from.count).is_some()
            && !self.is_index(load);
        if is_plain {
            columns.refer(load, start);
        }
        is_plain
    }

    /// Copies elements of a load to its column, from value number `to` on.
    ///
    /// A map's last thread may compute elements behind the call's last one, whose operands can
    /// lie outside of their source. Such an operand is 0, and nobody reads the result.
    pub(super) fn read(
        &self,
        columns: &mut Columns,
        of: IndexedLoad,
        from: Elements<'_>,
        to: usize,
    ) {
        let source = self.operands.loads[of.load];
        let to = to..to + from.count;
        if let Access::Indexed(by) = self.stage.loads[of.load].access {
            let axis = self.axis(of);
            let (indexes, column) = columns.pair(by as usize, of.load);
            let (indexes, column) = (&indexes[to.clone()], &mut column[to]);
            from.places.each(from.count, &mut |run| {
                for (i, at) in (run.first..).zip(run.places()) {
                    column[i] = indexed(source, axis, indexes[i].to_bits(), at);
                }
            });
            return;
        }
        let column = &mut columns.column(of.load)[to];
        from.places.each(from.count, &mut |run| {
            let to = &mut column[run.first..run.first + run.count];
            let start = run.at as usize;
            match source.get(start..start + run.count) {
                Some(words) if run.step == 1 => copy(words, to),
                _ if run.step == 0 => to.fill(element(source, start)),
                _ => {
                    for (to, at) in to.iter_mut().zip(run.places()) {
                        *to = element(source, at);
                    }
                }
            }
        });
    }

    /// A load's element at a place; where an index leads there, the index is value number
    /// `value` of its own column.
    pub(super) fn single(
        &self,
        columns: &mut Columns,
        of: IndexedLoad,
        place: u32,
        value: usize,
    ) -> f32 {
        let source = self.operands.loads[of.load];
        if let Access::Indexed(by) = self.stage.loads[of.load].access {
            let axis = self.axis(of);
            let (indexes, _) = columns.pair(by as usize, of.load);
            let index = indexes[value].to_bits();
            return indexed(source, axis, index, place as usize);
        }
        element(source, place as usize)
    }

    pub(super) fn axis(&self, of: IndexedLoad) -> Axis {
        Axis {
            step: self.word(of.index),
            limit: self.word(of.index + 1),
        }
    }

    /// Whether another load finds its elements by this one.
    pub(super) fn is_index(&self, load: usize) -> bool {
        let by = Access::Indexed(load as u32);
        self.stage.loads.iter().any(|of| of.access == by)
    }

    /// All dimensions: the entry holds all but the first, which has no end here.
    pub(super) fn dims(&self, at: u32, rank: u32) -> Vec<u32> {
        let mut dims = Vec::new();
        if rank > 0 {
            dims.push(u32::MAX);
            dims.extend(self.words(at, rank - 1));
        }
        dims
    }

    pub(super) fn word(&self, at: u32) -> u32 {
        self.sizes.words[(at - self.layout.sizes) as usize]
    }

    pub(super) fn words(&self, at: u32, count: u32) -> &[u32] {
        let at = (at - self.layout.sizes) as usize;
        &self.sizes.words[at..at + count as usize]
    }
}

/// Copies words to values as they are.
pub(super) fn copy(words: &[u32], values: &mut [f32]) {
    let words: &[f32] = bytemuck::cast_slice(words);
    values[..words.len()].copy_from_slice(words);
}

fn element(source: &[u32], at: usize) -> f32 {
    f32::from_bits(source.get(at).copied().unwrap_or_default())
}

/// The element that an index leads to from a place, or a NaN with the bits of an index that
/// leads beyond its axis.
fn indexed(source: &[u32], axis: Axis, index: u32, place: usize) -> f32 {
    if index < axis.limit {
        element(source, place.wrapping_add((index * axis.step) as usize))
    } else {
        f32::from_bits(index | 0x7fc0_0000)
    }
}
