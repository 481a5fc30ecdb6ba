//! Writes to a mapped buffer in the browser, from WebAssembly memory straight to the mapped
//! `ArrayBuffer`. wgpu's view for writing would copy the range twice; its view for reading
//! exposes the `ArrayBuffer` itself, which is writable all the same.

use wasm_bindgen::prelude::*;

use super::each_slice;
use crate::plan::CopyRun;
use crate::tensor::Arena;

#[wasm_bindgen]
extern "C" {
    /// A `Uint8Array` of the mapped range.
    type Target;
    #[wasm_bindgen(method)]
    fn set(this: &Target, bytes: &[u8], to: u32);
}

/// Copies runs of the arena to their places in the first `bytes` of a mapped buffer.
pub(super) fn copy(
    buffer: &wgpu::Buffer,
    bytes: u64,
    arena: &Arena,
    runs: &[CopyRun],
) -> Result<(), wgpu::MapRangeError> {
    let view = buffer.get_mapped_range(0..bytes)?;
    let target: &Target = view.as_uint8array().unchecked_ref();
    each_slice(arena, runs, &mut |to, bytes| target.set(bytes, to));
    Ok(())
}
