//! A number in float64 with how far off a device may be, and what functions make of
//! both: the bounds are those that `kernel::generated` states.

use framebatch::graph::{BinaryFn, UnaryFn};

/// Half the distance of floats at 1.
pub(crate) const U: f64 = 1.0 / 16_777_216.0;
/// What sines and cosines may be off, for every finite argument.
const WAVE: f64 = 4.0 * U;
/// Below this a device may take a float as zero.
const SMALLEST: f64 = 1.2e-38;

/// A number and how far off a device may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Q {
    pub(crate) v: f64,
    pub(crate) e: f64,
}

impl Q {
    pub(crate) fn exact(v: f64) -> Q {
        Q { v, e: 0.0 }
    }

    pub(crate) fn new(v: f64, propagated: f64, own: f64) -> Q {
        let e = propagated + own + SMALLEST;
        // Beyond the floats, or unknown: anything goes.
        if !v.is_finite() || !e.is_finite() || v.abs() + e > f64::from(f32::MAX) {
            return Q {
                v,
                e: f64::INFINITY,
            };
        }
        Q { v, e }
    }

    pub(crate) fn add(self, b: Q) -> Q {
        let v = self.v + b.v;
        Q::new(v, self.e + b.e, U * (v.abs() + self.e + b.e))
    }

    pub(crate) fn neg(self) -> Q {
        Q { v: -self.v, ..self }
    }

    pub(crate) fn mul(self, b: Q) -> Q {
        let v = self.v * b.v;
        let e = self.v.abs() * b.e + b.v.abs() * self.e + self.e * b.e;
        Q::new(v, e, U * (v.abs() + e))
    }

    pub(crate) fn div(self, b: Q) -> Q {
        let v = self.v / b.v;
        let low = b.v.abs() - b.e;
        if low <= 0.0 {
            return Q::new(v, f64::INFINITY, 0.0);
        }
        let e = (self.e + v.abs() * b.e) / low;
        Q::new(v, e, 5.0 * U * (v.abs() + e))
    }

    /// A function that grows or falls all the way between the ends.
    fn monotone(self, f: impl Fn(f64) -> f64, own: impl Fn(f64) -> f64) -> Q {
        if !self.e.is_finite() {
            return self; // A function of an unknown value is unknown.
        }
        let v = f(self.v);
        let (low, high) = (f(self.v - self.e), f(self.v + self.e));
        let e = if low.is_nan() {
            f64::INFINITY // Beyond where it is defined.
        } else {
            (low - v).abs().max((high - v).abs())
        };
        Q::new(v, e, own(v.abs() + e))
    }

    pub(crate) fn exp(self) -> Q {
        let factor = 6.0 + 4.0 * (self.v.abs() + self.e);
        self.monotone(f64::exp, |v| factor * U * v)
    }

    pub(crate) fn sqrt(self) -> Q {
        self.monotone(f64::sqrt, |v| 10.0 * U * v)
    }

    pub(crate) fn log(self) -> Q {
        self.monotone(f64::ln, |v| (6.0 * U * v).max(2_f64.powi(-21)))
    }

    pub(crate) fn unary(self, function: UnaryFn) -> Q {
        let x = self.v;
        let size = x.abs() + self.e;
        // The steepest of these has a slope of 1.13.
        // Their factor of x may be taken as zero before x is multiplied.
        let gentle = |v: f64, own: f64| Q::new(v, 1.13 * self.e, own + SMALLEST * size);
        match function {
            UnaryFn::Relu => self.monotone(|x| x.max(0.0), |_| 0.0),
            UnaryFn::Sigmoid => self.monotone(sigmoid, |v| (16.0 + 4.0 * size) * U * v),
            UnaryFn::Tanh => self.monotone(f64::tanh, |v| 24.0 * U * v),
            UnaryFn::Silu => {
                let v = x * sigmoid(x);
                gentle(v, (16.0 + 4.0 * size) * U * (v.abs() + 1.13 * self.e))
            }
            UnaryFn::Gelu => {
                let v = x * normal(x);
                let own = (32.0 + 8.0 * size * size) * U * (v.abs() + 1.13 * self.e);
                gentle(v, own + 4.0 * U * size)
            }
            UnaryFn::GeluTanh => {
                let slope = |x: f64| 1.595_769_121_605_731 * (x + 0.044_715 * x * x * x);
                let v = x * sigmoid(slope(x));
                let own = (32.0 + 16.0 * slope(size).abs()) * U;
                gentle(v, own * (v.abs() + 1.13 * self.e))
            }
            UnaryFn::Exp => self.exp(),
            UnaryFn::Log => self.log(),
            UnaryFn::Sqrt => self.sqrt(),
            UnaryFn::Abs => Q { v: x.abs(), ..self },
            UnaryFn::Neg => self.neg(),
            UnaryFn::Sin => self.wave(f64::sin),
            UnaryFn::Cos => self.wave(f64::cos),
            UnaryFn::Floor => self.monotone(f64::floor, |_| 0.0),
            UnaryFn::Ceil => self.monotone(f64::ceil, |_| 0.0),
            UnaryFn::Round => self.monotone(f64::round_ties_even, |_| 0.0),
            UnaryFn::Sign => self.monotone(sign, |_| 0.0),
            UnaryFn::Recip | UnaryFn::Tan | UnaryFn::Stopped | UnaryFn::Copy => {
                unreachable!("chains refuse functions of formulas")
            }
        }
    }

    pub(crate) fn pow(self, y: Q) -> Q {
        let v = self.v.powf(y.v);
        let low = self.v - self.e;
        if low <= 0.0 {
            // Only whole powers, which are steep; nothing is said of them here.
            return Q::new(v, f64::INFINITY, 0.0);
        }
        let corners =
            [-1.0, 1.0].map(|i| [-1.0, 1.0].map(|j| (self.v + i * self.e).powf(y.v + j * y.e)));
        let far = corners.iter().flatten().map(|corner| (corner - v).abs());
        let e = far.fold(0.0, f64::max);
        let exponent = (y.v.abs() + y.e) * self.v.log2().abs();
        let own = (16.0 + 16.0 * exponent) * U + (y.v.abs() + y.e) * 2_f64.powi(-21);
        Q::new(v, e, own * (v.abs() + e))
    }

    /// A wave's slope is at most 1.
    fn wave(self, f: impl Fn(f64) -> f64) -> Q {
        Q::new(f(self.v), self.e, WAVE)
    }

    /// Between 0 and b: whatever else is not known, this is.
    fn modulo(self, b: Q) -> Q {
        let quotient = (self.v / b.v).floor();
        // The remainder of floats is exact, and has the sign of the first of both.
        let rest = self.v % b.v;
        let is_other = rest != 0.0 && (rest < 0.0) != (b.v < 0.0);
        let v = if is_other { rest + b.v } else { rest };
        let moved = self.e + (quotient.abs() + 1.0) * b.e;
        let is_sure = moved == 0.0 || v.abs() > moved && (b.v.abs() - v.abs()) > moved;
        let e = match is_sure {
            true => moved,
            false => b.v.abs() + b.e,
        };
        let e = if b.v.abs() <= b.e { f64::INFINITY } else { e };
        Q::new(v, e, U * (v.abs() + e))
    }

    /// The angle of the point (b, self).
    fn angle(self, b: Q) -> Q {
        let v = self.v.atan2(b.v);
        let away = self.v.hypot(b.v) - self.e - b.e;
        let is_cut = b.v - b.e <= 0.0 && self.v.abs() <= self.e;
        let e = match away > 0.0 && !is_cut {
            true => (self.e + b.e) / away,
            // The sign of a zero says on which side of the cut it is: devices may ignore that sign,
            // and a zero in four bits has that of its block's scale.
            false if self.e + b.e == 0.0 && !is_cut => 0.0,
            false => f64::INFINITY,
        };
        Q::new(v, e, 16.0 * U * (v.abs() + e))
    }

    /// 1 or 0, unless the values are so near that either may be.
    fn truth(self, b: Q, holds: impl Fn(&f64, &f64) -> bool) -> Q {
        let is_sure = (self.v - b.v).abs() > self.e + b.e || self.e + b.e == 0.0;
        let v = f64::from(u8::from(holds(&self.v, &b.v)));
        Q::new(v, if is_sure { 0.0 } else { 1.0 }, 0.0)
    }

    /// One of two values, by this one as the condition.
    pub(crate) fn choose(self, a: Q, b: Q) -> Q {
        let chosen = if self.v == 0.0 { b } else { a };
        if self.e == 0.0 || self.v.abs() > self.e {
            return chosen;
        }
        Q::new(chosen.v, a.e + b.e + (a.v - b.v).abs(), 0.0)
    }

    pub(crate) fn binary(self, function: BinaryFn, b: Q) -> Q {
        match function {
            BinaryFn::Add => self.add(b),
            BinaryFn::Sub => self.add(b.neg()),
            BinaryFn::Mul => self.mul(b),
            BinaryFn::Div => self.div(b),
            BinaryFn::Minimum => Q::new(self.v.min(b.v), self.e.max(b.e), 0.0),
            BinaryFn::Maximum => Q::new(self.v.max(b.v), self.e.max(b.e), 0.0),
            BinaryFn::Pow => self.pow(b),
            BinaryFn::Mod => self.modulo(b),
            BinaryFn::Atan2 => self.angle(b),
            BinaryFn::Less => self.truth(b, f64::lt),
            BinaryFn::LessEqual => self.truth(b, f64::le),
            BinaryFn::Greater => self.truth(b, f64::gt),
            BinaryFn::GreaterEqual => self.truth(b, f64::ge),
            BinaryFn::Equal | BinaryFn::Same => self.truth(b, f64::eq),
            BinaryFn::NotEqual => self.truth(b, f64::ne),
        }
    }
}

fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The normal distribution, by the series of erf near 0 and the continued
/// fraction of erfc elsewhere.
fn normal(x: f64) -> f64 {
    let z = x.abs() / std::f64::consts::SQRT_2;
    let tail = if z < 2.0 {
        let mut term = z;
        let mut sum = z;
        for n in 1..60 {
            let n = f64::from(n);
            term *= -z * z / n;
            sum += term / (2.0 * n + 1.0);
        }
        0.5 - sum / std::f64::consts::PI.sqrt()
    } else {
        let mut fraction = z;
        for k in (1..80).rev() {
            fraction = z + f64::from(k) / 2.0 / fraction;
        }
        (-z * z).exp() / fraction / std::f64::consts::PI.sqrt() / 2.0
    };
    if x < 0.0 { tail } else { 1.0 - tail }
}
