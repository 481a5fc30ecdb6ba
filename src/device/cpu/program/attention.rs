//! Attention: some queries of a head meet block after block of keys with a running softmax, as
//! in the kernels, so that scores are kept for one block at a time. Scores, and sums of values,
//! are products of matrices.
//!
//! A result's bits depend on the query's own keys alone: queries that see equally many keys of
//! a block share a product, in which rows do not depend on each other.

use std::ops::Range;

use super::gemm::{Matrix, add_product};
use super::stage_run::{RowLines, Run};
use super::strided::Places;
use crate::device::cpu::functions::unary;
use crate::device::cpu::math::exponential;
use crate::kernel::UnaryFn;
use crate::program::{Attention, Scalar};

/// Queries that are computed at a time.
const QUERIES: u32 = 64;

/// Keys of a block.
const KEYS: u32 = 64;

/// Lanes that the values of a row are folded in.
const LANES: usize = 8;

/// Runs some rows of one call, all heads of each.
pub(super) fn run(run: &Run<'_>, of: &Attention, wanted: RowLines<'_>) {
    let RowLines {
        lines, mut output, ..
    } = wanted;
    let dims = run.dims(run.layout.outer, of.outer);
    let (rows, keys) = (dims[dims.len() - 1], run.word(run.layout.count));
    let mut head = Head {
        scale: scale(run),
        rows,
        bias: None,
        size: of.size as usize,
        keys,
        hidden: if of.is_causal { rows } else { 0 },
        window: Window {
            reach: of.window,
            rows,
            keys,
        },
        scores: Vec::new(),
        weights: Vec::new(),
        sums: Vec::new(),
        known: Vec::new(),
    };
    let (mut line, end) = (lines.start as u32, lines.end as u32);
    while line < end {
        let (stack, row) = (line / rows, line % rows);
        let count = (rows - row).min(end - line).min(QUERIES);
        let stack = Stack {
            dims: &dims,
            number: stack,
        };
        let matrices = of.loads.map(|load| matrix(run, of, load, &stack));
        let bias = of.bias.map(|load| matrix(run, of, load, &stack));
        for number in 0..of.heads {
            head.bias = bias.map(|bias| bias.from(0, number));
            let [q, k, v] = matrices;
            let (own, shared) = (number * of.size, number / of.sharing * of.size);
            let matrices = [q.from(0, own), k.from(0, shared), v.from(0, shared)];
            head.attend(matrices, row..row + count);
            for (i, known) in (0..).zip(&head.known) {
                let place = ((line + i) * of.heads + number) * of.size;
                let to = output.words_at(run.sizes.result + place, head.size);
                let sums = &head.sums[i as usize * head.size..];
                for (word, sum) in to.iter_mut().zip(sums) {
                    *word = (sum / known.total).to_bits();
                }
            }
        }
        line += count;
    }
}

/// Some queries of one head.
struct Head<'a> {
    scale: f32,
    /// Queries of the call.
    rows: u32,
    /// What is added to the head's scores: its rows are distances.
    bias: Option<Matrix<'a>>,
    size: usize,
    keys: u32,
    /// Keys that a query in front of the first one would not see: one for each query in a causal
    /// attention, otherwise none.
    hidden: u32,
    /// The keys that a query may see by their distance.
    window: Window,
    /// The scores of some queries, row by row.
    scores: Vec<f32>,
    weights: Vec<f32>,
    sums: Vec<f32>,
    known: Vec<Known>,
}

/// The running softmax of the keys that a query has seen.
#[derive(Clone, Copy)]
struct Known {
    largest: f32,
    /// The sum of the weights.
    total: f32,
}

impl Head<'_> {
    /// Sums the weighted values for these rows.
    fn attend(&mut self, [q, k, v]: [Matrix<'_>; 3], rows: Range<u32>) {
        let count = rows.len();
        self.sums.clear();
        self.sums.resize(count * self.size, 0.0);
        self.known.clear();
        let none = Known {
            // Finite, so that an infinitely small score has the weight 0 also before any other.
            largest: f32::MIN,
            total: 0.0,
        };
        self.known.resize(count, none);
        let (keys, hidden) = (self.keys, self.hidden);
        let seen_by = |row: u32| match hidden {
            0 => keys,
            _ => row + 1 + keys - hidden,
        };
        let window = self.window;
        let near = window.of(rows.start).start..window.of(rows.end - 1).end;
        let most = seen_by(rows.end - 1).min(near.end);
        for start in (near.start / KEYS * KEYS..most).step_by(KEYS as usize) {
            // The end of what a query sees of the block, where it sees anything.
            let seen = |row: u32| {
                let (near, end) = (window.of(row), seen_by(row).min(start + KEYS));
                let sees = start < end.min(near.end) && start + KEYS > near.start;
                if sees { end } else { start }
            };
            let mut row = rows.start;
            while row < rows.end {
                let alike = (row..rows.end).take_while(|next| seen(*next) == seen(row));
                let next = row + alike.count() as u32;
                if seen(row) > start {
                    let own = (row - rows.start) as usize..(next - rows.start) as usize;
                    let matrices = [
                        q.from(row, 0),
                        k.from(start, 0).transposed(),
                        v.from(start, 0),
                    ];
                    self.score(matrices, own.clone(), (seen(row) - start) as usize);
                    self.bias(row, start, own.len());
                    self.hide(row, start, own.len());
                    self.see(matrices[2], own, (seen(row) - start) as usize);
                }
                row = next;
            }
        }
    }

    /// Makes the weights of keys that are outside of the windows of these queries 0.
    fn hide(&mut self, row: u32, key: u32, rows: usize) {
        if self.window.reach.is_none() {
            return;
        }
        let keys = self.scores.len() / rows;
        for (line, row) in (row..).take(rows).enumerate() {
            let near = self.window.of(row);
            let scores = &mut self.scores[line * keys..][..keys];
            for (key, score) in (key..).zip(scores) {
                if !near.contains(&key) {
                    *score = f32::NEG_INFINITY;
                }
            }
        }
    }

    /// Computes the scaled scores of `keys` keys for some rows.
    fn score(&mut self, [q, k, _]: [Matrix<'_>; 3], rows: Range<usize>, keys: usize) {
        self.scores.clear();
        self.scores.resize(rows.len() * keys, 0.0);
        add_product(q, k, [rows.len(), self.size, keys], &mut self.scores);
        for score in &mut self.scores {
            *score *= self.scale;
        }
    }

    /// Adds what the distances of these queries and keys, from `row` and from `key` on, add.
    fn bias(&mut self, row: u32, key: u32, rows: usize) {
        let Some(bias) = self.bias else {
            return;
        };
        let keys = self.scores.len() / rows;
        for (row, scores) in (row..).zip(self.scores.chunks_exact_mut(keys)) {
            let first = bias.from(key + self.rows - 1 - row, 0);
            for (distance, score) in (0..).zip(scores) {
                *score += first.words[first.from(distance, 0).at as usize];
            }
        }
    }

    /// Adds `keys` scored keys and their values to the sums of some rows.
    fn see(&mut self, v: Matrix<'_>, rows: Range<usize>, keys: usize) {
        let sums = &mut self.sums[rows.start * self.size..rows.end * self.size];
        let known = &mut self.known[rows.clone()];
        let lines = self.scores.chunks_exact_mut(keys);
        for ((known, scores), sums) in known.iter_mut().zip(lines).zip(sums.chunks_mut(self.size)) {
            known.look(scores, sums);
        }
        self.weights.resize(self.scores.len(), 0.0);
        unary(UnaryFn::Exp, &self.scores, &mut self.weights);
        for (known, weights) in known.iter_mut().zip(self.weights.chunks_exact(keys)) {
            known.total += folded(0.0, weights, |sum, weight| sum + weight);
        }
        let weights = Matrix {
            words: &self.weights,
            at: 0,
            down: keys as u32,
            across: 1,
        };
        add_product(weights, v, [rows.len(), keys, self.size], sums);
    }
}

/// The keys near the place of a query. The last query is at the place of the last key.
#[derive(Clone, Copy)]
struct Window {
    /// How far away they may be, if not as far as there are keys.
    reach: Option<u32>,
    rows: u32,
    keys: u32,
}

impl Window {
    /// The keys near a query, of which there may be less.
    fn of(self, row: u32) -> Range<u32> {
        match self.reach {
            None => 0..self.keys,
            Some(reach) => {
                let place = row + self.keys - self.rows;
                place.saturating_sub(reach)..place.saturating_add(reach).saturating_add(1)
            }
        }
    }
}

impl Known {
    /// Subtracts the largest score so far from each. Where that has grown, what was summed before
    /// becomes smaller accordingly.
    fn look(&mut self, scores: &mut [f32], sums: &mut [f32]) {
        let before = self.largest;
        self.largest = folded(before, scores, |a, b| if b > a { b } else { a });
        let largest = self.largest;
        for score in scores {
            *score -= largest;
        }
        if before < largest && self.total > 0.0 {
            let decay = exponential(before - largest);
            self.total *= decay;
            for sum in sums {
                *sum *= decay;
            }
        }
    }
}

/// Folds values in lanes, each from `start` on, and then the lanes.
fn folded(start: f32, values: &[f32], fold: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [start; LANES];
    let (whole, rest) = values.as_chunks::<LANES>();
    for values in whole {
        for (lane, value) in lanes.iter_mut().zip(values) {
            *lane = fold(*lane, *value);
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane = fold(*lane, *value);
    }
    lanes.into_iter().fold(start, fold)
}

/// One of several equal attentions that lie one behind the other.
struct Stack<'a> {
    dims: &'a [u32],
    number: u32,
}

/// The queries, keys or values of a stack.
fn matrix<'a>(run: &Run<'a>, of: &Attention, load: u32, stack: &Stack<'_>) -> Matrix<'a> {
    let front = of.outer as usize - 1;
    let strides = run.words(run.layout.strides[load as usize], of.outer + 1);
    let at = Places {
        offset: run.sizes.offsets[load as usize],
        dims: &stack.dims[..front],
        strides: &strides[..front],
        first: stack.number as usize,
    };
    Matrix {
        words: bytemuck::cast_slice(run.operands.loads[load as usize]),
        at: at.place(),
        down: strides[front],
        across: strides[front + 1],
    }
}

/// The factor of all scores, which is a constant of the call.
fn scale(run: &Run<'_>) -> f32 {
    match run.stage.scalars.first() {
        Some(Scalar::Constant(index)) => f32::from_bits(run.operands.constants[*index as usize]),
        _ => unreachable!("a scale is a number of the call"),
    }
}
