//! What places of tokens have to do with attention: biases by distance, and turned queries and keys.
//!
//! Tables of floats, which go to the device with the weights. None of it is computed again by a call.

use super::config::{Config, Rotation, Sight};

/// Kinds of distances between tokens, each with a bias for each head.
pub(super) const BUCKETS: u32 = 32;

/// The kind of the distance from a query to a key: one each for the nearest, and of those further
/// away one for each half of a doubling, up to 128; keys in front of the query and keys behind it
/// apart (Raffel and others, 2020; as transformers has it for MPNet).
fn bucket(distance: i32) -> u32 {
    const EACH: u32 = BUCKETS / 2;
    const NEAR: u32 = EACH / 2;
    let side = if distance > 0 { EACH } else { 0 };
    let far = distance.unsigned_abs();
    let own = match far {
        0..NEAR => far,
        // The whole part of 2 · log2(far / 8), and 8 more.
        _ => (u64::from(far).pow(2).ilog2() + 2).min(EACH - 1),
    };
    side + own
}

/// Lays out a table of a bias for each kind of distance and each head, `[32, heads]`, by heads and
/// distances: `[heads, 2 · max_tokens - 1]`, from the key that is furthest in front of a query on.
pub(super) fn by_distance(config: &Config, table: &[f32]) -> Vec<f32> {
    let heads = config.heads.count as usize;
    let each = |head: usize| {
        distances(config).map(move |distance| table[bucket(distance) as usize * heads + head])
    };
    (0..heads).flat_map(each).collect()
}

/// The distances from queries to keys, from the key that is furthest in front of a query on.
fn distances(config: &Config) -> impl Iterator<Item = i32> {
    let reach = i32::try_from(config.max_tokens).unwrap_or(i32::MAX) - 1;
    -reach..=reach
}

/// Biases that fall with the distance, each head's at a pace of its own. As [`by_distance`] lays them
/// out.
#[expect(clippy::cast_possible_truncation, reason = "a table of 32-bit floats")]
pub(super) fn slopes(config: &Config) -> Vec<f32> {
    let count = config.heads.count;
    // The first heads are as many as a power of two, and the others are every other one of twice as
    // many.
    let even = 1 << count.max(1).ilog2();
    let slope = |head: u32| {
        let (of, number) = match head < even {
            true => (even, head + 1),
            false => (2 * even, 2 * (head - even) + 1),
        };
        // 2 to the power of -8 · number / of.
        (0..number).fold(1.0, |product, _| product * root(1.0 / 256.0, of))
    };
    let each = |head: u32| {
        let slope = slope(head);
        distances(config).map(move |distance| (-slope * f64::from(distance.abs())) as f32)
    };
    (0..count).flat_map(each).collect()
}

/// For each place of a token, the cosines of the angles that queries and keys are turned by, and
/// behind them the sines: `[max_tokens, 1, 2, size / 2]`.
#[expect(clippy::cast_possible_truncation, reason = "a table of 32-bit floats")]
pub(super) fn angles(config: &Config, sight: Sight) -> Vec<f32> {
    let Some(Rotation { theta, scale }) = config.rotation(sight) else {
        return Vec::new();
    };
    let size = config.heads(sight).size;
    let half = (size / 2) as usize;
    let ratio = root(1.0 / theta, size / 2);
    let mut floats = vec![0.0; config.max_tokens as usize * 2 * half];
    let mut pace = scale;
    for at in 0..half {
        let [cosine, sine] = turn(pace);
        // The point of the circle at each place: a turn further than the one before.
        let [mut x, mut y] = [1.0, 0.0];
        for place in floats.chunks_mut(2 * half) {
            place[at] = x as f32;
            place[half + at] = y as f32;
            [x, y] = [x * cosine - y * sine, x * sine + y * cosine];
        }
        pace *= ratio;
    }
    floats
}

/// Cosine and sine of an angle from 0 to 1, by their series. The standard library's take more code
/// than an encoder's whole forward pass.
fn turn(angle: f64) -> [f64; 2] {
    let (mut cosine, mut sine) = (0.0, 0.0);
    let mut term = 1.0;
    // The terms behind these are below 10⁻¹⁷.
    for power in 0..20 {
        let sum = match power % 2 {
            0 => &mut cosine,
            _ => &mut sine,
        };
        *sum += match power % 4 {
            0 | 1 => term,
            _ => -term,
        };
        term *= angle / f64::from(power + 1);
    }
    [cosine, sine]
}

/// The root of this degree of a number above 0 and at most 1, by Newton's method from 1.
pub(super) fn root(of: f64, degree: u32) -> f64 {
    let count = f64::from(degree);
    let mut x = 1.0_f64;
    loop {
        let power = (1..degree).fold(1.0, |power, _| power * x);
        let next = x - (x * power - of) / (count * power);
        // Newton's steps fall from above until the root is reached.
        if next >= x {
            return x;
        }
        x = next;
    }
}
