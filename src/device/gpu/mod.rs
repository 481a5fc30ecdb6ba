//! A GPU through wgpu, in the browser and natively.
//!
//! A plan is one upload, one encoder, one compute pass, one copy of all
//! results into one staging buffer, one submission and one map. Nothing is
//! created for one no larger than the largest before. No module above this one
//! names wgpu.

mod faults;
mod kept;
mod memory;
mod meter;
mod open;
mod pipelines;
mod pool;
mod reads;
mod ring;
mod tables;
mod uploads;

#[cfg(not(target_arch = "wasm32"))]
#[path = "adapters_native.rs"]
mod adapters;

#[cfg(not(target_arch = "wasm32"))]
#[path = "compile_native.rs"]
mod compile;
#[cfg(target_arch = "wasm32")]
#[path = "compile_web.rs"]
mod compile;

#[cfg(not(target_arch = "wasm32"))]
#[path = "gate_native.rs"]
mod gate;
#[cfg(target_arch = "wasm32")]
#[path = "gate_web.rs"]
mod gate;

#[cfg(not(target_arch = "wasm32"))]
#[path = "import_native.rs"]
mod import;

#[cfg(not(target_arch = "wasm32"))]
#[path = "instance_native.rs"]
mod instance;
#[cfg(target_arch = "wasm32")]
#[path = "instance_web.rs"]
mod instance;

#[cfg(not(target_arch = "wasm32"))]
#[path = "made_native.rs"]
mod made;
#[cfg(target_arch = "wasm32")]
#[path = "made_web.rs"]
mod made;

#[cfg(not(target_arch = "wasm32"))]
#[path = "mapped_native.rs"]
mod mapped;
#[cfg(target_arch = "wasm32")]
#[path = "mapped_web.rs"]
mod mapped;

#[cfg(not(target_arch = "wasm32"))]
#[path = "poll_native.rs"]
mod poll;
#[cfg(target_arch = "wasm32")]
#[path = "poll_web.rs"]
mod poll;

#[cfg(target_arch = "wasm32")]
#[path = "raw_web.rs"]
mod raw;

#[cfg(not(target_arch = "wasm32"))]
#[path = "release_native.rs"]
mod release;
#[cfg(target_arch = "wasm32")]
#[path = "release_web.rs"]
mod release;

#[cfg(not(target_arch = "wasm32"))]
#[path = "scopes_native.rs"]
mod scopes;
#[cfg(target_arch = "wasm32")]
#[path = "scopes_web.rs"]
mod scopes;

#[cfg(not(target_arch = "wasm32"))]
#[path = "show_native.rs"]
mod show;

#[cfg(not(target_arch = "wasm32"))]
pub use adapters::{Adapter, AdapterKind, adapters};
pub use compile::Compile;
#[cfg(not(any(test, target_arch = "wasm32")))]
pub(crate) use gate::free;
pub use mapped::Mapped;
pub use open::{GpuOptions, PowerPreference};
pub use pipelines::Pipeline;

use self::faults::{Faults, Made, Suspicion};
use self::memory::Memory;
use self::meter::{Meter, STAMPS};
use self::pipelines::Pipelines;
use self::poll::Poller;
use self::pool::Pool;
use self::reads::Reads;
use self::scopes::Scopes;
use self::tables::{Ready, Upload};
use self::uploads::{Uploads, Written};
use super::{
    Clock, Compiled, Counters, Device, DeviceInfo, DeviceLimits, Flight, HostWords, Readback,
    Readiness,
};
use crate::error::Error;
use crate::kernel::{Kernel, MAX_OPERANDS};
use crate::plan::{self, Dispatch, Operand, PieceSizes, Plan, Slot};
use crate::tensor::{Arena, Packing, WORD};

/// Pieces that overlap copies, link and GPU best; measured on an H200 and on
/// SwiftShader. Below the first number nothing is gained by a cut.
const PIECES: PieceSizes = PieceSizes {
    whole: 1 << 20,
    target: 1 << 20,
};

/// Bytes of four words.
const QUAD: u64 = 4 * WORD as u64;

/// A GPU.
#[derive(Debug)]
pub struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    info: DeviceInfo,
    limits: wgpu::Limits,
    faults: Faults,
    poller: Poller,
    pool: Pool,
    memory: Memory,
    reads: Reads,
    uploads: Uploads,
    pipelines: Pipelines,
    meter: Meter,
    counters: Counters,
}

impl Device for Gpu {
    fn limits(&self) -> DeviceLimits {
        DeviceLimits {
            max_side_bytes: self.max_buffer_bytes(),
            pieces: PIECES,
            max_threads: plan::most_threads(self.limits.max_compute_workgroups_per_dimension),
        }
    }

    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn counters(&self) -> Counters {
        let held = self.pool.held();
        Counters {
            pool_bytes: held.bytes,
            pool_peak_bytes: held.peak,
            pool_buffers: held.buffers,
            pool_live_bytes: held.live,
            pipelines_compiled: self.pipelines.compiled(),
            pipelines_reused: self.pipelines.reused(),
            ..self.counters
        }
    }

    fn prepare(&mut self, kernel: &Kernel) -> Readiness {
        self.drop_suspects();
        self.pipelines.prepare((&self.device, &self.faults), kernel)
    }

    fn adopt(&mut self, compiled: Compiled) {
        self.pipelines.adopt(compiled);
    }

    fn launch(&mut self, plan: &Plan, arena: &mut Arena) -> Flight {
        match self.try_launch(plan, arena) {
            Ok(flight) => flight,
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn fill(&mut self, tensor: u32, words: &[u32], _: Option<Packing>) -> Result<(), Error> {
        self.make(tensor, |gpu| {
            gpu.keep(tensor, words.len() as u64)?;
            let buffer = gpu.memory.buffer(Slot::resident(tensor));
            gpu.queue
                .write_buffer(buffer, 0, bytemuck::cast_slice(words));
            Ok(())
        })
    }

    fn patch(&mut self, tensor: u32, at: u32, words: &[u32]) {
        let end = bytes_of(at) + words.len() as u64 * u64::from(WORD);
        let Some(buffer) = self.memory.tensor(tensor).filter(|all| end <= all.size()) else {
            return; // With its device; it is filled with the next one.
        };
        let words = bytemuck::cast_slice(words);
        self.queue.write_buffer(buffer, bytes_of(at), words);
        self.counters.uploads += 1;
        self.counters.bytes_up += words.len() as u64;
    }

    fn tensor_bytes(&self, tensor: u32) -> u64 {
        self.memory.tensor_bytes(tensor)
    }

    fn release(&mut self, tensor: u32) {
        self.memory.release(tensor);
        if release::IS_AT_ONCE {
            self.free_released();
        }
    }

    fn has_released(&self) -> bool {
        self.memory.has_released()
    }

    fn free_released(&mut self) {
        for tensor in self.memory.free_released() {
            self.pipelines.forget_bind_groups_of(Slot::resident(tensor));
        }
    }

    fn measure(&mut self, clock: Option<Clock>) {
        self.meter.listen(clock);
    }

    fn allow(&mut self, bytes: u64) {
        self.pool.allow(bytes);
    }

    fn trim(&mut self) {
        self.reads.ring.trim();
        self.uploads.trim();
        self.memory.trim();
        self.pipelines.forget_bind_groups();
    }

    fn destroy(&mut self) {
        self.memory.destroy();
        self.reads.ring.destroy();
        self.uploads.destroy();
        self.meter.destroy();
        self.device.destroy();
    }
}

impl Gpu {
    fn try_launch(&mut self, plan: &Plan, arena: &mut Arena) -> Result<Flight, Error> {
        self.faults.check()?;
        self.drop_suspects();
        self.free_released();
        self.meter.prepare(&self.device, &self.queue);
        let failed = |work: &Dispatch| self.pipelines.take_failure(&work.kernel);
        if let Some(error) = plan.dispatches().find_map(failed) {
            return Err(error);
        }
        // Its owner may have destroyed a buffer that is lent.
        let (mut has_tensors, mut is_lent) = (false, false);
        for tensor in plan.tensors() {
            let Some(kept) = self.memory.kept(tensor) else {
                return Err(Error::tensor_missing());
            };
            has_tensors = true;
            is_lent |= kept.is_lent;
        }
        let (ready, upload) = self.append_tables(plan, arena)?;
        let needs = self.needs(plan, upload.bytes)?;
        let compiled = self.pipelines.compiled();
        let is_warm = self.is_warm(plan, &needs);
        self.check_budget(plan, &needs)?;
        // What an earlier launch made may be invalid, and this one's submission with it.
        let is_sound = is_warm && !is_lent && !self.faults.is_in_doubt();
        let scopes = (!is_sound).then(|| Scopes::open(&self.device));
        self.make_room(&needs);
        let mut encoder = self.encoder();
        let mut took = 0;
        let written = self.meter.time(&mut took, || {
            let written = self.uploads.write(arena, &upload.runs, upload.bytes);
            if written.is_none() {
                self.write(arena, &upload);
            }
            written
        });
        match &written {
            Some(written) => {
                let target = self.memory.buffer(Slot::INPUTS);
                written.copy_to(&mut encoder, (target, 0));
            }
            None => {
                let limit = self.max_buffer_bytes();
                self.uploads.prepare(&self.device, (upload.bytes, limit));
            }
        }
        self.counters.upload_ns += took;
        self.counters.uploads += 1;
        self.counters.bytes_up += upload.bytes;
        self.encode(&mut encoder, &ready);
        let flight = self.finish(encoder, written, bytes_of(plan.words(Slot::RESULTS)));
        let Some(scopes) = scopes else {
            return Ok(flight);
        };
        let caught = scopes.close(if is_lent {
            Error::InvalidInput // Of ours nothing would be.
        } else if self.pipelines.compiled() > compiled {
            Error::Shader
        } else if has_tensors {
            made::INVALID
        } else {
            Error::Fatal
        });
        let made = match is_warm {
            true => Made::Nothing,
            false => Made::Something,
        };
        let (faults, launched) = (self.faults.clone(), self.faults.launched(made));
        Ok(Box::pin(async move {
            let readback = flight.await;
            // A lost device makes everything invalid: that is no fault of the launch.
            faults.check()?;
            // First, because an invalid staging buffer is also refused a map.
            launched.hear(caught.await)?;
            readback
        }))
    }

    /// Something that an earlier launch created may be invalid.
    fn drop_suspects(&mut self) {
        let Some(suspicion) = self.faults.take_suspicion() else {
            return;
        };
        self.trim();
        if suspicion == Suspicion::All {
            self.pipelines.forget();
        }
    }

    /// Whether the budget has room for what a launch makes, idle buffers gone if
    /// need be.
    fn check_budget(&mut self, plan: &Plan, needs: &[(Slot, u64)]) -> Result<(), Error> {
        let read = self.read_bytes(plan);
        let lack = |gpu: &Self| {
            let slots = needs.iter();
            let slots = slots.map(|(slot, bytes)| gpu.memory.lacks(*slot, *bytes));
            slots.sum::<u64>() + read.map_or(0, |bytes| gpu.reads.lacks(bytes))
        };
        self.find_room(&lack)
    }

    /// Trims until the budget has room for what `lack` says is to be made.
    fn find_room(&mut self, lack: &dyn Fn(&Self) -> u64) -> Result<(), Error> {
        if lack(self) > self.pool.room() {
            self.free_released();
            self.reads.ring.trim();
            self.uploads.trim();
        }
        if lack(self) > self.pool.room() {
            self.trim();
        }
        let (need, room) = (lack(self), self.pool.room());
        if need > room {
            return Err(Error::OutOfMemory(format!(
                "{need} bytes are needed and the memory budget has {room} left; raise it, or dispose of tensors"
            )));
        }
        Ok(())
    }

    /// Bytes that are mapped for a plan's results, if it has any.
    fn read_bytes(&self, plan: &Plan) -> Option<u64> {
        let words = plan.words(Slot::RESULTS);
        (words > 0).then(|| bytes_of(words) + self.meter.bytes())
    }

    /// Whether a launch finds everything made that it uses.
    fn is_warm(&self, plan: &Plan, needs: &[(Slot, u64)]) -> bool {
        let fits = |(slot, bytes): &(Slot, u64)| self.memory.fits(*slot, *bytes);
        needs.iter().all(fits)
            && self
                .read_bytes(plan)
                .is_none_or(|bytes| self.reads.ring.fits(bytes))
            && self.uploads.fits(needs[0].1)
            && plan.dispatches().all(|work| {
                self.pipelines
                    .is_ready(&work.kernel, operands_of(work), work.output)
            })
    }

    /// A buffer for a tensor of so many words, about to be filled.
    fn keep(&mut self, tensor: u32, words: u64) -> Result<(), Error> {
        let bytes = words * u64::from(WORD);
        let limit = self.max_buffer_bytes();
        if bytes > limit {
            return Err(Error::TooLarge {
                what: "a tensor",
                need: bytes,
                limit,
            });
        }
        self.drop_suspects();
        self.find_room(&|gpu| bytes.saturating_sub(gpu.memory.tensor_bytes(tensor)))?;
        self.counters.uploads += 1;
        self.counters.bytes_up += bytes;
        if self.memory.keep(&self.device, tensor, bytes) {
            self.pipelines.forget_bind_groups_of(Slot::resident(tensor));
        }
        Ok(())
    }

    /// Submits nothing, which makes some browsers notice sooner that earlier
    /// work is done.
    pub fn nudge(&mut self) {
        self.queue.submit([]);
        self.counters.nudges += 1;
    }

    fn encoder(&self) -> wgpu::CommandEncoder {
        self.device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor { label: None })
    }

    /// Copies the results' first `bytes` to a staging buffer, if there are any,
    /// submits and maps.
    fn finish(
        &mut self,
        mut encoder: wgpu::CommandEncoder,
        written: Option<Written>,
        bytes: u64,
    ) -> Flight {
        let all = bytes + self.meter.bytes();
        let staged = (bytes > 0).then(|| {
            self.reads
                .take(&self.device, all, self.limits.max_buffer_size)
        });
        let mut stamps = None;
        if let Some(staged) = &staged {
            let results = self.memory.buffer(Slot::RESULTS);
            encoder.copy_buffer_to_buffer(results, 0, staged.buffer(), 0, bytes);
            stamps = self.meter.collect(&mut encoder, staged.buffer(), bytes);
        }
        let submission = self.queue.submit([encoder.finish()]);
        self.counters.submits += 1;
        if let Some(written) = written {
            // Before the results are asked for, so that it is there when they are.
            self.uploads.reclaim(written);
        }
        let Some(staged) = staged else {
            // All of it stays on the device: there is nothing to wait for.
            return Box::pin(std::future::ready(Ok(Readback::Host(HostWords::default()))));
        };
        self.counters.readbacks += 1;
        self.counters.bytes_down += bytes;
        staged.read((all, stamps), submission, (&self.poller, &self.faults))
    }

    /// Bytes that each slot must hold.
    fn needs(&self, plan: &Plan, upload: u64) -> Result<Vec<(Slot, u64)>, Error> {
        let limit = self.max_buffer_bytes();
        let slots = (0..).map(Slot).zip(&plan.slots);
        let needs = slots.map(|(slot, words)| match slot {
            Slot::INPUTS => (slot, upload),
            _ => (slot, bytes_of(*words)),
        });
        let needs: Vec<(Slot, u64)> = needs.collect();
        match needs.iter().find(|(_, need)| *need > limit) {
            Some((slot, need)) => Err(Error::TooLarge {
                what: match *slot {
                    Slot::INPUTS => "what a call reads",
                    Slot::RESULTS => "the result of a call",
                    _ => "an intermediate result of a call",
                },
                need: *need,
                limit,
            }),
            None => Ok(needs),
        }
    }

    fn make_room(&mut self, needs: &[(Slot, u64)]) {
        for (slot, bytes) in needs {
            if self
                .memory
                .grow(&self.device, *slot, *bytes, self.max_buffer_bytes())
            {
                self.pipelines.forget_bind_groups();
            }
        }
    }

    /// Uploads through the queue.
    fn write(&self, arena: &Arena, upload: &Upload) {
        let target = self.memory.buffer(Slot::INPUTS);
        uploads::each_slice(arena, &upload.runs, &mut |to, bytes| {
            self.queue.write_buffer(target, to.into(), bytes);
        });
    }

    fn encode(&mut self, encoder: &mut wgpu::CommandEncoder, ready: &[Ready<'_>]) {
        self.pipelines.begin_launch();
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
            label: None,
            timestamp_writes: self.meter.writes(),
        });
        for Ready { work, params, grid } in ready {
            let (pipeline, group) = self.pipelines.bind(
                &self.device,
                &self.memory,
                (&work.kernel, operands_of(work), work.output),
            );
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, group, &[*params]);
            pass.dispatch_workgroups(grid.0, grid.1, 1);
            self.counters.dispatches += 1;
        }
    }

    /// Whole buffers are bound, so both limits hold; and moments lie behind results.
    /// Kernels read four words at a time, whatever number of bytes a limit is, and
    /// their bytes are counted in 32 bits, whatever a device offers.
    fn max_buffer_bytes(&self) -> u64 {
        let most = self.limits.max_buffer_size - STAMPS;
        let most = most.min(self.limits.max_storage_buffer_binding_size);
        let most = most.min(u32::MAX.into());
        most / QUAD * QUAD
    }

    fn too_large(&self, what: &'static str, words: u64) -> Error {
        Error::TooLarge {
            what,
            need: words * WORD as u64,
            limit: self.max_buffer_bytes(),
        }
    }
}

/// The slots that a dispatch binds. What its kernel does not read is bound to the
/// operands all the same.
fn operands_of(work: &Dispatch) -> [Slot; MAX_OPERANDS] {
    std::array::from_fn(|k| match work.operands.get(k) {
        Some(Operand::Rows { slot, .. }) => *slot,
        Some(Operand::Scalar) | None => Slot::INPUTS,
    })
}

fn bytes_of(words: u32) -> u64 {
    u64::from(words) * u64::from(WORD)
}
