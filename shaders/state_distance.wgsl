// How far apart two states are, summed over their layers: mode 0 is |z_a - z_b| with z = m e^(i pi theta / 8), mode 1
// sqrt(drho^2 + dtheta^2) with dtheta along the shorter arc. Grid: one thread per pair of states, by the segment table.

@group(0) @binding(0) var<storage, read>       a:        array<vec4<u32>>;
@group(0) @binding(1) var<storage, read>       b:        array<vec4<u32>>;
@group(0) @binding(6) var<storage, read_write> output:   array<f32>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

const GEODESIC = 1u;

// 2^(rho/4) by rho + 8; the first entry is 0, of the null layer.
const MAGNITUDES = array<f32, 16>(
    0.0, 0.29730178, 0.35355338, 0.4204482,
    0.5, 0.59460354, 0.70710677, 0.8408964,
    1.0, 1.1892071, 1.4142135, 1.6817929,
    2.0, 2.3784142, 2.828427, 3.3635857,
);

// cos(pi k / 8). The sine of k is the cosine of k - 4.
const COSINES = array<f32, 16>(
    1.0, 0.9238795, 0.70710677, 0.38268343,
    0.0, -0.38268343, -0.70710677, -0.9238795,
    -1.0, -0.9238795, -0.70710677, -0.38268343,
    0.0, 0.38268343, 0.70710677, 0.9238795,
);

fn point(layer: u32) -> vec2<f32> {
    let theta = layer & 15u;
    return MAGNITUDES[layer >> 4u] * vec2<f32>(COSINES[theta], COSINES[(theta + 12u) & 15u]);
}

fn straight(first: u32, second: u32) -> f32 {
    // A device may round a difference of products once or twice, and then equal layers might not be 0 apart.
    if first == second { return 0.0; }
    let gap = point(first) - point(second);
    return sqrt(gap.x * gap.x + gap.y * gap.y);
}

fn geodesic(first: u32, second: u32) -> f32 {
    let rho = i32(first >> 4u) - i32(second >> 4u);
    let arc = abs(i32(first & 15u) - i32(second & 15u));
    let theta = min(arc, 16 - arc);
    let square = f32(rho * rho + theta * theta);
    // A device's root may be off by some units in the last place; roots that are whole numbers are made exact.
    let root = sqrt(square);
    return select(root, round(root), round(root) * round(root) == square);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let thread = find_thread(id, groups, 2u);
    if thread.idle { return; }
    let i = thread.index;
    let from_a = a[operand(thread.entry, 0u) / 4u + i];
    let from_b = b[operand(thread.entry, 1u) / 4u + i];
    // The order of summation is fixed: word after word in four lanes, then the lanes in pairs.
    var sums = vec4<f32>(0.0);
    for (var k = 0u; k < 16u; k += 1u) {
        let first = (from_a[k / 4u] >> (8u * (k & 3u))) & 255u;
        let second = (from_b[k / 4u] >> (8u * (k & 3u))) & 255u;
        var apart = 0.0;
        if params.mode == GEODESIC { apart = geodesic(first, second); } else { apart = straight(first, second); }
        sums[k & 3u] += apart;
    }
    output[result(thread.entry) + i] = (sums.x + sums.y) + (sums.z + sums.w);
}
