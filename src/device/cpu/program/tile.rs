//! Matrix products: block by block of a row, each element summed from the first
//! product to the last, as the kernels do.

use super::{Places, Run};
use crate::device::cpu::expr::{BLOCK, Columns};
use crate::plan::fuse::{LANES, RowResult, Rows, TILE, Tile};

/// Runs the products of one call.
pub(super) fn run(
    run: &Run<'_>,
    (rows, tile): (&Rows, Tile),
    columns: &mut Columns,
    output: &mut [u32],
) {
    let dims = run.dims(run.layout.outer, rows.outer);
    let [_, .., height, width] = dims[..] else {
        unreachable!("a product has rows and columns");
    };
    let tiles = height.div_ceil(TILE) * width.div_ceil(TILE);
    let stacks = (run.sizes.threads / LANES).checked_div(tiles).unwrap_or(0);
    let mut product = Product {
        run,
        rows,
        tile,
        count: run.word(run.layout.count),
        columns,
    };
    for row in 0..stacks * height {
        for first in (0..width).step_by(BLOCK) {
            let elements = BLOCK.min((width - first) as usize);
            product.sum((&dims, row * width + first), elements);
            product.store((&dims, row * width + first), elements, output);
        }
    }
}

struct Product<'a> {
    run: &'a Run<'a>,
    rows: &'a Rows,
    tile: Tile,
    /// Products in a sum.
    count: u32,
    columns: &'a mut Columns,
}

impl Product<'_> {
    /// Sums some elements of a row, from the one of this number on.
    fn sum(&mut self, (dims, number): (&[u32], u32), elements: usize) {
        let rank = self.rows.outer as usize;
        let [(left, a), (right, b)] = self.tile.factors.map(|load| {
            let load = load as usize;
            let strides = self.run.layout.strides[load];
            let words = self.run.words(strides, self.rows.outer + self.rows.inner);
            let at = Places {
                offset: self.run.sizes.offsets[load],
                dims,
                strides: &words[..rank],
                first: number as usize,
            };
            (self.run.operands.loads[load], (at.place(), words))
        });
        let ((mut from, along), (mut by, across)) = (a, b);
        let (step, down, next) = (along[rank], across[rank], across[rank - 1]);
        let sums = self.columns.column(self.first());
        sums[..elements].fill(0.0);
        for _ in 0..self.count {
            let factor = f32::from_bits(left[from as usize]);
            let sums = sums[..elements].iter_mut();
            if next == 1 {
                let others = &right[by as usize..by as usize + elements];
                for (sum, other) in sums.zip(others) {
                    *sum += factor * f32::from_bits(*other);
                }
            } else {
                let mut at = by;
                for sum in sums {
                    *sum += factor * f32::from_bits(right[at as usize]);
                    at = at.wrapping_add(next);
                }
            }
            from = from.wrapping_add(step);
            by = by.wrapping_add(down);
        }
    }

    /// Stores what is made of the sums.
    fn store(&mut self, (dims, number): (&[u32], u32), elements: usize, output: &mut [u32]) {
        let (run, rank) = (self.run, self.rows.outer);
        let at = |offset, strides| Places {
            offset,
            dims,
            strides: run.words(strides, rank),
            first: number as usize,
        };
        for load in 0..run.stage.loads.len() {
            if !self.tile.factors.contains(&(load as u32)) {
                let strides = run.layout.strides[load];
                let index = strides + rank + self.rows.inner;
                let at = at(run.sizes.offsets[load], strides);
                run.read(self.columns, (load, index), (at, elements));
            }
        }
        let (RowResult::Row(value) | RowResult::Element(value)) = &self.rows.result;
        let values = self.columns.evaluate(value, elements);
        at(run.sizes.result, run.layout.result).store(output, values);
    }

    /// The variable that holds the sums.
    fn first(&self) -> usize {
        self.run.stage.loads.len() + self.run.stage.scalars.len()
    }
}
