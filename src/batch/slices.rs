//! The size of slices: how much low work goes at a time, by what earlier slices took.
//!
//! Numbers only: work comes in units of the caller's choice, and nothing is cut here.

/// Milliseconds of the device that a short slice aims at.
const SHORT_MS: f64 = 4.0;

/// The same of a long slice. Two of them are in flight at once.
const LONG_MS: f64 = 12.5;

/// The most that a slice without work counts as taking: all beyond is work.
const MOST_TRIP_MS: f64 = 1.0;

/// How many times larger a slice may be than the largest that was measured.
const GROWTH: f64 = 4.0;

/// How much earlier slices count with each new one.
const FADING: f64 = 0.75;

/// How long a slice may keep the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// Others may wait for the slice: calls of high priority, or a page on its own thread.
    Short,
    /// Nobody is known to wait.
    Long,
}

/// What is known of slices.
#[derive(Debug)]
pub(super) struct Slices {
    /// Sums over the slices that were measured: what they computed, and in how many
    /// milliseconds.
    units: f64,
    ms: f64,
    /// The least milliseconds that a slice took: the way there and back, which is not the
    /// device's time.
    trip: f64,
    /// Units of the largest slice that was measured.
    largest: f64,
}

impl Default for Slices {
    fn default() -> Self {
        Slices {
            units: 0.0,
            ms: 0.0,
            trip: MOST_TRIP_MS,
            largest: 0.0,
        }
    }
}

impl Slices {
    /// Units that the next slice may have. Before a slice was measured there are none: the
    /// first slice is one call.
    pub(super) fn most(&self, length: Length) -> f64 {
        let aim = match length {
            Length::Short => SHORT_MS,
            Length::Long => LONG_MS,
        };
        // A small slice says little of much larger ones. A clock that is too coarse to see
        // any time makes the quotient infinite.
        match self.largest > 0.0 {
            true => (aim * self.units / self.ms).min(self.largest * GROWTH),
            false => 0.0,
        }
    }

    /// Notes that a slice of so many units took so long.
    pub(super) fn took(&mut self, units: f64, ms: f64) {
        if units <= 0.0 {
            return; // It is not known how much the slice computed.
        }
        self.trip = self.trip.min(ms);
        self.largest = self.largest.max(units);
        self.units = self.units * FADING + units;
        self.ms = self.ms * FADING + (ms - self.trip);
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "tests/slices.rs"]
mod tests;
