//! Random tracks, and times that are awkward for them.

use framebatch::clips::{Easing, Interpolation, Jump, Kind};

use crate::oracle::Track;
use crate::samples::Samples;

impl Samples {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound as u64) as usize
    }

    fn signed(&mut self, scale: f32) -> f32 {
        (self.unit() * 2.0 - 1.0) * scale
    }

    /// Rising keys, of which some are equal.
    fn keys(&mut self) -> Vec<f32> {
        let count = [1, 1, 2, 2, 3, 5, 9, 20][self.below(8)];
        let mut time = self.signed(1.0).max(0.0);
        let mut keys = Vec::new();
        for _ in 0..count {
            keys.push(time);
            if self.below(6) > 0 {
                time += self.unit() + 0.01;
            }
        }
        keys
    }

    /// Curves as steep as CSS's own: rounding counts as much as they are steep.
    pub(crate) fn easing(&mut self) -> Easing {
        let curves = [
            [0.25, 0.1, 0.25, 1.0],
            [0.42, 0.0, 1.0, 1.0],
            [0.0, 0.0, 0.58, 1.0],
            [0.42, 0.0, 0.58, 1.0],
            [
                0.1 + self.unit() * 0.8,
                self.signed(1.5),
                0.1 + self.unit() * 0.8,
                self.signed(1.5),
            ],
        ];
        let jumps = [Jump::Start, Jump::End, Jump::None, Jump::Both];
        match self.below(4) {
            0 => Easing::CubicBezier(curves[self.below(5)]),
            1 => Easing::Steps(2 + self.below(6) as u32, jumps[self.below(4)]),
            _ => Easing::Linear,
        }
    }

    pub(crate) fn track(&mut self) -> Track {
        let kind = [Kind::Vector, Kind::Quaternion][self.below(2)];
        let width = match kind {
            Kind::Vector => [1, 2, 3, 3, 4, 5, 9][self.below(7)],
            Kind::Quaternion => 4,
        };
        self.track_of(kind, width)
    }

    pub(crate) fn track_of(&mut self, kind: Kind, width: usize) -> Track {
        let interpolation = [
            Interpolation::Step,
            Interpolation::Linear,
            Interpolation::CubicSpline,
        ][self.below(3)];
        let times = self.keys();
        let mut values = Vec::new();
        for _ in &times {
            let value: Vec<f32> = match kind {
                Kind::Vector => (0..width).map(|_| self.signed(1.0)).collect(),
                Kind::Quaternion => self.quaternion().to_vec(),
            };
            if interpolation == Interpolation::CubicSpline {
                values.extend((0..width).map(|_| self.signed(2.0)));
                values.extend(value);
                values.extend((0..width).map(|_| self.signed(2.0)));
            } else {
                values.extend(value);
            }
        }
        Track {
            easing: match interpolation {
                Interpolation::Step => Easing::Linear,
                _ => self.easing(),
            },
            times,
            values,
            width,
            kind,
            interpolation,
        }
    }

    /// Times within, at and outside of keys; none that a GPU may take for 0.
    pub(crate) fn times(&mut self, keys: &[f32], count: usize) -> Vec<f32> {
        let (first, last) = (keys[0], keys[keys.len() - 1]);
        (0..count)
            .map(|_| match self.below(8) {
                0 => keys[self.below(keys.len())],
                1 => keys[self.below(keys.len())].next_up(),
                2 => keys[self.below(keys.len())].next_down(),
                3 => first - self.unit() * 3.0,
                4 => last + self.unit() * 3.0,
                _ => first + self.unit() * (last - first),
            })
            .map(|time| if time.is_subnormal() { 0.0 } else { time })
            .collect()
    }
}
