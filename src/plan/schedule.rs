//! Scheduled programs: their kernels, the order in which their stages run, and how calls of a
//! stage are coalesced.
//!
//! Calls of one schedule are computed together, whatever their shapes. A schedule is therefore
//! shared by recipes, and has no size of any.

use std::sync::Arc;

use super::call::SegmentList;
use super::coalesce::CoalesceRule;
use crate::kernel::{Kernel, Named};
use crate::program::{Body, BufferId, Products, Program, Source, Stage, Target, Tiles};

/// A program with what every call of it needs.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    pub(super) program: Program,
    /// The kernel of each stage, in order; then the kernels of small tiles, and the one that
    /// merges what the workgroups of a search kept.
    pub(super) kernels: Vec<Kernel>,
    /// For each stage how its calls are coalesced.
    pub(super) coalesce_rules: Vec<CoalesceRule>,
    pub(super) runs: Vec<StageRun>,
    /// The inputs that the program writes, which are resident tensors.
    pub(super) written: Vec<u32>,
    /// Whether functions of callers are applied.
    pub(super) has_caller_fns: bool,
}

/// One run of a stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct StageRun {
    pub(super) stage: usize,
    /// The number of the output that this run writes, if it writes one.
    pub(super) output: Option<usize>,
}

impl Schedule {
    /// The schedule of a program: a known one, if that has an equal program.
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
        let mut written = Vec::new();
        for stage in &program.stages {
            match stage.target {
                Target::Resident(input) if !written.contains(&input) => written.push(input),
                Target::Resident(_) | Target::Buffer(_) => {}
            }
        }
        Schedule {
            kernels: kernels(&program.stages),
            coalesce_rules: program.stages.iter().map(CoalesceRule::of).collect(),
            runs: runs(&program),
            has_caller_fns: (program.stages.iter()).any(|stage| !stage.caller_fns().is_empty()),
            written,
            program,
        }
    }

    /// The kernel of a stage for these calls: products may be small enough for small tiles.
    pub(super) fn kernel(&self, stage: usize, calls: &SegmentList) -> Kernel {
        let threads = calls.segments.iter().map(|call| call.rows);
        match &self.kernels[stage] {
            Kernel::Product(of, products, _) if products.are_small(threads, &calls.entries) => {
                Kernel::Product(Arc::clone(of), *products, Tiles::Small)
            }
            kernel => kernel.clone(),
        }
    }

    /// Whether this run reads a buffer, and no later run does.
    pub(super) fn is_last_reader(&self, run: usize, buffer: BufferId) -> bool {
        let reads = |run: &StageRun| {
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

/// The runs of the stages, in order. A stage whose result is two outputs of the program runs
/// twice.
fn runs(program: &Program) -> Vec<StageRun> {
    let output = |stage: &Stage| {
        let buffer = stage.buffer()?;
        program.outputs.iter().position(|output| *output == buffer)
    };
    let stages = program.stages.iter().enumerate();
    let first = stages.clone().map(|(stage, work)| StageRun {
        stage,
        output: output(work),
    });
    let mut runs: Vec<StageRun> = first.collect();
    for (at, buffer) in program.outputs.iter().enumerate() {
        if program.outputs[..at].contains(buffer) {
            let again = stages
                .clone()
                .filter(|(_, work)| work.buffer() == Some(*buffer));
            runs.extend(again.map(|(stage, _)| StageRun {
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
