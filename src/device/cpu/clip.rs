//! Samples clips, each call at times of its own: the twin of `clip.wgsl`.

use super::kernels::slerp::slerp_one;
use super::launch_memory::Memory;
use crate::kernel::sampling::{HEADER, LAYER, MOST_LAYERS, WEIGHTS, WRAPS};
use crate::plan::{Dispatch, Operand, Slot};

/// Words of a clip's header, which its lanes follow.
const CLIP: u32 = 4;

/// Words of a lane's record.
const LANE: u32 = 8;

const LOOP: u32 = 1;
const PING_PONG: u32 = 2;

/// The bits of a lane's flags that say how to interpolate, and their values.
const INTERPOLATION: u32 = 3;
const STEP: u32 = 0;
const CUBIC: u32 = 2;
const QUATERNION: u32 = 4;
const EASING: u32 = 24;
const STEPS: u32 = 16;

type Lane = [f32; 4];

/// Samples the clips of every call.
pub(super) fn dispatch(
    work: &Dispatch,
    memory: &Memory<'_>,
    slots: &[Vec<u32>],
    output: &mut [u32],
) {
    let inputs = memory.words(Slot::INPUTS, slots);
    let store = match work.operands.get(1) {
        Some(Operand::Rows { slot, .. }) => memory.words(*slot, slots),
        Some(Operand::Scalar) | None => &[],
    };
    for (segment, entry) in work.segments.iter().zip(work.entries.chunks_exact(2)) {
        let (rows, header) = (entry[0], entry[1]);
        let call = Call {
            store: Words(store),
            header: Words(&inputs[header as usize..]),
            rows: Words(&inputs[rows as usize..]),
        };
        call.sample(segment.rows, &mut output[segment.result as usize..]);
    }
}

/// Words that are read at addresses which come from other words. As on a GPU, addresses wrap,
/// and a word behind the end is some number, so that nothing fails whatever a store holds.
#[derive(Clone, Copy)]
struct Words<'a>(&'a [u32]);

impl<'a> Words<'a> {
    fn at(self, address: u32) -> u32 {
        self.0.get(address as usize).copied().unwrap_or(0)
    }

    fn number(self, address: u32) -> f32 {
        f32::from_bits(self.at(address))
    }

    /// The words from an address on, `count` of them at most.
    fn take(self, address: u32, count: u32) -> &'a [u32] {
        let rest = self.0.get(address as usize..).unwrap_or(&[]);
        &rest[..rest.len().min(count as usize)]
    }

    /// The words from an address on.
    fn from(self, address: u32) -> Words<'a> {
        Words(self.take(address, u32::MAX))
    }
}

/// One call.
struct Call<'a> {
    store: Words<'a>,
    header: Words<'a>,
    rows: Words<'a>,
}

impl Call<'_> {
    /// Computes the lanes of `threads` threads.
    fn sample(&self, threads: u32, output: &mut [u32]) {
        let [lanes, layers, target, width] = std::array::from_fn(|k| self.header.0[k]);
        let (flags, layers) = (layers, (layers & 0xffff).min(MOST_LAYERS));
        let more = u32::from(flags & WEIGHTS != 0) + u32::from(flags & WRAPS != 0);
        let row_words = layers * (1 + more);
        let lanes = lanes.max(1);
        let first = self.header.at(HEADER).wrapping_add(CLIP);
        for thread in 0..threads {
            let (row, lane) = (thread / lanes, thread % lanes);
            let place = self.store.from(first.wrapping_add(lane * LANE));
            let fields = self.rows.from(row.wrapping_mul(row_words));
            let blended = self.blend(lane, place.at(4), Layers { fields, layers });
            let to = target
                .wrapping_add(row.wrapping_mul(width))
                .wrapping_add(place.at(4) >> 8);
            let floats = blended.iter().take(place.at(6) as usize);
            let outputs = output.get_mut(to as usize..).unwrap_or_default();
            for (out, float) in outputs.iter_mut().zip(floats) {
                *out = float.to_bits();
            }
        }
    }

    /// The floats of a lane, blended of all layers.
    fn blend(&self, lane: u32, flags: u32, row: Layers<'_>) -> Lane {
        let Layers { fields, layers } = row;
        let mut mean = Mean::default();
        let mut blended = None;
        let has_weights = self.header.at(1) & WEIGHTS != 0;
        let modes = layers * (1 + u32::from(has_weights));
        for k in 0..layers {
            let layer = self.header.from(HEADER + LAYER * k);
            let amount = match has_weights {
                false => layer.number(3),
                true => fields.number(layers + k),
            };
            let wrap = match self.header.at(1) & WRAPS {
                0 => layer.at(1),
                _ => fields.at(modes + k),
            };
            let is_added = layer.at(2) != 0;
            if is_added && blended.is_none() {
                blended = Some(mean.value(layers, flags));
            }
            if amount <= 0.0 {
                continue;
            }
            let clip = Clip {
                words: self.store.from(layer.at(0)),
            };
            let t = fold(fields.number(k), clip.words.number(0), wrap);
            let value = clip.sample(lane, t);
            match &mut blended {
                None => mean.add(value, amount, flags),
                Some(blended) => *blended = add_layer(*blended, value, amount, flags),
            }
        }
        blended.unwrap_or_else(|| mean.value(layers, flags))
    }
}

/// What a row brings for its layers: a time for each, then a weight and a wrap for each where
/// the call has these.
struct Layers<'a> {
    fields: Words<'a>,
    layers: u32,
}

/// A weighted sum of layers.
#[derive(Default)]
struct Mean {
    sum: Lane,
    total: f32,
}

impl Mean {
    fn add(&mut self, value: Lane, amount: f32, flags: u32) {
        let is_far = flags & QUATERNION != 0 && dot(self.sum, value) < 0.0;
        let signed = if is_far { -amount } else { amount };
        self.sum = zip(self.sum, value, |sum, x| sum + signed * x);
        self.total += amount;
    }

    fn value(&self, layers: u32, flags: u32) -> Lane {
        if flags & QUATERNION != 0 && (layers > 1 || self.total == 0.0) {
            unit(self.sum)
        } else if self.total != 0.0 && self.total != 1.0 {
            self.sum.map(|x| x / self.total)
        } else {
            self.sum
        }
    }
}

/// What a layer on top of others makes of them.
fn add_layer(blended: Lane, value: Lane, amount: f32, flags: u32) -> Lane {
    if flags & QUATERNION == 0 {
        return zip(blended, value, |sum, x| sum + amount * x);
    }
    let turn = if value[3] < 0.0 {
        value.map(|x| -x)
    } else {
        value
    };
    let [x, y, z, w] = turn.map(|x| amount * x);
    product(blended, unit([x, y, z, 1.0 - amount + w]))
}

/// A clip in the store.
struct Clip<'a> {
    words: Words<'a>,
}

impl Clip<'_> {
    fn sample(&self, lane: u32, t: f32) -> Lane {
        let words = self.words;
        let lane = words.from(CLIP.wrapping_add(lane.wrapping_mul(LANE)));
        let [times, count, values, stride, flags, easing, floats, width] =
            std::array::from_fn(|k| lane.0.get(k).copied().unwrap_or(0));
        let mode = flags & INTERPOLATION;
        let keys = words.take(times, count);
        let next = keys.partition_point(|key| f32::from_bits(*key) <= t);
        let is_between = next > 0 && next < keys.len() && mode != STEP;
        #[expect(clippy::cast_possible_truncation, reason = "a store has 2^30 words")]
        let key = next.max(1) as u32 - 1;
        let tangent = if mode == CUBIC { width } else { 0 };
        let first = values
            .wrapping_add(key.wrapping_mul(stride))
            .wrapping_add(tangent);
        let term = |k: u32| -> Lane {
            let at = first.wrapping_add(k.wrapping_mul(width));
            let found = words.take(at, floats);
            std::array::from_fn(|j| found.get(j).map_or(0.0, |word| f32::from_bits(*word)))
        };
        if !is_between {
            return term(0);
        }
        let [start, end] = [next - 1, next].map(|key| f32::from_bits(keys[key]));
        let span = end - start;
        let mut u = (t - start) / span;
        if flags & EASING != 0 {
            let easing = words.from(easing);
            u = ease(u, flags, [0, 1, 2, 3].map(|k| easing.number(k)));
        }
        let is_quaternion = flags & QUATERNION != 0;
        if mode == CUBIC {
            let (uu, uuu) = (u * u, u * u * u);
            let weights = [
                2.0 * uuu - 3.0 * uu + 1.0,
                span * (uuu - 2.0 * uu + u),
                span * (uuu - uu),
                3.0 * uu - 2.0 * uuu,
            ];
            let mut value = [0.0; 4];
            for (k, weight) in (0..).zip(weights) {
                value = zip(value, term(k), |sum, x| sum + weight * x);
            }
            return if is_quaternion { unit(value) } else { value };
        }
        match is_quaternion {
            true => slerp_one(term(0), term(1), u),
            false => zip(term(0), term(1), |a, b| (1.0 - u) * a + u * b),
        }
    }
}

/// A time as a time within a clip of this duration.
fn fold(t: f32, duration: f32, wrap: u32) -> f32 {
    if wrap != LOOP && wrap != PING_PONG {
        return t;
    }
    if duration <= 0.0 {
        return 0.0;
    }
    let period = if wrap == PING_PONG {
        2.0 * duration
    } else {
        duration
    };
    let mut rest = t - period * (t / period).floor();
    // The quotient was rounded, so the rest may lie just outside of the period.
    if rest < 0.0 {
        rest += period;
    }
    if rest >= period {
        rest -= period;
    }
    if rest > duration { period - rest } else { rest }
}

fn ease(u: f32, flags: u32, p: Lane) -> f32 {
    if flags & EASING == STEPS {
        return ((u * p[0]).floor() + p[1]).min(p[2]) / p[2];
    }
    let curve = |first: f32, second: f32| {
        let c = 3.0 * first;
        let b = 3.0 * second - 2.0 * c;
        [1.0 - c - b, b, c]
    };
    let (x, y) = (curve(p[0], p[2]), curve(p[1], p[3]));
    let at = |[a, b, c]: [f32; 3], s: f32| ((a * s + b) * s + c) * s;
    let (mut low, mut high, mut s) = (0.0, 1.0, u);
    for _ in 0..16 {
        let miss = at(x, s) - u;
        if miss < 0.0 {
            low = s;
        } else {
            high = s;
        }
        let next = s - miss / ((3.0 * x[0] * s + 2.0 * x[1]) * s + x[2]);
        s = if next >= low && next <= high {
            next
        } else {
            0.5 * (low + high)
        };
    }
    at(y, s)
}

fn unit(q: Lane) -> Lane {
    let length = dot(q, q).sqrt();
    if length == 0.0 {
        [0.0, 0.0, 0.0, 1.0]
    } else {
        q.map(|x| x / length)
    }
}

fn product([ax, ay, az, aw]: Lane, [bx, by, bz, bw]: Lane) -> Lane {
    [
        aw * bx + bw * ax + (ay * bz - az * by),
        aw * by + bw * ay + (az * bx - ax * bz),
        aw * bz + bw * az + (ax * by - ay * bx),
        aw * bw - (ax * bx + ay * by + az * bz),
    ]
}

fn zip(a: Lane, b: Lane, f: impl Fn(f32, f32) -> f32) -> Lane {
    std::array::from_fn(|k| f(a[k], b[k]))
}

fn dot(a: Lane, b: Lane) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]
}
