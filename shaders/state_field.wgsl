// Gradients of a caller's field: (df/drho, df/dtheta) a layer by central differences, one-sided at the ends of rho,
// circular in theta. `field(rho, theta, layer)` is printed from the caller's expression.
// Grid: one thread per layer, sixteen threads a state, by the segment table.

alias F = f32;
alias U = u32;
alias B = bool;

@group(0) @binding(0) var<storage, read>       states:   array<u32>;
@group(0) @binding(6) var<storage, read_write> output:   array<vec2<f32>>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

const STEP = 0.0009765625; // 2^-10

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let thread = find_thread(id, groups, 1u);
    if thread.idle { return; }
    let i = thread.index;
    let byte = (states[operand(thread.entry, 0u) + i / 4u] >> (8u * (i & 3u))) & 255u;
    let rho = f32(byte >> 4u) - 8.0;
    let theta = f32(byte & 15u);
    let rhos = vec4<f32>(min(rho + STEP, 7.0), max(rho - STEP, -8.0), rho, rho);
    let thetas = vec4<f32>(theta, theta, theta + STEP, select(theta, 16.0, theta == 0.0) - STEP);
    // The four values are computed in a loop, so that a long field is compiled once and not four times.
    var values = vec4<f32>(0.0);
    for (var k = 0u; k < 4u; k += 1u) { values[k] = field(rhos[k], thetas[k], f32(i & 15u)); }
    let one_sided = rho == -8.0 || rho == 7.0;
    let scale = vec2<f32>(select(512.0, 1024.0, one_sided), 512.0);
    output[result(thread.entry) / 2u + i] = (values.xz - values.yw) * scale;
}
