//! Calls whose kernels are still being compiled: they wait aside, and go when
//! these are ready. What else is in their batch goes at once.
//!
//! Compiling is a device's business, and awaiting it a face's.

use super::Session;
use super::load::Load;
use super::loss::ATTEMPTS;
use super::warmup::Warmup;
use crate::batch::{Millis, Ticket};
use crate::device::{Compile, Compiled, Device, Generation, Readiness};
use crate::error::Error;
use crate::kernel::Kernel;
use crate::plan::Call;
use crate::tensor::Arena;

/// Words of operands up to which calls join others that wait, 256 KiB: they are copied.
const FEW: u32 = 1 << 16;

/// What a session knows of kernels on their way.
#[derive(Default)]
pub(super) struct Waiting {
    /// Whether calls that were set aside may be able to go by now.
    pub(super) is_due: bool,
    /// The same of warm-ups.
    pub(super) is_warmup_due: bool,
    /// What the face is to await.
    pub(super) compiles: Vec<Compile>,
    pub(super) warmups: Vec<Warmup>,
    /// When calls were set aside first, or the compiler was last done with a kernel.
    since: Millis,
}

/// The state of several kernels together.
#[derive(Clone)]
pub(super) enum State {
    Ready,
    Failed(Error),
    Compiling,
}

impl<D: Device> Session<D> {
    /// The compilations that launches have begun. Await each, and give what comes
    /// out to [`Session::compiled`], with the generation of now.
    pub fn compiles(&mut self) -> Vec<Compile> {
        std::mem::take(&mut self.waiting.compiles)
    }

    /// Takes what a compilation brought. [`Session::launch`] then sends the calls
    /// that waited for it alone.
    pub fn compiled(&mut self, generation: Generation, compiled: Compiled, now: Millis) {
        if generation != self.generation {
            return;
        }
        if matches!(compiled.outcome, Err(Error::DeviceLost(_))) {
            self.lose(generation);
            return;
        }
        self.device.adopt(compiled);
        self.waiting.is_due = true;
        self.waiting.is_warmup_due = true;
        self.waiting.since = now;
    }

    /// The oldest of the batches set aside that can go by now, as far as it can.
    pub(super) fn resume(&mut self, now: Millis) -> Option<Load> {
        if !self.waiting.is_due || self.is_lost() {
            return None;
        }
        for id in self.batcher.aside() {
            if !self.batcher.resume(id) {
                return None; // Too many are on their way.
            }
            let load = self.claim(id, now);
            if let Some(load) = self.sift(load, now) {
                return Some(load);
            }
        }
        self.waiting.is_due = false;
        None
    }

    /// What of a batch can go now, if anything. The rest is set aside.
    pub(super) fn sift(&mut self, mut load: Load, now: Millis) -> Option<Load> {
        // What has cost devices so often goes as it is, so that it is this batch
        // that loses the next one.
        if load.losses + 1 >= ATTEMPTS && !self.is_lost() {
            return Some(load);
        }
        let states = self.states(&load);
        let is_ready = |state: &State| matches!(state, State::Ready);
        let finds = self.written_before(&load);
        if states.iter().flatten().all(is_ready) && !finds.contains(&true) {
            return Some(load);
        }
        let state = |at: usize| match load.is_aside(at) {
            true => None,
            false => states[load.calls[at].recipe.0 as usize].as_ref(),
        };
        let failure = |at: usize| match state(at) {
            Some(State::Failed(error)) => Some(error),
            _ => None,
        };
        let failed = (0..load.calls.len()).find_map(failure);
        let leaves = (0..load.calls.len()).map(|at| match failed {
            // What fails goes alone: its error is nobody else's.
            Some(_) => failure(at) != failed,
            None => matches!(state(at), Some(State::Compiling)) || finds.get(at) == Some(&true),
        });
        let mut leaves: Vec<bool> = leaves.collect();
        if failed.is_some() {
            self.waiting.is_due = true;
        } else {
            self.keep_readers(&load, &mut leaves);
        }
        if !leaves.contains(&true) {
            return Some(load);
        }
        if !self.batcher.has_aside() {
            self.waiting.since = now;
        }
        let is_joined = self.join(&mut load, &leaves);
        if leaves.contains(&false) {
            if !is_joined {
                let id = self.batcher.divide(load.id, &leaves);
                let other = Load::new(id.expect("both know of it"), Arena::default());
                self.divide(&mut load, &leaves, other);
            }
            return Some(load);
        }
        if is_joined {
            self.recycle(load);
        } else {
            self.batcher.set_aside(load.id);
            self.sealed.push(load);
        }
        None
    }

    /// Moves the marked calls of a batch to the newest that is set aside, if they are
    /// few and it can take them: frames that wait for one kernel share their memory.
    fn join(&mut self, load: &mut Load, leaves: &[bool]) -> bool {
        let Some(id) = self.batcher.aside().pop() else {
            return false;
        };
        let at = self.sealed.iter().position(|other| other.id == id);
        let at = at.expect("both know of it");
        let other = &self.sealed[at];
        let marked = load.calls.iter().zip(leaves);
        let words = marked.map(|(call, leaves)| u32::from(*leaves) * call.inputs.words);
        let recipes = self.structures.recipes();
        // What reads a tensor finds what was written before in its own batch.
        let writes = |call: &Call| recipes[call.recipe.0 as usize].is_stored();
        let may_join = (load.losses, load.shortages) == (other.losses, other.shortages)
            && words.sum::<u32>() <= FEW
            && !load.calls.iter().chain(&other.calls).any(writes);
        let joins = may_join && self.batcher.join(load.id, leaves, id);
        if joins {
            let other = self.sealed.remove(at);
            self.divide(load, leaves, other);
        }
        joins
    }

    /// For each call whether it is the device's and names a tensor that an older call
    /// writes, which was set aside: it is to find there what that one wrote. Nothing
    /// where no call does.
    fn written_before(&self, load: &Load) -> Vec<bool> {
        let oldest = self.writers_aside();
        if oldest.is_empty() {
            return Vec::new();
        }
        let finds = |at: usize| {
            let mut set = load.sets[load.calls[at].set.0 as usize].iter();
            let own = load.tickets[at];
            !load.is_aside(at)
                && set.any(|tensor| {
                    let writer = oldest[*tensor as usize];
                    writer.is_some_and(|writer| writer.is_before(own))
                })
        };
        (0..load.calls.len()).map(finds).collect()
    }

    /// For each tensor the oldest call that writes it of those set aside, if any does.
    fn writers_aside(&self) -> Vec<Option<Ticket>> {
        let mut oldest: Vec<Option<Ticket>> = Vec::new();
        if !self.batcher.has_aside() {
            return oldest; // Most of the time.
        }
        let recipes = self.structures.recipes();
        for load in &self.sealed {
            for (call, ticket) in load.calls.iter().zip(&load.tickets) {
                let set = &load.sets[call.set.0 as usize];
                let Some(tensor) = recipes[call.recipe.0 as usize].written(set) else {
                    continue;
                };
                oldest.resize(self.tensors.count(), None);
                let known = &mut oldest[tensor as usize];
                let is_older = known.is_none_or(|known| ticket.is_before(known));
                if is_older && self.batcher.is_aside(load.id, *ticket) {
                    *known = Some(*ticket);
                }
            }
        }
        oldest
    }

    /// Marks the calls that name a tensor which a marked call writes: they find
    /// there what it wrote.
    fn keep_readers(&self, load: &Load, leaves: &mut [bool]) {
        let recipes = self.structures.recipes();
        let set = |call: &Call| &load.sets[call.set.0 as usize];
        let marked = load.calls.iter().zip(&*leaves);
        let written: Vec<u32> = marked
            .filter(|(_, leaves)| **leaves)
            .filter_map(|(call, _)| recipes[call.recipe.0 as usize].written(set(call)))
            .collect();
        if written.is_empty() {
            return; // Most batches.
        }
        for (call, leaves) in load.calls.iter().zip(leaves) {
            *leaves |= set(call).iter().any(|tensor| written.contains(tensor));
        }
    }

    /// Moves the marked calls of a batch to another, which is set aside.
    fn divide(&mut self, load: &mut Load, leaves: &[bool], mut other: Load) {
        let known = other.read.len();
        load.divide(leaves, &mut other);
        for tensor in &other.read[known..] {
            self.tensors.read(*tensor);
        }
        self.sealed.push(other);
    }

    /// Since when the compiler owes something that calls wait for; nothing, where they
    /// may go as soon as what is on its way lets them.
    pub(super) fn waiting_since(&self) -> Option<Millis> {
        let waits = self.batcher.has_aside() && !self.waiting.is_due;
        waits.then_some(self.waiting.since)
    }

    /// The states of the structures that calls for the device are of, by number.
    /// A lost one has nothing ready.
    fn states(&mut self, load: &Load) -> Vec<Option<State>> {
        let recipes = self.structures.recipes();
        let mut states = vec![None; recipes.len()];
        for (number, call) in load.calls.iter().enumerate() {
            let at = call.recipe.0 as usize;
            if states[at].is_none() && !load.is_aside(number) {
                let (device, compiles) = (&mut self.device, &mut self.waiting.compiles);
                states[at] = Some(match self.lost.is_some() {
                    true => State::Compiling,
                    false => state(device, compiles, recipes[at].kernels()),
                });
            }
        }
        states
    }
}

/// All kernels are asked for, so that they compile at the same time.
pub(super) fn state<'a>(
    device: &mut impl Device,
    compiles: &mut Vec<Compile>,
    kernels: impl Iterator<Item = &'a Kernel>,
) -> State {
    let (mut is_compiling, mut failure) = (false, None);
    for kernel in kernels {
        match device.prepare(kernel) {
            Readiness::Ready => {}
            Readiness::Failed(error) => failure = Some(error),
            Readiness::Compiling(started) => {
                is_compiling = true;
                compiles.extend(started);
            }
        }
    }
    match (is_compiling, failure) {
        (true, _) => State::Compiling,
        (false, Some(error)) => State::Failed(error),
        (false, None) => State::Ready,
    }
}

impl Waiting {
    /// The device is another one.
    pub(super) fn forget(&mut self) {
        self.compiles.clear();
        self.is_warmup_due = true;
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").finish_non_exhaustive()
    }
}
