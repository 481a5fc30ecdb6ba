// The states at all steps of the way from one state to another, both ends included. Mode 0 is lerp, 1 is slerp.
// Grid: one thread per state of the result, `width` steps a pair of states, by the segment table.

@group(0) @binding(0) var<storage, read>       a:        array<vec4<u32>>;
@group(0) @binding(1) var<storage, read>       b:        array<vec4<u32>>;
@group(0) @binding(6) var<storage, read_write> output:   array<vec4<u32>>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

const SLERP = 1u;

// step / last in 16.16 fixed point, rounded once. No quotient is halfway between two numbers: that would need a `last` of
// 2^17.
fn fraction(step: u32, last: u32) -> u32 {
    let exact = step << 16u;
    let whole = exact / last;
    return whole + select(0u, 1u, 2u * (exact - whole * last) > last);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let thread = find_thread(id, groups, 2u);
    if thread.idle { return; }
    let i = thread.index / params.width;
    let at = i32(fraction(thread.index % params.width, params.width - 1u));
    let from_a = a[operand(thread.entry, 0u) / 4u + i];
    let from_b = b[operand(thread.entry, 1u) / 4u + i];
    let longest = select(ANY_ARC, SHORTER_ARC, params.mode == SLERP);
    output[result(thread.entry) / 4u + thread.index] = state_between(from_a, from_b, at, longest);
}
