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

mod rows;

use super::expr::{BLOCK, Columns};
use crate::plan::fuse::{Access, Body, Layout, Map, Scalar, Stage, StageSizes};

/// What a stage reads for one call.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'a> {
    /// For each load the words of its source, from the source's first on.
    pub loads: &'a [&'a [u32]],
    /// The call's constants.
    pub constants: &'a [u32],
}

/// Runs a stage for one call; `output` is the whole buffer that it writes to.
pub fn run(stage: &Stage, sizes: &StageSizes, operands: &Operands<'_>, output: &mut [u32]) {
    let run = Run {
        stage,
        sizes,
        operands,
        layout: Layout::of(stage),
    };
    match &stage.body {
        Body::Map(map) => run.map(map, output),
        Body::Rows(rows) => rows::run(&run, rows, output),
    }
}

/// One stage of one call.
struct Run<'a> {
    stage: &'a Stage,
    sizes: &'a StageSizes,
    operands: &'a Operands<'a>,
    layout: Layout,
}

impl Run<'_> {
    fn map(&self, map: &Map, output: &mut [u32]) {
        let count = if map.is_strided {
            self.word(self.layout.count) as usize
        } else {
            output.len()
        };
        let dims = self.dims(self.layout.outer, map.rank);
        let mut columns = self.columns(0);
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
                self.read(&mut columns, (load, strides + map.rank), (at, elements));
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

    /// Columns for the stage's variables, with the scalars in place, and room
    /// for some that the rows give.
    fn columns(&self, rows: usize) -> Columns {
        let loads = self.stage.loads.len();
        let mut columns = Columns::new(loads + self.stage.scalars.len() + rows);
        for (i, scalar) in self.stage.scalars.iter().enumerate() {
            let word = match scalar {
                Scalar::Constant(index) => self.operands.constants[*index as usize],
                Scalar::Count => self.word(self.layout.scalars[i]),
            };
            columns.fill(loads + i, f32::from_bits(word), BLOCK);
        }
        columns
    }

    /// Reads some elements of a load into its column; the words of an index
    /// begin at `index`.
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
                at.each(elements, |i, at| column[i] = f32::from_bits(source[at]));
            }
            Access::Indexed(by) => {
                let (step, limit) = (self.word(index), self.word(index + 1));
                let (indexes, column) = columns.pair(by as usize, load);
                at.each(elements, |i, at| {
                    let index = indexes[i].to_bits();
                    column[i] = f32::from_bits(if index < limit {
                        source[at + (index * step) as usize]
                    } else {
                        index | 0x7fc0_0000
                    });
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

fn store(output: &mut [u32], values: &[f32]) {
    for (word, value) in output.iter_mut().zip(values) {
        *word = value.to_bits();
    }
}
