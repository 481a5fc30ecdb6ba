//! Attention: a query looks at block after block of keys with a running softmax,
//! as in the kernels, so that no score is kept longer than that.

use std::ops::Range;

use super::{Output, Places, Run};
use crate::device::cpu::math::exponential;
use crate::plan::fuse::{Attention, MAX_HEAD, Scalar};

/// Keys whose scores are known at a time.
const KEYS: u32 = 32;

/// Sums of a product of vectors that go on beside each other.
const SUMS: usize = 8;

type Floats = [f32; MAX_HEAD as usize];

/// Runs some rows of one call, all heads of each.
pub(super) fn run(run: &Run<'_>, of: &Attention, lines: Range<usize>, mut output: Output<'_>) {
    let dims = run.dims(run.layout.outer, of.outer);
    let (rows, keys) = (dims[dims.len() - 1], run.word(run.layout.count));
    let size = of.size as usize;
    let mut head = Head {
        scale: scale(run),
        size,
        queries: [0.0; MAX_HEAD as usize],
        others: [0.0; MAX_HEAD as usize],
        sums: [0.0; MAX_HEAD as usize],
    };
    let matrices = |stack| {
        of.loads
            .map(|load| Matrix::of(run, (load, of), (&dims, stack)))
    };
    let mut at = (u32::MAX, None);
    for line in lines {
        let (stack, row) = (line as u32 / rows, line as u32 % rows);
        if at.0 != stack {
            at = (stack, Some(matrices(stack)));
        }
        let Some([q, k, v]) = &at.1 else { continue };
        let seen = match of.is_causal {
            true => row + 1 + keys - rows,
            false => keys,
        };
        for number in 0..of.heads {
            let first = number * of.size;
            q.read((row, first), &mut head.queries[..size]);
            let total = head.attend([k, v], (first, seen));
            let place = (line as u32 * of.heads + number) * of.size;
            let to = output.words_at(run.sizes.result + place, size);
            for (word, sum) in to.iter_mut().zip(&head.sums) {
                *word = (sum / total).to_bits();
            }
        }
    }
}

/// One query of one head.
struct Head {
    scale: f32,
    size: usize,
    queries: Floats,
    /// A key, or a value.
    others: Floats,
    sums: Floats,
}

impl Head {
    /// Sums what the first `seen` keys give, of floats from number `first` on; the
    /// sum of their weights.
    fn attend(&mut self, [k, v]: [&Matrix<'_>; 2], (first, seen): (u32, u32)) -> f32 {
        self.sums[..self.size].fill(0.0);
        let (mut largest, mut total) = (f32::NEG_INFINITY, 0.0);
        for start in (0..seen).step_by(KEYS as usize) {
            let count = KEYS.min(seen - start);
            let mut scores = [0.0; KEYS as usize];
            let scores = &mut scores[..count as usize];
            let before = largest;
            for (key, score) in (start..).zip(scores.iter_mut()) {
                k.read((key, first), &mut self.others[..self.size]);
                *score = self.product() * self.scale;
                largest = largest.max(*score);
            }
            if start > 0 && before < largest {
                let decay = exponential(before - largest);
                total *= decay;
                for sum in &mut self.sums[..self.size] {
                    *sum *= decay;
                }
            }
            for (key, score) in (start..).zip(scores) {
                let weight = exponential(*score - largest);
                total += weight;
                v.read((key, first), &mut self.others[..self.size]);
                for (sum, value) in self.sums[..self.size].iter_mut().zip(&self.others) {
                    *sum += weight * value;
                }
            }
        }
        total
    }

    /// The query times a key.
    fn product(&self) -> f32 {
        let mut sums = [0.0; SUMS];
        let pairs = self.queries[..self.size].chunks(SUMS);
        for (queries, keys) in pairs.zip(self.others[..self.size].chunks(SUMS)) {
            for (sum, (a, b)) in sums.iter_mut().zip(queries.iter().zip(keys)) {
                *sum += a * b;
            }
        }
        sums.iter().sum()
    }
}

/// Rows of queries, keys or values.
struct Matrix<'a> {
    words: &'a [u32],
    start: u32,
    row: u32,
    step: u32,
}

impl<'a> Matrix<'a> {
    fn of(run: &Run<'a>, (load, of): (u32, &Attention), (dims, stack): (&[u32], u32)) -> Self {
        let front = of.outer as usize - 1;
        let strides = run.words(run.layout.strides[load as usize], of.outer + 1);
        let at = Places {
            offset: run.sizes.offsets[load as usize],
            dims: &dims[..front],
            strides: &strides[..front],
            first: stack as usize,
        };
        Matrix {
            words: run.operands.loads[load as usize],
            start: at.place(),
            row: strides[front],
            step: strides[front + 1],
        }
    }

    /// Floats of a row, from one of them on.
    #[inline(never)]
    fn read(&self, (row, first): (u32, u32), to: &mut [f32]) {
        let mut at = self.start.wrapping_add(row.wrapping_mul(self.row));
        at = at.wrapping_add(first.wrapping_mul(self.step));
        if self.step == 1 {
            let at = at as usize;
            return super::copy(&self.words[at..at + to.len()], to);
        }
        for to in to {
            *to = f32::from_bits(self.words[at as usize]);
            at = at.wrapping_add(self.step);
        }
    }
}

/// The scale is a constant of the call.
fn scale(run: &Run<'_>) -> f32 {
    match run.stage.scalars.first() {
        Some(Scalar::Constant(index)) => f32::from_bits(run.operands.constants[*index as usize]),
        _ => unreachable!("a scale is a number of the call"),
    }
}
