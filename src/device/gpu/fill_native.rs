//! Writes to a mapped buffer natively: it is host-visible memory.

/// Copies bytes to where they go in the buffer.
pub(super) fn fill<'a>(
    buffer: &wgpu::Buffer,
    slices: impl Iterator<Item = (usize, &'a [u8])>,
) -> Result<(), wgpu::MapRangeError> {
    let mut view = buffer.get_mapped_range_mut(..)?;
    for (to, bytes) in slices {
        view.slice(to..to + bytes.len()).copy_from_slice(bytes);
    }
    Ok(())
}
