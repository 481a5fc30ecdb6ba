//! Products in panels. A line is what an element sums along: a row of the left factor, or a
//! column of the right one. Lines of one factor are read in place, four at a time; lines of the
//! other are packed in panels, eight side by side. Every element is the sum of the same products
//! in the same order, whichever factor is packed.

#[cfg(target_feature = "simd128")]
#[path = "tile_vectors.rs"]
mod tile;
#[cfg(not(target_feature = "simd128"))]
#[path = "tile_scalar.rs"]
mod tile;

use std::ops::Range;

use self::tile::tile;
use super::Matrix;

/// Lines of a panel.
const WIDE: usize = 8;

/// Lines that are multiplied with a panel at a time. Two vectors of a panel, and for each line
/// two sums and a value, fit the registers.
const HIGH: usize = 4;

/// Values of a line that are summed at once. A panel of so many values, and the lines that are
/// multiplied with it, take 18 KB of the first cache.
const DEEP: usize = 384;

/// Lines that are multiplied with all panels before the next lines are, so that these lines stay
/// in the second cache.
const BLOCK: usize = 64;

/// The sums of a panel's lines and of those that are multiplied with the panel.
type Sums = [[f32; WIDE]; HIGH];

/// Adds a product to `to`, row by row. The caller has checked that every element lies within
/// its words.
pub(super) fn add(
    left: Matrix<'_>,
    right: Matrix<'_>,
    [rows, count, columns]: [usize; 3],
    to: &mut [f32],
) {
    let left = Factor {
        matrix: left,
        lines: rows,
    };
    let right = Factor {
        matrix: right.transposed(),
        lines: columns,
    };
    // The smaller factor is packed, but lines that are read in place must have no gaps.
    let is_left_packed = right.matrix.across == 1 && (left.matrix.across != 1 || rows < columns);
    let (read, packed) = match is_left_packed {
        true => (right, left),
        false => (left, right),
    };
    let lines = read.lines;
    let mut sink = Sink {
        to,
        columns,
        is_left_packed,
    };
    let (mut panels, mut copied) = (Vec::new(), Vec::new());
    for first in (0..count).step_by(DEEP) {
        let deep = DEEP.min(count - first);
        pack(&packed.from(first), deep, &mut panels);
        let mut in_place = read.from(first);
        if in_place.matrix.across != 1 {
            in_place.matrix = copy(&in_place, deep, &mut copied);
        }
        let read = in_place.matrix;
        for block in (0..lines).step_by(BLOCK) {
            let end = lines.min(block + BLOCK);
            for (number, panel) in panels.chunks_exact(deep * WIDE).enumerate() {
                let wide = WIDE.min(packed.lines - number * WIDE);
                for line in (block..end).step_by(HIGH) {
                    let high = HIGH.min(end - line);
                    // The last line stands for those behind it, whose sums are not read.
                    let lines = std::array::from_fn(|i| read.line(line + i.min(high - 1), deep));
                    let sums = tile(lines, panel);
                    let lines = line..line + high;
                    let of_panel = number * WIDE..number * WIDE + wide;
                    sink.add(&sums, lines, of_panel);
                }
            }
        }
    }
}

/// A factor of a product, as lines.
#[derive(Clone, Copy)]
struct Factor<'a> {
    matrix: Matrix<'a>,
    lines: usize,
}

impl Factor<'_> {
    /// The same lines from value number `first` on.
    fn from(self, first: usize) -> Self {
        let matrix = self.matrix.from(0, first as u32);
        Factor { matrix, ..self }
    }
}

impl<'a> Matrix<'a> {
    fn place(&self, line: usize, value: usize) -> usize {
        self.from(line as u32, value as u32).at as usize
    }

    /// The first values of a line without gaps.
    #[inline(always)]
    fn line(&self, number: usize, values: usize) -> &'a [f32] {
        let at = self.place(number, 0);
        &self.words[at..at + values]
    }
}

/// The product, to which sums are added.
struct Sink<'a> {
    to: &'a mut [f32],
    columns: usize,
    /// Whether panels are rows of the product, and not columns.
    is_left_packed: bool,
}

impl Sink<'_> {
    /// Adds the sums of lines that were read in place and of lines of a panel.
    fn add(&mut self, sums: &Sums, lines: Range<usize>, of_panel: Range<usize>) {
        if !self.is_left_packed {
            for (row, sums) in lines.zip(sums) {
                let at = row * self.columns + of_panel.start;
                add_each(&mut self.to[at..], &sums[..of_panel.len()]);
            }
            return;
        }
        for (i, row) in of_panel.enumerate() {
            let sums: [f32; HIGH] = std::array::from_fn(|line| sums[line][i]);
            let at = row * self.columns + lines.start;
            add_each(&mut self.to[at..], &sums[..lines.len()]);
        }
    }
}

fn add_each(to: &mut [f32], sums: &[f32]) {
    for (to, sum) in to.iter_mut().zip(sums) {
        *to += sum;
    }
}

/// Packs the first values of all lines in panels: value by value, one of each line.
fn pack(factor: &Factor<'_>, values: usize, to: &mut Vec<f32>) {
    let Factor {
        matrix: from,
        lines,
    } = *factor;
    to.resize(lines.next_multiple_of(WIDE) * values, 0.0);
    for (panel, to) in to.chunks_exact_mut(values * WIDE).enumerate() {
        let first = panel * WIDE;
        let last = WIDE.min(lines - first) - 1;
        let (to, _) = to.as_chunks_mut::<WIDE>();
        if from.across == 1 {
            interleave(
                std::array::from_fn(|i| from.line(first + i.min(last), values)),
                to,
            );
        } else if from.down == 1 && last == WIDE - 1 {
            for (value, to) in to.iter_mut().enumerate() {
                let at = from.place(first, value);
                to.copy_from_slice(&from.words[at..at + WIDE]);
            }
        } else {
            for (value, to) in to.iter_mut().enumerate() {
                for (i, to) in to.iter_mut().enumerate() {
                    *to = from.words[from.place(first + i.min(last), value)];
                }
            }
        }
    }
}

/// Puts lines side by side.
fn interleave(lines: [&[f32]; WIDE], to: &mut [[f32; WIDE]]) {
    let [a, b, c, d, e, f, g, h] = lines.map(|line| &line[..to.len()]);
    for (i, to) in to.iter_mut().enumerate() {
        *to = [a[i], b[i], c[i], d[i], e[i], f[i], g[i], h[i]];
    }
}

/// Copies the first values of all lines to `to`, without gaps.
fn copy<'a>(factor: &Factor<'_>, values: usize, to: &'a mut Vec<f32>) -> Matrix<'a> {
    let from = factor.matrix;
    to.clear();
    for line in 0..factor.lines {
        to.extend((0..values).map(|value| from.words[from.place(line, value)]));
    }
    Matrix {
        words: to,
        at: 0,
        down: values as u32,
        across: 1,
    }
}
