// Gradients of the magnitude of a state: (dm/drho, dm/dtheta) a layer, m = 2^(rho/4), zeros at null.
// Grid: one thread per two layers (four floats of the result), eight threads a state, by the segment table.

@group(0) @binding(0) var<storage, read>       states:   array<u32>;
@group(0) @binding(6) var<storage, read_write> output:   array<vec4<f32>>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

// (ln 2 / 4) * 2^(rho/4) by rho + 8; the first entry is 0, of the null layer.
const SLOPES = array<f32, 16>(
    0.0, 0.051518474, 0.061266135, 0.072858125,
    0.0866434, 0.10303695, 0.12253227, 0.14571625,
    0.1732868, 0.2060739, 0.24506454, 0.2914325,
    0.3465736, 0.4121478, 0.49012908, 0.582865,
);

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let thread = find_thread(id, groups, 1u);
    if thread.idle { return; }
    let i = thread.index;
    let pair = states[operand(thread.entry, 0u) + i / 2u] >> (16u * (i & 1u));
    let low = (pair >> 4u) & 15u;
    let high = (pair >> 12u) & 15u;
    output[result(thread.entry) / 4u + i] = vec4<f32>(SLOPES[low], 0.0, SLOPES[high], 0.0);
}
