//! What kernels compute, and what they read and write: counted from a recipe when somebody asks.
//!
//! The counts are of what is planned, and know nothing of a device's caches. How long kernels take
//! is measured elsewhere, and what decides where a call goes is in `cost`.

use super::Recipe;
use crate::graph::searching::block_words;
use crate::program::{
    Access, Body, Layout, RowResult, RowStep, Rows, Stage, StageSizes, operations,
};
use crate::tensor::{Packing, WORD};

/// What the kernels of calls do. NaN is unknown, and every sum with an unknown count is unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelCounts {
    /// Floating-point operations. Every function of an element is one, an exponential too, and so
    /// is every value that a fold takes: a product of m × k and k × n elements has 2·m·k·n. An
    /// attention has those of its two products, as is usual, and none for the softmax.
    pub flops: f64,
    /// Bytes that stages read and write: each operand and each result once for each call. Those
    /// of kernels written by hand count up to the next multiple of 16 bytes.
    pub bytes: f64,
}

impl KernelCounts {
    /// Adds other counts so many times.
    pub fn add(&mut self, other: KernelCounts, times: f64) {
        self.flops += other.flops * times;
        self.bytes += other.bytes * times;
    }
}

impl Recipe {
    /// What kernels do for so many rows of a call. A slice of a chain has its share of the counts
    /// of the whole call.
    #[inline(never)] // Inlined in its only caller the code compresses worse.
    pub fn kernel_counts(&self, rows: u32) -> KernelCounts {
        let program = &self.schedule.program;
        let [flops, words] = match program.stages.first().map(|stage| &stage.body) {
            Some(Body::Named(kernel, settings)) => {
                let flops = kernel.flops(settings);
                // What decides how much a kernel computes decides how much the kernel reads.
                [flops, if flops.is_nan() { flops } else { 0.0 }]
            }
            Some(Body::Search(searching)) => {
                let block = f64::from(block_words(searching.quads));
                [searching.flops(), f64::from(searching.all_blocks()) * block]
            }
            _ => {
                let share = f64::from(rows) / f64::from(self.rows.unwrap_or(1).max(1));
                let mut counts = KernelCounts::default();
                for run in &self.schedule.runs {
                    let of = of_stage(&program.stages[run.stage], &self.sizes.stages[run.stage]);
                    counts.add(of, share);
                }
                return counts;
            }
        };
        let own = self.input_words(rows) + self.result_words(rows);
        KernelCounts {
            flops: flops * f64::from(rows),
            bytes: (own as f64 + words) * f64::from(WORD),
        }
    }
}

/// What a stage of a chain does for a whole call.
fn of_stage(stage: &Stage, sizes: &StageSizes) -> KernelCounts {
    if sizes.elements == 0 {
        return KernelCounts::default();
    }
    let layout = Layout::of(stage);
    let elements = f64::from(sizes.elements);
    let entry = Entry {
        words: &sizes.words,
        first: layout.sizes,
    };
    let mut outer = Axes {
        words: layout.outer,
        rank: 0,
        places: elements,
    };
    let mut inner = Axes {
        words: layout.inner,
        rank: 0,
        places: 1.0,
    };
    let (mut query, mut keys_per_query) = (None, 1.0);
    // The load of a bias, and how many of its floats are read.
    let mut bias = None;
    let flops = match &stage.body {
        Body::Map(map) => {
            outer.rank = map.rank;
            elements * operations(&map.value)
        }
        Body::Rows(rows) => {
            inner.places = entry.word(layout.count);
            let results = match rows.result {
                RowResult::Element(_) => inner.places,
                RowResult::Row(_) if rows.is_cut => entry.word(layout.strips),
                RowResult::Row(_) => 1.0,
            };
            outer.places = elements / results;
            (outer.rank, inner.rank) = (rows.outer, rows.inner);
            outer.places * of_row(rows, inner.places, results)
        }
        Body::Attention(heads) => {
            let keys = entry.word(layout.count);
            let queries = entry.word(layout.outer + heads.outer - 2);
            inner.places = f64::from(heads.heads * heads.size);
            outer.places = elements / inner.places;
            (outer.rank, inner.rank) = (heads.outer, 1);
            (query, keys_per_query) = (Some(heads.loads[0]), keys / queries);
            let distances = f64::from(heads.heads) * (queries + keys - 1.0);
            bias = heads.bias.map(|load| (load, distances));
            // Each query of a causal attention sees one key less than the query behind it.
            let hidden = if heads.is_causal { queries - 1.0 } else { 0.0 };
            4.0 * elements * heads.keys_of_a_query(keys - hidden / 2.0)
        }
        Body::Named(..) | Body::Search(_) => 0.0, // Chains have no such stage.
    };
    let mut words = elements + bias.map_or(0.0, |(_, floats)| floats);
    for (at, (load, strides)) in (0..).zip(stage.loads.iter().zip(&layout.strides)) {
        let read = match load.access {
            _ if bias.is_some_and(|(load, _)| load == at) => continue,
            Access::Flat | Access::Found => elements,
            Access::Whole => entry.word(*strides) * f64::from(stage.lanes(at)),
            // A gather reads an element for each that is looked for.
            Access::Indexed(_) => outer.places * inner.places,
            Access::Strided => {
                entry.places(&outer, *strides) * entry.places(&inner, strides + outer.rank)
            }
        };
        let rows = if query == Some(at) {
            1.0
        } else {
            keys_per_query
        };
        words += read * rows * words_of_element(load.packing);
    }
    KernelCounts {
        flops,
        bytes: words * f64::from(WORD),
    }
}

/// The words of a call's entry behind the addresses.
struct Entry<'a> {
    words: &'a [u32],
    /// The number of the first of these words in the whole entry.
    first: u32,
}

/// Some dimensions of a stage. The lengths of all but the first are words of the entry.
struct Axes {
    words: u32,
    rank: u32,
    /// How many places there are along all of these dimensions together.
    places: f64,
}

impl Entry<'_> {
    fn word(&self, at: u32) -> f64 {
        f64::from(self.words[(at - self.first) as usize])
    }

    /// Different places along these dimensions of a load whose strides begin at this word.
    fn places(&self, axes: &Axes, strides: u32) -> f64 {
        let (mut first, mut found) = (axes.places, 1.0);
        for axis in 1..axes.rank {
            let length = self.word(axes.words + axis - 1);
            first /= length.max(1.0);
            if self.word(strides + axis) != 0.0 {
                found *= length;
            }
        }
        match axes.rank > 0 && self.word(strides) != 0.0 {
            true => found * first,
            false => found,
        }
    }
}

/// Operations on a row of so many values that gives so many results.
fn of_row(rows: &Rows, count: f64, results: f64) -> f64 {
    let steps = rows.steps.iter().map(|step| match step {
        RowStep::Fold(_, value) => count * (1.0 + operations(value)),
        RowStep::Let(value) => operations(value),
    });
    let (RowResult::Row(value) | RowResult::Element(value)) = &rows.result;
    steps.sum::<f64>() + results * operations(value)
}

/// Words of an element in memory.
fn words_of_element(packing: Option<Packing>) -> f64 {
    const MANY: u32 = 64; // Whole words, and whole blocks.
    packing.map_or(1.0, |packing| {
        f64::from(packing.words(MANY)) / f64::from(MANY)
    })
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "kernel_counts_tests.rs"]
mod tests;
