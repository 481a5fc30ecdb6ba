//! Resident tensors: how they come to the devices, and when they leave.
//!
//! Who still reads a tensor and where its words lie is in `tensor_table`; where tensors
//! come from is the face's matter.

use super::Session;
use super::router::Router;
use super::shards::Filling;
use super::slabs::{GRAIN, Place, SLAB};
use super::stats::TensorBytes;
use super::tensor_table::Coming;
use crate::device::Device;
use crate::error::Error;
use crate::tensor::{Packing, WORD};

impl<D: Device> Session<D> {
    /// A number for a tensor that stays on the device, in a buffer of its own. Fill the tensor
    /// before a call reads it, and again after [`Session::replace_device`].
    pub fn hold(&mut self) -> u32 {
        let number = self.tensors.hold();
        self.provenances.forget(number);
        number
    }

    /// A number for a tensor of so many words, as [`Session::hold`] gives it. A small tensor
    /// shares a buffer with others, so that calls on different tensors merge, but with none of
    /// the tensors in `apart`: what is computed of these is stored without a copy. Tensors that
    /// are packed, imported, or whose kernels find addresses by themselves, need buffers of their
    /// own.
    pub fn hold_shared(&mut self, words: u32, apart: &[u32]) -> u32 {
        let most = self.devices.primary().limits().max_side_bytes;
        // Slabs that are mostly empty leave most of a small budget to batches.
        let fitting = most.min(self.limits.budget().live() / 64) / u64::from(WORD);
        let slab = u32::try_from(fitting).unwrap_or(SLAB).min(SLAB) / GRAIN * GRAIN;
        let number = self.tensors.hold_shared(words, apart, slab);
        self.provenances.forget(number);
        let home = self.tensors.place(number).home();
        if home != number {
            self.provenances.forget(home);
            self.provenances.fill(home, slab);
        }
        number
    }

    /// Where a tensor lies on each device that has it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a tensor that is not held.
    pub fn place(&self, tensor: u32) -> Result<Place, Error> {
        self.check_tensor(tensor)?;
        Ok(self.tensors.place(tensor))
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
        let filling = Filling::packed(packing, count, 0);
        self.fill_with(tensor, filling, |device, place| {
            place.write(device, words, packing)
        })
    }

    /// Writes a part of a tensor that was filled, from this word on. Calls that were
    /// launched before read the words that were there.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a tensor that is not held, and for words that one in a slab
    /// does not have.
    pub fn patch(&mut self, tensor: u32, at: u32, words: &[u32]) -> Result<(), Error> {
        self.check_tensor(tensor)?;
        self.check_words(tensor, u64::from(at) + words.len() as u64)?;
        let place = self.tensors.place(tensor);
        let (home, at) = (place.home(), place.at() + at);
        let is_deferred = self.tensors.deferred(tensor).is_some();
        let has_copy = self.tensors.has_copy(tensor);
        let (device, cpu) = self.devices.primary_and_companion_mut();
        if !is_deferred {
            device.patch(home, at, words);
        }
        if let Some(cpu) = cpu.filter(|_| is_deferred || has_copy) {
            cpu.patch(home, at, words);
        }
        Ok(())
    }

    /// Copies a tensor to the device for a face that has another way there: `copy` copies the
    /// words to a place, whose slab is there by then. A short tensor is copied to the CPU beside the GPU too, so that calls that read it
    /// can leave the GPU. While whole batches go to the CPU, the GPU gets the tensor when
    /// it needs it.
    ///
    /// # Errors
    ///
    /// The errors of `copy`, and [`Error::InvalidInput`] for a tensor that is not
    /// held, and for more words than one in a slab has.
    pub fn fill_with(
        &mut self,
        tensor: u32,
        filling: Filling,
        copy: impl Fn(&mut D, Place) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.check_tensor(tensor)?;
        self.check_words(tensor, filling.words.into())?;
        let place = self.tensors.place(tensor);
        let to_device = |device: &mut D| copy(device, place);
        let packing = filling.packing;
        let unpacked = filling.unpacked as usize;
        let may_copy = self.devices.has_companion() && self.tensors.may_copy(tensor, unpacked);
        let spares_gpu = self.router.as_ref().is_some_and(Router::spares_gpu);
        let is_deferred = may_copy && spares_gpu && packing.is_none();
        if !is_deferred && let Err(error) = self.place_with(tensor, packing, to_device) {
            self.tensors.drop_copy(tensor);
            return Err(error);
        }
        self.provenances.fill(tensor, filling.unpacked);
        let slab_words = self.tensors.slab_words(place);
        let Some(cpu) = self.devices.companion_mut() else {
            return Ok(());
        };
        if may_copy {
            place.prepare(cpu, slab_words)?;
            copy(cpu, place)?;
            match is_deferred {
                true => self.tensors.defer(tensor, unpacked, packing),
                false => self.tensors.copy(tensor, unpacked),
            }
        } else if place == (Place::Own { tensor }) && !self.tensors.is_read(tensor) {
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
        self.check_tensor(tensor)?;
        self.check_words(tensor, words.into())?;
        let place = self.tensors.place(tensor);
        self.place_with(tensor, None, |device| match place {
            Place::Own { .. } => device.allocate(tensor, words),
            Place::Slab { .. } => Ok(()),
        })?;
        self.note_allocated(tensor, words);
        Ok(())
    }

    /// Makes room on the device for a tensor of so many words, all of them 0, which calls may
    /// read, and write in part: a page of an index. The tensor has a buffer of its own.
    ///
    /// Such a tensor is never written whole. After a loss, readers are refused until
    /// [`Session::heal`].
    ///
    /// # Errors
    ///
    /// The errors of [`Session::fill`].
    pub fn clear(&mut self, tensor: u32, words: u32) -> Result<(), Error> {
        self.place_with(tensor, None, |device| device.clear(tensor, words))?;
        self.provenances.fill(tensor, words);
        Ok(())
    }

    /// Notes that a tensor which was lost has all its words again, by the calls made so far.
    pub fn heal(&mut self, tensor: u32) {
        self.provenances.heal(tensor);
    }

    /// Whether calls that read a tensor are refused because its words are lost.
    pub fn is_tensor_lost(&self, tensor: u32) -> bool {
        self.provenances.is_lost(tensor)
    }

    /// Places a tensor on the device, and nowhere else. The slab of a tensor in one is made
    /// before.
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
        let own = self.tensors.place(tensor);
        let slab_words = self.tensors.slab_words(own);
        let device = self.devices.primary_mut();
        let before = device.tensor_bytes(own.home());
        let prepared = own.prepare(device, slab_words);
        let placed = prepared.and_then(|()| place(device));
        self.placed(own.home(), before);
        placed?;
        self.tensors.fill(tensor, packing);
        self.provenances.fill(tensor, 0);
        Ok(())
    }

    /// Notes what a buffer takes of the device's memory, which was `before`. A filling that
    /// failed midway has taken memory too, or freed the words of before.
    pub(super) fn placed(&mut self, home: u32, before: u64) {
        self.tensors.resident_bytes += self.devices.primary().tensor_bytes(home);
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

    /// Refuses words that a tensor in a slab does not have, up to this one.
    pub(super) fn check_words(&self, tensor: u32, end: u64) -> Result<(), Error> {
        match self.tensors.words_in_slab(tensor) {
            Some(words) if end > words.into() => Err(Error::InvalidInput(format!(
                "a tensor of {words} words has no word {}; give fewer, or make a larger tensor",
                end - 1
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses an insertion that reads words which its source does not have, or writes words which
    /// its page does not have: words up to these, of the last tensors that the call names.
    pub(super) fn check_ends(&self, ends: [u64; 2]) -> Result<(), Error> {
        for (tensor, end) in self.named_tensors.iter().rev().zip(ends.into_iter().rev()) {
            // What lies in a buffer of the program's is bounded by the device.
            let words = self.provenances.words(*tensor);
            if words > 0 && end > words.into() {
                return Err(Error::InvalidInput(format!(
                    "index: a tensor of {words} words has no word {}; insert fewer vectors",
                    end - 1
                )));
            }
        }
        Ok(())
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
        if let Some(home) = self.tensors.vacate(tensor) {
            self.free_buffer(home);
        }
    }

    /// Frees a buffer that no tensor lies in.
    pub(super) fn free_buffer(&mut self, home: u32) {
        self.tensors.resident_bytes -= self.devices.primary().tensor_bytes(home);
        self.fit_batches();
        let (device, cpu) = self.devices.primary_and_companion_mut();
        device.release(home);
        if let Some(cpu) = cpu {
            cpu.release(home);
        }
    }
}
