//! Counts of what a session did. Plain numbers, cheap to take.

use super::facts::Measured;
use crate::device::{Counters, Engine};
use crate::tensor::Packing;

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
    /// Pieces that they were sent in; a small batch is one.
    pub pieces: u64,
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
    /// Batches that the processor took because the device had no memory for them.
    pub fallbacks: u64,
    /// Bytes of memory that operands and what the processor keeps take of the host.
    pub host_bytes: u64,
    /// Where the time of measured batches went.
    pub measured: Measured,
    /// What the device did.
    pub device: Counters,
    /// What tensors take of its memory.
    pub tensors: TensorBytes,
}

/// Bytes of the tensors that lie on the device, by what their elements are kept as. The
/// processor keeps floats whatever they were packed as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TensorBytes {
    /// 32-bit floats, and indexes.
    pub f32: u64,
    /// 16-bit floats.
    pub f16: u64,
    /// The upper halves of floats.
    pub bf16: u64,
    /// Groups of 8-bit numbers with a scale each.
    pub int8: u64,
}

impl TensorBytes {
    /// All of them.
    pub const fn sum(&self) -> u64 {
        self.f32 + self.f16 + self.bf16 + self.int8
    }

    pub(super) fn of(&mut self, packing: Option<Packing>) -> &mut u64 {
        match packing {
            None => &mut self.f32,
            Some(Packing::F16) => &mut self.f16,
            Some(Packing::Bf16) => &mut self.bf16,
            Some(Packing::Int8) => &mut self.int8,
        }
    }
}

/// The running sums behind [`Stats`].
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) calls: u64,
    pub(super) rejected: u64,
    pub(super) encode_ms: f64,
    pub(super) pieces: u64,
    pub(super) fallbacks: u64,
    pub(super) launches: u64,
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

    pub(super) fn stats(
        &self,
        waits: &Waits,
        pending: usize,
        (device, tensors): (Counters, TensorBytes),
    ) -> Stats {
        let batches = (self.batches as f64).max(1.0);
        let (wait_p50, wait_p95) = waits.percentiles();
        Stats {
            calls: self.calls,
            settled: self.settled_gpu + self.settled_cpu,
            rejected: self.rejected,
            pending: pending as u64,
            batches: self.batches,
            pieces: self.pieces,
            mean_batch_size: self.batched_calls as f64 / batches,
            fill_rate: self.fill / batches,
            wait_p50,
            wait_p95,
            encode_ms: self.encode_ms / batches,
            ran_on_gpu: self.settled_gpu,
            ran_on_cpu: self.settled_cpu,
            fallbacks: self.fallbacks,
            host_bytes: 0,
            measured: Measured::default(),
            device,
            tensors,
        }
    }
}

/// The waits of the last batches.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// In order of arrival, from `next` on.
    ring: Vec<f64>,
    next: usize,
    /// The same by size.
    sorted: Vec<f64>,
}

impl Waits {
    pub(super) fn add(&mut self, ms: f64) {
        if self.ring.len() < REMEMBERED {
            self.ring.push(ms);
        } else {
            let oldest = std::mem::replace(&mut self.ring[self.next], ms);
            self.sorted.remove(self.place(oldest));
        }
        self.sorted.insert(self.place(ms), ms);
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// The first place among the sorted that is not below `ms`.
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
