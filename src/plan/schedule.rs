//! Programs as they are scheduled: their kernels, the order in which their stages run, and
//! which of a stage's calls may be one.
//!
//! Calls of one schedule are computed together, whatever their shapes. So it is shared,
//! and knows no number of any.

use std::sync::Arc;

use super::call::Shares;
use super::coalesce::Joint;
use crate::kernel::{Kernel, Named};
use crate::program::{Body, BufferId, Products, Program, Source, Stage, Target, Tiles};

/// A program with what every call of it needs.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    pub(super) program: Program,
    /// Those of the stages in order, then those for small tiles, and what merges the
    /// results of a search.
    pub(super) kernels: Vec<Kernel>,
    /// For each stage what tells whether calls can be one.
    pub(super) joints: Vec<Joint>,
    pub(super) runs: Vec<Run>,
    /// The input that it writes, if that is a tensor on the device.
    pub(super) written: Option<u32>,
}

/// A stage at work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) stage: usize,
    /// The output that it writes, if it writes one.
    pub(super) output: Option<usize>,
}

impl Schedule {
    /// The schedule of a program; one of these, if it is theirs.
    pub(super) fn shared<'a>(
        program: Program,
        mut known: impl Iterator<Item = &'a Arc<Schedule>>,
    ) -> Arc<Schedule> {
        match known.find(|known| known.program == program) {
            Some(known) => Arc::clone(known),
            None => Arc::new(Schedule::new(program)),
        }
    }

    fn new(program: Program) -> Schedule {
        let written = program.stages.iter().find_map(|stage| match stage.target {
            Target::Resident(input) => Some(input),
            Target::Buffer(_) => None,
        });
        Schedule {
            kernels: kernels(&program.stages),
            joints: program.stages.iter().map(Joint::of).collect(),
            runs: runs(&program),
            written,
            program,
        }
    }

    /// The kernel of a stage for these calls.
    pub(super) fn kernel(&self, stage: usize, calls: &Shares) -> Kernel {
        let threads = calls.segments.iter().map(|call| call.rows);
        match &self.kernels[stage] {
            Kernel::Product(of, products, _) if products.are_small(threads, &calls.entries) => {
                Kernel::Product(Arc::clone(of), *products, Tiles::Small)
            }
            kernel => kernel.clone(),
        }
    }

    /// Whether no run behind this one reads what a stage made.
    pub(super) fn is_last_reader(&self, run: usize, buffer: BufferId) -> bool {
        let reads = |run: &Run| {
            let mut loads = self.program.stages[run.stage].loads.iter();
            loads.any(|load| load.source == Source::Buffer(buffer))
        };
        reads(&self.runs[run]) && !self.runs[run + 1..].iter().any(reads)
    }
}

fn kernels(stages: &[Stage]) -> Vec<Kernel> {
    let (mut kernels, mut others) = (Vec::new(), Vec::new());
    for stage in stages {
        kernels.push(match (&stage.body, Products::of(stage)) {
            (Body::Named(kernel, _), _) => Kernel::Named(kernel.clone()),
            (Body::Search(searching), _) => {
                others.push(Kernel::Named(Named::TopKMerge));
                Kernel::Named(Named::TopKScan(searching.scan))
            }
            (_, None) => Kernel::Fused(Arc::new(stage.clone())),
            (_, Some(products)) => {
                let of = Arc::new(stage.clone());
                others.push(Kernel::Product(Arc::clone(&of), products, Tiles::Small));
                Kernel::Product(of, products, Tiles::Large)
            }
        });
    }
    kernels.append(&mut others);
    kernels
}

/// The stages in order; a result that was asked for twice is made twice.
fn runs(program: &Program) -> Vec<Run> {
    let output = |stage: &Stage| {
        let buffer = stage.buffer()?;
        program.outputs.iter().position(|output| *output == buffer)
    };
    let stages = program.stages.iter().enumerate();
    let first = stages.clone().map(|(stage, work)| Run {
        stage,
        output: output(work),
    });
    let mut runs: Vec<Run> = first.collect();
    for (at, buffer) in program.outputs.iter().enumerate() {
        if program.outputs[..at].contains(buffer) {
            let again = stages
                .clone()
                .filter(|(_, work)| work.buffer() == Some(*buffer));
            runs.extend(again.map(|(stage, _)| Run {
                stage,
                output: Some(at),
            }));
        }
    }
    runs
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "schedule_tests.rs"]
mod tests;
