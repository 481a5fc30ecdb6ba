// One step down the gradient of the magnitude: rho - rate * dm/drho, rounded to the nearest rho and clamped. The phase has
// no slope, and null stays null. Grid: one thread per state of a call, by the segment table.
// In integers, so that every device gives the same bytes: rates are in units of 2^-22, slopes in units of 2^-32.

@group(0) @binding(0) var<storage, read>       states:   array<vec4<u32>>;
@group(0) @binding(1) var<storage, read>       rates:    array<i32>;
@group(0) @binding(6) var<storage, read_write> output:   array<vec4<u32>>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

// (ln 2 / 4) * 2^(rho/4) by rho + 8, in units of 2^-32; the first entry is 0, of the null layer.
const SLOPES = array<u32, 16>(
    0u, 221270154u, 263136042u, 312923253u,
    372130559u, 442540308u, 526272083u, 625846506u,
    744261118u, 885080617u, 1052544167u, 1251693012u,
    1488522236u, 1770161234u, 2105088334u, 2503386024u,
);

// The upper word of the product of two words.
fn high_word(a: u32, b: u32) -> u32 {
    let low = (a & 65535u) * (b & 65535u);
    let middle = (a >> 16u) * (b & 65535u) + (low >> 16u);
    let other = (a & 65535u) * (b >> 16u) + (middle & 65535u);
    return (a >> 16u) * (b >> 16u) + (middle >> 16u) + (other >> 16u);
}

fn layer(before: u32, rate: i32) -> u32 {
    let rho = before >> 4u;
    // The product is in units of 2^-54, so its upper word has 22 bits below the point. No product is halfway between two
    // whole numbers.
    let steps = i32((high_word(u32(abs(rate)), SLOPES[rho]) + (1u << 21u)) >> 22u);
    let moved = clamp(i32(rho) - select(steps, -steps, rate < 0), 0, 15);
    return (u32(moved) << 4u) | (before & 15u);
}

fn four_layers(before: u32, rate: i32) -> u32 {
    var word = 0u;
    for (var bit = 0u; bit < 32u; bit += 8u) {
        word |= layer((before >> bit) & 255u, rate) << bit;
    }
    return word;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let thread = find_thread(id, groups, 2u);
    if thread.idle { return; }
    let i = thread.index;
    let word = operand(thread.entry, 1u);
    var rate = bitcast<i32>(word);
    if params.each != 0u { rate = rates[word + i]; }
    let before = states[operand(thread.entry, 0u) / 4u + i];
    output[result(thread.entry) / 4u + i] = vec4<u32>(
        four_layers(before.x, rate),
        four_layers(before.y, rate),
        four_layers(before.z, rate),
        four_layers(before.w, rate),
    );
}
