//! Tuning: how long calls wait while the device is busy, and how large batches grow, by what
//! batches took.
//!
//! Pure: a state machine of observations in and values out. It has no clock, no queue and no
//! device, and a value that the caller gave is never its own.
//!
//! Two numbers are kept of batches that were alone on the GPU: what each takes whatever its
//! size, and what a byte adds. Neither depends on the values that are chosen by them, so
//! nothing swings: a value is halved when it is more than what is wanted, doubled when it is
//! less than a third of that, and stays as it is in between.

use std::fmt::{self, Display, Formatter};

use super::batch_cost::{Cost, Line, Mean, is_time};
use crate::batch::{BatchConfig, FRAME_MS, Policy};

/// Batches between two looks at a value, and so the least number between two changes.
pub(super) const PERIOD: u32 = 64;

/// A value that is less than one over this of what is wanted is doubled. Halved and doubled
/// values lie a factor 2 apart, and the rest is the distance that keeps noise from switching
/// between two of them.
const HYSTERESIS: f64 = 3.0;

/// Milliseconds that calls wait at least and at most while the device is busy; the most is
/// where tuning starts.
const WAIT_MS: [f64; 2] = [1.0, FRAME_MS];

/// Bytes that a batch may have at least under a target. Otherwise that is as many as a chunk has,
/// because smaller batches would be smaller chunks. The most is the limit that the session has
/// anyway, where tuning starts.
const LEAST_BYTES_FOR_TARGET: f64 = (64 << 10) as f64;

/// The share of a batch's time that may be what a batch takes whatever its size. Larger batches
/// would gain less than that, and keep all who call meanwhile waiting.
const FIXED_SHARE: f64 = 0.1;

/// The least wait under a target, as a share of the target.
const LEAST_SHARE: f64 = 1.0 / 16.0;

/// How many times larger than nearly all batches one may be whose time is foreseen.
const FORESEEABLE: f64 = 16.0;

/// Batches press against their limit where some are larger than one over this of it. Only then the
/// limit is raised.
const PRESSING: f64 = 4.0;

const MILLION: f64 = 1e6;

/// A batch that was alone on a GPU, when all of it is back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    /// Bytes of operands and results.
    pub(super) bytes: u64,
    /// Milliseconds from the launch to the last result.
    pub(super) took_ms: f64,
}

/// What is tuned, and by what. `None` is a value that was given, or that nothing asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// Milliseconds that the oldest call of a batch waits: under
    /// [`BatchConfig::target_latency`] at most, otherwise while the device is busy and no
    /// frames set the pace.
    pub wait_ms: Option<f64>,
    /// Bytes of operands and results at which a batch is sent early.
    pub batch_bytes: Option<u64>,
    /// Milliseconds that a batch takes whatever its size.
    pub fixed_ms: f64,
    /// Milliseconds that a million bytes add.
    pub ms_per_megabyte: f64,
    /// Milliseconds that the host takes to send a batch.
    pub encode_ms: f64,
    /// Batches that were observed.
    pub batches: u64,
}

impl Display for Tuning {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("tuned   ")?;
        if let Some(bytes) = self.batch_bytes {
            write!(f, " batches of {bytes} bytes")?;
        }
        if let Some(ms) = self.wait_ms {
            // Whole numbers are printed because a page has no other use for printing floats, which
            // takes 13 KB of the package.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a wait is not negative, and a few milliseconds"
            )]
            let us = (ms * 1e3) as u64;
            write!(f, " waits of {us} us")?;
        }
        write!(f, " by {} batches", self.batches)
    }
}

/// What a tuner is kept as for later sessions on one adapter: a version, the wait, and the bytes
/// of a batch; 0 for a value that is not known.
pub type Kept = [f64; 3];

/// The version of [`Kept`].
const VERSION: f64 = 1.0;

/// Observes batches and tunes the values that were not given.
#[derive(Debug)]
pub(super) struct Tuner {
    target_ms: Option<f64>,
    wait: Option<Knob>,
    bytes: Option<Knob>,
    line: Line,
    encode: Mean,
    batches: u64,
    /// Batches since the last look.
    since: u32,
    /// What an earlier session kept.
    restored: Kept,
}

impl Tuner {
    /// The tuner of a session with these settings, on a device whose chunks have so many bytes.
    pub(super) fn new(config: &BatchConfig, chunk_bytes: u64) -> Tuner {
        let target = config.target_latency;
        let ([least, most], least_bytes) = match target {
            Some(target) => ([target * LEAST_SHARE, target / 2.0], LEAST_BYTES_FOR_TARGET),
            None => (WAIT_MS, chunk_bytes as f64),
        };
        let is_timed = match target {
            Some(_) => config.policy != Policy::Manual,
            None => config.policy == Policy::Auto,
        };
        let wait = is_timed && config.max_wait.is_none();
        let bytes = config.max_batch_size.is_none();
        Tuner {
            target_ms: target,
            wait: wait.then(|| Knob::new(least, most)),
            bytes: bytes.then(|| Knob::new(least_bytes, config.max_batch_bytes as f64)),
            line: Line::default(),
            encode: Mean::default(),
            batches: 0,
            since: 0,
            restored: [VERSION, 0.0, 0.0],
        }
    }

    /// What is tuned, and by what.
    pub(super) fn tuning(&self) -> Tuning {
        let Cost { fixed, slope } = self.line.cost();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bytes of a batch, which are not negative"
        )]
        let bytes = |knob: Knob| knob.value as u64;
        Tuning {
            wait_ms: self.wait.map(|knob| knob.value),
            batch_bytes: self.bytes.map(bytes),
            fixed_ms: fixed,
            ms_per_megabyte: slope,
            encode_ms: self.encode.mean,
            batches: self.batches,
        }
    }

    /// Whether a value is another than the one where tuning starts, or is for a target.
    pub(super) fn is_in_effect(&self) -> bool {
        let mut knobs = self.wait.iter().chain(&self.bytes);
        knobs.any(|knob| knob.value < knob.most || self.target_ms.is_some())
    }

    /// Notes how long the host took to send a batch to a GPU.
    pub(super) fn note_encode(&mut self, ms: f64) {
        if is_time(ms) {
            self.encode.add(ms);
        }
    }

    /// Notes what a batch took: `true` where a value is another one now.
    pub(super) fn observe(&mut self, batch: Observation) -> bool {
        if !is_time(batch.took_ms) {
            return false;
        }
        self.line.add(batch.bytes as f64 / MILLION, batch.took_ms);
        self.batches += 1;
        self.since += 1;
        if self.since < PERIOD {
            return false;
        }
        self.since = 0;
        let (wait, bytes) = (Some(self.wanted_wait()), self.wanted_bytes());
        let step = |knob: &mut Option<Knob>, wanted: Option<f64>| match (knob, wanted) {
            (Some(knob), Some(wanted)) => knob.step(wanted),
            _ => false,
        };
        step(&mut self.wait, wait) | step(&mut self.bytes, bytes)
    }

    /// What is kept for later sessions on the same adapter. A value that was given, or is for a
    /// target of this session, stays as an earlier session kept it.
    pub(super) fn kept(&self) -> Kept {
        let [_, wait, bytes] = self.restored;
        let value = |knob: Option<Knob>, kept| match (knob, self.target_ms) {
            (Some(knob), None) => knob.value,
            _ => kept,
        };
        [VERSION, value(self.wait, wait), value(self.bytes, bytes)]
    }

    /// Goes by what an earlier session kept: `true` where a value is another one now. What is
    /// of another version, or beyond the bounds, is ignored.
    pub(super) fn restore(&mut self, kept: &[f64]) -> bool {
        let [version, wait, bytes] = *kept else {
            return false;
        };
        if version != VERSION {
            return false;
        }
        self.restored = [VERSION, wait, bytes];
        let is_ours = self.target_ms.is_none();
        let restore = |knob: &mut Option<Knob>, value| {
            is_ours && knob.as_mut().is_some_and(|knob| knob.restore(value))
        };
        restore(&mut self.wait, wait) | restore(&mut self.bytes, bytes)
    }

    /// While the device is busy, waiting saves what another batch would cost the host: to be
    /// sent, and to be answered, which takes about as long. Who waits longer loses more than
    /// is saved, and who waits just as long loses at most as much again as the best choice in
    /// hindsight (Dooly, Goldman and Scott: On-line analysis of the TCP acknowledgment delay
    /// problem, 2001, section 3). Under a target the wait is what the batch's work leaves.
    fn wanted_wait(&self) -> f64 {
        match self.target_ms {
            Some(target) => target - self.work_ms(target),
            None => 2.0 * self.encode.mean,
        }
    }

    /// Bytes that are computed in the time that a target leaves for the work of a batch, or in
    /// which what a batch takes whatever its size is the share that it may be. `None`: nothing
    /// was learned, because batches are far from as large.
    fn wanted_bytes(&self) -> Option<f64> {
        let Line { x, y, .. } = self.line;
        let Cost { fixed, slope } = self.line.cost();
        let work = self.target_ms.map(|target| self.work_ms(target));
        let limit = self.bytes?.value / MILLION;
        let wanted = if !self.line.is_sloped() {
            match work {
                Some(work) if y > work => x * work / y,
                Some(work) if y * 2.0 > work => return None,
                _ => f64::INFINITY,
            }
        } else if slope > 0.0 {
            // Times that grow faster than sizes would have batches cost nothing by themselves:
            // batches are never bound to much less than there is in one on average.
            let work = work.unwrap_or(fixed.max(y * FIXED_SHARE) / FIXED_SHARE);
            // Of smaller batches there would be more than the target gains by each of them.
            (work - fixed).max(fixed) / slope
        } else {
            f64::INFINITY
        };
        let reach = self.line.reach();
        let is_seen = wanted <= reach * FORESEEABLE || reach >= limit / PRESSING;
        is_seen.then_some(wanted * MILLION)
    }

    /// The part of a target that is for the work of a batch: half of it, or more where that is
    /// less than twice what a batch of any size takes.
    fn work_ms(&self, target: f64) -> f64 {
        (2.0 * self.line.cost().fixed).clamp(target / 2.0, target)
    }
}

/// A value that is halved and doubled between two bounds, from the upper one on.
#[derive(Clone, Copy, Debug)]
struct Knob {
    least: f64,
    most: f64,
    value: f64,
}

impl Knob {
    fn new(least: f64, most: f64) -> Knob {
        Knob {
            least: least.min(most),
            most,
            value: most,
        }
    }

    /// Moves one step towards what is wanted: `true` where the value is another one now.
    fn step(&mut self, wanted: f64) -> bool {
        let next = match self.value {
            value if wanted < value => value / 2.0,
            value if wanted >= value * HYSTERESIS => value * 2.0,
            value => value,
        };
        let before = self.value;
        self.value = next.clamp(self.least, self.most);
        self.value != before
    }

    /// Takes a value that was kept, if it is within the bounds: `true` where it is another one.
    fn restore(&mut self, kept: f64) -> bool {
        let is_new = (self.least..=self.most).contains(&kept) && kept != self.value;
        if is_new {
            self.value = kept;
        }
        is_new
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "tests/tuning.rs"]
mod tests;
