//! Products in panels: the lines of one factor are read where they lie, four at a
//! time; those of the other are packed, eight side by side. Every element is the
//! sum of the same products in the same order, whichever factor is packed.

#[cfg(target_feature = "simd128")]
#[path = "tile_vectors.rs"]
mod tile;
#[cfg(not(target_feature = "simd128"))]
#[path = "tile_scalar.rs"]
mod tile;

use self::tile::tile;
use super::Matrix;

/// Lines of a panel.
const WIDE: usize = 8;

/// Lines that meet a panel at a time: with two vectors of a panel, a sum of each
/// line and the line's value they fit the registers.
const HIGH: usize = 4;

/// Values of a line that are summed at once: such a panel, and the lines that meet
/// it, take 18 KB of the first cache.
const DEEP: usize = 384;

/// Lines that meet all panels before the next do: they stay in the second cache.
const BLOCK: usize = 64;

/// The sums of a panel and the lines that meet it.
type Sums = [[f32; WIDE]; HIGH];

/// Adds a product to what lies row by row. The caller has checked that every
/// element lies within its words.
pub(super) fn add(
    left: Matrix<'_>,
    right: Matrix<'_>,
    [rows, count, columns]: [usize; 3],
    to: &mut [f32],
) {
    // A line is what an element sums along: a row of one, a column of the other.
    let (left, right) = ((left, rows), (right.turned(), columns));
    // What is packed had better be little, and what is not must be without gaps.
    let is_turned = right.0.across == 1 && (left.0.across != 1 || rows < columns);
    let ((read, lines), packed) = match is_turned {
        true => (right, left),
        false => (left, right),
    };
    let mut result = Result {
        to,
        columns,
        is_turned,
    };
    let (mut panels, mut copied) = (Vec::new(), Vec::new());
    for first in (0..count).step_by(DEEP) {
        let deep = DEEP.min(count - first);
        pack(
            packed.0.from(0, first as u32),
            (packed.1, deep),
            &mut panels,
        );
        let mut read = read.from(0, first as u32);
        if read.across != 1 {
            read = copy(read, (lines, deep), &mut copied);
        }
        for block in (0..lines).step_by(BLOCK) {
            let end = lines.min(block + BLOCK);
            for (number, panel) in panels.chunks_exact(deep * WIDE).enumerate() {
                let wide = WIDE.min(packed.1 - number * WIDE);
                for line in (block..end).step_by(HIGH) {
                    let high = HIGH.min(end - line);
                    // Behind the last line it is once more, and nobody looks.
                    let lines = std::array::from_fn(|i| read.line(line + i.min(high - 1), deep));
                    let sums = tile(lines, panel);
                    result.add(&sums, (line, high), (number * WIDE, wide));
                }
            }
        }
    }
}

impl<'a> Matrix<'a> {
    fn place(&self, line: usize, value: usize) -> usize {
        self.from(line as u32, value as u32).at as usize
    }

    /// So many values of a line without gaps.
    #[inline(always)]
    fn line(&self, number: usize, values: usize) -> &'a [f32] {
        let at = self.place(number, 0);
        &self.words[at..at + values]
    }
}

/// What sums are added to.
struct Result<'a> {
    to: &'a mut [f32],
    columns: usize,
    /// Whether the rows are those of panels.
    is_turned: bool,
}

impl Result<'_> {
    fn add(&mut self, sums: &Sums, (line, high): (usize, usize), (first, wide): (usize, usize)) {
        if !self.is_turned {
            for (row, sums) in (line..line + high).zip(sums) {
                add_each(&mut self.to[row * self.columns + first..], &sums[..wide]);
            }
            return;
        }
        for row in 0..wide {
            let sums: [f32; HIGH] = std::array::from_fn(|i| sums[i][row]);
            let at = (first + row) * self.columns + line;
            add_each(&mut self.to[at..], &sums[..high]);
        }
    }
}

fn add_each(to: &mut [f32], sums: &[f32]) {
    for (to, sum) in to.iter_mut().zip(sums) {
        *to += sum;
    }
}

/// Packs so many values of so many lines in panels: value by value, one of each line.
fn pack(from: Matrix<'_>, (lines, values): (usize, usize), to: &mut Vec<f32>) {
    to.resize(lines.next_multiple_of(WIDE) * values, 0.0);
    for (panel, to) in to.chunks_exact_mut(values * WIDE).enumerate() {
        let first = panel * WIDE;
        let last = WIDE.min(lines - first) - 1;
        let (to, _) = to.as_chunks_mut::<WIDE>();
        if from.across == 1 {
            turn(
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
fn turn(lines: [&[f32]; WIDE], to: &mut [[f32; WIDE]]) {
    let [a, b, c, d, e, f, g, h] = lines.map(|line| &line[..to.len()]);
    for (i, to) in to.iter_mut().enumerate() {
        *to = [a[i], b[i], c[i], d[i], e[i], f[i], g[i], h[i]];
    }
}

/// So many values of so many lines, without gaps.
fn copy<'a>(from: Matrix<'_>, (lines, values): (usize, usize), to: &'a mut Vec<f32>) -> Matrix<'a> {
    to.clear();
    for line in 0..lines {
        to.extend((0..values).map(|value| from.words[from.place(line, value)]));
    }
    Matrix {
        words: to,
        at: 0,
        down: values as u32,
        across: 1,
    }
}
