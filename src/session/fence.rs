//! Fences: until when batches may still read what nobody asks for any more.
//!
//! A face that gives ranges of one tensor to many owners, as it does for clips, puts a
//! fence when an owner leaves and gives the range to another owner once the fence has
//! passed. Fences count batches, not calls: a call that is given up, refused or late is
//! still in its batch, whose later chunks compute it. What lies in the ranges is the face's
//! matter.

use super::Session;
use super::payload::Batch;
use crate::batch::BatchId;
use crate::device::Device;

/// A moment between two calls of a session: behind the calls of the batch of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence(pub u32);

impl<D: Device> Session<D> {
    /// A fence behind every call taken so far.
    pub fn fence(&self) -> Fence {
        let open = self.queue.open();
        let newest = BatchId(match open.calls().is_empty() {
            true => open.id.0.wrapping_sub(1),
            false => open.id.0,
        });
        // A batch of another priority may be younger than the open one, wherever it is. What
        // joins a batch later holds the fence longer, and does no harm.
        let held = self
            .queue
            .batches()
            .filter(|batch| !batch.calls().is_empty());
        let newer = |a: BatchId, b: BatchId| if a.is_before(b) { b } else { a };
        Fence(held.map(|batch| batch.origin).fold(newest, newer).0)
    }

    /// Whether every batch with a call from before a fence has ended: no chunk of such a
    /// batch is still to be sent, for the first time or again after a loss.
    pub fn has_passed(&self, fence: Fence) -> bool {
        let holds = |batch: &&Batch| !batch.calls().is_empty();
        let is_behind = |batch: &Batch| BatchId(fence.0).is_before(batch.origin);
        self.queue.batches().filter(holds).all(is_behind)
    }
}
