//! The CPU as a device, beside a GPU or where there is none.
//!
//! The device works on the host arena in place, so nothing is uploaded or read back. A launch is
//! finished when it returns.

mod clip;
mod expr;
mod functions;
mod fused;
mod insertion;
mod kernels;
mod launch_memory;
mod math;
mod parallel;
pub mod program;
mod row_kernels;
mod search;

use self::launch_memory::{Memory, gather, grow, is_read_in_place, reserve_for};
use super::{
    Counters, CpuReason, Device, DeviceInfo, DeviceLimits, Engine, Flight, HostPool, Readback,
    Readiness, failed,
};
use crate::error::Error;
use crate::kernel::{Kernel, Named};
use crate::plan::{ChunkSizes, Plan, Slot, Step};
use crate::tensor::{Arena, Packing, WORD};

/// Bytes of a batch's operands, or of its results. Addresses are numbers of words in 32 bits;
/// a sixteenth of what they reach is plenty.
const MAX_SIDE_BYTES: u64 = 1 << 30;

/// The CPU.
#[derive(Debug, Default)]
pub struct Cpu {
    reason: CpuReason,
    counters: Counters,
    /// Resident tensors, by number.
    tensors: Vec<Vec<u32>>,
    results: HostPool,
}

impl Device for Cpu {
    fn limits(&self) -> DeviceLimits {
        DeviceLimits {
            max_side_bytes: MAX_SIDE_BYTES,
            chunks: ChunkSizes::WHOLE, // Chunks would have no transfer to overlap with.
            max_threads: u64::MAX,
        }
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            engine: Engine::Cpu,
            reason: Some(self.reason),
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

    fn prepare(&mut self, kernel: &Kernel) -> Readiness {
        let (Kernel::Fused(stage) | Kernel::Product(stage, ..)) = kernel else {
            return Readiness::Ready;
        };
        let functions = stage.caller_fns();
        match functions.iter().find(|function| function.twin().is_none()) {
            Some(function) => {
                Readiness::Failed(Error::NoCpuFunction(function.content.name.clone()))
            }
            None => Readiness::Ready,
        }
    }

    fn launch(&mut self, plan: &Plan, arena: &mut Arena) -> Result<Flight, Error> {
        let mut slots: Vec<Vec<u32>> = vec![Vec::new(); plan.slots.len()];
        if !self.has_tensors(plan) {
            return Err(Error::tensor_missing());
        }
        if let Some(results) = slots.get_mut(Slot::RESULTS.0 as usize) {
            *results = self.results.take(plan.words(Slot::RESULTS) as usize);
        }
        let mut progress = Progress::Scratch;
        for step in &plan.steps {
            // The memory of a page may not grow: this launch fails then, and nothing else.
            if let Err(error) = reserve_for(step, plan, arena, &mut slots) {
                return progress.fail(error);
            }
            if matches!(step, Step::Dispatch(work) if work.output.tensor().is_some()) {
                progress = Progress::Stored;
            }
            match step {
                Step::Dispatch(work) => match &work.kernel {
                    Kernel::Fused(stage) | Kernel::Product(stage, ..) => {
                        let mut output = self.take_output(plan, work.output, &mut slots);
                        let memory = Memory {
                            plan,
                            arena,
                            tensors: &self.tensors,
                        };
                        let computed = fused::dispatch(work, stage, &memory, &slots, &mut output);
                        self.put_back(work.output, output, &mut slots);
                        if let Err(error) = computed {
                            return progress.fail(error);
                        }
                    }
                    Kernel::Named(kernel @ (Named::TopKScan(_) | Named::TopKMerge)) => {
                        let memory = Memory {
                            plan,
                            arena,
                            tensors: &self.tensors,
                        };
                        match kernel {
                            Named::TopKScan(scan) => search::scan(work, scan, &memory, &mut slots),
                            _ => search::merge(work, &memory, &mut slots),
                        }
                    }
                    Kernel::Named(kernel @ (Named::Clip | Named::PackVectors)) => {
                        let mut output = self.take_output(plan, work.output, &mut slots);
                        let memory = Memory {
                            plan,
                            arena,
                            tensors: &self.tensors,
                        };
                        match kernel {
                            Named::Clip => clip::dispatch(work, &memory, &slots, &mut output),
                            _ => insertion::dispatch(work, &memory, &slots, &mut output),
                        }
                        self.put_back(work.output, output, &mut slots);
                    }
                    Kernel::Named(kernel) => {
                        let memory = Memory {
                            plan,
                            arena,
                            tensors: &self.tensors,
                        };
                        row_kernels::dispatch(work, kernel, &memory, &mut slots);
                    }
                },
                Step::Free { slot } => slots[slot.0 as usize] = Vec::new(),
                Step::Upload { slot, runs, .. } => {
                    if !is_read_in_place(runs, arena, plan) {
                        gather(runs, arena, &mut slots[slot.0 as usize]);
                    }
                }
                // The slot of the results is handed over as it is.
                Step::Download { .. } => {}
            }
        }
        let results = slots
            .get_mut(Slot::RESULTS.0 as usize)
            .map(std::mem::take)
            .unwrap_or_default();
        let results = self.results.lend(results);
        Ok(Box::pin(std::future::ready(Ok(Readback::Host(results)))))
    }

    fn fill(&mut self, tensor: u32, words: &[u32], packing: Option<Packing>) -> Result<(), Error> {
        let own = match packing {
            // Unpacked once: that costs memory, and spares every call the work.
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

    fn allocate(&mut self, tensor: u32, words: u32) -> Result<(), Error> {
        let mut room = Cpu::room(words as usize)?;
        room.resize(words as usize, 0);
        self.keep(tensor, room);
        Ok(())
    }

    fn patch(&mut self, tensor: u32, at: u32, words: &[u32]) {
        let count = u32::try_from(words.len()).unwrap_or(u32::MAX);
        if let Some(part) = self.part_mut(tensor, at, count) {
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

/// How far a launch has come.
#[derive(Clone, Copy)]
enum Progress {
    /// Nothing was stored yet.
    Scratch,
    /// Something was stored, and so the launch counts as submitted.
    Stored,
}

impl Progress {
    /// What a launch gives that fails here.
    fn fail(self, error: Error) -> Result<Flight, Error> {
        match self {
            Progress::Scratch => Err(error),
            Progress::Stored => Ok(failed(error)),
        }
    }
}

impl Cpu {
    /// The CPU in the place of a GPU, and why.
    pub fn instead_of_gpu(reason: CpuReason) -> Cpu {
        Cpu {
            reason,
            ..Cpu::default()
        }
    }

    /// Whether all tensors of a plan were filled.
    fn has_tensors(&self, plan: &Plan) -> bool {
        plan.tensors().all(|tensor| {
            let words = self.tensors.get(tensor as usize);
            words.is_some_and(|words| !words.is_empty())
        })
    }

    /// Memory for a tensor of so many words, and for the padding that [`Cpu::keep`] adds.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] where there is no memory for them.
    pub fn room(words: usize) -> Result<Vec<u32>, Error> {
        let mut room = Vec::new();
        grow(&mut room, words.max(1).next_multiple_of(4))?;
        Ok(room)
    }

    /// Takes out what a dispatch writes, so that other slots can be read meanwhile.
    fn take_output(&mut self, plan: &Plan, output: Slot, slots: &mut [Vec<u32>]) -> Vec<u32> {
        if let Some(tensor) = output.tensor() {
            return std::mem::take(&mut self.tensors[tensor as usize]);
        }
        let mut words = std::mem::take(&mut slots[output.0 as usize]);
        words.resize(plan.words(output) as usize, 0);
        words
    }

    /// Puts what a dispatch wrote back in its place.
    fn put_back(&mut self, output: Slot, words: Vec<u32>, slots: &mut [Vec<u32>]) {
        match output.tensor() {
            Some(tensor) => self.tensors[tensor as usize] = words,
            None => slots[output.0 as usize] = words,
        }
    }

    /// The words of a tensor from word number `at` on, as many as are asked for, if the tensor has
    /// so many.
    pub fn part_mut(&mut self, tensor: u32, at: u32, words: u32) -> Option<&mut [u32]> {
        let all = self.tensors.get_mut(tensor as usize)?;
        all.get_mut(at as usize..at as usize + words as usize)
    }

    /// Takes over a tensor's data.
    pub fn keep(&mut self, tensor: u32, mut words: Vec<u32>) {
        let index = tensor as usize;
        if index >= self.tensors.len() {
            self.tensors.resize(index + 1, Vec::new());
        }
        // Maps read four elements at a time. A tensor without elements gets some words too, for
        // an empty list is a tensor that was never filled.
        words.resize(words.len().max(1).next_multiple_of(4), 0);
        self.tensors[index] = words;
    }
}
