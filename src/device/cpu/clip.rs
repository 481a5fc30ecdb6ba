//! Clips at times of the calls' own: the twin of `clip.wgsl`.

use super::Memory;
use super::kernels::slerp::slerp_one;
use crate::kernel::sampling::{self, WEIGHTS, WRAPS};
use crate::plan::{Dispatch, Operand, Slot};

/// A clip's header, and its lanes behind it.
const CLIP: usize = 4;
const LANE: usize = 8;

/// A call's header, and its layers behind it.
const HEADER: usize = sampling::HEADER as usize;
const LAYER: usize = sampling::LAYER as usize;

const LOOP: u32 = 1;
const PING_PONG: u32 = 2;

/// A lane's flags.
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
    (memory, slots): (&Memory<'_>, &[Vec<u32>]),
    output: &mut [u32],
) {
    let inputs = memory.words(Slot::INPUTS, slots);
    let store = match work.operands.get(1) {
        Some(Operand::Rows { slot, .. }) => memory.words(*slot, slots),
        Some(Operand::Scalar) | None => &[],
    };
    for segment in &work.segments {
        let [rows, header, ..] = segment.operands;
        let call = Call {
            store,
            header: &inputs[header as usize..],
            rows: &inputs[rows as usize..],
        };
        call.sample(
            segment.rows as usize,
            &mut output[segment.result as usize..],
        );
    }
}

/// One call.
struct Call<'a> {
    store: &'a [u32],
    header: &'a [u32],
    rows: &'a [u32],
}

impl Call<'_> {
    /// Computes so many lanes.
    fn sample(&self, threads: usize, output: &mut [u32]) {
        let [lanes, layers, target, width] = [0, 1, 2, 3].map(|k| self.header[k] as usize);
        let flags = self.header[1];
        let layers = layers & 0xffff;
        let more = usize::from(flags & WEIGHTS != 0) + usize::from(flags & WRAPS != 0);
        let row_words = layers * (1 + more);
        let first = self.header[HEADER] as usize + CLIP;
        for thread in 0..threads {
            let (row, lane) = (thread / lanes, thread % lanes);
            let place = &self.store[first + lane * LANE..][..LANE];
            let row_fields = &self.rows[row * row_words..][..row_words];
            let blended = self.blend(lane, place[4], (row_fields, layers));
            let to = target + row * width + (place[4] >> 8) as usize;
            let floats = place[6] as usize;
            for (out, float) in output[to..to + floats].iter_mut().zip(blended) {
                *out = float.to_bits();
            }
        }
    }

    /// The floats of a lane, of all layers.
    fn blend(&self, lane: usize, flags: u32, (fields, layers): (&[u32], usize)) -> Lane {
        let mut mean = Mean::default();
        let mut blended = None;
        for k in 0..layers {
            let layer = &self.header[HEADER + LAYER * k..][..LAYER];
            let amount = match self.header[1] & WEIGHTS {
                0 => layer[3],
                _ => fields[layers + k],
            };
            let amount = f32::from_bits(amount);
            let wrap = match self.header[1] & WRAPS {
                0 => layer[1],
                _ => fields[fields.len() - layers + k],
            };
            let is_added = layer[2] != 0;
            if is_added && blended.is_none() {
                blended = Some(mean.taken(layers, flags));
            }
            if amount <= 0.0 {
                continue;
            }
            let clip = Clip {
                words: &self.store[layer[0] as usize..],
            };
            let t = fold(f32::from_bits(fields[k]), clip.number(0), wrap);
            let value = clip.sample(lane, t);
            match &mut blended {
                None => mean.add(value, amount, flags),
                Some(blended) => *blended = added(*blended, value, amount, flags),
            }
        }
        blended.unwrap_or_else(|| mean.taken(layers, flags))
    }
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

    fn taken(&self, layers: usize, flags: u32) -> Lane {
        if flags & QUATERNION != 0 && (layers > 1 || self.total == 0.0) {
            unit(self.sum)
        } else if self.total != 0.0 && self.total != 1.0 {
            self.sum.map(|x| x / self.total)
        } else {
            self.sum
        }
    }
}

/// A layer on top of others.
fn added(blended: Lane, value: Lane, amount: f32, flags: u32) -> Lane {
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
    words: &'a [u32],
}

impl Clip<'_> {
    fn number(&self, at: usize) -> f32 {
        f32::from_bits(self.words[at])
    }

    fn sample(&self, lane: usize, t: f32) -> Lane {
        let lane = &self.words[CLIP + lane * LANE..][..LANE];
        let [times, count, values, stride, flags, easing, floats, width] =
            std::array::from_fn(|k| lane[k] as usize);
        let flags = u32::try_from(flags).unwrap_or(0);
        let mode = flags & INTERPOLATION;
        let next =
            self.words[times..times + count].partition_point(|key| f32::from_bits(*key) <= t);
        let key = next.max(1) - 1;
        let first = values + key * stride + if mode == CUBIC { width } else { 0 };
        let term = |k: usize| -> Lane {
            std::array::from_fn(|j| match j < floats {
                true => self.number(first + k * width + j),
                false => 0.0,
            })
        };
        if next == 0 || next == count || mode == STEP {
            return term(0);
        }
        let start = self.number(times + key);
        let span = self.number(times + next) - start;
        let mut u = (t - start) / span;
        if flags & EASING != 0 {
            u = ease(u, flags, std::array::from_fn(|k| self.number(easing + k)));
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
            for (k, weight) in weights.into_iter().enumerate() {
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

/// The time within a clip of this duration.
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
    // The quotient was rounded.
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
