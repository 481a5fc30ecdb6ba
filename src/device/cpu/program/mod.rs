//! The stages that fusion makes, on the processor. They read the same entries as the kernels of
//! `kernel::generated`, and the order of their sums depends on sizes alone.
//!
//! A stage works through blocks of `BLOCK` elements, so that what lies between two operations
//! stays in the nearest cache. Where operands lie is the caller's business, and so is who
//! computes which lines of a result.

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
    /// For each load all words of its source.
    pub loads: &'a [&'a [u32]],
    /// The call's constants.
    pub constants: &'a [u32],
}

/// What the segment table says of a call: the numbers of its
/// [`StageSizes`](crate::program::StageSizes), and where its words lie.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a> {
    /// Threads that the call takes.
    pub threads: u32,
    /// For each load the place of its first element.
    pub offsets: &'a [u32],
    /// Words of the output in front of the call's result.
    pub result: u32,
    /// The words of the call's entry behind its addresses.
    pub words: &'a [u32],
}

/// One call of a stage.
#[derive(Clone, Copy, Debug)]
pub struct StageCall<'a> {
    /// What the segment table says of the call.
    pub numbers: Numbers<'a>,
    /// What the stage reads for the call.
    pub operands: &'a Operands<'a>,
}

/// Runs one stage for any number of calls, which share the runner's memory.
#[derive(Debug)]
pub struct Runner<'a> {
    stage: &'a Stage,
    layout: Layout,
    columns: Columns,
}

impl<'a> Runner<'a> {
    /// A runner of this stage.
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
        let call = StageCall {
            numbers: sizes,
            operands,
        };
        self.run_lines(call, lines, output);
    }

    /// Computes some lines of a call's result; `output` holds these lines.
    pub fn run_lines(&mut self, call: StageCall<'_>, lines: Range<usize>, output: Output<'_>) {
        let StageCall { numbers, operands } = call;
        let run = Run {
            stage: self.stage,
            layout: &self.layout,
            sizes: numbers,
            operands,
        };
        match &self.stage.body {
            Body::Map(map) => run.map(map, lines, &mut self.columns, output),
            Body::Rows(rows) => {
                let columns = &mut self.columns;
                let lines = RowLines {
                    lines,
                    columns,
                    output,
                };
                rows::run(&run, rows, lines);
            }
            Body::Attention(of) => attention::run(&run, of, lines, output),
            Body::Named(..) | Body::Search(_) => unreachable!("it has a twin of its own"),
        }
    }
}

/// Lines of rows that are to be computed, and the memory for that.
struct RowLines<'a> {
    lines: Range<usize>,
    columns: &'a mut Columns,
    output: Output<'a>,
}

/// Elements of a buffer at their places.
#[derive(Clone, Copy)]
struct Elements<'a> {
    places: Places<'a>,
    count: usize,
}

/// A load, and where the words of its index begin in a call's entry.
#[derive(Clone, Copy)]
struct IndexedLoad {
    load: usize,
    index: u32,
}

/// The axis that an index chooses from: its stride, and its length.
#[derive(Clone, Copy)]
struct Axis {
    step: u32,
    limit: u32,
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
                let places = Places {
                    offset,
                    dims,
                    strides: by,
                    first,
                };
                let from = Elements {
                    places,
                    count: elements,
                };
                if !self.refer(columns, load, from) {
                    let index = strides + map.rank;
                    self.read(columns, IndexedLoad { load, index }, from, 0);
                }
            }
            let to = Elements {
                places: result,
                count: elements,
            };
            self.store(columns, &map.value, to, &mut output);
        }
    }

    /// Evaluates an expression and stores its values.
    fn store(
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

    /// Has elements of a load read in place if they lie one after the other; `false` if they
    /// do not.
    fn refer(&self, columns: &mut Columns, load: usize, from: Elements<'_>) -> bool {
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
    fn read(&self, columns: &mut Columns, of: IndexedLoad, from: Elements<'_>, to: usize) {
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
    fn single(&self, columns: &mut Columns, of: IndexedLoad, place: u32, value: usize) -> f32 {
        let source = self.operands.loads[of.load];
        if let Access::Indexed(by) = self.stage.loads[of.load].access {
            let axis = self.axis(of);
            let (indexes, _) = columns.pair(by as usize, of.load);
            let index = indexes[value].to_bits();
            return indexed(source, axis, index, place as usize);
        }
        element(source, place as usize)
    }

    fn axis(&self, of: IndexedLoad) -> Axis {
        Axis {
            step: self.word(of.index),
            limit: self.word(of.index + 1),
        }
    }

    /// Whether another load finds its elements by this one.
    fn is_index(&self, load: usize) -> bool {
        let by = Access::Indexed(load as u32);
        self.stage.loads.iter().any(|of| of.access == by)
    }

    /// All dimensions: the entry holds all but the first, which has no end here.
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

/// The element that an index leads to from a place, or a NaN with the bits of an index that
/// leads beyond its axis.
fn indexed(source: &[u32], axis: Axis, index: u32, place: usize) -> f32 {
    if index < axis.limit {
        element(source, place.wrapping_add((index * axis.step) as usize))
    } else {
        f32::from_bits(index | 0x7fc0_0000)
    }
}
