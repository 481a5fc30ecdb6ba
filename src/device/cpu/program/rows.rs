//! Rows: folds along them and what is made of these.
//!
//! Short rows are computed many at a time: a block of values holds several.

use std::ops::Range;

use super::fold::Folding;
use super::{Output, Places, Run, tile};
use crate::device::cpu::expr::{BLOCK, Columns};
use crate::kernel::Expr;
use crate::program::{Fold, RowResult, RowStep, Rows, STRIP, Width};

/// Runs some rows of one call.
pub(super) fn run(
    run: &Run<'_>,
    (rows, lines): (&Rows, Range<usize>),
    columns: &mut Columns,
    mut output: Output<'_>,
) {
    let layout = run.layout;
    if let Width::Tile(tile) = rows.width {
        return tile::run(run, (rows, tile), lines, (columns, output));
    }
    run.fill_scalars(columns, BLOCK);
    let count = run.word(layout.count) as usize;
    let (strips, at_once) = match rows.is_cut {
        true => (run.word(layout.strips) as usize, 1),
        false => (1, (BLOCK / count.max(1)).max(1)),
    };
    let mut block = Block {
        run,
        rows,
        columns,
        outer: run.dims(layout.outer, rows.outer),
        inner: run.dims(layout.inner, rows.inner),
        values: vec![0.0; BLOCK],
        line: 0,
        row: 0,
        many: 1,
        first: 0,
        count,
        held: None,
    };
    for line in lines.clone().step_by(at_once) {
        block.line = line;
        block.row = line / strips;
        block.many = at_once.min(lines.end - line);
        block.held = None;
        if rows.is_cut {
            block.first = line % strips * STRIP as usize;
            block.count = (count - block.first).min(STRIP as usize);
        }
        block.steps();
        block.result(&mut output);
    }
}

/// One row, a strip of one, or many short rows.
struct Block<'a> {
    run: &'a Run<'a>,
    rows: &'a Rows,
    columns: &'a mut Columns,
    outer: Vec<u32>,
    inner: Vec<u32>,
    /// Room for values.
    values: Vec<f32>,
    /// Number of the first line of the result, and of the first row.
    line: usize,
    row: usize,
    /// How many rows.
    many: usize,
    /// The first of a row's values, and how many.
    first: usize,
    count: usize,
    /// Which values of a row the columns hold: those behind so many.
    held: Option<usize>,
}

impl Block<'_> {
    /// What is known of rows has so many places in a column: the same value in
    /// all that are a row's.
    fn known(&self) -> usize {
        self.of_row(self.many - 1).end
    }

    /// A row's places in a column.
    fn of_row(&self, row: usize) -> Range<usize> {
        let each = self.count.clamp(1, BLOCK);
        row * each..(row + 1) * each
    }

    fn steps(&mut self) {
        let rows = self.rows;
        for load in (0..rows.is_row.len()).filter(|load| rows.is_row[*load]) {
            for row in 0..self.many {
                let (to, place) = (self.of_row(row), self.places(load, row).place());
                let value = (self.run).single(self.columns, (load, self.index(load)), (place, &to));
                self.columns.column(load)[to].fill(value);
            }
        }
        let first = self.run.stage.loads.len() + self.run.stage.scalars.len();
        for (step, of) in rows.steps.iter().enumerate() {
            match of {
                RowStep::Fold(fold, value) => self.fold(first + step, *fold, value),
                RowStep::Let(value) => {
                    let known = self.compute(value);
                    let column = self.columns.column(first + step);
                    if self.many > 1 {
                        column[..known].copy_from_slice(&self.values[..known]);
                    } else {
                        column[..self.count.clamp(1, BLOCK)].fill(self.values[0]);
                    }
                }
            }
        }
    }

    /// What an expression gives for each row, in all the row's places; or in
    /// the first, if there is only one row. How many places that are.
    fn compute(&mut self, value: &Expr) -> usize {
        let known = if self.many > 1 { self.known() } else { 1 };
        let to = &mut self.values[..known];
        self.columns.evaluate_to(value, self.run.operands.loads, to);
        known
    }

    fn fold(&mut self, into: usize, fold: Fold, value: &Expr) {
        let mut folding = Folding::new(fold, self.rows.width);
        for done in (0..self.count).step_by(BLOCK) {
            let elements = self.read(done);
            let to = &mut self.values[..elements];
            self.columns.evaluate_to(value, self.run.operands.loads, to);
            if self.many == 1 {
                folding.add(self.first + done, &self.values[..elements]);
                continue;
            }
            for row in 0..self.many {
                let places = self.of_row(row);
                let mut folding = Folding::new(fold, self.rows.width);
                folding.add(0, &self.values[places.clone()]);
                self.columns.column(into)[places].fill(folding.finish());
            }
            return;
        }
        let known = self.known();
        self.columns.fill(into, folding.finish(), known);
    }

    /// Reads the values of the rows behind so many; how many there are now.
    fn read(&mut self, done: usize) -> usize {
        let elements = match self.many {
            1 => BLOCK.min(self.count - done),
            many => many * self.count,
        };
        if self.held == Some(done) {
            return elements;
        }
        self.held = Some(done);
        let rows = self.rows;
        for load in (0..rows.is_row.len()).filter(|load| !rows.is_row[*load]) {
            let strides = self.run.layout.strides[load];
            let along = self.run.words(strides + rows.outer, rows.inner);
            let across = self.run.words(strides, rows.outer);
            let is_whole = self.many == 1 || self.is_packed(across, along);
            for row in 0..if is_whole { 1 } else { self.many } {
                let at = Places {
                    offset: self.places(load, row).place(),
                    dims: if is_whole && self.many > 1 {
                        &[]
                    } else {
                        &self.inner
                    },
                    strides: along,
                    first: self.first + done,
                };
                let to = match is_whole {
                    true => 0..elements,
                    false => self.of_row(row),
                };
                let load = (load, self.index(load));
                if !is_whole || !self.run.refer(self.columns, load.0, (at, elements)) {
                    self.run.read(self.columns, load, (at, to));
                }
            }
        }
        elements
    }

    fn result(&mut self, output: &mut Output<'_>) {
        let (rows, layout) = (self.rows, self.run.layout);
        match &rows.result {
            RowResult::Row(value) => {
                self.compute(value);
                for row in 0..self.many {
                    let place = self.result_place(row);
                    let value = self.values[self.of_row(row).start];
                    output.words_at(place, 1)[0] = value.to_bits();
                }
            }
            RowResult::Element(value) => {
                let across = self.run.words(layout.result, rows.outer);
                let along = self.run.words(layout.result + rows.outer, rows.inner);
                let is_packed = self.many > 1 && self.is_packed(across, along);
                for done in (0..self.count).step_by(BLOCK) {
                    let elements = self.read(done);
                    let mut at = Places {
                        offset: self.result_place(0),
                        dims: if is_packed { &[] } else { &self.inner },
                        strides: along,
                        first: self.first + done,
                    };
                    if self.many == 1 || is_packed {
                        (self.run).store(self.columns, value, (at, elements), output);
                    } else {
                        let to = &mut self.values[..elements];
                        self.columns.evaluate_to(value, self.run.operands.loads, to);
                        for row in 0..self.many {
                            at.offset = self.result_place(row);
                            output.store(at, &self.values[self.of_row(row)]);
                        }
                    }
                    if self.many > 1 {
                        return;
                    }
                }
            }
        }
    }

    /// Whether rows lie one after the other, value by value.
    fn is_packed(&self, across: &[u32], along: &[u32]) -> bool {
        matches!((across, along), ([next], [1]) if *next as usize == self.count)
    }

    /// The places of the rows in a load, from one of the block on.
    fn places(&self, load: usize, row: usize) -> Places<'_> {
        Places {
            offset: self.run.sizes.offsets[load],
            dims: &self.outer,
            strides: (self.run).words(self.run.layout.strides[load], self.rows.outer),
            first: self.row + row,
        }
    }

    fn result_place(&self, row: usize) -> u32 {
        let (layout, offset) = (self.run.layout, self.run.sizes.result);
        if self.rows.is_cut {
            return offset + self.line as u32;
        }
        let at = Places {
            offset,
            dims: &self.outer,
            strides: self.run.words(layout.result, self.rows.outer),
            first: self.row + row,
        };
        at.place()
    }

    /// Where the words of a load's index begin.
    fn index(&self, load: usize) -> u32 {
        self.run.layout.strides[load] + self.rows.outer + self.rows.inner
    }
}
