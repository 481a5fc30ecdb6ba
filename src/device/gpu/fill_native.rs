//! Writes to a mapped buffer natively: it is host-visible memory.

use super::each_slice;
use crate::plan::Run;
use crate::tensor::Arena;

/// Copies runs of the arena to where they go in so many bytes of the buffer.
pub(super) fn fill(
    (buffer, all): (&wgpu::Buffer, u64),
    (arena, runs): (&Arena, &[Run]),
) -> Result<(), wgpu::MapRangeError> {
    let mut view = buffer.get_mapped_range_mut(0..all)?;
    each_slice(arena, runs, &mut |to, bytes| {
        let to = to as usize;
        view.slice(to..to + bytes.len()).copy_from_slice(bytes);
    });
    Ok(())
}
