//! Batch metrics: where the time of a batch went, while somebody listens.
//!
//! The clock is the face's, and the time of kernels is the device's own. With nobody
//! listening nothing is timed, and nothing is kept.

use crate::batch::{BatchId, Millis, Ticket};
use crate::device::{Clock, Counters, Engine};
use crate::plan::KernelCounts;

const NS: f64 = 1e-6;

/// The facts of a batch that was answered. Times in milliseconds, sizes in bytes; `None` is
/// unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// The batch's number. Numbers rise, and wrap after 2^32 batches.
    pub id: BatchId,
    /// The batch's oldest call.
    pub first: Ticket,
    /// The batch's newest call.
    pub last: Ticket,
    /// Calls that were sent.
    pub calls: u64,
    /// Items of these calls, as their operations count items: floats, quaternions, states, rows
    /// or tokens.
    pub items: u64,
    /// Calls that were answered with errors, those included that were refused before the batch was
    /// sent.
    pub failed: u64,
    /// Chunks that the calls were sent in.
    pub pieces: u64,
    /// Submissions with work in them; none where the CPU computed all calls.
    pub submits: u64,
    /// Where the calls ran.
    pub engine: Engine,
    /// Bytes that were sent to the device.
    pub bytes_up: u64,
    /// Bytes that were read back.
    pub bytes_down: u64,
    /// Floating-point operations of the kernels, as the planner counts them; `None` where a kernel
    /// of the caller's does not say how many it has, and where they depend on what a tensor holds,
    /// as those of clips and insertions do.
    pub flops: Option<f64>,
    /// Bytes that kernels read and wrote: every operand and every result of each stage, once for
    /// each call. What a device's caches hold comes from there, so that the rate may be higher
    /// than that of the device's memory.
    pub kernel_bytes: Option<f64>,
    /// Bytes of device buffers that the session held when the last chunk was encoded, those of
    /// its tensors included.
    pub memory_bytes: u64,
    /// When the launch began, on the face's clock.
    pub sent: Millis,
    /// How long the oldest call had waited when the launch began.
    pub wait_ms: f64,
    /// The time of planning and encoding the chunks.
    pub encode_ms: f64,
    /// The time of writing operands where the device takes them from.
    pub transfer_ms: f64,
    /// The time of kernels, by the device's own clock: `None` where the device has no
    /// clock, and where kernels took less than its clock can tell.
    pub gpu_ms: Option<f64>,
    /// From the last submission until the last result was there, without the time of
    /// kernels where that is known: the rest of the link, the read-back, and the time until
    /// the face noticed. Where there are several chunks this is rather too small, because
    /// some kernels ran before the last submission.
    pub read_ms: f64,
    /// From the start of the launch to the last result.
    pub wall_ms: f64,
    /// The smallest step of the device's clock that was seen, and so the precision of the
    /// kernels' time of each chunk. Browsers make the step coarse, often 0.1 ms.
    pub resolution_ms: Option<f64>,
}

impl Facts {
    /// Kernels' share of the time of kernels and transfers, 0 to 1.
    pub fn kernel_efficiency(&self) -> Option<f64> {
        let gpu = self.gpu_ms?;
        Some(gpu / (gpu + self.transfer_ms + self.read_ms))
    }

    /// Kernels' share of the time from sending to the last result, 0 to 1.
    pub fn utilization(&self) -> Option<f64> {
        share(self.gpu_ms?, self.wall_ms)
    }

    /// Items a second, from sending to the last result.
    pub fn items_per_second(&self) -> Option<f64> {
        (self.wall_ms > 0.0).then(|| self.items as f64 / self.wall_ms * 1e3)
    }

    /// Items a millisecond.
    pub fn items_per_ms(&self) -> Option<f64> {
        share(self.items as f64, self.wall_ms)
    }

    /// Floating-point operations a second, in the time of kernels.
    pub fn flops_per_second(&self) -> Option<f64> {
        Some(share(self.flops?, self.gpu_ms?)? * 1e3)
    }

    /// Bytes that kernels read and wrote a second, in the time of kernels.
    pub fn kernel_bytes_per_second(&self) -> Option<f64> {
        Some(share(self.kernel_bytes?, self.gpu_ms?)? * 1e3)
    }

    /// Bytes both ways a second.
    pub fn bytes_per_second(&self) -> Option<f64> {
        let bytes = (self.bytes_up + self.bytes_down) as f64;
        (self.wall_ms > 0.0).then(|| bytes / self.wall_ms * 1e3)
    }
}

/// The mean of the batches that were measured; `None` before there are any.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// [`Facts::transfer_ms`].
    pub transfer_ms: Option<f64>,
    /// [`Facts::gpu_ms`], of the batches whose kernels' time is known.
    pub gpu_ms: Option<f64>,
    /// [`Facts::read_ms`].
    pub read_ms: Option<f64>,
    /// Kernels' share of the time of kernels and transfers, of the batches whose kernels'
    /// time is known.
    pub kernel_efficiency: Option<f64>,
    /// Kernels' share of the time in which any of these batches was in flight.
    pub utilization: Option<f64>,
}

/// What was measured so far of a batch in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    sent: Millis,
    encoded: Millis,
    encode_ms: f64,
    wait_ms: f64,
    upload_ns: u64,
    submits: u64,
    bytes_up: u64,
    bytes_down: u64,
    memory_bytes: u64,
    /// What the kernels of the chunks that are back did.
    kernels: KernelCounts,
    /// Nanoseconds of the kernels of the chunks that are back; `None` once one is unknown.
    kernel_ns: Option<u64>,
}

/// When an encoding began, and what the device had done before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    moment: Millis,
    counters: Counters,
}

/// What a session knows of a batch that was answered.
pub(super) struct Outline {
    pub(super) id: BatchId,
    pub(super) first: Ticket,
    pub(super) last: Ticket,
    pub(super) calls: usize,
    pub(super) items: u64,
    pub(super) failed: u64,
    pub(super) chunks: usize,
    pub(super) engine: Engine,
}

/// The clock, and what was measured by it.
#[derive(Debug, Default)]
pub(super) struct Meter {
    clock: Option<Clock>,
    /// The greatest common divisor of all moments that the device's clock told.
    resolution_ns: u64,
    latest: Option<Facts>,
    sums: Sums,
}

#[derive(Debug, Default)]
struct Sums {
    batches: f64,
    transfer_ms: f64,
    read_ms: f64,
    /// Batches whose kernels' time is known; the sums below are of these.
    known: f64,
    gpu_ms: f64,
    moved_ms: f64,
    wall_ms: f64,
    /// The last moment that `wall_ms` counts.
    until: f64,
}

impl Timing {
    /// Kernels that did so much have run.
    pub(super) fn count(&mut self, kernels: KernelCounts) {
        self.kernels.add(kernels, 1.0);
    }
}

impl Meter {
    pub(super) fn listen(&mut self, clock: Option<Clock>) {
        self.clock = clock;
    }

    /// The clock for another device, whose own clock is unknown so far.
    pub(super) fn renew(&mut self) -> Option<Clock> {
        self.resolution_ns = 0;
        self.clock
    }

    /// The facts of the batch that was answered last, once.
    pub(super) fn take(&mut self) -> Option<Facts> {
        self.latest.take()
    }

    /// The start of an encoding, while somebody listens.
    pub(super) fn start(&self, counters: impl FnOnce() -> Counters) -> Option<Start> {
        self.clock.map(|clock| Start {
            moment: Millis(clock()),
            counters: counters(),
        })
    }

    /// A batch was encoded since `start`.
    pub(super) fn encoded(
        &self,
        start: Option<Start>,
        counters: impl FnOnce() -> Counters,
        wait_ms: f64,
    ) -> Option<Timing> {
        let Start {
            moment: sent,
            counters: before,
        } = start?;
        let after = counters();
        let encoded = Millis(self.clock?());
        Some(Timing {
            sent,
            encoded,
            encode_ms: encoded.0 - sent.0,
            wait_ms,
            upload_ns: after.upload_ns - before.upload_ns,
            submits: after.submits - before.submits,
            bytes_up: after.bytes_up - before.bytes_up,
            bytes_down: after.bytes_down - before.bytes_down,
            memory_bytes: after.pool_bytes,
            kernels: KernelCounts::default(),
            kernel_ns: Some(0),
        })
    }

    /// More chunks of a batch were encoded since `start`.
    pub(super) fn went_on(
        &self,
        timing: &mut Option<Timing>,
        start: Option<Start>,
        counters: impl FnOnce() -> Counters,
    ) {
        if let (Some(timing), Some(more)) = (timing, self.encoded(start, counters, 0.0)) {
            timing.encoded = more.encoded;
            timing.encode_ms += more.encode_ms;
            timing.upload_ns += more.upload_ns;
            timing.submits += more.submits;
            timing.bytes_up += more.bytes_up;
            timing.bytes_down += more.bytes_down;
            timing.memory_bytes = more.memory_bytes;
        }
    }

    /// A chunk of a batch is back. Its kernels began and ended at `stamps`.
    pub(super) fn landed(&mut self, timing: &mut Option<Timing>, stamps: Option<[u64; 2]>) {
        let Some(timing) = timing else {
            return;
        };
        if let Some(stamps) = stamps {
            for stamp in stamps {
                self.resolution_ns = divisor(stamp, self.resolution_ns);
            }
        }
        // A clock that was set back tells nothing.
        let took = stamps.and_then(|[begin, end]| end.checked_sub(begin));
        timing.kernel_ns = timing.kernel_ns.zip(took).map(|(sum, took)| sum + took);
    }

    /// The last chunk of a batch is back.
    pub(super) fn finished(&mut self, timing: Option<Timing>, batch: &Outline) {
        let (Some(timing), Some(clock)) = (timing, self.clock) else {
            return;
        };
        let landed = clock();
        let transfer_ms = timing.upload_ns as f64 * NS;
        let kernel_ns = timing.kernel_ns.filter(|ns| *ns > 0);
        let gpu_ms = kernel_ns.map(|ns| ns as f64 * NS);
        let after = landed - timing.encoded.0;
        let resolution = Some(self.resolution_ns).filter(|ns| *ns > 0);
        let facts = Facts {
            id: batch.id,
            first: batch.first,
            last: batch.last,
            calls: batch.calls as u64,
            items: batch.items,
            failed: batch.failed,
            pieces: batch.chunks as u64,
            submits: timing.submits,
            engine: batch.engine,
            bytes_up: timing.bytes_up,
            bytes_down: timing.bytes_down,
            flops: known(timing.kernels.flops),
            kernel_bytes: known(timing.kernels.bytes),
            memory_bytes: timing.memory_bytes,
            sent: timing.sent,
            wait_ms: timing.wait_ms,
            encode_ms: (timing.encode_ms - transfer_ms).max(0.0),
            transfer_ms,
            gpu_ms,
            read_ms: (after - gpu_ms.unwrap_or(0.0)).max(0.0),
            wall_ms: landed - timing.sent.0,
            resolution_ms: resolution.map(|ns| ns as f64 * NS),
        };
        self.sums.add(&facts);
        self.latest = Some(facts);
    }

    pub(super) fn measured(&self) -> Measured {
        let sums = &self.sums;
        let busy = sums.gpu_ms;
        Measured {
            transfer_ms: share(sums.transfer_ms, sums.batches),
            gpu_ms: share(busy, sums.known),
            read_ms: share(sums.read_ms, sums.batches),
            kernel_efficiency: share(busy, busy + sums.moved_ms),
            utilization: share(busy, sums.wall_ms),
        }
    }
}

impl Sums {
    fn add(&mut self, facts: &Facts) {
        self.batches += 1.0;
        self.transfer_ms += facts.transfer_ms;
        self.read_ms += facts.read_ms;
        let Some(gpu_ms) = facts.gpu_ms else {
            return;
        };
        self.known += 1.0;
        self.gpu_ms += gpu_ms;
        self.moved_ms += facts.transfer_ms + facts.read_ms;
        // Batches overlap: no moment counts twice.
        let landed = facts.sent.0 + facts.wall_ms;
        self.wall_ms += (landed - self.until.max(facts.sent.0)).max(0.0);
        self.until = self.until.max(landed);
    }
}

fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// A count, which is whole but for the rounding of shares of calls and of vectors.
fn known(count: f64) -> Option<f64> {
    (!count.is_nan()).then(|| count.round_ties_even())
}

fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
