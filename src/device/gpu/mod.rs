//! A GPU through wgpu, in the browser and natively.
//!
//! A plan is one upload, one encoder, one compute pass, one copy of all results into one
//! staging buffer, one submission and one map. A plan that is no larger than earlier ones, of
//! kernels that are compiled, creates no object. No module above this one names wgpu.

mod buffer_check;
mod buffer_pool;
mod buffers;
mod device_errors;
mod launch;
mod launch_needs;
mod launch_timer;
mod lru;
mod open;
mod pipelines;
mod read_back;
mod staging_ring;
mod upload_tables;
mod uploads;

#[cfg(not(target_arch = "wasm32"))]
#[path = "adapters_native.rs"]
mod adapters;

#[cfg(not(target_arch = "wasm32"))]
#[path = "chunk_sizes_native.rs"]
mod chunk_sizes;
#[cfg(target_arch = "wasm32")]
#[path = "chunk_sizes_web.rs"]
mod chunk_sizes;

#[cfg(not(target_arch = "wasm32"))]
#[path = "compile_native.rs"]
mod compile;
#[cfg(target_arch = "wasm32")]
#[path = "compile_web.rs"]
mod compile;

#[cfg(all(test, not(target_arch = "wasm32")))]
mod device_for_tests;

#[cfg(not(target_arch = "wasm32"))]
#[path = "gpu_driver_lock_native.rs"]
mod gpu_driver_lock;
#[cfg(target_arch = "wasm32")]
#[path = "gpu_driver_lock_web.rs"]
mod gpu_driver_lock;

#[cfg(not(target_arch = "wasm32"))]
#[path = "import_native.rs"]
mod import;
#[cfg(target_arch = "wasm32")]
#[path = "import_web.rs"]
mod import;

#[cfg(not(target_arch = "wasm32"))]
#[path = "instance_native.rs"]
mod instance;
#[cfg(target_arch = "wasm32")]
#[path = "instance_web.rs"]
mod instance;

#[cfg(not(target_arch = "wasm32"))]
#[path = "allocation_native.rs"]
mod allocation;
#[cfg(target_arch = "wasm32")]
#[path = "allocation_web.rs"]
mod allocation;

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

#[cfg(target_arch = "wasm32")]
#[path = "stand_in_web.rs"]
mod stand_in;

#[cfg(not(target_arch = "wasm32"))]
#[path = "error_scopes_native.rs"]
mod error_scopes;
#[cfg(target_arch = "wasm32")]
#[path = "error_scopes_web.rs"]
mod error_scopes;

#[cfg(not(target_arch = "wasm32"))]
#[path = "export_native.rs"]
mod export;

#[cfg(not(target_arch = "wasm32"))]
pub use adapters::{Adapter, AdapterKind, adapters};
pub use compile::Compile;
#[cfg(target_arch = "wasm32")]
pub use compile::explain_by;
#[cfg(not(any(test, target_arch = "wasm32")))]
pub(crate) use gpu_driver_lock::free_device;
#[cfg(target_arch = "wasm32")]
pub use import::BufferPart;
pub use mapped::Mapped;
pub use open::{GpuOptions, PowerPreference};
pub use pipelines::Pipeline;

use self::buffer_pool::BufferPool;
use self::buffers::Buffers;
use self::device_errors::DeviceErrors;
use self::launch_timer::LaunchTimer;
use self::pipelines::Pipelines;
use self::poll::Poller;
use self::read_back::ReadBack;
use self::uploads::Uploads;
use super::{
    Clock, Compiled, Counters, Device, DeviceInfo, DeviceLimits, Flight, Readback, Readiness,
};
use crate::error::Error;
use crate::kernel::Kernel;
use crate::plan::{self, Plan, Slot};
use crate::tensor::{Arena, Packing, WORD};

/// A GPU.
#[derive(Debug)]
pub struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    info: DeviceInfo,
    limits: wgpu::Limits,
    errors: DeviceErrors,
    poller: Poller,
    pool: BufferPool,
    buffers: Buffers,
    read_back: ReadBack,
    uploads: Uploads,
    pipelines: Pipelines,
    timer: LaunchTimer,
    counters: Counters,
}

impl Device for Gpu {
    fn limits(&self) -> DeviceLimits {
        DeviceLimits {
            max_side_bytes: self.max_buffer_bytes(),
            chunks: chunk_sizes::CHUNKS,
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
        self.pipelines.prepare(kernel)
    }

    fn adopt(&mut self, compiled: Compiled) {
        self.pipelines.adopt(compiled);
    }

    fn launch(&mut self, plan: &Plan, arena: &mut Arena) -> Result<Flight, Error> {
        self.try_launch(plan, arena)
    }

    fn fill(&mut self, tensor: u32, words: &[u32], _: Option<Packing>) -> Result<(), Error> {
        self.make(tensor, |gpu| {
            gpu.keep(tensor, words.len() as u64)?;
            let buffer = gpu.buffers.buffer(Slot::resident(tensor));
            gpu.queue
                .write_buffer(buffer, 0, bytemuck::cast_slice(words));
            Ok(())
        })
    }

    fn allocate(&mut self, tensor: u32, words: u32) -> Result<(), Error> {
        self.make(tensor, |gpu| gpu.make_buffer(tensor, words.into()))
    }

    fn clear(&mut self, tensor: u32, words: u32) -> Result<(), Error> {
        // The words of a new buffer are 0; an idle one has words of the tensor before.
        self.buffers.discard_idle(tensor);
        self.allocate(tensor, words)
    }

    fn patch(&mut self, tensor: u32, at: u32, words: &[u32]) {
        let end = bytes_of(at) + words.len() as u64 * u64::from(WORD);
        let Some(buffer) = self.buffers.tensor(tensor).filter(|all| end <= all.size()) else {
            return; // The tensor went with its device; the next device gets all of it.
        };
        let words = bytemuck::cast_slice(words);
        self.queue.write_buffer(buffer, bytes_of(at), words);
        self.counters.uploads += 1;
        self.counters.bytes_up += words.len() as u64;
    }

    fn tensor_bytes(&self, tensor: u32) -> u64 {
        self.buffers.tensor_bytes(tensor)
    }

    fn is_unusable(&self, tensor: u32) -> bool {
        let buffer = self.buffers.tensor(tensor);
        buffer.is_some_and(|buffer| self.errors.is_unusable(buffer))
    }

    fn release(&mut self, tensor: u32) {
        self.buffers.release(tensor);
        if release::IS_AT_ONCE {
            self.free_released();
        }
    }

    fn has_released(&self) -> bool {
        self.buffers.has_released()
    }

    fn free_released(&mut self) {
        for tensor in self.buffers.free_released() {
            self.pipelines.forget_bind_groups_of(Slot::resident(tensor));
        }
    }

    fn measure(&mut self, clock: Option<Clock>) {
        self.timer.listen(clock);
    }

    fn allow(&mut self, bytes: u64) {
        self.pool.allow(bytes);
    }

    fn trim(&mut self) {
        self.read_back.ring.trim();
        self.uploads.trim();
        self.buffers.trim();
        self.pipelines.forget_bind_groups();
    }

    fn destroy(&mut self) {
        self.buffers.destroy();
        self.read_back.ring.destroy();
        self.uploads.destroy();
        self.timer.destroy();
        self.device.destroy();
    }
}

fn bytes_of(words: u32) -> u64 {
    u64::from(words) * u64::from(WORD)
}
