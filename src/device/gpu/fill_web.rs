//! Writes to a mapped buffer in the browser: straight from wasm memory to its
//! `ArrayBuffer`. wgpu's view for writing goes through a copy in between; the one
//! for reading hands the range out as it is.

/// Copies bytes to where they go in the buffer.
pub(super) fn fill<'a>(
    buffer: &wgpu::Buffer,
    slices: impl Iterator<Item = (usize, &'a [u8])>,
) -> Result<(), wgpu::MapRangeError> {
    let view = buffer.get_mapped_range(..)?;
    for (to, bytes) in slices {
        #[expect(clippy::cast_possible_truncation, reason = "wasm32 has 32 bits")]
        let (start, end) = (to as u32, (to + bytes.len()) as u32);
        let target = view.as_uint8array().subarray(start, end);
        target.copy_from(bytes);
    }
    Ok(())
}
