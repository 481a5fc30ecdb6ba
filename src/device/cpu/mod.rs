//! The processor as a device: runs every plan where there is no GPU.
//!
//! It works on the host arena in place, so nothing is uploaded or read back;
//! a launch is finished when it returns.

mod clip;
mod expr;
mod functions;
mod fused;
mod kernels;
mod math;
mod parallel;
pub mod program;
mod search;

use std::ops::Range;

use self::kernels::{Operands, Values, run};
use self::parallel::{Size, Task, Work, share};
use self::program::Output;
use super::{Counters, Device, DeviceInfo, DeviceLimits, Engine, Flight, HostPool, Readback};
use crate::error::Error;
use crate::kernel::{Kernel, Named};
use crate::plan::{ChunkSizes, CopyRun, Dispatch, Operand, Plan, Segment, Slot, Step};
use crate::tensor::{Arena, Packing, Span, WORD};

/// Addresses are 32-bit word numbers; a quarter of them is plenty for a batch.
const MAX_SIDE_BYTES: u64 = 1 << 30;

/// The processor.
#[derive(Debug, Default)]
pub struct Cpu {
    counters: Counters,
    /// Tensors that stay, by number.
    tensors: Vec<Vec<u32>>,
    results: HostPool,
}

impl Device for Cpu {
    fn limits(&self) -> DeviceLimits {
        DeviceLimits {
            max_side_bytes: MAX_SIDE_BYTES,
            chunks: ChunkSizes::WHOLE, // There is nothing to overlap with.
            max_threads: u64::MAX,
        }
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            engine: Engine::Cpu,
            adapter: "cpu".into(),
            driver: String::new(),
            software: true,
            features: Vec::new(),
            limits: vec![("maxSideBytes", MAX_SIDE_BYTES)],
        }
    }

    fn counters(&self) -> Counters {
        let tensors: usize = self.tensors.iter().map(Vec::capacity).sum();
        Counters {
            host_bytes: (tensors + self.results.kept()) as u64 * u64::from(WORD),
            ..self.counters
        }
    }

    fn launch(&mut self, plan: &Plan, arena: &mut Arena) -> Flight {
        let mut slots: Vec<Vec<u32>> = vec![Vec::new(); plan.slots.len()];
        let missing = plan.tensors().any(|tensor| {
            let words = self.tensors.get(tensor as usize);
            words.is_none_or(Vec::is_empty)
        });
        if missing {
            return Box::pin(std::future::ready(Err(Error::tensor_missing())));
        }
        if let Some(results) = slots.get_mut(Slot::RESULTS.0 as usize) {
            *results = self.results.take(plan.words(Slot::RESULTS) as usize);
        }
        for step in &plan.steps {
            // The memory of a page may not grow: this launch fails then, and nothing else.
            if let Err(error) = reserve_for(step, plan, arena, &mut slots) {
                return Box::pin(std::future::ready(Err(error)));
            }
            match step {
                Step::Dispatch(work) => match &work.kernel {
                    Kernel::Fused(stage) | Kernel::Product(stage, ..) => {
                        let memory = Memory {
                            plan,
                            arena,
                            tensors: &self.tensors,
                        };
                        fused::dispatch((work, stage), &memory, &mut slots);
                    }
                    Kernel::Named(kernel @ (Named::TopKScan(_) | Named::TopKMerge)) => {
                        let memory = Memory {
                            plan,
                            arena,
                            tensors: &self.tensors,
                        };
                        match kernel {
                            Named::TopKScan(scan) => {
                                search::scan((work, scan), &memory, &mut slots)
                            }
                            _ => search::merge(work, &memory, &mut slots),
                        }
                    }
                    Kernel::Named(Named::Clip) => {
                        let target = work.output.tensor();
                        // Taken out while it is written.
                        let mut output = match target {
                            Some(tensor) => std::mem::take(&mut self.tensors[tensor as usize]),
                            None => std::mem::take(&mut slots[work.output.0 as usize]),
                        };
                        let words = plan.words(work.output) as usize;
                        output.resize(words.max(output.len()), 0);
                        let memory = Memory {
                            plan,
                            arena,
                            tensors: &self.tensors,
                        };
                        clip::dispatch(work, (&memory, &slots), &mut output);
                        match target {
                            Some(tensor) => self.tensors[tensor as usize] = output,
                            None => slots[work.output.0 as usize] = output,
                        }
                    }
                    Kernel::Named(kernel) => dispatch((work, kernel), plan, arena, &mut slots),
                },
                Step::Free { slot } => slots[slot.0 as usize] = Vec::new(),
                Step::Upload { slot, runs, .. } => {
                    if !is_read_in_place(runs, arena, plan) {
                        gather(runs, arena, &mut slots[slot.0 as usize]);
                    }
                }
                // The results are handed over where they lie.
                Step::Download { .. } => {}
            }
        }
        let results = slots
            .get_mut(Slot::RESULTS.0 as usize)
            .map(std::mem::take)
            .unwrap_or_default();
        let results = self.results.lend(results);
        Box::pin(std::future::ready(Ok(Readback::Host(results))))
    }

    fn fill(&mut self, tensor: u32, words: &[u32], packing: Option<Packing>) -> Result<(), Error> {
        let own = match packing {
            // Once: it costs memory, and spares every call the work.
            Some(packing) => packing.unpack(words),
            None => {
                let mut own = Cpu::room(words.len())?;
                own.extend_from_slice(words);
                own
            }
        };
        self.keep(tensor, own);
        Ok(())
    }

    fn patch(&mut self, tensor: u32, at: u32, words: &[u32]) {
        let all = self.tensors.get_mut(tensor as usize);
        let part = all.and_then(|all| all.get_mut(at as usize..at as usize + words.len()));
        if let Some(part) = part {
            part.copy_from_slice(words);
        }
    }

    fn tensor_words(&self, tensor: u32) -> Option<&[u32]> {
        let words = self.tensors.get(tensor as usize)?;
        (!words.is_empty()).then_some(words)
    }

    fn tensor_bytes(&self, tensor: u32) -> u64 {
        let words = self.tensors.get(tensor as usize).map_or(0, Vec::len);
        words as u64 * u64::from(WORD)
    }

    fn release(&mut self, tensor: u32) {
        if let Some(words) = self.tensors.get_mut(tensor as usize) {
            *words = Vec::new();
        }
    }

    fn allow(&mut self, bytes: u64) {
        self.results.allow(bytes / 8 / u64::from(WORD));
    }

    fn trim(&mut self) {
        self.results.trim();
    }

    fn destroy(&mut self) {
        self.tensors = Vec::new();
        self.results = HostPool::default();
    }
}

impl Cpu {
    /// Memory for so many words of a tensor, and for what [`Cpu::keep`] adds.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] where there is no memory for them.
    pub fn room(words: usize) -> Result<Vec<u32>, Error> {
        let mut room = Vec::new();
        grow(&mut room, words.max(1).next_multiple_of(4))?;
        Ok(room)
    }

    /// Takes a tensor's data over.
    pub fn keep(&mut self, tensor: u32, mut words: Vec<u32>) {
        let index = tensor as usize;
        if index >= self.tensors.len() {
            self.tensors.resize(index + 1, Vec::new());
        }
        // Maps read four elements at a time; and one without any is not one that
        // was never filled.
        words.resize(words.len().max(1).next_multiple_of(4), 0);
        self.tensors[index] = words;
    }
}

/// Makes room for what a step writes to a slot.
fn reserve_for(
    step: &Step,
    plan: &Plan,
    arena: &Arena,
    slots: &mut [Vec<u32>],
) -> Result<(), Error> {
    let (slot, words) = match step {
        Step::Dispatch(work) if work.output.tensor().is_none() => {
            (work.output, plan.words(work.output) as usize)
        }
        Step::Upload { slot, runs, .. } if !is_read_in_place(runs, arena, plan) => {
            (*slot, runs.iter().map(|run| run.words as usize).sum())
        }
        _ => return Ok(()),
    };
    grow(&mut slots[slot.0 as usize], words)
}

/// Makes room for so many words in all.
fn grow(memory: &mut Vec<u32>, words: usize) -> Result<(), Error> {
    let more = words.saturating_sub(memory.len());
    memory.try_reserve_exact(more).map_err(|_| {
        let bytes = words as u64 * u64::from(WORD);
        Error::OutOfMemory(format!(
            "the processor has none for {bytes} bytes; give it less at a time, or dispose of tensors"
        ))
    })
}

/// What a dispatch reads besides slots.
struct Memory<'a> {
    plan: &'a Plan,
    arena: &'a Arena,
    tensors: &'a [Vec<u32>],
}

impl<'a> Memory<'a> {
    /// The words of a slot.
    fn words(&self, slot: Slot, slots: &'a [Vec<u32>]) -> &'a [u32] {
        if let Some(tensor) = slot.tensor() {
            return &self.tensors[tensor as usize];
        }
        match self.plan.uploads() {
            [run] if slot == Slot::INPUTS && slots[0].is_empty() => self.arena.tail(run.from),
            _ => &slots[slot.0 as usize],
        }
    }
}

/// Whether the operands are a single run, which is read where it lies.
fn is_read_in_place(runs: &[CopyRun], arena: &Arena, plan: &Plan) -> bool {
    // Fused stages, clips and searches see a slot as a whole, so a run must not go on elsewhere.
    let mut by_row = plan.dispatches().map(|work| work.kernel.is_by_row());
    let is_by_row = by_row.all(|is_by_row| is_by_row);
    let in_place = |run: &CopyRun| is_by_row || arena.tail(run.from).len() >= run.words as usize;
    runs.len() < 2 && runs.iter().all(in_place)
}

/// Copies the operands to one place.
fn gather(runs: &[CopyRun], arena: &Arena, gathered: &mut Vec<u32>) {
    gathered.clear();
    for run in runs {
        let span = Span {
            at: run.from,
            words: run.words,
        };
        arena.each_slice(span, &mut |words| gathered.extend_from_slice(words));
    }
}

/// Runs a kernel of rows for every call.
fn dispatch(
    (work, kernel): (&Dispatch, &Named),
    plan: &Plan,
    arena: &Arena,
    slots: &mut [Vec<u32>],
) {
    let home = work.output.0 as usize;
    // Taken out while it is written, so that other slots can be read.
    let mut output = std::mem::take(&mut slots[home]);
    output.resize(plan.words(work.output) as usize, 0);
    let behind = work.operands.len();
    let operands = |call: usize, rows: &Range<usize>| -> Operands<'_> {
        let entry = &work.entries[call * behind..][..behind];
        std::array::from_fn(|k| match work.operands.get(k) {
            Some(Operand::Rows { slot, words }) => {
                let span = Span {
                    at: entry[k],
                    words: work.segments[call].rows * words,
                };
                let all = read(*slot, span, plan.uploads(), (arena, slots));
                let words = *words as usize;
                Values::Rows(&all[rows.start * words..rows.end * words])
            }
            Some(Operand::Scalar) => Values::Scalar(entry[k]),
            None => Values::Scalar(0),
        })
    };
    let row_words = work.row_words as usize;
    // What a word of the result takes, in passes over one value.
    let passes = match kernel {
        Named::Lerp | Named::Bezier | Named::StateGradients => 4,
        _ => 128,
    };
    let compute = |task: Task, output: Output<'_>| {
        for call in task.calls {
            let segment = &work.segments[call];
            let rows = task.lines.clone().unwrap_or(0..segment.rows as usize);
            // Of a call that is cut the output begins behind the call's result.
            let at = |row: usize| segment.result as usize + row * row_words - output.start;
            run(
                kernel,
                &work.settings,
                &operands(call, &rows),
                &mut output.words[at(rows.start)..at(rows.end)],
            );
        }
    };
    let size = |call: usize| {
        let Segment { rows, result, .. } = work.segments[call];
        Some(Size {
            start: result as usize,
            lines: rows as usize,
            words: row_words,
            work: row_words * passes,
        })
    };
    let all = Work {
        calls: work.segments.len(),
        size: &size,
        run: &compute,
    };
    share(&all, &mut output);
    slots[home] = output;
}

fn read<'a>(
    slot: Slot,
    span: Span,
    runs: &[CopyRun],
    (arena, slots): (&'a Arena, &'a [Vec<u32>]),
) -> &'a [u32] {
    if let (Slot::INPUTS, [run], true) = (slot, runs, slots[0].is_empty()) {
        let at = run.from + span.at;
        return arena.read(Span { at, ..span });
    }
    &slots[slot.0 as usize][span.at as usize..(span.at + span.words) as usize]
}
