//! The cost model: what work is foreseen to take on each device, by numbers that were
//! measured once.
//!
//! The model has no clock and no memory of what calls really took; `router` has the latter.

use crate::plan::{Effort, KINDS, Kind};

/// The names of a model's numbers, in their order. All are milliseconds: of one flush or
/// dispatch, of a million bytes or calls, or of a million units of a [`Kind`] of work.
pub const FACTS: [&str; 16] = [
    "flush",
    "dispatch",
    "up",
    "down",
    "gpuCall",
    "gpuTerm",
    "gpuBlend",
    "gpuTurn",
    "gpuLayer",
    "gpuProduct",
    "cpuCall",
    "cpuTerm",
    "cpuBlend",
    "cpuTurn",
    "cpuLayer",
    "cpuProduct",
];

/// The numbers of [`FACTS`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model(pub [f64; FACTS.len()]);

pub(super) const FLUSH: usize = 0;
pub(super) const UP: usize = 2;
pub(super) const DOWN: usize = 3;
pub(super) const GPU_CALL: usize = 4;
pub(super) const GPU: usize = 5;
pub(super) const GPU_PRODUCT: usize = GPU + Kind::Product as usize;
pub(super) const CPU_CALL: usize = 10;
pub(super) const CPU: usize = 11;

/// How many times a measured number may be larger or smaller than the usual one.
pub(super) const FARTHEST: f64 = 50.0;

const MILLION: f64 = 1e6;

/// The usual model, of a browser on a machine with a GPU of its own, until one is measured.
impl Default for Model {
    fn default() -> Self {
        let (flush, dispatch, up, down) = (1.0, 0.01, 0.5, 0.8);
        let gpu = [400.0, 0.02, 0.04, 0.2, 0.02, 0.002];
        let cpu = [150.0, 0.4, 0.4, 50.0, 0.7, 0.1];
        let mut model = Model([0.0; FACTS.len()]);
        model.0[..GPU_CALL].copy_from_slice(&[flush, dispatch, up, down]);
        model.0[GPU_CALL..CPU_CALL].copy_from_slice(&gpu);
        model.0[CPU_CALL..].copy_from_slice(&cpu);
        model
    }
}

/// Equal calls of a flush, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// How many calls.
    pub calls: f64,
    /// What the calls compute.
    pub effort: Effort,
    /// Dispatches that the calls take together.
    pub dispatches: f64,
    /// Bytes of operands.
    pub up: f64,
    /// Bytes of results.
    pub down: f64,
}

impl Model {
    /// Whether the numbers can be right. A model that was stored may have others, and a model
    /// of a busy page says that a GPU takes 50 times as long as usual before it computes
    /// anything. A GPU in software computes as slowly as that, and answers in time.
    pub fn is_sound(&self) -> bool {
        let usual = Model::default();
        let mut waits = self.0.iter().zip(usual.0).take(GPU);
        waits.all(|(fact, usual)| *fact < usual * FARTHEST)
            && self.0.iter().all(|fact| (0.0..1e9).contains(fact))
    }

    /// Milliseconds that a flush of the GPU takes before it does anything.
    pub fn flush_ms(&self) -> f64 {
        self.0[FLUSH]
    }

    /// Milliseconds that calls add to a flush of the GPU.
    pub fn gpu_ms(&self, sum: &Sum) -> f64 {
        let [_, dispatch, up, down, call, ..] = self.0;
        let moved = up * sum.up + down * sum.down + call * sum.calls;
        dispatch * sum.dispatches + moved / MILLION + self.work(GPU, &sum.effort)
    }

    /// Milliseconds that calls take on the CPU.
    pub fn cpu_ms(&self, sum: &Sum) -> f64 {
        self.0[CPU_CALL] * sum.calls / MILLION + self.work(CPU, &sum.effort)
    }

    fn work(&self, side: usize, effort: &Effort) -> f64 {
        let rates = &self.0[side..side + KINDS];
        let costs = rates.iter().zip(effort.0).map(|(rate, count)| rate * count);
        costs.sum::<f64>() / MILLION
    }
}
