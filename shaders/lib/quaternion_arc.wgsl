// Arcs between quaternions: the angle is 2 atan(|a - b| / |a + b|) (Kahan), which loses no digits for close or
// orthogonal quaternions; WGSL's own acos and sin allow errors of 2^-11 and more, so both functions are polynomials here.

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

// The angle between quaternions no more than a right angle apart.
fn angle_between(a: vec4<f32>, b: vec4<f32>) -> f32 {
    let apart = a - b;
    let along = a + b;
    let gap = sqrt(dot(apart, apart));
    if gap == 0.0 { return 0.0; }
    return 2.0 * arc_tangent(gap / sqrt(dot(along, along)));
}
