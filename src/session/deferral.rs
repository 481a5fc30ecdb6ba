//! Deferral: tensors that only the CPU beside the device has, until the device needs them.
//!
//! The choice of the tensors that are deferred when they are filled is made in `tensors`.

use super::Session;
use super::residency::MOST_COPIED;
use super::slabs::Place;
use crate::device::Device;
use crate::error::Error;
use crate::tensor::WORD;

impl<D: Device> Session<D> {
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
        let place = self.tensors.place(tensor);
        let (home, slab_words) = (place.home(), self.tensors.slab_words(place));
        let (device, cpu) = self.devices.primary_and_companion_mut();
        let cpu = cpu.expect("it has what is deferred");
        let all = cpu.tensor_words(home).expect("filled there");
        let all = &all[place.at() as usize..][..words];
        let before = device.tensor_bytes(home);
        let prepared = place.prepare(device, slab_words);
        let placed = prepared.and_then(|()| match packing {
            None => place.write(device, all, None),
            Some(to_pack) => place.write(device, &to_pack.pack(all)?, packing),
        });
        if placed.is_ok() && words > MOST_COPIED {
            cpu.release(tensor); // No call on the CPU reads so long a tensor.
        }
        self.placed(home, before);
        placed?;
        self.tensors.bring(tensor);
        Ok(())
    }

    /// Where the device has a tensor's words, which it gets first if only the CPU beside it has
    /// them. `None` for a tensor that was not filled on the device.
    ///
    /// # Errors
    ///
    /// The errors of [`Session::fill`].
    pub fn locate(&mut self, tensor: u32) -> Result<Option<Place>, Error> {
        let place = self.place(tensor)?;
        self.bring(tensor)?;
        Ok(self.tensors.is_filled(tensor).then_some(place))
    }

    /// Copies what only the CPU beside the device has so far of the tensors in a buffer.
    ///
    /// # Errors
    ///
    /// The errors of [`Session::fill`].
    pub(super) fn bring_all(&mut self, home: u32) -> Result<(), Error> {
        let mut deferred = self.tensors.deferred_in(home).into_iter();
        deferred.try_for_each(|tensor| self.bring(tensor))
    }

    /// Defers every tensor: it lies on the CPU alone, which was the primary device before.
    pub(super) fn defer_tensors(&mut self) {
        let cpu = self.devices.companion().expect("it was the device");
        self.tensors.resident_bytes = 0;
        for tensor in self.tensors.numbers() {
            let words = match self.tensors.words_in_slab(tensor) {
                Some(words) => self.tensors.is_filled(tensor).then_some(words as usize),
                None => cpu.tensor_words(tensor).map(<[u32]>::len),
            };
            if let Some(words) = words {
                let packing = self.tensors.packing(tensor);
                self.tensors.defer(tensor, words, packing);
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
}
