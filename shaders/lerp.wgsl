// Linear interpolation of floats: (1 - t) * a + t * b, exact at both ends.
// Grid: one thread per four floats of a call, by the segment table.

@group(0) @binding(0) var<storage, read>       a:        array<vec4<f32>>;
@group(0) @binding(1) var<storage, read>       b:        array<vec4<f32>>;
@group(0) @binding(2) var<storage, read>       t:        array<f32>;
@group(0) @binding(6) var<storage, read_write> output:   array<vec4<f32>>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

// The parameters of the four floats of thread `i`.
fn parameters(entry: u32, i: u32) -> vec4<f32> {
    let word = operand(entry, 2u);
    if params.each == 0u { return vec4<f32>(bitcast<f32>(word)); }
    let rows = (vec4<u32>(4u * i) + vec4<u32>(0u, 1u, 2u, 3u)) / params.width;
    return vec4<f32>(t[word + rows.x], t[word + rows.y], t[word + rows.z], t[word + rows.w]);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let thread = find_thread(id, groups, 3u);
    if thread.idle { return; }
    let i = thread.index;
    let at = parameters(thread.entry, i);
    let from_a = a[operand(thread.entry, 0u) / 4u + i];
    let from_b = b[operand(thread.entry, 1u) / 4u + i];
    output[result(thread.entry) / 4u + i] = (vec4<f32>(1.0) - at) * from_a + at * from_b;
}
