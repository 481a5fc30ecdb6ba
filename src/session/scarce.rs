//! A device without memory for a piece: its batch goes again, alone and in smaller
//! pieces, and at last to the processor.
//!
//! What is kept for speed is freed before each attempt. How large pieces are is not
//! decided here.

use super::Session;
use super::load::Load;
use super::recovery::Loss;
use crate::device::{Device, Engine, Readback};
use crate::error::Error;
use crate::plan::PieceSizes;

/// How often the pieces of a batch are halved before the processor takes it.
const HALVINGS: u32 = 4;

impl<D: Device> Session<D> {
    /// Takes a flight of a batch that there was no memory for, this one or one before:
    /// `true` if the batch goes again when all of it has landed.
    pub(super) fn is_short(&mut self, index: usize, outcome: &Result<Readback, Error>) -> bool {
        let flying = &mut self.in_flight[index];
        let is_aside = flying.pieces[flying.landed].is_aside;
        let is_out = matches!(outcome, Err(Error::OutOfMemory(_))) && !is_aside;
        let may_go_again = self.engine == Engine::Gpu && flying.load.shortages <= HALVINGS;
        flying.is_short |= is_out && may_go_again;
        if !flying.is_short {
            return false;
        }
        flying.rest.clear();
        // What comes behind is computed again too: results settle in order.
        flying.landed += 1;
        if flying.landed == flying.pieces.len() {
            flying.load.shortages += 1;
            let gives_up = flying.load.shortages > HALVINGS;
            let id = flying.load.id;
            self.requeue(index);
            let load = self.sealed.iter().find(|load| load.id == id);
            let leaves = load.is_some_and(|load| self.may_leave(load));
            if gives_up && !leaves {
                // Its tensors are nowhere else: the processor takes everything over.
                self.lose_by(Loss::Exhausted, self.generation);
            }
        }
        true
    }

    /// Gives a batch that no memory was found for to the processor.
    pub(super) fn relieve(&mut self, load: &mut Load) {
        if load.shortages > HALVINGS && self.may_leave(load) {
            load.engines = vec![Engine::Cpu; load.calls.len()];
            self.counts.fallbacks += 1;
            self.has_fallen_back = true;
        }
    }

    /// Whether nothing may be sent until more of what is on its way is back: a batch
    /// that memory was short for goes alone, and one with pieces to come first.
    pub(super) fn is_held_back(&self) -> bool {
        if self.is_occupied() {
            return true;
        }
        let is_short = |load: &Load| load.shortages > 0;
        let mut flying = self.in_flight.iter().map(|flying| &flying.load);
        !self.in_flight.is_empty() && (self.sealed.iter().any(is_short) || flying.any(is_short))
    }

    /// The sizes of a batch's pieces.
    pub(super) fn piece_sizes(&self, shortages: u32) -> PieceSizes {
        let PieceSizes { whole, target } = self.device.limits().pieces;
        PieceSizes {
            whole: whole >> shortages,
            target: target >> shortages,
        }
    }

    /// Whether the processor took a batch that the device had no memory for; said once.
    pub fn take_fallback(&mut self) -> bool {
        std::mem::take(&mut self.has_fallen_back)
    }

    /// Frees the memory that is only kept for the next batch; batches on their way
    /// keep theirs. For when none has come for a while, or nobody looks.
    pub fn trim(&mut self) {
        self.trimmed = self.launches();
        self.spare.clear();
        if self.in_flight.is_empty() {
            self.device.trim();
        }
        if let Some(beside) = &mut self.beside {
            beside.trim();
        }
    }

    /// Whether a batch was sent since memory was freed last.
    pub fn may_trim(&self) -> bool {
        self.trimmed != self.launches()
    }

    /// Whether the processor beside the device has all that a batch reads.
    fn may_leave(&self, load: &Load) -> bool {
        let mut tensors = load.sets.iter().flatten();
        self.beside.is_some() && tensors.all(|tensor| self.tensors.is_mirrored(*tensor))
    }
}
