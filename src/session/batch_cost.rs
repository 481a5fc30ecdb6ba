//! The cost of a batch: what each takes whatever its size and what its size adds, estimated from
//! what batches took.
//!
//! Pure: no clock, and no idea of what follows from the estimates.

/// How many batches the estimates remember, about.
const REMEMBERED: f64 = 512.0;

/// Batches after which an estimate is believed so far that an outlier counts for no more than
/// so many times what was foreseen.
const KNOWN: u32 = 16;
const OUTLIER: f64 = 4.0;

/// The least standard deviation of the sizes of batches, as a share of their mean, by which a slope
/// is known.
const LEAST_DEVIATION: f64 = 0.1;

/// What a batch takes: milliseconds whatever its size, and for each million bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cost {
    pub(super) fixed: f64,
    pub(super) slope: f64,
}

/// A line through what batches of different sizes took, newer ones weighing more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    count: u32,
    pub(super) x: f64,
    pub(super) y: f64,
    variance: f64,
    covariance: f64,
}

impl Line {
    pub(super) fn add(&mut self, x: f64, y: f64) {
        let foreseen = self.cost();
        let y = match self.count >= KNOWN {
            true => outlier(foreseen.fixed + foreseen.slope * x).min(y),
            false => y,
        };
        self.count = self.count.saturating_add(1);
        let share = 1.0 / f64::from(self.count).min(REMEMBERED);
        let (dx, dy) = (x - self.x, y - self.y);
        self.x += share * dx;
        self.y += share * dy;
        self.variance = (1.0 - share) * (self.variance + share * dx * dx);
        self.covariance = (1.0 - share) * (self.covariance + share * dx * dy);
    }

    /// A size that few batches exceed.
    pub(super) fn reach(&self) -> f64 {
        self.x + 2.0 * self.variance.sqrt()
    }

    /// Whether the sizes of batches differ by so much that the line's slope says something.
    pub(super) fn is_sloped(&self) -> bool {
        self.variance > (self.x * LEAST_DEVIATION).powi(2)
    }

    /// The line's two numbers, neither below 0. Where the slope says nothing, half of what
    /// batches take is taken for what each takes whatever its size.
    pub(super) fn cost(&self) -> Cost {
        let fixed = match self.is_sloped() {
            true => self.y - self.covariance / self.variance * self.x,
            false => self.y / 2.0,
        };
        let fixed = fixed.clamp(0.0, self.y);
        let slope = match self.x > 0.0 {
            true => (self.y - fixed).max(0.0) / self.x,
            false => 0.0,
        };
        Cost { fixed, slope }
    }
}

/// A mean of times, newer ones weighing more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    count: u32,
    pub(super) mean: f64,
}

impl Mean {
    pub(super) fn add(&mut self, ms: f64) {
        let ms = match self.count >= KNOWN {
            true => outlier(self.mean).min(ms),
            false => ms,
        };
        self.count = self.count.saturating_add(1);
        self.mean += (ms - self.mean) / f64::from(self.count).min(REMEMBERED);
    }
}

/// The most that a time counts for which was foreseen to be so long. A millisecond is what
/// the clocks of browsers may be off.
fn outlier(foreseen_ms: f64) -> f64 {
    1.0 + foreseen_ms * OUTLIER
}

/// Whether a batch can have taken such a time: a clock that was set back tells nothing.
pub(super) fn is_time(ms: f64) -> bool {
    (0.0..1e9).contains(&ms)
}
