//! Tensors that stay on the device: who still reads them.
//!
//! Their data is the device's and its source the face's; this only counts, so
//! that what is released while calls wait for it is freed with the last one.

use super::parts::Filling;
use super::stats::TensorBytes;
use super::{COPIES, Session};
use crate::device::Device;
use crate::error::Error;
use crate::plan::Parted;
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
        for (tensor, held) in (0..).zip(&self.tensors.held) {
            // What the device does not have yet counts as what it will take.
            let coming = u32::try_from(held.deferred.unwrap_or(0)).unwrap_or(u32::MAX);
            let coming = held.packing.map_or(coming, |packing| packing.words(coming));
            let coming = u64::from(coming) * u64::from(WORD);
            *bytes.of(held.packing) += self.device.tensor_bytes(tensor).max(coming);
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

/// The tensors of a session.
#[derive(Debug, Default)]
pub(super) struct Tensors {
    held: Vec<Held>,
    /// Numbers that can be given again.
    free: Vec<u32>,
    /// Words that the processor beside the device has.
    mirrored: usize,
    /// Bytes that the device has of them.
    pub(super) resident: u64,
    /// Those that lie there in parts.
    parted: Vec<Parted>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// Pending calls that read it.
    readers: u32,
    is_held: bool,
    /// Whether its data is on the device that is in use.
    is_filled: bool,
    packing: Option<Packing>,
    /// Words of it that the processor beside the device has.
    mirrored: usize,
    /// Words of it that the device is still to get from there.
    deferred: Option<usize>,
}

/// Words of a tensor, and of all of them, that the processor beside a GPU gets
/// as well: 1 MiB, and 32 MiB. What is larger pulls its calls to the GPU.
const MIRRORED: usize = 1 << 18;
const MIRRORED_IN_ALL: usize = 1 << 23;

impl Tensors {
    /// A number for a new tensor.
    pub(super) fn hold(&mut self) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.held.push(Held::default());
            u32::try_from(self.held.len() - 1).expect("fewer than 2^31 tensors")
        });
        self.held[number as usize] = Held {
            is_held: true,
            ..Held::default()
        };
        number
    }

    /// The numbers that tensors have, or had.
    fn numbers(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.held.len()).expect("fewer than 2^31 tensors")
    }

    /// How the device keeps a tensor's floats, if they are packed.
    fn packing(&self, tensor: u32) -> Option<Packing> {
        self.held[tensor as usize].packing
    }

    /// How many numbers there are.
    pub(super) fn count(&self) -> usize {
        self.held.len()
    }

    /// Whether there is a tensor of this number.
    pub(super) fn is_held(&self, tensor: u32) -> bool {
        let held = self.held.get(tensor as usize);
        held.is_some_and(|held| held.is_held)
    }

    /// Its data is on the device.
    pub(super) fn fill(&mut self, tensor: u32, packing: Option<Packing>) {
        let held = &mut self.held[tensor as usize];
        held.is_filled = true;
        held.packing = packing;
        held.deferred = None;
    }

    /// Its words are on the processor beside the device alone for now.
    fn defer(&mut self, tensor: u32, words: usize) {
        self.held[tensor as usize].deferred = Some(words);
    }

    /// Words that the device is still to get, if it lacks a tensor.
    fn deferred(&self, tensor: u32) -> Option<usize> {
        self.held.get(tensor as usize)?.deferred
    }

    /// Whether the processor beside the device is to have so many words of it.
    pub(super) fn mirror(&mut self, tensor: u32, words: usize) -> bool {
        let held = &mut self.held[tensor as usize];
        let others = self.mirrored - held.mirrored;
        let fits = words <= MIRRORED && others + words <= MIRRORED_IN_ALL;
        if fits {
            held.mirrored = words;
            self.mirrored = others + words;
        }
        fits
    }

    /// Those that lie on the device in parts.
    pub(super) fn parted(&self) -> &[Parted] {
        &self.parted
    }

    /// A tensor lies in parts from here on.
    pub(super) fn part(&mut self, parted: Parted) {
        self.parted.push(parted);
    }

    /// It does no more; what its parts were.
    pub(super) fn unpart(&mut self, tensor: u32) -> Vec<u32> {
        let at = self.parted.iter().position(|own| own.tensor == tensor);
        at.map_or(Vec::new(), |at| self.parted.swap_remove(at).parts)
    }

    /// No more calls may read the processor's copy.
    pub(super) fn unmirror(&mut self, tensor: u32) {
        let words = std::mem::take(&mut self.held[tensor as usize].mirrored);
        self.mirrored -= words;
    }

    /// Whether the processor beside the device has its data as well.
    pub(super) fn is_mirrored(&self, tensor: u32) -> bool {
        let held = &self.held[tensor as usize];
        held.mirrored > 0 && held.is_filled
    }

    /// Nothing is on the device any more.
    pub(super) fn lose(&mut self) {
        self.resident = 0;
        for held in &mut self.held {
            held.is_filled = false;
            held.deferred = None;
        }
    }

    /// Whether its data is on the device.
    pub(super) fn is_filled(&self, tensor: u32) -> bool {
        self.held[tensor as usize].is_filled
    }

    /// A call reads it from now on.
    pub(super) fn read(&mut self, tensor: u32) {
        self.held[tensor as usize].readers += 1;
    }

    /// Whether a pending call reads it.
    pub(super) fn is_read(&self, tensor: u32) -> bool {
        self.held[tensor as usize].readers > 0
    }

    /// A call reads it no more; `true` when nobody needs it.
    pub(super) fn done(&mut self, tensor: u32) -> bool {
        self.held[tensor as usize].readers -= 1;
        self.is_over(tensor)
    }

    /// Its owner needs it no more; `true` when nobody does.
    pub(super) fn release(&mut self, tensor: u32) -> bool {
        if !self.is_held(tensor) {
            return false;
        }
        self.held[tensor as usize].is_held = false;
        self.is_over(tensor)
    }

    fn is_over(&mut self, tensor: u32) -> bool {
        let Held {
            readers, is_held, ..
        } = self.held[tensor as usize];
        let is_over = readers == 0 && !is_held;
        if is_over {
            self.held[tensor as usize].deferred = None;
            self.free.push(tensor);
        }
        is_over
    }
}
