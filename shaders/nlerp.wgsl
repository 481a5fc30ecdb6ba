// Normalized linear interpolation of unit quaternions (xyzw) along the shorter arc; t outside [0, 1] goes on along it.
// Grid: one thread per quaternion of a call, by the segment table.

@group(0) @binding(0) var<storage, read>       a:        array<vec4<f32>>;
@group(0) @binding(1) var<storage, read>       b:        array<vec4<f32>>;
@group(0) @binding(2) var<storage, read>       t:        array<f32>;
@group(0) @binding(6) var<storage, read_write> output:   array<vec4<f32>>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let thread = find_thread(id, groups, 3u);
    if thread.idle { return; }
    let i = thread.index;
    let word = operand(thread.entry, 2u);
    var at = bitcast<f32>(word);
    if params.each != 0u { at = t[word + i]; }
    let from_a = a[operand(thread.entry, 0u) / 4u + i];
    var from_b = b[operand(thread.entry, 1u) / 4u + i];
    if dot(from_a, from_b) < 0.0 { from_b = -from_b; }
    let sum = (1.0 - at) * from_a + at * from_b;
    let square = dot(sum, sum);
    // A sum of length 0 has no direction; the result is then the quaternion of no rotation.
    var turned = vec4<f32>(0.0, 0.0, 0.0, 1.0);
    if square != 0.0 { turned = sum * inverseSqrt(square); }
    output[result(thread.entry) / 4u + i] = turned;
}
