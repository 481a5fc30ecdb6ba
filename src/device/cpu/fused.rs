//! Dispatches of the stages that fusion makes: finds each call's operands and runs the stage
//! on them.

use std::sync::{Mutex, PoisonError};

use super::launch_memory::Memory;
use super::parallel::{Size, Task, Work, share};
use super::program::{Numbers, Operands, Output, Runner, StageCall, lines_of};
use crate::error::Error;
use crate::plan::{Dispatch, Operand, Slot};
use crate::program::{Layout, Stage};

/// Runs a stage for every call; `output` is what the stage writes, which no slot holds meanwhile.
///
/// # Errors
///
/// What kept a function of a caller's from computing.
pub(super) fn dispatch(
    work: &Dispatch,
    stage: &Stage,
    memory: &Memory<'_>,
    slots: &[Vec<u32>],
    output: &mut [u32],
) -> Result<(), Error> {
    let loads: Vec<&[u32]> = (stage.loads.iter())
        .map(|load| match work.operands.get(load.binding as usize) {
            Some(Operand::Rows { slot, .. }) => memory.words(*slot, slots),
            // A load without an operand is read from the output, in place.
            Some(Operand::Scalar) | None => &[],
        })
        .collect();
    let calls = Calls {
        work,
        stage,
        layout: Layout::of(stage),
        inputs: memory.words(Slot::INPUTS, slots),
        loads: &loads,
        failure: Mutex::default(),
    };
    let work = Work {
        calls: work.segments.len(),
        size: &|call| calls.size(call),
        run: &|task, output| calls.run(task, output),
    };
    share(&work, output);
    let failure = calls.failure.into_inner();
    failure
        .unwrap_or_else(PoisonError::into_inner)
        .map_or(Ok(()), Err)
}

/// The calls of a dispatch.
struct Calls<'a> {
    work: &'a Dispatch,
    stage: &'a Stage,
    layout: Layout,
    /// The operands that came with the calls.
    inputs: &'a [u32],
    loads: &'a [&'a [u32]],
    /// What kept a function of a caller's from computing, on any core.
    failure: Mutex<Option<Error>>,
}

impl Calls<'_> {
    fn run(&self, task: Task, output: Output<'_>) {
        let mut runner = Runner::new(self.stage);
        for call in task.calls {
            let (numbers, entry) = self.numbers(call);
            let constants = match self.stage.has_constants() {
                true => &self.inputs[entry[self.layout.constants as usize] as usize..],
                false => &[],
            };
            let operands = Operands {
                loads: self.loads,
                constants,
            };
            if numbers.threads == 0 {
                continue; // A result without elements may have its place behind the output's end.
            }
            let lines = match &task.lines {
                Some(lines) => lines.clone(),
                None => 0..runner.lines(numbers).count,
            };
            let output = Output {
                words: &mut *output.words,
                start: output.start,
            };
            let call = StageCall {
                numbers,
                operands: &operands,
            };
            runner.run_lines(call, lines, output);
        }
        if let Some(error) = runner.failure() {
            let failure = self.failure.lock();
            *failure.unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }

    fn size(&self, call: usize) -> Option<Size> {
        let (numbers, _) = self.numbers(call);
        let lines = lines_of(self.stage, &self.layout, numbers);
        Some(Size {
            start: numbers.result as usize,
            lines: lines.count,
            words: lines.words?,
            work: lines.work,
        })
    }

    /// What the segment table says of a call, and the call's whole entry.
    fn numbers(&self, call: usize) -> (Numbers<'_>, &[u32]) {
        let work = self.work;
        let behind = work.entries.len() / work.segments.len();
        let entry = &work.entries[call * behind..][..behind];
        let segment = &work.segments[call];
        let numbers = Numbers {
            threads: segment.rows,
            // Offsets count from the start of the slot, because strides may lead back.
            offsets: &entry[..self.loads.len()],
            result: segment.result,
            words: &entry[self.layout.sizes as usize..],
        };
        (numbers, entry)
    }
}
