//! The stages that fusion makes, on the processor: the obvious reference of
//! `kernel::generated`, with the same numbers in and the same order of sums.
//!
//! Works through blocks of [`BLOCK`] elements, so that what lies between two
//! operations stays in the nearest cache. Where operands lie is the caller's
//! business.

#![expect(
    clippy::cast_possible_truncation,
    reason = "no shape has more than 2^30 elements"
)]

mod attention;
mod rows;
mod tile;

use super::expr::{BLOCK, Columns};
use crate::plan::fuse::{Access, Body, Layout, Map, Scalar, Stage};

/// What a stage reads for one call.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'a> {
    /// For each load the words of its source, from the source's first on.
    pub loads: &'a [&'a [u32]],
    /// The call's constants.
    pub constants: &'a [u32],
}

/// A call's numbers, those of [`StageSizes`](crate::plan::fuse::StageSizes).
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
            Body::Map(_) | Body::Attention(_) => 0,
            Body::Rows(rows) => rows.steps.len(),
        };
        Runner {
            stage,
            layout: Layout::of(stage),
            columns: Columns::new(stage.loads.len() + stage.scalars.len() + steps),
        }
    }

    /// Where the numbers lie in a call's entry.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Runs the stage for one call; `output` is the whole buffer that it writes to.
    pub fn run(&mut self, sizes: Numbers<'_>, operands: &Operands<'_>, output: &mut [u32]) {
        let run = Run {
            stage: self.stage,
            layout: &self.layout,
            sizes,
            operands,
        };
        match &self.stage.body {
            Body::Map(map) => run.map(map, &mut self.columns, output),
            Body::Rows(rows) => rows::run(&run, rows, &mut self.columns, output),
            Body::Attention(of) => attention::run(&run, of, output),
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
    fn map(&self, map: &Map, columns: &mut Columns, output: &mut [u32]) {
        let count = if map.is_strided {
            self.word(self.layout.count) as usize
        } else {
            output.len()
        };
        let dims = self.dims(self.layout.outer, map.rank);
        self.fill_scalars(columns, count.min(BLOCK));
        for first in (0..count).step_by(BLOCK) {
            let elements = BLOCK.min(count - first);
            for (load, of) in self.stage.loads.iter().enumerate() {
                let offset = self.sizes.offsets[load];
                let strides = self.layout.strides[load];
                if of.is_in_place() {
                    let words = &output[first..first + elements];
                    copy(words, columns.column(load));
                    continue;
                }
                let at = match of.access {
                    Access::Flat => Places::flat(offset, first),
                    Access::Strided | Access::Indexed(_) => Places {
                        offset,
                        dims: &dims,
                        strides: self.words(strides, map.rank),
                        first,
                    },
                };
                self.read(columns, (load, strides + map.rank), (at, elements));
            }
            let values = columns.evaluate(&map.value, elements);
            if map.is_strided {
                let at = Places {
                    offset: self.sizes.result,
                    dims: &dims,
                    strides: self.words(self.layout.result, map.rank),
                    first,
                };
                at.store(output, values);
            } else {
                store(&mut output[first..first + elements], values);
            }
        }
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

    /// Reads some elements of a load into its column; the words of an index
    /// begin at `index`.
    ///
    /// A map's last thread may have elements behind the call's last one. What
    /// they are made of can lie outside, is 0 then, and nobody reads them.
    fn read(
        &self,
        columns: &mut Columns,
        (load, index): (usize, u32),
        (at, elements): (Places<'_>, usize),
    ) {
        let source = self.operands.loads[load];
        match self.stage.loads[load].access {
            Access::Flat => {
                let start = at.offset as usize + at.first;
                copy(&source[start..start + elements], columns.column(load));
            }
            Access::Strided => {
                let column = columns.column(load);
                at.each(elements, |i, at| column[i] = element(source, at));
            }
            Access::Indexed(by) => {
                let (step, limit) = (self.word(index), self.word(index + 1));
                let (indexes, column) = columns.pair(by as usize, load);
                at.each(elements, |i, at| {
                    let index = indexes[i].to_bits();
                    column[i] = if index < limit {
                        element(source, at.wrapping_add((index * step) as usize))
                    } else {
                        f32::from_bits(index | 0x7fc0_0000)
                    };
                });
            }
        }
    }

    /// Dimensions, of which the entry holds all but the first.
    fn dims(&self, at: u32, rank: u32) -> Vec<u32> {
        let mut dims = vec![u32::MAX];
        dims.extend(self.words(at, rank.saturating_sub(1)));
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

/// Places in memory of consecutive elements.
#[derive(Clone, Copy)]
struct Places<'a> {
    offset: u32,
    /// Dimensions that elements are counted in; the first has no end.
    dims: &'a [u32],
    strides: &'a [u32],
    /// Number of the first element.
    first: usize,
}

impl Places<'_> {
    fn flat(offset: u32, first: usize) -> Self {
        Places {
            offset,
            dims: &[],
            strides: &[],
            first,
        }
    }

    /// The first place.
    fn place(&self) -> u32 {
        let mut rest = self.first as u32;
        let mut at = self.offset;
        for (dim, stride) in self.dims.iter().zip(self.strides).rev() {
            at = at.wrapping_add((rest % dim).wrapping_mul(*stride));
            rest /= dim;
        }
        at
    }

    /// Stores values at their places.
    fn store(&self, output: &mut [u32], values: &[f32]) {
        self.each(values.len(), |i, at| output[at] = values[i].to_bits());
    }

    /// Calls `visit` with each element's number, counted from the first one,
    /// and its place. Addresses wrap: strides may be negative.
    fn each(&self, elements: usize, mut visit: impl FnMut(usize, usize)) {
        let last = self.strides.len() - 1;
        let mut done = 0;
        while done < elements {
            let mut rest = (self.first + done) as u32;
            let mut at = self.offset;
            let mut run = elements - done;
            for axis in (0..=last).rev() {
                let (place, dim) = (rest % self.dims[axis], self.dims[axis]);
                rest /= dim;
                at = at.wrapping_add(place.wrapping_mul(self.strides[axis]));
                if axis == last {
                    run = run.min((dim - place) as usize);
                }
            }
            for i in 0..run {
                visit(done + i, at as usize);
                at = at.wrapping_add(self.strides[last]);
            }
            done += run;
        }
    }
}

fn copy(words: &[u32], values: &mut [f32]) {
    for (value, word) in values.iter_mut().zip(words) {
        *value = f32::from_bits(*word);
    }
}

fn element(source: &[u32], at: usize) -> f32 {
    f32::from_bits(source.get(at).copied().unwrap_or_default())
}

fn store(output: &mut [u32], values: &[f32]) {
    for (word, value) in output.iter_mut().zip(values) {
        *word = value.to_bits();
    }
}
