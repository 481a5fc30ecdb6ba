//! States between states, in integers: the twins of `state_interpolate.wgsl`,
//! `state_sequence.wgsl` and `state_bezier.wgsl`, equal to them to the bit.

use super::operands::Operands;
use crate::kernel::Settings;

/// The mode that takes the shorter arc.
const SLERP: u32 = 1;

pub(super) fn interpolate(settings: &Settings, [a, b, t, ..]: &Operands<'_>, output: &mut [u8]) {
    let (a, b) = (a.layers(), b.layers());
    let longest = longest(settings);
    for (i, out) in output.iter_mut().enumerate() {
        *out = layer(a[i], b[i], i64::from(t.word(i / 16)), longest);
    }
}

pub(super) fn sequence(settings: &Settings, [a, b, ..]: &Operands<'_>, output: &mut [u8]) {
    let ((a, _), (b, _)) = (a.layers().as_chunks::<16>(), b.layers().as_chunks::<16>());
    let longest = longest(settings);
    let steps = settings.width as usize;
    let last = i64::from(settings.width) - 1;
    let (results, _) = output.as_chunks_mut::<16>();
    for (row, results) in results.chunks_exact_mut(steps).enumerate() {
        for (step, result) in (0..).zip(results) {
            // No value is halfway between two: that would take a `last` of 2^17.
            let t = (2 * (step << 16) + last) / (2 * last);
            *result = std::array::from_fn(|k| layer(a[row][k], b[row][k], t, longest));
        }
    }
}

/// The longest arc that is taken; where it is longer, the phase goes the other way around.
fn longest(settings: &Settings) -> i64 {
    if settings.mode == SLERP { 8 } else { 15 }
}

fn layer(from: u8, to: u8, t: i64, longest: i64) -> u8 {
    let (rho_from, rho_to) = (i64::from(from >> 4), i64::from(to >> 4));
    let rho = advance(rho_from, rho_to - rho_from, t);
    let theta = i64::from(from & 15);
    let arc = match i64::from(to & 15) - theta {
        arc if arc > longest => arc - 16,
        arc if arc < -longest => arc + 16,
        arc => arc,
    };
    pack(rho, advance(theta, arc, t))
}

fn pack(rho: i64, theta: i64) -> u8 {
    u8::try_from(rho << 4 | theta.rem_euclid(16))
        .expect("rho lies between two nibbles, theta is modulo 16")
}

/// `from + step·t`, t in 16.16, rounded half to even.
fn advance(from: i64, step: i64, t: i64) -> i64 {
    rounded((from << 16) + step * t, 16)
}

/// A number with `bits` bits below the point, rounded half to even.
fn rounded(exact: i64, bits: u32) -> i64 {
    let whole = exact >> bits;
    let rest = exact - (whole << bits);
    let half = 1 << (bits - 1);
    whole + i64::from(rest > half || (rest == half && whole & 1 == 1))
}

pub(super) fn curve([p0, p1, p2, p3, t, ..]: &Operands<'_>, output: &mut [u8]) {
    let points = [p0, p1, p2, p3].map(|points| points.layers());
    for (i, out) in output.iter_mut().enumerate() {
        let t = i64::from(t.word(i / 16));
        let rho = de_casteljau(points.map(|layers| i64::from(layers[i] >> 4)), t, Way::Line);
        let theta = points.map(|layers| i64::from(layers[i] & 15));
        *out = pack(rho, de_casteljau(theta, t, Way::ShorterArc));
    }
}

/// How a number is changed to another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Line,
    ShorterArc,
}

/// De Casteljau's construction. Each of its three levels has 16 more bits below the point, so
/// nothing is rounded before the end.
fn de_casteljau(points: [i64; 4], t: i64, way: Way) -> i64 {
    let mut points = points.map(|point| point << 48);
    for level in (1..4).rev() {
        for k in 0..level {
            points[k] = between(points[k], points[k + 1], t, way);
        }
    }
    rounded(points[0], 48)
}

fn between(from: i64, to: i64, t: i64, way: Way) -> i64 {
    const HALF_TURN: i64 = 8 << 48;
    const TURN: i64 = 16 << 48;
    if way == Way::Line {
        return from + ((to - from) >> 16) * t;
    }
    let arc = match to - from {
        arc if arc > HALF_TURN => arc - TURN,
        arc if arc < -HALF_TURN => arc + TURN,
        arc => arc,
    };
    (from + (arc >> 16) * t).rem_euclid(TURN)
}
