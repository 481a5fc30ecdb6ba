// Cubic Bezier curves of states by de Casteljau's construction, exact to the last bit and rounded once, half to even.
// Phases go along the shorter arc at every level. Grid: one thread per state of a call, by the segment table.
// Three levels of 16.16 fractions take 48 bits below the point, so a number has two words.

@group(0) @binding(0) var<storage, read>       p0:       array<vec4<u32>>;
@group(0) @binding(1) var<storage, read>       p1:       array<vec4<u32>>;
@group(0) @binding(2) var<storage, read>       p2:       array<vec4<u32>>;
@group(0) @binding(3) var<storage, read>       p3:       array<vec4<u32>>;
@group(0) @binding(4) var<storage, read>       t:        array<u32>;
@group(0) @binding(6) var<storage, read_write> output:   array<vec4<u32>>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

// A number: `whole` in units of 2^-16, and `rest` in units of 2^-48.
struct Fine { whole: i32, rest: u32 }

const HALF_TURN = 8 << 16u;
const TURN      = 16 << 16u;

// start + (end - start) * t, exactly.
fn between(start: Fine, end: Fine, at: u32, is_phase: bool) -> Fine {
    var whole = end.whole - start.whole - select(0, 1, end.rest < start.rest);
    let rest = end.rest - start.rest;
    if is_phase {
        if whole > HALF_TURN || (whole == HALF_TURN && rest > 0u) { whole -= TURN; }
        else if whole < -HALF_TURN { whole += TURN; }
    }
    // The product of 21 and 17 bits in two parts, so that neither overflows.
    let high = (whole >> 8u) * i32(at);
    let low = u32(high & 255) * 256u + u32(whole & 255) * at;
    let fine = (low << 16u) + (rest >> 16u) * at;
    let sum = start.rest + fine;
    let carries = select(0, 1, fine < (low << 16u)) + select(0, 1, sum < fine);
    let moved = start.whole + (high >> 8u) + i32(low >> 16u) + carries;
    return Fine(select(moved, moved & (TURN - 1), is_phase), sum);
}

fn rounded(exact: Fine) -> u32 {
    let whole = exact.whole >> 16u;
    let rest = exact.whole & 65535;
    let up = rest > 32768 || (rest == 32768 && (exact.rest > 0u || (whole & 1) == 1));
    return u32(whole + select(0, 1, up));
}

fn curve(nibbles: vec4<u32>, at: u32, is_phase: bool) -> u32 {
    let a = Fine(i32(nibbles.x) << 16u, 0u);
    let b = Fine(i32(nibbles.y) << 16u, 0u);
    let c = Fine(i32(nibbles.z) << 16u, 0u);
    let d = Fine(i32(nibbles.w) << 16u, 0u);
    let ab = between(a, b, at, is_phase);
    let bc = between(b, c, at, is_phase);
    let cd = between(c, d, at, is_phase);
    return rounded(between(between(ab, bc, at, is_phase), between(bc, cd, at, is_phase), at, is_phase));
}

// Four layers of the result; each component of `words` has the same four layers of one operand.
fn four_layers(words: vec4<u32>, at: u32) -> u32 {
    var word = 0u;
    for (var bit = 0u; bit < 32u; bit += 8u) {
        let theta = (words >> vec4<u32>(bit)) & vec4<u32>(15u);
        let rho = (words >> vec4<u32>(bit + 4u)) & vec4<u32>(15u);
        word |= ((curve(rho, at, false) << 4u) | (curve(theta, at, true) & 15u)) << bit;
    }
    return word;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let thread = find_thread(id, groups, 5u);
    if thread.idle { return; }
    let i = thread.index;
    var at = operand(thread.entry, 4u);
    if params.each != 0u { at = t[at + i]; }
    let a = p0[operand(thread.entry, 0u) / 4u + i];
    let b = p1[operand(thread.entry, 1u) / 4u + i];
    let c = p2[operand(thread.entry, 2u) / 4u + i];
    let d = p3[operand(thread.entry, 3u) / 4u + i];
    output[result(thread.entry) / 4u + i] = vec4<u32>(
        four_layers(vec4<u32>(a.x, b.x, c.x, d.x), at),
        four_layers(vec4<u32>(a.y, b.y, c.y, d.y), at),
        four_layers(vec4<u32>(a.z, b.z, c.z, d.z), at),
        four_layers(vec4<u32>(a.w, b.w, c.w, d.w), at),
    );
}
