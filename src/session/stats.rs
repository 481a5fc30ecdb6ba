//! Counts of what a session did. Plain numbers, cheap to take.

use crate::device::{Counters, Engine};

/// Batches whose waits are remembered for the percentiles.
const REMEMBERED: usize = 512;

/// Counts since a session was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Calls accepted.
    pub calls: u64,
    /// Calls answered with a value.
    pub settled: u64,
    /// Calls answered with an error: failed, given up, superseded, disposed.
    pub rejected: u64,
    /// Calls queued and in flight.
    pub pending: u64,
    /// Batches sent.
    pub batches: u64,
    /// Calls in a batch, on average.
    pub mean_batch_size: f64,
    /// How full batches were against their item or byte limit, 0 to 1.
    pub fill_rate: f64,
    /// Milliseconds that the oldest call of a batch waited, the median of the
    /// last 512 batches.
    pub wait_p50: f64,
    /// The same, 95th percentile.
    pub wait_p95: f64,
    /// Milliseconds of planning, encoding and submission, mean of a batch.
    pub encode_ms: f64,
    /// Calls answered by a GPU.
    pub ran_on_gpu: u64,
    /// Calls answered by the processor.
    pub ran_on_cpu: u64,
    /// What the device did.
    pub device: Counters,
}

/// The running sums behind [`Stats`].
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) calls: u64,
    pub(super) rejected: u64,
    pub(super) encode_ms: f64,
    settled_gpu: u64,
    settled_cpu: u64,
    batches: u64,
    batched_calls: u64,
    fill: f64,
}

impl Counts {
    pub(super) fn batch(&mut self, calls: usize, fill: f64) {
        self.batches += 1;
        self.batched_calls += calls as u64;
        self.fill += fill;
    }

    pub(super) fn settled(&mut self, calls: usize, engine: Engine) {
        match engine {
            Engine::Gpu => self.settled_gpu += calls as u64,
            Engine::Cpu => self.settled_cpu += calls as u64,
        }
    }

    pub(super) fn stats(&self, waits: &Waits, pending: usize, device: Counters) -> Stats {
        let batches = (self.batches as f64).max(1.0);
        let (wait_p50, wait_p95) = waits.percentiles();
        Stats {
            calls: self.calls,
            settled: self.settled_gpu + self.settled_cpu,
            rejected: self.rejected,
            pending: pending as u64,
            batches: self.batches,
            mean_batch_size: self.batched_calls as f64 / batches,
            fill_rate: self.fill / batches,
            wait_p50,
            wait_p95,
            encode_ms: self.encode_ms / batches,
            ran_on_gpu: self.settled_gpu,
            ran_on_cpu: self.settled_cpu,
            device,
        }
    }
}

/// The waits of the last batches.
#[derive(Debug, Default)]
pub(super) struct Waits {
    ring: Vec<f64>,
    next: usize,
}

impl Waits {
    pub(super) fn add(&mut self, ms: f64) {
        if self.ring.len() < REMEMBERED {
            self.ring.push(ms);
        } else {
            self.ring[self.next] = ms;
        }
        self.next = (self.next + 1) % REMEMBERED;
    }

    fn percentiles(&self) -> (f64, f64) {
        let mut sorted = self.ring.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |share: usize| {
            sorted
                .get(sorted.len() * share / 100)
                .copied()
                .unwrap_or(0.0)
        };
        (at(50), at(95))
    }
}
