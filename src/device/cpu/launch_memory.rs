//! The memory of a launch: room for the slots that its steps write, operands that are read in place
//! or gathered, and resident tensors.
//!
//! What is computed is not known here.

use crate::error::Error;
use crate::plan::{CopyRun, Plan, Slot, Step};
use crate::tensor::{Arena, Span, WORD};

/// Makes room for the words that a step writes to a slot.
pub(super) fn reserve_for(
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

/// Makes room for `words` words in all.
pub(super) fn grow(memory: &mut Vec<u32>, words: usize) -> Result<(), Error> {
    let more = words.saturating_sub(memory.len());
    memory.try_reserve_exact(more).map_err(|_| {
        let bytes = words as u64 * u64::from(WORD);
        Error::OutOfMemory(format!(
            "the CPU has none for {bytes} bytes; give it less at a time, or dispose of tensors"
        ))
    })
}

/// The memory that a dispatch reads besides slots.
pub(super) struct Memory<'a> {
    pub(super) plan: &'a Plan,
    pub(super) arena: &'a Arena,
    pub(super) tensors: &'a [Vec<u32>],
}

impl<'a> Memory<'a> {
    /// The words of a slot.
    pub(super) fn words(&self, slot: Slot, slots: &'a [Vec<u32>]) -> &'a [u32] {
        if let Some(tensor) = slot.tensor() {
            return &self.tensors[tensor as usize];
        }
        match self.plan.uploads() {
            [run] if slot == Slot::INPUTS && slots[0].is_empty() => self.arena.tail(run.from),
            _ => &slots[slot.0 as usize],
        }
    }

    /// A span of a slot that is no tensor's.
    pub(super) fn read(&self, slot: Slot, span: Span, slots: &'a [Vec<u32>]) -> &'a [u32] {
        match self.plan.uploads() {
            [run] if slot == Slot::INPUTS && slots[0].is_empty() => {
                let at = run.from + span.at;
                self.arena.read(Span { at, ..span })
            }
            _ => &slots[slot.0 as usize][span.at as usize..(span.at + span.words) as usize],
        }
    }
}

/// Whether the operands are a single run of the arena, which is read in place.
pub(super) fn is_read_in_place(runs: &[CopyRun], arena: &Arena, plan: &Plan) -> bool {
    // Fused stages, clips and searches read a slot as one slice, so the run must lie in one piece
    // of the arena's memory.
    let mut by_row = plan.dispatches().map(|work| work.kernel.is_by_row());
    let is_by_row = by_row.all(|is_by_row| is_by_row);
    let in_place = |run: &CopyRun| is_by_row || arena.tail(run.from).len() >= run.words as usize;
    runs.len() < 2 && runs.iter().all(in_place)
}

/// Copies runs of the arena to one slice.
pub(super) fn gather(runs: &[CopyRun], arena: &Arena, gathered: &mut Vec<u32>) {
    gathered.clear();
    for run in runs {
        let span = Span {
            at: run.from,
            words: run.words,
        };
        arena.each_slice(span, &mut |words| gathered.extend_from_slice(words));
    }
}
