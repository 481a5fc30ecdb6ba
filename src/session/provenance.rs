//! Provenance: where a tensor's words come from, the program's data or calls that wrote them, and
//! which tensors are lost.
//!
//! Pure: nothing is copied here, and where words lie is in `tensor_table`. What becomes of the
//! calls that read a lost tensor is the matter of `lost_tensors`.

use std::sync::Arc;

use crate::batch::Ticket;
use crate::error::Error;
use crate::tensor::Span;

/// The provenance of each tensor, by the tensor's number.
#[derive(Debug, Default)]
pub(super) struct Provenances {
    entries: Vec<Provenance>,
    /// How many tensors are lost.
    lost: usize,
    /// Whether a face fills the tensors of a lost device again. Its data is older than what calls
    /// wrote, so a lost tensor gets memory by that, and stays lost.
    is_restoring: bool,
}

#[derive(Clone, Debug, Default)]
struct Provenance {
    /// How many words the tensor was filled with; 0 where it lies in a buffer of the program's.
    words: u32,
    /// The youngest call that was launched to write the tensor since the tensor was filled.
    writer: Option<Ticket>,
    /// Whether a call was launched that computed the tensor anew after a loss. Such calls go
    /// before calls that are older.
    is_restored: bool,
    /// Why the words are lost, if they are.
    lost: Option<Arc<str>>,
}

impl Provenance {
    /// Whether calls wrote the tensor since the tensor was filled.
    fn is_written(&self) -> bool {
        self.writer.is_some() || self.is_restored
    }
}

impl Provenances {
    /// Forgets what is known of a number, which another tensor gets.
    pub(super) fn forget(&mut self, tensor: u32) {
        let at = tensor as usize;
        if self.entries.len() <= at {
            self.entries.resize(at + 1, Provenance::default());
        }
        self.heal(tensor);
        self.entries[at] = Provenance::default();
    }

    /// Notes that a tensor was filled with so many words.
    pub(super) fn fill(&mut self, tensor: u32, words: u32) {
        self.entries[tensor as usize].words = words;
        if !self.is_restoring {
            self.entries[tensor as usize].writer = None;
            self.entries[tensor as usize].is_restored = false;
            self.heal(tensor);
        }
    }

    /// How many words a tensor has; 0 where it lies in a buffer of the program's.
    pub(super) fn words(&self, tensor: u32) -> u32 {
        self.entries[tensor as usize].words
    }

    /// Notes that a call was launched which writes a tensor.
    pub(super) fn write(&mut self, tensor: u32, writer: Ticket) {
        let known = &mut self.entries[tensor as usize].writer;
        if known.is_none_or(|known| known.is_before(writer)) {
            *known = Some(writer);
        }
    }

    /// Notes that a call was launched which computes a tensor anew after a loss.
    pub(super) fn restore(&mut self, tensor: u32) {
        self.entries[tensor as usize].is_restored = true;
    }

    /// Notes that no call from this one on has written a tensor after all.
    pub(super) fn retract(&mut self, tensor: u32, first: Ticket) {
        // The calls before this one may have written the tensor.
        self.entries[tensor as usize].writer = Some(Ticket(first.0.wrapping_sub(1)));
    }

    /// Whether these are all words of a tensor.
    pub(super) fn is_whole(&self, tensor: u32, stored: Span) -> bool {
        let words = self.entries[tensor as usize].words;
        words > 0 && stored.at == 0 && stored.words >= words
    }

    /// Whether a tensor lies in a buffer of the program's.
    pub(super) fn is_imported(&self, tensor: u32) -> bool {
        self.entries[tensor as usize].words == 0
    }

    /// Whether a call that was launched to write a tensor is younger than `call`.
    pub(super) fn is_overwritten(&self, tensor: u32, call: Ticket) -> bool {
        let writer = self.entries[tensor as usize].writer;
        writer.is_some_and(|writer| call.is_before(writer))
    }

    /// Whether `call` was launched to write a tensor, and no younger call was.
    pub(super) fn is_writer(&self, tensor: u32, call: Ticket) -> bool {
        self.entries[tensor as usize].writer == Some(call)
    }

    /// Whether calls wrote a tensor since it was filled.
    pub(super) fn has_written(&self) -> bool {
        self.entries.iter().any(Provenance::is_written)
    }

    /// Whether a tensor is lost.
    pub(super) fn has_lost(&self) -> bool {
        self.lost > 0
    }

    pub(super) fn is_lost(&self, tensor: u32) -> bool {
        self.entries[tensor as usize].lost.is_some()
    }

    /// The error of a call that reads a lost tensor.
    pub(super) fn error(&self, tensor: u32) -> Error {
        let why = self.entries[tensor as usize].lost.as_deref();
        Error::TensorLost(why.unwrap_or_default().into())
    }

    /// Notes that the words of a tensor are lost.
    pub(super) fn lose(&mut self, tensor: u32, why: &Arc<str>) {
        self.heal(tensor);
        self.entries[tensor as usize].lost = Some(Arc::clone(why));
        self.lost += 1;
    }

    /// Notes that all words of a tensor are right again.
    pub(super) fn heal(&mut self, tensor: u32) {
        let lost = self.entries[tensor as usize].lost.take();
        self.lost -= usize::from(lost.is_some());
    }

    /// The device is lost: with it, what calls wrote. A face is to fill the tensors again.
    pub(super) fn lose_written(&mut self, why: &Arc<str>) {
        self.is_restoring = true;
        for entry in &mut self.entries {
            let is_written = entry.is_written();
            (entry.writer, entry.is_restored) = (None, false);
            if is_written && entry.lost.is_none() {
                entry.lost = Some(Arc::clone(why));
                self.lost += 1;
            }
        }
    }

    /// The face has filled what it could.
    pub(super) fn restored(&mut self) {
        self.is_restoring = false;
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "tests/provenance.rs"]
mod tests;
