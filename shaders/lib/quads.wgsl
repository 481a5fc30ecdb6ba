// How the threads of a workgroup find the values of the factors that they copy to workgroup memory, for a tile of a
// matrix product. `tile.wgsl` and `small_tile.wgsl` compute the sums.

const THREADS_OF_TILE = 128u;

// Four values of the left factor, `step` words apart; zeros from value `count` on.
fn left_values(at: u32, step: u32, count: u32) -> F {
    return select(F(), bitcast<F>(left(at + LANE * step)), LANE < U(count));
}

// The same four values of the right factor.
fn right_values(at: u32, step: u32, count: u32) -> F {
    return select(F(), bitcast<F>(right(at + LANE * step)), LANE < U(count));
}

// How many values are left from place `at` on; no more than four are read.
fn remaining(is_across: bool, at: vec2<u32>, limit: vec2<u32>) -> u32 {
    if at.x >= limit.x || at.y >= limit.y { return 0u; }
    return select(limit.y - at.y, limit.x - at.x, is_across);
}

// The place of the four values of quad `i` in a tile: along rows or columns (x), and along steps (y). A line of the tile
// has `quads` quads.
fn place(is_across: bool, i: u32, quads: u32) -> vec2<u32> {
    if is_across { return vec2<u32>(i % quads * 4u, i / quads); }
    return vec2<u32>(i / quads, i % quads * 4u);
}

// Whether all values of a factor in the tile can be read by quads: every four neighbors are a quad in memory. `limit` is
// how many rows or columns are left, and how many steps. All threads of a workgroup get the same answer.
fn is_whole(is_across: bool, start: u32, strides: vec2<u32>, limit: vec2<u32>) -> bool {
    let near = select(strides.y, strides.x, is_across);
    let far = select(strides.x, strides.y, is_across);
    let length = select(limit.y, limit.x, is_across);
    return near == 1u && (start | far | length) % 4u == 0u;
}

// How many words from the start a thread reads. In place of what is behind the last row or column, which no result needs,
// a thread reads the last one.
fn offset(is_across: bool, is_whole: bool, at: vec2<u32>, strides: vec2<u32>, limit: vec2<u32>) -> u32 {
    let last = limit.x - select(1u, 4u, is_across);
    return dot(vec2<u32>(select(at.x, min(at.x, last), is_whole), at.y), strides);
}

@compute @workgroup_size(THREADS_OF_TILE)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    // Found from the workgroup alone, so that all threads of the workgroup meet at the barriers.
    let thread = find_thread(vec3<u32>(group.x * WORKGROUP, group.y, 0u), groups, WORDS);
    if thread.idle { return; }
    compute(thread.entry, thread.index / WORKGROUP, lane);
}
