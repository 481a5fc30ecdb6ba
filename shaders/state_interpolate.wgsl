// Interpolation of states in integers, so that every device gives the same bytes. Mode 0 is lerp, 1 is slerp.
// Grid: one thread per state of a call, by the segment table. t is 16.16 fixed point in [0, 65536].

@group(0) @binding(0) var<storage, read>       a:        array<vec4<u32>>;
@group(0) @binding(1) var<storage, read>       b:        array<vec4<u32>>;
@group(0) @binding(2) var<storage, read>       t:        array<u32>;
@group(0) @binding(6) var<storage, read_write> output:   array<vec4<u32>>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

const SLERP = 1u;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let thread = find_thread(id, groups, 3u);
    if thread.idle { return; }
    let i = thread.index;
    let word = operand(thread.entry, 2u);
    var at = i32(word);
    if params.each != 0u { at = i32(t[word + i]); }
    let from_a = a[operand(thread.entry, 0u) / 4u + i];
    let from_b = b[operand(thread.entry, 1u) / 4u + i];
    let longest = select(ANY_ARC, SHORTER_ARC, params.mode == SLERP);
    output[result(thread.entry) / 4u + i] = state_between(from_a, from_b, at, longest);
}
