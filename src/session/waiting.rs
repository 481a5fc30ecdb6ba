//! Calls whose kernels are still being compiled: they wait aside, and go when
//! these are ready. What else is in their batch goes at once.
//!
//! Compiling is a device's business, and awaiting it a face's.

use super::Session;
use super::load::Load;
use super::loss::ATTEMPTS;
use crate::batch::Millis;
use crate::device::{Compile, Compiled, Device, Generation, Readiness};
use crate::error::Error;
use crate::plan::{Call, Recipe};

/// What a session knows of kernels on their way.
#[derive(Default)]
pub(super) struct Waiting {
    /// Whether calls that were set aside may be able to go by now.
    pub(super) is_due: bool,
    /// What the face is to await.
    compiles: Vec<Compile>,
    /// When calls were set aside first, or the compiler was last done with a kernel.
    since: Millis,
}

/// A structure's state: that of its kernels together.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Ready,
    Failed,
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
        self.waiting.since = now;
    }

    /// The oldest of the batches set aside that can go by now, as far as it can.
    pub(super) fn resume(&mut self, now: Millis) -> Option<Load> {
        if !self.waiting.is_due {
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
        if load.losses + 1 >= ATTEMPTS {
            return Some(load);
        }
        let states = self.states(&load.calls);
        let state = |call: &Call| states[call.recipe.0 as usize];
        let failed = load
            .calls
            .iter()
            .find(|call| state(call) == Some(State::Failed));
        let failed = failed.map(|call| call.recipe);
        let leaves = load.calls.iter().map(|call| match failed {
            // What fails goes alone: its error is nobody else's.
            Some(recipe) => call.recipe != recipe,
            None => state(call) == Some(State::Compiling),
        });
        let leaves: Vec<bool> = leaves.collect();
        self.waiting.is_due |= failed.is_some();
        if !leaves.contains(&true) {
            return Some(load);
        }
        if self.waiting_since().is_none() {
            self.waiting.since = now;
        }
        if leaves.contains(&false) {
            self.divide(&mut load, &leaves);
            return Some(load);
        }
        self.batcher.set_aside(load.id);
        self.sealed.push(load);
        None
    }

    /// Parts the marked calls of a batch from the others: they are a batch of
    /// their own, set aside until [`Batcher::resume`].
    ///
    /// [`Batcher::resume`]: crate::batch::Batcher::resume
    pub(super) fn divide(&mut self, load: &mut Load, leaves: &[bool]) {
        let id = self.batcher.divide(load.id, leaves);
        let arena = self.spare.pop().unwrap_or_default();
        let mut other = Load::new(id.expect("both know of it"), arena);
        load.divide(leaves, &mut other);
        for tensor in &other.read {
            self.tensors.read(*tensor);
        }
        self.sealed.push(other);
    }

    /// Since when the compiler owes something that calls wait for.
    pub(super) fn waiting_since(&self) -> Option<Millis> {
        self.batcher.has_aside().then_some(self.waiting.since)
    }

    /// The states of the structures that calls are of, by number.
    fn states(&mut self, calls: &[Call]) -> Vec<Option<State>> {
        let recipes = self.structures.recipes();
        let mut states = vec![None; recipes.len()];
        for call in calls {
            let at = call.recipe.0 as usize;
            if states[at].is_none() {
                states[at] = Some(self.waiting.state(&mut self.device, &recipes[at]));
            }
        }
        states
    }
}

impl Waiting {
    /// All kernels are asked for, so that they compile at the same time.
    fn state(&mut self, device: &mut impl Device, recipe: &Recipe) -> State {
        let (mut failed, mut compiling) = (false, false);
        for kernel in recipe.kernels() {
            match device.prepare(kernel) {
                Readiness::Ready => {}
                Readiness::Failed => failed = true,
                Readiness::Compiling(started) => {
                    compiling = true;
                    self.compiles.extend(started);
                }
            }
        }
        match (compiling, failed) {
            (true, _) => State::Compiling,
            (false, true) => State::Failed,
            (false, false) => State::Ready,
        }
    }

    /// The device is another one.
    pub(super) fn forget(&mut self) {
        *self = Waiting::default();
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").finish_non_exhaustive()
    }
}
