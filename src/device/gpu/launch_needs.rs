//! What a launch, or a new tensor, has to create first, and whether the memory budget has
//! room for that.

use super::launch::bindings_of;
use super::launch_timer::TIMESTAMP_BYTES;
use super::{Gpu, bytes_of};
use crate::device::Device;
use crate::error::Error;
use crate::plan::{Plan, Slot};
use crate::tensor::WORD;

/// Bytes of four words.
const QUAD: u64 = 4 * WORD as u64;

impl Gpu {
    /// Bytes that each slot of a plan must hold.
    pub(super) fn needs(&self, plan: &Plan, upload: u64) -> Result<Vec<(Slot, u64)>, Error> {
        let limit = self.max_buffer_bytes();
        let slots = (0..).map(Slot).zip(&plan.slots);
        let needs = slots.map(|(slot, words)| match slot {
            Slot::INPUTS => (slot, upload),
            _ => (slot, bytes_of(*words)),
        });
        let needs: Vec<(Slot, u64)> = needs.collect();
        match needs.iter().find(|(_, need)| *need > limit) {
            Some((slot, need)) => Err(Error::TooLarge {
                what: match *slot {
                    Slot::INPUTS => "what a call reads",
                    Slot::RESULTS => "the result of a call",
                    _ => "an intermediate result of a call",
                },
                need: *need,
                limit,
            }),
            None => Ok(needs),
        }
    }

    /// Whether a launch creates no object.
    pub(super) fn is_warm(&self, plan: &Plan, needs: &[(Slot, u64)]) -> bool {
        let fits = |(slot, bytes): &(Slot, u64)| self.buffers.fits(*slot, *bytes);
        let is_bound = |work| {
            let slots = bindings_of(work);
            self.pipelines.is_ready(&work.kernel, slots)
        };
        needs.iter().all(fits)
            && self
                .read_bytes(plan)
                .is_none_or(|bytes| self.read_back.ring.fits(bytes))
            && self.uploads.fits(needs[0].1)
            && plan.dispatches().all(is_bound)
    }

    /// Refuses a launch that the budget has no room for, after idle buffers were freed.
    pub(super) fn check_budget(&mut self, plan: &Plan, needs: &[(Slot, u64)]) -> Result<(), Error> {
        let read = self.read_bytes(plan);
        let lack = |gpu: &Self| {
            let slots = needs.iter();
            let slots = slots.map(|(slot, bytes)| gpu.buffers.lacks(*slot, *bytes));
            slots.sum::<u64>() + read.map_or(0, |bytes| gpu.read_back.lacks(bytes))
        };
        self.find_room(&lack)
    }

    /// Makes the slots hold these bytes.
    pub(super) fn make_room(&mut self, needs: &[(Slot, u64)]) {
        for (slot, bytes) in needs {
            if self
                .buffers
                .grow(&self.device, *slot, *bytes, self.max_buffer_bytes())
            {
                self.pipelines.forget_bind_groups();
            }
        }
    }

    /// Makes a buffer for a tensor of so many words, which is about to be filled.
    pub(super) fn keep(&mut self, tensor: u32, words: u64) -> Result<(), Error> {
        self.make_buffer(tensor, words)?;
        self.counters.uploads += 1;
        self.counters.bytes_up += words * u64::from(WORD);
        Ok(())
    }

    /// Makes a buffer for a tensor of so many words.
    pub(super) fn make_buffer(&mut self, tensor: u32, words: u64) -> Result<(), Error> {
        let bytes = words * u64::from(WORD);
        let limit = self.max_buffer_bytes();
        if bytes > limit {
            return Err(Error::TooLarge {
                what: "a tensor",
                need: bytes,
                limit,
            });
        }
        self.drop_suspects();
        self.find_room(&|gpu| bytes.saturating_sub(gpu.buffers.tensor_bytes(tensor)))?;
        if self.buffers.allocate(&self.device, tensor, bytes) {
            self.pipelines.forget_bind_groups_of(Slot::resident(tensor));
        }
        Ok(())
    }

    /// Whole buffers are bound, so the limit of a buffer and the limit of a binding both hold;
    /// timestamps lie behind results. Kernels read four words at a time, whatever number of
    /// bytes a limit is, and count bytes in 32 bits, whatever a device offers.
    pub(super) fn max_buffer_bytes(&self) -> u64 {
        let most = self.limits.max_buffer_size - TIMESTAMP_BYTES;
        let most = most.min(self.limits.max_storage_buffer_binding_size);
        let most = most.min(u32::MAX.into());
        most / QUAD * QUAD
    }

    pub(super) fn too_large(&self, what: &'static str, words: u64) -> Error {
        Error::TooLarge {
            what,
            need: words * WORD as u64,
            limit: self.max_buffer_bytes(),
        }
    }

    /// Frees idle buffers until the budget has room for the bytes that `lack` returns.
    fn find_room(&mut self, lack: &dyn Fn(&Self) -> u64) -> Result<(), Error> {
        if lack(self) > self.pool.room() {
            self.free_released();
            self.read_back.ring.trim();
            self.uploads.trim();
        }
        if lack(self) > self.pool.room() {
            self.trim();
        }
        let (need, room) = (lack(self), self.pool.room());
        if need > room {
            return Err(Error::OutOfMemory(format!(
                "{need} bytes are needed and the memory budget has {room} left; raise it, or dispose of tensors"
            )));
        }
        Ok(())
    }

    /// Bytes that are read back, if the plan has results.
    fn read_bytes(&self, plan: &Plan) -> Option<u64> {
        let words = plan.words(Slot::RESULTS);
        (words > 0).then(|| bytes_of(words) + self.timer.bytes())
    }
}
