//! Rows: folds along them, and what is computed of the folds.
//!
//! Short rows are computed many at a time: a block of values holds several.

use std::ops::Range;

use super::fold::Folding;
use super::row_ranges::Output;
use super::stage_run::{Elements, IndexedLoad, RowLines, Run};
use super::strided::Places;
use super::tile;
use crate::device::cpu::expr::{BLOCK, Columns};
use crate::kernel::Expr;
use crate::program::{Fold, RowResult, RowStep, Rows, STRIP, Width};

/// Runs some rows of one call.
pub(super) fn run(run: &Run<'_>, rows: &Rows, wanted: RowLines<'_>) {
    let layout = run.layout;
    if let Width::Tile(tile) = rows.width {
        return tile::run(run, rows, tile, wanted);
    }
    let RowLines {
        lines,
        columns,
        mut output,
    } = wanted;
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
    /// The values of an expression.
    values: Vec<f32>,
    /// Number of the first line of the result.
    line: usize,
    /// Number of the first row.
    row: usize,
    /// How many rows the block has.
    many: usize,
    /// Number of the first value of each row.
    first: usize,
    /// How many values of each row the block has.
    count: usize,
    /// Values in front of those that the columns hold, if they hold any.
    held: Option<usize>,
}

impl Block<'_> {
    /// Places of a column that the rows' own values take: each row's value is in all places of
    /// the row.
    fn row_places(&self) -> usize {
        self.places_of(self.many - 1).end
    }

    /// A row's places in a column.
    fn places_of(&self, row: usize) -> Range<usize> {
        let each = self.count.clamp(1, BLOCK);
        row * each..(row + 1) * each
    }

    fn steps(&mut self) {
        let rows = self.rows;
        for load in (0..rows.is_row.len()).filter(|load| rows.is_row[*load]) {
            for row in 0..self.many {
                let (to, place) = (self.places_of(row), self.source(load, row).place());
                let of = self.indexed(load);
                let value = self.run.single(self.columns, of, place, to.start);
                self.columns.column(load)[to].fill(value);
            }
        }
        let first = self.run.stage.loads.len() + self.run.stage.scalars.len();
        for (step, of) in rows.steps.iter().enumerate() {
            match of {
                RowStep::Fold(fold, value) => self.fold(first + step, *fold, value),
                RowStep::Let(value) => {
                    let places = self.compute(value);
                    let column = self.columns.column(first + step);
                    if self.many > 1 {
                        column[..places].copy_from_slice(&self.values[..places]);
                    } else {
                        column[..self.count.clamp(1, BLOCK)].fill(self.values[0]);
                    }
                }
            }
        }
    }

    /// Evaluates an expression for each row, to all of the row's places, or to the first place
    /// of a single row; how many places that are.
    fn compute(&mut self, value: &Expr) -> usize {
        let places = if self.many > 1 { self.row_places() } else { 1 };
        let to = &mut self.values[..places];
        self.columns.evaluate_to(value, self.run.operands.loads, to);
        places
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
                let places = self.places_of(row);
                let mut folding = Folding::new(fold, self.rows.width);
                folding.add(0, &self.values[places.clone()]);
                self.columns.column(into)[places].fill(folding.finish());
            }
            return;
        }
        let places = self.row_places();
        self.columns.fill(into, folding.finish(), places);
    }

    /// Reads the next values of the rows, behind the first `done`; how many were read.
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
                let places = Places {
                    offset: self.source(load, row).place(),
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
                    false => self.places_of(row),
                };
                let from = Elements {
                    places,
                    count: to.len(),
                };
                if !is_whole || !self.run.refer(self.columns, load, from) {
                    let of = self.indexed(load);
                    self.run.read(self.columns, of, from, to.start);
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
                    let value = self.values[self.places_of(row).start];
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
                        let to = Elements {
                            places: at,
                            count: elements,
                        };
                        self.run.store(self.columns, value, to, output);
                    } else {
                        let to = &mut self.values[..elements];
                        self.columns.evaluate_to(value, self.run.operands.loads, to);
                        for row in 0..self.many {
                            at.offset = self.result_place(row);
                            output.store(at, &self.values[self.places_of(row)]);
                        }
                    }
                    if self.many > 1 {
                        return;
                    }
                }
            }
        }
    }

    /// Whether a row's values lie one after the other, and the rows too.
    fn is_packed(&self, across: &[u32], along: &[u32]) -> bool {
        matches!((across, along), ([next], [1]) if *next as usize == self.count)
    }

    /// Where the rows begin in a load's source, from row number `row` of the block on.
    fn source(&self, load: usize, row: usize) -> Places<'_> {
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

    fn indexed(&self, load: usize) -> IndexedLoad {
        let index = self.run.layout.strides[load] + self.rows.outer + self.rows.inner;
        IndexedLoad { load, index }
    }
}
