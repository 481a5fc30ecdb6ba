//! Drift: how far the foreseen times of a device are off, by what was measured.
//!
//! Pure: it has no clock, and what was measured comes in as an argument.

/// A drift: a factor by which the foreseen time is off, which follows what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Drift {
    pub(super) factor: f64,
    /// Sums since the factor was last moved: clocks of browsers are coarse.
    foreseen: f64,
    took: f64,
}

/// Milliseconds that must have been foreseen or measured before the factor moves.
const ENOUGH_MS: f64 = 1.0;

/// The most that a factor can be, and one over the least.
const FARTHEST: f64 = 16.0;

/// The most that one measurement counts for: so many times the factor or less.
const STEP: f64 = 2.0;

/// How much of the way to what was measured the factor moves at once.
const SHARE: f64 = 0.25;

/// The share of a factor that is left with each new route that leaves its device out.
const FADING: f64 = 15.0 / 16.0;

impl Default for Drift {
    fn default() -> Self {
        Drift {
            factor: 1.0,
            foreseen: 0.0,
            took: 0.0,
        }
    }
}

impl Drift {
    /// Moves the factor towards 1 while nobody measures the device. The device may have
    /// been slow because a page was busy for a moment, and is tried again if the factor is
    /// believed less and less.
    pub(super) fn fade(&mut self) {
        self.factor = 1.0 + (self.factor - 1.0) * FADING;
    }

    /// Notes that work was foreseen to take so long by the model alone, and took as long.
    pub(super) fn note(&mut self, foreseen: f64, took: f64) {
        self.foreseen += foreseen;
        self.took += took.max(0.0);
        if self.foreseen <= 0.0 || self.foreseen.max(self.took) < ENOUGH_MS {
            return;
        }
        let seen = self.took / self.foreseen;
        let near = seen.clamp(self.factor / STEP, self.factor * STEP);
        let moved = self.factor + (near - self.factor) * SHARE;
        *self = Drift {
            factor: moved.clamp(1.0 / FARTHEST, FARTHEST),
            ..Drift::default()
        };
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "tests/drift.rs"]
mod tests;
