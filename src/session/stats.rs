//! Stats: what a session tells of itself, in plain numbers that are cheap to take.

use super::batch_metrics::Measured;
use crate::device::Counters;
use crate::tensor::Packing;

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
    /// Chunks that batches were sent in; a small batch is one.
    pub pieces: u64,
    /// Calls in a batch, on average.
    pub mean_batch_size: f64,
    /// How full batches were against their item or byte limit, 0 to 1.
    pub fill_rate: f64,
    /// Milliseconds that the oldest call of a batch waited, the median of the
    /// last 512 batches.
    pub wait_p50: f64,
    /// Milliseconds that the oldest call of a batch waited, the 95th percentile of the last
    /// 512 batches.
    pub wait_p95: f64,
    /// Milliseconds of planning, encoding and submission, mean of a batch.
    pub encode_ms: f64,
    /// Calls answered by a GPU.
    pub ran_on_gpu: u64,
    /// Calls answered by the CPU.
    pub ran_on_cpu: u64,
    /// Batches that the CPU took because the device had no memory for them.
    pub fallbacks: u64,
    /// Bytes of the host's memory that operands and CPUs take.
    pub host_bytes: u64,
    /// Where the time of measured batches went.
    pub measured: Measured,
    /// What the devices did.
    pub device: Counters,
    /// What tensors take of the device's memory.
    pub tensors: TensorBytes,
}

/// Bytes of the tensors that lie on the device, by how the device keeps their elements; small
/// tensors share memory, which counts whole. A CPU keeps floats whatever they were packed as.
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
    /// Groups of 4-bit numbers with a scale each.
    pub int4: u64,
}

impl TensorBytes {
    /// Bytes of all tensors.
    pub const fn sum(&self) -> u64 {
        self.f32 + self.f16 + self.bf16 + self.int8 + self.int4
    }

    pub(super) fn of(&mut self, packing: Option<Packing>) -> &mut u64 {
        match packing {
            None => &mut self.f32,
            Some(Packing::F16) => &mut self.f16,
            Some(Packing::Bf16) => &mut self.bf16,
            Some(Packing::Int8) => &mut self.int8,
            Some(Packing::Int4) => &mut self.int4,
        }
    }
}
