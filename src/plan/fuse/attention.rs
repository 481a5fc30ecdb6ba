//! Makes the stage of an attention: how many heads there are and how many floats each has goes
//! to the program; how many queries and keys a call has goes to the sizes.

use super::draft::Context;
use super::geometry::Geometry;
use super::lower::Primitive;
use crate::program::{Access, Attention, Body, LANES, QUERIES, StageSizes};

/// The stage of an attention with these loads of queries, keys and values, and of a bias.
pub(super) fn build(
    context: &Context<'_>,
    geometry: &Geometry<'_>,
    value: usize,
    loads: [usize; 3],
    bias: Option<usize>,
) -> (Body, Vec<Access>, StageSizes) {
    let value = &context.lowered.values[value];
    let keys = context.lowered.values[value.operands[1]].shape;
    let (Primitive::Attention(heads), [.., rows, width], [.., keys, width_of_keys]) =
        (&value.primitive, value.shape.dims(), keys.dims())
    else {
        unreachable!("an attention is of matrices");
    };
    let size = width / heads.count;
    let rank = value.shape.rank();
    let mut stack = geometry.dimensions(value.shape, &|axis| axis < rank - 2);
    stack.collapse(0);
    let mut words = vec![*keys];
    words.extend(&stack.dims[1..]);
    words.push(*rows);
    let mut is_quads = size % 4 == 0;
    for (at, (load, strides)) in (geometry.draft.loads.iter().zip(&stack.strides)).enumerate() {
        // Queries step along the rows of the result, keys, values and the distances of a bias along
        // the axis behind: the other of the two strides is 0.
        let row = load.strides[rank - 2].wrapping_add(load.strides[rank]);
        let step = load.strides[rank - 1];
        let strides = &strides[..stack.dims.len()];
        let mut starts = strides.iter().chain([&row, &load.offset]);
        let is_in_quads = step == 1 && starts.all(|words| words % 4 == 0);
        is_quads &= is_in_quads || !loads.contains(&at);
        words.extend(strides);
        words.extend([row, step]);
    }
    let blocks =
        (stack.dims.iter().product::<u32>() * heads.count).saturating_mul(rows.div_ceil(QUERIES));
    let body = Body::Attention(Attention {
        loads: loads.map(|load| load as u32),
        bias: bias.map(|load| load as u32),
        outer: stack.dims.len() as u32 + 1,
        heads: heads.count,
        sharing: width / width_of_keys,
        size,
        is_causal: heads.is_causal,
        window: heads.window,
        is_quads,
    });
    let sizes = StageSizes {
        threads: blocks.saturating_mul(LANES),
        elements: value.shape.count(),
        words,
        ..StageSizes::default()
    };
    (
        body,
        vec![Access::Strided; geometry.draft.loads.len()],
        sizes,
    )
}
