//! What every op should give, in float64, from its definition.
//!
//! Written from the formulas alone, with the real functions, and obvious
//! rather than fast. It shares nothing with the kernels.

/// A quaternion, xyzw.
pub(crate) type Quaternion = [f32; 4];

/// `(1 − t)·a + t·b`.
pub(crate) fn lerp(a: f32, b: f32, t: f32) -> f64 {
    let (a, b, t) = (f64::from(a), f64::from(b), f64::from(t));
    (1.0 - t) * a + t * b
}

/// What rounding errors of [`lerp`] are relative to.
pub(crate) fn lerp_scale(a: f32, b: f32, t: f32) -> f64 {
    let (a, b, t) = (f64::from(a), f64::from(b), f64::from(t));
    a.abs() * (1.0 - t).abs() + b.abs() * t.abs()
}

/// `sin((1 − t)θ)/sin θ · a + sin(tθ)/sin θ · b` along the shorter arc.
pub(crate) fn slerp(a: Quaternion, b: Quaternion, t: f32) -> [f64; 4] {
    let (a, b, t) = (a.map(f64::from), b.map(f64::from), f64::from(t));
    let cosine = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    let b = if cosine < 0.0 { b.map(|x| -x) } else { b };
    let angle = cosine.abs().min(1.0).acos();
    // Below this both weights are those of lerp, to twelve digits.
    let (from, to) = if angle < 1e-6 {
        (1.0 - t, t)
    } else {
        let weight = |share: f64| (share * angle).sin() / angle.sin();
        (weight(1.0 - t), weight(t))
    };
    std::array::from_fn(|k| from * a[k] + to * b[k])
}

/// `(1 − t)a + tb` along the shorter arc, of length 1.
pub(crate) fn nlerp(a: Quaternion, b: Quaternion, t: f32) -> [f64; 4] {
    let (a, b, t) = (a.map(f64::from), b.map(f64::from), f64::from(t));
    let sign = if dot(a, b) < 0.0 { -1.0 } else { 1.0 };
    let sum: [f64; 4] = std::array::from_fn(|k| (1.0 - t) * a[k] + t * sign * b[k]);
    sum.map(|x| x / dot(sum, sum).sqrt())
}

/// The cosine of the angle between two quaternions.
pub(crate) fn cosine(a: Quaternion, b: Quaternion) -> f64 {
    let (a, b) = (a.map(f64::from), b.map(f64::from));
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

fn dot(a: [f64; 4], b: [f64; 4]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// ρ in −8..=7 and θ in 0..=15 of a layer.
fn parts(layer: u8) -> (f64, f64) {
    (f64::from(layer >> 4) - 8.0, f64::from(layer & 15))
}

/// (∂m/∂ρ, ∂m/∂θ) of m(ρ) = 2^(ρ/4), zeros at null; rounded once.
#[expect(
    clippy::cast_possible_truncation,
    reason = "rounding to the results' type"
)]
pub(crate) fn gradient(layer: u8) -> [f32; 2] {
    let (rho, _) = parts(layer);
    if rho == -8.0 {
        return [0.0, 0.0];
    }
    [(2_f64.ln() / 4.0 * (rho / 4.0).exp2()) as f32, 0.0]
}

/// The point of a cubic Bézier curve, by de Casteljau's construction.
pub(crate) fn bezier(points: [f32; 4], t: f32) -> f64 {
    let t = f64::from(t);
    let mut points = points.map(f64::from);
    for level in (1..4).rev() {
        for k in 0..level {
            points[k] = (1.0 - t) * points[k] + t * points[k + 1];
        }
    }
    points[0]
}

/// What rounding errors of [`bezier`] are relative to: Σ |w||p|.
pub(crate) fn bezier_scale(points: [f32; 4], t: f32) -> f64 {
    let (t, [a, b, c, d]) = (f64::from(t), points.map(|p| f64::from(p).abs()));
    let (near, far) = ((1.0 - t).abs(), t.abs());
    near.powi(3) * a + 3.0 * near.powi(2) * far * b + 3.0 * near * far.powi(2) * c + far.powi(3) * d
}

/// A layer between two layers, the phase straight from θa to θb.
pub(crate) fn layer_lerp(a: u8, b: u8, t: f32) -> u8 {
    let (_, theta_a) = parts(a);
    let (_, theta_b) = parts(b);
    layer(a, b, t, theta_b - theta_a)
}

/// A layer between two layers, the phase along the shorter arc.
pub(crate) fn layer_slerp(a: u8, b: u8, t: f32) -> u8 {
    let (_, theta_a) = parts(a);
    let (_, theta_b) = parts(b);
    layer(a, b, t, shorter(theta_b - theta_a))
}

/// A layer on a curve of four: Bernstein's polynomials for ρ, de Casteljau's
/// construction along the shorter arcs for θ. Every number here has at most 52
/// binary digits, so this is exact until it rounds.
#[expect(
    clippy::cast_possible_truncation,
    reason = "both are whole numbers of 0 to 15"
)]
pub(crate) fn layer_bezier(points: [u8; 4], t: f32) -> u8 {
    let t = fraction(t);
    let s = 1.0 - t;
    let weights = [s * s * s, 3.0 * s * s * t, 3.0 * s * t * t, t * t * t];
    let rho: f64 = (0..4).map(|k| weights[k] * f64::from(points[k] >> 4)).sum();
    let mut theta = points.map(|layer| f64::from(layer & 15));
    for level in (1..4).rev() {
        for k in 0..level {
            let arc = shorter(theta[k + 1] - theta[k]);
            theta[k] = (theta[k] + arc * t).rem_euclid(16.0);
        }
    }
    let theta = theta[0].round_ties_even().rem_euclid(16.0);
    (rho.round_ties_even() as u8) << 4 | theta as u8
}

/// The t of step `step` of `steps`: the fraction itself, rounded once.
#[expect(clippy::cast_possible_truncation, reason = "17 binary digits")]
pub(crate) fn step(step: usize, steps: usize) -> f32 {
    let exact = step as f64 / (steps as f64 - 1.0);
    ((exact * 65536.0).round_ties_even() / 65536.0) as f32
}

/// m·e^(iπθ/8), 0 at null.
fn point(layer: u8) -> [f64; 2] {
    let (_, theta) = parts(layer);
    let m = magnitude(layer);
    let turn = std::f64::consts::PI * theta / 8.0;
    [m * turn.cos(), m * turn.sin()]
}

/// 2^(ρ/4), 0 at null.
pub(crate) fn magnitude(layer: u8) -> f64 {
    let (rho, _) = parts(layer);
    if rho == -8.0 { 0.0 } else { (rho / 4.0).exp2() }
}

/// Σ |z_a − z_b|.
pub(crate) fn distance(a: [u8; 16], b: [u8; 16]) -> f64 {
    let apart = |(a, b)| {
        let ([ax, ay], [bx, by]) = (point(a), point(b));
        (ax - bx).hypot(ay - by)
    };
    a.into_iter().zip(b).map(apart).sum()
}

/// Σ √(Δρ² + Δθ²).
pub(crate) fn geodesic_distance(a: [u8; 16], b: [u8; 16]) -> f64 {
    let apart = |(a, b)| {
        let ((rho_a, theta_a), (rho_b, theta_b)) = (parts(a), parts(b));
        (rho_a - rho_b).hypot(shorter(theta_a - theta_b))
    };
    a.into_iter().zip(b).map(apart).sum()
}

/// ρ − rate·∂m/∂ρ, rounded and clamped; null and the phase stay.
#[expect(clippy::cast_possible_truncation, reason = "clamped to 0 to 15")]
pub(crate) fn layer_descend(layer: u8, rate: f32) -> u8 {
    let (rho, _) = parts(layer);
    let slope = 2_f64.ln() / 4.0 * magnitude(layer);
    let moved = (rho - f64::from(rate) * slope).round_ties_even();
    ((moved.clamp(-8.0, 7.0) + 8.0) as u8) << 4 | layer & 15
}

/// A difference of phases the shorter way around.
fn shorter(arc: f64) -> f64 {
    match arc {
        arc if arc > 8.0 => arc - 16.0,
        arc if arc < -8.0 => arc + 16.0,
        arc => arc,
    }
}

/// t as states take it.
fn fraction(t: f32) -> f64 {
    // Exact in float64: a few small integers and sixteen binary digits.
    (f64::from(t).clamp(0.0, 1.0) * 65536.0).round_ties_even() / 65536.0
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "both are whole numbers of 0 to 15"
)]
fn layer(a: u8, b: u8, t: f32, arc: f64) -> u8 {
    let t = fraction(t);
    let (rho_a, theta_a) = parts(a);
    let (rho_b, _) = parts(b);
    let rho = (rho_a + (rho_b - rho_a) * t).round_ties_even();
    let theta = (theta_a + arc * t).round_ties_even().rem_euclid(16.0);
    let rho = rho.clamp(-8.0, 7.0) + 8.0;
    (rho as u8) << 4 | theta as u8
}
