//! Matrix products: the rows of a stack, panel by panel, then what is made of
//! the sums. How a panel is multiplied is not its business.

use std::ops::Range;

use super::gemm::{Matrix, add_product};
use super::{Output, Places, Run};
use crate::device::cpu::expr::{BLOCK, Columns};
use crate::program::{RowResult, Rows, Tile};

/// Sums of a panel, at most: what follows finds them in the second cache.
const PANEL: usize = 1 << 18;

/// Runs some rows of the products of one call.
pub(super) fn run(
    run: &Run<'_>,
    (rows, tile): (&Rows, Tile),
    lines: Range<usize>,
    (columns, mut output): (&mut Columns, Output<'_>),
) {
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
        product.multiply(line * width, (count, width));
        product.store(line * width, &mut output);
        line += count;
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
    /// Sums a panel of so many rows and columns, from the element of this number on.
    fn multiply(&mut self, first: usize, (rows, width): (usize, usize)) {
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
            let words = bytemuck::cast_slice(self.run.operands.loads[load]);
            (words, at.place(), strides)
        });
        let matrix = |(words, at, strides): (_, _, &[u32]), [down, across]: [usize; 2]| Matrix {
            words,
            at,
            down: strides[down],
            across: strides[across],
        };
        let count = self.run.word(self.run.layout.count) as usize;
        self.sums.clear();
        self.sums.resize(rows * width, 0.0);
        add_product(
            matrix(left, [rank - 2, rank]),
            matrix(right, [rank, rank - 1]),
            [rows, count, width],
            &mut self.sums,
        );
    }

    /// Stores what is made of a panel's sums.
    fn store(&mut self, first: usize, output: &mut Output<'_>) {
        let (run, rank) = (self.run, self.rows.outer);
        let (RowResult::Row(value) | RowResult::Element(value)) = &self.rows.result;
        let variable = run.stage.loads.len() + run.stage.scalars.len();
        for (block, sums) in self.sums.chunks(BLOCK).enumerate() {
            let at = |offset, strides| Places {
                offset,
                dims: self.dims,
                strides: run.words(strides, rank),
                first: first + block * BLOCK,
            };
            self.columns.column(variable)[..sums.len()].copy_from_slice(sums);
            for load in 0..run.stage.loads.len() {
                if !self.tile.factors.contains(&(load as u32)) {
                    let strides = run.layout.strides[load];
                    let index = strides + rank + self.rows.inner;
                    let at = at(run.sizes.offsets[load], strides);
                    if !run.refer(self.columns, load, (at, sums.len())) {
                        run.read(self.columns, (load, index), (at, 0..sums.len()));
                    }
                }
            }
            let at = at(run.sizes.result, run.layout.result);
            run.store(self.columns, value, (at, sums.len()), output);
        }
    }
}
