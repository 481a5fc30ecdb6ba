//! Matrix products: sums the rows of a stack panel by panel, and computes what follows of the
//! sums. How a panel is multiplied is `gemm`'s business.

use super::gemm::{Matrix, add_product};
use super::row_ranges::Output;
use super::stage_run::{Elements, IndexedLoad, RowLines, Run};
use super::strided::Places;
use crate::device::cpu::expr::{BLOCK, Columns};
use crate::program::{RowResult, Rows, Tile};

/// The most sums of a panel, so that they are still in the second cache when the rest of the
/// expression is computed.
const PANEL: usize = 1 << 18;

/// Runs some rows of the products of one call.
pub(super) fn run(run: &Run<'_>, rows: &Rows, tile: Tile, wanted: RowLines<'_>) {
    let RowLines {
        lines,
        columns,
        mut output,
    } = wanted;
    let dims = run.dims(run.layout.outer, rows.outer);
    let [_, .., height, width] = dims[..] else {
        unreachable!("a product has rows and columns");
    };
    let (height, width) = (height as usize, width as usize);
    run.fill_scalars(columns, BLOCK);
    let mut product = Product {
        run,
        rows,
        tile,
        dims: &dims,
        columns,
        sums: Vec::new(),
    };
    let mut line = lines.start;
    while line < lines.end {
        let of_stack = height - line % height;
        let count = (lines.end - line).min(of_stack).min(PANEL.div_ceil(width));
        product.multiply(Panel {
            first: line * width,
            rows: count,
            width,
        });
        product.store(line * width, &mut output);
        line += count;
    }
}

/// Some rows of a product.
struct Panel {
    /// Number of the first element.
    first: usize,
    rows: usize,
    width: usize,
}

/// A factor of a product in memory.
struct Factor<'a> {
    words: &'a [f32],
    at: u32,
    strides: &'a [u32],
}

impl<'a> Factor<'a> {
    /// The matrix of the axes with these numbers.
    fn matrix(&self, down: usize, across: usize) -> Matrix<'a> {
        Matrix {
            words: self.words,
            at: self.at,
            down: self.strides[down],
            across: self.strides[across],
        }
    }
}

struct Product<'a> {
    run: &'a Run<'a>,
    rows: &'a Rows,
    tile: Tile,
    dims: &'a [u32],
    columns: &'a mut Columns,
    sums: Vec<f32>,
}

impl Product<'_> {
    /// Sums a panel.
    fn multiply(&mut self, panel: Panel) {
        let Panel { first, rows, width } = panel;
        let rank = self.rows.outer as usize;
        let [left, right] = self.tile.factors.map(|load| {
            let load = load as usize;
            let strides = self.run.layout.strides[load];
            let strides = (self.run).words(strides, self.rows.outer + self.rows.inner);
            let at = Places {
                offset: self.run.sizes.offsets[load],
                dims: self.dims,
                strides: &strides[..rank],
                first,
            };
            Factor {
                words: bytemuck::cast_slice(self.run.operands.loads[load]),
                at: at.place(),
                strides,
            }
        });
        let count = self.run.word(self.run.layout.count) as usize;
        self.sums.clear();
        self.sums.resize(rows * width, 0.0);
        add_product(
            left.matrix(rank - 2, rank),
            right.matrix(rank, rank - 1),
            [rows, count, width],
            &mut self.sums,
        );
    }

    /// Computes the results from a panel's sums, and stores them.
    fn store(&mut self, first: usize, output: &mut Output<'_>) {
        let (run, rank) = (self.run, self.rows.outer);
        let (RowResult::Row(value) | RowResult::Element(value)) = &self.rows.result;
        let variable = run.stage.loads.len() + run.stage.scalars.len();
        for (block, sums) in self.sums.chunks(BLOCK).enumerate() {
            let at = |offset, strides| Elements {
                places: Places {
                    offset,
                    dims: self.dims,
                    strides: run.words(strides, rank),
                    first: first + block * BLOCK,
                },
                count: sums.len(),
            };
            self.columns.column(variable)[..sums.len()].copy_from_slice(sums);
            for load in 0..run.stage.loads.len() {
                if !self.tile.factors.contains(&(load as u32)) {
                    let strides = run.layout.strides[load];
                    let index = strides + rank + self.rows.inner;
                    let at = at(run.sizes.offsets[load], strides);
                    if !run.refer(self.columns, load, at) {
                        run.read(self.columns, IndexedLoad { load, index }, at, 0);
                    }
                }
            }
            let at = at(run.sizes.result, run.layout.result);
            run.store(self.columns, value, at, output);
        }
    }
}
