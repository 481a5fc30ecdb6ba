//! The samplers of glTF 2.0, appendix C, and CSS's easings, in float64.
//!
//! Written as the specifications have them: keys are searched from the front.

use framebatch::clips::{Easing, Interpolation, Jump, Kind, Wrap};

/// A track that owns its numbers.
#[derive(Clone, Debug)]
pub(crate) struct Track {
    pub(crate) times: Vec<f32>,
    pub(crate) values: Vec<f32>,
    pub(crate) width: usize,
    pub(crate) kind: Kind,
    pub(crate) interpolation: Interpolation,
    pub(crate) easing: Easing,
}

impl Track {
    pub(crate) fn borrow(&self) -> framebatch::clips::Track<'_> {
        framebatch::clips::Track {
            times: &self.times,
            values: &self.values,
            kind: self.kind,
            interpolation: self.interpolation,
            easing: self.easing,
        }
    }

    fn floats(&self, from: usize) -> Vec<f64> {
        let floats = self.values[from * self.width..][..self.width].iter();
        floats.map(|float| f64::from(*float)).collect()
    }

    /// The value at a time; `None` where float32 may decide otherwise.
    pub(crate) fn at(&self, t: f64) -> Option<Vec<f64>> {
        let keys: Vec<f64> = self.times.iter().map(|time| f64::from(*time)).collect();
        let last = keys.len() - 1;
        let is_cubic = self.interpolation == Interpolation::CubicSpline;
        let value = |key: usize| match is_cubic {
            true => self.floats(3 * key + 1),
            false => self.floats(key),
        };
        if t < keys[0] {
            return Some(value(0));
        }
        if t >= keys[last] {
            return Some(value(last));
        }
        let next = keys
            .iter()
            .position(|key| *key > t)
            .expect("before the last");
        let key = next - 1;
        let span = keys[next] - keys[key];
        let u = eased(self.easing, (t - keys[key]) / span)?;
        match self.interpolation {
            Interpolation::Step => Some(value(key)),
            Interpolation::Linear if self.kind == Kind::Quaternion => {
                slerp(&value(key), &value(next), u)
            }
            Interpolation::Linear => Some(zip(&value(key), &value(next), |a, b| a + u * (b - a))),
            Interpolation::CubicSpline => {
                let (out_tangent, in_tangent) = (self.floats(3 * key + 2), self.floats(3 * next));
                let (v, w) = (value(key), value(next));
                let (u2, u3) = (u * u, u * u * u);
                let curve: Vec<f64> = (0..self.width)
                    .map(|k| {
                        (2.0 * u3 - 3.0 * u2 + 1.0) * v[k]
                            + span * (u3 - 2.0 * u2 + u) * out_tangent[k]
                            + (-2.0 * u3 + 3.0 * u2) * w[k]
                            + span * (u3 - u2) * in_tangent[k]
                    })
                    .collect();
                match self.kind {
                    Kind::Vector => Some(curve),
                    Kind::Quaternion => normalized(&curve),
                }
            }
        }
    }
}

/// Without a direction where it is short: float32 is of no help there.
fn normalized(q: &[f64]) -> Option<Vec<f64>> {
    let length = dot(q, q).sqrt();
    (length > 0.1).then(|| q.iter().map(|x| x / length).collect())
}

fn slerp(a: &[f64], b: &[f64], u: f64) -> Option<Vec<f64>> {
    let cosine = dot(a, b);
    if cosine.abs() < 1e-6 {
        return None;
    }
    let angle = cosine.abs().min(1.0).acos();
    if angle < 1e-9 {
        return Some(zip(a, b, |a, b| a + u * (cosine.signum() * b - a)));
    }
    let weights = [
        (angle * (1.0 - u)).sin() / angle.sin(),
        cosine.signum() * (angle * u).sin() / angle.sin(),
    ];
    Some(zip(a, b, |a, b| weights[0] * a + weights[1] * b))
}

fn eased(easing: Easing, u: f64) -> Option<f64> {
    match easing {
        Easing::Linear => Some(u),
        Easing::CubicBezier(points) => Some(bezier(points.map(f64::from), u)),
        Easing::Steps(count, jump) => {
            let count = f64::from(count);
            let jumps = match jump {
                Jump::Start | Jump::End => count,
                Jump::None => count - 1.0,
                Jump::Both => count + 1.0,
            };
            let near = (u * count - (u * count).round()).abs();
            // At the key itself both agree.
            if u != 0.0 && near < 1e-5 * count {
                return None;
            }
            let first = f64::from(u8::from(matches!(jump, Jump::Start | Jump::Both)));
            Some((((u * count).floor() + first) / jumps).min(1.0))
        }
    }
}

/// y where x is `u`, by halving.
fn bezier([x1, y1, x2, y2]: [f64; 4], u: f64) -> f64 {
    let at = |p: f64, q: f64, s: f64| {
        let r = 1.0 - s;
        3.0 * r * r * s * p + 3.0 * r * s * s * q + s * s * s
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if at(x1, x2, middle) < u {
            low = middle;
        } else {
            high = middle;
        }
    }
    at(y1, y2, 0.5 * (low + high))
}

/// A time within a clip.
pub(crate) fn folded(t: f64, duration: f64, wrap: Wrap) -> f64 {
    match wrap {
        Wrap::Clamp => t,
        Wrap::Loop => t.rem_euclid(duration),
        Wrap::PingPong => {
            let rest = t.rem_euclid(2.0 * duration);
            rest.min(2.0 * duration - rest)
        }
    }
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn zip(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
}
