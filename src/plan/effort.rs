//! How much a call computes, counted by what limits a processor.
//!
//! Counts only. What a count costs is measured, and where a call goes is not
//! decided here.

use super::recipe::{Recipe, Stage as Step, Work};
use crate::graph::sampling::Sampling;
use crate::graph::searching::BLOCK;
use crate::graph::{Expr, Term, UnaryFn};
use crate::kernel::Kernel;
use crate::program::{
    Body, CHUNK, LANES, Layout, QUERIES, RowResult, RowStep, Rows, Stage, StageSizes, Width, tiles,
};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Plain functions of elements, and reads of them.
    Term,
    /// Floats interpolated between two.
    Blend,
    /// Quaternions turned.
    Turn,
    /// Layers of states differentiated.
    Layer,
    /// Products summed in a product of matrices.
    Product,
}

/// How many kinds there are.
pub const KINDS: usize = 5;

/// So much of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Effort(pub [f64; KINDS]);

/// Terms that an exponential or the like takes, a sine or the like, and the error
/// function; what these and the ops of states count for was measured in a browser.
const FUNCTION: f64 = 8.0;
const WAVE: f64 = 14.0;
const ERROR_FUNCTION: f64 = 48.0;

impl Effort {
    fn of(kind: Kind, count: f64) -> Effort {
        let mut effort = Effort::default();
        effort.0[kind as usize] = count;
        effort
    }

    /// Adds so many times another's.
    pub fn add(&mut self, other: &Effort, times: f64) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more * times;
        }
    }
}

impl Recipe {
    /// What a row computes.
    pub fn effort(&self) -> Effort {
        let mut effort = Effort::default();
        match &self.work {
            Work::Stages(stages) => {
                for stage in stages {
                    effort.add(&of_step(stage), 1.0);
                }
            }
            // A lane blends up to four floats of two keys, and looks for these.
            Work::Sampled(Sampling { layers, lanes, .. }) => {
                let lanes = f64::from(*layers) * f64::from(*lanes);
                effort.add(&Effort::of(Kind::Blend, 8.0 * lanes), 1.0);
            }
            // A vector is read once for several queries, and little is computed of it.
            Work::Searched(searching, _) => {
                let vectors = f64::from(searching.blocks) * f64::from(BLOCK);
                let products = vectors * f64::from(searching.query());
                effort.add(&Effort::of(Kind::Product, products), 1.0);
            }
            Work::Fused(shaped) => {
                let share = 1.0 / f64::from(shaped.rows().max(1));
                for (stage, sizes) in shaped.work() {
                    effort.add(&of_stage(stage, sizes), share);
                }
            }
        }
        effort
    }

    /// Dispatches that a group of its calls takes.
    pub fn dispatches(&self) -> usize {
        match &self.work {
            Work::Stages(stages) => stages.len(),
            Work::Fused(shaped) => shaped.counts().0,
            Work::Sampled(_) => 1,
            Work::Searched(searching, _) => searching.pages() as usize + 1,
        }
    }
}

/// A row of an op.
fn of_step(step: &Step) -> Effort {
    let width = f64::from(step.settings.width);
    let (kind, count) = match &step.kernel {
        Kernel::Lerp => (Kind::Blend, width),
        Kernel::Bezier => (Kind::Blend, 2.0 * width),
        Kernel::Slerp => (Kind::Turn, 1.0),
        // Two differences along each of two axes.
        Kernel::StateField(field) => (Kind::Term, 16.0 * 4.0 * terms(field)),
        Kernel::StateGradients => (Kind::Layer, 16.0),
        Kernel::StateInterpolate => (Kind::Layer, 16.0 * 8.0),
        Kernel::StateSequence => (Kind::Layer, 16.0 * 8.0 * width),
        Kernel::StateBezier => (Kind::Layer, 16.0 * 128.0),
        Kernel::StateDistance => (Kind::Layer, 16.0 * 6.0),
        Kernel::StateDescend => (Kind::Layer, 16.0 * 4.0),
        // No op has one.
        Kernel::Fused(_) | Kernel::Product(..) | Kernel::Clip | Kernel::Scan(_) | Kernel::Best => {
            (Kind::Term, 0.0)
        }
    };
    Effort::of(kind, count)
}

/// A stage of a chain's call.
fn of_stage(stage: &Stage, sizes: &StageSizes) -> Effort {
    let layout = Layout::of(stage);
    let word = |at: u32| f64::from(sizes.words[(at - layout.sizes) as usize]);
    let loads = stage.loads.len() as f64;
    match &stage.body {
        Body::Map(map) => {
            let elements = match map.is_strided {
                true => word(layout.count),
                false => 4.0 * f64::from(sizes.threads),
            };
            Effort::of(Kind::Term, elements * (loads + terms(&map.value)))
        }
        Body::Attention(heads) => {
            let queries = f64::from(sizes.threads / LANES * QUERIES);
            let scores = queries * word(layout.count);
            let mut effort = Effort::of(Kind::Product, scores * 2.0 * f64::from(heads.size));
            effort.add(&Effort::of(Kind::Term, scores * FUNCTION), 1.0);
            effort
        }
        Body::Rows(rows) => match rows.width {
            Width::Tile(_) => {
                let threads = f64::from(sizes.threads / LANES);
                let behind = layout.matrix(rows.outer);
                let [height, width] =
                    [behind, behind + 1].map(|at| sizes.words[(at - layout.sizes) as usize]);
                let tiles = f64::from(tiles(height, width));
                let (height, width) = (f64::from(height), f64::from(width));
                let elements = threads / tiles.max(1.0) * height * width;
                let mut effort = Effort::of(Kind::Product, elements * word(layout.count));
                effort.add(
                    &Effort::of(Kind::Term, elements * (loads + of_rows(rows))),
                    1.0,
                );
                effort
            }
            Width::Thread | Width::Group => {
                let lanes = if rows.width == Width::Group { LANES } else { 1 };
                let count = word(layout.count);
                let values = match rows.is_cut {
                    true => count.min(f64::from(CHUNK)),
                    false => count,
                };
                let elements = f64::from(sizes.threads / lanes) * values;
                Effort::of(Kind::Term, elements * (loads + of_rows(rows)))
            }
        },
    }
}

/// What is made of each value of a row.
fn of_rows(rows: &Rows) -> f64 {
    let folds = rows.steps.iter().map(|step| match step {
        RowStep::Fold(_, value) => 1.0 + terms(value),
        RowStep::Let(_) => 0.0,
    });
    let result = match &rows.result {
        RowResult::Element(value) => terms(value),
        RowResult::Row(_) => 0.0,
    };
    folds.sum::<f64>() + result
}

fn terms(value: &Expr) -> f64 {
    let costs = value.terms().iter().map(|term| match term {
        Term::Const(_) | Term::Variable(_) => 0.0,
        Term::Binary(..)
        | Term::Unary(
            UnaryFn::Relu | UnaryFn::Abs | UnaryFn::Neg | UnaryFn::Recip | UnaryFn::Sqrt,
            _,
        ) => 1.0,
        Term::Unary(UnaryFn::Sin | UnaryFn::Cos | UnaryFn::Tan | UnaryFn::Tanh, _) => WAVE,
        Term::Unary(UnaryFn::Gelu, _) => ERROR_FUNCTION,
        Term::Unary(..) => FUNCTION,
    });
    costs.sum()
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "effort_tests.rs"]
mod tests;
