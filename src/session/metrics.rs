//! Metrics: counts, waits and times of a session's batches.
//!
//! Metrics have no clock and ask nobody: whoever knows a number brings it.

use super::batch_metrics::Meter;
use super::stats::{Stats, TensorBytes};
use crate::device::{Counters, Engine};

/// Batches whose waits are remembered for the percentiles.
const REMEMBERED: usize = 512;

/// What a session has counted and measured since it was opened.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    pub(super) calls: u64,
    pub(super) rejected: u64,
    pub(super) encode_ms: f64,
    pub(super) chunks: u64,
    pub(super) launches: u64,
    /// How many launches there were when memory was freed last.
    launches_at_trim: u64,
    fallbacks: u64,
    /// Whether the CPU took a batch and the face was not told yet.
    has_fallback: bool,
    settled_gpu: u64,
    settled_cpu: u64,
    batches: u64,
    batched_calls: u64,
    fill: f64,
    waits: Waits,
    /// Where the time of batches goes, while somebody listens.
    pub(super) meter: Meter,
    /// What earlier devices did.
    gone: Counters,
}

impl Metrics {
    /// Counts a batch of so many calls that is sent for the first time. Its oldest call has
    /// waited for so many milliseconds.
    pub(super) fn batch(&mut self, calls: usize, fill: f64, waited: f64) {
        self.waits.add(waited);
        self.batches += 1;
        self.batched_calls += calls as u64;
        self.fill += fill;
    }

    /// Counts calls that were answered with a value.
    pub(super) fn settled(&mut self, calls: usize, engine: Engine) {
        match engine {
            Engine::Gpu => self.settled_gpu += calls as u64,
            Engine::Cpu => self.settled_cpu += calls as u64,
        }
    }

    /// Counts a batch that the CPU takes because the GPU has no memory for it.
    pub(super) fn fell_back(&mut self) {
        self.fallbacks += 1;
        self.has_fallback = true;
    }

    /// Whether the CPU took a batch since this was asked last.
    pub(super) fn take_fallback(&mut self) -> bool {
        std::mem::take(&mut self.has_fallback)
    }

    /// Notes that memory was freed which is only kept for the next batch.
    pub(super) fn trimmed(&mut self) {
        self.launches_at_trim = self.launches;
    }

    /// Whether a batch was sent since memory was freed last.
    pub(super) fn has_launched_since_trim(&self) -> bool {
        self.launches_at_trim != self.launches
    }

    /// Adds what a device did that is in use no more.
    pub(super) fn leave(&mut self, device: Counters) {
        self.gone = device.after(self.gone);
    }

    /// All counts, where so many calls are pending and the device in use has done this.
    pub(super) fn stats(&self, pending: usize, device: Counters) -> Stats {
        let batches = (self.batches as f64).max(1.0);
        let (wait_p50, wait_p95) = self.waits.percentiles();
        Stats {
            calls: self.calls,
            settled: self.settled_gpu + self.settled_cpu,
            rejected: self.rejected,
            pending: pending as u64,
            batches: self.batches,
            pieces: self.chunks,
            mean_batch_size: self.batched_calls as f64 / batches,
            fill_rate: self.fill / batches,
            wait_p50,
            wait_p95,
            encode_ms: self.encode_ms / batches,
            ran_on_gpu: self.settled_gpu,
            ran_on_cpu: self.settled_cpu,
            fallbacks: self.fallbacks,
            host_bytes: 0,
            measured: self.meter.measured(),
            device: device.after(self.gone),
            tensors: TensorBytes::default(),
        }
    }
}

/// The waits of the last batches.
#[derive(Debug, Default)]
struct Waits {
    /// The waits in order of arrival, from `next` on.
    ring: Vec<f64>,
    next: usize,
    /// The same waits by size.
    sorted: Vec<f64>,
}

impl Waits {
    fn add(&mut self, ms: f64) {
        if self.ring.len() < REMEMBERED {
            self.ring.push(ms);
        } else {
            let oldest = std::mem::replace(&mut self.ring[self.next], ms);
            self.sorted.remove(self.place(oldest));
        }
        self.sorted.insert(self.place(ms), ms);
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// The first place among the sorted waits that is not below `ms`.
    fn place(&self, ms: f64) -> usize {
        self.sorted.partition_point(|wait| *wait < ms)
    }

    fn percentiles(&self) -> (f64, f64) {
        let sorted = &self.sorted;
        let at = |share: usize| {
            sorted
                .get(sorted.len() * share / 100)
                .copied()
                .unwrap_or(0.0)
        };
        (at(50), at(95))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_last_batches() {
        let mut waits = Waits::default();
        assert_eq!(waits.percentiles(), (0.0, 0.0));
        for i in 0..2000_u32 {
            waits.add(f64::from(i * 7919 % 1000));
        }
        let mut last: Vec<f64> = (2000 - REMEMBERED as u32..2000)
            .map(|i| f64::from(i * 7919 % 1000))
            .collect();
        last.sort_unstable_by(f64::total_cmp);
        assert_eq!(waits.percentiles(), (last[256], last[486]));
        assert_eq!(waits.sorted, last);
    }
}
