//! The functions of expressions, as in `shaders/lib/functions.wgsl`.

use super::math::{
    FAR, angle, exponential, far_wave, hyperbolic_tangent, logarithm, modulo, power, wave,
};
use crate::kernel::{BinaryFn, UnaryFn};

/// Values that a longer function is applied to at once. There are too many for the compiler to
/// unroll the loop.
const LANES: usize = 64;

type Lanes = [f32; LANES];

/// Applies a function to each value.
pub(super) fn unary(function: UnaryFn, values: &[f32], to: &mut [f32]) {
    match function {
        UnaryFn::Relu => each(values, to, relu),
        UnaryFn::Sigmoid => by_lanes(values, to, |x| apply(x, sigmoid)),
        UnaryFn::Tanh => by_lanes(values, to, |x| apply(x, hyperbolic_tangent)),
        UnaryFn::Silu => by_lanes(values, to, |x| apply(x, silu)),
        UnaryFn::Gelu => by_lanes(values, to, |x| apply(x, gelu)),
        UnaryFn::GeluTanh => by_lanes(values, to, |x| apply(x, gelu_tanh)),
        UnaryFn::Exp => by_lanes(values, to, |x| apply(x, exponential)),
        UnaryFn::Log => by_lanes(values, to, |x| apply(x, logarithm)),
        UnaryFn::Sqrt => each(values, to, f32::sqrt),
        UnaryFn::Abs => each(values, to, f32::abs),
        UnaryFn::Neg => each(values, to, |x| -x),
        UnaryFn::Sin => by_lanes(values, to, |x| waves(x, 0)),
        UnaryFn::Cos => by_lanes(values, to, |x| waves(x, 1)),
        UnaryFn::Floor => by_lanes(values, to, |x| apply(x, f32::floor)),
        UnaryFn::Ceil => by_lanes(values, to, |x| apply(x, f32::ceil)),
        UnaryFn::Round => by_lanes(values, to, |x| apply(x, f32::round_ties_even)),
        UnaryFn::Sign => by_lanes(values, to, |x| apply(x, sign)),
        UnaryFn::Recip => each(values, to, f32::recip),
        UnaryFn::Tan => by_lanes(values, to, tangents),
        UnaryFn::Stopped => each(values, to, stopped),
        UnaryFn::Copy => to.copy_from_slice(values),
    }
}

/// Applies a function to each pair of values.
pub(super) fn binary(function: BinaryFn, values: [&[f32]; 2], to: &mut [f32]) {
    match function {
        BinaryFn::Add => pairs(values, to, |a, b| a + b),
        BinaryFn::Sub => pairs(values, to, |a, b| a - b),
        BinaryFn::Mul => pairs(values, to, |a, b| a * b),
        BinaryFn::Div => pairs(values, to, |a, b| a / b),
        BinaryFn::Minimum => pairs(values, to, |a, b| or_nan(a, b, if a < b { a } else { b })),
        BinaryFn::Maximum => pairs(values, to, |a, b| or_nan(a, b, if a > b { a } else { b })),
        BinaryFn::Pow => by_call(values, to, power),
        BinaryFn::Mod => by_call(values, to, modulo),
        BinaryFn::Atan2 => by_call(values, to, angle),
        BinaryFn::Less => compare(values, to, [1.0, 0.0, 0.0, 0.0]),
        BinaryFn::LessEqual => compare(values, to, [1.0, 1.0, 0.0, 0.0]),
        BinaryFn::Greater => compare(values, to, [0.0, 0.0, 1.0, 0.0]),
        BinaryFn::GreaterEqual => compare(values, to, [0.0, 1.0, 1.0, 0.0]),
        BinaryFn::Equal => compare(values, to, [0.0, 1.0, 0.0, 0.0]),
        BinaryFn::NotEqual => compare(values, to, [1.0, 0.0, 1.0, 1.0]),
        BinaryFn::Same => pairs(values, to, same),
    }
}

/// Takes each second value where the first one, a condition, is true, and each third elsewhere.
pub(super) fn choose([conditions, a, b]: [&[f32]; 3], to: &mut [f32]) {
    for (((to, condition), a), b) in to.iter_mut().zip(conditions).zip(a).zip(b) {
        *to = if *condition == 0.0 { *b } else { *a };
    }
}

/// The one loop of all comparisons, by what these give where the first value is below the second,
/// where both are equal, where the first is above, and where either is NaN.
fn compare(values: [&[f32]; 2], to: &mut [f32], [below, same, above, apart]: [f32; 4]) {
    pairs(values, to, |a, b| {
        let ordered = if a > b { above } else { apart };
        let ordered = if a == b { same } else { ordered };
        if a < b { below } else { ordered }
    });
}

fn each(values: &[f32], to: &mut [f32], function: impl Fn(f32) -> f32) {
    for (to, x) in to.iter_mut().zip(values) {
        *to = function(*x);
    }
}

/// The one loop of all longer functions. The functions themselves compute vectors: a loop for
/// each of them, with another one for the last values, would cost the package more bytes.
fn by_lanes(values: &[f32], to: &mut [f32], function: fn(&mut Lanes)) {
    to.copy_from_slice(&values[..to.len()]);
    let (whole, rest) = to.as_chunks_mut::<LANES>();
    for lanes in whole {
        function(lanes);
    }
    if !rest.is_empty() {
        let mut lanes = [0.0; LANES];
        lanes[..rest.len()].copy_from_slice(rest);
        function(&mut lanes);
        rest.copy_from_slice(&lanes[..rest.len()]);
    }
}

fn apply(lanes: &mut Lanes, function: impl Fn(f32) -> f32) {
    for x in lanes {
        *x = function(*x);
    }
}

/// Sines with some quarters of a turn more. A value gives the same bits beside any others. Not
/// inlined, because sines, cosines and tangents share this code.
#[inline(never)]
fn waves(lanes: &mut Lanes, quarters: i32) {
    let is_far = |x: f32| x.abs() > FAR;
    if !lanes.iter().any(|x| is_far(*x)) {
        return apply(lanes, |x| wave(x, quarters));
    }
    for x in lanes {
        let own = if is_far(*x) { far_wave } else { wave };
        *x = own(*x, quarters);
    }
}

fn tangents(lanes: &mut Lanes) {
    let mut cosines = *lanes;
    waves(lanes, 0);
    waves(&mut cosines, 1);
    for (x, cosine) in lanes.iter_mut().zip(cosines) {
        *x /= cosine;
    }
}

fn by_call(values: [&[f32]; 2], to: &mut [f32], function: fn(f32, f32) -> f32) {
    pairs(values, to, function);
}

fn pairs([a, b]: [&[f32]; 2], to: &mut [f32], function: impl Fn(f32, f32) -> f32) {
    for ((to, a), b) in to.iter_mut().zip(a).zip(b) {
        *to = function(*a, *b);
    }
}

fn relu(x: f32) -> f32 {
    if x.to_bits().wrapping_sub(0x8000_0000) <= 0x7f80_0000 {
        0.0
    } else {
        x
    }
}

/// The value that was chosen of `a` and `b`, or the one that is NaN.
fn or_nan(a: f32, b: f32, chosen: f32) -> f32 {
    let chosen = if b.is_nan() { b } else { chosen };
    if a.is_nan() { a } else { chosen }
}

fn same(a: f32, b: f32) -> f32 {
    if a == b || a.is_nan() && b.is_nan() {
        1.0
    } else {
        0.0
    }
}

fn stopped(x: f32) -> f32 {
    if x.to_bits() == UnaryFn::STOPPED {
        1.0
    } else {
        0.0
    }
}

fn sign(x: f32) -> f32 {
    let signed = if x < 0.0 { -1.0 } else { x };
    if x > 0.0 { 1.0 } else { signed }
}

fn sigmoid(x: f32) -> f32 {
    let power = exponential(-x.abs());
    (if x >= 0.0 { 1.0 } else { power }) / (1.0 + power)
}

fn silu(x: f32) -> f32 {
    if x < -104.0 { 0.0 } else { x * sigmoid(x) }
}

fn gelu(x: f32) -> f32 {
    const ERFC: [f32; 10] = [
        -1.265_512_2,
        1.000_023_7,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_204,
        1.488_515_9,
        -0.822_152_2,
        0.170_872_77,
    ];
    let near = x.clamp(-14.0, 14.0);
    let z = near.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * z);
    let exponent = ERFC.iter().rev().fold(0.0, |sum, factor| factor + t * sum);
    let tail = 0.5 * t * exponential(exponent - z * z);
    let value = near * if x >= 0.0 { 1.0 - tail } else { tail };
    let value = if x < -14.0 { 0.0 } else { value };
    if x > 14.0 { x } else { value }
}

fn gelu_tanh(x: f32) -> f32 {
    let c = x.clamp(-14.0, 14.0);
    if x < -14.0 {
        return 0.0;
    }
    x * sigmoid(1.595_769 * (c + 0.044_715 * c * c * c))
}
