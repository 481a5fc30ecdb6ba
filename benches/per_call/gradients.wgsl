// Gradients of states, one call alone: (dm/drho, dm/dtheta) a layer, m = 2^(rho/4), zeros at null.
// Grid: one thread per two layers, rows of 65535 workgroups.

@group(0) @binding(0) var<storage, read>       states: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<vec4<f32>>;

const WORKGROUP = 64u;

// (ln 2 / 4) * 2^(rho/4) by rho + 8; the first is null.
const SLOPES = array<f32, 16>(
    0.0, 0.051518474, 0.061266135, 0.072858125,
    0.0866434, 0.10303695, 0.12253227, 0.14571625,
    0.1732868, 0.2060739, 0.24506454, 0.2914325,
    0.3465736, 0.4121478, 0.49012908, 0.582865,
);

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.y * 65535u * WORKGROUP + id.x;
    if i >= arrayLength(&output) { return; }
    let pair = states[i / 2u] >> (16u * (i & 1u));
    output[i] = vec4<f32>(SLOPES[(pair >> 4u) & 15u], 0.0, SLOPES[(pair >> 12u) & 15u], 0.0);
}
