//! What kernels compute, and what they read and write: counted from a recipe when somebody asks.
//!
//! The counts are of what is planned, and know nothing of a device's caches. How long kernels take
//! is measured elsewhere, and what decides where a call goes is in `cost`.

use super::Recipe;
use crate::graph::searching::block_words;
use crate::program::{
    Access, Body, Layout, Load, RowResult, RowStep, Rows, Stage, StageSizes, operations,
};
use crate::tensor::{Packing, WORD};

/// What the kernels of calls do. NaN is unknown, and every sum with an unknown count is unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelCounts {
    /// Floating-point operations. Every function of an element is one, an exponential too, and so
    /// is every value that a fold takes: a product of m × k and k × n elements has 2·m·k·n. An
    /// attention has those of its two products, as is usual, and none for the softmax.
    pub flops: f64,
    /// Bytes that stages read and write: each operand and each result once for each call.
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
        let extents = self.operands.iter().chain(&self.results);
        let own: u64 = extents.map(|extent| extent.wide_words(rows)).sum();
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
    let entry = Entry {
        layout: Layout::of(stage),
        sizes,
    };
    let domain = entry.domain(&stage.body);
    let mut words = entry.elements();
    for (at, load) in stage.loads.iter().enumerate() {
        let is_query = matches!(&stage.body, Body::Attention(of) if of.loads[0] as usize == at);
        let times = if is_query { 1.0 } else { domain.keys_per_query };
        words += times * entry.words_read(load, entry.layout.strides[at], &domain.dims);
    }
    KernelCounts {
        flops: domain.flops,
        bytes: words * f64::from(WORD),
    }
}

/// The entry of a call in the segment table of a stage.
struct Entry<'a> {
    layout: Layout,
    sizes: &'a StageSizes,
}

/// What a stage goes through for a call.
struct Domain {
    /// The lengths of the dimensions that loads have strides for.
    dims: Vec<f64>,
    /// How many keys and values an attention has for each query; 1 of other stages.
    keys_per_query: f64,
    /// Operations in all of the domain.
    flops: f64,
}

impl Entry<'_> {
    fn elements(&self) -> f64 {
        f64::from(self.sizes.elements)
    }

    fn word(&self, at: u32) -> f64 {
        f64::from(self.sizes.words[(at - self.layout.sizes) as usize])
    }

    /// The lengths of so many dimensions with so many places. All lengths but the first are words
    /// of the entry, from `words` on.
    fn lengths(&self, places: f64, words: u32, rank: u32) -> Vec<f64> {
        let mut lengths: Vec<f64> = (1..rank).map(|dim| self.word(words + dim - 1)).collect();
        if rank > 0 {
            let others: f64 = lengths.iter().product();
            lengths.insert(0, places / others.max(1.0));
        }
        lengths
    }

    fn domain(&self, body: &Body) -> Domain {
        let (layout, elements) = (&self.layout, self.elements());
        let (mut dims, mut keys_per_query) = (Vec::new(), 1.0);
        let flops = match body {
            Body::Map(map) => {
                dims = self.lengths(elements, layout.outer, map.rank);
                elements * operations(&map.value)
            }
            Body::Rows(rows) => {
                let count = self.word(layout.count);
                let results = match rows.result {
                    RowResult::Element(_) => count,
                    RowResult::Row(_) if rows.is_cut => self.word(layout.strips),
                    RowResult::Row(_) => 1.0,
                };
                let number = elements / results;
                dims = self.lengths(number, layout.outer, rows.outer);
                dims.append(&mut self.lengths(count, layout.inner, rows.inner));
                number * of_row(rows, count, results)
            }
            Body::Attention(heads) => {
                let keys = self.word(layout.count);
                let queries = self.word(layout.outer + heads.outer - 2);
                let width = f64::from(heads.heads * heads.size);
                dims = self.lengths(elements / width, layout.outer, heads.outer);
                dims.push(width);
                keys_per_query = keys / queries;
                // Each query of a causal attention sees one key less than the query behind it.
                let hidden = if heads.is_causal { queries - 1.0 } else { 0.0 };
                4.0 * elements * (keys - hidden / 2.0)
            }
            Body::Named(..) | Body::Search(_) => 0.0, // Chains have no such stage.
        };
        Domain {
            dims,
            keys_per_query,
            flops,
        }
    }

    /// Words that a load reads, whose strides begin at this word of the entry and are of dimensions
    /// of these lengths.
    fn words_read(&self, load: &Load, strides: u32, dims: &[f64]) -> f64 {
        let dims = dims.iter();
        let elements: f64 = match load.access {
            Access::Flat | Access::Found => self.elements(),
            Access::Whole => self.word(strides),
            // A gather reads an element for each that is looked for.
            Access::Indexed(_) => dims.product(),
            Access::Strided => {
                let along = (strides..)
                    .zip(dims)
                    .filter(|(at, _)| self.word(*at) != 0.0);
                along.map(|(_, length)| length).product()
            }
        };
        elements * words_of_element(load.packing)
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
    const MANY: u32 = 64; // Whole words, and whole blocks of int8.
    packing.map_or(1.0, |packing| {
        f64::from(packing.words(MANY)) / f64::from(MANY)
    })
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "kernel_counts_tests.rs"]
mod tests;
