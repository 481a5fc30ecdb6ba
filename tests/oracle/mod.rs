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
    let arc = match theta_b - theta_a {
        arc if arc > 8.0 => arc - 16.0,
        arc if arc < -8.0 => arc + 16.0,
        arc => arc,
    };
    layer(a, b, t, arc)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "both are whole numbers of 0 to 15"
)]
fn layer(a: u8, b: u8, t: f32, arc: f64) -> u8 {
    // Exact in float64: a few small integers and sixteen binary digits.
    let t = (f64::from(t).clamp(0.0, 1.0) * 65536.0).round_ties_even() / 65536.0;
    let (rho_a, theta_a) = parts(a);
    let (rho_b, _) = parts(b);
    let rho = (rho_a + (rho_b - rho_a) * t).round_ties_even();
    let theta = (theta_a + arc * t).round_ties_even().rem_euclid(16.0);
    let rho = rho.clamp(-8.0, 7.0) + 8.0;
    (rho as u8) << 4 | theta as u8
}
