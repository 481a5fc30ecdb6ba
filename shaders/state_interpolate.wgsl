// Interpolation of states in integers, so that every device gives the same bytes. Mode 0 is lerp, 1 is slerp.
// Grid: one thread per state of a call, by the segment table. t is 16.16 fixed point in [0, 65536].

@group(0) @binding(0) var<storage, read>       a:        array<vec4<u32>>;
@group(0) @binding(1) var<storage, read>       b:        array<vec4<u32>>;
@group(0) @binding(2) var<storage, read>       t:        array<u32>;
@group(0) @binding(6) var<storage, read_write> output:   array<vec4<u32>>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

const SLERP = 1u;

// start + step * t, rounded half to even.
fn advance(start: i32, step: i32, at: i32) -> i32 {
    let exact = start * 65536 + step * at;
    let whole = exact >> 16u;
    let rest = exact & 65535;
    let up = rest > 32768 || (rest == 32768 && (whole & 1) == 1);
    return whole + select(0, 1, up);
}

// One layer: high nibble rho + 8, low nibble theta.
fn layer(first: u32, second: u32, at: i32) -> u32 {
    let rho = advance(i32(first >> 4u), i32(second >> 4u) - i32(first >> 4u), at);
    let theta = i32(first & 15u);
    var arc = i32(second & 15u) - theta;
    if params.mode == SLERP {
        if arc > 8 { arc -= 16; } else if arc < -8 { arc += 16; }
    }
    return (u32(rho) << 4u) | (u32(advance(theta, arc, at)) & 15u);
}

fn four_layers(first: u32, second: u32, at: i32) -> u32 {
    var word = 0u;
    for (var bit = 0u; bit < 32u; bit += 8u) {
        word |= layer((first >> bit) & 255u, (second >> bit) & 255u, at) << bit;
    }
    return word;
}

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
    output[result(thread.entry) / 4u + i] = vec4<u32>(
        four_layers(from_a.x, from_b.x, at),
        four_layers(from_a.y, from_b.y, at),
        four_layers(from_a.z, from_b.z, at),
        four_layers(from_a.w, from_b.w, at),
    );
}
