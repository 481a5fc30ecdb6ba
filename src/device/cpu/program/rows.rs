//! Rows: folds along them and what is made of these, in the order that the
//! kernels sum in.

use super::{Places, Run, tile};
use crate::device::cpu::expr::{BLOCK, Columns};
use crate::kernel::Expr;
use crate::plan::fuse::{CHUNK, Fold, LANES, RowResult, RowStep, Rows, Width};

/// Runs the rows of one call.
pub(super) fn run(run: &Run<'_>, rows: &Rows, columns: &mut Columns, output: &mut [u32]) {
    let layout = run.layout;
    run.fill_scalars(columns, BLOCK);
    let count = run.word(layout.count);
    let threads = match rows.width {
        Width::Thread => run.sizes.threads,
        Width::Tile(tile) => return tile::run(run, (rows, tile), columns, output),
        Width::Group => run.sizes.threads / LANES,
    };
    let chunks = if rows.is_cut {
        run.word(layout.chunks)
    } else {
        1
    };
    let mut row = Row {
        run,
        rows,
        columns,
        outer: run.dims(layout.outer, rows.outer),
        inner: run.dims(layout.inner, rows.inner),
        place: 0,
        first: 0,
        count: 0,
    };
    for number in 0..threads {
        row.place = (number / chunks) as usize;
        row.first = (number % chunks * CHUNK) as usize;
        row.count = match rows.is_cut {
            true => (count as usize - row.first).min(CHUNK as usize),
            false => count as usize,
        };
        row.steps();
        row.result(number as usize, output);
    }
}

/// One row, or chunk of one.
struct Row<'a> {
    run: &'a Run<'a>,
    rows: &'a Rows,
    columns: &'a mut Columns,
    outer: Vec<u32>,
    inner: Vec<u32>,
    /// Number of the row.
    place: usize,
    /// The first of its values, and how many.
    first: usize,
    count: usize,
}

impl Row<'_> {
    fn steps(&mut self) {
        let rows = self.rows;
        let at_once = self.count.clamp(1, BLOCK);
        for load in (0..rows.is_row.len()).filter(|load| rows.is_row[*load]) {
            let at = Places {
                offset: self.run.sizes.offsets[load],
                dims: &self.outer,
                strides: self.run.words(self.run.layout.strides[load], rows.outer),
                first: self.place,
            };
            let load = (load, self.index(load));
            self.run.read(self.columns, load, (at, 1));
            let (load, _) = load;
            let value = self.columns.column(load)[0];
            self.columns.fill(load, value, at_once);
        }
        let first = self.run.stage.loads.len() + self.run.stage.scalars.len();
        for (step, of) in rows.steps.iter().enumerate() {
            let value = match of {
                RowStep::Fold(fold, value) => self.fold(*fold, value),
                RowStep::Let(value) => self.columns.evaluate(value, 1)[0],
            };
            self.columns.fill(first + step, value, at_once);
        }
    }

    /// Each thread's share first, then halves onto each other.
    fn fold(&mut self, fold: Fold, value: &Expr) -> f32 {
        let lanes = match self.rows.width {
            Width::Thread | Width::Tile(_) => 1,
            Width::Group => LANES as usize,
        };
        let mut sums = [0.0_f32; LANES as usize];
        let start = if fold == Fold::Max { 0 } else { u32::MAX };
        let mut keys = [start; LANES as usize];
        let mut done = 0;
        while done < self.count {
            let elements = BLOCK.min(self.count - done);
            let first = self.first + done;
            let values = self.values(value, done, elements);
            for (chunk, values) in values.chunks(lanes).enumerate() {
                if fold == Fold::Sum {
                    for (sum, value) in sums.iter_mut().zip(values) {
                        *sum += value;
                    }
                    continue;
                }
                for (lane, (folded, value)) in keys.iter_mut().zip(values).enumerate() {
                    let place = (first + chunk * lanes + lane) as u32;
                    *folded = keep(fold, *folded, (*value, place));
                }
            }
            done += elements;
        }
        let mut half = lanes / 2;
        while half > 0 {
            for lane in 0..half {
                sums[lane] += sums[lane + half];
                keys[lane] = match fold {
                    Fold::Max => keys[lane].max(keys[lane + half]),
                    _ => keys[lane].min(keys[lane + half]),
                };
            }
            half /= 2;
        }
        match fold {
            Fold::Sum => sums[0],
            Fold::Max | Fold::Min => from_key(keys[0]),
            Fold::First | Fold::Least => f32::from_bits(keys[0]),
        }
    }

    /// Values of an expression at some elements of the row.
    fn values(&mut self, value: &Expr, done: usize, elements: usize) -> &[f32] {
        let rows = self.rows;
        for load in (0..rows.is_row.len()).filter(|load| !rows.is_row[*load]) {
            let strides = self.run.layout.strides[load];
            let row = Places {
                offset: self.run.sizes.offsets[load],
                dims: &self.outer,
                strides: self.run.words(strides, rows.outer),
                first: self.place,
            };
            let at = Places {
                offset: row.place(),
                dims: &self.inner,
                strides: self.run.words(strides + rows.outer, rows.inner),
                first: self.first + done,
            };
            let load = (load, self.index(load));
            self.run.read(self.columns, load, (at, elements));
        }
        self.columns.evaluate(value, elements)
    }

    fn result(&mut self, number: usize, output: &mut [u32]) {
        let (rows, layout) = (self.rows, self.run.layout);
        let mut base = self.run.sizes.result as usize + number;
        if !rows.is_cut {
            let at = Places {
                offset: self.run.sizes.result,
                dims: &self.outer,
                strides: self.run.words(layout.result, rows.outer),
                first: self.place,
            };
            base = at.place() as usize;
        }
        match &rows.result {
            RowResult::Row(value) => {
                output[base] = self.columns.evaluate(value, 1)[0].to_bits();
            }
            RowResult::Element(value) => {
                let strides = self.run.words(layout.result + rows.outer, rows.inner);
                let inner = self.inner.clone();
                for done in (0..self.count).step_by(BLOCK) {
                    let elements = BLOCK.min(self.count - done);
                    let at = Places {
                        offset: base as u32,
                        dims: &inner,
                        strides,
                        first: self.first + done,
                    };
                    let values = self.values(value, done, elements);
                    at.store(output, values);
                }
            }
        }
    }

    /// Where the words of a load's index begin.
    fn index(&self, load: usize) -> u32 {
        self.run.layout.strides[load] + self.rows.outer + self.rows.inner
    }
}

/// An integer that grows with the float.
fn key(x: f32) -> u32 {
    let bits = x.to_bits();
    if bits >= 0x8000_0000 {
        !bits
    } else {
        bits | 0x8000_0000
    }
}

fn from_key(key: u32) -> f32 {
    f32::from_bits(if key >= 0x8000_0000 {
        key & 0x7fff_ffff
    } else {
        !key
    })
}

fn keep(fold: Fold, folded: u32, (value, place): (f32, u32)) -> u32 {
    match fold {
        Fold::Max => folded.max(if value.is_nan() { u32::MAX } else { key(value) }),
        Fold::Min => folded.min(if value.is_nan() { 0 } else { key(value) }),
        Fold::First if value != 0.0 => folded.min(place),
        Fold::Least => folded.min(value.to_bits()),
        Fold::First | Fold::Sum => folded,
    }
}
