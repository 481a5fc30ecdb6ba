//! Tensors that stay on the device: how they come to the devices, and when they leave.
//!
//! Who still reads a tensor and where its words lie is in `tensor_table`; their source is
//! the face's.

use super::shards::Filling;
use super::stats::TensorBytes;
use super::tensor_table::MIRRORED;
use super::{COPIES, Session};
use crate::device::Device;
use crate::error::Error;
use crate::tensor::{Packing, WORD};

/// Bytes that a batch may have whatever tensors take, unless the budget is smaller.
const LEAST: u64 = 1 << 20;

impl<D: Device> Session<D> {
    /// A number for a tensor that stays on the device. Fill it before a call
    /// reads it, and again after [`Session::replace_device`].
    pub fn hold(&mut self) -> u32 {
        self.tensors.hold()
    }

    /// Gives up a tensor. Calls that were made before still read it.
    pub fn release(&mut self, tensor: u32) {
        if self.tensors.release(tensor) {
            self.free_tensor(tensor);
        }
    }

    /// Copies a tensor's data to the device.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a tensor that is not held,
    /// [`Error::TooLarge`] for one that no buffer holds.
    pub fn fill(&mut self, tensor: u32, words: &[u32]) -> Result<(), Error> {
        self.fill_packed(tensor, words, None)
    }

    /// The same for words of floats that are packed, if they are.
    ///
    /// # Errors
    ///
    /// Those of [`Session::fill`].
    pub fn fill_packed(
        &mut self,
        tensor: u32,
        words: &[u32],
        packing: Option<Packing>,
    ) -> Result<(), Error> {
        let count = u32::try_from(words.len()).expect("no more than 2^30");
        self.fill_with(tensor, Filling::packed(packing, count, 0), |device| {
            device.fill(tensor, words, packing)
        })
    }

    /// Writes a part of a tensor that was filled, from this word on. What was
    /// launched before reads what was there.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a tensor that is not held.
    pub fn patch(&mut self, tensor: u32, at: u32, words: &[u32]) -> Result<(), Error> {
        self.check_tensor(tensor)?;
        let is_deferred = self.tensors.deferred(tensor).is_some();
        if !is_deferred {
            self.device.patch(tensor, at, words);
        }
        let has_it = is_deferred || self.tensors.is_mirrored(tensor);
        if let Some(beside) = self.beside.as_mut().filter(|_| has_it) {
            beside.patch(tensor, at, words);
        }
        Ok(())
    }

    /// The same for a face that has another way to the device. A short tensor
    /// is copied to the processor beside the GPU too, so that calls that read it
    /// can leave the GPU. As long as whole batches do, the GPU gets it when it needs it.
    ///
    /// # Errors
    ///
    /// Those of `copy`, and [`Error::InvalidInput`] for a tensor that is not
    /// held.
    pub fn fill_with(
        &mut self,
        tensor: u32,
        filling: Filling,
        copy: impl Fn(&mut D) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.check_tensor(tensor)?;
        let packing = filling.packing;
        let unpacked = filling.unpacked as usize;
        let is_mirrored = self.beside.is_some() && self.tensors.mirror(tensor, unpacked);
        let is_deferred = is_mirrored && self.is_elsewhere && packing.is_none();
        if !is_deferred && let Err(error) = self.place_with(tensor, packing, &copy) {
            self.tensors.unmirror(tensor);
            return Err(error);
        }
        let Some(beside) = &mut self.beside else {
            return Ok(());
        };
        if is_mirrored {
            copy(beside)?;
        } else {
            self.tensors.unmirror(tensor);
            if !self.tensors.is_read(tensor) {
                beside.release(tensor); // Else its calls find what it was.
            }
        }
        if is_deferred {
            self.tensors.fill(tensor, None);
            self.tensors.defer(tensor, unpacked);
        }
        Ok(())
    }

    /// Places a tensor on the device, and nowhere else.
    ///
    /// # Errors
    ///
    /// Those of [`Session::fill_with`].
    pub fn place_with(
        &mut self,
        tensor: u32,
        packing: Option<Packing>,
        place: impl FnOnce(&mut D) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.check_tensor(tensor)?;
        let before = self.device.tensor_bytes(tensor);
        let placed = place(&mut self.device);
        self.placed(tensor, before);
        placed?;
        self.tensors.fill(tensor, packing);
        Ok(())
    }

    /// Copies a tensor to the device that only the processor beside it has so far.
    ///
    /// # Errors
    ///
    /// Those of [`Session::fill`].
    pub fn bring(&mut self, tensor: u32) -> Result<(), Error> {
        let Some(words) = self.tensors.deferred(tensor) else {
            return Ok(());
        };
        let packing = self.tensors.packing(tensor);
        let beside = self.beside.as_mut().expect("it has what is deferred");
        let all = &beside.tensor_words(tensor).expect("filled there")[..words];
        let before = self.device.tensor_bytes(tensor);
        let placed = match packing {
            None => self.device.fill(tensor, all, None),
            Some(to_pack) => to_pack
                .pack(all)
                .and_then(|packed| self.device.fill(tensor, &packed, packing)),
        };
        if placed.is_ok() && words > MIRRORED {
            beside.release(tensor); // No call reads it there.
        }
        self.placed(tensor, before);
        placed?;
        self.tensors.fill(tensor, packing);
        Ok(())
    }

    /// Every tensor lies on the processor beside the device alone, which was the device
    /// before.
    pub(super) fn defer_tensors(&mut self) {
        let beside = self.beside.as_ref().expect("it was the device");
        self.tensors.resident = 0;
        for tensor in self.tensors.numbers() {
            if let Some(words) = beside.tensor_words(tensor) {
                self.tensors.unmirror(tensor);
                self.tensors.mirror(tensor, words.len());
                self.tensors.defer(tensor, words.len());
            }
        }
        self.fit_batches();
    }

    /// Whether each tensor, as the processor has it, fits a buffer of this device.
    pub(super) fn tensors_fit(&self, device: &D) -> bool {
        let most = device.limits().max_side_bytes;
        let bytes = |tensor| {
            let words = self.device.tensor_words(tensor).map_or(0, <[u32]>::len);
            let words = u32::try_from(words).unwrap_or(u32::MAX);
            let packing = self.tensors.packing(tensor);
            let words = packing.map_or(words, |packing| packing.words(words));
            u64::from(words) * u64::from(WORD)
        };
        self.tensors.numbers().all(|tensor| bytes(tensor) <= most)
    }

    // What is refused midway has taken memory too, or freed what was there.
    fn placed(&mut self, tensor: u32, before: u64) {
        self.tensors.resident += self.device.tensor_bytes(tensor);
        self.tensors.resident -= before;
        self.fit_batches();
    }

    /// Refuses a number that no tensor has.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`].
    pub fn check_tensor(&self, tensor: u32) -> Result<(), Error> {
        match self.tensors.is_held(tensor) {
            true => Ok(()),
            false => Err(Error::InvalidInput(
                "a tensor was disposed of; make it again".into(),
            )),
        }
    }

    /// What tensors take of the device's memory.
    pub(super) fn tensor_bytes(&self) -> TensorBytes {
        let mut bytes = TensorBytes::default();
        // What the device does not have yet counts as what it will take.
        for (tensor, packing, coming) in self.tensors.coming() {
            let coming = u64::from(coming) * u64::from(WORD);
            *bytes.of(packing) += self.device.tensor_bytes(tensor).max(coming);
        }
        bytes
    }

    /// So many calls read tensors no more.
    pub(super) fn unread(&mut self, read: Vec<u32>) {
        for tensor in read {
            if self.tensors.done(tensor) {
                self.free_tensor(tensor);
            }
        }
    }

    /// Leaves batches the memory that tensors do not take.
    pub(super) fn fit_batches(&mut self) {
        let fits = |model| {
            self.budget
                .optimal_batch_size(model, COPIES, self.most_bytes)
        };
        let least = fits(0).min(LEAST);
        self.queue
            .limit_bytes(fits(self.tensors.resident).max(least));
    }

    fn free_tensor(&mut self, tensor: u32) {
        self.unpart(tensor);
        self.tensors.resident -= self.device.tensor_bytes(tensor);
        self.fit_batches();
        self.device.release(tensor);
        self.tensors.unmirror(tensor);
        if let Some(beside) = &mut self.beside {
            beside.release(tensor);
        }
    }

    /// A call writes to a tensor on the device: the processor's copy is old from
    /// here on. Calls that were made before still read it.
    pub(super) fn outdate(&mut self, tensor: u32) {
        self.tensors.unmirror(tensor);
    }
}
