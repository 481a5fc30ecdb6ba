// Spherical interpolation of unit quaternions (xyzw) along the shorter arc; t outside [0, 1] goes on along it.
// Grid: one thread per quaternion of a call, by the segment table.
// The angle is 2 atan(|a - b| / |a + b|) (Kahan), which loses no digits for close or orthogonal quaternions; WGSL's own
// acos and sin allow errors of 2^-11 and more, so both functions are polynomials here.

@group(0) @binding(0) var<storage, read>       a:        array<vec4<f32>>;
@group(0) @binding(1) var<storage, read>       b:        array<vec4<f32>>;
@group(0) @binding(2) var<storage, read>       t:        array<f32>;
@group(0) @binding(6) var<storage, read_write> output:   array<vec4<f32>>;
@group(0) @binding(7) var<storage, read>       segments: array<u32>;
@group(0) @binding(8) var<uniform>             params:   Params;

const PI         = 3.14159265;
const PI_REST    = -8.74227766e-8; // PI + PI_REST is pi to 48 bits.
const QUARTER_PI = 0.785398163;
const TAN_PI_8   = 0.414213562;

// Arc tangent on [0, 1], error below 1e-7 (Cephes, atanf).
fn arc_tangent(r: f32) -> f32 {
    let far = r > TAN_PI_8;
    let x = select(r, (r - 1.0) / (r + 1.0), far);
    let z = x * x;
    let tail = ((8.05374449538e-2 * z - 1.38776856032e-1) * z + 1.99777106478e-1) * z - 3.33329491539e-1;
    return select(0.0, QUARTER_PI, far) + (tail * z * x + x);
}

// sin(x) / x on [-pi/2, pi/2], error below 1e-7 (Taylor series).
fn sinc(x: f32) -> f32 {
    let z = x * x;
    return ((((-2.50521084e-8 * z + 2.75573192e-6) * z - 1.98412698e-4) * z + 8.33333333e-3) * z - 1.66666667e-1) * z + 1.0;
}

// sin(s * angle) / sin(angle) for an angle in [0, pi/2].
fn weight(s: f32, angle: f32) -> f32 {
    let x = s * angle;
    let turns = round(x / PI);
    if turns == 0.0 { return s * sinc(x) / sinc(angle); }
    let y = (x - turns * PI) - turns * PI_REST;
    let sign = select(-1.0, 1.0, fract(turns * 0.5) == 0.0);
    return sign * y * sinc(y) / (angle * sinc(angle));
}

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
    let apart = from_a - from_b;
    let along = from_a + from_b;
    let gap = sqrt(dot(apart, apart));
    var angle = 0.0;
    if gap != 0.0 { angle = 2.0 * arc_tangent(gap / sqrt(dot(along, along))); }
    output[result(thread.entry) / 4u + i] = weight(1.0 - at, angle) * from_a + weight(at, angle) * from_b;
}
