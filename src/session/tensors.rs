//! Resident tensors: how they come to the devices, and when they leave.
//!
//! Who still reads a tensor and where its words lie is in `tensor_table`; where tensors
//! come from is the face's matter.

use super::Session;
use super::router::Router;
use super::shards::Filling;
use super::stats::TensorBytes;
use super::tensor_table::{Coming, MOST_COPIED};
use crate::device::Device;
use crate::error::Error;
use crate::tensor::{Packing, WORD};

impl<D: Device> Session<D> {
    /// A number for a tensor that stays on the device. Fill the tensor before a call reads
    /// it, and again after [`Session::replace_device`].
    pub fn hold(&mut self) -> u32 {
        let number = self.tensors.hold();
        self.provenances.forget(number);
        number
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

    /// Copies a tensor's words to the device: packed floats, if there is a packing.
    ///
    /// # Errors
    ///
    /// The errors of [`Session::fill`].
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

    /// Writes a part of a tensor that was filled, from this word on. Calls that were
    /// launched before read the words that were there.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a tensor that is not held.
    pub fn patch(&mut self, tensor: u32, at: u32, words: &[u32]) -> Result<(), Error> {
        self.check_tensor(tensor)?;
        let is_deferred = self.tensors.deferred(tensor).is_some();
        let has_copy = self.tensors.has_copy(tensor);
        let (device, cpu) = self.devices.primary_and_companion_mut();
        if !is_deferred {
            device.patch(tensor, at, words);
        }
        if let Some(cpu) = cpu.filter(|_| is_deferred || has_copy) {
            cpu.patch(tensor, at, words);
        }
        Ok(())
    }

    /// Copies a tensor to the device for a face that has another way there: `copy` does it.
    /// A short tensor is copied to the CPU beside the GPU too, so that calls that read it
    /// can leave the GPU. While whole batches go to the CPU, the GPU gets the tensor when
    /// it needs it.
    ///
    /// # Errors
    ///
    /// The errors of `copy`, and [`Error::InvalidInput`] for a tensor that is not
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
        let may_copy = self.devices.has_companion() && self.tensors.may_copy(tensor, unpacked);
        let spares_gpu = self.router.as_ref().is_some_and(Router::spares_gpu);
        let is_deferred = may_copy && spares_gpu && packing.is_none();
        if !is_deferred && let Err(error) = self.place_with(tensor, packing, &copy) {
            self.tensors.drop_copy(tensor);
            return Err(error);
        }
        self.provenances.fill(tensor, filling.unpacked);
        let Some(cpu) = self.devices.companion_mut() else {
            return Ok(());
        };
        if may_copy {
            copy(cpu)?;
            match is_deferred {
                true => self.tensors.defer(tensor, unpacked, packing),
                false => self.tensors.copy(tensor, unpacked),
            }
        } else if !self.tensors.is_read(tensor) {
            cpu.release(tensor); // No pending call reads the old copy.
        }
        Ok(())
    }

    /// Makes room on the device for a tensor of so many words, which calls are to write.
    ///
    /// # Errors
    ///
    /// The errors of [`Session::fill`].
    pub fn allocate(&mut self, tensor: u32, words: u32) -> Result<(), Error> {
        self.place_with(tensor, None, |device| device.allocate(tensor, words))?;
        self.note_allocated(tensor, words);
        Ok(())
    }

    /// Places a tensor on the device, and nowhere else.
    ///
    /// # Errors
    ///
    /// The errors of [`Session::fill_with`].
    pub fn place_with(
        &mut self,
        tensor: u32,
        packing: Option<Packing>,
        place: impl FnOnce(&mut D) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.check_tensor(tensor)?;
        let before = self.devices.primary().tensor_bytes(tensor);
        let placed = place(self.devices.primary_mut());
        self.placed(tensor, before);
        placed?;
        self.tensors.fill(tensor, packing);
        self.provenances.fill(tensor, 0);
        Ok(())
    }

    /// Copies a tensor to the device if only the CPU beside it has the words so far.
    ///
    /// # Errors
    ///
    /// The errors of [`Session::fill`].
    pub fn bring(&mut self, tensor: u32) -> Result<(), Error> {
        let Some(words) = self.tensors.deferred(tensor) else {
            return Ok(());
        };
        let packing = self.tensors.packing(tensor);
        let (device, cpu) = self.devices.primary_and_companion_mut();
        let cpu = cpu.expect("it has what is deferred");
        let all = &cpu.tensor_words(tensor).expect("filled there")[..words];
        let before = device.tensor_bytes(tensor);
        let placed = match packing {
            None => device.fill(tensor, all, None),
            Some(to_pack) => to_pack
                .pack(all)
                .and_then(|packed| device.fill(tensor, &packed, packing)),
        };
        if placed.is_ok() && words > MOST_COPIED {
            cpu.release(tensor); // No call on the CPU reads so long a tensor.
        }
        self.placed(tensor, before);
        placed?;
        self.tensors.bring(tensor);
        Ok(())
    }

    /// Defers every tensor: it lies on the CPU alone, which was the primary device before.
    pub(super) fn defer_tensors(&mut self) {
        let cpu = self.devices.companion().expect("it was the device");
        self.tensors.resident_bytes = 0;
        for tensor in self.tensors.numbers() {
            if let Some(words) = cpu.tensor_words(tensor) {
                let packing = self.tensors.packing(tensor);
                self.tensors.defer(tensor, words.len(), packing);
            }
        }
        self.fit_batches();
    }

    /// Whether each tensor, as the CPU has it, fits a buffer of this device.
    pub(super) fn tensors_fit(&self, device: &D) -> bool {
        let most = device.limits().max_side_bytes;
        let bytes = |tensor| {
            let cpu = self.devices.primary();
            let words = cpu.tensor_words(tensor).map_or(0, <[u32]>::len);
            let words = u32::try_from(words).unwrap_or(u32::MAX);
            let packing = self.tensors.packing(tensor);
            let words = packing.map_or(words, |packing| packing.words(words));
            u64::from(words) * u64::from(WORD)
        };
        self.tensors.numbers().all(|tensor| bytes(tensor) <= most)
    }

    /// Notes what a tensor takes of the device's memory, which was `before`. A filling that
    /// failed midway has taken memory too, or freed the words of before.
    fn placed(&mut self, tensor: u32, before: u64) {
        self.tensors.resident_bytes += self.devices.primary().tensor_bytes(tensor);
        self.tensors.resident_bytes -= before;
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
        // A tensor that the device is still to get counts as what it will take.
        for Coming {
            tensor,
            packing,
            words,
        } in self.tensors.coming()
        {
            let coming = u64::from(words) * u64::from(WORD);
            *bytes.of(packing) += self.devices.primary().tensor_bytes(tensor).max(coming);
        }
        bytes
    }

    /// Notes for each of these tensors that one call less reads it.
    pub(super) fn unread(&mut self, read: Vec<u32>) {
        for tensor in read {
            if self.tensors.done(tensor) {
                self.free_tensor(tensor);
            }
        }
    }

    /// Leaves batches the memory that tensors do not take.
    pub(super) fn fit_batches(&mut self) {
        let fitting = self.limits.batch_bytes(self.tensors.resident_bytes);
        let tuned = self.tuner.tuning().batch_bytes;
        self.queue
            .limit_bytes(tuned.map_or(fitting, |tuned| tuned.min(fitting)));
    }

    fn free_tensor(&mut self, tensor: u32) {
        self.unshard(tensor);
        self.tensors.resident_bytes -= self.devices.primary().tensor_bytes(tensor);
        self.fit_batches();
        let (device, cpu) = self.devices.primary_and_companion_mut();
        device.release(tensor);
        if let Some(cpu) = cpu {
            cpu.release(tensor);
        }
    }
}
