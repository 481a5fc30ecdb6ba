//! The calls on floats and on states, as methods of the handle.
//!
//! Arguments are checked in `request`; nothing is computed here.

use super::call::Call;
use super::gpu::Gpu;
use super::parameter::Parameter;
use super::request;
use crate::graph::{Measure, Mode};
use crate::ops::{Field, State};

impl Gpu {
    /// Interpolates linearly: `(1 − t)·a + t·b`, each float by itself. Exact where `t` is 0
    /// or 1, and elsewhere within 4 ulp of its terms.
    ///
    /// `a` and `b` have the same length, and the result has it too. `t` is one number for
    /// all, or one for each float; it is not clamped.
    ///
    /// # Errors
    ///
    /// Out of the call comes [`InvalidInput`] where lengths do not fit or `t` is NaN, and
    /// what may befall any call: `TooLarge`, `QueueFull`, `Superseded`, `DeviceLost`,
    /// `OutOfMemory`, `Shader` and `Disposed`, each of [`Error`](crate::Error).
    ///
    /// [`InvalidInput`]: crate::Error::InvalidInput
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let halfway = gpu.gpu().lerp(&[0.0, 1.0], &[1.0, 3.0], 0.5); // To await, or:
    /// assert_eq!(halfway.wait()?, [0.5, 2.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn lerp<'a>(&self, a: &[f32], b: &[f32], t: impl Into<Parameter<'a>>) -> Call<f32> {
        self.lerp_items(a, b, t, 1)
    }

    /// [`Gpu::lerp`] for items of `width` floats: `t` is one number for all, or one for each item.
    /// Results are as exact.
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::lerp`], and `InvalidInput` for a `width` of 0 or one that
    /// the length is not a multiple of.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let (from, to) = ([0.0, 0.0, 8.0, 8.0], [2.0, 4.0, 9.0, 9.0]);
    /// let t = [0.5, 1.0]; // One for each pair.
    /// assert_eq!(gpu.lerp_items(&from, &to, &t, 2)?, [1.0, 2.0, 9.0, 9.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn lerp_items<'a>(
        &self,
        a: &[f32],
        b: &[f32],
        t: impl Into<Parameter<'a>>,
        width: u32,
    ) -> Call<f32> {
        self.shared()
            .submit(request::lerp(a, b, t.into(), width), self.terms())
    }

    /// Interpolates between unit quaternions, four floats (xyzw) each, along the shorter
    /// arc. Each component is within 5·10⁻⁷ for `t` in [0, 1].
    ///
    /// `a` and `b` have the same length, and the result has it too. `t` is one number for
    /// all, or one for each quaternion.
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::lerp`], and `InvalidInput` for a length that is not a
    /// multiple of 4.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let (still, half_turn) = ([0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]);
    /// let quarter_turn = gpu.slerp(&still, &half_turn, 0.5)?;
    /// assert!((quarter_turn[1] - 0.5_f32.sqrt()).abs() < 5e-7);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn slerp<'a>(&self, a: &[f32], b: &[f32], t: impl Into<Parameter<'a>>) -> Call<f32> {
        self.shared()
            .submit(request::slerp(a, b, t.into()), self.terms())
    }

    /// Normalized linear interpolation of unit quaternions, four floats (xyzw) each, on the
    /// chord of the shorter arc: `(1 − t)·a ± t·b` divided by its length, the sign such that
    /// the dot product of both is not negative. t is one number, or one a quaternion. Resolves
    /// to as many floats as `a` has.
    ///
    /// Cheaper than [`slerp`](Gpu::slerp), and the same way; only the speed along the way
    /// differs. Results have length 1, and for t from 0 to 1 each float is within 5e-7 of the
    /// formula; t outside goes on along the chord's line. The sum of unit quaternions is never
    /// zero; where that of others is, as of zeros, the result is (0, 0, 0, 1), no turn.
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::slerp`].
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let (still, half_turn) = ([0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]);
    /// let quarter_turn = gpu.nlerp(&still, &half_turn, 0.5)?;
    /// assert!((quarter_turn[1] - 0.5_f32.sqrt()).abs() < 5e-7);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn nlerp<'a>(&self, a: &[f32], b: &[f32], t: impl Into<Parameter<'a>>) -> Call<f32> {
        self.shared()
            .submit(request::nlerp(a, b, t.into()), self.terms())
    }

    /// Floats on the cubic Bézier curves of four control points, each float by itself.
    /// Exact where `t` is 0 or 1, and elsewhere within 12 · 2⁻²⁴ of the sum of the weighted
    /// points' magnitudes.
    ///
    /// The four slices have the same length, and so has the result. `t` is one number for
    /// all, or one for each float; it is not clamped.
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::lerp`].
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let points: [&[f32]; 4] = [&[0.0, 0.0], &[0.0, 1.0], &[1.0, 1.0], &[1.0, 0.0]];
    /// assert_eq!(gpu.bezier(points, 0.5)?, [0.5, 0.75]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn bezier<'a>(&self, points: [&[f32]; 4], t: impl Into<Parameter<'a>>) -> Call<f32> {
        self.bezier_items(points, t, 1)
    }

    /// [`Gpu::bezier`] for items of `width` floats: `t` is one number for all, or one for each item.
    /// Results are as exact.
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::lerp_items`].
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let points: [&[f32]; 4] = [&[0.0; 4], &[0.0, 4.0, 0.0, 8.0], &[4.0, 4.0, 8.0, 8.0], &[4.0, 0.0, 8.0, 0.0]];
    /// let t = [0.5, 1.0]; // One for each pair.
    /// assert_eq!(gpu.bezier_items(points, &t, 2)?, [2.0, 3.0, 8.0, 0.0]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn bezier_items<'a>(
        &self,
        points: [&[f32]; 4],
        t: impl Into<Parameter<'a>>,
        width: u32,
    ) -> Call<f32> {
        self.shared()
            .submit(request::bezier(points, t.into(), width), self.terms())
    }

    /// The gradient of every layer's magnitude m = 2^(ρ/4): (∂m/∂ρ, ∂m/∂θ), both 0 for a
    /// null layer. Gives 32 floats a state, the same on every device.
    ///
    /// # Errors
    ///
    /// Out of the call comes what may befall any call, as of [`Gpu::lerp`].
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice, State};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let gradients = gpu.compute_gradients(&[State([0x80; 16])])?; // Magnitude 1, phase 0.
    /// assert_eq!(gradients.len(), 32);
    /// assert!((gradients[0] - std::f32::consts::LN_2 / 4.0).abs() < 1e-6);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn compute_gradients(&self, states: &[State]) -> Call<f32> {
        self.shared()
            .submit(Ok(request::gradients(states)), self.terms())
    }

    /// (∂f/∂ρ, ∂f/∂θ) of every layer, f being a field of the caller's: central
    /// differences over 2⁻¹⁰, one-sided at both ends of ρ, circular in θ. Gives 32 floats a
    /// state, within 2⁻¹² of the largest value on the field's way.
    ///
    /// The first call of each field compiles a shader; calls of equal fields merge.
    ///
    /// # Errors
    ///
    /// Out of the call comes what may befall any call, as of [`Gpu::lerp`]. A wrong formula
    /// is refused by [`Field`].
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice, Field, State};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let field = "rho * cos(pi * theta / 8)".parse::<Field>()?;
    /// let slopes = gpu.compute_field_gradients(&[State([0x80; 16])], &field)?;
    /// assert!((slopes[0] - 1.0).abs() < 1e-3);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn compute_field_gradients(&self, states: &[State], field: &Field) -> Call<f32> {
        self.shared()
            .submit(Ok(request::field_gradients(states, field)), self.terms())
    }

    /// States between states: log-magnitude and phase as numbers, or the phase along the
    /// shorter arc, by `mode`; each rounded to the nearest step. Every device gives the same
    /// bytes.
    ///
    /// `a` and `b` have the same length, and the result has it too. `t` is one number for
    /// all, or one for each state, and is clamped to [0, 1].
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::lerp`].
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice, Mode, State};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let (low, high) = ([State([0x80; 16])], [State([0xc4; 16])]);
    /// assert_eq!(gpu.interpolate(&low, &high, 0.5, Mode::Lerp)?, [State([0xa2; 16])]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn interpolate<'a>(
        &self,
        a: &[State],
        b: &[State],
        t: impl Into<Parameter<'a>>,
        mode: Mode,
    ) -> Call<State> {
        self.shared()
            .submit(request::interpolate(a, b, t.into(), mode), self.terms())
    }

    /// All states on the way from each `a` to its `b`, both ends included: step k is what
    /// [`Gpu::interpolate`] gives at t = k / (steps − 1). Gives `steps` states for each of
    /// `a`, one way after the other.
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::lerp`], and `InvalidInput` for fewer than 2 or more than
    /// 65,536 steps.
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice, Mode, State};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let (low, high) = ([State([0x80; 16])], [State([0x84; 16])]);
    /// let way = gpu.sequence(&low, &high, 3, Mode::Lerp)?;
    /// assert_eq!(way, [0x80, 0x82, 0x84].map(|layer| State([layer; 16])));
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn sequence(&self, a: &[State], b: &[State], steps: u32, mode: Mode) -> Call<State> {
        self.shared()
            .submit(request::sequence(a, b, steps, mode), self.terms())
    }

    /// States on the cubic Bézier curves of four control points: De Casteljau's construction
    /// without rounding, phases along the shorter arc at each level, rounded at the end, half
    /// to even. Every device gives the same bytes.
    ///
    /// The four slices have the same length, and so has the result. `t` is one number for
    /// all, or one for each state, and is clamped to [0, 1].
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::lerp`].
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice, State};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let points = [0x80, 0x84, 0x84, 0x88].map(|layer| [State([layer; 16])]);
    /// let points: [&[State]; 4] = [&points[0], &points[1], &points[2], &points[3]];
    /// assert_eq!(gpu.interpolate_bezier(points, 0.5)?, [State([0x84; 16])]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn interpolate_bezier<'a>(
        &self,
        points: [&[State]; 4],
        t: impl Into<Parameter<'a>>,
    ) -> Call<State> {
        self.shared()
            .submit(request::interpolate_bezier(points, t.into()), self.terms())
    }

    /// How far each state of `a` is from that of `b`: Σ |z_a − z_b| over their layers as
    /// complex numbers. One float a pair, within 2⁻¹⁹ of the sum of all magnitudes, and 0
    /// for equal states.
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::lerp`].
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice, State};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let (one, opposite) = ([State([0x80; 16])], [State([0x88; 16])]);
    /// assert_eq!(gpu.distance(&one, &opposite)?, [32.0]); // 2 a layer.
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn distance(&self, a: &[State], b: &[State]) -> Call<f32> {
        self.shared()
            .submit(request::distance(a, b, Measure::Straight), self.terms())
    }

    /// How far each state of `a` is from that of `b`, in steps of log-magnitude and phase: Σ √(Δρ² + Δθ²) over the layers of each
    /// pair. Δθ goes along the shorter arc, and null counts as ρ = −8. One float a pair,
    /// within 2⁻²⁰ of itself; whole distances are exact.
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::lerp`].
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice, State};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let (one, there) = ([State([0x80; 16])], [State([0xb4; 16])]);
    /// assert_eq!(gpu.geodesic_distance(&one, &there)?, [80.0]); // 3 and 4, so 5 a layer.
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn geodesic_distance(&self, a: &[State], b: &[State]) -> Call<f32> {
        self.shared()
            .submit(request::distance(a, b, Measure::Geodesic), self.terms())
    }

    /// States one step down the gradient of the magnitude: ρ − rate·∂m/∂ρ, rounded and
    /// clamped to −8..=7. Null stays null, and the phase as it is. Every device gives the
    /// same bytes.
    ///
    /// `rate` is one number for all, or one for each state, taken in units of 2⁻²²; a
    /// negative one goes up.
    ///
    /// # Errors
    ///
    /// The errors of [`Gpu::lerp`].
    ///
    /// ```
    /// # use framebatch::{Blocking, Config, EngineChoice, State};
    /// # let gpu = Blocking::open(Config { engine: EngineChoice::Cpu, ..Config::default() })?;
    /// let steep = [State([0x83; 16])]; // Slope 0.1733.
    /// assert_eq!(gpu.descend(&steep, 10.0)?, [State([0x63; 16])]);
    /// # Ok::<(), framebatch::Error>(())
    /// ```
    pub fn descend<'a>(&self, states: &[State], rate: impl Into<Parameter<'a>>) -> Call<State> {
        self.shared()
            .submit(request::descend(states, rate.into()), self.terms())
    }
}
