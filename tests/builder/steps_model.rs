//! The model of steps in plain vectors: what states hold, and what a step makes of them.

/// Small states share slabs, and large ones have buffers of their own.
pub(super) const SMALL: u32 = 64;
pub(super) const LARGE: u32 = 18_000;

/// Numbers of a state stay below it, so that floats hold every one of them.
pub(super) const BELOW: f32 = 1_048_576.0;

/// What a step makes of a tensor and of another one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Count,
    /// Each element is read by another one's thread.
    Turn,
    Meet,
}

/// What a state holds when it is made or written: never the same twice.
pub(super) fn initial(length: usize, times: u32) -> Vec<f32> {
    let value = |i: usize| ((i * 37) % 1009) as f32 + 2048.0 * (times % 97) as f32;
    (0..length).map(value).collect()
}

/// Rows and columns of the elements.
pub(super) fn sides(length: usize) -> [usize; 2] {
    if length == SMALL as usize {
        [8, 8]
    } else {
        [150, 120]
    }
}

impl Kind {
    pub(super) fn model(self, x: &[f32], y: &[f32]) -> Vec<f32> {
        let [rows, columns] = sides(x.len());
        let element = |i: usize| match self {
            Kind::Count => x[i] + 1.0,
            Kind::Turn => x[i % rows * columns + i / rows] + 1.0,
            Kind::Meet => (x[i] + y[i]) % BELOW,
        };
        (0..x.len()).map(element).collect()
    }
}
