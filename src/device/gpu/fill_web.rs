//! Writes to a mapped buffer in the browser: straight from wasm memory to its
//! `ArrayBuffer`. wgpu's view for writing goes through a copy in between; the one
//! for reading hands the range out as it is.

use wasm_bindgen::prelude::*;

use super::each_slice;
use crate::plan::Run;
use crate::tensor::Arena;

#[wasm_bindgen]
extern "C" {
    /// A `Uint8Array` that is written to.
    type Target;
    #[wasm_bindgen(method)]
    fn set(this: &Target, bytes: &[u8], to: u32);
}

/// Copies runs of the arena to where they go in so many bytes of the buffer.
pub(super) fn fill(
    (buffer, all): (&wgpu::Buffer, u64),
    (arena, runs): (&Arena, &[Run]),
) -> Result<(), wgpu::MapRangeError> {
    let view = buffer.get_mapped_range(0..all)?;
    let target: &Target = view.as_uint8array().unchecked_ref();
    each_slice(arena, runs, &mut |to, bytes| target.set(bytes, to));
    Ok(())
}
