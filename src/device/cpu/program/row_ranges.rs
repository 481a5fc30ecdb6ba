//! The lines of a call's result, by which its work can be shared, and the memory that holds
//! some lines. Who shares the work is not known here.

use super::stage_call::Numbers;
use super::strided::Places;
use crate::kernel::{BinaryFn, Expr, Term, UnaryFn};
use crate::program::{
    Body, LANES, Layout, QUERIES, RowResult, RowStep, Rows, STRIP, Stage, Width, tiles,
};

/// Products that are summed in the time of a pass over one value.
const PRODUCTS: usize = 2;

/// The lines of a result: elements of a map, rows of a reduction or of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// How many there are.
    pub count: usize,
    /// Words of each line, if the lines lie one after the other from the result on.
    pub words: Option<usize>,
    /// Values that are computed for each line, those of steps included.
    pub work: usize,
}

/// The part of an output buffer that some lines are written to.
#[derive(Debug)]
pub struct Output<'a> {
    /// The words.
    pub words: &'a mut [u32],
    /// Words of the whole buffer in front of this part.
    pub start: usize,
}

impl Output<'_> {
    /// `words` words from a place of the whole buffer on.
    pub(super) fn words_at(&mut self, place: u32, words: usize) -> &mut [u32] {
        let at = place as usize - self.start;
        &mut self.words[at..at + words]
    }

    /// Stores values at their places in the whole buffer.
    pub(super) fn store(&mut self, at: Places<'_>, values: &[f32]) {
        at.each(values.len(), &mut |run| {
            let values = &values[run.first..run.first + run.count];
            if run.step == 1 {
                let words = self.words_at(run.at, run.count);
                words.copy_from_slice(bytemuck::cast_slice(values));
                return;
            }
            for (place, value) in run.places().zip(values) {
                self.words[place - self.start] = value.to_bits();
            }
        });
    }
}

/// The lines of a stage's result for one call.
pub(in crate::device::cpu) fn of(stage: &Stage, layout: &Layout, sizes: Numbers<'_>) -> Lines {
    let words = |at: u32, count: u32| {
        let at = (at - layout.sizes) as usize;
        &sizes.words[at..at + count as usize]
    };
    let threads = sizes.threads as usize;
    match &stage.body {
        Body::Map(map) if !map.is_strided => Lines {
            count: match map.is_counted() {
                true => words(layout.count, 1)[0] as usize,
                false => 4 * threads, // Four elements a thread, padding included.
            },
            words: Some(1),
            work: passes(&map.value),
        },
        Body::Map(map) => {
            let dims = words(layout.outer, map.rank - 1);
            let strides = words(layout.result, map.rank);
            let count = words(layout.count, 1)[0] as usize;
            Lines {
                count,
                words: is_in_order(dims, strides, count, 1).then_some(1),
                work: passes(&map.value),
            }
        }
        Body::Attention(of) => {
            let rows = words(layout.outer, of.outer - 1);
            let rows = rows[rows.len() - 1] as usize;
            let blocks = rows.div_ceil(QUERIES as usize) * of.heads as usize;
            let stacks = (threads / LANES as usize).checked_div(blocks);
            let width = (of.heads * of.size) as usize;
            Lines {
                count: stacks.unwrap_or(0) * rows,
                words: Some(width),
                work: width * words(layout.count, 1)[0] as usize,
            }
        }
        Body::Named(..) | Body::Search(_) => unreachable!("it has a twin of its own"),
        Body::Rows(rows) => {
            let count = words(layout.count, 1)[0] as usize;
            let outer = words(layout.outer, rows.outer - 1);
            if let Width::Tile(_) = rows.width {
                let strides = words(layout.result, rows.outer);
                return products(threads, outer, strides, count);
            }
            let inner = words(layout.inner, rows.inner - 1);
            let lanes = if rows.width == Width::Thread {
                1
            } else {
                LANES
            };
            let lines = threads / lanes as usize;
            let in_order = |words_of_row: usize| {
                let strides = words(layout.result, rows.outer);
                is_in_order(outer, strides, lines, words_of_row)
            };
            let of_row = match &rows.result {
                _ if rows.is_cut => Some(1),
                RowResult::Row(_) => in_order(1).then_some(1),
                RowResult::Element(_) => {
                    let strides = words(layout.result + rows.outer, rows.inner);
                    (in_order(count) && is_in_order(inner, strides, count, 1)).then_some(count)
                }
            };
            Lines {
                count: lines,
                words: of_row,
                work: passes_of_rows(rows) * if rows.is_cut { STRIP as usize } else { count },
            }
        }
    }
}

/// The rows of a stack of products. `outer` has the stack's dimensions without the first, and
/// each element is a sum of `count` products.
fn products(threads: usize, outer: &[u32], strides: &[u32], count: usize) -> Lines {
    let [.., height, width] = *outer else {
        unreachable!("a product has rows and columns");
    };
    let tiles = tiles(height, width) as usize;
    let stacks = (threads / LANES as usize).checked_div(tiles).unwrap_or(0);
    let (lines, width) = (stacks * height as usize, width as usize);
    Lines {
        count: lines,
        words: is_in_order(outer, strides, lines * width, 1).then_some(width),
        work: width * count / PRODUCTS,
    }
}

/// Whether `count` elements of `words` words each lie one after the other. `dims` has all
/// dimensions but the first.
fn is_in_order(dims: &[u32], strides: &[u32], count: usize, words: usize) -> bool {
    let behind: usize = dims.iter().map(|dim| *dim as usize).product();
    let first = count.checked_div(behind).unwrap_or(0);
    let dims = dims.iter().rev().map(|dim| *dim as usize).chain([first]);
    let mut next = words;
    strides.iter().rev().zip(dims).all(|(stride, dim)| {
        let is_next = dim < 2 || *stride as usize == next;
        next *= dim;
        is_next
    })
}

/// Passes over each value of a row.
fn passes_of_rows(rows: &Rows) -> usize {
    let steps = rows.steps.iter().map(|step| match step {
        RowStep::Fold(_, value) => 1 + passes(value),
        RowStep::Let(_) => 0,
    });
    let of_result = match &rows.result {
        RowResult::Row(_) => 0,
        RowResult::Element(value) => passes(value),
    };
    steps.sum::<usize>() + of_result
}

/// What an expression takes, in passes of one operation over the values.
fn passes(value: &Expr) -> usize {
    let passes = value.terms().iter().map(|term| match term {
        Term::Const(_) | Term::Variable(_) => 0,
        Term::Unary(function, _) if function.is_cheap() => 1,
        Term::Unary(UnaryFn::Sqrt | UnaryFn::Recip, _) => 4,
        Term::Unary(..) | Term::Call(..) => 32,
        Term::Binary(BinaryFn::Pow | BinaryFn::Mod | BinaryFn::Atan2, ..) => 128,
        Term::Binary(..) | Term::Where(_) => 1,
    });
    1 + passes.sum::<usize>()
}
