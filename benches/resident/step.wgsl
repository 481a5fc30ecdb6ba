// A step of four floats of every state, in place: max(state · 0.99 + 0.01, 0).
// Grid: one thread per four floats.

@group(0) @binding(0) var<storage, read_write> states: array<vec4f>;

const WORKGROUP = 64u;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
    let i = id.x + id.y * groups.x * WORKGROUP;
    if i >= arrayLength(&states) { return; }
    states[i] = max(states[i] * 0.99 + 0.01, vec4f(0.0));
}
