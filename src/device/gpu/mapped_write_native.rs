//! Writes to a mapped buffer natively, where the range is host-visible memory.

use super::each_slice;
use crate::plan::CopyRun;
use crate::tensor::Arena;

/// Copies runs of the arena to their places in the first `bytes` of a mapped buffer.
pub(super) fn copy(
    buffer: &wgpu::Buffer,
    bytes: u64,
    arena: &Arena,
    runs: &[CopyRun],
) -> Result<(), wgpu::MapRangeError> {
    let mut view = buffer.get_mapped_range_mut(0..bytes)?;
    each_slice(arena, runs, &mut |to, bytes| {
        let to = to as usize;
        view.slice(to..to + bytes.len()).copy_from_slice(bytes);
    });
    Ok(())
}
