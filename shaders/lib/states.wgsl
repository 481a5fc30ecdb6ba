// Interpolation of layers in integers, for the kernels of states. A layer's high nibble is rho + 8, its low nibble theta.

// The longest way from a phase to another that is taken; beyond, the other way around is. 15 takes every way.
const SHORTER_ARC = 8;
const ANY_ARC     = 15;

// start + step * t, rounded half to even; `at` is t in 16.16 fixed point.
fn advance(start: i32, step: i32, at: i32) -> i32 {
    let exact = start * 65536 + step * at;
    let whole = exact >> 16u;
    let rest = exact & 65535;
    let up = rest > 32768 || (rest == 32768 && (whole & 1) == 1);
    return whole + select(0, 1, up);
}

fn layer_between(first: u32, second: u32, at: i32, longest: i32) -> u32 {
    let rho = advance(i32(first >> 4u), i32(second >> 4u) - i32(first >> 4u), at);
    let theta = i32(first & 15u);
    var arc = i32(second & 15u) - theta;
    if arc > longest { arc -= 16; } else if arc < -longest { arc += 16; }
    return (u32(rho) << 4u) | (u32(advance(theta, arc, at)) & 15u);
}

fn four_layers(first: u32, second: u32, at: i32, longest: i32) -> u32 {
    var word = 0u;
    for (var bit = 0u; bit < 32u; bit += 8u) {
        word |= layer_between((first >> bit) & 255u, (second >> bit) & 255u, at, longest) << bit;
    }
    return word;
}

// All 16 layers of a state.
fn state_between(first: vec4<u32>, second: vec4<u32>, at: i32, longest: i32) -> vec4<u32> {
    return vec4<u32>(
        four_layers(first.x, second.x, at, longest),
        four_layers(first.y, second.y, at, longest),
        four_layers(first.z, second.z, at, longest),
        four_layers(first.w, second.w, at, longest),
    );
}
