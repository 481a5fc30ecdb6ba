//! Tensors that stay on a device, as JavaScript holds them: by numbers.

use wasm_bindgen::prelude::*;

use super::Core;
use crate::device::{AnyDevice, BufferPart, Cpu, Device};
use crate::error::Error;
use crate::graph::chain::Home;
use crate::session::{Filling, Place};
use crate::tensor::WORD;

/// Added to the number of a home where the data is packed already.
const AS_GIVEN: u32 = 8;

/// Added to the number of a home where the data is a snapshot.
const AS_SNAPSHOT: u32 = 16;

/// Bytes of a quad.
const QUAD: u64 = 16;

#[wasm_bindgen]
impl Core {
    /// A number for a tensor that stays on the device: in a buffer of its own without a number
    /// of words, and otherwise, if the tensor is small, in one that it shares with others, but
    /// with none of the tensors in `apart`.
    pub fn hold(&self, words: Option<u32>, apart: Option<Box<[u32]>>) -> u32 {
        let mut session = self.inner.session();
        match words {
            Some(words) => session.hold_shared(words, &apart.unwrap_or_default()),
            None => session.hold(),
        }
    }

    /// Copies a tensor's data to the device, which keeps it in the format of this home; with
    /// `AS_GIVEN` the data is in that format already. With `AS_SNAPSHOT` a tensor that was lost
    /// with its device may be read again, because the page tells which writes the data lacks.
    /// Rows of `row` words may lie in several buffers; with 0 all must lie in one.
    pub fn fill(&self, tensor: u32, data: &js_sys::Uint32Array, home: u32, row: u32) -> f64 {
        let packing = Home::ALL[(home & !(AS_GIVEN | AS_SNAPSHOT)) as usize].packing();
        let to_pack = packing.filter(|_| home & AS_GIVEN == 0);
        let mut session = self.inner.session();
        let words = data.length();
        let filling = match to_pack {
            Some(_) => Filling {
                packing,
                words,
                unpacked: words,
                row,
            },
            None => Filling::packed(packing, words, row),
        };
        let filled = session.fill_rows(tensor, filling, &|device, place, range| {
            let data = &data.subarray(range.start, range.end);
            match (device, place) {
                (AnyDevice::Gpu(gpu), Place::Slab { slab, at }) => {
                    gpu.patch_raw(slab, at, data);
                    Ok(())
                }
                (AnyDevice::Cpu(cpu), Place::Slab { slab, at }) => {
                    if let Some(part) = cpu.part_mut(slab, at, data.length()) {
                        data.copy_to(part);
                    }
                    Ok(())
                }
                (AnyDevice::Gpu(gpu), Place::Own { tensor }) => gpu.fill_raw(tensor, data, to_pack),
                (AnyDevice::Cpu(cpu), Place::Own { tensor }) => {
                    let count = data.length() as usize;
                    // Data that is packed here is in memory three times for a moment.
                    if packing.is_some() {
                        Cpu::room(3 * count)?;
                    }
                    let mut words = Cpu::room(count)?;
                    words.resize(count, 0);
                    data.copy_to(&mut words);
                    match to_pack {
                        Some(to_pack) => cpu.fill(tensor, &to_pack.pack(&words)?, packing),
                        None if packing.is_some() => cpu.fill(tensor, &words, packing),
                        None => {
                            cpu.keep(tensor, words);
                            Ok(())
                        }
                    }
                }
            }
        });
        if filled.is_ok() && home & AS_SNAPSHOT != 0 {
            session.heal(tensor);
        }
        self.inner.number(filled.map(|()| 0))
    }

    /// Makes room on the device for a tensor of so many words, which calls are to write.
    pub fn allocate(&self, tensor: u32, words: u32) -> f64 {
        let made = self.inner.session().allocate(tensor, words);
        self.inner.number(made.map(|()| 0))
    }

    /// Makes room on the device for a tensor of so many words, all 0, that calls may read: a page
    /// of an index, in a buffer of its own. Made anew after a loss, its readers are refused until
    /// [`Core::heal`].
    pub fn clear(&self, tensor: u32, words: u32) -> f64 {
        let made = self.inner.session().clear(tensor, words);
        self.inner.number(made.map(|()| 0))
    }

    /// Notes that a lost tensor has all its words again, by the calls made so far.
    pub fn heal(&self, tensor: u32) {
        self.inner.session().heal(tensor);
    }

    /// Refuses the waiting calls that read a tensor, a part of which is lost.
    pub fn refuse_readers(&self, tensor: u32) {
        self.inner.session().refuse_readers(tensor);
    }

    /// Whether readers of a tensor are refused because its words are lost.
    pub fn is_lost(&self, tensor: u32) -> bool {
        self.inner.session().is_tensor_lost(tensor)
    }

    /// Makes a place in a `GPUBuffer` of the page a tensor of this home; offset and length are
    /// in quads, of 16 bytes each.
    #[expect(
        clippy::too_many_arguments,
        reason = "numbers, because an object would be read field by field"
    )]
    pub fn import(&self, tensor: u32, buffer: &JsValue, offset: u32, quads: u32, home: u32) -> f64 {
        let place = BufferPart {
            offset: u64::from(offset) * QUAD,
            bytes: u64::from(quads) * QUAD,
            packing: Home::ALL[home as usize].packing(),
        };
        let import = |device: &mut AnyDevice| match device {
            AnyDevice::Gpu(gpu) => gpu.import(tensor, buffer, place),
            AnyDevice::Cpu(_) => Err(Error::InvalidInput(
                "calls run on the CPU, which reads no GPUBuffer; give an array".into(),
            )),
        };
        let mut session = self.inner.session();
        let placed = session.place_with(tensor, place.packing, import);
        self.inner.number(placed.map(|()| 0))
    }

    /// Calls made from here on restore tensors, and go before all that waits.
    pub fn begin_restoration(&self) {
        self.inner.session().begin_restoration();
        self.inner.follow_room();
    }

    /// From here on calls wait behind those made before.
    pub fn end_restoration(&self) {
        self.inner.session().end_restoration();
        self.inner.follow_room();
    }

    /// Waits for [`Core::resume`]: another thread fills the tensors of the device that was told
    /// of just now.
    pub fn wait(&self) {
        self.inner.is_waiting.set(true);
    }

    /// All tensors are filled that can be.
    pub fn resume(&self) {
        self.inner.resume();
        self.inner.pump_unasked();
    }

    /// Gives up a tensor. Calls that were made before still read it.
    pub fn release(&self, tensor: u32) {
        self.inner.session().release(tensor);
    }

    /// Writes a part of a tensor.
    pub fn patch(&self, tensor: u32, at: u32, words: &[u32]) -> f64 {
        let patched = self.inner.session().patch(tensor, at, words);
        self.inner.number(patched.map(|()| 0))
    }

    /// The `GPUBuffer` that a tensor lies in, or undefined where it is not on a GPU.
    pub fn locate(&self, tensor: u32) -> JsValue {
        let mut session = self.inner.session();
        let place = session.locate(tensor);
        match (session.device_mut(), place) {
            (AnyDevice::Gpu(gpu), Ok(Some(place))) => gpu.show_buffer(place.home()),
            _ => JsValue::UNDEFINED,
        }
    }

    /// Bytes of that buffer in front of the tensor.
    pub fn offset(&self, tensor: u32) -> u32 {
        let place = self.inner.session().place(tensor);
        place.map_or(0, |place| place.at() * WORD)
    }
}
