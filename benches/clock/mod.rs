//! Time: how long something takes, how runs differ, and what day it is.

#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark is about what the clock says"
)]
#![allow(dead_code, reason = "each bench uses a part")]

use std::hint::black_box;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds after which a slow way has run often enough, if [`FEWEST`] times.
const LONG_MS: f64 = 4000.0;
const FEWEST: usize = 3;

/// What some runs took, the shortest first.
#[derive(Clone)]
pub(crate) struct Times(Vec<f64>);

impl Times {
    pub(crate) fn new(mut times: Vec<f64>) -> Times {
        assert!(!times.is_empty(), "at least one run is timed");
        times.sort_unstable_by(f64::total_cmp);
        Times(times)
    }

    pub(crate) fn runs(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn median(&self) -> f64 {
        self.below(50)
    }

    /// The value below which so many of a hundred times lie.
    pub(crate) fn below(&self, percent: usize) -> f64 {
        let at = self.0.len() * percent / 100;
        self.0[at.min(self.0.len() - 1)]
    }

    /// The same runs, told in other words.
    pub(crate) fn map(&self, change: impl Fn(f64) -> f64) -> Times {
        Times::new(self.0.iter().copied().map(change).collect())
    }
}

/// Milliseconds of `work`. What it made is dropped after the clock is read:
/// giving memory back is not part of any way.
pub(crate) fn time<T>(work: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    let result = work();
    let took = start.elapsed().as_secs_f64() * 1e3;
    drop(black_box(result));
    took
}

/// The times of `runs` runs, of fewer for what is slow, after one that does not
/// count.
pub(crate) fn times_of(runs: usize, mut run: impl FnMut() -> f64) -> Times {
    run();
    let mut times: Vec<f64> = Vec::with_capacity(runs);
    while times.len() < runs {
        times.push(run());
        if times.len() >= FEWEST && times.iter().sum::<f64>() > LONG_MS {
            break;
        }
    }
    Times::new(times)
}

/// The date and the time, in UTC, as ISO 8601 has them.
pub(crate) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.expect("a clock after 1970").as_secs();
    let [hours, minutes] = [seconds / 3600 % 24, seconds / 60 % 60];
    let day = day(seconds / 86_400);
    format!("{day}T{hours:02}:{minutes:02}:{:02}Z", seconds % 60)
}

/// The day that lies so many days after the first of 1970.
fn day(mut days: u64) -> String {
    let mut year = 1970;
    while days >= days_of(year) {
        days -= days_of(year);
        year += 1;
    }
    let february = if days_of(year) == 366 { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in months {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

fn days_of(year: u64) -> u64 {
    let leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    if leap { 366 } else { 365 }
}
