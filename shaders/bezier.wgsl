// Cubic Bezier curves of floats, each float by itself, in the Bernstein form; exact at both ends.
// Grid: one thread per four floats of a call, by the segment table.

@group(0) @binding(0) var<storage, read>       p0:       array<vec4<f32>>;
@group(0) @binding(1) var<storage, read>       p1:       array<vec4<f32>>;
@group(0) @binding(2) var<storage, read>       p2:       array<vec4<f32>>;
@group(0) @binding(3) var<storage, read>       p3:       array<vec4<f32>>;
@group(0) @binding(4) var<storage, read>       t:        array<f32>;
@group(0) @binding(6) var<storage, read_write> output:   array<vec4<f32>>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

// The parameters of the four floats of thread `i`.
fn parameters(entry: u32, i: u32) -> vec4<f32> {
    let word = operand(entry, 4u);
    if params.each == 0u { return vec4<f32>(bitcast<f32>(word)); }
    let rows = (vec4<u32>(4u * i) + vec4<u32>(0u, 1u, 2u, 3u)) / params.width;
    return vec4<f32>(t[word + rows.x], t[word + rows.y], t[word + rows.z], t[word + rows.w]);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let thread = find_thread(id, groups, 5u);
    if thread.idle { return; }
    let i = thread.index;
    let at = parameters(thread.entry, i);
    let rest = vec4<f32>(1.0) - at;
    let first = rest * rest * rest * p0[operand(thread.entry, 0u) / 4u + i]
        + 3.0 * rest * rest * at * p1[operand(thread.entry, 1u) / 4u + i];
    let second = 3.0 * rest * at * at * p2[operand(thread.entry, 2u) / 4u + i]
        + at * at * at * p3[operand(thread.entry, 3u) / 4u + i];
    output[result(thread.entry) / 4u + i] = first + second;
}
