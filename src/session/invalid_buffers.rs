//! Invalid buffers: a browser tells only of a launch that there was no memory for the buffer of a
//! tensor, or for a slab. Such a buffer is made anew, because what lies in it would stay out of
//! reach although there is memory again.
//!
//! What becomes of the batch that found no memory is decided by `out_of_memory_retry`.

use super::Session;
use super::in_flight::InFlight;
use super::residency::Residency;
use crate::device::Device;
use crate::tensor::WORD;

/// Why a tensor in an invalid buffer is lost.
const NO_ROOM: &str = "there was no memory for it; write all of it, or make it again";

impl<D: Device> Session<D> {
    /// Makes the buffers anew that a chunk failed over. Tensors in such a buffer have no words on
    /// the device: the device gets these from the CPU beside it, or the tensors are lost.
    ///
    /// Where no call has written a tensor, the batch goes to the CPU instead if it finds no
    /// memory, and no tensor is lost.
    pub(super) fn remake_unusable(&mut self, at: usize) {
        if !self.provenances.has_written() {
            return;
        }
        let InFlight { batch, way } = &self.queue.in_flight()[at];
        let sent = &way.chunks[way.landed];
        let (first, end) = (sent.chunk.first, sent.chunk.end);
        if sent.is_cpu_share {
            return;
        }
        let mut homes: Vec<u32> = Vec::new();
        for call in &batch.ahead()[first..end] {
            for tensor in batch.payload.tensors_of(call) {
                let home = self.tensors.place(*tensor).home();
                let is_own = !self.provenances.is_imported(home);
                if is_own && !homes.contains(&home) && self.devices.primary().is_unusable(home) {
                    homes.push(home);
                }
            }
        }
        if homes.is_empty() {
            return;
        }
        let mut lost = vec![false; self.tensors.count()];
        for tensor in self.tensors.numbers() {
            if !homes.contains(&self.tensors.place(tensor).home()) {
                continue;
            }
            match self.tensors.residency(tensor) {
                Residency::Both { words } => {
                    let packing = self.tensors.packing(tensor);
                    self.tensors.defer(tensor, words, packing);
                }
                residency => lost[tensor as usize] = residency == Residency::Device,
            }
        }
        self.lose_from(at, end, lost, NO_ROOM);
        for home in homes {
            self.remake(home);
        }
    }

    fn remake(&mut self, home: u32) {
        let device = self.devices.primary_mut();
        let before = device.tensor_bytes(home);
        let words = u32::try_from(before / u64::from(WORD)).expect("words of one buffer");
        // Calls that name a buffer which cannot be made fail.
        if device.allocate(home, words).is_err() {
            device.release(home);
        }
        self.placed(home, before);
    }
}
