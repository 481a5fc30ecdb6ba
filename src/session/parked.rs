//! Parking: calls whose kernels are still being compiled wait in a batch of their own, and
//! the other calls of their batch go at once.
//!
//! Devices compile, and faces await what devices compile.

use super::Session;
use super::compile_gate::State;
use super::payload::{Batch, Call, Payload};
use super::recovery::ATTEMPTS;
use super::tensor_table::TensorTable;
use crate::batch::{Millis, Ticket};
use crate::device::{Compile, Compiled, Device, Generation};
use crate::error::Error;
use crate::tensor::Arena;

/// Words of operands up to which calls join others that wait, 256 KiB: joining copies them.
const FEW: u32 = 1 << 16;

/// The oldest parked calls that use a tensor.
#[derive(Clone, Copy, Debug, Default)]
struct OldestUse {
    /// The oldest that names the tensor, to read or to write it.
    named: Option<Ticket>,
    /// The oldest that writes it.
    written: Option<Ticket>,
}

/// How calls use a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    None,
    Named,
    Written,
}

impl<D: Device> Session<D> {
    /// The compilations that launches have begun. Await each, and give the outcome to
    /// [`Session::compiled`], with the generation of now.
    pub fn compiles(&mut self) -> Vec<Compile> {
        self.gate.take_compiles()
    }

    /// Takes what a compilation brought. [`Session::launch`] then sends the calls that
    /// waited for this kernel alone.
    pub fn compiled(&mut self, generation: Generation, compiled: Compiled, now: Millis) {
        if generation != self.life.generation() {
            return;
        }
        if matches!(compiled.outcome, Err(Error::DeviceLost(_))) {
            self.lose(generation);
            return;
        }
        self.devices.primary_mut().adopt(compiled);
        self.gate.compiled(now);
    }

    /// Takes the oldest of the parked batches that can go by now, as far as its kernels are
    /// compiled: its place in flight.
    pub(super) fn resume(&mut self, now: Millis) -> Option<usize> {
        if !self.gate.is_open() || self.is_lost() {
            return None;
        }
        for id in self.queue.parked_ids() {
            // A batch that goes again may write what a parked call reads.
            if self.queue.is_behind_sealed(id) {
                return None;
            }
            // Nothing is resumed while too many batches are in flight.
            let way = self.way(now);
            let at = self.queue.resume(id, way)?;
            if self.prepare(at, now) && self.park_unready(at, now) {
                return Some(at);
            }
        }
        self.gate.close();
        None
    }

    /// Parks the calls of a batch that was just taken, by its place in flight, that cannot
    /// go yet. Whether any call goes.
    pub(super) fn park_unready(&mut self, at: usize, now: Millis) -> bool {
        let behind = self.behind_parked(self.queue.flying(at));
        if let Some(mut leaves) = self.leaves_of_suspects(at) {
            self.gate.open();
            self.leave_behind(at, &behind, &mut leaves);
            return self.park(at, &leaves, now);
        }
        let batch = self.queue.flying(at);
        // A batch that has cost so many devices does not wait for kernels, so that no other batch
        // is blamed if the next device is lost as well.
        if batch.payload.losses + 1 >= ATTEMPTS && !self.is_lost() {
            let mut leaves = vec![false; batch.calls().len()];
            self.leave_behind(at, &behind, &mut leaves);
            return self.park(at, &leaves, now);
        }
        let states = self.states(at);
        let batch = self.queue.flying(at);
        let is_ready = |state: &State| matches!(state, State::Ready);
        if states.iter().flatten().all(is_ready) && !behind.contains(&true) {
            return true;
        }
        let calls = batch.calls();
        let state = |at: usize| match calls[at].work {
            work if work.is_cpu_share => None,
            work => states[work.planned.recipe.0 as usize].as_ref(),
        };
        let failure = |at: usize| match state(at) {
            Some(State::Failed(error)) => Some(error),
            _ => None,
        };
        let mut failures: Vec<&Error> = Vec::new();
        for failed in (0..calls.len()).filter_map(failure) {
            if failures.contains(&failed) {
                continue;
            }
            failures.push(failed);
            self.gate.open();
            // A call whose kernel fails goes alone: its error is nobody else's. Those that are to
            // stay behind others do so: with another device they may run.
            let others = (0..calls.len()).map(|at| failure(at) != Some(failed));
            let mut leaves: Vec<bool> = others.collect();
            self.leave_behind(at, &behind, &mut leaves);
            if leaves.contains(&false) {
                return self.park(at, &leaves, now);
            }
        }
        let is_unready = |at: usize| !matches!(state(at), None | Some(State::Ready));
        let mut leaves: Vec<bool> = (0..calls.len()).map(is_unready).collect();
        self.leave_behind(at, &behind, &mut leaves);
        self.park(at, &leaves, now)
    }

    /// Marks those calls of a batch in flight, by its place, that are to stay behind parked ones, as
    /// [`Session::behind_parked`] says, or behind marked ones.
    fn leave_behind(&self, at: usize, behind: &[bool], leaves: &mut [bool]) {
        for (leaves, is_behind) in leaves.iter_mut().zip(behind) {
            *leaves |= is_behind;
        }
        self.keep_order_of_parked(self.queue.flying(at), leaves);
    }

    /// Parks the marked calls of a batch in flight, by its place. Whether any call goes.
    fn park(&mut self, at: usize, leaves: &[bool], now: Millis) -> bool {
        if !leaves.contains(&true) {
            return true;
        }
        if !self.queue.has_parked() {
            self.gate.park(now);
        }
        let is_joined = self.join_newest_parked(at, leaves);
        match (is_joined, leaves.contains(&false)) {
            (true, true) => true,
            (true, false) => {
                let emptied = self.queue.settle(at).batch;
                self.recycle(emptied.payload);
                false
            }
            (false, true) => {
                let payload = Payload::new(Arena::default());
                let mut other = self.queue.offshoot(at, payload);
                let batch = self.queue.flying_mut(at);
                move_calls(batch, leaves, &mut other, &mut self.tensors);
                self.queue.park(other);
                true
            }
            (false, false) => {
                self.queue.flying_mut(at).forget_routes();
                self.queue.park_flying(at);
                false
            }
        }
    }

    /// Moves the marked calls of a batch in flight to the newest parked batch, if they are
    /// few and that batch can take them: frames that wait for one kernel share their
    /// memory.
    fn join_newest_parked(&mut self, at: usize, leaves: &[bool]) -> bool {
        let Some(newest) = self.queue.newest_parked() else {
            return false;
        };
        let batch = self.queue.flying(at);
        let other = &self.queue.parked()[newest];
        let marked = || {
            batch
                .calls()
                .iter()
                .zip(leaves)
                .filter(|(_, leaves)| **leaves)
        };
        let words = marked().map(|(call, _)| call.work.planned.inputs.words);
        let recipes = self.programs.recipes();
        // Batches that write stay as they are, so that nothing has to say between which calls
        // of another batch theirs belong.
        let writes = |call: &Call| {
            let recipe = &recipes[call.work.planned.recipe.0 as usize];
            recipe.is_stored()
        };
        let luck = |batch: &Batch| (batch.payload.losses, batch.payload.shortages);
        let may_join = luck(batch) == luck(other)
            && batch.priority == other.priority
            && words.sum::<u32>() <= FEW
            && !batch.calls().iter().chain(other.calls()).any(writes)
            && self.queue.may_join(newest, marked().map(|(call, _)| call));
        if may_join {
            let (batch, other) = self.queue.flying_and_parked(at, newest);
            move_calls(batch, leaves, other, &mut self.tensors);
        }
        may_join
    }

    /// For each call whether it goes to the device and is to stay behind an older, parked call:
    /// one of both writes a tensor that the other names. An empty list where no call writes.
    fn behind_parked(&self, batch: &Batch) -> Vec<bool> {
        let writes = |batch: &Batch| !batch.payload.written.is_empty();
        if !writes(batch) && !self.queue.parked().iter().any(writes) {
            return Vec::new(); // Most batches write nothing.
        }
        let oldest = self.parked_uses();
        let is_behind = |call: &Call| {
            let is_written = |tensor: u32| {
                let mut written = batch.written(self.programs.recipes(), call);
                written.any(|written| written == tensor)
            };
            let older = |used: Option<Ticket>| used.is_some_and(|used| used.is_before(call.ticket));
            let conflicts = |tensor: &u32| {
                let used = oldest.get(*tensor as usize).copied().unwrap_or_default();
                older(used.written) || older(used.named) && is_written(*tensor)
            };
            !call.work.is_cpu_share && batch.payload.tensors_of(call).iter().any(conflicts)
        };
        batch.calls().iter().map(is_behind).collect()
    }

    /// For each tensor the oldest parked calls that use it.
    fn parked_uses(&self) -> Vec<OldestUse> {
        let mut oldest = vec![OldestUse::default(); self.tensors.count()];
        let note = |known: &mut Option<Ticket>, ticket: Ticket| {
            if known.is_none_or(|known| ticket.is_before(known)) {
                *known = Some(ticket);
            }
        };
        for batch in self.queue.parked() {
            for call in batch.calls().iter().filter(|call| call.is_live) {
                for tensor in batch.payload.tensors_of(call) {
                    note(&mut oldest[*tensor as usize].named, call.ticket);
                }
                for tensor in batch.written(self.programs.recipes(), call) {
                    note(&mut oldest[tensor as usize].written, call.ticket);
                }
            }
        }
        oldest
    }

    /// Marks the calls that are to stay behind a marked one: one of both writes a tensor that the
    /// other names.
    pub(super) fn keep_order_of_parked(&self, batch: &Batch, leaves: &mut [bool]) {
        if batch.payload.written.is_empty() {
            return; // Most batches write nothing.
        }
        let mut uses = vec![Use::None; self.tensors.count()];
        for (call, leaves) in batch.calls().iter().zip(leaves) {
            let set = batch.payload.tensors_of(call);
            let recipes = self.programs.recipes();
            let is_written = |tensor: u32| {
                batch
                    .written(recipes, call)
                    .any(|written| written == tensor)
            };
            let own = |tensor: u32| match is_written(tensor) {
                true => Use::Written,
                false => Use::Named,
            };
            let conflicts = |tensor: &u32| {
                let known = uses[*tensor as usize];
                known.max(own(*tensor)) == Use::Written && known != Use::None
            };
            *leaves |= set.iter().any(conflicts);
            if *leaves {
                for tensor in set {
                    let known = &mut uses[*tensor as usize];
                    *known = own(*tensor).max(*known);
                }
            }
        }
    }

    /// Since when the compiler owes kernels: one that calls wait for, unless parked calls may go
    /// as soon as there is room in flight, and one that warm-ups wait for.
    pub(super) fn waiting_since(&self) -> impl Iterator<Item = Millis> {
        let waits = self.queue.has_parked() && !self.gate.is_open();
        let calls = waits.then_some(self.gate.since());
        calls.into_iter().chain(self.gate.warmups_since())
    }

    /// The states of the kernels of the structures that the device's calls are of, by the
    /// structure's number. A lost device has no kernel ready.
    fn states(&mut self, at: usize) -> Vec<Option<State>> {
        let batch = self.queue.flying(at);
        let recipes = self.programs.recipes();
        let mut states = vec![None; recipes.len()];
        for Call { work, .. } in batch.calls() {
            let at = work.planned.recipe.0 as usize;
            if states[at].is_none() && !work.is_cpu_share {
                states[at] = Some(match self.life.is_lost() {
                    true => State::Compiling,
                    false => self
                        .gate
                        .ask(self.devices.primary_mut(), recipes[at].kernels()),
                });
            }
        }
        states
    }
}

/// Moves the marked calls of a batch to another one, which reads their tensors from here
/// on.
pub(super) fn move_calls(
    batch: &mut Batch,
    leaves: &[bool],
    other: &mut Batch,
    tensors: &mut TensorTable,
) {
    let known = other.payload.read.len();
    batch.move_marked(leaves, other, tensors);
    for tensor in &other.payload.read[known..] {
        tensors.read(*tensor);
    }
}
