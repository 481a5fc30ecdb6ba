//! Packs vectors of tensors in an index page: the twin of `pack_vectors.wgsl`, with the
//! sums of the host, which packs vectors that are given as arrays.

use super::launch_memory::Memory;
use crate::kernel::LANES;
use crate::kernel::insertion::{Insertion, NOTHING, ROW};
use crate::kernel::searching::{BLOCK, BLOCK_HEADER, block_words, elements};
use crate::plan::{Dispatch, Operand, Slot};
use crate::tensor::{pack_vector, unit_vector};

/// Vectors of a block.
const VECTORS: usize = BLOCK as usize;

/// Packs the vectors of every call in a page.
pub(super) fn dispatch(work: &Dispatch, memory: &Memory<'_>, slots: &[Vec<u32>], page: &mut [u32]) {
    let inputs = memory.words(Slot::INPUTS, slots);
    let source = match work.operands.get(1) {
        Some(Operand::Rows { slot, .. }) => memory.words(*slot, slots),
        Some(Operand::Scalar) | None => &[],
    };
    let insertion = Insertion::decode(work.settings.mode, work.settings.width);
    for (segment, entry) in work.segments.iter().zip(work.entries.chunks_exact(2)) {
        let words = (segment.rows / LANES * ROW) as usize;
        let rows = inputs.get(entry[0] as usize..).unwrap_or_default();
        for row in rows[..words.min(rows.len())].chunks_exact(ROW as usize) {
            let start =
                (entry[1] as usize).saturating_add(row[0] as usize * insertion.dim as usize);
            let vector = source.get(start..).unwrap_or_default();
            insert(&insertion, [row[0], row[1], row[2]], vector, page);
        }
    }
}

/// Packs a vector, the first floats of `source`, as a row of a call says.
fn insert(insertion: &Insertion, [from, place, id]: [u32; 3], source: &[u32], page: &mut [u32]) {
    let words = block_words(insertion.quads()) as usize;
    let (block, lane) = ((place / BLOCK) as usize, (place % BLOCK) as usize);
    let Some(block) = page.chunks_exact_mut(words).nth(block) else {
        return;
    };
    let (header, quads) = block.split_at_mut(BLOCK_HEADER as usize);
    let (scales, ids) = header.split_at_mut(VECTORS);
    if from == NOTHING {
        ids[lane] = id;
        return;
    }
    let dim = insertion.dim as usize;
    let Some(floats) = source.get(..dim) else {
        return;
    };
    let floats: &[f32] = bytemuck::cast_slice(floats);
    let most = insertion.most();
    // No range contains NaN.
    if !floats.iter().all(|x| (-most..=most).contains(x)) {
        ids[lane] = 0;
        return;
    }
    let unit = insertion.is_scaled.then(|| unit_vector(floats));
    let floats = unit.as_deref().unwrap_or(floats);
    let padded = insertion.quads() * elements(insertion.packing);
    let (scale, packed) = pack_vector(insertion.packing, floats, padded);
    (scales[lane], ids[lane]) = (scale, id);
    let places = quads.chunks_exact_mut(4).skip(lane).step_by(VECTORS);
    for (to, from) in places.zip(packed.chunks_exact(4)) {
        to.copy_from_slice(from);
    }
}
