//! The stages that fusion makes, on the processor: the same numbers in as
//! `kernel::generated`, and an order of sums that depends on sizes alone.
//!
//! Works through blocks of `BLOCK` elements, so that what lies between two
//! operations stays in the nearest cache. Where operands lie is the caller's
//! business, and so is who computes which lines of a result.

#![expect(
    clippy::cast_possible_truncation,
    reason = "no shape has more than 2^30 elements"
)]

mod attention;
mod fold;
mod gemm;
mod row_ranges;
mod rows;
mod strided;
mod tile;

pub(super) use self::row_ranges::of as lines_of;
pub use self::row_ranges::{Lines, Output};

use std::ops::Range;

use self::strided::Places;
use super::expr::{BLOCK, Columns};
use crate::kernel::Expr;
use crate::program::{Access, Body, Layout, Map, Scalar, Stage};

/// What a stage reads for one call.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'a> {
    /// For each load the words of its source, from the source's first on.
    pub loads: &'a [&'a [u32]],
    /// The call's constants.
    pub constants: &'a [u32],
}

/// A call's numbers, those of [`StageSizes`](crate::program::StageSizes).
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a> {
    /// Threads that the call takes.
    pub threads: u32,
    /// For each load the place of its first element.
    pub offsets: &'a [u32],
    /// How far behind the start of the output the result begins.
    pub result: u32,
    /// The words of the call's entry behind its addresses.
    pub words: &'a [u32],
}

/// Runs one stage for any number of calls, in the same memory.
#[derive(Debug)]
pub struct Runner<'a> {
    stage: &'a Stage,
    layout: Layout,
    columns: Columns,
}

impl<'a> Runner<'a> {
    /// A runner of a stage.
    pub fn new(stage: &'a Stage) -> Runner<'a> {
        let steps = match &stage.body {
            Body::Rows(rows) => rows.steps.len(),
            _ => 0,
        };
        Runner {
            stage,
            layout: Layout::of(stage),
            columns: Columns::new(stage.loads.len() + stage.scalars.len() + steps),
        }
    }

    /// The lines of a call's result.
    pub fn lines(&self, sizes: Numbers<'_>) -> Lines {
        row_ranges::of(self.stage, &self.layout, sizes)
    }

    /// Runs the stage for one call; `output` is the whole buffer that it writes to.
    pub fn run(&mut self, sizes: Numbers<'_>, operands: &Operands<'_>, output: &mut [u32]) {
        let lines = 0..self.lines(sizes).count;
        let output = Output {
            words: output,
            start: 0,
        };
        self.run_lines((sizes, operands), lines, output);
    }

    /// The same for some lines of the result; `output` is what holds them.
    pub fn run_lines(
        &mut self,
        (sizes, operands): (Numbers<'_>, &Operands<'_>),
        lines: Range<usize>,
        output: Output<'_>,
    ) {
        let run = Run {
            stage: self.stage,
            layout: &self.layout,
            sizes,
            operands,
        };
        match &self.stage.body {
            Body::Map(map) => run.map(map, lines, &mut self.columns, output),
            Body::Rows(rows) => rows::run(&run, (rows, lines), &mut self.columns, output),
            Body::Attention(of) => attention::run(&run, of, lines, output),
            Body::Named(..) | Body::Search(_) => unreachable!("it has a twin of its own"),
        }
    }
}

/// One stage of one call.
struct Run<'a> {
    stage: &'a Stage,
    layout: &'a Layout,
    sizes: Numbers<'a>,
    operands: &'a Operands<'a>,
}

impl Run<'_> {
    fn map(&self, map: &Map, lines: Range<usize>, columns: &mut Columns, mut output: Output<'_>) {
        let dims = self.dims(self.layout.outer, map.rank);
        self.fill_scalars(columns, BLOCK.min(lines.len()));
        for first in lines.clone().step_by(BLOCK) {
            let elements = BLOCK.min(lines.end - first);
            let result = Places {
                offset: self.sizes.result,
                dims: if map.is_strided { &dims } else { &[] },
                strides: match map.is_strided {
                    true => self.words(self.layout.result, map.rank),
                    false => &[],
                },
                first,
            };
            for (load, of) in self.stage.loads.iter().enumerate() {
                if of.is_in_place() {
                    let words = output.words_at(result.place(), elements);
                    copy(words, columns.column(load));
                    continue;
                }
                let offset = self.sizes.offsets[load];
                let strides = self.layout.strides[load];
                let (dims, by) = match of.access {
                    Access::Flat | Access::Found => (&[][..], &[][..]),
                    Access::Strided | Access::Indexed(_) => {
                        (&dims[..], self.words(strides, map.rank))
                    }
                };
                let at = Places {
                    offset,
                    dims,
                    strides: by,
                    first,
                };
                if !self.refer(columns, load, (at, elements)) {
                    self.read(columns, (load, strides + map.rank), (at, 0..elements));
                }
            }
            self.store(columns, &map.value, (result, elements), &mut output);
        }
    }

    /// Evaluates an expression and stores what it gives.
    fn store(
        &self,
        columns: &mut Columns,
        value: &Expr,
        (at, elements): (Places<'_>, usize),
        output: &mut Output<'_>,
    ) {
        let run = at.even(elements);
        if run.count == elements && run.step == 1 {
            let to = bytemuck::cast_slice_mut(output.words_at(run.at, elements));
            columns.evaluate_to(value, self.operands.loads, to);
            return;
        }
        let values = columns.evaluate(value, (self.operands.loads, elements));
        output.store(at, values);
    }

    /// Puts the scalars in their columns, for so many elements at once.
    fn fill_scalars(&self, columns: &mut Columns, elements: usize) {
        let loads = self.stage.loads.len();
        for (i, scalar) in self.stage.scalars.iter().enumerate() {
            let word = match scalar {
                Scalar::Constant(index) => self.operands.constants[*index as usize],
                Scalar::Count => self.word(self.layout.scalars[i]),
            };
            columns.fill(loads + i, f32::from_bits(word), elements);
        }
    }

    /// Has some elements of a load read where they lie, if they lie one after
    /// the other.
    fn refer(
        &self,
        columns: &mut Columns,
        load: usize,
        (at, elements): (Places<'_>, usize),
    ) -> bool {
        let source = self.operands.loads[load];
        let run = at.even(elements);
        let start = run.at as usize;
        let is_plain = !matches!(self.stage.loads[load].access, Access::Indexed(_))
            && (run.count, run.step) == (elements, 1)
            && source.get(start..start + elements).is_some()
            && !self.is_index(load);
        if is_plain {
            columns.refer(load, start);
        }
        is_plain
    }

    /// Reads some elements of a load to these places of its column; the words of
    /// an index begin at `index`.
    ///
    /// A map's last thread may have elements behind the call's last one. What
    /// they are made of can lie outside, is 0 then, and nobody reads them.
    fn read(
        &self,
        columns: &mut Columns,
        (load, index): (usize, u32),
        (at, to): (Places<'_>, Range<usize>),
    ) {
        let source = self.operands.loads[load];
        if let Access::Indexed(by) = self.stage.loads[load].access {
            let size = (self.word(index), self.word(index + 1));
            let (indexes, column) = columns.pair(by as usize, load);
            let (indexes, column) = (&indexes[to.clone()], &mut column[to.clone()]);
            at.each(to.len(), &mut |run| {
                for (i, at) in (run.first..).zip(run.places()) {
                    column[i] = indexed(source, size, (indexes[i].to_bits(), at));
                }
            });
            return;
        }
        let column = &mut columns.column(load)[to.clone()];
        at.each(to.len(), &mut |run| {
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

    /// A load's element at a place; an index is what is in the first of the
    /// places of its column.
    fn single(
        &self,
        columns: &mut Columns,
        (load, index): (usize, u32),
        (place, places): (u32, &Range<usize>),
    ) -> f32 {
        let source = self.operands.loads[load];
        if let Access::Indexed(by) = self.stage.loads[load].access {
            let size = (self.word(index), self.word(index + 1));
            let (indexes, _) = columns.pair(by as usize, load);
            let index = indexes[places.start].to_bits();
            return indexed(source, size, (index, place as usize));
        }
        element(source, place as usize)
    }

    /// Whether another load finds its elements by this one.
    fn is_index(&self, load: usize) -> bool {
        let by = Access::Indexed(load as u32);
        self.stage.loads.iter().any(|of| of.access == by)
    }

    /// Dimensions, of which the entry holds all but the first.
    fn dims(&self, at: u32, rank: u32) -> Vec<u32> {
        let mut dims = Vec::new();
        if rank > 0 {
            dims.push(u32::MAX);
            dims.extend(self.words(at, rank - 1));
        }
        dims
    }

    fn word(&self, at: u32) -> u32 {
        self.sizes.words[(at - self.layout.sizes) as usize]
    }

    fn words(&self, at: u32, count: u32) -> &[u32] {
        let at = (at - self.layout.sizes) as usize;
        &self.sizes.words[at..at + count as usize]
    }
}

fn copy(words: &[u32], values: &mut [f32]) {
    let words: &[f32] = bytemuck::cast_slice(words);
    values[..words.len()].copy_from_slice(words);
}

fn element(source: &[u32], at: usize) -> f32 {
    f32::from_bits(source.get(at).copied().unwrap_or_default())
}

/// The element behind a place that an index leads to, the NaN of the index if it
/// leads to none; `(step, limit)` are its.
fn indexed(source: &[u32], (step, limit): (u32, u32), (index, place): (u32, usize)) -> f32 {
    if index < limit {
        element(source, place.wrapping_add((index * step) as usize))
    } else {
        f32::from_bits(index | 0x7fc0_0000)
    }
}
