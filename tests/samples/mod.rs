//! Reproducible operands.

use framebatch::State;

/// How much of something a test does; `make long` does more of it.
pub(crate) fn times<T>(few: T, many: T) -> T {
    match std::env::var("LONG") {
        Ok(long) if long == "1" => many,
        _ => few,
    }
}

/// Numbers that look random and are the same in every run (SplitMix64).
pub(crate) struct Samples(pub(crate) u64);

impl Samples {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Between 0 and 1.
    pub(crate) fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / 16_777_216.0
    }

    /// Floats of both signs, of magnitudes 2^-8 to 2^8.
    pub(crate) fn floats(&mut self, count: usize) -> Vec<f32> {
        std::iter::repeat_with(|| (self.unit() * 2.0 - 1.0) * (self.unit() * 16.0 - 8.0).exp2())
            .take(count)
            .collect()
    }

    pub(crate) fn units(&mut self, count: usize) -> Vec<f32> {
        std::iter::repeat_with(|| self.unit()).take(count).collect()
    }

    /// A quaternion of length 1.
    pub(crate) fn quaternion(&mut self) -> [f32; 4] {
        loop {
            let q: [f64; 4] = std::array::from_fn(|_| f64::from(self.unit()) * 2.0 - 1.0);
            if (0.1..=1.0).contains(&length(q)) {
                return normalize(q);
            }
        }
    }

    pub(crate) fn quaternions(&mut self, count: usize) -> Vec<f32> {
        std::iter::repeat_with(|| self.quaternion())
            .take(count)
            .flatten()
            .collect()
    }

    pub(crate) fn states(&mut self, count: usize) -> Vec<State> {
        std::iter::repeat_with(|| {
            let halves = [self.bits(), self.bits()];
            State(std::array::from_fn(|k| halves[k / 8].to_le_bytes()[k % 8]))
        })
        .take(count)
        .collect()
    }
}

/// A quaternion of length 1, as near as float32 comes.
#[expect(
    clippy::cast_possible_truncation,
    reason = "rounding to the operands' type"
)]
pub(crate) fn normalize(q: [f64; 4]) -> [f32; 4] {
    let length = length(q);
    q.map(|x| (x / length) as f32)
}

fn length(q: [f64; 4]) -> f64 {
    q.iter().map(|x| x * x).sum::<f64>().sqrt()
}
