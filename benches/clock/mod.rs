//! Time: how long something takes, and what day it is.

#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark is about what the clock says"
)]

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds after which a slow way has run often enough, if [`FEWEST`] times.
const LONG_MS: f64 = 4000.0;
const FEWEST: usize = 3;

/// Milliseconds of `work`. What it made is dropped after the clock is read:
/// giving memory back is not part of any way.
pub(crate) fn time<T>(work: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    let result = work();
    let took = start.elapsed().as_secs_f64() * 1e3;
    drop(result);
    took
}

/// The median of `runs` runs, of fewer for what is slow, after one that does not
/// count.
pub(crate) fn median_of(runs: usize, run: impl Fn() -> f64) -> f64 {
    run();
    let mut times: Vec<f64> = Vec::with_capacity(runs);
    while times.len() < runs {
        times.push(run());
        if times.len() >= FEWEST && times.iter().sum::<f64>() > LONG_MS {
            break;
        }
    }
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The date, in UTC, as ISO 8601 has it.
pub(crate) fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut days = since.expect("a clock after 1970").as_secs() / 86_400;
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
